/*
 * Target dsa: a DSA with its registers, tables of groups and queues, commands, portals,
 * descriptors, batches and completion records. A device that has nothing to do any more holds
 * nothing: no descriptor, batch, read buffer or command. At the end it is reset by function, and
 * both kinds of queues and a batch copy a few lines.
 */
#include "hw/dsa_regs.h"
#include "models/dsa/dsa.h"
#include "models/dsa/dsa_internal.h"
#include "tests/fuzz/fuzz_world.h"

#define QUEUES      4u /* queue 2k: dedicated; 2k + 1: shared */
#define GROUPS      2u
#define LIST_PAGE   16u /* memory: two pages of descriptors for batches, */
#define LIST_SLOTS  (2 * 4096u / DSA_DESCRIPTOR_BYTES)
#define RECORD_PAGE 20u /* one of records, */
#define RECORDS     (4096u / DSA_RECORD_BYTES)
#define DATA_PAGE   32u /* then data */
#define VECTORS     6u  /* that are set up */
#define QUIET_EVENTS \
    UINT64_C(20000) /* within which a device that is left alone has mostly finished */

struct dsa_world {
    struct fuzz_world host;
    struct model *dsa;
    uint32_t batch_log2; /* the longest batch */
    bool removed;
};

static struct dsa_world *world_of(struct fuzz_world *host)
{
    return SIM_CONTAINER(host, struct dsa_world, host);
}

static void set(struct dsa_world *w, uint64_t offset, uint32_t value)
{
    fuzz_write32(&w->host, 0, FUZZ_BAR(0) + offset, value);
}

static uint32_t get(struct dsa_world *w, uint64_t offset)
{
    return fuzz_ask32(&w->host, 0, FUZZ_BAR(0) + offset);
}

static void command(struct dsa_world *w, enum dsa_command code, uint32_t operand)
{
    set(w, DSA_CMD, operand | (uint32_t)code << DSA_CMD_SHIFT);
}

static uint64_t table_of_group(unsigned g)
{
    return DSA_TABLE_GROUPS + g % GROUPS * DSA_GRPCFG_BYTES;
}

static uint64_t table_of_queue(unsigned q)
{
    return DSA_TABLE_QUEUES + q % QUEUES * DSA_WQCFG_BYTES;
}

/* ---- A driver that knows what it does -------------------------------------------------------- */

static void set_up(struct dsa_world *w)
{
    fuzz_set_up_port(&w->host, 0);
    fuzz_world_run(&w->host, 2 * SIM_PS_PER_US);
}

/* Queues and engines into groups by the masks, and all that is configured is enabled. */
static void bring_up(struct dsa_world *w, uint32_t entries, uint32_t queues, uint32_t engines,
                     uint32_t priorities)
{
    for (unsigned q = 0; q < QUEUES; q++) {
        const bool dedicated = q % 2 == 0;
        const uint32_t priority = 1 + (priorities >> 4 * q) % 15;
        const uint64_t at = table_of_queue(q);
        set(w, at + DSA_WQCFG_SIZE, entries);
        set(w, at + DSA_WQCFG_THRESHOLD, dedicated ? 0 : 1 + entries / 2);
        set(w, at + DSA_WQCFG_MODE,
            (dedicated ? DSA_WQCFG_DEDICATED : 0) | priority << DSA_WQCFG_PRIORITY_SHIFT);
        set(w, at + DSA_WQCFG_LIMITS, 13u | w->batch_log2 << DSA_WQCFG_BATCH_SHIFT);
    }
    for (unsigned g = 0; g < GROUPS; g++) { /* what the first group has not, the second has */
        set(w, table_of_group(g) + DSA_GRPCFG_QUEUES, (g == 0 ? queues : ~queues) & 0xf);
        set(w, table_of_group(g) + DSA_GRPCFG_ENGINES, g == 0 ? engines : engines == 1 ? 2 : 0);
    }
    command(w, DSA_CMD_ENABLE_DEVICE, 0);
    for (unsigned q = 0; q < QUEUES; q++)
        command(w, DSA_CMD_ENABLE_WQ, q);
}

