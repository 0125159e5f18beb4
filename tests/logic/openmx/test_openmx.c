/*
 * Open-MX from call to call: messages of all sizes between two hosts and within one, what matches
 * what, what ends how.
 */
#include "tests/support/omx_pair.h"

#define BYTES_MAX (1u << 20)

struct run {
    struct omx_process a, b;
    uint64_t bytes, posted_bytes;
    bool unexpected;
    unsigned step;
};

/* ---- One message there, one back ------------------------------------------------------------- */

static void sleeps(struct omx_process *p, uint64_t us)
{
    k_sleep(p->pair->kernel, FAKE_US(us));
}

static void sends_and_receives(struct omx_process *p)
{
    struct run *run = p->arg;
    struct kernel *kernel = p->pair->kernel;
    const struct kaddr at = omx_memory(p, BYTES_MAX), back = omx_memory(p, BYTES_MAX);
    struct mx_request *s, *r;
    assert_int_equal(omx_connect(p, 0, &run->b), 0);
    net_rig_fill(kernel, at, 1, 0, run->bytes);
    const struct mx_segment segment = { at, run->bytes }, into = { back, run->bytes };
    assert_int_equal(mx_irecv(p->ep, &into, 1, 78, UINT64_MAX, NULL, &r), 0);
    assert_int_equal(mx_isend(p->ep, &segment, 1, &p->peer[0], 77, run, &s), 0);
    struct mx_status status = omx_wait(p, &s);
    assert_int_equal(status.code, MX_SUCCESS);
    assert_int_equal(status.bytes, run->bytes);
    assert_ptr_equal(status.context, run);
    assert_null(s);
    status = omx_wait(p, &r);
    assert_int_equal(status.code, MX_SUCCESS);
    assert_int_equal(status.message_bytes, run->bytes);
    net_rig_check(kernel, back, 2, 0, run->bytes);
}

static void receives_and_sends(struct omx_process *p)
{
    struct run *run = p->arg;
    struct kernel *kernel = p->pair->kernel;
    const struct kaddr at = omx_memory(p, BYTES_MAX), back = omx_memory(p, BYTES_MAX);
    struct mx_request *s, *r;
    struct mx_status status;
    if (run->unexpected) /* it comes before anybody asks */
        while (!mx_iprobe(p->ep, 77, UINT64_MAX, &status))
            sleeps(p, 10);
    const struct mx_segment into = { at, run->bytes }, segment = { back, run->bytes };
    assert_int_equal(mx_irecv(p->ep, &into, 1, 77, UINT64_MAX, p, &r), 0);
    status = omx_wait(p, &r);
    assert_int_equal(status.code, MX_SUCCESS);
    assert_int_equal(status.bytes, run->bytes);
    assert_int_equal(status.match, 77);
    assert_ptr_equal(status.context, p);
    net_rig_check(kernel, at, 1, 0, run->bytes);
    net_rig_fill(kernel, back, 2, 0, run->bytes);
    /* The peer is known from its message. */
    assert_int_equal(mx_isend(p->ep, &segment, 1, &status.peer, 78, NULL, &s), 0);
    assert_int_equal(omx_wait(p, &s).code, MX_SUCCESS);
}

/* What the driver does, it does in the kernel. */
static bool check_account(struct rig *rig, unsigned from, const uint8_t *head, uint32_t bytes,
                          void *arg)
{
    const unsigned account = k_account(rig->kernel, 0);
    (void)from;
    (void)head;
    (void)bytes;
    (void)arg;
    k_account(rig->kernel, account);
    assert_true(account < K_USER);
    return false;
}

static const uint64_t sizes[] = { 0,    1,     32,    33,    128,   129,        4096,
                                  4097, 12000, 32767, 32768, 32769, 131072 + 5, BYTES_MAX };

static void ping_pong(bool local, bool unexpected, const struct openmx_options *options)
{
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const struct rig_options wire = omx_wire(i + 1);
        struct omx_pair *pair = omx_pair_new(&wire, options);
        struct run run = { .bytes = sizes[i], .unexpected = unexpected };
        pair->rig->filter = check_account;
        omx_process_start(pair, &run.b, !local, 1, 3, receives_and_sends, &run);
        omx_process_start(pair, &run.a, 0, 0, 5, sends_and_receives, &run);
        omx_pair_run(pair, 5);
        omx_pair_free(pair);
    }
}

static void test_all_sizes(void **state)
{
    (void)state;
    ping_pong(false, false, NULL);
}

static void test_unexpected(void **state)
{
    (void)state;
    ping_pong(false, true, NULL);
}

static void test_within_a_host(void **state)
{
    (void)state;
    ping_pong(true, false, NULL);
    ping_pong(true, true, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_sizes),
        cmocka_unit_test(test_unexpected),
        cmocka_unit_test(test_within_a_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
