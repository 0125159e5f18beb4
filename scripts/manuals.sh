#!/usr/bin/env bash
# Manual pages and completions, made from what `nudma --help` and `nudma COMMAND --help` print.
#   scripts/manuals.sh NUDMA FOLDER
# writes FOLDER/man1/nudma.1 and nudma-COMMAND.1, FOLDER/nudma.bash and FOLDER/_nudma (zsh).
set -eu
[ $# = 2 ] || { sed -n '2,4s/^# \{0,1\}//p' "$0" >&2; exit 2; }
nudma=$1 folder=$2
export LC_ALL=C.UTF-8
rm -rf "$folder/man1" # pages of commands that are no more
mkdir -p "$folder/man1"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

version=$("$nudma" --version | cut -d ' ' -f 2)
"$nudma" --help >"$scratch/help"
# "run<TAB>run the points of scenarios ..."
sed -nE 's/^  ([a-z]+) +(.*)$/\1\t\2/p' "$scratch/help" >"$scratch/commands"
mapfile -t commands < <(cut -f 1 "$scratch/commands")
[ ${#commands[@]} -gt 0 ] || { echo "manuals: $nudma --help names no command" >&2; exit 1; }

# The help of a command as lines "kind<TAB>...": usage, summary, option (short, long, value, help), text.
cat >"$scratch/parse.awk" <<'AWK'
BEGIN { OFS = "\t"; part = "usage" }
/^Usage:/ { next }
/^Help Options:/ { part = "help"; next }
/^Application Options:/ { part = "options"; next }
part == "usage" && /^  / {
    sub(/^ +nudma [a-z]+ +/, ""); sub(/^\[OPTION[^]]*\] */, ""); print "usage", $0
    part = "summary"; next
}
part == "options" && /^$/ { part = "text"; next }
part == "summary" || part == "text" { print part, $0; next }
part == "options" {
    line = $0; short = ""; value = ""
    sub(/^ +/, "", line)
    if (line ~ /^-[A-Za-z], /) { short = substr(line, 2, 1); line = substr(line, 5) }
    at = match(line, /  +/)
    name = substr(line, 3, at - 3); help = substr(line, at + RLENGTH)
    at = index(name, "=")
    if (at > 0) { value = substr(name, at + 1); name = substr(name, 1, at - 1) }
    print "option", short == "" ? "-" : short, name, value == "" ? "-" : value, help
}
AWK
for command in "${commands[@]}"; do
    "$nudma" "$command" --help >"$scratch/$command.help"
    awk -f "$scratch/parse.awk" "$scratch/$command.help" >"$scratch/$command"
done

# ---- Manual pages ----------------------------------------------------------------------------------
cat >"$scratch/page.awk" <<'AWK'
function plain(text) { # a line of troff that says the same
    gsub(/\\/, "\\e", text); gsub(/-/, "\\-", text); gsub(/…/, "...", text)
    if (text ~ /^[.']/) text = "\\&" text
    return text
}
function section(name) { if (name != shown) print ".SH " name; shown = name }
BEGIN {
    FS = "\t"
    printf ".TH NUDMA\\-%s 1 \"\" \"nudma %s\" \"User Commands\"\n", toupper(command), version
    print ".SH NAME\nnudma\\-" command " \\- " plain(help)
}
$1 == "usage" { section("SYNOPSIS"); print ".B nudma " command "\n[\\fIOPTION\\fR...] " plain($2); next }
$1 == "summary" || $1 == "text" { text[$1] = text[$1] ($2 == "" ? ".PP" : plain($2)) "\n"; next }
$1 == "option" {
    option = "\\fB\\-\\-" plain($3) "\\fR"
    if ($4 != "-") option = option "=\\fI" plain($4) "\\fR"
    if ($2 != "-") option = "\\fB\\-" $2 "\\fR, " option
    options = options ".TP\n" option "\n" plain($5) "\n"
}
END {
    gsub(/(\n\.PP)+\n$/, "\n", text["summary"]); sub(/^\.PP\n/, "", text["summary"])
    section("DESCRIPTION"); printf "%s", text["summary"]
    gsub(/(\n\.PP)+\n$/, "\n", text["text"])
    if (text["text"] != "") printf ".PP\n%s", text["text"]
    section("OPTIONS"); printf "%s", options
    print ".SH SEE ALSO\n.BR nudma (1)"
}
AWK
while IFS=$'\t' read -r command help; do
    awk -v command="$command" -v help="$help" -v version="$version" -f "$scratch/page.awk" \
        "$scratch/$command" >"$folder/man1/nudma-$command.1"
done <"$scratch/commands"
{
    printf '.TH NUDMA 1 "" "nudma %s" "User Commands"\n' "$version"
    printf '.SH NAME\nnudma \\- %s\n' "simulator of DMA across sockets, hosts and copy engines"
    printf '.SH SYNOPSIS\n.B nudma\n.I COMMAND\n[\\fIOPTION\\fR...] [\\fIARGUMENT\\fR...]\n.SH COMMANDS\n'
    sed -E 's/-/\\-/g; s/^([a-z]+)\t(.*)/.TP\n.BR nudma\\-\1 (1)\n\2/' "$scratch/commands"
    cat <<'ROFF'
.SH EXIT STATUS
.TP
0
done
.TP
1
a run or a claim failed, or the file system refused
.TP
2
the input is wrong, and nothing ran
.TP
130
interrupted
.SH ENVIRONMENT
.TP
.B NUDMA_SCENARIOS
a folder of scenarios that is looked at first
.TP
.B NO_COLOR
set to anything, no output is coloured
ROFF
} >"$folder/man1/nudma.1"

# ---- Completions -----------------------------------------------------------------------------------
# What an argument or the value of an option is: scenarios, claims, whatifs, models, files, folders.
kind_of() { # kind_of COMMAND USAGE
    case $2 in
    *SCENARIO*) echo scenarios ;;
    *PLATFORM*) echo platforms_or_files ;;
    *CLAIMS*) echo claims ;;
    *WHATIFS*) echo whatifs ;;
    *.db* | *FILE*) echo files ;;
    *NAME*) if [ "$1" = describe ]; then echo models; else echo scenarios; fi ;;
    *) echo none ;;
    esac
}
kind_of_value() { # kind_of_value OPTION VALUE HELP
    case $1:$2 in
    format:*) # the words that its help begins with, as "_text_png_svg"
        sed -E 's/;.*//; s/ or several.*//; s/\([^)]*\)//g; s/\(.*//; s/(,| or) */ /g; s/ *$//; s/ +/_/g; s/^/_/' <<<"$3" ;;
    workload:*) sed -E 's/.*: ([a-z_, ]+) \(.*/+\1/; s/, /+/g' <<<"$3" ;;
    *:FILE*) echo files ;;
    *:DIR) echo folders ;;
    scenario:*) echo scenarios ;;
    platform:NAME) echo machines ;;
    names:*) echo kinds ;;
    *) echo none ;;
    esac
}
usage_of() { sed -n 's/^usage\t//p' "$scratch/$1"; }
options_of() { sed -n 's/^option\t//p' "$scratch/$1"; }

