package nt

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"
	"math"
)

// Sizes that encryption adds to a payload.
const (
	counterBytes = 8
	tagBytes     = 16
	// AESOverhead is what Encrypt makes a packet longer by: the packet's number
	// before the payload, the tag after it.
	AESOverhead = counterBytes + tagBytes
)

// AES encrypts payloads, or decrypts them, with AES in Galois counter mode: the
// nonce is the salt and the packet's number, which is sent along. Addresses,
// protocol and ports are authenticated, so that a packet which was changed on
// the way, or sent under other ones, is dropped when decrypted. Frames that are
// not TCP or UDP over IPv4 are dropped rather than sent in the clear.
type AES struct {
	aead    cipher.AEAD
	salt    [4]byte
	decrypt bool
	next    uint64

	Done, Dropped int64
}

// NewAES returns an NT that encrypts with a key of 16, 24 or 32 bytes, or with
// decrypt one that decrypts what that one encrypted. A key encrypts with one
// salt in one NT only.
func NewAES(key []byte, salt [4]byte, decrypt bool) (*AES, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("nt: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("nt: %w", err)
	}
	return &AES{aead: aead, salt: salt, decrypt: decrypt}, nil
}

// Process encrypts or decrypts the packet's payload.
func (a *AES) Process(packet []byte) ([]byte, Verdict) {
	v := look(packet)
	if !v.ok {
		return a.drop()
	}
	ip, l4 := v.packet[etherBytes:], v.packet[v.l4:]
	known := append(append([]byte{v.proto}, ip[12:20]...), l4[:4]...)
	payload := v.packet[v.payload:]
	nonce := append(a.salt[:len(a.salt):len(a.salt)], make([]byte, counterBytes)...)
	out := append([]byte{}, v.packet[:v.payload]...)
	if a.decrypt {
		if len(payload) < AESOverhead {
			return a.drop()
		}
		copy(nonce[len(a.salt):], payload)
		var err error
		if out, err = a.aead.Open(out, nonce, payload[counterBytes:], known); err != nil {
			return a.drop()
		}
	} else {
		if len(ip)+AESOverhead > math.MaxUint16 || a.next == math.MaxUint64 {
			return a.drop()
		}
		binary.BigEndian.PutUint64(nonce[len(a.salt):], a.next)
		a.next++
		out = append(out, nonce[len(a.salt):]...)
		out = a.aead.Seal(out, nonce, payload, known)
	}
	v.packet = out
	v.resum()
	a.Done++
	return out, Pass
}

func (a *AES) drop() ([]byte, Verdict) {
	a.Dropped++
	return nil, Drop
}
