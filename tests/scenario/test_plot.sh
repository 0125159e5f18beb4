#!/usr/bin/env bash
# What figures show: mistakes in `plot` found before anything runs; series, distributions, bars, stacks,
# panels, ratios, and what was published on each of them, as gnuplot gets it.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/scenario/lib.sh
size=pcie_bench/latency_size

# ---- Mistakes ------------------------------------------------------------------------------------
# wrong NAME SCENARIO SED-COMMAND EXPECTED: a copy of a scenario with a mistake in its plot; one
# message, status 2, no database.
wrong() {
    sed "$3" "$NUDMA_SCENARIOS/$2.cfg" >wrong.cfg
    out=$("$nudma" run wrong.cfg --db wrong.db 2>&1)
    is "$1" $? 2
    is "$1: one message" "$(wc -l <<<"$out")" 1
    has "$1: says so" "$out" "^wrong.cfg:[0-9]+: $4"
    is "$1: before anything runs" "$([ -e wrong.db ] && echo there)" ""
}
line=$(grep -n ' y = "latency_mean_ns"' "$NUDMA_SCENARIOS/$size.cfg" | cut -d: -f1)
cat >one.cfg <<'END'
hosts = { server = { }; };
workload = { type = "memory"; };
measure = { warmup_us = 1; duration_us = 20; };
plot = { kind = "bars"; y = "load_latency_ns"; };
END
out=$("$nudma" run one.cfg --list 2>&1); is "no axis to plot along" $? 2
has "says what to do" "$out" '^one.cfg:4: plot: no setting "x", and the scenario has no axes: .* axis of one value'
sed -i 's/plot = {/axes = ( { name = "config"; variants = ( { name = "this"; set = (); } ); } );\n& x = "config";/' one.cfg
out=$("$nudma" run one.cfg --list -q 2>&1); is "which helps" "$? $out" "0 one config=this"
wrong "a metric that none records" $size 's/y = "latency_mean_ns"/y = "latency_maen_ns"/' \
    'plot.y: found "latency_maen_ns" \(a string\), expected a metric that the workload records; did you mean "latency_mean_ns"\?'
has "in its line" "$out" "^wrong.cfg:$line:"
wrong "one of several" $size 's/y = "latency_mean_ns"/y = ["latency_mean_ns", "nfp.dma_read_byte"]/' \
    'plot.y.\[1\]: found "nfp.dma_read_byte" .*did you mean "nfp.dma_read_bytes"\?'
wrong "an axis that is none" $size 's/x = "transfer_bytes"/x = "transfer_byte"/' \
    'plot.x: found "transfer_byte" .*expected an axis, or a metric .*did you mean "transfer_bytes"\?'
wrong "a metric as x" numa/loaded_latency 's/x = "read_gbyte_s"/x = "read_gbytes_s"/' \
    'plot.x: .*did you mean "read_gbyte_s"\?'
wrong "a logarithm of less than nothing" $size 's/y_min = 0.0;/log_y = 10; y_max = -1.0;/' \
    'plot.y_max: found -1 \(a number\), expected more than 0: the axis is logarithmic$'
wrong "bars along a metric" $size 's/log_x = 2;/kind = "bars";/; s/x = "transfer_bytes"/x = "throughput_gbit_s"/' \
    'plot.x: found "throughput_gbit_s" .*expected an axis, at the values of which bars stand; expected one of "op", "transfer_bytes"$'
wrong "no metric with parts" pcie_bench/latency_breakdown 's/y = "latency_part_ns"/y = "latency_parts_ns"/' \
    'plot.y: .*in parts, "<name>.<part>"; did you mean "latency_part_ns"\?'
wrong "series by no axis" $size 's/series = \["op"\]/series = ["opp"]/; /measured/d; /{ series =/d' \
    'plot.series.\[0\]: found "opp" .*did you mean "op"\?'
wrong "measured of no curve" $size 's/series = "op=read"/series = "opp=read"/' \
    'plot.measured.\[0\].series: found "opp=read" .*expected the name of a curve, "op=..."'
wrong "an axis that ends before it begins" $size 's/y_min = 0.0;/y_min = 10; y_max = 5;/' \
    'plot.y_max: found 5 \(an integer\), expected more than y_min, 10$'
wrong "one of no length" $size 's/log_x = 2;/x_min = 64; x_max = 64;/' \
    'plot.x_max: found 64 \(an integer\), expected more than x_min, 64$'
wrong "a share above all" $size '/^plot/,/^};/c\plot = { kind = "cdf"; metric = "latency_ns"; y_min = 2; };' \
    'plot.y_min: found 2 \(an integer\), expected less than y_max, 1$'
wrong "a logarithm to base 1" $size 's/log_x = 2;/log_x = 1;/' \
    'plot.log_x: found 1 \(an integer\), expected 0 \(linear\), or a base of 2..16$'
sed 's/y = "latency_mean_ns"/y = "server.s0.dram_read_bytes"/; s/y_unit = "ns"/y_unit = "MiB"/' "$NUDMA_SCENARIOS/$size.cfg" >good.cfg
"$nudma" run good.cfg --list >/dev/null; is "a statistic of a model" $? 0
sed 's/y = "latency_mean_ns"/y = "latency_maen_ns"/' "$NUDMA_SCENARIOS/$size.cfg" >wrong.cfg
sed -i 's/type = "pcie_bench"/type = "pcie_bentch"/' wrong.cfg
out=$("$nudma" run wrong.cfg 2>&1); is "a point that cannot be built" $? 2
is "is not said to lack metrics" "$(grep -c plot <<<"$out")" 0
out=$("$nudma" describe pcie_bench); is "what a workload records" $? 0
has "is described" "$out" '^ *latency_ns +histogram +ns '
has "so is what all workloads record" "$("$nudma" describe programs)" '^ *interconnect_gbyte_s\.\* +value +GB/s '
is "of programs that is not said" "$("$nudma" describe netperf | grep -c memory_gbyte_s)" 0

# ---- Scenarios without a plot --------------------------------------------------------------------
sed '/^plot/d; /^axes/d' one.cfg >bare.cfg
out=$("$nudma" figures bare.cfg --db bare.db 2>&1); is "a figure of a scenario without a plot" $? 2
none="bare.cfg: no group \`plot\` says what to plot (docs/commands.md has its settings)"
is "is refused in one message" "$out" "$none"
is "before anything runs" "$([ -e bare.db ] && echo there)" ""
out=$("$nudma" figures bare.cfg one.cfg -q --db bare.db -o bare_plots 2>&1); is "beside one with a plot" $? 0
is "it is left out, and said to be" "$out" "$none; left out
bare_plots/one.png
bare_plots/one.svg"
is "and does not run" "$(query bare.db 'SELECT DISTINCT scenario FROM run')" one
is "all that we have can be drawn" "$(cd "$NUDMA_SCENARIOS" && "$nudma" list --names=scenarios | sed 's/$/.cfg/' |
    xargs grep -L '^plot = {')" ""

# ---- Series --------------------------------------------------------------------------------------
# The mean of equal intervals is the rate of all of them; 1 % for what falls into the next one.
"$simulate" run numa/memory_bandwidth pcie_bench/bandwidth_size --quick -q -j2 --db series.db \
    --set measure.sample_interval_us=20 >/dev/null
is "series are recorded" $? 0
is "one sample for each interval, from the first on" "$(query series.db "select distinct
    count(*) * 20000000 = max(t_ps), min(t_ps) from series group by run_id, name")" "1|20000000"
