/*
 * Cache tags of a set-associative cache: which line is where, in which state. No data, no timing.
 *
 * Models: sets x ways, slices, replacement by bit-PLRU within the ways a caller may use. A line's
 *   slice is (fold(set) + line / sets) % slices: lines that share a set number go round the slices
 *   in turn. The real hash is not published; this is its ideal, perfectly balanced form.
 * Does not model: the adaptive (quad-age) replacement of real LLCs.
 * Sources: docs/sources.md#a1 (geometry), docs/sources.md#a4 (way masks).
 *
 * Layout: what every look-up needs of a set is at the head of its row, in one line of the host's
 * memory where it fits: masks over the ways, then the tags. Narrow tags have 18 bits, two of them
 * in masks, the others in an array of 16 or 20; wide ones have 32. The sharers follow in a line of
 * their own, read only where a mask says that there are some. Rows are zero until touched, so the
 * system backs them lazily.
 */
#ifndef MODELS_NUMA_CACHE_H
#define MODELS_NUMA_CACHE_H

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "models/base/address.h"

enum line_state { LINE_I, LINE_S, LINE_E, LINE_M };

/* State and sharers of a line in one word: sharers in the low bits, enum line_state in the top two.
 */
#define LINE_STATE_SHIFT  30
#define LINE_SHARERS_MASK ((UINT32_C(1) << LINE_STATE_SHIFT) - 1)

/* The head of a row. Masks have a bit for each way. */
struct cache_row {
    uint32_t used; /* recently */
    uint32_t valid;
    uint32_t shared;   /* has sharers */
    uint32_t tag_high; /* narrow: bit 16 of the tag */
    uint32_t owned;    /* E or M, if valid; the others of the valid ways are S */
    uint32_t dirty;    /* M, if valid: these are owned, too */
    uint32_t tags[];   /* narrow: 16 or 20 of 16 bits; wide: one for each way, rounded up to 4 */
};

#define CACHE_NARROW_WAYS 20u /* at most */
#define CACHE_TWO_VECTORS \
    16u /* narrow tags of so many ways: with the masks a line of the
                                  * host */
#define CACHE_NARROW_TAGS    (UINT64_C(1) << 17)
#define CACHE_NARROW_SHARERS 16u
#define HOST_LINE_BYTES      64u

struct cache {
    uint8_t *row; /* row_bytes each, on lines of the host */
    uint32_t sets, ways, slices;
    uint32_t sets_log2;
    uint32_t row_bytes;
    uint32_t sharers_at;       /* bytes from the row's begin; 0: lines have none */
    uint64_t slice_reciprocal; /* 2^64 / slices, rounded up */
    uint32_t all_ways;         /* mask */
    bool narrow;               /* tags and sharers of 16 bits */
};

static inline uint32_t cache_head_bytes(uint32_t ways, bool narrow)
{
    const uint32_t narrow_ways = ways > CACHE_TWO_VECTORS ? CACHE_NARROW_WAYS : CACHE_TWO_VECTORS;
    const uint32_t tags = narrow ? narrow_ways / 2 : (ways + 3u) & ~3u;
    const uint32_t bytes = (uint32_t)sizeof(struct cache_row) + tags * 4u;

    return (bytes + HOST_LINE_BYTES - 1) & ~(HOST_LINE_BYTES - 1);
}

static inline uint32_t cache_sharers_bytes(uint32_t ways, bool narrow)
{
    return (ways * (narrow ? 2u : 4u) + HOST_LINE_BYTES - 1) & ~(HOST_LINE_BYTES - 1);
}

/* The same cache, in which the compiler knows ways, sets and layout: for the inner
 * loops, which choose it where it fits. One of a core has one slice, wide tags and no sharers. */
static inline __attribute__((always_inline)) struct cache
cache_known(const struct cache *c, uint32_t ways, uint32_t sets, bool of_core)
{
    const uint32_t head_bytes = cache_head_bytes(ways, !of_core);

    return (struct cache){
        .row = c->row,
        .sets = sets,
        .ways = ways,
        .slices = of_core ? 1 : c->slices,
        .sets_log2 = (uint32_t)__builtin_ctz(sets),
        .row_bytes = head_bytes + (of_core ? 0 : cache_sharers_bytes(ways, true)),
        .sharers_at = of_core ? 0 : head_bytes,
        .slice_reciprocal = of_core ? 0 : c->slice_reciprocal,
        .all_ways = (uint32_t)((UINT64_C(1) << ways) - 1),
        .narrow = !of_core,
    };
}

