#!/usr/bin/env bash
# Campaigns: which points run, in which order, what stops them, how parts are joined again.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/scenario/lib.sh
size=pcie_bench/latency_size

# ---- Which points --------------------------------------------------------------------------------
list() { "$nudma" run "$@" --list -q; }
is "--filter selects by number" "$(list $size --filter 'op=read transfer_bytes>=1.25kB' | wc -l)" 3
is "and by name" "$(list $size --filter 'op!=read' | wc -l)" 14
is "alternatives" "$(list $size -f 'transfer_bytes=8,16 op=read || transfer_bytes=2KiB' | wc -l)" 4
is "of several scenarios those with the axis" \
    "$(list pcie_bench --filter cache=device_warm | cut -d' ' -f1 | sort -u | tr '\n' ' ')" \
    "pcie_bench/hosts_window pcie_bench/latency_window "
is "alternatives for each" \
    "$(list pcie_bench/latency_window $size --filter 'cache=cold || op=read' | wc -l)" 27
out=$(list pcie_bench --filter 'cache=cold || op=reed' 2>&1); is "one that fits none" $? 2
has "is named" "$out" '^--filter: pcie_bench/[a-z_]*: axis op has no value "reed"'
out=$(list $size --filter opp=read 2>&1); is "an axis that is none" $? 2
has "the nearest axis" "$out" 'there is no axis "opp"; did you mean "op"'
out=$(list $size --filter 'op=reed' 2>&1); is "a value that is none" $? 2
has "the nearest value" "$out" 'axis op has no value "reed"; did you mean "read"'
out=$(list $size --filter 'op=read op=write_read' 2>&1); is "no point" $? 2
has "is said" "$out" 'no point matches'
out=$(list $size --filter 'op is read' 2>&1); is "no expression" $? 2
"$nudma" run $size --filter 'op=read transfer_bytes<=16' -q --db filter.db >table.txt
is "only those run" "$(query filter.db 'select point from run order by 1')" \
    "op=read transfer_bytes=16
op=read transfer_bytes=8"
is "and are shown" "$(grep -c '^read ' table.txt)" 2
"$nudma" run $size --filter op=read --missing -q --db filter.db >/dev/null
is "--missing adds the others" "$(query filter.db 'select count(*) from run')" 14
"$nudma" run $size --missing --force --db filter.db 2>/dev/null; is "--missing --force" $? 2

is "a scenario named twice runs once" \
    "$(list $size "$NUDMA_SCENARIOS/$size.cfg" pcie_bench/latency_numa pcie_bench/latency_numa | wc -l)" 32
for i in 1 2 3 4; do list pcie_bench --shard $i/4 >shard$i.txt; done
is "shards are all points, each once" "$(cat shard?.txt | sort)" "$(list pcie_bench | sort)"
is "of the same size" "$(wc -l <shard1.txt | tr -d ' ') $(wc -l <shard4.txt | tr -d ' ')" "174 173"
is "the same each time" "$(list pcie_bench --shard 2/4)" "$(cat shard2.txt)"
list $size --quick --shard 9/9; is "a shard without points" $? 0
is "--quick --set axes" "$(list $size --quick --set axes.transfer_bytes=64,72 | wc -l)" 2
out=$(list $size --quick --set axes.transfer_bytes=72 2>&1); is "nothing left of --quick" $? 2
has "is said" "$out" "$size.cfg: --quick: no point has the values"
for shard in 0/4 5/4 1 x/4 1/4x -1/4 ''; do
    list $size --shard "$shard" 2>/dev/null; is "--shard '$shard'" $? 2
done

# ---- Points that are the same in every setting ----------------------------------------------------
same=(pcie_bench/bandwidth_size pcie_bench/hosts_bandwidth -f 'op=read transfer_bytes=64')
out=$("$nudma" run "${same[@]}" --db same.db 2>&1 >/dev/null); is "two points of one configuration" $? 0
has "run once" "$out" '^1 of [0-9]+ runs are the same as others in every setting: not run again'
is "and have the same results" \
    "$(query same.db "select count(*) - count(distinct fingerprint), sum(wall_s = 0) from run")" "1|1"
