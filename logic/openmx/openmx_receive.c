/*
 * What it does: The receive handler: in the soft interrupt it finds the endpoint of a packet,
 *   refuses what has none (or another session), and puts event and data where the library reads
 *   them, or gives the packet to the pull that it is for.
 * Leaves out: packets of raw interfaces and of the mapper.
 * Follows: Open-MX 0.9.2 driver/linux/omx_recv.c, omx_nack.c.
 * Costs: omx_receive_cycles per packet, omx_reply_cycles of a reply to a pull; loads of the header;
 *   the lines of interface, peer and descriptor; the copy of the data.
 */
#include "logic/openmx/openmx_internal.h"

#define SHORTEST 16u /* header of any packet */

struct arrived {
    struct openmx *omx;
    struct sk_buff *skb;
    struct mx_head head;
    union {
        struct mx_common common;
        struct mx_message_header message;
        struct mx_medium_header medium;
        struct mx_rendezvous_header rendezvous;
        struct mx_pull_header pull;
        struct mx_reply_header reply;
        struct mx_notify_header notify;
        struct mx_connect_header connect;
        struct mx_ack_header ack;
        struct mx_nack_header nack;
        struct mx_nack_pull_header nack_pull;
        uint8_t bytes[MX_HEADER_BYTES_MAX - MX_HEAD_BYTES];
    } h;
};

static size_t header_bytes(uint8_t type)
{
    switch (type) {
    case MX_PACKET_ACK: return sizeof(struct mx_ack_header);
    case MX_PACKET_CONNECT: return sizeof(struct mx_connect_header);
    case MX_PACKET_TINY:
    case MX_PACKET_SMALL: return sizeof(struct mx_message_header);
    case MX_PACKET_MEDIUM: return sizeof(struct mx_medium_header);
    case MX_PACKET_RENDEZVOUS: return sizeof(struct mx_rendezvous_header);
    case MX_PACKET_PULL: return sizeof(struct mx_pull_header);
    case MX_PACKET_PULL_REPLY: return sizeof(struct mx_reply_header);
    case MX_PACKET_NOTIFY: return sizeof(struct mx_notify_header);
    case MX_PACKET_NACK_LIB: return sizeof(struct mx_nack_header);
    case MX_PACKET_NACK_PULL: return sizeof(struct mx_nack_pull_header);
    default: return 0;
    }
}

/* False: no packet of ours. */
static bool read_header(struct arrived *a)
{
    uint8_t packet[MX_HEADER_BYTES_MAX];
    struct kernel *kernel = a->omx->kernel;
    if (!skb_header_set(a->skb, MX_HEAD_BYTES + SHORTEST))
        return false;
    k_load(kernel, a->skb->head, packet, MX_HEAD_BYTES + SHORTEST);
    const size_t bytes = header_bytes(packet[MX_HEAD_BYTES]);
    const uint16_t all = (uint16_t)(MX_HEAD_BYTES + bytes);
    if (bytes == 0 || !skb_header_set(a->skb, all))
        return false;
    if (bytes > SHORTEST)
        k_load(kernel, kaddr_add(a->skb->head, MX_HEAD_BYTES + SHORTEST),
               packet + MX_HEAD_BYTES + SHORTEST, bytes - SHORTEST);
    memcpy(&a->head, packet, sizeof a->head);
    memcpy(a->h.bytes, packet + sizeof a->head, bytes);
    return memcmp(a->head.destination, a->omx->dev->mac.byte, sizeof a->head.destination) == 0;
}

/* ---- Refusals -------------------------------------------------------------------------------- */

