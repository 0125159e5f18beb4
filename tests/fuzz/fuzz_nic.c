/*
 * Target nic: a card with two physical and four virtual functions, their drivers, and somebody at
 * the other end of the wire who sends what he likes. At the end both ports are reset and set up
 * anew; a packet goes out by each, and one comes in.
 */
#include "hw/nic_regs.h"
#include "models/ether/ether_packet.h"
#include "models/nic/nic.h"
#include "tests/fuzz/fuzz_world.h"

#define PORTS          2u
#define N_VFS          2u
#define OF_PORT        (1 + N_VFS)
#define FUNCTIONS      (PORTS * OF_PORT)
#define RQS            2u /* the second merges (LRO) */
#define QUEUES         4u /* of each kind */
#define LOG            4u /* entries of all rings */
#define FIRST_PAGE     8u /* memory: from here on pages of the functions, */
#define FUNCTION_PAGES 16u
#define DATA_PAGE      (FIRST_PAGE + FUNCTIONS * FUNCTION_PAGES) /* then data */
#define BUFFER_BYTES   2048u
#define HEADERS        54u /* Ethernet, IPv4, TCP */

struct function { /* as its driver knows it */
    uint64_t command, eq, cq[2], sq, rq[RQS], record;
    uint16_t producer;
    uint32_t posted[RQS];
    uint32_t consumer[2];
};

struct nic_world {
    struct fuzz_world host;
    struct model *nic;
    struct fuzz_peer peer;
    struct function function[FUNCTIONS];
    uint32_t sequence;
};

static struct nic_world *world_of(struct fuzz_world *host)
{
    return SIM_CONTAINER(host, struct nic_world, host);
}

static void set_register(struct nic_world *w, unsigned f, uint64_t offset, uint64_t value)
{
    fuzz_write64(&w->host, fuzz_port_of(&w->host, f), fuzz_bar_of(&w->host, f) + offset, value);
}

/* ---- The other end of the wire --------------------------------------------------------------- */

static uint64_t mac_of(const struct nic_world *w, unsigned f)
{
    const unsigned port = fuzz_port_of(&w->host, f), vf = f - fuzz_physical(&w->host, port);
    return vf == 0 ? nic_function_mac(w->nic, port) : nic_vf_mac(w->nic, port, vf - 1);
}

/* TCP of one of a few flows. */
static void headers(uint8_t *h, uint64_t to_mac, unsigned flow, uint32_t sequence, uint32_t bytes,
                    uint8_t flags)
{
    memset(h, 0, HEADERS);
    for (unsigned i = 0; i < 6; i++)
        h[i] = (uint8_t)(to_mac >> (40 - 8 * i));
    h[11] = 1;
    ether_put16(h + 12, ETHER_TYPE_IPV4);
    h[14] = 0x45;
    ether_put16(h + 16, (uint16_t)(HEADERS - 14 + bytes));
    h[22] = 64;
    h[23] = IP_PROTOCOL_TCP;
    ether_put32(h + 26, 0x0a000001);
    ether_put32(h + 30, 0x0a000002);
    ether_put16(h + 34, (uint16_t)(1000 + flow));
    ether_put16(h + 36, 80);
    ether_put32(h + 38, sequence);
    h[46] = 0x50;
    h[47] = flags;
}

static void send_frame(struct nic_world *w, struct ether_frame *frame)
{
    struct ether_packet packet;
    ether_packet_parse(frame->header, frame->header_bytes, &packet);
    if (packet.ipv4)
        ether_ipv4_checksum_set(frame->header, &packet);
    if (packet.l4)
        ether_l4_checksum_set(frame, &packet);
    ether_port_send(&w->peer.end, frame, sim_now(w->host.sim));
}

