#!/usr/bin/env bash
# The command from end to end, on scenarios of pcie_bench: what it prints, what it stores, its exit
# status; interrupted, killed, on a full disk, with a broken database.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/scenario/lib.sh
size=pcie_bench/latency_size

# ---- Help, names, mistakes -----------------------------------------------------------------------
for command in run list describe topology import measure explain plot figures check; do
    "$nudma" "$command" --help >help.txt 2>&1
    is "$command --help" "$?" 0
    has "$command --help says how" "$(cat help.txt)" 'nudma '"$command"
    is "in lines of some 100 columns" "$(awk 'length > 104 && !/^ /' help.txt)" ""
    has "$command --version" "$("$nudma" "$command" --version)" '^nudma [0-9]+\.[0-9]+\.[0-9]+ '
done
has "--version" "$("$nudma" --version)" '^nudma [0-9]+\.[0-9]+\.[0-9]+ '
"$nudma" 2>/dev/null; is "no command" $? 2
out=$("$nudma" --scenarios . run $size 2>&1); is "an option before the command" $? 2
is "says where it stands" "$out" \
    "nudma: --scenarios: options stand behind the command: nudma run --scenarios . ... (see nudma --help)"
is "without a command" "$("$nudma" --db x.db 2>&1)" \
    "nudma: --db: options stand behind the command: nudma COMMAND --db x.db (see nudma --help)"
is "a command that may not have it" "$("$nudma" --db x.db list 2>&1)" \
    "nudma: --db: options stand behind the command (nudma list --help shows those of list)"
out=$(env -u NUDMA_SCENARIOS "$nudma" run pcie_bench/none 2>&1)
has "a scenario that is none" "$out" '^no scenario "pcie_bench/none" in /.*scenarios.*; did you mean "pcie_bench"'
is "where it was looked for is a plain path" "$(grep -c '/\.\./' <<<"$out")" 0
out=$("$nudma" run adce/fig05_copy_bandwidth --set hosts.server.dram.channels=0 2>&1)
is "a mistake of a host is the only one" "$out" \
    "--set: hosts.server.dram.channels: found 0 (an integer), expected an integer 1..16"
out=$("$nudma" rum 2>&1); is "a command that is none" $? 2
has "the nearest command" "$out" 'did you mean "run"'
is "help COMMAND" "$("$nudma" help run)" "$("$nudma" run --help)"
out=$("$nudma" run pcie_bench/latency_sise 2>&1); is "a scenario that is none" $? 2
has "the nearest scenario" "$out" 'did you mean "pcie_bench/latency_size"'
is "a scenario without quick points says so" \
    "$("$nudma" run smartio/isolation $size --list --quick 2>&1 >/dev/null | head -n 1)" \
    "smartio/isolation: names no points for --quick: all of them count"
out=$("$nudma" list pcie_bench/latency_ni 2>&1); is "a beginning of no name" $? 2
has "is a scenario that is none" "$out" '^no scenario "pcie_bench/latency_ni"'
out=$("$nudma" list --names=devices 2>&1); is "devices to include" "$? $(grep -xcE 'nfp6000|p4800x' <<<"$out") $(grep -c cfg <<<"$out")" "0 2 0"
has "kinds of names" "$("$nudma" list --names=device 2>&1)" 'whatifs, platforms, machines or devices; did you mean "devices"'
is "kinds of names, once" "$("$nudma" list --names=foo 2>&1)" \
    "--names=foo: expected scenarios, claims, whatifs, platforms, machines or devices"
mkdir -p empty
out=$("$nudma" run empty 2>&1); is "a folder without scenarios" $? 2
has "is said to be one" "$out" '^empty: is a folder without scenarios below /.*scenarios \(nudma list shows their names\)$'
is "once" "$(wc -l <<<"$out")" 1
has "a folder by its path" "$("$nudma" run "$NUDMA_SCENARIOS/pcie_bench" 2>&1)" \
    '^/.*: is a folder without scenarios below .*; did you mean "pcie_bench"\?$'
has "all of them" "$("$nudma" run "$NUDMA_SCENARIOS" 2>&1)" '^/.*: is a folder of folders of scenarios, expected one of these'
echo >mine.cfg
has "a file that is none" "$("$nudma" run mnie.cfg 2>&1)" \
    '^no file "mnie.cfg", and no scenario of this name in /.*; did you mean "mine.cfg"'
