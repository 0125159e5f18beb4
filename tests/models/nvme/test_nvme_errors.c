/*
 * The answer to each wrong field of a command: status, Do Not Retry, More, and the entry of the
 * Error Information log (5.14.1.1); the head of the submission queue and the phase (4.6) are
 * checked by the rig with each completion. Sections are those of NVM Express 1.3; statuses are
 * those of 4.6.1.2.1 and 4.6.1.2.2.
 */
#include "tests/models/nvme/nvme_rig.h"

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))
#define AT(FIELD)   ((uint16_t)offsetof(struct nvme_sqe, FIELD))
#define BIT(n)      ((n) / 8 | (n) % 8 << 8) /* added to AT(): byte and bit */
#define NOWHERE     0xffff
#define PAGE        UINT64_C(0x8000000)    /* two pages that alloc() does not reach */
#define LAST        ((1u << 30) / 512 - 1) /* block */
#define SIZE(n)     (((n)-1u) << 16)

struct wrong {
    const char *what;
    struct nvme_sqe sqe;
    unsigned status;
    uint16_t location;
    bool retry; /* may succeed another time: DNR is clear */
};

static void newest_error(struct rig *r, struct nvme_error_entry *entry)
{
    assert_int_equal(get_log(r, NVME_LOG_ERROR, 0, entry, sizeof(*entry)), NVME_SC_SUCCESS);
}

/* One after the other: nothing of them stays. */
static void refused(struct rig *r, struct queue *q, const struct wrong *wrong, size_t n)
{
    struct nvme_error_entry entry;
    newest_error(r, &entry);
    uint64_t count = entry.count;
    for (size_t i = 0; i < n; i++) {
        const uint16_t cid = q->tail;
        unsigned found = command(r, q, wrong[i].sqe, NULL);
        if (found != wrong[i].status)
            fail_msg("%s: status %#x, expected %#x", wrong[i].what, found, wrong[i].status);
        if (((r->status & NVME_STATUS_DNR) == 0) != wrong[i].retry)
            fail_msg("%s: Do Not Retry is wrong in %#x", wrong[i].what, r->status);
        const uint32_t status = r->status;
        assert_true((status & NVME_STATUS_MORE) != 0);
        newest_error(r, &entry);
        assert_int_equal(entry.count, ++count);
        assert_int_equal(entry.sq_id, q->number);
        assert_int_equal(entry.cid, cid);
        assert_int_equal(entry.status >> 1, status);
        assert_int_equal(entry.nsid, wrong[i].sqe.nsid);
        if (entry.location != wrong[i].location)
            fail_msg("%s: location %#x, expected %#x", wrong[i].what, entry.location,
                     wrong[i].location);
    }
    assert_int_equal(nvme_stats(r->nvme)->errors, count);
}

#define CREATE_CQ(PRP, DW10, DW11)                                                \
    {                                                                             \
        .opcode = NVME_ADMIN_CREATE_CQ, .prp1 = PRP, .cdw10 = DW10, .cdw11 = DW11 \
    }
#define CREATE_SQ(PRP, DW10, DW11)                                                \
    {                                                                             \
        .opcode = NVME_ADMIN_CREATE_SQ, .prp1 = PRP, .cdw10 = DW10, .cdw11 = DW11 \
    }

