/*
 * SISCI on fake hosts: two threads that add and take away at the same time, at every moment of each
 * other: of one process, of two processes of a host, of two hosts. Each finds what it was given,
 * and nothing is left of both.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/support/sisci_rig.h"

#define SEGMENT 70u
#define STEP_PS (FAKE_US(4) + FAKE_US(1) / 3)
#define END_PS  FAKE_US(250)

/* One of two threads: what it has added. */
struct user {
    struct sr_side *side;
    struct sisci_process *process;
    unsigned number; /* 0 or 1 */
    uint64_t after_ps;
    struct sisci_segment *own;
    struct sisci_remote *shared, *near, *far;
    struct sr_driven driven;
    struct sisci_map near_map;
    struct sisci_window own_window, near_window;
    enum sisci_error result; /* of what one of both may do */
};

/* ---- Side by side ---------------------------------------------------------------------------- */

typedef void body_fn(struct lf_host *host, void *arg);

static void both(struct sr_cluster *c, body_fn *const body[2], struct user *const user[2])
{
    struct lf_call call[3] = { { user[0]->side->host, body[0], user[0], false },
                               { user[1]->side->host, body[1], user[1], false },
                               { .host = NULL } };
    for (unsigned i = 0; i < 2; i++)
        k_thread_new(user[i]->side->host->kernel, "side by side", (int)i, lf_call_body, &call[i]);
    lf_run(c->rig, FAKE_MS(300), any_busy, call);
    assert_false(any_busy(call));
}

static void alone(struct user *u, body_fn *body)
{
    const uint64_t after_ps = u->after_ps;
    u->after_ps = 0;
    lf_call(u->side->host, body, u);
    u->after_ps = after_ps;
}

static void open_process(struct lf_host *host, void *arg)
{
    struct user *u = arg;
    (void)host;
    OK(sisci_open(u->side->sisci, &u->process, &error));
}

static void close_process(struct lf_host *host, void *arg)
{
    struct user *u = arg;
    (void)host;
    sisci_close(u->process);
}

/* ---- Additions ------------------------------------------------------------------------------- */

/* A segment of its own, exported; the lender's connected; the device with its registers, a segment
 * that is allocated near it and one that is not; windows of the device to two of them. */
static void add(struct lf_host *host, void *arg)
{
    struct user *u = arg;
    const unsigned near = SISCI_DEVICE_READ, far = SISCI_CPU_READ | SISCI_CPU_WRITE;
    k_sleep(host->kernel, u->after_ps);
    OK(sisci_segment_create(u->process, SEGMENT + u->number, BYTES, 0, NULL, NULL, &u->own,
                            &error));
    OK(sisci_segment_prepare(u->own, SISCI_ANY, &error));
    OK(sisci_segment_export(u->own, SISCI_ANY, &error));
    OK(sisci_segment_connect(u->process, ID(LENDER), 5 + LENDER, SISCI_ANY, NULL, NULL, &u->shared,
                             &error));
    OK(sisci_device_borrow(u->process, sr_device_name, SISCI_SHARED, NULL, NULL, &u->driven.device,
                           &error));
    OK(sisci_device_bar_connect(u->driven.device, 0, SISCI_ANY, NULL, NULL, &u->driven.bar,
                                &error));
    OK(sisci_map(u->driven.bar, 0, LF_BAR_BYTES, &u->driven.regs, &error));
    OK(sisci_device_segment_create(u->driven.device, 2 * u->number, BYTES, near, false, SISCI_ANY,
                                   NULL, NULL, &u->near, &error));
    OK(sisci_device_segment_create(u->driven.device, 2 * u->number + 1, BYTES, far, false,
                                   SISCI_ANY, NULL, NULL, &u->far, &error));
    OK(sisci_map(u->near, 0, BYTES, &u->near_map, &error));
    OK(sisci_remote_map_for_device(u->near, u->driven.device, SISCI_ANY, 0, BYTES, K_DMA_BOTH,
                                   &u->near_window, &error));
    OK(sisci_segment_map_for_device(u->own, u->driven.device, SISCI_ANY, 0, BYTES, K_DMA_BOTH,
                                    &u->own_window, &error));
}

