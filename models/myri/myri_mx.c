/*
 * The firmware of Myrinet Express of myri.myri10g.
 *
 * Models: endpoints whose processes give requests by lines in windows of their own; packets of the
 *   protocol (hw/mx_wire.h), built from requests, and sent from the request, the ring or a region;
 *   received ones put straight into the ring or region of the process, behind them an event into
 *   its queue; refusal of packets for nobody. Large messages: myri_mx_pull.c.
 * Does not model: the protocol's reliability (the library's, as for Open-MX: it sends again what
 *   nobody acknowledges), raw endpoints, the mapper, interrupts for processes that sleep (ours
 *   poll).
 * Timing: the processor's time firmware_mx for each packet sent or received; the rest is that of
 *   myri_send.c and myri_receive.c. No interrupt: the event is the last write.
 * Sources: docs/sources.md#e1; Myricom's "Myrinet Express (MX): a high-performance, low-level,
 *   message-passing interface" for what it does; Open-MX 0.9.2, which emulates it.
 */
#include "models/myri/myri_mx.h"

#include <stdlib.h>
#include <string.h>

/* ---- Endpoints ------------------------------------------------------------------------------- */

struct mx_fw_endpoint *mx_fw_open_endpoint(const struct myri *nic, uint8_t id)
{
    struct mx_fw_endpoint *endpoint = nic->mx->endpoint[id];
    return endpoint != NULL && endpoint->open && !endpoint->closing ? endpoint : NULL;
}

bool mx_fw_has_room(const struct mx_fw_endpoint *endpoint, unsigned queue)
{
    return endpoint->written[queue] - endpoint->read[queue] < MX_EVENTS;
}

void mx_fw_post(struct myri *nic, struct mx_fw_endpoint *endpoint, unsigned queue,
                const union mx_event *event)
{
    if (!mx_fw_has_room(endpoint, queue)) {
        nic->stats.rx_no_buffer++;
        return;
    }
    const uint32_t slot = endpoint->written[queue]++ % MX_EVENTS;
    myri_post(nic, endpoint->memory.queue[queue] + (uint64_t)slot * MX_EVENT_BYTES, event,
              sizeof(*event));
}

/* ---- Commands -------------------------------------------------------------------------------- */

static void region_free(struct mx_fw_endpoint *endpoint, unsigned number)
{
    free(endpoint->region[number]);
    endpoint->region[number] = NULL;
}

static void endpoint_free(struct myri *nic, struct mx_fw_endpoint *endpoint)
{
    for (unsigned i = 0; i < MYRI_MX_REGIONS; i++)
        region_free(endpoint, i);
    nic->mx->endpoint[endpoint->id] = NULL;
    free(endpoint);
}

/* Answers a command that waited for the last user, if there is none any more. */
static void let_go(struct myri *nic, struct mx_fw_endpoint *endpoint)
{
    for (unsigned i = 0; i < MYRI_MX_REGIONS; i++) {
        const struct mx_fw_region *region = endpoint->region[i];
        if (region == NULL || !region->closing || region->users != 0)
            continue;
        region_free(endpoint, i);
        myri_respond(nic, MYRI_OK, 0);
    }
    if (endpoint->closing && endpoint->users == 0) {
        endpoint_free(nic, endpoint);
        myri_respond(nic, MYRI_OK, 0);
    }
}

static enum myri_result take_memory(struct myri *nic, uint32_t id)
{
    struct mx_fw_endpoint *endpoint = nic->mx->endpoint[id];
    endpoint->memory = nic->mx->read.memory;
    endpoint->open = true;
    nic->mx->was_open[id] = true;
    return MYRI_OK;
}

