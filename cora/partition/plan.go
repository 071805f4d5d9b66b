package partition

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
)

// Strategy is a way to partition.
type Strategy string

// Strategies.
const (
	Cora  Strategy = "cora"  // flow groups ordered by volume, memories chosen
	State Strategy = "state" // Gallium's rule: as many whole blocks as the NIC holds, whatever the traffic
	Flow  Strategy = "flow"  // iPipe's rule: whole flows, with all that share an element with them
	Exact Strategy = "exact" // branch and bound
)

// Strategies lists them in the order tables print them.
var Strategies = []Strategy{Cora, State, Flow, Exact}

// Options of Solve. The zero value is the best that a strategy can do.
type Options struct {
	// NoRepair is the paper's algorithm as printed: within a choice of blocks
	// and memories, groups are added by volume times instructions until the
	// first limit is hit (strategy cora).
	NoRepair bool

	// Nodes bounds the branch and bound of strategy exact, 0: 3 million.
	Nodes int
}

// Counters are the numbers of plans that a search has to tell apart: without
// aggregation, with flow groups, after local and after global ordering (the
// paper's Table 2). Memory choices are not counted.
type Counters struct {
	Exhaustive Count `json:"exhaustive"` // flows on each side of each block they visit
	Aggregated Count `json:"aggregated"` // sets of groups: 2^Σ l
	Local      Count `json:"local"`      // Π (l + 1)
	Global     Count `json:"global"`     // Σ l + 1
}

// Count is a number of plans, kept as its logarithm where it is large.
type Count struct {
	Log2 float64
	n    uint64 // 0: only Log2
}

// countOf is an exact count.
func countOf(n uint64) Count { return Count{math.Log2(float64(n)), n} }

// powerOf2 is 2^bits.
func powerOf2(bits uint64) Count { return Count{Log2: float64(bits)} }

// times is the product.
func (c Count) times(n uint64) Count {
	p := Count{Log2: c.Log2 + math.Log2(float64(n))}
	if c.n > 0 && p.Log2 < 52 {
		p.n = c.n * n
	}
	return p
}

// String prints up to 2^52 exactly, "2^N" above.
func (c Count) String() string {
	if c.n > 0 {
		return strconv.FormatUint(c.n, 10)
	}
	return "2^" + new(big.Float).SetFloat64(math.Round(c.Log2*10)/10).Text('f', -1)
}

// MarshalJSON gives a number where it is exact and the string "2^N" otherwise.
func (c Count) MarshalJSON() ([]byte, error) {
	if c.n > 0 {
		return strconv.AppendUint(nil, c.n, 10), nil
	}
	return json.Marshal(c.String())
}

// BlockPlan is where a block lies and what of it is on the NIC.
type BlockPlan struct {
	Memory       int // index into Problem.Memories, or Host
	Groups       int // on the NIC
	Mpps         float64
	MppsOnNIC    float64
	Entries      int64 // on the NIC
	Bytes        int64
	OnNIC        []bool  // by group
	SmallestMpps float64 // of the groups on the NIC, 0 when there is none
}

// Plan is a partition with what it costs. Rates are Mpps at the wire.
type Plan struct {
	Strategy  Strategy
	Blocks    []BlockPlan
	Objective float64 // Σ V·φ·|I|: host instructions, millions a second
	AllHost   float64 // the objective with everything on the host

	// No feasible plan has a lower objective than Bound. BoundProved is false
	// where the bound rests on the performance model being convex, which a
	// model that is no Demander need not be. The gap is (Objective - Bound) /
	// Objective, 0 when both are; a plan that is not feasible has none.
	Bound       float64
	BoundProved bool
	Gap         float64

	OfferedMpps  float64
	NICMpps      float64 // packets that never see the host
	HostMpps     float64 // packets that do
	DroppedMpps  float64 // at least, where the plan asks more than there is
	CapacityMpps float64 // what the predictor says of the NIC with this plan
	NICLimit     string  // the resource behind it
	ToHostGbps   float64
	ToNICGbps    float64

	// Cores of the host, and with everything there; blocks whose time is not
	// known are in UnknownCost and count as nothing.
	HostCores    float64
	CoresAllHost float64
	UnknownCost  []string

	Feasible bool
	Broken   []string // constraints that the plan breaks (strategy state; or when no plan keeps them)
	Needs    []Need   // with which a plan that is not feasible would be
	Limits   []string // what keeps more from the NIC
	Examined int      // assignments judged
	Plans    Counters
}

// Need is a limit that a plan breaks: what there is, and what it would have to be
// for this plan. Of what "rate" the offered rate is too high, in all else Have is
// too low.
type Need struct {
	What string  `json:"what"` // as in Broken, or "rate"
	Have float64 `json:"have"`
	Need float64 `json:"need"`
	Unit string  `json:"unit"`
}

func (p *Plan) need(what string, have, need float64, unit string) {
	p.Needs = append(p.Needs, Need{what, have, need, unit})
}

// setBound gives the plan a bound, and its gap where it is feasible.
func (p *Plan) setBound(bound float64, proved bool) {
	p.Bound, p.BoundProved = bound, proved
	if p.Feasible {
		p.Bound = min(bound, p.Objective) // but for rounding it is
		if p.Objective > 0 {
			p.Gap = (p.Objective - p.Bound) / p.Objective
		}
	}
}