has "the one beside it" "$("$nudma" run ./mien 2>&1)" 'no scenario "./mien" in .*; did you mean "./mine"'
has "or a scenario" "$("$nudma" run pcie_bench/latency_sise.cfg 2>&1)" 'did you mean "pcie_bench/latency_size"'
is "a folder of scenarios" "$("$nudma" run pcie_benc 2>&1 | grep -o 'did.*')" 'did you mean "pcie_bench"?'
is "and not one of them" "$("$nudma" run PCIE_BENCH 2>&1 | grep -o 'did.*')" 'did you mean "pcie_bench"?'
rm mine.cfg
mkfifo pipe.cfg
is "what would never end" "$("$nudma" run pipe.cfg 2>&1)" "pipe.cfg: cannot be read: it is no regular file"
rm pipe.cfg
is "without the head of a table" "$(grep -c '^scenario' <<<"$out")" 0
is "the beginning of names" "$("$nudma" list smartio/fig2 | grep -c '^smartio/fig2')" 9
is "a name is itself" "$("$nudma" list smartio/fig33_vm_p2p | grep -c '^smartio/')" 1
has "the nearest folder of scenarios" "$("$nudma" run pcie_bensh 2>&1)" 'did you mean "pcie_bench"'
out=$("$nudma" run smartio/fig2 2>&1); is "but a run takes whole names" $? 2
out=$("$nudma" check pcie_bensh 2>&1); is "claims that are none" $? 2
has "the nearest folder" "$out" 'did you mean "pcie_bench"'
out=$("$nudma" run $size --list --filter op=read --filter 'transfer_bytes<=16' 2>&1)
is "several filters all hold" "$(grep -c op=read <<<"$out") $(grep -cv op=read <<<"$out")" \
    "$("$nudma" run $size --list -q --filter 'op=read transfer_bytes<=16' | wc -l) 1"
out=$("$nudma" run $size --list --filter op=read --filter transfer=16 2>&1)
is "a mistake in one of several" $? 2
out=$("$nudma" run $size --set workload.cach=cold 2>&1); is "a setting that is none" $? 2
has "the nearest setting" "$out" 'workload.cach.*did you mean "cache"'
is "said once for all points" "$(grep -c 'workload.cach' <<<"$out")" 1
out=$("$nudma" run $size --set workload 2>&1); is "--set without a value" $? 2
out=$("$nudma" run $size --sett workload.cache=cold 2>&1); is "an option that is none" $? 2
has "the nearest option" "$out" 'Unknown option --sett; did you mean "--set"\?'
has "of those that all have" "$("$nudma" list --versoin 2>&1)" 'did you mean "--version"\?'
printf '@include "platforms/t430.cfg"\nworkload = { type = "pcie_bench"; };\n' >misplaced.cfg
out=$("$nudma" run misplaced.cfg 2>&1); is "a host that is included in no group" $? 2
has "its settings in one message" "$out" \
    '^misplaced.cfg:1: .*t430.cfg is included in the wrong place; unknown here: machine, cpu, core, cache and 8 more; expected in a host: hosts = \{ NAME = \{ @include'
is "and no other about them" "$(grep -c t430.cfg <<<"$out")" 1
printf '\nmashine = 1;\nmore = 2;\nworkload = { type = "pcie_bench"; };\n@include "platforms/t430.cfg"\n' >misplaced.cfg
out=$("$nudma" run misplaced.cfg 2>&1); is "settings of the scenario itself" $? 2
is "each by itself" "$(grep -c 'misplaced.cfg:[23]: m.*: unknown setting' <<<"$out")" 2
printf 'mashine = 1;\nmore = 2;\n' >part.cfg
printf '@include "part.cfg"\nworkload = { type = "pcie_bench"; };\n' >misplaced.cfg
out=$("$nudma" run misplaced.cfg 2>&1); is "two mistakes in an included file" $? 2
is "each by itself, too" "$(grep -c 'part.cfg:[12]: m.*: unknown setting' <<<"$out")" 2
wrong_place() { # wrong_place NAME SCENARIO EXPECTED: one message about what is included, whose end is EXPECTED
    printf '%b' "$2" >misplaced.cfg
    out=$("$nudma" run misplaced.cfg 2>&1); is "$1" "$?" 2
    has "$1: which file, where" "$out" "^misplaced.cfg:$3"
    is "$1: one message" "$(grep -c 'included in the wrong place' <<<"$out") $(grep -cE ': (unknown setting|found)' <<<"$out")" "1 ${4:-0}"
}
# The cable's message follows from the port that the host lacks without its platform.
wrong_place "a part of a host in the host" 'title = "x";\nhosts = { server = {\n  @include "families/haswell_ep/cache.cfg"\n}; };\nworkload = { type = "pcie_bench"; };\ndevices = { nfp = { @include "devices/nfp6000.cfg" }; };\ncables = ( { from = "server.s0.rp0"; to = "nfp.p0"; } );' \
    '3: hosts.server: .*haswell_ep/cache.cfg is .* unknown here: l1_size, l1_ways, l2_size, l2_ways and 9 more; expected in a group "cache"$' 1
wrong_place "in a neighbour" 'hosts = { server = {\n@include "platforms/t430.cfg"\ncpu = { @include "families/haswell_ep/cache.cfg" }; }; };\nworkload = { type = "memory"; };' \
    '3: hosts.server.cpu: .*haswell_ep/cache.cfg is .*; expected in a group "cache"$'
wrong_place "a host beside the hosts" 'hosts = {\n @include "platforms/t430.cfg"\n};\nworkload = { type = "memory"; };' \
    '2: hosts: .*t430.cfg is .*; expected in a host: hosts = '
wrong_place "a device beside the devices" 'hosts = { server = { @include "platforms/t430.cfg" }; };\ndevices = { @include "devices/nfp6000.cfg" };\nworkload = { type = "memory"; };' \
    '2: devices: .*nfp6000.cfg is .*; expected in a device: devices = '