is "each its parameters" "$(query same.db "select count(distinct run_id) - (select count(*) from run) from param")" 0
out=$("$nudma" run "${same[@]}" --seeds 2 --db same.db 2>&1 >/dev/null); is "with a seed more" $? 0
is "that is run once, too" "$(query same.db "select sum(wall_s = 0) from run where seed = 2")" 1
"$nudma" run "${same[@]:0:2}" -f 'op=read_write transfer_bytes=128' --seeds 5 --db same_until.db -q \
    --until 'throughput_gbit_s 0.000001%' >/dev/null 2>&1
is "seeds that an interval asks for are run once, too" \
    "$(query same_until.db "select count(*), sum(wall_s = 0) from run where seed > 3 and point not like '%host=t6%'")" "4|2"
for scenario in "${same[0]}" "${same[1]}"; do
    "$nudma" run "$scenario" "${same[@]:2}" --db apart.db -q >/dev/null
done
is "apart they run by themselves, to the same results" \
    "$(query apart.db "attach 'same.db' as s; select count(*) = (select count(*) from run), sum(r.fingerprint <> o.fingerprint),
        sum(r.wall_s = 0) from run r join s.run o using (scenario, point, seed)")" "1|0|0"
"$nudma" run ioctopus/fig13_pagerank -f io=none --print-config -q 2>/dev/null |
    grep 'netperf_s0.interface' | sort -u >interface.txt
is "what does nothing keeps its settings" "$(wc -l <interface.txt | tr -d ' ')" 2

# ---- Axes ----------------------------------------------------------------------------------------
sed 's/^axes = .*/constraints = ( "op=read || transfer_bytes<1KiB" );\n&/' \
    "$NUDMA_SCENARIOS/$size.cfg" >constrained.cfg
is "a constraint leaves points out" "$(list constrained.cfg | wc -l)" 24
sed 's/^constraints = .*/constraints = ( "opp=read" );/' constrained.cfg >wrong.cfg
out=$(list wrong.cfg 2>&1); is "a wrong constraint" $? 2
has "is a mistake with its place" "$out" '^wrong.cfg:[0-9]+: constraints.\[0\]: there is no axis "opp"'

sed 's/^constraints/contraints/' constrained.cfg >wrong.cfg
out=$(list wrong.cfg 2>&1); is "points of a setting that is none are not listed" $? 2
has "but the mistake is" "$out" '^wrong.cfg:[0-9]+: contraints: unknown setting; did you mean "constraints"'

# ---- Many points are checked in several processes ------------------------------------------------
many=(pcie_bench/latency_window pcie_bench/latency_iommu)
"$simulate" run "${many[@]}" $size -j2 -q --db many.db >/dev/null; is "many points" $? 0
has "have the hashes that one process gives them" \
    "$("$nudma" run "${many[@]}" $size -j1 --db many.db 2>&1 >/dev/null)" '^67 of 67 runs are in the database'
has "one of several" "$("$nudma" run $size --force --db one_of.db --filter 'op=read transfer_bytes=8' -q 2>&1
    "$nudma" run $size --db one_of.db --filter 'op=read transfer_bytes=8,16' 2>&1)" '^1 of 2 runs is in the database already \(--force runs it again\)'
sed 's/2048\]/2048, 70000]/' "$NUDMA_SCENARIOS/$size.cfg" >last.cfg
for jobs in 1 2; do
    said[jobs]=$("$nudma" run "${many[@]}" last.cfg -j$jobs --db many.db 2>&1 >/dev/null)
    is "a mistake in the last points, -j$jobs" $? 2
done
has "is found" "${said[1]}" '^last.cfg:[0-9]+: workload.transfer_bytes: found 70000'
is "by several, too" "${said[2]}" "${said[1]}"

# ---- Order and memory ----------------------------------------------------------------------------
"$nudma" run $size --quick -q --db order.db >/dev/null
is "peak memory is recorded" \
    "$(query order.db 'select count(*) from run where peak_memory_bytes between 1e6 and 1e9')" 4
sqlite3 order.db 'update run_row set wall_s = case point_id when (select id from label where text =
    "op=read transfer_bytes=2048") then 9 when (select id from label where text =
    "op=write_read transfer_bytes=64") then 7 else 1 end'
