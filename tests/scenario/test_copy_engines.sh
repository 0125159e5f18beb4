#!/usr/bin/env bash
# The copy engines of a host and the programs that use them: settings that no engine has are found before
# anything runs; copies by I/OAT and DSA take less of the CPU than of the clock; programs share engines.
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

echo 1..14
for program in dma_copy 'copy_latency"; by = "engine'; do
    scenario "$program" ""
    refused "expected a host with a copy engine"
    ok $? "${program%%\"*}: a host without an engine"
    scenario "$program" dsa.accelerator
    refused "channels: found 5 (an integer), expected at most 4, the channels of copy engines" --set programs.p.channels=5
    ok $? "${program%%\"*}: more channels than the host has"
    refused "queues: found 9 (an integer), expected at most 8, the work_queues" --set programs.p.queues=9
    ok $? "${program%%\"*}: more dedicated queues than an accelerator has"
    refused "expected a power of two" --set programs.p.ring=1000
    ok $? "${program%%\"*}: a ring of any size"
done

copies() { # copies PROGRAMS: the small host with these programs
    awk -v p="$1" '/^programs = / { print "programs = { " p " };"; next } { print }' tests/scenario/settings/copies.cfg >"$folder/run.cfg"
}
runs() { # runs ARGUMENT...: to the end; every copy is checked by its program
    "$nudma" run "$folder/run.cfg" --db "$folder/db" --force "$@" >"$folder/out" 2>&1 && return
    sed 's/^/# /' "$folder/out"
    return 1
}
copies 'p = { type = "copy_mixed"; on = "borrower"; measured_us = 300; };
    q = { type = "copy_latency"; on = "borrower"; by = "engine"; cpu = 1; };
    r = { type = "dma_copy"; on = "borrower"; cpu = 1; buffer_bytes = 262144; };'
runs && runs --set programs.r.enabled=false &&
    runs --set devices.engine.type=dsa.accelerator &&
    runs --set programs.p.ring=16 --set programs.q.ring=16 --set programs.r.ring=16
ok $? "three programs share the engines of a host, also by small rings"
refused 'ring: found 64 (an integer), expected the same as of program "p"' --set programs.r.ring=64
ok $? "with one driver's settings"
runs --set programs.r.ring=64 --set programs.r.enabled=false
ok $? "those of one that is switched off do not matter"

of_copy() { # of_copy CONDITION ARGUMENT...: what holds of latency l and CPU's time c
    local condition=$1
    shift
    runs "$@" &&
        "$nudma" results run --db "$folder/db" --metric latency_us --metric cpu_us |
        awk 'NF == 2 && $1 + 0 > 0 && $2 + 0 > 0 { l = $1; c = $2 } END { exit !(c > 0 && '"$condition"') }'
}
copies 'p = { type = "copy_overlap"; on = "borrower"; by = "engine"; };'
of_copy "c < l" --set devices.engine.type=dsa.accelerator &&
    of_copy "c < l" --set devices.engine.type=dsa.accelerator --set programs.p.queue=shared --set programs.p.cache=in_cache
ok $? "DSA frees the CPU, by dedicated and shared queues"
of_copy "c < l" && of_copy "c < l" --set programs.p.cache=in_no_cache
ok $? "I/OAT frees the CPU"
of_copy "c == l" --set programs.p.by=cpu --set programs.p.cache=in_no_cache --set programs.p.message_bytes=1024
ok $? "memcpy() does not"
