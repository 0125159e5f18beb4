/*
 * Latency stamps. A stamp travels with a transaction and attributes its latency to parts. It keeps
 * a cursor: every mark assigns the time from the cursor to the given moment to one part and moves
 * the cursor there, so the parts sum to the whole exactly, by construction.
 */
#ifndef SIM_ENGINE_STAMP_H
#define SIM_ENGINE_STAMP_H

#include "sim/engine/types.h"

#define SIM_STAMP_PARTS 12

struct stamp_trace; /* models/pcie/link/tlp_trace.h defines it */

struct sim_stamp {
    sim_time start_ps;
    sim_time cursor_ps;
    struct stamp_trace *trace; /* NULL unless the transaction is traced, as number `leg` */
    uint32_t leg;
    bool uncounted; /* it is there for the trace only: no statistic counts it */
    sim_time part_ps[SIM_STAMP_PARTS];
};

static inline void sim_stamp_start(struct sim_stamp *stamp, sim_time now_ps)
{
    *stamp = (struct sim_stamp){ .start_ps = now_ps, .cursor_ps = now_ps };
}

/* Assigns cursor..until_ps to `part`; stamp may be NULL; a moment before the cursor adds nothing
 * (something else on the critical path already covers it). */
static inline void sim_stamp_mark(struct sim_stamp *stamp, unsigned part, sim_time until_ps)
{
    if (stamp != NULL && until_ps > stamp->cursor_ps) {
        stamp->part_ps[part] += until_ps - stamp->cursor_ps;
        stamp->cursor_ps = until_ps;
    }
}

#endif
