/*
 * A Myri-10G adapter with the firmware of Myrinet Express: what the library of a process, its
 * kernel and the firmware share. Its own protocol is in the firmware; packets are those of
 * hw/mx_wire.h, events those of hw/mx_event.h.
 *
 * Each endpoint has a window of a page in BAR 0, which its process maps: it stores requests there
 * as lines of 64 bytes, write-combined. The kernel gives commands (hw/myri_regs.h). Fields are
 * little endian; the arrangement is ours, as MX' is not published.
 */
#ifndef HW_MYRI_MX_H
#define HW_MYRI_MX_H

#include "hw/mx_event.h"
#include "hw/myri_regs.h"

#define MYRI_MX_VERSION      0x00020001u /* of MYRI_GET_VERSION */
#define MYRI_MX_ENDPOINTS    256u
#define MYRI_MX_WINDOWS      0x400000u /* of endpoint e: + e * MYRI_MX_WINDOW_BYTES */
#define MYRI_MX_WINDOW_BYTES 0x1000u
#define MYRI_MX_REGIONS      256u
#define MYRI_MX_PIECES_MAX   256u /* of a region */

/* In a window. Data of a small message go before its request. */
#define MYRI_MX_REQUEST  0x00u
#define MYRI_MX_DATA     0x40u /* two lines */
#define MYRI_MX_CONSUMED 0xc0u /* a word for each event queue: slots that the library has read */

struct myri_mx_request {
    uint8_t type;     /* enum mx_packet_type: what is to be sent */
    uint8_t endpoint; /* the destination */
    uint8_t nic[6];
    uint32_t session;
    uint16_t sequence, ack;
    uint64_t match;
    uint32_t bytes; /* of the message; of a pull, all of it */
    union {
        uint8_t data[MX_TINY_BYTES];
        struct {
            uint16_t slot, fragment_bytes;
            uint8_t fragment;
        } medium;
        struct {
            uint8_t region, region_sequence; /* rendezvous: own; notification: the peer's */
        } large;
        struct {
            uint32_t handle;
            uint8_t region, region_sequence, local_region;
        } pull;
        struct {
            uint32_t key;
            uint16_t target_sequence, source_sequence;
            uint8_t is_reply, connect_sequence, status;
        } connect;
        uint32_t ack_number;
    };
    uint32_t reserved;
};
_Static_assert(sizeof(struct myri_mx_request) == MYRI_LINE_BYTES, "a request");
_Static_assert(offsetof(struct myri_mx_request, match) == 16, "what all have");
_Static_assert(offsetof(struct myri_mx_request, data) == 28, "data of a tiny message");

/* ---- Commands of the kernel ------------------------------------------------------------------ */

enum myri_mx_command {
    MYRI_MX_OPEN = 0x100,       /* data0, data1: struct myri_mx_memory; data2: endpoint */
    MYRI_MX_CLOSE = 0x101,      /* data0: endpoint; answered when its memory is not read any more */
    MYRI_MX_REGION_NEW = 0x102, /* data0, data1: struct myri_mx_table; data2: MYRI_MX_WHICH() */
    MYRI_MX_REGION_FREE = 0x103, /* data0: MYRI_MX_WHICH(); answered as MYRI_MX_CLOSE is */
};
#define MYRI_MX_WHICH(endpoint, region, sequence) \
    ((uint32_t)(endpoint) | (uint32_t)(region) << 8 | (uint32_t)(sequence) << 16)

/* An endpoint's memory: addresses for the adapter. */
struct myri_mx_memory {
    uint32_t session, reserved;
    uint64_t queue[2]; /* MX_EVENTS events each: unexpected, expected */
    uint64_t reserved2[5];
    uint64_t receive[MX_RING_SLOTS], send[MX_RING_SLOTS];
};
_Static_assert(offsetof(struct myri_mx_memory, receive) == MYRI_LINE_BYTES,
               "a line before the rings");

struct myri_mx_piece {
    uint64_t iova, bytes;
};
struct myri_mx_table {
    uint32_t n_pieces, reserved[15];
    struct myri_mx_piece piece[MYRI_MX_PIECES_MAX];
};
_Static_assert(offsetof(struct myri_mx_table, piece) == MYRI_LINE_BYTES,
               "a line before the pieces");

#endif
