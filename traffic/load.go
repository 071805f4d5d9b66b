package traffic

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"nicprof/internal/config"
	"nicprof/internal/fault"
	"nicprof/traffic/capture"
)

// format is what a traffic file is.
type format int

const (
	formatCapture format = iota + 1
	formatCSV
	formatYAML
)

// open opens a traffic file and tells its format, a capture by its first bytes.
func open(path string) (*os.File, format, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, fault.Inputf("traffic file: %w", err)
	}
	magic := make([]byte, 4)
	n, err := f.ReadAt(magic, 0)
	if err != nil && err != io.EOF {
		f.Close()
		return nil, 0, fault.Inputf("traffic file: %w", err)
	}
	switch ext := filepath.Ext(path); {
	case capture.Is(magic[:n]):
		return f, formatCapture, nil
	case ext == ".csv":
		return f, formatCSV, nil
	case ext == ".yaml" || ext == ".yml":
		return f, formatYAML, nil
	}
	f.Close()
	return nil, 0, fault.Inputf("%s: expected a pcap or pcapng (it does not begin like one), a flow CSV (.csv) or YAML (.yaml)", path)
}

// Load reads a traffic file: YAML, a flow CSV, a pcap or a pcapng. Its error is
// the user's fault, with file and line (or packet).
func Load(path string) (Traffic, error) {
	f, format, err := open(path)
	if err != nil {
		return Traffic{}, err
	}
	defer f.Close()
	switch format {
	case formatCapture:
		return ReadCapture(f, path)
	case formatCSV:
		return ReadFlows(f, path)
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return Traffic{}, fault.Inputf("traffic file: %w", err)
	}
	return Parse(data, path)
}

// LoadVolumes reads a traffic file and counts its packets by flow group under
// each of the keys. Volumes are nil when the file, YAML without captures, says
// how much traffic there is but not of whom: see Synthesis. The Traffic is what
// YAML says itself, empty for other files.
func LoadVolumes(path string, keys []Key, o VolumeOptions) (Traffic, *Volumes, error) {
	f, format, err := open(path)
	if err != nil {
		return Traffic{}, nil, err
	}
	defer f.Close()
	switch format {
	case formatCapture:
		v, err := CaptureVolumes([]string{path}, keys, o)
		return Traffic{}, v, err
	case formatCSV:
		v, err := FlowVolumes(f, path, keys)
		return Traffic{}, v, err
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return Traffic{}, nil, fault.Inputf("traffic file: %w", err)
	}
	t, err := parse(data, path)
	if err != nil || len(t.Captures) == 0 {
		return t, nil, err
	}
	v, err := CaptureVolumes(t.Captures, keys, o)
	return t, v, err
}

// file is a YAML traffic file.
type file struct {
	Captures   []string           `yaml:"captures"`
	RateMpps   float64            `yaml:"rate_mpps"`
	Size       any                `yaml:"size"`
	Flows      *flowsFile         `yaml:"flows"`
	Branches   map[string]float64 `yaml:"branches"`
	MaxFlowPPS map[string]float64 `yaml:"max_flow_pps"`
}

// flowsFile is flows of a YAML traffic file.
type flowsFile struct {
	Count      *int    `yaml:"count"`
	Popularity string  `yaml:"popularity"`
	Alpha      float64 `yaml:"alpha"`
	Volumes    any     `yaml:"volumes"`
}

// Parse reads a YAML traffic file and the files that it names. name is its
// path, which theirs begin at. What captures say is overridden by what the file
// says itself.
func Parse(data []byte, name string) (Traffic, error) {
	t, err := parse(data, name)
	if err != nil || len(t.Captures) == 0 {
		return t, err
	}
	of, err := ReadCaptures(t.Captures...)
	if err != nil {
		return Traffic{}, err
	}
	if t.RateMpps == 0 {
		t.RateMpps = of.RateMpps
	}
	if t.PacketBytes == 0 && t.Sizes == nil {
		t.PacketBytes, t.Sizes = of.PacketBytes, of.Sizes
	}
	if t.Flows == nil {
		t.Flows = of.Flows
	}
	t.Warnings = of.Warnings
	return t, nil
}