{
    cat <<'BASH'
# Completion of nudma for bash, made by scripts/manuals.sh from nudma --help.
_nudma_of() { # _nudma_of KIND WORD: what begins like the word
    local names=
    case $1 in
    scenarios) names=$(nudma list --names=scenarios 2>/dev/null; nudma list --names=scenarios 2>/dev/null | sed -n 's|/[^/]*$||p' | uniq) ;;
    claims | whatifs | platforms | machines) names=$(nudma list --names="$1" 2>/dev/null) ;;
    platforms_or_files) names=$(nudma list --names=platforms 2>/dev/null) ;;
    _*) names=${1//_/ } ;;
    +*) names=${1//+/ } ;;
    kinds) names="scenarios claims whatifs platforms machines devices" ;;
    models) names=$(nudma describe 2>/dev/null | sed -nE 's/^ *([a-z][a-z0-9_.]*)( .*)?$/\1/p') ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$names" -- "$2")
    case $1 in
    kinds | models | _* | +*) ;;
    folders) mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -d -- "$2") ;;
    none) ;;
    *) mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$2") ;;
    esac
}
_nudma() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} arguments= options= values=
    COMPREPLY=()
    if [ "$COMP_CWORD" = 1 ]; then
BASH
    # shellcheck disable=SC2016 # it is the completion that expands them
    printf '        mapfile -t COMPREPLY < <(compgen -W "%s --help --version" -- "$word")\n' "${commands[*]}"
    # shellcheck disable=SC2016
    printf '        return\n    fi\n    case ${COMP_WORDS[1]} in\n'
    for command in "${commands[@]}"; do
        options="--help" values=
        while IFS=$'\t' read -r short long value help; do
            options="$options --$long"
            [ "$short" = - ] || options="$options -$short"
            [ "$value" != - ] || continue
            kind=$(kind_of_value "$long" "$value" "$help")
            values="$values --$long=$kind"
            [ "$short" = - ] || values="$values -$short=$kind"
        done < <(options_of "$command")
        printf "    %s) arguments=%s options='%s' values='%s ' ;;\n" "$command" \
            "$(kind_of "$command" "$(usage_of "$command")")" "$options" "$values"
    done
    cat <<'BASH'
    help) mapfile -t COMPREPLY < <(compgen -W "COMMANDS" -- "$word"); return ;;
    esac
    # "--db=x" comes as three words
    if [ "$word" = = ]; then word=; elif [ "$before" = = ]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi
    if [[ $values == *" $before="* ]]; then
        values=${values#*" $before="}
        _nudma_of "${values%% *}" "$word"
    elif [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
    else
        _nudma_of "${arguments:-none}" "$word"
    fi
}
complete -o filenames -F _nudma nudma
BASH
} | sed "s/COMMANDS/${commands[*]}/" >"$folder/nudma.bash"

