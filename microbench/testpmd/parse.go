package testpmd

import (
	"regexp"
	"strconv"
	"strings"

	"nicprof/internal/fault"
)

// Port is what a port counted since it was started ("show port stats all"), and
// its rates since the statistics were last shown, by the program's own clock.
type Port struct {
	ID                            int
	RxPackets, RxMissed, RxErrors uint64
	RxNoBuffer                    uint64 // packets lost for want of a buffer
	TxPackets, TxErrors           uint64
	RxPPS, TxPPS                  uint64
}

// Counts are packets since forwarding was started ("show fwd stats all").
// TxDropped are those that the transmit queue did not take.
type Counts struct {
	RxPackets, RxDropped uint64
	TxPackets, TxDropped uint64
	BadIP, BadL4         uint64 // checksums, mode csum only
}

// Forward is the statistics of the forwarding engine: by port, and together as
// the program adds them up.
type Forward struct {
	Ports []Counts
	Total Counts
}

var (
	version      = regexp.MustCompile(`RTE Version: '([^'\r\n]+)'`)
	portHead     = regexp.MustCompile(`#+ NIC statistics for port +(\d+) +#+`)
	forwardHead  = regexp.MustCompile(`-+ Forward statistics for port +(\d+) +-+`)
	totalHead    = regexp.MustCompile(`\++ Accumulated forward statistics for all ports *\++`)
	ruler        = regexp.MustCompile(`^[#+-]{20,}$`)
	counter      = regexp.MustCompile(`([A-Za-z][A-Za-z0-9-]*): +(\d+)`)
	portNames    = []string{"RX-packets", "RX-missed", "RX-errors", "RX-nombuf", "TX-packets", "TX-errors", "Rx-pps", "Tx-pps"}
	forwardNames = []string{"RX-packets", "RX-dropped", "TX-packets", "TX-dropped"}
)

// ParseVersion returns the version that the program prints on starting, such as
// "DPDK 22.11.11", or "" where it prints none.
func ParseVersion(text string) string {
	if m := version.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// ParsePorts reads the answer to "show port stats all".
func ParsePorts(text string) ([]Port, error) {
	blocks, err := blocksOf(text, portHead, portNames)
	if err != nil {
		return nil, err
	}
	var ports []Port
	for _, b := range blocks {
		ports = append(ports, Port{
			ID: b.port, RxPackets: b.values["RX-packets"], RxMissed: b.values["RX-missed"], RxErrors: b.values["RX-errors"],
			RxNoBuffer: b.values["RX-nombuf"], TxPackets: b.values["TX-packets"], TxErrors: b.values["TX-errors"],
			RxPPS: b.values["Rx-pps"], TxPPS: b.values["Tx-pps"],
		})
	}
	if len(ports) == 0 {
		return nil, fault.Checkf("testpmd: no port statistics in its answer %s", excerpt(text))
	}
	return ports, nil
}

// ParseForward reads the answer to "show fwd stats all" or "stop".
func ParseForward(text string) (Forward, error) {
	blocks, err := blocksOf(text, forwardHead, forwardNames)
	if err != nil {
		return Forward{}, err
	}
	var f Forward
	for _, b := range blocks {
		f.Ports = append(f.Ports, b.counts())
	}
	total, err := blocksOf(text, totalHead, forwardNames)
	if err != nil {
		return Forward{}, err
	}
	if len(total) != 1 || len(f.Ports) == 0 {
		return Forward{}, fault.Checkf("testpmd: statistics of %d ports and %d totals in its answer %s", len(f.Ports), len(total), excerpt(text))
	}
	f.Total = total[0].counts()
	return f, nil
}

// block is the counters between a headline and the ruler that ends it.
type block struct {
	port   int
	values map[string]uint64
}

func (b block) counts() Counts {
	return Counts{
		RxPackets: b.values["RX-packets"], RxDropped: b.values["RX-dropped"],
		TxPackets: b.values["TX-packets"], TxDropped: b.values["TX-dropped"],
		BadIP: b.values["Bad-ipcsum"], BadL4: b.values["Bad-l4csum"],
	}
}

// blocksOf returns the blocks with a headline. A block that lacks one of the
// names wanted, or is cut short, is a failed check: another version of the
// program prints otherwise.
func blocksOf(text string, head *regexp.Regexp, want []string) ([]block, error) {
	var blocks []block
	var open *block
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if m := head.FindStringSubmatch(line); m != nil {
			if open != nil {
				return nil, fault.Checkf("testpmd: statistics without an end before %q", line)
			}
			open = &block{values: map[string]uint64{}}
			if len(m) > 1 {
				port, err := strconv.Atoi(m[1])
				if err != nil {
					return nil, fault.Checkf("testpmd: port number of %q: %w", line, err)
				}
				open.port = port
			}
			continue
		}
		if open == nil {
			continue
		}
		if ruler.MatchString(line) {
			for _, name := range want {
				if _, ok := open.values[name]; !ok {
					return nil, fault.Checkf("testpmd: no %s in the statistics of port %d; this program reads those of DPDK 22.11", name, open.port)
				}
			}
			blocks = append(blocks, *open)
			open = nil
			continue
		}
		for _, m := range counter.FindAllStringSubmatch(line, -1) {
			v, err := strconv.ParseUint(m[2], 10, 64)
			if err != nil {
				return nil, fault.Checkf("testpmd: counter %s: %w", m[0], err)
			}
			open.values[m[1]] = v
		}
	}
	if open != nil {
		return nil, fault.Checkf("testpmd: the statistics of port %d are cut short", open.port)
	}
	return blocks, nil
}

// excerpt quotes the end of an answer.
func excerpt(text string) string {
	const most = 200
	text = strings.TrimSpace(text)
	if len(text) > most {
		text = "…" + text[len(text)-most:]
	}
	return strconv.Quote(text)
}
