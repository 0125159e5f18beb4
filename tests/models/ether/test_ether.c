/* Ethernet wires against their formula, loss and link down; packets' headers and checksums; the
 * switch: learning, flooding, queues, aggregation groups that keep flows in order. */
#include "models/ether/ether_switch.h"
#include "models/pcie/link/port.h"

#include <stdlib.h>
#include <string.h>

#include "models/ether/ether_packet.h"
#include "tests/support/fixture_test.h"

#define N_ENDS   6
#define GOT_MAX  4096
#define ETHERNET 14u
#define HEADERS  54u /* Ethernet, IPv4, TCP */

struct arrival {
    sim_time now_ps, tail_ps;
    uint32_t bytes, number;
    uint16_t port; /* source port of the flow */
};

struct end {
    struct model model;
    struct ether_port port;
    struct ether_wire *wire;
    struct arrival *got;
    unsigned n_got;
    unsigned n_down, n_up;
    /* as the port was told: last bits of frames by their number, SIM_TIME_MAX: held */
    sim_time left_ps[GOT_MAX];
    unsigned n_resumed;
};

struct bench {
    struct sim *sim;
    struct pcie_context *pcie;
    struct sim_error_list errors;
    struct end end[N_ENDS];
    struct model *ether_switch;
    struct config *config; /* of the switch */
};

static const char *const end_name[N_ENDS] = { "a.e0", "b.e0", "c.e0", "d.e0", "e.e0", "f.e0" };

static void end_receive(struct ether_port *port, struct ether_frame *frame)
{
    struct end *end = port->model->state;
    assert_true(end->n_got < GOT_MAX);
    end->got[end->n_got++] = (struct arrival){
        .now_ps = sim_now(port->model->sim),
        .tail_ps = frame->tail_ps,
        .bytes = ether_frame_bytes(frame),
        .number = frame->header_bytes >= HEADERS ? ether_get32(frame->header + 38) : 0,
        .port = frame->header_bytes >= HEADERS ? ether_get16(frame->header + 34) : 0,
    };
    ether_frame_free(port->model, frame);
}

static void end_link(struct ether_port *port, bool up)
{
    struct end *end = port->model->state;
    *(up ? &end->n_up : &end->n_down) += 1;
}

static void end_retime(struct ether_port *port, struct ether_frame *frame, sim_time left_ps)
{
    struct end *end = port->model->state;
    if (frame == NULL)
        end->n_resumed++;
    else
        end->left_ps[ether_get32(frame->header + 38)] = left_ps;
}

static void bench_open(struct bench *bench)
{
    memset(bench, 0, sizeof(*bench));
    bench->sim = sim_new(7);
    bench->pcie = pcie_context_new(bench->sim);
    for (unsigned i = 0; i < N_ENDS; i++) {
        struct end *end = &bench->end[i];
        end->got = calloc(GOT_MAX, sizeof(*end->got));
        end->model = (struct model){ .name = end_name[i],
                                     .sim = bench->sim,
                                     .state = end,
                                     .other_ports = { { &ether_cable, &end->port, 1 } } };
        end->port = (struct ether_port){ .model = &end->model,
                                         .name = end_name[i],
                                         .rate_gbit_s_max = 100,
                                         .receive = end_receive,
                                         .link = end_link,
                                         .retime = end_retime };
    }
}

static void bench_free(struct bench *bench)
{
    for (unsigned i = 0; i < N_ENDS; i++) {
        ether_wire_free(bench->end[i].wire);
        free(bench->end[i].got);
    }
    model_free(bench->ether_switch);
    config_free(bench->config);
    pcie_context_free(bench->pcie);
    sim_free(bench->sim);
}

static void bench_close(struct bench *bench)
{
    assert_int_equal(bench->errors.n_messages, 0);
    assert_int_equal(ether_frames_live(bench->sim), 0);
    bench_free(bench);
}

static int bench_set_up(void **state)
{
    struct fixture_test *t = *state;
    t->fixture = calloc(1, sizeof(struct bench));
    bench_open(t->fixture);
    return 0;
}

static int bench_tear_down(void **state)
{
    struct fixture_test *t = *state;
    struct bench *bench = t->fixture;
    if (t->passed) {
        bench_close(bench);
    } else if (fixture_test_abandon(bench->sim)) {
        sim_error_release(&bench->errors);
        bench_free(bench);
    }
    free(bench);
    return 0;
}

#define WIRE_TEST(test) FIXTURE_TEST(test, bench_set_up, bench_tear_down, NULL)

static void join(struct bench *bench, unsigned i, struct ether_port *to,
                 const struct ether_wire_params *params)
{
    struct end *end = &bench->end[i];
    end->wire = ether_wire_new(bench->sim, end_name[i], params, &end->port, to, "test", 1,
                               &bench->errors);
    assert_non_null(end->wire);
}

/* A frame of n bytes in all, of the flow with this source port. */
static struct ether_frame *make(struct end *end, uint64_t to_mac, uint64_t from_mac, uint16_t port,
                                uint32_t number, uint32_t bytes)
{
    struct ether_frame *frame = ether_frame_new(&end->model);
    uint8_t *h = frame->header;
    frame->header_bytes = HEADERS;
    memset(h, 0, HEADERS);
    for (unsigned i = 0; i < 6; i++) {
        h[i] = (uint8_t)(to_mac >> (40 - 8 * i));
        h[6 + i] = (uint8_t)(from_mac >> (40 - 8 * i));
    }
    ether_put16(h + 12, ETHER_TYPE_IPV4);
    h[14] = 0x45;
    ether_put16(h + 16, (uint16_t)(bytes - ETHERNET));
    h[23] = IP_PROTOCOL_TCP;
    ether_put32(h + 26, 0x0a000001);
    ether_put32(h + 30, 0x0a000002);
    ether_put16(h + 34, port);
    ether_put16(h + 36, 5001);
    ether_put32(h + 38, number);
    h[46] = 0x50;
    frame->payload.bytes = bytes - HEADERS;
    frame->payload.n = 1;
    frame->payload.extent[0] = (struct payload_extent){ payload_mark(3, number * 4096u),
                                                        bytes - HEADERS, 0 };
    return frame;
}

