/* The adapter at a link whose other end answers at once, or as the test says. Expectations are the
 * formulas of requester.c's head. */
#include "tests/support/pcie_rig.h"
#include "tests/support/world_fixture.h"

#include "hw/pci_regs.h"

#define LATENCY_PS (150 * SIM_PS_PER_NS)
/* ps and ps per byte, as in SETTINGS */
#define COMMAND_REQUEST_PS  41000u
#define COMMAND_COMPLETE_PS 43000u
#define BULK_REQUEST_PS     101000u
#define BULK_COMPLETE_PS    73000u
#define READ_INTERVAL_PS    20000u
#define REMAINDER_PS        6000u
#define DESCRIPTOR_PS       5000u
#define WORD_PS             1300u
#define LINE_PS             2500u
#define SETTINGS                                                                 \
    "command_request_ns = 41; command_complete_ns = 43; bulk_request_ns = 101; " \
    "bulk_complete_ns = 73; read_interval_ns = 20; remainder_ns = 6; "           \
    "descriptor_ns = 5; word_ns = 1.3; line_ns = 2.5; burst_bytes = 128; "       \
    "mps_bytes = 4096; posted_data_credits = 256; "                              \
    "extended_tags = true; completion_timeout_us = 50; "
#define AMPLE "reads_in_flight = 64; writes_in_flight = 64; "

struct bench {
    struct rig rig;
    struct config *config;
    struct model *a;
    struct end_device *host;
};

static void set_sizes(struct bench *bench, unsigned mps_bytes, unsigned mrrs_bytes)
{
    struct cfg_space *cfg = pcie_requester_config_space(bench->a);
    uint32_t mps = (uint32_t)__builtin_ctz(mps_bytes / 128);
    uint32_t mrrs = (uint32_t)__builtin_ctz(mrrs_bytes / 128);
    cfg_write(cfg, cfg->pcie_cap + PCIE_DEVCTL, 2,
              mps << PCIE_DEVCTL_MPS_SHIFT | mrrs << PCIE_DEVCTL_MRRS_SHIFT |
                  PCIE_DEVCTL_EXTENDED_TAG);
    bench->a->ports[0].mps_bytes = bench->host->port.mps_bytes = mps_bytes;
}

/* all: every setting of the adapter that is not at its default. */
static void bench_open_all(struct bench *bench, const char *all)
{
    char text[1024];
    struct sim_error_list errors = { 0 };
    pcie_rig_init(&bench->rig, 1);
    snprintf(text, sizeof(text), "a = { %s };", all);
    bench->config = fixture_config(text, &errors);
    fixture_fail(&errors);
    bench->a = model_new(pcie_context_sim(bench->rig.pcie), bench->rig.pcie, &pcie_requester_ops,
                         "a", bench->config, config_get(config_root(bench->config), "a"), &errors);
    fixture_fail(&errors);
    bench->host = end_new(&bench->rig, "host", 3, 8);
    bench->host->answer_reads = true;
    const struct pcie_link_params link = pcie_rig_link_params(LATENCY_PS);
    pcie_rig_join(&bench->rig, &bench->a->ports[0], &bench->host->port, &link);
    cfg_write(pcie_requester_config_space(bench->a), PCI_COMMAND, 2, PCI_COMMAND_BUS_MASTER);
    set_sizes(bench, 4096, 4096);
}

static void bench_open(struct bench *bench, const char *settings)
{
    char text[512];
    snprintf(text, sizeof(text), SETTINGS "%s", settings);
    bench_open_all(bench, text);
}

static void bench_free(struct bench *bench)
{
    model_free(bench->a);
    end_free(bench->host);
    pcie_rig_release(&bench->rig);
    config_free(bench->config);
}

static void bench_close(struct bench *bench)
{
    assert_null(sim_error(bench->rig.sim));
    assert_true(pcie_context_check_idle(bench->rig.pcie));
    bench_free(bench);
}

