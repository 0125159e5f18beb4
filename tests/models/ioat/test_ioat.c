/*
 * The DMA engine's registers and chains against the data sheets: each test is named by the register
 * whose section it is about (Intel 5000X MCH: version 1.2; Xeon E7 v2, volume two, 14.5: version
 * 3.2).
 */
#include "tests/models/ioat/ioat_bench.h"

/* ---- Configuration space --------------------------------------------------------------------- */

static void config_body(struct ioat_rig *r)
{
    const bool first = ioat_is_v1(ioat_rig_engine(r));
    assert_int_equal(k_config_read(r->pci, PCI_VENDOR_ID, 2), 0x8086);
    assert_int_equal(k_config_read(r->pci, 2, 2), first ? 0x1a38 : 0x6f20);
    assert_int_equal(r->pci->class_code, 0x088000);
    assert_int_equal(r->pci->bar_bytes[0], first ? 1024 : 16384);
    assert_int_equal(k_pci_find_capability(r->pci, PCI_CAP_ID_MSI, NULL) != 0, first);
    assert_int_equal(k_pci_find_capability(r->pci, PCI_CAP_ID_MSIX, NULL) != 0, !first);
    if (!first) {
        const struct k_pci_dev *second = os_pci_find(r->kernel, (uint16_t)(r->pci->id + 1));
        assert_non_null(second);
        assert_int_equal(second->device_id, 0x6f21);
    }
}

static void test_found_by_enumeration(void **unused)
{
    (void)unused;
    both(config_body);
}

/* ---- General registers ----------------------------------------------------------------------- */

static void general_body(struct ioat_rig *r)
{
    const bool first = ioat_is_v1(ioat_rig_engine(r));
    const uint32_t general = k_readl(r->pci, 0, IOAT_GENERAL);
    assert_int_equal(general & 0xff, first ? 4 : 1);
    assert_int_equal(general >> 8 & 0xff, 20); /* 1 MiB */
    assert_int_equal(k_readl(r->pci, 0, IOAT_CBVER), first ? 0x12 : 0x32);
    /* Read only. */
    k_writel(r->pci, 0, IOAT_CBVER, UINT32_MAX);
    k_writel(r->pci, 0, IOAT_GENERAL, 0x0000ffff);
    assert_int_equal(k_readl(r->pci, 0, IOAT_GENERAL) & 0xffff, general & 0xffff);
    assert_int_equal(k_readl(r->pci, 0, IOAT_CBVER), first ? 0x12 : 0x32);
    assert_int_equal(k_readl(r->pci, 0, IOAT_ATTNSTATUS), 0);
    /* Beyond the channels there is nothing. */
    k_writel(r->pci, 0, IOAT_CHANNEL(5), 0x3c);
    assert_int_equal(k_readl(r->pci, 0, IOAT_CHANNEL(5)), 0);
}

static void test_chancnt_xfercap_cbver(void **unused)
{
    (void)unused;
    both(general_body);
}

static void intrdelay_body(struct ioat_rig *r)
{
    const bool first = ioat_is_v1(ioat_rig_engine(r));
    k_writel(r->pci, 0, IOAT_INTRDELAY_WORD, 0xffff);
    assert_int_equal(k_readl(r->pci, 0, IOAT_INTRDELAY_WORD), first ? 0 : 0xbfff);
}

static void test_intrdelay_is_of_3_2(void **unused)
{
    (void)unused;
    both(intrdelay_body);
}

static void intrctrl_body(struct ioat_rig *r)
{
    const unsigned shift = IOAT_INTRCTRL_SHIFT;
    k_writel(r->pci, 0, IOAT_GENERAL, (uint32_t)IOAT_INTRCTRL_MASTER_ENABLE << shift);
    /* Reading returns the master enable and clears it. */
    assert_int_equal(k_readl(r->pci, 0, IOAT_GENERAL) >> shift, IOAT_INTRCTRL_MASTER_ENABLE);
    assert_int_equal(k_readl(r->pci, 0, IOAT_GENERAL) >> shift, 0);
}

