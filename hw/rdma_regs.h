/*
 * The data sheet of our RDMA adapter: what its driver writes and reads and its model acts on. It is
 * laid out like mlx5 (work queue entries of 64-byte blocks, doorbell records, completions with an
 * owner bit, event queues); what queue pairs, keys and completions mean is that of the InfiniBand
 * Architecture Specification 1.3, volume 1 (IBTA), which the sections name. The numbers of
 * registers and commands are our own; no vendor's driver runs on it. All fields are little endian.
 * Driver: logic/rdma/. Model: models/rdma/.
 */
#ifndef HW_RDMA_REGS_H
#define HW_RDMA_REGS_H

#include <stddef.h>
#include <stdint.h>

#define RDMA_VENDOR_ID  0x15b3u
#define RDMA_DEVICE_ID  0x1017u   /* ConnectX-5 */
#define RDMA_CLASS_CODE 0x020700u /* InfiniBand controller */

/* ---- BAR 0: registers, 4 bytes each ---------------------------------------------------------- */
#define RDMA_BAR_BYTES        0x100000u
#define RDMA_REG_VERSION      0x000u /* RDMA_VERSION */
#define RDMA_REG_N_QPS        0x004u /* limits: numbers are below */
#define RDMA_REG_N_CQS        0x008u
#define RDMA_REG_N_EQS        0x00cu
#define RDMA_REG_N_KEYS       0x010u
#define RDMA_REG_N_PDS        0x014u
#define RDMA_REG_INLINE_BYTES 0x018u /* of a work queue entry at most */
#define RDMA_REG_READS \
    0x01cu                          /* RDMA reads and atomics of a queue pair in flight, each
                                      * way */
#define RDMA_REG_MTU_BYTES   0x020u /* largest path MTU */
#define RDMA_REG_LINK        0x024u /* 1: up */
#define RDMA_REG_RATE_GBIT_S 0x028u
/* The port's local identifier (IBTA 4.1.3), which a subnet manager assigns; 0 after a reset. */
#define RDMA_REG_LID 0x02cu
/* I/O virtual address of a command block. Writing the upper half starts it. */
#define RDMA_REG_COMMAND_LOW  0x040u
#define RDMA_REG_COMMAND_HIGH 0x044u
#define RDMA_VERSION          0x726d0001u

/* Doorbells. SQ: blocks posted so far (16 bits). RQ: the doorbell record has changed; needed in
 * state ERR alone, where it has what was posted flushed. CQ: arms; bits 23:0: an event is sent as
 * soon as there is an entry at this consumer index or later. EQ: consumer index; arms. */
#define RDMA_DOORBELL_SQ(qp)       (0x10000u + 8u * (qp))
#define RDMA_DOORBELL_RQ(qp)       (0x10004u + 8u * (qp))
#define RDMA_DOORBELL_CQ(cq)       (0x20000u + 8u * (cq))
#define RDMA_DOORBELL_CQ_SOLICITED 0x01000000u /* only for solicited entries and errors */
#define RDMA_DOORBELL_EQ(eq)       (0x28000u + 8u * (eq))
#define RDMA_MSIX_TABLE            0x30000u
#define RDMA_MSIX_PBA              0x38000u
#define RDMA_MSIX_VECTORS          64u
/* The work queue entry that is posted next, if it has at most four blocks; it is in the ring, too.
 * Rings the SQ's doorbell when the last of its blocks is there (blocks may come in any order), and
 * spares the adapter the read. */
#define RDMA_BLUEFLAME(qp)   (0x80000u + RDMA_BLUEFLAME_BYTES * (qp))
#define RDMA_BLUEFLAME_BYTES 256u

#define RDMA_QPS_MAX 2048u /* that these places have room for */
#define RDMA_CQS_MAX 4096u
#define RDMA_EQS_MAX 64u

