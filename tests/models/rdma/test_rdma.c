/*
 * RDMA adapters on mere memory: registers, every refusal of a command, unloaded latency against the
 * formula, page tables through the smallest cache, little room everywhere, overrun of a completion
 * queue, what is destroyed or reset in mid traffic, and drivers that write anything anywhere.
 */
#include "tests/support/rdma_rig.h"

#include "models/rdma/rdma_internal.h"
#include "tests/support/pcie_rig.h"

#define BUFFERS UINT64_C(0x800000)

static struct rdma_rig rig;
static struct rr_qp qp[RR_ADAPTERS];

static void fill(uint64_t at, uint32_t bytes, unsigned number)
{
    for (uint32_t i = 0; i < bytes; i++)
        rig.memory[at + i] = (uint8_t)(i * 11 + i / 251 + number);
}

/* ---- Registers, commands --------------------------------------------------------------------- */

static void test_registers(void **state)
{
    (void)state;
    rr_open(&rig, 0, (const char *const[]){ "inline_bytes", "100", NULL });
    assert_int_equal(rr_read32(&rig, 0, RDMA_REG_VERSION), RDMA_VERSION);
    assert_int_equal(rr_read32(&rig, 0, RDMA_REG_N_QPS), 1024);
    assert_int_equal(rr_read32(&rig, 0, RDMA_REG_N_CQS), 1024);
    assert_int_equal(rr_read32(&rig, 0, RDMA_REG_N_EQS), 64);
    assert_int_equal(rr_read32(&rig, 0, RDMA_REG_N_KEYS), 4096);
    assert_int_equal(rr_read32(&rig, 0, RDMA_REG_N_PDS), 256);
    assert_int_equal(rr_read32(&rig, 0, RDMA_REG_INLINE_BYTES), 100);
    assert_int_equal(rr_read32(&rig, 0, RDMA_REG_READS), 16);
    assert_int_equal(rr_read32(&rig, 0, RDMA_REG_MTU_BYTES), 4096);
    assert_int_equal(rr_read32(&rig, 0, RDMA_REG_RATE_GBIT_S), 100);
    assert_int_equal(rr_read32(&rig, 0, RDMA_REG_LINK), 1);
    assert_int_equal(rr_read32(&rig, 1, RDMA_REG_LID), 2);
    rr_write32(&rig, 1, RDMA_REG_LID, RDMA_LID_LAST + 1); /* none of a port */
    assert_int_equal(rr_read32(&rig, 1, RDMA_REG_LID), 2);
    ib_port_link(cable_port(&ib_cable, rig.adapter[0], 0), false);
    assert_int_equal(rr_read32(&rig, 1, RDMA_REG_LINK), 0);
    rr_close(&rig);
}

static const struct {
    struct rdma_command command;
    uint8_t status;
} refusals[] = {
    { { .opcode = 0 }, RDMA_COMMAND_BAD },
    { { .opcode = 999 }, RDMA_COMMAND_BAD },
    { { .opcode = RDMA_CREATE_EQ, .number = 64 }, RDMA_COMMAND_BAD },
    { { .opcode = RDMA_CREATE_EQ, .number = 0 }, RDMA_COMMAND_BUSY },
    { { .opcode = RDMA_CREATE_EQ, .number = 1, .target = 64 }, RDMA_COMMAND_BAD },
    { { .opcode = RDMA_CREATE_EQ, .number = 1, .log_entries = 16 }, RDMA_COMMAND_BAD },
    { { .opcode = RDMA_CREATE_EQ, .number = 1, .iova = 8 }, RDMA_COMMAND_BAD },
    { { .opcode = RDMA_CREATE_CQ, .target = 1 }, RDMA_COMMAND_NOT_FOUND },
    { { .opcode = RDMA_CREATE_CQ, .record_iova = 2 }, RDMA_COMMAND_BAD },
    { { .opcode = RDMA_CREATE_CQ, .log_entries = 16 }, RDMA_COMMAND_BAD },
    { { .opcode = RDMA_CREATE_MR, .pd = 255, .bytes = 1 }, RDMA_COMMAND_NOT_FOUND },
    { { .opcode = RDMA_CREATE_MR, .bytes = 0 }, RDMA_COMMAND_BAD },
    { { .opcode = RDMA_CREATE_MR, .va = 16, .bytes = UINT64_MAX }, RDMA_COMMAND_BAD },
    { { .opcode = RDMA_CREATE_MR, .bytes = 1, .page_log = 11 }, RDMA_COMMAND_BAD },
    { { .opcode = RDMA_CREATE_MR, .bytes = 1, .page_log = 12, .iova = 4 }, RDMA_COMMAND_BAD },
    { { .opcode = RDMA_CREATE_MR, .bytes = 1, .access = 0x10 }, RDMA_COMMAND_BAD },
    { { .opcode = RDMA_CREATE_MR, .bytes = 1, .access = RDMA_ACCESS_REMOTE_WRITE },
      RDMA_COMMAND_BAD }, /* without local write */
    { { .opcode = RDMA_CREATE_QP, .send_cq = 9 }, RDMA_COMMAND_NOT_FOUND },
    { { .opcode = RDMA_CREATE_QP, .rq_entry_log = 5 }, RDMA_COMMAND_BAD },
    { { .opcode = RDMA_CREATE_QP, .iova = 32 }, RDMA_COMMAND_BAD },
    { { .opcode = RDMA_CREATE_QP, .pd = 3 }, RDMA_COMMAND_NOT_FOUND },
    { { .opcode = RDMA_MODIFY_QP, .number = 1 }, RDMA_COMMAND_NOT_FOUND },
    { { .opcode = RDMA_MODIFY_QP, .number = 2, .state = RDMA_QP_RTR }, RDMA_COMMAND_STATE },
    { { .opcode = RDMA_MODIFY_QP, .number = 2, .state = RDMA_QP_INIT }, RDMA_COMMAND_STATE },
    { { .opcode = RDMA_MODIFY_QP, .number = 2, .state = RDMA_QP_SQE }, RDMA_COMMAND_STATE },
    { { .opcode = RDMA_MODIFY_QP, .number = 2, .state = 200 }, RDMA_COMMAND_STATE },
    { { .opcode = RDMA_QUERY_QP, .number = UINT32_MAX }, RDMA_COMMAND_NOT_FOUND },
    { { .opcode = RDMA_DESTROY_EQ }, RDMA_COMMAND_BUSY },
    { { .opcode = RDMA_DESTROY_CQ }, RDMA_COMMAND_BUSY },
    { { .opcode = RDMA_DESTROY_PD }, RDMA_COMMAND_BUSY },
    { { .opcode = RDMA_DESTROY_EQ, .number = 5 }, RDMA_COMMAND_NOT_FOUND },
    { { .opcode = RDMA_DESTROY_CQ, .number = 5 }, RDMA_COMMAND_NOT_FOUND },
    { { .opcode = RDMA_DESTROY_PD, .number = 5 }, RDMA_COMMAND_NOT_FOUND },
    { { .opcode = RDMA_DESTROY_MR, .key = 0 }, RDMA_COMMAND_NOT_FOUND },
    { { .opcode = RDMA_DESTROY_QP, .number = 77 }, RDMA_COMMAND_NOT_FOUND },
};

