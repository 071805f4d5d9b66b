package packet

import (
	"context"
	"sort"

	"nicprof/cora/runtime"
	"nicprof/cora/runtime/system"
	"nicprof/emu"
	"nicprof/emu/bluefield"
	"nicprof/emu/host"
	"nicprof/emu/nfp"
	"nicprof/internal/fault"
	"nicprof/sim"
	"nicprof/traffic"
)

// Events of the emulation, above those of the NIC.
const (
	evArrival   = emu.StationKinds + iota
	evCores     // of the host
	evAtHost    // Arg: packet
	evAtNIC     // Arg: packet
	evTurn      // of the controller; Arg: version
	evSend      // Arg: packet, a command
	evInterval  // of the monitor
	evHeartbeat // of the monitor
	evSample
	evPhase // Arg: index
	evStall // a core of the host
	evProbe
)

type kind uint8

const (
	data    kind = iota
	command      // to the NIC
	echo         // to the host
)

// rec is a packet or message on its way.
type rec struct {
	kind      kind
	tag       runtime.Tag
	path      int32
	side      system.Side
	returning bool // from the host to the wire
	verdict   runtime.Verdict
	release   bool // echo: the flow's held packets go on with it
	answers   bool // the core sends reply
	has       bool // a candidate
	flow      uint32
	seq       uint32
	bytes     float64
	idle      float64 // µs, of the thread that took it
	candidate runtime.Candidate
	msg       runtime.Message
	reply     runtime.Message
	sent      sim.Time // command
}

// islandThreads is the contexts of an NFP's island, as the authors' release
// counts them.
const islandThreads = 96

// Islands is how many islands, each with a sketch, a NIC's threads make.
func Islands(threads int) int { return (threads + islandThreads - 1) / islandThreads }

// level is a run.
type level struct {
	c       *Config
	sys     *system.System
	k       *sim.Kernel
	station emu.Station
	link    *host.Link
	cores   *host.Cores

	nic      *runtime.NIC
	host     *runtime.Host
	ctl      *runtime.Controller
	monitor  *runtime.Monitor
	islands  []*runtime.Island
	injector *runtime.Injector
	version  int64 // of the controller's next turn

	arrivals, choice *sim.Stream
	flows            traffic.Popularity
	gap              float64   // ps
	bytes            float64   // of a packet
	upTo             []float64 // by path: its share and those before
	pool             sim.Pool[rec]
	given, left      []uint32           // by flow: sequence numbers
	held             map[uint32][]int64 // by flow: packets that wait for its data
	inside           int64              // packets

	now, was tally
	taken    int64 // by threads, this interval
	result   Result
	echoes   sim.Time
	echoed   int64
	probe    probe
}

// tally counts since the start.
type tally struct {
	at                                           sim.Time
	offered, nic, host, ended, visits, reordered int64
	ingress, back, toHost, ring, toNIC           int64
	evicted, offloaded                           uint64
	cores                                        sim.Time
	idle                                         float64 // µs
	idles                                        int64
	pcie                                         [2]float64 // bytes
}

// probe is a migration that is timed.
type probe struct {
	flow    uint32
	evict   bool
	running bool
	began   sim.Time
	before  int64 // packets reordered
}

// Run emulates a system. An error is the system's or the context's.
func Run(ctx context.Context, sys *system.System, c Config) (*Result, error) {
	l, err := newLevel(sys, &c)
	if err != nil {
		return nil, err
	}
	const poll = 1 << 14
	end := c.Warm + c.Length
	for n := 0; ; n++ {
		if n%poll == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		ev, ok := l.k.Next()
		if !ok || ev.At > end {
			break
		}
		l.handle(ev)
	}
	return l.finish(), nil
}

