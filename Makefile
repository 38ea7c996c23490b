# Every target calls one script; the scripts install what is missing (a Rust
# toolchain, a C compiler, Python's venv) and say so before they do.

.PHONY: help run news test check fmt bless crash hostile histories histories-set histories-faults failovers simulation cluster fuzz bench history spec clients spark sample clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## build, start a server on 127.0.0.1:27017 with ./data, load the sample data (PORT=, DBPATH=)
	@scripts/run

news: ## a news site on a server of its own, with a year of sample feeds (PORT=, DATA=)
	@scripts/news

test: ## everything CI runs: `make check`, then end-to-end tests with real clients
	@scripts/test all

check: ## formatting, clippy, rustdoc, cargo test (with the tidy checks)
	@scripts/test check

fmt: ## format the Rust code
	@scripts/cargo fmt --all

bless: ## rewrite the outputs of the golden cases; review the diff as code
	@NESTOR_BLESS=1 scripts/cargo test --workspace

crash: ## the crash test at length: kill -9 under load, reopen, check (ROUNDS=50)
	@NESTOR_CRASH_ROUNDS=$${ROUNDS:-50} scripts/test crash

hostile: ## generators that want to break the server, at length (MINUTES=10, ONLY=power, SEED=)
	@scripts/hostile

histories: ## random transactions, kill -9, cut connections; verified (HOURS=1, or EPISODE=60 seconds; SEED=)
	@scripts/test histories $(if $(EPISODE),--seconds $(EPISODE),--hours $${HOURS:-1}) $(if $(SEED),--seed $(SEED))

histories-set: ## the same against a replica set of three members whose store, clocks, network and processes have bad days (MINUTES=30, SEED=)
	@scripts/test histories-set --set --hours $$(awk "BEGIN { print $${MINUTES:-30} / 60 }") $(if $(SEED),--seed $(SEED))

histories-faults: ## shows that `make histories` finds deliberate faults
	@scripts/test histories-faults

failovers: ## drivers in four languages through failovers of a replica set (COUNT=50)
	@NESTOR_FAILOVERS=$${COUNT:-50} scripts/test failovers

simulation: ## members of a replica set over a log in memory, in any order, by seeds (SEEDS=10000, or SEED=)
	@NESTOR_SIMULATION_SEEDS=$${SEEDS:-10000} $(if $(SEED),NESTOR_SIMULATION_SEED=$(SEED)) scripts/cargo test --release -q -p nestor-cluster --test simulation -- --nocapture

cluster: ## a replica set of three processes on this machine, and commands to break it (PORT=, DATA=, LOG=)
	@scripts/cluster

fuzz: ## run each fuzz target for a while (SECONDS_EACH=60, TARGET=name); needs a nightly toolchain
	@scripts/fuzz

bench: ## `nestor bench` on a release build (ARGS="--quick")
	@scripts/cargo build --release -p nestor
	@scripts/cargo run --release -q -p nestor -- bench $(ARGS)

history: ## measure this tree and add it to benches/lab/history.json (RELEASE=name)
	@scripts/lab-history $(RELEASE)

spec: ## driver specification data against a throw-away server (SPECS=dir)
	@scripts/spec

clients: ## the own suites of drivers and tools against a throw-away server (SUITE=pymongo)
	@scripts/clients $${SUITE:-all}

spark: ## MongoDB's connector for Spark with pyspark; installs Java, Maven and pyspark (three minutes)
	@scripts/spark

sample: ## fetch the sample data into ./sample
	@scripts/sample-data

clean: ## delete what `make run` and `make news` wrote
	rm -rf data sample examples/news/data
