package nfp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"nicprof/board"
	"nicprof/internal/atomicfile"
	"nicprof/internal/fault"
	"nicprof/internal/stats"
	"nicprof/microbench"
	"nicprof/microbench/nfp/firmware"
	"nicprof/program"
	"nicprof/traffic"
)

// native drives a card in this machine with its vendor's tools, one
// measurement at a time.
type native struct {
	board    *board.Board
	setup    Setup
	card     hwinfo
	sku      string
	platform string
	notes    []string // what makes this card another than the board file's
	lock     sync.Mutex
}

// reducedThreads is the contexts of --reduced-thread-usage.
const reducedThreads = 4

// openNative looks at the card. A card that is not there or does not answer is
// a missing fault; one whose clock is not the board's an input fault, since all
// cycles of the board file would be wrong.
func openNative(b *board.Board, getenv func(string) string) (*native, error) {
	setup, err := loadSetup(getenv)
	if err != nil {
		return nil, err
	}
	d := &native{board: b, setup: setup}
	if len(setup.Sender) == 0 && setup.SenderPCI == "" {
		return nil, fault.Missingf("board %s: nothing sends packets: name the sender, or the PCI address of a port that DPDK may use, in %s or the file that %s names", b.Name, DefaultSetup, SetupVariable)
	}
	if name := setup.sender("", "")[0]; name != "" {
		if _, err := exec.LookPath(name); err != nil {
			return nil, fault.Missingf("board %s: the sender: %w", b.Name, err)
		}
	}
	text, err := run(context.Background(), hwinfoOf(&setup))
	if err != nil {
		return nil, fault.Missingf("board %s: %w", b.Name, err)
	}
	if d.card, err = parseHwinfo(text); err != nil {
		return nil, fmt.Errorf("board %s: %w", b.Name, err)
	}
	speed, err := d.card.meSpeed()
	if err != nil {
		return nil, err
	}
	if speed != b.ClockMHz.Value {
		return nil, fault.Inputf("the card's me.speed is %v MHz, board %s says %v: save the board with profiler boards show %s, set clock_mhz, and measure that file", speed, b.Name, b.ClockMHz.Value, b.Name)
	}
	part := d.card["assembly.partno"]
	if part != b.SKU {
		d.notes = append(d.notes, fmt.Sprintf("the card is %s, the board file describes %s", part, b.SKU))
	}
	if n, ok := d.card.microengines(); ok && n < int(b.Cores.Value) {
		return nil, fault.Inputf("the card has %d programmable microengines, board %s says %v: set cores in a board file of its own", n, b.Name, b.Cores.Value)
	}
	d.sku, d.platform, err = setup.target(b, part)
	return d, err
}

func (d *native) Board() *board.Board { return d.board }

// Measure builds the program's firmware unless it has been built before, loads
// it, sends packets, and counts at the card's ports what comes and goes. The
// firmware is unloaded whatever happens.
func (d *native) Measure(ctx context.Context, p program.Program, t traffic.Traffic, o microbench.Options) (s microbench.Sample, err error) {
	d.lock.Lock()
	defer d.lock.Unlock()
	if err := ctx.Err(); err != nil {
		return s, err
	}
	j, err := prepare(d.board, &d.setup, d.sku, d.platform, p, t, o)
	if err != nil {
		return s, err
	}
	p = d.board.Resolve(p)
	if err := d.build(ctx, j); err != nil {
		return s, err
	}
	scratch, err := os.MkdirTemp("", "nicprof-nfp-")
	if err != nil {
		return s, fault.Inputf("a directory for the packets to send: %w", err)
	}
	defer os.RemoveAll(scratch)
	sent := packetsOf(p, t, o.Seed)
	j.pcap = filepath.Join(scratch, sent.name())
	if err := sent.write(j.pcap); err != nil {
		return s, err
	}
	windows, err := d.windows(ctx, j, t, o)
	if err != nil {
		return s, d.lost(ctx, err)
	}
	s = microbench.Sample{
		Board: d.board.Name, Backend: microbench.Native, Status: microbench.StatusOK,
		Program: p, Traffic: t, Cores: j.cores, Threads: j.threads, Seed: o.Seed,
		Bottleneck: "not measured", Conditions: d.conditions(j),
		Warnings: append(slices.Clone(d.notes), "latency and utilisation are not measured on this board"),
	}
	if sent.Flows.Count > capturePackets {
		s.Warnings = append(s.Warnings, fmt.Sprintf("the sender repeats %d packets: at most so many of the %d flows", capturePackets, sent.Flows.Count))
	}
	return s, d.summarise(&s, windows)
}

