#!/usr/bin/env bash
# nudma run --pcap: what tshark reads of it. Frames are whole, checksums right, TCP's analysis finds what there
# was and no more; window, limit, ring, a full disk and Ctrl-C leave files that can be read; mistakes.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/scenario/lib.sh
settings=$OLDPWD/tests/scenario/settings
# What tshark says of each frame, a line each; one run of it for each file.
read_pcap() { # read_pcap FILE: into FILE.tsv, and what it complains of into FILE.txt
    tshark -n -r "$1" -o tcp.check_checksum:TRUE -o udp.check_checksum:TRUE -o ip.check_checksum:TRUE \
        -T fields -e frame.time_epoch -e frame.interface_name -e frame.packet_flags_direction -e frame.len \
        -e frame.cap_len -e ip.src -e ip.len -e tcp.hdr_len -e tcp.flags.syn -e tcp.checksum.status \
        -e ip.checksum.status -e eth.type -e _ws.malformed -e tcp.analysis.retransmission \
        -e tcp.analysis.lost_segment -e tcp.analysis.out_of_order -e tcp.analysis.ack_lost_segment \
        -e tcp.options.sack_perm -e tcp.options.sack_le -e tcp.options.sack_re -e tcp.ack \
        -e tcp.analysis.spurious_retransmission -e tcp.seq -e tcp.len \
        >"$1.tsv" 2>"$1.txt"
}
fields() { # fields FILE AWK: with these names for the columns
    awk -F '\t' '{ time = $1; port = $2; direction = $3; len = $4; cap = $5; src = $6; ip_len = $7; header = $8
        syn = $9; tcp_sum = $10; ip_sum = $11; type = $12; malformed = $13; again = $14; lost = $15 $17; disorder = $16
        permitted = $18; from = $19; to = $20; ack = $21; spurious = $22; seq = $23; data = $24
        bad = malformed != "" || tcp_sum == "0" || ip_sum == "0" } '"$2" "$1.tsv"
}
count() { fields "$1" "$2 { n++ } END { print n + 0 }"; } # count FILE CONDITION
times() { fields "$1" '{ print time }'; }
pcap() { # pcap SCENARIO FILE ARGUMENTS...
    local status
    "$nudma" run "$1" --pcap "$2" "${@:3}" 2>&1
    status=$?
    [ ! -e "$2" ] || read_pcap "$2"
    return $status
}

for name in net openmx; do
    { cat "$settings/$name.cfg" && echo 'title = "x"; text = "y";'; } >$name.cfg
done

# ---- One port of a TCP connection, with all bytes ------------------------------------------------
out=$(pcap net.cfg tcp.pcapng --pcap-port 'client_nic.*' --pcap-snap all)
is "exit status" $? 0
frames=$(wc -l <tcp.pcapng.tsv)
is "says how many frames" "$out" "tcp.pcapng: $frames frames, $(wc -c <tcp.pcapng) bytes"
is "more than a few" $((frames > 300)) 1
is "from the connection's first segment on" "$(fields tcp.pcapng 'NR <= 3 { print syn, src }')" \
    "$(printf '1 10.0.2.1\n1 10.0.1.1\n0 10.0.2.1')"
is "no frame is malformed, no checksum wrong" "$(count tcp.pcapng bad)" 0
is "every checksum was looked at" "$(count tcp.pcapng 'tcp_sum == "1" && ip_sum == "1"')" "$frames"
is "nothing was lost, sent twice or out of order" "$(count tcp.pcapng 'again lost disorder != ""')" 0
is "both sides permit SACK, in their SYN" "$(count tcp.pcapng 'permitted != ""'), $(count tcp.pcapng \
    'permitted != "" && syn == "1"')" "2, 2"
is "no SACK block without a loss" "$(count tcp.pcapng 'from != ""')" 0
is "lengths agree" "$(count tcp.pcapng 'len != cap || len != ip_len + 14 && len != 60')" 0
is "time does not go back" "$(fields tcp.pcapng 'NR > 1 && time < before; { before = time }')" ""
is "one interface" "$(fields tcp.pcapng '{ print port }' | sort -u)" client_nic.e0
is "directions are those of the client's port" \
    "$(fields tcp.pcapng '{ print direction, src }' | sort -u | tr '\n' ' ')" \
    "0x00000001 10.0.1.1 0x00000002 10.0.2.1 "

