/*
 * Target rdma: two adapters in the slots of a host, each with a driver that does what it likes, and
 * between them somebody who passes packets on, loses, doubles and changes them, and makes some up.
 * At the end both are reset, set up anew and one writes to the other's memory.
 */
#include "hw/rdma_regs.h"
#include "models/rdma/ib_link.h"
#include "models/rdma/rdma.h"
#include "tests/fuzz/fuzz_world.h"

#define ADAPTERS    2u
#define QPS         2u /* connected pairs */
#define SQ_LOG      4u
#define RQ_LOG      4u
#define CQ_LOG      5u
#define PSN         0xfffffeu /* wraps soon */
#define QUEUE_PAGE  1u        /* memory: a page for each queue, from this one on, */
#define PAGES_OF_QP 5u
#define FIRST_DATA  64u /* then data */
#define KEY_BYTES   FUZZ_MEMORY_BYTES

struct pair { /* a queue pair, as its driver knows it */
    uint32_t number, cq_consumer, rq_tail;
    uint16_t sq_tail;
    uint64_t sq, rq, record, cq, eq;
};

/* An end of the wire in the middle: what comes in here goes out by the other one. */
struct middle {
    struct ib_port port;
    struct ib_packet *first, **last; /* to be sent */
    struct rdma_world *world;
};

struct rdma_world {
    struct fuzz_world host;
    struct model *adapter[ADAPTERS];
    struct model peer;
    struct middle middle[ADAPTERS];
    struct ib_wire *wire[ADAPTERS];
    struct pair pair[ADAPTERS][QPS];
    uint32_t cq[ADAPTERS], pd[ADAPTERS], key[ADAPTERS];
    uint64_t command[ADAPTERS];
    /* What happens to the next packets. */
    unsigned n_lost, n_doubled, n_changed;
    struct fuzz_op change;
    uint32_t psn;   /* of the last packet */
    unsigned reads; /* in flight, of a queue pair */
};

static struct rdma_world *world_of(struct fuzz_world *host)
{
    return SIM_CONTAINER(host, struct rdma_world, host);
}

/* ---- In the middle of the wire --------------------------------------------------------------- */

static void middle_ready(struct ib_port *port)
{
    struct middle *middle = SIM_CONTAINER(port, struct middle, port);
    struct ib_packet *packet = middle->first;
    if (packet == NULL || !ib_port_ready(port, packet))
        return;
    middle->first = packet->next;
    if (middle->first == NULL)
        middle->last = &middle->first;
    ib_port_send(port, packet);
}

static void middle_send(struct middle *middle, struct ib_packet *packet)
{
    packet->next = NULL;
    *middle->last = packet;
    middle->last = &packet->next;
    middle_ready(&middle->port);
}

/* distance: a signed byte */
static uint32_t psn_near(uint32_t psn, uint8_t distance)
{
    return (psn + (distance ^ 0x80u) - 0x80u) & 0xffffffu;
}

/* Fields of a packet by the operation: a says which. */
static void change_packet(struct ib_packet *packet, const struct fuzz_op *op)
{
    switch (op->a % 12) {
    case 0: packet->opcode = (uint8_t)(op->b % N_IB_OPCODES); break;
    case 1: packet->psn = psn_near(packet->psn, op->b); break;
    case 2: packet->qp = op->x % 8; break;
    case 3: packet->rkey = op->x; break;
    case 4: packet->va = op->y; break;
    case 5: packet->dma_bytes = op->x; break;
    case 6: packet->bytes = op->x % (IB_MTU_BYTES_MAX + 1); break;
    case 7: packet->syndrome = op->c; break;
    case 8: packet->msn = op->x & 0xffffff; break;
    case 9: packet->ack_request = op->b & 1; break;
    case 10: packet->dlid = (uint16_t)op->x; break;
    default: packet->slid = (uint16_t)op->x; break;
    }
}

