/*
 * What a board of Myrinet Express tells a process: events of 64 bytes in two queues, and a ring for
 * data. The board (the MX firmware by DMA, or Open-MX's kernel module by stores) fills slots in
 * order; the library reads a slot when its last byte, the type, is not MX_EVENT_NONE, and sets that
 * byte back. So a slot that is not MX_EVENT_NONE when the board comes to it again is one that the
 * library has not read: the queue is full.
 *
 * Sizes as in common/omx_io.h of Open-MX at its tag open-mx-0.9.2 (docs/sources.md#openmx); fields
 * are little endian, and are our own arrangement.
 */
#ifndef HW_MX_EVENT_H
#define HW_MX_EVENT_H

#include "hw/mx_wire.h"

#define MX_EVENTS      1024u /* in each of both queues */
#define MX_EVENT_BYTES 64u
#define MX_RING_SLOTS  1024u /* in the ring for received data, and in that of data to send */
#define MX_SLOT_BYTES  4096u

enum mx_event_type {
    MX_EVENT_NONE,
    /* ---- unexpected: a packet came from a peer */
    MX_EVENT_CONNECT, /* request or reply */
    MX_EVENT_TINY,
    MX_EVENT_SMALL,
    MX_EVENT_MEDIUM,
    MX_EVENT_RENDEZVOUS,
    MX_EVENT_NOTIFY,
    MX_EVENT_ACK,
    MX_EVENT_NACK,
    /* ---- expected: a command of the process has ended */
    MX_EVENT_SENT, /* a slot of the send ring is free again */
    MX_EVENT_PULLED,
};

/* Of every unexpected event: who has sent the packet. */
struct mx_event_source {
    uint8_t nic[6]; /* as in the packet */
    uint8_t endpoint;
    uint8_t generation;
    uint32_t session; /* ours, that the packet carried */
    uint16_t sequence, ack;
};
_Static_assert(sizeof(struct mx_event_source) == 16, "the source");

struct mx_event_message { /* small, medium, rendezvous */
    struct mx_event_source source;
    uint64_t match;
    uint16_t slot; /* small, medium: of the receive ring, where the data are */
    uint16_t fragment_bytes;
    uint8_t fragment, region, region_sequence, reserved;
    uint32_t bytes; /* of the message */
    uint32_t reserved2;
};
_Static_assert(sizeof(struct mx_event_message) == 40, "a message");

union mx_event {
    struct {
        struct mx_event_source source;
        uint64_t match;
        uint8_t bytes;
        uint8_t data[MX_TINY_BYTES];
    } tiny;
    struct mx_event_message message;
    struct {
        struct mx_event_source source;
        uint32_t source_session, key;
        uint16_t target_sequence, source_sequence;
        uint8_t is_reply, connect_sequence, status;
    } connect;
    struct { /* notification */
        struct mx_event_source source;
        uint32_t bytes;
        uint8_t region, region_sequence;
    } notify;
    struct {
        struct mx_event_source source; /* its ack counts */
        uint32_t number;
    } ack;
    struct {
        struct mx_event_source source; /* its sequence is that of the refused packet */
        uint32_t refused_session;      /* that the refused packet carried */
        uint8_t nack, refused;
    } nack;
    struct {
        uint16_t slot; /* of the send ring */
    } sent;
    struct {
        uint32_t handle; /* as the command gave it */
        uint32_t bytes;  /* that have been pulled */
        uint8_t status;  /* enum mx_pull_status */
    } pulled;
    struct {
        uint8_t reserved[MX_EVENT_BYTES - 1];
        uint8_t type; /* enum mx_event_type, written last */
    };
};
_Static_assert(sizeof(union mx_event) == MX_EVENT_BYTES, "an event");
_Static_assert(offsetof(union mx_event, tiny.data) + MX_TINY_BYTES < MX_EVENT_BYTES,
               "tiny data fit");
_Static_assert(offsetof(union mx_event, type) == MX_EVENT_BYTES - 1, "the type comes last");

enum mx_pull_status { MX_PULL_DONE, MX_PULL_TIMED_OUT, MX_PULL_REFUSED };

#endif
