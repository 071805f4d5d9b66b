package microbench

import (
	"fmt"
	"maps"
	"slices"

	"nicprof/internal/fault"
)

// Packets accounts for the packets of a measurement on a real interface, all
// trials together: Sent = Received + the sum of Dropped + Unaccounted. A packet
// counts as received once, and not when it is damaged.
type Packets struct {
	Due         int64            `json:"due,omitempty"` // that the offered rate asked for; 0: saturating
	Sent        int64            `json:"sent"`          // taken by the generator's interface
	Arrived     int64            `json:"arrived"`       // taken over by the forwarder
	Forwarded   int64            `json:"forwarded"`     // taken by the forwarder's interface
	Received    int64            `json:"received"`      // at the sink, whole
	Dropped     map[string]int64 `json:"dropped"`       // by cause, each from a counter of its own
	Unaccounted int64            `json:"unaccounted"`   // lost without a cause
	Duplicated  int64            `json:"duplicated"`    // received again
	Reordered   int64            `json:"reordered"`     // received after a later one
	Damaged     int64            `json:"damaged"`       // received, but not as the forwarder should have left them
	Foreign     int64            `json:"foreign"`       // at the sink, of other origin
}

// Lost returns the packets sent and not received.
func (p *Packets) Lost() int64 { return p.Sent - p.Received }

// String says what became of the packets sent.
func (p *Packets) String() string {
	text := fmt.Sprintf("%d received", p.Received)
	for _, cause := range slices.Sorted(maps.Keys(p.Dropped)) {
		if n := p.Dropped[cause]; n > 0 {
			text += fmt.Sprintf(", %d dropped at the %s", n, cause)
		}
	}
	return text + fmt.Sprintf(", %d unaccounted for", p.Unaccounted)
}

// Account sets Unaccounted from the other counts. A loss below zero, or less
// than the causes together claim, is a failed check: the counters were read
// before they had settled, or count other packets too.
func (p *Packets) Account() error {
	named := int64(0)
	for _, cause := range slices.Sorted(maps.Keys(p.Dropped)) {
		n := p.Dropped[cause]
		if n < 0 {
			return fault.Checkf("%d packets dropped at %s: a counter ran backwards", n, cause)
		}
		named += n
	}
	if p.Lost() < 0 {
		return fault.Checkf("%d packets received of %d sent: a loss below zero", p.Received, p.Sent)
	}
	p.Unaccounted = p.Lost() - named
	if p.Unaccounted < 0 {
		return fault.Checkf("%d packets lost, but %d counted as dropped (%v): the counters count other packets too", p.Lost(), named, p.Dropped)
	}
	return nil
}

// Check returns a failed check where a packet was lost without a cause,
// duplicated or damaged.
func (p *Packets) Check() error {
	if p.Unaccounted != 0 || p.Duplicated != 0 || p.Damaged != 0 {
		return fault.Checkf("of %d packets sent %d are unaccounted for, %d were duplicated, %d damaged", p.Sent, p.Unaccounted, p.Duplicated, p.Damaged)
	}
	return nil
}

// Add adds the counts of another trial.
func (p *Packets) Add(o Packets) {
	p.Due += o.Due
	p.Sent += o.Sent
	p.Arrived += o.Arrived
	p.Forwarded += o.Forwarded
	p.Received += o.Received
	if p.Dropped == nil {
		p.Dropped = map[string]int64{}
	}
	for cause, n := range o.Dropped {
		p.Dropped[cause] += n
	}
	p.Unaccounted += o.Unaccounted
	p.Duplicated += o.Duplicated
	p.Reordered += o.Reordered
	p.Damaged += o.Damaged
	p.Foreign += o.Foreign
}