static int bench_set_up(void **state)
{
    struct fixture_test *t = *state;
    t->fixture = calloc(1, sizeof(struct bench));
    bench_open(t->fixture, t->settings);
    return 0;
}

static int bench_tear_down(void **state)
{
    struct fixture_test *t = *state;
    struct bench *bench = t->fixture;
    if (t->passed)
        bench_close(bench);
    else if (fixture_test_abandon(bench->rig.sim))
        bench_free(bench);
    free(bench);
    return 0;
}

#define BENCH_TEST(test, settings) FIXTURE_TEST(test, bench_set_up, bench_tear_down, settings)

/* ---- Operations ------------------------------------------------------------------------------ */

#define OPS_MAX 600

struct op {
    struct pcie_requester_op op;
    struct sim_stamp stamp;
    unsigned order; /* in which it ended, from 1; 0: not yet */
    enum pcie_dma_status status;
    sim_time done_ps;
};

static unsigned n_ended; /* of the test that is running */

static void op_ended(struct pcie_requester_op *op, enum pcie_dma_status status)
{
    struct op *o = op->context;
    assert_int_equal(o->order, 0);
    o->order = ++n_ended;
    o->status = status;
    o->done_ps = sim_now(op->model->sim);
}

static void submit(struct bench *bench, struct op *op, bool write,
                   enum pcie_requester_interface interface, uint64_t address, uint32_t bytes)
{
    *op = (struct op){ .op = { .write = write,
                               .interface = (uint8_t)interface,
                               .iova = { address },
                               .bytes = bytes,
                               .done = op_ended,
                               .context = op,
                               .stamp = &op->stamp } };
    sim_stamp_start(&op->stamp, sim_now(bench->rig.sim));
    pcie_requester_submit(bench->a, &op->op);
}

/* From the first MRd's start at the link to the last data byte, for one request. */
static sim_time round_trip_ps(uint32_t bytes)
{
    return spec_wire_ps(3, 8, 20) + spec_wire_ps(3, 8, 20 + bytes) + 2 * LATENCY_PS;
}

static sim_time words_ps(uint32_t bytes)
{
    return (sim_time)((bytes + 7) / 8) * WORD_PS;
}

/* A word for each burst of 128 bytes, and its data. */
static sim_time push_ps(uint32_t bytes)
{
    return DESCRIPTOR_PS + words_ps(bytes) + (sim_time)((bytes + 127) / 128) * WORD_PS;
}

/* Bursts are whole; the last one may have a second line. */
static sim_time pull_ps(uint32_t bytes)
{
    const uint32_t n = (bytes + 127) / 128, last = bytes - (n - 1) * 128;
    return DESCRIPTOR_PS + n * (words_ps(128) + WORD_PS) + (last > 64 + 8 ? LINE_PS : 0);
}

/* ---- Unloaded -------------------------------------------------------------------------------- */

static sim_time alone_ps(bool write, enum pcie_requester_interface interface, uint32_t bytes)
{
    struct bench bench;
    struct op op;
    bench_open(&bench, "");
    submit(&bench, &op, write, interface, 0x10000, bytes);
    pcie_rig_run(&bench.rig);
    assert_int_equal(op.status, PCIE_DMA_OK);
    sim_time sum_ps = 0;
    for (unsigned i = 0; i < N_LATENCY_PARTS; i++)
        sum_ps += op.stamp.part_ps[i];
    assert_int_equal(sum_ps, op.done_ps);
    assert_int_equal(bench.host->n_got, 1);
    bench_close(&bench);
    return op.done_ps;
}

