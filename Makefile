# make          build everything; the command goes to .bin/profiler
# make test     all tests
# make bench    the event kernel against its peers, then every Go benchmark
# make results  the reference run, its model, validation and full-scale figures into results/
# make full     the full sweep of the nfp
# make lint     go vet, staticcheck, gofmt, go.mod

GO ?= go

.PHONY: build test bench results full lint

build:
	$(GO) build ./...
	$(GO) build -o .bin/profiler ./cmd/profiler

test:
	$(GO) test -count=1 ./...

bench:
	$(GO) run ./bench
	$(GO) test -short -run='^$$' -bench=. ./...

results: build
	rm -rf results/nfp
	.bin/profiler run --board nfp --out results/nfp
	.bin/profiler validate --model results/nfp --board nfp --json > results/nfp/validate.json
	.bin/profiler reproduce all --scale full --out results

# the full sweep: half an hour on two cores; its 30 MB are not kept in the repository
full: build
	.bin/profiler run --board nfp --suite full

lint:
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	@unformatted="$$(gofmt -l .)"; if [ -n "$$unformatted" ]; then echo "not formatted by gofmt:"; echo "$$unformatted"; exit 1; fi
	$(GO) mod tidy -diff