/* What an INIT queue pair does not take on its way to RTR and RTS. */
static void refuse_attributes(uint32_t number)
{
    const struct rdma_command good = { .opcode = RDMA_MODIFY_QP,
                                       .number = number,
                                       .state = RDMA_QP_RTR,
                                       .mtu = 1,
                                       .lid = 2,
                                       .destination_qp = 5 };
    struct rdma_command bad[6] = { good, good, good, good, good, good };
    bad[0].mtu = 6;
    bad[1].lid = 0;
    bad[2].destination_qp = 1 << 24;
    bad[3].receive_psn = 1 << 24;
    bad[4].remote_reads = 17;
    bad[5].rnr_timer = 32;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(bad); i++)
        assert_int_equal(rr_command(&rig, 0, bad[i]).status, RDMA_COMMAND_BAD);
    rr_ok(&rig, 0, good);
    const struct rdma_command rts = { .opcode = RDMA_MODIFY_QP,
                                      .number = number,
                                      .state = RDMA_QP_RTS };
    struct rdma_command no_rts[5] = { rts, rts, rts, rts, rts };
    no_rts[0].send_psn = 1 << 24;
    no_rts[1].timeout = 32;
    no_rts[2].retries = 8;
    no_rts[3].rnr_retries = 8;
    no_rts[4].reads = 17;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(no_rts); i++)
        assert_int_equal(rr_command(&rig, 0, no_rts[i]).status, RDMA_COMMAND_BAD);
    rr_ok(&rig, 0, rts);
    assert_int_equal(
        rr_ok(&rig, 0, (struct rdma_command){ .opcode = RDMA_QUERY_QP, .number = number }).state,
        RDMA_QP_RTS);
}

static void test_commands_that_are_refused(void **state)
{
    (void)state;
    rr_open(&rig, 0, NULL);
    rr_connect(&rig, qp, 4);
    assert_int_equal(qp[0].number, 2);
    for (unsigned i = 0; i < SIM_N_ELEMENTS(refusals); i++) {
        const uint8_t status = rr_command(&rig, 0, refusals[i].command).status;
        if (status != refusals[i].status)
            fail_msg("refusal %u: status %u instead of %u", i, status, refusals[i].status);
    }
    /* Back to RESET, and on with what is wrong. */
    struct rdma_command command = { .opcode = RDMA_MODIFY_QP,
                                    .number = qp[0].number,
                                    .state = RDMA_QP_RESET };
    rr_ok(&rig, 0, command);
    command.state = RDMA_QP_ERR;
    assert_int_equal(rr_command(&rig, 0, command).status, RDMA_COMMAND_STATE);
    command.state = RDMA_QP_INIT;
    rr_ok(&rig, 0, command);
    refuse_attributes(qp[0].number);
    /* In the right order everything goes. */
    rr_ok(&rig, 0, (struct rdma_command){ .opcode = RDMA_DESTROY_QP, .number = qp[0].number });
    rr_ok(&rig, 0, (struct rdma_command){ .opcode = RDMA_DESTROY_MR, .key = qp[0].key });
    rr_ok(&rig, 0, (struct rdma_command){ .opcode = RDMA_DESTROY_PD, .number = qp[0].pd });
    rr_ok(&rig, 0, (struct rdma_command){ .opcode = RDMA_DESTROY_CQ, .number = qp[0].cq });
    rr_ok(&rig, 0, (struct rdma_command){ .opcode = RDMA_DESTROY_EQ });
    rr_close(&rig);
}

static void test_tables_end(void **state)
{
    (void)state;
    rr_open(&rig, 0,
            (const char *const[]){ "keys", "3", "protection_domains", "2", "completion_queues", "1",
                                   "queue_pairs", "4", NULL });
    rr_connect(&rig, qp, 4);
    const struct rdma_command commands[] = {
        { .opcode = RDMA_CREATE_PD },
        { .opcode = RDMA_CREATE_MR, .bytes = 1 },
        { .opcode = RDMA_CREATE_QP },
    };
    for (unsigned i = 0; i < SIM_N_ELEMENTS(commands); i++) {
        rr_ok(&rig, 0, commands[i]);
        assert_int_equal(rr_command(&rig, 0, commands[i]).status, RDMA_COMMAND_NO_RESOURCE);
    }
    assert_int_equal(rr_command(&rig, 0, (struct rdma_command){ .opcode = RDMA_CREATE_CQ }).status,
                     RDMA_COMMAND_NO_RESOURCE);
    rr_close(&rig);
}

/* ---- Latency --------------------------------------------------------------------------------- */

