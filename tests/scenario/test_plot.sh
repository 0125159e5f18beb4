#!/usr/bin/env bash
# What figures show: mistakes in `plot` found before anything runs.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/scenario/lib.sh
size=pcie_bench/latency_size

# ---- Mistakes ------------------------------------------------------------------------------------
# wrong NAME SCENARIO SED-COMMAND EXPECTED: a copy of a scenario with a mistake in its plot; one
# message, status 2, no database.
wrong() {
    sed "$3" "$NUDMA_SCENARIOS/$2.cfg" >wrong.cfg
    out=$("$nudma" run wrong.cfg --db wrong.db 2>&1)
    is "$1" $? 2
    is "$1: one message" "$(wc -l <<<"$out")" 1
    has "$1: says so" "$out" "^wrong.cfg:[0-9]+: $4"
    is "$1: before anything runs" "$([ -e wrong.db ] && echo there)" ""
}
line=$(grep -n ' y = "latency_mean_ns"' "$NUDMA_SCENARIOS/$size.cfg" | cut -d: -f1)
wrong "a metric that none records" $size 's/y = "latency_mean_ns"/y = "latency_maen_ns"/' \
    'plot.y: found "latency_maen_ns" \(a string\), expected a metric that the workload records; did you mean "latency_mean_ns"\?'
has "in its line" "$out" "^wrong.cfg:$line:"
wrong "one of several" $size 's/y = "latency_mean_ns"/y = ["latency_mean_ns", "nfp.dma_read_byte"]/' \
    'plot.y.\[1\]: found "nfp.dma_read_byte" .*did you mean "nfp.dma_read_bytes"\?'
wrong "an axis that is none" $size 's/x = "transfer_bytes"/x = "transfer_byte"/' \
    'plot.x: found "transfer_byte" .*expected an axis, or a metric .*did you mean "transfer_bytes"\?'
wrong "a metric as x" numa/loaded_latency 's/x = "read_gbyte_s"/x = "read_gbytes_s"/' \
    'plot.x: .*did you mean "read_gbyte_s"\?'
wrong "no metric with parts" pcie_bench/latency_breakdown 's/y = "latency_part_ns"/y = "latency_parts_ns"/' \
    'plot.y: .*in parts, "<name>.<part>"; did you mean "latency_part_ns"\?'
wrong "series by no axis" $size 's/series = \["op"\]/series = ["opp"]/; /measured/d; /{ series =/d' \
    'plot.series.\[0\]: found "opp" .*did you mean "op"\?'
wrong "measured of no curve" $size 's/series = "op=read"/series = "opp=read"/' \
    'plot.measured.\[0\].series: found "opp=read" .*expected the name of a curve, "op=..."'
sed 's/y = "latency_mean_ns"/y = "server.s0.dram_read_bytes"/' "$NUDMA_SCENARIOS/$size.cfg" >good.cfg
"$nudma" run good.cfg --list >/dev/null; is "a statistic of a model" $? 0
sed 's/y = "latency_mean_ns"/y = "latency_maen_ns"/' "$NUDMA_SCENARIOS/$size.cfg" >wrong.cfg
sed -i 's/type = "pcie_bench"/type = "pcie_bentch"/' wrong.cfg
out=$("$nudma" run wrong.cfg 2>&1); is "a point that cannot be built" $? 2
is "is not said to lack metrics" "$(grep -c plot <<<"$out")" 0
out=$("$nudma" describe pcie_bench); is "what a workload records" $? 0
has "is described" "$out" '^ *latency_ns +histogram +ns '

# ---- Series --------------------------------------------------------------------------------------
# The mean of equal intervals is the rate of all of them; 1 % for what falls into the next one.
"$nudma" run numa/memory_bandwidth pcie_bench/bandwidth_size --quick -q -j2 --db series.db \
    --set measure.sample_interval_us=20 >/dev/null
is "series are recorded" $? 0
is "one sample for each interval, from the first on" "$(query series.db "select distinct
    count(*) * 20000000 = max(t_ps), min(t_ps) from series group by run_id, name")" "1|20000000"
is "their mean is the metric of the same name" "$(query series.db "select count(*), sum(ok) from
    (select abs(avg(s.value) - m.value) <= 0.01 * m.value as ok from series s
     join metric m on m.run_id = s.run_id and m.name = s.name group by s.run_id, s.name)")" "16|16"

echo "1..$cases"
[ $failed = 0 ]
