package capture

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"pgregory.net/rapid"

	"nicprof/internal/fault"
)

// order writes numbers in one byte order.
type order interface {
	binary.AppendByteOrder
	binary.ByteOrder
}

var orders = map[string]order{"little": binary.LittleEndian, "big": binary.BigEndian}

// header is a pcap file header.
func header(o order, magic, snap, network uint32) []byte {
	b := o.AppendUint32(nil, magic)
	b = o.AppendUint16(b, 2)
	b = o.AppendUint16(b, 4)
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
	b = o.AppendUint32(b, snap)
	return o.AppendUint32(b, network)
}

// record is a pcap packet record.
func record(o order, seconds, fraction, captured, length uint32, data []byte) []byte {
	var b []byte
	for _, v := range []uint32{seconds, fraction, captured, length} {
		b = o.AppendUint32(b, v)
	}
	return append(b, data...)
}

// block is a pcapng block: its body padded to 4 bytes.
func block(o order, kind uint32, body ...[]byte) []byte {
	data := slices.Concat(body...)
	for len(data)%4 != 0 {
		data = append(data, 0)
	}
	b := o.AppendUint32(nil, kind)
	b = o.AppendUint32(b, uint32(len(data)+12))
	return o.AppendUint32(append(b, data...), uint32(len(data)+12))
}

func words(o order, v ...uint32) []byte {
	var b []byte
	for _, v := range v {
		b = o.AppendUint32(b, v)
	}
	return b
}

func halves(o order, v ...uint16) []byte {
	var b []byte
	for _, v := range v {
		b = o.AppendUint16(b, v)
	}
	return b
}

// sectionBlock begins a section of unknown length.
func sectionBlock(o order) []byte {
	return block(o, blockSection, words(o, 0x1a2b3c4d), halves(o, 1, 0), words(o, 0xffffffff, 0xffffffff))
}

func interfaceBlock(o order, link LinkType, snap uint32, options ...[]byte) []byte {
	return block(o, blockInterface, halves(o, uint16(link), 0), words(o, snap), slices.Concat(options...))
}