static sim_time pcie_ps(unsigned payload, bool far)
{
    return RR_LINK_PS + spec_wire_ps(3, 16, 8u + (far ? 16 : 12) + payload);
}

/* From the BlueFlame write at the one root port to the byte at the other. */
static void test_unloaded_latency_is_the_formula(void **state)
{
    (void)state;
    rr_open(&rig, 0, NULL);
    rr_connect(&rig, qp, 4);
    struct rr_wqe wqe = rr_wqe(&qp[0], RDMA_OP_WRITE, 0, 0, BUFFERS + 64, qp[1].key);
    const uint8_t byte = 0x5a;
    wqe.data = (struct rdma_wqe_data){ .bytes = RDMA_WQE_INLINE | 1, .lkey = byte };
    wqe.control.flags = 0;
    rr_post(&rig, &qp[0], &wqe);
    rr_run(&rig, 10 * SIM_PS_PER_US);
    const sim_time start_ps = sim_now(rig.sim);
    const uint64_t packet_bytes = 8 + 12 + 16 + 4 + 6 + 2;
    rr_write(&rig, 0, RDMA_BLUEFLAME(qp[0].number), &wqe, sizeof(wqe));
    rr_run(&rig, 10 * SIM_PS_PER_US);
    assert_int_equal(rig.memory[BUFFERS + 64], byte);
    assert_int_equal(rig.last_write_ps - start_ps, pcie_ps(64, true) + 200 * SIM_PS_PER_NS +
                                                       packet_bytes * 80 + RR_WIRE_PS +
                                                       200 * SIM_PS_PER_NS + pcie_ps(4, false));
    assert_int_equal(rdma_stats(rig.adapter[0])->blueflame, 1);
    assert_int_equal(rdma_stats(rig.adapter[0])->wqe_fetches, 0);
    rr_close(&rig);
}

/* Three blocks of inline data, the first one last, after a write that was given up. */
static void test_blueflame_blocks_in_any_order(void **state)
{
    uint8_t wqe[192] = { 0 };
    (void)state;
    rr_open(&rig, 0, NULL);
    rr_connect(&rig, qp, 4);
    const uint32_t bytes = 140, head = RDMA_WQE_INLINE | bytes;
    struct rr_wqe first = rr_wqe(&qp[0], RDMA_OP_WRITE, 0, 0, BUFFERS + 64, qp[1].key);
    first.control.n_segments = (uint8_t)(2 + (4 + bytes + 15) / 16);
    memcpy(wqe, &first, 32);
    memcpy(wqe + 32, &head, sizeof(head));
    fill(BUFFERS + 4096, bytes, 9);
    memcpy(wqe + 36, rig.memory + BUFFERS + 4096, bytes);
    memcpy(rig.memory + qp[0].sq, wqe, sizeof(wqe));
    rr_write(&rig, 0, RDMA_BLUEFLAME(qp[0].number), &first, 64);
    rr_write(&rig, 0, RDMA_BLUEFLAME(qp[0].number) + 128, wqe + 128, 64);
    rr_write(&rig, 0, RDMA_BLUEFLAME(qp[0].number), wqe, 64);
    rr_run(&rig, 10 * SIM_PS_PER_US);
    assert_int_equal(rdma_stats(rig.adapter[0])->wqes, 0);
    rr_write(&rig, 0, RDMA_BLUEFLAME(qp[0].number) + 128, wqe + 128, 64);
    rr_write(&rig, 0, RDMA_BLUEFLAME(qp[0].number) + 64, wqe + 64, 64);
    rr_run(&rig, 10 * SIM_PS_PER_US);
    assert_int_equal(rdma_stats(rig.adapter[0])->blueflame, 1);
    assert_memory_equal(rig.memory + BUFFERS + 64, rig.memory + BUFFERS + 4096, bytes);
    rr_close(&rig);
}

/* The same with a doorbell and 8 bytes of memory: two reads more, one after the other. */
static void test_a_doorbell_takes_two_reads_more(void **state)
{
    (void)state;
    rr_open(&rig, 0, NULL);
    rr_connect(&rig, qp, 4);
    struct rr_wqe wqe = rr_wqe(&qp[0], RDMA_OP_WRITE, BUFFERS, 8, BUFFERS + 64, qp[1].key);
    wqe.control.flags = 0;
    fill(BUFFERS, 8, 3);
    rr_post(&rig, &qp[0], &wqe);
    rr_run(&rig, 10 * SIM_PS_PER_US);
    const sim_time start_ps = sim_now(rig.sim);
    const uint64_t packet_bytes = 8 + 12 + 16 + 8 + 6 + 2;
    const sim_time fetch_ps = pcie_ps(0, false) + RR_DELAY_PS + pcie_ps(64, false);
    const sim_time data_ps = pcie_ps(0, false) + RR_DELAY_PS + pcie_ps(8, false);
    rr_doorbell(&rig, 0, &qp[0]);
    rr_run(&rig, 10 * SIM_PS_PER_US);
    assert_memory_equal(rig.memory + BUFFERS, rig.memory + BUFFERS + 64, 8);
    assert_int_equal(rig.last_write_ps - start_ps, pcie_ps(4, true) + fetch_ps + data_ps +
                                                       400 * SIM_PS_PER_NS + packet_bytes * 80 +
                                                       RR_WIRE_PS + pcie_ps(8, false));
    rr_close(&rig);
}

/* ---- Regions with pages ---------------------------------------------------------------------- */

#define N_PAGES 40u

/* Pages of 4 KiB in a strange order. */
static uint64_t page_at(unsigned i)
{
    return BUFFERS + (i * 7 % N_PAGES) * 4096;
}

