package host

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"nicprof/program"
)

// pattern returns n bytes aligned to 64 B, with a pattern in them.
func pattern(n int) []byte {
	raw := make([]byte, n+64)
	skip := (64 - int(uintptr(unsafe.Pointer(&raw[0]))%64)) % 64
	b := raw[skip : skip+n]
	for i := range b {
		b[i] = byte(i*37 + i>>8)
	}
	return b
}

// sumOf is what a read of an element adds: its 8-byte words, and a last one of 4.
func sumOf(b []byte) uint64 {
	sum := uint64(0)
	for ; len(b) >= 8; b = b[8:] {
		sum += binary.LittleEndian.Uint64(b)
	}
	if len(b) == 4 {
		sum += uint64(binary.LittleEndian.Uint32(b))
	}
	return sum
}

// Every accessor reads, writes or adds to exactly the bytes of its elements, as
// often as told: what it returns or leaves shows that nothing was left out.
func TestAccessorsTouchTheirElements(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytes := 4 * rapid.IntRange(1, program.MaxBytes/4).Draw(t, "words")
		stride := (bytes + 7) &^ 7
		if rapid.Bool().Draw(t, "apart") {
			stride += 8 * rapid.IntRange(1, 4).Draw(t, "gap")
		}
		const span = 50
		k := rapid.IntRange(0, chunk).Draw(t, "k")
		d := newDraws(span, int64(stride), "", 0).seeded(rapid.Uint64().Draw(t, "seed"))
		var at offsets
		d.fill(&at, k)
		v := rapid.Uint64().Draw(t, "v")
		for _, c := range []struct {
			op   program.Op
			mode program.Mode
		}{{program.Read, program.Bulk}, {program.Write, program.Bulk}, {program.Read, program.Atomic}, {program.Write, program.Atomic}, {program.Add, program.Atomic}} {
			mem := pattern(span * stride)
			want := pattern(span * stride)
			f, _ := accessorOf(c.op, c.mode, bytes)
			got := f(unsafe.Pointer(&mem[0]), &at, k, v)
			model := v
			for _, o := range at[:k] {
				element := want[o : int(o)+bytes]
				switch c.op {
				case program.Read:
					model += sumOf(element)
				case program.Write:
					for i := 0; i < bytes; i += 4 {
						word := uint32(v)
						if i%8 == 4 {
							word = uint32(v >> 32)
						}
						binary.LittleEndian.PutUint32(element[i:], word)
					}
				case program.Add:
					for e := element; len(e) >= 8; e = e[8:] {
						n := binary.LittleEndian.Uint64(e) + 1
						binary.LittleEndian.PutUint64(e, n)
						model += n
					}
					if bytes%8 != 0 {
						n := binary.LittleEndian.Uint32(element[bytes-4:]) + 1
						binary.LittleEndian.PutUint32(element[bytes-4:], n)
						model += uint64(n)
					}
				}
			}
			if got != model {
				t.Fatalf("%s %s of %d B, %d elements: %#x, expected %#x", c.op, c.mode, bytes, k, got, model)
			}
			if string(mem) != string(want) {
				t.Fatalf("%s %s of %d B, %d elements: memory differs", c.op, c.mode, bytes, k)
			}
		}
	})
}

// The compiler left the work in: the listing of the compiled package shows the
// instructions that each accessor lives by. (The assembler leaves out nothing.)
func TestListingHasTheAccesses(t *testing.T) {
	gotool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("go is not in PATH: no compiler and no disassembler")
	}
	want := map[string]map[string]string{
		"amd64": {
			"read8":        `MOVQ|ADDQ 0\(`,
			"read32":       `0x18\(`,
			"write4":       `MOVL \w+, 0\(`,
			"write32":      `(MOVQ|MOVUPS) \w+, 0x1[08]\(`,
			"atomicAccess": `LOCK XADDQ`,
		},
		"arm64": {
			"read8":        `MOVD \(`,
			"read32":       `LDP|MOVD 24\(`,
			"write4":       `MOVW \w+, \(`,
			"atomicAccess": `LDADDALD|LDAXR`,
		},
	}[runtime.GOARCH]
	if want == nil {
		t.Skip("no instructions known of " + runtime.GOARCH)
	}
	object := filepath.Join(t.TempDir(), "host.a")
	build := exec.Command(gotool, "build", "-o", object, ".")
	build.Env = append(os.Environ(), "GOARCH="+runtime.GOARCH) // that of this test, also under an emulator
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	listing, err := exec.Command(gotool, "tool", "objdump", "-s", `host\.(read|write|atomicAccess)`, object).CombinedOutput()
	if err != nil {
		t.Fatalf("go tool objdump: %v\n%s", err, listing)
	}
	functions := map[string]string{}
	for _, text := range strings.Split(string(listing), "TEXT ")[1:] {
		head, body, _ := strings.Cut(text, "\n")
		_, name, _ := strings.Cut(head, "host.")
		name, _, _ = strings.Cut(name, "(")
		for of := range want { // closures belong to the function around them
			if name == of || strings.HasPrefix(name, of+".") || of == "atomicAccess" && strings.HasPrefix(name, of) {
				functions[of] += body
			}
		}
	}
	for name, pattern := range want {
		if !regexp.MustCompile(pattern).MatchString(functions[name]) {
			t.Errorf("%s: no %s in its %d lines", name, pattern, strings.Count(functions[name], "\n"))
		}
	}
}
