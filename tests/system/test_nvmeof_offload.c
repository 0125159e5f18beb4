/*
 * A target of NVMe over Fabrics whose adapter serves the reads: NVMe queues that go round, a
 * controller that is disabled, too few queue pairs, set-ups that make no sense. What holds of every
 * target is in test_nvmeof_system.c, for offload, too.
 */
#include "tests/support/nvmeof_rig.h"

#include <errno.h>
#include <string.h>

struct raw {
    struct rdma_drv_mr *mr;
    struct rdma_drv_cq *cq;
    struct rdma_drv_qp *qp;
    uint32_t pd;
};

/* Reads with many more commands than the NVMe queues have entries, so that both wrap. */
static void many_reads(void)
{
    struct nvmeof_initiator *initiator = rig_open_initiator();
    static struct nvmeof_request request[RIG_ENTRIES - 1];
    const unsigned n = 600; /* the NVMe queues have 256 */
    bool flag = false;
    struct nvmeof_buffer from;
    unsigned n_sent = 0;
    assert_int_equal(nvmeof_buffer_new(initiator, K_NODE_LOCAL, 4096, &from), 0);
    for (unsigned i = 0; i < RIG_ENTRIES - 1; i++) {
        rig_fill(from.at, 4096, i);
        assert_int_equal(rig_transfer(initiator, from, true, 4096 * i, 4096, NULL), 0);
        request[i] = (struct nvmeof_request){ .done = rig_done, .context = &flag };
        assert_int_equal(nvmeof_buffer_new(initiator, K_NODE_LOCAL, 4096, &request[i].buffer), 0);
    }
    rig.n_done = 0;
    while (n_sent < n) {
        const unsigned first = n_sent;
        for (unsigned i = 0; i < RIG_ENTRIES - 1; i++, n_sent++) {
            rig_fill(request[i].buffer.at, 4096, 99);
            nvmeof_transfer(initiator, &request[i], false, 4096 * i, 4096);
            assert_int_equal(nvmeof_submit(initiator, 0, &request[i]), 0);
        }
        while (rig.n_done < n_sent)
            nvmeof_poll(initiator, 0);
        for (unsigned i = 0; i < n_sent - first; i++) {
            assert_int_equal(request[i].error, 0);
            assert_true(rig_holds(request[i].buffer.at, 4096, i));
        }
    }
    nvmeof_initiator_close(initiator);
}

static void test_offloaded_rings_wrap(void **state)
{
    (void)state;
    rig_run(many_reads, "");
    assert_int_equal(rig.adapter.offloaded, 600);
    assert_int_equal(rig.stats.reads, 0);
}

/* A controller that is disabled serves no reads any more, those of the adapter neither; no
 * connection of it is left. */
static void disabled(void)
{
    struct nvmeof_initiator *initiator = rig_open_initiator();
    const struct nvmeof_property property = { .opcode = NVMEOF_OPCODE,
                                              .flags = NVME_PSDT_SGL,
                                              .type = NVMEOF_PROPERTY_SET,
                                              .offset = NVME_REG_CC };
    struct nvmeof_request set = { .done = rig_done };
    struct nvmeof_buffer buffer;
    bool flag = false;
    assert_int_equal(nvmeof_buffer_new(initiator, K_NODE_LOCAL, 4096, &buffer), 0);
    assert_int_equal(rig_transfer(initiator, buffer, false, 0, 4096, NULL), 0);
    memcpy(&set.sqe, &property, sizeof set.sqe);
    set.context = &flag;
    assert_int_equal(initiator_queue_submit(&initiator->admin, &set), 0);
    while (!flag)
        initiator_queue_poll(&initiator->admin);
    assert_int_equal(set.error, 0);
    k_sleep(rig.client.kernel, K_MS);
    assert_int_equal(nvmeof_target_n_queues(rig.target), 0);
    nvmeof_initiator_close(initiator);
    rig_data_both_ways();
}

static void test_offloaded_disabled(void **state)
{
    (void)state;
    rig_run(disabled, "");
    assert_int_equal(rig.adapter.offloaded, 1 + SIM_N_ELEMENTS(rig_sizes));
}

/* Seven queue pairs of the controller are enough for three connections. */
static void offloaded_refusals(void)
{
    struct nvmeof_initiator *initiator, *other;
    struct nvmeof_initiator_params params = rig_initiator_params();
    params.n_queues = 64;
    assert_int_equal(nvmeof_initiator_open(&params, &initiator), 0);
    assert_int_equal(nvmeof_n_queues(initiator), 3);
    params.n_queues = 1;
    assert_int_equal(nvmeof_initiator_open(&params, &other), -EBUSY);
    nvmeof_initiator_close(initiator);
    k_sleep(rig.client.kernel, K_MS);
    rig_data_both_ways();
}

