package kernel

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// arrays returns as many arrays of n bytes as an operation has, each amid 64 B
// that no kernel may touch.
func arrays(t interface {
	Fatal(...any)
	Cleanup(func())
}, op Op, n int) (guarded, inner [][]byte) {
	for range op.Arrays() {
		mem := pages(t, n+128)
		for i := range mem {
			mem[i] = 0xa5
		}
		guarded, inner = append(guarded, mem), append(inner, mem[64:64+n:64+n])
	}
	return guarded, inner
}

// TestStreamsDoTheirWork: every kernel of this processor reads all words in
// each lap (their sum is the proof), fills, copies or combines all and nothing
// beside, whatever is in memory and however long.
func TestStreamsDoTheirWork(t *testing.T) {
	for _, s := range Streams() {
		t.Run(s.Name(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				n := Block * rapid.IntRange(0, 40).Draw(t, "blocks")
				reps := rapid.Int64Range(0, 5).Draw(t, "reps")
				guarded, in := arrays(t, s.Op, n)
				values := make([][]uint64, len(in))
				for i, a := range in {
					x := rapid.Uint64().Draw(t, "content")
					for k := 0; k < n; k += 8 {
						x = x*6364136223846793005 + 1442695040888963407
						v := x
						if s.Op == Triad || s.Class == Scalar {
							v = math.Float64bits(float64(x >> 40)) // exact in any order and fused or not
						}
						binary.LittleEndian.PutUint64(a[k:], v)
						values[i] = append(values[i], v)
					}
				}
				wantSum, want := uint64(0), slices.Clone(values[0])
				if s.Op == Read {
					wantSum = lapSum(s.Class, want) * uint64(reps)
				}
				for k := range want {
					if s.Op == Read {
						break
					}
					if reps == 0 {
						break
					}
					switch s.Op {
					case Write:
						want[k] = math.Float64bits(1)
					case Copy:
						want[k] = values[1][k]
					case Triad:
						want[k] = math.Float64bits(math.Float64frombits(values[1][k]) + 3*math.Float64frombits(values[2][k]))
					}
				}
				sum, moved, err := s.Run(reps, in...)
				if err != nil {
					t.Fatal(err)
				}
				if sum != wantSum {
					t.Fatalf("sum %#x, want %#x", sum, wantSum)
				}
				if moved != reps*int64(n*len(in)) {
					t.Fatalf("%d B moved in %d laps over %d arrays of %d B", moved, reps, len(in), n)
				}
				for i, a := range in {
					if i > 0 {
						want = values[i] // sources stay
					}
					for k, w := range want {
						if got := binary.LittleEndian.Uint64(a[8*k:]); got != w {
							t.Fatalf("array %d, word %d of %d: %#x, want %#x", i, k, n/8, got, w)
						}
					}
					guard := bytes.Repeat([]byte{0xa5}, 64)
					if !bytes.Equal(guarded[i][:64], guard) || !bytes.Equal(guarded[i][64+n:], guard) {
						t.Fatalf("array %d: memory beside it was written", i)
					}
				}
			})
		})
	}
}

// lapSum is what a reading kernel of the class returns for one lap over words.
func lapSum(c Class, words []uint64) (sum uint64) {
	if c == Scalar {
		f := 0.0
		for _, w := range words {
			f += math.Float64frombits(w)
		}
		return math.Float64bits(f)
	}
	for _, w := range words {
		sum += w
	}
	return sum
}

func TestStreamsRefuse(t *testing.T) {
	s, ok := Find(Copy, Go)
	if !ok {
		t.Fatal("no copy in Go")
	}
	mem := pages(t, 8192)
	for name, c := range map[string]struct {
		reps   int64
		arrays [][]byte
	}{
		"one array":        {1, [][]byte{mem[:512]}},
		"three arrays":     {1, [][]byte{mem[:512], mem[512:1024], mem[1024:1536]}},
		"unequal arrays":   {1, [][]byte{mem[:512], mem[512:768]}},
		"odd length":       {1, [][]byte{mem[:520], mem[1024:1544]}},
		"not aligned":      {1, [][]byte{mem[:512], mem[520:1032]}},
		"negative repeats": {-1, [][]byte{mem[:512], mem[512:1024]}},
	} {
		if _, _, err := s.Run(c.reps, c.arrays...); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if _, ok := Find(Copy, "mmx"); ok {
		t.Error("a class that does not exist is found")
	}
}
