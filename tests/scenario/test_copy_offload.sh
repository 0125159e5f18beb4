#!/usr/bin/env bash
# copy_offload and the engines of a host: settings that no engine has are found before anything runs; copies
# by CPU, I/OAT and DSA end with the right bytes, and an engine's take less of the CPU than of the clock.
set -u
cd "$(dirname "$0")/../.." || exit 1
nudma=${NUDMA:-build/nudma}
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
count=0

ok() { # ok STATUS TEXT
    count=$((count + 1))
    if [ "$1" = 0 ]; then echo "ok $count - $2"; else echo "not ok $count - $2"; fi
}
scenario() { # scenario TYPE ENGINE: a small host with that engine ("": none)
    sed -e "s/\"dma_copy\"/\"$1\"/" -e "s/\"dsa.accelerator\"/\"$2\"/" tests/scenario/settings/dsa.cfg |
        if [ -n "$2" ]; then cat; else sed '/^devices/d'; fi >"$folder/run.cfg"
}
refused() { # refused TEXT ARGUMENT...: exit status 2, and the text among its messages
    local text=$1
    shift
    "$nudma" run "$folder/run.cfg" --db "$folder/db" "$@" >"$folder/out" 2>&1
    [ $? = 2 ] && grep -qF "$text" "$folder/out"
    local status=$?
    [ $status = 0 ] || sed 's/^/# /' "$folder/out"
    return $status
}

echo 1..11
for program in dma_copy copy_offload; do
    scenario "$program" ""
    refused "expected a host with a copy engine"
    ok $? "$program: a host without an engine"
    scenario "$program" dsa.accelerator
    refused "expected at most 4, the channels of copy engines" --set programs.p.channels=5
    ok $? "$program: more channels than the host has"
    refused "expected a power of two" --set programs.p.ring=1000
    ok $? "$program: a ring of any size"
done

copies() { # copies PROGRAMS: the small host with these programs
    awk -v p="$1" '/^programs = / { print "programs = { " p " };"; next } { print }' tests/scenario/settings/copies.cfg >"$folder/run.cfg"
}
copies 'p = { type = "copy_latency"; on = "borrower"; by = "engine"; channels = 5; };'
refused "expected at most 4, the channels of copy engines"
ok $? "copy_latency: more channels than the host has"
copies 'p = { type = "copy_latency"; on = "borrower"; by = "engine"; };
    q = { type = "copy_bandwidth"; on = "borrower"; by = "engine"; cpu = 1; };'
refused "expected a host whose copy engines no other program drives"
ok $? "one program drives the engines of a host"
"$nudma" run "$folder/run.cfg" --db "$folder/db" --set programs.q.enabled=false >"$folder/out" 2>&1
ok $? "beside one that is switched off"

less() { # less ARGUMENT...: every copy is checked by the program; cpu_us is less than latency_us
    "$nudma" run "$folder/run.cfg" --db "$folder/db" --force --set measure.duration_us=10000000 "$@" \
        >"$folder/out" 2>&1 || { sed 's/^/# /' "$folder/out"; return 1; }
    "$nudma" results run --db "$folder/db" --metric latency_us --metric cpu_us |
        awk 'NF == 2 && $1 + 0 > 0 && $2 + 0 > 0 { l = $1; c = $2 } END { exit !(c > 0 && c < l) }'
}
scenario copy_offload dsa.accelerator
less --set programs.p.message_bytes=65536 && less --set programs.p.queue=shared
ok $? "DSA frees the CPU, by dedicated and shared queues"
scenario copy_offload ioat.engine
less --set programs.p.message_bytes=65536
ok $? "I/OAT frees the CPU"