out=$("$nudma" run $size --filter 'transfer_bytes=64,2048,8 op=read || transfer_bytes=64' \
    --force -j1 --db order.db 2>&1 >/dev/null)
is "the longest come first" "$(sed -n 's/.*latency_size \(.*\) seed.*/\1/p' <<<"$out")" \
    "op=read transfer_bytes=2048
op=write_read transfer_bytes=64
op=read transfer_bytes=8
op=read transfer_bytes=64"

endless=(--set measure.transactions=2000000000 --set measure.duration_us=900000000)
n_workers() { # n_workers EXPECTED OPTION...: how many runs go on at once, of four that never end
    "$nudma" run $size --quick --db endless.db -j4 "${endless[@]}" "${@:2}" >/dev/null 2>&1 &
    local pid=$! most=0 longer=10 n
    for _ in $(seq 60); do # and half a second longer than it takes to see as many as are expected
        n=$(pgrep -c -r RSD -P $pid)
        [ "$n" -le "$most" ] || most=$n
        [ "$most" -lt "$1" ] || longer=$((longer - 1))
        [ $longer -gt 0 ] || break
        sleep 0.05
    done
    kill -TERM $pid
    wait $pid
    echo "$most"
}
is "as many runs as jobs" "$(n_workers 4)" 4
is "one alone where memory is short" "$(n_workers 1 --memory 1MiB)" 1

# Two descriptors of each worker, of which there are fewer: poll() would take none of 2 N + 1.
few() { # few -Sn|-n ARGUMENT...
    (ulimit "$1" 40 && shift && exec timeout -s KILL 60 "$nudma" run $size --seeds 2 --db few.db -q -j100 "$@" 2>&1)
}
few -Sn >few.txt; is "more workers than descriptors, by the soft limit" $? 0
few -n --force >forced.txt; is "by the hard one" $? 0
is "lose no run" "$(query few.db 'select status, count(*) from run group by 1') $(cmp few.txt forced.txt && echo same)" \
    "done|$((2 * 2 * $("$nudma" run $size --list -q | wc -l))) same"
(ulimit -n 40; exec env --default-signal=INT "$nudma" run $size --db few.db -q -j100 "${endless[@]}" 2>/dev/null >&2) &
pid=$!
for _ in $(seq 100); do pgrep -P $pid >/dev/null && break; sleep 0.05; done
sleep 0.2
kill -INT $pid
for _ in $(seq 100); do kill -0 $pid 2>/dev/null || break; sleep 0.05; done
kill -KILL $pid 2>/dev/null
wait $pid; is "nor hear no signal" $? 130

# ---- Limits --------------------------------------------------------------------------------------
out=$("$nudma" run $size --filter 'transfer_bytes=64 op=read' "${endless[@]}" --timeout 0.3 \
    --db limit.db 2>&1 >/dev/null)
is "a run that takes too long fails" $? 1
has "with what it exceeded" "$out" 'failed: took longer than the 0.3 s of --timeout'
is "recorded" "$(query limit.db 'select status, error from run')" \
    "failed|took longer than the 0.3 s of --timeout"
is "with its configuration" \
    "$(query limit.db "select value, unit from param where name = 'workload.transfer_bytes'")" \
    "64|bytes"
is "and its hash" "$(query limit.db 'select length(config_sha256) from run')" 64
out=$("$nudma" run $size --filter 'transfer_bytes=64 op=read' "${endless[@]}" --run-memory 1MiB \
    --db limit.db 2>&1 >/dev/null)
is "a run that needs too much memory fails" $? 1
has "with what it exceeded" "$out" 'failed: needed more than the 1 MiB of --run-memory'
# a point that never ends among those that do
sed 's/values = \["read", "write_read"\]; },/values = ["read", "write_read"]; },\
    { name = "ends"; variants = ( { name = "no"; set = ( "measure.transactions=2000000000",\
      "measure.duration_us=900000000" ); }, { name = "yes"; set = (); } ); },/' \
    "$NUDMA_SCENARIOS/$size.cfg" >mixed.cfg
"$nudma" run mixed.cfg --filter 'transfer_bytes=64' --timeout 2 -q --db mixed.db >/dev/null 2>&1
is "among runs that end" $? 1
is "it costs itself only" "$(query mixed.db 'select point, status from run order by 1')" \
    "ends=no op=read transfer_bytes=64|failed