wrong_place "a device in the workload" 'hosts = { server = { @include "platforms/t430.cfg" }; };\ndevices = { nfp = { @include "devices/nfp6000.cfg" }; };\ncables = ( { from = "server.s0.rp0"; to = "nfp.p0"; } );\nworkload = {\n@include "devices/nfp6000.cfg"\ntype = "pcie_bench"; };' \
    '5: workload: .*nfp6000.cfg is .*; expected in a device: devices = '
for command in list describe explain import init measure diff calibrate; do
    out=$("$nudma" $command --db x.db 2>&1); is "$command reads no results: --db" $? 2
    has "$command says so" "$out" 'Unknown option --db'
done
out=$("$nudma" run $size -j0 2>&1); is "-j0" $? 2
out=$("$nudma" run $size --seeds x 2>&1); is "--seeds x" $? 2
out=$("$nudma" describe pcie.requestor 2>&1); is "a model that is none" $? 2
has "the nearest model" "$out" 'did you mean "pcie.requester"'
out=$("$nudma" describe hosts.server.cache.llc_ways); is "a setting" $? 0
is "is described alone" "$(sed 's/ .*//;/^$/d' <<<"$out" | xargs) $(grep -c 'associativity of LLC' <<<"$out") $(wc -l <<<"$out")" "cache: 1 4"
is "of an element, with its value" "$("$nudma" describe 'hosts.a.ports[0].lanes=8' | head -n 1)" \
    "ports: a root port: an element of the list \`ports\`"
is "of a device, in all models that have it" \
    "$("$nudma" describe devices.x.lanes | grep -c '^[a-z]*\.[a-z0-9_]*: ') $("$nudma" describe devices.x.lanes | grep -c '^ports: ')" \
    "$("$nudma" describe --all | awk '/^[a-z0-9_.]*: / { of = $1 } $1 == "lanes" && of ~ /\./' | wc -l) 0"
has "a group" "$("$nudma" describe hosts.server.cache)" '^ *llc_ways '
is "of a model by its name" "$("$nudma" describe pcie.requester.lanes | grep '^[a-z._]*: ' | sed 's/:.*//' | xargs)" pcie.requester
is "of a group that is left out" "$("$nudma" describe hosts.server.cores_per_socket 2>&1)" \
    'nudma describe: "hosts.server.cores_per_socket": there is no such setting; did you mean "cpu.cores_per_socket"?'
has "of a device that is called like something else" "$("$nudma" describe devices.fio.queue_pair 2>&1)" \
    'there is no such setting; did you mean "queue_pairs"'
described() { "$nudma" describe "$1" | awk '/^[a-z._]*: / { of = $1 } $1 == "'"$2"'" { print of, $3, $4, $5; exit }'; }
for path in type devices.ssd.type nvme.controller.type; do
    is "$path: what every device is" "$(described $path type)" "device: required a device"
done
is "programs.x.type" "$(described programs.x.type type)" "program: required a program"
is "programs.x.enabled" "$(described programs.rr.enabled enabled)" "program: true true, false"
is "netperf.enabled" "$(described netperf.enabled enabled)" "program: true true, false"
has "a program says that there is more" "$("$nudma" describe netperf)" 'every program has: type, enabled \(nudma describe program\)'
is "netperf.type" "$(described netperf.type type)" "program: required a program"
is "workload.type" "$(described workload.type type)" "workload: required a workload"
is "integrated" "$(described integrated integrated)" "device: none a socket"
is "the end of a cable" "$(described 'cables.[0].from' from)" "cable: required a port"
is "a host's machine" "$(described hosts.server.machine machine)" "host: none text -"
is "what a host lends" "$(described lending.a.lend lend)" "lending: none a list"
has "a type lists what it may be" "$("$nudma" describe devices.ssd.type)" '^  nvme.controller +an NVMe controller'
is "and nothing else" "$("$nudma" describe workload.type | grep -c netperf)" 0
has "a model says that there is more" "$("$nudma" describe ether.switch)" 'every device has: type, integrated \(nudma describe device\)'
has "a device of the scenario's" "$("$nudma" describe devices.ssd)" '^ *integrated '
has "of all workloads" "$("$nudma" describe workload.op)" '^pcie_bench: '
has "a slip in one of these" "$("$nudma" describe devices.ssd.tpye 2>&1)" 'did you mean "type"'
is "a metric" "$("$nudma" describe netperf.throughput_gbit_s | awk '/^[a-z._]*:/ { print $1 } /gbit_s/ { print $1, $2, $3 }' | xargs)" \
    "netperf: +throughput_gbit_s value Gbit/s +throughput_gbit_s series Gbit/s"
has "of any program" "$("$nudma" describe iops)" '^fio: '
is "a statistic of a device of the scenario's" "$("$nudma" describe server_nic.pf1_rx_bytes | awk '{ print $1 }' | xargs)" \
    "nic.ethernet: statistic pf1_rx_bytes"
is "of a host" "$("$nudma" describe server.s0.dram_read_bytes server.s0.rc.p2p_tlps server.s0.iommu.iotlb_misses | sed -n 's/^\([a-z_]*\): .*/\1/p' | xargs)" \
    "numa root_complex iommu"