static void test_unloaded_latency_is_the_formula(void **unused)
{
    static const uint32_t size[] = { 64, 128, 192, 256, 512, 1000, 1024, 1500, 2048 };
    (void)unused;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(size); i++) {
        uint32_t n = size[i];
        assert_int_equal(alone_ps(false, PCIE_REQUESTER_BULK, n),
                         BULK_REQUEST_PS + round_trip_ps(n) + push_ps(n) + BULK_COMPLETE_PS);
        assert_int_equal(alone_ps(true, PCIE_REQUESTER_BULK, n),
                         BULK_REQUEST_PS + pull_ps(n) + BULK_COMPLETE_PS);
    }
    static const uint32_t command[] = { 4, 8, 32, 64 };
    for (unsigned i = 0; i < SIM_N_ELEMENTS(command); i++) {
        uint32_t n = command[i];
        assert_int_equal(alone_ps(false, PCIE_REQUESTER_COMMAND, n),
                         COMMAND_REQUEST_PS + round_trip_ps(n) + words_ps(n) + COMMAND_COMPLETE_PS);
        assert_int_equal(alone_ps(true, PCIE_REQUESTER_COMMAND, n),
                         COMMAND_REQUEST_PS + words_ps(n) + COMMAND_COMPLETE_PS);
    }
}

/* A read in two requests: none of it enters local memory before all of it is here. */
static void test_stores_and_forwards_whole_operations(void **state)
{
    struct bench *bench = *state;
    struct op op;
    set_sizes(bench, 512, 512);
    submit(bench, &op, false, PCIE_REQUESTER_BULK, 0x10000, 1024);
    pcie_rig_run(&bench->rig);
    assert_int_equal(bench->host->n_got, 2);
    /* both completions back to back behind the first request */
    assert_int_equal(op.done_ps, BULK_REQUEST_PS + spec_wire_ps(3, 8, 20) + LATENCY_PS +
                                     spec_wire_ps(3, 8, 2 * 532) + LATENCY_PS + push_ps(1024) +
                                     BULK_COMPLETE_PS);
}

/* ---- Saturated ------------------------------------------------------------------------------- */

/* Mean time between ends of the last ops of many, in ps; the first half is not counted. */
static double period_ps(const char *settings, bool write, uint32_t bytes)
{
    struct bench bench;
    static struct op op[OPS_MAX];
    bench_open(&bench, settings);
    for (unsigned i = 0; i < OPS_MAX; i++)
        submit(&bench, &op[i], write, PCIE_REQUESTER_BULK, 0x10000, bytes);
    pcie_rig_run(&bench.rig);
    for (unsigned i = 0; i < OPS_MAX; i++)
        assert_int_equal(op[i].status, PCIE_DMA_OK);
    bench_close(&bench);
    return (double)(op[OPS_MAX - 1].done_ps - op[OPS_MAX / 2 - 1].done_ps) / (OPS_MAX / 2);
}

static void assert_period(double is_ps, sim_time bound_ps)
{
    if (is_ps != (double)bound_ps)
        fail_msg("an operation every %.3f ps, expected %llu", is_ps, (unsigned long long)bound_ps);
}

static void test_saturated_rates_are_the_bounds(void **unused)
{
    static const uint32_t size[] = { 64, 128, 192, 256, 512, 1024, 2048 };
    (void)unused;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(size); i++) {
        const sim_time read_ps = push_ps(size[i]);
        assert_period(period_ps(AMPLE, false, size[i]), SIM_MAX(READ_INTERVAL_PS, read_ps));
        assert_period(period_ps(AMPLE, true, size[i]), pull_ps(size[i]));
    }
    /* The rest of a size that is no multiple of 8 bytes is a command of its own. */
    for (uint32_t n = 62; n <= 66; n++)
        assert_period(period_ps(AMPLE, false, n),
                      READ_INTERVAL_PS + (n % 8 != 0 ? REMAINDER_PS : 0));
}

/* Mean time between ends of reads while there are as many writes, in ps; those at the beginning and
 * at the end, when one direction may be alone, are not counted. */
static double pair_period_ps(const char *settings, uint32_t bytes)
{
    struct bench bench;
    static struct op op[OPS_MAX];
    bench_open(&bench, settings);
    for (unsigned i = 0; i < OPS_MAX; i++)
        submit(&bench, &op[i], i % 2 == 1, PCIE_REQUESTER_BULK, 0x10000, bytes);
    pcie_rig_run(&bench.rig);
    bench_close(&bench);
    return (double)(op[OPS_MAX / 2].done_ps - op[OPS_MAX / 4].done_ps) / (OPS_MAX / 8);
}

