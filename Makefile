# make demo   builds a release unifiedchat and runs the main job; DATA=DIR uses real logs
# make test   builds everything with warnings as errors and runs every test
# make bench  prints every speed claim as a ratio; make deps installs the C libraries of the system
# make fuzz   libFuzzer on every parser, FUZZ_SECONDS each
# make kill   kills a busy client KILL_POINTS times and looks for what was lost or doubled
# make stress  every case on every adapter, the long ones too, in process and over sockets; and STRESS_STEPS random
#              operations against a model
# make pairs  moves real logs (../shared/data) between all vendors, each move killed twenty times
# make sanitize  tests of the core targets under the thread sanitizer; make sbom prints the bill of materials

SWIFT ?= swift
CHECKED = --explicit-target-dependency-import-check error
DATA ?=
VENV = .build/venv

.PHONY: demo test bench fuzz kill stress pairs sanitize sbom deps build schemas format clean

demo: deps
	$(SWIFT) build -c release --product unifiedchat
	$(SWIFT) build -c release --product hello-chat
	.build/release/unifiedchat demo $(if $(DATA),--data $(DATA))

test: deps schemas
	$(SWIFT) build --build-tests $(CHECKED)
	$(SWIFT) test --skip-build --no-parallel $(CHECKED)

# Schemas are JSON Schema 2020-12; Python's jsonschema checks them and what we write against them.
schemas: $(VENV)/ready
	$(SWIFT) build --product unifiedchat $(CHECKED)
	$(VENV)/bin/python Tests/Schemas/check.py .build/debug/unifiedchat

$(VENV)/ready:
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check 'jsonschema>=4.18,<5'
	touch $@

bench: deps
	$(SWIFT) build -c release --product benchmarks
	.build/release/benchmarks

FUZZ_SECONDS ?= 60

fuzz: deps
	Tests/Fuzzing/fuzz $(FUZZ_SECONDS)

KILL_POINTS ?= 1000

kill: deps
	$(SWIFT) build --build-tests
	UNIFIEDCHAT_KILL_POINTS=$(KILL_POINTS) $(SWIFT) test --skip-build --no-parallel --filter ClientKillTests

pairs: deps
	$(SWIFT) build --build-tests
	UNIFIEDCHAT_STRESS=1 $(if $(DATA),UNIFIEDCHAT_DATA=$(DATA)) \
	  $(SWIFT) test --skip-build --no-parallel --filter KillTests/real

STRESS_STEPS ?= 20000

stress: deps
	$(SWIFT) build --product unifiedchat
	.build/debug/unifiedchat conformance --level stress
	.build/debug/unifiedchat conformance --level stress --target loopback --adapter sendbird,openim,leancloud,leancloud-session
	.build/debug/unifiedchat conformance --model $(STRESS_STEPS)

CORE_TESTS = UnifiedChatTests|ChatJSONTests|ChatCryptoTests|ChatTransportTests|ChatEmulationTests|ChatCacheTests|ChatClientTests

sanitize: deps
	$(SWIFT) build --scratch-path .build/tsan --sanitize=thread --build-tests
	TSAN_OPTIONS=suppressions=$(CURDIR)/Tests/thread.suppressions \
	  $(SWIFT) test --scratch-path .build/tsan --sanitize=thread --skip-build --no-parallel --filter '^($(CORE_TESTS))\.'

sbom:
	@./.ci/bill-of-materials

build: deps
	$(SWIFT) build $(CHECKED)

deps:
	@./.ci/install-libraries

format:
	$(SWIFT) format --in-place --recursive Sources Adapters Tests Package.swift

clean:
	rm -rf .build demo
