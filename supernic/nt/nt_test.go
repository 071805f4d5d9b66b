package nt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"pgregory.net/rapid"

	"nicprof/sim"
)

func end(addr string, port uint16, proto byte) Endpoint {
	return Endpoint{netip.MustParseAddr(addr), port, proto}
}

// frame builds a packet by another library.
func frame(t testing.TB, f Flow, payload []byte) []byte {
	t.Helper()
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocol(f.From.Proto), SrcIP: f.From.Addr.AsSlice(), DstIP: f.To.Addr.AsSlice()}
	eth := &layers.Ethernet{SrcMAC: []byte{2, 0, 0, 0, 0, 1}, DstMAC: []byte{2, 0, 0, 0, 0, 2}, EthernetType: layers.EthernetTypeIPv4}
	var l4 gopacket.SerializableLayer
	if f.From.Proto == TCP {
		tcp := &layers.TCP{SrcPort: layers.TCPPort(f.From.Port), DstPort: layers.TCPPort(f.To.Port), Seq: 7, Window: 9}
		if err := tcp.SetNetworkLayerForChecksum(ip); err != nil {
			t.Fatal(err)
		}
		l4 = tcp
	} else {
		udp := &layers.UDP{SrcPort: layers.UDPPort(f.From.Port), DstPort: layers.UDPPort(f.To.Port)}
		if err := udp.SetNetworkLayerForChecksum(ip); err != nil {
			t.Fatal(err)
		}
		l4 = udp
	}
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, eth, ip, l4, gopacket.Payload(payload)); err != nil {
		t.Fatal(err)
	}
	frame := b.Bytes()
	return slices.Clone(frame[:etherBytes+int(binary.BigEndian.Uint16(frame[etherBytes+2:]))]) // without padding
}

// parts reads a packet by our view and checks that the other library, asked to
// build the same packet, gives the same bytes: lengths and checksums are right.
func parts(t testing.TB, packet []byte) (Flow, []byte) {
	t.Helper()
	v := look(packet)
	if !v.ok {
		t.Fatalf("not a packet any more: %x", packet)
	}
	flow, payload := v.flow(), v.packet[v.payload:]
	if want := frame(t, flow, payload); !bytes.Equal(packet[12:], want[12:]) {
		t.Fatalf("%v with %d bytes:\n%x, want\n%x", flow, len(payload), packet, want)
	}
	return flow, payload
}

var protos = []byte{TCP, UDP}

// drawFlow draws the ends of a flow from so many addresses inside 10.0.0.0/24 to
// a few outside.
func drawFlow(t *rapid.T) Flow {
	proto := rapid.SampledFrom(protos).Draw(t, "proto")
	return Flow{
		end(fmt.Sprintf("10.0.0.%d", rapid.IntRange(1, 4).Draw(t, "host")), uint16(rapid.IntRange(1000, 1003).Draw(t, "port")), proto),
		end(fmt.Sprintf("192.0.2.%d", rapid.IntRange(1, 3).Draw(t, "peer")), 80, proto),
	}
}

func payload(t *rapid.T) []byte {
	return rapid.SliceOfN(rapid.Byte(), 0, 64).Draw(t, "payload")
}

