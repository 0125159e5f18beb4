/*
 * Every register of the DMA engine, by a table: offset, width, what can be written, value after
 * reset, and where that is from. What reading or writing does beside is the matter of the tests
 * that a row names.
 *
 * E7 v2: Intel Xeon E7 v2 data sheet, volume two (329595). Of its chapters only 14.4.18 to 14.4.20,
 * 14.5.11, 14.5.12 (bits 15:4) and the last page of 14.5 could be had; of the 5000X MCH data sheet
 * (313070) none of the DMA engine's. The rest is from Linux: ioatdma_registers.h of 2.6.23 (1.2 and
 * 2.0), registers.h (3.x).
 */
#include "tests/models/ioat/ioat_bench.h"

#define V1   1u
#define V3   2u
#define BOTH (V1 | V3)
#define ALL  UINT64_MAX

struct row {
    const char *name;
    unsigned versions;
    uint32_t offset; /* of channel registers: within the channel */
    unsigned bits;
    uint64_t writable; /* bits that read as they were written */
    uint64_t reset;
    bool acts; /* writing does something: no write here */
    const char *from;
};

static const struct row general[] = {
    { "CHANCNT", V1, 0x00, 8, 0, 4, false, "Linux" },
    { "CHANCNT", V3, 0x00, 8, 0, 1, false, "Linux; 14.5.12: one channel" },
    { "XFERCAP", BOTH, 0x01, 8, 0, 20, false, "Linux; C5500, p. 310: 1 MiB" },
    { "GENCTRL", BOTH, 0x02, 8, 0x01, 0, false, "Linux: DEBUG_EN" },
    { "INTRCTRL", BOTH, 0x03, 8, 0, 0, true,
      "Linux; test_intrctrl_..., test_chanctrl_attnstatus_..." },
    { "ATTNSTATUS", BOTH, 0x04, 32, 0, 0, false, "Linux; test_attnstatus_..." },
    { "CBVER", V1, 0x08, 8, 0, 0x12, false, "Linux" },
    { "CBVER", V3, 0x08, 8, 0, 0x32, false, "Linux" },
    { "PERPORTOFFSET", BOTH, 0x0a, 16, 0, 0, false, "Linux" },
    { "INTRDELAY", V3, 0x0c, 16, 0x3fff, 0x8000, false, "Linux; test_intrdelay_..." },
    { "CS_STATUS", V3, 0x0e, 16, 0, 0, false, "Linux: device status" },
    { "DMACAPABILITY", V3, 0x10, 32, 0, 0x10, false, "Linux: DCA" },
    { "CBPRIO", V3, 0x40, 8, 0, 0, false, "E7 v2, 14.5.11" },
};

static const struct row channel[] = {
    { "CHANCTRL", V1, 0x00, 16, 0xf03c, 0, false, "Linux; test_chanctrl_..." },
    { "CHANCTRL", V3, 0x00, 16, 0x023c, 0, false, "E7 v2, 14.5.12; test_chanctrl_..." },
    { "DMA_COMP", V1, 0x02, 16, 0, 1, false, "Linux" },
    { "DMA_COMP", V3, 0x02, 16, 0, 2, false, "Linux" },
    { "CHANCMD", V3, 0x04, 8, 0, 0, true, "Linux; erratum CF5; test_chancmd_..." },
    { "DMACOUNT", V3, 0x06, 16, 0, 0, true, "Linux; test_dmacount_..." },
    { "CHANSTS", V1, 0x04, 64, 0, 3, false, "Linux; test_chansts_..." },
    { "CHANSTS", V3, 0x08, 64, 0, 3, false, "Linux; test_chansts_..." },
    { "CHAINADDR", V1, 0x0c, 64, ALL, 0, false, "Linux; test_chancmd_..." },
    { "CHANCMD", V1, 0x14, 8, 0, 0, true, "Linux; test_chancmd_..." },
    { "CHANCMP", BOTH, 0x18, 64, ALL, 0, false, "Linux; test_chansts_..." },
    { "CDAR", BOTH, 0x20, 64, 0, 0, false, "Linux; test_chanerr_by_cause" },
    { "CHANERR", BOTH, 0x28, 32, 0, 0, false, "Linux; test_chanerr_..." },
    { "CHANERRMSK", V1, 0x2c, 32, 0x1f3f, 0, false, "Linux" },
    { "CHANERRMSK", V3, 0x2c, 32, 0x41f3f, 0, false, "Linux" },
    { "DCACTRL", V3, 0x30, 32, 0xffff, 0, false, "Linux: target CPU" },
    /* Last, since a new chain makes the channel idle. */
    { "CHAINADDR", V3, 0x10, 64, ALL, 0, false, "Linux; test_dmacount_..." },
};