func option(o order, code uint16, value ...byte) []byte {
	b := append(halves(o, code, uint16(len(value))), value...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

func packetBlock(o order, id uint32, stamp uint64, captured, length uint32, data []byte, options ...[]byte) []byte {
	padded := append(bytes.Clone(data), make([]byte, -len(data)&3)...)
	return block(o, blockEnhanced, words(o, id, uint32(stamp>>32), uint32(stamp), captured, length), padded, slices.Concat(options...))
}

// all reads a capture to its end. Data is copied.
func all(t testing.TB, data []byte) ([]Packet, []string, error) {
	t.Helper()
	r, err := NewReader(bytes.NewReader(data), "t.pcap")
	if err != nil {
		return nil, nil, err
	}
	var out []Packet
	for {
		var p Packet
		if err := r.Next(&p); err == io.EOF {
			return out, r.Warnings(), nil
		} else if err != nil {
			return out, r.Warnings(), err
		}
		p.Data = bytes.Clone(p.Data)
		out = append(out, p)
	}
}

func must(t testing.TB, data []byte) ([]Packet, []string) {
	t.Helper()
	p, w, err := all(t, data)
	if err != nil {
		t.Fatal(err)
	}
	return p, w
}

// Time stamps mean what the magic number says, in either byte order: the same
// fraction is a thousand times longer as microseconds.
func TestMagic(t *testing.T) {
	for name, o := range orders {
		for magic, want := range map[uint32]int64{magicMicro: 7e9 + 5000, magicNano: 7e9 + 5, magicModified: 7e9 + 5000} {
			r := record(o, 7, 5, 4, 60, nil)
			if magic == magicModified {
				r = append(r, 0, 0, 0, 1, 0, 0, 0, 0) // interface, protocol, packet type
			}
			p, w := must(t, slices.Concat(header(o, magic, 65535, 1), r, []byte("abcd")))
			if len(p) != 1 || p[0].Time != want || p[0].Length != 60 || string(p[0].Data) != "abcd" || len(w) != 0 {
				t.Errorf("%x %s endian: got %+v, %q, want time %d", magic, name, p, w, want)
			}
		}
	}
}

// A file whose fractions reach beyond a second is not what its magic says.
func TestNanosecondsUnderMicrosecondMagic(t *testing.T) {
	o := binary.LittleEndian
	_, w := must(t, slices.Concat(header(o, magicMicro, 0, 1), record(o, 1, 999_999, 0, 60, nil), record(o, 1, 1_000_000, 0, 60, nil)))
	if len(w) != 1 || !strings.Contains(w[0], "1 time stamps have more than a million microseconds") {
		t.Errorf("warnings %q", w)
	}
}

// What the snap length says is not what decides: packets longer than it are
// read whole, 0 is no limit, and a packet cut by it is the usual thing.
func TestSnapLength(t *testing.T) {
	o := binary.LittleEndian
	for _, c := range []struct {
		snap, captured, length uint32
		want                   int
		warning                string
	}{
		{100, 100, 1500, 1500, ""},
		{0, 200, 200, 200, ""},
		{0, 100, 1500, 1500, ""},
		{100, 150, 150, 150, "1 packets are longer (up to 150 bytes) than the snap length"},
		{100, 150, 1500, 1500, "1 packets are longer (up to 150 bytes) than the snap length"},
		{1500, 100, 80, 100, "1 packets have more bytes captured than they had on the wire"},
		{1500, 100, 0, 100, "1 packets have more bytes captured than they had on the wire"},
	} {
		data := bytes.Repeat([]byte{7}, int(c.captured))
		for format, file := range map[string][]byte{
			"pcap":   slices.Concat(header(o, magicMicro, c.snap, 1), record(o, 1, 2, c.captured, c.length, data), record(o, 1, 3, 4, 60, []byte("next"))),
			"pcapng": slices.Concat(sectionBlock(o), interfaceBlock(o, Ethernet2, c.snap), packetBlock(o, 0, 1000002, c.captured, c.length, data), packetBlock(o, 0, 1000003, 4, 60, []byte("next"))),
		} {
			p, w := must(t, file)
			if len(p) != 2 || p[0].Length != c.want || !bytes.Equal(p[0].Data, data) || string(p[1].Data) != "next" {
				t.Errorf("%s, %+v: got %d packets, %d bytes of %d", format, c, len(p), len(p[0].Data), p[0].Length)
			}
			if got := strings.Join(w, ""); c.warning == "" && got != "" || !strings.Contains(got, c.warning) {
				t.Errorf("%s, %+v: warnings %q", format, c, w)
			}
		}
	}
}

// A captured length that cannot be is an error with the packet's number, and
// takes no memory; the packets before it are there.
func TestImpossibleLength(t *testing.T) {
	for name, o := range orders {
		for _, captured := range []uint32{1 << 31, 1<<32 - 1, MaxCaptured + 1} {
			good := record(o, 1, 2, 4, 60, []byte("abcd"))
			file := slices.Concat(header(o, magicMicro, 65535, 1), good, good, record(o, 1, 2, captured, 60, []byte("abcd")))
			var p []Packet
			var err error
			if n := testing.AllocsPerRun(1, func() { p, _, err = all(t, file) }); n > 100 {
				t.Errorf("%v allocations", n)
			}
			if fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), "t.pcap: packet 3: a captured length of ") || len(p) != 2 {
				t.Errorf("%s %d: %d packets, %v", name, captured, len(p), err)
			}
			if !strings.HasSuffix(err.Error(), "editcap -r t.pcap OUT 1-2") {
				t.Errorf("%v does not say what to do", err)
			}
		}
	}
}

