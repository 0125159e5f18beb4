#!/usr/bin/env bash
# Databases of shards joined are that of the whole campaign; nothing twice, nothing half.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/scenario/lib.sh
size=pcie_bench/latency_size

# Everything that has to be the same, whatever the ids.
dump() {
    query "$1" "
        select 'run', scenario, point, seed, status, error, version, config_sha256, sim_ps, events,
            fingerprint from run order by 2, 3, 4;
        select 'param', scenario, point, seed, name, value, unit, param.provenance
            from param join run on run.id = run_id order by 2, 3, 4, 5;
        select 'metric', scenario, point, seed, name, unit, printf('%.17g', value)
            from metric join run on run.id = run_id order by 2, 3, 4, 5;
        select 'histogram', scenario, point, seed, name, unit, lo, hi, count
            from histogram join run on run.id = run_id order by 2, 3, 4, 5, lo;
        select 'series', scenario, point, seed, name, unit, t_ps, value
            from series join run on run.id = run_id order by 2, 3, 4, 5, t_ps;
        select 'result', scenario, point, metric, unit, printf('%.12g', mean),
            printf('%.9g', ci95), n from result order by 2, 3, 4"
}

# ---- Shards --------------------------------------------------------------------------------------
few=("$size" pcie_bench/latency_numa --seeds 2 -q)
"$simulate" run "${few[@]}" --db whole.db >/dev/null
for i in 1 2 3; do "$simulate" run "${few[@]}" --shard $i/3 --db part$i.db >/dev/null; done
out=$("$nudma" merge joined.db part1.db part2.db part3.db); is "joining shards" $? 0
has "says what came" "$out" '^part2.db: 2[0-9] runs joined, 0 were there already$'
dump whole.db >whole.txt
is "there is something to compare" "$(cut -d'|' -f1 whole.txt | sort -u | tr '\n' ' ')" \
    "histogram metric param result run "
is "gives the whole campaign" "$(dump joined.db)" "$(cat whole.txt)"
is "the database is whole" "$(query joined.db 'pragma integrity_check')" ok
out=$("$nudma" merge joined.db part3.db part1.db whole.db); is "the same again" $? 0
has "joins nothing" "$out" '^whole.db: 0 runs joined, 64 were there already$'
is "and changes nothing" "$(dump joined.db)" "$(cat whole.txt)"
out=$("$nudma" run "${few[@]}" --db joined.db 2>&1 >table.txt)
is "nothing is left to run" "$(query joined.db 'select count(*) from run')" 64
"$nudma" run "${few[@]}" --db whole.db >table2.txt
is "tables are the same" "$(cat table.txt)" "$(cat table2.txt)"

# ---- What is twice, failed, or of another version -----------------------------------------------
cp part1.db forced.db
"$simulate" run "${few[@]}" --shard 1/3 --force --db forced.db >/dev/null
"$nudma" run $size --filter 'op=read transfer_bytes=64' --timeout 0.2 --db forced.db -q \
    --set measure.transactions=2000000000 --set measure.duration_us=900000000 >/dev/null 2>&1
"$nudma" merge once.db forced.db >/dev/null
once="select count(*), count(distinct scenario || point || seed) from run where status = 'done'"
is "runs that are there twice come once" "$(query once.db "$once")" "$(query part1.db "$once")"
failures="select point, error, started_utc from run where status = 'failed'"
is "failed ones come" "$(query once.db "$failures")" "$(query forced.db "$failures")"
has "failed ones are there" "$(query once.db "$failures")" 'of --timeout'
"$nudma" merge once.db forced.db >/dev/null
is "once" "$(query once.db 'select count(*) from run where status = "failed"')" 1

# A run that has been done since is no failure any more, in whatever order the two are joined.
point=("$size" --filter 'op=read transfer_bytes=64' -q)
"$nudma" run "${point[@]}" --timeout 0.2 --db before.db \
    --set measure.transactions=2000000000 --set measure.duration_us=900000000 >/dev/null 2>&1
sqlite3 before.db "update run_row set started_utc = started_utc - 60"
"$simulate" run "${point[@]}" --db since.db >/dev/null
for order in "before.db since.db" "since.db before.db"; do
    rm -f both.db
    # shellcheck disable=SC2086 # two files
    "$nudma" merge both.db $order >/dev/null
    is "$order" "$("$nudma" results --db both.db | grep -c '^failed:')" 0
done
sqlite3 before.db "update run_row set started_utc = started_utc + 120"
rm both.db; "$nudma" merge both.db since.db before.db >/dev/null
is "one that came after it is" "$("$nudma" results --db both.db | grep -c '^failed:')" 1

