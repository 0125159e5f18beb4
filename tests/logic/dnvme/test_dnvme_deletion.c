/*
 * How the manager deletes queue pairs, on a controller of the data sheet (nvme_fake.h): more at
 * once than its admin queue has entries; a controller that refuses, and one that is gone.
 */
#include "tests/support/nvme_fake.h"

#include "logic/dnvme/dnvme_internal.h"

#define ENTRIES 4u /* of the admin queue */

struct rig {
    struct kernel *kernel;
    struct nvme_fake *nvme;
    struct nvme_user_controller controller;
    struct dnvme_server server;
    struct dnvme_deletions deletions;
    uint16_t n_queues;
};
static struct rig rig;

static struct nvme_user_memory memory_of(size_t bytes)
{
    const struct kaddr at = k_alloc(rig.kernel, 0, bytes, K_PAGE_BYTES);
    return (struct nvme_user_memory){ .at = at, .bus = at.v };
}

static void make_pair(uint16_t id)
{
    const struct nvme_user_memory sq = memory_of(K_PAGE_BYTES), cq = memory_of(K_PAGE_BYTES);
    assert_int_equal(nvme_user_create_queues(&rig.controller, id, 16, sq.bus, cq.bus, 0), 0);
    rig.server.queue[id].owner = DNVME_ORPHANED;
    rig.server.stats.n_queues++;
}

static void open_rig(void)
{
    const struct fake_options options = { .seed = 5 };
    memset(&rig, 0, sizeof rig);
    rig.kernel = fake_new(&options);
    fake_on(rig.kernel, 0);
    rig.nvme = calloc(1, sizeof *rig.nvme);
    nvme_fake_init(rig.nvme, rig.kernel);
    const struct nvme_user_controller_params params = {
        .kernel = rig.kernel,
        .registers = nvme_user_bar_window(&rig.nvme->pci, 0),
        .admin_entries = ENTRIES,
        .admin_sq = memory_of(ENTRIES * NVME_SQE_BYTES),
        .admin_cq = memory_of(ENTRIES * NVME_CQE_BYTES),
        .page = memory_of(NVME_PAGE_BYTES),
        .timeout_ps = 10 * K_MS,
    };
    assert_int_equal(nvme_user_controller_open(&rig.controller, &params), 0);
    rig.server = (struct dnvme_server){ .kernel = rig.kernel, .n = 1 };
    dnvme_server_init(&rig.server);
    rig.server.queue_end = NVME_QUEUES_MAX;
    rig.deletions = (struct dnvme_deletions){ .controller = &rig.controller,
                                              .server = &rig.server };
    rig.n_queues = NVME_FAKE_QUEUES;
    assert_int_equal(nvme_user_set_queues(&rig.controller, &rig.n_queues), 0);
    for (uint16_t id = 1; id <= rig.n_queues; id++)
        make_pair(id);
}

static void close_rig(void)
{
    nvme_user_controller_close(&rig.controller);
    dnvme_server_release(&rig.server);
    fake_run_until(rig.kernel, rig.kernel->now_ps + K_MS);
    free(rig.nvme);
    fake_free(rig.kernel);
}

static void begin_all(void)
{
    for (uint16_t id = 1; id <= rig.n_queues; id++)
        dnvme_deletions_begin(&rig.deletions, id);
}

/* As the manager's thread does. */
static void serve(void)
{
    const uint64_t until_ps = k_now_ps(rig.kernel) + 5 * K_MS;
    while (k_now_ps(rig.kernel) < until_ps) {
        nvme_user_qp_poll(&rig.controller.admin, 0);
        dnvme_deletions_continue(&rig.deletions);
        k_sleep(rig.kernel, 20 * K_US);
    }
}

/* All are deleted, and a command that is waited for finds room among them. */
static void test_many(void **state)
{
    (void)state;
    open_rig();
    assert_true(rig.n_queues > ENTRIES);
    begin_all();
    assert_int_equal(nvme_user_qp_room(&rig.controller.admin), 1);
    struct nvme_user_namespace ns;
    assert_int_equal(nvme_user_identify_namespace(&rig.controller, 1, &ns), 0);
    serve();
    assert_int_equal(rig.server.stats.n_queues, 0);
    assert_int_equal(rig.server.stats.reclaimed, rig.n_queues);
    assert_int_equal(rig.deletions.n_waiting, 0);
    assert_int_equal(nvme_user_delete_queues(&rig.controller, 1), -EIO); /* it is not there */
    close_rig();
}

/* If the controller refuses to delete the completion queue, asking again deletes what is left,
 * though the submission queue is gone. */
static void test_again(void **state)
{
    (void)state;
    open_rig();
    rig.nvme->queue[1].has_cq = false; /* then it does */
    dnvme_deletions_begin(&rig.deletions, 1);
    serve();
    assert_int_equal(rig.server.stats.reclaimed, 0);
    rig.nvme->queue[1].has_cq = true;
    dnvme_deletions_begin(&rig.deletions, 1);
    serve();
    assert_int_equal(rig.server.stats.reclaimed, 1);
    assert_int_equal(rig.nvme->n_deleted_sqs, 1);
    assert_int_equal(rig.nvme->n_deleted_cqs, 1);
    close_rig();
}

/* All end with an error, those that wait for room, too. */
static void test_gone(void **state)
{
    (void)state;
    open_rig();
    for (uint16_t id = 1; id <= rig.n_queues; id++)
        rig.server.queue[id].deleting = true; /* as the server notes it */
    begin_all();
    assert_int_equal(rig.deletions.n_waiting, rig.n_queues - (ENTRIES - 2));
    rig.controller.gone = true;
    dnvme_deletions_continue(&rig.deletions);
    assert_int_equal(rig.deletions.n_waiting, 0);
    for (uint16_t id = 1; id <= rig.n_queues; id++)
        assert_int_equal(rig.server.queue[id].deleting, id <= ENTRIES - 2);
    nvme_user_qp_fail_all(&rig.controller.admin, NVME_SC_ABORTED_SQ_DELETED);
    for (uint16_t id = 1; id <= rig.n_queues; id++)
        assert_false(rig.server.queue[id].deleting);
    assert_int_equal(rig.server.stats.n_queues, rig.n_queues);
    close_rig();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_again),
        cmocka_unit_test(test_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
