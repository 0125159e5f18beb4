#!/usr/bin/env bash
# What a clumsy or hostile user does: the command neither hangs nor is silently wrong, and writes what it
# was told to write, and nothing else.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/scenario/lib.sh
size=pcie_bench/latency_size
nudma() { timeout 60 "$nudma" "$@"; }
said() { out=$(nudma "$@" 2>&1); echo "$? $out"; } # said ARGUMENT...: status and output
refused() { # refused NAME PATTERN ARGUMENT...: exit status 2 and this message
    has "$1" "$(said "${@:3}")" "^2 $2"
}
mine() { sed "$1" "$NUDMA_SCENARIOS/$size.cfg" >"$2"; } # mine SED-COMMANDS FILE
"$simulate" run $size --quick -q --db one.db >/dev/null

# ---- Text ---------------------------------------------------------------------------------------
mine $'s/^title = .*/title = "caf\xe9";/' latin.cfg
refused "a title that is no UTF-8" 'latin.cfg:[0-9]+: column 13: found the byte 0xe9' run latin.cfg
refused "an argument that is none" 'nudma: argument 2, "pcie_.351.", is not in UTF-8' results $'pcie_\xe9*'
mine 's/^title = .*/title = "\\x1b[31m";/' escape.cfg
refused "a title with control characters" 'escape.cfg:[0-9]+: title: found the control character U\+001B' run escape.cfg
mine "s/^title = .*/title = \"'s''gravenhage'\";/" quote.cfg
"$simulate" run quote.cfg --quick -q --db one.db >/dev/null
has "a title that begins with a quote" "$(nudma plot quote.cfg --db one.db)" "^ *'s''gravenhage'"
cp one.db bytes.db
query bytes.db "update label set text = cast(x'e92a' as text) where text = '$size'" >/dev/null
has "a database with other bytes" "$(said results --db bytes.db)" '^1 .*malformed'

# ---- What never ends ----------------------------------------------------------------------------
mkfifo pipe.cfg pipe.csv
printf '@include "pipe.cfg"\n' >over.cfg
refused "a pipe as an include" 'over.cfg:1: cannot include "pipe.cfg": ./pipe.cfg: it is no regular file' run over.cfg
refused "a pipe as what-ifs" 'pipe.cfg: cannot be read: it is no regular file' whatif pipe.cfg --db one.db
sed "s|fio_jobs.fio|$PWD/pipe.csv|" "$NUDMA_SCENARIOS/examples/fio_jobs.cfg" >jobs.cfg
refused "a pipe as jobs of fio" '/.*/pipe.csv: cannot be read: it is no regular file' run jobs.cfg --list
{ cat "$OLDPWD/tests/scenario/settings/net.cfg" && echo 'title = "x"; text = "y";'; } |
    sed 's/^programs = .*/programs = { p = { type = "pcap_replay"; file = "pipe.csv"; }; };/' >replay.cfg
refused "a pipe as a capture" '.*expected a capture, pcap or pcapng: ./pipe.csv: it is no regular file' run replay.cfg --db no.db
refused "a pipe as a server's tool" 'pipe.csv:1: found "", expected what lspci' import pipe.csv
refused "a pipe as a measurement" 'pipe.csv:1: found "", expected what mlc' measure t430 --read pipe.csv
refused "a pipe as claims" 'pipe.cfg: cannot be read: it is no regular file' check pipe.cfg --db one.db
printf 'claims = ( { id = "a"; use = "K"; lo = 1.0; hi = 2.0; published = "x"; text = "t"; expr = "(%s)"; } );\n' \
    'with recursive r(n) as (select 1 union all select n + 1 from r) select max(n) from r' >claims.cfg
