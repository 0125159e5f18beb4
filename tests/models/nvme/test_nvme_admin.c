/*
 * Identify, log pages, features, asynchronous events and Abort of the NVMe controller. Sections are
 * those of NVM Express 1.3; statuses those of 4.6.1.2.1 and 4.6.1.2.2.
 */
#include "tests/models/nvme/nvme_rig.h"

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

/* ---- Identify (5.15) ------------------------------------------------------------------------- */

/* 5.15.3. */
static void test_identify_controller(void **state)
{
    struct rig r;
    uint8_t page[4096];
    (void)state;
    open_rig(&r, NULL);
    assert_int_equal(identify(&r, NVME_IDENTIFY_CONTROLLER, 0, page), NVME_SC_SUCCESS);
    assert_int_equal(get16(page), NVME_VENDOR_INTEL);
    assert_memory_equal(page + 4, "nvme                ", 20);
    assert_int_equal(get16(page + NVME_ID_CTRL_CNTLID), 0);
    assert_int_equal(get32(page + NVME_ID_CTRL_VER), NVME_VERSION_1_3);
    assert_int_equal(page[NVME_ID_CTRL_MDTS], 5);
    assert_int_equal(page[NVME_ID_CTRL_SQES], 0x66);
    assert_int_equal(page[NVME_ID_CTRL_CQES], 0x44);
    assert_int_equal(page[NVME_ID_CTRL_FRMW], 3);
    assert_int_equal(get16(page + NVME_ID_CTRL_ONCS), 0x1f);
    assert_int_equal(get32(page + NVME_ID_CTRL_SGLS), 0x50001);
    assert_true(get16(page + NVME_ID_CTRL_WCTEMP) >= 0x157); /* not 0 since 1.2 */
    assert_true(get16(page + NVME_ID_CTRL_CCTEMP) >= get16(page + NVME_ID_CTRL_WCTEMP));
    assert_memory_equal(page + NVME_ID_CTRL_SUBNQN, "nqn.2014-08.org.nvmexpress", 26);
    /* 5.15.9 */
    assert_int_equal(identify(&r, NVME_IDENTIFY_CONTROLLERS, 0, page), NVME_SC_SUCCESS);
    assert_int_equal(get32(page), 1); /* one controller, number 0 */
    close_rig(&r);
}

/* 5.15.2, 5.15.4, 5.15.5: with several namespaces. */
static void test_identify_namespaces(void **state)
{
    const char *const settings[] = { "namespaces", "3", "block_bytes", "4096", NULL };
    struct rig r;
    uint8_t page[4096], other[4096];
    (void)state;
    open_rig(&r, settings);
    assert_int_equal(identify(&r, NVME_IDENTIFY_ACTIVE, 0, page), NVME_SC_SUCCESS);
    assert_int_equal(get32(page), 1);
    assert_int_equal(get32(page + 8), 3);
    assert_int_equal(get32(page + 12), 0);
    assert_int_equal(identify(&r, NVME_IDENTIFY_ACTIVE, 2, page), NVME_SC_SUCCESS);
    assert_int_equal(get32(page), 3);
    assert_int_equal(get32(page + 4), 0);
    assert_int_equal(identify(&r, NVME_IDENTIFY_NAMESPACE, 3, page), NVME_SC_SUCCESS);
    assert_int_equal(get32(page + NVME_ID_NS_SIZE), (1 << 30) / 4096);
    assert_int_equal(get32(page + NVME_ID_NS_LBAF0), 12 << 16);
    /* EUI-64 and NGUID as in the descriptors; another namespace has others. */
    assert_int_equal(identify(&r, NVME_IDENTIFY_DESCRIPTORS, 3, other), NVME_SC_SUCCESS);
    assert_int_equal(other[0] | other[1] << 8, 0x0801);
    assert_int_equal(other[12] | other[13] << 8, 0x1002);
    assert_int_equal(other[32], 0);
    assert_memory_equal(other + 4, page + NVME_ID_NS_EUI64, 8);
    assert_memory_equal(other + 16, page + NVME_ID_NS_NGUID, 16);
    assert_int_equal(identify(&r, NVME_IDENTIFY_NAMESPACE, 2, other), NVME_SC_SUCCESS);
    assert_memory_not_equal(other + NVME_ID_NS_EUI64, page + NVME_ID_NS_EUI64, 8);
    /* Data of one is not in another. */
    uint64_t at = alloc(&r, 8192);
    fill(&r, at, 3, 4096);
    struct nvme_sqe sqe = io_at(true, 7, 1, at, 0);
    sqe.nsid = 2;
    assert_int_equal(command(&r, &r.io, sqe, NULL), NVME_SC_SUCCESS);
    sqe = io_at(false, 7, 1, at + 4096, 0);
    assert_int_equal(command(&r, &r.io, sqe, NULL), NVME_SC_SUCCESS);
    assert_int_equal(physmem_read64(r.memory, (struct hpa){ at + 4096 }), 0);
    sqe.nsid = 2;
    assert_int_equal(command(&r, &r.io, sqe, NULL), NVME_SC_SUCCESS);
    expect(&r, at + 4096, 3, 4096, true);
    close_rig(&r);
}

