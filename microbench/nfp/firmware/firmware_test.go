package firmware

import (
	"bytes"
	"embed"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nicprof/board"
	"nicprof/internal/fault"
	"nicprof/program"
	"nicprof/traffic"
)

//go:embed shim
var shim embed.FS

// TestMain has rapid try fewer programs than by default: each is compiled.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		flag.Set(f.Name, "15")
	}
	os.Exit(m.Run())
}

func nfp(t testing.TB) *board.Board {
	t.Helper()
	b, err := board.Load("nfp")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func generate(t testing.TB, b *board.Board, p program.Program) *Image {
	t.Helper()
	if err := b.Check(p, 0, 0); err != nil {
		t.Fatal(err)
	}
	im, err := Generate(b, b.Resolve(p))
	if err != nil {
		t.Fatal(err)
	}
	return im
}

// run is what a plugin did on this machine.
type run struct {
	counts   map[string]uint64 // by "array intrinsic bytes"
	value    uint32            // after the stateless operations of context 0
	overlaps uint64            // commands on guarded arrays that met another context's
}

// tb is what testing.T and rapid.T have in common.
type tb interface {
	Helper()
	Fatalf(string, ...any)
}

// execute compiles a plugin against the shim with every warning an error, and
// runs it.
func execute(t tb, dir string, im *Image, contexts, packets int, flows, elements int64, guarded string) run {
	t.Helper()
	var arrays strings.Builder
	arrays.WriteString("struct shim_array shim_arrays[] = {\n")
	all := im.Arrays
	if im.Table {
		all = append([]Array{{Name: "prof_table", Memory: "imem", Bytes: 64}}, all...)
	}
	for _, a := range all {
		fmt.Fprintf(&arrays, "{ \"%s\", (uint8_t *)%s, sizeof(%s), %t, 0 },\n", a.Name, a.Name, a.Name, a.Name == guarded)
	}
	if len(all) == 0 {
		arrays.WriteString("{ \"none\", NULL, 0, 0, 0 },\n")
	}
	arrays.WriteString("};\n")
	files := append([]File{{Name: "arrays.h", Text: []byte(arrays.String())}}, im.Files...)
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f.Name), f.Text, 0o644); err != nil {
			t.Fatalf("%v", err)
		}
	}
	if err := os.CopyFS(filepath.Join(dir, "include"), shim); err != nil && !os.IsExist(err) {
		t.Fatalf("%v", err)
	}
	include := filepath.Join(dir, "include", "shim")
	args := []string{"-std=gnu11", "-O0", "-Wall", "-Werror", "-pthread", "-I", include, "-I", dir,
		"-o", filepath.Join(dir, "run"), filepath.Join(include, "run.c")}
	if bytes.Contains(im.Files[0].Text, []byte("prof_value")) {
		args = append([]string{"-DSTATELESS"}, args...)
	}
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s\n%s", err, out, im.Files[0].Text)
	}
	args = []string{fmt.Sprint(contexts), fmt.Sprint(packets), fmt.Sprint(flows), fmt.Sprint(elements)}
	if im.Table {
		for _, p := range im.Params {
			args = append(args, fmt.Sprint(p.Value))
		}
	}
	out, err := exec.Command(filepath.Join(dir, "run"), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("run: %v\n%s\n%s", err, out, im.Files[0].Text)
	}
	r := run{counts: map[string]uint64{}}
	for line := range strings.Lines(string(out)) {
		var n uint64
		switch f := strings.Fields(line); {
		case len(f) == 4:
			fmt.Sscan(f[3], &n)
			r.counts[strings.Join(f[:3], " ")] = n
		case f[0] == "value":
			fmt.Sscan(f[1], &r.value)
		case f[0] == "overlaps":
			fmt.Sscan(f[1], &r.overlaps)
		}
	}
	return r
}

func needGCC(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("gcc is not in PATH: the generated C is not compiled here")
	}
}

// access draws an access that a card has.
func drawAccess(t *rapid.T, name string) program.Access {
	a := program.Access{
		Memory:    rapid.SampledFrom([]string{"emem", "imem", "ctm", "cls"}).Draw(t, name+" memory"),
		Op:        rapid.SampledFrom([]program.Op{program.Read, program.Write, program.Add}).Draw(t, name+" op"),
		Mode:      rapid.SampledFrom([]program.Mode{program.Bulk, program.Atomic}).Draw(t, name+" mode"),
		Bytes:     4 * rapid.IntRange(1, 32).Draw(t, name+" words"),
		PerPacket: rapid.SampledFrom([]float64{0, 0.3, 1, 1.5, 2, 7, 2.0000000001}).Draw(t, name+" per packet"),
		Span:      rapid.Int64Range(1, 300).Draw(t, name+" span"),
		Stride:    int64(4 * rapid.IntRange(1, 40).Draw(t, name+" stride")),
	}
	if a.Op == program.Add || a.Memory == "cls" {
		a.Mode = program.Atomic
	}
	if a.Memory == "cls" && a.Op != program.Add {
		a.Mode = program.Bulk
	}
	return a
}

