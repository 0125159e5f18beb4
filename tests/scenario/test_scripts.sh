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
is "all pass" "$(counts 0 program '1..2\nok 1 - a\nok 2 - b\n')" "2 0 0 "
is "a failed case" "$(counts 1 program '1..2\nok 1 - a\nnot ok 2 - b\n# why\n')" "1 1 0 "
is "a skipped case is neither" "$(counts 0 program '1..2\nok 1 - a\nnot ok 2 # SKIP b\n')" "1 0 1 "
is "two groups" "$(counts 0 program '1..1\nok 1 - a\n1..1\nok 1 - b\n')" "2 0 0 "
is "a crash" "$(counts 134 program '1..2\nok 1 - a\n')" "1 1 0 died of signal 6"
is "a crash after a failed case" "$(counts 139 program '1..3\nnot ok 1 - a\n')" \
    "0 2 0 died of signal 11"
is "a leak found at the end" "$(counts 23 program '1..1\nok 1 - a\n')" "1 1 0 ended with status 23"
is "a hang" "$(counts 124 program '1..2\nok 1 - a\n')" "1 1 0 ran into its time limit"
is "an early exit" "$(counts 0 program '1..3\nok 1 - a\n')" "1 1 0 ended after 1 of 3 cases"
is "a program without cases" "$(counts 0 program 'fine\n')" "0 1 0 has run no case"
is "a script by its status, good" "$(counts 0 script 'fine\n')" "1 0 0 "
is "a script by its status, bad" "$(counts 3 script 'fine\n')" "0 1 0 ended with status 3"

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

echo "1..$cases"
[ $failed = 0 ]
