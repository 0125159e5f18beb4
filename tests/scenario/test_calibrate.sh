#!/usr/bin/env bash
# nudma calibrate: finds a parameter that was started wrong, shows what claims depend on, writes a
# file that the configuration reads, refuses predictions; the same every time.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/scenario/lib.sh

window=pcie_bench/latency_window
inbound=hosts.server.root_complex.inbound_ns
claim=pcb.win.cold.4k
# Only the point of the claim and one prediction: short.
few=(--set axes.cache=cold --set "axes.window_bytes=4096,2097152")

# ---- A fit ---------------------------------------------------------------------------------------
out=$("$nudma" calibrate $window "${few[@]}" --set $inbound=40 --param $inbound --claim $claim \
    --write fit.cfg -j2 2>trials.txt)
is "a fit" $? 0
fit=$out
has "from the wrong value" "$out" "^$inbound +ns +1\.\.1000 +40 +[0-9.]+$"
fitted=$(awk -v path=$inbound '$1 == path { print $NF }' <<<"$out")
# 96 is what the platform has, fitted to two claims; one alone is flat within a few ns.
is "finds about 96 ns" "$(awk "BEGIN { print ($fitted > 88 && $fitted < 104) }")" 1
has "the claim then holds" "$out" "^$claim +488 +478\.2\.\.497\.8 +4[0-6][0-9]\.?[0-9]* +48[6-9]\.?[0-9]* .* ok$"
has "so does a prediction" "$out" 'hold: 0 of 1 before, 1 of 1 now$'
has "a baseline's sensitivity" "$out" "^$claim +C +0\.[0-9]{3}$"
has "that of a prediction" "$out" '^pcb.win.cold.2048k +K +0\.[0-9]{3}$'
has "trials are shown" "$(cat trials.txt)" '^trial 40: cost [0-9.]+$'
is "none twice" "$(sort trials.txt | uniq -d)" ""
is "nothing else is written" "$(find . -type f | sort | paste -sd ' ')" "./fit.cfg ./trials.txt"

# Stopped: the best so far, and how the search goes on from there.
env --default-signal=INT "$nudma" calibrate $window "${few[@]}" --set $inbound=40 --param $inbound --claim $claim \
    --write stopped.cfg --tolerance 1e-9 --max-trials 100000 -j2 >best.txt 2>stopped.txt &
pid=$!
for _ in $(seq 2000); do [ "$(grep -c '^trial' stopped.txt)" -lt 4 ] || break; sleep 0.02; done
kill -INT $pid
wait $pid; is "stopped" $? 130
best=$(grep '^trial' stopped.txt | sort -t: -k2.7g | head -n 1 | sed 's/trial \(.*\): .*/\1/')
is "the best so far" "$(cat best.txt)" "$inbound = $best"
has "is said to be that" "$(cat stopped.txt)" '^interrupted: the best of [0-9]+ trials so far, of cost [0-9.e-]+; go on from it with$'
has "and how to go on" "$(cat stopped.txt)" "^  .*/nudma'? calibrate $window .* --set '$inbound=$best'$"
is "no file is written" "$([ -e stopped.cfg ] || echo none)" none
has "from there" "$("$nudma" run $window "${few[@]}" --set $inbound=40 --set "$inbound=$best" --print-config)" "^$inbound = $best ns"
rm best.txt stopped.txt

script -qec "stty cols 60; '$nudma' calibrate $window ${few[*]} --set $inbound=40 --param $inbound --claim $claim \
    --max-trials 4 --write narrow.cfg -q" /dev/null </dev/null 2>/dev/null | tr -d '\r' >narrow.txt
is "lines fit on a narrow terminal" "$(awk 'length > 60' narrow.txt)" ""
has "and all are there" "$(tr '\n' ' ' <narrow.txt | tr -s ' ')" 'cost [0-9.e-]+ after 4 trials, given up \(.*hold: 0 of 1 before.*runs use it with --set @narrow.cfg'
rm narrow.txt narrow.cfg

