/*
 * rdma.adapter: an InfiniBand host channel adapter with one PCIe function and one port.
 *
 * Models: registers, doorbells, the BlueFlame window, MSI-X, function-level reset, surprise
 *   removal. Commands: rdma_command.c; regions and transfers: rdma_memory.c; completions and
 *   events: rdma_cq.c; work queues: rdma_sq.c, rdma_rq.c; states: rdma_qp.c; reliable connections:
 *   rdma_requester.c, rdma_responder.c; packets: rdma_port.c; the wire: ib_link.c.
 * Does not model: virtual functions, several ports, management datagrams (a driver sets the local
 *   identifier), Ethernet as a link layer, unreliable services. All bytes of a message travel
 *   (no payload marks alone).
 * Timing: a register's read is answered register_latency after it came. The rest: the files above.
 * Sources: InfiniBand Architecture Specification 1.3, volume 1; docs/sources.md#rdma;
 *   docs/models/rdma.md.
 */
#include <stdlib.h>
#include <string.h>

#include "models/rdma/rdma_internal.h"

#define PACKET_BYTES_MAX (IB_MTU_BYTES_MAX + 128u)

#define FROM "docs/sources.md#rdma"
static const struct param_desc rdma_params_table[] = {
    PCIE_FUNCTION_PARAMS(struct rdma, params.pcie, FROM, /* lanes */ 16, /* payload */ 512,
                         PROV_ESTIMATE, /* extended tags */ 1, PROV_ESTIMATE, /* queue */ 8,
                         /* credits */ 64, 256, 32, /* register */ 300, /* reads */ 64),
    PARAM("queue_pairs", PARAM_U32, struct rdma, params.n_qps, 1024, 4, RDMA_QPS_MAX, PROV_ESTIMATE,
          FROM, "numbers of queue pairs, those of management too"),
    PARAM("completion_queues", PARAM_U32, struct rdma, params.n_cqs, 1024, 1, RDMA_CQS_MAX,
          PROV_ESTIMATE, FROM, "completion queues"),
    PARAM("event_queues", PARAM_U32, struct rdma, params.n_eqs, 64, 1, RDMA_EQS_MAX, PROV_ESTIMATE,
          FROM, "event queues"),
    PARAM("keys", PARAM_U32, struct rdma, params.n_keys, 4096, 2, 65536, PROV_ESTIMATE, FROM,
          "memory regions, and one"),
    PARAM("protection_domains", PARAM_U32, struct rdma, params.n_pds, 256, 1, 65536, PROV_ESTIMATE,
          FROM, "protection domains"),
    PARAM("interrupt_vectors", PARAM_U32, struct rdma, params.n_vectors, 64, 1, RDMA_MSIX_VECTORS,
          PROV_ESTIMATE, FROM, "of MSI-X"),
    PARAM("rate_gbit_s", PARAM_RATE, struct rdma, params.rate_gbit_s, 100, 1, 1600, PROV_DATASHEET,
          FROM, "data rate of the port: EDR, 4 lanes of 25.78125 GBd with 64b/66b"),
    PARAM("mtu_bytes", PARAM_U32, struct rdma, params.mtu_bytes, 4096, 256, IB_MTU_BYTES_MAX,
          PROV_DATASHEET, FROM, "largest path MTU; a power of two"),
    PARAM("inline_bytes", PARAM_U32, struct rdma, params.inline_bytes, 256, 0, 956, PROV_ESTIMATE,
          FROM, "inline data of a send WQE at most"),
    PARAM("reads_in_flight", PARAM_U32, struct rdma, params.reads, 16, 1, RDMA_READS_MAX,
          PROV_DATASHEET, FROM, "RDMA reads and atomics of a queue pair, each way"),
    PARAM("transmit_latency_ns", PARAM_TIME, struct rdma, params.transmit_ps, 200, 0, 10000,
          PROV_ESTIMATE, FROM, "WQE and payload on the adapter to the packet at the port"),
    PARAM("receive_latency_ns", PARAM_TIME, struct rdma, params.receive_ps, 200, 0, 10000,
          PROV_ESTIMATE, FROM, "a packet's tail at the port to its data at the DMA engine"),
    PARAM("packet_interval_ns", PARAM_TIME, struct rdma, params.packet_ps, 5, 0, 1000,
          PROV_DATASHEET, FROM,
          "between two packets of each direction in the transport engine: 200 million per second"),
    PARAM("command_latency_us", PARAM_TIME, struct rdma, params.command_ps, 10, 0, 10000,
          PROV_ESTIMATE, FROM, "a command's block read to its execution"),
    PARAM("wqe_fetch_blocks", PARAM_U32, struct rdma, params.fetch_blocks, 8, 1, RDMA_FETCH_BLOCKS,
          PROV_ESTIMATE, FROM, "blocks of a send queue in one read"),
    PARAM("wqes_per_queue", PARAM_U32, struct rdma, params.sends_max, 128, 1, 4096, PROV_ESTIMATE,
          FROM, "send WQEs of a queue pair that are under way at once"),
    PARAM("receive_prefetch_wqes", PARAM_U32, struct rdma, params.prefetch_wqes, 16, 1,
          RDMA_PREFETCH_MAX, PROV_ESTIMATE, FROM, "receive WQEs of a queue pair on the adapter"),
    PARAM("translation_entries", PARAM_U32, struct rdma, params.mtt_entries, 2048, 1, 65536,
          PROV_ESTIMATE, FROM, "cached groups of eight page addresses"),
    PARAM("tx_buffer_bytes", PARAM_U32, struct rdma, params.tx_buffer_bytes, 65536, 4096, 1048576,
          PROV_ESTIMATE, FROM, "payload that is read ahead of the wire"),
    PARAM("rx_buffer_bytes", PARAM_U32, struct rdma, params.rx_buffer_bytes, 131072, 4096, 1048576,
          PROV_ESTIMATE, FROM, "the port's receive buffer"),
    { .type = PARAM_END },
};

