// Package plan puts the planner's problem together from what a user has: a P4
// program (its state blocks and flow groups), traffic (volumes of the groups),
// the fitted model of a NIC, and what operations cost the host.
package plan

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"nicprof/cora/costs"
	"nicprof/cora/frontend"
	"nicprof/cora/partition"
	"nicprof/internal/fault"
	"nicprof/internal/near"
	"nicprof/model"
	"nicprof/p4/ir"
	"nicprof/traffic"
)

// Options of Build. Zero values leave the choice to the model, the traffic and
// the program.
type Options struct {
	TargetMpps      float64          // rate to sustain; 0: the traffic's
	TableEntries    int64            // of the NIC, all tables together; 0: no limit
	EntriesPerGroup map[string]int64 // entries that a flow takes of a table, by its name; 1 where it is not named
	MemoryBytes     map[string]int64 // of the NIC for state, by memory; where not named the model's
	PCIeGbps        float64          // each way; 0: no limit
	Rule            string           // of the model; "": its own
	Seed            uint64           // of synthetic traffic
}

// Input is what a plan is made from.
type Input struct {
	Front   *frontend.Result
	Traffic string           // path of a traffic file
	Given   *traffic.Traffic // instead of the file, which it names
	Model   *model.Model
	Costs   *costs.Costs
	Options Options
}

// Built is a problem and how it came about.
type Built struct {
	Problem *partition.Problem
	Mix     *frontend.Mix
	Volumes *traffic.Volumes
	Blocks  []Block // as Problem.Blocks
	Mpps    float64 // that the traffic offers
	Bytes   float64 // mean frame
	Notes   []string
}

// Block says how a state block became one of the problem.
type Block struct {
	*frontend.Block
	Key   int    // index into Volumes.Keys of its flow groups, -1: it is whole
	Whole string // why it is not split, "" when it is
	Lock  []float64
}

// Label gives the values of a flow group of a block.
func (b *Built) Label(block, group int) []string {
	if k := b.Blocks[block].Key; k >= 0 {
		return b.Volumes.Keys[k].Label(group)
	}
	return nil
}

type builder struct {
	Input
	fields *fieldMap
	keys   []traffic.Key
	keyOf  []int    // by block: the key of its flow groups or of what hashes them, -1
	ways   *ways    // of counted traffic
	pathOf []int    // by way: its path of the mix, -1 where no packet takes it
	kind   []int32  // by class of counted traffic: into ways.kinds
	whole  []string // by block: why it is not split, "" when it is
	out    *Built
}

// Build reads the traffic and puts the problem together. Errors are the user's.
func Build(in Input) (*Built, error) {
	b := &builder{Input: in, fields: mapFields(in.Front.Program), out: &Built{}}
	if in.Model.BoardClass != "nfp" {
		return nil, fault.Inputf("model of board %s (class %s): plans are for models of class nfp, whose memories hold a program's state", in.Model.Board, in.Model.BoardClass)
	}
	if len(in.Front.Blocks) == 0 {
		return nil, fault.Inputf("%s has no state block; nothing has to be placed", in.Front.Program.Name)
	}
	if err := b.checkNames(); err != nil {
		return nil, err
	}
	b.findKeys()
	if err := b.read(); err != nil {
		return nil, err
	}
	if err := b.problem(); err != nil {
		return nil, err
	}
	for _, w := range in.Front.Warnings {
		b.note("%s: %s", w.Pos, w.Msg)
	}
	return b.out, nil
}

func (b *builder) note(format string, a ...any) {
	if s := fmt.Sprintf(format, a...); !slices.Contains(b.out.Notes, s) {
		b.out.Notes = append(b.out.Notes, s)
	}
}

// checkNames refuses options about tables and memories that are not there.
func (b *builder) checkNames() error {
	var tables, memories []string
	for _, o := range b.Front.Program.Objects {
		if o.Kind == ir.Table {
			tables = append(tables, b.Front.Name(o))
		}
	}
	for _, m := range b.Model.Memories {
		memories = append(memories, m.Name)
	}
	for _, x := range []struct {
		what  string
		names []string
		given []string
	}{
		{"table", tables, slices.Sorted(maps.Keys(b.Options.EntriesPerGroup))},
		{"memory", memories, slices.Sorted(maps.Keys(b.Options.MemoryBytes))},
	} {
		for _, name := range x.given {
			if slices.Contains(x.names, name) {
				continue
			}
			hint := "there are " + strings.Join(x.names, ", ")
			if meant := near.Of(name, x.names); len(meant) > 0 {
				hint = "did you mean " + strings.Join(meant, " or ") + "?"
			}
			return fault.Inputf("no %s %q; %s", x.what, name, hint)
		}
	}
	return nil
}

