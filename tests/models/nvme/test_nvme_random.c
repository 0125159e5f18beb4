/*
 * A driver that does what it likes: random registers, doorbells, commands, PRP lists and SGLs,
 * queues written over, bus mastering switched off, resets in the midst. The controller answers with
 * error statuses or gives up (CSTS.CFS); nothing of ours asserts, and a function-level reset makes
 * it as good as new.
 */
#include "tests/models/nvme/nvme_rig.h"

#define BAR_OF_VFS UINT64_C(0x4300000000)
#define N_VFS      2u
#define STEPS      50000u
#define SEEDS      4u

static uint64_t any(struct rig *r, uint64_t n)
{
    return sim_random_below(&r->host.random, n);
}

/* Small, large, aligned or not, in memory, in the memory buffer or nowhere. */
static uint64_t any_address(struct rig *r)
{
    uint64_t at = any(r, MEMORY_BYTES);
    switch (any(r, 8)) {
    case 0: return at;
    case 1: return at & ~UINT64_C(63);
    case 2: return CMB + any(r, 2 << 20);
    case 3: return (at | any(r, UINT64_MAX)) & ~UINT64_C(3);
    case 4: return (at & ~UINT64_C(4095)) + 4096 - 8 * any(r, 4);
    default: return at & ~UINT64_C(4095);
    }
}

static uint32_t any_value(struct rig *r)
{
    switch (any(r, 4)) {
    case 0: return (uint32_t)any(r, 16);
    case 1: return (uint32_t)any(r, 16) << 16 | (uint32_t)any(r, 8);
    case 2: return UINT32_MAX - (uint32_t)any(r, 2);
    default: return (uint32_t)any(r, UINT64_C(1) << 32);
    }
}

static struct nvme_sgl any_sgl(struct rig *r)
{
    const uint32_t bytes[] = { 0, 16, 512, 4096, 24, 160 };
    return (struct nvme_sgl){ .address = any_address(r),
                              .bytes = any(r, 5) != 0 ? bytes[any(r, 6)] : any_value(r),
                              .type = (uint8_t)(any(r, 6) != 0 ? any(r, 4) << 4 : any(r, 256)) };
}

/* PRP entries and descriptors wherever they are found. */
static void any_list(struct rig *r)
{
    uint64_t at = any(r, MEMORY_BYTES / 16) * 16;
    for (unsigned i = 0; i < 32 && at + 16 <= MEMORY_BYTES; i++, at += 16) {
        struct nvme_sgl sgl = any_sgl(r);
        if (any(r, 2) != 0) {
            physmem_write(r->memory, (struct hpa){ at }, (const uint8_t *)&sgl, sizeof(sgl));
            continue;
        }
        physmem_write64(r->memory, (struct hpa){ at }, any_address(r));
        physmem_write64(r->memory, (struct hpa){ at + 8 }, any_address(r));
    }
}

static void any_command(struct rig *r, struct queue *q)
{
    static const uint8_t admin[] = { 0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 0x1c, 0x7f };
    static const uint8_t io[] = { 0, 1, 2, 4, 5, 8, 9, 0x55 };
    struct nvme_sqe sqe = {
        .opcode = q->number == 0 ? admin[any(r, sizeof(admin))] : io[any(r, sizeof(io))],
        .flags = (uint8_t)(any(r, 4) != 0 ? (q->number != 0 ? any(r, 2) << 6 : 0) : any(r, 256)),
        .nsid = any(r, 6) != 0 ? (uint32_t)any(r, 3) : any_value(r),
        .prp1 = any_address(r),
        .prp2 = any(r, 2) != 0 ? any(r, MEMORY_BYTES / 4096) * 4096 : any_address(r),
        .cdw10 = any(r, 3) != 0 ? (uint32_t)any(r, 40) : any_value(r),
        .cdw11 = any(r, 2) != 0 ? 0 : any_value(r),
        .cdw12 = any(r, 3) != 0 ? (uint32_t)any(r, 12) : any_value(r),
        .cdw13 = any(r, 3) != 0 ? 0 : any_value(r),
    };
    if ((sqe.flags & 0xc0) != 0) {
        struct nvme_sgl sgl = any_sgl(r);
        memcpy(&sqe.prp1, &sgl, sizeof(sgl));
    }
    push(r, q, sqe);
    if (any(r, 3) == 0)
        ring(r, q);
}