static void take_away(struct lf_host *host, void *arg)
{
    struct user *u = arg;
    k_sleep(host->kernel, u->after_ps);
    sisci_window_unmap(&u->own_window);
    sisci_window_unmap(&u->near_window);
    sisci_unmap(&u->near_map);
    OK(sisci_segment_disconnect(u->far, &error));
    OK(sisci_segment_disconnect(u->near, &error));
    sisci_unmap(&u->driven.regs);
    OK(sisci_segment_disconnect(u->driven.bar, &error));
    OK(sisci_device_return(u->driven.device, &error));
    OK(sisci_segment_disconnect(u->shared, &error));
    OK(sisci_segment_remove(u->own, &error));
}

/* The device reaches what it was given windows to. */
static void use(struct lf_host *host, void *arg)
{
    struct user *u = arg;
    uint8_t out[CHUNK], in[CHUNK];
    const struct kaddr memory = sisci_segment_memory(u->own);
    sr_copy_by_device(&u->driven, &u->near_map, u->near_window.dma, (uint8_t)(3 + u->number));
    for (unsigned i = 0; i < CHUNK; i++)
        out[i] = (uint8_t)(u->number + 7 * i);
    k_store(host->kernel, memory, out, CHUNK);
    assert_int_equal(sr_run(&u->driven, 1, u->own_window.dma, CHUNK), 1);
    assert_int_equal(sr_run(&u->driven, 2, u->own_window.dma + CHUNK, CHUNK), 1);
    k_load(host->kernel, kaddr_add(memory, CHUNK), in, CHUNK);
    assert_memory_equal(in, out, CHUNK);
}

/* Two that add, one that takes away while the other adds, two that take away. */
static void add_at_once(struct sr_cluster *c, struct user *a, struct user *b, uint64_t ps)
{
    struct user *const users[2] = { a, b };
    a->after_ps = 0;
    b->after_ps = ps;
    both(c, (body_fn *const[]){ add, add }, users);
    alone(a, use);
    alone(b, use);
    alone(b, take_away);
    both(c, (body_fn *const[]){ take_away, add }, users);
    alone(b, use);
    a->after_ps = ps;
    b->after_ps = 0;
    both(c, (body_fn *const[]){ add, take_away }, users);
    alone(a, use);
    alone(b, add);
    both(c, (body_fn *const[]){ take_away, take_away }, users);
}

/* By the host of the second, with a process of its own unless it is one of the first's. */
static void test_additions(void **state)
{
    static const struct {
        unsigned host;
        bool same_process;
    } second[] = { { CLIENT, true }, { CLIENT, false }, { THIRD, false }, { LENDER, false } };
    (void)state;
    for (unsigned mode = 0; mode < sizeof second / sizeof second[0]; mode++) {
        struct sr_cluster *c = sr_new(mode % 2 != 0 ? 7 : 2, 1, N_HOSTS);
        struct user a = { .side = &c->side[CLIENT], .number = 0 };
        struct user b = { .side = &c->side[second[mode].host], .number = 1 };
        struct sr_holdings before[N_HOSTS];
        sr_in(&c->side[LENDER], sr_offer_body);
        alone(&a, open_process);
        b.process = a.process;
        if (!second[mode].same_process)
            alone(&b, open_process);
        sr_greet_all(c, before);
        for (uint64_t ps = mode * STEP_PS / 4; ps < END_PS; ps += STEP_PS * test_stride(4)) {
            add_at_once(c, &a, &b, ps);
            sr_expect_no_trace(c, before);
        }
        alone(&a, close_process);
        if (!second[mode].same_process)
            alone(&b, close_process);
        sr_free(c);
    }
}

/* ---- The same number ------------------------------------------------------------------------- */

static void try_create(struct lf_host *host, void *arg)
{
    struct user *u = arg;
    k_sleep(host->kernel, u->after_ps);
    u->result = sisci_segment_create(u->process, SEGMENT, BYTES, 0, NULL, NULL, &u->own, NULL);
}

static void try_near(struct lf_host *host, void *arg)
{
    struct user *u = arg;
    k_sleep(host->kernel, u->after_ps);
    u->result = sisci_device_segment_create(u->driven.device, 1, BYTES, SISCI_DEVICE_READ, false,
                                            SISCI_ANY, NULL, NULL, &u->near, NULL);
}

