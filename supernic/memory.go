package supernic

import (
	"fmt"
	"math"

	"nicprof/emu/snic/vm"
	"nicprof/sim"
)

// Space is the address space of one NT for one user, in the board's memory. All
// instances of the NT that serve the user work in it, and it outlives a context
// switch: what an NT keeps there is still there when it is launched again.
type Space struct {
	User, NT int
	Pages    int // of vm.PageBytes
	Memory   *vm.Space
}

// newMemory returns the board's memory. The host keeps as much for pages that are
// swapped out.
func (s *Scenario) newMemory(seed uint64) (*vm.Memory, error) {
	f := &s.Platform.Board.FPGA.VM
	swap := func(us float64) sim.Time { return sim.Time(us * float64(sim.Microsecond)) }
	low, high := f.SwapUS.Low, f.SwapUS.High
	if high == 0 {
		low, high = f.SwapUS.Value, f.SwapUS.Value
	}
	frames := int(f.Bytes.Value) / vm.PageBytes
	return vm.New(vm.Config{Frames: frames, SwapPages: frames, SwapLow: swap(low), SwapHigh: swap(high), Seed: seed})
}

// openSpaces gives a DAG's user an address space for each of its NTs that keeps
// something in memory, unless he has one.
func (m *manager) openSpaces(t *tenant) error {
	for _, nt := range m.s.graphs[t.dag].nts {
		mb := m.s.NTs[nt].MemoryMB
		if mb == 0 || m.space(t.user, nt) != nil {
			continue
		}
		pages := int(math.Ceil(mb * 1e6 / vm.PageBytes))
		x, err := m.memory.NewSpace(fmt.Sprintf("%s of user %s", m.s.NTs[nt].Name, m.s.Users[t.user].Name), pages)
		if err == nil {
			err = x.Map(0, int64(pages)*vm.PageBytes, vm.Read|vm.Write)
		}
		if err != nil {
			return m.s.source.Failf(fmt.Sprintf("dags[%d]", t.dag), "DAG %s cannot be deployed: %v; lower memory_mb of its NTs, or deploy fewer", m.s.DAGs[t.dag].Name, err)
		}
		m.spaces = append(m.spaces, Space{User: t.user, NT: nt, Pages: pages, Memory: x})
	}
	return nil
}

// space returns the address space of an NT for a user, or nil.
func (m *manager) space(user, nt int) *vm.Space {
	for i := range m.spaces {
		if x := &m.spaces[i]; x.User == user && x.NT == nt {
			return x.Memory
		}
	}
	return nil
}
