#!/usr/bin/env bash
# nudma explain: ten points whose limit is known, because it is made so small that nothing else can be it.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/scenario/lib.sh
explain() { "$nudma" explain "$@" --brief 2>&1; }
n_limits=0
# limit NAME PATTERN ARGUMENT...: the line below "What limits it"
limit() {
    local name=$1 pattern=$2
    shift 2
    n_limits=$((n_limits + 1))
    [ $((n_limits % $(stride 4))) = 0 ] || return 0
    has "$name" "$(explain "$@" | sed -n '/^What limits it/{n;p;}')" "$pattern"
}
short="--set measure.duration_us=20 --set measure.warmup_us=5"
adapter() { # adapter ARGUMENT...: an adapter without limits of its own, in a slot of Gen3 x16
    # shellcheck disable=SC2086 # words
    set -- adapter.cfg $short "$@"
    printf '%s\n' "$@"
}
cat >adapter.cfg <<'END'
hosts = { server = {
    @include "platforms/r730.cfg"
}; };
devices = { nic = {
    type = "pcie.requester"; generation = 3; lanes = 16; extended_tags = true;
    read_interval_ns = 1.0; descriptor_ns = 0.0; word_ns = 0.0; line_ns = 0.0; tx_align_bytes = 16; tx_gap_bytes = 0;
    reads_in_flight = 128; writes_in_flight = 64;
    posted_data_credits = 1024;
}; };
cables = ( { from = "server.s0.rp1"; to = "nic.p0"; } );
workload = {
    type = "pcie_bench"; device = "nic"; host = "server"; interface = "bulk"; measure = "bandwidth";
    op = "write"; cache = "device_warm"; transfer_bytes = 4096; window_bytes = "64 KiB"; pattern = "sequential";
};
measure = { };
plot = { x = "latency_mean_ns"; y = "throughput_gbit_s"; };
END
cat >memory.cfg <<'END'
hosts = { server = {
    @include "platforms/r730.cfg"
}; };
set = ( "hosts.server.cpu.cores_per_socket=4", "hosts.server.cache.llc_size=10485760", "hosts.server.cache.llc_slices=4" );
workload = { type = "memory"; host = "server"; mode = "bandwidth"; buffer_bytes = "16 MiB"; };
measure = { };
plot = { x = "read_gbyte_s"; y = "read_gbyte_s"; };
END

mapfile -t a < <(adapter)
limit "1 link" '^  PCIe link server.s0.rp1 to nic.p0 \(Gen3 x16\). With' "${a[@]}"
limit "2 credits" '^  receive credits of root ports of server' "${a[@]}" \
    --set hosts.server.root_complex.posted_data_credits=32
limit "3 tags" '^  tags of nic' "${a[@]}" --set workload.op=read --set devices.nic.extended_tags=false \
    --set devices.nic.mrrs_bytes=128 --set hosts.server.root_complex.inbound_ns=500
limit "3a lines of reads" '^  lines of reads that a stack of server has under way' "${a[@]}" --set workload.op=read \
    --set hosts.server.root_complex.read_lines=8
limit "3b credits, while the wire has room, though a faster link brings more of them" '^  receive credits of root ports of server' \
    "${a[@]}" --set workload.transfer_bytes=64 --set workload.cache=cold --set workload.window_bytes=16777216 \
    --set devices.nic.writes_in_flight=256 --set devices.nic.tx_align_bytes=4 --set hosts.server.root_complex.inbound_ns=150
limit "4 DDIO ways" '^  DDIO ways of server' pcie_bench/latency_window --set measure.transactions=200 \
    --set measure.duration_us=200 --point 'cache=device_warm window_bytes=3145728'
# shellcheck disable=SC2086 # words
limit "5 DRAM" '^  DRAM channels of server' memory.cfg $short --set hosts.server.dram.channels=1
# shellcheck disable=SC2086 # words
limit "6 core" '^  misses in flight of a core of server' memory.cfg $short --set workload.cores=1 \
    --set 'workload.buffer_bytes=64 MiB'
