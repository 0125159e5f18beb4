/*
 * dsa.accelerator against the Architecture Specification, by section: registers, tables, commands,
 * portals, descriptors, batches, completion records, errors; bytes and times of moves.
 */
#include "tests/models/dsa/dsa_rig.h"

#include "models/base/payload.h"

#define PAGE UINT64_C(4096)

/* Runs a body as a task with its rig. */
struct body_call {
    void (*body)(struct dsa_rig *r);
};
static void run_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct dsa_rig r = rig_of(f, task);
    ((struct body_call *)arg)->body(&r);
}
static void run(void **state, void (*body)(struct dsa_rig *r))
{
    struct body_call call = { body };
    fixture_call(*state, run_body, &call);
}

/* ---- "Register descriptions" ----------------------------------------------------------------- */

static void capabilities_body(struct dsa_rig *r)
{
    const uint64_t gencap = rig_read(r, DSA_GENCAP, 8), wqcap = rig_read(r, DSA_WQCAP, 8);
    const uint64_t grpcap = rig_read(r, DSA_GRPCAP, 8), tables = rig_read(r, DSA_OFFSETS, 8);
    assert_int_equal(rig_read(r, DSA_VERSION, 4), DSA_VERSION_1);
    assert_int_equal((gencap & DSA_GENCAP_TRANSFER_LOG2_MASK) >> DSA_GENCAP_TRANSFER_LOG2_SHIFT,
                     31);
    assert_int_equal((gencap & DSA_GENCAP_BATCH_LOG2_MASK) >> DSA_GENCAP_BATCH_LOG2_SHIFT, 10);
    assert_true(gencap & DSA_GENCAP_CONFIGURABLE && gencap & DSA_GENCAP_OVERLAP);
    assert_false(gencap & DSA_GENCAP_BLOCK_ON_FAULT);
    assert_int_equal(wqcap & DSA_WQCAP_ENTRIES_MASK, 128);
    assert_int_equal((wqcap & DSA_WQCAP_QUEUES_MASK) >> DSA_WQCAP_QUEUES_SHIFT, 8);
    assert_int_equal((wqcap & DSA_WQCAP_CONFIG_MASK) >> DSA_WQCAP_CONFIG_SHIFT, 0); /* 32 bytes */
    assert_true(wqcap & DSA_WQCAP_SHARED && wqcap & DSA_WQCAP_DEDICATED);
    assert_int_equal(grpcap & DSA_GRPCAP_GROUPS_MASK, 4);
    assert_int_equal((grpcap & DSA_GRPCAP_READ_BUFFERS_MASK) >> DSA_GRPCAP_READ_BUFFERS_SHIFT, 96);
    assert_int_equal(rig_read(r, DSA_ENGCAP, 8) & DSA_ENGCAP_ENGINES_MASK, 4);
    assert_int_equal(rig_read(r, DSA_OPCAP, 8), 0xf); /* no-op, batch, drain, move */
    for (unsigned i = 1; i < 4; i++)
        assert_int_equal(rig_read(r, DSA_OPCAP + 8 * i, 8), 0);
    assert_int_equal((tables & 0xffff) * DSA_OFFSETS_UNIT, RIG_GROUPS);
    assert_int_equal((tables >> DSA_OFFSETS_QUEUES_SHIFT & 0xffff) * DSA_OFFSETS_UNIT, RIG_QUEUES);
    assert_int_equal(rig_read(r, DSA_CMDCAP, 4), 0x7fe); /* 1 to 10: no PASIDs, no handles */
    assert_int_equal(rig_read(r, DSA_GENSTS, 4), DSA_DISABLED | DSA_RESET_COLD << 2);
    rig_write(r, DSA_GENCAP, 8, 0); /* read-only */
    assert_int_equal(rig_read(r, DSA_GENCAP, 8), gencap);
}
static void test_capabilities(void **state)
{
    run(state, capabilities_body);
}

static void configuration_body(struct dsa_rig *r)
{
    const uint64_t flags = RIG_GROUPS + DSA_GRPCFG_FLAGS, wq = RIG_QUEUES;
    /* All read buffers are allowed to each group unless software says else. */
    assert_int_equal(rig_read(r, flags, 8) >> DSA_GRPFLAGS_ALLOWED_SHIFT & 0xff, 96);
    rig_up(r);
    /* GENCFG and groups with the device off only, a queue's while it is off; its threshold
     * always. */
    rig_write(r, DSA_GENCFG, 4, 7);
    assert_int_equal(rig_read(r, DSA_GENCFG, 4), 0);
    rig_write(r, RIG_GROUPS + DSA_GRPCFG_QUEUES, 8, 5);
    assert_int_equal(rig_read(r, RIG_GROUPS + DSA_GRPCFG_QUEUES, 8), 3);
    rig_write(r, wq + DSA_WQCFG_SIZE, 4, 4);
    assert_int_equal(rig_read(r, wq + DSA_WQCFG_SIZE, 4), 16);
    rig_write(r, wq + DSA_WQCFG_BYTES + DSA_WQCFG_THRESHOLD, 4, 5);
    assert_int_equal(rig_read(r, wq + DSA_WQCFG_BYTES + DSA_WQCFG_THRESHOLD, 4), 5);
    assert_int_equal(rig_read(r, wq + DSA_WQCFG_STATUS, 4), 1u << DSA_WQCFG_STATE_SHIFT);
    rig_write(r, wq + DSA_WQCFG_STATUS, 4, 0);
    assert_int_equal(rig_read(r, wq + DSA_WQCFG_STATUS, 4), 1u << DSA_WQCFG_STATE_SHIFT);
    assert_int_equal(rig_read(r, DSA_GENSTS, 4) & DSA_GENSTS_STATE_MASK, DSA_ENABLED);
    /* The size not even while the queue alone is off: all of them share the entries. */
    assert_int_equal(rig_command(r, DSA_CMD_DISABLE_WQ, 1), DSA_CMDSTS_OK);
    rig_write(r, wq + DSA_WQCFG_SIZE, 4, 500);
    assert_int_equal(rig_read(r, wq + DSA_WQCFG_SIZE, 4), 16);
    rig_write(r, wq + DSA_WQCFG_MODE, 4, DSA_WQCFG_DEDICATED | 3u << DSA_WQCFG_PRIORITY_SHIFT);
    assert_int_equal(rig_read(r, wq + DSA_WQCFG_MODE, 4),
                     DSA_WQCFG_DEDICATED | 3u << DSA_WQCFG_PRIORITY_SHIFT);
    /* Reset of the device: as after power-on, but for the type of the reset. */
    assert_int_equal(rig_command(r, DSA_CMD_RESET_DEVICE, 0), DSA_CMDSTS_OK);
    assert_int_equal(rig_read(r, DSA_GENSTS, 4), DSA_DISABLED | DSA_RESET_SOFTWARE << 2);
    assert_int_equal(rig_read(r, wq + DSA_WQCFG_SIZE, 4), 0);
    assert_int_equal(rig_read(r, RIG_GROUPS + DSA_GRPCFG_QUEUES, 8), 0);
    rig_write(r, DSA_GENCFG, 4, 0xffffff07);
    assert_int_equal(rig_read(r, DSA_GENCFG, 4), 7);
}
static void test_configuration_is_locked_while_in_use(void **state)
{
    run(state, configuration_body);
}