static const struct ether_wire_params plain = { .rate_gbit_s = 100, .latency_ps = 50000 };

/* ---- Wires ----------------------------------------------------------------------------------- */

static void test_latency_is_the_formula(void **state)
{
    struct bench *bench = *state;
    struct end *a = &bench->end[0], *b = &bench->end[1];
    b->port.receive_latency_ps = 225000;
    join(bench, 0, &b->port, &plain);
    /* 80 ps a byte; preamble 8 and FCS 4 before the last bit, gap 12 after it */
    sim_time left_ps = ether_port_send(&a->port, make(a, 2, 1, 1, 0, 1514), 1000);
    assert_int_equal(left_ps, 1000 + (1514 + 12) * 80);
    assert_int_equal(ether_port_free_ps(&a->port), 1000 + (1514 + 24) * 80);
    left_ps = ether_port_send(&a->port, make(a, 2, 1, 1, 1, 58), 1000); /* padded to 60 */
    assert_int_equal(left_ps, 1000 + (1514 + 24 + 60 + 12) * 80);
    assert_int_equal(ether_port_in_flight(&a->port), 2);
    assert_int_equal(ether_port_stats(&a->port)->frames, 0);
    sim_run(bench->sim, 1000 + (1514 + 24) * 80 - 1, NULL); /* the second waits for the first */
    assert_int_equal(ether_port_stats(&a->port)->frames, 1);
    assert_int_equal(ether_port_stats(&a->port)->bytes, 1538);
    sim_run(bench->sim, SIM_TIME_MAX, NULL);
    assert_int_equal(b->n_got, 2);
    assert_int_equal(b->got[0].tail_ps, 1000 + 1526 * 80 + 50000);
    assert_int_equal(b->got[0].now_ps, b->got[0].tail_ps + 225000);
    assert_int_equal(b->got[1].tail_ps, left_ps + 50000);
    assert_int_equal(ether_port_in_flight(&a->port), 0);
    assert_int_equal(ether_port_stats(&a->port)->frames, 2);
    assert_int_equal(ether_port_stats(&a->port)->bytes, 1538 + 84);
    assert_int_equal(ether_port_stats(&a->port)->busy_ps, (1538 + 84) * 80);
}

/* Saturated: 1460 of 1538 bytes are TCP payload, whatever fraction of a picosecond a byte takes. */
static void test_rate_without_drift(void **unused)
{
    static const double rates[] = { 100, 56, 25, 10 };
    (void)unused;
    for (unsigned r = 0; r < SIM_N_ELEMENTS(rates); r++) {
        struct bench bench;
        bench_open(&bench);
        struct end *a = &bench.end[0], *b = &bench.end[1];
        struct ether_wire_params params = { .rate_gbit_s = rates[r] };
        join(&bench, 0, &b->port, &params);
        for (uint32_t i = 0; i < 3000; i++)
            ether_port_send(&a->port, make(a, 2, 1, 1, i, 1514), 0);
        sim_run(bench.sim, SIM_TIME_MAX, NULL);
        assert_int_equal(b->n_got, 3000);
        double last = (2999.0 * 1538 + 1526) * 8000 / rates[r];
        assert_true((double)b->got[2999].now_ps > last - 1.5);
        assert_true((double)b->got[2999].now_ps < last + 1.5);
        for (uint32_t i = 0; i < 3000; i++)
            assert_int_equal(b->got[i].number, i);
        bench_close(&bench);
    }
}

static void test_directions_are_independent(void **state)
{
    struct bench *bench = *state;
    struct end *a = &bench->end[0], *b = &bench->end[1];
    join(bench, 0, &b->port, &plain);
    assert_ptr_equal(ether_port_peer(&a->port), &b->port);
    ether_port_send(&a->port, make(a, 2, 1, 1, 0, 1514), 0);
    ether_port_send(&b->port, make(b, 1, 2, 1, 0, 1514), 0);
    sim_run(bench->sim, SIM_TIME_MAX, NULL);
    assert_int_equal(a->got[0].now_ps, 1526 * 80 + 50000);
    assert_int_equal(b->got[0].now_ps, 1526 * 80 + 50000);
}

static void test_loss(void **state)
{
    struct bench *bench = *state;
    struct end *a = &bench->end[0], *b = &bench->end[1];
    struct ether_wire_params params = { .rate_gbit_s = 100, .loss_ratio = 0.1 };
    join(bench, 0, &b->port, &params);
    for (uint32_t i = 0; i < 4000; i++)
        ether_port_send(&a->port, make(a, 2, 1, 1, i, 100), 0);
    sim_run(bench->sim, SIM_TIME_MAX, NULL);
    uint64_t lost = ether_port_stats(&a->port)->lost;
    assert_int_equal(b->n_got + lost, 4000);
    assert_true(lost > 300 && lost < 500); /* 5 standard deviations */
    for (unsigned i = 1; i < b->n_got; i++)
        assert_true(b->got[i].number > b->got[i - 1].number);
}

static void test_link_down(void **state)
{
    struct bench *bench = *state;
    struct end *a = &bench->end[0], *b = &bench->end[1];
    join(bench, 0, &b->port, &plain);
    for (uint32_t i = 0; i < 4; i++)
        ether_port_send(&a->port, make(a, 2, 1, 1, i, 1514), 0);
    /* the first has arrived, the second is on the wire, others wait for it */
    sim_run(bench->sim, 1526 * 80 + 50000 + 1000, NULL);
    assert_int_equal(b->n_got, 1);
    ether_port_link(&b->port, false);
    assert_false(ether_port_up(&a->port));
    ether_port_send(&a->port, make(a, 2, 1, 1, 4, 1514), sim_now(bench->sim));
    sim_run(bench->sim, SIM_TIME_MAX, NULL);
    assert_int_equal(b->n_got, 1);
    assert_int_equal(ether_port_stats(&a->port)->lost, 4);
    ether_port_link(&b->port, true);
    ether_port_send(&a->port, make(a, 2, 1, 1, 5, 1514), sim_now(bench->sim));
    sim_run(bench->sim, SIM_TIME_MAX, NULL);
    assert_int_equal(b->n_got, 2);
    assert_int_equal(b->got[1].number, 5);
    assert_int_equal(a->n_down + b->n_down, 2);
    assert_int_equal(a->n_up + b->n_up, 2);
}

