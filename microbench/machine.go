package microbench

import (
	"cmp"
	"fmt"
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

// ThisMachine describes the machine that runs the program.
func ThisMachine() Machine {
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

// machineOf is where a driver measures.
func machineOf(d Driver) Machine {
	if l, ok := d.(Located); ok {
		return l.Machine()
	}
	return ThisMachine()
}

// same says whether two measurements were made on one machine.
func (m Machine) same(o Machine) bool {
	m.Go, o.Go = "", ""
	return m == o
}

// sameKind says whether two machines are of one kind, whatever their names.
func (m Machine) sameKind(o Machine) bool {
	m.Host, o.Host = "", ""
	return m.same(o)
}

func (m Machine) String() string {
	return fmt.Sprintf("%s (%s/%s, %d x %s)", m.Host, m.OS, m.Arch, m.CPUs, cmp.Or(m.CPU, "unnamed CPU"))
}
