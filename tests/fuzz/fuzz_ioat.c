/*
 * Target ioat: a DMA engine of either version, its chains and registers. At the end it is reset (by
 * function, or, version 1.2, by its channels) and copies bytes that lie otherwise in their lines.
 */
#include "hw/ioat_regs.h"
#include "models/ioat/ioat.h"
#include "tests/fuzz/fuzz_world.h"

#define CHANNELS   2u
#define RING_PAGE  16u /* memory: from this page on one of descriptors for each channel, */
#define RING_SLOTS (4096u / IOAT_DESC_BYTES)
#define DATA_PAGE  32u /* then data */
#define COMPLETION (UINT64_C(24) * 4096)

struct ioat_world {
    struct fuzz_world host;
    struct model *ioat;
    bool v1, removed;
    uint16_t count[CHANNELS]; /* 3.2: DMACOUNT that was written last */
};

static struct ioat_world *world_of(struct fuzz_world *host)
{
    return SIM_CONTAINER(host, struct ioat_world, host);
}

static uint64_t register_at(unsigned c, uint32_t reg)
{
    return FUZZ_BAR(0) + IOAT_CHANNEL(c) + reg;
}

static void set(struct ioat_world *w, unsigned c, uint32_t reg, uint32_t value)
{
    fuzz_write32(&w->host, 0, register_at(c, reg), value);
}

static void set64(struct ioat_world *w, unsigned c, uint32_t reg, uint64_t value)
{
    set(w, c, reg, (uint32_t)value);
    set(w, c, reg + 4, (uint32_t)(value >> 32));
}

/* ---- A driver that knows what it does -------------------------------------------------------- */

static void set_up(struct ioat_world *w)
{
    const struct cfg_space *cfg = &ioat_function(w->ioat, 0)->cfg;
    fuzz_set_up_port(&w->host, 0);
    if (w->v1) {
        fuzz_set_config(&w->host, 0, cfg->msi_cap + PCI_MSI_ADDRESS, (uint32_t)FUZZ_MSI);
        fuzz_set_config(&w->host, 0, cfg->msi_cap, (uint32_t)PCI_MSI_CONTROL_ENABLE << 16);
    }
    fuzz_write32(&w->host, 0, FUZZ_BAR(0) + IOAT_GENERAL,
                 (uint32_t)IOAT_INTRCTRL_MASTER_ENABLE << IOAT_INTRCTRL_SHIFT);
    for (unsigned c = 0; c < CHANNELS; c++) {
        set64(w, c, IOAT_CHANCMP, COMPLETION + 64 * c);
        set(w, c, IOAT_CHANCTRL, 0x1d);
        w->count[c] = 0;
    }
    fuzz_world_run(&w->host, 2 * SIM_PS_PER_US);
}

static void put_descriptor(struct ioat_world *w, uint64_t at, const struct ioat_descriptor *d)
{
    fuzz_put(&w->host, at, d, sizeof(*d));
}

/* n descriptors from slot `first` of the channel's page on, of so many bytes each. */
static void put_chain(struct ioat_world *w, unsigned c, unsigned first, unsigned n, uint32_t bytes,
                      uint32_t control)
{
    for (unsigned i = 0; i < n; i++) {
        const uint64_t slot = (first + i) % RING_SLOTS, next = (first + i + 1) % RING_SLOTS;
        const struct ioat_descriptor d = {
            .bytes = bytes,
            .control = control,
            .source = (DATA_PAGE + c) * 4096 + i * 64,
            .destination = (DATA_PAGE + 64) * 4096 + (i % 8) * 4096 + control % 61,
            .next = w->v1 && i + 1 == n ? 0 : (RING_PAGE + c) * 4096 + next * IOAT_DESC_BYTES
        };
        put_descriptor(w, (RING_PAGE + c) * 4096 + slot * IOAT_DESC_BYTES, &d);
    }
}