static void refuse(struct arrived *a, enum mx_nack nack)
{
    const struct mx_common *common = &a->h.common;
    const bool request = common->type == MX_PACKET_CONNECT;
    if (common->type == MX_PACKET_NACK_LIB || common->type == MX_PACKET_NACK_PULL ||
        common->type == MX_PACKET_PULL_REPLY || common->type == MX_PACKET_ACK)
        return;
    if (common->type == MX_PACKET_PULL) {
        const struct mx_nack_pull_header h = { .type = MX_PACKET_NACK_PULL,
                                               .nack = (uint8_t)nack,
                                               .handle = a->h.pull.handle,
                                               .magic = a->h.pull.magic };
        openmx_transmit(a->omx, openmx_packet_new(a->omx, a->head.source, &h, sizeof h));
        return;
    }
    const struct mx_nack_header h = { .common = { .type = MX_PACKET_NACK_LIB,
                                                  .destination_endpoint = common->source_endpoint,
                                                  .source_endpoint = common->destination_endpoint,
                                                  .session = common->session },
                                      .nack = (uint8_t)nack,
                                      .refused = common->type,
                                      .sequence = request || common->type == MX_PACKET_NOTIFY
                                                      ? 0
                                                      : a->h.message.sequence };
    openmx_transmit(a->omx, openmx_packet_new(a->omx, a->head.source, &h, sizeof h));
}

/* ---- Packets for the library ----------------------------------------------------------------- */

static void message_event(const struct arrived *a, union mx_event *event, uint8_t type)
{
    const struct mx_message_header *m = &a->h.message;
    event->type = type;
    event->message.source.sequence = mx_be16(m->sequence);
    event->message.source.ack = mx_be16(m->ack);
    event->message.match = (uint64_t)mx_be32(m->match_high) << 32 | mx_be32(m->match_low);
    if (type != MX_EVENT_TINY)
        event->message.bytes = mx_be16(m->bytes);
}

/* False: the packet is malformed. *data: its bytes are 0 if there are none for the ring. */
static bool fill_event(struct arrived *a, union mx_event *event, struct openmx_data *data)
{
    const struct mx_common *common = &a->h.common;
    const uint32_t there = a->skb->bytes;
    event->message.source = (struct mx_event_source){ .endpoint = common->source_endpoint,
                                                      .generation = common->generation,
                                                      .session = mx_be32(common->session) };
    memcpy(event->message.source.nic, a->head.source, sizeof event->message.source.nic);
    switch (common->type) {
    case MX_PACKET_TINY:
        message_event(a, event, MX_EVENT_TINY);
        event->tiny.bytes = (uint8_t)mx_be16(a->h.message.bytes);
        if (mx_be16(a->h.message.bytes) > MX_TINY_BYTES || event->tiny.bytes > there)
            return false;
        data->bytes = event->tiny.bytes;
        openmx_data_load(a->omx->kernel, event->tiny.data, data);
        data->bytes = 0;
        return true;
    case MX_PACKET_SMALL:
        message_event(a, event, MX_EVENT_SMALL);
        data->bytes = event->message.bytes;
        return data->bytes <= there && data->bytes <= MX_SMALL_BYTES;
    case MX_PACKET_MEDIUM:
        message_event(a, event, MX_EVENT_MEDIUM);
        event->message.fragment = a->h.medium.fragment;
        event->message.fragment_bytes = mx_be16(a->h.medium.fragment_bytes);
        data->bytes = event->message.fragment_bytes;
        return data->bytes <= there && data->bytes <= MX_FRAGMENT_BYTES &&
               event->message.fragment < MX_FRAGMENTS_MAX &&
               event->message.bytes <= MX_MEDIUM_BYTES &&
               event->message.fragment * MX_FRAGMENT_BYTES + data->bytes <= event->message.bytes;
    case MX_PACKET_RENDEZVOUS:
        message_event(a, event, MX_EVENT_RENDEZVOUS);
        event->message.bytes = mx_be32(a->h.rendezvous.bytes);
        event->message.region = a->h.rendezvous.region;
        event->message.region_sequence = a->h.rendezvous.region_sequence;
        return true;
    case MX_PACKET_NOTIFY:
        event->type = MX_EVENT_NOTIFY;
        event->notify.source.sequence = mx_be16(a->h.notify.sequence);
        event->notify.source.ack = mx_be16(a->h.notify.ack);
        event->notify.bytes = mx_be32(a->h.notify.total_bytes);
        event->notify.region = a->h.notify.region;
        event->notify.region_sequence = a->h.notify.region_sequence;
        return true;
    case MX_PACKET_CONNECT:
        event->type = MX_EVENT_CONNECT;
        event->connect.source_session = mx_be32(a->h.connect.source_session);
        event->connect.key = mx_be32(a->h.connect.key);
        event->connect.target_sequence = mx_be16(a->h.connect.target_sequence);
        event->connect.source_sequence = mx_be16(a->h.connect.source_sequence);
        event->connect.is_reply = a->h.connect.is_reply;
        event->connect.connect_sequence = a->h.connect.connect_sequence;
        event->connect.status = a->h.connect.status;
        return true;
    case MX_PACKET_ACK:
        event->type = MX_EVENT_ACK;
        event->ack.number = mx_be32(a->h.ack.number);
        event->ack.source.ack = mx_be16(a->h.ack.ack);
        return true;
    default:
        event->type = MX_EVENT_NACK;
        event->nack.source.sequence = mx_be16(a->h.nack.sequence);
        event->nack.refused_session = event->nack.source.session;
        event->nack.nack = a->h.nack.nack;
        event->nack.refused = a->h.nack.refused;
        return true;
    }
}