/* The same of one slice without sharers. */
static inline __attribute__((always_inline)) struct cache
cache_known_plain(const struct cache *c, uint32_t ways, uint32_t sets, bool narrow)
{
    return (struct cache){
        .row = c->row,
        .sets = sets,
        .ways = ways,
        .slices = 1,
        .sets_log2 = (uint32_t)__builtin_ctz(sets),
        .row_bytes = cache_head_bytes(ways, narrow),
        .all_ways = (uint32_t)((UINT64_C(1) << ways) - 1),
        .narrow = narrow,
    };
}

/* Where a line would be. */
struct cache_place {
    struct cache_row *row;
    uint32_t tag;
    uint32_t index; /* of the row */
};

/* sets: a power of two; ways 1..32; lines: their numbers are below; sharers: how
 * many bits of them a line may have, 30 at most. */
void cache_init(struct cache *c, uint32_t slices, uint32_t sets, uint32_t ways, uint64_t lines,
                uint32_t sharers);
void cache_release(struct cache *c);
/* Empties it. */
void cache_clear(struct cache *c);

/* The same for the 64 lines of a page: their rows are neighbours in the host's memory, which makes
 * sequential accesses several times faster than a hash of all bits. Slices have no contention of
 * their own here, so that only the balance between them matters. */
#define CACHE_FOLD_LINES 64u
#define CACHE_FOLD_MAX   15u
static inline uint32_t cache_fold(uint32_t set)
{
    return set / CACHE_FOLD_LINES & CACHE_FOLD_MAX;
}

static inline struct cache_row *cache_row(const struct cache *c, uint32_t index)
{
    return (struct cache_row *)(void *)(c->row + (size_t)index * c->row_bytes);
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
    return (struct cache_place){ cache_row(c, index), tag, index };
}

/* Asks the host for a row ahead of its use. */
static inline __attribute__((always_inline)) void cache_prefetch_at(const void *row, uint32_t bytes)
{
    __asm__ volatile("" : "+r"(row)); /* or GCC takes the function for one without effect */
    for (uint32_t at = 0; at < bytes; at += HOST_LINE_BYTES)
        __builtin_prefetch((const char *)row + at, 1);
}

/* The same for the row of the next line: rows of lines of a page are
 * neighbours (see above). At a page's end it is that of some other line, or of none. */
static inline __attribute__((always_inline)) void cache_prefetch_next(const struct cache *c,
                                                                      struct cache_place p)
{
    cache_prefetch_at((const char *)p.row + c->row_bytes, c->row_bytes);
}

/* The tags of a row. */
static inline uint16_t *cache_narrow_tags(struct cache_place p)
{
    return (uint16_t *)(void *)p.row->tags;
}

/* A bit for each tag that is the place's, those of empty ways included. */
static inline __attribute__((always_inline)) uint32_t cache_narrow_matches(struct cache_place p,
                                                                           uint32_t ways)
{
    const uint16_t *tags = cache_narrow_tags(p);
    uint32_t matches = 0;

#ifdef __SSE2__
    const __m128i key = _mm_set1_epi16((short)p.tag);
    const __m128i a = _mm_loadu_si128((const __m128i *)(const void *)tags);
    const __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(tags + 8));
    const __m128i ab = _mm_packs_epi16(_mm_cmpeq_epi16(a, key), _mm_cmpeq_epi16(b, key));
    matches = (uint32_t)_mm_movemask_epi8(ab);
    if (ways > CACHE_TWO_VECTORS) {
        const __m128i c = _mm_loadl_epi64((const __m128i *)(const void *)(tags + 16));
        const __m128i c0 = _mm_packs_epi16(_mm_cmpeq_epi16(c, key), _mm_setzero_si128());
        matches |= (uint32_t)_mm_movemask_epi8(c0) << 16;
    }
#else
    for (uint32_t way = 0; way < ways; way++)
        matches |= (uint32_t)(tags[way] == (uint16_t)p.tag) << way;