/* ---- Queues in host memory ------------------------------------------------------------------- */
/* Doorbell records, 4 bytes each: QP: of its RQ: entries posted so far; CQ: consumer index. The
 * adapter reads them when it knows of few posted entries, or of no room. */

#define RDMA_WQE_BLOCK_BYTES 64u
#define RDMA_WQE_BLOCKS_MAX  16u
#define RDMA_SGES_MAX        30u
#define RDMA_RING_LOG_MAX    15u

/* Send WQE: a control segment; a remote segment if RDMA or atomic; an atomic segment if atomic;
 * data segments, or one inline segment. n_segments counts units of 16 bytes. A WQE may wrap around
 * the end of the ring; the rest of its last block is unused. */
struct rdma_wqe_control {
    uint8_t opcode; /* enum rdma_opcode */
    uint8_t n_segments;
    uint16_t index; /* of the first block */
    uint32_t qp;
    uint8_t flags; /* RDMA_WQE_* */
    uint8_t reserved[3];
    uint32_t immediate;
};
_Static_assert(offsetof(struct rdma_wqe_control, opcode) == 0, "opcode");
_Static_assert(offsetof(struct rdma_wqe_control, n_segments) == 1, "n_segments");
_Static_assert(offsetof(struct rdma_wqe_control, index) == 2, "index");
_Static_assert(offsetof(struct rdma_wqe_control, qp) == 4, "qp");
_Static_assert(offsetof(struct rdma_wqe_control, flags) == 8, "flags");
_Static_assert(offsetof(struct rdma_wqe_control, immediate) == 12, "immediate");
_Static_assert(sizeof(struct rdma_wqe_control) == 16, "control segment");
#define RDMA_WQE_COMPLETION 0x1u /* write a CQE when it has succeeded; after an error always */
#define RDMA_WQE_SOLICITED  0x2u
#define RDMA_WQE_FENCE      0x4u /* after all reads and atomics before it */

struct rdma_wqe_remote {
    uint64_t va;
    uint32_t rkey;
    uint32_t reserved;
};
_Static_assert(offsetof(struct rdma_wqe_remote, va) == 0, "va");
_Static_assert(offsetof(struct rdma_wqe_remote, rkey) == 8, "rkey");
_Static_assert(sizeof(struct rdma_wqe_remote) == 16, "remote segment");

struct rdma_wqe_atomic {
    uint64_t swap_or_add;
    uint64_t compare;
};
_Static_assert(offsetof(struct rdma_wqe_atomic, swap_or_add) == 0, "swap_or_add");
_Static_assert(offsetof(struct rdma_wqe_atomic, compare) == 8, "compare");
_Static_assert(sizeof(struct rdma_wqe_atomic) == 16, "atomic segment");

struct rdma_wqe_data {
    uint32_t bytes; /* RDMA_WQE_INLINE | n: n bytes of data follow instead of lkey and va */
    uint32_t lkey;
    uint64_t va;
};
_Static_assert(offsetof(struct rdma_wqe_data, bytes) == 0, "bytes");
_Static_assert(offsetof(struct rdma_wqe_data, lkey) == 4, "lkey");
_Static_assert(offsetof(struct rdma_wqe_data, va) == 8, "va");
_Static_assert(sizeof(struct rdma_wqe_data) == 16, "data segment");
#define RDMA_WQE_INLINE 0x80000000u
#define RDMA_KEY_NONE   0u /* no key; as the lkey of a receive WQE's segment: the list ends here */

/* Receive WQE: data segments, as many as the RQ's entry size has room for. */

enum rdma_opcode {
    RDMA_OP_SEND = 1,
    RDMA_OP_SEND_IMM,
    RDMA_OP_WRITE,
    RDMA_OP_WRITE_IMM,
    RDMA_OP_READ,
    RDMA_OP_COMPARE_SWAP,
    RDMA_OP_FETCH_ADD,
};

