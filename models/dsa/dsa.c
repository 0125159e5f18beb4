/*
 * dsa.accelerator: Intel Data Streaming Accelerator, as in Sapphire Rapids.
 *
 * Models: one function, integrated into a root complex or on a port; registers (dsa_registers.c),
 *   commands (dsa_command.c), portals (dsa_portal.c), groups, engines and batches (dsa_dispatch.c),
 *   memory moves (dsa_move.c), completion records, interrupts and errors (dsa_complete.c); MSI-X;
 *   function-level reset.
 * Does not model: operations other than no-op, batch, drain and memory move; PASIDs, address
 *   translation services and page requests; message store, event log, performance monitors; virtual
 *   devices.
 * Timing: see dsa_dispatch.c and dsa_move.c. Alone, a move of one line takes
 *   descriptor + round trip of a read + a write
 *   from its portal to its last byte; the record follows as another write.
 * Sources: Intel Data Streaming Accelerator Architecture Specification (341204);
 *   docs/sources.md#dsa.
 */
#include <stdlib.h>
#include <string.h>

#include "models/dsa/dsa_internal.h"

#define SOURCE "docs/sources.md#dsa"
#define DSA_PARAM(KEY, TYPE, FIELD, DEF, LO, HI, PROV, HELP) \
    PARAM(KEY, TYPE, struct dsa_device, params.FIELD, DEF, LO, HI, PROV, SOURCE, HELP)

static const struct param_desc dsa_params_table[] = {
    PCIE_FUNCTION_PARAMS(struct dsa_device, params.pcie, SOURCE,
                         /* lanes */ 16, /* payload */ 512, PROV_ESTIMATE, /* extended tags */ 1,
                         PROV_ESTIMATE, /* queue */ 16, /* credits */ 64, 512, 64,
                         /* register */ 20, /* reads */ 0),
    DSA_PARAM("work_queues", PARAM_U32, queues, 8, 1, DSA_QUEUES_MAX, PROV_DATASHEET,
              "work queues"),
    DSA_PARAM("queue_entries", PARAM_U32, entries, 128, 1, 1024, PROV_DATASHEET,
              "places for descriptors, of all work queues together"),
    DSA_PARAM("groups", PARAM_U32, groups, 4, 1, DSA_GROUPS_MAX, PROV_DATASHEET,
              "groups of work queues and engines"),
    DSA_PARAM("engines", PARAM_U32, engines, 4, 1, DSA_ENGINES_MAX, PROV_DATASHEET, "engines"),
    DSA_PARAM("read_buffers", PARAM_U32, read_buffers, 96, 1, DSA_BUFFERS_MAX, PROV_DATASHEET,
              "lines read or being read that are not written yet, of all engines"),
    DSA_PARAM("batch_log2", PARAM_U32, batch_log2, 10, 1, 15, PROV_DATASHEET,
              "log2 of the most descriptors of a batch"),
    DSA_PARAM("transfer_log2", PARAM_U32, transfer_log2, 31, 6, 31, PROV_DATASHEET,
              "log2 of the longest move"),
    DSA_PARAM("engine_descriptors", PARAM_U32, engine_descriptors, 8, 1, DSA_WORKS_MAX,
              PROV_ESTIMATE, "descriptors under way in an engine"),
    DSA_PARAM("descriptor_ns", PARAM_TIME, descriptor_ps, 40, 0, 1000, PROV_ESTIMATE,
              "descriptor out of its queue or batch to its first request"),
    DSA_PARAM("descriptor_interval_ns", PARAM_TIME, interval_ps, 10, 0, 1000, PROV_ESTIMATE,
              "between descriptors that an engine begins"),
    DSA_PARAM("read_interval_ns", PARAM_TIME, read_interval_ps, 1, 0, 100, PROV_ESTIMATE,
              "between reads of lines, of all engines together: a clock of its way to the fabric"),
    { .type = PARAM_END },
};

#define DSA_STAT(NAME, KIND, FIELD, UNIT, HELP) \
    STAT(NAME, KIND, struct dsa_device, FIELD, UNIT, 0, HELP)
