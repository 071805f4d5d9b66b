package model

import (
	"math"
	"slices"

	"nicprof/internal/fault"
	"nicprof/program"
	"nicprof/traffic"
)

// wireTime is the time of the mean packet on the board's link, µs.
func (j *job) wireTime(m *Model) float64 {
	if m.LinkGbps <= 0 {
		return 0
	}
	return (j.packet + wireOverhead) * 8 / m.LinkGbps / 1000
}

// commands returns into how many commands an access falls.
func (a *access) commands() float64 {
	return math.Ceil(float64(a.Bytes) / float64(a.engine.MaxBytes))
}

// coreTime is the issue time of a packet on its core, µs.
func (j *job) coreTime() float64 {
	us := j.base.CoreUS.Value * j.passes
	for i, kind := range program.Kinds {
		if n := j.p.Stateless[kind]; n > 0 {
			us += n * j.x.kinds[i].US.Value
		}
	}
	for i := range j.accesses {
		us += j.accesses[i].PerPacket * j.accesses[i].commands() * j.base.AccessUS.Value
	}
	return us + float64(len(j.p.Locks))*(2*j.base.AccessUS.Value+j.base.LockUS.Value)
}

// coreRel is the half-width, relative, of the interval of coreTime.
func (j *job) coreRel() float64 {
	us := j.base.CoreUS.Rel() * j.base.CoreUS.Value * j.passes
	for i := range j.accesses {
		us += j.accesses[i].PerPacket * j.accesses[i].commands() * j.base.AccessUS.Rel() * j.base.AccessUS.Value
	}
	return us / j.coreTime()
}

// footprint is how an access spreads over the lines and banks of its memory.
type footprint struct {
	hot   float64 // share of the hottest line
	lines float64 // that are hit about equally, for the depth of the engine's queue
	bank  float64 // share of the hottest bank
}

func (a *access) footprint() footprint {
	n, stride := float64(a.span), float64(a.stride)
	perLine := max(1, float64(a.mem.LineBytes)/stride)
	f := footprint{hot: min(1, perLine/n)}
	f.lines = 1 / f.hot
	interleave := float64(a.mem.BankBytes)
	period := interleave * float64(a.mem.Banks)
	switch {
	case a.mem.Banks <= 1 || n*stride <= interleave:
		f.bank = 1
	case stride >= period && math.Mod(stride, period) == 0:
		f.bank = 1
	default:
		full := math.Floor(n * stride / period)
		rest := n*stride - full*period
		f.bank = (full*interleave + min(rest, interleave)) / (n * stride)
	}
	if a.Popularity == "zipf" && a.span > 1 {
		h := harmonic(n, a.Alpha)
		top := 1 / h
		f.hot = min(1, top+(1-top)*(perLine-1)/n)
		f.lines = 1
		// elements fall on banks at random: the expected excess of the fuller one
		spread := math.Sqrt(harmonic(n, 2*a.Alpha)) / h
		f.bank = max(f.bank, min(1, f.bank+spread*(1-f.bank)*0.8))
	}
	return f
}

// harmonic is Σ k^−s for k = 1..n by Euler and Maclaurin's formula, to 1e-6: a
// tenth of the time of traffic.Harmonic, which a prediction may need 60 times.
func harmonic(n, s float64) float64 {
	const exact = 10
	sum := 0.0
	for k := 1.0; k <= min(n, exact); k++ {
		sum += math.Pow(k, -s)
	}
	if n <= exact {
		return sum
	}
	const a = float64(exact)
	fa, fn := math.Pow(a, -s), math.Pow(n, -s)
	if s == 1 {
		sum += math.Log(n / a)
	} else {
		sum += (n*fn - a*fa) / (1 - s)
	}
	return sum + (fn-fa)/2 + s/12*(fa/a-fn/n)
}

func zipfTop(n int64, alpha float64) float64 { return 1 / harmonic(float64(n), alpha) }

