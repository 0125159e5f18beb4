#!/usr/bin/env bash
# nudma check: verdicts, errors in percent, known misses, summaries, JSON, exit status.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/scenario/lib.sh

# Constants are expressions too, so that one small run serves for the database.
"$nudma" run pcie_bench/latency_size --quick -q --set axes.op=read --set axes.transfer_bytes=64 \
    >run.txt 2>&1
is "a run" $? 0
claim() { # claim ID USE LOW HIGH PUBLISHED EXPRESSION [MORE]
    printf '{ id = "%s"; use = "%s"; lo = %s; hi = %s; published = "%s"; text = "t";\n  expr = "%s"; %s }' "$@"
}
file() { # file NAME CLAIM...: writes NAME/claims.cfg
    local folder=$1 separator=
    shift
    mkdir -p "$folder"
    {
        printf 'title = "Of %s";\nclaims = (\n' "$folder"
        for one; do printf '%s%s' "$separator" "$one"; separator=$',\n'; done
        printf '\n);\n'
    } >"$folder/claims.cfg"
}

# ---- Verdicts and errors -------------------------------------------------------------------------
reason='misses = "no such mechanism";'
file one "$(claim a.exact C 1.0 3.0 2 2.0 '')" "$(claim a.over K 1.0 3.0 2 2.5 '')" \
    "$(claim a.range K 1.0 3.0 1.5-2.5 2.2 '')" "$(claim a.above K 1.0 4.0 1-2 3 '')" \
    "$(claim a.words K 1.0 3.0 'about two' 2 '')"
out=$("$nudma" check one/claims.cfg); is "all hold" $? 0
has "the paper is named" "$out" '^one: Of one$'
has "no error" "$out" '^a.exact +C +- +2 +1\.\.3 +2 +0\.0 +ok$'
has "an error in percent" "$out" '^a.over +K +- +2 +1\.\.3 +2\.5 +\+25\.0 +ok$'
has "none within a range" "$out" '^a.range +K +- +1\.5-2\.5 +1\.\.3 +2\.2 +0\.0 +ok$'
has "from its nearer end" "$out" '^a.above +K +- +1-2 +1\.\.4 +3 +\+50\.0 +ok$'
has "words have none" "$out" '^a.words +K +- +about two +1\.\.3 +2 +- +ok$'
is "the summary" "$(tail -n 1 <<<"$out")" "5 of 5 given claims hold, 5 covered (C: 1 of 1, K: 4 of 4)"

file one "$(claim a.hold C 1.0 3.0 2 2 '')" "$(claim a.known K 1.0 3.0 2 4 "$reason")" \
    "$(claim a.too K 1.0 3.0 2 5 "$reason")"
out=$("$nudma" check one/claims.cfg); is "a known miss still fails" $? 1
has "is called that" "$out" '^a.known +K +- +2 +1\.\.3 +4 +\+100\.0 +known miss$'
has "its reason stands once for all that share it" "$out" '^known miss: a.known, a.too$'
is "indeed once" "$(grep -c 'no such mechanism' <<<"$out")" 1
is "and it is counted" "$(tail -n 1 <<<"$out")" \
    "1 of 3 given claims hold, 3 covered (C: 1 of 1, K: 0 of 2); 2 known misses"
"$nudma" check one/claims.cfg --known-ok >/dev/null; is "--known-ok lets it pass" $? 0

file one "$(claim a.now K 1.0 3.0 2 2 "$reason")"
out=$("$nudma" check one/claims.cfg); is "a known miss that holds is no failure" $? 0
has "but said" "$out" '^now holds: a.now, although one/claims.cfg:3 marks it'
is "and counted" "$(tail -n 1 <<<"$out")" "1 of 1 given claims hold, 1 covered (C: 0 of 0, K: 1 of 1); 1 known miss holds now"

file one "$(claim a.known K 1.0 3.0 2 4 "$reason")" "$(claim a.miss K 1.0 3.0 2 0.5 '')"
out=$("$nudma" check one/claims.cfg --known-ok); is "--known-ok fails an unknown miss" $? 1
has "which is a MISS" "$out" '^a.miss +K +- +2 +1\.\.3 +0\.5 +-75\.0 +MISS$'
has "and said to be unexplained" "$(tail -n 1 <<<"$out")" '1 MISS without a known reason'
file one "$(claim a.none K 1.0 3.0 2 "v('pcie_bench/latency_numa','none','none')" "$reason")"
out=$("$nudma" check one/claims.cfg --known-ok); is "--known-ok fails missing data" $? 1
has "which is no miss" "$out" '^a.none +K +- +2 +1\.\.3 +- +- +no data$'

