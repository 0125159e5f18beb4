#!/usr/bin/env bash
# nudma topology: a tree of lines, a graph that graphviz reads, a picture that is well-formed; of one
# host and of sixty.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/scenario/lib.sh
switch=examples/write_stream_switch
# What draws sixty hosts: the sanitizers have seen all of its code in pictures of fewer.
large=$simulate
well_formed() { xmllint --noout "$1" 2>&1; }
read_by_dot() { # read_by_dot NAME FILE BOXES EDGES
    is "$1: boxes" "$(grep -cE '^ *[hdt][0-9]+ \[' "$2")" "$3"
    is "$1: edges" "$(grep -cE '[hdcw][0-9:ps]* -- [hdtcw][0-9]' "$2")" "$4"
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
  nothing plugged in: s0.rp0, s1.rp0 (each Gen3 x8); s1.rp1 (Gen3 x16)"
has "settings can be changed" \
    "$("$nudma" topology $switch --set 'cables.[1].length_m=3' --set hosts.server.dram.channels=2)" \
    'DRAM 2 x 2400 MT/s'
"$nudma" topology $switch -o file.txt; is "into a file" $? 0
is "the same" "$(cat file.txt)" "$out"
out=$("$nudma" topology numa pcie_bench/latency_size); is "several" $? 0
has "by name" "$out" '^pcie_bench/latency_size$'
is "each" "$(grep -c '^server: ' <<<"$out")" 14
"$nudma" topology $switch >/dev/full 2>full.txt; is "output that does not arrive" $? 1
is "is said as of every command" "$(cat full.txt)" \
    "nudma: cannot write the output: No space left on device"

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
has "a wire" "$out" '^  anic.e0 -- 100 Gbit/s, 2 m -- bnic.e0$'
has "a cable's length is its own" "$out" 's0.rp1 -- Gen3 x16, 0.5 m -- bnic.p0'
has "two functions" "$out" 's1.rp0 -- Gen3 x8 -- anic.p1'
"$nudma" topology ethernet.cfg --format dot -o wire.dot; is "as a graph" $? 0
read_by_dot "wire" wire.dot 4 6
"$nudma" topology ethernet.cfg --format svg -o wire.svg; is "as a picture" $? 0
is "well-formed" "$(well_formed wire.svg)" ""
has "said in words" "$(cat wire.svg)" 'anic.e0 to bnic.e0, Ethernet, 100 Gbit/s, 2 m'

# ---- Integrated ----------------------------------------------------------------------------------
cat >integrated.cfg <<'END'
hosts = { a = { @include "platforms/r730.cfg"
}; b = { @include "platforms/r730.cfg"
}; };
devices = { inner = { type = "nic.ethernet"; integrated = "a.s1"; };
            card = { @include "devices/connectx4_x16.cfg"
}; };
cables = ( { from = "b.s0.rp1"; to = "card.p0"; }, { from = "inner.e0"; to = "card.e0"; } );
workload = { type = "memory"; host = "a"; };
END
has "in words" "$("$nudma" topology integrated.cfg)" '^inner \(nic.ethernet\), integrated into a.s1$'
"$nudma" topology integrated.cfg --format dot -o integrated.dot; is "a device in a socket" $? 0
is "is no box of its own" "$(grep -cE '^ *d[0-9]+ \[' integrated.dot)" 1
has "but a cell of that socket" "$(cat integrated.dot)" \
    '<b>socket 1</b>.*<td port="d0"[^>]*><b>inner</b><br/>nic.ethernet</td></tr></table></td></tr>'
has "where its wire ends" "$(cat integrated.dot)" '^  h0:d0:s -- w0 \['
is "which dot finds" "$(dot -Tplain integrated.dot 2>&1 | grep -c '^edge')" 4
"$nudma" topology integrated.cfg --format svg -o integrated.svg; is "and draws" $? 0
is "well-formed, too" "$(well_formed integrated.svg)" ""

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
has "in a graph" "$("$nudma" topology $lending -F dot)" '<b>lender</b><br align="left"/>IOMMU off, lends gpu0, gpu1<'
has "Ethernet is dashed there" "$("$nudma" topology examples/lend_nic -F dot)" 'd0 -- w0 \[penwidth=1.5, style=dashed'

# ---- Sixty hosts ---------------------------------------------------------------------------------
{
    echo 'hosts = {'
    for i in {0..59}; do
        printf 'h%d = { @include "platforms/%s.cfg"\n};\n' "$i" "$([ $((i % 2)) = 0 ] && echo r730 || echo t430)"
    done
    echo '}; devices = { sw = { type = "pcie.switch"; downstream_ports = 2; };'
    for i in {0..59}; do
        printf 'nic%d = { @include "devices/nfp6000.cfg"\n};\n' "$i"
    done
    echo 'spare = { @include "devices/nfp6000.cfg"'
    echo '}; };'
    echo 'cables = ( { from = "h0.s0.rp0"; to = "sw.p0"; lanes = 8; }, { from = "sw.p1"; to = "nic0.p0"; lanes = 8; }'
    for i in {1..59}; do printf ', { from = "h%d.s0.rp0"; to = "nic%d.p0"; lanes = 8; }\n' "$i" "$i"; done
    echo '); workload = { type = "memory"; host = "h0"; };'
} >many.cfg
out=$("$large" topology many.cfg 2>&1); is "sixty hosts" $? 0
is "those alike take a line each" "$(wc -l <<<"$out")" $((5 + 4 + 4 + 57 + 1))
has "with what they have" "$out" '^h59: as h1, with nic59$'
has "one that is alike but for a switch is not" "$out" '^  s0.rp0 -- Gen3 x8 -- sw.p0 \(pcie.switch\)$'
has "what hangs nowhere is last" "$(tail -n 1 <<<"$out")" '^spare \(pcie.requester\), at no host$'
out=$("$large" topology many.cfg --set devices.spare.integrated=h0.s0 2>&1); is "within a root complex" $? 0
has "says in which" "$(tail -n 1 <<<"$out")" '^spare \(pcie.requester\), integrated into h0.s0$'

# ---- Graph ---------------------------------------------------------------------------------------
"$nudma" topology $switch --format dot >switch.dot; is "for Graphviz" $? 0
has "names the scenario" "$(head -n 1 switch.dot)" '^graph "examples/write_stream_switch" \{'
has "cables run from port to device" "$(cat switch.dot)" '^  h0:p1:s -- d0 \[label=" Gen3 x16 "'
read_by_dot "a switch" switch.dot 3 2
"$large" topology many.cfg -o many.dot; is "by the file's ending" $? 0
read_by_dot "sixty hosts without a switch: a table, and what is at none" many.dot 2 0

# ---- Picture -------------------------------------------------------------------------------------
shown() { grep -cE "<text[^>]*>[^<>[:alnum:]]*($1) *</text>" "$2"; } # shown REGEX FILE: pieces of text
size() { grep -oE "<svg.* $1=\"[0-9]+" "$2" | grep -oE '[0-9]+$'; } # size width|height FILE: points
"$nudma" topology $switch -F svg >switch.svg; is "a picture" $? 0
is "well-formed" "$(well_formed switch.svg)" ""
is "every box" "$(shown 'server|sw|adapter' switch.svg)" 3
is "sockets and their ports" "$(shown 'socket [01]|rp[01]' switch.svg)" 6
is "every cable, and the interconnect" "$(shown 'Gen3 x16' switch.svg) $(shown '2 x 9.6 GT/s' switch.svg)" "2 1"
has "and a description" "$(cat switch.svg)" '<desc id="topology-desc">server: 2 sockets, each with 14 cores'
is "nothing that a page must not have twice" "$(grep -oE ' id="[^"]*"' switch.svg | tr -d '\n')" \
    ' id="topology-title" id="topology-desc"'
"$large" topology many.cfg -o many.svg; is "of sixty hosts" $? 0
is "well-formed, too" "$(well_formed many.svg)" ""
is "with all of them, once" "$(grep -oE '>h[0-9]+</text>' many.svg | sort -u | wc -l) $(shown 'h[0-9]+' many.svg)" "60 60"
has "what hangs nowhere" "$(cat many.svg)" '>spare</text>'
is "what hosts of a kind consist of, once" "$(shown '[A-Z]: [0-9]+ hosts? like this, the first of them h[0-9]+' many.svg)" 3
out=$(PATH=/nowhere "$nudma" topology $switch -o none.svg 2>&1); is "without Graphviz" $? 1
is "is said once" "$out" "dot is not installed, and draws the topologies (apt-get install graphviz)"
is "and nothing is written" "$(ls none.svg 2>/dev/null)" ""
mkdir -p bin && printf '#!/bin/sh\necho broken >&2; exit 3\n' >bin/dot && chmod +x bin/dot
out=$(PATH=$PWD/bin:$PATH "$nudma" topology $switch -F svg 2>&1); is "if it fails" $? 1
has "what it says" "$out" '^dot failed: broken'

# ---- All scenarios -------------------------------------------------------------------------------
# What is not well-formed, a host that is missing, warnings of dot (edges that it lost): of many pictures at once, as
# each question is a process.
# shellcheck disable=SC2016 # $PICTURE is for that script
mkdir -p telling && printf '#!/bin/sh\nexec "%s" "$@" 2>>"$PICTURE.dot"\n' "$(command -v dot)" >telling/dot && chmod +x telling/dot
pictures=0
draw() { # draw SCENARIO [OPTION...]: $picture.svg, what was said, and the tree, for look()
    local nudma=$nudma
    case $1 in smartio/cluster60) nudma=$large ;; esac
    pictures=$((pictures + 1))
    picture=picture$pictures
    PICTURE=$picture PATH=$PWD/telling:$PATH "$nudma" topology "$@" -o $picture.svg >$picture.said 2>&1 ||
        echo "status $?" >>$picture.said
    [ -e $picture.svg ] || : >$picture.svg
    "$nudma" topology "$@" >$picture.tree || echo "no tree" >>$picture.said
}
look() { # look PICTURE...: ${faults[PICTURE]}, and ${faults[-]} of none of them
    local asked=("$@") picture fault
    declare -gA faults=()
    while IFS=$'\t' read -r picture fault; do
        faults[$picture]+=${faults[$picture]:+$'\n'}$fault
    done < <(
        xmllint --noout "${asked[@]/%/.svg}" 2>&1 | awk -v picture=- '
            /^picture[0-9]+[.]svg:/ { picture = $0; sub(/[.].*/, "", picture) }
            { print picture "\t" $0 }'
        awk '
            FNR == 1 { picture = FILENAME; sub(/\..*/, "", picture) }
            FILENAME !~ /\.(svg|tree)$/ { print picture "\t" $0; next } # said by the command, by dot
            FILENAME ~ /svg$/ { # pieces of text, with or without what stands before a name
                rest = $0
                while (match(rest, /<text[^>]*>[^<>]*<\/text>/)) {
                    text = substr(rest, RSTART, RLENGTH)
                    rest = substr(rest, RSTART + RLENGTH)
                    gsub(/^<text[^>]*>[^A-Za-z0-9]*| *<\/text>$/, "", text)
                    shown[picture, text] = 1
                }
                next
            }
            match($0, /^[A-Za-z_0-9]+(: | \()/) {
                name = substr($0, 1, RLENGTH - 2)
                if (name != "Ethernet") names[++n] = picture SUBSEP name
            }
            END {
                for (i = 1; i <= n; i++) {
                    split(names[i], part, SUBSEP)
                    if (!(names[i] in shown)) print part[1] "\tmissing: " part[2]
                }
            }' "${asked[@]/%/.said}" "${asked[@]/%/.dot}" "${asked[@]/%/.svg}" "${asked[@]/%/.tree}" ||
            printf -- '-\tawk failed\n'
    )
}
faults_of() { # faults_of SCENARIO [OPTION...]: $found, as the only one; the picture is all.svg
    draw "$@"
    look $picture
    found=${faults[$picture]:-}${faults[-]:-}
    cp $picture.svg all.svg
}
n=0 every=$(stride 12) drawn=()
for scenario in "$NUDMA_SCENARIOS"/*/*.cfg; do
    name=${scenario#"$NUDMA_SCENARIOS"/}
    name=${name%.cfg}
    case $name in platforms/* | devices/* | families/* | */claims | */whatif) continue ;; esac
    n=$((n + 1))
    [ $((n % every)) = 0 ] || continue
    draw "$name"
    drawn+=("$picture $name")
done
while read -r name set; do
    draw "$name" --set "$set"
    drawn+=("$picture $name, $set")
done <<'END'
smartio/fig22_bandwidth_test axes.config=lending
smartio/text_limits axes.topology=cluster
smartio/fig30_training axes.config=two_lenders
examples/lend_nic axes.owner=borrower
END
look "${drawn[@]%% *}"
for name in "${drawn[@]}"; do
    picture=${name%% *}
    is "${name#* }" "${faults[$picture]:-}${faults[-]:-}" ""
done

# ---- What the picture shows ----------------------------------------------------------------------
"$nudma" topology device_lending/fig04_ntb_dma -o k.svg; is "bridges back to back" $? 0
is "their cable is drawn, below them" "$("$nudma" topology device_lending/fig04_ntb_dma -F dot |
    grep -cE 'rank=sink; c[0-9]+ .*Gen[0-9] x')" 1
