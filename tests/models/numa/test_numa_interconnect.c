/*
 * Links whose flits have several slots (UPI): how long messages take, how many flits they need,
 * what waits for what. 10.4 GT/s x 20 lanes / 192 bits: a flit in 923 ps on one of two links.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/numa_fixture.h"

#define WAY         21000
#define FLIT        923
#define LINE        3692    /* a header flit and three of data */
#define DIRECTION   461.538 /* ps a flit, of both links together */
#define CALENDAR_PS ((sim_time)(CALENDAR_SLOTS * LINK_GROUP_FLITS * DIRECTION))

static struct interconnect links(struct fixture *f, bool passes)
{
    struct interconnect ic;

    fixture_skylake(f);
    f->interconnect.headers_pass_data = passes;
    interconnect_init(&ic, &f->interconnect, 2);
    return ic;
}

static uint64_t flits_taken(const struct interconnect *ic)
{
    return calendar_units_after(&ic->link[1].calendar, 0);
}

static sim_time send(struct interconnect *ic, enum message message, sim_time at_ps)
{
    return interconnect_send(ic, 0, 1, message, at_ps);
}

static void test_idle_messages(void **state)
{
    struct fixture f;

    (void)state;
    for (unsigned passes = 0; passes < 2; passes++) {
        struct interconnect ic = links(&f, passes != 0);
        for (unsigned m = 0; m < N_MESSAGES; m++) {
            const bool line = m == MESSAGE_DATA || m == MESSAGE_WRITEBACK || m == MESSAGE_IO_DATA;
            const sim_time at = 100000 * (m + 1);
            assert_int_equal(send(&ic, (enum message)m, at) - at, WAY + (line ? LINE : FLIT));
            /* 8 bytes a slot. */
            assert_int_equal(ic.bytes[m], line ? 80 : 8);
        }
        interconnect_release(&ic);
    }
}

/* Lines alone need four flits each. Two short messages beside each line go with its header flit; a
 * third needs a slot of a flit of its own. */
static void test_headers_share_flits(void **state)
{
    struct fixture f;

    (void)state;
    for (unsigned passes = 0; passes < 2; passes++)
        for (unsigned n_short = 0; n_short <= 4; n_short++) {
            const unsigned n = 600;
            struct interconnect ic = links(&f, passes != 0);
            for (unsigned i = 0; i < n; i++) {
                send(&ic, MESSAGE_DATA, 0);
                for (unsigned k = 0; k < n_short; k++)
                    send(&ic, MESSAGE_RESPONSE, 0);
            }
            const unsigned headers = n_short <= 2 ? n : (n * (n_short + 1) + 2) / 3;
            assert_in_range(flits_taken(&ic), 3 * n + headers,
                            3 * n + headers + (n_short > 2 ? n / 20 : 0));
            interconnect_release(&ic);
        }
}

/* Behind lines that wait a header waits, too, unless its class has a queue of its own. */
static void test_headers_behind_data(void **state)
{
    const unsigned n = 200;
    const sim_time queue = (sim_time)(n * 4 * DIRECTION);
    struct fixture f;

    (void)state;
    for (unsigned passes = 0; passes < 2; passes++) {
        struct interconnect ic = links(&f, passes != 0);
        for (unsigned i = 0; i < n; i++)
            send(&ic, MESSAGE_DATA, 1000);
        const sim_time wait = send(&ic, MESSAGE_RESPONSE, 1000) - 1000 - WAY - FLIT;
        /* In order, a stretch of ten flits more or less. */
        if (passes)
            assert_int_equal(wait, 0);
        else
            assert_in_range(wait, queue - 10000, queue + 5000);
        assert_int_equal(flits_taken(&ic), 4 * n);
        interconnect_release(&ic);
    }
}

/* Whatever comes in whatever order: no fewer flits than its data and headers need, no more than if
 * nothing were shared, and never more than the links carry. */
