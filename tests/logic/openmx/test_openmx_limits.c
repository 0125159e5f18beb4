/*
 * What Open-MX has only so much of: slots of queues and rings, regions, numbers of messages; copies
 * by an engine, that may fail; the CPU that a process is moved to; and the adapter's rules that
 * bring its packets there.
 */
#include <limits.h>

#include "tests/support/dma_fake.h"
#include "tests/support/omx_pair.h"

#define MANY 1500u

struct run {
    struct omx_pair *pair;
    struct omx_process a, b, c;
    uint64_t bytes;
    unsigned n, finished;
    unsigned silent;  /* receives that an endpoint has been closed with */
    unsigned in_page; /* where the receiver's buffer begins in its page */
};

static struct run *run_new(const struct openmx_options *options)
{
    const struct rig_options wire = omx_wire(1);
    struct run *run = k_zalloc(sizeof *run);
    run->pair = omx_pair_new(&wire, options);
    return run;
}

static struct openmx_stats stats_of(const struct run *run, unsigned host)
{
    struct openmx_stats stats;
    openmx_stats_get(run->pair->omx[host], &stats);
    return stats;
}

static void run_free(struct run *run)
{
    omx_pair_free(run->pair);
    free(run);
}

/* ---- Many at a time -------------------------------------------------------------------------- */

static void sends_many(struct omx_process *p)
{
    struct run *run = p->arg;
    struct mx_request **r = k_zalloc(run->n * sizeof(struct mx_request *));
    const struct kaddr at = omx_memory(p, run->bytes + run->n);
    assert_int_equal(omx_connect(p, 0, &run->b), 0);
    net_rig_fill(p->pair->kernel, at, 1, 0, run->bytes + run->n);
    for (unsigned i = 0; i < run->n; i++) {
        const struct mx_segment segment = { kaddr_add(at, i), run->bytes };
        assert_int_equal(mx_isend(p->ep, &segment, 1, &p->peer[0],
                                  (uint64_t)(p == &run->a) << 32 | i, NULL, &r[i]),
                         0);
    }

    for (unsigned i = 0; i < run->n; i++)
        assert_int_equal(omx_wait(p, &r[i]).code, MX_SUCCESS);
    free(r);
    run->finished++;
}

static void receives_many(struct omx_process *p)
{
    struct run *run = p->arg;
    const struct kaddr at = kaddr_add(omx_memory(p, run->bytes + run->in_page), run->in_page);
    const unsigned senders = run->c.pair != NULL ? 2 : 1;
    const struct mx_segment segment = { at, run->bytes };
    unsigned next[2] = { 0, 0 };
    struct mx_status status;
    mx_iprobe(p->ep, 0, 0, &status);
    /* Connected, and then silent until the queue is full. */
    for (unsigned i = 0; i < 40; i++) {
        mx_iprobe(p->ep, 0, 0, &status);
        k_sleep(p->pair->kernel, FAKE_US(10));
    }
    k_sleep(p->pair->kernel, FAKE_MS(5));
    for (unsigned i = 0; i < senders * run->n; i++) {
        struct mx_request *r;
        assert_int_equal(mx_irecv(p->ep, &segment, 1, 0, 0, NULL, &r), 0);
        status = omx_wait(p, &r);
        const unsigned from = (unsigned)(status.match >> 32), number = (uint32_t)status.match;
        assert_int_equal(status.code, MX_SUCCESS);
        assert_int_equal(number, next[from]++);
        net_rig_check(p->pair->kernel, at, 1, number, run->bytes);
    }
}

/* Two senders fill the event queue of one that does not look: what does not fit is sent again. */
static void test_events(void **state)
{
    struct run *run = run_new(NULL);
    (void)state;
    run->bytes = 8;
    run->n = MANY;
    run->pair->mx.resend_ps = K_MS;
    omx_process_start(run->pair, &run->b, 1, 0, 1, receives_many, run);
    omx_process_start(run->pair, &run->a, 0, 0, 1, sends_many, run);
    omx_process_start(run->pair, &run->c, 0, 1, 2, sends_many, run);
    omx_pair_run(run->pair, 100);
    assert_int_equal(run->finished, 2);
    assert_true(stats_of(run, 1).full > 100);
    run_free(run);
}

