/* The NIC's receive side against a host of plain memory: latency, content, steering by MAC,
 * 5-tuple, flow table and RSS, drops, moderation and arming to the picosecond, removal. */
#include "tests/support/nic_rig.h"

#include "models/nic/nic_flow.h"
#include "models/pcie/endpoint/pcie_function.h"

#define RX_PS (225 * SIM_PS_PER_NS)

static struct nr_flow flow_to(const struct nr_rig *rig, unsigned pf, uint16_t port)
{
    return (struct nr_flow){ .to_mac = nic_function_mac(rig->nic, pf),
                             .from_mac = UINT64_C(0x020000000099),
                             .source_ip = 0x0a000002,
                             .destination_ip = 0x0a000001,
                             .source_port = port,
                             .destination_port = 5001 };
}

static sim_time link_ps(struct nr_rig *rig, unsigned tlp_bytes)
{
    return pcie_port_wire_ps(&rig->port[0], tlp_bytes);
}

static sim_time round_trip(struct nr_rig *rig, unsigned bytes)
{
    return link_ps(rig, 20) + link_ps(rig, 20 + (bytes + 3) / 4 * 4) + 2 * NR_LINK_PS +
           rig->delay_ps;
}

/* RSS with one entry: all to one queue. */
static void rss_to(struct nr_rig *rig, unsigned pf, uint16_t rq)
{
    uint64_t table = nr_alloc(rig, 64);
    nr_put(rig, table, &rq, sizeof(rq));
    nr_ok(rig, pf, (struct nic_command){ .opcode = NIC_SET_RSS, .iova = table });
}

struct nr_receiver {
    struct nr_cq cq;
    struct nr_rq rq;
};

/* Event queue 0, completion queue and receive queue `number` of the function. */
static struct nr_receiver receiver_new(struct nr_rig *rig, unsigned pf, unsigned number,
                                       unsigned us, unsigned count, unsigned mode)
{
    struct nr_receiver r;
    if (number == 0)
        nr_eq_new(rig, pf, 0, 0);
    r.cq = nr_cq_new(rig, pf, number, 0, 10, us, count, mode);
    r.rq = nr_rq_new(rig, pf, number, number, 9);
    if (number == 0)
        rss_to(rig, pf, 0);
    nr_run(rig);
    return r;
}

static void quiet_for_long(struct nr_rig *rig)
{
    nr_run(rig);
    nr_run_for(rig, SIM_PS_PER_MS);
}

/* ---- One packet ------------------------------------------------------------------------------ */

static void test_latency(void **state)
{
    static const uint32_t sizes[] = { 6, 100, 202, 203, 1446 };
    struct nr_rig *rig = *state;
    struct nic_cqe cqe;
    struct nr_receiver r = receiver_new(rig, 0, 0, 0, 0, NIC_MODERATION_EQE);
    struct nr_flow flow = flow_to(rig, 0, 4000);
    nr_post(&r.rq, 64);
    for (unsigned i = 0; i < SIM_N_ELEMENTS(sizes); i++) {
        quiet_for_long(rig);
        uint32_t bytes = NR_HEADERS + sizes[i];
        sim_time tail_ps = nr_wire_send(rig, &flow, 1, 0, sizes[i]) + NR_WIRE_PS;
        nr_run(rig);
        sim_time expected_ps = tail_ps + RX_PS + NR_LINK_PS;
        if (i == 0) /* the NIC knows of no buffer yet: record, then a batch of 16 entries */
            expected_ps += round_trip(rig, 4) + round_trip(rig, 256);
        /* back to back: the completion behind the data in TLPs of 256 bytes */
        uint32_t on_link = 20 + 64;
        for (uint32_t at = 0; at < bytes; at += 256)
            on_link += 20 + (SIM_MIN(bytes - at, 256u) + 3) / 4 * 4;
        assert_int_equal(rig->last_write_ps, expected_ps + link_ps(rig, on_link));
        assert_true(nr_poll(&r.cq, &cqe));
        assert_int_equal(cqe.op_own >> 4, NIC_CQE_RECEIVED);
        assert_int_equal(cqe.bytes, bytes);
        assert_int_equal(cqe.header_bytes, NR_HEADERS);
        assert_int_equal(cqe.wqe_index, i);
        assert_int_equal(cqe.queue, 0);
        assert_int_equal(cqe.segments, 1);
        assert_int_equal(cqe.flags, NIC_CQE_CHECKSUM_OK | NIC_CQE_HASH);
        assert_int_equal(cqe.time_ps, tail_ps);
        assert_false(nr_poll(&r.cq, &cqe));
    }
}

/* Headers are real bytes, the payload is the stream, wherever the buffer begins in a line. */
static void test_content(void **state)
{
    static const uint32_t offset[] = { 0, 2, 10, 64, 100, 250 };
    struct nr_rig *rig = *state;
    struct nic_cqe cqe;
    struct nr_receiver r = receiver_new(rig, 0, 0, 0, 0, NIC_MODERATION_EQE);
    struct nr_flow flow = flow_to(rig, 0, 4000);
    unsigned n = 0;
    for (unsigned o = 0; o < SIM_N_ELEMENTS(offset); o++)
        for (uint32_t bytes = 8; bytes <= 1446; bytes += 237, n++) {
            uint8_t expected[NR_HEADERS], found[NR_HEADERS];
            uint64_t position = 1000003 * (uint64_t)n;
            r.rq.buffer_offset = offset[o];
            nr_post(&r.rq, 1);
            nr_wire_send(rig, &flow, 7, position, bytes);
            nr_run(rig);
            assert_true(nr_poll(&r.cq, &cqe));
            uint64_t at = nr_buffer(&r.rq, cqe.wqe_index);
            struct ether_packet packet;
            nr_headers(expected, &flow, (uint32_t)position, bytes, TCP_FLAG_ACK);
            nr_get(rig, at, found, sizeof(found));
            ether_packet_parse(found, sizeof(found), &packet);
            assert_int_equal(ether_ipv4_checksum(found, &packet), 0);
            memcpy(expected + 24, found + 24, 2); /* the checksums */
            memcpy(expected + 50, found + 50, 2);
            assert_memory_equal(found, expected, sizeof(found));
            assert_true(nr_holds(rig, at + NR_HEADERS, payload_mark(7, position), bytes));
        }
}