static void commands_body(struct dsa_rig *r)
{
    const uint64_t mode = RIG_QUEUES + DSA_WQCFG_MODE;
    assert_int_equal(rig_command(r, 0, 0), DSA_CMDSTS_COMMAND);
    assert_int_equal(rig_command(r, DSA_CMD_DRAIN_PASID, 0), DSA_CMDSTS_COMMAND);
    assert_int_equal(rig_command(r, DSA_CMD_ENABLE_WQ, 0), DSA_CMDSTS_NOT_ENABLED);
    assert_int_equal(rig_command(r, DSA_CMD_DRAIN_ALL, 0), DSA_CMDSTS_DEVICE_OFF);
    assert_int_equal(rig_command(r, DSA_CMD_DISABLE_DEVICE, 0), DSA_CMDSTS_DEVICE_OFF);
    /* Enable device checks groups, entries, read buffers. */
    rig_queue(r, 0, 16, 0, 10);
    rig_write(r, RIG_GROUPS + DSA_GRPCFG_QUEUES, 8, 1);
    assert_int_equal(rig_command(r, DSA_CMD_ENABLE_DEVICE, 0), DSA_CMDSTS_GROUP);
    rig_write(r, RIG_GROUPS + DSA_GRPCFG_ENGINES, 8, 1);
    rig_write(r, RIG_GROUPS + DSA_GRPCFG_BYTES + DSA_GRPCFG_QUEUES, 8, 3);
    rig_write(r, RIG_GROUPS + DSA_GRPCFG_BYTES + DSA_GRPCFG_ENGINES, 8, 2);
    assert_int_equal(rig_command(r, DSA_CMD_ENABLE_DEVICE, 0), DSA_CMDSTS_CONFIGURATION);
    rig_write(r, RIG_GROUPS + DSA_GRPCFG_BYTES + DSA_GRPCFG_QUEUES, 8, 2);
    rig_write(r, RIG_GROUPS + DSA_GRPCFG_FLAGS, 8, 0);
    assert_int_equal(rig_command(r, DSA_CMD_ENABLE_DEVICE, 0), DSA_CMDSTS_GROUP_BUFFERS);
    rig_write(r, RIG_GROUPS + DSA_GRPCFG_FLAGS, 8,
              60u << DSA_GRPFLAGS_RESERVED_SHIFT | 96u << DSA_GRPFLAGS_ALLOWED_SHIFT);
    rig_write(r, RIG_GROUPS + DSA_GRPCFG_BYTES + DSA_GRPCFG_FLAGS, 8,
              40u << DSA_GRPFLAGS_RESERVED_SHIFT | 96u << DSA_GRPFLAGS_ALLOWED_SHIFT);
    assert_int_equal(rig_command(r, DSA_CMD_ENABLE_DEVICE, 0), DSA_CMDSTS_ALL_BUFFERS);
    rig_write(r, RIG_GROUPS + DSA_GRPCFG_FLAGS, 8, 96u << DSA_GRPFLAGS_ALLOWED_SHIFT);
    rig_queue(r, 1, 113, 0, 10);
    assert_int_equal(rig_command(r, DSA_CMD_ENABLE_DEVICE, 0), DSA_CMDSTS_ENTRIES);
    rig_queue(r, 1, 8, 9, 10);
    root_complex_config_write(r->rcs, 0, r->task, r->function->cfg.id, PCI_COMMAND, 2,
                              PCI_COMMAND_MEMORY);
    assert_int_equal(rig_command(r, DSA_CMD_ENABLE_DEVICE, 0), DSA_CMDSTS_BUS_MASTER);
    root_complex_config_write(r->rcs, 0, r->task, r->function->cfg.id, PCI_COMMAND, 2,
                              PCI_COMMAND_MEMORY | PCI_COMMAND_BUS_MASTER);
    assert_int_equal(rig_command(r, DSA_CMD_ENABLE_DEVICE, 0), DSA_CMDSTS_OK);
    assert_int_equal(rig_command(r, DSA_CMD_ENABLE_DEVICE, 0), DSA_CMDSTS_ENABLED);
    /* Enable WQ checks the queue's own. */
    assert_int_equal(rig_command(r, DSA_CMD_ENABLE_WQ, 8), DSA_CMDSTS_QUEUE);
    assert_int_equal(rig_command(r, DSA_CMD_ENABLE_WQ, 1), DSA_CMDSTS_QUEUE_SIZE); /* threshold */
    assert_int_equal(rig_command(r, DSA_CMD_ENABLE_WQ, 2), DSA_CMDSTS_QUEUE_SIZE); /* no entries */
    rig_write(r, mode, 4, DSA_WQCFG_DEDICATED);
    assert_int_equal(rig_command(r, DSA_CMD_ENABLE_WQ, 0), DSA_CMDSTS_QUEUE_PRIORITY);
    rig_write(r, mode, 4, DSA_WQCFG_DEDICATED | DSA_WQCFG_BLOCK | 1u << 4);
    assert_int_equal(rig_command(r, DSA_CMD_ENABLE_WQ, 0), DSA_CMDSTS_QUEUE_FAULT);
    rig_write(r, mode, 4, DSA_WQCFG_DEDICATED | DSA_WQCFG_PASID_ENABLE | 1u << 4);
    assert_int_equal(rig_command(r, DSA_CMD_ENABLE_WQ, 0), DSA_CMDSTS_QUEUE_PASID);
    rig_write(r, mode, 4, DSA_WQCFG_DEDICATED | 1u << 4);
    rig_write(r, RIG_QUEUES + DSA_WQCFG_LIMITS, 4, 21u | 11u << DSA_WQCFG_BATCH_SHIFT);
    assert_int_equal(rig_command(r, DSA_CMD_ENABLE_WQ, 0), DSA_CMDSTS_QUEUE_BATCH);
    rig_write(r, RIG_QUEUES + DSA_WQCFG_LIMITS, 4, 21u | 5u << DSA_WQCFG_BATCH_SHIFT);
    assert_int_equal(rig_command(r, DSA_CMD_ENABLE_WQ, 0), DSA_CMDSTS_OK);
    assert_int_equal(rig_command(r, DSA_CMD_ENABLE_WQ, 0), DSA_CMDSTS_QUEUE_ENABLED);
    assert_int_equal(rig_command(r, DSA_CMD_DRAIN_WQ, 2), DSA_CMDSTS_QUEUE_OFF);
    assert_int_equal(rig_command(r, DSA_CMD_DRAIN_WQ, 0), DSA_CMDSTS_QUEUE);
    assert_int_equal(rig_command(r, DSA_CMD_DRAIN_WQ, 1), DSA_CMDSTS_OK);
    assert_int_equal(rig_command(r, DSA_CMD_RESET_WQ, 1), DSA_CMDSTS_OK);
    assert_int_equal(rig_read(r, mode, 4), 0);
    assert_int_equal(rig_read(r, RIG_QUEUES + DSA_WQCFG_SIZE, 4), 16);
    assert_int_equal(rig_command(r, DSA_CMD_DISABLE_DEVICE, 0), DSA_CMDSTS_OK);
    /* A queue that has been taken out of its group is in none when the device is on again. */
    rig_queue(r, 0, 16, 0, 10);
    rig_queue(r, 1, 8, 0, 10);
    rig_write(r, RIG_GROUPS + DSA_GRPCFG_BYTES + DSA_GRPCFG_QUEUES, 8, 0);
    rig_write(r, RIG_GROUPS + DSA_GRPCFG_BYTES + DSA_GRPCFG_ENGINES, 8, 0);
    assert_int_equal(rig_command(r, DSA_CMD_ENABLE_DEVICE, 0), DSA_CMDSTS_OK);
    assert_int_equal(rig_command(r, DSA_CMD_ENABLE_WQ, 1), DSA_CMDSTS_QUEUE_SIZE);
    assert_int_equal(rig_command(r, DSA_CMD_ENABLE_WQ, 0), DSA_CMDSTS_OK);
}
static void test_commands_check_what_they_are_about(void **state)
{
    run(state, commands_body);
}

