package curves

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nicprof/internal/fault"
	"nicprof/internal/stats"
	"nicprof/microbench"
	"nicprof/program"
)

var what = map[string]string{"memory": "emem", "mode": "atomic", "bytes": "4", "span": "1"}

func with(set map[string]string, more ...string) map[string]string {
	out := map[string]string{}
	for k, v := range set {
		out[k] = v
	}
	for k := 0; k < len(more); k += 2 {
		out[more[k]] = more[k+1]
	}
	return out
}

// The published packet rates of another laboratory, as they are in its table.
func TestReadPublishedRates(t *testing.T) {
	samples, notes, err := Read("../roofline/testdata/xdp_rates.csv", with(what, "base", "xdp"))
	if err != nil || len(samples) != 34 {
		t.Fatalf("%d samples, %v", len(samples), err)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "34 point(s) of 2 curve(s)") {
		t.Errorf("notes %q", notes)
	}
	want := microbench.Sample{Index: 33, Mpps: 16.6324, Low: 16.6234, High: 16.6414, MedianMpps: 16.6324, Cores: 50}
	s := samples[33]
	a := program.Access{Memory: "emem", Op: program.Read, Mode: program.Atomic, Bytes: 4, Span: 1, PerPacket: 12}
	if s.Index != want.Index || s.Mpps != want.Mpps || s.Low != want.Low || s.High != want.High || s.MedianMpps != want.MedianMpps || s.Cores != want.Cores ||
		s.Program.Base != "xdp" || len(s.Program.Accesses) != 1 || s.Program.Accesses[0] != a ||
		s.Backend != "imported" || s.Board != "imported" || s.Status != "ok" || s.Group != microbench.GroupSingle || len(s.Warnings) > 0 {
		t.Errorf("last line: %+v", s)
	}
	keys := map[string]bool{}
	for _, s := range samples {
		if keys[s.Key] {
			t.Errorf("key %s is there twice", s.Key)
		}
		keys[s.Key] = true
		if err := s.Program.Validate(); err != nil {
			t.Errorf("%s: %v", s.Key, err)
		}
	}
}

func TestReadRawNoticesRegimes(t *testing.T) {
	s, err := ReadRaw("testdata/xdp_read4_25cores_raw.csv", with(what, "op", "read", "per_packet", "4", "cores", "25"))
	if err != nil {
		t.Fatal(err)
	}
	if s.Runs != 300 || s.DurationUS != 300e6 || math.Abs(s.Mpps-41.93) > 0.01 || s.Cores != 25 || s.Program.Accesses[0].PerPacket != 4 {
		t.Errorf("%+v", s)
	}
	if !stats.IsRegimes(s.Warnings) || !strings.Contains(s.Warnings[0], "49.77 (values 1 to 146), then 34.49 (values 147 to 300)") {
		t.Errorf("warnings %q; want the two regimes, 49.8 and 34.5 Mpps", s.Warnings)
	}
	if s.Low >= s.Mpps || s.High <= s.Mpps || s.Outliers == 0 {
		t.Errorf("interval %v to %v, %d outliers", s.Low, s.High, s.Outliers)
	}
}