static void test_intrctrl_read_clears_the_master_enable(void **unused)
{
    (void)unused;
    both(intrctrl_body);
}

/* ---- CHANCTRL -------------------------------------------------------------------------------- */

static void chanctrl_body(struct ioat_rig *r)
{
    const bool first = ioat_is_v1(ioat_rig_engine(r));
    const uint32_t control = ioat_rig_read(r, 0, IOAT_CHANCTRL);
    assert_int_equal(control & 0xffff, 0);
    assert_int_equal(control >> 16, first ? 1 : 2); /* DMA_COMP */
    /* The first read has taken the channel; writing 0 gives it back. */
    assert_int_equal(ioat_rig_read(r, 0, IOAT_CHANCTRL) & 0xffff, IOAT_CHANCTRL_IN_USE);
    ioat_rig_write(r, 0, IOAT_CHANCTRL, 0);
    assert_int_equal(ioat_rig_read(r, 0, IOAT_CHANCTRL) & 0xffff, 0);
    ioat_rig_write(r, 0, IOAT_CHANCTRL, UINT32_MAX);
    assert_int_equal(ioat_rig_read(r, 0, IOAT_CHANCTRL) & 0xffff,
                     first ? IOAT_V1_CHANCTRL_WRITABLE : IOAT_V3_CHANCTRL_WRITABLE);
    assert_int_equal(ioat_rig_read(r, 0, IOAT_CHANCTRL) >> 16, first ? 1 : 2);
}

static void test_chanctrl_in_use_and_masks(void **unused)
{
    (void)unused;
    both(chanctrl_body);
}

/* ---- CHANSTS, CHANCMP, CDAR ------------------------------------------------------------------ */

static void chain_body(struct ioat_rig *r)
{
    struct bench b = bench_new(r);
    assert_int_equal(state(&b), IOAT_CHANSTS_HALTED); /* after power-on */
    set_completion(&b);
    chain(&b, 5, 1000, 0);
    start(&b, 0, 5);
    assert_int_equal(state(&b), IOAT_CHANSTS_ACTIVE);
    settle(&b);
    /* The last completed descriptor, and that the chain is done: in the register and in memory. */
    assert_int_equal(status(&b), (b.ring_dma + 4 * 64) | IOAT_CHANSTS_IDLE);
    assert_int_equal(completion(&b), status(&b));
    assert_int_equal(ioat_rig_read(r, 0, IOAT_CDAR), (uint32_t)(b.ring_dma + 4 * 64));
    assert_true(copied(&b, 0, 5000));
    assert_int_equal(ioat_rig_engine(r)->stats.completions, 5);
    /* Only descriptors that ask for it write a completion. */
    chain(&b, 3, 64, 0);
    descriptor(&b, 2, b.to_dma, b.from_dma, 64, 0, v1(&b) ? 0 : 3);
    start(&b, 0, 3);
    settle(&b);
    assert_int_equal(status(&b), (b.ring_dma + 2 * 64) | IOAT_CHANSTS_IDLE);
    assert_int_equal(completion(&b), (b.ring_dma + 64) | IOAT_CHANSTS_ACTIVE);
    /* One that moves nothing. */
    set_completion(&b);
    descriptor(&b, 0, 0, 0, 0, IOAT_CONTROL_NULL | IOAT_CONTROL_COMPLETION, v1(&b) ? 0 : 1);
    start(&b, 0, 1);
    settle(&b);
    assert_int_equal(completion(&b), b.ring_dma | IOAT_CHANSTS_IDLE);
}

static void test_chansts_and_completion_writes(void **unused)
{
    (void)unused;
    both(chain_body);
}

/* ---- CHANCMD, version 1.2 -------------------------------------------------------------------- */

