/*
 * Target myri: a Myri-10G adapter with one of its three firmwares: Ethernet with one receive queue
 * or several, or Myrinet Express; and somebody at the other end of the wire who sends what he
 * likes. It has no function-level reset: at the end its firmware is told to begin anew; a packet
 * goes out, and one comes in.
 */
#include "hw/mx_wire.h"
#include "hw/myri_mx.h"
#include "hw/myri_regs.h"
#include "models/ether/ether.h"
#include "models/ether/ether_packet.h"
#include "models/myri/myri.h"
#include "tests/fuzz/fuzz_world.h"

#define SLICES        2u
#define ENDPOINTS     2u
#define VECTORS       8u
#define ENTRIES       1024u /* of a completion queue: a page */
#define QUEUE_BYTES   (ENTRIES * MYRI_SLOT_BYTES)
#define BUFFER_BYTES  2048u /* of a big buffer */
#define SMALL_BYTES   128u  /* longest frame for a small one */
#define SESSION       77u
#define RESPONSE      (UINT64_C(8) * 4096)
#define STATUS        (UINT64_C(9) * 4096)  /* a line of each slice */
#define QUEUE_PAGE    10u                   /* a page of each slice */
#define TABLE         (UINT64_C(14) * 4096) /* of a region: two pages */
#define ENDPOINT_PAGE 16u                   /* 5 pages of each endpoint's memory */
#define EVENTS_PAGE   32u                   /* 32 pages of each endpoint's queues */
#define DATA_PAGE     128u
#define HEAD_BYTES    48u /* of a packet of MX: the largest header */

struct myri_world {
    struct fuzz_world host;
    struct model *nic;
    struct fuzz_peer peer;
    enum myri_firmware firmware;
    bool removed;
    unsigned interrupts; /* offset of the capability */
    uint32_t ack_at;     /* in BAR 0 */
};

static struct myri_world *world_of(struct fuzz_world *host)
{
    return SIM_CONTAINER(host, struct myri_world, host);
}

/* ---- The other end of the wire --------------------------------------------------------------- */

/* The head of a packet for the adapter. */
static struct ether_frame *packet(struct myri_world *w, uint8_t type, uint8_t endpoint,
                                  uint32_t bytes)
{
    const uint64_t mac = myri_mac(w->nic);
    const struct mx_common common = { .type = type,
                                      .destination_endpoint = endpoint,
                                      .session = mx_be32(SESSION) };
    struct ether_frame *frame = ether_frame_new(&w->peer.model);
    memset(frame->header, 0, HEAD_BYTES);
    for (unsigned i = 0; i < 6; i++)
        frame->header[i] = (uint8_t)(mac >> (40 - 8 * i));
    frame->header[11] = 1;
    ether_put16(frame->header + 12, MX_ETHER_TYPE);
    memcpy(frame->header + MX_HEAD_BYTES, &common, sizeof(common));
    frame->header_bytes = HEAD_BYTES;
    frame->payload.bytes = bytes;
    frame->payload.n = bytes != 0;
    frame->payload.extent[0] = (struct payload_extent){ 0, bytes, 0 };
    return frame;
}

/* Type: a; endpoint: b; its fields: c, y, z; bytes of data: x; their number in the header,
 * mostly. */
static void op_frame(struct myri_world *w, const struct fuzz_op *op)
{
    const uint32_t most = myri_mtu_bytes(w->nic) + 14 - HEAD_BYTES;
    const uint32_t bytes = op->c & 1 ? 0 : op->x % (most + 1);
    struct ether_frame *frame = packet(w, (uint8_t)(MX_PACKET_ACK + op->a % 13u),
                                       (uint8_t)(op->b % (ENDPOINTS + 1)), bytes);
    memcpy(frame->header + MX_HEAD_BYTES + 8, &op->y, sizeof(op->y));
    memcpy(frame->header + MX_HEAD_BYTES + 16, &op->z, sizeof(op->z));
    if (op->c & 2)
        ether_put16(frame->header + MX_HEAD_BYTES + 12, (uint16_t)bytes);
    if (op->c & 4)
        ether_put16(frame->header + MX_HEAD_BYTES + 24, (uint16_t)SIM_MIN(bytes, 4096u));
    if (op->c & 64) /* a byte of it is another */
        frame->header[op->y % HEAD_BYTES] = (uint8_t)op->z;
    if (op->c & 128)
        frame->header_bytes = (uint16_t)(14 + op->z % (HEAD_BYTES - 13));
    ether_port_send(&w->peer.end, frame, sim_now(w->host.sim));
}

