/* The NIC's LRO: what is merged and what is not, when a session ends and what its completion says,
 * that no byte is lost, doubled or out of order. */
#include "tests/support/nic_rig.h"

#define BUFFER   65536u
#define TCP_HEAD 66u /* with time stamps */
#define MSS      1448u
#define TIMEOUT  (32 * SIM_PS_PER_US)

enum { FIN = 0x01, PSH = 0x08, ACK = 0x10, URG = 0x20, CWR = 0x80 };

struct bench {
    struct nr_rig rig;
    struct nr_cq cq;
    struct nr_rq rq;
    struct nr_flow flow[40];
};

/* A packet of a flow; `number` tells acknowledgements, windows and time stamps apart. */
struct packet {
    unsigned flow, number;
    uint32_t sequence, bytes;
    uint8_t flags, tos;
    bool no_time, bad;
};

static int set_up(void **state)
{
    struct fixture_test *t = *state;
    struct bench *b = t->fixture = calloc(1, sizeof(*b));
    nr_open(&b->rig, 1, 16, 100, t->settings);
    nr_eq_new(&b->rig, 0, 0, 0);
    b->cq = nr_cq_new(&b->rig, 0, 0, 0, 10, 0, 0, NIC_MODERATION_EQE);
    b->rq = nr_rq_new_with(&b->rig, 0, 0, 0, 6, NIC_COMMAND_LRO, BUFFER);
    uint64_t table = nr_alloc(&b->rig, 64);
    nr_ok(&b->rig, 0, (struct nic_command){ .opcode = NIC_SET_RSS, .iova = table });
    for (unsigned i = 0; i < SIM_N_ELEMENTS(b->flow); i++)
        b->flow[i] = (struct nr_flow){ .to_mac = nic_function_mac(b->rig.nic, 0),
                                       .from_mac = 0x020000000099,
                                       .source_ip = 0x0a000001,
                                       .destination_ip = 0x0a000002,
                                       .source_port = (uint16_t)(4000 + i),
                                       .destination_port = 5001 };
    nr_post(&b->rq, 32);
    return 0;
}

/* Behind the name the NIC's settings: "key", "value", ... */
#define LRO_TEST(test, ...) \
    FIXTURE_TEST(test, set_up, nr_tear_down, ((const char *const[8]){ __VA_ARGS__ }))

static sim_time send(struct bench *b, struct packet p)
{
    struct ether_frame *frame = ether_frame_new(&b->rig.peer);
    struct ether_packet parsed;
    uint8_t *h = frame->header;
    memset(h, 0, sizeof(frame->header));
    nr_headers(h, &b->flow[p.flow], p.sequence, p.bytes, p.flags);
    frame->header_bytes = p.no_time ? NR_HEADERS : TCP_HEAD;
    h[15] = p.tos;
    ether_put16(h + 16, (uint16_t)(frame->header_bytes - 14u + p.bytes));
    ether_put32(h + 42, 7000 + p.number);            /* acknowledgement */
    ether_put16(h + 48, (uint16_t)(100 + p.number)); /* window */
    if (!p.no_time) {
        h[46] = 0x80;
        ether_put32(h + 54, 0x0101080a);
        ether_put32(h + 58, 1000 + p.number);
        ether_put32(h + 62, 2000 + p.number);
    }
    frame->payload.bytes = p.bytes;
    frame->payload.n = p.bytes != 0;
    frame->payload.extent[0] =
        (struct payload_extent){ payload_mark((uint16_t)(1 + p.flow), p.sequence), p.bytes, 0 };
    ether_packet_parse(h, frame->header_bytes, &parsed);
    ether_ipv4_checksum_set(h, &parsed);
    ether_l4_checksum_set(frame, &parsed);
    if (p.bad)
        h[50] ^= 1;
    return ether_port_send(&b->rig.wire_end, frame, sim_now(b->rig.sim));
}

