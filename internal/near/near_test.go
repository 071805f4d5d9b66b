package near

import (
	"slices"
	"testing"
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
	}{{"", "", 0}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"abc", "abc", 0}, {"ab", "ba", 2}} {
		if got := distance(c.a, c.b); got != c.want || distance(c.b, c.a) != got {
			t.Errorf("distance(%q, %q) = %d, want %d both ways", c.a, c.b, got, c.want)
		}
	}
}
