#!/usr/bin/env bash
# The scripts that judge everything else: the counting of test cases, the layering and style checks,
# the tables of parameters, and set-up that has nothing to do, or cannot do it.
set -u
cd "$(dirname "$0")/../.." || exit 1
nudma=${NUDMA:-build/nudma}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cases=0
failed=0

is() { # is NAME FOUND EXPECTED
    cases=$((cases + 1))
    if [ "$2" = "$3" ]; then echo "ok $cases - $1"; else
        echo "not ok $cases - $1"
        printf '# found:    %s\n# expected: %s\n' "$2" "$3"
        failed=$((failed + 1))
    fi
}

# ---- Counting ----------------------------------------------------------------------------------
counts() { # counts STATUS KIND TEXT
    printf '%b' "$3" | awk -v status="$1" -v kind="$2" -f scripts/count-tap.awk
}
is "all pass" "$(counts 0 program '1..2\nok 1 - a\nok 2 - b\n')" "2 0 "
is "a failed case" "$(counts 1 program '1..2\nok 1 - a\nnot ok 2 - b\n# why\n')" "1 1 "
is "a skipped case has not passed" "$(counts 0 program '1..2\nok 1 - a\nnot ok 2 # SKIP b\n')" \
    "1 1 skipped 1"
is "two groups" "$(counts 0 program '1..1\nok 1 - a\n1..1\nok 1 - b\n')" "2 0 "
is "a crash" "$(counts 134 program '1..2\nok 1 - a\n')" "1 1 died of signal 6"
is "a crash after a failed case" "$(counts 139 program '1..3\nnot ok 1 - a\n')" \
    "0 2 died of signal 11"
is "a leak found at the end" "$(counts 23 program '1..1\nok 1 - a\n')" "1 1 ended with status 23"
is "a hang" "$(counts 124 program '1..2\nok 1 - a\n')" "1 1 ran into its time limit"
is "an early exit" "$(counts 0 program '1..3\nok 1 - a\n')" "1 1 ended after 1 of 3 cases"
is "a program without cases" "$(counts 0 program 'fine\n')" "0 1 has run no case"
is "a case without a name" "$(counts 1 program '1..2\nok 1 - a\nnot ok\n')" "1 1 "
is "a script that gives up" "$(counts 0 script '1..1\nok 1 - a\nBail out!\n')" "1 1 bailed out"
is "a script that ends early" "$(counts 0 script 'ok 1 - a\n')" "1 1 ended without a plan"
is "a script by its status, good" "$(counts 0 script 'fine\n')" "1 0 "
is "a script by its status, bad" "$(counts 3 script 'fine\n')" "0 1 ended with status 3"

# The whole runner on a small tree: two programs, of which one has a case less in the hostile build,
# and scripts. A program is made by copying its source.
small=$scratch/small
mkdir -p "$small"/{scripts,tests/sim,tests/models/nic,tests/scenario}
cp scripts/run-tests.sh scripts/count-tap.awk "$small/scripts"
cat >"$small/Makefile" <<'END'
.RECIPEPREFIX = >
TESTS := $(patsubst %.c,$(BUILD)/%,$(shell find tests -name 'test_*.c'))
all room-test-objects:
tests room-tests: $(TESTS)
$(BUILD)/%: %.c
> @mkdir -p $(@D) && cp $< $@ && chmod +x $@
END
cat >"$small/tests/sim/test_a.c" <<'END'
#!/bin/sh
printf '1..3\nok 1 - one\nok 2 - two\nok 3 - two\n'
END
cat >"$small/tests/models/nic/test_b.c" <<'END'
#!/bin/sh
case $CONFIG in hostile) printf '1..1\nok 1 - one\n' ;; *) printf '1..2\nok 1 - one\nok 2 - large\n' ;; esac
END
echo 'echo fine' >"$small/tests/scenario/test_c.sh"
run_small() { (cd "$small" && BUILD=built JOBS=1 scripts/run-tests.sh "$@" 2>/dev/null); }
ends() { tail -n "$1" | paste -sd '|' -; } # ends LINES
is "distinct cases, and all of them" "$(run_small gcc san hostile | ends 2)" \
    "6 distinct cases: 4 in 3 builds, 2 in 2 builds|16 passed, 0 failed"
is "and what each build and test took" "$(awk '{ n[$3 " " ($4 == "build")] += $1 + 0 >= 0 }
    END { for (i in n) print i, n[i] }' "$small/built/test-results/times" | sort | paste -sd '|' -)" \
    "clang 1 1|gcc 0 3|gcc 1 1|hostile 0 2|hostile 1 1|san 0 3|san 1 1"
