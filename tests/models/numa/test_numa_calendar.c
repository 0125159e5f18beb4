/* Slot calendars: exact when idle, bounded when saturated, fair to callers out of order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "models/numa/dram/calendar.h"
#include "tests/support/numa_fixture.h"

#define SLOT_PS UINT64_C(3330)

static struct calendar calendar;
static struct calendar_slots slots;

static void test_idle_starts_at_once(void **state)
{
    uint64_t random = 1;
    sim_time t = 0;

    (void)state;
    calendar_slots_init(&slots, SLOT_PS);
    for (unsigned i = 0; i < 100000; i++) {
        /* At least a slot apart, in all phases; now and then a gap far beyond the window. */
        t += SLOT_PS + fixture_random(&random) % 50000;
        if (i % 1000 == 0)
            t += UINT64_C(1) << (20 + i / 1000 % 30);
        assert_int_equal(calendar_slots_take(&slots, t), t);
    }
}

static void test_idle_units_are_served_in_their_time(void **state)
{
    uint64_t random = 2;
    sim_time t = 0;

    (void)state;
    calendar_init(&calendar, 2083, 10);
    for (unsigned i = 0; i < 100000; i++) {
        t += 5000 + fixture_random(&random) % 50000;
        const struct calendar_grant g = calendar_take(&calendar, t, 10);
        assert_int_equal(g.start_ps, t);
        assert_true(g.end_ps <= t + 2083);
    }
}

/* N requests at the same time end N slots later, whatever the size of the requests. */
static void test_saturation(void **state)
{
    (void)state;
    calendar_slots_init(&slots, SLOT_PS);
    for (unsigned i = 0; i < 100000; i++) {
        /* Each is put in when its predecessor of 500 slots ago is done: a closed loop. */
        const sim_time at = i < 500 ? 0 : (i - 500) * SLOT_PS;
        assert_int_equal(calendar_slots_take(&slots, at), i * SLOT_PS);
    }
    calendar_init(&calendar, 2080, 10);
    sim_time end = 0;
    uint64_t units = 0, random = 3;
    while (units < 100000) {
        const uint32_t n = 1 + (uint32_t)(fixture_random(&random) % 10);
        const sim_time at = units < 3000 ? 0 : (units - 3000) * 208;
        end = calendar_take(&calendar, at, n).end_ps;
        units += n;
    }
    assert_int_equal(end, units * 208);
}

/* Callers up to 1 us behind others find the slots that these have left free. */
static void test_out_of_order(void **state)
{
    (void)state;
    calendar_slots_init(&slots, 1000);
    /* One caller reserves every second slot, a microsecond ahead. */
    for (unsigned i = 0; i < 2000; i += 2) {
        assert_int_equal(calendar_slots_take(&slots, 1000000 + i * UINT64_C(1000)),
                         1000000 + i * UINT64_C(1000));
        assert_int_equal(calendar_slots_take(&slots, i * UINT64_C(1000)),
                         i < 1000 ? i * UINT64_C(1000) : (i + 1) * UINT64_C(1000));
    }
}

/* No slot ever gives more than it has, with random, disordered arrivals. */
static void test_capacity_is_never_exceeded(void **state)
{
    static uint32_t served[200000];
    uint64_t random = 4;
    sim_time t = 1000000;

    (void)state;
    calendar_slots_init(&slots, 1000);
    for (unsigned i = 0; i < 150000; i++) {
        t += fixture_random(&random) % 2000;
        const sim_time at = t - fixture_random(&random) % 1000000;
        const sim_time start = calendar_slots_take(&slots, at);
        assert_true(start >= at);
        assert_true(start < at + 1500000);
        assert_int_equal(served[start / 1000]++, 0);
    }
}

/* A queue longer than the window moves it on; nobody is lost. */
static void test_longer_than_the_window(void **state)
{
    sim_time last = 0;

    (void)state;
    calendar_slots_init(&slots, 1000);
    for (unsigned i = 0; i < 5 * CALENDAR_SLOTS; i++) {
        const sim_time start = calendar_slots_take(&slots, 0);
        assert_true(i == 0 || start > last);
        last = start;
    }
    assert_int_equal(last, (5 * CALENDAR_SLOTS - 1) * UINT64_C(1000));
}

/* Whole slots are those of a calendar of one unit a slot: the same starts, behind the window,
 * beyond it, and where it is full. */
static void test_slots_are_a_calendar_of_one_unit(void **state)
{
    uint64_t random = 5;
    sim_time t = UINT64_C(1) << 30;

    (void)state;
    calendar_init(&calendar, SLOT_PS, 1);
    calendar_slots_init(&slots, SLOT_PS);
    for (unsigned i = 0; i < 300000; i++) {
        const uint64_t r = fixture_random(&random);
        /* Stretches with less and with more work than there are slots for. */
        t += i / 5000 % 2 == 0 ? r % 10000 : r % 6000;
        if (i % 40000 == 39999)
            t += (r >> 8) % 3 * CALENDAR_SLOTS * SLOT_PS;
        const sim_time apart = (r >> 16) % (2 * CALENDAR_SLOTS) * SLOT_PS + (r >> 32) % SLOT_PS;
        const sim_time at = r >> 60 == 0 ? t - apart : r >> 60 == 1 ? t + apart / 8 : t;
        assert_int_equal(calendar_slots_take(&slots, at), calendar_take(&calendar, at, 1).start_ps);
    }
    assert_int_equal(slots.base, calendar.base);
    assert_memory_equal(slots.full, calendar.full, sizeof(slots.full));
}

/* Wherever the window ends, which moves on every CALENDAR_SLOTS / 2 slots. */
static void test_full_slots_are_seen(void **state)
{
    (void)state;
    calendar_init(&calendar, SLOT_PS, 1);
    for (uint64_t slot = 100; slot < 3 * CALENDAR_SLOTS; slot += 70) {
        for (unsigned i = 0; i < 40; i++)
            calendar_take(&calendar, (slot + i) * SLOT_PS, 1);
        for (unsigned i = 0; i <= 40; i++) {
            assert_int_equal(calendar_full_from(&calendar, slot + i),
                             (UINT64_C(1) << (40 - i)) - 1);
            assert_int_equal(calendar_idle_before(&calendar, slot + i),
                             i == 0 ? slot == 100 ? 64 : 30 : 0);
            assert_int_equal(calendar_next_free(&calendar, slot + i), slot + 40);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idle_starts_at_once),
        cmocka_unit_test(test_idle_units_are_served_in_their_time),
        cmocka_unit_test(test_saturation),
        cmocka_unit_test(test_out_of_order),
        cmocka_unit_test(test_capacity_is_never_exceeded),
        cmocka_unit_test(test_longer_than_the_window),
        cmocka_unit_test(test_slots_are_a_calendar_of_one_unit),
        cmocka_unit_test(test_full_slots_are_seen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