static struct dsa_descriptor descriptor_of(enum dsa_operation operation, uint32_t flags,
                                           unsigned record)
{
    return (struct dsa_descriptor){
        .flags_operation = flags | DSA_FLAG_RECORD_VALID | DSA_FLAG_RECORD |
                           (uint32_t)operation << DSA_OPERATION_SHIFT,
        .record = RECORD_PAGE * 4096 + record % RECORDS * DSA_RECORD_BYTES,
    };
}

/* Within the pages of data; both ranges overlap now and then. */
static struct dsa_descriptor move_of(const struct fuzz_op *op, unsigned record)
{
    struct dsa_descriptor d = descriptor_of(DSA_OP_MOVE, op->x & 7 ? 0 : DSA_FLAG_INTERRUPT,
                                            record);
    d.bytes = 1 + (op->x >> 3) % (op->c & 1 ? 200 : 8192);
    d.source = DATA_PAGE * 4096 + op->y % (32 * 4096);
    d.destination = op->c & 2 ? d.source + (op->y >> 32) % 300
                              : (DATA_PAGE + 40) * 4096 + (op->y >> 32) % (32 * 4096);
    d.interrupt_handle = (uint16_t)(op->a % VECTORS);
    return d;
}

static void submit(struct dsa_world *w, unsigned q, bool posted, bool limited,
                   const struct dsa_descriptor *d)
{
    const uint64_t portal = FUZZ_BAR_2(0) +
                            DSA_PORTAL(q, limited ? DSA_PORTAL_LIMITED : DSA_PORTAL_UNLIMITED);
    if (posted)
        fuzz_write(&w->host, 0, portal, d, sizeof(*d));
    else
        fuzz_enqueue(&w->host, 0, portal, d, sizeof(*d));
}

static void put_slot(struct dsa_world *w, unsigned slot, const struct dsa_descriptor *d)
{
    fuzz_put(&w->host, LIST_PAGE * 4096 + slot % LIST_SLOTS * DSA_DESCRIPTOR_BYTES, d, sizeof(*d));
}

/* n descriptors of a batch, with fences. */
static void put_list(struct dsa_world *w, unsigned first, unsigned n, const struct fuzz_op *op)
{
    for (unsigned i = 0; i < n; i++) {
        struct fuzz_op one = *op;
        one.x = op->x + 8 * 173 * i;
        one.y = op->y + ((uint64_t)i * 4099 << 32) + i * 611;
        struct dsa_descriptor d = move_of(&one, first + i);
        if (op->z >> i % 32 & 1)
            d.flags_operation |= DSA_FLAG_FENCE;
        if ((op->z >> 32) % 64 == i)
            d.bytes = 0; /* it fails */
        put_slot(w, first + i, &d);
    }
}

/* ---- One that does not ----------------------------------------------------------------------- */