refused "a claim without an end" 'claims.cfg:1: a: expr: does not end' check claims.cfg --db one.db
refused "more runs than memory" '.* are 28000000 runs, expected at most' run $size --seeds 1000000 --db no.db
if [ "${CONFIG:-}" != san ]; then # whose frames are larger
    is "a small stack" "$(ulimit -s 64; nudma run $size --quick -q --db small.db | tail -n 1)" \
        "$(nudma run $size --quick -q --db one.db | tail -n 1)"
fi

# ---- What is written ----------------------------------------------------------------------------
echo old >target && chmod 600 target && ln -s target link && ln -s planted link.new && ln -s planted target.new
nudma export $size --db one.db -F csv -o link
is "a link stays one, and its file as it was" \
    "$(readlink link) $(stat -c %a target) $(head -c 8 target) $([ -e planted ] && echo planted)" "target 600 scenario "
(umask 077 && nudma topology $size -F svg -o private.svg); is "the umask counts" "$(stat -c %a private.svg)" 600
mkfifo out
cat out >through & nudma topology $size -o out -F text; wait
is "a pipe is written to, and stays one" "$(stat -c %F out) $(head -c 6 through)" "fifo server"
mkdir -p pictures/pcie_bench && ln -s elsewhere.svg pictures/$size.svg
nudma plot $size --db one.db -F svg -o pictures >/dev/null
is "so does the link of a picture" "$(readlink pictures/$size.svg) $(grep -c '</svg>' pictures/pcie_bench/elsewhere.svg)" \
    "elsewhere.svg 1"
is "a full disk is a failure, also for what is longer than a buffer" \
    "$(nudma import "$OLDPWD/tests/cli/import/server/lspci.txt" 2>&1 >/dev/full | tail -n 1)" \
    "nudma: cannot write the output: not all of it can be written (is the disk full, or ulimit -f too low?)"
nudma import "$OLDPWD/tests/cli/import/server/lspci.txt" 2>/dev/null | head -n 1 >first
is "a reader who goes is none" "${PIPESTATUS[0]} $(wc -l <first)" "0 1"
echo old >kept.svg
has "a picture that cannot be drawn" "$(PATH=/nowhere said topology $size -o kept.svg 2>&1; cat kept.svg)" '^old$'
is "nothing is left beside them" "$(find . -name '.nudma-*')" ""

# ---- What is read stays as it is ---------------------------------------------------------------
cp one.db read.db && cp "$NUDMA_SCENARIOS/$size.cfg" read.cfg && cp "$OLDPWD/tests/cli/import/server/lspci.txt" .
mkdir -p server && cp lspci.txt server/ && cp "$OLDPWD/tests/cli/measure/mlc.txt" .
sha256sum read.db read.cfg lspci.txt server/lspci.txt mlc.txt >sums
other='expected another one to write'
refused "a table over the database" "./read.db: .*$other" export $size --db read.db -o ./read.db -F csv
refused "a page over it" "read.db: .*$other" report $size --db read.db -o read.db
mkdir -p results && cp one.db results/nudma.db
refused "transactions over it" '--tlp results/nudma.db: found the database' run $size --quick \
    --filter 'op=read transfer_bytes=64' --tlp results/nudma.db
cmp -s one.db results/nudma.db; is "which stays" $? 0
refused "a topology over its scenario" "read.cfg: .*$other" topology read.cfg -o read.cfg -F text
refused "fitted values over it" "read.cfg: .*$other" calibrate read.cfg --write read.cfg --param hosts.server.dram.controller_ns
refused "a scenario over what it is written from" "lspci.txt: .*$other" import lspci.txt -o lspci.txt
refused "also of a folder" "server/lspci.txt: .*$other" import server -o server/lspci.txt
refused "settings over measurements" "mlc.txt: .*$other" measure t620 --read mlc.txt -o mlc.txt
cp "$NUDMA_SCENARIOS/platforms/t620.cfg" 'a"b.cfg'
refused "a platform whose path cannot be included" 'a"b.cfg: a path with a quote' measure 'a"b.cfg'
refused "settings and claims in one file" '.*are one file' measure t620 --read mlc.txt -o new --claims ./new
is "all of it" "$(sha256sum -c --quiet sums 2>&1)" ""

