/*
 * The event queue: buckets ("slots") of a power of two picoseconds over a sliding window, an open
 * slot whose events are sorted, and a radix wheel for what lies beyond the window. Private to the
 * engine.
 *
 * Time is cut three ways: slot number = time >> shift, chunk number = time >> chunk_shift, and a
 * chunk is a quarter of the window. Where an event is follows from its time alone:
 *   slot number <= open_slot            the open list, sorted by (time, seq)
 *   chunk number < horizon_chunk        near: slot[number & slot_mask], in no order
 *   otherwise                           far: wheel of radix 64 over the chunk numbers
 * Invariants:
 *   - every pending event has time >= last_ps, the time of the event popped last;
 *   - open_slot <= last_ps >> shift or the queue has been empty up to open_slot, and
 *     horizon_chunk <= chunk of (open_slot + 1) + 4: near slot numbers never wrap onto each other;
 *   - horizon_chunk >= chunk of open_slot + 4: the next three chunks' worth of slots are near;
 *   - a slot that holds events has its bit set in the bitmap. A set bit may be stale (cancelled
 *     events leave it); the search clears it. Same for the wheel;
 *   - clock.next_ps is never later than the earliest pending event.
 *
 * The width (shift) and the number of slots follow the stream of events: see sim_queue_adapt().
 * Nothing depends on addresses or on the wall clock.
 */
#ifndef SIM_ENGINE_QUEUE_H
#define SIM_ENGINE_QUEUE_H

#include "sim/engine/sim.h"

#define SIM_QUEUE_FAR_LEVELS  10 /* 60 bits of chunk number; chunk_shift is at least 4 */
#define SIM_QUEUE_RADIX_LOG2  6
#define SIM_QUEUE_RADIX       (1u << SIM_QUEUE_RADIX_LOG2)
#define SIM_QUEUE_CHUNKS_LOG2 2 /* chunks in the window */
#define SIM_QUEUE_CHUNKS      (1u << SIM_QUEUE_CHUNKS_LOG2)

#define SIM_QUEUE_SEQ_LAST (UINT64_C(1) << 63) /* seq of the first event of sim_schedule_last() */

/* From so many slots on, slots and events are not in the nearest caches and are fetched ahead. */
#ifdef SIM_HOSTILE
#define SIM_QUEUE_COLD_SLOTS 256
#define SIM_QUEUE_SOON_SLOTS 16
#define SIM_QUEUE_DEFERRED   2
#else
#define SIM_QUEUE_COLD_SLOTS 16384
#define SIM_QUEUE_SOON_SLOTS 4096
#define SIM_QUEUE_DEFERRED   32
#endif

struct sim_queue {
    struct sim_clock clock;
    sim_time last_ps;
    uint64_t seq;
    uint64_t n_last; /* events of sim_schedule_last() so far */
    uint64_t n_pending, n_far, grow_at;

    struct sim_event open; /* sentinel: open.next is the first, its time 0 ends backward walks */
    struct sim_event *open_tail; /* &open when the list is empty */
    uint64_t open_slot;

    unsigned shift, chunk_shift;
    uint64_t horizon_chunk;
    uint64_t slot_mask;
    uint64_t near_slots; /* so many behind the open slot are near for certain */
    uint64_t soon_slots; /* so many are put into without fetching ahead */
    uint64_t step_slot;  /* opening it, or a later one, moves the horizon */
    uint64_t *bitmap;
    struct sim_event **slot;
    struct sim_event scratch; /* takes the back link that an empty slot has no event for */

    /* What adaption goes by, since the last one. Work is counted in steps. */
    int64_t epoch_left; /* steps until the next look at them */
    uint64_t n_opened;  /* slots opened */
    uint64_t n_extra;   /* distinct times beyond the first in opened slots */
    uint64_t sort_work; /* steps of sorting into the open list */
    uint64_t scan_work; /* empty bitmap words skipped, events moved from the wheel */
    int last_direction; /* of the last change of width: -1 narrower, +1 wider */
    unsigned backoff_log2;

    struct sim_event *deferred[SIM_QUEUE_DEFERRED]; /* a ring; near, but not yet in their slots */
    uint64_t next_deferred;
    uint64_t deferred_floor; /* no later than the first of their slots; UINT64_MAX: there is none */

    uint64_t far_bits[SIM_QUEUE_FAR_LEVELS];
    struct sim_event *far_slot[SIM_QUEUE_FAR_LEVELS][SIM_QUEUE_RADIX];
};

void sim_queue_init(struct sim_queue *queue);
void sim_queue_release(struct sim_queue *queue);

