/*
 * Who waits for a borrowed device when it is taken away: by its lender, which asks for it back or
 * removes it, by a cable that comes out, or with its lender that dies. Threads that poll, that
 * sleep until an interrupt, and that wait for a transfer get an error, give back what they have,
 * and the driver lets go of the device.
 */
#include "tests/support/kernel_call.h"
#include "tests/support/world_fixture.h"

#include <errno.h>
#include <string.h>

#include "logic/lending/lending.h"
#include "logic/nvme/nvme_driver.h"
#include "logic/rdma/rdma_driver.h"
#include "models/os/os.h"
#include "models/pcie/link/context.h"
#include "models/pcie/link/link.h"

#define HOST(NAME)                                                                          \
    NAME " = { cpu = { sockets = 1; cores_per_socket = 4; clock_ghz = 2.0; };"              \
         " dram = { node_size = \"256 MiB\"; channels = 1; }; iommu = { enabled = true; };" \
         " ports = ( { name = \"rp0\"; lanes = 8; }, { name = \"rp1\"; lanes = 8; },"       \
         " { name = \"rp2\"; lanes = 8; } ); };\n"
#define BRIDGE " = { type = \"pcie.ntb\"; lanes = 8; cable_lanes = 8; bar2_bytes = \"1 GiB\"; };"
#define WORLD                                                                                          \
    "hosts = { " HOST("server") HOST(                                                                  \
        "lender") " };\n"                                                                              \
                  "devices = { n0" BRIDGE " n1" BRIDGE " hca = { type = \"rdma.adapter\"; };"          \
                  " ssd = { type = \"nvme.controller\"; media = \"flat\"; capacity_bytes = \"1 GiB\";" \
                  " read_latency_ns = 500000; payload = \"bytes\"; }; };\n"                            \
                  "cables = ( { from = \"server.s0.rp0\"; to = \"n0.p0\"; },"                          \
                  " { from = \"lender.s0.rp0\"; to = \"n1.p0\"; },"                                    \
                  " { from = \"lender.s0.rp1\"; to = \"hca.p0\"; },"                                   \
                  " { from = \"lender.s0.rp2\"; to = \"ssd.p0\"; lanes = 4; },"                        \
                  " { from = \"n0.p1\"; to = \"n1.p1\"; length_m = 2.0; } );\n"

#define MS      SIM_PS_PER_MS
#define N_POSTS 5u
#define BYTES   4096u

enum side { BORROWER, LENDER, N_SIDES };
enum end { ASKED_BACK, REMOVED, PULLED, DIED, N_ENDS };

static struct rig {
    struct world_fixture w;
    struct kernel *kernel[N_SIDES];
    struct lend_host *lend[N_SIDES];
    struct lend_borrow *borrow;
    struct rdma_driver *rdma_driver;
    struct nvme_driver *nvme_driver;
    bool rdma; /* else NVMe */
    /* of waiters */
    unsigned n_waiting, n_ready;
    struct k_wait_queue interrupts;
    unsigned n_interrupts;
} rig;

static const struct k_pci_id rdma_ids[] = { { RDMA_VENDOR_ID, RDMA_DEVICE_ID }, { 0, 0 } };
static const struct k_pci_id nvme_ids[] = { { NVME_VENDOR_INTEL, NVME_DEVICE_P4800X }, { 0, 0 } };

/* ---- Hosts ----------------------------------------------------------------------------------- */