#endif
    return matches & ~(p.row->tag_high ^ -(p.tag >> 16));
}

static inline __attribute__((always_inline)) uint32_t cache_wide_matches(struct cache_place p,
                                                                         uint32_t ways)
{
    const uint32_t *tags = p.row->tags;
    uint32_t matches = 0;

#ifdef __SSE2__
    const __m128i key = _mm_set1_epi32((int)p.tag);
    for (uint32_t w = 0; w < ways; w += 4) {
        const __m128i four = _mm_loadu_si128((const __m128i *)(const void *)(tags + w));
        const __m128i hit = _mm_cmpeq_epi32(four, key);
        matches |= (uint32_t)_mm_movemask_ps(_mm_castsi128_ps(hit)) << w;
    }
#else
    for (uint32_t w = 0; w < ways; w++)
        matches |= (uint32_t)(tags[w] == p.tag) << w;
#endif
    return matches;
}

/* Returns the bit of the way that holds the line, 0: none does; without a branch per way. Eight
 * ways are a constant here, so that the loop unrolls. */
static inline __attribute__((always_inline)) uint32_t cache_find_bit(const struct cache *c,
                                                                     struct cache_place p)
{
    const uint32_t matches = c->narrow      ? cache_narrow_matches(p, c->ways)
                             : c->ways == 8 ? cache_wide_matches(p, 8)
                                            : cache_wide_matches(p, c->ways);

    return matches & p.row->valid; /* one bit at most */
}

/* Returns the way that holds the line, or -1. */
static inline __attribute__((always_inline)) int cache_find(const struct cache *c,
                                                            struct cache_place p)
{
    const uint32_t bit = cache_find_bit(c, p);

    return bit == 0 ? -1 : __builtin_ctz(bit);
}

static inline bool cache_holds(struct cache_place p, int way)
{
    return (p.row->valid >> way & 1u) != 0;
}

/* The way must be valid: LINE_I is never returned. */
static inline enum line_state cache_state(struct cache_place p, int way)
{
    return (enum line_state)(LINE_S + (p.row->owned >> way & 1u) + (p.row->dirty >> way & 1u));
}

/* bit: of the way; state: not LINE_I. Without a branch, where the state is not a constant. */
static inline __attribute__((always_inline)) void
cache_put_state_bit(struct cache_place p, uint32_t bit, enum line_state state)
{
    p.row->owned = (p.row->owned & ~bit) | (bit & -(uint32_t)(state >= LINE_E));
    p.row->dirty = (p.row->dirty & ~bit) | (bit & -(uint32_t)(state == LINE_M));
}

static inline void cache_put_state(struct cache_place p, int way, enum line_state state)
{
    cache_put_state_bit(p, UINT32_C(1) << way, state);
}

static inline enum line_state line_state(uint32_t word)
{
    return (enum line_state)(word >> LINE_STATE_SHIFT);
}

static inline uint32_t line_word(enum line_state state, uint32_t sharers)
{
    return ((uint32_t)state << LINE_STATE_SHIFT) | sharers;
}

static inline uint32_t cache_sharers(const struct cache *c, struct cache_place p, int way)
{
    const void *sharers = (const uint8_t *)p.row + c->sharers_at;

    if (c->sharers_at == 0 || (p.row->shared >> way & 1u) == 0)
        return 0;
    return c->narrow ? ((const uint16_t *)sharers)[way] : ((const uint32_t *)sharers)[way];
}

/* State and sharers of the way. */
static inline uint32_t cache_word(const struct cache *c, struct cache_place p, int way)
{
    return line_word(cache_state(p, way), cache_sharers(c, p, way));
}

/* bit: of the way */
static inline __attribute__((always_inline)) void
cache_put_sharers_bit(const struct cache *c, struct cache_place p, uint32_t bit, uint32_t sharers)
{
    void *all = (uint8_t *)p.row + c->sharers_at;

    if (c->sharers_at == 0)
        return;
    if (sharers == 0) {
        p.row->shared &= ~bit;
        return;
    }
    p.row->shared |= bit;
    if (c->narrow)
        ((uint16_t *)all)[__builtin_ctz(bit)] = (uint16_t)sharers;
    else
        ((uint32_t *)all)[__builtin_ctz(bit)] = sharers;
}