static void op_wire(struct myri_world *w, const struct fuzz_op *op)
{
    if (op->a & 1)
        ether_port_pause(&w->peer.end, op->b & 1);
    else
        ether_port_link(&w->peer.end, op->b & 3);
}

/* ---- A driver that knows what it does -------------------------------------------------------- */

static void line(struct myri_world *w, uint64_t offset, const void *from)
{
    fuzz_write(&w->host, 0, FUZZ_BAR(0) + offset, from, MYRI_LINE_BYTES);
}

static void send_command(struct myri_world *w, uint32_t type, uint32_t data0, uint32_t data1,
                         uint32_t data2, uint64_t response)
{
    const struct myri_command command = { .command = myri_be32(type),
                                          .data0 = myri_be32(data0),
                                          .data1 = myri_be32(data1),
                                          .data2 = myri_be32(data2),
                                          .response_high = myri_be32((uint32_t)(response >> 32)),
                                          .response_low = myri_be32((uint32_t)response) };
    line(w, MYRI_COMMAND, &command);
}

/* Sends it and waits; its result, or UINT32_MAX. */
static uint32_t command(struct myri_world *w, uint32_t type, uint32_t data0, uint32_t data1,
                        uint32_t data2)
{
    struct myri_response r = { .result = UINT32_MAX };
    fuzz_put(&w->host, RESPONSE, &r, sizeof(r));
    send_command(w, type, data0, data1, data2, RESPONSE);
    for (unsigned i = 0; i < 1000 && r.result == UINT32_MAX; i++) {
        fuzz_world_run(&w->host, SIM_PS_PER_US);
        fuzz_get(&w->host, RESPONSE, &r, sizeof(r));
    }
    return myri_be32(r.result);
}

/* The data that the last command was answered with. */
static uint32_t ask(struct myri_world *w, uint32_t type)
{
    struct myri_response r;
    command(w, type, 0, 0, 0);
    fuzz_get(&w->host, RESPONSE, &r, sizeof(r));
    return myri_be32(r.data);
}

static void vectors(struct myri_world *w)
{
    if (w->firmware == MYRI_FIRMWARE_MULTIQUEUE) {
        fuzz_set_config(&w->host, 0, w->interrupts, (uint32_t)PCI_MSIX_CONTROL_ENABLE << 16);
        for (unsigned v = 0; v < VECTORS; v++) {
            fuzz_write64(&w->host, 0, FUZZ_BAR_2(0) + MYRI_MSIX_TABLE + 16 * v, FUZZ_MSI);
            fuzz_write64(&w->host, 0, FUZZ_BAR_2(0) + MYRI_MSIX_TABLE + 16 * v + 8, v);
        }
    } else {
        fuzz_set_config(&w->host, 0, w->interrupts + PCI_MSI_ADDRESS, (uint32_t)FUZZ_MSI);
        fuzz_set_config(&w->host, 0, w->interrupts, (uint32_t)PCI_MSI_CONTROL_ENABLE << 16);
    }
}