// What ends early gives the packets before its end and says so, wherever it is
// cut, gzipped or not.
func TestCutAnywhere(t *testing.T) {
	for name, o := range orders {
		var pcap, ng [][]byte
		pcap = append(pcap, header(o, magicNano, 65535, 1))
		ng = append(ng, slices.Concat(sectionBlock(o), interfaceBlock(o, Ethernet2, 0)))
		for i := range 5 {
			data := bytes.Repeat([]byte{byte(i)}, 10+i)
			pcap = append(pcap, record(o, 1, uint32(i), uint32(len(data)), 60, data))
			ng = append(ng, packetBlock(o, 0, uint64(i), uint32(len(data)), 60, data))
		}
		for format, parts := range map[string][][]byte{"pcap": pcap, "pcapng": ng} {
			file := slices.Concat(parts...)
			for cut := len(parts[0]); cut <= len(file); cut++ {
				want, at := 0, len(parts[0])
				for _, p := range parts[1:] {
					if at += len(p); at <= cut {
						want++
					}
				}
				whole := cut == len(slices.Concat(parts[:want+1]...))
				p, w := must(t, file[:cut])
				if len(p) != want || (len(w) == 0) != whole {
					t.Fatalf("%s %s endian cut at %d: %d packets, %q, want %d", format, name, cut, len(p), w, want)
				}
				if !whole && !strings.Contains(w[0], "the file ends in the middle of packet "+string(rune('1'+want))) {
					t.Fatalf("warning %q", w)
				}
			}
			for cut := range parts[0] {
				if _, err := NewReader(bytes.NewReader(file[:cut]), "t.pcap"); format == "pcap" && (fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), "not a capture")) {
					t.Fatalf("cut at %d: %v", cut, err)
				}
			}
		}
	}
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	o := binary.LittleEndian
	w.Write(header(o, magicMicro, 0, 1))
	for i := range 100 {
		data := bytes.Repeat([]byte{byte(i), byte(i * i), byte(i * 7)}, 100)
		w.Write(record(o, 1, uint32(i), 300, 300, data))
	}
	w.Close()
	if p, warnings := must(t, z.Bytes()); len(p) != 100 || len(warnings) != 0 {
		t.Errorf("gzip: %d packets, %q", len(p), warnings)
	}
	if p, warnings := must(t, z.Bytes()[:z.Len()*3/4]); len(p) == 0 || len(p) == 100 || len(warnings) != 1 {
		t.Errorf("cut gzip: %d packets, %q", len(p), warnings)
	}
	bad := bytes.Clone(z.Bytes())
	bad[len(bad)-6] ^= 1 // check sum
	if p, _, err := all(t, bad); fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), "packet 101: gzip: invalid checksum") {
		t.Errorf("damaged gzip: %d packets, %v", len(p), err)
	}
}

