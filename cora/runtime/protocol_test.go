package runtime

import (
	"math"
	"testing"

	"nicprof/internal/fault"
)

// options of tests: little of everything.
func options() Options {
	o := Defaults()
	o.Entries, o.Slots, o.Groups = 2, 8, 2
	return o
}

// pass hands a message to the NIC and its echo to the host, and so on until
// nobody answers.
func pass(n *NIC, h *Host, m Message) (ops []Op, release bool) {
	for send := true; send; {
		ops = append(ops, m.Op)
		echo, ok := n.Control(m)
		if !ok {
			return ops, release
		}
		var r bool
		m, send, r = h.Control(echo)
		release = release || r
	}
	return ops, release
}

func TestFlowIsPlacedMovesToTheHostAndBack(t *testing.T) {
	n, h := NewNIC(options(), 4), NewHost(options(), 4)
	d := n.Packet(1)
	if d != (Decision{ToHost, TagInit}) || n.State(1) != Initial {
		t.Fatalf("first packet: %+v, entry %v", d, n.State(1))
	}
	v, m, send := h.Packet(1, d.Tag)
	if v != HostBounces || !send || m.Op != OpOffload || h.Phase(1) != Handing {
		t.Fatalf("host %v, %+v, phase %v", v, m, h.Phase(1))
	}
	pass(n, h, m)
	if d := n.Packet(1); d.Action != Serve || h.Phase(1) != Remote || n.Entries() != 1 {
		t.Fatalf("placed: %+v, phase %v, %d entries", d, h.Phase(1), n.Entries())
	}
	n.Served(1, 1)

	m, _ = h.Evict(1)
	ops, release := pass(n, h, m)
	if len(ops) != 2 || ops[0] != OpToCPU || ops[1] != OpEvict || !release {
		t.Errorf("eviction: %v, release %v", ops, release)
	}
	if n.State(1) != Invalid || h.Phase(1) != Serving || h.Value(1) != 1 || n.Entries() != 0 || h.OnHost() != 1 {
		t.Errorf("evicted: %v, %v, value %d, %d entries", n.State(1), h.Phase(1), h.Value(1), n.Entries())
	}
	d = n.Packet(1)
	if v, _, send := h.Packet(1, d.Tag); v != HostServes || send || d.Tag != TagPlain {
		t.Errorf("packet of the host's flow: %+v, %v", d, v)
	}
	n.Returned(1, 1)

	m, _ = h.Offload(1)
	ops, _ = pass(n, h, m)
	if len(ops) != 2 || ops[0] != OpToNIC || ops[1] != OpOffload {
		t.Errorf("offload: %v", ops)
	}
	if n.State(1) != Valid || h.Phase(1) != Remote || n.Value(1) != 2 || n.Load(1) != 2 || h.OnNIC() != 1 {
		t.Errorf("offloaded: %v, %v, value %d, load %d", n.State(1), h.Phase(1), n.Value(1), n.Load(1))
	}
}

func TestPairMovesTogetherAndItsAnswersAreNotNewFlows(t *testing.T) {
	o := options()
	o.Pairs = true
	n, h := NewNIC(o, 4), NewHost(o, 4)
	if d := n.Packet(3); d.Action != Drop || n.State(3) != Absent {
		t.Errorf("answer to nothing: %+v, entry %v", d, n.State(3))
	}
	d := n.Packet(2)
	if n.State(3) != Initial || n.Entries() != 2 {
		t.Errorf("other half %v, %d entries", n.State(3), n.Entries())
	}
	_, m, _ := h.Packet(2, d.Tag)
	pass(n, h, m)
	n.Served(2, 1)
	n.Served(3, 2)
	if d := n.Packet(0); d != (Decision{ToHost, TagPlain}) || n.State(1) != Invalid {
		t.Errorf("no room for two more: %+v, other half %v", d, n.State(1))
	}
	m, _ = h.Evict(1)
	pass(n, h, m)
	if n.State(2) != Invalid || n.State(3) != Invalid || h.Value(2) != 1 || h.Value(3) != 2 {
		t.Errorf("%v %v, values %d %d", n.State(2), n.State(3), h.Value(2), h.Value(3))
	}
}

func TestHostDecidesByRoomAndShare(t *testing.T) {
	o := options()
	o.Entries, o.NewOnNIC = 1000, 0.3
	h := NewHost(o, 1000)
	for e := range uint32(1000) {
		h.Packet(e, TagInit)
	}
	if n := h.OnNIC(); n < 250 || n > 350 || n+h.OnHost() != 1000 {
		t.Errorf("%d of 1000 new flows for the NIC, %d on the host; expected some 300", n, h.OnHost())
	}
	o.Entries, o.NewOnNIC = 10, 1
	h = NewHost(o, 100)
	for e := range uint32(100) {
		h.Packet(e, TagInit)
	}
	if h.OnNIC() != 10 {
		t.Errorf("%d flows for a NIC with room for 10", h.OnNIC())
	}
}

func TestOptionsAreChecked(t *testing.T) {
	if err := Defaults().Check(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Options){
		"groups":     func(o *Options) { o.Groups = 0 },
		"slots":      func(o *Options) { o.Slots = o.Entries - 1 },
		"share":      func(o *Options) { o.NewOnNIC = 1.1 },
		"repeat":     func(o *Options) { o.RepeatEvery = 0 },
		"window":     func(o *Options) { o.Window = 0 },
		"thresholds": func(o *Options) { o.OverloadUS = 6 },
		"threads":    func(o *Options) { o.IdleThreads = [2]float64{80, 75} },
		"pause":      func(o *Options) { o.PauseUS = math.NaN() },
		"scan":       func(o *Options) { o.ScanUS = math.Inf(1) },
		"interval":   func(o *Options) { o.IntervalUS = 0 },
		"retransmit": func(o *Options) { o.RetransmitUS = 0 },
	} {
		o := Defaults()
		change(&o)
		if err := o.Check(); fault.KindOf(err) != fault.Input {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNothingAllocates(t *testing.T) {
	n, h := NewNIC(options(), 4), NewHost(options(), 4)
	c, i := NewController(options(), h, 1), NewIsland(4)
	n.Install(0, 0)
	h.Install(0, true, 0)
	now := 0.0
	if a := testing.AllocsPerRun(100, func() {
		d := n.Packet(0)
		if d.Action == Serve {
			n.Served(0, 1)
			i.Served(1, 0)
		} else {
			h.Packet(0, d.Tag)
		}
		h.nic = Load(int(now) % 3)
		turn := c.Step(now)
		if turn.Send {
			exchange(n, h, turn.Message)
		}
		c.Interval()
		now += 1000
	}); a > 0 {
		t.Errorf("%v allocations a round", a)
	}
	if c.Evicted == 0 {
		t.Error("nothing moved")
	}
}

// exchange is pass without a note of what it did, and with the load that the host believes.
func exchange(n *NIC, h *Host, m Message) {
	for send := true; send; {
		echo, ok := n.Control(m)
		if !ok {
			return
		}
		echo.Flag = h.nic
		m, send, _ = h.Control(echo)
	}
}
