/*
 * The in-memory directory of one home: two bits per line, kept in the ECC bits of DRAM, that say
 * what other sockets may hold. Reading them costs a DRAM read and changing them a DRAM write; both
 * are the caller's (home_agent.c). Host memory: 8 KiB per touched 2 MiB with a line that is
 * not DIRECTORY_I.
 *
 * Invariant: a line valid in another socket is not DIRECTORY_I; one that is E or M there is
 * DIRECTORY_A. The reverse need not hold: clean lines leave caches silently.
 */
#ifndef MODELS_NUMA_DIRECTORY_H
#define MODELS_NUMA_DIRECTORY_H

#include "sim/engine/types.h"

enum directory_state {
    DIRECTORY_I, /* no other socket has it */
    DIRECTORY_S, /* others may have clean, shared copies */
    DIRECTORY_A, /* any other socket may have it in any state */
};

#define DIRECTORY_BLOCK_LINES 32768u
#define DIRECTORY_BLOCK_WORDS (DIRECTORY_BLOCK_LINES * 2u / 64u)

struct directory {
    uint64_t **block;
    uint64_t n_blocks, n_touched; /* blocks there may be, and there are */
};

void directory_init(struct directory *d, uint64_t lines);
void directory_release(struct directory *d);
void directory_clear(struct directory *d);

static inline enum directory_state directory_get(const struct directory *d, uint64_t line)
{
    const uint64_t *block = d->block[line / DIRECTORY_BLOCK_LINES];

    if (block == NULL)
        return DIRECTORY_I;
    const uint64_t word = block[(line % DIRECTORY_BLOCK_LINES) >> 5];
    return (enum directory_state)((word >> ((line & 31) * 2)) & 3);
}
/* Has the real machine fetch what directory_get() will read. */
static inline void directory_prefetch(const struct directory *d, uint64_t line)
{
    const uint64_t *block = d->block[line / DIRECTORY_BLOCK_LINES];

    if (block != NULL)
        __builtin_prefetch(&block[(line % DIRECTORY_BLOCK_LINES) >> 5], 1);
}
/* Makes the block of a line that is not DIRECTORY_I. */
uint64_t *directory_make_block(struct directory *d, uint64_t line);

static inline void directory_set(struct directory *d, uint64_t line, enum directory_state state)
{
    uint64_t *block = d->block[line / DIRECTORY_BLOCK_LINES];

    if (SIM_UNLIKELY(block == NULL)) {
        if (state == DIRECTORY_I)
            return;
        block = directory_make_block(d, line);
    }
    uint64_t *word = &block[(line % DIRECTORY_BLOCK_LINES) >> 5];
    const uint32_t shift = (uint32_t)(line & 31) * 2;
    *word = (*word & ~(UINT64_C(3) << shift)) | ((uint64_t)state << shift);
}

/* The same of lines first .. end - 1. */
void directory_set_range(struct directory *d, uint64_t first, uint64_t end,
                         enum directory_state state);

#endif
