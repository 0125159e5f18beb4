/*
 * The event queue against its contract: whatever is scheduled, cancelled and rescheduled at
 * whatever distances, events fire once, at their time, in the order (time, order of scheduling).
 *
 * As new events are never in the past and come last among equals, the order holds if and only if
 * each event fired is greater than the one before; small populations are also compared with a
 * search through all pending events.
 */
#include "sim/engine/queue.h"
#include "tests/support/death.h"

#define N_MAX 30000

struct item {
    struct sim_event event;
    struct world *world;
    sim_time expected_ps; /* the test's own idea of it */
    uint64_t order;
    bool pending;
};

typedef sim_time distance_fn(struct world *world);

struct world {
    struct sim *sim;
    struct sim_random random;
    struct item *item;
    unsigned n_items;
    bool search; /* compare with all pending events */
    unsigned cancel_percent;
    distance_fn *distance;
    uint64_t next_order, n_fired, n_pending, n_scheduled_left;
    sim_time last_ps;
    uint64_t last_order;
};

static uint64_t below(struct world *world, uint64_t bound)
{
    return sim_random_below(&world->random, bound);
}

static void world_schedule(struct world *world, struct item *item, sim_time at_ps)
{
    item->expected_ps = at_ps;
    item->order = world->next_order++;
    item->pending = true;
    world->n_pending++;
    sim_schedule(world->sim, &item->event, at_ps);
    assert_true(sim_event_pending(&item->event));
}

static void world_cancel(struct world *world, struct item *item)
{
    sim_cancel(world->sim, &item->event);
    assert_false(sim_event_pending(&item->event));
    world->n_pending -= item->pending;
    item->pending = false;
}

/* now + distance, without passing the end of time */
static sim_time at(struct world *world)
{
    sim_time now_ps = sim_now(world->sim), distance_ps = world->distance(world);

    return distance_ps > SIM_TIME_MAX - now_ps ? SIM_TIME_MAX : now_ps + distance_ps;
}

static void check_first(struct world *world, const struct item *fired)
{
    for (unsigned i = 0; i < world->n_items; i++) {
        const struct item *other = &world->item[i];

        if (!other->pending)
            continue;
        assert_true(other->expected_ps > fired->expected_ps ||
                    (other->expected_ps == fired->expected_ps && other->order > fired->order));
    }
}

/* Reschedules itself or another, cancels some others. */
static void fire(struct sim *sim, struct sim_event *event)
{
    struct item *item = SIM_CONTAINER(event, struct item, event);
    struct world *world = item->world;

    assert_true(item->pending);
    assert_false(sim_event_pending(event));
    item->pending = false;
    world->n_pending--;
    assert_int_equal(sim_now(sim), item->expected_ps);
    assert_true(world->n_fired == 0 || item->expected_ps > world->last_ps ||
                (item->expected_ps == world->last_ps && item->order > world->last_order));
    world->last_ps = item->expected_ps;
    world->last_order = item->order;
    world->n_fired++;
    if (world->search)
        check_first(world, item);
    if (world->n_scheduled_left == 0)
        return;
    world->n_scheduled_left--;
    while (below(world, 100) < world->cancel_percent) {
        struct item *other = &world->item[below(world, world->n_items)];

        world_cancel(world, other);
        if (below(world, 4) != 0)
            world_schedule(world, other, at(world));
    }
    if (!item->pending)
        world_schedule(world, item, at(world));
    struct item *other = &world->item[below(world, world->n_items)];

    if (!other->pending)
        world_schedule(world, other, at(world));
}

static struct world *world_new(unsigned n_items, distance_fn *distance)
{
    struct world *world = calloc(1, sizeof(*world));

    assert_non_null(world);
    world->sim = sim_new(1);
    world->item = calloc(n_items, sizeof(struct item));
    assert_non_null(world->item);
    world->n_items = n_items;
    world->distance = distance;
    sim_random_init(&world->random, n_items, "test_queue");
    for (unsigned i = 0; i < n_items; i++) {
        world->item[i].world = world;
        sim_event_init(&world->item[i].event, fire);
    }
    return world;
}

static void world_fill(struct world *world)
{
    for (unsigned i = 0; i < world->n_items; i++) {
        if (!world->item[i].pending)
            world_schedule(world, &world->item[i], at(world));
    }
}

/* Everything left must come out. */
static void world_end(struct world *world)
{
    world->n_scheduled_left = 0;
    assert_int_equal(sim_events_pending(world->sim), world->n_pending);
    sim_run(world->sim, SIM_TIME_MAX, NULL);
    assert_int_equal(world->n_pending, 0);
    assert_int_equal(sim_events_pending(world->sim), 0);
    assert_int_equal(sim_events_fired(world->sim), world->n_fired);
    for (unsigned i = 0; i < world->n_items; i++)
        assert_false(world->item[i].pending);
    sim_free(world->sim);
    free(world->item);
    free(world);
}

