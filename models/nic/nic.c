/*
 * nic.ethernet: an Ethernet NIC in the way of a ConnectX-4, with one to four physical functions.
 *
 * Models: functions with a PCIe port, configuration space, BAR, MSI-X table and DMA engine each;
 *   registers and doorbells. Queues: nic_transmit.c, nic_receive.c, nic_event.c; commands:
 *   nic_command.c; virtual functions: nic_vf.c; reset and removal: nic_reset.c.
 * Does not model: firmware loading, LEDs, PTP, a limit of packets per second.
 * Timing: a read of a register is answered after register_latency; a doorbell acts when it arrives.
 *   The rest: the files above.
 * Sources: docs/sources.md#a5; docs/models/nic.md.
 */
#include "models/nic/nic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/nic/nic_internal.h"

#define DOORBELL_BYTES 8u
#define QUEUES_MAX     1024u
#define READS_MIN      5u  /* fetches of a send queue, and one of its data */
#define STAMP_EVERY    17u /* writes: data and completions both, whatever turns they take */

static const char *const firmware_names[] = { "standard", "octonic", NULL };

#define FROM_A5 "docs/sources.md#a5"
static const struct param_desc nic_params_table[] = {
    PARAM("functions", PARAM_U32, struct nic, params.n_functions, 1, 1, NIC_FUNCTIONS_MAX,
          PROV_DATASHEET, FROM_A5, "physical functions, each with a PCIe port: p0, p1, ..."),
    PARAM("vfs", PARAM_U32, struct nic, params.n_vfs, 0, 0, NIC_VFS_MAX, PROV_NONE, "",
          "virtual functions that each physical function may have; 0: no SR-IOV capability"),
    PCIE_FUNCTION_PARAMS(struct nic, params.pcie, FROM_A5, /* lanes */ 16, /* payload */ 512,
                         PROV_ESTIMATE, /* extended tags */ 1, PROV_DATASHEET, /* queue */ 4,
                         /* credits */ 64, 256, 16, /* register */ 300, /* reads */ 64),
    PARAM_ONE_OF("firmware", struct nic, params.firmware, NIC_FIRMWARE_STANDARD, firmware_names,
                 PROV_PUBLISHED, FROM_A5,
                 "standard: a MAC per function, the switch goes by MAC; octonic: one MAC, the "
                 "switch goes by 5-tuple"),
    PARAM("rate_gbit_s", PARAM_RATE, struct nic, params.rate_gbit_s, 100, 1, 1600, PROV_DATASHEET,
          FROM_A5, "highest bit rate of the Ethernet port"),
    PARAM("transmit_latency_ns", PARAM_TIME, struct nic, params.transmit_ps, 225, 0, 10000,
          PROV_ESTIMATE, FROM_A5,
          "doorbell to first bit on the wire, without PCIe round trips; all of it between data and "
          "wire"),
    PARAM("receive_latency_ns", PARAM_TIME, struct nic, params.receive_ps, 225, 0, 10000,
          PROV_ESTIMATE, FROM_A5, "last bit to the first write"),
    PARAM("command_latency_us", PARAM_TIME, struct nic, params.command_ps, 10, 0, 100000,
          PROV_ESTIMATE, FROM_A5, "a command's block to its effect: what a rule's update takes"),
    PARAM("queues", PARAM_U32, struct nic, params.n_queues, 192, 1, QUEUES_MAX, PROV_ESTIMATE,
          FROM_A5, "queues of each kind per function"),
    PARAM("arfs_entries", PARAM_U32, struct nic, params.arfs_entries, 65536, 1, 1048576,
          PROV_ESTIMATE, FROM_A5, "flows in the table of a function"),
    PARAM("switch_entries", PARAM_U32, struct nic, params.switch_entries, 65536, 1, 1048576,
          PROV_ESTIMATE, FROM_A5,
          "rules in the multi-PF switch, addresses of functions among them"),
    PARAM("rx_buffer_bytes", PARAM_BYTES, struct nic, params.rx_buffer_bytes, 262016, 2048, 1e9,
          PROV_ESTIMATE, FROM_A5,
          "on-chip buffer for received packets; with flow_control more than what may come in after "
          "PAUSE, and two packets"),
    PARAM(
        "flow_control", PARAM_BOOL, struct nic, params.flow_control, 1, 0, 1, PROV_DATASHEET,
        FROM_A5,
        "PAUSE frames, if the other end of the wire offers them, too: sends them before its buffer "
        "overflows, and obeys them"),
    PARAM("tx_buffer_bytes", PARAM_BYTES, struct nic, params.tx_buffer_bytes, 65536, 2048, 1e9,
          PROV_ESTIMATE, FROM_A5,
          "on-chip buffer for packets to be sent, from read to wire: a packet is begun while less "
          "than this is taken, so the last may reach beyond it"),
    PARAM("wqe_prefetch_blocks", PARAM_U32, struct nic, params.prefetch_blocks, 32, 8, 1024,
          PROV_ESTIMATE, FROM_A5, "send WQE blocks on the chip per queue; a power of two"),
    PARAM("rq_prefetch_wqes", PARAM_U32, struct nic, params.rq_batch, 16, 1, NIC_RQ_CACHE_WQES / 2,
          PROV_ESTIMATE, FROM_A5, "receive WQEs read at once"),
    PARAM("lro_sessions", PARAM_U32, struct nic, params.lro_sessions, 16, 1, 64, PROV_ESTIMATE,
          FROM_A5, "flows that a receive queue with LRO merges segments of at a time"),
    PARAM("lro_timeout_us", PARAM_TIME, struct nic, params.lro_timeout_ps, 32, 1, 10000,
          PROV_DATASHEET, FROM_A5, "a merged packet is completed so long after its first segment"),
    PARAM("mtu_bytes", PARAM_U32, struct nic, params.mtu_bytes, 1500, 576, 9600, PROV_PUBLISHED,
          FROM_A5, "longest packet, without Ethernet header"),
    { .type = PARAM_END },
};

