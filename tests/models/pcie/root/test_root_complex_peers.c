/* Peer to peer through root complexes, seen TLP by TLP. */
#include "models/pcie/root/root_complex.h"
#include "tests/support/tlp_spy.h"

#include <string.h>

/* ---- Peer to peer ---------------------------------------------------------------------------- */

/* A read comes after the writes before it, also where those wait for the egress port. */
static void test_peer_read_pushes_writes(void **state)
{
    struct world_fixture *f = *state;
    struct spy a, b;
    spy_on(&a, f, "a");
    spy_on(&b, f, "b");
    a.silent = true;
    b.hold = true; /* 32 writes fill its buffers, 16 the root port's queue, 12 stand before that */
    uint64_t bar = spy_bar(&b) + 8;
    for (unsigned i = 1; i <= 60; i++)
        spy_send(&a, spy_tlp(&a, TLP_MWR, bar, 8, i));
    spy_send(&a, spy_tlp(&a, TLP_MRD, bar, 8, 1));
    sim_run(f->sim, SIM_TIME_MAX, NULL);
    assert_int_equal(b.n, 32);
    spy_let_go(&b);
    spy_run(f);
    assert_int_equal(b.n, 61);
    for (unsigned i = 0; i < 60; i++)
        assert_int_equal(b.got[i].tag, i + 1); /* nothing lost, in order */
    assert_int_equal(a.n, 1);
    assert_int_equal(a.data[0], 60 * UINT64_C(0x0101010101010101));
}

/* Completions behind writes of the same way wait, but for those whose attributes let them pass;
 * what comes from another port is not held up; writes pass reads without credits. */
static void test_peer_order_follows_table_2_39(void **unused)
{
    static const struct {
        uint8_t attr;
        bool passes;
    } kind[] = { { 0, false },
                 { TLP_ATTR_RELAXED_ORDERING, true },
                 { TLP_ATTR_ID_ORDERING, false } }; /* the completer wrote these itself */
    struct world_fixture f;
    struct spy a, b, c;
    (void)unused;
    for (unsigned k = 0; k < SIM_N_ELEMENTS(kind); k++) {
        fixture_open(&f, WORLD("", "lanes = 1;"));
        spy_on(&a, &f, "a");
        spy_on(&b, &f, "b");
        spy_on(&c, &f, "c");
        a.silent = b.silent = c.silent = true;
        struct tlp request = { .type = TLP_MRD, .requester_id = pcie_requester_id(b.model) };
        request.attr = kind[k].attr;
        request.length_bytes = 64;
        for (unsigned i = 0; i < 100; i++) {
            if (i == 60) {
                struct tlp *cpl = tlp_completion(a.model->pcie, &request,
                                                 pcie_requester_id(a.model), TLP_UR);
                cpl->tag = 200;
                spy_send(&a, cpl);
                spy_send(&c, spy_tlp(&c, TLP_MRD, spy_bar(&b), 8, 201));
            }
            spy_send(&a, spy_tlp(&a, TLP_MWR, spy_bar(&b), 64, i));
        }
        spy_run(&f);
        assert_int_equal(b.n, 102);
        unsigned writes = 0, before_completion = 0, before_read = 0;
        for (unsigned i = 0; i < b.n; i++) {
            if (b.got[i].tag == 200)
                before_completion = writes;
            else if (b.got[i].tag == 201)
                before_read = writes;
            else
                assert_int_equal(b.got[i].tag, writes++);
        }
        assert_true(kind[k].passes ? before_completion < 60 : before_completion >= 60);
        assert_true(before_read < 60);
        fixture_close(&f);
    }
}

