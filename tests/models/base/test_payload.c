/* Payload in tag mode: what was put somewhere is found there, by whatever way it came. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "models/base/payload.h"
#include "models/numa/physmem.h"
#include "sim/engine/sim.h"

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
                         payload_mark_add(tag, done), here);
        done += here;
    }
}

/* All of the content is of the stream; what is too short to tell holds its bytes. */
static void expect_one(const struct payload *p, uint64_t tag, uint32_t bytes)
{
    assert_int_equal(p->bytes, bytes);
    assert_int_equal(p->n, 1);
    if (bytes >= PAYLOAD_MARK_BYTES || p->extent[0].raw_bytes == 0) {
        assert_int_equal(p->extent[0].raw_bytes, 0);
        assert_int_equal(p->extent[0].mark, tag);
    } else {
        assert_int_equal(p->extent[0].raw_bytes, bytes);
        assert_true(payload_same(p->extent[0].mark, payload_word(tag), bytes));
    }
}

static void read_payload(struct physmem *mem, struct payload *p, uint64_t address, uint32_t bytes)
{
    uint8_t buffer[16384];

    memset(buffer, 0xEE, sizeof(buffer));
    physmem_read_marks(mem, at(address), buffer, bytes);
    assert_true(payload_gather(p, buffer, address, bytes));
}

static void write_payload(struct physmem *mem, const struct payload *p, uint32_t from,
                          uint32_t bytes, uint64_t address)
{
    uint8_t buffer[16384];

    memset(buffer, 0xEE, sizeof(buffer));
    payload_scatter(p, from, bytes, buffer, address);
    physmem_write_marks(mem, at(address), buffer, bytes);
}

static struct physmem *new_memory(void)
{
    const uint64_t bytes[] = { GIB };

    return physmem_new(1, bytes);
}

static uint64_t any_tag(struct sim_random *random, unsigned round)
{
    return payload_mark((uint16_t)(1 + sim_random_below(random, 32767)),
                        sim_random_below(random, UINT64_C(1) << (4 + round % 39)));
}

/* Of what is left a piece: often a few bytes only. */
static uint32_t piece_of(struct sim_random *random, uint32_t left)
{
    const uint32_t most = sim_random_below(random, 3) != 0 ? 17 : 1500;
    const uint32_t piece = 1 + (uint32_t)sim_random_below(random, most);
    return SIM_MIN(left, piece);
}

/* Eight bytes from anywhere in a stream tell the place, and nothing else has them. */
static void test_words(void **state)
{
    struct sim_random random;

    (void)state;
    sim_random_init(&random, 4, "payload");
    assert_int_equal(payload_word(0), 0);
    assert_int_equal(payload_word_mark(0), 0);
    for (unsigned round = 0; round < 20000; round++) {
        /* Where all the low bits carry, too. */
        const uint64_t tag = round % 3 != 0
                                 ? any_tag(&random, round)
                                 : payload_mark((uint16_t)(1 + round),
                                                (UINT64_C(1) << (3 + round % 40)) - round % 9);
        const uint64_t word = payload_word(tag);
        struct payload_words w = payload_words(tag);
        assert_int_equal(payload_word_mark(word), tag);
        assert_int_equal(payload_words_here(&w), word);
        payload_words_line(&w);
        assert_int_equal(payload_words_here(&w), payload_word(payload_mark_add(tag, LINE_BYTES)));
        for (unsigned i = 0; i < 8; i++) {
            /* A byte of a stream is the same however one comes to it, and never zero. */
            const uint8_t byte = (uint8_t)(word >> 8 * i);
            assert_int_equal(byte, (uint8_t)payload_word(payload_mark_add(tag, i)));
            assert_int_not_equal(byte, 0);
            assert_int_equal(payload_word_mark(word & ~(UINT64_C(0xff) << 8 * i)), 0);
            assert_int_not_equal(payload_word_mark(word ^ UINT64_C(1) << (8 * i + round % 8)), tag);
        }
    }
    assert_int_equal(payload_mark_add(0, 4), 0);
    assert_int_equal(payload_mark_back(payload_mark(3, 10), 4), payload_mark(3, 6));
    assert_true(payload_same(0x1234, 0xff34, 1));
    assert_false(payload_same(0x1234, 0xff34, 2));
}

/* Memory, gathered in pieces, sliced, scattered to another alignment, and that again; every piece
 * of any length, from one byte on. */