static void expect(struct bench *b, unsigned flow, uint32_t sequence, unsigned segments,
                   uint32_t bytes)
{
    struct nic_cqe cqe;
    uint8_t h[TCP_HEAD];
    if (!nr_poll(&b->cq, &cqe))
        fail_msg("no completion for %u bytes of flow %u", bytes, flow);
    uint64_t at = nr_buffer(&b->rq, cqe.wqe_index);
    nr_get(&b->rig, at, h, sizeof(h));
    assert_int_equal(cqe.op_own >> 4, NIC_CQE_RECEIVED);
    assert_int_equal(cqe.segments, segments);
    assert_int_equal(cqe.bytes, cqe.header_bytes + bytes);
    assert_int_equal(ether_get16(h + 34), 4000 + flow);
    assert_int_equal(ether_get32(h + 38), sequence);
    if (bytes != 0)
        assert_true(nr_holds(&b->rig, at + cqe.header_bytes,
                             payload_mark((uint16_t)(1 + flow), sequence), bytes));
}

static void expect_nothing(struct bench *b)
{
    struct nic_cqe cqe;
    assert_false(nr_poll(&b->cq, &cqe));
}

/* Two flows whose segments alternate: a buffer and a completion each, 32 us after its first. */
static void test_merge(void **state)
{
    struct bench *b = *state;
    struct nic_cqe cqe;
    uint8_t h[TCP_HEAD];
    sim_time first_ps = 0;
    for (unsigned i = 0; i < 20; i++)
        for (unsigned f = 0; f < 2; f++) {
            sim_time left_ps = send(b, (struct packet){ .flow = f,
                                                        .number = i,
                                                        .sequence = 0xffff0000u + i * MSS,
                                                        .bytes = MSS,
                                                        .flags = ACK });
            if (i == 0 && f == 0)
                first_ps = left_ps + NR_WIRE_PS + 225 * SIM_PS_PER_NS;
        }
    nr_run_for(&b->rig, first_ps + TIMEOUT - sim_now(b->rig.sim));
    expect_nothing(b);
    nr_run(&b->rig);
    /* the last write is the second flow's completion */
    assert_in_range(b->rig.last_write_ps, first_ps + TIMEOUT,
                    first_ps + TIMEOUT + SIM_PS_PER_US * 2);
    struct nr_cq again = b->cq;
    for (unsigned f = 0; f < 2; f++) {
        assert_true(nr_poll(&again, &cqe));
        assert_int_equal(cqe.header_bytes, TCP_HEAD);
        assert_int_equal(cqe.lro_ack, 7019);
        assert_int_equal(cqe.lro_window, 119);
        assert_int_equal(cqe.lro_tsval, 1019);
        assert_int_equal(cqe.lro_tsecr, 2019);
        assert_int_equal(cqe.lro_flags, ACK);
        assert_int_equal(cqe.flags, NIC_CQE_CHECKSUM_OK | NIC_CQE_HASH);
        assert_int_equal(cqe.wqe_index, f);
        nr_get(&b->rig, nr_buffer(&b->rq, f), h, sizeof(h)); /* the first one's */
        assert_int_equal(ether_get32(h + 42), 7000);
        expect(b, f, 0xffff0000u, 20, 20 * MSS);
    }
    expect_nothing(b);
    const struct nic_function_stats *stats = nic_function_stats(b->rig.nic, 0);
    assert_int_equal(stats->rx_packets, 40);
    assert_int_equal(stats->cqes, 2);
}

/* Behind PSH a session ends at once; what has no payload, other flags, another length of headers, a
 * wrong checksum or a gap before it ends it and is alone. */
