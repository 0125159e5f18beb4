#!/usr/bin/env bash
# A campaign whose command or workers are killed with SIGKILL ten times, at random moments, and which
# is then gone on with: what was reported as done is there after each kill, and in the end the
# results are those of an undisturbed campaign. KILL_SEED repeats a sequence of moments;
# KILL_SCENARIOS and KILL_SEEDS choose another campaign.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/scenario/lib.sh
read -ra campaign <<<"${KILL_SCENARIOS:-pcie_bench/latency_size pcie_bench/latency_window \
    pcie_bench/latency_iommu}"
campaign+=(--seeds "${KILL_SEEDS:-6}" -j2)
seed=${KILL_SEED:-$$}
RANDOM=$seed
echo "# KILL_SEED=$seed"

dump() {
    query "$1" "
        select 'run', scenario, point, seed, config_sha256, sim_ps, events, fingerprint
            from run where status = 'done' order by 2, 3, 4;
        select 'metric', scenario, point, seed, name, unit, printf('%.17g', value)
            from metric join run on run.id = run_id where status = 'done' order by 2, 3, 4, 5;
        select 'histogram', scenario, point, seed, name, unit, lo, hi, count from histogram
            join run on run.id = run_id where status = 'done' order by 2, 3, 4, 5, lo;
        select 'result', scenario, point, metric, unit, printf('%.12g', mean), n from result
            order by 2, 3, 4"
}

"$nudma" run "${campaign[@]}" --db whole.db -q >/dev/null; is "undisturbed" $? 0
dump whole.db >whole.txt

n_done() { grep -c ': done in' log.txt; }
wait_for_done() { # wait_for_done NUMBER PID: until so many runs are reported, or it has ended
    while [ "$(n_done)" -lt "$1" ] && kill -0 "$2" 2>/dev/null; do sleep 0.002; done
}

kills=0
worker_kills=0
while [ $kills -lt 10 ]; do
    before=$kills
    "$nudma" run "${campaign[@]}" --db killed.db >/dev/null 2>log.txt &
    pid=$!
    victim=
    while [ "$victim" != $pid ] && [ $kills -lt 10 ] && kill -0 $pid 2>/dev/null; do
        # Few and short enough that ten kills end before a campaign of 400 runs does.
        wait_for_done $(($(n_done) + RANDOM % 8)) $pid
        sleep "0.0$((RANDOM % 30 + 10))"
        workers=$(pgrep -P $pid)
        victim=$pid
        if [ $((RANDOM % 2)) = 0 ] && [ -n "$workers" ]; then
            victim=$(shuf -n 1 --random-source=<(yes "$RANDOM") <<<"$workers")
        fi
        kill -KILL "$victim" 2>/dev/null || { victim=; continue; } # has ended by itself
        kills=$((kills + 1))
        [ "$victim" = $pid ] || worker_kills=$((worker_kills + 1))
    done
    [ "$victim" = $pid ] || kill -KILL $pid 2>/dev/null
    wait $pid 2>/dev/null
    is "kill $((before + 1)) to $kills: the database is whole" \
        "$(if [ -s killed.db ]; then query killed.db 'pragma integrity_check'; else echo ok; fi)" ok
    sed -n 's/^\[[0-9/]*\] \(.*\): done in.*/\1/p' log.txt | sort >reported.txt
    query killed.db "select scenario || ' ' || point || ' seed ' || seed from run
        where status = 'done'" | sort >stored.txt
    is "what was reported as done is stored" "$(comm -23 reported.txt stored.txt)" ""
    [ $kills -gt $before ] || break # has ended without being killed: too small a campaign
done
echo "# $worker_kills of $kills kills hit workers, $(wc -l <stored.txt) runs were stored then"
is "ten kills" $kills 10
is "before the campaign had ended" "$([ "$(wc -l <stored.txt)" -lt "$(grep -c '^run' whole.txt)" ] &&
    echo yes)" yes
"$nudma" run "${campaign[@]}" --db killed.db -q >/dev/null; is "it goes on" $? 0
dump killed.db >killed.txt
is "nothing but workers that were killed has failed" "$(query killed.db "select count(*) <= $worker_kills
    and coalesce(min(error like '%signal 9%'), 1) from run where status = 'failed'")" 1
is "and has what an undisturbed one has, each run once" \
    "$(diff whole.txt killed.txt | head -n 5)" ""

echo "1..$cases"
[ $failed = 0 ]
