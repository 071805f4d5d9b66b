package program

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"nicprof/internal/config"
	"nicprof/traffic"
)

// Limits that hold on every board.
const (
	MaxBytes     = 128     // bytes of one access
	MaxPerPacket = 10_000  // accesses of one line, or stateless operations / 1000, in one packet
	MaxElements  = 1 << 24 // locks in one array
	MaxChain     = 64      // network tasks of a chain
	MaxCredits   = 1 << 16 // of a network task
	MaxStage     = 1 << 20 // cycles, or Gb/s, of one
	MaxSleep     = 1 << 20 // cycles of a sleep idiom; the NFP's sleep counter has 20 bits
)

// Validate checks what no board can run: sizes, counts, names, idioms. Its
// error is the user's fault and names each value by path. Whether a board has
// the memories is board.Check's question.
func (p Program) Validate() error { return p.findings().Err() }

func (p Program) findings() config.Findings {
	var f config.Findings
	if p.PacketBytes != 0 {
		f.AddAll("packet_bytes", traffic.CheckPacketBytes(p.PacketBytes))
	}
	for _, kind := range sortedKinds(p.Stateless) {
		path := "stateless." + kind
		switch n := p.Stateless[kind]; {
		case !slices.Contains(Kinds, kind):
			f.Add(path, "unknown kind of operation; known are %s", strings.Join(Kinds, ", "))
		case !(n >= 0 && n <= MaxPerPacket*1000):
			f.Add(path, "%v operations a packet; expected 0..%d", n, MaxPerPacket*1000)
		}
	}
	p.eachAccess(func(path string, a *Access) { f.AddAll(path, a.findings()) })
	seen := map[string]int{}
	for i, l := range p.Locks {
		path := fmt.Sprintf("locks[%d]", i)
		f.AddAll(path, l.findings())
		if first, ok := seen[l.Name]; ok && l.Name != "" {
			f.Add(path+".name", "%q is already the name of locks[%d]", l.Name, first)
		} else {
			seen[l.Name] = i
		}
	}
	if p.Flows != nil {
		f.AddAll("flows", p.Flows.Check())
	}
	for i, s := range p.Chain {
		path := fmt.Sprintf("chain[%d]", i)
		checkName(&f, path+".name", s.Name)
		if s.Cycles < 0 || s.Cycles > MaxStage {
			f.Add(path+".cycles", "%d cycles; expected 1..%d, or none for an NT that the board knows", s.Cycles, MaxStage)
		}
		if s.II < 0 || s.II > MaxStage {
			f.Add(path+".ii", "a packet every %d cycles; expected 1..%d", s.II, MaxStage)
		}
		if !(s.Gbps >= 0 && s.Gbps <= MaxStage) {
			f.Add(path+".gbps", "%v Gb/s; expected 0 (no limit) to %d", s.Gbps, MaxStage)
		}
	}
	if len(p.Chain) > MaxChain {
		f.Add("chain", "%d network tasks; at most %d", len(p.Chain), MaxChain)
	}
	if p.Credits < 0 || p.Credits > MaxCredits {
		f.Add("credits", "%d credits; expected 1..%d, or none for the board's", p.Credits, MaxCredits)
	}
	if c := p.Configure; c != "" && c != ConfigureRegion && c != ContextSwitch {
		f.Add("configure", "%q; expected %s or %s", c, ConfigureRegion, ContextSwitch)
	}
	if len(p.Chain) == 0 && (p.Parallel || p.Credits > 0 || p.Configure != "") {
		f.Add("chain", "parallel, credits and configure need a chain of network tasks")
	}
	return f
}

// sortedKinds returns the kinds that s counts: known ones in the order of
// Kinds, then the others by name.
func sortedKinds(s Stateless) []string {
	var kinds, unknown []string
	for _, k := range Kinds {
		if _, ok := s[k]; ok {
			kinds = append(kinds, k)
		}
	}
	for k := range s {
		if !slices.Contains(Kinds, k) {
			unknown = append(unknown, k)
		}
	}
	slices.Sort(unknown)
	return append(kinds, unknown...)
}

func (a Access) findings() config.Findings {
	var f config.Findings
	checkName(&f, "memory", a.Memory)
	if a.Op != Read && a.Op != Write && a.Op != Add {
		f.Add("op", "%q is not an operation; expected read, write or add", a.Op)
	}
	switch {
	case a.Mode != Bulk && a.Mode != Atomic:
		f.Add("mode", "%q is not a mode; expected bulk or atomic", a.Mode)
	case a.Op == Add && a.Mode == Bulk:
		f.Add("mode", "add is atomic; a bulk engine only reads and writes: use add:atomic")
	}
	switch {
	case a.Bytes%4 != 0:
		f.Add("bytes", "%d is not a multiple of 4; allowed are 4, 8, …, %d", a.Bytes, MaxBytes)
	case a.Bytes < 4 || a.Bytes > MaxBytes:
		f.Add("bytes", "%d is out of range; allowed are 4, 8, …, %d", a.Bytes, MaxBytes)
	}
	if !(a.PerPacket >= 0 && a.PerPacket <= MaxPerPacket) {
		f.Add("per_packet", "%v accesses a packet; expected 0..%d, fractions allowed", a.PerPacket, MaxPerPacket)
	}
	if a.Span < 0 || a.Span > traffic.MaxFlows {
		f.Add("span", "%d elements; expected 1..2^40", a.Span)
	}
	if a.Stride < 0 || a.Stride%4 != 0 {
		f.Add("stride", "%d bytes between elements; expected a positive multiple of 4", a.Stride)
	}
	f.AddAll("", traffic.CheckPopularity(a.Popularity, a.Alpha))
	return f
}

func (l Lock) findings() config.Findings {
	var f config.Findings
	checkName(&f, "name", l.Name)
	if l.Elements < 1 || l.Elements > MaxElements {
		f.Add("elements", "%d locks; expected 1..%d", l.Elements, MaxElements)
	}
	if l.Idiom != "" && !l.Idiom.known() {
		f.Add("idiom", "%q is not a lock idiom; expected spin, sleep-CYCLES (1..%d), ticket, mutex or none", l.Idiom, MaxSleep)
	}
	return f
}

// Sleep returns the cycles between two tries of a sleep idiom, 0 of others.
func (i Idiom) Sleep() int {
	digits, ok := strings.CutPrefix(string(i), "sleep-")
	n, err := strconv.ParseUint(digits, 10, 32)
	if !ok || err != nil || n > MaxSleep || digits[0] == '0' {
		return 0
	}
	return int(n)
}

func (i Idiom) known() bool {
	return i == Spin || i == Ticket || i == Mutex || i == None || i.Sleep() > 0
}

// checkName keeps names clear of the separators of specs and sample keys.
func checkName(f *config.Findings, path, name string) {
	ok := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '.'
	}
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !ok(r) }) {
		f.Add(path, "%q is not a name; expected letters, digits, _, - and .", name)
	}
}

// number formats a count without an exponent and with as few digits as tell it
// apart.
func number(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
		return strconv.FormatInt(int64(v), 10)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}