static void set_up_ethernet(struct myri_world *w)
{
    const bool several = w->firmware == MYRI_FIRMWARE_MULTIQUEUE;
    const unsigned n = several ? SLICES : 1;
    command(w, MYRI_SET_BIG_BYTES, BUFFER_BYTES, 0, 0);
    command(w, MYRI_SET_SMALL_BYTES, SMALL_BYTES, 0, 0);
    command(w, MYRI_SET_QUEUE_BYTES, QUEUE_BYTES, 0, 0);
    command(w, MYRI_SET_MTU, myri_mtu_bytes(w->nic) + 14, 0, 0);
    if (several) {
        command(w, MYRI_ENABLE_SLICES, n, MYRI_SLICES_INTERRUPT_EACH, 0);
        command(w, MYRI_SET_TABLE_ENTRIES, SLICES, 0, 0);
        fuzz_write32(&w->host, 0, FUZZ_BAR(0) + ask(w, MYRI_GET_TABLE_OFFSET), 0x01000100);
        command(w, MYRI_SET_STEERING, 1, MYRI_HASH_PORTS, 0);
    }
    for (unsigned s = 0; s < n; s++) {
        command(w, MYRI_SET_QUEUE_DMA, (QUEUE_PAGE + s) * 4096, 0, s);
        command(w, MYRI_SET_STATUS_DMA, (uint32_t)STATUS + 64 * s, 0,
                s << MYRI_STATUS_DMA_SLICE_SHIFT | (uint32_t)sizeof(struct myri_status));
    }
    command(w, MYRI_UP, 0, 0, 0);
    if (w->ack_at == 0)
        w->ack_at = ask(w, MYRI_GET_ACK_OFFSET);
}

static void open_endpoint(struct myri_world *w, unsigned e)
{
    static struct myri_mx_memory memory;
    const uint64_t at = (ENDPOINT_PAGE + 5 * e) * 4096;
    memory = (struct myri_mx_memory){ .session = SESSION };
    for (unsigned q = 0; q < 2; q++)
        memory.queue[q] = (EVENTS_PAGE + 32 * e + 16 * q) * 4096;
    for (unsigned i = 0; i < MX_RING_SLOTS; i++)
        memory.receive[i] = memory.send[i] = (DATA_PAGE + i % 64) * 4096;
    fuzz_put(&w->host, at, &memory, sizeof(memory));
    command(w, MYRI_MX_OPEN, (uint32_t)at, 0, e);
}

static void set_up(struct myri_world *w)
{
    fuzz_set_up_port(&w->host, 0);
    vectors(w);
    fuzz_world_run(&w->host, SIM_PS_PER_US);
    command(w, MYRI_RESET, 0, 0, 0);
    if (w->firmware == MYRI_FIRMWARE_MX) {
        command(w, MYRI_UP, 0, 0, 0);
        for (unsigned e = 0; e < ENDPOINTS; e++)
            open_endpoint(w, e);
    } else {
        set_up_ethernet(w);
    }
}

/* Eight buffers for a slice's ring. */
static void post(struct myri_world *w, unsigned slice, bool big, uint64_t iova, uint32_t step)
{
    struct myri_receive buffer[MYRI_RECEIVES_PER_LINE];
    for (unsigned i = 0; i < MYRI_RECEIVES_PER_LINE; i++, iova += step)
        buffer[i] = (struct myri_receive){ myri_be32((uint32_t)(iova >> 32)),
                                           myri_be32((uint32_t)iova) };
    line(w, (big ? MYRI_RECEIVE_BIG : MYRI_RECEIVE_SMALL) + slice * MYRI_LINE_BYTES, buffer);
}

/* A packet of n segments, the first of headers alone: what follows them goes as marks (blank). */
static void send(struct myri_world *w, unsigned n, uint64_t iova, uint16_t bytes, uint8_t flags)
{
    struct myri_send request[MYRI_SENDS_PER_LINE];
    memset(request, 0, sizeof(request));
    for (unsigned i = 0; i < n; i++)
        request[i] = (struct myri_send){
            .high = myri_be32((uint32_t)(iova >> 32)),
            .low = myri_be32((uint32_t)iova),
            .bytes = myri_be16(i == 0 ? SIM_MIN(bytes, ETHER_HEADER_BYTES_MAX) : bytes),
            .n_segments = i == 0 ? (uint8_t)n : 0,
            .flags = flags | (i == 0 ? MYRI_SEND_FIRST : 0)
        };
    line(w, MYRI_SEND(n), request);
}