/* a: operation; flags: x; addresses: y; size and record: z. */
static struct dsa_descriptor any_descriptor(const struct fuzz_op *op)
{
    static const uint8_t operations[] = { DSA_OP_MOVE,  DSA_OP_MOVE,  DSA_OP_NOOP, DSA_OP_MOVE,
                                          DSA_OP_BATCH, DSA_OP_DRAIN, DSA_OP_MOVE, DSA_OP_FILL };
    const uint8_t operation = operations[op->a % SIM_N_ELEMENTS(operations)];
    const uint32_t flags = op->x & 0x300 ? DSA_FLAG_RECORD_VALID | (op->x & DSA_FLAG_FENCE) |
                                               (op->x & (DSA_FLAG_RECORD | DSA_FLAG_INTERRUPT))
                                         : op->x >> 8;
    const bool batch = operation == DSA_OP_BATCH,
               empty = operation == DSA_OP_DRAIN || operation == DSA_OP_NOOP;
    struct dsa_descriptor d = { .flags_operation = flags | (uint32_t)operation
                                                               << DSA_OPERATION_SHIFT,
                                .record = RECORD_PAGE * 4096 + op->z % RECORDS * DSA_RECORD_BYTES,
                                .interrupt_handle = (uint16_t)(op->z >> 16 & 0x1f) };
    if (op->z >> 60 == 0)
        d.record = fuzz_address((uint32_t)(op->z >> 20));
    if (op->z >> 60 == 1)
        memcpy(d.specific, &op->y, sizeof(op->y));
    if (empty && op->z >> 60 != 2)
        return d;
    d.source = fuzz_address((uint32_t)op->y) + (batch ? 0 : op->z >> 22 & 63);
    d.destination = batch ? 0 : fuzz_address((uint32_t)(op->y >> 32)) + (op->z >> 30 & 63);
    d.bytes = (uint32_t)(op->z >> 36) & (batch ? 0x3f : op->c & 1 ? 0x3ff : 0x7fff);
    return d;
}

static void op_submit(struct dsa_world *w, const struct fuzz_op *op, bool sane)
{
    const struct dsa_descriptor d = sane ? move_of(op, op->b) : any_descriptor(op);
    const unsigned q = sane ? op->b % QUEUES : op->b % (QUEUES + 1);
    /* The other kind of write is lost, or refused. */
    const bool posted = (q % 2 == 0) != (!sane && op->c >= 240);
    const unsigned n = sane ? 1 + op->a % 8u : 1;
    for (unsigned i = 0; i < n; i++)
        submit(w, q, posted, (op->c & 4) != 0, &d);
}

static void op_batch(struct dsa_world *w, const struct fuzz_op *op)
{
    const unsigned n = 2 + op->a % 31u, first = (unsigned)(op->x >> 16) % LIST_SLOTS;
    struct dsa_descriptor d = descriptor_of(DSA_OP_BATCH, op->c & 8 ? DSA_FLAG_INTERRUPT : 0,
                                            op->b + 7u);
    const unsigned at = SIM_MIN(first, LIST_SLOTS - n);
    if (!(op->c & 16))
        put_list(w, at, n, op);
    d.source = LIST_PAGE * 4096 + at * DSA_DESCRIPTOR_BYTES;
    d.bytes = n;
    submit(w, op->b % QUEUES, op->b % 2 == 0, false, &d);
}

static void op_slot(struct dsa_world *w, const struct fuzz_op *op)
{
    const struct dsa_descriptor d = any_descriptor(op);
    for (unsigned i = 0; i <= op->c >> 5; i++)
        put_slot(w, op->b + i, &d);
}

static void op_command(struct dsa_world *w, const struct fuzz_op *op)
{
    static const uint8_t codes[] = { DSA_CMD_DRAIN_ALL,      DSA_CMD_ABORT_ALL,
                                     DSA_CMD_DISABLE_WQ,     DSA_CMD_DRAIN_WQ,
                                     DSA_CMD_ABORT_WQ,       DSA_CMD_RESET_WQ,
                                     DSA_CMD_ENABLE_WQ,      DSA_CMD_ENABLE_DEVICE,
                                     DSA_CMD_DISABLE_DEVICE, DSA_CMD_RESET_DEVICE };
    const uint8_t code = codes[op->a % SIM_N_ELEMENTS(codes)];
    const uint32_t operand = code == DSA_CMD_ENABLE_WQ ? op->b % (QUEUES + 1) : op->b % 32u;
    if (op->a >= 230)
        set(w, DSA_CMD, op->x);
    else
        set(w, DSA_CMD, operand | (uint32_t)code << DSA_CMD_SHIFT | (op->x & DSA_CMD_VECTOR));
}

