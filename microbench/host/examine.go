package host

import (
	"context"
	"fmt"
	"math"
	"strings"

	"nicprof/internal/linux"
	"nicprof/microbench"
	"nicprof/microbench/host/kernel"
)

// Examine measures the latency of dependent loads by working set, on small and
// on huge pages, and says which levels of the caches it shows.
func (d *Driver) Examine(ctx context.Context) (microbench.Examination, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var e microbench.Examination
	add := func(level, text, remedy string) {
		e.Findings = append(e.Findings, microbench.Finding{Level: level, Text: text, Remedy: remedy})
	}
	if err := d.calibrate(); err != nil {
		return e, err
	}
	add(microbench.LevelOK, fmt.Sprintf("clock: %s, %.3f ns a tick; a reading costs %.1f ns, which is subtracted", clockName, d.clock.nsPerTick, d.clock.overhead), "")
	lost := fmt.Sprintf("an idle processor loses %.1f %% of its time to the system", 100*d.idle)
	if d.idle > lostShare {
		add(microbench.LevelWarning, lost+" and to others", "stop other work; boot with nohz_full= and isolcpus= for the processors that measure; in a virtual machine ask for dedicated ones")
	} else {
		add(microbench.LevelOK, lost, "")
	}
	reported := reportedCaches(d.cpus)
	f, points, err := measureLevels(ctx, d.cpus, reported)
	if err != nil {
		return e, err
	}
	levels, err := d.latencies(ctx, f, points)
	if err != nil {
		return e, err
	}
	e.Tables = append(e.Tables, levels...)
	if len(d.board.Memories) > 0 {
		rows, err := d.scaling(ctx)
		if err != nil {
			return e, err
		}
		e.Tables = append(e.Tables, scalingTable(rows))
		if free := deleted(rows); len(free) > 0 {
			add(microbench.LevelWarning, "more work takes no longer: "+strings.Join(free, ", ")+" cost less than any processor takes, so the work is not done",
				"report it with the Go version and the processor; do not use rates of these accesses")
		} else {
			add(microbench.LevelOK, "time grows with the work: no measured loop is optimised away", "")
		}
	}
	if found := names(f.Levels); len(d.board.Memories) > 0 && found != d.levels() {
		add(microbench.LevelWarning, fmt.Sprintf("the levels %s are told apart now, the board has %s", found, d.levels()),
			"remove "+findingFile()+" to find them anew; runs of before cannot be resumed then")
	}
	return e, nil
}

func names(levels []level) string {
	var list []string
	for _, l := range levels {
		list = append(list, l.Name)
	}
	return strings.Join(list, ", ")
}

// levels are the names of the board's memories.
func (d *Driver) levels() string {
	var list []string
	for i := range d.board.Memories {
		list = append(list, d.board.Memories[i].Name)
	}
	return strings.Join(list, ", ")
}

// latencies are the curve, apart by what the page size adds, and its plateaus.
func (d *Driver) latencies(ctx context.Context, f finding, huge []point) ([]microbench.Table, error) {
	unpin, err := linux.Pin(d.cpus[0])
	if err != nil {
		return nil, err
	}
	defer unpin()
	defer quiet()()
	var sizes []int64
	for _, p := range huge {
		sizes = append(sizes, p.Bytes)
	}
	far, _, err := curve(ctx, d.clock, sizes, linux.SmallPages, kernel.Lines)
	if err != nil {
		return nil, err
	}
	local, small, err := curve(ctx, d.clock, sizes, linux.SmallPages, kernel.PageLocal)
	if err != nil {
		return nil, err
	}
	_, got, err := curve(ctx, d.clock, sizes[:1], linux.HugePages, kernel.Lines)
	if err != nil {
		return nil, err
	}
	column := "huge pages, ns"
	if got.HugeBytes == 0 {
		column = "small pages too (no huge ones here), ns"
	}
	curve := microbench.Table{
		Title:   fmt.Sprintf("latency of dependent loads by working set; small pages are of %d KiB", small.Page>>10),
		Columns: []string{"working set", "TLB-local, ns", "TLB-missing, ns", column, "plateau"},
	}
	for i, n := range sizes {
		curve.Rows = append(curve.Rows, []any{sizeText(n), tenth(local[i].NS), tenth(far[i].NS), tenth(huge[i].NS), plateau(f.Levels, n)})
	}
	levels := microbench.Table{Title: "levels", Columns: []string{"level", "bytes", "reported", "latency, ns", "shared by", "from"}}
	for _, l := range f.Levels {
		bytes, reported := sizeText(l.Bytes), sizeText(l.Reported)
		if l.Bytes == 0 {
			bytes, reported = "beyond", "-"
		}
		levels.Rows = append(levels.Rows, []any{l.Name, bytes, reported, tenth(l.NS), max(1, l.SharedBy), l.From})
	}
	return []microbench.Table{levels, curve}, nil
}

func tenth(ns float64) float64 { return math.Round(10*ns) / 10 }

// plateau is the level whose plateau a working set lies on, "" between two.
func plateau(levels []level, set int64) string {
	below := int64(0)
	for _, l := range levels {
		if set > below && (l.Bytes == 0 || set <= l.Bytes/2) {
			if below == 0 || set >= below+below/2 {
				return l.Name
			}
			return ""
		}
		if l.Bytes > 0 && set <= l.Bytes {
			return ""
		}
		below = l.Bytes
	}
	return ""
}