static uint32_t scattered_region(unsigned a, uint64_t first_byte)
{
    const uint64_t table = rr_alloc(&rig, 8 * N_PAGES);
    for (unsigned i = 0; i < N_PAGES; i++) {
        const uint64_t page = page_at(i);
        memcpy(rig.memory + table + 8 * (uint64_t)i, &page, sizeof(page));
    }
    return rr_ok(&rig, a,
                 (struct rdma_command){ .opcode = RDMA_CREATE_MR,
                                        .pd = qp[a].pd,
                                        .va = first_byte,
                                        .bytes = N_PAGES * 4096 - first_byte % 4096,
                                        .iova = table,
                                        .access = 0xf,
                                        .page_log = 12 })
        .key;
}

static void test_pages_through_the_smallest_cache(void **state)
{
    const uint64_t va = UINT64_C(0x7f0000000123);
    const uint32_t bytes = 30 * 4096;
    struct rdma_cqe cqe;
    (void)state;
    rr_open(&rig, 0,
            (const char *const[]){ "translation_entries", "1", "rx_buffer_bytes", "4352",
                                   "tx_buffer_bytes", "4096", "receive_prefetch_wqes", "1",
                                   "wqe_fetch_blocks", "1", "wqes_per_queue", "1", NULL });
    rr_connect(&rig, qp, 6);
    const uint32_t key = scattered_region(1, va);
    const uint64_t from = rr_alloc(&rig, bytes), back = rr_alloc(&rig, bytes);
    fill(from, bytes, 1);
    struct rr_wqe wqe = rr_wqe(&qp[0], RDMA_OP_WRITE, from, bytes, va + 5000, key);
    rr_post(&rig, &qp[0], &wqe);
    wqe = rr_wqe(&qp[0], RDMA_OP_READ, back, bytes, va + 5000, key);
    rr_post(&rig, &qp[0], &wqe);
    rr_doorbell(&rig, 0, &qp[0]);
    rr_run(&rig, SIM_PS_PER_MS);
    for (unsigned i = 0; i < 2; i++) {
        assert_true(rr_poll(&rig, &qp[0], &cqe));
        assert_int_equal(cqe.status, RDMA_SUCCESS);
    }
    for (uint32_t i = 0; i < bytes; i++) {
        const uint64_t place = 0x123 + 5000 + i;
        assert_int_equal(rig.memory[page_at((unsigned)(place / 4096)) + place % 4096],
                         rig.memory[from + i]);
    }
    assert_memory_equal(rig.memory + back, rig.memory + from, bytes);
    assert_true(rdma_stats(rig.adapter[1])->translation_misses >= 2 * 30 / 8);
    /* A table that is no memory: the responder cannot do it. */
    const uint32_t bad = rr_ok(&rig, 1,
                               (struct rdma_command){ .opcode = RDMA_CREATE_MR,
                                                      .pd = qp[1].pd,
                                                      .bytes = 4096,
                                                      .iova = RR_MEMORY_BYTES,
                                                      .access = 0xf,
                                                      .page_log = 12 })
                             .key;
    wqe = rr_wqe(&qp[0], RDMA_OP_READ, back, 8, 0, bad);
    rr_post(&rig, &qp[0], &wqe);
    rr_doorbell(&rig, 0, &qp[0]);
    rr_run(&rig, SIM_PS_PER_MS);
    assert_true(rr_poll(&rig, &qp[0], &cqe));
    assert_int_equal(cqe.status, RDMA_REMOTE_OPERATION);
    rr_close(&rig);
}

#define GIB        (1u << 30)
#define ALIAS_LOG  21u
#define ALIASES_AT (UINT64_C(8) << 20) /* of memory: what all pages of the region are */

/* A region of 2 GiB on one side, of one page many times. */
static uint32_t aliased_region(unsigned a)
{
    const uint64_t page = ALIASES_AT, n = 2 * (uint64_t)GIB >> ALIAS_LOG,
                   table = rr_alloc(&rig, 8 * n);
    for (uint64_t i = 0; i < n; i++)
        memcpy(rig.memory + table + 8 * i, &page, sizeof(page));
    return rr_ok(&rig, a,
                 (struct rdma_command){ .opcode = RDMA_CREATE_MR,
                                        .pd = qp[a].pd,
                                        .bytes = 2 * (uint64_t)GIB,
                                        .iova = table,
                                        .access = 0xf,
                                        .page_log = ALIAS_LOG })
        .key;
}

#define SKIPPED ((1u << 23) - 5000)

/* As if so many packets of the message had come and gone; those on the way are sent again. */
static void skip_packets(void)
{
    struct rdma_qp *from = rdma_qp_find(rig.adapter[0]->state, qp[0].number);
    struct rdma_qp *to = rdma_qp_find(rig.adapter[1]->state, qp[1].number);
    from->cursor_psns += SKIPPED;
    from->unacked_psn = rdma_psn_add(from->unacked_psn, SKIPPED);
    from->sent_psn = rdma_psn_add(from->sent_psn, SKIPPED);
    to->expected_psn = rdma_psn_add(to->expected_psn, SKIPPED);
    to->received += (uint64_t)SKIPPED * RDMA_MTU_BYTES(RDMA_MTU_CODE_MIN);
}

static void post_longest(enum rdma_opcode opcode, uint32_t lkey, uint32_t rkey)
{
    const struct rdma_wqe_data more = { .bytes = GIB, .lkey = lkey, .va = GIB };
    struct rr_wqe wqe = rr_wqe(&qp[0], opcode, 0, GIB, 0, rkey);
    wqe.data.lkey = lkey;
    wqe.control.n_segments = 4;
    memcpy(wqe.rest, &more, sizeof(more));
    rr_post(&rig, &qp[0], &wqe);
    rr_doorbell(&rig, 0, &qp[0]);
}

/* The longest message in the smallest packets is half of all sequence numbers, and as many may be
 * under way: a write comes to its end, a read begins. */