func TestReadErrors(t *testing.T) {
	o := binary.LittleEndian
	good := slices.Concat(header(o, magicMicro, 0, 1), record(o, 1, 2, 4, 60, []byte("abcd")))
	broken := errors.New("disk on fire")
	r, err := NewReader(io.MultiReader(bytes.NewReader(good), iotest.ErrReader(broken)), "t.pcap")
	if err != nil {
		t.Fatal(err)
	}
	var p Packet
	if err := r.Next(&p); err != nil {
		t.Fatal(err)
	}
	if err := r.Next(&p); !errors.Is(err, broken) || fault.KindOf(err) != fault.Input {
		t.Errorf("got %v", err)
	}
	if _, err := NewReader(iotest.ErrReader(broken), "t.pcap"); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	for want, data := range map[string]string{
		"not a capture: 0 bytes long":              "",
		"not a capture: it begins with 68 65 6c":   "hello, world, hello",
		"a snoop file; convert it with editcap":    "snoop\x00\x00\x00\x00\x00\x00\x02",
		"compressed with zstd; decompress it":      "\x28\xb5\x2f\xfd\x00\x00\x00",
		"a Network Monitor file":                   "GMBU\x02\x00\x00\x00",
		"not a gzip file":                          "\x1f\x8bnonsense and more of it",
		"a section header with byte order 01 02":   "\x0a\x0d\x0d\x0a\x1c\x00\x00\x00\x01\x02\x03\x04" + strings.Repeat("\x00", 16),
		"pcapng version 9; expected 1":             "\x0a\x0d\x0d\x0a\x1c\x00\x00\x00\x4d\x3c\x2b\x1a\x09\x00" + strings.Repeat("\x00", 14),
		"a section header of 8 bytes":              "\x0a\x0d\x0d\x0a\x08\x00\x00\x00\x4d\x3c\x2b\x1a\x01\x00" + strings.Repeat("\x00", 14),
		"it ends in its first header, after 20 by": "\x0a\x0d\x0d\x0a" + strings.Repeat("\x00", 16),
	} {
		if _, err := NewReader(strings.NewReader(data), "x"); fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// pcapng: interfaces of their own link type, resolution, offset and check
// sequence; sections of their own byte order; old and simple packets; blocks
// and options that nobody knows.
func TestPcapng(t *testing.T) {
	for name, o := range orders {
		other := orders["big"]
		if o == other {
			other = orders["little"]
		}
		offset := make([]byte, 8)
		o.PutUint64(offset, 100)
		data := []byte("abcdef")
		file := slices.Concat(
			sectionBlock(o),
			interfaceBlock(o, Ethernet2, 0), // microseconds
			block(o, 0x0bad, []byte("what nobody knows")),
			interfaceBlock(o, Raw, 0, option(o, 2, 'e', 't', 'h', '0', '!'), option(o, optResolution, 9), option(o, optOffset, offset...), option(o, 0)),
			interfaceBlock(o, SLL, 0, option(o, optResolution, 0x80|20)),
			interfaceBlock(o, Ethernet2, 5, option(o, optResolution, 0), option(o, optCheck, 4)),
			packetBlock(o, 0, 5_000_001, 6, 60, data, option(o, 1, []byte("a comment")...), option(o, 0x9999, 1, 2, 3)),
			block(o, 5, words(o, 0, 1, 2)), // statistics
			packetBlock(o, 1, 5_000_000_001, 6, 46, data),
			packetBlock(o, 2, 5<<20|1<<19, 6, 60, data),
			packetBlock(o, 3, 5, 5, 64, data[:5]),
			block(o, blockOld, halves(o, 0, 0), words(o, 0, 6_000_000, 6, 60), data),
			block(o, blockSimple, words(o, 6), data),
			sectionBlock(other),
			interfaceBlock(other, Ethernet2, 3, option(other, optResolution, 12)),
			packetBlock(other, 0, 7_000_000_000_999, 3, 60, data[:3]),
			block(other, blockSimple, words(other, 6), data[:3]),
		)
		p, w := must(t, file)
		want := []Packet{
			{Number: 1, Time: 5_000_001_000, Length: 60, Link: Ethernet2, Port: 0, overhead: 4, Data: data},
			{Number: 2, Time: 105_000_000_001, Length: 46, Link: Raw, Port: 1, overhead: 18, Data: data},
			{Number: 3, Time: 5_500_000_000, Length: 60, Link: SLL, Port: 2, overhead: 2, Data: data},
			{Number: 4, Time: 5_000_000_000, Length: 64, Link: Ethernet2, Port: 3, overhead: 0, Data: data[:5]},
			{Number: 5, Time: 6_000_000_000, Length: 60, Link: Ethernet2, Port: 0, overhead: 4, Data: data},
			{Number: 6, Time: NoTime, Length: 6, Link: Ethernet2, Port: 0, overhead: 4, Data: data},
			{Number: 7, Time: 7_000_000_000, Length: 60, Link: Ethernet2, Port: 4, overhead: 4, Data: data[:3]},
			{Number: 8, Time: NoTime, Length: 6, Link: Ethernet2, Port: 4, overhead: 4, Data: data[:3]},
		}
		if len(p) != len(want) || len(w) != 0 {
			t.Fatalf("%s endian: %d packets, %q, want %d", name, len(p), w, len(want))
		}
		for i := range want {
			if got := p[i]; !bytes.Equal(got.Data, want[i].Data) {
				t.Errorf("%s endian, packet %d: data %q, want %q", name, i+1, got.Data, want[i].Data)
			} else if got.Data, want[i].Data = nil, nil; !equalPackets(got, want[i]) {
				t.Errorf("%s endian: got %+v, want %+v", name, got, want[i])
			}
		}
	}
}

func equalPackets(a, b Packet) bool {
	return a.Number == b.Number && a.Time == b.Time && a.Length == b.Length && a.Link == b.Link && a.Port == b.Port && a.overhead == b.overhead
}

func TestPcapngDamage(t *testing.T) {
	o := binary.LittleEndian
	start := slices.Concat(sectionBlock(o), interfaceBlock(o, Ethernet2, 0), packetBlock(o, 0, 1, 4, 60, []byte("abcd")))
	mismatch := packetBlock(o, 0, 1, 4, 60, []byte("abcd"))
	mismatch[len(mismatch)-4]++
	for want, end := range map[string][]byte{
		"packet 2: a block of type 9 with length 8; expected a multiple of 4 from 12":  words(o, 9, 8, 0),
		"packet 2: a block of type 6 with length 33; expected a multiple of 4 from 12": words(o, 6, 33, 0),
		"packet 2: a block of type 6 with length 2147483648; expected at most 1310720": words(o, 6, 1<<31, 0),
		"packet 2: a block of type 6 begins with length 36 and ends with 37":           mismatch,
		"packet 2: it is of interface 1; the section describes 1":                      packetBlock(o, 1, 1, 4, 60, []byte("abcd")),
		"packet 2: a captured length of 5 bytes in a block of 36":                      packetBlock(o, 0, 1, 5, 60, []byte("abcd")),
		"packet 2: a captured length of 2147483648 bytes in a block of 36":             packetBlock(o, 0, 1, 1<<31, 60, []byte("abcd")),
		"packet 2: a packet block of 20 bytes; expected at least 32":                   block(o, blockEnhanced, words(o, 0, 0)),
		"packet 2: a packet block of 12 bytes; expected at least 16":                   block(o, blockSimple),
		"packet 2: an interface description of 4 bytes; expected at least 8":           block(o, blockInterface, words(o, 1)),
		"packet 2: interface 1: a time resolution of 10^-20 s":                         interfaceBlock(o, Ethernet2, 0, option(o, optResolution, 20)),
		"packet 2: interface 1: a time resolution of 2^-64 s":                          interfaceBlock(o, Ethernet2, 0, option(o, optResolution, 0x80|64)),
		"packet 2: its time is outside the years 1678..2262":                           packetBlock(o, 0, 1<<63, 4, 60, []byte("abcd")),
		"packet 2: a section header with byte order 00 00 00 00":                       block(o, blockSection, make([]byte, 20)),
	} {
		p, _, err := all(t, slices.Concat(start, end))
		if fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), want) || len(p) != 1 {
			t.Errorf("%d packets, %v, want %s", len(p), err, want)
		}
	}
	// A simple packet before any interface.
	if _, _, err := all(t, slices.Concat(sectionBlock(o), block(o, blockSimple, words(o, 4), []byte("abcd")))); err == nil || !strings.Contains(err.Error(), "it is of interface 0; the section describes 0") {
		t.Errorf("got %v", err)
	}
	// An unknown block beyond the end of the file is a cut.
	if p, w := must(t, slices.Concat(start, words(o, 0x0bad, 1<<31, 0))); len(p) != 1 || len(w) != 1 {
		t.Errorf("%d packets, %q", len(p), w)
	}
}

