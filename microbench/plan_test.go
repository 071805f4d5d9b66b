package microbench

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"nicprof/board"
	"nicprof/internal/fault"
	"nicprof/program"
)

func plan(t testing.TB, b *board.Board, suite string, only []string, seed uint64) []Workload {
	t.Helper()
	p, err := Plan(b, suite, only, seed)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPlanOfEveryBoard holds every suite on every board of the catalogue
// against the budgets: an emulated run takes some 10 to 40 ms.
func TestPlanOfEveryBoard(t *testing.T) {
	budgets := map[string]map[string][2]int{
		"nfp":    {"quick": {100, 400}, "standard": {1500, 3200}, "full": {15000, 60000}},
		classSoC: {"quick": {100, 450}, "standard": {1000, 2000}, "full": {8000, 40000}},
		// native: 0.2 s each
		classHost: {"quick": {100, 330}, "standard": {800, 1500}, "full": {6000, 40000}},
		"fpga":    {"quick": {20, 60}, "standard": {100, 300}, "full": {500, 1500}},
		"panic":   {"quick": {20, 60}, "standard": {100, 300}, "full": {400, 500}}, // of one base and four regions
		classNet:  {"quick": {1, 50}, "standard": {1, 50}, "full": {1, 50}},
	}
	key := regexp.MustCompile(`^[a-z]+(/[a-zA-Z0-9:.+=_-]+)+$`)
	for _, name := range board.Names() {
		b, err := board.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		if b.Class == classHost && len(b.Memories) == 0 {
			continue // its driver finds the levels, plan_cores_test.go has some
		}
		budget, own := budgets[name]
		if !own {
			budget = budgets[b.Class]
		}
		for _, suite := range Suites {
			t.Run(name+"/"+suite, func(t *testing.T) {
				p := plan(t, b, suite, nil, 1)
				if lim := budget[suite]; len(p) < lim[0] || len(p) > lim[1] {
					t.Errorf("%d workloads, want %d to %d", len(p), lim[0], lim[1])
				}
				keys, seeds, groups := map[string]bool{}, map[uint64]bool{}, map[string]int{}
				for i, w := range p {
					if w.Index != i || keys[w.Key] || seeds[w.Options.Seed] {
						t.Fatalf("workload %d: index %d, key %s or seed %d not unique", i, w.Index, w.Key, w.Options.Seed)
					}
					keys[w.Key], seeds[w.Options.Seed] = true, true
					groups[w.Group]++
					if !key.MatchString(w.Key) || !strings.HasPrefix(w.Key, w.Group+"/"+w.Program.Base+"/") {
						t.Fatalf("key %q of group %s, base %s", w.Key, w.Group, w.Program.Base)
					}
					if err := b.Check(w.Program, w.Options.Cores, w.Options.Threads); err != nil {
						t.Fatalf("%s: %v", w.Key, err)
					}
					if w.Options.Seed >= 1<<53 || w.Options.Precision <= 0 || w.Options.MaxRuns < 1 {
						t.Fatalf("%s: options %+v", w.Key, w.Options)
					}
				}
				for _, g := range groupsOf(b) {
					if groups[g] == 0 && (g != GroupCores || b.Cores.Value > 1) {
						t.Errorf("no workload of group %s", g)
					}
				}
				t.Log(len(p), groups)
			})
		}
	}
}

// TestPlanMeasuresWhatTheFitNeeds looks for the workloads without which a
// parameter of the model cannot be told.
func TestPlanMeasuresWhatTheFitNeeds(t *testing.T) {
	b, err := board.Load("nfp")
	if err != nil {
		t.Fatal(err)
	}
	for _, suite := range Suites {
		p := plan(t, b, suite, nil, 1)
		has := func(what string, f func(w *Workload) bool) {
			t.Helper()
			if !slices.ContainsFunc(p, func(w Workload) bool { return f(&w) }) {
				t.Errorf("%s: no workload %s", suite, what)
			}
		}
		for _, base := range b.Bases {
			has("bare on "+base.Name, func(w *Workload) bool {
				return w.Program.Base == base.Name && strings.HasSuffix(w.Key, "/bare") && w.Options.Cores == 0
			})
			has("bare on one core on "+base.Name, func(w *Workload) bool {
				return w.Program.Base == base.Name && strings.HasSuffix(w.Key, "/bare/1-cores")
			})
			for _, m := range b.Swept() {
				for _, e := range m.Engines {
					for _, op := range []program.Op{program.Read, program.Write, program.Add} {
						if e.Command(op) == nil {
							continue
						}
						curve := func(few bool) func(*Workload) bool {
							return func(w *Workload) bool {
								a := w.Program.Accesses
								return w.Program.Base == base.Name && w.Group == GroupSingle && len(a) == 1 &&
									a[0].Memory == m.Name && a[0].Mode == e.Mode && a[0].Op == op && a[0].Span == m.DefaultSpan &&
									(w.Options.Cores > 0) == few && (few || a[0].PerPacket >= 12)
							}
						}
						what := m.Name + " " + string(op) + " " + string(e.Mode) + " on " + base.Name
						has("past the knee of "+what, curve(false))
						has("on few cores of "+what, curve(true))
					}
				}
			}
		}
		has("that misses the cache", func(w *Workload) bool {
			a := w.Program.Accesses
			return len(a) == 1 && a[0].Memory == "emem" && a[0].Span*a[0].Stride >= 64<<20
		})
		has("on one line", func(w *Workload) bool { return len(w.Program.Accesses) == 1 && w.Program.Accesses[0].Span == 1 })
		has("of one lock", func(w *Workload) bool {
			return len(w.Program.Locks) == 1 && w.Program.Locks[0].Elements == 1 && w.Program.Locks[0].Idiom == program.Spin
		})
		for _, idiom := range append(slices.Clone(idioms), program.None) {
			has("of idiom "+string(idiom), func(w *Workload) bool {
				return len(w.Program.Locks) == 1 && w.Program.Locks[0].Idiom == idiom
			})
		}
		has("of Zipf elements", func(w *Workload) bool {
			return len(w.Program.Accesses) == 1 && w.Program.Accesses[0].Popularity == "zipf" && w.Program.Accesses[0].Alpha == 0.99
		})
	}
}

func TestPlanPairsAreComplete(t *testing.T) {
	b := testBoard()
	for _, suite := range Suites {
		together, alone := map[string]bool{}, map[string]bool{}
		name := func(a program.Access) string { return a.Memory + string(a.Op) + string(a.Mode) }
		for _, w := range plan(t, b, suite, []string{GroupPairs}, 1) {
			switch a := w.Program.Accesses; len(a) {
			case 1:
				alone[a[0].String()] = true
			case 2:
				together[name(a[0])+name(a[1])] = true
				if a[0].PerPacket+a[1].PerPacket != pairIntensity {
					t.Errorf("%s: %v and %v accesses", w.Key, a[0].PerPacket, a[1].PerPacket)
				}
			}
		}
		for _, w := range plan(t, b, suite, []string{GroupPairs}, 1) {
			for _, a := range w.Program.Accesses {
				if !alone[a.String()] {
					t.Errorf("%s: %s is not measured alone", w.Key, a)
				}
			}
		}
		n := 10 * 11 / 2 // 10 memory operations
		if suite == "quick" {
			n = 4 * 5 / 2 // 4 engines, read
		}
		if len(together) != n {
			t.Errorf("%s: %d pairs, want %d", suite, len(together), n)
		}
	}
}

func TestPlanIsDeterministic(t *testing.T) {
	b := testBoard()
	a, again, other := plan(t, b, "standard", nil, 1), plan(t, b, "standard", nil, 1), plan(t, b, "standard", nil, 2)
	if toJSON(t, a) != toJSON(t, again) {
		t.Error("the same seed gives two plans")
	}
	if planHash(a) != planHash(again) || planHash(a) == planHash(other) {
		t.Error("the hash does not tell plans apart")
	}
	for i := range a {
		if a[i].Key != other[i].Key || a[i].Options.Seed == other[i].Options.Seed {
			t.Fatalf("workload %d: %s under seed 1, %s under seed 2", i, a[i].Key, other[i].Key)
		}
	}
}

func TestPlanOnlySelectsGroups(t *testing.T) {
	b := testBoard()
	byKey := map[string]Options{}
	for _, w := range plan(t, b, "quick", nil, 1) {
		byKey[w.Key] = w.Options
	}
	n := 0
	for _, g := range groupsOf(b) {
		for i, w := range plan(t, b, "quick", []string{g}, 1) {
			if o, ok := byKey[w.Key]; !ok || o != w.Options || w.Group != g || w.Index != i {
				t.Errorf("%s in a plan of group %s: %+v", w.Key, g, w)
			}
			n++
		}
	}
	if n != len(byKey) {
		t.Errorf("the groups have %d workloads, the whole plan %d", n, len(byKey))
	}
}

func TestPlanRefuses(t *testing.T) {
	tiny := testBoard()
	tiny.Memories[0].DefaultSpan = 1 << 40
	none := testBoard()
	none.Bases = nil
	for name, c := range map[string]struct {
		board *board.Board
		suite string
		only  []string
		want  []string
	}{
		"suite":        {testBoard(), "huge", nil, []string{`suite "huge"`, "quick, standard, full"}},
		"group":        {testBoard(), "quick", []string{"single", "chains"}, []string{`"chains"`, "stateless,single,pairs,locks,cores,skew"}},
		"no base":      {none, "quick", nil, []string{"no base"}},
		"broken board": {tiny, "quick", nil, []string{"cannot run its own sweep", "single/"}},
	} {
		_, err := Plan(c.board, c.suite, c.only, 1)
		t.Run(name, func(t *testing.T) {
			wantError(t, err, c.want...)
			if fault.KindOf(err) != fault.Input {
				t.Errorf("%v is not an input fault", err)
			}
		})
	}
}

// TestPlanOfSmallMemory plans for a user's board whose memory is smaller than
// the suites' spans.
func TestPlanOfSmallMemory(t *testing.T) {
	b := testBoard()
	b.Memories[0].Bytes, b.Memories[0].DefaultSpan = 16<<10, 32
	b.Memories[1].Bytes = 2 << 20 // less than its cache
	for _, suite := range Suites {
		for _, w := range plan(t, b, suite, nil, 1) {
			for _, a := range w.Program.Accesses {
				if m := b.Memory(a.Memory); a.Span*a.Stride > m.Bytes {
					t.Errorf("%s: %d B of %d", w.Key, a.Span*a.Stride, m.Bytes)
				}
			}
		}
	}
}

func TestSteps(t *testing.T) {
	for _, c := range []struct {
		last, n int
		want    []int
	}{
		{54, 3, []int{1, 27, 54}}, {1, 5, []int{1}}, {4, 9, []int{1, 2, 3, 4}}, {50, 2, []int{1, 50}}, {8, 1, []int{1}},
	} {
		if got := steps(c.last, c.n); !slices.Equal(got, c.want) {
			t.Errorf("%d steps to %d: %v, want %v", c.n, c.last, got, c.want)
		}
	}
}
