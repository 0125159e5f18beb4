/* Arrays of zeros: what is kept is zero again, and no more is kept than was said. */
#include <stdbool.h>
#include <string.h>

#include "sim/engine/zeroed.h"
#include "tests/support/test.h"

#define HUGE_BYTES ((size_t)2 << 20)

static bool is_zero(const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

static void nothing_is_kept_unless_asked_for(void **state)
{
    (void)state;
    void *array = sim_zeroed_new(HUGE_BYTES);
    sim_zeroed_free(array, HUGE_BYTES);
    assert_int_equal(sim_zeroed_kept().bytes, 0);
}

static void what_was_kept_is_zero_again(void **state)
{
    (void)state;
    sim_zeroed_keep(2 * HUGE_BYTES);
    uint8_t *array = sim_zeroed_new(HUGE_BYTES);
    memset(array, 0xa5, HUGE_BYTES);
    sim_zeroed_free(array, HUGE_BYTES);
    assert_int_equal(sim_zeroed_kept().bytes, HUGE_BYTES);
    uint8_t *again = sim_zeroed_new(HUGE_BYTES);
    assert_ptr_equal(again, array);
    assert_true(is_zero(again, HUGE_BYTES));
    sim_zeroed_free(again, HUGE_BYTES);
    sim_zeroed_keep(0);
}

static void other_sizes_are_not_kept(void **state)
{
    static const size_t sizes[] = { 4096, HUGE_BYTES / 2, HUGE_BYTES - 1, 2 * HUGE_BYTES };
    (void)state;
    sim_zeroed_keep(16 * HUGE_BYTES);
    for (unsigned i = 0; i < 4; i++) {
        uint8_t *array = sim_zeroed_new(sizes[i]);
        array[sizes[i] - 1] = 1;
        sim_zeroed_free(array, sizes[i]);
        assert_int_equal(sim_zeroed_kept().bytes, 0);
    }
    sim_zeroed_keep(0);
}

static void no_more_is_kept_than_was_said(void **state)
{
    void *array[4];
    (void)state;
    sim_zeroed_keep(3 * HUGE_BYTES);
    for (unsigned i = 0; i < 4; i++)
        array[i] = sim_zeroed_new(HUGE_BYTES);
    for (unsigned i = 0; i < 4; i++)
        sim_zeroed_free(array[i], HUGE_BYTES);
    assert_int_equal(sim_zeroed_kept().bytes, 3 * HUGE_BYTES);
    sim_zeroed_keep(HUGE_BYTES);
    assert_int_equal(sim_zeroed_kept().bytes, HUGE_BYTES);
    sim_zeroed_keep(0);
    assert_int_equal(sim_zeroed_kept().bytes, 0);
}

/* What was never used again between two looks is no part of what a run needed. */
static void the_least_that_was_kept_is_told(void **state)
{
    void *array[3];
    (void)state;
    sim_zeroed_keep(3 * HUGE_BYTES);
    for (unsigned i = 0; i < 3; i++)
        array[i] = sim_zeroed_new(HUGE_BYTES);
    for (unsigned i = 0; i < 3; i++)
        sim_zeroed_free(array[i], HUGE_BYTES);
    sim_zeroed_kept();
    array[0] = sim_zeroed_new(HUGE_BYTES);
    array[1] = sim_zeroed_new(HUGE_BYTES);
    sim_zeroed_free(array[0], HUGE_BYTES);
    const struct sim_zeroed_kept kept = sim_zeroed_kept();
    assert_int_equal(kept.bytes, 2 * HUGE_BYTES);
    assert_int_equal(kept.least_bytes, HUGE_BYTES);
    assert_int_equal(sim_zeroed_kept().least_bytes, 2 * HUGE_BYTES);
    sim_zeroed_free(array[1], HUGE_BYTES);
    sim_zeroed_keep(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_kept_unless_asked_for),
        cmocka_unit_test(what_was_kept_is_zero_again),
        cmocka_unit_test(other_sizes_are_not_kept),
        cmocka_unit_test(no_more_is_kept_than_was_said),
        cmocka_unit_test(the_least_that_was_kept_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
