/*
 * The inside of nic.ethernet, for models/nic/nic*.c only.
 *
 * Who owns what: a struct nic has its functions; a function its queues, allocated by commands and
 * freed by them or at the end; what is under way (reads of descriptors and data, packets, writes)
 * comes from pools and is freed where it ends.
 */
#ifndef MODELS_NIC_NIC_INTERNAL_H
#define MODELS_NIC_NIC_INTERNAL_H

#include "hw/nic_regs.h"
#include "models/nic/nic.h"
#include "models/nic/nic_flow.h"
#include "models/nic/nic_match.h"
#include "models/pcie/endpoint/pcie_function.h"

#define NIC_SQ_FETCHES    4u  /* reads of WQE blocks in flight per send queue */
#define NIC_RQ_CACHE_WQES 64u /* receive WQEs on the chip, per queue */
#define NIC_CHUNK_BYTES   2048u
#define NIC_COMMANDS_MAX  16u /* queued per function */
#define NIC_RSS_LOG_MAX   10u
#define NIC_RING_LOG_MAX  15u /* 16-bit indices, and full must differ from empty */
#define NIC_INDEX_24      0xffffffu
#define NIC_WQE_BYTES_MAX (NIC_WQE_BLOCK_BYTES * NIC_WQE_BLOCKS_MAX)

struct nic;
struct nic_function;

/* ---- Completions and events ------------------------------------------------------------------ */

/* A small write: CQE, EQE, MSI-X message, answer of a command. */
struct nic_write {
    struct pcie_dma_request request;
    struct nic *nic;
    uint8_t bytes[64];
};

struct nic_eq {
    uint64_t iova;
    uint32_t producer;
    uint16_t vector;
    uint8_t log;
    bool armed;
};

struct nic_cq {
    struct nic_function *function;
    uint64_t iova;
    uint32_t producer;
    uint32_t armed_from; /* consumer index of the last arming */
    uint16_t number, eq;
    uint8_t log, mode; /* enum nic_moderation */
    bool armed;
    uint16_t moderation_count; /* 0: time only */
    sim_time moderation_ps;
    sim_time last_event_ps, last_cqe_ps;
    struct sim_event timer;
};

/* ---- Transmit -------------------------------------------------------------------------------- */

/* One read of WQEs into a queue's cache. */
struct nic_fetch {
    struct pcie_dma_request request;
    void *queue; /* struct nic_sq or nic_rq */
    uint16_t n;  /* blocks or WQEs */
    bool done;
    uint8_t status;
};

/* A piece of payload on its way from host memory. */
struct nic_chunk {
    struct pcie_dma_request request;
    struct nic_sq *sq;
    struct nic_function *through; /* whose port it comes by */
    struct nic_chunk *next;
    uint32_t bytes, used;
    bool done;
    struct payload payload;
    uint8_t buffer[NIC_CHUNK_BYTES];
};

/* A packet from the start of its data's reads until its last bit has left. */
struct nic_tx {
    struct nic_tx *next;
    struct nic_function *function;
    struct ether_frame *frame; /* NULL once it is on the wire */
    sim_time left_ps;          /* its last bit */
    uint32_t payload_bytes, bytes;
    uint16_t sq, cq, wqe_index;
    uint8_t checksum; /* NIC_CHECKSUM_* to compute */
    bool completion;  /* write a CQE when it has left */
};

/* The WQE that packets are made of now. */
struct nic_wqe {
    uint8_t bytes[NIC_WQE_BYTES_MAX];
    uint32_t payload_bytes, issued_bytes; /* of all packets; of those made */
    uint32_t covered_bytes;               /* reads were submitted for so much of the payload */
    uint32_t data_offset;                 /* in data segment data_idx: the next read begins here */
    uint32_t segment_bytes;               /* payload of a packet */
    uint16_t index, inline_bytes, n_segments_made;
    uint8_t n_data, data_idx;
    uint8_t checksum, flags;
    const struct nic_wqe_data *data;
};

