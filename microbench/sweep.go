package microbench

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"nicprof/board"
	"nicprof/internal/fault"
	"nicprof/internal/version"
	"nicprof/sim"
)

// SweepConfig says what a sweep measures and where its results go.
type SweepConfig struct {
	Dir      string   // made if absent; a non-empty one needs Resume
	Backend  string   // of the driver, for the manifest
	Suite    string   // one of Suites
	Only     []string // groups, nil: all
	Seed     uint64
	Shard    Shard // the part of the plan to measure
	Parallel int   // measurements at a time, 0: one a processor
	Resume   bool  // go on in a Dir that an earlier sweep of the same plan left

	// Progress, if set, is called by one goroutine at a time: at the start and
	// after each sample.
	Progress func(Progress)
	// Note, if set, is told what the user should know, such as a torn line.
	Note func(string)
}

// Progress of a sweep. Left is the time that the rest will take, 0 when
// nothing has been measured yet.
type Progress struct {
	Done, Total, Failed int
	Elapsed, Left       time.Duration
	Key                 string // measured last
}

// Sweep measures a plan into cfg.Dir, samples in plan order, in an order of
// its own that depends on the seed only, so that drift of a real board does not
// line up with the plan. The bytes of samples.jsonl depend on neither
// cfg.Parallel nor on interruptions. A workload that the driver fails on is
// stored with status failed and its reason, and the sweep goes on.
//
// When ctx ends, the measurements under way are dropped, what was measured is
// left in the directory, and Sweep returns the manifest, marked interrupted,
// with ctx's error; so it does, with the driver's error, when the board is lost
// (ErrLost). An unusable directory, one of another run, or a full disk
// is an input fault; what was stored before stays readable.
func Sweep(ctx context.Context, d Driver, cfg SweepConfig) (Manifest, error) {
	plan, err := Plan(d.Board(), cfg.Suite, cfg.Only, cfg.Seed)
	if err != nil {
		return Manifest{}, err
	}
	if cfg.Parallel <= 0 {
		cfg.Parallel = runtime.GOMAXPROCS(0)
	}
	part := cfg.Shard.Of(plan)
	if len(part) == 0 {
		return Manifest{}, fault.Inputf("part %s of the plan is empty: it has %d workloads; use fewer parts or more groups", cfg.Shard, len(plan))
	}
	hash, err := boardHash(d.Board())
	if err != nil {
		return Manifest{}, err
	}
	m := Manifest{
		Format:      ManifestFormat,
		Version:     version.Version,
		Board:       d.Board().Name,
		BoardSHA256: hash,
		Backend:     cfg.Backend,
		Suite:       cfg.Suite,
		Only:        cfg.Only,
		Seed:        cfg.Seed,
		PlanSHA256:  planHash(plan),
		Workloads:   len(plan),
		Shard:       cfg.Shard,
		Machine:     machineOf(d),
	}
	if err := os.MkdirAll(cfg.Dir, 0o755); err != nil {
		return m, storeError(err)
	}
	unlock, err := lockDir(cfg.Dir)
	if err != nil {
		return m, err
	}
	defer unlock()
	stored, err := prepare(&m, cfg, part)
	if err != nil {
		return m, err
	}
	started := time.Now()
	m.Status, m.Reason = Running, ""
	m.Parallel = cfg.Parallel
	m.Sessions = append(m.Sessions, Session{Started: started.UTC().Format(time.RFC3339)})
	if err := m.write(cfg.Dir); err != nil {
		return m, err
	}
	if err := writeBoard(cfg.Dir, d.Board()); err != nil {
		return m, err
	}
	order := make([]int, len(part))
	for i, w := range part {
		order[i] = w.Index
	}
	st, err := openStore(cfg.Dir, order, stored)
	if err != nil {
		return m, err
	}
	s := sweep{driver: d, cfg: cfg, manifest: &m, store: st, part: part, started: started}
	err = s.run(ctx, plan)
	if cerr := st.close(); err == nil {
		err = cerr
	} else if cerr != nil {
		cfg.note(cerr.Error())
	}
	switch {
	case err == nil:
		m.Status = Complete
	case errors.Is(err, ctx.Err()):
		m.Status = Interrupted
	case errors.Is(err, ErrLost):
		m.Status, m.Reason = Interrupted, err.Error()
	default:
		m.Status, m.Reason = Stopped, err.Error()
	}
	session := &m.Sessions[len(m.Sessions)-1]
	session.Seconds = time.Since(started).Round(time.Millisecond).Seconds()
	session.Measured = s.done
	if werr := m.write(cfg.Dir); err == nil {
		err = werr
	}
	return m, err
}

