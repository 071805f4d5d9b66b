package host

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"nicprof/board"
	"nicprof/program"
)

// plateauOf is a plateau of a made curve: up to bytes, ns.
type plateauOf struct {
	bytes int64
	ns    float64
}

// made is the curve of caches of those sizes. A lap over more than a cache holds
// finds next to nothing in it (the line needed next is the one longest unused),
// so that the curve rises soon after each size.
func made(most int64, steps ...plateauOf) []point {
	var points []point
	for _, n := range curveSizes(most) {
		i := 0
		for i < len(steps)-1 && n > steps[i].bytes {
			i++
		}
		ns := steps[i].ns
		if i > 0 && n < steps[i-1].bytes*3/2 {
			ns = math.Sqrt(ns * steps[i-1].ns)
		}
		points = append(points, point{n, ns})
	}
	return points
}

func TestLevelsOfACurve(t *testing.T) {
	l1 := cache{Level: 1, Bytes: 48 << 10, Line: 64, Ways: 12, SharedBy: 1, From: "test"}
	l2 := cache{Level: 2, Bytes: 1 << 20, Line: 64, Ways: 8, SharedBy: 1, From: "test"}
	l3 := func(bytes int64) cache { return cache{Level: 3, Bytes: bytes, Line: 64, SharedBy: 8, From: "test"} }
	for name, c := range map[string]struct {
		reported []cache
		points   []point
		want     string
		bytes    []int64
	}{
		"as reported": {[]cache{l1, l2, l3(32 << 20)},
			made(256<<20, plateauOf{48 << 10, 1}, plateauOf{1 << 20, 4}, plateauOf{32 << 20, 15}, plateauOf{1 << 40, 100}),
			"l1 l2 llc dram", []int64{48 << 10, 1 << 20, 32 << 20, 0}},
		"a guest's share of a large last level": {[]cache{l1, l2, l3(508 << 20)},
			made(256<<20, plateauOf{48 << 10, 1}, plateauOf{1 << 20, 4}, plateauOf{7 << 20, 15}, plateauOf{1 << 40, 200}),
			"l1 l2 llc dram", []int64{48 << 10, 1 << 20, 8 << 20, 0}},
		"a last level no faster than the DRAM": {[]cache{l1, l2, l3(32 << 20)},
			made(256<<20, plateauOf{48 << 10, 1}, plateauOf{1 << 20, 4}, plateauOf{32 << 20, 90}, plateauOf{1 << 40, 100}),
			"l1 l2 llc-dram", []int64{48 << 10, 1 << 20, 0}},
		"a second level that is not there": {[]cache{l1, l2, l3(32 << 20)},
			made(256<<20, plateauOf{48 << 10, 1}, plateauOf{32 << 20, 15}, plateauOf{1 << 40, 100}),
			"l1 l2-llc dram", []int64{48 << 10, 32 << 20, 0}},
		"one cache": {[]cache{l1},
			made(64<<20, plateauOf{48 << 10, 1}, plateauOf{1 << 40, 100}),
			"l1 dram", []int64{48 << 10, 0}},
	} {
		levels, err := levelsOf(c.reported, c.points)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i, l := range levels {
			got = append(got, l.Name)
			if i < len(c.bytes) && (l.Bytes > c.bytes[i] || 2*l.Bytes < c.bytes[i]) {
				t.Errorf("%s: %s of %s, expected about %s", name, l.Name, sizeText(l.Bytes), sizeText(c.bytes[i]))
			}
			if strings.Contains(l.Name, "-") && !strings.Contains(l.Note, "cannot be told apart") {
				t.Errorf("%s: %s says only %q", name, l.Name, l.Note)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: levels %v, expected %s", name, got, c.want)
		}
	}
	if _, err := levelsOf([]cache{l1}, made(16<<10, plateauOf{1 << 40, 1})); err == nil {
		t.Error("a curve of two sets told levels")
	}
}

func TestDRAMSetsAreBeyondTheCachesOrLabelled(t *testing.T) {
	last := func(share, reported int64) []level {
		return []level{{Name: "llc", Bytes: share, Reported: reported}, {Name: "dram"}}
	}
	for name, c := range map[string]struct {
		levels    []level
		available int64
		want      int64
		note      string
	}{
		"four times the last level": {last(32<<20, 32<<20), 1 << 40, 256 << 20, ""},
		"a last level of a host":    {last(8<<20, 508<<20), 1 << 40, 512 << 20, "not four times the 508 MiB reported"},
		"a small sandbox":           {last(32<<20, 32<<20), 512 << 20, 64 << 20, "bounds the working set to 32 MiB"},
	} {
		bytes, note := dramBytes(c.levels, c.available)
		if bytes != c.want || !strings.Contains(note, c.note) || (note == "") != (c.note == "") {
			t.Errorf("%s: %s, %q; expected %s, %q", name, sizeText(bytes), note, sizeText(c.want), c.note)
		}
	}
}

func TestSysfsCaches(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s + "\n")} }
	root := fstest.MapFS{}
	for index, f := range map[string]map[string]string{
		"index0": {"level": "1", "type": "Data", "size": "48K", "coherency_line_size": "64", "ways_of_associativity": "12", "shared_cpu_list": "2,18"},
		"index1": {"level": "1", "type": "Instruction", "size": "32K", "shared_cpu_list": "2,18"},
		"index3": {"level": "3", "type": "Unified", "size": "32M", "coherency_line_size": "64", "shared_cpu_list": "0-7,16-23"},
		"index2": {"level": "2", "type": "Unified", "size": "1024K", "coherency_line_size": "64", "ways_of_associativity": "8", "shared_cpu_list": "2,18"},
		"index4": {"level": "4", "type": "Unified", "size": "rubbish"},
	} {
		for name, text := range f {
			root["sys/devices/system/cpu/cpu2/cache/"+index+"/"+name] = file(text)
		}
	}
	got := sysfsCaches(root, 2, []int{2, 3, 18, 40})
	want := []cache{
		{1, 48 << 10, 64, 12, 2, "sysfs"},
		{2, 1 << 20, 64, 8, 2, "sysfs"},
		{3, 32 << 20, 64, 0, 3, "sysfs"},
	}
	if len(got) != len(want) {
		t.Fatalf("%+v, expected %+v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%+v, expected %+v", got[i], want[i])
		}
	}
	if found := sysfsCaches(root, 7, nil); found != nil {
		t.Errorf("a processor without a cache directory has %+v", found)
	}
}

