#!/usr/bin/env bash
# One database, several processes: who makes it at the same time, who reads while another writes, who
# waits for a writer. Nobody may hear that the database is locked, and nothing may be lost.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/scenario/lib.sh
size=pcie_bench/latency_size

query() { sqlite3 -readonly -batch -cmd '.timeout 20000' "$1" "$2" 2>&1; }
run() { "$nudma" run $size --quick -q -j2 "$@"; }

# ---- Two that write, from the first moment on ---------------------------------------------------
for round in $(seq $((3 / $(stride 3)))); do
    pids=()
    for writer in 1 2 3 4; do
        run --db "same.$round.db" --seed $writer >out.$writer 2>&1 &
        pids+=($!)
    done
    status=
    for pid in "${pids[@]}"; do wait "$pid"; status="$status$?"; done
    is "four make one database, round $round" "$status$(cat out.? | grep -ciE 'lock|busy')" "00000"
    is "and all their runs are in it" \
        "$(query "same.$round.db" "select count(*), count(distinct point || seed) from run where status = 'done'")" \
        "16|16"
done
"$nudma" run $size --quick -j2 --seeds 10 --db twice.db >/dev/null 2>twice.txt &
pid=$!
"$nudma" run $size --quick -j2 --seeds 10 --db twice.db >/dev/null 2>twice2.txt
status=$?
wait $pid
is "the same points twice at once" $status$? 00
is "are there" "$(query twice.db 'select count(*), sum(n) from (select n from result
    where metric = "latency_mean_ns")')" "4|40"
made_twice() { sed -n 's/.* left out here, \([0-9]*\) were made twice$/\1/p' "$@" | awk '{ n += $1 } END { print n + 0 }'; }
is "what both made is said" "$(query twice.db 'select count(*) - 40 from run')" "$(made_twice twice.txt twice2.txt)"

# ---- Readers while one writes -------------------------------------------------------------------
run --db busy.db >/dev/null 2>&1
run --db busy.db --seed 2 --seeds 40 >writer.txt 2>&1 &
writer=$!
for reader in 1 2; do
    (
        n=0 wrong=0
        while kill -0 $writer 2>/dev/null; do
            n=$((n + 1))
            "$nudma" results --db busy.db $size >read.$reader 2>&1 &&
                "$nudma" export --db busy.db --format csv -m latency_mean_ns >>read.$reader 2>&1 &&
                [ "$(query busy.db 'select count(*) > 0 from result')" = 1 ] || wrong=$((wrong + 1))
            if [ $wrong -gt 0 ]; then cat read.$reader; break; fi
        done
        echo "$((n > 0)) $wrong" >reader.$reader
    ) &
done
wait $writer
is "a writer among readers" "$?$(grep -ciE 'lock|busy' writer.txt)" 00
wait
is "and the readers" "$(cat reader.1 reader.2 | sort -u)" "1 0"
is "lose nothing" "$(query busy.db "select count(*), count(distinct seed) from run where status = 'done'")" "164|41"
is "and break nothing" "$(query busy.db 'pragma integrity_check')" ok

# ---- One that holds the file -------------------------------------------------------------------
# A reader in the middle of a transaction: sees what was there when it began.
mkfifo go
sqlite3 -batch busy.db >held.txt 2>&1 <go &
reader=$!
exec 3>go
echo 'begin; select count(*) from run;' >&3
for _ in $(seq 100); do [ -s held.txt ] && break; sleep 0.05; done
run --db busy.db --seed 100 >/dev/null 2>&1; is "a reader in a transaction does not stop a writer" $? 0
echo 'select count(*) from run; commit; select count(*) from run;' >&3
exec 3>&-
wait $reader
is "and sees one state until it ends" "$(paste -sd ' ' held.txt)" "164 164 168"
# A writer in the middle of a transaction: the other one waits.
sqlite3 -batch busy.db >held.txt 2>&1 <go &
holder=$!
exec 3>go
echo "begin immediate; select 'held';" >&3
for _ in $(seq 100); do [ -s held.txt ] && break; sleep 0.05; done
run --db busy.db --seed 101 >waits.txt 2>&1 &
waits=$!
env --default-signal=INT "$nudma" run $size --quick -q --db busy.db --seed 102 >stopped.txt 2>&1 &
stopped=$!
for _ in $(seq 100); do [ -s waits.txt ] && [ -s stopped.txt ] && break; sleep 0.05; done
is "it says so" "$(cat waits.txt)" \
    "busy.db: another program is writing and holds it; waiting for that (Ctrl-C ends this)"
kill -INT $stopped
wait $stopped
is "and can be stopped" $? 130
is "while another writes, nothing is written" "$(query busy.db 'select count(*) from run')" 168
is "it can be read" "$("$nudma" results --db busy.db $size >/dev/null 2>&1; echo $?)" 0
echo 'commit;' >&3
exec 3>&-
wait $waits
is "then it goes on" "$?$(grep -ciE 'locked|refused' waits.txt)" 00
wait $holder
is "and stores everything" "$(query busy.db 'select count(*) from run')" 172

# ---- One that is deleted ------------------------------------------------------------------------
run --db gone.db --seeds 100 >gone.txt 2>&1 &
writer=$!
for _ in $(seq 100); do query gone.db 'select 1 from run limit 1' 2>&1 | grep -q '^1' && break; sleep 0.05; done
rm gone.db
wait $writer
is "a database that is deleted while it is written" $? 1
has "is missed" "$(cat gone.txt)" '^gone.db: was deleted, moved or replaced'

echo "1..$cases"
[ $failed = 0 ]
