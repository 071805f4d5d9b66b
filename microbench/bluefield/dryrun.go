package bluefield

import (
	"os"
	"strings"

	"nicprof/board"
	"nicprof/microbench"
	"nicprof/microbench/bluefield/counters"
	"nicprof/microbench/testpmd"
)

func init() {
	microbench.RegisterDryRun("soc", func(b *board.Board) (microbench.DryRunner, error) { return &dryRun{b}, nil })
}

// dryRun says what a native measurement runs beside this process, which
// measures the cores and caches itself.
type dryRun struct{ board *board.Board }

// DryRun returns the commands; nothing is generated.
func (d *dryRun) DryRun(workloads []microbench.Workload, _ string) ([]string, error) {
	lines := []string{
		"# on the card's Arm side; cores, caches and locks are measured by this program itself",
		"# before and after each measurement, as root: the card's own counters",
	}
	lines = append(lines, counters.Script()...)
	ports := os.Getenv(PortsVariable)
	if ports == "" {
		ports = "'0000:03:00.0,representor=[0,65535]'"
		lines = append(lines, "# only with "+PortsVariable+" set, after bare forwarding; its value here is an example")
	} else {
		ports = "'" + ports + "'"
		lines = append(lines, "# after bare forwarding")
	}
	for _, mode := range portModes {
		args, err := forwarder(ports, mode, int(d.board.Cores.Value)).Args()
		if err != nil {
			return nil, err
		}
		for i, a := range args {
			if strings.HasPrefix(a, "0@(") {
				args[i] = "'" + a + "'"
			}
		}
		lines = append(lines, testpmd.Tool+" "+strings.Join(args, " ")+" # start; show port stats all; stop; quit")
	}
	for i := range workloads {
		lines = append(lines, "# "+workloads[i].Title())
	}
	return lines, nil
}
