package nfp

import (
	"bytes"
	"slices"
	"testing"

	"nicprof/internal/fault"
	"nicprof/microbench/nfp/cardtest"
	"nicprof/program"
	"nicprof/traffic"
)

func TestParseHwinfo(t *testing.T) {
	h, err := parseHwinfo(cardtest.Hwinfo("AMDA0096-0001", 633))
	if err != nil {
		t.Fatal(err)
	}
	mhz, err := h.meSpeed()
	n, ok := h.microengines()
	if err != nil || mhz != 633 || !ok || n != 60 || h["assembly.partno"] != "AMDA0096-0001" {
		t.Errorf("%v MHz (%v), %d microengines (%v), %s", mhz, err, n, ok, h["assembly.partno"])
	}
	// the mask of an AMDA0058: seven islands
	h["chip.island"] = "0x3007f37003332"
	if n, _ := h.microengines(); n != 84 {
		t.Errorf("%d microengines of an NFP-6000, want 84", n)
	}
	h["me.speed"] = "fast"
	if _, err := h.meSpeed(); fault.KindOf(err) != fault.Check {
		t.Errorf("me.speed=fast: %v", err)
	}
}

func TestParseMAC(t *testing.T) {
	for text, want := range map[string]macCount{
		"RxFramesReceivedOK: 5\nTxFramesTransmittedOK: 4\n":                              {5, 4},
		"port0.RxFramesReceivedOK = 0x10\nport0.TxFramesTransmittedOK = 3":               {16, 3},
		"0 RxFramesReceivedOK 1 TxFramesTransmittedOK 2\n4 RxFramesReceivedOK 10":        {11, 2},
		"txframestransmittedok 7\nrxframesreceivedok\t9\nRxFramesReceivedOKNot 3":        {9, 7},
		"RxFramesReceivedOK 18446744073709551615\nTxFramesTransmittedOK 0\nTxOctets 123": {1<<64 - 1, 0},
	} {
		if got, err := parseMAC(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "RxFramesReceivedOK 5", "TxFramesTransmittedOK 5",
		"RxFramesReceivedOK 99999999999999999999 TxFramesTransmittedOK 1",
		"RxFramesReceivedOK 18446744073709551615 RxFramesReceivedOK 1 TxFramesTransmittedOK 1"} {
		if _, err := parseMAC(text); fault.KindOf(err) != fault.Check {
			t.Errorf("%q: %v, want a failed check", text, err)
		}
	}
	if _, err := (macCount{5, 5}).since(macCount{5, 6}); fault.KindOf(err) != fault.Check {
		t.Errorf("counters that run backwards: %v", err)
	}
}

func TestParseWords(t *testing.T) {
	got, err := parseWords("0x0000000000:  0x00000001 0x0000000a 0xFFFFFFFF 0x00000000\n0x0000000010:  0x00000005\n", 5)
	if want := []uint32{1, 10, 1<<32 - 1, 0, 5}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	if _, err := parseWords("0x00: 0x1", 2); fault.KindOf(err) != fault.Check {
		t.Errorf("too few words: %v", err)
	}
}

func FuzzAnswers(f *testing.F) {
	f.Add(cardtest.Hwinfo("AMDA0097-0001", 800))
	f.Add("RxFramesReceivedOK: 5\nTxFramesTransmittedOK: 4\n")
	f.Add("0x0000000000:  0x00000001 0x00000002\n")
	f.Fuzz(func(t *testing.T, text string) {
		if h, err := parseHwinfo(text); err == nil {
			if v, err := h.meSpeed(); err == nil && !(v > 0) {
				t.Errorf("a clock of %v MHz", v)
			}
			h.microengines()
		}
		if _, err := parseMAC(text); err != nil && fault.KindOf(err) != fault.Check {
			t.Error(err)
		}
		if words, err := parseWords(text, 2); err == nil && len(words) != 2 {
			t.Errorf("%d words", len(words))
		}
	})
}

// The packets that are sent have the program's sizes and flows, and say which
// lock element is theirs.
func TestCapture(t *testing.T) {
	p := program.Program{PacketBytes: 128, Flows: &traffic.Flows{Count: 8, Popularity: "zipf", Alpha: 1}}
	p.Locks = []program.Lock{{Name: "l", Elements: 3}}
	data, err := packetsOf(p, traffic.Traffic{}, 1).capture()
	if err != nil {
		t.Fatal(err)
	}
	again, err := packetsOf(p, traffic.Traffic{}, 1).capture()
	if err != nil || !bytes.Equal(data, again) {
		t.Errorf("the same seed gives other packets (%v)", err)
	}
	got, err := traffic.ReadCapture(bytes.NewReader(data), "capture")
	if err != nil {
		t.Fatal(err)
	}
	if got.PacketBytes != 128 || got.Flows.Count != 8 {
		t.Errorf("%d bytes, %d flows", got.PacketBytes, got.Flows.Count)
	}
	// H(8) = 2.718: the first of eight Zipf flows has 0.368 of the packets
	if share := got.Flows.Shares[0]; share < 0.34 || share > 0.40 {
		t.Errorf("the most popular flow has %.3f of the packets, want 0.368", share)
	}
	if a, b := packetsOf(p, traffic.Traffic{}, 1).name(), packetsOf(p, traffic.Traffic{}, 2).name(); a == b {
		t.Error("another seed, and other packets of the same name")
	}
	p.Flows = &traffic.Flows{Count: 1}
	if a, b := packetsOf(p, traffic.Traffic{}, 1).name(), packetsOf(p, traffic.Traffic{}, 2).name(); a != b {
		t.Error("the same packets have two names")
	}
	const header, record, addresses = 24, 16, 14 + 12
	for at := header; at < len(data); at += record + 124 {
		ip := data[at+record+addresses:]
		if flow, element := ip[3], ip[7]; ip[0] != 10 || flow > 7 || element != flow%3 {
			t.Fatalf("a packet of flow %d takes element %d of 3", flow, element)
		}
	}
}