// NAT conserves packets and flows: each is translated, or dropped and counted;
// two inside endpoints never share an outside port; what comes back to it
// arrives at the endpoint that it belongs to, with its payload; and a translated
// packet that is translated back is the one that was sent, byte for byte.
func TestNAT(t *testing.T) {
	outside := netip.MustParseAddr("198.51.100.1")
	rapid.Check(t, func(rt *rapid.T) {
		ports := rapid.IntRange(1, 12).Draw(rt, "ports")
		n := NewNAT(netip.MustParsePrefix("10.0.0.0/24"), outside, 5000, 5000+uint16(ports)-1)
		owner := map[Endpoint]Endpoint{}
		var sent, passed, dropped int64
		for range rapid.IntRange(1, 60).Draw(rt, "packets") {
			f, data := drawFlow(rt), payload(rt)
			if rapid.IntRange(0, 9).Draw(rt, "release") == 0 {
				if e, ok := n.out[f.From]; ok {
					delete(owner, e)
				}
				n.Release(f.From)
				continue
			}
			original := frame(t, f, data)
			sent++
			out, v := n.Process(slices.Clone(original))
			if v == Drop {
				dropped++
				used := 0
				for e := range owner {
					if e.Proto == f.From.Proto {
						used++
					}
				}
				if used < ports {
					rt.Fatalf("dropped with %d of %d ports taken", used, ports)
				}
				continue
			}
			passed++
			got, gotData := parts(t, out)
			if got.From.Addr != outside || got.From.Port < 5000 || int(got.From.Port) >= 5000+ports || got.To != f.To || !bytes.Equal(gotData, data) {
				rt.Fatalf("%v became %v", f, got)
			}
			if o, ok := owner[got.From]; ok && o != f.From {
				rt.Fatalf("%v and %v share %v", o, f.From, got.From)
			}
			owner[got.From] = f.From
			back, v := n.Process(frame(t, Flow{got.To, got.From}, data))
			if v != Pass {
				rt.Fatalf("the answer is dropped")
			}
			if answer, answerData := parts(t, back); answer != (Flow{f.To, f.From}) || !bytes.Equal(answerData, data) {
				rt.Fatalf("the answer of %v goes %v", f, answer)
			}
			// The packet itself, translated back.
			w := look(out)
			w.setFrom(f.From)
			if !bytes.Equal(out, original) {
				rt.Fatalf("translated back:\n%x, sent\n%x", out, original)
			}
		}
		if n.Out != passed || n.Back != passed || n.Dropped != dropped || sent != passed+dropped || n.Bindings() != len(owner) {
			rt.Fatalf("%d sent, %d passed, %d dropped; counted %d out, %d back, %d dropped, %d bindings of %d", sent, passed, dropped, n.Out, n.Back, n.Dropped, n.Bindings(), len(owner))
		}
	})
	// Nobody outside begins.
	n := NewNAT(netip.MustParsePrefix("10.0.0.0/24"), outside, 5000, 5010)
	if _, v := n.Process(frame(t, Flow{end("192.0.2.1", 80, TCP), Endpoint{outside, 5000, TCP}}, nil)); v != Drop || n.Dropped != 1 {
		t.Errorf("a packet to a port without a binding: %v", v)
	}
}

// The balancer conserves packets: each goes to one server, all of a client to the
// same, flows as evenly as can be; answers carry the service's address.
func TestBalancer(t *testing.T) {
	service := end("203.0.113.1", 80, TCP)
	rapid.Check(t, func(rt *rapid.T) {
		var servers []Endpoint
		for i := range rapid.IntRange(1, 5).Draw(rt, "servers") {
			servers = append(servers, end(fmt.Sprintf("10.1.0.%d", i+1), 8080, TCP))
		}
		b := NewBalancer(service, servers...)
		of := map[Endpoint]Endpoint{}
		var sent int64
		for range rapid.IntRange(1, 80).Draw(rt, "packets") {
			f, data := drawFlow(rt), payload(rt)
			f.From.Proto, f.To = TCP, service
			out, v := b.Process(frame(t, f, data))
			sent++
			got, gotData := parts(t, out)
			if v != Pass || got.From != f.From || !slices.Contains(servers, got.To) || !bytes.Equal(gotData, data) {
				rt.Fatalf("%v goes %v, %v", f, got, v)
			}
			if before, ok := of[f.From]; ok && before != got.To {
				rt.Fatalf("client %v moves from %v to %v", f.From, before, got.To)
			}
			of[f.From] = got.To
			back, _ := b.Process(frame(t, Flow{got.To, f.From}, data))
			if answer, _ := parts(t, back); answer != (Flow{service, f.From}) {
				rt.Fatalf("the answer to %v is %v", f, answer)
			}
		}
		total, flows := int64(0), 0
		for i := range servers {
			total += b.Packets[i]
			flows += b.Flows[i]
		}
		if total != sent || flows != len(of) || slices.Max(b.Flows)-slices.Min(b.Flows) > 1 {
			rt.Fatalf("%d packets sent, %v at servers; %d clients, flows %v", sent, b.Packets, len(of), b.Flows)
		}
		for client := range of {
			b.Release(client)
		}
		if slices.Max(b.Flows) != 0 {
			rt.Fatalf("flows after all ended: %v", b.Flows)
		}
	})
	// What is neither to the service nor from a server of a client passes.
	b := NewBalancer(service, end("10.1.0.1", 8080, TCP))
	other := frame(t, Flow{end("10.0.0.1", 1, TCP), end("10.0.0.2", 2, TCP)}, []byte("x"))
	if out, v := b.Process(slices.Clone(other)); v != Pass || !bytes.Equal(out, other) {
		t.Error("a packet of others is changed")
	}
}

