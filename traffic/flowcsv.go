package traffic

import (
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"nicprof/internal/fault"
	"nicprof/traffic/capture"
)

// Flow is a 5-tuple. Ports are 0 where the protocol has none.
type Flow struct {
	Src, Dst         netip.Addr // of one family
	Proto            uint8      // IP protocol
	SrcPort, DstPort uint16
}

// Protocols whose header holds the ports.
const (
	protoTCP  = 6
	protoUDP  = 17
	protoSCTP = 132
)

// words packs what tells a flow from another.
func (f Flow) words() [5]uint64 {
	src, dst := f.Src.As16(), f.Dst.As16()
	last := uint64(f.SrcPort)<<24 | uint64(f.DstPort)<<8 | uint64(f.Proto)
	if f.Src.Is4() {
		last |= 1 << 40
	}
	return [5]uint64{
		binary.BigEndian.Uint64(src[:]), binary.BigEndian.Uint64(src[8:]),
		binary.BigEndian.Uint64(dst[:]), binary.BigEndian.Uint64(dst[8:]), last,
	}
}

// AppendHeaders appends the headers of a packet of the flow to b: Ethernet
// with locally administered addresses, IP, and TCP, UDP, SCTP or the first
// eight bytes after IP of other protocols. Lengths are those of a frame of
// bytes bytes, its check sequence included; IPv4's checksum is right, that of
// the transport left 0.
func (f Flow) AppendHeaders(b []byte, bytes int) []byte {
	b = append(b, 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1)
	length := max(bytes-18, 0) // of the IP packet
	transport := 0
	if f.Src.Is4() {
		b = append(b, 8, 0, 0x45, 0, byte(length>>8), byte(length), 0, 0, 0x40, 0, 64, f.Proto, 0, 0)
		src, dst := f.Src.As4(), f.Dst.As4()
		b = append(append(b, src[:]...), dst[:]...)
		ip := b[len(b)-20:]
		sum := uint32(0)
		for i := 0; i < 20; i += 2 {
			sum += uint32(ip[i])<<8 | uint32(ip[i+1])
		}
		sum = sum>>16 + sum&0xffff
		sum += sum >> 16
		binary.BigEndian.PutUint16(ip[10:], ^uint16(sum))
		transport = length - 20
	} else {
		transport = length - 40
		b = append(b, 0x86, 0xdd, 0x60, 0, 0, 0, byte(transport>>8), byte(transport), f.Proto, 64)
		src, dst := f.Src.As16(), f.Dst.As16()
		b = append(append(b, src[:]...), dst[:]...)
	}
	switch f.Proto {
	case protoTCP, protoUDP, protoSCTP:
		b = append(b, byte(f.SrcPort>>8), byte(f.SrcPort), byte(f.DstPort>>8), byte(f.DstPort))
	}
	switch f.Proto {
	case protoTCP:
		return append(b, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0) // 20 bytes, ACK
	case protoUDP:
		return append(b, byte(transport>>8), byte(transport), 0, 0)
	}
	return append(b, 0, 0, 0, 0, 0, 0, 0, 0)
}

var flowColumns = []string{"src", "dst", "proto", "sport", "dport", "pps", "bytes"}

// flowRate is a line of a flow CSV.
type flowRate struct {
	flow  Flow
	pps   float64
	bytes int
}

