/*
 * A flash translation layer.
 *
 * Models: a map of pages of 4 KiB; two streams of writes (the host's, what collection moves), the
 *   host's units on dies in turn; greedy garbage collection in each die, a little with each unit
 *   that the host fills, such that a block is free again when the host has filled as much as that
 *   reclaims; deallocation; wear, evened out by taking the free block that was erased least.
 * Does not model: the map's own pages in flash, bad blocks, parity over dies, moving what is cold
 *   for the sake of wear, refresh of old data; blocks of several dies that are erased together.
 * Timing: nvme_media_nand.c.
 * Sources: greedy collection under random writes: Desnoyers, "Analytic Models of SSD Write
 *   Performance", ACM TOS 10(2), 2014; Xiang and Kurkoski, arXiv 1110.4245.
 */
#include "models/nvme/nvme_ftl.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK_PAGES   4096u
#define FTL_ANONYMOUS (UINT32_MAX - 1)
#define FREE_MIN      2u /* blocks of a die: one for each stream */
#define TRIES         64u

enum ftl_block_state { FTL_FREE, FTL_OPEN, FTL_CLOSED };

/* Of the map: UNTOUCHED is as the drive was before. */
enum { UNTOUCHED, NOWHERE, PLACES };
struct ftl_chunk {
    uint32_t where[CHUNK_PAGES]; /* UNTOUCHED, NOWHERE, or PLACES + number of the place */
};

/* ---- Geometry -------------------------------------------------------------------------------- */

static uint64_t blocks_of_die(const struct ftl_geometry *g)
{
    const uint64_t row = (uint64_t)g->unit_pages * g->block_units * g->n_dies;
    const uint64_t pages = g->n_pages + (uint64_t)(g->n_pages * g->spare_ratio);
    const uint64_t least = (g->n_pages + row - 1) / row + g->gc_blocks + FREE_MIN + 2;
    return SIM_MAX((pages + row - 1) / row, least);
}

bool ftl_fits(const struct ftl_geometry *g)
{
    const double places = (double)blocks_of_die(g) * g->n_dies * g->unit_pages * g->block_units;
    return g->n_pages != 0 && g->n_pages <= UINT32_MAX - 16 && places < UINT32_MAX - 16.0;
}

/* Of the host's pages, those that the drive held before on a die. */
static uint32_t pages_of_die(const struct ftl *ftl, uint32_t die)
{
    const struct ftl_geometry *g = &ftl->geometry;
    const uint32_t row = g->n_dies * g->unit_pages, rest = g->n_pages % row;
    const uint32_t before = die * g->unit_pages;
    return g->n_pages / row * g->unit_pages +
           (rest > before ? SIM_MIN(rest - before, g->unit_pages) : 0);
}

/* Where the host's page was in a drive that was written from the first page to the last. */
static uint32_t original_unit(const struct ftl *ftl, uint32_t page, uint32_t *die)
{
    const uint32_t unit = page / ftl->geometry.unit_pages;
    *die = unit % ftl->geometry.n_dies;
    return unit / ftl->geometry.n_dies;
}

/* ---- Drives that were in use before ---------------------------------------------------------- */

static double power(double x, uint32_t n)
{
    double result = 1;
    for (; n != 0; n >>= 1, x *= x)
        if ((n & 1) != 0)
            result *= x;
    return result;
}

/* Random writes leave valid pages that decay exponentially with a block's age. Of n blocks of all
 * ages, with the mean share of valid pages `share`: what is left of a block's when the next one has
 * been filled, found by halving (no libm: the same everywhere). */
static double steady_decay(uint32_t n, double share)
{
    double low = 0, high = 1;
    for (unsigned i = 0; i < 100; i++) {
        const double r = (low + high) / 2;
        if ((1 - power(r, n)) / (1 - r) < share * n)
            low = r;
        else
            high = r;
    }
    return low;
}