limit "7 IOTLB" '^  IOTLB of server' "${a[@]}" --set hosts.server.iommu.enabled=true \
    --set workload.pattern=random --set workload.transfer_bytes=64 --set 'workload.window_bytes=1 MiB' --set measure.warmup_us=120
limit "8 reads of a bridge" "^  reads in flight of the bridge's engine, a_ntb" device_lending/fig04_ntb_dma \
    --point 'path=ram_to_ram direction=read transfer_bytes=4096' --set programs.copy.transfers=1 \
    --set devices.a_ntb.dma_request_bytes=2048 --set devices.a_ntb.dma_reads_in_flight=1
cat >drive.cfg <<'END'
@include "platforms/nvme_p4800x.cfg"
workload = { type = "programs"; measured = "server"; };
programs = {
    fio = { type = "fio"; engine = "spdk"; on = "server"; device = "ssd"; queue_depth = 8; span_bytes = 131072; };
};
measure = { warmup_us = 4000; duration_us = 300; };
set = ( "devices.ssd.media=flat", "devices.ssd.read_gbyte_s=0.5", "devices.ssd.command_interval_ns=100" );
plot = { x = "iops"; y = "iops"; };
END
limit "9 drive" '^  media of drive ssd' drive.cfg
# shellcheck disable=SC2086 # words
limit "10 interconnect" '^  interconnect between sockets of server' memory.cfg $short \
    --set workload.to_socket=1 --set hosts.server.interconnect.rate_gt_s=2

# ---- Of every run, how near to its peak each kind of resource was ------------------------------------
share() { query shares.db "select round(max(mean), 3) from result where scenario = '$1' and metric like '$2'"; }
"$simulate" run "${a[@]}" --db shares.db -q >/dev/null 2>&1
is "a link that is the limit" "$(share adapter bottleneck.pcie_ratio)" "$(share adapter '%.tx.utilization_ratio')"
is "is nearest to its peak" "$(share adapter 'bottleneck.%')" "$(share adapter bottleneck.pcie_ratio)"
is "and has no wait for credits" "$(awk "BEGIN { print ($(share adapter bottleneck.credits_ratio) < 0.2) }")" 1
"$simulate" run "${a[@]}" --set hosts.server.root_complex.posted_data_credits=32 --db shares.db -q >/dev/null 2>&1
is "few credits: the wire stands still" "$(awk "BEGIN { print ($(share adapter bottleneck.credits_ratio) > 0.2) }")" 1
# shellcheck disable=SC2086 # words
"$simulate" run memory.cfg $short --set hosts.server.dram.channels=1 --db shares.db -q >/dev/null 2>&1
is "one channel: memory" "$(share memory bottleneck.dram_ratio)" "$(share memory '%.dram%utilization_ratio')"
is "is what fills up" "$(awk "BEGIN { print ($(share memory bottleneck.dram_ratio) > 0.85) }") $(share memory 'bottleneck.%')" \
    "1 $(share memory bottleneck.dram_ratio)"
is "no device, no ratio of it" "$(query shares.db "select count(*) from result where scenario = 'memory' and
    metric in ('bottleneck.device_ratio', 'bottleneck.ethernet_ratio')")" 0