// The first rule that matches decides, and every packet is counted once.
func TestFirewall(t *testing.T) {
	fw := &Firewall{Rules: []Rule{
		{From: netip.MustParsePrefix("10.0.0.2/32"), Allow: false},
		{Proto: TCP, ToPorts: [2]uint16{80, 81}, Allow: true},
		{FromPorts: [2]uint16{53, 53}, To: netip.MustParsePrefix("10.0.0.0/8"), Allow: true},
	}}
	passed, dropped := int64(0), int64(0)
	for _, test := range []struct {
		from, to string
		fp, tp   uint16
		proto    byte
		want     Verdict
	}{
		{"10.0.0.1", "192.0.2.1", 1000, 80, TCP, Pass},
		{"10.0.0.1", "192.0.2.1", 1000, 81, TCP, Pass},
		{"10.0.0.1", "192.0.2.1", 1000, 82, TCP, Drop},
		{"10.0.0.1", "192.0.2.1", 1000, 80, UDP, Drop},
		{"10.0.0.2", "192.0.2.1", 1000, 80, TCP, Drop}, // the first rule, not the second
		{"192.0.2.1", "10.9.9.9", 53, 1000, UDP, Pass},
		{"192.0.2.1", "11.9.9.9", 53, 1000, UDP, Drop},
	} {
		in := frame(t, Flow{end(test.from, test.fp, test.proto), end(test.to, test.tp, test.proto)}, []byte("data"))
		out, v := fw.Process(slices.Clone(in))
		if v != test.want || v == Pass && !bytes.Equal(in, out) {
			t.Errorf("%+v: %v", test, v)
		}
		if test.want == Pass {
			passed++
		} else {
			dropped++
		}
	}
	if fw.Passed != passed || fw.Dropped != dropped {
		t.Errorf("%d and %d counted, want %d and %d", fw.Passed, fw.Dropped, passed, dropped)
	}
	arp := slices.Concat(make([]byte, 12), []byte{8, 6}, make([]byte, 46))
	if _, v := fw.Process(arp); v != Drop {
		t.Error("a frame that no rule can match passes a firewall that drops")
	}
	fw.Allow = true
	if _, v := fw.Process(arp); v != Pass {
		t.Error("a frame that no rule can match is dropped by a firewall that passes")
	}
}

