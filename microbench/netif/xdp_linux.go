package netif

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"nicprof/internal/fault"
)

// AF_XDP in copy mode: a veth interface has no other. Both interfaces share one
// area of packet buffers, so that a packet is forwarded by moving its address
// from the receive ring of one to the transmit ring of the other.
const (
	chunk   = 2048        // a packet buffer, bytes
	xdpRing = ringFrames  // descriptors of each ring
	chunks  = 2 * xdpRing // half of them waiting for packets, half on their way out
)

// xskRing is one of the rings that kernel and program share. One side writes
// descriptors and moves the producer on, the other moves the consumer on.
type xskRing struct {
	mem                []byte
	producer, consumer *uint32
	base               unsafe.Pointer
}

// descriptor returns the ring's entry of a running number.
func descriptor[T any](r *xskRing, i uint32) *T {
	return (*T)(unsafe.Add(r.base, uintptr(i%xdpRing)*unsafe.Sizeof(*new(T))))
}

// ready is how many entries the consumer may take.
func (r *xskRing) ready() uint32 {
	return atomic.LoadUint32(r.producer) - atomic.LoadUint32(r.consumer)
}

// room is how many entries the producer may write.
func (r *xskRing) room() uint32 { return xdpRing - r.ready() }

// xsk is an AF_XDP socket on queue 0 of an interface with its rings; fill and
// completion return buffers to and from the kernel.
type xsk struct {
	fd                       int
	rx, tx, fill, completion xskRing
}

