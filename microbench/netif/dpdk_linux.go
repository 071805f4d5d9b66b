package netif

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"

	"nicprof/internal/fault"
	"nicprof/internal/linux"
	"nicprof/microbench"
	"nicprof/microbench/testpmd"
)

// DPDK's memory: 16384 packet buffers of 2304 B and what belongs to them.
const (
	dpdkMB    = 128
	dpdkMbufs = 16384
	// ringBursts of 32 packets are put into each ring to go round.
	ringBursts = 4
)

// measureDPDK runs the trials of a base of board dpdk.
func measureDPDK(ctx context.Context, way route, r request, s *microbench.Sample) error {
	pages := map[string]string{"pages": "small, as asked"}
	huge := false
	if !way.smallPages {
		p, release, err := reserveHugePages(hugePages, dpdkMB)
		defer release()
		if huge = err == nil; huge {
			pages["pages"] = p
		} else {
			pages["pages"] = "small"
			s.Warnings = append(s.Warnings, "no huge pages: "+err.Error())
		}
	}
	c := testpmd.Config{Mode: way.mode, MemoryMB: dpdkMB, Mbufs: dpdkMbufs, HugePages: huge}
	var err error
	if way.device == "veth" {
		err = checkSizes(r.program, r.traffic, 1518)
		if err == nil {
			err = overCables(ctx, r, s, func(l *lab, at cpus, _ int) (forwarder, error) { return newDPDKForwarder(ctx, l, at, c) })
		}
	} else {
		err = withoutCables(ctx, way, r, s, c)
	}
	if err == nil {
		maps.Copy(s.Conditions, pages)
	}
	return err
}

// withoutCables measures devices that no generator feeds: net_null makes
// packets out of nothing, net_ring has some go round.
func withoutCables(ctx context.Context, way route, r request, s *microbench.Sample, c testpmd.Config) error {
	if r.traffic.RateMpps > 0 {
		return fault.Inputf("base %s: a %s device makes its packets as fast as they are taken; it cannot be offered a rate", r.program.Base, way.device)
	}
	size := r.program.PacketBytes
	if r.traffic.PacketBytes > 0 {
		size = r.traffic.PacketBytes
	}
	if r.traffic.Sizes != nil || size > 1518 {
		return fault.Inputf("base %s: a %s device makes packets of one size, of at most 1518 B", r.program.Base, way.device)
	}
	allowed, err := linux.CPUs()
	if err != nil {
		return err
	}
	at := place(allowed)
	c.CPUs = []int{at.generator, at.forwarder}
	bursts := 0
	for i := range 2 {
		device := fmt.Sprintf("net_%s%d", way.device, i)
		if way.device == "null" {
			device += fmt.Sprintf(",size=%d", size-checkSequence)
		}
		c.Vdevs = append(c.Vdevs, device)
	}
	if way.device == "ring" {
		bursts = ringBursts
		c.TxBytes = size - checkSequence
	} else if way.mode == "csum" || way.mode == "5tswap" {
		s.Warnings = append(s.Warnings, "net_null's packets have no headers: "+way.mode+" looks at them and finds none to change")
	}
	session, err := testpmd.Start(ctx, c)
	if err != nil {
		return err
	}
	closed := false
	defer func() {
		if !closed {
			_ = session.Close() // the measurement has failed already
		}
	}()
	if err := session.Forward(ctx, bursts); err != nil {
		return err
	}
	if _, err := session.Window(ctx, r.warmUpTrial()); err != nil {
		return err
	}
	s.Conditions = map[string]string{
		"path": session.Version + " testpmd, two ports of net_" + way.device + " on one core", "kernel": kernel(),
		"processors": fmt.Sprintf("forwarder on %d", at.forwarder),
	}
	lost := uint64(0)
	err = trials(ctx, r, s, func(ctx context.Context) (outcome, error) {
		w, err := session.Window(ctx, r.trial)
		if err != nil {
			return outcome{}, err
		}
		o := outcome{
			mpps: w.Mpps, offered: w.RxMpps, dropped: millions(int64(w.Lost-lost), w.Seconds), seconds: w.Seconds,
			cpu:    map[string]float64{partForwarder: w.CPUNS},
			busy:   map[string]float64{partForwarder: w.CPUNS * w.Mpps / 1e3},
			waited: w.Waited,
		}
		lost = w.Lost
		return o, nil
	})
	if err != nil {
		return err
	}
	s.Bottleneck = partForwarder // its core polls, and nothing else has a part in it
	closed = true
	return session.Close()
}

// dpdkForwarder forwards by DPDK's testpmd over packet sockets on the inner ends
// of the cables.
type dpdkForwarder struct {
	ctx     context.Context
	session *testpmd.Session
	in      port
	mode    string
	before  testpmd.Counts
	usage   testpmd.Usage
	began   time.Time
	rx      uint64
}

