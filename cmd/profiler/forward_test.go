package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"nicprof/microbench"
)

// measure on a packet path says what became of every packet.
func TestMeasurePacketPath(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	args := []string{"measure", "--board", "veth", "--base", "af_packet", "--trial-seconds", "0.05", "--allow-noise"}
	code, stdout, stderr := command(t, args...)
	if code == 3 {
		t.Skip(stderr)
	}
	if code != 0 || !strings.Contains(stdout, " received") || !strings.Contains(stdout, "0 unaccounted for") || !strings.Contains(stdout, "processor time by packet") {
		t.Errorf("exit code %d, stderr %q, stdout\n%s", code, stderr, stdout)
	}
	code, stdout, stderr = command(t, append(args, "--json")...)
	var m struct {
		Packets    microbench.Packets
		CPUNS      map[string]float64 `json:"cpu_ns"`
		Conditions map[string]string
	}
	if err := json.Unmarshal([]byte(stdout), &m); code != 0 || err != nil {
		t.Fatalf("exit code %d, %v, stderr %q", code, err, stderr)
	}
	if m.Packets.Sent == 0 || m.Packets.Check() != nil || m.CPUNS["forwarder"] <= 0 || m.Conditions["path"] == "" {
		t.Errorf("%+v", m)
	}
}