// newXSK opens a socket. The first brings the buffers; one that shares them
// names the socket of the first.
func newXSK(p port, buffers []byte, shared *xsk) (_ *xsk, err error) {
	s := &xsk{fd: -1}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	err = p.of.do(func() (err error) {
		s.fd, err = unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	addr := &unix.SockaddrXDP{Flags: unix.XDP_COPY, Ifindex: uint32(p.index)}
	if shared != nil {
		addr.Flags, addr.SharedUmemFD = unix.XDP_SHARED_UMEM, uint32(shared.fd)
	} else {
		area := unix.XDPUmemReg{Addr: uint64(uintptr(unsafe.Pointer(&buffers[0]))), Len: uint64(len(buffers)), Size: chunk}
		if err := setsockopt(s.fd, unix.XDP_UMEM_REG, unsafe.Pointer(&area), unsafe.Sizeof(area)); err != nil {
			return nil, fmt.Errorf("packet buffers: %w", err)
		}
	}
	for _, option := range []int{unix.XDP_UMEM_FILL_RING, unix.XDP_UMEM_COMPLETION_RING, unix.XDP_RX_RING, unix.XDP_TX_RING} {
		if err := unix.SetsockoptInt(s.fd, unix.SOL_XDP, option, xdpRing); err != nil {
			return nil, fmt.Errorf("ring: %w", err)
		}
	}
	var at unix.XDPMmapOffsets
	if err := getsockopt(s.fd, unix.XDP_MMAP_OFFSETS, unsafe.Pointer(&at), unsafe.Sizeof(at)); err != nil {
		return nil, fmt.Errorf("offsets of the rings: %w", err)
	}
	for _, r := range []struct {
		ring   *xskRing
		at     unix.XDPRingOffset
		page   int64
		number uintptr
	}{
		{&s.rx, at.Rx, unix.XDP_PGOFF_RX_RING, unsafe.Sizeof(unix.XDPDesc{})},
		{&s.tx, at.Tx, unix.XDP_PGOFF_TX_RING, unsafe.Sizeof(unix.XDPDesc{})},
		{&s.fill, at.Fr, unix.XDP_UMEM_PGOFF_FILL_RING, 8},
		{&s.completion, at.Cr, unix.XDP_UMEM_PGOFF_COMPLETION_RING, 8},
	} {
		size := int(uintptr(r.at.Desc) + xdpRing*r.number)
		mem, err := unix.Mmap(s.fd, r.page, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
		if err != nil {
			return nil, fmt.Errorf("map a ring: %w", err)
		}
		*r.ring = xskRing{
			mem:      mem,
			producer: (*uint32)(unsafe.Pointer(&mem[r.at.Producer])),
			consumer: (*uint32)(unsafe.Pointer(&mem[r.at.Consumer])),
			base:     unsafe.Pointer(&mem[r.at.Desc]),
		}
	}
	if err := unix.Bind(s.fd, addr); err != nil {
		return nil, fmt.Errorf("bind to interface %s: %w", p.name, err)
	}
	return s, nil
}

func (s *xsk) close() {
	for _, r := range []*xskRing{&s.rx, &s.tx, &s.fill, &s.completion} {
		if r.mem != nil {
			_ = unix.Munmap(r.mem)
			r.mem = nil
		}
	}
	if s.fd >= 0 {
		unix.Close(s.fd)
		s.fd = -1
	}
}

// statistics returns the socket's counters since it was opened.
func (s *xsk) statistics() (unix.XDPStatistics, error) {
	var st unix.XDPStatistics
	if err := getsockopt(s.fd, unix.XDP_STATISTICS, unsafe.Pointer(&st), unsafe.Sizeof(st)); err != nil {
		return st, fault.Checkf("XDP_STATISTICS: %w", err)
	}
	return st, nil
}

func setsockopt(fd, option int, value unsafe.Pointer, size uintptr) error {
	if _, _, e := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.SOL_XDP, uintptr(option), uintptr(value), size, 0); e != 0 {
		return e
	}
	return nil
}

func getsockopt(fd, option int, value unsafe.Pointer, size uintptr) error {
	length := uint32(size)
	if _, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_XDP, uintptr(option), uintptr(value), uintptr(unsafe.Pointer(&length)), 0); e != 0 {
		return e
	}
	return nil
}

// xdpForwarder forwards by AF_XDP.
type xdpForwarder struct {
	cpu     int
	buffers []byte
	in, out *xsk
	closers []func() error
	mode    string
	stop    atomic.Bool
	run     *worker
	before  unix.XDPStatistics

	arrived, forwarded int64
}

// newXDPForwarder makes the sockets and attaches a program that steers the
// packets of the in interface into the first. A kernel without any of it gives
// a missing fault that says what it refused.
func newXDPForwarder(l *lab, c cpus, _ int) (_ forwarder, err error) {
	f := &xdpForwarder{cpu: c.forwarder}
	defer func() {
		if err != nil {
			_ = f.close()
			if fault.KindOf(err) == 0 {
				err = fault.Missingf("AF_XDP cannot be used with this kernel or these rights (it needs CONFIG_XDP_SOCKETS and CAP_BPF): %w; base af_packet needs neither", err)
			}
		}
	}()
	if err := rlimit.RemoveMemlock(); err != nil { // kernels before 5.11 count maps as locked memory
		return nil, err
	}
	if f.buffers, err = unix.Mmap(-1, 0, chunk*chunks, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE); err != nil {
		return nil, err
	}
	if f.in, err = newXSK(l.in, f.buffers, nil); err != nil {
		return nil, err
	}
	if f.out, err = newXSK(l.out, nil, f.in); err != nil {
		return nil, err
	}
	sockets, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.XSKMap, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	if err != nil {
		return nil, fmt.Errorf("map of sockets: %w", err)
	}
	f.closers = append(f.closers, sockets.Close)
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "BSD", Instructions: steer(sockets.FD())})
	if err != nil {
		return nil, fmt.Errorf("XDP program: %w", err)
	}
	f.closers = append(f.closers, program.Close)
	if err := f.attach(l.in, program); err != nil {
		return nil, err
	}
	if err := sockets.Put(uint32(0), uint32(f.in.fd)); err != nil {
		return nil, fmt.Errorf("map of sockets: %w", err)
	}
	for i := range uint32(xdpRing) {
		*descriptor[uint64](&f.in.fill, i) = uint64(i) * chunk
	}
	atomic.StoreUint32(f.in.fill.producer, xdpRing)
	return f, nil
}

// steer is the XDP program: a packet of receive queue q goes to socket q, or on
// to the network stack where there is none.
func steer(sockets int) asm.Instructions {
	const queueAt, pass = 16, 2 // rx_queue_index of struct xdp_md; XDP_PASS
	return asm.Instructions{
		asm.LoadMem(asm.R2, asm.R1, queueAt, asm.Word),
		asm.LoadMapPtr(asm.R1, sockets),
		asm.Mov.Imm(asm.R3, pass),
		asm.FnRedirectMap.Call(),
		asm.Return(),
	}
}

// driverMode is an XDP program's place in the interface's driver.
const driverMode = "driver"

// attach puts the program into the interface's driver, or before the network
// stack where the driver has no place for it.
func (f *xdpForwarder) attach(p port, program *ebpf.Program) error {
	var errs []error
	for _, m := range []struct {
		name string
		flag link.XDPAttachFlags
	}{{driverMode, link.XDPDriverMode}, {"generic", link.XDPGenericMode}} {
		var l link.Link
		err := p.of.do(func() (err error) {
			l, err = link.AttachXDP(link.XDPOptions{Program: program, Interface: p.index, Flags: m.flag})
			return err
		})
		if err == nil {
			f.mode = m.name
			f.closers = append(f.closers, l.Close)
			return nil
		}
		errs = append(errs, fmt.Errorf("attach in %s mode: %w", m.name, err))
	}
	return errors.Join(errs...)
}

