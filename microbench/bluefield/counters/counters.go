// Package counters reads the performance counters of a BlueField outside its
// cores, which the kernel's mlxbf-pmc driver shows as a hwmon device "bfperf":
// a directory a block, with event_list, eventN and counterN (drivers/platform/
// mellanox/mlxbf-pmc.c). It was never run on a card.
package counters

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"nicprof/internal/fault"
	"nicprof/microbench"
	"nicprof/program"
	"nicprof/traffic"
)

// wanted are the events worth counting, by kind of block, in order of
// importance: a block has four or five counters. Names are the driver's. A tile
// is two cores with their shared cache and the home node of a part of the
// memory; the last-level cache has two halves of two banks each.
var wanted = map[string][]string{
	"tile":    {"A72_READ", "A72_WRITE", "MEMORY_READS", "MEMORY_WRITES"},
	"l3cache": {"HITS_BANK0", "HITS_BANK1", "MISSES_BANK0", "MISSES_BANK1"},
}

// Find returns the directory of the counters below the root of a file system,
// which is "/" on a card. Where there are none the error is a missing one.
func Find(root string) (string, error) {
	names, err := filepath.Glob(filepath.Join(root, "sys/class/hwmon/hwmon*/name"))
	if err != nil {
		return "", fault.Missingf("the card's counters: %w", err)
	}
	for _, name := range names {
		if text, err := os.ReadFile(name); err == nil && strings.TrimSpace(string(text)) == "bfperf" {
			return filepath.Dir(name), nil
		}
	}
	return "", fault.Missingf("the card's counters: no /sys/class/hwmon/hwmon*/name is bfperf; load the kernel module mlxbf-pmc")
}

// selection is an event on a counter of a block.
type selection struct {
	block   string // directory
	kind    string // of the block: its name without the number
	event   string
	number  uint64 // of the event
	counter int
}

func (s selection) file(name string) string {
	return filepath.Join(s.block, name+strconv.Itoa(s.counter))
}

// Selection is what is counted, in which order, and what is not and why.
type Selection struct {
	events      []selection
	Unavailable []string
}

// Select chooses the events of every block in the counters' directory.
func Select(dir string) (Selection, error) {
	var s Selection
	for _, kind := range slices.Sorted(maps.Keys(wanted)) {
		blocks, err := filepath.Glob(filepath.Join(dir, kind+"[0-9]*"))
		if err != nil {
			return s, fault.Missingf("the card's counters: %w", err)
		}
		if len(blocks) == 0 {
			s.Unavailable = append(s.Unavailable, kind+": no such block")
		}
		for _, block := range blocks {
			if err := s.add(block, kind); err != nil {
				return s, err
			}
		}
	}
	if len(s.events) == 0 {
		return s, fault.Missingf("the card's counters: none of the events wanted is in %s: %s", dir, strings.Join(s.Unavailable, "; "))
	}
	return s, nil
}

func (s *Selection) add(block, kind string) error {
	text, err := os.ReadFile(filepath.Join(block, "event_list"))
	if err != nil {
		return fault.Missingf("the card's counters: %w", err)
	}
	numbers, err := parseEvents(string(text))
	if err != nil {
		return fault.Checkf("%s: %w", filepath.Join(block, "event_list"), err)
	}
	used := 0
	for _, event := range wanted[kind] {
		e := selection{block: block, kind: kind, event: event, counter: used}
		number, known := numbers[event]
		if !known {
			s.Unavailable = append(s.Unavailable, filepath.Base(block)+"."+event+": not in event_list")
			continue
		}
		if _, err := os.Stat(e.file("counter")); err != nil {
			s.Unavailable = append(s.Unavailable, filepath.Base(block)+"."+event+": no counter left")
			continue
		}
		e.number = number
		s.events = append(s.events, e)
		used++
	}
	return nil
}

// parseEvents reads an event_list: lines of a number, a colon and a name.
func parseEvents(text string) (map[string]uint64, error) {
	events := map[string]uint64{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		number, name, ok := strings.Cut(line, ": ")
		v, err := strconv.ParseUint(number, 0, 32)
		if !ok || err != nil || name == "" {
			return nil, fmt.Errorf("%q is not NUMBER: NAME", line)
		}
		events[name] = v
	}
	return events, nil
}

// switched are the blocks whose counting is switched on and off.
func (s Selection) switched() []string {
	var files []string
	for _, e := range s.events {
		if file := filepath.Join(e.block, "enable"); !slices.Contains(files, file) {
			if _, err := os.Stat(file); err == nil {
				files = append(files, file)
			}
		}
	}
	return files
}

