package bluefield

import (
	"io/fs"
	"strings"

	"nicprof/board"
	"nicprof/internal/fault"
)

// Where the Arm side of a BlueField shows itself: its firmware's name for the
// machine, and the name of its performance-counter device (Linux driver
// mlxbf-pmc).
var (
	modelFiles = []string{"sys/class/dmi/id/product_name", "sys/firmware/devicetree/base/model"}
	hwmonNames = "sys/class/hwmon/hwmon*/name"
)

// here says whether the machine of that architecture, whose files lie below
// root, is the Arm side of a BlueField. Its error is a missing one that says
// what was looked for.
func here(b *board.Board, root fs.FS, arch string) error {
	looked := []string{"the architecture is " + arch + ", BlueField's is arm64"}
	if arch == "arm64" {
		looked = nil
		for _, name := range modelFiles {
			text, err := fs.ReadFile(root, name)
			model := strings.TrimRight(string(text), "\x00\n")
			switch {
			case err != nil:
				looked = append(looked, "no /"+name)
			case strings.Contains(model, "BlueField"):
				return nil
			default:
				looked = append(looked, "/"+name+" is "+model)
			}
		}
		names, err := fs.Glob(root, hwmonNames)
		if err != nil {
			panic(err) // a malformed pattern
		}
		for _, name := range names {
			if text, err := fs.ReadFile(root, name); err == nil && strings.TrimSpace(string(text)) == "bfperf" {
				return nil
			}
		}
		looked = append(looked, "no /"+hwmonNames+" is bfperf")
	}
	return fault.Missingf("board %s: this machine is not its Arm side (%s); run there, or from here with --backend remote --host USER@ADDR, or use --backend emulated",
		b.Name, strings.Join(looked, "; "))
}
