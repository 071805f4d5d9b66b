package traffic

import (
	"bytes"
	"encoding/json"
	"math"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"nicprof/internal/fault"
	"nicprof/traffic/capture"
)

func write(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoadYAML(t *testing.T) {
	imix, _ := NamedSizes("imix")
	facebook, _ := NamedSizes("facebook")
	for in, want := range map[string]Traffic{
		"rate_mpps: 5.5\nsize: 128\nflows: {count: 10, popularity: zipf, alpha: 1.1}\n": {RateMpps: 5.5, PacketBytes: 128, Flows: &Flows{Count: 10, Popularity: "zipf", Alpha: 1.1}, Shape: Shape{Alpha: 1.1}},
		"size: imix\n":     {Sizes: imix},
		"size: facebook\n": {Sizes: facebook.Packets()},
		"branches: {hit: 0.9}\nmax_flow_pps: {nat: 1000}\n": {Branches: map[string]float64{"hit": .9}, MaxFlowPPS: map[string]float64{"nat": 1000}},
	} {
		got, err := Load(write(t, "t.yaml", []byte(in)))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v", in, got, err, want)
		}
	}
}

func TestLoadCDF(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"packets.txt": "64 50\n1500 100\n",
		"segments":    "1 0.5\n10 1\n",
		"t.yaml":      "size: {cdf: packets.txt, read: linear, unit: bytes}\n",
		"u.yaml":      "size: {cdf: segments, read: step, unit: 1460}\n",
		"bad.yaml":    "size: {cdf: bad.txt, read: step, unit: bytes}\n",
		"bad.txt":     "64 50\n1500\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Load(filepath.Join(dir, "t.yaml"))
	if want := (&Sizes{Name: "packets", Linear: true, Bytes: []float64{64, 1500}, P: []float64{.5, 1}}); err != nil || !reflect.DeepEqual(got.Sizes, want) {
		t.Errorf("got %+v, %v", got.Sizes, err)
	}
	got, err = Load(filepath.Join(dir, "u.yaml"))
	if err != nil || got.Sizes.Mean() != PayloadBytes+HeaderBytes {
		t.Errorf("whole segments are full frames: got %+v, %v", got.Sizes, err)
	}
	_, err = Load(filepath.Join(dir, "bad.yaml"))
	if err == nil || !strings.Contains(err.Error(), "bad.txt:2: 1 fields") || fault.KindOf(err) != fault.Input {
		t.Errorf("got %v", err)
	}
}

