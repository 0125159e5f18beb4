#!/usr/bin/env bash
# What README.md, the tutorial and the pages of docs/ with examples behind "$" show is what the commands print,
# numbers included. Which claims hold comes from the claims files, which test_claims.sh compares with runs.
set -u
cd "$(dirname "$0")/../.." || exit 1
project=$PWD
. tests/scenario/lib.sh

# Under the sanitizers nothing of it: other tests run the same commands there.
pages=$(cd "$project" && grep -lE '^    \$ ' README.md docs/*.md)
[ "${CONFIG:-}" != san ] || pages=
for page in $pages; do
    left_out=0
    while IFS= read -r line; do
        case $line in
        "ok "*) is "${line#ok * - }" ok ok ;;
        "not ok "*) is "${line#not ok * - }" "what it prints is another (scripts/doc-examples.py $page)" "what the page shows" ;;
        "# "*" left out") left_out=${line//[^0-9]/} ;;
        1..*) is "$page has examples" "$([ $((${line#1..} + left_out)) -ge 1 ] && echo yes)" yes ;;
        esac
    done < <(NUDMA=$simulate "$project/scripts/doc-examples.py" "$project/$page")
done

# What stands there without a "$" is looked at: commands, options, scenarios, filters and settings that are there.
# shellcheck disable=SC2016 # backquotes of Markdown
printf '%s\n' '    nudma rnu' '    nudma check --known-okay' 'or `nudma run pcie_bench/latency_sise`,' \
    '    nudma run pcie_bench/latency_size --filter op=raed; nudma x' '`nudma run --bands` and `nudma plot SCENARIO`' >wrong.md
commands() { NUDMA=$nudma "$project/scripts/doc-commands.py" "$@"; }
is "mistakes in a page" "$(commands wrong.md | grep -c '^#   nudma ')" 4
if [ "${CONFIG:-}" != san ]; then
    is "commands that pages show are there" "$(cd "$project" && commands README.md docs/*.md docs/models/*.md |
        grep -vE '^(ok |1\.\.)')" ""
fi

# The figure and the table of `make run`.
size=pcie_bench/latency_size
"$simulate" run $size -q >/dev/null
trimmed() { sed 's/^ *//; s/ *$//' | tr -s ' '; }
indented=$(sed -n 's/^    //p' "$project/README.md" | trimmed)
is "the figure" "$(sed -n '/^DMA latency over/,/^C\|^B write read/p' <<<"$indented")" \
    "$("$nudma" plot $size --format text | trimmed | sed -n '/^DMA latency over/,/^B write read/p')"
"$nudma" check pcie_bench >claims.txt 2>&1
shown=$(grep '^pcb\.' <<<"$indented")
is "claims are shown" "$(wc -l <<<"$shown")" 5
lost=$(grep -vxFf <(trimmed <claims.txt) <<<"$shown")
is "with their values" "$lost" ""

# "79 of 86", "fitted 4 of 4", and the table of papers.
count() { # count KIND FILE...: "HOLD of ALL" of the claims of a kind ("": of any)
    local kind=$1
    shift
    cat "$@" | tr '\n' ' ' | grep -oE '\{ *id = "[^}]*\}' | grep -E "kind = \"$kind" |
        awk '{ n++; misses += / misses = / } END { printf "%d of %d", n - misses, n }'
}
claims=$project/scenarios/pcie_bench/claims.cfg
has "claims by kind" "$indented" "^fitted $(count fitted "$claims"), interpolated $(count interpolated "$claims"),\
 by construction $(count "by construction" "$claims"), predicted $(count predicted "$claims")\$"
has "claims in all" "$indented" "^$(count "" "$claims") given claims hold"
# shellcheck disable=SC2016 # backquotes of Markdown
papers() { grep -o '`[a-z_]*`' | tr -d '`'; }
rows=0
while IFS='|' read -r _ names _ holds _; do
    files=$(papers <<<"$names" | sed "s|.*|$project/scenarios/&/claims.cfg|")
    # shellcheck disable=SC2086 # a word each
    is "claims of$names" "$(xargs <<<"$holds")" "$(count "" $files)"
    rows=$((rows + 1))
done < <(grep -E '\| [0-9]+ of [0-9]+ \|$' "$project/README.md")
is "all papers are in the table" "$(grep -E '\| [0-9]+ of [0-9]+ \|$' "$project/README.md" | cut -d '|' -f 2 |
    papers | LC_ALL=C sort | xargs)" \
    "$(cd "$project/scenarios" && for f in */claims.cfg; do dirname "$f"; done | LC_ALL=C sort | xargs)"

# docs/explanation.md: of the same claims those that are predicted.
predicted=$(grep -E '\| [0-9]+ of [0-9]+ \|' "$project/docs/explanation.md")
is "areas of accuracy" "$(wc -l <<<"$predicted")" "$(find "$project/scenarios" -name claims.cfg | wc -l)"
while IFS='|' read -r _ _ names holds _; do
    is "predictions of$names" "$(xargs <<<"$holds")" \
        "$(count predicted "$project/scenarios/$(papers <<<"$names")/claims.cfg")"
done <<<"$predicted"

# docs/faults.md names tests that are there; docs/quality.md has its matrix.
(cd "$project" && scripts/fault-matrix.py --check) 2>faults.txt
is "matrix of faults" "$(cat faults.txt)" ""

echo "1..$cases"
[ $failed = 0 ]
