package microbench

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"

	"nicprof/board"
	"nicprof/internal/fault"
)

// Levels of a finding.
const (
	LevelOK      = "ok"      // as it should be
	LevelWarning = "warning" // measurements work, but slower or noisier
	LevelMissing = "missing" // nothing can be measured
)

// Report says what can be measured here. OK is false when a finding is
// LevelMissing. Tables are what the driver measured when it examined its
// machine.
type Report struct {
	Board    string    `json:"board"`
	Class    string    `json:"class"`
	Backend  string    `json:"backend"`
	OK       bool      `json:"ok"`
	Groups   []string  `json:"groups,omitempty"` // of workloads that can be measured
	Findings []Finding `json:"findings"`
	Machine  []Finding `json:"machine,omitempty"` // of the machine that a native driver measures
	Tables   []Table   `json:"tables,omitempty"`
}

// Examiner is a driver that can look at its machine more closely than a short
// check does, by measuring it: a host's latency by working set, for one. It may
// take some seconds. An error means that nothing could be examined; what only
// could not be measured here is a finding.
type Examiner interface {
	Examine(ctx context.Context) (Examination, error)
}

// Examine lets a driver examine its machine; one that is no Examiner finds
// nothing.
func Examine(ctx context.Context, d Driver) (Examination, error) {
	if e, ok := d.(Examiner); ok {
		return e.Examine(ctx)
	}
	return Examination{}, nil
}

// Examination is what an Examiner found.
type Examination struct {
	Findings []Finding
	Tables   []Table
}

// Table is a small table of measurements for people and for JSON. A cell is a
// string or a number; units stand in the column's name.
type Table struct {
	Title   string   `json:"title"`
	Columns []string `json:"columns"`
	Rows    [][]any  `json:"rows"`
}

// Finding is one thing looked at, with what to do about it unless it is ok.
type Finding struct {
	Level  string `json:"level"`
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"`
	Topic  string `json:"topic,omitempty"` // of a machine's finding, a heading of docs/doctor.md
}

// Err returns a missing fault that names what is missing, or nil.
func (r *Report) Err() error {
	var missing []string
	for _, f := range r.Findings {
		if f.Level == LevelMissing {
			missing = append(missing, strings.TrimSuffix(f.Text+": "+f.Remedy, ": "))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fault.Missingf("board %s, backend %s: %s", r.Board, r.Backend, strings.Join(missing, "; "))
}

// Doctor looks at what would keep a board from being measured on this machine
// by a backend, and at what would spoil the measurement: it reads /proc and /sys
// and, for a native driver, probes the machine for a fifth of a second. With
// examine, a driver that is an Examiner measures its machine too.
func Doctor(ctx context.Context, b *board.Board, backend string, examine bool) (Report, error) {
	root := os.DirFS("/")
	var live *probe
	if DefaultBackend(b, backend) == Native {
		live = probeHere(root)
	}
	return registry.doctor(ctx, b, backend, &machine{root, live}, examine)
}

// DoctorOf looks at a copy of another machine's file system instead: its
// /proc and /sys, and its programs. It says what would spoil a measurement
// there; whether drivers open and counters count can only be told on the
// machine itself.
func DoctorOf(root fs.FS) Report {
	return Report{Class: "host", Backend: Native, OK: true, Findings: []Finding{}, Machine: (&machine{root: root}).inspect()}
}

func (r *Registry) doctor(ctx context.Context, b *board.Board, backend string, m *machine, examine bool) (Report, error) {
	backend = DefaultBackend(b, backend)
	rep := Report{Board: b.Name, Class: b.Class, Backend: backend, OK: true}
	add := func(level, text, remedy string) {
		rep.Findings = append(rep.Findings, Finding{Level: level, Text: text, Remedy: remedy})
		rep.OK = rep.OK && level != LevelMissing
	}
	var missing []tool
	if backend == Native {
		missing = missingTools(b.Class)
		if len(missing) == 0 && len(nativeTools[b.Class]) > 0 {
			add(LevelOK, "the tools of class "+b.Class+" are in PATH", "")
		}
	}
	if rights := m.lacks(b.Class); backend == Native && len(rights) > 0 {
		add(LevelMissing, "no right to measure on boards of class "+b.Class+": it takes "+strings.Join(rights, ", "), "run as root")
	}
	for _, t := range missing {
		add(LevelMissing, t.name+", which "+t.use+", is not in PATH", "install the "+t.from)
	}
	if len(missing) == 0 {
		d, err := r.Open(b, backend)
		if err != nil {
			add(LevelMissing, err.Error(), "")
		} else {
			add(LevelOK, "the driver of class "+b.Class+" opens", "")
			found := d.Board() // of the machine, where b is a template
			rep.Groups = measurable(found)
			for _, note := range found.Notes[min(len(b.Notes), len(found.Notes)):] {
				add(LevelOK, note, "")
			}
		}
		if examine {
			found, err := Examine(ctx, d)
			if ctx.Err() != nil {
				return rep, ctx.Err()
			}
			if err != nil {
				add(LevelWarning, "the machine was not examined: "+err.Error(), "")
			}
			for _, f := range found.Findings {
				add(f.Level, f.Text, f.Remedy)
			}
			rep.Tables = found.Tables
		}
	}
	if !rep.OK {
		rep.Groups = nil
	}
	if backend == Native {
		rep.Machine = m.inspect()
		return rep, nil
	}
	cpus := runtime.GOMAXPROCS(0)
	add(LevelOK, fmt.Sprintf("%d processors may be used, %s/%s, %s", cpus, runtime.GOOS, runtime.GOARCH, runtime.Version()), "")
	if load, ok := loadAverage(m.root); ok {
		text := fmt.Sprintf("load average %.1f on %d processors", load, runtime.NumCPU())
		if load < float64(runtime.NumCPU())/2 {
			add(LevelOK, text, "")
		} else {
			add(LevelWarning, text, "a sweep takes longer; its results do not change")
		}
	}
	if free, ok := m.available(); ok {
		text := size(free) + " of memory available"
		if need := int64(cpus) * 100 << 20; free < need {
			add(LevelWarning, text, "free memory up to "+size(need)+", or lower --parallel")
		} else {
			add(LevelOK, text, "")
		}
	}
	if backend == Emulated {
		add(LevelOK, "an emulated board measures the same on every machine; no clock of this one enters the results", "")
	}
	return rep, nil
}

// measurable returns the groups of workloads that a board has.
func measurable(b *board.Board) []string {
	plan, err := Plan(b, Suites[0], nil, 1)
	if err != nil {
		return nil
	}
	has := map[string]bool{}
	for _, w := range plan {
		has[w.Group] = true
	}
	var groups []string
	for _, g := range Groups {
		if has[g] {
			groups = append(groups, g)
		}
	}
	return groups
}

// loadAverage is that of the last minute, where the system tells.
func loadAverage(root fs.FS) (float64, bool) {
	data, err := fs.ReadFile(root, "proc/loadavg")
	if err != nil {
		return 0, false
	}
	first, _, _ := strings.Cut(string(data), " ")
	load, err := strconv.ParseFloat(first, 64)
	return load, err == nil && load >= 0
}