static void start(struct ioat_world *w, unsigned c, unsigned first, unsigned n)
{
    set64(w, c, w->v1 ? IOAT_V1_CHAINADDR : IOAT_V3_CHAINADDR,
          (RING_PAGE + c) * 4096 + first % RING_SLOTS * IOAT_DESC_BYTES);
    w->count[c] = (uint16_t)n;
    if (w->v1)
        set(w, c, IOAT_V1_CHANCMD, IOAT_CHANCMD_START);
    else
        set(w, c, IOAT_V3_CHANCMD, n << IOAT_V3_DMACOUNT_SHIFT);
}

/* ---- One that does not ----------------------------------------------------------------------- */

/* Slot: a; channel: b; control: x; addresses: y; bytes and next: z. */
static void op_descriptor(struct ioat_world *w, unsigned c, const struct fuzz_op *op)
{
    const struct ioat_descriptor d = {
        .bytes = (uint32_t)op->z & (op->c & 1 ? 0x1fff : 0x3fffff),
        .control = op->c & 2 ? op->x : op->x & 0x3f,
        .source = fuzz_address((uint32_t)op->y) + (op->z >> 24 & 63),
        .destination = fuzz_address((uint32_t)(op->y >> 32)) + (op->z >> 30 & 63),
        .next = op->z >> 60 == 0 ? fuzz_address((uint32_t)(op->z >> 36))
                                 : (RING_PAGE + c) * 4096 + (op->z >> 36) % RING_SLOTS * 64
    };
    put_descriptor(w, (RING_PAGE + c) * 4096 + op->a % RING_SLOTS * IOAT_DESC_BYTES, &d);
}

static void op_command(struct ioat_world *w, unsigned c, const struct fuzz_op *op)
{
    const uint32_t command = op->a < 200 ? 1u << op->a % 6 : op->x & 0xff;
    set(w, c, w->v1 ? IOAT_V1_CHANCMD : IOAT_V3_CHANCMD, command);
}

static void op_count(struct ioat_world *w, unsigned c, const struct fuzz_op *op)
{
    if (op->a < 240)
        w->count[c] = (uint16_t)(w->count[c] + op->a % 9u);
    else
        w->count[c] = (uint16_t)op->x;
    if (w->v1)
        set(w, c, IOAT_V1_CHANCMD, IOAT_CHANCMD_APPEND);
    else
        set(w, c, IOAT_V3_CHANCMD, (uint32_t)w->count[c] << IOAT_V3_DMACOUNT_SHIFT);
}

static void op_address(struct ioat_world *w, unsigned c, const struct fuzz_op *op)
{
    const uint32_t chain = w->v1 ? IOAT_V1_CHAINADDR : IOAT_V3_CHAINADDR;
    const uint64_t address = op->a & 2 ? fuzz_address(op->x)
                                       : (RING_PAGE + c) * 4096 + op->x % RING_SLOTS * 64;
    set64(w, c, op->a & 1 ? IOAT_CHANCMP : chain, address);
}

static void op_register(struct ioat_world *w, unsigned c, const struct fuzz_op *op)
{
    static const uint16_t general[] = { IOAT_GENERAL, IOAT_ATTNSTATUS, IOAT_CBVER,
                                        IOAT_INTRDELAY_WORD, IOAT_DMACAPABILITY };
    static const uint16_t channel[] = { IOAT_CHANCTRL,     IOAT_V3_CHANCMD, IOAT_V3_CHANSTS,
                                        IOAT_V1_CHAINADDR, IOAT_V1_CHANCMD, IOAT_CHANCMP,
                                        IOAT_CDAR,         IOAT_CHANERR,    IOAT_CHANERRMSK,
                                        IOAT_DCACTRL };
    uint64_t at = op->x % 0x4000;
    if (op->a < 64)
        at = general[op->a % SIM_N_ELEMENTS(general)];
    else if (op->a < 224)
        at = IOAT_CHANNEL(c) + channel[op->a % SIM_N_ELEMENTS(channel)] + (op->x & 4);
    fuzz_op_access(&w->host, 0, FUZZ_BAR(0) + at, op);
}