/* More fragments than the send ring has slots; more large messages than there are regions. */
static void test_slots_and_regions(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        unsigned n;
    } cases[] = { { 32768, 200 }, { 40000, 300 } };
    for (unsigned i = 0; i < 2; i++) {
        struct run *run = run_new(NULL);
        run->bytes = cases[i].bytes;
        run->n = cases[i].n;
        omx_process_start(run->pair, &run->b, 1, 0, 1, receives_many, run);
        omx_process_start(run->pair, &run->a, 0, 0, 1, sends_many, run);
        omx_pair_run(run->pair, 100);
        assert_int_equal(run->finished, 1);
        run_free(run);
    }
}

/* Sends to the other more large messages than there are regions, and receives as many. */
static void exchanges_many(struct omx_process *p)
{
    struct run *run = p->arg;
    struct mx_request **sent = k_zalloc(run->n * sizeof(struct mx_request *));
    struct mx_request **received = k_zalloc(run->n * sizeof(struct mx_request *));
    const struct kaddr from = omx_memory(p, run->bytes), to = omx_memory(p, run->bytes);
    const struct mx_segment source = { from, run->bytes }, target = { to, run->bytes };
    assert_int_equal(omx_connect(p, 0, p == &run->a ? &run->b : &run->a), 0);
    net_rig_fill(p->pair->kernel, from, 1, 0, run->bytes);
    for (unsigned i = 0; i < run->n; i++)
        assert_int_equal(mx_isend(p->ep, &source, 1, &p->peer[0], i, NULL, &sent[i]), 0);
    for (unsigned i = 0; i < run->n; i++)
        assert_int_equal(mx_irecv(p->ep, &target, 1, i, UINT64_MAX, NULL, &received[i]), 0);
    for (unsigned i = 0; i < run->n; i++) {
        assert_int_equal(omx_wait(p, &received[i]).code, MX_SUCCESS);
        assert_int_equal(omx_wait(p, &sent[i]).code, MX_SUCCESS);
    }
    net_rig_check(p->pair->kernel, to, 1, 0, run->bytes);
    free(sent);
    free(received);
    run->finished++;
}

/* Sends of both sides do not take the regions that their receives need. */
static void test_regions_both_ways(void **state)
{
    (void)state;
    for (unsigned kept = 0; kept < 2; kept++) {
        struct run *run = run_new(NULL);
        run->bytes = 40000;
        run->n = 300;
        run->pair->mx.cached_regions = kept;
        omx_process_start(run->pair, &run->a, 0, 0, 1, exchanges_many, run);
        omx_process_start(run->pair, &run->b, 1, 0, 1, exchanges_many, run);
        omx_pair_run(run->pair, 100);
        assert_int_equal(run->finished, 2);
        run_free(run);
    }
}

/* ---- Copies by an engine --------------------------------------------------------------------- */

struct engines {
    struct dma_core *core[2];
    struct dma_fake fake[2];
};

static struct engines *attach_engines(struct run *run, const struct dma_fake_options *options)
{
    struct engines *e = k_zalloc(sizeof *e);
    for (unsigned host = 0; host < 2; host++) {
        struct omx_pair *pair = run->pair;
        fake_on(pair->kernel, host * 2);
        e->core[host] = dma_core_new(pair->kernel);
        dma_fake_init(&e->fake[host], pair->kernel, e->core[host], options);
        openmx_free(pair->omx[host]);
        pair->options[host].ioat = true;
        pair->options[host].ioat_local_bytes = 65536;
        pair->omx[host] = openmx_new(pair->rig->end[host].net, &pair->rig->end[host].dev,
                                     e->core[host], &pair->options[host]);
        assert_non_null(pair->omx[host]);
    }
    return e;
}

static void detach_engines(struct run *run, struct engines *e)
{
    for (unsigned host = 0; host < 2; host++) {
        fake_on(run->pair->kernel, host * 2);
        openmx_free(run->pair->omx[host]);
        run->pair->omx[host] = NULL;
        dma_fake_remove(&e->fake[host], false);
        dma_core_free(e->core[host]);
    }
    assert_int_equal(run->pair->kernel->maps_live, 0);
    free(e);
}

