/* What the files of models/rdma/ share. */
#ifndef MODELS_RDMA_RDMA_INTERNAL_H
#define MODELS_RDMA_RDMA_INTERNAL_H

#include "hw/rdma_regs.h"
#include "models/pcie/endpoint/pcie_function.h"
#include "models/rdma/rdma.h"

#define RDMA_ACCESS_ALL                                                             \
    (RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_REMOTE_WRITE | RDMA_ACCESS_REMOTE_READ | \
     RDMA_ACCESS_REMOTE_ATOMIC)
#define RDMA_NO_PD           UINT32_MAX /* in pd_users */
#define RDMA_PREFETCH_MAX    64u        /* receive WQEs on the adapter, per queue pair */
#define RDMA_FETCH_BLOCKS    16u        /* of a read of the SQ at most */
#define RDMA_MTT_GROUP       8u         /* page addresses in a cache entry */
#define RDMA_READS_MAX       64u
#define RDMA_RECEIVE_SGES    16u
#define RDMA_RQ_ENTRY_LOG    4u /* 16 << 4 bytes */
#define RDMA_ALIGNMENT_BYTES 64u

struct rdma;
struct rdma_qp;
struct rdma_offload;
struct rdma_offload_slot;

static inline uint32_t rdma_psn_add(uint32_t psn, uint32_t n)
{
    return (psn + n) & RDMA_PSN_MASK;
}
/* How far `psn` lies behind `from`. */
static inline uint32_t rdma_psn_distance(uint32_t from, uint32_t psn)
{
    return (psn - from) & RDMA_PSN_MASK;
}
#define RDMA_PSN_HALF 0x800000u

/* ---- Memory regions, transfers (rdma_memory.c) ----------------------------------------------- */

struct rdma_mr {
    bool there;
    uint8_t access, page_log;
    uint32_t key, pd;
    uint64_t va, bytes, iova;
    uint32_t n_users; /* DMA under way */
};

struct rdma_sge {
    uint32_t bytes, key;
    uint64_t va;
};

enum rdma_fault {
    RDMA_FAULT_NONE,
    RDMA_FAULT_PROTECTION, /* key, protection domain, access, bounds */
    RDMA_FAULT_BUS,        /* DMA failed */
    RDMA_FAULT_CLOSED,     /* the queue pair is gone */
};

struct rdma_move;
typedef void rdma_move_fn(struct rdma_move *move);
/*
 * Bytes between a buffer and memory that segments describe: cut at segments and pages, checked and
 * translated piece by piece. issued() is called when the last piece was handed to the DMA engine,
 * or none will be because of `fault`; ended() when nothing of it is under way any more, issued()
 * being over. Both may be called before rdma_move_start() returns.
 */
struct rdma_move {
    /* ---- set by the caller ------------------------------------------------------------------- */
    struct rdma_qp *qp;
    const struct rdma_sge *sge;
    uint32_t n_sges;
    uint64_t offset; /* in the segments */
    uint32_t bytes;
    uint8_t access;               /* RDMA_ACCESS_* that the regions must have; 0: none */
    bool write;                   /* to memory */
    uint8_t *buffer;              /* of `bytes` */
    rdma_move_fn *issued, *ended; /* issued may be NULL */
    /* ---- for the caller to read -------------------------------------------------------------- */
    uint8_t fault; /* enum rdma_fault; a read's is final in ended() */
    /* ---- private ----------------------------------------------------------------------------- */
    struct rdma_move *next; /* that waits for the same translation */
    uint32_t generation;    /* of the queue pair */
    uint32_t at, in_flight;
    bool all_issued;
    uint64_t wanted; /* tag of the translation that it waits for */
};

enum rdma_mtt_state { RDMA_MTT_EMPTY, RDMA_MTT_FILLING, RDMA_MTT_VALID };
/* Cached addresses of neighbouring pages. */
struct rdma_mtt {
    uint64_t tag; /* region's index << 40 | group */
    uint8_t state;
    struct rdma *rdma;
    struct rdma_mr *mr;
    struct rdma_move *wait_head, **wait_tail;
    struct pcie_dma_request request;
    uint64_t page[RDMA_MTT_GROUP];
};

/* ---- Completion and event queues (rdma_cq.c) ------------------------------------------------- */

