# nudma. `make run` and `make test` install what is missing, build and go; see README.md.
#
#   make [CC=clang] [BUILD=folder] [OPT=-O0] [CLI_OPT=-O0] [TEST_OPT=-O0] [DEBUG_INFO=-g1]
#        [SANITIZE=address,undefined [TRAP=1]] [HOSTILE=1 [HOSTILE_BASE=folder]] [CLI_BASE=folder]
#   make run | test | random | messages | fuzz | coverage | analyze | aarch64 | bench | figures | check | check-style | test-slurm | install | deb | clean | help
#
# V=1 shows whole commands. Everything is built below $(BUILD). A change of the flags
# rebuilds, a commit does not: the version goes into one object only.

ifeq ($(origin CC),default)
CC       := gcc
endif
OPT      ?= -O3
# Of the tests' own files, after OPT: they are four tenths of all code, and what they test takes the time. Optimised, they
# take three times as long to compile, and no less to run.
TEST_OPT ?= -O0
# Of the command's own files, after OPT.
CLI_OPT  ?=
# Without what gcc notes about variables through each pass: it is a sixth of the time of -O3, and the code is the same. For
# more of their values in a debugger: DEBUG_INFO=-g OPT=-Og.
DEBUG_INFO ?= -g $(if $(findstring clang,$(CC)),,-fno-var-tracking-assignments)
BUILD    ?= build
PREFIX   ?= /usr/local
# Where zsh looks for completions; Debian's packages have them in share/zsh/vendor-completions.
ZSHDIR   ?= $(PREFIX)/share/zsh/site-functions
NPROC    := $(shell nproc 2>/dev/null || echo 2)
# What `make run` runs: every scenario of the PCIe benchmark.
SCENARIOS ?= $(addprefix pcie_bench/,latency_size latency_window latency_numa latency_iommu \
               bandwidth_size bandwidth_iommu latency_breakdown)
CLAIMS   ?= scenarios/pcie_bench/claims.cfg

PKGS     := libconfig glib-2.0 sqlite3
WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wundef \
            -Wvla -Werror
# Checks of sizes in the C library's functions; they need an optimiser, and sanitizers have their own.
FORTIFY  := $(if $(SANITIZE)$(filter -O0,$(OPT)),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
# Where files and texts from outside are read. In the models it would take 1 % of all instructions.
PROTECTED := cli sim/config sim/store workloads/fio
# Of GLib what the version has that scripts/setup.sh asks for.
CFLAGS   := -std=gnu11 $(DEBUG_INFO) $(OPT) $(WARNINGS) -ffp-contract=off -fno-math-errno -MMD -MP -I. \
            $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all \
                             -fno-omit-frame-pointer $(if $(TRAP),-fsanitize-undefined-trap-on-error)) \
            $(if $(HOSTILE),-DSIM_HOSTILE=1) -fPIE $(FORTIFY) $(if $(COVERAGE),--coverage) \
            -DGLIB_VERSION_MIN_REQUIRED=GLIB_VERSION_2_70 \
            -DGLIB_VERSION_MAX_ALLOWED=GLIB_VERSION_2_70 \
            $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
LDLIBS   := $(shell pkg-config --libs $(PKGS) 2>/dev/null) -lm
# Under the sanitizers at a fixed address: they make 13 MB of data (without TRAP=1), which each start would relocate.
LDFLAGS  := $(if $(SANITIZE),-fsanitize=$(SANITIZE)) $(if $(COVERAGE),--coverage) $(if $(SANITIZE),-no-pie,-pie) -Wl,-z,relro,-z,now -Wl,--build-id=sha1
# The tests are two hundred programs in each build: lld links them in half the time, and in half of that if it does not
# look for strings that could be one.
comma    := ,
TEST_LDFLAGS := $(if $(shell command -v ld.lld),-fuse-ld=lld -Wl$(comma)-O0$(comma)--threads=1)

