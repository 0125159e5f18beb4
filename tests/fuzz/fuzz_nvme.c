/*
 * Target nvme: a subsystem with one or two ports and virtual functions, their drivers, and data. At
 * the end each port that is still there is reset, set up anew and writes and reads a page.
 */
#include "hw/nvme_regs.h"
#include "models/nvme/nvme.h"
#include "tests/fuzz/fuzz_world.h"

#define N_VFS       2u
#define OF_PORT     (1 + N_VFS) /* controllers */
#define CONTROLLERS (2 * OF_PORT)
#define QUEUES      4u /* pairs of a controller, the admin queue first */
#define ENTRIES     16u
#define QUEUE_PAGES 8u /* memory: from this page on two for each pair, */
#define DATA_PAGES  (QUEUE_PAGES + 2 * CONTROLLERS * QUEUES) /* then data */
#define CMB_BYTES   65536u
#define CC_ENABLE   (NVME_CC_IOSQES(6) | NVME_CC_IOCQES(4) | NVME_CC_EN)

struct pair {
    uint64_t sq, cq;
    uint16_t tail, head;
    uint8_t phase;
};

struct nvme_world {
    struct fuzz_world host;
    struct model *nvme;
    unsigned n_ports;
    bool removed[2];
    struct pair pair[CONTROLLERS][QUEUES];
};

static struct nvme_world *world_of(struct fuzz_world *host)
{
    return SIM_CONTAINER(host, struct nvme_world, host);
}

static void set_register(struct nvme_world *w, unsigned c, uint64_t offset, uint32_t value)
{
    fuzz_write32(&w->host, fuzz_port_of(&w->host, c), fuzz_bar_of(&w->host, c) + offset, value);
}

static void set_register64(struct nvme_world *w, unsigned c, uint64_t offset, uint64_t value)
{
    fuzz_write64(&w->host, fuzz_port_of(&w->host, c), fuzz_bar_of(&w->host, c) + offset, value);
}

/* ---- A driver that knows what it does -------------------------------------------------------- */

static void forget_queues(struct nvme_world *w, unsigned c)
{
    static const uint8_t zeros[4096];
    for (unsigned q = 0; q < QUEUES; q++) {
        const uint64_t page = QUEUE_PAGES + 2 * (c * QUEUES + q);
        w->pair[c][q] = (struct pair){ .sq = page * 4096, .cq = (page + 1) * 4096, .phase = 1 };
        fuzz_put(&w->host, w->pair[c][q].cq, zeros, sizeof(zeros));
    }
}

static void set_up_port(struct nvme_world *w, unsigned p)
{
    fuzz_set_up_port(&w->host, p);
    fuzz_world_run(&w->host, 2 * SIM_PS_PER_US);
}

/* Enables a controller. */
static void enable(struct nvme_world *w, unsigned c, uint32_t cc)
{
    forget_queues(w, c);
    set_register(w, c, NVME_REG_CC, 0);
    set_register(w, c, NVME_REG_AQA, (ENTRIES - 1) << 16 | (ENTRIES - 1));
    set_register64(w, c, NVME_REG_ASQ, w->pair[c][0].sq);
    set_register64(w, c, NVME_REG_ACQ, w->pair[c][0].cq);
    set_register(w, c, NVME_REG_CC, cc);
    fuzz_world_run(&w->host, 40 * SIM_PS_PER_US);
}

static void push(struct nvme_world *w, unsigned c, unsigned q, struct nvme_sqe sqe)
{
    struct pair *pair = &w->pair[c][q];
    const uint64_t at = pair->sq + (uint64_t)pair->tail * sizeof(sqe);
    sqe.cid = pair->tail;
    if (at < FUZZ_MEMORY_BYTES)
        fuzz_put(&w->host, at, &sqe, sizeof(sqe));
    else
        fuzz_write(&w->host, fuzz_port_of(&w->host, c), at, &sqe,
                   sizeof(sqe)); /* in the memory buffer */
    pair->tail = (uint16_t)((pair->tail + 1) % ENTRIES);
}

