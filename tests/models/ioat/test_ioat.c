/*
 * The DMA engine's registers and chains against the data sheets: each test is named by the register
 * whose section it is about (Intel 5000X MCH: version 1.2; Xeon E7 v2, volume two, 14.5: version 3.2).
 * And its timing: unloaded latency as a formula, saturated rate as the bound that follows from reads
 * in flight and from the engine's clock.
 */
#include "tests/support/ioat_rig.h"

#include <string.h>

#include "hw/pci_regs.h"

#define KIB 1024u

/* What a body works with: a ring of descriptors, two buffers, a place for completions. */
struct bench {
    struct ioat_rig *rig;
    struct kaddr ring, from, to, completion;
    uint64_t ring_dma, from_dma, to_dma, completion_dma;
};

static uint64_t alloc(struct ioat_rig *r, size_t bytes, struct kaddr *at)
{
    uint64_t dma;
    assert_int_equal(k_dma_alloc(&r->pci->device, 0, bytes, at, &dma), 0);
    return dma;
}

static bool v1(const struct bench *b)
{
    return ioat_is_v1(ioat_rig_engine(b->rig));
}

static struct bench bench_new(struct ioat_rig *r)
{
    struct bench b = { .rig = r };
    b.ring_dma = alloc(r, 4096, &b.ring);
    b.from_dma = alloc(r, 64 * KIB, &b.from);
    b.to_dma = alloc(r, 64 * KIB, &b.to);
    b.completion_dma = alloc(r, 64, &b.completion);
    ioat_rig_fill(r, b.from, 64 * KIB, 1);
    return b;
}

static void descriptor(struct bench *b, unsigned slot, uint64_t to, uint64_t from, uint32_t bytes,
                       uint32_t control, unsigned next)
{
    const struct ioat_descriptor d = { .bytes = bytes,
                                       .control = control,
                                       .source = from,
                                       .destination = to,
                                       .next = next != 0 ? b->ring_dma + next * 64 : 0 };
    k_poke(b->rig->kernel, kaddr_add(b->ring, slot * 64), &d, sizeof(d));
}

/* Slots 0 .. n-1 copy so many bytes each; all write completions. */
static void chain(struct bench *b, unsigned n, uint32_t bytes, uint32_t control)
{
    for (unsigned i = 0; i < n; i++)
        descriptor(b, i, b->to_dma + i * bytes, b->from_dma + i * bytes, bytes,
                   IOAT_CONTROL_COMPLETION | control, i + 1 < n || !v1(b) ? i + 1 : 0);
}

static void set_completion(struct bench *b)
{
    const uint64_t none = 0;
    k_poke(b->rig->kernel, b->completion, &none, sizeof(none));
    ioat_rig_write64(b->rig, 0, IOAT_CHANCMP, b->completion_dma);
}

static void start(struct bench *b, unsigned slot, unsigned n)
{
    ioat_rig_write64(b->rig, 0, v1(b) ? IOAT_V1_CHAINADDR : IOAT_V3_CHAINADDR,
                     b->ring_dma + slot * 64);
    if (v1(b))
        ioat_rig_write(b->rig, 0, IOAT_V1_CHANCMD, IOAT_CHANCMD_START);
    else
        ioat_rig_write(b->rig, 0, IOAT_V3_CHANCMD, n << IOAT_V3_DMACOUNT_SHIFT);
}

static void command(struct bench *b, uint32_t value)
{
    ioat_rig_write(b->rig, 0, v1(b) ? IOAT_V1_CHANCMD : IOAT_V3_CHANCMD, value);
}

static uint64_t status(struct bench *b)
{
    const uint32_t at = v1(b) ? IOAT_V1_CHANSTS : IOAT_V3_CHANSTS;
    const uint64_t low = ioat_rig_read(b->rig, 0, at);
    return low | (uint64_t)ioat_rig_read(b->rig, 0, at + 4) << 32;
}

static uint32_t state(struct bench *b)
{
    return (uint32_t)(status(b) & IOAT_CHANSTS_STATUS_MASK);
}

static uint64_t completion(struct bench *b)
{
    uint64_t value;
    k_peek(b->rig->kernel, b->completion, &value, sizeof(value));
    return value;
}

static void settle(struct bench *b)
{
    k_sleep(b->rig->kernel, 100 * K_US);
}

static bool copied(struct bench *b, size_t from, size_t bytes)
{
    return ioat_rig_holds(b->rig, kaddr_add(b->to, from), bytes, 1, from);
}