static struct ether_frame *frame_of(struct nic_world *w, unsigned f, unsigned flow, uint32_t bytes,
                                    uint8_t flags)
{
    struct ether_frame *frame = ether_frame_new(&w->peer.model);
    headers(frame->header, mac_of(w, f), flow, w->sequence, bytes, flags);
    frame->header_bytes = HEADERS;
    frame->payload.bytes = bytes;
    frame->payload.n = bytes != 0;
    frame->payload.extent[0] = (struct payload_extent){ payload_mark(1, w->sequence), bytes, 0 };
    w->sequence += bytes;
    return frame;
}

/* Function: b; flow, flags: a, c; bytes: x; a changed byte of the headers: y; their length: z. */
static void op_frame(struct nic_world *w, const struct fuzz_op *op)
{
    const uint32_t mtu = nic_mtu_bytes(w->nic);
    uint32_t bytes = op->x % (mtu - HEADERS + 15);
    if (op->a & 128) /* as large as they come: merged if they follow each other */
        bytes = mtu - HEADERS + 14;
    struct ether_frame *frame = frame_of(w, op->b % FUNCTIONS, op->a & 3, bytes,
                                         op->c & 1 ? TCP_FLAG_ACK : op->c);
    if (op->y & 1)
        frame->header[(op->y >> 8 & 0xff) % HEADERS] = (uint8_t)(op->y >> 16);
    if (op->y & 2)
        frame->header[(op->y >> 24 & 0xff) % HEADERS] = (uint8_t)(op->y >> 32);
    if (op->z & 1)
        frame->header_bytes = (uint16_t)(14 + (op->z >> 8 & 0xff) % (HEADERS - 14));
    if (op->z & 2)
        w->sequence += (uint32_t)(op->z >> 16 & 0xffff);
    send_frame(w, frame);
}

static void op_wire(struct nic_world *w, const struct fuzz_op *op)
{
    if (op->a & 1)
        ether_port_pause(&w->peer.end, op->b & 1);
    else
        ether_port_link(&w->peer.end, op->b & 3);
}

/* ---- A driver that knows what it does -------------------------------------------------------- */

static uint8_t command(struct nic_world *w, unsigned f, struct nic_command command)
{
    const uint64_t at = w->function[f].command;
    command.status = NIC_COMMAND_PENDING;
    fuzz_put(&w->host, at, &command, sizeof(command));
    set_register(w, f, NIC_REG_COMMAND_LOW, at);
    for (unsigned i = 0; i < 20 && command.status == NIC_COMMAND_PENDING; i++) {
        fuzz_world_run(&w->host, SIM_PS_PER_US);
        fuzz_get(&w->host, at, &command, sizeof(command));
    }
    return command.status;
}

static void forget(struct nic_world *w, unsigned f)
{
    static const uint8_t zeros[4096];
    const uint64_t at = (FIRST_PAGE + (uint64_t)f * FUNCTION_PAGES) * 4096;
    w->function[f] = (struct function){ .command = at,
                                        .eq = at + 4096,
                                        .cq = { at + 8192, at + 12288 },
                                        .sq = at + 16384,
                                        .rq = { at + 20480, at + 24576 },
                                        .record = at + 28672 };
    fuzz_put(&w->host, w->function[f].cq[0], zeros, sizeof(zeros));
    fuzz_put(&w->host, w->function[f].cq[1], zeros, sizeof(zeros));
    fuzz_put(&w->host, w->function[f].record, zeros, 64);
}

