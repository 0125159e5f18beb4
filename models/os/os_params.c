/*
 * Parameters of the operating system: what software costs in cycles, idle states, budgets.
 *
 * Models: the parameters of the group `os`.
 * Does not model: costs that depend on the state of caches (software touches lines besides, and
 *   os_text.c fetches its instructions).
 * Sources: docs/sources.md#a4 (idle states, interrupt), #a5 (budgets), #a6 (software at 2.0 GHz).
 */
#include "models/os/os.h"

/* What a piece of software costs: default, lowest, highest. */
#define CYCLES(name, usual, least, most, source, help)                                           \
    PARAM(#name "_cycles", PARAM_U32, struct os_params, costs.name##_cycles, usual, least, most, \
          PROV_ESTIMATE, source, help)
#define COST(name, usual, least, most, help) \
    CYCLES(name, usual, least, most, "docs/sources.md#a6", help)
#define BLOCK_COST(name, usual, least, most, help) \
    CYCLES(name, usual, least, most, "docs/sources.md#c4", help)
#define DMA_COST(name, usual, least, most, help) \
    CYCLES(name, usual, least, most, "docs/sources.md#ioat", help)
#define MX_COST(name, usual, least, most, help) \
    CYCLES(name, usual, least, most, "docs/sources.md#openmx", help)
#define RDMA_COST(name, usual, least, most, help) \
    CYCLES(name, usual, least, most, "docs/sources.md#rdma", help)

static const char *const policy_names[] = { "strict", "lazy", NULL };

