package nfp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"nicprof/board"
	"nicprof/internal/fault"
	"nicprof/microbench"
	"nicprof/microbench/nfp/cardtest"
	"nicprof/program"
	"nicprof/traffic"
)

func TestMain(m *testing.M) {
	cardtest.Run()
	os.Exit(m.Run())
}

// rig is a card with its tools on PATH.
type rig struct {
	*testing.T
	board  *board.Board
	state  string
	images string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	b, err := board.Load("nfp")
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, board: b, state: t.TempDir(), images: t.TempDir()}
	bin := t.TempDir()
	if err := cardtest.Install(bin); err != nil {
		t.Fatal(err)
	}
	setup := filepath.Join(t.TempDir(), "nfp.yaml")
	text := fmt.Sprintf("sender_pci: 0000:04:00.0\nsettle_s: 0\nwindow_s: 0.02\nimages: %s\n", r.images)
	if err := os.WriteFile(setup, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv(cardtest.Variable, r.state)
	t.Setenv(SetupVariable, setup)
	return r
}

func (r *rig) open() *native {
	r.Helper()
	d, err := New(r.board, microbench.Native)
	if err != nil {
		r.Fatal(err)
	}
	return d.(*native)
}

func (r *rig) set(name, text string) {
	r.Helper()
	if err := os.WriteFile(filepath.Join(r.state, name), []byte(text), 0o644); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) log() string {
	r.Helper()
	text, err := os.ReadFile(filepath.Join(r.state, cardtest.Log))
	if err != nil {
		r.Fatal(err)
	}
	return string(text)
}

// clean checks that nothing is loaded and nobody sends.
func (r *rig) clean(what string) {
	r.Helper()
	for _, name := range []string{cardtest.Loaded, "sending"} {
		if _, err := os.Stat(filepath.Join(r.state, name)); !errors.Is(err, fs.ErrNotExist) {
			r.Errorf("%s: left %s behind (%v)", what, name, err)
		}
	}
	dirs, err := filepath.Glob(filepath.Join(r.images, "building-*"))
	if err != nil || len(dirs) > 0 {
		r.Errorf("%s: left %v behind (%v)", what, dirs, err)
	}
}

func emem(perPacket float64) []program.Access {
	return []program.Access{{Memory: "emem", Op: program.Read, Mode: program.Bulk, Bytes: 64, PerPacket: perPacket}}
}

