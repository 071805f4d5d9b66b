package microbench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"nicprof/board"
	"nicprof/internal/atomicfile"
	"nicprof/internal/fault"
)

// Files of a run's directory. SamplesFile holds the samples in plan order;
// pendingFile those measured ahead of it, while a sweep runs. BoardFile holds the
// board as its driver knew it: of a machine, with the memory levels found there.
const (
	SamplesFile  = "samples.jsonl"
	ManifestFile = "manifest.json"
	BoardFile    = "board.json"
	pendingFile  = "pending.jsonl"
)

// ManifestFormat is the version of the manifest and of the samples beside it.
const ManifestFormat = "nicprof-run/1"

// Status of a run.
const (
	Running     = "running" // or killed
	Interrupted = "interrupted"
	Stopped     = "stopped" // by an error of the store, see Reason
	Complete    = "complete"
)

// Manifest says what a run is, and alone carries its machine and times. The
// fields up to Workloads are the same for every run that can be resumed or
// merged with it.
type Manifest struct {
	Format      string   `json:"format"`
	Version     string   `json:"version"` // of the program
	Board       string   `json:"board"`
	BoardSHA256 string   `json:"board_sha256"` // of the board's description, with defaults and inheritance applied, as JSON
	Backend     string   `json:"backend"`
	Suite       string   `json:"suite"`
	Only        []string `json:"only,omitempty"`
	Seed        uint64   `json:"seed"`
	PlanSHA256  string   `json:"plan_sha256"` // of the whole plan, its options included
	Workloads   int      `json:"workloads"`   // in the whole plan

	Shard    Shard     `json:"shard,omitzero"`
	Status   string    `json:"status"`
	Reason   string    `json:"reason,omitempty"`
	Measured int       `json:"measured"` // samples stored, failed ones included
	Failed   int       `json:"failed"`
	Parallel int       `json:"parallel,omitempty"`
	Machine  Machine   `json:"machine,omitzero"`
	Sessions []Session `json:"sessions"`
	Parts    []Part    `json:"parts,omitempty"` // of a merged run
}

// Session is one start of a run: the first, or one that resumed it.
type Session struct {
	Started  string  `json:"started"` // RFC 3339, UTC
	Seconds  float64 `json:"seconds"`
	Measured int     `json:"measured"` // in this session
}

// Part is a shard that a run was merged from.
type Part struct {
	Shard    Shard     `json:"shard"`
	Machine  Machine   `json:"machine"`
	Sessions []Session `json:"sessions"`
}

