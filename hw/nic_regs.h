/*
 * The data sheet of our Ethernet NIC: what its driver writes and reads and its model acts on. It is
 * laid out like mlx5 (work queue entries of 64-byte blocks, doorbell records, completions with an
 * owner bit, event queues). The numbers are our own; no vendor's driver runs on it. All fields are
 * little endian. Driver: logic/nic/. Model: models/nic/.
 */
#ifndef HW_NIC_REGS_H
#define HW_NIC_REGS_H

#include <stddef.h>
#include <stdint.h>

#define NIC_VENDOR_ID    0x15b3u
#define NIC_DEVICE_ID    0x1013u   /* physical function */
#define NIC_CLASS_CODE   0x020000u /* Ethernet controller */
#define NIC_VF_DEVICE_ID 0x1014u

/* ---- BAR 0: registers, 4 bytes each unless said otherwise ------------------------------------ */
#define NIC_BAR_BYTES       0x80000u
#define NIC_REG_VERSION     0x000u /* NIC_VERSION */
#define NIC_REG_FIRMWARE    0x004u /* enum nic_firmware */
#define NIC_REG_FUNCTION    0x008u /* index of this physical function */
#define NIC_REG_N_FUNCTIONS 0x00cu
#define NIC_REG_MAC_LOW     0x010u /* bytes 0..3 of the function's MAC */
#define NIC_REG_MAC_HIGH    0x014u /* bytes 4..5 */
#define NIC_REG_N_QUEUES    0x018u /* at most so many of each kind */
#define NIC_REG_N_ARFS      0x01cu /* entries of this function's flow table */
#define NIC_REG_N_SWITCH    0x020u /* entries of the multi-PF switch (shared by all functions) */
#define NIC_REG_LINK        0x024u /* 1: up */
#define NIC_REG_RATE_GBIT_S 0x028u
/* I/O virtual address of a command block. Writing the upper half starts it. */
#define NIC_REG_COMMAND_LOW  0x040u
#define NIC_REG_COMMAND_HIGH 0x044u
#define NIC_VERSION          0x6e6d0001u

enum nic_firmware {
    NIC_FIRMWARE_STANDARD, /* each function has its own MAC; the switch routes by MAC */
    NIC_FIRMWARE_OCTONIC,  /* one MAC; the switch routes by 5-tuple */
};

/* Doorbells, 8 bytes each. SQ: WQE blocks posted so far (16 bits). CQ: arms; the queue sends an
 * event as soon as there is an entry at this consumer index (24 bits) or later. EQ: consumer index;
 * arms. */
#define NIC_DOORBELL_SQ(sq) (0x10000u + 8u * (sq))
#define NIC_DOORBELL_CQ(cq) (0x20000u + 8u * (cq))
#define NIC_DOORBELL_EQ(eq) (0x30000u + 8u * (eq))
#define NIC_MSIX_TABLE      0x40000u
#define NIC_MSIX_PBA        0x48000u
#define NIC_MSIX_VECTORS    128u

/* ---- Queues in host memory ------------------------------------------------------------------- */
/* Doorbell record, 4 bytes in host memory: RQ: WQEs posted so far; SQ: blocks posted so far. The
 * NIC reads that of an RQ when it knows of few posted buffers. */

#define NIC_WQE_BLOCK_BYTES 64u
#define NIC_WQE_BLOCKS_MAX  8u

/* Transmit WQE: a control segment; an ethernet segment with inline headers, which begin in its last
 * 2 bytes and are padded to 16; data segments. n_segments counts units of 16 bytes. The headers of
 * every packet are inline. A WQE may wrap around the end of the ring; the rest of its last block is
 * unused. The NIC skips a WQE with NIC_OP_NOP whatever its other fields contain. */
