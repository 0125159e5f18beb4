/*
 * The hardware prefetcher in front of one L2: what it asks for when an access reaches the L2, and
 * the lines that it has under way. It changes no cache itself.
 */
#ifndef MODELS_NUMA_STREAM_PREFETCH_H
#define MODELS_NUMA_STREAM_PREFETCH_H

#include "models/numa/numa.h"

#define PREFETCH_MAX_STREAMS   32u
#define PREFETCH_MAX_IN_FLIGHT 32u
#define PREFETCH_MAX_ASKED     32u /* lines that one access can ask for */

struct prefetch_params {
    uint32_t streams;   /* 0: no prefetcher */
    uint32_t ahead;     /* lines that a stream is kept ahead */
    uint32_t trigger;   /* lines at most between the two misses that start a stream */
    uint32_t in_flight; /* lines under way */
    bool pairs;         /* a miss also fetches the other line of its 128 bytes */
    bool owns;          /* stores prefetch with ownership */
};

/* An access in a page, or (going) a stream through it. */
struct prefetch_stream {
    uint64_t page;
    uint64_t last; /* line of the last access */
    uint32_t used; /* number of the access that came last */
    bool valid, going, down;
};

struct stream_prefetch {
    const struct prefetch_params *params;
    struct prefetch_stream stream[PREFETCH_MAX_STREAMS];
    uint32_t page[PREFETCH_MAX_STREAMS]; /* the low bits of those of the streams */
    uint32_t n_accesses;
    sim_time now_ps;   /* of the latest access */
    sim_time until_ps; /* nothing that was ever under way is so after that */
    uint64_t line[PREFETCH_MAX_IN_FLIGHT];
    uint32_t line_low[PREFETCH_MAX_IN_FLIGHT]; /* the low bits of these */
    double done[PREFETCH_MAX_IN_FLIGHT];       /* models/base/times.h */
    uint8_t source[PREFETCH_MAX_IN_FLIGHT];    /* enum numa_source */
};

/* Tells it of an access (a miss, or not) to the line at at_ps; writes the lines to be fetched that
 * may be missing, all of the same page, to asked[] and returns how many. */
unsigned stream_prefetch_access(struct stream_prefetch *p, uint64_t line, bool miss, sim_time at_ps,
                                uint64_t asked[PREFETCH_MAX_ASKED]);
/* Whether one more line may be under way at at_ps. */
bool stream_prefetch_room(const struct stream_prefetch *p, sim_time at_ps);
/* Notes a line under way. There is room. */
void stream_prefetch_note(struct stream_prefetch *p, uint64_t line, struct numa_result result,
                          sim_time at_ps);
/* When the line, which the L2 holds, is there, if that is after at_ps and it was prefetched: true,
 * with *result. A line is forgotten then. */
bool stream_prefetch_take(struct stream_prefetch *p, uint64_t line, sim_time at_ps,
                          struct numa_result *result);
/* Whether the line was still under way at the latest access. */
bool stream_prefetch_under_way(const struct stream_prefetch *p, uint64_t line);

#endif