has "a setting of figures" "$("$nudma" describe plot.kind 2>&1)" \
    '^nudma describe: "plot.kind": the settings of .plot. are in docs/commands.md#plot-figures$'
is "nothing" "$("$nudma" describe '' 2>&1)" 'nudma describe: nothing is called "" (nudma describe lists all)'
is "a setting of no device" "$("$nudma" describe devices.ssd.size 2>&1)" \
    'nudma describe: "devices.ssd.size": no device has such a setting (nudma describe TYPE lists those of a type)'
out=$("$nudma" describe hosts.server.cache.lcl_ways 2>&1); is "a setting that is none" $? 2
is "the nearest there" "$out" 'nudma describe: "hosts.server.cache.lcl_ways": cache has no such setting; did you mean "llc_ways"?'
has "describe shows units and provenance" "$("$nudma" describe pcie.requester)" \
    '_ns +ns .*(datasheet|published|calibrated|estimate)'
is "and what is one of several once" \
    "$("$nudma" describe nic.ethernet | grep -o ' pf[0-9N]_rx_bytes')" ' pfN_rx_bytes'
out=$("$nudma" describe nvme_clients)
is "and metrics that are numbered, of a line each" "$(grep -o '^ *\.c[^ ]*' <<<"$out" | xargs)" \
    ".c{00..31}.latency_p50_ns .c{00..31}.iops"
is "numbers of other kinds are left" "$(grep -o '^ *latency_p[0-9]*_ns' <<<"$out" | xargs)" \
    "latency_p50_ns latency_p99_ns"
listed=$("$nudma" list)
mapfile -t all < <(awk -v n="$(stride 12)" 'NR > 1 && NR % n == 0 { print $1 }' <<<"$listed")
[ "$(stride 2)" = 1 ] && every=() || every=(--quick)
# Of those with dozens of hosts, whose points differ in values alone, every fourth point.
print() { "$nudma" run "$@" "${every[@]}" --print-config >/dev/null 2>>all.txt || echo "$1"; }
for scenario in "${all[@]}"; do
    case $scenario in
    smartio/arbitration | smartio/fig35_* | smartio/client_death | smartio/cluster60) print "$scenario" --shard 1/4 ;;
    *) print "$scenario" ;;
    esac
done >unbuilt.txt
is "every scenario can be built" "$(cat unbuilt.txt; grep -v ": names no points for --quick" all.txt)" ""
has "list shows points and titles" "$listed" "^$size +[0-9]+  [A-Z]"
mkdir mine && cp "$NUDMA_SCENARIOS/$size.cfg" mine/ && cp "$NUDMA_SCENARIOS/$size.cfg" .
out=$("$nudma" run mine/latency_size.cfg latency_size.cfg --list 2>&1); is "two files of one name" $? 2
has "are named" "$out" '^latency_size.cfg: has the name "latency_size", and so has mine/latency_size.cfg'
is "one file twice" "$("$nudma" run latency_size.cfg ./latency_size.cfg --list -q | wc -l)" \
    "$("$nudma" run latency_size.cfg --list -q | wc -l)"
cat >ten.cfg <<'END'
@include "platforms/ioctopus_testbed.cfg"
set = ( "devices.server_nic.queues=none" );
workload = { type = "programs"; measured = "servr"; };
programs = { n = { type = "netperf"; direction = "rxx"; server_socket = 2; };
    p = { type = "pktgn"; socket = 2; };
    q = { type = "pktgen"; socket = 2; host = "clent"; pakcet_bytes = 64; interface = "pf3"; };
    r = { type = "pktgen"; socket = 2; interface = "octo0"; }; };
measure = { duration_us = "3 GB"; };
axes = ( { name = "a"; setting = "network.client.channels"; values = [0, 8, "fast"]; } );
END
out=$("$nudma" run ten.cfg --set devices.client_nic.mtu=1 2>&1); is "ten mistakes" $? 2
is "come at once, by their lines, without what follows from them" \
    "$(cut -d' ' -f1-4 <<<"$out")" "--set: devices.client_nic.mtu: unknown setting;
ten.cfg:2: devices.server_nic.queues: found \"none\"
ten.cfg:3: workload.measured: found \"servr\"
ten.cfg:4: programs.n.direction: found \"rxx\"
ten.cfg:4: programs.n.server_socket: found 2
ten.cfg:5: programs.p.type: found \"pktgn\"
ten.cfg:6: programs.q.host: found \"clent\"
ten.cfg:6: programs.q.pakcet_bytes: unknown setting;
ten.cfg:7: programs.r.socket: found 2
ten.cfg:8: measure.duration_us: found \"3
ten.cfg:9: network.client.channels: found \"fast\""
out=$("$simulate" run adce/offload_today --set programs.p.cpu=77 --set devices.engine.reads_in_flight=5 2>&1)
is "what is wrong at some points only names them" "$(cut -d' ' -f2- <<<"$out")" \
    "programs.p.cpu: found 77 (an integer), expected a CPU of the host, 0..27 (at platform=r730)
