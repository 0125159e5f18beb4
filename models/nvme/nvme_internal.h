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
struct nvme_media_ops;
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

/* Classes of arbitration (4.13). Round robin has all queues in the first. */
enum nvme_class {
    NVME_CLASS_FIRST, /* the admin queue */
    NVME_CLASS_URGENT,
    NVME_CLASS_HIGH, /* by weight */
    NVME_CLASS_MEDIUM,
    NVME_CLASS_LOW,
};

/* An interrupt vector. */
struct nvme_vector {
    struct nvme *nvme;
    uint32_t n; /* completions that wait for a message */
    struct sim_event timer;
};

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
    struct nvme *nvme;
    bool there, fetching;
    bool deleting;
    bool stopped;       /* an entry could not be fetched: none follows */
    uint8_t class;      /* enum nvme_class */
    uint32_t turn_left; /* commands in the turn of its class that `turn` names */
    uint64_t turn;
    sim_time since_ps; /* with entries, and none of them being fetched */
    uint16_t number, cq;
    uint32_t entries, head, tail;
    uint32_t n_commands; /* fetched and not completed */
    uint64_t iova;
    uint32_t n_fetch; /* entries in the read under way */
    struct nvme_dma fetch;
    struct nvme_command *delete_command; /* waits for it to be empty */
    struct nvme_command *commands;       /* fetched and not completed, newest first */
    struct nvme_command *aborts;         /* wait for entries that have not been fetched */
    uint8_t fetched[NVME_FETCH_MAX * NVME_SQE_BYTES];
};

/* ---- Commands -------------------------------------------------------------------------------- */

/* Where data goes, from where. */
enum nvme_data {
    NVME_DATA_READ,    /* to the host: from the media */
    NVME_DATA_SEND,    /* from the command's page */
    NVME_DATA_WRITE,   /* from the host: to the media */
    NVME_DATA_COMPARE, /* with the media */
    NVME_DATA_TAKE,    /* to the command's page */
};

/* A part of a command's data within one page of memory and one of the media. */
struct nvme_piece {
    struct nvme_dma dma;
    struct nvme_command *command;
    struct nvme_piece *next, **from; /* of the command */
    struct sim_event event;          /* media; */
    bool waits;                      /* for them */
    uint64_t offset;                 /* in the namespace, or in the command's page */
    uint32_t bytes;
    uint8_t buffer[NVME_PAGE_BYTES];
};

/* How far a command is. */
enum nvme_step {
    NVME_QUEUED, /* in the controller, until its event */
    NVME_EXECUTES,
    NVME_WAITS,     /* for an event, the end of a queue, another command */
    NVME_ENDS,      /* data is done; the media until its event */
    NVME_COMPLETES, /* its status is known */
};

/* Which field of its entry is to blame for an error: byte, bit << 8 (5.14.1.1). */
#define NVME_AT(FIELD, BIT) \
    (uint16_t)((offsetof(struct nvme_sqe, FIELD) + (BIT) / 8u) | ((BIT) % 8u) << 8)
#define NVME_NOWHERE UINT16_MAX

struct nvme_command {
    struct nvme *nvme;
    struct nvme_command *next;
    struct nvme_sq *sq;
    struct nvme_command *sq_next, **sq_from; /* of its commands */
    struct nvme_command *aborter;            /* an Abort that waits for its end */
    struct nvme_sqe sqe;
    struct sim_event event;
    enum nvme_step step;
    uint32_t result;
    uint16_t status;   /* enum nvme_status; behind nvme_complete() with More and DNR */
    uint16_t location; /* NVME_AT(): of an error */
    /* ---- data: what has not been cut into pieces yet --------------------------------------- */
    enum nvme_data data;
    struct nvme_namespace *namespace;
    uint64_t bytes; /* of the whole */
    uint64_t offset, bytes_left;
    struct nvme_piece *pieces;
    uint64_t address;  /* in memory, of the next piece */
    uint32_t n_pieces; /* under way */
    bool list_pending; /* a PRP list or SGL segment is being read */
    bool page_ended;   /* PRP: the next piece begins in another memory page */
    uint8_t n_idle;    /* lists read one behind the other that held no data */
    sim_time begin_ps, jitter_ps;
    sim_time ready_ps; /* of the last byte in the media, of what is not sent from there */
    void (*taken)(struct nvme_command *command); /* NVME_DATA_TAKE: all is there */
    uint8_t *page;                               /* 4 KiB; NULL: it has none */
    struct nvme_dma list;
    uint32_t list_at, list_n; /* entries; of an Abort that waits list_n: to be fetched */
    union {
        uint64_t prp[NVME_LIST_ENTRIES];
        struct nvme_sgl sgl[NVME_PAGE_BYTES / NVME_SGL_BYTES];
    } entry;
    bool sgl;              /* described by descriptors, instead of PRP entries */
    bool sgl_last;         /* in the last segment, */
    uint64_t segment;      /* the rest of which lies here */
    uint64_t segment_left; /* bytes */
    uint64_t block_left;   /* of the descriptor's data */
    uint8_t cqe[NVME_CQE_BYTES];
    struct nvme_dma completion;
};

