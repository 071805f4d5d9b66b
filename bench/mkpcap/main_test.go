package main

import (
	"bytes"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"nicprof/traffic"
)

func made(t *testing.T, o options) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := write(&b, o); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// What is read back is what was asked for: packets, rate, sizes, services, the
// share of port 80, and flow volumes that follow the distribution.
func TestWrite(t *testing.T) {
	o := options{packets: 200_000, flows: 1000, distribution: "zipf:1", size: "imix", pps: 2e6, http: 0.3, services: 4, seed: 7}
	path := filepath.Join(t.TempDir(), "t.pcap")
	if err := os.WriteFile(path, made(t, o), 0o666); err != nil {
		t.Fatal(err)
	}
	v, err := traffic.CaptureVolumes([]string{path}, []traffic.Key{{traffic.IPv4Source}, {traffic.IPv4Dest}, {traffic.TCPDest}}, traffic.VolumeOptions{})
	if err != nil || len(v.Warnings) > 0 {
		t.Fatal(err, v.Warnings)
	}
	if v.TotalPackets != 200_000 || math.Abs(v.Mpps()/2-1) > 0.02 || math.Abs(v.FrameBytes()/(4342./12)-1) > 0.02 {
		t.Errorf("%v packets, %v Mpps of %v B", v.TotalPackets, v.Mpps(), v.FrameBytes())
	}
	if seen, err := write(io.Discard, o); err != nil || seen != v.Keys[0].N() {
		t.Errorf("%d flows with a packet are told of (%v), %d are there", seen, err, v.Keys[0].N())
	}
	if v.Keys[0].N() < 990 || v.Keys[0].N() > 1000 || v.Keys[1].N() != 4 || v.Keys[2].N() != 2 {
		t.Errorf("%d senders, %d services, %d ports", v.Keys[0].N(), v.Keys[1].N(), v.Keys[2].N())
	}
	packets := slices.Clone(v.Keys[0].Packets)
	slices.Sort(packets)
	slices.Reverse(packets)
	for _, rank := range []int{1, 2, 5, 20} {
		want := 200_000 / float64(rank) / traffic.Harmonic(1000, 1)
		if got := packets[rank-1]; math.Abs(got-want) > 6*math.Sqrt(want) {
			t.Errorf("flow %d has %v packets, want %v", rank, got, want)
		}
	}
	flows := map[string]map[int32]bool{}
	for c := range v.Packets {
		port := v.Keys[2].Label(int(v.Group[2][c]))[0]
		if flows[port] == nil {
			flows[port] = map[int32]bool{}
		}
		flows[port][v.Group[0][c]] = true
	}
	if n := float64(len(flows["80"])) / 1000; math.Abs(n-.3) > 0.01 || len(flows) != 2 {
		t.Errorf("%v of the flows go to port 80, want 0.3", n)
	}
}

func TestDeterminism(t *testing.T) {
	o := options{packets: 1000, flows: 100, distribution: "agh2015", size: "facebook", pps: 1e6, services: 1, seed: 1}
	a := made(t, o)
	if !bytes.Equal(a, made(t, o)) {
		t.Error("the same seed gives another capture")
	}
	o.seed = 2
	if bytes.Equal(a, made(t, o)) {
		t.Error("another seed gives the same capture")
	}
}

func TestRefusals(t *testing.T) {
	for want, change := range map[string]func(*options){
		"-packets 0":      func(o *options) { o.packets = 0 },
		"-flows 20000000": func(o *options) { o.flows = 20_000_000 },
		"-pps 0":          func(o *options) { o.pps = 0 },
		"-http 2":         func(o *options) { o.http = 2 },
		"-services 255":   func(o *options) { o.services = 255 },
		`-distribution zipf:x: "x" is not an exponent`: func(o *options) { o.distribution = "zipf:x" },
		"exponent 99; expected 0..20":                  func(o *options) { o.distribution = "zipf:99" },
		`no distribution of flow volumes "caida"`:      func(o *options) { o.distribution = "caida" },
		"-size: 20 is not a packet size":               func(o *options) { o.size = "20" },
		`no size distribution "big"; there are imix`:   func(o *options) { o.size = "big" },
	} {
		o := options{packets: 10, flows: 10, distribution: "uniform", size: "64", pps: 1e6, services: 4}
		change(&o)
		if _, err := write(&bytes.Buffer{}, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
