#!/usr/bin/env bash
# nudma topology: a tree of lines, a graph that graphviz reads, a picture that is well-formed; of one
# host and of sixty.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/scenario/lib.sh
switch=examples/write_stream_switch
well_formed() { xmllint --noout "$1" 2>&1; }
read_by_dot() { # read_by_dot NAME FILE BOXES EDGES
    is "$1: boxes" "$(grep -cE '^ *[hd][0-9a-z]+ \[' "$2")" "$3"
    is "$1: edges" "$(grep -c ' -- ' "$2")" "$4"
    is "$1: brackets" "$(tr -cd '{' <"$2" | wc -c)" "$(tr -cd '}' <"$2" | wc -c)"
    out=$(dot -Tplain "$2" 2>&1 >plain.txt); is "$1: dot reads it" "$? $out" "0 "
    is "$1: all its edges" "$(grep -c '^edge' plain.txt)" "$4"
}

# ---- Text ----------------------------------------------------------------------------------------
out=$("$nudma" topology --help); is "--help" $? 0
has "says how" "$out" 'nudma topology'
out=$("$nudma" topology $switch); is "a switch" $? 0
is "as a tree" "$out" "server: 2 sockets, interconnect 2 x 9.6 GT/s
  each socket: 14 cores, 2 GHz, LLC 35 MiB, DRAM 4 x 2400 MT/s
  s0.rp1 -- Gen3 x16 -- sw.p0 (pcie.switch)
    sw.p1 -- Gen3 x16 -- adapter.p0 (pcie.requester)
  nothing plugged in: s0.rp0, s1.rp0, s1.rp1"
has "settings can be changed" \
    "$("$nudma" topology $switch --set 'cables.[1].length_m=3' --set hosts.server.dram.channels=2)" \
    'DRAM 2 x 2400 MT/s'
"$nudma" topology $switch -o file.txt; is "into a file" $? 0
is "the same" "$(cat file.txt)" "$out"
out=$("$nudma" topology numa pcie_bench/latency_size); is "several" $? 0
has "by name" "$out" '^pcie_bench/latency_size$'
is "each" "$(grep -c '^server: ' <<<"$out")" 4
"$nudma" topology $switch >/dev/full 2>full.txt; is "output that does not arrive" $? 1

# ---- Ethernet ------------------------------------------------------------------------------------
cat >ethernet.cfg <<'END'
hosts = { a = { @include "platforms/r730.cfg"
}; b = { @include "platforms/r730.cfg"
}; };
devices = { anic = { @include "devices/multi_pf_x8x2.cfg"
}; bnic = { @include "devices/connectx4_x16.cfg"
}; };
cables = ( { from = "anic.e0"; to = "bnic.e0"; length_m = 2; },
           { from = "a.s0.rp0"; to = "anic.p0"; }, { from = "a.s1.rp0"; to = "anic.p1"; },
           { from = "b.s0.rp1"; to = "bnic.p0"; length_m = 0.5; } );
workload = { type = "memory"; host = "a"; };
END
out=$("$nudma" topology ethernet.cfg); is "NICs on two hosts" $? 0
has "a wire" "$out" '^  anic.e0 -- 100 Gb/s, 2 m -- bnic.e0$'
has "a cable's length is its own" "$out" 's0.rp1 -- Gen3 x16, 0.5 m -- bnic.p0'
has "two functions" "$out" 's1.rp0 -- Gen3 x8 -- anic.p1'
"$nudma" topology ethernet.cfg --format dot -o wire.dot; is "as a graph" $? 0
read_by_dot "wire" wire.dot 6 6
"$nudma" topology ethernet.cfg --format svg -o wire.svg; is "as a picture" $? 0
is "well-formed" "$(well_formed wire.svg)" ""
has "said in words" "$(cat wire.svg)" 'anic.e0 to bnic.e0, Ethernet, 100 Gb/s, 2 m'