static enum myri_result take_table(struct myri *nic, uint32_t which)
{
    const struct myri_mx_table *table = &nic->mx->read.table;
    struct mx_fw_endpoint *endpoint = mx_fw_open_endpoint(nic, (uint8_t)which);
    const unsigned number = which >> 8 & 0xff;
    const size_t n = table->n_pieces;
    if (endpoint == NULL || endpoint->region[number] != NULL || n == 0 || n > MYRI_MX_PIECES_MAX)
        return MYRI_ERROR_RANGE;
    struct mx_fw_region *region = calloc(1, sizeof(*region) + n * sizeof(region->piece[0]));
    SIM_ASSERT(region != NULL, "no memory for a region");
    region->sequence = (uint8_t)(which >> 16);
    region->n_pieces = (uint32_t)n;
    memcpy(region->piece, table->piece, n * sizeof(region->piece[0]));
    for (size_t i = 0; i < n; i++)
        region->bytes += region->piece[i].bytes;
    endpoint->region[number] = region;
    return MYRI_OK;
}

static void read_done(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct mx_fw_read *read = SIM_CONTAINER(request, struct mx_fw_read, request);
    struct myri *nic = read->nic;
    enum myri_result result = MYRI_ERROR_RANGE;
    if (status == PCIE_DMA_OK)
        result = read->command == MYRI_MX_OPEN ? take_memory(nic, read->which)
                                               : take_table(nic, read->which);
    else if (read->command == MYRI_MX_OPEN)
        endpoint_free(nic, nic->mx->endpoint[read->which]);
    myri_respond(nic, result, 0);
}

static void read_memory(struct myri *nic, uint32_t command, uint64_t iova, uint32_t which)
{
    struct mx_fw_read *read = &nic->mx->read;
    read->nic = nic;
    read->command = command;
    read->which = which;
    read->request = (struct pcie_dma_request){
        .iova = { iova },
        .bytes = command == MYRI_MX_OPEN ? sizeof(read->memory) : sizeof(read->table),
        .buffer = command == MYRI_MX_OPEN ? (uint8_t *)&read->memory : (uint8_t *)&read->table,
        .done = read_done
    };
    pcie_dma_read(&nic->pcie.dma, &read->request, myri_now(nic));
}

static enum myri_result open_endpoint(struct myri *nic, uint64_t iova, uint32_t id)
{
    if (id >= MYRI_MX_ENDPOINTS)
        return MYRI_ERROR_RANGE;
    if (nic->mx->endpoint[id] != NULL)
        return MYRI_ERROR_BUSY;
    nic->mx->endpoint[id] = sim_zalloc(1, sizeof(*nic->mx->endpoint[id]));
    nic->mx->endpoint[id]->id = (uint8_t)id;
    read_memory(nic, MYRI_MX_OPEN, iova, id);
    return MYRI_OK;
}

static enum myri_result close_endpoint(struct myri *nic, uint32_t id)
{
    struct mx_fw_endpoint *endpoint = id < MYRI_MX_ENDPOINTS ? mx_fw_open_endpoint(nic, (uint8_t)id)
                                                             : NULL;
    if (endpoint == NULL)
        return MYRI_ERROR_RANGE;
    mx_fw_pulls_end(nic, endpoint, -1);
    endpoint->closing = true;
    let_go(nic, endpoint);
    return MYRI_OK;
}

static enum myri_result free_region(struct myri *nic, uint32_t which)
{
    struct mx_fw_endpoint *endpoint = mx_fw_open_endpoint(nic, (uint8_t)which);
    const unsigned number = which >> 8 & 0xff;
    if (endpoint == NULL || endpoint->region[number] == NULL)
        return MYRI_ERROR_RANGE;
    mx_fw_pulls_end(nic, endpoint, (int)number);
    endpoint->region[number]->closing = true;
    let_go(nic, endpoint);
    return MYRI_OK;
}

/* MYRI_OK: the answer has been given, or will be. */
enum myri_result myri_mx_command(struct myri *nic, uint32_t command, uint64_t address,
                                 uint32_t data2)
{
    switch (command) {
    case MYRI_MX_OPEN: return open_endpoint(nic, address, data2);
    case MYRI_MX_CLOSE: return close_endpoint(nic, (uint32_t)address);
    case MYRI_MX_REGION_NEW: read_memory(nic, command, address, data2); return MYRI_OK;
    case MYRI_MX_REGION_FREE: return free_region(nic, (uint32_t)address);
    default: return MYRI_UNKNOWN;
    }
}

/* ---- Packets to be sent ---------------------------------------------------------------------- */

