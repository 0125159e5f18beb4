#!/usr/bin/env bash
# Scenarios that lend and borrow, as a user runs them: what the tables of real topologies allow, a
# cluster of sixty hosts at work, a mistake.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/scenario/lib.sh

out=$("$nudma" run smartio/text_limits --db limits.db 2>&1); is "borrows until it is refused" $? 0
has "which table" "$out" '1 outgoing requester for b[0-9a-f.:]*: 32 of 32 in use, by CPUs \(2\)'
has "that it cannot be larger" "$out" '; devices.b_ntb.outgoing_requesters cannot be more than 32 '
out=$("$nudma" results smartio/text_limits --db limits.db --metric devices_borrowed 2>&1)
has "30 devices back to back" "$out" 'back_to_back +30$'
out=$("$nudma" results smartio/text_limits --db limits.db --metric cluster_devices_borrowed 2>&1)
has "both ways" "$out" 'back_to_back +60$'
has "each host lends 30" "$out" 'cluster +90$'
has "the words of the refusal are kept with the run" \
    "$(query limits.db "select value from param where name = 'note.limit_a.refusal.1' order by run_id limit 1")" \
    '^host 2: b.02:00.0: 1 outgoing requester for .*: 32 of 32 in use'

out=$("$simulate" run smartio/cluster60 --db cluster.db --quick --set measure.duration_us=50 2>&1)
is "sixty hosts, six devices borrowed" $? 0

out=$("$nudma" run examples/lend_nic --db x.db --set lending.borrower.host=borower 2>&1)
is "a host that is not there" $? 2
has "is told with its place and the nearest" "$out" 'lending.borrower.host.*did you mean "borrower"'

out=$("$nudma" run examples/borrowed_nic --db x.db --set workload.measured=borower 2>&1)
has "what is measured may be a host of either group" "$out" \
    'expected a host of the group .network. or .lending.; did you mean "borrower"\?$'

out=$("$nudma" run examples/lend_nic --db x.db --filter owner=borrower \
    --set hosts.borrower.iommu.enabled=false 2>&1)
is "memory that does not fit into windows" $? 1
has "with what would help" "$out" "\(-27\); the borrower's IOMMU .*, or a larger bar2_bytes"

taken=(smartio/isolation --filter "event=reclaim direction=write" --db x.db)
out=$("$nudma" run "${taken[@]}" --set devices.lender_ntb.outgoing_requesters=2 2>&1)
is "a table without room for a device" $? 2
has "names the setting" "$out" 'lender_ntb.outgoing_requesters: found 2 .*, expected 3 or more: .* 2 root complexes of lender'
out=$("$nudma" run "${taken[@]}" --set devices.borrower_ntb.incoming_requesters=2 2>&1)
is "a table without room for a borrowed device" $? 1
has "is named" "$out" '1 incoming requester for .*: 2 of 2 in use'
has "with the setting" "$out" '; devices.borrower_ntb.incoming_requesters has to be 3 at least$'
out=$("$nudma" run "${taken[@]}" --set devices.borrower_ntb.bar2_windows=1 2>&1)
is "a table without room for a window" $? 1
has "with its setting" "$out" ' 1 of 1 in use, by .*; devices.borrower_ntb.bar2_windows has to be 2 at least, its BAR as much larger$'
out=$("$nudma" run smartio/cluster60 --db x.db --filter direction=read --set devices.top.requesters=20 2>&1)
is "a switch without room" $? 1
has "with the setting of the switch" "$out" ': 20 of 20 entries in use; devices.top.requesters has to be 21 at least '
out=$("$nudma" run "${taken[@]}" --set lending.borrower.dma_window_bytes=65536 2>&1)
is "a window that is too small for the driver" $? 1
has "is named, and the device goes back" "$out" 'cannot map 256 KiB .* fit into dma_window_bytes of borrower'
out=$("$nudma" run "${taken[@]}" --set devices.lender_ntb.node=66 --set devices.borrower_ntb.node=4097 2>&1)
is "bridges of any number find each other" $? 0

fio=smartio/fig21_fio_latency
out=$("$nudma" run $fio --db x.db --filter config=local --set 'programs.fio.span_bytes="512 GiB"' 2>&1)
is "more than the device holds" $? 2
has "is told what it holds" "$out" 'span_bytes: found "512 GiB".* at most capacity_bytes of the device'
out=$("$nudma" run $fio --db x.db --set programs.fiu.cpu=1 2>&1); is "a program that is none" $? 2
is "is told with the nearest" "$out" '--set: programs.fiu: no program "fiu"; did you mean "fio"?'
is "as is a device" "$("$nudma" run pcie_bench/latency_size --list --set devices.nfq.lanes=4 2>&1)" \
    '--set: devices.nfq: no device "nfq"; did you mean "nfp"?'
is "and a host" "$("$nudma" run pcie_bench/latency_size --list --set hosts.sever.machine=x 2>&1)" \
    '--set: hosts.sever: no host "sever"; did you mean "server"?'
is "of the lending" "$("$nudma" run $fio --list --set lending.borrowr.lend=x 2>&1)" \
    '--set: lending.borrowr: no host "borrowr"; did you mean "borrower"?'
is "of the network" "$("$nudma" run ioctopus/fig09_tcp_rr --list --set network.clint.channels=4 2>&1)" \
    '--set: network.clint: no host "clint"; did you mean "client"?'
shared=smartio/fig29_sriov_shared
names() { "$nudma" run $shared --db x.db "$@" 2>&1; }
out=$(names --set functions.port=nic.vf9); is "a function that is not there" $? 2
has "which there are" "$out" 'functions.port: found "nic.vf9".* a device, or a function of one.*did you mean "nic.vf'
out=$(names --set functions.port=nic.vf4); is "a virtual function that is not enabled" $? 2
has "how many are" "$out" '.0.: found "port".*host enables: lending.lender.sriov_numvfs is 2'
out=$(names --set network.lender.device=nic.vf1); is "a function that is lent" $? 2
has "is not its lender's" "$out" 'network.lender.device: found "nic.vf1".* of virtual functions as many as its sriov_numvfs'
out=$(names --set 'lending.lender.lend=["port", "nic"]'); is "a physical function beside its virtual ones" $? 2
has "who has its driver" "$out" 'found "nic".* or their physical one.*: port is lent, too'
out=$(names --set lending.borrower.sriov_numvfs=1); is "virtual functions of nothing" $? 2
has "which devices have some" "$out" 'borrower.sriov_numvfs: found 1.*vfs. of a nic.ethernet'
out=$(names --set devices.nic.vfs=1 --set functions.port=nic.vf0); is "more than the device has" $? 2
has "how many it has" "$out" 'sriov_numvfs: found 2.*, expected at most 1, as many virtual functions as nic has'
cat >bare.cfg <<'END'
hosts = { borrower = { cpu = { sockets = 1; cores_per_socket = 4; }; dram = { node_size = "2 GiB"; }; }; };
workload = { type = "programs"; measured = "borrower"; };
programs = { fio = { type = "fio"; }; };
END
out=$("$nudma" run ./bare.cfg --db x.db 2>&1); is "programs without hosts" $? 2
has "which groups are not there" "$out" 'bare.cfg: there is no group .network.* no group .lending'
is "and nothing else" "$(wc -l <<<"$out")" 1
echo "1..$cases"
[ $failed = 0 ]