// readFlows reads a flow CSV and calls f for every line.
func readFlows(r io.Reader, name string, f func(flowRate)) error {
	in := csv.NewReader(r)
	in.Comment = '#'
	in.TrimLeadingSpace = true
	in.ReuseRecord = true
	fail := func(line int, format string, a ...any) error {
		return fault.Inputf("%s:%d: %w", name, line, fmt.Errorf(format, a...))
	}
	syntax := func(err error) error {
		var pe *csv.ParseError
		if !errors.As(err, &pe) {
			return fault.Inputf("%s: %w", name, err)
		}
		if errors.Is(err, csv.ErrFieldCount) {
			return fail(pe.Line, "expected %d fields: %s", len(flowColumns), strings.Join(flowColumns, ","))
		}
		return fail(pe.Line, "%w", pe.Err)
	}
	header, err := in.Read()
	if err == io.EOF {
		return fail(1, "the file is empty; expected the header %s", strings.Join(flowColumns, ","))
	} else if err != nil {
		return syntax(err)
	}
	if !slices.Equal(header, flowColumns) {
		return fail(1, "expected the header %s, got %s", strings.Join(flowColumns, ","), strings.Join(header, ","))
	}
	seen := newNumberTable(5)
	var lines []int // of the flows seen
	for {
		row, err := in.Read()
		if err == io.EOF {
			return nil
		} else if err != nil {
			return syntax(err)
		}
		line, _ := in.FieldPos(0)
		var x flowRate
		if x.flow, err = parseFlow(row); err != nil {
			return fail(line, "%w", err)
		}
		words := x.flow.words()
		if n := seen.number(words[:], hash(words[:])); n < len(lines) {
			return fail(line, "this flow is already on line %d", lines[n])
		}
		lines = append(lines, line)
		x.pps, err = strconv.ParseFloat(row[5], 64)
		if err != nil || !(x.pps >= 0 && x.pps <= 1e12) {
			return fail(line, "pps: %q is not a rate; expected packets a second", row[5])
		}
		x.bytes, err = strconv.Atoi(row[6])
		if err != nil || len(CheckPacketBytes(x.bytes)) > 0 {
			return fail(line, "bytes: %q is not a packet size; expected %d..%d", row[6], MinPacketBytes, MaxPacketBytes)
		}
		f(x)
	}
}

func parseFlow(row []string) (Flow, error) {
	var f Flow
	var err error
	for i, to := range []*netip.Addr{&f.Src, &f.Dst} {
		if *to, err = netip.ParseAddr(row[i]); err != nil {
			return f, fmt.Errorf("%s: %q is not an IP address", flowColumns[i], row[i])
		}
		*to = to.WithZone("")
	}
	if f.Src.Is4() != f.Dst.Is4() {
		return f, fmt.Errorf("%s and %s are of different IP versions", row[0], row[1])
	}
	names := map[string]uint8{"icmp": 1, "tcp": protoTCP, "udp": protoUDP, "icmp6": 58, "sctp": protoSCTP}
	proto, ok := names[strings.ToLower(row[2])]
	if n, err := strconv.ParseUint(row[2], 10, 8); !ok && err != nil {
		return f, fmt.Errorf("proto: %q is not a protocol; expected tcp, udp, icmp, icmp6, sctp or 0..255", row[2])
	} else if !ok {
		proto = uint8(n)
	}
	f.Proto = proto
	for i, to := range []*uint16{&f.SrcPort, &f.DstPort} {
		n, err := strconv.ParseUint(row[3+i], 10, 16)
		if err != nil {
			return f, fmt.Errorf("%s: %q is not a port; expected 0..65535", flowColumns[3+i], row[3+i])
		}
		*to = uint16(n)
	}
	return f, nil
}

// ReadFlows reads a flow CSV: a header of src,dst,proto,sport,dport,pps,bytes,
// then a flow a line with its packets a second and bytes a packet (with the
// frame check sequence). # begins a comment line.
func ReadFlows(r io.Reader, name string) (Traffic, error) {
	var m tally
	flow := 0
	err := readFlows(r, name, func(x flowRate) {
		m.add(flow, x.bytes, x.pps)
		flow++
	})
	if err != nil {
		return Traffic{}, err
	}
	t, ok := m.traffic()
	if !ok {
		return Traffic{}, fault.Inputf("%s: no flow has a packet", name)
	}
	t.RateMpps = m.total / 1e6
	return t, nil
}

// FlowVolumes reads a flow CSV, see ReadFlows, and adds its flows up by flow
// group under each of the keys. A flow is taken for untagged Ethernet frames
// of its 5-tuple; other fields of their headers are those of
// Flow.AppendHeaders.
func FlowVolumes(r io.Reader, name string, keys []Key) (*Volumes, error) {
	c, err := newCounter(keys, VolumeOptions{})
	if err != nil {
		return nil, err
	}
	var headers capture.Headers
	p := capture.Packet{Link: capture.Ethernet2}
	var full error
	err = readFlows(r, name, func(x flowRate) {
		if x.pps == 0 || full != nil {
			return
		}
		p.Data = x.flow.AppendHeaders(p.Data[:0], x.bytes)
		headers.Parse(&p)
		full = c.add(&headers, x.pps, float64(x.bytes), capture.NoTime)
	})
	if err := errors.Join(err, full); err != nil {
		return nil, err
	}
	if c.v.TotalPackets == 0 {
		return nil, fault.Inputf("%s: no flow has a packet", name)
	}
	c.v.Seconds = 1
	return c.finish()
}