// lost says with a failure that the card does not answer any more, if so: then it is
// not the measurement's, and a sweep has to stop. An interrupt is none.
func (d *native) lost(ctx context.Context, failed error) error {
	if ctx.Err() != nil {
		return failed
	}
	text, err := run(ctx, hwinfoOf(&d.setup))
	if err == nil {
		_, err = parseHwinfo(text)
	}
	if err == nil {
		return failed
	}
	return fault.Missingf("board %s: %w: %w; before that, %w", d.board.Name, microbench.ErrLost, err, failed)
}

// prepare checks what a card can run and generates its firmware.
func prepare(b *board.Board, setup *Setup, sku, platform string, p program.Program, t traffic.Traffic, o microbench.Options) (*job, error) {
	if err := b.Check(p, o.Cores, o.Threads); err != nil {
		return nil, err
	}
	p = b.Resolve(p)
	if t.Flows != nil {
		p.Flows = t.Flows
	}
	base, err := b.Base(p.Base)
	if err != nil {
		return nil, err
	}
	j := &job{setup: setup, sku: sku, platform: platform, cores: o.Cores, threads: o.Threads}
	if j.cores == 0 {
		j.cores = int(base.Cores.Value)
	}
	if j.threads == 0 {
		j.threads = int(base.Threads.Value)
	}
	if j.threads != reducedThreads && j.threads != int(b.Threads.Value) {
		return nil, fault.Inputf("%d threads a core; firmware is built for %v or, with --reduced-thread-usage, %d", j.threads, b.Threads.Value, reducedThreads)
	}
	if t.RateMpps > 0 && !setup.paces() {
		return nil, fault.Inputf("an offered rate of %v Mpps needs a sender that keeps to it: name one with {mpps} among its arguments in the set-up file", t.RateMpps)
	}
	if j.image, err = firmware.Generate(b, p); err != nil {
		return nil, err
	}
	j.dir = filepath.Join(setup.Images, j.name())
	return j, nil
}

// build compiles an image unless its directory is there. It is made under
// another name, so that a broken build leaves none.
func (d *native) build(ctx context.Context, j *job) error {
	if _, err := os.Stat(filepath.Join(j.dir, firmwareFile)); err == nil {
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fault.Inputf("built firmware: %w", err)
	}
	if err := os.MkdirAll(d.setup.Images, 0o755); err != nil {
		return fault.Inputf("the directory of built firmware: %w", err)
	}
	dir, err := os.MkdirTemp(d.setup.Images, "building-")
	if err != nil {
		return fault.Inputf("the directory of built firmware: %w", err)
	}
	defer os.RemoveAll(dir)
	building := *j
	building.dir = dir
	if err := writeSources(&building); err != nil {
		return err
	}
	if _, err := run(ctx, building.build()); err != nil {
		return err
	}
	for _, name := range []string{firmwareFile, filepath.Join("pifs", "pif_design.json")} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return fault.Checkf("nfp4build ended well but wrote no %s: %s", name, building.build())
		}
	}
	if err := os.Rename(dir, j.dir); err != nil {
		return fault.Inputf("built firmware: %w", err)
	}
	return nil
}

// writeSources writes an image's sources into its directory.
func writeSources(j *job) error {
	files, err := j.files()
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := atomicfile.Write(filepath.Join(j.dir, f.Name), f.Text); err != nil {
			return fault.Inputf("sources of the firmware: %w", err)
		}
	}
	return nil
}

// reading is a count of the card's ports. It was taken between two times.
type reading struct {
	macCount
	from, to time.Time
}

func (r reading) mid() time.Time { return r.from.Add(r.to.Sub(r.from) / 2) }