static struct ib_packet *copy_of(struct rdma_world *w, const struct ib_packet *packet)
{
    struct ib_packet *copy = ib_packet_new(ib_packet_pool(w->host.sim));
    *copy = *packet;
    copy->direction = NULL;
    sim_event_init(&copy->event, NULL);
    return copy;
}

static void middle_receive(struct ib_port *port, struct ib_packet *packet)
{
    struct middle *middle = SIM_CONTAINER(port, struct middle, port);
    struct rdma_world *w = middle->world;
    struct middle *other = &w->middle[middle == &w->middle[0]];
    ib_port_release(port, ib_packet_credits(packet));
    w->psn = packet->psn;
    if (w->n_lost != 0) {
        w->n_lost--;
        sim_pool_put(ib_packet_pool(w->host.sim), packet);
        return;
    }
    if (w->n_changed != 0) {
        w->n_changed--;
        change_packet(packet, &w->change);
    }
    if (w->n_doubled != 0) {
        w->n_doubled--;
        middle_send(other, copy_of(w, packet));
    }
    middle_send(other, packet);
}

/* A packet to adapter a that nobody has sent. */
static void op_packet(struct rdma_world *w, unsigned a, const struct fuzz_op *op)
{
    struct ib_packet *packet = ib_packet_new(ib_packet_pool(w->host.sim));
    memset(packet, 0, offsetof(struct ib_packet, payload));
    memset(packet->payload, op->c, sizeof(packet->payload));
    packet->slid = (uint16_t)(2 - a);
    packet->dlid = (uint16_t)(a + 1);
    packet->opcode = (uint8_t)(op->a % N_IB_OPCODES);
    packet->qp = w->pair[a][op->b >> 1 & 1].number;
    packet->psn = psn_near(w->psn, op->c);
    packet->ack_request = op->b & 4;
    packet->solicited = op->b & 8;
    packet->rkey = w->key[a];
    packet->va = fuzz_address((uint32_t)op->y);
    packet->dma_bytes = (uint32_t)(op->y >> 32);
    packet->bytes = op->x % (IB_MTU_BYTES_MAX + 1);
    packet->syndrome = (uint8_t)(op->z >> 8);
    packet->msn = (uint32_t)(op->z >> 16) & 0xffffff;
    if (op->b & 128)
        change_packet(packet, &(struct fuzz_op){ .a = (uint8_t)op->z,
                                                 .b = (uint8_t)(op->z >> 40),
                                                 .c = (uint8_t)(op->z >> 48),
                                                 .x = (uint32_t)(op->z >> 32),
                                                 .y = op->z });
    middle_send(&w->middle[a], packet);
}

static void op_wire(struct rdma_world *w, const struct fuzz_op *op)
{
    switch (op->a % 4) {
    case 0: w->n_lost = op->b % 8u; break;
    case 1: w->n_doubled = op->b % 4u; break;
    case 2:
        w->n_changed = 1 + op->b % 4u;
        w->change = *op;
        w->change.a = (uint8_t)op->z;
        w->change.b = (uint8_t)(op->z >> 8);
        break;
    default: ib_port_link(&w->middle[op->b & 1].port, op->c & 3); break;
    }
}

/* ---- Drivers that know what they do ---------------------------------------------------------- */

static uint64_t bar(unsigned a, uint64_t offset)
{
    return FUZZ_BAR(a) + offset;
}

static void set_register(struct rdma_world *w, unsigned a, uint64_t offset, uint32_t value)
{
    fuzz_write32(&w->host, a, bar(a, offset), value);
}

static void set_up_function(struct rdma_world *w, unsigned a)
{
    fuzz_set_up_port(&w->host, a);
    set_register(w, a, RDMA_REG_LID, a + 1);
    fuzz_world_run(&w->host, SIM_PS_PER_US);
}

