/*
 * The NVMe controller against a host of memory that answers reads after a fixed time: registers,
 * admin commands, queues, PRPs, errors, time by the formula, bounds of rates, resets. Sections are
 * those of NVM Express 1.3.
 */
#include "tests/models/nvme/nvme_rig.h"

/* ---- Tests ----------------------------------------------------------------------------------- */

/* 3.1.1 (CAP), 3.1.2 (VS), 3.1.5 (CC), 3.1.8 (AQA), 3.1.9 (ASQ), 3.1.12 (CMBSZ); 7.6.2
 * (shutdown). */
static void test_registers(void **state)
{
    struct rig r;
    (void)state;
    open_rig(&r, NULL);
    uint64_t cap = read_at(&r, BAR + NVME_REG_CAP, 8);
    assert_int_equal(NVME_CAP_MQES(cap), 4096);
    assert_true((cap & NVME_CAP_CQR) != 0 && (cap & NVME_CAP_CSS_NVM) != 0);
    assert_int_equal(read_at(&r, BAR + NVME_REG_VS, 4), NVME_VERSION_1_3);
    assert_int_equal(read_at(&r, BAR + NVME_REG_AQA, 4), (ENTRIES - 1) << 16 | (ENTRIES - 1));
    assert_int_equal(read_at(&r, BAR + NVME_REG_ASQ, 8), r.admin.sq);
    assert_int_equal(read_at(&r, BAR + NVME_REG_CMBSZ, 4), 0);
    /* Shutdown; then nothing answers. */
    write_at(&r, BAR + NVME_REG_CC, 4,
             NVME_CC_IOSQES(6) | NVME_CC_IOCQES(4) | NVME_CC_SHN_NORMAL | NVME_CC_EN);
    assert_int_equal(status(&r), NVME_CSTS_RDY | NVME_CSTS_SHST_COMPLETE);
    pcie_function_remove(r.nvme, 0);
    assert_int_equal(read_at(&r, BAR + NVME_REG_VS, 4), UINT64_MAX - 1);
    assert_int_equal(sim_events_pending(r.sim), 0); /* nor does it become ready again */
    close_rig(&r);
}

static void test_identify(void **state)
{
    struct rig r;
    (void)state;
    open_rig(&r, NULL);
    uint8_t page[4096];
    uint32_t n;
    uint64_t at = alloc(&r, 3 * 4096);
    /* The data may begin within a page: two PRP entries. */
    struct nvme_sqe sqe = { .opcode = NVME_ADMIN_IDENTIFY,
                            .prp1 = at + 1024,
                            .prp2 = at + 8192,
                            .cdw10 = NVME_IDENTIFY_CONTROLLER };
    assert_int_equal(command(&r, &r.admin, sqe, NULL), NVME_SC_SUCCESS);
    physmem_read(r.memory, (struct hpa){ at + 1024 }, page, 3072);
    physmem_read(r.memory, (struct hpa){ at + 8192 }, page + 3072, 1024);
    assert_int_equal(page[0] | page[1] << 8, NVME_VENDOR_INTEL);
    assert_int_equal(page[NVME_ID_CTRL_MDTS], 5);
    memcpy(&n, page + NVME_ID_CTRL_NN, 4);
    assert_int_equal(n, 1);
    sqe.cdw10 = NVME_IDENTIFY_NAMESPACE;
    assert_int_equal(command(&r, &r.admin, sqe, NULL), NVME_SC_INVALID_NAMESPACE);
    sqe.nsid = 1;
    assert_int_equal(command(&r, &r.admin, sqe, NULL), NVME_SC_SUCCESS);
    assert_int_equal(physmem_read64(r.memory, (struct hpa){ at + 1024 }), (1 << 30) / 512);
    sqe.cdw10 = 0x77;
    assert_int_equal(command(&r, &r.admin, sqe, NULL), NVME_SC_INVALID_FIELD);
    close_rig(&r);
}