static void both_with(void (*body)(struct ioat_rig *), const char *settings)
{
    static const char *const versions[] = { "cb1.2", "cb3.2" };
    for (unsigned v = 0; v < 2; v++) {
        const struct ioat_rig_world world = { .version = versions[v], .settings = settings };
        ioat_rig_run(&world, body, NULL);
    }
}

static void both(void (*body)(struct ioat_rig *))
{
    both_with(body, NULL);
}

static void only(const char *version, void (*body)(struct ioat_rig *))
{
    const struct ioat_rig_world world = { .version = version };
    ioat_rig_run(&world, body, NULL);
}

/* ---- Configuration space ------------------------------------------------------------------------- */

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

/* ---- General registers --------------------------------------------------------------------------- */

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

/* ---- CHANCTRL ------------------------------------------------------------------------------------ */

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
    assert_int_equal(ioat_rig_read(r, 0, IOAT_CHANCTRL) & 0xffff, IOAT_CHANCTRL_WRITABLE);
    assert_int_equal(ioat_rig_read(r, 0, IOAT_CHANCTRL) >> 16, first ? 1 : 2);
}

static void test_chanctrl_in_use_and_masks(void **unused)
{
    (void)unused;
    both(chanctrl_body);
}

/* ---- CHANSTS, CHANCMP, CDAR ---------------------------------------------------------------------- */

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

/* ---- CHANCMD, version 1.2 ------------------------------------------------------------------------ */

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

/* ---- DMACOUNT, CHAINADDR, version 3.2 ------------------------------------------------------------ */

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

/* ---- CHANERR, CHANERRMSK ------------------------------------------------------------------------- */

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
    assert_int_equal(ioat_rig_read(r, 0, IOAT_CHANERRMSK), IOAT_CHANERR_ALL);
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

/* ---- Interrupts ---------------------------------------------------------------------------------- */

static void count_interrupt(void *arg)
{
    ++*(unsigned *)arg;
}

static void attention_body(struct ioat_rig *r)
{
    struct bench b = bench_new(r);
    const uint32_t master = (uint32_t)IOAT_INTRCTRL_MASTER_ENABLE << IOAT_INTRCTRL_SHIFT;
    unsigned n = 0;
    struct k_irq *irq;
    assert_int_equal(k_irq_request(r->pci, 0, 1, count_interrupt, &n, &irq), 0);
    assert_int_equal(k_irq_request(r->pci, 1, 1, count_interrupt, &n, &irq), -ENOSPC);
    /* Not enabled: the channel's bit and the status are there, no message. */
    set_completion(&b);
    chain(&b, 4, 64, IOAT_CONTROL_INTERRUPT);
    start(&b, 0, 4);
    settle(&b);
    assert_int_equal(n, 0);
    assert_int_equal(k_readl(r->pci, 0, IOAT_GENERAL) >> IOAT_INTRCTRL_SHIFT, IOAT_INTRCTRL_STATUS);
    assert_int_equal(ioat_rig_read(r, 0, IOAT_CHANCTRL) & IOAT_CHANCTRL_INT_DISABLE,
                     IOAT_CHANCTRL_INT_DISABLE);
    /* With the master enable it leaves, once. */
    k_writel(r->pci, 0, IOAT_GENERAL, master);
    settle(&b);
    assert_int_equal(n, 1);
    assert_int_equal(k_readl(r->pci, 0, IOAT_GENERAL) >> IOAT_INTRCTRL_SHIFT,
                     IOAT_INTRCTRL_MASTER_ENABLE | IOAT_INTRCTRL_STATUS | IOAT_INTRCTRL_INTERRUPT);
    assert_int_equal(k_readl(r->pci, 0, IOAT_ATTNSTATUS), 1);
    assert_int_equal(k_readl(r->pci, 0, IOAT_ATTNSTATUS), 0);
    /* No other before the channel is rearmed, also if all else is enabled. */
    k_writel(r->pci, 0, IOAT_GENERAL, master);
    start(&b, 0, 4);
    settle(&b);
    assert_int_equal(n, 1);
    ioat_rig_write(r, 0, IOAT_CHANCTRL, IOAT_CHANCTRL_INT_DISABLE);
    start(&b, 0, 4);
    settle(&b);
    assert_int_equal(n, 2); /* of four descriptors */
    /* One that does not ask for it. */
    (void)k_readl(r->pci, 0, IOAT_ATTNSTATUS);
    ioat_rig_write(r, 0, IOAT_CHANCTRL, IOAT_CHANCTRL_INT_DISABLE);
    k_writel(r->pci, 0, IOAT_GENERAL, master);
    chain(&b, 4, 64, 0);
    start(&b, 0, 4);
    settle(&b);
    assert_int_equal(n, 2);
    k_irq_free(irq);
}

