package nfp

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"nicprof/board"
	"nicprof/internal/config"
	"nicprof/internal/fault"
)

// SetupVariable names the environment variable with the path of the file that
// describes how the card is wired; DefaultSetup is read without it, if it is
// there.
const (
	SetupVariable = "NICPROF_NFP"
	DefaultSetup  = "/etc/nicprof/nfp.yaml"
)

// Setup says what the driver cannot find out about a card in a machine: which
// one, which of its ports traffic enters and leaves by, and what sends it.
type Setup struct {
	Card     int    `yaml:"card"`     // -n of the board support package's tools
	RTEPort  int    `yaml:"rte_port"` // -p of rtecli
	MAC      int    `yaml:"mac"`      // of the port statistics
	MACPorts string `yaml:"mac_ports"`
	In       string `yaml:"in"`  // port by rtecli's name where packets enter
	Out      string `yaml:"out"` // and leave
	SKU      string `yaml:"sku"` // --sku of nfp4build; "": the card's part number, revision 0
	Images   string `yaml:"images"`
	// Sender is the command that sends traffic until it is killed. In its
	// arguments {pcap} is a capture with the packets to send in turn for ever,
	// and {mpps} the rate. A command without {mpps} sends all it can.
	Sender []string `yaml:"sender"`
	// SenderPCI is the port that the default sender uses, a PCI address.
	SenderPCI string  `yaml:"sender_pci"`
	SettleS   float64 `yaml:"settle_s"` // from the first packet to the first count
	WindowS   float64 `yaml:"window_s"` // between two counts
}

// pciPlaceholder stands for SenderPCI in commands that are only shown.
const pciPlaceholder = "SENDER_PCI"

func defaultSetup() Setup {
	return Setup{
		RTEPort: 20206, MACPorts: "0-8", In: "p0", Out: "p1", SettleS: 1, WindowS: 1,
		Images: filepath.Join(os.TempDir(), "nicprof-nfp"),
	}
}

// loadSetup reads the set-up file that getenv names, or the default one.
func loadSetup(getenv func(string) string) (Setup, error) {
	s := defaultSetup()
	if dir, err := os.UserCacheDir(); err == nil {
		s.Images = filepath.Join(dir, "nicprof", "nfp")
	}
	path := getenv(SetupVariable)
	if path == "" {
		if _, err := os.Stat(DefaultSetup); errors.Is(err, fs.ErrNotExist) {
			return s, nil
		}
		path = DefaultSetup
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return s, fault.Inputf("the set-up of the card: %w; %s names its file", err, SetupVariable)
	}
	doc, err := config.Parse(data, path)
	if err != nil {
		return s, err
	}
	if err := doc.Decode(&s); err != nil {
		return s, err
	}
	for _, c := range []struct {
		bad              bool
		path, want, have string
	}{
		{s.Card < 0, "card", "a card's number, from 0", ""},
		{s.RTEPort < 1 || s.RTEPort > 65535, "rte_port", "a TCP port", ""},
		{s.In == "" || s.Out == "", "in", "the names of two ports in in and out, such as p0 and p1", ""},
		{!(s.SettleS >= 0 && s.SettleS <= 60), "settle_s", "0..60 seconds", ""},
		{!(s.WindowS > 0 && s.WindowS <= 60), "window_s", "more than 0 and at most 60 seconds", ""},
		{s.Images == "", "images", "a directory for built firmware", ""},
	} {
		if c.bad {
			return s, doc.Failf(c.path, "expected %s", c.want)
		}
	}
	return s, nil
}

// paces tells whether the sender keeps to a rate.
func (s *Setup) paces() bool {
	for _, arg := range s.Sender {
		if strings.Contains(arg, "{mpps}") {
			return true
		}
	}
	return false
}

// sender returns the command that sends a capture at a rate in Mpps.
func (s *Setup) sender(pcap, mpps string) []string {
	command := s.Sender
	if len(command) == 0 {
		pci := s.SenderPCI
		if pci == "" {
			pci = pciPlaceholder
		}
		// The capture is a port that never runs dry; forwarding passes its
		// packets on to the real port, and drops what comes back. Emptying a
		// port that never runs dry first would not end.
		command = []string{
			"dpdk-testpmd", "-l", "0-1", "-n", "4", "-a", pci, "--vdev=net_pcap0,rx_pcap={pcap},infinite_rx=1",
			"--", "--forward-mode=io", "--no-flush-rx", "--total-num-mbufs=65536", "--burst=64", "--stats-period=1",
		}
	}
	replace := strings.NewReplacer("{pcap}", pcap, "{mpps}", mpps)
	var out []string
	for _, arg := range command {
		out = append(out, replace.Replace(arg))
	}
	return out
}

// platforms are nfp4build's names of the cards by part number (build scripts
// and the kernel driver's firmware tables).
var platforms = map[string]string{
	"AMDA0081": "hydrogen", "AMDA0096": "lithium", "AMDA0097": "beryllium", "AMDA0099": "carbon", "AMDA0058": "starfighter1",
}

// target returns --sku and --platform of nfp4build for a part number such as
// AMDA0097-0001.
func (s *Setup) target(b *board.Board, partNumber string) (sku, platform string, err error) {
	assembly, _, _ := strings.Cut(partNumber, "-")
	platform, ok := platforms[assembly]
	if !ok {
		return "", "", fault.Inputf("board %s: card %q is of no known platform; known are AMDA0058, AMDA0081, AMDA0096, AMDA0097 and AMDA0099", b.Name, partNumber)
	}
	if s.SKU != "" {
		return s.SKU, platform, nil
	}
	return partNumber + ":0", platform, nil
}
