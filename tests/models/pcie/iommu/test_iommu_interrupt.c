/* Interrupt remapping and the invalidation queue as the hardware sees it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/iommu_fake.h"

#define ID 0x0310

static int setup(void **state)
{
    struct rig *rig = malloc(sizeof(*rig));
    struct iommu_params params = fake_params();
    iommu_rig_init(rig, &params);
    *state = rig;
    return 0;
}

static int teardown(void **state)
{
    struct rig *rig = *state;
    iommu_rig_release(rig);
    free(rig);
    return 0;
}

static void expect_delivered(struct rig *rig, uint16_t id, uint64_t address, uint32_t data,
                             uint32_t destination, uint8_t vector)
{
    uint32_t to = 0;
    uint8_t with = 0;
    assert_true(iommu_remap_interrupt(rig->iommu, id, address, data, &to, &with));
    assert_int_equal(to, destination);
    assert_int_equal(with, vector);
}

static void expect_blocked(struct rig *rig, uint16_t id, uint64_t address, uint32_t data,
                           enum iommu_fault fault, uint16_t index)
{
    uint32_t to = 77;
    uint8_t with = 77;
    assert_false(iommu_remap_interrupt(rig->iommu, id, address, data, &to, &with));
    assert_int_equal(to, 77);
    assert_int_equal(with, 77);
    uint16_t record_id;
    struct iova info;
    bool write;
    enum iommu_fault reason;
    assert_true(iommu_driver_fault(rig->driver, &record_id, &info, &write, &reason));
    assert_int_equal(record_id, id);
    assert_int_equal(reason, fault);
    assert_int_equal(info.v, (uint64_t)index << 48);
    assert_false(iommu_driver_fault(rig->driver, &record_id, &info, &write, &reason));
}

static uint64_t irte_at(struct rig *rig, unsigned index)
{
    return (iommu_reg_read(rig->iommu, VTD_IRTA, 8) & ~UINT64_C(0xfff)) + 16u * index;
}

static void flush_interrupts(struct rig *rig)
{
    /* Through the driver's queue, once around, so that its own idea of the tail stays right. */
    uint64_t tail = iommu_reg_read(rig->iommu, VTD_IQT, 8);
    uint64_t queue = iommu_reg_read(rig->iommu, VTD_IQA, 8) & ~UINT64_C(0xfff);
    for (unsigned i = 0; i < 256; i++) {
        iommu_rig_poke(rig, queue + tail, VTD_QI_IEC);
        iommu_rig_poke(rig, queue + tail + 8, 0);
        tail = (tail + 16) % PAGE_BYTES;
        iommu_reg_write(rig->iommu, VTD_IQT, 8, tail);
    }
    assert_int_equal(iommu_reg_read(rig->iommu, VTD_IQH, 8), tail);
}

static void off_means_what_it_says(void **state)
{
    struct rig *rig = *state;
    expect_delivered(rig, ID, 0xfee2a000, 0x4051, 0x2a, 0x51);
    assert_int_equal(iommu_rig_stat(rig, "interrupts"), 1);
}

static void remapped(void **state)
{
    struct rig *rig = *state;
    uint64_t address[3];
    uint32_t data[3];
    int index[3];
    for (unsigned i = 0; i < 3; i++) {
        index[i] = iommu_irte_new(rig->driver, (uint16_t)(ID + i), 0x10000 + i, (uint8_t)(0x60 + i),
                                  &address[i], &data[i]);
        assert_true(index[i] >= 0);
        assert_int_equal(address[i] >> 20, 0xfee);
    }
    for (unsigned round = 0; round < 2; round++)
        for (unsigned i = 0; i < 3; i++)
            expect_delivered(rig, (uint16_t)(ID + i), address[i], data[i], 0x10000 + i,
                             (uint8_t)(0x60 + i));
    /* The message of another device, cached or not. */
    expect_blocked(rig, ID + 1, address[0], data[0], IOMMU_FAULT_INTERRUPT_SOURCE,
                   (uint16_t)index[0]);
    flush_interrupts(rig);
    expect_blocked(rig, ID + 1, address[0], data[0], IOMMU_FAULT_INTERRUPT_SOURCE,
                   (uint16_t)index[0]);
    /* Compatibility format. */
    expect_blocked(rig, ID, 0xfee00000, 0x51, IOMMU_FAULT_INTERRUPT_COMPATIBILITY, 0);
    /* Freed: at once, cached though it was. */
    iommu_irte_free(rig->driver, index[1]);
    expect_blocked(rig, ID + 1, address[1], data[1], IOMMU_FAULT_INTERRUPT_NOT_PRESENT,
                   (uint16_t)index[1]);
    expect_delivered(rig, ID, address[0], data[0], 0x10000, 0x60);
    assert_int_equal(iommu_rig_stat(rig, "interrupts_blocked"), 4);
}