# ---- Lending -------------------------------------------------------------------------------------
lending="smartio/fig22_bandwidth_test --set axes.config=lending"
# shellcheck disable=SC2086
out=$("$nudma" topology $lending); is "a lender's bridge in a chassis" $? 0
has "ends the borrower's tree" "$(sed -n '/^borrower: /,/^lender: /p' <<<"$out" | grep -A 1 'borrower_ntb.p1')" \
    'nothing plugged in'
has "and is its lender's" "$out" '    borrower_ntb.p1 -- Gen3 x16, 2 m -- lender_ntb.p1 \(pcie.ntb, of lender\)'
has "with the GPUs" "$(sed -n '/^lender: /,$p' <<<"$out")" 'chassis.p1 -- Gen3 x16 -- gpu0.p0 \(gpu.cuda\)'
has "a switch between bridges is no one's, however deep they are" \
    "$("$nudma" topology examples/borrowed_nic)" '^cluster \(pcie.cluster_switch\), shared$'

# shellcheck disable=SC2086
out=$("$nudma" topology $lending)
has "who borrows, and the IOMMU" "$out" '^  IOMMU on, borrows gpu0, gpu1 of lender$'
has "who lends" "$out" '^  IOMMU off, lends gpu0, gpu1$'
is "nothing of it where there is none" "$("$nudma" topology $switch | grep -cE 'IOMMU|lend|borrow')" 0
has "an IOMMU without lending" "$("$nudma" topology $switch --set hosts.server.iommu.enabled=true)" '^  IOMMU on$'
out=$("$nudma" topology smartio/text_limits --set axes.topology=cluster)
has "of many names the first and the last" "$out" '^  IOMMU on, lends a0 ... a33 \(34\)$'
has "of hosts alike, too" "$out" '^b: as a, with .*; IOMMU on, lends b0 ... b33 \(34\)$'
has "and a guest" "$("$nudma" topology smartio/text_migration)" '^  IOMMU on, borrows gpu0 of lender, runs a guest$'
# shellcheck disable=SC2086
has "in a graph" "$("$nudma" topology $lending -f dot)" 'label="lender\\nIOMMU off, lends gpu0, gpu1"'
has "Ethernet is dashed there" "$("$nudma" topology examples/lend_nic -f dot)" 'd0 -- d1 \[label="100 Gb/s", style=dashed\]'

# ---- Sixty hosts ---------------------------------------------------------------------------------
{
    echo 'hosts = {'
    for i in {0..59}; do
        printf 'h%d = { @include "platforms/%s.cfg"\n};\n' "$i" "$([ $((i % 2)) = 0 ] && echo r730 || echo t430)"
    done
    echo '}; devices = { sw = { type = "pcie.switch"; downstream_ports = 2; };'
    for i in {0..59}; do
        printf 'nic%d = { type = "pcie.requester"; @include "devices/nfp6000.cfg"\n};\n' "$i"
    done
    echo 'spare = { type = "pcie.requester"; @include "devices/nfp6000.cfg"'
    echo '}; };'
    echo 'cables = ( { from = "h0.s0.rp0"; to = "sw.p0"; lanes = 8; }, { from = "sw.p1"; to = "nic0.p0"; lanes = 8; }'
    for i in {1..59}; do printf ', { from = "h%d.s0.rp0"; to = "nic%d.p0"; lanes = 8; }\n' "$i" "$i"; done
    echo '); workload = { type = "memory"; host = "h0"; };'
} >many.cfg
out=$("$nudma" topology many.cfg 2>&1); is "sixty hosts" $? 0
is "those alike take a line each" "$(wc -l <<<"$out")" $((5 + 4 + 4 + 57 + 1))
has "with what they have" "$out" '^h59: as h1, with nic59$'
has "one that is alike but for a switch is not" "$out" '^  s0.rp0 -- Gen3 x8 -- sw.p0 \(pcie.switch\)$'
has "what hangs nowhere is last" "$(tail -n 1 <<<"$out")" '^spare \(pcie.requester\), at no host$'

