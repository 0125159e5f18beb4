#!/usr/bin/env bash
# A platform of one's own: a family and a few facts on top, what is borrowed, where values come from.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/scenario/lib.sh

platform() { # platform FAMILY [MORE]: writes mine.cfg, a scenario
    local llc="15 MiB"
    case $1 in skylake_sp) llc="8.25 MiB" ;; sapphire_rapids) llc="11.25 MiB" ;; esac
    cat >mine.cfg <<END
title = "t"; text = "t";
hosts = { server = {
    machine = "mine";
    @include "families/$1/host.cfg"
    cpu = { cores_per_socket = 6; clock_ghz = 2.1; };
    cache = { llc_size = "$llc"; llc_slices = 6; };
    interconnect = { rate_gt_s = 7.2; };
    dram = { node_size = "16 GiB"; rate_mt_s = 1600; };
    ports = ( { name = "rp0"; socket = 0; generation = 3; lanes = 8; } );
    ${2:-}
}; };
devices = { nfp = { @include "devices/nfp6000.cfg"
}; };
cables = ( { from = "server.s0.rp0"; to = "nfp.p0"; } );
workload = { type = "pcie_bench"; device = "nfp"; host = "server"; interface = "command"; transfer_bytes = 64; };
measure = { warmup_us = 20; duration_us = 2000; transactions = 50; };
END
}

for family in sandy_bridge ivy_bridge haswell_ep broadwell_ep skylake_sp sapphire_rapids; do
    platform $family
    out=$("$simulate" run ./mine.cfg -q --db $family.db 2>&1); is "a host of $family runs" $? 0
    [ $family = ivy_bridge ] || continue
    out=$("$nudma" run ./mine.cfg --print-config --db none.db 2>&1)
    has "its own facts" "$out" '^hosts.server.cpu.cores_per_socket = 6 +# \./mine.cfg:5'
    has "what the nearer family changes" "$out" '^hosts.server.dram.banks = 8 +# .*families/ivy_bridge/dram.cfg:'
    has "what the farther one has" "$out" 'families/broadwell_ep/dram.cfg:.*calibrated.*, borrowed: r730$'
    is "its own facts are not borrowed" "$(grep -c 'mine.cfg.*borrowed' <<<"$out")" 0
    has "each run says so" "$(query $family.db "SELECT value FROM param WHERE name = 'note.borrowed'")" \
        '; r730: .*dram.controller_ns.*; t430: .*root_complex.inbound_ns, root_complex.outbound_ns'
done
# One's own calibration, in place of the family's.
platform ivy_bridge 'root_complex = {
        inbound_ns = { value = 90; provenance = "calibrated"; fitted_to = "mine.x"; machine = "mine"; };
        outbound_ns = { value = 90; provenance = "calibrated"; fitted_to = "mine.x"; machine = "mine"; }; };'
out=$("$nudma" run ./mine.cfg --print-config --db none.db 2>&1)
has "it counts" "$out" '^hosts.server.root_complex.inbound_ns = 90 ns +# .*mine.cfg:[0-9]+, calibrated$'
has "the rest of the group stays" "$out" '^hosts.server.root_complex.mps_bytes = 256'
platform ivy_bridge 'root_complex = { inbound_ns = { value = 1000; provenance = "calibrated"; }; };'
out=$("$nudma" run ./mine.cfg --db none.db 2>&1); is "a fit that ended on its bound" $? 2
has "is refused, with its place" "$out" \
    '^\./mine.cfg:10: hosts.server.root_complex.inbound_ns.value: found 1000 \(an integer\), expected a calibrated value off'
platform ivy_bridge 'machine = "other";'
out=$("$nudma" run ./mine.cfg --db none.db 2>&1); is "a name twice in one file" $? 2
has "is refused still" "$out" '^\./mine.cfg:10: hosts.server.machine: is set already at \./mine.cfg:3, in a group .*; what an included'
platform ivy_bridge
sed -i 's/machine = "mine"/machine = 7/' mine.cfg
out=$("$nudma" run ./mine.cfg --db none.db 2>&1); is "a machine without a name" $? 2
has "is said" "$out" 'hosts.server.machine: found 7 \(an integer\), expected the name of the machine'

# ---- Files of devices ----------------------------------------------------------------------------
is "each is a whole device" "$(grep -cE '^type = "[a-z0-9_.]+";$' "$NUDMA_SCENARIOS"/devices/*.cfg | grep -v ':1$')" ""
platform ivy_bridge
sed -i 's/nfp = { /&type = "nic.ethernet"; /' mine.cfg
out=$("$nudma" run ./mine.cfg --db none.db 2>&1)
has "a type beside it names all places" "$out" \
    'nfp6000.cfg:[0-9]+: devices.nfp.type: is set already at \./mine.cfg:12; this file is included at \./mine.cfg:12;'

# ---- Variants that are whole platforms -----------------------------------------------------------
out=$("$nudma" run pcie_bench/hosts_latency --print-config --quick --db none.db 2>&1)
has "the file behind a variant is told" "$out" \
    '^hosts.server.dram.banks = 8 +# axis host, .*families/ivy_bridge/dram.cfg:[0-9]+, datasheet'
cat >bad.cfg <<'END'
title = "t"; text = "t";
workload = { type = "pcie_bench"; device = "nfp"; host = "server"; };
measure = { };
axes = ( { name = "host"; variants = (
    { name = "good"; set = ( "@platforms/pcie_bench/t620.cfg" ); },
    { name = "bad"; set = ( "@platforms/pcie_bench/t630.cfg", "hosts.server.dram.chanels=2" ); } ); } );
END
out=$("$nudma" run ./bad.cfg --db none.db 2>&1); is "a mistake in a variant" $? 2
has "names the point" "$out" '^\./bad.cfg:6: hosts.server.dram.chanels: unknown setting.*did you mean "channels"\? \(at host=bad\)$'

echo "1..$cases"
[ $failed = 0 ]
