/*
 * Several controllers of one subsystem: two ports, virtual functions with secondary controllers.
 * Sections are those of NVM Express 1.3.
 */
#include "tests/models/nvme/nvme_rig.h"

#define BAR_OF_PORT_1 UINT64_C(0x4200000000)
#define BAR_OF_VFS    UINT64_C(0x4300000000)
#define N_OF(array)   (sizeof(array) / sizeof((array)[0]))

static uint32_t get32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof(value));
    return value;
}

static uint32_t get16(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8;
}

/* One of the controllers, as the rig speaks to it. */
struct controller {
    unsigned p;
    uint64_t bar;
    uint16_t id;
    struct queue admin, io;
};

static void speak_to(struct rig *r, struct controller *now, struct controller *other)
{
    if (now != NULL)
        *now = (struct controller){ r->p, r->bar, r->id, r->admin, r->io };
    r->p = other->p;
    r->bar = other->bar;
    r->id = other->id;
    r->admin = other->admin;
    r->io = other->io;
}

static void begin_io(struct rig *r)
{
    enable(r);
    r->io = queue_at(1, alloc(r, 4096), alloc(r, 4096));
    assert_int_equal(create(r, &r->io, 0), NVME_SC_SUCCESS);
}

/* ---- Two ports ------------------------------------------------------------------------------- */

/* 1.4.2, 5.15.3, 5.15.8, 5.15.9: two controllers, one storage; a reset of one leaves the other
 * alone. */
static void test_two_ports(void **state)
{
    const char *const settings[] = { "ports", "2", NULL };
    struct rig r;
    struct controller first, second = { .p = 1, .bar = BAR_OF_PORT_1, .id = ID_OF_PORT_1 };
    uint8_t page[4096], other[4096];
    (void)state;
    open_rig(&r, settings);
    const uint64_t at = alloc(&r, 8192);
    fill(&r, at, 3, 4096);
    assert_int_equal(identify(&r, NVME_IDENTIFY_CONTROLLER, 0, page), NVME_SC_SUCCESS);
    assert_int_equal(page[NVME_ID_CTRL_CMIC], NVME_CMIC_PORTS | NVME_CMIC_CONTROLLERS);
    assert_int_equal(command(&r, &r.io, io_at(true, 8, 8, at, 0), NULL), NVME_SC_SUCCESS);
    speak_to(&r, &first, &second);
    set_up_function(&r);
    begin_io(&r);
    assert_int_equal(identify(&r, NVME_IDENTIFY_CONTROLLER, 0, other), NVME_SC_SUCCESS);
    assert_int_equal(get16(other + NVME_ID_CTRL_CNTLID), 1);
    assert_memory_equal(other + NVME_ID_CTRL_SUBNQN, page + NVME_ID_CTRL_SUBNQN, 256);
    assert_int_equal(identify(&r, NVME_IDENTIFY_NAMESPACE, 1, page), NVME_SC_SUCCESS);
    assert_int_equal(page[NVME_ID_NS_NMIC], NVME_NMIC_SHARED);
    assert_int_equal(identify(&r, NVME_IDENTIFY_CONTROLLERS, 0, page), NVME_SC_SUCCESS);
    assert_int_equal(get16(page), 2);
    assert_int_equal(identify(&r, NVME_IDENTIFY_NS_CONTROLLERS | 1 << 16, 1, page),
                     NVME_SC_SUCCESS);
    assert_int_equal(get32(page), 1 | 1 << 16); /* one, number 1 */
    /* What one wrote the other reads, also while the first is disabled. */
    speak_to(&r, &second, &first);
    write_at(&r, r.bar + NVME_REG_CC, 4, 0);
    run_for(&r, SIM_PS_PER_MS);
    speak_to(&r, NULL, &second);
    assert_int_equal(status(&r), NVME_CSTS_RDY);
    assert_int_equal(command(&r, &r.io, io_at(false, 8, 8, at + 4096, 0), NULL), NVME_SC_SUCCESS);
    expect(&r, at + 4096, 3, 4096, true);
    /* The first port's cable is pulled. */
    pcie_function_remove(r.nvme, 0);
    assert_int_equal(command(&r, &r.io, io_at(false, 8, 8, at + 4096, 0), NULL), NVME_SC_SUCCESS);
    close_rig(&r);
}

