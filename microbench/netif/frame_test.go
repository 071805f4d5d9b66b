package netif

import (
	"bytes"
	"net"
	"slices"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"pgregory.net/rapid"

	"nicprof/internal/fault"
	"nicprof/program"
	"nicprof/traffic"
)

var (
	testFrom = net.HardwareAddr{2, 0, 0, 0, 0, 1}
	testTo   = net.HardwareAddr{2, 0, 0, 0, 0, 2}
)

const testMark = 0x4711

// decoded reads a frame with a decoder that is not ours, which checks lengths,
// and computes the IPv4 checksum again.
func decoded(t interface{ Fatalf(string, ...any) }, f []byte) (layers.Ethernet, layers.IPv4, layers.UDP) {
	var eth layers.Ethernet
	var ip layers.IPv4
	var udp layers.UDP
	var got []gopacket.LayerType
	// Only to UDP: what a port number stands for is not what it carries here.
	p := gopacket.NewDecodingLayerParser(layers.LayerTypeEthernet, &eth, &ip, &udp)
	p.IgnoreUnsupported = true
	if err := p.DecodeLayers(f, &got); err != nil || len(got) != 3 || p.Truncated {
		t.Fatalf("frame of %d B: %v, layers %v, truncated %v", len(f), err, got, p.Truncated)
	}
	b := gopacket.NewSerializeBuffer()
	again := ip
	if err := again.SerializeTo(b, gopacket.SerializeOptions{ComputeChecksums: true}); err != nil {
		t.Fatalf("%v", err)
	}
	if again.Checksum != ip.Checksum {
		t.Fatalf("checksum %#04x, want %#04x", ip.Checksum, again.Checksum)
	}
	return eth, ip, udp
}

// What the generator builds is a packet to others, and forwarding changes it as
// a router does, whatever the flow and the size.
func TestForwardedFrames(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := make([]byte, rapid.IntRange(minFrame, 9212).Draw(rt, "length"))
		flow := rapid.Uint64Range(0, traffic.MaxFlows).Draw(rt, "flow")
		sequence, now := rapid.Uint64().Draw(rt, "sequence"), rapid.Int64().Draw(rt, "now")
		build(f, testFrom, testTo, flow)
		(&template{frames: [][]byte{f}}).mark(testMark)
		stamp(f, sequence, now)
		eth, ip, udp := decoded(rt, f)
		if !bytes.Equal(eth.SrcMAC, testFrom) || !bytes.Equal(eth.DstMAC, testTo) || ip.TTL != startTTL || ip.Protocol != layers.IPProtocolUDP {
			rt.Fatalf("built %v, %v", eth, ip)
		}
		if int(ip.Length) != len(f)-ethernetLen || int(udp.Length) != len(f)-ethernetLen-ipv4Len {
			rt.Fatalf("%d B: IP length %d, UDP length %d", len(f), ip.Length, udp.Length)
		}
		if !forward(f, testMark) {
			rt.Fatalf("not forwarded")
		}
		eth, ip2, udp2 := decoded(rt, f)
		if !bytes.Equal(eth.SrcMAC, testTo) || !bytes.Equal(eth.DstMAC, testFrom) || ip2.TTL != startTTL-1 {
			rt.Fatalf("forwarded %v, %v", eth, ip2)
		}
		if !ip2.SrcIP.Equal(ip.SrcIP) || !ip2.DstIP.Equal(ip.DstIP) || udp2.SrcPort != udp.SrcPort || udp2.DstPort != udp.DstPort {
			rt.Fatalf("the flow changed from %v to %v", ip, ip2)
		}
		if p := readProbe(f, testFrom, testTo, routed); p != (probe{sequence, now, true}) {
			rt.Fatalf("read %+v, want %d, %d, whole", p, sequence, now)
		}
	})
}

// Flows differ in what a classifier looks at.
func TestFlowsDiffer(t *testing.T) {
	seen := map[string]uint64{}
	for _, flow := range []uint64{0, 1, 255, 256, 65535, 65536, 1 << 31, 1<<32 - 1, 1 << 32, 1<<40 - 1} {
		f := make([]byte, minFrame)
		build(f, testFrom, testTo, flow)
		key := string(f[ethernetLen+12 : probeAt-4])
		if other, twice := seen[key]; twice {
			t.Errorf("flows %d and %d look the same", flow, other)
		}
		seen[key] = flow
	}
}

// The sink sees every change that a forwarder should not have made, or should
// have.
func TestDamageIsSeen(t *testing.T) {
	made := func() []byte {
		f := make([]byte, minFrame)
		build(f, testFrom, testTo, 3)
		(&template{frames: [][]byte{f}}).mark(testMark)
		return f
	}
	f := made()
	if !readProbe(f, testFrom, testTo, change{macs: kept}).whole || readProbe(f, testFrom, testTo, routed).whole {
		t.Error("an untouched frame is not told from a forwarded one")
	}
	copy(f, testTo)
	copy(f[6:], []byte{2, 9, 9, 9, 9, 9})
	if readProbe(f, testFrom, testTo, change{macs: kept}).whole || !readProbe(f, testFrom, testTo, change{macs: rewritten}).whole {
		t.Error("a foreign MAC address is not seen")
	}
	f = made()
	ip := f[ethernetLen:]
	source := slices.Clone(ip[12:16])
	copy(ip[12:16], ip[16:20])
	copy(ip[16:20], source)
	if readProbe(f, testFrom, testTo, change{macs: kept}).whole || !readProbe(f, testFrom, testTo, change{macs: kept, tuple: true}).whole {
		t.Error("swapped addresses are not seen")
	}
	for _, at := range []int{0, 6, ttlAt, checksumAt, ethernetLen + 12, ethernetLen + 19} {
		f = made()
		forward(f, testMark)
		f[at] ^= 1
		if readProbe(f, testFrom, testTo, routed).whole {
			t.Errorf("byte %d was changed and nobody saw it", at)
		}
	}
}