static struct rdma_command command(struct rdma_world *w, unsigned a, struct rdma_command command)
{
    command.status = RDMA_COMMAND_PENDING;
    fuzz_put(&w->host, w->command[a], &command, sizeof(command));
    fuzz_write64(&w->host, a, bar(a, RDMA_REG_COMMAND_LOW), w->command[a]);
    for (unsigned i = 0; i < 40 && command.status == RDMA_COMMAND_PENDING; i++) {
        fuzz_world_run(&w->host, SIM_PS_PER_US);
        fuzz_get(&w->host, w->command[a], &command, sizeof(command));
    }
    return command;
}

static void modify(struct rdma_world *w, unsigned a, unsigned q, uint8_t state)
{
    command(w, a,
            (struct rdma_command){ .opcode = RDMA_MODIFY_QP,
                                   .number = w->pair[a][q].number,
                                   .state = state,
                                   .access = 0xf,
                                   .mtu = (uint8_t)(q == 0 ? 5 : 1),
                                   .rnr_timer = 1,
                                   .remote_reads = (uint8_t)(q == 0 ? w->reads : 1),
                                   .destination_qp = w->pair[1 - a][q].number,
                                   .receive_psn = PSN,
                                   .send_psn = PSN,
                                   .lid = (uint16_t)(2 - a),
                                   .timeout = 3,
                                   .retries = 3,
                                   .rnr_retries = (uint8_t)(q == 0 ? 7 : 1),
                                   .reads = (uint8_t)(q == 0 ? w->reads : 1) });
}

/* Queues, keys and queue pairs. */
static void create(struct rdma_world *w, unsigned a)
{
    static const uint8_t zeros[4096];
    const uint64_t eq = (QUEUE_PAGE + 2 * a) * 4096, cq = eq + 4096;
    fuzz_put(&w->host, cq, zeros, sizeof(zeros));
    command(w, a, (struct rdma_command){ .opcode = RDMA_CREATE_EQ, .log_entries = 4, .iova = eq });
    set_register(w, a, RDMA_DOORBELL_EQ(0), 0);
    w->cq[a] = command(w, a,
                       (struct rdma_command){ .opcode = RDMA_CREATE_CQ,
                                              .log_entries = CQ_LOG,
                                              .iova = cq,
                                              .record_iova = cq + 4000 })
                   .number;
    w->pd[a] = command(w, a, (struct rdma_command){ .opcode = RDMA_CREATE_PD }).number;
    w->key[a] = command(w, a,
                        (struct rdma_command){ .opcode = RDMA_CREATE_MR,
                                               .pd = w->pd[a],
                                               .bytes = KEY_BYTES,
                                               .key = 7,
                                               .access = 0xf })
                    .key;
    for (unsigned q = 0; q < QPS; q++) {
        struct pair *pair = &w->pair[a][q];
        const uint64_t at = (QUEUE_PAGE + 2 * ADAPTERS + (a * QPS + q) * PAGES_OF_QP) * 4096;
        *pair = (struct pair){ .sq = at, .rq = at + 4096, .record = at + 8192, .cq = cq, .eq = eq };
        fuzz_put(&w->host, pair->record, zeros, 64);
        pair->number = command(w, a,
                               (struct rdma_command){ .opcode = RDMA_CREATE_QP,
                                                      .log_entries = SQ_LOG,
                                                      .iova = pair->sq,
                                                      .rq_iova = pair->rq,
                                                      .record_iova = pair->record,
                                                      .pd = w->pd[a],
                                                      .send_cq = w->cq[a],
                                                      .receive_cq = w->cq[a],
                                                      .rq_log = RQ_LOG })
                           .number;
    }
}

static void connect_both(struct rdma_world *w)
{
    for (unsigned a = 0; a < ADAPTERS; a++) {
        w->command[a] = (FIRST_DATA - 2 + a) * 4096;
        set_up_function(w, a);
        create(w, a);
    }
    for (unsigned a = 0; a < ADAPTERS; a++)
        for (unsigned q = 0; q < QPS; q++)
            for (uint8_t state = RDMA_QP_INIT; state <= RDMA_QP_RTS; state++)
                modify(w, a, q, state);
}

