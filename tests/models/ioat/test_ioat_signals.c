/*
 * The DMA engine's interrupts, by the registers of the data sheets; resets and removal; and its
 * timing: unloaded latency as a formula, saturated rate as the bound that follows from reads in
 * flight and from the engine's clock.
 */
#include "tests/models/ioat/ioat_bench.h"

/* ---- Interrupts ------------------------------------------------------------------------------ */

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

/* ---- Function-level reset, removal ----------------------------------------------------------- */

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

/* ---- Timing ---------------------------------------------------------------------------------- */

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

/* Other latencies of the parts: the differences are what the formula says. */
static double idle_ns;
static void latency_body(struct ioat_rig *r)
{
    struct bench b = bench_new(r);
    copy_ns(&b, 1, 64); /* caches of the IOMMU and DRAM rows are as they will be */
    idle_ns = copy_ns(&b, 1, 64);
}

static double latency_ns(const char *settings, const char *root_complex)
{
    const struct ioat_rig_world world = { .version = "cb3.2",
                                          .settings = settings,
                                          .root_complex = root_complex };
    ioat_rig_run(&world, latency_body, NULL);
    return idle_ns;
}

/* Looks are 2 ns apart. */
static void test_unloaded_latency(void **unused)
{
    (void)unused;
    const char *const settings = "engine_interval_ns = 0; descriptor_start_ns = 150;";
    const double ns = latency_ns(settings, "integrated_ns = 60;");
    /* Between fetch and read. */
    assert_in_range(
        latency_ns("engine_interval_ns = 0; descriptor_start_ns = 650;", "integrated_ns = 60;") -
            ns,
        498, 502);
    /* Through the root complex: doorbell, fetch and read both ways, completion right behind the
     * data. */
    assert_in_range(latency_ns(settings, "integrated_ns = 160;") - ns, 598, 602);
    /* The rest is memory: descriptor, line, and what both writes wait for. */
    assert_in_range(ns - 6 * 60 - 150, 50, 250);
}

struct rate {
    unsigned reads;
    double gbyte_s;
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
    /* Twice the reads in flight, nearly twice the rate: more of them meet in a group of banks. Not
     * if the root complex can remember two stretches of line requests only. */
    assert_true(few.gbyte_s > 0.3 && few.gbyte_s < 1.5);
#ifndef SIM_HOSTILE
    assert_true(many.gbyte_s > 1.75 * few.gbyte_s && many.gbyte_s < 2.05 * few.gbyte_s);
#endif
    /* A line read and a line written per two clocks of 40 ns: 0.8 GB/s. */
    assert_true(slow.gbyte_s > 0.78 && slow.gbyte_s <= 0.801);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
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