// What is encrypted and decrypted again is what was sent; on the way nothing of
// it is seen, and whatever is changed, a payload, an address, a port, is refused.
func TestAES(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		key := rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(rt, "key")
		in, err := NewAES(key, [4]byte{1, 2, 3, 4}, false)
		if err != nil {
			rt.Fatal(err)
		}
		out, err := NewAES(key, [4]byte{1, 2, 3, 4}, true)
		if err != nil {
			rt.Fatal(err)
		}
		data := rapid.SliceOfN(rapid.Byte(), 16, 64).Draw(rt, "payload")
		original := frame(t, drawFlow(rt), data)
		first, v := in.Process(slices.Clone(original))
		second, _ := in.Process(slices.Clone(original))
		if _, secret := parts(t, first); v != Pass || len(first) != len(original)+AESOverhead || bytes.Contains(secret, data) || bytes.Equal(first, second) {
			rt.Fatalf("encrypted to %x and %x, %v", first, second, v)
		}
		for _, sent := range [][]byte{second, first} { // in any order
			if back, v := out.Process(slices.Clone(sent)); v != Pass || !bytes.Equal(back, original) {
				rt.Fatalf("decrypted to %x, %v; sent was %x", back, v, original)
			}
		}
		w := look(first)
		at := rapid.IntRange(etherBytes+12, len(first)-1).Draw(rt, "at")
		if at >= w.l4+4 && at < w.payload {
			return // checksum, lengths, TCP's numbers: not the payload's
		}
		first[at] ^= byte(rapid.IntRange(1, 255).Draw(rt, "change"))
		if _, v := out.Process(first); v != Drop {
			rt.Fatalf("byte %d was changed and it is not refused", at)
		}
	})
	if _, err := NewAES(make([]byte, 5), [4]byte{}, false); err == nil {
		t.Error("a key of 5 bytes is taken")
	}
	a, err := NewAES(make([]byte, 16), [4]byte{}, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, v := a.Process(make([]byte, 60)); v != Drop || a.Dropped != 1 {
		t.Error("a frame that cannot be encrypted goes out in the clear")
	}
}

// store is a key-value store that answers packets.
type store map[string][]byte

func (s store) answer(t testing.TB, packet []byte) []byte {
	f, data := parts(t, packet)
	op, key, value, ok := parseMessage(data)
	if !ok {
		t.Fatalf("no message: %x", data)
	}
	reply := Message(Stored, key, nil)
	if op == Set {
		s[key] = slices.Clone(value)
	} else if v, ok := s[key]; ok {
		reply = Message(Found, key, v)
	} else {
		reply = Message(Missing, key, nil)
	}
	return frame(t, Flow{f.To, f.From}, reply)
}

// A Get through the cache never gives less than the store had confirmed when it
// was sent, whatever is under way; what is kept fits; and every Get is a hit or
// a miss.
func TestCacheIsCoherent(t *testing.T) {
	client, server := end("10.0.0.1", 4000, UDP), end("10.0.0.9", 11211, UDP)
	rapid.Check(t, func(rt *rapid.T) {
		room := rapid.IntRange(0, 200).Draw(rt, "room")
		c := NewCache(11211, room)
		s := store{}
		confirmed := map[string]uint32{} // version that the store has confirmed
		var down, up sim.Line[[]byte]    // on the way to the store, and back
		version, gets := uint32(0), int64(0)
		value := func() []byte {
			version++
			b := make([]byte, rapid.IntRange(4, 40).Draw(rt, "bytes"))
			binary.BigEndian.PutUint32(b, version)
			return b
		}
		asked := map[string][]uint32{} // by key: what was confirmed when each Get under way was sent
		check := func(packet []byte, at uint32) {
			_, data := parts(t, packet)
			if op, key, v, _ := parseMessage(data); op == Found && binary.BigEndian.Uint32(v) < at {
				rt.Fatalf("key %s: version %d, %d was confirmed", key, binary.BigEndian.Uint32(v), at)
			} else if op == Missing && at > 0 {
				rt.Fatalf("key %s is missing, version %d was confirmed", key, at)
			}
		}
		for range rapid.IntRange(1, 120).Draw(rt, "steps") {
			key := rapid.SampledFrom([]string{"a", "bb", "ccc", "dddd"}).Draw(rt, "key")
			switch rapid.IntRange(0, 3).Draw(rt, "step") {
			case 0:
				gets++
				out, v := c.Process(frame(t, Flow{client, server}, Message(Get, key, nil)))
				if v == Reply {
					if f, _ := parts(t, out); f != (Flow{server, client}) {
						rt.Fatalf("the answer goes %v", f)
					}
					check(out, confirmed[key])
				} else {
					asked[key] = append(asked[key], confirmed[key])
					down.Push(out)
				}
			case 1:
				out, v := c.Process(frame(t, Flow{client, server}, Message(Set, key, value())))
				if v != Pass {
					rt.Fatalf("a Set is not passed: %v", v)
				}
				down.Push(out)
			case 2:
				if down.Len() > 0 {
					up.Push(s.answer(t, down.Pop()))
				}
			case 3:
				if up.Len() == 0 {
					continue
				}
				out, _ := c.Process(up.Pop())
				_, data := parts(t, out)
				switch op, key, _, _ := parseMessage(data); op {
				case Stored:
					// Answers come in order, so that this one confirms a version
					// not beyond the store's.
					if v := s[key]; down.Len()+up.Len() == 0 {
						confirmed[key] = binary.BigEndian.Uint32(v)
					}
				default:
					check(out, asked[key][0])
					asked[key] = asked[key][1:]
				}
			}
			if c.Used() > room {
				rt.Fatalf("%d bytes in a cache of %d", c.Used(), room)
			}
		}
		if c.Hits+c.Misses != gets {
			rt.Fatalf("%d hits, %d misses, %d gets", c.Hits, c.Misses, gets)
		}
	})
}