struct nic_sq {
    struct nic_function *function;
    struct nic_sq *next_active;
    uint64_t iova;
    uint16_t number, cq;
    uint8_t log;
    bool active;                             /* in the function's list */
    bool failed;                             /* an error CQE was written; nothing more happens */
    bool closing;                            /* being destroyed */
    uint16_t doorbell, asked, fetched, next; /* block numbers; next: not yet taken */
    struct nic_fetch fetch[NIC_SQ_FETCHES];  /* a ring */
    unsigned fetch_first, n_fetches;
    unsigned n_ending; /* reads whose end is being dealt with, one within the other */
    bool open;         /* wqe is under way */
    struct nic_wqe wqe;
    struct nic_tx *tx_head, **tx_tail;          /* wait for data, in order */
    struct nic_chunk *chunk_head, **chunk_tail; /* in order of the stream */
    struct nic_chunk *chunk_missing;            /* the first that is not done; NULL: none */
    uint32_t ready_bytes;                       /* of the stream, from its head on */
    uint8_t *cache;                             /* prefetch_blocks x 64 */
};

/* ---- Receive --------------------------------------------------------------------------------- */

/* A packet on the chip and on its way into host memory. */
struct nic_rx {
    struct nic_rx *next;
    struct ether_frame *frame; /* NULL once it has a buffer */
    struct nic_function *function;
    struct pcie_dma_request data, completion;
    uint32_t bytes; /* of the on-chip buffer, until its data is written */
    uint8_t epoch;  /* nic_command_unit.epoch when it came in */
    bool alone;     /* no completion of its own follows: LRO, or its queue is no more */
    struct nic_cqe cqe;
    uint8_t *buffer;
};

/* LRO: segments of a flow that share a buffer. */
struct nic_lro {
    struct nic_rq *rq;
    bool open;
    uint8_t tos;
    struct ether_flow flow;
    uint32_t sequence; /* expected next */
    uint32_t buffer_bytes;
    uint64_t iova;
    struct nic_cqe cqe;
    struct sim_event timer; /* pending while it is open */
};

struct nic_rq {
    struct nic_function *function;
    uint64_t iova, record_iova;
    uint16_t number, cq;
    uint8_t log, flags;
    bool failed, closing;
    uint16_t posted, asked, fetched, next; /* WQE numbers */
    struct nic_fetch fetch;
    bool fetching, reading_record, pumping;
    struct pcie_dma_request record;
    uint8_t record_bytes[4];
    struct nic_rx *rx_head, **rx_tail; /* wait for a buffer */
    struct nic_lro *lro;               /* NULL: no LRO */
    uint32_t n_lro;                    /* open */
    struct nic_wqe_data cache[NIC_RQ_CACHE_WQES];
};

/* ---- Functions and the whole ----------------------------------------------------------------- */

enum nic_command_step {
    NIC_COMMAND_IDLE,
    NIC_COMMAND_READING,
    NIC_COMMAND_RUNNING, /* command_latency */
    NIC_COMMAND_TABLE,   /* reads the RSS table */
    NIC_COMMAND_QUIET,   /* a queue that is being destroyed has something under way */
    NIC_COMMAND_PASSING, /* packets that came before a rule wait for buffers */
    NIC_COMMAND_ANSWERING,
};

struct nic_command_unit {
    enum nic_command_step step;
    uint64_t queued[NIC_COMMANDS_MAX]; /* a ring of addresses */
    unsigned first, n_queued;
    uint64_t iova;
    struct nic_command block;
    struct pcie_dma_request request;
    struct sim_event event;
    uint32_t low;   /* NIC_REG_COMMAND_LOW */
    unsigned epoch; /* of packets that come in now; flips with each rule */
    uint16_t table[1u << NIC_RSS_LOG_MAX];
};