programs.p.cpu: found 77 (an integer), expected a CPU of the host, 0..47 (at platform=r740,spr)
devices.engine.reads_in_flight: unknown setting (at platform=spr)"
out=$("$simulate" run pcie_bench/latency_size --set "axes.transfer_bytes=$(seq -s, 8001 8400)" 2>&1)
has "of many values the first" "$out" '\(at transfer_bytes=8193,[0-9,]{30,50} and [0-9]+ more\)$'
ways=hosts.server.iommu.iotlb_ways
why="hosts.server: the entries of a cache must be a multiple of its ways ($NUDMA_SCENARIOS/$size.cfg:7)"
for command in run explain topology "run --trace 1" "calibrate --param hosts.server.os.copy_line_cycles --claim pcb.lat.rd.64"; do
    # shellcheck disable=SC2086
    out=$("$nudma" $command $size --set $ways=7 --set workload.gap_ns=5 2>&1 | sed -n "/entries/p")
    is "$command: the --set that models find wrong is the place" "$out" "--set $ways=7: $why"
done
out=$("$nudma" run $size --set $ways=7 --set hosts.server.iommu.iotlb_entries=20 --set workload.gap_ns=5 2>&1)
is "of several each that is wrong alone" "$out" "--set $ways=7, --set hosts.server.iommu.iotlb_entries=20: $why"
is "one that is given twice once" "$("$nudma" run $size --set $ways=7 --set $ways=7 2>&1)" "--set $ways=7: $why"
out=$("$nudma" run $size --set $ways=32 --set hosts.server.iommu.iotlb_entries=48 2>&1)
is "and of those that are wrong together" "$out" "--set $ways=32, --set hosts.server.iommu.iotlb_entries=48: $why"
sed 's/^measure = {/& cool_us = 3;/' "$NUDMA_SCENARIOS/$size.cfg" >own.cfg
is "not what is wrong without it" "$("$nudma" run own.cfg --set workload.gap_ns=5 2>&1 | cut -d' ' -f1-4)" \
    "own.cfg:21: measure.cool_us: unknown setting;"
rm own.cfg
out=$("$nudma" run $size --set 'axes.transfer_bytes=1024,64,1 KiB' 2>&1); is "a value in two spellings" $? 2
is "is refused" "$out" "--set: axis transfer_bytes: the values 1024 and 1 KiB are the same, expected one of them"
is "nothing has been written so far" "$(find . -name '*.db*')" ""

is "an option before a command that may not have it" "$("$nudma" --set a.b=1 plot X 2>&1)" \
    "nudma: --set: options stand behind the command (nudma plot --help shows those of plot)"

# ---- Running -------------------------------------------------------------------------------------
points=$("$nudma" run $size --list --quick)
n_quick=$(wc -l <<<"$points")
has "--list names the points" "$points" "^$size op=read transfer_bytes=64$"
has "--print-config has the origin of values" \
    "$("$nudma" run $size --quick --print-config --set workload.window_bytes=4096)" \
    'workload.window_bytes = 4096 bytes +# --set'
endless=(--set measure.transactions=2000000000 --set measure.duration_us=900000000)
table=$("$nudma" run $size --quick -j2 2>progress.txt)
is "a run" $? 0
has "results on standard output" "$table" '^read +64 +[0-9.]+'
is "a line for each run elsewhere" "$(grep -c 'done in' progress.txt)" "$n_quick"
"$nudma" run numa/memory_latency --quick -j1 --db slow.db --progress 1 2>sparse.txt >/dev/null
is "or none, and their sum" "$(grep -c 'done in' sparse.txt) $(grep -c '^2 runs in [0-9:]*, 0 failed$' sparse.txt)" "0 1"
"$nudma" run $size --db slow.db -j1 --progress 1 "${endless[@]}" --timeout 3 -f 'op=read transfer_bytes=64' 2>sparse.txt >/dev/null
has "and how far it is, in between" "$(cat sparse.txt)" '^0/1 runs, 1 running, 0 failed, .* left, .* simulated in 0:0[12]$'
has "a run that fails has a line" "$(cat sparse.txt)" '^pcie_bench/latency_size .*: failed: '
out=$("$nudma" run $size --progress -1 2>&1); is "--progress -1" $? 2
is "as many runs as points" "$(query results/nudma.db 'select count(*) from run')" "$n_quick"
is "the database is whole" "$(query results/nudma.db 'pragma integrity_check')" ok
is "a run knows its parameters" \
    "$(query results/nudma.db "select value, unit from param join run on id = run_id
        where point = 'op=read transfer_bytes=64' and name = 'workload.transfer_bytes'")" '64|bytes'
out=$("$nudma" run $size --quick 2>&1 >again.txt); is "the same again" $? 0
has "is not run again" "$out" "$n_quick of $n_quick runs are in .* already"
is "and shows the same" "$(cat again.txt)" "$table"
"$nudma" run $size --quick --force -q >again.txt 2>&1
is "--force runs it again" "$(query results/nudma.db 'select count(*) from run')" $((2 * n_quick))
is "and finds the same" "$(cat again.txt)" "$table"
is "bit by bit" "$(query results/nudma.db 'select count(distinct fingerprint) from run')" "$n_quick"
"$nudma" run $size --quick --seeds 3 -q >/dev/null
is "seeds make an interval" \
    "$(query results/nudma.db "select count(*) from result where metric = 'latency_mean_ns'
        and n = 3 and ci95 >= 0")" "$n_quick"