func TestReadRawOfSteadyBoardIsQuiet(t *testing.T) {
	s, err := parseRaw(strings.NewReader("# source\npps\n"+strings.Repeat("20000000\n20010000\n19990000\n", 20)), "steady.csv", with(what, "op", "read", "intensity", "8"))
	if err != nil || len(s.Warnings) > 0 || s.Outliers > 0 || math.Abs(s.Mpps-20) > 1e-9 || s.MedianMpps != 20 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestSetFillsAndNeverContradicts(t *testing.T) {
	const file = "op,intensity,mpps,board\nread,4,20,\nread,8,15,nfp\n"
	samples, _, err := parse(strings.NewReader(file), "c.csv", with(what, "board", "nfp"))
	if err != nil || samples[0].Board != "nfp" || samples[1].Board != "nfp" {
		t.Errorf("board fills the empty cell and agrees with the other: %+v, %v", samples, err)
	}
	_, _, err = parse(strings.NewReader(file), "c.csv", with(what, "op", "write"))
	if fault.KindOf(err) != fault.Input || !strings.HasPrefix(err.Error(), "c.csv:2:") {
		t.Errorf("--set op=write over a column of reads: %v", err)
	}
}

func TestRepeatedPointsStayApart(t *testing.T) {
	samples, notes, err := parse(strings.NewReader("op,per_packet,mpps\nread,4,20\nread,4,20.1\n"), "c.csv", what)
	if err != nil || len(samples) != 2 || samples[0].Key == samples[1].Key || samples[0].Program.Base != "forward" {
		t.Errorf("%+v, %v", samples, err)
	}
	if len(notes) != 2 || !strings.Contains(notes[1], "without an interval") || samples[0].Low != 20 || samples[0].High != 20 {
		t.Errorf("notes %q, interval %v to %v", notes, samples[0].Low, samples[0].High)
	}
}

func TestBadCurves(t *testing.T) {
	const header = "memory,op,mode,bytes,span,intensity,mpps\n"
	for name, c := range map[string]struct {
		file string
		set  map[string]string
		want string
	}{
		"empty":                {"", nil, "c.csv: empty"},
		"comments only":        {"# nothing\n", nil, "c.csv: empty"},
		"no line":              {header, nil, "no points"},
		"unknown column":       {"memory,op,speed\n", nil, `c.csv:1: unknown column "speed"`},
		"column twice":         {"op,op\n", nil, "c.csv:1: column op is there twice"},
		"alias twice":          {"intensity,per_packet\n", nil, "intensity is there twice"},
		"missing column":       {"op,mode,mpps\nread,bulk,1\n", nil, "no column memory; add it, or give --set memory=VALUE"},
		"missing mpps":         {"op\nread\n", with(what, "intensity", "3"), "no column mpps"},
		"empty cell":           {header + "emem,read,bulk,8,,4,20\n", nil, "c.csv:2: span is empty"},
		"short line":           {"# c\n" + header + "emem,read,bulk,8,1,4,20\nemem,read\n", nil, "c.csv:4: "},
		"open quote":           {header + "emem,\"read,bulk\n", nil, "c.csv:2"},
		"number":               {header + "emem,read,bulk,8,1,4,fast\n", nil, `c.csv:2: mpps is "fast"`},
		"zero":                 {header + "emem,read,bulk,8,1,4,0\n", nil, "c.csv:2: mpps is 0"},
		"negative":             {header + "emem,read,bulk,8,1,4,-3\n", nil, "c.csv:2: mpps is -3"},
		"NaN":                  {header + "emem,read,bulk,8,1,4,NaN\n", nil, "c.csv:2: mpps"},
		"infinite":             {header + "emem,read,bulk,8,1,4,Inf\n", nil, "c.csv:2: mpps"},
		"intensity":            {header + "emem,read,bulk,8,1,-4,20\n", nil, "c.csv:2: accesses[0].per_packet"},
		"intensity NaN":        {header + "emem,read,bulk,8,1,NaN,20\n", nil, "c.csv:2: accesses[0].per_packet"},
		"intensity word":       {header + "emem,read,bulk,8,1,few,20\n", nil, `intensity is "few"`},
		"op":                   {header + "emem,fetch,bulk,8,1,4,20\n", nil, "c.csv:2: accesses[0].op"},
		"mode":                 {header + "emem,read,soft,8,1,4,20\n", nil, "c.csv:2: accesses[0].mode"},
		"add in bulk":          {header + "emem,add,bulk,8,1,4,20\n", nil, "add is atomic"},
		"bytes":                {header + "emem,read,bulk,7,1,4,20\n", nil, "c.csv:2: accesses[0].bytes"},
		"bytes 256":            {header + "emem,read,bulk,256,1,4,20\n", nil, "c.csv:2: accesses[0].bytes"},
		"bytes 0":              {header + "emem,read,bulk,0,1,4,20\n", nil, "c.csv:2: bytes"},
		"span 0":               {header + "emem,read,bulk,8,0,4,20\n", nil, `c.csv:2: span is "0"`},
		"cores":                {"cores," + header + "-2,emem,read,bulk,8,1,4,20\n", nil, `c.csv:2: cores is "-2"`},
		"half an interval":     {"low," + header + "1,emem,read,bulk,8,1,4,20\n", nil, "both columns low and high"},
		"interval elsewhere":   {"low,high," + header + "1,2,emem,read,bulk,8,1,4,20\n", nil, "c.csv:2: the interval"},
		"unknown set":          {header, map[string]string{"colour": "red"}, "--set colour: no such column"},
		"set of what measured": {header, map[string]string{"mpps": "3"}, "--set mpps: no such column"},
		"set alias twice":      {header, map[string]string{"intensity": "1", "per_packet": "1"}, "give one"},
	} {
		_, _, err := parse(strings.NewReader(c.file), "c.csv", c.set)
		if fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an input fault with %q", name, err, c.want)
		}
	}
}