VERSION  := 0.1.0
GIT      := $(shell git describe --always --dirty 2>/dev/null || echo unknown)
# $(call version-flags,folder that holds scenarios/)
version-flags = -DNUDMA_VERSION='"$(VERSION)"' -DNUDMA_GIT='"$(GIT)"' -DNUDMA_DATADIR='"$(1)"'

LIB_C    := $(sort $(shell find sim models logic workloads -name '*.c'))
LIB_S    := $(sort $(shell find sim -name '*.S'))
CLI_C    := $(sort $(shell find cli -name '*.c'))
TEST_C   := $(sort $(shell find tests -name 'test_*.c'))
FUZZ_C   := tests/fuzz/fuzz_entry.c tests/fuzz/fuzz_entry_read.c
# Of what is read from outside; the others are of devices.
FUZZ_READERS := scenario claims measured filter report results jobfile iolog capture import measure whatif
SUPPORT_C := $(filter-out $(FUZZ_C),$(wildcard tests/support/*.c tests/random/random_*.c \
                 tests/fuzz/fuzz_*.c))
# In place of models/os, hence whole and first in each test of logic/.
FAKE_C   := $(wildcard tests/support/fake/*.c)
ON_FAKE_C := $(filter tests/logic/%,$(TEST_C))
BENCH_C  := $(wildcard bench/*.c)
# Whoever asks for the version or the data folder: those few files get them, the others do not.
VERSION_C := $(shell grep -lE 'NUDMA_(VERSION|GIT|DATADIR)' $(LIB_C) $(CLI_C) /dev/null)
LIB_O    := $(LIB_C:%.c=$(BUILD)/%.o) $(LIB_S:%.S=$(BUILD)/%.o)
CLI_O    := $(CLI_C:%.c=$(BUILD)/%.o)
VERSION_O := $(VERSION_C:%.c=$(BUILD)/%.o)
TESTS    := $(TEST_C:%.c=$(BUILD)/%)
ROOM_TESTS := $(filter-out $(BUILD)/tests/scenario/% $(BUILD)/tests/random/%,$(TESTS))
SUPPORT_O := $(SUPPORT_C:%.c=$(BUILD)/%.o)
FAKE_O   := $(FAKE_C:%.c=$(BUILD)/%.o)
BENCHES  := $(BENCH_C:%.c=$(BUILD)/%)
FLAGS    := $(shell $(CC) --version 2>/dev/null | head -n 1) $(CC) $(CFLAGS) $(if $(CLI_OPT),cli: $(CLI_OPT)) $(LDFLAGS)

# A hostile build takes from HOSTILE_BASE, a complete build with otherwise the same flags, the objects that
# do not depend on SIM_HOSTILE: no file of those the compiler listed names it. They are nineteen of twenty.
SHARED_TESTS :=
ifneq ($(HOSTILE_BASE),)
ifneq "$(filter-out -DSIM_HOSTILE=1,$(FLAGS))" "$(strip $(shell cat '$(HOSTILE_BASE)/stamp/flags' 2>/dev/null))"
$(error HOSTILE_BASE=$(HOSTILE_BASE) is no build with these flags but for HOSTILE=1)
endif
HOSTILE_IN := $(shell grep -rlw SIM_HOSTILE --include='*.[ch]' $(wildcard hw sim models logic workloads cli tests))
OWN_O    := $(patsubst $(HOSTILE_BASE)/%.d,$(BUILD)/%.o,$(shell find '$(HOSTILE_BASE)' -name '*.d' -exec grep -lwF $(HOSTILE_IN:%=-e %) {} +))
# $(call or-base,objects)
or-base  = $(filter $(OWN_O),$(1)) $(patsubst $(BUILD)/%,$(HOSTILE_BASE)/%,$(filter-out $(OWN_O),$(1)))
LIB_O    := $(call or-base,$(LIB_O))
CLI_O    := $(call or-base,$(CLI_O))
SUPPORT_O := $(call or-base,$(SUPPORT_O))
FAKE_O   := $(call or-base,$(FAKE_O))
SHARED_TESTS := $(filter-out $(OWN_O:.o=),$(TESTS))
endif

# A build with OPT=-O0 takes the command's objects from CLI_BASE, one with CLI_OPT=-O0 and otherwise the same flags.
ifneq ($(CLI_BASE),)
but-optimisation = $(filter-out -O% %_FORTIFY_SOURCE %_FORTIFY_SOURCE=2 cli:,$(1))
base-flags := $(shell cat '$(CLI_BASE)/stamp/flags' 2>/dev/null)
ifneq "$(OPT) $(call but-optimisation,$(FLAGS))" "$(if $(findstring cli: -O0,$(base-flags)),-O0) $(call but-optimisation,$(base-flags))"
$(error CLI_BASE=$(CLI_BASE) is no build with CLI_OPT=-O0 and, but for OPT=-O0, these flags)
endif
CLI_O    := $(CLI_C:%.c=$(CLI_BASE)/%.o)
endif

LIB      := $(BUILD)/libnudma.a
CLI_LIB  := $(BUILD)/libnudma_cli.a
SUPPORT  := $(BUILD)/libtests.a
NUDMA    := $(BUILD)/nudma

# Calls of the operating system that fail (tests/support/failing/), loaded in front of a program by LD_PRELOAD: not with
# sanitizers, which stand there themselves.
FAILING  := $(BUILD)/tests/failing.so

.PHONY: all tests room-tests room-test-objects benches run test random messages fuzz coverage analyze aarch64 test-slurm bench figures check check-style \
        check-layers setup install deb clean help require-libs require-cmocka require-machine FORCE
.DELETE_ON_ERROR:

all: $(NUDMA)
tests: $(TESTS) $(if $(SANITIZE),,$(FAILING))
room-tests: $(ROOM_TESTS)
# All that a hostile build takes from its HOSTILE_BASE.
room-test-objects: $(ROOM_TESTS:=.o) $(SUPPORT) $(FAKE_O) $(CLI_LIB)
benches: $(BENCHES)

# $(call say,CC ,file): a short line for a long command. As make says it itself, and all folders are made with the stamp
# of the flags, an object is one process that make starts, not three.
ifeq ($(V),1)
say      =
Q        :=
else
say      = $(info $()  $(1)  $(2))
Q        := @
endif
FOLDERS  = $(sort $(dir $(patsubst %,$(BUILD)/%,$(LIB_C) $(LIB_S) $(CLI_C) $(TEST_C) $(SUPPORT_C) $(FAKE_C) $(BENCH_C)) \
                        $(INSTALL_O) $(FAILING)))

# ---- Building ---------------------------------------------------------------------------------

$(BUILD)/%.o: %.c $(BUILD)/stamp/flags | require-libs
	$(call say,CC ,$@)
	$(Q)$(CC) $(CFLAGS) $(PROTECTOR) $(LAST_CFLAGS) $(CPPFLAGS) -c -o $@ $<
$(PROTECTED:%=$(BUILD)/%/%.o): PROTECTOR := -fstack-protector-strong
$(BUILD)/%.o: %.S $(BUILD)/stamp/flags | require-libs
	$(call say,AS ,$@)
	$(Q)$(CC) $(CPPFLAGS) -c -o $@ $<
$(LIB): $(LIB_O) $(BUILD)/stamp/objects
	$(call say,AR ,$@)
	@rm -f $@
	$(Q)ar rcs $@ $(LIB_O)
$(CLI_LIB): $(CLI_O) $(BUILD)/stamp/objects
	$(call say,AR ,$@)
	@rm -f $@
	$(Q)ar rcs $@ $(CLI_O)
$(NUDMA): $(CLI_O) $(LIB)
	$(call say,LD ,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $(CLI_O) $(LIB) $(LDLIBS)
$(SUPPORT): $(SUPPORT_O) $(BUILD)/stamp/objects
	$(call say,AR ,$@)
	@rm -f $@
	$(Q)ar rcs $@ $(SUPPORT_O)
$(BUILD)/cli/%.o: LAST_CFLAGS = $(if $(CLI_OPT),$(CLI_OPT) -U_FORTIFY_SOURCE -Wno-conversion -Wno-sign-conversion)
$(BUILD)/tests/%.o: LAST_CFLAGS = $(TEST_OPT) -U_FORTIFY_SOURCE
$(FAKE_O): LAST_CFLAGS = -U_FORTIFY_SOURCE # takes half of the time of the tests on it
$(BUILD)/tests/support/iommu_fake.o $(BUILD)/tests/support/cluster_scenario.o: LAST_CFLAGS = # parts of benches
$(filter $(BUILD)/%,$(TESTS:=.o) $(SUPPORT_O) $(FAKE_O)): $(BUILD)/stamp/test-flags
# iommu_fake and cluster_scenario serve benches, too, and those ask for no cmocka.
$(TESTS:=.o) $(filter-out %/iommu_fake.o %/cluster_scenario.o,$(SUPPORT_O)): | require-cmocka
$(ON_FAKE_C:%.c=$(BUILD)/%): ON_FAKE := $(FAKE_O)
$(ON_FAKE_C:%.c=$(BUILD)/%): $(FAKE_O)
define link-test
	$(call say,LD ,$@)
	$(Q)$(CC) $(LDFLAGS) $(TEST_LDFLAGS) -o $@ $< $(ON_FAKE) $(SUPPORT) $(CLI_LIB) $(LIB) $(LDLIBS) -lcmocka
endef
$(BUILD)/tests/%: $(BUILD)/tests/%.o $(SUPPORT) $(CLI_LIB) $(LIB)
	$(link-test)
$(SHARED_TESTS): $(BUILD)/tests/%: $(HOSTILE_BASE)/tests/%.o $(SUPPORT) $(CLI_LIB) $(LIB)
	$(link-test)
$(FAILING): tests/support/failing/failing.c $(BUILD)/stamp/flags
	$(call say,LD ,$@)
	$(Q)$(CC) $(filter-out -MMD -MP,$(CFLAGS)) -fPIC -shared -o $@ $< -ldl
# Fuzzers, of a build of its own by clang: scripts/fuzz.sh.
$(BUILD)/fuzz/%: $(FUZZ_C) $(SUPPORT) $(CLI_LIB) $(LIB)
	@mkdir -p $(@D)
	$(call say,LD ,$@)
	$(Q)$(CC) $(filter-out -MMD -MP,$(CFLAGS)) $(LDFLAGS) -fsanitize=fuzzer -DFUZZ_TARGET=fuzz_$* -o $@ \
	    $(if $(filter $*,$(FUZZ_READERS)),$(word 2,$^),$<) $(SUPPORT) $(CLI_LIB) $(LIB) $(LDLIBS) -lcmocka
$(BENCHES:=.o):
$(BUILD)/bench/iommu: $(BUILD)/tests/support/iommu_fake.o
$(BUILD)/bench/cluster: $(BUILD)/tests/support/cluster_scenario.o
$(BUILD)/bench/%: $(BUILD)/bench/%.o $(LIB)
	$(call say,LD ,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(VERSION_O): CPPFLAGS += $(call version-flags,$(CURDIR))
$(VERSION_O): $(BUILD)/stamp/version

# A stamp is a file that changes when its text does: what depends on it is then built anew.
stamp = @mkdir -p $(@D); printf '%s\n' '$(1)' >$@.new; \
        if cmp -s $@.new $@; then rm -f $@.new; else mv -f $@.new $@; fi
$(BUILD)/stamp/flags: FORCE
	@mkdir -p $(FOLDERS)
	$(call stamp,$(FLAGS))
$(BUILD)/stamp/test-flags: FORCE
	$(call stamp,$(TEST_OPT))
$(BUILD)/stamp/objects: FORCE
	$(call stamp,$(LIB_O) $(CLI_O) $(SUPPORT_O))
$(BUILD)/stamp/version: FORCE
	$(call stamp,$(VERSION) $(GIT) $(CURDIR))
$(BUILD)/stamp/prefix: FORCE
	$(call stamp,$(PREFIX) $(LIBDIR))

# Said once and in words, instead of a page of messages about missing headers.
require-libs: require-machine
	@command -v $(CC) >/dev/null || { \
	    echo "make: the compiler $(CC) is missing; run: scripts/setup.sh run" >&2; exit 1; }
	@command -v pkg-config >/dev/null && pkg-config --exists $(PKGS) || { \
	    echo "make: pkg-config or one of its packages $(PKGS) is missing;" \
	         "run: scripts/setup.sh run" >&2; exit 1; }
require-machine:
	@! command -v $(CC) >/dev/null || \
	    why=$$($(CC) $(filter -m%,$(OPT)) -E -x c hw/machine.h 2>&1 >/dev/null) || \
	    { echo "make: $$(printf '%s\n' "$$why" | sed -n '/#error/{s/.*#error "\(.*\)"/\1/p;q}')" >&2; exit 1; }
require-cmocka:
	@pkg-config --exists cmocka || { \
	    echo "make: the tests need cmocka; run: scripts/setup.sh test" >&2; exit 1; }

# ---- Going ------------------------------------------------------------------------------------
# set-up may install what this make has already looked for, hence a second make. Where the output of
# `make run` is no terminal, it has neither a line for each file nor one for each run or point.

again = +@$(MAKE) --no-print-directory $(if $(findstring -j,$(MAKEFLAGS)),,-j$(NPROC))

setup:
	@scripts/setup.sh test

run:
	@scripts/setup.sh run
	$(if $(MAKE_TERMOUT),,@[ -x $(NUDMA) ] || echo 'make run: building first, which takes a minute or a few')
	$(again) $(if $(MAKE_TERMOUT),,say=) all
	$(NUDMA) run $(SCENARIOS) -j $(NPROC) $(if $(MAKE_TERMOUT),,--progress 10 >/dev/null)
	$(if $(MAKE_TERMOUT),,$(NUDMA) plot --format png $(SCENARIOS))
	$(NUDMA) plot --format text $(if $(MAKE_TERMOUT),$(SCENARIOS),$(firstword $(SCENARIOS)))
	@$(NUDMA) check $(CLAIMS) || { [ $$? = 1 ] && \
	    echo "make run: not every published value was reproduced; the table above says which"; }

test:
	@scripts/setup.sh test
	@BUILD='$(BUILD)' scripts/run-tests.sh

# More of tests/random/ than `make test` runs: SEEDS of them, from FROM on, in each area of AREAS.
random:
	@scripts/setup.sh test
	@BUILD='$(BUILD)' CC='$(CC)' scripts/random.sh $(if $(FROM),--from $(FROM)) $(SEEDS) $(AREAS)

# COUNT messages of Open-MX on a wire that loses, repeats and overtakes PERMILLE of the packets each.
messages: COUNT ?= 1000000
messages: SEED ?= 1
messages: PERMILLE ?= 50
messages:
	@scripts/setup.sh test
	$(again) $(BUILD)/tests/logic/openmx/test_openmx_wire
	$(BUILD)/tests/logic/openmx/test_openmx_wire $(COUNT) $(SEED) $(PERMILLE)

# RUNS inputs of one of the fuzzers of tests/fuzz/ (TARGET=nvme, rdma, nic, ioat, dsa, myri; scenario, claims,
# measured, filter, report, results, jobfile, iolog, capture, import, measure, whatif); KEEP=1: what reaches
# new code then goes into the corpus; FAST=1: without the sanitizers, but for what reached new code.
fuzz:
	@scripts/setup.sh fuzz
	@BUILD='$(BUILD)' scripts/fuzz.sh $(if $(KEEP),--keep) $(if $(FAST),--fast) '$(TARGET)' $(RUNS)

# Which lines of sim/, models/ and logic/ the tests of rooms execute; ALL=1: those of tests/scenario/ in C, too.
coverage:
	@scripts/setup.sh test
	@BUILD='$(BUILD)' scripts/coverage.sh $(if $(ALL),--all)

# Static analysis by gcc and cppcheck, TIDY=1: by clang-tidy, too; FILES: of these only.
analyze:
	@BUILD='$(BUILD)' TIDY='$(TIDY)' scripts/analyze.sh $(FILES)

# A build for AArch64, run under qemu-user: tests, and SCENARIO's quick points with this machine's fingerprints.
aarch64:
	@BUILD='$(BUILD)' scripts/aarch64.sh $(SCENARIO)

# Optional: a real Slurm on this machine alone; skipped, and says why, where it cannot be installed or
# run.
test-slurm: all
	@scripts/setup.sh slurm || echo "test-slurm: not everything is installed (see above)"
	@BUILD='$(BUILD)' tests/slurm/test_slurm.sh

bench:
	@scripts/setup.sh bench
	$(again) benches
	@BUILD='$(BUILD)' bench/run.sh

# All scenarios, or those that FIGURES names, sampled to 1 % (docs/results.md); EXACT=1: all of them whole.
# QUICK=1: few points, whole, in a database of their own.
figures:
	@scripts/setup.sh run
	$(again) all
	$(NUDMA) figures $(FIGURES) $(if $(QUICK),--quick --db $(BUILD)/quick.db \
	    --output $(BUILD)/quick-plots,$(if $(EXACT),,--precision 1%)) -j $(NPROC) $(if $(MAKE_TERMOUT),,--progress 10)

check: all
	$(NUDMA) check

check-style: check-layers
	@scripts/check-style.sh
check-layers: all
	@scripts/check-layers.sh $(BUILD)

# ---- Installing -------------------------------------------------------------------------------
# The installed command looks for its scenarios below PREFIX, the one in $(BUILD) in this folder:
# the same objects but for the version's.

SHARE    := $(DESTDIR)$(PREFIX)/share/nudma
INSTALL_O := $(VERSION_C:%.c=$(BUILD)/install/%.o)
# What git knows, where this is a repository: files of the user beside them stay here.
TO_SHARE = $(shell { [ -e .git ] && git ls-files -- scenarios scripts 2>/dev/null | grep . || \
                     find scenarios scripts -type f; } | \
                   grep -E '\.(cfg|csv|gp|md|fio)$$' | while read -r f; do [ ! -f "$$f" ] || echo "$$f"; done)

$(BUILD)/install/%.o: %.c $(BUILD)/stamp/flags $(BUILD)/stamp/version $(BUILD)/stamp/prefix \
                      | require-libs
	$(call say,CC ,$@)
	$(Q)$(CC) $(CFLAGS) $(CPPFLAGS) $(call version-flags,$(PREFIX)/share/nudma) -c -o $@ $<
$(BUILD)/install/nudma: $(INSTALL_O) $(CLI_O) $(LIB)
	$(call say,LD ,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $(INSTALL_O) $(filter-out $(VERSION_O),$(CLI_O)) $(LIB) $(LDLIBS)

# The library: what the command consists of but for cli/, with the version's objects that look below PREFIX.
LIBDIR   ?= $(PREFIX)/lib
HEADERS   = $(filter-out %_internal.h,$(wildcard $(foreach f,hw sim models logic workloads,$(f)/*.h $(f)/*/*.h $(f)/*/*/*.h)))
$(BUILD)/install/libnudma.a: $(LIB) $(INSTALL_O)
	$(call say,AR ,$@)
	@rm -f $@
	$(Q)ar rcD $@ $(filter-out $(VERSION_O),$(LIB_O)) $(filter $(patsubst $(BUILD)/%,$(BUILD)/install/%,$(LIB_O)),$(INSTALL_O))
	$(Q)strip --strip-debug --enable-deterministic-archives $@
