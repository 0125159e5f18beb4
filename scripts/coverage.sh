#!/usr/bin/env bash
# Line coverage of sim/, models/ and logic/ by the tests, as gcov counts it.
#   scripts/coverage.sh [--all | --again] [LEAST]
#
# Builds in the folder BUILD-coverage (BUILD: build) with gcc -O1 and runs the tests of rooms; --all: those of
# tests/scenario/ that are C programs, too; --again: neither, what the last call has counted is told again. Runs of the command itself do not count: its workers end without a report.
# Prints a line for each floor and room, then what is not covered: the files with the most such lines, and the functions that no
# test has called. Exit status 1 if a floor is below LEAST percent (default 85), or a test fails. JOBS tests run side by side.
set -u
cd "$(dirname "$0")/.." || exit 2

all='' again=''
case ${1:-} in
--all) all=yes; shift ;;
--again) again=yes; shift ;;
esac
least=${1:-85}
build=${BUILD:-build}-coverage
jobs=${JOBS:-$(nproc 2>/dev/null || echo 2)}
unset MAKEFLAGS MFLAGS MAKELEVEL

count() {
    # Warnings are the other builds' business: at -O1 gcc has some of its own.
    targets=(room-tests)
    mapfile -t scenarios < <(find tests/scenario -name 'test_*.c' | sort)
    [ -z "$all" ] || for test in "${scenarios[@]}"; do targets+=("$build/${test%.c}"); done
    make --no-print-directory -j"$jobs" BUILD="$build" CC=gcc OPT="-O1 -Wno-error" COVERAGE=1 \
        TEST_OPT="-O0 -fno-profile-arcs -fno-test-coverage -Wno-conversion -Wno-sign-conversion" "${targets[@]}" >&2 || exit 2
    find "$build" -name '*.gcda' -delete

    mkdir -p "$build/coverage"
    : >"$build/coverage/failed"
    {
        find tests -name 'test_*.c' -not -path 'tests/scenario/*' -not -path 'tests/random/*'
        [ -z "$all" ] || printf '%s\n' "${scenarios[@]}"
    } | sort | sed 's/\.c$//' | xargs -P "$jobs" -I TEST sh -c "timeout 900 '$build/TEST' >/dev/null 2>&1 || echo TEST >>'$build/coverage/failed'"
    sed 's/^/coverage: failed: /' "$build/coverage/failed" >&2
}
[ -n "$again" ] || count

# File 'sim/engine/sim.c' / Lines executed:98.20% of 111; Function 'x' / Lines executed:0.00% of 3
find "$build/sim" "$build/models" "$build/logic" -name '*.gcda' -print0 | xargs -0 -n 1 gcov -n -f 2>/dev/null |
    awk '
    /^(File|Function) / { kind = $1; name = $2; gsub(/\047/, "", name) }
    /^Lines executed:/ {
        split($0, part, /[:% ]+/)
        percent = part[3]; lines = part[5]
        if (kind == "Function" && percent == 0)
            idle[++n_idle] = name
        else if (kind == "File" && name ~ /^(sim|models|logic)\/.*\.c$/) {
            print "file", name, lines, int(lines * percent / 100 + 0.5)
            for (i = 1; i <= n_idle; i++) print "function", name, idle[i]
            n_idle = 0
        }
        kind = ""
    }' >"$build/coverage/lines"
# What no test has linked has no counts at all.
find sim models logic -name '*.c' | while read -r file; do
    grep -q "^file $file " "$build/coverage/lines" || echo "file $file $(grep -c ';' "$file") 0"
done >"$build/coverage/unlinked"
cat "$build/coverage/unlinked" >>"$build/coverage/lines"

awk -v least="$least" '
    $1 == "file" {
        n = split($2, part, "/")
        room = part[1] "/" part[2]
        lines[part[1]] += $3; hit[part[1]] += $4
        if (n > 2) { lines[room] += $3; hit[room] += $4 }
    }
    END {
        for (name in lines) printf "%-18s %6d of %6d lines  %5.1f %%\n", name, hit[name], lines[name], 100 * hit[name] / lines[name] | "sort"
        close("sort")
        for (name in lines) if (name !~ /\// && 100 * hit[name] < least * lines[name]) low = low " " name
        if (low != "") print "below " least " %:" low
        exit low != ""
    }' "$build/coverage/lines"
status=$?
echo "not covered, lines:"
awk '$1 == "file" && $3 > $4 { print $3 - $4, $3, $2 }' "$build/coverage/lines" | sort -rn | head -n 25 |
    awk '{ printf "  %4d of %4d  %s\n", $1, $2, $3 }'
echo "functions that no test calls:"
awk '$1 == "function" { print "  " $2 ": " $3 }' "$build/coverage/lines" | sort -u | head -n 60
[ ! -s "$build/coverage/failed" ] && [ $status = 0 ]