/* Queues of a function: 0 to send; 0 and 1 to receive, by hash. */
static void begin(struct nic_world *w, unsigned f)
{
    const uint16_t table[2] = { 0, 1 };
    forget(w, f);
    const struct function *d = &w->function[f];
    const struct nic_command commands[] = {
        { .opcode = NIC_CREATE_EQ, .log_entries = LOG, .iova = d->eq },
        { .opcode = NIC_CREATE_CQ, .log_entries = LOG, .iova = d->cq[0] },
        { .opcode = NIC_CREATE_CQ,
          .queue = 1,
          .log_entries = LOG,
          .iova = d->cq[1],
          .moderation_us = 2,
          .moderation_count = 4 },
        { .opcode = NIC_CREATE_SQ, .log_entries = LOG, .iova = d->sq },
        { .opcode = NIC_CREATE_RQ,
          .target = 1,
          .log_entries = LOG,
          .iova = d->rq[0],
          .record_iova = d->record },
        { .opcode = NIC_CREATE_RQ,
          .queue = 1,
          .target = 1,
          .log_entries = LOG,
          .iova = d->rq[1],
          .record_iova = d->record + 8,
          .flags = NIC_COMMAND_LRO },
        { .opcode = NIC_SET_RSS, .log_entries = 1, .iova = d->record + 16 },
    };
    fuzz_put(&w->host, d->record + 16, table, sizeof(table));
    for (unsigned i = 0; i < SIM_N_ELEMENTS(commands); i++)
        command(w, f, commands[i]);
    set_register(w, f, NIC_DOORBELL_EQ(0), 0);
    for (unsigned q = 0; q < 2; q++)
        set_register(w, f, NIC_DOORBELL_CQ(q), 0);
}

static void begin_port(struct nic_world *w, unsigned p)
{
    fuzz_set_up_port(&w->host, p);
    fuzz_world_run(&w->host, SIM_PS_PER_US);
    begin(w, fuzz_physical(&w->host, p));
}

static void post(struct nic_world *w, unsigned f, unsigned q, const struct nic_wqe_data *data)
{
    struct function *d = &w->function[f];
    const uint64_t slot = d->posted[q]++ & ((1u << LOG) - 1);
    fuzz_put(&w->host, d->rq[q] + slot * NIC_RQ_WQE_BYTES, data, sizeof(*data));
    fuzz_put(&w->host, d->record + 8 * q, &d->posted[q], sizeof(d->posted[q]));
}

/* Takes completions; the opcode of the last, 0 if there was none. */
static unsigned reap(struct nic_world *w, unsigned f, unsigned q)
{
    struct function *d = &w->function[f];
    unsigned opcode = 0;
    for (unsigned i = 0; i < 1u << LOG; i++) {
        struct nic_cqe cqe;
        const uint64_t slot = d->consumer[q] & ((1u << LOG) - 1);
        fuzz_get(&w->host, d->cq[q] + slot * sizeof(cqe), &cqe, sizeof(cqe));
        if (cqe.op_own >> 4 == 0 || (cqe.op_own & 1) != (~(d->consumer[q] >> LOG) & 1))
            break;
        d->consumer[q]++;
        opcode = cqe.op_own >> 4;
    }
    set_register(w, f, NIC_DOORBELL_CQ(q), d->consumer[q] & 0xffffff);
    return opcode;
}

struct wqe {
    struct nic_wqe_control control;
    struct nic_wqe_ethernet ethernet;
    uint8_t rest[NIC_WQE_BLOCK_BYTES * NIC_WQE_BLOCKS_MAX - 32];
};

/* Puts the first `blocks` blocks into the ring. */
static void push(struct nic_world *w, unsigned f, const struct wqe *wqe, unsigned blocks)
{
    struct function *d = &w->function[f];
    for (unsigned i = 0; i < blocks; i++) {
        const uint64_t slot = d->producer++ & ((1u << LOG) - 1);
        fuzz_put(&w->host, d->sq + slot * 64, (const uint8_t *)wqe + 64 * (size_t)i, 64);
    }
}

/* The length of the headers in units of 16 bytes with the two segments before them; and of a WQE
 * with n data segments in blocks. */
#define HEADER_UNITS (2 + (HEADERS - 2 + 15) / 16)
static unsigned blocks_of(unsigned units)
{
    return (units + 3) / 4;
}

