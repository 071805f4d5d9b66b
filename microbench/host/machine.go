package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"nicprof/board"
	"nicprof/internal/atomicfile"
	"nicprof/internal/fault"
	"nicprof/internal/linux"
	"nicprof/microbench/host/kernel"
	"nicprof/program"
)

// findingVersion is that of the rules that make levels of a curve: a finding
// stored by others is not used.
const findingVersion = 1

// finding is what was found out about a machine, stored so that its board is
// the same in every run: sweeps are resumed and merged by it.
type finding struct {
	Version int     `json:"version"`
	Machine string  `json:"machine"` // hash of what the levels depend on
	Levels  []level `json:"levels"`
	DRAM    int64   `json:"dram_bytes"`
	Note    string  `json:"note,omitempty"`
}

// reportedCaches are those of the first processor in use.
func reportedCaches(cpus []int) []cache {
	if found := sysfsCaches(os.DirFS("/"), cpus[0], cpus); len(found) > 0 {
		return found
	}
	return askProcessor(len(cpus))
}

// findLevels returns the levels of this machine: from the file of an earlier
// finding, else by measurement, which takes some seconds.
func findLevels(ctx context.Context, cpus []int, file string) (finding, error) {
	reported := reportedCaches(cpus)
	key := machineKey(reported)
	if f, ok := readFinding(file); ok && f.Machine == key {
		return f, nil
	}
	f, _, err := measureLevels(ctx, cpus, reported)
	if err != nil {
		return finding{}, err
	}
	f.Machine = key
	if file == "" {
		return f, nil
	}
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return finding{}, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return finding{}, fault.Missingf("the levels found cannot be kept: %w; set XDG_CACHE_HOME to a directory that can be written", err)
	}
	return f, atomicfile.Write(file, append(data, '\n'))
}

// measureLevels measures the curve twice, keeps the faster of each point, and
// makes levels of it.
func measureLevels(ctx context.Context, cpus []int, reported []cache) (finding, []point, error) {
	if len(reported) == 0 {
		reported = []cache{{Level: 1, Bytes: 32 << 10, Line: 64, SharedBy: 1, From: "assumed: the machine tells nothing"}}
	}
	memory, err := linux.Available()
	if err != nil {
		return finding{}, nil, err
	}
	most := int64(dramLeast)
	if last := reported[len(reported)-1].Bytes; last < dramLeast {
		most = max(64<<20, 4*ceilPower(last))
	}
	most = min(most, dramMost, floorPower(memory.Bytes/8))
	if most < 4<<20 {
		return finding{}, nil, fault.Missingf("%s of memory may be used (%s): not enough to measure a cache", sizeText(memory.Bytes), memory.From)
	}
	unpin, err := linux.Pin(cpus[0])
	if err != nil {
		return finding{}, nil, err
	}
	defer unpin()
	defer quiet()()
	c := calibrate()
	var points []point
	for range 2 {
		again, _, err := curve(ctx, c, curveSizes(most), linux.HugePages, kernel.Lines)
		if err != nil {
			return finding{}, nil, err
		}
		if points == nil {
			points = again
		}
		for i := range points {
			points[i].NS = min(points[i].NS, again[i].NS)
		}
	}
	levels, err := levelsOf(reported, points)
	if err != nil {
		return finding{}, nil, err
	}
	f := finding{Version: findingVersion, Levels: levels}
	f.DRAM, f.Note = dramBytes(levels, memory.Bytes)
	return f, points, nil
}