// ReadManifest reads the manifest of a run's directory. A missing, torn,
// foreign or newer one is an input fault.
func ReadManifest(dir string) (Manifest, error) {
	path := filepath.Join(dir, ManifestFile)
	var m Manifest
	data, err := os.ReadFile(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return m, fault.Inputf("%s: no %s here: not the directory of a run", dir, ManifestFile)
		}
		return m, fault.Inputf("%w", err)
	}
	var head struct {
		Format string `json:"format"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return m, fault.Inputf("%s: %w", path, err)
	}
	if head.Format != ManifestFormat {
		return m, fault.Inputf("%s: format %q, this program reads %q; use the version that wrote it, or measure again", path, head.Format, ManifestFormat)
	}
	if err := decodeStrict(data, &m); err != nil {
		return m, fault.Inputf("%s: %w", path, err)
	}
	return m, nil
}

// ReadBoard reads the board of a run's directory, nil where none is stored. Its
// error is an input fault.
func ReadBoard(dir string) (*board.Board, error) {
	path := filepath.Join(dir, BoardFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Inputf("%w", err)
	}
	b, err := board.DecodeJSON(data)
	if err != nil {
		return nil, fault.Inputf("%s: %w", path, err)
	}
	return b, nil
}

func writeBoard(dir string, b *board.Board) error {
	data, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, BoardFile), append(data, '\n'))
}

func (m *Manifest) write(dir string) error {
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, ManifestFile), append(data, '\n'))
}

// writeFile replaces a file as a whole.
func writeFile(path string, data []byte) error { return storeError(atomicfile.Write(path, data)) }

// storeError says what the user can do about a failed write.
func storeError(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fault.Inputf("%w; what was measured before is kept: free some space and go on with --resume", err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOTDIR):
		return fault.Inputf("%w; choose a directory that can be written with --out", err)
	}
	return err
}

// ReadSamples reads a samples file, or a run's directory with all that an
// unfinished run has measured, sorted by index. A last line without its line
// feed that is no sample was torn by a crash: it is left out and noted. Any
// other line that is no sample, an unknown field and a file without samples
// are input faults with the line's number.
func ReadSamples(path string) (samples []Sample, notes []string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, fault.Inputf("%w; expected the directory of a run or its %s", err, SamplesFile)
	}
	if !info.IsDir() {
		if samples, notes, err = readSamplesFile(path); err == nil && len(samples) == 0 {
			err = emptyError(path, notes)
		}
		return samples, notes, err
	}
	samples, notes, err = readDir(path)
	if err == nil && len(samples) == 0 {
		err = emptyError(filepath.Join(path, SamplesFile), notes)
	}
	return samples, notes, err
}

func emptyError(path string, notes []string) error {
	if len(notes) > 0 {
		return fault.Inputf("%s; no sample before it: measure again", strings.Join(notes, "; "))
	}
	return fault.Inputf("%s: no samples; measure with profiler run first", path)
}

// readDir reads what a run has stored, which may be nothing.
func readDir(dir string) (samples []Sample, notes []string, err error) {
	for _, name := range []string{SamplesFile, pendingFile} {
		s, n, err := readSamplesFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, err
		}
		samples, notes = append(samples, s...), append(notes, n...)
	}
	slices.SortStableFunc(samples, func(a, b Sample) int { return a.Index - b.Index })
	// A crash between the two writes of an interrupted run leaves a sample in
	// both files.
	samples = slices.CompactFunc(samples, func(a, b Sample) bool { return a.Index == b.Index && a.Key == b.Key })
	return samples, notes, nil
}

func readSamplesFile(path string) ([]Sample, []string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fault.Inputf("%w", err)
	}
	defer f.Close()
	return readSamples(f, path)
}

func readSamples(r io.Reader, name string) (samples []Sample, notes []string, err error) {
	br := bufio.NewReaderSize(r, 1<<16)
	for line := 1; ; line++ {
		text, err := br.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return nil, nil, fault.Inputf("%s: %w", name, err)
		}
		last := err == io.EOF
		if last && len(text) == 0 {
			return samples, notes, nil
		}
		var s Sample
		if err := decodeSample(text, &s); err == nil {
			samples = append(samples, s)
		} else if last {
			notes = append(notes, fmt.Sprintf("%s:%d: the last line is torn (%d bytes): left out", name, line, len(text)))
		} else {
			return nil, nil, fault.Inputf("%s:%d: not a sample: %w; remove the line, or measure again", name, line, err)
		}
		if last {
			return samples, notes, nil
		}
	}
}

func decodeSample(text []byte, s *Sample) error {
	if err := decodeStrict(text, s); err != nil {
		return err
	}
	return checkSample(s)
}

// checkSample refuses what no measurement can be.
func checkSample(s *Sample) error {
	switch {
	case s.Status != StatusOK && s.Status != StatusFailed:
		return fmt.Errorf("status %q, expected %s or %s", s.Status, StatusOK, StatusFailed)
	case s.Index < 0:
		return fmt.Errorf("index %d is negative", s.Index)
	case s.Mpps < 0:
		return fmt.Errorf("mpps %v is negative", s.Mpps)
	case s.Low > s.Mpps || s.High < s.Mpps:
		return fmt.Errorf("mpps %v lies outside its interval %v to %v", s.Mpps, s.Low, s.High)
	}
	return nil
}

// decodeStrict reads exactly one JSON value and refuses unknown fields by name.
func decodeStrict(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return errors.New("it ends in the middle of a JSON value")
		}
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more after the JSON value")
	}
	return nil
}

// encodeSample returns the line of a sample that decodeSample takes; NaN and
// infinities are errors.
func encodeSample(s *Sample) ([]byte, error) {
	if err := checkSample(s); err != nil {
		return nil, err
	}
	line, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return append(line, '\n'), nil
}

// store appends samples to a run's directory: to samples.jsonl as far as the
// plan has been measured without a gap, the others to pending.jsonl until the
// gap is closed. A write that fails is taken back, so both files always hold
// whole lines.
type store struct {
	dir     string
	order   []int          // plan indices of this run, ascending
	next    int            // position in order of the first sample not in samples.jsonl
	lines   map[int][]byte // every sample stored, by index
	samples *os.File
	pending *os.File
	size    map[*os.File]int64
}

// openStore starts with the lines that the run has measured before; it
// rewrites both files accordingly.
func openStore(dir string, order []int, lines map[int][]byte) (*store, error) {
	st := &store{dir: dir, order: order, lines: lines, size: map[*os.File]int64{}}
	var head, rest []byte
	for st.next < len(order) && lines[order[st.next]] != nil {
		head = append(head, lines[order[st.next]]...)
		st.next++
	}
	for _, i := range order[st.next:] {
		rest = append(rest, lines[i]...)
	}
	// The pending file first: a crash in between duplicates, never loses.
	var err error
	if st.pending, err = st.replace(pendingFile, rest); err != nil {
		return nil, err
	}
	if st.samples, err = st.replace(SamplesFile, head); err != nil {
		st.pending.Close()
		return nil, err
	}
	return st, nil
}

func (st *store) replace(name string, data []byte) (*os.File, error) {
	path := filepath.Join(st.dir, name)
	if err := writeFile(path, data); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, storeError(err)
	}
	st.size[f] = int64(len(data))
	return f, nil
}

// put stores the line of a sample.
func (st *store) put(index int, line []byte) error {
	if st.order[st.next] != index {
		if err := st.append(st.pending, line); err != nil {
			return err
		}
		st.lines[index] = line
		return nil
	}
	// The gap closes: append this line and those that waited for it.
	data := slices.Clone(line)
	next := st.next + 1
	for next < len(st.order) && st.lines[st.order[next]] != nil {
		data = append(data, st.lines[st.order[next]]...)
		next++
	}
	if err := st.append(st.samples, data); err != nil {
		return err
	}
	st.lines[index] = line
	st.next = next
	return nil
}

func (st *store) append(f *os.File, data []byte) error {
	if _, err := f.Write(data); err != nil {
		if terr := f.Truncate(st.size[f]); terr != nil {
			err = errors.Join(err, terr)
		}
		return storeError(err)
	}
	st.size[f] += int64(len(data))
	return nil
}

// close leaves all that was measured in samples.jsonl, in plan order, and no
// other file of samples. On error both files stay as they are.
func (st *store) close() error {
	if st.next < len(st.order) {
		var all []byte
		for _, i := range st.order {
			all = append(all, st.lines[i]...)
		}
		if err := writeFile(filepath.Join(st.dir, SamplesFile), all); err != nil {
			return errors.Join(err, st.abandon())
		}
	} else if err := st.samples.Sync(); err != nil {
		return errors.Join(storeError(err), st.abandon())
	}
	if err := st.abandon(); err != nil {
		return storeError(err)
	}
	return storeError(os.Remove(filepath.Join(st.dir, pendingFile)))
}

// abandon closes the files.
func (st *store) abandon() error {
	return errors.Join(st.samples.Close(), st.pending.Close())
}
