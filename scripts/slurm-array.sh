#!/usr/bin/env bash
#SBATCH --job-name=nudma
# A campaign as a Slurm array job: a shard of the points per task, then a job that joins the tasks'
# databases. docs/campaigns.md says how to use it.
#
#   scripts/slurm-array.sh [-n SHARDS] [-c CPUS] [-d FOLDER] [-s OPTION]... [-w] TARGET.db \
#                          SCENARIO... [OPTION of nudma run]...
#
# `make install` installs it as nudma-slurm-array.
#
#   -n SHARDS   how many tasks (default 10)
#   -c CPUS     processors of a task, and jobs of its nudma run (default 1)
#   -d FOLDER   where shards and logs go, seen from all nodes (default TARGET.shards)
#   -s OPTION   an option for sbatch of the tasks: -s --time=8:00:00 -s --mem=4G
#   -w          wait until all is joined; the exit status is then 1 if a task or the joining failed
#
# The nudma of $NUDMA, beside this script (installed), of $BUILD (default build) in the tree that this
# script is in, or of $PATH runs. Databases are
# written on the disk of the node ($TMPDIR, /tmp) and moved to FOLDER whole, since SQLite's locks are
# not to be trusted on network file systems. The same command again goes on where tasks have stopped.
set -u

fail() {
    echo "slurm-array: $1" >&2
    exit "${2:-2}"
}

# A whole file takes the place of another at once.
put() { # put FROM TO
    cp "$1" "$2.new" && mv -f "$2.new" "$2"
}

# ---- In a task of the array ----------------------------------------------------------------------
run_task() { # run_task NUDMA SHARDS FOLDER ARGUMENT...
    local nudma=$1 n=$2 i=${SLURM_ARRAY_TASK_ID:?} status pid
    local stored=$3/shard-$i.db
    shift 3
    local scratch
    scratch=$(mktemp -d) || exit 1
    # shellcheck disable=SC2064 # the folder of now
    trap "rm -rf '$scratch'" EXIT
    [ ! -e "$stored" ] || cp "$stored" "$scratch/shard.db" || exit 1
    "$nudma" run "$@" --shard "$i/$n" -j "${SLURM_CPUS_PER_TASK:-1}" --db "$scratch/shard.db" &
    pid=$!
    # Slurm's warning before the time is over: stop cleanly, keep what is done
    trap 'kill -TERM $pid 2>/dev/null' TERM INT
    wait $pid
    status=$?
    while kill -0 $pid 2>/dev/null; do
        wait $pid
        status=$?
    done
    # Who is killed leaves runs in SQLite's log beside the file: they come along in one made anew.
    if [ -s "$scratch/shard.db-wal" ]; then
        "$nudma" merge "$scratch/whole.db" "$scratch/shard.db" || exit 1
        mv -f "$scratch/whole.db" "$scratch/shard.db" || exit 1
    fi
    [ ! -s "$scratch/shard.db" ] || put "$scratch/shard.db" "$stored" || exit 1
    echo $status >"${stored%.db}.status"
    exit $status
}

# ---- In the job that joins -----------------------------------------------------------------------
run_merge() { # run_merge NUDMA FOLDER TARGET
    local nudma=$1 target=$3 part shard scratch
    scratch=$(mktemp -d) || exit 1
    # shellcheck disable=SC2064 # the folder of now
    trap "rm -rf '$scratch'" EXIT
    # with what a killed command has left in SQLite's log beside it
    for part in "$target" "$target-wal"; do
        [ ! -e "$part" ] || cp "$part" "$scratch/target.db${part#"$target"}" || exit 1
    done
    for shard in "$2"/shard-*.db; do
        [ -e "$shard" ] || fail "no task has left a database in $2; its logs say why" 1
        cp "$shard" "$scratch/${shard##*/}" &&
            "$nudma" merge "$scratch/target.db" "$scratch/${shard##*/}" || exit 1
        rm -f "$scratch/${shard##*/}"
    done
    # The log is in the new file; beside it, it would be taken for the log of that one.
    cp "$scratch/target.db" "$target.new" && rm -f "$target-wal" "$target-shm" &&
        mv -f "$target.new" "$target" || exit 1
}

case ${1:-} in
--task) shift; run_task "$@" ;;
--merge) shift; run_merge "$@"; exit ;;
esac

# ---- Where it is submitted -----------------------------------------------------------------------
shards=10 cpus=1 folder='' wait='' options=()
while getopts n:c:d:s:w option; do
    case $option in
    n) shards=$OPTARG ;;
    c) cpus=$OPTARG ;;
    d) folder=$OPTARG ;;
    s) options+=("$OPTARG") ;;
    w) wait=--wait ;;
    *) fail "see the head of $0" ;;
    esac
done
shift $((OPTIND - 1))
[ $# -ge 2 ] || fail "expected TARGET.db SCENARIO... (see the head of $0)"
[[ $shards =~ ^[1-9][0-9]*$ && $cpus =~ ^[1-9][0-9]*$ ]] || fail "-n $shards -c $cpus: expected numbers"
command -v sbatch >/dev/null || fail "there is no sbatch here: submit from a node of the cluster" 1
for argument; do
    case $argument in --db | --db=* | --shard | --shard=*) fail "$argument is this script's to set" ;; esac
done

here=$(cd "$(dirname "$0")" && pwd)
self=$here/${0##*/}
nudma=${NUDMA:-$here/nudma}
[ -x "$nudma" ] || nudma=$here/../${BUILD:-build}/nudma
[ -x "$nudma" ] || nudma=$(command -v nudma) || fail "no nudma: make builds it, NUDMA=FILE names it" 1
nudma=$(realpath "$nudma")
target=$(realpath -m "$1")
shift
folder=$(realpath -m "${folder:-$target.shards}")
mkdir -p "$folder" "$(dirname "$target")" || exit 1
# Mistakes are found here, not by every task.
"$nudma" run "$@" --print-config >/dev/null || exit

rm -f "$folder"/shard-*.status
array=$(sbatch --parsable --array="1-$shards" --cpus-per-task="$cpus" --signal=B:TERM@60 \
    --output="$folder/shard-%a.log" "${options[@]}" "$self" \
    --task "$nudma" "$shards" "$folder" "$@") || fail "sbatch refused the tasks" 1
array=${array%%;*}
echo "tasks: job $array, logs in $folder/shard-*.log" >&2
joined=0
# shellcheck disable=SC2086 # nothing, or one option
sbatch --parsable $wait --dependency="afterany:$array" --output="$folder/merge.log" \
    "$self" --merge "$nudma" "$folder" "$target" >"$folder/merge.id" || joined=1
echo "joining: job $(cat "$folder/merge.id"), log in $folder/merge.log, into $target" >&2
[ -n "$wait" ] || exit $joined
[ $joined = 0 ] || fail "joining failed; see $folder/merge.log" 1
bad=0
for ((i = 1; i <= shards; i++)); do
    [ "$(cat "$folder/shard-$i.status" 2>/dev/null)" = 0 ] || bad=$((bad + 1))
done
[ $bad = 0 ] || fail "$bad of $shards tasks have failed; see $folder/shard-*.log" 1