struct nic_wqe_control {
    uint8_t opcode; /* enum nic_opcode */
    uint8_t n_segments;
    uint16_t index; /* of the first block */
    uint16_t queue;
    uint8_t flags; /* NIC_WQE_* */
    uint8_t reserved[9];
};
_Static_assert(offsetof(struct nic_wqe_control, opcode) == 0, "opcode");
_Static_assert(offsetof(struct nic_wqe_control, n_segments) == 1, "n_segments");
_Static_assert(offsetof(struct nic_wqe_control, index) == 2, "index");
_Static_assert(offsetof(struct nic_wqe_control, queue) == 4, "queue");
_Static_assert(offsetof(struct nic_wqe_control, flags) == 6, "flags");
_Static_assert(sizeof(struct nic_wqe_control) == 16, "control segment");
#define NIC_WQE_COMPLETION 0x1u /* write a CQE when sent */

struct nic_wqe_ethernet {
    uint32_t reserved0;
    uint8_t checksum; /* NIC_CHECKSUM_* to compute */
    uint8_t reserved1;
    uint16_t segment_bytes; /* TSO: payload of a segment; 0: one packet */
    uint32_t reserved2;
    uint16_t inline_bytes; /* headers: of the packet, or of each segment to be made */
    uint8_t inline_start[2];
};
_Static_assert(offsetof(struct nic_wqe_ethernet, checksum) == 4, "checksum");
_Static_assert(offsetof(struct nic_wqe_ethernet, segment_bytes) == 6, "segment_bytes");
_Static_assert(offsetof(struct nic_wqe_ethernet, inline_bytes) == 12, "inline_bytes");
_Static_assert(offsetof(struct nic_wqe_ethernet, inline_start) == 14, "inline_start");
_Static_assert(sizeof(struct nic_wqe_ethernet) == 16, "ethernet segment");
#define NIC_CHECKSUM_L3 0x1u
#define NIC_CHECKSUM_L4 0x2u

struct nic_wqe_data {
    uint32_t bytes;
    uint8_t function_hint; /* IOctoSG: physical function + 1 to fetch it through; 0: this one */
    uint8_t reserved[3];
    uint64_t iova;
};
_Static_assert(offsetof(struct nic_wqe_data, bytes) == 0, "bytes");
_Static_assert(offsetof(struct nic_wqe_data, function_hint) == 4, "function_hint");
_Static_assert(offsetof(struct nic_wqe_data, iova) == 8, "iova");
_Static_assert(sizeof(struct nic_wqe_data) == 16, "data segment");

enum nic_opcode { NIC_OP_NOP = 0, NIC_OP_SEND = 1, NIC_OP_TSO = 2 };
/* Receive WQE: one struct nic_wqe_data per packet. */
#define NIC_RQ_WQE_BYTES 16u

/* Completion. The owner bit toggles with each pass over the ring: pass 0 writes 1. */
struct nic_cqe {
    uint32_t rss_hash;
    uint8_t flags;    /* NIC_CQE_* */
    uint8_t segments; /* LRO: packets merged; else 1 */
    uint16_t header_bytes;
    uint32_t bytes;     /* received, headers included */
    uint16_t wqe_index; /* RQ: the buffer; SQ: first block of the WQE that was sent */
    uint16_t queue;
    /* RQ: arrival of the packet at the port, by one clock for all functions: it gives the order of
     * a flow's packets even if they went to several queues. */
    uint64_t time_ps;
    /* RQ with LRO, segments > 1: fields of the last packet, flags of all packets together. The
     * buffer holds the headers of the first; software corrects lengths and checksums. */
    uint32_t lro_ack, lro_tsval, lro_tsecr;
    uint16_t lro_window;
    uint8_t lro_flags;
    uint8_t reserved[24];
    uint8_t op_own; /* opcode << 4 | owner */
};
_Static_assert(offsetof(struct nic_cqe, rss_hash) == 0, "rss_hash");
_Static_assert(offsetof(struct nic_cqe, flags) == 4, "flags");
_Static_assert(offsetof(struct nic_cqe, segments) == 5, "segments");
_Static_assert(offsetof(struct nic_cqe, header_bytes) == 6, "header_bytes");
_Static_assert(offsetof(struct nic_cqe, bytes) == 8, "bytes");
_Static_assert(offsetof(struct nic_cqe, wqe_index) == 12, "wqe_index");
_Static_assert(offsetof(struct nic_cqe, queue) == 14, "queue");
_Static_assert(offsetof(struct nic_cqe, time_ps) == 16, "time_ps");
_Static_assert(offsetof(struct nic_cqe, lro_ack) == 24, "lro_ack");
_Static_assert(offsetof(struct nic_cqe, lro_tsval) == 28, "lro_tsval");
_Static_assert(offsetof(struct nic_cqe, lro_tsecr) == 32, "lro_tsecr");
_Static_assert(offsetof(struct nic_cqe, lro_window) == 36, "lro_window");
_Static_assert(offsetof(struct nic_cqe, lro_flags) == 38, "lro_flags");
_Static_assert(offsetof(struct nic_cqe, op_own) == 63, "op_own");
_Static_assert(sizeof(struct nic_cqe) == 64, "completion");
#define NIC_CQE_CHECKSUM_OK 0x1u
#define NIC_CQE_HASH        0x2u
/* ERROR: the queue has failed, and does nothing more. SQ: at wqe_index; RQ: its entries or its
 * record could not be read, wqe_index is the first buffer that stays unused. */
