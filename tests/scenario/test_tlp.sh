#!/usr/bin/env bash
# nudma run --tlp: lines hang together (byte enables, tags, completions and what they answer), the summary is
# their sum, filters leave what they say, bounds hold, mistakes have messages.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/scenario/lib.sh
settings=$OLDPWD/tests/scenario/settings
{ cat "$settings/net.cfg" && echo 'title = "x"; text = "y";'; } >net.cfg
tlp() { "$nudma" run "${@:2}" --tlp "$1" 2>&1; } # tlp FILE ARGUMENTS...
# With these names for the columns.
lines() { # lines FILE AWK
    awk '!/^#/ { sent = $1; arrived = $2; link = $3; way = $4; type = $5; requester = $6; completer = $7; tag = $8
        address = $9; bytes = $10; enables = $11; status = $13; request = $14; request_address = $15; after = $16 }
        !/^#/ '"$2" "$1"
}
count() { lines "$1" "&& ($2)" | wc -l; }

# ---- One read after a write, in full -------------------------------------------------------------
tlp b.tlp pcie_bench/latency_size -f op=write_read -s axes.transfer_bytes=6 --trace-from measurement \
    --trace-until +40 >b.txt
is "columns and their meaning: 6 bytes from an adapter behind one link" \
    "$(lines b.tlp '&& NR < 40 { printf "%s %s %s %s %s %s\n", way, type, requester, enables, status, request }' | sort -u)" \
    "$(printf '%s\n' '< MRd 01:00.0 f/3 - -' '< MWr 01:00.0 f/3 - -' '> CplD 01:00.0 - SC MRd')"
is "a completion has the tag, the low address bits and the time of its request" \
    "$(lines b.tlp '&& type == "MRd" { at[tag] = address; from[tag] = sent }
        type == "CplD" && (at[tag] != request_address || (arrived - from[tag]) * 1000 - after > 0.002)')" ""
has "the summary" "$(cat b.txt)" '^server.s0.rp0-nfp.p0 +< MWr +[0-9]+ +[0-9]+ +[0-9]+$'
is "it is at the end of the file, too" "$(sed -n '/^link/,$p' b.txt)" "$(sed -n '/^# link/,$ s/^# //p' b.tlp)"

# ---- Everything of two hosts with NICs -----------------------------------------------------------
tlp net.tlp net.cfg >net.txt
n=$(count net.tlp 1)
is "says how many" "$(head -n 1 net.txt)" "net.tlp: $n TLPs, $(wc -c <net.tlp) bytes"
is "the summary is the sum of the lines" \
    "$(lines net.tlp '{ n[link " " way " " type]++; b[link " " way " " type] += type ~ /MRd|CfgRd|^Cpl$/ ? 0 : bytes }
        END { for (k in n) print k, n[k], b[k] }' | sort)" \
    "$(sed '1,/^link/d' net.txt | awk '{ print $1, $2, $3, $4, $6 }' | sort)"
is "every completion has its request" "$(count net.tlp 'type ~ /^Cpl/ && request == "-"')" 0
is "and nothing else has one" "$(count net.tlp 'type !~ /^Cpl/ && (request != "-" || status != "-")')" 0
is "they arrive in the order of the file" "$(lines net.tlp '&& arrived < before; { before = arrived }')" ""
is "a read is answered whole" "$(lines net.tlp '&& type == "MRd" { due[link requester tag] = bytes }
    type == "CplD" && request == "MRd" { due[link requester tag] -= bytes }
    END { for (k in due) if (due[k] != 0) print k, due[k] }')" ""
is "byte enables are as many as bytes" "$(lines net.tlp '&& enables != "-" {
    split("0 1 1 2 1 2 2 3 1 2 2 3 2 3 3 4", ones, " "); split(enables, e, "/"); hex = "0123456789abcdef"
    first = ones[index(hex, e[1])]; last = ones[index(hex, e[2])]
    if (bytes <= 8 ? first + last != bytes : (bytes - first - last) % 4) print }')" ""
is "two bytes of the command register, four of a BAR" \
    "$(lines net.tlp '&& type == "CfgWr0" && address ~ /0x(4|10)$/ { print address, bytes, enables }' | sort -u)" \
    "$(printf '0x10 4 f/0\n0x4 2 3/0')"
is "no request goes over 4 KiB" "$(lines net.tlp '&& type ~ /^M(Rd|Wr)$/ {
    digits = substr("000" substr(address, 3), length(address) - 1); in_page = 0
    for (i = 1; i <= 3; i++) in_page = 16 * in_page + index("0123456789abcdef", substr(digits, i, 1)) - 1
    most = in_page > most ? in_page : most
    if (bytes > 4096 - in_page) print } END { if (most < 2048) print "none was looked at" }')" ""

