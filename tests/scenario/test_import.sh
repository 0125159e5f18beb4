#!/usr/bin/env bash
# nudma import: a server's tools in, a scenario out that loads, is drawn and runs; what was read has its
# file and line, what was not says which measurement would tell.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/scenario/lib.sh
server=$OLDPWD/tests/cli/import/server

# ---- Everything ----------------------------------------------------------------------------------
out=$("$nudma" import "$server" -o server.cfg 2>&1); is "a folder" $? 0
has "what is left out is said" "$out" '2 functions of processors and chip set are left out'
is "it is drawn" "$("$nudma" topology server.cfg)" "server: 2 sockets, interconnect 2 x 9.6 GT/s
  each socket: 8 cores, 2.1 GHz, LLC 11 MiB, DRAM 2 x 2400 MT/s
  IOMMU on
  s0.rp0 -- Gen3 x16 -- sw.p0 (pcie.switch)
    sw.p1 -- Gen3 x4 -- nvme.p0 (nvme.controller)
  s0.rp1 -- Gen3 x8 -- nic.p0 (nic.ethernet)
  s1.rp0 -- Gen3 x8 -- nfp.p0 (pcie.requester)
ioat0 (ioat.engine), integrated into server.s0
ioat1 (ioat.engine), integrated into server.s1"
text=$(cat server.cfg)
has "values have their line" "$text" \
    'rate_mt_s = \{ value = 2400; provenance = "published"; source = "dmidecode.txt:[0-9]+"; \};'
has "as trained, and what could be" "$text" \
    'to = "nic.p0"; generation = 3; lanes = 8; \},  # trained so; both ends could do Gen3 x16'
has "virtual functions" "$text" 'vfs = .*# TotalVFs is 16'
has "what is kept" "$text" '@include "families/skylake_sp/dram.cfg"'
has "and what would tell" "$text" '# measured by: controller_ns: mlc --idle_latency'
out=$("$nudma" run server.cfg --filter transfer_bytes=64 -q --db r.db 2>&1); is "it runs" $? 0
has "on both sockets" "$out" '^s1 +64 +[0-9]+'
out=$("$nudma" import "$server" 2>/dev/null); is "standard output" "$out" "$text"

# ---- A platform for scenarios that there are -----------------------------------------------------
"$nudma" import "$server" --platform -o platform.cfg 2>/dev/null; is "a platform" $? 0
is "has no workload" "$(grep -cE '^(workload|title|axes)' platform.cfg)" 0
out=$("$nudma" run pcie_bench/latency_size --set @platform.cfg --filter 'transfer_bytes=64 op=read' \
    -q --db r.db 2>&1); is "runs pcie-bench" $? 0
has "on its NFP" "$out" '^read +64 +[0-9]+'
mkdir -p scenarios/platforms && cp platform.cfg scenarios/platforms/mine.cfg
echo '@include "platforms/mine.cfg"
workload = { type = "memory"; };' >scenarios/uses.cfg
out=$("$nudma" run uses --list -q --scenarios scenarios 2>&1); is "is included" "$? $out" "0 uses"

# ---- Each tool alone, and none of them -----------------------------------------------------------
for file in lspci.txt lstopo.xml lstopo.txt dmidecode.txt numactl.txt; do
    "$nudma" import "$server/$file" -o alone.cfg 2>/dev/null; is "$file alone" $? 0
    out=$("$nudma" run alone.cfg --list -q 2>&1); is "loads" $? 0
done
sed '/^\t/d; /^[0-9a-f][0-9a-f]: /d' "$server/lspci.txt" >lspci-plain.txt
out=$("$nudma" import lspci-plain.txt -o plain.cfg 2>&1); is "lspci without -v" $? 0
sed '/^\t.*Capabilities: \[/s/Cap.*/Capabilities: <access denied>/; /^\t\t/d; /^[0-9a-f][0-9a-f]: /d' \
    "$server/lspci.txt" >lspci-user.txt
out=$("$nudma" import lspci-user.txt -o user.cfg 2>&1); is "lspci of no root" $? 0
has "says what is missing" "$out" 'lspci shows no capabilities .*run it as root'
has "the tree is the same" "$("$nudma" topology user.cfg)" 'sw.p1 -- Gen3 x[0-9]+ -- nvme.p0'

# ---- Families ------------------------------------------------------------------------------------
"$nudma" import "$server" --family broadwell_ep -o other.cfg 2>/dev/null; is "another family" $? 0
has "is taken" "$(cat other.cfg)" 'families/broadwell_ep/os.cfg'
out=$("$nudma" import "$server" --family broadwel_ep 2>&1); is "none of the name" $? 2
has "the nearest" "$out" '--family broadwel_ep: no such family; did you mean "broadwell_ep"'
sed 's/Model 85/Model 62/' "$server/dmidecode.txt" >ivy.txt
has "by the processor" "$("$nudma" import ivy.txt 2>/dev/null)" 'families/ivy_bridge/cache.cfg'
sed 's/Model 85/Model 26/' "$server/dmidecode.txt" >old.txt
has "a neighbour's is said" "$("$nudma" import old.txt 2>&1 >/dev/null)" 'has no family of its own'

# ---- Mistakes ------------------------------------------------------------------------------------
out=$("$nudma" import 2>&1); is "nothing" $? 2
out=$("$nudma" import none.txt 2>&1); is "no such file" $? 2
has "by name" "$out" 'none.txt: No such file'
echo 'total 0' >foreign.txt
out=$("$nudma" import foreign.txt -o none.cfg 2>&1); is "a foreign file" $? 2
has "where" "$out" 'foreign.txt:1: found "total 0", expected what lspci'
mkdir empty; out=$("$nudma" import empty 2>&1); is "an empty folder" $? 2
printf '00:00.0 Host\0' >binary.txt
out=$("$nudma" import binary.txt 2>&1); is "no text" "$? $out" "2 binary.txt:1: found a NUL byte, expected text"
printf '%s PCI bridge: a\n\tBus: primary=00, secondary=%s, subordinate=02\n' \
    00:01.0 01 01:00.0 02 02:00.0 01 >circle.txt
out=$("$nudma" import circle.txt -o none.cfg 2>&1); is "bridges in a circle" $? 2
has "which" "$out" 'circle.txt:[35]: .* one behind the other; are they in a circle'
out=$("$nudma" import "$server" --host 'a b' 2>&1); is "a host's name" $? 2
is "nothing was written" "$(ls none.cfg 2>&1)" "ls: cannot access 'none.cfg': No such file or directory"

echo "1..$cases"
[ $failed = 0 ]
