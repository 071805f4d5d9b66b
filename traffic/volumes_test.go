package traffic

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/gopacket/gopacket/layers"

	"nicprof/traffic/capture"
)

func captureVolumes(t *testing.T, data []byte, o VolumeOptions, keys ...Key) *Volumes {
	t.Helper()
	v, err := CaptureVolumes([]string{write(t, "t.pcap", data)}, keys, o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// labels are the groups of a key with their packets.
func labels(g *Groups) map[string]float64 {
	m := map[string]float64{}
	for i := range g.N() {
		m[strings.Join(g.Label(i), " ")] = g.Packets[i]
	}
	return m
}

// The packets of frames(t) by several keys at once: every key's groups, and
// the classes that join them.
func TestCaptureVolumes(t *testing.T) {
	all := frames(t)
	v := captureVolumes(t, pcap(t, all, 65536, layers.LinkTypeEthernet), VolumeOptions{},
		Key{IPv4Source, IPv4Dest},
		Key{IPv4Proto, IPv6Dest},
		Key{VLANID},
		Key{},
		Key{TCPDest, UDPDest},
	)
	for i, want := range []map[string]float64{
		{"10.0.0.1 10.0.0.2": 5},
		{"17 -": 4, "6 -": 1, "- 2001:db8::2": 1},
		{"7": 1},
		{"": 7},
		{"- 2000": 5, "2000 -": 1},
	} {
		if got := labels(v.Keys[i]); !reflect.DeepEqual(got, want) {
			t.Errorf("by %v: got %v, want %v", v.Keys[i].Key, got, want)
		}
	}
	// UDP 3, TCP 1, IPv6 1, VLAN 1, ARP 1.
	if want := []float64{3, 1, 1, 1, 1}; !reflect.DeepEqual(v.Packets, want) {
		t.Errorf("classes of %v packets, want %v", v.Packets, want)
	}
	if want := [][]int32{{0, 0, -1, 0, -1}, {0, 1, 2, 0, -1}, {-1, -1, -1, 0, -1}, {0, 0, 0, 0, 0}, {0, 1, 0, 0, -1}}; !reflect.DeepEqual(v.Group, want) {
		t.Errorf("classes in groups %v, want %v", v.Group, want)
	}
	if want := []float64{1004 + 1004 + 64, 1016, 76, 1004, 64}; !reflect.DeepEqual(v.Bytes, want) {
		t.Errorf("classes of %v bytes, want %v", v.Bytes, want)
	}
	if got := v.Mpps(); got < 0.0099999 || got > 0.0100001 {
		t.Errorf("%v Mpps, want 0.01: six gaps of 100 µs", got)
	}
	if v.Warnings != nil || v.Cut != 0 {
		t.Errorf("warnings %q, %d cut", v.Warnings, v.Cut)
	}
}

// A flow CSV and a capture of the same flows come to the same groups.
func TestFlowVolumes(t *testing.T) {
	const in = `src,dst,proto,sport,dport,pps,bytes
10.0.0.1,10.0.0.2,udp,1,2,100000,64
10.0.0.3,10.0.0.2,TCP,1,80,300000,1500
::1,2001:db8::2,47,0,0,600000,64
10.9.9.9,10.0.0.2,udp,1,2,0,64
`
	v, err := FlowVolumes(strings.NewReader(in), "f.csv", []Key{{IPv4Dest}, {TCPDest}, {IPv6Source}, {{Layer: capture.IPv4}}})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []map[string]float64{{"10.0.0.2": 4e5}, {"80": 3e5}, {"::1": 6e5}, {"ipv4": 4e5}} {
		if got := labels(v.Keys[i]); !reflect.DeepEqual(got, want) {
			t.Errorf("by %v: got %v, want %v", v.Keys[i].Key, got, want)
		}
	}
	if v.Mpps() != 1 || v.Classes() != 3 || v.FrameBytes() != .1*64+.3*1500+.6*64 {
		t.Errorf("%v Mpps in %d classes, %v B", v.Mpps(), v.Classes(), v.FrameBytes())
	}
}

// The headers that stand for a flow are read back as that flow's.
func TestFlowHeaders(t *testing.T) {
	const in = "src,dst,proto,sport,dport,pps,bytes\n10.1.2.3,10.4.5.6,tcp,7,8,1,100\n2001::1,2001::2,sctp,9,10,1,100\n"
	var got []string
	var h capture.Headers
	x, err := NewExtractor(FiveTuple())
	if err != nil {
		t.Fatal(err)
	}
	out := make([]uint64, x.Words())
	if err := readFlows(strings.NewReader(in), "", func(f flowRate) {
		b := f.flow.AppendHeaders(nil, f.bytes)
		h.Parse(&capture.Packet{Link: capture.Ethernet2, Data: b})
		x.Extract(&h, out)
		got = append(got, strings.Join(x.Format(out), " "))
		if d := h.Bytes(capture.IPv4); d != nil && !bytes.Equal(d[10:12], []byte{0x1f, 0x99}) {
			t.Errorf("checksum % x", d[10:12])
		}
	}); err != nil {
		t.Fatal(err)
	}
	if want := []string{
		"10.1.2.3 10.4.5.6 6 - - 458760 - - - -",
		"- - - 2001::1 2001::2 - - 589834 - -",
	}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
