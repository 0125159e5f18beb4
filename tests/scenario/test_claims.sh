#!/usr/bin/env bash
# The published outcomes: every baseline holds, and the predictions that do not are exactly those
# that the claims files mark and docs/validation.md explains.
set -u
cd "$(dirname "$0")/../.." || exit 1
nudma=${NUDMA:-build/nudma}
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

echo 1..8
case_is() { # case_is NUMBER TEXT STATUS
    if [ "$3" = 0 ]; then echo "ok $1 - $2"; else echo "not ok $1 - $2"; fi
}

# All of pcie_bench, as claims about its hosts take the median of whole scenarios; of numa, which takes longer, the points
# that claims name.
mapfile -t scenarios < <("$nudma" list | awk '$1 ~ /^pcie_bench\// { print $1 }')
"$nudma" run "${scenarios[@]}" --quiet --db "$folder/claims.db" >"$folder/run" 2>&1 &&
    NUDMA=$nudma scripts/claims-table.sh numa "$folder/claims.db" >"$folder/table" 2>"$folder/run"
case_is 1 "all points run" $?

"$nudma" check pcie_bench numa --db "$folder/claims.db" >"$folder/check" 2>&1
grep -q ' C: 11 of 11,' <(sed 's/(/ /' "$folder/check")
case_is 2 "every baseline holds" $?

"$nudma" check pcie_bench numa --json --db "$folder/claims.db" >"$folder/check.json" 2>&1
ids() { # ids VERDICT: the claims with it
    sed -n "s/^ *{ \"id\": \"\([^\"]*\)\".*\"verdict\": \"$1\".*/\1/p" "$folder/check.json" | sort
}
same() { # same FILE FILE
    diff "$1" "$2" | sed 's/^/# /'
    cmp -s "$1" "$2"
}
ids 'MISS' >"$folder/unexpected"
ids 'now holds' >>"$folder/unexpected"
same /dev/null "$folder/unexpected"
case_is 3 "what misses is what the claims files mark as known misses" $?

ids 'known miss' >"$folder/misses"
# shellcheck disable=SC2016 # the backticks are those of the page
awk -F '|' 'NF == 6' docs/validation.md | sed -n 's/^| `\(pcb\.[^`]*\|numa\.[^`]*\)` |.*/\1/p' |
    sort >"$folder/explained"
same "$folder/explained" "$folder/misses"
case_is 4 "and what docs/validation.md explains" $?

! grep -q '"no data"' "$folder/check.json"
case_is 5 "every claim has its point" $?

"$nudma" check pcie_bench numa --known-ok --db "$folder/claims.db" >"$folder/check" 2>&1
case_is 6 "--known-ok accepts them" $?

# Rows: | `id` | use | kind | published | accepted | simulated | verdict |
n=0
for paper in pcie_bench:pcb numa:numa; do
    rows() { awk -F ' *\\| *' -v id="^\`${paper#*:}\\." '$2 ~ id && NF == 9 { print $2, $3, $4, $8 }' "$1" | sort; }
    scripts/claims-table.sh "${paper%:*}" "$folder/claims.db" 2>&1 >"$folder/table" | sed 's/^/# /'
    rows "$folder/table" >"$folder/simulated"
    rows docs/validation.md >"$folder/told"
    [ -s "$folder/told" ] && same "$folder/told" "$folder/simulated"
    case_is $((6 + (n += 1))) "docs/validation.md has ${paper%:*} claim by claim" $?
done