/* ---- Flow control ---------------------------------------------------------------------------- */

#define PAUSE_BYTES 84u /* 64 with FCS, preamble and gap */

static void flow_control(struct bench *bench, unsigned first, unsigned last)
{
    for (unsigned i = first; i <= last; i++)
        bench->end[i].port.flow_control = true;
}

static void send(struct end *end, uint32_t number, sim_time at_ps)
{
    end->left_ps[number] = ether_port_send(&end->port, make(end, 2, 1, 1, number, 1514), at_ps);
}

/* Ten frames are asked for at 0; b says stop in the midst of the third, and go on much later. What
 * has begun leaves, the rest follows from the moment on that "go on" is heard. */
static void test_pause(void **state)
{
    struct bench *bench = *state;
    const sim_time frame_ps = 1538 * 80, pause_ps = PAUSE_BYTES * 80 - 12 * 80 + 50000;
    struct end *a = &bench->end[0], *b = &bench->end[1];
    flow_control(bench, 0, 1);
    a->port.receive_latency_ps = 10000;
    join(bench, 0, &b->port, &plain);
    assert_true(ether_port_flow_control(&a->port) && ether_port_flow_control(&b->port));
    for (uint32_t i = 0; i < 10; i++)
        send(a, i, 0);
    /* the PAUSE frame is heard when the third frame is half out */
    sim_time heard_ps = 5 * frame_ps / 2;
    sim_run(bench->sim, heard_ps - 10000 - pause_ps, NULL);
    ether_port_pause(&b->port, true);
    ether_port_pause(&b->port, true); /* was said */
    sim_run(bench->sim, heard_ps - 1, NULL);
    assert_int_equal(a->left_ps[3], 4 * frame_ps - 12 * 80);
    sim_run(bench->sim, heard_ps, NULL);
    for (uint32_t i = 0; i < 10; i++)
        assert_true(i < 3 ? a->left_ps[i] == (i + 1) * frame_ps - 12 * 80
                          : a->left_ps[i] == SIM_TIME_MAX);
    send(a, 10, heard_ps + 5);
    assert_true(a->left_ps[10] == SIM_TIME_MAX);
    assert_true(ether_port_free_ps(&a->port) == SIM_TIME_MAX);
    assert_int_equal(ether_port_queued_bytes(&a->port, heard_ps), 8 * 1538 + 769);
    sim_run(bench->sim, 100 * SIM_PS_PER_US, NULL);
    assert_int_equal(b->n_got, 3);
    ether_port_pause(&b->port, false);
    sim_time on_ps = sim_now(bench->sim) + pause_ps + 10000;
    sim_run(bench->sim, SIM_TIME_MAX, NULL);
    assert_int_equal(b->n_got, 11);
    assert_int_equal(a->n_resumed, 1);
    for (uint32_t i = 0; i < 11; i++) {
        sim_time begin_ps = i < 3 ? i * frame_ps : on_ps + (i - 3) * frame_ps;
        assert_int_equal(b->got[i].number, i);
        assert_int_equal(b->got[i].tail_ps, begin_ps + 1526 * 80 + 50000);
        assert_int_equal(a->left_ps[i], begin_ps + 1526 * 80);
    }
    assert_int_equal(a->n_got, 0); /* PAUSE is no frame for the device */
    assert_int_equal(ether_port_stats(&b->port)->pause_frames, 2);
    assert_int_equal(ether_port_stats(&b->port)->frames, 2);
    assert_int_equal(ether_port_stats(&b->port)->bytes, 2 * PAUSE_BYTES);
    assert_int_equal(ether_port_stats(&a->port)->paused_ps, on_ps - heard_ps);
    assert_int_equal(ether_port_stats(&a->port)->frames, 11);
}

struct recorder {
    struct ether_tap tap;
    struct bench *bench;
    sim_time oldest_ps; /* as the ports said after the last frame */
    unsigned n_from[2], n_lost, n_early;
};

static void record(struct ether_tap *tap, const struct ether_port *from,
                   const struct ether_frame *frame, sim_time start_ps, bool lost)
{
    struct recorder *recorder = SIM_CONTAINER(tap, struct recorder, tap);
    const struct end *end = recorder->bench->end;
    recorder->n_from[from == &end[1].port]++;
    recorder->n_lost += lost;
    recorder->n_early += start_ps < recorder->oldest_ps;
    assert_int_equal(frame->tail_ps, start_ps + (ether_frame_bytes(frame) + 12) * 80 + 50000);
    recorder->oldest_ps = SIM_MIN(ether_port_oldest_ps(&end[0].port),
                                  ether_port_oldest_ps(&end[1].port));
}

/* A tap sees every frame of the wire, PAUSE and lost ones too, at the time at which it has left,
 * however often that was put off; and none that left before the time that was promised. */