static const struct wrong wrong_queues[] = {
    { "opcode", { .opcode = 0x7f }, NVME_SC_INVALID_OPCODE, AT(opcode), false },
    { "fused",
      { .opcode = NVME_ADMIN_IDENTIFY, .flags = 1 },
      NVME_SC_INVALID_FIELD,
      AT(flags),
      false },
    { "SGL",
      { .opcode = NVME_ADMIN_IDENTIFY, .flags = 0x40 },
      NVME_SC_INVALID_FIELD,
      AT(flags),
      false },
    { "CQ 0", CREATE_CQ(PAGE, SIZE(8), 1), NVME_SC_QUEUE_ID_INVALID, AT(cdw10), false },
    { "CQ is there", CREATE_CQ(PAGE, 1 | SIZE(8), 1), NVME_SC_QUEUE_ID_INVALID, AT(cdw10), false },
    { "CQ 32", CREATE_CQ(PAGE, 32 | SIZE(8), 1), NVME_SC_QUEUE_ID_INVALID, AT(cdw10), false },
    { "one entry", CREATE_CQ(PAGE, 2 | SIZE(1), 1), NVME_SC_QUEUE_SIZE_INVALID, AT(cdw10) + BIT(16),
      false },
    { "4097 entries", CREATE_CQ(PAGE, 2 | SIZE(4097), 1), NVME_SC_QUEUE_SIZE_INVALID,
      AT(cdw10) + BIT(16), false },
    { "not contiguous", CREATE_CQ(PAGE, 2 | SIZE(8), 0), NVME_SC_INVALID_FIELD, AT(cdw11), false },
    { "offset", CREATE_CQ(PAGE + 64, 2 | SIZE(8), 1), NVME_SC_PRP_OFFSET_INVALID, AT(prp1), false },
    { "vector 32", CREATE_CQ(PAGE, 2 | SIZE(8), 3 | 32 << 16), NVME_SC_VECTOR_INVALID,
      AT(cdw11) + BIT(16), false },
    { "SQ is there", CREATE_SQ(PAGE, 1 | SIZE(8), 1 | 1 << 16), NVME_SC_QUEUE_ID_INVALID, AT(cdw10),
      false },
    { "SQ to CQ 0", CREATE_SQ(PAGE, 2 | SIZE(8), 1), NVME_SC_QUEUE_ID_INVALID, AT(cdw11) + BIT(16),
      false },
    { "SQ to CQ 32", CREATE_SQ(PAGE, 2 | SIZE(8), 1 | 32 << 16), NVME_SC_QUEUE_ID_INVALID,
      AT(cdw11) + BIT(16), false },
    { "SQ to no CQ", CREATE_SQ(PAGE, 2 | SIZE(8), 1 | 2 << 16), NVME_SC_CQ_INVALID,
      AT(cdw11) + BIT(16), true },
    { "CQ in use",
      { .opcode = NVME_ADMIN_DELETE_CQ, .cdw10 = 1 },
      NVME_SC_QUEUE_DELETION_INVALID,
      AT(cdw10),
      true },
    { "no CQ",
      { .opcode = NVME_ADMIN_DELETE_CQ, .cdw10 = 7 },
      NVME_SC_QUEUE_ID_INVALID,
      AT(cdw10),
      false },
    { "delete CQ 0",
      { .opcode = NVME_ADMIN_DELETE_CQ },
      NVME_SC_QUEUE_ID_INVALID,
      AT(cdw10),
      false },
    { "no SQ",
      { .opcode = NVME_ADMIN_DELETE_SQ, .cdw10 = 7 },
      NVME_SC_QUEUE_ID_INVALID,
      AT(cdw10),
      false },
    { "delete SQ 0",
      { .opcode = NVME_ADMIN_DELETE_SQ },
      NVME_SC_QUEUE_ID_INVALID,
      AT(cdw10),
      false },
    { "abort in no SQ",
      { .opcode = NVME_ADMIN_ABORT, .cdw10 = 7 },
      NVME_SC_INVALID_FIELD,
      AT(cdw10),
      false },
};

/* 4.2 (flags), 5.3 to 5.6 (queues). */
/* 5.1, 5.3, 5.4, 5.5, 5.6. */
static void test_wrong_queues(void **state)
{
    struct rig r;
    (void)state;
    open_rig(&r, NULL);
    refused(&r, &r.admin, wrong_queues, N_OF(wrong_queues));
    close_rig(&r);
}