// What the driver measures on a card that runs at the emulator's rate is that
// rate, whatever the program: its numbers reach the card by constants or by the
// table, its flows by the packets.
func TestMeasureNative(t *testing.T) {
	r := newRig(t)
	d := r.open()
	for name, c := range map[string]struct {
		p program.Program
		t traffic.Traffic
		o microbench.Options
	}{
		"bare":          {},
		"constants":     {p: program.Program{Accesses: slices.Repeat(emem(1), 9)}},
		"table":         {p: program.Program{Base: "profiling", Accesses: emem(12.5), Stateless: program.Stateless{program.ALU: 42}}, o: microbench.Options{Cores: 10}},
		"four contexts": {p: program.Program{Accesses: emem(10)}, o: microbench.Options{Threads: 4, MaxRuns: 4}},
		"a lock":        {p: program.Program{Base: "profiling", Locks: []program.Lock{{Name: "l", Elements: 1}}, Flows: &traffic.Flows{Count: 64}}},
		"large packets": {t: traffic.Traffic{PacketBytes: 1500}},
	} {
		c.o.Seed = 1
		s, err := d.Measure(t.Context(), c.p, c.t, c.o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want, err := cardtest.Mpps(r.board, c.p, c.t, c.o.Cores, c.o.Threads)
		if err != nil {
			t.Fatal(err)
		}
		if line := 40e3 / (8 * (1500 + 20)); c.t.PacketBytes == 1500 {
			want = line // of the port that the packets come by
		}
		// The capture stands for the traffic: draws of flows and sizes differ.
		const slack = 0.02
		if s.Low > want*(1+slack) || s.High < want*(1-slack) || !(s.Low > 0 && s.Low <= s.Mpps && s.Mpps <= s.High) {
			t.Errorf("%s: %v Mpps (%v to %v), the card runs at %v", name, s.Mpps, s.Low, s.High, want)
		}
		if s.Backend != microbench.Native || s.Status != microbench.StatusOK || s.Conditions["me_mhz"] != "800" ||
			s.Conditions["sku"] != "AMDA0097-0001" || s.Cores < 1 || s.Conditions["threads"] != fmt.Sprint(s.Threads) {
			t.Errorf("%s: %+v", name, s)
		}
		if !strings.Contains(strings.Join(s.Warnings, "\n"), "latency and utilisation are not measured") {
			t.Errorf("%s: says nothing of the latency: %q", name, s.Warnings)
		}
		r.clean(name)
	}
}

// A firmware is built once, for all programs of its shape; the order of the
// commands is build, load, fill, send, count, unload.
func TestImagesAreBuiltOnce(t *testing.T) {
	r := newRig(t)
	d := r.open()
	for _, n := range []float64{1, 20.25} {
		if _, err := d.Measure(t.Context(), program.Program{Base: "profiling", Accesses: emem(n)}, traffic.Traffic{}, microbench.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	log := r.log()
	if n := strings.Count(log, "nfp4build "); n != 1 {
		t.Errorf("built %d times:\n%s", n, log)
	}
	at := -1
	for _, command := range []string{"nfp4build", "rtecli -p 20206 design-load", "nfp-rtsym -n 0 _prof_table:0 0x1\n",
		"nfp-rtsym -n 0 _prof_table:60 0x1\n", "nfp-rtsym -n 0 -l 64 _prof_table:0", "dpdk-testpmd", "nfp -n 0 -m mac -e show port stats 0 0-8", "rtecli -p 20206 design-unload"} {
		i := strings.Index(log[at+1:], command)
		if i < 0 {
			t.Fatalf("no %q after the command before it in\n%s", command, log)
		}
		at += 1 + i
	}
}

// A tool that fails is named with its arguments and what it said, and nothing
// stays loaded.
func TestToolsFail(t *testing.T) {
	for _, tool := range []string{"nfp4build", "rtecli", "nfp-rtsym", "nfp", cardtest.Sender} {
		r := newRig(t)
		d := r.open()
		r.set("fail-"+tool, "out of luck")
		_, err := d.Measure(t.Context(), program.Program{Base: "profiling", Accesses: emem(1)}, traffic.Traffic{}, microbench.Options{})
		if fault.KindOf(err) != fault.Check || !strings.Contains(err.Error(), "out of luck") || !strings.Contains(err.Error(), tool+" -") {
			t.Errorf("%s: %v", tool, err)
		}
		r.clean(tool)
	}
	r := newRig(t)
	r.set("fail-nfp-hwinfo", "no device")
	if _, err := New(r.board, microbench.Native); fault.KindOf(err) != fault.Missing || !strings.Contains(err.Error(), "no device") {
		t.Errorf("no card: %v", err)
	}
}

// A card that does not answer after a failure is lost, which ends a sweep; one that
// does has failed at one measurement.
func TestCardIsLost(t *testing.T) {
	r := newRig(t)
	d := r.open()
	measure := func() error {
		_, err := d.Measure(t.Context(), program.Program{Base: "profiling", Accesses: emem(1)}, traffic.Traffic{}, microbench.Options{})
		return err
	}
	r.set("fail-nfp", "no answer")
	if err := measure(); err == nil || errors.Is(err, microbench.ErrLost) {
		t.Errorf("a tool fails, the card answers: %v", err)
	}
	r.set("fail-nfp-hwinfo", "no device")
	err := measure()
	if !errors.Is(err, microbench.ErrLost) || fault.KindOf(err) != fault.Missing ||
		!strings.Contains(err.Error(), "no device") || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("the card is gone: %v", err)
	}
}

// Where the run-time environment cannot unload, nfp-nffw does; when neither
// can, the error says that firmware is left.
func TestUnloadOtherwise(t *testing.T) {
	r := newRig(t)
	j, err := prepare(r.board, &Setup{}, "", "", program.Program{}, traffic.Traffic{}, microbench.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.set("fail-rtecli", "no server")
	d := r.open()
	r.set(cardtest.Loaded, "{}")
	j.setup = &d.setup
	if _, err := d.windows(t.Context(), j, traffic.Traffic{}, microbench.Options{}); !strings.Contains(fmt.Sprint(err), "no server") || strings.Contains(err.Error(), "may still be loaded") {
		t.Errorf("loading fails: %v", err)
	}
	r.clean("nfp-nffw unload")
	r.set("fail-nfp-nffw", "no device")
	if _, err := d.windows(t.Context(), j, traffic.Traffic{}, microbench.Options{}); !strings.Contains(fmt.Sprint(err), "may still be loaded") {
		t.Errorf("nothing unloads: %v", err)
	}
}

func TestInterruptNative(t *testing.T) {
	r := newRig(t)
	d := r.open()
	d.setup.WindowS = 60
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := d.Measure(ctx, program.Program{}, traffic.Traffic{}, microbench.Options{})
		done <- err
	}()
	for {
		if _, err := os.Stat(filepath.Join(r.state, "sending")); err == nil {
			break
		}
		select {
		case err := <-done:
			t.Fatalf("ended before the interrupt: %v", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
	r.clean("interrupt")
}

// Rates that do not tell the card's are refused.
func TestRefusedRates(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"unsaturated": {"offer", "5", "not saturated"},
		"leak":        {"leak", "", "more packets left than came"},
		"wrong table": {"stuck", "", "word 0 of _prof_table is 0xdead after 0x2"},
	} {
		r := newRig(t)
		d := r.open()
		r.set(c.file, c.text)
		_, err := d.Measure(t.Context(), program.Program{Base: "profiling", Accesses: emem(2)}, traffic.Traffic{}, microbench.Options{})
		if fault.KindOf(err) != fault.Check || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want a failed check: %s", name, err, c.want)
		}
		r.clean(name)
	}
}

// What a card or the set-up cannot do is refused before anything is built.
func TestRefusedNative(t *testing.T) {
	r := newRig(t)
	d := r.open()
	for name, c := range map[string]struct {
		p    program.Program
		t    traffic.Traffic
		o    microbench.Options
		want string
	}{
		"threads": {o: microbench.Options{Threads: 3}, want: "3 threads a core"},
		"rate":    {t: traffic.Traffic{RateMpps: 2}, want: "{mpps}"},
		"base":    {p: program.Program{Base: "xdp"}, want: "another firmware"},
		"cores":   {o: microbench.Options{Cores: 99}, want: "cores"},
	} {
		if _, err := d.Measure(t.Context(), c.p, c.t, c.o); fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an input fault about %s", name, err, c.want)
		}
	}
	if log := r.log(); strings.Contains(log, "nfp4build") {
		t.Errorf("built something:\n%s", log)
	}
}

// The card has to be the board's.
func TestOtherCard(t *testing.T) {
	r := newRig(t)
	r.set("hwinfo", cardtest.Hwinfo("AMDA0096-0001", 633))
	if _, err := New(r.board, microbench.Native); fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), "633") {
		t.Errorf("another clock: %v", err)
	}
	r.set("hwinfo", cardtest.Hwinfo("AMDA0099-0001", 800))
	d := r.open()
	if len(d.notes) != 1 || !strings.Contains(d.notes[0], "AMDA0099-0001") || d.platform != "carbon" || d.sku != "AMDA0099-0001:0" {
		t.Errorf("another card of the same clock: notes %q, %s, %s", d.notes, d.sku, d.platform)
	}
	r.set("hwinfo", strings.Replace(cardtest.Hwinfo("AMDA0097-0001", 800), "0x1001f13000112", "0x1000113000112", 1))
	if _, err := New(r.board, microbench.Native); fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), "12 programmable") {
		t.Errorf("one island: %v", err)
	}
	r.set("hwinfo", "nfp.model=1\n")
	if _, err := New(r.board, microbench.Native); fault.KindOf(err) != fault.Missing {
		t.Errorf("no card: %v", err)
	}
}