// An independent writer's captures are read as it wrote them.
func TestAgainstPcapgo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b bytes.Buffer
		var write func(gopacket.CaptureInfo, []byte) error
		unit := int64(1)
		switch rapid.IntRange(0, 2).Draw(t, "format") {
		case 0:
			w := pcapgo.NewWriter(&b)
			unit = 1000
			if err := w.WriteFileHeader(1<<18, layers.LinkTypeEthernet); err != nil {
				t.Fatal(err)
			}
			write = w.WritePacket
		case 1:
			w := pcapgo.NewWriterNanos(&b)
			if err := w.WriteFileHeader(1<<18, layers.LinkTypeEthernet); err != nil {
				t.Fatal(err)
			}
			write = w.WritePacket
		default:
			w, err := pcapgo.NewNgWriter(&b, layers.LinkTypeEthernet)
			if err != nil {
				t.Fatal(err)
			}
			write = func(i gopacket.CaptureInfo, data []byte) error {
				if err := w.WritePacket(i, data); err != nil {
					return err
				}
				return w.Flush()
			}
		}
		var want []Packet
		for range rapid.IntRange(0, 20).Draw(t, "packets") {
			data := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "data")
			p := Packet{Data: data, Length: len(data) + rapid.IntRange(0, 2000).Draw(t, "cut"), Time: rapid.Int64Range(0, 1<<32*1e9-1).Draw(t, "time") / unit * unit}
			if err := write(gopacket.CaptureInfo{Timestamp: time.Unix(0, p.Time), CaptureLength: len(data), Length: p.Length}, data); err != nil {
				t.Fatal(err)
			}
			want = append(want, p)
		}
		if b.Len() == 0 {
			return // the writer of pcapng writes its header with the first packet
		}
		r, err := NewReader(iotest.OneByteReader(&b), "t")
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range want {
			var p Packet
			if err := r.Next(&p); err != nil || p.Time != x.Time || p.Length != x.Length || !bytes.Equal(p.Data, x.Data) || p.Number != int64(i+1) {
				t.Fatalf("packet %d: got %+v, %v, want %+v", i+1, p, err, x)
			}
		}
		var p Packet
		if err := r.Next(&p); err != io.EOF || len(r.Warnings()) != 0 {
			t.Fatalf("%v, %q at the end", err, r.Warnings())
		}
	})
}