/* ---- Log pages (5.14) ------------------------------------------------------------------------ */

/* 5.14.1.2: thousands of 512 bytes, rounded up; compares count as reads. */
static void test_health_log(void **state)
{
    struct rig r;
    uint8_t log[512];
    (void)state;
    open_rig(&r, NULL);
    uint64_t at = alloc(&r, 4096);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(command(&r, &r.io, io_at(true, 8, 8, at, 0), NULL), NVME_SC_SUCCESS);
    assert_int_equal(command(&r, &r.io, io_at(false, 8, 8, at, 0), NULL), NVME_SC_SUCCESS);
    struct nvme_sqe compare = io_at(false, 8, 8, at, 0);
    compare.opcode = NVME_COMPARE;
    assert_int_equal(command(&r, &r.io, compare, NULL), NVME_SC_SUCCESS);
    compare.nsid = 9;
    assert_int_equal(command(&r, &r.io, compare, NULL), NVME_SC_INVALID_NAMESPACE);
    assert_int_equal(get_log(&r, NVME_LOG_HEALTH, 0, log, sizeof(log)), NVME_SC_SUCCESS);
    assert_int_equal(log[NVME_HEALTH_WARNING], 0);
    assert_int_equal(log[NVME_HEALTH_SPARE], 100);
    assert_int_equal(get32(log + NVME_HEALTH_UNITS_READ), 1);
    assert_int_equal(get32(log + NVME_HEALTH_UNITS_WRITTEN), 1);
    assert_int_equal(get32(log + NVME_HEALTH_READS), 2);
    assert_int_equal(get32(log + NVME_HEALTH_WRITES), 3);
    assert_int_equal(get32(log + NVME_HEALTH_ERROR_ENTRIES), 1);
    assert_int_equal(get32(log + NVME_HEALTH_MEDIA_ERRORS), 0);
    close_rig(&r);
}

/* 5.14.1.3, 5.14.1.5: what is there, and the commands that are claimed by it. */
static void test_firmware_and_effects_logs(void **state)
{
    struct rig r;
    uint8_t log[4096];
    (void)state;
    open_rig(&r, NULL);
    assert_int_equal(get_log(&r, NVME_LOG_FIRMWARE, 0, log, 512), NVME_SC_SUCCESS);
    assert_int_equal(log[NVME_FIRMWARE_ACTIVE] & 7, 1);
    assert_memory_equal(log + NVME_FIRMWARE_SLOT1, "1.0", 3);
    assert_int_equal(get_log(&r, NVME_LOG_EFFECTS, 0, log, 4096), NVME_SC_SUCCESS);
    for (unsigned i = 0; i < 256; i++) {
        const bool admin = get32(log + NVME_EFFECTS_ADMIN + 4 * i) & NVME_EFFECT_SUPPORTED;
        const bool io = get32(log + NVME_EFFECTS_IO + 4 * i) & NVME_EFFECT_SUPPORTED;
        struct nvme_sqe sqe = { .opcode = (uint8_t)i, .nsid = NVME_NSID_ALL - 2, .cdw10 = 0xfd };
        if (i != NVME_ADMIN_ASYNC_EVENT)
            assert_int_equal(admin, command(&r, &r.admin, sqe, NULL) != NVME_SC_INVALID_OPCODE);
        assert_int_equal(io, command(&r, &r.io, sqe, NULL) != NVME_SC_INVALID_OPCODE);
    }
    assert_true((get32(log + NVME_EFFECTS_IO + 4 * NVME_WRITE) & NVME_EFFECT_CONTENT) != 0);
    close_rig(&r);
}

