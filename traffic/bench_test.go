package traffic

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"nicprof/traffic/capture"
)

// bigCapture is a pcap of packets of some flows under a popularity, snapped to
// 96 bytes: what a capture for flow volumes looks like.
func bigCapture(packets, flows int) []byte {
	b := pcapHeader()
	data := make([]byte, 96)
	r := rand.New(rand.NewPCG(1, 1))
	z := NewZipf(int64(flows), 0.9)
	scatter := NewPermutation(int64(flows), 1)
	for i := range packets {
		n := uint32(scatter.At(z.Draw(r)))
		f := Flow{Src: netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}), Dst: netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}), Proto: 6, SrcPort: uint16(n >> 4), DstPort: 443}
		data = f.AppendHeaders(data[:0], 1000)
		b = appendPacket(b, int64(1e18+i*1000), data[:96], 60+r.IntN(1450))
	}
	return b
}

// BenchmarkCaptureVolumes counts 2 M packets on one core: read alone, by
// source, by 5-tuple, and by the keys of three blocks at once, of 10^4 and 10^6
// flows. The aim is 4 M packets a second.
func BenchmarkCaptureVolumes(b *testing.B) {
	const packets = 2_000_000
	tuple := Key{IPv4Source, IPv4Dest, IPv4Proto, {capture.TCP, 0, 32}, {capture.UDP, 0, 32}}
	for _, flows := range []struct {
		name string
		n    int
	}{{"10k", 10_000}, {"1M", 1_000_000}} {
		path := filepath.Join(b.TempDir(), "big.pcap")
		if err := os.WriteFile(path, bigCapture(packets, flows.n), 0o666); err != nil {
			b.Fatal(err)
		}
		for _, c := range []struct {
			name string
			keys []Key
		}{
			{"none", nil},
			{"source", []Key{{IPv4Source}}},
			{"tuple", []Key{tuple}},
			{"three", []Key{{IPv4Source}, {IPv4Dest}, tuple}},
		} {
			b.Run("flows="+flows.name+"/keys="+c.name, func(b *testing.B) {
				for b.Loop() {
					v, err := CaptureVolumes([]string{path}, c.keys, VolumeOptions{})
					if err != nil || v.TotalPackets != packets {
						b.Fatal(v, err)
					}
				}
				b.ReportMetric(packets*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mpackets/s")
			})
		}
		if flows.n == 1_000_000 {
			b.Run("capinfos", func(b *testing.B) {
				tool, err := exec.LookPath("capinfos")
				if err != nil {
					b.Skip("capinfos (package wireshark-common) is not installed")
				}
				for b.Loop() {
					if out, err := exec.Command(tool, "-c", "-z", "-u", path).CombinedOutput(); err != nil || !bytes.Contains(out, []byte("Number of packets")) {
						b.Fatalf("%v: %s", err, out)
					}
				}
				b.ReportMetric(packets*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mpackets/s")
			})
		}
	}
}