func TestBadRaw(t *testing.T) {
	set := with(what, "op", "read", "intensity", "4")
	for name, c := range map[string]struct {
		file string
		set  map[string]string
		want string
	}{
		"no description": {"pps\n1\n", map[string]string{"op": "read"}, "memory is missing"},
		"unknown set":    {"pps\n1\n", with(set, "speed", "1"), "--set speed"},
		"empty":          {"", set, "empty"},
		"no sample":      {"pps\n", set, "no samples"},
		"other column":   {"rate\n1\n", set, `unknown column "rate"`},
		"number":         {"pps\n1\nmany\n", set, "r.csv:3: pps"},
		"negative":       {"pps\n-5\n", set, "r.csv:2: -5"},
		"all zero":       {"pps\n0\n0\n", set, "no packet"},
		"bad access":     {"pps\n5\n", with(set, "bytes", "3"), "bytes"},
	} {
		_, err := parseRaw(strings.NewReader(c.file), "r.csv", c.set)
		if fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an input fault with %q", name, err, c.want)
		}
	}
}

func TestNoFile(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none.csv")
	if _, _, err := Read(missing, what); fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), missing) {
		t.Errorf("Read: %v", err)
	}
	if _, err := ReadRaw(missing, what); fault.KindOf(err) != fault.Input {
		t.Errorf("ReadRaw: %v", err)
	}
	if _, _, err := Read(t.TempDir(), what); fault.KindOf(err) != fault.Input {
		t.Errorf("Read of a directory: %v", err)
	}
}

// Whatever a file holds, the reader returns valid samples or an input fault.
func FuzzRead(f *testing.F) {
	for _, path := range []string{"../roofline/testdata/xdp_rates.csv", "testdata/xdp_read4_25cores_raw.csv"} {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b), "1")
	}
	f.Add("memory,op,mode,bytes,span,intensity,mpps,low,high,cores,base,stride,board\nemem,read,bulk,8,1,4,20,19,21,5,xdp,128,nfp\n", "")
	f.Add("op,per_packet,mpps\nread,\"4\n\",1e-400\n", "9223372036854775808")
	f.Add("op,width,log2n,a,b,c,knee\nerb,128,13,0.03,0.0,0.01,23\n", "")
	f.Fuzz(func(t *testing.T, file, span string) {
		samples, _, err := parse(strings.NewReader(file), "f.csv", with(what, "span", span))
		if err != nil && fault.KindOf(err) != fault.Input {
			t.Fatalf("%v is no input fault", err)
		}
		for _, s := range samples {
			if err := s.Program.Validate(); err != nil || !(s.Mpps > 0) || math.IsInf(s.Mpps, 0) || s.Low > s.Mpps || s.High < s.Mpps || s.Cores < 0 {
				t.Fatalf("%+v, %v", s, err)
			}
		}
	})
}

func FuzzReadRaw(f *testing.F) {
	f.Add("pps\n1\n2\n")
	f.Add("# c\npps\n1e300\n1e300\n\n0x1p1023\n")
	f.Fuzz(func(t *testing.T, file string) {
		s, err := parseRaw(strings.NewReader(file), "f.csv", with(what, "op", "read", "intensity", "4"))
		if err != nil {
			if fault.KindOf(err) != fault.Input {
				t.Fatalf("%v is no input fault", err)
			}
			return
		}
		if !(s.Mpps > 0) || math.IsInf(s.High, 0) || math.IsNaN(s.Low) || s.Low > s.Mpps || s.High < s.Mpps || s.Runs < 1 {
			t.Fatalf("%+v", s)
		}
	})
}