static void test_bad_checksum_is_told(void **state)
{
    struct nr_rig *rig = *state;
    struct nic_cqe cqe;
    struct nr_receiver r = receiver_new(rig, 0, 0, 0, 0, NIC_MODERATION_EQE);
    nr_post(&r.rq, 4);
    for (unsigned wrong = 0; wrong < 2; wrong++) {
        struct nr_flow flow = flow_to(rig, 0, 4000);
        struct ether_frame *frame = ether_frame_new(&rig->peer);
        struct ether_packet packet;
        nr_headers(frame->header, &flow, 1, 0, TCP_FLAG_ACK);
        frame->header_bytes = NR_HEADERS;
        ether_packet_parse(frame->header, NR_HEADERS, &packet);
        ether_ipv4_checksum_set(frame->header, &packet);
        ether_l4_checksum_set(frame, &packet);
        frame->header[wrong == 0 ? 40 : 22] ^= 4; /* sequence number, time to live */
        ether_port_send(&rig->wire_end, frame, sim_now(rig->sim));
        nr_run(rig);
        assert_true(nr_poll(&r.cq, &cqe));
        assert_int_equal(cqe.flags, NIC_CQE_HASH);
    }
}

/* ---- Buffers --------------------------------------------------------------------------------- */

static unsigned poll_all(struct nr_cq *cq)
{
    struct nic_cqe cqe;
    unsigned n = 0;
    while (nr_poll(cq, &cqe))
        n++;
    return n;
}

static void test_no_buffer(void **state)
{
    struct nr_rig *rig = *state;
    struct nr_receiver r = receiver_new(rig, 0, 0, 0, 0, NIC_MODERATION_EQE);
    struct nr_flow flow = flow_to(rig, 0, 4000);
    const struct nic_function_stats *stats = nic_function_stats(rig->nic, 0);
    nr_post(&r.rq, 10);
    for (unsigned i = 0; i < 25; i++)
        nr_wire_send(rig, &flow, 1, i, 1000);
    nr_run(rig);
    assert_int_equal(poll_all(&r.cq), 10);
    assert_int_equal(stats->rx_no_buffer, 15);
    assert_int_equal(stats->rx_packets, 10);
    struct nic_command query = { .opcode = NIC_QUERY_DROPS };
    assert_int_equal(nr_command(rig, 0, query).value, 15);
    nr_post(&r.rq, 3); /* found by the record's next read */
    for (unsigned i = 0; i < 5; i++)
        nr_wire_send(rig, &flow, 1, i, 1000);
    nr_run(rig);
    assert_int_equal(poll_all(&r.cq), 3);
    assert_int_equal(stats->rx_no_buffer, 17);
}

/* Posted in time, no packet is dropped, however often the ring wraps; WQEs are read by lines. */
static void test_ring_wraps(void **state)
{
    struct nr_rig *rig = *state;
    struct nic_cqe cqe;
    struct nr_receiver r = receiver_new(rig, 0, 0, 0, 0, NIC_MODERATION_EQE);
    struct nr_flow flow = flow_to(rig, 0, 4000);
    nr_post(&r.rq, 512);
    uint64_t reads = rig->n_reads;
    unsigned n = 0;
    for (unsigned round = 0; round < 20; round++) {
        for (unsigned i = 0; i < 256; i++)
            nr_wire_send(rig, &flow, 1, (uint64_t)(n + i) * 1000, 1000);
        nr_run(rig);
        for (unsigned i = 0; i < 256; i++, n++) {
            assert_true(nr_poll(&r.cq, &cqe));
            assert_int_equal(cqe.wqe_index, (uint16_t)n);
            assert_true(nr_holds(rig, nr_buffer(&r.rq, n) + NR_HEADERS,
                                 payload_mark(1, (uint64_t)n * 1000), 1000));
        }
        nr_post(&r.rq, 256);
    }
    const struct nic_function_stats *stats = nic_function_stats(rig->nic, 0);
    assert_int_equal(stats->rx_packets, 20 * 256);
    assert_int_equal(stats->rx_no_buffer, 0);
    /* 16 to a read, and now and then the record */
    assert_in_range(rig->n_reads - reads, n / 16, n / 16 + n / 20);
}

/* Packets of 1500 bytes at 100 Gb/s into a Gen3 x8 port: writes at the link's rate, the rest does
 * not fit on the chip. */
static void test_overflow_at_the_links_rate(void **state)
{
    struct nr_rig *rig = *state;
    struct nr_receiver r = receiver_new(rig, 0, 0, 0, 0, NIC_MODERATION_EQE);
    struct nr_flow flow = flow_to(rig, 0, 4000);
    const struct nic_function_stats *stats = nic_function_stats(rig->nic, 0);
    r.rq.buffer_bytes = 2048;
    nr_post(&r.rq, 512);
    sim_time start_ps = sim_now(rig->sim);
    for (unsigned round = 0; round < 40; round++) {
        for (unsigned i = 0; i < 100; i++)
            nr_wire_send(rig, &flow, 1, i, 1446);
        /* buffers do not run out while the senders go on */
        nr_run_for(rig, 100 * (1524 * 80));
        nr_post(&r.rq, poll_all(&r.cq));
    }
    sim_time end_ps = sim_now(rig->sim);
    double gbit_s = (double)stats->rx_bytes * 8000 / (double)(end_ps - start_ps);
    /* 1500 bytes are six TLPs of 20 bytes more, a completion is 84 */
    double link = 64.0 * 128 / 130 * 1500 / (1500 + 6 * 20 + 84);
    assert_true(stats->rx_overflow > 1000);
    assert_int_equal(stats->rx_no_buffer, 0);
    assert_true(gbit_s > 0.96 * link && gbit_s < 1.04 * link); /* what was on the chip at the end */
    nr_run(rig);
    assert_int_equal(stats->rx_packets + stats->rx_overflow, 4000);
}

/* The same with flow control: the sender is stopped and goes on, nothing is lost, and the link is
 * as busy as before. Both functions share the port: what goes to the other one waits, too. */
