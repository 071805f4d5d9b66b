package nfp

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"nicprof/microbench/nfp/firmware"
)

// command is one run of a tool.
type command struct {
	args []string
	most time.Duration // before it is killed
}

func tool(most time.Duration, args ...string) command { return command{args: args, most: most} }

func (c command) String() string { return quote(c.args) }

// quote writes arguments as a shell reads them.
func quote(args []string) string {
	var out []string
	for _, a := range args {
		if a == "" || strings.ContainsFunc(a, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_=./:,+@%", r))
		}) {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		out = append(out, a)
	}
	return strings.Join(out, " ")
}

// Limits of the tools' time. A build is a minute on the SDK's own programs,
// loading is seconds.
const (
	askTime   = 20 * time.Second
	loadTime  = 2 * time.Minute
	buildTime = 15 * time.Minute
)

// job is one image on one part of a card.
type job struct {
	setup          *Setup
	image          *firmware.Image
	sku, platform  string
	cores, threads int
	dir            string // of the image's sources and outputs
	pcap           string
}

const firmwareFile = "app.nffw"

// rulesFile is the configuration of the P4 program's tables.
const rulesFile = "rules.p4cfg"

// name is the directory of an image: its sources' ID, and what else the build
// depends on.
func (j *job) name() string {
	return fmt.Sprintf("%s-%s-%dx%d", j.image.ID(), j.platform, j.cores, j.threads)
}

// files are what a build needs, by name.
func (j *job) files() ([]firmware.File, error) {
	rules, err := j.rules()
	if err != nil {
		return nil, err
	}
	return append(j.image.Files[:len(j.image.Files):len(j.image.Files)], firmware.File{Name: rulesFile, Text: rules}), nil
}

// rules forwards between the two ports, both ways.
func (j *job) rules() ([]byte, error) {
	type value struct {
		Value string `json:"value"`
	}
	rule := func(name, in, out string) map[string]any {
		return map[string]any{
			"name":   name,
			"match":  map[string]value{"standard_metadata.ingress_port": {in}},
			"action": map[string]any{"type": "ingress::forward", "data": map[string]value{"port": {out}}},
		}
	}
	rules := []any{rule("there", j.setup.In, j.setup.Out)}
	if j.setup.In != j.setup.Out {
		rules = append(rules, rule("back", j.setup.Out, j.setup.In))
	}
	text, err := json.MarshalIndent(map[string]any{"tables": map[string]any{"ingress::ports": map[string]any{"rules": rules}}}, "", "  ")
	return append(text, '\n'), err
}

// build compiles P4 and plugin and links them for the card.
func (j *job) build() command {
	in := func(name string) string { return filepath.Join(j.dir, name) }
	threads := "--no-reduced-thread-usage"
	if j.threads == reducedThreads {
		threads = "--reduced-thread-usage"
	}
	args := []string{
		"nfp4build", "--output-nffw-filename", in(firmwareFile), "--incl-p4-build", in(firmware.P4File),
	}
	if j.image.Plugin() {
		args = append(args, "--sandbox-c", in(firmware.PluginFile))
	}
	args = append(args, "--sku", j.sku, "--platform", j.platform, threads, "--no-shared-codestore", "--no-debug-info",
		"--nfp4c_p4_version", "16", "--nfp4c_p4_compiler", "p4c-nfp", "--nfirc_default_table_size", "65536",
		"--nfirc_no_all_header_ops", "--nfirc_implicit_header_valid", "--nfirc_no_zero_new_headers",
		"--nfirc_multicast_group_count", "16", "--nfirc_multicast_group_size", "16", "--nfirc_no_mac_ingress_timestamp",
		"--application-me-count", strconv.Itoa(j.cores), "--disable-component", "gro", "--disable-component", "flowcache",
		"--pif-output-dir", in("pifs"), "--block-make")
	return tool(buildTime, args...)
}

func (j *job) rtecli(most time.Duration, args ...string) command {
	return tool(most, append([]string{"rtecli", "-p", strconv.Itoa(j.setup.RTEPort)}, args...)...)
}

func (j *job) load() command {
	return j.rtecli(loadTime, "design-load", "-f", filepath.Join(j.dir, firmwareFile),
		"-p", filepath.Join(j.dir, "pifs", "pif_design.json"), "-c", filepath.Join(j.dir, rulesFile))
}

func (j *job) unload() command { return j.rtecli(loadTime, "design-unload") }

// forceUnload stops the card's microengines and unloads their firmware without
// the run-time environment, for when that cannot.
func (j *job) forceUnload() command {
	return tool(loadTime, "nfp-nffw", "-n", strconv.Itoa(j.setup.Card), "unload")
}

// words are the firmware's table when it is ready: the program's numbers, zeros,
// and the word that says so.
func (j *job) words() []uint32 {
	words := make([]uint32, firmware.ReadyWord+1)
	for i, p := range j.image.Params {
		words[i] = p.Value
	}
	words[firmware.ReadyWord] = 1
	return words
}

// writeTable puts them into the table, word by word, the last one last. Zeros
// are there already.
func (j *job) writeTable() []command {
	if !j.image.Table {
		return nil
	}
	var all []command
	for i, v := range j.words() {
		if i < len(j.image.Params) || i == firmware.ReadyWord {
			all = append(all, tool(askTime, "nfp-rtsym", "-n", strconv.Itoa(j.setup.Card),
				fmt.Sprintf("%s:%d", firmware.Table, 4*i), fmt.Sprintf("0x%x", v)))
		}
	}
	return all
}

// readTable reads the whole table back.
func (j *job) readTable() command {
	return tool(askTime, "nfp-rtsym", "-n", strconv.Itoa(j.setup.Card), "-l", strconv.Itoa(4*(firmware.ReadyWord+1)), firmware.Table+":0")
}

func hwinfoOf(s *Setup) command { return tool(askTime, "nfp-hwinfo", "-n", strconv.Itoa(s.Card)) }

// counters reads the MAC's statistics of the ports.
func (j *job) counters() command {
	return tool(askTime, "nfp", "-n", strconv.Itoa(j.setup.Card), "-m", "mac", "-e",
		"show", "port", "stats", strconv.Itoa(j.setup.MAC), j.setup.MACPorts)
}
