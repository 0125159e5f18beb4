#!/usr/bin/env bash
# nudma results, export and diff on a real small database: which tables, points, metrics; files that
# other programs parse; what counts as a change; mistakes.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/scenario/lib.sh
size=pcie_bench/latency_size

# A value as tables write it, from the view.
value() { # value POINT METRIC
    query a.db "select printf('%.6g', mean) from result
        where scenario = '$size' and point = '$1' and metric = '$2'"
}

for command in results export diff; do
    out=$("$nudma" $command --help); is "$command --help" $? 0
    has "says how" "$out" "nudma $command"
done
for command in run list describe topology merge plot figures check results export diff report calibrate; do
    "$nudma" $command --help >/dev/full 2>full.txt; is "$command --help on a full disk" $? 1
done
is "-h is --help" "$("$nudma" diff -h)" "$("$nudma" diff --help)"
"$nudma" run $size --quick --seeds 3 --db a.db -q -j2 >run.txt; is "a database" $? 0
# One metric of one run moved, so that there is an interval to show.
cp a.db b.db
sqlite3 b.db "update metric_row set value = value + 10 where quantity_id =
    (select id from quantity where name = 'latency_mean_ns') and run_id = (select max(id) from run
    where point = 'op=read transfer_bytes=64')"

# Numbers end below each other, words begin so.
is "numbers of an axis stand on the right" "$("$nudma" results $size --db a.db | cut -c 1-26)" \
    "$(printf '%s\n' 'pcie_bench/latency_size, 3' 'op          transfer_bytes' \
        'read                    64' 'read                  2048' 'write_read              64' 'write_read            2048')"
is "with all metrics, too" "$("$simulate" run $size --quick --stats --seeds 3 --db a.db -q | sed -n '2,3s/  metric.*\|  latency.*//p')" \
    "$(printf '%s\n' 'op          transfer_bytes' 'read                    64')"

# A run that fails leaves what is known of its point as it was, and marks it.
cp a.db o.db
long() { # long OPTION...: of one seed, too long for a time-out of a millisecond
    "$simulate" run $size --filter 'op=read transfer_bytes=64' --seed 2 --db o.db -q \
        --set measure.transactions=100000 --set measure.duration_us=200000 "$@" 2>&1
}
long >long.txt
out=$(long --force --timeout 0.001)
is "a run again that fails" $? 1
has "the values before it are marked" "$out" '^read +64 +[0-9.]+ .*\*$'
has "what that means" "$out" '^\* of an earlier run: a later one has failed \(nudma run, .* again\)$'
out=$("$nudma" results $size --db o.db)
is "by results, too" "$(grep -c '\*$' <<<"$out") $(grep -c '^\* of an earlier' <<<"$out")" "1 1"
has "by plot" "$("$nudma" plot $size --db o.db 2>&1 >/dev/null)" "^$size: 1 point is of an earlier run"
has "by check" "$("$nudma" check pcie_bench --db o.db)" \
    "^of an earlier run: $size op=read transfer_bytes=64: a later one has failed$"
out=$(long --stats --timeout 0.001)
is "a run without --force does it again" $? 1
is "of all metrics" "$(grep 'latency_mean_ns ' <<<"$out" | grep -c '\* ')" 1
is "until it has run, and the mark is gone" "$(long)" "$(cat long.txt)"
n_runs=$(query o.db 'select count(*) from run')
is "then nothing is left to do" "$(long)" "$(cat long.txt)"
is "and nothing has run" "$(query o.db 'select count(*) from run')" "$n_runs"

# What had not settled when it was measured is said below tables, whoever ran it.
cp a.db n.db
sqlite3 n.db "insert into setting(name, value, unit, provenance) values ('note.not_settled.rate', 'rate: began late', '', '');
    insert into setting_member select distinct set_id, (select id from setting where name = 'note.not_settled.rate')
        from run_row where point_id = (select id from label where text = 'op=read transfer_bytes=64')"
late="not settled: $size op=read transfer_bytes=64: rate: began late"
is "results says what had not settled" "$("$nudma" results $size --db n.db | tail -n 1)" "$late"
is "so does run, where all is there" "$("$nudma" run $size --quick --seeds 3 --db n.db -q 2>&1)" "$(cat run.txt; echo "$late")"
is "not of other points" "$("$nudma" results $size --db n.db --filter op=write_read | grep -c 'not settled')" 0
sqlite3 n.db "insert or ignore into setting_member select set_id, (select id from setting where name = 'note.not_settled.rate')
    from run_row group by set_id"