static void test_admin_errors(void **state)
{
    struct rig r;
    uint32_t result = 0;
    (void)state;
    open_rig(&r, NULL);
    struct queue q = queue_at(1, alloc(&r, 4096), alloc(&r, 4096));
    assert_int_equal(create(&r, &q, 1), NVME_SC_QUEUE_ID_INVALID); /* is there */
    q.number = 32;
    assert_int_equal(create(&r, &q, 1), NVME_SC_QUEUE_ID_INVALID);
    q.number = 2;
    assert_int_equal(create(&r, &q, 32), NVME_SC_VECTOR_INVALID);
    q.entries = 4097;
    assert_int_equal(create(&r, &q, 1), NVME_SC_QUEUE_SIZE_INVALID);
    q.entries = ENTRIES;
    struct nvme_sqe sqe = { .opcode = NVME_ADMIN_CREATE_SQ,
                            .prp1 = q.sq,
                            .cdw10 = 2 | (ENTRIES - 1) << 16,
                            .cdw11 = NVME_QUEUE_CONTIGUOUS | 2 << 16 };
    assert_int_equal(command(&r, &r.admin, sqe, NULL), NVME_SC_CQ_INVALID);
    sqe = (struct nvme_sqe){ .opcode = NVME_ADMIN_DELETE_CQ, .cdw10 = 1 };
    assert_int_equal(command(&r, &r.admin, sqe, NULL), NVME_SC_QUEUE_DELETION_INVALID); /* 5.5 */
    sqe = (struct nvme_sqe){ .opcode = NVME_ADMIN_DELETE_SQ, .cdw10 = 5 };
    assert_int_equal(command(&r, &r.admin, sqe, NULL), NVME_SC_QUEUE_ID_INVALID);
    sqe = (struct nvme_sqe){ .opcode = NVME_ADMIN_ABORT };
    assert_int_equal(command(&r, &r.admin, sqe, &result), NVME_SC_SUCCESS);
    assert_int_equal(result, NVME_ABORT_NOT_ABORTED);
    sqe = (struct nvme_sqe){ .opcode = 0x7f };
    assert_int_equal(command(&r, &r.admin, sqe, NULL), NVME_SC_INVALID_OPCODE);
    /* 5.6: delete in the right order, and the doorbell is nobody's. */
    sqe = (struct nvme_sqe){ .opcode = NVME_ADMIN_DELETE_SQ, .cdw10 = 1 };
    assert_int_equal(command(&r, &r.admin, sqe, NULL), NVME_SC_SUCCESS);
    sqe = (struct nvme_sqe){ .opcode = NVME_ADMIN_DELETE_CQ, .cdw10 = 1 };
    assert_int_equal(command(&r, &r.admin, sqe, NULL), NVME_SC_SUCCESS);
    ring(&r, &r.io);
    run_for(&r, SIM_PS_PER_US);
    assert_int_equal(nvme_stats(r.nvme)->bad_doorbells, 1);
    close_rig(&r);
}

static void test_io_errors(void **state)
{
    struct rig r;
    (void)state;
    open_rig(&r, NULL);
    uint64_t at = alloc(&r, 8192);
    struct nvme_sqe sqe = io_at(false, 0, 8, at, 0);
    sqe.nsid = 2;
    assert_int_equal(command(&r, &r.io, sqe, NULL), NVME_SC_INVALID_NAMESPACE);
    sqe = io_at(false, (1 << 30) / 512 - 4, 8, at, 0);
    assert_int_equal(command(&r, &r.io, sqe, NULL), NVME_SC_LBA_OUT_OF_RANGE);
    sqe = io_at(false, 0, 257, at, at);
    assert_int_equal(command(&r, &r.io, sqe, NULL), NVME_SC_INVALID_FIELD);
    sqe = io_at(false, 0, 16, at, at + 512);
    assert_int_equal(command(&r, &r.io, sqe, NULL), NVME_SC_PRP_OFFSET_INVALID);
    sqe = io_at(false, 0, 32, at, at + 4);
    assert_int_equal(command(&r, &r.io, sqe, NULL), NVME_SC_PRP_OFFSET_INVALID);
    sqe.opcode = 0x55;
    assert_int_equal(command(&r, &r.io, sqe, NULL), NVME_SC_INVALID_OPCODE);
    sqe = (struct nvme_sqe){ .opcode = NVME_FLUSH, .nsid = 1 };
    assert_int_equal(command(&r, &r.io, sqe, NULL), NVME_SC_SUCCESS);
    assert_int_equal(nvme_stats(r.nvme)->errors, 6);
    close_rig(&r);
}

/* 4.3, 6.9 (Read), 6.14 (Write): data by chained lists that begin within a page, and a buffer that
 * begins within a line. */
