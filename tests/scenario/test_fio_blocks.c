/* fio's random blocks against the formulas of their distributions; the check of what is read, on an
 * engine that loses and misplaces data. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "workloads/fio/fio_internal.h"
#include "workloads/programs/programs_internal.h"

#define N     1000u
#define DRAWS 200000u

/* ---- Distributions --------------------------------------------------------------------------- */

/* Frequencies of all ranks against k^-theta / zeta: chi-square of 999 degrees of freedom is below
 * 1170 with a probability of 0.9999. */
static void test_zipf(void **state)
{
    static const double thetas[] = { 0.5, 0.99, 1.0, 1.2, 2.0 };
    (void)state;
    for (unsigned t = 0; t < SIM_N_ELEMENTS(thetas); t++) {
        static unsigned count[N + 1];
        struct sim_random random;
        struct fio_zipf zipf;
        double zeta = 0, chi = 0, rest = 0, rest_expected = 0;
        unsigned classes = 0;
        memset(count, 0, sizeof(count));
        sim_random_init(&random, 1, "zipf");
        fio_zipf_init(&zipf, N, thetas[t]);
        for (unsigned i = 0; i < DRAWS; i++) {
            const uint64_t rank = fio_zipf_draw(&zipf, &random);
            assert_true(rank >= 1 && rank <= N);
            count[rank]++;
        }
        for (unsigned k = 1; k <= N; k++)
            zeta += pow(k, -thetas[t]);
        for (unsigned k = 1; k <= N; k++) {
            const double expected = DRAWS * pow(k, -thetas[t]) / zeta;
            rest += expected < 5 ? count[k] : 0;
            rest_expected += expected < 5 ? expected : 0;
            if (expected < 5)
                continue;
            chi += (count[k] - expected) * (count[k] - expected) / expected;
            classes++;
        }
        if (rest_expected > 0)
            chi += (rest - rest_expected) * (rest - rest_expected) / rest_expected;
        /* Mean and deviation of chi-square: n, sqrt(2 n). */
        if (chi > classes + 4 * sqrt(2.0 * classes) + 4)
            fail_msg("theta %g: chi-square %g of %u classes", thetas[t], chi, classes);
    }
}

static void draw(const struct fio_options *options, unsigned count[N])
{
    struct sim_random random;
    struct fio_draw draw;
    memset(count, 0, N * sizeof(*count));
    sim_random_init(&random, 7, "draw");
    fio_draw_init(&draw, options, N, &random);
    for (unsigned i = 0; i < DRAWS; i++) {
        const uint64_t block = fio_draw_block(&draw, &random);
        assert_true(block < N);
        count[block]++;
    }
}

static int descending(const void *a, const void *b)
{
    const unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
    return (x < y) - (x > y);
}

static double share(const unsigned *count, unsigned from, unsigned to)
{
    double sum = 0;
    for (unsigned i = from; i < to; i++)
        sum += count[i];
    return sum / DRAWS;
}

/* The most frequent block has 1 / zeta of all; hot blocks are no neighbours. */
static void test_spread(void **state)
{
    struct fio_options options;
    unsigned count[N], hottest = 0;
    (void)state;
    fio_options_default(&options);
    options.distribution = FIO_ZIPF;
    options.theta = 1.2;
    draw(&options, count);
    for (unsigned i = 0; i < N; i++)
        hottest = count[i] > count[hottest] ? i : hottest;
    double zeta = 0;
    for (unsigned k = 1; k <= N; k++)
        zeta += pow(k, -1.2);
    assert_true(fabs(count[hottest] * zeta / DRAWS - 1) < 0.02);
    assert_true(count[(hottest + 1) % N] < count[hottest] / 4);
    unsigned sorted[N];
    memcpy(sorted, count, sizeof(sorted));
    qsort(sorted, N, sizeof(*sorted), descending);
    assert_true(fabs((double)sorted[0] / sorted[1] / pow(2, 1.2) - 1) < 0.05); /* a permutation */
    options.centre = 0.25; /* the most frequent is there */
    draw(&options, count);
    for (unsigned i = 0; i < N; i++)
        assert_true(count[i] <= count[(unsigned)(0.25 * (N - 1))]);
}

static void test_pareto(void **state)
{
    static const double h[] = { 0.1, 0.2, 0.4 };
    (void)state;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(h); i++) {
        struct fio_options options;
        unsigned count[N];
        fio_options_default(&options);
        options.distribution = FIO_PARETO;
        options.theta = h[i];
        draw(&options, count);
        qsort(count, N, sizeof(*count), descending);
        const double hot = share(count, 0, (unsigned)(h[i] * N));
        if (fabs(hot - (1 - h[i])) > 0.01)
            fail_msg("h %g: %g of the requests", h[i], hot);
    }
}