static void test_flow_control(void **state)
{
    struct nr_rig *rig = *state;
    struct nr_receiver r = receiver_new(rig, 0, 0, 0, 0, NIC_MODERATION_EQE);
    struct nr_receiver r1 = receiver_new(rig, 1, 0, 0, 0, NIC_MODERATION_EQE);
    struct nr_flow flow = flow_to(rig, 0, 4000), flow1 = flow_to(rig, 1, 4000);
    const struct nic_function_stats *stats = nic_function_stats(rig->nic, 0);
    rig->wire_end.flow_control = true;
    r.rq.buffer_bytes = r1.rq.buffer_bytes = 2048;
    nr_post(&r.rq, 512);
    nr_post(&r1.rq, 50);
    sim_time start_ps = sim_now(rig->sim);
    for (unsigned i = 0; i < 4000; i++)
        nr_wire_send(rig, &flow, 1, i, 1446);
    for (unsigned i = 0; i < 40; i++)
        nr_wire_send(rig, &flow1, 1, i, 1446);
    while (ether_port_in_flight(&rig->wire_end) > 400) {
        nr_run_for(rig, 20 * SIM_PS_PER_US);
        nr_post(&r.rq, poll_all(&r.cq));
    }
    double gbit_s = (double)stats->rx_bytes * 8000 / (double)(sim_now(rig->sim) - start_ps);
    double link = 64.0 * 128 / 130 * 1500 / (1500 + 6 * 20 + 84);
    assert_true(gbit_s > 0.96 * link && gbit_s < 1.04 * link);
    assert_int_equal(nic_function_stats(rig->nic, 1)->rx_packets, 0);
    while (ether_port_in_flight(&rig->wire_end) != 0) {
        nr_run_for(rig, 20 * SIM_PS_PER_US);
        nr_post(&r.rq, poll_all(&r.cq));
    }
    nr_run_for(rig, 100 * SIM_PS_PER_US);
    assert_int_equal(stats->rx_packets, 4000);
    assert_int_equal(stats->rx_overflow + stats->rx_no_buffer, 0);
    assert_int_equal(nic_function_stats(rig->nic, 1)->rx_packets, 40);
    const struct ether_stats *wire = ether_port_stats(cable_port(&ether_cable, rig->nic, 0));
    assert_true(wire->pause_frames > 20);
    assert_true(ether_port_stats(&rig->wire_end)->paused_ps > 100 * SIM_PS_PER_US);
}

/* The NIC as a sender that is stopped in the midst of a TSO burst: completions come when the last
 * bit has left, the rest of a full buffer when it goes on. */
static void test_stopped_while_sending(void **state)
{
    struct nr_rig *rig = *state;
    rig->wire_end.flow_control = true;
    nr_eq_new(rig, 0, 0, 0);
    struct nr_cq cq = nr_cq_new(rig, 0, 0, 0, 10, 0, 0, NIC_MODERATION_EQE);
    struct nr_sq sq = nr_sq_new(rig, 0, 0, 0, 8);
    struct nr_flow flow = flow_to(rig, 0, 4000);
    struct nic_cqe cqe;
    uint64_t data = nr_alloc(rig, 65536);
    nr_stamp(rig, data, payload_mark(1, 0), 65536);
    struct nr_piece piece = { data, 1446 * 45, 0 };
    for (unsigned i = 0; i < 4; i++)
        nr_wqe(&sq, &flow, i * 1446 * 45, TCP_FLAG_ACK, &piece, 1, 1446, NIC_WQE_COMPLETION);
    nr_doorbell(&sq);
    nr_run_for(rig, 3 * SIM_PS_PER_US);
    ether_port_pause(&rig->wire_end, true);
    nr_run_for(rig, 100 * SIM_PS_PER_US);
    unsigned n = rig->n_frames;
    assert_in_range(n, 1, 44);
    assert_false(nr_poll(&cq, &cqe));
    sim_time on_ps = sim_now(rig->sim);
    ether_port_pause(&rig->wire_end, false);
    nr_run(rig);
    assert_int_equal(rig->n_frames, 180);
    assert_true(rig->frame[n].tail_ps > on_ps);
    for (unsigned i = 0; i < 4; i++) {
        assert_true(nr_poll(&cq, &cqe));
        assert_int_equal(cqe.op_own >> 4, NIC_CQE_SENT);
        assert_int_equal(cqe.time_ps, rig->frame[45 * i + 44].tail_ps - NR_WIRE_PS);
    }
}

static void test_too_long(void **state)
{
    struct nr_rig *rig = *state;
    struct nic_cqe cqe;
    struct nr_receiver r = receiver_new(rig, 0, 0, 0, 0, NIC_MODERATION_EQE);
    struct nr_flow flow = flow_to(rig, 0, 4000);
    r.rq.buffer_bytes = 500;
    nr_post(&r.rq, 4);
    nr_wire_send(rig, &flow, 1, 0, 447); /* one byte more than the buffer */
    nr_wire_send(rig, &flow, 1, 0, 446);
    nr_wire_send(rig, &flow, 1, 0, 1461); /* than the MTU */
    nr_run(rig);
    assert_true(nr_poll(&r.cq, &cqe));
    assert_int_equal(cqe.bytes, 500);
    assert_int_equal(cqe.wqe_index, 0);
    assert_false(nr_poll(&r.cq, &cqe));
}

static void test_destroyed_queue_drops(void **state)
{
    struct nr_rig *rig = *state;
    struct nr_receiver r = receiver_new(rig, 0, 0, 0, 0, NIC_MODERATION_EQE);
    struct nr_flow flow = flow_to(rig, 0, 4000);
    const struct nic_function_stats *stats = nic_function_stats(rig->nic, 0);
    nr_post(&r.rq, 100);
    for (unsigned i = 0; i < 200; i++)
        nr_wire_send(rig, &flow, 1, i, 1446);
    nr_ok(rig, 0, (struct nic_command){ .opcode = NIC_DESTROY_RQ });
    uint64_t before = stats->rx_packets;
    nr_run(rig);
    assert_int_equal(stats->rx_packets, before);
    assert_int_equal(stats->rx_packets + stats->rx_no_queue + stats->rx_no_buffer, 200);
    assert_true(stats->rx_no_queue > 0);
    r.rq = nr_rq_new(rig, 0, 0, 0, 9);
    nr_post(&r.rq, 10);
    nr_wire_send(rig, &flow, 1, 0, 1446);
    nr_run(rig);
    assert_int_equal(stats->rx_packets, before + 1);
}

/* The driver destroys the completion queue first, while packets come in: they are written, and
 * nobody is told. */