is "Ethernet is dashed" "$("$nudma" topology examples/lend_nic -o lend.svg; grep -c 'stroke-dasharray' lend.svg)" 2
# shellcheck disable=SC2086
"$nudma" topology $lending -o lending.svg; is "lending" $? 0
has "who borrows stands in its host" "$(cat lending.svg)" '>IOMMU on, borrows gpu0, gpu1 of lender</text>'
"$nudma" topology smartio/text_limits --set axes.topology=cluster -o limits.svg
is "many like devices are drawn once" "$(shown '17 x pcie.requester' limits.svg)" 6
is "by their names" "$(shown 'a17 ... a33' limits.svg)" 1
is "in a picture of a width that can be read" "$(($(size width limits.svg) < 1800))" 1
"$large" topology many.cfg --set hosts.h7.iommu.enabled=true -o many_iommu.svg
is "one whose IOMMU is on is of a kind of its own" "$(shown '[A-Z]: 1 host like this, the first of them h7' many_iommu.svg) $(shown 'IOMMU on' many_iommu.svg)" "1 1"

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
labels() { grep -oE '> p[0-9]: Gen3 x[0-9]+ <' "$1" | tr -d '<>' | sed 's/^ //; s/ $//' | sort | tr '\n' ','; }
quad 4 s0.rp0 s0.rp1 s1.rp0 s1.rp1 >quad.cfg
faults_of quad.cfg
is "a NIC of four functions" "$found" ""
is "each cable says which function it leads to" "$(labels all.svg)" \
    "p0: Gen3 x4,p1: Gen3 x4,p2: Gen3 x4,p3: Gen3 x4,"