is "and one build" "$(run_small hostile | ends 2)" "4 distinct cases: 4 in 1 build|4 passed, 0 failed"
is "and a word" "$(run_small gcc -k nic | ends 2)" "2 distinct cases: 2 in 1 build|2 passed, 0 failed"
run_small gcc -k nothing_of_it >/dev/null; is "no test of this name" $? 2
# shellcheck disable=SC2016 # for the script to expand
# Kills the shell that would have counted it, and with that all that was to come.
echo 'kill -KILL "$(ps -o ppid= -p $PPID)"' >"$small/tests/scenario/test_d.sh"
out=$(run_small gcc); is "one that vanishes with its watcher" $? 1
is "is a failure, as is what comes after it" "$(ends 3 <<<"$out")" \
    "  FAILED: gcc tests.sim.test_a|1 distinct cases: 1 in 1 build|1 passed, 3 failed"
is "and named" "$(grep -c '/test_[abd][.sh]*  *left no count: 1 FAILED' <<<"$out")" 3
echo 'echo "1..1"; echo "ok 1 # SKIP no such tool"' >"$small/tests/scenario/test_d.sh"
is "a skip is one" "$(run_small gcc | ends 1)" "6 passed, 1 failed"
rm "$small/tests/scenario/test_d.sh"
sed -i 's/cp /[ $@ != built-hostile\/tests\/sim\/test_a ] \&\& cp /' "$small/Makefile"
rm -r "$small/built-hostile"
is "one that is not built, and its build" "$(run_small hostile gcc | ends 2)" \
    "6 distinct cases: 1 in 2 builds, 5 in 1 build|7 passed, 2 failed"

# ---- Layers --------------------------------------------------------------------------------------
tree=$scratch/tree
mkdir -p "$tree"/{scripts,sim/engine,logic,cli/base,models/{nic,nvme,pcie/{link,root},numa,host}}
cp scripts/check-layers.sh "$tree/scripts"
file() { # file PATH INCLUDE...: a file with these includes
    local path=$1
    shift
    printf '#include %s\n' "$@" >"$tree/$path"
}
layers() { # how many breaches name this file, or "none"
    local breaches
    breaches=$("$tree/scripts/check-layers.sh" 2>/dev/null | grep -c "^$1:")
    find "$tree" -name "*.[ch]" -delete
    echo "$breaches"
}
base() {
    file sim/engine/a.h '<stdint.h>'
    file models/pcie/link/tlp.h '"sim/engine/a.h"'
    file models/numa/numa.h '"sim/engine/a.h"'
    file logic/kapi.h '<stdint.h>'
}
base; file cli/base/a.c '"models/pcie/link/tlp.h"' '<glib.h>'
is "downwards is fine" "$(layers '[a-z/_]*\.[ch]')" 0
base; file sim/engine/b.c '"models/pcie/link/tlp.h"'
is "sim knows no hardware" "$(layers sim/engine/b.c)" 1
base; file logic/a.c '"sim/engine/a.h"'
is "logic knows no simulator" "$(layers logic/a.c)" 1
base; file models/nvme/a.h '"sim/engine/a.h"'; file models/nic/a.c '"models/nvme/a.h"'
is "devices do not know each other" "$(layers models/nic/a.c)" 1
base; file models/nic/a.c '"models/numa/numa.h"'
is "a device does not reach into memory" "$(layers models/nic/a.c)" 1
base; file models/pcie/link/link.c '"models/numa/numa.h"'
is "a link does not know caches" "$(layers models/pcie/link/link.c)" 1
base; file models/pcie/root/root_complex.c '"models/numa/numa.h"' '"models/pcie/link/tlp.h"'
is "the root complex does" "$(layers models/pcie/root/root_complex.c)" 0
base; file models/numa/dram.c '<glib.h>'
is "no GLib in models" "$(layers models/numa/dram.c)" 1
base; file sim/engine/g.h '<glib.h>'; file models/numa/dram.c '"sim/engine/g.h"'
is "nor through a header" "$(layers models/numa/dram.c)" 1
base; file sim/engine/b.h '"sim/engine/c.h"'; file sim/engine/c.h '"sim/engine/b.h"'
is "no circles" "$(layers 'sim/engine/[bc].h')" 1
base; file sim/engine/b.c '"a.h"'
is "paths start at the project" "$(layers sim/engine/b.c)" 1
base; file cli/base/a.c '<sqlite3.h>'
is "the database is the store's" "$(layers cli/base/a.c)" 1
sql() { # sql TEXT: a line of code in a command
    base
    printf '%s\n' "$1" >"$tree/cli/base/a.c"
    layers cli/base/a.c
}
is "and so is its language" "$(sql '    ask("SELECT point FROM result WHERE scenario = ?1");')" 1
is "in any part of a text" "$(sql '    " AND id IN (SELECT run_id FROM newest)"')" 1
is "that joins" "$(sql '    " JOIN label l ON l.id = w.scenario_id"')" 1
is "that sets up" "$(sql '    run(db, "PRAGMA user_version");')" 1
is "that begins" "$(sql '    const char sql[] = "SELECT scenario, count(*),"')" 1
is "that attaches" "$(sql '    run(db, "ATTACH ?1 AS source");')" 1
is "words are not SQL" "$(sql '    "Select one of them from the list", "Updates what is set"')" 0
is "the store speaks it" "$(base; mkdir -p "$tree/sim/store"
    echo 'const char *q = "SELECT point FROM result";' >"$tree/sim/store/q.c"
    layers sim/store/q.c)" 0