static void op_config(struct ioat_world *w, const struct fuzz_op *op)
{
    const struct cfg_space *cfg = &ioat_function(w->ioat, 0)->cfg;
    const unsigned offset[] = { PCI_COMMAND, PCI_BAR0, cfg->pcie_cap + PCIE_DEVCTL,
                                w->v1 ? cfg->msi_cap : cfg->msix_cap,
                                w->v1 ? cfg->msi_cap + PCI_MSI_MASK : cfg->msix_cap };
    fuzz_set_config(&w->host, 0,
                    op->a < 224 ? offset[op->a % SIM_N_ELEMENTS(offset)] : op->y & 0xffc, op->x);
}

static void set_up_again(struct fuzz_world *host)
{
    set_up(world_of(host));
}

static void op_reset(struct ioat_world *w, const struct fuzz_op *op)
{
    w->removed |= fuzz_op_reset(&w->host, w->ioat, op, set_up_again);
}

enum {
    DESCRIPTOR,
    CHAIN,
    COMMAND,
    COUNT,
    ADDRESS,
    MEMORY,
    TIME,
    REGISTER,
    CONFIG,
    HOST,
    RESET,
    KINDS
};

static void step(struct fuzz_world *host, const struct fuzz_op *op)
{
    struct ioat_world *w = world_of(host);
    const unsigned c = op->b % CHANNELS;
    switch (op->kind % KINDS) {
    case DESCRIPTOR: op_descriptor(w, c, op); break;
    case CHAIN: {
        const unsigned n = 1 + op->c % 16u;
        put_chain(w, c, op->a, n, 1 + (op->x >> 8) % 5000, op->x & 0x1f);
        start(w, c, op->a, n);
        break;
    }
    case COMMAND: op_command(w, c, op); break;
    case COUNT: op_count(w, c, op); break;
    case ADDRESS: op_address(w, c, op); break;
    case MEMORY: fuzz_op_memory(host, op); break;
    case TIME: fuzz_op_time(host, op); break;
    case REGISTER: op_register(w, c, op); break;
    case CONFIG: op_config(w, op); break;
    case HOST: fuzz_op_host(host, op); break;
    default: op_reset(w, op); break;
    }
}

static void invent(struct fuzz_op *op, struct fuzz_random *random, int first)
{
    static const uint8_t kinds[] = { DESCRIPTOR, DESCRIPTOR, CHAIN,   CHAIN, CHAIN, COMMAND,
                                     COUNT,      COUNT,      ADDRESS, TIME,  TIME,  TIME,
                                     MEMORY,     REGISTER,   CONFIG,  HOST,  RESET, COMMAND };
    *op = (struct fuzz_op){ .kind = kinds[fuzz_any(random, SIM_N_ELEMENTS(kinds))],
                            .a = (uint8_t)fuzz_any(random, 256),
                            .b = (uint8_t)fuzz_any(random, 256),
                            .c = (uint8_t)fuzz_any(random, 256),
                            .x = fuzz_any32(random) };
    op->y = (uint64_t)fuzz_any_address(random) << 32 | fuzz_any_address(random);
    op->z = fuzz_any(random, UINT64_C(1) << 52) << 11 | fuzz_any(random, 8192);
    if (!first && op->kind == TIME)
        op->a = (uint8_t)(6 + fuzz_any(random, 9)); /* 64 ns .. 32 us */
}

/* ---- A world --------------------------------------------------------------------------------- */