# ---- Graph ---------------------------------------------------------------------------------------
"$nudma" topology $switch --format dot >switch.dot; is "for graphviz" $? 0
has "names the scenario" "$(head -n 1 switch.dot)" '^graph "examples/write_stream_switch" \{'
has "cables run from port to device" "$(cat switch.dot)" '^  h0s0:p1:s -- d0 \[label="Gen3 x16"\];'
read_by_dot "a switch" switch.dot 4 3
"$nudma" topology many.cfg -o many.dot; is "by the file's ending" $? 0
read_by_dot "sixty hosts" many.dot $((120 + 62)) $((60 + 61))

# ---- Picture -------------------------------------------------------------------------------------
"$nudma" topology $switch -f svg >switch.svg; is "a picture" $? 0
is "well-formed" "$(well_formed switch.svg)" ""
is "every box" "$(grep -c '<rect class="t-device"' switch.svg)" 2
is "every cable, and the interconnect" "$(grep -c 'class="t-wire"' switch.svg)" 3
has "has its style in it" "$(cat switch.svg)" '<style>'
has "and a description" "$(cat switch.svg)" '<desc id="topology-desc">server: 2 sockets, each with 14 cores'
"$nudma" topology many.cfg -o many.svg; is "of sixty hosts" $? 0
is "well-formed, too" "$(well_formed many.svg)" ""
is "with all of them" "$(grep -c '<rect class="t-host"' many.svg) $(grep -c '<rect class="t-device"' many.svg)" "60 62"
overlaps() { # overlaps FILE: boxes of hosts or devices that lie on each other, or outside
    awk '
    function value(name,    rest) {
        rest = $0
        sub(".* " name "=\"", "", rest)
        return rest + 0
    }
    /<svg/ { width = value("width"); height = value("height") }
    /<rect class="t-(host|device)/ {
        x[n] = value("x"); y[n] = value("y"); w[n] = value("width"); h[n] = value("height")
        if (x[n] < 0 || y[n] < 0 || x[n] + w[n] > width || y[n] + h[n] > height) print "outside: " $0
        for (i = 0; i < n; i++)
            if (x[i] < x[n] + w[n] && x[n] < x[i] + w[i] && y[i] < y[n] + h[n] && y[n] < y[i] + h[i])
                print "overlap: " $0
        n++
    }' "$1"
}
is "no two boxes of a kind overlap, all within the picture" "$(overlaps many.svg)" ""