/* Reads that the peer's buffers have no room for keep nobody from writing. */
static void test_peer_writes_pass_blocked_reads(void **state)
{
    struct world_fixture *f = *state;
    struct spy a, b;
    spy_on(&a, f, "a");
    spy_on(&b, f, "b");
    a.silent = true;
    b.hold = true; /* 16 reads fill its buffers, 16 more the root port's queue */
    for (unsigned i = 0; i < 45; i++)
        spy_send(&a, spy_tlp(&a, TLP_MRD, spy_bar(&b), 8, i));
    for (unsigned i = 0; i < 20; i++)
        spy_send(&a, spy_tlp(&a, TLP_MWR, spy_bar(&b), 8, 100 + i));
    sim_run(f->sim, SIM_TIME_MAX, NULL);
    assert_int_equal(b.n, 16 + 20);
    for (unsigned i = 16; i < 36; i++)
        assert_int_equal(b.got[i].tag, 100 + i - 16);
    spy_let_go(&b);
    spy_run(f);
    assert_int_equal(b.n, 45 + 20); /* and nothing is lost */
    assert_int_equal(a.n, 45 - 16);
}

/* A device keeps 40 reads of memory in flight, which fill its link with completions: the answer of
 * a peer waits for those that were there before it, not for those of reads that are sent later. */
static void test_peer_answers_are_not_starved(void **state)
{
    struct world_fixture *f = *state;
    struct spy a;
    spy_on(&a, f, "a");
    a.silent = true;
    a.again_address = spy_memory(f, &a).v;
    a.n_again = 160;
    for (unsigned i = 0; i < 40; i++)
        spy_send(&a, spy_tlp(&a, TLP_MRD, a.again_address, 512, 1));
    spy_send(&a, spy_tlp(&a, TLP_MRD,
                         spy_bar(&(struct spy){ .model = world_device(f->world, "b") }), 64, 200));
    spy_run(f);
    assert_int_equal(a.n, 2 * 200 + 1);
    unsigned before = 0;
    while (a.got[before].tag != 200)
        before++;
    /* Two completions for each of the 40, and as many while the answer is on its way. */
    assert_true(before <= 4 * 40);
}

/* Nor do its completions keep a peer's requests to it out, posted or not. */
static void test_peer_requests_are_not_starved(void **state)
{
    static const enum tlp_type type[] = { TLP_MWR, TLP_MRD };
    struct world_fixture *f = *state;
    struct spy a, b;
    spy_on(&a, f, "a");
    spy_on(&b, f, "b");
    a.silent = b.silent = true;
    b.again_address = spy_memory(f, &b).v;
    for (unsigned k = 0; k < SIM_N_ELEMENTS(type); k++) {
        b.n = 0;
        b.n_again = 160;
        for (unsigned i = 0; i < 40; i++)
            spy_send(&b, spy_tlp(&b, TLP_MRD, b.again_address, 512, 1));
        sim_run(f->sim, sim_now(f->sim) + 3 * SIM_PS_PER_US, NULL);
        const unsigned before = b.n;
        spy_send(&a, spy_tlp(&a, type[k], spy_bar(&b), 8, 200));
        spy_run(f);
        assert_int_equal(b.n, 2 * 200 + 1);
        unsigned at = before;
        while (b.got[at].tag != 200)
            at++;
        assert_int_equal(b.got[at].type, type[k]);
        assert_true(at - before <= 3 * 40); /* of 400 */
    }
}

/* Two lines and a half touch three: the next write is three intervals behind, whatever its size. */
static void test_peer_writes_pass_line_by_line(void **state)
{
    struct world_fixture *f = *state;
    struct spy a, b;
    spy_on(&a, f, "a");
    spy_on(&b, f, "b");
    a.silent = b.silent = true;
    spy_send(&a, spy_tlp(&a, TLP_MWR, spy_bar(&b) + 32, 128, 0));
    for (unsigned i = 1; i < 6; i++)
        spy_send(&a, spy_tlp(&a, TLP_MWR, spy_bar(&b), 8, i));
    sim_run(f->sim, SIM_TIME_MAX, NULL);
    assert_int_equal(b.n, 6);
    /* Arrivals are ends of TLPs; the first is longer by 120 bytes of a Gen3 link. */
    sim_time longer_ps = pcie_port_wire_ps(&b.model->ports[0], 120);
    assert_in_range(b.at_ps[1] + longer_ps - b.at_ps[0], 299999, 300001);
    for (unsigned i = 2; i < 6; i++)
        assert_in_range(b.at_ps[i] - b.at_ps[i - 1], 99999, 100001);
}

