package traffic

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nicprof/internal/fault"
)

func near(a, b, relative float64) bool {
	return math.Abs(a-b) <= relative*math.Max(math.Abs(a), math.Abs(b))
}

func genShape(t *rapid.T) Shape {
	switch rapid.IntRange(0, 3).Draw(t, "shape") {
	case 0:
		return Shape{}
	case 1:
		return Shape{Alpha: rapid.SampledFrom([]float64{0.5, 0.9, 1, 1.1, 2}).Draw(t, "alpha")}
	case 2:
		s, err := NamedShape(rapid.SampledFrom(ShapeNames()).Draw(t, "name"))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	sizes := genSizes(t, 1e6)
	for i := range sizes.Bytes {
		sizes.Bytes[i]++ // flows have packets
	}
	return Shape{Volumes: sizes}
}

// Whatever is given holds: the volume, the largest flow, the number of groups.
// What cannot be is refused.
func TestRates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := genShape(t)
		total := rapid.Float64Range(1, 1e8).Draw(t, "total")
		groups, largest := 0, 0.0
		given := rapid.IntRange(1, 3).Draw(t, "given")
		if given&1 != 0 {
			groups = rapid.IntRange(1, 500).Draw(t, "groups")
		}
		if given&2 != 0 {
			largest = total * rapid.Float64Range(0.05, 1).Draw(t, "largest")
		}
		w, err := s.Rates(total, groups, largest)
		if err != nil {
			if fault.KindOf(err) != fault.Input {
				t.Fatal(err)
			}
			switch {
			case given == 1:
				t.Fatalf("%d groups of %v refused: %v", groups, total, err)
			case given == 2 && s.Volumes == nil && Harmonic(maxSynthetic, s.Alpha)*largest > total:
				t.Fatalf("largest %v of %v refused, though flows enough make it: %v", largest, total, err)
			}
			return
		}
		if !near(sum(w), total, 1e-9) {
			t.Fatalf("sum %v, want %v", sum(w), total)
		}
		if groups > 0 && len(w) != groups {
			t.Fatalf("%d groups, want %d", len(w), groups)
		}
		if largest > 0 && !near(w[0], largest, 1e-6) {
			t.Fatalf("largest %v, want %v", w[0], largest)
		}
		for i, x := range w {
			if x < 0 || i > 0 && x > w[i-1]*(1+1e-12) {
				t.Fatalf("not from the largest down: %v", w)
			}
		}
		if s.Volumes == nil && given != 3 && len(w) > 2 {
			if ratio := math.Pow(2, -s.Alpha); !near(w[1]/w[0], ratio, 1e-9) {
				t.Fatalf("second over first %v, want %v", w[1]/w[0], ratio)
			}
		}
	})
}

func TestRatesRefusals(t *testing.T) {
	facebook, _ := NamedShape("facebook")
	for want, f := range map[string]func() ([]float64, error){
		"whose middle quantiles are 0": func() ([]float64, error) {
			return Shape{Volumes: &Sizes{Bytes: []float64{0, 9}, P: []float64{.9, 1}}}.Rates(1, 2, 0)
		},
		"neither the number":              func() ([]float64, error) { return Shape{}.Rates(1, 0, 0) },
		"a volume of 0":                   func() ([]float64, error) { return Shape{}.Rates(0, 1, 0) },
		"a largest flow of 2":             func() ([]float64, error) { return Shape{}.Rates(1, 0, 2) },
		"a largest flow of NaN":           func() ([]float64, error) { return Shape{}.Rates(1, 0, math.NaN()) },
		"-1 flow groups":                  func() ([]float64, error) { return Shape{}.Rates(1, -1, 0) },
		"leave one of them out":           func() ([]float64, error) { return facebook.Rates(10, 5, 4) },
		"a largest flow of at least 2":    func() ([]float64, error) { return Shape{}.Rates(10, 5, 1) },
		"20000000 groups of this shape":   func() ([]float64, error) { return Shape{Alpha: 2}.Rates(10, 0, 6) },
		"exponent -1":                     func() ([]float64, error) { return Shape{Alpha: -1}.Rates(10, 5, 0) },
		"a distribution and exponent 0.5": func() ([]float64, error) { return Shape{Alpha: .5, Volumes: facebook.Volumes}.Rates(10, 5, 0) },
	} {
		if w, err := f(); err == nil || !strings.Contains(err.Error(), want) || fault.KindOf(err) != fault.Input {
			t.Errorf("got %v, %v, want %s", w, err, want)
		}
	}
	if _, err := NamedShape("caida"); err == nil || !strings.Contains(err.Error(), "there are agh2015, facebook") {
		t.Errorf("got %v", err)
	}
}