out=$("$nudma" results $size --db n.db)
is "of many the first" "$(grep -c "^not settled: $size .*: rate: began late$" <<<"$out")" 3
has "and how many more" "$out" '^not settled: 1 point more$'

# ---- results -------------------------------------------------------------------------------------
results() { "$nudma" results --db a.db "$@"; }
out=$(results); is "without names" $? 0
has "what there is" "$out" "^$size +4 +3 +12 +0  20"
out=$(results $size); is "a scenario" $? 0
is "what run shows" "$(tail -n +2 <<<"$out")" "$(tail -n +2 run.txt)"
has "with the number of seeds" "$out" "^$size, 3 seeds$"
is "by folder" "$(results pcie_bench)" "$out"
is "by wildcard" "$(results 'pcie_bench/lat*')" "$out"
has "an interval" "$("$nudma" results --db b.db $size)" '^read +64 +[0-9.]+ \+-14$'
read64=$(value 'op=read transfer_bytes=64' latency_mean_ns)
read2048=$(value 'op=read transfer_bytes=2048' latency_mean_ns)
write64=$(value 'op=write_read transfer_bytes=64' latency_mean_ns)
is "an axis as columns" "$(results $size --columns transfer_bytes | tr -s ' ' | head -n 5)" \
    "$size, 3 seeds
latency_mean_ns [ns]
transfer_bytes 64 2048
op
read $read64 $read2048"
is "an axis as rows" "$(results $size --rows op)" "$(results $size --columns transfer_bytes)"
is "the rest makes tables" \
    "$(results $size --rows metric --columns op | tr -s ' ' | head -n 4)" \
    "$size: transfer_bytes=64, 3 seeds
op read write_read
metric
latency_mean_ns [ns] $read64 $write64"
out=$(results -m 'throughput*' -m latency_mean_ns --filter 'op=read')
has "metrics by wildcard" "$out" '^op +transfer_bytes +latency_mean_ns \[ns\] +throughput_gbit_s \[Gbit/s\]$'
is "filtered by a value" "$(grep -c '^write' <<<"$out")" 0
rows() { results $size --filter "$@" | tail -n +3 | awk '{ print $1 "/" $2 }' | paste -sd ' '; }
is "=" "$(rows transfer_bytes=64)" "read/64 write_read/64"
is "!=" "$(rows transfer_bytes!=64)" "read/2048 write_read/2048"
is ">" "$(rows 'transfer_bytes>64')" "read/2048 write_read/2048"
is ">=" "$(rows 'transfer_bytes>=64')" "read/64 read/2048 write_read/64 write_read/2048"
is "<" "$(rows 'transfer_bytes<2048 op=read')" "read/64"
is "a quantity" "$(rows 'transfer_bytes<=1 KiB op=read')" "read/64"
is "equal as a number" "$(rows 'transfer_bytes=2 KiB op=read')" "read/2048"
is "one of several" "$(rows 'op=read,none transfer_bytes=64')" "read/64"
is "wildcards" "$(rows 'op=write*' --filter transfer_bytes=64)" "write_read/64"
is "alternatives" "$(rows 'op=read transfer_bytes<65||op=write_read && transfer_bytes>=2KiB')" \
    "read/64 write_read/2048"
is "quotes" "$(rows "op = 'read' transfer_bytes=\"64\"")" "read/64"
all=$(results $size -m '*' --width 80); is "everything" $? 0
is "fits 80 columns" "$(awk 'length > 80' <<<"$all")" ""
is "and has every value" "$(grep -c '^read  *64 ' <<<"$all")" "$(grep -c '^op  *transfer_bytes ' <<<"$all")"
is "is one table where it is piped" "$(results $size -m '*' --columns metric | wc -l)" 6
is "but not of lines without an end" "$(results $size -m '*' | awk 'length > 150')" ""
script -qec "stty cols 80; '$nudma' results --db a.db $size -m '*'" /dev/null </dev/null |
    tr -d '\r' >terminal.txt