struct myri_tx *mx_fw_packet(struct myri *nic, const uint8_t to[6], const void *header,
                             uint32_t bytes)
{
    struct myri_tx *tx = myri_tx_new(nic);
    struct mx_head head = { .ether_type = mx_be16(MX_ETHER_TYPE) };
    memcpy(head.destination, to, sizeof(head.destination));
    for (unsigned i = 0; i < sizeof(head.source); i++)
        head.source[i] = (uint8_t)(nic->mac >> (40 - 8 * i));
    memcpy(tx->frame->header, &head, sizeof(head));
    memcpy(tx->frame->header + sizeof(head), header, bytes);
    tx->frame->header_bytes = (uint16_t)(sizeof(head) + bytes);
    tx->bytes = tx->frame->header_bytes;
    return tx;
}

void mx_fw_submit(struct myri *nic, struct myri_tx *tx)
{
    myri_tx_submit(nic, tx, nic->params.mx_ps);
}

#define NO_REGION UINT32_MAX
#define NO_SLOT   UINT32_MAX

static void packet_left(struct myri *nic, struct myri_tx *tx)
{
    struct mx_fw_endpoint *endpoint = nic->mx->endpoint[tx->value[0]];
    if (tx->value[1] != NO_SLOT && !endpoint->closing) {
        union mx_event event = { .type = MX_EVENT_SENT };
        event.sent.slot = (uint16_t)tx->value[1];
        mx_fw_post(nic, endpoint, 1, &event);
    }
    if (tx->value[2] != NO_REGION)
        endpoint->region[tx->value[2]]->users--;
    endpoint->users--;
    let_go(nic, endpoint);
}

static void hold(struct myri_tx *tx, struct mx_fw_endpoint *endpoint, uint32_t slot,
                 uint32_t region)
{
    endpoint->users++;
    if (region != NO_REGION)
        endpoint->region[region]->users++;
    tx->value[0] = endpoint->id;
    tx->value[1] = slot;
    tx->value[2] = region;
    tx->sent = packet_left;
}

void mx_fw_hold_region(struct myri_tx *tx, struct mx_fw_endpoint *endpoint, unsigned region)
{
    hold(tx, endpoint, NO_SLOT, region);
}

unsigned mx_fw_pieces(const struct mx_fw_region *region, uint64_t offset, uint32_t bytes,
                      struct myri_piece *piece, unsigned most)
{
    unsigned n = 0;
    for (uint32_t i = 0; bytes != 0 && i < region->n_pieces; i++) {
        const struct myri_mx_piece *p = &region->piece[i];
        if (offset >= p->bytes) {
            offset -= p->bytes;
            continue;
        }
        if (n == most)
            return 0;
        const uint32_t part = (uint32_t)SIM_MIN((uint64_t)bytes, p->bytes - offset);
        piece[n++] = (struct myri_piece){ .iova = p->iova + offset, .bytes = part };
        bytes -= part;
        offset = 0;
    }
    return n;
}

/* ---- Requests -------------------------------------------------------------------------------- */

static struct mx_common common_of(const struct mx_fw_endpoint *endpoint,
                                  const struct myri_mx_request *r)
{
    return (struct mx_common){ .type = r->type,
                               .destination_endpoint = r->endpoint,
                               .source_endpoint = endpoint->id,
                               .generation = (uint8_t)endpoint->memory.session,
                               .session = mx_be32(r->session) };
}

static struct mx_message_header message_of(const struct mx_fw_endpoint *endpoint,
                                           const struct myri_mx_request *r)
{
    return (struct mx_message_header){ .common = common_of(endpoint, r),
                                       .sequence = mx_be16(r->sequence),
                                       .ack = mx_be16(r->ack),
                                       .bytes = mx_be16((uint16_t)r->bytes),
                                       .match_high = mx_be32((uint32_t)(r->match >> 32)),
                                       .match_low = mx_be32((uint32_t)r->match) };
}