static void region(struct myri_world *w, unsigned e, unsigned number, unsigned n, uint64_t iova)
{
    static struct myri_mx_table table;
    table = (struct myri_mx_table){ .n_pieces = n };
    for (unsigned i = 0; i < SIM_MIN(n, MYRI_MX_PIECES_MAX); i++)
        table.piece[i] = (struct myri_mx_piece){ iova + i % 32 * 4096, 4096 };
    fuzz_put(&w->host, TABLE, &table, sizeof(table));
    send_command(w, MYRI_MX_REGION_NEW, (uint32_t)TABLE, 0, MYRI_MX_WHICH(e, number, 1), RESPONSE);
}

/* ---- One that does not ----------------------------------------------------------------------- */

/* Type: a, or x; data: y, z; response: c. */
static void op_command(struct myri_world *w, const struct fuzz_op *op)
{
    static const uint16_t types[] = {
        MYRI_RESET,
        MYRI_GET_VERSION,
        MYRI_SET_QUEUE_DMA,
        MYRI_SET_BIG_BYTES,
        MYRI_SET_SMALL_BYTES,
        MYRI_SET_QUEUE_BYTES,
        MYRI_UP,
        MYRI_DOWN,
        MYRI_SET_MTU,
        MYRI_SET_MAC,
        MYRI_SET_STATUS_DMA,
        MYRI_GET_SLICES_MAX,
        MYRI_ENABLE_SLICES,
        MYRI_SET_TABLE_ENTRIES,
        MYRI_SET_STEERING,
        MYRI_GET_ACK_OFFSET,
        MYRI_MX_OPEN,
        MYRI_MX_CLOSE,
        MYRI_MX_REGION_NEW,
        MYRI_MX_REGION_FREE,
        MYRI_MX_OPEN,
    };
    const uint64_t response = op->c & 128 ? fuzz_address((uint32_t)(op->z >> 32)) : RESPONSE;
    const uint32_t data0 = op->c & 1 ? (uint32_t)op->y : (uint32_t)fuzz_address((uint32_t)op->y);
    send_command(w, op->a < 240 ? types[op->a % SIM_N_ELEMENTS(types)] : op->x,
                 op->c & 2 ? (uint32_t)(op->y & 3) : data0, op->c & 4 ? (uint32_t)(op->y >> 32) : 0,
                 op->c & 8 ? (uint32_t)op->z : (uint32_t)(op->z & 3), response);
    fuzz_world_run(&w->host, (op->c >> 4 & 3) * SIM_PS_PER_US);
}

/* Segments: a; address: x; bytes: y; flags: c. */
static void op_send(struct myri_world *w, const struct fuzz_op *op)
{
    const uint16_t bytes = op->y & 1 ? (uint16_t)(op->y >> 16) : (uint16_t)(1 + op->y % 2048);
    struct myri_send request[MYRI_SENDS_PER_LINE];
    if (op->b < 224) {
        send(w, 1 + op->a % MYRI_SENDS_PER_LINE, fuzz_address(op->x), bytes, op->c & 0xfc);
        return;
    }
    for (unsigned i = 0; i < MYRI_SENDS_PER_LINE; i++) {
        memcpy(&request[i], &op->y, sizeof(op->y));
        memcpy((uint8_t *)&request[i] + 8, &op->z, sizeof(op->z));
        request[i].flags = (uint8_t)(op->c >> i);
        if (request[i].flags & MYRI_SEND_FIRST)
            request[i].bytes &= myri_be16(ETHER_HEADER_BYTES_MAX - 1);
    }
    line(w, MYRI_SEND(op->a) + op->b % 3u * MYRI_LINE_BYTES, request);
}