func boardHash(b *board.Board) (string, error) {
	data, err := json.Marshal(b)
	if err != nil { // an infinite number
		return "", fault.Inputf("board %s: %w", b.Name, err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// prepare checks that the directory is empty or holds an earlier part of the
// same run, whose lines it returns by index. It fills in what m inherits.
func prepare(m *Manifest, cfg SweepConfig, part []Workload) (map[int][]byte, error) {
	lines := map[int][]byte{}
	entries, err := os.ReadDir(cfg.Dir)
	if err != nil {
		return nil, storeError(err)
	}
	if len(entries) == 0 {
		return lines, nil
	}
	if !cfg.Resume {
		return nil, fault.Inputf("%s is not empty; go on with --resume, or choose another directory with --out", cfg.Dir)
	}
	old, err := ReadManifest(cfg.Dir)
	if err != nil {
		return nil, err
	}
	if err := m.sameRun(&old); err != nil {
		return nil, fault.Inputf("%s cannot be resumed: %w; choose another directory with --out", cfg.Dir, err)
	}
	if m.Shard != old.Shard {
		return nil, fault.Inputf("%s cannot be resumed: it holds part %s, not %s; choose another directory with --out", cfg.Dir, old.Shard, m.Shard)
	}
	if m.Backend != Emulated && !m.Machine.same(old.Machine) {
		return nil, fault.Inputf("%s cannot be resumed: it was measured on %s, not on %s; go on there, or choose another directory with --out", cfg.Dir, old.Machine, m.Machine)
	}
	samples, notes, err := readDir(cfg.Dir)
	if err != nil {
		return nil, err
	}
	for _, n := range notes {
		cfg.note(n + "; measured again")
	}
	workloads := map[int]*Workload{}
	for i := range part {
		workloads[part[i].Index] = &part[i]
	}
	for i := range samples {
		s := &samples[i]
		if w := workloads[s.Index]; w == nil || w.Key != s.Key || lines[s.Index] != nil {
			return nil, fault.Inputf("%s cannot be resumed: sample %d (%s) is not in its plan or is there twice; choose another directory with --out", cfg.Dir, s.Index, s.Key)
		}
		if lines[s.Index], err = encodeSample(s); err != nil {
			return nil, err
		}
		if s.Status == StatusFailed {
			m.Failed++
		}
	}
	m.Measured, m.Sessions = len(samples), old.Sessions
	return lines, nil
}

// sameRun says by name what keeps two runs from being parts of one.
func (m *Manifest) sameRun(o *Manifest) error {
	differ := func(what string, a, b any) error {
		return fmt.Errorf("its %s is %v, not %v", what, b, a)
	}
	switch {
	case m.Board != o.Board:
		return differ("board", m.Board, o.Board)
	case m.Backend != o.Backend:
		return differ("backend", m.Backend, o.Backend)
	case m.Seed != o.Seed:
		return differ("seed", m.Seed, o.Seed)
	case m.Suite != o.Suite:
		return differ("suite", m.Suite, o.Suite)
	case m.Version != o.Version:
		return differ("version", m.Version, o.Version)
	case m.BoardSHA256 != o.BoardSHA256:
		return fmt.Errorf("the description of board %s has changed since", m.Board)
	case m.PlanSHA256 != o.PlanSHA256:
		return fmt.Errorf("its plan is another one (groups %v, not %v)", o.Only, m.Only)
	}
	return nil
}

func (cfg *SweepConfig) note(text string) {
	if cfg.Note != nil {
		cfg.Note(text)
	}
}

// sweep is one session of measuring.
type sweep struct {
	driver   Driver
	cfg      SweepConfig
	manifest *Manifest
	store    *store
	part     []Workload
	started  time.Time
	done     int // measured in this session
}

type result struct {
	index int
	line  []byte
	key   string
	ok    bool
	lost  error // the board, and with it this measurement
}

// run measures what the store does not have yet.
func (s *sweep) run(ctx context.Context, plan []Workload) error {
	s.progress("")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	mine := map[int]bool{}
	for _, w := range s.part {
		mine[w.Index] = s.store.lines[w.Index] == nil
	}
	todo := make(chan *Workload)
	go func() {
		defer close(todo)
		// The order of the whole plan, so that shards keep to it too.
		for _, i := range sim.NewStream(s.cfg.Seed, "order").Perm(len(plan)) {
			if !mine[i] {
				continue
			}
			select {
			case todo <- &plan[i]:
			case <-ctx.Done():
				return
			}
		}
	}()
	results := make(chan result)
	var workers sync.WaitGroup
	for range s.cfg.Parallel {
		workers.Go(func() {
			for w := range todo {
				if r, ok := measure(ctx, s.driver, w, s.cfg.Backend); ok {
					results <- r
				}
			}
		})
	}
	go func() {
		workers.Wait()
		close(results)
	}()
	var failure error
	for r := range results {
		if failure != nil {
			continue // drain the workers
		}
		if failure = r.lost; failure != nil {
			cancel()
			continue
		}
		if failure = s.store.put(r.index, r.line); failure != nil {
			cancel()
			continue
		}
		s.done++
		s.manifest.Measured++
		if !r.ok {
			s.manifest.Failed++
		}
		s.progress(r.key)
	}
	if failure != nil {
		return failure
	}
	if s.manifest.Measured < len(s.part) {
		return ctx.Err()
	}
	return nil
}

// measure runs one workload; false when ctx ended instead.
func measure(ctx context.Context, d Driver, w *Workload, backend string) (result, bool) {
	if ctx.Err() != nil {
		return result{}, false
	}
	sample, err := d.Measure(ctx, w.Program, w.Traffic, w.Options)
	if ctx.Err() != nil {
		// A sample may be cut short: measure it again another time.
		return result{}, false
	}
	if errors.Is(err, ErrLost) {
		return result{lost: err}, true
	}
	sample.Index, sample.Key, sample.Group = w.Index, w.Key, w.Group
	var line []byte
	if err == nil {
		line, err = encodeSample(&sample)
	}
	if err != nil {
		sample = Sample{
			Index: w.Index, Key: w.Key, Group: w.Group,
			Board: d.Board().Name, Backend: backend,
			Status: StatusFailed, Reason: err.Error(),
			Program: w.Program, Traffic: w.Traffic, Cores: w.Options.Cores, Seed: w.Options.Seed,
		}
		if line, err = encodeSample(&sample); err != nil {
			panic(err) // plans hold finite numbers
		}
	}
	return result{index: w.Index, key: w.Key, line: line, ok: sample.Status == StatusOK}, true
}

func (s *sweep) progress(key string) {
	if s.cfg.Progress == nil {
		return
	}
	p := Progress{
		Done:    s.manifest.Measured,
		Total:   len(s.part),
		Failed:  s.manifest.Failed,
		Elapsed: time.Since(s.started),
		Key:     key,
	}
	if s.done > 0 {
		p.Left = p.Elapsed / time.Duration(s.done) * time.Duration(p.Total-p.Done)
	}
	s.cfg.Progress(p)
}

// DefaultDir is where a sweep goes when the user names no directory.
func DefaultDir(board, suite string, seed uint64) string {
	return filepath.Join("runs", fmt.Sprintf("%s-%s-%d", board, suite, seed))
}
