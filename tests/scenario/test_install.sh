#!/usr/bin/env bash
# make install: what is there works without the tree it came from, from a prefix below DESTDIR (which
# is where a package puts it) and moved to its place, the array job of docs/campaigns.md too.
set -u
cd "$(dirname "$0")/../.." || exit 1
project=$PWD
. tests/scenario/lib.sh
place=$scratch/opt/n\ 1 # a prefix with a blank in it
size=pcie_bench/latency_size

make --no-print-directory -C "$project" install BUILD="${BUILD:-build}" DESTDIR="$scratch/stage" \
    PREFIX="/usr" >log 2>&1
is "install for a package" $? 0
is "nothing outside" "$(ls "$scratch/stage")" usr
for file in bin/nudma bin/nudma-slurm-array; do
    is "$file can be run" "$([ -x "stage/usr/$file" ] && echo yes)" yes
done
for file in man/man1/nudma.1 man/man1/nudma-run.1 bash-completion/completions/nudma \
    zsh/site-functions/_nudma; do
    has "$file" "$(cat stage/usr/share/$file)" '[a-z]'
done
is "every scenario" "$(cd stage/usr/share/nudma/scenarios && find . -type f | LC_ALL=C sort)" \
    "$(cd "$project/scenarios" && find . -type f | LC_ALL=C sort)"
is "every page of the documentation" \
    "$(cd stage/usr/share/doc/nudma/docs && find . -name '*.md' | LC_ALL=C sort)" \
    "$(cd "$project/docs" && find . -name '*.md' | LC_ALL=C sort)"
# The commands that the pages of users name are there, those of developers are not named.
called=$(grep -ohE '\bnudma-[a-z-]+' "$project"/docs/*.md "$project/README.md" | sort -u)
for command in $called; do
    is "$command of the documentation" "$([ -x "stage/usr/bin/$command" ] && echo yes)" yes
done

# The library, as far as a compiler without the sanitizers' library can link it: the examples of the
# documentation, compiled in a folder of their own against what was installed.
if [ "${CONFIG:-}" != san ]; then
    export PKG_CONFIG_PATH=$scratch/stage/usr/lib/pkgconfig NUDMA_SCENARIOS=$project/scenarios
    is "pkg-config says where" "$(pkg-config --cflags-only-I nudma | cut -d ' ' -f 1)" -I/usr/include/nudma
    sed -i "s|^prefix=.*|prefix=$scratch/stage/usr|" "$PKG_CONFIG_PATH/nudma.pc"
    cp -r stage/usr/share/doc/nudma/examples examples
    make -C examples/device CFLAGS="-O1 -Wall -Wextra -Werror" >>log 2>&1; is "a device outside of the tree" $? 0
    out=$(examples/device/polls examples/device/poll.cfg poll_latency_ns 2>&1); is "runs" $? 0
    near=$(sed -n 's/^memory=local: poll_latency_ns = //p' <<<"$out")
    far=$(sed -n 's/^memory=remote: poll_latency_ns = //p' <<<"$out")
    is "and reads its own socket faster" "$(awk "BEGIN { print ($near > 300 && $far > $near + 20) }")" 1
    out=$(examples/device/polls examples/device/poll.cfg x workload.device=y 2>&1)
    is "what is wrong" "$? $out" \
        '1 --set: workload.device: found "y" (a string), expected an example.poller; expected "poller"'
    # The same values as the command's, of a scenario of the tree.
    out=$(examples/device/polls $size latency_mean_ns axes.transfer_bytes=64 2>&1)
    "$nudma" run $size --set axes.transfer_bytes=64 -q --db embedded.db >/dev/null 2>&1
    is "results are those of nudma run" "$out" "$(query embedded.db "select point || ': ' || metric || ' = ' ||
        printf('%.6g', mean) from result where metric = 'latency_mean_ns' order by point")"
    # shellcheck disable=SC2046 # words
    cc -Wall -Wextra -Werror examples/embed.c $(pkg-config --cflags --libs nudma) -o embed 2>>log
    is "a program without it" $? 0
    has "does not know the device" "$(./embed examples/device/poll.cfg x 2>&1)" \
        'devices.poller.type: found "example.poller" .*, expected a device model'
fi

make --no-print-directory -C "$project" install BUILD="${BUILD:-build}" PREFIX="$place" >>log 2>&1
is "install below a prefix" $? 0
unset NUDMA_SCENARIOS NUDMA
mkdir elsewhere bin
cd elsewhere || exit 1
is "finds its scenarios" "$("$place/bin/nudma" list $size | grep -c "^$size ")" 1
"$place/bin/nudma" run $size --quick -q --db whole.db >/dev/null; is "runs" $? 0
"$place/bin/nudma" check pcie_bench --db whole.db >claims.txt 2>&1; is "finds its claims" $? 1
has "and reads them" "$(cat claims.txt)" 'claims hold'

# Slurm as far as the script needs it: each task runs at once, from a copy of the script, as slurmd
# does it. The real one is in tests/slurm.
cat >../bin/sbatch <<'SBATCH'
#!/usr/bin/env bash
n=0 output=/dev/null
while [[ $1 == --* ]]; do
    case $1 in --array=1-*) n=${1#--array=1-} ;; --output=*) output=${1#--output=} ;; esac
    shift
done
spool=$(mktemp -d)
cp "$1" "$spool/slurm_script"
shift
if [ "$n" = 0 ]; then
    bash "$spool/slurm_script" "$@" >"$output" 2>&1
else
    for ((i = 1; i <= n; i++)); do
        SLURM_ARRAY_TASK_ID=$i bash "$spool/slurm_script" "$@" >"${output//%a/$i}" 2>&1
    done
fi
rm -rf "$spool"
echo 17
SBATCH
chmod +x ../bin/sbatch
PATH=$scratch/bin:$PATH "$place/bin/nudma-slurm-array" -n 2 -w campaign.db $size --quick 2>said
is "a campaign in two tasks" $? 0
is "has all points" "$(query campaign.db 'select count(*) from run')" 4
is "as without Slurm" "$(query campaign.db 'select group_concat(fingerprint) from
    (select * from run order by point)')" "$(query whole.db 'select group_concat(fingerprint) from
    (select * from run order by point)')"
has "joins what the tasks have made" "$(cat said)" 'joining: job 17'

echo "1..$cases"
[ $failed = 0 ]
