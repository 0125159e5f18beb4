/*
 * What it does: decides between the engine and the CPU. A fixed size, or one that is learnt: for
 *   each power of two of the size, and for memory that was pinned already (likely used before) or
 *   not, a running mean of the time that the module's calls have spent on a transfer, by either.
 *   The cheaper one copies; now and then the other is tried again, the more rarely the more often
 *   it has lost.
 * Leaves out: the load of the channels, and what the process could have computed meanwhile: time in
 *   calls is what it cannot use.
 * Costs: none beyond two times that are read anyway.
 */
#include "logic/copy/adma_internal.h"

#define BY_CPU      0u
#define BY_ENGINE   1u
#define TRIALS_MIN  8u /* transfers between two trials of what is slower */
#define TRIALS_MAX  512u
#define FIRST_TRIES 2u /* of each, before they are compared */

static struct adma_estimate *estimate_of(struct adma *adma, uint64_t bytes, bool hit)
{
    unsigned class = 63 - (unsigned)__builtin_clzll(bytes);
    return &adma->estimate[class < ADMA_CLASSES ? class : ADMA_CLASSES - 1][hit];
}

static bool learnt(struct adma *adma, uint64_t bytes, bool hit)
{
    struct adma_estimate *e = estimate_of(adma, bytes, hit);
    for (unsigned by = BY_CPU; by <= BY_ENGINE; by++)
        if (e->n[by] < FIRST_TRIES)
            return by == BY_ENGINE;
    const bool engine = e->ps[BY_ENGINE] < e->ps[BY_CPU];
    if (e->until_trial > 0) {
        e->until_trial--;
        return engine;
    }
    e->between_trials = e->between_trials < TRIALS_MIN ? TRIALS_MIN : e->between_trials * 2;
    if (e->between_trials > TRIALS_MAX)
        e->between_trials = TRIALS_MAX;
    e->until_trial = e->between_trials;
    return !engine;
}

bool adma_by_engine(struct adma *adma, uint64_t bytes, bool hit)
{
    if (adma->n_channels == 0 || bytes < adma->options.engine_bytes)
        return false;
    return !adma->options.learns || learnt(adma, bytes, hit);
}

/* The other side's buffer may be gone by now. */
void adma_learn(struct adma *adma, const struct adma_transfer *t)
{
    struct adma_estimate *e;
    const unsigned by = t->by_engine ? BY_ENGINE : BY_CPU;
    bool engine;
    if (!adma->options.learns)
        return;
    e = estimate_of(adma, t->bytes, t->hit);
    engine = e->ps[BY_ENGINE] < e->ps[BY_CPU];
    e->ps[by] = e->n[by] == 0 ? t->spent_ps : (e->ps[by] * 3 + t->spent_ps) / 4;
    e->n[by]++;
    if (e->n[BY_CPU] >= FIRST_TRIES && e->n[BY_ENGINE] >= FIRST_TRIES &&
        engine != (e->ps[BY_ENGINE] < e->ps[BY_CPU]))
        e->between_trials = 0; /* the other one is cheaper now: look again soon */
}
