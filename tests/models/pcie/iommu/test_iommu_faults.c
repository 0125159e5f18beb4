/* Every reason for a fault with its record, permissions, recording registers, events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/iommu_fake.h"

#define ID   0x4142
#define RW   (IOMMU_READ | IOMMU_WRITE)
#define KIB  UINT64_C(1024)
#define MIB  (UINT64_C(1) << 20)
#define GIB  (UINT64_C(1) << 30)
#define HOST (UINT64_C(1) << 40)
#define IOVA (5 * GIB)

static int setup(void **state)
{
    struct rig *rig = malloc(sizeof(*rig));
    struct iommu_params params = fake_params();
    iommu_rig_init(rig, &params);
    struct iommu_domain *domain = iommu_domain_new(rig->driver);
    assert_true(iommu_domain_attach(domain, ID));
    assert_int_equal(
        iommu_map(domain, (struct iova){ IOVA }, (struct hpa){ HOST }, 8 * KIB, 4 * KIB, RW), 0);
    assert_int_equal(iommu_map(domain, (struct iova){ IOVA + 2 * MIB },
                               (struct hpa){ HOST + 2 * MIB }, 2 * MIB, 2 * MIB, RW),
                     0);
    assert_int_equal(
        iommu_map(domain, (struct iova){ IOVA + GIB }, (struct hpa){ HOST + GIB }, GIB, GIB, RW),
        0);
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

/* Refused, nothing handed out, and this record. */
static void expect_fault(struct rig *rig, uint16_t id, uint64_t iova, bool write,
                         enum iommu_fault fault)
{
    struct iommu_translation t = iommu_rig_translate_later(rig, id, iova, write);
    assert_int_equal(t.fault, fault);
    assert_int_equal(t.hpa.v, 0);
    uint16_t record_id;
    struct iova record_iova;
    bool record_write;
    enum iommu_fault reason;
    assert_true(iommu_driver_fault(rig->driver, &record_id, &record_iova, &record_write, &reason));
    assert_int_equal(record_id, id);
    assert_int_equal(record_iova.v, iova & ~UINT64_C(0xfff));
    assert_int_equal(record_write, write);
    assert_int_equal(reason, fault);
    assert_false(iommu_driver_fault(rig->driver, &record_id, &record_iova, &record_write, &reason));
}

static void expect_ok(struct rig *rig, uint64_t iova, bool write)
{
    struct iommu_translation t = iommu_rig_translate_later(rig, ID, iova, write);
    assert_int_equal(t.fault, IOMMU_OK);
    assert_int_equal(t.hpa.v, HOST + (iova - IOVA));
    assert_int_equal(iommu_reg_read(rig->iommu, VTD_FSTS, 4) & ~VTD_FSTS_FRI, 0);
}

/* Puts value into memory, invalidates all, expects the fault; puts the old value back and expects
 * that all is well again. */
static void expect_bad_entry(struct rig *rig, uint64_t at, uint64_t value, uint64_t iova,
                             enum iommu_fault fault)
{
    uint64_t before = iommu_rig_peek(rig, at);
    iommu_rig_poke(rig, at, value);
    iommu_rig_flush(rig);
    bool write = fault == IOMMU_FAULT_WRITE_DENIED;
    expect_fault(rig, ID, iova, write, fault);
    expect_fault(rig, ID, iova, write, fault); /* nothing bad was cached */
    iommu_rig_poke(rig, at, before);
    iommu_rig_flush(rig);
    expect_ok(rig, iova, write);
}