struct wqe { /* one block */
    struct rdma_wqe_control control;
    struct rdma_wqe_remote remote;
    struct rdma_wqe_data data[2];
};

static void post(struct rdma_world *w, struct pair *pair, const struct wqe *wqe)
{
    const uint64_t slot = pair->sq_tail++ & ((1u << SQ_LOG) - 1);
    fuzz_put(&w->host, pair->sq + slot * 64, wqe, sizeof(*wqe));
}

static void ring(struct rdma_world *w, unsigned a, unsigned q)
{
    set_register(w, a, RDMA_DOORBELL_SQ(w->pair[a][q].number), w->pair[a][q].sq_tail);
}

static void post_receive(struct rdma_world *w, struct pair *pair, const struct rdma_wqe_data *data)
{
    const uint64_t slot = pair->rq_tail++ & ((1u << RQ_LOG) - 1);
    fuzz_put(&w->host, pair->rq + slot * 16, data, sizeof(*data));
    fuzz_put(&w->host, pair->record, &pair->rq_tail, sizeof(pair->rq_tail));
}

/* Takes completions of an adapter; the last one's status or -1. */
static int reap(struct rdma_world *w, unsigned a)
{
    struct pair *pair = &w->pair[a][0];
    struct rdma_cqe cqe;
    int status = -1;
    for (unsigned i = 0; i < 1u << CQ_LOG; i++) {
        const uint64_t slot = pair->cq_consumer & ((1u << CQ_LOG) - 1);
        fuzz_get(&w->host, pair->cq + slot * 64, &cqe, sizeof(cqe));
        if (cqe.owner != (RDMA_CQE_WRITTEN | (~(pair->cq_consumer >> CQ_LOG) & 1)))
            break;
        pair->cq_consumer++;
        status = cqe.status;
    }
    fuzz_put(&w->host, pair->cq + 4000, &pair->cq_consumer, 4);
    return status;
}

/* ---- Drivers that do not --------------------------------------------------------------------- */

/* Lengths: small, of a few packets, of any size. */
static uint32_t length_of(uint64_t bits)
{
    switch (bits & 7) {
    case 0: return 0;
    case 1: return (uint32_t)(bits >> 3);
    case 2: return (uint32_t)(bits >> 3 & 0xffff);
    case 3: return RDMA_WQE_INLINE | (uint32_t)(bits >> 3 & 0x3ff);
    default: return (uint32_t)(bits >> 3 & 0x3fff);
    }
}

static uint32_t key_of(const struct rdma_world *w, unsigned a, uint8_t bits)
{
    return bits < 200 ? w->key[a] : bits < 220 ? bits & 15u : (uint32_t)bits << 8 | (bits & 15u);
}

static void op_post(struct rdma_world *w, unsigned a, const struct fuzz_op *op)
{
    struct pair *pair = &w->pair[a][op->b >> 1 & 1];
    const uint8_t opcode = op->a < 240 ? op->a % 8 : op->a;
    struct wqe wqe = {
        .control = { .opcode = opcode,
                     .n_segments = (uint8_t)(opcode < RDMA_OP_WRITE ? 2 : 3),
                     .index = pair->sq_tail,
                     .qp = pair->number,
                     .flags = op->b >> 3 & 7 },
        .remote = { .va = fuzz_address((uint32_t)(op->y >> 32)),
                    .rkey = key_of(w, 1 - a, (uint8_t)(op->z >> 56)) },
        .data = { { .bytes = length_of(op->x),
                    .lkey = key_of(w, a, (uint8_t)(op->z >> 48)),
                    .va = fuzz_address((uint32_t)op->y) },
                  { .bytes = length_of(op->z & 0xffff), .lkey = w->key[a], .va = op->z & 0xfffff } }
    };
    if (opcode < RDMA_OP_WRITE)
        memmove((uint8_t *)&wqe + offsetof(struct wqe, remote), wqe.data,
                sizeof(wqe.data)); /* no remote segment */
    if (opcode > RDMA_OP_READ) {
        wqe.data[1] = wqe.data[0];
        wqe.data[1].bytes = op->c & 1 ? 8 : wqe.data[0].bytes;
        wqe.remote.va &= op->c & 2 ? UINT64_MAX : ~UINT64_C(7);
        wqe.control.n_segments = 4;
    }
    if (op->c >= 192) /* more or less segments than it takes */
        wqe.control.n_segments = op->c & 63;
    if (op->c >= 248)
        wqe.control.index++;
    post(w, pair, &wqe);
    if (op->b & 64) {
        ring(w, a, op->b >> 1 & 1);
    } else if (op->b & 128) {
        const uint64_t at = bar(a, RDMA_BLUEFLAME(pair->number));
        fuzz_write(&w->host, a, at + (op->c & 4 ? 64 : 0), &wqe, sizeof(wqe));
    }
}

