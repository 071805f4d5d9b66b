package traffic

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"nicprof/internal/config"
	"nicprof/internal/fault"
)

// Load reads a traffic file: YAML, a flow CSV, a pcap or a pcapng. Its error is
// the user's fault, with file and line (or packet).
func Load(path string) (Traffic, error) {
	f, err := os.Open(path)
	if err != nil {
		return Traffic{}, fault.Inputf("traffic file: %w", err)
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 1<<16)
	if magic, _ := r.Peek(4); isCapture(magic) {
		return ReadCapture(r, path)
	}
	switch filepath.Ext(path) {
	case ".csv":
		return ReadFlows(r, path)
	case ".yaml", ".yml":
		data, err := io.ReadAll(r)
		if err != nil {
			return Traffic{}, fault.Inputf("traffic file: %w", err)
		}
		return Parse(data, path)
	}
	return Traffic{}, fault.Inputf("%s: expected a pcap or pcapng (it does not begin like one), a flow CSV (.csv) or YAML (.yaml)", path)
}

// file is a YAML traffic file.
type file struct {
	RateMpps   float64            `yaml:"rate_mpps"`
	Size       any                `yaml:"size"`
	Flows      *Flows             `yaml:"flows"`
	Branches   map[string]float64 `yaml:"branches"`
	MaxFlowPPS map[string]float64 `yaml:"max_flow_pps"`
}

// Parse reads a YAML traffic file. name is its path, from which the path of a
// size CDF in it is taken.
func Parse(data []byte, name string) (Traffic, error) {
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
	t := Traffic{RateMpps: in.RateMpps, Flows: in.Flows, Branches: in.Branches, MaxFlowPPS: in.MaxFlowPPS}
	var found config.Findings
	if in.Size != nil {
		if err := t.setSize(in.Size, filepath.Dir(name), &found); err != nil {
			return Traffic{}, err
		}
	}
	found = append(found, t.Check()...)
	if err := found.Err(); err != nil {
		return Traffic{}, doc.Locate(err)
	}
	return t, nil
}

// setSize takes size: BYTES, NAME or {cdf: FILE, read: step|linear, unit: bytes}.
func (t *Traffic) setSize(size any, dir string, found *config.Findings) error {
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
		return t.setCDF(size, dir, found)
	}
	found.Add("size", "expected BYTES, NAME (%s) or {cdf: FILE, read: step|linear, unit: bytes}", strings.Join(SizeNames(), ", "))
	return nil
}