struct nic_function {
    struct nic *nic;
    struct pcie_function pcie;
    uint32_t idx;            /* in nic.all[]: physical functions first */
    uint32_t port;           /* PCIe */
    struct sim_event reset;  /* looks whether all has ended */
    struct nic_function *vf; /* of a physical function: params.n_vfs of them */
    uint32_t n_vfs_ready;    /* by NIC_ENABLE_VFS */
    uint64_t mac;
    struct nic_command_unit command;
    struct nic_eq **eq; /* n_queues of each; NULL: not there */
    struct nic_cq **cq;
    struct nic_sq **sq;
    struct nic_rq **rq;
    struct nic_sq *active_head, **active_tail; /* have something to send, in turn */
    uint32_t data_in_flight;                   /* payload bytes asked for through its port */
    uint32_t n_lro;                            /* open sessions of all its queues */
    uint32_t n_waiting[2];                     /* packets that wait for a buffer, by epoch */
    struct nic_flow_table flows;
    struct nic_match_table matches;
    uint16_t rss_table[1u << NIC_RSS_LOG_MAX];
    uint16_t rss_mask;
    bool rss_set;
    struct nic_function_stats stats;
    uint32_t dropped_no_buffer; /* what NIC_QUERY_DROPS says; a reset clears it */
};

struct nic_params {
    struct pcie_function_params pcie;
    uint32_t n_functions, n_vfs, n_queues, arfs_entries, switch_entries;
    int firmware; /* enum nic_firmware */
    double rate_gbit_s;
    sim_time transmit_ps, receive_ps, command_ps;
    uint64_t rx_buffer_bytes, tx_buffer_bytes;
    uint32_t prefetch_blocks, rq_batch, mtu_bytes;
    uint32_t lro_sessions;
    sim_time lro_timeout_ps;
    bool flow_control;
};

struct nic_stats {
    uint64_t tx_segments; /* packets that TSO made */
    uint64_t tx_errors;   /* WQEs that ended in an error */
    uint64_t rx_filtered; /* not for us, malformed, too long */
    uint64_t rx_bad_checksum, rx_too_long;
    uint64_t lro_merged;
    uint64_t switch_hits, switch_default;
    uint64_t commands, bad_doorbells, unsupported;
    uint64_t rx_buffer_max, tx_buffer_max;
};

struct nic {
    struct nic_params params;
    struct model *model;
    struct ether_port *port;
    struct sim_pool *writes, *chunks, *txs, *rxs, *rx_buffers;
    struct nic_function function[NIC_FUNCTIONS_MAX];
    struct nic_function *all[NIC_FUNCTIONS_MAX * (1 + NIC_VFS_MAX)];
    uint32_t n_all;
    struct nic_stats stats;
    char port_name[80];
    bool ready; /* init() went through */
    /* transmit */
    uint32_t next_function;                /* round robin */
    uint32_t tx_bytes;                     /* of the on-chip buffer */
    struct nic_tx *sent_head, **sent_tail; /* on the wire, in order */
    struct sim_event retire;
    bool sending;
    /* receive */
    struct ether_buffer rx_buffer;
    struct nic_flow_table rules;
    struct nic_match_table switch_matches;
    uint32_t default_function;
    struct nic_rss rss;
};

static inline struct nic *nic_of(struct model *model)
{
    return model->state;
}
static inline struct nic_function *nic_function_of(struct pcie_function *pcie)
{
    return SIM_CONTAINER(pcie, struct nic_function, pcie);
}
static inline bool nic_is_vf(const struct nic_function *function)
{
    return function->pcie.pf != NULL;
}
/* It is removed, being reset, or not enabled. */
static inline bool nic_is_gone(const struct nic_function *function)
{
    return function->pcie.gone;
}
static inline sim_time nic_now(const struct nic *nic)
{
    return sim_now(nic->model->sim);
}
/* A MAC address as the key of a flow table. */
static inline struct ether_flow nic_mac_key(uint64_t mac)
{
    return (struct ether_flow){ .source_ip = (uint32_t)(mac >> 32),
                                .destination_ip = (uint32_t)mac };
}

/* nic.c: registers; counted DMA. */
uint32_t nic_register_read(struct pcie_function *pcie, uint64_t offset);
void nic_register_write(struct pcie_function *pcie, uint64_t offset, uint32_t value);
void nic_dma_read(struct nic_function *function, struct pcie_dma_request *request);
void nic_dma_write(struct nic_function *function, struct pcie_dma_request *request);