static void undo_create(struct lf_host *host, void *arg)
{
    struct user *u = arg;
    (void)host;
    if (u->result == SISCI_OK)
        OK(sisci_segment_remove(u->own, &error));
}

static void undo_near(struct lf_host *host, void *arg)
{
    struct user *u = arg;
    (void)host;
    if (u->result == SISCI_OK)
        OK(sisci_segment_disconnect(u->near, &error));
    OK(sisci_device_return(u->driven.device, &error));
}

static void borrow(struct lf_host *host, void *arg)
{
    struct user *u = arg;
    (void)host;
    OK(sisci_device_borrow(u->process, sr_device_name, SISCI_SHARED, NULL, NULL, &u->driven.device,
                           &error));
}

static void expect_one(const struct user *a, const struct user *b)
{
    assert_true(a->result == SISCI_OK || b->result == SISCI_OK);
    assert_int_equal(a->result + b->result, SISCI_ERR_SEGMENTID_USED);
}

/* Two processes of a host, or two hosts: one gets the number, the other is told that it is used. */
static void test_same_number(void **state)
{
    struct sr_cluster *c = sr_new(7, 1, N_HOSTS);
    struct user a = { .side = &c->side[CLIENT] }, b = { .side = &c->side[CLIENT] };
    struct user other = { .side = &c->side[THIRD] };
    struct user *const processes[2] = { &a, &b }, *const hosts[2] = { &a, &other };
    struct sr_holdings before[N_HOSTS];
    (void)state;
    alone(&a, open_process);
    alone(&b, open_process);
    alone(&other, open_process);
    sr_greet_all(c, before);
    for (uint64_t ps = 0; ps < FAKE_US(20); ps += FAKE_US(1) / 4) {
        b.after_ps = other.after_ps = ps;
        both(c, (body_fn *const[]){ try_create, try_create }, processes);
        expect_one(&a, &b);
        alone(&a, undo_create);
        alone(&b, undo_create);
        sr_expect_no_trace(c, before);
        alone(&a, borrow);
        alone(&other, borrow);
        both(c, (body_fn *const[]){ try_near, try_near }, hosts);
        expect_one(&a, &other);
        alone(&a, undo_near);
        alone(&other, undo_near);
        sr_expect_no_trace(c, before);
    }
    alone(&a, close_process);
    alone(&b, close_process);
    alone(&other, close_process);
    sr_free(c);
}

/* ---- One device ------------------------------------------------------------------------------ */

static void borrow_alone(struct lf_host *host, void *arg)
{
    struct user *u = arg;
    (void)host;
    OK(sisci_device_borrow(u->process, sr_device_name, SISCI_EXCLUSIVE, NULL, NULL,
                           &u->driven.device, &error));
}

static void reset(struct lf_host *host, void *arg)
{
    struct user *u = arg;
    k_sleep(host->kernel, u->after_ps);
    OK(sisci_device_reset(u->driven.device, &error));
}

static void give_back(struct lf_host *host, void *arg)
{
    struct user *u = arg;
    (void)host;
    OK(sisci_device_return(u->driven.device, &error));
}

/* Two threads of its process: the second resets once the first is through. */
static void test_reset(void **state)
{
    struct sr_cluster *c = sr_new(2, 1, 2);
    struct user a = { .side = &c->side[CLIENT] }, b = a;
    struct user *const users[2] = { &a, &b };
    struct sr_holdings before[N_HOSTS];
    struct lf_function *device = &c->side[LENDER].host->device[0].f;
    (void)state;
    device->flr = true;
    lf_put(device, LF_CAP_PCIE + 4, 4, PCIE_DEVCAP_FLR);
    alone(&a, open_process);
    sr_greet_all(c, before);
    alone(&a, borrow_alone);
    b = a;
    for (uint64_t ps = 0; ps < FAKE_MS(100); ps += FAKE_MS(9) + FAKE_US(1)) {
        b.after_ps = ps;
        const unsigned n = device->n_resets;
        both(c, (body_fn *const[]){ reset, reset }, users);
        assert_int_equal(device->n_resets, n + 2);
    }
    alone(&a, give_back);
    sr_expect_no_trace(c, before);
    alone(&a, close_process);
    sr_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_additions),
        cmocka_unit_test(test_same_number),
        cmocka_unit_test(test_reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