func (t *Traffic) setCDF(size map[string]any, dir string, found *config.Findings) error {
	known := []string{"cdf", "read", "unit"}
	for _, key := range sortedKeys(size) {
		if !slices.Contains(known, key) {
			found.Add("size."+key, "unknown key; known are %s", strings.Join(known, ", "))
		}
	}
	path, ok := size["cdf"].(string)
	if !ok {
		found.Add("size.cdf", "expected the path of a file of lines: bytes, probability")
	}
	read := size["read"]
	if read != nil && read != "step" && read != "linear" {
		found.Add("size.read", "%v is neither step nor linear", read)
	}
	unit := 1.0
	switch u := size["unit"].(type) {
	case nil:
	case string:
		if u != "bytes" {
			found.Add("size.unit", "%q is not a unit; expected bytes, or the number of bytes in one", u)
		}
	case float64:
		if unit = u; !(u > 0 && u <= MaxMessageBytes) {
			found.Add("size.unit", "%v is not a unit; expected bytes, or the number of bytes in one", u)
		}
	default:
		found.Add("size.unit", "expected bytes, or the number of bytes in one")
	}
	if len(*found) > 0 {
		return nil
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	f, err := os.Open(path)
	if err != nil {
		found.Add("size.cdf", "%v", err)
		return nil
	}
	defer f.Close()
	s, err := ReadSizes(f, path, read == "linear", unit)
	if err != nil {
		return err
	}
	t.setSizes(s)
	return nil
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

var flowColumns = []string{"src", "dst", "proto", "sport", "dport", "pps", "bytes"}

// flowKey is what tells a flow from another.
type flowKey struct {
	src, dst     netip.Addr
	proto        uint16 // IP protocol, or the EtherType of what is not IP
	sport, dport uint16
}

// ReadFlows reads a flow CSV: a header of src,dst,proto,sport,dport,pps,bytes,
// then a flow a line with its packets a second and bytes a packet (with the
// frame check sequence). # begins a comment line.
func ReadFlows(r io.Reader, name string) (Traffic, error) {
	in := csv.NewReader(r)
	in.Comment = '#'
	in.TrimLeadingSpace = true
	fail := func(line int, format string, a ...any) (Traffic, error) {
		return Traffic{}, fault.Inputf("%s:%d: %w", name, line, fmt.Errorf(format, a...))
	}
	syntax := func(err error) (Traffic, error) {
		var pe *csv.ParseError
		if !errors.As(err, &pe) {
			return Traffic{}, fault.Inputf("%s: %w", name, err)
		}
		if errors.Is(err, csv.ErrFieldCount) {
			return fail(pe.Line, "expected %d fields: %s", len(flowColumns), strings.Join(flowColumns, ","))
		}
		return fail(pe.Line, "%w", pe.Err)
	}
	header, err := in.Read()
	if err == io.EOF {
		return fail(1, "the file is empty; expected the header %s", strings.Join(flowColumns, ","))
	} else if err != nil {
		return syntax(err)
	}
	if !slices.Equal(header, flowColumns) {
		return fail(1, "expected the header %s, got %s", strings.Join(flowColumns, ","), strings.Join(header, ","))
	}
	var m tally
	seen := map[flowKey]int{}
	for {
		row, err := in.Read()
		if err == io.EOF {
			break
		} else if err != nil {
			return syntax(err)
		}
		line, _ := in.FieldPos(0)
		key, err := parseFlow(row)
		if err != nil {
			return fail(line, "%w", err)
		}
		if at, ok := seen[key]; ok {
			return fail(line, "this flow is already on line %d", at)
		}
		seen[key] = line
		pps, err := strconv.ParseFloat(row[5], 64)
		if err != nil || !(pps >= 0 && pps <= 1e12) {
			return fail(line, "pps: %q is not a rate; expected packets a second", row[5])
		}
		bytes, err := strconv.Atoi(row[6])
		if err != nil || len(CheckPacketBytes(bytes)) > 0 {
			return fail(line, "bytes: %q is not a packet size; expected %d..%d", row[6], MinPacketBytes, MaxPacketBytes)
		}
		m.add(key, bytes, pps)
	}
	t, ok := m.traffic()
	if !ok {
		return Traffic{}, fault.Inputf("%s: no flow has a packet", name)
	}
	t.RateMpps = m.total / 1e6
	return t, nil
}

func parseFlow(row []string) (flowKey, error) {
	var k flowKey
	var err error
	for i, to := range []*netip.Addr{&k.src, &k.dst} {
		if *to, err = netip.ParseAddr(row[i]); err != nil {
			return k, fmt.Errorf("%s: %q is not an IP address", flowColumns[i], row[i])
		}
	}
	names := map[string]uint16{"icmp": 1, "tcp": 6, "udp": 17, "icmp6": 58, "sctp": 132}
	proto, ok := names[strings.ToLower(row[2])]
	if n, err := strconv.ParseUint(row[2], 10, 8); !ok && err != nil {
		return k, fmt.Errorf("proto: %q is not a protocol; expected tcp, udp, icmp, icmp6, sctp or 0..255", row[2])
	} else if !ok {
		proto = uint16(n)
	}
	k.proto = proto
	for i, to := range []*uint16{&k.sport, &k.dport} {
		n, err := strconv.ParseUint(row[3+i], 10, 16)
		if err != nil {
			return k, fmt.Errorf("%s: %q is not a port; expected 0..65535", flowColumns[3+i], row[3+i])
		}
		*to = uint16(n)
	}
	return k, nil
}

// tally adds packets up by flow and by size. Its zero value is empty.
type tally struct {
	total float64
	flows map[flowKey]float64
	sizes map[int]float64
}

// add counts packets, or packets a second, of one flow and size.
func (m *tally) add(k flowKey, bytes int, packets float64) {
	if m.flows == nil {
		m.flows, m.sizes = map[flowKey]float64{}, map[int]float64{}
	}
	m.total += packets
	m.flows[k] += packets
	m.sizes[bytes] += packets
}

// traffic returns the flows' shares and the sizes, or false without a packet.
func (m *tally) traffic() (Traffic, bool) {
	if m.total == 0 {
		return Traffic{}, false
	}
	shares := make([]float64, 0, len(m.flows))
	for _, packets := range m.flows {
		if packets > 0 {
			shares = append(shares, packets/m.total)
		}
	}
	slices.Sort(shares)
	slices.Reverse(shares)
	t := Traffic{Flows: &Flows{Count: len(shares), Shares: shares}}
	var bytes, weights []float64
	for _, size := range sortedKeys(m.sizes) {
		if m.sizes[size] > 0 {
			bytes, weights = append(bytes, float64(size)), append(weights, m.sizes[size])
		}
	}
	if len(bytes) == 1 {
		t.PacketBytes = int(bytes[0])
	} else {
		t.Sizes = weighted("", bytes, weights)
	}
	return t, true
}