static void test_ends(void **state)
{
    static const struct packet other[] = {
        { .sequence = 3000, .bytes = 0, .flags = ACK },
        { .sequence = 3000, .bytes = 500, .flags = ACK | FIN },
        { .sequence = 3000, .bytes = 500, .flags = ACK | URG },
        { .sequence = 3000, .bytes = 500, .flags = ACK | CWR },
        { .sequence = 3000, .bytes = 500, .flags = ACK, .tos = 3 },
        { .sequence = 3000, .bytes = 500, .flags = ACK, .bad = true },
    };
    struct bench *b = *state;
    send(b, (struct packet){ .sequence = 10, .bytes = 1000, .flags = ACK });
    send(b, (struct packet){ .sequence = 1010, .bytes = 90, .flags = ACK });
    sim_time left_ps = send(b, (struct packet){ .sequence = 1100, .bytes = 9, .flags = ACK | PSH });
    nr_run_for(&b->rig, left_ps + 10 * SIM_PS_PER_US - sim_now(b->rig.sim));
    expect(b, 0, 10, 3, 1099);
    for (unsigned i = 0; i < SIM_N_ELEMENTS(other); i++) {
        send(b, (struct packet){ .sequence = 1000, .bytes = 1000, .flags = ACK });
        send(b, (struct packet){ .sequence = 2000, .bytes = 1000, .flags = ACK });
        send(b, other[i]);
        nr_run_for(&b->rig, 10 * SIM_PS_PER_US);
        expect(b, 0, 1000, 2, 2000);
        expect(b, 0, 3000, 1, other[i].bytes);
        expect_nothing(b);
    }
    /* a gap; the rest begins a session of its own, as does what has other headers */
    send(b, (struct packet){ .sequence = 0, .bytes = 100, .flags = ACK });
    send(b, (struct packet){ .sequence = 200, .bytes = 100, .flags = ACK });
    send(b, (struct packet){ .sequence = 300, .bytes = 100, .flags = ACK });
    send(b, (struct packet){ .sequence = 400, .bytes = 100, .flags = ACK, .no_time = true });
    send(b, (struct packet){ .sequence = 500, .bytes = 100, .flags = ACK, .no_time = true });
    nr_run_for(&b->rig, 10 * SIM_PS_PER_US);
    expect(b, 0, 0, 1, 100);
    expect(b, 0, 200, 2, 200);
    expect_nothing(b);
    nr_run(&b->rig);
    expect(b, 0, 400, 2, 200);
    /* alone with PSH: at once */
    send(b, (struct packet){ .sequence = 0, .bytes = 100, .flags = ACK | PSH });
    nr_run_for(&b->rig, 5 * SIM_PS_PER_US);
    expect(b, 0, 0, 1, 100);
}

/* At most 64 KiB of IP packet, the buffer, 255 segments. */
static void test_full(void **state)
{
    struct bench *b = *state;
    for (unsigned i = 0; i < 50; i++)
        send(b, (struct packet){ .sequence = i * MSS, .bytes = MSS, .flags = ACK });
    for (unsigned i = 0; i < 300; i++)
        send(b, (struct packet){ .flow = 1, .sequence = i * 8, .bytes = 8, .flags = ACK });
    nr_run(&b->rig);
    expect(b, 0, 0, 45, 45 * MSS); /* 65160, and 52 of headers */
    expect(b, 1, 0, 255, 255 * 8);
    expect(b, 0, 45 * MSS, 5, 5 * MSS);
    expect(b, 1, 255 * 8, 45, 45 * 8);
    expect_nothing(b);
    b->rq.buffer_bytes = 5000;
    nr_post(&b->rq, 20);
    for (unsigned i = 0; i < 32 - 4; i++) /* the long ones */
        send(b, (struct packet){ .flow = i, .sequence = 0, .bytes = 8, .flags = ACK | PSH });
    nr_run(&b->rig);
    for (unsigned i = 0; i < 32 - 4; i++)
        expect(b, i, 0, 1, 8);
    for (unsigned i = 0; i < 4; i++)
        send(b, (struct packet){ .sequence = i * MSS, .bytes = MSS, .flags = ACK });
    nr_run(&b->rig);
    expect(b, 0, 0, 3, 3 * MSS);
    expect(b, 0, 3 * MSS, 1, MSS);
}

/* More flows than sessions: the oldest goes. The answer to a rule lies behind completions of what
 * came before it; a queue that is destroyed tells what it has. */
