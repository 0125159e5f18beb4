#!/usr/bin/env bash
# Prints the platform of a cluster: hosts with a bridge each, ten below a switch, switches in cascade
# below one at the top, as SmartIO had 60 hosts below seven switches (8.6). The first host of every
# switch lends a device to the second host of the next one; all take part.
#   scripts/cluster.sh HOSTS [HOST_FILE [BRIDGE_FILE [SWITCH_FILE]]]
# Files are included from a scenarios folder. At most 110 hosts: the switch at the top has 12 ports.
set -eu
if [ $# -eq 0 ]; then
    echo "usage: scripts/cluster.sh HOSTS [HOST_FILE [BRIDGE_FILE [SWITCH_FILE]]]" >&2
    exit 2
fi
hosts=$1
host_file=${2:-platforms/smartio/host_iommu.cfg}
bridge_file=${3:-devices/pxh830_x8.cfg}
switch_file=${4:-devices/mxs824.cfg}
case $hosts in '' | *[!0-9]*) echo "scripts/cluster.sh: HOSTS is a number" >&2; exit 2 ;; esac
if [ "$hosts" -lt 2 ] || [ "$hosts" -gt 110 ]; then
    echo "scripts/cluster.sh: from 2 to 110 hosts" >&2
    exit 2
fi

awk -v hosts="$hosts" -v host_file="$host_file" -v bridge_file="$bridge_file" \
    -v switch_file="$switch_file" '
function name(i) { return sprintf("n%02d", i) }
function comma() { if (cables++) print "," }
function cable(from, to, more) {
    comma()
    printf "    { from = \"%s\"; to = \"%s\"; latency_ns = 0.0;%s }", from, to, more
}
BEGIN {
    per = 10
    n = int((hosts + per - 1) / per)
    printf "# %d hosts below %d switches in cascade. Made by scripts/cluster.sh; not written by hand.\n", \
        hosts, n + 1
    print "engine = { quantum_ns = 100; };"
    print "hosts = {"
    for (i = 0; i < hosts; i++)
        printf "    %s = {\n        @include \"%s\"\n    };\n", name(i), host_file
    print "};\ndevices = {"
    for (i = 0; i < hosts; i++)
        printf "    %s_ntb = {\n        type = \"pcie.ntb\";\n        @include \"%s\"\n    };\n", \
            name(i), bridge_file
    for (s = 0; s < n; s++)
        printf "    dev%d = { @include \"platforms/smartio/small.cfg\" };\n", s
    for (s = 0; s <= n; s++)
        printf "    %s = {\n        type = \"pcie.cluster_switch\";\n        @include \"%s\"\n    };\n", \
            s == n ? "top" : "sub" s, switch_file
    print "};\ncables = ("
    for (i = 0; i < hosts; i++) {
        cable(name(i) ".s0.rp1", name(i) "_ntb.p0", "")
        cable(name(i) "_ntb.p1", sprintf("sub%d.p%d", int(i / per), 1 + i % per), " length_m = 2.0;")
        if (i % per == 0)
            cable(name(i) ".s0.rp0", sprintf("dev%d.p0", i / per), " lanes = 4;")
    }
    for (s = 0; s < n; s++)
        cable(sprintf("sub%d.p0", s), sprintf("top.p%d", s), " length_m = 2.0;")
    print "\n);\nlending = {"
    for (i = 0; i < hosts; i++) {
        s = int(i / per)
        what = i % per == 0 ? sprintf("lend = [\"dev%d\"];", s) : "borrow = [];"
        if (i % per == 1)
            what = sprintf("borrow = [\"dev%d\"];", (s + n - 1) % n)
        printf "    %s = { host = \"%s\"; dma_window_bytes = \"16 MiB\"; %s };\n", name(i), name(i), what
    }
    print "};"
}'