func newLevel(sys *system.System, c *Config) (*level, error) {
	if err := c.Runtime.Check(); err != nil {
		return nil, err
	}
	if c.HostCores < 1 || len(c.Phases) == 0 || !(c.Phases[0].Mpps > 0) || c.Length <= 0 {
		return nil, fault.Inputf("packet level: %d host cores, %d phases, %v ps; expected at least one core, a phase with a rate and a length", c.HostCores, len(c.Phases), c.Length)
	}
	flows := len(sys.Shares)
	l := &level{
		c: c, sys: sys, k: sim.New(),
		link:     host.NewLink(sys.Board.PCIe, 0),
		nic:      runtime.NewNIC(c.Runtime, uint32(flows)),
		host:     runtime.NewHost(c.Runtime, uint32(flows)),
		monitor:  runtime.NewMonitor(c.Runtime),
		injector: runtime.NewInjector(c.Faults, c.Seed),
		arrivals: sim.NewStream(c.Seed, "packet level arrival"),
		choice:   sim.NewStream(c.Seed, "packet level choice"),
		flows:    system.Sampler(sys.Shares),
		bytes:    sys.Bytes,
		given:    make([]uint32, flows), left: make([]uint32, flows),
		held: map[uint32][]int64{},
	}
	l.nic.WriteFails = l.injector.WriteFails
	l.ctl = runtime.NewController(c.Runtime, l.host, c.Seed)
	l.cores = host.NewCores(l.k, evCores, c.HostCores, 0, l)
	total := 0.0
	for _, p := range sys.Paths {
		total += p.Share
		l.upTo = append(l.upTo, total)
	}
	for i := range l.upTo {
		l.upTo[i] /= total
	}
	for f := range uint32(flows) {
		if sys.OnNIC[f] {
			l.nic.Install(f, 0)
		}
		l.host.Install(f, sys.OnNIC[f], 0)
	}
	config := emu.Config{Seed: c.Seed}
	var err error
	if sys.Board.Class == "soc" {
		l.station, err = bluefield.NewStation(l.k, sys.Board, sys.Programs, l, config)
	} else {
		l.station, err = nfp.NewStation(l.k, sys.Board, sys.Programs, l, config)
	}
	if err != nil {
		return nil, err
	}
	for range Islands(l.station.Threads()) {
		l.islands = append(l.islands, runtime.NewIsland(islandThreads))
	}
	if g := c.Faults.PCIeGbps; g > 0 {
		all := sys.Board.PCIe.LargeReadGbps.Value
		if g >= all {
			return nil, fault.Inputf("fault pcie=%v: PCIe has %v Gb/s; expected less", g, all)
		}
		l.link.Slow(all / (all - g))
	}
	l.begin()
	return l, nil
}

// begin schedules what happens of itself.
func (l *level) begin() {
	c := l.c
	l.phase(0)
	l.k.At(l.wait(), evArrival, 0, 0)
	for i := 1; i < len(c.Phases); i++ {
		l.k.At(c.Warm+seconds(c.Phases[i].AtS), evPhase, 0, int64(i))
	}
	l.k.At(micro(c.Runtime.IntervalUS), evInterval, 0, 0)
	if c.Runtime.Heartbeats > 0 {
		l.k.At(seconds(1/c.Runtime.Heartbeats), evHeartbeat, 0, 0)
	}
	if c.Sample == 0 {
		c.Sample = c.Length
	}
	l.k.At(c.Warm, evSample, 0, 0)
	if !c.Still {
		l.turn(0)
	}
	if c.Probe > 0 {
		l.k.At(c.Warm, evProbe, 0, 0)
	}
	if c.Faults.StallMS > 0 {
		l.k.At(c.Warm+seconds(c.Faults.StallAtS), evStall, 0, 0)
	}
}

func seconds(s float64) sim.Time { return sim.Time(s * float64(sim.Second)) }

func micro(us float64) sim.Time { return sim.Time(us * float64(sim.Microsecond)) }

func (l *level) us() float64 { return float64(l.k.Now()) / float64(sim.Microsecond) }

func (l *level) wait() sim.Time { return sim.Time(l.arrivals.ExpFloat64() * l.gap) }

func (l *level) handle(ev sim.Event) {
	if ev.Kind < emu.StationKinds {
		l.station.Handle(ev)
		return
	}
	switch ev.Kind {
	case evArrival:
		l.k.After(l.wait(), evArrival, 0, 0)
		l.arrive()
	case evCores:
		l.cores.Handle(ev)
	case evAtHost:
		l.atHost(ev.Arg)
	case evAtNIC:
		l.atNIC(ev.Arg)
	case evTurn:
		if ev.Arg == l.version {
			l.step()
		}
	case evSend:
		l.send(ev.Arg)
	case evInterval:
		l.interval()
	case evHeartbeat:
		l.k.After(seconds(1/l.c.Runtime.Heartbeats), evHeartbeat, 0, 0)
		l.command(runtime.Message{Op: runtime.OpMonitor}, 0)
	case evSample:
		l.sample()
	case evPhase:
		l.phase(int(ev.Arg))
	case evStall:
		l.cores.Stall(0, l.k.Now()+micro(1000*l.c.Faults.StallMS))
	case evProbe:
		l.startProbe()
	}
}

