// Package apps has applications of the Cora paper written in P4_16 for v1model,
// and traffic for each. A program's comment says what it does, its state, and
// where structure and sizes come from.
package apps

import "embed"

// Files has NAME.p4 and traffic/NAME.yaml of every application, and the files
// that the programs include.
//
//go:embed *.p4 traffic/*.yaml
var Files embed.FS

// Names lists the applications: Figure 1's example, network address translation
// with load balancing (DPVS), a key cache (McRouter), a stateful firewall and a
// service chain of two branches.
var Names = []string{"l4lb", "natlb", "kvcache", "firewall", "chain"}