static void test_round_trips(void **state)
{
    struct sim_random random;
    struct physmem *mem = new_memory();

    (void)state;
    sim_random_init(&random, 1, "payload");
    for (unsigned round = 0; round < 20000; round++) {
        const uint32_t bytes = 8 +
                               (uint32_t)sim_random_below(&random, round % 4 != 0 ? 200 : 10000);
        const uint64_t tag = any_tag(&random, round);
        uint64_t from = 65536 + sim_random_below(&random, 300);
        put(mem, from, tag, bytes);
        for (unsigned hop = 0; hop < 3; hop++) {
            const uint64_t to = (hop + 2) * 65536 + sim_random_below(&random, 300);
            struct payload whole = { 0 };
            /* As a device reads fragments: the second may begin anywhere. */
            for (uint32_t done = 0, n; done < bytes; done += n) {
                n = piece_of(&random, bytes - done);
                read_payload(mem, &whole, from + done, n);
            }
            expect_one(&whole, tag, bytes);
            /* As it sends packets, and as they are written. */
            for (uint32_t done = 0, n; done < bytes; done += n) {
                struct payload packet = { 0 };
                n = piece_of(&random, bytes - done);
                const uint32_t half = (uint32_t)sim_random_below(&random, n + 1);
                assert_true(payload_slice(&packet, &whole, done, half));
                assert_true(payload_slice(&packet, &whole, done + half, n - half));
                expect_one(&packet, payload_mark_add(tag, done), n);
                write_payload(mem, &packet, 0, half, to + done);
                write_payload(mem, &packet, half, n - half, to + done + half);
            }
            from = to;
        }
    }
    physmem_free(mem);
}

/* Extents that were too short to tell are put together. */
static void test_short_extents(void **state)
{
    struct sim_random random;

    (void)state;
    sim_random_init(&random, 5, "payload");
    for (unsigned round = 0; round < 20000; round++) {
        const uint64_t tag = any_tag(&random, round);
        struct payload p = { 0 };
        uint32_t sum = 0;
        do {
            const uint32_t n = 1 + (uint32_t)sim_random_below(&random, 7);
            const uint64_t word = payload_word(payload_mark_add(tag, sum));
            assert_true(payload_gather(&p, (const uint8_t *)&word, 0, n));
            sum += n;
        } while (sum < 40 && sim_random_below(&random, 6) != 0);
        expect_one(&p, tag, sum);
        if (sum < 8)
            continue;
        /* Bytes of another place do not go on from them. */
        const uint64_t other = payload_word(payload_mark_add(tag, sum + 8));
        assert_true(payload_gather(&p, (const uint8_t *)&other, 0, 8));
        assert_int_equal(p.n, 2);
        assert_int_equal(p.extent[1].mark, payload_mark_add(tag, sum + 8));
    }
}

/* Of a range in memory every place says what lies there, to a read of any length, whatever lay
 * there before and in however many pieces it was written. */