static void data(const char *payload, unsigned in_page)
{
    const char *const settings[] = { "payload", payload, "transfer_bytes_max", "4194304", NULL };
    const bool tags = strcmp(payload, "tag") == 0;
    const unsigned pages = 600, bytes = pages * 4096;
    struct rig r;
    open_rig(&r, settings);
    uint64_t buffer = alloc(&r, 2 * (bytes + 8192)), list = alloc(&r, 3 * 4096);
    uint64_t back = buffer + bytes + 8192;
    for (unsigned dir = 0; dir < 2; dir++) {
        uint64_t from = dir == 0 ? buffer : back, at = list + 4096 - 16 * 8;
        /* 16 entries up to the end of a page, the last of which leads to a page in front. */
        for (unsigned i = 1; i <= pages; i++, at += 8) {
            if (at == list + 4096 - 8) {
                physmem_write64(r.memory, (struct hpa){ at }, list + 8192 - 8);
                at = list + 8192 - 8;
            }
            if (at == list + 8192 - 8 && i < pages) {
                physmem_write64(r.memory, (struct hpa){ at }, list + 8192);
                at = list + 8192;
            }
            /* A third page would be full: the last entry leads back to the first's beginning. */
            if (at == list + 3 * 4096 - 8 && i < pages) {
                physmem_write64(r.memory, (struct hpa){ at }, list);
                at = list;
            }
            physmem_write64(r.memory, (struct hpa){ at }, from + (uint64_t)i * 4096);
        }
        if (dir == 0)
            fill(&r, buffer + in_page, 77, bytes);
        struct nvme_sqe sqe = io_at(dir == 0, 9, bytes / 512, from + in_page, list + 4096 - 16 * 8);
        assert_int_equal(command(&r, &r.io, sqe, NULL), NVME_SC_SUCCESS);
    }
    expect(&r, back + in_page, 77, bytes, tags);
    assert_true(nvme_stats(r.nvme)->prp_lists >= 8);
    assert_int_equal(nvme_stats(r.nvme)->media_pages, pages + 1);
    close_rig(&r);
}

static void test_data_tags(void **state)
{
    (void)state;
    data("tag", 1024);
}

static void test_data_bytes(void **state)
{
    (void)state;
    data("bytes", 516);
}

/* 6.9, 6.14; 4.6.1.2.1 (NVME_SC_SUCCESS), 7.5: unloaded, from the doorbell to the completion's
 * arrival. */
static void test_latency(void **state)
{
    struct rig r;
    struct nvme_cqe cqe;
    (void)state;
    open_rig(&r, NULL);
    const uint64_t at = alloc(&r, 4096);
    const sim_time fetch_ps = pcie_port_wire_ps(&r.ports[0], 28) + LINK_PS   /* doorbell, 64 bits */
                              + pcie_port_wire_ps(&r.ports[0], 20) + LINK_PS /* MRd */
                              + DELAY_PS + pcie_port_wire_ps(&r.ports[0], 84) + LINK_PS;
    const sim_time end_ps = LINK_PS + pcie_port_wire_ps(&r.ports[0], 36); /* completion */
    for (unsigned write = 0; write < 2; write++) {
        push(&r, &r.io, io_at(write != 0, 64, 8, at, 0));
        sim_time start_ps = sim_now(r.sim), took_ps;
        ring(&r, &r.io);
        run_for(&r, 20 * SIM_PS_PER_US);
        assert_true(poll(&r, &r.io, &cqe));
        assert_int_equal(cqe.status, NVME_CQE_PHASE);
        took_ps = r.write_ps - start_ps;
        /* Data: 16 MWr of 256 B. Or 8 MRd of 512 B, answered in 16 completions of 256 B, the last
         * of which goes behind the seven requests before its own and its fellow. */
        sim_time data_ps = READ_PS + 16 * pcie_port_wire_ps(&r.ports[0], 276);
        if (write)
            data_ps = pcie_port_wire_ps(&r.ports[0], 20) + 2 * LINK_PS + DELAY_PS +
                      16 * pcie_port_wire_ps(&r.ports[0], 276) + WRITE_PS;
        sim_time wanted_ps = fetch_ps + data_ps + end_ps;
        sim_time off_ps = took_ps > wanted_ps ? took_ps - wanted_ps : wanted_ps - took_ps;
        /* Acknowledgements on the wire, and times rounded up. */
        if (off_ps > 5 * SIM_PS_PER_NS)
            fail_msg("write %u: %llu ps, expected %llu", write, (unsigned long long)took_ps,
                     (unsigned long long)wanted_ps);
    }
    assert_int_equal(r.n_irqs, 2);
    assert_int_equal(r.last_vector, 1);
    close_rig(&r);
}

