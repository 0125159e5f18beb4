/*
 * Which request is next: its direction, its place in the job's span, its size. Reads and writes of
 * a sequential job go through the span each by themselves, as fio's do. A uniformly random job uses
 * each block of the smallest size once before any comes again (a map), unless norandommap.
 */
#include <string.h>

#include "workloads/fio/fio_internal.h"

static bool has_map(const struct fio_options *options)
{
    return options->random && !options->no_map && options->distribution == FIO_UNIFORM &&
           options->align[FIO_READ] == 0;
}

uint64_t fio_smallest_request(const struct fio_options *options)
{
    const struct fio_block_sizes *reads = &options->size_of[FIO_READ],
                                 *writes = &options->size_of[FIO_WRITE];
    return !options->writes  ? reads->min
           : !options->reads ? writes->min
                             : SIM_MIN(reads->min, writes->min);
}

uint64_t fio_next_pass_bytes(const struct fio_options *options, uint64_t span)
{
    const bool one_way = !options->reads || !options->writes;
    const bool all_random = options->percentage_random[FIO_READ] == 100 &&
                            options->percentage_random[FIO_WRITE] == 100;
    const bool ends = options->random ? has_map(options) && all_random : one_way;
    return ends && options->modifier == 0 ? span - span % fio_smallest_request(options) : span;
}

void fio_next_init(struct fio_thread *thread)
{
    const struct fio_options *options = thread->options;
    struct fio_next *next = &thread->next;
    next->block_bytes = fio_smallest_request(options);
    if (options->align[FIO_READ] != 0)
        next->block_bytes = options->align[FIO_READ];
    next->n_blocks = thread->span / next->block_bytes;
    fio_draw_init(&next->draw, options, SIM_MAX(next->n_blocks, (uint64_t)1), &next->offsets);
    if (has_map(options))
        next->map = program_zalloc_large(thread->fio->program, next->n_blocks / 64 + 1,
                                         sizeof(*next->map));
    fio_next_rewind(thread);
}

void fio_next_rewind(struct fio_thread *thread)
{
    struct fio_next *next = &thread->next;
    if (next->map != NULL && next->n_used != 0)
        memset(next->map, 0, (next->n_blocks / 64 + 1) * sizeof(*next->map));
    next->n_used = 0;
    for (unsigned i = 0; i < FIO_DIRECTIONS; i++)
        next->position[i] = next->last[i] = next->left[i] = 0;
}

unsigned fio_next_direction(struct fio_thread *thread)
{
    const struct fio_options *options = thread->options;
    if (!options->writes || !options->reads)
        return options->writes ? FIO_WRITE : FIO_READ;
    return sim_random_below(&thread->next.mix, 100) < options->mix_read ? FIO_READ : FIO_WRITE;
}

static uint64_t size_of(struct fio_thread *thread, unsigned direction)
{
    const struct fio_block_sizes *sizes = &thread->options->size_of[direction];
    struct sim_random *random = &thread->next.sizes;
    if (sizes->n_splits != 0) {
        double u = sim_random_unit(random) * 100;
        unsigned i = 0;
        for (; i + 1 < sizes->n_splits && u >= sizes->split[i].percent; i++)
            u -= sizes->split[i].percent;
        return sizes->split[i].bytes;
    }
    if (sizes->min == sizes->max)
        return sizes->min;
    return sizes->min * (1 + sim_random_below(random, sizes->max / sizes->min));
}

/* ---- The map --------------------------------------------------------------------------------- */

static bool used(const struct fio_next *next, uint64_t block)
{
    return (next->map[block / 64] >> (block % 64) & 1) != 0;
}

/* From this block on, and from the first one on behind the last. */
static uint64_t next_unused(const struct fio_next *next, uint64_t block)
{
    while (used(next, block)) {
        const bool whole = block % 64 == 0 && next->map[block / 64] == UINT64_MAX;
        block += whole ? 64 : 1;
        if (block >= next->n_blocks)
            block = 0;
    }
    return block;
}

/* Marks the blocks of a request as used; returns how many of them in a row were not. */
static uint64_t use(struct fio_next *next, uint64_t block, uint64_t n)
{
    uint64_t i = 0;
    for (; i < n && block + i < next->n_blocks && !used(next, block + i); i++)
        next->map[(block + i) / 64] |= UINT64_C(1) << ((block + i) % 64);
    next->n_used += i;
    return i;
}

/* ---- Places ---------------------------------------------------------------------------------- */

static void random_place(struct fio_thread *thread, uint64_t *at, uint64_t *bytes)
{
    struct fio_next *next = &thread->next;
    if (next->map == NULL) {
        const uint64_t unit = thread->file->unit_bytes;
        *at = fio_draw_block(&next->draw, &next->offsets) * next->block_bytes;
        *bytes = SIM_MIN(*bytes, (thread->span - *at) / unit * unit);
        return;
    }
    if (next->n_used == next->n_blocks)
        fio_next_rewind(thread);
    const uint64_t block = next_unused(next, sim_random_below(&next->offsets, next->n_blocks));
    *at = block * next->block_bytes;
    const uint64_t n = (*bytes + next->block_bytes - 1) / next->block_bytes,
                   unused = use(next, block, n);
    *bytes = SIM_MIN(*bytes, unused * next->block_bytes);
}

/* Begins again at the end: who calls counts bytes. */
static void sequential_place(struct fio_thread *thread, unsigned direction, uint64_t *at,
                             uint64_t *bytes)
{
    struct fio_next *next = &thread->next;
    const uint64_t skip = thread->options->random ? 0 : thread->options->modifier;
    const uint64_t unit = thread->options->size_of[direction].min;
    if (next->position[direction] + unit > thread->span)
        next->position[direction] = 0;
    *at = next->position[direction];
    *bytes = SIM_MIN(*bytes, (thread->span - *at) / unit * unit);
    next->position[direction] += *bytes + skip;
}

/* True: of the N requests of rw=rand...:N, this is not the first. */
static bool goes_on(struct fio_thread *thread, unsigned direction)
{
    struct fio_next *next = &thread->next;
    if (thread->options->modifier == 0)
        return false;
    if (next->left[direction] == 0) {
        next->left[direction] = thread->options->modifier - 1;
        return false;
    }
    next->left[direction]--;
    return true;
}

void fio_next_place(struct fio_thread *thread, unsigned direction, uint64_t *at, uint64_t *bytes)
{
    const struct fio_options *options = thread->options;
    struct fio_next *next = &thread->next;
    const uint32_t percent = options->percentage_random[direction];
    *bytes = size_of(thread, direction);
    if (!options->random) {
        sequential_place(thread, direction, at, bytes);
    } else if (goes_on(thread, direction)) {
        if (options->identical)
            next->position[direction] = next->last[direction];
        sequential_place(thread, direction, at, bytes);
    } else if (percent < 100 && sim_random_below(&next->offsets, 100) >= percent) {
        sequential_place(thread, direction, at, bytes);
    } else {
        random_place(thread, at, bytes);
    }
    next->last[direction] = *at;
    next->position[direction] = SIM_MAX(*at + *bytes,
                                        options->random ? 0 : next->position[direction]);
}
