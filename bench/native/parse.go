package main

import (
	"bufio"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// number reads a finite number that is not negative.
func number(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		return 0, fmt.Errorf("%q is no finite number of 0 or more", s)
	}
	return v, nil
}

// lines calls f with the trimmed lines of a tool's output.
func lines(out string, f func(line string)) {
	s := bufio.NewScanner(strings.NewReader(out))
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		f(strings.TrimSpace(s.Text()))
	}
}

// short is the beginning of a tool's output for an error.
func short(out string) string {
	const most = 200
	out = strings.TrimSpace(out)
	if len(out) > most {
		out = strings.ToValidUTF8(out[:most], "") + "..."
	}
	return strconv.Quote(out)
}

// likwidRun is what likwid-bench prints of a run of one work group.
type likwidRun struct {
	bandwidth float64 // GB/s
	seconds   float64
	bytes     int64 // of all vectors together
	cpu       int   // that its first thread ran on
}

// parseLikwid reads the output of likwid-bench 5.
func parseLikwid(out string) (likwidRun, error) {
	r := likwidRun{cpu: -1}
	var err error
	keep := func(v float64, e error) float64 {
		if err == nil && e != nil {
			err = e
		}
		return v
	}
	lines(out, func(line string) {
		if _, rest, ok := strings.Cut(line, "running on hwthread "); ok && strings.HasPrefix(line, "Group:") && r.cpu < 0 {
			first, _, _ := strings.Cut(rest, " ")
			cpu, e := strconv.Atoi(first)
			if r.cpu = cpu; e != nil || cpu < 0 {
				keep(0, fmt.Errorf("hwthread %q", first))
			}
		}
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			return
		}
		value = strings.TrimSpace(value)
		switch key {
		case "MByte/s":
			r.bandwidth = keep(number(value)) / 1000
		case "Time":
			r.seconds = keep(number(strings.TrimSuffix(value, " sec")))
		case "Size (Byte)":
			v := keep(number(value))
			r.bytes = int64(min(v, 1<<62))
		}
	})
	switch {
	case err != nil:
		return r, fmt.Errorf("likwid-bench printed %w", err)
	case r.bandwidth == 0 || r.seconds == 0 || r.bytes == 0 || r.cpu < 0:
		return r, fmt.Errorf("no MByte/s, Time, Size and hwthread in the output of likwid-bench: %s", short(out))
	}
	return r, nil
}

// parseMultichase reads the output of multichase: the last line is the
// nanoseconds of a load.
func parseMultichase(out string) (float64, error) {
	last := ""
	lines(out, func(line string) {
		if line != "" {
			last = line
		}
	})
	fields := strings.Fields(last)
	if len(fields) == 0 {
		return 0, fmt.Errorf("multichase printed nothing")
	}
	ns, err := number(fields[len(fields)-1])
	if err != nil || ns == 0 {
		return 0, fmt.Errorf("multichase ends with %s, not with nanoseconds", short(last))
	}
	return ns, nil
}

// parseLatMemRd reads the table of lat_mem_rd (lines of MiB and nanoseconds
// after a line "stride=...) and returns the latency of the row nearest to a
// working set, which must be within a tenth of it.
func parseLatMemRd(out string, bytes int64) (float64, error) {
	best, ns, stride := math.Inf(1), 0.0, false
	lines(out, func(line string) {
		if strings.HasPrefix(line, `"stride=`) {
			stride = true
			return
		}
		f := strings.Fields(line)
		if !stride || len(f) != 2 {
			return
		}
		size, err1 := number(f[0])
		v, err2 := number(f[1])
		if err1 != nil || err2 != nil || size == 0 {
			return
		}
		if away := math.Abs(size*(1<<20)/float64(bytes) - 1); away < best {
			best, ns = away, v
		}
	})
	if best > 0.1 || ns == 0 {
		return 0, fmt.Errorf("no row of %d B in the output of lat_mem_rd: %s", bytes, short(out))
	}
	return ns, nil
}

// streamRun is what McCalpin's STREAM prints.
type streamRun struct {
	elements int64              // of each array
	best     map[string]float64 // GB/s of Copy, Scale, Add and Triad
}