/* n commands at once through as many queue entries as there are; how long they took. */
static sim_time many(struct rig *r, unsigned n, uint32_t blocks, uint64_t prp1, uint64_t prp2)
{
    struct nvme_cqe cqe;
    unsigned given = 0, done = 0;
    sim_time start_ps = sim_now(r->sim);
    while (done < n) {
        unsigned before = given, seen = done;
        for (; given < n && given - done < ENTRIES - 1; given++)
            push(r, &r->io, io_at(false, given % 1000 * 8, blocks, prp1, prp2));
        if (given != before)
            ring(r, &r->io);
        run_for(r, 200 * SIM_PS_PER_NS);
        for (; poll(r, &r->io, &cqe); done++)
            assert_int_equal(cqe.status >> 1, NVME_SC_SUCCESS);
        if (done != seen)
            free_entries(r, &r->io);
        assert_true(sim_now(r->sim) - start_ps < 100 * SIM_PS_PER_MS);
    }
    return sim_now(r->sim) - start_ps;
}

/* Commands are bounded by their interval, data by the media. */
static void test_rates(void **state)
{
    struct rig r;
    (void)state;
    open_rig(&r, NULL);
    uint64_t at = alloc(&r, 4096);
    double took_ns = (double)many(&r, 2000, 1, at, 0) / 1000.0;
    assert_true(took_ns >= 2000 * 1700.0 && took_ns <= 2000 * 1700.0 * 1.01);
    took_ns = (double)many(&r, 2000, 8, at, 0) / 1000.0;
    assert_true(took_ns >= 2000 * 4096 / 2.4 && took_ns <= 2000 * 4096 / 2.4 * 1.01);
    assert_int_equal(nvme_stats(r.nvme)->reads, 4000);
    assert_true(nvme_stats(r.nvme)->sqe_fetches < 4000);
    close_rig(&r);
}

/* 4.1, 4.6: a completion queue that nobody empties holds the rest back, and nothing is lost. */
static void test_full_queue(void **state)
{
    struct rig r;
    struct nvme_cqe cqe;
    unsigned n = 0;
    (void)state;
    open_rig(&r, NULL);
    struct queue q = queue_at(2, alloc(&r, 4096), alloc(&r, 4096));
    q.entries = 8;
    assert_int_equal(create(&r, &q, 2), NVME_SC_SUCCESS);
    /* Another submission queue with room for more than the completion queue has. */
    struct queue big = queue_at(3, alloc(&r, 4096), q.cq);
    struct nvme_sqe sq = { .opcode = NVME_ADMIN_CREATE_SQ,
                           .prp1 = big.sq,
                           .cdw10 = 3 | (ENTRIES - 1) << 16,
                           .cdw11 = NVME_QUEUE_CONTIGUOUS | 2 << 16 };
    assert_int_equal(command(&r, &r.admin, sq, NULL), NVME_SC_SUCCESS);
    uint64_t at = alloc(&r, 4096);
    for (unsigned i = 0; i < 50; i++)
        push(&r, &big, io_at(false, i, 1, at, 0));
    ring(&r, &big);
    run_for(&r, 200 * SIM_PS_PER_US);
    uint64_t cqes = nvme_stats(r.nvme)->cqes;
    run_for(&r, 200 * SIM_PS_PER_US);
    assert_int_equal(nvme_stats(r.nvme)->cqes, cqes);
    while (n < 50) {
        uint16_t expected = (uint16_t)n;
        assert_true(poll(&r, &q, &cqe));
        assert_int_equal(cqe.cid, expected);
        n++;
        free_entries(&r, &q);
        run_for(&r, 2 * SIM_PS_PER_US);
    }
    assert_int_equal(nvme_stats(r.nvme)->cq_waits, 50 - 7);
    assert_false(poll(&r, &q, &cqe));
    close_rig(&r);
}

/* 3.1.11, 3.1.12, 4.7; 4.6.1.2.1: queue, list and data in the controller's own buffer: not one read
 * leaves it. */