static void test_half_of_all_sequence_numbers(void **state)
{
    struct rdma_cqe cqe;
    (void)state;
    rr_open(&rig, 0, NULL);
    rig.mtu = RDMA_MTU_CODE_MIN;
    rr_connect(&rig, qp, 6);
    const uint32_t key = aliased_region(0);
    post_longest(RDMA_OP_WRITE, key, aliased_region(1));
    rr_run(&rig, 20 * SIM_PS_PER_US);
    skip_packets();
    rr_run(&rig, SIM_PS_PER_MS);
    assert_true(rr_poll(&rig, &qp[0], &cqe));
    assert_int_equal(cqe.status, RDMA_SUCCESS);
    assert_in_range(rdma_stats(rig.adapter[0])->requests, 5000, 6000);
    assert_int_equal(rdma_stats(rig.adapter[0])->timeouts, 0);
    post_longest(RDMA_OP_READ, key, qp[1].key); /* of a region that is too small */
    rr_run(&rig, SIM_PS_PER_MS);
    assert_true(rr_poll(&rig, &qp[0], &cqe));
    assert_int_equal(cqe.status, RDMA_REMOTE_ACCESS);
    rr_close(&rig);
}

static void post_from(struct rr_qp *from, uint32_t lkey, uint64_t va)
{
    struct rr_wqe wqe = rr_wqe(from, RDMA_OP_WRITE, va, 64, BUFFERS, qp[1].key);
    wqe.data.lkey = lkey;
    rr_post(&rig, from, &wqe);
}

/* Regions whose pages take the place of each other while others wait for it. */
static void test_regions_share_a_cached_translation(void **state)
{
    struct rr_qp more[RR_ADAPTERS];
    uint32_t key[3];
    struct rdma_cqe cqe;
    (void)state;
    rr_open(&rig, 0, (const char *const[]){ "translation_entries", "1", NULL });
    rr_connect(&rig, qp, 6);
    rr_connect_more(&rig, qp, more);
    for (unsigned i = 0; i < SIM_N_ELEMENTS(key); i++)
        key[i] = scattered_region(0, 0);
    for (unsigned i = 0; i < SIM_N_ELEMENTS(key); i++)
        post_from(&qp[0], key[i], i * 64);
    rr_doorbell(&rig, 0, &qp[0]);
    rr_run(&rig, SIM_PS_PER_MS);
    for (unsigned i = 0; i < SIM_N_ELEMENTS(key); i++) {
        assert_true(rr_poll(&rig, &qp[0], &cqe));
        assert_int_equal(cqe.status, RDMA_SUCCESS);
    }
    assert_int_equal(rdma_stats(rig.adapter[0])->translation_misses, SIM_N_ELEMENTS(key));
    for (unsigned i = 1; i < SIM_N_ELEMENTS(key); i++) /* nothing of them is in use any more */
        rr_ok(&rig, 0, (struct rdma_command){ .opcode = RDMA_DESTROY_MR, .key = key[i] });
    /* A table that is no memory is the fault of its region alone, not of those that wait too. */
    const uint32_t bad = rr_ok(&rig, 0,
                               (struct rdma_command){ .opcode = RDMA_CREATE_MR,
                                                      .pd = qp[0].pd,
                                                      .bytes = 4096,
                                                      .iova = RR_MEMORY_BYTES,
                                                      .access = 0xf,
                                                      .page_log = 12 })
                             .key;
    post_from(&qp[0], bad, 0);
    post_from(&more[0], key[0], 0);
    post_from(&more[0], key[0], 64);
    rr_doorbell(&rig, 0, &qp[0]);
    rr_doorbell(&rig, 0, &more[0]);
    rr_run(&rig, SIM_PS_PER_MS);
    assert_true(rr_poll(&rig, &qp[0], &cqe));
    assert_int_not_equal(cqe.status, RDMA_SUCCESS);
    assert_int_equal(cqe.qp, qp[0].number);
    for (unsigned i = 0; i < 2; i++) {
        assert_true(rr_poll(&rig, &qp[0], &cqe));
        assert_int_equal(cqe.status, RDMA_SUCCESS);
        assert_int_equal(cqe.qp, more[0].number);
    }
    rr_ok(&rig, 0, (struct rdma_command){ .opcode = RDMA_DESTROY_MR, .key = key[0] });
    rr_ok(&rig, 0, (struct rdma_command){ .opcode = RDMA_DESTROY_MR, .key = bad });
    rr_close(&rig);
}

/* A read before a request that is refused: its data comes, then the NAK, which is the latter's. */
static void test_what_was_asked_for_before_a_refusal(void **state)
{
    const uint64_t from = BUFFERS + (2 << 20);
    const uint32_t bytes = 1 << 20;
    struct rdma_cqe cqe;
    (void)state;
    rr_open(&rig, 0, NULL);
    rr_connect(&rig, qp, 6);
    fill(from, bytes, 5);
    struct rr_wqe wqe = rr_wqe(&qp[0], RDMA_OP_READ, BUFFERS, bytes, from, qp[1].key);
    rr_post(&rig, &qp[0], &wqe);
    wqe = rr_wqe(&qp[0], RDMA_OP_WRITE, from, 64, BUFFERS, qp[1].key + 1);
    rr_post(&rig, &qp[0], &wqe);
    rr_doorbell(&rig, 0, &qp[0]);
    rr_run(&rig, 10 * SIM_PS_PER_MS);
    assert_true(rr_poll(&rig, &qp[0], &cqe));
    assert_int_equal(cqe.opcode, RDMA_OP_READ);
    assert_int_equal(cqe.status, RDMA_SUCCESS);
    assert_memory_equal(rig.memory + BUFFERS, rig.memory + from, bytes);
    assert_true(rr_poll(&rig, &qp[0], &cqe));
    assert_int_equal(cqe.opcode, RDMA_OP_WRITE);
    assert_int_equal(cqe.status, RDMA_REMOTE_ACCESS);
    assert_int_equal(rdma_stats(rig.adapter[0])->timeouts, 0);
    rr_close(&rig);
}

/* ---- Ends ------------------------------------------------------------------------------------ */