static void engine_case(const struct dma_fake_options *options, uint64_t bytes, unsigned in_page,
                        bool local, bool expects)
{
    struct run *run = run_new(NULL);
    struct engines *e = attach_engines(run, options);
    run->bytes = bytes;
    run->in_page = in_page;
    run->n = 3;
    omx_process_start(run->pair, &run->b, !local, 1, 1, receives_many, run);
    omx_process_start(run->pair, &run->a, 0, 0, 3, sends_many, run);
    omx_pair_run(run->pair, 100);
    const struct openmx_stats stats = stats_of(run, !local);
    assert_int_equal(stats.engine_bytes, expects ? 3 * bytes : 0);
    /* A reply whose target is in two pages takes a piece for each. */
    if (expects && !local)
        assert_true(stats.engine_copies >= (in_page > 0 ? 6 : 3) * bytes / 4096);
    detach_engines(run, e);
    run_free(run);
}

static void test_engine(void **state)
{
    const struct dma_fake_options good = { .n_channels = 4, .ring = 64, .copy_ps = K_US };
    const struct dma_fake_options slow = { .n_channels = 1, .ring = 256, .copy_ps = 10 * K_US };
    (void)state;
    engine_case(&good, 65535, 0, false, false); /* too small */
    engine_case(&good, 65536, 0, false, true);
    engine_case(&good, 262144, 0, false, true);
    engine_case(&good, 262144, 16, false, true);
    engine_case(&good, 262144, 0, true, true);
    engine_case(&slow, 131072, 0, false, true); /* a worker waits for the last copies */
}

static void sends_one(struct omx_process *p)
{
    struct run *run = p->arg;
    const struct mx_segment segment = { omx_memory(p, run->bytes), run->bytes };
    struct mx_request *r;
    struct mx_status status;
    assert_int_equal(omx_connect(p, 0, &run->b), 0);
    assert_int_equal(mx_isend(p->ep, &segment, 1, &p->peer[0], 1, NULL, &r), 0);
    while (run->finished == 0) {
        mx_iprobe(p->ep, 2, UINT64_MAX, &status);
        k_sleep(p->pair->kernel, FAKE_US(50));
    }
}

/* Closes some time after a worker has begun to wait, if the message has not ended by then. */
static void closes_meanwhile(struct omx_process *p)
{
    struct run *run = p->arg;
    const struct mx_segment segment = { omx_memory(p, run->bytes), run->bytes };
    struct mx_request *r;
    struct mx_status status;
    assert_int_equal(mx_irecv(p->ep, &segment, 1, 0, 0, NULL, &r), 0);
    while (!mx_test(p->ep, &r, &status) && stats_of(run, 1).engine_waits == 0)
        k_sleep(p->pair->kernel, K_US / 10);
    k_sleep(p->pair->kernel, run->n * K_US / 5);
    run->silent += r != NULL;
    mx_close(p->ep);
    p->stays = true;
    run->finished++;
}

/* The thread that closes looks at what has ended while the worker waits for the same copy: that
 * lets it go on. */
static void test_engine_is_left(void **state)
{
    const struct dma_fake_options slow = { .n_channels = 1, .ring = 256, .copy_ps = K_US };
    unsigned silent = 0;
    (void)state;
    for (unsigned n = 0; n < 20; n++) {
        struct rig_options wire = omx_wire(10);
        struct run *run = k_zalloc(sizeof *run);
        wire.stall_percent = 30;
        run->pair = omx_pair_new(&wire, NULL);
        run->pair->mx.linger_ps = 0;
        struct engines *e = attach_engines(run, &slow);
        run->bytes = 131072;
        run->n = 30 + n;
        omx_process_start(run->pair, &run->b, 1, 1, 1, closes_meanwhile, run);
        omx_process_start(run->pair, &run->a, 0, 0, 3, sends_one, run);
        omx_pair_run(run->pair, 100);
        fake_run_until(run->pair->kernel, run->pair->kernel->now_ps + FAKE_MS(20));
        silent += run->silent;
        detach_engines(run, e);
        run_free(run);
    }
    assert_true(silent > 5);
}