// The campus distribution against what its authors publish of the flows it was
// fitted to, not of the fit: 316,857,594,090 packets in 4,032,376,751 flows;
// the largest 1 % of them have 89.4 % of the packets, the largest 10 % 97.0 %,
// half of all flows fewer than 2 packets.
func TestAGH2015(t *testing.T) {
	s, err := NamedShape("agh2015")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Volumes.Check().Err(); err != nil {
		t.Fatal(err)
	}
	if got, want := s.Volumes.Mean(), 316857594090./4032376751; !near(got, want, .03) {
		t.Errorf("%v packets a flow, want %v", got, want)
	}
	if q := s.Volumes.Quantile(.49); q > 2 {
		t.Errorf("half of the flows have up to %v packets, want 2", q)
	}
	w := s.weights(1_000_000)
	for top, want := range map[int]float64{10_000: .8939, 100_000: .9704} {
		if got := sum(w[:top]) / sum(w); math.Abs(got-want) > .02 {
			t.Errorf("the largest %d of 1 M flows have %v of the packets, want %v", top, got, want)
		}
	}
}

// The groups of each function sum to what they are given over all classes,
// each path has its share, functions off a path have no group on it, and there
// are no more classes than groups.
func TestSynthesis(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Synthesis{PPS: rapid.Float64Range(1e3, 1e8).Draw(t, "pps"), FrameBytes: 500, Seed: rapid.Uint64().Draw(t, "seed")}
		functions := rapid.IntRange(1, 4).Draw(t, "functions")
		for range functions {
			s.Functions = append(s.Functions, Function{Name: "f", Shape: genShape(t), Groups: rapid.IntRange(1, 200).Draw(t, "groups")})
		}
		left := 1.0
		for left > 0 {
			share := rapid.Float64Range(0.01, 1).Draw(t, "share")
			if share > left || len(s.Paths) == 4 {
				share = left
			}
			left -= share
			all := rapid.Permutation([]int{0, 1, 2, 3}[:functions]).Draw(t, "order")
			s.Paths = append(s.Paths, Path{share, all[:rapid.IntRange(0, functions).Draw(t, "length")]})
		}
		v, err := s.Volumes()
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := s.Volumes(); !reflect.DeepEqual(again, v) {
			t.Fatal("the same seed gives other volumes")
		}
		most := 0
		for _, p := range s.Paths {
			most++
			for _, f := range p.Functions {
				most += v.Keys[f].N() - 1
			}
		}
		if v.Classes() > most || v.Classes() < len(s.Paths) {
			t.Fatalf("%d classes, want at most %d", v.Classes(), most)
		}
		paths := make([]float64, len(s.Paths))
		for c, p := range v.Path {
			paths[p] += v.Packets[c]
			for f := range s.Functions {
				if has := v.Group[f][c] != NoGroup; has != slices.Contains(s.Paths[p].Functions, f) {
					t.Fatalf("class %d of path %d: function %d has group %d", c, p, f, v.Group[f][c])
				}
			}
		}
		for i, p := range s.Paths {
			if !near(paths[i], p.Share*s.PPS, 1e-9) {
				t.Fatalf("path %d has %v, want %v", i, paths[i], p.Share*s.PPS)
			}
		}
		for f, g := range v.Keys {
			got := make([]float64, g.N())
			for c, i := range v.Group[f] {
				if i != NoGroup {
					got[i] += v.Packets[c]
				}
			}
			for i := range got {
				if math.Abs(got[i]-g.Packets[i]) > 1e-9*s.PPS {
					t.Fatalf("function %d: the classes of group %d have %v, want %v", f, i, got[i], g.Packets[i])
				}
			}
		}
		if !near(v.Mpps(), s.PPS/1e6, 1e-9) || !near(v.FrameBytes(), 500, 1e-9) {
			t.Fatalf("%v Mpps of %v B", v.Mpps(), v.FrameBytes())
		}
	})
}

func TestSynthesisRefusals(t *testing.T) {
	good := func() Synthesis {
		return Synthesis{PPS: 1e6, FrameBytes: 64, Functions: []Function{{Name: "nat", Groups: 10}}, Paths: []Path{{1, []int{0}}}}
	}
	for want, change := range map[string]func(*Synthesis){
		"a rate of 0 packets a second":                  func(s *Synthesis) { s.PPS = 0 },
		"frames of 20 bytes":                            func(s *Synthesis) { s.FrameBytes = 20 },
		"the shares of the 1 paths sum to 0.5":          func(s *Synthesis) { s.Paths[0].Share = .5 },
		"path 1: a share of -1":                         func(s *Synthesis) { s.Paths[0].Share = -1 },
		"path 1: function 1; expected each of 0..0":     func(s *Synthesis) { s.Paths[0].Functions[0] = 1 },
		"path 1: function 0; expected each of 0..0":     func(s *Synthesis) { s.Paths[0].Functions = []int{0, 0} },
		"nat: neither the number of flow groups nor":    func(s *Synthesis) { s.Functions[0].Groups = 0 },
		"nat: 10 groups of up to 5 packets a second":    func(s *Synthesis) { s.Functions[0].MaxPPS = 5 },
		"nat: a largest flow of 2e+06 packets a second": func(s *Synthesis) { s.Functions[0].MaxPPS = 2e6 },
	} {
		s := good()
		change(&s)
		if _, err := s.Volumes(); err == nil || !strings.Contains(err.Error(), want) || fault.KindOf(err) != fault.Input {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := good().Volumes(); err != nil {
		t.Error(err)
	}
}