/* Five completions for a queue of four that nobody polls. */
static void test_a_completion_queue_overruns(void **state)
{
    (void)state;
    rr_open(&rig, 0, NULL);
    rr_connect(&rig, qp, 2);
    const uint64_t irqs = rig.n_irqs;
    for (unsigned i = 0; i < 5; i++) {
        const struct rr_wqe wqe = rr_wqe(&qp[0], RDMA_OP_WRITE, BUFFERS, 64, BUFFERS + 64,
                                         qp[1].key);
        rr_post(&rig, &qp[0], &wqe);
    }
    rr_doorbell(&rig, 0, &qp[0]);
    rr_run(&rig, 100 * SIM_PS_PER_US);
    assert_int_equal(rdma_stats(rig.adapter[0])->cq_overruns, 1);
    assert_int_equal(rdma_stats(rig.adapter[0])->cqes, 4);
    assert_true(rig.n_irqs > irqs);
    const struct rdma_eqe *eqe = (const void *)(rig.memory + qp[0].eq_ring);
    assert_int_equal(eqe[0].type, RDMA_EVENT_CQ_OVERRUN);
    assert_int_equal(eqe[0].number, qp[0].cq);
    assert_int_equal(eqe[1].type, RDMA_EVENT_QP_FATAL);
    assert_int_equal(eqe[1].number, qp[0].number);
    assert_int_equal(
        rr_ok(&rig, 0, (struct rdma_command){ .opcode = RDMA_QUERY_QP, .number = qp[0].number })
            .state,
        RDMA_QP_ERR);
    rr_close(&rig);
}

static void write_once(void)
{
    const struct rr_wqe wqe = rr_wqe(&qp[0], RDMA_OP_WRITE, BUFFERS, 64, BUFFERS + 64, qp[1].key);
    struct rdma_cqe cqe;
    rr_post(&rig, &qp[0], &wqe);
    rr_doorbell(&rig, 0, &qp[0]);
    rr_run(&rig, 100 * SIM_PS_PER_US);
    assert_true(rr_poll(&rig, &qp[0], &cqe));
    assert_int_equal(cqe.status, RDMA_SUCCESS);
}

/* Indices in doorbells have 24 bits: entries of before that many are not those behind the index. */
static void test_arming_after_many_entries(void **state)
{
    static const uint32_t many[] = { 1u << 12, 1u << 22, 1u << 23, 5u << 21,       (1u << 24) - 16,
                                     1u << 24, 5u << 22, 1u << 31, UINT32_MAX - 15 };
    (void)state;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(many); i++) {
        rr_open(&rig, 0, NULL);
        rr_connect(&rig, qp, 4);
        /* As if there had been so many entries, none of them solicited. */
        struct rdma_cq *cq = &((struct rdma *)rig.adapter[0]->state)->cq[qp[0].cq];
        cq->producer += many[i];
        cq->consumer = qp[0].cq_consumer = cq->producer;
        memcpy(rig.memory + qp[0].cq_record, &cq->consumer, sizeof(cq->consumer));
        write_once();
        const uint64_t events = rdma_stats(rig.adapter[0])->events;
        rr_write32(&rig, 0, RDMA_DOORBELL_CQ(qp[0].cq),
                   (qp[0].cq_consumer & 0xffffff) | RDMA_DOORBELL_CQ_SOLICITED);
        rr_run(&rig, 10 * SIM_PS_PER_US);
        write_once();
        assert_int_equal(rdma_stats(rig.adapter[0])->events, events);
        /* Any entry will do: one that is there already. */
        rr_write32(&rig, 0, RDMA_DOORBELL_CQ(qp[0].cq), (qp[0].cq_consumer - 1) & 0xffffff);
        rr_run(&rig, 10 * SIM_PS_PER_US);
        assert_int_equal(rdma_stats(rig.adapter[0])->events, events + 1);
        rr_close(&rig);
    }
}

static void post_stream(unsigned a)
{
    for (unsigned i = 0; i < 8; i++) {
        const struct rr_wqe wqe = rr_wqe(&qp[a], i % 2 == 0 ? RDMA_OP_WRITE : RDMA_OP_READ, BUFFERS,
                                         100000, BUFFERS + (1 << 20), qp[1 - a].key);
        rr_post(&rig, &qp[a], &wqe);
    }
    rr_doorbell(&rig, a, &qp[a]);
}

/* When the answer to its end is there, a queue pair and a region touch nothing any more. */
static void test_what_is_destroyed_is_quiet(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 12; i++) {
        rr_open(&rig, 0, NULL);
        rr_connect(&rig, qp, 6);
        post_stream(0);
        rr_run(&rig, (1 + i) * SIM_PS_PER_US);
        if (i % 2 == 0)
            rr_ok(&rig, 1,
                  (struct rdma_command){ .opcode = RDMA_DESTROY_QP, .number = qp[1].number });
        else
            rr_ok(&rig, 1, (struct rdma_command){ .opcode = RDMA_DESTROY_MR, .key = qp[1].key });
        uint8_t *before = malloc(100000);
        memcpy(before, rig.memory + BUFFERS + (1 << 20), 100000);
        fill(BUFFERS, 100000, 77); /* what comes from now on would differ */
        rr_run(&rig, 10 * SIM_PS_PER_MS);
        assert_memory_equal(before, rig.memory + BUFFERS + (1 << 20), 100000);
        free(before);
        struct rdma_cqe cqe;
        unsigned n = 0, n_failed = 0;
        while (rr_poll(&rig, &qp[0], &cqe)) {
            n++;
            n_failed += cqe.status != RDMA_SUCCESS;
        }
        assert_int_equal(n, 8);
        assert_true(n_failed > 0);
        rr_close(&rig);
    }
}