static struct wqe wqe_of(struct nic_world *w, unsigned f, uint8_t opcode, uint16_t segment_bytes,
                         const struct nic_wqe_data *data, unsigned n)
{
    struct wqe wqe = { .control = { .opcode = opcode,
                                    .n_segments = (uint8_t)(HEADER_UNITS + n),
                                    .index = w->function[f].producer,
                                    .flags = NIC_WQE_COMPLETION },
                       .ethernet = { .checksum = NIC_CHECKSUM_L3 | NIC_CHECKSUM_L4,
                                     .segment_bytes = segment_bytes,
                                     .inline_bytes = HEADERS } };
    uint8_t *at = (uint8_t *)&wqe;
    headers(at + offsetof(struct wqe, ethernet.inline_start), UINT64_C(0x020000000001), 0, 0,
            data[0].bytes, TCP_FLAG_ACK);
    memcpy(at + (size_t)16 * HEADER_UNITS, data, n * sizeof(*data));
    return wqe;
}

static void ring(struct nic_world *w, unsigned f)
{
    set_register(w, f, NIC_DOORBELL_SQ(0), w->function[f].producer);
}

/* ---- One that does not ----------------------------------------------------------------------- */

static uint32_t length_of(uint64_t bits)
{
    switch (bits & 3) {
    case 0: return (uint32_t)(bits >> 2 & 0x3f);
    case 1: return (uint32_t)(bits >> 2);
    default: return (uint32_t)(bits >> 2 & 0xfff);
    }
}

static void op_send(struct nic_world *w, unsigned f, const struct fuzz_op *op)
{
    struct nic_wqe_data data[8];
    const unsigned n = op->a & 7;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(data); i++)
        data[i] = (struct nic_wqe_data){ .bytes = length_of(op->x >> i),
                                         .function_hint = (uint8_t)(op->z >> (8 * i) & 3),
                                         .iova = fuzz_address((uint32_t)op->y + i) };
    const uint8_t opcode = op->a >> 3 & 3 ? (op->a >> 3 & 3) % 2 + 1 : op->c & 3;
    struct wqe wqe = wqe_of(w, f, opcode, opcode == NIC_OP_TSO ? op->y >> 32 & 0x7ff : 0, data, n);
    unsigned blocks = blocks_of(HEADER_UNITS + n);
    if (op->c >= 200) { /* what makes no sense */
        ((uint8_t *)&wqe)[op->y >> 48 & 63] = (uint8_t)(op->y >> 56);
        if (op->c >= 240)
            blocks = 1 + op->y % NIC_WQE_BLOCKS_MAX;
    }
    push(w, f, &wqe, blocks);
    if (op->a & 32)
        ring(w, f);
}

static void op_command(struct nic_world *w, unsigned f, const struct fuzz_op *op)
{
    const struct nic_command c = { .opcode = op->a < 250 ? op->a % 18 : op->a,
                                   .status = NIC_COMMAND_PENDING,
                                   .log_entries = op->c & 15,
                                   .queue = op->x & 15 ? op->x & 3 : (uint16_t)(op->x >> 16),
                                   .target = op->x & 0xf0 ? op->x >> 8 & 3 : (uint16_t)op->y,
                                   .iova = fuzz_address((uint32_t)op->y),
                                   .record_iova = fuzz_address((uint32_t)(op->y >> 32)),
                                   .moderation_us = op->z & 15,
                                   .moderation_count = op->z >> 4 & 7,
                                   .moderation_mode = op->z >> 7 & 3 ? op->z >> 8 & 1 : op->c,
                                   .flags = op->z >> 9 & 1,
                                   .n_vfs = op->z >> 10 & 3,
                                   .source_ip = 0x0a000001,
                                   .destination_ip = 0x0a000002,
                                   .source_port = (uint16_t)(1000 + (op->z >> 12 & 3)),
                                   .destination_port = 80,
                                   .protocol = op->z >> 14 & 3 ? IP_PROTOCOL_TCP : 0,
                                   .mac = { 2, op->z >> 16 & 3, 0, 0, 0, op->z >> 18 & 3 } };
    const uint64_t at = op->c & 128 ? fuzz_address((uint32_t)(op->z >> 32))
                                    : w->function[f].command;
    fuzz_put(&w->host, at, &c, sizeof(c));
    set_register(w, f, NIC_REG_COMMAND_LOW, at);
    fuzz_world_run(&w->host, (op->c >> 5 & 3) * SIM_PS_PER_US);
}