#define COUNT(NAME, HELP) STAT(#NAME, STAT_COUNTER, struct rdma, stats.NAME, "1", 0, HELP)
static const struct stat_desc rdma_stats_table[] = {
    COUNT(wqes, "send WQEs taken"),
    COUNT(wqe_fetches, "reads of send queues"),
    COUNT(blueflame, "send WQEs that came with the BlueFlame write and took no read"),
    COUNT(receive_wqes, "receive WQEs used"),
    COUNT(receive_fetches, "reads of receive queues"),
    COUNT(record_reads, "reads of doorbell records"),
    COUNT(requests, "request packets sent"),
    COUNT(responses, "response packets sent"),
    COUNT(received, "packets received"),
    COUNT(dropped, "of these, packets for no queue pair or one in the wrong state"),
    COUNT(duplicates, "of these, packets that had been there before"),
    COUNT(acks, "ACK packets sent"),
    COUNT(naks, "NAK packets sent"),
    COUNT(rnr_naks, "RNR NAK packets sent"),
    COUNT(rnr_waits, "times that a requester waited after an RNR NAK"),
    COUNT(retries, "times that a requester went back"),
    COUNT(timeouts, "of these, because of the local ACK timer"),
    COUNT(cqes, "completions written"),
    COUNT(error_cqes, "of these, with a status other than success"),
    COUNT(cq_overruns, "completion queues that overflowed"),
    COUNT(events, "events written"),
    COUNT(lost_events, "events without room in their queue"),
    COUNT(translation_hits, "pages translated by the cache"),
    COUNT(translation_misses, "reads of tables of pages"),
    COUNT(commands, "commands executed"),
    COUNT(failed_commands, "of these, refused"),
    COUNT(offloaded, "NVMe commands that the adapter executed by itself"),
    COUNT(offload_polls, "reads of NVMe completion queues for that"),
    COUNT(bad_doorbells, "doorbells that make no sense; ignored"),
    STAT("interrupts", STAT_COUNTER, struct rdma, function.stats.interrupts, "1", 0,
         "MSI-X messages sent"),
    STAT("unsupported", STAT_COUNTER, struct rdma, function.stats.unsupported, "1", 0,
         "requests to it that it does not support"),
    STAT("function_resets", STAT_COUNTER, struct rdma, function.stats.resets, "1", 0,
         "function-level resets"),
    PCIE_DMA_STATS(struct rdma, function.dma),
    { .kind = STAT_END },
};

