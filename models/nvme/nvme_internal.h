/* What the files of models/nvme/ share. */
#ifndef MODELS_NVME_NVME_INTERNAL_H
#define MODELS_NVME_NVME_INTERNAL_H

#include "hw/nvme_regs.h"
#include "models/nvme/nvme.h"
#include "models/pcie/endpoint/pcie_function.h"

#define NVME_FETCH_MAX     8u /* SQEs in one read */
#define NVME_LIST_ENTRIES  (NVME_PAGE_BYTES / 8u)
#define NVME_PAGE_LINES    (NVME_PAGE_BYTES / 64u)
#define NVME_ADMIN_ENTRIES 4096u
#define NVME_CMB_BAR       2u

struct nvme;
struct nvme_command;
struct nvme_subsystem;

enum nvme_payload { NVME_PAYLOAD_TAG, NVME_PAYLOAD_BYTES };

/* ---- DMA, by PCIe or within the controller --------------------------------------------------- */

/* A transfer to or from an address that may lie in the controller's own memory buffer. */
struct nvme_dma;
typedef void nvme_dma_fn(struct nvme_dma *dma, enum pcie_dma_status status);
struct nvme_dma {
    struct pcie_dma_request request; /* iova, bytes, buffer, bulk, independent: the caller's */
    struct nvme *nvme;
    struct sim_event event; /* local ones */
    nvme_dma_fn *done;
    bool write;
};

/* ---- Queues ---------------------------------------------------------------------------------- */

struct nvme_cq {
    bool there, interrupts;
    uint8_t phase;
    uint16_t number, vector;
    uint32_t entries, head, tail;
    uint32_t n_sqs;
    uint64_t iova;
    struct nvme_command *wait_head, **wait_tail; /* completions without room */
};

struct nvme_sq {
    bool there, fetching;
    bool deleting;
    uint16_t number, cq;
    uint32_t entries, head, tail;
    uint32_t n_commands; /* fetched and not completed */
    uint64_t iova;
    uint32_t n_fetch; /* entries in the read under way */
    struct nvme_dma fetch;
    struct nvme_command *delete_command; /* waits for it to be empty */
    uint8_t fetched[NVME_FETCH_MAX * NVME_SQE_BYTES];
};

/* ---- Commands -------------------------------------------------------------------------------- */

/* A part of a command's data within one memory page. */
struct nvme_piece {
    struct nvme_dma dma;
    struct nvme_command *command;
    struct nvme_piece *next;
    struct sim_event event; /* media */
    uint64_t media_offset;  /* in the namespace */
    uint32_t bytes;
    uint8_t buffer[NVME_PAGE_BYTES];
};

struct nvme_command {
    struct nvme *nvme;
    struct nvme_command *next;
    struct nvme_sq *sq;
    struct nvme_sqe sqe;
    struct sim_event event;
    uint32_t result;
    uint16_t status;
    bool write; /* data goes to the media */
    /* I/O: what has not been cut into pieces yet */
    uint32_t namespace_idx;
    uint64_t media_offset, bytes_left;
    uint64_t next_page; /* memory address of the next piece */
    uint32_t n_pieces;  /* under way */
    bool list_pending;  /* a PRP list is being read */
    bool page_ended;    /* the next piece begins in another memory page */
    sim_time begin_ps, jitter_ps;
    sim_time ready_ps; /* of a write's last byte in the media */
    struct nvme_dma list;
    uint32_t list_at, list_n;
    uint64_t list_entry[NVME_LIST_ENTRIES];
    uint8_t cqe[NVME_CQE_BYTES];
    struct nvme_dma completion;
};

/* ---- Media ----------------------------------------------------------------------------------- */

/* Pages of 4 KiB that were written; found by two steps of 4096 and as many as it takes. */
struct nvme_chunk;
struct nvme_namespace {
    struct nvme_chunk **chunk;
    uint64_t n_chunks;
};

struct nvme_params {
    struct pcie_function_params pcie;
    uint32_t n_queues, queue_entries, n_vectors, n_namespaces;
    uint32_t vendor_id, device_id;
    uint64_t capacity_bytes, transfer_bytes_max, cmb_bytes;
    uint32_t block_bytes;
    int payload; /* enum nvme_payload */
    sim_time enable_ps, command_ps, cmb_ps;
    sim_time read_ps, write_ps, jitter_ps;
    double read_gbyte_s, write_gbyte_s;
    uint32_t n_channels, fetch_burst, commands_max;
    bool function_reset;
};

/* ---- A controller ---------------------------------------------------------------------------- */

enum nvme_state {
    NVME_DISABLED,
    NVME_ENABLING, /* enable_ps */
    NVME_READY,
    NVME_STOPPING, /* what is under way ends */
};