static void entries_run_out_and_come_back(void **state)
{
    struct rig *rig = *state;
    uint64_t address;
    uint32_t data;
    uint8_t seen[256] = { 0 };
    for (unsigned i = 0; i < 256; i++) {
        int index = iommu_irte_new(rig->driver, ID, i, (uint8_t)i, &address, &data);
        assert_in_range(index, 0, 255);
        assert_int_equal(seen[index]++, 0);
        expect_delivered(rig, ID, address, data, i, (uint8_t)i);
    }
    assert_true(iommu_irte_new(rig->driver, ID, 0, 0, &address, &data) < 0);
    iommu_irte_free(rig->driver, 100);
    assert_int_equal(iommu_irte_new(rig->driver, ID, 3, 4, &address, &data), 100);
    expect_delivered(rig, ID, address, data, 3, 4);
}

static void bad_requests_and_entries(void **state)
{
    struct rig *rig = *state;
    uint64_t address;
    uint32_t data;
    int index = iommu_irte_new(rig->driver, ID, 5, 0x61, &address, &data);
    uint64_t at = irte_at(rig, (unsigned)index);
    uint64_t lo = iommu_rig_peek(rig, at), hi = iommu_rig_peek(rig, at + 8);
    const struct {
        uint64_t lo, hi;
        enum iommu_fault fault;
    } bad[] = {
        { lo & ~VTD_P, hi, IOMMU_FAULT_INTERRUPT_NOT_PRESENT },
        { lo | 1u << 12, hi, IOMMU_FAULT_INTERRUPT_RESERVED },
        { lo | 1u << 15, hi, IOMMU_FAULT_INTERRUPT_RESERVED }, /* posted */
        { lo | 1u << 24, hi, IOMMU_FAULT_INTERRUPT_RESERVED },
        { lo, hi | 1u << 20, IOMMU_FAULT_INTERRUPT_RESERVED },
        { lo, hi | 3u << 18, IOMMU_FAULT_INTERRUPT_RESERVED }, /* SVT 3 */
        { lo, hi ^ 1, IOMMU_FAULT_INTERRUPT_SOURCE },
    };
    for (size_t i = 0; i < SIM_N_ELEMENTS(bad); i++) {
        iommu_rig_poke(rig, at, bad[i].lo);
        iommu_rig_poke(rig, at + 8, bad[i].hi);
        flush_interrupts(rig);
        expect_blocked(rig, ID, address, data, bad[i].fault, (uint16_t)index);
        /* With fault processing disabled: blocked, no record. */
        iommu_rig_poke(rig, at, bad[i].lo | VTD_FPD);
        flush_interrupts(rig);
        uint32_t to;
        uint8_t with;
        assert_false(iommu_remap_interrupt(rig->iommu, ID, address, data, &to, &with));
        assert_int_equal(iommu_reg_read(rig->iommu, VTD_FSTS, 4) & VTD_FSTS_PPF, 0);
    }
    iommu_rig_poke(rig, at, lo);
    iommu_rig_poke(rig, at + 8, hi);
    flush_interrupts(rig);
    expect_delivered(rig, ID, address, data, 5, 0x61);
    /* Beyond the table: handle 256, handle bit 15, and by sub-handle. */
    expect_blocked(rig, ID, 0xfee00010 | 256u << 5, 0, IOMMU_FAULT_INTERRUPT_INDEX, 256);
    expect_blocked(rig, ID, 0xfee00014, 0, IOMMU_FAULT_INTERRUPT_INDEX, 0x8000);
    expect_blocked(rig, ID, 0xfee00018 | 255u << 5, 1, IOMMU_FAULT_INTERRUPT_INDEX, 256);
    expect_blocked(rig, ID, 0xfee00018, 1u << 16, IOMMU_FAULT_INTERRUPT_REQUEST, 0);
    /* A table outside memory. */
    iommu_reg_write(rig->iommu, VTD_IRTA, 8, UINT64_C(1) << 40 | 7);
    uint32_t status = (uint32_t)iommu_reg_read(rig->iommu, VTD_GSTS, 4);
    iommu_reg_write(rig->iommu, VTD_GCMD, 4,
                    (status & (VTD_GCMD_TE | VTD_GCMD_QIE | VTD_GCMD_IRE)) | VTD_GCMD_SIRTP);
    expect_blocked(rig, ID, 0xfee00010 | 9u << 5, 0, IOMMU_FAULT_INTERRUPT_ACCESS, 9);
}