/* ---- Virtual functions (8.5) ----------------------------------------------------------------- */

static const char *const virtual_settings[] = {
    "virtual_functions", "3", "flexible_queue_pairs", "8", "flexible_vectors", "6", NULL
};

static unsigned sriov(struct rig *r)
{
    unsigned at = PCI_STANDARD_END;
    uint32_t head;
    while (((head = config(r, false, at, 0)) & 0xffff) != PCI_ECAP_ID_SRIOV) {
        at = head >> 20;
        assert_int_not_equal(at, 0);
    }
    return at;
}

static void enable_vfs(struct rig *r, unsigned n)
{
    const unsigned cap = sriov(r);
    config(r, true, cap + PCI_SRIOV_BAR0, (uint32_t)BAR_OF_VFS);
    config(r, true, cap + PCI_SRIOV_BAR0 + 4, (uint32_t)(BAR_OF_VFS >> 32));
    config(r, true, cap + PCI_SRIOV_NUM_VFS, n);
    config(r, true, cap + PCI_SRIOV_CONTROL,
           n != 0 ? PCI_SRIOV_CONTROL_ENABLE | PCI_SRIOV_CONTROL_MEMORY : 0);
    run_for(r, SIM_PS_PER_US);
}

static struct controller vf(unsigned v)
{
    return (struct controller){ .bar = BAR_OF_VFS + (uint64_t)v * NVME_BAR_BYTES,
                                .id = (uint16_t)(ID + 1 + v) };
}

static void set_up_vf(struct rig *r)
{
    config(r, true, PCI_COMMAND, PCI_COMMAND_BUS_MASTER);
    config(r, true, capability(r, PCI_CAP_ID_MSIX), PCI_MSIX_CONTROL_ENABLE << 16);
    for (unsigned v = 0; v < 4; v++) {
        write_at(r, r->bar + NVME_MSIX_TABLE + 16 * v, 8, MSI);
        write_at(r, r->bar + NVME_MSIX_TABLE + 16 * v + 8, 8, 16 * (r->id & 7u) + v);
    }
    run_for(r, SIM_PS_PER_US);
}

/* Virtualization Management: status; *n: how many resources were changed. */
static unsigned manage(struct rig *r, enum nvme_virtualization action, enum nvme_resource resource,
                       unsigned controller, unsigned number, uint32_t *n)
{
    struct nvme_sqe sqe = { .opcode = NVME_ADMIN_VIRTUALIZATION,
                            .cdw10 = (uint32_t)action | (uint32_t)resource << 8 | controller << 16,
                            .cdw11 = number };
    return command(r, &r->admin, sqe, n);
}

static void give(struct rig *r, unsigned controller, unsigned queues, unsigned vectors)
{
    uint32_t n;
    assert_int_equal(manage(r, NVME_VIRTUAL_ASSIGN, NVME_RESOURCE_QUEUES, controller, queues, &n),
                     0);
    assert_int_equal(n, queues);
    assert_int_equal(
        manage(r, NVME_VIRTUAL_ASSIGN, NVME_RESOURCE_INTERRUPTS, controller, vectors, &n), 0);
    assert_int_equal(n, vectors);
    assert_int_equal(manage(r, NVME_VIRTUAL_ONLINE, NVME_RESOURCE_QUEUES, controller, 0, NULL), 0);
}

