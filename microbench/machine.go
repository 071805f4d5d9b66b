package microbench

import (
	"os"
	"runtime"
	"strings"
)

// Machine is where a run was measured.
type Machine struct {
	Host string `json:"host"`
	OS   string `json:"os"`
	Arch string `json:"arch"`
	CPU  string `json:"cpu,omitempty"` // model name, where the system tells
	CPUs int    `json:"cpus"`          // logical processors
	Go   string `json:"go"`
}

func thisMachine() Machine {
	host, _ := os.Hostname() // a machine without a name is left nameless
	m := Machine{Host: host, OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Go: runtime.Version()}
	info, _ := os.ReadFile("/proc/cpuinfo") // absent outside Linux
	for line := range strings.Lines(string(info)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			m.CPU = strings.TrimSpace(value)
			break
		}
	}
	return m
}
