package host

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// Offsets in an Ethernet frame with an IPv4 header without options and UDP.
const (
	offType     = 12
	offIP       = 14
	offLength   = offIP + 2
	offTTL      = offIP + 8
	offProto    = offIP + 9
	offChecksum = offIP + 10
	offSource   = offIP + 12
	offTarget   = offIP + 16
	offUDP      = offIP + 20
	headers     = offUDP + 8

	etherIPv4 = 0x0800
	etherVLAN = 0x8100
	protoUDP  = 17
	fullTTL   = 64
)

// headroom is left before a frame for a tag; headroom and headers together
// lie in one cache line of 64 B.
const headroom = 16

// ringSlots is how many frames are under way in one core's ring. With frames of
// 64 B it takes 16 KiB.
const ringSlots = 256

// ring is one core's receive and transmit ring over the same frames: a slot is
// filled by the generator (as a NIC would by DMA), received, processed, put on
// the transmit ring, and drained, which fills it anew.
type ring struct {
	_      apartBytes
	memory unsafe.Pointer
	slot   int           // bytes from one slot to the next
	sizes  []uint16      // of the frame in each slot, without its check sequence
	tx     []descriptor  // filled by the program
	head   int           // slot to receive next
	flow   draws         // of the packets that the generator makes
	frame  [headers]byte // template
	sum    uint32        // its header checksum without the source address, not folded
	sent   int64         // frames drained
	bytes  int64         // of them
	_      apartBytes
}

// descriptor is one frame to be sent: its slot, its length, and the bytes of
// headers that were put before it.
type descriptor struct {
	slot   uint32 // offset in the ring's memory
	length uint16
	pushed uint16
}

// burstMost is how many frames are received, processed and sent together.
const burstMost = 32

// slotBytes is the distance of slots for frames up to that size: whole cache
// lines, an odd number of them, so that the headers spread over all sets of a
// cache.
func slotBytes(largest int) int {
	lines := (headroom + largest + 63) / 64
	return 64 * (lines | 1)
}

// newRing lays frames of the sizes given into memory of ringSlots*slotBytes.
func newRing(memory unsafe.Pointer, sizes []int, flow draws) *ring {
	largest := 0
	for _, n := range sizes {
		largest = max(largest, n)
	}
	r := &ring{memory: memory, slot: slotBytes(largest), flow: flow, tx: make([]descriptor, 0, burstMost)}
	f := r.frame[:]
	copy(f, []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1}) // locally administered addresses
	binary.BigEndian.PutUint16(f[offType:], etherIPv4)
	f[offIP], f[offTTL], f[offProto] = 0x45, fullTTL, protoUDP
	binary.BigEndian.PutUint32(f[offTarget:], 10<<24|200<<16|1)
	binary.BigEndian.PutUint16(f[offUDP:], 4321)
	binary.BigEndian.PutUint16(f[offUDP+2:], 9) // discard
	for i := offIP; i < offUDP; i += 2 {
		r.sum += uint32(binary.BigEndian.Uint16(f[i:]))
	}
	for i := range ringSlots {
		r.sizes = append(r.sizes, uint16(sizes[i%len(sizes)]-4))
		r.fill(uint32(i * r.slot))
	}
	return r
}

// fill writes the headers of a fresh packet into a slot: those of the template,
// with the slot's length and the source address of a flow, 10.f.f.f.
func (r *ring) fill(at uint32) {
	p := unsafe.Add(r.memory, at+headroom)
	*(*[headers]byte)(p) = r.frame
	length := uint32(r.sizes[int(at)/r.slot] - offIP)
	source := 10<<24 | uint32(r.flow.next())&(1<<24-1)
	put16(p, offLength, uint16(length))
	put32(p, offSource, source)
	put16(p, offUDP+4, uint16(length-20))
	put16(p, offChecksum, ^fold(r.sum+length+source>>16+source&0xffff))
}

func get16(p unsafe.Pointer, at int) uint16 {
	return bits.ReverseBytes16(*(*uint16)(unsafe.Add(p, at)))
}

func get32(p unsafe.Pointer, at int) uint32 {
	return bits.ReverseBytes32(*(*uint32)(unsafe.Add(p, at)))
}

func put16(p unsafe.Pointer, at int, v uint16) {
	*(*uint16)(unsafe.Add(p, at)) = bits.ReverseBytes16(v)
}

func put32(p unsafe.Pointer, at int, v uint32) {
	*(*uint32)(unsafe.Add(p, at)) = bits.ReverseBytes32(v)
}

// fold adds the carries of a one's complement sum.
func fold(sum uint32) uint16 {
	sum = sum&0xffff + sum>>16
	sum = sum&0xffff + sum>>16
	return uint16(sum)
}

// headerSum is the one's complement sum of an IPv4 header without options: ^0
// when its checksum is right.
func headerSum(p unsafe.Pointer) uint16 {
	sum := uint32(0)
	for i := offIP; i < offUDP; i += 2 {
		sum += uint32(get16(p, i))
	}
	return fold(sum)
}

// receive returns the next frame's offset.
func (r *ring) receive() uint32 {
	at := uint32(r.head * r.slot)
	if r.head++; r.head == ringSlots {
		r.head = 0
	}
	return at
}

// forward is what an IPv4 router does to a frame: check type, version, length,
// protocol and time to live, take one from the latter and mend the checksum (RFC
// 1624), and swap the Ethernet addresses. It returns the flow (the lower 24 bits
// of the source address), and false for a frame that is not to be forwarded.
func forward(p unsafe.Pointer, length uint16) (flow uint32, ok bool) {
	ttl := *(*uint8)(unsafe.Add(p, offTTL))
	if get16(p, offType) != etherIPv4 || *(*uint8)(unsafe.Add(p, offIP)) != 0x45 ||
		*(*uint8)(unsafe.Add(p, offProto)) != protoUDP || ttl < 2 ||
		int(get16(p, offLength))+offIP > int(length) {
		return 0, false
	}
	*(*uint8)(unsafe.Add(p, offTTL)) = ttl - 1
	// The word of the time to live and the protocol has lost 0x100; RFC 1624's
	// HC' = ~(~HC + ~m + m') with m' - m = -0x100.
	put16(p, offChecksum, ^fold(uint32(^get16(p, offChecksum))+0xfeff))
	target, source := *(*uint32)(p), *(*uint32)(unsafe.Add(p, 6))
	targetEnd, sourceEnd := *(*uint16)(unsafe.Add(p, 4)), *(*uint16)(unsafe.Add(p, 10))
	*(*uint32)(p), *(*uint32)(unsafe.Add(p, 6)) = source, target
	*(*uint16)(unsafe.Add(p, 4)), *(*uint16)(unsafe.Add(p, 10)) = sourceEnd, targetEnd
	return get32(p, offSource) & (1<<24 - 1), true
}

// send puts a frame on the transmit ring.
func (r *ring) send(slot uint32, length, pushed uint16) {
	r.tx = append(r.tx, descriptor{slot, length, pushed})
}

// drain is the NIC's side: it takes the frames off the transmit ring and fills
// their slots with fresh packets.
func (r *ring) drain() {
	for _, d := range r.tx {
		r.bytes += int64(d.length + d.pushed)
		r.fill(d.slot)
	}
	r.sent += int64(len(r.tx))
	r.tx = r.tx[:0]
}