// Flows by a published distribution or a file of one: with their number, shares
// that sum to 1; without, the shape alone.
func TestFlowVolumeShapes(t *testing.T) {
	got, err := Load(write(t, "t.yaml", []byte("flows: {count: 1000, volumes: agh2015}\n")))
	if err != nil || got.Flows.Count != 1000 || len(got.Flows.Shares) != 1000 || got.Shape.Volumes == nil {
		t.Fatalf("got %+v, %v", got.Flows, err)
	}
	if top := got.Flows.Shares[0]; top < 0.05 || top > 0.9 || !near(sum(got.Flows.Shares), 1, 1e-9) {
		t.Errorf("the largest of 1000 flows has %v of %v", top, sum(got.Flows.Shares))
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"cdf": "1 0.5\n3 1\n", "t.yaml": "flows: {count: 4, volumes: {cdf: cdf, read: step, unit: packets}}\n", "u.yaml": "flows: {volumes: {cdf: cdf, read: linear, unit: 100}}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := Load(filepath.Join(dir, "t.yaml")); err != nil || !reflect.DeepEqual(got.Flows.Shares, []float64{3. / 8, 3. / 8, 1. / 8, 1. / 8}) {
		t.Errorf("got %+v, %v", got.Flows, err)
	}
	if got, err := Load(filepath.Join(dir, "u.yaml")); err != nil || got.Flows != nil || !got.Shape.Volumes.Linear || got.Shape.Volumes.Max() != 300 {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := Load(write(t, "z.yaml", []byte("flows: {count: 4, popularity: zipf, alpha: 1.2}\n"))); err != nil || got.Shape != (Shape{Alpha: 1.2}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestYAMLComplaints(t *testing.T) {
	for in, want := range map[string]string{
		"rate_mpps: -1\n":          "t.yaml:1: rate_mpps: -1 is not a rate",
		"rate_mpps: .nan\n":        "t.yaml:1: rate_mpps: NaN is not a rate",
		"rate_mpps: 1\nsize: 20\n": "t.yaml:2: size: 20 is not a packet size; expected a whole number of 64..9216 bytes",
		"size: 99.5\n":             "t.yaml:1: size: 99.5 is not a packet size",
		"size: emix\n":             `t.yaml:1: size: no size distribution "emix"; there are imix`,
		"size: [1]\n":              "t.yaml:1: size: expected BYTES, NAME (imix",
		"size: {cdf: nowhere.txt, read: step, unit: 1}\n": "t.yaml:1: size.cdf: open ",
		"size:\n  cdf: x\n  read: cubic\n":                "t.yaml:3: size.read: cubic is neither step nor linear",
		"size: {cdf: x, unit: bytes}\n":                   "t.yaml:1: size: expected read: step (sizes are those in the file) or linear",
		"size: {cdf: x, read: step}\n":                    "t.yaml:1: size: expected unit: bytes, or the number of bytes in one",
		"flows: {volumes: caida}\n":                       `t.yaml:1: flows.volumes: no distribution of flow volumes "caida"; there are agh2015, facebook`,
		"flows: {volumes: 7}\n":                           "t.yaml:1: flows.volumes: expected NAME (agh2015",
		"flows: {volumes: {cdf: x}}\n":                    "t.yaml:1: flows.volumes: expected unit: packets or bytes, or the number of packets in one",
		"flows:\n  volumes: agh2015\n  alpha: 1\n":        "t.yaml:2: flows.volumes: a distribution of flow volumes beside a popularity",
		"flows: {count: 0, volumes: agh2015}\n":           "t.yaml:1: flows.count: 0 flows by a distribution of volumes; expected 1..20000000",
		"flows: {popularity: uniform}\n":                  "t.yaml:1: flows.count: 0 flows",
		"size: {cdf: x, unit: bits}\n":                    `t.yaml:1: size.unit: "bits" is not a unit`,
		"size: {cdf: x, unit: 0}\n":                       "t.yaml:1: size.unit: 0 is not a unit",
		"size: {cdf: x, unit: [1]}\n":                     "t.yaml:1: size.unit: expected bytes",
		"size: {read: step}\n":                            "t.yaml:1: size.cdf: expected the path of a file",
		"size: {cdf: x, file: y}\n":                       "t.yaml:1: size.file: unknown key; known are cdf, read, unit",
		"flows: {count: 0}\n":                             "t.yaml:1: flows.count: 0 flows",
		"flows: {count: 5, shares: [1]}\n":                `t.yaml:1: flows: unknown key "shares"`,
		"branches: {hit: 1.5}\n":                          "t.yaml:1: branches.hit: 1.5 is not a ratio",
		"max_flow_pps: {nat: -1}\n":                       "t.yaml:1: max_flow_pps.nat: -1 is not a rate",
		"rate: 1\n":                                       `t.yaml:1: unknown key "rate"`,
		"- {at_s: 0, rate_mpps: 1}\n":                     "t.yaml:1: a list of times is a timeline; expected a single traffic",
		"\trate_mpps: 1\n":                                "t.yaml:1: a tab in the indentation",
		"":                                                "t.yaml:1: the file is empty",
	} {
		_, err := Load(write(t, "t.yaml", []byte(in)))
		if err == nil || !strings.Contains(err.Error(), want) || fault.KindOf(err) != fault.Input {
			t.Errorf("%q: got %v, want %s", in, err, want)
		}
	}
	for _, path := range []string{"nowhere.pcap", write(t, "t.txt", []byte("hello"))} {
		if _, err := Load(path); fault.KindOf(err) != fault.Input {
			t.Errorf("%s: got %v", path, err)
		}
	}
}

func TestLoadFlows(t *testing.T) {
	const in = `# three flows
src,dst,proto,sport,dport,pps,bytes
10.0.0.1,10.0.0.2,udp,1,2,100000,64
10.0.0.1,10.0.0.2,TCP,1,2,300000,1500
::1,2001:db8::2,47,0,0,600000,64
10.9.9.9,10.0.0.2,udp,1,2,0,64
`
	got, err := Load(write(t, "f.csv", []byte(in)))
	want := Traffic{
		RateMpps: 1,
		Flows:    &Flows{Count: 3, Shares: []float64{.6, .3, .1}},
		Sizes:    &Sizes{Bytes: []float64{64, 1500}, P: []float64{.7, 1}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v %+v %+v, %v", got, got.Flows, got.Sizes, err)
	}
	const header = "src,dst,proto,sport,dport,pps,bytes\n"
	for in, want := range map[string]string{
		"":      "f.csv:1: the file is empty; expected the header src,dst",
		"a,b\n": "f.csv:1: expected the header src,dst,proto,sport,dport,pps,bytes, got a,b",
		header:  "f.csv: no flow has a packet",
		header + "10.0.0.1,10.0.0.2,udp,1,2,0,64\n":                                     "f.csv: no flow has a packet",
		header + "10.0.0.1,10.0.0.2,udp,1,2\n":                                          "f.csv:2: expected 7 fields: src,dst",
		header + "10.0.0,10.0.0.2,udp,1,2,1,64\n":                                       `f.csv:2: src: "10.0.0" is not an IP address`,
		header + "10.0.0.1,x,udp,1,2,1,64\n":                                            `f.csv:2: dst: "x" is not an IP address`,
		header + "10.0.0.1,10.0.0.2,quic,1,2,1,64\n":                                    `f.csv:2: proto: "quic" is not a protocol`,
		header + "10.0.0.1,10.0.0.2,udp,70000,2,1,64\n":                                 `f.csv:2: sport: "70000" is not a port`,
		header + "10.0.0.1,10.0.0.2,udp,1,-2,1,64\n":                                    `f.csv:2: dport: "-2" is not a port`,
		header + "10.0.0.1,10.0.0.2,udp,1,2,NaN,64\n":                                   `f.csv:2: pps: "NaN" is not a rate`,
		header + "10.0.0.1,10.0.0.2,udp,1,2,1,20\n":                                     `f.csv:2: bytes: "20" is not a packet size`,
		header + "# c\n10.0.0.1,10.0.0.2,udp,1,2,1,64\n10.0.0.1,10.0.0.2,17,1,2,1,64\n": "f.csv:4: this flow is already on line 3",
		header + "\"10.0.0.1,10.0.0.2,udp,1,2,1,64\n":                                   "f.csv:",
	} {
		_, err := Load(write(t, "f.csv", []byte(in)))
		if err == nil || !strings.Contains(err.Error(), want) || fault.KindOf(err) != fault.Input {
			t.Errorf("%q: got %v, want %s", in, err, want)
		}
	}
}

// frames are what the captures of the tests hold: three UDP packets of a flow,
// one TCP of another, one IPv6, one VLAN-tagged UDP of the first flow, one ARP,
// 100 µs apart.
func frames(t testing.TB) [][]byte {
	t.Helper()
	mac := net.HardwareAddr{2, 0, 0, 0, 0, 1}
	eth := func(typ layers.EthernetType) *layers.Ethernet {
		return &layers.Ethernet{SrcMAC: mac, DstMAC: mac, EthernetType: typ}
	}
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: net.IP{10, 0, 0, 1}, DstIP: net.IP{10, 0, 0, 2}}
	udp := &layers.UDP{SrcPort: 1000, DstPort: 2000}
	if err := udp.SetNetworkLayerForChecksum(ip); err != nil {
		t.Fatal(err)
	}
	tcpIP := *ip
	tcpIP.Protocol = layers.IPProtocolTCP
	tcp := &layers.TCP{SrcPort: 1000, DstPort: 2000}
	if err := tcp.SetNetworkLayerForChecksum(&tcpIP); err != nil {
		t.Fatal(err)
	}
	ip6 := &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolUDP, SrcIP: net.ParseIP("2001:db8::1"), DstIP: net.ParseIP("2001:db8::2")}
	udp6 := &layers.UDP{SrcPort: 1000, DstPort: 2000}
	if err := udp6.SetNetworkLayerForChecksum(ip6); err != nil {
		t.Fatal(err)
	}
	arp := &layers.ARP{AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4, Operation: layers.ARPRequest,
		SourceHwAddress: mac, SourceProtAddress: []byte{10, 0, 0, 1}, DstHwAddress: mac, DstProtAddress: []byte{10, 0, 0, 2}}
	payload := func(n int) gopacket.Payload { return make([]byte, n) }
	var out [][]byte
	for _, packet := range [][]gopacket.SerializableLayer{
		{eth(layers.EthernetTypeIPv4), ip, udp, payload(958)},
		{eth(layers.EthernetTypeIPv4), ip, udp, payload(958)},
		{eth(layers.EthernetTypeIPv4), ip, udp, payload(2)},
		{eth(layers.EthernetTypeIPv4), &tcpIP, tcp, payload(958)},
		{eth(layers.EthernetTypeIPv6), ip6, udp6, payload(10)},
		{eth(layers.EthernetTypeDot1Q), &layers.Dot1Q{VLANIdentifier: 7, Type: layers.EthernetTypeIPv4}, ip, udp, payload(954)},
		{eth(layers.EthernetTypeARP), arp},
	} {
		buf := gopacket.NewSerializeBuffer()
		if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, packet...); err != nil {
			t.Fatal(err)
		}
		out = append(out, bytes.Clone(buf.Bytes()))
	}
	return out
}

type captureWriter interface {
	WritePacket(gopacket.CaptureInfo, []byte) error
}

// writePackets writes frames, cut to snap bytes, 100 µs apart.
func writePackets(t testing.TB, w captureWriter, frames [][]byte, snap int) {
	t.Helper()
	start := time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)
	for i, f := range frames {
		info := gopacket.CaptureInfo{Timestamp: start.Add(time.Duration(i) * 100 * time.Microsecond), Length: len(f), CaptureLength: min(len(f), snap)}
		if err := w.WritePacket(info, f[:info.CaptureLength]); err != nil {
			t.Fatal(err)
		}
	}
}