/* ---- "Memory Move" --------------------------------------------------------------------------- */

/* Any alignments and sizes. */
static void move_body(struct dsa_rig *r)
{
    static uint8_t bytes[3 * 4096], found[3 * 4096], old[3 * 4096];
    const uint64_t source = rig_memory(r, 4 * PAGE), destination = rig_memory(r, 4 * PAGE);
    const uint64_t record = rig_memory(r, PAGE);
    rig_up(r);
    for (unsigned i = 0; i < 60; i++) {
        const unsigned from = i * 7 % 131, to = i * 13 % 197, n = 1 + i * i * 3 % 9000;
        const struct dsa_descriptor d = rig_move(destination + to, source + from, n,
                                                 record + 32 * (i % 8));
        const struct dsa_record zero = { 0 };
        rig_random(bytes, sizeof(bytes), i);
        rig_put(r, source, bytes, sizeof(bytes));
        rig_get(r, destination, old, sizeof(old));
        rig_put(r, d.record, &zero, sizeof(zero));
        rig_post(r, 0, &d);
        const struct dsa_record end = rig_wait(r, d.record);
        assert_int_equal(end.status, DSA_STATUS_SUCCESS);
        assert_int_equal(end.completed, n);
        memcpy(old + to, bytes + from, n);
        rig_get(r, destination, found, sizeof(found));
        assert_memory_equal(found, old, sizeof(found));
    }
}
static void test_moves_bytes_of_any_alignment(void **state)
{
    run(state, move_body);
}

/* Bulk payload in tag mode: what is found is one stream, wherever it lies in lines. */
static void mark_body(struct dsa_rig *r)
{
    static uint8_t line[LINE_BYTES], found[4096];
    const uint64_t source = rig_memory(r, 2 * PAGE), destination = rig_memory(r, 2 * PAGE);
    const uint64_t record = rig_memory(r, PAGE);
    rig_up(r);
    for (unsigned at = 0; at < 8192; at += LINE_BYTES) {
        memset(line, 0, sizeof(line));
        payload_line_put(line, 0, payload_mark(3, 1000 + at), LINE_BYTES);
        rig_put(r, source + at, line, sizeof(line));
    }
    for (unsigned i = 0; i < 40; i++) {
        const unsigned from = i * 11 % 190, to = i * 17 % 210, n = 9 + i * i % 3000;
        const struct dsa_descriptor d = rig_move(destination + to, source + from, n,
                                                 record + 32 * i);
        struct payload payload = { 0 };
        rig_post(r, 0, &d);
        assert_int_equal(rig_wait(r, d.record).status, DSA_STATUS_SUCCESS);
        physmem_read_marks(r->mem, (struct hpa){ destination + to }, found, n);
        assert_true(payload_gather(&payload, found, destination + to, n));
        assert_int_equal(payload.n, 1);
        assert_int_equal(payload.extent[0].bytes, n);
        assert_int_equal(payload.extent[0].mark, payload_mark(3, 1000 + from));
    }
}
static void test_moves_marks_of_bulk_payload(void **state)
{
    run(state, mark_body);
}