// machineKey identifies what the levels depend on.
func machineKey(reported []cache) string {
	info, _ := os.ReadFile("/proc/cpuinfo") // absent: the identity of the machine is left
	var model []string
	for line := range strings.Lines(string(info)) {
		key, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(key) {
		case "model name", "CPU implementer", "CPU part", "CPU variant":
			model = append(model, strings.TrimSpace(value))
		}
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d|%s|%s|%+v", findingVersion, linux.MachineID(), slices.Compact(model), reported))
	return hex.EncodeToString(sum[:8])
}

func readFinding(file string) (finding, bool) {
	data, err := os.ReadFile(file)
	if err != nil {
		return finding{}, false
	}
	var f finding
	if json.Unmarshal(data, &f) != nil || f.Version != findingVersion || len(f.Levels) == 0 || f.DRAM < 1<<20 {
		return finding{}, false // torn or of another version: measured anew
	}
	return f, true
}

// findingFile is where this user's finding is kept, "" where there is no such
// place.
func findingFile() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "nicprof", "host-levels.json")
}

// describe returns the board of this machine: the template with the processors
// and levels found.
func describe(template *board.Board, cpus []int, f finding) *board.Board {
	b := *template
	cores := board.Num{Value: float64(len(cpus)), Unit: "cores", Source: "affinity mask of this process", Confidence: "H"}
	b.Cores = cores
	b.Bases = slices.Clone(b.Bases)
	for i := range b.Bases {
		b.Bases[i].Cores = cores
	}
	shared := ""
	for i, l := range f.Levels {
		m := board.Memory{Name: l.Name, Kind: "sram", Bytes: l.Bytes, DefaultStride: int64(max(64, l.Line)),
			BytesSource: l.From + ", confirmed by the latency of dependent loads"}
		if l.Reported > 0 && l.Bytes < l.Reported {
			m.BytesSource = fmt.Sprintf("latency of dependent loads; %s reports %s", l.From, sizeText(l.Reported))
		}
		by := l.SharedBy
		if i == len(f.Levels)-1 {
			m.Kind, m.Bytes, m.BytesSource = "dram", f.DRAM, "chosen: twice the default working set, which is beyond the caches"
			by = len(cpus)
		}
		by = min(max(by, 1), len(cpus))
		m.SharedBy = board.Num{Value: float64(by), Unit: "cores", Source: l.From, Confidence: "M"}
		m.Latency = board.Num{Value: math.Round(100*l.NS) / 100, Unit: "ns", Source: "latency of dependent loads, measured here", Confidence: "M"}
		m.LineBytes = board.Num{Value: float64(max(64, l.Line)), Unit: "B", Source: l.From, Confidence: "M"}
		if l.Ways > 0 {
			m.Ways = board.Num{Value: float64(l.Ways), Source: l.From, Confidence: "H"}
		}
		m.DefaultSpan = max(1, m.Bytes/2/m.DefaultStride)
		m.Engines = engines()
		b.Memories = append(b.Memories, m)
		if shared == "" && by == len(cpus) && i > 0 || i == len(f.Levels)-1 && shared == "" {
			shared = l.Name
		}
		if l.Note != "" {
			b.Notes = append(slices.Clip(b.Notes), l.Name+": "+l.Note)
		}
	}
	if f.Note != "" {
		b.Notes = append(slices.Clip(b.Notes), f.Levels[len(f.Levels)-1].Name+": "+f.Note)
	}
	b.Locks.Memory = shared
	b.Locks.WordStride = board.Num{Value: lockStride, Unit: "B", Source: "two cache lines, which some processors fetch together", Confidence: "H"}
	return &b
}

// engines are what a core does to memory: plain loads and stores, and atomic
// instructions on a word.
func engines() []board.Engine {
	largest := func(n float64, why string) board.Num {
		return board.Num{Value: n, Unit: "B", Source: why, Confidence: "H"}
	}
	return []board.Engine{
		{Mode: program.Bulk, MaxBytes: largest(program.MaxBytes, "largest access of this suite, a run of loads or stores"),
			Read: &board.Command{}, Write: &board.Command{}},
		{Mode: program.Atomic, MaxBytes: largest(8, "largest atomic instruction in use"),
			Read: &board.Command{}, Write: &board.Command{}, Add: &board.Command{}, TestSet: &board.Command{}},
	}
}
