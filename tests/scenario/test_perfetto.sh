#!/usr/bin/env bash
# nudma run --trace FILE.pftrace, decoded by protoc with the fields of Perfetto's published schema: a read of a borrowed
# NVMe device is one flow from the drive to memory of the host that borrows it; slices nest, counters agree with them.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/scenario/lib.sh
here=$OLDPWD/tests/scenario
sed 's/type = "device_dma";/type = "fio"; on = "borrower"; device = "ssd"; span_bytes = 131072;/
    s/warmup_us = 50;/warmup_us = 1000;/; s/duration_us = 50;/duration_us = 300;/' "$here/settings/lend.cfg" >lend.cfg
echo 'title = "x"; text = "y";' >>lend.cfg

# Into FILE.tsv: "track NUMBER ABOVE NAME", "event NS TYPE TRACK FLOW NAME-OR-VALUE". Fields that the schema does not
# have would have numbers instead of names.
decode() { # decode FILE
    protoc --decode=perfetto.protos.Trace -I "$here" pftrace.proto <"$1" >"$1.txt" || return
    awk -v OFS='\t' '
        /^packet/ { kind = type = track = name = above = flow = ""; at = "none" }
        /^ *[0-9]+[:{ ]/ { print "unknown", $0 }
        /^  timestamp:/ { at = $2 }
        /^  track_descriptor/ { kind = "track" }
        /^  track_event/ { kind = "event" }
        /^    uuid:/ { track = $2 }
        /^    parent_uuid:/ { above = $2 }
        /^    type:/ { type = substr($2, 6) }
        /^    track_uuid:/ { track = $2 }
        /^    name:/ { name = $0; gsub(/^    name: "|"$/, "", name) }
        /^    flow_ids:/ { flow = $2 }
        /^    double_counter_value:/ { name = $2 }
        /^}/ { if (kind == "track") print kind, track, above, name; else print kind, at, type, track, flow, name }
    ' "$1.txt" >"$1.tsv"
}
# What must hold of any trace; prints what does not.
faults() { # faults FILE
    grep '^unknown' "$1.tsv"
    grep '^event' "$1.tsv" | sort -s -t "$(printf '\t')" -k 4,4 -k 2,2n | cat <(grep '^track' "$1.tsv") - |
        awk -F '\t' '
        $1 == "track" { name[$2] = $4; if ($3 != "") above[$3] = 1; next }
        !($4 in name) { print "no such track", $0 }
        $2 == "none" { print "no time", $0 }
        $3 == "SLICE_BEGIN" && depth[$4]++ > 0 { print "begins within another", name[$4], $0 }
        $3 == "SLICE_END" && --depth[$4] < 0 { print "ends before it begins", name[$4], $0 }
        $3 == "COUNTER" && (name[$4] ~ /wire in use/ && $6 > 100.001 || $6 < 0) { print "counter", name[$4], $0 }
        END { for (t in depth) if (depth[t] != 0) print "does not end", name[t]
            for (t in above) if (!(t in name)) print "nothing above", t }'
}
events() { # events FILE AWK: with these names; at: name of the track
    awk -F '\t' '$1 == "track" { tracks[$2] = $4; next } { ns = $2; type = $3; at = tracks[$4]; flow = $5; name = $6 } '"$2" \
        "$1.tsv"
}

# The directions of links of which counters say another time in use than slices: each value holds until the next
# multiple of 10 us, or the end of the window or of the run. Times are rounded down to nanoseconds.
wires() { # wires FILE [LENGTH OF THE WINDOW IN NS]
    events "$1" 'at ~ / > / { last = ns > last ? ns : last; from = from == "" || ns < from ? ns : from }
        at ~ / > [^:]*$/ && type == "SLICE_BEGIN" { begin[at] = ns }
        at ~ / > [^:]*$/ && type == "SLICE_END" { s[at, ++n[at]] = begin[at]; e[at, n[at]] = ns }
        at ~ /: wire in use$/ { sub(/: wire in use$/, "", at); c[at, ++m[at]] = ns; v[at, m[at]] = name }
        function least(a, b) { return a < b ? a : b }
        END { last = '"${2:-0}"' ? least(last, from + '"${2:-0}"') : last
            for (at in n) {
                slices = counters = 0
                for (i = 1; i <= n[at]; i++) slices += least(e[at, i], last) - least(s[at, i], last)
                for (i = 1; i <= m[at]; i++)
                    counters += v[at, i] / 100 * (least((int(c[at, i] / 10000) + 1) * 10000, last) - c[at, i])
                off = counters - slices
                if (slices > 200 && (off < 0 ? -off : off) > n[at]) print at, slices, counters
                some += slices > 200 }
            if (!some) print "none is in use" }'
}

out=$("$nudma" run lend.cfg --trace all.pftrace --tlp all.tlp --trace-from measurement 2>&1)
is "exit status" $? 0
has "says what it has written" "$out" '^all.pftrace: [0-9]+ records, [0-9]+ bytes$'
decode all.pftrace
is "protoc decodes it" $? 0
is "nothing is wrong with it" "$(faults all.pftrace | head)" ""