static void root_faults(void **state)
{
    struct rig *rig = *state;
    uint64_t root = iommu_reg_read(rig->iommu, VTD_RTADDR, 8) + 16 * (ID >> 8);
    uint64_t entry = iommu_rig_peek(rig, root);
    expect_fault(rig, 0x0500, 0x1234, false, IOMMU_FAULT_ROOT_NOT_PRESENT);
    expect_bad_entry(rig, root, entry & ~VTD_P, IOVA, IOMMU_FAULT_ROOT_NOT_PRESENT);
    expect_bad_entry(rig, root, entry | 1u << 5, IOVA, IOMMU_FAULT_ROOT_RESERVED);
    expect_bad_entry(rig, root + 8, 1, IOVA, IOMMU_FAULT_ROOT_RESERVED);
    expect_bad_entry(rig, root, (GIB | VTD_P), IOVA, IOMMU_FAULT_CONTEXT_ACCESS);
    /* A root table outside memory. */
    uint64_t table = iommu_reg_read(rig->iommu, VTD_RTADDR, 8);
    iommu_reg_write(rig->iommu, VTD_RTADDR, 8, GIB);
    expect_ok(rig, IOVA, false); /* not latched yet */
    iommu_reg_write(rig->iommu, VTD_GCMD, 4, VTD_GCMD_TE | VTD_GCMD_QIE | VTD_GCMD_SRTP);
    iommu_rig_flush(rig);
    expect_fault(rig, ID, IOVA, true, IOMMU_FAULT_ROOT_ACCESS);
    iommu_reg_write(rig->iommu, VTD_RTADDR, 8, table);
    iommu_reg_write(rig->iommu, VTD_GCMD, 4, VTD_GCMD_TE | VTD_GCMD_QIE | VTD_GCMD_SRTP);
    expect_ok(rig, IOVA, false);
}

static void context_faults(void **state)
{
    struct rig *rig = *state;
    uint64_t at = iommu_rig_context(rig, ID);
    uint64_t lo = iommu_rig_peek(rig, at), hi = iommu_rig_peek(rig, at + 8);
    expect_fault(rig, ID + 1, 0x1234, true, IOMMU_FAULT_CONTEXT_NOT_PRESENT);
    expect_bad_entry(rig, at, lo & ~VTD_P, IOVA, IOMMU_FAULT_CONTEXT_NOT_PRESENT);
    expect_bad_entry(rig, at, lo | 1u << 4, IOVA, IOMMU_FAULT_CONTEXT_RESERVED);
    expect_bad_entry(rig, at + 8, hi | 1u << 7, IOVA, IOMMU_FAULT_CONTEXT_RESERVED);
    expect_bad_entry(rig, at + 8, hi | 1u << 24, IOVA, IOMMU_FAULT_CONTEXT_RESERVED);
    expect_bad_entry(rig, at, lo | 1u << 2, IOVA, IOMMU_FAULT_CONTEXT_INVALID); /* TT 1 */
    expect_bad_entry(rig, at, lo | 3u << 2, IOVA, IOMMU_FAULT_CONTEXT_INVALID);
    expect_bad_entry(rig, at + 8, (hi & ~UINT64_C(7)) | 3, IOVA, IOMMU_FAULT_CONTEXT_INVALID);
    expect_bad_entry(rig, at + 8, hi & ~UINT64_C(7), IOVA, IOMMU_FAULT_CONTEXT_INVALID);
    /* Bits 6:3 are ignored. */
    iommu_rig_poke(rig, at + 8, hi | 0x78);
    iommu_rig_flush(rig);
    expect_ok(rig, IOVA, false);
}

static void address_width(void **state)
{
    struct rig *rig = *state;
    expect_fault(rig, ID, UINT64_C(1) << 48, false, IOMMU_FAULT_ADDRESS_WIDTH);
    expect_fault(rig, ID, UINT64_MAX, true, IOMMU_FAULT_ADDRESS_WIDTH);
    expect_fault(rig, ID, (UINT64_C(1) << 48) - 1, true, IOMMU_FAULT_WRITE_DENIED);
    /* The context entry's width, not only the hardware's: three levels. */
    uint64_t at = iommu_rig_context(rig, ID);
    uint64_t hi = iommu_rig_peek(rig, at + 8);
    iommu_rig_poke(rig, at + 8, (hi & ~UINT64_C(7)) | 1);
    iommu_rig_flush(rig);
    expect_fault(rig, ID, UINT64_C(1) << 39, false, IOMMU_FAULT_ADDRESS_WIDTH);
    iommu_rig_poke(rig, at + 8, hi);
    iommu_rig_flush(rig);
    /* Pass-through is bounded too. */
    assert_true(iommu_attach_pass_through(rig->driver, ID + 1));
    assert_int_equal(iommu_rig_translate_later(rig, ID + 1, HOST, true).fault, IOMMU_OK);
    expect_fault(rig, ID + 1, UINT64_C(1) << 48, true, IOMMU_FAULT_ADDRESS_WIDTH);
}

