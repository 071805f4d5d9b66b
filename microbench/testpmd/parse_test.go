package testpmd

import (
	"os"
	"strings"
	"testing"

	"nicprof/internal/fault"
)

// recorded is what DPDK 22.11.11 printed in a session of ours: start, twice
// port and forward statistics, stop, quit.
func recorded(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// answer cuts the nth answer to a command out of a recorded session.
func answer(t testing.TB, session, command string, n int) string {
	t.Helper()
	parts := strings.Split(session, prompt+command)
	if n >= len(parts) {
		t.Fatalf("%q was given %d times", command, len(parts)-1)
	}
	text, _, _ := strings.Cut(parts[n], prompt)
	return text
}

func TestParsePorts(t *testing.T) {
	ports, err := ParsePorts(answer(t, recorded(t, "ring-macswap.txt"), "show port stats all", 2))
	if err != nil {
		t.Fatal(err)
	}
	want := []Port{
		{ID: 0, RxPackets: 29142624, TxPackets: 29142720, RxPPS: 37015294, TxPPS: 37015294},
		{ID: 1, RxPackets: 29144608, TxPackets: 29144736, RxPPS: 37018527, TxPPS: 37018527},
	}
	if len(ports) != 2 || ports[0] != want[0] || ports[1] != want[1] {
		t.Errorf("got %+v, want %+v", ports, want)
	}
}

func TestParseForward(t *testing.T) {
	f, err := ParseForward(answer(t, recorded(t, "ring-macswap.txt"), "stop", 1))
	if err != nil {
		t.Fatal(err)
	}
	if f.Total != (Counts{RxPackets: 58443968, TxPackets: 58444224}) {
		t.Errorf("total %+v", f.Total)
	}
	if len(f.Ports) != 2 || f.Ports[1] != (Counts{RxPackets: 29221984, TxPackets: 29222112}) {
		t.Errorf("ports %+v", f.Ports)
	}
}

// Every counter comes from its own name, also those that are 0 in the
// recording.
func TestParseEveryCounter(t *testing.T) {
	text := answer(t, recorded(t, "null-csum.txt"), "stop", 1)
	for i, name := range []string{"RX-dropped: 0", "TX-dropped: 0", "Bad-ipcsum: 0", "Bad-l4csum: 0"} {
		text = strings.ReplaceAll(text, name, strings.TrimSuffix(name, "0")+string('1'+rune(i)))
	}
	f, err := ParseForward(text)
	if err != nil {
		t.Fatal(err)
	}
	if p := f.Ports[0]; p.RxDropped != 1 || p.TxDropped != 2 || p.BadIP != 3 || p.BadL4 != 4 {
		t.Errorf("port 0 %+v", p)
	}
	if f.Total.RxDropped != 1 || f.Total.TxDropped != 2 {
		t.Errorf("total %+v", f.Total)
	}
	text = answer(t, recorded(t, "null-csum.txt"), "show port stats all", 1)
	for i, name := range []string{"RX-missed: 0", "RX-errors: 0", "RX-nombuf:  0", "TX-errors: 0"} {
		text = strings.ReplaceAll(text, name, strings.TrimSuffix(name, "0")+string('1'+rune(i)))
	}
	ports, err := ParsePorts(text)
	if err != nil {
		t.Fatal(err)
	}
	if p := ports[1]; p.RxMissed != 1 || p.RxErrors != 2 || p.RxNoBuffer != 3 || p.TxErrors != 4 {
		t.Errorf("port 1 %+v", p)
	}
}

func TestParseVersion(t *testing.T) {
	if v := ParseVersion(recorded(t, "ring-macswap.txt")); v != "DPDK 22.11.11" {
		t.Errorf("version %q", v)
	}
	if v := ParseVersion("no version"); v != "" {
		t.Errorf("version %q of nothing", v)
	}
}

// What is cut short, renamed or too large is refused, not read as 0.
func TestParseRefuses(t *testing.T) {
	ports := answer(t, recorded(t, "ring-macswap.txt"), "show port stats all", 1)
	stop := answer(t, recorded(t, "ring-macswap.txt"), "stop", 1)
	ruler := "  " + strings.Repeat("-", 76) + "\r\n"
	for name, parse := range map[string]func() error{
		"empty ports":   func() error { _, err := ParsePorts(""); return err },
		"empty forward": func() error { _, err := ParseForward(""); return err },
		"cut ports":     func() error { _, err := ParsePorts(ports[:len(ports)-90]); return err },
		"cut forward":   func() error { _, err := ParseForward(stop[:len(stop)-120]); return err },
		"no total":      func() error { _, err := ParseForward(stop[:strings.Index(stop, "  +++")]); return err },
		"renamed":       func() error { _, err := ParsePorts(strings.ReplaceAll(ports, "Tx-pps", "TX-rate")); return err },
		"too large": func() error {
			_, err := ParseForward(strings.ReplaceAll(stop, "29221984", "99999999999999999999"))
			return err
		},
		"no end": func() error { _, err := ParseForward(strings.Replace(stop, ruler, "", 1)); return err },
	} {
		if err := parse(); fault.KindOf(err) != fault.Check {
			t.Errorf("%s: %v, want a failed check", name, err)
		}
	}
}

// Whatever the program prints, parsing ends with an answer or an error, and an
// answer has ports.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"ring-macswap.txt", "null-csum.txt"} {
		session := recorded(f, name)
		f.Add(answer(f, session, "show port stats all", 1))
		f.Add(answer(f, session, "show fwd stats all", 1))
		f.Add(answer(f, session, "stop", 1))
	}
	f.Fuzz(func(t *testing.T, text string) {
		if ports, err := ParsePorts(text); err == nil && len(ports) == 0 {
			t.Error("no ports and no error")
		}
		if fw, err := ParseForward(text); err == nil && len(fw.Ports) == 0 {
			t.Error("no ports and no error")
		}
	})
}
