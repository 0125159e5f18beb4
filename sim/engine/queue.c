/* The event queue: what is not on the fast path. See queue.h for the structure. */
#include "sim/engine/queue.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifdef SIM_HOSTILE
#define SLOTS_MIN_LOG2     6
#define SLOTS_MAX_LOG2     8
#define EPOCH_STEPS        16
#define INSERTION_SORT_MAX 2
#else
#define SLOTS_MIN_LOG2     8
#define SLOTS_MAX_LOG2     22
#define EPOCH_STEPS        1024
#define INSERTION_SORT_MAX 8
#endif

#define SLOTS_PER_EVENT_LOG2 3  /* at least after growing; at least half of that before */
#define FIRST_SHIFT          10 /* 1 ns, before anything is known */
#define SHIFT_MAX            36 /* 69 ms; leaves chunk numbers at least nine bits */
#define BACKOFF_MAX_LOG2     6
#define HUGE_PAGE_BYTES      (UINT64_C(2) << 20)

static unsigned log2_floor(uint64_t value)
{
    return value == 0 ? 0 : 63 - (unsigned)__builtin_clzll(value);
}

static bool earlier(const struct sim_event *a, const struct sim_event *b)
{
    return a->time_ps != b->time_ps ? a->time_ps < b->time_ps : a->seq < b->seq;
}

/* ---- Slots ----------------------------------------------------------------------------------- */

static void *allocate_zeroed(uint64_t bytes)
{
    uint64_t align = bytes >= HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : 64;
    void *memory = aligned_alloc(align, (bytes + align - 1) & ~(align - 1));

    if (memory == NULL)
        sim_out_of_memory("%llu bytes of event queue", (unsigned long long)bytes);
    if (align == HUGE_PAGE_BYTES) /* random access to megabytes: spares TLB misses */
        (void)madvise(memory, bytes, MADV_HUGEPAGE);
    memset(memory, 0, bytes);
    return memory;
}

static void set_horizon(struct sim_queue *q, uint64_t chunk)
{
    q->horizon_chunk = chunk;
    q->step_slot = (chunk - SIM_QUEUE_CHUNKS + 1) << (q->chunk_shift - q->shift);
}

static void set_shape(struct sim_queue *q, unsigned shift, unsigned slots_log2)
{
    uint64_t n_slots = UINT64_C(1) << slots_log2;

    if (q->slot == NULL || q->slot_mask != n_slots - 1) {
        free(q->slot);
        free(q->bitmap);
        q->slot = allocate_zeroed(n_slots * sizeof(*q->slot));
        q->bitmap = allocate_zeroed(n_slots / 8);
        q->slot_mask = n_slots - 1;
        q->grow_at = slots_log2 == SLOTS_MAX_LOG2 ? UINT64_MAX
                                                  : n_slots >> (SLOTS_PER_EVENT_LOG2 - 1);
    }
    q->shift = shift;
    q->chunk_shift = shift + slots_log2 - SIM_QUEUE_CHUNKS_LOG2;
    q->open_slot = q->last_ps >> shift;
    /* The horizon is never less than three chunks from the end of the open slot's. */
    q->near_slots = (n_slots >> SIM_QUEUE_CHUNKS_LOG2) * (SIM_QUEUE_CHUNKS - 1);
    q->soon_slots = n_slots > SIM_QUEUE_COLD_SLOTS ? SIM_QUEUE_SOON_SLOTS - 1 : UINT64_MAX;
    set_horizon(q, (q->last_ps >> q->chunk_shift) + SIM_QUEUE_CHUNKS);
}

void sim_queue_init(struct sim_queue *q)
{
    memset(q, 0, sizeof(*q));
    q->open_tail = &q->open;
    q->deferred_floor = UINT64_MAX;
    q->clock.next_ps = SIM_TIME_MAX;
    q->epoch_left = EPOCH_STEPS;
    set_shape(q, FIRST_SHIFT, SLOTS_MIN_LOG2);
}

void sim_queue_release(struct sim_queue *q)
{
    free(q->slot);
    free(q->bitmap);
    q->slot = NULL;
    q->bitmap = NULL;
}

/* ---- The open list --------------------------------------------------------------------------- */

