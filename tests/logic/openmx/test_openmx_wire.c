/*
 * Open-MX on a wire that loses, repeats and overtakes packets: two processes a host, each of which
 * sends messages of all sizes to every other. Every message arrives once, those of a pair in order,
 * with its bytes; no pin, page or packet is left.
 *
 *   test_openmx_wire                       seeds that take seconds
 *   test_openmx_wire N [SEED [PERMILLE [SMALL]]]   N messages; so many per mille are lost, as many repeated and
 *                                          overtaken; so many per cent of messages have up to 128
 *                                          bytes
 */
#include "tests/support/omx_pair.h"

#define PROCESSES  4u
#define OPEN_MAX   3u /* requests of a pair and direction at a time */
#define LARGE_MAX  200000u
#define MATCH_FROM UINT64_C(0xff00000000000000)

struct traffic {
    struct omx_pair *pair;
    struct omx_process process[PROCESSES];
    uint64_t seed, each;    /* messages from each process to each other */
    unsigned small_percent; /* of messages are tiny or small */
    uint64_t received;
    unsigned finished;
};

struct flow {
    struct mx_request *request[OPEN_MAX];
    uint64_t number[OPEN_MAX];
    struct kaddr at[OPEN_MAX];
    uint64_t begun, ended;
};

static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Of message `number` from one to the other; an even one is the first third of it. */
static uint64_t bytes_of(const struct traffic *t, unsigned from, unsigned to, uint64_t number)
{
    const uint64_t z = mix(t->seed * 1000003 + from * 101 + to * 7 + number * 65537);
    const uint64_t kind = z % 100;
    if (kind < t->small_percent)
        return z / 100 % 129;
    if (kind < t->small_percent + (100 - t->small_percent) * 2 / 3)
        return 129 + z / 100 % 32640;
    return 32769 + z / 100 % (LARGE_MAX - 32769);
}

static unsigned stream_of(unsigned from, unsigned to)
{
    return from * 16 + to;
}

/* ---- A process ------------------------------------------------------------------------------- */

static unsigned free_slot(const struct flow *f)
{
    unsigned i = 0;
    while (i < OPEN_MAX && f->request[i] != NULL)
        i++;
    return i;
}

static void begin_send(struct traffic *t, unsigned me, unsigned to, struct flow *f)
{
    struct omx_process *p = &t->process[me];
    const unsigned i = free_slot(f);
    if (i == OPEN_MAX || f->begun == t->each)
        return;
    const uint64_t n = f->begun++, bytes = bytes_of(t, me, to, n), half = bytes / 3;
    const struct mx_segment segment[] = { { f->at[i], half },
                                          { kaddr_add(f->at[i], half + 100), bytes - half } };
    f->number[i] = n;
    net_rig_fill(p->pair->kernel, segment[0].at, stream_of(me, to), n * 1000, half);
    net_rig_fill(p->pair->kernel, segment[1].at, stream_of(me, to), n * 1000 + half, bytes - half);
    assert_int_equal(mx_isend(p->ep, segment, n % 2 ? 2 : 1, &p->peer[to], (uint64_t)me << 56 | n,
                              &f->number[i], &f->request[i]),
                     0);
}

static void begin_receive(struct traffic *t, unsigned me, unsigned from, struct flow *f)
{
    struct omx_process *p = &t->process[me];
    const unsigned i = free_slot(f);
    if (i == OPEN_MAX || f->begun == t->each)
        return;
    const struct mx_segment segment = { f->at[i], LARGE_MAX };
    f->number[i] = f->begun++;
    assert_int_equal(mx_irecv(p->ep, &segment, 1, (uint64_t)from << 56, MATCH_FROM, &f->number[i],
                              &f->request[i]),
                     0);
}

static void check(struct traffic *t, unsigned me, unsigned from, const struct flow *f, unsigned i,
                  const struct mx_status *status)
{
    const uint64_t n = f->number[i];
    uint64_t bytes = bytes_of(t, from, me, n);
    if (n % 2 == 0)
        bytes /= 3;
    if (status->code != MX_SUCCESS || status->match != ((uint64_t)from << 56 | n) ||
        status->bytes != bytes)
        fail_msg("seed %llu: receive %llu of %u from %u: code %d, match %llx, %llu bytes",
                 (unsigned long long)t->seed, (unsigned long long)n, me, from, status->code,
                 (unsigned long long)status->match, (unsigned long long)status->bytes);
    net_rig_check(t->pair->kernel, f->at[i], stream_of(from, me), n * 1000, bytes);
    t->received++;
}

