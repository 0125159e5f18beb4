/*
 * The data sheet of our Ethernet NIC: what its driver writes and reads and its model acts on. Laid
 * out in the way of mlx5 (work queue entries of 64 B blocks, doorbell records, completions with an
 * owner bit, event queues), with its own numbers: no binary driver is to be fooled by it. All
 * fields are little endian. Driver: logic/nic/. Model: models/nic/. The one header of logic/ that
 * device models may include, since a data sheet has one copy.
 */
#ifndef HW_NIC_REGS_H
#define HW_NIC_REGS_H

#include <stdint.h>

#define NIC_VENDOR_ID    0x15b3u
#define NIC_DEVICE_ID    0x1013u /* physical function */
#define NIC_VF_DEVICE_ID 0x1014u

/* ---- BAR 0: registers, 4 bytes each unless said otherwise ------------------------------------ */
#define NIC_BAR_BYTES       0x80000u
#define NIC_REG_VERSION     0x000u /* NIC_VERSION */
#define NIC_REG_FIRMWARE    0x004u /* enum nic_firmware */
#define NIC_REG_FUNCTION    0x008u /* index of this physical function */
#define NIC_REG_N_FUNCTIONS 0x00cu
#define NIC_REG_MAC_LOW     0x010u /* bytes 0..3 of the function's MAC */
#define NIC_REG_MAC_HIGH    0x014u /* bytes 4..5 */
#define NIC_REG_N_QUEUES    0x018u /* of each kind at most */
#define NIC_REG_N_ARFS      0x01cu /* entries of this function's flow table */
#define NIC_REG_N_SWITCH    0x020u /* entries of the multi-PF switch (shared by all functions) */
#define NIC_REG_LINK        0x024u /* 1: up */
#define NIC_REG_RATE_GBIT_S 0x028u
/* Writing the upper half starts the command block at that I/O virtual address. */
#define NIC_REG_COMMAND_LOW  0x040u
#define NIC_REG_COMMAND_HIGH 0x044u
#define NIC_VERSION          0x6e6d0001u

enum nic_firmware {
    NIC_FIRMWARE_STANDARD, /* each function has its own MAC; the switch goes by MAC */
    NIC_FIRMWARE_OCTONIC,  /* one MAC; the switch goes by 5-tuple */
};

/* Doorbells, 8 bytes each. */
#define NIC_DOORBELL_SQ(sq) (0x10000u + 8u * (sq)) /* producer: WQE blocks ever posted, 16 bits */
#define NIC_DOORBELL_CQ(cq) \
    (0x20000u + 8u * (cq))                         /* arm: interrupt once there is an entry from \
                                                       this consumer index (24 bits) on */
#define NIC_DOORBELL_EQ(eq) (0x30000u + 8u * (eq)) /* consumer index; arms */
#define NIC_MSIX_TABLE      0x40000u
#define NIC_MSIX_PBA        0x48000u
#define NIC_MSIX_VECTORS    128u

/* ---- Queues in host memory ------------------------------------------------------------------- */
/* Doorbell record, 4 bytes in host memory: RQ: WQEs ever posted; SQ: blocks ever posted. The NIC
 * reads an RQ's when it knows of few posted buffers. */

#define NIC_WQE_BLOCK_BYTES 64u
#define NIC_WQE_BLOCKS_MAX  8u

/* Transmit WQE: control, ethernet with inline headers (from the last 2 bytes of the ethernet
 * segment on, rounded up to 16), data segments; n_segments counts units of 16 bytes. Every packet's
 * headers are inline. A WQE may go on at the start of the ring; what it leaves of its last block is
 * not used. NIC_OP_NOP: skipped, whatever else it says. */
struct nic_wqe_control {
    uint8_t opcode; /* enum nic_opcode */
    uint8_t n_segments;
    uint16_t index; /* of the first block */
    uint16_t queue;
    uint8_t flags; /* NIC_WQE_* */
    uint8_t reserved[9];
};
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
#define NIC_CHECKSUM_L3 0x1u
#define NIC_CHECKSUM_L4 0x2u
struct nic_wqe_data {
    uint32_t bytes;
    uint8_t function_hint; /* IOctoSG: physical function + 1 to fetch it through; 0: this one */
    uint8_t reserved[3];
    uint64_t iova;
};
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
    uint64_t time_ps; /* RQ: when the packet arrived at the port, of one clock for all functions; so
                         packets of a flow are in its order whichever queue they went to */
    /* RQ with LRO, segments > 1: of the last packet, but the flags of all of them. The headers in
     * the buffer are the first packet's: lengths and checksums are for software to set. */
    uint32_t lro_ack, lro_tsval, lro_tsecr;
    uint16_t lro_window;
    uint8_t lro_flags;
    uint8_t reserved[24];
    uint8_t op_own; /* opcode << 4 | owner */
};
#define NIC_CQE_CHECKSUM_OK 0x1u
#define NIC_CQE_HASH        0x2u
enum nic_cqe_opcode { NIC_CQE_SENT = 1, NIC_CQE_RECEIVED = 2, NIC_CQE_ERROR = 13 };

