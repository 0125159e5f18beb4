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
is "it is drawn" "$("$nudma" topology server.cfg)" "server: 2 sockets, interconnect 2 x 10.4 GT/s
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
out=$("$nudma" import "$server" -o - 2>/dev/null); is "by its name" "$out" "$text"
out=$("$nudma" import "$server" -o server.cfg 2>&1); is "a file that is there" $? 2
has "stays" "$out" '^nudma import: server.cfg: is there already, and stays as it is; name another file$'
is "as it was" "$(cat server.cfg)" "$text"
out=$("$nudma" import "$server/dmidecode.txt" 2>/dev/null | sed 's/dmidecode.txt:/stdin:/')
is "standard input" "$("$nudma" import - 2>/dev/null <"$server/dmidecode.txt")" "$out"
is "a pipe" "$(sed "" "$server/dmidecode.txt" | "$nudma" import - 2>/dev/null)" "$out"
is "nothing in it" "$(: | "$nudma" import - 2>&1)" '/dev/stdin:1: found "", expected what lspci -vvv, lstopo (text, or --of xml), dmidecode or numactl -H print, or /proc/cpuinfo'
printf '03:00.0 Ethernet controller: Netronome Systems, Inc. Device %s\n' 3200 >old-nfp.txt
is "an adapter before the NFP-6000 is none" "$("$nudma" import old-nfp.txt 2>/dev/null | grep -c nfp6000.cfg)" 0

# ---- More cores than the model has: an estimate, that says so -------------------------------------
sed "s/Core \(Count\|Enabled\): 8/Core \1: 64/" "$server/dmidecode.txt" >many.txt
out=$("$nudma" import many.txt 2>/dev/null | grep cores_per_socket)
has "no value that nobody published" "$out" \
    'value = 30; provenance = "estimate"; .*# fewer than were read'

# ---- More sockets than the model has: four of them, each as it is ---------------------------------
{
    echo '# dmidecode 3.3'
    for n in {0..7}; do
        printf 'Handle 0x04%02X, DMI type 4, 48 bytes\nProcessor Information\n\tSignature: Type 0, Family 6, Model 85, Stepping 4\n' "$n"
        printf '\tStatus: Populated, Enabled\n\tCore Enabled: 10\n\tThread Count: 20\n\n'
        printf 'Handle 0x07%02X, DMI type 7, 27 bytes\nCache Information\n\tConfiguration: Enabled, Not Socketed, Level 3\n' "$n"
        printf '\tInstalled Size: 14080 kB\n\tAssociativity: 11-way Set-associative\n\n'
    done
    for n in {0..31}; do
        printf 'Handle 0x11%02X, DMI type 17, 84 bytes\nMemory Device\n\tSize: 16 GB\n\tSpeed: 2666 MT/s\n\n' "$n"
    done
} >eight.txt
out=$("$nudma" import eight.txt -o eight.cfg 2>&1); is "eight sockets" $? 0
has "are said" "$out" '^nudma import: 8 sockets: the model has 4 at most$'
is "each has its cores, cache and modules" "$(grep -oE '(sockets|cores_per_socket|llc_size|node_size|channels) = .*value = [^;]*' eight.cfg)" \
    'sockets = { value = 4