static void append_body(struct ioat_rig *r)
{
    struct bench b = bench_new(r);
    set_completion(&b);
    chain(&b, 2, 512, 0);
    start(&b, 0, 0);
    settle(&b);
    assert_int_equal(state(&b), IOAT_CHANSTS_IDLE);
    /* The last descriptor's next address is read again. */
    descriptor(&b, 2, b.to_dma + 1024, b.from_dma + 1024, 512, IOAT_CONTROL_COMPLETION, 0);
    descriptor(&b, 1, b.to_dma + 512, b.from_dma + 512, 512, IOAT_CONTROL_COMPLETION, 2);
    command(&b, IOAT_CHANCMD_APPEND);
    settle(&b);
    assert_int_equal(status(&b), (b.ring_dma + 2 * 64) | IOAT_CHANSTS_IDLE);
    assert_true(copied(&b, 0, 1536));
    /* With nothing behind it, APPEND changes nothing. */
    const uint64_t n = ioat_rig_engine(r)->stats.descriptors;
    command(&b, IOAT_CHANCMD_APPEND);
    settle(&b);
    assert_int_equal(ioat_rig_engine(r)->stats.descriptors, n);
    assert_int_equal(status(&b), (b.ring_dma + 2 * 64) | IOAT_CHANSTS_IDLE);
    assert_int_equal(ioat_rig_read(r, 0, IOAT_CHANERR), 0);
}

static void test_chancmd_append(void **unused)
{
    (void)unused;
    only("cb1.2", append_body);
}

/* Chained while it works, at any moment: nothing is done twice, nothing forgotten. */
static void append_at_work_body(struct ioat_rig *r)
{
    struct bench b = bench_new(r);
    set_completion(&b);
    descriptor(&b, 0, b.to_dma, b.from_dma, 100, IOAT_CONTROL_COMPLETION, 0);
    start(&b, 0, 0);
    for (unsigned i = 1; i < 60; i++) {
        const uint64_t next = b.ring_dma + i * 64;
        descriptor(&b, i, b.to_dma + i * 100, b.from_dma + i * 100, 100, IOAT_CONTROL_COMPLETION,
                   0);
        k_poke(r->kernel, kaddr_add(b.ring, (i - 1) * 64 + offsetof(struct ioat_descriptor, next)),
               &next, sizeof(next));
        command(&b, IOAT_CHANCMD_APPEND);
        k_compute(r->kernel, 137 * (i % 17));
    }
    settle(&b);
    assert_int_equal(status(&b), (b.ring_dma + 59 * 64) | IOAT_CHANSTS_IDLE);
    assert_int_equal(ioat_rig_engine(r)->stats.descriptors, 60);
    assert_true(copied(&b, 0, 6000));
}

static void test_chancmd_append_at_any_moment(void **unused)
{
    (void)unused;
    only("cb1.2", append_at_work_body);
}

static void suspend_v1_body(struct ioat_rig *r)
{
    struct bench b = bench_new(r);
    set_completion(&b);
    chain(&b, 8, 4096, 0);
    start(&b, 0, 0);
    k_sleep(r->kernel, 3 * K_US);
    command(&b, IOAT_CHANCMD_SUSPEND);
    settle(&b);
    assert_int_equal(state(&b), IOAT_CHANSTS_SUSPENDED);
    const uint64_t done = ioat_rig_engine(r)->stats.descriptors;
    assert_in_range(done, 1, 7);
    assert_int_equal(status(&b) & IOAT_CHANSTS_ADDRESS_MASK, b.ring_dma + (done - 1) * 64);
    settle(&b);
    assert_int_equal(ioat_rig_engine(r)->stats.descriptors, done);
    command(&b, IOAT_CHANCMD_RESUME);
    settle(&b);
    assert_int_equal(status(&b), (b.ring_dma + 7 * 64) | IOAT_CHANSTS_IDLE);
    assert_true(copied(&b, 0, 8 * 4096));
    /* RESUME of a channel that is not suspended. */
    command(&b, IOAT_CHANCMD_RESUME);
    settle(&b);
    assert_int_equal(ioat_rig_read(r, 0, IOAT_CHANERR), IOAT_CHANERR_COMMAND);
}

static void test_chancmd_suspend_and_resume(void **unused)
{
    (void)unused;
    only("cb1.2", suspend_v1_body);
}

