#!/usr/bin/env bash
# whatif-table.sh [--check] [DATABASE]: runs all what-ifs (those that the database lacks; default: all)
# and writes the tables in docs/whatif.md anew, between the lines
#   <!-- whatif -->
#   <!-- end -->
# --check changes nothing, prints what would change and fails if there is anything. Fails, too, if a
# what-if does not come out as expected.
set -eu -o pipefail
cd "$(dirname "$0")/.."
nudma=${NUDMA:-build/nudma}
page=docs/whatif.md
check=
if [ "${1:-}" = --check ]; then check=1; shift; fi
case ${1:-} in -*) sed -n '2,7s/^# //p' "$0" >&2; exit 2 ;; esac
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

status=0
"$nudma" whatif --markdown --quiet --db "${1:-$scratch/whatif.db}" >"$scratch/table" || status=$?
[ $status -le 1 ] || exit $status
awk -v table="$scratch/table" '
    /^<!-- whatif -->$/ { print $0 "\n"; while ((getline line < table) > 0) print line; print ""; inside = 1 }
    /^<!-- end -->$/ { inside = 0 }
    !inside { print }' "$page" >"$scratch/page"
if [ -n "$check" ]; then
    diff -u "$page" "$scratch/page" || status=1
elif ! cmp -s "$page" "$scratch/page"; then
    cat "$scratch/page" >"$page"
fi
exit $status