static uint64_t mask_of(const struct row *row)
{
    return row->bits == 64 ? UINT64_MAX : (UINT64_C(1) << row->bits) - 1;
}

/* The register out of the double words that hold it. */
static uint64_t get(struct ioat_rig *r, const struct row *row, uint64_t base)
{
    const uint64_t at = base + row->offset;
    uint64_t value = k_readl(r->pci, 0, at & ~UINT64_C(3));
    if (row->bits == 64)
        value |= (uint64_t)k_readl(r->pci, 0, at + 4) << 32;
    return value >> 8 * (at & 3) & mask_of(row);
}

/* The other registers of its double word get zeros. */
static void put(struct ioat_rig *r, const struct row *row, uint64_t base, uint64_t value)
{
    const uint64_t at = base + row->offset;
    k_writel(r->pci, 0, at & ~UINT64_C(3), (uint32_t)((value & mask_of(row)) << 8 * (at & 3)));
    if (row->bits == 64)
        k_writel(r->pci, 0, at + 4, (uint32_t)(value >> 32));
}

static void expect(struct ioat_rig *r, const struct row *row, uint64_t base, uint64_t value)
{
    const uint64_t found = get(r, row, base);
    if (found != value)
        fail_msg("%s at %#llx (%s): %#llx, expected %#llx", row->name,
                 (unsigned long long)(base + row->offset), row->from, (unsigned long long)found,
                 (unsigned long long)value);
}

static void check_rows(struct ioat_rig *r, const struct row *row, unsigned n, uint64_t base)
{
    const unsigned version = ioat_is_v1(ioat_rig_engine(r)) ? V1 : V3;
    for (unsigned i = 0; i < n; i++)
        if (row[i].versions & version)
            expect(r, &row[i], base, row[i].reset);
    for (unsigned i = 0; i < n; i++) {
        if (!(row[i].versions & version) || row[i].acts)
            continue;
        /* Without IN_USE and INT_DISABLE of CHANCTRL, which change when they are read or
         * written. */
        const uint64_t ones = strcmp(row[i].name, "CHANCTRL") == 0 ? UINT64_C(0xfefe) : UINT64_MAX;
        const uint64_t fixed = row[i].reset & ~row[i].writable;
        put(r, &row[i], base, ones);
        expect(r, &row[i], base, fixed | row[i].writable);
        put(r, &row[i], base, 0);
        expect(r, &row[i], base, fixed);
    }
}

static bool in_table(const struct row *row, unsigned n, unsigned version, uint64_t byte)
{
    for (unsigned i = 0; i < n; i++)
        if ((row[i].versions & version) && byte - row[i].offset < row[i].bits / 8)
            return true;
    return false;
}

/* Bytes that no row has: zeros, whatever is written. Double words that hold a register are written,
 * too, unless that does something. */
static void check_rest(struct ioat_rig *r, const struct row *row, unsigned n, uint64_t base,
                       unsigned bytes)
{
    const unsigned version = ioat_is_v1(ioat_rig_engine(r)) ? V1 : V3;
    for (unsigned at = 0; at < bytes; at += 4) {
        uint32_t reserved = 0;
        for (unsigned i = 0; i < 4; i++)
            if (!in_table(row, n, version, at + i))
                reserved |= 0xffu << 8 * i;
        if (reserved == UINT32_MAX)
            k_writel(r->pci, 0, base + at, UINT32_MAX);
        assert_int_equal(k_readl(r->pci, 0, base + at) & reserved, 0);
    }
}

