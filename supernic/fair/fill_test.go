package fair_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"nicprof/internal/fault"
	"nicprof/supernic/fair"
)

// fill divides, or fails the test.
func fill(t testing.TB, p fair.Problem) []float64 {
	t.Helper()
	dags := len(p.User)
	if p.User == nil {
		dags = len(p.Weight)
	}
	level := make([]float64, dags)
	if err := new(fair.Filler).Fill(p, level); err != nil {
		t.Fatalf("%v: %v", &p, err)
	}
	return level
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }

func allNear(a, b []float64) bool { return slices.EqualFunc(a, b, near) }

func ones(n int) []float64 { return slices.Repeat([]float64{1}, n) }

// TestTextExample is the example in the text of the paper: 9 CPUs and 18 GB,
// tasks of <1 CPU, 4 GB> and <3 CPU, 1 GB>: x = 3 tasks and y = 2.
func TestTextExample(t *testing.T) {
	const most = 1000 // tasks that each user has: more than fit
	p := fair.Problem{
		Capacity: []float64{9, 18}, Weight: ones(2),
		Use: []float64{1 * most, 4 * most, 3 * most, 1 * most},
	}
	level := fill(t, p)
	if x, y := most*level[0], most*level[1]; !near(x, 3) || !near(y, 2) {
		t.Errorf("x = %g, y = %g tasks; want 3 and 2", x, y)
	}
}

// workedExample has the capacities of NT1 to NT4 and the demands after the load
// change of the dissertation's example.
func workedExample() fair.Problem {
	return fair.Problem{
		Capacity: []float64{10, 10, 7, 10}, Weight: ones(2),
		Use: []float64{5, 8, 4, 2, 0, 5, 0, 7.5},
	}
}

func TestWorkedExample(t *testing.T) {
	p := workedExample()
	level := fill(t, p)
	var got []float64
	for i, v := range p.Use {
		got = append(got, v*level[i/4])
	}
	if want := []float64{3.75, 6, 3, 1.5, 0, 4, 0, 6}; !allNear(got, want) {
		t.Errorf("users get %v, want %v", got, want)
	}
	share, resource := p.Shares(level)
	if !allNear(share, []float64{0.6, 0.6}) || !slices.Equal(resource, []int{1, 3}) {
		t.Errorf("dominant shares %v of resources %v, want 0.6 of NT2 and of NT4", share, resource)
	}
}

// Before the load change everything fits.
func TestDemandsThatFitAreMet(t *testing.T) {
	p := workedExample()
	p.Use = []float64{5, 8, 4, 2, 0, 1, 0, 1.5}
	if level := fill(t, p); !allNear(level, ones(2)) {
		t.Errorf("levels %v, want 1", level)
	}
}

func TestFill(t *testing.T) {
	for _, c := range []struct {
		name string
		p    fair.Problem
		want []float64
	}{
		{"weights count by ratio", fair.Problem{Capacity: []float64{10}, Weight: []float64{1, 3}, Use: []float64{10, 10}}, []float64{0.25, 0.75}},
		{"what one leaves the others share", fair.Problem{Capacity: []float64{10}, Weight: ones(3), Use: []float64{2, 10, 10}}, []float64{1, 0.4, 0.4}},
		{"a full resource stops only those that use it", fair.Problem{Capacity: []float64{10, 10}, Weight: ones(3), Use: []float64{10, 0, 10, 0, 0, 10}}, []float64{0.5, 0.5, 1}},
		{"no demand", fair.Problem{Capacity: []float64{10}, Weight: ones(2), Use: []float64{0, 20}}, []float64{1, 0.5}},
		{"no capacity", fair.Problem{Capacity: []float64{0, 10}, Weight: ones(2), Use: []float64{1, 1, 0, 5}}, []float64{0, 1}},
		{"no resource", fair.Problem{Weight: ones(2), Use: nil}, []float64{1, 1}},
		{"no user", fair.Problem{Capacity: []float64{1}}, nil},
		{"two DAGs do not make a user twice as entitled", fair.Problem{
			Capacity: []float64{10}, Weight: ones(2), User: []int{0, 0, 1}, Use: []float64{10, 10, 10}}, []float64{0.25, 0.25, 0.5}},
		{"a DAG at a full resource does not hold back its user's other", fair.Problem{
			Capacity: []float64{2, 10}, Weight: ones(1), User: []int{0, 0}, Use: []float64{4, 0, 0, 8}}, []float64{0.5, 1}},
		{"a floor below the fair level changes nothing", fair.Problem{
			Capacity: []float64{10}, Weight: ones(2), Use: []float64{10, 10}, Floor: []float64{0.3, 0.1}}, []float64{0.5, 0.5}},
		{"a floor above it is kept, the rest is shared", fair.Problem{
			Capacity: []float64{10}, Weight: ones(3), Use: []float64{10, 10, 10}, Floor: []float64{0.8, 0, 0}}, []float64{0.8, 0.1, 0.1}},
		{"floors that fill a resource", fair.Problem{
			Capacity: []float64{10}, Weight: ones(2), Use: []float64{10, 10}, Floor: []float64{0.8, 0.2}}, []float64{0.8, 0.2}},
		{"floors that do not fit are divided first", fair.Problem{
			Capacity: []float64{10, 10}, Weight: ones(3), Use: []float64{10, 0, 10, 0, 0, 20}, Floor: []float64{0.2, 1, 1}}, []float64{0.2, 0.8, 0.5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := fill(t, c.p); !allNear(got, c.want) {
				t.Errorf("levels %v, want %v", got, c.want)
			}
		})
	}
}