// parse reads a YAML traffic file without the captures that it names.
func parse(data []byte, name string) (Traffic, error) {
	doc, err := config.Parse(data, name)
	if err != nil {
		return Traffic{}, err
	}
	if _, list := doc.Value().([]any); list {
		return Traffic{}, doc.Failf("", "a list of times is a timeline; expected a single traffic: rate_mpps, size, flows, …")
	}
	var in file
	if err := doc.Decode(&in); err != nil {
		return Traffic{}, err
	}
	t := Traffic{RateMpps: in.RateMpps, Branches: in.Branches, MaxFlowPPS: in.MaxFlowPPS}
	for _, path := range in.Captures {
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(name), path)
		}
		t.Captures = append(t.Captures, path)
	}
	var found config.Findings
	if in.Size != nil {
		if err := t.SetSize(in.Size, filepath.Dir(name), &found); err != nil {
			return Traffic{}, err
		}
	}
	if in.Flows != nil {
		if err := t.setFlows(in.Flows, filepath.Dir(name), &found); err != nil {
			return Traffic{}, err
		}
	}
	found = append(found, t.Check()...)
	if err := found.Err(); err != nil {
		return Traffic{}, doc.Locate(err)
	}
	return t, nil
}

// SetSize sets the packet sizes as a YAML file gives them: BYTES, NAME or {cdf:
// FILE, read: step|linear, unit: bytes}, FILE in dir. Complaints about size go to
// found; messages are cut into packets.
func (t *Traffic) SetSize(size any, dir string, found *config.Findings) error {
	switch size := size.(type) {
	case float64:
		t.PacketBytes = int(size)
		if size != math.Trunc(size) || len(CheckPacketBytes(int(size))) > 0 {
			found.Add("size", "%v is not a packet size; expected a whole number of %d..%d bytes", size, MinPacketBytes, MaxPacketBytes)
			t.PacketBytes = MinPacketBytes // one complaint is enough
		}
		return nil
	case string:
		s, err := NamedSizes(size)
		if err != nil {
			found.Add("size", "%v; or give bytes, or {cdf: FILE, read: step|linear, unit: bytes}", err)
			return nil
		}
		t.setSizes(s)
		return nil
	case map[string]any:
		s, err := readCDF("size", size, dir, []string{"bytes"}, found)
		if s != nil {
			t.setSizes(s)
		}
		return err
	}
	found.Add("size", "expected BYTES, NAME (%s) or {cdf: FILE, read: step|linear, unit: bytes}", strings.Join(SizeNames(), ", "))
	return nil
}

// setFlows takes flows: {count: N, popularity: uniform|zipf, alpha: A}, or
// {count: N, volumes: NAME|{cdf: FILE, read: step|linear, unit: packets|bytes}}
// whose count may be missing.
func (t *Traffic) setFlows(in *flowsFile, dir string, found *config.Findings) error {
	t.Flows = &Flows{Popularity: in.Popularity, Alpha: in.Alpha}
	if in.Count != nil {
		t.Flows.Count = *in.Count
	}
	t.Shape = Shape{Alpha: in.Alpha}
	if in.Volumes == nil {
		return nil
	}
	const path = "flows.volumes"
	if in.Popularity != "" || in.Alpha != 0 {
		found.Add(path, "a distribution of flow volumes beside a popularity; expected one of them")
		return nil
	}
	switch volumes := in.Volumes.(type) {
	case string:
		shape, err := NamedShape(volumes)
		if err != nil {
			found.Add(path, "%v; or give {cdf: FILE, read: step|linear, unit: packets|bytes}", err)
		}
		t.Shape = shape
	case map[string]any:
		s, err := readCDF(path, volumes, dir, []string{"packets", "bytes"}, found)
		if err != nil {
			return err
		}
		t.Shape = Shape{Volumes: s}
	default:
		found.Add(path, "expected NAME (%s) or {cdf: FILE, read: step|linear, unit: packets|bytes}", strings.Join(ShapeNames(), ", "))
	}
	if t.Shape.Volumes == nil {
		return nil
	}
	if in.Count == nil {
		t.Flows = nil // as many as the largest one takes: see Shape.Rates
		return nil
	}
	if t.Flows.Count < 1 || t.Flows.Count > maxSynthetic {
		found.Add("flows.count", "%d flows by a distribution of volumes; expected 1..%d", t.Flows.Count, maxSynthetic)
		t.Flows = nil // one complaint is enough
		return nil
	}
	shares, err := t.Shape.Rates(1, t.Flows.Count, 0)
	t.Flows.Shares = shares
	return err
}