is "their mean is the metric of the same name" "$(query series.db "select count(*), sum(ok) from
    (select abs(avg(s.value) - m.value) <= 0.01 * m.value as ok from series s
     join metric m on m.run_id = s.run_id and m.name = s.name group by s.run_id, s.name)")" "22|22"

# ---- Kinds ---------------------------------------------------------------------------------------
# figure FILE SCENARIO PLOT: a copy of a scenario that shows something else.
figure() {
    sed '/^plot = {/,$d' "$NUDMA_SCENARIOS/$2.cfg" >"$1"
    printf 'plot = { %s };\n' "$3" >>"$1"
}
# script: of the figure in folder/x.cfg, whose results are in kinds.db
script() { "$nudma" plot "$1" --scenarios . --db kinds.db -F gnuplot; }
# values N: the rows of curve N of the script in $out
values() { awk -v name="\\\$curve$1" '$0 == "END" { on = 0 } on { print } $0 ~ "^" name " << END" { on = 1 }' <<<"$out"; }
drawn() { # drawn NAME SCENARIO: both kinds of pictures and text
    "$nudma" plot "$2" --scenarios . --db kinds.db -F png,svg -o pictures >files.txt 2>err.txt
    is "$1: pictures" "$? $(grep -v ': changed by --set' err.txt)" "0 "
    is "$1: PNG" "$(head -c 4 "pictures/$2.png" | tail -c 3)" PNG
    has "$1: SVG" "$(tail -n 2 "pictures/$2.svg")" '</svg>'
    text=$("$nudma" plot "$2" --scenarios . --db kinds.db 2>err.txt)
    is "$1: text" "$? $(grep -v ': changed by --set' err.txt)" "0 "
    is "$1: fits 80 columns" "$(awk 'length > 80 && !/ over /' <<<"$text")" ""
    is "$1: no blanks around it" "$(awk 'NR == 1 && /^ *$/ || / $/' <<<"$text")" ""
}
cd "$scratch" && mkdir p && printf 'x,y\n40,55\n80,56\n' >p/m.csv && printf 'ns,share\n600,0.5\n' >p/cdf.csv
printf 'path,ns\nllc,450\n' >p/stack.csv
bandwidth=numa/memory_bandwidth numa=pcie_bench/latency_numa
figure p/series.cfg $bandwidth 'kind = "series"; metric = "read_gbyte_s"; x_unit = "ns";
    measured = ( { series = "from=s0 to=s1"; file = "p/m.csv"; } );'
figure p/cdf.cfg $numa 'kind = "cdf"; metric = "latency_ns"; x_unit = "us"; filter = "memory=local";
    measured = ( { series = "cache=cold memory=local"; file = "p/cdf.csv"; } );'
figure p/box.cfg $numa 'metric = "latency_ns"; y_unit = "us"; filter = "memory=local"; y_label = "latency";
    panels = ( { kind = "histogram"; }, { kind = "box"; }, { kind = "box"; whiskers = "minmax"; } );'
figure p/bars.cfg $bandwidth 'kind = "bars"; x = "to"; y = "read_gbyte_s"; series = ["from"];
    ratio_labels = "from=s1/from=s0";'
figure p/stack.cfg pcie_bench/latency_breakdown 'kind = "stack"; x = "path"; y = "latency_part_ns";
    measured = ( { file = "p/stack.csv"; } );'
figure p/panels.cfg $size 'x = "transfer_bytes"; log_x = 2; y_min = 0.0;
    ratio_labels = "op=write_read/op=read"; series = ["op"];
    panels = ( { y = "latency_mean_ns"; y_unit = "ns"; title = "Latency"; },
               { y = "throughput_gbit_s"; y_min = 0.5; ratio_labels = ""; },
               { kind = "cdf"; metric = "latency_ns"; filter = "transfer_bytes=64"; } );'
figure p/one.cfg $size 'x = "transfer_bytes"; log_x = 2; ratio_labels = "op=write_read/op=read";
    series = ["op"]; panels = ( { y = "latency_mean_ns"; },
                                { y = "throughput_gbit_s"; filter = "transfer_bytes=8"; } );'
cat >p/claims.cfg <<'CLAIMS'
claims = (
    { id = "level"; use = "K"; expr = "v('p/series','from=s0 to=s0','read_gbyte_s')";
      lo = 50.0; hi = 60.0; published = "55"; text = "a mean"; },
    { id = "quantile"; use = "K"; expr = "v('p/cdf','cache=host_warm memory=local','latency_p99_ns')";
      lo = 900.0; hi = 1000.0; published = "950"; text = "a quantile"; },
    { id = "other"; use = "K"; expr = "v('p/box','cache=cold memory=local','latency_p99_ns')";
      lo = 900.0; hi = 1000.0; published = "950"; text = "no median"; },
    { id = "median"; use = "K"; expr = "v('p/box','cache=host_warm memory=local','latency_p50_ns')";
      lo = 500.0; hi = 600.0; published = "550"; text = "a median"; } );
CLAIMS
"$simulate" run p/bars p/box p/cdf p/stack --scenarios . --db kinds.db -q -j2 --seeds 2 >/dev/null
is "the runs" $? 0
"$simulate" run p/panels --scenarios . --db kinds.db -q -j2 --quick >/dev/null; is "those of panels" $? 0
"$simulate" run p/one --scenarios . --db one.db -q --filter transfer_bytes=64 >/dev/null; is "a single x" $? 0
narrow=$(command script -qec "stty cols 40; '$nudma' plot p/one --scenarios . --db one.db 2>/dev/null" /dev/null </dev/null | tr -d '\r')
is "on a narrow terminal" "$(awk 'length($0) > 40' <<<"$narrow")" ""
has "its title stands in several lines" "$(tr -s ' \n' ' ' <<<"$narrow")" "$(sed -n 's/^title = "\(.*\)";/\1/p' p/one.cfg)"
"$nudma" plot p/one --scenarios . --db one.db -F png,svg -o pictures >/dev/null 2>one.txt
is "can be drawn, all ratios on one side" $? 0
is "its PNG" "$(head -c 4 pictures/p/one.png | tail -c 3)" PNG
has "a panel without results is said to have none" "$(cat one.txt)" \
    '^p/one: no results of throughput_gbit_s where transfer_bytes=8 in one.db'
is "and is all that is said" "$(wc -l <one.txt)" 1
is "and left out" "$("$nudma" plot p/one --scenarios . --db one.db -F gnuplot 2>/dev/null | grep -c '^plot ')" 1
figure p/metric.cfg $size 'x = "latency_mean_ns"; y = "latency_mean_ns"; series = ["op"]; filter = "op=read transfer_bytes=64";'
"$simulate" run p/metric --scenarios . --db one.db -q --filter 'op=read transfer_bytes=64' >/dev/null
has "of a single value that is measured there are six digits" \
    "$("$nudma" plot p/metric --scenarios . --db one.db -F gnuplot 2>/dev/null)" "^set xtics \('[0-9.]{1,7}' "
# Of nine points the last one's label stands below it, not beside it, where the one before stands.
figure p/edge.cfg $size 'x = "transfer_bytes"; x_min = 4.8; x_max = 75.2; y = "latency_mean_ns"; series = ["op"];
    ratio_labels = "op=write_read/op=read";'
sed -i 's/values = \[8, 16, .*\];/values = [8, 16, 24, 32, 40, 48, 56, 64, 72];/; s/^quick = .*//' p/edge.cfg
"$simulate" run p/edge --scenarios . --db one.db -q >/dev/null
is "labels beside each other" "$("$nudma" plot p/edge --scenarios . --db one.db -F gnuplot 2>/dev/null |
    grep -o 'labels boxed [a-z]*' | sort | uniq -c | xargs)" "9 labels boxed center"
