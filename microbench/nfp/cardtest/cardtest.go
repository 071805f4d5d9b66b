// Package cardtest stands in for a Netronome card in tests: programs under the
// names of the vendor's tools that check their arguments against the documented
// syntax and answer for a card whose rates come from the emulator. It shows that
// the driver runs from end to end and asks for what is documented; it shows
// nothing about a card.
package cardtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"nicprof/board"
	"nicprof/emu"
	emunfp "nicprof/emu/nfp"
	"nicprof/internal/atomicfile"
	"nicprof/microbench/nfp/firmware"
	"nicprof/program"
	"nicprof/traffic"
)

// Variable names the environment variable with the directory that holds the
// card's state. Files in it change how the card behaves:
//
//	hwinfo      replaces the output of nfp-hwinfo
//	fail-TOOL   makes a tool fail and say the file's text
//	offer       Mpps that the sender manages; otherwise the line's
//	stuck       the table keeps its first word whatever is written
//	leak        the card sends more than it receives
const Variable = "NICPROF_CARDTEST"

// Sender is the tool that sends packets.
const Sender = "dpdk-testpmd"

// Log lists the commands that ran, one a line, in the card's directory.
const Log = "log"

var tools = map[string]func(*card, []string) error{
	"nfp-hwinfo": (*card).hwinfo,
	"nfp-nffw":   (*card).nffw,
	"nfp-rtsym":  (*card).rtsym,
	"nfp":        (*card).nfp,
	"nfp4build":  (*card).build,
	"rtecli":     (*card).rtecli,
	Sender:       (*card).send,
}

