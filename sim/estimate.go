package sim

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Interval is a confidence interval of a mean.
type Interval struct{ Mean, Low, High float64 }

// Half returns half the interval's width.
func (i Interval) Half() float64 { return (i.High - i.Low) / 2 }

// Contains tells whether v lies in the interval.
func (i Interval) Contains(v float64) bool { return i.Low <= v && v <= i.High }

// Replications returns the Student t interval, at a confidence level such as
// 0.99, of the mean of independent observations: one a replication. The
// interval of fewer than two observations is unbounded.
func Replications(x []float64, level float64) Interval {
	if len(x) < 2 {
		m := math.NaN()
		if len(x) == 1 {
			m = x[0]
		}
		return Interval{m, math.Inf(-1), math.Inf(1)}
	}
	n := float64(len(x))
	mean, sd := stat.MeanStdDev(x, nil)
	t := distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile(0.5 + level/2)
	half := t * sd / math.Sqrt(n)
	return Interval{mean, mean - half, mean + half}
}

// BatchMeans returns the interval of the mean of one run's correlated
// observations: that of the means of consecutive batches of equal length,
// which are nearly independent when a batch is long compared with the
// correlation. The first len(x) mod batches observations are left out.
func BatchMeans(x []float64, batches int, level float64) Interval {
	return Replications(batchMeans(x, batches), level)
}

func batchMeans(x []float64, batches int) []float64 {
	size := len(x) / batches
	if size == 0 {
		return x
	}
	x = x[len(x)-size*batches:]
	means := make([]float64, batches)
	for i := range means {
		means[i] = stat.Mean(x[i*size:(i+1)*size], nil)
	}
	return means
}

// Warmup returns the number of observations to drop from the start of a run, by
// the rule MSER-5 (White, Cobb and Spratt, "A comparison of five steady-state
// truncation heuristics for simulation", WSC 2000): over means of five, the cut
// that minimises the standard error of what remains. The rule fails, and steady
// is false, if that cut lies in the second half: the run is too short for its
// warm-up, or has no steady state.
func Warmup(x []float64) (drop int, steady bool) {
	const five = 5
	n := len(x) / five
	best, at := math.Inf(1), 0
	// Welford's update from the end, so that the sums of every remainder come
	// from one pass.
	var mean, m2 float64
	for i := n - 1; i >= 0; i-- {
		y := stat.Mean(x[i*five:(i+1)*five], nil)
		kept := float64(n - i)
		d := y - mean
		mean += d / kept
		m2 += d * (y - mean)
		// Remainders of a few means are small by chance.
		if kept < 5 {
			continue
		}
		if mser := m2 / (kept * kept); mser <= best {
			best, at = mser, i
		}
	}
	return at * five, n >= 5 && at <= n/2
}

// steadyBatches is the number of batches in Steady: more gain little, and fewer
// widen the interval (Schmeiser, "Batch size effects in the analysis of
// simulation output", Operations Research 1982, finds 10 to 30 best).
const steadyBatches = 20

// Estimate is a steady-state mean estimated from one run.
type Estimate struct {
	Interval
	Dropped int // observations removed as warm-up
	Used    int // observations after them
	// Steady is false if the run shows no steady state: the warm-up rule fails,
	// or the batch means are correlated (a trend, or batches too short), so that
	// the interval is not to be trusted.
	Steady bool
	// Precise is set by Precision.Run: the interval is as narrow as asked.
	Precise bool
}

// Steady estimates the steady-state mean of a run's observations: warm-up
// removed, interval by batch means.
func Steady(x []float64, level float64) Estimate {
	drop, steady := Warmup(x)
	if !steady {
		drop = len(x) / 2
	}
	means := batchMeans(x[drop:], steadyBatches)
	return Estimate{
		Interval: Replications(means, level),
		Dropped:  drop,
		Used:     len(x) - drop,
		Steady:   steady && len(means) == steadyBatches && !correlated(means),
	}
}

// correlated tests independent means at the 1 % level: their lag-1
// autocorrelation is then about normal with variance 1/n.
func correlated(means []float64) bool {
	m := stat.Mean(means, nil)
	var product, square float64
	for i, x := range means {
		square += (x - m) * (x - m)
		if i > 0 {
			product += (x - m) * (means[i-1] - m)
		}
	}
	return product > distuv.UnitNormal.Quantile(0.99)/math.Sqrt(float64(len(means)))*square
}

// Precision says how long a run goes on.
type Precision struct {
	Level    float64 // confidence level of the interval, such as 0.95
	Relative float64 // the half-width to reach, relative to the mean
	Min, Max int     // observations at least and at most
}

// Run observes until the estimate is steady and precise, or Max observations
// are made. It looks at growing lengths, each half as long again as the last:
// looking after each observation would stop at the luckiest one.
func (p Precision) Run(observe func() float64) Estimate {
	x := make([]float64, 0, p.Min)
	for n := max(1, min(p.Min, p.Max)); ; n = min(n+(n+1)/2, p.Max) {
		for len(x) < n {
			x = append(x, observe())
		}
		e := Steady(x, p.Level)
		e.Precise = e.Steady && e.Half() <= p.Relative*math.Abs(e.Mean)
		if e.Precise || n >= p.Max {
			return e
		}
	}
}