static void test_tap(void **state)
{
    struct bench *bench = *state;
    struct end *a = &bench->end[0], *b = &bench->end[1];
    struct recorder recorder = { .tap = { .frame = record }, .bench = bench };
    flow_control(bench, 0, 1);
    join(bench, 0, &b->port, &plain);
    ether_port_set_tap(&a->port, &recorder.tap);
    for (uint32_t i = 0; i < 40; i++) {
        send(a, i, sim_now(bench->sim));
        send(b, i, sim_now(bench->sim) + 777);
        ether_port_pause(i % 3 == 0 ? &a->port : &b->port, i % 4 < 2);
        sim_run(bench->sim, sim_now(bench->sim) + 100000, NULL);
    }
    ether_port_pause(&a->port, false);
    ether_port_pause(&b->port, false);
    sim_run(bench->sim, SIM_TIME_MAX, NULL);
    assert_true(ether_port_stats(&a->port)->pause_frames > 5);
    assert_int_equal(recorder.n_from[0], ether_port_stats(&a->port)->frames);
    assert_int_equal(recorder.n_from[1], ether_port_stats(&b->port)->frames);
    assert_int_equal(recorder.n_early, 0);
    send(a, 40, sim_now(bench->sim));
    ether_port_link(&a->port, false);
    sim_run(bench->sim, SIM_TIME_MAX, NULL);
    assert_int_equal(recorder.n_lost, 1);
    ether_port_set_tap(&a->port, NULL);
}

/* A PAUSE frame goes before frames that wait, which move back by its time, and is sent by a port
 * that is stopped itself. */
static void test_pause_overtakes(void **state)
{
    struct bench *bench = *state;
    const sim_time frame_ps = 1538 * 80;
    struct end *a = &bench->end[0], *b = &bench->end[1];
    flow_control(bench, 0, 1);
    join(bench, 0, &b->port, &plain);
    for (uint32_t i = 0; i < 4; i++)
        send(b, i, 0);
    sim_run(bench->sim, 1000, NULL);
    ether_port_pause(&b->port, true); /* behind frame 0 */
    assert_int_equal(b->left_ps[0], frame_ps - 12 * 80);
    for (uint32_t i = 1; i < 4; i++)
        assert_int_equal(b->left_ps[i], (i + 1) * frame_ps + PAUSE_BYTES * 80 - 12 * 80);
    sim_time heard_ps = frame_ps + (PAUSE_BYTES - 12) * 80 + 50000;
    sim_run(bench->sim, heard_ps, NULL);
    send(a, 0, heard_ps);
    assert_true(a->left_ps[0] == SIM_TIME_MAX);
    ether_port_pause(&a->port, true); /* the stopped one stops the other */
    sim_run(bench->sim, 50 * SIM_PS_PER_US, NULL);
    assert_int_equal(b->n_got, 0);
    assert_in_range(a->n_got, 1, 3);
    assert_true(b->left_ps[3] == SIM_TIME_MAX);
    ether_port_pause(&b->port, false);
    ether_port_pause(&a->port, false);
    sim_run(bench->sim, SIM_TIME_MAX, NULL);
    assert_int_equal(b->n_got, 1);
    assert_int_equal(a->n_got, 4);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(a->got[i].number, i);
}

/* What was said is over after 65535 x 512 bit times, unless it is said again, which a port does for
 * as long as it is to; a link that goes down forgets it. Without flow control nothing is said. */
static void test_pause_ends(void **state)
{
    struct bench *bench = *state;
    const sim_time quanta_ps = 65535 * UINT64_C(512) * 10;
    struct end *a = &bench->end[0], *b = &bench->end[1];
    flow_control(bench, 0, 1);
    join(bench, 0, &b->port, &plain);
    ether_port_pause(&b->port, true);
    sim_run(bench->sim, SIM_PS_PER_US, NULL);
    send(a, 0, sim_now(bench->sim));
    sim_run(bench->sim, 10 * quanta_ps, NULL); /* said again and again */
    assert_int_equal(b->n_got, 0);
    assert_in_range(ether_port_stats(&b->port)->pause_frames, 20, 21);
    b->port.flow_control = false; /* it forgets to: the frame leaves when the last one is over */
    ether_port_link(&a->port, false);
    assert_false(a->left_ps[0] == SIM_TIME_MAX);
    sim_run(bench->sim, sim_now(bench->sim) + SIM_PS_PER_US, NULL);
    assert_int_equal(b->n_got, 0);
    assert_int_equal(ether_port_stats(&a->port)->lost, 1);
    b->port.flow_control = true;
    ether_port_link(&a->port, true);
    send(a, 1, sim_now(bench->sim));
    sim_run(bench->sim, sim_now(bench->sim) + SIM_PS_PER_US, NULL);
    assert_int_equal(b->n_got, 1);
    ether_port_pause(&b->port, false);
    sim_run(bench->sim, SIM_TIME_MAX, NULL);

    /* once, by a frame of our own making */
    struct ether_frame *frame = ether_frame_new(&b->model);
    static const uint8_t header[18] = { 1, 0x80, 0xc2, 0,    0,    1, 2, 0,    0,
                                        0, 0,    0,    0x88, 0x08, 0, 1, 0x00, 0x64 };
    frame->header_bytes = sizeof(header);
    memcpy(frame->header, header, sizeof(header));
    sim_time start_ps = sim_now(bench->sim);
    ether_port_send(&b->port, frame, start_ps);
    sim_run(bench->sim, start_ps + SIM_PS_PER_US / 2, NULL);
    send(a, 2, sim_now(bench->sim));
    sim_run(bench->sim, SIM_TIME_MAX, NULL);
    assert_int_equal(b->got[1].tail_ps,
                     start_ps + 72 * 80 + 50000 + 100 * 512 * 10 + 1526 * 80 + 50000);

    a->port.flow_control = false;
    uint64_t before = ether_port_stats(&b->port)->pause_frames;
    ether_port_pause(&b->port, true);
    sim_run(bench->sim, SIM_TIME_MAX, NULL);
    assert_int_equal(ether_port_stats(&b->port)->pause_frames, before);
}

/* A link that comes back finds the port still stopping the other one, which has forgotten it: it is
 * told at once, and sends no more than what leaves until then. */
