#!/usr/bin/env bash
# nudma run --trace: the steps of a read by NVMe over Fabrics come in the order of SmartIO's figure 36, each on
# its host, and time does not go back; a point whose software notes none says so.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/scenario/lib.sh
project=$OLDPWD

sed 's/queue_depth = 24; read_ratio = 0.5/queue_depth = 1; read_ratio = 1.0/' \
    "$project/tests/scenario/settings/nvmeof.cfg" >nvmeof.cfg
echo 'title = "x"; text = "y";' >>nvmeof.cfg
trace() { "$nudma" run "$@" 2>&1; }

trace nvmeof.cfg --trace 21 >steps.txt
is "exit status" $? 0
is "as many as were asked for" "$(wc -l <steps.txt)" 21
awk '{ split($0, part, "nvmeof "); print substr(part[2], 1, 1), $4 }' steps.txt >order.txt
expected=$(printf '1 client\n2 server\n2 server\n3 server\n3 server\n4 server\n5 client\n')
is "the steps of figure 36, from a first one on" \
    "$(awk '/^1/ { begun = 1 } begun && n++ < 7' order.txt)" "$expected"
is "time does not go back" "$(awk 'NR > 1 && $1 < before; { before = $1 }' steps.txt)" ""
is "the same twice" "$(trace nvmeof.cfg --trace 21)" "$(cat steps.txt)"
has "nothing to trace" "$(trace pcie_bench/latency_size --filter op=write_read --trace 5)" \
    'pcie_bench/latency_size op=write_read transfer_bytes=8: --trace: none of the software of this point.*--filter chooses'
trace pcie_bench/latency_size --trace 5 >/dev/null
is "exit status" $? 1
has "a number out of range" "$(trace nvmeof.cfg --trace -1)" "--trace"
trace nvmeof.cfg --trace -1 >/dev/null
is "exit status" $? 2

echo "1..$cases"
[ $failed = 0 ]
