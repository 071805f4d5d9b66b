package microbench

import (
	"context"

	"nicprof/program"
	"nicprof/traffic"
)

// AllowNoise returns a driver that measures as d does with Options.AllowNoise:
// what a machine too noisy gave is reported, marked, instead of refused.
func AllowNoise(d Driver) Driver {
	if l, ok := d.(Located); ok {
		return tolerantLocated{tolerant{d}, l}
	}
	return tolerant{d}
}

type tolerant struct{ Driver }

func (t tolerant) Measure(ctx context.Context, p program.Program, tr traffic.Traffic, o Options) (Sample, error) {
	o.AllowNoise = true
	return t.Driver.Measure(ctx, p, tr, o)
}

// tolerantLocated keeps what a driver says of its machine.
type tolerantLocated struct {
	tolerant
	at Located
}

func (t tolerantLocated) Machine() Machine { return t.at.Machine() }
