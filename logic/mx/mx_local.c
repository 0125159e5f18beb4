/*
 * What it does: Fills the events of messages within a host, and copies between the segments of two
 *   processes.
 * Follows: Open-MX 0.9.2 driver/linux/omx_shared.c.
 * Costs: an event costs its board what storing it costs; a copy goes line by line.
 */
#include "logic/mx/mx_local.h"

#include <string.h>

union mx_event mx_local_connect(const struct mx_port *from, const struct mx_connect_command *c)
{
    union mx_event event = { .type = MX_EVENT_CONNECT };
    event.connect.source_session = from->session;
    event.connect.key = c->key;
    event.connect.target_sequence = c->target_sequence;
    event.connect.source_sequence = c->source_sequence;
    event.connect.is_reply = c->is_reply;
    event.connect.connect_sequence = c->connect_sequence;
    event.connect.status = c->status;
    return event;
}

union mx_event mx_local_tiny(const struct mx_send *s, const void *data)
{
    union mx_event event = { .type = MX_EVENT_TINY };
    event.tiny.source.ack = s->ack;
    event.tiny.match = s->match;
    event.tiny.bytes = (uint8_t)s->bytes;
    memcpy(event.tiny.data, data, s->bytes);
    return event;
}

union mx_event mx_local_message(enum mx_event_type type, const struct mx_send *s)
{
    union mx_event event = { .type = (uint8_t)type };
    event.message.source.ack = s->ack;
    event.message.match = s->match;
    event.message.bytes = s->bytes;
    return event;
}

union mx_event mx_local_rendezvous(const struct mx_send *s, uint8_t region, uint8_t region_sequence)
{
    union mx_event event = mx_local_message(MX_EVENT_RENDEZVOUS, s);
    event.message.region = region;
    event.message.region_sequence = region_sequence;
    return event;
}

union mx_event mx_local_notify(const struct mx_send *s, uint8_t region, uint8_t region_sequence)
{
    union mx_event event = { .type = MX_EVENT_NOTIFY };
    event.notify.source.ack = s->ack;
    event.notify.bytes = s->bytes;
    event.notify.region = region;
    event.notify.region_sequence = region_sequence;
    return event;
}

union mx_event mx_local_ack(uint32_t number, uint16_t ack)
{
    union mx_event event = { .type = MX_EVENT_ACK };
    event.ack.source.ack = ack;
    event.ack.number = number;
    return event;
}

union mx_event mx_local_refusal(const struct mx_port *from, const struct mx_destination *to,
                                enum mx_packet_type type, uint16_t sequence, enum mx_nack nack)
{
    union mx_event event = { .type = MX_EVENT_NACK };
    mx_nic_to_bytes(from->board->nic_id, event.nack.source.nic);
    event.nack.source.endpoint = to->endpoint;
    event.nack.source.sequence = sequence;
    event.nack.refused_session = to->session;
    event.nack.nack = (uint8_t)nack;
    event.nack.refused = (uint8_t)type;
    return event;
}

void mx_local_source(union mx_event *event, const struct mx_port *from,
                     const struct mx_destination *to, uint16_t sequence)
{
    struct mx_event_source *source = &event->message.source;
    *source = (struct mx_event_source){ .endpoint = from->id,
                                        .generation = (uint8_t)from->session,
                                        .session = to->session,
                                        .sequence = sequence,
                                        .ack = source->ack };
    mx_nic_to_bytes(from->board->nic_id, source->nic);
}

void mx_local_copy(struct kernel *kernel, const struct mx_segment *to,
                   const struct mx_segment *from, uint64_t bytes)
{
    uint64_t to_at = 0, from_at = 0;
    while (bytes > 0) {
        uint64_t n = to->bytes - to_at < from->bytes - from_at ? to->bytes - to_at
                                                               : from->bytes - from_at;
        n = n < bytes ? n : bytes;
        k_copy(kernel, kaddr_add(to->at, to_at), kaddr_add(from->at, from_at), n);
        bytes -= n;
        to_at += n;
        from_at += n;
        if (to_at == to->bytes) {
            to++;
            to_at = 0;
        }
        if (from_at == from->bytes) {
            from++;
            from_at = 0;
        }
    }
}
