/*
 * The inside of dsa.accelerator.
 *
 * A descriptor comes by a portal into its work queue (dsa_portal.c), leaves it when an engine of
 * the queue's group has a place (dsa_dispatch.c), is a struct dsa_work there, moves its bytes in
 * units (dsa_move.c) and ends (dsa_complete.c). A batch is a struct dsa_batch, whose descriptors
 * are works too.
 */
#ifndef MODELS_DSA_DSA_INTERNAL_H
#define MODELS_DSA_DSA_INTERNAL_H

#include "hw/dsa_regs.h"
#include "models/dsa/dsa.h"
#include "models/pcie/endpoint/pcie_function.h"

#define DSA_QUEUES_MAX   16u
#define DSA_GROUPS_MAX   16u
#define DSA_ENGINES_MAX  16u
#define DSA_BUFFERS_MAX  255u
#define DSA_WORKS_MAX    64u /* of an engine */
#define DSA_BATCH_FETCH  8u  /* descriptors of a batch read at a time */
#define DSA_BATCH_BUFFER (2 * DSA_BATCH_FETCH)
#define DSA_VECTORS      (1 + DSA_QUEUES_MAX) /* vector 0: errors and commands */

/* BAR 0, in units of DSA_OFFSETS_UNIT. The hardware says where: "Table offsets". */
#define DSA_TABLE_GROUPS     0x400u
#define DSA_TABLE_QUEUES     0x800u
#define DSA_TABLE_PERMISSION 0x3000u
#define DSA_MSIX_TABLE       0x2000u
#define DSA_MSIX_PBA         0x2800u

struct dsa_params {
    struct pcie_function_params pcie;
    uint32_t queues, entries, groups, engines, read_buffers;
    uint32_t batch_log2, transfer_log2;
    uint32_t engine_descriptors; /* under way in an engine at a time */
    sim_time descriptor_ps;      /* out of its queue or batch to its first request */
    sim_time interval_ps;        /* between descriptors that an engine begins */
    sim_time read_interval_ps;   /* between reads of lines, of all engines */
};

struct dsa_stats {
    uint64_t descriptors, batches, bytes; /* that ended; bytes moved */
    uint64_t failed, aborted;             /* of descriptors and batches */
    uint64_t retries, dropped;            /* writes to portals: refused, lost */
    uint64_t buffer_waits;                /* times that an engine had no read buffer */
    uint64_t occupancy_max, buffers_max;
};

struct dsa_device;
struct dsa_engine;
struct dsa_group;
struct dsa_queue;

/* What a queue has handed over, and has not ended: a descriptor or a batch, in order of
 * submission. */
struct dsa_task {
    struct dsa_task *next;
    struct dsa_queue *queue;
    uint64_t sequence;
};

/* How a descriptor ended. */
struct dsa_outcome {
    uint8_t status; /* enum dsa_status; DSA_STATUS_NONE: not yet */
    bool fault_write;
    uint64_t fault_address;
    uint64_t completed;
    uint32_t invalid_flags;
};

struct dsa_batch {
    struct dsa_task task;
    struct dsa_device *dsa;
    struct dsa_engine *engine; /* NULL: free */
    struct dsa_descriptor descriptor;
    struct dsa_outcome outcome;
    bool aborted;
    bool cut;              /* no more descriptors of it are begun */
    bool reading, writing; /* the list; the record */
    uint32_t fetched, started, ended, failed;
    struct sim_event start;
    struct dsa_descriptor list[DSA_BATCH_BUFFER];
    struct pcie_dma_request fetch, write_back;
    struct dsa_record record;
};

struct dsa_work {
    struct dsa_work *next; /* free, or of its engine's that move bytes */
    struct dsa_task task;  /* unless it is of a batch */
    struct dsa_batch *batch;
    uint16_t batch_idx;
    struct dsa_device *dsa;
    struct dsa_engine *engine; /* NULL: free */
    struct dsa_descriptor descriptor;
    struct dsa_outcome outcome;
    bool aborted, moving, writing;
    bool serial, backward; /* a move of ranges that overlap */
    uint64_t issued;       /* bytes that units were made for */
    uint32_t n_units;
    struct sim_event start;
    struct pcie_dma_request write_back;
    struct dsa_record record;
};

/* A line of the destination with its read buffer. */
struct dsa_unit {
    struct dsa_unit *next;
    struct dsa_work *work;
    uint64_t offset;
    uint32_t bytes;
    struct pcie_dma_request read, write;
    uint8_t source[2 * LINE_BYTES]; /* of the lines that hold it */
    uint8_t line[LINE_BYTES];
};

struct dsa_engine {
    struct dsa_device *dsa;
    struct dsa_group *group; /* NULL: of none */
    uint32_t n_works;        /* that it has */
    struct dsa_work *moving; /* oldest first */
    struct dsa_batch batch;  /* the one at a time */
    bool batch_turn;         /* the next descriptor is taken from the batch if it can be */
    sim_time next_ps;        /* no descriptor begins earlier */
    struct dsa_work *free_work;
};

struct dsa_queue {
    uint32_t idx;
    uint32_t config[DSA_WQCFG_BYTES / 4];
    bool enabled, closed; /* closed: takes nothing more, since it will be disabled */
    struct dsa_group *group;
    struct dsa_descriptor *entry; /* a ring of params.entries places */
    uint32_t first, n;
    uint64_t submitted;         /* sequence of the next descriptor */
    struct dsa_task *under_way; /* oldest first */
    uint32_t turns;             /* left to it in this round of its group */
};