/* ---- Features (5.13, 5.21) ------------------------------------------------------------------- */

static void reset(struct rig *r)
{
    write_at(r, BAR + NVME_REG_CC, 4, 0);
    run_for(r, SIM_PS_PER_MS);
    assert_int_equal(status(r), 0);
    enable(r);
}

/* 5.21.1.1 to 5.21.1.11, of which 5.21.1.2 (power), 5.21.1.5 (error recovery) and 5.21.1.10 (write
 * atomicity) are looked at nowhere else: all that are mandatory: current, default, saved, what is
 * supported; a reset. */
static void test_features(void **state)
{
    static const struct {
        uint32_t id, value, capabilities;
    } features[] = {
        { NVME_FEATURE_ARBITRATION, 0x04030207, 5 }, { NVME_FEATURE_POWER, 0x40, 5 },
        { NVME_FEATURE_TEMPERATURE, 400, 5 },        { NVME_FEATURE_ERROR_RECOVERY, 17, 7 },
        { NVME_FEATURE_COALESCING, 0x0a07, 5 },      { NVME_FEATURE_VECTOR, 0x10003, 5 },
        { NVME_FEATURE_WRITE_ATOMICITY, 1, 5 },      { NVME_FEATURE_ASYNC_EVENTS, 0x1f, 5 },
    };
    struct rig r;
    (void)state;
    open_rig(&r, NULL);
    for (unsigned i = 0; i < sizeof(features) / sizeof(features[0]); i++) {
        const uint32_t id = features[i].id, value = features[i].value;
        const uint32_t nsid = id == NVME_FEATURE_ERROR_RECOVERY ? 1 : 0;
        const uint32_t which = id == NVME_FEATURE_VECTOR ? 3 : 0;
        assert_int_equal(get_feature(&r, id, NVME_SELECT_SUPPORTED, which, nsid),
                         features[i].capabilities);
        const uint32_t before = get_feature(&r, id, NVME_SELECT_DEFAULT, which, nsid);
        assert_int_not_equal(before, value);
        assert_int_equal(get_feature(&r, id, NVME_SELECT_CURRENT, which, nsid), before);
        assert_int_equal(set_feature(&r, id, value, nsid), NVME_SC_SUCCESS);
        assert_int_equal(get_feature(&r, id, NVME_SELECT_CURRENT, which, nsid), value);
        assert_int_equal(get_feature(&r, id, NVME_SELECT_SAVED, which, nsid), before);
        reset(&r); /* what was not saved is gone */
        assert_int_equal(get_feature(&r, id, NVME_SELECT_CURRENT, which, nsid), before);
        assert_int_equal(set_feature(&r, id | NVME_FEATURE_SAVE, value, nsid), NVME_SC_SUCCESS);
        reset(&r);
        assert_int_equal(get_feature(&r, id, NVME_SELECT_CURRENT, which, nsid), value);
        assert_int_equal(get_feature(&r, id, NVME_SELECT_DEFAULT, which, nsid), before);
        assert_int_equal(set_feature(&r, id | NVME_FEATURE_SAVE, before, nsid), NVME_SC_SUCCESS);
    }
    close_rig(&r);
}

/* 5.21.1.7. */
static void test_number_of_queues(void **state)
{
    struct rig r;
    uint32_t result = 0;
    (void)state;
    open_rig(&r, NULL);
    struct nvme_sqe sqe = { .opcode = NVME_ADMIN_SET_FEATURES,
                            .cdw10 = NVME_FEATURE_QUEUES,
                            .cdw11 = 0x00ff00ff };
    assert_int_equal(command(&r, &r.admin, sqe, NULL), NVME_SC_SEQUENCE_ERROR);
    reset(&r);
    assert_int_equal(command(&r, &r.admin, sqe, &result), NVME_SC_SUCCESS);
    assert_int_equal(result, 30 << 16 | 30); /* 31 pairs for I/O */
    assert_int_equal(get_feature(&r, NVME_FEATURE_QUEUES, NVME_SELECT_CURRENT, 0, 0), result);
    close_rig(&r);
}

/* ---- Asynchronous events (5.2) --------------------------------------------------------------- */

static void request_event(struct rig *r)
{
    push(r, &r->admin, (struct nvme_sqe){ .opcode = NVME_ADMIN_ASYNC_EVENT });
    ring(r, &r->admin);
    run_for(r, 5 * SIM_PS_PER_US);
}