static void send_tiny(struct myri *nic, struct mx_fw_endpoint *endpoint,
                      const struct myri_mx_request *r)
{
    const struct mx_message_header h = message_of(endpoint, r);
    struct myri_tx *tx = mx_fw_packet(nic, r->nic, &h, sizeof(h));
    const uint32_t bytes = SIM_MIN(r->bytes, MX_TINY_BYTES);
    memcpy(tx->frame->header + tx->frame->header_bytes, r->data, bytes);
    tx->frame->header_bytes = (uint16_t)(tx->frame->header_bytes + bytes);
    tx->bytes += bytes;
    mx_fw_submit(nic, tx);
}

/* Its data came in lines, as they lie in memory from a line on. */
static void send_small(struct myri *nic, struct mx_fw_endpoint *endpoint,
                       const struct myri_mx_request *r)
{
    const struct mx_message_header h = message_of(endpoint, r);
    struct myri_tx *tx = mx_fw_packet(nic, r->nic, &h, sizeof(h));
    const uint32_t bytes = SIM_MIN(r->bytes, MX_SMALL_BYTES);
    if (!payload_gather(&tx->frame->payload, endpoint->data, 0, bytes))
        sim_fail(nic->model->sim, "%s: a small message holds more than %u streams of payload",
                 nic->model->name, PAYLOAD_EXTENTS_MAX);
    tx->bytes += bytes;
    mx_fw_submit(nic, tx);
}

static void send_medium(struct myri *nic, struct mx_fw_endpoint *endpoint,
                        const struct myri_mx_request *r)
{
    if (r->medium.slot >= MX_RING_SLOTS || r->medium.fragment_bytes == 0 ||
        r->medium.fragment_bytes > MX_SLOT_BYTES) {
        nic->stats.bad_requests++;
        return;
    }
    const struct mx_medium_header h = { .message = message_of(endpoint, r),
                                        .fragment_bytes = mx_be16(r->medium.fragment_bytes),
                                        .fragment = r->medium.fragment,
                                        .fragment_log2 = 12 };
    struct myri_tx *tx = mx_fw_packet(nic, r->nic, &h, sizeof(h));
    tx->segment[0].iova = endpoint->memory.send[r->medium.slot];
    tx->segment[0].bytes = r->medium.fragment_bytes;
    tx->n_segments = 1;
    tx->bytes += r->medium.fragment_bytes;
    hold(tx, endpoint, r->medium.slot, NO_REGION);
    mx_fw_submit(nic, tx);
}

static void send_rendezvous(struct myri *nic, struct mx_fw_endpoint *endpoint,
                            const struct myri_mx_request *r)
{
    struct mx_rendezvous_header h = { .message = message_of(endpoint, r),
                                      .bytes = mx_be32(r->bytes),
                                      .region = r->large.region,
                                      .region_sequence = r->large.region_sequence };
    h.message.bytes = 0;
    mx_fw_submit(nic, mx_fw_packet(nic, r->nic, &h, sizeof(h)));
}

static void send_notify(struct myri *nic, struct mx_fw_endpoint *endpoint,
                        const struct myri_mx_request *r)
{
    const struct mx_notify_header h = { .common = common_of(endpoint, r),
                                        .total_bytes = mx_be32(r->bytes),
                                        .region = r->large.region,
                                        .region_sequence = r->large.region_sequence,
                                        .sequence = mx_be16(r->sequence),
                                        .ack = mx_be16(r->ack) };
    mx_fw_submit(nic, mx_fw_packet(nic, r->nic, &h, sizeof(h)));
}

static void send_connect(struct myri *nic, struct mx_fw_endpoint *endpoint,
                         const struct myri_mx_request *r)
{
    const struct mx_connect_header h = { .common = common_of(endpoint, r),
                                         .is_reply = r->connect.is_reply,
                                         .connect_sequence = r->connect.connect_sequence,
                                         .status = r->connect.status,
                                         .source_session = mx_be32(endpoint->memory.session),
                                         .key = mx_be32(r->connect.key),
                                         .target_sequence = mx_be16(r->connect.target_sequence),
                                         .source_sequence = mx_be16(r->connect.source_sequence) };
    mx_fw_submit(nic, mx_fw_packet(nic, r->nic, &h, sizeof(h)));
}