// findKeys lists the keys under which traffic is counted: the flow groups of
// blocks, and of blocks with a random mapping what is hashed, which tells how
// much one element gets.
func (b *builder) findKeys() {
	index := map[string]int{}
	for _, block := range b.Front.Blocks {
		b.keyOf = append(b.keyOf, -1)
		if len(block.Groups) != 1 {
			continue
		}
		k, missing := b.fields.key(block.Groups[0])
		if len(missing) > 0 {
			b.note("block %s: traffic does not tell %s, which is left out of its flow groups", block.Name, strings.Join(missing, ", "))
		}
		if len(k) == 0 {
			continue
		}
		i, ok := index[same(k)]
		if !ok {
			i = len(b.keys)
			index[same(k)] = i
			b.keys = append(b.keys, k)
		}
		b.keyOf[block.Index] = i
	}
}

// wholes finds the blocks that are not split, and why. Blocks of one @atomic
// region are split together, if they have the same flow groups, or not at all.
func (b *builder) wholes() {
	for i, block := range b.Front.Blocks {
		var key *traffic.Groups
		if k := b.keyOf[i]; k >= 0 {
			key = b.out.Volumes.Keys[k]
		}
		why := block.Why
		switch {
		case key == nil && why == "":
			why = "traffic does not tell its flow groups apart"
		case why == "" && !block.Groups[0].Exact && !holdsTable(block) && block.Elements < int64(key.N()):
			why = fmt.Sprintf("its %d elements are shared by %d flow groups, and traffic does not tell by which", block.Elements, key.N())
		}
		for _, o := range block.Objects { // an entry's counter goes where the entry goes
			if o.Direct != nil && why == "" {
				why = b.Front.Block(o.Direct).Why
			}
		}
		b.whole = append(b.whole, why)
	}
	for _, set := range b.together() {
		var names []string
		for _, i := range set {
			names = append(names, b.Front.Blocks[i].Name)
		}
		split := !slices.ContainsFunc(set, func(i int) bool { return b.whole[i] != "" || b.keyOf[i] != b.keyOf[set[0]] })
		for _, i := range set {
			if b.whole[i] == "" && !split {
				b.whole[i] = "an @atomic region changes " + strings.Join(names, " and ") + " together, and their flow groups are not the same"
			}
		}
		b.out.Problem.Together = append(b.out.Problem.Together, set)
		b.note("blocks %s are placed together: an @atomic region changes them", strings.Join(names, " and "))
	}
}

// together lists the sets of blocks that @atomic regions change together.
func (b *builder) together() [][]int {
	var sets [][]int
	for _, objects := range b.Front.Together {
		var set []int
		for _, o := range objects {
			if block := b.Front.Block(o); block != nil {
				set = append(set, block.Index)
			}
		}
		for i := 0; i < len(sets); i++ { // regions with a block in common are one
			if slices.ContainsFunc(sets[i], func(k int) bool { return slices.Contains(set, k) }) {
				set = append(set, sets[i]...)
				sets = slices.Delete(sets, i, i+1)
				i--
			}
		}
		sets = append(sets, set)
	}
	for i := range sets {
		slices.Sort(sets[i])
		sets[i] = slices.Compact(sets[i])
	}
	return slices.DeleteFunc(sets, func(s []int) bool { return len(s) < 2 })
}