static void test_chanctrl_attnstatus_intrctrl(void **unused)
{
    (void)unused;
    only("cb1.2", attention_body);
}

/* MSI, masked and not, moved to another CPU (PCI Local Bus 3.0, 6.8.1). */
static void msi_body(struct ioat_rig *r)
{
    struct bench b = bench_new(r);
    const unsigned cap = k_pci_find_capability(r->pci, PCI_CAP_ID_MSI, NULL);
    unsigned n = 0;
    struct k_irq *irq;
    assert_int_equal(k_irq_request(r->pci, 0, 1, count_interrupt, &n, &irq), 0);
    assert_int_equal(k_config_read(r->pci, cap + PCI_MSI_CONTROL, 2) & PCI_MSI_CONTROL_ENABLE,
                     PCI_MSI_CONTROL_ENABLE);
    k_writel(r->pci, 0, IOAT_GENERAL, (uint32_t)IOAT_INTRCTRL_MASTER_ENABLE << 24);
    k_config_write(r->pci, cap + PCI_MSI_MASK, 4, 1);
    chain(&b, 1, 64, IOAT_CONTROL_INTERRUPT);
    start(&b, 0, 0);
    settle(&b);
    assert_int_equal(n, 0);
    assert_int_equal(k_config_read(r->pci, cap + PCI_MSI_PENDING, 4), 1);
    k_config_write(r->pci, cap + PCI_MSI_MASK, 4, 0);
    settle(&b);
    assert_int_equal(n, 1);
    assert_int_equal(k_config_read(r->pci, cap + PCI_MSI_PENDING, 4), 0);
    assert_int_equal(k_irq_set_cpu(irq, 3), 0);
    const uint64_t before = os_cpu_stats(r->kernel, 3)->hard_irqs;
    (void)k_readl(r->pci, 0, IOAT_ATTNSTATUS);
    ioat_rig_write(r, 0, IOAT_CHANCTRL, IOAT_CHANCTRL_INT_DISABLE);
    start(&b, 0, 0);
    settle(&b);
    assert_int_equal(n, 2);
    assert_true(os_cpu_stats(r->kernel, 3)->hard_irqs > before);
    k_irq_free(irq);
    assert_int_equal(k_config_read(r->pci, cap + PCI_MSI_CONTROL, 2) & PCI_MSI_CONTROL_ENABLE, 0);
}

static void test_msi(void **unused)
{
    (void)unused;
    only("cb1.2", msi_body);
}

/* Two channels that want attention at a time: one message, both bits. */
static void channels_body(struct ioat_rig *r)
{
    struct bench b = bench_new(r);
    unsigned n = 0;
    struct k_irq *irq;
    assert_int_equal(k_irq_request(r->pci, 0, 1, count_interrupt, &n, &irq), 0);
    k_writel(r->pci, 0, IOAT_GENERAL, (uint32_t)IOAT_INTRCTRL_MASTER_ENABLE << 24);
    descriptor(&b, 0, b.to_dma, b.from_dma, 64, IOAT_CONTROL_INTERRUPT, 0);
    for (unsigned c = 1; c <= 3; c += 2) {
        ioat_rig_write64(r, c, IOAT_V1_CHAINADDR, b.ring_dma);
        ioat_rig_write(r, c, IOAT_V1_CHANCMD, IOAT_CHANCMD_START);
    }
    settle(&b);
    assert_int_equal(n, 1);
    assert_int_equal(k_readl(r->pci, 0, IOAT_ATTNSTATUS), 1u << 1 | 1u << 3);
    k_irq_free(irq);
}

static void test_attnstatus_of_several_channels(void **unused)
{
    (void)unused;
    only("cb1.2", channels_body);
}