# What is outside of the viewBox, what is written over something else or beside another cable's line
# so that it hides it, and lines that two cables share (of a cluster, the trunks of switches: not
# looked at). Letters are taken to be half as wide as high.
faults() { # faults FILE
    awk -v cluster="$(grep -c 'class="t-socket t-kind' "$1")" '
    function value(name,    rest) {
        rest = $0
        if (!sub(".* " name "=\"", "", rest)) return 0
        return rest + 0
    }
    function within(x1, y1, x2, y2) {
        if (x1 < 0 || y1 < 0 || x2 > width || y2 > height) print "outside: " $0
    }
    function segment(x1, y1, x2, y2,    k, t) {
        within(x1, y1, x2, y2)
        if (x1 > x2) { t = x1; x1 = x2; x2 = t }
        if (y1 > y2) { t = y1; y1 = y2; y2 = t }
        for (k = 0; k < segments; k++) {
            if (of[k] == NR) continue
            if (x1 == x2 && sx1[k] == sx2[k] && x1 == sx1[k] && y1 < sy2[k] && sy1[k] < y2 ||
                y1 == y2 && sy1[k] == sy2[k] && y1 == sy1[k] && x1 < sx2[k] && sx1[k] < x2)
                if (!cluster) print "line shared: " $0
        }
        sx1[segments] = x1; sy1[segments] = y1; sx2[segments] = x2; sy2[segments] = y2
        of[segments++] = NR
    }
    /<svg/ {
        split($0, part, /viewBox="/)
        split(part[2], box, /[ "]/)
        width = box[3]; height = box[4]
        if (width < 20 || height < 20) print "no picture: " $0
    }
    /<rect/ { within(value("x"), value("y"), value("x") + value("width"), value("y") + value("height")) }
    /<line/ { segment(value("x1"), value("y1"), value("x2"), value("y2")) }
    /<path/ {
        rest = $0
        sub(/.* d="/, "", rest); sub(/".*/, "", rest)
        while (match(rest, /[MVH][0-9-]+( [0-9-]+)?/)) {
            op = substr(rest, 1, 1)
            n = split(substr(rest, 2, RLENGTH - 1), at, " ")
            if (op == "M") { px = at[1]; py = at[2]; within(px, py, px, py) }
            if (op == "H") { segment(px, py, at[1], py); px = at[1] + 0 }
            if (op == "V") { segment(px, py, px, at[1]); py = at[1] + 0 }
            rest = substr(rest, RSTART + RLENGTH)
            sub(/^ */, "", rest)
        }
        if (rest != "") print "path not understood: " $0
    }
    /<text/ {
        text = $0
        sub(/<text[^>]*>/, "", text); sub(/<\/text>.*/, "", text); gsub(/&[a-z]+;/, "x", text)
        w = length(text) * ($0 ~ /t-small/ ? 7 : 8)
        x = value("x") - ($0 ~ /t-mid/ ? w / 2 : 0); y = value("y")
        within(x, y - 12, x + w, y + 4)
        for (k = 0; k < texts; k++)
            if (x < tx[k] + tw[k] && tx[k] < x + w && y - 11 < ty[k] + 2 && ty[k] - 11 < y + 2)
                print "over " said[k] ": " $0
        for (k = 0; k < segments && $0 ~ /"t-line"/; k++)
            if (sx1[k] == sx2[k] && x < sx1[k] && sx1[k] < x + w && sy1[k] < y && y - 11 < sy2[k])
                print "over a cable: " $0
        tx[texts] = x; ty[texts] = y; tw[texts] = w; said[texts++] = text
    }' "$1"
}

# ---- All scenarios -------------------------------------------------------------------------------
for scenario in "$NUDMA_SCENARIOS"/*/*.cfg; do
    name=${scenario#"$NUDMA_SCENARIOS"/}
    name=${name%.cfg}
    case $name in platforms/* | devices/* | */claims) continue ;; esac
    "$nudma" topology "$name" -o all.svg; is "$name" "$? $(faults all.svg)" "0 "
done
while read -r name set; do
    "$nudma" topology "$name" --set "$set" -o all.svg; is "$name, $set" "$? $(faults all.svg)" "0 "
done <<'END'
smartio/fig22_bandwidth_test axes.config=lending
smartio/text_limits axes.topology=cluster
smartio/fig30_training axes.config=two_lenders
examples/lend_nic axes.owner=borrower
END
sed -E 's/viewBox="0 0 ([0-9]+) [0-9]+"/viewBox="0 0 \1 340"/; p' all.svg >broken.svg
is "the check finds what is cut off, shared and overwritten" \
    "$(faults broken.svg | cut -d ' ' -f 1 | sort -u | tr '\n' ' ')" "line outside: over "

# ---- What the picture shows ----------------------------------------------------------------------
"$nudma" topology device_lending/fig04_ntb_dma -o k.svg; is "bridges back to back" $? 0
is "their cable is drawn" "$(grep -cE 'class="t-line t-mid"[^>]*>Gen' k.svg)" 1
level_of() { grep -F "class=\"$1\"" "$2" | grep -oE 'V[0-9]+H[0-9]+"' | grep -oE '^V[0-9]+'; }
is "Ethernet is dashed" "$(grep -c 'class="t-wire t-ether"' all.svg) $(grep -c '[.]t-ether{.*dasharray' all.svg)" "1 1"
is "two cables between hosts, two levels" \
    "$( (level_of 't-wire' all.svg; level_of 't-wire t-ether' all.svg) | sort -u | wc -l)" 2
# shellcheck disable=SC2086
"$nudma" topology $lending -o lending.svg; is "lending" $? 0
left_of() { grep -B 1 ">$1<" "$2" | grep -oE ' x="[0-9]+"' | head -n 1 | tr -dc 0-9; }
is "chassis, GPUs and bridge stand below the lender" "$(for i in chassis gpu0 gpu1 lender_ntb; do
    [ "$(left_of $i lending.svg)" -gt $(($(left_of lender lending.svg) - 40)) ] || echo "$i"
done)" ""
has "who borrows stands in its host" "$(cat lending.svg)" '"t-role"[^>]*>IOMMU on, borrows gpu0, gpu1 of lender<'
"$nudma" topology smartio/text_limits --set axes.topology=cluster -o limits.svg
is "many like devices are drawn once" "$(grep -c '>17 x pcie.requester<' limits.svg)" 6
has "by their names" "$(cat limits.svg)" '>a17 ... a33<'
is "in a picture of a width that can be read" \
    "$(grep -oE 'viewBox="0 0 [0-9]+' limits.svg | awk '{ print ($3 < 2500) }')" 1
"$nudma" topology many.cfg --set hosts.h7.iommu.enabled=true -o many_iommu.svg
has "of many hosts below the picture" "$(cat many_iommu.svg)" '>h7: IOMMU on<'
is "nothing cut off" "$(faults many_iommu.svg)" ""

# ---- Four functions ------------------------------------------------------------------------------
quad() { # quad FUNCTIONS SOCKET.PORT...: a host with a NIC, a cable to each of its functions
    echo 'hosts = { server = { @include "platforms/r730.cfg"'
    echo '}; }; devices = {'
    printf 'nic = { type = "nic.ethernet"; functions = %d; lanes = 4; }; }; cables = (' "$1"
    shift
    local i=0
    for port in "$@"; do
        printf '%s{ from = "server.%s"; to = "nic.p%d"; lanes = 4; }' "${separator:-}" "$port" $i
        local separator=', ' i=$((i + 1))
    done
    echo '); workload = { type = "memory"; host = "server"; };'
}
quad 4 s0.rp0 s0.rp1 s1.rp0 s1.rp1 >quad.cfg
"$nudma" topology quad.cfg -o quad.svg; is "a NIC of four functions" "$? $(faults quad.svg)" "0 "
labels() { grep -oE '>p[0-9]: Gen3 x[0-9]+<' "$1" | tr -d '<>' | tr '\n' ','; }
is "each cable says which function it leads to" "$(labels quad.svg)" \
    "p0: Gen3 x4,p1: Gen3 x4,p2: Gen3 x4,p3: Gen3 x4,"
quad 4 s1.rp1 s0.rp1 s1.rp0 s0.rp0 >crossed.cfg
"$nudma" topology crossed.cfg -o crossed.svg; is "in any order" "$? $(faults crossed.svg)" "0 "
is "the left-most cable is the last" "$(grep '>p[0-9]: ' crossed.svg |
    sed -E 's/.* x="([0-9]+)".*>(p[0-9]):.*/\1 \2/' | sort -n | cut -d ' ' -f 2 | tr '\n' ' ')" "p3 p1 p2 p0 "