faults_of ioctopus/bonding
is "of NICs beside each other the one with two says which" "$found$(labels all.svg)" \
    "p0: Gen3 x8,p1: Gen3 x8,"

# ---- Nine hosts, in pairs ------------------------------------------------------------------------
{
    echo 'hosts = {'
    for i in {0..8}; do printf 'h%d = { @include "platforms/r730.cfg"\n};\n' "$i"; done
    echo '}; devices = {'
    for i in {0..8}; do
        printf 'nic%d = { @include "devices/connectx4_x16.cfg"\n};\n' "$i"
        printf 'ntb%d = { @include "devices/pxh830.cfg"\n};\n' "$i"
    done
    echo '}; cables = ( { from = "nic0.e0"; to = "nic8.e0"; }, { from = "nic2.e0"; to = "nic6.e0"; }'
    for i in 0 2 4 6; do printf ', { from = "ntb%d.p1"; to = "ntb%d.p1"; }\n' "$i" $((i + 1)); done
    for i in {0..8}; do
        printf ', { from = "h%d.s0.rp0"; to = "nic%d.p0"; lanes = 8; }\n' "$i" "$i"
        printf ', { from = "h%d.s0.rp1"; to = "ntb%d.p0"; }\n' "$i" "$i"
    done
    echo '); workload = { type = "memory"; host = "h0"; };'
} >pairs.cfg
faults_of pairs.cfg
is "cables between many hosts" "$found" ""
is "all of them" "$(shown 'Gen3 x16' all.svg) $(shown '100 Gbit/s' all.svg) $(grep -c 'stroke-dasharray' all.svg)" "4 2 2"
is "each from host to host" "$("$nudma" topology pairs.cfg -F dot | grep -oE '^  h[0-9] -- h[0-9]' | tr -d ' \n')" \
    "h0--h1h2--h3h4--h5h6--h7h0--h8h2--h6"