mkfifo fit.pipe
timeout 200 cat fit.pipe >fit2.cfg &
"$nudma" calibrate $window "${few[@]}" --set $inbound=40 --param $inbound --claim $claim \
    --write fit.pipe -j1 -q >again.txt 2>quiet.txt
is "a pipe stays one" "$([ -p fit.pipe ] && echo pipe)" pipe
wait $!
is "the same with one worker" "$(grep -v '^written' again.txt)" "$(grep -v '^written' <<<"$out")"
is "the same file" "$(grep -v '^#' fit2.cfg)" "$(grep -v '^#' fit.cfg)"
is "quiet" "$(cat quiet.txt)" ""

# ---- The file ------------------------------------------------------------------------------------
has "has the provenance" "$(cat fit.cfg)" \
    "^ +inbound_ns = \{ value = $fitted; provenance = \"calibrated\"; source = \"claims $claim\"; \};"
out=$("$nudma" run $window "${few[@]}" --print-config --set @fit.cfg); is "is used with --set" $? 0
has "the value, where it comes from" "$out" "^$inbound = $fitted ns .*fit.cfg:[0-9]+.*calibrated \(claims $claim\)"
is "nothing else has changed" "$(grep -v "^$inbound = " <<<"$out")" \
    "$("$nudma" run $window "${few[@]}" --print-config | grep -v "^$inbound = ")"
# As a scenario names it: found beside the scenarios.
mkdir -p mine/platforms
cp fit.cfg mine/platforms/
{ cat "$NUDMA_SCENARIOS/$window.cfg"; echo 'set = ( "@platforms/fit.cfg" );'; } >mine/fitted.cfg
out=$("$nudma" run fitted --scenarios mine "${few[@]}" --print-config); is "or by a scenario" $? 0
has "with the same value" "$out" "^$inbound = $fitted ns .*calibrated \(claims $claim\)"
"$nudma" run fitted --scenarios mine "${few[@]}" --db fitted.db -q >/dev/null; is "which runs" $? 0
is "as the fit says" "$(query fitted.db "select printf('%.1f', mean) from result
    where metric = 'latency_mean_ns' and point = 'cache=cold window_bytes=4096'")" \
    "$(awk -v claim=$claim '$1 == claim && NF > 6 { printf "%.1f", $5 }' <<<"$fit")"

# On standard output it stands alone.
"$nudma" calibrate $window "${few[@]}" -p $inbound=80..110 -c $claim --tolerance 0.1 -q -w - >alone.cfg 2>tables.txt
is "a file on standard output" $? 0
has "the tables are elsewhere" "$(cat tables.txt)" '^sensitivity: '
has "is used as it is" "$("$nudma" run $window "${few[@]}" --print-config --set @alone.cfg 2>&1)" \
    "^$inbound = .*alone.cfg:[0-9]+.*calibrated \(claims $claim\)"

# ---- Two parameters, two claims ------------------------------------------------------------------
# Of a scenario of one's own, with other values than the platform gives: quick, and both have to move.
mkdir -p mine/own
cp "$NUDMA_SCENARIOS/pcie_bench/latency_numa.cfg" mine/own/pair.cfg
cat >mine/own/claims.cfg <<'CFG'
claims = (
  { id = "own.local"; use = "C"; lo = 550.0; hi = 572.0; published = "561"; text = "memory beside the port";
    expr = "v('own/pair','cache=cold memory=local','latency_mean_ns')"; },
  { id = "own.remote"; use = "C"; lo = 655.0; hi = 682.0; published = "668"; text = "memory of the other socket";
    expr = "v('own/pair','cache=cold memory=remote','latency_mean_ns')"; }
);
CFG
out=$("$simulate" calibrate own/pair --scenarios mine --set axes.cache=cold --set measure.transactions=1000 \
    -p $inbound=20..200 -p hosts.server.interconnect.one_way_ns=5..60 \
    -c own.local -c own.remote --tolerance 1e-3 -w two.cfg -q)
