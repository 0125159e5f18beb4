/*
 * Which change of which setting is tried where: for test_settings.c. A setting that neither a
 * change nor a reason names fails the test, and so does a line that names none.
 */
#ifndef TESTS_SCENARIO_SETTINGS_TABLE_H
#define TESTS_SCENARIO_SETTINGS_TABLE_H

#include <string.h>

#include "tests/support/scenario_fixture.h"

/* A scenario of this folder with settings (PATH=VALUE, separated by spaces). */
struct base {
    const char *name, *file, *sets;
};

#define NET(NAME, TYPE, MORE)                         \
    {                                                 \
        NAME, "net", "programs.p.type=" TYPE " " MORE \
    }
#define LEND(NAME, TYPE, MORE)                         \
    {                                                  \
        NAME, "lend", "programs.p.type=" TYPE " " MORE \
    }
#define TO_ITS_END " measure.duration_us=10000000"
#define GPU_COPY   "programs.p.transfer_bytes=16384 programs.p.volume_bytes=65536" TO_ITS_END
#define GUEST_FIO                                                              \
    "programs.p.type=fio programs.p.span_bytes=4194304 programs.p.on=borrower" \
    " programs.p.device=ssd programs.p.cpu=0 programs.p.queue_depth=16"        \
    " measure.warmup_us=6000 measure.duration_us=300"
#define GUEST_TLB                                \
    " lending.borrower.vm.tlb_4k_entries=2"      \
    " lending.borrower.vm.tlb_2m_entries=0"      \
    " lending.borrower.vm.tlb_ways=1"            \
    " lending.borrower.vm.tlb_l2_entries=2"      \
    " lending.borrower.vm.tlb_l2_ways=1"         \
    " lending.borrower.vm.pde_cache_entries=0"   \
    " lending.borrower.vm.pdpte_cache_entries=0" \
    " lending.borrower.vm.pml4e_cache_entries=0"
#define COPIES(TYPE)                                                                         \
    "programs.p.type=" TYPE " programs.p.message_bytes=65536 programs.p.volume_bytes=262144" \
    " programs.p.by=engine devices.engine.type=dsa.accelerator "
#define COPY_IPC                                                                             \
    "programs.p.type=copy_ipc programs.p.message_bytes=65536 programs.p.volume_bytes=262144" \
    " devices.engine.type=dsa.accelerator "
#define COPY_MIXED                                                                      \
    "programs.p.type=copy_mixed programs.p.large_bytes=65536 programs.p.small_to=16384" \
    " programs.p.measured_us=200 programs.p.pause_us=1 programs.p.window=2"             \
    " devices.engine.type=dsa.accelerator "
#define COPY_ENGINES " ring=4 poll_ns=400 queue=shared queues=8 batch=2"
#define BANDWIDTH    "workload.measure=bandwidth workload.op=read_write workload.window_bytes=1048576 "
#define MPI          "programs.p.message_bytes=10000 programs.p.repetitions=4 "
/* In place of the two of net.cfg, of which the start takes half the time. */
#define ALL_CHANNELS " network.client.channels=0"
#define JUMBO                                                                                \
    "network.server.mtu_bytes=9000 network.client.mtu_bytes=9000 devices.nic.mtu_bytes=9000" \
    " devices.client_nic.mtu_bytes=9000"
#define IOMMU "hosts.server.iommu.enabled=true " BANDWIDTH
#define FSB   "hosts.server.cache.llc_size=0 hosts.server.coherence.protocol=front_side_bus "