# ---- The page ------------------------------------------------------------------------------------
out=$("$nudma" explain "${a[@]}" --set hosts.server.root_complex.posted_data_credits=32 2>&1); is "a page" $? 0
has "the runs that are planned" "$out" '^nudma explain: some [0-9]+ runs are planned: .* with a change, as many without its limit; if seeds differ, 3 of each$'
has "the metric" "$out" '^throughput_gbit_s is [0-9.]+ Gbit/s \(more is better\)'
has "what was changed" "$out" '^    hosts.server.root_complex.posted_data_credits = 64 instead of 32'
has "by how much" "$out" '^  it is [0-9.]+ Gbit/s \([0-9.]+ % better\)'
has "what comes next" "$out" '^  [0-9.]+ Gbit/s; then PCIe link server.s0.rp1 to nic.p0'
has "how busy" "$out" '^ +[0-9.]+ %  nic.p0.tx'
has "what waited" "$out" '^  nic.p0.tx: [0-9.e+]+ ns for which the wire stood still for want of credits'
is "a link that weighs more than latencies" "$(grep -c 'weigh more' <<<"$out")" 0
if [ "$(stride 2)" = 1 ]; then
    out=$(explain pcie_bench/latency_size --set measure.transactions=50 --set devices.nfp.lanes=4); is "a narrow link" $? 0
    has "is a limit" "$out" '^  PCIe link server.s0.rp0 to nfp.p0 '
    has "that weighs less" "$out" '^  Latencies weigh more, see below: first the latency of nfp\.$'
fi
out=$(explain pcie_bench/latency_size --set measure.transactions=50); is "a latency" $? 0
has "no single limit" "$out" '^  No single resource'
has "latencies by effect" "$out" '^  latency of the root complex of server: '
is "in per cent of the latency as it is" "$(sed -nE 's/^latency_mean_ns is ([0-9.]+) .*/\1/p; s/^  latency of the root complex of server: ([0-9.]+) ns \(([0-9.]+) % better\)/\1 \2/p' <<<"$out" |
    awk 'NR == 1 { old = $1 } NR == 2 { off = (old - $1) / old * 100 - $2; print ($2 > 1), (off * off < 0.0026) }')" "1 1"
has "where the time goes" "$out" '^ +[0-9.]+ %  root_complex, 192 ns'
out=$(explain pcie_bench/latency_size --metric none); is "an unknown metric" $? 2
has "is named, and what there is" "$out" 'records no metric "none"; expected one of latency_mean_ns, '
has "or the nearest" "$(explain pcie_bench/latency_size --metric throughput_gbits --set measure.transactions=50)" \
    'records no metric "throughput_gbits"; did you mean "throughput_gbit_s"'

# Processors are those of one host: of several it is named.
"$nudma" init --workload fio --platform gold6234 whole.cfg >/dev/null
sed 's/duration_us = 5000/duration_us = 500/; s/warmup_us = 10000/warmup_us = 4000/' whole.cfg >fio.cfg
out=$(explain fio.cfg --point 'engine=libaio depth=16'); is "a drive" $? 0
has "of a single host no processors are named" "$out" '^ +[0-9.]+ %  cpu$'
has "how many runs are planned, brief" "$out" '^nudma explain: some 3[0-9] runs are planned: 3 of the point as it is, [0-9]+ with a change; if'
planned=$(sed -n 's/^nudma explain: some \([0-9]*\) runs.*/\1/p' <<<"$out")
is "that is as many as there are" "$((planned))" "$(grep -c '^\[[0-9]*/[0-9]*\]' <<<"$out")"
# Twice their clock is beyond its range: as much as that allows is tried.
has "cores that cannot be twice as fast" "$out" '^  cores of server \(clock\)\. With$'
has "are as fast as they can be" "$out" '^    hosts.server.cpu.clock_ghz = 6 instead of 3\.3 \(the most that its range allows\)$'
has "which is listed" "$out" '^  With what the range allows, less than twice as much: cores of server \(clock\), clock_ghz at most 6$'
if [ "$(stride 2)" = 1 ]; then
    out=$(explain fio.cfg --point 'engine=libaio depth=16' --set hosts.server.cpu.clock_ghz=6)
    has "at the end of the range they are not tried" "$out" '^  Not tried, as the range ends there: hosts.server.cpu.clock_ghz = 6$'
    is "nor listed" "$(grep -c 'cores of server' <<<"$out")" 0
    sed 's/^hosts = {/& other = {\n@include "platforms\/gold6234.cfg"\n};/' fio.cfg >two.cfg
    has "of two they are" "$(explain two.cfg --point 'engine=libaio depth=16')" '^ +[0-9.]+ %  cpu of server$'
