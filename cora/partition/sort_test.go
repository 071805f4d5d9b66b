package partition

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Volumes of all kinds come in falling order, equal ones by rising index: few and
// many, spread over many powers of ten or closer than the upper digits tell.
func TestByFallingValue(t *testing.T) {
	var s sorter
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 3000).Draw(t, "n")
		spread := rapid.SampledFrom([]float64{0, 1e-15, 1e-9, 1e-5, 1, 30}).Draw(t, "spread")
		kinds := rapid.SampledFrom([]int{1, 2, 50, 1 << 30}).Draw(t, "kinds")
		r := rapid.Uint64().Draw(t, "seed")
		v := make([]float64, n)
		for i := range v {
			r = r*6364136223846793005 + 1442695040888963407
			x := float64(int(r>>33)%kinds) / float64(min(kinds, 1<<31))
			v[i] = math.Exp(spread * x)
			if r>>60 == 0 {
				v[i] = 0
			}
		}
		order, sorted := s.byFallingValue(v)
		want := make([]int32, n)
		for i := range want {
			want[i] = int32(i)
		}
		slices.SortStableFunc(want, func(i, j int32) int {
			switch {
			case v[i] > v[j]:
				return -1
			case v[i] < v[j]:
				return 1
			}
			return 0
		})
		if !slices.Equal(order, want) {
			t.Fatalf("order %v of %v", order, v)
		}
		for i, j := range order {
			if sorted[i] != v[j] {
				t.Fatalf("value %d is %v, want %v", i, sorted[i], v[j])
			}
		}
	})
}
