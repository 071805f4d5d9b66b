package nfp

import (
	"math/bits"
	"regexp"
	"strconv"
	"strings"

	"nicprof/internal/fault"
)

// hwinfo is what nfp-hwinfo says of a card: name=value lines.
type hwinfo map[string]string

// parseHwinfo reads the output of nfp-hwinfo. Lines without "=" are passed
// over; an output without the card's part number and clock is a missing card.
func parseHwinfo(text string) (hwinfo, error) {
	h := hwinfo{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			h[name] = value
		}
	}
	for _, name := range []string{"assembly.partno", "me.speed"} {
		if h[name] == "" {
			return nil, fault.Missingf("nfp-hwinfo prints no %s: is the card there, and the nfp module loaded with nfp_dev_cpp=1?", name)
		}
	}
	return h, nil
}

// meSpeed is the microengines' clock, MHz.
func (h hwinfo) meSpeed() (float64, error) {
	v, err := strconv.ParseFloat(h["me.speed"], 64)
	if err != nil || !(v > 0) {
		return 0, fault.Checkf("nfp-hwinfo: me.speed=%s is not a clock in MHz", h["me.speed"])
	}
	return v, nil
}

// Islands of microengines that run programs have numbers 32 to 38 in the mask
// of hwinfo; each has 12 microengines.
const (
	firstIsland, lastIsland = 32, 38
	islandMEs               = 12
)

// microengines counts those of the programmable islands; false when the mask is
// not there.
func (h hwinfo) microengines() (int, bool) {
	mask, err := strconv.ParseUint(h["chip.island"], 0, 64)
	if err != nil {
		return 0, false
	}
	const islands = (1<<(lastIsland-firstIsland+1) - 1) << firstIsland
	return islandMEs * bits.OnesCount64(mask&islands), true
}

// traffic is what the card's MAC has counted over its ports.
type macCount struct{ received, sent uint64 }

// The counters' names are those of the MAC's statistics block in the public
// sources of its firmware and kernel driver. The tool's own layout of them is
// not published: a name, perhaps with the port before it, then its value.
var (
	macReceived = regexp.MustCompile(`(?i)\bRxFramesReceivedOK\b[\s:=]*(0x[0-9a-fA-F]+|\d+)`)
	macSent     = regexp.MustCompile(`(?i)\bTxFramesTransmittedOK\b[\s:=]*(0x[0-9a-fA-F]+|\d+)`)
)

// parseMAC adds up the frames of all ports in the output of "show port stats".
func parseMAC(text string) (macCount, error) {
	var c macCount
	for _, f := range []struct {
		name string
		re   *regexp.Regexp
		into *uint64
	}{{"RxFramesReceivedOK", macReceived, &c.received}, {"TxFramesTransmittedOK", macSent, &c.sent}} {
		found := f.re.FindAllStringSubmatch(text, -1)
		if len(found) == 0 {
			return c, fault.Checkf("nfp: no %s in the port statistics %s", f.name, excerpt(text))
		}
		for _, m := range found {
			v, err := strconv.ParseUint(m[1], 0, 64)
			if err != nil || *f.into+v < v {
				return c, fault.Checkf("nfp: %s is not a counter of 64 bits", m[0])
			}
			*f.into += v
		}
	}
	return c, nil
}

// since returns the frames from an earlier count on. A counter that runs
// backwards has been cleared by somebody.
func (c macCount) since(before macCount) (macCount, error) {
	if c.received < before.received || c.sent < before.sent {
		return macCount{}, fault.Checkf("the card's port statistics ran backwards: something else cleared them")
	}
	return macCount{c.received - before.received, c.sent - before.sent}, nil
}

var word = regexp.MustCompile(`0[xX][0-9a-fA-F]{1,8}\b`)

// parseWords reads n 32-bit words of a symbol from the output of nfp-rtsym:
// lines of an offset, a colon and words.
func parseWords(text string, n int) ([]uint32, error) {
	var words []uint32
	for line := range strings.Lines(text) {
		if _, rest, ok := strings.Cut(line, ":"); ok {
			line = rest
		}
		for _, w := range word.FindAllString(line, -1) {
			v, err := strconv.ParseUint(w, 0, 32)
			if err != nil {
				return nil, fault.Checkf("nfp-rtsym: %s: %w", w, err)
			}
			words = append(words, uint32(v))
		}
	}
	if len(words) != n {
		return nil, fault.Checkf("nfp-rtsym: %d words, want %d, in %s", len(words), n, excerpt(text))
	}
	return words, nil
}

// excerpt quotes the end of a tool's output.
func excerpt(text string) string {
	const most = 300
	text = strings.TrimSpace(text)
	if len(text) > most {
		text = "..." + text[len(text)-most:]
	}
	return strconv.Quote(text)
}