static void sub_handles_and_source_qualifiers(void **state)
{
    struct rig *rig = *state;
    uint64_t address;
    uint32_t data;
    int first = iommu_irte_new(rig->driver, ID, 1, 0x70, &address, &data);
    int second = iommu_irte_new(rig->driver, ID, 2, 0x71, &address, &data);
    assert_int_equal(second, first + 1);
    /* MSI with several vectors: handle of the first, sub-handle in the data. */
    uint64_t base = 0xfee00018 | (uint64_t)(unsigned)first << 5;
    expect_delivered(rig, ID, base, 0, 1, 0x70);
    expect_delivered(rig, ID, base, 1, 2, 0x71);
    /* SQ: 1 ignores function bit 2, 2 bits 2:1, 3 bits 2:0. */
    const uint16_t ignored[] = { 0, 4, 6, 7 };
    uint64_t at = irte_at(rig, (unsigned)first);
    uint64_t hi = iommu_rig_peek(rig, at + 8);
    for (unsigned sq = 0; sq < 4; sq++) {
        iommu_rig_poke(rig, at + 8, hi | sq << 16);
        flush_interrupts(rig);
        for (uint16_t function = 0; function < 8; function++) {
            if ((function & ~ignored[sq]) == 0)
                expect_delivered(rig, ID | function, base, 0, 1, 0x70);
            else
                expect_blocked(rig, ID | function, base, 0, IOMMU_FAULT_INTERRUPT_SOURCE,
                               (uint16_t)first);
        }
        expect_blocked(rig, ID | 8, base, 0, IOMMU_FAULT_INTERRUPT_SOURCE, (uint16_t)first);
    }
    /* SVT 2: buses 3 to 5; SVT 0: anybody. */
    iommu_rig_poke(rig, at + 8, 2u << 18 | 0x0305);
    flush_interrupts(rig);
    for (uint16_t bus = 2; bus <= 6; bus++) {
        if (bus >= 3 && bus <= 5)
            expect_delivered(rig, (uint16_t)(bus << 8 | 0x7f), base, 0, 1, 0x70);
        else
            expect_blocked(rig, (uint16_t)(bus << 8), base, 0, IOMMU_FAULT_INTERRUPT_SOURCE,
                           (uint16_t)first);
    }
    iommu_rig_poke(rig, at + 8, 0);
    flush_interrupts(rig);
    expect_delivered(rig, 0xffff, base, 0, 1, 0x70);
}

/* Eight-bit destinations, compatibility messages let through: what software may choose. */
static void legacy_mode(void **state)
{
    struct rig *rig = *state;
    uint64_t address;
    uint32_t data;
    int index = iommu_irte_new(rig->driver, ID, 0, 0x61, &address, &data);
    uint64_t table = iommu_reg_read(rig->iommu, VTD_IRTA, 8);
    iommu_reg_write(rig->iommu, VTD_IRTA, 8, table & ~VTD_IRTA_EIME);
    uint32_t command = VTD_GCMD_TE | VTD_GCMD_QIE | VTD_GCMD_IRE | VTD_GCMD_CFI;
    iommu_reg_write(rig->iommu, VTD_GCMD, 4, command | VTD_GCMD_SIRTP);
    uint64_t at = irte_at(rig, (unsigned)index);
    uint64_t lo = iommu_rig_peek(rig, at);
    iommu_rig_poke(rig, at, lo | UINT64_C(0x2b) << 40);
    flush_interrupts(rig);
    expect_delivered(rig, ID, address, data, 0x2b, 0x61);
    expect_delivered(rig, ID, 0xfee2a000, 0x51, 0x2a, 0x51);
    iommu_rig_poke(rig, at, lo | UINT64_C(1) << 32);
    flush_interrupts(rig);
    expect_blocked(rig, ID, address, data, IOMMU_FAULT_INTERRUPT_RESERVED, (uint16_t)index);
    /* In extended mode compatibility messages never pass. */
    iommu_reg_write(rig->iommu, VTD_IRTA, 8, table);
    iommu_reg_write(rig->iommu, VTD_GCMD, 4, command | VTD_GCMD_SIRTP);
    expect_blocked(rig, ID, 0xfee2a000, 0x51, IOMMU_FAULT_INTERRUPT_COMPATIBILITY, 0);
    iommu_reg_write(rig->iommu, VTD_IRTA, 8, table & ~VTD_IRTA_EIME);
    iommu_reg_write(rig->iommu, VTD_GCMD, 4, command | VTD_GCMD_SIRTP);
    expect_delivered(rig, ID, 0xfee2a000, 0x51, 0x2a, 0x51);
    iommu_reg_write(rig->iommu, VTD_GCMD, 4, command & ~VTD_GCMD_CFI);
    expect_blocked(rig, ID, 0xfee2a000, 0x51, IOMMU_FAULT_INTERRUPT_COMPATIBILITY, 0);
}