static void intrdelay_at_work_body(struct ioat_rig *r)
{
    struct bench b = bench_new(r);
    unsigned n = 0;
    struct k_irq *irq;
    assert_int_equal(k_irq_request(r->pci, 0, 1, count_interrupt, &n, &irq), 0);
    k_writel(r->pci, 0, IOAT_GENERAL,
             (uint32_t)(IOAT_INTRCTRL_MASTER_ENABLE | IOAT_INTRCTRL_MSIX_VECTORS) << 24);
    k_writel(r->pci, 0, IOAT_INTRDELAY_WORD, 50);
    chain(&b, 1, 64, IOAT_CONTROL_INTERRUPT);
    ioat_rig_write(r, 0, IOAT_CHANCTRL, IOAT_CHANCTRL_INT_DISABLE); /* rearmed now */
    start(&b, 0, 1);
    k_sleep(r->kernel, 40 * K_US);
    assert_int_equal(state(&b), IOAT_CHANSTS_IDLE);
    assert_int_equal(n, 0);
    k_sleep(r->kernel, 20 * K_US);
    assert_int_equal(n, 1);
    /* Long after the rearming: at once. */
    ioat_rig_write(r, 0, IOAT_CHANCTRL, IOAT_CHANCTRL_INT_DISABLE);
    k_sleep(r->kernel, 60 * K_US);
    start(&b, 0, 1);
    k_sleep(r->kernel, 10 * K_US);
    assert_int_equal(n, 2);
    k_irq_free(irq);
}

static void test_intrdelay_after_rearming(void **unused)
{
    (void)unused;
    only("cb3.2", intrdelay_at_work_body);
}

static void error_interrupt_body(struct ioat_rig *r)
{
    struct bench b = bench_new(r);
    unsigned n = 0;
    struct k_irq *irq;
    assert_int_equal(k_irq_request(r->pci, 0, 1, count_interrupt, &n, &irq), 0);
    k_writel(r->pci, 0, IOAT_GENERAL, (uint32_t)IOAT_INTRCTRL_MASTER_ENABLE << 24);
    for (unsigned with = 0; with < 2; with++) {
        ioat_rig_write(r, 0, IOAT_CHANCTRL,
                       IOAT_CHANCTRL_INT_DISABLE | (with ? IOAT_CHANCTRL_ERR_INT : 0));
        descriptor(&b, 0, b.to_dma, b.from_dma, 0, 0, 0);
        start(&b, 0, 1);
        settle(&b);
        assert_int_equal(n, with);
        ioat_rig_write(r, 0, IOAT_CHANERR, UINT32_MAX);
    }
    k_irq_free(irq);
}

static void test_chanctrl_error_interrupt(void **unused)
{
    (void)unused;
    both(error_interrupt_body);
}

/* ---- Function-level reset, removal --------------------------------------------------------------- */

static void reset_body(struct ioat_rig *r)
{
    struct bench b = bench_new(r);
    const unsigned cap = k_pci_find_capability(r->pci, PCI_CAP_ID_PCIE, NULL);
    const uint64_t bar = r->pci->bar_base[0];
    set_completion(&b);
    chain(&b, 8, 4096, 0);
    start(&b, 0, 8);
    k_sleep(r->kernel, 4 * K_US);
    k_config_write(r->pci, cap + PCIE_DEVCTL, 2, PCIE_DEVCTL_FLR);
    ioat_rig_fill(r, b.to, 64 * KIB, 50);
    settle(&b);
    assert_true(ioat_rig_holds(r, b.to, 64 * KIB, 50, 0));
    assert_int_equal(ioat_rig_engine(r)->func[0].function.stats.resets, 1);
    /* Enabled again: as after power-on. */
    k_config_write(r->pci, 0x10, 4, (uint32_t)bar);
    k_config_write(r->pci, 0x14, 4, (uint32_t)(bar >> 32));
    k_pci_enable(r->pci);
    assert_int_equal(status(&b), IOAT_CHANSTS_HALTED);
    assert_int_equal(ioat_rig_read(r, 0, IOAT_CHANCMP), 0);
    set_completion(&b);
    start(&b, 0, 8);
    settle(&b);
    assert_true(copied(&b, 0, 8 * 4096));
}

static void test_function_level_reset(void **unused)
{
    (void)unused;
    only("cb3.2", reset_body);
}

static void removal_body(struct ioat_rig *r)
{
    struct bench b = bench_new(r);
    set_completion(&b);
    chain(&b, 8, 4096, 0);
    start(&b, 0, 8);
    k_sleep(r->kernel, 4 * K_US);
    pcie_function_remove(ioat_rig_engine(r)->model, 0);
    k_sleep(r->kernel, 10 * K_US); /* what was on its way */
    ioat_rig_fill(r, b.to, 64 * KIB, 50);
    settle(&b);
    assert_true(ioat_rig_holds(r, b.to, 64 * KIB, 50, 0));
    assert_int_equal(ioat_rig_read(r, 0, IOAT_CHANERR), UINT32_MAX);
}