# What an own declaration hides from the includes, the objects show.
symbols() { # symbols FILE: what check-layers says about it with a build of the tree
    find "$tree" -name '*.c' | while read -r c; do
        o=$tree/built/${c#"$tree"/}
        mkdir -p "$(dirname "$o")" && "${CC:-gcc}" -w -c -o "${o%.c}.o" "$c"
    done
    "$tree/scripts/check-layers.sh" built 2>/dev/null | sed -n "s|^$1: ||p"
    find "$tree" -name '*.[ch]' -delete
    rm -rf "$tree/built"
}
echo 'void up(void); void b(void) { up(); }' >"$tree/sim/engine/b.c"
echo 'void up(void) {}' >"$tree/cli/base/up.c"
is "no upward call" "$(symbols 'sim/engine/b.c:1')" \
    "takes up of cli/base/up.c: sim/engine/ lies below cli/base/"
echo 'void k_up(void); void b(void) { k_up(); }' >"$tree/logic/b.c"
mkdir -p "$tree/models/os"
echo 'void k_up(void) {}' >"$tree/models/os/up.c"
is "but for the kernel's services" "$(symbols logic/b.c:1)" ""
echo 'void k_up(void); void b(void) { k_up(); }' >"$tree/logic/b.c"
echo 'void k_up(void) {}' >"$tree/cli/base/up.c"
is "of the rooms that make them" "$(symbols logic/b.c:1)" \
    "takes k_up of cli/base/up.c: logic/ stands as it would in a kernel: it knows hw/ and logic/ only"
echo 'int sqlite3_open(void); int b(void) { return sqlite3_open(); }' >"$tree/cli/base/b.c"
is "no library behind its headers' back" "$(symbols cli/base/b.c:1)" \
    "takes sqlite3_open: the database is the business of sim/store alone"
base; file sim/engine/a_internal.h '<stdint.h>'; file cli/base/a.c '"sim/engine/a_internal.h"'
is "the inside of a room is its own" "$(layers cli/base/a.c)" 1

# ---- Style ---------------------------------------------------------------------------------------
mkdir -p "$tree/docs"
cp scripts/check-style.sh "$tree/scripts"
cp .clang-format "$tree"
echo '<a id="known"></a>' >"$tree/docs/sources.md"
style() { # style TEXT: what check-style says about sim/engine/a.h with this text, without its place
    printf '%b' "$1" >"$tree/sim/engine/a.h"
    "$tree/scripts/check-style.sh" sim/engine/a.h 2>/dev/null | sed -n 's/^sim\/engine\/a\.h:[0-9]*: //p'
}
head='#ifndef SIM_ENGINE_A_H\n#define SIM_ENGINE_A_H\n'
is "clean" "$(style "$head/* docs/sources.md""#known */\n#endif\n")" ""
is "tab" "$(style "$head/*\t*/\n#endif\n")" "tab: /*$(printf "\t")*/"
is "unfinished" "$(style "$head/* TO""DO */\n#endif\n")" "said to be unfinished: /* TO""DO */"
is "layout" "$(style "${head}int  a;\n#endif\n")" "not laid out as clang-format -i does it"
is "include guard" "$(style "int a;\n")" "no include guard SIM_ENGINE_A_H"
is "unknown source" "$(style "$head/* docs/sources.md""#unknown */\n#endif\n")" \
    "docs/sources.md has no anchor unknown"
echo '[a page](page.md)' >"$tree/docs/README.md"
for page in page other; do echo "# Page" >"$tree/docs/$page.md"; done
is "a page that the list of pages lacks" \
    "$("$tree/scripts/check-style.sh" docs/README.md docs/page.md docs/other.md 2>/dev/null)" \
    "docs/other.md:1: docs/README.md does not list this page"
long=$(printf '    ;\\n%.0s' {1..81})
is "long function" "$(style "${head}void f(void)\n{\n$long}\n#endif\n")" \
    "a function of 81 lines, more than 80"

# ---- Tables of parameters ------------------------------------------------------------------------
is "the pages in docs/models have the parameters of nudma describe" \
    "$(NUDMA=$nudma scripts/parameter-tables.sh --check)" ""
is "docs/fitted.md is what the platforms say" "$(NUDMA=$nudma scripts/fitted-table.py --check)" ""
is "the tables of claims were made with the values of today" "$(NUDMA=$nudma scripts/values-hash.sh --check)" ""
printf '<!-- values nvme %s -->\n<!-- values adce 0123456789ab -->\n' \
    "$(NUDMA=$nudma scripts/values-hash.sh nvme)" >"$scratch/page.md"
is "one that is old is told" "$(NUDMA=$nudma scripts/values-hash.sh --check "$scratch/page.md" |
    grep -o 'the claims of .* with other values')" "the claims of adce were run with other values"
{ printf 'Before\n<!-- describe link -->\n| old |\n<!-- end -->\nAfter\n'; } >"$scratch/page.md"
is "a table that is old is found" "$(NUDMA=$nudma scripts/parameter-tables.sh --check "$scratch/page.md" |
    grep -c '^-| old |')" 1
