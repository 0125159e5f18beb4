/*
 * How things end in Open-MX: receives that are too short, that are cancelled, that match in their
 * order; connections that are refused; peers that close, die or come again; queues, slots and
 * regions that are full; where a process is moved to.
 */
#include "tests/support/omx_pair.h"

#define BYTES_MAX (1u << 20)

struct end {
    unsigned sent, settled; /* messages; up to this one some may be lost */
    unsigned last, deaths;
    bool seen[10000]; /* messages of the other */
};

struct run {
    struct omx_pair *pair;
    struct omx_process a, b, c;
    unsigned step;
    bool cut; /* nothing passes the wire */
    uint64_t bytes, room;
    unsigned n, received;
    struct end end[2]; /* a's and b's, on a wire that is cut now and then */
};

static void sleeps(struct omx_process *p, uint64_t us)
{
    k_sleep(p->pair->kernel, FAKE_US(us));
}

/* Makes progress meanwhile. */
static void idles(struct omx_process *p, uint64_t us)
{
    const uint64_t until_ps = k_now_ps(p->pair->kernel) + FAKE_US(us);
    struct mx_status status;
    while (k_now_ps(p->pair->kernel) < until_ps) {
        mx_iprobe(p->ep, 0, 0, &status);
        sleeps(p, 20);
    }
}

static bool drop_all(struct rig *rig, unsigned from, const uint8_t *head, uint32_t bytes, void *arg)
{
    (void)rig;
    (void)from;
    (void)head;
    (void)bytes;
    return ((struct run *)arg)->cut;
}

static struct run *run_new(void)
{
    const struct rig_options wire = omx_wire(1);
    struct run *run = k_zalloc(sizeof *run);
    run->pair = omx_pair_new(&wire, NULL);
    run->pair->rig->filter = drop_all;
    run->pair->rig->filter_arg = run;
    return run;
}

static void run_free(struct run *run)
{
    omx_pair_run(run->pair, 100);
    omx_pair_free(run->pair);
    free(run);
}

static struct mx_request *sends(struct omx_process *p, struct kaddr at, uint64_t bytes,
                                uint64_t match)
{
    const struct mx_segment segment = { at, bytes };
    struct mx_request *r;
    assert_int_equal(mx_isend(p->ep, &segment, 1, &p->peer[0], match, NULL, &r), 0);
    return r;
}

static struct mx_request *receives(struct omx_process *p, struct kaddr at, uint64_t bytes,
                                   uint64_t match, uint64_t mask)
{
    const struct mx_segment segment = { at, bytes };
    struct mx_request *r;
    assert_int_equal(mx_irecv(p->ep, &segment, 1, match, mask, NULL, &r), 0);
    return r;
}

/* ---- Too short ------------------------------------------------------------------------------- */

static void send_one(struct omx_process *p)
{
    struct run *run = p->arg;
    const struct kaddr at = omx_memory(p, BYTES_MAX);
    assert_int_equal(omx_connect(p, 0, &run->b), 0);
    net_rig_fill(p->pair->kernel, at, 1, 0, run->bytes);
    struct mx_request *r = sends(p, at, run->bytes, 1);
    const struct mx_status status = omx_wait(p, &r);
    assert_int_equal(status.code, MX_SUCCESS);
}

static void receive_some(struct omx_process *p)
{
    struct run *run = p->arg;
    const struct kaddr at = omx_memory(p, BYTES_MAX);
    uint8_t behind = 0x5a;
    if (run->n > 0)
        sleeps(p, 500);
    k_poke(p->pair->kernel, kaddr_add(at, run->room), &behind, 1);
    struct mx_request *r = receives(p, at, run->room, 1, UINT64_MAX);
    const struct mx_status status = omx_wait(p, &r);
    assert_int_equal(status.code, MX_TRUNCATED);
    assert_int_equal(status.bytes, run->room);
    assert_int_equal(status.message_bytes, run->bytes);
    net_rig_check(p->pair->kernel, at, 1, 0, run->room);
    k_peek(p->pair->kernel, kaddr_add(at, run->room), &behind, 1);
    assert_int_equal(behind, 0x5a);
}

