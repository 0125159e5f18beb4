#!/usr/bin/env bash
# Manual pages and completions say what --help says; colours are for terminals.
set -u
cd "$(dirname "$0")/../.." || exit 1
project=$PWD
. tests/scenario/lib.sh
nudma=$simulate # its texts are what is looked at
mkdir bin && ln -s "$nudma" bin/nudma
PATH=$scratch/bin:$PATH
"$project/scripts/manuals.sh" "$nudma" made; is "made" $? 0

commands=$("$nudma" --help | sed -nE 's/^  ([a-z]+) .*/\1/p')
is "a page for each command" "$(cd made/man1 && echo ./*)" \
    "$(for c in $commands; do echo "./nudma-$c.1"; done | sort | xargs) ./nudma.1"
# Every option of every command, with what it means, in the page and in both completions.
lost=
for command in $commands; do
    sed 's/\\-/-/g; s/\\e/\\/g; s/\\f[BIR]//g; s/^\\&//' "made/man1/nudma-$command.1" >page
    page=$(<page)
    bash_options=$(sed -n "s/^    $command) .* options='\([^']*\)'.*/ \1 /p" made/nudma.bash)
    zsh_options=$(sed -n "/^    $command)$/,/;;$/p" made/_nudma)
    while read -r option help; do
        [[ $option == *[a-z] ]] || continue
        [[ $page == *"$option"*"$help"* ]] || lost+=" $command:$option:page"
        [[ $bash_options == *" $option "* ]] || lost+=" $command:$option:bash"
        [[ $zsh_options == *"'*$option"[=[]* ]] || lost+=" $command:$option:zsh"
        n_options=$((${n_options:-0} + 1))
    done < <("$nudma" "$command" --help | sed -nE \
        '/^Application/,/^$/s/^ +(-[a-zA-Z], )?(--[a-z-]+)(=[^ ]+( 1%.)?)? +(.*)/\2 \5/p')
done
is "no option is lost" "$lost" ""
is "there were options" "$([ "${n_options:-0}" -gt 100 ] && echo many)" many
bash -n made/nudma.bash; is "bash takes its completion" $? 0

# shellcheck disable=SC1091 # it is made above
. made/nudma.bash
complete_words() { # complete_words WORD...: the last one is completed
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _nudma
    echo "${COMPREPLY[*]}"
}
touch results.db
is "a command" "$(complete_words nudma expl)" explain
is "an option" "$(complete_words nudma run --sha)" --shard
is "a scenario" "$(complete_words nudma run pcie_bench/latency_si)" pcie_bench/latency_size
is "behind an option with a value" "$(complete_words nudma run -s a=b smartio/iso)" smartio/isolation
is "a folder of claims" "$(complete_words nudma check devic)" device_lending
is "a model" "$(complete_words nudma describe nvme.c)" nvme.controller
is "a platform" "$(complete_words nudma init --platform = t43)" t430
is "what is measured" "$(complete_words nudma measure t43)" t430
is "a format" "$(complete_words nudma plot -F p)" png
is "all formats" "$(complete_words nudma topology --format = '')" "text dot svg hwloc"
is "what there are names of" "$(complete_words nudma list --names = d)" devices
is "of two" "$(complete_words nudma export -F '')" "csv json"
is "a workload" "$(complete_words nudma init --workload pc)" pcie_bench
is "a file" "$(complete_words nudma run --db = res)" results.db
is "a database" "$(complete_words nudma merge res)" results.db
is "nothing where nothing is known" "$(complete_words nudma run --seeds = 1)" ""

# A claim that holds and one that does not.
"$simulate" run pcie_bench/latency_size --filter 'op=read transfer_bytes=64' -q --db r.db >/dev/null 2>&1
cat >claims.cfg <<'END'
claims = (
  { id = "holds"; use = "K"; kind = "predicted"; expr = "v('pcie_bench/latency_size','op=read transfer_bytes=64','latency_mean_ns')"; lo = 1.0; hi = 999.0; published = "80"; text = "wide"; },
  { id = "fails"; use = "K"; kind = "predicted"; expr = "v('pcie_bench/latency_size','op=read transfer_bytes=64','latency_mean_ns')"; lo = 1.0; hi = 2.0; published = "1.5"; text = "narrow"; }
);
END
shown() { env "$@" script -qec "'$nudma' check claims.cfg --db r.db" /dev/null </dev/null | tr -d '\r'; }
escape=$(printf '\033')
has "a terminal has colours" "$(shown TERM=xterm NO_COLOR=)" "^holds .*$escape\[32mok$escape\[0m"
has "others for what misses" "$(shown TERM=xterm NO_COLOR=)" "^fails .*$escape\[31mMISS$escape\[0m"
is "not with NO_COLOR" "$(shown TERM=xterm NO_COLOR=1 | grep -c "$escape")" 0
is "nor on a dumb one" "$(shown TERM=dumb NO_COLOR= | grep -c "$escape")" 0
"$nudma" check claims.cfg --db r.db >piped 2>&1
is "nor in a pipe" "$(grep -c "$escape" piped) $(grep -cE '^(holds|fails) ' piped)" "0 2"

echo "1..$cases"
[ $failed = 0 ]
