package plan

import (
	"nicprof/cora/frontend"
	"nicprof/cora/partition"
	"nicprof/internal/fault"
	"nicprof/model"
	"nicprof/program"
	"nicprof/traffic"
)

// Words of a lock: one atomic test and set that takes it, one atomic write that
// releases it, 4 B each.
const lockBytes = 4

// nic answers what the NIC sustains, by its fitted model: a program of the
// stateless operations of every packet and, of each block on the NIC, its
// operations in its memory times the share of packets that visit it there. Locks
// count as their commands, as in a lock-free program; that no element is asked
// for more than its lock sustains is a condition on flow groups (MaxGroupMpps),
// as in section 5.3 of the Cora paper.
//
// A packet that comes back from the host is forwarded a second time: the base
// program's work is done again (model.Options.Returns), the blocks' is not.
type nic struct {
	m        *model.Model
	mix      *frontend.Mix
	memories []string
	lockMem  string
	traffic  traffic.Traffic
	options  model.Options
	buffer   program.Program
}

// Predict is the predictor of a partition.Problem.
func (n *nic) Predict(use []partition.Use, returns float64) (float64, string, error) {
	o := n.options
	o.Returns = returns
	x, err := n.m.Predict(*n.program(use), n.traffic, o)
	return x.Mpps, x.Bottleneck, err
}

// program is what the NIC runs under an assignment. It is valid until the next
// call.
func (n *nic) program(use []partition.Use) *program.Program {
	p := &n.buffer
	p.Base = n.m.Bases[0].Name
	p.Accesses = p.Accesses[:0]
	if p.Stateless == nil {
		p.Stateless = program.Stateless{}
	}
	for _, kind := range program.Kinds {
		p.Stateless[kind] = n.mix.Stateless[kind]
	}
	for b, u := range use {
		if u.Memory == partition.Host || u.Share == 0 {
			continue
		}
		v := &n.mix.Blocks[b]
		for kind, k := range v.Stateless {
			p.Stateless[kind] += k * u.Share
		}
		for _, a := range v.Accesses {
			p.Accesses = append(p.Accesses, n.access(a, u))
		}
		if v.Lock != nil {
			for _, op := range []program.Op{program.Read, program.Write} {
				p.Accesses = append(p.Accesses, program.Access{Memory: n.lockMem, Op: op, Mode: program.Atomic, Bytes: lockBytes,
					PerPacket: u.Share, Span: max(1, v.Lock.Elements)})
			}
		}
	}
	for kind, k := range p.Stateless {
		if k == 0 {
			delete(p.Stateless, kind)
		}
	}
	return p
}

// access is a block's access in its memory, over the elements that are there.
func (n *nic) access(a frontend.Access, u partition.Use) program.Access {
	out := a.In(n.memories[u.Memory], u.Share)
	if whole := n.mix.Result.Block(a.Object); whole != nil && whole.Partitionable && u.Groups > 0 {
		out.Span = min(max(1, out.Span), int64(u.Groups))
	}
	return out
}

// lockMpps is T_lock of a block in a memory: the rate of a program that takes
// one lock around the block's accesses.
func (n *nic) lockMpps(block, memory int) (float64, error) {
	v := &n.mix.Blocks[block]
	lock := program.Lock{Name: n.mix.Result.Blocks[block].Name, Elements: 1, Idiom: program.Spin}
	for _, a := range v.Accesses {
		if a.Locked {
			lock.Section = append(lock.Section, a.In(n.memories[memory], 1))
		}
	}
	p := program.Program{Name: lock.Name, Base: n.m.Bases[0].Name, Locks: []program.Lock{lock}, Flows: &traffic.Flows{Count: 1}}
	x, err := n.m.Predict(p, traffic.Traffic{PacketBytes: n.traffic.PacketBytes, Flows: p.Flows}, n.options)
	if err != nil {
		return 0, fault.Inputf("lock of block %s in %s: %w", lock.Name, n.memories[memory], err)
	}
	return x.Mpps, nil
}