/* A bank gives both directions together a word each bank_word; what lies in another bank goes on at
 * the same time. */
static void test_directions_share_banks(void **unused)
{
#define BANKS_OF(BYTES) AMPLE "bank_bytes = " BYTES "; bank_word_ns = "
    const sim_time word_ps = 3000;
    (void)unused;
    assert_period(period_ps(BANKS_OF("1024") "3; ", false, 512), 64 * word_ps);
    assert_period(period_ps(BANKS_OF("1024") "3; ", true, 512), 64 * word_ps);
    assert_period(pair_period_ps(BANKS_OF("1024") "3; ", 512), 2 * 64 * word_ps);
    assert_period(pair_period_ps(BANKS_OF("1024") "3; ", 1024), 2 * 128 * word_ps);
    assert_period(pair_period_ps(BANKS_OF("4096") "3; ", 2048), 2 * 256 * word_ps);
    assert_period(pair_period_ps(BANKS_OF("1024") "3; ", 2048), 256 * word_ps);
    /* Banks that are faster than both paths, and none, hold nothing up. */
    assert_period(pair_period_ps(BANKS_OF("1024") "0.5; ", 512), push_ps(512));
    assert_period(pair_period_ps(BANKS_OF("0") "3; ", 512), push_ps(512));
}

static uint64_t stat_of(const struct model *a, const char *name)
{
    const struct stat_desc *stat = a->ops->stats;
    uint64_t value;
    while (strcmp(stat->name, name) != 0)
        stat++;
    memcpy(&value, (const char *)a->state + stat->offset, sizeof(value));
    return value;
}

#define MIXED_OPS   40
#define MIXED_LOOKS 300

struct mixed {
    sim_time done_ps[MIXED_OPS];
    uint64_t push_ps[MIXED_LOOKS], pull_ps[MIXED_LOOKS];
    uint64_t n_events;
};

/* Reads and writes of all sizes; the statistics are looked at every 37 ns. */
static void run_mixed(const char *settings, struct mixed *mixed)
{
    struct bench bench;
    struct op op[MIXED_OPS];
    bench_open(&bench, settings);
    for (unsigned i = 0; i < MIXED_OPS; i++)
        submit(&bench, &op[i], i % 3 != 0, PCIE_REQUESTER_BULK, 0x10000, 1 + i * 397 % 2048);
    for (unsigned i = 0; i < MIXED_LOOKS; i++) {
        sim_run(bench.rig.sim, (i + 1) * 37 * SIM_PS_PER_NS, NULL);
        bench.a->ops->settle(bench.a);
        mixed->push_ps[i] = stat_of(bench.a, "push_busy_ps");
        mixed->pull_ps[i] = stat_of(bench.a, "pull_busy_ps");
    }
    pcie_rig_run(&bench.rig);
    for (unsigned i = 0; i < MIXED_OPS; i++)
        mixed->done_ps[i] = op[i].done_ps;
    mixed->n_events = sim_events_fired(bench.rig.sim);
    bench_close(&bench);
}

/* Without banks an operation's bursts are one event; with banks that take no time each has its own.
 * Nothing else differs, in the middle of an operation neither. */
static void test_bursts_as_one_event(void **unused)
{
    static struct mixed as_one, each;
    (void)unused;
    run_mixed(AMPLE, &as_one);
    run_mixed(AMPLE "bank_bytes = 1024; bank_word_ns = 0; ", &each);
    assert_true(as_one.n_events + 2 * MIXED_OPS < each.n_events);
    for (unsigned i = 0; i < MIXED_OPS; i++)
        assert_int_equal(as_one.done_ps[i], each.done_ps[i]);
    for (unsigned i = 0; i < MIXED_LOOKS; i++) {
        assert_int_equal(as_one.push_ps[i], each.push_ps[i]);
        assert_int_equal(as_one.pull_ps[i], each.pull_ps[i]);
    }
    assert_true(each.push_ps[MIXED_LOOKS - 1] != 0 && each.pull_ps[MIXED_LOOKS / 2] != 0);
}