static void up(void *arg)
{
    static const char *const names[] = { "borrower", "lender" };
    const unsigned i = *(const unsigned *)arg;
    struct lend_options options = lend_options_default;
    struct lend_error error;
    options.id = i + 1;
    options.name = names[i];
    if (i == LENDER)
        options.lend = rig.rdma ? rdma_ids : nvme_ids;
    rig.lend[i] = lend_host_new(rig.kernel[i], &options);
    assert_int_equal(k_pci_register(rig.kernel[i], lend_adapter_driver(rig.lend[i])), 1);
    assert_int_equal(k_pci_register(rig.kernel[i], lend_lender_driver(rig.lend[i])), i == LENDER);
    assert_int_equal(lend_start(rig.lend[i], &error), 0);
    if (i == LENDER)
        return;
    rig.rdma_driver = rdma_driver_new(rig.kernel[i]);
    rig.nvme_driver = nvme_driver_new(rig.kernel[i], &nvme_driver_params_default);
    k_pci_register(rig.kernel[i], rdma_driver_pci(rig.rdma_driver));
    k_pci_register(rig.kernel[i], nvme_driver_pci(rig.nvme_driver));
}

static void borrow(void *arg)
{
    struct lend_info info;
    struct lend_error error;
    (void)arg;
    lend_discover(rig.lend[BORROWER]);
    assert_int_equal(lend_list(rig.lend[BORROWER], LENDER + 1, 0, &info, &error), 0);
    assert_int_equal(lend_borrow(rig.lend[BORROWER], LENDER + 1, info.id, &rig.borrow, &error), 0);
}

static void rig_open(bool rdma)
{
    static unsigned number[N_SIDES] = { BORROWER, LENDER };
    memset(&rig, 0, sizeof(rig));
    rig.rdma = rdma;
    fixture_open(&rig.w, WORLD);
    for (unsigned i = 0; i < N_SIDES; i++) {
        struct host *host = world_host(rig.w.world, i == BORROWER ? "server" : "lender");
        rig.kernel[i] = os_new(host, host_os_params(host));
        kernel_call(&rig.w, rig.kernel[i], up, &number[i]);
    }
    kernel_call(&rig.w, rig.kernel[BORROWER], borrow, NULL);
}

static void down(void *arg)
{
    lend_host_free(arg);
}

static void give_back(void *arg)
{
    lend_return(arg);
}

static void rig_close(bool lender_lives)
{
    kernel_call(&rig.w, rig.kernel[BORROWER], give_back, rig.borrow);
    assert_int_equal(lend_usage(rig.lend[BORROWER]).mapped_pages, 0);
    kernel_call(&rig.w, rig.kernel[BORROWER], down, rig.lend[BORROWER]);
    if (lender_lives)
        kernel_call(&rig.w, rig.kernel[LENDER], down, rig.lend[LENDER]);
    else
        lend_host_free(rig.lend[LENDER]);
    rdma_driver_free(rig.rdma_driver);
    nvme_driver_free(rig.nvme_driver);
    sim_run(rig.w.sim, sim_now(rig.w.sim) + 10 * MS, NULL);
    for (unsigned i = 0; i < N_SIDES; i++)
        os_free(rig.kernel[i]);
    fixture_close(&rig.w);
}

/* ---- How it is taken away -------------------------------------------------------------------- */

static uint16_t lent_id(void)
{
    uint16_t id;
    assert_true(world_function_id(world_device(rig.w.world, rig.rdma ? "hca" : "ssd"), 0, &id));
    return id;
}

static void ask_back(void *arg)
{
    (void)arg;
    assert_int_equal(lend_reclaim(rig.lend[LENDER], lent_id()), 0);
}

static void remove_there(void *arg)
{
    (void)arg;
    k_pci_remove(os_pci_find(rig.kernel[LENDER], lent_id()), false);
}

static void pull(void)
{
    struct pcie_port *a, *b, *port = &world_device(rig.w.world, "n0")->ports[1];
    struct pcie_link *cable = NULL;
    for (unsigned n = 0; (cable = pcie_context_link(world_pcie(rig.w.world), n, &a, &b)) != NULL;
         n++)
        if (a == port || b == port)
            break;
    assert_non_null(cable);
    pcie_link_set_up(cable, false);
}

static void take_away(enum end end)
{
    switch (end) {
    case ASKED_BACK: kernel_call(&rig.w, rig.kernel[LENDER], ask_back, NULL); break;
    case REMOVED: kernel_call(&rig.w, rig.kernel[LENDER], remove_there, NULL); break;
    case PULLED: pull(); break;
    default: lend_host_kill(rig.lend[LENDER]); break;
    }
}