static void test_normal(void **state)
{
    struct fio_options options;
    unsigned count[N];
    double mean = 0, square = 0;
    (void)state;
    fio_options_default(&options);
    options.distribution = FIO_NORMAL;
    options.theta = 5;
    draw(&options, count);
    for (unsigned i = 0; i < N; i++) {
        mean += (double)count[i] / DRAWS * i;
        square += (double)count[i] / DRAWS * i * i;
    }
    assert_true(fabs(mean - 499.5) < 1);
    assert_true(fabs(sqrt(square - mean * mean) - 50) < 0.5);
}

static void test_zones(void **state)
{
    struct fio_options options;
    unsigned count[N];
    (void)state;
    fio_options_default(&options);
    options.distribution = FIO_ZONED;
    options.n_zones = 4;
    options.zone[0] = (struct fio_zone){ 60, 10 };
    options.zone[1] = (struct fio_zone){ 30, 20 };
    options.zone[2] = (struct fio_zone){ 8, 30 };
    options.zone[3] = (struct fio_zone){ 2, 40 };
    draw(&options, count);
    assert_true(fabs(share(count, 0, 100) - 0.6) < 0.005);
    assert_true(fabs(share(count, 100, 300) - 0.3) < 0.005);
    assert_true(fabs(share(count, 300, 600) - 0.08) < 0.003);
    assert_true(fabs(share(count, 600, 1000) - 0.02) < 0.002);
}

/* ---- What is read ---------------------------------------------------------------------------- */

#define UNIT  512u
#define UNITS 64u

/* A device of marks, one for each unit, and a buffer for each of four requests. */
struct rig {
    struct programs all;
    struct program program;
    struct fio_device device;
    struct fio_job job;
    struct fio_file file;
    struct fio_io_u io_u[4];
    uint64_t media[UNITS], buffer[4][UNITS];
};

static void rig_put(struct fio_io_u *io_u, uint64_t at, uint64_t tag, uint64_t bytes)
{
    uint64_t *buffer = io_u->state;
    for (uint64_t i = 0; i < bytes; i += UNIT)
        buffer[(at + i) / UNIT] = payload_mark_add(tag, i);
}

static bool rig_same(struct fio_io_u *io_u, uint64_t at, uint64_t tag, uint64_t bytes,
                     struct payload_difference *is)
{
    const uint64_t *buffer = io_u->state;
    for (uint64_t i = 0; i < bytes; i += UNIT) {
        *is = (struct payload_difference){ buffer[(at + i) / UNIT], payload_mark_add(tag, i) };
        if (is->found != is->expected)
            return false;
    }
    return true;
}

static const struct fio_engine_ops rig_engine = { .name = "rig", .put = rig_put, .same = rig_same };

static int make_rig(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    rig->program.all = &rig->all;
    rig->device.engine = &rig_engine;
    rig->job.device = &rig->device;
    rig->file.bytes = UNITS * UNIT;
    rig->file.unit_bytes = UNIT;
    for (unsigned i = 0; i < 4; i++) {
        rig->io_u[i].job = &rig->job;
        rig->io_u[i].state = rig->buffer[i];
    }
    fio_data_init(&rig->file, &rig->program, false);
    *state = rig;
    return 0;
}

static int free_rig(void **state)
{
    struct rig *rig = *state;
    fio_data_release(&rig->file);
    for (unsigned i = 0; i < rig->program.n_owned; i++)
        free(rig->program.owned[i]);
    free(rig->program.owned);
    free(rig);
    return 0;
}

static void begin(struct rig *rig, unsigned i, bool write, unsigned unit, unsigned n)
{
    rig->io_u[i].write = write;
    rig->io_u[i].status = 0;
    rig->io_u[i].offset = unit * UNIT;
    rig->io_u[i].bytes = n * UNIT;
    fio_data_begin(&rig->file, &rig->io_u[i]);
}

/* The device does what it should. */
static void transfer(struct rig *rig, unsigned i)
{
    const struct fio_io_u *io_u = &rig->io_u[i];
    uint64_t *media = &rig->media[io_u->offset / UNIT];
    if (io_u->write)
        memcpy(media, rig->buffer[i], io_u->bytes / UNIT * sizeof(*media));
    else
        memcpy(rig->buffer[i], media, io_u->bytes / UNIT * sizeof(*media));
}