ends=no op=write_read transfer_bytes=64|failed
ends=yes op=read transfer_bytes=64|done
ends=yes op=write_read transfer_bytes=64|done"
# a worker that is killed when it has nothing to do
"$nudma" run mixed.cfg --filter 'transfer_bytes=64 op=read' -j2 --timeout 2 --db idle.db \
    >/dev/null 2>idle.txt &
pid=$!
for _ in $(seq 100); do
    idle=$(pgrep -r S -P $pid)
    grep -q 'ends=yes.*: done in' idle.txt && [ -n "$idle" ] && kill -KILL "$idle" && break
    sleep 0.02
done
wait $pid; is "an idle worker that is killed" "$? $(wc -w <<<"$idle")" "1 1"
is "costs no run" "$(query idle.db 'select point, status, coalesce(error, "") from run order by 1')" \
    "ends=no op=read transfer_bytes=64|failed|took longer than the 2 s of --timeout
ends=yes op=read transfer_bytes=64|done|"
is "bytes that no run can do with" "$("$nudma" run $size --run-memory=4 --db wrong.db 2>&1)" \
    'nudma run: --run-memory 4: expected a size such as "512 MiB", at least the 1 MiB that any run needs'
for wrong in "--timeout=-1" "--memory=1x" "--memory=8" "--run-memory=0" "--until=latency" "--until=a b%" \
    "--until=latency_mean_ns 0%"; do
    "$nudma" run $size "$wrong" --db wrong.db 2>/dev/null >&2; is "$wrong" $? 2
done
is "wrote nothing" "$(find . -name 'wrong.db*')" ""

# ---- Seeds ---------------------------------------------------------------------------------------
noisy=pcie_bench/latency_window
few=(--filter 'cache=cold window_bytes=4096,16MiB,64MiB' -q)
until_seeds() { # the number of seeds of each point that suffices for an interval, or else $2
    query "$1" "with recursive n(k) as (select 3 union all select k + 1 from n where k < $2),
        v as (select point, seed, value from metric join run on run.id = run_id
              where name = 'latency_mean_ns'),
        s as (select point, k, avg(value) m, count(*) c,
              sqrt((avg(value * value) - avg(value) * avg(value)) / (k - 1)) e
              from n join v on seed <= k group by point, k)
        select point, coalesce(min(case when e * (select t95 from student_t where df = k - 1)
            <= $3 * m then k end), $2) from s where c = k group by point order by 1"
}
"$simulate" run $noisy "${few[@]}" --seeds 8 --db all.db >/dev/null
"$nudma" run $noisy "${few[@]}" --seeds 8 --until 'latency_mean_ns 0.15%' --db until.db -j2 >until.txt 2>&1
is "--until" $? 0
is "stops where the interval is tight enough" \
    "$(query until.db 'select point, count(*) from run group by 1 order by 1')" \
    "$(until_seeds all.db 8 0.0015)"
"$nudma" run $noisy "${few[@]}" --seeds 8 --until 'latency_mean_ns 0.15%' --db all.db >/dev/null
is "what is there counts" "$(query all.db 'select count(*) from run')" 24
out=$("$nudma" run $noisy "${few[@]}" --seeds 4 --until 'latency_mean_ns 1e-9%' --db all.db 2>&1)
has "says what is not tight" "$out" '^--until: [123] of 3 points are not that tight with 4 seeds'
out=$("$nudma" run $noisy "${few[@]}" --until 'latency_men_ns 1%' --db none.db 2>&1)
is "a metric that is none" $? 2
has "is named, and the nearest" "$out" 'no metric "latency_men_ns"; did you mean "latency_mean_ns"'
is "before anything runs" "$(find . -name none.db) $(grep -c ' seed ' <<<"$out")" " 0"

# ---- What hosts log ------------------------------------------------------------------------------
# A cable is pulled for good: two hosts say that they have lost each other.
lost() { "$nudma" run smartio/text_failover --filter event=cable_pull --force --db lost.db "$@" 2>&1; }
has "what hosts log" "$(lost -j1)" "host 2 is lost"
is "not with -q" "$(lost -q | grep -c 'is lost\|done in')" 0

echo "1..$cases"
[ $failed = 0 ]