static void test_pause_outlives_the_link(void **state)
{
    struct bench *bench = *state;
    struct end *a = &bench->end[0], *b = &bench->end[1];
    flow_control(bench, 0, 1);
    join(bench, 0, &b->port, &plain);
    ether_port_pause(&b->port, true);
    sim_run(bench->sim, SIM_PS_PER_US, NULL);
    ether_port_link(&a->port, false);
    sim_run(bench->sim, 3 * SIM_PS_PER_US, NULL);
    ether_port_link(&a->port, true);
    for (uint32_t i = 0; i < 8; i++)
        send(a, i, sim_now(bench->sim));
    sim_run(bench->sim, 20 * SIM_PS_PER_US, NULL);
    assert_int_equal(b->n_got, 1);
    ether_port_pause(&b->port, false);
    sim_run(bench->sim, SIM_TIME_MAX, NULL);
    assert_int_equal(b->n_got, 8);
    assert_int_equal(ether_port_stats(&b->port)->pause_frames, 3);
}

/* The longest PAUSE at 1 Gbit/s is 33.6 ms, and is said again before it is over. */
static void test_pause_slow(void **state)
{
    struct bench *bench = *state;
    const struct ether_wire_params params = { .rate_gbit_s = 1, .latency_ps = 50000 };
    const sim_time longest_ps = 65535 * UINT64_C(512) * 1000;
    struct end *a = &bench->end[0], *b = &bench->end[1];
    flow_control(bench, 0, 1);
    join(bench, 0, &b->port, &params);
    ether_port_pause(&b->port, true);
    sim_run(bench->sim, SIM_PS_PER_US, NULL);
    send(a, 0, sim_now(bench->sim));
    sim_run(bench->sim, 3 * longest_ps, NULL);
    assert_int_equal(b->n_got, 0);
    const uint64_t said = ether_port_stats(&b->port)->pause_frames;
    assert_in_range(said, 6, 7); /* every half of it */
    ether_port_pause(&b->port, false);
    sim_run(bench->sim, sim_now(bench->sim) + SIM_PS_PER_MS, NULL);
    assert_int_equal(b->n_got, 1);
}

/* mlx5: (301 + 2.16 x 7 m) x 100 Gb/s + 2.72 x 1500 */
static void test_headroom(void **state)
{
    struct bench *bench = *state;
    struct ether_wire_params params = { .rate_gbit_s = 100, .latency_ps = 35000 };
    join(bench, 0, &bench->end[1].port, &params);
    assert_int_equal(ether_port_headroom_bytes(&bench->end[0].port, 1500), 30100 + 1512 + 4080);
}

static void test_mistakes(void **state)
{
    struct bench *bench = *state;
    struct ether_wire_params fast = { .rate_gbit_s = 200 };
    struct ether_port *a = &bench->end[0].port, *b = &bench->end[1].port;
    assert_null(ether_wire_new(bench->sim, "w", &fast, a, b, "file", 3, &bench->errors));
    assert_string_equal(bench->errors.message[0], "file:3: a wire of 200 Gbit/s, but Ethernet port "
                                                  "a.e0 has at most 100 Gbit/s");
    assert_null(ether_wire_new(bench->sim, "w", &plain, a, a, "file", 4, &bench->errors));
    assert_string_equal(bench->errors.message[2], "file:4: both ends are Ethernet port a.e0");
    sim_error_release(&bench->errors);
    bench->errors = (struct sim_error_list){ 0 };
}

/* ---- Headers --------------------------------------------------------------------------------- */

static void test_parse_and_checksums(void **state)
{
    struct bench *bench = *state;
    struct ether_packet packet;
    join(bench, 0, &bench->end[1].port, &plain);
    struct ether_frame *frame = make(&bench->end[0], 0x020000000002, 0x020000000001, 777, 9, 1514);
    ether_packet_parse(frame->header, frame->header_bytes, &packet);
    assert_true(packet.ipv4 && packet.l4);
    assert_int_equal(packet.destination_mac, 0x020000000002);
    assert_int_equal(packet.source_mac, 0x020000000001);
    assert_int_equal(packet.flow.source_port, 777);
    assert_int_equal(packet.flow.destination_port, 5001);
    assert_int_equal(packet.flow.source_ip, 0x0a000001);
    assert_int_equal(packet.flow.protocol, 6);
    assert_int_equal(packet.l4_header_bytes, 20);

    assert_int_not_equal(ether_ipv4_checksum(frame->header, &packet), 0);
    ether_ipv4_checksum_set(frame->header, &packet);
    assert_int_equal(ether_ipv4_checksum(frame->header, &packet), 0);
    ether_l4_checksum_set(frame, &packet);
    assert_int_equal(ether_l4_checksum(frame, &packet), 0);
    frame->header[38] ^= 1; /* a sequence number's bit */
    assert_int_not_equal(ether_l4_checksum(frame, &packet), 0);
    frame->header[38] ^= 1;
    frame->payload.extent[0].mark += 64; /* another part of the stream */
    assert_int_not_equal(ether_l4_checksum(frame, &packet), 0);
    frame->payload.extent[0].mark -= 64;
    assert_int_equal(ether_l4_checksum(frame, &packet), 0);

    uint8_t bytes[1514];
    payload_bytes(&frame->payload, frame->payload.bytes, bytes);
    /* right for the marks, not for the bytes */
    assert_int_not_equal(ether_l4_checksum_of_bytes(frame, &packet, bytes), 0);
    ether_put16(frame->header + 50, 0);
    ether_put16(frame->header + 50, ether_l4_checksum_of_bytes(frame, &packet, bytes));
    assert_int_equal(ether_l4_checksum_of_bytes(frame, &packet, bytes), 0);
    bytes[700] ^= 4;
    assert_int_not_equal(ether_l4_checksum_of_bytes(frame, &packet, bytes), 0);

    ether_put16(frame->header + 20, 0x2000); /* a fragment has no ports */
    ether_packet_parse(frame->header, frame->header_bytes, &packet);
    assert_true(packet.ipv4 && !packet.l4);
    ether_packet_parse(frame->header, 30, &packet); /* cut short */
    assert_false(packet.ipv4);
    ether_packet_parse(frame->header, 13, &packet);
    assert_int_equal(packet.destination_mac, 0);
    ether_frame_free(&bench->end[0].model, frame);
}

