package frontend

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
)

func TestDot(t *testing.T) {
	var b strings.Builder
	if err := analyse(t, balancer().done(), "").Dot(&b); err != nil {
		t.Fatal(err)
	}
	dot := b.String()
	for _, want := range []string{
		`label="b0: MinDip, MinLoad"; style=bold`,
		`label="m = MinLoad[vip]"`,
		"i7 -> i8;",                                // m to its comparison
		"i8 -> i9 [style=dashed];",                 // the comparison to a write
		"i9 -> i7 [style=bold, constraint=false];", // the write to the next packet's read
	} {
		if !strings.Contains(dot, want) {
			t.Errorf("no %s in\n%s", want, dot)
		}
	}
	path, err := exec.LookPath("dot")
	if err != nil {
		t.Skip("dot (graphviz) is not installed")
	}
	c := exec.Command(path, "-Tcanon", "-o", "/dev/null")
	c.Stdin = strings.NewReader(dot)
	if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("dot: %v\n%s", err, out)
	}
}

// The names of the contract, and lists where there is nothing.
func TestDocument(t *testing.T) {
	m, err := analyse(t, balancer().done(), "").Mix(nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(m.Document())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`{"program":"x.p4","arch":"v1model",`,
		`{"name":"b0","objects":["MinDip","MinLoad"],"cyclic":true,"instructions":7,"flow_groups":[["hdr.ipv4.dstAddr"]],`,
		`{"name":"b2","objects":["connTbl"],"cyclic":false,"instructions":1,"flow_groups":[["hdr.ipv4.srcAddr"]],`,
		`"together":[],`,
		`{"name":"connTbl","full_name":"MyIngress.connTbl","block":"b2","keys":[{"field":"hdr.ipv4.srcAddr","match":"exact","bits":32}],"size":1024,"entry_bits":64,`,
		`{"name":"DipCntr","full_name":"MyIngress.DipCntr","block":"b1","elements":4096,"bits":32}`,
		`"counters":[],"meters":[],`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "null") {
		t.Errorf("null in\n%s", text)
	}
}