func TestCPUIDCaches(t *testing.T) {
	// Leaf 4 of a processor with 48 KiB of 12 ways, an instruction cache, 2 MiB
	// of 16 and 30 MiB of 12, shared by up to 2, 2 and 32 logical processors.
	intel := map[[2]uint32]leaf{
		{4, 0}: {1 | 1<<5 | 1<<14, 11<<22 | 63, 63, 0},
		{4, 1}: {2 | 1<<5 | 1<<14, 7<<22 | 63, 63, 0},
		{4, 2}: {3 | 2<<5 | 1<<14, 15<<22 | 63, 2047, 0},
		{4, 3}: {3 | 3<<5 | 31<<14, 11<<22 | 63, 40959, 0},
	}
	// AMD's older leaves, as seen in a virtual machine.
	old := map[[2]uint32]leaf{
		{0x80000005, 0}: {0, 0, 48<<24 | 12<<16 | 64, 0},
		{0x80000006, 0}: {0, 0, 1024<<16 | 6<<12 | 64, 1016<<18 | 9<<12 | 64},
	}
	for name, c := range map[string]struct {
		leaves map[[2]uint32]leaf
		want   []cache
	}{
		"leaf 4": {intel, []cache{
			{1, 48 << 10, 64, 12, 2, "cpuid leaf 0x4"}, {2, 2 << 20, 64, 16, 2, "cpuid leaf 0x4"}, {3, 30 << 20, 64, 12, 4, "cpuid leaf 0x4"}}},
		"older leaves": {old, []cache{
			{1, 48 << 10, 64, 12, 1, "cpuid leaf 0x80000005"}, {2, 1 << 20, 64, 8, 1, "cpuid leaf 0x80000006"}, {3, 508 << 20, 64, 0, 4, "cpuid leaf 0x80000006"}}},
		"none": {nil, nil},
	} {
		got := cpuidCaches(func(number, sub uint32) leaf { return c.leaves[[2]uint32{number, sub}] }, 4)
		if len(got) != len(c.want) {
			t.Errorf("%s: %+v, expected %+v", name, got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: %+v, expected %+v", name, got[i], c.want[i])
			}
		}
	}
}