/* The example of RFC 1071, section 3: 0001 f203 f4f5 f6f7 sums to ddf2. */
static void test_checksum_of_the_rfc(void **unused)
{
    uint8_t header[ETHERNET + 20] = { 0 };
    struct ether_packet packet = { .l3_offset = ETHERNET, .l4_offset = ETHERNET + 8 };
    static const uint8_t words[] = { 0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7 };
    (void)unused;
    memcpy(header + ETHERNET, words, sizeof(words));
    assert_int_equal(ether_ipv4_checksum(header, &packet), (uint16_t)~0xddf2u);
}

/* ---- The switch ------------------------------------------------------------------------------ */

static struct config *no_config(struct sim_error_list *errors)
{
    return config_load("/dev/null", ".", errors);
}

/* A switch of 6 ports; ends 0 .. n - 1 are plugged into it. */
struct switch_settings {
    unsigned n;
    const char *groups;
    uint64_t queue_bytes;
    uint32_t mac_entries;
};

static int switch_set_up(void **state)
{
    const struct fixture_test *t = *state;
    const struct switch_settings *settings = t->settings;
    bench_set_up(state);
    struct bench *bench = t->fixture;
    struct config *config = bench->config = no_config(&bench->errors);
    char value[32];
    config_set(config, "s.ports", "6", "test", &bench->errors);
    if (*settings->groups != 0)
        config_set(config, "s.groups", settings->groups, "test", &bench->errors);
    snprintf(value, sizeof(value), "%llu", (unsigned long long)settings->queue_bytes);
    config_set(config, "s.queue_bytes", value, "test", &bench->errors);
    snprintf(value, sizeof(value), "%u", settings->mac_entries);
    config_set(config, "s.mac_entries", value, "test", &bench->errors);
    assert_int_equal(bench->errors.n_messages, 0);
    bench->ether_switch = model_new(pcie_context_sim(bench->pcie), bench->pcie, &ether_switch_ops,
                                    "s", config, config_get(config_root(config), "s"),
                                    &bench->errors);
    assert_int_equal(bench->errors.n_messages, 0);
    for (unsigned i = 0; i < settings->n; i++)
        join(bench, i, cable_port(&ether_cable, bench->ether_switch, i), &plain);
    return 0;
}

#define SWITCH_TEST(test, n, groups, queue_bytes, mac_entries) \
    FIXTURE_TEST(test, switch_set_up, bench_tear_down,         \
                 (&(struct switch_settings){ n, groups, queue_bytes, mac_entries }))

static void send_at(struct bench *bench, unsigned from, uint64_t to_mac, uint64_t from_mac,
                    uint16_t port, uint32_t number, uint32_t bytes, sim_time at_ps)
{
    struct end *end = &bench->end[from];
    ether_port_send(&end->port, make(end, to_mac, from_mac, port, number, bytes), at_ps);
}

static void test_switch_learns(void **state)
{
    struct bench *bench = *state;
    send_at(bench, 0, 2, 1, 1, 0, 1514, 0); /* 2 is not known: to all but the sender */
    sim_run(bench->sim, SIM_TIME_MAX, NULL);
    assert_int_equal(bench->end[0].n_got, 0);
    assert_int_equal(bench->end[1].n_got, 1);
    assert_int_equal(bench->end[2].n_got, 1);
    /* store and forward: two wires and the switch between the last bit in and the first out */
    assert_int_equal(bench->end[1].got[0].now_ps, 2 * (1526 * 80 + 50000) + 300000);
    send_at(bench, 1, 1, 2, 1, 0, 1514, sim_now(bench->sim));
    sim_run(bench->sim, SIM_TIME_MAX, NULL);
    assert_int_equal(bench->end[0].n_got, 1);
    assert_int_equal(bench->end[2].n_got, 1); /* 1 was known */
    send_at(bench, 0, 2, 1, 1, 1, 1514, sim_now(bench->sim));
    sim_run(bench->sim, SIM_TIME_MAX, NULL);
    assert_int_equal(bench->end[1].n_got, 2);
    assert_int_equal(bench->end[2].n_got, 1); /* so is 2 by now */
    send_at(bench, 0, ETHER_BROADCAST, 1, 1, 1, 1514, sim_now(bench->sim));
    send_at(bench, 0, 1, 1, 1, 1, 1514, sim_now(bench->sim)); /* to itself: filtered */
    sim_run(bench->sim, SIM_TIME_MAX, NULL);
    assert_int_equal(bench->end[2].n_got, 2);
    assert_int_equal(bench->end[0].n_got, 1);
    /* it moves to another port */
    send_at(bench, 2, ETHER_BROADCAST, 1, 1, 1, 100, sim_now(bench->sim));
    sim_run(bench->sim, SIM_TIME_MAX, NULL);
    send_at(bench, 1, 1, 2, 1, 7, 100, sim_now(bench->sim));
    sim_run(bench->sim, SIM_TIME_MAX, NULL);
    assert_int_equal(bench->end[2].got[bench->end[2].n_got - 1].number, 7);
}

static void test_switch_static_and_full(void **state)
{
    struct bench *bench = *state;
    assert_true(ether_switch_add(bench->ether_switch, 9, 2));
    send_at(bench, 0, 9, 1, 1, 0, 100, 0); /* learns 1: full */
    sim_run(bench->sim, SIM_TIME_MAX, NULL);
    assert_int_equal(bench->end[2].n_got, 1);
    assert_int_equal(bench->end[1].n_got, 0);
    assert_false(ether_switch_add(bench->ether_switch, 10, 2));
    send_at(bench, 1, 9, 3, 1, 0, 100, sim_now(bench->sim)); /* 3 finds no room */
    sim_run(bench->sim, SIM_TIME_MAX, NULL);
    send_at(bench, 0, 3, 1, 1, 0, 100, sim_now(bench->sim)); /* still works: flooded */
    sim_run(bench->sim, SIM_TIME_MAX, NULL);
    assert_int_equal(bench->end[1].n_got, 1);
    send_at(bench, 0, ETHER_BROADCAST, 9, 1, 0, 100, sim_now(bench->sim)); /* 9 does not move */
    sim_run(bench->sim, SIM_TIME_MAX, NULL);
    unsigned before = bench->end[2].n_got;
    send_at(bench, 1, 9, 3, 1, 0, 100, sim_now(bench->sim));
    sim_run(bench->sim, SIM_TIME_MAX, NULL);
    assert_int_equal(bench->end[2].n_got, before + 1);
}