static void op_table(struct dsa_world *w, const struct fuzz_op *op)
{
    const uint64_t at = op->a & 1 ? table_of_group(op->b) + (op->c & 0x3c)
                                  : table_of_queue(op->b) + (op->c & 0x1c);
    set(w, at, op->a & 2 ? op->x : op->x & 0x1f);
}

static void op_register(struct dsa_world *w, const struct fuzz_op *op)
{
    static const uint16_t known[] = { DSA_GENCFG, DSA_GENCTRL, DSA_GENSTS,   DSA_INTCAUSE,
                                      DSA_CMDSTS, DSA_SWERR,   DSA_SWERR + 8 };
    const uint64_t at = op->a < 160 ? known[op->a % SIM_N_ELEMENTS(known)] : op->x % 0x10000;
    fuzz_op_access(&w->host, 0, FUZZ_BAR(0) + at, op);
}

static void op_portal(struct dsa_world *w, const struct fuzz_op *op)
{
    const uint64_t at = op->x % (DSA_PORTAL_BYTES * DSA_PORTALS_OF_WQ * QUEUES);
    const uint64_t line[8] = { op->y, op->z, op->y, op->z, op->z, op->y, op->z, op->y };
    if (op->a < 128)
        fuzz_op_access(&w->host, 0, FUZZ_BAR_2(0) + at, op);
    else
        fuzz_enqueue(&w->host, 0, (op->a < 240 ? FUZZ_BAR_2(0) : FUZZ_BAR(0)) + (at & ~63ull), line,
                     op->a & 1 ? sizeof(line) : 1 + op->b % 8u);
}

static void op_config(struct dsa_world *w, const struct fuzz_op *op)
{
    const struct fuzz_functions *f = &w->host.functions;
    const unsigned offset[] = { PCI_COMMAND, PCI_BAR0, PCI_BAR0 + 8, f->pcie + PCIE_DEVCTL,
                                f->msix };
    fuzz_set_config(&w->host, 0,
                    op->a < 224 ? offset[op->a % SIM_N_ELEMENTS(offset)] : op->y & 0xffc, op->x);
}

static void set_up_again(struct fuzz_world *host)
{
    set_up(world_of(host));
}

static void op_reset(struct dsa_world *w, const struct fuzz_op *op)
{
    w->removed |= fuzz_op_reset(&w->host, w->dsa, op, set_up_again);
}

/* It holds no more than it has. */
static void check_bounds(const struct dsa_device *dsa)
{
    uint32_t entries = 0, buffers = 0;
    for (unsigned i = 0; i < dsa->params.queues; i++)
        entries += dsa->queue[i].n;
    for (unsigned i = 0; i < dsa->params.groups; i++)
        buffers += dsa->group[i].buffers;
    FUZZ_ASSERT(entries <= dsa->params.entries, "%u descriptors are queued", entries);
    FUZZ_ASSERT(buffers == dsa->buffers && buffers <= dsa->params.read_buffers,
                "%u read buffers, %u of groups", dsa->buffers, buffers);
}

enum {
    MOVE,
    SUBMIT,
    BATCH,
    SLOT,
    COMMAND,
    TABLE,
    BRING_UP,
    REGISTER,
    PORTAL,
    MEMORY,
    TIME,
    CONFIG,
    HOST,
    RESET,
    KINDS
};

static void step(struct fuzz_world *host, const struct fuzz_op *op)
{
    struct dsa_world *w = world_of(host);
    switch (op->kind % KINDS) {
    case MOVE: op_submit(w, op, true); break;
    case SUBMIT: op_submit(w, op, false); break;
    case BATCH: op_batch(w, op); break;
    case SLOT: op_slot(w, op); break;
    case COMMAND: op_command(w, op); break;
    case TABLE: op_table(w, op); break;
    case BRING_UP: bring_up(w, 1 + op->a % 8u, op->b, 1 + op->c % 3u, op->x); break;
    case REGISTER: op_register(w, op); break;
    case PORTAL: op_portal(w, op); break;
    case MEMORY: fuzz_op_memory(host, op); break;
    case TIME: fuzz_op_time(host, op); break;
    case CONFIG: op_config(w, op); break;
    case HOST: fuzz_op_host(host, op); break;
    default: op_reset(w, op); break;
    }
    check_bounds(w->dsa->state);
}

