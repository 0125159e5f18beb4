/* Time, units and the assertion that every build keeps. Included by everything. */
#ifndef SIM_ENGINE_TYPES_H
#define SIM_ENGINE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hw/machine.h"

/* Simulated time: picoseconds since the start of the run. 2^64 ps are 213 days. */
typedef uint64_t sim_time;

#define SIM_TIME_MAX  UINT64_MAX
#define SIM_PS_PER_NS UINT64_C(1000)
#define SIM_PS_PER_US UINT64_C(1000000)
#define SIM_PS_PER_MS UINT64_C(1000000000)
#define SIM_PS_PER_S  UINT64_C(1000000000000)

#define SIM_LIKELY(x)   __builtin_expect(!!(x), 1)
#define SIM_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* The structure of type `type` whose field `field` is at `ptr`. */
#define SIM_CONTAINER(ptr, type, field) ((type *)(void *)((char *)(ptr)-offsetof(type, field)))

#define SIM_N_ELEMENTS(array) (sizeof(array) / sizeof((array)[0]))

#define SIM_MIN(a, b) ((a) < (b) ? (a) : (b))
#define SIM_MAX(a, b) ((a) > (b) ? (a) : (b))

/*
 * Our own faults. On in every build; prints the place, and of the run that the thread is in the
 * simulated time and the task, then aborts.
 */
#define SIM_ASSERT(cond, ...)                                          \
    do {                                                               \
        if (SIM_UNLIKELY(!(cond)))                                     \
            sim_assert_failed(__FILE__, __LINE__, #cond, __VA_ARGS__); \
    } while (0)

/* There is no memory for what the text says, "no memory for " before it: aborts, with errno ENOMEM,
 * so that a handler of SIGABRT can tell this end from others. */
_Noreturn void sim_out_of_memory(const char *fmt, ...) __attribute__((format(printf, 1, 2), cold));

_Noreturn void sim_assert_failed(const char *file, int line, const char *cond, const char *fmt, ...)
    __attribute__((format(printf, 4, 5), cold));

/*
 * Memory of the real machine, for all that is not allocated per event. Never NULL: these abort when
 * it is exhausted. free() releases it.
 */

/* Allocates `n` elements of `bytes` each, zeroed; one element if `n` is 0. */
void *sim_zalloc(size_t n, size_t bytes) __attribute__((malloc));
/* realloc() to `n` elements of `bytes` each; those that come to it are not zeroed. `n` > 0. */
void *sim_grow(void *array, size_t n, size_t bytes);
/* Copies `text`. */
char *sim_strdup(const char *text) __attribute__((malloc));

#endif