has "--stats shows all metrics" "$("$nudma" run $size --quick --stats -q)" \
    '^read +64 +throughput_gbit_s +[0-9.]+ .*Gbit/s'
"$nudma" run $size --quick -j1 --db one.db -q >/dev/null
"$nudma" run $size --quick -j4 --db four.db -q >/dev/null
same='select point, name, printf("%.17g", value) from metric join run on id = run_id order by 1, 2'
is "the number of jobs changes nothing" "$(query one.db "$same")" "$(query four.db "$same")"

# ---- Trouble -------------------------------------------------------------------------------------
wait_for_child() { # wait_for_child PID: until it has a worker; says which
    for _ in $(seq 200); do
        pgrep -P "$1" && return
        sleep 0.05
    done
}
env --default-signal=INT "$nudma" run $size --db int.db -j2 "${endless[@]}" 2>int.txt >/dev/null &
pid=$!
wait_for_child $pid >children.txt
kill -INT $pid
wait $pid; is "interrupted" $? 130
has "says how to go on" "$(cat int.txt)" "^  .*/nudma'? run $size --db int.db -j2 --set measure"
is "no worker is left" "$(while read -r child; do ps -o pid= -p "$child"; done <children.txt)" ""
env --default-signal=INT "$nudma" run $size --force --db int.db -j2 "${endless[@]}" 2>int.txt >/dev/null &
pid=$!
wait_for_child $pid >children.txt
kill -INT $pid
wait $pid
is "--force would begin anew" "$(grep -c 'without --force only what is missing' int.txt)" 1
# 4,000 points take longer to check than the command takes to be stopped.
checked() { # checked ARGUMENT...: Ctrl-C once a child checks points, to all of a terminal's job
    setsid env --default-signal=INT "$nudma" "$@" 2>int.txt >/dev/null &
    pid=$!
    wait_for_child $pid >/dev/null
    kill -INT -- -$pid
    wait $pid
}
checked run $size -q -j2 --db never.db --set axes.transfer_bytes="$(seq -s, 1 2000)"
is "interrupted while points are checked" "$? $(wc -l <int.txt)" "130 2"
has "nothing is lost" "$(cat int.txt)" "^interrupted before anything has run: nothing is lost; begin again with$"
has "and how to begin again" "$(cat int.txt)" "^  .*/nudma'? run $size -q -j2 --db never.db --set axes"
is "nor is there a database" "$(ls never.db 2>&1)" "ls: cannot access 'never.db': No such file or directory"
(ulimit -f 100 && exec "$nudma" run $size --seeds 9 --db limit.db -j2) 2>limit.txt >/dev/null
is "a file that may not grow" $? 1
has "is said" "$(cat limit.txt)" '^limit.db: .*no room'
has "and how to go on" "$(tail -n 1 limit.txt)" "^  .*/nudma'? run $size --seeds 9 --db limit.db -j2"
"$nudma" run $size --db crash.db -j1 --set axes.op=read --set axes.transfer_bytes=64 "${endless[@]}" \
    2>crash.txt >/dev/null &
pid=$!
kill -KILL "$(wait_for_child $pid | head -n 1)"
wait $pid; is "a worker that crashes fails the run" $? 1
has "counted at the end" "$(tail -n 1 crash.txt)" '^1 of 1 runs failed'
has "with a message" "$(cat crash.txt)" 'failed: the worker process ended by signal 9'
has "that is recorded" "$(query crash.db 'select status, error from run')" '^failed\|.*signal 9'
"$nudma" run $size --quick --db crash.db -q >/dev/null; is "the rest goes on" $? 0

n_seeds=$((6 / $(stride 2)))
"$simulate" run $size --db whole.db --seeds $n_seeds -j2 -q >/dev/null
for _ in 1 2 3; do
    "$nudma" run $size --db killed.db --seeds $n_seeds -j2 -q >/dev/null &
    pid=$!
    sleep 0.4
    kill -KILL $pid 2>/dev/null
    wait $pid 2>/dev/null
    is "killed: the database is whole" "$(if [ -e killed.db ]; then query killed.db 'pragma integrity_check'; else echo ok; fi)" ok
done
"$nudma" run $size --db killed.db --seeds $n_seeds -j2 -q >/dev/null; is "after kills it goes on" $? 0
with_seed='select scenario, point, seed, fingerprint from run order by 2, 3'
is "and has what an undisturbed run has" "$(query killed.db "$with_seed")" \
    "$(query whole.db "$with_seed")"

cp one.db other.db
sqlite3 other.db 'pragma user_version = 77'
out=$("$nudma" run $size --quick --db other.db 2>&1); is "another schema version" $? 1
has "is named" "$out" 'schema version 77'
is "and left alone" "$(query other.db 'select count(*) from run')" "$n_quick"
echo "not a database at all, and longer than a page header would be, so that it is read as one, yes" \
    >text.db