#define SLOW_QPI "}; interconnect = { links = 1; rate_gt_s = 1.0; lanes = 20; " /* the last group */
#define FLIT_PS  4000 /* 80 bits on 20 lanes of 1 GT/s */
#define HOP_PS   21000

/* c (socket 1) sends n TLPs of `type`, 64 bytes each, to b (socket 0); returns when b got each. */
static void cross(const char *world, enum tlp_type type, unsigned n, sim_time *at_ps,
                  uint64_t bytes[2])
{
    struct world_fixture f;
    struct spy b, c;
    fixture_open(&f, world);
    spy_on(&b, &f, "b");
    spy_on(&c, &f, "c");
    b.silent = true;
    struct numa *numa = host_numa(f.host);
    const sim_time start_ps = sim_now(f.sim);
    const uint64_t there = numa_interconnect_bytes(numa, 1, 0);
    const uint64_t back = numa_interconnect_bytes(numa, 0, 1);
    for (unsigned i = 0; i < n; i++)
        spy_send(&c, spy_tlp(&c, type, spy_bar(&b), 64, i));
    spy_run(&f);
    assert_int_equal(b.n, n);
    for (unsigned i = 0; i < n; i++)
        at_ps[i] = b.at_ps[i] - start_ps;
    bytes[0] = numa_interconnect_bytes(numa, 1, 0) - there;
    bytes[1] = numa_interconnect_bytes(numa, 0, 1) - back;
    fixture_close(&f);
}

/* The time between sockets delays each write alike; it does not hold up the one behind. */
static void test_peer_writes_cross_sockets_in_a_stream(void **unused)
{
    enum { N = 20 };
    sim_time near_ps[N], far_ps[N];
    uint64_t bytes[2];
    (void)unused;
    cross(WORLD("p2p_socket_ns = 0;", ""), TLP_MWR, N, near_ps, bytes);
    cross(WORLD("p2p_socket_ns = 1000;", ""), TLP_MWR, N, far_ps, bytes);
    for (unsigned i = 0; i < N; i++)
        assert_int_equal(far_ps[i], near_ps[i] + SIM_PS_PER_US);
}

/* Between sockets a line of data is a message of 10 flits, what a read asks for one flit a line,
 * and each line of a write is answered: time, rate and bytes are those of the interconnect. */
static void test_peers_of_two_sockets_use_the_interconnect(void **unused)
{
    enum { N = 60 };
    sim_time slow_ps[N], fast_ps[N];
    uint64_t bytes[2];
    (void)unused;
    cross(WORLD(SLOW_QPI, ""), TLP_MWR, N, slow_ps, bytes);
    assert_int_equal(bytes[0], N * 10 * 8);
    assert_int_equal(bytes[1], N * 8);
    cross(WORLD("", ""), TLP_MWR, N, fast_ps, bytes);
    /* Alone: 10 flits of 40000 / 9.6 ps here, of 4000 ps there. */
    assert_in_range(slow_ps[0] - fast_ps[0], 10 * (FLIT_PS - 417) - 10, 10 * (FLIT_PS - 416) + 10);
    assert_in_range(slow_ps[N - 1] - slow_ps[N / 2], (N / 2 - 1) * 10 * FLIT_PS - FLIT_PS,
                    (N / 2 - 1) * 10 * FLIT_PS + FLIT_PS);
    assert_true(fast_ps[N - 1] - fast_ps[0] < (slow_ps[N - 1] - slow_ps[0]) / 2);
    cross(WORLD("", ""), TLP_MRD, 16, fast_ps, bytes);
    assert_int_equal(bytes[0], 16 * 8);
    assert_int_equal(bytes[1], 0);
}