static void table_body(struct ioat_rig *r)
{
    const unsigned n = ioat_rig_engine(r)->params.n_channels;
    check_rows(r, general, SIM_N_ELEMENTS(general), 0);
    check_rest(r, general, SIM_N_ELEMENTS(general), 0, IOAT_CHANNEL(0));
    for (unsigned c = 0; c < n; c++) {
        check_rows(r, channel, SIM_N_ELEMENTS(channel), IOAT_CHANNEL(c));
        check_rest(r, channel, SIM_N_ELEMENTS(channel), IOAT_CHANNEL(c), IOAT_CHANNEL_BYTES);
    }
}

static void test_every_register(void **unused)
{
    (void)unused;
    both(table_body);
}

/* ---- Configuration space, MSI-X -------------------------------------------------------------- */

/* E7 v2, 14.4.18 to 14.4.20: one vector, its table at 8 KiB of BAR 0, its pending bit at 12 KiB. */
static void msix_body(struct ioat_rig *r)
{
    const unsigned cap = k_pci_find_capability(r->pci, PCI_CAP_ID_MSIX, NULL);
    const uint32_t control = k_config_read(r->pci, cap + 2, 2);
    assert_int_equal(control & 0x7ff, 0);
    k_config_write(r->pci, cap + 2, 2, 0xffff);
    assert_int_equal(k_config_read(r->pci, cap + 2, 2), 0xc000); /* enable, function mask */
    k_config_write(r->pci, cap + 2, 2, 0);
    assert_int_equal(k_config_read(r->pci, cap + 4, 4), 0x2000);
    assert_int_equal(k_config_read(r->pci, cap + 8, 4), 0x3000);
    assert_int_equal(k_readl(r->pci, 0, 0x2000 + 12), 1); /* masked */
    k_writel(r->pci, 0, 0x3000, 1);
    assert_int_equal(k_readl(r->pci, 0, 0x3000), 0);
}

static void test_msix_capability(void **unused)
{
    (void)unused;
    only("cb3.2", msix_body);
}

/* E7 v2, last page of 14.5, "Pending Bits": set while the vector is masked, cleared with the
 * message, or when software rearms the channel. */
static void pending_body(struct ioat_rig *r)
{
    struct bench b = bench_new(r);
    unsigned n = 0;
    struct k_irq *irq;
    assert_int_equal(k_irq_request(r->pci, 0, 1, count_interrupt, &n, &irq), 0);
    k_writel(r->pci, 0, IOAT_GENERAL,
             (uint32_t)(IOAT_INTRCTRL_MASTER_ENABLE | IOAT_INTRCTRL_MSIX_VECTORS) << 24);
    chain(&b, 1, 64, IOAT_CONTROL_INTERRUPT);
    for (unsigned rearm = 0; rearm < 2; rearm++) {
        ioat_rig_write(r, 0, IOAT_CHANCTRL, IOAT_CHANCTRL_INT_DISABLE);
        k_writel(r->pci, 0, 0x2000 + 12, 1);
        start(&b, 0, 1);
        settle(&b);
        assert_int_equal(n, rearm);
        assert_int_equal(k_readl(r->pci, 0, 0x3000), 1);
        if (rearm)
            ioat_rig_write(r, 0, IOAT_CHANCTRL, IOAT_CHANCTRL_INT_DISABLE);
        assert_int_equal(k_readl(r->pci, 0, 0x3000), !rearm);
        k_writel(r->pci, 0, 0x2000 + 12, 0);
        settle(&b);
        assert_int_equal(n, 1);
        assert_int_equal(k_readl(r->pci, 0, 0x3000), 0);
    }
    k_irq_free(irq);
}

static void test_pending_bits(void **unused)
{
    (void)unused;
    only("cb3.2", pending_body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_register),
        cmocka_unit_test(test_msix_capability),
        cmocka_unit_test(test_pending_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
