#!/usr/bin/env bash
# nudma measure: what to run on the real machine; and from what mlc, pcie-bench and others print to settings at
# which the model shows the same latencies, and to claims. The samples are written for this test, in the formats
# of MLC 2.3 to 3.11, pcie-bench, lmbench 3, likwid 5 and perf.
set -u
cd "$(dirname "$0")/../.." || exit 1
samples=$PWD/tests/cli/measure
. tests/scenario/lib.sh

# ---- The list ------------------------------------------------------------------------------------
out=$("$nudma" measure t620); is "a platform" $? 0
has "MLC" "$out" '^ +mlc --latency_matrix .* dram.controller_ns +19 ns, calibrated$'
has "its second setting" "$out" '^ +interconnect.one_way_ns +21 ns, calibrated$'
has "bandwidth decides nothing" "$out" '^ +mlc --bandwidth_matrix .* \(compared\)$'
has "loaded" "$out" '^ +mlc --loaded_latency '
has "pcie-bench" "$out" '^ +nfp_pciebench.py: lat_cmd.* root_complex.inbound_ns +96 ns'
has "without MLC" "$out" '^ +likwid-bench '
has "what comes next" "$out" '^Then here: nudma measure t620 --read '

# ---- MLC -----------------------------------------------------------------------------------------
out=$("$simulate" measure t620 --read "$samples/mlc.txt" -o fit.cfg --claims claims.cfg); is "mlc's output" $? 0
is "on standard output, alone" "$("$simulate" measure t620 --read "$samples/mlc.txt" -o - 2>/dev/null | grep -v '^#')" \
    "$(grep -v '^#' fit.cfg)"
has "local latency" "$out" '^load, local memory, idle +ns +86\.2 +82\.[89][0-9]* +8[56]\.[0-9]* +[+-]0\.[0-5] +mlc.txt:5$'
has "remote latency" "$out" '^load, memory of another socket, idle +ns +132\.9 .* [+-]0\.[0-5] +mlc.txt:5$'
has "bandwidth is compared" "$out" '^reads of a socket, local memory +GB/s +40\.55'
has "that of the other socket" "$out" '^reads of a socket, memory of another +GB/s +22\.89'
has "under load, by socket" "$out" '^reads of a socket at full load +GB/s +40\.45'
has "a setting" "$out" '^hosts.server.dram.controller_ns +ns +19 +2[0-9.]+ '
is "two settings, no more" "$(grep -c 'value = .*provenance = "published"; source = "mlc.txt:5"' fit.cfg)" 2
is "no bandwidth among them" "$(grep -cE 'gbyte|gbit|_mt_s' fit.cfg)" 0
is "claims" "$(grep -c 'use = "C"; kind = "fitted"' claims.cfg) $(grep -c 'use = "K"; kind = "predicted"' claims.cfg)" "2 4"
printf 'hosts = { server = { @include "platforms/t620.cfg"\n}; };\n' >platform.cfg
"$simulate" run numa/memory_latency --set @platform.cfg --set @fit.cfg -q >/dev/null
"$nudma" check claims.cfg >checked.txt
is "with the settings the latencies hold" "$(grep -cE '^measured\.[12] .* ok$' checked.txt)" 2

"$simulate" measure platform.cfg -r "$samples/mlc2.txt" >second.txt; is "version 2, a file as import writes it" $? 0
is "the same latencies" "$(head -n 3 second.txt | sed 's/mlc2/mlc/')" "$(head -n 3 <<<"$out")"
for other in mlc_idle.txt lat_mem_rd.txt; do
    out=$("$simulate" measure t620 -r "$samples/$other"); is "$other" $? 0
    has "its latency" "$out" "^load, local memory, idle +ns +86\.4 .* $other:[56]$"
    is "nothing of the other socket" "$(grep -c another <<<"$out")" 0
done
out=$("$simulate" measure t620 -r "$samples/likwid.txt" -r "$samples/perf.txt"); is "likwid-bench, perf" $? 0
has "likwid's" "$out" '^reads of a socket, local memory +GB/s +40\.55'
has "perf's, by socket" "$out" '^memory reads of a socket \(perf\) +GB/s +40\.09'
is "no setting" "$(grep -c '^hosts' <<<"$out")" 0

# ---- pcie-bench ----------------------------------------------------------------------------------
mkdir nfp_t430-s0-s0-s0-iommu-nosp
sed '2,$s/486\.0/490.7/; 2s/4096/67108864/; 2s/490\.7/776.8/' "$samples/lat_cmd.csv" >nfp_t430-s0-s0-s0-iommu-nosp/lat.csv
out=$("$simulate" measure t430 -r "$samples/lat_cmd.csv" -r "$samples/bw_dma.txt" -r nfp_t430-s0-s0-s0-iommu-nosp/lat.csv -o dma.cfg)
is "pcie-bench" $? 0
has "a cold read" "$out" '^DMA read of 64 B, cold +ns +486 .* [+-]0\.[0-5] +lat_cmd.csv:2$'
has "through the IOMMU, by the folder's name" "$out" '^the same through the IOMMU, of 64 MiB +ns +776\.8 .* [+-]0\.[0-5] '
has "bandwidth" "$out" '^DMA read of 64 B +Gbit/s +31\.8 '
has "of writes" "$out" '^DMA write of 512 B +Gbit/s +54\.38 '
is "not what has an offset" "$(grep -c '256 B' <<<"$out")" 0
is "settings" "$(grep -oE '(inbound|outbound|walk_fixed)_ns = ' dma.cfg | paste -sd ' ')" "inbound_ns =  outbound_ns =  walk_fixed_ns = "