/* Event. */
struct nic_eqe {
    uint8_t type; /* enum nic_event */
    uint8_t reserved0;
    uint16_t queue; /* completion queue */
    uint8_t reserved[59];
    uint8_t owner;
};
enum nic_event { NIC_EVENT_COMPLETION = 1, NIC_EVENT_LINK = 2 };

_Static_assert(sizeof(struct nic_wqe_control) == 16, "control segment");
_Static_assert(sizeof(struct nic_wqe_ethernet) == 16, "ethernet segment");
_Static_assert(sizeof(struct nic_wqe_data) == 16, "data segment");
_Static_assert(sizeof(struct nic_cqe) == 64, "completion");
_Static_assert(sizeof(struct nic_eqe) == 64, "event");

/* ---- Commands: a block of 64 bytes that the NIC reads, executes and writes back -------------- */
struct nic_command {
    uint16_t opcode; /* enum nic_command_opcode */
    uint8_t status;  /* out: enum nic_command_status; NIC_COMMAND_PENDING while it runs */
    uint8_t log_entries;
    uint16_t queue;  /* number, chosen by the driver: 0 .. NIC_REG_N_QUEUES - 1 */
    uint16_t target; /* CQ: its EQ; EQ: its MSI-X vector; SQ, RQ: their CQ; flow: its RQ; switch
                        rule: its physical function */
    uint64_t iova;   /* of the ring; RSS: of a table of uint16_t RQ numbers, 1 << log_entries */
    uint64_t record_iova;   /* SQ, RQ: doorbell record */
    uint16_t moderation_us; /* CQ */
    uint16_t moderation_count;
    uint8_t moderation_mode; /* enum nic_moderation */
    uint8_t flags;           /* NIC_COMMAND_* */
    uint16_t n_vfs;
    uint32_t source_ip, destination_ip; /* flows and switch rules; host byte order */
    uint16_t source_port, destination_port;
    uint8_t protocol;
    uint8_t mac[6];
    uint8_t reserved0;
    uint32_t value; /* out: queries */
    uint8_t reserved1[8];
};
_Static_assert(sizeof(struct nic_command) == 64, "command block");
#define NIC_COMMAND_LRO \
    0x1u /* RQ: merge segments of a flow in the NIC, as far as a buffer goes. A completion comes  \
            when the merging ends, those of other buffers meanwhile: not in the order of buffers. \
          */

enum nic_command_opcode {
    NIC_CREATE_EQ = 1,
    NIC_CREATE_CQ,
    NIC_MODIFY_CQ, /* moderation */
    NIC_CREATE_SQ,
    NIC_CREATE_RQ,
    NIC_DESTROY_EQ,
    NIC_DESTROY_CQ,
    NIC_DESTROY_SQ,
    NIC_DESTROY_RQ, /* packets for it are dropped from then on */
    NIC_SET_RSS,
    /* The commands for flows and switch rules, whatever their result, report when what arrived
     * before they acted for the function that is asked is on its way to host memory, completions
     * included: the report follows it there. */
    NIC_SET_FLOW, /* ARFS table of this function: the flow goes to RQ `target` */
    NIC_DELETE_FLOW,
    /* multi-PF switch: MAC (standard), 5-tuple (octonic) to function `target`; octonic with
     * protocol 0: where flows without a rule go (function 0 at first) */
    NIC_SET_SWITCH,
    NIC_DELETE_SWITCH,
    NIC_QUERY_DROPS, /* packets dropped for want of a buffer, this function */
    NIC_ENABLE_VFS,
};
/* The answer to a flow or switch rule comes when it is in force, and behind the packets that came
 * in for the function that was asked before it was. */
enum nic_command_status {
    NIC_COMMAND_OK = 0,
    NIC_COMMAND_NO_RESOURCE = 1, /* table full, no such queue left */
    NIC_COMMAND_BAD = 2,
    NIC_COMMAND_NOT_FOUND = 3,
    NIC_COMMAND_PENDING = 0xff,
};
/* When the time of moderation_us begins: with the last event that was made (EQE: after a longer
 * silence there is no delay), or anew with each completion (CQE). An event is due when it is over
 * or moderation_count completions (0: no limit) wait, from the consumer index armed on; at once if
 * moderation_us is 0. */
enum nic_moderation { NIC_MODERATION_EQE, NIC_MODERATION_CQE };

#endif