/* Entries are cached until invalidated, one by one or by index range. */
static void entry_cache(void **state)
{
    struct rig *rig = *state;
    uint64_t address[4];
    uint32_t data;
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(iommu_irte_new(rig->driver, ID, i, 0x40, &address[i], &data), i);
        expect_delivered(rig, ID, address[i], data, i, 0x40);
    }
    for (unsigned i = 0; i < 4; i++)
        iommu_rig_poke(rig, irte_at(rig, i),
                       iommu_rig_peek(rig, irte_at(rig, i)) | UINT64_C(0x50) << 32);
    for (unsigned i = 0; i < 4; i++)
        expect_delivered(rig, ID, address[i], data, i, 0x40);
    /* Indices 2 and 3 (mask 1), in a queue of our own. */
    uint64_t tail = iommu_reg_read(rig->iommu, VTD_IQT, 8);
    uint64_t queue = iommu_reg_read(rig->iommu, VTD_IQA, 8) & ~UINT64_C(0xfff);
    iommu_rig_poke(rig, queue + tail,
                   VTD_QI_IEC | VTD_QI_IEC_G | UINT64_C(1) << 27 | UINT64_C(2) << 32);
    iommu_rig_poke(rig, queue + tail + 8, 0);
    iommu_reg_write(rig->iommu, VTD_IQT, 8, tail + 16);
    for (unsigned i = 0; i < 4; i++)
        expect_delivered(rig, ID, address[i], data, i >= 2 ? i | 0x50 : i, 0x40);
}

/* ---- The queue ------------------------------------------------------------------------------- */

static void put(struct rig *rig, uint64_t queue, unsigned slot, uint64_t lo, uint64_t hi)
{
    iommu_rig_poke(rig, queue + 16 * slot, lo);
    iommu_rig_poke(rig, queue + 16 * slot + 8, hi);
}

static void queue_stops_at_errors(void **state)
{
    struct rig *rig = *state;
    struct iommu *iommu = rig->iommu;
    const uint64_t queue = FAKE_BYTES - 4 * PAGE_BYTES, status = FAKE_BYTES - PAGE_BYTES;
    const uint64_t wait = VTD_QI_WAIT | VTD_QI_WAIT_SW;
    const struct {
        uint64_t lo, hi;
    } bad[] = {
        { 0, 0 },                                               /* no such type */
        { 3, 0 },                                               /* device TLB: none */
        { VTD_QI_CONTEXT, 0 },                                  /* granularity 0 */
        { VTD_QI_IOTLB, 0 },                                    /* likewise */
        { VTD_QI_IOTLB | VTD_SELECTIVE << 4, IOMMU_READ | 63 }, /* mask too large */
        { wait, UINT64_C(1) << 50 },                            /* status outside memory */
    };
    for (size_t i = 0; i < SIM_N_ELEMENTS(bad); i++) {
        iommu_reg_write(iommu, VTD_GCMD, 4, 0);
        iommu_reg_write(iommu, VTD_IQT, 8, 0);
        iommu_reg_write(iommu, VTD_IQA, 8, queue);
        iommu_reg_write(iommu, VTD_GCMD, 4, VTD_GCMD_QIE);
        put(rig, queue, 0, wait | UINT64_C(1) << 32, status);
        put(rig, queue, 1, bad[i].lo, bad[i].hi);
        put(rig, queue, 2, wait | UINT64_C(3) << 32, status);
        iommu_reg_write(iommu, VTD_IQT, 8, 3 * 16);
        assert_int_equal(iommu_reg_read(iommu, VTD_IQH, 8), 16);
        assert_int_equal(iommu_reg_read(iommu, VTD_FSTS, 4), VTD_FSTS_IQE);
        assert_int_equal(iommu_rig_peek(rig, status), 1);
        /* More work does not help; a better descriptor and clearing the error does. */
        put(rig, queue, 3, wait | UINT64_C(4) << 32, status);
        iommu_reg_write(iommu, VTD_IQT, 8, 4 * 16);
        assert_int_equal(iommu_rig_peek(rig, status), 1);
        put(rig, queue, 1, wait | UINT64_C(2) << 32, status);
        iommu_reg_write(iommu, VTD_FSTS, 4, VTD_FSTS_IQE);
        assert_int_equal(iommu_reg_read(iommu, VTD_FSTS, 4), 0);
        assert_int_equal(iommu_reg_read(iommu, VTD_IQH, 8), 64);
        assert_int_equal(iommu_rig_peek(rig, status), 4);
    }
    /* A tail beyond the queue. */
    iommu_reg_write(iommu, VTD_IQT, 8, 256 * 16);
    assert_int_equal(iommu_reg_read(iommu, VTD_FSTS, 4), VTD_FSTS_IQE);
    iommu_reg_write(iommu, VTD_GCMD, 4, 0);
    iommu_reg_write(iommu, VTD_FSTS, 4, VTD_FSTS_IQE);
}

