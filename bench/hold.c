/*
 * The hold model: a population of pending events; each, when fired, schedules itself at now plus
 * a random increment (Vaucher and Duval, CACM 18(4), 1975; Jones, CACM 29(4), 1986). Prints events
 * per second of the run's loop, the best of a few repetitions (the machine may be shared).
 *
 * Increments come from a table of drawn values in random order, so that the measure is that of the
 * queue and not of the logarithm. `hold_heap4` is a 4-ary heap of (time, seq, event) entries under
 * the same load, as a yardstick.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/engine/sim.h"

#define TABLE_LOG2 12
#define TABLE      (1u << TABLE_LOG2)
#define MEAN_PS    1e8

enum distribution { EXPONENTIAL, UNIFORM, BIMODAL, SKEWED, EQUAL, SCALES };

struct hold {
    uint32_t increment_ps[TABLE];
    uint64_t n_left;
    uint32_t random; /* a congruential generator is enough to shuffle a table */
    bool burst;      /* all increments lead to the next multiple of the mean */
    enum distribution distribution;
};

/* One line of cache each, as events sit in objects larger than themselves. */
struct item {
    struct sim_event event;
    struct hold *hold;
    char padding[16];
};

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double draw_ps(struct sim_random *random, enum distribution distribution)
{
    double unit = sim_random_unit(random);

    switch (distribution) {
    case UNIFORM: return 2 * MEAN_PS * unit;
    case BIMODAL: return unit < 0.9 ? 1e3 + 1e4 * unit : 1e7 + 1e7 * unit;
    case SKEWED: return 1e3 * pow(1e6, unit); /* 1 ns to 1 ms, log-uniform */
    case SCALES:
    case EQUAL:
    case EXPONENTIAL: break;
    }
    return sim_random_exponential(random, MEAN_PS);
}

static inline sim_time next_increment_ps(struct hold *hold, sim_time now_ps)
{
    hold->random = hold->random * 1664525u + 1013904223u;
    sim_time increment_ps = hold->increment_ps[hold->random >> (32 - TABLE_LOG2)];

    if (SIM_UNLIKELY(hold->burst))
        return (sim_time)MEAN_PS - now_ps % (sim_time)MEAN_PS;
    return increment_ps;
}

static void fire(struct sim *sim, struct sim_event *event)
{
    struct item *item = SIM_CONTAINER(event, struct item, event);
    struct hold *hold = item->hold;

    if (SIM_UNLIKELY(--hold->n_left == 0))
        sim_stop(sim);
    sim_schedule(sim, event, sim_now(sim) + next_increment_ps(hold, sim_now(sim)));
}

static void fill_table(struct hold *hold, struct sim_random *random, double scale)
{
    for (unsigned i = 0; i < TABLE; i++)
        hold->increment_ps[i] = (uint32_t)(draw_ps(random, hold->distribution) * scale);
}

/* SCALES: the time scale changes by a thousand and back, ten times in the measured run. */
static double events_per_s(struct sim *sim, struct hold *hold, struct sim_random *random,
                           uint64_t n_events)
{
    unsigned n_parts = hold->distribution == SCALES ? 10 : 1;
    double spent_s = 0;

    for (unsigned part = 0; part < n_parts; part++) {
        if (hold->distribution == SCALES)
            fill_table(hold, random, part % 2 == 0 ? 1e-3 : 1);
        hold->n_left = n_events / n_parts;
        double start_s = now_s();

        sim_run(sim, SIM_TIME_MAX, NULL);
        spent_s += now_s() - start_s;
    }
    return (double)n_events / spent_s;
}