static void paging_faults(void **state)
{
    struct rig *rig = *state;
    for (unsigned level = 1; level <= 4; level++) {
        uint64_t at = iommu_rig_entry(rig, ID, IOVA, level);
        uint64_t entry = iommu_rig_peek(rig, at);
        expect_bad_entry(rig, at, entry & ~VTD_PTE_RW, IOVA, IOMMU_FAULT_READ_DENIED);
        expect_bad_entry(rig, at, entry & ~VTD_PTE_RW, IOVA, IOMMU_FAULT_WRITE_DENIED);
        /* Reserved bits matter only in entries that are present. */
        expect_bad_entry(rig, at, (entry & ~VTD_PTE_RW) | VTD_PTE_TM | VTD_PTE_PS, IOVA,
                         IOMMU_FAULT_READ_DENIED);
        if (level > 1)
            expect_bad_entry(rig, at, GIB | VTD_PTE_RW, IOVA, IOMMU_FAULT_TABLE_INVALID);
    }
    uint64_t pte = iommu_rig_entry(rig, ID, IOVA, 1), pml4e = iommu_rig_entry(rig, ID, IOVA, 4);
    expect_bad_entry(rig, pte, iommu_rig_peek(rig, pte) | VTD_PTE_TM, IOVA,
                     IOMMU_FAULT_RESERVED_BIT);
    expect_bad_entry(rig, pml4e, iommu_rig_peek(rig, pml4e) | VTD_PTE_PS, IOVA,
                     IOMMU_FAULT_RESERVED_BIT);
    uint64_t pde = iommu_rig_entry(rig, ID, IOVA + 2 * MIB, 2);
    expect_bad_entry(rig, pde, iommu_rig_peek(rig, pde) | 1u << 20, IOVA + 2 * MIB,
                     IOMMU_FAULT_RESERVED_BIT);
    uint64_t pdpe = iommu_rig_entry(rig, ID, IOVA + GIB, 3);
    expect_bad_entry(rig, pdpe, iommu_rig_peek(rig, pdpe) | 1u << 29, IOVA + GIB,
                     IOMMU_FAULT_RESERVED_BIT);
    /* Unmapped neighbours. */
    expect_fault(rig, ID, IOVA + 8 * KIB, false, IOMMU_FAULT_READ_DENIED);
    expect_fault(rig, ID, IOVA - 1, true, IOMMU_FAULT_WRITE_DENIED);
    expect_fault(rig, ID, 0, false, IOMMU_FAULT_READ_DENIED);
}

/* All combinations at all levels: what is allowed is the AND, on a walk, with paging-structure
 * caches, and on a hit. */
static void permissions_are_the_and(void **state)
{
    struct rig *rig = *state;
    uint64_t at[4], entry[4];
    for (unsigned i = 0; i < 4; i++) {
        at[i] = iommu_rig_entry(rig, ID, IOVA, i + 1);
        entry[i] = iommu_rig_peek(rig, at[i]) & ~VTD_PTE_RW;
    }
    for (unsigned mix = 0; mix < 256; mix++) {
        uint64_t allowed = VTD_PTE_RW;
        for (unsigned i = 0; i < 4; i++) {
            iommu_rig_poke(rig, at[i], entry[i] | (mix >> 2 * i & 3));
            allowed &= mix >> 2 * i & 3;
        }
        iommu_rig_flush(rig);
        for (unsigned round = 0; round < 3; round++)
            for (unsigned write = 0; write < 2; write++) {
                /* The second round hits the IOTLB, the third uses the table caches. */
                uint64_t iova = IOVA + (round == 2 ? 4 * KIB : 0);
                if (round == 2)
                    iommu_rig_poke(rig, at[0] + 8, (HOST + 4 * KIB) | (mix & 3));
                if ((allowed & (write != 0 ? VTD_PTE_W : VTD_PTE_R)) != 0)
                    expect_ok(rig, iova, write);
                else
                    expect_fault(rig, ID, iova, write,
                                 write != 0 ? IOMMU_FAULT_WRITE_DENIED : IOMMU_FAULT_READ_DENIED);
            }
    }
}