# ---- Filters, bounds -----------------------------------------------------------------------------
only() { tlp f.tlp net.cfg --tlp-filter "$1" >/dev/null && lines f.tlp '{ print }'; }
is "by type" "$(only 'type=MRd,Cpl')" "$(lines net.tlp '&& type ~ /^(MRd|Cpl)$/')"
is "by link and direction: what goes out of a NIC" "$(only 'from=nic.* type=MWr')" \
    "$(lines net.tlp '&& link ~ /-nic\.p/ && way == "<" && type == "MWr"')"
is "by requester, its completions as well" "$(only 'link=client.s0.* requester=01:00.*')" \
    "$(lines net.tlp '&& link ~ /^client.s0/ && requester ~ /^01:00/')"
tlp w.tlp net.cfg --trace-from 2700 --trace-until 2800 >/dev/null
is "a window" "$(lines w.tlp '{ print }')" "$(lines net.tlp '&& sent >= 2700 && arrived <= 2800')"
out=$(tlp r.tlp net.cfg --trace-limit 50kB,ring)
has "a ring" "$out" 'the first [0-9]+ TLPs are gone'
is "keeps the last" "$(lines r.tlp '{ print }')" "$(lines net.tlp '{ print }' | tail -n "$(count r.tlp 1)")"
"$nudma" run net.cfg --tlp rest.tlp --trace-from 2700 >/dev/null
for until in +18446744073709 +18446744073709551615ps; do # of all time that can be said
    "$nudma" run net.cfg --tlp long.tlp --trace-from 2700 --trace-until $until >/dev/null; is "$until" $? 0
    is "is to the end of the run" "$(cksum <long.tlp)" "$(cksum <rest.tlp)"
done
is "both files of one run" "$(tlp both.tlp net.cfg --pcap both.pcapng | grep -cE '^both.(tlp|pcapng): [0-9]+ ')" 2
is "the same TLPs" "$(lines both.tlp '{ print }' | cksum)" "$(lines net.tlp '{ print }' | cksum)"

mistake() { # mistake NAME PATTERN FILTER
    has "$1" "$(tlp x.tlp net.cfg --tlp-filter "$3"; echo "status $?")" "$2"
    is "$1: exit status" "$(tlp x.tlp net.cfg --tlp-filter "$3" >/dev/null; echo $?)" 2
}
mistake "a type" 'type MRD: did you mean "MRd"\?' type=MRD
mistake "a key" 'there is no key lnk: did you mean "link"\?' lnk=nic
mistake "no key" "'nic': expected KEY=VALUE" nic
mistake "an empty value" "'link=,x': expected KEY=VALUE" link=,x
mistake "an empty value at the end" "'type=MRd,': expected KEY=VALUE" type=MRd,
mistake "a key twice" 'link stands there twice: expected one term' 'link=nic.* link=server.*'
mistake "a list of types twice" 'type stands there twice: expected one term' 'type=MRd type=MWr'
mistake "no link" "no link matches link, from and to; there are server.s0.rp0-nic.p0, server.s1.rp0-nic.p1" link=disk
{ cat "$settings/memory.cfg" && echo 'title = "x"; text = "y";'; } >memory.cfg
has "no links" "$(tlp x.tlp memory.cfg)" "--tlp: the scenario has no PCIe links"
is "nothing was written" "$(ls x.tlp 2>/dev/null)" ""
has "many points" "$(tlp x.tlp pcie_bench/latency_size)" "--tlp: [0-9]+ points, expected one"

# ---- Nothing to record, nowhere to write ----------------------------------------------------------
point=(pcie_bench/latency_size --filter 'op=read transfer_bytes=64')
out=$("$nudma" run "${point[@]}" --tlp late.tlp --trace-from 9999999 2>&1); is "a window after the end" $? 1
has "is said" "$out" '^nudma run: --trace-from 9999999 is after the end of the run, at [0-9.]+ us: nothing was recorded'
out=$( (ulimit -f 0; "$nudma" run "${point[@]}" --tlp full.tlp 2>&1) | cat); has "a full disk" "$out" '^nudma run: full.tlp: File too large'
is "leaves no half of a head" "$([ -e full.tlp ] || echo none)" none
"$nudma" run "${point[@]}" --tlp /dev/full >/dev/null 2>&1
"$nudma" run "${point[@]}" --tlp short.tlp --trace-until +1 >/dev/null 2>&1
is "- is standard output" "$("$nudma" run "${point[@]}" --tlp - --trace-until +1 2>/dev/null | grep -cE '^ *[0-9]+\.')" \
    "$(grep -cE '^ *[0-9]+\.' short.tlp)"
is "a device stays" "$([ -c /dev/full ] && echo there)" there

echo "1..$cases"
[ $failed = 0 ]