/* Completion. The owner bit toggles with each pass over the ring: pass 0 writes 1. */
struct rdma_cqe {
    uint32_t qp;
    uint32_t bytes;     /* received, read; 0 of others */
    uint32_t immediate; /* RDMA_CQE_IMMEDIATE */
    uint16_t wqe_index; /* SQ: first block of the WQE; RQ: entry */
    uint8_t status;     /* enum rdma_status */
    uint8_t opcode;     /* SQ: enum rdma_opcode; RQ: RDMA_OP_SEND or RDMA_OP_WRITE_IMM */
    uint8_t flags;      /* RDMA_CQE_* */
    uint8_t reserved[46];
    uint8_t owner; /* 0x80: written; bit 0: owner */
};
_Static_assert(offsetof(struct rdma_cqe, qp) == 0, "qp");
_Static_assert(offsetof(struct rdma_cqe, bytes) == 4, "bytes");
_Static_assert(offsetof(struct rdma_cqe, immediate) == 8, "immediate");
_Static_assert(offsetof(struct rdma_cqe, wqe_index) == 12, "wqe_index");
_Static_assert(offsetof(struct rdma_cqe, status) == 14, "status");
_Static_assert(offsetof(struct rdma_cqe, opcode) == 15, "opcode");
_Static_assert(offsetof(struct rdma_cqe, flags) == 16, "flags");
_Static_assert(offsetof(struct rdma_cqe, owner) == 63, "owner");
_Static_assert(sizeof(struct rdma_cqe) == 64, "completion");
#define RDMA_CQE_RECEIVE   0x1u /* of an RQ */
#define RDMA_CQE_IMMEDIATE 0x2u
#define RDMA_CQE_WRITTEN   0x80u

/* Completion return status (IBTA 11.6.2), numbered as by the verbs of Linux (ibv_wc_status). */
enum rdma_status {
    RDMA_SUCCESS = 0,
    RDMA_LOCAL_LENGTH = 1,     /* message longer than the receive WQE, or than 2 GiB */
    RDMA_LOCAL_QP = 2,         /* a WQE that makes no sense */
    RDMA_LOCAL_PROTECTION = 4, /* lkey, bounds, access or protection domain */
    RDMA_FLUSHED = 5,          /* the queue pair is in state ERR */
    RDMA_BAD_RESPONSE = 7,
    RDMA_REMOTE_INVALID = 9, /* the responder cannot take such a request */
    RDMA_REMOTE_ACCESS = 10, /* rkey, bounds or access */
    RDMA_REMOTE_OPERATION = 11,
    RDMA_RETRY_EXCEEDED = 12,     /* no answer */
    RDMA_RNR_RETRY_EXCEEDED = 13, /* no receive WQE over there */
};

/* Event; owner bit as of completions. Those of queue pairs, queues and links go to EQ 0. */
struct rdma_eqe {
    uint8_t type; /* enum rdma_event */
    uint8_t reserved0[3];
    uint32_t number; /* of the CQ or QP */
    uint8_t reserved[7];
    uint8_t owner; /* 0x80: written; bit 0: owner */
};
_Static_assert(offsetof(struct rdma_eqe, type) == 0, "type");
_Static_assert(offsetof(struct rdma_eqe, number) == 4, "number");
_Static_assert(offsetof(struct rdma_eqe, owner) == 15, "owner");
_Static_assert(sizeof(struct rdma_eqe) == 16, "event");
enum rdma_event {
    RDMA_EVENT_COMPLETION = 1,
    RDMA_EVENT_QP_FATAL,   /* the queue pair went to ERR because of a request from its peer, or as
                              its CQ overflowed */
    RDMA_EVENT_SQ_DRAINED, /* in state SQD nothing is under way any more */
    RDMA_EVENT_CQ_OVERRUN,
    RDMA_EVENT_LINK,
};