is "fits the terminal" "$(awk 'length > 80' terminal.txt)" ""
is "and is the same" "$(cat terminal.txt)" "$all"
out=$(results pcie_bench/latency_sise 2>&1); is "a scenario that is none" $? 2
has "the nearest" "$out" 'did you mean "pcie_bench/latency_size"'
out=$(results -m latency_meam_ns 2>&1); is "a metric that is none" $? 2
has "the nearest metric" "$out" 'did you mean "latency_mean_ns"'
out=$(results --rows transfer_byte 2>&1); is "an axis that is none" $? 2
has "the nearest axis" "$out" 'did you mean "transfer_bytes"'
out=$(results --rows op --columns op 2>&1); is "an axis twice" $? 2
out=$(results --filter opp=read 2>&1); is "a filter on no axis" $? 2
has "the nearest axis of the points" "$out" 'did you mean "op"'
out=$(results --filter op=raed 2>&1); is "a filter that nothing meets" $? 2
has "the nearest value" "$out" 'axis op has no value "raed"; did you mean "read"'
is "a point that none has, but as one of two" "$(rows 'op!=none transfer_bytes=64,65 op=read')" "read/64"
out=$(results --filter 'op=read transfer_bytes>1 GiB' 2>&1); is "conditions that no point meets" $? 2
has "are said to be" "$out" 'no point meets all conditions'
out=$(results --filter 'transfer_bytes<1 us' 2>&1); is "another dimension" $? 2
has "is not more or less" "$out" 'values of axis transfer_bytes are not more or less than "1 us"'
for wrong in 'op=read ||' 'op=' '=read' 'op=read,' '|| op=read' "op='read" 'op=read & op=read'; do
    results --filter "$wrong" >/dev/null 2>&1; is "the filter $wrong" $? 2
done
out=$(results --filter op 2>&1); is "a filter without an operator" $? 2
out=$(results --filter 'op>read' 2>&1); is "a bound that is no number" $? 2
out=$("$nudma" results --db none.db 2>&1); is "no database" $? 1

# ---- As run prints it ----------------------------------------------------------------------------
# Axes and values that are not sorted, a stack, statistics of parts, more metrics than six.
sed -e '/^axes = (/,/^plot/d' -e '/^    x = /,$d' "$NUDMA_SCENARIOS/$size.cfg" >order.cfg
cat >>order.cfg <<'END'
axes = ( { name = "transfer_bytes"; setting = "workload.transfer_bytes"; values = [2048, 64]; },
         { name = "op"; setting = "workload.op"; values = ["write_read", "read"]; } );
plot = { x = "transfer_bytes"; panels = ( { y = "throughput_gbit_s"; },
    { y = ["nfp.dma_read_bytes", "server.s0.dram_read_bytes"]; },
    { kind = "stack"; y = "latency_part_ns"; } ); };
END
run=$("$nudma" run order.cfg --db order.db -q -j2); is "a scenario with its own order" $? 0
out=$("$nudma" results --db order.db order --scenarios .); is "as tables" $? 0
is "run prints what results does" "$(tail -n +2 <<<"$run")" "$(tail -n +2 <<<"$out")"
is "in the file's order" "$(awk '{ print $1 "/" $2 }' <<<"$out" | tail -n +2 | paste -sd ' ')" \
    "transfer_bytes/op 2048/write_read 2048/read 64/write_read 64/read"
plotted=$(query order.db "select group_concat(name || ' [' || unit || ']', '  ') from (select distinct name, unit
    from metric where name in ('throughput_gbit_s', 'nfp.dma_read_bytes', 'server.s0.dram_read_bytes')
    or name like 'latency_part_ns.%')" | tr -s ' ')
is "what each panel shows, however much it is" \
    "$(sed -n 2p <<<"$out" | tr -s ' ' '\n' | grep -v '^\[' | tail -n +3 | sort | paste -sd ' ')" \
    "$(tr -s ' ' '\n' <<<"$plotted" | grep -v '^\[' | sort | paste -sd ' ')"
run=$("$nudma" run order.cfg --db order.db -q --filter transfer_bytes=64)
is "of some points the same" "$(tail -n +2 <<<"$run")" \
    "$("$nudma" results --db order.db order --scenarios . --filter transfer_bytes=64 | tail -n +2)"
rm order.cfg
is "without its file by name and value" \
    "$("$nudma" results --db order.db order -m throughput_gbit_s | awk '{ print $1 "/" $2 }' | tail -n +2 | paste -sd ' ')" \
    "op/transfer_bytes read/64 read/2048 write_read/64 write_read/2048"