struct rdma_post { /* an entry on its way to memory */
    struct pcie_dma_request request;
    struct rdma_post *next;
    struct rdma *rdma;
    uint32_t *n_dma;
    bool solicited;
    _Alignas(8) uint8_t bytes[64];
};

struct rdma_eq {
    bool there, armed;
    uint8_t log;
    uint32_t number, vector, producer, consumer;
    uint32_t n_users, n_dma;
    uint64_t iova;
};

struct rdma_cq {
    struct rdma *rdma;
    bool there, overrun, reading;
    bool armed, solicited_only;
    uint8_t log;
    uint32_t number, producer, consumer, arm_at;
    uint32_t solicited_at; /* producer index behind the last solicited entry, or 2^24 back */
    uint32_t n_users, n_dma;
    struct rdma_eq *eq;
    uint64_t iova, record_iova;
    struct rdma_post *wait_head, **wait_tail; /* no room is known of */
    uint32_t record;
    struct pcie_dma_request read;
};

/* ---- Queue pairs ----------------------------------------------------------------------------- */

/* A send WQE that is on the adapter, from its fetch to its completion. */
struct rdma_send {
    struct rdma_send *next;
    uint32_t n_tx; /* packets that are being made of it; they keep it */
    bool ended;    /* completed; to be freed with the last packet */
    uint8_t opcode, flags;
    uint8_t status;                 /* enum rdma_status: it fails when its turn comes */
    bool asked;                     /* read, atomic: the request is under way */
    bool offloaded;                 /* the adapter's own: it has no completion */
    struct rdma_offload_slot *slot; /* that is free with the end of this send; NULL: none */
    uint16_t index;
    uint32_t immediate, rkey;
    uint64_t va, swap_or_add, compare;
    uint32_t bytes, first_psn, n_psns;
    uint32_t n_sges;
    bool inlined;
    union {
        struct rdma_sge sge[RDMA_SGES_MAX];
        uint8_t data[RDMA_WQE_BLOCKS_MAX * RDMA_WQE_BLOCK_BYTES];
    };
};

/* What the responder has to send: answers leave in the order of their requests. */
struct rdma_answer {
    struct rdma_answer *next;
    uint32_t n_tx;
    bool ended;
    uint8_t opcode; /* IB_ACK, IB_ATOMIC_ACK, IB_READ_ONLY: a read */
    uint8_t syndrome;
    uint32_t psn, msn, n_psns, sent_psns;
    uint64_t original;
    struct rdma_sge sge; /* of a read */
};

/* A packet on its way out. */
struct rdma_tx {
    struct rdma_tx *next;
    struct rdma_qp *qp;
    uint32_t generation, epoch;
    bool is_answer, ready, failed;
    struct ib_packet *packet;
    struct rdma_send *send;
    struct rdma_answer *answer;
    struct rdma_move move;
    struct sim_event event;
};

/* A packet that came in. */
struct rdma_rx {
    struct rdma_rx *next;
    struct rdma *rdma;
    struct rdma_qp *qp;
    uint32_t generation;
    struct ib_packet *packet;
    struct rdma_move move;
    struct rdma_sge sge;         /* of an RDMA write or atomic */
    struct rdma_send *send;      /* that an answer's data is for */
    struct rdma_rx *next_atomic; /* that waits for its turn */
    uint64_t value;              /* of an atomic: what lies there */
    struct sim_event event;
};

struct rdma_fifo {
    struct rdma_rx *head, **tail;
    bool busy;    /* the head is being stored */
    bool running; /* the function that takes packets from it */
};

struct rdma_atomic {
    uint32_t psn;
    bool there;
    uint64_t original;
};

struct rdma_receive_wqe {
    uint32_t n_sges, bytes;
    struct rdma_sge sge[RDMA_RECEIVE_SGES];
};

struct rdma_sq {
    uint64_t iova;
    uint8_t log;
    uint16_t tail, fetched, asked; /* blocks: posted, taken as WQEs, asked for */
    bool fetching;
    uint32_t n_buffered;          /* blocks fetched that are not part of a whole WQE yet */
    uint32_t n_fetch, generation; /* of the read under way */
    struct pcie_dma_request request;
    _Alignas(8) uint8_t buffer[(RDMA_WQE_BLOCKS_MAX + RDMA_FETCH_BLOCKS) * RDMA_WQE_BLOCK_BYTES];
    uint32_t blueflame_mask; /* blocks of a BlueFlame write that are there */
    _Alignas(8) uint8_t blueflame[RDMA_BLUEFLAME_BYTES];
};