static void test_flushed(void **state)
{
    struct bench *b = *state;
    for (unsigned f = 0; f < 5; f++)
        for (unsigned i = 0; i < 2; i++)
            send(b, (struct packet){ .flow = f, .sequence = i * 100, .bytes = 100, .flags = ACK });
    nr_run_for(&b->rig, 10 * SIM_PS_PER_US);
    expect(b, 0, 0, 2, 200);
    expect_nothing(b);
    struct nic_command rule = { .opcode = NIC_DELETE_FLOW, .protocol = 6 };
    assert_int_equal(nr_command(&b->rig, 0, rule).status, NIC_COMMAND_NOT_FOUND);
    expect(b, 4, 0, 2, 200); /* in the place of flow 0 */
    for (unsigned f = 1; f < 4; f++)
        expect(b, f, 0, 2, 200);
    expect_nothing(b);
    send(b, (struct packet){ .flow = 7, .sequence = 5, .bytes = 100, .flags = ACK });
    nr_run_for(&b->rig, 10 * SIM_PS_PER_US);
    nr_ok(&b->rig, 0, (struct nic_command){ .opcode = NIC_DESTROY_RQ });
    nr_run_for(&b->rig, SIM_PS_PER_US);
    expect(b, 7, 5, 1, 100);
}

/* Flows of random segments, some lost, some with PSH, in turn at random: what arrives of each flow
 * is what was sent, in order, and merged as far as it may be. */
static void test_random(void **state)
{
    struct bench *b = *state;
    struct nic_cqe cqe;
    struct sim_random random;
    uint32_t sent[8] = { 0 }, got[8] = { 0 };
    uint64_t bytes_sent = 0, bytes_got = 0;
    unsigned n_packets = 0, n_cqes = 0;
    sim_random_init(&random, 3, "lro");
    for (unsigned round = 0; round < 400; round++) {
        for (unsigned i = 0; i < 40; i++) {
            unsigned f = (unsigned)(sim_random_u64(&random) % 8);
            uint32_t bytes = 8 + (uint32_t)(sim_random_u64(&random) % 1440);
            bool push = sim_random_u64(&random) % 16 == 0;
            sent[f] += sim_random_u64(&random) % 64 == 0 ? 77 : 0; /* lost */
            send(b, (struct packet){ .flow = f,
                                     .number = n_packets++,
                                     .sequence = sent[f],
                                     .bytes = bytes,
                                     .flags = ACK | (push ? PSH : 0) });
            sent[f] += bytes;
            bytes_sent += bytes;
        }
        nr_run_for(&b->rig, sim_random_u64(&random) % 10 * SIM_PS_PER_US);
        if (round % 4 != 3)
            continue;
        nr_run(&b->rig);
        while (nr_poll(&b->cq, &cqe)) {
            uint8_t h[TCP_HEAD];
            uint64_t at = nr_buffer(&b->rq, cqe.wqe_index);
            nr_get(&b->rig, at, h, sizeof(h));
            unsigned f = ether_get16(h + 34) - 4000u;
            uint32_t sequence = ether_get32(h + 38), bytes = cqe.bytes - TCP_HEAD;
            assert_in_range(sequence - got[f], 0, 77 * 8);
            assert_true(
                nr_holds(&b->rig, at + TCP_HEAD, payload_mark((uint16_t)(1 + f), sequence), bytes));
            got[f] = sequence + bytes;
            bytes_got += bytes;
            n_cqes++;
            nr_post(&b->rq, 1);
        }
    }
    assert_true(bytes_got == bytes_sent);
    assert_int_equal(nic_function_stats(b->rig.nic, 0)->rx_no_buffer, 0);
    assert_true(n_cqes < n_packets / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LRO_TEST(test_merge),
        LRO_TEST(test_ends),
        LRO_TEST(test_full, "lro_timeout_us", "1000"),
        LRO_TEST(test_flushed, "lro_sessions", "4", "lro_timeout_us", "1000"),
        LRO_TEST(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