static void op_receive(struct nic_world *w, unsigned f, const struct fuzz_op *op)
{
    struct nic_wqe_data data = { .bytes = op->c < 200 ? BUFFER_BYTES : length_of(op->x),
                                 .iova = fuzz_address((uint32_t)op->y) };
    for (unsigned i = 0; i <= op->a % 16u; i++, data.iova += op->c < 200 ? BUFFER_BYTES : 0)
        post(w, f, op->c & 1, &data);
}

static void op_doorbell(struct nic_world *w, unsigned f, const struct fuzz_op *op)
{
    const uint32_t number = op->c & 0x80 ? op->x % 1024 : op->x % QUEUES;
    const uint64_t at[] = { NIC_DOORBELL_SQ(number), NIC_DOORBELL_CQ(number),
                            NIC_DOORBELL_EQ(number) };
    if (op->a & 0x80)
        ring(w, f);
    else
        set_register(w, f, at[op->a % SIM_N_ELEMENTS(at)], op->c & 1 ? op->y : op->y & 31);
}

static void op_config(struct nic_world *w, unsigned f, const struct fuzz_op *op)
{
    const struct fuzz_functions *d = &w->host.functions;
    const unsigned offset[] = { PCI_COMMAND,
                                PCI_BAR0,
                                d->pcie + PCIE_DEVCTL,
                                d->msix,
                                d->sriov + PCI_SRIOV_CONTROL,
                                d->sriov + PCI_SRIOV_NUM_VFS,
                                d->sriov + PCI_SRIOV_BAR0 };
    fuzz_set_config(&w->host, f,
                    op->a < 224 ? offset[op->a % SIM_N_ELEMENTS(offset)] : op->y & 0xffc, op->x);
}

static void op_reset(struct nic_world *w, unsigned f, const struct fuzz_op *op)
{
    const unsigned port = fuzz_port_of(&w->host, f);
    switch (op->a % 4) {
    case 0:
        fuzz_set_config(&w->host, f, PCI_COMMAND, PCI_COMMAND_MEMORY | (op->c & 1u) << 2);
        break;
    case 1: fuzz_function_reset(&w->host, f); break;
    case 2:
        fuzz_function_reset(&w->host, f);
        fuzz_world_wait(&w->host, 200 * SIM_PS_PER_MS);
        begin_port(w, port);
        break;
    default:
        if (fuzz_is_virtual(&w->host, f))
            command(w, fuzz_physical(&w->host, port),
                    (struct nic_command){ .opcode = NIC_ENABLE_VFS, .n_vfs = N_VFS });
        begin(w, f);
        break;
    }
}

enum {
    SEND,
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
    FRAME,
    WIRE,
    KINDS
};

static void step(struct fuzz_world *host, const struct fuzz_op *op)
{
    struct nic_world *w = world_of(host);
    const unsigned f = op->b % FUNCTIONS;
    const uint64_t at = op->a < 128 ? op->x % 0x50 : op->x % NIC_BAR_BYTES;
    switch (op->kind % KINDS) {
    case SEND: op_send(w, f, op); break;
    case COMMAND: op_command(w, f, op); break;
    case DOORBELL: op_doorbell(w, f, op); break;
    case RECEIVE: op_receive(w, f, op); break;
    case REAP: reap(w, f, op->a & 1); break;
    case MEMORY: fuzz_op_memory(host, op); break;
    case TIME: fuzz_op_time(host, op); break;
    case REGISTER:
        fuzz_op_access(host, fuzz_port_of(host, f), fuzz_bar_of(host, f) + at, op);
        break;
    case CONFIG: op_config(w, f, op); break;
    case HOST: fuzz_op_host(host, op); break;
    case RESET: op_reset(w, f, op); break;
    case FRAME: op_frame(w, op); break;
    default: op_wire(w, op); break;
    }
}