/* pf: NULL for a physical function, else the one whose `vf_idx`th this is. */
void nic_function_init(struct nic *nic, struct nic_function *function, struct nic_function *pf,
                       uint32_t vf_idx, uint64_t mac);
/* nic_reset.c: towards PCIe. */
void nic_function_setup(struct nic_function *function, struct nic_function *pf, uint32_t vf_idx);

/* nic_vf.c */
void nic_vfs_init(struct nic_function *pf, uint64_t mac);

/* nic_event.c */
/* Writes bytes (at most 64) to host memory, after all that was written before. */
void nic_post(struct nic_function *function, uint64_t iova, const void *bytes, uint32_t n);
/* Where the next CQE goes, with op_own filled in; the caller writes it, then calls
 * nic_cq_written().
 */
uint64_t nic_cq_next(struct nic_cq *cq, struct nic_cqe *cqe, unsigned opcode);
void nic_cq_written(struct nic_cq *cq);
/* A completion without data of a queue's WQE; nothing if the driver has destroyed the CQ. */
void nic_complete(struct nic_function *function, uint16_t cq_number, uint16_t queue,
                  uint16_t wqe_index, unsigned opcode);
void nic_cq_arm(struct nic_cq *cq, uint32_t consumer);
void nic_cq_moderate(struct nic_cq *cq); /* its settings have changed */
void nic_eq_arm(struct nic_function *function, struct nic_eq *eq, uint32_t consumer);
/* An ether_link_fn. */
void nic_link_changed(struct ether_port *port, bool up);
void nic_cq_timer(struct sim *sim, struct sim_event *event);

/* nic_command.c */
void nic_command_start(struct nic_function *function, uint64_t iova);
void nic_command_event(struct sim *sim, struct sim_event *event);
/* A queue that is closing has become quiet, perhaps. */
void nic_command_quiet(struct nic_function *function);
/* The last packet of a epoch has a buffer or was dropped. */
void nic_command_passed(struct nic_function *function);
void nic_queues_free(struct nic_function *function);

/* nic_transmit.c */
void nic_sq_init(struct nic_sq *sq);
void nic_sq_doorbell(struct nic_sq *sq, uint16_t producer);
/* No new WQE is taken; what is under way ends. */
void nic_sq_close(struct nic_sq *sq);
bool nic_sq_quiet(const struct nic_sq *sq);
/* Nobody is told any more of packets of that send queue which are on the wire. */
void nic_sent_forget(struct nic_function *function, uint32_t queue);
void nic_sq_free(struct nic_sq *sq);
void nic_retire_event(struct sim *sim, struct sim_event *event);
/* An ether_retime_fn. */
void nic_retime(struct ether_port *port, struct ether_frame *frame, sim_time left_ps);
void nic_transmit_release(struct nic *nic);

/* nic_receive.c */
void nic_receive_frame(struct ether_port *port, struct ether_frame *frame);
/* Where PAUSE begins and ends; the wire is known. */
void nic_rq_init(struct nic_rq *rq);
/* Writes the packet, or its payload only, to the address, and says so to nobody. */
void nic_rx_write(struct nic_rq *rq, struct nic_rx *rx, uint64_t iova, bool with_headers);
/* Drops what waits for buffers; nothing new starts. */
void nic_rq_close(struct nic_rq *rq);
bool nic_rq_quiet(const struct nic_rq *rq);
void nic_rq_free(struct nic_rq *rq);

/* nic_lro.c, for queues with LRO. */
void nic_lro_init(struct nic_rq *rq);
void nic_lro_free(struct nic_rq *rq);
/* Whether the packet continues a session; a session of its flow that it does not continue ends. */
bool nic_lro_fits(struct nic_rq *rq, const struct nic_rx *rx);
/* Takes it; it fits. */
void nic_lro_append(struct nic_rq *rq, struct nic_rx *rx);
/* Takes it into the buffer as the first of a session; false: it is to be alone. */
bool nic_lro_begin(struct nic_rq *rq, struct nic_rx *rx, const struct nic_wqe_data *wqe);
/* All sessions of the queue, of the function, end. */
void nic_lro_flush(struct nic_rq *rq);
void nic_lro_flush_all(struct nic_function *function);

#endif