// A share is a fraction of its own resource: measured against another's
// capacity, memory would look dominant here, and levels would be 0.5 and 0.5.
func TestShareHasItsOwnDenominator(t *testing.T) {
	p := fair.Problem{Capacity: []float64{10, 1000}, Weight: ones(2), Use: []float64{10, 100, 10, 500}, Floor: nil}
	level := fill(t, p)
	share, resource := p.Shares(level)
	if !slices.Equal(resource, []int{0, 0}) || !allNear(share, []float64{0.5, 0.5}) {
		t.Errorf("dominant shares %v of resources %v, want 0.5 of resource 0 each", share, resource)
	}
	p.Use = []float64{10, 100, 1, 500} // memory is the second user's dominant: 0.5, beside 0.1
	level = fill(t, p)
	if _, resource = p.Shares(level); !slices.Equal(resource, []int{0, 1}) {
		t.Errorf("dominant resources %v, want 0 and 1", resource)
	}
}

// A user who takes more than an equal part of one resource and less of another
// has not broken even: his sum over resources is zero, his dominant share is
// what counts, and it is equal to the other's.
func TestBorrowingIsNotSummedOverResources(t *testing.T) {
	p := fair.Problem{Capacity: []float64{10, 10}, Weight: ones(2), Use: []float64{100, 20, 60, 60}}
	level := fill(t, p)
	share, _ := p.Shares(level)
	if !near(share[0], share[1]) {
		t.Errorf("dominant shares %v, want equal ones", share)
	}
	if used := p.Used(level); !near(used[0], 10) {
		t.Errorf("resource 0 is used to %g, want 10", used[0])
	}
}

// Ten thousand users of one port get a ten-thousandth each, not zero.
func TestSmallSharesAreNotRoundedAway(t *testing.T) {
	const users = 10000
	p := fair.Problem{Capacity: []float64{100}, Weight: ones(users), Use: slices.Repeat([]float64{100}, users)}
	for u, l := range fill(t, p) {
		if !near(100*l*users, 100) {
			t.Fatalf("user %d gets %g Gb/s, want 0.01", u, 100*l)
		}
	}
}

// Weights far apart keep their ratio, and small users the rest of it, whatever
// constant an implementation by strides would have.
func TestLargeWeights(t *testing.T) {
	for _, heavy := range []float64{1 << 20, 1 << 40, 1e15} {
		p := fair.Problem{Capacity: []float64{100}, Weight: []float64{heavy, 1, 1}, Use: []float64{100, 100, 100}}
		level := fill(t, p)
		if got := level[0] / level[1]; math.Abs(got/heavy-1) > 1e-6 {
			t.Errorf("weight %g: served %g times as much", heavy, got)
		}
		p.Use[0] = 50 // now the heavy one is content; the others halve what is left
		if level = fill(t, p); !allNear(level, []float64{1, 0.25, 0.25}) {
			t.Errorf("weight %g with half of the demand: levels %v", heavy, level)
		}
	}
}