/* A library's request. Type: a; endpoint: b; what else: y, z; bytes: x. */
static void op_request(struct myri_world *w, const struct fuzz_op *op)
{
    struct myri_mx_request r = { .type = (uint8_t)(MX_PACKET_ACK + op->a % 13u),
                                 .endpoint = (uint8_t)(op->z >> 56),
                                 .nic = { 2, 0, 0, 0, 0, 1 },
                                 .session = SESSION,
                                 .sequence = (uint16_t)op->z,
                                 .bytes = op->x };
    memcpy(r.data, &op->y, sizeof(op->y));
    if (op->c & 1) { /* to itself */
        const uint64_t mac = myri_mac(w->nic);
        for (unsigned i = 0; i < 6; i++)
            r.nic[i] = (uint8_t)(mac >> (40 - 8 * i));
        r.endpoint = (uint8_t)(op->z >> 56 & 1);
    }
    if (r.type == MX_PACKET_MEDIUM && op->c & 2)
        r.medium.fragment_bytes = (uint16_t)(1 + op->x % MX_SLOT_BYTES);
    if (op->c & 4)
        r.large.region = r.pull.region = r.pull.local_region = op->c >> 3 & 3;
    if (op->c & 32)
        r.pull.region_sequence = r.large.region_sequence = 1;
    line(w, MYRI_MX_WINDOWS + (op->b % (ENDPOINTS + 1)) * MYRI_MX_WINDOW_BYTES, &r);
}

/* What slices or libraries have taken. */
static void op_ack(struct myri_world *w, const struct fuzz_op *op)
{
    const uint64_t consumed = MYRI_MX_WINDOWS + op->b % ENDPOINTS * MYRI_MX_WINDOW_BYTES +
                              MYRI_MX_CONSUMED;
    if (w->firmware == MYRI_FIRMWARE_MX)
        fuzz_write32(&w->host, 0, FUZZ_BAR(0) + consumed + (op->c & 4), op->x);
    else
        fuzz_write32(&w->host, 0,
                     FUZZ_BAR(0) + w->ack_at + op->a % (SLICES + 1) * MYRI_ACK_BYTES + (op->c & 4),
                     myri_be32(MYRI_ACK_VALUE));
}

static void op_register(struct myri_world *w, const struct fuzz_op *op)
{
    static const uint32_t windows[] = { MYRI_COMMAND, MYRI_RECEIVE_SMALL, MYRI_RECEIVE_BIG,
                                        MYRI_STRINGS, MYRI_MX_WINDOWS };
    uint64_t at = FUZZ_BAR(0) + op->x % MYRI_BAR_BYTES;
    if (op->a < 128)
        at = FUZZ_BAR(0) + windows[op->a % SIM_N_ELEMENTS(windows)] + (op->x & 0xfc);
    else if (op->a < 192)
        at = FUZZ_BAR(0) + w->ack_at + op->x % 0x1000;
    else if (op->a < 200)
        at = FUZZ_BAR_2(0) + op->x % MYRI_MSIX_BYTES;
    if (at >= FUZZ_BAR(0) + MYRI_SEND(4) && at < FUZZ_BAR(0) + MYRI_RECEIVE_SMALL)
        return; /* op_send() */
    fuzz_op_access(&w->host, 0, at, op);
}

static void op_config(struct myri_world *w, const struct fuzz_op *op)
{
    const unsigned offset[] = { PCI_COMMAND, PCI_BAR0, w->host.functions.pcie + PCIE_DEVCTL,
                                w->interrupts, w->interrupts + PCI_MSI_MASK };
    fuzz_set_config(&w->host, 0,
                    op->a < 224 ? offset[op->a % SIM_N_ELEMENTS(offset)] : op->y & 0xffc, op->x);
}

static void set_up_again(struct fuzz_world *host)
{
    set_up(world_of(host));
}

enum {
    SEND,
    BUFFERS,
    COMMAND,
    REQUEST,
    REGION,
    ACK,
    FRAME,
    WIRE,
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
    struct myri_world *w = world_of(host);
    switch (op->kind % KINDS) {
    case SEND: op_send(w, op); break;
    case BUFFERS:
        post(w, op->b % (SLICES + 1), op->a & 1, fuzz_address(op->x), op->c & 1 ? 0 : BUFFER_BYTES);
        break;
    case COMMAND: op_command(w, op); break;
    case REQUEST: op_request(w, op); break;
    case REGION:
        region(w, op->b % ENDPOINTS, op->a & 3, op->c & 128 ? op->x : 1 + op->c % 9u,
               op->c & 64 ? fuzz_address(op->x) : DATA_PAGE * 4096);
        break;
    case ACK: op_ack(w, op); break;
    case FRAME: op_frame(w, op); break;
    case WIRE: op_wire(w, op); break;
    case MEMORY: fuzz_op_memory(host, op); break;
    case TIME: fuzz_op_time(host, op); break;
    case REGISTER: op_register(w, op); break;
    case CONFIG: op_config(w, op); break;
    case HOST: fuzz_op_host(host, op); break;
    default: w->removed |= fuzz_op_reset(host, w->nic, op, set_up_again); break;
    }
}

