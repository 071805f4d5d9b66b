package report

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// logTicks puts ticks at 1, 2 and 5 times the powers of ten, which
// plot.LogTicks leaves unlabelled (gonum/plot issue 747). Over more than three
// decades only the powers of ten have labels.
type logTicks struct{}

// Ticks implements plot.Ticker.
func (logTicks) Ticks(low, high float64) []plot.Tick {
	if low <= 0 || high <= low {
		return nil
	}
	wide := high/low > 1000
	var ticks []plot.Tick
	for e := int(math.Floor(math.Log10(low))); ; e++ {
		for _, m := range []float64{1, 2, 5} {
			// Parsing keeps the tick exact where m·10^e is not.
			v, _ := strconv.ParseFloat(strconv.Itoa(int(m))+"e"+strconv.Itoa(e), 64)
			if v > high*(1+1e-9) {
				return ticks
			}
			if v < low*(1-1e-9) {
				continue
			}
			t := plot.Tick{Value: v}
			if m == 1 || !wide {
				t.Label = strconv.FormatFloat(v, 'f', -1, 64)
			}
			ticks = append(ticks, t)
		}
	}
}

// linearTicks puts labelled ticks at multiples of 1, 2 or 5 times a power of
// ten, four to eight of them.
type linearTicks struct{}

// Ticks implements plot.Ticker.
func (linearTicks) Ticks(low, high float64) []plot.Tick {
	if !(high > low) {
		return nil
	}
	e := math.Floor(math.Log10((high - low) / 4))
	step := math.Pow(10, e)
	for _, m := range []float64{2, 5} {
		if (high-low)/(m*math.Pow(10, e)) >= 4 {
			step = m * math.Pow(10, e)
		}
	}
	decimals := max(0, int(-e))
	var ticks []plot.Tick
	// Adding 0 turns a negative zero into the 0 of the label.
	for k := math.Ceil(low/step-1e-9) + 0; k*step <= high+1e-9*step; k++ {
		ticks = append(ticks, plot.Tick{Value: k * step, Label: strconv.FormatFloat(k*step, 'f', decimals, 64)})
	}
	return ticks
}

// named puts a tick with a name at 1, 2 and so on.
type named []string

// Ticks implements plot.Ticker.
func (n named) Ticks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for i, name := range n {
		if at := float64(i + 1); at >= low && at <= high {
			ticks = append(ticks, plot.Tick{Value: at, Label: name})
		}
	}
	return ticks
}

// unlabelled is the ticks of an axis whose labels stand at another panel.
type unlabelled struct{ plot.Ticker }

// Ticks implements plot.Ticker.
func (u unlabelled) Ticks(low, high float64) []plot.Tick {
	ticks := u.Ticker.Ticks(low, high)
	for i := range ticks {
		if ticks[i].Label != "" {
			ticks[i].Label = " " // an empty one makes a minor tick without a grid line
		}
	}
	return ticks
}