struct rdma_rq {
    uint64_t iova, record_iova;
    uint8_t log, entry_log;
    uint32_t posted, fetched, head; /* known by the record, on the adapter or consumed, consumed */
    bool fetching, reading, failed, flush_again;
    /* A message waits for a WQE; the record is being, or has been, read since it came. */
    bool wanted, read_wanted, looked;
    uint32_t record, n_fetch, generation, record_generation;
    struct pcie_dma_request request, record_request;
    struct rdma_receive_wqe wqe[RDMA_PREFETCH_MAX];
    uint8_t buffer[RDMA_PREFETCH_MAX * (16u << RDMA_RQ_ENTRY_LOG)];
};

struct rdma_qp {
    struct rdma *rdma;
    bool there;
    uint8_t state; /* enum rdma_qp_state */
    uint8_t access;
    uint32_t number, pd;
    uint32_t generation;  /* changes with each end: what belongs to an older one is dropped */
    uint32_t n_under_way; /* moves, fetches: the queue pair is not gone before they have ended */
    struct rdma_cq *send_cq, *receive_cq;
    /* connection */
    uint32_t destination, mtu_bytes;
    uint16_t lid;
    uint8_t retries_max, rnr_retries_max, rnr_timer;
    uint32_t reads_max, remote_reads_max;
    sim_time timeout_ps;
    /* requester (rdma_requester.c) */
    struct rdma_sq sq;
    struct rdma_send *send_head, **send_tail, *cursor;
    uint32_t n_sends, cursor_psns;            /* of the cursor's packets, sent */
    uint32_t next_psn, unacked_psn, sent_psn; /* for the next WQE, oldest without ACK, never sent */
    uint32_t n_reads;                         /* in flight */
    uint32_t epoch;                           /* changes when the requester goes back */
    uint8_t retries, rnr_retries;
    bool going_back; /* gaps in answers mean nothing new */
    bool drained_told;
    sim_time deadline_ps, rnr_until_ps;
    struct sim_event timer, rnr;
    /* responder (rdma_responder.c) */
    struct rdma_rq rq;
    uint32_t expected_psn, msn;
    bool nak_sent;   /* later packets are dropped silently until the expected one comes */
    bool refused;    /* a request ended the queue pair: what was asked for before it is answered */
    uint8_t message; /* enum rdma_message: being received */
    bool has_wqe;    /* the message has taken a receive WQE */
    uint32_t wqe_index;
    struct rdma_receive_wqe wqe;
    uint64_t received; /* bytes of the message */
    uint64_t write_va; /* of an RDMA write */
    uint32_t write_bytes, write_key;
    uint32_t n_answer_reads;      /* reads and atomics that wait for their answer */
    struct rdma_offload *offload; /* NULL: none */
    struct rdma_answer *answer_head, **answer_tail;
    struct rdma_atomic atomic[RDMA_READS_MAX];
    uint32_t next_atomic;
    /* packets (rdma_port.c) */
    struct rdma_fifo requests, answers;
    struct rdma_tx *tx_head[2], **tx_tail[2]; /* being made: requests, answers */
    bool wants_tx, answer_last;
    struct rdma_qp *next_tx;
};
enum rdma_message { RDMA_MESSAGE_NONE, RDMA_MESSAGE_SEND, RDMA_MESSAGE_WRITE };

/* ---- Commands -------------------------------------------------------------------------------- */

enum rdma_command_step {
    RDMA_STEP_IDLE,
    RDMA_STEP_READ,
    RDMA_STEP_RUN,
    RDMA_STEP_QUIET,
    RDMA_STEP_WRITE
};
struct rdma_command_unit {
    uint32_t low;
    uint8_t step; /* enum rdma_command_step */
    uint64_t iova;
    const uint32_t *busy; /* QUIET: until this is 0 */
    struct rdma_command block;
    struct pcie_dma_request request;
    struct sim_event event;
};