sim_time sim_queue_list_min(const struct sim_event *list)
{
    sim_time min_ps = SIM_TIME_MAX;

    for (; list != NULL; list = list->next)
        min_ps = SIM_MIN(min_ps, list->time_ps);
    return min_ps;
}

/* A new event has the highest seq but for those of sim_schedule_last(), so it goes behind all that
 * are not later; zero delays after a burst of equal times find their place from the tail. */
void sim_queue_insert_open(struct sim_queue *q, struct sim_event *event)
{
    struct sim_event *before = q->open_tail;
    uint64_t steps = 0;

    while (before->time_ps > event->time_ps ||
           (before->time_ps == event->time_ps && before->seq > event->seq)) {
        before = SIM_CONTAINER(before->prev_link, struct sim_event, next);
        steps++;
    }
    event->next = before->next;
    event->prev_link = &before->next;
    if (event->next != NULL)
        event->next->prev_link = &event->next;
    else
        q->open_tail = event;
    before->next = event;
    q->sort_work += steps;
    q->epoch_left -= (int64_t)steps;
}

static struct sim_event *merge(struct sim_event *a, struct sim_event *b)
{
    struct sim_event head, *tail = &head;

    while (a != NULL && b != NULL) {
        struct sim_event **first = earlier(a, b) ? &a : &b;

        tail->next = *first;
        tail = *first;
        *first = tail->next;
    }
    tail->next = a != NULL ? a : b;
    return head.next;
}

/* bin[i] holds a sorted list of 2^i events or nothing. */
static struct sim_event *merge_sort(struct sim_event *list)
{
    struct sim_event *bin[64] = { NULL };
    struct sim_event *sorted = NULL;
    unsigned n_bins = 0;

    while (list != NULL) {
        struct sim_event *run = list;
        unsigned i;

        list = list->next;
        run->next = NULL;
        for (i = 0; bin[i] != NULL; i++) {
            run = merge(bin[i], run);
            bin[i] = NULL;
        }
        bin[i] = run;
        n_bins = SIM_MAX(n_bins, i + 1);
    }
    for (unsigned i = 0; i < n_bins; i++)
        sorted = merge(bin[i], sorted);
    return sorted;
}

static struct sim_event *insertion_sort(struct sim_event *list)
{
    struct sim_event *sorted = NULL;

    while (list != NULL) {
        struct sim_event *event = list, **at = &sorted;

        list = list->next;
        while (*at != NULL && earlier(*at, event))
            at = &(*at)->next;
        event->next = *at;
        *at = event;
    }
    return sorted;
}

static struct sim_event *reverse(struct sim_event *list)
{
    struct sim_event *reversed = NULL;

    while (list != NULL) {
        struct sim_event *event = list;

        list = list->next;
        event->next = reversed;
        reversed = event;
    }
    return reversed;
}

/* Bursts of equal times arrive in order of seq, forwards or backwards: linear. */
static struct sim_event *sort(struct sim_event *list, uint64_t *n_events)
{
    uint64_t n = 1, n_ascending = 1;

    for (const struct sim_event *e = list; e->next != NULL; e = e->next) {
        n++;
        n_ascending += earlier(e, e->next);
    }
    *n_events = n;
    if (n_ascending == n)
        return list;
    if (n_ascending == 1)
        return reverse(list);
    return n <= INSERTION_SORT_MAX ? insertion_sort(list) : merge_sort(list);
}

/* Sorts the events of a slot just opened; returns the first, leaves the others in the open list,
 * which must be empty. */
struct sim_event *sim_queue_sort_open(struct sim_queue *q, struct sim_event *list)
{
    struct sim_event *second = list->next;

    if (second->next == NULL) {
        if (earlier(second, list)) {
            struct sim_event *swap = list;

            list = second;
            second = swap;
        }
        list->next = second;
        second->next = NULL;
        second->prev_link = &q->open.next;
        q->open.next = second;
        q->open_tail = second;
        return list;
    }
    uint64_t n_events;
    struct sim_event **link = &q->open.next;

    list = sort(list, &n_events);
    q->epoch_left -= (int64_t)n_events;
    *link = list->next;
    for (struct sim_event *e = list->next; e != NULL; e = e->next) {
        e->prev_link = link;
        link = &e->next;
        q->open_tail = e;
    }
    return list;
}

/* ---- The ring of deferred events ------------------------------------------------------------- */

