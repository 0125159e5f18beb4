# nudma. `make run` and `make test` install what is missing, build and go; see README.md.
#   make [CC=clang] [BUILD=dir] [OPT=-O0] [SANITIZE=address,undefined] [HOSTILE=1]

CC      ?= gcc
OPT     ?= -O3
BUILD   ?= build
PREFIX  ?= /usr/local
VERSION := 0.1.0
GIT     := $(shell git describe --always --dirty 2>/dev/null || echo unknown)
SCENARIO ?= pcie_bench/latency_size

PKGS     := libconfig glib-2.0 sqlite3
WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wundef \
            -Wvla -Werror
CFLAGS   := -std=gnu11 -g $(OPT) $(WARNINGS) -ffp-contract=off -fno-math-errno -MMD -MP -I. \
            $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer) \
            $(if $(HOSTILE),-DSIM_HOSTILE=1) \
            $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
LDLIBS   := $(shell pkg-config --libs $(PKGS) 2>/dev/null) -lm
LDFLAGS  := $(if $(SANITIZE),-fsanitize=$(SANITIZE))

LIB_C    := $(wildcard sim/*.c models/*.c models/*/*.c logic/*/*.c workloads/*.c)
LIB_S    := $(wildcard sim/*.S)
CLI_C    := $(wildcard cli/*.c)
TEST_C   := $(wildcard tests/unit/test_*.c tests/model/test_*.c tests/scenario/test_*.c)
BENCH_C  := $(wildcard bench/*.c)
LIB_O    := $(LIB_C:%.c=$(BUILD)/%.o) $(LIB_S:%.S=$(BUILD)/%.o)
CLI_O    := $(CLI_C:%.c=$(BUILD)/%.o)
TESTS    := $(TEST_C:%.c=$(BUILD)/%)
BENCHES  := $(BENCH_C:%.c=$(BUILD)/%)
LIB      := $(BUILD)/libnudma.a
NUDMA    := $(BUILD)/nudma

.PHONY: all tests run test bench figures check install clean setup
all: $(NUDMA)
tests: $(TESTS)

$(BUILD)/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(CPPFLAGS) -c -o $@ $<
$(BUILD)/%.o: %.S Makefile
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -c -o $@ $<
$(LIB): $(LIB_O)
	@rm -f $@
	ar rcs $@ $^
$(NUDMA): $(CLI_O) $(LIB)
	$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)
$(BUILD)/tests/%: $(BUILD)/tests/%.o $(LIB)
	$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS) -lcmocka
$(BUILD)/bench/%: $(BUILD)/bench/%.o $(LIB)
	$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

clean:
	rm -rf $(BUILD)

-include $(LIB_O:.o=.d) $(CLI_O:.o=.d) $(TESTS:=.d) $(BENCHES:=.d)