static void abort_body(struct ioat_rig *r)
{
    struct bench b = bench_new(r);
    for (unsigned delay = 0; delay < 8; delay++) {
        set_completion(&b);
        chain(&b, 8, 4096, 0);
        start(&b, 0, 8);
        k_compute(r->kernel, 1500 * delay);
        command(&b, v1(&b) && delay % 2 == 0 ? IOAT_CHANCMD_ABORT : IOAT_CHANCMD_RESET);
        settle(&b);
        assert_int_equal(state(&b), IOAT_CHANSTS_HALTED);
        assert_int_equal(ioat_rig_read(r, 0, v1(&b) ? IOAT_V1_CHANCMD : IOAT_V3_CHANCMD) &
                             IOAT_CHANCMD_RESET,
                         0);
        assert_int_equal(ioat_rig_read(r, 0, IOAT_CHANERR), 0);
        /* Nothing is written any more, and the channel can be started again. */
        ioat_rig_fill(r, b.to, 64 * KIB, 50);
        settle(&b);
        assert_true(ioat_rig_holds(r, b.to, 64 * KIB, 50, 0));
    }
    chain(&b, 2, 4096, 0);
    start(&b, 0, 2);
    settle(&b);
    assert_int_equal(state(&b), IOAT_CHANSTS_IDLE);
    assert_true(copied(&b, 0, 8192));
}

static void test_chancmd_abort_and_reset(void **unused)
{
    (void)unused;
    both(abort_body);
}

static void bad_command_body(struct ioat_rig *r)
{
    static const uint32_t bad[] = { IOAT_CHANCMD_START | IOAT_CHANCMD_APPEND, 0x40, 0xff };
    struct bench b = bench_new(r);
    for (unsigned i = 0; i < 3; i++) {
        command(&b, bad[i]);
        settle(&b);
        assert_int_equal(ioat_rig_read(r, 0, IOAT_CHANERR), IOAT_CHANERR_COMMAND);
        ioat_rig_write(r, 0, IOAT_CHANERR, IOAT_CHANERR_COMMAND);
        assert_int_equal(ioat_rig_read(r, 0, IOAT_CHANERR), 0);
    }
    /* One that comes while the channel works halts it. */
    chain(&b, 8, 4096, 0);
    start(&b, 0, 8);
    command(&b, v1(&b) ? IOAT_CHANCMD_START : IOAT_CHANCMD_APPEND);
    settle(&b);
    assert_int_equal(state(&b), IOAT_CHANSTS_HALTED);
    assert_int_equal(ioat_rig_read(r, 0, IOAT_CHANERR), IOAT_CHANERR_COMMAND);
}

static void test_chancmd_errors(void **unused)
{
    (void)unused;
    both(bad_command_body);
}

/* ---- DMACOUNT, CHAINADDR, version 3.2 -------------------------------------------------------- */

static void dmacount_body(struct ioat_rig *r)
{
    struct bench b = bench_new(r);
    set_completion(&b);
    for (unsigned i = 0; i < 8; i++) /* a ring */
        descriptor(&b, i, b.to_dma + i * 64, b.from_dma + i * 64, 64, IOAT_CONTROL_COMPLETION,
                   (i + 1) % 8);
    const uint64_t first = b.ring_dma; /* next == 0 means nothing here */
    k_poke(r->kernel, kaddr_add(b.ring, 7 * 64 + offsetof(struct ioat_descriptor, next)), &first,
           sizeof(first));
    start(&b, 0, 3);
    settle(&b);
    assert_int_equal(status(&b), (b.ring_dma + 2 * 64) | IOAT_CHANSTS_IDLE);
    /* It counts from the writing of CHAINADDR on, and past the end of the ring. */
    for (unsigned n = 4; n < 30; n += 5) {
        ioat_rig_write(r, 0, IOAT_V3_CHANCMD, n << IOAT_V3_DMACOUNT_SHIFT);
        settle(&b);
        assert_int_equal(status(&b), (b.ring_dma + (n - 1) % 8 * 64) | IOAT_CHANSTS_IDLE);
        assert_int_equal(ioat_rig_engine(r)->stats.descriptors, n);
        assert_int_equal(ioat_rig_read(r, 0, IOAT_V3_CHANCMD) >> IOAT_V3_DMACOUNT_SHIFT, n);
    }
    assert_true(copied(&b, 0, 512));
    /* Fewer than before. */
    ioat_rig_write(r, 0, IOAT_V3_CHANCMD, 7u << IOAT_V3_DMACOUNT_SHIFT);
    settle(&b);
    assert_int_equal(ioat_rig_read(r, 0, IOAT_CHANERR), IOAT_CHANERR_COUNT);
    assert_int_equal(state(&b), IOAT_CHANSTS_HALTED);
    /* A halted channel does not care for the count; a new chain begins it anew. */
    ioat_rig_write(r, 0, IOAT_V3_CHANCMD, 40u << IOAT_V3_DMACOUNT_SHIFT);
    settle(&b);
    assert_int_equal(state(&b), IOAT_CHANSTS_HALTED);
    start(&b, 5, 2);
    settle(&b);
    assert_int_equal(status(&b), (b.ring_dma + 6 * 64) | IOAT_CHANSTS_IDLE);
}

