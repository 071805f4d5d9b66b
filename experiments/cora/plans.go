package cora

import (
	"context"
	"os"
	"path/filepath"

	"nicprof/cora/apps"
	"nicprof/cora/costs"
	"nicprof/cora/frontend"
	"nicprof/cora/plan"
	"nicprof/experiments"
	"nicprof/fit"
	"nicprof/model"
	"nicprof/p4"
	"nicprof/report"
	"nicprof/traffic"
)

// quickModel measures the board's quick sweep and fits a model to it.
func quickModel(ctx context.Context, env experiments.Env, id string) (*model.Model, report.Result, error) {
	b, err := newBench(env, id)
	if err != nil {
		return nil, report.Result{}, err
	}
	const suite = "quick"
	if err := b.plan(suite, nil, nil); err != nil {
		return nil, report.Result{}, err
	}
	res, err := b.run(ctx)
	if err != nil {
		return nil, res, err
	}
	m, _, err := fit.Fit(b.samples, fit.Options{Board: b.driver.Board(), Suite: suite, Seed: env.Seed})
	return m, res, err
}

// application analyses an application of ours. Its name keeps its place among
// them, not that of the copy that is read.
func application(name string) (*frontend.Result, error) {
	dir, err := os.MkdirTemp("", "nicprof-apps-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := apps.Extract(dir); err != nil {
		return nil, err
	}
	p, err := p4.Load(filepath.Join(dir, name+".p4"), p4.Options{})
	if err != nil {
		return nil, err
	}
	return frontend.Analyse(p, frontend.Options{})
}

// trafficOf reads an application's traffic file.
func trafficOf(name string) (traffic.Traffic, error) {
	file := "traffic/" + name + ".yaml"
	text, err := apps.Files.ReadFile(file)
	if err != nil {
		return traffic.Traffic{}, err
	}
	return traffic.Parse(text, file)
}

// build puts the problem of an application under traffic together, with the
// host costs that come with the program.
func build(m *model.Model, name string, t traffic.Traffic, o plan.Options) (*plan.Built, error) {
	front, err := application(name)
	if err != nil {
		return nil, err
	}
	return plan.Build(plan.Input{Front: front, Traffic: name, Given: &t, Model: m, Costs: costs.Stored(), Options: o})
}
