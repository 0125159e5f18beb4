#!/usr/bin/env bash
# scripts/slurm-array.sh against a real Slurm: munged, slurmctld and slurmd on this machine alone, with
# a configuration and folders of their own; nothing of an installed cluster is touched. 50 points in
# 10 shards, joined, have to be what the same campaign gives without Slurm. Skipped where the daemons
# are not installed (scripts/setup.sh slurm) or cannot run (they need root). `make test-slurm` runs it.
set -u
cd "$(dirname "$0")/../.." || exit 1
project=$PWD
nudma=$(realpath "${NUDMA:-${BUILD:-build}/nudma}")
export NUDMA=$nudma NUDMA_SCENARIOS=$project/scenarios
cases=0
failed=0
scratch=$(mktemp -d)
chmod 755 "$scratch"

is() { # is NAME FOUND EXPECTED
    cases=$((cases + 1))
    if [ "$2" = "$3" ]; then echo "ok $cases - $1"; else
        echo "not ok $cases - $1"
        printf '# found:    %s\n# expected: %s\n' "$(head -c 400 <<<"$2")" "$(head -c 400 <<<"$3")"
        failed=$((failed + 1))
    fi
}
daemons=()
clean_up() {
    local i
    for ((i = ${#daemons[@]} - 1; i >= 0; i--)); do
        kill "${daemons[i]}" 2>/dev/null
        wait "${daemons[i]}" 2>/dev/null
    done
    rm -rf "$scratch"
}
trap clean_up EXIT
skip() { # skip REASON
    echo "1..1"
    echo "ok 1 # SKIP $1"
    [ ! -s "$scratch/log" ] || tail -n 20 "$scratch/log" >&2
    exit 0
}
within() { # within SECONDS COMMAND...: until it succeeds
    local end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || return 1
        sleep 0.2
    done
}

PATH=$PATH:/usr/sbin:/sbin
for command in munged slurmctld slurmd sbatch sinfo; do
    command -v $command >/dev/null ||
        skip "$command is not installed (scripts/setup.sh slurm installs Slurm)"
done
[ "$(id -u)" = 0 ] || skip "slurmd and slurmctld need root to run the jobs of others"

# ---- One machine as a cluster --------------------------------------------------------------------
node=$(hostname -s)
port=$((20000 + RANDOM % 10000))
mkdir "$scratch"/{munge,state,spool,etc}
head -c 1024 /dev/urandom >"$scratch/munge/key"
chmod 600 "$scratch/munge/key"
munged --foreground --force --key-file="$scratch/munge/key" --socket="$scratch/munge/socket" \
    --pid-file="$scratch/munge/pid" --seed-file="$scratch/munge/seed" \
    --log-file="$scratch/munge/log" >"$scratch/log" 2>&1 &
daemons+=($!)
cat >"$scratch/etc/slurm.conf" <<CONF
ClusterName=nudma
SlurmctldHost=$node(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$scratch/munge/socket
CredType=cred/munge
StateSaveLocation=$scratch/state
SlurmdSpoolDir=$scratch/spool
SlurmctldPidFile=$scratch/slurmctld.pid
SlurmdPidFile=$scratch/slurmd.pid
SlurmctldLogFile=$scratch/slurmctld.log
SlurmdLogFile=$scratch/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_min_interval=0,batch_sched_delay=0
MpiDefault=none
MinJobAge=60
ReturnToService=2
NodeName=$node NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=test Nodes=$node Default=YES MaxTime=30 State=UP
CONF
export SLURM_CONF=$scratch/etc/slurm.conf
within 10 test -S "$scratch/munge/socket" || skip "munged does not start here"
slurmctld -D >>"$scratch/log" 2>&1 &
daemons+=($!)
slurmd -D -N "$node" >>"$scratch/log" 2>&1 &
daemons+=($!)
is_idle() { sinfo --noheader --format=%T | grep -qx idle; }
if ! within 30 is_idle; then
    cat "$scratch"/slurm*.log >>"$scratch/log" 2>/dev/null
    skip "no node of this machine's Slurm becomes idle within 30 s; the end of the logs stands above"
fi

# ---- The campaign --------------------------------------------------------------------------------
campaign=(pcie_bench/latency_window pcie_bench/latency_size --filter
    'window_bytes>=1 || transfer_bytes<=1280')
is "50 points" "$("$nudma" run "${campaign[@]}" --list -q | wc -l)" 50
"$nudma" run "${campaign[@]}" -q --db "$scratch/local.db" >/dev/null; is "without Slurm" $? 0
cd "$scratch" || exit 1
array() { timeout 240 "$project/scripts/slurm-array.sh" "$@" 2>array.txt; }
array -n 10 -c 1 -w joined.db "${campaign[@]}"; is "10 tasks, joined" $? 0
dump() {
    sqlite3 -readonly -batch "$1" "
        select 'run', scenario, point, seed, status, version, config_sha256, sim_ps, events,
            fingerprint from run order by 2, 3, 4;
        select 'param', scenario, point, name, value, param.unit, param.provenance
            from param join run on run.id = run_id order by 2, 3, 4;
        select 'metric', scenario, point, seed, name, unit, printf('%.17g', value)
            from metric join run on run.id = run_id order by 2, 3, 4, 5;
        select 'histogram', scenario, point, seed, name, unit, lo, hi, count
            from histogram join run on run.id = run_id order by 2, 3, 4, 5, lo;
        select 'result', * from result order by 2, 3, 4" 2>&1
}
is "50 runs" "$(dump joined.db | grep -c '^run|')" 50
is "by 10 tasks" "$(sqlite3 joined.db "select count(distinct command_line) from run")" 10
is "identical to the local result" "$(dump joined.db)" "$(dump local.db)"
array -n 10 -w joined.db "${campaign[@]}"; is "the same again" $? 0
is "runs nothing" "$(dump joined.db | grep -c '^run|')" 50
is "as tasks have their shards" "$(grep -c 'already' joined.db.shards/shard-3.log)" 1
array -n 2 -w failed.db "${campaign[@]}" --timeout 0.001; is "runs that fail" $? 1
is "are said" "$(grep -c '2 of 2 tasks have failed' array.txt)" 1
array -n 2 -w wrong.db pcie_bench/latency_sise; is "a mistake" $? 2
is "is found before anything is submitted" "$(ls wrong.db.shards)" ""

# Stopped by Slurm before its time is over, a task keeps what is done.
array -n 1 stopped.db pcie_bench/latency_size numa/loaded_latency --seeds 100; is "a long task" $? 0
job=$(sed -n 's/^tasks: job \([0-9]*\),.*/\1/p' array.txt)
within 60 grep -q ': done in' stopped.db.shards/shard-1.log
scancel --batch --signal=TERM "$job"
within 60 test -e stopped.db
is "that is told to stop says how to go on" \
    "$(grep -c '^interrupted: ' stopped.db.shards/shard-1.log)" 1
is "and what it has done is joined" "$(sqlite3 stopped.db 'select count(*) from run')" \
    "$(grep -c ': done in' stopped.db.shards/shard-1.log)"

if [ $failed != 0 ]; then cat array.txt ./*.shards/*.log ./slurm*.log 2>/dev/null | tail -n 60 >&2; fi
echo "1..$cases"
[ $failed = 0 ]