/* A read of a peer of the other socket takes a hop for the request and one for the data more. */
static void test_peer_reads_cross_twice(void **unused)
{
    sim_time took_ps[2];
    (void)unused;
    for (unsigned far = 0; far < 2; far++) {
        struct world_fixture f;
        struct spy spy;
        fixture_open(&f, WORLD("", ""));
        spy_on(&spy, &f, far ? "c" : "a");
        spy.silent = true;
        struct numa *numa = host_numa(f.host);
        const struct spy b = { .model = world_device(f.world, "b") };
        const sim_time start_ps = sim_now(f.sim);
        const uint64_t back = numa_interconnect_bytes(numa, 0, 1);
        spy_send(&spy, spy_tlp(&spy, TLP_MRD, spy_bar(&b), 8, 1));
        spy_run(&f);
        took_ps[far] = spy.at_ps[spy.n - 1] - start_ps;
        assert_int_equal(numa_interconnect_bytes(numa, 0, 1) - back, far * 10 * 8);
        fixture_close(&f);
    }
    /* A request of one flit, data of ten. */
    assert_in_range(took_ps[1] - took_ps[0], 2 * HOP_PS + 11 * 416, 2 * HOP_PS + 11 * 417);
}

/* ---- Peers and cores ------------------------------------------------------------------------- */

#define N_CORE_WRITES 8u

struct core_requests {
    struct fixture_call call[36];
    uint64_t bar;
};

static void core_reads(struct world_fixture *f, struct sim_task *task, void *arg)
{
    root_complex_mmio_read(host_root_complexes(f->host), 0, task, (struct hpa){ *(uint64_t *)arg },
                           8, NULL);
}

static void core_writes(struct world_fixture *f, struct sim_task *task, void *arg)
{
    for (unsigned i = 0; i < N_CORE_WRITES; i++)
        root_complex_mmio_write(host_root_complexes(f->host), 0, task,
                                (struct hpa){ *(uint64_t *)arg }, 8, UINT64_MAX);
}

static void core_starts(struct world_fixture *f, struct fixture_call *call, uint64_t *bar,
                        void (*body)(struct world_fixture *f, struct sim_task *task, void *arg))
{
    *call = (struct fixture_call){ .f = f, .body = body, .arg = bar };
    sim_task_start(sim_task_new(f->sim, "core", 0, fixture_body, call), sim_now(f->sim));
}

/* b, which holds its buffers, has 16 of n reads of cores; the root port has 16 more, and further
 * cores wait for room there. */
static void cores_read(struct world_fixture *f, struct spy *b, struct core_requests *cores,
                       unsigned n)
{
    b->hold = true;
    cores->bar = spy_bar(b);
    for (unsigned i = 0; i < n; i++) {
        core_starts(f, &cores->call[i], &cores->bar, core_reads);
        sim_run(f->sim, sim_now(f->sim) + 300 * SIM_PS_PER_NS, NULL);
    }
    assert_int_equal(b->n, 16);
}

/* Every 100 ns b gives back the buffer of one write, until it has got n TLPs or `rounds` are
 * over. */
static void give_back_writes(struct world_fixture *f, struct spy *b, unsigned n, unsigned rounds)
{
    unsigned next = 0;
    while (b->n < n && rounds-- != 0) {
        while (next < b->n && tlp_class_of(&b->got[next]) != TLP_POSTED)
            next++;
        if (next < b->n)
            spy_give_back(b, next++);
        sim_run(f->sim, sim_now(f->sim) + 100 * SIM_PS_PER_NS, NULL);
    }
}

/* Cores that wait for room for their reads keep no peer from writing (table 2-39, A2 against
 * B3). */
static void test_peer_writes_pass_cores_that_wait(void **state)
{
    struct world_fixture *f = *state;
    struct core_requests cores;
    struct spy a, b;
    spy_on(&a, f, "a");
    spy_on(&b, f, "b");
    a.silent = true;
    cores_read(f, &b, &cores, 36);
    for (unsigned i = 0; i < 60; i++)
        spy_send(&a, spy_tlp(&a, TLP_MWR, cores.bar, 8, i));
    give_back_writes(f, &b, 16 + 60, 100);
    assert_int_equal(b.n, 16 + 60);
    spy_let_go(&b);
    spy_run(f);
    assert_int_equal(b.n, 36 + 60); /* and nothing is lost */
}