// Write is one write to a file.
type Write struct{ File, Text string }

// Writes are those that set the counters up, in order.
func (s Selection) Writes() []Write {
	var all []Write
	for _, file := range s.switched() {
		all = append(all, Write{file, "0"})
	}
	for _, e := range s.events {
		all = append(all, Write{e.file("event"), fmt.Sprintf("0x%x", e.number)})
	}
	for _, file := range s.switched() {
		all = append(all, Write{file, "1"})
	}
	return all
}

// Script returns the same as a shell script for any card: numbers of events are
// looked up in its event_list.
func Script() []string {
	lines := []string{"H=$(dirname $(grep -l bfperf /sys/class/hwmon/hwmon*/name))"}
	for _, kind := range slices.Sorted(maps.Keys(wanted)) {
		lines = append(lines, "for b in $H/"+kind+"[0-9]*; do", "  [ ! -e $b/enable ] || echo 0 > $b/enable")
		for i, event := range wanted[kind] {
			lines = append(lines, fmt.Sprintf("  sed -n 's/: %s$//p' $b/event_list > $b/event%d", event, i))
		}
		lines = append(lines, "  [ ! -e $b/enable ] || echo 1 > $b/enable", "  cat $b/counter[0-3]", "done")
	}
	return lines
}

// Start sets the counters up.
func (s Selection) Start() error {
	for _, w := range s.Writes() {
		f, err := os.OpenFile(w.File, os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString(w.Text)
			if cerr := f.Close(); err == nil {
				err = cerr
			}
		}
		if err != nil {
			return fault.Missingf("the card's counters: writing %s: %w; this needs root", w.Text, err)
		}
	}
	return nil
}

// Read returns the events so far, by block and event such as tile0.MEMORY_READS.
func (s Selection) Read() (map[string]uint64, error) {
	counts := map[string]uint64{}
	for _, e := range s.events {
		text, err := os.ReadFile(e.file("counter"))
		if err != nil {
			return nil, fault.Missingf("the card's counters: %w", err)
		}
		v, err := strconv.ParseUint(strings.TrimSpace(string(text)), 0, 64)
		if err != nil {
			return nil, fault.Checkf("%s: %q is not a count", e.file("counter"), text)
		}
		counts[filepath.Base(e.block)+"."+e.event] = v
	}
	return counts, nil
}

// Join returns a driver whose samples have the rates of the card's events over
// each whole measurement, warm-up included, added up over blocks of a kind; or
// among their conditions why they have none. root is that of the file system.
func Join(d microbench.Driver, root string) microbench.Driver {
	dir, err := Find(root)
	var s Selection
	if err == nil {
		s, err = Select(dir)
	}
	return &counted{d, s, err}
}

type counted struct {
	microbench.Driver
	selection Selection
	err       error // why there is no selection
}

// Examine examines the driver's machine.
func (d *counted) Examine(ctx context.Context) (microbench.Examination, error) {
	return microbench.Examine(ctx, d.Driver)
}

// Measure measures and counts. The sample is good without counts.
func (d *counted) Measure(ctx context.Context, p program.Program, t traffic.Traffic, o microbench.Options) (microbench.Sample, error) {
	before, err := d.start()
	from := time.Now()
	s, merr := d.Driver.Measure(ctx, p, t, o)
	if merr != nil {
		return s, merr
	}
	seconds := time.Since(from).Seconds()
	var after map[string]uint64
	if err == nil {
		after, err = d.selection.Read()
	}
	if err == nil {
		s.EventsPerS, err = d.selection.rates(before, after, seconds)
	}
	if err != nil {
		s.Conditions = maps.Clone(s.Conditions)
		if s.Conditions == nil {
			s.Conditions = map[string]string{}
		}
		s.Conditions["card_counters"] = err.Error()
	}
	return s, nil
}

func (d *counted) start() (map[string]uint64, error) {
	if d.err != nil {
		return nil, d.err
	}
	if err := d.selection.Start(); err != nil {
		return nil, err
	}
	return d.selection.Read()
}

// rates are events a second, by kind of block and event.
func (s Selection) rates(before, after map[string]uint64, seconds float64) (map[string]float64, error) {
	rates := map[string]float64{}
	for _, e := range s.events {
		name := filepath.Base(e.block) + "." + e.event
		if after[name] < before[name] {
			return nil, fault.Checkf("the card's counters: %s ran backwards: it wrapped, or somebody set it", name)
		}
		rates[e.kind+"."+e.event] += float64(after[name]-before[name]) / seconds
	}
	return rates, nil
}