static void test_every_place_of_a_line(void **state)
{
    struct sim_random random;
    struct physmem *mem = new_memory();

    (void)state;
    sim_random_init(&random, 2, "payload");
    for (unsigned round = 0; round < 3000; round++) {
        const uint32_t bytes = 100 + (uint32_t)sim_random_below(&random, 300);
        const uint64_t from = 4096 + sim_random_below(&random, 128), tag = any_tag(&random, round);
        const struct payload p = { .bytes = bytes, .n = 1, .extent = { { tag, bytes, 0 } } };
        for (uint32_t done = 0, n; done < bytes; done += n) {
            n = round % 2 != 0 ? bytes - done : piece_of(&random, bytes - done);
            if (round % 3 == 0)
                write_payload(mem, &p, done, n, from + done);
            else
                put(mem, from + done, payload_mark_add(tag, done), n);
        }
        for (uint32_t i = 0; i < bytes; i++) {
            struct payload one = { 0 };
            read_payload(mem, &one, from + i, piece_of(&random, bytes - i));
            expect_one(&one, payload_mark_add(tag, i), one.bytes);
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
        const uint64_t tag = payload_mark((uint16_t)(1 + round), round * 77777);
        const uint64_t to = 4096 + sim_random_below(&random, 64);
        uint32_t sum = 0;
        while (sum < 200) {
            const uint32_t bytes = 1 + (uint32_t)sim_random_below(&random, 20);
            put(mem, to + sum, payload_mark_add(tag, sum), bytes);
            sum += bytes;
        }
        struct payload p = { 0 };
        read_payload(mem, &p, to, sum);
        assert_int_equal(p.n, 1);
        expect_one(&p, tag, sum);
    }
    physmem_free(mem);
}

/* Streams that meet within a line are told apart, and the run of each ends where it does. */
static void test_two_streams_in_a_line(void **state)
{
    struct physmem *mem = new_memory();
    const uint64_t a = payload_mark(7, 0x9a4822), b = payload_mark(8, 0x80010000);
    uint8_t *line = physmem_bytes_made(mem, at(4096));

    (void)state;
    for (unsigned border = 1; border < 64; border++) {
        put(mem, 4096, payload_mark(5, 0xfefefefefe), 64);
        put(mem, 4096, a, border);
        put(mem, 4096 + border, b, 64 - border);
        for (unsigned i = 0, n; i < 64; i += n) {
            uint64_t tag;
            n = payload_line_run(line, i, 64 - i, &tag);
            for (unsigned j = 0; j < n; j++) {
                const uint64_t is = i + j < border ? a + i + j : b + (i + j - border);
                const uint8_t byte = tag != 0 ? (uint8_t)payload_word(tag + j) : line[i + j];
                assert_int_equal(byte, (uint8_t)payload_word(is));
            }
        }
    }
    /* Real bytes are no stream's. */
    memset(line, 0, 64);
    memcpy(line + 20, "GET /index.html HTTP/1.1", 24);
    uint64_t tag = 1;
    assert_int_equal(payload_line_run(line, 0, 64, &tag), 64);
    assert_int_equal(tag, 0);
    put(mem, 4096 + 44, b, 20);
    assert_int_equal(payload_line_run(line, 0, 64, &tag), 44);
    assert_int_equal(tag, 0);
    assert_int_equal(payload_line_run(line, 44, 20, &tag), 20);
    assert_int_equal(tag, b);
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
    assert_int_equal(p.extent[0].mark, 0);
    memset(buffer, 0xEE, sizeof(buffer));
    payload_scatter(&p, 17, 2000, buffer, 9);
    assert_memory_equal(buffer, "\0\0\0\0\0\0\0\0\xEE", 9);
    /* A stream in the middle of it: three extents. */
    put(mem, 1024, payload_mark(7, 5), 640);
    p = (struct payload){ 0 };
    read_payload(mem, &p, 960, 1024);
    assert_int_equal(p.n, 3);
    assert_int_equal(p.extent[0].bytes, 64);
    assert_int_equal(p.extent[1].mark, payload_mark(7, 5));
    assert_int_equal(p.extent[1].bytes, 640);
    assert_int_equal(p.extent[2].mark, 0);
    physmem_free(mem);
}

/* All bytes of the content: of streams, each by its position; of what is no stream, those that are
 * known. */
static void test_all_bytes(void **state)
{
    const uint64_t first = payload_mark(5, 3), second = payload_mark(9, 1001);
    const struct payload p = { .bytes = 77 + 3 + 40,
                               .n = 3,
                               .extent = {
                                   { first, 77, 0 }, { 0x332211, 3, 3 }, { second, 40, 0 } } };
    uint8_t bytes[121];
    (void)state;

    for (uint32_t n = 0; n <= 120; n++) {
        memset(bytes, 0xEE, sizeof(bytes));
        payload_bytes(&p, n, bytes);
        assert_int_equal(bytes[n], 0xEE);
        for (uint32_t i = 0; i < n; i++) {
            const uint64_t expected = i < 77   ? payload_word(first + i)
                                      : i < 80 ? UINT64_C(0x332211) >> 8 * (i - 77)
                                               : payload_word(second + i - 80);
            assert_int_equal(bytes[i], expected & 0xff);
        }
    }
}

/* What does not fit leaves the content as it was. */
static void test_too_many_extents(void **state)
{
    struct physmem *mem = new_memory();
    struct payload p = { 0 }, q = { 0 };
    uint8_t buffer[4096];

    (void)state;
    for (unsigned i = 0; i <= PAYLOAD_EXTENTS_MAX; i++)
        put(mem, 4096 + i * 64, payload_mark((uint16_t)(i + 1), 1000), 64);
    read_payload(mem, &p, 4096, 64 * (PAYLOAD_EXTENTS_MAX - 1));
    const struct payload before = p;
    physmem_read_marks(mem, at(4096 + 64 * (PAYLOAD_EXTENTS_MAX - 1)), buffer, 128);
    assert_false(payload_gather(&p, buffer, 0, 128));
    assert_int_equal(p.n, before.n);
    assert_int_equal(p.bytes, before.bytes);
    assert_true(payload_gather(&p, buffer, 0, 64));
    assert_true(payload_slice(&q, &p, 0, 64));
    const struct payload small = q;
    assert_true(payload_slice(&q, &p, 64, p.bytes - 64));
    assert_int_equal(q.n, PAYLOAD_EXTENTS_MAX);
    q = small;
    q.extent[0].mark++; /* does not go on to the second, which begins anew anyway */
    assert_true(payload_slice(&q, &p, 128, 64));
    assert_false(payload_slice(&q, &p, 0, p.bytes));
    assert_int_equal(q.n, 2);
    assert_int_equal(q.bytes, 128);
    physmem_free(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_short_extents),
        cmocka_unit_test(test_every_place_of_a_line),
        cmocka_unit_test(test_appended_messages),
        cmocka_unit_test(test_two_streams_in_a_line),
        cmocka_unit_test(test_no_stream),
        cmocka_unit_test(test_all_bytes),
        cmocka_unit_test(test_too_many_extents),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