static void overlap_body(struct dsa_rig *r)
{
    static uint8_t bytes[4 * 4096], found[4 * 4096];
    const uint64_t memory = rig_memory(r, 4 * PAGE), record = rig_memory(r, PAGE);
    rig_up(r);
    for (unsigned i = 0; i < 12; i++) {
        const unsigned from = 1000 + 37 * i, to = i % 2 == 0 ? from + 29 * i + 1 : from - 31 * i;
        const struct dsa_descriptor d = rig_move(memory + to, memory + from, 3000, record + 32 * i);
        rig_random(bytes, sizeof(bytes), i);
        rig_put(r, memory, bytes, sizeof(bytes));
        rig_post(r, 0, &d);
        assert_int_equal(rig_wait(r, d.record).status, DSA_STATUS_SUCCESS);
        memmove(bytes + to, bytes + from, 3000);
        rig_get(r, memory, found, sizeof(found));
        assert_memory_equal(found, bytes, sizeof(found));
    }
}
static void test_moves_of_ranges_that_overlap(void **state)
{
    run(state, overlap_body);
}

/* ---- "Portals", shared and dedicated queues -------------------------------------------------- */

static void shared_body(struct dsa_rig *r)
{
    const uint64_t source = rig_memory(r, 16 * PAGE), destination = rig_memory(r, 16 * PAGE);
    const uint64_t record = rig_memory(r, PAGE);
    unsigned taken = 0, refused = 0;
    rig_up(r);
    for (unsigned i = 0; i < 64; i++) {
        const struct dsa_descriptor d = rig_move(destination, source, 16 * 4096, record + 32 * i);
        /* Long enough copies: the queue fills, and the limited portal refuses. */
        while (!rig_enqueue(r, 1, DSA_PORTAL_LIMITED, &d)) {
            refused++;
            assert_true(rig_read(r, RIG_QUEUES + DSA_WQCFG_BYTES + DSA_WQCFG_STATUS, 4) & 0xffff);
        }
        taken++;
    }
    assert_int_equal(taken, 64);
    assert_true(refused > 0); /* also: retries end */
    for (unsigned i = 0; i < 64; i++)
        assert_int_equal(rig_wait(r, record + 32 * i).status, DSA_STATUS_SUCCESS);
    /* Neither a dedicated queue nor one that is off takes such a write; nothing is told in
     * SWERR. */
    const struct dsa_descriptor d = rig_move(destination, source, 64, record);
    assert_false(rig_enqueue(r, 0, DSA_PORTAL_UNLIMITED, &d));
    assert_false(rig_enqueue(r, 2, DSA_PORTAL_UNLIMITED, &d));
    assert_false(root_complex_mmio_enqueue(r->rcs, 0, r->task, rig_at(r, 0, 0x100), &d));
    assert_int_equal(rig_read(r, DSA_SWERR, 8), 0);
}
static void test_a_full_shared_queue_refuses(void **state)
{
    run(state, shared_body);
}

/* With an engine of one descriptor at a time, and moves of 2 MiB before them, queues only fill. */
static void threshold_body(struct dsa_rig *r)
{
    const uint64_t memory = rig_memory(r, 1024 * PAGE), record = rig_memory(r, PAGE);
    const struct dsa_descriptor slow = rig_move(memory + 512 * PAGE, memory, 512 * 4096, record);
    unsigned limited = 0, unlimited = 0, posted = 0;
    rig_up(r);
    rig_post(r, 0, &slow);
    rig_sleep(r, SIM_PS_PER_US);
    struct dsa_descriptor d = rig_move(memory + 512 * PAGE, memory, 64, record + 32);
    while (rig_enqueue(r, 1, DSA_PORTAL_LIMITED, &d))
        limited++;
    while (rig_enqueue(r, 1, DSA_PORTAL_UNLIMITED, &d))
        unlimited++;
    assert_int_equal(limited, 6);
    assert_int_equal(unlimited, 2);
    assert_int_equal(rig_read(r, RIG_QUEUES + DSA_WQCFG_BYTES + DSA_WQCFG_STATUS, 4) & 0xffff, 8);
    /* A posted write to a full dedicated queue is lost, and told. */
    for (; !(rig_read(r, DSA_SWERR, 4) & DSA_SWERR_VALID); posted++)
        rig_post(r, 0, &d);
    assert_int_equal(posted, 17);
    assert_int_equal(rig_read(r, DSA_SWERR, 8), DSA_SWERR_VALID | DSA_SWERR_QUEUE_VALID |
                                                    DSA_SWERR_PORTAL_FULL << DSA_SWERR_ERROR_SHIFT);
    assert_true(rig_read(r, DSA_INTCAUSE, 4) & DSA_INTCAUSE_ERROR);
    rig_post(r, 1, &d); /* a posted write to a shared queue */
    assert_true(rig_read(r, DSA_SWERR, 8) & DSA_SWERR_OVERFLOW);
    rig_write(r, DSA_SWERR, 8, DSA_SWERR_VALID | DSA_SWERR_OVERFLOW);
    rig_write(r, DSA_INTCAUSE, 4, DSA_INTCAUSE_ERROR);
    assert_int_equal(rig_read(r, DSA_SWERR, 8), 0);
    assert_int_equal(rig_read(r, DSA_INTCAUSE, 4), 0);
    /* 8 bytes into a portal */
    root_complex_mmio_write(r->rcs, 0, r->task, rig_at(r, 2, 0), 8, 1);
    assert_int_equal(rig_read(r, DSA_SWERR, 8) >> DSA_SWERR_ERROR_SHIFT & 0xff,
                     DSA_SWERR_PORTAL_SIZE);
    /* Abort: what is queued and under way ends without records, soon; the queue takes new ones. */
    assert_int_equal(rig_command(r, DSA_CMD_ABORT_WQ, 3), DSA_CMDSTS_OK);
    assert_int_equal(rig_record(r, record).status, DSA_STATUS_NONE);
    assert_int_equal(rig_record(r, record + 32).status, DSA_STATUS_NONE);
    d.record = record + 64;
    rig_post(r, 0, &d);
    assert_int_equal(rig_wait(r, record + 64).status, DSA_STATUS_SUCCESS);
}
static void test_thresholds_losses_and_abort(void **state)
{
    run(state, threshold_body);
}