# ---- A cluster -----------------------------------------------------------------------------------
"$large" topology smartio/cluster60 -o cluster.svg; is "sixty hosts below seven switches" $? 0
desc=$(grep -o '<desc.*</desc>' cluster.svg)
has "in words hosts that are alike stand once" "$desc" '>n00, n01, n02 ... n59, 60 hosts: 2 sockets, each with'
has "then what they do" "$desc" '; n02, n03, n04 ... n59, 48 hosts: IOMMU on; n10: IOMMU on, lends dev1; '
has "and cables by their kinds" "$desc" '; 60 x pcie.ntb to pcie.cluster_switch, Gen3 x8, 2 m; '
is "each host once, each switch once" "$(shown 'n[0-5][0-9]' cluster.svg) $(shown 'top|sub[0-5]' cluster.svg)" "60 7"
is "their cables, once per switch" "$(shown '10 x Gen3 x8, 2 m' cluster.svg) $(shown 'Gen3 x8, 2 m' cluster.svg)" "6 6"
is "in a picture that fits a page" "$(($(size width cluster.svg) < 1300)) $(($(size height cluster.svg) < 800))" "1 1"
is "each card once" "$(shown 'A: 6 hosts like this, the first of them n00' cluster.svg)" 1
is "and of those that borrow" "$(shown 'B: 6 hosts like this, the first of them n01' cluster.svg)" 1
is "and of the others" "$(shown 'C: 48 hosts like this, the first of them n02' cluster.svg)" 1
is "who borrows what, of each" "$(shown 'n[0-5]1: IOMMU on, borrows dev[0-5] of n[0-5]0' cluster.svg)" 6
faults_of smartio/cluster60 --set 'cables.[126].to=sub1.p11' --set 'cables.[126].from=sub0.p11'
is "a switch that hangs on another: nothing is lost" "$found$(shown 'top|sub[0-5]' all.svg)" 7

