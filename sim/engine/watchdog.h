/*
 * The watchdog of a run: notices that nothing progresses, and says what waits for what.
 *
 * sim_run() looks once in a million steps (events, and advances of tasks), so that nothing is added
 * to a step. A run fails by sim_fail() when
 *   - simulated time has stood still for SIM_STANDSTILL_STEPS, or
 *   - only polls have gone on for SIM_IDLE_STEPS and for SIM_IDLE_PS: no work() has returned
 *     another number, and nobody has called sim_progress(). After the steps alone it says so on
 *     standard error, once: a thread may well compute in its registers while all others wait for a
 *     time-out.
 * All are counts of steps and simulated time, so that a run fails at the same place on every
 * machine. An event or a task that never returns is out of its reach; sim_watchdog_tick() is for
 * that.
 */
#ifndef SIM_ENGINE_WATCHDOG_H
#define SIM_ENGINE_WATCHDOG_H

#include "sim/engine/sim.h"

#define SIM_STANDSTILL_STEPS 4000000u
#define SIM_IDLE_STEPS       4000000u
#define SIM_IDLE_PS          (10 * SIM_PS_PER_S)

/* The text that describes what waits; what does not fit is counted. */
#define SIM_WAITS_BYTES 900u
struct sim_waits {
    char text[SIM_WAITS_BYTES];
    size_t n;
    unsigned n_left_out;
};
/* Adds "; " and the text. */
void sim_waits_add(struct sim_waits *waits, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), cold));

/* Embedded in what can say whether it works or waits. Both functions may be NULL. */
struct sim_watch {
    /* A number that is another one after any work but polls. Changes nothing that is simulated. */
    uint64_t (*work)(struct sim_watch *watch);
    /* Adds what waits for tags, credits and the like. */
    void (*describe)(struct sim_watch *watch, struct sim_waits *waits);
    struct sim_watch *next, **link; /* private; link: what points to it, NULL: not added */
};
/* The caller owns the watch, which must stay until it is removed or the run is freed. */
void sim_watch_add(struct sim *sim, struct sim_watch *watch);
/* Does nothing if it is not there. */
void sim_watch_remove(struct sim *sim, struct sim_watch *watch);

/* Software has done a piece of work that no work() shows: computed in its nearest caches. */
void sim_progress(struct sim *sim);

/* Which tasks wait for what (those of which nobody has said that they may wait for ever), and what
 * all watches add: one line, "" if nothing waits. *waits need not be initialised. */
void sim_waits_describe(struct sim *sim, struct sim_waits *waits);
/* Fails the run: "WHY; what waits for what". */
void sim_fail_waiting(struct sim *sim, const char *why);

/*
 * For a handler of a signal that comes every SIM_TICK_MS of processor time: if the run of this
 * thread has fired no event and moved no clock for a second, says so on standard error, with the
 * task and the time; after SIM_TICKS_MAX ticks it aborts the process. Without effect outside of
 * sim_run().
 */
#define SIM_TICK_MS   250
#define SIM_TICKS_MAX 40u
void sim_watchdog_tick(void);

#endif