NUDMA=$nudma scripts/parameter-tables.sh "$scratch/page.md"; is "and replaced" $? 0
is "by a row for each parameter" "$(grep -c '^| `' "$scratch/page.md")" \
    "$("$nudma" describe | awk '$1 == "link" { print $2 }')"
is "what stands around it stays" "$(sed -n '1p;$p' "$scratch/page.md" | paste -sd ' ')" "Before After"
is "the same again" "$(NUDMA=$nudma scripts/parameter-tables.sh --check "$scratch/page.md")" ""
sed -i '/<!-- end -->/d' "$scratch/page.md"
is "a table without its end is refused" \
    "$(NUDMA=$nudma scripts/parameter-tables.sh "$scratch/page.md" 2>&1 | grep -c 'without "<!-- end -->"')" 1

# ---- Free sight ----------------------------------------------------------------------------------
# shellcheck disable=SC2016 # the backticks are those of the page
is "docs/architecture.md lists who looks at memory for nothing" \
    "$(sed -n '/<!-- k_peek -->/,/<!-- end -->/p' docs/architecture.md | grep -o '`logic/[a-z_/]*\.c`' | tr -d '`' | sort)" \
    "$(grep -rl 'k_peek(' logic --include=*.c | sort)"

# ---- Set-up --------------------------------------------------------------------------------------
is "nothing to install, nothing said" "$(scripts/setup.sh test 2>&1; echo $?)" 0
is "unknown purpose" "$(scripts/setup.sh nonsense >/dev/null 2>&1; echo $?)" 2
# A system without apt-get, and without anything but a shell and what the script itself uses.
mkdir "$scratch/bin"
for tool in sh id env; do ln -s "$(command -v $tool)" "$scratch/bin/$tool"; done
said=$(PATH=$scratch/bin "$scratch/bin/sh" scripts/setup.sh run 2>&1)
is "no Debian: status" $? 1
is "no Debian: says what is missing" "$(grep -c 'missing: make, gcc .*libconfig' <<<"$said")" 1
is "no Debian: says why" "$(grep -c 'no apt-get' <<<"$said")" 1

# ---- Machines that it cannot be built for ----------------------------------------------------------
refusal() { # refusal VARIABLE=VALUE: what make says, and its status
    env -u MAKEFLAGS -u MAKELEVEL make -s "$1" require-machine 2>&1 | grep -v '\*\*\*'
    echo "status ${PIPESTATUS[0]}"
}
is "a 32-bit machine" "$(refusal OPT=-m32)" "make: nudma does not run on 32-bit machines: the memory of the \
hosts that it simulates does not fit in their addresses.
status 2"
is "a big-endian machine" "$(refusal 'CC=gcc -U__BYTE_ORDER__ -D__BYTE_ORDER__=__ORDER_BIG_ENDIAN__')" \
    "make: nudma does not run on big-endian machines: registers and descriptors are little endian, as \
devices have them.
status 2"
is "this one" "$(refusal OPT=-O2)" "status 0"

echo "1..$cases"
[ $failed = 0 ]
