#!/usr/bin/env bash
# nudma whatif: verdicts, mistakes in a file, what is stored; and all what-ifs of the scenarios come
# out as docs/whatif.md says (by the build that users get; under the sanitizers they take too long).
set -u
cd "$(dirname "$0")/../.." || exit 1
root=$PWD
# shellcheck source=tests/scenario/lib.sh
. tests/scenario/lib.sh

question() { # question ID REST...: one of a file
    local id=$1
    shift
    echo "{ id = \"$id\"; text = \"t\"; scenario = \"pcie_bench/bandwidth_size\";"
    echo "  filter = \"op=read transfer_bytes=64\"; because = \"b\"; source = \"s\"; $* }"
}
file() { # file QUESTION...: q.cfg
    local IFS=,
    echo "whatifs = ( $* );" >q.cfg
}
metric='metric = "throughput_gbit_s";'
cable='change = [ "cables.[0].length_m=10" ];'

# ---- Verdicts
file "$(question same "$cable $metric ratio = 1.0;")" \
    "$(question less "$cable $metric ratio = [ 0.1, 0.99 ];")" \
    "$(question minus "$cable $metric difference = [ -30, -0.001 ];")" \
    "$(question value "$metric value = [ 1, 63 ];")" \
    "$(question sum "metric = \"throughput_gbit_s - throughput_gbit_s\"; value = 0;")" \
    "$(question half "metric = \"throughput_gbit_s * ( 1 / 2 ) / throughput_gbit_s\"; value = 0.5;")" \
    "$(question refused 'change = [ "cables.[0].lanes=16" ]; refused = "16 lanes";')" \
    "$(question accepted "$cable refused = \"length\";")" \
    "$(question fails 'change = [ "measure.duration_us=0.001" ]; fails = "not one transaction";')" \
    "$(question known "$cable $metric ratio = 7; misses = \"no wormhole\";")" \
    "$(question holds "$metric value = [ 1, 63 ]; misses = \"nothing\";")"
out=$("$nudma" whatif q.cfg --quiet)
is "a what-if that comes out otherwise fails" $? 1
has "no change where there is one" "$out" '^same .*UNEXPECTED'
has "a ratio" "$out" '^less .* to .*: 0\.[0-9]+ +as expected'
has "a difference" "$out" '^minus .* to .*: -[0-9.]+ +as expected'
has "a value without a change" "$out" '^value .*as expected'
has "an expression" "$out" '^sum .*as expected'
has "half is no 0" "$out" '^half .* 0\.5 +as expected'
has "a change that is refused" "$out" '^refused .*refused +as expected'
has "a change that is not refused" "$out" '^accepted .*not refused +UNEXPECTED'
has "a run that fails" "$out" '^fails .*fails: "not one transaction" +fails +as expected'
has "one that is known to miss" "$out" '^known .*known'
has "its reason" "$out" 'no wormhole'
has "one that no longer misses" "$out" '^holds .*now as expected'
has "counts" "$out" '^7 of 11 what-ifs as expected; 1 now as expected; 2 UNEXPECTED; 1 known$'
is "three runs for all" "$(query results/whatif.db 'SELECT count(*) FROM run')" 3
is "the change is in the point's name" \
    "$(query results/whatif.db "SELECT count(*) FROM run WHERE point = 'op=read transfer_bytes=64 cables.[0].length_m=10'")" 1
has "what is stored is not run again" "$("$nudma" whatif q.cfg 2>&1 >/dev/null)" \
    '2 of 3 runs are in the database'
out=$("$nudma" whatif q.cfg --quiet --only less --only known)
is "without others none fails" $? 0
has "only those asked for" "$out" '^1 of 2 what-ifs as expected; 1 known$'
has "one file named twice" "$("$nudma" whatif q.cfg ./q.cfg --quiet --only less)" '^1 of 1 what-ifs as'
is "what is asked to fail is not said" "$("$nudma" whatif q.cfg --quiet --only fails 2>&1 >/dev/null)" ""
has "Markdown" "$("$nudma" whatif q.cfg --quiet --only less --markdown)" \
    '^\| less: t \| .pcie_bench/bandwidth_size. op=read transfer_bytes=64 \| .cables'

# ---- Mistakes: one message each, nothing runs
n_mistakes=0
mistaken() { # mistaken NAME PATTERN [OPTION...]
    local text status
    local nudma=$nudma
    n_mistakes=$((n_mistakes + 1)) # of which the sanitizers look at every third
    [ $((n_mistakes % $(stride 3))) = 0 ] || nudma=$simulate
    text=$("$nudma" whatif q.cfg --db other.db "${@:3}" 2>&1)
    status=$?
    is "$1: exit status" $status 2
    has "$1: message" "$text" "$2"
}
mistaken "an id like no other" '--only adce: no such what-if; expected one of "[a-z_]+"' --only adce
mistaken "an unknown id" '--only lss: no such what-if; did you mean "less"' --only lss
file "$(question a "$cable metric = \"throughput_gbt_s\"; ratio = 1.0;")"
mistaken "an unknown metric" 'q.cfg:1: a: metric: .*no metric "throughput_gbt_s".*throughput_gbit_s'
file "$(question a "$cable $metric ratio = 1.0;")" "$(question b "$cable metric = \"throughput_gbt_s\"; ratio = 1.0;")"
mistaken "one of runs that another question has as well" 'q.cfg:[0-9]+: b: metric: .*no metric "throughput_gbt_s"'
file "$(question a "base = [ \"workload.window_bytes=512\" ]; metric = \"throughput_gbt_s\"; value = 1;")"
mistaken "one where other points are wrong" 'q.cfg:1: a: metric: .*no metric "throughput_gbt_s".*throughput_gbit_s'
file "$(question a "change = [ \"cables.[0].lenght_m=1\" ]; $metric ratio = 1.0;")"
mistaken "an unknown setting" 'q.cfg:1: a: --set: cables.\[0\].lenght_m: unknown setting.*length_m'
file "$(question a "$cable $metric")"
mistaken "nothing expected" 'q.cfg:1: .*found 0 expectations, expected one of .ratio., .difference., .value., .refused., .fails.'
file "$(question a "$cable $metric ratio = [ 2, 1 ];")"
mistaken "an empty range" 'q.cfg:2: .*ratio: found \[ 2, 1 \], expected the lower bound first'
file "$(question a "$cable $metric ratio = 1.0; difference = 0;")"
mistaken "two expectations" 'found 2 expectations'
for wrong in '2' 'throughput_gbit_s * ( 2' 'throughput_gbit_s 2' 'throughput_gbit_s *' ') throughput_gbit_s' ''; do
    file "$(question a "$cable metric = \"$wrong\"; ratio = 1.0;")"
    mistaken "the metric \"$wrong\"" 'q.cfg:2: whatifs.\[0\].metric: "'
