package sim

import (
	"testing"

	"pgregory.net/rapid"
)

// A number stands for its value until it is freed, and the pool is no larger
// than the most values that were in flight.
func TestPool(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p Pool[int]
		live := map[int32]int{}
		most := 0
		for v := range rapid.IntRange(1, 200).Draw(t, "steps") {
			if len(live) > 0 && rapid.Bool().Draw(t, "free") {
				for i := range live {
					delete(live, i)
					p.Free(i)
					break
				}
				continue
			}
			i := p.Put(v)
			if _, taken := live[i]; taken {
				t.Fatalf("number %d given out twice", i)
			}
			live[i] = v
			most = max(most, len(live))
		}
		for i, v := range live {
			if p.Items[i] != v {
				t.Fatalf("number %d: %d, want %d", i, p.Items[i], v)
			}
		}
		if len(p.Items) != most {
			t.Fatalf("%d items for %d in flight", len(p.Items), most)
		}
	})
}