static void test_too_short(void **state)
{
    static const uint64_t sizes[][2] = { { 20, 0 },      { 20, 7 },        { 100, 50 },
                                         { 20000, 300 }, { 20000, 12289 }, { 100000, 0 },
                                         { 100000, 5 },  { 100000, 99999 } };
    (void)state;
    for (unsigned i = 0; i < 2 * sizeof sizes / sizeof sizes[0]; i++) {
        struct run *run = run_new();
        run->bytes = sizes[i / 2][0];
        run->room = sizes[i / 2][1];
        run->n = i % 2; /* expected, unexpected */
        omx_process_start(run->pair, &run->b, 1, 0, 1, receive_some, run);
        omx_process_start(run->pair, &run->a, 0, 0, 1, send_one, run);
        run_free(run);
    }
}

/* ---- Matching -------------------------------------------------------------------------------- */

static void send_three(struct omx_process *p)
{
    struct run *run = p->arg;
    const struct kaddr at = omx_memory(p, 4096);
    assert_int_equal(omx_connect(p, 0, &run->b), 0);
    while (run->step == 0)
        sleeps(p, 10);
    for (unsigned i = 0; i < 3; i++) {
        struct mx_request *r = sends(p, at, i, 0x100 + i);
        omx_wait(p, &r);
    }
}

/* A message meets the first receive that fits, a cancelled one meets none. */
static void receive_masked(struct omx_process *p)
{
    struct run *run = p->arg;
    const struct kaddr at = omx_memory(p, 4096);
    struct mx_request *gone = receives(p, at, 64, 0x100, UINT64_MAX);
    struct mx_request *third = receives(p, at, 64, 0x102, UINT64_MAX);
    struct mx_request *odd = receives(p, at, 64, 1, 1);
    struct mx_request *any = receives(p, at, 64, 0x100, ~UINT64_C(0xff));
    struct mx_status status;
    assert_true(mx_cancel(p->ep, &gone));
    assert_null(gone);
    run->step = 1;
    status = omx_wait(p, &third);
    assert_int_equal(status.match, 0x102);
    assert_int_equal(omx_wait(p, &odd).match, 0x101);
    while (!mx_test_any(p->ep, 0x100, UINT64_MAX, &status))
        sleeps(p, 10);
    assert_int_equal(status.match, 0x100);
    (void)any;
    /* Too late. */
    struct mx_request *late = receives(p, at, 64, 0x300, UINT64_MAX);
    assert_true(mx_cancel(p->ep, &late));
    struct mx_request *sent = NULL;
    p->peer[0] = status.peer;
    sent = sends(p, at, 10, 1);
    assert_false(mx_cancel(p->ep, &sent));
    omx_wait(p, &sent);
}

static void test_matching(void **state)
{
    struct run *run = run_new();
    (void)state;
    omx_process_start(run->pair, &run->b, 1, 0, 1, receive_masked, run);
    omx_process_start(run->pair, &run->a, 0, 0, 1, send_three, run);
    run_free(run);
}

/* ---- Connections ----------------------------------------------------------------------------- */

static void waits_for_step(struct omx_process *p)
{
    while (((struct run *)p->arg)->step == 0)
        idles(p, 100);
}

static void connects_badly(struct omx_process *p)
{
    struct run *run = p->arg;
    struct kernel *kernel = p->pair->kernel;
    struct mx_endpoint *second;
    struct mx_peer peer;
    for (unsigned host = 0; host < 2; host++) {
        const uint64_t nic_id = openmx_board(p->pair->omx[host])->nic_id;
        const uint64_t until_ps = k_now_ps(kernel) + FAKE_MS(3000);
        assert_int_equal(mx_connect(p->ep, nic_id, 99, OMX_KEY, until_ps, &peer), -ENOENT);
        if (host == 1)
            assert_int_equal(mx_connect(p->ep, nic_id, run->b.id, 1, until_ps, &peer), -EPERM);
    }
    run->cut = true;
    assert_int_equal(mx_connect(p->ep, openmx_board(p->pair->omx[1])->nic_id, run->b.id, OMX_KEY,
                                k_now_ps(kernel) + FAKE_MS(700), &peer),
                     -ETIMEDOUT);
    run->cut = false;
    assert_int_equal(mx_open(openmx_board(p->pair->omx[0]), p->id, OMX_KEY, &p->pair->mx, &second),
                     -EBUSY);
    /* Its own endpoint is one like others. */
    assert_int_equal(omx_connect(p, 0, p), 0);
    const struct kaddr at = omx_memory(p, 8192);
    struct mx_request *r = receives(p, kaddr_add(at, 4096), 100, 5, UINT64_MAX);
    struct mx_request *s = sends(p, at, 100, 5);
    assert_int_equal(omx_wait(p, &r).code, MX_SUCCESS);
    assert_int_equal(omx_wait(p, &s).code, MX_SUCCESS);
    run->step = 1;
}