/* ---- Reset, removal -------------------------------------------------------------------------- */

static void close_all(struct rdma *rdma)
{
    rdma_command_abort(rdma);
    rdma->lid = 0;
    for (uint32_t i = 0; i < rdma->params.n_qps; i++)
        if (rdma->qp[i] != NULL) {
            rdma_qp_close(rdma->qp[i]);
            rdma->qp[i]->there = false;
        }
    for (uint32_t i = 0; i < rdma->params.n_cqs; i++)
        if (rdma->cq[i].there) {
            rdma_cq_close(&rdma->cq[i]);
            rdma->cq[i].n_users = 0;
        }
    for (uint32_t i = 0; i < rdma->params.n_eqs; i++) {
        rdma->eq[i].there = false;
        rdma->eq[i].n_users = 0;
    }
    for (uint32_t i = 0; i < rdma->params.n_keys; i++) {
        if (rdma->mr[i].there)
            rdma_mtt_forget(rdma, &rdma->mr[i]);
        rdma->mr[i].there = false;
    }
    for (uint32_t i = 0; i < rdma->params.n_pds; i++)
        rdma->pd_users[i] = RDMA_NO_PD;
}

static void function_reset(struct pcie_function *function)
{
    close_all(rdma_of(function));
    pcie_dma_abort(&function->dma);
}

static void function_stop(struct pcie_function *function)
{
    close_all(rdma_of(function));
}

/* ---- Registers ------------------------------------------------------------------------------- */

static uint32_t read_register(struct pcie_function *function, uint64_t offset)
{
    const struct rdma *rdma = rdma_of(function);
    const struct rdma_params *params = &rdma->params;
    switch (offset) {
    case RDMA_REG_VERSION: return RDMA_VERSION;
    case RDMA_REG_N_QPS: return params->n_qps;
    case RDMA_REG_N_CQS: return params->n_cqs;
    case RDMA_REG_N_EQS: return params->n_eqs;
    case RDMA_REG_N_KEYS: return params->n_keys;
    case RDMA_REG_N_PDS: return params->n_pds;
    case RDMA_REG_INLINE_BYTES: return params->inline_bytes;
    case RDMA_REG_READS: return params->reads;
    case RDMA_REG_MTU_BYTES: return params->mtu_bytes;
    case RDMA_REG_LINK: return ib_port_up(rdma->port);
    case RDMA_REG_RATE_GBIT_S: return (uint32_t)params->rate_gbit_s;
    case RDMA_REG_LID: return rdma->lid;
    case RDMA_REG_COMMAND_LOW: return rdma->command.low;
    default: return 0;
    }
}

static void ring_qp(struct rdma *rdma, uint64_t offset, uint32_t value)
{
    struct rdma_qp *qp = rdma_qp_find(rdma, (uint32_t)(offset / 8));
    if (qp == NULL)
        rdma->stats.bad_doorbells++;
    else if (offset % 8 == 0)
        rdma_sq_doorbell(qp, (uint16_t)value);
    else if (qp->state == RDMA_QP_ERR)
        rdma_rq_flush(qp);
}