const (
	fewestWindows  = 3
	defaultWindows = 5
	startTime      = time.Minute // for the first packet to come
	pollTime       = 50 * time.Millisecond
)

// windows loads the firmware, starts the sender and reads the counters at the
// ends of windows of equal length.
func (d *native) windows(ctx context.Context, j *job, t traffic.Traffic, o microbench.Options) (counts []reading, err error) {
	// The run-time environment may hold a half-loaded design, or an interrupt
	// may come at any point: unload in every case, and say so when that fails.
	defer func() {
		after := context.WithoutCancel(ctx)
		if _, uerr := run(after, j.unload()); uerr == nil {
			return
		}
		if _, uerr := run(after, j.forceUnload()); uerr != nil {
			err = errors.Join(err, fmt.Errorf("the firmware may still be loaded: %w", uerr))
		}
	}()
	if _, err := run(ctx, j.load()); err != nil {
		return nil, err
	}
	if err := d.fill(ctx, j); err != nil {
		return nil, err
	}
	before, err := d.read(ctx, j)
	if err != nil {
		return nil, err
	}
	rate := "line"
	if t.RateMpps > 0 {
		rate = strconv.FormatFloat(t.RateMpps, 'g', -1, 64)
	}
	sender, err := start(j.setup.sender(j.pcap, rate))
	if err != nil {
		return nil, err
	}
	defer func() {
		if serr := sender.stop(); serr != nil && err == nil {
			err = serr
		}
	}()
	for deadline := time.Now().Add(startTime); ; {
		now, err := d.read(ctx, j)
		if err != nil {
			return nil, err
		}
		if now.received > before.received {
			break
		}
		if text, ended := sender.ended(); ended {
			return nil, fault.Checkf("the sender ended without sending: %s: %s", quote(sender.args), text)
		}
		if time.Now().After(deadline) {
			return nil, fault.Checkf("no packet has reached the card in %v: check the cable, the ports (in: %s, out: %s) and the sender: %s", startTime, j.setup.In, j.setup.Out, quote(sender.args))
		}
		if err := pause(ctx, pollTime); err != nil {
			return nil, err
		}
	}
	if err := pause(ctx, seconds(j.setup.SettleS)); err != nil {
		return nil, err
	}
	n := o.MaxRuns
	if n == 0 {
		n = defaultWindows
	}
	window := j.setup.WindowS
	if o.TrialSeconds > 0 {
		window = o.TrialSeconds / float64(max(n, fewestWindows))
	}
	for i := range max(n, fewestWindows) + 1 {
		if i > 0 {
			if err := pause(ctx, seconds(window)); err != nil {
				return nil, err
			}
		}
		r, err := d.read(ctx, j)
		if err != nil {
			return nil, err
		}
		counts = append(counts, r)
	}
	if text, ended := sender.ended(); ended {
		return nil, fault.Checkf("the sender ended while it was measured: %s: %s", quote(sender.args), text)
	}
	return counts, nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// pause waits, or returns the error of a context that ends.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fill writes the firmware's table and reads it back: a wrong word would be
// measured as another program.
func (d *native) fill(ctx context.Context, j *job) error {
	if !j.image.Table {
		return nil
	}
	for _, c := range j.writeTable() {
		if _, err := run(ctx, c); err != nil {
			return err
		}
	}
	text, err := run(ctx, j.readTable())
	if err != nil {
		return err
	}
	words, err := parseWords(text, firmware.ReadyWord+1)
	if err != nil {
		return err
	}
	for i, want := range j.words() {
		if words[i] != want {
			return fault.Checkf("nfp-rtsym: word %d of %s is %#x after %#x was written", i, firmware.Table, words[i], want)
		}
	}
	return nil
}

func (d *native) read(ctx context.Context, j *job) (reading, error) {
	r := reading{from: time.Now()}
	text, err := run(ctx, j.counters())
	if err != nil {
		return r, err
	}
	r.to = time.Now()
	r.macCount, err = parseMAC(text)
	return r, err
}

const (
	// lost is the least share of the packets that a saturated card drops, and
	// lineShare that of the line rate from which on the line is the limit.
	lost      = 0.005
	lineShare = 0.98
	// readSlack is the share by which packets sent may exceed those received:
	// the tool reads one counter after the other.
	readSlack = 0.01
)

// summarise turns counts into the sample's rates. The interval is that of the
// windows' rates, and at least what the times of the readings leave open.
func (d *native) summarise(s *microbench.Sample, counts []reading) error {
	var rates []float64
	for i := 1; i < len(counts); i++ {
		c, err := counts[i].since(counts[i-1].macCount)
		if err != nil {
			return err
		}
		rates = append(rates, float64(c.sent)/micros(counts[i].mid().Sub(counts[i-1].mid())))
	}
	first, last := counts[0], counts[len(counts)-1]
	all, err := last.since(first.macCount)
	if err != nil {
		return err
	}
	span := micros(last.mid().Sub(first.mid()))
	received, sent := float64(all.received)/span, float64(all.sent)/span
	if sent > received*(1+readSlack) {
		return fault.Checkf("the card sent %.4g Mpps and received %.4g: more packets left than came", sent, received)
	}
	if sent == 0 {
		return fault.Checkf("the card received %.4g Mpps and forwarded none: check its rules and ports (in: %s, out: %s)", received, d.setup.In, d.setup.Out)
	}
	s.Mpps, s.MedianMpps = sent, stats.Median(rates)
	longest, shortest := micros(last.to.Sub(first.from)), micros(last.from.Sub(first.to))
	s.Low, s.High = float64(all.sent)/longest, float64(all.sent)/shortest
	sum, err := stats.Summarise(rates)
	if err != nil {
		return err
	}
	half := stats.TQuantile(len(rates)-1) * sum.StdDev / math.Sqrt(float64(len(rates)))
	s.Low, s.High = min(s.Low, max(0, sent-half)), max(s.High, sent+half)
	s.Runs, s.Outliers = len(rates), len(stats.Outliers(rates))
	s.DurationUS = span
	s.OfferedMpps = received
	s.DroppedMpps = max(0, received-sent)
	if s.Traffic.RateMpps > 0 {
		return nil
	}
	line := d.lineRate(s)
	if s.DroppedMpps < lost*received && float64(all.received)/shortest < lineShare*line {
		return fault.Checkf("the sender offered %.4g Mpps and the card forwarded all of it: not saturated (the line takes %.4g); use a faster sender", received, line)
	}
	return nil
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// lineRate is the rate at which the sample's packets fill the board's link in
// one direction, Mpps, from one port when there are two.
func (d *native) lineRate(s *microbench.Sample) float64 {
	const overhead, ports = 20, 2
	size := float64(s.Program.PacketBytes)
	switch {
	case s.Traffic.Sizes != nil:
		size = s.Traffic.Sizes.Mean()
	case s.Traffic.PacketBytes > 0:
		size = float64(s.Traffic.PacketBytes)
	}
	return d.board.LinkGbps.Value / ports * 1000 / (8 * (size + overhead))
}

// conditions are what moves the numbers of a card.
func (d *native) conditions(j *job) map[string]string {
	c := map[string]string{
		"sku": d.card["assembly.partno"], "me_mhz": d.card["me.speed"],
		"microengines": strconv.Itoa(j.cores), "threads": strconv.Itoa(j.threads), "shared_codestore": "no",
		"firmware": j.image.ID(),
	}
	if v := d.card["bsp.version"]; v != "" {
		c["bsp"] = v
	}
	return c
}

// run runs a tool to its end and returns its standard output. The error names
// the tool, its arguments, and what it said.
func run(ctx context.Context, c command) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.most, fmt.Errorf("killed after %v", c.most))
	defer cancel()
	cmd := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
	cmd.WaitDelay = time.Second
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	switch {
	case err == nil:
		return out.String(), nil
	case errors.Is(ctx.Err(), context.Canceled):
		return "", ctx.Err()
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	said := strings.TrimSpace(errOut.String() + "\n" + out.String())
	return "", fault.Checkf("%s: %w: %s", c, err, excerpt(said))
}
