/*
 * Messages between endpoints of one host: the events that a packet would have brought, for boards
 * that deliver them without their NIC. Fields of the source that the board knows are left out:
 * mx_local_source().
 */
#ifndef LOGIC_MX_MX_LOCAL_H
#define LOGIC_MX_MX_LOCAL_H

#include "logic/mx/mx_board.h"

union mx_event mx_local_connect(const struct mx_port *from, const struct mx_connect_command *c);
/* s->bytes of data, at most MX_TINY_BYTES. */
union mx_event mx_local_tiny(const struct mx_send *s, const void *data);
/* MX_EVENT_SMALL or MX_EVENT_MEDIUM; the caller adds slot and fragment. */
union mx_event mx_local_message(enum mx_event_type type, const struct mx_send *s);
union mx_event mx_local_rendezvous(const struct mx_send *s, uint8_t region,
                                   uint8_t region_sequence);
union mx_event mx_local_notify(const struct mx_send *s, uint8_t region, uint8_t region_sequence);
union mx_event mx_local_ack(uint32_t number, uint16_t ack);
/* What the sender gets if `to` takes no packet `sequence` of that type. */
union mx_event mx_local_refusal(const struct mx_port *from, const struct mx_destination *to,
                                enum mx_packet_type type, uint16_t sequence, enum mx_nack nack);
/* Completes the source of an event from one of the functions above but the last; its
 * acknowledgement stays. */
void mx_local_source(union mx_event *event, const struct mx_port *from,
                     const struct mx_destination *to, uint16_t sequence);
/* [thread] Copies the first `bytes`, which both have. */
void mx_local_copy(struct kernel *kernel, const struct mx_segment *to,
                   const struct mx_segment *from, uint64_t bytes);

#endif
