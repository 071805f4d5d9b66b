package source

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestMessage(t *testing.T) {
	for name, c := range map[string]struct {
		m    Message
		want string
	}{
		"place unknown":      {Message{Msg: "no main"}, "no main"},
		"without column":     {Message{Pos: Pos{"a.p4", 3, 0}, Msg: "bad", Text: "x y"}, "a.p4:3: bad\n    x y"},
		"tab before":         {Message{Pos: Pos{"a.p4", 3, 3}, Msg: "bad", Text: "\tx y"}, "a.p4:3:3: bad\n     x y\n      ^"},
		"wide characters":    {Message{Pos: Pos{"a.p4", 1, 4}, Msg: "bad", Text: "éü"}, "a.p4:1:4: bad\n    éü\n     ^"},
		"behind the end":     {Message{Pos: Pos{"a.p4", 1, 3}, Msg: "bad", Text: "ab"}, "a.p4:1:3: bad\n    ab\n      ^"},
		"beyond the end":     {Message{Pos: Pos{"a.p4", 1, 9}, Msg: "bad", Text: "ab"}, "a.p4:1:9: bad\n    ab"},
		"notes":              {Message{Pos: Pos{"a.p4", 1, 1}, Msg: "bad", Text: "a", Notes: []string{"from b.p4:2"}}, "a.p4:1:1: bad\n    a\n    ^\n    from b.p4:2"},
		"what is not a text": {Message{Pos: Pos{"a.p4", 1, 2}, Msg: "bad", Text: "\x1b[31m\xff"}, "a.p4:1:2: bad\n    .[31m.\n     ^"},
	} {
		if got := c.m.Error(); got != c.want {
			t.Errorf("%s:\n%q, want\n%q", name, got, c.want)
		}
	}
}

// TestExcerptShowsThePlace: whatever the line, what is printed is short, can be
// printed, and the caret is under the character at the column.
func TestExcerptShowsThePlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching("[a-zé]{1,9}"), 1, 80).Draw(t, "words")
		text := strings.Join(words, " ")
		at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
		for !utf8.RuneStart(text[at]) {
			at--
		}
		line, caret := excerpt(text, at)
		want, _ := utf8.DecodeRuneInString(text[at:])
		if got := []rune(line); len(got) > maxExcerpt+3 || caret < 0 || caret >= len(got) || got[caret] != want {
			t.Fatalf("%q, caret %d: want %q", line, caret, want)
		}
	})
}
