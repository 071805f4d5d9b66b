package frontend

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"nicprof/p4/ir"
)

// Dot writes the instruction graph for Graphviz: solid edges for data, dashed
// ones for control, bold ones from the writes of an object to its reads by a
// later packet; a box around each state block. Instructions that only join
// paths, and headers' extraction, are left out.
func (r *Result) Dot(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "digraph %s {\n\tnode [shape=box, fontname=\"monospace\", fontsize=10];\n", strconv.Quote(r.Program.Name))
	for _, block := range r.Blocks {
		style := "solid"
		if block.Cyclic {
			style = "bold"
		}
		fmt.Fprintf(b, "\tsubgraph cluster_%s {\n\t\tlabel=%s; style=%s;\n", block.Name, strconv.Quote(r.title(block)), style)
		for _, i := range block.Instructions {
			if r.home[i] == block {
				fmt.Fprintf(b, "\t\t%s\n", r.node(i))
			}
		}
		fmt.Fprintln(b, "\t}")
	}
	for _, in := range r.Program.Code {
		if drawn(in) && r.home[in.ID] == nil {
			fmt.Fprintf(b, "\t%s\n", r.node(in.ID))
		}
	}
	edges := func(list [][]int, style string) {
		for i, to := range list {
			for _, j := range to {
				if drawn(r.Program.Code[i]) && drawn(r.Program.Code[j]) {
					fmt.Fprintf(b, "\ti%d -> i%d%s;\n", i, j, style)
				}
			}
		}
	}
	edges(r.deps.data, "")
	edges(r.deps.control, " [style=dashed]")
	for _, write := range r.Program.Code {
		for _, read := range r.Program.Code {
			if writes(write) && reads(read) && write.Object == read.Object && r.blockOf[write.Object] != nil {
				fmt.Fprintf(b, "\ti%d -> i%d [style=bold, constraint=false];\n", write.ID, read.ID)
			}
		}
	}
	fmt.Fprintln(b, "}")
	return b.Flush()
}

// title names a block and its objects.
func (r *Result) title(b *Block) string {
	names := make([]string, len(b.Objects))
	for i, o := range b.Objects {
		names[i] = r.Name(o)
	}
	return b.Name + ": " + strings.Join(names, ", ")
}

func drawn(in *ir.Instr) bool {
	switch in.Op {
	case ir.Nop, ir.End, ir.Extract, ir.Emit:
		return false
	}
	return true
}

func (r *Result) node(i int) string {
	return fmt.Sprintf("i%d [label=%s];", i, strconv.Quote(r.instruction(r.Program.Code[i])))
}

// instruction writes an instruction in one line, for people.
func (r *Result) instruction(in *ir.Instr) string {
	args := make([]string, len(in.Args))
	for k, a := range in.Args {
		args[k] = Text(a)
	}
	list := strings.Join(args, ", ")
	to := ""
	if len(in.Defs) > 0 {
		to = in.Defs[0].Var.Name + " = "
	}
	element := ""
	if in.Object != nil {
		element = in.Object.Name
		if name := r.names[in.Object]; name != "" {
			element = name
		}
		if in.Index != nil {
			element += "[" + Text(in.Index) + "]"
		}
	}
	switch in.Op {
	case ir.Assign:
		return to + list
	case ir.RegRead:
		return to + element
	case ir.RegWrite:
		return element + " = " + list
	case ir.Count:
		return "count " + element
	case ir.MeterExec:
		return to + "meter " + element
	case ir.Branch:
		return "if (" + list + ")"
	case ir.Switch:
		return "switch (" + list + ")"
	case ir.Lookup:
		return element + ".apply(" + list + ")"
	case ir.HashOp:
		return to + in.Algorithm + "(" + list + ")"
	case ir.SetValid, ir.SetInvalid:
		return string(in.Op) + " " + in.Header
	case ir.Extern, ir.Drop:
		return to + strings.TrimPrefix(element+"."+in.Name, ".") + "(" + list + ")"
	}
	return to + string(in.Op) + "(" + list + ")"
}