static void driver_permissions(void **state)
{
    struct rig *rig = *state;
    struct iommu_domain *domain = iommu_domain_new(rig->driver);
    const uint16_t id = 0x0700;
    assert_true(iommu_domain_attach(domain, id));
    const unsigned permissions[] = { IOMMU_READ, IOMMU_WRITE, RW };
    for (unsigned i = 0; i < 3; i++) {
        uint64_t iova = i * 4 * KIB;
        assert_int_equal(iommu_map(domain, (struct iova){ iova }, (struct hpa){ HOST + iova },
                                   4 * KIB, 4 * KIB, permissions[i]),
                         0);
        for (unsigned write = 0; write < 2; write++) {
            enum iommu_fault fault = iommu_rig_translate_later(rig, id, iova, write).fault;
            if ((permissions[i] & (write != 0 ? IOMMU_WRITE : IOMMU_READ)) != 0)
                assert_int_equal(fault, IOMMU_OK);
            else
                assert_int_equal(fault,
                                 write != 0 ? IOMMU_FAULT_WRITE_DENIED : IOMMU_FAULT_READ_DENIED);
        }
    }
}

static void fault_processing_disable(void **state)
{
    struct rig *rig = *state;
    uint64_t at = iommu_rig_context(rig, ID);
    uint64_t lo = iommu_rig_peek(rig, at);
    iommu_rig_poke(rig, at, lo | VTD_FPD);
    iommu_rig_flush(rig);
    for (unsigned i = 0; i < 2; i++) /* by a walk with and without the context cached */
        assert_int_equal(iommu_rig_translate_later(rig, ID, 0, false).fault,
                         IOMMU_FAULT_READ_DENIED);
    assert_int_equal(iommu_rig_translate_later(rig, ID, UINT64_MAX, false).fault,
                     IOMMU_FAULT_ADDRESS_WIDTH);
    iommu_rig_poke(rig, at, (lo | VTD_FPD) & ~VTD_P);
    iommu_rig_flush(rig);
    assert_int_equal(iommu_rig_translate_later(rig, ID, 0, false).fault,
                     IOMMU_FAULT_CONTEXT_NOT_PRESENT);
    iommu_rig_poke(rig, at, lo);
    assert_int_equal(iommu_reg_read(rig->iommu, VTD_FSTS, 4), 0);
    assert_int_equal(iommu_rig_stat(rig, "faults"), 4);
    assert_int_equal(iommu_rig_stat(rig, "faults_lost"), 0);
}

static bool next_fault(struct rig *rig, uint64_t *iova)
{
    uint16_t id;
    struct iova record;
    bool write;
    enum iommu_fault reason;
    if (!iommu_driver_fault(rig->driver, &id, &record, &write, &reason))
        return false;
    *iova = record.v;
    return true;
}