figure p/relative.cfg $size 'x = "transfer_bytes"; series = ["op"]; y = "latency_mean_ns"; normalised = true;'
"$simulate" run p/relative --scenarios . --db one.db -q --filter 'transfer_bytes=8 || transfer_bytes=64' >/dev/null
"$nudma" plot p/relative --scenarios . --db one.db -F gnuplot 2>/dev/null >relative.txt
is "curves relative to their first value begin with 1" "$(grep -Ec '^8 1( |$)' relative.txt)" 2
is "and go on from there" "$(grep -Ec '^64 1\.[0-9]+( |$)' relative.txt)" 2
"$nudma" run p/relative --scenarios . --db late.db -q --filter 'transfer_bytes=64 || op=read transfer_bytes=8' >/dev/null
"$nudma" plot p/relative --scenarios . --db late.db -F gnuplot >relative.txt 2>late.txt
is "a curve without its first value is left out" "$(grep -Ec '^64 [0-9.]+( |$)' relative.txt) \
$(grep -c '^64 1$' relative.txt)" "1 0"
has "and that is said" "$(cat late.txt)" '^p/relative: latency_mean_ns of op=write_read is normalised to its value at transfer_bytes=8, of which'
figure p/to.cfg $size 'x = "transfer_bytes"; series = ["op"]; y = "latency_mean_ns"; relative_to = "op=read";'
"$simulate" run p/to --scenarios . --db to.db -q --filter 'op=read transfer_bytes=8 || transfer_bytes=64' >/dev/null
"$nudma" plot p/to --scenarios . --db to.db -F gnuplot >relative.txt
is "curves relative to another: that one is 1" "$(grep -Ec '^(8|64) 1( |$)' relative.txt)" 2
is "and the other stands where both have a value" "$(grep -Ec '^64 1\.[0-9]+( |$)' relative.txt) \
$(grep -c '^8 ' relative.txt)" "1 1"
"$nudma" run p/to --scenarios . --db none.db -q --filter 'op=write_read' >/dev/null
"$nudma" plot p/to --scenarios . --db none.db -F gnuplot >relative.txt 2>none.txt
has "without it there is nothing to show" "$(cat none.txt)" '^p/to: latency_mean_ns is shown relative to op=read, of which'
figure p/slow.cfg $size 'x = "transfer_bytes"; series = ["op"]; slowdown = true;
    y = ["latency_mean_ns", "throughput_gbit_s"]; relative_to = ["op=read", "transfer_bytes=8"];'
"$simulate" run p/slow --scenarios . --db slow.db -q --filter 'transfer_bytes=8 || transfer_bytes=64' >/dev/null
"$nudma" plot p/slow --scenarios . --db slow.db -F gnuplot >relative.txt
is "slowdowns: against another curve at the same x, against the own one at 8 bytes" "$(grep -Ec '^8 1( |$)' relative.txt) \
$(grep -Ec '^64 1( |$)' relative.txt) $(grep -Ec '^64 0\.[0-9]+( |$)' relative.txt)" "3 1 3"
figure p/common.cfg $size 'x = "transfer_bytes"; y = ["latency_mean_ns", "throughput_gbit_s"]; filter = "op=read";'
figure p/said.cfg $size 'x = "transfer_bytes"; y = ["latency_mean_ns", "throughput_gbit_s"];
    panels = ( { filter = "op=read"; title = "reads"; }, { filter = "op=read"; } );'
"$simulate" run p/common p/said --scenarios . --db common.db -q --quick >/dev/null
out=$("$nudma" plot p/common p/said --scenarios . --db common.db -F gnuplot | grep -o "title '[^']*'")
is "what all curves are of stands in the title, but where that has been chosen and named" "$(paste -sd ' ' <<<"$out")" \
    "title 'DMA latency over transfer size (read)' title 'latency_mean_ns' title 'throughput_gbit_s' \
title 'DMA latency over transfer size' title 'reads' title 'read' title 'latency_mean_ns' title 'throughput_gbit_s'"
row=$("$nudma" plot p/said --scenarios . --db common.db -F gnuplot)
is "a legend of the row, below its panels" "$(grep -c '^plot NaN with linespoints .*latency_mean_ns.*, NaN with .*throughput_gbit_s' <<<"$row")" 1
# shellcheck disable=SC2016 # a name of gnuplot
is "is in no panel" "$(grep '^plot \$curve' <<<"$row" | grep -c "title '")" 0
figure p/left.cfg $size 'x = "transfer_bytes"; series = ["op"]; y = "latency_mean_ns"; title = "All";
    panels = ( { filter = "transfer_bytes=8"; }, { title = "small, all of them"; filter = "transfer_bytes<64"; },
               { title = "of 64"; filter = "transfer_bytes=64"; } );'
"$simulate" run p/left --scenarios . --db one.db -q --filter transfer_bytes=64 >/dev/null; is "points of one panel" $? 0
out=$("$nudma" plot p/left --scenarios . --db one.db -F gnuplot 2>one.txt); is "of three" $? 0
has "which keeps its title" "$out" "^set title 'All: of 64'"
is "the others are said in a line" "$(cat one.txt)" "p/left: no results of latency_mean_ns where \
transfer_bytes=8; \"small, all of them\" where transfer_bytes<64 in one.db (nudma run p/left makes them)"
out=$("$nudma" plot p/panels --scenarios . --db one.db -F gnuplot 2>&1); is "no panel at all" $? 1
is "takes a line, too" "$out" "p/panels: no results in one.db (nudma run p/panels makes them)"
rm p/left.cfg
mkdir other && figure other/mixed.cfg $size 'x = "transfer_bytes"; y = "latency_mean_ns"; series = [];'
"$nudma" run mixed --scenarios other --db mixed.db -q --quick >/dev/null; is "of an axis left out" $? 0
"$nudma" plot mixed --scenarios other --db mixed.db >/dev/null 2>mixed.txt; is "which are drawn" $? 0
has "with a warning" "$(cat mixed.txt)" '^mixed: curves have several points .* differ in op:'
rm -r other
"$simulate" run p/series --scenarios . --db kinds.db -q -j2 --set measure.sample_interval_us=10 >/dev/null
is "and that of series" $? 0
# the scenario says the interval itself where it is plotted, too
sed -i 's/^measure = { */&sample_interval_us = 10; /' p/series.cfg

out=$(script p/series); is "a series" $? 0
is "has all samples, in the unit asked for" "$(values 0 | awk 'NR == 1 { a = $1 } END { print a, $1, NR }')" \
    "10000 100000 10"
is "each as recorded" "$(values 0 | awk '{ printf "%.6g ", $2 }')" "$(query kinds.db "select
    group_concat(printf('%.6g', value), ' ') || ' ' from (select * from series s join run r on r.id = s.run_id
    where r.point = 'from=s0 to=s0' and name = 'read_gbyte_s' order by t_ps)")"
has "its unit from the database" "$out" "set ylabel 'read \[GB/s\]'"
is "what was measured beside it" "$(values 4 | awk '{ print $1, $2 }')" "40 55
80 56"
is "and a published mean as a level" "$(values 5 | awk '{ print $1, $2 }')" "10000 55
100000 55"
has "dashed" "$out" 'curve5 using 1:2 with lines .* dt 2'
drawn "a series" p/series

out=$(script p/cdf); is "a distribution" $? 0
is "from 0 to 1, never down" "$(values 0 | awk 'NR == 1 { print $2 } $2 < last || $1 < x { print "down" }
    { last = $2; x = $1 } END { print last }')" "0
