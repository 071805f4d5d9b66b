package profile

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"nicprof/internal/fault"
	"nicprof/microbench"
)

func sample() *microbench.Sample {
	return &microbench.Sample{
		Board: "nfp", Backend: "emulated", Seed: 1, Cores: 54, Mpps: 15,
		Profile: &microbench.Profile{DurationNS: 1_000_000, Packets: 15_000, Stacks: []microbench.Stack{
			{Frames: []string{"count-min", "emem read", "emem", "bulk engine", "bank 0"}, Packets: 75_000, BusyNS: 450_000, WaitNS: 9_000_000},
			{Frames: []string{"count-min", "emem read", "emem", "bulk engine", "bank 1"}, Packets: 75_000, BusyNS: 440_000, WaitNS: 8_000_000},
			{Frames: []string{"count-min", "emem write", "emem", "bulk engine", "bank 1"}, Packets: 10, BusyNS: 7, WaitNS: 0},
			{Frames: []string{"count-min", "microengine"}, Packets: 15_000, BusyNS: 20_000_000, WaitNS: 500_000},
		}},
	}
}

func write(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "p.pb.gz")
	if err := Write(path, sample()); err != nil {
		t.Fatal(err)
	}
	return path
}

// What was measured can be read back from the file: values by type, stacks
// with the leaf first, one function a frame name.
func TestReadBack(t *testing.T) {
	data, err := os.ReadFile(write(t))
	if err != nil {
		t.Fatal(err)
	}
	p, err := profile.ParseData(data)
	if err != nil {
		t.Fatal(err)
	}
	var types []string
	for _, st := range p.SampleType {
		types = append(types, st.Type+"/"+st.Unit)
	}
	if want := []string{"packets/count", "busy/nanoseconds", "wait/nanoseconds"}; !slices.Equal(types, want) {
		t.Errorf("sample types %v, want %v", types, want)
	}
	if p.DurationNanos != 1_000_000 || p.DefaultSampleType != Busy || p.TimeNanos != 0 {
		t.Errorf("duration %d, default %q, time %d", p.DurationNanos, p.DefaultSampleType, p.TimeNanos)
	}
	want := sample().Profile
	if len(p.Sample) != len(want.Stacks) {
		t.Fatalf("%d samples, want %d", len(p.Sample), len(want.Stacks))
	}
	for i, s := range p.Sample {
		var frames []string
		for _, l := range s.Location {
			frames = append([]string{l.Line[0].Function.Name}, frames...)
		}
		st := want.Stacks[i]
		if !slices.Equal(frames, st.Frames) || !slices.Equal(s.Value, []int64{st.Packets, st.BusyNS, st.WaitNS}) {
			t.Errorf("sample %d: %v %v, want %+v", i, frames, s.Value, st)
		}
	}
	if len(p.Function) != 8 {
		t.Errorf("%d functions, want one for each of the 8 names", len(p.Function))
	}
}

func TestSameSampleSameBytes(t *testing.T) {
	a, err := os.ReadFile(write(t))
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(write(t))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a, b) {
		t.Error("two files of one sample differ")
	}
}

// The tool that users have reads it.
func TestGoToolPprof(t *testing.T) {
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go command in PATH")
	}
	out, err := exec.Command(goTool, "tool", "pprof", "-top", "-sample_index="+Wait, write(t)).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Type: wait", "bank 0", "17500us"} { // in all: both banks 17 ms, the microengine 0.5
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
}

func TestNoProfile(t *testing.T) {
	s := sample()
	s.Profile = nil
	if _, err := Convert(s); fault.KindOf(err) != fault.Missing {
		t.Errorf("without a profile: %v", err)
	}
}

func TestCannotWrite(t *testing.T) {
	if err := Write(filepath.Join(t.TempDir(), "no", "such", "dir", "p.pb.gz"), sample()); fault.KindOf(err) != fault.Input {
		t.Errorf("got %v, want an input fault", err)
	}
}