// commandsOf lists, from the documented limits alone, the commands of one
// access: intrinsic and bytes.
func commandsOf(a program.Access) []string {
	split := func(intrinsic string, most int) []string {
		var all []string
		for left := a.Bytes; left > 0; left -= most {
			n := min(left, most)
			if n == 4 && a.Op == program.Add && a.Memory != "cls" {
				all = append(all, "mem_incr32 4")
			} else {
				all = append(all, fmt.Sprintf("%s %d", intrinsic, n))
			}
		}
		return all
	}
	switch {
	case a.Memory == "cls" && a.Op == program.Add:
		return split("cls_add", 16)
	case a.Memory == "cls":
		return split("cls_"+string(a.Op), 64)
	case a.Op == program.Add && (a.Bytes%8 != 0 || a.Stride%8 != 0):
		return split("mem_add32", 16)
	case a.Op == program.Add:
		return split("mem_add64", 32)
	case a.Mode == program.Atomic:
		return split(fmt.Sprintf("mem_%s_atomic", a.Op), 32)
	}
	return split(fmt.Sprintf("mem_%s32", a.Op), 128)
}

// carried is the number of accesses of n packets of one context.
func carried(perPacket float64, n int) uint64 {
	whole, fraction := math.Modf(perPacket)
	return uint64(whole)*uint64(n) + uint64(math.Round(fraction*(1<<32)))*uint64(n)>>32
}

// What a plugin does over N packets of one context is exactly the program's
// accesses and locks, in commands that the card's limits allow.
func TestCommandsAreTheProgram(t *testing.T) {
	needGCC(t)
	b := nfp(t)
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		p := program.Program{
			Base:      rapid.SampledFrom([]string{"forward", "profiling", "netmon"}).Draw(t, "base"),
			Stateless: program.Stateless{rapid.SampledFrom(program.Kinds).Draw(t, "kind"): 1.5},
			Flows:     &traffic.Flows{Count: rapid.IntRange(1, 20).Draw(t, "flows")},
		}
		// up to a table of numbers, and beyond
		for i := range rapid.SampledFrom([]int{0, 1, 2, 3, 8}).Draw(t, "accesses") {
			p.Accesses = append(p.Accesses, drawAccess(t, fmt.Sprint("access ", i)))
		}
		for i := range rapid.IntRange(0, 2).Draw(t, "locks") {
			l := program.Lock{
				Name:     fmt.Sprint("l", i),
				Elements: 1 << rapid.IntRange(0, 5).Draw(t, "elements"),
				Idiom:    rapid.SampledFrom([]program.Idiom{program.Spin, program.Ticket, program.None, "sleep-100"}).Draw(t, "idiom"),
				Hash:     rapid.Bool().Draw(t, "hash"),
			}
			if rapid.Bool().Draw(t, "section") {
				l.Section = append(l.Section, drawAccess(t, "section"))
			}
			p.Locks = append(p.Locks, l)
		}
		im, err := Generate(b, b.Resolve(p))
		if err != nil {
			t.Fatalf("%v", err)
		}
		const packets = 40
		elements := int64(1)
		if len(p.Locks) > 0 {
			elements = int64(p.Locks[0].Elements)
		}
		got := execute(t, dir, im, 1, packets, int64(p.Flows.Count), elements, "")

		want := map[string]uint64{}
		arrays := im.Arrays
		next := func() string {
			name := arrays[0].Name
			arrays = arrays[1:]
			return name
		}
		add := func(a program.Access) {
			name := next()
			for _, c := range commandsOf(a) {
				want[name+" "+c] += carried(a.PerPacket, packets)
			}
		}
		if im.Table {
			want["prof_table mem_read32 64"] = 2 // before it is ready, and at the first packet
		}
		for _, a := range p.Accesses {
			add(a)
		}
		for _, l := range p.Locks {
			words := next()
			if l.Idiom == program.Ticket {
				want[words+" mem_test_add 4"] += packets
				want[words+" mem_read_atomic 4"] += packets
				want[words+" mem_incr32 4"] += packets
			} else {
				want[words+" mem_test_set 4"] += packets
				want[words+" mem_write_atomic 4"] += packets
			}
			for _, a := range l.Section {
				add(a)
			}
		}
		for k, n := range want {
			if got.counts[k] != n {
				t.Fatalf("%s: %d times, want %d\n%s", k, got.counts[k], n, im.Files[0].Text)
			}
			delete(got.counts, k)
		}
		if len(got.counts) > 0 {
			t.Fatalf("commands that the program does not have: %v\n%s", got.counts, im.Files[0].Text)
		}
	})
}

