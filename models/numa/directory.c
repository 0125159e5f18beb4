#include "models/numa/directory.h"

#include <stdlib.h>

#include "sim/engine/zeroed.h"

void directory_init(struct directory *d, uint64_t lines)
{
    d->n_blocks = (lines + DIRECTORY_BLOCK_LINES - 1) / DIRECTORY_BLOCK_LINES;
    d->block = sim_zeroed_new(d->n_blocks * sizeof(*d->block));
    d->n_touched = 0;
}

void directory_clear(struct directory *d)
{
    for (uint64_t i = 0; d->n_touched > 0; i++) {
        d->n_touched -= d->block[i] != NULL;
        free(d->block[i]);
        d->block[i] = NULL;
    }
}

void directory_release(struct directory *d)
{
    directory_clear(d);
    sim_zeroed_free(d->block, d->n_blocks * sizeof(*d->block));
    d->block = NULL;
}

uint64_t *directory_make_block(struct directory *d, uint64_t line)
{
    uint64_t *block = sim_zalloc(DIRECTORY_BLOCK_WORDS, sizeof(*block));

    d->block[line / DIRECTORY_BLOCK_LINES] = block;
    d->n_touched++;
    return block;
}

void directory_set_range(struct directory *d, uint64_t first, uint64_t end,
                         enum directory_state state)
{
    for (uint64_t line = first, next; line < end; line = next) {
        next = SIM_MIN(end, (line / DIRECTORY_BLOCK_LINES + 1) * DIRECTORY_BLOCK_LINES);
        if (state == DIRECTORY_I && d->block[line / DIRECTORY_BLOCK_LINES] == NULL)
            continue; /* all of them are */
        for (; line < next; line++)
            directory_set(d, line, state);
    }
}
