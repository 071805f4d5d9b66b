package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"nicprof/internal/table"
)

// note tells the user something on standard error, unless --quiet.
func (a *app) note(format string, args ...any) {
	if !a.quiet {
		fmt.Fprintf(a.err, format+"\n", args...)
	}
}

// mostNotes is how many notes are printed at once.
const mostNotes = 10

// notes prints the first texts as notes.
func (a *app) notes(texts []string) {
	for _, text := range texts[:min(len(texts), mostNotes)] {
		a.note("note: %s", text)
	}
	if more := len(texts) - mostNotes; more > 0 {
		a.note("note: %d more notes; --json prints all", more)
	}
}

// printf prints a line of data for people.
func (a *app) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(a.out, format+"\n", args...)
	return err
}

// print prints tables with a blank line between them.
func (a *app) print(tables ...*table.Table) error {
	for i, t := range tables {
		if i > 0 {
			if _, err := io.WriteString(a.out, "\n"); err != nil {
				return err
			}
		}
		draw := func() error { return t.Text(a.out, table.Colors(a.out, a.getenv)) }
		if a.markdown {
			draw = func() error { return t.Markdown(a.out) }
		}
		if err := draw(); err != nil {
			return err
		}
	}
	return nil
}

// document prints v as the one JSON document of --json.
func (a *app) document(v any) error {
	e := json.NewEncoder(a.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// list returns a list that JSON prints as [] rather than null.
func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// redraw is the shortest time between two bars.
const redraw = 100 * time.Millisecond

// progress shows how far a verb is: a line a tenth, or a bar on a terminal.
type progress struct {
	app      *app
	what     string
	terminal bool
	started  time.Time
	drawn    time.Time
	tenth    int
}

// progress returns a display of what is being done; call end when it is done.
func (a *app) progress(what string) *progress {
	f, ok := a.err.(*os.File)
	return &progress{
		app: a, what: what, started: time.Now(),
		terminal: ok && term.IsTerminal(int(f.Fd())) && a.getenv("TERM") != "dumb",
	}
}

// count shows done of total and how long the rest will take by the pace so far.
func (p *progress) count(done, total int) {
	elapsed := time.Since(p.started)
	var left time.Duration
	if done > 0 {
		left = elapsed / time.Duration(done) * time.Duration(total-done)
	}
	p.show(done, total, left)
}

// show shows done of total; left is how long the rest will take, 0 when that is
// not known.
func (p *progress) show(done, total int, left time.Duration) {
	if p.app.quiet || total == 0 {
		return
	}
	const cells = 30
	percent := 100 * done / total
	ending := ""
	if left > 0 {
		ending = ", " + left.Round(time.Second).String() + " left"
	}
	if !p.terminal {
		if tenth := 10 * done / total; tenth > p.tenth {
			p.tenth = tenth
			p.app.note("%s: %d of %d (%d %%)%s", p.what, done, total, percent, ending)
		}
		return
	}
	if time.Since(p.drawn) < redraw && done < total {
		return
	}
	p.drawn = time.Now()
	full := cells * done / total
	const erase = "\r\x1b[K"
	fmt.Fprintf(p.app.err, "%s%-10s [%s%s] %d/%d %d %%%s", erase, p.what, strings.Repeat("=", full), strings.Repeat(" ", cells-full), done, total, percent, ending)
}

// end leaves the line that the bar was drawn on.
func (p *progress) end() {
	if p.terminal && !p.drawn.IsZero() {
		fmt.Fprintln(p.app.err)
	}
}