static void ring_cq(struct rdma *rdma, uint64_t offset, uint32_t value)
{
    const uint64_t number = offset / 8;
    if (offset % 8 == 0 && number < rdma->params.n_cqs && rdma->cq[number].there)
        rdma_cq_arm(&rdma->cq[number], value);
    else
        rdma->stats.bad_doorbells++;
}

static void ring_eq(struct rdma *rdma, uint64_t offset, uint32_t value)
{
    const uint64_t number = offset / 8;
    if (offset % 8 == 0 && number < rdma->params.n_eqs && rdma->eq[number].there)
        rdma_eq_consume(&rdma->eq[number], rdma, value);
    else
        rdma->stats.bad_doorbells++;
}

static void blueflame(struct rdma *rdma, uint64_t offset, uint32_t value)
{
    struct rdma_qp *qp = rdma_qp_find(rdma, (uint32_t)(offset / RDMA_BLUEFLAME_BYTES));
    if (qp != NULL)
        rdma_sq_blueflame(qp, (unsigned)(offset % RDMA_BLUEFLAME_BYTES), value);
    else
        rdma->stats.bad_doorbells++;
}

static void write_register(struct pcie_function *function, uint64_t offset, uint32_t value)
{
    struct rdma *rdma = rdma_of(function);
    if (offset >= RDMA_BLUEFLAME(0) && offset < RDMA_BLUEFLAME(RDMA_QPS_MAX))
        blueflame(rdma, offset - RDMA_BLUEFLAME(0), value);
    else if (offset >= RDMA_DOORBELL_SQ(0) && offset < RDMA_DOORBELL_SQ(RDMA_QPS_MAX))
        ring_qp(rdma, offset - RDMA_DOORBELL_SQ(0), value);
    else if (offset >= RDMA_DOORBELL_CQ(0) && offset < RDMA_DOORBELL_CQ(RDMA_CQS_MAX))
        ring_cq(rdma, offset - RDMA_DOORBELL_CQ(0), value);
    else if (offset >= RDMA_DOORBELL_EQ(0) && offset < RDMA_DOORBELL_EQ(RDMA_EQS_MAX))
        ring_eq(rdma, offset - RDMA_DOORBELL_EQ(0), value);
    else if (offset == RDMA_REG_LID && value <= RDMA_LID_LAST)
        rdma->lid = value;
    else if (offset == RDMA_REG_COMMAND_LOW)
        rdma->command.low = value;
    else if (offset == RDMA_REG_COMMAND_HIGH)
        rdma_command_start(rdma, (uint64_t)value << 32 | rdma->command.low);
}

/* ---- Set-up ---------------------------------------------------------------------------------- */

static void function_init(struct rdma *rdma)
{
    static const struct pcie_function_ops ops = { .reset = function_reset, .stop = function_stop };
    const struct pcie_function_desc desc = {
        .ops = &ops,
        .params = &rdma->params.pcie,
        .identity = { .vendor_id = RDMA_VENDOR_ID,
                      .device_id = RDMA_DEVICE_ID,
                      .subsystem_vendor_id = RDMA_VENDOR_ID,
                      .class_code = RDMA_CLASS_CODE },
        .function_reset = true,
        .n_vectors = (uint16_t)rdma->params.n_vectors,
        .msix_table = RDMA_MSIX_TABLE,
        .msix_pba = RDMA_MSIX_PBA,
        .bar = { { RDMA_BAR_BYTES, CFG_BAR_64 | CFG_BAR_PREFETCH, read_register, write_register,
                   .by_bytes = false } }
    };
    pcie_function_init(&rdma->function, rdma->model, &desc);
}