/* What is aborted has no record, also a drain behind what is aborted with it. */
static void abort_body(struct dsa_rig *r)
{
    const uint64_t memory = rig_memory(r, 64 * PAGE), record = rig_memory(r, PAGE);
    const struct dsa_descriptor slow = rig_move(memory + 32 * PAGE, memory, 2 * PAGE, record);
    const struct dsa_descriptor starved = rig_move(memory + 32 * PAGE, memory, 64, record + 32);
    struct dsa_descriptor drain = rig_move(0, 0, 0, record + 64);
    drain.flags_operation = (uint32_t)DSA_OP_DRAIN << DSA_OPERATION_SHIFT |
                            (drain.flags_operation & DSA_FLAGS_MASK);
    rig_up(r);
    rig_post(r, 0, &slow); /* it has the only read buffer */
    assert_true(rig_enqueue(r, 1, DSA_PORTAL_UNLIMITED, &starved));
    assert_true(rig_enqueue(r, 1, DSA_PORTAL_UNLIMITED, &drain));
    rig_sleep(r, SIM_PS_PER_US);
    assert_int_equal(rig_command(r, DSA_CMD_ABORT_WQ, 2), DSA_CMDSTS_OK);
    assert_int_equal(rig_wait(r, record).status, DSA_STATUS_SUCCESS);
    assert_int_equal(rig_record(r, starved.record).status, DSA_STATUS_NONE);
    assert_int_equal(rig_record(r, drain.record).status, DSA_STATUS_NONE);
}
static void test_abort_writes_no_record(void **state)
{
    run(state, abort_body);
}

/* ---- "Drain" --------------------------------------------------------------------------------- */

static void drain_body(struct dsa_rig *r)
{
    const uint64_t memory = rig_memory(r, 64 * PAGE), record = rig_memory(r, PAGE);
    rig_up(r);
    for (unsigned i = 0; i < 4; i++) {
        const struct dsa_descriptor d = rig_move(memory + 32 * PAGE, memory, 8 * 4096,
                                                 record + 32 * i);
        rig_post(r, 0, &d);
    }
    struct dsa_descriptor drain = rig_move(0, 0, 0, record + 32 * 4);
    drain.flags_operation = (uint32_t)DSA_OP_DRAIN << DSA_OPERATION_SHIFT |
                            (drain.flags_operation & DSA_FLAGS_MASK);
    rig_post(r, 0, &drain);
    assert_int_equal(rig_wait(r, drain.record).status, DSA_STATUS_SUCCESS);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(rig_record(r, record + 32 * i).status, DSA_STATUS_SUCCESS);
    /* The command: active until what was submitted before has ended. */
    const struct dsa_descriptor slow = rig_move(memory + 32 * PAGE, memory, 32 * 4096,
                                                record + 32 * 5);
    rig_post(r, 0, &slow);
    rig_command_start(r, DSA_CMD_DRAIN_WQ, 1);
    assert_true(rig_read(r, DSA_CMDSTS, 4) & DSA_CMDSTS_ACTIVE);
    assert_int_equal(rig_record(r, slow.record).status, DSA_STATUS_NONE);
    assert_int_equal(rig_command_end(r), DSA_CMDSTS_OK);
    assert_int_equal(rig_record(r, slow.record).status, DSA_STATUS_SUCCESS);
    /* Disable waits, too; then the queue takes nothing. */
    struct dsa_descriptor last = slow;
    last.record = record + 32 * 6;
    rig_post(r, 0, &last);
    assert_int_equal(rig_command(r, DSA_CMD_DISABLE_WQ, 1), DSA_CMDSTS_OK);
    assert_int_equal(rig_record(r, last.record).status, DSA_STATUS_SUCCESS);
    rig_post(r, 0, &last);
    assert_int_equal(rig_read(r, DSA_SWERR, 8) >> DSA_SWERR_ERROR_SHIFT & 0xff,
                     DSA_SWERR_PORTAL_OFF);
}
static void test_drains_wait_for_what_came_before(void **state)
{
    run(state, drain_body);
}

/* As many drains as the engine has places, behind a batch that needs one of them. */
static void places_body(struct dsa_rig *r)
{
    const uint64_t memory = rig_memory(r, 64 * PAGE), record = rig_memory(r, PAGE);
    const uint64_t list = rig_memory(r, PAGE);
    struct dsa_descriptor drain = rig_move(0, 0, 0, record + 32 * 3);
    drain.flags_operation = (uint32_t)DSA_OP_DRAIN << DSA_OPERATION_SHIFT |
                            (drain.flags_operation & DSA_FLAGS_MASK);
    rig_up(r);
    for (unsigned i = 0; i < 2; i++) {
        const struct dsa_descriptor d = rig_move(memory + 32 * PAGE + 64 * i, memory, 64,
                                                 record + 32 * i);
        rig_put(r, list + 64 * i, &d, sizeof(d));
    }
    const struct dsa_descriptor batch = rig_batch(list, 2, record + 32 * 2);
    rig_post(r, 0, &batch);
    rig_post(r, 0, &drain);
    rig_post(r, 0, &drain);
    assert_int_equal(rig_wait(r, drain.record).status, DSA_STATUS_SUCCESS);
    assert_int_equal(rig_record(r, batch.record).status, DSA_STATUS_SUCCESS);
}
static void test_drains_take_no_place_from_a_batch(void **state)
{
    run(state, places_body);
}

/* ---- "Batch descriptor", fences -------------------------------------------------------------- */

