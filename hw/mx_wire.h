/*
 * Packets of Myrinet Express over Ethernet (MXoE), as Open-MX 0.9.2 and the MX firmware send them:
 * types, headers, limits. All fields of more than a byte are big endian: mx_be16(), mx_be32()
 * convert them, either way.
 *
 * A packet is a head of 16 bytes (Ethernet's and 2 bytes of MX), a header that begins with its
 * type, and data. Lengths, types and limits are those of common/omx_wire.h and common/omx_io.h of
 * Open-MX at its tag open-mx-0.9.2 (docs/sources.md#openmx). Ours differs in four things: the byte
 * behind the type is the destination endpoint in every packet but replies to pulls; frames are
 * counted from the begin of a region, and a request says how large they are; a connection is one
 * session number a side; a request to connect says which session of the receiver its sender knows,
 * and how far it has numbered what it sends there.
 */
#ifndef HW_MX_WIRE_H
#define HW_MX_WIRE_H

#include <stddef.h>
#include <stdint.h>

#define MX_ETHER_TYPE UINT16_C(0x86df)

#define MX_TINY_BYTES     32u    /* at most */
#define MX_SMALL_BYTES    128u   /* at most */
#define MX_MEDIUM_BYTES   32768u /* at most; larger messages are pulled after a rendezvous */
#define MX_FRAGMENT_BYTES 4096u  /* of a medium message, but for its last one */
#define MX_FRAGMENTS_MAX  (MX_MEDIUM_BYTES / MX_FRAGMENT_BYTES)

/* Replies to a pull: bytes of each but the last, and how many answer one request. In
 * wire-compatible mode, which is the default, and in Open-MX's own, which needs an MTU of 9000. */
#define MX_REPLY_BYTES             4096u
#define MX_REPLIES_PER_BLOCK       8u
#define MX_REPLY_BYTES_JUMBO       8192u
#define MX_REPLIES_PER_BLOCK_JUMBO 32u

static inline uint16_t mx_be16(uint16_t v)
{
    return __builtin_bswap16(v);
}
static inline uint32_t mx_be32(uint32_t v)
{
    return __builtin_bswap32(v);
}

enum mx_packet_type {
    MX_PACKET_ACK = 35, /* "truc": an acknowledgement by itself */
    MX_PACKET_CONNECT = 36,
    MX_PACKET_TINY = 37,
    MX_PACKET_SMALL = 38,
    MX_PACKET_MEDIUM = 39, /* one fragment */
    MX_PACKET_RENDEZVOUS = 40,
    MX_PACKET_PULL = 41,
    MX_PACKET_PULL_REPLY = 42,
    MX_PACKET_NOTIFY = 43,   /* all has been pulled */
    MX_PACKET_NACK_LIB = 44, /* to a message: see enum mx_nack */
    MX_PACKET_NACK_PULL = 45,
};

enum mx_nack {
    MX_NACK_NONE,
    MX_NACK_BAD_ENDPOINT,
    MX_NACK_ENDPOINT_CLOSED,
    MX_NACK_BAD_SESSION,
    MX_NACK_BAD_REGION,
};

/* ---- The head: bytes 0 to 15 ----------------------------------------------------------------- */

struct mx_head {
    uint8_t destination[6], source[6]; /* Ethernet addresses: the ids of the NICs */
    uint16_t ether_type;               /* MX_ETHER_TYPE */
    uint16_t peer_index;               /* the sender's number of the destination; unused */
};
#define MX_HEAD_BYTES 16u
_Static_assert(sizeof(struct mx_head) == MX_HEAD_BYTES, "the head");
_Static_assert(offsetof(struct mx_head, ether_type) == 12, "Ethernet");

/* ---- Headers: from byte 16 on ---------------------------------------------------------------- */

/* What all but replies and answers to pulls begin with. */
struct mx_common {
    uint8_t type;
    uint8_t destination_endpoint;
    uint8_t source_endpoint;
    /* Low byte of the source's session: packets of an earlier owner are known by it. */
    uint8_t generation;
    uint32_t session; /* of the destination, which drops others; a request to connect may have one
                       * that is not, or 0 */
};
_Static_assert(sizeof(struct mx_common) == 8, "what headers begin with");

/* Tiny and small: all of the data follows. */
struct mx_message_header {
    struct mx_common common;
    uint16_t sequence; /* of the message among those of this pair of endpoints */
    uint16_t ack;      /* all messages of the receiver up to, but excluding, it have arrived */
    uint16_t bytes;    /* of the message */
    uint16_t reserved;
    uint32_t match_high, match_low;
};
_Static_assert(sizeof(struct mx_message_header) == 24, "a message");
_Static_assert(offsetof(struct mx_message_header, match_high) == 16, "match");

struct mx_medium_header {
    struct mx_message_header message;
    uint16_t fragment_bytes;
    uint8_t fragment; /* its number */
    uint8_t fragment_log2;
    uint32_t reserved;
};
_Static_assert(sizeof(struct mx_medium_header) == 32, "a fragment");