#define FUNCTION_STAT(PF, NAME, FIELD, UNIT, HELP)                                               \
    STAT_PART("pf" #PF "_" NAME, STAT_COUNTER, struct nic, function[PF].stats.FIELD, UNIT, HELP, \
              params.n_functions, PF)
#define FUNCTION_STATS(PF)                                                                     \
    FUNCTION_STAT(PF, "rx_packets", rx_packets, "1", "packets written to host memory"),        \
        FUNCTION_STAT(PF, "rx_bytes", rx_bytes, "bytes", "of these packets, without FCS"),     \
        FUNCTION_STAT(PF, "tx_packets", tx_packets, "1", "packets sent"),                      \
        FUNCTION_STAT(PF, "tx_bytes", tx_bytes, "bytes", "of these packets, without FCS"),     \
        FUNCTION_STAT(PF, "rx_no_buffer", rx_no_buffer, "1",                                   \
                      "packets dropped because no buffer was posted"),                         \
        FUNCTION_STAT(PF, "rx_overflow", rx_overflow, "1",                                     \
                      "packets dropped because the on-chip buffer was full"),                  \
        FUNCTION_STAT(PF, "rx_no_queue", rx_no_queue, "1",                                     \
                      "packets dropped because no receive queue is there for them"),           \
        FUNCTION_STAT(PF, "arfs_hits", arfs_hits, "1", "packets that rules or flows steered"), \
        FUNCTION_STAT(PF, "rss_hits", rss_hits, "1", "packets that RSS steered"),              \
        FUNCTION_STAT(PF, "doorbells", doorbells, "1", "doorbells rung"),                      \
        FUNCTION_STAT(PF, "tx_wqes", tx_wqes, "1", "blocks of send WQEs fetched"),             \
        FUNCTION_STAT(PF, "rx_wqes", rx_wqes, "1", "receive WQEs fetched"),                    \
        FUNCTION_STAT(PF, "cqes", cqes, "1", "completions written"),                           \
        FUNCTION_STAT(PF, "eqes", eqes, "1", "events written"),                                \
        FUNCTION_STAT(PF, "timer_events", timer_events, "1",                                   \
                      "events that waited for the time of moderation"),                        \
        STAT_PART("pf" #PF "_interrupts", STAT_COUNTER, struct nic,                            \
                  function[PF].pcie.stats.interrupts, "1", "MSI-X messages sent",              \
                  params.n_functions, PF),                                                     \
        FUNCTION_STAT(PF, "dma_read_bytes", read_bytes, "bytes", "asked for by DMA reads"),    \
        FUNCTION_STAT(PF, "dma_write_bytes", write_bytes, "bytes", "sent by DMA writes")

#define NIC_STAT(NAME, KIND, FIELD, UNIT, HELP) \
    STAT(NAME, KIND, struct nic, stats.FIELD, UNIT, 0, HELP)
