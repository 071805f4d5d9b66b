package netif

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"nicprof/internal/fault"
)

// batch is the number of packets handed to the kernel, or taken from a ring, at
// once.
const batch = 64

// receiver is an AF_PACKET socket with a receive ring in shared memory
// (PACKET_MMAP, TPACKET_V2).
type receiver struct {
	fd           int
	mem          []byte
	size, frames int // of a frame, bytes; number
	at           int
}

const (
	blockBytes = 1 << 16
	// headRoom is what stands before a packet in its ring frame: TPACKET_V2's
	// header, address and alignment, less than this.
	headRoom = 128
)

// htons is a 16-bit number in network byte order, on the little-endian machines
// that this package serves.
func htons(v uint16) uint16 { return v<<8 | v>>8 }

// newReceiver opens a socket for IPv4 packets on an interface. keep is how much
// of each is kept.
func newReceiver(p port, keep, frames int) (_ *receiver, err error) {
	r := &receiver{fd: -1, size: 256, frames: frames}
	for r.size < keep+headRoom {
		r.size *= 2
	}
	defer func() {
		if err != nil {
			r.close()
			err = fault.Missingf("AF_PACKET receive ring on interface %s: %w", p.name, err)
		}
	}()
	err = p.of.do(func() (err error) {
		r.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err = unix.SetsockoptInt(r.fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V2); err != nil {
		return nil, err
	}
	// What leaves by the interface is not received.
	if err = unix.SetsockoptInt(r.fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1); err != nil {
		return nil, err
	}
	block := max(blockBytes, r.size)
	req := unix.TpacketReq{
		Block_size: uint32(block), Block_nr: uint32(frames * r.size / block),
		Frame_size: uint32(r.size), Frame_nr: uint32(frames),
	}
	if err = unix.SetsockoptTpacketReq(r.fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &req); err != nil {
		return nil, err
	}
	if r.mem, err = unix.Mmap(r.fd, 0, frames*r.size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE); err != nil {
		return nil, err
	}
	return r, unix.Bind(r.fd, &unix.SockaddrLinklayer{Protocol: htons(unix.ETH_P_IP), Ifindex: p.index})
}

func (r *receiver) close() {
	if r.mem != nil {
		_ = unix.Munmap(r.mem)
		r.mem = nil
	}
	if r.fd >= 0 {
		unix.Close(r.fd)
		r.fd = -1
	}
}

// header returns the header of the ring frame that is ahead by i.
func (r *receiver) header(i int) *unix.Tpacket2Hdr {
	return (*unix.Tpacket2Hdr)(unsafe.Pointer(&r.mem[(r.at+i)%r.frames*r.size]))
}

// peek returns the packet ahead by i, if it has arrived. Its memory stays the
// caller's until release.
func (r *receiver) peek(i int) (h *unix.Tpacket2Hdr, packet []byte) {
	h = r.header(i)
	if atomic.LoadUint32(&h.Status)&unix.TP_STATUS_USER == 0 {
		return nil, nil
	}
	from := (r.at+i)%r.frames*r.size + int(h.Mac)
	return h, r.mem[from : from+int(h.Snaplen)]
}

// release gives the next n ring frames back to the kernel.
func (r *receiver) release(n int) {
	for i := range n {
		atomic.StoreUint32(&r.header(i).Status, unix.TP_STATUS_KERNEL)
	}
	r.at = (r.at + n) % r.frames
}

// statistics returns the packets that the socket was offered since it was last
// asked, and how many of them found the ring full.
func (r *receiver) statistics() (offered, full int64, err error) {
	s, err := unix.GetsockoptTpacketStats(r.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return 0, 0, fault.Checkf("PACKET_STATISTICS: %w", err)
	}
	return int64(s.Packets), int64(s.Drops), nil
}

// await returns when a packet has arrived or ms milliseconds have passed.
func await(fd int, ms int) {
	// An error, such as an interrupt, is as good as a time-out: the caller looks
	// at its ring.
	_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, ms)
}

// sender is an AF_PACKET socket that hands batches of packets to an interface
// without a queueing discipline between.
type sender struct {
	fd      int
	packets [batch]unix.Iovec
	heads   [batch]unix.Mmsghdr
	n       int
	refused int64 // attempts that the interface turned away
}

func newSender(p port) (_ *sender, err error) {
	s := &sender{fd: -1}
	defer func() {
		if err != nil {
			s.close()
			err = fault.Missingf("AF_PACKET socket on interface %s: %w", p.name, err)
		}
	}()
	err = p.of.do(func() (err error) {
		s.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err = unix.SetsockoptInt(s.fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1); err != nil {
		return nil, err
	}
	for i := range s.heads {
		s.heads[i].Hdr.Iov = &s.packets[i]
		s.heads[i].Hdr.SetIovlen(1)
	}
	return s, unix.Bind(s.fd, &unix.SockaddrLinklayer{Ifindex: p.index}) // protocol 0: receives nothing
}

func (s *sender) close() {
	if s.fd >= 0 {
		unix.Close(s.fd)
		s.fd = -1
	}
}

// put adds a packet to the batch.
func (s *sender) put(packet []byte) {
	s.packets[s.n].Base = &packet[0]
	s.packets[s.n].SetLen(len(packet))
	s.n++
}

// flush hands the batch to the interface and empties it. A packet that is
// turned away is tried again, as often as tries says without one getting
// through; taken is how many of the batch got through, in order.
//
// The system calls are raw ones: they do not block, and the Go scheduler is not
// told, so that the thread keeps its place in it.
func (s *sender) flush(tries int) (taken int, err error) {
	for failed := 0; taken < s.n && failed < tries; {
		n, _, e := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&s.heads[taken])), uintptr(s.n-taken), unix.MSG_DONTWAIT, 0, 0)
		switch e {
		case 0:
			taken += int(n)
			failed = 0
			if taken < s.n {
				s.refused++ // the next one; its error is not told
			}
		case unix.ENOBUFS, unix.EAGAIN:
			failed++
			s.refused++
		case unix.EINTR:
		default:
			s.n = 0
			return taken, fault.Checkf("sending: %w", e)
		}
	}
	s.n = 0
	return taken, nil
}