static double hold_queue(unsigned n_pending, enum distribution distribution, uint64_t n_events)
{
    struct sim *sim = sim_new(1);
    struct hold *hold = calloc(1, sizeof(*hold));
    struct item **items = calloc(n_pending, sizeof(struct item *));
    struct sim_pool *pool = sim_pool_new(sim, "items", sizeof(struct item));
    struct sim_random random;
    double best = 0;

    if (hold == NULL || items == NULL)
        exit(1);
    sim_random_init(&random, 1, "hold");
    hold->distribution = distribution;
    hold->burst = distribution == EQUAL;
    fill_table(hold, &random, 1);
    for (unsigned i = 0; i < n_pending; i++) {
        items[i] = sim_pool_get(pool);
        items[i]->hold = hold;
        sim_event_init(&items[i]->event, fire);
        sim_schedule(sim, &items[i]->event, next_increment_ps(hold, 0));
    }
    hold->n_left = 2 * n_pending + 100000; /* until the population is in equilibrium */
    sim_run(sim, SIM_TIME_MAX, NULL);
    for (unsigned repetition = 0; repetition < 3; repetition++)
        best = fmax(best, events_per_s(sim, hold, &random, n_events));
    for (unsigned i = 0; i < n_pending; i++) {
        sim_cancel(sim, &items[i]->event);
        sim_pool_put(pool, items[i]);
    }
    sim_free(sim);
    free(items);
    free(hold);
    return best;
}

/* ---- The yardstick --------------------------------------------------------------------------- */

struct heap_entry {
    sim_time time_ps;
    uint64_t seq;
    struct item *item;
};

static inline bool entry_earlier(const struct heap_entry *a, const struct heap_entry *b)
{
    return a->time_ps != b->time_ps ? a->time_ps < b->time_ps : a->seq < b->seq;
}

/* Replaces the first entry, as the hold model does in one go. */
static void heap_replace_first(struct heap_entry *heap, size_t n, struct heap_entry entry)
{
    size_t i = 0;

    for (size_t child = 1; child < n; child = 4 * i + 1) {
        size_t least = child, end = SIM_MIN(child + 4, n);

        for (size_t c = child + 1; c < end; c++)
            least = entry_earlier(&heap[c], &heap[least]) ? c : least;
        if (!entry_earlier(&heap[least], &entry))
            break;
        heap[i] = heap[least];
        i = least;
    }
    heap[i] = entry;
}

static double hold_heap4(unsigned n_pending, uint64_t n_events)
{
    struct heap_entry *heap = calloc(n_pending, sizeof(*heap));
    struct item *items = calloc(n_pending, sizeof(*items));
    struct hold *hold = calloc(1, sizeof(*hold));
    struct sim_random random;
    uint64_t seq = 0;
    double best = 0;

    if (heap == NULL || items == NULL || hold == NULL)
        exit(1);
    sim_random_init(&random, 1, "hold");
    fill_table(hold, &random, 1);
    for (unsigned i = 0; i < n_pending; i++)
        heap[i] = (struct heap_entry){ 0, seq++, &items[i] };
    for (unsigned repetition = 0; repetition < 3; repetition++) {
        double start_s = now_s();

        for (uint64_t i = 0; i < n_events; i++) {
            struct heap_entry entry = heap[0];

            entry.item->event.time_ps = entry.time_ps; /* the clients touch their events */
            entry.time_ps += next_increment_ps(hold, entry.time_ps);
            entry.seq = seq++;
            heap_replace_first(heap, n_pending, entry);
        }
        best = fmax(best, (double)n_events / (now_s() - start_s));
    }
    free(heap);
    free(items);
    free(hold);
    return best;
}

int main(void)
{
    static const unsigned populations[] = { 16, 64, 256, 1000, 65536, 1000000 };
    static const struct {
        const char *name;
        enum distribution distribution;
    } shapes[] = { { "uniform", UNIFORM },
                   { "bimodal", BIMODAL },
                   { "skewed", SKEWED },
                   { "equal", EQUAL },
                   { "scales", SCALES } };

    for (unsigned i = 0; i < SIM_N_ELEMENTS(populations); i++)
        printf("hold.%u_pending %.1f Mevents/s\n", populations[i],
               1e-6 * hold_queue(populations[i], EXPONENTIAL, 4000000));
    for (unsigned s = 0; s < SIM_N_ELEMENTS(shapes); s++) {
        for (unsigned i = 1; i + 1 < SIM_N_ELEMENTS(populations); i++)
            printf("hold_%s.%u_pending %.1f Mevents/s\n", shapes[s].name, populations[i],
                   1e-6 * hold_queue(populations[i], shapes[s].distribution, 1000000));
    }
    for (unsigned i = 0; i < SIM_N_ELEMENTS(populations); i++)
        printf("hold_heap4.%u_pending %.1f Mevents/s\n", populations[i],
               1e-6 * hold_heap4(populations[i], 2000000));
    return 0;
}