static const struct stat_desc nic_stats_table[] = {
    FUNCTION_STATS(0),
    FUNCTION_STATS(1),
    FUNCTION_STATS(2),
    FUNCTION_STATS(3),
    NIC_STAT("tx_segments", STAT_COUNTER, tx_segments, "1", "packets that segmentation made"),
    NIC_STAT("tx_errors", STAT_COUNTER, tx_errors, "1", "send queues that failed"),
    NIC_STAT("rx_filtered", STAT_COUNTER, rx_filtered, "1", "packets for another's address"),
    NIC_STAT("rx_bad_checksum", STAT_COUNTER, rx_bad_checksum, "1",
             "packets whose checksum is wrong"),
    NIC_STAT("rx_too_long", STAT_COUNTER, rx_too_long, "1",
             "packets dropped because they are longer than the MTU or their buffer"),
    NIC_STAT("lro_merged", STAT_COUNTER, lro_merged, "1",
             "packets that LRO put behind others of their flow"),
    NIC_STAT("switch_hits", STAT_COUNTER, switch_hits, "1",
             "packets that a rule of the multi-PF switch steered"),
    NIC_STAT("switch_default", STAT_COUNTER, switch_default, "1",
             "packets that went to the default function"),
    NIC_STAT("commands", STAT_COUNTER, commands, "1", "commands executed"),
    NIC_STAT("bad_doorbells", STAT_COUNTER, bad_doorbells, "1",
             "doorbells, records and commands that make no sense; ignored"),
    NIC_STAT("unsupported", STAT_COUNTER, unsupported, "1",
             "requests to it that it does not support"),
    NIC_STAT("rx_buffer_max_bytes", STAT_MAX, rx_buffer_max, "bytes",
             "most of the receive buffer in use"),
    NIC_STAT("tx_buffer_max_bytes", STAT_MAX, tx_buffer_max, "bytes",
             "most of the transmit buffer in use"),
    { .kind = STAT_END },
};

/* ---- DMA ------------------------------------------------------------------------------------- */

void nic_dma_read(struct nic_function *function, struct pcie_dma_request *request)
{
    function->stats.read_bytes += request->bytes;
    pcie_dma_read(&function->pcie.dma, request, nic_now(function->nic));
}

void nic_dma_write(struct nic_function *function, struct pcie_dma_request *request)
{
    function->stats.write_bytes += request->bytes;
    pcie_dma_write(&function->pcie.dma, request, nic_now(function->nic));
}

/* ---- Registers ------------------------------------------------------------------------------- */

uint32_t nic_register_read(struct pcie_function *pcie, uint64_t offset)
{
    const struct nic_function *function = nic_function_of(pcie);
    const struct nic *nic = function->nic;
    const bool vf = nic_is_vf(function);
    switch (offset) {
    case NIC_REG_VERSION: return NIC_VERSION;
    case NIC_REG_FIRMWARE: return vf ? NIC_FIRMWARE_STANDARD : (uint32_t)nic->params.firmware;
    case NIC_REG_FUNCTION: return vf ? 0 : function->idx;
    case NIC_REG_N_FUNCTIONS: return vf ? 1 : nic->params.n_functions;
    case NIC_REG_MAC_LOW: return __builtin_bswap32((uint32_t)(function->mac >> 16));
    case NIC_REG_MAC_HIGH: return __builtin_bswap16((uint16_t)function->mac);
    case NIC_REG_N_QUEUES: return nic->params.n_queues;
    case NIC_REG_N_ARFS: return nic->params.arfs_entries;
    case NIC_REG_N_SWITCH: return vf ? 0 : nic->params.switch_entries;
    case NIC_REG_LINK: return ether_port_up(nic->port);
    case NIC_REG_RATE_GBIT_S:
        return ether_port_connected(nic->port) ? (uint32_t)ether_port_rate_gbit_s(nic->port) : 0;
    case NIC_REG_COMMAND_LOW: return function->command.low;
    default: return 0;
    }
}

static uint16_t queue_at(uint64_t offset)
{
    return (uint16_t)((offset & 0xffffu) / DOORBELL_BYTES);
}

static void ring_doorbell(struct nic_function *function, uint64_t offset, uint32_t value)
{
    uint16_t queue = queue_at(offset);
    function->stats.doorbells++;
    bool exists = queue < function->nic->params.n_queues;
    if (exists && offset < NIC_DOORBELL_CQ(0) && function->sq[queue] != NULL)
        nic_sq_doorbell(function->sq[queue], (uint16_t)value);
    else if (exists && offset >= NIC_DOORBELL_CQ(0) && offset < NIC_DOORBELL_EQ(0) &&
             function->cq[queue] != NULL)
        nic_cq_arm(function->cq[queue], value & NIC_INDEX_24);
    else if (exists && offset >= NIC_DOORBELL_EQ(0) && function->eq[queue] != NULL)
        nic_eq_arm(function, function->eq[queue], value & NIC_INDEX_24);
    else
        function->nic->stats.bad_doorbells++;
}

