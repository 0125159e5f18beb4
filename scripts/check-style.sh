#!/usr/bin/env bash
# The rules of style that a machine can check; docs/contributing.md has them in words. Prints every
# breach as "file:line: what", ends with status 1 if there was one.
#   scripts/check-style.sh [FILE...]      (default: all files that git knows or would add)
set -u
cd "$(dirname "$0")/.." || exit 1

file_lines_max=900 # tests may be longer
function_lines_max=80

files=()
while IFS= read -r -d '' file; do
    # bytes, which may look like text, and what other programs print
    case $file in tests/fuzz/corpus/* | tests/cli/import/server/* | tests/cli/measure/*) continue ;; esac
    if [ -f "$file" ] && [ ! -L "$file" ]; then files+=("$file"); fi
done < <(
    if [ $# -gt 0 ]; then printf '%s\0' "$@"; else
        git ls-files -z --cached --others --exclude-standard ||
            find . -type f -not -path './.git/*' -not -path './build*' -printf '%P\0'
    fi
)
c_files=() scripts=()
for file in "${files[@]}"; do
    case $file in
    *.[ch]) c_files+=("$file") ;;
    *.sh | .ci/run) scripts+=("$file") ;;
    esac
done
# Text is what grep takes for text: pictures and fonts are left alone, and files without a byte.
mapfile -d '' texts < <(printf '%s\0' "${files[@]}" | xargs -0 -r grep -lIZ '' --)
[ ${#texts[@]} -gt 0 ] || { echo "check-style: no files found" >&2; exit 1; }

breaches=$(mktemp) || exit 1
trap 'rm -f "$breaches"' EXIT
say() { # say MESSAGE <"file:line:text": the same lines with the message in front of the text
    sed "s/^\([^:]*:[0-9]*\):/\1: $1: /" >>"$breaches"
}
code=("${c_files[@]}" "${scripts[@]}")
for file in "${files[@]}"; do case $file in Makefile | *.S | *.gp) code+=("$file") ;; esac; done

# The words are put together here so that this file does not contain them.
unfinished="TO""DO|FIX""ME|XX""X|place""holder|st""ub|st""ubs|not impl""emented"
grep -HnEiw "$unfinished" "${code[@]}" /dev/null | say "said to be unfinished"
machine='(^|[^A-Za-z0-9_.])/(wo''rk|far''m|ho''me|ro''ot|tmp/stu''dio)/'
grep -HnE "$machine" "${texts[@]}" /dev/null | say "a path of one machine"
grep -HnE '[[:space:]]+$' "${texts[@]}" /dev/null | say "space at the end of the line"
without_tabs=()
for file in "${texts[@]}"; do
    case $file in *Makefile | *.csv | *.tsv) ;; *) without_tabs+=("$file") ;; esac
done
grep -HnP '\t' "${without_tabs[@]}" /dev/null | say "tab"
if [ "$(printf '%s\0' "${texts[@]}" | xargs -0 tail -q -c 1 | wc -l)" != ${#texts[@]} ]; then
    for file in "${texts[@]}"; do
        [ -z "$(tail -c 1 "$file")" ] ||
            echo "$file:$(wc -l <"$file"): no newline at the end" >>"$breaches"
    done
fi

# Lengths; include guards that follow from the path.
if [ ${#c_files[@]} -gt 0 ]; then
    awk -v file_max=$file_lines_max -v function_max=$function_lines_max '
        function ends() {
            if (name != "" && lines > file_max && name !~ /^tests\//)
                print name ":" lines ": longer than " file_max " lines"
            if (name ~ /\.h$/ && guard == "") print name ":1: no include guard " wanted
        }
        FNR == 1 {
            ends(); name = FILENAME; start = 0; guard = ""
            wanted = toupper(name); gsub(/[^A-Z0-9]/, "_", wanted)
        }
        { lines = FNR }
        $1 == "#ifndef" && $2 == wanted { guard = wanted }
        # clang-format leaves comments alone; columns of a table may go further
        length > 100 && /^ *(\/\*| \*) / && !/[^ ]   +[^ ]/ && !/"/ {
            print name ":" FNR ": a comment of " length " columns, more than 100"
        }
        /^[{]/ { start = FNR }
        /^[}]/ && start {
            if (FNR - start - 1 > function_max)
                print name ":" start ": a function of " FNR - start - 1 " lines, more than " \
                    function_max
            start = 0
        }
        END { ends() }' "${c_files[@]}" >>"$breaches"
    if command -v clang-format >/dev/null; then
        printf '%s\0' "${c_files[@]}" |
            xargs -0 -n 40 -P "$(nproc)" clang-format --dry-run -Werror 2>&1 |
            awk -F : '/(error|warning):/ && !said[$1]++ {
                print $1 ":" $2 ": not laid out as clang-format -i does it" }' >>"$breaches"
    else
        echo "check-style: clang-format is missing; run: scripts/setup.sh test" >&2
        exit 1
    fi
fi

# Scripts parse; with shellcheck there, they are clean.
for file in "${scripts[@]}"; do
    IFS= read -r first <"$file" || first=
    case $first in *bash*) shell="bash" ;; *) shell="sh" ;; esac
    "$shell" -n "$file" 2>>"$breaches"
    [ -x "$file" ] || case $file in tests/*) ;; *) echo "$file:1: not executable" >>"$breaches" ;; esac
done
if command -v shellcheck >/dev/null && [ ${#scripts[@]} -gt 0 ]; then
    printf '%s\0' "${scripts[@]}" | xargs -0 -n 8 -P "$(nproc)" shellcheck -x -f gcc >>"$breaches"
fi

# A reference to docs/sources.md, and a link between pages, leads somewhere.
anchors=$(grep -ho '<a id="[^"]*"' docs/sources.md 2>/dev/null | cut -d '"' -f 2)
export anchors
printf '%s\n' "${texts[@]}" | grep -v '^tests/' | # a test may make up a source
    xargs -d '\n' grep -HnoE 'docs/sources\.md#[A-Za-z0-9_.-]+' /dev/null |
    awk '
        BEGIN { n = split(ENVIRON["anchors"], list, "\n"); for (i = 1; i <= n; i++) known[list[i]] = 1 }
        { anchor = $0; sub(/.*#/, "", anchor); sub(/[.-]+$/, "", anchor) }
        !known[anchor] { sub(/:docs.*/, ""); print $0 ": docs/sources.md has no anchor " anchor }
    ' >>"$breaches"
pages=()
for file in "${texts[@]}"; do case $file in *.md) pages+=("$file") ;; esac; done
grep -HnoE '\]\([^)# ]+' "${pages[@]}" /dev/null | while IFS=: read -r file line link; do
    link=${link#](} folder=.
    case $link in *://* | mailto:*) continue ;; esac
    case $file in */*) folder=${file%/*} ;; esac
    [ -e "$folder/$link" ] || echo "$file:$line: the link leads nowhere: $link"
done >>"$breaches"
if [ -e docs/README.md ]; then
    listed=$(<docs/README.md)
    for file in "${pages[@]}"; do
        case $file in docs/README.md) continue ;; docs/*) ;; *) continue ;; esac
        [[ $listed == *"(${file#docs/})"* ]] || echo "$file:1: docs/README.md does not list this page"
    done >>"$breaches"
fi

if [ -s "$breaches" ]; then
    sort -t : -k 1,1 -k 2,2n "$breaches"
    echo "check-style: $(wc -l <"$breaches") breaches in ${#files[@]} files" >&2
    exit 1
fi
echo "check-style: ${#files[@]} files, no breach"
