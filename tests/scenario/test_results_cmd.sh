#!/usr/bin/env bash
# nudma results on a real small database: which tables, which points, which metrics; mistakes.
set -u
cd "$(dirname "$0")/../.." || exit 1
nudma=$(realpath "${NUDMA:-${BUILD:-build}/nudma}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export NUDMA_SCENARIOS=$PWD/scenarios
cd "$scratch" || exit 1
size=pcie_bench/latency_size
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
has() { # has NAME TEXT PATTERN
    cases=$((cases + 1))
    if grep -qE -- "$3" <<<"$2"; then echo "ok $cases - $1"; else
        echo "not ok $cases - $1"
        printf '# not in it: %s\n' "$3"
        head -n 20 <<<"$2" | sed 's/^/# /'
        failed=$((failed + 1))
    fi
}
query() { sqlite3 -readonly -batch "$1" "$2" 2>&1; }
# A value as tables write it, from the view.
value() { # value POINT METRIC
    query a.db "select printf('%.6g', mean) from result
        where scenario = '$size' and point = '$1' and metric = '$2'"
}

for command in results; do
    out=$("$nudma" $command --help); is "$command --help" $? 0
    has "says how" "$out" "nudma $command"
done
"$nudma" run $size --quick --seeds 3 --db a.db -q -j2 >run.txt; is "a database" $? 0
# One metric of one run moved, so that there is an interval to show.
cp a.db b.db
sqlite3 b.db "update metric_row set value = value + 10 where quantity_id =
    (select id from quantity where name = 'latency_mean_ns') and run_id = (select max(id) from run
    where point = 'op=read transfer_bytes=64')"

# ---- results -------------------------------------------------------------------------------------
results() { "$nudma" results --db a.db "$@"; }
out=$(results); is "without names" $? 0
has "what there is" "$out" "^$size +4 +3 +12 +0  20"
out=$(results $size); is "a scenario" $? 0
is "what run shows" "$(tail -n +2 <<<"$out")" "$(tail -n +2 run.txt)"
has "with the number of seeds" "$out" "^$size, 3 seeds$"
is "by folder" "$(results pcie_bench)" "$out"
is "by wildcard" "$(results 'pcie_bench/lat*')" "$out"
has "an interval" "$("$nudma" results --db b.db $size)" '^read +64 +[0-9.]+ \+-14$'
read64=$(value 'op=read transfer_bytes=64' latency_mean_ns)
read2048=$(value 'op=read transfer_bytes=2048' latency_mean_ns)
write64=$(value 'op=write_read transfer_bytes=64' latency_mean_ns)
is "an axis as columns" "$(results $size --columns transfer_bytes | tr -s ' ' | head -n 5)" \
    "$size, 3 seeds
latency_mean_ns [ns]
transfer_bytes 64 2048
op
read $read64 $read2048"
is "an axis as rows" "$(results $size --rows op)" "$(results $size --columns transfer_bytes)"
is "the rest makes tables" \
    "$(results $size --rows metric --columns op | tr -s ' ' | head -n 4)" \
    "$size: transfer_bytes=64, 3 seeds
op read write_read
metric
latency_mean_ns [ns] $read64 $write64"
out=$(results -m 'throughput*' -m latency_mean_ns --filter 'op=read')
has "metrics by wildcard" "$out" '^op +transfer_bytes +latency_mean_ns \[ns\] +throughput_gbit_s \[Gbit/s\]$'
is "filtered by a value" "$(grep -c '^write' <<<"$out")" 0
rows() { results $size --filter "$@" | tail -n +3 | awk '{ print $1 "/" $2 }' | paste -sd ' '; }
is "=" "$(rows transfer_bytes=64)" "read/64 write_read/64"
is "!=" "$(rows transfer_bytes!=64)" "read/2048 write_read/2048"
is ">" "$(rows 'transfer_bytes>64')" "read/2048 write_read/2048"
is ">=" "$(rows 'transfer_bytes>=64')" "read/64 read/2048 write_read/64 write_read/2048"
is "<" "$(rows 'transfer_bytes<2048 op=read')" "read/64"
is "a quantity" "$(rows 'transfer_bytes<=1 KiB op=read')" "read/64"
is "equal as a number" "$(rows 'transfer_bytes=2 KiB op=read')" "read/2048"
is "one of several" "$(rows 'op=read,none transfer_bytes=64')" "read/64"
is "wildcards" "$(rows 'op=write*' --filter transfer_bytes=64)" "write_read/64"
all=$(results $size -m '*' --width 80); is "everything" $? 0
is "fits 80 columns" "$(awk 'length > 80' <<<"$all")" ""
is "and has every value" "$(grep -c '^read  *64 ' <<<"$all")" "$(grep -c '^op  *transfer_bytes ' <<<"$all")"
is "is one table where it is piped" "$(results $size -m '*' | wc -l)" 6
if command -v script >/dev/null; then
    script -qec "stty cols 80; '$nudma' results --db a.db $size -m '*'" /dev/null </dev/null |
        tr -d '\r' >terminal.txt
    is "fits the terminal" "$(awk 'length > 80' terminal.txt)" ""
    is "and is the same" "$(cat terminal.txt)" "$all"
fi
out=$(results pcie_bench/latency_sise 2>&1); is "a scenario that is none" $? 2
has "the nearest" "$out" 'did you mean "pcie_bench/latency_size"'
out=$(results -m latency_meam_ns 2>&1); is "a metric that is none" $? 2
has "the nearest metric" "$out" 'did you mean "latency_mean_ns"'
out=$(results --rows transfer_byte 2>&1); is "an axis that is none" $? 2
has "the nearest axis" "$out" 'did you mean "transfer_bytes"'
out=$(results --rows op --columns op 2>&1); is "an axis twice" $? 2
out=$(results --filter opp=read 2>&1); is "a filter on no axis" $? 2
has "the nearest axis of the points" "$out" 'did you mean "op"'
out=$(results --filter op=raed 2>&1); is "a filter that nothing meets" $? 2
out=$(results --filter op 2>&1); is "a filter without an operator" $? 2
out=$(results --filter 'op>read' 2>&1); is "a bound that is no number" $? 2
out=$("$nudma" results --db none.db 2>&1); is "no database" $? 1

echo "1..$cases"
[ $failed = 0 ]