/* So many reads per time from their request to local memory, so many writes per latency; now and
 * then one waits for a DLLP in each direction. */
static void test_slots_bound_the_rate(void **unused)
{
    static const char *const reads[] = { "reads_in_flight = 1; ", "reads_in_flight = 2; ",
                                         "reads_in_flight = 4; " };
    static const char *const writes[] = { "writes_in_flight = 1; ", "writes_in_flight = 2; ",
                                          "writes_in_flight = 4; " };
    (void)unused;
    for (unsigned i = 0; i < 3; i++) {
        sim_time read_ps = alone_ps(false, PCIE_REQUESTER_BULK, 64) - BULK_REQUEST_PS -
                           BULK_COMPLETE_PS,
                 write_ps = alone_ps(true, PCIE_REQUESTER_BULK, 64);
        double read_is_ps = period_ps(reads[i], false, 64), n = 1u << i;
        assert_true(read_is_ps >= (double)read_ps / n - 0.5);
        assert_true(read_is_ps <= (double)(read_ps + 2 * spec_wire_ps(3, 8, 8)) / n);
        double is_ps = period_ps(writes[i], true, 64);
        double bound_ps = SIM_MAX((double)pull_ps(64), (double)write_ps / n);
        assert_true(is_ps >= bound_ps - 0.5 && is_ps <= bound_ps + 0.5);
    }
}

/* ---- Order and slots, one by one ------------------------------------------------------------- */

static void answer(struct bench *bench, const struct arrival *read, enum tlp_status status)
{
    struct tlp request = { .type = TLP_MRD,
                           .requester_id = read->requester_id,
                           .tag = (uint16_t)read->id,
                           .address = read->address,
                           .length_bytes = read->length_bytes };
    struct tlp *cpl = tlp_completion(bench->rig.pcie, &request, 0, status);
    if (status == TLP_SC) {
        tlp_payload_new(bench->rig.pcie, cpl);
        memset(cpl->payload, 0, cpl->length_bytes);
    }
    pcie_port_send(&bench->host->port, cpl, sim_now(bench->rig.sim));
}

static void test_reads_end_in_order_of_issue(void **state)
{
    struct bench *bench = *state;
    struct op op[10];
    bench->host->answer_reads = false;
    n_ended = 0;
    for (unsigned i = 0; i < 10; i++)
        submit(bench, &op[i], false, PCIE_REQUESTER_BULK, 0x10000 + i * 64, 64);
    sim_run(bench->rig.sim, SIM_PS_PER_US, NULL);
    assert_int_equal(bench->host->n_got, 4);
    for (unsigned i = 1; i < 4; i++) /* read_interval apart */
        assert_int_equal(bench->host->got[i].head_ps - bench->host->got[i - 1].head_ps,
                         READ_INTERVAL_PS);
    for (unsigned i = 3; i >= 1; i--)
        answer(bench, &bench->host->got[i], TLP_SC);
    sim_run(bench->rig.sim, 3 * SIM_PS_PER_US, NULL);
    assert_int_equal(n_ended, 0); /* their slots come after the first */
    assert_int_equal(bench->host->n_got, 4);
    answer(bench, &bench->host->got[0], TLP_SC);
    sim_run(bench->rig.sim, 5 * SIM_PS_PER_US, NULL);
    assert_int_equal(n_ended, 4);
    assert_int_equal(bench->host->n_got, 8);
    for (unsigned i = 4; i < 8; i++)
        answer(bench, &bench->host->got[i], TLP_SC);
    sim_run(bench->rig.sim, 7 * SIM_PS_PER_US, NULL);
    for (unsigned i = 8; i < 10; i++)
        answer(bench, &bench->host->got[i], TLP_SC);
    pcie_rig_run(&bench->rig);
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(op[i].order, i + 1);
}