// elementShare returns the packet share of a lock array's hottest element, and
// of the largest flow on it (0 when packets hash to elements one by one).
func elementShare(l *program.Lock, f traffic.Flows) (hot, flow float64) {
	e := float64(l.Elements)
	if l.Hash {
		return 1 / e, 0
	}
	n := float64(max(1, f.Count))
	switch {
	case len(f.Shares) > 0:
		flow = f.Shares[0]
		for i := 0; i < len(f.Shares); i += l.Elements {
			hot += f.Shares[i]
		}
		return hot, flow
	case f.Popularity == "zipf":
		h := harmonic(n, f.Alpha)
		const exact = 16
		k := 0.0
		for ; k < exact && k*e < n; k++ {
			hot += math.Pow(1+k*e, -f.Alpha) / h
		}
		if k*e < n {
			hot += (1 - harmonic(k*e, f.Alpha)/h) / e
		}
		return hot, 1 / h
	}
	return math.Ceil(n/e) / n, 1 / n
}

// resources predicts by the bottleneck law: each resource's time a packet is
// the sum of what the base, the accesses and the locks demand of it. The
// contexts that circulate among the resources make a closed queue, whose waits
// soften the knee where two resources are about as busy.
func (m *Model) resources(j *job, out *resourceTimes) error {
	x := j.x
	out.n = len(x.names)
	q := &m.Queueing
	us := out.us[:len(x.names)]
	us[resIO] = max(1/j.base.IOMpps.Value, j.wireTime(m))
	for _, d := range j.demands {
		if j.base != &j.custom {
			us[d.resource] += d.us.Value * j.passes
		}
	}
	core := j.coreTime()
	trip := core + j.base.WaitUS.Value*j.passes // unloaded round trip of a packet
	var variance float64
	j.misses()
	for k := range j.accesses {
		a := &j.accesses[k]
		class := a.engine.class(a.Op)
		if class == nil {
			return fault.Inputf("the model has no cost of %s: it was fitted without it", Class{a.Memory, a.Op, a.Mode})
		}
		fp := a.footprint()
		posted := slices.Contains(a.engine.Posted, a.Op)
		full := a.Bytes / a.engine.MaxBytes
		rest := a.Bytes % a.engine.MaxBytes
		var c commandCost
		count := float64(full)
		if full > 0 {
			c = class.at(a.engine.MaxBytes)
			c.front, c.bank, c.line, c.same = c.front*count, c.bank*count, c.line*count, c.same*count
		}
		if rest > 0 {
			r := class.at(rest)
			c.front, c.bank, c.line, c.same = c.front+r.front, c.bank+r.bank, c.line+r.line, c.same+r.same
			c.miss, c.missFront, c.rel = max(c.miss, r.miss), max(c.missFront, r.missFront), max(c.rel, r.rel)
			count++
		}
		i := a.PerPacket
		us[a.engine.front] += i * c.front
		a.same, a.repeat = i*(c.same-c.front), i*c.front*fp.hot
		variance += sq(i * c.front * c.rel)
		depth := 1.0
		if q.Depth.Value > 0 {
			depth += (fp.lines - 1) / q.Depth.Value
		}
		first := a
		for o := range k {
			if b := &j.accesses[o]; b.mem == a.mem && b.span == a.span && b.stride == a.stride {
				first = b
				break
			}
		}
		a.first = first
		if first != a {
			first.repeat += a.repeat
		}
		first.line += i * c.line * fp.hot * min(depth, fp.lines)
		us[a.mem.line] = max(us[a.mem.line], first.line)
		if !posted {
			trip += i * count * a.mem.latency.US.Value
		}
		if a.missing > 0 {
			us[a.mem.dram] += a.missing * c.miss
			us[a.engine.front] += a.missing * c.missFront
			if !posted {
				trip += a.missing * a.mem.latency.MissUS.Value
			}
		}
		us[a.mem.bank] += i * c.bank * fp.bank
	}
	for k := range j.accesses {
		a := &j.accesses[k]
		if f := a.engine.front; a.same > 0 {
			// a command follows one to its line as often as the front is busy with it
			us[f] += a.same * min(1, a.first.repeat/us[f])
		}
	}
	out.locksAt = out.n
	var lk lockWork
	if len(j.p.Locks) > 0 {
		trip += m.lockDemand(j, us, &lk)
	}
	cores, threads := float64(j.cores), float64(j.threads)
	us[resCores] = 1 / (cores * coreRate(core, trip-core, threads, q.CoreWait.Value))
	net := network{us: us, cores: cores, threads: threads, busy: core, away: trip - core, coreWait: q.CoreWait.Value, ioWait: q.IOWait.Value, wait: q.Wait.Value}
	out.mpps = net.rate()
	if len(j.p.Locks) > 0 {
		free := 1 / out.mpps
		for l := range j.p.Locks {
			out.us[out.n] = m.lockTime(j, l, &net, free, &lk, out)
			out.n++
		}
		net.us = out.us[:out.n]
		out.mpps = net.rate()
	}
	for r := range out.n {
		if out.us[r] > out.us[out.bottleneck] {
			out.bottleneck = r
		}
	}
	switch {
	case out.bottleneck == resIO:
		out.rel = j.base.IOMpps.Rel()
	case out.bottleneck == resCores:
		out.rel = j.base.CoreUS.Rel()
	case out.us[out.bottleneck] > 0:
		out.rel = math.Sqrt(variance) / out.us[out.bottleneck]
	}
	return nil
}