/* ---- Who waits ------------------------------------------------------------------------------- */

struct user {
    struct rdma_drv *rdma;
    uint32_t pd;
    struct rdma_drv_mr *mr;
    struct rdma_drv_cq *cq;
    struct rdma_drv_qp *qp;
    struct rdma_drv_sge sge;
};

static void user_open(struct user *user, unsigned cpu, rdma_drv_cq_fn *handler)
{
    /* Nobody is at the other end, and no cable: what is sent stays where it is. */
    const struct rdma_drv_endpoint peer = { 2, 99, 0, 16, 16 };
    struct kernel *kernel = rig.kernel[BORROWER];
    struct rdma_drv_connection connection = rdma_drv_connection_default;
    const struct kaddr at = k_alloc(kernel, K_NODE_LOCAL, BYTES, K_PAGE_BYTES);
    connection.timeout = 0; /* it does not give up by itself */
    *user = (struct user){ .rdma = rdma_driver_device(rig.rdma_driver, 0) };
    assert_int_equal(rdma_drv_pd_new(user->rdma, &user->pd), 0);
    assert_int_equal(
        rdma_drv_mr_new(user->rdma, user->pd, at, BYTES, RDMA_ACCESS_LOCAL_WRITE, &user->mr), 0);
    assert_int_equal(rdma_drv_cq_new(user->rdma, 64, cpu, handler, NULL, &user->cq), 0);
    const struct rdma_drv_qp_params params = { .pd = user->pd,
                                               .send_cq = user->cq,
                                               .receive_cq = user->cq,
                                               .n_sends = 8,
                                               .n_receives = 8,
                                               .send_sges = 1,
                                               .receive_sges = 1 };
    assert_int_equal(rdma_drv_qp_new(user->rdma, &params, &user->qp), 0);
    assert_int_equal(rdma_drv_connect(user->qp, &peer, &connection), 0);
    user->sge = (struct rdma_drv_sge){ at.v, BYTES, rdma_drv_key(user->mr) };
}

static void post_all(const struct user *user, bool sends)
{
    for (uint64_t i = 0; i < N_POSTS; i++) {
        const struct rdma_drv_receive receive = { i, &user->sge, 1 };
        const struct rdma_drv_send send = {
            .id = i, .opcode = RDMA_OP_SEND, .signaled = i % 2, .sge = &user->sge, .n_sges = 1
        };
        assert_int_equal(rdma_drv_post_receive(user->qp, &receive), 0);
        if (sends)
            assert_int_equal(rdma_drv_post_send(user->qp, &send), 0);
    }
    rig.n_ready++;
}

/* All are given back: in their order, each kind, as flushed. */
static unsigned take_all(const struct user *user, unsigned taken[2])
{
    struct rdma_drv_wc wc[3];
    const unsigned n = rdma_drv_poll(user->cq, wc, 3);
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(wc[i].status, RDMA_FLUSHED);
        assert_ptr_equal(wc[i].qp, user->qp);
        assert_int_equal(wc[i].id, taken[wc[i].receive]++);
    }
    return n;
}

static void user_close(struct user *user)
{
    const struct rdma_drv_receive receive = { 99, &user->sge, 1 };
    struct rdma_drv_cq *cq;
    struct rdma_drv_wc wc;
    uint32_t pd;
    assert_true(rdma_drv_gone(user->rdma));
    assert_int_equal(rdma_drv_post_receive(user->qp, &receive), -ENODEV);
    assert_int_equal(rdma_drv_cq_new(user->rdma, 64, 0, NULL, NULL, &cq), -ENODEV);
    assert_int_equal(rdma_drv_pd_new(user->rdma, &pd), -ENODEV);
    assert_int_equal(rdma_drv_poll(user->cq, &wc, 1), 0);
    rdma_drv_qp_free(user->qp);
    rdma_drv_cq_free(user->cq);
    rdma_drv_mr_free(user->mr);
    k_sleep(rig.kernel[BORROWER], MS); /* the driver waits for the last one */
    rdma_drv_pd_free(user->rdma, user->pd);
    rig.n_waiting--;
}