static void fill_steady(struct ftl *ftl, struct ftl_die *die, uint32_t n_pages)
{
    const uint32_t n = ftl->n_blocks - ftl->geometry.gc_blocks - FREE_MIN;
    const double r = steady_decay(n, (double)n_pages / ((double)n * ftl->block_pages));
    double valid = ftl->block_pages;
    uint32_t given = 0;
    for (uint32_t i = 0; i < n; i++, valid *= r) {
        die->block[i] = (struct ftl_block){ .n_valid = (uint32_t)valid, .state = FTL_CLOSED };
        given += die->block[i].n_valid;
    }
    for (uint32_t i = 0; given != n_pages; i = (i + 1) % n) { /* what rounding made of it */
        struct ftl_block *block = &die->block[i];
        if (given < n_pages && block->n_valid < ftl->block_pages)
            block->n_valid++, given++;
        else if (given > n_pages && block->n_valid != 0)
            block->n_valid--, given--;
    }
    for (uint32_t i = 0; i < n; i++)
        die->block[i].n_anonymous = die->block[i].n_valid;
}

static void fill_once(struct ftl *ftl, struct ftl_die *die, uint32_t n_pages)
{
    for (uint32_t i = 0; n_pages != 0; i++) {
        const uint32_t n = SIM_MIN(n_pages, ftl->block_pages);
        die->block[i] = (struct ftl_block){
            .n_valid = n, .n_anonymous = n, .state = FTL_CLOSED, .original = true
        };
        n_pages -= n;
    }
}

/* The die, with blocks. */
static struct ftl_die *die_made(struct ftl *ftl, uint32_t number)
{
    struct ftl_die *die = &ftl->die[number];
    if (SIM_LIKELY(die->block != NULL))
        return die;
    die->block = sim_zalloc(ftl->n_blocks, sizeof(*die->block));
    if (ftl->geometry.preconditioned == NVME_FULL)
        fill_once(ftl, die, pages_of_die(ftl, number));
    else if (ftl->geometry.preconditioned == NVME_STEADY)
        fill_steady(ftl, die, pages_of_die(ftl, number));
    for (uint32_t i = 0; i < ftl->n_blocks; i++)
        die->n_free += die->block[i].state == FTL_FREE;
    return die;
}

/* ---- The map --------------------------------------------------------------------------------- */

static uint32_t *where_made(struct ftl *ftl, uint32_t page)
{
    struct ftl_chunk **chunk = &ftl->chunk[page / CHUNK_PAGES];
    if (SIM_UNLIKELY(*chunk == NULL || *chunk == ftl->nowhere)) {
        struct ftl_chunk *made = sim_pool_get(ftl->chunks);
        if (*chunk != NULL)
            *made = *ftl->nowhere;
        else
            memset(made, 0, sizeof(*made));
        *chunk = made;
    }
    return &(*chunk)->where[page % CHUNK_PAGES];
}

static uint32_t where(const struct ftl *ftl, uint32_t page)
{
    const struct ftl_chunk *chunk = ftl->chunk[page / CHUNK_PAGES];
    return chunk != NULL ? chunk->where[page % CHUNK_PAGES] : UNTOUCHED;
}

struct place {
    uint32_t die, block, slot;
};

static struct place place_of(const struct ftl *ftl, uint32_t where)
{
    const uint32_t n = where - PLACES, block = n / ftl->block_pages;
    return (struct place){ .die = block / ftl->n_blocks,
                           .block = block % ftl->n_blocks,
                           .slot = n % ftl->block_pages };
}

static uint32_t place_number(const struct ftl *ftl, uint32_t die, uint32_t block, uint32_t slot)
{
    return PLACES + (die * ftl->n_blocks + block) * ftl->block_pages + slot;
}

struct ftl_place ftl_find(const struct ftl *ftl, uint32_t page)
{
    const struct ftl_geometry *g = &ftl->geometry;
    const uint32_t at = where(ftl, page);
    struct ftl_place found = { .somewhere = at != NOWHERE };
    if (at == UNTOUCHED) {
        found.somewhere = g->preconditioned != NVME_FRESH;
        found.unit = original_unit(ftl, page, &found.die);
        return found;
    }
    if (at == NOWHERE)
        return found;
    const struct place place = place_of(ftl, at);
    const struct ftl_die *die = &ftl->die[place.die];
    SIM_ASSERT(die->block[place.block].page[place.slot] == page,
               "page %u is not where the map has it", page);
    found.die = place.die;
    found.unit = place.block * g->block_units + place.slot / g->unit_pages;
    for (unsigned s = 0; s < FTL_STREAMS; s++)
        found.in_buffer |= die->open[s] == place.block &&
                           die->next[s] / g->unit_pages == place.slot / g->unit_pages;
    return found;
}