static inline bool nvme_from_host(const struct nvme_command *command)
{
    return command->data >= NVME_DATA_WRITE;
}

/* ---- Media ----------------------------------------------------------------------------------- */

/* Pages of 4 KiB that were written; found by two steps of 4096 and as many as it takes. */
struct nvme_chunk;
struct nvme_namespace {
    struct nvme_chunk **chunk;
    uint64_t n_chunks;
    uint64_t n_bad; /* units of 512 bytes that cannot be read */
    struct nvme_held *held;
    unsigned n_held;
};

enum nvme_media_kind { NVME_MEDIA_FLAT, NVME_MEDIA_XPOINT, NVME_MEDIA_DRAM, NVME_MEDIA_NAND };

/* Of media that are made of dies (nvme_media_*.c). */
struct nvme_media_params {
    int kind;        /* enum nvme_media_kind */
    uint32_t n_dies; /* of a channel */
    double channel_gbyte_s, ecc_ratio;
    sim_time die_read_ps, die_write_ps;
    uint32_t codeword_bytes;
    sim_time refresh_interval_ps, refresh_ps;
    double retry_ratio;
    sim_time retry_ps;
    /* ---- nand ------------------------------------------------------------------------------ */
    sim_time die_erase_ps, page_kind_step_ps, suspend_ps;
    uint32_t n_planes, flash_page_bytes, block_pages, gc_blocks;
    uint64_t write_buffer_bytes;
    double spare_ratio, endurance_cycles;
    int preconditioned; /* enum nvme_preconditioned */
};

struct nvme_params {
    struct pcie_function_params pcie;
    uint32_t n_queues, queue_entries, n_vectors, n_namespaces;
    uint32_t n_ports, n_vfs, flexible_queues, flexible_vectors;
    uint32_t vendor_id, device_id;
    uint64_t capacity_bytes, transfer_bytes_max, cmb_bytes;
    uint32_t block_bytes;
    int payload; /* enum nvme_payload */
    sim_time enable_ps, command_ps, cmb_ps;
    sim_time read_ps, write_ps, jitter_ps;
    double read_gbyte_s, write_gbyte_s;
    struct nvme_media_params media;
    uint32_t n_channels, fetch_burst, commands_max;
    bool function_reset;
};

/* ---- A controller ---------------------------------------------------------------------------- */

/* What the Error Information log holds (5.14.1.1), newest at (count - 1) % its size. */
#define NVME_ERRORS_MAX 64u
struct nvme_errors {
    uint64_t count;
    struct nvme_error_entry entry[NVME_ERRORS_MAX];
};

/* Asynchronous events of a type (5.2). */
#define NVME_EVENT_TYPES        2u
#define NVME_EVENT_REQUESTS_MAX 4u
struct nvme_event {
    uint8_t pending; /* a bit for each information that was not reported */
    bool masked;     /* reported; until the log page is read */
};

/* Values of features (5.21.1). */
struct nvme_features {
    uint32_t arbitration, power;
    uint32_t over_k, under_k; /* composite temperature */
    uint32_t error_recovery[NVME_NAMESPACES_MAX];
    uint32_t coalescing;
    uint32_t vector[NVME_QUEUES_MAX];
    uint32_t write_atomicity, async_events;
};
#define NVME_TEMPERATURE_K 308u  /* 35 degrees: an idle drive in a rack; nothing follows from it */
#define NVME_WARNING_K     0x157 /* the value that 5.15.3 recommends */
#define NVME_CRITICAL_K    358u  /* 85 degrees */
#define NVME_FIRMWARE      "1.0"
#define NVME_ABORTS_MAX    4u /* under way: what 5.15 recommends */

