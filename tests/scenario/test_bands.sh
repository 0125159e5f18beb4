#!/usr/bin/env bash
# nudma run --bands: values that only a range constrains, at both of its ends; what plots and claims make of it.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/scenario/lib.sh

out=$("$simulate" run device_lending/text_latency --bands -q --db b.db 2>run.txt); is "a scenario runs over its ranges" $? 0
has "the value, the lowest and the highest" "$out" \
    '^path=ram_to_ram +write_latency_ns +[0-9.]+ +[0-9.]+ +- +[0-9.]+ +translate_ns=20$'
is "each end is a run of its own" "$(query b.db "SELECT count(DISTINCT point) FROM run")" 13
is "what two adapters have alike moves in both" "$(query b.db "SELECT count(*) FROM run r JOIN param p ON p.run_id = r.id
    WHERE r.point = 'path=ram_to_ram ~translate_ns=20' AND p.name LIKE '%.translate_ns' AND p.value = '20'")" 2
# The beats of links' data paths move a TLP by a few ns.
is "two chips a way, 20 ns each" "$(query b.db "SELECT max(value) - min(value) BETWEEN 36 AND 44 FROM metric m
    JOIN run r ON r.id = m.run_id WHERE m.name = 'write_latency_ns'
    AND r.point IN ('path=ram_to_ram', 'path=ram_to_ram ~translate_ns=20')")" 1
"$simulate" run device_lending/text_latency --bands -q --db b.db >/dev/null 2>&1
is "again, nothing is left to run" "$(query b.db "SELECT count(*) FROM run")" 13

# One point, dealt out to two parts: one has it with its ranges, the other nothing to do.
for part in 1 2; do
    "$simulate" run device_lending/text_latency --bands -q --shard $part/2 --db part$part.db >/dev/null 2>&1
    is "part $part of two" $? 0
done
"$nudma" merge parts.db part1.db part2.db >/dev/null
is "together they are the whole" "$(query parts.db "SELECT count(DISTINCT point) FROM run")" 13

# ---- Claims --------------------------------------------------------------------------------------
v="v('device_lending/text_latency','path=ram_to_ram','write_latency_ns')"
cat >claims.cfg <<END
claims = (
  { id = "a.part"; use = "K"; kind = "predicted"; lo = 500.0; hi = 600.0; published = "573"; expr = "$v"; text = "t"; },
  { id = "a.all"; use = "K"; kind = "predicted"; lo = 500.0; hi = 700.0; published = "573"; expr = "$v"; text = "t"; },
  { id = "a.none"; use = "K"; kind = "predicted"; lo = 1.0; hi = 2.0; published = "1"; expr = "$v"; text = "t"; misses = "m"; },
  { id = "a.one"; use = "K"; kind = "predicted"; lo = 1.0; hi = 1.0; published = "1"; expr = "$v/$v"; text = "t"; } );
END
out=$("$nudma" check claims.cfg --db b.db --known-ok); is "claims hold by the value" $? 0
has "one holds in a part of the band, and it is said where not" "$out" \
    '^band: a.part: 5[0-9.]+\.\.6[0-9.]+ with 12 values at the ends of their ranges; holds in part of it, not with translate_ns=20 \(6[0-9.]+\)$'
has "one in all of it" "$out" '^band: a.all: .*; holds in all of it$'
has "one nowhere" "$out" '^band: a.none: .*; holds nowhere in it$'
has "a claim is evaluated in one variant at a time" "$out" '^band: a.one: 1\.\.1 .*; holds in all of it$'
"$nudma" check claims.cfg --db b.db --json --known-ok >one.json
is "JSON has it" "$(sqlite3 :memory: "SELECT json_extract(readfile('one.json'), '$.papers[0].claims[0].variants'),
    json_extract(readfile('one.json'), '$.papers[0].claims[0].variants_hold')")" "12|11"
"$simulate" run device_lending/text_latency -q --db plain.db >/dev/null
is "without --bands, none" "$("$nudma" check claims.cfg --db plain.db | grep -c '^band')" 0

# ---- Figures -------------------------------------------------------------------------------------
"$simulate" run device_lending/fig04_ntb_dma --bands -q --db b.db \
    -f 'direction=read path=ram_to_ram transfer_bytes=4096' >/dev/null 2>&1
out=$("$nudma" plot device_lending/fig04_ntb_dma -F gnuplot --db b.db 2>/dev/null)
has "the figure shades the band" "$out" 'using 1:5:6 with filledcurves'
"$simulate" run device_lending/fig04_ntb_dma -q --db plain.db -f 'direction=read path=ram_to_ram transfer_bytes=4096' >/dev/null 2>&1
is "and shades nothing without" \
    "$("$nudma" plot device_lending/fig04_ntb_dma -F gnuplot --db plain.db 2>/dev/null | grep -c filledcurves)" 0
out=$("$nudma" run adce/fig04_copy_latency --bands --quick --db b.db 2>&1); is "no range in a scenario" $? 2
has "is said" "$out" '^--bands: no value of these scenarios has a range'

echo "1..$cases"
[ $failed = 0 ]