static void test_dmacount_and_chainaddr(void **unused)
{
    (void)unused;
    only("cb3.2", dmacount_body);
}

/* A count of 16 bits goes round. */
static void dmacount_wraps_body(struct ioat_rig *r)
{
    struct bench b = bench_new(r);
    struct ioat_channel *ch = &ioat_rig_engine(r)->func[0].channel[0];
    set_completion(&b);
    descriptor(&b, 0, b.to_dma, b.from_dma, 64, IOAT_CONTROL_COMPLETION, 1);
    descriptor(&b, 1, b.to_dma, b.from_dma, 64, IOAT_CONTROL_COMPLETION, 1);
    start(&b, 0, 1);
    settle(&b);
    ch->n_fetched = ch->count = 65530; /* as after so many */
    ioat_rig_write(r, 0, IOAT_V3_CHANCMD, 4u << IOAT_V3_DMACOUNT_SHIFT);
    settle(&b);
    assert_int_equal(state(&b), IOAT_CHANSTS_IDLE);
    assert_int_equal(ioat_rig_engine(r)->stats.descriptors, 1 + 10);
    assert_int_equal(ioat_rig_read(r, 0, IOAT_CHANERR), 0);
}

static void test_dmacount_wraps(void **unused)
{
    (void)unused;
    only("cb3.2", dmacount_wraps_body);
}

static void suspend_v3_body(struct ioat_rig *r)
{
    struct bench b = bench_new(r);
    set_completion(&b);
    chain(&b, 8, 4096, 0);
    start(&b, 0, 8);
    k_sleep(r->kernel, 3 * K_US);
    command(&b, IOAT_CHANCMD_SUSPEND);
    settle(&b);
    assert_int_equal(state(&b), IOAT_CHANSTS_SUSPENDED);
    const uint64_t done = ioat_rig_engine(r)->stats.descriptors;
    assert_in_range(done, 1, 7);
    /* As Linux goes on: a new chain at the first that is not done. */
    start(&b, (unsigned)done, 8 - (unsigned)done);
    settle(&b);
    assert_int_equal(status(&b), (b.ring_dma + 7 * 64) | IOAT_CHANSTS_IDLE);
    assert_int_equal(ioat_rig_engine(r)->stats.descriptors, 8);
    assert_true(copied(&b, 0, 8 * 4096));
}

static void test_suspend_and_a_new_chain(void **unused)
{
    (void)unused;
    only("cb3.2", suspend_v3_body);
}

/* ---- CHANERR, CHANERRMSK --------------------------------------------------------------------- */

struct mistake {
    uint32_t bytes, control;
    uint64_t source, destination; /* added to the buffers' addresses */
    uint32_t error;
};