// problem fills in blocks, memories and the predictor.
func (b *builder) problem() error {
	out, mix := b.out, b.out.Mix
	p := &partition.Problem{
		TableEntries: b.Options.TableEntries, PCIeGbps: b.Options.PCIeGbps, TargetMpps: b.Options.TargetMpps,
	}
	out.Problem = p
	b.wholes()
	n := &nic{
		m: b.Model, mix: mix, lockMem: b.Model.Queueing.LockMemory,
		traffic: traffic.Traffic{PacketBytes: int(math.Round(out.Bytes))}, options: model.Options{Rule: b.Options.Rule, Brief: true},
	}
	for _, m := range b.Model.Memories {
		bytes := m.Bytes
		if own, ok := b.Options.MemoryBytes[m.Name]; ok {
			bytes = own
		}
		p.Memories = append(p.Memories, partition.Memory{Name: m.Name, Bytes: bytes})
		n.memories = append(n.memories, m.Name)
	}
	if n.lockMem == "" {
		n.lockMem = n.memories[0]
	}
	p.Predictor = n
	var err error
	if p.HostPacketNS, err = b.Costs.Packet(); err != nil {
		return err
	}
	for i, block := range b.Front.Blocks {
		pb, own, err := b.block(n, i, block)
		if err != nil {
			return err
		}
		p.Blocks = append(p.Blocks, pb)
		out.Blocks = append(out.Blocks, own)
	}
	if unknown := slices.Sorted(maps.Keys(b.Costs.Blocks)); len(unknown) > 0 {
		if err := b.checkCosts(unknown); err != nil {
			return err
		}
	}
	return b.classes()
}

// block turns a state block into the problem's.
func (b *builder) block(n *nic, i int, block *frontend.Block) (partition.Block, Block, error) {
	v := &b.out.Mix.Blocks[i]
	own := Block{Block: block, Key: b.keyOf[i], Whole: b.whole[i]}
	groups := 1
	var key *traffic.Groups
	if own.Key >= 0 {
		key = b.out.Volumes.Keys[own.Key]
	}
	if own.Whole != "" {
		own.Key = -1
	} else {
		groups = key.N()
	}
	pb := partition.Block{
		Name: block.Name, Instructions: float64(len(block.Instructions)), Groups: groups, Partitionable: own.Whole == "",
		Elements: block.Elements, EntryBytes: block.ElementBytes, MaxEntries: block.Elements, HostOnly: block.HostOnly,
	}
	if block.Bytes > 0 && block.Elements > 0 {
		pb.EntryBytes = (block.Bytes + block.Elements - 1) / block.Elements
	}
	var objects []string
	for _, o := range block.Objects {
		name := b.Front.Name(o)
		objects = append(objects, name)
		if o.Kind == ir.Table {
			pb.Table = true
			pb.EntriesPerGroup = b.Options.EntriesPerGroup[name]
		}
	}
	var touched int64
	if key != nil {
		touched = int64(key.N())
	}
	ns, err := b.Costs.Block(block.Name, objects, hostOps(v, touched))
	if err != nil {
		return pb, own, err
	}
	pb.HostNS = ns
	if v.Lock == nil || v.Share == 0 || block.HostOnly != "" {
		return pb, own, nil
	}
	share := b.largest(v, own, key)
	for m := range n.memories {
		lock, err := n.lockMpps(i, m)
		if err != nil {
			return pb, own, err
		}
		own.Lock = append(own.Lock, lock)
		pb.MaxGroupMpps = append(pb.MaxGroupMpps, lock/share)
	}
	return pb, own, nil
}

// holdsTable says whether entries of a block carry their keys: then no two flow
// groups share one.
func holdsTable(block *frontend.Block) bool {
	return slices.ContainsFunc(block.Objects, func(o *ir.Object) bool { return o.Kind == ir.Table })
}

// largest is the share that the busiest lock has of the busiest group. A group of
// a block that is split is one element. Of a whole block with an array of locks,
// elements get even parts, and none less than the largest flow.
func (b *builder) largest(v *frontend.Visit, own Block, key *traffic.Groups) float64 {
	if own.Whole == "" || v.Lock.Elements <= 1 {
		return 1
	}
	share := 1 / float64(v.Lock.Elements)
	if key != nil && key.N() > 0 {
		total := 0.0
		for _, packets := range key.Packets {
			total += packets
		}
		share = max(share, slices.Max(key.Packets)/total)
		b.note("block %s: its %d locks are assumed to share the packets evenly, but for the largest flow", own.Name, v.Lock.Elements)
	}
	return share
}

// checkCosts refuses times for blocks that the program does not have.
func (b *builder) checkCosts(given []string) error {
	var names []string
	for _, block := range b.Front.Blocks {
		names = append(names, block.Name)
		for _, o := range block.Objects {
			names = append(names, b.Front.Name(o))
		}
	}
	for _, name := range given {
		if !slices.Contains(names, name) {
			return fault.Inputf("host costs: %s has no block or object %q; there are %s", b.Front.Program.Name, name, strings.Join(names, ", "))
		}
	}
	return nil
}