# ---- Mistakes ------------------------------------------------------------------------------------
out=$("$nudma" topology 2>&1); is "no scenario" $? 2
out=$("$nudma" topology numa -F svg 2>&1); is "several pictures" $? 2
has "is said" "$out" 'expected one'
out=$("$nudma" topology $switch -F pdf 2>&1); is "no such format" $? 2
has "which there are" "$out" '"text", "dot", "svg"'
out=$("$nudma" topology $switch -o x.pdf 2>&1); is "no such ending" $? 2
has "which there are, too" "$out" 'x.pdf: no format has this ending; expected .txt, .dot or .svg'
is "nothing is written" "$(ls x.pdf 2>/dev/null)" ""
"$nudma" topology $switch -F text -o x.pdf; is "unless the format is said" "$? $(head -c 7 x.pdf)" "0 server:"
mkdir -p folder.d; "$nudma" topology $switch -o folder.d/tree; is "no ending" "$? $(head -c 7 folder.d/tree)" "0 server:"
out=$("$nudma" topology examples/write_stream_swich 2>&1); is "no such scenario" $? 2
out=$("$nudma" topology $switch --set devices.sw.lanes=5 2>&1); is "a mistake in it" $? 2
out=$("$nudma" topology $switch -o none/a.svg 2>&1); is "no such folder" $? 2
has "named" "$out" '^nudma topology: none/a.svg: there is no folder "none"$'