static void test_cmb(void **state)
{
    const char *const settings[] = { "cmb_bytes", "1048576", "payload", "bytes", NULL };
    struct rig r;
    uint64_t found;
    (void)state;
    open_rig(&r, settings);
    uint32_t size = (uint32_t)read_at(&r, BAR + NVME_REG_CMBSZ, 4);
    assert_int_equal(NVME_CMBSZ_BYTES(size), 1048576);
    assert_int_equal(read_at(&r, BAR + NVME_REG_CMBLOC, 4) & NVME_CMBLOC_BAR_MASK, 2);
    struct queue q = queue_at(2, CMB, alloc(&r, 4096));
    assert_int_equal(create(&r, &q, 2), NVME_SC_SUCCESS);
    for (unsigned i = 0; i < 4096; i += 8)
        write_at(&r, CMB + 8192 + i, 8, i * UINT64_C(0x0101010101010101));
    run_for(&r, 10 * SIM_PS_PER_US);
    uint64_t reads = r.n_reads;
    assert_int_equal(command(&r, &q, io_at(true, 0, 8, CMB + 8192, 0), NULL), 0);
    assert_int_equal(command(&r, &q, io_at(false, 0, 8, CMB + 16384, 0), NULL), 0);
    assert_int_equal(r.n_reads, reads);
    assert_int_equal(nvme_stats(r.nvme)->cmb_fetches, 2);
    for (unsigned i = 0; i < 4096; i += 512) {
        found = read_at(&r, CMB + 16384 + i, 8);
        assert_int_equal(found, i * UINT64_C(0x0101010101010101));
    }
    /* A queue that would stick out of it. */
    struct nvme_sqe out = { .opcode = NVME_ADMIN_CREATE_CQ,
                            .prp1 = CMB + 1048576 - 4096,
                            .cdw10 = 3 | 511 << 16,
                            .cdw11 = NVME_QUEUE_CONTIGUOUS };
    assert_int_equal(command(&r, &r.admin, out, NULL), NVME_SC_CMB_USE_INVALID);
    out.cdw10 = 3 | 255 << 16;
    assert_int_equal(command(&r, &r.admin, out, NULL), NVME_SC_SUCCESS);
    close_rig(&r);
}

/* 3.1.6, 7.3.2: in the midst of work: CSTS.RDY goes when nothing is under way, and nothing is
 * written after. */
static void test_reset(void **state)
{
    struct rig r;
    (void)state;
    open_rig(&r, NULL);
    uint64_t at = alloc(&r, 4096);
    for (unsigned round = 0; round < 5; round++) {
        for (unsigned i = 0; i < 40; i++)
            push(&r, &r.io, io_at(i % 2 != 0, i * 8, 8, at, 0));
        ring(&r, &r.io);
        run_for(&r, (1 + round * 7) * SIM_PS_PER_US);
        write_at(&r, BAR + NVME_REG_CC, 4, 0);
        while (status(&r) != 0)
            assert_true(sim_now(r.sim) < 1000 * SIM_PS_PER_MS);
        uint64_t writes = r.n_writes, reads = r.n_reads;
        run_for(&r, SIM_PS_PER_MS);
        assert_int_equal(r.n_writes, writes);
        assert_int_equal(r.n_reads, reads);
        enable(&r);
        r.io = queue_at(1, alloc(&r, 4096), alloc(&r, 4096));
        assert_int_equal(create(&r, &r.io, 1), NVME_SC_SUCCESS);
        assert_int_equal(command(&r, &r.io, io_at(false, 0, 8, at, 0), NULL), 0);
    }
    assert_int_equal(nvme_stats(r.nvme)->resets, 5);
    close_rig(&r);
}

/* 7.3.2, 3.1.10 (ACQ): the media keep what they had; all else is as at power-on. */
static void test_function_reset(void **state)
{
    struct rig r;
    (void)state;
    open_rig(&r, NULL);
    uint64_t at = alloc(&r, 8192);
    fill(&r, at, 5, 4096);
    assert_int_equal(command(&r, &r.io, io_at(true, 0, 8, at, 0), NULL), 0);
    push(&r, &r.io, io_at(false, 0, 8, at + 4096, 0));
    ring(&r, &r.io);
    run_for(&r, 2 * SIM_PS_PER_US);
    unsigned cap = capability(&r, PCI_CAP_ID_PCIE);
    config(&r, true, cap + PCIE_DEVCTL, DEVCTL_FLR);
    run_for(&r, 100 * SIM_PS_PER_MS);
    set_up_function(&r);
    assert_int_equal(status(&r), 0);
    assert_int_equal(read_at(&r, BAR + NVME_REG_ASQ, 8), 0);
    assert_int_equal(read_at(&r, BAR + NVME_REG_ACQ, 8), 0);
    enable(&r);
    r.io = queue_at(1, alloc(&r, 4096), alloc(&r, 4096));
    assert_int_equal(create(&r, &r.io, 1), NVME_SC_SUCCESS);
    assert_int_equal(command(&r, &r.io, io_at(false, 0, 8, at + 4096, 0), NULL), 0);
    expect(&r, at + 4096, 5, 4096, true);
    assert_int_equal(r.nvme->ports[0].function->stats.resets, 1);
    close_rig(&r);
}