1"
has "times have decimal tics along a logarithmic axis" \
    "$(sed 's/x_unit = "us";/x_unit = "ns"; log_x = 2; x_min = 100.0;/' p/cdf.cfg >p/log.cfg; cp p/cdf.cfg p/cdf.bak
    mv p/log.cfg p/cdf.cfg; script p/cdf; mv p/cdf.bak p/cdf.cfg)" "set xtics \('100' 100, '200' 200, '500' 500"
median=$(query kinds.db "select avg(mean) from result where scenario = 'p/cdf'
    and point = 'cache=cold memory=local' and metric = 'latency_mean_ns'")
is "in the unit asked for, about the mean" "$(values 0 | awk -v mean="$median" '$2 >= 0.5 {
    print ($1 * 1000 > 0.9 * mean && $1 * 1000 < 1.1 * mean); exit }')" 1
n=$(query kinds.db "select sum(count) from histogram h join run r on r.id = h.run_id
    where r.scenario = 'p/cdf' and r.point = 'cache=cold memory=local'")
is "of all seeds" "$(values 0 | awk -v n="$n" 'NR == 2 { printf "%d", $2 * n + 0.5 }')" \
    "$(query kinds.db "select sum(count) from histogram h join run r on r.id = h.run_id
        where r.scenario = 'p/cdf' and r.point = 'cache=cold memory=local' and lo = (select min(lo)
        from histogram h join run r on r.id = h.run_id where r.scenario = 'p/cdf'
        and r.point = 'cache=cold memory=local')")"
is "of the points of the filter" "$(grep -o "with steps lc rgb '[^']*' [^']*title '[a-z_ ]*'" <<<"$out" | wc -l)" 2
has "what they have in common stands in the title" "$out" "^set title '.* \(local\)'"
is "measured points" "$(values 2 | awk '{ print $1, $2 }')" "600 0.5"
is "and a published quantile" "$(values 3 | awk '{ printf "%.6g %g", $1, $2 }')" "0.95 0.99"
drawn "a distribution" p/cdf
cp kinds.db whole.db
sqlite3 kinds.db "create temp table r as select id from run where scenario = 'p/cdf'
        and point = 'cache=cold memory=local';
    delete from histogram_row where run_id in (select id from r);
    insert into histogram_row select r.id, q.id, b.column1, b.column2, b.column3 from r,
        (select id from quantity where name = 'latency_ns') q,
        (values (500, 504, 1), (504, 508, 2), (1500, 1508, 1)) b"
out=$(script p/cdf)
is "level where there are no samples" "$(values 0 | awk '{ printf "%g %g\n", $1, $2 }' | paste -sd ' ')" \
    "0.5 0 0.504 0.25 0.508 0.75 1.5 0.75 1.508 1"
mv whole.db kinds.db

# ---- Where pictures go ---------------------------------------------------------------------------
out=$("$nudma" plot p/one --scenarios . --db one.db -o one.png 2>/dev/null); is "one picture in a file" "$? $out" "0 one.png"
is "of the format that its name says" "$(head -c 4 one.png | tail -c 3)" PNG
output() { # output NAME MESSAGE ARGUMENT...: which are refused
    out=$("$nudma" plot p/one --scenarios . --db one.db "${@:3}" 2>&1)
    is "$1" "$?, $(tail -n 1 <<<"$out")" "2, $2"
}
output "of another format" 'nudma plot: --output x.svg: found --format png, expected that of the file'"'"'s name; several need a folder' -o x.svg -F png
output "of a kind that is not drawn" 'nudma plot: --output x.jpg: expected FILE.png, FILE.svg or a folder' -o x.jpg -F png
output "of one in capitals" 'nudma plot: --output x.PNG: expected FILE.png, FILE.svg or a folder' -o x.PNG -F png
output "of several scenarios" '--output x.svg: one file for the pictures of 2 scenarios, expected a folder' pcie_bench/latency_size -o x.svg
output "a folder for what goes to standard output" \
    'nudma plot: --output x: found --format text, expected png, svg: text and scripts go to standard output' -o x
out=$("$nudma" figures p/one --scenarios . --db one.db -o x.png 2>&1)
is "figures need a folder" "$? $out" '2 nudma figures: --output x.png: is the name of one picture, expected a folder (nudma plot writes one)'
is "nothing is written" "$(ls -d x* 2>/dev/null)" ""

# ---- Histograms and boxes ------------------------------------------------------------------------
# block N NAME: of panel N of the script in $out
block() { awk -v n="$1" -v name="\\\$$2" '/^reset$/ { panel++ } $0 == "END" { on = 0 } on { print }
    $0 ~ "^" name " << END" && panel + 0 == n { on = 1 }' <<<"$out"; }
# The shares of all bins of curve 0 of a histogram: the outline has two points for each.
share() { block 0 curve0 | awk 'NR > 1 && NR % 2 == 0 { sum += $1 } END { printf "%.4g", sum }'; }
out=$(script p/box); is "a histogram beside boxes" $? 0
is "the median is about the mean" "$(block 2 boxes | awk -v mean="$median" '
    NR == 1 { d = $4 * 1000 / mean; print (d > 0.9 && d < 1.1) }')" 1
is "boxes are in order, whiskers at the ends" "$(block 2 boxes | awk '{ print $2 == $7 && $2 <= $3 && $3 <= $4 &&
    $4 <= $5 && $5 <= $6 && $6 == $8 }' | uniq)" 1
is "a published median stands at its box" "$(block 1 curve2)" "1 0.55000000000000004"
is "and nothing else is published" "$(block 1 curve3)" ""
is "the panels have the same axis" "$(grep '^set yrange' <<<"$out" | head -n 2 | uniq | wc -l)" 1
has "the label says how far whiskers reach" "$out" "^set xlabel 'quartiles, median; whiskers: 1.5 IQR'"
has "or that they reach the ends" "$out" "^set xlabel 'quartiles, median; whiskers: lowest, highest'"
drawn "a histogram and boxes" p/box
has "in text, too" "$text" '^  cold +0\.[0-9]+ .*#'
has "with the title" "$text" 'remote memory \(local\): latency'
cp kinds.db whole.db
sqlite3 kinds.db "create temp table r as select id from run where scenario = 'p/box'
        and point = 'cache=cold memory=local';
    delete from histogram_row where run_id in (select id from run where scenario = 'p/box');
    insert into histogram_row select r.id, q.id, b.column1, b.column2, b.column3 from r,
        (select id from quantity where name = 'latency_ns') q,
        (values (500, 504, 1), (504, 508, 2), (1500, 1508, 1)) b"
out=$(script p/box)
is "whiskers within 1.5 interquartile ranges" "$(block 1 boxes | awk '{ printf "%g %g %g %g %g %g %g", $2 * 1000,
    $3 * 1000, $4 * 1000, $5 * 1000, $6 * 1000, $7 * 1000, $8 * 1000 }')" "500 504 506 508 508 500 1508"