cores_per_socket = { value = 10
llc_size = { value = "14080 KiB"
node_size = { value = "64 GiB"
channels = { value = 4'
has "nobody published four" "$(cat eight.cfg)" ' sockets = \{ value = 4; provenance = "estimate"; .*# fewer than were read'

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
    rm -f alone.cfg
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

# ---- Private caches without ways -----------------------------------------------------------------
sed 's/L2 \(L#[0-9]*\) (1024KB) + L1d \(L#[0-9]*\) (32KB)/L2 \1 (3072KB) + L1d \2 (48KB)/' "$server/lstopo.txt" >odd.txt
out=$("$nudma" import odd.txt -o odd.cfg 2>&1); is "caches of three parts" "$?" 0
is "get ways that leave a power of two of sets" "$(grep -oE 'l[12]_(size|ways) = .*value = [^;]*' odd.cfg)" \
    'l1_size = { value = "48 KiB"
l1_ways = { value = 12
l2_size = { value = "3 MiB"
l2_ways = { value = 12'
sed 's/L1d \(L#[0-9]*\) (48KB)/L1d \1 (592KB)/' odd.txt >37.txt
out=$("$nudma" import 37.txt -o 37.cfg 2>&1); is "37 parts" $? 0
has "are said" "$out" 'an l1 of 606208 bytes has no power of two of sets'
is "and the family's stands in" "$(grep -c 'l1_size' 37.cfg)" 0

# ---- What no tool said is said; what the family knows is taken ------------------------------------
out=$("$nudma" import "$server/lspci.txt" -o few.cfg 2>&1); is "lspci alone" $? 0
has "memory's rate" "$out" 'no tool shows the rate of the memory: 2666 MT/s are the most of skylake_sp'
has "is the family's" "$(cat few.cfg)" 'rate_mt_s = \{ value = 2666; provenance = "estimate";'
has "with its timing" "$(cat few.cfg)" 'tcl_ns = \{ value = 14.25; '
has "the link's" "$out" 'no tool shows the rate between sockets: 10.4 GT/s are the most of skylake_sp'
has "as well" "$(cat few.cfg)" 'rate_gt_s = \{ value = 10.4; provenance = "estimate";'
has "channels" "$out" 'no tool shows memory modules: all 6 channels'
has "the clock" "$out" 'no tool shows the clock of the cores: 2 GHz are the model'
out=$("$nudma" import "$server/dmidecode.txt" -o fewer.cfg 2>&1)
is "dmidecode shows rate, modules and clock" "$(grep -cE 'rate of the memory|modules|clock' <<<"$out")" 0
sed 's/Model 85/Model 79/; /External Clock/d' "$server/dmidecode.txt" >broadwell.txt
has "another family's link" "$("$nudma" import broadwell.txt 2>/dev/null)" 'rate_gt_s = \{ value = 9.6; '
sed 's/2\.10GHz/2.40GHz/' "$server/lstopo.xml" >named.xml
has "the clock by the processor's name" "$("$nudma" import named.xml 2>/dev/null)" \
    'clock_ghz = \{ value = 2.4; provenance = "published"; source = "named.xml:[0-9]+"; \};  # by the processor'
for ((n = 0; n < 16; n++)); do
    printf 'processor\t: %d\ncpu family\t: 6\nmodel\t\t: 79\nmodel name\t: Intel(R) Xeon(R) CPU E5-2630 v4 @ 2.20GHz\n' $n
    printf 'physical id\t: %d\nsiblings\t: 8\ncpu cores\t: 4\n\n' $((n % 2))
done >cpuinfo.txt
out=$("$nudma" import cpuinfo.txt 2>/dev/null); is "/proc/cpuinfo" $? 0
has "its clock" "$out" 'clock_ghz = \{ value = 2.2; '
has "its cores" "$out" 'cores_per_socket = \{ value = 4; .*two threads each'
has "its family" "$out" 'families/broadwell_ep/cpu.cfg'
sed 's/^physical id\t: 1/physical id\t: 3/' cpuinfo.txt >gap.txt
is "packages that are not numbered one by one" "$("$nudma" import gap.txt 2>/dev/null | sed 's/gap.txt/cpuinfo.txt/')" "$out"

# ---- Two machines --------------------------------------------------------------------------------
two() { # two NAME PATTERN FILE...: is refused
    local name=$1 pattern=$2
    shift 2
    out=$("$nudma" import "$@" -o two.cfg 2>&1); is "$name" $? 2
    has "$name: which" "$out" "$pattern"
    is "$name: nothing written" "$([ -e two.cfg ] || echo none)" none
}
sed 's/Model 85/Model 79/' "$server/dmidecode.txt" >other.txt
two "dmidecode of two" "^other.txt:14: the processor's model: found 79, but .*dmidecode.txt:14 has 85; the files are of two machines" \
    "$server/dmidecode.txt" other.txt
two "lspci of another" '^.*lspci.txt:[0-9]+: [0-9a-f:.]+ is of Skylake-SP, but other.txt:14 has a processor of Broadwell-EP' \
    other.txt "$server/lspci.txt"
two "in any order" 'is of Skylake-SP, but other.txt:14 ' "$server/lspci.txt" other.txt
sed 's/Core Enabled: 8/Core Enabled: 6/' "$server/dmidecode.txt" >cores.txt
two "other cores" 'cores: found (12|16), but ' "$server/lstopo.txt" cores.txt
two "two of lspci" 'a second output of lspci, beside ' "$server/lspci.txt" lspci-plain.txt
sed 's/size: [0-9]* MB/size: 999999 MB/' "$server/numactl.txt" >large.txt
two "more memory than modules" 'a node of 999999 MiB, but .* has modules of 65536 MiB' large.txt "$server/dmidecode.txt"
sed 's/15b3:1017\]/15b3:1013]/' "$server/lstopo.xml" >device.xml
two "other devices" 'device.xml:[0-9]+: 3b:00.0: found 15b3:1013, but .*lspci.txt:[0-9]+ has 15b3:1017; the files' \
    "$server/lspci.txt" device.xml

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
out=$("$nudma" import /dev/null 2>&1); is "a device" "$out" "/dev/null: expected a file or a pipe"
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