/* PCIe Base 3.1, 6.6.2: the next user of the function reads nothing of the last one: neither memory
 * buffer, queues in it, doorbells, nor the error log. */
static void test_function_reset_forgets(void **state)
{
    const char *const settings[] = { "cmb_bytes", "65536", NULL };
    struct rig r;
    (void)state;
    open_rig(&r, settings);
    struct queue q = queue_at(2, CMB, alloc(&r, 4096));
    assert_int_equal(create(&r, &q, 2), NVME_SC_SUCCESS);
    for (unsigned i = 0; i < 65536; i += 4096)
        write_at(&r, CMB + i + 4088, 8, UINT64_C(0x5ec2e75ec2e75ec2));
    assert_int_not_equal(
        command(&r, &q, io_at(false, UINT64_C(1) << 60, 8, alloc(&r, 4096), 0), NULL), 0);
    write_at(&r, BAR + NVME_REG_DOORBELLS + 8 * 2, 4, 3);
    struct nvme_error_entry entry;
    assert_int_equal(get_log(&r, NVME_LOG_ERROR, 0, &entry, sizeof(entry)), NVME_SC_SUCCESS);
    assert_true(entry.count != 0);
    config(&r, true, capability(&r, PCI_CAP_ID_PCIE) + PCIE_DEVCTL, DEVCTL_FLR);
    run_for(&r, 100 * SIM_PS_PER_MS);
    set_up_function(&r);
    for (unsigned i = 0; i < 65536; i += 8)
        assert_int_equal(read_at(&r, CMB + i, 8), 0);
    for (unsigned offset = NVME_REG_CC; offset <= NVME_REG_ACQ + 4; offset += 4)
        if (offset != NVME_REG_CC + 4) /* reserved */
            assert_int_equal(read_at(&r, BAR + offset, 4), 0);
    enable(&r);
    assert_int_equal(get_log(&r, NVME_LOG_ERROR, 0, &entry, sizeof(entry)), NVME_SC_SUCCESS);
    assert_int_equal(entry.count | entry.lba, 0);
    close_rig(&r);
}

/* The media are slow to let go of a read: whoever sets the function up meanwhile is not forgotten.
 */
static void test_function_reset_slow(void **state)
{
    const char *const settings[] = { "read_latency_ns", "50000000", NULL };
    struct rig r;
    (void)state;
    open_rig(&r, settings);
    push(&r, &r.io, io_at(false, 0, 8, alloc(&r, 4096), 0));
    ring(&r, &r.io);
    run_for(&r, 100 * SIM_PS_PER_US);
    config(&r, true, capability(&r, PCI_CAP_ID_PCIE) + PCIE_DEVCTL, DEVCTL_FLR);
    set_up_function(&r);
    begin_enable(&r);
    run_for(&r, 60 * SIM_PS_PER_MS);
    assert_int_equal(status(&r), NVME_CSTS_RDY);
    r.io = queue_at(1, alloc(&r, 4096), alloc(&r, 4096));
    assert_int_equal(create(&r, &r.io, 1), NVME_SC_SUCCESS);
    assert_int_equal(command(&r, &r.io, io_at(true, 0, 8, alloc(&r, 4096), 0), NULL), 0);
    close_rig(&r);
}

/* 9.5: memory that does not answer: an admin command cannot be fetched, which is fatal; a reset
 * helps. */
