#!/usr/bin/env bash
# nudma run --trace-address: docs/trace_address.md says what it prints, its mistakes, and local devices.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/scenario/lib.sh
project=$OLDPWD
size=pcie_bench/latency_size
lent=examples/borrowed_nic

trace() { "$nudma" run "$@" 2>&1; }

# ---- The page ------------------------------------------------------------------------------------
page=$project/docs/trace_address.md
NUDMA=$nudma "$project/scripts/trace-page.sh" "$page" >page.md
is "the page can be made" $? 0
diff "$page" page.md | sed 's/^/# /'
cmp -s "$page" page.md
is "docs/trace_address.md has what the command prints (scripts/trace-page.sh makes it anew)" $? 0
is "it has the walk in it" "$(grep -c '^```trace$' page.md)" 14
trace $lent --trace-address=nic,write=4 >walk.txt
is "the same twice" "$(trace $lent --trace-address=nic,write=4)" "$(cat walk.txt)"
is "lines of at most 100 columns" "$(awk 'length > 100' walk.txt)" ""
for place in 'device nic sends a memory write' 'switch chassis' 'root port lender.s0.rp1' \
    'IOMMU lender.s0: 0x' 'level 2, entry' 'bridge lender_ntb \(node 2\)' 'address table, entry' \
    'outgoing requesters, entry' 'cluster switch cluster' 'routes, entry' 'incoming requesters, entry' \
    'IOMMU borrower.s0: 0x' 'level 1, entry' 'into the LLC of socket 0' 'the write is visible' \
    'device nic sends a memory read' 'piece 2 went the same way' 'completion from the fabric' \
    'completion 2 is at nic'; do
    has "on the way: $place" "$(cat walk.txt)" "$place"
done

# ---- Steps add up --------------------------------------------------------------------------------
# Each step's time is that of the one before and what it took, but for the rounding of both.
bad=$(sed -n '/^DMA write/,/^DMA read/p' walk.txt | awk '
    /^ *[0-9]+\.[0-9] +[0-9]+\.[0-9]  / {
        if ($1 - last - $2 > 0.15 || $1 - last - $2 < -0.15) print
        last = $1
    }')
is "the write's steps add up" "$bad" ""

# ---- Other scenarios -----------------------------------------------------------------------------
out=$(trace $lent --filter lender_iommu=off --trace-address=nic,read=0)
has "IOMMU off: the shortest way" "$out" 'to its peer chassis.downstream0, window 0x'
is "IOMMU off: no word of it" "$(grep -c 'IOMMU lender\|lender.s0' <<<"$out")" 0
is "read=0: none" "$(grep -c 'DMA read' <<<"$out")" 0
has "an interrupt message" "$(trace $lent --trace-address=nic,write=3,read=0)" \
    'entry [0-9]+ of the interrupt-remapping table'
trace $size --trace-address >local.txt
is "a local device, the option without a value" $? 0
has "names the point" "$(cat local.txt)" "^$size op=read transfer_bytes=8, seed 1"
has "finds the device" "$(cat local.txt)" '^device nfp$'
has "no IOMMU" "$(cat local.txt)" 'no IOMMU at server.s0'
has "from the LLC" "$(cat local.txt)" 'from the LLC of the root complex'
has "says what there was none of" "$(cat local.txt)" '^no DMA write 1: there were 0$'
is "before the scenario" "$(trace --trace-address $size)" "$(cat local.txt)"
has "page tables of a local device" "$(trace pcie_bench/latency_iommu --trace-address=nfp)" \
    'level 1, entry [0-9]+ at 0x[0-9a-f'"'"']+: 0x.* = 4 KiB page'
has "several completions" "$(trace ioctopus/fig06_tcp_rx --trace-address=server_nic,write=0 \
    --set measure.warmup_us=300 --set measure.duration_us=300)" 'completion 2 is at server_nic'

# ---- Mistakes ------------------------------------------------------------------------------------
out=$(trace $size --trace-address=nfq); is "a device that is none" $? 2
has "the nearest device" "$out" 'no device "nfq"; did you mean "nfp"'
out=$(trace $size --trace-address=nfp,reed=2); is "a word that is none" $? 2
has "what is expected" "$out" "'reed=2': expected DEVICE, write=N, read=N"
trace $size --trace-address=nfp,read=x >/dev/null; is "a number that is none" $? 2
trace $size --trace-address=nfp,read= >/dev/null; is "no number" $? 2
trace $size --trace-address=nfp,nfp >/dev/null; is "two devices" $? 2
trace $size --trace-address=write=0,read=0 >/dev/null; is "nothing to follow" $? 2
trace $lent --trace-address=client_nc >/dev/null; is "a device that is none, of several" $? 2
out=$(trace $size --trace-address=nfp,read=1000000000); is "more than there are" $? 1
has "how many there were" "$out" 'no DMA read 1000000000: there were [1-9][0-9]*'
for option in --trace-address "--trace 3" "--trace x.pftrace" "--tlp x.tlp"; do
    # shellcheck disable=SC2086 # an option and its value
    out=$(trace $size $option --filter 'op=read transfer_bytes=64' --shard 2/3 2>&1); status=$?
    is "$option of a part without points" "$status $out" "2 --shard 2/3: has no point to trace, expected one"
done
is "nor is there a file" "$(ls x.* 2>/dev/null)" ""
[ ! -e results ]; is "no database" $? 0
has "a peer's memory" "$(trace smartio/fig26_two_lenders_bandwidth --filter config=two_lenders \
    --trace-address=gpu0,read=0,bytes=64)" 'gpu1 takes it'
has "only as large" "$(trace $lent --trace-address=nic,read=0,bytes=1000)" \
    'the first TLP of a DMA of 1514 bytes'
out=$(trace adce/fig05_copy_bandwidth --filter engine=adce_1ch --trace-address=engine,write=1,read=1)
is "an integrated engine is on no link" "$(grep -c 'link \|Gen[0-9]\|root port' <<<"$out")" 0
is "but in the root complex, write, read and completion" \
    "$(grep -c 'engine -> .*engine, within the root complex$\|root complex server.s0, past its' <<<"$out")" 5
has "the help" "$("$nudma" run --help)" '--trace-address'

echo "1..$cases"
[ $failed = 0 ]