/* The one that has been reported; UINT32_MAX: none. */
static uint32_t event(struct rig *r)
{
    struct nvme_cqe cqe;
    run_for(r, 5 * SIM_PS_PER_US);
    if (!poll(r, &r->admin, &cqe))
        return UINT32_MAX;
    assert_int_equal(cqe.status >> 1, NVME_SC_SUCCESS);
    free_entries(r, &r->admin);
    return cqe.result;
}

static void bad_doorbell(struct rig *r, bool value)
{
    if (value)
        write_at(r, BAR + NVME_DOORBELL_SQ(1), 4, ENTRIES);
    else
        write_at(r, BAR + NVME_DOORBELL_SQ(9), 4, 1);
    run_for(r, SIM_PS_PER_US);
}

#define REGISTER_EVENT ((uint32_t)NVME_LOG_ERROR << 16)
#define VALUE_EVENT    ((uint32_t)NVME_LOG_ERROR << 16 | 1u << 8)

/* Reported once, masked until the log is read without Retain Asynchronous Event; kept without a
 * request. */
static void test_events_of_doorbells(void **state)
{
    struct rig r;
    struct nvme_error_entry entry;
    (void)state;
    open_rig(&r, NULL);
    request_event(&r);
    request_event(&r);
    assert_int_equal(event(&r), UINT32_MAX);
    bad_doorbell(&r, true);
    assert_int_equal(event(&r), VALUE_EVENT);
    bad_doorbell(&r, false); /* masked */
    assert_int_equal(event(&r), UINT32_MAX);
    get_log(&r, NVME_LOG_ERROR, NVME_LOG_RETAIN_EVENT, &entry, sizeof(entry));
    assert_int_equal(entry.sq_id, 9);
    assert_int_equal(entry.cid, 0xffff);
    bad_doorbell(&r, false);
    assert_int_equal(event(&r), UINT32_MAX);
    get_log(&r, NVME_LOG_ERROR, 0, &entry, sizeof(entry));
    bad_doorbell(&r, false);
    assert_int_equal(event(&r), REGISTER_EVENT);
    get_log(&r, NVME_LOG_ERROR, 0, &entry, sizeof(entry));
    bad_doorbell(&r, true); /* nobody waits */
    assert_int_equal(event(&r), UINT32_MAX);
    request_event(&r);
    assert_int_equal(event(&r), VALUE_EVENT);
    assert_int_equal(nvme_stats(r.nvme)->bad_doorbells, 5);
    assert_int_equal(nvme_stats(r.nvme)->events, 3);
    /* 4.6.1: the head of a completion queue cannot pass what was written. */
    get_log(&r, NVME_LOG_ERROR, 0, &entry, sizeof(entry));
    write_at(&r, BAR + NVME_DOORBELL_CQ(1), 4, 1);
    request_event(&r);
    assert_int_equal(event(&r), VALUE_EVENT);
    close_rig(&r);
}

/* 5.21.1.4, 5.21.1.11: the temperature, if the host wants to know. */
static void test_events_of_temperature(void **state)
{
    struct rig r;
    uint8_t log[512];
    const uint32_t wanted = NVME_EVENT_HEALTH | NVME_EVENT_TEMPERATURE << 8 | NVME_LOG_HEALTH << 16;
    (void)state;
    open_rig(&r, NULL);
    request_event(&r);
    assert_int_equal(set_feature(&r, NVME_FEATURE_TEMPERATURE, 300, 0), NVME_SC_SUCCESS);
    assert_int_equal(event(&r), UINT32_MAX);
    assert_int_equal(set_feature(&r, NVME_FEATURE_ASYNC_EVENTS, NVME_WARN_TEMPERATURE, 0),
                     NVME_SC_SUCCESS);
    assert_int_equal(event(&r), wanted);
    assert_int_equal(get_log(&r, NVME_LOG_HEALTH, 0, log, sizeof(log)), NVME_SC_SUCCESS);
    assert_int_equal(log[NVME_HEALTH_WARNING], NVME_WARN_TEMPERATURE);
    assert_true(get16(log + NVME_HEALTH_TEMPERATURE) >= 300);
    request_event(&r);
    assert_int_equal(set_feature(&r, NVME_FEATURE_TEMPERATURE, 400, 0), NVME_SC_SUCCESS);
    assert_int_equal(event(&r), UINT32_MAX);
    assert_int_equal(set_feature(&r, NVME_FEATURE_TEMPERATURE, 399 | NVME_TEMPERATURE_UNDER, 0),
                     NVME_SC_SUCCESS);
    assert_int_equal(event(&r), wanted);
    close_rig(&r);
}

