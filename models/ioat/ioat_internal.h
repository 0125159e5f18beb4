/*
 * The DMA engine, for models/ioat/ only.
 *
 * Invariants of a channel:
 *   - Jobs are a ring in the order of the chain. Those from n_issued on have reads to be issued;
 *     lines are read, and data written, in order.
 *   - A unit holds a line from the issue of its read until the last of its bytes has been put into
 *     a write; a write buffer until the write has been handed over. n_units and n_writes count
 *     them.
 *   - While `stopping`, nothing new is issued; the channel stops when n_reads and n_writes are 0
 *     and no descriptor is being fetched.
 */
#ifndef MODELS_IOAT_IOAT_INTERNAL_H
#define MODELS_IOAT_IOAT_INTERNAL_H

#include "hw/ioat_regs.h"
#include "models/ioat/ioat.h"
#include "models/pcie/endpoint/pcie_function.h"

#define IOAT_FUNCTIONS_MAX 8u
#define IOAT_UNITS_MAX     64u
#define IOAT_AHEAD_MAX     4u
#ifdef SIM_HOSTILE
#define IOAT_JOBS 6u
#else
#define IOAT_JOBS 16u
#endif
_Static_assert(IOAT_JOBS >= IOAT_AHEAD_MAX + 2, "a job is read and another one written");

enum ioat_version { IOAT_1_2, IOAT_3_2 };

struct ioat_params {
    struct pcie_function_params pcie;
    int version; /* enum ioat_version */
    uint32_t n_functions, n_channels;
    uint32_t device_id;
    uint64_t transfer_bytes_max;
    uint32_t address_bits;
    uint32_t reads_in_flight;
    uint32_t descriptors_ahead;
    sim_time engine_interval_ps, descriptor_start_ps;
};

struct ioat_stats {
    uint64_t descriptors, bytes, read_lines, write_lines, completions, fetches, fences;
    uint64_t errors, bad_commands, resets, steered;
    struct stat_busy engine;
    struct stat_peak engine_peak;
};

struct ioat_channel;

/* A line of the source, and the bytes of it that are wanted. */
struct ioat_unit {
    struct pcie_dma_request read;
    struct ioat_channel *channel;
    uint32_t job; /* index */
    uint32_t at, end;
    bool arrived;
    uint8_t error; /* enum pcie_dma_status */
    uint8_t line[LINE_BYTES];
};

/* A piece of the destination within a line. */
struct ioat_write {
    struct pcie_dma_request request;
    struct ioat_channel *channel;
    struct ioat_write *next; /* free */
    uint32_t job;
    uint8_t line[LINE_BYTES];
};

struct ioat_job {
    struct ioat_channel *channel;
    struct ioat_descriptor descriptor;
    uint64_t address;       /* of the descriptor */
    uint64_t read, written; /* bytes: reads issued; put into writes */
    uint32_t n_writes;      /* under way */
    uint32_t error;         /* IOAT_CHANERR_*: 0: none */
    sim_time ready_ps;      /* of its first read; SIM_TIME_MAX: not known yet */
    bool ending;
    uint64_t status; /* what is written to CHANCMP */
    struct pcie_dma_request completion;
};

struct ioat_channel {
    struct ioat_engine *engine;
    struct ioat_func *func;
    uint32_t number; /* within its function */
    /* ---- registers --------------------------------------------------------------------------- */
    uint32_t control, error, error_mask, dca;
    uint64_t chain_address, completion_address, last, current;
    uint16_t count; /* 3.2: DMACOUNT */
    uint8_t status; /* IOAT_CHANSTS_* */
    /* ---- the chain --------------------------------------------------------------------------- */
    uint64_t next;      /* descriptor to be fetched next */
    uint64_t tail;      /* the last one that was fetched */
    uint16_t n_fetched; /* 3.2: since CHAINADDR was written */
    bool armed;         /* there is a chain to go on with */
    bool first;         /* nothing of it was fetched */
    bool at_end;        /* 1.2: the last descriptor's next was 0 when it was read */
    bool append;        /* 1.2: it may have changed since */
    bool reloading;     /* 1.2: the fetch under way is of `tail` once more */
    bool fetching;
    uint64_t fetch_address;
    struct pcie_dma_request fetch;
    struct ioat_descriptor fetched;
    struct ioat_job job[IOAT_JOBS];
    uint32_t first_job, n_jobs, n_issued; /* n_issued: whose reads have all been issued */
    /* ---- data -------------------------------------------------------------------------------- */
    struct ioat_unit *unit; /* reads_in_flight of them, a ring */
    uint32_t first_unit, n_units, n_reads, n_writes;
    struct ioat_write *write, *free_write;
    struct sim_event start;
    /* ---- stopping ---------------------------------------------------------------------------- */
    bool suspending, stopping, resetting;
    uint32_t halt_error; /* why it stops; 0: a command */
    bool looping, again;
    uint64_t halt_status;
    struct pcie_dma_request halt_completion;
    bool halt_writing;
    /* ---- interrupts -------------------------------------------------------------------------- */
    sim_time armed_ps; /* since when it may raise one */
    struct sim_event interrupt;
};

