#!/usr/bin/env bash
# Static analysis of what is not a test: gcc's -fanalyzer and cppcheck, and with TIDY=1 clang-tidy (.clang-tidy), which
# takes ten minutes of processor time.
#   scripts/analyze.sh [FILE...]        default: sim models logic workloads cli
# Whatever they report is a failure, unless scripts/analyze.txt says why it stands; a line there that no report
# needs is a failure, too, if all files are looked at.
set -u
cd "$(dirname "$0")/.." || exit 1
out=${BUILD:-build}/analyze
mkdir -p "$out"
jobs=$(nproc 2>/dev/null || echo 2)
scripts/setup.sh analyze || exit 1
all=
[ $# -gt 0 ] || {
    all=1
    mapfile -t files < <(find sim models logic workloads cli -name '*.c' | sort)
    set -- "${files[@]}"
}

# As the Makefile has them, but for what is about warnings and code.
read -r -a flags <<<"-std=gnu11 -ffp-contract=off -I. -DGLIB_VERSION_MIN_REQUIRED=GLIB_VERSION_2_70 \
    -DGLIB_VERSION_MAX_ALLOWED=GLIB_VERSION_2_70 -DNUDMA_VERSION=\"x\" -DNUDMA_GIT=\"x\" -DNUDMA_DATADIR=\"x\" \
    $(pkg-config --cflags libconfig glib-2.0 sqlite3)"

# use-of-uninitialized-value: gcc 12 follows neither arrays that loops fill nor members of structures that calls fill:
# 55 reports, none right. clang's sanitizers and valgrind look for these.
gcc_one() { gcc "${flags[@]}" -O2 -fanalyzer -Wno-analyzer-use-of-uninitialized-value -c -o /dev/null "$1" 2>&1; }
# max-nodes: states of a function that clang's analyzer looks at, a tenth of the usual: 1.2 s a file instead of 8.
tidy_one() {
    clang-tidy --quiet --extra-arg={-Xclang,-analyzer-config,-Xclang,max-nodes=20000} "$1" -- "${flags[@]}" 2>/dev/null
}
each() { # each FUNCTION FILE...: side by side
    local function=$1 file
    shift
    for file in "$@"; do
        while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
        "$function" "$file" &
    done
    wait
}
each gcc_one "$@" >"$out/gcc.txt"
cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr -I. \
    --suppress=preprocessorErrorDirective:sim/engine/sanitizer.h --template='{file}:{line}: warning: {message} [{id}]' \
    -j "$jobs" "$@" >"$out/cppcheck.txt" 2>&1
[ -z "${TIDY:-}" ] || each tidy_one "$@" | sed "s|^$PWD/||" | awk '!seen[$0]++ || !/ warning: /' >"$out/tidy.txt"
[ -n "${TIDY:-}" ] || : >"$out/tidy.txt"
reports=("$out/gcc.txt" "$out/cppcheck.txt" "$out/tidy.txt")

# file check, of each report; a place within a macro of a header counts as the header's.
grep -hE '^[^ ].*: (warning|error): ' "${reports[@]}" |
    sed -E 's|^(\./)?([^:]*):[0-9:]*:? .*\[-?([A-Za-z0-9_=.-]*)\]$|\2 \3|' | sort | uniq -c >"$out/reports"
failed=0
while read -r count file check; do
    grep -qE "^$file +$check +[^ ]" scripts/analyze.txt && continue
    failed=$((failed + count))
    echo "analyze: $file: $check ($count)"
    grep -hE "^(\./)?$file:.*\[-?$check\]$" "${reports[@]}"
done <"$out/reports"
while read -r file check _; do
    if [ -z "$all" ] || grep -q " $file $check\$" "$out/reports"; then continue; fi
    [[ -n ${TIDY:-} || $check == W* || $check != *-* ]] || continue # clang-tidy's, which has not run
    echo "analyze: scripts/analyze.txt: $file: $check is reported no more"
    failed=$((failed + 1))
done < <(grep -v '^#' scripts/analyze.txt)
echo "analyze: $# files, $(wc -l <"$out/reports") places with reports, $failed without a reason"
[ "$failed" = 0 ]