/* Copies that fail are done by a CPU; a full ring leaves the rest to it. */
static void test_engine_fails(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        const struct dma_fake_options bad = { .n_channels = 2,
                                              .ring = i == 2 ? 4 : 64,
                                              .copy_ps = i == 2 ? 30 * K_US : K_US,
                                              .error_permille = i < 2 ? 100 : 0,
                                              .any_order = i == 1 };
        struct run *run = run_new(NULL);
        struct engines *e = attach_engines(run, &bad);
        run->bytes = 200000;
        run->n = 4;
        omx_process_start(run->pair, &run->b, 1, 1, 1, receives_many, run);
        omx_process_start(run->pair, &run->a, 0, 0, 3, sends_many, run);
        omx_pair_run(run->pair, 100);
        const struct openmx_stats stats = stats_of(run, 1);
        assert_true(i == 2 ? stats.engine_bytes < 4 * run->bytes : stats.engine_failed > 0);
        detach_engines(run, e);
        run_free(run);
    }
}

/* ---- Binding --------------------------------------------------------------------------------- */

static void says_cpu(struct omx_process *p)
{
    struct run *run = p->arg;
    run->n = k_cpu(p->pair->kernel);
}

/* The process goes where its endpoint's receive queue interrupts. */
static void test_binding(void **state)
{
    static const struct {
        bool bind;
        uint8_t id;
        unsigned cpu;
    } cases[] = { { true, 4, 0 }, { true, 7, 1 }, { false, 7, 0 } };
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        struct run *run = run_new(NULL);
        struct net_device *dev = &run->pair->rig->end[0].dev;
        dev->rx_queue_of_cpu[0] = 0;
        dev->rx_queue_of_cpu[1] = 1;
        dev->features |= NET_FEATURE_MX_QUEUES;
        run->pair->mx.bind = cases[i].bind;
        omx_process_start(run->pair, &run->a, 0, 0, cases[i].id, says_cpu, run);
        omx_pair_run(run->pair, 1);
        assert_int_equal(run->n, cases[i].cpu);
        run_free(run);
    }
}

/* ---- Rules ----------------------------------------------------------------------------------- */

/* The adapter's table; one at a time, as the ops have no argument. */
static struct {
    bool there[2 * MX_ENDPOINTS_MAX];
    struct net_rx_rule rule[2 * MX_ENDPOINTS_MAX];
    uint16_t rxq[2 * MX_ENDPOINTS_MAX];
    unsigned refuse_from; /* this rule and those after it: there is no room */
} rules;

static int note_rule(struct net_device *dev, uint16_t number, const struct net_rx_rule *rule,
                     uint16_t rxq)
{
    k_sleep(dev->kernel, FAKE_US(10));
    assert_true(number < 2 * MX_ENDPOINTS_MAX);
    if (rule == NULL) {
        assert_true(rules.there[number]);
        rules.there[number] = false;
        return 0;
    }
    if (number >= rules.refuse_from)
        return -ENOSPC;
    rules.there[number] = true;
    rules.rule[number] = *rule;
    rules.rxq[number] = rxq;
    return 0;
}

static unsigned n_rules(void)
{
    unsigned n = 0;
    for (unsigned i = 0; i < 2 * MX_ENDPOINTS_MAX; i++)
        n += rules.there[i];
    return n;
}

/* As an adapter does: the queue of the first rule that the packet meets, -1: none. */
static int queue_of(const uint8_t *packet, unsigned bytes)
{
    for (unsigned i = 0; i < 2 * MX_ENDPOINTS_MAX; i++) {
        const struct net_rx_rule *r = &rules.rule[i];
        bool met = rules.there[i] && net_rig_get(packet + 12, 2) == r->ether_type;
        for (unsigned w = 0; w < NET_RX_RULE_WORDS && met; w++)
            met = r->word[w].mask == 0 ||
                  (r->word[w].offset + 4u <= bytes && (net_rig_get(packet + r->word[w].offset, 4) &
                                                       r->word[w].mask) == r->word[w].value);
        if (met)
            return rules.rxq[i];
    }
    return -1;
}

static unsigned n_looked_at, n_replies;

/* Every packet to endpoint 3 of the first host meets one of its rules, as long as it is open. */
static bool expect_queue(struct rig *rig, unsigned from, const uint8_t *head, uint32_t bytes,
                         void *arg)
{
    (void)rig, (void)bytes, (void)arg;
    if (from == 1 && n_rules() == 2) {
        assert_int_equal(mx_packet_endpoint(head), 3);
        assert_int_equal(queue_of(head, MX_HEADER_BYTES_MAX), 1);
        n_replies += head[MX_HEAD_BYTES] == MX_PACKET_PULL_REPLY;
        n_looked_at++;
    }
    return false;
}

