#!/usr/bin/env bash
# IOctopus' claims: every baseline holds, and which claims hold is what the table in
# docs/validation.md says (scripts/claims-table.sh writes it). Only the points that claims are about
# are run, and not figure 14, whose nine seconds take minutes.
set -u
cd "$(dirname "$0")/../.." || exit 1
nudma=${NUDMA:-build/nudma}
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

echo 1..3
case_is() { # case_is NUMBER TEXT STATUS
    if [ "$3" = 0 ]; then echo "ok $1 - $2"; else echo "not ok $1 - $2"; fi
}

NUDMA=$nudma scripts/claims-table.sh ioctopus "$folder/claims.db" fig14 >"$folder/table" \
    2>"$folder/run"
status=$?
sed 's/^/# /' "$folder/run"
case_is 1 "the claims' points run" $status

# Rows: | `id` | use | published | accepted | simulated | verdict |
verdicts() { # verdicts FILE: those of IOctopus, without figure 14
    awk -F ' *\\| *' '$2 ~ /^`ioct\./ && $2 !~ /fig14/ { print $2, $3, $7 }' "$1" | sort
}
verdicts "$folder/table" >"$folder/simulated"
! grep -q ' C \(MISS\|no data\|known miss\)' "$folder/simulated"
case_is 2 "every baseline holds" $?

verdicts docs/validation.md >"$folder/told"
diff "$folder/told" "$folder/simulated" | sed 's/^/# /'
[ -s "$folder/told" ] && cmp -s "$folder/told" "$folder/simulated"
case_is 3 "docs/validation.md says which claims hold" $?