fi

# Of a value of 0 no change is so many per cent: what makes it other than 0 is listed, or that nothing does.
tags=(--set workload.op=read --set devices.nic.extended_tags=false --set devices.nic.mrrs_bytes=512
    --set devices.nic.reads_in_flight=4 -m nic.dma_tag_waits)
out=$(explain "${a[@]}" "${tags[@]}"); is "a count of 0" $? 0
has "has no per cent" "$out" '^nic.dma_tag_waits is 0; nothing can be said in per cent of that$'
has "what makes it more is listed" "$(sed -n '/^What makes it other than 0/{n;p;}' <<<"$out")" \
    '^  reads in flight of the engine of nic: [1-9][0-9]*$'
has "none is told to change nothing" "$out" '^[0-9]+ resources and latencies were tried\.$'
is "nor to be better" "$(grep -c 'better\|What limits it\|below\.' <<<"$out")" 0
out=$(explain "${a[@]}" -m nic.dma_read_bytes)
has "or nothing does" "$(sed -n '/^What makes it/{n;p;}' <<<"$out")" '^  Nothing that was tried\.$'

# Of a count neither more nor less is known to be better.
tags[7]=devices.nic.reads_in_flight=8
out=$(explain "${a[@]}" "${tags[@]}"); is "a count" $? 0
has "is neither good nor bad" "$out" '^nic.dma_tag_waits is [0-9]+ \(a number of which neither more nor less is known to be better; --better says which\)$'
has "what makes it less is found, too" "$out" '^  tags of nic: 0 \(-100\.0 %\)$'
is "nothing is better" "$(grep -c '% better\|What limits it' <<<"$out")" 0
has "unless that is asked for" "$(explain "${a[@]}" "${tags[@]}" --better more)" '^nic.dma_tag_waits is [0-9]+ \(more is better\)$'
has "no latency is below where none is" "$(explain "${a[@]}" -m nic.p0.tx.utilization_ratio --better more)" \
    '^  No single resource: .*, nothing changes\.$'
out=$(explain "${a[@]}" --better most); is "by one of two words" "$? $out" '2 nudma explain: --better: found "most", expected more or less'

# Of several together those that matter; the value is that of the settings shown, not of all that were tried.
two=(--set workload.op=read --set workload.transfer_bytes=64 --set devices.nic.reads_in_flight=8
    --set devices.nic.read_requests_max=8 --set devices.nic.word_ns=0.15)
out=$(explain "${a[@]}" "${two[@]}")
has "two together" "$out" '^  only together: read requests in flight of nic, reads in flight of the engine of nic'
mapfile -t shown < <(sed -n 's/^    \(.*\) = \([^ ]*\) instead of .*/--set\n\1=\2/p' <<<"$out")
is "their settings" "${#shown[@]}" 4
"$simulate" run "${a[@]}" "${two[@]}" "${shown[@]}" --db shown.db -q >/dev/null
is "give what it says" "$(sed -n 's/^  it is \([0-9.]*\) .*/\1/p' <<<"$out")" \
    "$("$nudma" export adapter --db shown.db -m throughput_gbit_s 2>/dev/null | awk -F, 'NR == 2 { sub(/\r/, ""); print 0 + $4 }')"