static struct fuzz_world *open_world(const struct fuzz_op *op)
{
    static const char *const reads[] = { "2", "3", "12", "64" };
    static const char *const ahead[] = { "0", "1", "2", "4" };
    const bool v1 = (op->a & 1) != 0;
    const struct fuzz_setting settings[] = {
        { "version", v1 ? "cb1.2" : "cb3.2" },
        { "device_id", v1 ? "6712" : "28448" },
        { "channels", "2" },
        { "reads_in_flight", reads[op->a >> 1 & 3] },
        { "descriptors_ahead", ahead[op->a >> 3 & 3] },
        { "engine_interval_ns", op->a & 32 ? "0" : "3.75" },
        { "descriptor_start_ns", op->a & 64 ? "0" : "150" },
        { "transfer_bytes_max", op->a & 128 ? "4096" : "1048576" },
        { "completion_timeout_us", "50" },
        { "tx_queue_tlps", op->b & 1 ? "1" : "16" },
        { "read_requests_max", op->b & 2 ? "1" : "0" },
        { "extended_tags", op->b & 4 ? "false" : "true" },
        { NULL, NULL },
    };
    struct ioat_world *w = calloc(1, sizeof(*w));
    w->v1 = v1;
    fuzz_world_open(&w->host);
    w->host.functions = (struct fuzz_functions){ .n_bars = 1,
                                                 .bar_bytes = v1 ? IOAT_BAR_BYTES_V1
                                                                 : IOAT_BAR_BYTES_V3,
                                                 .msix_table = IOAT_MSIX_TABLE,
                                                 .n_vectors = v1 ? 0 : CHANNELS };
    w->ioat = fuzz_world_device(&w->host, &ioat_ops, "ioat", settings);
    fuzz_world_plug(&w->host, w->ioat, 0);
    ioat_ops.start(w->ioat);
    w->host.functions.pcie = ioat_function(w->ioat, 0)->cfg.pcie_cap;
    w->host.functions.msix = ioat_function(w->ioat, 0)->cfg.msix_cap;
    set_up(w);
    FUZZ_ASSERT(fuzz_ask32(&w->host, 0, FUZZ_BAR(0) + IOAT_CBVER) ==
                    (v1 ? IOAT_VERSION_1_2 : IOAT_VERSION_3_2),
                "set-up");
    return &w->host;
}

#define COPY_BYTES 1000u

/* As good as new: bytes that lie otherwise in their lines are copied. */
static void check_copy(struct ioat_world *w, unsigned c)
{
    const uint64_t from = (DATA_PAGE + 8) * 4096 + 5, to = (DATA_PAGE + 16) * 4096 + 40;
    const struct ioat_descriptor d = { .bytes = COPY_BYTES,
                                       .control = IOAT_CONTROL_COMPLETION | IOAT_CONTROL_INTERRUPT,
                                       .source = from,
                                       .destination = to };
    const uint64_t none = 0;
    uint8_t page[COPY_BYTES], got[COPY_BYTES];
    uint64_t done = 0;
    for (unsigned i = 0; i < sizeof(page); i++)
        page[i] = (uint8_t)(i * 7 + i / 64 + c);
    fuzz_put(&w->host, from, page, sizeof(page));
    fuzz_put(&w->host, COMPLETION + 64 * c, &none, sizeof(none));
    put_descriptor(w, (RING_PAGE + c) * 4096, &d);
    start(w, c, 0, 1);
    const uint64_t expected = (RING_PAGE + c) * 4096 | IOAT_CHANSTS_IDLE;
    for (unsigned i = 0; i < 1000 && done != expected; i++) {
        fuzz_world_run(&w->host, SIM_PS_PER_US);
        fuzz_get(&w->host, COMPLETION + 64 * c, &done, sizeof(done));
    }
    FUZZ_ASSERT(done == expected, "channel %u: completion %#llx", c, (unsigned long long)done);
    fuzz_get(&w->host, to, got, sizeof(got));
    FUZZ_ASSERT(memcmp(page, got, sizeof(page)) == 0, "channel %u: other data than copied", c);
}

static void check_world(struct fuzz_world *host)
{
    struct ioat_world *w = world_of(host);
    fuzz_world_run(host, 50 * SIM_PS_PER_US);
    fuzz_function_stop(host, 0);
    fuzz_world_drain(host);
    fuzz_world_check(host);
    if (w->removed)
        return;
    set_up(w);
    for (unsigned c = 0; c < CHANNELS && w->v1; c++) { /* it has no reset by function */
        set(w, c, IOAT_V1_CHANCMD, IOAT_CHANCMD_RESET);
        set(w, c, IOAT_CHANERR, UINT32_MAX);
    }
    fuzz_world_drain(host);
    for (unsigned c = 0; c < CHANNELS; c++)
        check_copy(w, c);
    fuzz_world_drain(host);
    fuzz_world_check(host);
}

static void close_world(struct fuzz_world *host)
{
    struct ioat_world *w = world_of(host);
    model_free(w->ioat);
    fuzz_world_close(host);
    free(w);
}

const struct fuzz_target fuzz_ioat = { "ioat", open_world, step, check_world, close_world, invent };
