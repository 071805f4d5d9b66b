// Package host drives the Linux machine that it runs on, as boards of class
// host: programs are run, packet by packet to completion, by threads pinned to
// processors, over a ring of real packets in memory. It runs just so on the Arm
// cores of a BlueField.
//
// What is measured is what these cores do with this code. Nothing is emulated,
// and nothing is corrected but the clock's own cost.
package host

import (
	"context"
	"math"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"

	"nicprof/board"
	"nicprof/internal/fault"
	"nicprof/internal/linux"
	"nicprof/microbench"
	"nicprof/program"
	"nicprof/traffic"
)

func init() { microbench.Register("host", New) }

// Driver measures on this machine, one program at a time.
type Driver struct {
	board *board.Board
	cpus  []int

	mu    sync.Mutex // one measurement at a time
	clock clock
	spin  float64 // ns of the calibrated spin at its best
	idle  float64 // share of time that an idle processor loses
	arena arena
}

// New returns the driver of this machine. A board without memories (the
// catalogue's host) gets the levels that are found here, which takes some
// seconds the first time and is remembered in the user's cache directory; one
// with memories is taken as described, as is the class soc's own description on
// its own cores.
func New(b *board.Board, backend string) (microbench.Driver, error) {
	if backend != microbench.Native {
		return nil, fault.Missingf("board %s: backend %s is not available: a host is measured on the machine itself; use --backend native", b.Name, backend)
	}
	cpus, err := linux.CPUs()
	if err != nil {
		return nil, err
	}
	d := &Driver{board: b, cpus: cpus}
	if len(b.Memories) > 0 {
		if most := int(b.Cores.Value); len(d.cpus) > most {
			d.cpus = d.cpus[:most]
		}
	} else {
		f, err := findLevels(context.Background(), cpus, findingFile())
		if err != nil {
			return nil, err
		}
		d.board = describe(b, cpus, f)
	}
	return d, nil
}

// Board returns the machine's description.
func (d *Driver) Board() *board.Board { return d.board }

// quiet keeps the runtime from disturbing a measurement: no garbage collection,
// and processors enough that no goroutine waits for a worker's. The function
// returned ends it.
func quiet() (end func()) {
	percent := debug.SetGCPercent(-1)
	limit := debug.SetMemoryLimit(math.MaxInt64)
	procs := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(max(procs, runtime.NumCPU()+2))
	return func() {
		runtime.GOMAXPROCS(procs)
		debug.SetMemoryLimit(limit)
		debug.SetGCPercent(percent)
	}
}

// check complains about what board.Check lets pass and this machine cannot run.
func (d *Driver) check(p *program.Program, o microbench.Options) error {
	if _, err := strconv.Atoi(p.Base); err == nil {
		return fault.Inputf("base %s: a base of so many cycles exists in emulation only; on a host use base %s with --stateless", p.Base, d.board.Bases[0].Name)
	}
	if o.Cores > len(d.cpus) {
		return fault.Inputf("%d cores: %d processors are in the affinity mask, and each thread needs one of its own", o.Cores, len(d.cpus))
	}
	each := func(where string, a *program.Access) error {
		if a.Mode == program.Atomic && a.Bytes >= 8 && a.Stride%8 != 0 {
			return fault.Inputf("%s: atomic accesses of %d B with elements %d B apart are not aligned to 8 B; use a stride that is a multiple of 8", where, a.Bytes, a.Stride)
		}
		return nil
	}
	for i := range p.Accesses {
		if err := each("accesses["+strconv.Itoa(i)+"]", &p.Accesses[i]); err != nil {
			return err
		}
	}
	for i := range p.Locks {
		for j := range p.Locks[i].Section {
			if err := each("locks["+strconv.Itoa(i)+"].section["+strconv.Itoa(j)+"]", &p.Locks[i].Section[j]); err != nil {
				return err
			}
		}
	}
	return nil
}

// calibrate finds out the clock's rate and cost and what an idle processor loses.
func (d *Driver) calibrate() error {
	unpin, err := linux.Pin(d.cpus[0])
	if err != nil {
		return err
	}
	defer unpin()
	if d.clock.nsPerTick == 0 {
		d.clock = calibrate()
		d.idle = 1
	}
	d.idle = min(d.idle, idle(d.clock))
	return nil
}

// Measure runs p under t on pinned threads until enough windows of time were
// undisturbed. A machine too noisy for that is a failed check, unless
// o.AllowNoise.
func (d *Driver) Measure(ctx context.Context, p program.Program, t traffic.Traffic, o microbench.Options) (microbench.Sample, error) {
	if err := d.board.Check(p, o.Cores, o.Threads); err != nil {
		return microbench.Sample{}, err
	}
	p = d.board.Resolve(p)
	if err := d.check(&p, o); err != nil {
		return microbench.Sample{}, err
	}
	if err := ctx.Err(); err != nil {
		return microbench.Sample{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.measure(ctx, p, t, o)
}

// measure is Measure of a resolved program by who holds d.mu.
func (d *Driver) measure(ctx context.Context, p program.Program, t traffic.Traffic, o microbench.Options) (microbench.Sample, error) {
	defer quiet()()
	if d.clock.nsPerTick == 0 || d.idle > idleMost { // the first time, or not idle then
		if err := d.calibrate(); err != nil {
			return microbench.Sample{}, err
		}
	}
	m := measurement{driver: d, program: p, traffic: t, options: o, cores: o.Cores}
	if m.cores == 0 {
		m.cores = min(len(d.cpus), int(d.board.Cores.Value))
	}
	return m.run(ctx)
}
