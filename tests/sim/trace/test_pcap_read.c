/* sim/trace/pcap_read.c: both formats, both byte orders, units of time; what is damaged names its
 * byte. */
#include <string.h>

#include "sim/trace/pcap_read.h"
#include "sim/trace/pcapng.h"
#include "tests/support/test.h"

struct bytes {
    uint8_t byte[2048];
    size_t n;
};

static void put(struct bytes *b, bool swapped, unsigned width, uint64_t value)
{
    for (unsigned i = 0; i < width; i++)
        b->byte[b->n + (swapped ? width - 1 - i : i)] = (uint8_t)(value >> (8 * i));
    b->n += width;
}

static struct pcap_capture *read_bytes(const struct bytes *b, char **message)
{
    return pcap_read_memory(g_memdup2(b->byte, b->n), b->n, message);
}

static struct pcap_frame frame_of(const struct pcap_capture *capture, guint i)
{
    return g_array_index(capture->frames, struct pcap_frame, i);
}

static void put_pcap(struct bytes *b, bool swapped, uint32_t magic, uint32_t link_type)
{
    put(b, swapped, 4, magic);
    put(b, swapped, 4, 2 | 4u << 16);
    put(b, swapped, 8, 0);
    put(b, swapped, 4, 65535);
    put(b, swapped, 4, link_type);
}

static void put_frame(struct bytes *b, bool swapped, uint32_t s, uint32_t part, uint32_t bytes,
                      uint32_t wire)
{
    put(b, swapped, 4, s);
    put(b, swapped, 4, part);
    put(b, swapped, 4, bytes);
    put(b, swapped, 4, wire);
    for (uint32_t i = 0; i < bytes; i++)
        put(b, false, 1, i + 1);
}

static void test_pcap(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        const bool swapped = i & 1, nanoseconds = i & 2;
        struct bytes b = { .n = 0 };
        char *message = NULL;
        put_pcap(&b, swapped, nanoseconds ? 0xa1b23c4d : 0xa1b2c3d4, 1);
        put_frame(&b, swapped, 1700000000, 999999, 20, 60);
        put_frame(&b, swapped, 1700000001, 1, 3, 3);
        put_frame(&b, swapped, 1699999999, 0, 1, 1);
        struct pcap_capture *capture = read_bytes(&b, &message);
        assert_non_null(capture);
        assert_int_equal(capture->frames->len, 3);
        assert_int_equal(frame_of(capture, 0).at_ps, 0);
        assert_int_equal(frame_of(capture, 0).bytes, 20);
        assert_int_equal(frame_of(capture, 0).wire_bytes, 60);
        assert_int_equal(frame_of(capture, 1).at_ps, nanoseconds ? 999000002000 : 2000000);
        assert_int_equal(frame_of(capture, 1).data[2], 3);
        assert_int_equal(frame_of(capture, 2).at_ps, 0); /* earlier than the first */
        pcap_free(capture);
    }
}

/* What --pcap writes is read back. */
static void test_pcapng(void **state)
{
    static const uint8_t data[6] = { 1, 2, 3, 4, 5, 6 };
    struct bytes b = { .n = 0 };
    char *message = NULL;
    (void)state;
    b.n += pcapng_section(b.byte, "x", "a comment");
    b.n += pcapng_interface(b.byte + b.n, "nic.e0", 1000000000, 0);
    for (unsigned i = 0; i < 2; i++) {
        const struct pcapng_packet packet = { .interface = 0,
                                              .direction = PCAPNG_OUTBOUND,
                                              .at_ps = 5000 + 7000 * i,
                                              .bytes = 6 - i,
                                              .wire_bytes = 100,
                                              .data = data };
        b.n += pcapng_packet(b.byte + b.n, &packet);
    }
    struct pcap_capture *capture = read_bytes(&b, &message);
    assert_non_null(capture);
    assert_int_equal(capture->frames->len, 2);
    assert_int_equal(frame_of(capture, 1).at_ps, 7000);
    assert_int_equal(frame_of(capture, 1).bytes, 5);
    assert_int_equal(frame_of(capture, 1).wire_bytes, 100);
    assert_memory_equal(frame_of(capture, 1).data, data, 5);
    pcap_free(capture);
    for (size_t n = 1; n < b.n;
         n++) { /* cut anywhere: whole blocks, or a message; never beyond the end */
        struct bytes part = b;
        part.n = n;
        capture = read_bytes(&part, &message);
        assert_true((capture == NULL) == (message != NULL));
        pcap_free(capture);
        g_clear_pointer(&message, g_free);
    }
    for (size_t at = 0; at < b.n; at++) { /* and with any byte another one */
        struct bytes other = b;
        other.byte[at] ^= 0xff;
        capture = read_bytes(&other, &message);
        assert_true((capture == NULL) == (message != NULL));
        pcap_free(capture);
        g_clear_pointer(&message, g_free);
    }
}

