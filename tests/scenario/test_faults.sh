#!/usr/bin/env bash
# Calls of the operating system that fail, and memory that is short: a message, the status of a failure, nothing half
# written, nothing lost. scripts/faults.py has many more of them, docs/quality.md what came of those.
set -u
cd "$(dirname "$0")/../.." || exit 1
here=$PWD
. tests/scenario/lib.sh

point=(pcie_bench/latency_size --filter 'op=read transfer_bytes=64' --quick -q -j1)
faults=$(cd "$here" && NUDMA=$nudma scripts/faults.py 1 run export 2>&1)
is "every failing call is told" "$?" 0
has "of a run" "$faults" '^\| run \| [0-9]+ \| [0-9]+ \| [1-9]'
has "of an export" "$faults" '^\| export \| [0-9]+ \| [0-9]+ \| [1-9]'
grep -v '^|' <<<"$faults" | sed 's/^/# /' | head -n 20

# Little address space: the dynamic linker has enough of it, and then one after the other has not.
worst=0 silent=0 refused=0
for kib in 13000 14000 16000 18000 20000 40000; do
    said=$(ulimit -c 0 -v "$kib"; "$nudma" run "${point[@]}" --db "v$kib.db" 2>&1 >/dev/null)
    status=$?
    [ "$status" -le "$worst" ] || worst=$status
    [ "$status" = 0 ] || refused=$((refused + 1))
    [ "$status" = 0 ] || [ -n "$said" ] || silent=$((silent + 1))
done
is "little address space ends in a failure, not in a crash" "$worst" 1
is "with a message" "$silent" 0
is "for each of the least" "$([ "$refused" -ge 3 ] && echo yes)" yes

echo "1..$cases"
[ $failed = 0 ]
