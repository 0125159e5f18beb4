/*
 * Tag arrays of a set-associative cache: which line is where, in which state. No data, no timing.
 *
 * Models      sets x ways, slices, replacement by bit-PLRU within the ways a caller may use.
 *             A line's slice is (fold(set) + line / sets) % slices: lines that share a set number
 *             go round the slices in turn. The real hash is not published; this is its ideal,
 *             perfectly balanced form.
 * Does not    model the adaptive (quad-age) replacement of real LLCs.
 *   model
 * Timing      none.
 * Sources     docs/sources.md#a1 (geometry), docs/sources.md#a4 (way masks).
 *
 * Layout: one row of 32-bit words per set: tags (0: invalid, else tag + 1), masks of the recently
 * used and of the valid ways, one word of state per way, the last way's first: with 20 ways, those
 * of the devices' ways, the last, are in the host's cache line that has the masks. Rows are zero
 * until touched, so the system backs them lazily.
 */
#ifndef MODELS_NUMA_CACHE_H
#define MODELS_NUMA_CACHE_H

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "models/address.h"

enum line_state { LINE_I, LINE_S, LINE_E, LINE_M };

/* A way's state word: sharers in the low bits, enum line_state in the top two. */
#define LINE_STATE_SHIFT  30
#define LINE_SHARERS_MASK ((UINT32_C(1) << LINE_STATE_SHIFT) - 1)

struct cache {
    uint32_t *row;
    uint32_t sets, ways, slices;
    uint32_t sets_log2;
    uint32_t tag_words; /* ways rounded up to whole vectors */
    uint32_t row_words;
    uint64_t slice_reciprocal; /* 2^64 / slices, rounded up */
    uint32_t all_ways;         /* mask */
};

/* Whole host cache lines when a row is longer than one, whole vectors otherwise. */
static inline uint32_t cache_row_words(uint32_t ways)
{
    const uint32_t words = ((ways + 3u) & ~3u) + 2 + ways;
    return words > 32 ? (words + 15u) & ~15u : (words + 3u) & ~3u;
}

/* The same cache, in which the compiler knows the numbers of ways and words: for the inner loops,
 * which choose it where it fits. */
static inline __attribute__((always_inline)) struct cache cache_known(const struct cache *c,
                                                                      uint32_t ways, bool one_slice)
{
    return (struct cache){
        .row = c->row,
        .sets = c->sets,
        .ways = ways,
        .slices = one_slice ? 1 : c->slices,
        .sets_log2 = c->sets_log2,
        .tag_words = (ways + 3u) & ~3u,
        .row_words = cache_row_words(ways),
        .slice_reciprocal = one_slice ? 0 : c->slice_reciprocal,
        .all_ways = (uint32_t)((UINT64_C(1) << ways) - 1),
    };
}

/* Where a line would be. */
struct cache_place {
    uint32_t *row;
    uint32_t tag;   /* stored form, never 0 */
    uint32_t index; /* of the row */
};

/* sets: a power of two; ways 1..32. */
void cache_init(struct cache *c, uint32_t slices, uint32_t sets, uint32_t ways);
void cache_release(struct cache *c);
/* Empties it. */
void cache_clear(struct cache *c);

/* The same for the 64 lines of a page: their rows are neighbours in the host's memory, which makes
 * sequential accesses several times faster than a hash of all bits. Slices have no contention of
 * their own here, so that only the balance between them matters. */
#define CACHE_FOLD_LINES 64u
static inline uint32_t cache_fold(uint32_t set)
{
    return set / CACHE_FOLD_LINES & 15u;
}

static inline struct cache_place cache_place(const struct cache *c, uint64_t line)
{
    const uint32_t set = (uint32_t)line & (c->sets - 1);
    const uint64_t q = line >> c->sets_log2;

    uint32_t index = set, tag = (uint32_t)q;

    if (c->slices > 1) {
        const uint64_t k = q + cache_fold(set);
        tag = (uint32_t)(((unsigned __int128)k * c->slice_reciprocal) >> 64);
        index |= ((uint32_t)k - tag * c->slices) << c->sets_log2;
    }
    return (struct cache_place){ c->row + (size_t)index * c->row_words, tag + 1, index };
}

/* Asks the host for the row ahead of its use. */
static inline void cache_prefetch(const struct cache *c, uint64_t line)
{
    const char *row = (const char *)cache_place(c, line).row;

    __asm__ volatile("" : "+r"(row)); /* or GCC takes the function for one without effect */
    __builtin_prefetch(row, 1);
    for (size_t at = 64; at < c->row_words * sizeof(uint32_t); at += 64)
        __builtin_prefetch(row + at, 1);
}