func TestEqualUsersAreEqualAndNearEqualNearlySo(t *testing.T) {
	p := fair.Problem{Capacity: []float64{100}, Weight: []float64{1, 1}, Use: []float64{100, 100}}
	if level := fill(t, p); level[0] != level[1] {
		t.Errorf("two equal users get %v", level)
	}
	p.Weight[1] = 1.0001
	if level := fill(t, p); !near(level[1]/level[0], 1.0001) {
		t.Errorf("weights 1 and 1.0001 get %v", level)
	}
}

func TestBadProblems(t *testing.T) {
	good := func() fair.Problem {
		return fair.Problem{Capacity: []float64{1, 1}, Weight: ones(2), User: []int{0, 1}, Use: ones(4), Floor: []float64{0, 0}}
	}
	for _, c := range []struct {
		name string
		edit func(*fair.Problem)
		want string
	}{
		{"weight 0", func(p *fair.Problem) { p.Weight[0] = 0 }, "user 0: weight 0"},
		{"weight below 0", func(p *fair.Problem) { p.Weight[1] = -1 }, "user 1: weight -1"},
		{"weight NaN", func(p *fair.Problem) { p.Weight[1] = math.NaN() }, "user 1: weight NaN"},
		{"use below 0", func(p *fair.Problem) { p.Use[3] = -1 }, "DAG 1: use -1 of resource 1"},
		{"use infinite", func(p *fair.Problem) { p.Use[0] = math.Inf(1) }, "DAG 0: use +Inf of resource 0"},
		{"capacity below 0", func(p *fair.Problem) { p.Capacity[1] = -2 }, "resource 1: capacity -2"},
		{"floor above 1", func(p *fair.Problem) { p.Floor[0] = 1.5 }, "DAG 0: floor 1.5"},
		{"unknown user", func(p *fair.Problem) { p.User[1] = 2 }, "DAG 1: there is no user 2"},
		{"too few uses", func(p *fair.Problem) { p.Use = p.Use[:3] }, "need 4 uses"},
		{"too few users", func(p *fair.Problem) { p.User = p.User[:1] }, "2 DAGs need a user each"},
		{"too few floors", func(p *fair.Problem) { p.Floor = p.Floor[:1] }, "need 2 floors"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := good()
			c.edit(&p)
			err := new(fair.Filler).Fill(p, make([]float64, 2))
			if fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an input fault with %q", err, c.want)
			}
		})
	}
}

// instances of the property tests.
const instances = 10000

// random returns a division with contention of all degrees: demands that fit
// and that do not, zero demands, weights far apart.
func random(rng *rand.Rand) fair.Problem {
	n, m := 1+rng.IntN(6), 1+rng.IntN(4)
	p := fair.Problem{Capacity: make([]float64, m), Weight: make([]float64, n), Use: make([]float64, n*m)}
	for r := range p.Capacity {
		p.Capacity[r] = math.Exp(6 * (rng.Float64() - 0.5))
	}
	for u := range p.Weight {
		p.Weight[u] = 1
		if rng.IntN(2) == 0 {
			p.Weight[u] = math.Exp(4 * (rng.Float64() - 0.5))
		}
	}
	for i := range p.Use {
		if rng.IntN(4) > 0 {
			p.Use[i] = p.Capacity[i%m] * 2 * rng.Float64() * rng.Float64()
		}
	}
	return p
}

// withUsers hands the DAGs of a division to fewer users, and gives some floors
// that fit.
func withUsers(rng *rand.Rand, p fair.Problem) fair.Problem {
	n := len(p.Weight)
	p.User = make([]int, n)
	users := 1 + rng.IntN(n)
	p.Weight = p.Weight[:users]
	p.Floor = make([]float64, n)
	for d := range n {
		p.User[d] = rng.IntN(users)
		if rng.IntN(2) == 0 {
			p.Floor[d] = rng.Float64()
		}
	}
	scale := 1.0
	for r, v := range p.Used(p.Floor) {
		if v > 0 {
			scale = min(scale, p.Capacity[r]/v)
		}
	}
	for d := range p.Floor {
		p.Floor[d] *= scale
	}
	return p
}