static void ring(struct nvme_world *w, unsigned c, unsigned q)
{
    set_register(w, c, NVME_DOORBELL_SQ(q), w->pair[c][q].tail);
}

/* Takes completions; the status of the last, or -1 if there was none. */
static int reap(struct nvme_world *w, unsigned c, unsigned q)
{
    struct pair *pair = &w->pair[c][q];
    int status = -1;
    for (unsigned i = 0; i < ENTRIES; i++) {
        struct nvme_cqe cqe;
        fuzz_get(&w->host, pair->cq + (uint64_t)pair->head * sizeof(cqe), &cqe, sizeof(cqe));
        if ((cqe.status & NVME_CQE_PHASE) != pair->phase)
            break;
        status = cqe.status >> 1;
        pair->head = (uint16_t)((pair->head + 1) % ENTRIES);
        pair->phase ^= pair->head == 0;
    }
    set_register(w, c, NVME_DOORBELL_CQ(q), pair->head);
    return status;
}

static void create(struct nvme_world *w, unsigned c, unsigned q, uint32_t flags)
{
    const uint32_t number = q | (ENTRIES - 1u) << 16;
    push(w, c, 0,
         (struct nvme_sqe){ .opcode = NVME_ADMIN_CREATE_CQ,
                            .prp1 = w->pair[c][q].cq,
                            .cdw10 = number,
                            .cdw11 = NVME_QUEUE_CONTIGUOUS | NVME_CQ_INTERRUPTS });
    push(w, c, 0,
         (struct nvme_sqe){ .opcode = NVME_ADMIN_CREATE_SQ,
                            .prp1 = w->pair[c][q].sq,
                            .cdw10 = number,
                            .cdw11 = NVME_QUEUE_CONTIGUOUS | (flags & 3) << 1 | q << 16 });
}

static void begin(struct nvme_world *w, unsigned c, uint32_t cc)
{
    enable(w, c, cc);
    create(w, c, 1, 0);
    create(w, c, 2, 1);
    ring(w, c, 0);
    fuzz_world_run(&w->host, 20 * SIM_PS_PER_US);
    reap(w, c, 0);
}

/* Gives a secondary controller queues and vectors, and begins. */
static void begin_secondary(struct nvme_world *w, unsigned c, uint32_t resources)
{
    const unsigned primary = fuzz_physical(&w->host, fuzz_port_of(&w->host, c));
    const uint32_t id = c << 16; /* numbers of controllers are in this order */
    const uint32_t n[2] = { 2 + (resources & 1), 1 + (resources >> 1 & 1) };
    const uint32_t actions[] = { NVME_VIRTUAL_OFFLINE, NVME_VIRTUAL_ASSIGN,
                                 NVME_VIRTUAL_ASSIGN | 1 << 8, NVME_VIRTUAL_ONLINE };
    for (unsigned i = 0; i < SIM_N_ELEMENTS(actions); i++)
        push(w, primary, 0,
             (struct nvme_sqe){ .opcode = NVME_ADMIN_VIRTUALIZATION,
                                .cdw10 = actions[i] | id,
                                .cdw11 = i == 1 ? n[0] : n[1] });
    ring(w, primary, 0);
    fuzz_world_run(&w->host, 20 * SIM_PS_PER_US);
    reap(w, primary, 0);
    begin(w, c, CC_ENABLE);
}

/* ---- One that does not ----------------------------------------------------------------------- */

static struct nvme_sgl descriptor(uint32_t address, uint32_t bytes, uint8_t type)
{
    return (struct nvme_sgl){ .address = fuzz_address(address), .bytes = bytes, .type = type };
}