static void test_completion_queue_destroyed_first(void **state)
{
    struct nr_rig *rig = *state;
    struct nr_receiver r = receiver_new(rig, 0, 0, 0, 0, NIC_MODERATION_EQE);
    struct nr_flow flow = flow_to(rig, 0, 4000);
    nr_post(&r.rq, 100);
    nr_ok(rig, 0, (struct nic_command){ .opcode = NIC_DESTROY_CQ });
    for (unsigned i = 0; i < 20; i++)
        nr_wire_send(rig, &flow, 1, i * 1446, 1446);
    nr_run(rig);
    for (unsigned i = 0; i < 20; i++)
        assert_true(
            nr_holds(rig, nr_buffer(&r.rq, i) + NR_HEADERS, payload_mark(1, i * 1446), 1446));
    nr_ok(rig, 0, (struct nic_command){ .opcode = NIC_DESTROY_RQ });
}

/* Its record, or its entries, cannot be read: one error completion with an event, packets are
 * dropped. Made anew, it receives. */
static void test_failed_queue_tells(void **state)
{
    struct nr_rig *rig = *state;
    struct nr_flow flow = flow_to(rig, 0, 4000);
    const struct nic_function_stats *stats = nic_function_stats(rig->nic, 0);
    struct nr_receiver r = receiver_new(rig, 0, 0, 0, 0, NIC_MODERATION_EQE);
    for (unsigned i = 0; i < 2; i++) {
        struct nic_cqe cqe;
        const uint64_t dropped = stats->rx_no_queue;
        const unsigned irqs = rig->n_irqs;
        nr_mmio_write(rig, 0, NIC_DOORBELL_EQ(0), 8, stats->eqes);
        nr_arm(&r.cq);
        nr_post(&r.rq, 10);
        rig->refused = i == 0 ? r.rq.record : r.rq.ring;
        for (unsigned k = 0; k < 3; k++)
            nr_wire_send(rig, &flow, 1, 0, 1446);
        nr_run(rig);
        assert_true(nr_poll(&r.cq, &cqe));
        assert_int_equal(cqe.op_own >> 4, NIC_CQE_ERROR);
        assert_int_equal(cqe.queue, 0);
        assert_int_equal(cqe.wqe_index, 0);
        assert_false(nr_poll(&r.cq, &cqe));
        assert_int_equal(rig->n_irqs, irqs + 1);
        assert_int_equal(stats->rx_no_queue, dropped + 3);
        rig->refused = 0;
        nr_wire_send(rig, &flow, 1, 0, 1446);
        nr_run(rig);
        assert_false(nr_poll(&r.cq, &cqe));
        nr_ok(rig, 0, (struct nic_command){ .opcode = NIC_DESTROY_RQ });
        r.rq = nr_rq_new(rig, 0, 0, 0, 9);
        nr_post(&r.rq, 10);
        nr_wire_send(rig, &flow, 1, 0, 1446);
        nr_run(rig);
        assert_true(nr_poll(&r.cq, &cqe));
        assert_int_equal(cqe.op_own >> 4, NIC_CQE_RECEIVED);
        nr_ok(rig, 0, (struct nic_command){ .opcode = NIC_DESTROY_RQ });
        r.rq = nr_rq_new(rig, 0, 0, 0, 9);
    }
}

/* ---- Steering -------------------------------------------------------------------------------- */

/* "Verifying the RSS hash calculation": addresses, ports, hash without and with ports. */
static void test_rss_hash_of_the_specification(void **unused)
{
    static const struct {
        struct ether_flow flow;
        uint32_t addresses, ports;
    } vector[] = {
        { { 0x420995bb, 0xa18e6450, 2794, 1766, 6 }, 0x323e8fc2, 0x51ccc178 },
        { { 0xc75c6f02, 0x41458c53, 14230, 4739, 6 }, 0xd718262a, 0xc626b0ea },
        { { 0x1813c65f, 0x0c16cfb8, 12898, 38024, 6 }, 0xd2d0a5de, 0x5c2b394a },
        { { 0x261bcd1e, 0xd18ea306, 48228, 2217, 6 }, 0x82989176, 0xafc7327f },
        { { 0x9927a3bf, 0xcabc7f02, 44251, 1303, 6 }, 0x5d1809c5, 0x10e828a2 },
    };
    struct nic_rss *rss = malloc(sizeof(*rss));
    (void)unused;
    nic_rss_init(rss);
    for (unsigned i = 0; i < SIM_N_ELEMENTS(vector); i++) {
        assert_int_equal(nic_rss_hash(rss, &vector[i].flow, false), vector[i].addresses);
        assert_int_equal(nic_rss_hash(rss, &vector[i].flow, true), vector[i].ports);
    }
    free(rss);
}

static void test_rss_spreads(void **state)
{
    struct nr_rig *rig = *state;
    struct nr_receiver r[4];
    struct nic_cqe cqe;
    uint16_t table[128];
    for (unsigned q = 0; q < 4; q++) {
        r[q] = receiver_new(rig, 0, q, 0, 0, NIC_MODERATION_EQE);
        nr_post(&r[q].rq, 512);
    }
    for (unsigned i = 0; i < 128; i++)
        table[i] = (uint16_t)(i % 4);
    uint64_t at = nr_alloc(rig, sizeof(table));
    nr_put(rig, at, table, sizeof(table));
    nr_ok(rig, 0, (struct nic_command){ .opcode = NIC_SET_RSS, .iova = at, .log_entries = 7 });
    for (unsigned i = 0; i < 400; i++) {
        struct nr_flow flow = flow_to(rig, 0, (uint16_t)(1000 + i));
        nr_wire_send(rig, &flow, 1, i, 100);
    }
    nr_run(rig);
    unsigned total = 0;
    for (unsigned q = 0; q < 4; q++) {
        unsigned n = 0;
        for (; nr_poll(&r[q].cq, &cqe); n++)
            assert_int_equal(cqe.rss_hash % 4, q);
        assert_in_range(n, 60, 140);
        total += n;
    }
    assert_int_equal(total, 400);
}

static struct nic_command flow_command(unsigned opcode, const struct nr_flow *flow, unsigned target)
{
    return (struct nic_command){ .opcode = (uint16_t)opcode,
                                 .target = (uint16_t)target,
                                 .source_ip = flow->source_ip,
                                 .destination_ip = flow->destination_ip,
                                 .source_port = flow->source_port,
                                 .destination_port = flow->destination_port,
                                 .protocol = IP_PROTOCOL_TCP };
}