static void test_connections(void **state)
{
    struct run *run = run_new();
    (void)state;
    omx_process_start(run->pair, &run->b, 1, 0, 1, waits_for_step, run);
    omx_process_start(run->pair, &run->a, 0, 0, 1, connects_badly, run);
    run_free(run);
}

/* ---- Peers that go --------------------------------------------------------------------------- */

/* A large message announced, one that is being pulled, a medium one that waits for slots, small
 * ones. */
static void sends_into_nothing(struct omx_process *p)
{
    struct run *run = p->arg;
    const struct kaddr at = omx_memory(p, BYTES_MAX);
    struct mx_request *request[3];
    assert_int_equal(omx_connect(p, 0, &run->b), 0);
    request[0] = sends(p, at, 100000, 1);    /* nobody asks for it */
    request[1] = sends(p, at, BYTES_MAX, 2); /* is pulled */
    struct mx_request *in = receives(p, at, BYTES_MAX, 3, UINT64_MAX);
    while (run->step == 0)
        idles(p, 20);
    idles(p, 200);
    run->cut = run->n == 0;
    run->step = 2;
    request[2] = sends(p, at, 30000, 4); /* is kept: it ends at once */
    assert_int_equal(omx_wait(p, &request[2]).code, MX_SUCCESS);
    const enum mx_code code = run->n == 0 ? MX_PEER_DEAD : MX_BAD_ENDPOINT;
    assert_int_equal(omx_wait(p, &request[0]).code, code);
    assert_int_equal(omx_wait(p, &request[1]).code, code);
    struct mx_request *after = sends(p, at, 10, 5);
    assert_int_equal(omx_wait(p, &after).code, code);
    assert_true(mx_cancel(p->ep, &in));
    run->step = 3;
}

static void goes(struct omx_process *p)
{
    struct run *run = p->arg;
    const struct kaddr at = omx_memory(p, BYTES_MAX);
    struct mx_status status;
    while (!mx_iprobe(p->ep, 2, UINT64_MAX, &status))
        sleeps(p, 10);
    struct mx_request *r = receives(p, at, BYTES_MAX, 2, UINT64_MAX);
    mx_test(p->ep, &r, &status);
    run->step = 1;
    if (run->n != 0) {
        idles(p, 300);
        return; /* closes its endpoint in the middle of the pull */
    }
    /* The sender does not answer any more. */
    assert_int_equal(omx_wait(p, &r).code, MX_PEER_DEAD);
    while (run->step < 3)
        idles(p, 1000);
}

static void test_peers_that_go(void **state)
{
    (void)state;
    for (unsigned closes = 0; closes < 2; closes++) {
        struct run *run = run_new();
        run->n = closes;
        run->pair->mx.resends_max = 3;
        run->pair->mx.linger_ps = 0;
        for (unsigned host = 0; host < 2; host++) { /* a board's own patience: as short */
            openmx_free(run->pair->omx[host]);
            run->pair->options[host].pull_resends_max = 2;
            run->pair->omx[host] = openmx_new(run->pair->rig->end[host].net,
                                              &run->pair->rig->end[host].dev, NULL,
                                              &run->pair->options[host]);
        }
        omx_process_start(run->pair, &run->b, 1, 0, 1, goes, run);
        omx_process_start(run->pair, &run->a, 0, 0, 1, sends_into_nothing, run);
        run_free(run);
    }
}

