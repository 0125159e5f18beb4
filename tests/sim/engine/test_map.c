/* Maps: names, parts of names, addresses, many of each. */
#include "sim/engine/map.h"

#include <stdio.h>

#include "tests/support/death.h"

#define N_NAMES 5000u

static void names_are_found_whole(void **state)
{
    struct sim_map *map = sim_map_new();
    size_t value = 7;

    (void)state;
    assert_false(sim_map_find(map, "a", &value));
    assert_true(sim_map_add(map, "ab", 1));
    assert_true(sim_map_add(map, "a", 2));
    assert_true(sim_map_add(map, "", 3));
    assert_false(sim_map_add(map, "ab", 4)); /* keeps the first */
    assert_false(sim_map_find(map, "abc", &value));
    assert_int_equal(value, 7);
    assert_true(sim_map_find(map, "ab", &value));
    assert_int_equal(value, 1);
    assert_true(sim_map_find_n(map, "abc", 2, &value));
    assert_int_equal(value, 1);
    assert_true(sim_map_find_n(map, "abc", 1, &value));
    assert_int_equal(value, 2);
    assert_true(sim_map_find_n(map, "abc", 0, &value));
    assert_int_equal(value, 3);
    sim_map_free(map);
    sim_map_free(NULL);
}

/* Names and the addresses of the same strings stand beside each other. */
static void many_keep_their_values(void **state)
{
    static char name[N_NAMES][8];
    struct sim_map *map = sim_map_new();
    size_t value;

    (void)state;
    for (unsigned i = 0; i < N_NAMES; i++) {
        snprintf(name[i], sizeof(name[i]), "h%u", i);
        assert_true(sim_map_add(map, name[i], i));
        assert_true(sim_map_add_address(map, name[i], N_NAMES + i));
        assert_false(sim_map_add_address(map, name[i], 0));
    }
    for (unsigned i = 0; i < N_NAMES; i++) {
        char copy[8];

        snprintf(copy, sizeof(copy), "%s", name[i]);
        assert_true(sim_map_find(map, copy, &value));
        assert_int_equal(value, i);
        assert_true(sim_map_find_address(map, name[i], &value));
        assert_int_equal(value, N_NAMES + i);
        assert_false(sim_map_find_address(map, copy, &value));
    }
    assert_false(sim_map_find_address(map, NULL, &value));
    sim_map_free(map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_found_whole),
        cmocka_unit_test(many_keep_their_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
