#!/usr/bin/env bash
# Runs one of the fuzzers of tests/fuzz/ under the sanitizers, beginning with its corpus.
#   scripts/fuzz.sh [--keep] [--fast] TARGET [RUNS]
#
# TARGET: nvme, rdma, nic, ioat, dsa or myri (devices); scenario, claims, measured, filter, report, results, jobfile,
# iolog, capture, import, measure or whatif (what is read from outside, with the words of tests/fuzz/words/TARGET where
# that is there). RUNS inputs (default 1000000); the last lines say how many a second, how
# much code they reached and whether one failed. Inputs that reach new code are collected in
# build-fuzz/corpus/TARGET, which the next call begins with, too; --keep: as few of them as reach all code
# that these do replace tests/fuzz/corpus/TARGET, but for what is called found-...: inputs that failed
# once. An input that fails is left in build-fuzz/failed/TARGET-...:
#   build-fuzz/fuzz/TARGET FILE         does it again
#   build/tests/fuzz/test_fuzz_TARGET FILE      the same without libFuzzer, for a debugger
# --fast: without the sanitizers, three times as fast; the inputs that were collected are done again under
# the sanitizers at the end. Assertions and checks of the target are there in both.
# Exit status 1 if one failed. BUILD names the folder of the build ("-fuzz" is added), SEED the seed,
# JOBS how many are compiled side by side.
set -u
cd "$(dirname "$0")/.." || exit 2

build=${BUILD:-build}-fuzz
keep=''
fast=''
while :; do
    case ${1:-} in
    --keep) keep=1 ;;
    --fast) fast=1 ;;
    *) break ;;
    esac
    shift
done
target=${1:-} runs=${2:-1000000}
if [ -z "$target" ] || [ ! -f "tests/fuzz/test_fuzz_$target.c" ]; then
    echo "fuzz: no target \"$target\": nvme, rdma, nic, ioat, dsa, myri, scenario, claims, measured, filter," \
        "report, results, jobfile, iolog, capture, import, measure or whatif" >&2
    exit 2
fi
case $runs in
'' | *[!0-9]*) echo "fuzz: \"$runs\" is no number of inputs" >&2; exit 2 ;;
esac
# No comparisons are traced (fuzzer-no-link does): operations are invented whole, and it halves the speed.
coverage="-fsanitize-coverage=inline-8bit-counters,pc-table"
coverage="$coverage -fsanitize-coverage-allowlist=tests/fuzz/coverage.txt"
# The fuzzer in the folder $1, with the sanitizers $2.
compile() {
    make --no-print-directory -j"${JOBS:-$(nproc 2>/dev/null || echo 2)}" BUILD="$1" CC=clang \
        OPT="-O2 $coverage" TEST_OPT= SANITIZE="$2" "$1/fuzz/$target" >&2 || exit 2
}
compile "$build" address,undefined
[ -z "$fast" ] || compile "$build-fast" ''

kept=tests/fuzz/corpus/$target
words=tests/fuzz/words/$target
# Operations of devices come whole, 128 at most; a file may be as long as a small database.
case $target in
results) max_len=65536 ;;
import) max_len=16384 ;;
scenario | claims | measured | filter | report | jobfile | iolog | capture | measure | whatif) max_len=8192 ;;
*) max_len=3072 ;;
esac
[ -f "$words" ] || words=
found=$build/corpus/$target
mkdir -p "$kept" "$found" "$build/failed"
export ASAN_OPTIONS=detect_leaks=1:quarantine_size_mb=1:thread_local_quarantine_size_kb=64:malloc_context_size=3 UBSAN_OPTIONS=print_stacktrace=1
# The fuzzer of the folder $1, $2 times.
run() {
    "$1/fuzz/$target" -runs="$2" -seed="${SEED:-1}" -max_len=$max_len -timeout=20 ${words:+-dict="$words"} \
        -print_final_stats=1 -artifact_prefix="$build/failed/$target-" "$found" "$kept" || exit 1
}
run "$build${fast:+-fast}" "$runs"
[ -z "$fast" ] || run "$build" 0
[ -n "$keep" ] || exit 0

fewest=$build/corpus/$target.fewest
rm -rf "$fewest" && mkdir -p "$fewest" || exit 2
"$build/fuzz/$target" -set_cover_merge=1 -use_counters=0 "$fewest" "$found" "$kept" 2>&1 | tail -n 3 >&2
find "$kept" -type f ! -name 'found-*' -delete && cp "$fewest"/* "$kept"/ || exit 2
du -sh "$kept" >&2