is "or at the ends" "$(block 2 boxes | awk '{ printf "%g %g", $2 * 1000, $6 * 1000 }')" "500 1508"
is "what lies beyond the axis is left out, but counts" "$(share)" 75
is "a bin is no narrower than a bucket" "$(block 0 curve0 | awk 'NR == 2 { lo = $2 } NR == 3 { print ($2 - lo >= 0.0039999) }')" 1
has "what the axis does not reach stands at the box" "$out" "^set label '[^']* 1.508' at first 0, graph 0.975 center"
has "and in the legend of a histogram" "$out" "title 'cold local .not shown: 25 % up to 1.508.'"
has "and in text" "$("$nudma" plot p/box --scenarios . --db kinds.db)" "cold local, beyond the axis: 25 % up to 1.508 us"
# Metrics that are of the samples themselves: half of them are 505, none is below 502 or above 1503.
sqlite3 kinds.db "insert or ignore into quantity(name, unit)
        values ('latency_min_ns', 'ns'), ('latency_p50_ns', 'ns'), ('latency_max_ns', 'ns');
    insert into metric_row(run_id, quantity_id, value) select r.id, q.id, b.column2 from run r, quantity q,
        (values ('latency_min_ns', 502), ('latency_p50_ns', 505), ('latency_max_ns', 1503)) b
        where r.scenario = 'p/box' and r.point = 'cache=cold memory=local' and q.name = b.column1"
out=$(script p/box)
is "quantiles that were recorded" "$(block 2 boxes | awk '{ printf "%g %g %g %g %g", $2 * 1000,
    $3 * 1000, $4 * 1000, $5 * 1000, $6 * 1000 }')" "502 504 505 508 1503"
figure p/box.cfg $numa 'metric = "latency_ns"; y_unit = "us"; filter = "memory=local"; y_min = 0.4; y_max = 1.6; kind = "histogram";'
out=$(script p/box); is "bounds that are given" "$(grep -c '^set yrange \[0.40*[0-9]*:1.60*[0-9]*\]' <<<"$out") $(share)" "1 100"
drawn "a histogram alone" p/box
figure p/box.cfg $numa 'metric = "latency_ns"; kind = "histogram"; log_y = 10; filter = "memory=local";'
out=$(script p/box); has "a logarithmic axis" "$out" '^set logscale y 10'
is "with bins of equal ratios" "$(block 0 curve0 | awk 'NR % 2 == 0 { lo = $2 } NR > 1 && NR % 2 { printf "%.4f\n", $2 / lo }' | sort -u | wc -l)" 1
mv whole.db kinds.db

out=$(script p/bars); is "bars" $? 0
ratio() { query kinds.db "select printf('%.2f', a.mean / b.mean) from result a join result b
    on b.scenario = a.scenario and b.metric = a.metric where a.scenario = '$1' and a.metric = '$2'
    and a.point = '$3' and b.point = '$4'"; }
is "ratios on those compared" "$(awk '/^END/ { on = 0 } on { gsub(/"/, "", $3); print $3 } /^\$ratios/ { on = 1 }' <<<"$out" | paste -sd ' ')" \
    "$(ratio p/bars read_gbyte_s 'from=s1 to=s0' 'from=s0 to=s0') $(ratio p/bars read_gbyte_s 'from=s1 to=s1' 'from=s0 to=s1')"
drawn "bars" p/bars
has "in text, too" "$text" "^ +socket 1 +[0-9.]+ +#+ $(ratio p/bars read_gbyte_s 'from=s1 to=s0' 'from=s0 to=s0')$"

out=$(script p/stack); is "a stack" $? 0
has "what was measured stands on it" "$out" "with points .* title 'measured'"
is "and is no part of it" "$(grep '^plot ' <<<"$out" | tr , '\n' | grep bars | grep -c measured)" 0
is "and stand in the legend" "$(grep -c 'NaN with boxes' <<<"$out")" 1
drawn "a stack" p/stack
has "beside it" "$text" '^ +measured +450 +-+$'
part() { tr , '\n' <<<"$out" | grep -o "rgb '[^']*' fs solid 0.9 title '$1'"; }
parts() { grep -o "$1 .*" <<<"$out" | tr , '\n' | grep "$1" | grep -o "rgb '[^']*'"; } # parts WHAT: their colours in order
is "its legend runs from the top of the stack to the bottom" "$(parts 'NaN with boxes')" \
    "$(parts '[$]bars using' | tac | grep -Fxf <(parts 'NaN with boxes'))"
dram=$(part DRAM)
has "another is of two words" "$out" "title 'root complex'"
has "dram is a part" "$dram" "title 'DRAM'"
has "and that of text has its letters" "$("$nudma" plot p/stack --scenarios . --db kinds.db)" '^  A=.*, [A-Z]=link'
cp kinds.db whole.db
sqlite3 kinds.db "update metric_row set value = 0 where quantity_id in (select id from quantity
    where name in ('latency_part_ns.device', 'latency_part_ns.link'))"
out=$(script p/stack)
is "it keeps its colour without the parts before it" "$(part DRAM)" "$dram"
sqlite3 kinds.db "update metric_row set value = 0.001 where quantity_id = (select id from quantity
    where name = 'latency_part_ns.link')"
out=$(script p/stack)
is "a part too small to be seen is not in the legend" "$(part link)" ""
is "nor in that of text" "$("$nudma" plot p/stack --scenarios . --db kinds.db | grep -c '^ .*[A-Z]=link')" 0
mv whole.db kinds.db; cp kinds.db whole.db
sqlite3 kinds.db "update metric_row set value = 0 where run_id in (select id from run where scenario = 'p/stack'
    and point = 'path=dram') and quantity_id in (select id from quantity where name like 'latency_part_ns.%')"
has "a stack of nothing is there" "$("$nudma" plot p/stack --scenarios . --db kinds.db)" '^ +dram +0$'
mv whole.db kinds.db

# Of more bars than names fit: what is as at the bar before is left out, and every second one.
mkdir m
many() { # many NAME SIZE...: the first column of the bars
    figure "m/$1.cfg" $size 'kind = "stack"; x = "transfer_bytes"; y = "latency_part_ns";'
    sed -i "s/\(name = \"transfer_bytes\".*values = \)\[[^]]*\]/\1[$(paste -sd, <<<"${*:2}" | tr ' ' ,)]/
        s/transactions = [0-9]*/transactions = 1/; /^quick/d" "m/$1.cfg"
    "$simulate" run "m/$1" --scenarios . --db many.db -q >/dev/null 2>&1
    # shellcheck disable=SC2016 # names of gnuplot
    "$nudma" plot "m/$1" --scenarios . --db many.db -F gnuplot | sed -n '/^$bars/,/^END/s/^"\([^"]*\)".*/\1/p' | paste -sd,
}
is "few bars have whole names" "$(many few 8 1024 2048)" "read 8,read 1024,read 2048,write read 8,write read 1024,write read 2048"
is "many have short ones" "$(many more 8 16 32 1024 2048)" "read 8,16,32,1Ki,2Ki,write read 8,16,32,1Ki,2Ki"
middle=$(seq -s ,, 24 16 168)
# shellcheck disable=SC2046 # a word each
is "or none, as has the last before a whole one" "$(many most $(seq 8 8 184))" "read 8,,$middle,,,write read 8,,$middle,,184"
has "numbers are written out" "$(script p/panels)" "^set format y '% .10g'"