enum nic_cqe_opcode { NIC_CQE_SENT = 1, NIC_CQE_RECEIVED = 2, NIC_CQE_ERROR = 13 };

/* Event. */
struct nic_eqe {
    uint8_t type; /* enum nic_event */
    uint8_t reserved0;
    uint16_t queue; /* completion queue */
    uint8_t reserved[59];
    uint8_t owner;
};
_Static_assert(offsetof(struct nic_eqe, type) == 0, "type");
_Static_assert(offsetof(struct nic_eqe, queue) == 2, "queue");
_Static_assert(offsetof(struct nic_eqe, owner) == 63, "owner");
_Static_assert(sizeof(struct nic_eqe) == 64, "event");
enum nic_event { NIC_EVENT_COMPLETION = 1, NIC_EVENT_LINK = 2 };

/* ---- Commands: a block of 64 bytes that the NIC reads, executes and writes back -------------- */
/* What a rule for packets other than IPv4's compares: the Ethernet type, and words of 32 bits of
 * the packet, big endian, from any byte of its headers on (0: the first of the destination
 * address). A word counts where `mask` has ones; `value` has none where `mask` has none. mask 0:
 * the word does not count. */
#define NIC_MATCH_WORDS 2u
struct nic_match {
    uint16_t ether_type;
    uint8_t offset[NIC_MATCH_WORDS];
    struct {
        uint32_t mask, value;
    } word[NIC_MATCH_WORDS];
};
_Static_assert(offsetof(struct nic_match, offset) == 2, "offset");
_Static_assert(offsetof(struct nic_match, word) == 4, "word");
_Static_assert(sizeof(struct nic_match) == 20, "match");
/* Rules of each function, and of the multi-PF switch: 0 .. NIC_MATCHES - 1. Of those that a packet
 * meets the one with the lowest number counts. */
#define NIC_MATCHES 1024u

