package host

import (
	"context"

	"nicprof/microbench"
	"nicprof/program"
	"nicprof/traffic"
)

// Accesses a packet between which the time has to grow.
const (
	fewAccesses  = 8
	manyAccesses = 64
)

// leastNS is less than any processor takes for an access: 5 in a cycle of
// 0.2 ns. A faster loop does not do its work.
const leastNS = 0.04

// scaled is the time of a packet, ns on one core, with few and with many
// accesses.
type scaled struct {
	access    program.Access
	few, many float64
}

// each is the time of one access more.
func (s scaled) each() float64 { return (s.many - s.few) / (manyAccesses - fewAccesses) }

// scaling measures every kind of access in the first memory with few and with
// many accesses a packet.
func (d *Driver) scaling(ctx context.Context) ([]scaled, error) {
	var rows []scaled
	memory := &d.board.Memories[0]
	for i := range memory.Engines {
		engine := &memory.Engines[i]
		for _, op := range []program.Op{program.Read, program.Write, program.Add} {
			if engine.Command(op) == nil {
				continue
			}
			s := scaled{access: program.Access{Memory: memory.Name, Op: op, Mode: engine.Mode, Bytes: 8}}
			for _, at := range []struct {
				n  float64
				ns *float64
			}{{fewAccesses, &s.few}, {manyAccesses, &s.many}} {
				s.access.PerPacket = at.n
				p := d.board.Resolve(program.Program{Accesses: []program.Access{s.access}})
				sample, err := d.measure(ctx, p, traffic.Traffic{}, microbench.Options{Cores: 1, Seed: 1, AllowNoise: true})
				if err != nil {
					return nil, err
				}
				*at.ns = 1000 / sample.Mpps
			}
			rows = append(rows, s)
		}
	}
	return rows, nil
}

// deleted names the accesses that take less time than they can.
func deleted(rows []scaled) []string {
	var free []string
	for _, s := range rows {
		if s.each() < leastNS {
			free = append(free, s.name())
		}
	}
	return free
}

func (s scaled) name() string {
	return s.access.Memory + " " + string(s.access.Op) + " " + string(s.access.Mode)
}

func scalingTable(rows []scaled) microbench.Table {
	t := microbench.Table{
		Title:   "a packet's time with few and many accesses of 8 B, one core",
		Columns: []string{"access", "8 accesses, ns", "64 accesses, ns", "each more, ns"},
	}
	for _, s := range rows {
		t.Rows = append(t.Rows, []any{s.name(), tenth(s.few), tenth(s.many), tenth(10*s.each()) / 10})
	}
	return t
}
