/* Payload in tag mode: what was put somewhere is found there, by whatever way it came. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "models/numa/physmem.h"
#include "models/payload.h"
#include "sim/sim.h"

#define GIB (UINT64_C(1) << 30)

static struct hpa at(uint64_t v)
{
    return (struct hpa){ v };
}

static void put(struct physmem *mem, uint64_t address, uint64_t tag, uint32_t bytes)
{
    for (uint32_t done = 0; done < bytes;) {
        const unsigned offset = (unsigned)((address + done) % LINE_BYTES);
        const uint32_t here = SIM_MIN((uint32_t)LINE_BYTES - offset, bytes - done);
        payload_line_put(physmem_bytes_made(mem, at(address + done - offset)), offset,
                         payload_tag_add(tag, done), here);
        done += here;
    }
}

/* Every byte of the content is of the stream. */
static void expect_one(const struct payload *p, uint64_t tag, uint32_t bytes)
{
    uint32_t sum = 0;

    assert_int_equal(p->bytes, bytes);
    for (uint32_t i = 0; i < p->n; i++) {
        assert_true(
            payload_fits(p->extent[i].tag, payload_tag_add(tag, sum), p->extent[i].known_bytes));
        sum += p->extent[i].bytes;
    }
    assert_int_equal(sum, bytes);
}

static void read_payload(struct physmem *mem, struct payload *p, uint64_t address, uint32_t bytes)
{
    uint8_t buffer[8192];

    memset(buffer, 0xEE, sizeof(buffer));
    physmem_read_tags(mem, at(address), buffer, bytes);
    assert_true(payload_gather(p, buffer, address, bytes));
}

static struct physmem *new_memory(void)
{
    const uint64_t bytes[] = { GIB };

    return physmem_new(1, bytes);
}

static void test_tags(void **state)
{
    (void)state;
    const uint64_t tag = payload_tag(0x1234, 0xfffffffffff0);

    assert_int_equal(payload_tag_add(tag, 4), tag + 4);
    assert_int_equal(payload_tag_add(0, 4), 0);
    assert_true(payload_fits(tag, tag, 8));
    assert_false(payload_fits(tag + 1, tag, 8));
    /* Three bytes of one, one of the next, four of the last. */
    const uint64_t first = payload_tag(3, 0x11223344);
    const uint64_t mixed = (first & 0xffffff) | (first + 3) << 24;
    const uint64_t cut = (mixed & 0xffffffff) | (first + 4) << 32;
    assert_true(payload_fits(mixed, first, 8));
    assert_true(payload_fits(cut, first, 8));
    assert_false(payload_fits(cut, first + 1, 8));
    assert_false(payload_fits(cut ^ UINT64_C(1) << 40, first, 8));
    assert_true(payload_fits(cut, first, 5));
    assert_false(payload_fits(1, 0, 8));
}

/* Memory, gathered in pieces, sliced, scattered to another alignment, and that again. */
static void test_round_trips(void **state)
{
    struct sim_random random;
    struct physmem *mem = new_memory();

    (void)state;
    sim_random_init(&random, 1, "payload");
    for (unsigned round = 0; round < 20000; round++) {
        const uint32_t bytes = 16 +
                               (uint32_t)sim_random_below(&random, round % 4 != 0 ? 200 : 3000);
        const uint64_t from = 4096 + sim_random_below(&random, 300);
        const uint64_t tag =
            payload_tag((uint16_t)(1 + sim_random_below(&random, 32767)),
                        sim_random_below(&random, UINT64_C(1) << (8 + round % 39)));
        put(mem, from, tag, bytes);
        struct payload whole = { 0 }, sliced = { 0 };
        /* As a device reads fragments: the second may begin anywhere, where no tag is. */
        const uint32_t cut = 8 + (uint32_t)sim_random_below(&random, bytes - 15);
        read_payload(mem, &whole, from, cut);
        read_payload(mem, &whole, from + cut, bytes - cut);
        expect_one(&whole, tag, bytes);
        const uint32_t skip = (uint32_t)sim_random_below(&random, bytes - 15);
        const uint32_t half = (uint32_t)sim_random_below(&random, bytes - skip);
        assert_true(payload_slice(&sliced, &whole, skip, half));
        assert_true(payload_slice(&sliced, &whole, skip + half, bytes - skip - half));
        expect_one(&sliced, payload_tag_add(tag, skip), bytes - skip);
        /* Two writes of it, one after the other in memory. */
        const uint64_t to = 16384 + sim_random_below(&random, 300);
        const uint32_t first = 8 + (uint32_t)sim_random_below(&random, sliced.bytes - 15);
        uint8_t buffer[4096];
        memset(buffer, 0xEE, sizeof(buffer));
        payload_scatter(&sliced, 0, first, buffer, to);
        physmem_write_tags(mem, at(to), buffer, first);
        payload_scatter(&sliced, first, sliced.bytes - first, buffer, to + first);
        physmem_write_tags(mem, at(to + first), buffer, sliced.bytes - first);
        struct payload arrived = { 0 };
        read_payload(mem, &arrived, to, sliced.bytes);
        expect_one(&arrived, payload_tag_add(tag, skip), bytes - skip);
    }
    physmem_free(mem);
}

