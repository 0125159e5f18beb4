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

#define PAGE_LINES (PAGE_BYTES / LINE_BYTES)

static bool is_of(const struct prefetch_stream *s, uint64_t page)
{
    return s->page == page && s->valid;
}

/* A page has one stream at most. */
static struct prefetch_stream *find_stream(struct stream_prefetch *p, uint64_t page)
{
    if (is_of(&p->stream[p->found], page))
        return &p->stream[p->found];
    for (uint32_t i = 0; i < p->params->streams; i++)
        if (is_of(&p->stream[i], page)) {
            p->found = i;
            return &p->stream[i];
        }
    return NULL;
}

/* The one that is free or longest unused begins with a first miss. */
static void begin_stream(struct stream_prefetch *p, uint64_t line)
{
    struct prefetch_stream *oldest = &p->stream[0];

    for (uint32_t i = 0; i < p->params->streams; i++) {
        struct prefetch_stream *s = &p->stream[i];
        if (!s->valid) {
            oldest = s;
            break;
        }
        if (p->n_accesses - s->used > p->n_accesses - oldest->used)
            oldest = s;
    }
    *oldest = (struct prefetch_stream){
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
    if (p->until_ps <= at_ps)
        return true;
    for (uint32_t i = 0; i < p->params->in_flight; i++)
        if (p->done_ps[i] <= at_ps)
            return true;
    return false;
}

void stream_prefetch_note(struct stream_prefetch *p, uint64_t line, struct numa_result result,
                          sim_time at_ps)
{
    uint32_t i = 0;

    while (i + 1 < p->params->in_flight && p->done_ps[i] > at_ps)
        i++;
    p->until_ps = SIM_MAX(p->until_ps, result.done_ps);
    p->line[i] = line;
    p->done_ps[i] = result.done_ps;
    p->source[i] = (uint8_t)result.source;
}

bool stream_prefetch_take(struct stream_prefetch *p, uint64_t line, sim_time at_ps,
                          struct numa_result *result)
{
    if (p->until_ps <= at_ps)
        return false;
    for (uint32_t i = 0; i < p->params->in_flight; i++) {
        if (p->line[i] == line && p->done_ps[i] > at_ps) {
            *result = (struct numa_result){ p->done_ps[i], (enum numa_source)p->source[i] };
            p->line[i] = UINT64_MAX;
            return true;
        }
    }
    return false;
}

bool stream_prefetch_under_way(const struct stream_prefetch *p, uint64_t line)
{
    if (p->until_ps <= p->now_ps)
        return false;
    for (uint32_t i = 0; i < p->params->in_flight; i++)
        if (p->line[i] == line && p->done_ps[i] > p->now_ps)
            return true;
    return false;
}