// source writes files of packets at the given times (ns) and reads them as one.
func source(t *testing.T, files ...[]int64) (*Source, []int64) {
	t.Helper()
	dir := t.TempDir()
	var paths []string
	o := binary.LittleEndian
	for i, times := range files {
		b := header(o, magicNano, 0, 1)
		for _, at := range times {
			b = append(b, record(o, uint32(at/1e9), uint32(at%1e9), 4, 60, []byte{byte(i), 0, 0, 0})...)
		}
		paths = append(paths, filepath.Join(dir, string(rune('a'+i))))
		if err := os.WriteFile(paths[i], b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Open(paths...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	var got []int64
	for {
		var p Packet
		if err := s.Next(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if int(p.Data[0]) != p.Port && len(files) > 1 {
			t.Errorf("a packet of file %d is of port %d", p.Data[0], p.Port)
		}
		got = append(got, p.Time)
	}
	var p Packet
	if err := s.Next(&p); err != io.EOF {
		t.Errorf("after the end: %v", err)
	}
	return s, got
}

// Files are merged by time, and the time that no file covers does not count:
// one after the other, at once, or with clocks years apart.
func TestSeveralFiles(t *testing.T) {
	const second, year = int64(1e9), int64(365 * 86400 * 1e9)
	for _, c := range []struct {
		files         [][]int64
		times         []int64
		seconds, gaps float64
	}{
		{[][]int64{{second, 2 * second, 4 * second}}, []int64{second, 2 * second, 4 * second}, 3, 2},
		{[][]int64{{second, 3 * second}, {2 * second, 4 * second}}, []int64{second, 2 * second, 3 * second, 4 * second}, 3, 3},
		{[][]int64{{40 * year, 40*year + 2*second}, {0, second, 2 * second}}, []int64{0, second, 2 * second, 40 * year, 40*year + 2*second}, 4, 3},
		{[][]int64{{second, 2 * second}, {}, {second}}, []int64{second, second, 2 * second}, 1, 2},
		{[][]int64{{second}, {3 * second}}, []int64{second, 3 * second}, 0, 0},
		{[][]int64{{}, {}}, nil, 0, 0},
	} {
		s, times := source(t, c.files...)
		seconds, gaps := s.Seconds()
		if !slices.Equal(times, c.times) || seconds != c.seconds || gaps != c.gaps {
			t.Errorf("%v: got %v, %v s with %v gaps, want %v, %v, %v", c.files, times, seconds, gaps, c.times, c.seconds, c.gaps)
		}
	}
	s, times := source(t, []int64{5 * second, 3 * second, 4 * second})
	if w := s.Warnings(); !slices.Equal(times, []int64{5 * second, 3 * second, 4 * second}) || len(w) != 1 || !strings.Contains(w[0], "1 packets are earlier than the one before them") {
		t.Errorf("out of order: %v, %q", times, w)
	}
	if seconds, _ := s.Seconds(); seconds != 2 {
		t.Errorf("out of order: %v s, want 2", seconds)
	}
	bad := filepath.Join(t.TempDir(), "bad.pcap")
	good := filepath.Join(t.TempDir(), "good.pcap")
	o := binary.LittleEndian
	for path, data := range map[string][]byte{bad: slices.Concat(header(o, magicNano, 0, 1), record(o, 1, 2, 1<<31, 60, nil)), good: header(o, magicNano, 0, 1)} {
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Open(good, bad)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Next(new(Packet)); fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), "bad.pcap: packet 1: a captured length") {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile(bad, []byte("nonsense"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(good, bad); fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), "bad.pcap: not a capture") {
		t.Errorf("got %v", err)
	}
	if _, err := Open("nowhere.pcap"); fault.KindOf(err) != fault.Input {
		t.Errorf("got %v", err)
	}
}

// Packets of unknown link types are left out, and counted.
func TestUnknownLinks(t *testing.T) {
	o := binary.LittleEndian
	s, err := FromReader(bytes.NewReader(slices.Concat(sectionBlock(o), interfaceBlock(o, 105, 0), interfaceBlock(o, Ethernet2, 0),
		packetBlock(o, 0, 1, 4, 60, []byte("wifi")), packetBlock(o, 1, 2, 4, 60, []byte("wire")), packetBlock(o, 0, 3, 4, 60, []byte("wifi")),
		block(o, blockSimple, words(o, 4), []byte("wifi")))), "t")
	if err != nil {
		t.Fatal(err)
	}
	var p Packet
	if err := s.Next(&p); err != nil || string(p.Data) != "wire" {
		t.Errorf("got %q, %v", p.Data, err)
	}
	if err := s.Next(&p); err != io.EOF {
		t.Errorf("got %v", err)
	}
	if w := s.Warnings(); len(w) != 1 || !strings.Contains(w[0], "3 packets of link type 105 were left out") || s.Unknown() != "link type 105" {
		t.Errorf("warnings %q, unknown %q", w, s.Unknown())
	}
}

// A packet's size as an Ethernet frame, whatever it was captured as.
func TestFrameBytes(t *testing.T) {
	o := binary.LittleEndian
	for _, c := range []struct {
		network uint32
		length  uint32
		want    int
	}{
		{1, 1000, 1004},
		{1, 42, 64},
		{1 | 2<<28 | 1<<26, 1000, 1000}, // two 16-bit units of check sequence
		{101, 986, 1004},
		{228, 986, 1004},
		{12, 986, 1004},
		{113, 1002, 1004},
		{276, 1006, 1004},
		{0, 990, 1004},
		{108, 990, 1004},
	} {
		p, _ := must(t, slices.Concat(header(o, magicMicro, 0, c.network), record(o, 1, 2, 0, c.length, nil)))
		if got := p[0].FrameBytes(); got != c.want || !p[0].Link.Known() {
			t.Errorf("link %x, %d bytes: %d, want %d", c.network, c.length, got, c.want)
		}
	}
}

func TestIs(t *testing.T) {
	for _, magic := range []string{"\xa1\xb2\xc3\xd4", "\xd4\xc3\xb2\xa1", "\xa1\xb2\x3c\x4d", "\x4d\x3c\xb2\xa1", "\x34\xcd\xb2\xa1", "\x0a\x0d\x0d\x0a", "\x1f\x8b\x08\x00"} {
		if !Is([]byte(magic)) {
			t.Errorf("% x is not taken for a capture", magic)
		}
	}
	for _, magic := range []string{"", "\x1f\x8b", "src,", "rate"} {
		if Is([]byte(magic)) {
			t.Errorf("%q is taken for a capture", magic)
		}
	}
}

// readAll reads any bytes and dissects what is there.
func readAll(t *testing.T, data []byte) {
	r, err := NewReader(bytes.NewReader(data), "t")
	if err != nil {
		if fault.KindOf(err) != fault.Input {
			t.Fatal(err)
		}
		return
	}
	var h Headers
	var f Fragments
	for n := int64(1); ; n++ {
		var p Packet
		if err := r.Next(&p); err == io.EOF {
			return
		} else if err != nil {
			if fault.KindOf(err) != fault.Input {
				t.Fatal(err)
			}
			return
		}
		if p.Number != n || p.Length < len(p.Data) || len(p.Data) > MaxCaptured || p.FrameBytes() < 64 {
			t.Fatalf("packet %d: %d bytes of %d, number %d", n, len(p.Data), p.Length, p.Number)
		}
		h.Parse(&p)
		f.Resolve(&h, p.Time)
		for _, l := range Layers() {
			if b := h.Bytes(l); b != nil && !h.Has(l) {
				t.Fatalf("bytes of %v, which is not there", l)
			}
		}
	}
}

func FuzzPcap(f *testing.F) {
	for _, o := range orders {
		f.Add(slices.Concat(header(o, magicMicro, 65535, 1), record(o, 1, 2, 4, 60, []byte("abcd"))))
		f.Add(slices.Concat(header(o, magicModified, 0, 101), record(o, 1, 2, 4, 60, []byte("12345678abcd"))))
	}
	for _, p := range samples() {
		f.Add(slices.Concat(header(binary.LittleEndian, magicNano, 0, uint32(p.link)), record(binary.LittleEndian, 1, 2, uint32(len(p.data)), uint32(len(p.data)), p.data)))
	}
	f.Fuzz(readAll)
}

func FuzzPcapng(f *testing.F) {
	for _, o := range orders {
		f.Add(slices.Concat(sectionBlock(o), interfaceBlock(o, Ethernet2, 0, option(o, optResolution, 0x80|20), option(o, optOffset, make([]byte, 8)...)),
			packetBlock(o, 0, 1, 4, 60, []byte("abcd")), block(o, blockSimple, words(o, 4), []byte("abcd")), block(o, 77), block(o, blockOld, halves(o, 0, 0), words(o, 0, 6, 4, 60), []byte("abcd"))))
	}
	f.Fuzz(readAll)
}
