package testpmd

import (
	"context"
	"time"
)

// Window is what a forwarder did in one span of time while it was forwarding.
type Window struct {
	Seconds float64 // by this process' clock, around the two readings
	Mpps    float64 // sent by all ports together; the rates are by the forwarder's own clock
	RxMpps  float64 // received
	Lost    uint64  // since Forward: not taken by a transmit queue, or missed by a port
	CPUNS   float64 // processor time of the forwarding threads by packet sent, ns; 0 when none was
	Waited  float64 // share of the time in which these threads were ready but not running
}

// Window measures for d. The forwarder has to be forwarding.
func (s *Session) Window(ctx context.Context, d time.Duration) (Window, error) {
	if _, err := s.Ports(ctx); err != nil { // the rates count from here
		return Window{}, err
	}
	before, err := s.Usage()
	if err != nil {
		return Window{}, err
	}
	start := time.Now()
	select {
	case <-ctx.Done():
		return Window{}, ctx.Err()
	case <-time.After(d):
	}
	after, err := s.Usage()
	if err != nil {
		return Window{}, err
	}
	wall := time.Since(start)
	ports, err := s.Ports(ctx)
	if err != nil {
		return Window{}, err
	}
	w := Window{Seconds: wall.Seconds()}
	for _, p := range ports {
		w.Mpps += float64(p.TxPPS) / 1e6
		w.RxMpps += float64(p.RxPPS) / 1e6
		w.Lost += p.RxMissed + p.RxErrors + p.RxNoBuffer + p.TxErrors
	}
	total, err := s.Counts(ctx)
	if err != nil {
		return Window{}, err
	}
	w.Lost += total.Total.TxDropped
	if w.Mpps > 0 {
		w.CPUNS = float64(after.Ran-before.Ran) / wall.Seconds() / (w.Mpps * 1e6)
	}
	w.Waited = float64(after.Waited-before.Waited) / float64(wall)
	return w, nil
}
