#!/usr/bin/env bash
# What scripts/slurm-array.sh does in its jobs, without Slurm: a task that is killed, or whose nudma is,
# loses no run that was reported as done; joining keeps what a killed command has left in the target.
set -u
cd "$(dirname "$0")/../.." || exit 1
array=$PWD/scripts/slurm-array.sh
. tests/scenario/lib.sh
# Long enough that a task has not ended when the kill comes, however busy the machine.
seeds=24
campaign=(pcie_bench/latency_window --seeds "$seeds" -j2)
total=$(("$("$nudma" run "${campaign[@]}" --list -q | wc -l)" * seeds))
mkdir shards
export SLURM_CPUS_PER_TASK=2

task() { # task SHARD: writes what it prints to log.SHARD
    SLURM_ARRAY_TASK_ID=$1 exec bash "$array" --task "$nudma" 2 "$PWD/shards" "${campaign[@]}" \
        >"log.$1" 2>&1
}
n_done() { grep -c ': done in' "$1"; }
kill_after() { # kill_after RUNS LOG PID...: the command below the last PID
    while [ "$(n_done "$2")" -lt "$1" ] && kill -0 "$3" 2>/dev/null; do sleep 0.01; done
    kill -KILL "$(pgrep -P "$3" -x nudma)"
}
stored() { query "$1" "select count(*) from run where status = 'done'"; }

# ---- Tasks ---------------------------------------------------------------------------------------
for round in 1 2; do
    : >log.1 # not what the round before has left
    task 1 & pid=$!
    kill_after 20 log.1 $pid
    wait $pid; is "a task whose nudma is killed, $round" "$? $(cat shards/shard-1.status)" "137 137"
    is "keeps what was reported as done, $round" "$(($(stored shards/shard-1.db) >= ${before:-0} + $(n_done log.1)))" 1
    before=$(stored shards/shard-1.db)
done
task 1 & wait $!; is "it goes on" "$? $(cat shards/shard-1.status)" "0 0"
task 2 & wait $!; is "and the other" $? 0
is "in one file each" "$(cd shards && echo *)" "shard-1.db shard-1.status shard-2.db shard-2.status"

# ---- Joining -------------------------------------------------------------------------------------
"$nudma" run pcie_bench/latency_size --seeds 40 --db target.db >/dev/null 2>log.target & pid=$!
: >>log.target
while [ "$(n_done log.target)" -lt 20 ]; do sleep 0.01; done
kill -KILL $pid
wait $pid 2>/dev/null
cp target.db plain.db
cp target.db-wal plain.db-wal
there=$(stored plain.db)
is "a command that was killed has left runs in the log" "$([ -s target.db-wal ] && [ "$there" -ge 20 ] &&
    echo yes)" yes
bash "$array" --merge "$nudma" "$PWD/shards" "$PWD/target.db" >/dev/null; is "joining" $? 0
is "the log has gone into the file" "$(echo target.db*)" target.db
is "which is whole" "$(query target.db 'pragma integrity_check')" ok
is "and has everything" "$(stored target.db)" $((total + there))

echo "1..$cases"
[ $failed = 0 ]
