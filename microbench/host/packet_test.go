package host

import (
	"testing"
	"unsafe"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"pgregory.net/rapid"

	"nicprof/program"
	"nicprof/traffic"
)

func testRing(t interface{ Helper() }, sizes []int, flows traffic.Flows) *ring {
	t.Helper()
	d := flowDraws(&flows).seeded(3)
	largest := 0
	for _, n := range sizes {
		largest = max(largest, n)
	}
	mem := pattern(ringSlots * slotBytes(largest))
	return newRing(unsafe.Pointer(&mem[0]), sizes, d)
}

// decode reads a frame with an independent implementation, and checks lengths
// and the header's checksum.
func decode(t *rapid.T, r *ring, at uint32, length int) (*layers.Ethernet, *layers.IPv4) {
	frame := unsafe.Slice((*byte)(unsafe.Add(r.memory, at+headroom)), length)
	p := gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.Default)
	if e := p.ErrorLayer(); e != nil {
		t.Fatalf("%v", e.Error())
	}
	ip, ok := p.Layer(layers.LayerTypeIPv4).(*layers.IPv4)
	if _, udp := p.Layer(layers.LayerTypeUDP).(*layers.UDP); !ok || !udp {
		t.Fatalf("not UDP over IPv4: %v", p)
	}
	if int(ip.Length) != length-offIP {
		t.Fatalf("IPv4 length %d of a frame of %d B", ip.Length, length)
	}
	if headerSum(unsafe.Pointer(&frame[0])) != 0xffff {
		t.Fatalf("header checksum %#x is wrong", ip.Checksum)
	}
	return p.Layer(layers.LayerTypeEthernet).(*layers.Ethernet), ip
}

func TestForwardedPacketsAreRight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(traffic.MinPacketBytes, 1518), 1, 5).Draw(t, "sizes")
		flows := traffic.Flows{Count: rapid.IntRange(1, 100000).Draw(t, "flows")}
		r := testRing(t, sizes, flows)
		for i := range 2 * ringSlots {
			at := r.receive()
			length := r.sizes[int(at)/r.slot]
			if want := sizes[i%ringSlots%len(sizes)] - 4; int(length) != want {
				t.Fatalf("slot %d: %d B, expected %d", i, length, want)
			}
			eth, ip := decode(t, r, at, int(length))
			flow, ok := forward(unsafe.Add(r.memory, at+headroom), length)
			if !ok || int(flow) >= flows.Count {
				t.Fatalf("flow %d of %d, forwarded %v", flow, flows.Count, ok)
			}
			eth2, ip2 := decode(t, r, at, int(length))
			if ip2.TTL != ip.TTL-1 || ip.TTL != fullTTL {
				t.Fatalf("time to live %d, then %d", ip.TTL, ip2.TTL)
			}
			if string(eth2.SrcMAC) != string(eth.DstMAC) || string(eth2.DstMAC) != string(eth.SrcMAC) {
				t.Fatalf("addresses %v %v, then %v %v", eth.SrcMAC, eth.DstMAC, eth2.SrcMAC, eth2.DstMAC)
			}
			r.send(at, length, 0)
			if len(r.tx) == burstMost {
				r.drain()
			}
		}
		if r.sent != 2*ringSlots {
			t.Fatalf("%d frames sent of %d", r.sent, 2*ringSlots)
		}
	})
}

// Any change of a header that must not be forwarded is seen; none of any bytes
// does harm.
func TestForwardRefusesWhatIsNoUDPOverIPv4(t *testing.T) {
	for name, spoil := range map[string]func(p unsafe.Pointer){
		"type":     func(p unsafe.Pointer) { put16(p, offType, 0x86dd) },
		"options":  func(p unsafe.Pointer) { *(*byte)(unsafe.Add(p, offIP)) = 0x46 },
		"protocol": func(p unsafe.Pointer) { *(*byte)(unsafe.Add(p, offProto)) = 6 },
		"expired":  func(p unsafe.Pointer) { *(*byte)(unsafe.Add(p, offTTL)) = 1 },
		"too long": func(p unsafe.Pointer) { put16(p, offLength, 47) },
	} {
		r := testRing(t, []int{64}, traffic.Flows{Count: 1})
		p := unsafe.Add(r.memory, r.receive()+headroom)
		spoil(p)
		if _, ok := forward(p, 60); ok {
			t.Errorf("%s: forwarded", name)
		}
	}
}