# ---- export --------------------------------------------------------------------------------------
# A value that has to be quoted and escaped, and what no terminal should see.
cp b.db odd.db
sqlite3 odd.db "update label set text = 'op=a \"b\" \\ c transfer_bytes=64'
        where text = 'op=read transfer_bytes=64';
    update label set text = 'nudma run' || char(9) || char(10) || '\"' where text like 'nudma run %'"
export_() { "$nudma" export --db odd.db "$@"; }
export_ --format csv $size >a.csv; is "export as CSV" $? 0
is "every line ends as RFC 4180 says" "$(grep -c $'\r$' a.csv)" "$(wc -l <a.csv)"
is "a row for each point" "$(wc -l <a.csv)" 5
sqlite3 csv.db '.import --csv a.csv t'
is "axes as columns" "$(query csv.db "select group_concat(op || '/' || transfer_bytes, ' ') from
    (select * from t order by op, transfer_bytes + 0)")" \
    'a "b" \ c/64 read/2048 write_read/64 write_read/2048'
names=$(query odd.db "select distinct metric from result where metric not like '%.ci95'" | wc -l)
is "all metrics" "$(head -n 1 a.csv | tr , '\n' | grep -vc '\.ci95')" $((names + 4))
is "values bit by bit" "$(query csv.db "attach 'odd.db' as d; select count(*) from t join d.result r
    on r.scenario = t.scenario and r.point = 'op=' || t.op || ' transfer_bytes=' || t.transfer_bytes
    where r.metric = 'latency_mean_ns' and r.n = seeds
    and cast(t.\"latency_mean_ns [ns]\" as real) = r.mean
    and cast(t.\"latency_mean_ns.ci95 [ns]\" as real) = r.ci95")" 4
is "to a file" "$(export_ --format csv $size --output o.csv && cmp a.csv o.csv && echo same)" same
is "chosen metrics" "$(export_ --format csv -m 'throughput*' | head -n 1 | tr -d '\r')" \
    'scenario,op,transfer_bytes,seeds,throughput_gbit_s [Gbit/s],throughput_gbit_s.ci95 [Gbit/s]'
is "chosen points" "$(export_ --format csv --filter transfer_bytes=2048 | wc -l)" 3
export_ --format json --params $size >a.json; is "export as JSON" $? 0
json() { sqlite3 -batch :memory: "$1" 2>&1; }
is "valid" "$(json "select json_valid(readfile('a.json'))")" 1
is "to another parser, too" "$(python3 -m json.tool a.json >/dev/null && echo good)" good
is "CSV as well" "$(python3 -c 'import csv
rows = list(csv.reader(open("a.csv", newline="", encoding="utf-8"), strict=True))
print(len(rows), len({len(row) for row in rows}), rows[1][1])')" '5 1 a "b" \ c'
point="json_extract(readfile('a.json'), '\$.points[0]"
is "typed axes" "$(json "select $point.axes.op'), json_type(readfile('a.json'),
    '\$.points[0].axes.transfer_bytes')")" 'a "b" \ c|integer'
is "metrics with unit and n" "$(json "select $point.metrics.latency_mean_ns.unit'),
    $point.metrics.latency_mean_ns.n')")" 'ns|3'
is "the mean and interval bit by bit" "$(sqlite3 odd.db "select mean = $point.metrics.latency_mean_ns.mean')
    and ci95 = $point.metrics.latency_mean_ns.ci95') from result
    where metric = 'latency_mean_ns' and point like '%\"%'")" 1
for name in id seed version config_sha256 command_line host fingerprint wall_s sim_ps events peak_memory_bytes; do
    is "a run's $name" "$(json "select $point.runs[1].$name')")" \
        "$(query odd.db "select $name from run where point like '%\"%' and seed = 2")"
done
has "its date" "$(json "select $point.runs[0].started_utc')")" '^20[0-9-]{8}T[0-9:]{8}Z$'
is "its git state" "$(json "select $point.runs[0].git')")" "$("$nudma" --version | cut -d ' ' -f 3)"
is "its parameters" "$(json "select $point.parameters.\"workload.transfer_bytes\".value'),
    $point.parameters.\"workload.transfer_bytes\".unit')")" '64|bytes'
is "no format: CSV" "$(export_)" "$(export_ --format csv)"
export_ -o ends.json; is "or as the file ends" "$? $(head -c 1 ends.json)" "0 {"
out=$(export_ -o ends.txt 2>&1); is "if it ends so" "$? $([ -e ends.txt ] && echo there)" "2 "

