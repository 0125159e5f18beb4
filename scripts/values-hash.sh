#!/usr/bin/env bash
# values-hash.sh FOLDER: a hash over every value with a provenance (families, platforms, devices, defaults) that the
# scenarios of the folder's claims use, as nudma resolves them: of comments, names of files and settings of experiments
# it does not depend.
# values-hash.sh --check [PAGE]: compares the hashes that stand above the tables of claims in the page
# (docs/validation.md), "<!-- values FOLDER HASH -->", and names the tables that were made with other values.
set -eu -o pipefail
cd "$(dirname "$0")/.."
nudma=${NUDMA:-build/nudma}

values_hash() { # values_hash FOLDER
    local said
    said=$(mktemp)
    grep -o "v('$1/[a-z0-9_]*'" "scenarios/$1/claims.cfg" | sed "s/v('//; s/'//" | sort -u |
        xargs "$nudma" run --quick --print-config 2>"$said" |
        LC_ALL=C awk -F '  # ' '$2 ~ /, (datasheet|published|calibrated|estimate)( \(|, borrowed|$)/ {
            sub(/ +$/, "", $1); print $1 }' |
        LC_ALL=C sort -u | sha256sum | cut -c 1-12 || { cat "$said" >&2; rm "$said"; return 1; }
    rm "$said"
}

if [ "$1" != --check ]; then
    values_hash "$1"
    exit
fi
page=${2:-docs/validation.md}
status=0
while read -r folder hash; do
    now=$(values_hash "$folder")
    [ "$now" = "$hash" ] && continue
    echo "$page: the claims of $folder were run with other values ($hash, now $now): run scripts/claims-table.sh" \
        "$folder DATABASE, look at what changed, and replace the table with its hash"
    status=1
done < <(sed -n 's/^<!-- values \([^ ]*\) \([0-9a-f]*\) -->$/\1 \2/p' "$page")
exit $status