static const struct base bases[] = {
    { "bench", "bench", "" },
    { "bench.warm", "bench", "workload.op=write_read workload.cache=host_warm" },
    { "bench.left", "bench", "workload.cache=host_warm workload.window_bytes=1048576" },
    { "bench.command", "bench", "workload.interface=command workload.op=write_read" },
    { "bench.bw", "bench", BANDWIDTH "workload.transfer_bytes=512" },
    { "bench.sampled", "bench",
      BANDWIDTH "workload.transfer_bytes=512 measure.warmup_us=100 measure.precision_ratio=0.2" },
    /* More under way than tags and credits allow. */
    { "bench.far", "bench",
      "workload.measure=bandwidth workload.transfer_bytes=512 workload.queue_depth=256"
      " devices.nfp.reads_in_flight=256 cables.[1].length_m=100" },
    { "bench.credits", "bench",
      "workload.measure=bandwidth workload.transfer_bytes=64 workload.queue_depth=256"
      " devices.nfp.reads_in_flight=256 devices.nfp.extended_tags=true devices.nfp.read_interval_ns=1"
      " cables.[0].length_m=100" },
    { "bench.read", "bench",
      "workload.measure=bandwidth workload.transfer_bytes=1024 workload.queue_depth=128" },
    { "bench.large", "bench", "hosts.server.dram.node_size=8589934592" },
    { "bench.aligned", "bench",
      "workload.measure=bandwidth workload.op=write workload.transfer_bytes=704" },
    { "bench.rest", "bench", "workload.measure=bandwidth workload.transfer_bytes=63" },
    { "bench.write", "bench",
      "workload.measure=bandwidth workload.op=write workload.transfer_bytes=1024"
      " workload.window_bytes=4194304" },
    { "bench.remote", "bench", BANDWIDTH "workload.memory_socket=1 workload.cache=host_warm" },
    { "bench.own", "bench",
      "workload.measure=bandwidth workload.op=write workload.window_bytes=1048576"
      " workload.memory_socket=1 hosts.server.coherence.remote_dma_write=own_then_dram"
      " hosts.server.coherence.io_directory_entries=8" },
    { "bench.slots", "bench",
      BANDWIDTH
      "workload.memory_socket=1 workload.queue_depth=128 hosts.server.interconnect.flit_slots=3"
      " hosts.server.interconnect.links=1 hosts.server.interconnect.rate_gt_s=4" },
    { "bench.iommu", "bench", IOMMU "workload.window_bytes=16777216" },
    { "bench.sets", "bench",
      IOMMU "workload.window_bytes=16777216 hosts.server.iommu.iotlb_entries=0"
            " hosts.server.iommu.pde_entries=8 hosts.server.iommu.pde_ways=8" },
    { "bench.walk", "bench",
      IOMMU "workload.window_bytes=16777216 hosts.server.iommu.iotlb_entries=0"
            " hosts.server.iommu.pde_entries=0" },
    { "bench.fsb", "bench", FSB BANDWIDTH "workload.cache=host_warm" },
    { "memory", "memory", "" },
    { "memory.l1", "memory", "workload.buffer_bytes=4096" },
    { "memory.small", "memory", "workload.buffer_bytes=8192" },
    { "memory.l2", "memory", "workload.mode=bandwidth workload.buffer_bytes=16384" },
    { "memory.bw", "memory", "workload.mode=bandwidth" },
    { "memory.loaded", "memory", "workload.mode=loaded" },
    { "memory.transfer", "memory", "workload.mode=transfer" },
    { "memory.filter", "memory",
      "workload.mode=bandwidth workload.buffer_bytes=32768 hosts.server.cache.inclusive=false"
      " hosts.server.cache.l2_size=65536" },
    { "memory.fsb", "memory", FSB "workload.mode=loaded workload.to_socket=0" },
    { "memory.copy", "memory",
      FSB
      "hosts.server.dram.fb_dimm=true hosts.server.cache.prefetch_streams=8 workload.mode=bandwidth"
      " workload.to_socket=0 workload.sockets=2 workload.cores=2 workload.access=copy"
      " workload.buffer_bytes=1048576" },
    { "memory.list", "memory",
      FSB "workload.mode=bandwidth workload.to_socket=0 workload.buffer_bytes=65536"
          " hosts.server.coherence.snoop_filter_size=65536" },
    { "trends", "trends", "" },
    NET("net", "netperf", "programs.p.instances=2"),
    { "mpi", "openmx", MPI },
    { "mpi.queues", "openmx",
      MPI
      "programs.p.cpu=1 devices.nic.firmware=multiqueue devices.client_nic.firmware=multiqueue" },
    { "mpi.nic", "net", "programs.p.type=imb " MPI JUMBO TO_ITS_END ALL_CHANNELS },
    { "mpi.steered", "net",
      "programs.p.type=imb programs.p.steering=cpu " MPI JUMBO TO_ITS_END ALL_CHANNELS },
    { "mpi.first", "openmx", MPI "programs.p.then_bytes=1000" },
    { "mpi.then", "openmx", MPI "programs.p.then=true programs.p.then_bytes=1000" },
    { "mpi.large", "openmx", MPI "programs.p.message_bytes=200000" },
    { "mpi.stores", "openmx",
      MPI "programs.p.message_bytes=200000 programs.p.cpu=1"
          " hosts.server.core.store_buffer_entries=20" },
    { "mpi.text", "openmx", MPI "hosts.server.cache.l1i_size=4096" },
    { "nas.ft", "openmx",
      "programs.p.type=nas programs.p.compute_us=100 programs.p.benchmark=ft.W.16"
      " programs.p.units=1 programs.p.warm_units=0" },
    { "myri", "myri", "" },
    { "myri.several", "myri", "devices.nic.firmware=multiqueue" },
    { "myri.setup", "myri", "measure.warmup_us=0" },
    { "myri.tx", "myri", "programs.p.direction=tx" },
    /* The processor takes longer than the wire. */
    { "myri.flood", "myri",
      "network.server.mtu_bytes=1500 network.client.mtu_bytes=1500 programs.p.instances=4"
      " devices.nic.firmware_receive_ns=10000 devices.nic.rx_buffer_bytes=131072"
      " measure.duration_us=4000" },
    NET("net.tx", "netperf", "programs.p.direction=tx programs.p.instances=2"),
    NET("net.long", "netperf", "measure.duration_us=3000"),
    NET("net.share", "netperf",
        "programs.p.same_core=true programs.p.instances=4 measure.duration_us=600"),
    NET("net.ksoftirqd", "netperf",
        "programs.p.same_core=true programs.p.instances=4"
        " hosts.server.os.softirq_budget_us=10" ALL_CHANNELS),
    NET("net.migrate", "netperf", "programs.p.migrate_after_us=75"),
    NET("net.octo", "netperf",
        "network.server.interface=octo0 devices.nic.firmware=octonic programs.p.instances=2"
        " programs.p.server_socket=1"),
    NET("net.lro", "netperf",
        "network.server.lro=true programs.p.instances=4 programs.p.same_core=true"),
    NET("net.static", "netperf", "network.server.adaptive_moderation=false"),
    NET("net.iommu", "netperf", "hosts.server.iommu.enabled=true"),
    NET("net.slow", "netperf", "cables.[4].rate_gbit_s=10 devices.switch.queue_bytes=65536"),
    NET("net.small", "netperf",
        "devices.nic.rx_buffer_bytes=8192 devices.nic.flow_control=false programs.p.instances=4"
        " measure.duration_us=500"),
    NET("rr", "netperf_rr", ""),
    NET("udp", "sockperf", "measure.duration_us=400"),
    NET("udp.idle", "sockperf", "measure.duration_us=20000 programs.p.think_us=2000"),
    NET("pktgen", "pktgen", ""),
    NET("pktgen.far", "pktgen", "cables.[0].latency_ns=20000"),
    NET("sendfile", "sendfile",
        "network.server.interface=octo0 devices.nic.firmware=octonic programs.p.pages=alternating"),
    NET("memcached", "memcached",
        "programs.p.clients=2 programs.p.workers=2 programs.p.items=16"
        " programs.p.value_bytes=16384 programs.p.set_pct=30 measure.duration_us=400"),
    NET("stream", "stream", "programs.p.array_bytes=1048576"),
    NET("stream.beside", "stream",
        "programs.p.array_bytes=1048576 programs.q.type=netperf measure.duration_us=3000"),
    NET("pagerank", "pagerank", "programs.p.scale=8 programs.p.threads_per_socket=2" TO_ITS_END),
    LEND("dma", "device_dma", "programs.p.device=nfp"),
    LEND("dma.read", "device_dma", "programs.p.device=nfp programs.p.direction=read"),
    LEND("gpu", "bandwidth_test", GPU_COPY),
    LEND("gpu.write", "bandwidth_test", "programs.p.direction=write " GPU_COPY),
    LEND("gpu.peer", "bandwidth_test", "programs.p.direction=peer " GPU_COPY),
    LEND("gpu.irq", "bandwidth_test", "programs.p.timing=interrupt " GPU_COPY),
    LEND("gpu.events", "bandwidth_test", "programs.p.timing=events " GPU_COPY),
    LEND("ping_pong", "ping_pong", "programs.p.iterations=20" TO_ITS_END),
    LEND(
        "gpu_storage", "gpu_storage",
        "programs.p.iterations=20 programs.p.span_bytes=65536 lending.borrower.nvme_driver=false" TO_ITS_END),
    LEND("ping_pong.sets", "ping_pong",
         "programs.p.iterations=20 hosts.lender.iommu.iotlb_entries=0"
         " hosts.lender.iommu.pde_entries=0 hosts.lender.iommu.context_entries=2"
         " hosts.lender.iommu.context_ways=2 hosts.lender.iommu.pdpe_entries=2"
         " hosts.lender.iommu.pdpe_ways=2" TO_ITS_END),
    LEND("fio", "fio",
         "programs.p.device=ssd programs.p.span_bytes=131072 measure.warmup_us=1000"
         " measure.duration_us=300"),
    LEND("fio.cmb", "fio",
         "programs.p.device=ssd programs.p.span_bytes=131072 measure.warmup_us=1000"
         " measure.duration_us=300 devices.ssd.cmb_bytes=65536"),
    LEND(
        "fio.many", "fio",
        "programs.p.device=ssd programs.p.span_bytes=4194304 measure.warmup_us=6000 measure.duration_us=300"
        " programs.p.queue_depth=8 programs.p.jobs=2 programs.p.read_ratio=0.7"
        " programs.p.block_bytes=16384 devices.ssd.read_requests_max=0"
        " devices.ssd.commands_max=8"),
    LEND("fio.far", "fio",
         "programs.p.device=ssd programs.p.span_bytes=4194304 measure.warmup_us=20000"
         " measure.duration_us=1000 programs.p.queue_depth=8 cables.[7].latency_ns=20000"),
    LEND("fio.spdk", "fio",
         "programs.p.device=ssd programs.p.engine=spdk lending.borrower.nvme_driver=false"
         " programs.p.span_bytes=131072 measure.warmup_us=2000 measure.duration_us=300"),
    LEND("fio.xpoint", "fio",
         "programs.p.device=ssd programs.p.span_bytes=131072 measure.warmup_us=2000"
         " measure.duration_us=300 programs.p.queue_depth=8 programs.p.read_ratio=0.7"
         " devices.ssd.media=xpoint devices.ssd.channels=2 devices.ssd.dies=2"
         " devices.ssd.refresh_interval_us=20 devices.ssd.retry_ratio=0.5"),
    NET("vf", "iperf",
        "lending.server.host=server devices.nic.vfs=2 network.server.device=nic.pf0 programs.p.parallel=2"
        " programs.p.server=client programs.p.client=server"),
    LEND("fio.nand", "fio",
         "programs.p.device=ssd programs.p.span_bytes=1048576 measure.warmup_us=20000"
         " measure.duration_us=2000 programs.p.queue_depth=8 programs.p.read_ratio=0.5"
         " devices.ssd.media=nand devices.ssd.capacity_bytes=1048576 devices.ssd.channels=1"
         " devices.ssd.dies=1 devices.ssd.planes=1 devices.ssd.block_pages=4"
         " devices.ssd.die_write_ns=20000 devices.ssd.die_erase_us=10 devices.ssd.suspend_us=5"
         " devices.ssd.write_buffer_bytes=65536"),
    LEND("borrow_limit", "borrow_limit", "lending.borrower.borrow=[]" TO_ITS_END),
    LEND("taken", "device_taken",
         "lending.borrower.borrow=[] programs.p.device=nfp programs.p.bridge=n0"
         " programs.p.out_ms=1" TO_ITS_END),
    LEND("taken.read", "device_taken",
         "lending.borrower.borrow=[] programs.p.device=nfp programs.p.bridge=n0"
         " programs.p.direction=read programs.p.out_ms=5" TO_ITS_END),
    LEND(
        "ntb_dma", "ntb_dma",
        "programs.p.on=borrower programs.p.peer=lender programs.p.transfer_bytes=16384" TO_ITS_END),
    LEND("ntb_dma.read", "ntb_dma",
         "programs.p.on=borrower programs.p.peer=lender programs.p.direction=read"
         " programs.p.transfer_bytes=16384" TO_ITS_END),
    LEND("ntb_gpu.read", "ntb_dma",
         "programs.p.on=borrower programs.p.peer=lender programs.p.direction=read"
         " programs.p.remote=gpu0 programs.p.transfer_bytes=16384" TO_ITS_END),
    LEND("nvme_multicast", "nvme_multicast",
         "programs.p.device=ssd lending.borrower.borrow=[\"gpu0\",\"gpu1\",\"nfp\"]" TO_ITS_END),
    LEND("ntb_latency", "ntb_latency",
         "programs.p.on=borrower programs.p.peer=lender programs.p.round_trips=20" TO_ITS_END),
    LEND("ntb_stores", "ntb_stores", "programs.p.on=borrower programs.p.peer=lender" TO_ITS_END),
    { "dnvme", "dnvme", "" },
    { "failover", "failover", "" },
    NET("fault", "netperf",
        "programs.f.type=fault programs.f.device=nic programs.f.after_us=20 programs.f.every=2"
        " programs.f.times=1 programs.f.tlps=registers" ALL_CHANNELS),
    NET("fault.many", "netperf",
        "programs.f.type=fault programs.f.device=nic programs.f.after_us=20 programs.f.every=2"
        " programs.f.times=100 programs.f.tlps=registers" ALL_CHANNELS),
    NET("fault.wire", "netperf",
        "programs.f.type=fault programs.f.device=nic programs.f.after_us=100 programs.f.event=wire_down"),
    NET("fault.spurious", "netperf",
        "programs.f.type=fault programs.f.device=nic programs.f.after_us=20 programs.f.event=spurious"
        " programs.f.times=2"),
    { "failover.two", "failover", "programs.p.cables=2 programs.p.pulls=2" },
    { "dnvme.two", "dnvme",
      "programs.p.clients=2 programs.m.lease_ms=5.0 measure.duration_us=12000" },
    { "dnvme.dies", "dnvme",
      "programs.p.clients=2 programs.p.dies=2 programs.p.dies_us=100 programs.m.lease_ms=5.0"
      " measure.duration_us=12000" },
    { "dnvme.rogue", "dnvme",
      "programs.r.type=nvme_rogue programs.r.victim=lender programs.r.commands=30"
      " measure.duration_us=50000" },
    { "rdma", "rdma", "" },
    { "rdma.read", "rdma", "programs.p.test=read_bw programs.p.bytes=65536" },
    { "rdma.write", "rdma", "programs.p.test=write_bw programs.p.bytes=65536" },
    { "rdma.small", "rdma",
      "programs.p.test=write_bw programs.p.inline_bytes=0 devices.r0.wqes_per_queue=4" },
    { "rdma.send", "rdma", "programs.p.test=send_bw" },
    { "nvmeof", "nvmeof", "" },
    { "guest", "guest", GPU_COPY },
    { "guest.irq", "guest", "programs.p.timing=interrupt " GPU_COPY },
    { "guest.fio", "guest", GUEST_FIO },
    { "guest.tlb", "guest", GUEST_FIO GUEST_TLB },
    { "guest.small", "guest", GUEST_FIO GUEST_TLB " lending.borrower.vm.guest_page_bytes=4096" },
    { "migrate", "migrate", "" },
    { "local", "local", GPU_COPY },
    { "local.peer", "local", "programs.p.direction=peer " GPU_COPY },
    { "local.ping_pong", "local", "programs.p.type=ping_pong programs.p.iterations=20" },
    { "copy", "copy_engine", "" },
    { "copy.channels", "copy_engine", "programs.p.channels=4 programs.p.window=2" },
    { "copy.interrupt", "copy_engine", "programs.p.completion=interrupt" },
    { "dsa", "dsa", "programs.p.channels=2 programs.p.piece_bytes=1024" },
    { "copies", "copies", COPIES("copy_latency") },
    { "copies.cold", "copies",
      COPIES("copy_latency") "programs.p.cache=cold programs.p.area_bytes=4194304" },
    { "copies.cpu", "copies", "programs.p.type=copy_latency programs.p.volume_bytes=65536" },
    { "copies.window", "copies", COPIES("copy_bandwidth") },
    { "copies.overlap", "copies", COPIES("copy_overlap") },
    { "copies.overheads", "copies", COPIES("copy_overheads") },
    { "copies.pollution", "copies",
      "programs.p.type=cache_pollution programs.p.by=engine programs.p.buffer_bytes=16384"
      " programs.p.copy_bytes=1048576 devices.engine.type=dsa.accelerator" },
    { "copies.pollution.cpu", "copies",
      "programs.p.type=cache_pollution programs.p.buffer_bytes=16384 programs.p.copy_bytes=1048576" },
    { "copies.ipc", "copies", COPY_IPC },
    { "copies.ipc.ring", "copies", COPY_IPC "programs.p.mechanism=shared_memory" },
    { "copies.mixed", "copies", COPY_MIXED },
    { "copies.dedicated", "copies",
      COPY_MIXED " programs.p.schedule=dedicated programs.p.small_bytes=16384" },
    { "copies.adaptive", "copies",
      COPY_MIXED " programs.p.schedule=adaptive programs.p.small_bytes=16384" },
    { "dsa", "dsa", "programs.p.channels=2" },
    { "dsa.shared", "dsa", "programs.p.queue=shared programs.p.channels=2 programs.p.batch=1" },
    { "dsa.queue", "dsa",
      "programs.p.queues=1 programs.p.batch=1 programs.p.window=4 programs.p.piece_bytes=1024" },
    { "copy.v3", "copy_engine",
      "programs.p.completion=interrupt programs.p.interrupt_delay_us=5 devices.engine.version=cb3.2"
      " devices.engine.device_id=28448 devices.engine.channels=1" },
    { "local.stream", "local",
      "programs.p.type=stream_benchmark programs.p.on=borrower programs.p.instances=2"
      " programs.p.node=1 programs.p.array_bytes=1048576 measure.duration_us=100" },
    { "local.load", "local",
      "programs.p.type=memory_stream programs.p.on=borrower programs.p.cores=2"
      " programs.p.array_bytes=1048576 programs.p.node=1 measure.duration_us=100" },
    { "local.fio", "local",
      "programs.p.type=fio programs.p.span_bytes=131072 measure.warmup_us=1000"
      " measure.duration_us=300" },
    { "training", "local",
      "programs.p.type=training programs.p.epochs=1 programs.p.steps=1 programs.p.compute_ms=1"
      " programs.p.batch_images=4 programs.p.files=4 programs.p.decode_cycles=1000"
      " programs.p.epoch_steps=4 programs.p.tensor_bytes=4096 programs.p.image_bytes=4096"
      " programs.p.layers=4" },
};

