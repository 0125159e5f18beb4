/*
 * Two cores with one L2: accesses and snoops for which the compiler knows the caches' shape do what
 * the common ones do, step by step.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/numa_fixture.h"
#include "tests/support/test.h"

#define CORES 8u

static struct numa *clovertown(struct fixture *f, bool l1i, bool known)
{
    fixture_clovertown(f);
    f->cache.l1i_bytes = l1i ? 32768 : 0;
    f->cache.l1i_ways = 8;
    f->cache.prefetch = (struct prefetch_params){
        .streams = 16, .ahead = 4, .trigger = 4, .in_flight = 8, .pairs = true
    };
    struct numa *n = fixture_new(f);
    for (unsigned i = 0; i < CORES / 2; i++) {
        assert_true(n->core_group[i].pair);
        n->core_group[i].pair = known;
    }
    return n;
}

/* Lines near each other, in a few pages far apart that share sets. */
static uint64_t random_line(uint64_t *random)
{
    const uint64_t r = fixture_random(random);
    return (r >> 8 & 31) * 4096 + (r >> 16 & 3) * 64 + (r & 127);
}

struct step {
    unsigned core, what;
    struct hpa hpa;
    sim_time at_ps;
};

static struct numa_result take(struct numa *n, const struct step *s)
{
    struct numa_result r = { 0 };

    if (s->what < 6)
        return numa_load(n, s->core, s->hpa, s->at_ps, NULL);
    if (s->what < 10)
        return numa_store(n, s->core, s->hpa, s->at_ps, NULL);
    if (s->what < 12 && numa_has_l1i(n))
        return numa_fetch(n, s->core, s->hpa, s->at_ps);
    if (s->what < 14)
        r.done_ps = numa_dma_read(n, 0, s->hpa, LINE_BYTES, s->at_ps, NULL, &r.source);
    else
        r.done_ps = numa_dma_write(n, 0, s->hpa, LINE_BYTES, s->at_ps, NULL, &r.source);
    return r;
}

static void check(const struct numa *n)
{
    const char *why;
    uint64_t line;

    if (!numa_check_invariants(n, &why, &line))
        fail_msg("line %llu: %s", (unsigned long long)line, why);
}

static void same_known_and_common(bool l1i)
{
    struct fixture f[2];
    struct numa *known = clovertown(&f[0], l1i, true), *common = clovertown(&f[1], l1i, false);
    uint64_t random = 1;
    sim_time at_ps = 0;

    for (unsigned i = 0; i < test_rounds(200000, 10); i++) {
        const uint64_t r = fixture_random(&random);
        const struct step s = { (unsigned)(r % CORES),
                                (unsigned)(r >> 8 & 15),
                                { random_line(&random) * LINE_BYTES },
                                at_ps };
        const struct numa_result a = take(known, &s), b = take(common, &s);
        assert_int_equal(a.done_ps, b.done_ps);
        assert_int_equal(a.source, b.source);
        /* Cores are behind each other now and then. */
        at_ps += r >> 16 & 0x3fff;
        at_ps -= SIM_MIN(at_ps, r >> 32 & 0xfff);
        if (i % 5000 == 0) {
            check(known);
            check(common);
        }
    }
    for (unsigned c = 0; c < CORES; c++) {
        assert_int_equal(known->private_count[c].l2_accesses, common->private_count[c].l2_accesses);
        assert_int_equal(known->private_count[c].l2_misses, common->private_count[c].l2_misses);
        assert_int_equal(known->private_count[c].prefetches, common->private_count[c].prefetches);
        assert_int_equal(known->private_count[c].prefetched, common->private_count[c].prefetched);
    }
    assert_true(common->private_count[0].prefetched > 0);
    numa_free(known);
    numa_free(common);
}

static void test_data(void **state)
{
    (void)state;
    same_known_and_common(false);
}

static void test_data_and_instructions(void **state)
{
    (void)state;
    same_known_and_common(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data),
        cmocka_unit_test(test_data_and_instructions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