/* ---- A pull that is given up ----------------------------------------------------------------- */

static bool drop_replies(struct rig *rig, unsigned from, const uint8_t *head, uint32_t bytes,
                         void *arg)
{
    (void)rig, (void)from, (void)bytes, (void)arg;
    return head[MX_HEAD_BYTES] == MX_PACKET_PULL_REPLY;
}

static void sends_in_vain(struct omx_process *p)
{
    struct run *run = p->arg;
    const struct kaddr at = omx_memory(p, 100000);
    assert_int_equal(omx_connect(p, 0, &run->b), 0);
    struct mx_request *r = sends(p, at, 100000, 1);
    assert_int_equal(omx_wait(p, &r).code, MX_PEER_DEAD);
    run->step = 1;
}

static void gives_up(struct omx_process *p)
{
    const struct kaddr at = omx_memory(p, 100000);
    struct mx_request *r = receives(p, at, 100000, 1, UINT64_MAX);
    assert_int_equal(omx_wait(p, &r).code, MX_PEER_DEAD);
    waits_for_step(p);
}

/* Both ends end, and the sender's region is given back, though everything but replies passes. */
static void test_pull_given_up(void **state)
{
    struct openmx_options options = openmx_options_default;
    const struct rig_options wire = omx_wire(1);
    struct run *run = k_zalloc(sizeof *run);
    (void)state;
    options.pull_resend_ps = 10 * K_MS;
    options.pull_resends_max = 2;
    run->pair = omx_pair_new(&wire, &options);
    run->pair->rig->filter = drop_replies;
    run->pair->mx.resend_ps = 5 * K_MS;
    omx_process_start(run->pair, &run->b, 1, 0, 1, gives_up, run);
    omx_process_start(run->pair, &run->a, 0, 0, 1, sends_in_vain, run);
    run_free(run);
}

/* The driver has the library's patience: its library passes it 1000 times its own 0.5 s. */
static void test_patience(void **state)
{
    const struct openmx_options *driver = &openmx_options_default;
    const struct mx_options *library = &mx_options_default;
    (void)state;
    assert_true(library->resends_max * library->resend_ps == 500 * K_S);
    assert_true(driver->pull_resends_max * driver->pull_resend_ps == 500 * K_S);
}

/* ---- One that comes again -------------------------------------------------------------------- */

static void comes_again(struct omx_process *p)
{
    struct run *run = p->arg;
    struct mx_board *board = openmx_board(p->pair->omx[1]);
    const struct kaddr at = omx_memory(p, 4096);
    for (unsigned i = 0; i < 3; i++) {
        struct mx_request *r = receives(p, at, 4096, i, UINT64_MAX);
        run->step = i * 2 + 1;
        const struct mx_status status = omx_wait(p, &r);
        assert_int_equal(status.code, MX_SUCCESS);
        assert_int_equal(status.bytes, 1000);
        mx_close(p->ep);
        run->step = i * 2 + 2;
        assert_int_equal(mx_open(board, p->id, OMX_KEY, &p->pair->mx, &p->ep), 0);
    }
}

static void connects_again(struct omx_process *p)
{
    struct run *run = p->arg;
    const struct kaddr at = omx_memory(p, 4096), big = omx_memory(p, BYTES_MAX);
    for (unsigned i = 0; i < 3; i++) {
        while (run->step != i * 2 + 1)
            idles(p, 10);
        if (i > 0) { /* what it knows is gone */
            struct mx_request *old = sends(p, big, BYTES_MAX, 7);
            assert_int_equal(omx_wait(p, &old).code, MX_BAD_ENDPOINT);
        }
        assert_int_equal(omx_connect(p, 0, &run->b), 0);
        struct mx_request *r = sends(p, at, 1000, i);
        assert_int_equal(omx_wait(p, &r).code, MX_SUCCESS);
    }
}

static void test_one_that_comes_again(void **state)
{
    struct run *run = run_new();
    (void)state;
    omx_process_start(run->pair, &run->b, 1, 0, 1, comes_again, run);
    omx_process_start(run->pair, &run->a, 0, 0, 1, connects_again, run);
    run_free(run);
}