static void poller(void *arg)
{
    struct user user;
    unsigned taken[2] = { 0, 0 };
    (void)arg;
    user_open(&user, 1, NULL);
    post_all(&user, true);
    while (taken[0] < N_POSTS || taken[1] < N_POSTS)
        if (take_all(&user, taken) == 0)
            k_yield(rig.kernel[BORROWER]);
    user_close(&user);
}

static void interrupted(void *context)
{
    (void)context;
    rig.n_interrupts++;
    k_wake(rig.kernel[BORROWER], &rig.interrupts);
}

static void sleeper(void *arg)
{
    struct user user;
    unsigned taken[2] = { 0, 0 };
    (void)arg;
    user_open(&user, 2, interrupted);
    rdma_drv_arm(user.cq, false);
    post_all(&user, false);
    while (taken[1] < N_POSTS) {
        const unsigned before = rig.n_interrupts;
        if (take_all(&user, taken) != 0)
            continue;
        rdma_drv_arm(user.cq, false);
        if (take_all(&user, taken) == 0 && rig.n_interrupts == before)
            k_wait(rig.kernel[BORROWER], &rig.interrupts, UINT64_MAX);
    }
    user_close(&user);
}

static void reader(void *arg)
{
    struct kernel *kernel = rig.kernel[BORROWER];
    struct nvme_drv *nvme = nvme_open(nvme_driver_device(rig.nvme_driver, 0));
    const struct kaddr at = k_alloc(kernel, K_NODE_LOCAL, BYTES, K_PAGE_BYTES);
    int status;
    (void)arg;
    rig.n_ready++;
    while ((status = nvme_transfer(nvme, 1, false, 0, at, BYTES)) == 0)
        continue;
    assert_int_equal(status, -ENODEV);
    nvme_close(nvme);
    rig.n_waiting--;
}

static void wait_for(const unsigned *n, unsigned value)
{
    const sim_time until_ps = sim_now(rig.w.sim) + 200 * MS;
    while (*n != value && sim_now(rig.w.sim) < until_ps) {
        sim_run(rig.w.sim, sim_now(rig.w.sim) + MS / 20, NULL);
        assert_null(sim_error(rig.w.sim));
    }
    assert_int_equal(*n, value);
}

static void taken_from(bool rdma, void (*const body[])(void *arg), unsigned n)
{
    for (unsigned end = 0; end < N_ENDS; end++) {
        rig_open(rdma);
        for (unsigned i = 0; i < n; i++)
            k_thread_new(rig.kernel[BORROWER], "waiter", (int)(i + 1), body[i], NULL);
        rig.n_waiting = n;
        wait_for(&rig.n_ready, n);
        sim_run(rig.w.sim, sim_now(rig.w.sim) + MS / 10, NULL);
        assert_int_equal(rig.n_waiting, n);
        take_away((enum end)end);
        wait_for(&rig.n_waiting, 0);
        sim_run(rig.w.sim, sim_now(rig.w.sim) + 120 * MS, NULL); /* it is reset meanwhile */
        assert_null(lend_borrow_device(rig.borrow));
        if (end != DIED)
            assert_int_equal(lend_usage(rig.lend[LENDER]).lent, 0);
        rig_close(end != DIED);
    }
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static void test_adapter(void **state)
{
    static void (*const body[])(void *arg) = { poller, sleeper };
    (void)state;
    taken_from(true, body, 2);
}

static void test_drive(void **state)
{
    static void (*const body[])(void *arg) = { reader, reader, reader };
    (void)state;
    taken_from(false, body, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adapter),
        cmocka_unit_test(test_drive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