$(BUILD)/install/nudma.pc: $(BUILD)/stamp/prefix Makefile
	@{ echo 'prefix=$(PREFIX)'; echo 'libdir=$(subst $(PREFIX)/,$${prefix}/,$(LIBDIR))'; \
	   echo 'includedir=$${prefix}/include/nudma'; echo; echo 'Name: nudma'; \
	   echo 'Description: simulator of DMA across sockets, hosts and copy engines'; \
	   echo 'Version: $(VERSION)'; echo 'Requires: $(PKGS)'; echo 'Cflags: -I$${includedir}'; \
	   echo 'Libs: -L$${libdir} -lnudma -lm'; } | sed '/^[a-z]*=/s/ /\\ /g' >$@

# Manual pages and completions say what the command says.
$(BUILD)/install/manuals/nudma.bash: $(BUILD)/install/nudma scripts/manuals.sh
	$(call say,GEN,$(@D))
	$(Q)scripts/manuals.sh $< $(@D)

install: $(BUILD)/install/nudma $(BUILD)/install/manuals/nudma.bash $(BUILD)/install/libnudma.a $(BUILD)/install/nudma.pc
	install -D -m 755 $< "$(DESTDIR)$(PREFIX)/bin/nudma"
	install -D -m 755 scripts/slurm-array.sh "$(DESTDIR)$(PREFIX)/bin/nudma-slurm-array"
	@for f in $(BUILD)/install/manuals/man1/*.1; do \
	    install -D -m 644 "$$f" "$(DESTDIR)$(PREFIX)/share/man/man1/$${f##*/}" || exit 1; done
	@install -D -m 644 $(BUILD)/install/manuals/nudma.bash "$(DESTDIR)$(PREFIX)/share/bash-completion/completions/nudma"
	@install -D -m 644 $(BUILD)/install/manuals/_nudma "$(DESTDIR)$(ZSHDIR)/_nudma"
	@install -D -m 644 $(BUILD)/install/libnudma.a "$(DESTDIR)$(LIBDIR)/libnudma.a"
	@install -D -m 644 $(BUILD)/install/nudma.pc "$(DESTDIR)$(LIBDIR)/pkgconfig/nudma.pc"
	@install -D -m 644 workloads/embed/nudma.h "$(DESTDIR)$(PREFIX)/include/nudma/nudma.h"
	@cp --parents $(filter-out workloads/embed/nudma.h,$(HEADERS)) "$(DESTDIR)$(PREFIX)/include/nudma"
	@chmod -R u=rwX,go=rX "$(DESTDIR)$(PREFIX)/include/nudma"
	@for f in $(wildcard examples/*.c examples/*/*.[ch] examples/*/*.cfg examples/*/Makefile); do \
	    install -D -m 644 "$$f" "$(DESTDIR)$(PREFIX)/share/doc/nudma/$$f" || exit 1; done
	@for f in $(TO_SHARE); do install -D -m 644 "$$f" "$(SHARE)/$$f" || exit 1; done
	@for f in README.md LICENSE $(wildcard docs/*.md docs/*/*.md docs/images/*.png); do \
	    install -D -m 644 "$$f" "$(DESTDIR)$(PREFIX)/share/doc/nudma/$$f" || exit 1; done

# Packages for Debian, below $(BUILD)/deb.
deb: $(BUILD)/install/nudma
	@scripts/make-deb.sh $(BUILD)/deb $(VERSION)

clean:
	rm -rf $(BUILD) $(addprefix $(BUILD)-,san hostile clang coverage fuzz fuzz-fast aarch64 clang-O0)

help:
	@sed -n '1,/^$$/s/^# \{0,1\}//p' Makefile

-include $(filter $(BUILD)/%,$(LIB_O:.o=.d) $(CLI_O:.o=.d) $(INSTALL_O:.o=.d) $(TESTS:=.d) $(SUPPORT_O:.o=.d) \
            $(FAKE_O:.o=.d) $(BENCHES:=.d))
