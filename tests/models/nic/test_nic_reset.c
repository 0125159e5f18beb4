/*
 * Function-level reset of the NIC at every moment of its work: sending, receiving, in the midst of
 * a command. What it had under way ends, nothing of before comes after, and a driver that begins
 * anew finds it as at power-on.
 */
#include "tests/support/nic_rig.h"

static const struct nr_flow to_wire = { .to_mac = UINT64_C(0x020000000099),
                                        .from_mac = UINT64_C(0x020000000098),
                                        .source_ip = 0x0a000001,
                                        .destination_ip = 0x0a000002,
                                        .source_port = 4000,
                                        .destination_port = 5001 };

struct queues {
    struct nr_cq send_cq, receive_cq;
    struct nr_sq sq;
    struct nr_rq rq;
};

static struct queues begin(struct nr_rig *rig)
{
    struct queues q;
    nr_eq_new(rig, 0, 0, 0);
    q.send_cq = nr_cq_new(rig, 0, 0, 0, 10, 0, 0, NIC_MODERATION_EQE);
    q.receive_cq = nr_cq_new(rig, 0, 1, 0, 10, 0, 0, NIC_MODERATION_EQE);
    q.sq = nr_sq_new(rig, 0, 0, 0, 8);
    q.rq = nr_rq_new(rig, 0, 0, 1, 8);
    const uint64_t table = nr_alloc(rig, 64); /* RSS: zeros, all to queue 0 */
    nr_ok(rig, 0, (struct nic_command){ .opcode = NIC_SET_RSS, .iova = table });
    nr_post(&q.rq, 200);
    nr_run(rig);
    return q;
}

static struct nr_flow from_wire(struct nr_rig *rig)
{
    struct nr_flow flow = to_wire;
    flow.to_mac = nic_function_mac(rig->nic, 0);
    return flow;
}

/* Both directions, an interrupt, a command. */
static void work(struct nr_rig *rig, struct queues *q, uint64_t data)
{
    const struct nr_flow flow = from_wire(rig);
    struct nr_piece piece = { data, 60000, 0 };
    struct nic_command command = { .opcode = NIC_DESTROY_SQ, .status = NIC_COMMAND_PENDING };
    nr_arm(&q->send_cq);
    nr_arm(&q->receive_cq);
    nr_wqe(&q->sq, &to_wire, 0, TCP_FLAG_ACK, &piece, 1, 1446, NIC_WQE_COMPLETION);
    nr_doorbell(&q->sq);
    for (unsigned i = 0; i < 100; i++)
        nr_wire_send(rig, &flow, 2, i * 1446, 1446);
    nr_put(rig, rig->command[0], &command, sizeof(command));
    nr_mmio_write(rig, 0, NIC_REG_COMMAND_LOW, 4, (uint32_t)rig->command[0]);
    nr_mmio_write(rig, 0, NIC_REG_COMMAND_HIGH, 4, rig->command[0] >> 32);
}

/* Both directions to their end, from the first index on. */
static void expect_works(struct nr_rig *rig, uint64_t data)
{
    const struct nr_flow flow = from_wire(rig);
    struct queues q = begin(rig);
    struct nr_piece piece = { data, 60000, 0 };
    struct nic_cqe cqe;
    rig->n_frames = 0;
    rig->n_irqs = 0;
    nr_arm(&q.receive_cq);
    nr_wqe(&q.sq, &to_wire, 0, TCP_FLAG_ACK, &piece, 1, 1446, NIC_WQE_COMPLETION);
    nr_doorbell(&q.sq);
    for (unsigned i = 0; i < 20; i++)
        nr_wire_send(rig, &flow, 3, i * 1446, 1446);
    nr_run(rig);
    assert_int_equal(rig->n_frames, 42);
    assert_true(nr_poll(&q.send_cq, &cqe));
    assert_false(nr_poll(&q.send_cq, &cqe));
    for (unsigned i = 0; i < 20; i++) {
        assert_true(nr_poll(&q.receive_cq, &cqe));
        assert_true(
            nr_holds(rig, nr_buffer(&q.rq, i) + NR_HEADERS, payload_mark(3, i * 1446), 1446));
    }
    assert_false(nr_poll(&q.receive_cq, &cqe));
    assert_int_equal(rig->n_irqs, 1);
}

static void reset_after(sim_time after_ps)
{
    struct nr_rig rig;
    nr_open(&rig, 1, 16, 100, NULL);
    struct queues q = begin(&rig);
    const unsigned cap = nr_capability(&rig, 0, PCI_CAP_ID_PCIE);
    uint64_t data = nr_alloc(&rig, 65536);
    nr_stamp(&rig, data, payload_mark(1, 0), 65536);
    nr_run(&rig);
    work(&rig, &q, data);
    nr_run_for(&rig, after_ps);
    uint32_t control = nr_config(&rig, 0, false, cap + PCIE_DEVCTL, 0);
    nr_config(&rig, 0, true, cap + PCIE_DEVCTL, control | PCIE_DEVCTL_FLR);
    const sim_time reset_ps = sim_now(rig.sim);
    const unsigned n_irqs = rig.n_irqs;
    nr_run(&rig);
    /* What the link had taken already was its last. */
    assert_true(rig.last_write_ps < reset_ps + SIM_PS_PER_US);
    assert_true(rig.n_irqs <= n_irqs + 1);
    nr_enable(&rig, 0);
    expect_works(&rig, data);
    nr_close(&rig);
}

