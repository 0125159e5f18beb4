#!/usr/bin/env bash
# docs/results.md: its views have the columns that it names, its queries run and find something, and
# a run knows where it comes from. On a real small database: two configurations, a run that failed.
set -u
cd "$(dirname "$0")/../.." || exit 1
project=$PWD
. tests/scenario/lib.sh
size=pcie_bench/latency_size

"$nudma" run $size --quick -q --db a.db --set workload.window_bytes=4096 >/dev/null
is "one configuration" $? 0
# A worker that is killed: its run has failed.
"$nudma" run $size --db a.db -j1 --set axes.op=read --set axes.transfer_bytes=64 \
    --set measure.transactions=2000000000 --set measure.duration_us=900000000 >/dev/null 2>killed.txt &
pid=$!
for _ in $(seq 200); do
    worker=$(pgrep -P $pid) && break
    sleep 0.05
done
kill -KILL "$worker"
wait $pid; is "a run that fails" $? 1
"$nudma" run $size --quick -q --seeds 3 --db a.db >/dev/null; is "another configuration" $? 0

# ---- The page ------------------------------------------------------------------------------------
page=$project/docs/results.md
while IFS='|' read -r _ view columns _; do
    view=$(tr -d '` ' <<<"$view")
    columns=$(sed 's/([^()]*)//g; s/ //g' <<<"$columns")
    is "the view $view" "$(query a.db "select group_concat(name) from pragma_table_info('$view')")" \
        "$columns"
done < <(grep -E '^[|] [^ a-z][a-z]+[^ a-z] [|]' "$page")
awk '/^```/ { inside = /sql/; n += inside; next } inside { print > ("query." n) }' "$page"
is "ten queries" "$(cat query.* | grep -c ';$')" 10
for n in 1 2 3 4 5 6 7 8 9 10; do
    out=$(sqlite3 -readonly -batch -bail a.db <query.$n 2>query.err)
    is "query $n runs" "$?$(cat query.err)" 0
    is "and finds something" "$([ -n "$out" ] && echo yes)" yes
done
answer() { sqlite3 -readonly -batch a.db <"query.$1"; }
is "2: in the order of the axis" "$(answer 2 | cut -d '|' -f 1,4 | paste -sd ' ')" "64|3 2048|3"
is "3: each read beside its write" "$(answer 3 | wc -l)" 2
is "4: the one that failed" "$(answer 4 | grep -c "signal 9.*nudma run $size")" 1
is "5: a line for each seed" "$(answer 5 | cut -d '|' -f 1 | paste -sd ' ')" "1 2 3"
is "6: the one that was set" "$(answer 6)" "workload.window_bytes|4096|8192|bytes"
is "9: the parts make up the whole" \
    "$(answer 9 | awk -F '|' '{ sum[$1] += $4 } END { for (p in sum) if (sum[p] < 99 || sum[p] > 101)
        print p, sum[p] }')" ""
is "10: deterministic" "$(answer 10 | cut -d '|' -f 4 | sort -u)" 1

# ---- Where a run comes from ---------------------------------------------------------------------
newest="from run where id = (select max(id) from run where point = 'op=read transfer_bytes=64')"
is "version and git state" "nudma $(query a.db "select version $newest")" "$("$nudma" --version)"
is "command line" "$(query a.db "select command_line $newest")" \
    "nudma run $size --quick -q --seeds 3 --db a.db"
is "host" "$(query a.db "select host $newest")" "$(uname -n)"
is "time, events, fingerprint" "$(query a.db "select wall_s > 0 and sim_ps > 0 and events > 0
    and started_utc between strftime('%s', 'now') - 600 and strftime('%s', 'now')
    and fingerprint glob replace(hex(zeroblob(8)), '0', '[0-9a-f]') $newest")" 1
is "a hash for each configuration" \
    "$(query a.db "select count(distinct config_sha256), count(distinct config_sha256 || point),
        min(length(config_sha256)) from run where status = 'done'")" "8|8|64"
"$nudma" run $size --print-config --set axes.op=read --set axes.transfer_bytes=64 |
    awk '$2 == "=" && $3 !~ /^["(]/ { print $1 "|" $3 }' | sort >config.txt
query a.db "select name, value from param where run_id = (select id $newest)" | sort >params.txt
is "the resolved configuration" "$([ -s config.txt ] && comm -23 config.txt params.txt)" ""

echo "1..$cases"
[ $failed = 0 ]