# ---- Kinds, and what has no scenario --------------------------------------------------------------
file one "$(claim a.fit C 1.0 3.0 2 2 'kind = "fitted";')" \
    "$(claim a.same K 1.0 3.0 2 2 'kind = "by construction";')" \
    "$(claim a.miss K 1.0 3.0 2 4 "kind = \"predicted\"; $reason")" \
    "$(claim a.hold K 1.0 3.0 2 2 'kind = "predicted";')" \
    "$(claim a.later K 1.0 3.0 2 "v('no/such','x=1','m')" 'kind = "predicted";')"
out=$("$nudma" check one/claims.cfg --known-ok); is "a claim without its scenario fails" $? 1
has "a row, too" "$out" '^a.later +K +predicted +2 +1\.\.3 +- +- +no scenario$'
has "a kind of two words" "$out" '^a.same +K +by construction +2 '
is "kinds are counted apart" "$(tail -n 2 <<<"$out" | head -n 1)" \
    "fitted 1 of 1, interpolated 0 of 0, by construction 1 of 1, predicted 1 of 3"
is "given, covered and held" "$(tail -n 1 <<<"$out")" "3 of 5 given claims hold, 4 covered \
(C: 1 of 1, K: 2 of 4); 1 known miss; 1 without a scenario"
"$nudma" check one/claims.cfg --json >one.json
is "JSON has them" "$(sqlite3 :memory: "SELECT json_extract(j, '\$.summary.covered'),
    json_extract(j, '\$.summary.predicted.hold'), json_extract(j, '\$.papers[0].claims[1].kind')
    FROM (SELECT readfile('one.json') j)")" "4|1|by construction"
file one "$(claim a.x C 1.0 3.0 2 2 'kind = "predicted";')"
out=$("$nudma" check one/claims.cfg 2>&1); is "a baseline that is predicted" $? 2
has "is refused" "$out" '^one/claims.cfg:[0-9]+: claims\.\[0\]\.kind: .*"predicted".*a baseline'
file one "$(claim a.x K 1.0 3.0 2 2 'kind = "fitted";')"
"$nudma" check one/claims.cfg >/dev/null 2>&1; is "a prediction that is fitted" $? 2
file one "$(claim a.x K 1.0 3.0 2 2 'kind = "guessed";')"
out=$("$nudma" check one/claims.cfg 2>&1); is "a kind that is none" $? 2
has "names the four" "$out" '"fitted", "interpolated", "by construction" or "predicted"'
is "all of ours have a kind" "$(cat "$NUDMA_SCENARIOS"/*/claims.cfg | grep ' id = "' |
    grep -cv '; use = "[CK]"; kind = "')" 0

# ---- Names that the database does not know -------------------------------------------------------
"$nudma" init mine.cfg >/dev/null
"$simulate" run mine.cfg -f 'transfer_bytes<=256' -q --db mine.db >/dev/null
point='memory=local transfer_bytes=64'
missing() { # missing NAME EXPR MESSAGE: the verdict, and what is said below the table
    file one "$(claim a.x K 1.0 9999.0 600 "$2" '')"
    is "$1" "$("$nudma" check one/claims.cfg --db mine.db | sed -n 's/^no \(data\|scenario\): a.x: /\1: /p')" "$3"
}
missing "all are there" "v('mine','$point','latency_mean_ns')" ""
missing "a metric" "v('mine','$point','latency_men_ns')" \
    'data: mine records no metric "latency_men_ns"; did you mean "latency_mean_ns"?'
missing "a value of an axis" "v('mine','memory=locl transfer_bytes=64','latency_mean_ns')" \
    'data: no point of mine has memory=locl; did you mean "local"?'
missing "an axis" "v('mine','memry=local transfer_bytes=64','latency_mean_ns')" \
    'data: no point of mine has an axis "memry"; did you mean "memory"?'
missing "another order of the axes" "v('mine','transfer_bytes=64 memory=local','latency_mean_ns')" \
    "data: mine has no point \"transfer_bytes=64 memory=local\"; did you mean \"$point\"?"
missing "a file" "v('mine.cfg','$point','latency_mean_ns')" 'scenario: no results of a scenario "mine.cfg"; did you mean "mine"?'
missing "the second of two" "v('mine','$point','latency_mean_ns') / v('mine','$point','throughput_gbt_s')" \
    'data: mine records no metric "throughput_gbt_s"; did you mean "throughput_gbit_s"?'
missing "what is not run is no mistake" "v('pcie_bench/latency_size','op=read transfer_bytes=64','latency_mean_ns')" ""
"$simulate" run mine.cfg -f 'transfer_bytes=2048 memory=local' -q --db mine.db --run-memory '1 MiB' >/dev/null 2>&1
missing "a point that failed" "v('mine','memory=local transfer_bytes=2048','latency_mean_ns')" \
    'data: mine memory=local transfer_bytes=2048 failed: needed more than the 1 MiB of --run-memory'