/* Nor do they keep another core from writing, in turn with peers that write without pause. */
static void test_core_writes_in_turn_with_peers(void **state)
{
    struct world_fixture *f = *state;
    struct core_requests cores;
    struct fixture_call writes;
    struct spy a, b;
    spy_on(&a, f, "a");
    spy_on(&b, f, "b");
    a.silent = true;
    cores_read(f, &b, &cores, 36);
    for (unsigned i = 0; i < 200; i++)
        spy_send(&a, spy_tlp(&a, TLP_MWR, cores.bar, 8, 1));
    sim_run(f->sim, sim_now(f->sim) + 5 * SIM_PS_PER_US, NULL);
    core_starts(f, &writes, &cores.bar, core_writes);
    give_back_writes(f, &b, 16 + 200 + N_CORE_WRITES, 250);
    assert_int_equal(b.n, 16 + 200 + N_CORE_WRITES);
    unsigned last = 0, peers = 0;
    for (unsigned i = 16; i < b.n; i++)
        if (b.data[i] == UINT64_MAX)
            last = i;
    for (unsigned i = 16; i < last; i++)
        peers += b.data[i] != UINT64_MAX;
    /* Those before it, and one for each of its own. */
    assert_in_range(peers, 32 + 16, 32 + 16 + 2 * N_CORE_WRITES);
    spy_let_go(&b);
    spy_run(f);
    assert_int_equal(b.n, 36 + 200 + N_CORE_WRITES);
}

/* ---- Reads split and re-originated ----------------------------------------------------------- */

/* b answers the i-th request that it got with `n` completions; every byte tells its offset from
 * `base`. */
static void spy_answer(struct spy *b, unsigned i, enum tlp_status status, unsigned n, uint64_t base)
{
    struct tlp request = b->got[i];
    request.stamp = NULL;
    for (unsigned k = 0; k < n; k++) {
        struct tlp *cpl = tlp_completion(b->model->pcie, &request, pcie_requester_id(b->model),
                                         status);
        if (status == TLP_SC) {
            unsigned bytes = request.length_bytes / n;
            cpl->byte_count = (uint16_t)(request.length_bytes - k * bytes);
            cpl->length_bytes = (uint16_t)bytes;
            cpl->address = request.address + k * bytes;
            tlp_payload_new(b->model->pcie, cpl);
            for (unsigned o = 0; o < bytes; o++)
                cpl->payload[o] = (uint8_t)(cpl->address + o - base);
        }
        spy_send(b, cpl);
    }
}

/* 256 bytes that begin 16 into a line leave as pieces of 48, 64, 64, 64 and 16; whatever order
 * their answers come in, the original's come in that of addresses. */
static void test_peer_reads_are_cut(void **state)
{
    static const unsigned order[5] = { 3, 1, 0, 4, 2 };
    static const unsigned bytes[5] = { 48, 64, 64, 64, 16 };
    struct world_fixture *f = *state;
    struct spy a, b;
    spy_on(&a, f, "a");
    spy_on(&b, f, "b");
    a.silent = b.silent = true;
    uint64_t base = spy_bar(&b) + 0x110;
    spy_send(&a, spy_tlp(&a, TLP_MRD, base, 256, 7));
    sim_run(f->sim, sim_now(f->sim) + 2 * SIM_PS_PER_US, NULL);
    assert_int_equal(b.n, 5);
    uint64_t at = base;
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(b.got[i].address, at);
        assert_int_equal(b.got[i].length_bytes, bytes[i]);
        assert_int_equal(b.got[i].requester_id, pcie_id(0, 0, 0)); /* the root complex's */
        for (unsigned k = 0; k < i; k++)
            assert_int_not_equal(b.got[i].tag, b.got[k].tag);
        at += bytes[i];
    }
    for (unsigned i = 0; i < 5; i++)
        spy_answer(&b, order[i], TLP_SC, order[i] == 1 ? 2 : 1, base);
    spy_run(f);
    assert_int_equal(a.n, 6);
    unsigned answered = 0;
    for (unsigned i = 0; i < a.n; i++) {
        assert_int_equal(a.got[i].tag, 7);
        assert_int_equal(a.got[i].requester_id, pcie_requester_id(a.model));
        assert_int_equal(a.got[i].byte_count, 256 - answered);
        assert_int_equal(a.got[i].address, base + answered);
        assert_int_equal(a.data[i] & 0xff, answered & 0xff);
        answered += a.got[i].length_bytes;
    }
    assert_int_equal(answered, 256);
}