/* For the health log; since power-on. */
struct nvme_health {
    uint64_t reads, writes, read_bytes, written_bytes, media_errors;
};

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
    uint16_t id; /* CNTLID */
    uint32_t port;
    uint32_t n_queues; /* of each kind, the admin queue included */
    uint32_t n_vectors;
    struct nvme *primary;   /* of a secondary controller, in a virtual function; else NULL */
    struct nvme *secondary; /* of a primary one: n_secondary */
    uint32_t n_secondary;
    uint32_t flexible[2]; /* queues, vectors that are assigned; by enum nvme_resource */
    bool offline;         /* a secondary controller that may not be used */
    uint32_t cc, csts, aqa;
    uint64_t asq, acq;
    struct sim_event enable;
    struct nvme_sq *sq[NVME_QUEUES_MAX];
    struct nvme_cq cq[NVME_QUEUES_MAX];
    uint64_t ready[NVME_CLASSES][NVME_QUEUES_MAX / 64]; /* bits of queues with entries to fetch */
    uint32_t next_sq[NVME_CLASSES];                     /* whose turn it is */
    uint64_t turn[NVME_CLASSES];
    uint32_t credit[NVME_CLASSES]; /* commands that weighted classes may have now */
    struct nvme_vector vector[NVME_QUEUES_MAX];
    uint32_t n_under_way;          /* commands, fetches: all that must end before a reset has */
    struct nvme_command *requests; /* Asynchronous Event Requests that wait, in their order */
    uint32_t n_requests, n_aborts;
    struct nvme_event event[NVME_EVENT_TYPES];
    struct nvme_features features[NVME_SELECT_SUPPORTED]; /* by enum nvme_feature_select */
    struct nvme_errors errors;
    struct nvme_health health;
    uint8_t *cmb;
};

/* ---- The subsystem: what its controllers share, and the model's state ------------------------ */