static void test_silence(void **state)
{
    const char *const settings[] = { "completion_timeout_us", "100", NULL };
    struct rig r;
    (void)state;
    open_rig(&r, settings);
    uint64_t at = alloc(&r, 4096);
    r.silent = true;
    push(&r, &r.admin, io_at(false, 0, 8, at, 0));
    ring(&r, &r.admin);
    run_for(&r, SIM_PS_PER_MS);
    assert_int_equal(status(&r), NVME_CSTS_RDY | NVME_CSTS_CFS);
    assert_int_equal(nvme_stats(r.nvme)->fatal, 1);
    r.silent = false;
    write_at(&r, BAR + NVME_REG_CC, 4, 0);
    run_for(&r, SIM_PS_PER_MS);
    assert_int_equal(status(&r), 0);
    enable(&r);
    r.io = queue_at(1, alloc(&r, 4096), alloc(&r, 4096));
    assert_int_equal(create(&r, &r.io, 1), NVME_SC_SUCCESS);
    assert_int_equal(command(&r, &r.io, io_at(false, 0, 8, at, 0), NULL), 0);
    close_rig(&r);
}

/* 5.2: of another queue that is its own affair: it rests, the event says so, others go on; deleted
 * and created again it works. */
static void test_silence_of_one_queue(void **state)
{
    const char *const settings[] = { "completion_timeout_us", "100", NULL };
    struct rig r;
    (void)state;
    open_rig(&r, settings);
    uint64_t at = alloc(&r, 4096);
    struct queue other = queue_at(2, alloc(&r, 4096), alloc(&r, 4096));
    assert_int_equal(create(&r, &other, 1), NVME_SC_SUCCESS);
    push(&r, &r.admin, (struct nvme_sqe){ .opcode = NVME_ADMIN_ASYNC_EVENT });
    ring(&r, &r.admin);
    run_for(&r, SIM_PS_PER_MS);
    r.silent = true;
    push(&r, &r.io, io_at(false, 0, 8, at, 0));
    ring(&r, &r.io);
    run_for(&r, SIM_PS_PER_MS);
    r.silent = false;
    const uint64_t fetches = nvme_stats(r.nvme)->sqe_fetches;
    run_for(&r, SIM_PS_PER_MS);
    assert_int_equal(nvme_stats(r.nvme)->sqe_fetches, fetches); /* it is not tried again */
    assert_int_equal(status(&r), NVME_CSTS_RDY);
    assert_int_equal(nvme_stats(r.nvme)->fatal, 0);
    assert_int_equal(nvme_stats(r.nvme)->stopped_queues, 1);
    struct nvme_cqe cqe;
    assert_true(poll(&r, &r.admin, &cqe));
    free_entries(&r, &r.admin);
    assert_int_equal(cqe.result,
                     NVME_EVENT_ERROR | NVME_EVENT_TRANSIENT << 8 | NVME_LOG_ERROR << 16);
    assert_int_equal(command(&r, &other, io_at(false, 0, 8, at, 0), NULL), 0);
    /* Its entry will not be fetched: an Abort of it does not wait for that. */
    struct nvme_sqe sqe = { .opcode = NVME_ADMIN_ABORT, .cdw10 = 1 };
    uint32_t result;
    assert_int_equal(command(&r, &r.admin, sqe, &result), NVME_SC_SUCCESS);
    assert_int_equal(result, NVME_ABORT_NOT_ABORTED);
    sqe = (struct nvme_sqe){ .opcode = NVME_ADMIN_DELETE_SQ, .cdw10 = 1 };
    assert_int_equal(command(&r, &r.admin, sqe, NULL), NVME_SC_SUCCESS);
    sqe.opcode = NVME_ADMIN_DELETE_CQ;
    assert_int_equal(command(&r, &r.admin, sqe, NULL), NVME_SC_SUCCESS);
    r.io = queue_at(1, alloc(&r, 4096), alloc(&r, 4096));
    assert_int_equal(create(&r, &r.io, 1), NVME_SC_SUCCESS);
    assert_int_equal(command(&r, &r.io, io_at(false, 0, 8, at, 0), NULL), 0);
    close_rig(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_registers),
        cmocka_unit_test(test_identify),
        cmocka_unit_test(test_admin_errors),
        cmocka_unit_test(test_io_errors),
        cmocka_unit_test(test_data_tags),
        cmocka_unit_test(test_data_bytes),
        cmocka_unit_test(test_latency),
        cmocka_unit_test(test_rates),
        cmocka_unit_test(test_full_queue),
        cmocka_unit_test(test_cmb),
        cmocka_unit_test(test_reset),
        cmocka_unit_test(test_function_reset),
        cmocka_unit_test(test_function_reset_forgets),
        cmocka_unit_test(test_function_reset_slow),
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_silence_of_one_queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