void sim_queue_place_deferred(struct sim_queue *q)
{
    for (unsigned i = 0; i < SIM_QUEUE_DEFERRED; i++) {
        if (q->deferred[i] != NULL)
            sim_queue_push_near(q, q->deferred[i]);
        q->deferred[i] = NULL;
    }
    q->deferred_floor = UINT64_MAX;
}

/* ---- The wheel: far events ------------------------------------------------------------------- */

/* The level is that of the highest digit in which the event's chunk differs from the horizon's. */
static void push_far(struct sim_queue *q, struct sim_event *event)
{
    uint64_t chunk = event->time_ps >> q->chunk_shift;
    unsigned level = log2_floor(chunk ^ q->horizon_chunk) / SIM_QUEUE_RADIX_LOG2;
    unsigned idx = (unsigned)(chunk >> (level * SIM_QUEUE_RADIX_LOG2)) % SIM_QUEUE_RADIX;

    q->far_bits[level] |= UINT64_C(1) << idx;
    sim_queue_push(&q->far_slot[level][idx], event, &q->scratch);
}

void sim_queue_insert_far(struct sim_queue *q, struct sim_event *event)
{
    q->n_far++;
    q->scan_work++;
    push_far(q, event);
}

static struct sim_event *take_far(struct sim_queue *q, unsigned level, unsigned idx)
{
    struct sim_event *list = q->far_slot[level][idx];

    q->far_slot[level][idx] = NULL;
    q->far_bits[level] &= ~(UINT64_C(1) << idx);
    return list;
}

/* Sorts the events of a slot of the wheel into lower levels, now that the horizon is in it. */
static void cascade(struct sim_queue *q, unsigned level, unsigned idx)
{
    struct sim_event *next;

    for (struct sim_event *e = take_far(q, level, idx); e != NULL; e = next) {
        next = e->next;
        push_far(q, e);
        q->scan_work++;
        q->epoch_left--;
    }
}

/* Moves the horizon by one chunk: the events of that chunk become near. */
static void step_horizon(struct sim_queue *q)
{
    uint64_t chunk = q->horizon_chunk;
    struct sim_event *next;

    set_horizon(q, chunk + 1);
    for (struct sim_event *e = take_far(q, 0, (unsigned)(chunk % SIM_QUEUE_RADIX)); e != NULL;
         e = next) {
        next = e->next;
        sim_queue_push_near(q, e);
        q->n_far--;
    }
    for (unsigned level = 1; level < SIM_QUEUE_FAR_LEVELS; level++) {
        unsigned below = (level - 1) * SIM_QUEUE_RADIX_LOG2;

        if ((q->horizon_chunk >> below) % SIM_QUEUE_RADIX != 0)
            break;
        cascade(q, level,
                (unsigned)(q->horizon_chunk >> (below + SIM_QUEUE_RADIX_LOG2)) % SIM_QUEUE_RADIX);
    }
}

/* After the open slot has moved: the window reaches four chunks from the open slot's. */
void sim_queue_advance_horizon(struct sim_queue *q)
{
    uint64_t horizon = (q->open_slot >> (q->chunk_shift - q->shift)) + SIM_QUEUE_CHUNKS;

    while (q->horizon_chunk < horizon)
        step_horizon(q);
}

/* The first slot of the wheel that holds events, all of lower levels being empty; returns the
 * number of its first chunk. There must be a far event. */
static uint64_t first_far(struct sim_queue *q, unsigned *level, unsigned *idx)
{
    for (unsigned l = 0;; l++) {
        while (q->far_bits[l] != 0) {
            unsigned i = (unsigned)__builtin_ctzll(q->far_bits[l]);

            if (q->far_slot[l][i] != NULL) {
                unsigned below = l * SIM_QUEUE_RADIX_LOG2;

                *level = l;
                *idx = i;
                return ((q->horizon_chunk >> below & ~(uint64_t)(SIM_QUEUE_RADIX - 1)) | i)
                       << below;
            }
            q->far_bits[l] &= q->far_bits[l] - 1;
        }
    }
}

/* The earliest far event is later than at_ps; next_ps becomes a bound on it. */
static bool far_idle_until(struct sim_queue *q, sim_time at_ps)
{
    unsigned level, idx;
    sim_time start_ps = first_far(q, &level, &idx) << q->chunk_shift;

    if (start_ps > at_ps)
        q->clock.next_ps = start_ps;
    else
        q->clock.next_ps = sim_queue_list_min(q->far_slot[level][idx]);
    return q->clock.next_ps > at_ps;
}

