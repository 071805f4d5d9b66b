package bluefield

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"time"

	"nicprof/microbench"
	"nicprof/microbench/testpmd"
	"nicprof/program"
	"nicprof/traffic"
)

// PortsVariable names the environment variable with the card's ports by PCI
// address and representors, as dpdk-testpmd takes them, such as
// 0000:03:00.0,representor=[0,65535]. Set, native samples of bare forwarding
// say beside the rate over packets in memory what DPDK forwards between these
// ports, of what arrives there meanwhile.
const PortsVariable = "NICPROF_BLUEFIELD_PORTS"

// portModes are the forwarding modes that are tried: io touches no packet,
// macswap each header.
var portModes = []string{"io", "macswap"}

// portTime is the window of one mode.
const portTime = time.Second

// forwarder is testpmd on the card's ports as it is run on BlueField-2: one
// core for its prompt, a queue for each of the others, huge pages.
func forwarder(ports, mode string, cores int) testpmd.Config {
	cpus := make([]int, cores)
	for i := range cpus {
		cpus[i] = i
	}
	return testpmd.Config{
		CPUs: cpus, HugePages: true, MemoryMB: 1024, Allow: []string{ports}, Mode: mode, Queues: max(1, cores-1), Burst: 64,
	}
}

// joinPorts returns a driver whose samples of bare forwarding have the rates of
// the ports among their conditions; d itself where no ports are named.
func joinPorts(d microbench.Driver, ports string) microbench.Driver {
	if ports == "" {
		return d
	}
	return &ported{Driver: d, ports: ports, window: portTime}
}

type ported struct {
	microbench.Driver
	ports  string
	path   string // of dpdk-testpmd, "" for the one in PATH
	window time.Duration
}

// Examine examines the driver's machine.
func (d *ported) Examine(ctx context.Context) (microbench.Examination, error) {
	return microbench.Examine(ctx, d.Driver)
}

// Measure measures, and then the ports too when the program is bare. The sample
// is good without their rates.
func (d *ported) Measure(ctx context.Context, p program.Program, t traffic.Traffic, o microbench.Options) (microbench.Sample, error) {
	s, err := d.Driver.Measure(ctx, p, t, o)
	if err != nil || len(p.Accesses)+len(p.Locks)+len(p.Stateless) > 0 || t.RateMpps > 0 {
		return s, err
	}
	conditions := maps.Clone(s.Conditions)
	if conditions == nil {
		conditions = map[string]string{}
	}
	s.Conditions = conditions
	for _, mode := range portModes {
		rate, version, err := d.forward(ctx, mode, s.Cores)
		if ctx.Err() != nil {
			return s, ctx.Err()
		}
		if err != nil {
			conditions["dpdk_"+mode] = err.Error()
			continue
		}
		conditions["dpdk_"+mode] = fmt.Sprintf("%s Mpps sent, %s received", number(rate.Mpps), number(rate.RxMpps))
		conditions["dpdk"] = version
	}
	return s, nil
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// forward runs one mode for a window, on the cores of the sample and one for
// the prompt.
func (d *ported) forward(ctx context.Context, mode string, cores int) (w testpmd.Window, version string, err error) {
	config := forwarder(d.ports, mode, min(cores+1, int(d.Board().Cores.Value)))
	config.Path = d.path
	session, err := testpmd.Start(ctx, config)
	if err != nil {
		return w, "", err
	}
	defer func() {
		if cerr := session.Close(); err == nil {
			err = cerr
		}
	}()
	if err := session.Forward(ctx, 0); err != nil {
		return w, "", err
	}
	w, err = session.Window(ctx, d.window)
	return w, session.Version, err
}