# ---- All wires, headers only ---------------------------------------------------------------------
pcap net.cfg wires.pcapng >/dev/null
is "each frame on both wires of the switch" "$(wc -l <wires.pcapng.tsv)" $((2 * frames))
is "headers only, with the length on the wire" "$(count wires.pcapng 'cap > 34 + header || cap > len')" 0
is "as many bytes as with payload" \
    "$(fields wires.pcapng 'port == "client_nic.e0" || port == "switch.e1" { print len }' | sort | uniq -c)" \
    "$(fields tcp.pcapng '{ print len }' | sort | uniq -c)"
is "no malformed frame" "$(count wires.pcapng bad)" 0

# ---- Standard output has the capture alone -------------------------------------------------------
"$nudma" run net.cfg --pcap - --pcap-port 'client_nic.*' --pcap-snap all 2>said.txt | cat >pipe.pcapng
is "a capture in a pipe" "$(cmp pipe.pcapng tcp.pcapng && cat said.txt)" \
    "/dev/stdout: $frames frames, $(wc -c <tcp.pcapng) bytes"
"$nudma" run net.cfg --pcap - --pcap-port 'client_nic.*' --pcap-snap all >file.pcapng 2>said.txt
is "in a file that it leads to" "$(cmp file.pcapng tcp.pcapng && cat said.txt)" \
    "/dev/stdout: $frames frames, $(wc -c <tcp.pcapng) bytes"
"$nudma" run net.cfg --pcap /dev/fd/1 --pcap-port 'client_nic.*' --pcap-snap all 2>/dev/null | cat >pipe.pcapng
is "by another name" "$(cmp pipe.pcapng tcp.pcapng && echo alike)" alike

# ---- Frames that are lost are lost to tshark, too ------------------------------------------------
sed 's/length_m = 1.0;/loss_ratio = 0.002;/; s/duration_us = 150/duration_us = 600/' net.cfg >loss.cfg
pcap loss.cfg loss.pcapng --pcap-port client_nic.e0 --pcap-snap 100 >/dev/null
is "retransmissions are found" $(($(count loss.pcapng 'again != ""') > 0)) 1
# After a single duplicate ACK, as RACK does it, tshark takes a repetition for a segment that was overtaken.
is "segments that went out twice are what it finds, and no others" "$(fields loss.pcapng 'data == "0" || data == "" { next }
    { twice = src SUBSEP seq in sent; sent[src, seq] = 1; found += twice; wrong += twice != (again disorder != "") }
    END { print (found > 0), wrong + 0 }')" "1 0"
is "none that was not needed" "$(count loss.pcapng 'spurious != ""')" 0
is "SACK blocks say what came behind a hole" "$(fields loss.pcapng 'from != "" { n++; k = split(from, f, ","); split(to, t, ",")
    for (i = 1; i <= k; i++) bad_block += !(ack + 0 < f[i] + 0 && f[i] + 0 < t[i] + 0); many += k > 3 }
    END { print (n > 0), bad_block + 0, many + 0 }')" "1 0 0"
is "100 bytes of each" "$(fields loss.pcapng '{ print cap }' | sort -n | tail -n 1)" 100
is "no malformed frame" "$(count loss.pcapng bad)" 0

# ---- Open-MX -------------------------------------------------------------------------------------
pcap openmx.cfg mx.pcapng --pcap-snap all >/dev/null
is "frames of Open-MX" $(($(count mx.pcapng 'type == "0x86df"') > 100)) 1
is "nothing else, and none short" "$(count mx.pcapng 'type != "0x86df" || len < 60')" 0
is "both ends of the wire" "$(fields mx.pcapng '{ print port }' | sort -u | tr '\n' ' ')" \
    "client_nic.e0 nic.e0 "

# ---- Bounds --------------------------------------------------------------------------------------
mapfile -t all < <(times tcp.pcapng)
from=${all[100]} until=${all[200]}
us() { awk -v s="$1" 'BEGIN { printf "%.3f", s * 1e6 }'; }
pcap net.cfg window.pcapng --pcap-port client_nic.e0 --trace-from "$(us "$from")" --trace-until "$(us "$until")" \
    >/dev/null
