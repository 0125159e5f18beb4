/*
 * Packets and events of MX: against packets laid out by hand after Open-MX 0.9.2's
 * common/omx_wire.h, and against each other.
 */
#include "hw/mx_event.h"
#include "tests/hw/hw_vectors.h"

static void test_types_and_sizes(void **state)
{
    (void)state;
    /* enum omx_pkt_type counts from OMX_PKT_TYPE_ETHER_UNICAST = 32: multicast, native, truc ... */
    assert_int_equal(MX_PACKET_ACK, 32 + 3);
    assert_int_equal(MX_PACKET_TINY, 37);
    assert_int_equal(MX_PACKET_PULL_REPLY, 42);
    assert_int_equal(MX_PACKET_NACK_PULL, 45);
    assert_int_equal(MX_FRAGMENTS_MAX, 8);
    assert_int_equal(MX_REPLY_BYTES * MX_REPLIES_PER_BLOCK, 32768);
    assert_int_equal(MX_EVENTS * MX_EVENT_BYTES, 65536);
    /* sizeof(struct omx_pkt_head) + the larger header + 4096. */
    assert_int_equal(14 + MX_MTU_BYTES, 16 + 32 + 4096);
}

static void test_packets(void **state)
{
    (void)state;
    static const uint8_t tiny[] = { 0, 0x60, 0xdd, 1,    2,    3,    0,    0x60, 0xdd, 4,
                                    5, 6,    0x86, 0xdf, 0,    0,    37,   7,    9,    0,
                                    1, 2,    3,    4,    0xab, 0xcd, 0x12, 0x34, 0,    3,
                                    0, 0,    0xff, 0xee, 0xdd, 0xcc, 0xbb, 0xaa, 0x99, 0x88 };
    struct {
        struct mx_head head;
        struct mx_message_header header;
    } packet = { .head = { .destination = { 0, 0x60, 0xdd, 1, 2, 3 },
                           .source = { 0, 0x60, 0xdd, 4, 5, 6 },
                           .ether_type = mx_be16(MX_ETHER_TYPE) },
                 .header = { .common = { MX_PACKET_TINY, 7, 9, 0, mx_be32(0x01020304) },
                             .sequence = mx_be16(0xabcd),
                             .ack = mx_be16(0x1234),
                             .bytes = mx_be16(3),
                             .match_high = mx_be32(0xffeeddcc),
                             .match_low = mx_be32(0xbbaa9988) } };
    assert_int_equal(sizeof packet, sizeof tiny);
    assert_memory_equal(&packet, tiny, sizeof tiny);
}

/* Whatever its type, a packet tells the endpoint that it is for. */
static void test_endpoint_of_packet(void **state)
{
    (void)state;
    uint8_t packet[MX_HEADER_BYTES_MAX];
    for (unsigned endpoint = 0; endpoint < 256; endpoint++) {
        for (uint8_t type = MX_PACKET_ACK; type <= MX_PACKET_NACK_LIB; type++) {
            const struct mx_common common = { .type = type,
                                              .destination_endpoint = (uint8_t)endpoint,
                                              .source_endpoint = (uint8_t)~endpoint };
            if (type == MX_PACKET_PULL_REPLY)
                continue;
            memset(packet, 0x5a, sizeof packet);
            memcpy(packet + MX_HEAD_BYTES, &common, sizeof common);
            assert_int_equal(mx_packet_endpoint(packet), endpoint);
        }
        const struct mx_reply_header reply = { .type = MX_PACKET_PULL_REPLY,
                                               .magic = mx_be32(mx_magic((uint8_t)endpoint)) };
        memset(packet, 0x5a, sizeof packet);
        memcpy(packet + MX_HEAD_BYTES, &reply, sizeof reply);
        assert_int_equal(mx_packet_endpoint(packet), endpoint);
        const struct mx_nack_pull_header nack = { .type = MX_PACKET_NACK_PULL,
                                                  .magic = reply.magic };
        memcpy(packet + MX_HEAD_BYTES, &nack, sizeof nack);
        assert_int_equal(mx_packet_endpoint(packet), endpoint);
        assert_int_equal(mx_endpoint_queue((uint8_t)endpoint, 8), endpoint & 7);
    }
}

/* The source is at one place in every event that a packet makes, the type the last byte of all. */
static void test_events(void **state)
{
    (void)state;
    union mx_event event;
    memset(&event, 0, sizeof event);
    event.tiny.source.endpoint = 5;
    event.tiny.source.sequence = 77;
    event.tiny.match = 99;
    event.type = MX_EVENT_SMALL;
    assert_int_equal(event.message.source.endpoint, 5);
    assert_int_equal(event.connect.source.sequence, 77);
    assert_int_equal(event.notify.source.sequence, 77);
    assert_int_equal(event.ack.source.endpoint, 5);
    assert_int_equal(event.nack.source.endpoint, 5);
    assert_int_equal(event.message.match, 99);
    assert_int_equal(((const uint8_t *)&event)[63], MX_EVENT_SMALL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types_and_sizes),
        cmocka_unit_test(test_packets),
        cmocka_unit_test(test_endpoint_of_packet),
        cmocka_unit_test(test_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