# ---- Beside a scenario of one's own ---------------------------------------------------------------
mkdir own
cp mine.cfg own/mine.cfg
file own "$(claim a.x K 1.0 9999.0 600 "v('mine','$point','latency_mean_ns')" '')"
out=$("$nudma" check own/mine.cfg --db mine.db); is "claims beside a scenario" $? 0
has "are checked" "$out" '^a.x +K .* ok$'
out=$("$nudma" check own/mine.cfg); is "not run yet" $? 1
is "is no data, and no unknown name" "$(sed -n 's/^a.x .*- *//p' <<<"$out"), $(grep -c '^no data: ' <<<"$out")" "no data, 0"
has "by its name" "$("$nudma" check pcie_bench/latency_size)" '^pcie_bench: '
mkdir -p below/p && cp mine.cfg below/p/mine.cfg
file below/p "$(claim a.x K 1.0 9999.0 600 "v('mine','$point','latency_mean_ns')" '')"
has "below the roots its name has the folder's before it" "$("$nudma" check p --scenarios below)" '^a.x .* no scenario$'
out=$("$nudma" check mine.cfg 2>&1); is "none there" $? 2
has "is said" "$out" '^mine.cfg: is a scenario, expected a file of claims .*: the claims of a scenario stand in a file claims.cfg'

# ---- Papers --------------------------------------------------------------------------------------
file one "$(claim a.hold C 1.0 3.0 2 2 '')"
file two "$(claim b.miss K 1.0 3.0 2 4 "$reason")" "$(claim b.hold K 1.0 3.0 2 2 '')"
out=$("$nudma" check one/claims.cfg two/claims.cfg)
has "a line for a paper" "$out" '^one: 1 of 1 given claims hold, 1 covered \(C: 1 of 1, K: 0 of 0\)$'
has "one for the other" "$out" '^two: 1 of 2 given claims hold, 2 covered \(C: 0 of 0, K: 1 of 2\); 1 known miss$'
is "one over all" "$(tail -n 1 <<<"$out")" "2 of 3 given claims hold, 3 covered (C: 1 of 1, K: 1 of 2); 1 known miss"

# ---- JSON ----------------------------------------------------------------------------------------
file one "$(claim a.known K 1.0 3.0 2 4 'misses = "a \"quoted\" reason";')" \
    "$(claim a.none K 1.0 3.0 'two' "v('pcie_bench/latency_numa','none','none')" '')"
"$nudma" check one/claims.cfg --json >one.json; is "JSON fails alike" $? 1
json() { sqlite3 :memory: "SELECT json_extract(readfile('one.json'), '$1')"; }
is "JSON is well-formed" "$(sqlite3 :memory: "SELECT json_valid(readfile('one.json'))")" 1
is "a claim" "$(json '$.papers[0].claims[0].id')" a.known
is "its error" "$(json '$.papers[0].claims[0].error_percent')" 100
is "its verdict" "$(json '$.papers[0].claims[0].verdict')" "known miss"
is "its reason" "$(json '$.papers[0].claims[0].misses')" 'a "quoted" reason'
is "no data" "$(json '$.papers[0].claims[1].simulated')" ""
file two "$(claim b.odd K 1.0 3.0 $'caf\xe9' 2 '')"
out=$("$nudma" check two/claims.cfg --json 2>&1); is "Latin-1" $? 2
has "says where" "$out" '^two/claims.cfg:[0-9]+: column [0-9]+: found the byte 0xe9'
is "the counts" "$(json '$.summary.known_misses') $(json '$.summary.no_data')" "1 1"

# ---- Mistakes ------------------------------------------------------------------------------------
file one "$(claim a.x K 1.0 3.0 2 2 'misses = "";')"
out=$("$nudma" check one/claims.cfg 2>&1); is "a known miss without a reason" $? 2
has "is said where" "$out" '^one/claims.cfg:[0-9]+: claims\.\[0\]\.misses: '
file one "$(claim a.x K 1.0 3.0 2 2 'mises = "x";')"
out=$("$nudma" check one/claims.cfg 2>&1); is "a setting that is none" $? 2
has "the nearest" "$out" 'did you mean "misses"'
file one "$(claim a.x K 1.0 3.0 2 2 '')" "$(claim a.x K 1.0 3.0 2 2 '')"
out=$("$nudma" check one/claims.cfg 2>&1); is "an id twice" $? 2
has "is said" "$out" 'a.x: there already'
file one "$(claim a.x M 1.0 3.0 2 2 '')"
out=$("$nudma" check one/claims.cfg 2>&1); is "a use that is none" $? 2
file one "$(claim a.x K 1.0 3.0 2 '2), (9' '')"
out=$("$nudma" check one/claims.cfg 2>&1); is "two expressions" $? 2
has "are not the first of them" "$out" '^one/claims.cfg:[0-9]+: a.x: expr: found "\), \(9", a bracket that'

echo "1..$cases"
[ $failed = 0 ]