/* ---- Queue pairs (IBTA 10.3.1) --------------------------------------------------------------- */
enum rdma_qp_state {
    RDMA_QP_RESET,
    RDMA_QP_INIT,
    RDMA_QP_RTR, /* ready to receive */
    RDMA_QP_RTS, /* ready to send */
    RDMA_QP_SQD, /* send queue drain */
    RDMA_QP_SQE, /* send queue error: not of reliable connections, which go to ERR */
    RDMA_QP_ERR,
};
#define RDMA_ACCESS_LOCAL_WRITE   0x1u
#define RDMA_ACCESS_REMOTE_WRITE  0x2u
#define RDMA_ACCESS_REMOTE_READ   0x4u
#define RDMA_ACCESS_REMOTE_ATOMIC 0x8u

/* Path MTU (IBTA 9.6.1.4): 256 bytes << (code - 1). */
#define RDMA_MTU_CODE_MIN       1u
#define RDMA_MTU_CODE_MAX       5u
#define RDMA_MTU_BYTES(code)    (128u << (code))
#define RDMA_TIMEOUT_UNIT_NS    4096u /* local ACK timeout t: this << t; 0: never (9.7.6.1.3) */
#define RDMA_TIMEOUT_MAX        31u
#define RDMA_RETRIES_MAX        7u
#define RDMA_RNR_RETRIES_ALWAYS 7u
#define RDMA_RNR_TIMERS         32u
/* RNR NAK timer field (9.7.5.2.8, table 45), in units of 10 us. */
#define RDMA_RNR_TIMERS_10US()                                                                   \
    {                                                                                            \
        65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, \
            1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152                \
    }
#define RDMA_PSN_MASK     0xffffffu
#define RDMA_MESSAGE_MAX  0x80000000u
#define RDMA_QP_FIRST     2u      /* 0 and 1 are those of management (3.9.2) */
#define RDMA_LID_LAST     0xbfffu /* of one port (4.1.3) */
#define RDMA_KEY_VARIANTS 256u