static void any_register(struct rig *r)
{
    static const uint32_t offset[] = { NVME_REG_CAP,   NVME_REG_VS,   NVME_REG_INTMS,
                                       NVME_REG_INTMC, NVME_REG_CSTS, NVME_REG_AQA,
                                       NVME_REG_ASQ,   NVME_REG_ACQ,  NVME_REG_CMBLOC,
                                       0xffc };
    uint64_t at = offset[any(r, sizeof(offset) / sizeof(offset[0]))];
    if (any(r, 3) == 0)
        at = any(r, NVME_BAR_BYTES);
    if (any(r, 2) != 0)
        read_at(r, BAR + at, any(r, 2) != 0 ? 4 : 8);
    else
        write_at(r, BAR + at, any(r, 2) != 0 ? 4 : 8, any_value(r) | any(r, 8) << 32);
}

/* Secondary controllers: their registers, and the management of what they have. */
static void any_secondary(struct rig *r)
{
    static const uint32_t offset[] = { NVME_REG_CC,  NVME_REG_AQA, NVME_REG_ASQ,
                                       NVME_REG_ACQ, 0x1000,       0x1008 };
    const uint64_t at = offset[any(r, sizeof(offset) / sizeof(offset[0]))];
    uint32_t value = any_value(r);
    if (at == NVME_REG_CC && any(r, 3) != 0)
        value = NVME_CC_IOSQES(6) | NVME_CC_IOCQES(4) | NVME_CC_EN;
    else if (at == NVME_REG_AQA && any(r, 3) != 0)
        value = (ENTRIES - 1) << 16 | (ENTRIES - 1);
    if (any(r, 3) != 0) {
        write_at(r, BAR_OF_VFS + any(r, N_VFS) * NVME_BAR_BYTES + at, 4, value);
        return;
    }
    static const uint32_t actions[] = { NVME_VIRTUAL_OFFLINE, NVME_VIRTUAL_ASSIGN,
                                        NVME_VIRTUAL_ASSIGN | 1 << 8, NVME_VIRTUAL_ONLINE,
                                        NVME_VIRTUAL_PRIMARY_ALLOCATE };
    push(r, &r->admin,
         (struct nvme_sqe){ .opcode = NVME_ADMIN_VIRTUALIZATION,
                            .cdw10 = actions[any(r, 5)] | (uint32_t)any(r, N_VFS + 2) << 16,
                            .cdw11 = (uint32_t)any(r, 5) });
    ring(r, &r->admin);
}

static void any_doorbell(struct rig *r)
{
    const uint64_t q = any(r, 8) != 0 ? any(r, 4) : any(r, 512);
    const uint32_t value = any(r, 6) != 0 ? (uint32_t)any(r, ENTRIES) : any_value(r);
    write_at(r, BAR + NVME_REG_DOORBELLS + 4 * q, 4, value);
}

static void any_entries(struct rig *r, struct queue *q)
{
    struct nvme_cqe cqe;
    while (poll(r, q, &cqe))
        continue;
    free_entries(r, q);
}

static void set_up_vfs(struct rig *r)
{
    unsigned at = PCI_STANDARD_END;
    while ((config(r, false, at, 0) & 0xffff) != PCI_ECAP_ID_SRIOV)
        at = config(r, false, at, 0) >> PCI_ECAP_NEXT_SHIFT;
    config(r, true, at + PCI_SRIOV_BAR0, (uint32_t)BAR_OF_VFS);
    config(r, true, at + PCI_SRIOV_BAR0 + 4, (uint32_t)(BAR_OF_VFS >> 32));
    config(r, true, at + PCI_SRIOV_NUM_VFS, N_VFS);
    config(r, true, at + PCI_SRIOV_CONTROL, PCI_SRIOV_CONTROL_ENABLE | PCI_SRIOV_CONTROL_MEMORY);
    for (unsigned v = 0; v < N_VFS; v++) {
        r->id = (uint16_t)(ID + 1 + v);
        config(r, true, PCI_COMMAND, PCI_COMMAND_BUS_MASTER);
    }
    r->id = ID;
}