/* All events are far: moves the window to the first of them, unless that is later than limit_ps
 * (false). */
bool sim_queue_jump(struct sim_queue *q, sim_time limit_ps)
{
    unsigned level, idx;

    if (limit_ps != SIM_TIME_MAX && far_idle_until(q, limit_ps))
        return false;
    do {
        q->horizon_chunk = first_far(q, &level, &idx);
        if (level > 0)
            cascade(q, level, idx);
    } while (level > 0);
    q->open_slot = (q->horizon_chunk << (q->chunk_shift - q->shift)) - 1;
    for (unsigned i = 0; i < SIM_QUEUE_CHUNKS; i++)
        step_horizon(q);
    return true;
}

/* The window holds each slot number once, so the search goes once around from the open slot's
 * successor. */
uint64_t sim_queue_search_near(struct sim_queue *queue)
{
    uint64_t start = queue->open_slot + 1;
    uint64_t start_idx = start & queue->slot_mask;
    uint64_t word_mask = queue->slot_mask / 64;
    uint64_t word = start_idx / 64, n_skipped = 0;
    uint64_t keep = ~UINT64_C(0) << (start_idx % 64);

    for (;;) {
        uint64_t bits = queue->bitmap[word] & keep;

        while (SIM_LIKELY(bits != 0)) {
            uint64_t idx = word * 64 + (uint64_t)__builtin_ctzll(bits);
            uint64_t number = start + ((idx - start_idx) & queue->slot_mask);

            if (SIM_UNLIKELY(number >= queue->deferred_floor))
                break;
            if (SIM_LIKELY(queue->slot[idx] != NULL))
                return number;
            queue->bitmap[word] &= ~(UINT64_C(1) << (idx % 64));
            bits &= bits - 1;
        }
        if (bits != 0 || n_skipped > word_mask) {
            sim_queue_place_deferred(queue);
            word = start_idx / 64;
            keep = ~UINT64_C(0) << (start_idx % 64);
            n_skipped = 0;
            continue;
        }
        keep = ~UINT64_C(0);
        word = (word + 1) & word_mask;
        n_skipped++;
        queue->scan_work++;
        queue->epoch_left--;
    }
}

bool sim_queue_idle_until(struct sim_queue *q, sim_time at_ps)
{
    if (q->clock.next_ps > at_ps)
        return true;
    if (q->n_pending == 0) {
        q->clock.next_ps = SIM_TIME_MAX;
        return true;
    }
    if (q->open.next != NULL) {
        q->clock.next_ps = q->open.next->time_ps;
        return q->clock.next_ps > at_ps;
    }
    if (q->n_pending == q->n_far)
        return far_idle_until(q, at_ps);
    uint64_t number = sim_queue_first_near(q);

    q->clock.next_ps = number << q->shift;
    if (q->clock.next_ps <= at_ps)
        q->clock.next_ps = sim_queue_list_min(q->slot[number & q->slot_mask]);
    return q->clock.next_ps > at_ps;
}

/* ---- Adaption -------------------------------------------------------------------------------- */

/* Takes all events out, as one chain without order. */
static struct sim_event *gather(struct sim_queue *q)
{
    struct sim_event *all = q->open.next, *next;

    sim_queue_place_deferred(q);
    for (uint64_t word = 0; word <= q->slot_mask / 64; word++) {
        for (uint64_t bits = q->bitmap[word]; bits != 0; bits &= bits - 1) {
            uint64_t idx = word * 64 + (uint64_t)__builtin_ctzll(bits);

            for (struct sim_event *e = q->slot[idx]; e != NULL; e = next) {
                next = e->next;
                e->next = all;
                all = e;
            }
            q->slot[idx] = NULL;
        }
        q->bitmap[word] = 0;
    }
    for (unsigned level = 0; level < SIM_QUEUE_FAR_LEVELS; level++) {
        while (q->far_bits[level] != 0) {
            unsigned i = (unsigned)__builtin_ctzll(q->far_bits[level]);

            for (struct sim_event *e = take_far(q, level, i); e != NULL; e = next) {
                next = e->next;
                e->next = all;
                all = e;
            }
        }
    }
    q->n_far = 0;
    q->open.next = NULL;
    q->open_tail = &q->open;
    return all;
}