static void invent(struct fuzz_op *op, struct fuzz_random *random, int first)
{
    static const uint8_t kinds[] = { SEND,     SEND,    SEND,     SEND,    SEND,    COMMAND,
                                     COMMAND,  COMMAND, DOORBELL, RECEIVE, RECEIVE, RECEIVE,
                                     REAP,     REAP,    MEMORY,   TIME,    TIME,    TIME,
                                     REGISTER, CONFIG,  HOST,     RESET,   FRAME,   FRAME,
                                     FRAME,    FRAME,   FRAME,    WIRE };
    (void)first;
    *op = (struct fuzz_op){ .kind = kinds[fuzz_any(random, SIM_N_ELEMENTS(kinds))],
                            .a = (uint8_t)fuzz_any(random, 256),
                            .b = (uint8_t)fuzz_any(random, 256),
                            .c = (uint8_t)fuzz_any(random, 256),
                            .x = fuzz_any32(random) };
    op->y = (uint64_t)fuzz_any_address(random) << 32 | fuzz_any_address(random);
    op->z = fuzz_any(random, UINT64_C(1) << 52) << 12 | fuzz_any(random, 4096);
    if (fuzz_any(random, 2) != 0) /* mostly the physical functions */
        op->b = (uint8_t)(OF_PORT * fuzz_any(random, PORTS));
    if (op->kind == SEND) {
        op->a |= 32;
        op->x = (uint32_t)fuzz_any(random, 1 << 16) << 2 | 2;
        op->z &= fuzz_any(random, 2) != 0 ? 0 : UINT64_MAX;
    } else if (op->kind == FRAME) {
        op->y &= fuzz_any(random, 3) != 0 ? 0 : UINT64_MAX;
        op->z &= fuzz_any(random, 3) != 0 ? 0 : UINT64_MAX;
        op->c |= (uint8_t)(fuzz_any(random, 2));
    }
}

/* ---- A world --------------------------------------------------------------------------------- */

static struct fuzz_world *open_world(const struct fuzz_op *op)
{
    const struct fuzz_setting settings[] = {
        { "functions", "2" },
        { "vfs", "2" },
        { "lanes", "8" },
        { "queues", "4" },
        { "arfs_entries", op->a & 1 ? "1" : "4" },
        { "switch_entries", "16" },
        { "firmware", op->a & 2 ? "octonic" : "standard" },
        { "mtu_bytes", op->a & 4 ? "9000" : "1500" },
        { "flow_control", op->a & 8 ? "false" : "true" },
        { "rx_buffer_bytes", (op->a & 20) == 16 ? "65536" : "262016" },
        { "tx_buffer_bytes", op->a & 32 ? "20000" : "65536" },
        { "wqe_prefetch_blocks", op->a & 64 ? "8" : "32" },
        { "rq_prefetch_wqes", op->a & 128 ? "1" : "16" },
        { "lro_sessions", op->b & 1 ? "1" : "4" },
        { "tx_queue_tlps", op->b & 2 ? "1" : "16" },
        { "read_requests_max", op->b & 4 ? "5" : "32" },
        { "command_latency_us", "0" },
        { "completion_timeout_us", "50" },
        { NULL, NULL },
    };
    struct nic_world *w = calloc(1, sizeof(*w));
    fuzz_world_open(&w->host);
    w->host.functions = (struct fuzz_functions){ .n_vfs = N_VFS,
                                                 .n_bars = 1,
                                                 .bar_bytes = NIC_BAR_BYTES,
                                                 .msix_table = NIC_MSIX_TABLE,
                                                 .n_vectors = 2 };
    w->nic = fuzz_world_device(&w->host, &nic_ops, "nic", settings);
    for (unsigned p = 0; p < PORTS; p++)
        fuzz_world_plug(&w->host, w->nic, p);
    fuzz_peer_plug(&w->peer, &w->host, w->nic, 100, nic_mtu_bytes(w->nic));
    nic_ops.start(w->nic);
    fuzz_find_capabilities(&w->host);
    for (unsigned f = 0; f < FUNCTIONS; f++)
        forget(w, f);
    for (unsigned p = 0; p < PORTS; p++)
        begin_port(w, p);
    w->host.blank = true;
    return &w->host;
}