struct mx_rendezvous_header {
    struct mx_message_header message; /* its `bytes` is 0 */
    uint32_t bytes;
    uint8_t region, region_sequence; /* where to pull from */
    uint16_t reserved;
};
_Static_assert(sizeof(struct mx_rendezvous_header) == 32, "a rendezvous");

/* A block of a region, which begins at a multiple of frame_bytes: answered by one reply of so many
 * bytes for each frame, the last of the region being shorter. */
struct mx_pull_header {
    struct mx_common common;
    uint32_t total_bytes; /* of all blocks of this pull */
    uint8_t region, region_sequence;
    uint16_t frame_bytes;
    uint32_t handle, magic; /* for replies */
    uint32_t block_offset;  /* in the region */
    uint32_t block_bytes;
};
_Static_assert(sizeof(struct mx_pull_header) == 32, "a pull");

struct mx_reply_header {
    uint8_t type;
    uint8_t frame; /* its number in the pull, modulo 256 */
    uint16_t bytes;
    uint32_t offset; /* in the region */
    uint32_t handle, magic;
};
_Static_assert(sizeof(struct mx_reply_header) == 16, "a reply");

struct mx_notify_header {
    struct mx_common common;
    uint32_t total_bytes;
    uint8_t region, region_sequence;
    uint16_t reserved;
    uint16_t sequence, ack;
    uint32_t reserved2;
};
_Static_assert(sizeof(struct mx_notify_header) == 24, "a notification");

struct mx_connect_header {
    struct mx_common common; /* session of a request: the one that the numbers are of, or 0 */
    uint8_t is_reply;
    uint8_t connect_sequence; /* of the request, so that an old reply is known */
    uint8_t status;           /* of a reply: enum mx_connect_status */
    uint8_t reserved;
    uint32_t source_session;
    uint32_t key;             /* of the destination, in a request */
    uint16_t target_sequence; /* the receiver's next message here has this number: if it has not
                               * sent as many, the sender has begun anew */
    uint16_t source_sequence; /* of a request: the sender's next message has this number */
    uint32_t reserved2[2];
};
_Static_assert(sizeof(struct mx_connect_header) == 32, "a connection");
enum mx_connect_status {
    MX_CONNECT_DONE = 0,
    MX_CONNECT_BAD_SESSION = 10, /* it was connected, and has ended there */
    MX_CONNECT_BAD_KEY = 11
};

struct mx_ack_header {
    struct mx_common common;
    uint32_t number; /* of this acknowledgement: older ones are dropped */
    uint16_t ack;    /* see struct mx_message_header */
    uint16_t reserved;
    uint32_t reserved2[3];
};
_Static_assert(sizeof(struct mx_ack_header) == 28, "an acknowledgement");

struct mx_nack_header {
    struct mx_common common; /* session: the one that was refused */
    uint8_t nack;            /* enum mx_nack */
    uint8_t refused;         /* the type of the packet that was refused */
    uint16_t sequence;       /* of it */
    uint32_t reserved;
};
_Static_assert(sizeof(struct mx_nack_header) == 16, "a refusal");

struct mx_nack_pull_header {
    uint8_t type, nack;
    uint16_t reserved;
    uint32_t reserved2;
    uint32_t handle, magic;
};
_Static_assert(sizeof(struct mx_nack_pull_header) == 16, "a refused pull");
_Static_assert(offsetof(struct mx_nack_pull_header, magic) ==
                   offsetof(struct mx_reply_header, magic),
               "what goes to a pull has its magic at one place");

#define MX_HEADER_BYTES_MAX (MX_HEAD_BYTES + 32u)
#define MX_MTU_BYTES        (32u + MX_FRAGMENT_BYTES + 2u) /* behind Ethernet's header */

/* The magic of a pull tells its endpoint. */
#define MX_MAGIC_XOR UINT32_C(0x21071980)
static inline uint32_t mx_magic(uint8_t endpoint)
{
    return MX_MAGIC_XOR ^ endpoint;
}

/* The endpoint that a packet is for, from its first 32 bytes; all that a NIC has to know of MX to
 * choose a receive queue. */
static inline uint8_t mx_packet_endpoint(const uint8_t *packet)
{
    const uint8_t type = packet[MX_HEAD_BYTES];
    if (type != MX_PACKET_PULL_REPLY && type != MX_PACKET_NACK_PULL)
        return packet[MX_HEAD_BYTES + offsetof(struct mx_common, destination_endpoint)];
    return (uint8_t)(packet[MX_HEAD_BYTES + offsetof(struct mx_reply_header, magic) + 3] ^
                     (MX_MAGIC_XOR & 0xff));
}
/* The receive queue of an endpoint, of n_queues (the driver's list of interrupts is in the same
 * order). */
static inline unsigned mx_endpoint_queue(uint8_t endpoint, unsigned n_queues)
{
    return endpoint % n_queues;
}

#endif