static void test_flow_table(void **state)
{
    struct nr_rig *rig = *state;
    struct nr_receiver r[2];
    struct nic_cqe cqe;
    for (unsigned q = 0; q < 2; q++) {
        r[q] = receiver_new(rig, 0, q, 0, 0, NIC_MODERATION_EQE);
        nr_post(&r[q].rq, 512);
    }
    struct nr_flow flow[5];
    for (unsigned i = 0; i < 5; i++)
        flow[i] = flow_to(rig, 0, (uint16_t)(100 + i));
    for (unsigned i = 0; i < 3; i++)
        nr_ok(rig, 0, flow_command(NIC_SET_FLOW, &flow[i], 1));
    assert_int_equal(nr_command(rig, 0, flow_command(NIC_SET_FLOW, &flow[3], 1)).status,
                     NIC_COMMAND_NO_RESOURCE);
    for (unsigned i = 0; i < 5; i++)
        nr_wire_send(rig, &flow[i], 1, i, 100);
    nr_run(rig);
    assert_int_equal(poll_all(&r[1].cq), 3); /* the others still arrive, by RSS */
    assert_int_equal(poll_all(&r[0].cq), 2);
    nr_ok(rig, 0, flow_command(NIC_SET_FLOW, &flow[1], 0)); /* moves, though the table is full */
    nr_ok(rig, 0, flow_command(NIC_DELETE_FLOW, &flow[0], 0));
    assert_int_equal(nr_command(rig, 0, flow_command(NIC_DELETE_FLOW, &flow[0], 0)).status,
                     NIC_COMMAND_NOT_FOUND);
    nr_ok(rig, 0, flow_command(NIC_SET_FLOW, &flow[3], 1));
    for (unsigned i = 0; i < 5; i++)
        nr_wire_send(rig, &flow[i], 1, i, 100);
    nr_run(rig);
    assert_int_equal(poll_all(&r[1].cq), 2); /* 2 and 3 */
    assert_int_equal(poll_all(&r[0].cq), 3);
    assert_false(nr_poll(&r[0].cq, &cqe));
}

/* A rule takes command_latency: packets before it go the old way, those after it the new. */
static void test_update_latency(void **state)
{
    struct nr_rig *rig = *state;
    struct nr_receiver r[2];
    for (unsigned q = 0; q < 2; q++) {
        r[q] = receiver_new(rig, 0, q, 0, 0, NIC_MODERATION_EQE);
        nr_post(&r[q].rq, 512);
    }
    struct nr_flow flow = flow_to(rig, 0, 100);
    struct nic_command command = flow_command(NIC_SET_FLOW, &flow, 1);
    command.status = NIC_COMMAND_PENDING;
    nr_put(rig, rig->command[0], &command, sizeof(command));
    nr_mmio_write(rig, 0, NIC_REG_COMMAND_LOW, 4, rig->command[0]);
    nr_mmio_write(rig, 0, NIC_REG_COMMAND_HIGH, 4, 0);
    sim_time in_force_ps = sim_now(rig->sim) + 2 * link_ps(rig, 28) + NR_LINK_PS +
                           round_trip(rig, 64) + 25 * SIM_PS_PER_US;
    unsigned early = 0;
    for (unsigned i = 0; i < 40; i++) {
        sim_time seen_ps = nr_wire_send(rig, &flow, 1, i, 100) + NR_WIRE_PS + RX_PS;
        early += seen_ps < in_force_ps;
        nr_run_for(rig, SIM_PS_PER_US);
    }
    nr_run(rig);
    assert_in_range(early, 20, 30);
    assert_int_equal(poll_all(&r[0].cq), early);
    assert_int_equal(poll_all(&r[1].cq), 40 - early);
}

/* When the answer of a rule is there, so are the packets that came before the rule was in force:
 * also if the link is slow and buffers have to be looked for. */
static void test_answer_behind_packets(void **state)
{
    struct nr_rig *rig = *state;
    struct nr_receiver r[2];
    for (unsigned q = 0; q < 2; q++)
        r[q] = receiver_new(rig, 0, q, 0, 0, NIC_MODERATION_EQE);
    struct nr_flow flow = flow_to(rig, 0, 100);
    nr_post(&r[0].rq, 256);
    nr_post(&r[1].rq, 256);
    rig->delay_ps = 3 * SIM_PS_PER_US; /* record, WQEs */
    for (unsigned i = 0; i < 100; i++)
        nr_wire_send(rig, &flow, 1, i, 1446);
    struct nic_command command = flow_command(NIC_SET_FLOW, &flow, 1);
    nr_run_for(rig, 2 * SIM_PS_PER_US);
    command.status = NIC_COMMAND_PENDING;
    nr_put(rig, rig->command[0], &command, sizeof(command));
    nr_mmio_write(rig, 0, NIC_REG_COMMAND_LOW, 4, rig->command[0]);
    nr_mmio_write(rig, 0, NIC_REG_COMMAND_HIGH, 4, 0);
    while (command.status == NIC_COMMAND_PENDING) {
        nr_run_for(rig, 10 * SIM_PS_PER_NS);
        nr_get(rig, rig->command[0], &command, sizeof(command));
    }
    unsigned n = poll_all(&r[0].cq);
    assert_in_range(n, 20, 99);
    nr_run(rig);
    assert_int_equal(poll_all(&r[0].cq), 0);
    assert_int_equal(poll_all(&r[1].cq), 100 - n);
}

/* The table against a list, with many collisions and deletions. */
static void test_flow_table_by_chance(void **unused)
{
    enum { N = 200 };
    struct nic_flow_table table;
    struct sim_random random;
    bool there[N] = { false };
    uint16_t target[N] = { 0 };
    unsigned n = 0;
    (void)unused;
    sim_random_init(&random, 3, "flows");
    nic_flow_init(&table, 120);
    for (unsigned step = 0; step < 200000; step++) {
        unsigned i = (unsigned)sim_random_below(&random, N);
        struct ether_flow flow = { i * 7, i % 3, (uint16_t)i, 80, 6 };
        const struct nic_flow_entry *entry = nic_flow_find(&table, &flow);
        assert_int_equal(entry != NULL, there[i]);
        if (there[i])
            assert_int_equal(entry->target, target[i]);
        if (sim_random_below(&random, 2) == 0) {
            assert_int_equal(nic_flow_delete(&table, &flow), there[i]);
            n -= there[i];
            there[i] = false;
        } else {
            bool fits = there[i] || n < 120;
            uint16_t to = (uint16_t)sim_random_below(&random, 99);
            assert_int_equal(nic_flow_set(&table, &flow, to), fits);
            n += fits && !there[i];
            if (fits) {
                there[i] = true;
                target[i] = to;
            }
        }
    }
    nic_flow_release(&table);
}