static void records_overflow_and_resume(void **state)
{
    struct rig *rig = *state;
    uint64_t iova, next = 1;
    for (unsigned round = 0; round < 5; round++) {
        uint64_t first = next;
        for (unsigned i = 0; i < 8; i++)
            iommu_rig_translate_later(rig, ID, next++ << 12, false);
        assert_int_equal(iommu_reg_read(rig->iommu, VTD_FSTS, 4) & VTD_FSTS_PFO, 0);
        iommu_rig_translate_later(rig, ID, UINT64_C(999) << 12, false); /* the ninth is lost */
        assert_int_equal(iommu_reg_read(rig->iommu, VTD_FSTS, 4) & (VTD_FSTS_PFO | VTD_FSTS_PPF),
                         VTD_FSTS_PFO | VTD_FSTS_PPF);
        assert_true(next_fault(rig, &iova));
        assert_int_equal(iova, first << 12);
        iommu_rig_translate_later(rig, ID, UINT64_C(999) << 12,
                                  false); /* so is all until PFO is cleared */
        assert_int_equal(iommu_rig_stat(rig, "faults_lost"), 2 * round + 2);
        for (unsigned i = 1; i < 8; i++) {
            assert_true(next_fault(rig, &iova));
            assert_int_equal(iova, (first + i) << 12);
        }
        assert_false(next_fault(rig, &iova));
        assert_int_equal(iommu_reg_read(rig->iommu, VTD_FSTS, 4) & ~VTD_FSTS_FRI, 0);
        /* An odd number in between, so that the rounds begin at different records. */
        for (unsigned i = 0; i < 3; i++) {
            iommu_rig_translate_later(rig, ID, next << 12, false);
            assert_true(next_fault(rig, &iova));
            assert_int_equal(iova, next++ << 12);
        }
    }
}

static void first_record_index(void **state)
{
    struct rig *rig = *state;
    uint64_t iova;
    iommu_rig_translate_later(rig, ID, 0x1000, false);
    assert_true(next_fault(rig, &iova));
    iommu_rig_translate_later(rig, ID, 0x2000, false);
    iommu_rig_translate_later(rig, ID, 0x3000, false);
    assert_int_equal(iommu_reg_read(rig->iommu, VTD_FSTS, 4), VTD_FSTS_PPF | 1u << 8);
    /* The record itself: address, requester, reason, type, F; cleared by writing a one to F. */
    uint64_t cap = iommu_reg_read(rig->iommu, VTD_CAP, 8);
    unsigned record = (unsigned)(cap >> 24 & 0x3ff) * 16 + 16;
    assert_int_equal(iommu_reg_read(rig->iommu, record, 8), 0x2000);
    assert_int_equal(iommu_reg_read(rig->iommu, record + 8, 8), UINT64_C(0xc000000600000000) | ID);
    iommu_reg_write(rig->iommu, record + 8, 8, 0);
    assert_int_equal(iommu_reg_read(rig->iommu, record + 12, 4) >> 31, 1);
    iommu_reg_write(rig->iommu, record + 12, 4, UINT64_C(1) << 31);
    assert_int_equal(iommu_reg_read(rig->iommu, record + 12, 4) >> 31, 0);
}

static void fault_event(void **state)
{
    struct rig *rig = *state;
    iommu_reg_write(rig->iommu, VTD_FEDATA, 4, 0x51);
    iommu_reg_write(rig->iommu, VTD_FEADDR, 4, 0xfee01000);
    iommu_rig_translate_later(rig, ID, 0x1000, false);
    assert_int_equal(rig->fake.n_messages, 0); /* masked at reset */
    assert_int_equal(iommu_reg_read(rig->iommu, VTD_FECTL, 4), VTD_EVENT_IM | VTD_EVENT_IP);
    iommu_reg_write(rig->iommu, VTD_FECTL, 4, 0);
    assert_int_equal(rig->fake.n_messages, 1);
    assert_int_equal(rig->fake.message_address, 0xfee01000);
    assert_int_equal(rig->fake.message_data, 0x51);
    assert_int_equal(iommu_reg_read(rig->iommu, VTD_FECTL, 4), 0);
    /* No second message while the first fault is pending; one for the next after that. */
    iommu_rig_translate_later(rig, ID, 0x2000, false);
    assert_int_equal(rig->fake.n_messages, 1);
    uint64_t iova;
    while (next_fault(rig, &iova))
        ;
    iommu_rig_translate_later(rig, ID, 0x3000, false);
    assert_int_equal(rig->fake.n_messages, 2);
    /* Handled while masked: nothing is left to send. */
    iommu_reg_write(rig->iommu, VTD_FECTL, 4, VTD_EVENT_IM);
    while (next_fault(rig, &iova))
        ;
    iommu_rig_translate_later(rig, ID, 0x3000, false);
    while (next_fault(rig, &iova))
        ;
    iommu_reg_write(rig->iommu, VTD_FECTL, 4, 0);
    assert_int_equal(rig->fake.n_messages, 2);
}