/* ---- Pages become invalid -------------------------------------------------------------------- */

/* n of those on the die that we do not know by number, all alike, and of one block. */
static void drop_anonymous(struct ftl *ftl, struct ftl_die *die, uint32_t n)
{
    uint32_t at = 0;
    for (unsigned i = 0; i < TRIES; i++) {
        at = (uint32_t)sim_random_below(ftl->random, ftl->n_blocks);
        const struct ftl_block *block = &die->block[at];
        if (!block->original && n <= block->n_anonymous &&
            sim_random_below(ftl->random, ftl->block_pages) < block->n_anonymous)
            break;
    }
    for (uint32_t i = 0; n != 0; i++, at = (at + 1) % ftl->n_blocks) {
        struct ftl_block *block = &die->block[at];
        const uint32_t dropped = block->original ? 0 : SIM_MIN(n, block->n_anonymous);
        SIM_ASSERT(i <= ftl->n_blocks, "a page of the drive's past is nowhere");
        block->n_anonymous -= dropped;
        block->n_valid -= dropped;
        n -= dropped;
    }
}

/* n pages of a unit that are as the drive was before become invalid. */
static void invalidate_untouched(struct ftl *ftl, uint32_t page, uint32_t n)
{
    uint32_t number;
    const uint32_t unit = original_unit(ftl, page, &number);
    struct ftl_die *die = die_made(ftl, number);
    struct ftl_block *block = &die->block[unit / ftl->geometry.block_units];
    if (!block->original) {
        drop_anonymous(ftl, die, n);
        return;
    }
    block->n_anonymous -= n;
    block->n_valid -= n;
}

static bool holds_nothing(const struct ftl *ftl, uint32_t at)
{
    return at == NOWHERE || (at == UNTOUCHED && ftl->geometry.preconditioned == NVME_FRESH);
}

static void invalidate(struct ftl *ftl, uint32_t page, uint32_t at)
{
    if (holds_nothing(ftl, at))
        return;
    if (at == UNTOUCHED) {
        invalidate_untouched(ftl, page, 1);
        return;
    }
    const struct place place = place_of(ftl, at);
    struct ftl_block *block = &ftl->die[place.die].block[place.block];
    block->page[place.slot] = FTL_NONE;
    block->n_valid--;
}

/* All of a chunk that is as the drive was before: without memory for each. */
static void deallocate_chunk(struct ftl *ftl, uint32_t c)
{
    const uint32_t unit_pages = ftl->geometry.unit_pages, end = (c + 1) * CHUNK_PAGES;
    if (ftl->geometry.preconditioned == NVME_FRESH)
        return;
    for (uint32_t page = c * CHUNK_PAGES, n; page < end; page += n) {
        n = SIM_MIN(unit_pages - page % unit_pages, end - page);
        invalidate_untouched(ftl, page, n);
    }
    if (ftl->nowhere == NULL) {
        ftl->nowhere = sim_pool_get(ftl->chunks);
        for (uint32_t i = 0; i < CHUNK_PAGES; i++)
            ftl->nowhere->where[i] = NOWHERE;
    }
    ftl->chunk[c] = ftl->nowhere;
}

