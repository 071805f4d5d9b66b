package nfp

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"nicprof/internal/fault"
	"nicprof/microbench/nfp/firmware"
	"nicprof/program"
	"nicprof/sim"
	"nicprof/traffic"
)

// capturePackets is the length of the capture that a sender repeats.
const capturePackets = 4096

// packets are those that a sender repeats.
type packets struct {
	Flows    traffic.Flows
	Sizes    *traffic.Sizes
	Bytes    int   // of each packet, without Sizes
	Elements int64 // of the first lock
	Seed     uint64
}

// packetsOf returns the packets of a program's traffic. Where nothing of them
// is random all seeds have the same.
func packetsOf(p program.Program, t traffic.Traffic, seed uint64) packets {
	s := packets{Flows: *p.Flows, Sizes: t.Sizes, Bytes: p.PacketBytes, Elements: 1, Seed: seed}
	if t.Flows != nil {
		s.Flows = *t.Flows
	}
	if t.PacketBytes > 0 {
		s.Bytes = t.PacketBytes
	}
	if len(p.Locks) > 0 {
		s.Elements = int64(p.Locks[0].Elements)
	}
	if s.Flows.Count == 1 && s.Sizes == nil {
		s.Seed = 0
	}
	return s
}

// name tells captures apart.
func (s packets) name() string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // flows and sizes have been checked
	}
	return fmt.Sprintf("%x.pcap", sha256.Sum256(text))[48:]
}

// capture writes the packets as a pcap: sizes and flows drawn as the emulator
// draws them, the flow in the low 24 bits of the IPv4 source address, and in
// those of the destination the element of the first lock that the flow takes.
func (s packets) capture() ([]byte, error) {
	draw := s.Flows.Sampler()
	ofFlow, ofSize := sim.NewStream(s.Seed, "nfp flow"), sim.NewStream(s.Seed, "nfp size")
	var buf bytes.Buffer
	w := pcapgo.NewWriter(&buf)
	if err := w.WriteFileHeader(65536, layers.LinkTypeEthernet); err != nil {
		return nil, err
	}
	for i := range capturePackets {
		size := s.Bytes
		if s.Sizes != nil {
			size = int(s.Sizes.Draw(ofSize.Rand) + 0.5)
		}
		flow := draw.Draw(ofFlow.Rand)
		frame, err := frameOf(size, uint32(flow), uint32(flow%s.Elements))
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

// write writes the capture to a file.
func (s packets) write(path string) error {
	text, err := s.capture()
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return fault.Inputf("the packets to send: %w", err)
	}
	return nil
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