func sq(x float64) float64 { return x * x }

// coreRate is the rate of one core that has n contexts, each of which needs it
// for busy µs a packet and waits elsewhere for away µs: Schweitzer's approximate
// mean value analysis of a closed queue, x·(away + busy·(1 + v·(n−1)/n·q)) = n
// with q = x·(time at the core), and no more than 1/busy.
func coreRate(busy, away, n, v float64) float64 {
	k := v * (n - 1) / n * busy
	b := away + busy + n*k
	root := math.Sqrt(max(0, b*b-4*away*k*n))
	return min(1/busy, 2*n/(b+root))
}

// network is the closed queue of all contexts: each packet needs its core for
// busy µs, the resources for us µs each, and is away for away µs, which holds
// the service but not the waits at the resources.
type network struct {
	us                     []float64 // by resource; that of the cores is not used
	cores, threads         float64
	busy, away             float64
	coreWait, ioWait, wait float64
}

// rate solves Little's law, rate · (time in the network) = contexts, for the
// rate, with Schweitzer's waits as in coreRate, bounded by every resource.
func (n *network) rate() float64 {
	top := n.cores / n.busy
	for r, us := range n.us {
		if r != resCores && us > 0 {
			top = min(top, 1/us)
		}
	}
	contexts := n.cores * n.threads
	if n.inside(top) <= contexts {
		return top
	}
	lo, hi := 0.0, top
	for range 30 {
		if mid := (lo + hi) / 2; n.inside(mid) > contexts {
			hi = mid
		} else {
			lo = mid
		}
	}
	return lo
}

// inside is the number of contexts that the network holds at a rate.
func (n *network) inside(rate float64) float64 {
	k := n.coreWait * (n.threads - 1) / n.threads * n.busy / n.cores
	const most = 1e-9 // keeps a wait at the pole finite
	t := n.away + n.busy/max(1-k*rate, most)
	for r, us := range n.us {
		if r == resCores {
			continue
		}
		q := n.wait * rate * us
		if r == resIO {
			q = n.ioWait * rate * us
		}
		t += us * q / max(1-q, most)
	}
	return rate * t
}

// lockstep says whether an engine is the bottleneck: it serves the commands of
// all contexts in turn, so that they go through a packet together.
func (n *network) lockstep() bool {
	feed := max(n.us[resIO], n.us[resCores])
	for r, us := range n.us {
		if r >= resFirst && us > feed {
			return true
		}
	}
	return false
}
