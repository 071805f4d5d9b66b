package nt

// Balancer sends the flows to one service address to servers: a new flow to the
// server with the fewest flows, the first of them if there are several, its
// packets to the same one until Release. Answers of the servers carry the
// service's address again. Other packets pass.
type Balancer struct {
	service Endpoint
	servers []Endpoint
	flows   map[Endpoint]int // by client: the server
	Flows   []int            // by server: flows now
	Packets []int64          // by server: packets sent to it
}

// NewBalancer returns a balancer of flows to service over servers, one or more.
func NewBalancer(service Endpoint, servers ...Endpoint) *Balancer {
	return &Balancer{service: service, servers: servers, flows: map[Endpoint]int{}, Flows: make([]int, len(servers)), Packets: make([]int64, len(servers))}
}

// Process sends the packet to its server, or an answer on to its client.
func (b *Balancer) Process(packet []byte) ([]byte, Verdict) {
	v := look(packet)
	if !v.ok {
		return packet, Pass
	}
	flow := v.flow()
	if flow.To == b.service {
		s := b.server(flow.From)
		v.setTo(b.servers[s])
		b.Packets[s]++
	} else if s, ok := b.flows[flow.To]; ok && flow.From == b.servers[s] {
		v.setFrom(b.service)
	}
	return packet, Pass
}

// server returns the server of a client.
func (b *Balancer) server(client Endpoint) int {
	if s, ok := b.flows[client]; ok {
		return s
	}
	least := 0
	for i, n := range b.Flows {
		if n < b.Flows[least] {
			least = i
		}
	}
	b.flows[client] = least
	b.Flows[least]++
	return least
}

// Release ends the flow of a client.
func (b *Balancer) Release(client Endpoint) {
	if s, ok := b.flows[client]; ok {
		delete(b.flows, client)
		b.Flows[s]--
	}
}