out=$(script p/panels); is "panels" $? 0
has "side by side" "$out" "^set multiplot layout 1,3 title "
is "one plot each" "$(grep -c '^plot ' <<<"$out")" 3
is "as high as each other" "$(grep '^set bmargin' <<<"$out" | sort | uniq -c | awk '{ print $1 }')" 3
has "what the numbers are" "$out" "title 'numbers: write read over read'"
is "labels where they are asked for" "$(grep -c 'with labels' <<<"$out")" 1
is "settings of the figure where x is the same" "$(grep -c '^set logscale x 2' <<<"$out")" 2
is "or their own" "$(grep '^set yrange' <<<"$out" | paste -sd ' ')" "set yrange [0:] set yrange [0.5:] set yrange [0:1]"
want=$(ratio p/panels latency_mean_ns 'op=write_read transfer_bytes=64' 'op=read transfer_bytes=64')
has "the ratio of two curves" "$(values 1 | awk '$4 { printf "%.2f\n", $4 }')" "^$want$"
drawn "panels" p/panels
has "one below the other" "$text" 'DMA latency over transfer size: Latency'
has "ratios below" "$text" "^numbers: write read over read: 64 $want, 2048 "
rm -f wrong.cfg good.cfg
"$nudma" report p --scenarios . --db kinds.db -o r.html >/dev/null; is "a report" $? 0
is "has every panel" "$(grep -c '<figure>' r.html)" $((1 + 1 + 1 + 1 + 1 + 3 + $(query kinds.db "select count(distinct
    scenario) from result where metric like 'latency_part_ns.%' and mean > 0 and scenario <> 'p/stack'") + \
    $(grep -c 'class="topology"' r.html)))

# ---- What was published ------------------------------------------------------------------------------
# Of results that are written down here: what the line says can be told without a run.
mkdir f && figure f/fig07_reads.cfg $size 'x = "transfer_bytes"; y = "latency_mean_ns"; series = ["op"]; filter = "transfer_bytes<=64";'
figure f/panels.cfg $size 'x = "transfer_bytes"; y = "latency_mean_ns"; series = ["op"]; panels = (
    { filter = "op=read"; title = "a"; }, { filter = "op=write_read"; title = "b"; }, { title = "both"; } );'
cat >f/claims.cfg <<'CLAIMS'
paper = "Somebody";
claims = (
    { id = "f.ratio"; use = "K"; expr = "v('f/fig07_reads','op=write_read transfer_bytes=64','latency_mean_ns')/v('f/fig07_reads','op=read transfer_bytes=64','latency_mean_ns')";
      lo = 1.2; hi = 1.6; published = "1.5"; text = "a ratio"; },
    { id = "f.point"; use = "K"; expr = "v('f/fig07_reads','op=read transfer_bytes=64','latency_mean_ns')";
      lo = 700.0; hi = 800.0; published = "700-800"; text = "misses"; },
    { id = "f.none"; use = "K"; expr = "v('f/fig07_reads','op=read transfer_bytes=8','latency_mean_ns')";
      lo = 700.0; hi = 800.0; published = "750"; text = "no results"; },
    { id = "f.other"; use = "K"; expr = "v('p/bars','from=s0 to=s0','read_gbyte_s')/v('f/fig07_reads','op=read transfer_bytes=64','latency_mean_ns')";
      lo = 0.0; hi = 1.0; published = "<1"; text = "stands with another scenario"; },
    { id = "f.put"; use = "K"; expr = "(select max(v('f/panels','op=read transfer_bytes='||column1,'latency_mean_ns')) from (values ('64')))";
      lo = 0.0; hi = 1000.0; published = "<1000"; text = "of a point that is put together"; } );
CLAIMS
"$nudma" run f --scenarios . --db f.db -q --filter transfer_bytes=64 >/dev/null; is "a figure of a paper" $? 0
sqlite3 f.db "update metric_row set value = case (select point from run where id = run_id)
    when 'op=read transfer_bytes=64' then 500 else 700 end
    where quantity_id = (select id from quantity where name = 'latency_mean_ns')"
out=$("$nudma" plot f --scenarios . --db f.db -F gnuplot); is "as a script" $? 0
has "its title names paper and figure" "$out" "^set title 'Somebody, figure 7: DMA latency over transfer size'"
line="1 of 3 published values hold, 1 without results: point 500, published 700-800 (700 to 800; misses);"
has "below it stands whether claims hold, the misses first" "$out" "^set label '${line//[()]/.}"
sed 's/lo = 700.0; hi = 800.0; published = "700/lo = 500.04; hi = 800.0; published = "700/' f/claims.cfg >narrow.cfg
cp f/claims.cfg claims.old && cp narrow.cfg f/claims.cfg
has "with as many digits as it takes to see a miss" "$("$nudma" plot f --scenarios . --db f.db -F gnuplot)" \
    'point 500, published 700-800 .500.04 to 800; misses'
mv claims.old f/claims.cfg
has "then the others" "$out" "; ratio 1.4, published 1.5 .1.2"
has "a claim that is a ratio is a number at the point" "$out" '^64 700 .* "1.40 .1.5."$'
has "of which the legend says what it is" "$out" "title 'numbers: write read over read .published.'"
has "and a mark where the point would be" "$out" "^64 7(50|49.9)[0-9.]* 0 0 7(50|49.9)[0-9.]* 7(50|49.9)[0-9.]* \"\"$"
has "beside it" "$out" "using .\\\$1 . [0-9.]+.:2:5:6 with yerrorbars .* title 'by the published ratio'"
has "a range is a bar" "$out" "^64 750 0 0 700 800 "
out=$("$nudma" plot f --scenarios . --db f.db)
has "in text, too" "$out" '^numbers: write read over read .published.: 64 1.40 .1.5.$'
has "so it does in text" "$(paste -sd ' ' <<<"$out" | tr -s ' ')" "${line//[()]/.} ratio 1.4, published 1.5 .1.2 to 1.6."
is "which fits 80 columns" "$(awk 'length > 80' <<<"$out")" ""
"$nudma" report f --scenarios . --db f.db -o f.html >/dev/null; is "and in the report" "$? $(grep -c 'class="published">1 of 3 published' f.html) \
$(grep -c '>Somebody, figure 7: DMA latency' f.html)" "0 1 2"

# ---- Names and sizes -----------------------------------------------------------------------------
# Identifiers become words, and sizes have prefixes; labels and y_label come first.
figure p/words.cfg $size 'x = "transfer_bytes"; x_unit = "B"; log_x = 2; y = "latency_mean_ns"; y_unit = "ns"; filter = "transfer_bytes=2048";'
"$nudma" run p/words --scenarios . --db words.db -q --filter transfer_bytes=2048 >/dev/null
out=$("$nudma" plot p/words --scenarios . --db words.db -F gnuplot)
has "an axis without a label" "$out" "^set ylabel 'latency mean \[ns\]'$"
has "a value" "$out" "title 'write read'"
has "the one place along x" "$out" "^set xtics \('2Ki' 2048\)$"
sed -i 's/plot = {/& kind = "bars";/; s/log_x = 2;//; s/filter = "[^"]*";/filter = "op=write_read"; series = [];/' p/words.cfg
out=$("$nudma" plot p/words --scenarios . --db words.db -F gnuplot)
has "sizes below bars" "$out" '^"2Ki" '
has "bars of one metric" "$out" "title 'latency mean'"
four=$(printf '{ title = "%s"; filter = "op=read"; }, ' a b c d)
figure p/four.cfg $size "x = \"transfer_bytes\"; y = \"latency_mean_ns\"; panels = ( ${four%, } );"
"$nudma" run p/four --scenarios . --db words.db -q --filter transfer_bytes=2048 >/dev/null
for bound in 'y_max = 100;' 'y_min = 90000;' 'y_max = 100; log_y = 10;' 'y_min = 90000; log_y = 10;' 'y_max = 0;'; do
    figure p/words.cfg $size "x = \"transfer_bytes\"; y = \"latency_mean_ns\"; $bound"
    "$nudma" plot p/words --scenarios . --db words.db -F svg -o beyond >/dev/null 2>err.txt
    is "all values beyond $bound" "$? $(grep -v 'of an older text' err.txt)" "0 "
done
# Intervals of seeds that differ much reach below 0, where no value of a time is.
figure p/zero.cfg $size 'x = "transfer_bytes"; y = "latency_mean_ns"; panels = ( { filter = "op=read"; }, { filter = "op=write_read"; } );'
"$nudma" run p/zero --scenarios . --db zero.db --seeds 2 -q --filter 'transfer_bytes=64' >/dev/null
sqlite3 zero.db "update metric_row set value = case (select seed from run where id = run_id) when 1 then 0 else 90000 end
    where quantity_id = (select id from quantity where name = 'latency_mean_ns')"
out=$("$nudma" plot p/zero --scenarios . --db zero.db -F gnuplot 2>/dev/null)
is "an axis that two share ends at 0 where an interval alone is below" "$(grep -c '^set yrange \[0:[1-9]' <<<"$out")" 2
sed -i 's/panels = .*);/filter = "op=read";/' p/zero.cfg
out=$("$nudma" plot p/zero --scenarios . --db zero.db -F gnuplot 2>/dev/null)
has "so does another, which reaches the other end" "$out" '^set yrange \[0:[5-9][0-9.]+e?[+0-9]*<\*\]$'
sed -i 's/plot = {/& kind = "bars";/' p/zero.cfg
out=$("$nudma" plot p/zero --scenarios . --db zero.db -F gnuplot 2>/dev/null)
has "and that of bars" "$out" '^set yrange \[0:[5-9][0-9.]+e?[+0-9]*<\*\]$'
sqlite3 zero.db "update metric_row set value = value - 1 where quantity_id = (select id from quantity where name = 'latency_mean_ns')
    and run_id in (select id from run where seed = 1)"
sqlite3 zero.db "update metric_row set value = -value where quantity_id = (select id from quantity where name = 'latency_mean_ns')"
out=$("$nudma" plot p/zero --scenarios . --db zero.db -F gnuplot 2>/dev/null)
has "values below 0 are shown" "$out" '^set yrange \[:\]$'
is "four panels stand in two rows" "$("$nudma" plot p/four --scenarios . --db words.db -F gnuplot |
    grep '^set origin 0[.][0-9.]*,[0-9.]*$' | sort -u | wc -l)" 4