is "two parameters to two claims" $? 0
has "one is met" "$out" '^own.local .* ok$'
has "and the other" "$out" '^own.remote .* ok$'
has "local latency hardly depends on the interconnect" "$out" '^own.local +C +0\.[0-9]+ +-?0\.0[0-4][0-9]$'
is "groups are shared" "$(grep -c 'server = {' two.cfg)" 1
has "both are written" "$(tr -d '\n' <two.cfg)" 'interconnect = \{ *one_way_ns = .*\}; *root_complex = \{ *inbound_ns = '

# ---- What is refused -----------------------------------------------------------------------------
refuse() { # refuse NAME PATTERN ARGUMENT...
    local name=$1 pattern=$2
    shift 2
    out=$("$nudma" calibrate "$@" 2>&1)
    is "$name" $? 2
    has "$name is said" "$out" "$pattern"
}
refuse "a prediction" 'claims.cfg:[0-9]+: pcb.win.cold.2048k: has use K: it has to come out by itself' \
    $window -p $inbound -c pcb.win.cold.2048k
refuse "a baseline beside a prediction" 'pcb.win.cold.2048k: has use K' \
    $window -p $inbound -c $claim -c pcb.win.cold.2048k
refuse "a claim that is none" 'did you mean "pcb.win.cold.4k"' $window -p $inbound -c pcb.win.cold.4
refuse "a claim of another scenario" 'its point is not one of the scenarios' \
    pcie_bench/latency_size -p $inbound -c $claim
refuse "a parameter that is none" 'did you mean "hosts.server.root_complex.inbound_ns"' \
    $window -p hosts.server.root_complex.inbound -c $claim
refuse "a setting of the experiment" 'describes the experiment' \
    $window -p workload.transfer_bytes -c $claim
refuse "what an axis sets" 'axis window_bytes' $window -p workload.window_bytes=64..8192 -c $claim
refuse "a name" 'is no quantity' $window -p hosts.server.coherence.protocol -c $claim
refuse "a range upside down" 'lo < hi' $window -p $inbound=9..3 -c $claim
refuse "a range beyond the parameter's" 'within 1\.\.1000' $window -p $inbound=0..2000 -c $claim
refuse "a start outside the range" 'is 96, outside 1\.\.50' $window -p $inbound=1..50 -c $claim
refuse "no parameter" 'which parameters' $window -c $claim
refuse "no claim" 'which claims' $window -p $inbound
refuse "no scenario" 'which scenario' -p $inbound -c $claim

# A claim out of reach is not called fitted.
out=$("$nudma" calibrate $window "${few[@]}" --set $inbound=10 -p $inbound=1..20 -c $claim -q)
is "a fit out of reach" $? 1
has "ends at the edge" "$out" "^$inbound +ns +1\.\.20 +10 +(20|1[5-9]\.[0-9]*)$"
has "and misses" "$out" "^$claim .* MISS$"

# A trial that is refused is no value at all: the search goes on around it, but not all was tried.
ways=hosts.server.cache.ddio_ways
out=$("$nudma" calibrate $window "${few[@]}" --set $ways=18 -p $ways=1..32 -c $claim -w ways.cfg 2>refused.txt)
is "a trial that is refused" $? 1
has "costs without bound" "$(cat refused.txt)" '^trial 2[1-9]: cost inf$'
has "is said" "$(cat refused.txt)" '^a trial failed: .*ddio_ways must not exceed'
has "what was found stays" "$(cat ways.cfg)" 'ddio_ways = \{ value = '
has "and holds" "$out" "^$claim .* ok$"

# Claims beside a scenario of one's own.
mkdir own
cp "$NUDMA_SCENARIOS/$window.cfg" own/mine.cfg
cat >own/claims.cfg <<'END'
claims = ( { id = "own.claim"; use = "C"; lo = 1.0; hi = 9999.0; published = "488"; text = "t";
    expr = "v('mine','cache=cold window_bytes=4096','latency_mean_ns')"; } );
END
out=$("$nudma" calibrate own/mine.cfg "${few[@]}" -p $inbound -c own.claim --max-trials 1 -q 2>&1)
has "a claim beside one's own scenario" "$out" '^own.claim +488 .* ok$'

echo "1..$cases"
[ $failed = 0 ]
