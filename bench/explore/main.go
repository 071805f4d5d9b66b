// Command explore runs Cora's migration protocol through every order of events
// within bounds, and shows for each of its steps what goes wrong without it:
//
//	go run ./bench/explore [-full] [-most 20000000] [-out DIR]
//
// With -full it goes through explorations that take minutes and some gigabytes
// too. With -out, DIR gets exploration.md. It exits with 1 if the protocol fails,
// or a broken one does not.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"nicprof/cora/runtime/explore"
	"nicprof/internal/atomicfile"
	"nicprof/internal/fault"
	"nicprof/internal/table"
)

func main() {
	full := flag.Bool("full", false, "the long explorations too")
	most := flag.Int("most", 20_000_000, "states after which an exploration is cut short, and counts as failed")
	out := flag.String("out", "", "directory to store exploration.md in")
	flag.Parse()
	if err := run(os.Stdout, *full, *most, *out); err != nil {
		fmt.Fprintln(os.Stderr, "explore:", err)
		os.Exit(int(max(1, fault.KindOf(err))))
	}
}

func run(w io.Writer, full bool, most int, out string) error {
	var failed []string
	held := table.New("The protocol, every order of events", "what", "entries", "packets each", "moves", "on the NIC at a time", "may go wrong", "states", "steps", "quiet", "longest way", "holds")
	for _, b := range explore.Standard(full) {
		r, err := explore.Explore(b, most)
		if err != nil {
			return err
		}
		verdict := "yes"
		if r.Failure != "" || r.Cut {
			verdict = "no: " + r.Failure
			if r.Cut {
				verdict = "cut short"
			}
			failed = append(failed, b.Name+": "+verdict+"\n"+strings.Join(r.Trace, "\n"))
		}
		fmt.Fprintf(w, "%-48s %9d states, %9d steps, %5d quiet, at most %2d steps to one: holds: %s\n", b.Name, r.States, r.Steps, r.Quiet, r.Longest, verdict)
		held.Row(b.Name, b.Entries, b.Packets, b.Moves, b.OnNIC, mishaps(b), r.States, r.Steps, r.Quiet, r.Longest, verdict)
	}
	broken := table.New("A step left out", "step", "what is left out", "when", "states until it fails", "steps of the shortest way", "what is then wrong")
	var ways strings.Builder
	for _, b := range explore.Broken() {
		r, err := explore.Explore(b, most)
		if err != nil {
			return err
		}
		if r.Failure == "" {
			failed = append(failed, fmt.Sprintf("nothing fails without %v (%s)", b.Break, b.Name))
		}
		title := b.Break.String()
		if b.Name != "" {
			title += ", " + b.Name
		}
		fmt.Fprintf(w, "broken: %-40s %9d states, %2d steps: %s\n", title, r.States, len(r.Trace), r.Failure)
		broken.Row(b.Break, b.Break.Text(), b.Name, r.States, len(r.Trace), r.Failure)
		fmt.Fprintf(&ways, "\n### %s\n\n```\n%s\n    %s\n```\n", title, strings.Join(r.Trace, "\n"), r.Failure)
	}
	if len(failed) > 0 {
		return fault.Checkf("%s", strings.Join(failed, "\n"))
	}
	if out == "" {
		return nil
	}
	return store(out, held, broken, ways.String())
}

func store(out string, held, broken *table.Table, ways string) error {
	var b bytes.Buffer
	b.WriteString("# Cora's migration protocol, explored\n\nMade by `go run ./bench/explore -full -out results/cora`; docs/runtime.md says what is checked. A quiet state is one in which nothing more happens by itself; the longest way is the most steps to one, once nothing is lost or asked for any more.\n\n")
	for _, t := range []*table.Table{held, broken} {
		if err := t.Markdown(&b); err != nil {
			return err
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "## Shortest ways to a failure\n%s", ways)
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(out, "exploration.md"), b.Bytes())
}

// mishaps lists what may go wrong in an exploration.
func mishaps(b explore.Bounds) string {
	var s []string
	for _, m := range []struct {
		n    int
		what string
	}{
		{b.Lose, "lost"}, {b.Duplicate, "doubled"}, {b.Delay, "late"}, {b.Repeat, "repeated early"},
		{b.Write, "failed write"}, {b.LosePacket, "lost packet"},
	} {
		if m.n > 0 {
			s = append(s, fmt.Sprintf("%d %s", m.n, m.what))
		}
	}
	return strings.Join(s, ", ")
}