/* Queue: b; opcode: a; flags: c; PRP entries: y; double words: x, z. */
static void op_command(struct nvme_world *w, unsigned c, const struct fuzz_op *op)
{
    struct nvme_sqe sqe = { .opcode = op->a,
                            .flags = op->c,
                            .nsid = (op->z >> 56) < 252 ? (uint32_t)(op->z >> 56) % 4 : UINT32_MAX,
                            .prp1 = fuzz_address((uint32_t)op->y),
                            .prp2 = fuzz_address((uint32_t)(op->y >> 32)),
                            .cdw10 = op->x,
                            .cdw11 = (uint32_t)(op->z >> 24 & 0xffffff),
                            .cdw12 = (uint32_t)(op->z & 0xffff),
                            .cdw13 = (uint32_t)(op->z >> 16 & 0xff) };
    if ((op->c & 0xc0) != 0) {
        const struct nvme_sgl sgl = descriptor((uint32_t)op->y, (uint32_t)(op->y >> 32) & 0x1ffff,
                                               (uint8_t)(op->y >> 56));
        memcpy(&sqe.prp1, &sgl, sizeof(sgl));
    }
    if ((sqe.cdw12 & 0x8000) != 0) /* high bits mean something, too */
        sqe.cdw12 = sqe.cdw12 << 16 | (sqe.cdw12 & 0x7fff);
    push(w, c, op->b >> 4 & 3, sqe);
    if ((op->b & 0x80) != 0)
        ring(w, c, op->b >> 4 & 3);
}

/* PRP entries, or descriptors, at x; a: how many. */
static void op_list(struct nvme_world *w, const struct fuzz_op *op)
{
    uint64_t at = fuzz_address(op->x) & ~UINT64_C(7);
    for (unsigned i = 0; i < op->a % 64u; i++, at += 8) {
        const uint64_t entry = fuzz_address((uint32_t)op->y + i * (uint32_t)(op->z & 7)) +
                               (i + 1u == op->a % 64u ? op->y >> 32 & 0xfff : 0);
        fuzz_put(&w->host, at, &entry, sizeof(entry));
    }
}

static void op_sgl(struct nvme_world *w, const struct fuzz_op *op)
{
    uint64_t at = fuzz_address(op->x) & ~UINT64_C(7);
    for (unsigned i = 0; i < op->a % 16u; i++, at += sizeof(struct nvme_sgl)) {
        const bool last = i + 1u == op->a % 16u;
        const struct nvme_sgl sgl = descriptor(
            (uint32_t)op->y + i, (uint32_t)(op->y >> 32) & 0xffff, last ? op->c : op->b & 0x1f);
        fuzz_put(&w->host, at, &sgl, sizeof(sgl));
    }
}

static void op_register(struct nvme_world *w, unsigned c, const struct fuzz_op *op)
{
    static const uint16_t offset[] = { NVME_REG_CAP,    NVME_REG_VS,    NVME_REG_INTMS,
                                       NVME_REG_INTMC,  NVME_REG_CC,    NVME_REG_CSTS,
                                       NVME_REG_AQA,    NVME_REG_ASQ,   NVME_REG_ACQ,
                                       NVME_REG_CMBLOC, NVME_REG_CMBSZ, NVME_MSIX_TABLE };
    uint64_t at = op->x % NVME_BAR_BYTES;
    if (op->a < 192)
        at = offset[op->a % SIM_N_ELEMENTS(offset)] + (op->x & 4);
    fuzz_op_access(&w->host, fuzz_port_of(&w->host, c), fuzz_bar_of(&w->host, c) + at, op);
}

static void op_config(struct nvme_world *w, unsigned c, const struct fuzz_op *op)
{
    const struct fuzz_functions *d = &w->host.functions;
    const unsigned offset[] = { PCI_COMMAND,
                                PCI_BAR0,
                                PCI_BAR0 + 8,
                                d->pcie + PCIE_DEVCTL,
                                d->msix,
                                d->sriov + PCI_SRIOV_CONTROL,
                                d->sriov + PCI_SRIOV_NUM_VFS,
                                d->sriov + PCI_SRIOV_BAR0,
                                d->sriov + 0x20 /* system page size */ };
    fuzz_set_config(&w->host, c,
                    op->a < 224 ? offset[op->a % SIM_N_ELEMENTS(offset)] : op->y & 0xffc, op->x);
}

