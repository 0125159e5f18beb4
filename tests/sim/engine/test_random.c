/* Random streams: known answers, independence of instances, and the distributions. */
#include <math.h>

#include "sim/engine/sim.h"
#include "tests/support/death.h"

#define N 200000

/* xoshiro256** from state { 1, 2, 3, 4 }: the test vector of the rand_xoshiro crate, which comes
 * from the authors' C code (prng.di.unimi.it). */
static void known_answers(void **state)
{
    static const uint64_t expected[] = {
        UINT64_C(11520),
        UINT64_C(0),
        UINT64_C(1509978240),
        UINT64_C(1215971899390074240),
        UINT64_C(1216172134540287360),
        UINT64_C(607988272756665600),
        UINT64_C(16172922978634559625),
        UINT64_C(8476171486693032832),
        UINT64_C(10595114339597558777),
        UINT64_C(2904607092377533576),
    };
    struct sim_random random = { { 1, 2, 3, 4 } };

    (void)state;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(expected); i++)
        assert_true(sim_random_u64(&random) == expected[i]);
}

/* Bits in which the first 64 values of two streams differ; 2048 expected of 4096. */
static unsigned distance(uint64_t seed_a, const char *a, uint64_t seed_b, const char *b)
{
    struct sim_random x, y;
    unsigned bits = 0;

    sim_random_init(&x, seed_a, a);
    sim_random_init(&y, seed_b, b);
    for (unsigned i = 0; i < 64; i++)
        bits += (unsigned)__builtin_popcountll(sim_random_u64(&x) ^ sim_random_u64(&y));
    return bits;
}

static void streams_depend_on_seed_and_name(void **state)
{
    (void)state;
    assert_int_equal(distance(1, "nic0", 1, "nic0"), 0);
    assert_in_range(distance(1, "nic0", 2, "nic0"), 1850, 2250);
    assert_in_range(distance(1, "nic0", 1, "nic1"), 1850, 2250);
    assert_in_range(distance(0, "", 0, "a"), 1850, 2250);
    assert_in_range(distance(1, "nic0", 1, "nic00"), 1850, 2250);
}

static void below_is_uniform(void **state)
{
    static const uint64_t bounds[] = { 1, 2, 3, 7, 64, 100 };
    struct sim_random random;

    (void)state;
    sim_random_init(&random, 3, "below");
    for (unsigned b = 0; b < SIM_N_ELEMENTS(bounds); b++) {
        unsigned count[100] = { 0 };
        double expected = (double)N / (double)bounds[b], chi2 = 0;

        for (unsigned i = 0; i < N; i++) {
            uint64_t value = sim_random_below(&random, bounds[b]);

            assert_true(value < bounds[b]);
            count[value]++;
        }
        for (uint64_t v = 0; v < bounds[b]; v++)
            chi2 += (count[v] - expected) * (count[v] - expected) / expected;
        /* mean b - 1, variance 2 (b - 1): five standard deviations */
        assert_true(chi2 < (double)bounds[b] + 5 * sqrt(2.0 * (double)bounds[b]));
    }
    for (unsigned i = 0; i < 1000; i++) /* two thirds of all values: rejection at work */
        assert_true(sim_random_below(&random, UINT64_C(3) << 62) < UINT64_C(3) << 62);
}

/* With a bound of 3 * 2^62, a modulo gives a half to the lowest third of the range, and a product
 * without rejection gives a half to one of the remainders of 3. */
static void below_has_no_bias(void **state)
{
    struct sim_random random;
    unsigned third[3] = { 0 }, remainder[3] = { 0 };

    (void)state;
    sim_random_init(&random, 4, "bias");
    for (unsigned i = 0; i < N; i++) {
        uint64_t value = sim_random_below(&random, UINT64_C(3) << 62);

        third[value >> 62]++;
        remainder[value % 3]++;
    }
    for (unsigned i = 0; i < 3; i++) { /* five standard deviations */
        assert_in_range(third[i], N / 3 - 1100, N / 3 + 1100);
        assert_in_range(remainder[i], N / 3 - 1100, N / 3 + 1100);
    }
}

static void unit_is_uniform(void **state)
{
    struct sim_random random;
    double sum = 0, squares = 0;

    (void)state;
    sim_random_init(&random, 5, "unit");
    for (unsigned i = 0; i < N; i++) {
        double unit = sim_random_unit(&random);

        assert_true(unit >= 0 && unit < 1);
        sum += unit;
        squares += unit * unit;
    }
    assert_true(fabs(sum / N - 0.5) < 5 * sqrt(1.0 / 12 / N));
    assert_true(fabs(squares / N - 1.0 / 3) < 5 * sqrt(4.0 / 45 / N));
}

/* By inversion of the same draw: equal to the C library's logarithm within rounding. */
static void exponential_is_the_logarithm(void **state)
{
    struct sim_random random, copy;
    double sum = 0;

    (void)state;
    sim_random_init(&random, 6, "exponential");
    for (unsigned i = 0; i < N; i++) {
        copy = random;
        double value = sim_random_exponential(&random, 1.0);
        double expected = -log(((double)(sim_random_u64(&copy) >> 11) + 1) * 0x1p-53);

        assert_true(fabs(value - expected) <= 1e-15 + 4e-16 * expected);
        assert_true(value >= 0);
        sum += value;
    }
    assert_true(fabs(sum / N - 1) < 5 / sqrt(N));
    for (unsigned i = 0; i < 4; i++)
        assert_memory_equal(&random.s[i], &copy.s[i], sizeof(random.s[i]));
}

static void extreme_draws_are_finite(void **state)
{
    /* u64() of these states is 5 * 0 rotated, 0, and the greatest: u = 2^-53 and u = 1 */
    struct sim_random lowest = { { 1, 0, 0, 0 } };
    double value = sim_random_exponential(&lowest, 1.0);

    (void)state;
    assert_true(value > 36.7 && value < 36.8); /* 53 ln 2 */
    assert_true(sim_random_exponential(&(struct sim_random){ { 1, 0, 0, 0 } }, 0) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(streams_depend_on_seed_and_name),
        cmocka_unit_test(below_is_uniform),
        cmocka_unit_test(below_has_no_bias),
        cmocka_unit_test(unit_is_uniform),
        cmocka_unit_test(exponential_is_the_logarithm),
        cmocka_unit_test(extreme_draws_are_finite),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
