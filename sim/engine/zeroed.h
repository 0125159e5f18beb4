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

#endif