struct dsa_group {
    uint32_t idx;
    uint64_t queues, engines; /* masks, as configured */
    uint64_t flags;
    uint32_t turn;    /* the queue that is asked next */
    uint32_t buffers; /* read buffers in use */
};

struct dsa_device {
    struct dsa_params params;
    struct dsa_stats stats;
    struct pcie_function function;
    struct model *model;
    /* Registers. */
    uint32_t gencfg, genctrl, state, reset_type, intcause, cmdsts;
    uint64_t swerr[DSA_SWERR_WORDS];
    /* The command under way. */
    uint32_t command, command_queues;
    bool command_vector;
    uint64_t command_until[DSA_QUEUES_MAX]; /* sequences that must have ended */

    struct dsa_queue queue[DSA_QUEUES_MAX];
    struct dsa_group group[DSA_GROUPS_MAX];
    struct dsa_engine engine[DSA_ENGINES_MAX];
    uint32_t engine_turn, move_turn;                   /* the engine that is asked next */
    uint32_t buffers, shared_buffers, limited_buffers; /* in use */
    uint32_t reserved_buffers;                         /* of all groups, when it was enabled */
    sim_time next_read_ps;                             /* no line is read earlier */
    struct dsa_unit *free_unit, *units;
    struct dsa_work *works;
    bool dispatching, dispatch_again; /* in the loop; once more round */
    bool short_of;                    /* an engine waits for a read buffer */
};

static inline struct dsa_device *dsa_of(struct pcie_function *function)
{
    return SIM_CONTAINER(function, struct dsa_device, function);
}
static inline sim_time dsa_now(const struct dsa_device *dsa)
{
    return sim_now(dsa->model->sim);
}
/* All ones below bit n. */
static inline uint64_t dsa_mask(uint32_t n)
{
    return n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
}
static inline uint32_t dsa_operation(const struct dsa_descriptor *descriptor)
{
    return descriptor->flags_operation >> DSA_OPERATION_SHIFT;
}
static inline uint32_t dsa_flags(const struct dsa_descriptor *descriptor)
{
    return descriptor->flags_operation & DSA_FLAGS_MASK;
}
static inline uint32_t dsa_queue_size(const struct dsa_queue *queue)
{
    return queue->config[DSA_WQCFG_SIZE / 4] & 0xffffu;
}
static inline bool dsa_queue_dedicated(const struct dsa_queue *queue)
{
    return (queue->config[DSA_WQCFG_MODE / 4] & DSA_WQCFG_DEDICATED) != 0;
}

/* ---- dsa_registers.c ---- */
uint32_t dsa_register_read(struct pcie_function *function, uint64_t offset);
void dsa_register_write(struct pcie_function *function, uint64_t offset, uint32_t value);
/* As after power-on; nothing is under way. */
void dsa_registers_reset(struct dsa_device *dsa, enum dsa_reset type);
/* ---- dsa_command.c ---- */
void dsa_command_write(struct dsa_device *dsa, uint32_t value);
uint32_t dsa_command_capability(void);
/* Something has ended: maybe the command has, too. */
void dsa_command_look(struct dsa_device *dsa);
/* ---- dsa_portal.c ---- */
void dsa_portal_request(struct pcie_function *function, uint64_t offset, struct tlp *tlp);
/* ---- dsa_dispatch.c ---- */
/* Engines take descriptors as far as they have places. */
void dsa_dispatch(struct dsa_device *dsa);
/* Queued descriptors of the queue are dropped, those under way end without a record. */
void dsa_queue_abort(struct dsa_device *dsa, struct dsa_queue *queue);
/* The sequence of the oldest descriptor that has not ended. */
uint64_t dsa_queue_oldest(const struct dsa_queue *queue);
/* Nothing is left to do for the descriptor, or for the batch: its place is free. */
void dsa_work_free(struct dsa_work *work);
void dsa_batch_free(struct dsa_batch *batch);
/* Places for descriptors, once. */
void dsa_dispatch_init(struct dsa_device *dsa);
/* Everything ends, without records. DMA has ended. */
void dsa_dispatch_reset(struct dsa_device *dsa);
void dsa_dispatch_release(struct dsa_device *dsa);
/* ---- dsa_move.c ---- */
void dsa_move_init(struct dsa_device *dsa);
void dsa_move_begin(struct dsa_work *work);
/* Engines make requests as far as there are read buffers. */
void dsa_move(struct dsa_device *dsa);
/* ---- dsa_complete.c ---- */
/* The first thing that is wrong with the descriptor, or DSA_STATUS_NONE. */
enum dsa_status dsa_check(const struct dsa_device *dsa, const struct dsa_queue *queue,
                          const struct dsa_descriptor *descriptor, bool in_batch,
                          uint32_t *invalid_flags);
/* The descriptor, or all of the batch, is done: its record, its interrupt. */
void dsa_work_end(struct dsa_work *work);
void dsa_batch_end(struct dsa_batch *batch);
/* An error that no completion record tells. */
void dsa_software_error(struct dsa_device *dsa, uint8_t error, const struct dsa_queue *queue,
                        const struct dsa_descriptor *descriptor, const struct dsa_outcome *outcome,
                        int batch_idx);

#endif
