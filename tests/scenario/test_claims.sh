#!/usr/bin/env bash
# The published outcomes: every baseline holds, and the predictions that do not are exactly those
# that docs/validation.md explains.
set -u
cd "$(dirname "$0")/../.." || exit 1
nudma=${NUDMA:-build/nudma}
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

echo 1..4
case_is() { # case_is NUMBER TEXT STATUS
    if [ "$3" = 0 ]; then echo "ok $1 - $2"; else echo "not ok $1 - $2"; fi
}

mapfile -t scenarios < <("$nudma" list | awk '$1 ~ /^(pcie_bench|numa)\// { print $1 }')
"$nudma" run "${scenarios[@]}" --quiet --db "$folder/claims.db" >"$folder/run" 2>&1
case_is 1 "all points run" $?

"$nudma" check --db "$folder/claims.db" >"$folder/check" 2>&1
grep -q ' C: 8 of 8,' <(sed 's/(/ /' "$folder/check")
case_is 2 "every baseline holds" $?

awk '$NF == "MISS" { print $1 }' "$folder/check" | sort >"$folder/misses"
# shellcheck disable=SC2016 # the backticks are those of the page
sed -n 's/^| `\(pcb\.[^`]*\|numa\.[^`]*\)` |.*/\1/p' docs/validation.md | sort >"$folder/explained"
diff "$folder/explained" "$folder/misses" | sed 's/^/# /'
cmp -s "$folder/explained" "$folder/misses"
case_is 3 "what misses is what docs/validation.md explains" $?

! grep -q 'no data' "$folder/check"
case_is 4 "every claim has its point" $?