/* It closes when the message 7 has been announced and acknowledged, and opens again. */
static void opens_again(struct omx_process *p)
{
    struct run *run = p->arg;
    const struct kaddr at = omx_memory(p, 4096);
    struct mx_status status;
    assert_int_equal(omx_connect(p, 0, &run->b), 0);
    struct mx_request *r = sends(p, at, 20, 1);
    assert_int_equal(omx_wait(p, &r).code, MX_SUCCESS);
    while (!mx_iprobe(p->ep, 7, UINT64_MAX, &status))
        sleeps(p, 20);
    idles(p, 20000);
    mx_close(p->ep);
    assert_int_equal(mx_open(openmx_board(p->pair->omx[0]), p->id, OMX_KEY, &p->pair->mx, &p->ep),
                     0);
    while (run->step == 0)
        idles(p, 100);
}

/* It knows the peer by its message, or has connected to it as well. */
static void waits_for_it(struct omx_process *p)
{
    struct run *run = p->arg;
    const struct kaddr at = omx_memory(p, 100000);
    struct mx_request *r = receives(p, at, 64, 1, UINT64_MAX);
    p->peer[0] = omx_wait(p, &r).peer;
    if (run->n > 0)
        assert_int_equal(omx_connect(p, 0, &run->a), 0);
    r = sends(p, at, 100000, 7);
    assert_int_equal(omx_wait(p, &r).code, MX_PEER_DEAD);
    run->step = 1;
}

static void test_who_waits_notices(void **state)
{
    (void)state;
    for (unsigned connects = 0; connects < 2; connects++) {
        struct run *run = run_new();
        run->n = connects;
        run->pair->mx.resend_ps = 5 * K_MS;
        run->pair->mx.linger_ps = 0;
        omx_process_start(run->pair, &run->b, 1, 0, 1, waits_for_it, run);
        omx_process_start(run->pair, &run->a, 0, 0, 1, opens_again, run);
        run_free(run);
    }
}

/* ---- Taken for dead -------------------------------------------------------------------------- */

#define BEFORE 3u
#define AFTER  6u

static struct mx_request *await_tiny(struct omx_process *p, struct kaddr at)
{
    return receives(p, at, 64, 0, 0);
}

/* Messages to and fro, numbered by their match. */
static void exchanges(struct omx_process *p, struct kaddr at, unsigned from, unsigned n)
{
    for (unsigned i = from; i < from + n; i++) {
        struct mx_request *in = await_tiny(p, at), *out = sends(p, at, 20, i);
        assert_int_equal(omx_wait(p, &out).code, MX_SUCCESS);
        const struct mx_status status = omx_wait(p, &in);
        assert_int_equal(status.code, MX_SUCCESS);
        assert_int_equal(status.match, i);
    }
}

/* Loses the message 99, ever again; not those behind it. */
static bool drop_one(struct rig *rig, unsigned from, const uint8_t *head, uint32_t bytes, void *arg)
{
    (void)rig, (void)from, (void)bytes, (void)arg;
    return head[MX_HEAD_BYTES] == MX_PACKET_TINY && head[MX_HEAD_BYTES + 23] == 99;
}

/* The peer acknowledges nothing any more, and is dead; then it is connected to again. */
static void takes_for_dead(struct omx_process *p)
{
    struct run *run = p->arg;
    const struct kaddr at = omx_memory(p, 4096);
    assert_int_equal(omx_connect(p, 0, &run->b), 0);
    exchanges(p, at, 0, BEFORE);
    run->cut = true;
    for (unsigned i = 0; i < 2; i++) { /* kept, and lost */
        struct mx_request *lost = sends(p, at, 20, 99 + i);
        assert_int_equal(omx_wait(p, &lost).code, MX_SUCCESS);
    }
    idles(p, 100000);
    struct mx_request *refused = sends(p, at, 20, 98);
    assert_int_equal(omx_wait(p, &refused).code, MX_PEER_DEAD);
    run->cut = false;
    assert_int_equal(omx_connect(p, 0, &run->b), 0);
    exchanges(p, at, 200, AFTER);
    run->step = 1;
}