/* Standard firmware: a MAC per function, further rules by MAC, broadcasts to all. */
static void test_switch_by_mac(void **state)
{
    struct nr_rig *rig = *state;
    struct nr_receiver r[2];
    for (unsigned pf = 0; pf < 2; pf++) {
        r[pf] = receiver_new(rig, pf, 0, 0, 0, NIC_MODERATION_EQE);
        nr_post(&r[pf].rq, 64);
    }
    assert_true(nic_function_mac(rig->nic, 0) != nic_function_mac(rig->nic, 1));
    struct nr_flow flow[] = { flow_to(rig, 0, 1), flow_to(rig, 1, 1), flow_to(rig, 1, 1) };
    flow[2].to_mac = UINT64_C(0x020000001234);
    for (unsigned i = 0; i < 3; i++)
        nr_wire_send(rig, &flow[i], 1, 0, 100);
    nr_run(rig);
    assert_int_equal(poll_all(&r[0].cq), 1);
    assert_int_equal(poll_all(&r[1].cq), 1); /* nobody has the third's */
    struct nic_command rule = { .opcode = NIC_SET_SWITCH,
                                .target = 1,
                                .mac = { 0x02, 0, 0, 0, 0x12, 0x34 } };
    nr_ok(rig, 0, rule);
    nr_wire_send(rig, &flow[2], 1, 0, 100);
    nr_run(rig);
    assert_int_equal(poll_all(&r[1].cq), 1);
    rule.opcode = NIC_DELETE_SWITCH;
    nr_ok(rig, 1, rule);
    nr_wire_send(rig, &flow[2], 1, 0, 100);
    flow[0].to_mac = ETHER_BROADCAST;
    nr_wire_send(rig, &flow[0], 1, 0, 100);
    nr_run(rig);
    assert_int_equal(poll_all(&r[0].cq), 1);
    assert_int_equal(poll_all(&r[1].cq), 1);
}

/* octoNIC: one MAC, rules by 5-tuple from any function, a default function, broadcasts to it. */
static void test_switch_by_flow(void **state)
{
    struct nr_rig *rig = *state;
    struct nr_receiver r[2];
    for (unsigned pf = 0; pf < 2; pf++) {
        r[pf] = receiver_new(rig, pf, 0, 0, 0, NIC_MODERATION_EQE);
        nr_post(&r[pf].rq, 64);
    }
    struct nr_flow flow[4];
    for (unsigned i = 0; i < 4; i++)
        flow[i] = flow_to(rig, 0, (uint16_t)(10 + i));
    nr_ok(rig, 0, flow_command(NIC_SET_SWITCH, &flow[0], 1));
    nr_ok(rig, 1, flow_command(NIC_SET_SWITCH, &flow[1], 1));
    assert_int_equal(nr_command(rig, 0, flow_command(NIC_SET_SWITCH, &flow[2], 1)).status,
                     NIC_COMMAND_NO_RESOURCE);
    for (unsigned i = 0; i < 4; i++)
        nr_wire_send(rig, &flow[i], 1, 0, 100);
    nr_run(rig);
    assert_int_equal(poll_all(&r[0].cq), 2); /* no rule: the default function */
    assert_int_equal(poll_all(&r[1].cq), 2);
    nr_ok(rig, 0, flow_command(NIC_DELETE_SWITCH, &flow[0], 0));
    nr_ok(rig, 0, (struct nic_command){ .opcode = NIC_SET_SWITCH, .target = 1 }); /* default */
    nr_ok(rig, 0, flow_command(NIC_SET_SWITCH, &flow[3], 0));
    for (unsigned i = 0; i < 4; i++)
        nr_wire_send(rig, &flow[i], 1, 0, 100);
    struct nr_flow other = flow_to(rig, 0, 10);
    other.to_mac++; /* not ours */
    nr_wire_send(rig, &other, 1, 0, 100);
    nr_run(rig);
    assert_int_equal(poll_all(&r[0].cq), 1);
    assert_int_equal(poll_all(&r[1].cq), 3);
}

/* ---- Events ---------------------------------------------------------------------------------- */

/* From the NIC's decision to the interrupt's arrival: the packet of 160 bytes, completion, event
 * and message that go before. */
static sim_time after_packet(struct nr_rig *rig)
{
    return link_ps(rig, 20 + 160 + 84 + 84 + 24) + NR_LINK_PS;
}

static sim_time after_timer(struct nr_rig *rig)
{
    return link_ps(rig, 84 + 24) + NR_LINK_PS;
}

/* A packet that the NIC sees at at_ps. */
static void packet_at(struct nr_rig *rig, const struct nr_flow *flow, sim_time at_ps)
{
    sim_time before_ps = (160 + 12) * 80 + NR_WIRE_PS + RX_PS;
    assert_true(at_ps >= sim_now(rig->sim) + before_ps);
    nr_run_for(rig, at_ps - before_ps - sim_now(rig->sim));
    nr_wire_send(rig, flow, 1, 0, 160 - NR_HEADERS);
}

static void arm_all(struct nr_rig *rig, struct nr_receiver *r, uint32_t events)
{
    nr_arm(&r->cq);
    nr_mmio_write(rig, r->cq.pf, NIC_DOORBELL_EQ(0), 8, events);
    nr_run_for(rig, SIM_PS_PER_US);
}