static inline void cache_put_sharers(const struct cache *c, struct cache_place p, int way,
                                     uint32_t sharers)
{
    cache_put_sharers_bit(c, p, UINT32_C(1) << way, sharers);
}

static inline void cache_put(const struct cache *c, struct cache_place p, int way,
                             enum line_state state, uint32_t sharers)
{
    cache_put_state(p, way, state);
    cache_put_sharers(c, p, way, sharers);
}

/* Marks the way of that bit as recently used. */
static inline void cache_touch_bit(const struct cache *c, struct cache_place p, uint32_t bit)
{
    const uint32_t now = p.row->used | bit;

    p.row->used = now == c->all_ways ? bit : now;
}

static inline void cache_touch(const struct cache *c, struct cache_place p, int way)
{
    cache_touch_bit(c, p, UINT32_C(1) << way);
}

/* The bit of the way of `allowed` (not empty) that a new line replaces: an invalid one, else the
 * first that was not recently used. */
static inline uint32_t cache_victim_bit(struct cache_place p, uint32_t allowed)
{
    uint32_t *used = &p.row->used;
    uint32_t may = allowed & ~p.row->valid;

    if (SIM_LIKELY(may == 0)) {
        if (SIM_UNLIKELY((allowed & ~*used) == 0))
            *used &= ~allowed;
        may = allowed & ~*used;
    }
    return may & -may;
}

/* The same of all ways, if there are several: they are never all marked as recently used. */
static inline uint32_t cache_victim_of_all(const struct cache *c, struct cache_place p)
{
    const uint32_t empty = c->all_ways & ~p.row->valid;
    const uint32_t may = SIM_LIKELY(empty == 0) ? c->all_ways & ~p.row->used : empty;

    return may & -may;
}

static inline int cache_victim(struct cache_place p, uint32_t allowed)
{
    return __builtin_ctz(cache_victim_bit(p, allowed));
}

/* Puts the line into the way of that bit, in place of its old content, which is the caller's to
 * deal with. */
static inline __attribute__((always_inline)) void cache_fill_bit(const struct cache *c,
                                                                 struct cache_place p, uint32_t bit,
                                                                 enum line_state state,
                                                                 uint32_t sharers)
{
    const int way = __builtin_ctz(bit);

    if (c->narrow) {
        cache_narrow_tags(p)[way] = (uint16_t)p.tag;
        p.row->tag_high = (p.row->tag_high & ~bit) | p.tag >> 16 << way;
    } else {
        p.row->tags[way] = p.tag;
    }
    p.row->valid |= bit;
    cache_put_state_bit(p, bit, state);
    cache_put_sharers_bit(c, p, bit, sharers);
    cache_touch_bit(c, p, bit);
}

static inline void cache_fill(const struct cache *c, struct cache_place p, int way,
                              enum line_state state, uint32_t sharers)
{
    cache_fill_bit(c, p, UINT32_C(1) << way, state, sharers);
}

/* bits: of the ways, in which nothing is afterwards */
static inline void cache_drop_bits(struct cache_place p, uint32_t bits)
{
    p.row->valid &= ~bits;
    p.row->used &= ~bits;
}

static inline void cache_drop(struct cache_place p, int way)
{
    cache_drop_bits(p, UINT32_C(1) << way);
}

static inline uint32_t cache_tag_in(const struct cache *c, struct cache_place p, int way)
{
    if (!c->narrow)
        return p.row->tags[way];
    return cache_narrow_tags(p)[way] | (p.row->tag_high >> way & 1u) << 16;
}

/* The line in the way of a place's row, which must be valid. */
static inline uint64_t cache_line_in(const struct cache *c, struct cache_place p, int way)
{
    const uint32_t set = p.index & (c->sets - 1);
    uint64_t q = cache_tag_in(c, p, way);

    if (c->slices > 1)
        q = q * c->slices + (p.index >> c->sets_log2) - cache_fold(set);
    return (q << c->sets_log2) | set;
}

/* Calls fn for every valid line, in order of rows. For tests. */
void cache_each(const struct cache *c, void *context,
                void (*fn)(void *context, uint64_t line, int way, uint32_t word));

#endif