static void await_completion(struct nic_world *w, unsigned f, unsigned q, unsigned wanted)
{
    unsigned opcode = 0;
    for (unsigned i = 0; i < 20 && opcode == 0; i++) {
        fuzz_world_run(&w->host, SIM_PS_PER_US);
        opcode = reap(w, f, q);
    }
    FUZZ_ASSERT(opcode == wanted, "function %u: completion %u, expected %u", f, opcode, wanted);
}

/* As good as new. */
static void check_traffic(struct nic_world *w, unsigned p)
{
    const unsigned f = fuzz_physical(&w->host, p);
    const struct nic_wqe_data data = { .bytes = 1000, .iova = DATA_PAGE * 4096 };
    const struct nic_wqe_data buffer = { .bytes = BUFFER_BYTES, .iova = (DATA_PAGE + 1) * 4096 };
    begin_port(w, p);
    const uint64_t before = w->peer.n_frames;
    const struct wqe wqe = wqe_of(w, f, NIC_OP_SEND, 0, &data, 1);
    push(w, f, &wqe, blocks_of(HEADER_UNITS + 1));
    ring(w, f);
    await_completion(w, f, 0, NIC_CQE_SENT);
    fuzz_world_run(&w->host, SIM_PS_PER_US);
    FUZZ_ASSERT(w->peer.n_frames == before + 1, "function %u: %llu packets", f,
                (unsigned long long)(w->peer.n_frames - before));
    /* Octonic: all flows without a rule go to this one. */
    command(w, f,
            (struct nic_command){
                .opcode = NIC_SET_SWITCH, .target = (uint16_t)p, .mac = { 2, 9, 9, 9, 9, 9 } });
    for (unsigned q = 0; q < RQS; q++)
        post(w, f, q, &buffer);
    struct ether_frame *frame = frame_of(w, f, 40, 100, TCP_FLAG_ACK | TCP_FLAG_PSH);
    headers(frame->header, mac_of(w, f), 40, 0, 100, TCP_FLAG_ACK | TCP_FLAG_PSH);
    send_frame(w, frame);
    await_completion(w, f, 1, NIC_CQE_RECEIVED);
}

static void check_idle(struct nic_world *w)
{
    fuzz_world_drain(&w->host);
    fuzz_world_check(&w->host);
    FUZZ_ASSERT(ether_frames_live(w->host.sim) == 0, "frames are left");
}

static void check_world(struct fuzz_world *host)
{
    struct nic_world *w = world_of(host);
    ether_port_link(&w->peer.end, true);
    ether_port_pause(&w->peer.end, false);
    fuzz_world_run(host, 20 * SIM_PS_PER_US);
    for (unsigned p = 0; p < PORTS; p++)
        fuzz_function_stop(host, fuzz_physical(host, p));
    check_idle(w);
    for (unsigned p = 0; p < PORTS; p++)
        check_traffic(w, p);
    check_idle(w);
}

static void close_world(struct fuzz_world *host)
{
    struct nic_world *w = world_of(host);
    ether_wire_free(w->peer.wire);
    model_free(w->nic);
    fuzz_world_close(host);
    free(w);
}

const struct fuzz_target fuzz_nic = { "nic", open_world, step, check_world, close_world, invent };