/* A function-level reset in mid traffic leaves nothing behind, and the adapter works again. */
static void test_a_reset_in_mid_traffic(void **state)
{
    struct rdma_cqe cqe;
    (void)state;
    for (unsigned i = 0; i < 12; i++) {
        rr_open(&rig, 0, NULL);
        rr_connect(&rig, qp, 6);
        post_stream(0);
        post_stream(1);
        rr_run(&rig, i * 700 * SIM_PS_PER_NS);
        rr_reset(&rig, i % 2);
        rr_run(&rig, 10 * SIM_PS_PER_MS);
        rr_reset(&rig, 1 - i % 2);
        for (unsigned a = 0; a < RR_ADAPTERS; a++)
            rr_enable(&rig, a);
        rr_connect(&rig, qp, 6);
        fill(BUFFERS, 5000, i);
        const struct rr_wqe wqe = rr_wqe(&qp[0], RDMA_OP_WRITE, BUFFERS, 5000, BUFFERS + 8192,
                                         qp[1].key);
        rr_post(&rig, &qp[0], &wqe);
        rr_doorbell(&rig, 0, &qp[0]);
        rr_run(&rig, 100 * SIM_PS_PER_US);
        assert_true(rr_poll(&rig, &qp[0], &cqe));
        assert_int_equal(cqe.status, RDMA_SUCCESS);
        assert_memory_equal(rig.memory + BUFFERS, rig.memory + BUFFERS + 8192, 5000);
        rr_close(&rig);
    }
}

/* ---- Bad drivers ----------------------------------------------------------------------------- */

static struct sim_random chance;

static uint64_t below(uint64_t n)
{
    return sim_random_below(&chance, n);
}

/* One step in so many is wrong. */
static uint64_t sense;

static bool wrong(void)
{
    return below(sense) == 0;
}

/* Mostly what makes sense, sometimes anything. */
static uint32_t any(uint32_t sensible)
{
    if (!wrong())
        return sensible;
    switch (below(3)) {
    case 0: return (uint32_t)sim_random_u64(&chance);
    case 1: return (uint32_t)below(8);
    default: return sensible + (uint32_t)below(3) - 1;
    }
}

static uint64_t any_address(void)
{
    if (!wrong())
        return BUFFERS + below(1 << 20);
    return below(2) == 0 ? sim_random_u64(&chance) : RR_MEMORY_BYTES - below(8192);
}

static void bad_send(unsigned a)
{
    const enum rdma_opcode opcode = (enum rdma_opcode)(1 + below(7));
    const bool atomic = opcode > RDMA_OP_READ;
    struct rr_wqe wqe = rr_wqe(&qp[a], opcode, any_address(), any((uint32_t)below(20000)),
                               any_address() & ~UINT64_C(7), any(qp[1 - a].key));
    if (atomic) { /* its compare and add in place of the segment, which follows */
        const struct rdma_wqe_data data = { any(8), any(qp[a].key), any_address() };
        memcpy(wqe.rest, &data, sizeof(data));
        wqe.control.n_segments = 4;
    }
    if (!atomic && opcode != RDMA_OP_READ && below(4) == 0) {
        struct rdma_wqe_data *data = opcode < RDMA_OP_WRITE ? (void *)&wqe.remote : &wqe.data;
        data->bytes = RDMA_WQE_INLINE | any((uint32_t)below(12));
    }
    if (wrong())
        wqe.control.n_segments = (uint8_t)sim_random_u64(&chance);
    if (wrong())
        wqe.control.opcode = (uint8_t)sim_random_u64(&chance);
    if (wrong())
        ((uint8_t *)&wqe)[below(sizeof(wqe))] ^= (uint8_t)(1 + below(255));
    wqe.control.flags = (uint8_t)below(8);
    rr_post(&rig, &qp[a], &wqe);
    if (below(2) == 0)
        rr_write32(&rig, a, RDMA_DOORBELL_SQ(qp[a].number), any(qp[a].sq_tail));
    else
        rr_write(&rig, a, RDMA_BLUEFLAME(qp[a].number) + (wrong() ? 64 * below(4) : 0), &wqe,
                 wrong() ? 4 * (unsigned)(1 + below(16)) : sizeof(wqe));
}

static void bad_receive(unsigned a)
{
    rr_post_receive(&rig, &qp[a], any_address(), any(20000));
    if (wrong()) {
        const uint32_t record = any(qp[a].rq_tail);
        memcpy(rig.memory + qp[a].record, &record, sizeof(record));
    }
    if (below(4) == 0)
        rr_write32(&rig, a, RDMA_DOORBELL_RQ(qp[a].number), any(0));
}

/* Takes completions and arms. */
static void poll(unsigned a)
{
    struct rdma_cqe cqe;
    while (rr_poll(&rig, &qp[a], &cqe))
        ;
    const uint32_t record = any(qp[a].cq_consumer);
    memcpy(rig.memory + qp[a].cq_record, &record, sizeof(record));
    rr_write32(&rig, a, RDMA_DOORBELL_CQ(qp[a].cq), any(record & 0xffffff));
}

static void bad_command(unsigned a)
{
    struct rdma_command command = { .opcode = (uint16_t)any(1 + (uint32_t)below(12)),
                                    .status = RDMA_COMMAND_PENDING,
                                    .log_entries = (uint8_t)any(4),
                                    .number = any(qp[a].number),
                                    .iova = any_address() & ~UINT64_C(63),
                                    .rq_iova = any_address() & ~UINT64_C(63),
                                    .record_iova = any_address() & ~UINT64_C(3),
                                    .va = any_address(),
                                    .bytes = any(1 << 20),
                                    .pd = any(qp[a].pd),
                                    .target = any(0),
                                    .send_cq = any(qp[a].cq),
                                    .receive_cq = any(qp[a].cq),
                                    .key = any(qp[a].key),
                                    .access = (uint8_t)any(15),
                                    .page_log = (uint8_t)any(below(2) == 0 ? 0 : 12),
                                    .rq_log = (uint8_t)any(4),
                                    .state = (uint8_t)any((uint32_t)below(7)),
                                    .mtu = (uint8_t)any(1 + (uint32_t)below(5)),
                                    .remote_reads = (uint8_t)any(4),
                                    .destination_qp = any(qp[1 - a].number),
                                    .lid = (uint16_t)any(2 - a),
                                    .timeout = (uint8_t)below(8),
                                    .retries = (uint8_t)any(1),
                                    .rnr_retries = (uint8_t)below(7),
                                    .reads = (uint8_t)any(4) };
    memcpy(rig.memory + rig.command[a], &command, sizeof(command));
    rr_write32(&rig, a, RDMA_REG_COMMAND_LOW, below(20) == 0 ? any(0) : (uint32_t)rig.command[a]);
    rr_write32(&rig, a, RDMA_REG_COMMAND_HIGH, below(20) == 0 ? any(0) : 0);
}