static void tables_init(struct rdma *rdma)
{
    const struct rdma_params *params = &rdma->params;
    struct sim *sim = rdma->model->sim;
    rdma->packets = ib_packet_pool(sim);
    rdma->pieces = rdma_pieces(sim);
    rdma->posts = sim_pool_shared(sim, "rdma entry", sizeof(struct rdma_post));
    rdma->sends = sim_pool_shared(sim, "rdma send", sizeof(struct rdma_send));
    rdma->answer_pool = sim_pool_shared(sim, "rdma answer", sizeof(struct rdma_answer));
    rdma->txs = sim_pool_shared(sim, "rdma tx", sizeof(struct rdma_tx));
    rdma->rxs = sim_pool_shared(sim, "rdma rx", sizeof(struct rdma_rx));
    rdma->qp = sim_zalloc(params->n_qps, sizeof(*rdma->qp));
    rdma->cq = sim_zalloc(params->n_cqs, sizeof(*rdma->cq));
    rdma->eq = sim_zalloc(params->n_eqs, sizeof(*rdma->eq));
    rdma->mr = sim_zalloc(params->n_keys, sizeof(*rdma->mr));
    rdma->mtt = sim_zalloc(params->mtt_entries, sizeof(*rdma->mtt));
    rdma->pd_users = sim_zalloc(params->n_pds, sizeof(*rdma->pd_users));
    for (uint32_t i = 0; i < params->n_pds; i++)
        rdma->pd_users[i] = RDMA_NO_PD;
}

static void rdma_init(struct model *model, struct sim_error_list *errors)
{
    struct rdma *rdma = model->state;
    const struct rdma_params *params = &rdma->params;
    const size_t before = errors->n_messages;
    rdma->model = model;
    pcie_function_power_of_two(model, "mtu_bytes", params->mtu_bytes, errors);
    pcie_function_ports(model, 1, &params->pcie, errors);
    rdma_port_init(rdma);
    if (params->rx_buffer_bytes < params->mtu_bytes + PACKET_BYTES_MAX - IB_MTU_BYTES_MAX)
        model_mistake(model, errors,
                      ".rx_buffer_bytes: found %u, expected room for a packet: mtu_bytes and %u",
                      params->rx_buffer_bytes, PACKET_BYTES_MAX - IB_MTU_BYTES_MAX);
    if (errors->n_messages != before)
        return;
    tables_init(rdma);
    rdma_command_init(rdma);
    function_init(rdma);
    rdma->initialised = true;
}

static void rdma_release(struct model *model)
{
    struct rdma *rdma = model->state;
    if (!rdma->initialised)
        return;
    rdma_command_abort(rdma);
    sim_cancel(model->sim, &rdma->tx_turn);
    pcie_function_release(&rdma->function);
    for (uint32_t i = 0; i < rdma->params.n_qps; i++)
        if (rdma->qp[i] != NULL) {
            rdma_qp_close(rdma->qp[i]);
            rdma_offload_release(rdma->qp[i]);
            free(rdma->qp[i]);
        }
    free(rdma->qp);
    free(rdma->cq);
    free(rdma->eq);
    free(rdma->mr);
    free(rdma->mtt);
    free(rdma->pd_users);
}

const struct rdma_stats *rdma_stats(const struct model *model)
{
    return &((const struct rdma *)model->state)->stats;
}

struct rdma_objects rdma_objects_max(const struct model *model)
{
    const struct rdma_params *params = &((const struct rdma *)model->state)->params;
    return (struct rdma_objects){ .queue_pairs = params->n_qps - RDMA_QP_FIRST,
                                  .completion_queues = params->n_cqs,
                                  .regions = params->n_keys - 1,
                                  .protection_domains = params->n_pds };
}

uint32_t rdma_inline_bytes(const struct model *model)
{
    return ((const struct rdma *)model->state)->params.inline_bytes;
}

const struct model_ops rdma_ops = {
    .type = "rdma.adapter",
    .help = "an InfiniBand adapter: reliable connections with RDMA",
    .state_bytes = sizeof(struct rdma),
    .params = rdma_params_table,
    .stats = rdma_stats_table,
    .init = rdma_init,
    .start = pcie_function_start,
    .receive = pcie_function_receive,
    .credit = pcie_function_credit,
    .link_change = pcie_function_link_change,
    .release = rdma_release,
};