static void op_reset(struct nvme_world *w, unsigned c, const struct fuzz_op *op)
{
    const unsigned port = fuzz_port_of(&w->host, c);
    switch (op->a % 8) {
    case 0: /* bus mastering off and on */
        fuzz_set_config(&w->host, c, PCI_COMMAND, PCI_COMMAND_MEMORY | (op->c & 1u) << 2);
        break;
    case 1: set_register(w, c, NVME_REG_CC, op->x); break;
    case 2: set_register(w, c, NVME_REG_CC, 0); break;
    case 3: enable(w, c, CC_ENABLE | (op->x & 0x3fff0)); break;
    case 4: fuzz_function_reset(&w->host, c); break;
    case 5: /* the cable: for good */
        if (op->b < 16 && op->c < 16) {
            w->removed[port] = true;
            pcie_function_remove(w->nvme, port);
        }
        break;
    case 6:
        fuzz_function_reset(&w->host, c);
        fuzz_world_wait(&w->host, 200 * SIM_PS_PER_MS);
        set_up_port(w, port);
        break;
    default: begin(w, c, CC_ENABLE | (op->x & 1) << NVME_CC_AMS_SHIFT); break;
    }
}

enum {
    COMMAND,
    RING,
    REAP,
    LIST,
    SGL,
    MEMORY,
    TIME,
    REGISTER,
    CONFIG,
    HOST,
    RESET,
    SECONDARY,
    KINDS
};

static void step(struct fuzz_world *host, const struct fuzz_op *op)
{
    struct nvme_world *w = world_of(host);
    const unsigned c = op->b % (w->n_ports * OF_PORT), q = op->b >> 4 & 3;
    const unsigned port = fuzz_port_of(host, c);
    switch (op->kind % KINDS) {
    case COMMAND: op_command(w, c, op); break;
    case RING:
        if (op->a < 128)
            ring(w, c, q);
        else
            set_register(w, c, NVME_REG_DOORBELLS + 4 * (op->a % 16u), op->x);
        break;
    case REAP: reap(w, c, q); break;
    case LIST: op_list(w, op); break;
    case SGL: op_sgl(w, op); break;
    case MEMORY:
        if (op->x >> 29 == 3) /* the memory buffer */
            fuzz_op_access(host, port, FUZZ_BAR_2(port) + op->x % CMB_BYTES, op);
        else
            fuzz_op_memory(host, op);
        break;
    case TIME: fuzz_op_time(host, op); break;
    case REGISTER: op_register(w, c, op); break;
    case CONFIG: op_config(w, c, op); break;
    case HOST: fuzz_op_host(host, op); break;
    case RESET: op_reset(w, c, op); break;
    default:
        if (fuzz_is_virtual(host, c))
            begin_secondary(w, c, op->x);
        break;
    }
}

