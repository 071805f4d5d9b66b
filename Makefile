# make          build everything; the command goes to .bin/profiler
# make test     all tests
# make bench    the event kernel against its peers, then every Go benchmark
# make results  the reference run, its model, validation and full-scale figures into results/
# make results-host  this machine: run, model, validation, packet paths, peers
# make full     the full sweep of the nfp
# make deps     Debian packages of the tests against real tools (as root)
# make test-arm64    what runs on a board's Arm cores, built for arm64, under qemu
# make bench-native  this machine measured by us and by other tools, alternating
# make p4c-corpus P4C=DIR  the P4 front end over the test programs of a checkout of p4c
# make partition     the planner against CBC and GLPK, and its time by flows (as stored)
# make explore       every order of events of Cora's migration (as stored)
# make lint     go vet, staticcheck, gofmt, go.mod

GO ?= go

# sshd and qemu: remote boards; ip, dpdk: packets; gcc, likwid, sysbench,
# stress-ng: peers of the native benchmark; cbc, glpk: judges of the planner;
# graphviz: reads the drawn graphs
PACKAGES = openssh-server qemu-user iproute2 dpdk gcc libc6-dev likwid sysbench stress-ng coinor-cbc glpk-utils graphviz

# what runs on the Arm cores of a board
ARM64 = ./internal/linux/... ./internal/perf/... ./microbench/host/... ./microbench/remote/...

.PHONY: build test test-arm64 bench bench-native p4c-corpus partition explore results results-host full lint deps

build:
	$(GO) build ./...
	$(GO) build -o .bin/profiler ./cmd/profiler

# What measures this machine goes one package at a time: two would disturb each
# other, and take each other's huge pages.
NATIVE = ./bench/native ./cmd/profiler ./microbench/host/... ./microbench/netif ./microbench/testpmd

test:
	$(GO) test -count=1 $$($(GO) list ./... | grep -vxF "$$($(GO) list $(NATIVE))")
	$(GO) test -count=1 -p 1 $(NATIVE)

test-arm64:
	CGO_ENABLED=0 GOARCH=arm64 $(GO) build ./...
	CGO_ENABLED=0 GOARCH=arm64 $(GO) test -short -count=1 -exec qemu-aarch64 $(ARM64)

bench:
	$(GO) run ./bench
	$(GO) test -short -run='^$$' -bench=. ./...

bench-native:
	$(GO) run ./bench/native

p4c-corpus:
	@[ -d "$(P4C)/testdata/p4_16_samples" ] || { echo "P4C=DIR: expected a checkout of github.com/p4lang/p4c, with testdata/p4_16_samples in it"; exit 2; }
	$(GO) run ./bench/p4c -p4c $(P4C)

partition:
	$(GO) run ./bench/partition -out results/cora

explore:
	$(GO) run ./bench/explore -full -out results/cora

# a validation past its bounds is kept and told, not an end
results: build
	rm -rf results/nfp results/bluefield
	.bin/profiler run --board nfp --out results/nfp
	.bin/profiler validate --model results/nfp --board nfp --json > results/nfp/validate.json
	.bin/profiler run --board bluefield --out results/bluefield
	-.bin/profiler validate --model results/bluefield --board bluefield --json > results/bluefield/validate.json
	.bin/profiler reproduce all --scale full --out results

# half an hour, as root, on a machine that does nothing else
results-host: build
	rm -rf results/host
	.bin/profiler run --board host --out results/host
	-.bin/profiler validate --model results/host --board host --json > results/host/validate.json
	.bin/profiler forward --json > results/host/forward.json
	.bin/profiler plan --measure-host-costs --host-costs cora/costs/stored.json
	$(GO) run ./bench/native

# the full sweep: half an hour on two cores; its 30 MB are not kept in the repository
full: build
	.bin/profiler run --board nfp --suite full

deps:
	@missing=; for p in $(PACKAGES); do \
		[ "$$(dpkg-query -W -f='$${db:Status-Status}' $$p 2>/dev/null)" = installed ] || missing="$$missing $$p"; done; \
	if [ -n "$$missing" ]; then apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; fi

lint:
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	@unformatted="$$(gofmt -l .)"; if [ -n "$$unformatted" ]; then echo "not formatted by gofmt:"; echo "$$unformatted"; exit 1; fi
	$(GO) mod tidy -diff
