package microbench

import (
	"maps"
	"slices"
	"strings"

	"nicprof/board"
	"nicprof/internal/fault"
)

// Backends of a driver.
const (
	Emulated = "emulated" // the mechanism, simulated
	Native   = "native"   // the board in this machine
	Remote   = "remote"   // the board in another machine, through its agent
)

// Backends lists the backends in the order messages print them.
var Backends = []string{Emulated, Native, Remote}

// Factory makes the driver of a board for Emulated or Native. It returns a
// fault.Missing error for a backend that the class does not have, or whose
// card or tools are absent.
type Factory func(b *board.Board, backend string) (Driver, error)

// Registry maps a board class to its driver.
type Registry struct{ classes map[string]Factory }

var registry Registry

// Register makes a class of boards known. It is called from the init function
// of a driver's package; a class registered twice is a programming error and
// panics.
func Register(class string, f Factory) { registry.Register(class, f) }

// Open returns the driver of a board, as Registry.Open does, from the drivers
// linked into this program.
func Open(b *board.Board, backend string) (Driver, error) { return registry.Open(b, backend) }

// Classes returns the classes of boards that this program drives, sorted.
func Classes() []string { return registry.Classes() }

// Register adds a class; see the function of that name.
func (r *Registry) Register(class string, f Factory) {
	if _, twice := r.classes[class]; twice {
		panic("microbench: class " + class + " registered twice")
	}
	if r.classes == nil {
		r.classes = map[string]Factory{}
	}
	r.classes[class] = f
}

// Classes returns the classes registered, sorted.
func (r *Registry) Classes() []string { return slices.Sorted(maps.Keys(r.classes)) }

// Open returns the driver of a board. The empty backend means native for a
// host and its interfaces, and emulated for the others. An unknown backend is an
// input fault, and so is remote, which package remote opens for a machine that
// it is given; a class without a driver, or a backend whose card or tools are
// absent, a missing one that says what to install.
func (r *Registry) Open(b *board.Board, backend string) (Driver, error) {
	backend = DefaultBackend(b, backend)
	if !slices.Contains(Backends, backend) {
		return nil, fault.Inputf("backend %q is unknown; expected one of %s", backend, strings.Join(Backends, ", "))
	}
	if backend == Remote {
		return nil, fault.Inputf("backend %s needs the machine that holds the board; give its address with --host USER@ADDR", backend)
	}
	if why := noHardware[b.Class]; backend == Native && why != "" {
		return nil, fault.Missingf("board %s cannot be measured natively, only emulated: %s", b.Name, why)
	}
	f := r.classes[b.Class]
	if f == nil {
		return nil, fault.Missingf("no driver for board %s of class %q; this program drives %s",
			b.Name, b.Class, strings.Join(r.Classes(), ", "))
	}
	if backend == Native {
		if missing := missingTools(b.Class); len(missing) > 0 {
			return nil, fault.Missingf("board %s cannot be measured natively here: %s; or use --backend emulated",
				b.Name, describeTools(missing))
		}
	}
	return f(b, backend)
}

// DefaultBackend returns backend, or the board's own when it is empty.
func DefaultBackend(b *board.Board, backend string) string {
	switch {
	case backend != "":
		return backend
	case b.Class == "host" || b.Class == "netif":
		return Native
	}
	return Emulated
}