static void queue_wraps_and_waits(void **state)
{
    struct rig *rig = *state;
    struct iommu *iommu = rig->iommu;
    const uint64_t queue = FAKE_BYTES - 4 * PAGE_BYTES, status = FAKE_BYTES - PAGE_BYTES;
    iommu_reg_write(iommu, VTD_GCMD, 4, 0);
    iommu_reg_write(iommu, VTD_IQT, 8, 0);
    iommu_reg_write(iommu, VTD_IQA, 8, queue | 1); /* two pages, 512 slots */
    iommu_reg_write(iommu, VTD_GCMD, 4, VTD_GCMD_QIE);
    iommu_reg_write(iommu, VTD_IEDATA, 4, 0x52);
    iommu_reg_write(iommu, VTD_IEADDR, 4, 0xfee02000);
    for (unsigned i = 0; i < 1100; i++) {
        put(rig, queue, i % 512, VTD_QI_WAIT | VTD_QI_WAIT_SW | (uint64_t)i << 32,
            status + i % 8 * 4);
        iommu_reg_write(iommu, VTD_IQT, 8, (i + 1) % 512 * 16);
        assert_int_equal(
            (uint32_t)(iommu_rig_peek(rig, status + (i % 8 & ~1u) * 4) >> (i % 2 * 32)), i);
    }
    /* Interrupt on completion: pending while masked, sent when unmasked, once until served. */
    put(rig, queue, 1100 % 512, VTD_QI_WAIT | VTD_QI_WAIT_IF, 0);
    put(rig, queue, 1101 % 512, VTD_QI_WAIT | VTD_QI_WAIT_IF, 0);
    iommu_reg_write(iommu, VTD_IQT, 8, 1101 % 512 * 16);
    assert_int_equal(rig->fake.n_messages, 0);
    iommu_reg_write(iommu, VTD_IECTL, 4, 0);
    assert_int_equal(rig->fake.n_messages, 1);
    assert_int_equal(rig->fake.message_data, 0x52);
    iommu_reg_write(iommu, VTD_IQT, 8, 1102 % 512 * 16);
    assert_int_equal(rig->fake.n_messages, 1);
    assert_int_equal(iommu_reg_read(iommu, VTD_ICS, 4), VTD_ICS_IWC);
    iommu_reg_write(iommu, VTD_ICS, 4, VTD_ICS_IWC);
    put(rig, queue, 1102 % 512, VTD_QI_WAIT | VTD_QI_WAIT_IF, 0);
    iommu_reg_write(iommu, VTD_IQT, 8, 1103 % 512 * 16);
    assert_int_equal(rig->fake.n_messages, 2);
    iommu_reg_write(iommu, VTD_GCMD, 4, 0);
}

/* For the tests that take the queue away from the driver: it has nothing to undo through it. */
static int teardown_bare(void **state)
{
    struct rig *rig = *state;
    iommu_reg_write(rig->iommu, VTD_GCMD, 4, 0);
    return teardown(state);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(off_means_what_it_says),
        TEST(remapped),
        TEST(entries_run_out_and_come_back),
        TEST(bad_requests_and_entries),
        TEST(sub_handles_and_source_qualifiers),
        TEST(legacy_mode),
        TEST(entry_cache),
        cmocka_unit_test_setup_teardown(queue_stops_at_errors, setup, teardown_bare),
        cmocka_unit_test_setup_teardown(queue_wraps_and_waits, setup, teardown_bare),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