func FuzzSizesAndLists(f *testing.F) {
	f.Add("48K")
	f.Add("0-3,8")
	f.Add("-1-5,9999999999K")
	f.Fuzz(func(t *testing.T, s string) {
		if n, ok := cacheSize(s); ok && n <= 0 {
			t.Errorf("%q: %d", s, n)
		}
		for _, cpu := range cpuList(s) {
			if cpu < 0 || cpu >= 1<<16 {
				t.Errorf("%q: %d", s, cpu)
			}
		}
	})
}

// What was found once is the same board again; what is torn or of another
// machine is not used.
func TestFindingsAreKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "levels.json")
	for name, text := range map[string]string{
		"torn": `{"version": 1, "levels": [`, "other version": `{"version": 99, "levels": [{}], "dram_bytes": 99999999}`, "empty": "",
	} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if f, ok := readFinding(file); ok {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if _, ok := readFinding(filepath.Join(t.TempDir(), "absent")); ok {
		t.Error("an absent file was read")
	}
}

// The description of any finding is a board on which the default programs pass.
func TestDescribedBoardsAreSound(t *testing.T) {
	template, err := board.Load("host")
	if err != nil {
		t.Fatal(err)
	}
	for name, levels := range map[string][]level{
		"four":   {{Name: "l1", Bytes: 48 << 10, Reported: 48 << 10, Line: 64, SharedBy: 1, From: "x"}, {Name: "l2", Bytes: 1 << 20, Reported: 1 << 20, Line: 64, SharedBy: 2, From: "x"}, {Name: "llc", Bytes: 4 << 20, Reported: 508 << 20, Line: 64, SharedBy: 4, From: "x"}, {Name: "dram", Line: 64, From: "measured"}},
		"merged": {{Name: "l1", Bytes: 32 << 10, Line: 128, SharedBy: 1, From: "x"}, {Name: "l2-dram", Line: 64, From: "measured", Note: "merged"}},
		"one":    {{Name: "l1-dram", Line: 64, From: "measured"}},
	} {
		for _, cpus := range [][]int{{0}, {0, 1, 2, 3}} {
			b := describe(template, cpus, finding{Levels: levels, DRAM: 64 << 20})
			for i := range b.Memories {
				for _, a := range []program.Access{
					{Memory: b.Memories[i].Name, Op: program.Read, Mode: program.Bulk, Bytes: 64, PerPacket: 1},
					{Memory: b.Memories[i].Name, Op: program.Add, Mode: program.Atomic, Bytes: 8, PerPacket: 1},
				} {
					p := program.Program{Accesses: []program.Access{a}, Locks: []program.Lock{{Name: "l", Elements: 64, Idiom: program.Mutex}}}
					if err := b.Check(p, len(cpus), 1); err != nil {
						t.Errorf("%s, %d processors, %s: %v", name, len(cpus), a, err)
					}
					r := b.Resolve(p).Accesses[0]
					if set := r.Span * r.Stride; set > b.Memories[i].Bytes/2 || set < b.Memories[i].Bytes/4 {
						t.Errorf("%s: the default working set of %s is %s of %s", name, a, sizeText(set), sizeText(b.Memories[i].Bytes))
					}
				}
			}
			if b.Check(program.Program{}, len(cpus)+1, 0) == nil {
				t.Errorf("%s: more cores than processors passed", name)
			}
			if len(template.Memories) != 0 || template.Cores.Value != 1 {
				t.Fatal("the template was changed")
			}
		}
	}
}