/* 5.15.10, 5.15.11. */
static void test_virtual_resources(void **state)
{
    struct rig r;
    uint8_t page[4096];
    (void)state;
    open_rig(&r, virtual_settings);
    enable_vfs(&r, 2);
    assert_int_equal(identify(&r, NVME_IDENTIFY_CONTROLLER, 0, page), NVME_SC_SUCCESS);
    assert_int_equal(get16(page + NVME_ID_CTRL_OACS), NVME_OACS_VIRTUALIZATION);
    assert_int_equal(page[NVME_ID_CTRL_CMIC], NVME_CMIC_CONTROLLERS);
    give(&r, 2, 3, 2);
    assert_int_equal(identify(&r, NVME_IDENTIFY_PRIMARY, 0, page), NVME_SC_SUCCESS);
    assert_int_equal(page[NVME_ID_PRIMARY_CRT], 3);
    assert_int_equal(get32(page + NVME_ID_PRIMARY_VQFRT), 8);
    assert_int_equal(get32(page + NVME_ID_PRIMARY_VQRFA), 3);
    assert_int_equal(get16(page + NVME_ID_PRIMARY_VQPRT), 32);
    assert_int_equal(get32(page + NVME_ID_PRIMARY_VIFRT), 6);
    assert_int_equal(get32(page + NVME_ID_PRIMARY_VIRFA), 2);
    assert_int_equal(identify(&r, NVME_IDENTIFY_SECONDARY, 0, page), NVME_SC_SUCCESS);
    assert_int_equal(page[NVME_ID_SECONDARY_COUNT], 3);
    const uint8_t *entry = page + NVME_ID_SECONDARY_ENTRIES + NVME_SECONDARY_BYTES;
    assert_int_equal(get16(entry + NVME_SECONDARY_SCID), 2);
    assert_int_equal(get16(entry + NVME_SECONDARY_PCID), 0);
    assert_int_equal(entry[NVME_SECONDARY_STATE], 1);
    assert_int_equal(get16(entry + NVME_SECONDARY_VFN), 2);
    assert_int_equal(get16(entry + NVME_SECONDARY_NVQ), 3);
    assert_int_equal(get16(entry + NVME_SECONDARY_NVI), 2);
    assert_int_equal(entry[NVME_SECONDARY_STATE + NVME_SECONDARY_BYTES], 0);
    /* To the primary controller: from its next reset on, which takes the others offline. */
    uint32_t n;
    assert_int_equal(manage(&r, NVME_VIRTUAL_PRIMARY_ALLOCATE, NVME_RESOURCE_QUEUES, 0, 5, &n), 0);
    assert_int_equal(n, 5);
    assert_int_equal(get_feature(&r, NVME_FEATURE_QUEUES, NVME_SELECT_CURRENT, 0, 0),
                     30 << 16 | 30);
    write_at(&r, r.bar + NVME_REG_CC, 4, 0);
    run_for(&r, SIM_PS_PER_MS);
    enable(&r);
    assert_int_equal(get_feature(&r, NVME_FEATURE_QUEUES, NVME_SELECT_CURRENT, 0, 0),
                     35 << 16 | 35);
    assert_int_equal(identify(&r, NVME_IDENTIFY_SECONDARY, 0, page), NVME_SC_SUCCESS);
    assert_int_equal(entry[NVME_SECONDARY_STATE], 0);
    close_rig(&r);
}

/* 5.22, 4.6.1.2.2: each wrong field, each wrong state. */
static void test_virtual_errors(void **state)
{
    static const struct {
        enum nvme_virtualization action;
        unsigned resource, controller, number, status;
    } wrong[] = {
        { (enum nvme_virtualization)2, 0, 1, 0, NVME_SC_INVALID_FIELD },
        { NVME_VIRTUAL_ASSIGN, 0, 0, 2, NVME_SC_CONTROLLER_ID_INVALID }, /* the primary one */
        { NVME_VIRTUAL_ONLINE, 0, 4, 0, NVME_SC_CONTROLLER_ID_INVALID },
        { NVME_VIRTUAL_PRIMARY_ALLOCATE, 0, 1, 2, NVME_SC_CONTROLLER_ID_INVALID },
        { NVME_VIRTUAL_ASSIGN, 2, 1, 2, NVME_SC_RESOURCE_ID_INVALID },
        { NVME_VIRTUAL_ASSIGN, 0, 2, 9, NVME_SC_RESOURCE_COUNT_INVALID },
        { NVME_VIRTUAL_ASSIGN, 0, 2, 6, NVME_SC_RESOURCE_COUNT_INVALID }, /* 3 are given */
        { NVME_VIRTUAL_PRIMARY_ALLOCATE, 1, 0, 6, NVME_SC_RESOURCE_COUNT_INVALID },
        { NVME_VIRTUAL_ASSIGN, 0, 1, 2, NVME_SC_SECONDARY_STATE_INVALID }, /* is online */
        { NVME_VIRTUAL_ONLINE, 0, 2, 0, NVME_SC_SECONDARY_STATE_INVALID }, /* has nothing */
    };
    struct rig r;
    (void)state;
    open_rig(&r, virtual_settings);
    enable_vfs(&r, 2);
    give(&r, 1, 3, 1);
    for (unsigned i = 0; i < N_OF(wrong); i++) {
        unsigned found = manage(&r, wrong[i].action, (enum nvme_resource)wrong[i].resource,
                                wrong[i].controller, wrong[i].number, NULL);
        if (found != wrong[i].status)
            fail_msg("%u: status %#x, expected %#x", i, found, wrong[i].status);
    }
    /* All it needs but a virtual function. */
    assert_int_equal(manage(&r, NVME_VIRTUAL_ASSIGN, NVME_RESOURCE_QUEUES, 3, 2, NULL), 0);
    assert_int_equal(manage(&r, NVME_VIRTUAL_ASSIGN, NVME_RESOURCE_INTERRUPTS, 3, 1, NULL), 0);
    assert_int_equal(manage(&r, NVME_VIRTUAL_ONLINE, NVME_RESOURCE_QUEUES, 3, 0, NULL),
                     NVME_SC_SECONDARY_STATE_INVALID);
    close_rig(&r);
    /* Without virtual functions there is no such command. */
    open_rig(&r, NULL);
    uint8_t page[4096];
    assert_int_equal(manage(&r, NVME_VIRTUAL_ONLINE, NVME_RESOURCE_QUEUES, 1, 0, NULL),
                     NVME_SC_INVALID_OPCODE);
    assert_int_equal(identify(&r, NVME_IDENTIFY_SECONDARY, 0, page), NVME_SC_INVALID_FIELD);
    close_rig(&r);
}

