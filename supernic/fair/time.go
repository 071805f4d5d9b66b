package fair

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"nicprof/internal/fault"
)

// Policy is how resources are shared.
type Policy string

// Policies. SNIC adapts to the load. DRF divides once, by dominant shares of
// what users say at deployment, and does not move afterwards. Static gives
// every user his weight's part of each resource. Neither of the two lets users
// share a chain or lends what one does not use.
const (
	SNIC   Policy = "snic"
	DRF    Policy = "drf"
	Static Policy = "static"
)

// ParsePolicy returns the policy of that name.
func ParsePolicy(s string) (Policy, error) {
	switch p := Policy(s); p {
	case SNIC, DRF, Static:
		return p, nil
	}
	return "", fault.Inputf("fairness %q is unknown; expected %s, %s or %s", s, SNIC, DRF, Static)
}

// Resource is something that DAGs share in time: a port or the instances of a
// chain, in Gb/s, or the packet store, in bytes.
type Resource struct {
	Name     string
	Unit     string
	Capacity float64
}

// DAG is what the time step knows of a DAG. All that a DAG uses is proportional
// to its ingress, which is why one ingress rate controls it everywhere.
type DAG struct {
	Name    string
	User    int
	Desired float64   // ingress that it is sure of, Gb/s
	Use     []float64 // by resource: units used for each Gb/s of ingress
}

// CheckDesired returns an input fault where the desired ingress of all DAGs
// together needs more of a resource than there is: then it cannot be
// guaranteed, and the DAGs are not to be deployed.
func CheckDesired(resources []Resource, dags []DAG) error {
	var short []string
	for r, res := range resources {
		need := 0.0
		var users []DAG
		for _, d := range dags {
			if v := d.Desired * d.Use[r]; v > 0 {
				need += v
				users = append(users, d)
			}
		}
		if need <= res.Capacity*(1+rounding) {
			continue
		}
		slices.SortStableFunc(users, func(a, b DAG) int { return cmp.Compare(b.Desired*b.Use[r], a.Desired*a.Use[r]) })
		var names []string
		for _, d := range users {
			names = append(names, fmt.Sprintf("%s %.4g", d.Name, d.Desired*d.Use[r]))
		}
		short = append(short, fmt.Sprintf("%s has %.4g %s, the DAGs want %.4g (%s)", res.Name, res.Capacity, res.Unit, need, strings.Join(names, ", ")))
	}
	if short == nil {
		return nil
	}
	return fault.Inputf("the desired ingress of all DAGs cannot be guaranteed together: %s; lower their ingress_gbps, or add regions", strings.Join(short, "; "))
}

// Grant is what an epoch gives a DAG.
type Grant struct {
	// Gbps is the part of the intended ingress that is granted, Gb/s.
	Gbps float64
	// Limit is the ingress rate to enforce, Gb/s: Gbps, and a fair part of what
	// nobody asked for, so that a DAG whose load varies within an epoch is not
	// throttled without need. The limits of all DAGs together fit every
	// resource. It is infinite for a DAG that uses nothing.
	Limit float64
	// Held says that the DAG wanted more than it was granted.
	Held bool
}

// Time is the time step: in every epoch it divides the time of resources by the
// load that DAGs intend. A DAG gets at least its desired ingress as long as
// CheckDesired holds, above it by weighted dominant shares, and what it does
// not use goes to the others until the first epoch in which it intends to. Time
// keeps its memory: a Step allocates nothing.
type Time struct {
	policy    Policy
	resources []Resource
	dags      []DAG
	filler    Filler
	problem   Problem
	use       []float64 // by DAG, then resource, for each Gb/s
	most      []float64 // by DAG: ingress if it had everything, Gb/s
	level     []float64
	limit     []float64 // of the policies that never move
}

// NewTime returns a time step over DAGs of users with weights. Make a new one
// when a DAG comes or goes, or when resources change.
func NewTime(policy Policy, resources []Resource, weights []float64, dags []DAG) (*Time, error) {
	m, n := len(resources), len(dags)
	t := &Time{
		policy: policy, resources: resources, dags: dags,
		use: make([]float64, 0, n*m), most: make([]float64, n), level: make([]float64, n),
	}
	p := &t.problem
	p.Weight, p.Capacity, p.User = weights, make([]float64, m), make([]int, n)
	p.Use, p.Floor = make([]float64, n*m), make([]float64, n)
	for r, res := range resources {
		p.Capacity[r] = res.Capacity
	}
	for d, dag := range dags {
		if len(dag.Use) != m {
			return nil, fault.Inputf("DAG %s has %d uses; expected one for each of %d resources", dag.Name, len(dag.Use), m)
		}
		if !(dag.Desired >= 0) || math.IsInf(dag.Desired, 0) {
			return nil, fault.Inputf("DAG %s: desired ingress %g Gb/s; expected a finite number from 0 on", dag.Name, dag.Desired)
		}
		p.User[d] = dag.User
		t.use = append(t.use, dag.Use...)
		t.most[d] = math.Inf(1)
		for r, v := range dag.Use {
			if !(v >= 0) || math.IsInf(v, 0) {
				return nil, fault.Inputf("DAG %s uses %g of %s for each Gb/s; expected a finite number from 0 on", dag.Name, v, resources[r].Name)
			}
			if v > 0 {
				t.most[d] = min(t.most[d], resources[r].Capacity/v)
			}
		}
	}
	t.ask(t.most, t.most)
	if err := p.check(n); err != nil {
		return nil, err
	}
	if policy == SNIC {
		return t, nil
	}
	t.limit = make([]float64, n)
	return t, t.fix()
}