void nic_register_write(struct pcie_function *pcie, uint64_t offset, uint32_t value)
{
    struct nic_function *function = nic_function_of(pcie);
    if (offset >= NIC_DOORBELL_SQ(0) && offset < NIC_MSIX_TABLE) {
        if (offset % DOORBELL_BYTES == 0)
            ring_doorbell(function, offset, value);
    } else if (offset == NIC_REG_COMMAND_LOW) {
        function->command.low = value;
    } else if (offset == NIC_REG_COMMAND_HIGH) {
        nic_command_start(function, (uint64_t)value << 32 | function->command.low);
    }
}

/* ---- Set-up ---------------------------------------------------------------------------------- */

static void mistake(const struct model *model, struct sim_error_list *errors, const char *key,
                    uint64_t found, const char *expected)
{
    model_mistake(model, errors, ".%s: found %llu, expected %s", key, (unsigned long long)found,
                  expected);
}

/* The addresses of functions are rules of the multi-PF switch, too. */
static void check_switch(const struct model *model, const struct nic_params *params,
                         struct sim_error_list *errors)
{
    const uint32_t own = params->firmware == NIC_FIRMWARE_STANDARD ? 1 : 0;
    const uint32_t n = params->n_functions * (own + params->n_vfs);
    if (params->switch_entries < n)
        model_mistake(model, errors,
                      ".switch_entries: found %u, expected at least %u, one for the address of "
                      "each function",
                      params->switch_entries, n);
}

static void check_params(const struct model *model, const struct nic_params *params,
                         struct sim_error_list *errors)
{
    check_switch(model, params, errors);
    if (params->n_functions == 3)
        mistake(model, errors, "functions", 3, "1, 2 or 4");
    if (params->n_functions * params->pcie.lanes > 16)
        mistake(model, errors, "lanes", params->pcie.lanes, "at most 16 lanes over all functions");
    if ((params->prefetch_blocks & (params->prefetch_blocks - 1)) != 0)
        mistake(model, errors, "wqe_prefetch_blocks", params->prefetch_blocks, "a power of two");
    if (params->pcie.dma.read_tlps_max - 1 < READS_MIN - 1)
        mistake(model, errors, "read_requests_max", params->pcie.dma.read_tlps_max,
                "at least 5, for descriptors beside data; or 0");
    if (params->rx_buffer_bytes < params->mtu_bytes + 14)
        mistake(model, errors, "rx_buffer_bytes", params->rx_buffer_bytes, "room for a packet");
    if (params->tx_buffer_bytes < params->mtu_bytes + 14)
        mistake(model, errors, "tx_buffer_bytes", params->tx_buffer_bytes, "room for a packet");
}

void nic_function_init(struct nic *nic, struct nic_function *function, struct nic_function *pf,
                       uint32_t vf_idx, uint64_t mac)
{
    const struct nic_params *params = &nic->params;
    function->nic = nic;
    function->idx = nic->n_all++;
    function->port = pf != NULL ? pf->port : function->idx;
    function->mac = mac;
    function->active_tail = &function->active_head;
    function->eq = sim_zalloc(params->n_queues, sizeof(*function->eq));
    function->cq = sim_zalloc(params->n_queues, sizeof(*function->cq));
    function->sq = sim_zalloc(params->n_queues, sizeof(*function->sq));
    function->rq = sim_zalloc(params->n_queues, sizeof(*function->rq));
    sim_event_init(&function->command.event, nic_command_event);
    nic_function_setup(function, pf, vf_idx);
    nic->all[function->idx] = function;
    if (params->firmware == NIC_FIRMWARE_STANDARD || nic_is_vf(function)) {
        struct ether_flow key = nic_mac_key(mac);
        nic_flow_set(&nic->rules, &key, (uint16_t)function->idx);
    }
}

static void function_release(struct nic_function *function)
{
    nic_queues_free(function);
    nic_flow_release(&function->flows);
    nic_match_release(&function->matches);
    pcie_function_release(&function->pcie);
    sim_cancel(function->nic->model->sim, &function->command.event);
    sim_cancel(function->nic->model->sim, &function->reset);
    free(function->eq);
    free(function->cq);
    free(function->sq);
    free(function->rq);
}

/* A locally administered address that differs between devices of a run by their names, and leaves
 * the last four bits to functions. */
static uint64_t mac_of(const struct model *model)
{
    struct sim_random random;
    sim_random_init(&random, 0, model->name);
    return UINT64_C(0x02) << 40 | (sim_random_u64(&random) & UINT64_C(0xfffffffff0));
}