static const struct base *find_base(const char *name)
{
    for (unsigned i = 0; i < SIM_N_ELEMENTS(bases); i++)
        if (strcmp(bases[i].name, name) == 0)
            return &bases[i];
    fail_msg("no base %s", name);
    return NULL;
}

/*
 * The entry of `nudma describe`, the path of a group of its settings in the base, and changes:
 * KEY=VALUE, separated by spaces, each tried by itself; with `+` more settings of the group, or of
 * another by their path, that go with it. Such a change is compared with the base after what
 * follows the first `+`, so that the setting itself has to have the effect; where that is refused
 * alone, as one end of a link is that differs from the other, with the base: there the ends change
 * together, and a cable keeps saying nothing. Without a base: keys, and why no run can tell them
 * apart.
 */
struct row {
    const char *entry, *base, *at, *changes;
};

#define SERVER(ENTRY, BASE, CHANGES)                \
    {                                               \
        ENTRY, BASE, "hosts.server." ENTRY, CHANGES \
    }
#define CLIENT(ENTRY, BASE, CHANGES)                \
    {                                               \
        ENTRY, BASE, "hosts.client." ENTRY, CHANGES \
    }
#define BORROWER(ENTRY, BASE, CHANGES)                \
    {                                                 \
        ENTRY, BASE, "hosts.borrower." ENTRY, CHANGES \
    }
#define LENDER(ENTRY, BASE, CHANGES)                \
    {                                               \
        ENTRY, BASE, "hosts.lender." ENTRY, CHANGES \
    }
#define BENCH(BASE, CHANGES)                    \
    {                                           \
        "pcie_bench", BASE, "workload", CHANGES \
    }
#define PROGRAM(TYPE, BASE, CHANGES)      \
    {                                     \
        TYPE, BASE, "programs.p", CHANGES \
    }
#define REASON(ENTRY, KEYS, WHY) \
    {                            \
        ENTRY, NULL, WHY, KEYS   \
    }
#define NAMES       "names a part of the scenario"
#define LOST        "counts when a read loses its completions"
#define DOORBELLS   "what is written to it, doorbells apart in time, fits into the least"
#define ARBITRATION "tests/system/test_dnvme.c: test_arbitration"
#define BOUND       "a bound: what exceeds it is refused by name"
#define ONE_UNIT \
    "non-posted requests with data are configuration writes alone, of one unit, one at a time"