static void test_removal(void **unused)
{
    (void)unused;
    both(removal_body);
}

/* ---- Timing -------------------------------------------------------------------------------------- */

/* Between the reads of the clock that the engine's own work takes, in an idle host. */
static double copy_ns(struct bench *b, unsigned n, uint32_t bytes)
{
    struct ioat_rig *r = b->rig;
    const uint64_t last = (b->ring_dma + (n - 1) * 64) | IOAT_CHANSTS_IDLE;
    set_completion(b);
    chain(b, n, bytes, 0);
    settle(b);
    start(b, 0, n);
    const uint64_t begin_ps = k_now_ps(r->kernel);
    while (completion(b) != last)
        k_compute(r->kernel, 4); /* 2 ns */
    return (double)(k_now_ps(r->kernel) - begin_ps) / 1e3;
}

/* Another start-up latency, another one engine clock: the difference is what the formula says. */
static double idle_ns;
static void latency_body(struct ioat_rig *r)
{
    struct bench b = bench_new(r);
    copy_ns(&b, 1, 64); /* caches of the IOMMU and DRAM rows are as they will be */
    idle_ns = copy_ns(&b, 1, 64);
}

static void test_unloaded_latency(void **unused)
{
    (void)unused;
    const struct ioat_rig_world base = { .version = "cb3.2",
                                         .settings = "engine_interval_ns = 0;" },
                                later = { .version = "cb3.2",
                                          .settings = "engine_interval_ns = 0;"
                                                      "descriptor_start_ns = 650;" };
    ioat_rig_run(&base, latency_body, NULL);
    const double first_ns = idle_ns;
    ioat_rig_run(&later, latency_body, NULL);
    /* A fetch and a read are a round trip each; descriptor_start lies between them. */
    assert_in_range(idle_ns - first_ns, 498, 502);
    /* Two round trips through the root complex at least, and the start-up. */
    assert_true(first_ns > 150 + 2 * (96 + 96));
    assert_true(first_ns < 1500);
}

struct rate {
    unsigned reads;
    double interval_ns;
    double gbyte_s;
    double read_ns; /* round trip, measured */
};

static void rate_body(struct ioat_rig *r)
{
    struct rate *rate = r->arg;
    struct bench b = bench_new(r);
    copy_ns(&b, 4, 16384);
    const double ns = copy_ns(&b, 4, 16384) - copy_ns(&b, 2, 16384);
    rate->gbyte_s = 2 * 16384 / ns;
}

static void test_saturated_rate(void **unused)
{
    (void)unused;
    struct rate few = { .reads = 4 }, many = { .reads = 8 }, slow = { .reads = 16 };
    const struct ioat_rig_world four = { .version = "cb3.2",
                                         .settings = "reads_in_flight = 4;"
                                                     "descriptor_start_ns = 0;" },
                                eight = { .version = "cb3.2",
                                          .settings = "reads_in_flight = 8;"
                                                      "descriptor_start_ns = 0;" },
                                clock = { .version = "cb3.2",
                                          .settings = "reads_in_flight = 16;"
                                                      "descriptor_start_ns = 0;"
                                                      "engine_interval_ns = 40;" };
    ioat_rig_run(&four, rate_body, &few);
    ioat_rig_run(&eight, rate_body, &many);
    ioat_rig_run(&clock, rate_body, &slow);
    /* Twice the reads in flight, twice the rate: no other bound is near, unless the root complex can
     * remember two stretches of line requests only. */
    assert_true(few.gbyte_s > 0.3 && few.gbyte_s < 1.5);
#ifndef SIM_HOSTILE
    assert_true(many.gbyte_s > 1.85 * few.gbyte_s && many.gbyte_s < 2.05 * few.gbyte_s);
#endif
    /* A line read and a line written per two clocks of 40 ns: 0.8 GB/s. */
    assert_true(slow.gbyte_s > 0.78 && slow.gbyte_s <= 0.801);
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
        cmocka_unit_test(test_chanctrl_attnstatus_intrctrl),
        cmocka_unit_test(test_msi),
        cmocka_unit_test(test_attnstatus_of_several_channels),
        cmocka_unit_test(test_intrdelay_after_rearming),
        cmocka_unit_test(test_chanctrl_error_interrupt),
        cmocka_unit_test(test_function_level_reset),
        cmocka_unit_test(test_removal),
        cmocka_unit_test(test_unloaded_latency),
        cmocka_unit_test(test_saturated_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