static const struct wrong wrong_admin_fields[] = {
    { "CNS",
      { .opcode = NVME_ADMIN_IDENTIFY, .prp1 = PAGE, .cdw10 = 0x77 },
      NVME_SC_INVALID_FIELD,
      AT(cdw10),
      false },
    { "namespace 0",
      { .opcode = NVME_ADMIN_IDENTIFY, .prp1 = PAGE },
      NVME_SC_INVALID_NAMESPACE,
      AT(nsid),
      false },
    { "namespace 2",
      { .opcode = NVME_ADMIN_IDENTIFY, .nsid = 2, .prp1 = PAGE, .cdw10 = 3 },
      NVME_SC_INVALID_NAMESPACE,
      AT(nsid),
      false },
    { "list from the last on",
      { .opcode = NVME_ADMIN_IDENTIFY, .nsid = UINT32_MAX, .prp1 = PAGE, .cdw10 = 2 },
      NVME_SC_INVALID_NAMESPACE,
      AT(nsid),
      false },
    { "data",
      { .opcode = NVME_ADMIN_IDENTIFY, .prp1 = PAGE + 2, .cdw10 = 1 },
      NVME_SC_PRP_OFFSET_INVALID,
      AT(prp1),
      false },
    { "more data",
      { .opcode = NVME_ADMIN_IDENTIFY, .prp1 = PAGE + 64, .prp2 = PAGE + 64, .cdw10 = 1 },
      NVME_SC_PRP_OFFSET_INVALID,
      AT(prp2),
      false },
    { "log",
      { .opcode = NVME_ADMIN_GET_LOG, .prp1 = PAGE, .cdw10 = 0x77 },
      NVME_SC_LOG_PAGE_INVALID,
      AT(cdw10),
      false },
    { "log above MDTS",
      { .opcode = NVME_ADMIN_GET_LOG, .prp1 = PAGE, .cdw10 = 1 | 0x8000u << 16 },
      NVME_SC_INVALID_FIELD,
      AT(cdw10) + BIT(16),
      false },
    { "odd offset",
      { .opcode = NVME_ADMIN_GET_LOG, .prp1 = PAGE, .cdw10 = 2, .cdw12 = 2 },
      NVME_SC_INVALID_FIELD,
      AT(cdw12),
      false },
    { "offset behind the log",
      { .opcode = NVME_ADMIN_GET_LOG, .prp1 = PAGE, .cdw10 = 2, .cdw12 = 516 },
      NVME_SC_INVALID_FIELD,
      AT(cdw12),
      false },
    { "feature",
      { .opcode = NVME_ADMIN_GET_FEATURES, .cdw10 = 0x77 },
      NVME_SC_INVALID_FIELD,
      AT(cdw10),
      false },
    { "feature to set",
      { .opcode = NVME_ADMIN_SET_FEATURES, .cdw10 = 3 },
      NVME_SC_INVALID_FIELD,
      AT(cdw10),
      false },
    { "select",
      { .opcode = NVME_ADMIN_GET_FEATURES, .cdw10 = 1 | 4 << 8 },
      NVME_SC_INVALID_FIELD,
      AT(cdw10) + BIT(8),
      false },
    { "save what is not saved",
      { .opcode = NVME_ADMIN_SET_FEATURES, .cdw10 = 7 | NVME_FEATURE_SAVE },
      NVME_SC_FEATURE_NOT_SAVEABLE,
      AT(cdw10) + BIT(31),
      false },
    { "of a namespace",
      { .opcode = NVME_ADMIN_SET_FEATURES, .nsid = 1, .cdw10 = 1 },
      NVME_SC_FEATURE_NOT_PER_NAMESPACE,
      AT(nsid),
      false },
    { "not of a namespace",
      { .opcode = NVME_ADMIN_SET_FEATURES, .cdw10 = 5 },
      NVME_SC_INVALID_NAMESPACE,
      AT(nsid),
      false },
    { "DULBE",
      { .opcode = NVME_ADMIN_SET_FEATURES, .nsid = 1, .cdw10 = 5, .cdw11 = 1 << 16 },
      NVME_SC_INVALID_FIELD,
      AT(cdw11) + BIT(16),
      false },
    { "power state",
      { .opcode = NVME_ADMIN_SET_FEATURES, .cdw10 = 2, .cdw11 = 1 },
      NVME_SC_INVALID_FIELD,
      AT(cdw11),
      false },
    { "sensor",
      { .opcode = NVME_ADMIN_SET_FEATURES, .cdw10 = 4, .cdw11 = 1 << 16 },
      NVME_SC_INVALID_FIELD,
      AT(cdw11) + BIT(16),
      false },
    { "threshold",
      { .opcode = NVME_ADMIN_SET_FEATURES, .cdw10 = 4, .cdw11 = 2 << 20 },
      NVME_SC_INVALID_FIELD,
      AT(cdw11) + BIT(20),
      false },
    { "vector",
      { .opcode = NVME_ADMIN_GET_FEATURES, .cdw10 = 9, .cdw11 = 32 },
      NVME_SC_INVALID_FIELD,
      AT(cdw11),
      false },
    { "65536 queues",
      { .opcode = NVME_ADMIN_SET_FEATURES, .cdw10 = 7, .cdw11 = 0xffff },
      NVME_SC_INVALID_FIELD,
      AT(cdw11),
      false },
    { "queues are there",
      { .opcode = NVME_ADMIN_SET_FEATURES, .cdw10 = 7, .cdw11 = 0x10001 },
      NVME_SC_SEQUENCE_ERROR,
      NOWHERE,
      false },
};

