#!/usr/bin/env bash
# parameter-tables.sh [--check] [PAGE...]: writes the tables of parameters in docs/models/ anew from
# nudma describe, between the lines
#   <!-- describe NAME -->
#   <!-- end -->
# --check changes nothing, prints what would change and fails if there is anything.
set -eu -o pipefail
cd "$(dirname "$0")/.."
nudma=${NUDMA:-build/nudma}
check=
if [ "${1:-}" = --check ]; then check=1; shift; fi
[ $# -gt 0 ] || set -- docs/models/*.md

# The columns stand where their titles do; a source becomes the link of its provenance.
table() { # table NAME
    "$nudma" describe "$1" | awk '
        function cell(i,    text) {
            text = substr($0, at[i], i < n ? at[i + 1] - at[i] : 1000)
            gsub(/^ +| +$/, "", text)
            gsub(/\|/, "\\|", text)
            return text
        }
        /^  parameter / {
            n = split("parameter unit default range provenance source meaning", title, " ")
            for (i = 1; i <= n; i++) at[i] = index($0, title[i])
            print "| parameter | unit | default | range | from | meaning |\n|---|---|---|---|---|---|"
            next
        }
        n && !/^  [a-z]/ { exit }
        n {
            unit = cell(2); from = cell(5); source = cell(6)
            sub(/^docs\/models\//, "", source); sub(/^docs\//, "../", source)
            if (source != "-") from = "[" from "](" source ")"
            printf "| `%s` | %s | %s | %s | %s | %s |\n", cell(1), unit == "-" ? "" : unit, cell(3),
                cell(4), from, cell(7)
        }
        END { if (!n) exit 1 }' || { echo "$0: nudma describe $1 has no parameters" >&2; exit 1; }
}

rewrite() { # rewrite PAGE: the page with its tables
    local inside='' line name
    while IFS= read -r line; do
        case $line in
        '<!-- describe '*' -->')
            name=${line#<!-- describe }
            name=${name% -->}
            printf '%s\n\n' "$line"
            table "$name"
            inside=1
            ;;
        '<!-- end -->')
            printf '\n%s\n' "$line"
            inside=
            ;;
        *) [ -n "$inside" ] || printf '%s\n' "$line" ;;
        esac
    done <"$1"
    if [ -n "$inside" ]; then
        echo "$1: \"<!-- describe $name -->\" without \"<!-- end -->\"" >&2
        return 1
    fi
}

status=0
for page in "$@"; do
    new=$(mktemp)
    rewrite "$page" >"$new" || { rm -f "$new"; exit 1; }
    if [ -n "$check" ]; then
        diff -u "$page" "$new" || status=1
    elif ! cmp -s "$page" "$new"; then
        cat "$new" >"$page"
    fi
    rm -f "$new"
done
exit $status