/* 8.5: usable online only; what it has; its I/O on the common namespace, its own interrupts. */
static void test_secondary_controller(void **state)
{
    struct rig r;
    struct controller primary, secondary = vf(1);
    uint8_t page[4096];
    (void)state;
    open_rig(&r, virtual_settings);
    enable_vfs(&r, 2);
    const uint64_t at = alloc(&r, 8192);
    fill(&r, at, 3, 4096);
    assert_int_equal(command(&r, &r.io, io_at(true, 8, 8, at, 0), NULL), NVME_SC_SUCCESS);
    speak_to(&r, &primary, &secondary);
    set_up_vf(&r);
    assert_int_equal(status(&r), NVME_CSTS_CFS); /* offline */
    begin_enable(&r);
    run_for(&r, 3 * SIM_PS_PER_MS);
    assert_int_equal(status(&r), NVME_CSTS_CFS);
    speak_to(&r, NULL, &primary);
    give(&r, 2, 3, 2);
    speak_to(&r, &primary, &secondary);
    assert_int_equal(status(&r), 0);
    begin_io(&r);
    assert_int_equal(identify(&r, NVME_IDENTIFY_CONTROLLER, 0, page), NVME_SC_SUCCESS);
    assert_int_equal(page[NVME_ID_CTRL_CMIC], NVME_CMIC_CONTROLLERS | NVME_CMIC_VF);
    assert_int_equal(get16(page + NVME_ID_CTRL_CNTLID), 2);
    assert_int_equal(get16(page + NVME_ID_CTRL_OACS), 0);
    assert_int_equal(get_feature(&r, NVME_FEATURE_QUEUES, NVME_SELECT_CURRENT, 0, 0), 1 << 16 | 1);
    struct queue q = queue_at(2, alloc(&r, 4096), alloc(&r, 4096));
    assert_int_equal(create(&r, &q, 2), NVME_SC_VECTOR_INVALID);
    assert_int_equal(create(&r, &q, 1), NVME_SC_SUCCESS);
    q.number = 3;
    assert_int_equal(create(&r, &q, 1), NVME_SC_QUEUE_ID_INVALID);
    q.number = 2;
    r.n_irqs = 0;
    assert_int_equal(command(&r, &q, io_at(false, 8, 8, at + 4096, 0), NULL), NVME_SC_SUCCESS);
    expect(&r, at + 4096, 3, 4096, true);
    assert_int_equal(r.n_irqs, 1);
    assert_int_equal(r.last_vector, 16 * 2 + 1);
    speak_to(&r, &secondary, &primary);
    assert_int_equal(command(&r, &r.io, io_at(false, 8, 8, at + 4096, 0), NULL), NVME_SC_SUCCESS);
    /* Offline in the midst of work: nothing more comes of it. */
    speak_to(&r, &primary, &secondary);
    for (unsigned i = 0; i < 20; i++)
        push(&r, &r.io, io_at(false, 8 * i, 8, at, 0));
    ring(&r, &r.io);
    run_for(&r, 3 * SIM_PS_PER_US);
    speak_to(&r, &secondary, &primary);
    assert_int_equal(manage(&r, NVME_VIRTUAL_OFFLINE, NVME_RESOURCE_QUEUES, 2, 0, NULL), 0);
    speak_to(&r, &primary, &secondary);
    run_for(&r, SIM_PS_PER_MS);
    const uint64_t writes = r.n_writes;
    assert_int_equal(status(&r), NVME_CSTS_CFS);
    ring(&r, &r.io);
    run_for(&r, SIM_PS_PER_MS);
    assert_int_equal(r.n_writes, writes);
    speak_to(&r, &secondary, &primary);
    assert_int_equal(command(&r, &r.io, io_at(false, 8, 8, at + 4096, 0), NULL), NVME_SC_SUCCESS);
    close_rig(&r);
}

