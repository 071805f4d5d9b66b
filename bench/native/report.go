package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"nicprof/internal/atomicfile"
	"nicprof/internal/fault"
	"nicprof/internal/table"
	"nicprof/internal/version"
)

// Result is bench.json.
type Result struct {
	Schema   int          `json:"schema"`
	Date     time.Time    `json:"date"`
	Backend  string       `json:"backend"` // always native
	Version  string       `json:"version"` // of nicprof
	Scale    string       `json:"scale"`   // full or quick
	Noise    string       `json:"noise"`   // refused, allowed
	Machine  Machine      `json:"machine"`
	Tools    []Tool       `json:"tools"`
	Skipped  []string     `json:"skipped,omitempty"` // peers that are not here
	Rows     []Comparison `json:"rows"`
	Beside   []Figure     `json:"beside,omitempty"`
	Warnings []string     `json:"warnings,omitempty"`
}

// Machine is where it was measured.
type Machine struct {
	CPU        string `json:"cpu"`
	CPUs       int    `json:"cpus"`
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	Kernel     string `json:"kernel"`
	Hypervisor bool   `json:"hypervisor"` // a virtual machine, as far as the processor tells
	HugePages  string `json:"transparent_huge_pages,omitempty"`
	Memory     int64  `json:"memory_bytes"`
	Priority   string `json:"priority,omitempty"`
	LoadBefore string `json:"load_before"`
	LoadAfter  string `json:"load_after"`
	Go         string `json:"go"`

	Notes []string `json:"notes,omitempty"` // about its memory's levels
}