// The pair that came first goes first, whatever was read since.
func TestCacheIsFIFO(t *testing.T) {
	client, server := end("10.0.0.1", 4000, UDP), end("10.0.0.9", 11211, UDP)
	c := NewCache(11211, 3*(1+9)) // three pairs
	s := store{}
	ask := func(op byte, key string) Verdict {
		out, v := c.Process(frame(t, Flow{client, server}, Message(op, key, bytes.Repeat([]byte{key[0]}, 9))))
		if v == Pass {
			c.Process(s.answer(t, out))
		}
		return v
	}
	for _, key := range []string{"a", "b", "c"} {
		ask(Set, key)
	}
	for _, step := range []struct {
		op   byte
		key  string
		want Verdict
	}{
		{Get, "a", Reply}, {Get, "a", Reply}, // read, which does not count
		{Set, "d", Pass}, {Get, "a", Pass}, // a is gone, and comes back; b goes
		{Get, "b", Pass}, {Get, "d", Reply}, {Get, "a", Reply}, {Get, "c", Pass},
	} {
		if got := ask(step.op, step.key); got != step.want {
			t.Errorf("%d %s: %v, want %v", step.op, step.key, got, step.want)
		}
	}
	if c.Evicted != 4 {
		t.Errorf("%d evictions, want a, b, c, d", c.Evicted)
	}
}

// Whatever a line loses, doubles or delays, what is sent arrives once, in order.
func TestTransport(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		loss := rapid.Float64Range(0, 0.5).Draw(rt, "loss")
		window := rapid.IntRange(1, 8).Draw(rt, "window")
		type packet struct {
			at sim.Time
			b  []byte
		}
		var forth, back []packet
		now := sim.Time(0)
		line := func(to *[]packet) func(Segment) {
			return func(s Segment) {
				for range 2 {
					if random.Float64() >= loss {
						*to = append(*to, packet{now + sim.Time(1+random.IntN(20))*sim.Microsecond, s.Append(nil)})
					}
					if random.Float64() > 0.1 {
						break // else once more
					}
				}
			}
		}
		var got [][]byte
		sender := NewSender(window, 50*sim.Microsecond, line(&forth))
		receiver := NewReceiver(line(&back), func(b []byte) { got = append(got, slices.Clone(b)) })
		arrive := func(from *[]packet, f func(Segment)) {
			due := *from
			*from = nil
			for _, p := range due {
				if p.at > now {
					*from = append(*from, p)
					continue
				}
				s, ok := ParseSegment(p.b)
				if !ok {
					rt.Fatalf("no segment: %x", p.b)
				}
				f(s)
			}
		}
		var sent [][]byte
		for i := range 40 {
			sent = append(sent, []byte(fmt.Sprint("segment ", i)))
			sender.Send(now, sent[i])
		}
		for range 40000 {
			now += sim.Microsecond
			arrive(&forth, receiver.Receive)
			arrive(&back, func(s Segment) { sender.Receive(now, s) })
			if n := len(sender.under); n > window {
				rt.Fatalf("%d under way, the window is %d", n, window)
			}
			sender.Tick(now)
			if sender.Idle() {
				break
			}
		}
		if !sender.Idle() || !slices.EqualFunc(got, sent, bytes.Equal) {
			rt.Fatalf("%d of %d arrived in order, idle %v", len(got), len(sent), sender.Idle())
		}
	})
	// Without loss nothing is sent twice.
	var resent *Sender
	receiver := NewReceiver(func(s Segment) { resent.Receive(0, s) }, func([]byte) {})
	resent = NewSender(4, sim.Microsecond, receiver.Receive)
	for range 100 {
		resent.Send(0, []byte("x"))
	}
	if !resent.Idle() || resent.Resent != 0 || receiver.Dropped != 0 {
		t.Errorf("idle %v, %d sent again, %d dropped", resent.Idle(), resent.Resent, receiver.Dropped)
	}
}

