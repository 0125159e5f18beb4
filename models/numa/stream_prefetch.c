/*
 * Models: NetBurst's prefetcher of data: up to `streams` streams, one in a page of 4 KiB, found by
 *   two misses near each other, upwards or downwards; a stream is kept `ahead` lines ahead of the
 *   accesses and ends with its page; at most `in_flight` lines under way, beyond which requests
 *   are dropped; with `pairs`, a miss also fetches the other line of its sector pair.
 * Does not model: strides of more than a line (all lines between are fetched), the priority of
 *   demand misses on the bus.
 * Timing: a line that is asked for at the access which made it due takes what a load's or a store's
 *   miss takes; an access that finds it under way waits for it.
 * Sources: docs/sources.md#f
 */
#include "models/numa/stream_prefetch.h"

#include "models/base/times.h"

#define PAGE_LINES (PAGE_BYTES / LINE_BYTES)

/* What follows looks at all streams, and at all lines under way, without a branch on which it is:
 * nobody could predict it. */

/* A bit for each of n words, rounded up to four, that is `word`. */
static inline __attribute__((always_inline)) uint32_t words_equal_n(const uint32_t *words,
                                                                    uint32_t n, uint32_t word)
{
    uint32_t equal = 0;

#ifdef __SSE2__
    const __m128i key = _mm_set1_epi32((int)word);
    for (uint32_t i = 0; i < n; i += 4) {
        const __m128i four = _mm_loadu_si128((const __m128i *)(const void *)(words + i));
        equal |= (uint32_t)_mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(four, key))) << i;
    }
#else
    for (uint32_t i = 0; i < n; i++)
        equal |= (uint32_t)(words[i] == word) << i;
#endif
    return equal;
}

/* Loops of the usual lengths unroll. */
static inline uint32_t words_equal(const uint32_t *words, uint32_t n, uint32_t word)
{
    return n == 8    ? words_equal_n(words, 8, word)
           : n == 16 ? words_equal_n(words, 16, word)
                     : words_equal_n(words, n, word);
}

/* A bit for each place for a line under way that is free at at_ps. */
static inline uint32_t free_places(const struct stream_prefetch *p, sim_time at_ps)
{
    const uint32_t n = p->params->in_flight;

    return (uint32_t)(n == 8 ? times_over(p->done, 8, at_ps) : times_over(p->done, n, at_ps));
}

/* A page has one stream at most. */
static inline struct prefetch_stream *find_stream(struct stream_prefetch *p, uint64_t page)
{
    uint32_t may = words_equal(p->page, p->params->streams, (uint32_t)page);

    for (; may != 0; may &= may - 1) {
        struct prefetch_stream *s = &p->stream[__builtin_ctz(may)];
        if (s->page == page && s->valid)
            return s;
    }
    return NULL;
}

/* The one that is free or longest unused begins with a first miss. */
static void begin_stream(struct stream_prefetch *p, uint64_t line)
{
    uint32_t oldest = 0;
    uint64_t age = 0;

    for (uint32_t i = 0; i < p->params->streams; i++) {
        const struct prefetch_stream *s = &p->stream[i];
        const uint64_t age_here = s->valid ? p->n_accesses - s->used : UINT64_MAX;
        oldest = age_here > age ? i : oldest;
        age = SIM_MAX(age, age_here);
    }
    p->page[oldest] = (uint32_t)(line / PAGE_LINES);
    p->stream[oldest] = (struct prefetch_stream){
        .page = line / PAGE_LINES, .last = line, .used = p->n_accesses, .valid = true
    };
}

/* Lines of the stream's page that are next, at most `ahead`. */
static unsigned ahead_of(const struct stream_prefetch *p, const struct prefetch_stream *s,
                         uint64_t *asked)
{
    const uint64_t first = s->page * PAGE_LINES, last = first + PAGE_LINES - 1;
    const uint64_t room = s->down ? s->last - first : last - s->last;
    const unsigned n = (unsigned)SIM_MIN(room, (uint64_t)p->params->ahead);

    for (unsigned i = 1; i <= n; i++)
        asked[i - 1] = s->down ? s->last - i : s->last + i;
    return n;
}

unsigned stream_prefetch_access(struct stream_prefetch *p, uint64_t line, bool miss, sim_time at_ps,
                                uint64_t asked[PREFETCH_MAX_ASKED])
{
    struct prefetch_stream *s = find_stream(p, line / PAGE_LINES);
    unsigned n = 0;

    p->n_accesses++;
    p->now_ps = SIM_MAX(p->now_ps, at_ps);
    if (miss && p->params->pairs)
        asked[n++] = line ^ 1;
    if (s == NULL) {
        if (miss)
            begin_stream(p, line);
        return n;
    }
    s->used = p->n_accesses;
    const uint64_t apart = line > s->last ? line - s->last : s->last - line;
    if (apart == 0)
        return n;
    if (miss && apart <= p->params->trigger) {
        s->going = true;
        s->down = line < s->last;
    }
    if (s->going && (line > s->last) == s->down) /* turned back */
        return n;
    if (miss || s->going)
        s->last = line;
    return s->going ? n + ahead_of(p, s, asked + n) : n;
}

bool stream_prefetch_room(const struct stream_prefetch *p, sim_time at_ps)
{
    return p->until_ps <= at_ps || free_places(p, at_ps) != 0;
}

void stream_prefetch_note(struct stream_prefetch *p, uint64_t line, struct numa_result result,
                          sim_time at_ps)
{
    const uint32_t i = (uint32_t)__builtin_ctz(free_places(p, at_ps) |
                                               1u << (p->params->in_flight - 1));

    SIM_ASSERT(result.done_ps < TIMES_EXACT_PS, "a line at %llu ps",
               (unsigned long long)result.done_ps);
    p->until_ps = SIM_MAX(p->until_ps, result.done_ps);
    p->line[i] = line;
    p->line_low[i] = (uint32_t)line;
    p->done[i] = times_of(result.done_ps);
    p->source[i] = (uint8_t)result.source;
}

/* The bit of the line's place if it is under way at at_ps, or 0. */
static inline uint32_t find_line(const struct stream_prefetch *p, uint64_t line, sim_time at_ps)
{
    uint32_t may = words_equal(p->line_low, p->params->in_flight, (uint32_t)line) &
                   (uint32_t)((UINT64_C(1) << p->params->in_flight) - 1);

    for (; may != 0; may &= may - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(may);
        if (p->line[i] == line && p->done[i] > times_of(at_ps))
            return may & -may;
    }
    return 0;
}

bool stream_prefetch_take(struct stream_prefetch *p, uint64_t line, sim_time at_ps,
                          struct numa_result *result)
{
    if (p->until_ps <= at_ps)
        return false;
    const uint32_t bit = find_line(p, line, at_ps);
    if (bit == 0)
        return false;
    const uint32_t i = (uint32_t)__builtin_ctz(bit);
    *result = (struct numa_result){ times_ps(p->done[i]), (enum numa_source)p->source[i] };
    p->line[i] = UINT64_MAX;
    p->line_low[i] = UINT32_MAX;
    return true;
}

bool stream_prefetch_under_way(const struct stream_prefetch *p, uint64_t line)
{
    return p->until_ps > p->now_ps && find_line(p, line, p->now_ps) != 0;
}