/* Of many reads no more than so many pieces are in flight; each answer lets the next one go. */
static void test_peer_reads_in_flight_are_bound(void **state)
{
    struct world_fixture *f = *state;
    struct spy a, b;
    spy_on(&a, f, "a");
    spy_on(&b, f, "b");
    a.silent = b.silent = true;
    uint64_t base = spy_bar(&b);
    for (unsigned i = 0; i < 8; i++)
        spy_send(&a, spy_tlp(&a, TLP_MRD, base + 256 * i, 256, i));
    spy_send(&a, spy_tlp(&a, TLP_MWR, base, 8, 100)); /* passes those that wait */
    unsigned answered = 0;
    for (unsigned round = 0; answered < 32; round++) {
        sim_run(f->sim, sim_now(f->sim) + 2 * SIM_PS_PER_US, NULL);
        unsigned reads = 0, read[64];
        for (unsigned i = 0; i < b.n; i++)
            if (b.got[i].type == TLP_MRD)
                read[reads++] = i;
        assert_int_equal(b.n, reads + 1);
        assert_int_equal(reads, SIM_MIN(answered + 6, 32u));
        while (answered < reads && answered < 6 * (round + 1))
            spy_answer(&b, read[answered++], TLP_SC, 1, base);
    }
    spy_run(f);
    assert_int_equal(a.n, 32);
    unsigned next[8] = { 0 };
    for (unsigned i = 0; i < a.n; i++) {
        assert_int_equal(a.got[i].address, base + 256 * a.got[i].tag + 64 * next[a.got[i].tag]);
        next[a.got[i].tag]++;
    }
}

/* One refused piece ends the read with one answer; what else comes for it is dropped; tags are
 * there for others. */
static void test_peer_reads_end_with_errors(void **state)
{
    struct world_fixture *f = *state;
    struct spy a, b;
    spy_on(&a, f, "a");
    spy_on(&b, f, "b");
    a.silent = b.silent = true;
    uint64_t base = spy_bar(&b);
    spy_send(&a, spy_tlp(&a, TLP_MRD, base, 256, 1)); /* the fourth piece waits */
    sim_run(f->sim, sim_now(f->sim) + 2 * SIM_PS_PER_US, NULL);
    assert_int_equal(b.n, 3);
    spy_answer(&b, 2, TLP_SC, 1, base); /* held: two are before it */
    spy_answer(&b, 1, TLP_UR, 1, base);
    spy_answer(&b, 0, TLP_SC, 1, base);
    sim_run(f->sim, sim_now(f->sim) + 5 * SIM_PS_PER_US, NULL);
    assert_int_equal(a.n, 1);
    assert_int_equal(a.got[0].status, TLP_UR);
    assert_int_equal(a.got[0].tag, 1);
    spy_send(&a, spy_tlp(&a, TLP_MRD, base, 128, 2));
    sim_run(f->sim, sim_now(f->sim) + 2 * SIM_PS_PER_US, NULL);
    unsigned n = b.n;
    for (unsigned i = n - 2; i < n; i++)
        spy_answer(&b, i, TLP_SC, 1, base);
    spy_run(f);
    assert_int_equal(a.n, 3);
    assert_int_equal(a.got[2].tag, 2);
    assert_int_equal(a.got[2].byte_count, 64);
}