/* 4.6.1.2.2; 7.3.2: a reset ends those that wait without an answer. */
static void test_limit_of_event_requests(void **state)
{
    struct rig r;
    uint8_t page[4096];
    struct nvme_cqe cqe;
    (void)state;
    open_rig(&r, NULL);
    assert_int_equal(identify(&r, NVME_IDENTIFY_CONTROLLER, 0, page), NVME_SC_SUCCESS);
    const unsigned n = page[NVME_ID_CTRL_AERL] + 1u;
    for (unsigned i = 0; i < n; i++)
        request_event(&r);
    assert_false(poll(&r, &r.admin, &cqe));
    request_event(&r);
    assert_true(poll(&r, &r.admin, &cqe));
    assert_int_equal(cqe.status >> 1, NVME_SC_ASYNC_LIMIT | NVME_STATUS_MORE);
    reset(&r);
    for (unsigned i = 0; i < n; i++)
        request_event(&r);
    assert_false(poll(&r, &r.admin, &cqe));
    close_rig(&r);
}

/* ---- Abort (5.1) ----------------------------------------------------------------------------- */

static void push_abort(struct rig *r, unsigned sq, unsigned cid)
{
    push(r, &r->admin, (struct nvme_sqe){ .opcode = NVME_ADMIN_ABORT, .cdw10 = sq | cid << 16 });
}

/* The answer to an Abort: 0 if it aborted. */
static uint32_t abort_answer(struct rig *r)
{
    struct nvme_cqe cqe;
    for (unsigned i = 0; !poll(r, &r->admin, &cqe); i++) {
        assert_true(i < 1000);
        run_for(r, SIM_PS_PER_US);
    }
    free_entries(r, &r->admin);
    assert_int_equal(cqe.status >> 1, NVME_SC_SUCCESS);
    return cqe.result;
}

/* In the media, which take 10 ms: the completion of the command, then that of the Abort. */
static void test_abort_in_the_media(void **state)
{
    const char *const settings[] = { "read_latency_ns", "10000000", NULL };
    struct rig r;
    struct nvme_cqe cqe;
    uint8_t page[4096];
    (void)state;
    open_rig(&r, settings);
    push(&r, &r.io, io_at(false, 0, 16, alloc(&r, 4096), alloc(&r, 4096)));
    ring(&r, &r.io);
    run_for(&r, 100 * SIM_PS_PER_US);
    push_abort(&r, 1, 0);
    ring(&r, &r.admin);
    assert_int_equal(abort_answer(&r), 0);
    assert_true(poll(&r, &r.io, &cqe));
    assert_int_equal(cqe.status >> 1, NVME_SC_ABORT_REQUESTED); /* may be tried again */
    assert_int_equal(nvme_stats(r.nvme)->aborted, 1);
    uint64_t writes = r.n_writes;
    run_for(&r, 20 * SIM_PS_PER_MS);
    assert_int_equal(r.n_writes, writes); /* no data afterwards */
    /* Nothing of that name; and 5.15: how many at once. */
    push_abort(&r, 1, 0);
    ring(&r, &r.admin);
    assert_int_equal(abort_answer(&r), NVME_ABORT_NOT_ABORTED);
    assert_int_equal(identify(&r, NVME_IDENTIFY_CONTROLLER, 0, page), NVME_SC_SUCCESS);
    assert_int_equal(page[NVME_ID_CTRL_ACL], 3);
    close_rig(&r);
}

/* In the queue: those that the controller has not fetched, for want of room, as well. One of them
 * is not there, which is known once all have come, whatever others have found before. */
