/*
 * What it does: The commands that send: packets by the Ethernet device, or what they would have
 *   done, to an endpoint of this host. Tiny data stand behind the header; small ones are copied
 *   into a page; a fragment of a medium message is sent from the send ring, whose slot comes back
 *   when the device has sent it.
 * Follows: Open-MX 0.9.2 driver/linux/omx_send.c.
 * Costs: a system call; omx_send_cycles per packet; stores of the header; what the stack and the
 *   driver take.
 */
#include "logic/openmx/openmx_internal.h"

/* ---- Packets --------------------------------------------------------------------------------- */

struct sk_buff *openmx_packet_new(struct openmx *omx, const uint8_t nic[6], const void *header,
                                  size_t bytes)
{
    uint8_t packet[NET_HEADER_BYTES];
    struct mx_head head = { .ether_type = mx_be16(MX_ETHER_TYPE) };
    struct sk_buff *skb = skb_new(omx->net);
    k_run(omx->kernel, K_TEXT_OMX_SEND, omx->costs->omx_send_cycles);
    memcpy(head.destination, nic, sizeof head.destination);
    mx_nic_to_bytes(omx->board.nic_id, head.source);
    memcpy(packet, &head, sizeof head);
    memcpy(packet + sizeof head, header, bytes);
    skb->dev = omx->dev;
    skb->head_bytes = (uint16_t)(sizeof head + bytes);
    skb->gso_segments = 1;
    k_store(omx->kernel, skb->head, packet, skb->head_bytes);
    return skb;
}

void openmx_transmit(struct openmx *omx, struct sk_buff *skb)
{
    omx->stats.sent++;
    net_dev_queue_xmit(omx->net, skb);
}

static void transmit_to(struct openmx *omx, uint64_t nic_id, const void *header, size_t bytes)
{
    uint8_t nic[6];
    mx_nic_to_bytes(nic_id, nic);
    openmx_transmit(omx, openmx_packet_new(omx, nic, header, bytes));
}

static struct mx_common common(const struct mx_port *port, enum mx_packet_type type,
                               const struct mx_destination *to)
{
    return (struct mx_common){ .type = (uint8_t)type,
                               .destination_endpoint = to->endpoint,
                               .source_endpoint = port->id,
                               .generation = (uint8_t)port->session,
                               .session = mx_be32(to->session) };
}

static struct mx_message_header message(const struct mx_port *port, enum mx_packet_type type,
                                        const struct mx_send *s)
{
    return (struct mx_message_header){ .common = common(port, type, &s->to),
                                       .sequence = mx_be16(s->sequence),
                                       .ack = mx_be16(s->ack),
                                       .bytes = mx_be16((uint16_t)s->bytes),
                                       .match_high = mx_be32((uint32_t)(s->match >> 32)),
                                       .match_low = mx_be32((uint32_t)s->match) };
}

/* ---- Commands -------------------------------------------------------------------------------- */

int openmx_send_connect(struct mx_port *port, const struct mx_connect_command *c)
{
    struct openmx_port *from = openmx_port_of(port);
    openmx_enter(from, c->to.nic_id);
    if (openmx_is_local(from->omx, c->to.nic_id)) {
        union mx_event event = mx_local_connect(port, c);
        return openmx_local_message(from, &c->to, MX_PACKET_CONNECT, 0, &event, NULL);
    }
    const struct mx_connect_header h = { .common = common(port, MX_PACKET_CONNECT, &c->to),
                                         .is_reply = c->is_reply,
                                         .connect_sequence = c->connect_sequence,
                                         .status = c->status,
                                         .source_session = mx_be32(port->session),
                                         .key = mx_be32(c->key),
                                         .target_sequence = mx_be16(c->target_sequence),
                                         .source_sequence = mx_be16(c->source_sequence) };
    transmit_to(from->omx, c->to.nic_id, &h, sizeof h);
    return 0;
}

int openmx_send_tiny(struct mx_port *port, const struct mx_send *s, const void *data)
{
    struct openmx_port *from = openmx_port_of(port);
    if (s->bytes > MX_TINY_BYTES)
        return -EINVAL;
    openmx_enter(from, s->to.nic_id);
    if (openmx_is_local(from->omx, s->to.nic_id)) {
        union mx_event event = mx_local_tiny(s, data);
        return openmx_local_message(from, &s->to, MX_PACKET_TINY, s->sequence, &event, NULL);
    }
    struct {
        struct mx_message_header header;
        uint8_t data[MX_TINY_BYTES];
    } h = { .header = message(port, MX_PACKET_TINY, s) };
    memcpy(h.data, data, s->bytes);
    transmit_to(from->omx, s->to.nic_id, &h, sizeof h.header + s->bytes);
    return 0;
}

int openmx_send_small(struct mx_port *port, const struct mx_send *s,
                      const struct mx_segment *segment, unsigned n)
{
    struct openmx_port *from = openmx_port_of(port);
    struct openmx *omx = from->omx;
    const struct openmx_data data = { .segment = segment, .bytes = s->bytes };
    if (s->bytes > MX_SMALL_BYTES || (n == 0 && s->bytes > 0))
        return -EINVAL;
    openmx_enter(from, s->to.nic_id);
    if (openmx_is_local(omx, s->to.nic_id)) {
        union mx_event event = mx_local_message(MX_EVENT_SMALL, s);
        return openmx_local_message(from, &s->to, MX_PACKET_SMALL, s->sequence, &event, &data);
    }
    struct k_page *page = k_page_alloc(omx->kernel, K_NODE_LOCAL, 0);
    if (page == NULL) {
        omx->stats.no_memory++;
        return -ENOMEM;
    }
    const struct mx_message_header h = message(port, MX_PACKET_SMALL, s);
    uint8_t nic[6];
    mx_nic_to_bytes(s->to.nic_id, nic);
    struct sk_buff *skb = openmx_packet_new(omx, nic, &h, sizeof h);
    openmx_data_copy(omx->kernel, page->addr, &data);
    skb->frag[0] = (struct skb_frag){ page, 0, s->bytes, (int8_t)page->node };
    skb->n_frags = 1;
    skb->bytes = s->bytes;
    openmx_transmit(omx, skb);
    return 0;
}

