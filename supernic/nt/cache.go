package nt

import (
	"encoding/binary"

	"nicprof/sim"
)

// Key-value messages are the payload of UDP to or from a store's port: an
// operation, the length of the key, the key, and the value, if there is one.
const (
	Get     byte = 1 // ask for a value
	Set     byte = 2 // store a value
	Found   byte = 3 // answer to Get: the value
	Missing byte = 4 // answer to Get: there is none
	Stored  byte = 5 // answer to Set
)

// Message returns a key-value message; the key has 255 bytes at most.
func Message(op byte, key string, value []byte) []byte {
	return append(append([]byte{op, byte(len(key))}, key...), value...)
}

// parseMessage takes a message apart.
func parseMessage(b []byte) (op byte, key string, value []byte, ok bool) {
	if len(b) < 2 || len(b) < 2+int(b[1]) {
		return 0, "", nil, false
	}
	n := 2 + int(b[1])
	return b[0], string(b[2:n]), b[n:], true
}

// Cache keeps what was lately read or written of the key-value store that
// answers on a UDP port. It answers a Get itself if it has the value; else that
// goes on, and the store's answer is kept. A Set goes on, and the value is kept
// when the store confirms it; in between the key is not in the cache, and after
// several at once it is not kept, since only the store knows which came last. So
// no Get is answered with less than the store had confirmed when it came, as
// long as the way between cache and store keeps the packets' order. When the
// bytes of keys and values are full, the pair that came first goes (FIFO).
// Other packets pass.
type Cache struct {
	port  uint16
	bytes int

	pairs   map[string][]byte
	fifo    sim.Line[arrival]
	born    map[string]int64 // number of the pair's arrival: others in fifo are stale
	arrived int64
	used    int
	writes  map[string]*write

	Hits, Misses, Evicted int64
}

type arrival struct {
	key    string
	number int64
}

// write is the sets of a key that the store has not confirmed.
type write struct {
	under int
	value []byte
	raced bool
}

// NewCache returns a cache of so many bytes of keys and values before the store
// on a UDP port.
func NewCache(port uint16, bytes int) *Cache {
	return &Cache{port: port, bytes: bytes, pairs: map[string][]byte{}, born: map[string]int64{}, writes: map[string]*write{}}
}

// Used returns the bytes of keys and values that are kept.
func (c *Cache) Used() int { return c.used }

// Process answers the packet, or passes it.
func (c *Cache) Process(packet []byte) ([]byte, Verdict) {
	v := look(packet)
	if !v.ok || v.proto != UDP {
		return packet, Pass
	}
	op, key, value, ok := parseMessage(v.packet[v.payload:])
	if !ok {
		return packet, Pass
	}
	switch flow := v.flow(); {
	case flow.To.Port == c.port && op == Get:
		if kept, ok := c.pairs[key]; ok {
			c.Hits++
			return answer(&v, Message(Found, key, kept)), Reply
		}
		c.Misses++
	case flow.To.Port == c.port && op == Set:
		c.remove(key)
		w := c.writes[key]
		if w == nil {
			w = &write{}
			c.writes[key] = w
		}
		w.under++
		w.raced = w.raced || w.under > 1
		w.value = append(w.value[:0], value...)
	case flow.From.Port == c.port && op == Stored:
		if w := c.writes[key]; w != nil {
			if w.under--; w.under == 0 {
				delete(c.writes, key)
				if !w.raced {
					c.keep(key, w.value)
				}
			}
		}
	case flow.From.Port == c.port && op == Found && c.writes[key] == nil:
		c.keep(key, append([]byte{}, value...))
	}
	return packet, Pass
}

// keep puts a pair into the cache, unless it is larger than that.
func (c *Cache) keep(key string, value []byte) {
	if _, ok := c.pairs[key]; ok {
		return // what the store said before still holds, and its turn
	}
	size := len(key) + len(value)
	if size > c.bytes {
		return
	}
	for c.used+size > c.bytes {
		if first := c.fifo.Pop(); c.born[first.key] == first.number {
			c.remove(first.key)
			c.Evicted++
		}
	}
	if n := c.fifo.Len(); n > 2*len(c.pairs)+64 { // mostly pairs that a Set removed
		for range n {
			if a := c.fifo.Pop(); c.born[a.key] == a.number {
				c.fifo.Push(a)
			}
		}
	}
	c.arrived++
	c.fifo.Push(arrival{key, c.arrived})
	c.born[key] = c.arrived
	c.pairs[key] = value
	c.used += size
}

func (c *Cache) remove(key string) {
	if value, ok := c.pairs[key]; ok {
		c.used -= len(key) + len(value)
		delete(c.pairs, key)
		delete(c.born, key)
	}
}

// answer returns a packet with a payload back to where the packet came from.
func answer(v *view, payload []byte) []byte {
	out := append(append([]byte{}, v.packet[:v.payload]...), payload...)
	swap := func(a, b, n int) {
		for i := range n {
			out[a+i], out[b+i] = out[b+i], out[a+i]
		}
	}
	swap(0, 6, 6)
	swap(etherBytes+12, etherBytes+16, 4)
	swap(v.l4, v.l4+2, 2)
	out[etherBytes+8] = 64 // a new packet has its time to live before it
	r := view{packet: out, l4: v.l4, payload: v.payload, proto: v.proto, ok: true}
	binary.BigEndian.PutUint16(out[etherBytes+4:], 0) // identification: not fragmented
	r.resum()
	return out
}