// ask sets the problem to a load by DAG, of which some is sure, Gb/s.
func (t *Time) ask(load, sure []float64) {
	m := len(t.resources)
	for d, gbps := range load {
		t.problem.Floor[d] = 0
		if math.IsInf(gbps, 0) {
			gbps = 0 // a DAG that uses nothing
		}
		if gbps > 0 {
			t.problem.Floor[d] = min(1, sure[d]/gbps)
		}
		for r, v := range t.use[d*m : d*m+m] {
			t.problem.Use[d*m+r] = v * gbps
		}
	}
}

// fix sets the limits of a policy that never moves.
func (t *Time) fix() error {
	nothing := make([]float64, len(t.dags))
	t.ask(t.most, nothing)
	p := t.problem
	p.Floor = nil
	if t.policy == DRF {
		if err := t.filler.Fill(p, t.level); err != nil {
			return err
		}
		t.setLimits(-1)
		return nil
	}
	weights := t.weights()
	own := slices.Clone(p.Capacity)
	p.Capacity = own
	for u, w := range p.Weight {
		for r, c := range t.problem.Capacity {
			own[r] = 0
			if weights[r] > 0 {
				own[r] = c * w / weights[r]
			}
		}
		m := len(own)
		p.Use = slices.Clone(t.problem.Use)
		for d := range t.dags {
			if p.User[d] != u {
				clear(p.Use[d*m : d*m+m])
			}
		}
		if err := t.filler.Fill(p, t.level); err != nil {
			return err
		}
		t.setLimits(u)
	}
	return nil
}

// weights returns by resource the weights of the users that have any use for it:
// a region that one user has alone is not divided.
func (t *Time) weights() []float64 {
	m := len(t.resources)
	uses := make([]bool, len(t.problem.Weight)*m)
	for d, dag := range t.dags {
		for r, v := range t.use[d*m : d*m+m] {
			uses[dag.User*m+r] = uses[dag.User*m+r] || v > 0
		}
	}
	sum := make([]float64, m)
	for i, yes := range uses {
		if yes {
			sum[i%m] += t.problem.Weight[i/m]
		}
	}
	return sum
}

// setLimits turns levels of the most that DAGs can have into limits, for one
// user's DAGs or, for -1, for all.
func (t *Time) setLimits(user int) {
	for d, dag := range t.dags {
		if user >= 0 && dag.User != user {
			continue
		}
		t.limit[d] = t.most[d]
		if !math.IsInf(t.most[d], 0) {
			t.limit[d] *= t.level[d]
		}
	}
}

// Step divides an epoch by intended, the load of each DAG before credits and
// throttling, Gb/s. The error is an input fault for a load that is no number
// from 0 on.
func (t *Time) Step(intended []float64, grants []Grant) error {
	if len(intended) != len(t.dags) || len(grants) != len(t.dags) {
		return fault.Inputf("%d loads and %d grants for %d DAGs", len(intended), len(grants), len(t.dags))
	}
	for d, v := range intended {
		if !(v >= 0) || math.IsInf(v, 0) {
			return fault.Inputf("DAG %s: intended load %g Gb/s; expected a finite number from 0 on", t.dags[d].Name, v)
		}
	}
	if t.policy != SNIC {
		for d, v := range intended {
			grants[d] = Grant{Gbps: min(v, t.limit[d]), Limit: t.limit[d], Held: v > t.limit[d]}
		}
		return nil
	}
	for d, v := range intended {
		grants[d] = Grant{Gbps: v}
		t.level[d] = min(v, t.dags[d].Desired)
	}
	t.ask(intended, t.level)
	if err := t.filler.Fill(t.problem, t.level); err != nil {
		return err
	}
	for d := range grants {
		grants[d].Held = t.level[d] < 1-rounding
		grants[d].Gbps *= t.level[d]
		t.level[d] = grants[d].Gbps
	}
	t.ask(t.most, t.level)
	if err := t.filler.Fill(t.problem, t.level); err != nil {
		return err
	}
	for d := range grants {
		grants[d].Limit = t.most[d]
		if !math.IsInf(t.most[d], 0) {
			grants[d].Limit = max(grants[d].Gbps, t.most[d]*t.level[d])
		}
	}
	return nil
}

// Shares returns each user's dominant share of the resources for rates that his
// DAGs are served at, Gb/s, and the resource (-1: none).
func (t *Time) Shares(served []float64) (share []float64, resource []int) {
	p := Problem{Capacity: t.problem.Capacity, Weight: t.problem.Weight, User: t.problem.User, Use: t.use}
	return p.Shares(served)
}

// Used returns what rates of service use of each resource, in its unit.
func (t *Time) Used(served []float64) []float64 {
	p := Problem{Capacity: t.problem.Capacity, Use: t.use}
	return p.Used(served)
}

// Meter is a DAG's intended load as the time step should see it: the largest of
// the last few epochs. A load that rises is believed at once, one that falls
// after that many epochs, so that the packets that chance brings into an epoch
// do not move what is guaranteed.
type Meter struct {
	last []float64
	next int
}

// NewMeter returns a meter over so many epochs, one or more.
func NewMeter(epochs int) *Meter { return &Meter{last: make([]float64, max(1, epochs))} }

// Observe takes the load of an epoch and returns the load to believe.
func (m *Meter) Observe(load float64) float64 {
	m.last[m.next] = load
	m.next = (m.next + 1) % len(m.last)
	return slices.Max(m.last)
}