static void answers_all_until(struct omx_process *p, struct kaddr at, unsigned step)
{
    struct run *run = p->arg;
    struct mx_request *in = await_tiny(p, at), *out;
    struct mx_status status;
    while (run->step < step) {
        if (mx_test(p->ep, &in, &status)) {
            run->received++;
            p->peer[0] = status.peer;
            out = sends(p, at, 20, status.match);
            assert_int_equal(omx_wait(p, &out).code, MX_SUCCESS);
            in = await_tiny(p, at);
        }
        sleeps(p, 20);
    }
    assert_true(mx_cancel(p->ep, &in));
}

static void answers_all(struct omx_process *p)
{
    answers_all_until(p, omx_memory(p, 4096), 1);
}

/* The peer has not noticed anything: its session is the same. Nothing that is acknowledged is lost
 * afterwards, though a message of before still waits there for one that has never come. */
static void test_connected_again(void **state)
{
    (void)state;
    for (unsigned one = 0; one < 2; one++) {
        struct run *run = run_new();
        if (one)
            run->pair->rig->filter = drop_one;
        run->pair->mx.resends_max = 3;
        run->pair->mx.resend_ps = 5 * K_MS;
        omx_process_start(run->pair, &run->b, 1, 0, 1, answers_all, run);
        omx_process_start(run->pair, &run->a, 0, 0, 1, takes_for_dead, run);
        omx_pair_run(run->pair, 100);
        assert_int_equal(run->received, BEFORE + AFTER);
        run_free(run);
    }
}

/* It takes the peer, who has more patience, for dead, and stays at that. */
static void ends_it(struct omx_process *p)
{
    struct run *run = p->arg;
    const struct kaddr at = omx_memory(p, 4096);
    struct mx_status status;
    assert_int_equal(omx_connect(p, 0, &run->b), 0);
    exchanges(p, at, 0, 1);
    while (!mx_iprobe(p->ep, 7, UINT64_MAX, &status)) /* it is announced */
        sleeps(p, 20);
    idles(p, 20000); /* and acknowledged */
    run->cut = true;
    struct mx_request *lost = sends(p, at, 20, 8);
    omx_wait(p, &lost);
    idles(p, 50000);
    run->cut = false;
    while (run->step == 0) {
        struct mx_request *refused = sends(p, at, 20, 9);
        assert_int_equal(omx_wait(p, &refused).code, MX_PEER_DEAD);
        idles(p, 1000);
    }
    if (run->room == 0)
        return;
    exchanges(p, at, 10, AFTER);
    run->step = 2;
}

static void is_told(struct omx_process *p)
{
    struct run *run = p->arg;
    const struct kaddr at = omx_memory(p, 100000);
    struct mx_request *in = await_tiny(p, at), *out;
    struct mx_status status = omx_wait(p, &in);
    p->peer[0] = status.peer;
    if (run->n > 0)
        assert_int_equal(omx_connect(p, 0, &run->a), 0);
    out = sends(p, at, 20, status.match);
    assert_int_equal(omx_wait(p, &out).code, MX_SUCCESS);
    struct mx_request *large = sends(p, at, 100000, 7);
    if (run->room > 0) { /* it connects before it asks by itself */
        while (!run->cut)
            idles(p, 20);
        while (run->cut)
            sleeps(p, 20);
        assert_int_equal(omx_connect(p, 0, &run->a), 0);
    }
    assert_int_equal(omx_wait(p, &large).code, MX_PEER_DEAD);
    if (run->room == 0) {
        out = sends(p, at, 20, 8);
        assert_int_equal(omx_wait(p, &out).code, MX_PEER_DEAD);
    }
    run->step = 1;
    if (run->room > 0) {
        answers_all_until(p, at, 2);
        assert_int_equal(run->received, AFTER);
    }
}

/* Who has been taken for dead and asks whether the peer is there (with its key, or without) learns
 * that all has ended: it does not bring the partner back to life there. A call that connects
 * does. */