/* At most one way matches. A bit for each that does; without a branch per way. */
static inline __attribute__((always_inline)) uint32_t cache_matches(struct cache_place p,
                                                                    uint32_t tag_words)
{
    uint32_t matches = 0;

#ifdef __SSE2__
    const __m128i key = _mm_set1_epi32((int)p.tag);
    for (uint32_t w = 0; w < tag_words; w += 4) {
        const __m128i tags = _mm_loadu_si128((const __m128i *)(const void *)(p.row + w));
        const __m128i hit = _mm_cmpeq_epi32(tags, key);
        matches |= (uint32_t)_mm_movemask_ps(_mm_castsi128_ps(hit)) << w;
    }
#else
    for (uint32_t w = 0; w < tag_words; w++)
        matches |= (uint32_t)(p.row[w] == p.tag) << w;
#endif
    return matches;
}

static inline __attribute__((always_inline)) int cache_find_in(struct cache_place p,
                                                               uint32_t tag_words)
{
    const uint32_t matches = cache_matches(p, tag_words);

    return matches == 0 ? -1 : __builtin_ctz(matches);
}

/* The way that holds the line, or -1. The usual numbers of ways are constants here, so that their
 * loops unroll. */
static inline int cache_find(const struct cache *c, struct cache_place p)
{
    switch (c->tag_words) {
    case 8: return cache_find_in(p, 8);
    case 20: return cache_find_in(p, 20);
    default: return cache_find_in(p, c->tag_words);
    }
}

static inline uint32_t *cache_used(const struct cache *c, struct cache_place p)
{
    return p.row + c->tag_words;
}

static inline uint32_t *cache_valid(const struct cache *c, struct cache_place p)
{
    return p.row + c->tag_words + 1;
}

static inline uint32_t *cache_state(const struct cache *c, struct cache_place p, int way)
{
    return p.row + c->tag_words + 1 + c->ways - way;
}

static inline enum line_state line_state(uint32_t word)
{
    return (enum line_state)(word >> LINE_STATE_SHIFT);
}

static inline uint32_t line_word(enum line_state state, uint32_t sharers)
{
    return ((uint32_t)state << LINE_STATE_SHIFT) | sharers;
}

/* Marks the way as recently used. */
static inline void cache_touch(const struct cache *c, struct cache_place p, int way)
{
    uint32_t *used = cache_used(c, p);
    const uint32_t bit = UINT32_C(1) << way;
    const uint32_t now = *used | bit;

    *used = now == c->all_ways ? bit : now;
}

/* The way of `allowed` (not empty) that a new line replaces: an invalid one, else the first that
 * was not recently used. */
static inline int cache_victim(const struct cache *c, struct cache_place p, uint32_t allowed)
{
    uint32_t *used = cache_used(c, p);
    const uint32_t empty = allowed & ~*cache_valid(c, p);

    if (SIM_UNLIKELY(empty != 0))
        return __builtin_ctz(empty);
    if (SIM_UNLIKELY((allowed & ~*used) == 0))
        *used &= ~allowed;
    return __builtin_ctz(allowed & ~*used);
}

/* Puts the line into the way, in place of its old content, which is the caller's to deal with. */
static inline void cache_fill(const struct cache *c, struct cache_place p, int way, uint32_t word)
{
    p.row[way] = p.tag;
    *cache_valid(c, p) |= UINT32_C(1) << way;
    *cache_state(c, p, way) = word;
    cache_touch(c, p, way);
}

static inline void cache_drop(const struct cache *c, struct cache_place p, int way)
{
    p.row[way] = 0;
    *cache_state(c, p, way) = 0;
    *cache_used(c, p) &= ~(UINT32_C(1) << way);
    *cache_valid(c, p) &= ~(UINT32_C(1) << way);
}

/* The line in the way of a place's row, which must be valid. */
static inline uint64_t cache_line_in(const struct cache *c, struct cache_place p, int way)
{
    const uint32_t set = p.index & (c->sets - 1);
    uint64_t q = (uint64_t)p.row[way] - 1;

    if (c->slices > 1)
        q = q * c->slices + (p.index >> c->sets_log2) - cache_fold(set);
    return (q << c->sets_log2) | set;
}

/* The same for a row of which only the address is known. */
uint64_t cache_line_at(const struct cache *c, const uint32_t *row, int way);
/* Calls fn for every valid line, in order of rows. For tests. */
void cache_each(const struct cache *c, void *context,
                void (*fn)(void *context, uint64_t line, int way, uint32_t word));

#endif