static void rebuild(struct sim_queue *q, unsigned shift, unsigned slots_log2)
{
    struct sim_event *all = gather(q), *next, *open = NULL;

    set_shape(q, shift, slots_log2);
    for (struct sim_event *e = all; e != NULL; e = next) {
        next = e->next;
        if (e->time_ps >> q->shift <= q->open_slot) {
            sim_queue_push(&open, e, &q->scratch);
        } else if (e->time_ps >> q->chunk_shift < q->horizon_chunk) {
            sim_queue_push_near(q, e);
        } else {
            q->n_far++;
            push_far(q, e);
        }
    }
    if (open != NULL) {
        struct sim_event *first = open->next != NULL ? sim_queue_sort_open(q, open) : open;

        first->next = q->open.next;
        first->prev_link = &q->open.next;
        if (first->next != NULL)
            first->next->prev_link = &first->next;
        else
            q->open_tail = first;
        q->open.next = first;
    }
}

static unsigned slots_for(uint64_t n_events)
{
    unsigned slots_log2 = log2_floor(n_events) + 1 + SLOTS_PER_EVENT_LOG2;

    return SIM_MIN(SIM_MAX(slots_log2, SLOTS_MIN_LOG2), SLOTS_MAX_LOG2);
}

static void start_epoch(struct sim_queue *q)
{
    /* A rebuild touches every event; so it takes a few times as many steps to earn one. */
    q->epoch_left = (int64_t)((EPOCH_STEPS + 4 * q->n_pending) << q->backoff_log2);
    q->n_opened = 0;
    q->n_extra = 0;
    q->sort_work = 0;
    q->scan_work = 0;
}

/* The population has outgrown the slots. */
static void grow(struct sim_queue *q)
{
    rebuild(q, q->shift, slots_for(q->n_pending));
}

/* As sim_queue_place(), wherever the event belongs; the queue may have to grow for it. */
void sim_queue_place_slow(struct sim_queue *q, struct sim_event *event)
{
    if (SIM_UNLIKELY(q->n_pending++ >= q->grow_at))
        grow(q);
    const uint64_t number = event->time_ps >> q->shift;
    if (number <= q->open_slot)
        sim_queue_insert_open(q, event);
    else if (event->time_ps >> q->chunk_shift >= q->horizon_chunk)
        sim_queue_insert_far(q, event);
    else if (number - q->open_slot - 1 < q->soon_slots)
        sim_queue_push_near(q, event);
    else
        sim_queue_defer(q, event);
}

/*
 * The width, by what the steps since the last look went into. Sorting (several distinct times in a
 * slot; equal times cost nothing) asks for narrower slots, by its ratio to the slots opened.
 * Skipping empty slots and moving events from the wheel ask for wider ones, by small steps, as
 * silence between bursts says nothing about the distances within them. When both take turns, the
 * looks become rare.
 */
void sim_queue_adapt(struct sim_queue *q)
{
    uint64_t opened = q->n_opened + 1;
    uint64_t sorting = q->n_extra + q->sort_work;
    unsigned shift = q->shift, slots_log2 = log2_floor(q->slot_mask + 1);
    int direction = 0;

    if (2 * sorting > opened) {
        shift -= SIM_MIN(shift, log2_floor(sorting / opened) + 1);
        direction = shift < q->shift ? -1 : 0;
    } else if (q->scan_work > opened / 8 && sorting < opened / 6) {
        shift = SIM_MIN(SHIFT_MAX, shift + (q->scan_work > 2 * opened ? 3 : 1));
        direction = shift > q->shift ? 1 : 0;
    }
    if (q->n_pending << (SLOTS_PER_EVENT_LOG2 + 3) < q->slot_mask)
        slots_log2 = slots_for(q->n_pending);
    if (direction == 0)
        q->backoff_log2 = 0;
    else if (direction == -q->last_direction)
        q->backoff_log2 = SIM_MIN(q->backoff_log2 + 1, BACKOFF_MAX_LOG2);
    if (direction != 0)
        q->last_direction = direction;
    if (shift != q->shift || slots_log2 != log2_floor(q->slot_mask + 1))
        rebuild(q, shift, slots_log2);
    start_epoch(q);
}
