#!/usr/bin/env bash
# claims-table.sh FOLDER DATABASE [WITHOUT]: runs the points that the claims of a folder are about
# (not the scenarios whose names match WITHOUT) with SEEDS seeds (1) as far as the database lacks
# them, and prints the claims with what came out as a table for docs/validation.md,
# with the hash of the values that it was made with (values-hash.sh). SHORTER has words
# "SCENARIO:SETTING=VALUE", for scenarios that are to take less time, LEAVE_OUT an expression for points, PRECISION
# what `nudma run --precision` takes.
set -eu -o pipefail
cd "$(dirname "$0")/.."
nudma=${NUDMA:-build/nudma}
claims=scenarios/$1/claims.cfg

# A point may end in a value that the claim's query puts in: ...message_bytes='||column1||'...
points_of() { # points_of SCENARIO: a condition for --filter
    grep -o "v('$1','[^']*'[,|]" "$claims" | sed "s/.*,'//; s/'.\$//; s/ *[a-z_]*=\$//" |
        sort -u | sed -E "/${LEAVE_OUT:-^$}/d" | paste -s -d '#' | sed 's/#/ || /g'
}
grep -o "v('$1/[a-z0-9_]*'" "$claims" | sed "s/v('//; s/'//" | sort -u |
    while read -r scenario; do
        if [ -n "${3:-}" ] && [[ $scenario =~ $3 ]]; then continue; fi
        points=$(points_of "$scenario")
        set=()
        for word in ${SHORTER:-}; do
            if [ "${word%%:*}" = "$scenario" ]; then set+=(--set "${word#*:}"); fi
        done
        "$nudma" run "$scenario" "${set[@]}" ${points:+--filter "$points"} --seeds "${SEEDS:-1}" \
            ${PRECISION:+--precision "$PRECISION"} --quiet --db "$2" >/dev/null
    done

echo "<!-- values $1 $(NUDMA=$nudma scripts/values-hash.sh "$1") -->"
echo
echo '| claim | use | kind | published | accepted | simulated | verdict |'
echo '|---|---|---|---|---|---|---|'
# Columns of the report stand two or more blanks apart; without an error there is a dash.
"$nudma" check "$1" --known-ok --db "$2" | sed 's/   *K  / K  /; s/   *C  / C  /' |
    awk -F '  +' '/^[a-z]+\.[^ ]+ [CK] / {
        split($1, head, " ")
        print "| `" head[1] "` | " head[2] " | " $2 " | " $3 " | " $4 " | " $5 " | " $7 " |"
    }' || [ "${PIPESTATUS[0]}" = 1 ]
