package capture

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"pgregory.net/rapid"
)

// sample is a packet and the first bytes of each layer that it has.
type sample struct {
	name string
	link LinkType
	data []byte
	want map[Layer]string // hex
	cut  bool
	late bool // a later fragment
}

func unhex(parts ...string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(strings.Join(parts, ""), " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

const (
	macs     = "020000000002 020000000001"
	ipUDP    = "45000024 00010000 40110000 0a000001 0a000002" // 20 bytes
	udp      = "03e8 07d0 0010 0000"
	body     = "cafe0102 03040506"
	ip6      = "60000000 0010"
	ip6Rest  = "40 20010db8000000000000000000000001 20010db8000000000000000000000002"
	ports    = "03e807d0"
	v4Start  = "45000024"
	bodyHead = "cafe0102"
)

func samples() []sample {
	udp4 := map[Layer]string{Ethernet: "020000000002", IPv4: v4Start, UDP: ports, Payload: bodyHead}
	with := func(m map[Layer]string, more map[Layer]string) map[Layer]string {
		out := map[Layer]string{}
		for k, v := range m {
			out[k] = v
		}
		for k, v := range more {
			if v == "" {
				delete(out, k)
			} else {
				out[k] = v
			}
		}
		return out
	}
	udp6 := map[Layer]string{Ethernet: "020000000002", IPv6: "60000000", UDP: ports, Payload: bodyHead}
	raw := with(udp4, map[Layer]string{Ethernet: ""})
	return []sample{
		{name: "udp", data: unhex(macs, "0800", ipUDP, udp, body), want: udp4},
		{name: "tcp with options", data: unhex(macs, "0800", "45000030 00010000 40060000 0a000001 0a000002", "03e807d0 00000001 00000002 6010ffff 00000000 020405b4", body),
			want: with(udp4, map[Layer]string{IPv4: "45000030", UDP: "", TCP: ports})},
		{name: "ip options", data: unhex(macs, "0800", "47000030 00010000 40110000 0a000001 0a000002 0101010101010101", udp, body),
			want: with(udp4, map[Layer]string{IPv4: "47000030"})},
		{name: "sctp", data: unhex(macs, "0800", "45000028 00010000 40840000 0a000001 0a000002", "03e807d0 00000000 00000000", body),
			want: with(udp4, map[Layer]string{IPv4: "45000028", UDP: "", SCTP: ports})},
		{name: "icmp", data: unhex(macs, "0800", "45000028 00010000 40010000 0a000001 0a000002", "08000000 00000000"),
			want: map[Layer]string{Ethernet: "02", IPv4: "45000028", ICMP: "0800"}},
		{name: "gre: outer only", data: unhex(macs, "0800", "45000048 00010000 402f0000 0a000001 0a000002", "00000800", ipUDP, udp, body),
			want: map[Layer]string{Ethernet: "02", IPv4: "45000048 0001", Payload: "00000800 45"}},
		{name: "vxlan: outer only", data: unhex(macs, "0800", "45000048 00010000 40110000 0a000001 0a000002", "ffff12b5 00400000", "08000000 00002a00", macs, "0800", ipUDP, udp, body),
			want: map[Layer]string{Ethernet: "02", IPv4: "45000048 0001", UDP: "ffff12b5", Payload: "08000000 00002a00"}},
		{name: "vlan", data: unhex(macs, "8100 0007 0800", ipUDP, udp, body), want: with(udp4, map[Layer]string{VLAN: "0007 0800"})},
		{name: "qinq", data: unhex(macs, "88a8 0064 8100 0007 0800", ipUDP, udp, body), want: with(udp4, map[Layer]string{VLAN: "0064 8100", VLAN2: "0007 0800"})},
		{name: "three tags", data: unhex(macs, "9100 0064 8100 0007 8100 0008 0800", ipUDP, udp, body), want: with(udp4, map[Layer]string{VLAN: "0064 8100", VLAN2: "0007 8100"})},
		{name: "mpls", data: unhex(macs, "8847 00064040 00065140", ipUDP, udp, body), want: with(udp4, map[Layer]string{MPLS: "00064040 00065140"})},
		{name: "arp", data: unhex(macs, "0806 0001 0800"), want: map[Layer]string{Ethernet: "02", NonIP: "0806 0001"}},
		{name: "802.3", data: unhex(macs, "0026 4242 03"), want: map[Layer]string{Ethernet: "02", NonIP: "0026 4242"}},
		{name: "own protocol behind a tag", data: unhex(macs, "8100 0007 1212 abcd"), want: map[Layer]string{Ethernet: "02", VLAN: "0007 1212", NonIP: "1212 abcd"}},
		{name: "ipv6", data: unhex(macs, "86dd", ip6, "11", ip6Rest, udp, body), want: udp6},
		{name: "ipv6 with extension headers", data: unhex(macs, "86dd", ip6, "00", ip6Rest, "2b00 000000000000", "3c02 000000000000 000000000000000000000000 00000000", "3300 000000000000", "1104 0000 00000001 00000001 0000000000000000 00000000", udp, body),
			want: udp6},
		{name: "ipv6 without next header", data: unhex(macs, "86dd", ip6, "3b", ip6Rest), want: map[Layer]string{Ethernet: "02", IPv6: "60"}},
		{name: "icmp6", data: unhex(macs, "86dd", ip6, "3a", ip6Rest, "87000000 00000000"), want: map[Layer]string{Ethernet: "02", IPv6: "60", ICMP: "8700"}},
		{name: "ipv6 atomic fragment", data: unhex(macs, "86dd", ip6, "2c", ip6Rest, "11000000 00000001", udp, body), want: udp6},
		{name: "ipv6 first fragment", data: unhex(macs, "86dd", ip6, "2c", ip6Rest, "11000001 00000001", udp, body), want: udp6},
		{name: "ipv6 later fragment", data: unhex(macs, "86dd", ip6, "2c", ip6Rest, "11000008 00000001", body), late: true,
			want: map[Layer]string{Ethernet: "02", IPv6: "60"}},
		{name: "first fragment", data: unhex(macs, "0800", "45000024 00012000 40110000 0a000001 0a000002", udp, body), want: udp4},
		{name: "later fragment", data: unhex(macs, "0800", "45000024 00012003 40110000 0a000001 0a000002", udp, body), late: true,
			want: map[Layer]string{Ethernet: "02", IPv4: v4Start}},
		{name: "last fragment", data: unhex(macs, "0800", "45000024 00010003 40110000 0a000001 0a000002", udp, body), late: true,
			want: map[Layer]string{Ethernet: "02", IPv4: v4Start}},
		{name: "do not fragment", data: unhex(macs, "0800", "45000024 00014000 40110000 0a000001 0a000002", udp, body), want: udp4},
		{name: "malformed header length", data: unhex(macs, "0800", "41000024 00010000 40110000 0a000001 0a000002", udp, body),
			want: map[Layer]string{Ethernet: "02", IPv4: "41"}},
		{name: "IP version 5", data: unhex(macs, "0800", "55000024"), want: map[Layer]string{Ethernet: "02"}},
		{name: "cut in the UDP header", data: unhex(macs, "0800", ipUDP, "03e8"), cut: true,
			want: map[Layer]string{Ethernet: "02", IPv4: v4Start, UDP: "03e8", Payload: ""}},
		{name: "cut before the UDP header", data: unhex(macs, "0800", ipUDP), cut: true,
			want: map[Layer]string{Ethernet: "02", IPv4: v4Start, UDP: "", Payload: ""}},
		{name: "cut in the TCP header", data: unhex(macs, "0800", "45000030 00010000 40060000 0a000001 0a000002", "03e807d0 00000001"), cut: true,
			want: map[Layer]string{Ethernet: "02", IPv4: "45", TCP: ports}},
		{name: "cut in the IP header", data: unhex(macs, "0800", "45000024 0001"), cut: true, want: map[Layer]string{Ethernet: "02", IPv4: v4Start}},
		{name: "cut in an extension header", data: unhex(macs, "86dd", ip6, "00", ip6Rest, "2b00"), cut: true, want: map[Layer]string{Ethernet: "02", IPv6: "60"}},
		{name: "cut in the Ethernet header", data: unhex("0200 0000"), cut: true, want: map[Layer]string{Ethernet: "0200"}},
		{name: "cut in the label stack", data: unhex(macs, "8847 00064040"), cut: true, want: map[Layer]string{Ethernet: "02", MPLS: "00064040"}},
		{name: "cut before an EtherType", data: unhex(macs, "8100 0007"), cut: true, want: map[Layer]string{Ethernet: "02", VLAN: "0007"}},
		{name: "cut before the IP header", data: unhex(macs, "0800"), cut: true, want: map[Layer]string{Ethernet: "02"}},
		{name: "cut in the cooked header", link: SLL, data: unhex("0000 0001 0006"), cut: true, want: map[Layer]string{}},
		{name: "cut in the cooked header 2", link: SLL2, data: unhex("0800 0000 00000002 0001"), cut: true, want: map[Layer]string{}},
		{name: "cut in the address family", link: Loop, data: unhex("0000"), cut: true, want: map[Layer]string{}},
		{name: "raw", link: Raw, data: unhex(ipUDP, udp, body), want: raw},
		{name: "raw ipv6", link: RawIPv6, data: unhex(ip6, "11", ip6Rest, udp, body), want: with(udp6, map[Layer]string{Ethernet: ""})},
		{name: "raw on OpenBSD", link: RawBSD14, data: unhex(ipUDP, udp, body), want: raw},
		{name: "loopback", link: Null, data: unhex("02000000", ipUDP, udp, body), want: raw},
		{name: "loopback of OpenBSD", link: Loop, data: unhex("00000002", ipUDP, udp, body), want: raw},
		{name: "Linux cooked", link: SLL, data: unhex("0000 0001 0006 020000000001 0000", "0800", ipUDP, udp, body), want: raw},
		{name: "Linux cooked, arp", link: SLL, data: unhex("0000 0001 0006 020000000001 0000", "0806 0001"), want: map[Layer]string{NonIP: "08060001"}},
		{name: "Linux cooked 2", link: SLL2, data: unhex("0800 0000 00000002 0001 00 06 020000000001 0000", ipUDP, udp, body), want: raw},
		{name: "Linux cooked 2, arp", link: SLL2, data: unhex("0806 0000 00000002 0001 00 06 020000000001 0000", "0001"), want: map[Layer]string{}},
	}
}

func (s sample) packet() *Packet {
	p := &Packet{Data: s.data, Link: s.link}
	if s.link == 0 && s.name != "loopback" {
		p.Link = Ethernet2
	}
	return p
}

func TestHeaders(t *testing.T) {
	for _, s := range samples() {
		var h Headers
		h.Parse(s.packet())
		for _, l := range Layers() {
			want, has := s.want[l]
			if l == Frame {
				want, has = hex.EncodeToString(s.data), true
			}
			if h.Has(l) != has {
				t.Errorf("%s: %v there: %v, want %v", s.name, l, h.Has(l), has)
				continue
			}
			if got, want := h.Bytes(l), unhex(want); !bytes.HasPrefix(got, want) || len(want) == 0 && len(got) > 0 {
				t.Errorf("%s: %v is % x, want % x", s.name, l, got, want)
			}
		}
		if h.Cut() != s.cut || h.LaterFragment() != s.late {
			t.Errorf("%s: cut %v, later fragment %v", s.name, h.Cut(), h.LaterFragment())
		}
	}
}

// Later fragments get the ports of their first, by addresses, identification
// and, in IPv4, protocol, within the time that hosts wait for them.
func TestFragments(t *testing.T) {
	v4 := func(id, offset, proto, rest string) []byte {
		return unhex(macs, "0800", "45000024", id, offset, "40", proto, "0000 0a000001 0a000002", rest)
	}
	v6 := func(id, offset, next, rest string) []byte {
		return unhex(macs, "86dd", ip6, "2c", ip6Rest, next, "00", offset, id, rest)
	}
	later := "ffffffff ffffffff"
	var f Fragments
	for i, c := range []struct {
		data   []byte
		second int64
		layer  Layer
		want   string
	}{
		{v4("0001", "2003", "11", later), 0, UDP, ""}, // before its first
		{v4("0001", "2000", "11", udp+body), 0, UDP, udp},
		{v4("0001", "2003", "11", later), 1, UDP, udp},
		{v4("0001", "0006", "11", later), 2, Payload, body},
		{v4("0002", "0006", "11", later), 2, UDP, ""}, // another datagram
		{v4("0001", "0006", "06", later), 2, TCP, ""}, // another protocol
		{v4("0001", "0006", "11", later), 70, UDP, ""},
		{v4("0001", "2000", "11", "11112222 00100000"), 71, UDP, "11112222"}, // the identification again
		{v4("0001", "0006", "11", later), 71, UDP, "11112222"},
		{v6("00000001", "0001", "3c", "1100 000000000000"+udp), 71, UDP, udp}, // options behind the fragment header
		{v6("00000001", "0009", "3c", later), 71, UDP, udp},
		{v6("00000002", "0009", "11", later), 71, UDP, ""},
	} {
		p := Packet{Data: c.data, Link: Ethernet2, Time: c.second * 1e9}
		var h Headers
		h.Parse(&p)
		f.Resolve(&h, p.Time)
		got, want := h.Bytes(c.layer), unhex(c.want)
		if !bytes.HasPrefix(got, want) || len(want) == 0 && h.Has(c.layer) {
			t.Errorf("packet %d: %v is % x, want % x", i+1, c.layer, got, want)
		}
	}
	if f.Lost() != 5 {
		t.Errorf("%d lost, want 5", f.Lost())
	}
}

// However many datagrams there are, only the latest are remembered.
func TestFragmentsAreBounded(t *testing.T) {
	var f Fragments
	p := Packet{Data: unhex(macs, "0800", "45000024 00002000 40110000 0a000001 0a000002", udp, body), Link: Ethernet2}
	for i := range 3 * maxDatagrams {
		p.Data[18], p.Data[19], p.Data[29] = byte(i>>8), byte(i), byte(i>>16)
		var h Headers
		h.Parse(&p)
		f.Resolve(&h, 0)
	}
	if len(f.seen) != maxDatagrams {
		t.Errorf("%d datagrams remembered, want %d", len(f.seen), maxDatagrams)
	}
	p.Data[20], p.Data[21] = 0, 3
	var h Headers
	h.Parse(&p)
	f.Resolve(&h, 0)
	if !h.Has(UDP) || f.Lost() != 0 {
		t.Error("the latest datagram is forgotten")
	}
}

// An independent dissector finds the same outer headers in packets put
// together at random, tunnels included.
func TestAgainstGopacket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var stack []gopacket.SerializableLayer
		mac := []byte{2, 0, 0, 0, 0, 1}
		types := []layers.EthernetType{}
		for range rapid.IntRange(0, 3).Draw(t, "tags") {
			types = append(types, rapid.SampledFrom([]layers.EthernetType{layers.EthernetTypeDot1Q, layers.EthernetTypeQinQ}).Draw(t, "tag"))
		}
		v6 := rapid.Bool().Draw(t, "v6")
		last := layers.EthernetTypeIPv4
		if v6 {
			last = layers.EthernetTypeIPv6
		}
		types = append(types, last)
		stack = append(stack, &layers.Ethernet{SrcMAC: mac, DstMAC: mac, EthernetType: types[0]})
		for i := 1; i < len(types); i++ {
			stack = append(stack, &layers.Dot1Q{VLANIdentifier: uint16(rapid.IntRange(0, 4095).Draw(t, "vlan")), Type: types[i]})
		}
		proto := rapid.SampledFrom([]layers.IPProtocol{layers.IPProtocolTCP, layers.IPProtocolUDP, layers.IPProtocolGRE}).Draw(t, "proto")
		address := func(n int) []byte { return rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "address") }
		if v6 {
			ip := &layers.IPv6{Version: 6, SrcIP: address(16), DstIP: address(16), NextHeader: proto}
			stack = append(stack, ip)
			if rapid.Bool().Draw(t, "options") {
				ip.NextHeader = layers.IPProtocolIPv6Destination
				d := &layers.IPv6Destination{}
				d.NextHeader = proto
				d.Options = []*layers.IPv6DestinationOption{{OptionType: 0x1e, OptionData: make([]byte, 4+8*rapid.IntRange(0, 5).Draw(t, "option"))}}
				stack = append(stack, d)
			}
		} else {
			ip := &layers.IPv4{Version: 4, SrcIP: address(4), DstIP: address(4), Protocol: proto}
			if n := rapid.IntRange(0, 5).Draw(t, "options"); n > 0 {
				ip.Options = []layers.IPv4Option{{OptionType: 0x88, OptionLength: uint8(4 * n), OptionData: make([]byte, 4*n-2)}}
			}
			stack = append(stack, ip)
		}
		source, dest := rapid.Uint16().Draw(t, "sport"), rapid.Uint16().Draw(t, "dport")
		switch proto {
		case layers.IPProtocolTCP:
			stack = append(stack, &layers.TCP{SrcPort: layers.TCPPort(source), DstPort: layers.TCPPort(dest)})
		case layers.IPProtocolUDP:
			stack = append(stack, &layers.UDP{SrcPort: layers.UDPPort(source), DstPort: layers.UDPPort(dest)})
		default:
			stack = append(stack, &layers.GRE{Protocol: layers.EthernetTypeIPv4}, &layers.IPv4{Version: 4, SrcIP: mac[:4], DstIP: mac[:4], Protocol: layers.IPProtocolUDP}, &layers.UDP{})
		}
		stack = append(stack, gopacket.Payload(strings.Repeat("payload", 9)))
		buf := gopacket.NewSerializeBuffer()
		if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true}, stack...); err != nil {
			t.Fatal(err)
		}
		var h Headers
		h.Parse(&Packet{Data: buf.Bytes(), Link: Ethernet2})
		// The outer layers as gopacket finds them.
		want := map[Layer][]byte{Frame: buf.Bytes()}
		tags := 0
		for _, l := range gopacket.NewPacket(buf.Bytes(), layers.LayerTypeEthernet, gopacket.Default).Layers() {
			at := slices.Concat(l.LayerContents(), l.LayerPayload())
			var as Layer
			switch l.LayerType() {
			case layers.LayerTypeEthernet:
				as = Ethernet
			case layers.LayerTypeDot1Q:
				as = VLAN + Layer(tags)
				if tags++; tags > 2 {
					continue
				}
			case layers.LayerTypeIPv4:
				as = IPv4
			case layers.LayerTypeIPv6:
				as = IPv6
			case layers.LayerTypeTCP:
				as = TCP
			case layers.LayerTypeUDP:
				as = UDP
			case layers.LayerTypeGRE:
				as = Payload
			default:
				continue
			}
			if want[Payload] == nil { // what is inside of it is not looked at
				want[as] = at
				if as == TCP || as == UDP {
					want[Payload] = l.LayerPayload()
				}
			}
		}
		for _, l := range Layers() {
			if got := h.Bytes(l); !bytes.Equal(got, want[l]) {
				t.Fatalf("%v: got % x, want % x", l, got, want[l])
			}
		}
		if h.Cut() {
			t.Fatal("cut")
		}
	})
}

func TestLayerNames(t *testing.T) {
	for _, l := range Layers() {
		if got, ok := ParseLayer(l.String()); !ok || got != l || !l.Valid() {
			t.Errorf("%v reads back as %v, %v", l, got, ok)
		}
	}
	if _, ok := ParseLayer("ipx"); ok || Layer(200).Valid() || Layer(200).String() != "layer 200" {
		t.Error("a layer that there is not")
	}
}