/* A function with its channels. */
struct ioat_func {
    struct pcie_function function;
    struct ioat_engine *engine;
    struct ioat_channel *channel;
    uint32_t attention;
    uint16_t delay_us;
    uint8_t general; /* GENCTRL */
    uint8_t interrupt_control;
    bool raised; /* INTRCTRL's INTERRUPT: the message of this assertion was sent */
};

struct ioat_engine {
    struct ioat_params params;
    struct ioat_stats stats;
    struct model *model;
    sim_time free_ps; /* of the read and write engine, which all channels share */
    struct ioat_func func[IOAT_FUNCTIONS_MAX];
};

static inline bool ioat_is_v1(const struct ioat_engine *engine)
{
    return engine->params.version == IOAT_1_2;
}
static inline struct ioat_job *ioat_job_at(struct ioat_channel *ch, uint32_t i)
{
    return &ch->job[(ch->first_job + i) % IOAT_JOBS];
}
/* The engine starts one line at a time: when it does for a request of now. */
static inline sim_time ioat_slot(struct ioat_engine *engine)
{
    const sim_time at_ps = SIM_MAX(sim_now(engine->model->sim), engine->free_ps);
    engine->free_ps = at_ps + engine->params.engine_interval_ps;
    engine->stats.engine.ps += engine->params.engine_interval_ps;
    return at_ps;
}

/* Direct cache access (3.2): the write goes to the cache of DCACTRL's CPU. */
static inline void ioat_steer(const struct ioat_channel *ch, struct pcie_dma_request *request)
{
    if (ioat_is_v1(ch->engine))
        return;
    request->attr |= TLP_ATTR_STEERED;
    request->tag = (uint16_t)ch->dca;
    ch->engine->stats.steered++;
}

/* ioat_channel.c: chains, commands, ends */
void ioat_channel_init(struct ioat_channel *ch, struct ioat_func *func, uint32_t number);
void ioat_channel_release(struct ioat_channel *ch);
/* Does what can be done now. */
void ioat_channel_go(struct ioat_channel *ch);
void ioat_channel_command(struct ioat_channel *ch, uint32_t command);
void ioat_channel_count(struct ioat_channel *ch, uint16_t count);
void ioat_channel_chain(struct ioat_channel *ch, uint64_t address);
/* As after power-on; nothing may be under way. */
void ioat_channel_reset(struct ioat_channel *ch);
/* Starts nothing any more. */
void ioat_channel_gone(struct ioat_channel *ch);

/* ioat_data.c: lines */
/* Issues reads of the jobs that may read. */
void ioat_data_read(struct ioat_channel *ch);
/* Puts what has arrived, in order, into writes. */
void ioat_data_write(struct ioat_channel *ch);
/* Forgets all units; none of their reads is under way. */
void ioat_data_drop(struct ioat_channel *ch);

/* ioat_registers.c */
uint32_t ioat_register_read(struct pcie_function *function, uint64_t offset);
void ioat_register_write(struct pcie_function *function, uint64_t offset, uint32_t value);
/* Raises the channel's interrupt, unless software has not rearmed it since the last. */
void ioat_interrupt_raise(struct ioat_channel *ch);
void ioat_interrupt_due(struct sim *sim, struct sim_event *event);

#endif
