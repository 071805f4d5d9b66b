package traffic

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nicprof/internal/fault"
	"nicprof/traffic/capture"
)

func v4(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}

func v6(n uint64) netip.Addr {
	b := [16]byte{0: 0x20, 1: 0x01, 15: byte(n)}
	return netip.AddrFrom16(b)
}

// bitsOf returns bits offset up to offset+n as text, or false when b ends
// before.
func bitsOf(b []byte, offset, n int) (string, bool) {
	if offset+n > 8*len(b) {
		return "", false
	}
	var s strings.Builder
	for i := offset; i < offset+n; i++ {
		s.WriteByte('0' + b[i/8]>>(7-i%8)&1)
	}
	return s.String(), true
}

// Two packets are in the same group exactly if every field is equal bit by
// bit, there and not there alike.
func TestExtractor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var k Key
		for range rapid.IntRange(0, 8).Draw(t, "fields") {
			k = append(k, Field{
				rapid.SampledFrom(capture.Layers()).Draw(t, "layer"),
				rapid.IntRange(0, 100).Draw(t, "offset"),
				rapid.SampledFrom([]int{0, 1, 3, 8, 16, 32, 33, 48, 64, 65, 128, 200}).Draw(t, "bits"),
			})
		}
		x, err := NewExtractor(k)
		if err != nil {
			t.Fatal(err)
		}
		groups := map[string]string{} // by words
		texts := map[string]string{}
		table := newGroupTable(x.Words())
		for range 30 {
			f := Flow{Proto: rapid.SampledFrom([]uint8{1, 6, 17, 132, 47}).Draw(t, "proto"), SrcPort: uint16(rapid.IntRange(1, 2).Draw(t, "port")), DstPort: 7}
			f.Src, f.Dst = v4(uint32(rapid.IntRange(1, 2).Draw(t, "src"))), v4(9)
			if rapid.Bool().Draw(t, "v6") {
				f.Src, f.Dst = v6(uint64(rapid.IntRange(1, 2).Draw(t, "src"))), v6(9)
			}
			data := f.AppendHeaders(nil, 100)
			data = append(data, make([]byte, rapid.SampledFrom([]int{0, 0, 30}).Draw(t, "payload"))...)
			data = data[:len(data)-rapid.SampledFrom([]int{0, 0, 0, 5, 20}).Draw(t, "cut")]
			var h capture.Headers
			h.Parse(&capture.Packet{Link: capture.Ethernet2, Data: data})
			out := make([]uint64, x.Words())
			ok, cut := x.Extract(&h, out)

			var want []string
			wantOK, wantCut := len(k) == 0, false
			for _, field := range k {
				text, there := "-", h.Has(field.Layer)
				if there {
					if text, there = bitsOf(h.Bytes(field.Layer), field.Offset, field.Bits); !there && field.Bits > 0 {
						text, wantCut = "-", true
					} else {
						text, wantOK = "+"+text, true
					}
				}
				want = append(want, text)
			}
			if ok != wantOK || cut != wantCut {
				t.Fatalf("%v: there %v, cut %v, want %v, %v", k, ok, cut, wantOK, wantCut)
			}
			identity := strings.Join(want, " ")
			number := string(rune(table.number(out, hash(out)) + '0'))
			if before, seen := groups[number]; seen && before != identity {
				t.Fatalf("%v: %s and %s are one group", k, before, identity)
			}
			if before, seen := texts[identity]; seen && before != number {
				t.Fatalf("%v: %s is two groups", k, identity)
			}
			groups[number], texts[identity] = identity, number
			// Labels say the same.
			for i, label := range x.Format(out) {
				if (label == "-") != (want[i] == "-") {
					t.Fatalf("%v: labels %v of %v", k, x.Format(out), want)
				}
			}
		}
	})
}

func TestLabels(t *testing.T) {
	f := Flow{Src: v4(0x0a010203), Dst: v4(0xc0000201), Proto: 6, SrcPort: 80, DstPort: 443}
	var h capture.Headers
	h.Parse(&capture.Packet{Link: capture.Ethernet2, Data: f.AppendHeaders(nil, 100)})
	k := Key{EtherSource, IPv4Source, IPv4Dest, IPv4Proto, TCPSource, TCPDest, UDPDest, {capture.IPv4, 156, 4}, {capture.IPv4, 96, 64}, {capture.IPv4, 96, 72}, {Layer: capture.TCP}}
	x, err := NewExtractor(k)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]uint64, x.Words())
	if ok, cut := x.Extract(&h, out); !ok || cut {
		t.Errorf("there %v, cut %v", ok, cut)
	}
	want := []string{"02:00:00:00:00:01", "10.1.2.3", "192.0.2.1", "6", "80", "443", "-", "1", "720859630485373441", "0x0a010203c000020100", "tcp"}
	if got := x.Format(out); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := k.String(), "ethernet.src,ipv4.src,ipv4.dst,ipv4.proto,tcp.sport,tcp.dport,udp.dport,ipv4[156:160],ipv4[96:160],ipv4[96:168],tcp"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestKeyRefusals(t *testing.T) {
	for want, k := range map[string]Key{
		"a key of 65 fields":                                 make(Key, 65),
		"field 1 of the key: layer 99 is not a layer":        {{99, 0, 1}},
		"field 2 of the key: 1 bits at bit -1 of ipv4":       {IPv4Source, {capture.IPv4, -1, 1}},
		"field 1 of the key: 5000 bits at bit 0 of payload":  {{capture.Payload, 0, 5000}},
		"field 1 of the key: 1 bits at bit 70000 of payload": {{capture.Payload, 70000, 1}},
		"a key of 8192 bits; expected at most 4096":          {{capture.Payload, 0, 4096}, {capture.Payload, 4096, 4096}},
	} {
		if _, err := NewExtractor(k); fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		if _, err := FlowVolumes(strings.NewReader(""), "x", []Key{k}); fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// Keys in a table keep their numbers and counts while it grows.
func TestGroupTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(1, 3).Draw(t, "width")
		keys := rapid.IntRange(1, 20_000).Draw(t, "keys")
		table := newGroupTable(width)
		key := make([]uint64, width)
		for round := range 2 {
			for i := range keys {
				key[0], key[width-1] = uint64(i)<<32, uint64(i)
				h := hash(key)
				table.touch([]uint32{h})
				n := table.number(key, h)
				if n != i {
					t.Fatalf("key %d has number %d in round %d", i, n, round)
				}
				table.add(n, float64(i), 1)
			}
		}
		packets, bytes := table.counts()
		for i := range packets {
			if packets[i] != 2*float64(i) || bytes[i] != 2 {
				t.Fatalf("key %d has %v packets, %v bytes", i, packets[i], bytes[i])
			}
		}
		if len(packets) != keys {
			t.Fatalf("%d numbers for %d keys", len(packets), keys)
		}
	})
}
