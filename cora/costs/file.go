package costs

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"nicprof/internal/atomicfile"
	"nicprof/internal/config"
	"nicprof/internal/fault"
)

//go:embed stored.json
var stored []byte

// Stored returns the costs that come with the program: measured natively on the
// machine that they name.
func Stored() *Costs {
	c, err := Parse(stored, "stored host costs")
	if err != nil {
		panic(err) // a test reads it
	}
	return c
}

// Load reads a costs file, JSON or YAML.
func Load(path string) (*Costs, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.Inputf("host costs: %w", err)
	}
	return Parse(data, path)
}

// Parse reads costs. name is the file's in complaints.
func Parse(data []byte, name string) (*Costs, error) {
	d, err := config.Parse(data, name)
	if err != nil {
		return nil, err
	}
	var c Costs
	if err := d.Decode(&c); err != nil {
		return nil, err
	}
	return &c, d.Locate(c.check().Err())
}

// Largest time of anything a packet does, ns.
const maxNS = 1e9

func (c *Costs) check() config.Findings {
	var f config.Findings
	if c.Schema != "" && c.Schema != Schema {
		f.Add("schema", "%q is not known; this program reads %s: measure the costs again, or use the program that wrote them", c.Schema, Schema)
	}
	switch c.Backend {
	case "", "given":
		c.Backend = "given"
	case "native":
	default:
		f.Add("backend", "%q; expected native or given", c.Backend)
	}
	if !(c.ClockGHz >= 0 && c.ClockGHz <= 100) {
		f.Add("clock_ghz", "%v is not a clock; expected GHz, such as 2.5", c.ClockGHz)
	}
	time := func(path string, ns float64) {
		if !(ns >= 0 && ns <= maxNS) {
			f.Add(path, "%v is not a time; expected 0 to 1e9", ns)
		}
	}
	time("packet_ns", c.PacketNS)
	for i, p := range c.Points {
		at := fmt.Sprintf("points[%d]", i)
		if !slices.Contains(Kinds, p.Kind) {
			f.Add(at+".kind", "%q is not an operation; expected one of %v", p.Kind, Kinds)
		}
		time(at+".ns", p.NS)
		if p.KeyBytes < 0 || p.Bytes < 0 || p.Entries < 0 {
			f.Add(at, "key_bytes %d, bytes %d, entries %d; expected 0 or more", p.KeyBytes, p.Bytes, p.Entries)
		}
	}
	for name, b := range c.Blocks {
		at := "blocks." + name
		time(at+".ns", b.NS)
		time(at+".cycles", b.Cycles)
		if b.Cycles > 0 && c.ClockGHz == 0 {
			f.Add(at+".cycles", "cycles need the clock they count; set clock_ghz, or give ns")
		}
	}
	slices.SortStableFunc(f, func(a, b config.Finding) int { return bytes.Compare([]byte(a.Path), []byte(b.Path)) })
	return f
}

// Write writes a costs file.
func (c *Costs) Write(path string) error {
	data, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		return err
	}
	return atomicfile.Write(path, append(data, '\n'))
}