static void put_block(struct bytes *b, bool swapped, uint32_t type, const struct bytes *body)
{
    put(b, swapped, 4, type);
    put(b, swapped, 4, body->n + 12);
    memcpy(b->byte + b->n, body->byte, body->n);
    b->n += body->n;
    put(b, swapped, 4, body->n + 12);
}

/* A foreign one: of the other byte order, in units of 2^-10 s. */
static void test_resolution(void **state)
{
    struct bytes b = { .n = 0 }, section = { .n = 0 }, interface = { .n = 0 };
    char *message = NULL;
    (void)state;
    put(&section, true, 4, 0x1a2b3c4d);
    put(&section, true, 4, 1u << 16);
    put(&section, true, 8, UINT64_MAX);
    put_block(&b, true, 0x0a0d0d0a, &section);
    put(&interface, true, 2, 1);
    put(&interface, true, 2, 0);
    put(&interface, true, 4, 0);
    put(&interface, true, 2, 9);
    put(&interface, true, 2, 1);
    put(&interface, false, 4, 0x80 | 10);
    put_block(&b, true, 1, &interface);
    for (unsigned i = 0; i < 2; i++) {
        struct bytes packet = { .n = 0 };
        put(&packet, true, 8, 0);
        put(&packet, true, 4, 512 * i);
        put(&packet, true, 4, 4);
        put(&packet, true, 4, 64);
        put(&packet, true, 4, 0);
        put_block(&b, true, 6, &packet);
    }
    struct pcap_capture *capture = read_bytes(&b, &message);
    assert_non_null(capture);
    assert_int_equal(frame_of(capture, 1).at_ps, SIM_PS_PER_S / 2);
    pcap_free(capture);
}

static void refused(const struct bytes *b, const char *expected)
{
    char *message = NULL;
    assert_null(read_bytes(b, &message));
    assert_string_equal(message, expected);
    g_free(message);
}

/* A frame is as long at most as a capture of pcap may have it. */
static void test_longest(void **state)
{
    enum { BYTES = 262144 + 4, HEAD = 28, PACKET = HEAD + BYTES + 4 };
    const struct pcapng_packet packet = { .bytes = 0 };
    (void)state;
    for (uint32_t bytes = BYTES - 4; bytes <= BYTES; bytes += 4) {
        char *message = NULL, *contents = g_malloc0(2048 + PACKET);
        uint8_t *at = (uint8_t *)contents;
        const uint32_t block[] = { 6, HEAD + bytes + 4, 0, 0, 0, bytes, 0 };
        const uint32_t block_bytes = HEAD + bytes + 4;
        at += pcapng_section(at, NULL, NULL);
        at += pcapng_interface(at, "eth0", 0, 0);
        memcpy(at, block, sizeof(block));
        memcpy(at + HEAD + bytes, &block_bytes, sizeof(block_bytes));
        at += block_bytes;
        at += pcapng_packet(at, &packet);
        struct pcap_capture *capture =
            pcap_read_memory(contents, (size_t)(at - (uint8_t *)contents), &message);
        assert_true((capture != NULL) == (bytes == BYTES - 4));
        assert_true((message != NULL) == (bytes == BYTES));
        pcap_free(capture);
        g_free(message);
    }
}

static void test_mistakes(void **state)
{
    struct bytes b = { .n = 0 };
    (void)state;
    refused(&b, "byte 0: neither pcap nor pcapng");
    memcpy(b.byte, "Capture\n", 8);
    b.n = 8;
    refused(&b, "byte 0: neither pcap nor pcapng");
    b.n = 0;
    put_pcap(&b, false, 0xa1b2c3d4, 113);
    refused(&b, "byte 0: frames of link type 113, expected 1, Ethernet");
    b.n = 0;
    put_pcap(&b, false, 0xa1b2c3d4, 1);
    put_frame(&b, false, 0, 0, 10, 10);
    b.n--;
    refused(&b, "byte 24: the file ends within a frame");
    b.n = 40;
    b.byte[32 + 3] = 0x7f;
    refused(&b, "byte 24: a frame of 2130706442 bytes");
}

/* It might never end. */
static void test_no_file(void **state)
{
    g_autofree char *message = NULL;
    (void)state;
    assert_null(pcap_read("/dev/zero", &message));
    assert_string_equal(message, "/dev/zero: it is no regular file");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pcap),       cmocka_unit_test(test_pcapng),
        cmocka_unit_test(test_resolution), cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_longest),    cmocka_unit_test(test_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
