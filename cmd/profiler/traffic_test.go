package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nicprof/traffic"
)

// A capture that ends in the middle of a packet is used up to there, and
// measure and predict say so.
func TestCutCaptureWarns(t *testing.T) {
	var b bytes.Buffer
	w := traffic.NewCaptureWriter(&b)
	f := traffic.Flow{Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"), Proto: 17, SrcPort: 1, DstPort: 2}
	for i := range int64(3) {
		w.Write(1e18+i*1000, f.AppendHeaders(nil, 128), 128)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "cut.pcap")
	if err := os.WriteFile(path, b.Bytes()[:b.Len()-10], 0o666); err != nil {
		t.Fatal(err)
	}
	args := []string{"--base", "forward", "--traffic", path, "--json"}
	for _, verb := range [][]string{{"measure", "--board", "nfp"}, {"predict", "--model", "../../results/nfp"}} {
		var out, errs bytes.Buffer
		if code := execute(context.Background(), append(verb, args...), &out, &errs, os.Getenv); code != 0 {
			t.Fatalf("%v: exit %d: %s", verb, code, errs.String())
		}
		var got struct{ Warnings []string }
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Warnings) == 0 || !strings.Contains(got.Warnings[0], "cut.pcap: the file ends in the middle of packet 3") {
			t.Errorf("%v: warnings %q", verb, got.Warnings)
		}
	}
}
