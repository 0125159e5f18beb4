#!/usr/bin/env bash
# y_unit and x_unit of figures convert what was recorded; what cannot be shown in a unit is a mistake.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/scenario/lib.sh
size=$NUDMA_SCENARIOS/pcie_bench/latency_size.cfg

# figure FILE PLOT: the scenario with another figure
figure() {
    sed '/^plot = {/,$d' "$size" >"$1"
    printf 'plot = { x = "transfer_bytes"; series = ["op"]; %s };\n' "$2" >>"$1"
}
refused() { # refused NAME PLOT EXPECTED
    figure u/wrong.cfg "$2"
    out=$("$nudma" run u/wrong.cfg --list 2>&1); is "$1" $? 2
    has "$1: why" "$out" "^u/wrong.cfg:[0-9]+: plot.$3"
    is "$1: once" "$(wc -l <<<"$out")" 1
}
mkdir u
sed '/^plot = {/,$d' "$size" >u/lines.cfg
for kind in ns us none; do
    figure u/$kind.cfg "y = \"latency_mean_ns\"; $([ $kind = none ] || echo "y_unit = \"$kind\";")"
done
cat >u/claims.cfg <<'END'
claims = ( { id = "point"; use = "K"; expr = "v('u/us','op=read transfer_bytes=64','latency_mean_ns')";
             lo = 400.0; hi = 700.0; published = "500"; text = "a point"; } );
END
"$simulate" run u/us --scenarios . --quick -q --db u.db >/dev/null; is "the runs" $? 0
for kind in ns none; do cp u.db $kind.db; sqlite3 $kind.db "update label set text = 'u/$kind' where text = 'u/us'"; done
# values FILE DB: x and y of all curves but that of the claim
values() {
    "$nudma" plot "$1" --scenarios . --db "${2:-u.db}" -F gnuplot 2>/dev/null |
        awk '/<< END/ { on = 1; n++; next } /^END/ { on = 0 } on { print n, $1, $2 }' | LC_ALL=C sort
}
ns=$(values u/ns ns.db) us=$(values u/us)
has "in the metric's unit" "$ns" '^1 64 [0-9]{3}(\.|$)'
is "without a unit as recorded" "$(values u/none none.db)" "$ns"
is "in another unit" "$(awk 'NR == FNR { ns[$1 " " $2] = $3; next }
    ns[$1 " " $2] / $3 < 999.9 || ns[$1 " " $2] / $3 > 1000.1 { if (ns[$1 " " $2] != "") print }' \
    <(echo "$ns") <(echo "$us"))" ""
is "all of it" "$(grep -c . <<<"$ns")" "$(($(grep -c . <<<"$us") - 1))" # and the claim
has "what is published, too" "$us" '^3 64 0\.5$'
has "the axis says so" "$("$nudma" plot u/us --scenarios . --db u.db -F gnuplot 2>/dev/null)" '\[us\]'
"$nudma" report u/us --scenarios . --db u.db -o u.html >/dev/null; is "a report" $? 0
has "has it in its table" "$(cat u.html)" '\[us\].*'
has "with these values" "$(sed 's/<[^>]*>/ /g' u.html)" " $(awk '$1 == 1 && $2 == 64 { printf "%.6g", $3 }' <<<"$us") "

sed -i 's/plot = {/& kind = "bars";/' u/us.cfg
has "bars" "$("$nudma" plot u/us --scenarios . --db u.db 2>/dev/null)" '[^0-9]0\.[56][0-9]'
figure u/us.cfg 'y = "latency_mean_ns"; relative_to = "op=read"; y_unit = "%";'
is "ratios in percent" "$(values u/us | grep -cE ' 100$')" "$(grep -c '^1 ' <<<"$ns")"
figure u/us.cfg 'y = "latency_mean_ns"; y_unit = "µs";'
is "as it is written by hand" "$(values u/us)" "$us"

# ---- Mistakes ------------------------------------------------------------------------------------
refused "no unit of a time" 'y = "latency_mean_ns"; y_unit = "furlong";' \
    'y_unit: found "furlong" .*expected a unit for latency_mean_ns, which is in ns: .*ps, ns, us, ms, s$'
refused "one of a rate" 'y = "latency_mean_ns"; y_unit = "GB/s";' 'y_unit: .*which is in ns: '
refused "nearly one" 'y = "throughput_gbit_s"; y_unit = "Gbits/s";' 'y_unit: .*which is in Gbit/s: .*; did you mean "Gbit/s"\?$'
refused "several y" 'y = ["latency_mean_ns", "throughput_gbit_s"]; y_unit = "us";' 'y_unit: .*for throughput_gbit_s, which is in Gbit/s'
refused "of the figure" 'y_unit = "us"; panels = ( { y = "latency_mean_ns"; }, { y = "throughput_gbit_s"; } );' 'y_unit: .*throughput_gbit_s'
refused "of a ratio" 'y = "latency_mean_ns"; normalised = true; y_unit = "ns";' 'y_unit: .*for a ratio, which is in 1: 1, %$'
sed '/^plot = {/,$d' "$size" >u/wrong.cfg
echo 'plot = { kind = "cdf"; metric = "latency_ns"; x_unit = "MB"; };' >>u/wrong.cfg
out=$("$nudma" run u/wrong.cfg --list 2>&1); is "of a distribution" $? 2
has "along x" "$out" 'plot.x_unit: .*for latency_ns, which is in ns'
figure u/us.cfg 'y = "latency_mean_ns"; y_unit = "furlong";'
out=$("$nudma" plot u/us --scenarios . --db u.db 2>/dev/null); is "plot draws nothing then" "$? $out" "2 "
figure u/us.cfg 'y = "transactions"; y_unit = "reads";'
"$nudma" plot u/us --scenarios . --db u.db >/dev/null 2>&1; is "what things are called is a label" $? 0

# ---- Another kind --------------------------------------------------------------------------------
sed '/^plot = {/,$d' "$NUDMA_SCENARIOS/pcie_bench/latency_breakdown.cfg" >u/stack.cfg
echo 'plot = { kind = "stack"; x = "path"; y = "latency_part_ns"; };' >>u/stack.cfg
"$simulate" run u/stack --scenarios . -q --db s.db >/dev/null
# sum: of all heights
sum() { values u/stack s.db | awk '$2 ~ /^[0-9]+$/ { sum += $3 } END { printf "%.6g", sum * '"$1"' }'; }
ns=$(sum 1)
sed -i 's/x = "path";/& y_unit = "us";/' u/stack.cfg
is "parts of a stack" "$(sum 1000)" "$ns"
sed -i 's/kind = "stack"/kind = "bars"/; s/y = "latency_part_ns"/y = ["latency_part_ns.link", "latency_part_ns.dram"]/' u/stack.cfg
"$nudma" plot u/stack --scenarios . --db s.db >/dev/null 2>&1; is "several y of one unit" $? 0

echo "1..$cases"
[ $failed = 0 ]
