package traffic

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"pgregory.net/rapid"

	"nicprof/internal/fault"
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

// rawCapture is a pcap of the same flow's packets at the given times in ns.
func rawCapture(t *testing.T, name string, src uint32, times ...int64) string {
	t.Helper()
	b := pcapHeader()
	f := Flow{Src: v4(src), Dst: v4(9), Proto: 17, SrcPort: 1, DstPort: 2}
	for _, at := range times {
		b = appendPacket(b, at, f.AppendHeaders(nil, 100), 96)
	}
	return write(t, name, b)
}

// Several captures are one, in the order of time; what no capture covers is no
// time, so that clocks years apart do not spoil the rate.
func TestSeveralCaptures(t *testing.T) {
	const second, year = int64(1e9), int64(365 * 86400 * 1e9)
	a := rawCapture(t, "a.pcap", 1, 40*year, 40*year+second, 40*year+2*second)
	b := rawCapture(t, "b.pcap", 2, second, 2*second, 3*second)
	v, err := CaptureVolumes([]string{a, b}, []Key{{IPv4Source}}, VolumeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := labels(v.Keys[0]), map[string]float64{"0.0.0.1": 3, "0.0.0.2": 3}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := v.Mpps() * 1e6; !near(got, 1, 1e-9) { // four gaps in four seconds
		t.Errorf("%v packets a second, want 1", got)
	}
	// The same through a YAML file, which says more and overrides.
	yaml := write(t, "t.yaml", []byte("captures: ["+a+", "+b+"]\nbranches: {http: 0.3}\n"))
	tr, v, err := LoadVolumes(yaml, []Key{{IPv4Source}}, VolumeOptions{})
	if err != nil || v == nil || v.TotalPackets != 6 || tr.Branches["http"] != .3 {
		t.Errorf("got %+v, %+v, %v", tr, v, err)
	}
	got, err := Load(yaml)
	if err != nil || got.Flows.Count != 2 || got.PacketBytes != 100 || !near(got.RateMpps, 1e-6, 1e-9) || got.Branches["http"] != .3 {
		t.Errorf("got %+v, %v", got, err)
	}
	over := write(t, "over.yaml", []byte("captures: ["+a+"]\nrate_mpps: 5\nsize: 200\nflows: {count: 7}\n"))
	if got, err := Load(over); err != nil || got.RateMpps != 5 || got.PacketBytes != 200 || got.Flows.Count != 7 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// The peak is the rate in a group's busiest window, wherever its packets are.
func TestPeak(t *testing.T) {
	ms := func(times ...int64) []int64 {
		for i := range times {
			times[i] = 1e18 + times[i]*1e6
		}
		return times
	}
	a := rawCapture(t, "a.pcap", 1, ms(0, 50, 99, 100, 250, 251, 252, 253, 240, 900)...) // 3, 1, 5, …, 1
	b := rawCapture(t, "b.pcap", 2, ms(310, 320)...)
	v, err := CaptureVolumes([]string{a, b}, []Key{{IPv4Source}, {TCPDest}}, VolumeOptions{Window: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	if got := v.Keys[0].Peak; len(got) != 2 || !near(got[0], 50, 1e-9) || !near(got[1], 20, 1e-9) {
		t.Errorf("peaks %v, want 50 and 20", got)
	}
	if got := v.Keys[1].Peak; len(got) != 0 {
		t.Errorf("peaks %v of no group", got)
	}
	if _, err := CaptureVolumes([]string{a}, nil, VolumeOptions{Window: -1}); fault.KindOf(err) != fault.Input {
		t.Errorf("got %v", err)
	}
}

// Fragments go with the ports of their first; what comes without, and what was
// captured without a field, is counted and said.
func TestVolumesOfIncompletePackets(t *testing.T) {
	first := Flow{Src: v4(1), Dst: v4(9), Proto: 17, SrcPort: 1, DstPort: 53}.AppendHeaders(nil, 1500)
	first[20] = 0x20 // more fragments
	later := bytes.Clone(first)
	later[21] = 100
	lost := bytes.Clone(later)
	lost[18] = 77
	whole := Flow{Src: v4(2), Dst: v4(9), Proto: 17, SrcPort: 1, DstPort: 53}.AppendHeaders(nil, 100)
	b := pcapHeader()
	for i, p := range [][]byte{first, later, lost, whole, whole[:35]} {
		b = appendPacket(b, int64(i)*1e6, p, 96)
	}
	v := captureVolumes(t, b, VolumeOptions{}, Key{UDPDest}, Key{IPv4Source, UDPDest})
	if got, want := labels(v.Keys[0]), map[string]float64{"53": 3}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := labels(v.Keys[1]), map[string]float64{"0.0.0.1 53": 2, "0.0.0.1 -": 1, "0.0.0.2 53": 1, "0.0.0.2 -": 1}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if v.LaterFragments != 2 || v.LostFragments != 1 || v.Cut != 1 {
		t.Errorf("%d later fragments, %d lost, %d cut, want 2, 1, 1", v.LaterFragments, v.LostFragments, v.Cut)
	}
	if got := strings.Join(v.Warnings, "\n"); !strings.Contains(got, "1 of 5 packets were captured without a field") || !strings.Contains(got, "1 IP fragments came without the first") {
		t.Errorf("warnings %q", v.Warnings)
	}
}

func TestVolumesComplaints(t *testing.T) {
	empty := write(t, "empty.pcap", pcapHeader())
	wifi := pcapHeader()
	wifi[20] = 105
	radio := write(t, "wifi.pcap", appendPacket(wifi, 0, make([]byte, 30), 96))
	jumbo := write(t, "jumbo.pcap", appendPacket(pcapHeader(), 0, make([]byte, 30), 20000))
	for want, paths := range map[string][]string{
		"no capture; expected at least one":         nil,
		"capture: open ":                            {filepath.Join(t.TempDir(), "nowhere.pcap")},
		"empty.pcap: a capture without packets":     {empty},
		"wifi.pcap: link type 105; expected a capt": {radio},
	} {
		if _, err := CaptureVolumes(paths, nil, VolumeOptions{}); fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	v, err := CaptureVolumes([]string{jumbo}, nil, VolumeOptions{})
	if err != nil || len(v.Warnings) != 1 || !strings.Contains(v.Warnings[0], "1 packets are larger than a jumbo frame") {
		t.Errorf("got %q, %v", v.Warnings, err)
	}
	for _, data := range []string{"", "src,dst,proto,sport,dport,pps,bytes\n10.0.0.1,10.0.0.2,udp,1,2,0,64\n", "src,dst,proto,sport,dport,pps,bytes\n10.0.0.1,::1,udp,1,2,5,64\n"} {
		if _, _, err := LoadVolumes(write(t, "f.csv", []byte(data)), nil, VolumeOptions{}); fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), "f.csv:") {
			t.Errorf("%q: got %v", data, err)
		}
	}
	if tr, v, err := LoadVolumes(write(t, "t.yaml", []byte("rate_mpps: 3\n")), nil, VolumeOptions{}); err != nil || v != nil || tr.RateMpps != 3 {
		t.Errorf("got %+v, %v, %v", tr, v, err)
	}
	if _, _, err := LoadVolumes(write(t, "t.yaml", []byte("captures: [nowhere.pcap]\n")), nil, VolumeOptions{}); fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), "nowhere.pcap") {
		t.Errorf("got %v", err)
	}
	if _, _, err := LoadVolumes("nowhere", nil, VolumeOptions{}); fault.KindOf(err) != fault.Input {
		t.Errorf("got %v", err)
	}
}

// What CaptureWriter writes is read back, and another reader agrees.
func TestCaptureWriter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b bytes.Buffer
		w := NewCaptureWriter(&b)
		type packet struct {
			time  int64
			data  []byte
			frame int
		}
		var want []packet
		for range rapid.IntRange(0, 20).Draw(t, "packets") {
			data := rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "data")
			p := packet{rapid.Int64Range(0, 1<<32*1e9-1).Draw(t, "time"), data, max(64, len(data)+4+rapid.IntRange(0, 9000).Draw(t, "rest"))}
			w.Write(p.time, p.data, p.frame)
			want = append(want, p)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		ours, err := capture.NewReader(bytes.NewReader(b.Bytes()), "t")
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := pcapgo.NewReader(bytes.NewReader(b.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range want {
			var p capture.Packet
			if err := ours.Next(&p); err != nil || p.Time != x.time || p.FrameBytes() != x.frame || !bytes.Equal(p.Data, x.data) {
				t.Fatalf("got %+v, %v, want %+v", p, err, x)
			}
			data, info, err := theirs.ReadPacketData()
			if err != nil || info.Timestamp.UnixNano() != x.time || info.Length != x.frame-4 || !bytes.Equal(data, x.data) {
				t.Fatalf("pcapgo got %+v, %v, want %+v", info, err, x)
			}
		}
		if err := ours.Next(new(capture.Packet)); err != io.EOF {
			t.Fatal(err)
		}
	})
	broken := errors.New("full")
	w := NewCaptureWriter(failing{broken})
	if err := w.Close(); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