static void op_command(struct rdma_world *w, unsigned a, const struct fuzz_op *op)
{
    const struct rdma_command c = { .opcode = op->a < 250 ? op->a % 14 : op->a,
                                    .log_entries = op->c & 31,
                                    .status = RDMA_COMMAND_PENDING,
                                    .number = op->x & 0x80000000u ? op->x : op->x % 8,
                                    .iova = fuzz_address((uint32_t)op->y),
                                    .rq_iova = fuzz_address((uint32_t)(op->y >> 32)),
                                    .record_iova = fuzz_address((uint32_t)op->y + 1),
                                    .va = op->z & 0xfffff,
                                    .bytes = op->z & 15 ? op->z >> 12 & 0xffff : op->z,
                                    .pd = op->z >> 8 & 3,
                                    .target = op->z >> 10 & 3,
                                    .send_cq = op->z >> 12 & 3,
                                    .receive_cq = op->z >> 14 & 3,
                                    .key = op->z >> 16 & 3 ? w->key[a] : op->z >> 18 & 15,
                                    .access = op->z >> 22 & 31,
                                    .page_log = op->z >> 27 & 31,
                                    .rq_log = op->z >> 32 & 15,
                                    .rq_entry_log = op->z >> 36 & 7,
                                    .state = op->c >> 5 & 7,
                                    .mtu = op->z >> 39 & 7,
                                    .rnr_timer = op->z >> 42 & 31,
                                    .remote_reads = op->z >> 47 & 31,
                                    .destination_qp = op->z >> 52 & 3,
                                    .receive_psn = w->psn,
                                    .send_psn = op->x & 0xffffff,
                                    .lid = (uint16_t)(2 - a),
                                    .timeout = op->z >> 54 & 7,
                                    .retries = op->z >> 57 & 7,
                                    .rnr_retries = op->z >> 60 & 7,
                                    .reads = op->z >> 47 & 31 };
    uint64_t at = w->command[a];
    if (op->b & 128)
        at = fuzz_address((uint32_t)op->y); /* anywhere */
    fuzz_put(&w->host, at, &c, sizeof(c));
    fuzz_write64(&w->host, a, bar(a, RDMA_REG_COMMAND_LOW), at);
    fuzz_world_run(&w->host, (op->b >> 1 & 3) * SIM_PS_PER_US);
}

static void op_doorbell(struct rdma_world *w, unsigned a, const struct fuzz_op *op)
{
    const uint32_t number = op->x & 0x80000000u ? op->x % 4096 : op->x % 8;
    const uint64_t at[] = { RDMA_DOORBELL_SQ(number), RDMA_DOORBELL_RQ(number),
                            RDMA_DOORBELL_CQ(number), RDMA_DOORBELL_EQ(number % 64) };
    if (op->b & 128)
        ring(w, a, op->b >> 1 & 1);
    else
        set_register(w, a, at[op->a % SIM_N_ELEMENTS(at)],
                     (uint32_t)(op->c & 1 ? op->y : op->y & 0x1f));
}

