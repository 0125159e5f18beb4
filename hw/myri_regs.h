/*
 * Myricom Myri-10G (10G-PCIE-8A: Lanai Z8E on PCI Express Gen1 x8): what its driver writes and
 * reads and the model acts on, with its Ethernet firmware.
 *
 * The adapter is a processor with 2 MiB of SRAM. Requests are lines of 64 bytes that the driver
 * stores through a write-combining mapping: commands, lists of buffers to send, buffers to receive
 * into. Answers are DMA writes: of a command to an address in it, of packets to a queue of
 * MYRI_SLOT_BYTES for each, of interrupts to a block of 64 bytes. A *slice* is a receive queue with
 * what belongs to it: rings, queue, block, interrupt.
 *
 * Names, numbers and layouts are those of the myri10ge driver of Linux (myri10ge_mcp.h, version 1.4
 * of the interface; the windows for lines as its versions of 2008 use them). All fields are big
 * endian: myri_be16(), myri_be32() convert them, either way. Where things lie in the SRAM is the
 * firmware's to choose; drivers ask by commands. Driver: logic/myri/. Model: models/myri/.
 */
#ifndef HW_MYRI_REGS_H
#define HW_MYRI_REGS_H

#include <stddef.h>
#include <stdint.h>

#define MYRI_VENDOR_ID  0x14c1u
#define MYRI_DEVICE_ID  0x0008u
#define MYRI_CLASS      0x020000u /* Ethernet controller */
#define MYRI_SLICES_MAX 8u
#define MYRI_BAR_BYTES  0x1000000u /* BAR 0: SRAM and windows, prefetchable */
#define MYRI_MSIX_BAR   2u
#define MYRI_MSIX_BYTES 0x100000u /* BAR 2 */
#define MYRI_MSIX_TABLE 0x0u
#define MYRI_MSIX_PBA   0x8000u
#define MYRI_LINE_BYTES 64u
#define MYRI_MTU_MAX    9400u /* longest frame */
#define MYRI_PAD_BYTES \
    2u                         /* before each received frame, so that what follows Ethernet is
                             * aligned */
#define MYRI_SEND_MAX    12u   /* segments of a packet */
#define MYRI_SEGMENT_MAX 4096u /* a segment ends at each multiple of this address */

static inline uint16_t myri_be16(uint16_t v)
{
    return __builtin_bswap16(v);
}
static inline uint32_t myri_be32(uint32_t v)
{
    return __builtin_bswap32(v);
}

/* ---- BAR 0 ----------------------------------------------------------------------------------- */

/* Text: "MAC=xx:xx:xx:xx:xx:xx" and others, each ended by a zero, the last by two. */
#define MYRI_STRINGS       0x1dff00u
#define MYRI_STRINGS_BYTES 256u

/* Windows for lines. Those of a slice are at 64 bytes times its number. A line of up to four
 * requests to send goes to the window that says how many they are. */
#define MYRI_SEND(n)       (0x200000u + ((n)&3u) * 0x40000u) /* n: 1 .. 4 */
#define MYRI_RECEIVE_SMALL 0x300000u
#define MYRI_RECEIVE_BIG   0x340000u
#define MYRI_WINDOW_BYTES  0x40000u
#define MYRI_COMMAND       0xf80000u

/* ---- Commands -------------------------------------------------------------------------------- */

struct myri_command {
    uint32_t command;
    uint32_t data0, data1, data2; /* data0: low half of an address, data1: high half */
    uint32_t response_high, response_low;
    uint32_t reserved[10];
};
_Static_assert(sizeof(struct myri_command) == MYRI_LINE_BYTES, "a command");

struct myri_response {
    uint32_t data, result;
};
_Static_assert(sizeof(struct myri_response) == 8, "a response");