static const struct row rows[] = {
    SERVER("cpu", "memory", "sockets=3 clock_ghz=4 l2_hit_cycles=24"),
    SERVER("cpu", "memory.l1", "l1_hit_cycles=8"),
    SERVER("cpu", "memory.bw", "cores_per_socket=4"),
    SERVER("cache", "memory.small", "l1_size=16384"),
    SERVER("cache", "net", "l1_ways=2"),
    SERVER("cache", "mpi", "l1i_size=4096"),
    SERVER("cache", "mpi.text", "l1i_ways=1"),
    SERVER("cache", "mpi.stores", "l1_snoop_ns=100"),
    SERVER("cache", "memory.l2", "l2_cores=2"),
    SERVER("cache", "memory.filter", "filter_ways=1"),
    SERVER("cache", "bench", "llc_request_ns=24 llc_return_ns=14 iio_ns=12"),
    SERVER("cache", "bench.warm", "l2_size=4096 ddio=false core_snoop_dirty_ns=30"),
    SERVER("cache", "bench.bw", "llc_size=1048576 llc_ways=32 ddio_ways=4"),
    REASON("cache", "llc_slices",
           "size and ways say how many rows of lines there are; slices, how many may be"),
    SERVER("cache", "bench.remote", "inclusive=false"),
    SERVER("cache", "bench.left", "writeback_keeps_sharer=false"),
    SERVER("cache", "bench.fsb", "l2_ways=16"),
    SERVER("cache", "pagerank", "core_snoop_clean_ns=18.8"),
    SERVER("cache", "net", "l1_write_through=true"),
    SERVER("cache", "memory.copy",
           "l2_sector_lines=2 prefetch_streams=0 prefetch_ahead_lines=1 prefetch_in_flight=1"
           " prefetch_pairs=true prefetch_owns=false"),
    SERVER("cache", "pagerank", "prefetch_trigger_lines=1+hosts.server.cache.prefetch_streams=8"),
    SERVER("coherence", "bench",
           "home_agent_ns=10 opportunistic_broadcast=false broadcast_load_ratio=0"),
    SERVER("coherence", "bench.bw", "snoop_lookup_ns=16"),
    SERVER("coherence", "bench.remote", "remote_dma_write=dram_invalidate"),
    SERVER("coherence", "bench.bw", "request_entries=1 local_trackers=1 io_trackers=1"),
    SERVER("coherence", "bench.remote", "transaction_ids=1 remote_trackers=1"),
    SERVER("coherence", "bench.own", "io_directory_entries=0 write_accept_ns=400"),
    SERVER("coherence", "bench.own",
           "io_directory_gated=true+hosts.server.coherence.opportunistic_broadcast=false"),
    SERVER("coherence", "bench.own", "snoop_mode=home snoop_mode=early"),
    SERVER("coherence", "pagerank", "directory_stale=keep"),
    SERVER("coherence", "bench", "protocol=front_side_bus+hosts.server.cache.llc_size=0"),
    SERVER("coherence", "bench.fsb", "snoop_filter=false hub_return_ns=30"),
    SERVER("coherence", "memory.fsb", "hub_ns=40"),
    SERVER("coherence", "mpi.stores", "snoop_stall_ns=100"),
    SERVER("coherence", "memory.list", "snoop_filter_size=32768 snoop_filter_ways=1"),
    SERVER("interconnect", "bench", "flit_payload_bytes=16 header_flits=2"),
    SERVER("interconnect", "bench.bw", "rate_gt_s=19.2 lanes=40 flit_bits=160 one_way_ns=42"),
    SERVER("interconnect", "bench.remote", "links=4 data_flits=18"),
    SERVER("interconnect", "bench.slots", "flit_slots=1 headers_pass_data=false"),
    SERVER("interconnect", "bench.remote", "receive_flits=36"),
    SERVER("interconnect", "bench.remote",
           "reserved_flits=117 credit_loop_ns=1000+receive_flits=40"),
    SERVER("interconnect", "bench.fsb", "bus_address_ns=12 bus_gbyte_s=21.34"),
    SERVER("interconnect", "memory.copy", "bus_arbitration_ns=10 bus_turnaround_ns=6"),
    SERVER("interconnect", "mpi.stores", "bus_in_order=1"),
    SERVER("dram", "stream", "node_size=137438953472"),
    SERVER("dram", "bench",
           "channels=8 ranks=4 rate_mt_s=4800 bus_bytes=16 controller_ns=38"
           " trcd_ns=28.32 tcl_ns=28.32 trfc_ns=700 trefi_ns=3900 page_idle_ns=1000"),
    SERVER("dram", "bench.iommu", "row_lines=1 trp_ns=28.32 tras_ns=64"),
    SERVER("dram", "bench.bw", "tcwl_ns=20 twtr_ns=20 rank_switch_ns=3.332 write_queue=16"),
    SERVER(
        "dram", "memory.copy",
        "fb_dimm=false dimms=2 buffer_ns=30 hop_ns=20+hosts.server.dram.dimms=2 twr_ns=90 write_batch=4"),
    SERVER(
        "dram", "memory.bw",
        "read_queue=1 banks=1 refresh_postponed=0 refresh_idle_ns=1000 bank_groups=1 tccd_l_ns=50"),
    SERVER("core", "stream", "line_fill_buffers=20"),
    SERVER("core", "memory.bw", "superqueue_entries=32 issue_cycles=4"),
    SERVER("cache", "stream", "writeback_ns=40"),
    { "core", "copies.cpu", "hosts.borrower.core", "store_buffer_entries=8" },
    { "core", "mpi.stores", "hosts.server.core", "stores_in_order=true" },
    SERVER("root_complex", "bench", "inbound_ns=120 outbound_ns=120"),
    BORROWER("root_complex", "copy", "integrated_ns=120"),
    SERVER("root_complex", "bench.warm", "mps_bytes=512"),
    SERVER("root_complex", "bench", "ecrc=true+hosts.server.firmware.ecrc=true"),
    SERVER("firmware", "bench", "ecrc=true"),
    SERVER("dram", "bench.large", "high_first=false"),
    SERVER("root_complex", "bench.bw",
           "line_interval_ns=3 completion_bytes_max=128 combine_above_bytes=512"
           " posted_data_credits=768"),
    SERVER("root_complex", "bench.write", "write_lines=4"),
    SERVER("root_complex", "bench.read", "read_lines=4"),
    SERVER("root_complex", "bench.credits", "non_posted_header_credits=96"),
    SERVER("root_complex", "bench.remote", "posted_header_credits=96"),
    LENDER("root_complex", "dma", "p2p_ns=500 p2p_line_interval_ns=1 tx_queue_tlps=1"),
    LENDER("root_complex", "dma.read", "p2p_chunk_bytes=128 p2p_reads_max=8"),
    BORROWER("root_complex", "local.peer", "p2p_socket_ns=500"),
    REASON("root_complex", "completion_timeout_us", LOST ": tests/models/pcie/root"),
    REASON("root_complex", "non_posted_data_credits", ONE_UNIT),

    SERVER("iommu", "bench", "enabled=true"),
    SERVER("iommu", "bench.iommu",
           "levels=5 iotlb_entries=256 iotlb_ways=32 context_entries=0 pde_entries=0 walkers=1"
           " walk_interval_ns=400 read_piece_bytes=64+workload.transfer_bytes=256"
           " read_piece_ns=400 lookup_ns=4 walk_step_ns=10 walk_fixed_ns=340"),
    SERVER("iommu", "net.iommu", "invalidate_ns=2000"),
    SERVER("firmware", "bench.iommu", "iommu_tables_far=true"),
    SERVER("iommu", "bench.sets", "pde_ways=1"),
    SERVER("iommu", "bench.walk", "pdpe_entries=0"),
    LENDER("iommu", "ping_pong.sets", "context_ways=1 pdpe_ways=1"),
    CLIENT("detail", "net", "payload=rates"),
    REASON("firmware", "mmio_high_base_bytes",
           "where BARs lie: who cannot address them is refused"),
    { "ports", "bench", "hosts.server.ports.[0]",
      "generation=4+devices.switch.generation=4+cables.[1].generation=3"
      " lanes=4" },
    { "ports", "memory", "hosts.server.ports.[0]", "socket=1" },
    REASON("ports", "name", NAMES),
    REASON("ports", "stack", "ports that share buffers: tests/models/pcie/root"),
    BENCH("bench", "measure=bandwidth interface=command op=write cache=host_warm pattern=sequential"
                   " transfer_bytes=128 memory_socket=1 gap_ns=900 offset_bytes=60"),
    BENCH("bench.warm", "window_bytes=16384 warm_socket=1"),
    REASON("pcie_bench", "low_memory",
           "headers of 3 or 4 double words: tests/scenario/test_workloads.c"),
    BENCH("bench.bw", "queue_depth=128"),
    BENCH("bench.iommu", "iommu_page_bytes=2097152"),
    REASON("pcie_bench", "device host", NAMES),
    REASON("pcie_bench", "payload", "what is kept of the data for the check of every delivery"),
    { "memory", "memory", "workload",
      "mode=bandwidth from_socket=1 to_socket=0 cores=2 buffer_bytes=65536" },
    { "memory", "memory.loaded", "workload", "inject_delay_ns=1" },
    { "memory", "memory.transfer", "workload", "peer_core=2" },
    { "memory", "memory.bw", "workload",
      "access=triad sockets=2+workload.from_socket=0 own_memory=true" },
    REASON("memory", "host", NAMES),
    { "programs", "net", "workload", "measured=client connect_within_us=40 warm_misses_ratio=0" },
    { "program", "stream.beside", "programs.q", "enabled=false" },
    { "trends", "trends", "workload", "year=2015 kind=cpu_10gbit" },
    PROGRAM("netperf", "net",
            "server=client+client=server client=server+server=client interface=pf1 direction=tx"
            " instances=4 server_socket=1 client_socket=1 first_core=1 client_first_core=1"
            " same_core=true+measure.duration_us=300 buffer_bytes=131072 migrate_after_us=1"),
    PROGRAM("iperf", "vf",
            "server=server+client=client client=client+server=server interface=pf1 parallel=1"
            " server_socket=1 client_socket=1 first_core=1 client_first_core=1 buffer_bytes=65536"),
    REASON("iperf", "second_client", "with two hosts and a borrower: scenarios/smartio/fig29"),
    PROGRAM("netperf_rr", "rr",
            "server=client+client=server client=server+server=client interface=pf1"
            " client_interface=pf1 server_socket=1 client_socket=1 core=1 client_core=1"
            " message_bytes=128 think_us=1"),
    PROGRAM("sockperf", "udp",
            "server=client+client=server client=server+server=client interface=pf1"
            " client_interface=pf1 server_socket=1 client_socket=1 core=1 client_core=1"
            " message_bytes=128 think_us=1"),
    PROGRAM("pktgen", "pktgen", "host=client interface=pf1 socket=1 core=1 packet_bytes=128"),
    REASON("pcap_replay", "host", "needs a capture: test_pcap.sh"),
    REASON("pcap_replay", "interface", "needs a capture: test_pcap.sh"),
    REASON("pcap_replay", "to", "needs a capture: test_pcap.sh"),
    REASON("pcap_replay", "to_interface", "needs a capture: test_pcap.sh"),
    REASON("pcap_replay", "file", "needs a capture: test_pcap.sh"),
    REASON("pcap_replay", "source_ip", "needs a capture: test_pcap.sh"),
    REASON("pcap_replay", "socket", "needs a capture: test_pcap.sh"),
    REASON("pcap_replay", "core", "needs a capture: test_pcap.sh"),
    REASON("pcap_replay", "speed_ratio", "needs a capture: test_pcap.sh"),
    REASON("pcap_replay", "repeat", "needs a capture: test_pcap.sh"),
    PROGRAM("sendfile", "sendfile",
            "server=client+client=server client=server+server=client interface=pf1 pages=local"
            " instances=2 server_socket=1 client_socket=1 first_core=1 client_first_core=1"
            " file_bytes=16777216 call_bytes=131072"),
    PROGRAM("memcached", "memcached",
            "server=client+client=server client=server+server=client interface=pf1 clients=1"
            " workers=1 server_socket=1 client_socket=1 first_core=1 client_first_core=1"
            " set_pct=90 items=32 key_bytes=512 value_bytes=8192 operation_cycles=20000"
            " client_cycles=8000"),
    PROGRAM("stream", "stream",
            "host=client pairs=0 socket=1+memory_socket=0 memory_socket=0 array_bytes=65536"
            " start_us=1"),
    PROGRAM("stream", "stream.beside", "first_core=0"),
    PROGRAM("stream_benchmark", "local.stream",
            "instances=1 cpu=3 node=0 array_bytes=131072 block_bytes=8192 stores=non_temporal"
            " start_us=1"),
    REASON("stream_benchmark", "on", NAMES),
    PROGRAM("memory_stream", "local.load",
            "cores=1 cpu=3 node=0 array_bytes=131072 access=read_write start_us=1"),
    REASON("memory_stream", "on", NAMES),
    REASON("host_counters", "on", NAMES),
    PROGRAM("pagerank", "pagerank",
            "host=client threads_per_socket=1 first_core=1 scale=9 degree=8 skew=4 iterations=2"
            " edge_cycles=8 vertex_cycles=16"),
    PROGRAM("bandwidth_test", "gpu",
            "gpu=gpu1+peer=gpu0 analyser=n1 direction=write timing=interrupt cpu=2"
            " transfer_bytes=8192 iterations=3 volume_bytes=131072"),
    PROGRAM("bandwidth_test", "local.peer", "peer=gpu0+gpu=gpu1"),
    REASON("bandwidth_test", "host", NAMES),
    PROGRAM("cold_migration", "migrate", "transfer_bytes=131072"),
    REASON("cold_migration", "from to gpu", NAMES),
    PROGRAM("gpu_storage", "gpu_storage",
            "gpu=gpu1 cpu=2 initiator=host iterations=30 queue_depth=4 span_bytes=131072"),
    REASON("gpu_storage", "host device", NAMES),
    PROGRAM("ping_pong", "local.ping_pong", "gpu=gpu1+peer=gpu0 peer=gpu0+gpu=gpu1 iterations=30"),
    PROGRAM("ping_pong", "ping_pong", "cpu=2"),
    REASON("ping_pong", "host", NAMES),
    PROGRAM("fio", "fio",
            "jobs=2 cpu=2 queue_depth=2 block_bytes=8192 read_ratio=0.5 operations=1"
            " think_cycles=1200 engine=libaio laid_out=true"),
    PROGRAM("fio", "fio.many", "span_bytes=2097152"),
    REASON("fio", "on device", NAMES),
    REASON("fio", "job_file job_options filenames json_output",
           "tests/scenario/test_fio.c, test_fio.sh"),
    PROGRAM("nvme_clients", "dnvme",
            "on=other clients=2 sq=remote_ram gpu=gpu0 cpu=2 queue_depth=2 block_bytes=8192"
            " span_bytes=262144 read_ratio=0.5 operations=20 think_cycles=2000 laid_out=true"),
    PROGRAM("nvme_clients", "dnvme.two", "dies=2"),
    PROGRAM("nvme_clients", "dnvme.dies", "dies_us=1000"),
    REASON("nvme_clients", "device sq_gpu", NAMES),
    REASON("nvme_clients", "priority", ARBITRATION),
    REASON("nvme_manager", "arbitration weight_high weight_medium weight_low", ARBITRATION),
    PROGRAM("nvme_failover", "failover",
            "event=cable_pull queue_depth=2 block_bytes=8192 span_bytes=262144 read_ratio=0.1"
            " pulls=2 after_us=100 out_us=800 cables=2"),
    PROGRAM("nvme_failover", "failover.two", "until_whole=false gap_us=50"),
    { "fault", "fault", "programs.f",
      "device=client_nic event=poison tlps=answers after_us=40 times=2" },
    { "fault", "fault.many", "programs.f", "every=3" },
    { "fault", "fault.wire", "programs.f", "out_us=20" },
    { "fault", "fault.spurious", "programs.f", "gap_us=20 vector=1" },
    REASON("fault", "port", "which of the device's ports it befalls is a name"),
    REASON("nvme_failover", "on device bridge0 bridge1", NAMES),
    REASON("nvme_failover", "cpu", "CPUs are alike"),
    REASON("nvme_failover", "timeout_us", "the link's event tells of the failure sooner"),
    { "nvme_manager", "dnvme", "programs.m", "on=other poll_us=40 cpu=1" },
    { "nvme_manager", "dnvme.dies", "programs.m", "lease_ms=7.0" },
    REASON("nvme_manager", "device", NAMES),
    { "nvme_rogue", "dnvme.rogue", "programs.r",
      "on=other victim=borrower+on=other attack=queue cpu=1 commands=20" },
    REASON("nvme_rogue", "device", NAMES),
    REASON("nvme_manager", "client_queues", BOUND ": tests/logic/dnvme"),
    PROGRAM("training", "training",
            "gpu0=gpu1+gpu1=gpu0 gpu1=gpu0+gpu0=gpu1 cpu=2 epochs=2 steps=2 epoch_steps=8"
            " batch_images=8 files=2 image_bytes=8192 tensor_bytes=8192 decode_cycles=100000"
            " compute_ms=2 layers=5"),
    REASON("training", "on ssd", NAMES),
    PROGRAM("device_dma", "dma",
            "direction=read transfer_bytes=8192 buffer_bytes=524288 queue_depth=32"),
    REASON("device_dma", "on device", NAMES),
    REASON("borrow_limit", "on from", NAMES),
    PROGRAM(
        "device_taken", "taken",
        "event=reclaim returns=at_work pulls=2+returns=at_work direction=read transfer_bytes=131072 after_us=400 out_ms=2"),
    REASON("device_taken", "on from device bridge dies next", NAMES),
    PROGRAM("ntb_dma", "ntb_dma",
            "on=lender+peer=borrower peer=borrower+on=lender direction=read completion=poll"
            " transfer_bytes=131072 transfers=20"),
    PROGRAM("ntb_dma", "ntb_dma", "remote=gpu0"),
    REASON("ntb_dma", "local", NAMES ", or the host's memory; test_ntb_programs.c"),
    REASON("nvme_multicast", "on device", NAMES),
    REASON("nvme_multicast", "subscribers", "two hosts have one; smartio/fig35_multicast has 59"),
    REASON("nvme_multicast", "group", "groups are alike; test_sisci_system.c has two"),
    PROGRAM("copy_latency", "copies",
            "by=cpu channels=1 pin_cache_pages=0 engine_bytes=131072 message_bytes=8192"
            " volume_bytes=524288 copies=2 cache=cold" COPY_ENGINES),
    PROGRAM("copy_latency", "copies.cold", "area_bytes=2097152"),
    PROGRAM("copy_bandwidth", "copies.window",
            "by=cpu channels=1 pin_cache_pages=0 engine_bytes=131072 message_bytes=8192"
            " volume_bytes=1048576 window=2" COPY_ENGINES),
    PROGRAM("copy_overlap", "copies.overlap",
            "by=cpu channels=1 pin_cache_pages=0 engine_bytes=131072 message_bytes=8192"
            " volume_bytes=524288 copies=2 cache=in_no_cache area_bytes=2097152+cache=cold"
            " compute_ratio=2" COPY_ENGINES),
    PROGRAM(
        "copy_overheads", "copies.overheads",
        "channels=1 pin_cache_pages=0 engine_bytes=131072 message_bytes=8192"
        " volume_bytes=524288 copies=2 cache=in_cache area_bytes=2097152+cache=cold" COPY_ENGINES),
    PROGRAM(
        "cache_pollution", "copies.pollution",
        "by=none channels=1 pin_cache_pages=0 engine_bytes=2097152 buffer_bytes=32768 row_bytes=512"
        " copy_bytes=65536 element_bytes=8 rounds=1" COPY_ENGINES),
    PROGRAM("copy_ipc", "copies.ipc",
            "mechanism=kammc channels=1 pin_cache_pages=0 engine_bytes=131072 message_bytes=8192"
            " round_trips=2 window=2 volume_bytes=524288" COPY_ENGINES),
    PROGRAM("copy_ipc", "copies.ipc.ring", "slots=1 slot_bytes=1024"),
    PROGRAM(
        "copy_mixed", "copies.mixed",
        "schedule=dedicated channels=1 pin_cache_pages=0 engine_bytes=32768 window=1"
        " large_bytes=131072 small_from=4096 small_to=4096 measured_us=300 pause_us=3 learns=true" COPY_ENGINES),
    PROGRAM("copy_mixed", "copies.dedicated", "dedicated_channels=2 small_bytes=1024"),
    PROGRAM("copy_mixed", "copies.adaptive", "reserve_us=1"),
    PROGRAM("imb", "mpi",
            "benchmark=alltoall message_bytes=2000 repetitions=6 warm_ups=5 cpu=1 busy=false"),
    PROGRAM("imb", "mpi.first", "then=true"),
    PROGRAM("imb", "mpi.queues", "bind=true"),
    PROGRAM("imb", "mpi.then", "then_bytes=2000"),
    PROGRAM("imb", "mpi.nic", "steering=cpu+programs.p.steering_cpu=5"),
    PROGRAM("imb", "mpi.steered", "steering_cpu=5"),
    PROGRAM("imb", "mpi.large", "ioat=true volume_bytes=400000"),
    REASON("imb", "first second", NAMES),
    REASON("nas", "bind cpu busy steering steering_cpu",
           "the code of imb's, and no CPU without a process"),
    PROGRAM("nas", "nas.ft",
            "compute_us=200 warm_units=1 units=2 ioat=true sample=true benchmark=cg.B.16"),
    REASON("nas", "bind cpu busy", "the code of imb's, and no CPU without a process"),
    REASON("nas", "first second", NAMES),
    REASON("copy_latency", "on", NAMES),
    REASON("copy_bandwidth", "on", NAMES),
    REASON("copy_overlap", "on", NAMES),
    REASON("copy_overheads", "on", NAMES),
    REASON("cache_pollution", "on", NAMES),
    REASON("copy_ipc", "on network", NAMES),
    REASON("copy_mixed", "on", NAMES),
    REASON("copy_latency", "cpu", "CPUs are alike"),
    REASON("copy_bandwidth", "cpu", "CPUs are alike"),
    REASON("copy_overlap", "cpu", "CPUs are alike"),
    REASON("copy_overheads", "cpu", "CPUs are alike"),
    REASON("cache_pollution", "cpu", "CPUs are alike"),
    REASON("copy_ipc", "cpu peer_cpu", "CPUs are alike"),
    REASON("copy_mixed", "cpu peer_cpu", "CPUs are alike"),
    REASON("copy_overheads", "by", "the CPU's copies have no calls of the module"),
    PROGRAM("dma_copy", "copy",
            "channels=2 message_bytes=8192 piece_bytes=1024 window=2 buffer_bytes=131072"
            " source_offset=8 destination_offset=8 completion=interrupt poll_ns=400 fence=true"
            " ring=4"),
    PROGRAM("dma_copy", "copy.v3", "interrupt_delay_us=20"),
    PROGRAM("dma_copy", "dsa", "queue=shared queues=8 batch=2"),
    REASON("dma_copy", "on", NAMES),
    REASON("dma_copy", "cpu", "CPUs are alike"),
    PROGRAM("ntb_latency", "ntb_latency",
            "on=lender+peer=borrower peer=borrower+on=lender round_trips=30"),
    REASON("ntb_latency", "cpu", "CPUs are alike; test_ntb_programs.c has one that is shared"),
    PROGRAM("ntb_stores", "ntb_stores",
            "on=lender+peer=borrower peer=borrower+on=lender stores=uncached transfer_bytes=32768"
            " transfers=20 cpu=2"),
    PROGRAM("rdma_perf", "rdma",
            "on=client+peer=server+device=r1+peer_device=r0+workload.measured=client test=send_lat"
            " bytes=64 iterations=41 inline_bytes=0 cpu=0 blueflame=false"),
    PROGRAM("rdma_perf", "rdma.write", "queue_depth=1 mtu_bytes=1024"),
    REASON("rdma_perf", "peer device peer_device", NAMES),
    { "infiniband", "rdma", "cables.[2]", "rate_gbit_s=50 latency_ns=100" },
    { "infiniband", "rdma.write", "cables.[2]", "loss_ratio=0.02" },
    BORROWER("os", "copies", "pin_lookup_cycles=1380"),
    BORROWER("os", "copies.cpu", "memcpy_nt_bytes=1024"),
    SERVER("os", "rdma", "rdma_post_cycles=240 rdma_poll_cycles=60"),
    SERVER("os", "rdma.send", "rdma_complete_cycles=120"),
    PROGRAM("nvmeof_target", "nvmeof",
            "queue_entries=8 in_capsule_bytes=0 mtu_bytes=1024 offload=true"),
    REASON("nvmeof_target", "on device adapter", NAMES),
    REASON("nvmeof_target", "cpu", "CPUs are alike"),
    REASON("nvmeof_target", "queues", BOUND ": test_nvmeof_system.c"),
    SERVER("os", "nvmeof", "spdk_reactor_cycles=1000 nvmeof_target_cycles=660"),
    { "os", "nvmeof", "hosts.client.os", "nvmeof_initiator_cycles=600" },
    { "link", "bench", "cables.[1]",
      "generation=1 lanes=1 latency_ns=80 bit_error_ratio=1e-5 skp_overhead_ratio=0" },
    { "link", "bench.bw", "cables.[1]", "ack_tlps=8 tlp_align_bytes=4" },
    { "link", "bench.credits", "cables.[0]", "fc_update_ratio_pct=50" },
    { "link", "taken", "cables.[1]", "training_us=40000" },
    { "ethernet", "net", "cables.[5]", "rate_gbit_s=10 latency_ns=100 loss_ratio=0.01" },
    SERVER("os", "net",
           "syscall_cycles=275 hard_irq_cycles=900 soft_irq_cycles=900 timer_cycles=600"
           " work_cycles=1600 copy_call_cycles=160 copy_line_cycles=15 gro_packet_cycles=121"
           " ip_tcp_receive_cycles=3501 tcp_ack_send_cycles=1501 tcp_ack_receive_cycles=2400"
           " recv_call_cycles=2200 recv_frag_cycles=60 tcp_transmit_cycles=4400"
           " sent_free_cycles=1440 driver_receive_cycles=420 driver_refill_cycles=120"
           " driver_transmit_cycles=700 driver_complete_cycles=500 driver_poll_cycles=500"
           " driver_irq_cycles=600 c1_exit_ns=750 interrupt_ns=200 napi_weight=16"
           " page_alloc_cycles=120 page_free_cycles=100 dma_map_cycles=40 dma_unmap_cycles=30"
           " wakeup_cycles=2000 context_switch_cycles=3000 mmio_write_cycles=50"),
    CLIENT("os", "net",
           "send_call_cycles=2400 send_page_cycles=120 driver_put_page_cycles=120"
           " driver_fragment_cycles=50"),
    SERVER("os", "net.share", "scheduler_tick_us=10 softirq_budget_packets=8 softirq_budget_us=10"),
    SERVER("os", "net.share", "softirq_yields=false irq_return_cycles=1500"),
    SERVER("os", "net.ksoftirqd", "wakeup_granularity_us=1"),
    SERVER("os", "net.iommu", "iommu_map_cycles=1440 iommu_unmap_cycles=5800"),
    SERVER("os", "net.iommu", "iommu_policy=strict"),
    REASON("os", "iommu_superpages",
           "mappings of 2 MiB by a driver: tests/models/os/test_os_pci.c"),
    SERVER("os", "pagerank", "remote_wakeup_cycles=3000"),
    SERVER("os", "udp", "ip_udp_receive_cycles=2400 udp_transmit_cycles=3200"),
    SERVER("os", "udp.idle",
           "c1e_after_us=1000 c1e_exit_ns=9000 c6_after_us=10000 c6_exit_ns=66000"),
    SERVER("os", "memcached", "poll_call_cycles=1600"),
    SERVER("os", "pktgen", "pktgen_packet_cycles=200"),
    BORROWER("os", "fio",
             "pin_cycles=2000 pin_page_cycles=400 unpin_page_cycles=200 block_submit_cycles=2400"
             " block_complete_cycles=1200 nvme_submit_cycles=500 nvme_complete_cycles=300"
             " nvme_irq_cycles=300"),
    BORROWER("os", "copy", "dma_prepare_cycles=500 dma_complete_cycles=300"),
    BORROWER("os", "copy.interrupt", "dma_irq_cycles=400"),
    BORROWER("os", "fio.spdk",
             "spdk_submit_cycles=440 spdk_complete_cycles=250 spdk_poll_cycles=40"
             " fio_plugin_cycles=400"),
    SERVER("os", "mpi",
           "mpi_call_cycles=1860 mx_lib_call_cycles=460 mx_lib_event_cycles=1070"
           " omx_send_cycles=2800 omx_receive_cycles=2000"),
    SERVER("os", "mpi.text", "text_pct=200 text_run_lines=4"),
    SERVER("os", "mpi.stores", "page_bulk_cycles=500"),
    SERVER("os", "mpi.large", "omx_reply_cycles=2700 omx_pull_cycles=1870"),
    { "network", "net", "network.server",
      "interface=pf1 mtu_bytes=1000 channels=1 adaptive_moderation=false arfs=false xps=false"
      " gro=false lro=true receive_buffer=65536 completion_ring=device+interface=pf1" },
    { "network", "net.tx", "network.server",
      "tso=false send_buffer=65536 tx_moderation_us=1 tx_moderation_packets=1" },
    { "network", "net.static", "network.server", "rx_moderation_us=30 rx_moderation_packets=4" },
    { "network", "sendfile", "network.server", "octo_sg=true" },
    { "network", "mpi", "network.server", "interrupts=round_robin" },
    REASON("network", "host device second_device", NAMES),
    REASON("network", "watchdog_ms",
           "when packets are stuck: tests/scenario/test_fault_programs.c"),
    { "lending", "dma", "lending.borrower",
      "dma_window_bytes=33554432 pool_bytes=2097152 nodes_listed=true" },
    { "lending", "vf", "lending.server", "sriov_numvfs=2+network.server.device=nic.vf1" },
    { "lending", "fio", "lending.borrower", "nvme_polled=true" },
    REASON("lending", "nvme_driver", "without it programs find no block device"),
    REASON("lending", "nvme_timeout_ms",
           "when commands do not come back: tests/scenario/test_fault_programs.c"),
    REASON("lending", "max_peers", BOUND),
    REASON("lending", "timeout_us hold_links", "when cables are out: tests/logic/sisci"),
    REASON("lending", "dma_bits", BOUND ": tests/logic/lending"),
    REASON("lending", "host", NAMES),
    { "lending.vm", "guest", "lending.borrower.vm", "memory_bytes=134217728 cpus=3" },
    REASON("lending.vm", "first_cpu",
           "cores of a socket are alike: which of them are the guest's shows nowhere"),
    { "vm", "guest", "lending.borrower.vm",
      "exit_cycles=1400 entry_cycles=1400 user_exit_cycles=8000" },
    { "vm", "guest.irq", "lending.borrower.vm", "eventfd_cycles=2000" },
    { "vm", "guest.fio", "lending.borrower.vm", "posted_interrupts=false" },
    { "vm", "guest.tlb", "lending.borrower.vm", "tlb_2m_entries=32" },
    { "vm", "guest.small", "lending.borrower.vm",
      "guest_page_bytes=2097152 host_page_bytes=4096 tlb_4k_entries=64 tlb_ways=2"
      " tlb_l2_entries=1536 tlb_l2_ways=2 tlb_l2_cycles=50 pde_cache_entries=24"
      " pdpte_cache_entries=4 pml4e_cache_entries=2" },
    { "cable", "bench", "cables.[1]", "length_m=10" },
    { "engine", "net", "engine", "quantum_ns=200" },
    { "measure", "bench", "measure",
      "warmup_us=10 duration_us=60 precision_ratio=0.9+duration_us=5000 transactions=5"
      " latency_parts=true sample_interval_us=5" },
    { "measure", "bench.sampled", "measure", "warmup_min_us=20" },
    { "pcie.requester", "bench", "devices.nfp",
      "bulk_request_ns=200 bulk_complete_ns=200 word_ns=0.5"
      " lanes=4"
      " generation=2" },
    { "pcie.requester", "bench.write", "devices.nfp",
      "writes_in_flight=1 line_ns=50 burst_bytes=64 tx_align_bytes=64 tx_gap_bytes=64" },
    { "pcie.requester", "bench.aligned", "devices.nfp", "aligned_requests=false" },
    { "pcie.requester", "bench.rest", "devices.nfp", "remainder_ns=100" },
    { "pcie.requester", "dma", "devices.nfp", "bar_bytes=4194304 register_latency_ns=100" },
    { "pcie.requester", "bench.command", "devices.nfp",
      "command_request_ns=80 command_complete_ns=80" },
    { "pcie.requester", "bench.bw", "devices.nfp",
      "mps_bytes=128 tx_queue_tlps=8 read_requests_max=4 read_interval_ns=50"
      " reads_in_flight=8 descriptor_ns=20 mrrs_bytes=128"
      " bank_bytes=1024+bank_word_ns=3 bank_word_ns=3+bank_bytes=1024" },
    { "pcie.requester", "bench.far", "devices.nfp", "extended_tags=true" },
    { "pcie.requester", "taken.read", "devices.nfp", "completion_timeout_us=1000" },
    { "pcie.requester", "dma", "devices.nfp", "non_posted_header_credits=1" },
    REASON("pcie.requester", "posted_header_credits posted_data_credits", DOORBELLS),
    { "pcie.switch", "bench", "devices.switch",
      "latency_ns=220 mode=store_and_forward downstream_ports=2 multicast_groups=0"
      " lanes=4 downstream_lanes=4"
      " generation=2" },
    { "pcie.switch", "bench.bw", "devices.switch",
      "posted_header_credits=4 posted_data_credits=128 non_posted_header_credits=4"
      " completion_header_credits=4 completion_data_credits=128 mps_bytes_max=128" },
    REASON("pcie.switch", "non_posted_data_credits", ONE_UNIT),
    { "pcie.ntb", "dma", "devices.n0",
      "latency_ns=220 mode=store_and_forward translate_ns=50 mps_bytes_max=128"
      " posted_header_credits=2 posted_data_credits=128 lanes=4"
      " cable_lanes=4 bar2_bytes=2147483648 bar2_windows=1024"
      " bar4_bytes=1048576"
      " generation=2" },
    { "pcie.ntb", "dma", "devices.n1",
      "bar4_windows=1024+bar4_bytes=1073741824+bar2_bytes=65536+bar2_windows=1" },
    { "pcie.ntb", "dma.read", "devices.n0",
      "non_posted_header_credits=1 completion_header_credits=2 completion_data_credits=128" },
    REASON("pcie.ntb", "non_posted_data_credits", ONE_UNIT),
    REASON("pcie.ntb", "node", NAMES),
    REASON("pcie.ntb", "outgoing_requesters incoming_requesters", BOUND),
    REASON("pcie.ntb", "dma_completion_timeout_us", LOST ": tests/models/pcie/ntb"),
    { "pcie.ntb", "ntb_dma.read", "devices.n0",
      "dma_channels=2 dma_reads_in_flight=4 dma_request_bytes=128 dma_port_ns=190"
      " dma_descriptor_ns=200" },
    { "pcie.cluster_switch", "dma", "devices.middle",
      "latency_ns=290 mode=store_and_forward posted_header_credits=2"
      " posted_data_credits=128 lanes=4"
      " generation=2" },
    { "pcie.cluster_switch", "dma.read", "devices.middle",
      "non_posted_header_credits=1 completion_header_credits=2 completion_data_credits=128" },
    REASON("pcie.cluster_switch", "non_posted_data_credits", ONE_UNIT),
    REASON("pcie.cluster_switch", "requesters ports mps_bytes_max", BOUND),
    REASON("pcie.cluster_switch", "node", NAMES),
    { "ether.switch", "net", "devices.switch",
      "rate_gbit_s=10 latency_ns=600 mac_entries=1 learning=false" },
    REASON("ether.switch", "ports", BOUND),
    { "ether.switch", "net.slow", "devices.switch", "queue_bytes=16384 flow_control=false" },
    REASON("ether.switch", "groups", "with a NIC at each of its ports: test_programs.c (bond0)"),
    { "nic.ethernet", "net", "devices.nic",
      "vfs=1 mps_bytes=128 tx_queue_tlps=8"
      " posted_header_credits=1 non_posted_header_credits=1"
      " register_latency_ns=600 rate_gbit_s=10 transmit_latency_ns=450"
      " receive_latency_ns=450 command_latency_us=40 queues=6 arfs_entries=1 rq_prefetch_wqes=4"
      " lanes=4"
      " generation=2" },
    { "nic.ethernet", "net.tx", "devices.nic",
      "tx_buffer_bytes=8192 read_requests_max=8"
      " extended_tags=false+read_requests_max=0" },
    { "nic.ethernet", "pktgen.far", "devices.nic", "wqe_prefetch_blocks=8" },
    REASON("nic.ethernet", "posted_data_credits", DOORBELLS),
    { "nic.ethernet", "net.small", "devices.nic", "rx_buffer_bytes=16384" },
    { "nic.ethernet", "net.slow", "devices.client_nic", "flow_control=false" },
    REASON("nic.ethernet", "functions", "each needs a cable: the scenario is another"),
    REASON("nic.ethernet", "mtu_bytes", BOUND ": test_mtu.c"),
    REASON("nic.ethernet", "completion_timeout_us", LOST ": tests/models/pcie/endpoint"),
    { "nic.ethernet", "net.octo", "devices.nic",
      "firmware=standard+network.server.interface=pf0"
      " switch_entries=1" },
    { "nic.ethernet", "net.lro", "devices.nic", "lro_timeout_us=8" },
    { "nic.ethernet", "net.lro", "devices.nic", "lro_sessions=1" },
    { "myri.myri10g", "myri", "devices.nic",
      "firmware=multiqueue tx_queue_tlps=1 firmware_send_ns=1500 firmware_receive_ns=1500"
      " port_latency_ns=300 rate_gbit_s=5 mps_bytes=256"
      " lanes=4 generation=2+hosts.server.ports.[0].generation=2" },
    { "myri.myri10g", "myri.several", "devices.nic", "firmware_multiqueue_ns=2000" },
    { "myri.myri10g", "myri.setup", "devices.nic",
      "ring_entries=256 register_latency_ns=600 command_latency_us=20" },
    { "myri.myri10g", "myri.tx", "devices.nic", "tx_buffer_bytes=16384 read_requests_max=1" },
    { "myri.myri10g", "myri.flood", "devices.nic", "rx_buffer_bytes=65536 flow_control=false" },
    REASON("myri.myri10g", "extended_tags", "it has fewer reads in flight than there are tags"),
    REASON("myri.myri10g", "firmware_mx_ns",
           "of firmware without an Ethernet device: tests/system/test_mx_native.c"),
    REASON("myri.myri10g", "mtu_bytes", BOUND ": tests/system/test_myri_system.c"),
    REASON("myri.myri10g", "posted_header_credits posted_data_credits non_posted_header_credits",
           DOORBELLS),
    REASON("myri.myri10g", "completion_timeout_us", LOST ": tests/models/pcie/endpoint"),
    { "nvme.controller", "fio", "devices.ssd",
      "queue_pairs=2 queue_entries=64 interrupt_vectors=2 namespaces=2"
      " transfer_bytes_max=65536 enable_latency_us=20"
      " command_interval_ns=20000 read_latency_ns=8400 jitter_mean_ns=1000"
      " channels=4 register_latency_ns=600 cmb_bytes=65536" },
    REASON("nvme.controller", "vendor_id device_id",
           "the driver binds by them: to others none does"),
    REASON("nvme.controller", "capacity_bytes block_bytes", BOUND),
    REASON("nvme.controller", "ports", "each needs a cable: tests/models/nvme"),
    REASON("nvme.controller", "virtual_functions flexible_queue_pairs flexible_vectors",
           "no driver enables virtual functions: tests/models/nvme"),
    REASON("nvme.controller", "function_level_reset",
           "a lender resets what it takes back by force: tests/logic/lending, tests/models/nvme"),
    { "nvme.controller", "local.fio", "devices.ssd",
      "mps_bytes=128 generation=2"
      " lanes=2" },
    { "nvme.controller", "fio.far", "devices.ssd", "fetch_burst=1" },
    REASON("nvme.controller", "posted_data_credits", DOORBELLS),
    { "nvme.controller", "fio.many", "devices.ssd",
      "tx_queue_tlps=1 extended_tags=false read_requests_max=4 read_gbyte_s=1.2"
      " posted_header_credits=1 non_posted_header_credits=1"
      " write_latency_ns=6000 write_gbyte_s=1 commands_max=4" },
    { "nvme.controller", "fio.cmb", "devices.ssd", "cmb_latency_ns=1000" },
    { "nvme.controller", "fio.nand", "devices.ssd",
      "page_kind_step_ns=30000 die_erase_us=50 suspend_us=0 planes=2 flash_page_bytes=8192"
      " block_pages=8 spare_ratio=2 gc_free_blocks=10 write_buffer_bytes=32768"
      " preconditioned=steady" },
    REASON("nvme.controller", "endurance_cycles", "in the health log alone: tests/models/nvme"),
    { "nvme.controller", "fio.xpoint", "devices.ssd",
      "media=dram dies=4 channel_gbyte_s=0.2 ecc_ratio=0.5 codeword_bytes=128 die_read_ns=400"
      " die_write_ns=7000 refresh_interval_us=30 refresh_ns=4000 retry_ratio=0.1 retry_ns=9000" },
    REASON("nvme.controller", "completion_timeout_us", LOST ": tests/models/pcie/endpoint"),
    REASON("nvme.controller", "payload",
           "what is kept of the data for the check of every delivery"),
    { "rdma.adapter", "rdma", "devices.r0",
      "register_latency_ns=600 command_latency_us=20 transmit_latency_ns=250"
      " receive_latency_ns=250 inline_bytes=0 event_queues=1 interrupt_vectors=1"
      " rate_gbit_s=50 generation=1"
      " lanes=4 mtu_bytes=256+programs.p.bytes=4096" },
    { "rdma.adapter", "rdma.write", "devices.r0",
      "tx_buffer_bytes=4096 translation_entries=1 extended_tags=false read_requests_max=1" },
    { "rdma.adapter", "rdma.write", "devices.r1", "mps_bytes=128 tx_queue_tlps=1" },
    { "rdma.adapter", "rdma.write", "devices.r1",
      "rx_buffer_bytes=4608+receive_latency_ns=2000+devices.r1.packet_interval_ns=500" },
    { "rdma.adapter", "rdma.read", "devices.r0", "reads_in_flight=1" },
    { "rdma.adapter", "rdma.small", "devices.r0",
      "packet_interval_ns=500 wqe_fetch_blocks=1 wqes_per_queue=1" },
    { "rdma.adapter", "rdma.send", "devices.r1", "receive_prefetch_wqes=1" },
    REASON("rdma.adapter", "queue_pairs completion_queues keys protection_domains", BOUND),
    REASON("rdma.adapter", "posted_header_credits posted_data_credits non_posted_header_credits",
           DOORBELLS),
    REASON("rdma.adapter", "completion_timeout_us", LOST ": tests/models/pcie/endpoint"),
    { "gpu.cuda", "gpu", "devices.gpu0",
      "extended_tags=false+read_requests_max=0 read_requests_max=4"
      " register_latency_ns=600"
      " bar1_bytes=134217728 copy_start_us=3 read_bytes=128 copy_engines=4" },
    { "gpu.cuda", "gpu.write", "devices.gpu0",
      "tx_queue_tlps=1 memory_gbyte_s=1 copy_write_gbyte_s=1" },
    { "gpu.cuda", "gpu", "devices.gpu0", "memory_gbyte_s=1" },
    { "gpu.cuda", "local", "devices.gpu0",
      "mps_bytes=128 generation=2"
      " lanes=4" },
    REASON("gpu.cuda", "device_id", "the driver binds by it: to another none does"),
    REASON("gpu.cuda", "memory_bytes", BOUND),
    { "gpu.cuda", "gpu.peer", "devices.gpu1",
      "posted_header_credits=1 posted_data_credits=32 inbound_write_latency_ns=400"
      " inbound_write_gbyte_s=1" },
    { "gpu.cuda", "ntb_gpu.read", "devices.gpu0",
      "inbound_read_latency_ns=900 inbound_read_gbyte_s=1" },
    REASON("gpu.cuda", "completion_timeout_us", LOST ": tests/models/pcie/endpoint"),
    REASON("gpu.cuda", "address_bits", "what lies beyond is refused: test_gpu_programs.c"),
    { "gpu.cuda", "gpu", "devices.gpu0", "non_posted_header_credits=1" },
    { "gpu.cuda", "gpu.events", "devices.gpu0", "timer_ns=100" },
    { "gpu.cuda", "gpu_storage", "devices.gpu0",
      "nvme_submit_ns=600 nvme_complete_ns=300 fence_ns=1000" },
    { "ioat.engine", "copy", "devices.engine",
      "reads_in_flight=4 engine_interval_ns=20 descriptor_start_ns=600 descriptors_ahead=0"
      " read_requests_max=4 version=cb3.2+device_id=28448+channels=1" },
    { "ioat.engine", "copy.channels", "devices.engine", "extended_tags=false" },
    { "ioat.engine", "copy.interrupt", "devices.engine", "register_latency_ns=400" },
    REASON("ioat.engine", "lanes generation", "it is integrated and has no link"),
    REASON("ioat.engine", "mps_bytes", "it writes a line at a time"),
    REASON("ioat.engine",
           "tx_queue_tlps posted_header_credits posted_data_credits"
           " non_posted_header_credits",
           "nothing waits within a root complex that keeps up"),
    REASON("ioat.engine", "device_id", "the driver binds by it: to another none does"),
    REASON("ioat.engine", "functions channels transfer_bytes_max address_bits",
           BOUND ": tests/models/ioat"),
    REASON("ioat.engine", "completion_timeout_us", LOST ": tests/models/pcie/endpoint"),
    { "gpu.cuda", "ping_pong", "devices.gpu0",
      "launch_us=10 store_latency_ns=800 clock_call_ns=64 poll_ns=30 clock_mhz=1000" },
    { "dsa.accelerator", "dsa", "devices.engine",
      "engines=1 engine_descriptors=1 descriptor_ns=300 descriptor_interval_ns=200 read_buffers=8"
      " read_requests_max=4 register_latency_ns=200 batch_log2=1 read_interval_ns=40" },
    { "dsa.accelerator", "dsa.queue", "devices.engine", "queue_entries=8 extended_tags=false" },
    REASON("dsa.accelerator", "lanes generation", "it is integrated and has no link"),
    REASON("dsa.accelerator", "mps_bytes", "it writes a line at a time"),
    REASON("dsa.accelerator",
           "tx_queue_tlps posted_header_credits posted_data_credits non_posted_header_credits",
           "nothing waits within a root complex that keeps up"),
    REASON("dsa.accelerator", "work_queues groups transfer_log2", BOUND ": tests/models/dsa"),
    REASON("dsa.accelerator", "completion_timeout_us", LOST ": tests/models/pcie/endpoint"),
};

#endif