# Of a text what zsh's _arguments takes between brackets, in single quotes.
zsh_text() { sed -e 's/[]:\\[]/\\&/g' -e "s/'/'\\\\''/g" <<<"$1"; }
{
    cat <<'ZSH'
#compdef nudma
# Completion of nudma for zsh, made by scripts/manuals.sh from nudma --help.
_nudma_scenarios() {
    local -aU names; names=(${(f)"$(nudma list --names=scenarios 2>/dev/null)"})
    names+=(${names:h}); names=(${names:#.}); compadd -a names; _files
}
_nudma_names() { local -a names; names=(${(f)"$(nudma list --names=$1 2>/dev/null)"}); compadd -a names; _files }
_nudma_claims() { _nudma_names claims }
_nudma_whatifs() { _nudma_names whatifs }
_nudma_machines() { local -a names; names=(${(f)"$(nudma list --names=machines 2>/dev/null)"}); compadd -a names }
_nudma_models() {
    local -a names; names=(${(f)"$(nudma describe 2>/dev/null | sed -nE 's/^ *([a-z][a-z0-9_.]*)( .*)?$/\1/p')"})
    compadd -a names
}
_nudma_platforms_or_files() { _nudma_names platforms }
_nudma_kinds() { compadd scenarios claims whatifs platforms machines devices }
_nudma_files() { _files }
_nudma_folders() { _files -/ }
_nudma_none() { _message 'a value' }
_nudma() {
    local -a commands
    commands=(
ZSH
    while IFS=$'\t' read -r command help; do
        printf "        '%s:%s'\n" "$command" "$(zsh_text "$help")"
    done <"$scratch/commands"
    cat <<'ZSH'
    )
    if (( CURRENT == 2 )); then _describe command commands; return; fi
    local command=$words[2]
    shift words; (( CURRENT-- ))
    case $command in
ZSH
    for command in "${commands[@]}"; do
        printf '    %s)\n        _arguments -s \\\n' "$command"
        while IFS=$'\t' read -r short long value help; do
            text=$(zsh_text "$help") ending=
            kind=$(kind_of_value "$long" "$value" "$help")
            case $kind in
            _*) kind="(${kind//_/ })" ;;
            +*) kind="(${kind//+/ })" ;;
            *) kind=_nudma_$kind ;;
            esac
            [ "$value" = - ] || ending=":$(zsh_text "$value"):$kind"
            if [ "$value" = - ]; then equals=; else equals='='; fi
            printf "            '*--%s%s[%s]%s' \\\\\n" "$long" "$equals" "$text" "$ending"
            [ "$short" = - ] || printf "            '*-%s[%s]%s' \\\\\n" "$short" "$text" "$ending"
        done < <(options_of "$command")
        usage=$(usage_of "$command")
        printf "            '--help[Show help]' '*:%s:_nudma_%s' ;;\n" "$(zsh_text "${usage:-nothing}")" \
            "$(kind_of "$command" "$usage")"
    done
    printf '    esac\n}\n_nudma "$@"\n'
} >"$folder/_nudma"