/* UNITS: it was right; else the first unit that was wrong. */
static uint64_t end(struct rig *rig, unsigned i)
{
    struct payload_difference is;
    uint64_t at = 0;
    return fio_data_end(&rig->file, &rig->io_u[i], &is, &at) ? UNITS : at / UNIT;
}

static uint64_t whole(struct rig *rig, bool write, unsigned unit, unsigned n)
{
    begin(rig, 0, write, unit, n);
    transfer(rig, 0);
    return end(rig, 0);
}

static void test_right(void **state)
{
    struct rig *rig = *state;
    assert_int_equal(whole(rig, false, 0, UNITS), UNITS); /* never written: zeros */
    assert_false(fio_data_written(&rig->file, 0, UNIT));
    assert_int_equal(whole(rig, true, 3, 8), UNITS);
    assert_int_equal(whole(rig, true, 5, 1), UNITS);
    assert_int_equal(whole(rig, true, 30, 10), UNITS); /* over the end of a chunk */
    assert_int_equal(whole(rig, false, 0, UNITS), UNITS);
    assert_true(fio_data_written(&rig->file, 3 * UNIT, 8 * UNIT));
    assert_false(fio_data_written(&rig->file, 3 * UNIT, 9 * UNIT));
}

/* A write that was lost, one that went elsewhere, one half of which came, data that did not
 * arrive. */
static void test_wrong(void **state)
{
    struct rig *rig = *state;
    whole(rig, true, 0, 16);
    begin(rig, 0, true, 4, 2);
    end(rig, 0);
    assert_int_equal(whole(rig, false, 0, 16), 4);
    whole(rig, true, 4, 2);
    begin(rig, 0, true, 8, 1);
    rig->media[9] = rig->buffer[0][0];
    end(rig, 0);
    assert_int_equal(whole(rig, false, 9, 1), 9);
    assert_int_equal(whole(rig, false, 0, 16), 8);
    whole(rig, true, 8, 2);
    begin(rig, 0, true, 10, 4);
    memcpy(&rig->media[10], rig->buffer[0], 2 * sizeof(rig->media[0]));
    end(rig, 0);
    assert_int_equal(whole(rig, false, 0, 16), 12);
    begin(rig, 0, false, 0, 1); /* the buffer is as it was */
    assert_int_equal(end(rig, 0), 0);
    begin(rig, 0, false, 20, 1); /* the same of zeros */
    assert_int_equal(end(rig, 0), 20);
}

/* What a write makes uncertain is not judged, what lies beside it is. */
static void test_races(void **state)
{
    struct rig *rig = *state;
    whole(rig, true, 0, 8);
    begin(rig, 1, false, 0, 8);
    begin(rig, 2, true, 2, 2);
    transfer(rig, 1); /* the old data */
    transfer(rig, 2);
    assert_int_equal(end(rig, 1), UNITS); /* before the write ends */
    begin(rig, 1, false, 0, 8);
    transfer(rig, 1);
    assert_int_equal(end(rig, 2), UNITS);
    assert_int_equal(end(rig, 1), UNITS); /* after */
    begin(rig, 1, false, 0, 8);
    begin(rig, 2, true, 2, 2);
    transfer(rig, 1);
    rig->buffer[1][5] = 0;
    transfer(rig, 2);
    end(rig, 2);
    assert_int_equal(end(rig, 1), 5);
    /* Two writes at once leave the one or the other, until the next. */
    begin(rig, 1, true, 6, 1);
    begin(rig, 2, true, 6, 1);
    transfer(rig, 2);
    transfer(rig, 1);
    end(rig, 1);
    end(rig, 2);
    assert_int_equal(whole(rig, false, 6, 1), UNITS);
    whole(rig, true, 6, 1);
    rig->media[6]++;
    assert_int_equal(whole(rig, false, 6, 1), 6);
    /* One that failed has written or not. */
    begin(rig, 1, true, 7, 1);
    rig->io_u[1].status = -5;
    end(rig, 1);
    assert_int_equal(whole(rig, false, 7, 1), UNITS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zipf),
        cmocka_unit_test(test_spread),
        cmocka_unit_test(test_pareto),
        cmocka_unit_test(test_normal),
        cmocka_unit_test(test_zones),
        cmocka_unit_test_setup_teardown(test_right, make_rig, free_rig),
        cmocka_unit_test_setup_teardown(test_wrong, make_rig, free_rig),
        cmocka_unit_test_setup_teardown(test_races, make_rig, free_rig),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