static void faulting_walks_take_time(void **state)
{
    struct rig *rig = *state;
    sim_time at = 1000000;
    struct iommu_translation t = iommu_rig_translate(rig, 0x0500, 0, false, at);
    assert_int_equal(t.done_ps - at, rig->params.lookup_ps + iommu_rig_walk_ps(rig, 1));
    t = iommu_rig_translate(rig, ID, IOVA + 8 * KIB, false, at += 10000000);
    assert_int_equal(t.done_ps - at, rig->params.lookup_ps + iommu_rig_walk_ps(rig, 6));
    t = iommu_rig_translate(rig, ID, IOVA + 8 * KIB, false, at += 10000000);
    assert_int_equal(t.done_ps - at, rig->params.lookup_ps + iommu_rig_walk_ps(rig, 1));
    t = iommu_rig_translate(rig, ID, UINT64_MAX, false, at += 10000000);
    assert_int_equal(t.done_ps - at, rig->params.lookup_ps);
}

static void registers(void **state)
{
    struct rig *rig = *state;
    struct iommu *iommu = rig->iommu;
    assert_int_equal(iommu_reg_read(iommu, VTD_VER, 4), 0x10);
    uint64_t cap = iommu_reg_read(iommu, VTD_CAP, 8);
    assert_int_equal(cap & 7, 6);           /* 16 bits of domain identifier */
    assert_int_equal(cap >> 8 & 0x1f, 0x6); /* three and four levels */
    assert_int_equal(cap >> 16 & 0x3f, 47); /* 48 bits */
    assert_int_equal(cap >> 34 & 0xf, 3);   /* 2 MiB and 1 GiB */
    assert_int_equal(cap >> 40 & 0xff, 7);  /* eight records */
    assert_int_equal(iommu_reg_read(iommu, VTD_CAP + 4, 4), cap >> 32);
    uint64_t ecap = iommu_reg_read(iommu, VTD_ECAP, 8);
    assert_int_equal(ecap & 0x4a, 0x4a); /* queue, remapping, pass-through */
    assert_int_equal((ecap >> 8 & 0x3ff) * 16 + 8, VTD_IOTLB);
    assert_int_equal(iommu_reg_read(iommu, VTD_GSTS, 4),
                     VTD_GCMD_TE | VTD_GCMD_QIE | VTD_GCMD_SRTP);
    /* Read-only registers stay as they are. */
    iommu_reg_write(iommu, VTD_CAP, 8, 0);
    iommu_reg_write(iommu, VTD_GSTS, 4, 0);
    iommu_reg_write(iommu, VTD_IQH, 8, 0x40);
    iommu_reg_write(iommu, 0xff8, 8, UINT64_MAX);
    assert_int_equal(iommu_reg_read(iommu, VTD_CAP, 8), cap);
    assert_int_equal(iommu_reg_read(iommu, VTD_GSTS, 4) & VTD_GCMD_TE, VTD_GCMD_TE);
    assert_int_equal(iommu_reg_read(iommu, 0xff8, 8), 0);
    assert_int_equal(iommu_reg_read(iommu, VTD_IQH, 8), iommu_reg_read(iommu, VTD_IQT, 8));
    /* Switching translation off and on again. */
    iommu_reg_write(iommu, VTD_GCMD, 4, VTD_GCMD_QIE);
    assert_int_equal(iommu_rig_translate_later(rig, ID, IOVA, false).hpa.v, IOVA);
    iommu_reg_write(iommu, VTD_GCMD, 4, VTD_GCMD_QIE | VTD_GCMD_TE);
    expect_ok(rig, IOVA, false);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(root_faults),
        TEST(context_faults),
        TEST(address_width),
        TEST(paging_faults),
        TEST(permissions_are_the_and),
        TEST(driver_permissions),
        TEST(fault_processing_disable),
        TEST(records_overflow_and_resume),
        TEST(first_record_index),
        TEST(fault_event),
        TEST(faulting_walks_take_time),
        TEST(registers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
