# The commands of every day; CMake does the work, see CMakeLists.txt and CMakePresets.json.
#
#   make           builds the libraries, the program and the examples in build/release
#   make deps      installs what is missing, from Debian's packages; nothing else here needs the network
#   make demo      generates an agent trace and replays it through a real store, all inside build/demo
#   make demo-llm  agent sessions of a real llama.cpp outgrow its memory; fetches its source from PyPI and builds it in build/llm
#   make test      builds and tests everything: plain, with address+undefined sanitizers, with the thread sanitizer; analysed, fuzzed
#   make chaos     8 processes on one flatcaked for 10 minutes, they and it killed at random; nothing wrong may come of it
#   make crash     kills a replay 50 times at random moments; each time what it leaves must be whole
#   make kill      kills a writer 200 times (KILLS=N) here and on a small disk that fills up; what was durable must be there
#   make sim       runs the core, and daemon and clients, in simulated worlds, 100,000 seeds of each (SEEDS=A..B); a failing
#                  one is named, see docs/testing.md
#   make coverage prints which share of the core's lines and branches the tests and the simulator execute
#   make fuzz      fuzzes all that reads bytes from outside, FUZZ_SECONDS for each target or until it is interrupted
#   make analyze   static analysis of src/ by clang-tidy and cppcheck, without findings
#   make bench     measures this machine against the targets of the README, in build/bench
#   make style     formats the code; make check-style only says what differs
#   make man       writes packaging/flatcake.1 and flatcaked.8 anew from the program's tables
#   make install   installs below PREFIX (and DESTDIR)
#   make deb       builds the Debian package, build/deb/flatcake_VERSION_ARCHITECTURE.deb
#   make clean     removes build/
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
RELEASE := build/release
FLATCAKE := $(RELEASE)/flatcake
DEMO := build/demo
BENCH := build/bench

# An existing build folder keeps the generator that it was made with.
GENERATOR = $(if $(wildcard $(RELEASE)/CMakeCache.txt)$(CMAKE_GENERATOR),,$(if $(shell command -v ninja),-G Ninja))

.PHONY: all deps demo demo-llm test crash chaos kill sim coverage analyze fuzz bench style check-style man install deb clean

all:
	@cmake --preset release $(GENERATOR) -DCMAKE_INSTALL_PREFIX=$(PREFIX) -Wno-dev --log-level=WARNING
	@cmake --build --preset release -j $(JOBS)

deps:
	@packaging/install-dependencies

demo: deps
	@$(MAKE) --no-print-directory all
	@rm -rf $(DEMO) && mkdir -p $(DEMO)
	$(FLATCAKE) gen --seed 1 --sessions 24 --turns 20 --length 0.5 --output $(DEMO)/trace.tar.zst
	$(FLATCAKE) replay $(DEMO)/trace.tar.zst --dir $(DEMO)/store --memory 64MiB --ssd 1GiB \
		--scale 16 --prefill 200000 --json $(DEMO)/result.json
	@rm -rf $(DEMO)/store

demo-llm: deps
	@packaging/install-dependencies llm
	@$(MAKE) --no-print-directory all
	@integrations/llama.cpp/demo $(RELEASE) build/llm

test: deps
	@packaging/install-dependencies analysis
	@packaging/install-dependencies operations || echo "unit, package and alerts are not checked without their tools"
	@packaging/install-dependencies pages || echo "pages are not looked at without a browser"
	@{ packaging/install-dependencies llm && JOBS=$(JOBS) integrations/llama.cpp/fetch build/llm/llama; } || \
		echo "the tests of llama.cpp are skipped without it"
	@JOBS=$(JOBS) tests/run

chaos: all
	FC_SOURCE_DIR=$(CURDIR) FLATCAKE=$(CURDIR)/$(FLATCAKE) FLATCAKED=$(CURDIR)/$(FLATCAKE)d CLIENTS=$(or $(CLIENTS),8) \
		SECONDS_OF_CHAOS=$(or $(SECONDS),600) tests/daemon/chaos.sh

crash: all
	FLATCAKE=$(CURDIR)/$(FLATCAKE) ROUNDS=$(or $(ROUNDS),50) tests/cli/kill_replay.sh

kill:
	@cmake --preset release $(GENERATOR) -DCMAKE_INSTALL_PREFIX=$(PREFIX) -Wno-dev --log-level=WARNING
	@cmake --build --preset release -j $(JOBS) --target test_real_kill
	KILLS=$(or $(KILLS),200) $(RELEASE)/tests/real/test_kill
	KILLS=$(or $(KILLS),200) FC_BUILD_DIR=$(CURDIR)/$(RELEASE) tests/real/kill_small_disk.sh

SEEDS ?= 1..100000
sim:
	@$(MAKE) --no-print-directory all
	@cmake --build --preset release -j $(JOBS) --target flatcake_sim_program
	$(RELEASE)/flatcake-sim --seeds $(SEEDS) --jobs $(JOBS)
	$(RELEASE)/flatcake-sim --wired --seeds $(SEEDS) --jobs $(JOBS)

coverage: deps
	@packaging/install-dependencies coverage
	@JOBS=$(JOBS) tests/coverage

fuzz: deps
	@JOBS=$(JOBS) FUZZ_SECONDS=$(or $(FUZZ_SECONDS),0) tests/fuzz/run

analyze: deps
	@packaging/install-dependencies analysis
	@JOBS=$(JOBS) tests/static-analysis

bench:
	@packaging/install-dependencies bench || echo "without fio, what is held against it is not measured"
	@$(MAKE) --no-print-directory all
	@rm -rf $(BENCH) && mkdir -p $(BENCH)
	$(FLATCAKE) bench --dir $(BENCH) --json $(BENCH)/result.json

SOURCES = $(shell find src include examples tests bench integrations -name '*.[ch]' 2>/dev/null)

style:
	clang-format -i $(SOURCES)

check-style:
	@FC_SOURCE_DIR=$(CURDIR) tests/house/lengths.sh
	@FC_SOURCE_DIR=$(CURDIR) tests/house/includes.sh
	@FC_SOURCE_DIR=$(CURDIR) tests/house/style.sh

man: all
	$(FLATCAKE) help manual > packaging/flatcake.1.new
	mv packaging/flatcake.1.new packaging/flatcake.1
	$(RELEASE)/flatcaked --manual > packaging/flatcaked.8.new
	mv packaging/flatcaked.8.new packaging/flatcaked.8

install: all
	cmake --install $(RELEASE)

DEB := build/deb
deb:
	@cmake -S . -B $(DEB) $(if $(shell command -v ninja),-G Ninja) -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_INSTALL_PREFIX=/usr \
		-DBUILD_TESTING=OFF -Wno-dev --log-level=WARNING
	@cmake --build $(DEB) -j $(JOBS)
	@cd $(DEB) && cpack -G DEB

clean:
	rm -rf build