static void expect_error(struct bench *b, uint32_t error, unsigned done)
{
    struct ioat_rig *r = b->rig;
    settle(b);
    assert_int_equal(ioat_rig_read(r, 0, IOAT_CHANERR), error);
    assert_int_equal(state(b), IOAT_CHANSTS_HALTED);
    /* Those before it are done, the failed one is in CDAR. */
    assert_int_equal(ioat_rig_engine(r)->stats.descriptors, done);
    assert_int_equal(ioat_rig_read(r, 0, IOAT_CDAR), (uint32_t)(b->ring_dma + 2 * 64));
    assert_int_equal(completion(b), (b->ring_dma + 64) | IOAT_CHANSTS_HALTED);
    assert_true(copied(b, 0, 2 * 300));
}

static void errors_body(struct ioat_rig *r)
{
    static const struct mistake mistakes[] = {
        { 0, 0, 0, 0, IOAT_CHANERR_LENGTH },
        { 1048577, 0, 0, 0, IOAT_CHANERR_LENGTH },
        { 300, 7u << IOAT_CONTROL_OP_SHIFT, 0, 0, IOAT_CHANERR_CONTROL },
        { 300, 0, UINT64_C(1) << 48, 0, IOAT_CHANERR_SOURCE },
        { 300, 0, 0, UINT64_C(1) << 48, IOAT_CHANERR_DESTINATION },
        { 300, 0, UINT64_C(1) << 39, 0, IOAT_CHANERR_SOURCE }, /* where nothing answers */
    };
    struct bench b = bench_new(r);
    unsigned done = 0;
    ioat_rig_write(r, 0, IOAT_CHANCTRL, IOAT_CHANCTRL_ERR_COMPLETION | IOAT_CHANCTRL_ANY_ERR_ABORT);
    for (unsigned i = 0; i < SIM_N_ELEMENTS(mistakes); i++) {
        const struct mistake *m = &mistakes[i];
        set_completion(&b);
        chain(&b, 5, 300, 0);
        descriptor(&b, 2, b.to_dma + 600 + m->destination, b.from_dma + 600 + m->source, m->bytes,
                   IOAT_CONTROL_COMPLETION | m->control, 3);
        start(&b, 0, 5);
        expect_error(&b, m->error, done += 2);
        ioat_rig_write(r, 0, IOAT_CHANERR, m->error);
        command(&b, IOAT_CHANCMD_RESET);
        settle(&b);
        assert_int_equal(ioat_rig_read(r, 0, IOAT_CHANERR), 0);
        /* Behind the failed one. */
        start(&b, 3, 2);
        settle(&b);
        assert_int_equal(status(&b), (b.ring_dma + 4 * 64) | IOAT_CHANSTS_IDLE);
        done += 2;
    }
    assert_int_equal(ioat_rig_engine(r)->stats.errors, SIM_N_ELEMENTS(mistakes));
}

static void test_chanerr_by_cause(void **unused)
{
    (void)unused;
    both(errors_body);
}