static void invent(struct fuzz_op *op, struct fuzz_random *random, int first)
{
    static const uint8_t kinds[] = { COMMAND, COMMAND,  COMMAND, COMMAND, COMMAND, COMMAND,  RING,
                                     REAP,    REAP,     LIST,    SGL,     MEMORY,  TIME,     TIME,
                                     TIME,    REGISTER, CONFIG,  HOST,    RESET,   SECONDARY };
    static const uint8_t admin[] = { NVME_ADMIN_DELETE_SQ,     NVME_ADMIN_CREATE_SQ,
                                     NVME_ADMIN_GET_LOG,       NVME_ADMIN_DELETE_CQ,
                                     NVME_ADMIN_CREATE_CQ,     NVME_ADMIN_IDENTIFY,
                                     NVME_ADMIN_ABORT,         NVME_ADMIN_SET_FEATURES,
                                     NVME_ADMIN_GET_FEATURES,  NVME_ADMIN_ASYNC_EVENT,
                                     NVME_ADMIN_VIRTUALIZATION };
    static const uint8_t io[] = { 0, 1, 2, 4, 5, 8, 9, 1, 2 };
    *op = (struct fuzz_op){ .kind = kinds[fuzz_any(random, SIM_N_ELEMENTS(kinds))],
                            .a = (uint8_t)fuzz_any(random, 256),
                            .b = (uint8_t)fuzz_any(random, 256),
                            .c = (uint8_t)fuzz_any(random, 256),
                            .x = fuzz_any32(random) };
    op->y = (uint64_t)fuzz_any_address(random) << 32 | fuzz_any_address(random);
    op->z = fuzz_any(random, UINT64_C(1) << 52) << 11;
    if (first || op->kind != COMMAND)
        return;
    op->b &= (uint8_t)(fuzz_any(random, 2) != 0 ? 0xf0 : 0xff); /* mostly the first controller */
    const bool is_admin = (op->b & 0x30) == 0;
    op->a = is_admin ? admin[fuzz_any(random, SIM_N_ELEMENTS(admin))]
                     : io[fuzz_any(random, SIM_N_ELEMENTS(io))];
    op->c = (uint8_t)(fuzz_any(random, 3) == 0 ? (is_admin ? 0 : 0x40) : 0);
    op->x = fuzz_any(random, 3) != 0 ? (uint32_t)fuzz_any(random, 40) : op->x;
    op->z = fuzz_any(random, 16) | fuzz_any(random, 4) << 56;
    if (is_admin)
        op->z |= (fuzz_any(random, 2) != 0 ? fuzz_any(random, 8) | 1 : fuzz_any32(random)) << 24;
}

/* ---- A world --------------------------------------------------------------------------------- */

static struct fuzz_world *open_world(const struct fuzz_op *op)
{
    static const char *const media[] = { "flat", "xpoint", "dram", "nand" };
    const struct fuzz_setting settings[] = {
        { "payload", "bytes" },
        { "namespaces", "2" },
        { "ports", op->a & 2 ? "2" : "1" },
        { "block_bytes", op->a & 4 ? "4096" : "512" },
        { "cmb_bytes", op->a & 8 ? "0" : "65536" },
        { "transfer_bytes_max", op->a & 16 ? "16384" : "131072" },
        { "fetch_burst", op->a & 32 ? "1" : "8" },
        { "commands_max", op->a & 64 ? "2" : "32" },
        { "channels", op->a & 128 ? "2" : "1" },
        { "completion_timeout_us", "50" },
        { "tx_queue_tlps", op->b & 1 ? "1" : "16" },
        { "read_requests_max", op->b & 2 ? "1" : "32" },
        { "extended_tags", op->b & 4 ? "false" : "true" },
        { "jitter_mean_ns", op->b & 8 ? "1000" : "0" },
        { "media", media[op->c & 3] },
        { "capacity_bytes", (op->c & 3) == 3 ? "2097152" : "33554432" },
        /* Of media that are made of dies. */
        { "dies", "2" },
        { "die_write_ns", "20000" },
        { "die_erase_us", "100" },
        { "refresh_interval_us", op->c & 4 ? "0" : "50" },
        { "retry_ratio", op->c & 8 ? "0.5" : "0" },
        { "suspend_us", op->c & 16 ? "0" : "5" },
        { "planes", op->c & 32 ? "1" : "2" },
        { "flash_page_bytes", "16384" },
        { "block_pages", "6" },
        { "spare_ratio", "1" },
        { "gc_free_blocks", "2" },
        { "write_buffer_bytes", op->c & 64 ? "65536" : "262144" },
        { "preconditioned", op->c & 128 ? "fresh" : "full" },
        { "enable_latency_us", "20" },
        { "virtual_functions", "2" },
        { "queue_pairs", "8" },
        { "queue_entries", "64" },
        { "interrupt_vectors", "4" },
        { "flexible_queue_pairs", "6" },
        { "flexible_vectors", "4" },
        { NULL, NULL },
    };
    struct nvme_world *w = calloc(1, sizeof(*w));
    fuzz_world_open(&w->host);
    w->host.functions = (struct fuzz_functions){ .n_vfs = N_VFS,
                                                 .n_bars = 2,
                                                 .bar_bytes = NVME_BAR_BYTES,
                                                 .msix_table = NVME_MSIX_TABLE,
                                                 .n_vectors = 4 };
    w->nvme = fuzz_world_device(&w->host, &nvme_ops, "nvme", settings);
    w->n_ports = op->a & 2 ? 2 : 1;
    for (unsigned p = 0; p < w->n_ports; p++)
        fuzz_world_plug(&w->host, w->nvme, p);
    nvme_ops.start(w->nvme);
    fuzz_find_capabilities(&w->host);
    for (unsigned c = 0; c < CONTROLLERS; c++)
        forget_queues(w, c);
    for (unsigned p = 0; p < w->n_ports; p++) {
        set_up_port(w, p);
        begin(w, fuzz_physical(&w->host, p), CC_ENABLE | (op->b >> 4 & 1u) << NVME_CC_AMS_SHIFT);
    }
    FUZZ_ASSERT(fuzz_ask32(&w->host, 0, FUZZ_BAR(0) + NVME_REG_CSTS) == NVME_CSTS_RDY, "set-up");
    return &w->host;
}