out=$("$nudma" run $size --quick --db text.db 2>&1); is "a file that is no database" $? 1
has "is said to be none" "$out" 'text.db: .*not a database'
out=$("$nudma" results --db text.db 2>&1); is "none to be read either" \
    "$out" "text.db: file is not a database (--db FILE names another file)"
out=$("$nudma" run $size --quick --db /proc/none/x.db 2>&1); is "a folder that cannot be made" $? 2
out=$("$nudma" run $size --quick --db none/x.db 2>&1); is "a folder that is not there" $? 2
is "is not made, but said" "$out$([ -e none ] && echo there)" 'nudma run: --db none/x.db: there is no folder "none"'
(mkdir first && cd first && "$nudma" run numa/memory_latency --quick -q >/dev/null); is "results/ is made" "$? $(ls first/results)" "0 nudma.db"
for spelling in results ./results results/. .//results/ "$PWD/spelled/results" ../spelled/results; do
    rm -rf spelled
    mkdir spelled
    (cd spelled && "$nudma" run numa/memory_latency --quick -q --db "$spelling/x.db" >/dev/null)
    is "results/ is made as $spelling" "$? $(ls spelled/results)" "0 x.db"
done
nowhere() { # nowhere WHAT COMMAND ARGUMENT...: writes into a folder that is not there
    local out status name=$1
    shift
    out=$("$nudma" "$@" 2>&1); status=$?
    is "a folder that is not there: $1 $name" "$status $out$([ -e none ] && echo there)" \
        "2 nudma $1: ${name:+$name }${!#}: there is no folder \"none\""
}
nowhere --db figures $size --db none/x.db
nowhere --output figures $size --output none/x/
nowhere --output plot $size --output none/x
nowhere --db whatif pcie_bench --db none/x.db
out=$("$nudma" merge none/x.db one.db 2>&1); is "a folder that is not there: merge" "$? $out" \
    '2 nudma merge: none/x.db: there is no folder "none"'
(cd spelled && rm -r results && "$nudma" merge ./results/all.db ../one.db >/dev/null); is "merge makes results/" "$? $(ls spelled/results)" "0 all.db"
out=$("$nudma" describe pcie.lnk 2>&1); is "a part under another name" $? 2
has "is told by the last one" "$out" 'nothing is called "pcie.lnk"; did you mean "link"'
narrow() { # narrow ARGUMENT...: on a terminal of 60 columns
    NO_COLOR=1 script -qec "stty cols 60; '$nudma' $*" /dev/null </dev/null 2>/dev/null | tr -d '\r'
}
words() { tr -s "[:space:]" "\n" | sort; }
for command in "describe netperf" "check numa --db one.db" "check pcie_bench --db one.db" "run numa --list" "run --help" "import --help" "topology smartio/cluster60"; do
    narrow "$command" >narrow.txt
    is "$command on a narrow terminal" "$(awk 'length > 60' narrow.txt)" ""
    # shellcheck disable=SC2086
    is "has every word" "$(words <narrow.txt)" "$("$nudma" $command 2>&1 | words)"
done
narrow "check numa --db one.db" >narrow.txt
is "a verdict beside each claim" "$(grep -cE '^numa\.[a-z0-9_.]+ +no data ' narrow.txt)" "$(grep -c '^numa\.' narrow.txt)"
"$nudma" run $size --quick -q >/dev/full 2>full.txt; is "output that does not arrive" $? 1
has "is said" "$(cat full.txt)" 'No space left'
"$nudma" describe --all 2>pipe.txt | head -n 1 >/dev/null
is "a closed pipe is quiet" "${PIPESTATUS[0]} $(cat pipe.txt)" "0 "

"$nudma" run $size --trace-address=nfp 2>pipe.txt | head -n 1 >/dev/null
is "nor a followed transfer" "$(cat pipe.txt)" ""

# ---- Plots ---------------------------------------------------------------------------------------
text=$("$nudma" plot $size --db one.db); is "a plot as text" $? 0
is "has no control characters" "$(tr -d '[:print:]\n' <<<"$text")" ""
has "has units" "$text" 'transfer size \[B\]'
has "and what was measured" "$text" 'measured'
"$nudma" plot $size --db one.db --format png,svg --output plots >files.txt; is "as files" $? 0
is "named" "$(cat files.txt)" "plots/$size.png
plots/$size.svg"
is "PNG" "$(head -c 4 plots/$size.png | tail -c 3)" PNG
has "SVG" "$(cat plots/$size.svg)" 'mean latency'
has "the script" "$("$nudma" plot $size --db one.db -F gnuplot)" '^plot .curve0 '
mkdir small
printf '#!/bin/sh\ntrap "" XFSZ\nulimit -f 8\nexec "%s" "$@"\n' "$(command -v gnuplot)" >small/gnuplot
chmod +x small/gnuplot
cp -r plots before
for format in png svg; do
    out=$(PATH=$PWD/small:$PATH "$nudma" plot $size --db one.db -F $format --output plots 2>&1)
    is "a $format for which there is no room" $? 1
    has "is said to be cut off" "$out" "plots/$size.$format: .*disk full"
