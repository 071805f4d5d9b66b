package microbench

import (
	"fmt"
	"strings"

	"nicprof/board"
	"nicprof/program"
)

// chainSuite sizes the sweeps of an sNIC.
type chainSuite struct {
	credits []int
	bytes   []int
	lengths []int
	cycles  []int // of the network tasks of chains
	runs    []int // network tasks that packets use, of skipChain
}

const (
	skipChain = 6
	aloneMpps = 0.02 // a rate at which packets hardly meet
	prMpps    = 1    // a rate whose gaps are nothing beside a configuration
)

var chainSuites = map[string]chainSuite{
	"quick": {credits: []int{1, 2, 8}, bytes: []int{64, 256, 1024}, lengths: []int{1, 2, 4}, cycles: []int{16}, runs: []int{1, 3, 6}},
	"standard": {credits: []int{1, 2, 4, 8, 16}, bytes: []int{64, 128, 192, 256, 320, 512, 768, 1024, 1500},
		lengths: upToInt(7), cycles: []int{10, 16, 32}, runs: upToInt(skipChain)},
	"full": {credits: upToInt(16), bytes: []int{64, 96, 128, 192, 256, 320, 384, 448, 512, 640, 768, 1024, 1280, 1500, 4096, 9000},
		lengths: upToInt(16), cycles: []int{1, 10, 16, 32, 50}, runs: upToInt(skipChain)},
}

func upToInt(n int) []int { return steps(n, n) }

// onRegions plans an sNIC: what credits and size make of one network task's rate,
// what a chain's length, tasks side by side and skipped ones make of latency and
// rate, and how long the configuration of a region takes.
func (p *planner) onRegions(suite string) {
	s := chainSuites[suite]
	for _, base := range p.board.Bases {
		for _, credits := range s.credits {
			for _, bytes := range s.bytes {
				p.chain(GroupCredits, base.Name, program.Program{Chain: chainOf(1, 1), Credits: credits, PacketBytes: bytes}, 0)
			}
		}
		for _, cycles := range s.cycles {
			for _, n := range s.lengths {
				prog := program.Program{Chain: chainOf(n, cycles), Credits: enough}
				p.chain(GroupChains, base.Name, prog, aloneMpps)
				p.chain(GroupChains, base.Name, prog, 0)
			}
		}
	}
	base := p.board.Bases[0].Name
	for n := 2; n <= int(p.board.FPGA.Regions.Count.Value); n++ {
		for _, cycles := range s.cycles {
			p.chain(GroupParallel, base, program.Program{Chain: chainOf(n, cycles), Parallel: true}, aloneMpps)
		}
	}
	for _, run := range s.runs {
		prog := program.Program{Chain: chainOf(skipChain, s.cycles[0])}
		for i := range prog.Chain[run:] {
			prog.Chain[run+i].Skip = true
		}
		p.chain(GroupSkip, base, prog, aloneMpps)
	}
	for _, how := range []string{program.ConfigureRegion, program.ContextSwitch} {
		p.chain(GroupPR, base, program.Program{Chain: chainOf(1, s.cycles[0]), Configure: how}, prMpps)
	}
}

// enough credits for a chain of any length not to wait for them.
const enough = 1024

// chainOf returns n network tasks of so many cycles.
func chainOf(n, cycles int) []program.Stage {
	var c []program.Stage
	for i := range n {
		c = append(c, program.Stage{Name: fmt.Sprintf("nt%d", i+1), Cycles: cycles})
	}
	return c
}

// chain appends a workload of one instance at a rate, 0 to saturate.
func (p *planner) chain(group, base string, prog program.Program, mpps float64) {
	p.addAt(mpps, group, base, prog, part{cores: 1})
}

// DescribeChain names a chain such as "3xnt:16" with what is said of it.
func DescribeChain(p program.Program) string {
	var s []string
	for i := 0; i < len(p.Chain); {
		first, n := p.Chain[i], 0
		first.Name = ""
		for ; i < len(p.Chain); i++ {
			next := p.Chain[i]
			if next.Name = ""; next != first {
				break
			}
			n++
		}
		what := fmt.Sprintf("%dxnt:%d", n, first.Cycles)
		if first.II > 1 {
			what += fmt.Sprintf(":ii=%d", first.II)
		}
		if first.Gbps > 0 {
			what += fmt.Sprintf(":%gG", first.Gbps)
		}
		if first.Skip {
			what += ":skip"
		}
		s = append(s, what)
	}
	if p.Parallel {
		s = append(s, "parallel")
	}
	if p.Credits > 0 {
		s = append(s, fmt.Sprintf("%d-credits", p.Credits))
	}
	if p.PacketBytes != board.DefaultPacketBytes {
		s = append(s, fmt.Sprintf("%d-bytes", p.PacketBytes))
	}
	if p.Configure != "" {
		s = append(s, p.Configure)
	}
	return strings.Join(s, "+")
}
