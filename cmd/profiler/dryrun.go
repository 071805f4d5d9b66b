package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"nicprof/board"
	"nicprof/internal/atomicfile"
	"nicprof/internal/fault"
	"nicprof/microbench"
)

// scriptFile holds the commands of a dry run in its directory.
const scriptFile = "commands.sh"

// dryRunner returns what shows a board's native measurements, nil for other
// backends and for boards that no tools drive. It needs no tools.
func (t *target) dryRunner(c *cobra.Command) (*board.Board, microbench.DryRunner, error) {
	if t.backend != microbench.Native {
		return nil, nil, nil
	}
	b, err := loadBoard(c, t.board)
	if err != nil {
		return nil, nil, err
	}
	d, err := microbench.OpenDryRun(b)
	return b, d, err
}

// showDryRun writes what measuring the workloads would generate into an empty
// directory and prints the commands that it would run.
func (a *app) showDryRun(b *board.Board, d microbench.DryRunner, workloads []microbench.Workload, dir string) error {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return fault.Inputf("%s is not empty; choose another directory with --out", dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.Inputf("the directory of the dry run: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fault.Inputf("the directory of the dry run: %w", err)
	}
	lines, err := d.DryRun(workloads, dir)
	if err != nil {
		return err
	}
	script := strings.Join(lines, "\n")
	if err := atomicfile.Write(filepath.Join(dir, scriptFile), []byte(script+"\n")); err != nil {
		return fault.Inputf("the commands of the dry run: %w", err)
	}
	a.note("nothing was run; sources, packets and %s are in %s", scriptFile, dir)
	if a.json {
		return a.document(map[string]any{
			"board": b.Name, "backend": microbench.Native, "dir": dir, "workloads": len(workloads), "commands": lines,
		})
	}
	return a.printf("%s", script)
}