done
file "$(question a "$cable metric = \"throughput_gbit_s*2\"; ratio = 1.0;")"
mistaken "signs that are no words" 'signs are words of their own'
file
mistaken "no what-ifs" 'at least one what-if'
file "$(question a "$metric ratio = 1.0;")"
mistaken "no change" 'q.cfg:1: .*no setting "change"'
file "$(question a "$cable $metric ratio = 1.0; misess = \"x\";")"
mistaken "an unknown key" 'misess.*misses'
file "$(question a "$cable $metric ratio = 1.0;")" "$(question a "$cable $metric ratio = 1.0;")"
mistaken "two of one id" 'a: there already'
file "$(question a "$cable $metric ratio = 1.0;")"
sed -i 's/ transfer_bytes=64//' q.cfg
mistaken "a filter that leaves several" 'filter: leaves [0-9]+ points of pcie_bench/bandwidth_size, expected one'
file "$(question a "base = [ \"cables.[0].lanes=16\" ]; $cable refused = \"x\";")"
mistaken "a base that is refused" 'q.cfg:1: a: .*16 lanes'
is "nothing has run" "$(ls other.db 2>/dev/null)" ""

# ---- A scenario's file beside that of the what-ifs
mkdir sub
"$nudma" init sub/mine.cfg >/dev/null
file "$(question a "base = [ \"axes.memory=local\" ]; metric = \"latency_mean_ns\"; value = [ 1, 9999 ];")"
sed 's|pcie_bench/bandwidth_size|mine.cfg|; s/op=read //' q.cfg >sub/q.cfg
has "is found from another folder" "$("$nudma" whatif sub/q.cfg -q 2>&1)" '^1 of 1 what-ifs as expected$'
has "and from there" "$(cd sub && "$nudma" whatif q.cfg -q 2>&1)" '^1 of 1 what-ifs as expected$'
sed 's|mine.cfg|sub/mine.cfg|' sub/q.cfg >sub/r.cfg
has "else from where the command is" "$("$nudma" whatif sub/r.cfg -q 2>&1)" '^1 of 1 what-ifs as expected$'

# ---- All of them
cd "$root" || exit 1
# Who asks for half or twice the clock, or the rate, sets half or twice of what the point has.
python3 - "$nudma" scenarios/*/whatif.cfg >"$scratch/halves" <<'PYTHON'
import re
import subprocess
import sys

def texts(group, key):
    found = re.search(r'\b%s = (\[.*?\]|".*?");' % key, group, re.S)
    return re.findall(r'"([^"]*)"', found[1].replace('\\"', "'")) if found else []

for name in sys.argv[2:]:
    for group in re.split(r'\{ (?=id = )', open(name, encoding='utf-8').read())[1:]:
        asked = re.search(r'(half|twice) (?:the|its) (clock|rate)', texts(group, 'text')[0])
        if not asked:
            continue
        call = [sys.argv[1], 'run', *texts(group, 'scenario'), '--print-config']
        call += [word for text in texts(group, 'filter') for word in ('--filter', text)]
        call += [word for text in texts(group, 'base') for word in ('--set', text)]
        lines = subprocess.run(call, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
        is_now = {line.split(' = ')[0]: line.split()[2] for line in lines if ' = ' in line}
        for path, value in (text.split('=', 1) for text in texts(group, 'change')):
            if '.%s_' % asked[2] in path:
                ratio = float(value) / float(is_now[path])
                print(texts(group, 'id')[0], asked[1], {0.5: 'half', 2.0: 'twice'}.get(ratio, '%g times' % ratio))
PYTHON
is "half and twice are that" "$(awk '$2 != $3 || NF != 3' "$scratch/halves")" ""
is "of more than ten" "$(($(wc -l <"$scratch/halves") > 10))" 1
if [ "${CONFIG:-gcc}" = gcc ]; then
    NUDMA=$nudma scripts/whatif-table.sh --check >"$scratch/diff" 2>"$scratch/said"
    is "docs/whatif.md says what comes out" "$? $(cat "$scratch/diff")" "0 "
else
    "$simulate" whatif pcie_bench --quiet --db "$scratch/whatif.db" >/dev/null
    "$nudma" whatif pcie_bench --quiet --db "$scratch/whatif.db" >"$scratch/out"
    is "what-ifs of pcie_bench" $? 0
fi
echo "1..$cases"
[ $failed = 0 ]
