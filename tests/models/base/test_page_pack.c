/* Packed pages: what goes in comes out, and what is regular is small. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/base/page_pack.h"
#include "models/base/payload.h"
#include "tests/support/numa_fixture.h"

/* Packs, unpacks and compares; returns the size, SIZE_MAX: it did not fit. */
static size_t round_trip(const uint8_t *page)
{
    uint8_t again[PAGE_BYTES] = { 0 }, *packed = NULL;
    size_t bytes;

    if (!page_pack(page, &packed, &bytes))
        return SIZE_MAX;
    if (packed != NULL)
        assert_int_equal(page_unpack(packed, again), bytes);
    else
        assert_int_equal(bytes, 0);
    assert_memory_equal(again, page, PAGE_BYTES);
    free(packed);
    return bytes;
}

static void put(uint8_t *page, unsigned from, uint64_t mark, unsigned bytes)
{
    for (unsigned at = from, here; at < from + bytes; at += here) {
        const unsigned in_line = at % LINE_BYTES;
        here = SIM_MIN((unsigned)LINE_BYTES - in_line, from + bytes - at);
        payload_line_put(page + (at - in_line), in_line, payload_mark_add(mark, at - from), here);
    }
}

static void test_sizes(void **state)
{
    uint8_t page[PAGE_BYTES] = { 0 };

    (void)state;
    assert_int_equal(round_trip(page), 0);
    put(page, 0, payload_mark(7, 12345), PAGE_BYTES);
    assert_int_equal(round_trip(page), 8 + 9); /* the first line, the others go on */
    page[PAGE_BYTES - 1] = 1;
    assert_int_equal(round_trip(page), 8 + 9 + 17);
    memset(page, 0xA5, sizeof(page)); /* 65 bytes a line: 15 of the 64 lines would fit */
    assert_true(round_trip(page) == SIZE_MAX);
    memset(page + 15 * LINE_BYTES, 0, PAGE_BYTES - 15 * LINE_BYTES);
    assert_int_equal(round_trip(page), 8 + 15 * 65); /* zeros go on from what is no mark */
}

/* Pieces of streams, with and without others behind them, and real bytes, anywhere. */
static void test_random_pages(void **state)
{
    uint64_t random = 1;
    unsigned n_fit = 0;

    (void)state;
    for (unsigned i = 0; i < 3000; i++) {
        uint8_t page[PAGE_BYTES] = { 0 };
        for (unsigned n = (unsigned)(fixture_random(&random) % 12); n > 0; n--) {
            const unsigned from = (unsigned)(fixture_random(&random) % PAGE_BYTES);
            const unsigned bytes = 1 + (unsigned)(fixture_random(&random) % (PAGE_BYTES - from)) /
                                           (1 + n % 3);
            if (fixture_random(&random) % 4 == 0)
                for (unsigned b = 0; b < SIM_MIN(bytes, 100u); b++)
                    page[from + b] = (uint8_t)fixture_random(&random);
            else
                put(page, from,
                    payload_mark((uint16_t)(fixture_random(&random) % 3), fixture_random(&random)),
                    bytes);
        }
        n_fit += round_trip(page) != SIZE_MAX;
    }
    assert_true(n_fit > 1500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_random_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