/* No event is pending at or before at_ps. Moves nothing; sharpens clock.next_ps. */
bool sim_queue_idle_until(struct sim_queue *queue, sim_time at_ps);

/* Cold parts of the inline functions below. */
void sim_queue_place_slow(struct sim_queue *queue, struct sim_event *event);
void sim_queue_insert_open(struct sim_queue *queue, struct sim_event *event);
void sim_queue_insert_far(struct sim_queue *queue, struct sim_event *event);
void sim_queue_place_deferred(struct sim_queue *queue);
void sim_queue_adapt(struct sim_queue *queue);
bool sim_queue_jump(struct sim_queue *queue, sim_time limit_ps);
void sim_queue_advance_horizon(struct sim_queue *queue);
struct sim_event *sim_queue_sort_open(struct sim_queue *queue, struct sim_event *list);
sim_time sim_queue_list_min(const struct sim_event *list);
uint64_t sim_queue_search_near(struct sim_queue *queue);

/* Pushes to a list that has no order; `empty` takes the write if there is no first event, which
 * spares a branch that is taken at random. */
static inline void sim_queue_push(struct sim_event **head, struct sim_event *event,
                                  struct sim_event *empty)
{
    struct sim_event *old = *head;
    struct sim_event *second = old != NULL ? old : empty;

    event->next = old;
    event->prev_link = head;
    *head = event;
    second->prev_link = &event->next;
}

static inline void sim_queue_push_near(struct sim_queue *queue, struct sim_event *event)
{
    uint64_t idx = (event->time_ps >> queue->shift) & queue->slot_mask;

    queue->bitmap[idx / 64] |= UINT64_C(1) << (idx % 64);
    sim_queue_push(&queue->slot[idx], event, &queue->scratch);
}

static inline void sim_queue_fetch(const void *line)
{
    __asm__ volatile("" : "+r"(line)); /* or gcc 12 takes a loop of nothing else for an empty one */
    __builtin_prefetch(line, 1);
}

/*
 * In a large queue the slot is not in the cache, and an event put there would wait for it. So its
 * slot is fetched while the event waits in a ring for as many others to follow. Not for events
 * that are due soon; the search empties the ring before it passes the earliest of them.
 */
static inline void sim_queue_defer(struct sim_queue *queue, struct sim_event *event)
{
    uint64_t number = event->time_ps >> queue->shift;
    struct sim_event **cell = &queue->deferred[queue->next_deferred++ % SIM_QUEUE_DEFERRED];
    struct sim_event *old = *cell;

    sim_queue_fetch(&queue->slot[number & queue->slot_mask]);
    event->next = NULL;
    event->prev_link = cell;
    *cell = event;
    queue->deferred_floor = SIM_MIN(queue->deferred_floor, number);
    if (SIM_LIKELY(old != NULL))
        sim_queue_push_near(queue, old);
}

/* Puts the event, whose seq is set, where it belongs: mostly into a slot not far behind the open
 * one, which one comparison tells. */
static inline void sim_queue_place(struct sim_queue *queue, struct sim_event *event, sim_time at_ps)
{
    event->time_ps = at_ps;
    if (at_ps < queue->clock.next_ps)
        queue->clock.next_ps = at_ps;
    const uint64_t number = at_ps >> queue->shift;
    const uint64_t ahead = number - queue->open_slot - 1; /* wraps if it is open */
    if (SIM_UNLIKELY(queue->n_pending >= queue->grow_at)) {
        sim_queue_place_slow(queue, event);
    } else if (SIM_LIKELY(ahead < queue->near_slots)) {
        queue->n_pending++;
        if (SIM_LIKELY(ahead < queue->soon_slots))
            sim_queue_push_near(queue, event);
        else
            sim_queue_defer(queue, event);
    } else if (number <= queue->open_slot) {
        queue->n_pending++;
        sim_queue_insert_open(queue, event);
    } else if (at_ps >> queue->chunk_shift >= queue->horizon_chunk) {
        queue->n_pending++;
        sim_queue_insert_far(queue, event);
    } else {
        sim_queue_place_slow(queue, event);
    }
}

/* The event is not pending and its time not before the clock's. */
static inline void sim_queue_insert(struct sim_queue *queue, struct sim_event *event,
                                    sim_time at_ps)
{
    event->seq = queue->seq++;
    sim_queue_place(queue, event, at_ps);
}

static inline void sim_queue_unlink(struct sim_event *event)
{
    *event->prev_link = event->next;
    if (event->next != NULL)
        event->next->prev_link = event->prev_link;
    event->prev_link = NULL;
}

