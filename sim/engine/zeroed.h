/*
 * Large arrays of zeros that the host's system backs when they are touched, in its large pages
 * where it has some: what is looked at here and there then costs fewer walks through its page
 * tables.
 */
#ifndef SIM_ENGINE_ZEROED_H
#define SIM_ENGINE_ZEROED_H

#include <stddef.h>

/* Aligned to a page of the host at least, to a large one if there is room for one. Never NULL: ends
 * the process when memory is exhausted. */
void *sim_zeroed_new(size_t bytes);
/* The same bytes as for sim_zeroed_new(). NULL is nothing. */
void sim_zeroed_free(void *memory, size_t bytes);

#endif