static void test_at_every_moment(void **unused)
{
    (void)unused;
    for (sim_time after_ps = 0; after_ps < 25 * SIM_PS_PER_US; after_ps += 137 * SIM_PS_PER_NS)
        reset_after(after_ps);
}

/* Counts and queues of the last user are gone, and a doorbell of its queue rings nothing. */
static void test_forgets(void **state)
{
    struct nr_rig *rig = *state;
    struct queues q = begin(rig);
    const struct nr_flow flow = from_wire(rig);
    const struct nic_command query = { .opcode = NIC_QUERY_DROPS };
    for (unsigned i = 0; i < 205; i++)
        nr_wire_send(rig, &flow, 2, i * 1000, 1000);
    nr_run(rig);
    assert_int_equal(nr_command(rig, 0, query).value, 5);
    nr_config(rig, 0, true, nr_capability(rig, 0, PCI_CAP_ID_PCIE) + PCIE_DEVCTL, PCIE_DEVCTL_FLR);
    nr_run(rig);
    nr_enable(rig, 0);
    assert_int_equal(nr_command(rig, 0, query).value, 0);
    const struct nic_command destroy[] = { { .opcode = NIC_DESTROY_SQ },
                                           { .opcode = NIC_DESTROY_RQ },
                                           { .opcode = NIC_DESTROY_CQ },
                                           { .opcode = NIC_DESTROY_EQ } };
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(nr_command(rig, 0, destroy[i]).status, NIC_COMMAND_NOT_FOUND);
    const unsigned n_frames = rig->n_frames;
    nr_doorbell(&q.sq);
    nr_run(rig);
    assert_int_equal(rig->n_frames, n_frames);
}

/* Once more while the first is not over. */
static void test_twice(void **state)
{
    struct nr_rig *rig = *state;
    struct queues q = begin(rig);
    const unsigned cap = nr_capability(rig, 0, PCI_CAP_ID_PCIE);
    uint64_t data = nr_alloc(rig, 65536);
    nr_stamp(rig, data, payload_mark(1, 0), 65536);
    work(rig, &q, data);
    for (unsigned i = 0; i < 3; i++)
        nr_config(rig, 0, true, cap + PCIE_DEVCTL, PCIE_DEVCTL_FLR);
    nr_run(rig);
    /* A write without effect on what is there, but for the payload size that it carries. */
    nr_config(rig, 0, true, cap + PCIE_DEVCTL, 1u << PCIE_DEVCTL_MPS_SHIFT);
    nr_enable(rig, 0);
    expect_works(rig, data);
}

/* Its virtual functions go with it; one of them alone leaves the others be. */
static void test_virtual_functions(void **state)
{
    struct nr_rig *rig = *state;
    const unsigned cap = nr_capability(rig, 0, PCI_CAP_ID_PCIE);
    unsigned ecap = 0x100;
    while (ecap != 0 && (nr_config(rig, 0, false, ecap, 0) & 0xffff) != PCI_ECAP_ID_SRIOV)
        ecap = nr_config(rig, 0, false, ecap, 0) >> PCI_ECAP_NEXT_SHIFT;
    assert_true(ecap != 0);
    nr_config(rig, 0, true, ecap + PCI_SRIOV_NUM_VFS, 2);
    nr_config(rig, 0, true, ecap + PCI_SRIOV_CONTROL,
              PCI_SRIOV_CONTROL_ENABLE | PCI_SRIOV_CONTROL_MEMORY);
    nr_run(rig);
    const uint16_t first = pcie_id(1, 0, 1), second = pcie_id(1, 0, 2);
    for (unsigned v = 0; v < 2; v++) {
        nr_config_id(rig, 0, v == 0 ? first : second, true, PCI_COMMAND, PCI_COMMAND_BUS_MASTER);
        assert_true((nr_config_id(rig, 0, v == 0 ? first : second, false, cap + PCIE_DEVCAP, 0) &
                     PCIE_DEVCAP_FLR) != 0);
    }
    nr_config_id(rig, 0, first, true, cap + PCIE_DEVCTL, PCIE_DEVCTL_FLR);
    nr_run(rig);
    assert_int_equal(nr_config_id(rig, 0, first, false, PCI_COMMAND, 0) & 0xffff, 0);
    assert_int_equal(nr_config_id(rig, 0, second, false, PCI_COMMAND, 0) & 0xffff,
                     PCI_COMMAND_BUS_MASTER);
    nr_config(rig, 0, true, cap + PCIE_DEVCTL, PCIE_DEVCTL_FLR);
    nr_run(rig);
    assert_int_equal(nr_config(rig, 0, false, ecap + PCI_SRIOV_CONTROL, 0) & 0xffff, 0);
    assert_int_equal(nr_config_id(rig, 0, second, false, PCI_COMMAND, 0), UINT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_at_every_moment),
        NR_TEST(test_forgets, 1, 16),
        NR_TEST(test_twice, 1, 16),
        NR_TEST(test_virtual_functions, 1, 16, "vfs", "2"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