/* The device has sent a fragment. */
static void slot_sent(struct sk_buff *skb)
{
    const struct openmx_slot *slot = skb->freed_arg;
    struct openmx_port *port = slot->port;
    union mx_event event = { .type = MX_EVENT_SENT };
    event.sent.slot = slot->number;
    if (!port->closed)
        openmx_event_post(port, MX_QUEUE_EXPECTED, &event, NULL);
    openmx_port_put(port);
}

static int local_medium(struct openmx_port *from, const struct mx_send *s, union mx_event *event,
                        uint16_t slot)
{
    const struct mx_segment segment = { from->port.send[slot], event->message.fragment_bytes };
    const struct openmx_data data = { .segment = &segment, .bytes = (uint32_t)segment.bytes };
    union mx_event sent = { .type = MX_EVENT_SENT };
    sent.sent.slot = slot;
    openmx_local_message(from, &s->to, MX_PACKET_MEDIUM, s->sequence, event, &data);
    openmx_event_post(from, MX_QUEUE_EXPECTED, &sent, NULL);
    return 0;
}

int openmx_send_medium(struct mx_port *port, const struct mx_send *s, uint8_t fragment,
                       uint16_t fragment_bytes, uint16_t slot)
{
    struct openmx_port *from = openmx_port_of(port);
    struct openmx *omx = from->omx;
    if (s->bytes > MX_MEDIUM_BYTES || fragment_bytes > MX_SLOT_BYTES || slot >= MX_RING_SLOTS)
        return -EINVAL;
    openmx_enter(from, s->to.nic_id);
    if (openmx_is_local(omx, s->to.nic_id)) {
        union mx_event event = mx_local_message(MX_EVENT_MEDIUM, s);
        event.message.fragment = fragment;
        event.message.fragment_bytes = fragment_bytes;
        return local_medium(from, s, &event, slot);
    }
    const struct mx_medium_header h = { .message = message(port, MX_PACKET_MEDIUM, s),
                                        .fragment_bytes = mx_be16(fragment_bytes),
                                        .fragment = fragment,
                                        .fragment_log2 = 12 };
    uint8_t nic[6];
    mx_nic_to_bytes(s->to.nic_id, nic);
    struct sk_buff *skb = openmx_packet_new(omx, nic, &h, sizeof h);
    struct k_page *page = from->send[slot];
    k_page_get(page);
    skb->frag[0] = (struct skb_frag){ page, 0, fragment_bytes, (int8_t)page->node };
    skb->n_frags = 1;
    skb->bytes = fragment_bytes;
    skb->freed = slot_sent;
    skb->freed_arg = &from->slot[slot];
    from->refs++;
    openmx_transmit(omx, skb);
    return 0;
}

int openmx_send_rendezvous(struct mx_port *port, const struct mx_send *s, uint8_t region,
                           uint8_t region_sequence)
{
    struct openmx_port *from = openmx_port_of(port);
    openmx_enter(from, s->to.nic_id);
    if (openmx_is_local(from->omx, s->to.nic_id)) {
        union mx_event event = mx_local_rendezvous(s, region, region_sequence);
        return openmx_local_message(from, &s->to, MX_PACKET_RENDEZVOUS, s->sequence, &event, NULL);
    }
    struct mx_rendezvous_header h = { .message = message(port, MX_PACKET_RENDEZVOUS, s),
                                      .bytes = mx_be32(s->bytes),
                                      .region = region,
                                      .region_sequence = region_sequence };
    h.message.bytes = 0;
    transmit_to(from->omx, s->to.nic_id, &h, sizeof h);
    return 0;
}

int openmx_send_notify(struct mx_port *port, const struct mx_send *s, uint8_t region,
                       uint8_t region_sequence)
{
    struct openmx_port *from = openmx_port_of(port);
    openmx_enter(from, s->to.nic_id);
    if (openmx_is_local(from->omx, s->to.nic_id)) {
        union mx_event event = mx_local_notify(s, region, region_sequence);
        return openmx_local_message(from, &s->to, MX_PACKET_NOTIFY, s->sequence, &event, NULL);
    }
    const struct mx_notify_header h = { .common = common(port, MX_PACKET_NOTIFY, &s->to),
                                        .total_bytes = mx_be32(s->bytes),
                                        .region = region,
                                        .region_sequence = region_sequence,
                                        .sequence = mx_be16(s->sequence),
                                        .ack = mx_be16(s->ack) };
    transmit_to(from->omx, s->to.nic_id, &h, sizeof h);
    return 0;
}

int openmx_send_ack(struct mx_port *port, const struct mx_destination *to, uint32_t number,
                    uint16_t ack)
{
    struct openmx_port *from = openmx_port_of(port);
    openmx_enter(from, to->nic_id);
    if (openmx_is_local(from->omx, to->nic_id)) {
        union mx_event event = mx_local_ack(number, ack);
        return openmx_local_message(from, to, MX_PACKET_ACK, 0, &event, NULL);
    }
    const struct mx_ack_header h = { .common = common(port, MX_PACKET_ACK, to),
                                     .number = mx_be32(number),
                                     .ack = mx_be16(ack) };
    transmit_to(from->omx, to->nic_id, &h, sizeof h);
    return 0;
}