func TestForwardLeavesOthersAlone(t *testing.T) {
	good := make([]byte, minFrame)
	build(good, testFrom, testTo, 1)
	(&template{frames: [][]byte{good}}).mark(testMark)
	for name, spoil := range map[string]func([]byte) []byte{
		"another trial": func(f []byte) []byte { f[probeAt]++; return f },
		"IPv6":          func(f []byte) []byte { f[12], f[13] = 0x86, 0xdd; return f },
		"TCP":           func(f []byte) []byte { f[ethernetLen+9] = 6; return f },
		"IP options":    func(f []byte) []byte { f[ethernetLen] = 0x46; return f },
		"expired":       func(f []byte) []byte { f[ttlAt] = 1; return f },
		"cut short":     func(f []byte) []byte { return f[:minFrame-1] },
		"empty":         func([]byte) []byte { return nil },
	} {
		f := spoil(slices.Clone(good))
		before := slices.Clone(f)
		if forward(f, testMark) || !bytes.Equal(f, before) {
			t.Errorf("%s: forwarded, or changed", name)
		}
	}
}

// Sizes and flows are the traffic's where it gives them, and the program's
// otherwise.
func TestFramesFollowTraffic(t *testing.T) {
	p := program.Program{PacketBytes: 128, Flows: &traffic.Flows{Count: 1}}
	shares := func(t traffic.Traffic) (sizes map[int]float64, flows map[string]float64, longest int) {
		sizes, flows = map[int]float64{}, map[string]float64{}
		tp := frames(p, t, testFrom, testTo, 1)
		for _, f := range tp.frames {
			sizes[len(f)+checkSequence] += 1. / templates
			flows[string(f[ethernetLen+12:ethernetLen+16])] += 1. / templates
		}
		return sizes, flows, tp.longest
	}
	if sizes, flows, longest := shares(traffic.Traffic{}); len(sizes) != 1 || sizes[128] == 0 || len(flows) != 1 || longest != 124 {
		t.Errorf("the program's: sizes %v, %d flows, longest %d", sizes, len(flows), longest)
	}
	imix, err := traffic.NamedSizes("imix")
	if err != nil {
		t.Fatal(err)
	}
	sizes, flows, longest := shares(traffic.Traffic{PacketBytes: 256, Sizes: imix, Flows: &traffic.Flows{Count: 4}})
	// 7:4:1 of 64, 594 and 1518 B; 8192 draws are within 0.03 of that.
	if len(sizes) != 3 || abs(sizes[64]-7./12) > 0.03 || abs(sizes[594]-4./12) > 0.03 || longest != 1514 {
		t.Errorf("imix: sizes %v, longest %d", sizes, longest)
	}
	if len(flows) != 4 {
		t.Errorf("4 flows: %v", flows)
	}
	zipf := traffic.Flows{Count: 1000, Popularity: "zipf", Alpha: 1}
	_, flows, _ = shares(traffic.Traffic{Flows: &zipf})
	top := 0.0
	for _, share := range flows {
		top = max(top, share)
	}
	if want := 1 / traffic.Harmonic(1000, 1); abs(top-want) > 0.03 {
		t.Errorf("the most popular of 1000 Zipf flows has %v of the packets, want %v", top, want)
	}
}

func abs(v float64) float64 { return max(v, -v) }

func TestCheckSizes(t *testing.T) {
	imix, err := traffic.NamedSizes("imix")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		program int
		traffic traffic.Traffic
		most    int
		ok      bool
	}{
		{1518, traffic.Traffic{}, 1518, true},
		{1519, traffic.Traffic{}, 1518, false},
		{9000, traffic.Traffic{PacketBytes: 64}, 1518, true},
		{64, traffic.Traffic{PacketBytes: 9000}, 1518, false},
		{64, traffic.Traffic{Sizes: imix}, 1518, true},
		{64, traffic.Traffic{Sizes: imix}, 1000, false},
	} {
		err := checkSizes(program.Program{PacketBytes: c.program}, c.traffic, c.most)
		if (err == nil) != c.ok || err != nil && fault.KindOf(err) != fault.Input {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// Whatever arrives is read without a panic, and only what bears the mark counts.
func FuzzFrame(f *testing.F) {
	good := make([]byte, minFrame)
	build(good, testFrom, testTo, 1)
	(&template{frames: [][]byte{good}}).mark(testMark)
	f.Add(good)
	f.Add(good[:20])
	f.Fuzz(func(t *testing.T, data []byte) {
		taken := forward(data, testMark)
		if taken && !ours(data, testMark) {
			t.Error("forwarding changed a frame beyond recognition")
		}
		if ours(data, testMark) {
			readProbe(data, testFrom, testTo, routed)
		}
	})
}