// parseStream reads the output of STREAM 5. Other programs have the same name,
// so that its title must be there.
func parseStream(out string) (streamRun, error) {
	r := streamRun{best: map[string]float64{}}
	titled := false
	lines(out, func(line string) {
		titled = titled || strings.HasPrefix(line, "STREAM version")
		if rest, ok := strings.CutPrefix(line, "Array size = "); ok {
			first, _, _ := strings.Cut(rest, " ")
			if n, err := strconv.ParseInt(first, 10, 48); err == nil && n > 0 {
				r.elements = n
			}
		}
		f := strings.Fields(line)
		if len(f) != 5 {
			return
		}
		switch name, ok := strings.CutSuffix(f[0], ":"); name {
		case "Copy", "Scale", "Add", "Triad":
			if v, err := number(f[1]); ok && err == nil && v > 0 {
				r.best[name] = v / 1000
			}
		}
	})
	switch {
	case !titled:
		return r, fmt.Errorf("not STREAM: %s", short(out))
	case r.elements == 0 || len(r.best) != 4:
		return r, fmt.Errorf("STREAM printed no array size or not all four rates: %s", short(out))
	}
	return r, nil
}

// parseLockhammer reads the summary of an lh_ program: the last field of its
// only row is the locks taken a second of wall time. It returns nanoseconds
// between two.
func parseLockhammer(out string) (float64, error) {
	header, rate, rows := false, 0.0, 0
	var bad error
	lines(out, func(line string) {
		if strings.HasPrefix(line, "po ") && strings.HasSuffix(line, "locks/wall_sec") {
			header = true
			return
		}
		f := strings.Fields(line)
		if !header || len(f) < 6 || strings.Count(line, "|") != 3 {
			return
		}
		rows++
		v, err := number(f[len(f)-1])
		if err != nil || v == 0 {
			bad = fmt.Errorf("lockhammer's row ends with %s, not with locks a second", short(f[len(f)-1]))
		}
		rate = v
	})
	switch {
	case bad != nil:
		return 0, bad
	case rows != 1:
		return 0, fmt.Errorf("%d rows of results in the output of lockhammer, want 1: %s", rows, short(out))
	}
	return 1e9 / rate, nil
}

// parseSysbench reads the MiB/s that sysbench memory prints, as GB/s.
func parseSysbench(out string) (float64, error) {
	var rate float64
	lines(out, func(line string) {
		if _, rest, ok := strings.Cut(line, " transferred ("); ok {
			if first, unit, _ := strings.Cut(rest, " "); unit == "MiB/sec)" {
				if v, err := number(first); err == nil {
					rate = v * (1 << 20) / 1e9
				}
			}
		}
	})
	if rate == 0 {
		return 0, fmt.Errorf("no \"transferred (... MiB/sec)\" in the output of sysbench: %s", short(out))
	}
	return rate, nil
}

// metric is a figure that stress-ng prints.
type metric struct {
	name  string
	value float64
}

// parseStressNG reads the metrics of a stressor of stress-ng: bogo operations a
// second of real time, and the figures that the stressor adds.
func parseStressNG(out, stressor string) ([]metric, error) {
	var found []metric
	lines(out, func(line string) {
		_, rest, ok := strings.Cut(line, "] ")
		f := strings.Fields(rest)
		if !ok || !strings.HasPrefix(line, "stress-ng: metrc:") || len(f) < 3 || f[0] != stressor {
			return
		}
		name, value := "bogo ops/s", ""
		if description, _, ok := strings.Cut(strings.Join(f[2:], " "), " (geomet"); ok {
			name, value = description, f[1] // "23971.73 write64stoq MB per sec (geometic mean of 1 instances)"
		} else if len(f) == 7 {
			value = f[5] // "440 1.00 0.96 0.03 438.05 444.53": operations, seconds, and two rates
		}
		if v, err := number(value); err == nil {
			found = append(found, metric{name, v})
		}
	})
	if len(found) == 0 {
		return nil, fmt.Errorf("no metrics of %s in the output of stress-ng: %s", stressor, short(out))
	}
	return found, nil
}
