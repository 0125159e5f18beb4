/* Means by batch means, precision, tables of statistics. */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "sim/engine/stat.h"
#include "tests/support/death.h"

/* SplitMix64: the test's own numbers, so that it says nothing about sim/random */
static uint64_t next_u64(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static double next_unit(uint64_t *state)
{
    return (double)(next_u64(state) >> 11) * 0x1p-53;
}

static double next_normal(uint64_t *state)
{
    const double u = 1.0 - next_unit(state), v = next_unit(state);
    return sqrt(-2.0 * log(u)) * cos(2.0 * M_PI * v);
}

static double next_exponential(uint64_t *state)
{
    return -log(1.0 - next_unit(state));
}

static void mean_of_known_values(void **state)
{
    (void)state;
    struct stat_mean mean;
    stat_mean_init(&mean);
    assert_true(isnan(stat_mean_value(&mean)));
    assert_true(isinf(stat_mean_ci95(&mean)));
    for (int i = 1; i <= 1000; i++)
        stat_mean_add(&mean, (double)i);
    assert_int_equal(mean.n, 1000);
    assert_true(stat_mean_value(&mean) == 500.5);
    assert_true(mean.min == 1.0 && mean.max == 1000.0);
}

static void zeroed_memory_is_a_mean(void **state)
{
    (void)state;
    struct stat_mean mean = { 0 };
    assert_true(isnan(stat_mean_value(&mean)));
    stat_mean_add(&mean, -3.0);
    assert_true(stat_mean_value(&mean) == -3.0 && mean.min == -3.0 && mean.max == -3.0);
}

/* No interval from nine batches, one from ten; equal values leave no doubt. */
static void interval_needs_ten_batches(void **state)
{
    (void)state;
    struct stat_mean mean = { 0 };
    for (int i = 0; i < 9; i++)
        stat_mean_add(&mean, 7.0);
    assert_true(isinf(stat_mean_ci95(&mean)));
    stat_mean_add(&mean, 7.0);
    assert_true(stat_mean_ci95(&mean) == 0.0);
}

/* 1, 2, ..., 10 as ten batches: t(9) * sqrt(82.5 / 9 / 10). */
static void interval_by_hand(void **state)
{
    (void)state;
    struct stat_mean mean = { 0 };
    for (int i = 1; i <= 10; i++)
        stat_mean_add(&mean, (double)i);
    assert_true(fabs(stat_mean_ci95(&mean) - 2.2622 * sqrt(82.5 / 9.0 / 10.0)) < 1e-12);
}

static void batches_merge_in_pairs(void **state)
{
    (void)state;
    struct stat_mean mean = { 0 };
    for (unsigned i = 0; i < STAT_BATCHES; i++)
        stat_mean_add(&mean, (double)i);
    assert_int_equal(mean.n_batches, STAT_BATCHES / 2);
    assert_int_equal(mean.batch_size, 2);
    for (unsigned i = 0; i < STAT_BATCHES / 2; i++)
        assert_true(mean.batch_mean[i] == 2.0 * i + 0.5);
    stat_mean_add(&mean, 100.0);
    assert_int_equal(mean.n_batches, STAT_BATCHES / 2); /* the new batch is half full */
    assert_int_equal(mean.in_batch, 1);
    stat_mean_add(&mean, 200.0);
    assert_true(mean.batch_mean[STAT_BATCHES / 2] == 150.0);
    for (unsigned i = 0; i < 100000; i++) {
        stat_mean_add(&mean, 1.0);
        assert_in_range(mean.n_batches, STAT_BATCHES / 2, STAT_BATCHES - 1);
        assert_int_equal(mean.n, mean.batch_size * mean.n_batches + mean.in_batch);
    }
}

static void students_t(void **state)
{
    (void)state;
    /* tables: df 1, 9, 30, 31, 40, 60, 120, infinity */
    static const struct {
        uint32_t df;
        double t;
    } known[] = { { 1, 12.7062 }, { 9, 2.2622 },  { 30, 2.0423 },  { 31, 2.0395 },
                  { 40, 2.0211 }, { 60, 2.0003 }, { 120, 1.9799 }, { 4000000000u, 1.95996 } };
    for (size_t i = 0; i < SIM_N_ELEMENTS(known); i++)
        assert_true(fabs(stat_student_t95(known[i].df) - known[i].t) < 1e-4);
    for (uint32_t df = 1; df < 500; df++)
        assert_true(stat_student_t95(df) > stat_student_t95(df + 1));
    /* Mean 2, deviation 1: t(2) / sqrt(3) / 2. */
    static const double values[] = { 1, 2, 3 };
    assert_true(fabs(stat_interval_ratio(values, 3) - 4.3027 / sqrt(3.0) / 2) < 1e-4);
}

/* Of `runs` intervals over n samples of a known mean, how many hold it, per mille. */
static unsigned coverage(double (*draw)(uint64_t *), double true_mean, unsigned n, unsigned runs)
{
    unsigned hits = 0;
    for (unsigned run = 0; run < runs; run++) {
        uint64_t seed = 1000003u * (run + 1);
        struct stat_mean mean = { 0 };
        for (unsigned i = 0; i < n; i++)
            stat_mean_add(&mean, draw(&seed));
        hits += fabs(stat_mean_value(&mean) - true_mean) <= stat_mean_ci95(&mean);
    }
    return hits * 1000 / runs;
}

/* 2000 intervals: a standard deviation is 0.5 %; the bounds are 4 of them wide. */
static void interval_covers_normal(void **state)
{
    (void)state;
    assert_in_range(coverage(next_normal, 0.0, 37, 2000), 930, 970);
    assert_in_range(coverage(next_normal, 0.0, 1000, 2000), 930, 970);
}

static void interval_covers_exponential(void **state)
{
    (void)state;
    assert_in_range(coverage(next_exponential, 1.0, 3000, 2000), 930, 970);
}

/* Neighbours that know of each other (lag-1 correlation 0.9): single samples taken for independent
 * would be right in about 35 % of all cases; batches of 128 and more are nearly independent. */
static double correlated; /* reset by the first draw of a run is not needed: it is stationary */
static double next_correlated(uint64_t *state)
{
    correlated = 0.9 * correlated + sqrt(1.0 - 0.81) * next_normal(state);
    return correlated;
}

static void interval_covers_correlated(void **state)
{
    (void)state;
    assert_in_range(coverage(next_correlated, 0.0, 8192, 600), 900, 980);
}

static void precision_stops_when_known(void **state)
{
    (void)state;
    uint64_t seed = 42;
    struct stat_mean mean = { 0 };
    struct stat_precision precision = { .ratio = 0.01, .min_samples = 100 };
    while (!stat_precision_reached(&precision, &mean)) {
        stat_mean_add(&mean, 10.0 + next_normal(&seed));
        assert_in_range(mean.n, 0, 100000);
    }
    assert_true(mean.n >= 100);
    assert_true(stat_mean_ci95(&mean) <= 0.01 * stat_mean_value(&mean));
    /* sd 1, mean 10: 1 % needs (1.96 * 1 / 0.1)^2 = 384 samples or so */
    assert_in_range(mean.n, 150, 900);
    stat_mean_add(&mean, 1e6); /* once reached, reached */
    assert_true(stat_precision_reached(&precision, &mean));
}

static void precision_waits(void **state)
{
    (void)state;
    struct stat_mean mean = { 0 };
    struct stat_precision never = { 0 }, few = { .ratio = 0.5, .min_batches = 12 };
    for (unsigned i = 0; i < 11; i++)
        stat_mean_add(&mean, 1.0);
    assert_false(stat_precision_reached(&few, &mean));
    stat_mean_add(&mean, 1.0);
    assert_true(stat_precision_reached(&few, &mean));
    assert_false(stat_precision_reached(&never, &mean));
    struct stat_precision samples = { .ratio = 0.5, .min_batches = 12, .min_samples = 1000 };
    assert_false(stat_precision_reached(&samples, &mean));
}

/* A mean of zero is never known to a share of itself, unless it does not vary at all. */
static void precision_of_zero(void **state)
{
    (void)state;
    struct stat_mean mean = { 0 };
    struct stat_precision precision = { .ratio = 0.1 };
    for (unsigned i = 0; i < 4096; i++) {
        stat_mean_add(&mean, (i & 1) != 0 ? 1.0 : -1.0);
        if (i == 62) /* 63 single samples, before they cancel out in pairs */
            assert_false(stat_precision_reached(&precision, &mean));
    }
    assert_true(stat_precision_reached(&precision, &mean));
}

static bool add_aborts(double value)
{
    const pid_t pid = fork();
    if (pid == 0) {
        struct stat_mean mean = { 0 };
        close(STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        stat_mean_add(&mean, value);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void not_a_number_is_our_fault(void **state)
{
    (void)state;
    assert_true(add_aborts((double)NAN));
    assert_true(add_aborts((double)INFINITY));
    assert_true(add_aborts(-(double)INFINITY));
    assert_false(add_aborts(0.0));
}

struct device {
    uint64_t reads, bytes, high_water, not_a_stat;
    struct stat_mean latency;
    struct stat_histogram size;
};

static const struct stat_desc device_stats[] = {
    STAT("reads", STAT_COUNTER, struct device, reads, "1", 0, "reads"),
    STAT("bytes", STAT_RATE, struct device, bytes, "byte/s", 0, "bytes"),
    STAT("high_water", STAT_MAX, struct device, high_water, "1", 0, "queue"),
    STAT("latency_ns", STAT_MEAN, struct device, latency, "ns", 0.001, "latency"),
    STAT("size_bytes", STAT_HISTOGRAM, struct device, size, "bytes", 0, "size"),
    { .kind = STAT_END },
};

static void clear_leaves_the_rest(void **state)
{
    (void)state;
    struct device device = { .reads = 1, .bytes = 2, .high_water = 3, .not_a_stat = 4 };
    stat_mean_add(&device.latency, 5.0);
    stat_histogram_add(&device.size, 6);
    stat_clear(device_stats, &device);
    assert_true(device.reads == 0 && device.bytes == 0 && device.high_water == 0);
    assert_int_equal(device.not_a_stat, 4);
    assert_true(isnan(stat_mean_value(&device.latency)));
    assert_int_equal(device.size.n, 0);
    stat_histogram_add(&device.size, 9);
    assert_int_equal(stat_histogram_quantile(&device.size, 0.5), 9);
    stat_release(device_stats, &device);
    stat_clear(NULL, &device);
}

/* A wire of 8 bytes a nanosecond and a frame of 1,000, and a server that is reserved ahead. */
struct resource {
    uint64_t bytes;
    struct stat_peak wire;
    struct stat_busy busy;
    struct stat_peak one;
};

static const struct stat_desc resource_stats[] = {
    STAT_BOUNDED("bytes", struct resource, bytes, "bytes", 0, "carried", wire),
    STAT_BOUND_ONLY("busy_ps", struct resource, busy.ps, "ps", "at work", one),
    { .kind = STAT_END },
};

static struct resource resource(uint64_t bytes, uint64_t busy_ps)
{
    return (struct resource){ .bytes = bytes,
                              .wire = { 8e9, 1000 },
                              .busy = { .ps = busy_ps },
                              .one = { (double)SIM_PS_PER_S, 0 } };
}

static void check(struct resource r)
{
    stat_check_peaks(resource_stats, &r, "dev.", SIM_PS_PER_US);
}

static void carries_too_much(void)
{
    check(resource(9001, 0));
}

static void works_too_long(void)
{
    check(resource(0, SIM_PS_PER_US + 1));
}

static void nothing_above_its_peak(void **state)
{
    (void)state;
    check(resource(9000, SIM_PS_PER_US)); /* 8,000 in a microsecond, and the slack */
    assert_aborts(carries_too_much, "dev.bytes is 9001 after 1000000 ps", "8e+09 per second", NULL);
    assert_aborts(works_too_long, "dev.busy_ps is 1000001", NULL);
    struct resource unbounded = resource(UINT64_MAX, 0);
    unbounded.wire.per_s = 0;
    check(unbounded);
}

static void share_of_its_peak(void **state)
{
    struct resource half = resource(4000, SIM_PS_PER_US / 4);
    char name[64];
    (void)state;
    assert_true(stat_utilization(&resource_stats[0], &half, SIM_PS_PER_US) == 0.5);
    assert_true(stat_utilization(&resource_stats[1], &half, SIM_PS_PER_US) == 0.25);
    assert_true(isnan(stat_utilization(&resource_stats[0], &half, 0)));
    half.wire.per_s = 0;
    assert_true(isnan(stat_utilization(&resource_stats[0], &half, SIM_PS_PER_US)));
    assert_string_equal(stat_utilization_name(&resource_stats[0], name), "utilization_ratio");
    assert_string_equal(
        stat_utilization_name(&(struct stat_desc){ .name = "dram_read_bytes" }, name),
        "dram_read_utilization_ratio");
    assert_string_equal(stat_utilization_name(&(struct stat_desc){ .name = "tlp_bytes" }, name),
                        "utilization_ratio");
    assert_string_equal(stat_utilization_name(&(struct stat_desc){ .name = "push_busy_ps" }, name),
                        "push_utilization_ratio");
}

static void work_counts_when_its_time_has_come(void **state)
{
    struct stat_busy busy = { .ps = 100 };
    (void)state;
    stat_busy_settle(&busy, 30);
    assert_int_equal(busy.ps, 70);
    busy.ps = 0; /* cleared: what was ahead counts from here on */
    stat_busy_settle(&busy, 10);
    assert_int_equal(busy.ps, 20);
    stat_busy_settle(&busy, 0);
    assert_int_equal(busy.ps, 30);
    stat_busy_settle(&busy, 50); /* a reservation that begins later: no more than there is */
    assert_int_equal(busy.ps, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mean_of_known_values),
        cmocka_unit_test(zeroed_memory_is_a_mean),
        cmocka_unit_test(interval_needs_ten_batches),
        cmocka_unit_test(interval_by_hand),
        cmocka_unit_test(batches_merge_in_pairs),
        cmocka_unit_test(students_t),
        cmocka_unit_test(interval_covers_normal),
        cmocka_unit_test(interval_covers_exponential),
        cmocka_unit_test(interval_covers_correlated),
        cmocka_unit_test(precision_stops_when_known),
        cmocka_unit_test(precision_waits),
        cmocka_unit_test(precision_of_zero),
        cmocka_unit_test(not_a_number_is_our_fault),
        cmocka_unit_test(clear_leaves_the_rest),
        cmocka_unit_test(nothing_above_its_peak),
        cmocka_unit_test(share_of_its_peak),
        cmocka_unit_test(work_counts_when_its_time_has_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