static void test_offloaded_refusals(void **state)
{
    (void)state;
    rig_run(offloaded_refusals, "");
}

/* What does not make a set-up of an offload is refused, by driver or adapter; nothing is left of
 * it. */
static void bad_offloads_body(void *arg)
{
    struct rdma_drv *rdma = rig.server.rdma;
    struct kernel *kernel = rig.server.kernel;
    struct raw raw;
    struct rdma_drv_offload *offload, *second;
    bool *over = arg;
    const struct rdma_drv_endpoint peer = { 2, 99, 0, 0, 0 }; /* that never sends anything */
    const struct kaddr memory = k_alloc(kernel, K_NODE_LOCAL, 32768, K_PAGE_BYTES);
    assert_int_equal(rdma_drv_pd_new(rdma, &raw.pd), 0);
    assert_int_equal(rdma_drv_mr_new(rdma, raw.pd, memory, 16384, RDMA_ACCESS_LOCAL_WRITE, &raw.mr),
                     0);
    assert_int_equal(rdma_drv_cq_new(rdma, 16, 0, NULL, NULL, &raw.cq), 0);
    const struct rdma_drv_qp_params qp = { .pd = raw.pd,
                                           .send_cq = raw.cq,
                                           .receive_cq = raw.cq,
                                           .n_sends = 4,
                                           .n_receives = 4,
                                           .send_sges = 1,
                                           .receive_sges = 1 };
    const struct rdma_drv_offload_params good = { .controller = nvme_local_pci(rig.nvme),
                                                  .sq_doorbell = 0x1030,
                                                  .cq_doorbell = 0x1034,
                                                  .sq = kaddr_add(memory, 16384),
                                                  .cq = kaddr_add(memory, 20480),
                                                  .nvme_entries = 16,
                                                  .entries = 4,
                                                  .block_log2 = 9,
                                                  .nsid = 1,
                                                  .slot_bytes = 4096,
                                                  .staging_va = memory.v,
                                                  .staging_key = rdma_drv_key(raw.mr),
                                                  .staging_bus = 0x10000,
                                                  .lists = kaddr_add(memory, 24576),
                                                  .lists_bus = 0x20000,
                                                  .list_bytes = 64 };
    struct rdma_drv_offload_params bad[14];
    for (unsigned i = 0; i < SIM_N_ELEMENTS(bad); i++)
        bad[i] = good;
    bad[0].nvme_entries = 0;
    bad[1].nvme_entries = 1;
    bad[2].entries = 1;
    bad[3].entries = 5; /* a buffer beyond the region */
    bad[4].staging_key ^= 0x5500;
    bad[5].staging_bus = 0x10200;
    bad[6].slot_bytes = 512;
    bad[7].slot_bytes = 4u << 20;
    bad[8].list_bytes = 48;
    bad[9].block_log2 = 13;
    bad[10].sq_head = 4;
    bad[11].cq_doorbell = 0x2000; /* in another page */
    bad[12].sq_doorbell = 0x1032;
    bad[13].sq_doorbell = bad[13].cq_doorbell = 0x1000000; /* behind the BAR */
    assert_int_equal(rdma_drv_qp_new(rdma, &qp, &raw.qp), 0);
    assert_int_equal(rdma_drv_offload_new(raw.qp, &good, &offload), -EINVAL); /* no connection */
    assert_int_equal(rdma_drv_connect(raw.qp, &peer, &rdma_drv_connection_default), 0);
    for (unsigned i = 0; i < SIM_N_ELEMENTS(bad); i++)
        assert_int_equal(rdma_drv_offload_new(raw.qp, &bad[i], &offload), -EINVAL);
    assert_int_equal(rdma_drv_offload_new(raw.qp, &good, &offload), 0);
    assert_int_equal(rdma_drv_offload_new(raw.qp, &good, &second), -EBUSY);
    rdma_drv_qp_free(raw.qp);
    rdma_drv_offload_free(offload);
    rdma_drv_cq_free(raw.cq);
    rdma_drv_mr_free(raw.mr);
    rdma_drv_pd_free(rdma, raw.pd);
    *over = true;
}

static void bad_offloads(void)
{
    bool over = false;
    k_thread_new(rig.server.kernel, "bad offloads", 2, bad_offloads_body, &over);
    while (!over)
        k_sleep(rig.client.kernel, 10 * K_US);
    rig_data_both_ways();
}

static void test_bad_offloads(void **state)
{
    (void)state;
    rig_run(bad_offloads, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_offloaded_rings_wrap, rig_set_up_offload),
        cmocka_unit_test_setup(test_offloaded_disabled, rig_set_up_offload),
        cmocka_unit_test_setup(test_offloaded_refusals, rig_set_up_offload),
        cmocka_unit_test_setup(test_bad_offloads, rig_set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