/* The virtual function goes and comes again: its controller is offline, and keeps its resources. */
static void test_virtual_function_goes(void **state)
{
    struct rig r;
    struct controller primary, secondary = vf(0);
    (void)state;
    open_rig(&r, virtual_settings);
    enable_vfs(&r, 1);
    give(&r, 1, 2, 1);
    const uint64_t at = alloc(&r, 4096);
    speak_to(&r, &primary, &secondary);
    set_up_vf(&r);
    begin_io(&r);
    push(&r, &r.io, io_at(false, 0, 8, at, 0));
    ring(&r, &r.io);
    run_for(&r, 2 * SIM_PS_PER_US);
    speak_to(&r, &secondary, &primary);
    enable_vfs(&r, 0);
    run_for(&r, SIM_PS_PER_MS);
    assert_int_equal(manage(&r, NVME_VIRTUAL_ONLINE, NVME_RESOURCE_QUEUES, 1, 0, NULL),
                     NVME_SC_SECONDARY_STATE_INVALID);
    enable_vfs(&r, 1);
    speak_to(&r, &primary, &secondary);
    assert_int_equal(status(&r), NVME_CSTS_CFS);
    speak_to(&r, &secondary, &primary);
    assert_int_equal(manage(&r, NVME_VIRTUAL_ONLINE, NVME_RESOURCE_QUEUES, 1, 0, NULL), 0);
    speak_to(&r, &primary, &secondary);
    set_up_vf(&r);
    begin_io(&r);
    assert_int_equal(command(&r, &r.io, io_at(false, 0, 8, at, 0), NULL), NVME_SC_SUCCESS);
    close_rig(&r);
}

/* Controllers with much to do share what bounds the drive. */
static void test_controllers_take_turns(void **state)
{
    const char *const settings[] = { "virtual_functions", "1", "commands_max", "4", NULL };
    struct rig r;
    struct controller primary, secondary = vf(0);
    struct nvme_cqe cqe;
    unsigned done[2] = { 0, 0 };
    (void)state;
    open_rig(&r, settings);
    enable_vfs(&r, 1);
    give(&r, 1, 2, 1);
    const uint64_t at = alloc(&r, 4096);
    speak_to(&r, &primary, &secondary);
    set_up_vf(&r);
    begin_io(&r);
    for (unsigned i = 0; i < 60; i++) {
        push(&r, &primary.io, io_at(false, 8 * i, 1, at, 0));
        push(&r, &r.io, io_at(false, 8 * i, 1, at, 0));
    }
    ring(&r, &r.io);
    speak_to(&r, &secondary, &primary);
    ring(&r, &r.io);
    run_for(&r, 100 * SIM_PS_PER_US); /* more than half of it */
    while (poll(&r, &r.io, &cqe))
        done[0]++;
    while (poll(&r, &secondary.io, &cqe))
        done[1]++;
    assert_in_range(done[0] + done[1], 50, 110);
    assert_in_range(done[0], done[1] - 5, done[1] + 5);
    close_rig(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_ports),
        cmocka_unit_test(test_virtual_resources),
        cmocka_unit_test(test_virtual_errors),
        cmocka_unit_test(test_secondary_controller),
        cmocka_unit_test(test_virtual_function_goes),
        cmocka_unit_test(test_controllers_take_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