static void test_writes_leave_in_order_a_burst_apart(void **state)
{
    struct bench *bench = *state;
    struct op op[6];
    for (unsigned i = 0; i < 6; i++)
        submit(bench, &op[i], true, PCIE_REQUESTER_BULK, 0x10000 + i * 64, 64);
    pcie_rig_run(&bench->rig);
    assert_int_equal(bench->host->n_got, 6);
    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(bench->host->got[i].address, 0x10000 + i * 64);
        assert_int_equal(bench->host->got[i].head_ps,
                         BULK_REQUEST_PS + (i + 1) * pull_ps(64) + LATENCY_PS);
    }
}

/* Requests end at multiples of what they may carry, or, unless they are aligned, carry as much as
 * they may. */
static void test_requests_end_at_multiples(void **unused)
{
    static const struct {
        bool write;
        uint64_t address;
        unsigned bytes;
        unsigned n[2], first[2]; /* of 256 (writes) or 512 bytes: not aligned, aligned */
    } cases[] = { { true, 0x10080, 704, { 3, 4 }, { 256, 128 } },
                  { true, 0x10040, 192, { 1, 1 }, { 192, 192 } },
                  { true, 0x10080, 192, { 1, 2 }, { 192, 128 } },
                  { false, 0x10180, 384, { 1, 2 }, { 384, 128 } },
                  { false, 0x10000, 1024, { 2, 2 }, { 512, 512 } } };
    (void)unused;
    for (unsigned aligned = 0; aligned < 2; aligned++)
        for (unsigned c = 0; c < SIM_N_ELEMENTS(cases); c++) {
            struct bench bench;
            struct op op;
            bench_open(&bench, aligned != 0 ? "" : "aligned_requests = false; ");
            set_sizes(&bench, cases[c].write ? 256 : 4096, 512); /* the host answers in one piece */
            submit(&bench, &op, cases[c].write, PCIE_REQUESTER_BULK, cases[c].address,
                   cases[c].bytes);
            pcie_rig_run(&bench.rig);
            assert_int_equal(op.status, PCIE_DMA_OK);
            assert_int_equal(bench.host->n_got, cases[c].n[aligned]);
            assert_int_equal(bench.host->got[0].length_bytes, cases[c].first[aligned]);
            bench_close(&bench);
        }
}

/* ---- Errors ---------------------------------------------------------------------------------- */

/* Whatever becomes of an operation, it ends, and its slot is free for the next. */
static void test_errors_end_an_operation(void **state)
{
    static const enum pcie_dma_status expected[] = { PCIE_DMA_UNSUPPORTED, PCIE_DMA_ABORTED,
                                                     PCIE_DMA_TIMED_OUT, PCIE_DMA_OK };
    struct bench *bench = *state;
    struct op op[4];
    bench->host->answer_reads = false;
    for (unsigned i = 0; i < 4; i++)
        submit(bench, &op[i], false, PCIE_REQUESTER_BULK, 0x10000, 64);
    for (unsigned i = 0; i < 4; i++) {
        while (bench->host->n_got == i)
            sim_run(bench->rig.sim, sim_now(bench->rig.sim) + SIM_PS_PER_US, NULL);
        if (expected[i] != PCIE_DMA_TIMED_OUT)
            answer(bench, &bench->host->got[i], i == 0 ? TLP_UR : i == 1 ? TLP_CA : TLP_SC);
    }
    pcie_rig_run(&bench->rig);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(op[i].status, expected[i]);

    cfg_write(pcie_requester_config_space(bench->a), PCI_COMMAND, 2, 0);
    for (unsigned i = 0; i < 4; i++)
        submit(bench, &op[i], i & 1, i & 2 ? PCIE_REQUESTER_BULK : PCIE_REQUESTER_COMMAND, 0x10000,
               64);
    pcie_rig_run(&bench->rig);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(op[i].status, PCIE_DMA_BUS_MASTER_OFF);
    assert_int_equal(bench->host->n_got, 4);
}

