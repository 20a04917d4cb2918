# Everything happens in .venv, which is made once for each state of requirements.lock.
SHELL := /bin/sh
LOCK_STATE := $(firstword $(shell cksum requirements.lock))
STAMP := .venv/.made-for-$(LOCK_STATE)
AIRFLOW_STAMP := .venv-airflow/.made-for-$(firstword $(shell cksum requirements-airflow.lock))
STORAGE_STAMP := .venv-storage/.made-for-$(LOCK_STATE)
OLDER_CODECS_STAMP := .venv-kafka-4.3/.made-for-$(LOCK_STATE)-$(firstword $(shell cksum requirements-kafka-4.3.lock))
TABLES_STAMP := .venv-tables/.made-for-$(LOCK_STATE)-$(firstword $(shell cksum requirements-tables.lock))
PYTHON_OF_VENV := .venv/bin/python
# psutil's "auto" counts physical cores. A file stays on one core, for the fixtures of its module.
CORES ?= logical
ON_ALL_CORES = -n $(CORES) --maxprocesses 8 --dist loadfile --no-loadscope-reorder
# Files of unit tests are made in memory, where it has 2 GB for them: disks take up to ten times the processor.
# They go once all tests have passed. The name is short: a few tests expect lines that a long path would break.
IN_MEMORY := $(or $(shell df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 2000000 { print "/dev/shm" }'),/tmp)
# glibc gives blocks of some MB back to the system at once, and gets each page anew for the next log.
KEEPING_MEMORY := MALLOC_MMAP_THRESHOLD_=33554432 MALLOC_TRIM_THRESHOLD_=268435456
unit_tests = files=$$(mktemp -d $${TMPDIR:-$(IN_MEMORY)}/t.XXX) && chmod 755 $$files && TMPDIR=$$files $(KEEPING_MEMORY) $(PYTHON_OF_VENV) -m pytest $(1) && rm -r $$files
PAGES := tests/test_how_to.py tests/test_links.py tests/test_rule_numbers.py tests/test_glossary.py tests/test_named_tests.py

# The Kafka that `make conformance` and `make test-engine` compare with (tests/oracle/versions.py), in the
# environment whose codecs write its bytes: one process can hold only one libzstd.
KAFKA ?= 4.3
export ORACLE_KAFKA := $(KAFKA)
ifneq ($(filter 4.1 4.2 4.3,$(KAFKA)),)
KAFKA_STAMP := $(OLDER_CODECS_STAMP)
PYTHON_OF_KAFKA := .venv-kafka-4.3/bin/python
else
KAFKA_STAMP := $(STAMP)
PYTHON_OF_KAFKA := $(PYTHON_OF_VENV)
endif

# Images of containers often set this: each process would compile every module of ours and of the tests anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-spark test-storage check conformance test-large test-crash test-damage test-bounds test-kill test-undo test-engine test-engine-crash test-engine-errors test-engine-damage test-engine-threads test-engine-pairs test-histories test-sequences test-lies test-errors test-writer test-browser test-sampling test-obstacles test-stages test-airflow test-alerts test-read-back test-tables test-scheduled test-week test-cluster broker-test test-starts bench bench-tables pictures scaling dist lock clean

help: ## say what there is
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' Makefile | expand -t 20

setup: $(STAMP) $(STORAGE_STAMP) $(OLDER_CODECS_STAMP) ## install everything into .venv, and prepare what the first run would

demo: $(STAMP) ## write a log directory, and plan, dry-run, run (on Spark) and prove a compaction of it; the local engine leaves the same bytes
	$(PYTHON_OF_VENV) -m demo

test: $(STAMP) $(OLDER_CODECS_STAMP) test-storage ## run the tests on all cores, but not those of the targets below; CORES=0 for one process
	.venv-kafka-4.3/bin/python -m pytest $(ON_ALL_CORES) -m 'older_codecs and not spark' tests/end_to_end tests/compactor/api
	$(call unit_tests,$(ON_ALL_CORES) -m 'not broker and not spark and not crash and not browser and not archive and not older_codecs')
	@echo 'Not run: tests that start Spark again and again (make test-spark), whatever needs Kafka or'
	@echo 'goes through more than a sample: make lists the targets, tests/README.md says which to run for what.'

test-spark: $(STAMP) $(OLDER_CODECS_STAMP) ## run the tests that start Spark: signals, kills, damaged input, a cluster, the demo
	.venv-kafka-4.3/bin/python -m pytest -m 'older_codecs and spark' tests/end_to_end
	$(PYTHON_OF_VENV) -m pytest $(ON_ALL_CORES) -m 'spark and not older_codecs'

test-storage: $(STORAGE_STAMP) ## run the tests that prove that storage needs no Spark
	.venv-storage/bin/python -m pytest -p no:cacheprovider -q tests/without_spark

check: $(STAMP) ## format, lint, types, import contracts, unit tests: before each commit
	.venv/bin/ruff format
	.venv/bin/ruff check
	.venv/bin/mypy
	.venv/bin/lint-imports
	$(call unit_tests,-q $(PAGES) tests/storage tests/cleaner_jobs tests/compactor)

conformance: $(KAFKA_STAMP) ## hold 200 random logs against Kafka's own cleaner, or LOGS=N and nothing else; KAFKA=4.4 for another release, here, in test-large and in test-engine (needs a JDK; fetches Kafka)
	$(PYTHON_OF_KAFKA) -m tests.conformance $(if $(LOGS),--only random --count $(LOGS))

test-large: $(KAFKA_STAMP) ## hold 400 logs of 1.5 MB, 100 of each codec, or LOGS=N of all, against Kafka's own cleaner
	$(PYTHON_OF_KAFKA) -m tests.conformance --only random --large --count $(if $(LOGS),$(LOGS),400)

test-crash: $(STAMP) ## cut runs short in every way, and recover each by Kafka and by ours; CRASH_STATES=N for a sample (needs a JDK; fetches Kafka)
	$(PYTHON_OF_VENV) -m pytest -q $(ON_ALL_CORES) -m crash tests/crash
	$(PYTHON_OF_VENV) -m tests.crash $(if $(CRASH_STATES),--states $(CRASH_STATES))

test-damage: $(STAMP) ## damage every byte and every length of logs that Kafka wrote, and count how each ends
	$(PYTHON_OF_VENV) -m tests.damage

test-bounds: $(STAMP) ## call every kernel between fences, over logs that changed after the scan; CASES=N for a sample
	$(PYTHON_OF_VENV) -m tests.bounds $(if $(CASES),--cases $(CASES) --checked-cases $(CASES))

test-kill: $(STAMP) ## kill -9 runs at random moments, on the local engine, on Spark in local mode and on a cluster, 200 of them or KILLS=N (needs a JDK; fetches Kafka)
	$(PYTHON_OF_VENV) -m tests.kill $(if $(KILLS),--count $(KILLS))

test-histories: $(STAMP) ## random histories of logs under brokers and under us, 10,000 of them or HISTORIES=N (needs a JDK; fetches Kafka)
	$(PYTHON_OF_VENV) -m tests.histories $(if $(HISTORIES),--count $(HISTORIES))

test-sequences: $(STAMP) ## compare logs by verify --against after random sequences of commands, ours and Kafka's, then with planted losses, 1,000 or SEQUENCES=N (needs a JDK; fetches Kafka)
	$(PYTHON_OF_VENV) -m tests.sequences $(if $(SEQUENCES),--count $(SEQUENCES))

test-engine: $(KAFKA_STAMP) ## replay 1,000 random scripts, or SCRIPTS=N, by Kafka's storage engine and by ours, as many with cleaning and recompression, 300 (or N) of a log manager, and recover --as-kafka where 300 (or N) of them open a log again; compare transcripts and files
	$(PYTHON_OF_KAFKA) -m tests.engine --scripts $(if $(SCRIPTS),$(SCRIPTS),1000)
	$(PYTHON_OF_KAFKA) -m tests.engine --everything --first-seed 100001 --scripts $(if $(SCRIPTS),$(SCRIPTS),1000)
	$(PYTHON_OF_KAFKA) -m tests.engine --manager --scripts $(if $(SCRIPTS),$(SCRIPTS),300)
	$(PYTHON_OF_KAFKA) -m tests.engine.recoveries --scripts $(if $(SCRIPTS),$(SCRIPTS),300)

test-engine-crash: $(STAMP) ## cut every operation of the storage engine short in every way, and open what is left by Kafka's and by ours; CRASH_STATES=N for a sample
	$(PYTHON_OF_VENV) -m tests.engine.crash $(if $(CRASH_STATES),--states $(CRASH_STATES))

test-engine-errors: $(STAMP) ## let every write, sync, rename and removal of the storage engine fail, once and for good; ONE_OF=N for each Nth alone
	$(PYTHON_OF_VENV) -m tests.engine.errors $(if $(ONE_OF),--one-of $(ONE_OF))

test-engine-damage: $(STAMP) ## open small logs with every byte changed and cut at every length, by Kafka's storage engine and by ours; EVERY=N for a sample
	$(PYTHON_OF_VENV) -m tests.engine.damage $(if $(EVERY),--every $(EVERY))

test-engine-threads: $(STAMP) ## one writer and four readers of a log, in threads, against a model, for an hour or MINUTES=N
	$(PYTHON_OF_VENV) -m tests.engine.threads --minutes $(if $(MINUTES),$(MINUTES),60)

test-engine-pairs: $(STAMP) ## every pair of operations of a log manager, in two threads and in two processes, 2,000 random schedules or SCHEDULES=N
	$(PYTHON_OF_VENV) -m tests.engine.pairs --first-seed 0 $(if $(SCHEDULES),--count $$((($(SCHEDULES) + 1) / 2)))

test-undo: $(STAMP) ## undo runs after every short sequence of what can happen meanwhile, and hold each undoing against a model
	$(PYTHON_OF_VENV) -m tests.undo $(if $(UNDO_SEEDS),--count $(UNDO_SEEDS))

test-lies: $(STAMP) ## lie in what tasks return and write, 5,000 times or LIES=N, and count which proof catches it
	$(PYTHON_OF_VENV) -m tests.lies $(if $(LIES),--count $(LIES))

test-errors: $(STAMP) ## let every file operation of run (in place and into a copy), recover and undo fail, in every way, once and for good; ONE_OF=N for each Nth alone
	$(PYTHON_OF_VENV) -m tests.disturbed errors $(if $(ONE_OF),--one-of $(ONE_OF))

test-writer: $(STAMP) ## let another writer do every kind of harm between any two file operations; ONE_OF=N for each Nth alone
	$(PYTHON_OF_VENV) -m tests.disturbed writer $(if $(ONE_OF),--one-of $(ONE_OF),--check-indexes)

test-stages: $(STAMP) ## hold a run at each of twelve stages, on each engine, and fill disks, stop and kill its processes, break its connections; STAGE='rewrite', FAULT='Java stopped' for one (needs root, for small disks)
	$(PYTHON_OF_VENV) -m tests.stages $(if $(STAGE),--only '$(STAGE)') $(if $(FAULT),--fault '$(FAULT)')

test-airflow: $(STAMP) $(AIRFLOW_STAMP) ## run the example DAG in a real Airflow on real logs: done, nothing to do, lock held, damage, a condition, a kill; SCENARIO='nothing to do' for one
	$(PYTHON_OF_VENV) -m tests.airflow $(if $(SCENARIO),"$(SCENARIO)")

test-read-back: $(STAMP) ## read 5,000 edited plans, manifests, memories and reports, or FILES=N: each is read or refused in words
	$(PYTHON_OF_VENV) -m tests.read_back $(if $(FILES),--count $(FILES))

test-tables: $(TABLES_STAMP) ## read 500 random logs, or LOGS=N, as tables in pyarrow, pandas, Polars, DuckDB and Spark, and of Parquet in each; compare with dump
	.venv-tables/bin/python -m tests.tables $(if $(LOGS),--logs $(LOGS))
	.venv-tables/bin/python -m pytest -q tests/compactor/api/test_tables.py # with the pandas that .venv has not

test-alerts: $(STAMP) ## hold the Prometheus alerts against a week of samples and two brokers on one host, and the metrics to the conventions, by promtool, Prometheus and node_exporter (from the path, or fetched from Debian)
	$(PYTHON_OF_VENV) -m tests.alerts

test-scheduled: $(STAMP) ## kill scheduled runs by SIGTERM, SIGINT, SIGHUP and SIGKILL at random moments, 50 or KILLS=N, and let the next ones run
	$(PYTHON_OF_VENV) -m tests.scheduled $(if $(KILLS),--count $(KILLS))

test-week: $(STAMP) ## a week of nightly runs between a broker's appends, then one fault after another, held against the alerts; FAULT='lock held' for one, CALM=N nights before
	$(PYTHON_OF_VENV) -m tests.scheduled.week $(if $(CALM),--calm $(CALM)) $(if $(FAULT),--fault '$(FAULT)')

broker-test: $(STAMP) ## compact under a real broker and look through its clients (needs a JDK; fetches Kafka)
	$(PYTHON_OF_VENV) -m pytest -q -m broker tests/broker

test-starts: $(STAMP) ## 300 damaged log directories or STARTS=N under a real broker's start, held against what we say of it (needs a JDK; fetches Kafka)
	$(PYTHON_OF_VENV) -m tests.broker.start_conditions $(if $(STARTS),--count $(STARTS))

test-cluster: dist ## run the archive of `make dist` on a standalone cluster and on a local-cluster; SCENARIO=unpacked or =standalone for some of it
	$(PYTHON_OF_VENV) -m pytest -q -m archive tests/cluster $(if $(SCENARIO),-k $(SCENARIO))

test-browser: $(STAMP) ## open the HTML report in a headless Chromium: load, click, sort, search (gets Debian's package where there is none)
	.ci/get-browser .venv/browser
	$(PYTHON_OF_VENV) -m pytest -q -m browser tests/browser

pictures: $(STAMP) ## draw docs/pictures anew, as the program and the page look now (needs Chromium, as test-browser)
	.ci/get-browser .venv/browser
	$(PYTHON_OF_VENV) -m tests.pictures

test-sampling: $(STAMP) ## write 200 random logs, or LOGS=N, and hold what plan --sample says of each against a dry run
	$(PYTHON_OF_VENV) -m tests.sampling --first-seed 1 $(if $(LOGS),--count $(LOGS))

test-obstacles: $(STAMP) ## put 500 random obstacles, or COUNT=N, in the way of a run, and compare what doctor, plan and run say of it (as root: gives files to another user)
	$(PYTHON_OF_VENV) -m tests.obstacles $(if $(COUNT),--count $(COUNT))

bench: $(STAMP) ## time Kafka's cleaner, cp -r and ours in turn, and write docs/benchmarks.md and its chart; JSON=FILE for every sample (needs a JDK; fetches Kafka)
	$(PYTHON_OF_VENV) -m tests.bench --write-docs $(if $(JSON),--json $(JSON))

bench-tables: $(STAMP) ## time a log of 30,000 small segments as a table in Arrow, Parquet and Spark, and measure the memory of two columns of 2 GB
	$(PYTHON_OF_VENV) -m tests.bench.small_segments

scaling: $(STAMP) ## fit the model of docs/scaling.md to its measured rounds, and write its tables; MEASURE=1 measures anew
	$(PYTHON_OF_VENV) -m tests.scaling $(if $(MEASURE),--measure)

dist: $(STAMP) ## build the wheel, and the archive that spark-submit takes to a cluster, into dist/
	$(PYTHON_OF_VENV) -m packing $(if $(LEVEL),--level $(LEVEL))

lock: $(STAMP) ## write the lock files anew from pyproject.toml; UPGRADE=--upgrade for newer versions
	.venv/bin/uv pip compile --quiet pyproject.toml --extra dev --extra java --universal \
	  --python-version 3.11 --generate-hashes --no-annotate --no-emit-index-url \
	  --custom-compile-command 'make lock' --output-file requirements.lock $(UPGRADE)
	echo 'zstandard==0.23.0' | .venv/bin/uv pip compile --quiet - --universal --no-deps \
	  --python-version 3.11 --generate-hashes --no-annotate --no-emit-index-url \
	  --custom-compile-command 'make lock' --output-file requirements-kafka-4.3.lock
	printf 'pandas\npolars\nduckdb\n' | .venv/bin/uv pip compile --quiet - --universal \
	  --constraint requirements.lock --no-emit-package numpy \
	  --python-version 3.11 --generate-hashes --no-annotate --no-emit-index-url \
	  --custom-compile-command 'make lock' --output-file requirements-tables.lock $(UPGRADE)
	echo 'apache-airflow>=3.1,<4' | .venv/bin/uv pip compile --quiet - --universal \
	  --python-version 3.11 --generate-hashes --no-annotate --no-emit-index-url \
	  --custom-compile-command 'make lock' --output-file requirements-airflow.lock $(UPGRADE)

clean: ## remove the environments and what tools left
	rm -rf .venv .venv-storage .venv-kafka-4.3 .venv-tables .venv-airflow .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP):
	.ci/make-venv .venv all
	$(PYTHON_OF_VENV) -m compactor.prepare
	touch $@

$(OLDER_CODECS_STAMP):
	.ci/make-venv .venv-kafka-4.3 kafka-4.3
	touch $@

$(TABLES_STAMP):
	.ci/make-venv .venv-tables tables
	touch $@

$(STORAGE_STAMP):
	.ci/make-venv .venv-storage storage
	touch $@

$(AIRFLOW_STAMP): $(STAMP)
	.venv/bin/uv venv --quiet --clear --python $(PYTHON_OF_VENV) .venv-airflow
	.venv/bin/uv pip install --quiet --python .venv-airflow/bin/python --require-hashes --no-deps \
	  -r requirements-airflow.lock
	.venv/bin/uv pip install --quiet --python .venv-airflow/bin/python --no-deps --editable .
	touch $@