static void op_receive(struct rdma_world *w, unsigned a, const struct fuzz_op *op)
{
    const struct rdma_wqe_data data = { .bytes = length_of(op->x),
                                        .lkey = key_of(w, a, op->c),
                                        .va = fuzz_address((uint32_t)op->y) };
    for (unsigned i = 0; i <= op->a % 8u; i++)
        post_receive(w, &w->pair[a][op->b >> 1 & 1], &data);
    if (op->b & 128)
        set_register(w, a, RDMA_DOORBELL_RQ(w->pair[a][op->b >> 1 & 1].number), 0);
}

static void op_config(struct rdma_world *w, unsigned a, const struct fuzz_op *op)
{
    const unsigned offset[] = { PCI_COMMAND, PCI_BAR0, w->host.functions.pcie + PCIE_DEVCTL,
                                w->host.functions.msix };
    fuzz_set_config(&w->host, a,
                    op->a < 224 ? offset[op->a % SIM_N_ELEMENTS(offset)] : op->y & 0xffc, op->x);
}

static void op_reset(struct rdma_world *w, unsigned a, const struct fuzz_op *op)
{
    switch (op->a % 4) {
    case 0:
        fuzz_set_config(&w->host, a, PCI_COMMAND, PCI_COMMAND_MEMORY | (op->c & 1u) << 2);
        break;
    case 1: fuzz_function_reset(&w->host, a); break;
    case 2: modify(w, a, op->b >> 1 & 1, op->c % 8); break;
    default:
        for (unsigned i = 0; i < ADAPTERS; i++)
            fuzz_function_reset(&w->host, i);
        fuzz_world_wait(&w->host, 200 * SIM_PS_PER_MS);
        connect_both(w);
        break;
    }
}

enum {
    POST,
    COMMAND,
    DOORBELL,
    RECEIVE,
    REAP,
    MEMORY,
    TIME,
    REGISTER,
    CONFIG,
    HOST,
    RESET,
    WIRE,
    PACKET,
    KINDS
};

static void step(struct fuzz_world *host, const struct fuzz_op *op)
{
    struct rdma_world *w = world_of(host);
    const unsigned a = op->b & 1;
    switch (op->kind % KINDS) {
    case POST: op_post(w, a, op); break;
    case COMMAND: op_command(w, a, op); break;
    case DOORBELL: op_doorbell(w, a, op); break;
    case RECEIVE: op_receive(w, a, op); break;
    case REAP: reap(w, a); break;
    case MEMORY: fuzz_op_memory(host, op); break;
    case TIME: fuzz_op_time(host, op); break;
    case REGISTER:
        fuzz_op_access(&w->host, a, bar(a, op->a < 128 ? op->x % 0x50 : op->x % RDMA_BAR_BYTES),
                       op);
        break;
    case CONFIG: op_config(w, a, op); break;
    case HOST: fuzz_op_host(host, op); break;
    case RESET: op_reset(w, a, op); break;
    case WIRE: op_wire(w, op); break;
    default: op_packet(w, a, op); break;
    }
}