/* ---- Commands: a block of 128 bytes that the adapter reads, executes and writes back --------- */
struct rdma_command {
    uint16_t opcode;     /* enum rdma_command_opcode */
    uint8_t status;      /* out: enum rdma_command_status; RDMA_COMMAND_PENDING while it runs */
    uint8_t log_entries; /* EQ, CQ: entries; QP: blocks of its SQ */
    uint32_t number;     /* EQ: chosen by the driver; others: out of create, in of the rest */
    /* EQ, CQ: the ring; QP: its SQ. MR: a table of 8-byte page addresses that stays the adapter's,
     * or with page_log 0 the region itself, which is contiguous. */
    uint64_t iova;
    uint64_t rq_iova;
    uint64_t record_iova; /* CQ, QP */
    uint64_t va, bytes;   /* MR: addresses va .. va + bytes - 1 */
    uint32_t pd;          /* MR, QP */
    uint32_t target;      /* EQ: MSI-X vector; CQ: its EQ */
    uint32_t send_cq, receive_cq;
    uint32_t key;     /* MR: in: bits 7:0; out: lkey and rkey */
    uint8_t access;   /* MR, QP: RDMA_ACCESS_* */
    uint8_t page_log; /* MR: of a page's bytes, 12 .. 30; va and pages share their offset */
    uint8_t rq_log, rq_entry_log; /* QP: entries; bytes of one: 16 << this */
    /* MODIFY_QP */
    uint8_t state; /* enum rdma_qp_state: to RTR: the next nine, to RTS: the next five too */
    uint8_t mtu, rnr_timer, remote_reads;
    uint32_t destination_qp, receive_psn;
    uint16_t lid;
    uint8_t timeout, retries;
    uint32_t send_psn;
    uint8_t rnr_retries, reads;
    uint8_t reserved[34];
};
_Static_assert(offsetof(struct rdma_command, opcode) == 0, "opcode");
_Static_assert(offsetof(struct rdma_command, status) == 2, "status");
_Static_assert(offsetof(struct rdma_command, log_entries) == 3, "log_entries");
_Static_assert(offsetof(struct rdma_command, number) == 4, "number");
_Static_assert(offsetof(struct rdma_command, iova) == 8, "iova");
_Static_assert(offsetof(struct rdma_command, rq_iova) == 16, "rq_iova");
_Static_assert(offsetof(struct rdma_command, record_iova) == 24, "record_iova");
_Static_assert(offsetof(struct rdma_command, va) == 32, "va");
_Static_assert(offsetof(struct rdma_command, bytes) == 40, "bytes");
_Static_assert(offsetof(struct rdma_command, pd) == 48, "pd");
_Static_assert(offsetof(struct rdma_command, target) == 52, "target");
_Static_assert(offsetof(struct rdma_command, send_cq) == 56, "send_cq");
_Static_assert(offsetof(struct rdma_command, receive_cq) == 60, "receive_cq");
_Static_assert(offsetof(struct rdma_command, key) == 64, "key");
_Static_assert(offsetof(struct rdma_command, access) == 68, "access");
_Static_assert(offsetof(struct rdma_command, page_log) == 69, "page_log");
_Static_assert(offsetof(struct rdma_command, rq_log) == 70, "rq_log");
_Static_assert(offsetof(struct rdma_command, rq_entry_log) == 71, "rq_entry_log");
_Static_assert(offsetof(struct rdma_command, state) == 72, "state");
_Static_assert(offsetof(struct rdma_command, mtu) == 73, "mtu");
_Static_assert(offsetof(struct rdma_command, rnr_timer) == 74, "rnr_timer");
_Static_assert(offsetof(struct rdma_command, remote_reads) == 75, "remote_reads");
_Static_assert(offsetof(struct rdma_command, destination_qp) == 76, "destination_qp");
_Static_assert(offsetof(struct rdma_command, receive_psn) == 80, "receive_psn");
_Static_assert(offsetof(struct rdma_command, lid) == 84, "lid");
_Static_assert(offsetof(struct rdma_command, timeout) == 86, "timeout");
_Static_assert(offsetof(struct rdma_command, retries) == 87, "retries");
_Static_assert(offsetof(struct rdma_command, send_psn) == 88, "send_psn");
_Static_assert(offsetof(struct rdma_command, rnr_retries) == 92, "rnr_retries");
_Static_assert(offsetof(struct rdma_command, reads) == 93, "reads");
_Static_assert(sizeof(struct rdma_command) == 128, "command block");

/* RDMA_SET_OFFLOAD: the adapter serves the reads of NVMe over Fabrics that come on a queue pair. It
 * owns an NVMe queue pair for that, whose queues are empty memory of the host: SQ and CQ at index
 * 0, phase 1. */