/* ---- Distances ------------------------------------------------------------------------------- */

static sim_time exponential(struct world *world)
{
    return (sim_time)sim_random_exponential(&world->random, 1e6);
}

static sim_time few_values(struct world *world)
{
    return below(world, 3) * 5000;
}

static sim_time same_moment(struct world *world)
{
    return 1000000 - sim_now(world->sim) % 1000000;
}

/* One in ten goes a thousand times further than the others. */
static sim_time two_scales(struct world *world)
{
    return below(world, 10) == 0 ? 5 * SIM_PS_PER_US + below(world, 100)
                                 : below(world, 5 * SIM_PS_PER_NS);
}

/* 1 ps to 2^63 ps with equal chances for each power of two; zero and the end of time now and
 * then, but only ever a step of the way there. */
static sim_time all_scales(struct world *world)
{
    uint64_t kind = below(world, 50000);

    if (kind < 100)
        return 0;
    if (kind < 102)
        return SIM_TIME_MAX - below(world, 3);
    return UINT64_C(1) << below(world, kind < 150 ? 63 : 40) | below(world, 1000);
}

/* Three scales one after the other. */
static sim_time changing_scale(struct world *world)
{
    static const sim_time mean_ps[] = { 1000, 1000000000, 30 };

    return below(world, 2 * mean_ps[world->n_fired / 20000 % 3]);
}

static distance_fn *const distances[] = { exponential, few_values, same_moment,
                                          two_scales,  all_scales, changing_scale };

/* ---- Tests ----------------------------------------------------------------------------------- */

static void small_populations_fire_in_order(void **state)
{
    static const unsigned sizes[] = { 1, 2, 3, 17, 150 };

    (void)state;
    for (unsigned d = 0; d < SIM_N_ELEMENTS(distances); d++) {
        for (unsigned s = 0; s < SIM_N_ELEMENTS(sizes); s++) {
            struct world *world = world_new(sizes[s], distances[d]);

            world->search = true;
            world->cancel_percent = 20;
            world->n_scheduled_left = 20000;
            world_fill(world);
            sim_run(world->sim, SIM_TIME_MAX, NULL);
            world_end(world);
        }
    }
}

static void large_populations_fire_in_order(void **state)
{
    (void)state;
    for (unsigned d = 0; d < SIM_N_ELEMENTS(distances); d++) {
        struct world *world = world_new(N_MAX, distances[d]);

        world->cancel_percent = 10;
        world->n_scheduled_left = 200000;
        world_fill(world);
        sim_run(world->sim, SIM_TIME_MAX, NULL);
        world_end(world);
    }
}

/* Between pieces of the run, time stands still somewhere between events: what is scheduled then
 * may be earlier than all that the queue had looked at. */
static void pieces_of_a_run(void **state)
{
    (void)state;
    for (unsigned d = 0; d < SIM_N_ELEMENTS(distances); d++) {
        struct world *world = world_new(200, distances[d]);

        world->search = true;
        world->cancel_percent = 10;
        world->n_scheduled_left = 50000;
        for (unsigned piece = 0; piece < 3000; piece++) {
            struct item *item = &world->item[below(world, world->n_items)];
            sim_time now_ps = sim_now(world->sim);
            sim_time step_ps = below(world, UINT64_C(1) << below(world, 40));
            sim_time until_ps = now_ps > SIM_TIME_MAX / 2 ? SIM_TIME_MAX - 1 : now_ps + step_ps;

            world_cancel(world, item);
            world_schedule(world, item, at(world));
            sim_run(world->sim, until_ps, NULL);
            assert_true(sim_now(world->sim) == SIM_MAX(until_ps, now_ps));
        }
        world_end(world);
    }
}

/* The population grows and shrinks by orders of magnitude. */
static void population_changes(void **state)
{
    struct world *world = world_new(N_MAX, exponential);

    (void)state;
    for (unsigned round = 0; round < 6; round++) {
        world_fill(world);
        world->n_scheduled_left = 1000;
        sim_run(world->sim, sim_now(world->sim) + 100000, NULL);
        for (unsigned i = 0; i < world->n_items; i++) {
            if (i % 1000 != round)
                world_cancel(world, &world->item[i]);
        }
        world->n_scheduled_left = 0;
        sim_run(world->sim, sim_now(world->sim) + SIM_PS_PER_MS, NULL);
        assert_int_equal(sim_events_pending(world->sim), 0);
    }
    world_end(world);
}

/* Thousands of events at one time, and zero delays in the middle of them. */
static sim_time mostly_now(struct world *world)
{
    return below(world, 4) != 0 ? 0 : 10 * SIM_PS_PER_NS + below(world, 2);
}