static void send_ack(struct myri *nic, struct mx_fw_endpoint *endpoint,
                     const struct myri_mx_request *r)
{
    const struct mx_ack_header h = { .common = common_of(endpoint, r),
                                     .number = mx_be32(r->ack_number),
                                     .ack = mx_be16(r->ack) };
    mx_fw_submit(nic, mx_fw_packet(nic, r->nic, &h, sizeof(h)));
}

static void execute(struct myri *nic, struct mx_fw_endpoint *endpoint)
{
    struct myri_mx_request r;
    memcpy(&r, endpoint->request, sizeof(r));
    switch (r.type) {
    case MX_PACKET_TINY: send_tiny(nic, endpoint, &r); return;
    case MX_PACKET_SMALL: send_small(nic, endpoint, &r); return;
    case MX_PACKET_MEDIUM: send_medium(nic, endpoint, &r); return;
    case MX_PACKET_RENDEZVOUS: send_rendezvous(nic, endpoint, &r); return;
    case MX_PACKET_NOTIFY: send_notify(nic, endpoint, &r); return;
    case MX_PACKET_CONNECT: send_connect(nic, endpoint, &r); return;
    case MX_PACKET_ACK: send_ack(nic, endpoint, &r); return;
    case MX_PACKET_PULL: mx_fw_pull_begin(nic, endpoint, &r); return;
    default: nic->stats.bad_requests++;
    }
}

void myri_mx_window_write(struct myri *nic, uint64_t offset, uint32_t value)
{
    struct mx_fw_endpoint *endpoint = mx_fw_open_endpoint(nic,
                                                          (uint8_t)(offset / MYRI_MX_WINDOW_BYTES));
    const unsigned at = (unsigned)(offset % MYRI_MX_WINDOW_BYTES);
    if (endpoint == NULL || !nic->up) {
        nic->stats.bad_requests++;
    } else if (at < MYRI_MX_DATA) {
        memcpy(endpoint->request + at, &value, sizeof(value));
        if (at == MYRI_MX_DATA - sizeof(value))
            execute(nic, endpoint);
    } else if (at < MYRI_MX_CONSUMED) {
        memcpy(endpoint->data + (at - MYRI_MX_DATA), &value, sizeof(value));
    } else if (at < MYRI_MX_CONSUMED + 8) {
        const unsigned queue = (at - MYRI_MX_CONSUMED) / 4;
        if (endpoint->written[queue] - value <= MX_EVENTS)
            endpoint->read[queue] = value;
    }
}

/* ---- Received packets ------------------------------------------------------------------------ */

/* What is refused: packets that wait for something. */
void mx_fw_refuse(struct myri *nic, const struct ether_frame *frame, enum mx_nack nack)
{
    const uint8_t *source = frame->header + offsetof(struct mx_head, source);
    union {
        struct mx_common common;
        struct mx_message_header message;
        struct mx_pull_header pull;
    } h;
    memcpy(&h, frame->header + MX_HEAD_BYTES, sizeof(h));
    const uint8_t type = h.common.type;
    if (type == MX_PACKET_PULL) {
        const struct mx_nack_pull_header pull = { .type = MX_PACKET_NACK_PULL,
                                                  .nack = (uint8_t)nack,
                                                  .handle = h.pull.handle,
                                                  .magic = h.pull.magic };
        mx_fw_submit(nic, mx_fw_packet(nic, source, &pull, sizeof(pull)));
        return;
    }
    if (type == MX_PACKET_NACK_LIB || type == MX_PACKET_NACK_PULL || type == MX_PACKET_PULL_REPLY ||
        type == MX_PACKET_ACK)
        return;
    const bool numbered = type != MX_PACKET_CONNECT && type != MX_PACKET_NOTIFY;
    const struct mx_nack_header answer = {
        .common = { .type = MX_PACKET_NACK_LIB,
                    .destination_endpoint = h.common.source_endpoint,
                    .source_endpoint = h.common.destination_endpoint,
                    .session = h.common.session },
        .nack = (uint8_t)nack,
        .refused = type,
        .sequence = numbered ? h.message.sequence : 0
    };
    mx_fw_submit(nic, mx_fw_packet(nic, source, &answer, sizeof(answer)));
}