// phase changes the traffic or the NIC's table.
func (l *level) phase(i int) {
	p := l.c.Phases[i]
	if p.Mpps > 0 {
		l.gap = 1e6 / p.Mpps
	}
	if p.Bytes > 0 {
		l.bytes = p.Bytes
	}
	if p.Entries > 0 {
		l.nic.SetEntries(p.Entries)
		l.ctl.SetEntries(p.Entries)
	}
	if p.Shares != nil {
		l.flows = system.Sampler(p.Shares)
	}
}

// get takes a record from the pool.
// drop ends a packet or message that found no room.
func (l *level) drop(i int64, place *int64) {
	if l.pool.Items[i].kind == data {
		*place++
		l.inside--
	}
	l.pool.Free(int32(i))
}

// arrive is a packet from the wire.
func (l *level) arrive() {
	l.now.offered++
	l.inside++
	r := rec{bytes: l.bytes, flow: uint32(l.flows.Draw(l.choice.Rand))}
	if len(l.upTo) > 1 {
		r.path = int32(sort.SearchFloat64s(l.upTo, l.choice.Float64()))
	}
	r.seq = l.given[r.flow]
	i := int64(l.pool.Put(r))
	if !l.station.Offer(i, int64(r.flow), r.bytes, emu.Wire) {
		l.drop(i, &l.now.ingress)
		return
	}
	l.given[r.flow]++
}

// Begin is the look-up of a packet by a thread of the NIC.
func (l *level) Begin(packet int64, thread int, idle sim.Time) (program int) {
	l.taken++
	r := &l.pool.Items[packet]
	r.idle = float64(idle) / float64(sim.Microsecond)
	l.now.idle += r.idle
	l.now.idles++
	island, member := l.islands[thread/islandThreads], thread%islandThreads
	if r.kind == command {
		m, ok := l.nic.Control(r.msg)
		r.kind = echo
		r.msg = m
		r.answers = ok
		r.candidate, r.has = island.Take(member)
		return l.sys.Control
	}
	path := &l.sys.Paths[r.path]
	if r.returning {
		return path.Routes[r.side].In
	}
	r.side, r.tag = system.NIC, runtime.TagPlain
	if path.Managed {
		switch d := l.nic.Packet(r.flow); d.Action {
		case runtime.Serve:
			island.Served(member, r.flow)
		default: // a flow alone in its entry is never dropped
			r.side, r.tag = system.Host, d.Tag
		}
	}
	route := &path.Routes[r.side]
	if route.Host {
		r.candidate, r.has = island.Take(member)
	}
	return route.Out
}

// Done is a packet that leaves the NIC.
func (l *level) Done(packet int64) {
	r := &l.pool.Items[packet]
	if r.kind == echo {
		if !r.answers {
			l.pool.Free(int32(packet))
			return
		}
		l.cross(packet, host.ToHost)
		return
	}
	path := &l.sys.Paths[r.path]
	route := &path.Routes[r.side]
	if path.Managed && !r.returning && r.side == system.NIC {
		l.nic.Served(r.flow, 1)
	}
	switch {
	case r.returning:
		if path.Managed && r.side == system.Host {
			l.nic.Returned(r.flow, 1)
		}
		l.leave(packet, &l.now.host)
	case route.Host:
		l.cross(packet, host.ToHost)
	default:
		l.leave(packet, &l.now.nic)
	}
}

// leave is a packet on the wire.
func (l *level) leave(packet int64, count *int64) {
	r := &l.pool.Items[packet]
	*count++
	l.inside--
	if r.seq < l.left[r.flow] {
		l.now.reordered++
	}
	l.left[r.flow] = max(l.left[r.flow], r.seq)
	l.pool.Free(int32(packet))
}

// cross sends a packet or message over PCIe. Faults of messages happen here.
func (l *level) cross(packet int64, to host.Direction) {
	r := &l.pool.Items[packet]
	times, late := 1, sim.Time(0)
	bytes := r.bytes
	if r.kind != data {
		bytes = runtime.ControlBytes
		n, us := l.injector.Control()
		times, late = n, micro(us)
	}
	if times == 0 {
		l.pool.Free(int32(packet))
		return
	}
	for n := range times {
		i := packet
		if n > 0 {
			i = int64(l.pool.Put(l.pool.Items[packet]))
		}
		at, ok := l.link.Send(to, l.k.Now(), bytes)
		if !ok {
			if to == host.ToHost {
				l.drop(i, &l.now.toHost)
			} else {
				l.drop(i, &l.now.toNIC)
			}
			continue
		}
		if n == times-1 {
			at += late
		}
		l.now.pcie[to] += bytes
		if to == host.ToHost {
			l.k.At(at, evAtHost, 0, i)
		} else {
			l.k.At(at, evAtNIC, 0, i)
		}
	}
}