func pcap(t testing.TB, frames [][]byte, snap int, link layers.LinkType) []byte {
	t.Helper()
	var b bytes.Buffer
	w := pcapgo.NewWriter(&b)
	if err := w.WriteFileHeader(65536, link); err != nil {
		t.Fatal(err)
	}
	writePackets(t, w, frames, snap)
	return b.Bytes()
}

func pcapng(t testing.TB, frames [][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := pcapgo.NewNgWriter(&b, layers.LinkTypeEthernet)
	if err != nil {
		t.Fatal(err)
	}
	writePackets(t, w, frames, 65536)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestLoadCapture(t *testing.T) {
	all := frames(t)
	for name, data := range map[string][]byte{
		"t.pcap":       pcap(t, all, 65536, layers.LinkTypeEthernet),
		"headers.pcap": pcap(t, all, 54, layers.LinkTypeEthernet),
		"any.name":     pcapng(t, all),
	} {
		got, err := Load(write(t, name, data))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if want := []float64{4. / 7, 1. / 7, 1. / 7, 1. / 7}; got.Flows.Count != 4 || !reflect.DeepEqual(got.Flows.Shares, want) {
			t.Errorf("%s: flows %+v, want shares %v", name, got.Flows, want)
		}
		// 1000 B frames with check sequence 1004, 1004, …, TCP 1016; small
		// ones are padded: 44, 42 → 64, IPv6 72 → 76.
		if want := (&Sizes{Bytes: []float64{64, 76, 1004, 1016}, P: []float64{2. / 7, 3. / 7, 6. / 7, 1}}); !reflect.DeepEqual(got.Sizes, want) {
			t.Errorf("%s: sizes %+v, want %+v", name, got.Sizes, want)
		}
		if math.Abs(got.RateMpps-0.01) > 1e-9 { // 6 gaps of 100 µs
			t.Errorf("%s: rate %v Mpps, want 0.01", name, got.RateMpps)
		}
		if err := got.Check().Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	ip := [][]byte{all[0][14:], all[0][14:]}
	got, err := Load(write(t, "raw.pcap", pcap(t, ip, 65536, layers.LinkTypeRaw)))
	if err != nil || got.PacketBytes != 1004 || got.Sizes != nil || got.Flows.Count != 1 {
		t.Errorf("raw IP: got %+v, %v", got, err)
	}
}

func TestCaptureComplaints(t *testing.T) {
	all := frames(t)
	good := pcap(t, all, 65536, layers.LinkTypeEthernet)
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"header.pcap", good[:10], "header.pcap: not a capture"},
		{"empty.pcap", good[:24], "empty.pcap: a capture without packets"},
		{"wifi.pcap", pcap(t, all, 65536, layers.LinkTypeIEEE802_11), "wifi.pcap: link type"},
		{"lro.pcap", pcap(t, [][]byte{append(bytes.Clone(all[0]), make([]byte, 20000)...)}, 65536, layers.LinkTypeEthernet), "lro.pcap: packet 1: 21004 bytes; expected at most 9216"},
	} {
		_, err := Load(write(t, c.name, c.data))
		if err == nil || !strings.Contains(err.Error(), c.want) || fault.KindOf(err) != fault.Input {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
}

// A capture that is cut gives the packets before the cut, and says so.
func TestCutCapture(t *testing.T) {
	all := frames(t)
	good := pcap(t, all, 65536, layers.LinkTypeEthernet)
	got, err := Load(write(t, "cut.pcap", good[:len(good)-5]))
	if err != nil || len(got.Flows.Shares) != 3 || got.Flows.Shares[0] != 4./6 {
		t.Errorf("got %+v, %v, want the six packets before", got.Flows, err)
	}
	if len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "cut.pcap: the file ends in the middle of packet 7; what is before it was read") {
		t.Errorf("warnings %q", got.Warnings)
	}
}

// The shares stay out of JSON when there are none, and come back when there are.
func TestFlowsJSON(t *testing.T) {
	for text, w := range map[string]Flows{`{"count":3}`: {Count: 3}, `{"count":2,"shares":[0.75,0.25]}`: {Count: 2, Shares: []float64{.75, .25}}} {
		if got, err := json.Marshal(w); err != nil || string(got) != text {
			t.Errorf("got %s, %v, want %s", got, err, text)
		}
	}
}

func TestParseFlows(t *testing.T) {
	for spec, want := range map[string]Flows{
		"1000":           {Count: 1000},
		"1000:zipf:0.99": {Count: 1000, Popularity: "zipf", Alpha: .99},
	} {
		got, err := ParseFlows(spec)
		if err != nil || !reflect.DeepEqual(got, want) || got.String() != spec {
			t.Errorf("%s: got %+v %s, %v", spec, got, got, err)
		}
	}
	for _, spec := range []string{"", "x", "0", "-1", "1.5", "10:zipf", "10:zipf:", "10:zipf:0", "10:zipf:NaN", "10:zipf:-1", "10:zipf:21", "10:uniform:1", "10:zipf:1:2", "9999999999999999999"} {
		if w, err := ParseFlows(spec); fault.KindOf(err) != fault.Input {
			t.Errorf("%q: got %+v, %v", spec, w, err)
		}
	}
}

func TestFlowsCheckShares(t *testing.T) {
	for want, w := range map[string]Flows{
		"shares: 1 shares for 2 flows":                            {Count: 2, Shares: []float64{1}},
		"shares: the shares sum to 0.5, not to 1":                 {Count: 1, Shares: []float64{.5}},
		"shares: -1 is not a share of the packets; expected 0..1": {Count: 2, Shares: []float64{-1, 2}},
	} {
		if err := w.Check().Err(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func FuzzParseFlows(f *testing.F) {
	f.Add("1000:zipf:0.99")
	f.Fuzz(func(t *testing.T, spec string) {
		w, err := ParseFlows(spec)
		if err != nil {
			return
		}
		if again, err := ParseFlows(w.String()); err != nil || !reflect.DeepEqual(again, w) {
			t.Fatalf("%q: %+v reads back as %+v, %v", spec, w, again, err)
		}
	})
}

// valid checks what every reader of traffic promises.
func valid(t *testing.T, got Traffic, err error) {
	t.Helper()
	if err == nil {
		err = got.Check().Err()
		if err != nil {
			t.Fatalf("read traffic that is not valid: %+v: %v", got, err)
		}
	} else if fault.KindOf(err) != fault.Input {
		t.Fatalf("not a fault of the user's: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("rate_mpps: 5\nsize: facebook\nflows: {count: 3}\nbranches: {a: 0.5}\n"))
	f.Add([]byte("size: {cdf: x, read: step, unit: bytes}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := Parse(data, "/nonexistent/t.yaml")
		valid(t, got, err)
	})
}

func FuzzReadFlows(f *testing.F) {
	f.Add([]byte("src,dst,proto,sport,dport,pps,bytes\n10.0.0.1,::1,udp,1,2,3e5,64\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := ReadFlows(bytes.NewReader(data), "f.csv")
		valid(t, got, err)
	})
}

func FuzzReadCapture(f *testing.F) {
	f.Add(pcap(f, frames(f), 65536, layers.LinkTypeEthernet))
	f.Add(pcapng(f, frames(f)))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := ReadCapture(bytes.NewReader(data), "t.pcap")
		valid(t, got, err)
		s, err := capture.FromReader(bytes.NewReader(data), "t.pcap")
		if err != nil {
			return
		}
		v, err := sourceVolumes(s, []Key{FiveTuple(), {IPv4Dest}, {}}, VolumeOptions{Window: 1}, "t.pcap")
		if err != nil {
			if fault.KindOf(err) != fault.Input {
				t.Fatalf("not a fault of the user's: %v", err)
			}
			return
		}
		if sum(v.Packets) != v.TotalPackets || v.Keys[2].Packets[0] != v.TotalPackets || v.Seconds < 0 {
			t.Fatalf("%+v", v)
		}
	})
}