"$nudma" topology ioctopus/bonding -o bonding.svg
is "of NICs beside each other the one with two says which" "$(labels bonding.svg)" "p0: Gen3 x8,p1: Gen3 x8,"

# ---- Nine hosts, in pairs ------------------------------------------------------------------------
{
    echo 'hosts = {'
    for i in {0..8}; do printf 'h%d = { @include "platforms/r730.cfg"\n};\n' "$i"; done
    echo '}; devices = {'
    for i in {0..8}; do
        printf 'nic%d = { @include "devices/connectx4_x16.cfg"\n};\n' "$i"
        printf 'ntb%d = { type = "pcie.ntb"; @include "devices/pxh830.cfg"\n};\n' "$i"
    done
    echo '}; cables = ( { from = "nic0.e0"; to = "nic8.e0"; }, { from = "nic2.e0"; to = "nic6.e0"; }'
    for i in 0 2 4 6; do printf ', { from = "ntb%d.p1"; to = "ntb%d.p1"; }\n' "$i" $((i + 1)); done
    for i in {0..8}; do
        printf ', { from = "h%d.s0.rp0"; to = "nic%d.p0"; lanes = 8; }\n' "$i" "$i"
        printf ', { from = "h%d.s0.rp1"; to = "ntb%d.p0"; }\n' "$i" "$i"
    done
    echo '); workload = { type = "memory"; host = "h0"; };'
} >pairs.cfg
"$nudma" topology pairs.cfg -o pairs.svg; is "cables from row to row" "$? $(faults pairs.svg)" "0 "
is "all of them" "$(grep -c '<path' pairs.svg) $(grep -c 'class="t-wire t-ether"' pairs.svg)" "24 2"