static void invent(struct fuzz_op *op, struct fuzz_random *random, int first)
{
    static const uint8_t kinds[] = { POST,    POST,    POST,     POST,    POST,    POST,
                                     COMMAND, COMMAND, DOORBELL, RECEIVE, RECEIVE, RECEIVE,
                                     REAP,    MEMORY,  TIME,     TIME,    TIME,    REGISTER,
                                     CONFIG,  HOST,    RESET,    WIRE,    PACKET,  PACKET };
    (void)first;
    *op = (struct fuzz_op){ .kind = kinds[fuzz_any(random, SIM_N_ELEMENTS(kinds))],
                            .a = (uint8_t)fuzz_any(random, 256),
                            .b = (uint8_t)fuzz_any(random, 256),
                            .c = (uint8_t)fuzz_any(random, 256),
                            .x = fuzz_any32(random) };
    op->y = (uint64_t)fuzz_any_address(random) << 32 | fuzz_any_address(random);
    op->z = fuzz_any(random, UINT64_C(1) << 52) << 12 | fuzz_any(random, 4096);
    if (op->kind == POST) {
        op->a = (uint8_t)(1 + fuzz_any(random, 7));
        op->b |= 64;
        op->c &= (uint8_t)(fuzz_any(random, 4) != 0 ? 0x7f : 0xff);
        op->x = (uint32_t)fuzz_any(random, 1 << 20);
        if (fuzz_any(random, 4) != 0)
            op->z &= UINT64_C(0x7f7fffffffffffff); /* keys that are there */
    } else if (op->kind == PACKET) {
        op->c = (uint8_t)(fuzz_any(random, 4) != 0 ? fuzz_any(random, 3) : op->c);
        op->x = fuzz_any(random, 2) != 0 ? 0 : op->x;
        op->y = (op->y & UINT32_MAX) | fuzz_any(random, 10000) << 32;
    } else if (op->kind == RECEIVE) {
        op->x |= 4;
        op->c &= 0x7f;
    }
}

/* ---- A world --------------------------------------------------------------------------------- */

static void open_middle(struct rdma_world *w, unsigned a)
{
    static const char *const names[ADAPTERS] = { "peer.i0", "peer.i1" };
    const struct ib_wire_params params = { .latency_ps = 50 * SIM_PS_PER_NS };
    struct middle *middle = &w->middle[a];
    struct ib_port *port = cable_port(&ib_cable, w->adapter[a], 0);
    port->name = a == 0 ? "r0.i0" : "r1.i0";
    *middle = (struct middle){ .port = { .model = &w->peer,
                                         .idx = a,
                                         .name = names[a],
                                         .rate_gbit_s_max = 400,
                                         .buffer_bytes = 131072,
                                         .mtu_bytes = IB_MTU_BYTES_MAX,
                                         .receive = middle_receive,
                                         .ready = middle_ready },
                               .world = w };
    middle->last = &middle->first;
    w->wire[a] = ib_wire_new(w->host.sim, a == 0 ? "wire0" : "wire1", &params, port, &middle->port,
                             "test", 1, &w->host.errors);
    FUZZ_ASSERT(w->wire[a] != NULL, "no wire");
}

static struct fuzz_world *open_world(const struct fuzz_op *op)
{
    const struct fuzz_setting settings[] = {
        { "lanes", "16" },
        { "queue_pairs", "8" },
        { "completion_queues", "4" },
        { "event_queues", "2" },
        { "keys", "16" },
        { "protection_domains", "4" },
        { "interrupt_vectors", "2" },
        { "command_latency_us", "0" },
        { "completion_timeout_us", "50" },
        { "reads_in_flight", op->a & 1 ? "1" : "4" },
        { "inline_bytes", op->a & 2 ? "0" : "256" },
        { "wqe_fetch_blocks", op->a & 4 ? "1" : "8" },
        { "wqes_per_queue", op->a & 8 ? "1" : "16" },
        { "receive_prefetch_wqes", op->a & 16 ? "1" : "4" },
        { "translation_entries", op->a & 32 ? "1" : "16" },
        { "tx_buffer_bytes", op->a & 64 ? "4096" : "65536" },
        { "rx_buffer_bytes", op->a & 128 ? "8192" : "65536" },
        { "tx_queue_tlps", op->b & 1 ? "1" : "16" },
        { "read_requests_max", op->b & 2 ? "1" : "32" },
        { NULL, NULL },
    };
    struct rdma_world *w = calloc(1, sizeof(*w));
    w->reads = op->a & 1 ? 1 : 4;
    fuzz_world_open(&w->host);
    w->host.functions = (struct fuzz_functions){
        .n_bars = 1, .bar_bytes = RDMA_BAR_BYTES, .msix_table = RDMA_MSIX_TABLE, .n_vectors = 2
    };
    w->peer = (struct model){ .name = "peer", .sim = w->host.sim, .state = w };
    for (unsigned a = 0; a < ADAPTERS; a++) {
        w->adapter[a] = fuzz_world_device(&w->host, &rdma_ops, a == 0 ? "r0" : "r1", settings);
        fuzz_world_plug(&w->host, w->adapter[a], 0);
        open_middle(w, a);
    }
    for (unsigned a = 0; a < ADAPTERS; a++)
        rdma_ops.start(w->adapter[a]);
    fuzz_find_capabilities(&w->host);
    connect_both(w);
    return &w->host;
}