static void ended(struct traffic *t, unsigned me, unsigned other, struct flow *f, unsigned i,
                  bool receives, const struct mx_status *status)
{
    assert_ptr_equal(status->context, &f->number[i]);
    f->ended++;
    if (receives)
        check(t, me, other, f, i, status);
    else
        assert_int_equal(status->code, MX_SUCCESS);
}

/* Looks at what is under way; false: nothing has ended. */
static bool look(struct traffic *t, unsigned me, unsigned other, struct flow *f, bool receives)
{
    bool any = false;
    for (unsigned i = 0; i < OPEN_MAX; i++) {
        struct mx_status status;
        if (f->request[i] == NULL || !mx_test(t->process[me].ep, &f->request[i], &status))
            continue;
        ended(t, me, other, f, i, receives, &status);
        any = true;
    }
    return any;
}

/* Waits a while for one of them. */
static void wait_for_one(struct traffic *t, unsigned me, struct flow *flow, bool receives)
{
    struct kernel *kernel = t->pair->kernel;
    const unsigned other = (unsigned)fake_random(kernel, PROCESSES);
    struct flow *f = &flow[other];
    for (unsigned i = 0; i < OPEN_MAX; i++) {
        struct mx_status status;
        if (f->request[i] == NULL)
            continue;
        if (mx_wait(t->process[me].ep, &f->request[i],
                    k_now_ps(kernel) + FAKE_US(fake_random(kernel, 5000)), &status))
            ended(t, me, other, f, i, receives, &status);
        return;
    }
}

static void process_body(struct omx_process *p)
{
    struct traffic *t = p->arg;
    struct kernel *kernel = p->pair->kernel;
    const unsigned me = (unsigned)(p - t->process);
    struct flow *out = k_zalloc(PROCESSES * sizeof *out), *in = k_zalloc(PROCESSES * sizeof *in);
    uint64_t left = 2 * t->each * (PROCESSES - 1);
    for (unsigned other = 0; other < PROCESSES; other++) {
        for (unsigned i = 0; i < OPEN_MAX && other != me; i++) {
            out[other].at[i] = omx_memory(p, LARGE_MAX + 4096);
            in[other].at[i] = kaddr_add(omx_memory(p, LARGE_MAX + 4096), fake_random(kernel, 64));
        }
        if (other != me)
            assert_int_equal(omx_connect(p, other, &t->process[other]), 0);
    }
    while (left > 0) {
        bool any = false;
        left = 0;
        for (unsigned other = 0; other < PROCESSES; other++) {
            if (other == me)
                continue;
            if (fake_random(kernel, 4) > 0)
                begin_send(t, me, other, &out[other]);
            if (fake_random(kernel, 4) > 0)
                begin_receive(t, me, other, &in[other]);
            any = look(t, me, other, &out[other], false) || any;
            any = look(t, me, other, &in[other], true) || any;
            left += 2 * t->each - out[other].ended - in[other].ended;
        }
        if (!any)
            wait_for_one(t, me, left % 2 ? out : in, left % 2 == 0);
        if (fake_random(kernel, 100) == 0)
            k_sleep(kernel, FAKE_US(fake_random(kernel, 300)));
    }
    t->finished++;
    free(out);
    free(in);
}

/* ---- Runs ------------------------------------------------------------------------------------ */

struct outcome {
    uint64_t received, lost, frames;
    struct openmx_stats stats[2];
};

static struct outcome run(const struct rig_options *wire, const struct openmx_options *options,
                          uint64_t each, unsigned small_percent)
{
    struct outcome outcome = { .received = 0 };
    struct traffic *t = k_zalloc(sizeof *t);
    t->seed = wire->seed;
    t->each = each;
    t->small_percent = small_percent;
    t->pair = omx_pair_new(wire, options);
    t->pair->mx.linger_ps = 60 * K_S;
    for (unsigned i = 0; i < PROCESSES; i++)
        omx_process_start(t->pair, &t->process[i], i / 2, i % 2, (uint8_t)(i * 3), process_body, t);
    omx_pair_run(t->pair, 1000000);
    for (unsigned host = 0; host < 2; host++) {
        openmx_stats_get(t->pair->omx[host], &outcome.stats[host]);
        outcome.frames += t->pair->rig->end[host].frames;
    }
    outcome.received = t->received;
    outcome.lost = t->pair->rig->lost;
    assert_int_equal(t->received, each * PROCESSES * (PROCESSES - 1));
    omx_pair_free(t->pair);
    free(t);
    return outcome;
}