# Distributions and series: a row for each bucket and sample; in JSON beside the metrics.
export_ --histograms -f transfer_bytes=64 $size >h.csv; is "histograms as CSV" $? 0
is "their columns" "$(head -n 1 h.csv)" $'scenario,op,transfer_bytes,metric,unit,lo,hi,count\r'
is "every sample of every seed" "$(awk -F, '$4 == "latency_ns" && $2 == "read" { n += $8 } END { print n }' h.csv)" \
    "$(query odd.db "select sum(count) from histogram h join run r on r.id = h.run_id where h.name = 'latency_ns'
        and r.point = 'op=read transfer_bytes=64' and r.status = 'done'")"
is "chosen ones" "$(export_ --histograms -m 'latency*' $size | cut -d, -f 4 | sort -u | xargs)" "latency_ns metric"
out=$(export_ --histograms -m latency_nss $size 2>&1)
is "one that is none" "$? $out" '2 --metric: no histogram "latency_nss"; did you mean "latency_ns"?'
out=$(export_ --series $size 2>&1)
is "no series" "$? $out" '2 no series was recorded (measure.sample_interval_us says how often)'
out=$(export_ --series --histograms --format csv 2>&1)
is "two tables in one file" "$? $out" '2 nudma export: --histograms --series: csv has no place for them, json has'
cp a.db series.db
sqlite3 series.db "insert into quantity(name, unit) values('rate_gbit_s', 'Gbit/s')" "insert into series_row
    select r.id, q.id, t.value, t.value * 1000000, r.seed + t.value from run_row r, quantity q,
    (select 0 as value union select 1) t where q.name = 'rate_gbit_s'"
is "series, means over the seeds" "$("$nudma" export --db series.db --series -f 'op=read transfer_bytes=64' | tr -d '\r' |
    tail -n +2)" "$size,read,64,rate_gbit_s,Gbit/s,0,2
$size,read,64,rate_gbit_s,Gbit/s,1000000,3"
"$nudma" export --db series.db --histograms -f transfer_bytes=64 $size >h.csv
"$nudma" export --db series.db --histograms --series -F json -m latency_ns -m 'rate_*' $size >h.json
is "both as JSON" $? 0
is "are the same" "$(python3 - <<'END'
import csv, json
points = json.load(open("h.json"))["points"]
json_rows = [(p["axes"]["op"], *bucket) for p in points for bucket in p["histograms"]["latency_ns"]["lo_hi_count"]
             if p["axes"]["transfer_bytes"] == 64]
csv_rows = [(r["op"], float(r["lo"]), float(r["hi"]), int(r["count"]))
            for r in csv.DictReader(open("h.csv", newline="")) if r["metric"] == "latency_ns"]
print(json_rows == csv_rows, len(csv_rows) > 0, points[0]["series"], points[0]["metrics"])
END
)" "True True {'rate_gbit_s': {'unit': 'Gbit/s', 't_ps_value': [[0, 2], [1000000, 3]]}} {}"

out=$(export_ --format xml 2>&1); is "a format that is none" $? 2
out=$(export_ --format csv --params 2>&1); is "parameters as CSV" $? 2
out=$(export_ --format csv --metric none 2>&1); is "no such metric" $? 2
out=$(export_ --format csv --output none/a.csv 2>&1); is "a folder that is not there" $? 2
out=$(export_ --format csv --output /dev/full 2>&1); is "a full disk" $? 1
has "is said" "$out" 'No space left'
# The database's index of its log takes 32 KiB.
out=$(ulimit -f 40; export_ --format json --params --output cut.json 2>&1)
is "a file that may not grow" $? 1
has "is said" "$out" '^cut.json: File too large'
is "and no part of it is left" "$(find . -name "cut.json*")" ""