older() { # older DATABASE SECONDS: as if another version had made it so long ago
    sqlite3 "$1" "update run_row set started_utc = started_utc - $2;
        insert into label(text) values('0.0.1 older');
        update run_row set version_id = (select id from label where text = '0.0.1 older')"
}
cp whole.db old.db; older old.db 1000
cp whole.db new.db; older new.db -1000
shown='select count(*), count(distinct version), min(version) from newest join run on run.id = run_id'
cp whole.db target.db; "$nudma" merge target.db old.db >/dev/null
has "runs of an older version do not come up" "$(query target.db "$shown")" '^64\|1\|0\.[1-9]'
is "but are there" "$(query target.db 'select count(*) from run')" 128
cp whole.db target.db; "$nudma" merge target.db new.db >/dev/null
is "what ran last is shown" "$(query target.db "$shown")" "64|1|0.0.1 older"

cp part1.db differs.db
sqlite3 differs.db 'update run_row set fingerprint = fingerprint + 1 where id = 1'
out=$("$nudma" merge whole.db differs.db 2>&1); is "other results of the same run" $? 1
has "are said" "$out" 'differs.db: 1 of them have other results'
is "and left alone" "$(dump whole.db)" "$(cat whole.txt)"

# ---- Trouble -------------------------------------------------------------------------------------
cp part1.db schema.db
sqlite3 schema.db 'pragma user_version = 77'
out=$("$nudma" merge whole.db part2.db schema.db 2>&1); is "another schema version" $? 1
has "is named" "$out" 'schema.db: is of schema version 77'
out=$("$nudma" merge schema.db part2.db 2>&1); is "of the target too" $? 1
out=$("$nudma" merge made.db part1.db none.db 2>&1); is "a source that is not there" $? 1
has "is named" "$out" 'none.db: No such file'
is "before anything is written" "$(find . -name 'made.db*')" ""
echo "no database, but longer than the header of one would be, so that it is read and found out, yes, it is" >text.db
"$nudma" merge made.db text.db 2>/dev/null; is "a file that is no database" $? 1
"$nudma" merge whole.db whole.db 2>/dev/null; is "itself" $? 2
"$nudma" merge whole.db 2>/dev/null; is "no source" $? 2
is "the target is as it was" "$(dump whole.db)" "$(cat whole.txt)"
mkdir readonly && cp part1.db readonly/ && chmod 444 readonly/part1.db && chmod 555 readonly
"$nudma" merge from_readonly.db readonly/part1.db >/dev/null; is "a read-only source" $? 0
is "nothing is left beside it" "$(ls readonly)" part1.db
chmod 755 readonly
# With a log that a kill has left, and copied without the index of it: all of it or a message.
"$nudma" run "$size" --seeds 40 --db logged.db >/dev/null 2>log.txt & pid=$!
until [ "$(grep -c 'done in' log.txt)" -ge 20 ] || ! kill -0 $pid; do sleep 0.01; done
kill -KILL $pid
wait $pid 2>/dev/null
cp logged.db logged.db-wal readonly/ && chmod 444 readonly/* && chmod 555 readonly && chmod 755 .
if [ "$(id -u)" = 0 ]; then nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups); else nobody=(); fi
out=$("${nobody[@]}" "$nudma" results --db readonly/logged.db 2>&1); is "a log that cannot be read" $? 1
has "is said" "$out" '^readonly/logged.db: unable to open'
chmod 755 readonly

# Killed at any moment: all of a source or nothing of it.
for delay in 0.002 0.005 0.01 0.02 0.03; do
    "$nudma" merge killed.db part1.db part2.db part3.db >/dev/null 2>&1 &
    pid=$!
    sleep $delay
    kill -KILL $pid 2>/dev/null
    wait $pid 2>/dev/null
    [ ! -s killed.db ] || is "killed: the database is whole" "$(query killed.db 'pragma integrity_check')" ok
done
"$nudma" merge killed.db part1.db part2.db part3.db >/dev/null; is "after kills it goes on" $? 0
is "and has everything once" "$(dump killed.db)" "$(cat whole.txt)"

before=$(sha256sum part1.db)
out=$("$nudma" merge part1.db part2.db --db joined.db 2>&1); is "--db does not name the target" $? 2
has "which is said" "$out" 'merge: --db joined.db: expected the database to be written as the first argument'
is "nothing was written" "$(sha256sum part1.db)" "$before"

echo "1..$cases"
[ $failed = 0 ]