static void test_both_ends_end(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        struct run *run = run_new();
        run->n = i;
        run->room = i == 2;
        run->pair->mx.resend_ps = 5 * K_MS;
        run->pair->mx.linger_ps = K_MS;
        omx_process_start(run->pair, &run->b, 1, 0, 1, is_told, run);
        fake_run_until(run->pair->kernel, run->pair->kernel->now_ps + FAKE_MS(1));
        run->pair->mx.resends_max = 3;
        omx_process_start(run->pair, &run->a, 0, 0, 1, ends_it, run);
        run_free(run);
    }
}

/* ---- A wire that is cut now and then --------------------------------------------------------- */

#define CUTS_END_MS 600u /* from here on it is whole */
#define SETTLED_MS  800u /* from here on nothing may be lost */
#define SENT_MS     900u
#define END_MS      1000u

/* In every 10 ms another direction is cut, or both, or none. */
static bool cut_now_and_then(struct rig *rig, unsigned from, const uint8_t *head, uint32_t bytes,
                             void *arg)
{
    const struct run *run = arg;
    const uint64_t ms = k_now_ps(rig->kernel) / K_MS;
    uint64_t z = (ms / 10 + run->bytes * 1000) * UINT64_C(0x9e3779b97f4a7c15);
    (void)head, (void)bytes;
    if (ms >= CUTS_END_MS)
        rig->options.loss_permille = 0;
    z = (z ^ z >> 31) * UINT64_C(0x94d049bb133111eb);
    return ms < CUTS_END_MS && (z >> 40 & (from + 1)) != 0 && (z >> 50) % 2 == 0;
}

static void connects_if(struct omx_process *p, const struct omx_process *to)
{
    const uint64_t until_ps = k_now_ps(p->pair->kernel) + 20 * K_MS;
    mx_connect(p->ep, openmx_board(p->pair->omx[to->host])->nic_id, to->id, OMX_KEY, until_ps,
               &p->peer[0]);
}

/* Each sends one number after the other, and connects again when the peer is dead; what it receives
 * is in order, whatever has been lost. */
static void goes_on(struct omx_process *p)
{
    struct run *run = p->arg;
    struct end *end = p == &run->a ? &run->end[0] : &run->end[1];
    const struct kaddr at = omx_memory(p, 4096);
    struct mx_request *in = await_tiny(p, at), *out = NULL;
    struct mx_status status;
    assert_int_equal(omx_connect(p, 0, p == &run->a ? &run->b : &run->a), 0);
    for (;;) {
        const uint64_t ms = k_now_ps(p->pair->kernel) / K_MS;
        if (ms >= END_MS)
            break;
        if (ms < SETTLED_MS)
            end->settled = end->sent;
        if (out == NULL && ms < SENT_MS)
            out = sends(p, at, 20, ++end->sent);
        if (out != NULL && mx_test(p->ep, &out, &status) && status.code != MX_SUCCESS) {
            assert_int_equal(status.code, MX_PEER_DEAD);
            assert_true(ms < SETTLED_MS);
            end->deaths++;
            connects_if(p, p == &run->a ? &run->b : &run->a);
        }
        if (mx_test(p->ep, &in, &status)) {
            assert_true(status.match > end->last);
            end->last = (unsigned)status.match;
            end->seen[end->last] = true;
            in = await_tiny(p, at);
        }
        k_sleep(p->pair->kernel, FAKE_US(30 + fake_random(p->pair->kernel, 300)));
    }
    assert_true(mx_cancel(p->ep, &in));
}

/* Both take each other for dead at any time and connect again, on a wire that also loses, repeats
 * and overtakes: no message comes twice or after a later one, and once the wire is whole none is
 * lost. */
