/*
 * Simulated cores: what software running as a task costs in time. A core has no instruction set:
 * software charges cycles for what it computes and touches real cache lines for what it reads and
 * writes; misses overlap as far as the line-fill buffers reach.
 */
#ifndef MODELS_HOST_CORE_H
#define MODELS_HOST_CORE_H

#include "models/numa/numa.h"
#include "sim/config/param.h"
#include "sim/engine/task.h"

#define CORE_BUFFERS_MAX 64u
#define CORE_STORES_MAX  128u
#define CORE_NO_LINE     UINT64_MAX

struct core_params {
    uint32_t line_fill_buffers;  /* demand misses of one core that overlap */
    uint32_t superqueue_entries; /* the same with prefetches of a stream */
    uint32_t issue_cycles;       /* of an access that does not wait for its data */
    uint32_t
        store_buffer_entries; /* steps of a copy that wait for the lines they go to; 0: no bound */
    bool stores_in_order;     /* a line is asked for when the one stored to before is observed */
};
extern const struct param_desc core_params_table[];

struct core {
    struct numa *numa;
    const struct core_params *params;
    unsigned idx;        /* as numa.h counts */
    bool copies_by_rate; /* core_copy() takes its time and touches no lines (host.h) */
    sim_time cycle_ps, issue_ps;
    sim_time *displaced_until_ps;              /* numa_displaced_until() */
    sim_time *observed_ps;                     /* numa_observed() */
    sim_time store_from_ps;                    /* stores_in_order: the next may ask for its line */
    const sim_time *contended_until_ps;        /* numa_contended_until() */
    sim_time buffer_done_ps[CORE_BUFFERS_MAX]; /* free from then on */
    double buffer_done[CORE_BUFFERS_MAX];      /* the same (models/base/times.h) */
    sim_time buffer_line_ps[CORE_BUFFERS_MAX]; /* its line is there */
    uint8_t buffer_source[CORE_BUFFERS_MAX];   /* enum numa_source, of who took it last */
    /* Time that software waited for data, by where they came from; never cleared. */
    sim_time wait_ps[N_NUMA_SOURCES];
    uint64_t buffer_line[CORE_BUFFERS_MAX]; /* that an asynchronous load fetches, or CORE_NO_LINE */
    sim_time fetching_until_ps;             /* the last of those lines is there */
    struct numa_result stored;              /* the store whose line comes last */
    /* Lines for which loads and stores that nothing waits for took a buffer, and how long they had
     * it, all together; never cleared. */
    uint64_t n_fills;
    sim_time fill_ps;
};

void core_init(struct core *core, struct numa *numa, const struct core_params *params,
               unsigned idx);

/* Charges cycles. */
void core_compute(struct core *core, struct sim_task *task, uint64_t cycles);
/* A load whose value the next step needs: the task's clock advances to when it is there. */
void core_load(struct core *core, struct sim_task *task, struct hpa hpa, struct sim_stamp *stamp);
/* Loads and stores that nothing waits for: a miss occupies a line-fill buffer until it is done,
 * and the task waits only for a buffer. A load that does wait, of a line that an asynchronous one
 * is fetching, waits for that. */
void core_load_async(struct core *core, struct sim_task *task, struct hpa hpa);
/* One of a stream in address order: the prefetcher keeps the superqueue filled. */
void core_load_stream(struct core *core, struct sim_task *task, struct hpa hpa);
void core_store(struct core *core, struct sim_task *task, struct hpa hpa);
/* Of a core with a store buffer (store_buffer_entries): waits until all stores before have their
 * lines. Others do not. */
void core_fence(struct core *core, struct sim_task *task);
/* A locked operation: as core_fence(), and then it waits until the line is this core's. Without a
 * store buffer a load that waits and a store. */
void core_atomic(struct core *core, struct sim_task *task, struct hpa hpa);
/* A non-temporal store of a whole line; it holds a line-fill buffer until memory has accepted
 * it. */
void core_store_nt(struct core *core, struct sim_task *task, struct hpa hpa);
/* Loads whose values the next step needs together: they overlap. */
void core_load_range(struct core *core, struct sim_task *task, struct hpa hpa, uint64_t bytes);
/* Has the real machine fetch what it knows of a line that is accessed soon; nothing simulated
 * changes. */
void core_announce(const struct core *core, struct hpa hpa);
/*
 * Copies bytes from one place to another, as `rep movsb` does: line by line, at least line_ps each.
 * *arrived, set before, becomes the load whose data arrive last, if they do later; the task does
 * not wait for them (core_wait() does); it has charged the rest. The prefetcher sees a new stream
 * at the beginning of each call; it does not go over a 4 KiB boundary, so nor may a call: [from,
 * from + bytes) lies in one page. past_caches: whole lines of the destination are stored
 * non-temporally once their data have arrived; *arrived then covers these stores, too. With
 * copies_by_rate nothing arrives, and a line takes its line_ps.
 */
void core_copy(struct core *core, struct sim_task *task, struct hpa to, struct hpa from,
               uint64_t bytes, sim_time line_ps, bool past_caches, struct numa_result *arrived);
/* The instructions of a line are executed next: waits for them, unless they are in the L1I.
 * ahead_ps: how long ago the fetch has begun if it had to begin (0: now). */
void core_fetch(struct core *core, struct sim_task *task, struct hpa hpa, sim_time ahead_ps);
void core_wait(struct core *core, struct sim_task *task, struct numa_result arrived);
/* A write-combining buffer, one of the line-fill buffers: waits until one is free; it is then held
 * until done_ps. */
unsigned core_combining_buffer(struct core *core, struct sim_task *task);
void core_combining_held(struct core *core, unsigned buffer, sim_time done_ps);
/* Waits for everything under way. */
void core_drain(struct core *core, struct sim_task *task);

#endif