static const struct param_desc os_params_table[] = {
    COST(syscall, 550, 100, 2500,
         "entry and return of a system call, kernel page table isolation included"),
    COST(hard_irq, 450, 200, 2000, "entry and return of a hard interrupt, without the handler"),
    CYCLES(irq_return, 0, 0, 5000, "docs/sources.md#e3",
           "the end of all that an interrupt runs to the thread that goes on"),
    COST(soft_irq, 450, 200, 2000, "return of the handler to the first soft interrupt"),
    COST(context_switch, 2500, 1500, 4000, "switch to a thread, from another or from idle"),
    COST(wakeup, 1000, 300, 3000, "waking a thread"),
    COST(remote_wakeup, 1500, 0, 5000, "more of it if the thread is another CPU's"),
    COST(timer, 300, 50, 2000, "a timer's expiry, without its function"),
    COST(work, 800, 100, 4000, "queueing and starting a piece of work"),
    COST(page_alloc, 60, 20, 500, "allocating a page"),
    COST(page_free, 50, 20, 500, "freeing a page"),
    CYCLES(
        page_bulk, 0, 0, 500, "docs/sources.md#e3",
        "a page that goes from a CPU's list to the node's, or back; 0: neither cycles nor lines"),
    COST(pin, 1000, 200, 5000, "pinning user memory, per call"),
    COST(pin_page, 200, 50, 1000, "pinning user memory, per page"),
    COST(unpin_page, 0, 0, 500, "unpinning it, per page, beside the line of its structure"),
    COST(dma_map, 20, 0, 500, "mapping a buffer for a device, without an IOMMU"),
    COST(dma_unmap, 15, 0, 500, "unmapping it"),
    COST(iommu_map, 720, 200, 5000, "more of a mapping with an IOMMU: address and table"),
    COST(iommu_unmap, 800, 100, 6000,
         "more of an unmapping with an IOMMU: address and table; the invalidation takes its time"),
    COST(mmio_write, 100, 50, 1500, "posted write to a device, until the core goes on"),
    COST(copy_call, 80, 20, 500, "a copy of contiguous bytes, per call"),
    COST(copy_line, 14, 2, 40, "a copy, per cache line at least (0.22 cycles per byte)"),
    PARAM("memcpy_nt_bytes", PARAM_U32, struct os_params, costs.memcpy_nt_bytes, 0, 0, 4294967295,
          PROV_ESTIMATE, "docs/sources.md#copy-module",
          "the C library's memcpy() stores past the caches from so many bytes on; 0: never"),
    CYCLES(pin_lookup, 690, 100, 2000, "docs/sources.md#copy-module",
           "a copy module: a buffer looked up among pinned pages"),
    COST(gro_packet, 120, 80, 200, "merging a packet into another (GRO)"),
    COST(ip_tcp_receive, 3500, 2000, 6000, "IP and TCP receive, per merged buffer"),
    COST(tcp_ack_send, 1500, 1000, 2500, "building and sending an acknowledgement"),
    COST(tcp_ack_receive, 1200, 500, 3000, "an acknowledgement at the sender"),
    COST(ip_udp_receive, 1200, 500, 3000, "IP and UDP receive, per packet"),
    COST(recv_call, 1100, 500, 2500, "a receive call, without copy and sleep"),
    COST(recv_frag, 30, 10, 200, "more of it per fragment"),
    COST(send_call, 1200, 500, 3000, "a send call, without copy and transmission"),
    COST(send_page, 60, 20, 300, "more of it per page of payload"),
    COST(tcp_transmit, 2200, 1000, 5000, "a buffer through TCP, IP and queueing discipline"),
    COST(udp_transmit, 1600, 800, 4000, "a packet through UDP, IP and queueing discipline"),
    COST(sent_free, 720, 200, 2000,
         "freeing a buffer that has left: structures, account of its socket"),
    COST(poll_call, 800, 300, 2500, "epoll_wait(), without sleep"),
    COST(driver_receive, 210, 150, 450, "completion to stack, per packet"),
    COST(driver_refill, 60, 20, 200, "posting a receive buffer"),
    COST(driver_transmit, 350, 150, 800, "work queue entry and doorbell, per buffer"),
    COST(driver_fragment, 25, 10, 100, "more of it per fragment"),
    COST(driver_complete, 250, 30, 600, "transmit completion, per buffer"),
    COST(driver_put_page, 60, 20, 200, "more of it per page freed"),
    COST(driver_poll, 250, 100, 1000, "a call of the driver's poll function"),
    COST(driver_irq, 300, 100, 1000, "the driver's interrupt handler"),
    BLOCK_COST(block_submit, 1200, 300, 5000,
               "direct I/O to a block device: bio and request, per request"),
    BLOCK_COST(block_complete, 600, 150, 3000, "the end of one, without the wake-up"),
    BLOCK_COST(nvme_submit, 250, 80, 1000, "the NVMe driver's command, without doorbell"),
    BLOCK_COST(nvme_complete, 150, 50, 600, "a completion in the NVMe driver"),
    BLOCK_COST(nvme_irq, 150, 50, 600, "the NVMe driver's handler, without completions"),
    DMA_COST(dma_prepare, 250, 50, 1000, "preparing a copy for a copy engine, without stores"),
    DMA_COST(dma_complete, 100, 20, 500, "a copy of a copy engine that has ended"),
    DMA_COST(dma_irq, 150, 50, 600, "the copy engine's interrupt handler, without registers"),
    RDMA_COST(rdma_post, 120, 50, 400, "an RDMA work request, without stores and doorbell"),
    RDMA_COST(rdma_poll, 30, 10, 150, "a call that polls an RDMA completion queue"),
    RDMA_COST(rdma_complete, 60, 20, 300, "more of it per completion"),
    BLOCK_COST(spdk_submit, 340, 240, 440, "SPDK: an NVMe command, without entry and doorbell"),
    BLOCK_COST(spdk_complete, 140, 80, 250, "SPDK: its completion, without entry and doorbell"),
    BLOCK_COST(spdk_poll, 20, 10, 100, "SPDK: a look at a completion queue"),
    RDMA_COST(spdk_reactor, 500, 100, 1900, "SPDK: a round of a target's pollers"),
    RDMA_COST(nvmeof_initiator, 410, 200, 600,
              "NVMe over Fabrics: a request at the initiator, each way, without verbs"),
    RDMA_COST(nvmeof_target, 330, 30, 930,
              "NVMe over Fabrics: each of both events at the target, without verbs and NVMe"),
    PARAM("fio_plugin_cycles", PARAM_U32, struct os_params, costs.fio_plugin_cycles, 750, 400, 800,
          PROV_CALIBRATED, "docs/sources.md#c4",
          "fio's engine over a user-space driver, per request, half of it each way"),
    COST(pktgen_packet, 100, 30, 400, "pktgen's own loop, per packet, without the driver"),
    MX_COST(mx_lib_call, 230, 100, 460, "MX: posting a send or a receive in the library"),
    MX_COST(mx_lib_event, 600, 370, 1070, "MX: an event, read and processed by the library"),
    MX_COST(
        omx_send, 1640, 940, 2810,
        "Open-MX: a packet from the command to the driver, without system call, stores and driver"),
    MX_COST(omx_receive, 840, 140, 2000,
            "Open-MX: a packet in the receive handler, without lines and copies"),
    MX_COST(omx_reply, 1530, 830, 2700,
            "Open-MX: a reply to a pull in the receive handler, without lines and copies"),
    MX_COST(omx_pull, 470, 0, 1870, "Open-MX: more of a packet that asks to pull"),
    CYCLES(mpi_call, 1280, 700, 1860, "docs/sources.md#mpi",
           "a message in the MPI library, at either side"),
    PARAM("c1_exit_ns", PARAM_TIME, struct os_params, c1_exit_ps, 1500, 0, 2000, PROV_ESTIMATE,
          "docs/sources.md#a4", "leaving idle state C1"),
    PARAM("c1e_after_us", PARAM_TIME, struct os_params, c1e_after_ps, 20, 0, 1000000, PROV_ESTIMATE,
          "docs/sources.md#a4", "expected idle period from which C1E is worth it"),
    PARAM("c1e_exit_ns", PARAM_TIME, struct os_params, c1e_exit_ps, 4500, 0, 10000, PROV_ESTIMATE,
          "docs/sources.md#a4", "leaving idle state C1E"),
    PARAM("c6_after_us", PARAM_TIME, struct os_params, c6_after_ps, 400, 0, 1000000, PROV_ESTIMATE,
          "docs/sources.md#a4", "expected idle period from which C6 is worth it"),
    PARAM("c6_exit_ns", PARAM_TIME, struct os_params, c6_exit_ps, 133000, 0, 200000, PROV_DATASHEET,
          "docs/sources.md#a4", "leaving idle state C6"),
    PARAM("interrupt_ns", PARAM_TIME, struct os_params, interrupt_ps, 100, 10, 1000, PROV_ESTIMATE,
          "docs/sources.md#a4",
          "from the root complex to the core, ring and interrupt controller; between cores too"),
    PARAM("scheduler_tick_us", PARAM_TIME, struct os_params, scheduler_tick_ps, 1000, 10, 100000,
          PROV_ESTIMATE, "docs/sources.md#a6", "time slice of threads that share a CPU"),
    PARAM("wakeup_granularity_us", PARAM_TIME, struct os_params, wakeup_granularity_ps, 333, 0,
          1000000, PROV_ESTIMATE, "docs/sources.md#a6",
          "a woken thread takes the CPU from one that has had more time than it by this; 0: it "
          "waits for the slice's end"),
    PARAM_ONE_OF("iommu_policy", struct os_params, iommu_policy, OS_IOMMU_LAZY, policy_names,
                 PROV_DATASHEET, "docs/sources.md#iommu-software",
                 "after an unmapping translations are invalidated at once, or up to 250 or 10 ms "
                 "later, all together (intel_iommu=strict, or without it)"),
    PARAM("iommu_superpages", PARAM_BOOL, struct os_params, iommu_superpages, 1, 0, 1,
          PROV_DATASHEET, "docs/sources.md#iommu-software",
          "mappings take pages of 2 MiB and 1 GiB where they can (false: intel_iommu=sp_off)"),
    PARAM("softirq_budget_packets", PARAM_U32, struct os_params, softirq_budget_packets, 300, 1,
          100000, PROV_ESTIMATE, "docs/sources.md#a5",
          "packets that one network soft interrupt handles at most (netdev_budget)"),
    PARAM("softirq_budget_us", PARAM_TIME, struct os_params, softirq_budget_ps, 2000, 1, 100000,
          PROV_ESTIMATE, "docs/sources.md#a5",
          "time after which soft interrupts are left to ksoftirqd (netdev_budget_usecs)"),
    PARAM(
        "softirq_yields", PARAM_BOOL, struct os_params, softirq_yields, 1, 0, 1, PROV_DATASHEET,
        "docs/sources.md#e3",
        "soft interrupts give way to threads: they end when a thread's turn has come, and wait while "
        "ksoftirqd is ready (Linux 4.9); false: Linux before 3.9"),
    PARAM("napi_weight", PARAM_U32, struct os_params, napi_weight, 64, 1, 1024, PROV_ESTIMATE,
          "docs/sources.md#a5", "packets that one poll handles at most"),
    PARAM(
        "text_pct", PARAM_U32, struct os_params, text_pct, 100, 50, 200, PROV_ESTIMATE,
        "docs/sources.md#e3-text",
        "lines of instructions that software executes, of those of the list; read if there is an L1I"),
    PARAM(
        "text_run_lines", PARAM_U32, struct os_params, text_run_lines, 2, 1, 8, PROV_ESTIMATE,
        "docs/sources.md#e3-text",
        "lines of them that follow each other before a jump to elsewhere; read if there is an L1I"),
    { .type = PARAM_END },
};

const struct host_param_group os_param_group = {
    "os", "operating system: what software costs, idle states", os_params_table,
    sizeof(struct os_params)
};