static const struct stat_desc dsa_stats_table[] = {
    PCIE_DMA_STATS(struct dsa_device, function.dma),
    DSA_STAT("descriptors", STAT_COUNTER, stats.descriptors, "1",
             "descriptors that have ended, those of batches included"),
    DSA_STAT("batches", STAT_COUNTER, stats.batches, "1", "batches that have ended"),
    DSA_STAT("moved_bytes", STAT_COUNTER, stats.bytes, "bytes", "bytes moved"),
    DSA_STAT("failed", STAT_COUNTER, stats.failed, "1", "descriptors that ended with an error"),
    DSA_STAT("aborted", STAT_COUNTER, stats.aborted, "1",
             "descriptors dropped or ended without a record"),
    DSA_STAT("retries", STAT_COUNTER, stats.retries, "1",
             "deferrable writes to portals that were refused"),
    DSA_STAT("dropped", STAT_COUNTER, stats.dropped, "1",
             "posted writes to portals that were lost"),
    DSA_STAT("buffer_waits", STAT_COUNTER, stats.buffer_waits, "1",
             "times that moves stopped for want of a read buffer"),
    DSA_STAT("occupancy_max", STAT_MAX, stats.occupancy_max, "1",
             "most descriptors in one work queue"),
    DSA_STAT("buffers_max", STAT_MAX, stats.buffers_max, "1", "most read buffers in use"),
    DSA_STAT("interrupts", STAT_COUNTER, function.stats.interrupts, "1", "MSI-X messages sent"),
    DSA_STAT("unsupported", STAT_COUNTER, function.stats.unsupported, "1",
             "requests to it that it does not support"),
    DSA_STAT("resets", STAT_COUNTER, function.stats.resets, "1", "function-level resets"),
    { .kind = STAT_END },
};

/* Bus Master Enable is clear: what is under way ends here, all of it. */
static void stop(struct dsa_device *dsa)
{
    dsa->dispatching = true; /* nothing begins meanwhile */
    for (uint32_t i = 0; i < dsa->params.queues; i++)
        dsa_queue_abort(dsa, &dsa->queue[i]);
    pcie_dma_abort(&dsa->function.dma);
    dsa_dispatch_reset(dsa);
    dsa->dispatching = false;
}

static void function_reset(struct pcie_function *function)
{
    struct dsa_device *dsa = dsa_of(function);
    dsa->command = 0;
    stop(dsa);
    dsa_registers_reset(dsa, DSA_RESET_FUNCTION);
}

static void function_stop(struct pcie_function *function)
{
    dsa_of(function)->command = 0;
    stop(dsa_of(function));
}

static void dsa_init(struct model *model, struct sim_error_list *errors)
{
    static const struct pcie_function_ops ops = { .reset = function_reset, .stop = function_stop };
    struct dsa_device *dsa = model->state;
    const size_t before = errors->n_messages;
    uint64_t portals = DSA_PORTAL_BYTES * DSA_PORTALS_OF_WQ;
    dsa->model = model;
    pcie_function_ports(model, 1, &dsa->params.pcie, errors);
    if (dsa->params.entries < dsa->params.queues)
        model_mistake(model, errors,
                      ".queue_entries: found %u, expected at least one for each of %u work_queues",
                      dsa->params.entries, dsa->params.queues);
    if (errors->n_messages != before)
        return;
    while (portals < (uint64_t)DSA_PORTAL_BYTES * DSA_PORTALS_OF_WQ * dsa->params.queues)
        portals *= 2;
    const struct pcie_function_desc desc = {
        .ops = &ops,
        .params = &dsa->params.pcie,
        .identity = { .vendor_id = DSA_VENDOR_ID,
                      .device_id = DSA_DEVICE_ID,
                      .subsystem_vendor_id = DSA_VENDOR_ID,
                      .class_code = DSA_CLASS },
        .function_reset = true,
        .n_vectors = DSA_VECTORS,
        .msix_bar = DSA_BAR_REGISTERS,
        .msix_table = DSA_MSIX_TABLE,
        .msix_pba = DSA_MSIX_PBA,
        .bar = { [DSA_BAR_REGISTERS] = { DSA_REGISTERS_BYTES, CFG_BAR_64, dsa_register_read,
                                         dsa_register_write, .by_bytes = false },
                 [DSA_BAR_PORTALS] = { portals, CFG_BAR_64 | CFG_BAR_PREFETCH,
                                       .request = dsa_portal_request, .deferrable = true } }
    };
    pcie_function_init(&dsa->function, model, &desc);
    dsa_dispatch_init(dsa);
    dsa_move_init(dsa);
    dsa_registers_reset(dsa, DSA_RESET_COLD);
}

static void dsa_release(struct model *model)
{
    struct dsa_device *dsa = model->state;
    dsa_dispatch_release(dsa);
    free(dsa->units);
    pcie_function_release(&dsa->function);
}

unsigned dsa_work_queues(const struct model *model)
{
    return ((const struct dsa_device *)model->state)->params.queues;
}

const struct model_ops dsa_ops = {
    .type = "dsa.accelerator",
    .help = "copy engine with work queues that software writes descriptors into (Intel DSA)",
    .state_bytes = sizeof(struct dsa_device),
    .params = dsa_params_table,
    .stats = dsa_stats_table,
    .init = dsa_init,
    .start = pcie_function_start,
    .receive = pcie_function_receive,
    .credit = pcie_function_credit,
    .link_change = pcie_function_link_change,
    .release = dsa_release,
};