static void message_event(const struct mx_message_header *m, union mx_event *event, uint8_t type)
{
    event->type = type;
    event->message.source.sequence = mx_be16(m->sequence);
    event->message.source.ack = mx_be16(m->ack);
    event->message.match = (uint64_t)mx_be32(m->match_high) << 32 | mx_be32(m->match_low);
    if (type != MX_EVENT_TINY)
        event->message.bytes = mx_be16(m->bytes);
}

union packet {
    struct mx_common common;
    struct mx_message_header message;
    struct mx_medium_header medium;
    struct mx_rendezvous_header rendezvous;
    struct mx_notify_header notify;
    struct mx_connect_header connect;
    struct mx_ack_header ack;
    struct mx_nack_header nack;
    struct mx_nack_pull_header nack_pull;
    uint8_t byte[ETHER_HEADER_BYTES_MAX - MX_HEAD_BYTES];
};

/* Events of control packets. */
static void control_event(const union packet *p, union mx_event *event)
{
    switch (p->common.type) {
    case MX_PACKET_RENDEZVOUS:
        message_event(&p->message, event, MX_EVENT_RENDEZVOUS);
        event->message.bytes = mx_be32(p->rendezvous.bytes);
        event->message.region = p->rendezvous.region;
        event->message.region_sequence = p->rendezvous.region_sequence;
        return;
    case MX_PACKET_NOTIFY:
        event->type = MX_EVENT_NOTIFY;
        event->notify.source.sequence = mx_be16(p->notify.sequence);
        event->notify.source.ack = mx_be16(p->notify.ack);
        event->notify.bytes = mx_be32(p->notify.total_bytes);
        event->notify.region = p->notify.region;
        event->notify.region_sequence = p->notify.region_sequence;
        return;
    case MX_PACKET_CONNECT:
        event->type = MX_EVENT_CONNECT;
        event->connect.source_session = mx_be32(p->connect.source_session);
        event->connect.key = mx_be32(p->connect.key);
        event->connect.target_sequence = mx_be16(p->connect.target_sequence);
        event->connect.source_sequence = mx_be16(p->connect.source_sequence);
        event->connect.is_reply = p->connect.is_reply;
        event->connect.connect_sequence = p->connect.connect_sequence;
        event->connect.status = p->connect.status;
        return;
    case MX_PACKET_ACK:
        event->type = MX_EVENT_ACK;
        event->ack.number = mx_be32(p->ack.number);
        event->ack.source.ack = mx_be16(p->ack.ack);
        return;
    default:
        event->type = MX_EVENT_NACK;
        event->nack.source.sequence = mx_be16(p->nack.sequence);
        event->nack.refused_session = event->nack.source.session;
        event->nack.nack = p->nack.nack;
        event->nack.refused = p->nack.refused;
    }
}

/* The event of a packet; *bytes: of its payload that go to the ring. False: it is malformed. */
static bool fill_event(const struct ether_frame *frame, const union packet *p,
                       union mx_event *event, uint32_t *bytes)
{
    const uint32_t there = frame->payload.bytes;
    *bytes = 0;
    switch (p->common.type) {
    case MX_PACKET_TINY:
        message_event(&p->message, event, MX_EVENT_TINY);
        event->tiny.bytes = (uint8_t)mx_be16(p->message.bytes);
        if (mx_be16(p->message.bytes) > MX_TINY_BYTES ||
            MX_HEAD_BYTES + sizeof(p->message) + event->tiny.bytes > frame->header_bytes)
            return false;
        memcpy(event->tiny.data, p->byte + sizeof(p->message), event->tiny.bytes);
        return true;
    case MX_PACKET_SMALL:
        message_event(&p->message, event, MX_EVENT_SMALL);
        *bytes = event->message.bytes;
        return *bytes <= there && *bytes <= MX_SMALL_BYTES && *bytes > 0;
    case MX_PACKET_MEDIUM:
        message_event(&p->message, event, MX_EVENT_MEDIUM);
        event->message.fragment = p->medium.fragment;
        *bytes = event->message.fragment_bytes = mx_be16(p->medium.fragment_bytes);
        return *bytes <= there && *bytes <= MX_FRAGMENT_BYTES && *bytes > 0 &&
               event->message.fragment < MX_FRAGMENTS_MAX &&
               event->message.bytes <= MX_MEDIUM_BYTES &&
               event->message.fragment * MX_FRAGMENT_BYTES + *bytes <= event->message.bytes;
    default: control_event(p, event); return true;
    }
}

