package curves

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"nicprof/internal/fault"
	"nicprof/microbench"
)

// coefficients are the columns of a file of fitted rooflines as the Cora
// authors' release prints them: op is memory (i, e), operation (r, w) and mode
// (b, a) in letters; width is bytes an access; log2n the logarithm of the number
// of elements; T(i) = 1/(a + c·exp(−b/i)·i) Mpps, a and c in µs; knee is the
// source's own.
var coefficients = []string{"op", "width", "log2n", "a", "b", "c", "knee"}

const (
	mostAccesses = 25 // the source fitted over 1 to 25 accesses a packet
	farApart     = 13 // log2 of the largest array whose elements lie 128 B apart
)

var letters = []map[byte]string{
	{'i': "imem", 'e': "emem"},
	{'r': "read", 'w': "write"},
	{'b': "bulk", 'a': "atomic"},
}

// isCoefficients tells whether the first line that is no comment is their
// header.
func isCoefficients(data []byte) bool {
	for line := range bytes.Lines(data) {
		text := strings.TrimSpace(string(line))
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		return slices.Equal(strings.Split(strings.ReplaceAll(text, " ", ""), ","), coefficients)
	}
	return false
}

// parseCoefficients evaluates each row at 1 to 25 accesses a packet, on the
// profiling base with which they were measured unless set names another.
func parseCoefficients(data []byte, name string, set map[string]string) ([]microbench.Sample, []string, error) {
	set, err := canonical(set)
	if err != nil {
		return nil, nil, err
	}
	rows, _, err := readRows(bytes.NewReader(data), name, coefficients, nil)
	if err != nil {
		return nil, nil, err
	}
	var samples []microbench.Sample
	for _, r := range rows {
		op := r.cells["op"]
		if len(op) != len(letters) {
			return nil, nil, fault.Inputf("%s: op is %q, expected three letters such as irb: i or e, r or w, b or a", r.where, op)
		}
		cells := map[string]string{"bytes": r.cells["width"], "base": "profiling", "stride": "128"}
		for k, column := range []string{"memory", "op", "mode"} {
			if cells[column] = letters[k][op[k]]; cells[column] == "" {
				return nil, nil, fault.Inputf("%s: op is %q, expected three letters such as irb: i or e, r or w, b or a", r.where, op)
			}
		}
		log2n, err := r.number("log2n")
		if err != nil {
			return nil, nil, err
		}
		if log2n < 0 || log2n > 40 || log2n != math.Trunc(log2n) {
			return nil, nil, fault.Inputf("%s: log2n is %v, expected a whole number of 0..40", r.where, log2n)
		}
		cells["span"] = strconv.FormatInt(1<<int(log2n), 10)
		if log2n > farApart {
			cells["stride"] = "32"
		}
		var c [3]float64
		for k, column := range []string{"a", "b", "c"} {
			if c[k], err = r.number(column); err != nil {
				return nil, nil, err
			}
			if c[k] < 0 {
				return nil, nil, fault.Inputf("%s: %s is %v, expected 0 or more", r.where, column, c[k])
			}
		}
		for i := 1; i <= mostAccesses; i++ {
			us := c[0] + c[2]*math.Exp(-c[1]/float64(i))*float64(i)
			if us <= 0 {
				return nil, nil, fault.Inputf("%s: the curve takes no time at %d accesses a packet; expected a or c above 0", r.where, i)
			}
			cells["intensity"] = strconv.Itoa(i)
			s, err := row{where: r.where, cells: cells}.workload(set)
			if err != nil {
				return nil, nil, err
			}
			s.Mpps = 1 / us
			s.Low, s.High, s.MedianMpps = s.Mpps, s.Mpps, s.Mpps
			s.Index, s.Runs = len(samples), 1
			samples = append(samples, s)
		}
	}
	if len(samples) == 0 {
		return nil, nil, fault.Inputf("%s: no curves below the header", name)
	}
	return samples, []string{fmt.Sprintf("%s: %d curves of fitted coefficients, evaluated at 1 to %d accesses a packet: their fit's error and rounding are not in the intervals", name, len(rows), mostAccesses)}, nil
}