static void zero_delays(void **state)
{
    struct world *world = world_new(5000, mostly_now);

    (void)state;
    world->cancel_percent = 30;
    world->n_scheduled_left = 100000;
    world_fill(world);
    sim_run(world->sim, SIM_TIME_MAX, NULL);
    world_end(world);
}

static sim_time descending(struct world *world)
{
    return 10 * SIM_PS_PER_US - world->next_order % 5000;
}

/* The worst order for a list, all in few slots of the first width. */
static void descending_times(void **state)
{
    struct world *world = world_new(5000, descending);

    (void)state;
    world->n_scheduled_left = 50000;
    world_fill(world);
    sim_run(world->sim, SIM_TIME_MAX, NULL);
    world_end(world);
}

static void cancel_everything(void **state)
{
    struct world *world = world_new(3000, all_scales);

    (void)state;
    world_fill(world);
    for (unsigned i = 0; i < world->n_items; i++)
        world_cancel(world, &world->item[i]);
    assert_int_equal(sim_events_pending(world->sim), 0);
    sim_run(world->sim, SIM_PS_PER_S, NULL);
    assert_int_equal(world->n_fired, 0);
    assert_int_equal(sim_now(world->sim), SIM_PS_PER_S);
    world_fill(world);
    world_end(world);
}

/* The bound on the next event that tasks rely on, without and with events in the way. */
static void idle_until(void **state)
{
    struct sim_queue queue;
    struct sim_event near, far;

    (void)state;
    sim_queue_init(&queue);
    sim_event_init(&near, fire);
    sim_event_init(&far, fire);
    assert_true(sim_queue_idle_until(&queue, SIM_TIME_MAX));
    sim_queue_insert(&queue, &far, SIM_PS_PER_S);
    assert_true(sim_queue_idle_until(&queue, SIM_PS_PER_S - 1));
    assert_false(sim_queue_idle_until(&queue, SIM_PS_PER_S));
    sim_queue_insert(&queue, &near, 1001);
    assert_true(sim_queue_idle_until(&queue, 1000));
    assert_false(sim_queue_idle_until(&queue, 1001));
    sim_queue_remove(&queue, &near);
    assert_true(sim_queue_idle_until(&queue, SIM_PS_PER_S - 1));
    assert_null(sim_queue_pop(&queue, SIM_PS_PER_S - 1));
    assert_ptr_equal(sim_queue_pop(&queue, SIM_PS_PER_S), &far);
    assert_int_equal(queue.clock.now_ps, SIM_PS_PER_S);
    assert_true(sim_queue_idle_until(&queue, SIM_TIME_MAX));
    sim_queue_release(&queue);
}

static struct sim_queue *filled;
static struct sim_event hold_event[500];

/* Steps of work that the queue counts for n events of the hold model. */
static uint64_t work_of(uint64_t n_events, uint64_t (*distance_ps)(struct sim_random *))
{
    static struct sim_random random;
    uint64_t work = 0;

    sim_random_init(&random, 7, "work");
    for (uint64_t i = 0; i < n_events; i++) {
        uint64_t before = filled->sort_work + filled->scan_work + filled->n_extra;
        struct sim_event *event = sim_queue_pop(filled, SIM_TIME_MAX);

        sim_queue_insert(filled, event, filled->clock.now_ps + distance_ps(&random));
        uint64_t after = filled->sort_work + filled->scan_work + filled->n_extra;

        if (after > before) /* the counters start again with each look */
            work += after - before;
    }
    return work;
}

static uint64_t short_ps(struct sim_random *random)
{
    return sim_random_below(random, 2000);
}

static uint64_t long_ps(struct sim_random *random)
{
    return sim_random_below(random, 2 * SIM_PS_PER_MS);
}

/* After a change of time scale by a million the width follows: the work per event falls below
 * two steps again. */
static void width_follows_the_events(void **state)
{
    struct sim_queue queue;

    (void)state;
    filled = &queue;
    sim_queue_init(&queue);
    for (unsigned i = 0; i < SIM_N_ELEMENTS(hold_event); i++) {
        sim_event_init(&hold_event[i], fire);
        sim_queue_insert(&queue, &hold_event[i], i);
    }
    for (unsigned round = 0; round < 3; round++) {
        work_of(200000, short_ps);
        assert_true(work_of(10000, short_ps) < 20000);
        work_of(200000, long_ps);
        assert_true(work_of(10000, long_ps) < 20000);
    }
    sim_queue_release(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_populations_fire_in_order),
        cmocka_unit_test(large_populations_fire_in_order),
        cmocka_unit_test(pieces_of_a_run),
        cmocka_unit_test(population_changes),
        cmocka_unit_test(zero_delays),
        cmocka_unit_test(descending_times),
        cmocka_unit_test(cancel_everything),
        cmocka_unit_test(idle_until),
        cmocka_unit_test(width_follows_the_events),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