struct nvme_subsystem {
    struct nvme_params params;
    struct model *model;
    struct sim_pool *commands, *pieces, *data_pages, *pages;
    bool initialised;
    struct nvme first;  /* the controller of p0, */
    struct nvme second; /* of p1 */
    struct nvme *turn;  /* whose entries are fetched next */
    struct nvme *last;
    uint32_t n_controllers;
    uint32_t n_commands; /* I/O commands of all controllers */
    sim_time command_free_ps;
    const struct nvme_media_ops *media;
    void *media_state;      /* of that kind */
    uint32_t media_of_dies; /* statistics: 0 flat, 1 of dies, 2 of flash */
    struct nvme_namespace namespace[NVME_NAMESPACES_MAX];
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
/* The controller as after power-on, on port `port`; in a virtual function of primary, unless this
 * is NULL. */
void nvme_controller_init(struct nvme_subsystem *sub, struct nvme *nvme, uint32_t port,
                          struct nvme *primary);
/* Registers and queues as after power-on; a secondary controller that is offline says so. */
void nvme_controller_restart(struct nvme *nvme);
void nvme_controller_release(struct nvme *nvme);
void nvme_dma_start(struct nvme *nvme, struct nvme_dma *dma);
/* Something that was under way has ended; a reset may be complete. */
void nvme_ended(struct nvme *nvme);
/* It cannot go on: CSTS.CFS. */
void nvme_fatal(struct nvme *nvme);

/* nvme_queue.c */
void nvme_doorbell(struct nvme *nvme, uint64_t offset, uint32_t value);
/* Begins to read n entries of the queue, which has them; returns n. */
uint32_t nvme_fetch_from(struct nvme_sq *sq, uint32_t n);
void nvme_sq_create(struct nvme *nvme, uint16_t number, uint64_t iova, uint32_t entries,
                    uint16_t cq, uint32_t priority);
void nvme_cq_create(struct nvme *nvme, uint16_t number, uint64_t iova, uint32_t entries,
                    bool interrupts, uint16_t vector);
/* Deletes a queue that is to be deleted once it is empty, and completes the command. */
void nvme_sq_consider_deleted(struct nvme_sq *sq);
void nvme_queues_delete(struct nvme *nvme);
/* The command's status and result are known. */
void nvme_complete(struct nvme_command *command, enum nvme_status status);
/* It ends without an answer. */
void nvme_command_free(struct nvme_command *command);

/* An error that the field at `location` is to blame for, NVME_AT(). */
static inline enum nvme_status nvme_wrong(struct nvme_command *command, enum nvme_status status,
                                          uint16_t location)
{
    command->location = location;
    return status;
}

/* ---- Commands by opcode ---------------------------------------------------------------------- */

struct nvme_command_desc {
    const char *name;
    uint32_t effects; /* enum nvme_effect, but for NVME_EFFECT_SUPPORTED */
    /* Begins the command, and completes it in the end. NULL: there is no such command. */
    void (*execute)(struct nvme_command *command);
};
#define NVME_ADMIN_COMMANDS 32u
#define NVME_IO_COMMANDS    16u
extern const struct nvme_command_desc nvme_admin_commands[NVME_ADMIN_COMMANDS];
extern const struct nvme_command_desc nvme_io_commands[NVME_IO_COMMANDS];

struct nvme_log_desc {
    const char *name;
    uint32_t bytes; /* at most 4 KiB */
    unsigned event; /* whose events reading it clears, enum nvme_event_type; or NVME_EVENT_TYPES */
    void (*put)(struct nvme *nvme, uint8_t *page); /* into zeros; NULL: there is no such log */
};
#define NVME_LOGS 8u
extern const struct nvme_log_desc nvme_logs[NVME_LOGS];

struct nvme_identify_desc {
    const char *name;
    enum nvme_status (*put)(struct nvme_command *command, uint8_t *page);
};
#define NVME_IDENTIFIES 32u
extern const struct nvme_identify_desc nvme_identifies[NVME_IDENTIFIES];

struct nvme_feature_desc {
    const char *name;      /* NULL: there is no such feature */
    uint32_t capabilities; /* enum nvme_feature_capability */
    uint32_t mask;         /* what can be set */
    /* Where it is among the values; NULL: fixed. check() has passed. */
    uint32_t *(*value)(struct nvme_features *features, const struct nvme_sqe *sqe);
    enum nvme_status (*check)(struct nvme_command *command, bool set); /* may be NULL */
};
#define NVME_FEATURES 16u
extern const struct nvme_feature_desc nvme_features[NVME_FEATURES];

/* nvme_admin.c */
void nvme_admin(struct nvme_command *command);
/* What an Abort waits for has ended. */
void nvme_abort_done(struct nvme_command *abort);
/* The command has been fetched from a queue with Aborts that wait; it may be complete
 * afterwards. */
void nvme_abort_fetched(struct nvme_command *command);
/* What these Aborts wait for will not be fetched. */
void nvme_aborts_end(struct nvme_sq *sq);

/* nvme_feature.c */
void nvme_features_init(struct nvme *nvme);
void nvme_features_reset(struct nvme *nvme); /* to the saved values */
void nvme_get_features(struct nvme_command *command);
void nvme_set_features(struct nvme_command *command);
/* The composite temperature is beyond a threshold. */
bool nvme_too_hot_or_cold(const struct nvme *nvme);

/* nvme_event.c */
void nvme_event(struct nvme *nvme, enum nvme_event_type type, unsigned information);
void nvme_event_clear(struct nvme *nvme, unsigned type); /* its log page was read */
void nvme_event_request(struct nvme_command *command);
void nvme_event_abort(struct nvme_command *command); /* a request that waits */
void nvme_events_reset(struct nvme *nvme);

/* nvme_identify.c */
void nvme_identify(struct nvme_command *command);

/* nvme_arbitration.c */
/* Fetches what queues hold, in turn of the controllers and their queues. */
void nvme_fetch(struct nvme_subsystem *sub);
/* Whether it has entries to fetch may have changed. */
void nvme_sq_update(struct nvme_sq *sq);
/* For a new queue. priority: enum nvme_sq_priority */
void nvme_sq_classify(struct nvme_sq *sq, uint32_t priority);

/* nvme_virtual.c */
/* The virtual functions of a primary controller, their controllers offline. */
void nvme_virtual_init(struct nvme *primary);
void nvme_virtual_release(struct nvme *primary);
/* A controller-level reset of the controller. */
void nvme_virtual_reset(struct nvme *nvme);
void nvme_virtualization(struct nvme_command *command);
enum nvme_status nvme_virtual_primary(struct nvme_command *command, uint8_t *page);
enum nvme_status nvme_virtual_secondary(struct nvme_command *command, uint8_t *page);

/* nvme_interrupt.c */
void nvme_interrupts_init(struct nvme *nvme);
void nvme_interrupts_stop(struct nvme *nvme);
/* A completion of the queue has been written. */
void nvme_interrupt(struct nvme *nvme, const struct nvme_cq *cq);

/* nvme_io.c */
void nvme_io(struct nvme_command *command);

/* nvme_data.c: the command is complete when its data is where it goes. */
/* Of the namespace, from `offset` on. */
void nvme_data_media(struct nvme_command *command, enum nvme_data data, uint64_t offset,
                     uint64_t bytes);
/* The media have changed without data; complete when that is safe. */
void nvme_data_update(struct nvme_command *command);
/* The command's page, zeroed when it is asked for first. */
uint8_t *nvme_data_page(struct nvme_command *command);
/* Sends the page from `offset` on; zeros follow it. */
void nvme_data_send(struct nvme_command *command, uint64_t offset, uint64_t bytes);
/* Fills the page; taken() completes the command. */
void nvme_data_take(struct nvme_command *command, uint64_t bytes,
                    void (*taken)(struct nvme_command *command));
/* Ends the command as soon as no data of it is on its way. */
void nvme_data_abort(struct nvme_command *command);
/* For nvme_list.c: starts what pieces can start. */
void nvme_data_continue(struct nvme_command *command);
void nvme_data_end(struct nvme_command *command);

/* nvme_list.c: where a command's data lies in memory. */
/* Begins with PRP entry 1, or the descriptor in the command. False: it is wrong, the status says
 * what. */
bool nvme_list_begin(struct nvme_command *command);
/* Bytes at command->address that belong together, at most command->bytes_left; 0: nothing is known
 * now, all is, or the status says what is wrong. */
uint64_t nvme_list_next(struct nvme_command *command);
/* `bytes` of them have been used. */
void nvme_list_used(struct nvme_command *command, uint64_t bytes);

/* nvme_log.c */
/* An entry in the Error Information log. command: NULL if the error is none's but of queue
 * sq_id. */
void nvme_log_error(struct nvme *nvme, const struct nvme_command *command, uint16_t sq_id,
                    uint16_t status);
void nvme_get_log(struct nvme_command *command);

/* nvme_media.c */
void nvme_media_init(struct nvme_subsystem *sub);
void nvme_media_release(struct nvme_subsystem *sub);
/* model_ops.settle */
void nvme_media_settle(struct model *model);
/* When bytes of a page that are asked for now are there, or in the media. */
sim_time nvme_media_ready(struct nvme_subsystem *sub, const struct nvme_command *command,
                          uint64_t offset, uint32_t bytes);
/* 5.14.1.2: of their life, estimated; 255 is the most that can be said. */
uint8_t nvme_media_used_percent(const struct nvme_subsystem *sub);
/* Between the media and a piece's buffer. False: a block cannot be read. */
bool nvme_media_load(struct nvme_subsystem *sub, const struct nvme_piece *piece, uint8_t *buffer);
void nvme_media_store(struct nvme_subsystem *sub, const struct nvme_piece *piece);
/* Of a piece's buffer with the media. */
enum nvme_status nvme_media_compare(struct nvme_subsystem *sub, const struct nvme_piece *piece);
/* What nvme_hold() does. */
void nvme_media_hold(struct nvme_subsystem *sub, struct nvme_namespace *namespace, uint64_t offset,
                     uint64_t bytes, uint64_t mark);
/* Bytes of whole blocks: reads find zeros, */
void nvme_media_zero(struct nvme_subsystem *sub, struct nvme_namespace *namespace, uint64_t offset,
                     uint64_t bytes);
/* or an error, until they are written. */
void nvme_media_spoil(struct nvme_namespace *namespace, uint64_t offset, uint64_t bytes);

#endif
