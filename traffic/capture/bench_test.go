package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// BenchmarkHeaders reads TCP packets of 96 captured bytes and finds their
// headers: this package, and gopacket the two ways that it offers.
func BenchmarkHeaders(b *testing.B) {
	const packets = 100_000
	o := binary.LittleEndian
	frame := unhex(macs, "0800", "45000030 00010000 40060000 0a000001 0a000002", "03e807d0 00000001 00000002 5010ffff 00000000")
	frame = append(frame, make([]byte, 96-len(frame))...)
	file := header(o, magicNano, 65535, 1)
	for i := range uint32(packets) {
		file = append(file, record(o, 1, i, 96, 1500, frame)...)
	}
	report := func(b *testing.B) {
		b.ReportMetric(packets*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mpackets/s")
	}
	b.Run("nicprof", func(b *testing.B) {
		for b.Loop() {
			r, err := NewReader(bytes.NewReader(file), "")
			if err != nil {
				b.Fatal(err)
			}
			var p Packet
			var h Headers
			n := 0
			for r.Next(&p) == nil {
				h.Parse(&p)
				if h.Has(TCP) {
					n++
				}
			}
			if n != packets {
				b.Fatal(n)
			}
		}
		report(b)
	})
	pcapgoReader := func(b *testing.B) *pcapgo.Reader {
		r, err := pcapgo.NewReader(bytes.NewReader(file))
		if err != nil {
			b.Fatal(err)
		}
		return r
	}
	b.Run("gopacket/parser", func(b *testing.B) {
		var eth layers.Ethernet
		var ip layers.IPv4
		var tcp layers.TCP
		var payload gopacket.Payload
		parser := gopacket.NewDecodingLayerParser(layers.LayerTypeEthernet, &eth, &ip, &tcp, &payload)
		found := []gopacket.LayerType{}
		for b.Loop() {
			r := pcapgoReader(b)
			n := 0
			for {
				data, _, err := r.ZeroCopyReadPacketData()
				if errors.Is(err, io.EOF) {
					break
				}
				if err := parser.DecodeLayers(data, &found); err != nil {
					b.Fatal(err)
				}
				if len(found) > 2 && found[2] == layers.LayerTypeTCP {
					n++
				}
			}
			if n != packets {
				b.Fatal(n)
			}
		}
		report(b)
	})
	b.Run("gopacket/packet", func(b *testing.B) {
		for b.Loop() {
			r := pcapgoReader(b)
			n := 0
			for {
				data, _, err := r.ZeroCopyReadPacketData()
				if errors.Is(err, io.EOF) {
					break
				}
				p := gopacket.NewPacket(data, layers.LayerTypeEthernet, gopacket.DecodeOptions{Lazy: true, NoCopy: true})
				if p.Layer(layers.LayerTypeTCP) != nil {
					n++
				}
			}
			if n != packets {
				b.Fatal(n)
			}
		}
		report(b)
	})
}