struct nvme {
    struct nvme_subsystem *sub;
    struct nvme *next; /* of the subsystem, in a circle */
    struct pcie_function function;
    enum nvme_state state;
    uint16_t id;       /* CNTLID */
    uint32_t n_queues; /* of each kind, the admin queue included */
    uint32_t n_vectors;
    uint32_t cc, csts, aqa;
    uint64_t asq, acq;
    struct sim_event enable;
    struct nvme_sq *sq[NVME_QUEUES_MAX];
    struct nvme_cq cq[NVME_QUEUES_MAX];
    uint32_t next_sq;           /* whose turn it is */
    uint32_t n_under_way;       /* commands, fetches: all that must end before a reset has */
    struct nvme_command *async; /* Asynchronous Event Request that waits */
    uint8_t *cmb;
};

/* ---- The subsystem: what its controllers share, and the model's state -------------------------- */

struct nvme_subsystem {
    struct nvme_params params;
    struct model *model;
    struct sim_pool *commands, *pieces, *pages;
    bool initialised;
    struct nvme first;   /* the controller of p0 */
    struct nvme *turn;   /* whose entries are fetched next */
    uint32_t n_commands; /* of all controllers */
    sim_time command_free_ps;
    sim_time *channel_free_ps; /* n_channels */
    struct nvme_namespace namespace[NVME_NAMESPACES_MAX];
    uint64_t read_fs_per_byte, write_fs_per_byte; /* of a channel */
    struct nvme_stats stats;
};

static inline struct nvme_subsystem *nvme_state(const struct model *model)
{
    return model->state;
}
static inline struct nvme *nvme_of(struct pcie_function *function)
{
    return SIM_CONTAINER(function, struct nvme, function);
}
static inline const struct nvme_params *nvme_params(const struct nvme *nvme)
{
    return &nvme->sub->params;
}
static inline struct sim *nvme_sim(const struct nvme *nvme)
{
    return nvme->sub->model->sim;
}
static inline sim_time nvme_now(const struct nvme *nvme)
{
    return sim_now(nvme_sim(nvme));
}
/* Nothing new starts. */
static inline bool nvme_running(const struct nvme *nvme)
{
    return nvme->state == NVME_READY && !nvme->function.gone && (nvme->csts & NVME_CSTS_CFS) == 0;
}

/* nvme_controller.c */
/* The controller as after power-on, on port `port`. */
void nvme_controller_init(struct nvme_subsystem *sub, struct nvme *nvme, uint32_t port);
void nvme_controller_release(struct nvme *nvme);
void nvme_dma_start(struct nvme *nvme, struct nvme_dma *dma);
/* Something that was under way has ended; a reset may be complete. */
void nvme_ended(struct nvme *nvme);
/* It cannot go on: CSTS.CFS. */
void nvme_fatal(struct nvme *nvme);

/* nvme_queue.c */
void nvme_doorbell(struct nvme *nvme, uint64_t offset, uint32_t value);
/* Fetches commands while there are some and there is room. */
/* Fetches what queues hold, in turn of the controllers and their queues. */
void nvme_fetch(struct nvme_subsystem *sub);
void nvme_sq_create(struct nvme *nvme, uint16_t number, uint64_t iova, uint32_t entries,
                    uint16_t cq);
void nvme_cq_create(struct nvme *nvme, uint16_t number, uint64_t iova, uint32_t entries,
                    bool interrupts, uint16_t vector);
void nvme_sq_delete(struct nvme *nvme, uint16_t number);
void nvme_queues_delete(struct nvme *nvme);
/* The command's status and result are known. */
void nvme_complete(struct nvme_command *command, enum nvme_status status);
/* It ends without an answer. */
void nvme_command_free(struct nvme_command *command);

/* nvme_admin.c */
void nvme_admin(struct nvme_command *command);

/* nvme_io.c */
void nvme_io(struct nvme_command *command);
/* A page of an admin command's data, at the command's PRP entries; then it is complete. */
void nvme_send_page(struct nvme_command *command, const uint8_t page[NVME_PAGE_BYTES]);

/* nvme_media.c */
void nvme_media_init(struct nvme_subsystem *sub);
void nvme_media_release(struct nvme_subsystem *sub);
/* model_ops.settle */
void nvme_media_settle(struct model *model);
/* When bytes of a page that are asked for now are there, or in the media. */
sim_time nvme_media_ready(struct nvme_subsystem *sub, const struct nvme_command *command,
                          uint64_t offset, uint32_t bytes);
/* Between the media and a piece's buffer. */
void nvme_media_load(struct nvme_subsystem *sub, const struct nvme_piece *piece, uint8_t *buffer);
void nvme_media_store(struct nvme_subsystem *sub, const struct nvme_piece *piece);

#endif
