#!/usr/bin/env bash
# Runs random scenarios against the properties of tests/random/, more than `make test` does.
#   scripts/random.sh [--from SEED] [SEEDS] [AREA...]
#
# SEEDS seeds (default 10000) of each area, from SEED on (default 1001, beyond those of `make test`);
# areas: dma memory devices lending network odd. A seed that fails is made small and kept as a scenario in tests/random/kept/,
# with what failed in its first line: add the reason there, and `make test` runs it first from then on.
# Exit status 1 if any failed. BUILD names the folder of the build, JOBS how many run side by side.
set -u
cd "$(dirname "$0")/.." || exit 2

build=${BUILD:-build}
jobs=${JOBS:-$(nproc 2>/dev/null || echo 2)}
from=1001 seeds=10000 batch=500
if [ "${1:-}" = --from ]; then
    from=${2:?--from needs a seed}
    shift 2
fi
if [ $# -gt 0 ]; then
    seeds=$1
    shift
fi
for number in "$from" "$seeds"; do
    case $number in
    '' | *[!0-9]*) echo "random: \"$number\" is no number of seeds, and no seed: expected 0 or more" >&2; exit 2 ;;
    esac
done
areas=("$@")
[ ${#areas[@]} -gt 0 ] || areas=(dma memory devices lending network odd)
for area in "${areas[@]}"; do
    if [ ! -f "tests/random/test_random_$area.c" ]; then
        echo "random: no area \"$area\": dma, memory, devices, lending, network or odd" >&2
        exit 2
    fi
done
make --no-print-directory -j"$jobs" BUILD="$build" "${areas[@]/#/$build/tests/random/test_random_}" >&2 ||
    exit 2

run_batch() { "$build/tests/random/test_random_$1" --seeds "$2" "$3" tests/random/kept; }
export -f run_batch
export build
for area in "${areas[@]}"; do
    for ((at = from; at < from + seeds; at += batch)); do
        n=$((from + seeds - at))
        echo "$area $at $((n < batch ? n : batch))"
    done
done | xargs -r -P "$jobs" -n 3 bash -c 'run_batch "$@"' run_batch || exit 1