# ---- What is no such thing ------------------------------------------------------------------------
refused() { # refused NAME FILE PATTERN
    local told
    told=$("$nudma" measure t620 -r "$2" -o refused.cfg 2>&1 >/dev/null); is "$1" $? 2
    is "$1: one message" "$(wc -l <<<"$told")" 1
    has "$1: which" "$told" "$3"
    is "$1: nothing written" "$([ -e refused.cfg ] || echo none)" none
}
echo hello >foreign.txt
refused "foreign" foreign.txt '^foreign.txt:1: found "hello", expected what mlc, '
: >empty.txt
refused "empty" empty.txt '^empty.txt:1: found ""'
refused "binary" "$nudma" 'nudma: ?[0-9]*:? found'
refused "a folder" . '^\.: expected a file or a pipe'
refused "none" nowhere.txt '^nowhere.txt: No such file'
head -n 5 "$samples/mlc.txt" | head -c -9 >cut.txt
refused "cut within a row" cut.txt '^cut.txt:5: found "0 86.4", expected a latency in ns for each node'
head -n 4 "$samples/mlc.txt" >head.txt
refused "cut before the rows" head.txt '^head.txt:[45]: found .*expected the row'
sed 's/86\.4/-/' "$samples/mlc.txt" >dash.txt
refused "no number" dash.txt '^dash.txt:5: found "-", expected a latency in ns$'
sed 's/212\.45/nan/' "$samples/mlc.txt" >nan.txt
refused "not a number" nan.txt '^nan.txt:31: found "00000 nan 80911.2", expected delay,'
sed 's/Read-only/2:1 read-write/' "$samples/mlc.txt" >writes.txt
refused "other traffic" writes.txt '^writes.txt:19: found .*expected "Using Read-only traffic type"'
sed 's/200\.000MiB/16.000MiB/' "$samples/mlc_idle.txt" >cache.txt
refused "of a cache" cache.txt '^cache.txt:5: found .*64 MiB or more'
sed 's/,64,813.*//' "$samples/lat_cmd.csv" >short.csv
refused "a row cut off" short.csv '^short.csv:2: found .*as many columns'
sed '1s/Avg(ns)/Mean/g' "$samples/lat_cmd.csv" >columns.csv
refused "other columns" columns.csv '^columns.csv:1: found .*expected columns for'
out=$("$nudma" measure t620 -r "$samples/mlc.txt" -r "$samples/mlc2.txt" 2>&1); is "two machines" $? 2
has "are one too many" "$out" '^.*mlc2.txt:4: found "a second matrix"'
out=$("$nudma" measure t630 -r "$samples/mlc.txt" 2>&1); is "another machine" $? 2
has "has other sockets" "$out" 'mlc.txt:5: 2 nodes with processors, but t630 has 1 socket'
out=$("$nudma" measure t62 2>&1); is "no such platform" $? 2
has "the nearest" "$out" '^t62: neither a file nor a machine .*; did you mean "t620"'
out=$("$nudma" measure "$NUDMA_SCENARIOS/numa/memory_latency.cfg" 2>&1); is "a scenario" $? 2
has "is none" "$out" 'is a scenario, expected a platform'
sed 's/^dram = {/&\n  controller_ns = -1.0;/' "$NUDMA_SCENARIOS/platforms/t620.cfg" >range.cfg
out=$("$nudma" measure range.cfg 2>&1); is "a value out of range" $? 2
has "in the file itself" "$out" '^[^:]*/range.cfg:[0-9]+: hosts.server.dram.controller_ns: found -1 '
"$nudma" measure t620 -o x.cfg 2>/dev/null; is "nothing to write" $? 2
bytes=$(wc -c <"$samples/mlc.txt")
crashed=0
for ((n = 0; n < bytes; n += 67)); do
    head -c "$n" "$samples/mlc.txt" >part.txt
    "$nudma" measure t630 -r part.txt >/dev/null 2>&1
    [ $? -le 2 ] || crashed=$((crashed + 1))
done
is "cut anywhere: a message" $crashed 0

sed 's/86\.4/30.0/; s/86\.0/30.0/' "$samples/mlc2.txt" >fast.txt
out=$("$simulate" measure t620 -r fast.txt -o fast.cfg 2>&1 >/dev/null); is "out of reach" $? 1
has "says so" "$out" '^nudma measure: load, local memory, idle: 30 ns is out of reach: with dram.controller_ns = '
is "and sets nothing" "$(grep -c controller_ns fast.cfg)" 0

echo "1..$cases"
[ $failed = 0 ]