static void invent(struct fuzz_op *op, struct fuzz_random *random, int first)
{
    static const uint8_t kinds[] = { MOVE,     MOVE,     MOVE,     SUBMIT,  SUBMIT, BATCH,
                                     BATCH,    SLOT,     COMMAND,  COMMAND, TABLE,  TABLE,
                                     BRING_UP, BRING_UP, REGISTER, PORTAL,  MEMORY, TIME,
                                     TIME,     TIME,     CONFIG,   HOST,    RESET };
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
    static const char *const buffers[] = { "2", "5", "16", "96" };
    static const char *const entries[] = { "8", "16", "32", "128" };
    static const char *const engines[] = { "2", "2", "3", "4" };
    const bool short_batches = (op->b & 8) != 0;
    const struct fuzz_setting settings[] = {
        { "work_queues", "4" },
        { "groups", "2" },
        { "read_buffers", buffers[op->a & 3] },
        { "queue_entries", entries[op->a >> 2 & 3] },
        { "engines", engines[op->a >> 4 & 3] },
        { "engine_descriptors", op->a & 64 ? "1" : "8" },
        { "descriptor_ns", op->a & 128 ? "0" : "40" },
        { "descriptor_interval_ns", op->b & 16 ? "0" : "10" },
        { "batch_log2", short_batches ? "2" : "5" },
        { "transfer_log2", "15" },
        { "completion_timeout_us", "50" },
        { "tx_queue_tlps", op->b & 1 ? "1" : "16" },
        { "read_requests_max", op->b & 2 ? "1" : "0" },
        { "extended_tags", op->b & 4 ? "false" : "true" },
        { NULL, NULL },
    };
    struct dsa_world *w = calloc(1, sizeof(*w));
    w->batch_log2 = short_batches ? 2 : 5;
    fuzz_world_open(&w->host);
    w->host.functions = (struct fuzz_functions){ .n_bars = 2,
                                                 .bar_bytes = DSA_REGISTERS_BYTES,
                                                 .msix_table = DSA_MSIX_TABLE,
                                                 .n_vectors = VECTORS };
    w->dsa = fuzz_world_device(&w->host, &dsa_ops, "dsa", settings);
    fuzz_world_plug(&w->host, w->dsa, 0);
    dsa_ops.start(w->dsa);
    const struct dsa_device *dsa = w->dsa->state;
    w->host.functions.pcie = dsa->function.cfg.pcie_cap;
    w->host.functions.msix = dsa->function.cfg.msix_cap;
    set_up(w);
    FUZZ_ASSERT(get(w, DSA_VERSION) == DSA_VERSION_1, "set-up");
    if (!(op->b & 32))
        bring_up(w, 2, op->c & 0xf, 1 + (op->c >> 4) % 3, op->x);
    return &w->host;
}

/* Nothing will happen any more: nothing is left to be done. */
static void check_quiet(const struct dsa_device *dsa)
{
    FUZZ_ASSERT(dsa->command == 0, "command %u does not end", dsa->command);
    FUZZ_ASSERT(dsa->buffers + dsa->shared_buffers + dsa->limited_buffers == 0,
                "%u read buffers are left", dsa->buffers);
    for (unsigned i = 0; i < dsa->params.engines; i++)
        FUZZ_ASSERT(dsa->engine[i].n_works == 0 && dsa->engine[i].batch.engine == NULL &&
                        dsa->engine[i].moving == NULL,
                    "engine %u has something", i);
    for (unsigned i = 0; i < dsa->params.queues; i++)
        FUZZ_ASSERT(dsa->queue[i].under_way == NULL && dsa->queue[i].n == 0,
                    "queue %u has %u descriptors, and some under way: %d", i, dsa->queue[i].n,
                    dsa->queue[i].under_way != NULL);
}

