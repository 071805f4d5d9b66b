package microbench

import "nicprof/board"

// DryRunner says what a native measurement would do. It needs neither the board
// nor its tools.
type DryRunner interface {
	// DryRun writes what the measurements would generate into dir and returns
	// the lines of a shell script: their commands, and comments.
	DryRun(workloads []Workload, dir string) ([]string, error)
}

// Title names a workload for people: its key in a plan, or its program.
func (w *Workload) Title() string {
	if w.Key != "" {
		return w.Key
	}
	return w.Program.Name
}

var dryRunners = map[string]func(*board.Board) (DryRunner, error){}

// RegisterDryRun makes the dry run of a class known. It is called from the init
// function of a driver's package.
func RegisterDryRun(class string, f func(*board.Board) (DryRunner, error)) { dryRunners[class] = f }

// OpenDryRun returns the dry run of a board's native backend, nil when its class
// generates and runs nothing that could be shown.
func OpenDryRun(b *board.Board) (DryRunner, error) {
	f := dryRunners[b.Class]
	if f == nil {
		return nil, nil
	}
	return f(b)
}