static void start_again(struct rig *r)
{
    r->cc = (uint32_t)any(r, 2) << NVME_CC_AMS_SHIFT;
    r->next_free = UINT64_C(1) << 20;
    config(r, true, PCI_COMMAND, PCI_COMMAND_MEMORY);
    run_for(r, SIM_PS_PER_MS); /* the link is free again */
    config(r, true, capability(r, PCI_CAP_ID_PCIE) + PCIE_DEVCTL, DEVCTL_FLR);
    run_for(r, 200 * SIM_PS_PER_MS);
    set_up_function(r);
    set_up_vfs(r);
    enable(r);
    r->io = queue_at(1, alloc(r, 4096), alloc(r, 4096));
    uint8_t zeros[4096] = { 0 };
    physmem_write(r->memory, (struct hpa){ r->admin.cq }, zeros, sizeof(zeros));
    physmem_write(r->memory, (struct hpa){ r->io.cq }, zeros, sizeof(zeros));
    assert_int_equal(create(r, &r->io, 1), NVME_SC_SUCCESS);
}

static void any_reset(struct rig *r)
{
    switch (any(r, 4)) {
    case 0: config(r, true, PCI_COMMAND, (uint32_t)any(r, 2) << 2 | PCI_COMMAND_MEMORY); break;
    case 1: write_at(r, BAR + NVME_REG_CC, 4, any_value(r)); break;
    case 2: write_at(r, BAR + NVME_REG_CC, 4, (any_value(r) & ~0x3ff0u) | NVME_CC_EN); break;
    default: start_again(r); break;
    }
}

static void step(struct rig *r)
{
    switch (any(r, 64)) {
    case 0: any_reset(r); break;
    case 1:
    case 2:
    case 3: any_register(r); break;
    case 4:
    case 5:
    case 6:
    case 7: any_doorbell(r); break;
    case 8:
    case 9:
    case 10:
    case 11:
    case 12: any_list(r); break;
    case 18:
    case 19:
    case 20: any_secondary(r); break;
    case 13: ring(r, any(r, 2) != 0 ? &r->io : &r->admin); break;
    case 14:
    case 15:
    case 16:
    case 17: any_entries(r, any(r, 2) != 0 ? &r->io : &r->admin); break;
    default: any_command(r, any(r, 3) != 0 ? &r->io : &r->admin); break;
    }
    run_for(r, any(r, 4) * SIM_PS_PER_US);
}

static void run(unsigned seed)
{
    const char *const settings[] = { "payload",
                                     "bytes",
                                     "namespaces",
                                     "2",
                                     "cmb_bytes",
                                     "1048576",
                                     "enable_latency_us",
                                     "20",
                                     "virtual_functions",
                                     "2",
                                     "commands_max",
                                     "32",
                                     "completion_timeout_us",
                                     "100",
                                     NULL };
    struct rig r;
    open_rig(&r, settings);
    sim_random_init(&r.host.random, seed, "driver");
    for (unsigned i = 0; i < STEPS; i++) {
        if (i % 64 == 63 && any(&r, 2) != 0 && status(&r) != NVME_CSTS_RDY)
            start_again(&r);
        else
            step(&r);
    }
    const struct nvme_stats *stats = nvme_stats(r.nvme);
    print_message(
        "seed %u: %llu admin commands, %llu reads, %llu writes, %llu errors, %llu fatal\n", seed,
        (unsigned long long)stats->admin_commands, (unsigned long long)stats->reads,
        (unsigned long long)stats->writes, (unsigned long long)stats->errors,
        (unsigned long long)stats->fatal);
    assert_true(stats->errors > 1000 && stats->reads > 20 && stats->writes > 20);
    start_again(&r);
    const uint64_t at = alloc(&r, 8192);
    fill(&r, at, 5, 4096);
    assert_int_equal(command(&r, &r.io, io_at(true, 0, 8, at, 0), NULL), NVME_SC_SUCCESS);
    assert_int_equal(command(&r, &r.io, io_at(false, 0, 8, at + 4096, 0), NULL), NVME_SC_SUCCESS);
    expect(&r, at + 4096, 5, 4096, false);
    close_rig(&r);
}

static void test_random_driver(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= SEEDS; seed++)
        run(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_random_driver) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
