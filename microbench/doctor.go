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
	Tables   []Table   `json:"tables,omitempty"`
}

// Examiner is a driver that can look at its machine more closely than a short
// check does, by measuring it: a host's latency by working set, for one. It may
// take some seconds. An error means that nothing could be examined; what only
// could not be measured here is a finding.
type Examiner interface {
	Examine(ctx context.Context) (Examination, error)
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
// by a backend, and at what would spoil the measurement.
// With examine, a driver that is an Examiner measures its machine too.
func Doctor(ctx context.Context, b *board.Board, backend string, examine bool) (Report, error) {
	return registry.doctor(ctx, b, backend, os.DirFS("/proc"), examine)
}

func (r *Registry) doctor(ctx context.Context, b *board.Board, backend string, proc fs.FS, examine bool) (Report, error) {
	backend = DefaultBackend(b, backend)
	rep := Report{Board: b.Name, Class: b.Class, Backend: backend, OK: true}
	add := func(level, text, remedy string) {
		rep.Findings = append(rep.Findings, Finding{level, text, remedy})
		rep.OK = rep.OK && level != LevelMissing
	}
	var missing []tool
	if backend == Native {
		missing = missingTools(b.Class)
		if len(missing) == 0 && len(nativeTools[b.Class]) > 0 {
			add(LevelOK, "the tools of class "+b.Class+" are in PATH", "")
		}
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
			rep.Groups = measurable(b)
		}
		if e, ok := d.(Examiner); ok && examine {
			found, err := e.Examine(ctx)
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
	cpus := runtime.GOMAXPROCS(0)
	add(LevelOK, fmt.Sprintf("%d processors may be used, %s/%s, %s", cpus, runtime.GOOS, runtime.GOARCH, runtime.Version()), "")
	if load, ok := loadAverage(proc); ok {
		text := fmt.Sprintf("load average %.1f on %d processors", load, runtime.NumCPU())
		switch {
		case load < float64(runtime.NumCPU())/2:
			add(LevelOK, text, "")
		case backend == Emulated:
			add(LevelWarning, text, "a sweep takes longer; its results do not change")
		default:
			add(LevelWarning, text, "stop other work: it spoils the timing")
		}
	}
	if mb, ok := availableMB(proc); ok {
		text := fmt.Sprintf("%d MB of memory available", mb)
		if need := 100 * cpus; mb < need {
			add(LevelWarning, text, fmt.Sprintf("free memory up to %d MB, or lower --parallel", need))
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
func loadAverage(proc fs.FS) (float64, bool) {
	data, err := fs.ReadFile(proc, "loadavg")
	if err != nil {
		return 0, false
	}
	first, _, _ := strings.Cut(string(data), " ")
	load, err := strconv.ParseFloat(first, 64)
	return load, err == nil
}

// availableMB is the memory that can be used without swapping, where the
// system tells.
func availableMB(proc fs.FS) (int, bool) {
	data, err := fs.ReadFile(proc, "meminfo")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			kb, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")))
			return kb / 1024, err == nil
		}
	}
	return 0, false
}
