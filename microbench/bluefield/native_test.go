package bluefield

import (
	"strings"
	"testing"
	"testing/fstest"

	"nicprof/board"
	"nicprof/internal/fault"
)

func TestHere(t *testing.T) {
	b, err := board.Load("bluefield")
	if err != nil {
		t.Fatal(err)
	}
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for name, c := range map[string]struct {
		arch string
		root fstest.MapFS
		want string // "": it is a BlueField
	}{
		"by DMI":         {"arm64", fstest.MapFS{modelFiles[0]: file("BlueField SoC\n")}, ""},
		"by device tree": {"arm64", fstest.MapFS{modelFiles[1]: file("Mellanox BlueField-2\x00")}, ""},
		"by counters":    {"arm64", fstest.MapFS{modelFiles[0]: file("Unknown"), "sys/class/hwmon/hwmon1/name": file("bfperf\n")}, ""},
		"another Arm":    {"arm64", fstest.MapFS{modelFiles[1]: file("Raspberry Pi 4\x00"), "sys/class/hwmon/hwmon0/name": file("cpu_thermal\n")}, "no /sys/class/dmi/id/product_name; /sys/firmware/devicetree/base/model is Raspberry Pi 4; no /sys/class/hwmon/hwmon*/name is bfperf"},
		"a PC with one":  {"amd64", fstest.MapFS{modelFiles[0]: file("BlueField host\n")}, "the architecture is amd64, BlueField's is arm64"},
	} {
		err := here(b, c.root, c.arch)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || fault.KindOf(err) != fault.Missing || !strings.Contains(err.Error(), "("+c.want+"); run there, or from here with --backend remote")):
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}