func TestSetup(t *testing.T) {
	r := newRig(t)
	file := filepath.Join(t.TempDir(), "s.yaml")
	getenv := func(string) string { return file }
	for text, want := range map[string]string{
		"card: -1":         "card",
		"window_s: 0":      "window_s",
		"settle_s: x":      "settle_s",
		"out: ''":          "two ports",
		"rte_port: 99999":  "rte_port",
		"sendr: [a]":       "sendr",
		"images: ''":       "images",
		"sender: [none-x]": "none-x",
		"card: 0":          "nothing sends",
	} {
		if err := os.WriteFile(file, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := openNative(r.board, getenv)
		if kind := fault.KindOf(err); kind != fault.Input && kind != fault.Missing || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want a fault about %s", text, err, want)
		}
	}
	file = "/nonexistent/nfp.yaml"
	if _, err := openNative(r.board, getenv); fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), SetupVariable) {
		t.Errorf("no file: %v", err)
	}
	s := Setup{Sender: []string{"ssh", "tester", "send {pcap} --rate={mpps}"}}
	if got := strings.Join(s.sender("x.pcap", "1.5"), " "); got != "ssh tester send x.pcap --rate=1.5" || !s.paces() {
		t.Errorf("sender %q, paces: %v", got, s.paces())
	}
}

// A dry run needs no tool. It writes the sources and prints commands that the
// tools' documented syntax allows, one build an image.
func TestDryRun(t *testing.T) {
	b, err := board.Load("nfp")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", "")
	plan, err := microbench.Plan(b, "quick", nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	d, err := microbench.OpenDryRun(b)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	lines, err := d.DryRun(plan, dir)
	if err != nil {
		t.Fatal(err)
	}
	tools := map[string]int{}
	workloads, refused := 0, 0
	for _, line := range lines {
		switch {
		case strings.HasPrefix(line, "# not on a card: "):
			refused++
		case strings.HasPrefix(line, "# ") && strings.Contains(line, "/"):
			workloads++
		case line == "" || line[0] == '#' || line == "kill -INT $!":
		default:
			line, _, _ = strings.Cut(line, " #")
			args := strings.Fields(strings.TrimSuffix(line, " &"))
			if err := cardtest.Check(args); err != nil {
				t.Errorf("%s\n%v", line, err)
			}
			tools[args[0]]++
		}
	}
	if workloads != len(plan) || tools["rtecli"] != 2*(workloads-refused) || tools[cardtest.Sender] != workloads-refused || refused == 0 {
		t.Errorf("%d workloads of %d, %d refused, tools %v", workloads, len(plan), refused, tools)
	}
	images, err := filepath.Glob(filepath.Join(dir, "images", "*", "main.p4"))
	if err != nil || len(images) != tools["nfp4build"] || len(images) == 0 || len(images) >= workloads-refused {
		t.Errorf("%d images, %d builds of %d workloads (%v)", len(images), tools["nfp4build"], workloads-refused, err)
	}
	t.Logf("%d workloads, %d not on a card, %d images", workloads, refused, len(images))
}