static void batch_body(struct dsa_rig *r)
{
    static uint8_t bytes[32 * 1024], found[32 * 1024];
    const uint64_t source = rig_memory(r, 8 * PAGE), destination = rig_memory(r, 8 * PAGE);
    const uint64_t list = rig_memory(r, PAGE), record = rig_memory(r, PAGE);
    rig_up(r);
    rig_random(bytes, sizeof(bytes), 5);
    rig_put(r, source, bytes, sizeof(bytes));
    for (unsigned i = 0; i < 32; i++) { /* without records of their own */
        struct dsa_descriptor d = rig_move(destination + 1024 * i, source + 1024 * i, 1024, 0);
        d.flags_operation &= ~(DSA_FLAG_RECORD | DSA_FLAG_RECORD_VALID);
        rig_put(r, list + 64 * i, &d, sizeof(d));
    }
    struct dsa_descriptor batch = rig_batch(list, 32, record);
    rig_post(r, 0, &batch);
    const struct dsa_record end = rig_wait(r, record);
    assert_int_equal(end.status, DSA_STATUS_SUCCESS);
    assert_int_equal(end.completed, 32);
    rig_get(r, destination, found, sizeof(found));
    assert_memory_equal(found, bytes, sizeof(found));
    /* One that fails, and a fence behind it: what follows is not begun. */
    struct dsa_descriptor wrong = rig_move(destination, source, 0, record + 64);
    struct dsa_descriptor fence = rig_move(destination, source + 64, 64, record + 96);
    fence.flags_operation |= DSA_FLAG_FENCE;
    rig_put(r, list + 64 * 3, &wrong, sizeof(wrong));
    rig_put(r, list + 64 * 5, &fence, sizeof(fence));
    batch.record = record + 32;
    rig_post(r, 0, &batch);
    const struct dsa_record failed = rig_wait(r, record + 32);
    assert_int_equal(failed.status, DSA_STATUS_BATCH);
    assert_int_equal(failed.completed, 5);
    assert_int_equal(rig_record(r, record + 64).status, DSA_STATUS_BYTES);
    assert_int_equal(rig_record(r, record + 96).status, DSA_STATUS_NONE);
}
static void test_batches(void **state)
{
    run(state, batch_body);
}

/* A fence makes a chain of moves through one place come out right. */
static void fence_body(struct dsa_rig *r)
{
    static uint8_t bytes[4096], found[4096];
    const uint64_t at = rig_memory(r, 8 * PAGE), list = rig_memory(r, PAGE);
    const uint64_t record = rig_memory(r, PAGE);
    rig_up(r);
    rig_random(bytes, sizeof(bytes), 6);
    rig_put(r, at, bytes, sizeof(bytes));
    for (unsigned i = 0; i < 7; i++) {
        struct dsa_descriptor d = rig_move(at + PAGE * (i + 1), at + PAGE * i, 4096, 0);
        d.flags_operation &= ~(DSA_FLAG_RECORD | DSA_FLAG_RECORD_VALID);
        d.flags_operation |= i != 0 ? DSA_FLAG_FENCE : 0;
        rig_put(r, list + 64 * i, &d, sizeof(d));
    }
    const struct dsa_descriptor batch = rig_batch(list, 7, record);
    rig_post(r, 0, &batch);
    assert_int_equal(rig_wait(r, record).status, DSA_STATUS_SUCCESS);
    rig_get(r, at + PAGE * 7, found, sizeof(found));
    assert_memory_equal(found, bytes, sizeof(found));
}
static void test_fences(void **state)
{
    run(state, fence_body);
}

/* ---- "Descriptor checking and errors" -------------------------------------------------------- */

static struct dsa_record outcome(struct dsa_rig *r, struct dsa_descriptor d)
{
    const struct dsa_record zero = { 0 };
    rig_put(r, d.record, &zero, sizeof(zero));
    rig_post(r, 0, &d);
    return rig_wait(r, d.record);
}

static void errors_body(struct dsa_rig *r)
{
    const uint64_t memory = rig_memory(r, 8 * PAGE), record = rig_memory(r, PAGE);
    const struct dsa_descriptor good = rig_move(memory + PAGE, memory, 4096, record);
    const uint64_t nowhere = UINT64_C(0x7f0000000000);
    struct dsa_descriptor d = good;
    rig_up(r);
    d.flags_operation = 0x3fu << DSA_OPERATION_SHIFT | (d.flags_operation & DSA_FLAGS_MASK);
    assert_int_equal(outcome(r, d).status, DSA_STATUS_OPERATION);
    d = good;
    d.flags_operation |= DSA_FLAG_BLOCK_ON_FAULT | 1u << 20;
    assert_int_equal(outcome(r, d).status, DSA_STATUS_FLAGS);
    assert_int_equal(rig_record(r, record).invalid_flags, DSA_FLAG_BLOCK_ON_FAULT | 1u << 20);
    d = good;
    d.flags_operation |= DSA_FLAG_FENCE; /* outside of a batch */
    assert_int_equal(outcome(r, d).status, DSA_STATUS_FLAGS);
    d = good;
    d.specific[1] = 1;
    assert_int_equal(outcome(r, d).status, DSA_STATUS_RESERVED);
    d = good;
    d.bytes = 0;
    assert_int_equal(outcome(r, d).status, DSA_STATUS_BYTES);
    d.bytes = (2u << 20) + 1; /* WQCFG: Max Transfer Size */
    assert_int_equal(outcome(r, d).status, DSA_STATUS_BYTES);
    d = good;
    d.flags_operation |= DSA_FLAG_INTERRUPT;
    d.interrupt_handle = 17;
    assert_int_equal(outcome(r, d).status, DSA_STATUS_HANDLE);
    assert_int_equal(outcome(r, rig_batch(memory, 1, record)).status, DSA_STATUS_COUNT);
    assert_int_equal(outcome(r, rig_batch(memory, 33, record)).status, DSA_STATUS_COUNT);
    assert_int_equal(outcome(r, rig_batch(memory + 32, 2, record)).status,
                     DSA_STATUS_LIST_ALIGNMENT);
    assert_int_equal(outcome(r, rig_batch(nowhere, 2, record)).status, DSA_STATUS_BATCH_FAULT);
    assert_int_equal(rig_record(r, record).fault_address, nowhere);
    /* An address where nothing is: what was moved before is said. */
    d = good;
    d.source = nowhere;
    const struct dsa_record fault = outcome(r, d);
    assert_int_equal(fault.status, DSA_STATUS_FAULT);
    assert_int_equal(fault.completed, 0);
    assert_int_equal(fault.fault_address, nowhere);
    assert_int_equal(rig_read(r, DSA_SWERR, 8), 0);
    /* Without a record, and with one that is not aligned: SWERR. */
    d = good;
    d.record = record + 8;
    rig_post(r, 0, &d);
    rig_sleep(r, 5 * SIM_PS_PER_US);
    assert_int_equal(rig_read(r, DSA_SWERR, 8),
                     DSA_SWERR_VALID | DSA_SWERR_DESCRIPTOR | DSA_SWERR_QUEUE_VALID |
                         (uint64_t)DSA_STATUS_RECORD_ALIGNMENT << DSA_SWERR_ERROR_SHIFT |
                         (uint64_t)DSA_OP_MOVE << DSA_SWERR_OPERATION_SHIFT);
    rig_write(r, DSA_SWERR, 8, DSA_SWERR_VALID);
    d.record = 0;
    d.flags_operation &= ~DSA_FLAG_RECORD_VALID; /* but the record is asked for */
    rig_post(r, 0, &d);
    rig_sleep(r, 5 * SIM_PS_PER_US);
    assert_int_equal(rig_read(r, DSA_SWERR, 8) >> DSA_SWERR_ERROR_SHIFT & 0xff, DSA_STATUS_FLAGS);
    assert_int_equal(rig_read(r, DSA_SWERR + 8, 8) >> DSA_SWERR_FLAGS_SHIFT, DSA_FLAG_RECORD);
    assert_int_equal(outcome(r, good).status, DSA_STATUS_SUCCESS); /* it goes on */
}
static void test_errors(void **state)
{
    run(state, errors_body);
}

