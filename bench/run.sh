#!/usr/bin/env bash
# Runs the programs of bench/ one after the other and prints one table, then ratios of values of this
# run: those can be compared between machines and between days, the values themselves cannot.
#   BUILD=build bench/run.sh [WORD...]      (only programs whose name contains one of the words)
#
# A program prints lines "name value unit" ("hold.1000_pending 31.2 Mevents/s"); anything else it
# prints is shown as it is. The table is also left in $BUILD/bench.txt.
set -u
cd "$(dirname "$0")/.." || exit 1
build=${BUILD:-build}
table=$build/bench.txt
limit_s=60

wanted() {
    [ $# -gt 1 ] || return 0
    local name=$1 word
    shift
    for word; do case $name in *"$word"*) return 0 ;; esac; done
    return 1
}

status=0
n_programs=0
: >"$table.new" || exit 1
for source in bench/*.c; do
    name=$(basename "$source" .c)
    if [ ! -e "$source" ] || ! wanted "$name" "$@"; then continue; fi
    n_programs=$((n_programs + 1))
    echo "bench: $name" >&2
    if ! timeout $limit_s "$build/bench/$name" >>"$table.new" </dev/null; then
        echo "bench: $name failed, or took more than $limit_s s" >&2
        status=1
    fi
done
[ $n_programs -gt 0 ] || { echo "bench: no program of that name" >&2; exit 2; }
mv -f "$table.new" "$table"

awk '
    NF == 3 && $2 ~ /^-?[0-9.]+([eE][-+]?[0-9]+)?$/ {
        printf "%-40s %12s %s\n", $1, $2, $3
        value[$1] = $2
        unit[$1] = $3
        next
    }
    { print }
    # ratio("what it says", over, under): both are values of this run
    function ratio(what, over, under) {
        if (!(over in value) || !(under in value) || value[under] == 0) return
        if (!n_ratios++) print ""
        printf "%-60s %8.2f\n", what, value[over] / value[under]
    }
    END {
        n = split("16 64 256 1000 65536 1000000", pending, " ")
        for (i = 1; i <= n; i++)
            ratio("event queue / 4-ary heap, events/s at " pending[i] " pending",
                  "hold." pending[i] "_pending", "hold_heap4." pending[i] "_pending")
        ratio("event queue, events/s at 1000000 / at 1000 pending", "hold.1000000_pending",
              "hold.1000_pending")
        m = split("uniform bimodal skewed equal scales", shape, " ")
        for (i = 1; i <= m; i++)
            ratio("event queue, " shape[i] " / exponential increments, 65536 pending",
                  "hold_" shape[i] ".65536_pending", "hold.65536_pending")
        ratio("IOMMU translation, host time of a miss / of a hit", "iommu.miss", "iommu.hit")
        ratio("kernel, host time of a copied line / of a random LLC hit", "os.copy_line_llc",
              "numa.llc_hit")
        ratio("kernel, host time of a touch that hits / of an L1 hit", "os.touch_hit",
              "numa.l1_hit")
        ratio("host time of a gathered line, with a hint / without", "numa.gather_hinted",
              "numa.gather")
        ratio("host time of a line of a device'"'"'s write, in a run of four / alone",
              "numa.dma_write_run_line", "numa.dma_write_line")
        if (!n_ratios) print "no ratio: the programs that its values come from have not run"
    }' "$table"
exit $status