// Run runs a tool and ends the program when it was started under a tool's
// name. It is called first in TestMain.
func Run() {
	name := filepath.Base(os.Args[0])
	if tools[name] == nil {
		return
	}
	c := &card{dir: os.Getenv(Variable), out: os.Stdout}
	if err := c.run(name, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Install puts the tools into a directory, as links to the running test.
func Install(dir string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	for name := range tools {
		if err := os.Symlink(exe, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// Check holds the arguments of a command, the tool's name first, against the
// documented syntax, without running it.
func Check(args []string) error {
	if len(args) == 0 || tools[args[0]] == nil {
		return fmt.Errorf("%q: no such tool", args)
	}
	_, err := parse(args[0], args[1:])
	return err
}

// syntax is what a tool takes: the flags with their number of values, and the
// rest as a pattern over the arguments joined by spaces.
type syntax struct {
	flags map[string]int
	rest  *regexp.Regexp
}

// The documented syntax: hardware notes of the board support package and SDK 6
// (docs/real-boards.md says which was seen where), and the user guide of
// testpmd.
var documented = map[string]syntax{
	"nfp-hwinfo": {map[string]int{"-n": 1}, regexp.MustCompile(`^$`)},
	"nfp-nffw":   {map[string]int{"-n": 1}, regexp.MustCompile(`^(status|unload|load( -S)? \S+|start|fw load --no-start)$`)},
	"nfp-rtsym":  {map[string]int{"-n": 1, "-l": 1, "-v": 0, "-L": 0}, regexp.MustCompile(`^(|[\w.]+(:\d+)?( (0x[0-9a-f]+|\d+))*)$`)},
	"nfp":        {map[string]int{"-n": 1, "-m": 1, "-e": 0}, regexp.MustCompile(`^show port stats \d+ \d+(-\d+)?$`)},
	"rtecli":     {map[string]int{"-p": 1}, regexp.MustCompile(`^(design-load -f \S+ -p \S+ -c \S+|design-unload|status|version|ports)$`)},
	"nfp4build": {map[string]int{
		"--output-nffw-filename": 1, "--incl-p4-build": 1, "--sandbox-c": 1, "--sku": 1, "--platform": 1,
		"--reduced-thread-usage": 0, "--no-reduced-thread-usage": 0, "--shared-codestore": 0, "--no-shared-codestore": 0,
		"--debug-info": 0, "--no-debug-info": 0, "--nfp4c_p4_version": 1, "--nfp4c_p4_compiler": 1,
		"--nfirc_default_table_size": 1, "--nfirc_no_all_header_ops": 0, "--nfirc_implicit_header_valid": 0,
		"--nfirc_no_zero_new_headers": 0, "--nfirc_multicast_group_count": 1, "--nfirc_multicast_group_size": 1,
		"--nfirc_no_mac_ingress_timestamp": 0, "--define": 1, "--application-me-count": 1, "--disable-component": 1,
		"--pif-output-dir": 1, "--block-make": 0,
	}, regexp.MustCompile(`^$`)},
	Sender: {map[string]int{
		"-l": 1, "-n": 1, "-a": 1, "--vdev": 1, "--": 0, "--forward-mode": 1, "--no-flush-rx": 0,
		"--total-num-mbufs": 1, "--burst": 1, "--stats-period": 1,
	}, regexp.MustCompile(`^$`)},
}

// arguments are those of a command: values by flag, and what is no flag.
type arguments struct {
	flags map[string][]string
	rest  []string
}

func (a arguments) one(flag string) string {
	if v := a.flags[flag]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

func (a arguments) has(flag string) bool { return a.flags[flag] != nil }

// parse refuses flags that a tool does not have. Flags come first; what follows
// the first word that is none is the rest, flags of its own included.
func parse(name string, args []string) (arguments, error) {
	s := documented[name]
	a := arguments{flags: map[string][]string{}}
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		flag, value, joined := strings.Cut(args[0], "=")
		n, known := s.flags[flag]
		switch {
		case !known || joined && n == 0:
			return a, fmt.Errorf("unknown flag %s; usage: %s [%s]", args[0], name, strings.Join(slices.Sorted(keys(s.flags)), "] ["))
		case joined:
			args = args[1:]
		case len(args) < 1+n:
			return a, fmt.Errorf("%s needs a value", flag)
		case n > 0:
			value, args = args[1], args[2:]
		default:
			args = args[1:]
		}
		a.flags[flag] = append(a.flags[flag], value)
	}
	a.rest = args
	if !s.rest.MatchString(strings.Join(args, " ")) {
		return a, fmt.Errorf("unexpected %q; usage: %s %s", args, name, s.rest)
	}
	return a, nil
}

func keys(m map[string]int) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// card is the state that the tools share, in files.
type card struct {
	dir string
	out io.Writer
	a   arguments
}

func (c *card) path(name string) string { return filepath.Join(c.dir, name) }

func (c *card) run(name string, args []string) error {
	log, err := os.OpenFile(c.path(Log), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	fmt.Fprintln(log, name, strings.Join(args, " "))
	if err := log.Close(); err != nil {
		return err
	}
	if text, err := os.ReadFile(c.path("fail-" + name)); err == nil {
		return errors.New(string(text))
	}
	if c.a, err = parse(name, args); err != nil {
		return err
	}
	return tools[name](c, args)
}

// Hwinfo is what nfp-hwinfo prints of a card: the lines that the driver reads,
// of the layout seen of an AMDA0096.
func Hwinfo(part string, mhz int) string {
	return fmt.Sprintf(`nfp.interface=pci.0.0
nfp.model=0x62000010
assembly.revision=11
assembly.partno=%s
emu1.type=cache
chip.model=NFP4001
chip.revision=B0
chip.island=0x1001f13000112
core.speed=%d
me.speed=%d
emu1.mem.size=3
bsp.version=01011b.01011b.0100ff
`, part, mhz, mhz)
}

func (c *card) hwinfo([]string) error {
	text, err := os.ReadFile(c.path("hwinfo"))
	if errors.Is(err, fs.ErrNotExist) {
		text, err = []byte(Hwinfo("AMDA0097-0001", 800)), nil
	}
	c.out.Write(text)
	return err
}

// image is what the builder puts into a firmware file, and the card holds once
// it is loaded.
type image struct {
	Spec           firmware.Spec `json:"spec"`
	Cores, Threads int
	Table          []uint32
}

func (c *card) build([]string) error {
	p4 := c.a.one("--incl-p4-build")
	for _, file := range []string{p4, c.a.one("--sandbox-c")} {
		if _, err := os.Stat(file); file != "" && err != nil {
			return err
		}
	}
	if !regexp.MustCompile(`^AMDA\d{4}-\d{4}:\d$`).MatchString(c.a.one("--sku")) || c.a.one("--platform") == "" {
		return fmt.Errorf("--sku %s --platform %s", c.a.one("--sku"), c.a.one("--platform"))
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(p4), firmware.ImageFile))
	if err != nil {
		return err
	}
	im := image{Threads: 8}
	if err := json.Unmarshal(text, &im.Spec); err != nil {
		return err
	}
	if (c.a.one("--sandbox-c") == "") != (len(im.Spec.Arrays) == 0 && len(im.Spec.Program.Stateless) == 0) {
		return fmt.Errorf("--sandbox-c %q", c.a.one("--sandbox-c"))
	}
	if im.Cores, err = strconv.Atoi(c.a.one("--application-me-count")); err != nil {
		return err
	}
	if c.a.has("--reduced-thread-usage") {
		im.Threads = 4
	}
	if err := store(c.a.one("--output-nffw-filename"), im); err != nil {
		return err
	}
	pifs := c.a.one("--pif-output-dir")
	if err := os.MkdirAll(pifs, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(pifs, "pif_design.json"), []byte("{}\n"), 0o644)
}

func store(path string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, text)
}

func load(path string, v any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}

// Loaded is the file of the firmware that the card holds; absent, it holds none.
const Loaded = "loaded"

func (c *card) rtecli([]string) error {
	switch c.a.rest[0] {
	case "design-load":
		var im image
		if err := load(c.a.rest[2], &im); err != nil {
			return err
		}
		for _, file := range []string{c.a.rest[4], c.a.rest[6]} {
			if text, err := os.ReadFile(file); err != nil || !json.Valid(text) {
				return fmt.Errorf("%s: not JSON: %w", file, err)
			}
		}
		return store(c.path(Loaded), im)
	case "design-unload":
		return os.Remove(c.path(Loaded))
	}
	return nil
}

func (c *card) nffw([]string) error {
	if c.a.rest[0] == "unload" {
		return os.Remove(c.path(Loaded))
	}
	return nil
}

func (c *card) rtsym([]string) error {
	var im image
	if err := load(c.path(Loaded), &im); err != nil {
		return fmt.Errorf("no firmware is loaded: %w", err)
	}
	name, at, _ := strings.Cut(c.a.rest[0], ":")
	offset, _ := strconv.Atoi(at)
	if name != firmware.Table || len(im.Spec.Table) == 0 {
		return fmt.Errorf("no symbol %s", name)
	}
	if im.Table == nil {
		im.Table = make([]uint32, 16)
	}
	if values := c.a.rest[1:]; len(values) > 0 {
		for i, text := range values {
			v, err := strconv.ParseUint(text, 0, 32)
			if err != nil || offset/4+i >= len(im.Table) {
				return fmt.Errorf("%s: %w", text, err)
			}
			im.Table[offset/4+i] = uint32(v)
		}
		if _, err := os.Stat(c.path("stuck")); err == nil {
			im.Table[0] = 0xdead
		}
		return store(c.path(Loaded), im)
	}
	n, err := strconv.Atoi(c.a.one("-l"))
	if err != nil || offset+n > 4*len(im.Table) {
		return fmt.Errorf("-l %s: %w", c.a.one("-l"), err)
	}
	const row = 4
	for i := offset / 4; i < (offset+n)/4; i++ {
		if i%row == 0 {
			fmt.Fprintf(c.out, "0x%010x: ", 4*i)
		}
		fmt.Fprintf(c.out, " 0x%08x", im.Table[i])
		if i%row == row-1 || i == (offset+n)/4-1 {
			fmt.Fprintln(c.out)
		}
	}
	return nil
}

// sending is what a running sender has written.
type sending struct {
	StartNS        int64 // Unix time
	Received, Sent float64
}

const sendingFile = "sending"

func (c *card) nfp([]string) error {
	var s sending
	received, sent := 7000.0, 6000.0
	if err := load(c.path(sendingFile), &s); err == nil {
		us := float64(time.Now().UnixNano()-s.StartNS) / 1e3
		received, sent = received+us*s.Received, sent+us*s.Sent
	}
	// two ports: what comes in at one leaves at the other
	fmt.Fprintf(c.out, "Port 0:\n  RxFramesReceivedOK    : %d\n  TxFramesTransmittedOK : 12\n", int64(received))
	fmt.Fprintf(c.out, "Port 4:\n  RxFramesReceivedOK    : 3\n  TxFramesTransmittedOK : %d\n", int64(sent))
	return nil
}

// Mpps is the rate of a program on the emulated card, over a thousand packets.
func Mpps(b *board.Board, p program.Program, t traffic.Traffic, cores, threads int) (float64, error) {
	r, err := emunfp.Run(context.Background(), b, b.Resolve(p), t, emu.Config{Cores: cores, Threads: threads, Seed: 1, Packets: 1000})
	if err != nil {
		return 0, err
	}
	return r.Mpps(), nil
}

// send runs what the card has loaded on the emulator, under the traffic of the
// capture, and then lets the counters run until it is interrupted.
func (c *card) send([]string) error {
	var im image
	if err := load(c.path(Loaded), &im); err != nil {
		return fmt.Errorf("no firmware is loaded: %w", err)
	}
	if len(im.Spec.Table) > 0 && (im.Table == nil || im.Table[firmware.ReadyWord] != 1) {
		return errors.New("the firmware's table is not ready")
	}
	m := regexp.MustCompile(`^net_pcap0,rx_pcap=(.*),infinite_rx=1$`).FindStringSubmatch(c.a.one("--vdev"))
	if m == nil {
		return fmt.Errorf("--vdev %s", c.a.one("--vdev"))
	}
	t, err := traffic.Load(m[1])
	if err != nil {
		return err
	}
	size := float64(t.PacketBytes)
	if t.Sizes != nil {
		size = t.Sizes.Mean()
	}
	t.RateMpps = 0
	p, err := im.Spec.Fill(im.Table)
	if err != nil {
		return err
	}
	b, err := board.Load(im.Spec.Board)
	if err != nil {
		return err
	}
	mpps, err := Mpps(b, p, t, im.Cores, im.Threads)
	if err != nil {
		return err
	}
	s := sending{Received: 40e3 / (8 * (size + 20))}
	if text, err := os.ReadFile(c.path("offer")); err == nil {
		if s.Received, err = strconv.ParseFloat(strings.TrimSpace(string(text)), 64); err != nil {
			return err
		}
	}
	s.Sent = min(s.Received, mpps)
	if _, err := os.Stat(c.path("leak")); err == nil {
		s.Sent = 2 * s.Received
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	s.StartNS = time.Now().UnixNano()
	if err := store(c.path(sendingFile), s); err != nil {
		return err
	}
	select {
	case <-stop:
	case <-time.After(time.Minute): // nobody stops it: the driver has failed
	}
	return os.Remove(c.path(sendingFile))
}
