// Package model is the fitted performance model of a board: the file others
// load, Predict and Explain. Emulators lie below it and cannot read it.
package model

import (
	"nicprof/program"
	"nicprof/traffic"
)

// Schema is the version this build writes.
const Schema = "nicprof-model/1"

// Value is a fitted number with its 95 % interval. Identified is false where
// the data cannot tell; then Value is a bound or zero and Note says why.
type Value struct {
	Value      float64 `json:"value"`
	Low        float64 `json:"low,omitempty"`
	High       float64 `json:"high,omitempty"`
	Identified bool    `json:"identified"`
	Note       string  `json:"note,omitempty"`
}

// Quality is the goodness of a fit.
type Quality struct {
	N             int     `json:"n"`
	R2            float64 `json:"r2"`
	MAPE          float64 `json:"mape_pct"`     // mean absolute error of Mpps, per cent
	MaxPct        float64 `json:"max_pct"`      // largest
	HeldOutPct    float64 `json:"held_out_pct"` // mean, leave one intensity out
	Outliers      int     `json:"outliers"`
	ResidualScale float64 `json:"residual_scale"` // robust, of log residuals
}

// Roofline is one curve (t, o, m, s, span). Eq. 2: T = 1/(A + C·e^(−B/i)·i)
// with A in µs a packet, C in µs an access, B in accesses; Eq. 1: T =
// min(1/(A + C·i), Roof/i) with B = 0. Cost and Roof keep the per-core cost
// and the memory's roof apart: X = min(cores/(D0 + i·Dm), Roof/(i + i0)).
type Roofline struct {
	Memory  string       `json:"memory"`
	Op      program.Op   `json:"op"`
	Mode    program.Mode `json:"mode"`
	Bytes   int          `json:"bytes"`
	Span    int64        `json:"span"`
	Stride  int64        `json:"stride"`
	Base    string       `json:"base"`
	Form    string       `json:"form"` // eq1, eq2: chosen by cross-validation
	A       Value        `json:"a_us"`
	B       Value        `json:"b"`
	C       Value        `json:"c_us"`
	Roof    Value        `json:"roof_mops"` // T_M of the access, Mops/s
	CoreUS  Value        `json:"core_us"`   // per-core time of one access (Dm), µs
	MemUS   Value        `json:"mem_us"`    // engine time of one access, µs (1/asymptotic roof)
	Quality Quality      `json:"quality"`
}

// Traffic and Program are the arguments of Predict, as of Driver.Measure.
type (
	Program = program.Program
	Traffic = traffic.Traffic
)
