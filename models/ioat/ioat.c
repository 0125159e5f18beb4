/*
 * ioat.engine: Intel's DMA engine of chipsets and processors (I/OAT).
 *
 * Models: parameters, statistics, functions. Registers and interrupts: ioat_registers.c; chains:
 *   ioat_channel.c; data: ioat_data.c.
 * Does not model: operations other than copies, power states.
 * Timing: in the files above. Its memory accesses pass the root complex that it is part of, like
 *   those of any integrated function; whether writes allocate in a cache is the memory system's.
 * Sources: Intel 5000X chipset MCH data sheet (313070); Xeon E7 v2 data sheet, volume two (329595),
 *   14.5; docs/sources.md#ioat; docs/models/ioat.md.
 */
#include "models/ioat/ioat.h"

#include <stdlib.h>

#include "models/ioat/ioat_internal.h"

#define DEVICE_ID_MAX 65534u
#define SOURCE        "docs/sources.md#ioat"
#define IOAT_PARAM(KEY, TYPE, FIELD, DEF, LO, HI, PROV, HELP) \
    PARAM(KEY, TYPE, struct ioat_engine, params.FIELD, DEF, LO, HI, PROV, SOURCE, HELP)

static const char *const version_names[] = { "cb1.2", "cb3.2", NULL };

static const struct param_desc ioat_params_table[] = {
    PCIE_FUNCTION_PARAMS(struct ioat_engine, params.pcie, SOURCE, /* lanes */ 8,
                         /* payload */ 128, PROV_ESTIMATE, /* extended tags */ 1, PROV_ESTIMATE,
                         /* queue */ 8, /* credits */ 32, 128, 16, /* register */ 20,
                         /* reads */ 0),
    PARAM_ONE_OF("version", struct ioat_engine, params.version, IOAT_1_2, version_names,
                 PROV_DATASHEET, SOURCE, "of the registers (CBVER)"),
    IOAT_PARAM("device_id", PARAM_U32, device_id, IOAT_DEVICE_ID_5000, 1, DEVICE_ID_MAX,
               PROV_DATASHEET,
               "PCI device of function 0; those of others follow, but for 2021h (Skylake-SP)"),
    IOAT_PARAM("functions", PARAM_U32, n_functions, 1, 1, IOAT_FUNCTIONS_MAX, PROV_DATASHEET,
               "PCI functions"),
    IOAT_PARAM("channels", PARAM_U32, n_channels, 4, 1, IOAT_CHANNELS_MAX, PROV_DATASHEET,
               "of each function (CHANCNT); version 1.2 is limited to 7 by its BAR"),
    IOAT_PARAM("transfer_bytes_max", PARAM_BYTES, transfer_bytes_max, 1048576, 4096, 1073741824,
               PROV_ESTIMATE, "of a descriptor (XFERCAP); a power of two"),
    IOAT_PARAM("address_bits", PARAM_U32, address_bits, 40, 32, 52, PROV_DATASHEET,
               "of memory addresses; others are an error"),
    IOAT_PARAM("reads_in_flight", PARAM_U32, reads_in_flight, 12, 2, IOAT_UNITS_MAX, PROV_ESTIMATE,
               "lines of 64 bytes per channel, from a read's issue until its data go out"),
    IOAT_PARAM("descriptors_ahead", PARAM_U32, descriptors_ahead, 1, 0, IOAT_AHEAD_MAX,
               PROV_ESTIMATE, "fetched before their turn"),
    IOAT_PARAM("engine_interval_ns", PARAM_TIME, engine_interval_ps, 3.75, 0, 100, PROV_ESTIMATE,
               "between starts of lines of all channels, read or written: a clock of the hub"),
    IOAT_PARAM("descriptor_start_ns", PARAM_TIME, descriptor_start_ps, 150, 0, 2000, PROV_ESTIMATE,
               "descriptor here, and reads of the one before issued, to its first read"),
    { .type = PARAM_END },
};

#define COUNT(NAME, FIELD, UNIT, HELP) \
    STAT(NAME, STAT_COUNTER, struct ioat_engine, stats.FIELD, UNIT, 0, HELP)
static const struct stat_desc ioat_stats_table[] = {
    COUNT("descriptors", descriptors, "1", "descriptors that were done"),
    COUNT("bytes", bytes, "bytes", "copied"),
    COUNT("read_lines", read_lines, "1", "cache lines read"),
    COUNT("write_lines", write_lines, "1", "writes of a cache line or a part of it"),
    COUNT("descriptor_fetches", fetches, "1", "reads of descriptors"),
    COUNT("completions", completions, "1", "completions written"),
    COUNT("steered_writes", steered, "1", "of data and completions, to a CPU's cache (DCA)"),
    COUNT("fences", fences, "1", "descriptors with a fence"),
    COUNT("errors", errors, "1", "times that a channel halted on an error"),
    COUNT("bad_commands", bad_commands, "1", "commands that make no sense"),
    COUNT("channel_resets", resets, "1", "by command"),
    STAT("interrupts", STAT_COUNTER, struct ioat_engine, func[0].function.stats.interrupts, "1", 0,
         "messages sent by function 0"),
    STAT("unsupported", STAT_COUNTER, struct ioat_engine, func[0].function.stats.unsupported, "1",
         0, "requests to it that it does not support"),
    STAT_BOUND_ONLY("engine_busy_ps", struct ioat_engine, stats.engine.ps, "ps",
                    "time that the read and write engine was busy", stats.engine_peak),
    PCIE_DMA_STATS(struct ioat_engine, func[0].function.dma),
    { .kind = STAT_END },
};

/* ---- Functions ------------------------------------------------------------------------------- */

static struct ioat_func *func_of(struct pcie_function *function)
{
    return SIM_CONTAINER(function, struct ioat_func, function);
}