static void alignment_body(struct ioat_rig *r)
{
    struct bench b = bench_new(r);
    const uint64_t odd = b.ring_dma + 65;
    ioat_rig_write64(r, 0, v1(&b) ? IOAT_V1_CHAINADDR : IOAT_V3_CHAINADDR, odd);
    command(&b, v1(&b) ? IOAT_CHANCMD_START : 1u << IOAT_V3_DMACOUNT_SHIFT);
    settle(&b);
    assert_int_equal(ioat_rig_read(r, 0, IOAT_CHANERR), IOAT_CHANERR_CHAIN);
    ioat_rig_write(r, 0, IOAT_CHANERR, UINT32_MAX);
    /* A chain that begins where nothing answers. */
    ioat_rig_write64(r, 0, v1(&b) ? IOAT_V1_CHAINADDR : IOAT_V3_CHAINADDR, UINT64_C(1) << 39);
    command(&b, v1(&b) ? IOAT_CHANCMD_START : 1u << IOAT_V3_DMACOUNT_SHIFT);
    settle(&b);
    assert_int_equal(ioat_rig_read(r, 0, IOAT_CHANERR), IOAT_CHANERR_CHAIN);
    ioat_rig_write(r, 0, IOAT_CHANERR, UINT32_MAX);
    /* The second descriptor's address. */
    set_completion(&b);
    chain(&b, 2, 100, 0);
    k_poke(r->kernel, kaddr_add(b.ring, offsetof(struct ioat_descriptor, next)), &odd, sizeof(odd));
    start(&b, 0, 2);
    settle(&b);
    assert_int_equal(ioat_rig_read(r, 0, IOAT_CHANERR), IOAT_CHANERR_NEXT_ALIGN);
    assert_true(copied(&b, 0, 100));
    ioat_rig_write(r, 0, IOAT_CHANERR, UINT32_MAX);
    const uint64_t nowhere = UINT64_C(1) << 39;
    k_poke(r->kernel, kaddr_add(b.ring, offsetof(struct ioat_descriptor, next)), &nowhere,
           sizeof(nowhere));
    start(&b, 0, 2);
    settle(&b);
    assert_int_equal(ioat_rig_read(r, 0, IOAT_CHANERR), IOAT_CHANERR_NEXT);
    ioat_rig_write(r, 0, IOAT_CHANERR, UINT32_MAX);
    /* A place for completions that is none. */
    ioat_rig_write64(r, 0, IOAT_CHANCMP, b.completion_dma + 4);
    chain(&b, 1, 100, 0);
    start(&b, 0, 1);
    settle(&b);
    assert_int_equal(ioat_rig_read(r, 0, IOAT_CHANERR), IOAT_CHANERR_COMPLETION);
}

static void test_chanerr_of_addresses(void **unused)
{
    (void)unused;
    both(alignment_body);
}

/* A masked error halts, and nobody is told. */
static void mask_body(struct ioat_rig *r)
{
    struct bench b = bench_new(r);
    ioat_rig_write(r, 0, IOAT_CHANERRMSK, UINT32_MAX);
    assert_int_equal(ioat_rig_read(r, 0, IOAT_CHANERRMSK),
                     v1(&b) ? IOAT_V1_CHANERR_ALL : IOAT_V3_CHANERR_ALL);
    ioat_rig_write(r, 0, IOAT_CHANCTRL, IOAT_CHANCTRL_ERR_COMPLETION | IOAT_CHANCTRL_ERR_INT);
    set_completion(&b);
    chain(&b, 1, 100, 0);
    descriptor(&b, 0, b.to_dma, b.from_dma, 0, IOAT_CONTROL_COMPLETION, 0);
    start(&b, 0, 1);
    settle(&b);
    assert_int_equal(state(&b), IOAT_CHANSTS_HALTED);
    assert_int_equal(ioat_rig_read(r, 0, IOAT_CHANERR), IOAT_CHANERR_LENGTH);
    assert_int_equal(completion(&b), 0);
    assert_int_equal(k_readl(r->pci, 0, IOAT_ATTNSTATUS), 0);
}

static void test_chanerrmsk(void **unused)
{
    (void)unused;
    both(mask_body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_found_by_enumeration),
        cmocka_unit_test(test_chancnt_xfercap_cbver),
        cmocka_unit_test(test_intrdelay_is_of_3_2),
        cmocka_unit_test(test_intrctrl_read_clears_the_master_enable),
        cmocka_unit_test(test_chanctrl_in_use_and_masks),
        cmocka_unit_test(test_chansts_and_completion_writes),
        cmocka_unit_test(test_chancmd_append),
        cmocka_unit_test(test_chancmd_append_at_any_moment),
        cmocka_unit_test(test_chancmd_suspend_and_resume),
        cmocka_unit_test(test_chancmd_abort_and_reset),
        cmocka_unit_test(test_chancmd_errors),
        cmocka_unit_test(test_dmacount_and_chainaddr),
        cmocka_unit_test(test_dmacount_wraps),
        cmocka_unit_test(test_suspend_and_a_new_chain),
        cmocka_unit_test(test_chanerr_by_cause),
        cmocka_unit_test(test_chanerr_of_addresses),
        cmocka_unit_test(test_chanerrmsk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