/* ---- Times ----------------------------------------------------------------------------------- */

struct seen {
    struct physmem_watch watch;
    struct sim *sim;
    sim_time at_ps;
};
static void seen_written(struct physmem_watch *watch)
{
    struct seen *seen = SIM_CONTAINER(watch, struct seen, watch);
    seen->at_ps = sim_now(seen->sim);
}

/* Posts it and returns the time from its arrival at the device to its record. */
static sim_time timed(struct dsa_rig *r, const struct dsa_descriptor *d)
{
    struct seen seen = { { .hpa = { d->record }, .bytes = 1, .written = seen_written },
                         r->f->sim,
                         0 };
    physmem_watch_add(r->mem, &seen.watch);
    const sim_time there_ps = root_complex_mmio_write_line(
        r->rcs, 0, r->task, rig_at(r, 2, DSA_PORTAL(0, DSA_PORTAL_UNLIMITED)), sizeof(*d), d);
    rig_wait(r, d->record);
    physmem_watch_remove(r->mem, &seen.watch);
    return seen.at_ps - there_ps;
}

/* Of lines in the LLC: the round trip of a read, a device's write of a line, and of part of one. */
static void llc_times(struct dsa_rig *r, uint64_t source, uint64_t destination, uint64_t record,
                      sim_time *read_ps, sim_time *write_ps, sim_time *record_ps)
{
    struct numa *numa = host_numa(r->f->host);
    const sim_time now_ps = sim_task_now(r->task);
    *read_ps = numa_dma_read(numa, 0, (struct hpa){ source }, 64, now_ps, NULL, NULL) - now_ps;
    *write_ps = numa_dma_write(numa, 0, (struct hpa){ destination }, 64, now_ps, NULL, NULL) -
                now_ps;
    *record_ps = numa_dma_write(numa, 0, (struct hpa){ record }, 32, now_ps, NULL, NULL) - now_ps;
}

#define INBOUND  UINT64_C(61000)
#define OUTBOUND UINT64_C(47000)
#define LINE_PS  UINT64_C(1500)

static void time_body(struct dsa_rig *r)
{
    const uint64_t source = rig_memory(r, 16 * PAGE), destination = rig_memory(r, 16 * PAGE);
    const uint64_t record = rig_memory(r, PAGE);
    sim_time read_ps, write_ps, record_ps;
    rig_up(r);
    numa_warm_device(host_numa(r->f->host), 0, (struct hpa){ source }, 16 * PAGE);
    numa_warm_device(host_numa(r->f->host), 0, (struct hpa){ destination }, 16 * PAGE);
    numa_warm_device(host_numa(r->f->host), 0, (struct hpa){ record }, PAGE);
    llc_times(r, source, destination, record, &read_ps, &write_ps, &record_ps);
    /* Alone: descriptor, a read's round trip, and the later of both writes, which go at once. */
    const struct dsa_descriptor one = rig_move(destination, source, 64, record);
    assert_int_equal(timed(r, &one), 33000 + INBOUND + read_ps + OUTBOUND + INBOUND +
                                         SIM_MAX(write_ps, LINE_PS + record_ps));
    /* As many lines as there are read buffers: their reads leave one after the other. */
    const struct dsa_descriptor four = rig_move(destination, source, 256, record + 64);
    assert_int_equal(timed(r, &four), 33000 + 3 * 7000 + INBOUND + read_ps + OUTBOUND + INBOUND +
                                          SIM_MAX(write_ps, LINE_PS + record_ps));
    /* Many lines: four of them per round trip, since there are four read buffers; a read waits at
     * the root complex until the write before it is visible. */
    const uint64_t lines = 16 * PAGE / 64, trip_ps = INBOUND + write_ps + read_ps + OUTBOUND;
    const struct dsa_descriptor many = rig_move(destination, source, 16 * PAGE, record + 32);
    const sim_time took_ps = timed(r, &many);
    assert_true(took_ps >= lines / 4 * trip_ps && took_ps < lines / 4 * trip_ps * 102 / 100);
}
static void test_times_of_moves(void **state)
{
    run(state, time_body);
}