is "a window" "$(times window.pcapng | sed -n '2,99p')" "$(printf '%s\n' "${all[@]}" | sed -n '102,199p')"
out=$(pcap net.cfg limit.pcapng --pcap-port client_nic.e0 --trace-limit 20kB)
has "says that the limit was reached" "$out" 'the limit of 20000 bytes was reached, and the run ended'
is "the first records" "$(times limit.pcapng)" "$(printf '%s\n' "${all[@]}" | head -n "$(times limit.pcapng | wc -l)")"
is "no more than the limit" $(($(wc -c <limit.pcapng) <= 20000 && $(wc -c <limit.pcapng) > 19500)) 1
out=$(pcap net.cfg ring.pcapng --pcap-port client_nic.e0 --trace-limit 20kB,ring)
has "says so of a ring" "$out" 'the first [0-9]+ frames are gone'
is "the last records" "$(times ring.pcapng)" "$(printf '%s\n' "${all[@]}" | tail -n "$(times ring.pcapng | wc -l)")"
is "no more than the limit" $(($(wc -c <ring.pcapng) <= 20000 && $(wc -c <ring.pcapng) > 19000)) 1
pcap net.cfg measured.pcapng --pcap-port client_nic.e0 --trace-from measurement --trace-until +100 >/dev/null
is "100 us of the measurement, which begins later" "$(times measured.pcapng |
    awk -v before="${all[0]}" 'NR == 1 { from = $1 } END { print (from > before), ($1 < from + 0.0001) }')" "1 1"

out=$(trap '' XFSZ; ulimit -f 256; pcap net.cfg full.pcapng --pcap-snap all; echo "status $?")
left=$(wc -l <full.pcapng.tsv)
is "a full disk: one message, exit status 1, and what is there can be read" "$out" \
    "$(printf 'nudma run: full.pcapng: File too large; it ends after %d frames\nstatus 1' "$left")"
is "not nothing" $((left > 10)) 1

sed 's/duration_us = 150/duration_us = 100000000/' net.cfg >long.cfg
setsid bash -c 'trap - INT; exec "$@"' bash "$nudma" run long.cfg --pcap long.pcapng >/dev/null 2>long.txt &
pid=$!
for _ in $(seq 200); do [ ! -s long.pcapng ] || [ "$(wc -c <long.pcapng)" -lt 100000 ] || break; sleep 0.05; done
kill -INT -- -$pid
wait $pid
is "Ctrl-C: exit status" $? 130
has "Ctrl-C is said" "$(cat long.txt)" "interrupted; the trace has what happened until then"
read_pcap long.pcapng
is "no malformed frame" "$(count long.pcapng bad)" 0
is "readable" "$(grep -ci 'cut short\|damaged' long.pcapng.txt)" 0

# ---- Mistakes ------------------------------------------------------------------------------------
mistake() { # mistake NAME PATTERN ARGUMENTS...
    local found
    found=$("$nudma" run "${@:3}" 2>&1)
    is "$1: exit status" $? 2
    has "$1" "$found" "$2"
}
mistake "many points" "--pcap: 33 points, expected one: --filter chooses it, --filter 'buffer_bytes=64 config=local'" \
    ioctopus/fig06_tcp_rx --pcap x.pcapng
mistake "many seeds" "--pcap: 3 seeds, expected one" net.cfg --pcap x.pcapng --seeds 3
mistake "no such port" "--pcap-port 'nix': no Ethernet port matches; there are nic.e0, switch.e0" net.cfg \
    --pcap x.pcapng --pcap-port nix
mistake "no Ethernet" "the scenario has no Ethernet cables" pcie_bench/latency_size \
    -f 'op=read transfer_bytes=64' --pcap x.pcapng
mistake "half a request" "--pcap-snap: expected --pcap FILE as well" net.cfg --pcap-snap all
mistake "a time" "--trace-until soon: expected a simulated time" net.cfg --pcap x.pcapng --trace-until soon
mistake "a limit" "--trace-limit 3,rung: expected a size" net.cfg --pcap x.pcapng --trace-limit 3,rung
mistake "a snap length" "--pcap-snap 0: expected headers, all, or 1..262144 bytes" net.cfg --pcap x.pcapng --pcap-snap 0
mistake "no time" "--trace-until [+]0: expected a time of more than 0" net.cfg --pcap x.pcapng --trace-until +0
mistake "the scenario itself" "--pcap ./net.cfg: found the scenario, expected another file" net.cfg --pcap ./net.cfg
mistake "one file twice" "--tlp ./x.pcapng: expected another file than that of --pcap" net.cfg --pcap x.pcapng \
    --tlp ./x.pcapng
