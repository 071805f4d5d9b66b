package near

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestOf(t *testing.T) {
	names := []string{"board", "bored", "base", "backend", "seed"}
	for word, want := range map[string][]string{
		"boards": {"board"}, "bord": {"board", "bored"},
		"bsae": {"base"}, "sed": {"seed"}, "backends": {"backend"}, "x": nil, "": nil,
	} {
		if got := Of(word, names); !slices.Equal(got, want) {
			t.Errorf("Of(%q) = %v, want %v", word, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"fig9", "fig7", 1}, {"ab", "ba", 2}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching("[abc]{0,8}")
		a, b, c := word.Draw(t, "a"), word.Draw(t, "b"), word.Draw(t, "c")
		d := distance(a, b)
		if d != distance(b, a) || (d == 0) != (a == b) || d > max(len(a), len(b)) || d > distance(a, c)+distance(c, b) {
			t.Fatalf("distance(%q, %q) = %d is no distance", a, b, d)
		}
	})
}