/* 5.13, 5.14, 5.15, 5.21. */
/* 5.13, 5.14, 5.15, 5.21. */
static void test_wrong_admin_fields(void **state)
{
    struct rig r;
    (void)state;
    open_rig(&r, NULL);
    refused(&r, &r.admin, wrong_admin_fields, N_OF(wrong_admin_fields));
    close_rig(&r);
}

static const struct wrong wrong_io_fields[] = {
    { "opcode", { .opcode = 0x55, .nsid = 1 }, NVME_SC_INVALID_OPCODE, AT(opcode), false },
    { "fused",
      { .opcode = NVME_COMPARE, .flags = 1, .nsid = 1 },
      NVME_SC_INVALID_FIELD,
      AT(flags),
      false },
    { "PSDT",
      { .opcode = NVME_READ, .flags = 0xc0, .nsid = 1 },
      NVME_SC_INVALID_FIELD,
      AT(flags) + BIT(6),
      false },
    { "namespace 0",
      { .opcode = NVME_READ, .prp1 = PAGE },
      NVME_SC_INVALID_NAMESPACE,
      AT(nsid),
      false },
    { "namespace 2",
      { .opcode = NVME_FLUSH, .nsid = 2 },
      NVME_SC_INVALID_NAMESPACE,
      AT(nsid),
      false },
    { "all namespaces",
      { .opcode = NVME_READ, .nsid = NVME_NSID_ALL, .prp1 = PAGE },
      NVME_SC_INVALID_NAMESPACE,
      AT(nsid),
      false },
    { "read behind the end",
      { .opcode = NVME_READ, .nsid = 1, .prp1 = PAGE, .cdw10 = LAST + 1 },
      NVME_SC_LBA_OUT_OF_RANGE,
      AT(cdw10),
      false },
    { "over the end",
      { .opcode = NVME_WRITE, .nsid = 1, .prp1 = PAGE, .cdw10 = LAST, .cdw12 = 1 },
      NVME_SC_LBA_OUT_OF_RANGE,
      AT(cdw10),
      false },
    { "2^64",
      { .opcode = NVME_READ, .nsid = 1, .cdw10 = UINT32_MAX, .cdw11 = UINT32_MAX },
      NVME_SC_LBA_OUT_OF_RANGE,
      AT(cdw10),
      false },
    { "zeroes",
      { .opcode = NVME_WRITE_ZEROES, .nsid = 1, .cdw10 = LAST, .cdw12 = 1 },
      NVME_SC_LBA_OUT_OF_RANGE,
      AT(cdw10),
      false },
    { "uncorrectable",
      { .opcode = NVME_WRITE_UNCORRECTABLE, .nsid = 1, .cdw11 = 1 },
      NVME_SC_LBA_OUT_OF_RANGE,
      AT(cdw10),
      false },
    { "compare",
      { .opcode = NVME_COMPARE, .nsid = 1, .cdw11 = 1 },
      NVME_SC_LBA_OUT_OF_RANGE,
      AT(cdw10),
      false },
    { "range",
      { .opcode = NVME_DATASET, .nsid = 1, .prp1 = PAGE + 4096, .cdw11 = 4 },
      NVME_SC_LBA_OUT_OF_RANGE,
      AT(prp1),
      false },
    { "above MDTS",
      { .opcode = NVME_READ, .nsid = 1, .prp1 = PAGE, .cdw12 = 256 },
      NVME_SC_INVALID_FIELD,
      AT(cdw12),
      false },
    { "PRP 1",
      { .opcode = NVME_DATASET, .nsid = 1, .prp1 = PAGE + 2 },
      NVME_SC_PRP_OFFSET_INVALID,
      AT(prp1),
      false },
    { "PRP 2",
      { .opcode = NVME_READ, .nsid = 1, .prp1 = PAGE, .prp2 = PAGE + 512, .cdw12 = 15 },
      NVME_SC_PRP_OFFSET_INVALID,
      AT(prp2),
      false },
    { "list's place",
      { .opcode = NVME_READ, .nsid = 1, .prp1 = PAGE, .prp2 = PAGE + 4, .cdw12 = 31 },
      NVME_SC_PRP_OFFSET_INVALID,
      AT(prp2),
      false },
    { "list's entry",
      { .opcode = NVME_READ, .nsid = 1, .prp1 = PAGE, .prp2 = PAGE, .cdw12 = 31 },
      NVME_SC_PRP_OFFSET_INVALID,
      AT(prp2),
      false },
    { "list that is nowhere",
      { .opcode = NVME_READ, .nsid = 1, .prp1 = PAGE, .prp2 = MEMORY_BYTES + 4096, .cdw12 = 31 },
      NVME_SC_DATA_TRANSFER_ERROR,
      AT(prp2),
      true },
    { "data that is nowhere",
      { .opcode = NVME_WRITE, .nsid = 1, .prp1 = MEMORY_BYTES + 4096 },
      NVME_SC_DATA_TRANSFER_ERROR,
      AT(prp1),
      true },
};