// setSizes sets the packet sizes; messages are cut into packets.
func (t *Traffic) setSizes(s *Sizes) {
	if s.Max() > MaxPacketBytes {
		s = s.Packets()
	}
	t.Sizes = s
}

// Check complains about traffic that cannot be.
func (t Traffic) Check() config.Findings {
	var f config.Findings
	if !(t.RateMpps >= 0 && t.RateMpps <= 1e6) {
		f.Add("rate_mpps", "%v is not a rate; expected million packets a second, 0 to saturate", t.RateMpps)
	}
	if t.PacketBytes != 0 {
		f.AddAll("size", CheckPacketBytes(t.PacketBytes))
	}
	if t.Sizes != nil {
		f.AddAll("size", t.Sizes.Check())
	}
	if t.Flows != nil {
		f.AddAll("flows", t.Flows.Check())
	}
	for _, name := range sortedKeys(t.Branches) {
		if r := t.Branches[name]; !(r >= 0 && r <= 1) {
			f.Add("branches."+name, "%v is not a ratio; expected 0..1", r)
		}
	}
	for _, name := range sortedKeys(t.MaxFlowPPS) {
		if v := t.MaxFlowPPS[name]; !(v >= 0 && v <= 1e12) {
			f.Add("max_flow_pps."+name, "%v is not a rate; expected packets a second", v)
		}
	}
	return f
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// ReadSizes reads a cumulative distribution of sizes, one point a line: size
// and probability (0..1, or 0..100 when the last is 100), apart by spaces or a
// comma. Sizes are multiplied by unit. # begins a comment; a first line of one
// number, the mean in some collections, is skipped.
func ReadSizes(r io.Reader, name string, linear bool, unit float64) (*Sizes, error) {
	s := &Sizes{Name: strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)), Linear: linear}
	in := bufio.NewScanner(r)
	at := 0
	fail := func(format string, a ...any) (*Sizes, error) {
		return nil, fault.Inputf("%s:%d: %w", name, at, fmt.Errorf(format, a...))
	}
	first := true
	for in.Scan() {
		at++
		text, _, _ := strings.Cut(in.Text(), "#")
		fields := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\r' })
		if len(fields) == 0 || len(fields) == 1 && first {
			first = first && len(fields) == 0
			continue
		}
		first = false
		if len(fields) != 2 {
			return fail("%d fields; expected size and cumulative probability", len(fields))
		}
		size, err1 := strconv.ParseFloat(fields[0], 64)
		p, err2 := strconv.ParseFloat(fields[1], 64)
		if err := errors.Join(err1, err2); err != nil {
			return fail("expected two numbers, size and cumulative probability, got %q", strings.TrimSpace(text))
		}
		s.Bytes, s.P = append(s.Bytes, size*unit), append(s.P, p)
	}
	if err := in.Err(); err != nil {
		return fail("%w", err)
	}
	if n := len(s.P); n > 0 && math.Abs(s.P[n-1]-100) < 1e-6 {
		s.P = percent(s.P...)
	}
	if n := len(s.P); n > 0 && math.Abs(s.P[n-1]-1) < 1e-6 {
		for i := range s.P {
			s.P[i] = min(s.P[i], 1)
		}
		s.P[n-1] = 1
	}
	if err := s.Check().Err(); err != nil {
		return nil, fault.Inputf("%s: %w", name, err)
	}
	return s, nil
}
