package traffic

import (
	"math"
	"strconv"
	"strings"

	"nicprof/internal/config"
	"nicprof/internal/fault"
)

// Limits of what can be described.
const (
	MaxFlows        = 1 << 40
	MinPacketBytes  = 64   // Ethernet frame with its check sequence
	MaxPacketBytes  = 9216 // jumbo frame
	MaxMessageBytes = 1 << 40
	MaxAlpha        = 20 // beyond it the first rank has all packets in float64
)

// CheckPopularity complains about a popularity that is neither uniform ("" too)
// nor Zipf with an exponent.
func CheckPopularity(popularity string, alpha float64) config.Findings {
	var f config.Findings
	switch popularity {
	case "", "uniform":
		if alpha != 0 {
			f.Add("alpha", "%v is set without popularity: zipf", alpha)
		}
	case "zipf":
		if !(alpha > 0 && alpha <= MaxAlpha) {
			f.Add("alpha", "%v is not a Zipf exponent; expected above 0 up to %d, such as 0.99", alpha, MaxAlpha)
		}
	default:
		f.Add("popularity", "%q is not a popularity; expected uniform or zipf", popularity)
	}
	return f
}

// CheckPacketBytes complains about a packet size that no Ethernet port takes.
func CheckPacketBytes(n int) config.Findings {
	var f config.Findings
	if n < MinPacketBytes || n > MaxPacketBytes {
		f.Add("", "%d is not a packet size; expected %d..%d bytes", n, MinPacketBytes, MaxPacketBytes)
	}
	return f
}

// Check complains about a set of flows that cannot be.
func (w Flows) Check() config.Findings {
	var f config.Findings
	if w.Count < 1 || w.Count > MaxFlows {
		f.Add("count", "%d flows; expected 1..2^40", w.Count)
	}
	f.AddAll("", CheckPopularity(w.Popularity, w.Alpha))
	if w.Shares == nil {
		return f
	}
	if len(w.Shares) != w.Count {
		f.Add("shares", "%d shares for %d flows", len(w.Shares), w.Count)
	}
	sum := 0.0
	for _, s := range w.Shares {
		sum += s
		if !(s >= 0) {
			f.Add("shares", "%v is not a share of the packets; expected 0..1", s)
			return f
		}
	}
	if math.Abs(sum-1) > 1e-6 {
		f.Add("shares", "the shares sum to %v, not to 1", sum)
	}
	return f
}

// ParseFlows reads N or N:zipf:ALPHA.
func ParseFlows(spec string) (Flows, error) {
	const form = "flows %q: expected N or N:zipf:ALPHA, such as 1000:zipf:0.99"
	f := strings.Split(spec, ":")
	n, err := strconv.Atoi(f[0])
	if err != nil || len(f) != 1 && (len(f) != 3 || f[1] != "zipf") {
		return Flows{}, fault.Inputf(form, spec)
	}
	w := Flows{Count: n}
	if len(f) == 3 {
		w.Popularity = "zipf"
		if w.Alpha, err = strconv.ParseFloat(f[2], 64); err != nil {
			return Flows{}, fault.Inputf(form, spec)
		}
	}
	if err := w.Check().Err(); err != nil {
		return Flows{}, fault.Inputf("flows %q: %w", spec, err)
	}
	return w, nil
}

// String returns the flows as a spec that ParseFlows reads back.
func (w Flows) String() string {
	s := strconv.Itoa(w.Count)
	if w.Popularity == "zipf" {
		s += ":zipf:" + strconv.FormatFloat(w.Alpha, 'g', -1, 64)
	}
	return s
}