static struct rig_options bad_wire(uint64_t seed, unsigned permille)
{
    struct rig_options wire = omx_wire(seed);
    wire.loss_permille = wire.repeat_permille = wire.overtake_permille = permille;
    return wire;
}

/* Up to 5 % of each, both queues, interrupts that move, stalls. */
static void test_bad_wire(void **state)
{
    uint64_t lost = 0, again = 0, twice = 0;
    (void)state;
    const unsigned n = test_rounds(16, 5);
    for (uint64_t seed = 1; seed <= n; seed++) {
        struct rig_options wire = bad_wire(seed, 1 + (unsigned)(seed * 7 % 50));
        wire.stall_percent = seed % 3 == 0 ? 5 : 0;
        wire.spread = seed % 2;
        wire.wander = seed % 4 == 1;
        wire.ring = seed % 5 == 0 ? 4 : 0;
        const struct outcome o = run(&wire, NULL, 9, 50);
        lost += o.lost;
        again += o.stats[0].blocks_again + o.stats[1].blocks_again;
        twice += o.stats[0].duplicate_replies + o.stats[1].duplicate_replies;
    }
    assert_true(lost > 3 * n);
    assert_true(again > n / 2);
    assert_true(twice > n / 2);
}

/* Nothing is sent again on a wire that keeps everything in order. */
static void test_good_wire(void **state)
{
    const struct rig_options wire = omx_wire(1);
    (void)state;
    const struct outcome o = run(&wire, NULL, 20, 50);
    for (unsigned host = 0; host < 2; host++) {
        assert_int_equal(o.stats[host].blocks_again, 0);
        assert_int_equal(o.stats[host].duplicate_replies, 0);
        assert_int_equal(o.stats[host].full, 0);
        assert_int_equal(o.stats[host].malformed, 0);
        assert_int_equal(o.stats[host].bad_session, 0);
    }
}

/* Replies of 8 KiB, 32 of them to a request. */
static void test_jumbo_replies(void **state)
{
    struct openmx_options options = openmx_options_default;
    (void)state;
    options.reply_bytes = MX_REPLY_BYTES_JUMBO;
    options.replies_per_block = MX_REPLIES_PER_BLOCK_JUMBO;
    for (uint64_t seed = 1; seed <= test_rounds(3, 3); seed++) {
        const struct rig_options wire = bad_wire(seed, 20);
        run(&wire, &options, 8, 20);
    }
}

/* Pages and pins that cannot be had now and then. */
static void test_no_memory(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= test_rounds(4, 4); seed++) {
        struct rig_options wire = bad_wire(seed, 10);
        wire.fail_page_every = 40000;
        run(&wire, NULL, 8, 40);
    }
}

static struct {
    uint64_t messages, seed;
    unsigned permille, small_percent;
} wanted = { 0, 1, 50, 98 };

static void test_wanted(void **state)
{
    (void)state;
    const struct rig_options wire = bad_wire(wanted.seed, wanted.permille);
    const uint64_t each = wanted.messages / (PROCESSES * (PROCESSES - 1)) + 1;
    const struct outcome o = run(&wire, NULL, each, wanted.small_percent);
    printf("%llu messages, %llu frames, %llu of them lost, all there once and in order\n",
           (unsigned long long)o.received, (unsigned long long)o.frames,
           (unsigned long long)o.lost);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_wire),
        cmocka_unit_test(test_bad_wire),
        cmocka_unit_test(test_jumbo_replies),
        cmocka_unit_test(test_no_memory),
    };
    const struct CMUnitTest one[] = { cmocka_unit_test(test_wanted) };
    if (argc < 2)
        return cmocka_run_group_tests(tests, NULL, NULL);
    wanted.messages = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        wanted.seed = strtoull(argv[2], NULL, 10);
    if (argc > 3)
        wanted.permille = (unsigned)strtoul(argv[3], NULL, 10);
    if (argc > 4)
        wanted.small_percent = (unsigned)strtoul(argv[4], NULL, 10);
    return cmocka_run_group_tests(one, NULL, NULL);
}