static inline void sim_queue_remove(struct sim_queue *queue, struct sim_event *event)
{
    if (event == queue->open_tail)
        queue->open_tail = SIM_CONTAINER(event->prev_link, struct sim_event, next);
    else if (event->time_ps >> queue->chunk_shift >= queue->horizon_chunk)
        queue->n_far--;
    queue->n_pending--;
    sim_queue_unlink(event);
}

/*
 * The number of the first near slot that holds events. There must be a near event. Mostly it is in
 * the word of the bitmap in which the open slot's successor is.
 */
static inline uint64_t sim_queue_first_near(struct sim_queue *queue)
{
    const uint64_t start = queue->open_slot + 1;
    const uint64_t bits = queue->bitmap[(start & queue->slot_mask) / 64] >> (start % 64);

    if (SIM_LIKELY(bits != 0)) {
        const uint64_t number = start + (uint64_t)__builtin_ctzll(bits);
        if (SIM_LIKELY(number < queue->deferred_floor &&
                       queue->slot[number & queue->slot_mask] != NULL))
            return number;
    }
    return sim_queue_search_near(queue);
}

/*
 * The search enters another word of the bitmap: fetches the events that head the slots of the word
 * after the next, and of the next word, whose heads are there by now, those behind the heads. A
 * word holds a few dozen events. Only worth it where they do not stay in the cache.
 */
static inline void sim_queue_prefetch(struct sim_queue *queue, uint64_t idx)
{
    uint64_t word_mask = queue->slot_mask / 64;
    struct sim_event **next = &queue->slot[((idx / 64 + 1) & word_mask) * 64];
    struct sim_event **second = &queue->slot[((idx / 64 + 2) & word_mask) * 64];

    for (uint64_t bits = queue->bitmap[(idx / 64 + 2) & word_mask]; bits != 0; bits &= bits - 1)
        sim_queue_fetch(second[__builtin_ctzll(bits)]);
    for (uint64_t bits = queue->bitmap[(idx / 64 + 1) & word_mask]; bits != 0; bits &= bits - 1) {
        struct sim_event *event = next[__builtin_ctzll(bits)];

        sim_queue_fetch(event != NULL ? event->next : NULL);
    }
}

/* Opens the next slot, whose first event it returns unlinked; the open list must be empty. NULL
 * if the first event is later than limit_ps: nothing has moved then. */
static inline struct sim_event *sim_queue_pop_slot(struct sim_queue *queue, sim_time limit_ps)
{
    if (SIM_UNLIKELY(queue->clock.next_ps > limit_ps))
        return NULL;
    if (SIM_UNLIKELY(queue->n_pending == queue->n_far) &&
        (queue->n_pending == 0 || !sim_queue_jump(queue, limit_ps)))
        return NULL;
    uint64_t number = sim_queue_first_near(queue);
    uint64_t idx = number & queue->slot_mask;
    struct sim_event *event = queue->slot[idx];

    if (SIM_UNLIKELY(number >= limit_ps >> queue->shift)) { /* some of its events may be later */
        sim_time min_ps = sim_queue_list_min(event);

        queue->clock.next_ps = min_ps;
        if (min_ps > limit_ps)
            return NULL;
    }
    queue->slot[idx] = NULL;
    queue->bitmap[idx / 64] &= ~(UINT64_C(1) << (idx % 64));
    if (SIM_UNLIKELY((number ^ queue->open_slot) >= 64) && queue->slot_mask >= SIM_QUEUE_COLD_SLOTS)
        sim_queue_prefetch(queue, idx);
    queue->open_slot = number;
    if (SIM_UNLIKELY(number >= queue->step_slot))
        sim_queue_advance_horizon(queue);
    queue->n_opened++;
    if (event->next != NULL)
        event = sim_queue_sort_open(queue, event);
    return event;
}

/* Takes out the earliest event unless it is later than limit_ps; sets the clock to its time. */
static inline struct sim_event *sim_queue_pop(struct sim_queue *queue, sim_time limit_ps)
{
    struct sim_event *event = queue->open.next;

    if (event == NULL) {
        event = sim_queue_pop_slot(queue, limit_ps);
        if (event == NULL)
            return NULL;
    } else {
        if (SIM_UNLIKELY(event->time_ps > limit_ps))
            return NULL;
        queue->n_extra += event->time_ps != queue->last_ps;
        queue->open.next = event->next;
        if (event->next != NULL)
            event->next->prev_link = &queue->open.next;
        else
            queue->open_tail = &queue->open;
    }
    event->prev_link = NULL;
    queue->n_pending--;
    queue->last_ps = event->time_ps;
    queue->clock.now_ps = event->time_ps;
    queue->clock.next_ps = event->time_ps;
    if (SIM_UNLIKELY(--queue->epoch_left <= 0))
        sim_queue_adapt(queue);
    return event;
}

#endif