/* To the process: data into its ring, then the event. */
static void to_process(struct myri *nic, struct mx_fw_endpoint *endpoint, struct myri_rx *rx,
                       const union packet *p)
{
    const uint8_t *source = rx->frame->header + offsetof(struct mx_head, source);
    const bool any = p->common.type == MX_PACKET_NACK_LIB ||
                     (p->common.type == MX_PACKET_CONNECT && !p->connect.is_reply);
    union mx_event event = { .type = MX_EVENT_NONE };
    uint32_t bytes;
    if (!any && mx_be32(p->common.session) != endpoint->memory.session) {
        mx_fw_refuse(nic, rx->frame, MX_NACK_BAD_SESSION);
        myri_rx_taken(rx);
        return;
    }
    memcpy(event.message.source.nic, source, sizeof(event.message.source.nic));
    event.message.source.endpoint = p->common.source_endpoint;
    event.message.source.generation = p->common.generation;
    event.message.source.session = mx_be32(p->common.session);
    if (!fill_event(rx->frame, p, &event, &bytes) || !mx_fw_has_room(endpoint, 0)) {
        nic->stats.rx_no_buffer++;
        myri_rx_drop(rx);
        return;
    }
    if (bytes == 0)
        myri_rx_taken(rx);
    else {
        event.message.slot = (uint16_t)(endpoint->next_slot++ % MX_RING_SLOTS);
        const struct myri_piece piece = { .iova = endpoint->memory.receive[event.message.slot],
                                          .bytes = bytes };
        myri_rx_write(rx, &piece, 1, false, 0);
    }
    mx_fw_post(nic, endpoint, 0, &event);
}

void myri_mx_deliver(struct myri *nic, struct myri_rx *rx)
{
    const struct ether_frame *frame = rx->frame;
    union packet p = { .byte = { 0 } };
    if (frame->header_bytes < MX_HEAD_BYTES + 16 ||
        ether_get16(frame->header + 12) != MX_ETHER_TYPE) {
        nic->stats.rx_filtered++;
        myri_rx_drop(rx);
        return;
    }
    memcpy(&p, frame->header + MX_HEAD_BYTES, frame->header_bytes - MX_HEAD_BYTES);
    const uint8_t id = mx_packet_endpoint(frame->header);
    struct mx_fw_endpoint *endpoint = mx_fw_open_endpoint(nic, id);
    if (endpoint == NULL) {
        mx_fw_refuse(nic, frame,
                     nic->mx->was_open[id] ? MX_NACK_ENDPOINT_CLOSED : MX_NACK_BAD_ENDPOINT);
        myri_rx_taken(rx);
        return;
    }
    switch (p.common.type) {
    case MX_PACKET_PULL_REPLY: mx_fw_pull_reply(nic, endpoint, rx); return;
    case MX_PACKET_PULL: mx_fw_pull_answer(nic, endpoint, rx); return;
    case MX_PACKET_NACK_PULL:
        mx_fw_pull_refused(nic, endpoint, &p.nack_pull);
        myri_rx_taken(rx);
        return;
    default: to_process(nic, endpoint, rx, &p);
    }
}

/* ---- Life ------------------------------------------------------------------------------------ */

void myri_mx_init(struct myri *nic)
{
    nic->mx = sim_zalloc(1, sizeof(*nic->mx));
}

/* As after MYRI_RESET: nothing is under way. */
void myri_mx_reset(struct myri *nic)
{
    mx_fw_pulls_end(nic, NULL, -1);
    for (unsigned i = 0; i < MYRI_MX_ENDPOINTS; i++)
        if (nic->mx->endpoint[i] != NULL)
            endpoint_free(nic, nic->mx->endpoint[i]);
}

void myri_mx_release(struct myri *nic)
{
    if (nic->mx == NULL)
        return;
    myri_mx_reset(nic);
    mx_fw_pulls_release(nic);
    free(nic->mx);
}