enum myri_command_type {
    MYRI_RESET = 1,
    MYRI_GET_VERSION = 2,             /* upper half: major */
    MYRI_SET_QUEUE_DMA = 3,           /* completion queue; data2: slice */
    MYRI_SET_BIG_BYTES = 4,           /* of a big buffer: a power of two */
    MYRI_SET_SMALL_BYTES = 5,         /* longest frame that goes to a small buffer */
    MYRI_GET_ACK_OFFSET = 9,          /* of slice 0's; others follow at 8 bytes each */
    MYRI_GET_SEND_RING_BYTES = 11,    /* data0: slice */
    MYRI_GET_RECEIVE_RING_BYTES = 12, /* data0: slice */
    MYRI_SET_QUEUE_BYTES = 13,        /* of each completion queue */
    MYRI_UP = 14,
    MYRI_DOWN = 15, /* answered when all that was under way has ended */
    MYRI_SET_MTU = 16,
    MYRI_GET_COALESCING_OFFSET = 17, /* of a word, in microseconds */
    MYRI_SET_MAC = 22,               /* data0: four bytes, the first on top; data1: two */
    MYRI_SET_STATUS_DMA = 31,        /* data2: bytes of the block, slice << 16 */
    MYRI_GET_SLICES_MAX = 35,        /* unknown to firmware with one receive queue */
    MYRI_ENABLE_SLICES = 36,         /* data0: how many; data1: MYRI_SLICES_* */
    MYRI_GET_TABLE_OFFSET = 39,      /* of the bytes by which hashes go to slices */
    MYRI_SET_TABLE_ENTRIES = 40,
    MYRI_SET_STEERING = 43, /* data0: on; data1: hash: MYRI_HASH_PORTS */
};
#define MYRI_VERSION                0x00010004u
#define MYRI_SLICES_INTERRUPT_EACH  1u
#define MYRI_HASH_PORTS             5u /* of TCP and UDP: both added */
#define MYRI_STATUS_DMA_SLICE_SHIFT 16

enum myri_result {
    MYRI_OK = 0,
    MYRI_UNKNOWN = 1,
    MYRI_ERROR_RANGE = 2,
    MYRI_ERROR_BUSY = 3,
    MYRI_ERROR_CLOSED = 5,
};

/* ---- Sending --------------------------------------------------------------------------------- */

/* A segment. One that begins on a multiple of MYRI_SEGMENT_MAX may be as long as that. */
struct myri_send {
    uint32_t high, low;     /* address */
    uint16_t header_offset; /* of the checksum to fill in */
    uint16_t bytes;
    uint8_t pad;
    uint8_t n_segments;      /* of the packet, in its first one */
    uint8_t checksum_offset; /* where it begins */
    uint8_t flags;           /* MYRI_SEND_* */
};
_Static_assert(sizeof(struct myri_send) == 16, "a segment");
#define MYRI_SENDS_PER_LINE 4u
#define MYRI_SEND_SMALL     0x01u /* of a short packet: its first segment */
#define MYRI_SEND_FIRST     0x02u
#define MYRI_SEND_ALIGN_ODD 0x04u /* the segments before have an odd length */
#define MYRI_SEND_CHECKSUM  0x08u /* every segment */
#define MYRI_SEND_NO_TSO    0x10u
#define MYRI_SEND_SMALL_MAX 1520u

/* ---- Receiving ------------------------------------------------------------------------------- */

struct myri_receive {
    uint32_t high, low;
};
#define MYRI_RECEIVES_PER_LINE 8u
_Static_assert(MYRI_RECEIVES_PER_LINE * sizeof(struct myri_receive) == MYRI_LINE_BYTES, "a line");

/* An entry of a completion queue; bytes is written last and 0 before. */
struct myri_slot {
    uint16_t checksum; /* ones' complement sum of all that follows the Ethernet header */
    uint16_t bytes;    /* of the frame, without MYRI_PAD_BYTES */
};
#define MYRI_SLOT_BYTES 4u
_Static_assert(sizeof(struct myri_slot) == MYRI_SLOT_BYTES, "a completion");

/* ---- Interrupts ------------------------------------------------------------------------------ */

/* Written to the block of slice 0 before its interrupt. */
struct myri_status {
    uint32_t reserved;
    uint32_t dropped_pause, dropped_filtered, dropped_crc, dropped_phy, dropped_multicast;
    uint32_t send_done; /* packets whose buffers are free again, since MYRI_UP */
    uint32_t link_up;
    uint32_t dropped_overflow, dropped_link, dropped_runt, dropped_overrun;
    uint32_t dropped_no_small, dropped_no_big;
    uint32_t tags_available;
    uint8_t sends_stopped, link_down;
    uint8_t updated; /* link and counters are new */
    uint8_t valid;   /* MYRI_VALID, and MYRI_VALID_RECEIVE: packets are in the completion queue */
};
_Static_assert(sizeof(struct myri_status) == MYRI_LINE_BYTES, "a block");
_Static_assert(offsetof(struct myri_status, send_done) == 24, "sends");
_Static_assert(offsetof(struct myri_status, valid) == 63, "the last byte");
#define MYRI_VALID         0x02u
#define MYRI_VALID_RECEIVE 0x01u

/* Two words of each slice, at MYRI_GET_ACK_OFFSET. No interrupt follows another before the driver
 * has written the second (slice 0: it has read the block), and none for packets before it has
 * written the first (it has emptied the completion queue). */
#define MYRI_ACK_BYTES  8u
#define MYRI_ACK_CLAIM  0u
#define MYRI_ACK_STATUS 4u
#define MYRI_ACK_VALUE  3u /* big endian, as all */

#endif