static struct run *run_with_rules(enum openmx_steer steer)
{
    static struct net_device_ops ops;
    struct openmx_options options = openmx_options_default;
    struct run *run = run_new(NULL);
    struct net_device *dev = &run->pair->rig->end[0].dev;
    memset(&rules, 0, sizeof rules);
    rules.refuse_from = UINT_MAX;
    ops = *dev->ops;
    ops.rx_rule = note_rule;
    dev->ops = &ops;
    for (int cpu = 0; cpu < 4; cpu++)
        dev->rx_queue_of_cpu[cpu] = (int16_t)(3 - cpu);
    options.steer = steer;
    options.steer_cpu = 2;
    openmx_free(run->pair->omx[0]);
    run->pair->omx[0] = openmx_new(run->pair->rig->end[0].net, dev, NULL, &options);
    assert_non_null(run->pair->omx[0]);
    return run;
}

static void receives_large(struct omx_process *p)
{
    assert_int_equal(n_rules(), 2);
    receives_many(p);
}

/* Eager messages and pulled ones, both ways; the rules go with the endpoint. */
static void test_rules_cover_all_packets(void **state)
{
    (void)state;
    for (unsigned bytes = 16; bytes <= 200000; bytes *= 100) {
        struct run *run = run_with_rules(OPENMX_STEER_CPU);
        run->bytes = bytes;
        run->n = 5;
        n_looked_at = n_replies = 0;
        run->pair->rig->filter = expect_queue;
        omx_process_start(run->pair, &run->b, 0, 1, 3, receives_large, run);
        omx_process_start(run->pair, &run->a, 1, 0, 1, sends_many, run);
        omx_pair_run(run->pair, 100);
        assert_true(n_looked_at > 5);
        assert_true((n_replies > 0) == (bytes > MX_MEDIUM_BYTES));
        assert_int_equal(n_rules(), 0);
        run_free(run);
    }
}

static void says_queue(struct omx_process *p)
{
    struct run *run = p->arg;
    assert_int_equal(n_rules(), 2);
    for (unsigned i = 0; i < 2 * MX_ENDPOINTS_MAX; i++)
        if (rules.there[i])
            run->n = rules.rxq[i];
}

static void test_steering_to_the_process(void **state)
{
    (void)state;
    for (unsigned cpu = 0; cpu < 2; cpu++) {
        struct run *run = run_with_rules(OPENMX_STEER_PROCESS);
        omx_process_start(run->pair, &run->a, 0, cpu, 200, says_queue, run);
        omx_pair_run(run->pair, 1);
        assert_int_equal(run->n, 3 - cpu);
        run_free(run);
    }
}

static void opens_in_vain(void *arg)
{
    struct run *run = arg;
    struct mx_endpoint *ep = NULL;
    assert_int_equal(mx_open(openmx_board(run->pair->omx[0]), 5, OMX_KEY, &mx_options_default, &ep),
                     -ENOSPC);
    assert_int_equal(n_rules(), 0);
    rules.refuse_from = UINT_MAX;
    assert_int_equal(mx_open(openmx_board(run->pair->omx[0]), 5, OMX_KEY, &mx_options_default, &ep),
                     0);
    mx_close(ep);
    run->n = 1;
}

static void test_rules_refused(void **state)
{
    struct openmx_options options = openmx_options_default;
    (void)state;
    for (unsigned from = 0; from < 2; from++) {
        struct run *run = run_with_rules(OPENMX_STEER_PROCESS);
        rules.refuse_from = from * MX_ENDPOINTS_MAX; /* both rules, or the second */
        run->n = 0;
        k_thread_new(run->pair->kernel, "opens", 0, opens_in_vain, run);
        fake_run_until(run->pair->kernel, k_now_ps(run->pair->kernel) + FAKE_MS(10));
        assert_int_equal(run->n, 1);
        run_free(run);
    }
    struct run *run = run_new(NULL); /* an adapter that knows no rules */
    options.steer = OPENMX_STEER_PROCESS;
    openmx_free(run->pair->omx[0]);
    assert_null(
        openmx_new(run->pair->rig->end[0].net, &run->pair->rig->end[0].dev, NULL, &options));
    run->pair->omx[0] = openmx_new(run->pair->rig->end[0].net, &run->pair->rig->end[0].dev, NULL,
                                   &openmx_options_default);
    run_free(run);
}