/* ---- As a target ----------------------------------------------------------------------------- */

/* Any bytes of them; what lies behind them in the BAR reads zero. PCIe's rules:
 * test_pcie_function. */
static void test_registers(void **state)
{
    struct bench *bench = *state;
    struct cfg_space *cfg = pcie_requester_config_space(bench->a);
    cfg_write(cfg, PCI_BAR0, 4, 0x40000000);
    cfg_write(cfg, PCI_COMMAND, 2, PCI_COMMAND_MEMORY);
    pcie_port_send(&bench->host->port, pcie_rig_tlp(&bench->rig, TLP_MWR, 0x40000040, 8, 0x5a), 0);
    pcie_port_send(&bench->host->port, pcie_rig_tlp(&bench->rig, TLP_MWR, 0x40000042, 1, 0xa5), 0);
    pcie_port_send(&bench->host->port, pcie_rig_tlp(&bench->rig, TLP_MWR, 0x40001040, 8, 0x77), 0);
    pcie_port_send(&bench->host->port, pcie_rig_tlp(&bench->rig, TLP_MRD, 0x40000040, 8, 1), 0);
    pcie_port_send(&bench->host->port, pcie_rig_tlp(&bench->rig, TLP_MRD, 0x40001040, 4, 2), 0);
    pcie_rig_run(&bench->rig);
    assert_int_equal(bench->host->n_got, 2);
    assert_int_equal(bench->host->got[0].data, 0x5aa55a5a);
    assert_int_equal(bench->host->got[1].data, 0);
}

/* ---- The transmitter's data path ------------------------------------------------------------- */

static sim_time apart_ps(const char *settings, uint32_t bytes)
{
    struct bench bench;
    struct op op[2];
    char text[128];
    snprintf(text, sizeof(text), "word_ns = 0; line_ns = 0; descriptor_ns = 0; %s", settings);
    bench_open_all(&bench, text);
    for (unsigned i = 0; i < 2; i++)
        submit(&bench, &op[i], true, PCIE_REQUESTER_BULK, 0x10000, bytes);
    pcie_rig_run(&bench.rig);
    const sim_time apart_ps = bench.host->got[1].head_ps - bench.host->got[0].head_ps;
    bench_close(&bench);
    return apart_ps;
}

/* A write of 256 bytes has 276, of 4 bytes 24. */
static void test_writes_start_where_the_data_path_lets_them(void **unused)
{
    static const char *const settings[] = { "tx_align_bytes = 4; tx_gap_bytes = 0; ",
                                            "tx_align_bytes = 8; tx_gap_bytes = 0; ",
                                            "tx_align_bytes = 8; tx_gap_bytes = 16; ",
                                            "tx_align_bytes = 64; tx_gap_bytes = 4; " };
    static const uint32_t large[] = { 276, 280, 296, 324 }, small[] = { 24, 24, 40, 68 };
    (void)unused;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(settings); i++) {
        assert_int_equal(apart_ps(settings[i], 256), spec_wire_ps(3, 8, large[i]));
        assert_int_equal(apart_ps(settings[i], 4), spec_wire_ps(3, 8, small[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unloaded_latency_is_the_formula),
        BENCH_TEST(test_stores_and_forwards_whole_operations, ""),
        cmocka_unit_test(test_saturated_rates_are_the_bounds),
        cmocka_unit_test(test_directions_share_banks),
        cmocka_unit_test(test_bursts_as_one_event),
        cmocka_unit_test(test_slots_bound_the_rate),
        BENCH_TEST(test_reads_end_in_order_of_issue, "reads_in_flight = 4; "),
        BENCH_TEST(test_writes_leave_in_order_a_burst_apart, AMPLE),
        cmocka_unit_test(test_requests_end_at_multiples),
        BENCH_TEST(test_errors_end_an_operation, "reads_in_flight = 1; "),
        cmocka_unit_test(test_writes_start_where_the_data_path_lets_them),
        BENCH_TEST(test_registers, "bar_bytes = 8192; "),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