static void test_moderation(void **state)
{
    const sim_time us = SIM_PS_PER_US;
    struct nr_rig *rig = *state;
    struct nr_receiver r = receiver_new(rig, 0, 0, 20, 4, NIC_MODERATION_EQE);
    struct nr_flow flow = flow_to(rig, 0, 4000);
    nr_post(&r.rq, 256);
    packet_at(rig, &flow, sim_now(rig->sim) + 5 * us); /* readies the chip; not armed */
    quiet_for_long(rig);
    assert_int_equal(rig->n_irqs, 0);
    poll_all(&r.cq);

    /* EQE: 1 ms after the last event nothing delays; then 20 us from that event */
    arm_all(rig, &r, 0);
    sim_time t = sim_now(rig->sim) + 10 * us;
    packet_at(rig, &flow, t);
    nr_run_for(rig, 3 * us);
    assert_int_equal(rig->n_irqs, 1);
    assert_int_equal(rig->irq[0].at_ps, t + after_packet(rig));
    assert_int_equal(poll_all(&r.cq), 1);
    arm_all(rig, &r, 1);
    packet_at(rig, &flow, t + 6 * us);
    packet_at(rig, &flow, t + 12 * us);
    nr_run_for(rig, 20 * us);
    assert_int_equal(rig->n_irqs, 2);
    assert_int_equal(rig->irq[1].at_ps, t + 20 * us + after_timer(rig));
    assert_int_equal(poll_all(&r.cq), 2);

    /* the fourth completion is enough */
    arm_all(rig, &r, 2);
    t = rig->irq[1].at_ps + 1 * us;
    t = SIM_MAX(t, sim_now(rig->sim) + us);
    for (unsigned i = 0; i < 4; i++)
        packet_at(rig, &flow, t + i * us);
    nr_run_for(rig, us);
    assert_int_equal(rig->n_irqs, 3);
    assert_int_equal(rig->irq[2].at_ps, t + 3 * us + after_packet(rig));
    assert_int_equal(poll_all(&r.cq), 4);
    assert_int_equal(nic_function_stats(rig->nic, 0)->timer_events, 1);

    /* CQE: 20 us after the last of them */
    nr_ok(rig, 0,
          (struct nic_command){ .opcode = NIC_MODIFY_CQ,
                                .moderation_us = 20,
                                .moderation_count = 100,
                                .moderation_mode = NIC_MODERATION_CQE });
    quiet_for_long(rig);
    arm_all(rig, &r, 3);
    t = sim_now(rig->sim) + 10 * us;
    for (unsigned i = 0; i < 7; i++)
        packet_at(rig, &flow, t + 15 * i * us);
    nr_run_for(rig, 40 * us);
    assert_int_equal(rig->n_irqs, 4);
    assert_int_equal(rig->irq[3].at_ps, t + 90 * us + 20 * us + after_timer(rig));
    assert_int_equal(poll_all(&r.cq), 7);

    /* none: at once */
    nr_ok(rig, 0, (struct nic_command){ .opcode = NIC_MODIFY_CQ });
    arm_all(rig, &r, 4);
    t = sim_now(rig->sim) + 10 * us;
    packet_at(rig, &flow, t);
    nr_run(rig);
    assert_int_equal(rig->n_irqs, 5);
    assert_int_equal(rig->irq[4].at_ps, t + after_packet(rig));
}

/* A completion that comes between the last poll and the arming makes its event when armed; events
 * that come before the event queue is armed make their interrupt then. */
static void test_between_poll_and_arm(void **state)
{
    struct nr_rig *rig = *state;
    struct nr_receiver r = receiver_new(rig, 0, 0, 0, 0, NIC_MODERATION_EQE);
    struct nr_flow flow = flow_to(rig, 0, 4000);
    nr_post(&r.rq, 64);
    nr_wire_send(rig, &flow, 1, 0, 100);
    nr_run(rig);
    assert_int_equal(rig->n_irqs, 0); /* nobody has armed */
    nr_arm(&r.cq);                    /* it has not seen the first */
    nr_run(rig);
    assert_int_equal(rig->n_irqs, 1);
    nr_arm(&r.cq); /* again, event queue not armed */
    nr_run(rig);
    assert_int_equal(rig->n_irqs, 1);
    nr_mmio_write(rig, 0, NIC_DOORBELL_EQ(0), 8, 1); /* seen one event of two */
    nr_run(rig);
    assert_int_equal(rig->n_irqs, 2);
    poll_all(&r.cq);
    nr_arm(&r.cq); /* it has seen all: nothing happens */
    nr_mmio_write(rig, 0, NIC_DOORBELL_EQ(0), 8, 2);
    nr_run(rig);
    assert_int_equal(rig->n_irqs, 2);
    nr_wire_send(rig, &flow, 1, 0, 100);
    nr_run(rig);
    assert_int_equal(rig->n_irqs, 3);
}

/* A driver that sleeps until an interrupt, polls, is slow, arms: at the end it has seen every
 * packet without ever looking by itself. */
static void test_no_interrupt_is_lost(void **unused)
{
    (void)unused;
    for (unsigned trial = 0; trial < 12; trial++) {
        struct nr_rig rig;
        struct sim_random random;
        nr_open(&rig, 1, 16, 100, NULL);
        struct nr_receiver r = receiver_new(&rig, 0, 0, trial % 4 * 3, trial % 3 * 5, trial % 2);
        struct nr_flow flow = flow_to(&rig, 0, 4000);
        unsigned sent = 0, seen = 0, events = 0, handled = 0;
        sim_random_init(&random, trial, "driver");
        nr_post(&r.rq, 400);
        arm_all(&rig, &r, 0);
        while (sent < 300) {
            unsigned n = 1 + (unsigned)sim_random_below(&random, 6);
            for (unsigned i = 0; i < n; i++, sent++)
                nr_wire_send(&rig, &flow, 1, sent, 100);
            nr_run_for(&rig, sim_random_below(&random, 4 * SIM_PS_PER_US));
            if (rig.n_irqs == handled)
                continue;
            handled = rig.n_irqs;
            events = (unsigned)nic_function_stats(rig.nic, 0)->eqes;
            seen += poll_all(&r.cq);
            nr_run_for(&rig, sim_random_below(&random, 2 * SIM_PS_PER_US));
            nr_arm(&r.cq);
            nr_run_for(&rig, sim_random_below(&random, SIM_PS_PER_US));
            nr_mmio_write(&rig, 0, NIC_DOORBELL_EQ(0), 8, events);
        }
        for (;;) {
            nr_run(&rig);
            if (rig.n_irqs == handled)
                break;
            handled = rig.n_irqs;
            events = (unsigned)nic_function_stats(rig.nic, 0)->eqes;
            seen += poll_all(&r.cq);
            nr_arm(&r.cq);
            nr_mmio_write(&rig, 0, NIC_DOORBELL_EQ(0), 8, events);
        }
        assert_int_equal(seen, sent);
        assert_true(handled < sent);
        nr_close(&rig);
    }
}