/* One command of the I/O queue, which is empty. */
static void expect_success(struct nvme_world *w, unsigned c, struct nvme_sqe sqe)
{
    int status = -1;
    push(w, c, 1, sqe);
    ring(w, c, 1);
    for (unsigned i = 0; i < 1000 && status < 0; i++) {
        fuzz_world_run(&w->host, 10 * SIM_PS_PER_US);
        status = reap(w, c, 1);
    }
    FUZZ_ASSERT(status == NVME_SC_SUCCESS, "controller %u: status %#x of opcode %u", c,
                (unsigned)status, sqe.opcode);
}

/* As good as new: a page goes to the media and back. */
static void check_port(struct nvme_world *w, unsigned p)
{
    const unsigned c = fuzz_physical(&w->host, p);
    const uint64_t from = DATA_PAGES * 4096, to = from + 4096;
    uint8_t page[4096], got[4096];
    set_up_port(w, p);
    begin(w, c, CC_ENABLE);
    for (unsigned i = 0; i < sizeof(page); i++)
        page[i] = (uint8_t)(i % 64 < 8 ? i / 64 + i + p : 0); /* as much as marks carry */
    fuzz_put(&w->host, from, page, sizeof(page));
    memset(got, 0, sizeof(got));
    fuzz_put(&w->host, to, got, sizeof(got));
    struct nvme_sqe sqe = { .opcode = NVME_WRITE, .nsid = 1, .prp1 = from };
    sqe.cdw12 = 4096 / nvme_namespace_block_bytes(w->nvme) - 1;
    expect_success(w, c, sqe);
    sqe.opcode = NVME_READ;
    sqe.prp1 = to;
    expect_success(w, c, sqe);
    fuzz_get(&w->host, to, got, sizeof(got));
    FUZZ_ASSERT(memcmp(page, got, sizeof(page)) == 0, "port %u: other data than written", p);
}

static void check_world(struct fuzz_world *host)
{
    struct nvme_world *w = world_of(host);
    fuzz_world_run(host, 50 * SIM_PS_PER_US);
    for (unsigned p = 0; p < w->n_ports; p++)
        fuzz_function_stop(host, fuzz_physical(host, p));
    fuzz_world_drain(host);
    fuzz_world_check(host);
    for (unsigned p = 0; p < w->n_ports; p++)
        if (!w->removed[p])
            check_port(w, p);
    fuzz_world_drain(host);
    fuzz_world_check(host);
}

static void close_world(struct fuzz_world *host)
{
    struct nvme_world *w = world_of(host);
    model_free(w->nvme);
    fuzz_world_close(host);
    free(w);
}

const struct fuzz_target fuzz_nvme = { "nvme", open_world, step, check_world, close_world, invent };