func TestSlotsSpreadHeadersOverCacheSets(t *testing.T) {
	for bytes := traffic.MinPacketBytes; bytes <= traffic.MaxPacketBytes; bytes++ {
		if s := slotBytes(bytes); s < headroom+bytes || s%64 != 0 || s/64%2 != 1 {
			t.Fatalf("a frame of %d B in slots of %d", bytes, s)
		}
	}
	if headroom+headers > 64 {
		t.Errorf("headers of %d B and %d B before them do not share a line", headers, headroom)
	}
}

// Each kind of operation does as many as asked: a second implementation, written
// for reading, comes to the same value.
func TestOperationsAreDone(t *testing.T) {
	models := map[string]func(frame []byte, n int, v uint64) uint64{
		program.ALU: func(frame []byte, n int, v uint64) uint64 {
			w := uint64(frame[26])<<24 | uint64(frame[27])<<16 | uint64(frame[28])<<8 | uint64(frame[29]|1)
			for i := range n {
				switch {
				case i >= n/8*8 && i%2 == 1:
					v -= w
				case i%2 == 0:
					v += w
				default:
					v ^= w
				}
			}
			return v
		},
		program.Multiply: func(frame []byte, n int, v uint64) uint64 {
			w := uint64(frame[26])<<24 | uint64(frame[27])<<16 | uint64(frame[28])<<8 | uint64(frame[29])
			v |= 1
			for range n {
				v *= 2*w + 1
			}
			return v
		},
		program.Modulo: func(frame []byte, n int, v uint64) uint64 {
			w := uint64(frame[26])<<24 | uint64(frame[27])<<16 | uint64(frame[28])<<8 | uint64(frame[29]|1)
			for range n {
				v = (v | 1<<62) % w
			}
			return v
		},
		program.Hash: func(frame []byte, n int, v uint64) uint64 {
			for range n {
				v ^= 0xcbf29ce484222325
				for _, b := range append(append([]byte(nil), frame[26:38]...), frame[23]) {
					v = (v ^ uint64(b)) * 0x100000001b3
				}
			}
			return v
		},
	}
	for kind, model := range models {
		rapid.Check(t, func(t *rapid.T) {
			r := testRing(t, []int{64}, traffic.Flows{Count: 1000})
			p := unsafe.Add(r.memory, r.receive()+headroom)
			n, v := rapid.IntRange(0, 40).Draw(t, "n"), rapid.Uint64().Draw(t, "v")
			frame := unsafe.Slice((*byte)(p), 60)
			if got, want := operations[kind](p, n, v), model(frame, n, v); got != want {
				t.Fatalf("%s x %d: %#x, expected %#x", kind, n, got, want)
			}
		})
	}
	for _, kind := range program.Kinds {
		if operations[kind] == nil {
			t.Errorf("no operation of kind %s", kind)
		}
	}
}

func TestChecksumsAndTagsLeaveFramesRight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := testRing(t, []int{64}, traffic.Flows{Count: 1000})
		at := r.receive()
		p := unsafe.Add(r.memory, at+headroom)
		v := checksum(p, rapid.IntRange(1, 9).Draw(t, "checksums"), rapid.Uint64().Draw(t, "v"))
		before, _ := decode(t, r, at, 60)
		n := rapid.IntRange(0, 9).Draw(t, "tags")
		header(p, n, v)
		frame := unsafe.Slice((*byte)(p), 60)
		if n%2 == 1 {
			frame = unsafe.Slice((*byte)(unsafe.Add(p, -tagBytes)), 60+tagBytes)
		}
		packet := gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.Default)
		eth, ok := packet.Layer(layers.LayerTypeEthernet).(*layers.Ethernet)
		_, tagged := packet.Layer(layers.LayerTypeDot1Q).(*layers.Dot1Q)
		_, ip := packet.Layer(layers.LayerTypeIPv4).(*layers.IPv4)
		if !ok || tagged != (n%2 == 1) || !ip || string(eth.SrcMAC) != string(before.SrcMAC) || string(eth.DstMAC) != string(before.DstMAC) {
			t.Fatalf("%d headers: %v", n, packet)
		}
	})
}