static void bad_register(unsigned a)
{
    static const uint32_t base[] = { 0,
                                     RDMA_DOORBELL_SQ(0),
                                     RDMA_DOORBELL_CQ(0),
                                     RDMA_DOORBELL_EQ(0),
                                     RDMA_BLUEFLAME(0),
                                     RDMA_REG_LID };
    const uint64_t offset = base[below(SIM_N_ELEMENTS(base))] + 4 * below(64);
    if (offset >= RDMA_REG_COMMAND_LOW && offset <= RDMA_REG_COMMAND_HIGH)
        return;
    rr_write32(&rig, a, offset, any((uint32_t)below(64)));
    if (below(3) == 0)
        rr_write32(&rig, a, RDMA_REG_LID, a + 1);
}

/* Bytes of rings, records and entries change under the adapter. */
static void bad_memory(void)
{
    for (unsigned i = 0; i < 16; i++)
        rig.memory[(1 << 20) + below(rig.next_free - (1 << 20))] ^= (uint8_t)below(256);
}

static bool alive(unsigned a)
{
    return rr_command(&rig, a,
                      (struct rdma_command){ .opcode = RDMA_QUERY_QP, .number = qp[a].number })
               .state == RDMA_QP_RTS;
}

/* Until a queue pair is in error, and a little longer. */
static void misbehave(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        const unsigned a = (unsigned)below(RR_ADAPTERS);
        switch (below(8)) {
        case 0: poll(a); break;
        case 1:
        case 2:
        case 3: bad_receive(a); break;
        default: bad_send(a); break;
        }
        if (wrong())
            bad_command(a);
        if (wrong())
            bad_register(a);
        if (wrong())
            bad_memory();
        rr_run(&rig, below(3) == 0 ? below(20 * SIM_PS_PER_US) : below(SIM_PS_PER_US));
        if (i % 32 == 31 && (!alive(0) || !alive(1)))
            n = SIM_MIN(n, i + 8);
    }
}

static struct rdma_stats bad_drivers(uint64_t seed)
{
    static const char *const small[] = { "translation_entries",
                                         "1",
                                         "rx_buffer_bytes",
                                         "8192",
                                         "wqes_per_queue",
                                         "2",
                                         "keys",
                                         "4",
                                         "queue_pairs",
                                         "5",
                                         "receive_prefetch_wqes",
                                         "1",
                                         NULL };
    static const uint64_t senses[] = { 5, 60, 600 };
    sim_random_init(&chance, seed, "bad driver");
    sense = senses[seed % SIM_N_ELEMENTS(senses)];
    rr_open(&rig, seed % 5 == 0 ? 0.02 : 0, seed % 2 == 0 ? small : NULL);
    for (unsigned round = 0; round < 4; round++) {
        rr_connect(&rig, qp, 6);
        misbehave(300);
        for (unsigned a = 0; a < RR_ADAPTERS; a++)
            rr_reset(&rig, a);
        rr_run(&rig, SIM_PS_PER_MS);
        for (unsigned a = 0; a < RR_ADAPTERS; a++)
            rr_enable(&rig, a);
        rig.next_free = (1 << 20) + 2 * 4096;
        memset(rig.memory + rig.next_free, 0, BUFFERS - rig.next_free);
    }
    const struct rdma_stats stats = *rdma_stats(rig.adapter[0]);
    rr_close(&rig);
    return stats;
}

/* Whatever is written: no assertion, no leak, and after a reset the adapters work. */
static void test_bad_drivers(void **state)
{
    uint64_t n_good = 0, n_errors = 0, n_naks = 0, n_rnr = 0, n_received = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        const struct rdma_stats stats = bad_drivers(seed);
        n_good += stats.cqes - stats.error_cqes;
        n_errors += stats.error_cqes;
        n_naks += stats.naks;
        n_rnr += stats.rnr_naks;
        n_received += stats.receive_wqes;
    }
    print_message("%llu completions, %llu errors, %llu NAK, %llu RNR NAK, %llu receives\n",
                  (unsigned long long)n_good, (unsigned long long)n_errors,
                  (unsigned long long)n_naks, (unsigned long long)n_rnr,
                  (unsigned long long)n_received);
    assert_true(n_good > 300 && n_errors > 300 && n_naks > 5 && n_rnr > 20 && n_received > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_registers),
        cmocka_unit_test(test_commands_that_are_refused),
        cmocka_unit_test(test_tables_end),
        cmocka_unit_test(test_unloaded_latency_is_the_formula),
        cmocka_unit_test(test_blueflame_blocks_in_any_order),
        cmocka_unit_test(test_a_doorbell_takes_two_reads_more),
        cmocka_unit_test(test_pages_through_the_smallest_cache),
        cmocka_unit_test(test_half_of_all_sequence_numbers),
        cmocka_unit_test(test_regions_share_a_cached_translation),
        cmocka_unit_test(test_what_was_asked_for_before_a_refusal),
        cmocka_unit_test(test_a_completion_queue_overruns),
        cmocka_unit_test(test_arming_after_many_entries),
        cmocka_unit_test(test_what_is_destroyed_is_quiet),
        cmocka_unit_test(test_a_reset_in_mid_traffic),
        cmocka_unit_test(test_bad_drivers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
