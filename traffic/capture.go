package traffic

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"nicprof/internal/fault"
)

// Captures hold frames without their check sequence of 4 bytes; raw IP lacks
// the 14 bytes of the Ethernet header too.
const (
	checkSequence  = 4
	ethernetHeader = 14
)

var (
	pcapngMagic = []byte{0x0a, 0x0d, 0x0d, 0x0a}
	pcapMagics  = [][]byte{
		{0xa1, 0xb2, 0xc3, 0xd4}, {0xd4, 0xc3, 0xb2, 0xa1}, // microseconds, either byte order
		{0xa1, 0xb2, 0x3c, 0x4d}, {0x4d, 0x3c, 0xb2, 0xa1}, // nanoseconds
	}
)

func isCapture(magic []byte) bool {
	return bytes.Equal(magic, pcapngMagic) || slices.ContainsFunc(pcapMagics, func(m []byte) bool { return bytes.Equal(m, magic) })
}

type packetReader interface {
	ReadPacketData() ([]byte, gopacket.CaptureInfo, error)
	LinkType() layers.LinkType
}

// ReadCapture reads a pcap or pcapng: the flows (5-tuples of the outer IP
// header; what is not IP is one flow an EtherType) with their shares of the
// packets, the frame sizes as on the wire (with check sequence and padding),
// and the mean rate by the time stamps, 0 when these do not tell.
func ReadCapture(in io.Reader, name string) (Traffic, error) {
	packet := 0
	fail := func(format string, a ...any) (Traffic, error) {
		return Traffic{}, fault.Inputf("%s: packet %d: %w", name, packet, fmt.Errorf(format, a...))
	}
	r, err := newPacketReader(bufio.NewReader(in))
	if err != nil {
		return Traffic{}, fault.Inputf("%s: not a capture: %w", name, err)
	}
	overhead := checkSequence
	switch link := r.LinkType(); link {
	case layers.LinkTypeEthernet:
	case layers.LinkTypeRaw, layers.LinkTypeIPv4, layers.LinkTypeIPv6:
		overhead += ethernetHeader
	default:
		return Traffic{}, fault.Inputf("%s: link type %v; expected a capture of Ethernet or raw IP", name, link)
	}
	var m tally
	var first, last time.Time
	for {
		packet++
		data, info, err := r.ReadPacketData()
		if err == io.EOF {
			break
		} else if errors.Is(err, io.ErrUnexpectedEOF) {
			return fail("the file ends in the middle of it; capture again, or cut the file with editcap")
		} else if err != nil {
			return fail("%w", err)
		}
		if at := info.Timestamp; first.IsZero() {
			first, last = at, at
		} else if at.Before(first) {
			first = at
		} else if at.After(last) {
			last = at
		}
		size := max(info.Length+overhead, MinPacketBytes)
		if size > MaxPacketBytes {
			return fail("%d bytes; expected at most %d: switch segmentation offload off when capturing", size, MaxPacketBytes)
		}
		m.add(flowOf(data, r.LinkType()), size, 1)
	}
	t, ok := m.traffic()
	if !ok {
		return Traffic{}, fault.Inputf("%s: a capture without packets", name)
	}
	if d := last.Sub(first).Seconds(); d > 0 {
		t.RateMpps = (m.total - 1) / d / 1e6
	}
	return t, nil
}

// newPacketReader tells pcap from pcapng by the first bytes.
func newPacketReader(r *bufio.Reader) (packetReader, error) {
	if magic, _ := r.Peek(4); bytes.Equal(magic, pcapngMagic) {
		return pcapgo.NewNgReader(r, pcapgo.NgReaderOptions{ErrorOnMismatchingLinkType: true})
	}
	return pcapgo.NewReader(r)
}

// flowOf returns the flow that a frame, cut perhaps, belongs to.
func flowOf(data []byte, link layers.LinkType) flowKey {
	p := gopacket.NewPacket(data, link, gopacket.DecodeOptions{Lazy: true, NoCopy: true})
	var k flowKey
	switch ip := p.NetworkLayer().(type) {
	case *layers.IPv4:
		k.src, _ = netip.AddrFromSlice(ip.SrcIP)
		k.dst, _ = netip.AddrFromSlice(ip.DstIP)
		k.proto = uint16(ip.Protocol)
	case *layers.IPv6:
		k.src, _ = netip.AddrFromSlice(ip.SrcIP)
		k.dst, _ = netip.AddrFromSlice(ip.DstIP)
		k.proto = uint16(ip.NextHeader)
	default:
		if e, ok := p.LinkLayer().(*layers.Ethernet); ok {
			k.proto = uint16(e.EthernetType)
		}
		return k
	}
	switch t := p.TransportLayer().(type) {
	case *layers.TCP:
		k.sport, k.dport = uint16(t.SrcPort), uint16(t.DstPort)
	case *layers.UDP:
		k.sport, k.dport = uint16(t.SrcPort), uint16(t.DstPort)
	case *layers.SCTP:
		k.sport, k.dport = uint16(t.SrcPort), uint16(t.DstPort)
	}
	return k
}