/* An address that was learned before it is entered does not move any more either. */
static void test_switch_static_after_learned(void **state)
{
    struct bench *bench = *state;
    send_at(bench, 1, ETHER_BROADCAST, 9, 1, 0, 100, 0); /* learns 9 at 1 */
    sim_run(bench->sim, SIM_TIME_MAX, NULL);
    assert_true(ether_switch_add(bench->ether_switch, 9, 2));
    send_at(bench, 1, ETHER_BROADCAST, 9, 1, 0, 100, sim_now(bench->sim));
    sim_run(bench->sim, SIM_TIME_MAX, NULL);
    const unsigned before[] = { bench->end[1].n_got, bench->end[2].n_got };
    send_at(bench, 0, 9, 1, 1, 0, 100, sim_now(bench->sim));
    sim_run(bench->sim, SIM_TIME_MAX, NULL);
    assert_int_equal(bench->end[1].n_got, before[0]);
    assert_int_equal(bench->end[2].n_got, before[1] + 1);
}

/* Two senders at full rate into one output: what the queue does not hold is dropped, the rest keeps
 * its order and comes at the wire's rate. */
static void test_switch_queue_limit(void **state)
{
    struct bench *bench = *state;
    assert_true(ether_switch_add(bench->ether_switch, 3, 2));
    for (uint32_t i = 0; i < 400; i++) {
        send_at(bench, 0, 3, 1, 1, i, 1514, 0);
        send_at(bench, 1, 3, 2, 2, i, 1514, 0);
    }
    sim_run(bench->sim, SIM_TIME_MAX, NULL);
    uint64_t drops = ether_switch_drops(bench->ether_switch, 2);
    const struct end *out = &bench->end[2];
    assert_int_equal(out->n_got + drops, 800);
    /* two arrive in the time of one: after n frames n / 2 wait; 42 fit into 64 KiB */
    assert_in_range(drops, 400 - 44, 400 - 40);
    uint32_t next[3] = { 0 };
    for (unsigned i = 0; i < out->n_got; i++) {
        assert_true(out->got[i].number >= next[out->got[i].port]);
        next[out->got[i].port] = out->got[i].number + 1;
    }
}

/* The same with flow control: nothing is dropped, the senders are stopped and go on, the output is
 * never idle, and a port whose frames go elsewhere is not stopped. */
static void test_switch_pause(void **state)
{
    struct bench *bench = *state;
    flow_control(bench, 0, 4);
    bench->ether_switch->ops->start(bench->ether_switch);
    assert_true(ether_switch_add(bench->ether_switch, 3, 2));
    assert_true(ether_switch_add(bench->ether_switch, 5, 4));
    for (uint32_t i = 0; i < 1900; i++) {
        send_at(bench, 0, 3, 1, 1, i, 1514, 0);
        send_at(bench, 1, 3, 2, 2, i, 1514, 0);
        send_at(bench, 3, 5, 4, 4, i, 1514, 0);
    }
    sim_run(bench->sim, SIM_TIME_MAX, NULL);
    const struct end *out = &bench->end[2];
    assert_int_equal(ether_switch_drops(bench->ether_switch, 2), 0);
    assert_int_equal(out->n_got, 3800);
    assert_int_equal(out->got[3799].tail_ps, out->got[0].tail_ps + 3799 * UINT64_C(1538) * 80);
    uint32_t next[3] = { 0 };
    for (unsigned i = 0; i < out->n_got; i++)
        assert_int_equal(out->got[i].number, next[out->got[i].port]++);
    for (unsigned e = 0; e < 4; e++) {
        bool stopped = ether_port_stats(&bench->end[e].port)->paused_ps != 0;
        assert_true(stopped == (e < 2));
    }
    assert_int_equal(bench->end[4].n_got, 1900);
    assert_int_equal(bench->end[4].got[1899].tail_ps,
                     bench->end[4].got[0].tail_ps + 1899 * UINT64_C(1538) * 80);
}

/* A receiver stops the switch, and the switch in turn the sender when its queue has filled. */
static void test_switch_is_stopped(void **state)
{
    struct bench *bench = *state;
    flow_control(bench, 0, 1);
    bench->ether_switch->ops->start(bench->ether_switch);
    assert_true(ether_switch_add(bench->ether_switch, 3, 1));
    for (uint32_t i = 0; i < 1000; i++)
        send_at(bench, 0, 3, 1, 1, i, 1514, 0);
    ether_port_pause(&bench->end[1].port, true);
    sim_run(bench->sim, SIM_PS_PER_MS, NULL);
    assert_int_equal(bench->end[1].n_got, 0);
    assert_in_range(ether_port_in_flight(&bench->end[0].port), 800, 900); /* the rest is queued */
    ether_port_pause(&bench->end[1].port, false);
    sim_run(bench->sim, SIM_TIME_MAX, NULL);
    assert_int_equal(bench->end[1].n_got, 1000);
    assert_int_equal(ether_switch_drops(bench->ether_switch, 1), 0);
}

/* 256 flows through a group of three members: every member carries some, each flow uses one, and
 * so keeps its order; a member that goes down loses its flows to the others. */
