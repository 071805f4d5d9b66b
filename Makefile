# make          build everything; the command goes to .bin/profiler
# make test     all tests
# make bench    the event kernel against its peers, then every Go benchmark
# make results  full-scale runs, models and figures into results/ (hours)
# make lint     go vet, staticcheck, gofmt, go.mod

GO ?= go

.PHONY: build test bench results lint

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
	.bin/profiler run --board nfp --suite full --out results/nfp
	.bin/profiler validate --model results/nfp/model.json --board nfp
	.bin/profiler reproduce all --scale full --out results

lint:
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	@unformatted="$$(gofmt -l .)"; if [ -n "$$unformatted" ]; then echo "not formatted by gofmt:"; echo "$$unformatted"; exit 1; fi
	$(GO) mod tidy -diff
