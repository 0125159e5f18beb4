/*
 * Times that are looked at together, kept as doubles: the real machine compares two at a time, and
 * without branches on which of them is before, which nobody could predict. They are exact, as they
 * are below TIMES_EXACT_PS.
 */
#ifndef MODELS_BASE_TIMES_H
#define MODELS_BASE_TIMES_H

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "sim/engine/types.h"

#define TIMES_EXACT_PS (UINT64_C(1) << 53) /* two and a half hours */

static inline double times_of(sim_time ps)
{
    return (double)(int64_t)ps;
}

static inline sim_time times_ps(double time)
{
    return (sim_time)(int64_t)time;
}

/* A bit for each of the first n times, 64 at most, that is not after at_ps. The array has an even
 * number of them. */
static inline __attribute__((always_inline)) uint64_t times_over(const double *times, uint32_t n,
                                                                 sim_time at_ps)
{
    const double at = times_of(at_ps);
    uint64_t over = 0;

#ifdef __SSE2__
    const __m128d key = _mm_set1_pd(at);
    for (uint32_t i = 0; i < n; i += 2)
        over |= (uint64_t)(uint32_t)_mm_movemask_pd(_mm_cmple_pd(_mm_loadu_pd(times + i), key))
                << i;
#else
    for (uint32_t i = 0; i < n; i++)
        over |= (uint64_t)(times[i] <= at) << i;
#endif
    return over & UINT64_MAX >> (64 - n);
}

#endif