static void test_switch_group(void **state)
{
    struct bench *bench = *state;
    assert_true(ether_switch_add(bench->ether_switch, 3, 2)); /* behind the group */
    for (uint32_t i = 0; i < 2048; i++)
        send_at(bench, 0, 3, 1, (uint16_t)(1000 + i % 256), i, 200, 0);
    sim_run(bench->sim, SIM_TIME_MAX, NULL);
    unsigned member_of[256] = { 0 }, n = 0;
    for (unsigned e = 1; e < 4; e++) {
        uint32_t next[256] = { 0 };
        assert_true(bench->end[e].n_got > 2048 / 6);
        n += bench->end[e].n_got;
        for (unsigned i = 0; i < bench->end[e].n_got; i++) {
            const struct arrival *got = &bench->end[e].got[i];
            unsigned flow = got->port - 1000u;
            assert_true(member_of[flow] == 0 || member_of[flow] == e);
            member_of[flow] = e;
            assert_true(got->number >= next[flow]);
            next[flow] = got->number + 1;
        }
    }
    assert_int_equal(n, 2048);
    /* broadcasts leave through one member; what a member sends does not come back to another */
    for (unsigned e = 1; e < 4; e++)
        bench->end[e].n_got = 0;
    send_at(bench, 0, ETHER_BROADCAST, 1, 1, 0, 200, sim_now(bench->sim));
    send_at(bench, 1, ETHER_BROADCAST, 3, 1, 0, 200, sim_now(bench->sim));
    sim_run(bench->sim, SIM_TIME_MAX, NULL);
    assert_int_equal(bench->end[1].n_got + bench->end[2].n_got + bench->end[3].n_got, 1);
    assert_int_equal(bench->end[0].n_got, 1);
    for (unsigned e = 1; e < 4; e++)
        bench->end[e].n_got = 0;
    ether_port_link(&bench->end[2].port, false);
    for (uint32_t i = 0; i < 512; i++)
        send_at(bench, 0, 3, 1, (uint16_t)(1000 + i % 256), i, 200, sim_now(bench->sim));
    sim_run(bench->sim, SIM_TIME_MAX, NULL);
    assert_int_equal(bench->end[2].n_got, 0);
    assert_int_equal(bench->end[1].n_got + bench->end[3].n_got, 512);
}

/* Connections whose two ports both count up, as those of programs with many connections do: their
 * lowest bits say the same for all. */
static void test_switch_spreads_ports_in_step(void **unused)
{
    unsigned n[2] = { 0, 0 };
    (void)unused;
    for (uint16_t i = 0; i < 64; i++) {
        struct ether_packet packet = { .ipv4 = true, .l4 = true };
        packet.flow.source_port = (uint16_t)(32768 + i);
        packet.flow.destination_port = (uint16_t)(12865 + i);
        n[ether_packet_hash_l34(&packet) % 2]++;
    }
    assert_true(n[0] >= 16 && n[1] >= 16);
}

static void test_switch_mistakes(void **unused)
{
    static const char *const wrong[] = { "0+6", "0+0", "0+1 1+2", "a+b", "0-1" };
    (void)unused;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(wrong); i++) {
        struct bench bench;
        bench_open(&bench);
        struct config *config = no_config(&bench.errors);
        config_set(config, "s.ports", "6", "test", &bench.errors);
        config_set(config, "s.groups", wrong[i], "test", &bench.errors);
        assert_int_equal(bench.errors.n_messages, 0);
        bench.ether_switch = model_new(pcie_context_sim(bench.pcie), bench.pcie, &ether_switch_ops,
                                       "s", config, config_get(config_root(config), "s"),
                                       &bench.errors);
        assert_int_equal(bench.errors.n_messages, 1);
        assert_non_null(strstr(bench.errors.message[0], "expected groups of different ports"));
        config_free(config);
        sim_error_release(&bench.errors);
        bench.errors = (struct sim_error_list){ 0 };
        bench_close(&bench);
    }
}

/* A run that failed is freed with frames in its devices, and wires go first. */
static void test_frames_outlive_their_wire(void **state)
{
    struct bench *bench = *state;
    struct ether_wire_params params = { .rate_gbit_s = 100 };
    join(bench, 0, &bench->end[1].port, &params);
    struct ether_frame *frame = make(&bench->end[0], 1, 2, 3, 4, 100);
    ether_wire_free(bench->end[0].wire);
    bench->end[0].wire = NULL;
    ether_frame_free(&bench->end[0].model, frame);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WIRE_TEST(test_frames_outlive_their_wire),
        WIRE_TEST(test_latency_is_the_formula),
        cmocka_unit_test(test_rate_without_drift),
        WIRE_TEST(test_directions_are_independent),
        WIRE_TEST(test_loss),
        WIRE_TEST(test_link_down),
        WIRE_TEST(test_pause),
        WIRE_TEST(test_tap),
        WIRE_TEST(test_pause_overtakes),
        WIRE_TEST(test_pause_ends),
        WIRE_TEST(test_pause_outlives_the_link),
        WIRE_TEST(test_pause_slow),
        WIRE_TEST(test_headroom),
        WIRE_TEST(test_mistakes),
        WIRE_TEST(test_parse_and_checksums),
        cmocka_unit_test(test_checksum_of_the_rfc),
        SWITCH_TEST(test_switch_learns, 3, "", 1 << 20, 16),
        SWITCH_TEST(test_switch_static_and_full, 3, "", 1 << 20, 2),
        SWITCH_TEST(test_switch_static_after_learned, 3, "", 1 << 20, 16),
        SWITCH_TEST(test_switch_queue_limit, 3, "", 64 * 1024, 16),
        SWITCH_TEST(test_switch_pause, 5, "", 1 << 20, 16),
        SWITCH_TEST(test_switch_is_stopped, 2, "", 256 * 1024, 16),
        SWITCH_TEST(test_switch_group, 4, "1+2+3", 16 << 20, 16),
        cmocka_unit_test(test_switch_spreads_ports_in_step),
        cmocka_unit_test(test_switch_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