/* ---- Regions that are kept ------------------------------------------------------------------- */

static void sends_the_same(struct omx_process *p)
{
    struct run *run = p->arg;
    const struct kaddr at = omx_memory(p, 100000);
    struct mx_stats stats;
    assert_int_equal(omx_connect(p, 0, &run->b), 0);
    for (unsigned i = 0; i < run->n; i++) {
        const struct mx_segment segment = { at, run->bytes };
        struct mx_request *r;
        net_rig_fill(p->pair->kernel, at, 1, i, run->bytes);
        assert_int_equal(mx_isend(p->ep, &segment, 1, &p->peer[0], i, NULL, &r), 0);
        assert_int_equal(omx_wait(p, &r).code, MX_SUCCESS);
    }
    mx_stats_get(p->ep, &stats);
    const bool kept = p->pair->mx.cached_regions > 0;
    assert_int_equal(stats.regions, kept ? 1 : run->n);
    assert_int_equal(stats.region_hits, kept ? run->n - 1 : 0);
    /* The last region: its message has ended, its grace period has not. */
    assert_true(p->pair->kernel->pins_live > 0);
    k_sleep(p->pair->kernel, p->pair->options[0].grace_ps + K_MS);
    assert_true(kept == (p->pair->kernel->pins_live > 0));
}

/* A region that is given back has no number any more, but stays pinned for the packets that carry
 * it. */
static void registers_and_frees(struct omx_process *p)
{
    struct run *run = p->arg;
    struct openmx *omx = p->pair->omx[0];
    struct mx_board *board = openmx_board(omx);
    const struct mx_segment segment = { omx_memory(p, 50000), 50000 };
    const uint64_t grace_ps = p->pair->options[0].grace_ps;
    struct mx_port *port;
    uint8_t number, sequence;
    assert_int_equal(board->ops->open(board, 9, &port), 0);
    for (unsigned i = 0; i < run->n; i++) {
        assert_int_equal(board->ops->region_new(port, &segment, 1, &number, &sequence), 0);
        assert_int_equal(number, 0);
        assert_int_equal(sequence, i + 1);
        board->ops->region_free(port, number);
        assert_int_equal(openmx_regions_live(omx), i + 1);
        k_sleep(p->pair->kernel, grace_ps / (2 * run->n));
    }
    k_sleep(p->pair->kernel, grace_ps / 2 - K_MS);
    assert_int_equal(openmx_regions_live(omx), run->n);
    for (unsigned i = run->n; i-- > 0;) {
        k_sleep(p->pair->kernel, grace_ps / (2 * run->n));
        assert_int_equal(openmx_regions_live(omx), i);
    }
    board->ops->close(port);
}

static void test_grace_period(void **state)
{
    (void)state;
    struct run *run = run_new(NULL);
    run->n = 3;
    omx_process_start(run->pair, &run->a, 0, 0, 1, registers_and_frees, run);
    omx_pair_run(run->pair, 100);
    run_free(run);
}

static void test_kept_regions(void **state)
{
    (void)state;
    for (unsigned kept = 0; kept < 2; kept++) {
        struct run *run = run_new(NULL);
        run->bytes = 50000;
        run->n = 5;
        run->pair->mx.cached_regions = kept;
        omx_process_start(run->pair, &run->b, 1, 0, 1, receives_many, run);
        omx_process_start(run->pair, &run->a, 0, 0, 1, sends_the_same, run);
        omx_pair_run(run->pair, 100);
        run_free(run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_slots_and_regions),
        cmocka_unit_test(test_regions_both_ways),
        cmocka_unit_test(test_engine),
        cmocka_unit_test(test_engine_is_left),
        cmocka_unit_test(test_engine_fails),
        cmocka_unit_test(test_binding),
        cmocka_unit_test(test_kept_regions),
        cmocka_unit_test(test_grace_period),
        cmocka_unit_test(test_rules_cover_all_packets),
        cmocka_unit_test(test_steering_to_the_process),
        cmocka_unit_test(test_rules_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