# ---- diff ----------------------------------------------------------------------------------------
moved() { # moved FILE SQL-VALUE SQL-CONDITION: a.db with latency_mean_ns changed where it holds
    cp a.db "$1"
    sqlite3 "$1" "update metric_row set value = $2 where quantity_id = (select id from quantity
        where name = 'latency_mean_ns') and run_id in (select id from run where $3)"
}
diff_() { "$nudma" diff "$@"; }
n=$(query a.db "select count(*) from result where metric not like '%.ci95'")
out=$(diff_ a.db a.db --params); is "the same" $? 0
has "is equal" "$out" "^$n values compared: 0 changed .* 0 by less, $n equal; only A has 0, only B has 0$"
has "in its parameters, too" "$out" '^no parameter differs$'
has "by which version" "$out" '^A: a.db \(0\.1'
moved up.db 'value * 1.03' "point = 'op=read transfer_bytes=64'"
out=$(diff_ a.db up.db); is "a change" $? 1
has "is shown with its size" "$out" "^ *\+3% +$read64 +[0-9.]+ +latency_mean_ns \[ns\] +$size op=read transfer_bytes=64$"
has "and counted" "$out" "^$n values compared: 1 changed .* 0 by less, $((n - 1)) equal"
out=$(diff_ a.db up.db --tolerance 5%); is "within the tolerance" $? 0
has "nothing counts" "$out" ' 0 changed by .*\(5 %\), 1 by less'
has "but is there with --all" "$(diff_ a.db up.db -t 0.05 --all)" '^ *\+3% .*\(does not count\)$'
diff_ a.db up.db -t 0.02 >/dev/null; is "a tolerance as a ratio" $? 1
diff_ a.db up.db -m throughput_gbit_s >/dev/null; is "another metric" $? 0
diff_ a.db up.db -f transfer_bytes=2048 >/dev/null; is "other points" $? 0
diff_ up.db a.db >/dev/null; is "down is a change, too" $? 1
out=$(diff_ a.db b.db -m latency_mean_ns); is "a difference within the interval of one seed more" $? 0
has "is said to be" "$out" ' 0 changed .* 1 by less, 3 equal'
moved two.db 'value * 1.2' "point like 'op=read %'"
sqlite3 two.db "update metric_row set value = value * 0.5 where quantity_id = (select id from quantity
    where name = 'latency_mean_ns') and run_id in (select id from run where point =
    'op=write_read transfer_bytes=64')"
is "sorted by size" "$(diff_ a.db two.db | awk '/%.*latency_mean_ns/ { print $NF, $1 }' | head -n 1)" \
    "transfer_bytes=64 -50%"
has "cut at a limit" "$(diff_ a.db two.db --limit 1)" '^\.\.\. and 2 more'
"$nudma" run $size --seeds 3 --db c.db -q --set axes.transfer_bytes=64,128 >/dev/null
out=$(diff_ a.db c.db); is "points that are gone" $? 1
has "are named" "$out" "^only A has $size op=write_read transfer_bytes=2048$"
has "so are new ones" "$out" "^only B has $size op=read transfer_bytes=128$"
diff_ a.db c.db --common >/dev/null; is "unless only common ones are asked for" $? 0
out=$(diff_ a.db c.db -f transfer_bytes=128 2>&1); is "nothing in common" $? 2
"$nudma" run $size --quick --db d.db -q --set workload.window_bytes=4096 >/dev/null
has "parameters that differ" "$(diff_ a.db d.db --params)" \
    "^workload.window_bytes +8192 bytes +4096 bytes +4 +$size$"
out=$(diff_ a.db 2>&1); is "one database" $? 2
out=$(diff_ a.db none.db 2>&1); is "a database that is none" $? 2
has "named" "$out" '^none.db: '
cp a.db far.db
sqlite3 far.db "update metric_row set value = value * 1000 where quantity_id = (select id from quantity
    where name = 'latency_mean_ns')"
has "a large change in figures" "$(diff_ a.db far.db)" '^ *\+99900% '
has "a tolerance of 1 is 100 %" "$(diff_ a.db up.db --tolerance 1)" 'and tolerance \(100 %\)'
has "which the help says" "$("$nudma" diff --help | tr -s ' \n' ' ')" 'so 1 is 100%'
out=$(diff_ a.db up.db --tolerance x 2>&1); is "a tolerance that is none" $? 2
out=$(diff_ a.db up.db --tolerance -1 2>&1); is "a negative one" $? 2
out=$(diff_ a.db up.db -m latency_meam_ns 2>&1); is "a metric that neither has" $? 2
has "the nearest one" "$out" 'did you mean "latency_mean_ns"'
out=$(diff_ a.db up.db -s pcie_benc 2>&1); is "a scenario that neither has" $? 2