/* Of a range in memory every place says what lies there, whatever lay there before. */
static void test_every_place_of_a_line(void **state)
{
    struct sim_random random;
    struct physmem *mem = new_memory();

    (void)state;
    sim_random_init(&random, 2, "payload");
    for (unsigned round = 0; round < 5000; round++) {
        const uint32_t bytes = 100 + (uint32_t)sim_random_below(&random, 300);
        const uint64_t from = 4096 + sim_random_below(&random, 128);
        const uint64_t tag =
            payload_tag((uint16_t)(1 + sim_random_below(&random, 32767)),
                        sim_random_below(&random, UINT64_C(1) << (8 + round % 31)));
        uint8_t buffer[512];
        struct payload p = { .bytes = bytes, .n = 1, .extent = { { tag, bytes, 8 } } };
        payload_scatter(&p, 0, bytes, buffer, from);
        if (round % 2 == 0)
            physmem_write_tags(mem, at(from), buffer, bytes);
        else
            put(mem, from, tag, bytes);
        for (uint32_t i = 0; i + 8 <= bytes; i++) {
            const unsigned offset = (unsigned)((from + i) % LINE_BYTES);
            const uint8_t *line = physmem_bytes(mem, at(from + i - offset));
            const unsigned here = SIM_MIN((unsigned)LINE_BYTES - offset, bytes - i);
            if (here >= 8) /* else it may be within the last tag of its line */
                assert_int_equal(payload_line_tag(line, offset, here, 0), tag + i);
        }
    }
    physmem_free(mem);
}

/* Messages appended to each other: the tag that one begins with does not hide that of its line. */
static void test_appended_messages(void **state)
{
    struct sim_random random;
    struct physmem *mem = new_memory();

    (void)state;
    sim_random_init(&random, 3, "payload");
    for (unsigned round = 0; round < 5000; round++) {
        const uint64_t tag = payload_tag((uint16_t)(1 + round), round * 77777);
        const uint64_t to = 4096 + sim_random_below(&random, 64);
        uint32_t sum = 0;
        while (sum < 200) {
            const uint32_t bytes = 8 + (uint32_t)sim_random_below(&random, 20);
            put(mem, to + sum, payload_tag_add(tag, sum), bytes);
            sum += bytes;
        }
        struct payload p = { 0 };
        read_payload(mem, &p, to, sum);
        assert_int_equal(p.n, 1);
        expect_one(&p, tag, sum);
    }
    physmem_free(mem);
}

/* A tag that is cut by the next is made whole as soon as one is long enough to tell. */
static void test_cut_tags(void **state)
{
    struct physmem *mem = new_memory();
    const uint64_t tag = payload_tag(77, 0x9a4822);

    (void)state;
    for (unsigned offset = 0; offset < 40; offset++) {
        const uint8_t *line = physmem_bytes_made(mem, at(4096));
        put(mem, 4096, payload_tag(5, 0xfefefefefefe), 64);
        put(mem, 4096 + offset, tag, 3);
        put(mem, 4096 + offset + 3, tag + 3, 2);
        put(mem, 4096 + offset + 5, tag + 5, 12);
        for (unsigned i = 0; i < 9; i++)
            assert_int_equal(payload_line_tag(line, offset + i, 17 - i, 0), tag + i);
    }
    physmem_free(mem);
}

static void test_no_stream(void **state)
{
    struct physmem *mem = new_memory();
    struct payload p = { 0 };
    uint8_t buffer[4096];

    (void)state;
    read_payload(mem, &p, 1000, 3000);
    assert_int_equal(p.n, 1);
    assert_int_equal(p.extent[0].tag, 0);
    memset(buffer, 0xEE, sizeof(buffer));
    payload_scatter(&p, 17, 2000, buffer, 9);
    assert_memory_equal(buffer, "\0\0\0\0\0\0\0\0\xEE", 9);
    /* A stream in the middle of it: three extents. */
    put(mem, 1024, payload_tag(7, 5), 640);
    p = (struct payload){ 0 };
    read_payload(mem, &p, 960, 1024);
    assert_int_equal(p.n, 3);
    assert_int_equal(p.extent[0].bytes, 64);
    assert_int_equal(p.extent[1].tag, payload_tag(7, 5));
    assert_int_equal(p.extent[1].bytes, 640);
    assert_int_equal(p.extent[2].tag, 0);
    physmem_free(mem);
}

/* What does not fit leaves the content as it was. */
static void test_too_many_extents(void **state)
{
    struct physmem *mem = new_memory();
    struct payload p = { 0 }, q = { 0 };
    uint8_t buffer[4096];

    (void)state;
    for (unsigned i = 0; i <= PAYLOAD_EXTENTS_MAX; i++)
        put(mem, 4096 + i * 64, payload_tag((uint16_t)(i + 1), 1000), 64);
    read_payload(mem, &p, 4096, 64 * (PAYLOAD_EXTENTS_MAX - 1));
    const struct payload before = p;
    physmem_read_tags(mem, at(4096 + 64 * (PAYLOAD_EXTENTS_MAX - 1)), buffer, 128);
    assert_false(payload_gather(&p, buffer, 0, 128));
    assert_int_equal(p.n, before.n);
    assert_int_equal(p.bytes, before.bytes);
    assert_true(payload_gather(&p, buffer, 0, 64));
    assert_true(payload_slice(&q, &p, 0, 64));
    const struct payload small = q;
    assert_true(payload_slice(&q, &p, 64, p.bytes - 64));
    assert_int_equal(q.n, PAYLOAD_EXTENTS_MAX);
    q = small;
    q.extent[0].tag++; /* does not go on to the second, which begins anew anyway */
    assert_true(payload_slice(&q, &p, 128, 64));
    assert_false(payload_slice(&q, &p, 0, p.bytes));
    assert_int_equal(q.n, 2);
    assert_int_equal(q.bytes, 128);
    physmem_free(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tags),
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_every_place_of_a_line),
        cmocka_unit_test(test_appended_messages),
        cmocka_unit_test(test_cut_tags),
        cmocka_unit_test(test_no_stream),
        cmocka_unit_test(test_too_many_extents),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
