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
		{"nfp-nffw", "loads firmware", "Netronome board support package"},
		{"nfp-rtsym", "reads the firmware's counters", "Netronome board support package"},
		{"nfcc", "compiles the microbenchmark's firmware", "Netronome SDK 6"},
		{"rtecli", "configures the loaded design", "Netronome SDK 6 run-time environment"},
	},
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