/* ---- The whole ------------------------------------------------------------------------------- */

struct rdma_params {
    struct pcie_function_params pcie;
    uint32_t n_qps, n_cqs, n_eqs, n_keys, n_pds, n_vectors;
    uint32_t inline_bytes, mtu_bytes, reads, fetch_blocks, prefetch_wqes, sends_max;
    uint32_t tx_buffer_bytes, rx_buffer_bytes, mtt_entries;
    double rate_gbit_s;
    sim_time transmit_ps, receive_ps, packet_ps, command_ps;
};

struct rdma {
    struct rdma_params params;
    struct model *model;
    struct pcie_function function;
    struct ib_port *port;
    char port_name[80];
    bool initialised;
    uint32_t lid;
    struct sim_pool *packets, *pieces, *posts, *sends, *answer_pool, *txs, *rxs;
    struct rdma_qp **qp; /* n_qps; made at first use, kept */
    struct rdma_cq *cq;
    struct rdma_eq *eq;
    struct rdma_mr *mr; /* n_keys; 0 is not used */
    struct rdma_mtt *mtt;
    uint32_t *pd_users; /* UINT32_MAX: there is no such domain */
    uint32_t next_qp, next_mr;
    struct rdma_command_unit command;
    /* transmit: queue pairs with something to send, in turn; packets that are ready */
    struct rdma_qp *tx_qp_head, **tx_qp_tail;
    struct sim_event tx_turn;
    sim_time tx_free_ps, rx_free_ps;
    uint64_t tx_bytes; /* payload buffers in use */
    bool in_turn;
    uint32_t leaving_bytes;
    struct rdma_tx *ready_head, **ready_tail;
    /* atomics: one at a time */
    struct rdma_rx *atomic, *atomic_wait_head;
    struct rdma_stats stats;
};

static inline struct rdma *rdma_of(struct pcie_function *function)
{
    return SIM_CONTAINER(function, struct rdma, function);
}
static inline sim_time rdma_now(const struct rdma *rdma)
{
    return sim_now(rdma->model->sim);
}
static inline struct rdma_qp *rdma_qp_find(const struct rdma *rdma, uint32_t number)
{
    struct rdma_qp *qp = number < rdma->params.n_qps ? rdma->qp[number] : NULL;
    return qp != NULL && qp->there ? qp : NULL;
}

/* rdma_memory.c */
struct sim_pool *rdma_pieces(struct sim *sim);
void rdma_move_start(struct rdma_move *move);
/* The whole range may be accessed so by a queue pair of that protection domain. */
bool rdma_access_allowed(const struct rdma *rdma, uint32_t pd, const struct rdma_sge *sge,
                         uint8_t access);
/* Forgets translations of the region. */
void rdma_mtt_forget(struct rdma *rdma, const struct rdma_mr *mr);
struct rdma_mr *rdma_mr_find(const struct rdma *rdma, uint32_t key);

/* rdma_cq.c */
/* Takes a copy of the entry, sets its owner, and writes it when there is room. */
void rdma_cq_push(struct rdma_cq *cq, const struct rdma_cqe *cqe, bool solicited);
void rdma_cq_arm(struct rdma_cq *cq, uint32_t value);
void rdma_cq_close(struct rdma_cq *cq);
void rdma_eq_consume(struct rdma_eq *eq, struct rdma *rdma, uint32_t consumer);
/* To the first event queue. */
void rdma_event(struct rdma *rdma, enum rdma_event type, uint32_t number);

/* rdma_sq.c */
void rdma_sq_doorbell(struct rdma_qp *qp, uint16_t tail);
void rdma_sq_blueflame(struct rdma_qp *qp, unsigned offset, uint32_t value);
/* Fetches WQEs while there are some and there is room. */
void rdma_sq_fetch(struct rdma_qp *qp);

/* rdma_rq.c */
enum rdma_rq_answer { RDMA_RQ_TAKEN, RDMA_RQ_WAIT, RDMA_RQ_EMPTY, RDMA_RQ_FAILED };
/* Takes the next receive WQE into qp->wqe; WAIT: rdma_responder_run() is called when that is
 * worth another try. */