func (f *xdpForwarder) begin(mark uint16) (err error) {
	if f.before, err = f.in.statistics(); err != nil {
		return err
	}
	f.arrived, f.forwarded = 0, 0
	f.stop.Store(false)
	f.run = startWorker(f.cpu, func() error { return f.loop(mark) })
	return nil
}

func (f *xdpForwarder) loop(mark uint16) error {
	out := uint32(0) // packets in the transmit ring or beyond
	var stopped time.Time
	for {
		out -= f.reclaim(out)
		if stopped.IsZero() && f.stop.Load() {
			stopped = time.Now()
		} else if !stopped.IsZero() && time.Since(stopped) > settleMost {
			return fault.Checkf("AF_XDP: %d packets are still in the transmit ring after %v", out, settleMost)
		}
		n := min(f.in.rx.ready(), batch, f.out.tx.room(), xdpRing-out)
		if n == 0 && out == 0 {
			if !stopped.IsZero() {
				return nil
			}
			await(f.in.fd, idlePoll)
			continue
		}
		from, to := *f.in.rx.consumer, *f.out.tx.producer
		sent := uint32(0)
		for i := range n {
			d := *descriptor[unix.XDPDesc](&f.in.rx, from+i)
			if forward(f.buffers[d.Addr:d.Addr+uint64(d.Len)], mark) {
				*descriptor[unix.XDPDesc](&f.out.tx, to+sent) = unix.XDPDesc{Addr: d.Addr, Len: d.Len}
				sent++
			} else {
				f.refill(d.Addr)
			}
		}
		atomic.StoreUint32(f.in.rx.consumer, from+n)
		atomic.StoreUint32(f.out.tx.producer, to+sent)
		f.arrived += int64(sent)
		out += sent
		if err := f.kick(); err != nil {
			return err
		}
	}
}

// kick has the kernel send what is in the transmit ring; it stops after some
// packets, or when the interface turns one away, so that it may have to be
// called again.
func (f *xdpForwarder) kick() error {
	if f.out.tx.ready() == 0 {
		return nil
	}
	_, _, e := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(f.out.fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	switch e {
	case 0, unix.EAGAIN, unix.EINTR, unix.EBUSY, unix.ENOBUFS:
		return nil
	}
	return fault.Checkf("sending: %w", e)
}

// reclaim moves the buffers of packets that have left to the fill ring, and
// returns their number.
func (f *xdpForwarder) reclaim(out uint32) uint32 {
	n := min(f.out.completion.ready(), out)
	from := *f.out.completion.consumer
	for i := range n {
		f.refill(*descriptor[uint64](&f.out.completion, from+i))
	}
	atomic.StoreUint32(f.out.completion.consumer, from+n)
	f.forwarded += int64(n)
	return n
}

// refill gives a packet's buffer to the receiving side. The ring has room for
// all buffers that are in use.
func (f *xdpForwarder) refill(addr uint64) {
	at := *f.in.fill.producer
	*descriptor[uint64](&f.in.fill, at) = addr &^ (chunk - 1)
	atomic.StoreUint32(f.in.fill.producer, at+1)
}

func (f *xdpForwarder) end() (handled, error) {
	f.stop.Store(true)
	if err := f.run.wait(); err != nil {
		return handled{}, err
	}
	st, err := f.in.statistics()
	if err != nil {
		return handled{}, err
	}
	buffers, full := int64(st.Rx_dropped-f.before.Rx_dropped), int64(st.Rx_ring_full-f.before.Rx_ring_full)
	h := handled{
		arrived: f.arrived, forwarded: f.forwarded, usage: f.run.usage,
		dropped: map[string]int64{causeBuffers: buffers, causeRing: full},
	}
	if f.mode == driverMode { // the driver counts packets that the socket does not take
		h.atInterface = buffers + full
	}
	return h, nil
}

func (f *xdpForwarder) change() change { return routed }

func (f *xdpForwarder) conditions() map[string]string {
	return map[string]string{"path": "AF_XDP, copy mode, XDP program in " + f.mode + " mode"}
}

func (f *xdpForwarder) close() error {
	var err error
	for _, c := range f.closers {
		err = errors.Join(err, c())
	}
	if f.out != nil {
		f.out.close()
	}
	if f.in != nil {
		f.in.close()
	}
	if f.buffers != nil {
		err = errors.Join(err, unix.Munmap(f.buffers))
	}
	return err
}
