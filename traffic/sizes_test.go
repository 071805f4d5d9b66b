package traffic

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nicprof/internal/fault"
)

// Means of the published distributions, computed apart from this code, in
// bytes: imix (7·64+4·594+1518)/12; the others by trapezoids.
func TestNamedSizes(t *testing.T) {
	want := map[string]float64{"imix": 4342.0 / 12, "imix-csit": 353.8333, "facebook": 120420.75, "websearch": 1711250, "alistorage": 40869.8}
	if len(want) != len(SizeNames()) {
		t.Errorf("%v, want %d of them", SizeNames(), len(want))
	}
	for _, name := range SizeNames() {
		s, err := NamedSizes(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Check().Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := s.Mean(); math.Abs(got/want[name]-1) > 1e-5 {
			t.Errorf("%s: mean %v, want %v", name, got, want[name])
		}
	}
	if _, err := NamedSizes("emix"); fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), "there are imix, imix-csit, facebook") {
		t.Errorf("got %v", err)
	}
}

// A caller may change what it got without changing what the next one gets.
func TestNamedSizesAreCopies(t *testing.T) {
	a, _ := NamedSizes("imix")
	a.Bytes[0], a.P[0] = 1, 1
	if b, _ := NamedSizes("imix"); b.Bytes[0] != 64 || b.P[0] == 1 {
		t.Error("NamedSizes hands out its own table")
	}
}

func genSizes(t *rapid.T, largest float64) *Sizes {
	n := rapid.IntRange(1, 8).Draw(t, "points")
	s := &Sizes{Linear: rapid.Bool().Draw(t, "linear")}
	for range n {
		s.Bytes = append(s.Bytes, math.Round(rapid.Float64Range(0, largest).Draw(t, "bytes")))
		s.P = append(s.P, rapid.Float64Range(0, 1).Draw(t, "p"))
	}
	slices.Sort(s.Bytes)
	slices.Sort(s.P)
	s.P[n-1] = 1
	if s.Mean() == 0 {
		return &Sizes{Bytes: []float64{1}, P: []float64{1}}
	}
	return s
}

// below is the distribution function, from the definition.
func below(s *Sizes, x float64) float64 {
	p := 0.0
	s.parts(func(a, b, mass float64) {
		switch {
		case b <= x:
			p += mass
		case a < x:
			p += mass * (x - a) / (b - a)
		}
	})
	return p
}

// Draws follow the distribution: their mean, and the part of them below each
// point, are within five standard errors.
func TestSizesDraw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := genSizes(t, 9000)
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		const n = 4000
		sum, squares := 0.0, 0.0
		under := make([]float64, len(s.Bytes))
		for range n {
			x := s.Draw(r)
			sum += x
			squares += x * x
			for i, b := range s.Bytes {
				if x <= b {
					under[i]++
				}
			}
		}
		mean := sum / n
		se := math.Sqrt(max(squares/n-mean*mean, 0)/n) + s.Max()/n
		if math.Abs(mean-s.Mean()) > 6*se {
			t.Fatalf("mean of draws %v, of the distribution %v, standard error %v", mean, s.Mean(), se)
		}
		for i, b := range s.Bytes {
			p := below(s, b)
			if se := math.Sqrt(p*(1-p)/n) + 1.0/n; math.Abs(under[i]/n-p) > 6*se {
				t.Fatalf("%v of draws up to %v B, want %v", under[i]/n, b, p)
			}
		}
	})
}

// Packets gives what cutting messages one by one gives.
func TestPackets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := genSizes(t, 20_000)
		cut := s.Packets()
		if err := cut.Check().Err(); err != nil {
			t.Fatalf("%+v: %v", cut, err)
		}
		if cut.Max() > PayloadBytes+HeaderBytes || cut.Bytes[0] < MinPacketBytes {
			t.Fatalf("frames of %v..%v B", cut.Bytes[0], cut.Max())
		}
		// Integrate over the quantiles of the message sizes.
		const steps = 2000
		packets, bytes := 0.0, 0.0
		under := make([]float64, len(cut.Bytes))
		count := func(frame, weight float64) {
			packets += weight
			bytes += frame * weight
			for i, b := range cut.Bytes {
				if frame <= b+1e-9 {
					under[i] += weight
				}
			}
		}
		s.parts(func(a, b, p float64) {
			n := max(steps, int(p*steps)) // a rare part may hold all that is not empty
			for i := range n {
				message := a + (b-a)*(float64(i)+0.5)/float64(n)
				if message == 0 {
					continue
				}
				full := math.Ceil(message/PayloadBytes) - 1
				if full > 0 {
					count(PayloadBytes+HeaderBytes, full*p/float64(n))
				}
				count(max(message-full*PayloadBytes+HeaderBytes, MinPacketBytes), p/float64(n))
			}
		})
		if math.Abs(cut.Mean()-bytes/packets) > 2 {
			t.Fatalf("mean frame %v, message by message %v", cut.Mean(), bytes/packets)
		}
		for i, b := range cut.Bytes {
			if i+1 < len(cut.Bytes) && cut.Bytes[i+1] == b {
				continue // a step: its foot
			}
			if math.Abs(cut.P[i]-under[i]/packets) > 1e-2 {
				t.Fatalf("%v of the frames up to %v B, message by message %v", cut.P[i], b, under[i]/packets)
			}
		}
	})
}