static void abort_in_the_queue(const unsigned cids[3])
{
    const char *const settings[] = { "commands_max", "6", "read_latency_ns", "200000", NULL };
    struct rig r;
    struct nvme_cqe cqe;
    bool aborted[16] = { false };
    open_rig(&r, settings);
    uint64_t at = alloc(&r, 4096);
    for (unsigned i = 0; i < 3; i++)
        push_abort(&r, 1, cids[i]);
    for (unsigned i = 0; i < 16; i++)
        push(&r, &r.io, io_at(false, i, 1, at, 0));
    ring(&r, &r.io);
    ring(&r, &r.admin);
    run_for(&r, 3 * SIM_PS_PER_MS);
    for (unsigned i = 0; i < 16; i++) {
        assert_true(poll(&r, &r.io, &cqe));
        aborted[cqe.cid] = cqe.status >> 1 == NVME_SC_ABORT_REQUESTED;
        assert_true(aborted[cqe.cid] || cqe.status >> 1 == NVME_SC_SUCCESS);
    }
    for (unsigned i = 0; i < 16; i++)
        assert_int_equal(aborted[i], i == 3 || i == 12);
    unsigned n_not = 0;
    for (unsigned i = 0; i < 3; i++)
        n_not += abort_answer(&r);
    assert_int_equal(n_not, 1);
    close_rig(&r);
}

static void test_abort_in_the_queue(void **state)
{
    (void)state;
    abort_in_the_queue((const unsigned[]){ 12, 3, 99 });
    abort_in_the_queue((const unsigned[]){ 99, 12, 3 });
    abort_in_the_queue((const unsigned[]){ 3, 99, 12 });
}

/* A request that waits for an event; a limit; a write that has happened; the end of a queue. */
static void test_abort_of_others(void **state)
{
    const char *const settings[] = { "write_latency_ns", "10000000", "commands_max", "2", NULL };
    struct rig r;
    struct nvme_cqe cqe;
    (void)state;
    open_rig(&r, settings);
    const unsigned cid = r.admin.tail;
    request_event(&r);
    push_abort(&r, 0, cid);
    ring(&r, &r.admin);
    run_for(&r, 10 * SIM_PS_PER_US);
    assert_true(poll(&r, &r.admin, &cqe));
    assert_int_equal(cqe.cid, cid);
    assert_int_equal(cqe.status >> 1, NVME_SC_ABORT_REQUESTED);
    assert_int_equal(abort_answer(&r), 0);
    for (unsigned i = 0; i < 4; i++)
        push(&r, &r.io, io_at(true, 8 * i, 8, alloc(&r, 4096), 0));
    ring(&r, &r.io);
    run_for(&r, 100 * SIM_PS_PER_US);
    struct nvme_sqe first = { .opcode = NVME_ADMIN_ABORT, .cdw10 = 1 };
    push(&r, &r.admin, first);
    ring(&r, &r.admin);
    assert_int_equal(abort_answer(&r), NVME_ABORT_NOT_ABORTED);
    close_rig(&r);
}

/* 5.15.3 (ACL), 4.6.1.2.2: Aborts of commands that are not fetched yet wait, four of them. */
static void test_limit_of_aborts(void **state)
{
    const char *const settings[] = { "commands_max", "2", "read_latency_ns", "10000000", NULL };
    struct rig r;
    struct nvme_cqe cqe;
    (void)state;
    open_rig(&r, settings);
    for (unsigned i = 0; i < 10; i++)
        push(&r, &r.io, io_at(false, i, 1, alloc(&r, 4096), 0));
    ring(&r, &r.io);
    run_for(&r, 20 * SIM_PS_PER_US);
    for (unsigned i = 0; i < 5; i++)
        push_abort(&r, 1, 5 + i);
    ring(&r, &r.admin);
    run_for(&r, 100 * SIM_PS_PER_US);
    assert_true(poll(&r, &r.admin, &cqe));
    assert_int_equal(cqe.status >> 1, NVME_SC_ABORT_LIMIT | NVME_STATUS_MORE);
    assert_false(poll(&r, &r.admin, &cqe));
    run_for(&r, 100 * SIM_PS_PER_MS);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(abort_answer(&r), 0);
    assert_int_equal(nvme_stats(r.nvme)->aborted, 4);
    assert_int_equal(nvme_stats(r.nvme)->reads, 6);
    close_rig(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_identify_controller),
        cmocka_unit_test(test_identify_namespaces),
        cmocka_unit_test(test_health_log),
        cmocka_unit_test(test_firmware_and_effects_logs),
        cmocka_unit_test(test_features),
        cmocka_unit_test(test_number_of_queues),
        cmocka_unit_test(test_events_of_doorbells),
        cmocka_unit_test(test_events_of_temperature),
        cmocka_unit_test(test_limit_of_event_requests),
        cmocka_unit_test(test_abort_in_the_media),
        cmocka_unit_test(test_abort_in_the_queue),
        cmocka_unit_test(test_abort_of_others),
        cmocka_unit_test(test_limit_of_aborts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