# ---- Who is ended in the middle leaves nothing ---------------------------------------------------
mkdir tmp
TMPDIR=$PWD/tmp "$nudma" measure t620 --read mlc.txt >/dev/null 2>&1 & fits=$!
for _ in {1..20}; do left=$(ls -A tmp); [ -z "$left" ] || break; sleep 0.02; done
kill -KILL $fits 2>/dev/null; wait $fits 2>/dev/null
is "measure, killed while it fits" "$left$(ls -A tmp)" ""

# ---- What was not said --------------------------------------------------------------------------
refused "--set of constraints" '--set: constraints: cannot be changed here' run $size --set 'constraints=("op=read")' --list
has "a configuration that is asked for beside a trace" "$(said run $size --quick --print-config --tlp none.tlp)" '^0 #'
refused "an empty name" "nudma run: --db '': expected the name of a file" run $size --db ''
refused "no database" 'nudma run: --db :memory:: would keep nothing' run $size --db :memory:
refused "no format" 'nudma plot: --format "": no such format' plot $size --db one.db --format ''
"$simulate" run $size --quick -q --db one.db --filter op=read --set hosts.server.root_complex.inbound_ns=500 >/dev/null
set='--set hosts.server.root_complex.inbound_ns=500'
has "results say what --set has changed" "$(nudma results $size --db one.db)" "^changed by $set; at some points only\$"
is "CSV too" "$(nudma export $size --db one.db | cut -d , -f 5 | paste -sd ,)" "set,${set#* },${set#* },,"
is "and a figure" "$(nudma plot $size --db one.db 2>&1 | grep -c -e "changed by $set" -e '(changed by --set)')" 2
nudma report $size --db one.db -o page.html >/dev/null
is "and the report" "$(grep -o 'Changed by <code>[^;]*' page.html)" "Changed by <code>$set"
has "and claims" "$(nudma check pcie_bench --db one.db)" "^changed by --set: $size op=read transfer_bytes=64\$"
mkdir -p a b && mine 's/^x//' a/same.cfg && mine 's/^x//' b/same.cfg
"$simulate" run a/same.cfg --quick -q --db one.db >/dev/null
has "two files of one name" "$(nudma run b/same.cfg --quick -q --db one.db 2>&1)" \
    "^b/same.cfg: one.db has results of another file of this name, /.*/a/same.cfg"
measured() { # measured NAME TEXT PATTERN: a measured file, looked at before anything runs
    printf '%b' "$2" >pipe2.csv
    refused "measured: $1" "(\./)?$3" run measured.cfg --db no.db
}
mine 's|data/pcie_bench/latency_size_read.csv|pipe2.csv|' measured.cfg
measured "no header" '1,2\n3,4\n' 'pipe2.csv:1: found numbers, expected a header'
measured "nothing" '' 'pipe2.csv: has no values'
measured "a third column" 'x,y\n1,2,3\n' 'pipe2.csv:2: expected x,y'
measured "a NUL" 'x,y\n1,2\0\n' 'pipe2.csv: cannot be read: it is not a text file'
sed -i 's/pipe2/pipe/' measured.cfg
refused "measured: a pipe" './pipe.csv: cannot be read: it is no regular file' run measured.cfg --db no.db
sqlite3 one.db "insert into run_row select null, scenario_id, point_id, seed + 7, 'failed', 'for want of a nail', version_id,
    config_id, command_id, host_id, set_id, started_utc, wall_s, sim_ps, events, fingerprint, peak_memory_bytes
    from run_row where id = 1"
has "why a run has failed" "$(nudma results --db one.db)" "^failed: $size op=.*: for want of a nail\$"

echo "1..$cases"
[ $failed = 0 ]