func TestReadSizes(t *testing.T) {
	for in, want := range map[string]Sizes{
		"0 0\n100 50\n200 100\n":                {Name: "c", Bytes: []float64{0, 100, 200}, P: []float64{0, .5, 1}},
		"# mean\n185.0\n1 0.25 # c\n\n2\t1\r\n": {Name: "c", Bytes: []float64{1, 2}, P: []float64{.25, 1}},
		"64,0.9999999999\n":                     {Name: "c", Bytes: []float64{64}, P: []float64{1}},
	} {
		got, err := ReadSizes(strings.NewReader(in), "dir/c.txt", false, 1)
		if err != nil || !slices.Equal(got.Bytes, want.Bytes) || !slices.Equal(got.P, want.P) || got.Name != want.Name {
			t.Errorf("%q: got %+v, %v", in, got, err)
		}
	}
	if s, err := ReadSizes(strings.NewReader("1 0\n2 1\n"), "c", true, 1460); err != nil || s.Bytes[1] != 2920 || !s.Linear {
		t.Errorf("unit: got %+v, %v", s, err)
	}
	for in, want := range map[string]string{
		"":                    "c.txt: 0 sizes with 0 probabilities",
		"1 2 3\n":             "c.txt:1: 3 fields; expected size and cumulative probability",
		"1 0\nx 1\n":          `c.txt:2: expected two numbers, size and cumulative probability, got "x 1"`,
		"1 0.5\n2 0.9\n":      "c.txt: the last probability is 0.9; expected 1",
		"2 0.5\n1 1\n":        "c.txt: point 2: sizes and probabilities of a cumulative distribution never fall",
		"1 0.5\n2 0.4\n3 1\n": "c.txt: point 2: sizes and probabilities of a cumulative distribution never fall",
		"-1 0.5\n2 1\n":       "c.txt: point 1: -1 is not a size",
		"NaN 0.5\n2 1\n":      "c.txt: point 1: NaN is not a size",
		"0 1\n":               "c.txt: every size is 0",
		"1 0\n2\n":            "c.txt:2: 1 fields; expected size and cumulative probability",
	} {
		_, err := ReadSizes(strings.NewReader(in), "c.txt", false, 1)
		if err == nil || !strings.HasPrefix(err.Error(), want) || fault.KindOf(err) != fault.Input {
			t.Errorf("%q: got %v, want %s", in, err, want)
		}
	}
}

// The middles of equal parts are the quantiles there, from the largest down.
func TestMiddles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := genSizes(t, 9000)
		n := rapid.IntRange(1, 50).Draw(t, "n")
		for i, w := range s.middles(n) {
			if q := s.Quantile((float64(n-1-i) + 0.5) / float64(n)); q != w {
				t.Fatalf("middle %d of %d is %v, the quantile there %v", i, n, w, q)
			}
		}
	})
}

func FuzzReadSizes(f *testing.F) {
	f.Add("185\n0 0\n100 50\n2e4 100\n", true)
	f.Add("1,.5\n1,1 # x", false)
	f.Fuzz(func(t *testing.T, in string, linear bool) {
		s, err := ReadSizes(strings.NewReader(in), "c", linear, 1)
		if err != nil {
			if fault.KindOf(err) != fault.Input {
				t.Fatal(err)
			}
			return
		}
		r := rand.New(rand.NewPCG(1, 1))
		for _, d := range []*Sizes{s, s.Packets()} {
			if err := d.Check().Err(); err != nil {
				t.Fatalf("%+v: %v", d, err)
			}
			if x := d.Draw(r); !(x >= 0 && x <= d.Max()) {
				t.Fatalf("%+v: drew %v", d, x)
			}
		}
	})
}