// atHost puts a packet into the ring of its flow's core.
func (l *level) atHost(packet int64) {
	r := &l.pool.Items[packet]
	if !l.cores.Offer(CoreOf(r.flow, l.cores.N()), packet) {
		l.drop(packet, &l.now.ring)
	}
}

// CoreOf spreads flows over cores as receive-side scaling does: by a hash.
func CoreOf(flow uint32, cores int) int {
	h := uint64(flow)*0x9e3779b97f4a7c15 ^ 0x5851f42d4c957f2d
	h *= 0xda942042e4dd58b5
	return int(h >> 32 * uint64(cores) >> 32)
}

// Serve is a core that begins a packet or an echo.
func (l *level) Serve(_ int, packet int64) sim.Time {
	r := &l.pool.Items[packet]
	l.monitor.Reading(r.idle)
	if r.has {
		l.ctl.Report(r.candidate)
	}
	ns := l.sys.PacketNS
	if r.kind == echo {
		l.echoes += l.k.Now() - r.sent
		l.echoed++
		r.reply, r.answers, r.release = l.host.Control(r.msg)
		if r.release {
			for _, p := range l.held[r.flow] {
				ns += l.routeOf(p).HostNS
			}
		}
		return sim.Time(ns * float64(sim.Nanosecond))
	}
	r.verdict, r.answers = runtime.HostServes, false
	if l.sys.Paths[r.path].Managed && r.side == system.Host {
		l.ctl.Count(r.flow, 1)
		r.verdict, r.reply, r.answers = l.host.Packet(r.flow, r.tag)
	}
	if r.verdict == runtime.HostServes {
		ns = l.routeOf(packet).HostNS
		l.now.visits++
	}
	return sim.Time(ns * float64(sim.Nanosecond))
}

func (l *level) routeOf(packet int64) *system.Route {
	r := &l.pool.Items[packet]
	return &l.sys.Paths[r.path].Routes[r.side]
}

// Sent is a packet or echo whose burst a core has sent.
func (l *level) Sent(_ int, packet int64) {
	r := &l.pool.Items[packet]
	if r.answers {
		l.command(r.reply, 0)
		r = &l.pool.Items[packet]
	}
	if r.kind == echo {
		flow, release := r.flow, r.release
		l.pool.Free(int32(packet))
		if release {
			waiting := l.held[flow]
			delete(l.held, flow)
			for _, p := range waiting {
				l.now.visits++
				l.host.Release(flow)
				l.goBack(p)
			}
		}
		l.ended(flow)
		return
	}
	switch r.verdict {
	case runtime.HostHolds:
		l.held[r.flow] = append(l.held[r.flow], packet)
	case runtime.HostBounces:
		l.cross(packet, host.ToNIC)
	default:
		l.goBack(packet)
	}
}

// goBack returns a packet to the NIC's egress, or ends it where it belongs to
// the host.
func (l *level) goBack(packet int64) {
	if l.routeOf(packet).In == system.None {
		l.now.ended++
		l.inside--
		l.pool.Free(int32(packet))
		return
	}
	l.pool.Items[packet].returning = true
	l.cross(packet, host.ToNIC)
}

// atNIC is a packet or message from the host.
func (l *level) atNIC(packet int64) {
	r := &l.pool.Items[packet]
	bytes := r.bytes
	if r.kind != data {
		bytes = runtime.ControlBytes
	}
	if !l.station.Offer(packet, int64(r.flow), bytes, emu.FromHost) {
		l.drop(packet, &l.now.back)
	}
}

// command sends a message to the NIC after a time.
func (l *level) command(m runtime.Message, after sim.Time) {
	i := int64(l.pool.Put(rec{kind: command, msg: m, flow: l.c.Runtime.Flow(m.Entry)}))
	if after > 0 {
		l.k.After(after, evSend, 0, i)
		return
	}
	l.send(i)
}

func (l *level) send(packet int64) {
	l.pool.Items[packet].sent = l.k.Now()
	l.cross(packet, host.ToNIC)
}

// turn gives the controller its next turn after a time, instead of the one that
// was planned.
func (l *level) turn(after sim.Time) {
	l.version++
	l.k.After(after, evTurn, 0, l.version)
}

