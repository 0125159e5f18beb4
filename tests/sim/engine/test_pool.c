/* Pools: alignment, reuse, many slabs, and the leak check. */
#include "sim/engine/sim.h"
#include "tests/support/death.h"

static void objects_do_not_overlap(void **state)
{
    static const size_t sizes[] = { 1, 16, 40, 200, 5000, 70000, 300000 };

    (void)state;
    for (unsigned s = 0; s < SIM_N_ELEMENTS(sizes); s++) {
        struct sim *sim = sim_new(1);
        struct sim_pool *pool = sim_pool_new(sim, "object", sizes[s]);
        unsigned n = sizes[s] > 10000 ? 10 : 3000;
        unsigned char **object = calloc(n, sizeof(*object));

        assert_non_null(object);
        for (unsigned i = 0; i < n; i++) {
            object[i] = sim_pool_get(pool);
            assert_int_equal((uintptr_t)object[i] % 16, 0);
            memset(object[i], (int)(i % 251), sizes[s]);
        }
        assert_int_equal(sim_pool_live(pool), n);
        for (unsigned i = 0; i < n; i++) {
            for (size_t byte = 0; byte < sizes[s]; byte += 97)
                assert_int_equal(object[i][byte], i % 251);
            assert_int_equal(object[i][sizes[s] - 1], i % 251);
            sim_pool_put(pool, object[i]);
        }
        assert_int_equal(sim_pool_live(pool), 0);
        free(object);
        sim_free(sim);
    }
}

/* Last in, first out: what was touched last is in the cache, whatever its address. */
static void reuse_is_last_in_first_out(void **state)
{
    struct sim *sim = sim_new(1);
    struct sim_pool *pool = sim_pool_new(sim, "object", 48);
    void *a = sim_pool_get(pool), *b = sim_pool_get(pool), *c = sim_pool_get(pool);

    (void)state;
    sim_pool_put(pool, a);
    sim_pool_put(pool, c);
    assert_ptr_equal(sim_pool_get(pool), c);
    assert_ptr_equal(sim_pool_get(pool), a);
    assert_int_equal(sim_pool_live(pool), 3);
    sim_pool_put(pool, a);
    sim_pool_put(pool, b);
    sim_pool_put(pool, c);
    sim_free(sim);
}

static void leak(void)
{
    struct sim *sim = sim_new(1);
    struct sim_pool *clean = sim_pool_new(sim, "clean", 8), *tlp = sim_pool_new(sim, "tlp", 8);

    sim_pool_put(clean, sim_pool_get(clean));
    sim_pool_get(tlp);
    sim_pool_get(tlp);
    sim_free(sim);
}

static void too_many(void)
{
    struct sim *sim = sim_new(1);
    struct sim_pool *pool = sim_pool_new(sim, "tlp", 8);
    void *object = sim_pool_get(pool);

    sim_pool_put(pool, object);
    sim_pool_put(pool, object);
}

static void leaks_name_the_pool(void **state)
{
    (void)state;
    assert_aborts(leak, "2 objects of pool tlp", NULL);
    assert_aborts(too_many, "pool tlp got back", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_do_not_overlap),
        cmocka_unit_test(reuse_is_last_in_first_out),
        cmocka_unit_test(leaks_name_the_pool),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
