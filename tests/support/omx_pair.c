#include "tests/support/omx_pair.h"

struct rig_options omx_wire(uint64_t seed)
{
    return (struct rig_options){ .seed = seed,
                                 .params = net_params_default,
                                 .latency_ps = FAKE_US(10),
                                 .ps_per_byte = 800,
                                 .mtu_bytes = 9000 };
}

struct omx_pair *omx_pair_new(const struct rig_options *wire, const struct openmx_options *options)
{
    struct omx_pair *pair = k_zalloc(sizeof *pair);
    pair->rig = net_rig_new(wire);
    pair->kernel = pair->rig->kernel;
    pair->mx = mx_options_default;
    for (unsigned host = 0; host < 2; host++) {
        fake_on(pair->kernel, host * 2);
        pair->options[host] = options != NULL ? *options : openmx_options_default;
        pair->omx[host] = openmx_new(pair->rig->end[host].net, &pair->rig->end[host].dev, NULL,
                                     &pair->options[host]);
        assert_non_null(pair->omx[host]);
    }
    return pair;
}

void omx_pair_free(struct omx_pair *pair)
{
    /* What is on the wire arrives, and finds nobody. */
    fake_run_until(pair->kernel, pair->kernel->now_ps + FAKE_MS(20));
    for (unsigned host = 0; host < 2; host++) {
        fake_on(pair->kernel, host * 2);
        if (pair->omx[host] == NULL)
            continue;
        assert_int_equal(openmx_regions_live(pair->omx[host]), 0);
        openmx_free(pair->omx[host]);
    }
    assert_int_equal(pair->kernel->pins_live, 0);
    net_rig_free(pair->rig);
    free(pair);
}

static void process_thread(void *arg)
{
    struct omx_process *p = arg;
    struct mx_board *board = openmx_board(p->pair->omx[p->host]);
    k_account(p->pair->kernel, MX_ACCOUNT_USER);
    assert_int_equal(mx_open(board, p->id, OMX_KEY, &p->pair->mx, &p->ep), 0);
    p->body(p);
    if (!p->stays)
        mx_close(p->ep);
    assert_int_equal(k_account(p->pair->kernel, MX_ACCOUNT_USER), MX_ACCOUNT_USER);
    p->done = true;
    p->pair->running--;
}

void omx_process_start(struct omx_pair *pair, struct omx_process *p, unsigned host, unsigned cpu,
                       uint8_t id, void (*body)(struct omx_process *p), void *arg)
{
    *p = (struct omx_process){ .pair = pair, .host = host, .id = id, .body = body, .arg = arg };
    pair->running++;
    k_thread_new(pair->kernel, "process", (int)(host * 2 + cpu), process_thread, p);
}

void omx_pair_run(struct omx_pair *pair, unsigned seconds)
{
    const uint64_t until_ps = pair->kernel->now_ps + seconds * FAKE_MS(1000);
    while (pair->running > 0 && pair->kernel->now_ps < until_ps)
        fake_run_until(pair->kernel, pair->kernel->now_ps + FAKE_MS(1));
    if (pair->running > 0)
        fail_msg("seed %llu: %u processes are still at it after %u s",
                 (unsigned long long)pair->rig->options.seed, pair->running, seconds);
}

int omx_connect(struct omx_process *p, unsigned n, const struct omx_process *to)
{
    struct omx_pair *pair = p->pair;
    const uint64_t until_ps = pair->kernel->now_ps + FAKE_MS(20000);
    while (pair->kernel->now_ps < until_ps) { /* it may not be open yet */
        p->connected[n] = mx_connect(p->ep, openmx_board(pair->omx[to->host])->nic_id, to->id,
                                     OMX_KEY, until_ps, &p->peer[n]);
        if (p->connected[n] != -ENOENT)
            break;
        k_sleep(pair->kernel, FAKE_US(100));
    }
    return p->connected[n];
}

struct mx_status omx_wait(struct omx_process *p, struct mx_request **r)
{
    struct mx_status status = { .code = MX_CANCELLED };
    if (!mx_wait(p->ep, r, p->pair->kernel->now_ps + FAKE_MS(60000), &status))
        fail_msg("seed %llu: a request of endpoint %u of host %u does not end",
                 (unsigned long long)p->pair->rig->options.seed, p->id, p->host);
    return status;
}

struct kaddr omx_memory(struct omx_process *p, size_t bytes)
{
    return k_alloc(p->pair->kernel, (int)p->host, bytes, 64);
}