static void each_channel(struct pcie_function *function, void (*fn)(struct ioat_channel *))
{
    struct ioat_func *func = func_of(function);
    for (uint32_t i = 0; i < func->engine->params.n_channels; i++)
        fn(&func->channel[i]);
}

/* Function-level reset: what is under way ends here, before registers are as at power-on. */
static void function_reset(struct pcie_function *function)
{
    struct ioat_func *func = func_of(function);
    each_channel(function, ioat_channel_gone);
    pcie_dma_abort(&function->dma);
    each_channel(function, ioat_channel_reset);
    func->attention = 0;
    func->delay_us = 0;
    func->general = func->interrupt_control = 0;
    func->raised = false;
}

static void function_stop(struct pcie_function *function)
{
    each_channel(function, ioat_channel_gone);
}

uint16_t ioat_device_id(const struct model *model, unsigned n)
{
    const struct ioat_params *params = &((const struct ioat_engine *)model->state)->params;
    return (uint16_t)(params->device_id + (params->device_id != IOAT_DEVICE_ID_SKX ? n : 0));
}

static void function_init(struct ioat_engine *engine, unsigned n)
{
    static const struct pcie_function_ops ops = { .reset = function_reset, .stop = function_stop };
    const struct ioat_params *params = &engine->params;
    const bool v1 = ioat_is_v1(engine);
    struct ioat_func *func = &engine->func[n];
    const struct pcie_function_desc desc = {
        .ops = &ops,
        .params = &params->pcie,
        .identity = { .vendor_id = IOAT_VENDOR_ID,
                      .device_id = ioat_device_id(engine->model, n),
                      .subsystem_vendor_id = IOAT_VENDOR_ID,
                      .class_code = IOAT_CLASS,
                      .multi_function = params->n_functions > 1 },
        .number = (uint8_t)n,
        .function_reset = !v1,
        .msi = v1,
        .n_vectors = v1 ? 0 : (uint16_t)params->n_channels,
        .msix_table = IOAT_MSIX_TABLE,
        .msix_pba = IOAT_MSIX_PBA,
        .bar = { { v1 ? IOAT_BAR_BYTES_V1 : IOAT_BAR_BYTES_V3, CFG_BAR_64, ioat_register_read,
                   ioat_register_write, .by_bytes = true } },
    };
    func->engine = engine;
    func->channel = sim_zalloc(params->n_channels, sizeof(*func->channel));
    for (uint32_t i = 0; i < params->n_channels; i++)
        ioat_channel_init(&func->channel[i], func, i);
    pcie_function_init(&func->function, engine->model, &desc);
}

struct pcie_function *ioat_function(struct model *model, unsigned n)
{
    struct ioat_engine *engine = model->state;
    return n < engine->params.n_functions ? &engine->func[n].function : NULL;
}

unsigned ioat_functions(const struct model *model)
{
    return ((const struct ioat_engine *)model->state)->params.n_functions;
}

unsigned ioat_channels(const struct model *model)
{
    return ((const struct ioat_engine *)model->state)->params.n_channels;
}

bool ioat_delays_interrupts(const struct model *model)
{
    return !ioat_is_v1(model->state);
}

/* ---- Set-up ---------------------------------------------------------------------------------- */

static void ioat_init(struct model *model, struct sim_error_list *errors)
{
    struct ioat_engine *engine = model->state;
    const struct ioat_params *params = &engine->params;
    const size_t before = errors->n_messages;
    engine->model = model;
    pcie_function_power_of_two(model, "transfer_bytes_max", params->transfer_bytes_max, errors);
    if (ioat_is_v1(engine) && IOAT_CHANNEL(params->n_channels) > IOAT_BAR_BYTES_V1)
        model_mistake(model, errors, ".channels: found %u, expected at most %u with version 1.2",
                      params->n_channels, IOAT_BAR_BYTES_V1 / IOAT_CHANNEL_BYTES - 1);
    if (params->device_id + params->n_functions - 1 > DEVICE_ID_MAX)
        model_mistake(model, errors, ".device_id: found %u, expected at most %u with %u functions",
                      params->device_id, DEVICE_ID_MAX + 1 - params->n_functions,
                      params->n_functions);
    pcie_function_ports(model, 1, &params->pcie, errors);
    if (errors->n_messages != before)
        return;
    for (unsigned i = 0; i < params->n_functions; i++)
        function_init(engine, i);
}

static void ioat_release(struct model *model)
{
    struct ioat_engine *engine = model->state;
    for (unsigned n = 0; n < IOAT_FUNCTIONS_MAX; n++) {
        struct ioat_func *func = &engine->func[n];
        for (uint32_t i = 0; func->channel != NULL && i < engine->params.n_channels; i++)
            ioat_channel_release(&func->channel[i]);
        free(func->channel);
        pcie_function_release(&func->function);
    }
}

static void ioat_settle(struct model *model)
{
    struct ioat_engine *engine = model->state;
    const sim_time now_ps = sim_now(model->sim);
    stat_busy_settle(&engine->stats.engine, SIM_MAX(engine->free_ps, now_ps) - now_ps);
    engine->stats.engine_peak.per_s = (double)SIM_PS_PER_S;
}

const struct model_ops ioat_ops = {
    .type = "ioat.engine",
    .help = "a DMA engine that copies memory (I/OAT)",
    .state_bytes = sizeof(struct ioat_engine),
    .params = ioat_params_table,
    .stats = ioat_stats_table,
    .init = ioat_init,
    .start = pcie_function_start,
    .receive = pcie_function_receive,
    .credit = pcie_function_credit,
    .link_change = pcie_function_link_change,
    .settle = ioat_settle,
    .release = ioat_release,
};
