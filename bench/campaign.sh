#!/usr/bin/env bash
# How much faster a campaign of some 200 points and 3 seeds is with -j2 than with -j1: wall-clock times
# of this run, alternating, and the ratio of the least of each (what else goes on on the machine only
# adds to them). On a machine whose two processors are not free the ratio of these times says little:
# the load average is printed for that, and the ratio that processor time allows: by all of it with -j1
# and -j2, and by what the command itself needs when nothing is left to run, which is not divided.
#   BUILD=build bench/campaign.sh [REPEATS]
set -u
cd "$(dirname "$0")/.." || exit 1
nudma=$(realpath "${BUILD:-build}/nudma") || exit 1
repeats=${1:-3}
scenarios=(pcie_bench/bandwidth_size pcie_bench/latency_size pcie_bench/latency_window
    pcie_bench/latency_iommu numa/loaded_latency)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

measure() { # measure JOBS FILE: adds a line "wall-clock-time processor-time" of the campaign
    local TIMEFORMAT='%R %U %S'
    { time "$nudma" run "${scenarios[@]}" --seeds 3 "-j$1" -q --db "$scratch/x.db" >/dev/null; } \
        2>"$scratch/time.txt" || { cat "$scratch/time.txt" >&2; return 1; }
    awk '{ print $1, $2 + $3 }' "$scratch/time.txt" >>"$2"
}
least() { # least COLUMN FILE
    sort -n -k "$1,$1" "$2" | awk -v column="$1" 'NR == 1 { print $column }'
}

points=$("$nudma" run "${scenarios[@]}" --list -q | wc -l)
echo "campaign.points $points points"
echo "campaign.processors $(nproc) processors"
for ((i = 0; i < repeats; i++)); do
    for jobs in 1 2; do
        rm -f "$scratch"/x.db*
        measure $jobs "$scratch/$jobs.txt" || exit 1
    done
    measure 1 "$scratch/stored.txt" || exit 1
    echo "campaign.load $(cut -d' ' -f1 /proc/loadavg) processes"
done
for jobs in 1 2; do
    echo "campaign.j$jobs $(least 1 "$scratch/$jobs.txt") s"
    echo "campaign.j${jobs}_cpu $(least 2 "$scratch/$jobs.txt") s"
done
echo "campaign.command_cpu $(least 2 "$scratch/stored.txt") s"
awk -v one="$(least 1 "$scratch/1.txt")" -v two="$(least 1 "$scratch/2.txt")" \
    -v cpu1="$(least 2 "$scratch/1.txt")" -v cpu2="$(least 2 "$scratch/2.txt")" \
    -v serial="$(least 2 "$scratch/stored.txt")" 'BEGIN {
        printf "campaign.j1_over_j2 %.2f times\n", one / two
        printf "campaign.j1_over_j2_by_cpu %.2f times\n", cpu1 / (serial + (cpu2 - serial) / 2)
    }'
