/*
 * Large zeroed arrays. The real machine's kernel backs them when they are touched, with huge pages
 * where it has some: accesses in no order then cost fewer page walks.
 */
#ifndef SIM_ENGINE_ZEROED_H
#define SIM_ENGINE_ZEROED_H

#include <stddef.h>

/* Allocates `bytes` zeroed bytes, aligned to a page at least, and to a huge page if they fill one.
 * Never NULL: ends the process when memory is exhausted. */
void *sim_zeroed_new(size_t bytes);
/* Frees an array of sim_zeroed_new(); `bytes` as given there. NULL is allowed. */
void sim_zeroed_free(void *memory, size_t bytes);

/* From now on arrays of one huge page that this thread frees are kept for its next ones, up to
 * `bytes` in all; what is beyond goes back to the system. 0, as at the start: none are kept. To be
 * given a page, and to have it cleared, takes the real machine's kernel longer than to clear it. */
void sim_zeroed_keep(size_t bytes);
/* What is kept now, and the least of that since the last call. */
struct sim_zeroed_kept {
    size_t bytes, least_bytes;
};
struct sim_zeroed_kept sim_zeroed_kept(void);

#endif
