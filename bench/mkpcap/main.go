// Command mkpcap makes a capture up, of flows whose volumes follow a published
// distribution:
//
//	go run ./bench/mkpcap -packets 1000000 -flows 100000 -distribution agh2015 -o t.pcap
//
// Packets are TCP over IPv4, cut behind their headers. Each belongs to a flow
// drawn by the flows' volumes; times between packets are exponential; sizes
// are drawn from a packet mix, whatever the flow. Flows have a sender of their
// own in 10.0.0.0/8 and go to a few services; a share of them is to port 80,
// the others to 443. The same flags give the same file.
package main

import (
	"flag"
	"fmt"
	"io"
	"math"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"nicprof/internal/atomicfile"
	"nicprof/sim"
	"nicprof/traffic"
)

// start is the time of the first packet, ns since 1970: 1 January 2025.
const start = 1735689600e9

// options are the command's flags.
type options struct {
	packets      int
	flows        int
	distribution string
	size         string
	pps          float64
	http         float64
	services     int
	seed         uint64
}

func main() {
	o := options{}
	flag.IntVar(&o.packets, "packets", 1_000_000, "`number` of packets")
	flag.IntVar(&o.flows, "flows", 100_000, "`number` of flows, some of which may get no packet")
	flag.StringVar(&o.distribution, "distribution", "agh2015", "volumes of flows: uniform, zipf:ALPHA, or one of "+strings.Join(traffic.ShapeNames(), ", "))
	flag.StringVar(&o.size, "size", "imix", "frame `size` in bytes, or a mix: imix or imix-csit")
	flag.Float64Var(&o.pps, "pps", 1e6, "mean rate in packets a second")
	flag.Float64Var(&o.http, "http", 0, "`share` of the flows that go to port 80, 0..1")
	flag.IntVar(&o.services, "services", 4, "`number` of destination addresses, up to 254")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of all draws")
	out := flag.String("o", "", "`file` to write")
	flag.Parse()
	if flag.NArg() > 0 || *out == "" {
		fmt.Fprintln(os.Stderr, "mkpcap: expected -o FILE and no other arguments")
		os.Exit(2)
	}
	var seen int
	err := atomicfile.WriteFunc(*out, func(w io.Writer) (err error) {
		seen, err = write(w, o)
		return err
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "mkpcap:", err)
		os.Exit(2)
	}
	fmt.Fprintf(os.Stderr, "mkpcap: %d packets of %d flows", o.packets, seen)
	if rest := o.flows - seen; rest > 0 {
		fmt.Fprintf(os.Stderr, "; the other %d of -flows are so small that none of their packets was drawn", rest)
	}
	fmt.Fprintln(os.Stderr)
}

// shape reads the distribution of flow volumes.
func (o options) shape() (traffic.Shape, error) {
	name, alpha, zipf := strings.Cut(o.distribution, ":")
	switch {
	case o.distribution == "uniform":
		return traffic.Shape{}, nil
	case name == "zipf" && zipf:
		a, err := strconv.ParseFloat(alpha, 64)
		if err != nil {
			return traffic.Shape{}, fmt.Errorf("-distribution %s: %q is not an exponent", o.distribution, alpha)
		}
		return traffic.Shape{Alpha: a}, nil
	}
	return traffic.NamedShape(o.distribution)
}

// sizes reads the frame sizes.
func (o options) sizes() (*traffic.Sizes, error) {
	if n, err := strconv.Atoi(o.size); err == nil {
		if err := traffic.CheckPacketBytes(n).Err(); err != nil {
			return nil, fmt.Errorf("-size: %w", err)
		}
		return &traffic.Sizes{Bytes: []float64{float64(n)}, P: []float64{1}}, nil
	}
	s, err := traffic.NamedSizes(o.size)
	if err == nil && s.Max() > traffic.MaxPacketBytes {
		s = s.Packets() // of messages: the frames that they travel in
	}
	return s, err
}

// write writes the capture, and returns how many flows have a packet in it.
func write(w io.Writer, o options) (seen int, err error) {
	switch {
	case o.packets < 1 || o.packets > 1<<32:
		return 0, fmt.Errorf("-packets %d: expected 1..2^32", o.packets)
	case o.flows < 1 || o.flows > 1<<24:
		return 0, fmt.Errorf("-flows %d: expected 1..2^24, the addresses in 10.0.0.0/8", o.flows)
	case !(o.pps > 0 && o.pps <= 1e9 && float64(o.packets)/o.pps < 1e9):
		return 0, fmt.Errorf("-pps %v: expected above 0 up to 1e9, and a capture of less than 30 years", o.pps)
	case !(o.http >= 0 && o.http <= 1):
		return 0, fmt.Errorf("-http %v: expected 0..1", o.http)
	case o.services < 1 || o.services > 254:
		return 0, fmt.Errorf("-services %d: expected 1..254", o.services)
	}
	shape, err := o.shape()
	if err != nil {
		return 0, err
	}
	shares, err := shape.Rates(1, o.flows, 0)
	if err != nil {
		return 0, err
	}
	sizes, err := o.sizes()
	if err != nil {
		return 0, err
	}
	which := traffic.Flows{Count: o.flows, Shares: shares}.Sampler()
	senders := traffic.NewPermutation(1<<24, o.seed)
	flows, gaps, bytes := sim.NewStream(o.seed, "flows"), sim.NewStream(o.seed, "gaps"), sim.NewStream(o.seed, "sizes")
	c := traffic.NewCaptureWriter(w)
	var headers []byte
	drawn := make([]bool, o.flows)
	at := 0.0 // ns after the start
	for range o.packets {
		i := which.Draw(flows.Rand)
		if !drawn[i] {
			drawn[i] = true
			seen++
		}
		frame := max(int(math.Round(sizes.Draw(bytes.Rand))), traffic.MinPacketBytes)
		headers = o.flow(i, uint32(senders.At(i))).AppendHeaders(headers[:0], frame)
		c.Write(start+int64(at), headers, frame)
		at += gaps.ExpFloat64() / o.pps * 1e9
	}
	return seen, c.Close()
}

// flow returns the i-th flow. Which flows go to port 80 does not depend on their
// volume.
func (o options) flow(i int64, sender uint32) traffic.Flow {
	f := traffic.Flow{
		Src:     netip.AddrFrom4([4]byte{10, byte(sender >> 16), byte(sender >> 8), byte(sender)}),
		Dst:     netip.AddrFrom4([4]byte{192, 0, 2, byte(1 + i%int64(o.services))}),
		Proto:   6,
		SrcPort: uint16(1024 + sender%60000),
		DstPort: 443,
	}
	// The golden ratio's multiples fill 0..1 evenly, from any flow on.
	if _, fraction := math.Modf(float64(i+1) * math.Phi); fraction < o.http {
		f.DstPort = 80
	}
	return f
}