static void invent(struct fuzz_op *op, struct fuzz_random *random, int first)
{
    static const uint8_t kinds[] = { SEND,    SEND,    SEND,     BUFFERS, BUFFERS, BUFFERS,
                                     COMMAND, COMMAND, REQUEST,  REQUEST, REQUEST, REQUEST,
                                     REGION,  REGION,  ACK,      ACK,     FRAME,   FRAME,
                                     FRAME,   FRAME,   FRAME,    WIRE,    MEMORY,  TIME,
                                     TIME,    TIME,    REGISTER, CONFIG,  HOST,    RESET };
    *op = (struct fuzz_op){ .kind = kinds[fuzz_any(random, SIM_N_ELEMENTS(kinds))],
                            .a = (uint8_t)fuzz_any(random, 256),
                            .b = (uint8_t)fuzz_any(random, 256),
                            .c = (uint8_t)fuzz_any(random, 256),
                            .x = fuzz_any32(random) };
    op->y = (uint64_t)fuzz_any_address(random) << 32 | fuzz_any_address(random);
    op->z = fuzz_any(random, UINT64_C(1) << 52) << 12 | fuzz_any(random, 4096);
    if (!first && op->kind == TIME)
        op->a = (uint8_t)(6 + fuzz_any(random, 9)); /* 64 ns .. 32 us */
    if (op->kind == FRAME)
        op->c &= (uint8_t)(fuzz_any(random, 3) != 0 ? 0x3f : 0xff);
    else if (op->kind == SEND || op->kind == BUFFERS)
        op->x = fuzz_any_address(random);
}

/* ---- A world --------------------------------------------------------------------------------- */

static struct fuzz_world *open_world(const struct fuzz_op *op)
{
    static const char *const firmwares[] = { "ethernet", "multiqueue", "mx", "mx" };
    const struct fuzz_setting settings[] = {
        { "firmware", firmwares[op->a & 3] },
        { "mtu_bytes", op->a & 4 ? "1500" : "9000" },
        { "flow_control", op->a & 8 ? "false" : "true" },
        { "rx_buffer_bytes", op->a & 8 ? "65536" : "262144" },
        { "tx_buffer_bytes", op->a & 16 ? "16384" : "65536" },
        { "firmware_send_ns", op->a & 32 ? "0" : "750" },
        { "firmware_receive_ns", op->a & 64 ? "0" : "750" },
        { "firmware_mx_ns", op->a & 128 ? "0" : "500" },
        { "command_latency_us", "0" },
        { "tx_queue_tlps", op->b & 2 ? "1" : "16" },
        { "read_requests_max", op->b & 4 ? "1" : "0" },
        { "completion_timeout_us", "50" },
        { NULL, NULL },
    };
    struct myri_world *w = calloc(1, sizeof(*w));
    fuzz_world_open(&w->host);
    w->host.functions = (struct fuzz_functions){ .n_bars = 2, .bar_bytes = MYRI_BAR_BYTES };
    w->nic = fuzz_world_device(&w->host, &myri_ops, "nic", settings);
    w->firmware = myri_firmware(w->nic);
    fuzz_world_plug(&w->host, w->nic, 0);
    fuzz_peer_plug(&w->peer, &w->host, w->nic, 10, myri_mtu_bytes(w->nic));
    myri_ops.start(w->nic);
    w->host.functions.pcie = fuzz_capability(&w->host, PCI_CAP_ID_PCIE);
    w->interrupts = fuzz_capability(
        &w->host, w->firmware == MYRI_FIRMWARE_MULTIQUEUE ? PCI_CAP_ID_MSIX : PCI_CAP_ID_MSI);
    w->host.functions.msix = w->interrupts;
    set_up(w);
    w->host.blank = true;
    return &w->host;
}