void ftl_deallocate(struct ftl *ftl, uint32_t first, uint32_t n)
{
    const uint32_t end = first + n;
    for (uint32_t page = first; page < end; page++) {
        const uint32_t c = page / CHUNK_PAGES, at = where(ftl, page);
        if (page % CHUNK_PAGES == 0 && end - page >= CHUNK_PAGES &&
            (ftl->chunk[c] == NULL || ftl->chunk[c] == ftl->nowhere)) {
            if (ftl->chunk[c] == NULL)
                deallocate_chunk(ftl, c);
            page += CHUNK_PAGES - 1;
        } else if (!holds_nothing(ftl, at)) {
            invalidate(ftl, page, at);
            *where_made(ftl, page) = NOWHERE;
        }
    }
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void block_open(struct ftl *ftl, struct ftl_die *die, enum ftl_stream stream)
{
    uint32_t best = FTL_NONE;
    for (uint32_t i = 0; i < ftl->n_blocks; i++)
        if (die->block[i].state == FTL_FREE &&
            (best == FTL_NONE || die->block[i].n_erases < die->block[best].n_erases))
            best = i;
    SIM_ASSERT(best != FTL_NONE, "a die of flash has no free block");
    struct ftl_block *block = &die->block[best];
    block->state = FTL_OPEN;
    block->page = sim_pool_get(ftl->blocks);
    for (uint32_t i = 0; i < ftl->block_pages; i++)
        block->page[i] = FTL_NONE;
    die->n_free--;
    die->open[stream] = best;
    die->next[stream] = 0;
}

/* Takes the next page of the stream's open block, which there is, for `page`; true: a unit is
 * full. */
static bool append(struct ftl *ftl, uint32_t number, enum ftl_stream stream, uint32_t page)
{
    struct ftl_die *die = &ftl->die[number];
    const uint32_t b = die->open[stream], slot = die->next[stream]++;
    struct ftl_block *block = &die->block[b];
    block->page[slot] = page;
    block->n_valid++;
    if (page == FTL_ANONYMOUS)
        block->n_anonymous++;
    else
        *where_made(ftl, page) = place_number(ftl, number, b, slot);
    if (die->next[stream] == ftl->block_pages) {
        block->state = FTL_CLOSED;
        die->open[stream] = FTL_NONE;
    }
    return (slot + 1) % ftl->geometry.unit_pages == 0;
}

/* ---- Collection ------------------------------------------------------------------------------ */

/* least: so many of its pages are not valid, or it is not worth it. */
static bool victim_choose(struct ftl *ftl, struct ftl_die *die, uint32_t least)
{
    uint32_t best = FTL_NONE;
    for (uint32_t i = 0; i < ftl->n_blocks; i++)
        if (die->block[i].state == FTL_CLOSED &&
            (best == FTL_NONE || die->block[i].n_valid < die->block[best].n_valid))
            best = i;
    if (best == FTL_NONE || die->block[best].n_valid + least > ftl->block_pages)
        return false;
    die->victim = best;
    die->victim_valid = die->block[best].n_valid;
    die->cursor = 0;
    die->moved_unit = FTL_NONE;
    die->debt = 0;
    die->block[best].original = false;
    return true;
}

static void victim_erase(struct ftl *ftl, struct ftl_die *die, struct ftl_collection *work)
{
    struct ftl_block *block = &die->block[die->victim];
    SIM_ASSERT(block->n_valid == 0, "a block with %u valid pages is to be erased", block->n_valid);
    if (block->page != NULL)
        sim_pool_put(ftl->blocks, block->page);
    *block = (struct ftl_block){ .n_erases = block->n_erases + 1, .state = FTL_FREE };
    die->n_free++;
    die->victim = FTL_NONE;
    ftl->n_erased++;
    work->n_erases++;
}

/* The next valid page of the victim, from the cursor on; anonymous ones are the first so many. */
static uint32_t victim_next(const struct ftl *ftl, struct ftl_die *die)
{
    const struct ftl_block *block = &die->block[die->victim];
    if (block->page == NULL) { /* they lie anywhere: evenly */
        const uint32_t left = ftl->block_pages - die->cursor;
        die->cursor += SIM_MAX(left / SIM_MAX(block->n_valid, 1), 1u);
        return FTL_ANONYMOUS;
    }
    while (die->cursor < ftl->block_pages) {
        const uint32_t page = block->page[die->cursor++];
        if (page == FTL_ANONYMOUS ? block->n_anonymous != 0 : page != FTL_NONE)
            return page;
    }
    SIM_ASSERT(false, "a block has fewer valid pages than it counts");
    return FTL_NONE;
}

static void move_page(struct ftl *ftl, uint32_t number, struct ftl_collection *work)
{
    struct ftl_die *die = &ftl->die[number];
    struct ftl_block *block = &die->block[die->victim];
    const uint32_t page = victim_next(ftl, die);
    const uint32_t unit = (die->cursor - 1) / ftl->geometry.unit_pages;
    work->n_reads += unit != die->moved_unit;
    die->moved_unit = unit;
    block->n_valid--;
    if (page == FTL_ANONYMOUS)
        block->n_anonymous--;
    else
        block->page[die->cursor - 1] = FTL_NONE;
    if (die->open[FTL_MOVED] == FTL_NONE)
        block_open(ftl, die, FTL_MOVED);
    work->n_programs += append(ftl, number, FTL_MOVED, page);
    work->n_moved++;
    ftl->n_moved++;
}

/* What this write has had collected on the die. */
static struct ftl_collection *collection_on(struct ftl *ftl, uint32_t die)
{
    for (uint32_t i = 0; i < ftl->n_collections; i++)
        if (ftl->collection[i].die == die)
            return &ftl->collection[i];
    ftl->collection[ftl->n_collections] = (struct ftl_collection){ .die = die };
    return &ftl->collection[ftl->n_collections++];
}

/* For n pages that the host has filled on the die. False: nothing can be collected. */
static bool collect(struct ftl *ftl, uint32_t number, uint32_t n, uint32_t least)
{
    struct ftl_die *die = &ftl->die[number];
    if (die->victim == FTL_NONE && !victim_choose(ftl, die, least))
        return false;
    struct ftl_collection *work = collection_on(ftl, number);
    const uint32_t reclaimed = ftl->block_pages - die->victim_valid;
    die->debt += (uint64_t)n * die->victim_valid;
    for (; die->block[die->victim].n_valid != 0 && die->debt >= reclaimed; die->debt -= reclaimed)
        move_page(ftl, number, work);
    if (die->block[die->victim].n_valid == 0)
        victim_erase(ftl, die, work);
    return true;
}

/* The die has an open block for the host's pages; false: of no block `least` are not valid. */
static bool open_for_host(struct ftl *ftl, uint32_t number, uint32_t least)
{
    struct ftl_die *die = die_made(ftl, number);
    if (SIM_LIKELY(die->open[FTL_HOST] != FTL_NONE))
        return true;
    while (die->n_free < FREE_MIN)
        if (!collect(ftl, number, ftl->block_pages, least))
            return false;
    block_open(ftl, die, FTL_HOST);
    return true;
}

void ftl_write(struct ftl *ftl, uint32_t page, struct ftl_work *work)
{
    const uint32_t n_dies = ftl->geometry.n_dies, unit_pages = ftl->geometry.unit_pages;
    *work = (struct ftl_work){ .collection = ftl->collection };
    ftl->n_collections = 0;
    ftl->n_written++;
    /* Where no die has a block that is worth it, any will have to do. */
    for (uint32_t i = 0; !open_for_host(ftl, ftl->host_die, i < n_dies ? unit_pages : 1); i++) {
        SIM_ASSERT(i < 2 * n_dies, "flash is full of valid pages");
        ftl->host_die = (ftl->host_die + 1) % n_dies;
    }
    const uint32_t number = work->die = ftl->host_die;
    struct ftl_die *die = &ftl->die[number];
    invalidate(ftl, page, where(ftl, page));
    work->unit = die->open[FTL_HOST] * ftl->geometry.block_units + die->next[FTL_HOST] / unit_pages;
    if (append(ftl, number, FTL_HOST, page)) {
        work->program = true;
        ftl->host_die = (number + 1) % n_dies;
        if (die->victim != FTL_NONE || die->n_free <= ftl->geometry.gc_blocks)
            collect(ftl, number, unit_pages, unit_pages);
    }
    work->n_collections = ftl->n_collections;
}

/* ---- Set-up ---------------------------------------------------------------------------------- */

void ftl_init(struct ftl *ftl, struct sim *sim, const struct ftl_geometry *geometry,
              struct sim_random *random)
{
    *ftl = (struct ftl){ .geometry = *geometry, .random = random };
    ftl->n_blocks = (uint32_t)blocks_of_die(geometry);
    ftl->block_pages = geometry->unit_pages * geometry->block_units;
    ftl->blocks = sim_pool_new(sim, "nvme flash block", ftl->block_pages * sizeof(uint32_t));
    ftl->chunks = sim_pool_new(sim, "nvme flash map", sizeof(struct ftl_chunk));
    ftl->die = sim_zalloc(geometry->n_dies, sizeof(*ftl->die));
    ftl->collection = sim_zalloc(geometry->n_dies, sizeof(*ftl->collection));
    for (uint32_t i = 0; i < geometry->n_dies; i++)
        ftl->die[i].open[FTL_HOST] = ftl->die[i].open[FTL_MOVED] = ftl->die[i].victim = FTL_NONE;
    ftl->n_chunks = geometry->n_pages / CHUNK_PAGES + 1;
    ftl->chunk = sim_zalloc(ftl->n_chunks, sizeof(struct ftl_chunk *));
}

void ftl_release(struct ftl *ftl)
{
    for (uint32_t d = 0; d < ftl->geometry.n_dies; d++) {
        for (uint32_t b = 0; ftl->die[d].block != NULL && b < ftl->n_blocks; b++)
            if (ftl->die[d].block[b].page != NULL)
                sim_pool_put(ftl->blocks, ftl->die[d].block[b].page);
        free(ftl->die[d].block);
    }
    for (uint32_t i = 0; i < ftl->n_chunks; i++)
        if (ftl->chunk[i] != NULL && ftl->chunk[i] != ftl->nowhere)
            sim_pool_put(ftl->chunks, ftl->chunk[i]);
    if (ftl->nowhere != NULL)
        sim_pool_put(ftl->chunks, ftl->nowhere);
    free(ftl->die);
    free(ftl->collection);
    free(ftl->chunk);
}

double ftl_wear(const struct ftl *ftl)
{
    return (double)ftl->n_erased / ((double)ftl->n_blocks * ftl->geometry.n_dies);
}

/* ---- For tests ------------------------------------------------------------------------------- */

uint64_t ftl_bytes(const struct ftl *ftl)
{
    uint64_t bytes = sim_pool_live(ftl->blocks) * ftl->block_pages * sizeof(uint32_t) +
                     sim_pool_live(ftl->chunks) * sizeof(struct ftl_chunk);
    for (uint32_t d = 0; d < ftl->geometry.n_dies; d++)
        bytes += ftl->die[d].block != NULL ? ftl->n_blocks * sizeof(struct ftl_block) : 0;
    return bytes;
}

static bool block_consistent(const struct ftl *ftl, uint32_t d, uint32_t b)
{
    const struct ftl_block *block = &ftl->die[d].block[b];
    uint32_t n = block->n_anonymous;
    for (uint32_t i = 0; block->page != NULL && i < ftl->block_pages; i++)
        if (block->page[i] != FTL_NONE && block->page[i] != FTL_ANONYMOUS) {
            n++;
            if (where(ftl, block->page[i]) != place_number(ftl, d, b, i))
                return false;
        }
    return n == block->n_valid;
}

bool ftl_consistent(const struct ftl *ftl)
{
    uint64_t n_placed = 0, n_named = 0;
    for (uint32_t i = 0; i < ftl->n_chunks; i++)
        for (uint32_t p = 0; ftl->chunk[i] != NULL && p < CHUNK_PAGES; p++)
            n_placed += ftl->chunk[i]->where[p] >= PLACES;
    for (uint32_t d = 0; d < ftl->geometry.n_dies; d++)
        for (uint32_t b = 0; ftl->die[d].block != NULL && b < ftl->n_blocks; b++) {
            if (!block_consistent(ftl, d, b))
                return false;
            n_named += ftl->die[d].block[b].n_valid - ftl->die[d].block[b].n_anonymous;
        }
    return n_placed == n_named;
}
