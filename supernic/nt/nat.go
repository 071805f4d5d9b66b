package nt

import "net/netip"

// NAT translates the sources of packets from inside to ports of one outside
// address, and the destinations of the answers back. A binding is of an inside
// endpoint, whomever it talks to (endpoint-independent mapping, RFC 4787), and
// lasts until Release. With no port left packets from inside are dropped, as are
// packets from outside to ports without a binding.
type NAT struct {
	inside  netip.Prefix
	outside netip.Addr
	first   uint16
	ports   int
	out     map[Endpoint]Endpoint // outside by inside endpoint
	back    map[Endpoint]Endpoint // and the other way round
	next    map[byte]int          // by protocol: the port to try next

	Out, Back, Dropped int64
}

// NewNAT returns a NAT of the addresses inside to ports first to last of outside.
func NewNAT(inside netip.Prefix, outside netip.Addr, first, last uint16) *NAT {
	return &NAT{
		inside: inside, outside: outside, first: first, ports: max(0, int(last)-int(first)+1),
		out: map[Endpoint]Endpoint{}, back: map[Endpoint]Endpoint{}, next: map[byte]int{},
	}
}

// Bindings returns the number of bindings.
func (n *NAT) Bindings() int { return len(n.out) }

// Process translates the packet.
func (n *NAT) Process(packet []byte) ([]byte, Verdict) {
	v := look(packet)
	if !v.ok {
		return packet, Pass
	}
	flow := v.flow()
	switch {
	case flow.To.Addr == n.outside:
		to, ok := n.back[flow.To]
		if !ok {
			n.Dropped++
			return nil, Drop
		}
		v.setTo(to)
		n.Back++
	case n.inside.Contains(flow.From.Addr):
		from, ok := n.bind(flow.From)
		if !ok {
			n.Dropped++
			return nil, Drop
		}
		v.setFrom(from)
		n.Out++
	}
	return packet, Pass
}

// bind returns the outside endpoint of an inside one, a new one if need be.
func (n *NAT) bind(from Endpoint) (Endpoint, bool) {
	if e, ok := n.out[from]; ok {
		return e, true
	}
	for range n.ports {
		e := Endpoint{n.outside, n.first + uint16(n.next[from.Proto]), from.Proto}
		n.next[from.Proto] = (n.next[from.Proto] + 1) % n.ports
		if _, taken := n.back[e]; !taken {
			n.out[from], n.back[e] = e, from
			return e, true
		}
	}
	return Endpoint{}, false
}

// Release ends the binding of an inside endpoint.
func (n *NAT) Release(from Endpoint) {
	if e, ok := n.out[from]; ok {
		delete(n.out, from)
		delete(n.back, e)
	}
}