# ---- Panels beside each other ----------------------------------------------------------------------
out=$("$nudma" plot f/panels --scenarios . --db f.db -F gnuplot)
is "a name has one colour in all panels" "$(grep -o "rgb '[^']*' [^']*title '[rw][a-z_ ]*'" <<<"$out" |
    sed "s/' .* title '/ /" | sort | uniq -c | awk '{ print $1 }' | paste -sd ' ')" "2 2"
is "what is compared has one axis" "$(grep '^set yrange' <<<"$out" | sort | uniq -c | awk '{ print $1 }')" 3
has "a claim whose point is put together stands with its scenario" "$out" "1 of 1 published value holds: put [0-9.]+, published <1000"
is "no curve hides another" "$(grep -c ' dt (' <<<"$out")" 0
sqlite3 f.db "update metric_row set value = case (select point from run where id = run_id)
    when 'op=read transfer_bytes=64' then 100 else 700 end where run_id in (select id from run where scenario = 'f/panels')
    and quantity_id = (select id from quantity where name = 'latency_mean_ns')"
out=$("$nudma" plot f/panels --scenarios . --db f.db -F gnuplot)
is "unless one could not be read on it" "$(grep '^set yrange' <<<"$out" | uniq -c | awk '{ print $1 }' | paste -sd ' ')" "1 2"
sqlite3 f.db "update metric_row set value = 700 where run_id in (select id from run where scenario = 'f/panels')"
out=$("$nudma" plot f/panels --scenarios . --db f.db -F gnuplot)
has "a curve over another has gaps" "$out" "curve0 .* lw 1.7 title 'read', .*curve1 .* lw 1 dt .14,10. title 'write read'"
out=$("$nudma" plot p/bars --scenarios . --db kinds.db)
has "intervals stand in text, too: of bars" "$out" '^ +s0 +socket 0 +[0-9.]+ +\+- [0-9.e-]+ +#+'
cp p/bars.cfg bars.cfg
figure p/bars.cfg $bandwidth 'x = "to"; y = "read_gbyte_s"; series = ["from"]; y_unit = "GB/s";'
out=$("$nudma" plot p/bars --scenarios . --db kinds.db)
has "and of curves" "$out" '^half of a 95 % interval, at most: socket 0 [0-9.e-]+, socket 1 [0-9.e-]+'
mv bars.cfg p/bars.cfg

# ---- Names ---------------------------------------------------------------------------------------
cp p/panels.cfg panels.cfg
sed -i '/^plot = {/,$d' p/panels.cfg
echo 'plot = { kind = "bars"; x = "op"; series = ["transfer_bytes"];
    y = ["latency_mean_ns", "throughput_gbit_s"]; };' >>p/panels.cfg
out=$(script p/panels)
has "a number says what it is of" "$out" "title 'transfer 64 B, latency_mean_ns'"
has "an axis of several metrics is named by all" "$out" "set ylabel 'latency_mean_ns, throughput_gbit_s'"
sed -i 's/series = .*/series = ["op", "transfer_bytes"]; kind = "cdf"; metric = "latency_ns"; };/; /^    y = /d
    s/kind = "bars"; x = "op";//' p/panels.cfg
has "beside a name that needs none" "$(script p/panels)" "title 'read transfer 64 B'"
sed -i 's/^plot = {/& labels = ( { of = "op=read"; label = "a read"; }, { of = "latency_ns"; label = "time"; } );/' p/panels.cfg
has "unless it has a label" "$(script p/panels)" "title 'a read transfer 64 B'"
mv panels.cfg p/panels.cfg
cp f/panels.cfg f/labels.cfg && sed -i 's/^plot = {/& labels = ( { of = "latency_mean_ns"; label = "mean"; }, { of = "op=write_read"; label = "wr"; } );/' f/labels.cfg
"$nudma" run f/labels --scenarios . --db f.db -q --filter transfer_bytes=64 >/dev/null
out=$("$nudma" plot f/labels --scenarios . --db f.db -F gnuplot)
is "all panels have the labels of the figure" "$(grep -c "title 'wr'$" <<<"$out") $(grep -c "^set ylabel 'mean'" <<<"$out")" "2 3"

# ---- Values on the frame -------------------------------------------------------------------------
figure p/zero.cfg $size 'x = "transfer_bytes"; y = ["latency_mean_ns", "server.s1.dram_read_bytes"]; series = ["op"]; y_min = 0.0;'
"$simulate" run p/zero --scenarios . --db kinds.db -q --quick >/dev/null; is "a curve at 0" $? 0
has "can be seen" "$("$nudma" plot p/zero --scenarios . --db kinds.db)" '^ *0 \|.*D.*D'

# ---- Mistakes in them ----------------------------------------------------------------------------
# refused NAME SCENARIO PLOT EXPECTED
refused() {
    figure wrong.cfg "$2" "$3"
    out=$("$nudma" run wrong.cfg --list 2>&1); is "$1" $? 2
    is "$1: one message" "$(wc -l <<<"$out")" 1
    has "$1: says so" "$out" "^wrong.cfg:[0-9]+: $4"
}
refused "a series that is not sampled" $bandwidth 'kind = "series"; metric = "read_gbyte_s";' \
    'plot.metric: .* \(none without measure.sample_interval_us\)'
refused "no histogram" $size 'kind = "cdf"; metric = "latency_mean_ns";' \
    'plot.metric: found "latency_mean_ns" .*expected a histogram .*"latency_ns"'