# ---- Databases that cannot be read ---------------------------------------------------------------
sqlite3 marked.db "pragma application_id = 1853187181; pragma user_version = 2; create table x(y)"
out=$("$nudma" results --db marked.db 2>&1); is "a database with our marks only" $? 1
has "is none" "$out" '^marked.db: is not a results database'
cp a.db columns.db
sqlite3 columns.db "drop table newest; create table newest(x)"
out=$("$nudma" results --db columns.db $size 2>&1); is "a table with other columns" $? 1
has "cannot be read" "$out" 'cannot be read'
page_bytes=$(query a.db 'pragma page_size')
for object in label quantity run_row newest metric_row setting setting_member; do
    cp a.db cut.db
    page=$(query a.db "select rootpage from sqlite_master where name = '$object'")
    yes garbage | head -c "$page_bytes" |
        dd of=cut.db bs="$page_bytes" seek=$((page - 1)) conv=notrunc status=none
    out=$(diff_ cut.db a.db --params 2>&1); is "$object damaged in A" $? 1
    is "nothing is compared" "$(grep -c 'values compared' <<<"$out")" 0
    diff_ a.db cut.db --params >/dev/null 2>&1; is "$object damaged in B" $? 1
    out=$("$nudma" results $size -m latency_mean_ns --db cut.db 2>&1)
    status=$?
    [ $object = setting ] || [ $object = setting_member ] || # of which the tables need nothing
        is "results says that of $object, and nothing else" \
            "$status $(grep -c 'cannot be read' <<<"$out") $(grep -vc 'cannot be read' <<<"$out")" \
            "1 $(wc -l <<<"$out") 0"
    "$nudma" report $size --db cut.db --output cut.html >cut.txt 2>&1
    is "no report of a damaged $object" "$?$(find . -name 'cut.html*')" 1
done
mkfifo pipe
out=$(timeout 20 "$nudma" run $size --quick -q --db pipe 2>&1); is "results into a pipe" $? 1
has "are refused" "$out" '^pipe: is no regular file'
is "nothing is left beside it" "$(find . -name 'pipe*')" ./pipe

# ---- Links ---------------------------------------------------------------------------------------
ln -s beyond.csv link.csv
export_ --format csv $size --output link.csv; is "through a link to a file to be" $? 0
is "the link stays" "$(readlink link.csv)" beyond.csv
is "the file is there" "$(cmp a.csv beyond.csv && echo same)" same
ln -s circle.csv circle.csv
export_ --format csv $size --output circle.csv 2>/dev/null; is "a link to itself" $? 1

# ---- A report into a pipe ------------------------------------------------------------------------
timeout 60 cat pipe >piped.html &
timeout 60 "$nudma" report $size --db a.db --output pipe >/dev/null; is "a report into a pipe" $? 0
is "the pipe stays" "$([ -p pipe ] && echo pipe)" pipe
wait $!
is "all of it arrives" "$(tail -n 1 piped.html)" "</html>"

# ---- An edited file ------------------------------------------------------------------------------
"$nudma" init mine.cfg >/dev/null
"$simulate" run mine.cfg -q --db edit.db >/dev/null
results() { "$nudma" results "$@" --db edit.db; }
older='^of an older text of the scenario: '
is "as it is" "$(results mine.cfg | grep -c "$older")" 0
is "by its file as by its name" "$(results ./mine.cfg)" "$(results mine)"
sed -i 's/^# The server/# A server/; s/title = "/title = "The /; s/y_min = 0.0/y_min = 1.0/; s/\[64, 256,/[64, 128, 256,/' mine.cfg
is "a comment, a title, a figure, a value of an axis" "$(results mine | grep -c "$older")" 0
sed -i 's/"host_warm"/"cold"/' mine.cfg
has "edited, not run" "$(results mine)" "${older}8 of 8 points$"
"$simulate" run mine.cfg -q --db edit.db -f 'transfer_bytes=64' >ran.txt
has "run in part" "$(results mine)" "${older}6 of 8 points: memory=local transfer_bytes=1024; .*; and 3 more$"
has "plot" "$("$nudma" plot mine.cfg --db edit.db 2>&1 >/dev/null)" "^mine: of an older text of the scenario: 6 of 8"
has "export" "$("$nudma" export mine.cfg --db edit.db -m latency_mean_ns 2>&1 >/dev/null)" \
    "^mine: of an older text of the scenario: 6 of 8"
cat >mine_claims.cfg <<'END'
claims = ( { id = "a.old"; use = "K"; lo = 1.0; hi = 9999.0; published = "600"; text = "not run again";
             expr = "v('mine','memory=local transfer_bytes=256','latency_mean_ns')"; },
           { id = "a.new"; use = "K"; lo = 1.0; hi = 9999.0; published = "600"; text = "run again";
             expr = "v('mine','memory=local transfer_bytes=64','latency_mean_ns')"; } );