func (l *level) step() {
	t := l.ctl.Step(l.us())
	if t.Send {
		l.command(t.Message, micro(t.SearchUS))
	}
	l.turn(max(sim.Nanosecond, micro(t.WaitUS)))
}

// ended looks whether a flow's migration has ended: then the controller has its
// turn at once.
func (l *level) ended(flow uint32) {
	if l.host.Pending(flow) {
		return
	}
	if p := &l.probe; p.running && p.flow == flow {
		p.running = false
		l.result.Migrations = append(l.result.Migrations, Migration{
			AtS: l.since(p.began), Evict: p.evict,
			TookUS:    float64(l.k.Now()-p.began) / float64(sim.Microsecond),
			Reordered: l.now.reordered - p.before,
		})
	}
	if !l.c.Still {
		l.turn(0)
	}
}

func (l *level) since(t sim.Time) float64 { return float64(t-l.c.Warm) / float64(sim.Second) }

// startProbe moves a flow, drawn by its packets, to the other side.
func (l *level) startProbe() {
	l.k.After(l.c.Probe, evProbe, 0, 0)
	if l.probe.running {
		return
	}
	f := uint32(l.flows.Draw(l.choice.Rand))
	m, ok := l.host.Evict(f)
	evict := ok
	if !ok {
		if m, ok = l.host.Offload(f); !ok {
			return
		}
	}
	l.probe = probe{flow: f, evict: evict, running: true, began: l.k.Now(), before: l.now.reordered}
	l.command(m, 0)
}

// interval is the end of one of the monitor's.
func (l *level) interval() {
	us := l.c.Runtime.IntervalUS
	l.k.After(micro(us), evInterval, 0, 0)
	l.monitor.Interval(float64(l.taken) / us)
	l.taken = 0
	l.ctl.Interval()
	for _, i := range l.islands {
		i.Clear()
	}
	if l.c.Still {
		return
	}
	m, times := l.monitor.Flag(l.host.NICLoad())
	for range times {
		l.command(m, 0)
	}
}

// sample ends a stretch of the timeline.
func (l *level) sample() {
	l.k.After(l.c.Sample, evSample, 0, 0)
	now := &l.now
	now.at = l.k.Now()
	now.cores = 0
	for i := range l.cores.N() {
		now.cores += l.cores.Busy(i, now.at)
	}
	now.evicted, now.offloaded = l.ctl.Evicted, l.ctl.Offloaded
	if span := now.at - l.was.at; now.at > l.c.Warm {
		l.result.Samples = append(l.result.Samples, l.between(&l.was, now, span))
	}
	l.was = *now
}

func (l *level) between(was, now *tally, span sim.Time) Sample {
	us := float64(span) / float64(sim.Microsecond)
	rate := func(from, to int64) float64 { return float64(to-from) / us }
	s := Sample{
		AtS: l.since(now.at), Offered: rate(was.offered, now.offered), NIC: rate(was.nic, now.nic),
		Host: rate(was.host+was.ended, now.host+now.ended), Visits: rate(was.visits, now.visits),
		Dropped: Drops{
			Ingress: rate(was.ingress, now.ingress), Return: rate(was.back, now.back),
			ToHost: rate(was.toHost, now.toHost), Ring: rate(was.ring, now.ring), ToNIC: rate(was.toNIC, now.toNIC),
		},
		Cores: float64(now.cores-was.cores) / float64(span), Load: l.host.NICLoad(), Flows: l.nic.Entries(),
		Busy:    float64(l.station.Threads()) - (now.idle-was.idle)/us,
		Evicted: now.evicted - was.evicted, Offloaded: now.offloaded - was.offloaded, Reordered: now.reordered - was.reordered,
	}
	if n := now.idles - was.idles; n > 0 {
		s.IdleUS = (now.idle - was.idle) / float64(n)
	}
	for d := range s.PCIe {
		s.PCIe[d] = (now.pcie[d] - was.pcie[d]) * 8 / us / 1000
	}
	return s
}

func (l *level) finish() *Result {
	n := &l.now
	r := &l.result
	r.Counts = Counts{
		Offered: n.offered, Left: n.nic + n.host, Ended: n.ended,
		Dropped: n.ingress + n.back + n.toHost + n.ring + n.toNIC, Inside: l.inside,
	}
	if l.echoed > 0 {
		r.EchoUS = float64(l.echoes) / float64(l.echoed) / float64(sim.Microsecond)
	}
	r.Threads = l.station.Threads()
	r.NIC, r.Host, r.Injector = l.nic, l.host, l.injector
	return r
}