static void test_random_messages(void **state)
{
    struct fixture f;

    (void)state;
    for (uint64_t seed = 0; seed < 12; seed++) {
        struct interconnect ic = links(&f, seed % 2 != 0);
        const unsigned load = 1 + (unsigned)(seed / 2);
        uint64_t random = seed, n_lines = 0, n = 0;
        sim_time t = 0;
        while (t < CALENDAR_PS / 4) {
            const uint64_t r = fixture_random(&random);
            const bool line = r % 3 == 0;
            const sim_time at = t + (r >> 8) % 200000;
            const sim_time done = send(&ic, line ? MESSAGE_DATA : MESSAGE_REQUEST, at);
            assert_true(done >= at + WAY + FLIT * (line ? 3u : 1u));
            n++;
            n_lines += line;
            t += (r >> 32) % (1000 * load);
        }
        const uint64_t flits = flits_taken(&ic), headers = SIM_MAX(n_lines, (n + 2) / 3);
        assert_true(flits >= 3 * n_lines + headers && flits <= 3 * n_lines + n);
        for (unsigned s = 0; s < CALENDAR_SLOTS; s++) {
            assert_true(ic.link[1].calendar.used[s] <= LINK_GROUP_FLITS);
            assert_true(ic.link[1].headers->no_data[s] <= LINK_GROUP_FLITS);
            assert_true(ic.link[1].headers->free[s] <= 2 * LINK_GROUP_FLITS);
        }
        interconnect_release(&ic);
    }
}

/* Long after: what was left of old header flits is forgotten with them. */
static void test_slots_are_forgotten(void **state)
{
    struct fixture f;

    (void)state;
    struct interconnect ic = links(&f, true);
    for (unsigned i = 0; i < 100; i++)
        send(&ic, MESSAGE_DATA, 0);
    for (unsigned k = 1; k < 20; k++) {
        const sim_time at = k * CALENDAR_PS / 3;
        assert_int_equal(send(&ic, MESSAGE_REQUEST, at) - at, WAY + FLIT);
    }
    assert_true(ic.link[1].calendar.base > 0);
    assert_int_equal(ic.link[1].headers->base, ic.link[1].calendar.base);
    interconnect_release(&ic);
}

/* Both sockets read each other: requests cost the data of the other direction little, which is what
 * was measured ("scales very well", docs/sources.md#b); without shared flits a fifth. */
static double read_each_other(bool passes, uint32_t slots)
{
    const unsigned depth = 300;
    static sim_time ready[2][300];
    struct fixture f;
    uint64_t lines = 0;

    fixture_skylake(&f);
    f.interconnect.headers_pass_data = passes;
    f.interconnect.flit_slots = slots;
    struct numa *n = fixture_new(&f);
    for (unsigned s = 0; s < 2; s++)
        for (unsigned i = 0; i < depth; i++)
            ready[s][i] = 1000 + i * 300;
    for (uint64_t i = 0;; i++) {
        unsigned socket = 0, slot = 0;
        for (unsigned s = 0; s < 2; s++)
            for (unsigned k = 0; k < depth; k++)
                if (ready[s][k] < ready[socket][slot])
                    socket = s, slot = k;
        const sim_time at = ready[socket][slot];
        if (at > 15 * SIM_PS_PER_US)
            break;
        const struct hpa hpa = fixture_hpa(n, 1 - socket, 64 * i);
        ready[socket][slot] = numa_load(n, 24 * socket + slot % 24, hpa, at, NULL).done_ps;
        lines += at > 5 * SIM_PS_PER_US;
    }
    numa_free(n);
    return (double)lines * 64 / 2 / 10000;
}

static void test_both_directions(void **state)
{
    (void)state;
    const double ordered = read_each_other(false, 3), passing = read_each_other(true, 3),
                 alone = read_each_other(false, 1);
    print_message("each way: %.1f GB/s in order, %.1f past data, %.1f with flits of their own\n",
                  ordered, passing, alone);
    assert_true(ordered > 30.5 && ordered < 34.7);
    assert_true(passing > 33.5 && passing < 34.7);
    assert_true(alone > 26.5 && alone < 27.8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idle_messages),       cmocka_unit_test(test_headers_share_flits),
        cmocka_unit_test(test_headers_behind_data), cmocka_unit_test(test_random_messages),
        cmocka_unit_test(test_slots_are_forgotten), cmocka_unit_test(test_both_directions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