static void to_library(struct arrived *a, struct openmx_port *port)
{
    const struct mx_common *common = &a->h.common;
    struct openmx_data data = { .skb = a->skb };
    union mx_event event = { .type = MX_EVENT_NONE };
    const bool any_session = common->type == MX_PACKET_NACK_LIB ||
                             (common->type == MX_PACKET_CONNECT && !a->h.connect.is_reply);
    if (!any_session && mx_be32(common->session) != port->port.session) {
        a->omx->stats.bad_session++;
        refuse(a, MX_NACK_BAD_SESSION);
    } else if (!fill_event(a, &event, &data))
        a->omx->stats.malformed++;
    else
        openmx_event_post(port, MX_QUEUE_UNEXPECTED, &event, data.bytes > 0 ? &data : NULL);
}

/* ---- The handler ----------------------------------------------------------------------------- */

void openmx_receive(struct sk_buff *skb, void *arg)
{
    struct arrived a = { .omx = arg, .skb = skb };
    struct openmx *omx = a.omx;
    if (!read_header(&a)) {
        omx->stats.malformed++;
        skb_free(omx->net, skb);
        return;
    }
    const uint8_t type = a.h.common.type;
    omx->stats.received++;
    if (type == MX_PACKET_PULL_REPLY)
        k_run(omx->kernel, K_TEXT_OMX_REPLY, omx->costs->omx_reply_cycles);
    else
        k_run(omx->kernel, K_TEXT_OMX_RECEIVE, omx->costs->omx_receive_cycles);
    openmx_touch_interface(omx, mx_nic_from_bytes(a.head.source), true);
    uint8_t packet[MX_HEADER_BYTES_MAX];
    memcpy(packet, &a.head, sizeof a.head);
    memcpy(packet + sizeof a.head, a.h.bytes, sizeof a.h);
    const uint8_t endpoint = mx_packet_endpoint(packet);
    struct openmx_port *port = openmx_port_get(omx, endpoint);
    if (port == NULL) {
        omx->stats.no_endpoint++;
        refuse(&a, omx->was_open[endpoint] ? MX_NACK_ENDPOINT_CLOSED : MX_NACK_BAD_ENDPOINT);
        skb_free(omx->net, skb);
        return;
    }
    if (type == MX_PACKET_PULL_REPLY)
        openmx_pull_reply(port, skb, &a.h.reply); /* takes the packet */
    else {
        if (type == MX_PACKET_NACK_PULL)
            openmx_pull_refused(port, &a.h.nack_pull);
        else if (type == MX_PACKET_PULL)
            openmx_answer(port, &a.head, &a.h.pull);
        else
            to_library(&a, port);
        skb_free(omx->net, skb);
    }
    openmx_port_put(port);
}
