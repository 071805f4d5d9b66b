package traffic

import (
	"bufio"
	"encoding/binary"
	"io"
)

// CaptureWriter writes a pcap of Ethernet frames with times in ns, byte for
// byte the same for the same packets.
type CaptureWriter struct {
	w *bufio.Writer
	b []byte
}

// NewCaptureWriter writes the file's header. Errors of w come with Close.
func NewCaptureWriter(w io.Writer) *CaptureWriter {
	c := &CaptureWriter{w: bufio.NewWriterSize(w, 1<<16)}
	c.w.Write(pcapHeader())
	return c
}

// Write appends a packet: its time in ns since 1970 (up to 2106), the bytes of
// it that are kept, and its frame size with check sequence.
func (c *CaptureWriter) Write(time int64, data []byte, frame int) {
	c.b = appendPacket(c.b[:0], time, data, frame-4)
	c.w.Write(c.b)
}

// Close writes what is buffered, and returns the first error.
func (c *CaptureWriter) Close() error { return c.w.Flush() }

func pcapHeader() []byte {
	b := binary.LittleEndian.AppendUint32(nil, 0xa1b23c4d)
	b = append(b, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, 1<<18)
	return binary.LittleEndian.AppendUint32(b, 1)
}

// appendPacket appends a record; length is the frame's without check sequence.
func appendPacket(b []byte, time int64, data []byte, length int) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(time/1e9))
	b = binary.LittleEndian.AppendUint32(b, uint32(time%1e9))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(data)))
	b = binary.LittleEndian.AppendUint32(b, uint32(length))
	return append(b, data...)
}