/* No answer: an error after the completion time-out; a late one frees the tag and nothing else. */
static void test_peer_reads_time_out(void **unused)
{
    struct world_fixture f;
    struct spy a, b;
    (void)unused;
    for (unsigned late = 0; late < 2; late++) {
        fixture_open(&f, WORLD("p2p_reads_max = 1;", ""));
        spy_on(&a, &f, "a");
        spy_on(&b, &f, "b");
        a.silent = b.silent = true;
        uint64_t base = spy_bar(&b);
        sim_time start_ps = sim_now(f.sim);
        spy_send(&a, spy_tlp(&a, TLP_MRD, base, 64, 1));
        spy_send(&a, spy_tlp(&a, TLP_MRD, base, 64, 2));
        sim_run(f.sim, start_ps + SPY_TIMEOUT_PS + 3 * SIM_PS_PER_US, NULL);
        assert_int_equal(a.n, 1);
        assert_int_equal(a.got[0].status, TLP_CA);
        assert_int_equal(b.n, 1); /* the only tag rests */
        if (late)
            spy_answer(&b, 0, TLP_SC, 1, base);
        sim_run(f.sim, sim_now(f.sim) + (late ? 3 * SIM_PS_PER_US : SPY_TIMEOUT_PS), NULL);
        assert_int_equal(b.n, 2);
        spy_answer(&b, 1, TLP_SC, 1, base);
        spy_run(&f);
        assert_int_equal(a.n, 2);
        assert_int_equal(a.got[1].status, TLP_SC);
        assert_int_equal(a.got[1].tag, 2);
        fixture_close(&f);
    }
}

/* What root ports send carries a digest if they are told so: pieces, and the original's
 * completions, whether the device that has the data adds one or not. Nobody answers the second
 * read. */
static void test_peer_reads_have_the_digest_of_their_port(void **unused)
{
    static const char *const settings[] = {
        "p2p_chunk_bytes = 64; }; firmware = { ecrc = true; ",
        "p2p_chunk_bytes = 64; ecrc = true; }; firmware = { ecrc = true; ",
    };
    (void)unused;
    for (unsigned on = 0; on < SIM_N_ELEMENTS(settings); on++) {
        char *text = g_strdup_printf(WORLD("%s", ""), settings[on]);
        struct world_fixture f;
        struct spy a, b;
        fixture_open(&f, text);
        g_free(text);
        spy_on(&a, &f, "a");
        spy_on(&b, &f, "b");
        a.silent = b.silent = true;
        spy_send(&a, spy_tlp(&a, TLP_MRD, spy_bar(&b), 64, 1));
        spy_send(&a, spy_tlp(&a, TLP_MRD, spy_bar(&b), 64, 2));
        sim_run(f.sim, sim_now(f.sim) + 2 * SIM_PS_PER_US, NULL);
        spy_answer(&b, 0, TLP_SC, 1, spy_bar(&b));
        spy_run(&f);
        assert_int_equal(b.n, 2);
        assert_int_equal(a.n, 2);
        assert_int_equal(a.got[0].status, TLP_SC);
        assert_int_equal(a.got[1].status, TLP_CA);
        for (unsigned i = 0; i < 2; i++) {
            assert_int_equal(a.got[i].digest, on);
            assert_int_equal(b.got[i].digest, on);
        }
        fixture_close(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TLP_TEST(test_peer_read_pushes_writes, "", ""),
        cmocka_unit_test(test_peer_order_follows_table_2_39),
        TLP_TEST(test_peer_writes_pass_blocked_reads, "", ""),
        TLP_TEST(test_peer_answers_are_not_starved, "", ""),
        TLP_TEST(test_peer_requests_are_not_starved, "", ""),
        TLP_TEST(test_peer_writes_pass_line_by_line, "p2p_line_interval_ns = 100;", ""),
        cmocka_unit_test(test_peer_writes_cross_sockets_in_a_stream),
        cmocka_unit_test(test_peers_of_two_sockets_use_the_interconnect),
        cmocka_unit_test(test_peer_reads_cross_twice),
        TLP_TEST(test_peer_writes_pass_cores_that_wait, "", ""),
        TLP_TEST(test_core_writes_in_turn_with_peers, "", ""),
        TLP_TEST(test_peer_reads_are_cut, "p2p_chunk_bytes = 64;", ""),
        TLP_TEST(test_peer_reads_in_flight_are_bound, "p2p_chunk_bytes = 64; p2p_reads_max = 6;",
                 ""),
        TLP_TEST(test_peer_reads_end_with_errors, "p2p_chunk_bytes = 64; p2p_reads_max = 3;", ""),
        cmocka_unit_test(test_peer_reads_time_out),
        cmocka_unit_test(test_peer_reads_have_the_digest_of_their_port),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