END
is "check" "$("$nudma" check mine_claims.cfg --db edit.db | grep "$older")" \
    "of an older text of the scenario: mine memory=local transfer_bytes=256"
mv mine.cfg away.cfg
has "without the file, by the newest" "$(results mine)" "${older}6 of 8 points: "
mv away.cfg mine.cfg
"$simulate" run mine.cfg -q --db edit.db >ran.txt
is "run again" "$(results mine | grep -c "$older")" 0
sed -i 's/memory_socket=1/memory_socket=0/' mine.cfg
has "one variant of an axis" "$(results mine)" "${older}5 of 10 points: memory=remote transfer_bytes=1024; "
out=$("$nudma" check mine.cfg --db edit.db 2>&1); is "a scenario is no file of claims" $? 2
has "is said" "$out" '^mine.cfg: is a scenario, expected a file of claims'
out=$("$nudma" whatif mine.cfg --db edit.db 2>&1); is "nor one of what-ifs" $? 2
is "which is all that is said" "$out" \
    'mine.cfg: is a scenario, expected a file of what-ifs (docs/whatif.md): those of a scenario stand in a file whatif.cfg beside it'
out=$("$nudma" run mine.cfg -q --db nothing.db --run-memory '1 MiB' 2>/dev/null)
is "where no run is done there is no title without a table" "$? $out" "1 "
out=$("$nudma" run mine.cfg -q --stats --db nothing.db --run-memory '1 MiB' 2>/dev/null); is "nor with all metrics" "$? $out" "1 "
"$nudma" run mine.cfg -q --db failed.db -f 'transfer_bytes=64 memory=local' --run-memory '1 MiB' >ran.txt 2>&1
has "a failed run" "$("$nudma" results --db failed.db)" '^failed: mine memory=local transfer_bytes=64: needed more'
out=$("$nudma" results mine --db failed.db 2>&1); is "of a scenario all runs of which failed" $? 1
is "it says why, and that there is nothing else" "$(sort <<<"$out")" \
    "failed: mine memory=local transfer_bytes=64: needed more than the 1 MiB of --run-memory
mine: no results: all runs have failed"
is "export has nothing to write" "$("$nudma" export mine --db failed.db 2>&1) $?" "no results of mine: all runs have failed 2"
mkdir below
is "plot says it, and names the file as it was named" "$(cd below && "$nudma" plot ../mine.cfg --db ../failed.db 2>&1)" \
    "mine: no results of latency_mean_ns in ../failed.db: all runs have failed (nudma results ../mine.cfg says why)"
"$simulate" run pcie_bench/latency_size --filter 'op=read transfer_bytes=64' -q --db failed.db >ran.txt
out=$("$nudma" results mine pcie_bench --db failed.db 2>&1); is "one of two" $? 1
has "shows the other" "$out" '^read +64 '
is "in a database without it plot says what makes it" \
    "$(cd below && "$nudma" plot ../mine.cfg --db ../a.db 2>&1)" \
    "mine: no results of latency_mean_ns in ../a.db (nudma run ../mine.cfg makes them)"
sed -i 's/"cold"/"host_warm"/' mine.cfg
"$simulate" run mine.cfg -q --db failed.db -f 'transfer_bytes=64 memory=local' >ran.txt
is "is no more, once another text has not failed" "$("$nudma" results --db failed.db | grep -c '^failed')" 0

# Of what was sampled it says to which precision; parts of a series are not known to one.
"$simulate" run pcie_bench/bandwidth_size --filter 'op=write transfer_bytes=512' --precision 2% -q --db sampled.db >ran.txt
has "to the precision, below the table" "$("$nudma" results pcie_bench/bandwidth_size --db sampled.db 2>&1 | tail -1)" \
    '^sampled: 1 of 1 points, to 2 %$'
"$simulate" run ioctopus/fig14_migration --filter config=standard --precision 1% --set measure.duration_us=160000 \
    --set measure.sample_interval_us=40000 --set programs.netperf.migrate_after_us=40000 -q --db sampled.db >ran.txt
has "parts of a series" "$("$nudma" results ioctopus/fig14_migration --db sampled.db 2>&1)" \
    '^sampled: 1 of 1 points, parts of their time$'

echo "1..$cases"
[ $failed = 0 ]