static void test_cut_now_and_then(void **state)
{
    unsigned deaths = 0;
    (void)state;
    for (uint64_t seed = 90; seed < 100; seed++) {
        struct rig_options wire = omx_wire(seed);
        struct run *run = k_zalloc(sizeof *run);
        wire.loss_permille = wire.repeat_permille = wire.overtake_permille = 30;
        run->bytes = seed;
        run->pair = omx_pair_new(&wire, NULL);
        run->pair->rig->filter = cut_now_and_then;
        run->pair->rig->filter_arg = run;
        run->pair->mx.resends_max = 3;
        run->pair->mx.resend_ps = 5 * K_MS;
        run->pair->mx.linger_ps = 50 * K_MS;
        omx_process_start(run->pair, &run->b, 1, 0, 1, goes_on, run);
        omx_process_start(run->pair, &run->a, 0, 0, 1, goes_on, run);
        omx_pair_run(run->pair, 10);
        for (unsigned i = 0; i < 2; i++) {
            assert_true(run->end[i].sent > run->end[i].settled);
            for (unsigned n = run->end[i].settled; n++ < run->end[i].sent;)
                assert_true(run->end[!i].seen[n]);
            deaths += run->end[i].deaths;
        }
        run_free(run);
    }
    assert_true(deaths > 20);
}

/* ---- Packets of nobody ----------------------------------------------------------------------- */

#define STRAY 3000u

/* Anything with the Ethernet type, from shortest to longest, into the arms of an open endpoint. */
static void sends_nonsense(struct omx_process *p)
{
    struct run *run = p->arg;
    struct kernel *kernel = p->pair->kernel;
    struct net_device *dev = &p->pair->rig->end[0].dev;
    while (run->step == 0)
        sleeps(p, 10);
    for (unsigned i = 0; i < STRAY; i++) {
        uint8_t packet[100];
        struct sk_buff *skb = skb_new(dev->net);
        for (unsigned j = 0; j < sizeof packet; j++)
            packet[j] = (uint8_t)fake_random(kernel, i % 3 == 0 ? 256 : 4);
        memcpy(packet, p->pair->rig->end[1].dev.mac.byte, 6);
        memcpy(packet + 6, dev->mac.byte, 6);
        packet[12] = MX_ETHER_TYPE >> 8;
        packet[13] = MX_ETHER_TYPE & 0xff;
        packet[16] = (uint8_t)(MX_PACKET_ACK - 1 + fake_random(kernel, 13));
        if (fake_random(kernel, 2) == 0) { /* the right session */
            packet[17] = run->b.id;
            memset(packet + 20, 0, 3);
            packet[23] = 1;
        }
        skb->dev = dev;
        skb->gso_segments = 1;
        skb->head_bytes = (uint16_t)(18 + fake_random(kernel, sizeof packet - 18));
        k_store(kernel, skb->head, packet, skb->head_bytes);
        net_dev_queue_xmit(dev->net, skb);
        sleeps(p, 2);
    }
    run->step = 2;
}

static void stands_it(struct omx_process *p)
{
    struct run *run = p->arg;
    run->step = 1;
    while (run->step == 1)
        idles(p, 100);
}

/* Then a message goes through as if nothing had been. */
static void test_nonsense(void **state)
{
    struct run *run = run_new();
    struct openmx_stats stats;
    (void)state;
    run->pair->mx.linger_ps = K_MS;
    omx_process_start(run->pair, &run->b, 1, 0, 1, stands_it, run);
    omx_process_start(run->pair, &run->a, 0, 0, 9, sends_nonsense, run);
    omx_pair_run(run->pair, 10);
    openmx_stats_get(run->pair->omx[1], &stats);
    assert_true(stats.malformed > 50);
    assert_true(stats.no_endpoint > 50);
    assert_true(stats.bad_session > 50);
    run->bytes = 1000;
    run->room = 500;
    omx_process_start(run->pair, &run->b, 1, 0, 1, receive_some, run);
    omx_process_start(run->pair, &run->a, 0, 0, 1, send_one, run);
    run_free(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_too_short),
        cmocka_unit_test(test_matching),
        cmocka_unit_test(test_connections),
        cmocka_unit_test(test_peers_that_go),
        cmocka_unit_test(test_pull_given_up),
        cmocka_unit_test(test_patience),
        cmocka_unit_test(test_one_that_comes_again),
        cmocka_unit_test(test_who_waits_notices),
        cmocka_unit_test(test_connected_again),
        cmocka_unit_test(test_both_ends_end),
        cmocka_unit_test(test_cut_now_and_then),
        cmocka_unit_test(test_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
