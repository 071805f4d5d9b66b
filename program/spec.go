package program

import (
	"strconv"
	"strings"

	"nicprof/internal/fault"
)

const (
	accessForm = "MEMORY:OP:MODE:BYTES:PER_PACKET[:SPAN[:STRIDE]][:zipf:ALPHA]"
	lockForm   = "NAME:ELEMENTS[:IDIOM][:hash]:SPEC+SPEC...|empty"
)

// ParseAccess reads an access spec
// MEMORY:OP:MODE:BYTES:PER_PACKET[:SPAN[:STRIDE]][:zipf:ALPHA], such as
// emem:read:bulk:64:10:8192. An empty SPAN is the board's default.
func ParseAccess(spec string) (Access, error) {
	bad := func(format string, a ...any) (Access, error) {
		return Access{}, fault.Inputf("access %q: "+format, append([]any{spec}, a...)...)
	}
	f := strings.Split(spec, ":")
	var a Access
	if n := len(f); n >= 7 && f[n-2] == "zipf" {
		alpha, err := strconv.ParseFloat(f[n-1], 64)
		if err != nil {
			return bad("%q is not a Zipf exponent", f[n-1])
		}
		a.Popularity, a.Alpha = "zipf", alpha
		f = f[:n-2]
	}
	if len(f) < 5 || len(f) > 7 {
		return bad("expected %s, such as emem:read:bulk:64:10:8192", accessForm)
	}
	a.Memory, a.Op, a.Mode = f[0], Op(f[1]), Mode(f[2])
	var err error
	if a.Bytes, err = strconv.Atoi(f[3]); err != nil {
		return bad("BYTES: %q is not a whole number", f[3])
	}
	if a.PerPacket, err = strconv.ParseFloat(f[4], 64); err != nil {
		return bad("PER_PACKET: %q is not a number", f[4])
	}
	count := func(i int, name string) (int64, error) {
		if i >= len(f) || f[i] == "" && i == 5 && len(f) == 7 {
			return 0, nil
		}
		n, err := strconv.ParseInt(f[i], 10, 64)
		if err != nil || n < 1 {
			return 0, fault.Inputf("access %q: %s: %q is not a whole number of at least 1", spec, name, f[i])
		}
		return n, nil
	}
	if a.Span, err = count(5, "SPAN"); err != nil {
		return Access{}, err
	}
	if a.Stride, err = count(6, "STRIDE"); err != nil {
		return Access{}, err
	}
	if err := a.findings().Err(); err != nil {
		return bad("%w", err)
	}
	return a, nil
}

// String returns the access as a spec that ParseAccess reads back; sample keys
// use it.
func (a Access) String() string {
	s := strings.Join([]string{a.Memory, string(a.Op), string(a.Mode), strconv.Itoa(a.Bytes), number(a.PerPacket)}, ":")
	if a.Span > 0 {
		s += ":" + strconv.FormatInt(a.Span, 10)
	} else if a.Stride > 0 {
		s += ":"
	}
	if a.Stride > 0 {
		s += ":" + strconv.FormatInt(a.Stride, 10)
	}
	if a.Popularity == "zipf" {
		s += ":zipf:" + number(a.Alpha)
	}
	return s
}

// ParseLock reads a lock spec NAME:ELEMENTS[:IDIOM][:hash]:SPEC+SPEC...|empty,
// such as sketch:1:spin:emem:read:atomic:4:1+emem:write:atomic:4:1.
func ParseLock(spec string) (Lock, error) {
	bad := func(format string, a ...any) (Lock, error) {
		return Lock{}, fault.Inputf("lock %q: "+format, append([]any{spec}, a...)...)
	}
	f := strings.SplitN(spec, ":", 3)
	if len(f) < 3 {
		return bad("expected %s, such as sketch:1:spin:empty", lockForm)
	}
	l := Lock{Name: f[0]}
	var err error
	if l.Elements, err = strconv.Atoi(f[1]); err != nil {
		return bad("ELEMENTS: %q is not a whole number", f[1])
	}
	section := f[2]
	if word, rest, ok := strings.Cut(section, ":"); ok && (Idiom(word).known() || strings.HasPrefix(word, "sleep")) {
		l.Idiom, section = Idiom(word), rest
	}
	if rest, ok := strings.CutPrefix(section, "hash:"); ok {
		l.Hash, section = true, rest
	}
	if section != "empty" {
		for s := range strings.SplitSeq(section, "+") {
			a, err := ParseAccess(s)
			if err != nil {
				return bad("expected %s with IDIOM spin, sleep-CYCLES, ticket, mutex or none: %w", lockForm, err)
			}
			l.Section = append(l.Section, a)
		}
	}
	if err := l.findings().Err(); err != nil {
		return bad("%w", err)
	}
	return l, nil
}

// String returns the lock as a spec that ParseLock reads back; sample keys use
// it.
func (l Lock) String() string {
	s := l.Name + ":" + strconv.Itoa(l.Elements)
	if l.Idiom != "" {
		s += ":" + string(l.Idiom)
	}
	if l.Hash {
		s += ":hash"
	}
	if len(l.Section) == 0 {
		return s + ":empty"
	}
	specs := make([]string, len(l.Section))
	for i, a := range l.Section {
		specs[i] = a.String()
	}
	return s + ":" + strings.Join(specs, "+")
}

// ParseStateless reads a count of plain arithmetic operations a packet.
func ParseStateless(s string) (Stateless, error) {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return nil, fault.Inputf("stateless %q: expected a number of ALU operations a packet", s)
	}
	st := Stateless{ALU: n}
	if err := (Program{Stateless: st}).Validate(); err != nil {
		return nil, err
	}
	return st, nil
}