// The locks let one context in at a time; without waiting ("none") contexts do
// meet, so the test would see it.
func TestLocksExclude(t *testing.T) {
	needGCC(t)
	b := nfp(t)
	for _, idiom := range []program.Idiom{program.Spin, "sleep-100", program.Ticket, program.None} {
		section := program.Access{Memory: "emem", Op: program.Read, Mode: program.Bulk, Bytes: 8, PerPacket: 2, Span: 16}
		im := generate(t, b, program.Program{
			Base:  "forward",
			Locks: []program.Lock{{Name: "l", Elements: 1, Idiom: idiom, Section: []program.Access{section}}},
		})
		const contexts, packets = 4, 500
		r := execute(t, t.TempDir(), im, contexts, packets, 1, 1, im.Arrays[1].Name)
		if n := r.counts[im.Arrays[1].Name+" mem_read32 8"]; n != 2*contexts*packets {
			t.Errorf("%s: %d accesses in the section, want %d", idiom, n, 2*contexts*packets)
		}
		if met := r.overlaps > 0; met != (idiom == program.None) {
			t.Errorf("%s: contexts met in the section %d times", idiom, r.overlaps)
		}
	}
}

// The stateless work is all done: the value that comes out is that of the same
// operations here.
func TestStatelessWork(t *testing.T) {
	needGCC(t)
	b := nfp(t)
	dir := t.TempDir()
	for kind, turn := range map[string]func(x, k uint32) uint32{
		program.ALU: func(x, k uint32) uint32 {
			x += 0x9e3779b9
			x ^= k
			x -= 0x7f4a7c15
			x &= 0xfffffff7
			return x | 0x100
		},
		program.Multiply: func(x, k uint32) uint32 { return x*(k|1) + 1 },
		program.Modulo:   func(x, k uint32) uint32 { return (x + 0x9e3779b9) % (k&0xffff + 65521) },
		program.Hash: func(x, k uint32) uint32 {
			h := k
			for j := range 16 {
				h += x >> (j % 4 * 8) & 0xff
				h += h << 10
				h ^= h >> 6
			}
			h += h << 3
			h ^= h >> 11
			return h + h<<15
		},
	} {
		n := 12.25
		im := generate(t, b, program.Program{Base: "forward", Stateless: program.Stateless{kind: n}})
		const packets = 100
		got := execute(t, dir, im, 1, packets, 1, 1, "")
		if kind == program.ALU {
			n /= ALULoop
		}
		var x uint32
		for i := range packets {
			for k := uint32(carried(n, i+1) - carried(n, i)); k > 0; k-- {
				x = turn(x, k)
			}
		}
		if got.value != x {
			t.Errorf("%s: value %#x, want %#x", kind, got.value, x)
		}
	}
}

// Programs of one shape share an image where the numbers are in the table; each
// other difference is another image.
func TestImages(t *testing.T) {
	b := nfp(t)
	a := program.Access{Memory: "emem", Op: program.Read, Mode: program.Bulk, Bytes: 64, PerPacket: 10}
	id := func(base string, change func(*program.Access)) string {
		x := a
		change(&x)
		return generate(t, b, program.Program{Base: base, Accesses: []program.Access{x}}).ID()
	}
	same := func(*program.Access) {}
	more := func(x *program.Access) { x.PerPacket = 3.5 }
	narrow := func(x *program.Access) { x.Span = 8 }
	if first := id("profiling", same); first != id("profiling", more) || first != id("profiling", narrow) {
		t.Error("accesses and spans are numbers of a table, but make other images")
	}
	for name, change := range map[string]func(*program.Access){
		"bytes": func(x *program.Access) { x.Bytes = 32 }, "op": func(x *program.Access) { x.Op = program.Write },
		"memory": func(x *program.Access) { x.Memory = "imem" }, "mode": func(x *program.Access) { x.Mode = program.Atomic },
		"stride": func(x *program.Access) { x.Stride = 256 }, "no power of two": func(x *program.Access) { x.Span = 1000 },
	} {
		if id("profiling", same) == id("profiling", change) {
			t.Errorf("another %s and the same image", name)
		}
	}
	if id("forward", same) != id("forward", more) || id("forward", same) == id("profiling", same) {
		t.Error("an element an access is another program than one a packet, but not another number of them")
	}
	// more numbers than words: constants
	many := func(n float64) *Image {
		p := program.Program{Base: "forward"}
		for range tableWords/2 + 1 {
			p.Accesses = append(p.Accesses, program.Access{Memory: "imem", Op: program.Read, Mode: program.Bulk, Bytes: 4, PerPacket: n})
		}
		return generate(t, b, p)
	}
	if x := many(1); x.Table || x.ID() == many(2).ID() || x.ID() != many(1).ID() {
		t.Error("constants differ and the image does not, or there is a table")
	}
	bare := generate(t, b, program.Program{Base: "forward"})
	if bare.Plugin() || bytes.Contains(bare.Files[0].Text, []byte("prof()")) {
		t.Error("bare forwarding calls a plugin")
	}
}