# A rate of what is counted has steps: 33 requests instead of 32 are no improvement.
sed '/^set = /d; s/queue_depth = 8/queue_depth = 1/; s/duration_us = 300/duration_us = 220/' drive.cfg >few.cfg
out=$(explain few.cfg); is "few requests" $? 0
has "are said" "$out" '^32 were counted for it in 220 us: a change by one of them, 3\.1 %, is no difference\.$'
is "one more is no help" "$(grep -cE '\((3\.1|[0-2]\.[0-9]) % better\)' <<<"$out")" 0
has "three more are" "$out" '^  PCIe link server.s0.rp1 to ssd.p0 \(Gen3 x4\): 1[0-9]+ \([0-9.]+ % better\)$'
has "what is tried again" "$out" 'change it by no more than 3\.1 %\.$'
has "a rate of their bytes, too" "$(explain few.cfg -m throughput_gbyte_s)" '^32 were counted for it in 220 us'
if [ "$(stride 2)" = 1 ]; then
    is "of many nothing is said" "$(explain few.cfg --set measure.duration_us=22000 | grep -c 'were counted')" 0
fi

# ---- Noise ---------------------------------------------------------------------------------------
chance=(pcie_bench/latency_window --set measure.transactions=30 --point 'cache=device_warm window_bytes=3145728' -m throughput_gbit_s)
out=$(explain "${chance[@]}"); is "thirty random reads" $? 0
has "differ by seed" "$out" '^This and all below are means over 3 seeds, which differ by [0-9.]+ %: smaller changes are noise'
differ=$(sed -n 's/.*which differ by \([0-9.]*\) %.*/\1/p' <<<"$out")
least=$(grep -oE '\([0-9.]+ % better' <<<"$out" | tr -d '(' | sort -g | head -n 1 | cut -d' ' -f1)
is "nothing smaller is named" "$(awk "BEGIN { print ($least >= $differ) }")" 1
is "what is steady needs one" "$(explain "${a[@]}" | grep -c 'means over')" 0
out=$("$nudma" explain 2>&1); is "no scenario" $? 2
out=$(explain adapter.cfg --point op=x); is "no such axis" "$? $(cut -d: -f1 <<<"$out")" "2 --point"

# Stopped while runs go on: it says that nothing is kept, and how to begin again.
env --default-signal=INT "$nudma" explain adapter.cfg -j2 --set measure.duration_us=900000000 \
    --set measure.transactions=2000000000 >page.txt 2>int.txt &
pid=$!
for _ in $(seq 200); do pgrep -P $pid >children.txt && break; sleep 0.05; done
kill -INT $pid
wait $pid; is "stopped" $? 130
has "says what is kept" "$(cat int.txt)" '^interrupted: nothing is kept, as explain stores no runs; begin again with$'
has "and how to begin again" "$(cat int.txt)" "^  .*/nudma'? explain adapter.cfg -j2 --set measure"
is "there is no page" "$(cat page.txt)" ""
is "nor a worker left" "$(while read -r child; do ps -o pid= -p "$child"; done <children.txt)" ""

if [ "$(stride 4)" = 1 ]; then
    has "on a terminal it says how far it is" \
        "$(TERM=xterm script -qec "'$nudma' explain adapter.cfg $short --brief" /dev/null </dev/null | tr '\r' '\n')" \
        '^explain: 2 of [0-9]+ runs'
    script -qec "stty cols 60; '$nudma' explain adapter.cfg $short --brief 2>errors.txt" /dev/null </dev/null | tr -d '\r' >narrow.txt
    is "lines fit on a narrow one" "$(awk 'length > 60' narrow.txt)" ""
    # shellcheck disable=SC2086 # words
    out=$("$nudma" explain adapter.cfg $short --brief 2>errors.txt)
    is "which has every word" "$(tr -s '[:space:]' ' ' <narrow.txt)" "$(tr -s '[:space:]' ' ' <<<"$out")"
    # shellcheck disable=SC2086 # words
    out=$("$nudma" explain adapter.cfg $short --brief 2>&1)
    is "elsewhere it does not" "$(grep -c '^explain: ' <<<"$out")" 0
    has "but has a line for each run" "$out" '^\[1/1\] as it is, seed 2: [0-9.]+$'
    has "with what was changed" "$out" '^\[[0-9]+/[0-9]+\] [^:]*root ports of server: [0-9.]+$'
fi

echo "1..$cases"
[ $failed = 0 ]
