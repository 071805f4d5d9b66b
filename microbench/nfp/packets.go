package nfp

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"nicprof/microbench/nfp/firmware"
	"nicprof/program"
	"nicprof/sim"
	"nicprof/traffic"
)

// capturePackets is the length of the capture that a sender repeats.
const capturePackets = 4096

// capture writes the packets of a program's traffic as a pcap: sizes and flows
// drawn as the emulator draws them, the flow in the low 24 bits of the IPv4
// source address, and in those of the destination the element of the first
// lock that the flow takes.
func capture(p program.Program, t traffic.Traffic, seed uint64) ([]byte, error) {
	flows := p.Flows
	if t.Flows != nil {
		flows = t.Flows
	}
	draw := flows.Sampler()
	elements := int64(1)
	if len(p.Locks) > 0 {
		elements = int64(p.Locks[0].Elements)
	}
	ofFlow, ofSize := sim.NewStream(seed, "nfp flow"), sim.NewStream(seed, "nfp size")
	var buf bytes.Buffer
	w := pcapgo.NewWriter(&buf)
	if err := w.WriteFileHeader(65536, layers.LinkTypeEthernet); err != nil {
		return nil, err
	}
	for i := range capturePackets {
		size := p.PacketBytes
		switch {
		case t.Sizes != nil:
			size = int(t.Sizes.Draw(ofSize.Rand) + 0.5)
		case t.PacketBytes > 0:
			size = t.PacketBytes
		}
		flow := draw.Draw(ofFlow.Rand)
		frame, err := frameOf(size, uint32(flow), uint32(flow%elements))
		if err != nil {
			return nil, err
		}
		info := gopacket.CaptureInfo{Timestamp: time.UnixMicro(int64(i)).UTC(), CaptureLength: len(frame), Length: len(frame)}
		if err := w.WritePacket(info, frame); err != nil {
			return nil, err
		}
	}
	return buf.Bytes(), nil
}

// frameOf returns an Ethernet frame of size bytes on the wire, less its check
// sequence, which the port adds.
func frameOf(size int, flow, element uint32) ([]byte, error) {
	const headers, checkSequence = 14 + 20 + 8, 4
	size = min(max(size, traffic.MinPacketBytes), traffic.MaxPacketBytes)
	address := func(low uint32) []byte {
		return binary.BigEndian.AppendUint32(nil, 10<<24|low&(firmware.MaxFlow-1))
	}
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: address(flow), DstIP: address(element)}
	udp := &layers.UDP{SrcPort: 9, DstPort: 9}
	if err := udp.SetNetworkLayerForChecksum(ip); err != nil {
		return nil, err
	}
	out := gopacket.NewSerializeBuffer()
	err := gopacket.SerializeLayers(out, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true},
		&layers.Ethernet{
			SrcMAC: []byte{2, 0, 0, 0, 0, 1}, DstMAC: []byte{2, 0, 0, 0, 0, 2}, EthernetType: layers.EthernetTypeIPv4,
		}, ip, udp, gopacket.Payload(make([]byte, size-checkSequence-headers)))
	return out.Bytes(), err
}