enum rdma_rq_answer rdma_rq_take(struct rdma_qp *qp);
/* Reads ahead what is known to be posted. */
void rdma_rq_prefetch(struct rdma_qp *qp);
/* The same, and reads the doorbell record if nothing more is known of. */
void rdma_rq_look(struct rdma_qp *qp);
/* In state ERR: completes all that is posted as flushed. */
void rdma_rq_flush(struct rdma_qp *qp);
void rdma_rq_complete(struct rdma_qp *qp, const struct rdma_cqe *rest, bool solicited);

/* rdma_requester.c */
/* A WQE was fetched. In state ERR it is completed as flushed. */
void rdma_requester_add(struct rdma_qp *qp, struct rdma_send *send);
/* The next request packet of the queue pair; NULL: there is none now. */
struct rdma_tx *rdma_requester_next(struct rdma_qp *qp);
void rdma_requester_sent(struct rdma_qp *qp, const struct ib_packet *packet);
/* The data of one of its packets could not be read. */
void rdma_requester_fault(struct rdma_qp *qp, struct rdma_send *send, enum rdma_fault fault);
void rdma_requester_run(struct rdma_qp *qp);
void rdma_requester_reset(struct rdma_qp *qp);
void rdma_requester_init(struct rdma_qp *qp);
void rdma_requester_flush(struct rdma_qp *qp);
void rdma_send_unuse(struct rdma_qp *qp, struct rdma_send *send);
/* Whether all that was begun has ended (state SQD); says so once. */
void rdma_requester_drained(struct rdma_qp *qp);

/* rdma_responder.c */
void rdma_responder_run(struct rdma_qp *qp);
struct rdma_tx *rdma_responder_next(struct rdma_qp *qp);
void rdma_responder_fault(struct rdma_qp *qp, uint32_t psn, enum rdma_fault fault);
void rdma_responder_reset(struct rdma_qp *qp);
void rdma_answer_unuse(struct rdma_qp *qp, struct rdma_answer *answer);

/* rdma_offload.c */
uint8_t rdma_offload_set(struct rdma *rdma, const struct rdma_offload_command *c);
/* A message of one packet: true: it is a command that the adapter executes. */
bool rdma_offload_take(struct rdma_qp *qp, const struct ib_packet *packet);
/* A response enters the send queue: fills in its SQ head. */
void rdma_offload_response(struct rdma_qp *qp, struct rdma_send *send);
/* The send that had it has ended. */
void rdma_offload_slot_free(struct rdma_offload_slot *slot);
/* Nothing more is begun; it is gone when its DMA has ended, for which qp->n_under_way counts. */
void rdma_offload_close(struct rdma_qp *qp);
/* At once; no DMA ends any more. */
void rdma_offload_release(struct rdma_qp *qp);

/* rdma_port.c */
void rdma_port_init(struct rdma *rdma);
/* The queue pair may have something to send. */
void rdma_tx_want(struct rdma_qp *qp);
/* A packet that will be sent behind those made before of its kind; its payload is read first if
 * move.bytes is not 0. */
struct rdma_tx *rdma_tx_new(struct rdma_qp *qp, enum ib_opcode opcode, uint32_t psn,
                            bool is_answer);
/* Frees the packet and gives its receive buffer back. */
void rdma_rx_free(struct rdma_rx *rx);
void rdma_fifo_next(struct rdma_fifo *fifo);
void rdma_fifo_drop(struct rdma_fifo *fifo);

/* rdma_qp.c */
struct rdma_qp *rdma_qp_new(struct rdma *rdma);
uint8_t rdma_qp_modify(struct rdma_qp *qp, const struct rdma_command *c);
/* To state ERR: what is posted is flushed. tell: by an event. */
void rdma_qp_error(struct rdma_qp *qp, bool tell);
/* Gives up all that is under way or posted, without completions. */
void rdma_qp_close(struct rdma_qp *qp);
/* Something of it has ended. */
void rdma_qp_ended(struct rdma_qp *qp);

/* rdma_command.c */
void rdma_command_init(struct rdma *rdma);
void rdma_command_start(struct rdma *rdma, uint64_t iova);
void rdma_command_abort(struct rdma *rdma);
/* A counter that a command may wait for has reached 0. */
void rdma_command_quiet(struct rdma *rdma);

#endif