/* Groups: what is reserved for one is not the other's, and a limit holds. */
static void buffers_body(struct dsa_rig *r)
{
    const uint64_t source = rig_memory(r, 16 * PAGE), destination = rig_memory(r, 16 * PAGE);
    const uint64_t record = rig_memory(r, PAGE);
    sim_time took_ps[4];
    static const uint32_t flags[4][2] = {
        /* of group 0; GENCFG */
        { 16u << DSA_GRPFLAGS_ALLOWED_SHIFT, 0 },
        { 4u << DSA_GRPFLAGS_ALLOWED_SHIFT, 0 },
        { 16u << DSA_GRPFLAGS_ALLOWED_SHIFT | DSA_GRPFLAGS_LIMIT, 4 },
        { 16u << DSA_GRPFLAGS_ALLOWED_SHIFT, 0 },
    };
    for (unsigned i = 0; i < 4; i++) {
        const struct dsa_descriptor d = rig_move(destination, source, 16 * PAGE, record + 32 * i);
        rig_queue(r, 0, 16, 0, 10);
        rig_write(r, RIG_GROUPS + DSA_GRPCFG_FLAGS, 8, flags[i][0]);
        rig_write(r, DSA_GENCFG, 4, flags[i][1]);
        if (i == 3) { /* another group has 12 of the 16 for itself */
            rig_write(r, RIG_GROUPS + DSA_GRPCFG_BYTES + DSA_GRPCFG_FLAGS, 8,
                      12u << DSA_GRPFLAGS_RESERVED_SHIFT | 16u << DSA_GRPFLAGS_ALLOWED_SHIFT);
            rig_write(r, RIG_GROUPS + DSA_GRPCFG_BYTES + DSA_GRPCFG_QUEUES, 8, 2);
            rig_write(r, RIG_GROUPS + DSA_GRPCFG_BYTES + DSA_GRPCFG_ENGINES, 8, 2);
        }
        rig_group(r, 1, 1);
        rig_enable(r, 0);
        took_ps[i] = timed(r, &d);
        assert_int_equal(rig_command(r, DSA_CMD_RESET_DEVICE, 0), DSA_CMDSTS_OK);
    }
    for (unsigned i = 1; i < 4; i++) /* four read buffers instead of sixteen */
        assert_true(took_ps[i] > 3 * took_ps[0]);
}
static void test_read_buffers_of_groups(void **state)
{
    run(state, buffers_body);
}

/* ---- Function-level reset -------------------------------------------------------------------- */

static void reset_body(struct dsa_rig *r)
{
    const uint64_t memory = rig_memory(r, 64 * PAGE), record = rig_memory(r, PAGE);
    const uint16_t id = r->function->cfg.id;
    const struct dsa_descriptor d = rig_move(memory + 32 * PAGE, memory, 32 * 4096, record);
    const uint64_t bars[2] = { rig_at(r, 0, 0).v, rig_at(r, 2, 0).v };
    for (unsigned i = 0; i < 2; i++) {
        rig_up(r);
        for (unsigned k = 0; k < 12; k++)
            rig_post(r, 0, &d);
        rig_sleep(r, SIM_PS_PER_US);
        root_complex_config_write(r->rcs, 0, r->task, id, r->function->cfg.pcie_cap + PCIE_DEVCTL,
                                  2, PCIE_DEVCTL_FLR);
        rig_sleep(r, 10 * SIM_PS_PER_US);
        assert_int_equal(rig_record(r, record).status, DSA_STATUS_NONE);
        for (unsigned b = 0; b < 2; b++) {
            root_complex_config_write(r->rcs, 0, r->task, id, PCI_BAR0 + 8 * b, 4,
                                      (uint32_t)bars[b]);
            root_complex_config_write(r->rcs, 0, r->task, id, PCI_BAR0 + 8 * b + 4, 4,
                                      (uint32_t)(bars[b] >> 32));
        }
        root_complex_config_write(r->rcs, 0, r->task, id, PCI_COMMAND, 2,
                                  PCI_COMMAND_MEMORY | PCI_COMMAND_BUS_MASTER);
        root_complex_config_write(r->rcs, 0, r->task, id, r->function->cfg.pcie_cap + PCIE_DEVCTL,
                                  2, PCIE_DEVCTL_EXTENDED_TAG);
        assert_int_equal(rig_read(r, DSA_GENSTS, 4), DSA_DISABLED | DSA_RESET_FUNCTION << 2);
    }
    rig_up(r);
    rig_post(r, 0, &d);
    assert_int_equal(rig_wait(r, record).status, DSA_STATUS_SUCCESS);
}
static void test_function_level_reset(void **state)
{
    run(state, reset_body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(test_capabilities, DSA_WORLD("")),
        WORLD_TEST(test_configuration_is_locked_while_in_use, DSA_WORLD("")),
        WORLD_TEST(test_commands_check_what_they_are_about, DSA_WORLD("")),
        WORLD_TEST(test_moves_bytes_of_any_alignment, DSA_WORLD("")),
        WORLD_TEST(test_moves_marks_of_bulk_payload, DSA_WORLD("")),
        WORLD_TEST(test_moves_of_ranges_that_overlap, DSA_WORLD("")),
        WORLD_TEST(test_a_full_shared_queue_refuses, DSA_WORLD("")),
        WORLD_TEST(test_thresholds_losses_and_abort, DSA_WORLD("engine_descriptors = 1;")),
        WORLD_TEST(test_abort_writes_no_record, DSA_WORLD("read_buffers = 1;")),
        WORLD_TEST(test_drains_wait_for_what_came_before, DSA_WORLD("")),
        WORLD_TEST(test_drains_take_no_place_from_a_batch, DSA_WORLD("engine_descriptors = 2;")),
        WORLD_TEST(test_batches, DSA_WORLD("")),
        WORLD_TEST(test_fences, DSA_WORLD("")),
        WORLD_TEST(test_errors, DSA_WORLD("")),
        WORLD_TEST(test_times_of_moves,
                   DSA_WORLD("descriptor_ns = 33; read_buffers = 4; read_interval_ns = 7;")),
        WORLD_TEST(test_read_buffers_of_groups, DSA_WORLD("read_buffers = 16;")),
        WORLD_TEST(test_function_level_reset, DSA_WORLD("")),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