/* 4.3 (PRP), 6.1.5 (range), 6.6 to 6.9, 6.14 to 6.16. */
/* 4.3, 6.6, 6.7, 6.8, 6.9, 6.14, 6.15, 6.16. */
static void test_wrong_io_fields(void **state)
{
    struct rig r;
    (void)state;
    open_rig(&r, NULL);
    physmem_write64(r.memory, (struct hpa){ PAGE }, PAGE + 64);
    const struct nvme_range range = { .blocks = 2, .first = LAST };
    physmem_write(r.memory, (struct hpa){ PAGE + 4096 }, (const uint8_t *)&range, sizeof(range));
    refused(&r, &r.io, wrong_io_fields, N_OF(wrong_io_fields));
    close_rig(&r);
}

/* A list that leads back to itself: 4.3 says nothing of it; it ends. */
static void test_list_without_end(void **state)
{
    struct rig r;
    (void)state;
    open_rig(&r, NULL);
    const uint64_t at = alloc(&r, 8192), loop = at + 8192 - 8;
    physmem_write64(r.memory, (struct hpa){ loop }, loop);
    struct nvme_sqe sqe = io_at(false, 0, 32, at, loop);
    assert_int_equal(command(&r, &r.io, sqe, NULL), NVME_SC_PRP_OFFSET_INVALID);
    close_rig(&r);
}