refused "a rate in bits" $bandwidth 'x = "to"; y = "read_gbyte_s"; y_unit = "Gb/s";' 'plot.y_unit: found "Gb/s" .*; did you mean "Gbit/s"\?$'
refused "a distribution along an axis" $size 'kind = "cdf"; metric = "latency_ns"; x = "op";' 'plot.x: .*no x'
refused "a histogram along an axis" $size 'kind = "histogram"; metric = "latency_ns"; x = "op";' 'plot.x: .*along y'
refused "whiskers" $size 'kind = "box"; metric = "latency_ns"; whiskers = "minmx";' 'plot.whiskers: .*did you mean "minmax"'
refused "a unit along x of boxes" $size 'kind = "box"; metric = "latency_ns"; x_unit = "us";' 'plot.x_unit: .*y_unit'
refused "measured beside a histogram" $size 'kind = "histogram"; metric = "latency_ns"; measured = ( { file = "m.csv"; } );' \
    'plot.measured: .*kind cdf'
refused "a metric of lines" $size 'x = "op"; y = "latency_mean_ns"; metric = "latency_ns";' 'plot.metric: .*instead'
refused "curves of the same name" $size 'kind = "cdf"; metric = "latency_ns"; series = ["op"];' \
    'plot: .*tell all points apart'
refused "a ratio of one" $size 'x = "transfer_bytes"; y = "latency_mean_ns"; ratio_labels = "op=read";' \
    'plot.ratio_labels: .*names of two curves'
refused "a ratio of no curve" $size 'x = "transfer_bytes"; y = "latency_mean_ns"; ratio_labels = "op=read/o=write";' \
    'plot.ratio_labels: .*name of a curve, "op=..."'
refused "bars relative to the first" $bandwidth 'kind = "bars"; x = "to"; y = "read_gbyte_s"; normalised = true;' \
    'plot.normalised: .*kind lines'
refused "boxes relative to one" $size 'kind = "box"; metric = "latency_ns"; relative_to = "op=read";' \
    'plot.relative_to: .*kind lines or bars'
refused "relative to no curve" $size 'x = "transfer_bytes"; y = "latency_mean_ns"; relative_to = "o=read";' \
    'plot.relative_to: .*name of a curve, "op=..."'
refused "more of them than metrics" $size 'x = "transfer_bytes"; y = "latency_mean_ns"; relative_to = ["op=read", "op=write_read"];' \
    'plot.relative_to: .*one string, or as many as there are in y'
refused "a slowdown against nothing" $size 'x = "transfer_bytes"; y = "latency_mean_ns"; slowdown = true;' \
    'plot.slowdown: .*relative_to or normalised beside it'
refused "a filter" $size 'x = "transfer_bytes"; y = "latency_mean_ns"; filter = "op=raed";' \
    'plot.filter: axis op has no value "raed"; did you mean "read"'
refused "a label of no value" $size 'x = "transfer_bytes"; y = "latency_mean_ns"; labels = ( { of = "op=raed"; label = "a"; } );' \
    'plot.labels.\[0\].of: axis op has no value "raed"; did you mean "read"'
refused "a label of no metric" $size 'x = "transfer_bytes"; labels = ( { of = "latency_mean"; label = "a"; } ); panels = ( { y = "latency_mean_ns"; }, { y = "throughput_gbit_s"; } );' \
    'plot.labels.\[0\].of: .*a metric that the figure shows.*did you mean "latency_mean_ns"'
refused "no panels" $size 'x = "transfer_bytes"; y = "latency_mean_ns"; panels = ();' 'plot.panels: .*a list of groups'
refused "a misspelt setting of a panel" $size 'x = "transfer_bytes"; panels = ( { z = "latency_mean_ns"; y = "latency_mean_ns"; } );' \
    'plot.panels.\[0\].z: unknown setting'
refused "a misspelt metric of a panel" $size 'x = "transfer_bytes"; panels = ( { y = "latency_mean_ns"; }, { y = "latency_meam_ns"; } );' \
    'plot.panels.\[1\].y: .*did you mean "latency_mean_ns"'

# ---- With --set ------------------------------------------------------------------------------------
# What --set leaves of an axis, or makes of the workload, may not suit the figure: no run stops for that.
out=$("$nudma" run ioctopus/fig09_tcp_rr --set axes.placement=ll --list -q 2>&1)
is "values that a panel's filter names, removed" "$? $(grep -c 'placement=ll' <<<"$out") $(grep -vc 'placement=ll' <<<"$out")" "0 12 0"
out=$("$nudma" run ioctopus/fig09_tcp_rr --set programs.rr.type=sockperf --set axes.message_bytes=64 --list 2>&1)
is "a metric that is not recorded then" $? 0
has "is said" "$out" 'plot.y: found "rtt_us"'
has "and that no run depends on it" "$out" 'with these --set there is no figure \(no run depends on it\)$'
out=$("$nudma" run one.cfg --set plot.y=load_latency --list 2>&1)
is "a plot that --set misspells" $? 2

# ---- Tables of scenarios that plot samples -------------------------------------------------------
# Of a program with a name of its own: what its samples come to, not other programs' rates.
named() { "$nudma" run nvme/interference --filter 'drive=p4800x writes=16' --set measure.duration_us=3000 \
    --set measure.warmup_us=30000 --db named.db -q 2>&1; }
has "the table is about what is plotted" "$(named)" \
    '^drive +writes +reader.latency_mean_ns .*reader.latency_max_ns .*reader.latency_p50_ns'

# ---- A published curve of a value that there is not ------------------------------------------------
mkdir -p slip && cp "$NUDMA_SCENARIOS/pcie_bench/latency_size.cfg" slip/slip.cfg
sed -i 's/series = "op=read"; file/series = "op=raed"; file/' slip/slip.cfg
out=$("$nudma" run slip/slip.cfg --quick 2>&1); is "a misspelt value of series" $? 2
has "with its line" "$out" 'slip.cfg:[0-9]+: plot.measured.\[0\].series: .*raed'
has "the nearest" "$out" 'did you mean "read"|"read"'
sed -i 's/op=raed/op=read/' slip/slip.cfg
"$nudma" run slip/slip.cfg --list --set axes.op=write_read >/dev/null 2>&1; is "what --set left out is none" $? 0

# ---- More curves than colours -----------------------------------------------------------------------
cat >many.cfg <<'END'
hosts = { server = { @include "platforms/t430.cfg"
}; };
devices = { nfp = { @include "devices/nfp6000.cfg"
}; };
cables = ( { from = "server.s0.rp0"; to = "nfp.p0"; } );
workload = { type = "pcie_bench"; device = "nfp"; host = "server"; interface = "bulk"; };
measure = { transactions = 20; };
axes = ( { name = "op"; setting = "workload.op"; values = ["read", "write_read"]; },
         { name = "gap"; setting = "workload.gap_ns"; values = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]; } );
plot = { x = "op"; y = "latency_mean_ns"; series = ["gap"]; };
END
"$nudma" run many.cfg -q --db many.db >ran.txt 2>&1; is "13 curves" $? 0
has "are too many" "$("$nudma" plot many.cfg --db many.db 2>&1)" '^many: 13 curves share 12 colours: fewer axes in .series.'
out=$("$nudma" plot many.cfg --format gnuplot --db many.db 2>plot.txt)
is "those that run over each other do not grow on" "$(grep -oE ' ps [0-9.]+' <<<"$out" | sort -u | tr -d '\n')" " ps 1.4 ps 2.4 ps 3.4"

echo "1..$cases"
[ $failed = 0 ]
