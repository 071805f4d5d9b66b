package nfp

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"nicprof/board"
	"nicprof/internal/fault"
	"nicprof/microbench"
)

func init() { microbench.RegisterDryRun("nfp", newDryRun) }

// dryRun says what measuring a board natively would run, without a card.
type dryRun struct {
	board *board.Board
	setup Setup
}

func newDryRun(b *board.Board) (microbench.DryRunner, error) {
	setup, err := loadSetup(os.Getenv)
	if err != nil {
		return nil, err
	}
	return &dryRun{b, setup}, nil
}

// DryRun writes the sources of every image into dir/images, the packets to send
// into dir/packets, and returns the
// commands that Measure would run, with a comment before each workload. What a
// card cannot run is such a comment too: a sweep would store it as failed.
func (d *dryRun) DryRun(workloads []microbench.Workload, dir string) ([]string, error) {
	sku, platform, err := d.setup.target(d.board, d.board.SKU)
	if err != nil {
		return nil, err
	}
	packetsDir := filepath.Join(dir, "packets")
	if err := os.MkdirAll(packetsDir, 0o755); err != nil {
		return nil, fault.Inputf("the directory of the packets: %w", err)
	}
	lines := []string{"# what is there", hwinfoOf(&d.setup).String()}
	built := map[string]bool{}
	for i := range workloads {
		w := &workloads[i]
		lines = append(lines, "", "# "+w.Title())
		setup := d.setup
		setup.Images = filepath.Join(dir, "images")
		j, err := prepare(d.board, &setup, sku, platform, w.Program, w.Traffic, w.Options)
		if fault.KindOf(err) == fault.Input {
			lines = append(lines, "# not on a card: "+strings.ReplaceAll(err.Error(), "\n", "; "))
			continue
		} else if err != nil {
			return nil, err
		}
		if !built[j.dir] {
			if err := os.MkdirAll(j.dir, 0o755); err != nil {
				return nil, fault.Inputf("the directory of the sources: %w", err)
			}
			if err := writeSources(j); err != nil {
				return nil, err
			}
			lines = append(lines, j.build().String())
			built[j.dir] = true
		}
		sent := packetsOf(d.board.Resolve(w.Program), w.Traffic, w.Options.Seed)
		j.pcap = filepath.Join(packetsDir, sent.name())
		if !built[j.pcap] {
			if err := sent.write(j.pcap); err != nil {
				return nil, err
			}
			built[j.pcap] = true
		}
		lines = append(lines, j.load().String())
		for _, c := range j.writeTable() {
			lines = append(lines, c.String())
		}
		if j.image.Table {
			lines = append(lines, j.readTable().String())
		}
		rate := "line"
		if w.Traffic.RateMpps > 0 {
			rate = fmt.Sprint(w.Traffic.RateMpps)
		}
		lines = append(lines, quote(setup.sender(j.pcap, rate))+" &",
			j.counters().String()+" # at the ends of windows", "kill -INT $!", j.unload().String())
	}
	return lines, nil
}
