// Package apps has applications of the Cora paper written in P4_16 for v1model,
// and traffic for each. A program's comment says what it does, its state, and
// where structure and sizes come from.
package apps

import (
	"embed"
	"os"
	"path/filepath"
)

// Files has NAME.p4 and traffic/NAME.yaml of every application, and the files
// that the programs include.
//
//go:embed *.p4 traffic/*.yaml
var Files embed.FS

// Names lists the applications: Figure 1's example, network address translation
// with load balancing (DPVS), a key cache (McRouter), a stateful firewall and a
// service chain of two branches.
var Names = []string{"l4lb", "natlb", "kvcache", "firewall", "chain"}

// Extract writes all programs into a directory, for who reads programs by path.
func Extract(dir string) error {
	entries, err := Files.ReadDir(".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		text, err := Files.ReadFile(e.Name())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, e.Name()), text, 0o666); err != nil {
			return err
		}
	}
	return nil
}