/* 5.14.1.1: newest first, as many as ELPE says; parts of the page. */
static void test_error_log(void **state)
{
    struct rig r;
    struct nvme_error_entry entry[64];
    (void)state;
    open_rig(&r, NULL);
    for (unsigned i = 0; i < 70; i++) {
        struct nvme_sqe sqe = io_at(false, UINT64_C(1) << 40 | i, 1, 0, 0);
        assert_int_equal(command(&r, &r.io, sqe, NULL), NVME_SC_LBA_OUT_OF_RANGE);
    }
    assert_int_equal(get_log(&r, NVME_LOG_ERROR, 0, entry, sizeof(entry)), NVME_SC_SUCCESS);
    for (unsigned i = 0; i < 64; i++) {
        assert_int_equal(entry[i].count, 70 - i);
        assert_int_equal(entry[i].lba, UINT64_C(1) << 40 | (69 - i));
    }
    uint64_t at = alloc(&r, 4096);
    struct nvme_sqe part = {
        .opcode = NVME_ADMIN_GET_LOG, .prp1 = at, .cdw10 = NVME_LOG_ERROR | 1 << 16, .cdw12 = 3 * 64
    };
    assert_int_equal(command(&r, &r.admin, part, NULL), NVME_SC_SUCCESS);
    assert_int_equal(physmem_read64(r.memory, (struct hpa){ at }), 70 - 3);
    assert_int_equal(physmem_read64(r.memory, (struct hpa){ at + 8 }), 0); /* 8 bytes came */
    close_rig(&r);
}

/* 3.1.5, 3.1.6, 3.1.8: what CAP does not offer is fatal, and a reset helps. */
static void test_wrong_configuration(void **state)
{
    static const struct {
        uint32_t aqa, cc;
    } wrong[] = {
        { 0x003f003f, 1u << 4 },  /* another command set */
        { 0x003f003f, 1u << 7 },  /* pages of 8 KiB */
        { 0x003f003f, 7u << 11 }, /* arbitration of the vendor's own */
        { 0x003f0000, 0 },        /* one entry */
        { 0x0000003f, 0 },
    };
    struct rig r;
    (void)state;
    open_rig(&r, NULL);
    for (unsigned i = 0; i < N_OF(wrong); i++) {
        write_at(&r, BAR + NVME_REG_CC, 4, 0);
        run_for(&r, SIM_PS_PER_MS);
        assert_int_equal(status(&r), 0);
        write_at(&r, BAR + NVME_REG_AQA, 4, wrong[i].aqa);
        write_at(&r, BAR + NVME_REG_CC, 4, wrong[i].cc | NVME_CC_EN);
        run_for(&r, 3 * SIM_PS_PER_MS);
        assert_int_equal(status(&r), NVME_CSTS_CFS);
    }
    write_at(&r, BAR + NVME_REG_CC, 4, 0);
    enable(&r);
    /* 5.3: entries of another size cannot be had. */
    write_at(&r, BAR + NVME_REG_CC, 4, NVME_CC_EN | NVME_CC_IOSQES(7) | NVME_CC_IOCQES(4));
    struct queue q = queue_at(1, alloc(&r, 4096), alloc(&r, 4096));
    assert_int_equal(create(&r, &q, 1), NVME_SC_INVALID_FIELD);
    close_rig(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrong_queues),    cmocka_unit_test(test_wrong_admin_fields),
        cmocka_unit_test(test_wrong_io_fields), cmocka_unit_test(test_list_without_end),
        cmocka_unit_test(test_error_log),       cmocka_unit_test(test_wrong_configuration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