# ---- A cluster -----------------------------------------------------------------------------------
"$nudma" topology smartio/cluster60 -o cluster.svg; is "sixty hosts below seven switches" $? 0
is "well-formed, too" "$(well_formed cluster.svg)" ""
is "each host once, each switch once" \
    "$(grep -c '<rect class="t-host' cluster.svg) $(grep -c '<rect class="t-device"' cluster.svg)" "60 7"
is "none on another" "$(overlaps cluster.svg)$(faults cluster.svg)" ""
is "each card once" "$(grep -c '>A: 6 hosts' cluster.svg)" 1
has "what they consist of is said once" "$(cat cluster.svg)" 'A: 6 hosts like this, the first of them n00'
has "and of those that borrow" "$(cat cluster.svg)" 'B: 6 hosts like this, the first of them n01'
has "and of the others" "$(cat cluster.svg)" 'C: 48 hosts like this, the first of them n02'
has "who borrows what, of each" "$(cat cluster.svg)" '>n51: IOMMU on, borrows dev4 of n40<'
"$nudma" topology smartio/cluster60 --set 'cables.[126].to=sub1.p11' \
    --set 'cables.[126].from=sub0.p11' -o moved.svg
is "a switch that hangs on another" $? 0
is "nothing is lost" "$(grep -c '<rect class="t-device"' moved.svg)$(overlaps moved.svg)" 7


# ---- Mistakes ------------------------------------------------------------------------------------
out=$("$nudma" topology 2>&1); is "no scenario" $? 2
out=$("$nudma" topology numa -f svg 2>&1); is "several pictures" $? 2
has "is said" "$out" 'expected one'
out=$("$nudma" topology $switch -f pdf 2>&1); is "no such format" $? 2
has "which there are" "$out" '"text", "dot", "svg"'
out=$("$nudma" topology $switch -o x.pdf 2>&1); is "no such ending" $? 2
has "which there are, too" "$out" 'x.pdf: no format has this ending; expected .txt, .dot or .svg'
is "nothing is written" "$(ls x.pdf 2>/dev/null)" ""
"$nudma" topology $switch -f text -o x.pdf; is "unless the format is said" "$? $(head -c 7 x.pdf)" "0 server:"
mkdir -p folder.d; "$nudma" topology $switch -o folder.d/tree; is "no ending" "$? $(head -c 7 folder.d/tree)" "0 server:"
out=$("$nudma" topology examples/write_stream_swich 2>&1); is "no such scenario" $? 2
out=$("$nudma" topology $switch --set devices.sw.lanes=5 2>&1); is "a mistake in it" $? 2
out=$("$nudma" topology $switch -o none/a.svg 2>&1); is "no such folder" $? 1
has "named" "$out" '^none/a.svg: '

echo "1..$cases"
[ $failed = 0 ]