// A VPC's chain, and back.
func TestChain(t *testing.T) {
	key := make([]byte, 32)
	encrypt, err := NewAES(key, [4]byte{}, false)
	if err != nil {
		t.Fatal(err)
	}
	fw := &Firewall{Rules: []Rule{{Proto: UDP, Allow: true}}}
	nat := NewNAT(netip.MustParsePrefix("10.0.0.0/24"), netip.MustParseAddr("198.51.100.1"), 5000, 5010)
	service := end("203.0.113.1", 80, UDP)
	lb := NewBalancer(service, end("10.1.0.1", 8080, UDP))
	chain := Chain{fw, nat, lb, Dummy{}, encrypt}
	out, v := chain.Process(frame(t, Flow{end("10.0.0.1", 1000, UDP), service}, []byte("hello")))
	f, data := parts(t, out)
	if v != Pass || f != (Flow{end("198.51.100.1", 5000, UDP), end("10.1.0.1", 8080, UDP)}) || len(data) != 5+AESOverhead {
		t.Errorf("%v %v with %d bytes", v, f, len(data))
	}
	if _, v := chain.Process(frame(t, Flow{end("10.0.0.1", 1000, TCP), service}, nil)); v != Drop || nat.Bindings() != 1 {
		t.Error("what the firewall drops goes on")
	}
}

// No bytes make an NT panic, or make a packet out of what is none.
func FuzzProcess(f *testing.F) {
	f.Add(frame(f, Flow{end("10.0.0.1", 1, UDP), end("10.0.0.9", 11211, UDP)}, Message(Get, "k", nil)))
	f.Add(frame(f, Flow{end("10.0.0.1", 1, TCP), end("203.0.113.1", 80, TCP)}, []byte("data")))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, packet []byte) {
		encrypt, err := NewAES(make([]byte, 16), [4]byte{}, false)
		if err != nil {
			t.Fatal(err)
		}
		decrypt, err := NewAES(make([]byte, 16), [4]byte{}, true)
		if err != nil {
			t.Fatal(err)
		}
		v := look(packet)
		for _, nt := range []NT{
			&Firewall{Allow: true}, NewNAT(netip.MustParsePrefix("10.0.0.0/8"), netip.MustParseAddr("198.51.100.1"), 1, 2),
			NewBalancer(end("203.0.113.1", 80, TCP), end("10.1.0.1", 8080, TCP)), NewCache(11211, 100), Chain{encrypt, decrypt},
		} {
			out, verdict := nt.Process(slices.Clone(packet))
			if verdict == Drop != (out == nil) {
				t.Fatalf("%T: %v with %d bytes", nt, verdict, len(out))
			}
			if !v.ok && verdict != Drop && !bytes.Equal(out, packet) {
				t.Fatalf("%T changes what is no packet", nt)
			}
		}
		if s, ok := ParseSegment(packet); ok && !bytes.Equal(s.Append(nil), packet) {
			t.Fatal("a segment is not what was read")
		}
	})
}