// Tool is a peer that was found.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Figure is a number of another tool that is not comparable.
type Figure struct {
	Tool  string  `json:"tool"`
	What  string  `json:"what"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

// newResult describes the machine before the measurement.
func newResult(o options) *Result {
	r := &Result{Schema: 1, Date: time.Now().UTC().Truncate(time.Second), Backend: "native", Version: version.Version, Scale: "full", Noise: "refused"}
	if o.quick {
		r.Scale = "quick"
	}
	if o.allowNoise {
		r.Noise = "allowed"
	}
	m := &r.Machine
	*m = Machine{CPUs: runtime.NumCPU(), OS: runtime.GOOS, Arch: runtime.GOARCH, Go: runtime.Version(), LoadBefore: load()}
	m.Kernel = strings.TrimSpace(text("/proc/sys/kernel/osrelease"))
	m.HugePages = strings.TrimSpace(text("/sys/kernel/mm/transparent_hugepage/enabled"))
	lines(text("/proc/cpuinfo"), func(line string) {
		key, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(key) {
		case "model name":
			m.CPU = strings.TrimSpace(value)
		case "flags":
			m.Hypervisor = strings.Contains(value+" ", " hypervisor ")
		}
	})
	lines(text("/proc/meminfo"), func(line string) {
		if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			var kib int64
			if _, err := fmt.Sscan(rest, &kib); err == nil {
				m.Memory = kib << 10
			}
		}
	})
	return r
}

// text is a file of the system's, empty where there is none.
func text(path string) string {
	b, _ := os.ReadFile(path)
	return string(b)
}

// load is the number of runnable tasks, averaged over a minute.
func load() string {
	first, _, _ := strings.Cut(text("/proc/loadavg"), " ")
	return first
}

func (r *Result) tool(name, version string) { r.Tools = append(r.Tools, Tool{name, version}) }

// noisy counts the rows with an aim that noise hides, of all with an aim.
func (r *Result) noisy() (noisy, compared int) {
	for _, c := range r.Rows {
		if c.Aim == 0 || c.Failed != "" {
			continue
		}
		compared++
		if c.Verdict == Unclear {
			noisy++
		}
	}
	return noisy, compared
}

// noiseLimit is the part of the rows that may be hidden by noise; beyond it the
// machine is too noisy to say anything.
const noiseLimit = 0.25

// report prints the rows and stores them, unless noise hides too many.
func (r *Result) report(o options, stdout io.Writer) error {
	r.Machine.LoadAfter = load()
	for _, c := range r.Rows {
		if c.Failed != "" {
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s %s against %s has no numbers: %s", c.Group, c.Name, c.Peer, c.Failed))
		}
	}
	noisy, compared := r.noisy()
	tooNoisy := float64(noisy) > noiseLimit*float64(compared)
	if noisy > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("noise hides %d of %d compared ratios", noisy, compared))
	}
	var md bytes.Buffer
	if err := r.markdown(&md); err != nil {
		return err
	}
	for _, t := range r.tables() {
		if err := t.Text(stdout, table.Colors(stdout, os.Getenv)); err != nil {
			return err
		}
		fmt.Fprintln(stdout)
	}
	for _, s := range r.Skipped {
		fmt.Fprintln(stdout, "skipped:", s)
	}
	for _, w := range r.Warnings {
		fmt.Fprintln(stdout, "warning:", w)
	}
	if tooNoisy && !o.allowNoise {
		return fault.Checkf("the machine is too noisy: it hides %d of %d ratios, so nothing is stored; stop other work (doctor --board host names what spoils a measurement) or give --allow-noise", noisy, compared)
	}
	if o.out == "" {
		return nil
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := atomicfile.Write(filepath.Join(o.out, "bench.json"), append(data, '\n')); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(o.out, "bench.md"), md.Bytes())
}

// tables are the rows with an aim, those without, and the figures beside.
func (r *Result) tables() []*table.Table {
	columns := []string{"what", "working set", "thr", "peer", "ours", "theirs", "ratio", "95 %", ""}
	compared := table.New("Ours against peers: median of pairs measured alternately; ratio = ours / theirs", columns...)
	without := table.New("The same work in other ways: no aim", columns...)
	for _, c := range r.Rows {
		t := compared
		if c.Aim == 0 {
			t = without
		}
		set := "–"
		if c.Bytes > 0 {
			set = sizeText(c.Bytes) + " " + c.Level
		}
		if c.Failed != "" {
			t.Row(c.Group+" "+c.Name, set, c.Threads, c.Peer, "–", "–", "–", "–", "failed")
			continue
		}
		t.Row(c.Group+" "+c.Name, set, c.Threads, c.Peer+" "+c.As,
			table.Number(c.Ours.Median)+" "+c.Unit, table.Number(c.Theirs.Median)+" "+c.Unit,
			fmt.Sprintf("%.3f", c.Ratio.Median), fmt.Sprintf("%.3f to %.3f", c.Ratio.Low, c.Ratio.High), c.Verdict)
	}
	beside := table.New("Beside, not comparable (docs/native.md says why)", "tool", "what", "figure")
	for _, f := range r.Beside {
		beside.Row(f.Tool, f.What, table.Number(f.Value)+" "+f.Unit)
	}
	var out []*table.Table
	for _, t := range []*table.Table{compared, without, beside} {
		if t.Len() > 0 {
			out = append(out, t)
		}
	}
	return out
}

// sizeText writes a size in the largest binary unit that keeps it whole.
func sizeText(b int64) string {
	switch {
	case b >= 10<<20:
		return fmt.Sprintf("%.0f MiB", float64(b)/(1<<20))
	case b >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(b)/(1<<20))
	}
	return fmt.Sprintf("%.0f KiB", float64(b)/(1<<10))
}

// markdown writes bench.md: all that bench.json has but the date.
func (r *Result) markdown(w io.Writer) error {
	m := r.Machine
	kind := ""
	if m.Hypervisor {
		kind = ", a virtual machine"
	}
	fmt.Fprintf(w, "# Native kernels against other tools\n\nMeasured natively by `go run ./bench/native` (scale %s, noise %s) on %s%s: %d processors, %s, kernel %s, %.1f GiB of memory, transparent huge pages %q; load %s before and %s after. nicprof %s, %s.\n\n",
		r.Scale, r.Noise, m.CPU, kind, m.CPUs, m.Arch, m.Kernel, float64(m.Memory)/(1<<30), m.HugePages, m.LoadBefore, m.LoadAfter, r.Version, m.Go)
	for _, t := range r.Tools {
		fmt.Fprintf(w, "- %s: %s\n", t.Name, t.Version)
	}
	for _, s := range r.Skipped {
		fmt.Fprintf(w, "- skipped: %s\n", s)
	}
	for _, s := range m.Notes {
		fmt.Fprintf(w, "- levels: %s\n", s)
	}
	fmt.Fprintln(w)
	for _, t := range r.tables() {
		if err := t.Markdown(w); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	for _, s := range r.Warnings {
		fmt.Fprintf(w, "- warning: %s\n", s)
	}
	return nil
}