static void test_link_event(void **state)
{
    struct nr_rig *rig = *state;
    struct nic_eqe eqe;
    uint64_t ring = rig->next_free;
    nr_eq_new(rig, 0, 3, 5);
    nr_run(rig);
    ether_port_link(&rig->wire_end, false);
    nr_run(rig);
    nr_get(rig, ring, &eqe, sizeof(eqe));
    assert_int_equal(eqe.type, NIC_EVENT_LINK);
    assert_int_equal(eqe.owner, 1);
    assert_int_equal(rig->n_irqs, 1);
    assert_int_equal(rig->irq[0].vector, 5);
    assert_int_equal(nr_mmio_read(rig, 0, NIC_REG_LINK, 4), 0);
    ether_port_link(&rig->wire_end, true);
    assert_int_equal(nr_mmio_read(rig, 0, NIC_REG_LINK, 4), 1);
}

/* ---- Removal --------------------------------------------------------------------------------- */

static void test_surprise_removal(void **state)
{
    struct nr_rig *rig = *state;
    struct nr_receiver r[2];
    struct nr_sq sq[2];
    for (unsigned pf = 0; pf < 2; pf++) {
        r[pf] = receiver_new(rig, pf, 0, 0, 0, NIC_MODERATION_EQE);
        nr_post(&r[pf].rq, 256);
        sq[pf] = nr_sq_new(rig, pf, 0, 0, 8);
    }
    struct nr_flow with_rule = flow_to(rig, 0, 1), without = flow_to(rig, 0, 2);
    nr_ok(rig, 0, flow_command(NIC_SET_SWITCH, &with_rule, 1));
    uint64_t data = nr_alloc(rig, 65536);
    nr_stamp(rig, data, payload_mark(1, 0), 65536);
    struct nr_piece piece = { data, 60000, 0 };
    nr_wqe(&sq[1], &with_rule, 0, TCP_FLAG_ACK, &piece, 1, 1446, NIC_WQE_COMPLETION);
    nr_doorbell(&sq[1]);
    for (unsigned i = 0; i < 20; i++) {
        nr_wire_send(rig, &with_rule, 1, i, 1446);
        nr_wire_send(rig, &without, 1, i, 1446);
    }
    nr_run_for(rig, 2 * SIM_PS_PER_US); /* in the middle of everything */
    pcie_function_remove(rig->nic, 1);
    assert_true(nr_mmio_read(rig, 1, NIC_REG_VERSION, 4) == UINT64_MAX);
    assert_int_equal(nr_config(rig, 1, false, 0, 0), UINT32_MAX);
    nr_run(rig);
    const struct nic_function_stats *stats = nic_function_stats(rig->nic, 1);
    assert_int_equal(poll_all(&r[0].cq), 20);
    assert_true(poll_all(&r[1].cq) < 20);
    assert_true(stats->rx_no_queue > 0);
    assert_int_equal(stats->rx_packets + stats->rx_no_queue + stats->rx_no_buffer, 20);
    assert_true(rig->n_frames < 42);
    nr_doorbell(&sq[1]); /* into the void */
    nr_run(rig);

    /* the rule still points there until the driver changes it, through the function that is left */
    nr_wire_send(rig, &with_rule, 1, 0, 100);
    nr_run(rig);
    assert_int_equal(poll_all(&r[0].cq), 0);
    nr_ok(rig, 0, flow_command(NIC_DELETE_SWITCH, &with_rule, 0));
    nr_wire_send(rig, &with_rule, 1, 0, 100);
    nr_run(rig);
    assert_int_equal(poll_all(&r[0].cq), 1);
    /* and sends go on */
    unsigned n = rig->n_frames;
    nr_wqe(&sq[0], &without, 0, TCP_FLAG_ACK, &piece, 1, 1446, NIC_WQE_COMPLETION);
    nr_doorbell(&sq[0]);
    nr_run(rig);
    assert_int_equal(rig->n_frames, n + 42);
}

/* The default function is gone: flows without a rule go to one that is left. */
static void test_default_function_removed(void **state)
{
    struct nr_rig *rig = *state;
    struct nr_receiver r;
    r = receiver_new(rig, 1, 0, 0, 0, NIC_MODERATION_EQE);
    nr_post(&r.rq, 64);
    pcie_function_remove(rig->nic, 0);
    struct nr_flow flow = flow_to(rig, 0, 1);
    nr_wire_send(rig, &flow, 1, 0, 100);
    nr_run(rig);
    assert_int_equal(poll_all(&r.cq), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NR_TEST(test_latency, 1, 16),
        NR_TEST(test_content, 1, 16),
        NR_TEST(test_bad_checksum_is_told, 1, 16),
        NR_TEST(test_no_buffer, 1, 16),
        NR_TEST(test_ring_wraps, 1, 16),
        NR_TEST(test_overflow_at_the_links_rate, 1, 8),
        NR_TEST(test_flow_control, 2, 8),
        NR_TEST(test_stopped_while_sending, 1, 16),
        NR_TEST(test_too_long, 1, 16),
        NR_TEST(test_destroyed_queue_drops, 1, 16),
        NR_TEST(test_completion_queue_destroyed_first, 1, 4),
        NR_TEST(test_failed_queue_tells, 1, 16),
        cmocka_unit_test(test_rss_hash_of_the_specification),
        NR_TEST(test_rss_spreads, 1, 16),
        NR_TEST(test_flow_table, 1, 16, "arfs_entries", "3"),
        NR_TEST(test_update_latency, 1, 16, "command_latency_us", "25"),
        NR_TEST(test_answer_behind_packets, 1, 1, "command_latency_us", "2"),
        cmocka_unit_test(test_flow_table_by_chance),
        NR_TEST(test_switch_by_mac, 2, 8),
        NR_TEST(test_switch_by_flow, 2, 8, "firmware", "octonic", "switch_entries", "2"),
        NR_TEST(test_moderation, 1, 16),
        NR_TEST(test_between_poll_and_arm, 1, 16),
        cmocka_unit_test(test_no_interrupt_is_lost),
        NR_TEST(test_link_event, 1, 16),
        NR_TEST(test_surprise_removal, 2, 8, "firmware", "octonic"),
        NR_TEST(test_default_function_removed, 2, 8, "firmware", "octonic"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