struct nic_command {
    uint16_t opcode; /* enum nic_command_opcode */
    uint8_t status;  /* out: enum nic_command_status; NIC_COMMAND_PENDING while it runs */
    uint8_t log_entries;
    uint16_t queue; /* number, chosen by the driver: 0 .. NIC_REG_N_QUEUES - 1; of a match */
    /* CQ: its EQ; EQ: its MSI-X vector; SQ, RQ: their CQ; flow, match: its RQ; switch rule: its
     * physical function. */
    uint16_t target;
    uint64_t iova; /* of the ring; RSS: of a table of uint16_t RQ numbers, 1 << log_entries */
    uint64_t record_iova;   /* SQ, RQ: doorbell record */
    uint16_t moderation_us; /* CQ */
    uint16_t moderation_count;
    uint8_t moderation_mode; /* enum nic_moderation */
    uint8_t flags;           /* NIC_COMMAND_* */
    uint16_t n_vfs;
    union {
        struct {
            uint32_t source_ip, destination_ip; /* flows and switch rules; host byte order */
            uint16_t source_port, destination_port;
            uint8_t protocol;
            uint8_t mac[6];
            uint8_t reserved0;
        };
        struct nic_match match;
    };
    uint32_t value; /* out: queries */
    uint8_t reserved1[8];
};
_Static_assert(offsetof(struct nic_command, opcode) == 0, "opcode");
_Static_assert(offsetof(struct nic_command, status) == 2, "status");
_Static_assert(offsetof(struct nic_command, log_entries) == 3, "log_entries");
_Static_assert(offsetof(struct nic_command, queue) == 4, "queue");
_Static_assert(offsetof(struct nic_command, target) == 6, "target");
_Static_assert(offsetof(struct nic_command, iova) == 8, "iova");
_Static_assert(offsetof(struct nic_command, record_iova) == 16, "record_iova");
_Static_assert(offsetof(struct nic_command, moderation_us) == 24, "moderation_us");
_Static_assert(offsetof(struct nic_command, moderation_count) == 26, "moderation_count");
_Static_assert(offsetof(struct nic_command, moderation_mode) == 28, "moderation_mode");
_Static_assert(offsetof(struct nic_command, flags) == 29, "flags");
_Static_assert(offsetof(struct nic_command, n_vfs) == 30, "n_vfs");
_Static_assert(offsetof(struct nic_command, source_ip) == 32, "source_ip");
_Static_assert(offsetof(struct nic_command, destination_ip) == 36, "destination_ip");
_Static_assert(offsetof(struct nic_command, source_port) == 40, "source_port");
_Static_assert(offsetof(struct nic_command, destination_port) == 42, "destination_port");
_Static_assert(offsetof(struct nic_command, protocol) == 44, "protocol");
_Static_assert(offsetof(struct nic_command, mac) == 45, "mac");
_Static_assert(offsetof(struct nic_command, match) == 32, "match");
_Static_assert(offsetof(struct nic_command, value) == 52, "value");
_Static_assert(sizeof(struct nic_command) == 64, "command block");
/* RQ: the NIC merges segments of a flow into one buffer. The completion follows when the merging
 * ends; other buffers may complete before it, so completions are not in the order of buffers. */
#define NIC_COMMAND_LRO 0x1u
/* Matches: the rule is one of the multi-PF switch (octonic), `target` a physical function. */
#define NIC_COMMAND_SWITCH 0x2u

enum nic_command_opcode {
    NIC_CREATE_EQ = 1,
    NIC_CREATE_CQ,
    NIC_MODIFY_CQ, /* moderation */
    NIC_CREATE_SQ,
    NIC_CREATE_RQ,
    NIC_DESTROY_EQ,
    NIC_DESTROY_CQ,
    NIC_DESTROY_SQ,
    NIC_DESTROY_RQ, /* the NIC drops packets for it from then on */
    NIC_SET_RSS,
    /* Flows and switch rules. Whatever its result, the answer to such a command follows, on the way
     * to host memory, the packets and completions that this function received before the command
     * took effect. */
    NIC_SET_FLOW, /* ARFS table of this function: the flow goes to RQ `target` */
    NIC_DELETE_FLOW,
    /* Multi-PF switch: a MAC (standard) or 5-tuple (octonic) goes to function `target`; octonic
     * with protocol 0: all flows without a rule do (at reset, to function 0). */
    NIC_SET_SWITCH,
    NIC_DELETE_SWITCH,
    NIC_QUERY_DROPS, /* packets that this function dropped for lack of a buffer */
    NIC_ENABLE_VFS,
    /* Rule `queue` for packets other than IPv4's, of this function or of the multi-PF switch;
     * answered like flows. */
    NIC_SET_MATCH,
    NIC_DELETE_MATCH,
};
enum nic_command_status {
    NIC_COMMAND_OK = 0,
    NIC_COMMAND_NO_RESOURCE = 1, /* table full, no queue left */
    NIC_COMMAND_BAD = 2,
    NIC_COMMAND_NOT_FOUND = 3,
    NIC_COMMAND_PENDING = 0xff,
};
/* When the period moderation_us begins: with the last event (EQE; after a longer silence there is
 * no delay), or again with each completion (CQE). An event is due when the period is over, or when
 * moderation_count completions (0: no limit) wait at or after the armed consumer index; immediately
 * if moderation_us is 0. */
enum nic_moderation { NIC_MODERATION_EQE, NIC_MODERATION_CQE };

#endif