struct rdma_offload_command {
    uint16_t opcode; /* as in struct rdma_command */
    uint8_t status;
    uint8_t block_log;                           /* of the namespace's blocks, 9 .. 12 */
    uint32_t number;                             /* of the QP, which is in state RTS */
    uint64_t sq_iova, cq_iova;                   /* multiples of 64 */
    uint64_t sq_doorbell_iova, cq_doorbell_iova; /* the controller's registers, multiples of 4 */
    uint64_t staging_va;  /* `entries` buffers of slot_bytes, as staging_key names them */
    uint64_t staging_bus; /* the same as the controller reaches them, a multiple of 4096 */
    /* PRP lists, one per buffer: its pages but for the first, as the controller reaches them. */
    uint64_t lists_bus;   /* of the first; a multiple of list_bytes */
    uint32_t staging_key; /* local write */
    uint32_t slot_bytes;  /* a multiple of 4096, up to 2 MiB */
    uint32_t list_bytes;  /* a power of two of 8 .. 4096 */
    uint32_t nsid;
    uint16_t nvme_entries; /* of SQ and CQ, 2 .. 4096 */
    uint16_t entries;      /* of the peer's queue, 2 .. 4096 */
    uint16_t sq_head;      /* that the last response told */
    uint8_t reserved[42];
};
_Static_assert(offsetof(struct rdma_offload_command, opcode) == 0, "opcode");
_Static_assert(offsetof(struct rdma_offload_command, status) == 2, "status");
_Static_assert(offsetof(struct rdma_offload_command, block_log) == 3, "block_log");
_Static_assert(offsetof(struct rdma_offload_command, number) == 4, "number");
_Static_assert(offsetof(struct rdma_offload_command, sq_iova) == 8, "sq_iova");
_Static_assert(offsetof(struct rdma_offload_command, cq_iova) == 16, "cq_iova");
_Static_assert(offsetof(struct rdma_offload_command, sq_doorbell_iova) == 24, "sq_doorbell_iova");
_Static_assert(offsetof(struct rdma_offload_command, cq_doorbell_iova) == 32, "cq_doorbell_iova");
_Static_assert(offsetof(struct rdma_offload_command, staging_va) == 40, "staging_va");
_Static_assert(offsetof(struct rdma_offload_command, staging_bus) == 48, "staging_bus");
_Static_assert(offsetof(struct rdma_offload_command, lists_bus) == 56, "lists_bus");
_Static_assert(offsetof(struct rdma_offload_command, staging_key) == 64, "staging_key");
_Static_assert(offsetof(struct rdma_offload_command, slot_bytes) == 68, "slot_bytes");
_Static_assert(offsetof(struct rdma_offload_command, list_bytes) == 72, "list_bytes");
_Static_assert(offsetof(struct rdma_offload_command, nsid) == 76, "nsid");
_Static_assert(offsetof(struct rdma_offload_command, nvme_entries) == 80, "nvme_entries");
_Static_assert(offsetof(struct rdma_offload_command, entries) == 82, "entries");
_Static_assert(offsetof(struct rdma_offload_command, sq_head) == 84, "sq_head");
_Static_assert(sizeof(struct rdma_offload_command) == sizeof(struct rdma_command), "a block");
#define RDMA_OFFLOAD_ENTRIES_MAX 4096u
#define RDMA_OFFLOAD_SLOT_MAX    (2u << 20)

enum rdma_command_opcode {
    RDMA_CREATE_EQ = 1,
    RDMA_CREATE_CQ,
    RDMA_CREATE_PD,
    RDMA_CREATE_MR,
    RDMA_CREATE_QP, /* in state RESET */
    /* To INIT: access. To RTR: access, mtu, lid, destination_qp, receive_psn, remote_reads,
     * rnr_timer. To RTS from RTR: send_psn, timeout, retries, rnr_retries, reads. */
    RDMA_MODIFY_QP,
    RDMA_QUERY_QP, /* out: state */
    /* When the answer is there, the adapter does not access the memory of what was destroyed any
     * more. */
    RDMA_DESTROY_EQ,
    RDMA_DESTROY_CQ,
    RDMA_DESTROY_PD,
    RDMA_DESTROY_MR, /* by key */
    RDMA_DESTROY_QP,
    /* struct rdma_offload_command. For as long as the queue pair is not reset or destroyed: a SEND
     * that is a read of the namespace, with a keyed SGL of its length and as much as a buffer at
     * most, takes no receive WQE and is executed if there is a free buffer and room in the SQ; all
     * others are received as ever. SQ head of each response (a SEND of 16 inline bytes, too) is
     * filled in by the adapter. */
    RDMA_SET_OFFLOAD,
};
enum rdma_command_status {
    RDMA_COMMAND_OK = 0,
    RDMA_COMMAND_NO_RESOURCE = 1,
    RDMA_COMMAND_BAD = 2, /* a field is out of range */
    RDMA_COMMAND_NOT_FOUND = 3,
    RDMA_COMMAND_BUSY = 4,  /* something else refers to it */
    RDMA_COMMAND_STATE = 5, /* no such transition of a QP */
    RDMA_COMMAND_PENDING = 0xff,
};

#endif
