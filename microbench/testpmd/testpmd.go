// Package testpmd runs DPDK's packet forwarder, dpdk-testpmd, and reads what it
// prints: the arguments of a configuration, a session over its interactive
// prompt, and parsers of its statistics. It was written against DPDK 22.11.
//
// Its drivers poll: a forwarding core is busy all the time, whatever the load,
// so that the CPU time of a packet at saturation is the inverse of the rate.
package testpmd

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"nicprof/internal/fault"
)

// Tool is the name of the program in PATH (Debian: package dpdk).
const Tool = "dpdk-testpmd"

// Modes are the forwarding modes that Config takes: io touches no packet,
// macswap swaps the MAC addresses, csum computes checksums again in software,
// 5tswap swaps addresses and ports of layers 2 to 4.
var Modes = []string{"io", "mac", "macswap", "csum", "5tswap"}

// prompt ends an answer of the program.
const prompt = "testpmd> "

// Config is one configuration of the forwarder.
type Config struct {
	Path      string   // of the program; "" looks for Tool in PATH
	CPUs      []int    // the first runs the prompt, the others forward; a single one does both
	Channels  int      // memory channels (-n); 0: 1
	HugePages bool     // memory from huge pages rather than from ordinary ones
	MemoryMB  int      // 0: 256
	Vdevs     []string // virtual devices, such as "net_null0" or "net_af_packet0,iface=eth1"
	Allow     []string // PCI devices, such as "0000:03:00.0,representor=[0,65535]"; none: no PCI at all
	Mode      string   // one of Modes
	Queues    int      // receive and transmit queues of each port; 0: 1
	Burst     int      // packets taken at once; 0: the program's default, 32
	Mbufs     int      // packet buffers; 0: the program's default
	TxBytes   int      // of the packets that Forward sends first, without check sequence; 0: the program's default, 64
}

// Args returns the command's arguments. A configuration that the program would
// refuse is an input fault.
func (c Config) Args() ([]string, error) {
	switch {
	case len(c.CPUs) == 0:
		return nil, fault.Inputf("testpmd: no CPU to run on")
	case len(c.Vdevs)+len(c.Allow) == 0:
		return nil, fault.Inputf("testpmd: no device; expected a virtual device or a PCI address")
	case !slices.Contains(Modes, c.Mode):
		return nil, fault.Inputf("testpmd: forwarding mode %q is unknown; expected one of %s", c.Mode, strings.Join(Modes, ", "))
	case c.Queues < 0 || c.Burst < 0 || c.Burst > 512 || c.Mbufs < 0 || c.MemoryMB < 0 || c.Channels < 0:
		return nil, fault.Inputf("testpmd: queues %d, burst %d, mbufs %d, memory %d MB, channels %d; expected none below 0 and a burst of at most 512",
			c.Queues, c.Burst, c.Mbufs, c.MemoryMB, c.Channels)
	}
	workers := c.CPUs[1:]
	if len(workers) == 0 {
		workers = c.CPUs
	}
	lcores := []string{fmt.Sprintf("0@(%d)", c.CPUs[0])}
	for i, cpu := range workers {
		lcores = append(lcores, fmt.Sprintf("%d@(%d)", i+1, cpu))
	}
	args := []string{"-v", "--lcores", strings.Join(lcores, ","), "-n", strconv.Itoa(max(c.Channels, 1)), "-m", strconv.Itoa(orDefault(c.MemoryMB, 256))}
	if c.HugePages {
		args = append(args, "--in-memory") // leaves no file among the huge pages; not possible without any
	} else {
		args = append(args, "--no-huge")
	}
	if len(c.Allow) == 0 {
		args = append(args, "--no-pci")
	}
	for _, device := range c.Allow {
		args = append(args, "-a", device)
	}
	for _, device := range c.Vdevs {
		args = append(args, "--vdev="+device)
	}
	queues := strconv.Itoa(max(c.Queues, 1))
	args = append(args, "--", "-i", "--nb-cores="+strconv.Itoa(len(workers)), "--rxq="+queues, "--txq="+queues, "--forward-mode="+c.Mode)
	if c.Burst > 0 {
		args = append(args, "--burst="+strconv.Itoa(c.Burst))
	}
	if c.Mbufs > 0 {
		args = append(args, "--total-num-mbufs="+strconv.Itoa(c.Mbufs))
	}
	if c.TxBytes > 0 {
		args = append(args, "--txpkts="+strconv.Itoa(c.TxBytes))
	}
	return args, nil
}

func orDefault(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}