# ---- How busy the links were ----------------------------------------------------------------------
"$nudma" run $switch --set measure.duration_us=20 --filter op=read -q --db busy.db >/dev/null 2>&1
out=$("$nudma" topology $switch --results --point op=read --db busy.db); is "results" $? 0
has "of each link, and who sends" "$out" 's0.rp1 -- Gen3 x16, 9[0-9.]+ % sent by server.s0.rp1 -- sw.p0'
is "a database alone means the same" "$("$nudma" topology $switch --db=busy.db --point op=read 2>&1)" "$out"
has "in the graph by colour" "$("$nudma" topology $switch --results --point op=read --db busy.db -F dot)" \
    'label=" Gen3 x16, 9[0-9.]+ % sent by sw.p1 ", weight=4, color="#b2182b", penwidth=5'
out=$("$nudma" topology $switch --results --db busy.db 2>&1); is "a point that has not run" $? 1
has "is named" "$out" 'write_stream_switch op=write: the database has no run that says how busy'
out=$("$nudma" topology $switch --point op=none 2>&1); is "no such value" $? 2

# ---- Sockets whose buses meet in a hub ------------------------------------------------------------
out=$("$nudma" topology numa/blackford_latency)
has "buses and a hub are no links between sockets" "$out" '^server: 2 sockets, interconnect by hub, 8.533 GB/s buses$'
has "without an LLC the last cache is the L2" "$out" ' 3.46 GHz, L2 2 MiB of a core, DRAM 2 x '

# ---- hwloc ---------------------------------------------------------------------------------------
"$nudma" topology $switch -F hwloc -o host.xml; is "hwloc" $? 0
is "is well-formed" "$(well_formed host.xml)" ""
is "one package a socket, a core each core" \
    "$(grep -c 'type="Package"' host.xml) $(grep -c 'type="Core"' host.xml)" "2 28"
has "caches have ways" "$(cat host.xml)" '"L2Cache" .*cache_size="262144" .*cache_associativity="8"'
has "bridges hold their buses" "$(cat host.xml)" \
    'bridge_type="1-1" depth="1" bridge_pci="0000:\[01-03\]" pci_busid="0000:00:01.0".*pci_link_speed="15.75'
"$nudma" import host.xml -o back.cfg 2>/dev/null; is "it can be imported" $? 0
has "the same sockets" "$("$nudma" topology back.cfg)" 'each socket: 14 cores, .* LLC 35 MiB'
has "the same tree" "$("$nudma" topology back.cfg)" 'sw.p1 -- Gen3 x16 -- (nic|adapter).p0'
set_l2="hosts.server.cache.l2_size=3 MiB"
"$nudma" topology $switch --set "$set_l2" --set hosts.server.cache.l2_ways=12 --set hosts.server.cache.l2_cores=2 \
    -F hwloc -o shared.xml; is "an L2 of two cores" $? 0
is "is there once for both" "$(well_formed shared.xml) $(grep -c L2Cache shared.xml) $(grep -c L1Cache shared.xml)" " 14 28"
"$nudma" import shared.xml -o shared.cfg 2>/dev/null; is "and comes back" $? 0
is "with its ways" "$(grep -oE 'l2_(ways|cores) = . value = [0-9]+' shared.cfg)" 'l2_ways = { value = 12
l2_cores = { value = 2'
out=$("$nudma" topology smartio/fig22_bandwidth_test --set axes.config=lending -F hwloc 2>&1)
is "two hosts" "$?" 2
has "are said" "$out" 'found 2 hosts, expected one, which --host names: --host [a-z]+$'
host() { "$nudma" topology smartio/fig22_bandwidth_test --set axes.config=lending -F hwloc --host "$1" 2>&1; }
is "each has its own devices" "$(for h in borrower lender; do
    host $h | sed -nE 's/.*value="(borrower|lender|gpu[0-9]|[a-z]+_ntb)".*/\1/p' | xargs; done)" \
    'borrower borrower_ntb
lender gpu0 gpu1 lender_ntb'
has "another has not" "$(host lendr)" '^--host lendr: no such host; did you mean "lender"'
host lendr >/dev/null; is "which is a mistake" $? 2
out=$("$nudma" topology $switch --host server 2>&1)
is "other formats show all" "$? $out" "2 nudma topology: --host server: --format text shows all hosts"

echo "1..$cases"
[ $failed = 0 ]