/* As good as new: one packet goes out, and one comes in. */
static void check_ethernet(struct myri_world *w)
{
    struct myri_slot slot = { 0 };
    uint8_t headers[64] = { 2, 0, 0, 0, 0, 1 };
    const uint64_t before = w->peer.n_frames;
    fuzz_put(&w->host, DATA_PAGE * 4096, headers, sizeof(headers));
    send(w, 1, DATA_PAGE * 4096, 60, 0);
    fuzz_world_run(&w->host, 10 * SIM_PS_PER_US);
    FUZZ_ASSERT(w->peer.n_frames == before + 1, "%llu packets",
                (unsigned long long)(w->peer.n_frames - before));
    fuzz_put(&w->host, QUEUE_PAGE * 4096, &slot, sizeof(slot));
    post(w, 0, false, DATA_PAGE * 4096, BUFFER_BYTES);
    ether_port_send(&w->peer.end, packet(w, MX_PACKET_ACK, 0, 10), sim_now(w->host.sim));
    fuzz_world_run(&w->host, 10 * SIM_PS_PER_US);
    fuzz_get(&w->host, QUEUE_PAGE * 4096, &slot, sizeof(slot));
    FUZZ_ASSERT(myri_be16(slot.bytes) == HEAD_BYTES + 10, "a slot of %u bytes",
                myri_be16(slot.bytes));
}

static void check_mx(struct myri_world *w)
{
    const struct myri_mx_request request = { .type = MX_PACKET_ACK,
                                             .nic = { 2, 0, 0, 0, 0, 1 },
                                             .session = SESSION };
    const uint64_t events = EVENTS_PAGE * 4096;
    const uint64_t before = w->peer.n_frames;
    uint8_t event[MX_EVENT_BYTES] = { 0 }, none[MX_EVENT_BYTES] = { 0 };
    line(w, MYRI_MX_WINDOWS, &request);
    fuzz_world_run(&w->host, 10 * SIM_PS_PER_US);
    FUZZ_ASSERT(w->peer.n_frames == before + 1, "%llu packets",
                (unsigned long long)(w->peer.n_frames - before));
    fuzz_put(&w->host, events, none, sizeof(none));
    ether_port_send(&w->peer.end, packet(w, MX_PACKET_ACK, 0, 0), sim_now(w->host.sim));
    fuzz_world_run(&w->host, 10 * SIM_PS_PER_US);
    fuzz_get(&w->host, events, event, sizeof(event));
    FUZZ_ASSERT(memcmp(event, none, sizeof(event)) != 0, "no event");
}

static void check_idle(struct myri_world *w)
{
    fuzz_world_drain(&w->host);
    fuzz_world_check(&w->host);
    FUZZ_ASSERT(ether_frames_live(w->host.sim) == 0, "frames are left");
}

static void check_world(struct fuzz_world *host)
{
    struct myri_world *w = world_of(host);
    ether_port_link(&w->peer.end, true);
    ether_port_pause(&w->peer.end, false);
    fuzz_world_run(host, 20 * SIM_PS_PER_US);
    fuzz_function_stop(host, 0);
    fuzz_world_drain(host);
    if (w->removed) { /* a packet whose last segments never come stays in it */
        fuzz_world_check(host);
        return;
    }
    set_up(w); /* what it had begun goes on with Bus Master, and ends */
    if (w->firmware == MYRI_FIRMWARE_MX)
        check_mx(w);
    else
        check_ethernet(w);
    check_idle(w);
}

static void close_world(struct fuzz_world *host)
{
    struct myri_world *w = world_of(host);
    ether_wire_free(w->peer.wire);
    model_free(w->nic);
    fuzz_world_close(host);
    free(w);
}

const struct fuzz_target fuzz_myri = { "myri", open_world, step, check_world, close_world, invent };