# ---- One data block of the drive, which the lender has and the borrower uses ---------------------
block=$(events all.pftrace 'name == "DMA write, 4096 bytes" && at ~ /^ssd/ { print flow; exit }')
events all.pftrace "flow == \"$block\" && type != \"SLICE_END\" { print ns, at \": \" name }" | sort -n -s >block.txt
is "the drive sends it as 16 TLPs" "$(grep -c 'ssd.p0 > chassis.p3: MWr 256' block.txt)" 16
is "over every link of the way, and back over none" \
    "$(sed -n 's/^[0-9]* \(.*\): MWr 256$/\1/p' block.txt | awk '!seen[$0]++')" \
    "$(printf '%s\n' 'ssd.p0 > chassis.p3' 'chassis.p0 > lender.s0.rp1' 'lender.s0.rp0 > n1.p0' 'n1.p1 > middle.p1' \
        'middle.p0 > n0.p1' 'n0.p0 > borrower.s0.rp0')"
is "through these elements, in this order" \
    "$(sed -E 's/^[0-9]+ //; s/: .*//; s/ [0-9]+$//' block.txt | grep -v ' > ' | awk '!seen[$0]++' | grep -v '^ssd')" \
    "$(printf '%s\n' chassis lender.s0 'lender.s0 IOMMU' n1 middle n0 borrower.s0 'borrower.s0 IOMMU' 'borrower.s0 memory')"
is "64 lines of memory" "$(grep -c 'borrower.s0 memory [0-9]*: writes a line' block.txt)" 64
is "which is when its slice ends" "$(events all.pftrace "flow == \"$block\" && type == \"INSTANT\" { print ns }" | sort -n |
    tail -n 1)" "$(events all.pftrace "at ~ /^ssd [0-9]/ && open[at] && type == \"SLICE_END\" { print ns; exit }
        type == \"SLICE_BEGIN\" { open[at] = flow == \"$block\" }")"

# ---- All of it -----------------------------------------------------------------------------------
is "as many slices on links as TLPs" "$(events all.pftrace 'type == "SLICE_BEGIN" && at ~ / > / { n++ } END { print n }')" \
    "$(grep -vc '^#' all.tlp)"
is "every DMA transfer is on a link, too" "$(events all.pftrace 'flow != "" && at ~ / > / { on[flow] = 1 }
    name ~ /^DMA/ { dma[flow] = 1 } END { for (f in dma) if (!(f in on)) print f }')" ""
is "the wire is in use as long as its slices say" "$(wires all.pftrace)" ""
is "transfers are under way, and none in the end" \
    "$(events all.pftrace 'at == "ssd DMA transfers under way" { most = name > most ? name : most; last = name }
    END { print (most > 0), last }')" "1 0"
is "a CPU has run the program, which slept" \
    "$(events all.pftrace 'type == "SLICE_BEGIN" && at ~ /^borrower task/ && name ~ /^CPU [0-9]+$/ { n++ } END { print (n > 5) }')" 1
is "a CPU has taken interrupts" \
    "$(events all.pftrace 'type == "SLICE_BEGIN" && at ~ /^borrower CPU [0-9]+ interrupts$/ { n++ } END { print (n > 5) }')" 1

# ---- Bounds, mistakes ----------------------------------------------------------------------------
"$nudma" run lend.cfg --trace ring.pftrace --trace-from measurement --trace-limit 60kB,ring >ring.out 2>&1
decode ring.pftrace
is "a ring: nothing is wrong with what is left" "$(faults ring.pftrace | head)" ""
is "which is the end" "$(grep '^event' ring.pftrace.tsv | tail -n 1)" "$(grep '^event' all.pftrace.tsv | tail -n 1)"
"$nudma" run lend.cfg --trace short.pftrace --trace-from measurement --trace-until +40 >short.out 2>&1
decode short.pftrace
is "a window: nothing is wrong with it" "$(faults short.pftrace | head)" ""
is "40 us at most" "$(events short.pftrace 'type == "SLICE_BEGIN" { from = from == "" || ns < from ? ns : from
    to = ns > to ? ns : to } END { print (to - from > 10000 && to - from <= 40001) }')" 1
"$nudma" run pcie_bench/bandwidth_size -f 'op=write transfer_bytes=256' --trace wire.pftrace \
    --trace-from measurement --trace-until +3 >wire.out 2>&1
decode wire.pftrace
is "3 us of a loaded wire: in use as long as its slices say" "$(wires wire.pftrace 3000)" ""
is "with one value: no other ends in the window" "$(events wire.pftrace 'at ~ /: wire in use/ { print (name > 80) }')" 1
"$nudma" run device_lending/fig04_ntb_dma -f 'direction=write path=ram_to_ram transfer_bytes=65536' \
    --trace ntb.pftrace --trace-from measurement --trace-until +13 >ntb.out 2>&1
decode ntb.pftrace
is "over an interval's end" "$(wires ntb.pftrace 13000)" ""
is "a bridge is one as well if it is a device that does DMA" \
    "$(awk -F '\t' '$1 == "track" { name[$2] = $4; if ($4 == "a_ntb") print name[$3] }' ntb.pftrace.tsv | sort)" \
    "$(printf 'devices\nswitches, bridges, root complexes')"
{ cat "$here/settings/net.cfg" && echo 'title = "x"; text = "y";'; } >net.cfg
"$nudma" run net.cfg --trace net.pftrace --trace-from measurement --trace-until +150 >net.out 2>&1
decode net.pftrace
is "interrupts that come in soft interrupts: nothing is wrong" "$(faults net.pftrace | head)" ""
out=$("$nudma" run lend.cfg --trace x.perf 2>&1)
is "no such format: exit status" $? 2
is "no such format" "$out" "nudma run: --trace x.perf: expected a file NAME.pftrace, or a number of steps"

echo "1..$cases"
[ $failed = 0 ]