/* As good as new: each writes to the other's memory. */
static void check_traffic(struct rdma_world *w)
{
    uint8_t page[4096], got[4096] = { 0 };
    connect_both(w);
    for (unsigned i = 0; i < sizeof(page); i++)
        page[i] = (uint8_t)(i * 7 + i / 256);
    for (unsigned a = 0; a < ADAPTERS; a++) {
        const uint64_t from = (FIRST_DATA + 2 * a) * 4096, to = from + 4096;
        const struct wqe wqe = { .control = { .opcode = RDMA_OP_WRITE,
                                              .n_segments = 3,
                                              .qp = w->pair[a][0].number,
                                              .flags = RDMA_WQE_COMPLETION },
                                 .remote = { .va = to, .rkey = w->key[1 - a] },
                                 .data = { { 4096, w->key[a], from } } };
        int status = -1;
        fuzz_put(&w->host, from, page, sizeof(page));
        memset(got, 0, sizeof(got));
        fuzz_put(&w->host, to, got, sizeof(got));
        post(w, &w->pair[a][0], &wqe);
        ring(w, a, 0);
        for (unsigned i = 0; i < 100 && status < 0; i++) {
            fuzz_world_run(&w->host, SIM_PS_PER_US);
            status = reap(w, a);
        }
        fuzz_get(&w->host, to, got, sizeof(got));
        FUZZ_ASSERT(status == RDMA_SUCCESS, "adapter %u: status %d", a, status);
        FUZZ_ASSERT(memcmp(page, got, sizeof(page)) == 0, "adapter %u: other data", a);
    }
}

static void check_idle(struct rdma_world *w)
{
    fuzz_world_drain(&w->host);
    fuzz_world_check(&w->host);
    FUZZ_ASSERT(sim_pool_live(ib_packet_pool(w->host.sim)) == 0, "packets are left");
    for (unsigned a = 0; a < ADAPTERS; a++) {
        FUZZ_ASSERT(ib_port_idle(&w->middle[a].port), "credits towards adapter %u", a);
        FUZZ_ASSERT(ib_port_idle(cable_port(&ib_cable, w->adapter[a], 0)), "credits of it");
    }
}

static void stop_both(struct rdma_world *w)
{
    for (unsigned a = 0; a < ADAPTERS; a++)
        fuzz_function_stop(&w->host, a);
}

static void check_world(struct fuzz_world *host)
{
    struct rdma_world *w = world_of(host);
    w->n_lost = w->n_doubled = w->n_changed = 0;
    for (unsigned a = 0; a < ADAPTERS; a++)
        ib_port_link(&w->middle[a].port, true);
    fuzz_world_run(host, 20 * SIM_PS_PER_US);
    stop_both(w);
    check_idle(w);
    check_traffic(w);
    stop_both(w);
    check_idle(w);
}

static void close_world(struct fuzz_world *host)
{
    struct rdma_world *w = world_of(host);
    for (unsigned a = 0; a < ADAPTERS; a++)
        ib_wire_free(w->wire[a]);
    for (unsigned a = 0; a < ADAPTERS; a++)
        model_free(w->adapter[a]);
    fuzz_world_close(host);
    free(w);
}

const struct fuzz_target fuzz_rdma = { "rdma", open_world, step, check_world, close_world, invent };