done
is "and the pictures that were there stay" "$(diff -r before plots)" ""
mkdir slow temporary
printf '#!/bin/sh\nexec sleep 100\n' >slow/gnuplot && chmod +x slow/gnuplot
TMPDIR=$PWD/temporary PATH=$PWD/slow:$PATH env --default-signal=INT "$nudma" plot $size --db one.db -F png \
    --output none &
pid=$!
child=$(wait_for_child $pid | head -n 1)
kill -INT $pid
wait $pid
is "a plot that is interrupted" $? 130
kill "$child"
is "leaves nothing" "$(find none temporary -mindepth 1 2>/dev/null; [ -e none ] && echo none)" ""
rm -f one.db-shm one.db-wal
limited() { (ulimit -f "$1" && shift && exec "$nudma" "$@" --db one.db >/dev/null) 2>&1; }
has "plot, where files may not grow: names what cannot be written" "$(limited 4 plot $size)" \
    '^one.db: disk I/O error: one.db-shm, which .*ulimit -f allows files of 4 KiB'
has "or what cannot" "$(limited 32 plot $size -F png -o limited)" "^limited/$size.png: gnuplot could not .*ulimit -f"
is "has made no folder" "$([ -e limited ] && echo there)" ""
has "the page of a report" "$(limited 32 report -o limited.html $size)" '^limited.html: .*(ulimit -f|too large)'
out=$("$nudma" plot $size --db one.db -F pdf 2>&1); is "a format that is none" $? 2
out=$("$nudma" plot pcie_bench/latency_numa --db one.db 2>&1); is "nothing to plot" $? 1
has "says what makes it" "$out" 'nudma run pcie_bench/latency_numa'
out=$(PATH=/nowhere "$nudma" plot $size --db one.db 2>&1); is "without gnuplot" $? 1
has "says that it is missing" "$out" 'gnuplot is not installed'

# ---- Claims --------------------------------------------------------------------------------------
claim() { # claim LOW HIGH EXPRESSION: writes claims.cfg
    printf 'claims = ( { id = "a"; use = "K"; lo = %s; hi = %s; published = "x"; text = "t";
    expr = "%s"; } );\n' "$1" "$2" "$3" >claims.cfg
}
v64="v('$size','op=read transfer_bytes=64','latency_mean_ns')"
claim 1.0 1e9 "$v64"
out=$("$nudma" check claims.cfg --db one.db); is "a claim that holds" $? 0
has "is counted" "$out" '^1 of 1 given claims hold, 1 covered \(C: 0 of 0, K: 1 of 1\)'
claim 1.0 2.0 "$v64"
out=$("$nudma" check claims.cfg --db one.db); is "a claim that misses" $? 1
has "shows what is simulated" "$out" '^a +K +- +x +1\.\.2 +[0-9.]+ +- +MISS'
claim 1.0 2.0 "$v64/v('$size','op=none','latency_mean_ns')"
out=$("$nudma" check claims.cfg --db one.db); is "a claim without data" $? 1
has "says so" "$out" 'no data'
claim 1.0 2.0 "$v64 +"
out=$("$nudma" check claims.cfg --db one.db 2>&1); is "a claim that is no expression" $? 2
has "says where" "$out" '^claims.cfg:1: a: expr: '
claim 3.0 2.0 "$v64"
out=$("$nudma" check claims.cfg --db one.db 2>&1); is "a claim upside down" $? 2
out=$("$nudma" check pcie_bench --db one.db | tail -n 1)
has "the published ones, by folder" "$out" '^[0-9]+ of 86 given claims hold, 86 covered \(C: [0-9]+ of 6, K: [0-9]+ of 80\)'
out=$("$nudma" check --db none.db 2>&1); is "no database" $? 1

# ---- What is no scenario; the same mistake in several places ---------------------------------------
out=$("$nudma" run devices/nfp6000 2>&1); is "a part" $? 2
is "is one mistake" "$(wc -l <<<"$out")" 1
has "says what it is" "$out" 'devices/nfp6000.cfg: neither hosts nor workload are in it: no scenario, but a part'
cat >repeat.cfg <<'END'
title = "x"; text = "y";
hosts = {
@repeat I = 0 to 4 {
    h{I} = { @include "platforms/r730.cfg"
        cpu = { clock_gz = 3; };
        dram = { rate_mt_s = "fast"; }; };
}
};
workload = { type = "memory"; host = "h0"; };
END
out=$("$nudma" run repeat.cfg 2>&1); is "mistakes within @repeat" $? 2
is "each once" "$(cut -d: -f1-3 <<<"$out" | paste -sd ' ')" \
    "repeat.cfg:5: hosts.h0.cpu.clock_gz repeat.cfg:6: hosts.h0.dram.rate_mt_s 8 more are the same, of the same lines in other places"
out=$(NUDMA_SCENARIOS=/nonexist "$nudma" list 2>&1); is "NUDMA_SCENARIOS that is no folder" $? 2
is "is said" "$out" "NUDMA_SCENARIOS=/nonexist: no such folder"
NUDMA_SCENARIOS=/nonexist "$nudma" list --help >/dev/null; is "help all the same" $? 0

echo "1..$cases"
[ $failed = 0 ]