// utility of a bundle of resources to a user who asks for use: the level that
// he could run at.
func utility(use, bundle []float64) float64 {
	u := 1.0
	for r, v := range use {
		if v > 0 {
			u = min(u, bundle[r]/v)
		}
	}
	return u
}

func bundle(p *fair.Problem, u int, level []float64) []float64 {
	m := len(p.Capacity)
	b := slices.Clone(p.Use[u*m : u*m+m])
	for r := range b {
		b[r] *= level[u]
	}
	return b
}

const slack = 1e-7 // of the properties below, for rounding

func TestProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 7))
	var contended, lies, met int
	for i := range instances {
		p := random(rng)
		m := len(p.Capacity)
		level := fill(t, p)
		used := p.Used(level)
		for r, v := range used {
			if v > p.Capacity[r]*(1+slack) {
				t.Fatalf("instance %d: %g of resource %d, which has %g; %v", i, v, r, p.Capacity[r], &p)
			}
		}
		weights := 0.0
		for _, w := range p.Weight {
			weights += w
		}
		for u, l := range level {
			use := p.Use[u*m : u*m+m]
			if l >= 1-slack {
				met++
			} else {
				contended++
				// Pareto: nobody can have more, as a resource that he uses is full.
				if !slices.ContainsFunc(indices(m), func(r int) bool { return use[r] > 0 && used[r] >= p.Capacity[r]*(1-slack) }) {
					t.Fatalf("instance %d: user %d has level %g, and nothing that he uses is full; %v", i, u, l, &p)
				}
			}
			// Sharing incentive: no worse than alone with his part of everything.
			own := make([]float64, m)
			for r, c := range p.Capacity {
				own[r] = c * p.Weight[u] / weights
			}
			if alone := utility(use, own); l < alone-slack {
				t.Fatalf("instance %d: user %d has level %g, alone he had %g; %v", i, u, l, alone, &p)
			}
			// Envy-free: nobody would rather have another's bundle, by weight.
			for v := range level {
				theirs := bundle(&p, v, level)
				for r := range theirs {
					theirs[r] *= p.Weight[u] / p.Weight[v]
				}
				if theirs := utility(use, theirs); theirs > l+slack {
					t.Fatalf("instance %d: user %d has level %g and would have %g of user %d's; %v", i, u, l, theirs, v, &p)
				}
			}
		}
		// Strategy-proof: no lie gives the liar a higher level.
		for range 4 {
			liar := rng.IntN(len(level))
			truth := p.Use[liar*m : liar*m+m]
			q := p
			q.Use = slices.Clone(p.Use)
			lie(rng, q.Use[liar*m:liar*m+m], p.Capacity)
			told := fill(t, q)
			if got := utility(truth, bundle(&q, liar, told)); got > level[liar]+slack {
				t.Fatalf("instance %d: user %d gets %g by telling %v instead of %v, and %g by the truth; %v",
					i, liar, got, q.Use[liar*m:liar*m+m], truth, level[liar], &p)
			}
			lies++
		}
	}
	t.Logf("%d instances: %d users content, %d held back, %d lies", instances, met, contended, lies)
	if met < instances/10 || contended < instances/10 {
		t.Errorf("%d users content and %d held back: the instances do not test both", met, contended)
	}
}

// lie changes what a user asks for: one resource or all, more or less, or
// something else altogether.
func lie(rng *rand.Rand, use, capacity []float64) {
	switch rng.IntN(4) {
	case 0:
		use[rng.IntN(len(use))] *= 2 * rng.Float64()
	case 1:
		use[rng.IntN(len(use))] *= 1 + 5*rng.Float64()
	case 2:
		k := 3 * rng.Float64()
		for r := range use {
			use[r] *= k
		}
	default:
		for r := range use {
			use[r] = capacity[r] * 2 * rng.Float64() * float64(rng.IntN(2))
		}
	}
}

