/*
 * A pull of which replies are lost: what is asked for again, when, and what is not asked for
 * meanwhile.
 */
#include "tests/support/omx_pair.h"

#include "hw/mx_wire.h"

#define BYTES      (1u << 20)
#define FRAME      4096u
#define WINDOW     (4u * 8 * FRAME) /* asked for at a time */
#define LOST_FRAME 3u

struct run {
    struct omx_pair *pair;
    struct omx_process a, b;
    unsigned losses;   /* of the frame, still to come */
    unsigned none;     /* so many replies are lost, whatever they carry */
    uint64_t waits_ps; /* before the message */
    bool there;        /* it has come */
    uint32_t asked;    /* up to here, while it had not */
    unsigned again;    /* requests for its block, beside the first */
    uint64_t begun_ps, ended_ps;
    uint64_t announced_ps, pulled_ps; /* rendezvous and first request passed the wire */
    unsigned time_outs;               /* that somebody was told of, and the last one */
    uint64_t time_out_ps, idle_ps;
};

static void timed_out(void *context, uint64_t since_ps, uint64_t now_ps)
{
    struct run *run = context;
    struct openmx_stats stats;
    openmx_stats_get(run->pair->omx[1], &stats);
    run->time_outs++;
    run->time_out_ps = now_ps;
    if (stats.reply_ps != 0)
        assert_int_equal(since_ps, stats.reply_ps);
    else /* since the pull has begun */
        assert_in_range(since_ps, run->announced_ps, run->pulled_ps);
    run->idle_ps = now_ps - since_ps;
}

/* Host 0 sends the message: replies are its, requests host 1's. */
static bool look(struct rig *rig, unsigned from, const uint8_t *head, uint32_t bytes, void *arg)
{
    struct run *run = arg;
    struct mx_reply_header reply;
    struct mx_pull_header pull;
    const uint64_t now_ps = k_now_ps(rig->kernel);
    (void)bytes;
    memcpy(&reply, head + MX_HEAD_BYTES, sizeof reply);
    memcpy(&pull, head + MX_HEAD_BYTES, sizeof pull);
    if (from == 0 && pull.common.type == MX_PACKET_RENDEZVOUS)
        run->announced_ps = now_ps;
    if (from == 1 && pull.common.type == MX_PACKET_PULL) {
        run->pulled_ps = run->pulled_ps == 0 ? now_ps : run->pulled_ps;
        const uint32_t at = mx_be32(pull.block_offset), n = mx_be32(pull.block_bytes);
        if (!run->there && at + n > run->asked)
            run->asked = at + n;
        if (at == 0) {
            assert_int_equal(n, 8 * FRAME); /* the whole block, also when it is asked for again */
            run->again++;
        }
    }
    if (from == 0 && reply.type == MX_PACKET_PULL_REPLY && run->none > 0) {
        run->none--;
        return true;
    }
    if (from == 1 || reply.type != MX_PACKET_PULL_REPLY ||
        mx_be32(reply.offset) != LOST_FRAME * FRAME)
        return false;
    if (run->losses == 0) {
        run->there = true;
        return false;
    }
    run->losses--;
    return true;
}

static void sends(struct omx_process *p)
{
    struct run *run = p->arg;
    const struct mx_segment segment = { omx_memory(p, BYTES), BYTES };
    struct mx_request *r;
    assert_int_equal(omx_connect(p, 0, &run->b), 0);
    net_rig_fill(p->pair->kernel, segment.at, 1, 0, BYTES);
    k_sleep(p->pair->kernel, run->waits_ps);
    run->begun_ps = k_now_ps(p->pair->kernel);
    assert_int_equal(mx_isend(p->ep, &segment, 1, &p->peer[0], 7, NULL, &r), 0);
    assert_int_equal(omx_wait(p, &r).code, MX_SUCCESS);
}

static void receives(struct omx_process *p)
{
    struct run *run = p->arg;
    const struct mx_segment segment = { omx_memory(p, BYTES), BYTES };
    struct mx_request *r;
    assert_int_equal(mx_irecv(p->ep, &segment, 1, 0, 0, NULL, &r), 0);
    assert_int_equal(omx_wait(p, &r).bytes, BYTES);
    run->ended_ps = k_now_ps(p->pair->kernel);
    net_rig_check(p->pair->kernel, segment.at, 1, 0, BYTES);
}

static struct openmx_stats run_it(struct run *run)
{
    const struct rig_options wire = omx_wire(1);
    struct openmx_options options = openmx_options_default;
    struct openmx_stats stats;
    options.timed_out = timed_out;
    options.timed_out_context = run;
    run->pair = omx_pair_new(&wire, &options);
    run->pair->rig->filter = look;
    run->pair->rig->filter_arg = run;
    omx_process_start(run->pair, &run->a, 0, 0, 1, sends, run);
    omx_process_start(run->pair, &run->b, 1, 0, 2, receives, run);
    omx_pair_run(run->pair, 100);
    openmx_stats_get(run->pair->omx[1], &stats);
    omx_pair_free(run->pair);
    return stats;
}

static struct openmx_stats run_with(struct run *run, unsigned losses)
{
    *run = (struct run){ .losses = losses };
    return run_it(run);
}

/* A later block is complete: that before it is asked for again at once, whole; nothing beyond the
 * four blocks is asked for until it has come. */
static void test_one_loss(void **state)
{
    struct run run;
    (void)state;
    const struct openmx_stats stats = run_with(&run, 1);
    assert_int_equal(stats.blocks_again, 1);
    assert_int_equal(run.again, 2);
    assert_int_equal(stats.duplicate_replies, 7);
    assert_int_equal(run.asked, WINDOW);
    assert_true(run.ended_ps - run.begun_ps < FAKE_MS(500));
    assert_int_equal(run.time_outs, 0);
}

/* Lost again: that is for the timer, which asks for the block once more, whole. */
static void test_two_losses(void **state)
{
    struct run run;
    (void)state;
    const struct openmx_stats stats = run_with(&run, 2);
    assert_int_equal(stats.blocks_again, 2);
    assert_int_equal(run.again, 3);
    assert_int_equal(stats.duplicate_replies, 14);
    assert_int_equal(run.asked, WINDOW);
    assert_true(run.ended_ps - run.begun_ps > K_S);
    assert_true(run.ended_ps - run.begun_ps < 2 * K_S);
    assert_int_equal(run.time_outs, 1);
    assert_true(run.time_out_ps > run.begun_ps + K_S && run.time_out_ps < run.ended_ps);
    assert_true(run.idle_ps >= K_S && run.idle_ps < K_S + FAKE_MS(1));
}

/* Nothing of the first window comes: the time-out is told to have begun with the pull. */
static void test_a_lost_window(void **state)
{
    struct run run = { .none = 4 * 8, .waits_ps = 5 * K_S };
    (void)state;
    run_it(&run);
    assert_int_equal(run.time_outs, 1);
    assert_true(run.idle_ps >= K_S && run.idle_ps < K_S + FAKE_MS(1));
    assert_true(run.idle_ps < run.ended_ps - run.begun_ps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_loss),
        cmocka_unit_test(test_two_losses),
        cmocka_unit_test(test_a_lost_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
