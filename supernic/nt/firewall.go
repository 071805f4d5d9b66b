package nt

import "net/netip"

// Rule matches packets; the zero value of a field matches all. Ports are ranges
// that include both ends.
type Rule struct {
	From, To           netip.Prefix
	Proto              byte
	FromPorts, ToPorts [2]uint16
	Allow              bool
}

func (r *Rule) matches(f Flow) bool {
	in := func(p netip.Prefix, a netip.Addr) bool { return !p.IsValid() || p.Contains(a) }
	within := func(r [2]uint16, p uint16) bool { return r == [2]uint16{} || r[0] <= p && p <= r[1] }
	return in(r.From, f.From.Addr) && in(r.To, f.To.Addr) && (r.Proto == 0 || r.Proto == f.From.Proto) &&
		within(r.FromPorts, f.From.Port) && within(r.ToPorts, f.To.Port)
}

// Firewall passes or drops packets by the first of its rules that matches, and
// those that none matches by Allow. Frames that are not TCP or UDP over IPv4, and
// fragments, count as those that none matches.
type Firewall struct {
	Rules           []Rule
	Allow           bool
	Passed, Dropped int64
}

// Process passes or drops the packet.
func (f *Firewall) Process(packet []byte) ([]byte, Verdict) {
	allow := f.Allow
	if v := look(packet); v.ok {
		flow := v.flow()
		for i := range f.Rules {
			if f.Rules[i].matches(flow) {
				allow = f.Rules[i].Allow
				break
			}
		}
	}
	if !allow {
		f.Dropped++
		return nil, Drop
	}
	f.Passed++
	return packet, Pass
}
