// Package firmware writes the sources of the firmware that runs a program on a
// Netronome NFP: a P4 program that forwards packets, and the Micro-C plugin
// that it calls once a packet for the program's stateless work, accesses and
// locks. What each intrinsic takes (largest command, types) is flowenv's, the
// library of the vendor's SDK; docs/real-boards.md lists what was never run on
// a card.
package firmware

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"strings"
	"text/template"

	"nicprof/board"
	"nicprof/internal/fault"
	"nicprof/program"
)

// Names of the files of an image.
const (
	PluginFile = "plugin.c"
	P4File     = "main.p4"
	ImageFile  = "image.json"
)

// File is one source file.
type File struct {
	Name string
	Text []byte
}

// Array is an exported array of the plugin.
type Array struct {
	Name   string `json:"name"`
	Memory string `json:"memory"`
	Bytes  int64  `json:"bytes"`
}

// Words is the array's length in 32-bit words.
func (a Array) Words() int64 { return (a.Bytes + 3) / 4 }

// Param is a number of the program: a constant of the plugin, or a word of its
// table.
type Param struct {
	Name  string // of the C macro
	Word  Word
	Value uint32
}

// Word says which number of a program a word is: Path as in a program file,
// such as accesses[0].span, and which Part of it.
type Word struct {
	Path string `json:"path"`
	Part string `json:"part"`
}

func (w Word) String() string { return w.Path + ", " + w.Part }

// Parts of a number. A count of operations a packet is a whole and a fraction;
// arithmetic operations are counted in turns of the plugin's loop.
const (
	Whole    = "whole"
	Fraction = "fraction of 2^32"
	Elements = "elements"
	Mask     = "elements less 1"
)

// Table is the exported symbol that holds the parameters of an image that has
// a table, as nfp-rtsym lists it: Micro-C symbols get an underscore.
const Table = "_prof_table"

// ReadyWord is the word of the table that is set to 1 after the others. Until
// then packets are forwarded and nothing else: one that strays in must not have
// its context keep a table of zeros.
const ReadyWord = tableWords - 1

// Image is the sources of one firmware. Images of equal ID are the same
// firmware: those of programs that differ only in Params.
type Image struct {
	Base   string  // base program of the board
	Files  []File  // PluginFile (unless the program is bare), P4File, ImageFile
	Params []Param // numbers of the program
	Table  bool    // Params are written to Table after loading
	Arrays []Array
	spec   Spec
}

// Spec is what ImageFile says of an image: the program, without its numbers
// where those are in the table, and how they get there.
type Spec struct {
	Board   string          `json:"board"`
	Table   []Word          `json:"table,omitempty"` // what each word is
	Program program.Program `json:"program"`
	Arrays  []Array         `json:"arrays,omitempty"`
}

// Spec returns what ImageFile holds.
func (im *Image) Spec() Spec { return im.spec }

// Plugin tells whether the image has a plugin.
func (im *Image) Plugin() bool { return im.Files[0].Name == PluginFile }