func newDPDKForwarder(ctx context.Context, l *lab, at cpus, c testpmd.Config) (forwarder, error) {
	c.CPUs = []int{at.sink, at.forwarder}
	for i, p := range []port{l.in, l.out} {
		c.Vdevs = append(c.Vdevs, fmt.Sprintf("net_af_packet%d,iface=%s,blocksz=%d,framesz=2048,framecnt=%d", i, p.name, blockBytes, ringFrames))
	}
	f := &dpdkForwarder{ctx: ctx, in: l.in, mode: c.Mode}
	err := l.inner.do(func() (err error) {
		f.session, err = testpmd.Start(ctx, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := f.session.Forward(ctx, 0); err != nil {
		return nil, errors.Join(err, f.session.Close())
	}
	return f, nil
}

func (f *dpdkForwarder) begin(uint16) error {
	counts, err := f.session.Counts(f.ctx)
	if err != nil {
		return err
	}
	interfaceCounts, err := f.in.counts()
	if err != nil {
		return err
	}
	f.before, f.rx = counts.Total, interfaceCounts.RxPackets
	f.began = time.Now()
	f.usage, err = f.session.Usage()
	return err
}

// end has no counter of the packets that found the receive ring full: DPDK 22.11
// does not ask its packet sockets. They are what the interface received and
// testpmd did not.
func (f *dpdkForwarder) end() (handled, error) {
	counts, u, err := f.drained()
	if err != nil {
		return handled{}, err
	}
	polled := time.Since(f.began)
	received, err := f.in.counts()
	if err != nil {
		return handled{}, err
	}
	after := counts.Total
	h := handled{
		arrived: int64(after.RxPackets - f.before.RxPackets), forwarded: int64(after.TxPackets - f.before.TxPackets),
		usage: usage{u.Ran - f.usage.Ran, u.Waited - f.usage.Waited}, polled: polled,
	}
	h.dropped = map[string]int64{
		causeRing:     int64(received.RxPackets-f.rx) - h.arrived,
		causeTransmit: int64(after.TxDropped - f.before.TxDropped),
	}
	return h, nil
}

// drained returns the counts once the forwarding thread has polled for drainTime,
// by its own processor time, without finding a packet.
func (f *dpdkForwarder) drained() (last testpmd.Forward, u testpmd.Usage, err error) {
	// A full ring of 4096 packets takes it some 6 ms.
	const drainTime = 20 * time.Millisecond
	since := time.Now()
	ran := time.Duration(-1)
	for {
		counts, err := f.session.Counts(f.ctx)
		if err != nil {
			return last, u, err
		}
		if u, err = f.session.Usage(); err != nil {
			return last, u, err
		}
		switch {
		case ran < 0 || counts.Total != last.Total:
			last, ran = counts, u.Ran
		case u.Ran-ran >= drainTime:
			return last, u, nil
		case time.Since(since) > drainMost:
			return last, u, fault.Checkf("testpmd has had no processor for %v of the last %v: the packets in its ring cannot be counted; stop other work", drainTime-(u.Ran-ran), drainMost)
		}
		time.Sleep(drainTime / 4)
	}
}

// drainMost is how long a forwarder may take to empty its ring.
const drainMost = 5 * time.Second

// change is what the forwarding modes do to a packet.
func (f *dpdkForwarder) change() change {
	switch f.mode {
	case "macswap":
		return change{macs: swapped}
	case "5tswap":
		return change{macs: swapped, tuple: true}
	case "io":
		return change{macs: kept}
	}
	return change{macs: rewritten} // the ports' own addresses
}

func (f *dpdkForwarder) conditions() map[string]string {
	return map[string]string{"path": f.session.Version + " testpmd, net_af_packet on both inner ends"}
}

func (f *dpdkForwarder) close() error { return f.session.Close() }

// hugePages is the pool of the default huge page size.
const hugePages = "/sys/kernel/mm/hugepages/hugepages-2048kB"

// reserveHugePages sees to it that so many MB of huge pages are free, and says
// how many there are. release puts the pool back to its size; a process that is
// killed leaves it as it is.
func reserveHugePages(pool string, mb int) (what string, release func(), err error) {
	release = func() {}
	const pageMB = 2
	need := (mb + pageMB - 1) / pageMB
	free, err := readNumber(pool + "/free_hugepages")
	if err != nil {
		return "", release, fmt.Errorf("this kernel has no pool of 2 MB pages: %w", err)
	}
	if free >= need {
		return fmt.Sprintf("%d huge pages of 2 MB, reserved before", need), release, nil
	}
	size, err := readNumber(pool + "/nr_hugepages")
	if err != nil {
		return "", release, err
	}
	grow := func(n int) error {
		return os.WriteFile(pool+"/nr_hugepages", fmt.Appendf(nil, "%d\n", n), 0)
	}
	if err := grow(size + need - free); err != nil {
		return "", release, fmt.Errorf("the pool cannot be enlarged: %w", err)
	}
	release = func() { _ = grow(size) } // it could be written a moment ago
	if free, err = readNumber(pool + "/free_hugepages"); err != nil || free < need {
		release()
		return "", func() {}, errors.Join(err, fmt.Errorf("memory is too fragmented for %d pages of 2 MB; reserve them after booting: echo %d > %s/nr_hugepages", need, need, pool))
	}
	return fmt.Sprintf("%d huge pages of 2 MB, reserved for this measurement", need), release, nil
}

func readNumber(path string) (int, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	var n int
	if _, err := fmt.Sscan(strings.TrimSpace(string(data)), &n); err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return n, nil
}
