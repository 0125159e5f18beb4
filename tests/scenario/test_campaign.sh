#!/usr/bin/env bash
# Campaigns: which points run, in which order, what stops them, how parts are joined again.
set -u
cd "$(dirname "$0")/../.." || exit 1
nudma=$(realpath "${NUDMA:-${BUILD:-build}/nudma}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export NUDMA_SCENARIOS=$PWD/scenarios
cd "$scratch" || exit 1
size=pcie_bench/latency_size
cases=0
failed=0

is() { # is NAME FOUND EXPECTED
    cases=$((cases + 1))
    if [ "$2" = "$3" ]; then echo "ok $cases - $1"; else
        echo "not ok $cases - $1"
        printf '# found:    %s\n# expected: %s\n' "$2" "$3"
        failed=$((failed + 1))
    fi
}
has() { # has NAME TEXT PATTERN
    cases=$((cases + 1))
    if grep -qE -- "$3" <<<"$2"; then echo "ok $cases - $1"; else
        echo "not ok $cases - $1"
        printf '# not in it: %s\n' "$3"
        head -n 20 <<<"$2" | sed 's/^/# /'
        failed=$((failed + 1))
    fi
}
query() { sqlite3 -readonly -batch "$1" "$2" 2>&1; }

# ---- Which points --------------------------------------------------------------------------------
list() { "$nudma" run "$@" --list -q; }
is "--filter selects by number" "$(list $size --filter 'op=read transfer_bytes>=1.25kB' | wc -l)" 3
is "and by name" "$(list $size --filter 'op!=read' | wc -l)" 14
is "alternatives" "$(list $size -f 'transfer_bytes=8,16 op=read || transfer_bytes=2KiB' | wc -l)" 4
is "of several scenarios those with the axis" \
    "$(list pcie_bench --filter cache=device_warm | cut -d' ' -f1 | sort -u | tr '\n' ' ')" \
    "pcie_bench/latency_window "
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

for i in 1 2 3 4; do list pcie_bench --shard $i/4 >shard$i.txt; done
is "shards are all points, each once" "$(cat shard?.txt | sort)" "$(list pcie_bench | sort)"
is "of the same size" "$(wc -l <shard1.txt | tr -d ' ') $(wc -l <shard4.txt | tr -d ' ')" "69 68"
is "the same each time" "$(list pcie_bench --shard 2/4)" "$(cat shard2.txt)"
list $size --quick --shard 9/9; is "a shard without points" $? 0
for shard in 0/4 5/4 1 x/4 1/4x -1/4 ''; do
    list $size --shard "$shard" 2>/dev/null; is "--shard '$shard'" $? 2
done

# ---- Axes ----------------------------------------------------------------------------------------
sed 's/^axes = .*/constraints = ( "op=read || transfer_bytes<1KiB" );\n&/' \
    "$NUDMA_SCENARIOS/$size.cfg" >constrained.cfg
is "a constraint leaves points out" "$(list constrained.cfg | wc -l)" 24
sed 's/^constraints = .*/constraints = ( "opp=read" );/' constrained.cfg >wrong.cfg
out=$(list wrong.cfg 2>&1); is "a wrong constraint" $? 2
has "is a mistake with its place" "$out" '^wrong.cfg:[0-9]+: constraints.\[0\]: there is no axis "opp"'

echo "1..$cases"
[ $failed = 0 ]
