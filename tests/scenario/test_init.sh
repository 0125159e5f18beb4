#!/usr/bin/env bash
# nudma init: what it writes runs as it stands, of each workload; it replaces no file.
set -u
cd "$(dirname "$0")/../.." || exit 1
project=$PWD
. tests/scenario/lib.sh

out=$("$nudma" init 2>&1); is "init" $? 0
has "says what it wrote" "$out" '^scenario.cfg is written'
has "and what comes next" "$out" '^  nudma run scenario.cfg$'
is "a comment to each part" "$(grep -c '^# ' scenario.cfg)" 7
out=$("$nudma" init 2>&1); is "a file that is there" $? 2
has "stays" "$out" '^nudma init: scenario.cfg: is there already, and stays as it is'
ln -s nowhere link.cfg
"$nudma" init link.cfg 2>/dev/null; is "a link to nowhere is there, too" $? 2

for template in "$project"/scenarios/templates/*.cfg; do
    workload=$(basename "$template" .cfg)
    "$nudma" init "$workload.cfg" --workload "$workload" >/dev/null; is "$workload" $? 0
    out=$("$simulate" run "$workload.cfg" --quick 2>&1 >/dev/null); is "$workload runs" $? 0
    is "$workload settles" "$(grep -c 'not settled' <<<"$out")" 0
    has "$workload has a figure" "$("$nudma" plot "$workload.cfg" 2>&1)" '^ +\|'
    has "$workload is named by --help" "$("$nudma" init --help)" "[ ,]$workload\b"
done
is "the default is pcie_bench" "$(cmp scenario.cfg pcie_bench.cfg && echo same)" same

# Of every machine that may stand in a group of hosts; without the second socket, or its memory, where there is none.
machines=$("$nudma" list --names=machines | tr '\n' ' ')
is "machines" "$machines" "blackford clovertown gold6234 r730 r740 spr6442 t430 t620 t630 "
for workload in netperf pcie_bench memory fio; do
    case $workload in
    netperf) alone="gold6234 t630" ;;
    fio) alone= ;;
    *) alone="blackford clovertown gold6234 t630" ;;
    esac
    suited=
    for machine in $machines; do
        rm -f m.cfg
        "$simulate" init m.cfg --workload $workload --platform "$machine" >out.txt 2>&1 &&
            grep -q "platforms/$machine.cfg" m.cfg && suited="$suited$machine "
        [ "$(grep -c '^Without the variant "remote"' out.txt) $(grep -c remote m.cfg)" = "1 0" ] && alone=${alone/$machine}
    done
    is "$workload on every machine" "$suited" "$machines"
    is "$workload without a second socket" "${alone// }" ""
done
"$nudma" init one.cfg --platform gold6234 >/dev/null; out=$("$nudma" run one.cfg --quick 2>&1); is "a machine of one socket runs" $? 0
out=$("$nudma" init x.cfg --workload netper 2>&1); is "a workload that is none" $? 2
has "the nearest" "$out" '^nudma init: --workload netper: expected one of fio, memory, .*did you mean "netperf"'
is "or all, once" "$("$nudma" init x.cfg --workload nope 2>&1)" \
    "nudma init: --workload nope: expected one of fio, memory, netperf, pcie_bench"
out=$("$nudma" init x.cfg --platform t43 2>&1); is "a machine that is none" $? 2
has "the nearest one" "$out" 'expected a machine of scenarios/platforms; did you mean "t430"'
out=$("$nudma" init x.cfg --platform smartio_local 2>&1); is "a platform of several hosts" $? 2
has "is refused" "$out" '^nudma init: --platform smartio_local: is a set-up .*, expected one machine.*: blackford, .*; scenarios on it to begin with: smartio/'
mkdir -p scenarios/platforms && sed 's/name = "rp0"; socket = 0/name = "rp7"; socket = 0/' "$project/scenarios/platforms/t620.cfg" >scenarios/platforms/odd.cfg
out=$("$nudma" init x.cfg --platform odd 2>&1); is "a machine without that port" $? 2
has "is refused, too" "$out" 'does not suit --workload pcie_bench; nothing is written$'
has "with the reason" "$out" '^x.cfg:[0-9]+: '
is "no file is left" "$([ -e x.cfg ] || echo none)" none
"$nudma" init a.cfg b.cfg 2>/dev/null; is "two files" $? 2
is "templates are no scenarios of their own" "$("$nudma" list | grep -c '^templates/')" 0

out=$("$nudma" init x.cfg --platform foo 2>&1); is "a machine like none" $? 2
has "where they are listed" "$out" '; nudma list --names=machines shows them$'
has "the default is among the templates" "$("$nudma" init --help)" 'fio, memory, netperf, pcie_bench \(default pcie_bench'
mkdir -p scenarios/templates && cp pcie_bench.cfg scenarios/templates/mine.cfg
has "so is one of one's own" "$("$nudma" init --help)" 'fio, memory, mine, netperf'
has "that a link is as wide as its port is said" "$(cat netperf.cfg)" 'trains down to those of the root port'

echo "1..$cases"
[ $failed = 0 ]