static void ports_init(struct model *model, struct sim_error_list *errors)
{
    struct nic *nic = nic_of(model);
    struct nic_params *params = &nic->params;
    pcie_function_ports(model, params->n_functions, &params->pcie, errors);
    snprintf(nic->port_name, sizeof(nic->port_name), "%s.e0", model->name);
    nic->port = model_ports_new(model, &ether_cable, 1);
    *nic->port = (struct ether_port){ .model = model,
                                      .name = nic->port_name,
                                      .rate_gbit_s_max = params->rate_gbit_s,
                                      .receive_latency_ps = params->receive_ps,
                                      .receive = nic_receive_frame,
                                      .retime = nic_retime,
                                      .flow_control = params->flow_control,
                                      .buffer_bytes = params->rx_buffer_bytes,
                                      .mtu_bytes = params->mtu_bytes,
                                      .link = nic_link_changed };
}

static void nic_init(struct model *model, struct sim_error_list *errors)
{
    struct nic *nic = nic_of(model);
    size_t before = errors->n_messages;
    nic->model = model;
    check_params(model, &nic->params, errors);
    ports_init(model, errors);
    if (errors->n_messages != before)
        return;
    nic->writes = sim_pool_shared(model->sim, "nic write", sizeof(struct nic_write));
    nic->chunks = sim_pool_shared(model->sim, "nic chunk", sizeof(struct nic_chunk));
    nic->txs = sim_pool_shared(model->sim, "nic tx", sizeof(struct nic_tx));
    nic->rxs = sim_pool_shared(model->sim, "nic rx", sizeof(struct nic_rx));
    nic->rx_buffers = sim_pool_new(model->sim, "nic rx buffer", nic->params.mtu_bytes + 14);
    nic->sent_tail = &nic->sent_head;
    sim_event_init(&nic->retire, nic_retire_event);
    nic_flow_init(&nic->rules, nic->params.switch_entries);
    nic_rss_init(&nic->rss);
    nic->params.pcie.dma.stamp_every = STAMP_EVERY;
    for (uint32_t i = 0; i < nic->params.n_functions; i++) {
        bool own = nic->params.firmware == NIC_FIRMWARE_STANDARD;
        nic_function_init(nic, &nic->function[i], NULL, 0, mac_of(model) + (own ? i : 0));
    }
    for (uint32_t i = 0; i < nic->params.n_functions && nic->params.n_vfs != 0; i++)
        nic_vfs_init(&nic->function[i], mac_of(model));
    nic->ready = true;
}

static void nic_start(struct model *model)
{
    struct nic *nic = nic_of(model);
    pcie_function_start(model);
    ether_buffer_init(&nic->rx_buffer, nic->port, nic->params.rx_buffer_bytes,
                      nic->params.mtu_bytes);
}

static void nic_release(struct model *model)
{
    struct nic *nic = nic_of(model);
    if (!nic->ready)
        return;
    nic_transmit_release(nic);
    for (uint32_t i = 0; i < nic->n_all; i++)
        function_release(nic->all[i]);
    for (uint32_t i = 0; i < nic->params.n_functions; i++)
        free(nic->function[i].vf);
    nic_flow_release(&nic->rules);
    nic_match_release(&nic->switch_matches);
}

const struct nic_function_stats *nic_function_stats(const struct model *model, unsigned pf)
{
    return &((const struct nic *)model->state)->function[pf].stats;
}

uint32_t nic_mtu_bytes(const struct model *model)
{
    return ((const struct nic *)model->state)->params.mtu_bytes;
}

uint32_t nic_queues(const struct model *model)
{
    return ((const struct nic *)model->state)->params.n_queues;
}

uint64_t nic_function_mac(const struct model *model, unsigned pf)
{
    return ((const struct nic *)model->state)->function[pf].mac;
}

const struct nic_function_stats *nic_vf_stats(const struct model *model, unsigned pf, unsigned vf)
{
    return &((const struct nic *)model->state)->function[pf].vf[vf].stats;
}

uint64_t nic_vf_mac(const struct model *model, unsigned pf, unsigned vf)
{
    return ((const struct nic *)model->state)->function[pf].vf[vf].mac;
}

const struct model_ops nic_ops = {
    .type = "nic.ethernet",
    .help = "an Ethernet NIC with one to four physical functions, each on a PCIe port of its own",
    .state_bytes = sizeof(struct nic),
    .params = nic_params_table,
    .stats = nic_stats_table,
    .init = nic_init,
    .start = nic_start,
    .receive = pcie_function_receive,
    .credit = pcie_function_credit,
    .link_change = pcie_function_link_change,
    .release = nic_release,
};
