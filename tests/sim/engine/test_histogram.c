/* The log-linear histogram: exact counts, bounded error of quantiles, whole range. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sim/engine/stat.h"

static uint64_t next_u64(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void empty(void **state)
{
    (void)state;
    struct stat_histogram h;
    stat_histogram_init(&h);
    assert_int_equal(stat_histogram_quantile(&h, 0.5), 0);
    assert_int_equal(h.n, 0);
    stat_histogram_release(&h);
}

static void small_values_are_exact(void **state)
{
    (void)state;
    struct stat_histogram h = { 0 };
    for (uint64_t v = 100; v-- > 0;)
        stat_histogram_add(&h, v);
    for (unsigned pct = 1; pct <= 100; pct++)
        assert_int_equal(stat_histogram_quantile(&h, pct / 100.0), pct - 1);
    assert_int_equal(stat_histogram_quantile(&h, 0.0), 0);
    assert_int_equal(h.min, 0);
    assert_int_equal(h.max, 99);
    stat_histogram_release(&h);
}

/* Values spread over all magnitudes: each quantile within 2^-8 of the exact order statistic. */
static void quantile_error_is_bounded(void **state)
{
    (void)state;
    enum { N = 20000 };
    static uint64_t value[N];
    for (uint64_t seed = 1; seed <= 5; seed++) {
        uint64_t random = seed;
        struct stat_histogram h = { 0 };
        for (unsigned i = 0; i < N; i++) {
            const unsigned shift = (unsigned)(next_u64(&random) % 64);
            value[i] = next_u64(&random) >> shift;
            stat_histogram_add(&h, value[i]);
        }
        qsort(value, N, sizeof(value[0]), compare);
        for (unsigned k = 1; k <= 1000; k++) {
            const uint64_t exact = value[N / 1000 * k - 1];
            const uint64_t found = stat_histogram_quantile(&h, k / 1000.0);
            const double error = fabs((double)found - (double)exact);
            assert_true(error <= (double)exact * 0x1p-8);
        }
        assert_int_equal(stat_histogram_quantile(&h, 0.0), value[0]);
        assert_int_equal(stat_histogram_quantile(&h, 1.0), value[N - 1]);
        stat_histogram_release(&h);
    }
}

struct walk {
    uint64_t n, next_lo;
    const uint64_t *boundary;
};

static void check_bucket(void *context, uint64_t lo, uint64_t hi, uint64_t count)
{
    struct walk *walk = context;
    assert_true(hi > lo && lo >= walk->next_lo && count > 0);
    assert_true((double)(hi - lo) <= SIM_MAX(1.0, (double)lo * 0x1p-7));
    walk->next_lo = hi;
    walk->n += count;
}

static void buckets_ascend_and_hold_all(void **state)
{
    (void)state;
    uint64_t random = 7;
    struct stat_histogram h = { 0 };
    struct walk walk = { 0 };
    for (unsigned i = 0; i < 5000; i++)
        stat_histogram_add(&h, next_u64(&random) >> (next_u64(&random) % 64));
    stat_histogram_each(&h, check_bucket, &walk);
    assert_int_equal(walk.n, 5000);
    stat_histogram_release(&h);
}

struct holds {
    uint64_t value;
    unsigned times;
};

static void count_holding(void *context, uint64_t lo, uint64_t hi, uint64_t count)
{
    struct holds *holds = context;
    assert_int_equal(count, 1);
    holds->times += lo <= holds->value && (holds->value < hi || hi == UINT64_MAX);
}

/* Both sides of every power of two, and the ends of the range, lie in the bucket that says so. */
static void edges_lie_in_their_bucket(void **state)
{
    (void)state;
    for (unsigned bit = 0; bit < 64; bit++) {
        for (int d = -1; d <= 1; d++) {
            struct stat_histogram h = { 0 };
            struct holds holds = { .value = (UINT64_C(1) << bit) + (uint64_t)(int64_t)d };
            stat_histogram_add(&h, holds.value);
            stat_histogram_each(&h, count_holding, &holds);
            assert_int_equal(holds.times, 1);
            assert_int_equal(stat_histogram_quantile(&h, 0.5), holds.value); /* clamped */
            stat_histogram_release(&h);
        }
    }
    struct stat_histogram h = { 0 };
    struct holds holds = { .value = UINT64_MAX };
    stat_histogram_add(&h, UINT64_MAX);
    stat_histogram_each(&h, count_holding, &holds);
    assert_int_equal(holds.times, 1);
    stat_histogram_release(&h);
}

static void clear_keeps_rows(void **state)
{
    (void)state;
    struct stat_histogram h = { 0 };
    stat_histogram_add(&h, 1000000);
    const uint64_t *row = NULL;
    for (unsigned i = 0; i < STAT_ROWS; i++)
        row = h.row[i] != NULL ? h.row[i] : row;
    stat_histogram_clear(&h);
    assert_int_equal(h.n, 0);
    stat_histogram_add(&h, 1000001);
    unsigned kept = 0;
    for (unsigned i = 0; i < STAT_ROWS; i++)
        kept += h.row[i] == row && row != NULL;
    assert_int_equal(kept, 1);
    assert_int_equal(h.n, 1);
    assert_int_equal(h.min, 1000001);
    assert_true(h.sum == 1000001.0);
    stat_histogram_release(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty),
        cmocka_unit_test(small_values_are_exact),
        cmocka_unit_test(quantile_error_is_bounded),
        cmocka_unit_test(buckets_ascend_and_hold_all),
        cmocka_unit_test(edges_lie_in_their_bucket),
        cmocka_unit_test(clear_keeps_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
