// Package prelude holds the declarations of the architectures that nicprof
// knows, for programs whose #include finds no other: the core library,
// v1model, PSA, PNA, TNA and the eBPF models. They are nicprof's own, written
// from the public specifications; they declare what a program may name, not
// what it does.
package prelude

import (
	"embed"
	"path"
	"strings"
)

//go:embed *.p4
var files embed.FS

// aliases are other names under which the same declarations are included.
var aliases = map[string]string{
	"bmv2/psa.p4":    "psa.p4",
	"dpdk/psa.p4":    "psa.p4",
	"bmv2/pna.p4":    "pna.p4",
	"dpdk/pna.p4":    "pna.p4",
	"tc/pna.p4":      "pna.p4",
	"tofino.p4":      "tna.p4",
	"tofino1arch.p4": "tna.p4",
	"tofino2arch.p4": "tna.p4",
	"t2na.p4":        "tna.p4",
	"tofino2.p4":     "tna.p4",
}

// archs name the architecture of each file that is one.
var archs = map[string]string{
	"v1model.p4":    "v1model",
	"psa.p4":        "psa",
	"pna.p4":        "pna",
	"tna.p4":        "tna",
	"ebpf_model.p4": "ebpf",
	"ubpf_model.p4": "ubpf",
	"xdp_model.p4":  "xdp",
}

// File gives the declarations that #include <name> asks for.
func File(name string) (text []byte, ok bool) {
	name = path.Clean(name)
	if other, ok := aliases[name]; ok {
		name = other
	}
	text, err := files.ReadFile(name)
	return text, err == nil
}

// Arch gives the architecture that a file of declarations describes, whoever
// wrote them, going by its name alone: "v1model" for .../v1model.p4. It is
// "core" for the core library and "" for any other file. A built-in file may
// stand in angle brackets.
func Arch(name string) string {
	base := path.Base(strings.Trim(name, "<>"))
	if base == "core.p4" {
		return "core"
	}
	if other, ok := aliases[base]; ok {
		base = other
	}
	return archs[base]
}
