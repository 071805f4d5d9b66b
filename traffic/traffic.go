// Package traffic describes packets on the wire: sizes, offered rate, flows
// with their popularity, and the samplers behind them. It also reads traffic
// files (YAML, flow CSV, pcap).
package traffic

// Flows is a set of Count flows whose packet shares are uniform or Zipf with
// exponent Alpha, or those of a trace: Shares, one a flow, descending, summing
// to 1.
type Flows struct {
	Count      int       `json:"count" yaml:"count"`
	Popularity string    `json:"popularity,omitempty" yaml:"popularity,omitempty"`
	Alpha      float64   `json:"alpha,omitempty" yaml:"alpha,omitempty"`
	Shares     []float64 `json:"shares,omitempty" yaml:"-"`
}

// Traffic is what arrives at a board. RateMpps 0 saturates it: the next packet
// is always waiting.
type Traffic struct {
	RateMpps    float64            `json:"rate_mpps,omitempty" yaml:"rate_mpps,omitempty"`
	PacketBytes int                `json:"packet_bytes,omitempty" yaml:"-"`
	Sizes       *Sizes             `json:"sizes,omitempty" yaml:"-"`
	Flows       *Flows             `json:"flows,omitempty" yaml:"flows,omitempty"`
	Branches    map[string]float64 `json:"branches,omitempty" yaml:"branches,omitempty"`
	MaxFlowPPS  map[string]float64 `json:"max_flow_pps,omitempty" yaml:"max_flow_pps,omitempty"`

	// Shape of the flows' volumes, where a function's largest flow is known
	// rather than their number.
	Shape Shape `json:"-" yaml:"-"`

	Captures []string `json:"-" yaml:"-"` // files that a YAML file names
	Warnings []string `json:"-" yaml:"-"` // what the file has that it should not have
}

// Sizes is a packet size distribution as a cumulative distribution: Bytes[i]
// is reached with probability P[i], rising to 1. With Linear sizes between two
// points are interpolated, otherwise the distribution is a step function.
type Sizes struct {
	Name   string    `json:"name,omitempty"`
	Bytes  []float64 `json:"bytes"`
	P      []float64 `json:"p"`
	Linear bool      `json:"linear,omitempty"`
}
