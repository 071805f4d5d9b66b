package fit

import (
	"slices"

	"nicprof/board"
	"nicprof/fit/snic"
	"nicprof/microbench"
	"nicprof/model"
)

// fitChains fits the model of a board that runs chains of network tasks. Its
// quality is that on the saturated samples: at an offered rate nothing is
// predicted.
func fitChains(m *model.Model, b *board.Board, used []microbench.Sample, r *Report) (*model.Model, *Report, error) {
	m.DefaultRule = model.RuleResources
	for i := range m.Bases {
		base := &m.Bases[i]
		base.BareMpps, base.IOMpps = model.Value{Note: "see chains"}, model.Value{Note: "see chains"}
		if described, err := b.Base(base.Name); err == nil {
			base.Cores = int(described.Cores.Value)
		}
	}
	predict := func(c *model.Chains, s *microbench.Sample) (float64, error) {
		law := model.Model{Board: m.Board, Bases: m.Bases, Chains: c}
		p, err := law.Predict(s.Program, s.Traffic, model.Options{Cores: s.Cores, Brief: true})
		return p.Mpps, err
	}
	saturated := slices.DeleteFunc(slices.Clone(used), func(s microbench.Sample) bool { return s.Traffic.RateMpps > 0 })
	held, err := snic.HeldOut(used, b, predict)
	if err != nil {
		return nil, nil, err
	}
	if held.N > 0 {
		m.Rules = []model.RuleError{held}
	}
	if m.Chains, err = snic.Fit(used, b); err != nil {
		return nil, nil, err
	}
	residuals(m, saturated, r)
	m.Notes = r.Notes
	if _, err := m.Encode(); err != nil {
		return nil, nil, err
	}
	return m, r, nil
}