mistake "one file twice, the third" "--trace x.pftrace: expected another file than that of --pcap" net.cfg \
    --pcap x.pftrace --trace x.pftrace
mistake "a file and steps" "--pcap and --trace N: expected one of them" net.cfg --pcap x.pcapng --trace 5
mistake "a file and an address" "--tlp and --trace-address: expected one of them" net.cfg --tlp x.pcapng --trace-address
mistake "an address and steps" "--trace-address and --trace N: expected one of them" net.cfg --trace-address --trace 5
mistake "what is stored" "--tlp: makes one run and stores nothing, expected no --force" net.cfg --tlp x.tlp --force
mistake "a limit of workers" "--pcap: makes one run and stores nothing, expected no --timeout" net.cfg --pcap x.pcapng --timeout 9
mistake "their memory" "--trace-address: .* expected no --run-memory" net.cfg --trace-address --run-memory 1GiB
mistake "a database" "--tlp: makes one run and stores nothing, expected no --db" net.cfg --tlp x.tlp --db x.db
mistake "of steps" "--trace N: .* expected no --db" net.cfg --trace 5 --db x.db
mistake "of a followed address" "--trace-address: .* expected no --db" net.cfg --trace-address --db x.db
mistake "seeds of steps" "--trace N: .* expected no --seeds" net.cfg --trace 5 --seeds 3
mistake "an empty window" "--trace-from 9 is after --trace-until 3" net.cfg --pcap x.pcapng --trace-from 9 --trace-until 3
is "nothing was written" "$(ls x.pcapng 2>/dev/null)" ""
out=$("$nudma" run net.cfg --pcap early.pcapng --trace-from measurement --trace-until 5 2>&1)
is "a window that ends before the measurement: exit status" $? 1
has "a window that ends before the measurement" "$out" "--trace-until 5 is before the measurement, nothing was recorded"
"$nudma" run net.cfg --pcap later.pcapng --trace-from measurement --trace-until 1s >/dev/null 2>&1
is "one that ends after it: exit status" $? 0
out=$(pcap net.cfg nowhere/x.pcapng)
is "no such folder: exit status" $? 1
is "no such folder" "$out" "nudma run: nowhere/x.pcapng: No such file or directory"

# ---- Replay --------------------------------------------------------------------------------------
# The frames of the first connection's client, as they were recorded, are sent again.
replay() { # replay FILE SETTINGS: into FILE.cfg
    sed "s/^programs = .*/programs = { p = { type = \"pcap_replay\"; file = \"tcp.pcapng\"; $2 }; };/
        s/^measure = .*/measure = { warmup_us = 0; duration_us = 5000; };/" net.cfg >"$1.cfg"
}
value() { query replay.db "select mean from result where scenario = '$1' and metric = '$2'"; }
replay again 'source_ip = "10.0.2.1";'
cp tcp.pcapng kept.pcapng
has "no capture over the one that is replayed" "$(pcap again.cfg tcp.pcapng)" \
    '^tcp.pcapng: a setting names this file, expected another one$'
is "which stays" "$(cmp tcp.pcapng kept.pcapng && echo same)" same
n=$(count tcp.pcapng 'src == "10.0.2.1"')
"$simulate" run again.cfg --db replay.db -q >/dev/null 2>&1; is "a capture is replayed" $? 0
is "as many frames as it has of this source" "$(value again replayed_frames)" "$n.0"
pcap again.cfg again.pcapng --pcap-port 'client_nic.*' >/dev/null
is "each with its length, in order" "$(fields again.pcapng 'src == "10.0.2.1" { print len }')" \
    "$(fields tcp.pcapng 'src == "10.0.2.1" { print len }')"