#define COPY_BYTES 1000u

/* As good as new: bytes are copied, by a descriptor or by a batch of two. */
static void check_copy(struct dsa_world *w, unsigned q, bool batch)
{
    const uint64_t from = (DATA_PAGE + 8) * 4096 + 5, to = (DATA_PAGE + 16) * 4096 + 40;
    const struct dsa_record none = { 0 };
    struct dsa_descriptor d = descriptor_of(DSA_OP_MOVE, 0, 3);
    struct dsa_record record = none;
    uint8_t page[COPY_BYTES], got[COPY_BYTES];
    for (unsigned i = 0; i < sizeof(page); i++)
        page[i] = (uint8_t)(i * 7 + i / 64 + q) & 0x7f; /* no mark of bulk payload */
    fuzz_put(&w->host, from, page, sizeof(page));
    fuzz_put(&w->host, d.record, &none, sizeof(none));
    d.source = from;
    d.destination = to;
    d.bytes = batch ? COPY_BYTES / 2 : COPY_BYTES;
    if (batch) {
        struct dsa_descriptor second = d;
        d.record = second.record += DSA_RECORD_BYTES;
        second.source += COPY_BYTES / 2;
        second.destination += COPY_BYTES / 2;
        put_slot(w, 0, &d);
        put_slot(w, 1, &second);
        d = descriptor_of(DSA_OP_BATCH, 0, 3);
        d.source = LIST_PAGE * 4096;
        d.bytes = 2;
    }
    submit(w, q, q % 2 == 0, false, &d);
    for (unsigned i = 0; i < 1000 && record.status == DSA_STATUS_NONE; i++) {
        fuzz_world_run(&w->host, SIM_PS_PER_US);
        fuzz_get(&w->host, d.record, &record, sizeof(record));
    }
    FUZZ_ASSERT(record.status == DSA_STATUS_SUCCESS, "queue %u: status %#x", q, record.status);
    fuzz_get(&w->host, to, got, sizeof(got));
    FUZZ_ASSERT(memcmp(page, got, sizeof(page)) == 0, "queue %u: other data than copied", q);
}

/* Left alone, it comes to rest by itself, unless it has much to do. */
static void check_rest(struct fuzz_world *host, const struct dsa_device *dsa)
{
    const uint64_t begin = sim_events_fired(host->sim);
    while (sim_events_pending(host->sim) != 0 && sim_events_fired(host->sim) - begin < QUIET_EVENTS)
        fuzz_world_run(host, 50 * SIM_PS_PER_US);
    check_bounds(dsa);
    if (sim_events_pending(host->sim) == 0)
        check_quiet(dsa);
}

static void check_world(struct fuzz_world *host)
{
    struct dsa_world *w = world_of(host);
    const struct dsa_device *dsa = w->dsa->state;
    check_rest(host, dsa);
    fuzz_function_stop(host, 0);
    fuzz_world_drain(host);
    fuzz_world_check(host);
    check_quiet(dsa);
    if (w->removed)
        return;
    set_up(w);
    bring_up(w, 2, 3, 1, 0);
    fuzz_world_run(host, 2 * SIM_PS_PER_US);
    for (unsigned q = 0; q < QUEUES; q++)
        check_copy(w, q, q >= 2);
    fuzz_world_drain(host);
    fuzz_world_check(host);
    check_quiet(dsa);
}

static void close_world(struct fuzz_world *host)
{
    struct dsa_world *w = world_of(host);
    model_free(w->dsa);
    fuzz_world_close(host);
    free(w);
}

const struct fuzz_target fuzz_dsa = { "dsa", open_world, step, check_world, close_world, invent };