// The description of a firmware and the words of its table are the program
// again.
func TestFill(t *testing.T) {
	b := nfp(t)
	rapid.Check(t, func(t *rapid.T) {
		p := program.Program{
			Base:      rapid.SampledFrom([]string{"forward", "profiling"}).Draw(t, "base"),
			Stateless: program.Stateless{program.ALU: rapid.Float64Range(0, 800).Draw(t, "alu")},
			Accesses:  slices.Repeat([]program.Access{drawAccess(t, "access")}, rapid.SampledFrom([]int{1, 8}).Draw(t, "accesses")),
			Locks: []program.Lock{{Name: "l", Elements: 7, Hash: true,
				Section: []program.Access{drawAccess(t, "section")}}},
		}
		p = b.Resolve(p)
		im, err := Generate(b, p)
		if err != nil {
			t.Fatalf("%v", err)
		}
		var words []uint32
		for _, p := range im.Params {
			words = append(words, p.Value)
		}
		got, err := im.Spec().Fill(words)
		if err != nil {
			t.Fatalf("%v", err)
		}
		near := func(what string, got, want float64) {
			if math.Abs(got-want) > 1e-8 {
				t.Fatalf("%s: %v, want %v", what, got, want)
			}
		}
		near("alu", got.Stateless[program.ALU], p.Stateless[program.ALU])
		same := func(got, want program.Access) {
			near("accesses", got.PerPacket, want.PerPacket)
			if got.PerPacket = want.PerPacket; got != want {
				t.Fatalf("%+v, want %+v", got, want)
			}
		}
		same(got.Accesses[0], p.Accesses[0])
		same(got.Locks[0].Section[0], p.Locks[0].Section[0])
		if got.Base != p.Base || got.Locks[0].Elements != 7 || !got.Locks[0].Hash {
			t.Fatalf("%+v, want %+v", got, p)
		}
	})
	if _, err := (Spec{Table: []Word{{"accesses[3].span", Mask}}}).Fill([]uint32{1}); fault.KindOf(err) != fault.Input {
		t.Errorf("a word of no access: %v", err)
	}
}

func TestRefused(t *testing.T) {
	b := nfp(t)
	of := func(a program.Access) program.Program {
		return program.Program{Base: "forward", Accesses: []program.Access{a}}
	}
	for name, c := range map[string]struct {
		p    program.Program
		want string
	}{
		"xdp":    {program.Program{Base: "xdp"}, "another firmware"},
		"cycles": {program.Program{Base: "1200"}, "no firmware"},
		"zipf":   {of(program.Access{Memory: "emem", Op: "read", Mode: "bulk", Bytes: 4, PerPacket: 1, Popularity: "zipf", Alpha: 1}), "accesses[0]"},
		"pcie":   {of(program.Access{Memory: "pcie", Op: "read", Mode: "bulk", Bytes: 4, PerPacket: 1}), "DMA"},
		"cls":    {of(program.Access{Memory: "cls", Op: "read", Mode: "atomic", Bytes: 4, PerPacket: 1}), "bulk ones"},
		"flows":  {program.Program{Base: "forward", Flows: &traffic.Flows{Count: 1 << 30}}, "flows"},
		"second lock": {program.Program{Base: "forward", Flows: &traffic.Flows{Count: 8},
			Locks: []program.Lock{{Name: "a", Elements: 3}, {Name: "b", Elements: 3}}}, "locks[1].elements"},
	} {
		_, err := Generate(b, b.Resolve(c.p))
		if fault.KindOf(err) != fault.Input || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s: %v, want an input fault about %q", name, err, c.want)
		}
	}
}