// ID identifies the sources.
func (im *Image) ID() string {
	h := sha256.New()
	for _, f := range im.Files {
		fmt.Fprintf(h, "%s %d\n%s", f.Name, len(f.Text), f.Text)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

const (
	// tableWords of local memory a context, of 128 that it has with 8 contexts.
	tableWords = 16
	// minArray is the array that programs share, where it fits: the default
	// span of 8192 elements at the published stride of 128 B.
	minArray = 1 << 20
	// flowBits are those of the IPv4 source address that hold the flow, and of
	// the destination that hold the element of the first lock.
	flowBits = 24
)

// MaxFlow is the number of flows, and of elements of the first lock, that an
// IPv4 address of the traffic carries.
const MaxFlow = 1 << flowBits

//go:embed plugin.c.tmpl main.p4.tmpl
var templates embed.FS

var parsed = template.Must(template.ParseFS(templates, "*.tmpl"))

// Generate writes the firmware of a program that board.Check has passed and
// board.Resolve has filled in. Its numbers (accesses a packet, spans, counts)
// are words of a table, so that one image serves all programs of a shape: a
// build takes the SDK minutes, a table milliseconds, and a sweep changes little
// but numbers. Reading them costs the packet some instructions of local memory
// and no command. A program of more numbers than the table has words gets them
// as constants. What a card cannot run is an input fault.
func Generate(b *board.Board, p program.Program) (*Image, error) {
	base, err := b.Base(p.Base)
	if err != nil {
		return nil, err
	}
	switch p.Base {
	case "forward", "profiling", "netmon":
	case "xdp":
		return nil, fault.Inputf("base xdp is another firmware (eBPF offload), which this driver does not build: use forward or profiling")
	default:
		return nil, fault.Inputf("base %s has no firmware: a card runs forward, profiling or netmon", p.Base)
	}
	g := &generator{board: b, once: base.Index == "packet", table: true}
	if err := g.generate(p); err != nil {
		return nil, err
	}
	if len(g.data.Params) > ReadyWord {
		g = &generator{board: b, once: g.once}
		if err := g.generate(p); err != nil {
			return nil, err
		}
	}
	return g.image(p)
}

// plugin is the data of plugin.c.tmpl.
type plugin struct {
	What                  string
	Table                 bool
	Params                []Param
	Arrays                []Array
	Carries               int
	Random, Flow          bool
	ReadWords, WriteWords int
	Stateless             []stateless
	Uses                  map[string]bool // kinds of stateless operations
	Accesses              []access
	Locks                 []lock
}

// TableWords is the table's length.
func (plugin) TableWords() int { return tableWords }

// ReadyWord is that of the table.
func (plugin) ReadyWord() int { return ReadyWord }

// OutWords numbers the words of the write transfer registers.
func (d plugin) OutWords() []int {
	words := make([]int, d.WriteWords)
	for i := range words {
		words[i] = i
	}
	return words
}

type stateless struct{ Text, Kind, Count string }

type access struct {
	Text, Count, Offset string
	Once                bool
	Commands            []string
	Indent              string // of a section's, within its lock
}

type lock struct {
	Text, Idiom, Array, Element string
	WordStride                  int
	Sleep                       int
	Section                     []access
}

type generator struct {
	board *board.Board
	once  bool // one element a packet and access line
	table bool
	data  plugin
}

func (g *generator) generate(p program.Program) error {
	d := &g.data
	d.Table = g.table
	d.Uses = map[string]bool{}
	if p.Flows != nil && p.Flows.Count > MaxFlow {
		return fault.Inputf("%d flows; the traffic's addresses tell %d apart", p.Flows.Count, MaxFlow)
	}
	for _, kind := range program.Kinds {
		if n := p.Stateless[kind]; n > 0 {
			g.stateless(kind, n)
		}
	}
	var lines []program.Access
	lines = append(lines, p.Accesses...)
	for _, l := range p.Locks {
		lines = append(lines, l.Section...)
	}
	floor := g.floor(lines)
	for i, a := range p.Accesses {
		line, err := g.access(fmt.Sprintf("accesses[%d]", i), a, floor)
		if err != nil {
			return err
		}
		d.Accesses = append(d.Accesses, line)
	}
	for i, l := range p.Locks {
		if err := g.lock(i, l, floor); err != nil {
			return err
		}
	}
	d.Table = g.table && len(d.Params) > 0
	d.What = "Program on base " + p.Base + "."
	return nil
}

// floor returns, by memory, the least bytes of an array of an image with a
// table: small spans then need no image of their own. Where arrays of that size
// would crowd the memory they have the program's.
func (g *generator) floor(lines []program.Access) map[string]int64 {
	floor := map[string]int64{}
	if !g.table {
		return floor
	}
	n := map[string]int64{}
	for _, a := range lines {
		n[a.Memory]++
	}
	for name, lines := range n {
		if m := g.board.Memory(name); lines*minArray <= m.Bytes/2 {
			floor[name] = minArray
		}
	}
	return floor
}

// param adds a number and returns the C expression of it.
func (g *generator) param(name, path, part string, value uint32) string {
	g.data.Params = append(g.data.Params, Param{Name: name, Word: Word{path, part}, Value: value})
	return name
}

// count adds a number that may be fractional and returns the C expression of
// this packet's share of it.
func (g *generator) count(name, path string, n float64) string {
	whole, fraction := Split(n)
	e := g.param(name+"_N", path, Whole, whole)
	if !g.table && fraction == 0 {
		return e
	}
	i := g.data.Carries
	g.data.Carries++
	return fmt.Sprintf("%s + prof_more(%d, %s)", e, i, g.param(name+"_F", path, Fraction, fraction))
}

// Split divides a number of operations a packet into the whole ones and the
// fraction of 2^32 that a carry accumulates.
func Split(n float64) (whole, fraction uint32) {
	floor := math.Floor(n)
	f := math.Round((n - floor) * (1 << 32))
	if f >= 1<<32 {
		return uint32(floor) + 1, 0
	}
	return uint32(floor), uint32(f)
}

// ALULoop is the number of arithmetic operations in one turn of the plugin's
// loop of them, as in the published microbenchmark's.
const ALULoop = 5

func (g *generator) stateless(kind string, n float64) {
	path := "stateless." + kind
	text := path
	if kind == program.ALU {
		n /= ALULoop
		text += ", a turn is 5 operations"
	}
	g.data.Uses[kind] = true
	g.data.Stateless = append(g.data.Stateless, stateless{
		Text: text, Kind: kind, Count: g.count(strings.ToUpper(kind), path, n),
	})
}

// access lays out one access line.
func (g *generator) access(path string, a program.Access, floor map[string]int64) (access, error) {
	if a.Popularity == "zipf" {
		return access{}, fault.Inputf("%s: a card draws its elements uniformly; Zipf elements would need a table in the memory that is measured", path)
	}
	bytes := (a.Span-1)*a.Stride + int64(a.Bytes)
	if bytes > math.MaxUint32/2+1 {
		return access{}, fault.Inputf("%s: elements over %d bytes; a plugin addresses 2^31", path, bytes)
	}
	size := bytes
	if g.table {
		size = max(1<<bits.Len64(uint64(bytes-1)), floor[a.Memory])
	}
	array := g.array(a.Memory, size)
	commands, err := g.commands(a, array)
	if err != nil {
		return access{}, fault.Inputf("%s: %w", path, err)
	}
	macro := strings.ToUpper(strings.NewReplacer("[", "", "]", "", ".", "_").Replace(path))
	line := access{
		Text: fmt.Sprintf("%s: %s %s %s, %d B, elements %d B apart", path, a.Memory, a.Op, a.Mode, a.Bytes, a.Stride),
		Once: g.once, Commands: commands,
		Count:  g.count(macro, path+".per_packet", a.PerPacket),
		Offset: times(g.element(macro, path+".span", a.Span), a.Stride),
	}
	return line, nil
}

// element returns the C expression of a random index below span.
func (g *generator) element(macro, path string, span int64) string {
	if span == 1 && !g.table {
		return "0"
	}
	g.data.Random = true
	if span&(span-1) == 0 {
		return "(prof_random() & " + g.param(macro+"_MASK", path, Mask, uint32(span-1)) + ")"
	}
	return "(uint32_t)(((uint64_t)prof_random() * " + g.param(macro+"_SPAN", path, Elements, uint32(span)) + ") >> 32)"
}

func times(index string, stride int64) string {
	switch {
	case index == "0":
		return "0"
	case stride&(stride-1) == 0:
		return fmt.Sprintf("%s << %d", index, bits.TrailingZeros64(uint64(stride)))
	}
	return fmt.Sprintf("%s * %d", index, stride)
}

func (g *generator) array(memory string, bytes int64) string {
	name := fmt.Sprintf("prof_%s%d", memory, len(g.data.Arrays))
	g.data.Arrays = append(g.data.Arrays, Array{Name: name, Memory: memory, Bytes: bytes})
	return name
}

// Largest commands, bytes (flowenv).
const (
	maxAtomic = 32  // mem_read_atomic, mem_write_atomic, mem_add64
	maxAdd32  = 16  // mem_add32
	maxBulk   = 128 // mem_read32, mem_write32
	maxCLS    = 64  // cls_read, cls_write
)

// commands returns the intrinsics of one access to an array at "off".
func (g *generator) commands(a program.Access, array string) ([]string, error) {
	var call string
	most := maxAtomic
	cls := false
	switch a.Memory {
	case "emem", "imem", "ctm":
	case "cls":
		cls = true
	default:
		return nil, fmt.Errorf("memory %s is reached by DMA, not by a plugin's commands: a card measures emem, imem, ctm and cls", a.Memory)
	}
	switch {
	case cls && a.Mode == program.Atomic && a.Op != program.Add:
		return nil, fmt.Errorf("cls has no atomic %s of its own on a card: its reads and writes are the bulk ones", a.Op)
	case cls && a.Op == program.Add:
		call, most = "cls_add", maxAdd32
	case cls:
		call, most = "cls_"+string(a.Op), maxCLS
	case a.Op == program.Add && a.Bytes%8 == 0 && a.Stride%8 == 0:
		call = "mem_add64"
	case a.Op == program.Add:
		call, most = "mem_add32", maxAdd32
	case a.Mode == program.Atomic:
		call = "mem_" + string(a.Op) + "_atomic"
	default:
		call, most = "mem_"+string(a.Op)+"32", maxBulk
	}
	pointer := fmt.Sprintf("(__mem40 void *)((__mem40 uint8_t *)%s + off", array)
	if cls {
		pointer = fmt.Sprintf("(__cls void *)((__cls uint8_t *)%s + off", array)
	}
	var commands []string
	for at := 0; at < a.Bytes; at += most {
		n := min(most, a.Bytes-at)
		address := pointer + ")"
		if at > 0 {
			address = fmt.Sprintf("%s + %d)", pointer, at)
		}
		if n == 4 && a.Op == program.Add && !cls {
			commands = append(commands, fmt.Sprintf("mem_incr32(%s)", address))
			continue
		}
		registers := "in"
		if a.Op != program.Read {
			registers = "out"
			g.data.WriteWords = max(g.data.WriteWords, n/4)
		} else {
			g.data.ReadWords = max(g.data.ReadWords, n/4)
		}
		commands = append(commands, fmt.Sprintf("%s(%s, %s, %d)", call, registers, address, n))
	}
	return commands, nil
}

// lock lays out one lock array.
func (g *generator) lock(i int, l program.Lock, floor map[string]int64) error {
	path := fmt.Sprintf("locks[%d]", i)
	stride := int(g.board.Locks.WordStride.Value)
	if stride < 8 {
		return fault.Inputf("board %s: lock words %d B apart; a ticket lock needs 8", g.board.Name, stride)
	}
	out := lock{
		Text: path + " " + l.Name + ": " + string(l.Idiom), Idiom: string(l.Idiom), WordStride: stride, Sleep: l.Idiom.Sleep(),
		Array: g.array(g.board.Locks.Memory, int64(l.Elements)*int64(stride)),
	}
	if out.Sleep > 0 {
		out.Idiom = "sleep"
	}
	macro := fmt.Sprintf("LOCKS%d", i)
	switch {
	case l.Elements == 1:
		out.Element = "0"
	case l.Hash:
		out.Element = g.element(macro, path+".elements", int64(l.Elements))
	case i == 0: // the sender has taken flow mod elements
		g.data.Flow = true
		out.Element = fmt.Sprintf("PIF_HEADER_GET_ipv4___dstAddr(ip) & 0x%x", MaxFlow-1)
	case l.Elements&(l.Elements-1) == 0:
		g.data.Flow = true
		out.Element = fmt.Sprintf("PIF_HEADER_GET_ipv4___srcAddr(ip) & 0x%x", l.Elements-1)
	default:
		return fault.Inputf("%s.elements: %d; the packet carries the element of the first lock, that of further ones is a mask of the flow: use a power of two", path, l.Elements)
	}
	for j, a := range l.Section {
		line, err := g.access(fmt.Sprintf("%s.section[%d]", path, j), a, floor)
		if err != nil {
			return err
		}
		line.Indent = "    "
		out.Section = append(out.Section, line)
	}
	g.data.Locks = append(g.data.Locks, out)
	return nil
}

// NeedsN tells the template whether a section or access line counts.
func (d plugin) NeedsN() bool {
	for _, l := range d.Locks {
		if len(l.Section) > 0 {
			return true
		}
	}
	return len(d.Accesses) > 0
}

// bare tells whether the P4 program forwards and nothing else.
func bare(p program.Program) bool {
	for _, n := range p.Stateless {
		if n > 0 {
			return false
		}
	}
	return len(p.Accesses) == 0 && len(p.Locks) == 0
}

func (g *generator) image(p program.Program) (*Image, error) {
	im := &Image{Base: p.Base, Params: g.data.Params, Table: g.data.Table, Arrays: g.data.Arrays}
	im.spec = Spec{Board: g.board.Name, Program: firmwareOf(p, im.Table), Arrays: im.Arrays}
	if im.Table {
		for _, p := range im.Params {
			im.spec.Table = append(im.spec.Table, p.Word)
		}
	}
	add := func(name, tmpl string, data any) error {
		var buf bytes.Buffer
		if err := parsed.ExecuteTemplate(&buf, tmpl, data); err != nil {
			return fmt.Errorf("firmware: %w", err)
		}
		im.Files = append(im.Files, File{Name: name, Text: buf.Bytes()})
		return nil
	}
	if !bare(p) {
		if err := add(PluginFile, "plugin.c.tmpl", g.data); err != nil {
			return nil, err
		}
	}
	if err := add(P4File, "main.p4.tmpl", map[string]bool{"Plugin": !bare(p)}); err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(im.spec, "", "  ")
	if err != nil {
		return nil, fault.Inputf("program: %w", err)
	}
	im.Files = append(im.Files, File{Name: ImageFile, Text: append(text, '\n')})
	return im, nil
}

// Fill returns the program of a firmware whose table holds words. It undoes
// what Generate does with the numbers of a program, up to a fraction of 2^-32.
func (s Spec) Fill(words []uint32) (program.Program, error) {
	p := firmwareOf(s.Program, true)
	if len(s.Table) == 0 {
		p = s.Program
	}
	if len(words) < len(s.Table) {
		return p, fault.Inputf("%d words; the table has %d", len(words), len(s.Table))
	}
	for i, w := range s.Table {
		value := float64(words[i])
		switch w.Part {
		case Fraction:
			value /= 1 << 32
		case Mask:
			value++
		}
		if err := add(&p, w.Path, value); err != nil {
			return p, err
		}
	}
	return p, nil
}

// add adds to the number of a program at a path.
func add(p *program.Program, path string, value float64) error {
	if kind, ok := strings.CutPrefix(path, "stateless."); ok {
		if kind == program.ALU {
			value *= ALULoop
		}
		p.Stateless[kind] += value
		return nil
	}
	var list []program.Access
	var i, j int
	var field string
	switch {
	case scan(path, "accesses[%d].%s", &i, &field):
		list, j = p.Accesses, i
	case scan(path, "locks[%d].section[%d].%s", &i, &j, &field):
		if i < 0 || i >= len(p.Locks) {
			return fault.Inputf("%s: the firmware has %d locks", path, len(p.Locks))
		}
		list = p.Locks[i].Section
	case scan(path, "locks[%d].%s", &i, &field) && field == "elements":
		return nil // in the firmware already
	}
	if j < 0 || j >= len(list) {
		return fault.Inputf("%s: the firmware has no such access", path)
	}
	switch field {
	case "per_packet":
		list[j].PerPacket += value
	case "span":
		list[j].Span = int64(value)
	default:
		return fault.Inputf("%s: not a number of a program", path)
	}
	return nil
}

func scan(path, format string, into ...any) bool {
	n, err := fmt.Sscanf(path, format, into...)
	return err == nil && n == len(into)
}

// firmwareOf returns what of a program is in its firmware: not its traffic,
// its name, and the numbers that a table holds.
func firmwareOf(p program.Program, table bool) program.Program {
	p.Name, p.PacketBytes, p.Flows = "", 0, nil
	if !table {
		return p
	}
	blank := func(list []program.Access) []program.Access {
		out := append([]program.Access(nil), list...)
		for i := range out {
			out[i].PerPacket, out[i].Span = 0, 0
		}
		return out
	}
	kinds := program.Stateless{}
	for kind, n := range p.Stateless {
		if n > 0 {
			kinds[kind] = 0
		}
	}
	p.Stateless = kinds
	p.Accesses = blank(p.Accesses)
	locks := append([]program.Lock(nil), p.Locks...)
	for i := range locks {
		locks[i].Section = blank(locks[i].Section)
	}
	p.Locks = locks
	return p
}
