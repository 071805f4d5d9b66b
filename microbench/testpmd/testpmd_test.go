package testpmd

import (
	"strings"
	"testing"

	"nicprof/internal/fault"
)

func TestArgs(t *testing.T) {
	for _, c := range []struct {
		config Config
		want   string
	}{
		{
			Config{CPUs: []int{0, 1}, Vdevs: []string{"net_null0", "net_null1"}, Mode: "io"},
			"-v --lcores 0@(0),1@(1) -n 1 -m 256 --no-huge --no-pci --vdev=net_null0 --vdev=net_null1 -- -i --nb-cores=1 --rxq=1 --txq=1 --forward-mode=io",
		},
		{ // one CPU runs both the prompt and the forwarding
			Config{CPUs: []int{3}, Vdevs: []string{"net_ring0"}, Mode: "csum", HugePages: true, MemoryMB: 64, Mbufs: 16384},
			"-v --lcores 0@(3),1@(3) -n 1 -m 64 --in-memory --no-pci --vdev=net_ring0 -- -i --nb-cores=1 --rxq=1 --txq=1 --forward-mode=csum --total-num-mbufs=16384",
		},
		{ // a BlueField-2's ports on seven cores
			Config{CPUs: []int{0, 1, 2, 3, 4, 5, 6, 7}, Allow: []string{"0000:03:00.0,representor=[0,65535]"}, Mode: "macswap", Queues: 7, Burst: 64, HugePages: true},
			"-v --lcores 0@(0),1@(1),2@(2),3@(3),4@(4),5@(5),6@(6),7@(7) -n 1 -m 256 --in-memory -a 0000:03:00.0,representor=[0,65535] -- -i --nb-cores=7 --rxq=7 --txq=7 --forward-mode=macswap --burst=64",
		},
	} {
		args, err := c.config.Args()
		if got := strings.Join(args, " "); err != nil || got != c.want {
			t.Errorf("got  %s (%v)\nwant %s", got, err, c.want)
		}
	}
}

func TestArgsRefused(t *testing.T) {
	good := Config{CPUs: []int{0}, Vdevs: []string{"net_null0"}, Mode: "io"}
	for name, change := range map[string]func(*Config){
		"no CPU":          func(c *Config) { c.CPUs = nil },
		"no device":       func(c *Config) { c.Vdevs = nil },
		"unknown mode":    func(c *Config) { c.Mode = "fast" },
		"burst too long":  func(c *Config) { c.Burst = 513 },
		"negative queues": func(c *Config) { c.Queues = -1 },
	} {
		c := good
		change(&c)
		if _, err := c.Args(); fault.KindOf(err) != fault.Input {
			t.Errorf("%s: %v, want an input fault", name, err)
		}
	}
}