is "none malformed" "$(count again.pcapng bad)" 0
last() { fields "$1" 'src == "10.0.2.1" { if (!n++) first = time; last = time } END { printf "%.0f", (last - first) * 1e6 }'; }
is "in as much time, within a tenth" "$(awk -v a="$(last again.pcapng)" -v b="$(last tcp.pcapng)" 'BEGIN { print (a >= b && a < 1.1 * b) }')" 1
replay slow 'source_ip = "10.0.2.1"; speed_ratio = 0.5;'
pcap slow.cfg slow.pcapng --pcap-port 'client_nic.*' >/dev/null
is "or in twice that" "$(awk -v a="$(last slow.pcapng)" -v b="$(last tcp.pcapng)" 'BEGIN { print (a >= 2 * b - 2 && a < 2.2 * b) }')" 1
tshark -r tcp.pcapng -F pcap -w tcp.pcap 2>/dev/null
sed 's/tcp.pcapng/tcp.pcap/' again.cfg >old.cfg
"$simulate" run old.cfg --db replay.db -q >/dev/null 2>&1; is "pcap of microseconds, too" "$? $(value old replayed_frames)" "0 $n.0"
replay turns 'source_ip = "10.0.2.1"; repeat = true; core = 1; socket = 1; interface = "pf1"; to_interface = "pf1";'
"$simulate" run turns.cfg --db replay.db -q --set measure.sample_interval_us=500 >/dev/null 2>&1
is "again and again, by other functions" "$? $(value turns replayed_frames | awk -v n="$n" '{ print ($1 > 2 * n) }')" "0 1"
is "its rate over time, of which the metric is the mean" "$(query replay.db "select count(*), abs(avg(value) /
    (select mean from result where scenario = 'turns' and metric = name) - 1) < 1e-9 from series where name = 'p.throughput_gbit_s'")" "10|1"
has "which received them" "$(value turns nic.pf1_rx_packets) $(value turns nic.pf0_rx_packets)" '^[1-9][0-9.]+ 0.0$'
replay away 'source_ip = "10.0.2.1"; to = "";'
"$simulate" run away.cfg --db replay.db -q >/dev/null 2>&1
is "to nobody" "$? $(value away nic.pf0_rx_packets)" "0 0.0"
replay back 'source_ip = "10.0.1.1"; host = "server"; to = "client";'
"$simulate" run back.cfg --db replay.db -q >/dev/null 2>&1
is "the other side" "$? $(value back replayed_frames)" "0 $(count tcp.pcapng 'src == "10.0.1.1"').0"
no_replay() { # no_replay NAME SETTINGS PATTERN
    local out
    replay wrong "$2"
    out=$("$nudma" run wrong.cfg --db replay.db 2>&1)
    is "$1" $? 2
    has "$1: says what" "$out" "$3"
}
replay none ''; sed -i 's/tcp.pcapng/none.pcap/' none.cfg
has "no such capture" "$("$nudma" run none.cfg 2>&1)" 'programs.p.file: .*none.pcap'
sed -i 's/file = "tcp.pcapng"; //' again.cfg
has "none named" "$("$nudma" run again.cfg 2>&1)" 'expected a capture, pcap or pcapng'
no_replay "no address" 'source_ip = "10.0.2";' 'source_ip: .*expected an IPv4 address'
no_replay "of nobody" 'source_ip = "10.0.2.9";' 'expected a capture with frames of source_ip 10.0.2.9'
no_replay "to itself" 'to = "client";' 'expected another host than'
head -c 5000 tcp.pcapng >cut.pcapng
replay cut ''; sed -i 's/tcp.pcapng/cut.pcapng/' cut.cfg
has "a damaged one" "$("$nudma" run cut.cfg 2>&1)" 'expected a capture, pcap or pcapng: byte [0-9]+: the file ends within a block'
replay mtu ''; sed -i 's/device = "client_nic";/& mtu_bytes = 1000;/' mtu.cfg
has "frames longer than the MTU" "$("$nudma" run mtu.cfg 2>&1)" 'expected frames of at most 1014 bytes, .*one has 1514'

# ---- Large files ---------------------------------------------------------------------------------
large() { "$simulate" run ioctopus/fig06_tcp_rx -f 'config=remote buffer_bytes=65536' --trace-until 75000 "$@" 2>large.txt >large.out; }
large --pcap large.pcapng --pcap-snap all
is "a large file says how to have less" "$(cat large.txt)" "nudma run: large.pcapng has more than 100 MB, and the run goes on. \
For less: an earlier --trace-until, --pcap-port 'NIC.*' (frames of some ports), --pcap-snap headers, --trace-limit 100MB (the run ends there)"
has "and what it has in the end" "$(cat large.out)" '^large.pcapng: [0-9]+ frames, [0-9]{9} bytes \(1[0-9]{2} MB\)$'
rm large.pcapng
large --pcap /dev/null --pcap-snap all
is "where nothing is kept, nothing is said" "$(cat large.txt)" ""

echo "1..$cases"
[ $failed = 0 ]