// TestPropertiesWithFloors: DAGs of several users with guarantees that fit.
func TestPropertiesWithFloors(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 9))
	held := 0
	for i := range instances {
		p := withUsers(rng, random(rng))
		m := len(p.Capacity)
		level := fill(t, p)
		used := p.Used(level)
		for r, v := range used {
			if v > p.Capacity[r]*(1+slack) {
				t.Fatalf("instance %d: %g of resource %d, which has %g; %v", i, v, r, p.Capacity[r], &p)
			}
		}
		for d, l := range level {
			if l < p.Floor[d]-slack {
				t.Fatalf("instance %d: DAG %d has level %g below its floor %g; %v", i, d, l, p.Floor[d], &p)
			}
			if l > p.Floor[d]+slack {
				held++
			}
			if l < 1-slack && !slices.ContainsFunc(indices(m), func(r int) bool {
				return p.Use[d*m+r] > 0 && used[r] >= p.Capacity[r]*(1-slack)
			}) {
				t.Fatalf("instance %d: DAG %d has level %g, and nothing that it uses is full; %v", i, d, l, &p)
			}
		}
	}
	if held < instances {
		t.Errorf("only %d DAGs above their floor", held)
	}
}

// Fill against a plain loop that raises the water a little at a time.
func TestFillAgainstSmallSteps(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 11))
	for i := range 300 {
		p := withUsers(rng, random(rng))
		if i%2 == 0 {
			p.Floor = nil
		}
		const steps = 10000
		got, want := fill(t, p), small(p, len(p.User), steps)
		for d := range got {
			if math.Abs(got[d]-want[d]) > 0.03 {
				t.Fatalf("instance %d: levels %v, in small steps %v; %v", i, got, want, &p)
			}
		}
	}
}

func small(p fair.Problem, dags, steps int) []float64 {
	m := len(p.Capacity)
	level := make([]float64, dags)
	stopped := make([]bool, dags)
	pace := make([]float64, len(p.Weight))
	for u := range pace {
		for r, c := range p.Capacity {
			total := 0.0
			for d := range dags {
				if p.User[d] == u {
					total += p.Use[d*m+r]
				}
			}
			pace[u] = max(pace[u], total/c/p.Weight[u])
		}
	}
	if p.Floor != nil {
		copy(level, p.Floor)
	}
	for s := 1; s <= steps; s++ {
		water := slices.Max(pace) * math.Pow(float64(s)/float64(steps), 2) // finer steps near 0
		for d := range dags {
			to := 1.0
			if pace[p.User[d]] > 0 {
				to = min(1, water/pace[p.User[d]])
			}
			if stopped[d] || to <= level[d] {
				continue
			}
			was := level[d]
			level[d] = to
			for r, v := range p.Used(level) {
				if p.Use[d*m+r] == 0 || v <= p.Capacity[r]*(1+1e-9) {
					continue
				}
				level[d] = was
				for e := range dags { // the resource is full for all
					stopped[e] = stopped[e] || p.Use[e*m+r] > 0
				}
			}
		}
	}
	return level
}

func indices(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

func TestFillDoesNotAllocate(t *testing.T) {
	p, level := large(500, 16, true)
	var f fair.Filler
	if n := testing.AllocsPerRun(5, func() {
		if err := f.Fill(p, level); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%g allocations a Fill in steady state, want 0", n)
	}
}

// large is a contended division of many users with floors, if floors.
func large(users, resources int, floors bool) (fair.Problem, []float64) {
	rng := rand.New(rand.NewPCG(12, 13))
	p := fair.Problem{Capacity: ones(resources), Weight: make([]float64, users), Use: make([]float64, users*resources)}
	for u := range p.Weight {
		p.Weight[u] = 1 + rng.Float64()
	}
	for i := range p.Use {
		p.Use[i] = 5 * rng.Float64() * rng.Float64() / float64(users)
	}
	if floors {
		p.Floor = make([]float64, users)
		for u := range p.Floor {
			p.Floor[u] = 0.5 * rng.Float64()
		}
	}
	return p, make([]float64, users)
}

func BenchmarkFill(b *testing.B) {
	for _, users := range []int{100, 1000, 10000, 100000} {
		b.Run(fmt.Sprintf("users=%d/resources=16", users), func(b *testing.B) {
			p, level := large(users, 16, true)
			var f fair.Filler
			for b.Loop() {
				if err := f.Fill(p, level); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
