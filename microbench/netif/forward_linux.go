package netif

import (
	"sync/atomic"
	"time"

	"nicprof/internal/linux"
)

// forwarder is the device under test: it takes packets from the inner end of
// one cable and sends them by the other.
type forwarder interface {
	// begin starts a trial, whose packets bear the mark.
	begin(mark uint16) error
	// end stops it, once no more packets are on their way, and says what became
	// of them.
	end() (handled, error)
	change() change // of a packet
	conditions() map[string]string
	close() error
}

// newForwarder sets one up in a lab for packets of up to longest bytes.
type newForwarder func(l *lab, c cpus, longest int) (forwarder, error)

// handled is what a forwarder counted in a trial.
type handled struct {
	arrived, forwarded int64
	dropped            map[string]int64
	refused            int64 // attempts that the out interface turned away and counted
	atInterface        int64 // of dropped, those that the in interface counted too
	usage              usage
	polled             time.Duration // of which usage is, by a thread that is busy all the time; 0: by one that sleeps without packets
}

// usage is the processor time of a thread, and how long it was ready to run
// without running.
type usage struct{ ran, waited time.Duration }

// worker runs f on a thread of its own, pinned to a processor, and measures the
// thread.
type worker struct {
	done  chan struct{}
	err   error
	usage usage
}

func startWorker(cpu int, f func() error) *worker {
	w := &worker{done: make(chan struct{})}
	go func() {
		defer close(w.done)
		unpin, err := linux.Pin(cpu)
		if err != nil {
			w.err = err
			return
		}
		defer unpin()
		before := linux.ThreadUsage()
		w.err = f()
		after := linux.ThreadUsage()
		w.usage = usage{after.CPU - before.CPU, after.Waited - before.Waited}
	}()
	return w
}

func (w *worker) wait() error {
	<-w.done
	return w.err
}

// idlePoll is how long a forwarder without packets sleeps before it looks
// whether it has to stop, ms.
const idlePoll = 5

// sendTries is how often a forwarder offers a packet to an interface that turns
// it away.
const sendTries = 8

// packetForwarder forwards by AF_PACKET: packets are taken from a receive ring
// in shared memory, changed there, and sent in batches.
type packetForwarder struct {
	cpu  int
	in   *receiver
	out  *sender
	stop atomic.Bool
	run  *worker

	arrived, forwarded, dropped int64
}

// ringFrames is the size of the forwarder's rings, packets.
const ringFrames = 4096

func newPacketForwarder(l *lab, c cpus, longest int) (forwarder, error) {
	in, err := newReceiver(l.in, longest, ringFrames)
	if err != nil {
		return nil, err
	}
	out, err := newSender(l.out)
	if err != nil {
		in.close()
		return nil, err
	}
	return &packetForwarder{cpu: c.forwarder, in: in, out: out}, nil
}

func (f *packetForwarder) begin(mark uint16) error {
	if _, _, err := f.in.statistics(); err != nil { // reading them sets them to zero
		return err
	}
	f.arrived, f.forwarded, f.dropped, f.out.refused = 0, 0, 0, 0
	f.stop.Store(false)
	f.run = startWorker(f.cpu, func() error { return f.loop(mark) })
	return nil
}

func (f *packetForwarder) loop(mark uint16) error {
	for {
		n := 0
		for n < batch {
			h, packet := f.in.peek(n)
			if h == nil {
				break
			}
			n++
			if forward(packet, mark) {
				f.out.put(packet)
			}
		}
		if n == 0 {
			if f.stop.Load() {
				return nil
			}
			await(f.in.fd, idlePoll)
			continue
		}
		put := f.out.n
		taken, err := f.out.flush(sendTries)
		if err != nil {
			return err
		}
		f.arrived += int64(put)
		f.forwarded += int64(taken)
		f.dropped += int64(put - taken)
		f.in.release(n)
	}
}

func (f *packetForwarder) end() (handled, error) {
	f.stop.Store(true)
	if err := f.run.wait(); err != nil {
		return handled{}, err
	}
	_, full, err := f.in.statistics()
	return handled{
		arrived: f.arrived, forwarded: f.forwarded, refused: f.out.refused, usage: f.run.usage,
		dropped: map[string]int64{causeRing: full, causeTransmit: f.dropped},
	}, err
}

func (f *packetForwarder) change() change { return routed }

func (f *packetForwarder) conditions() map[string]string {
	return map[string]string{"path": "AF_PACKET, receive ring in shared memory, sendmmsg past the queueing discipline"}
}

func (f *packetForwarder) close() error {
	f.in.close()
	f.out.close()
	return nil
}
