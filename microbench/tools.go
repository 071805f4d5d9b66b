package microbench

import (
	"os/exec"
	"strings"
)

// tool is a program that a native driver runs, and where it comes from.
type tool struct{ name, use, from string }

// nativeTools is what a native measurement needs on the machine that holds the
// board, by class.
var nativeTools = map[string][]tool{
	"nfp": {
		{"nfp-hwinfo", "reads the card's SKU and clocks", "Netronome board support package"},
		{"nfp-nffw", "unloads firmware", "Netronome board support package"},
		{"nfp-rtsym", "writes and reads the firmware's table", "Netronome board support package"},
		{"nfp", "reads the ports' counters", "Netronome board support package"},
		{"nfp4build", "builds the microbenchmark's firmware", "Netronome SDK 6"},
		{"rtecli", "loads and configures the design", "Netronome SDK 6 run-time environment"},
	},
}

// noHardware says, by class, why nobody can measure such a board natively.
var noHardware = map[string]string{
	"fpga": "the sNIC of the SuperNIC paper has no public bitstream or RTL; its authors' repositories are github.com/WukLab, and opensmartnic/panic_with_cocotb has the RTL of PANIC, which runs in a simulator only",
}

func missingTools(class string) []tool {
	var missing []tool
	for _, t := range nativeTools[class] {
		if _, err := exec.LookPath(t.name); err != nil {
			missing = append(missing, t)
		}
	}
	return missing
}

func describeTools(tools []tool) string {
	var s []string
	for _, t := range tools {
		s = append(s, t.name+" is not in PATH ("+t.use+"; install the "+t.from+")")
	}
	return strings.Join(s, "; ")
}
