/*
 * hw/vtd_regs.h against numbers typed from the VT-d specification, revision 3.0 (sections named
 * below), and 128-bit vectors of its table entries and descriptors. Offsets and bits are also those
 * of hw/i386/intel_iommu_internal.h of QEMU, where that names them.
 */
#include "hw/vtd_regs.h"
#include "tests/hw/hw_vectors.h"

#define BIT(n) (UINT64_C(1) << (n))

/* X(constant, number by the specification). */
#define CONSTANTS(X)                                                \
    /* our choice: eight fault records of 128 bits (10.4.14) */     \
    X(VTD_N_FRCD, 8)                                                \
    X(VTD_FRCD_BYTES, 128 / 8)                                      \
    /* 10.4.2 */                                                    \
    X(VTD_CAP_ND_64K, 6)                                            \
    X(VTD_CAP_SAGAW_3, 0x2 << 8)                                    \
    X(VTD_CAP_SAGAW_4, 0x4 << 8)                                    \
    X(VTD_CAP_SAGAW_5, 0x8 << 8)                                    \
    X(VTD_CAP_MGAW_SHIFT, 16)                                       \
    X(VTD_CAP_ZLR, BIT(22))                                         \
    X(VTD_CAP_FRO_SHIFT, 24)                                        \
    X(VTD_CAP_SLLPS_2M, BIT(34))                                    \
    X(VTD_CAP_SLLPS_1G, BIT(35))                                    \
    X(VTD_CAP_PSI, BIT(39))                                         \
    X(VTD_CAP_NFR_SHIFT, 40)                                        \
    X(VTD_CAP_MAMV_SHIFT, 48)                                       \
    X(VTD_CAP_DWD, BIT(54))                                         \
    X(VTD_CAP_DRD, BIT(55))                                         \
    /* 10.4.3 */                                                    \
    X(VTD_ECAP_C, BIT(0))                                           \
    X(VTD_ECAP_QI, BIT(1))                                          \
    X(VTD_ECAP_IR, BIT(3))                                          \
    X(VTD_ECAP_EIM, BIT(4))                                         \
    X(VTD_ECAP_PT, BIT(6))                                          \
    X(VTD_ECAP_SC, BIT(7))                                          \
    X(VTD_ECAP_IRO_SHIFT, 8)                                        \
    /* 10.4.4 */                                                    \
    X(VTD_GCMD_TE, BIT(31))                                         \
    X(VTD_GCMD_SRTP, BIT(30))                                       \
    X(VTD_GCMD_QIE, BIT(26))                                        \
    X(VTD_GCMD_IRE, BIT(25))                                        \
    X(VTD_GCMD_SIRTP, BIT(24))                                      \
    X(VTD_GCMD_CFI, BIT(23))                                        \
    /* 10.4.6: 63:12 address, 11:10 mode */                         \
    X(VTD_RTADDR_MASK, UINT64_C(0xfffffffffffff000))                \
    X(VTD_RTADDR_TTM, 0xc00)                                        \
    /* 10.4.7, 10.4.8.1 */                                          \
    X(VTD_CCMD_ICC, BIT(63))                                        \
    X(VTD_CCMD_CIRG_LSB, 61)                                        \
    X(VTD_CCMD_CAIG_LSB, 59)                                        \
    X(VTD_IOTLB_IVT, BIT(63))                                       \
    X(VTD_IOTLB_IIRG_LSB, 60)                                       \
    X(VTD_IOTLB_IAIG_LSB, 57)                                       \
    /* 10.4.9, 10.4.10 */                                           \
    X(VTD_FSTS_PFO, 0x1)                                            \
    X(VTD_FSTS_PPF, 0x2)                                            \
    X(VTD_FSTS_IQE, 0x10)                                           \
    X(VTD_FSTS_FRI_SHIFT, 8)                                        \
    X(VTD_FSTS_FRI, 0xff00)                                         \
    X(VTD_EVENT_IM, BIT(31))                                        \
    X(VTD_EVENT_IP, BIT(30))                                        \
    /* 10.4.14: bits 127, 126, 103:96; 63:48 of interrupt faults */ \
    X(VTD_FRCD_F, BIT(127 - 64))                                    \
    X(VTD_FRCD_T1, BIT(126 - 64))                                   \
    X(VTD_FRCD_FR_SHIFT, 96 - 64)                                   \
    X(VTD_FRCD_INDEX_LSB, 48)                                       \
    /* 10.4.21 to 10.4.24, 10.4.29 */                               \
    X(VTD_IQ_POINTER, 0x7fff0)                                      \
    X(VTD_IQA_QS, 0x7)                                              \
    X(VTD_ICS_IWC, 0x1)                                             \
    X(VTD_IRTA_S, 0xf)                                              \
    X(VTD_IRTA_EIME, BIT(11))                                       \
    /* 9.1, 9.3: reserved bits at our host address width */         \
    X(VTD_HAW, 52)                                                  \
    X(VTD_P, BIT(0))                                                \
    X(VTD_FPD, BIT(1))                                              \
    X(VTD_ROOT_TABLE, UINT64_C(0x000ffffffffff000))                 \
    X(VTD_ROOT_RSVD_LO, UINT64_C(0xfff0000000000ffe))               \
    X(VTD_CONTEXT_TABLE, UINT64_C(0x000ffffffffff000))              \
    X(VTD_CONTEXT_RSVD_LO, UINT64_C(0xfff0000000000ff0))            \
    X(VTD_CONTEXT_RSVD_HI, UINT64_C(0xffffffffff000080))            \
    X(VTD_CONTEXT_TT_LSB, 2)                                        \
    X(VTD_CONTEXT_DID_LSB, 72 - 64)                                 \
    /* 9.7 */                                                       \
    X(VTD_PTE_R, BIT(0))                                            \
    X(VTD_PTE_W, BIT(1))                                            \
    X(VTD_PTE_RW, 3)                                                \
    X(VTD_PTE_PS, BIT(7))                                           \
    X(VTD_PTE_TM, BIT(62))                                          \
    X(VTD_PTE_ADDR, UINT64_C(0x000ffffffffff000))                   \
    X(VTD_LEVEL_BITS, 9)                                            \
    X(VTD_ENTRIES, 4096 / 8)                                        \
    /* 9.10: remapped format */                                     \
    X(VTD_IRTE_IM, BIT(15))                                         \
    X(VTD_IRTE_RSVD_LO, 0xff007000)                                 \
    X(VTD_IRTE_RSVD_HI, ~UINT64_C(0xfffff))                         \
    X(VTD_IRTE_V_LSB, 16)                                           \
    X(VTD_IRTE_DST_LSB, 32)                                         \
    X(VTD_IRTE_DST8_LSB, 40)                                        \
    X(VTD_IRTE_SVT_LSB, 82 - 64)                                    \
    /* 5.1.2.1, 5.1.2.2 */                                          \
    X(VTD_MSI_BASE, 0xfee00000)                                     \
    X(VTD_MSI_REMAPPABLE, BIT(4))                                   \
    X(VTD_MSI_SHV, BIT(3))                                          \
    X(VTD_MSI_HANDLE_LSB, 5)                                        \
    X(VTD_MSI_HANDLE_15, BIT(2))                                    \
    X(VTD_MSI_DST8_LSB, 12)                                         \
    /* 6.5.2 */                                                     \
    X(VTD_QI_TYPE, 0xf)                                             \
    X(VTD_QI_G_LSB, 4)                                              \
    X(VTD_QI_DID_LSB, 16)                                           \
    X(VTD_QI_SID_LSB, 32)                                           \
    X(VTD_QI_FM_LSB, 48)                                            \
    X(VTD_QI_IOTLB_IH, BIT(70 - 64))                                \
    X(VTD_QI_IEC_G, BIT(4))                                         \
    X(VTD_QI_IEC_IM_LSB, 27)                                        \
    X(VTD_QI_IEC_IDX_LSB, 32)                                       \
    X(VTD_QI_WAIT_IF, BIT(4))                                       \
    X(VTD_QI_WAIT_SW, BIT(5))                                       \
    X(VTD_QI_STATUS_LSB, 32)                                        \
    X(VTD_QI_BYTES, 16)

#define VALUES(X)                                                                  \
    /* 10.4: register map; FRCD and IVA are our choice, IOTLB lies 8 behind IVA */ \
    X(VTD_VER, 0x00)                                                               \
    X(VTD_CAP, 0x08)                                                               \
    X(VTD_ECAP, 0x10)                                                              \
    X(VTD_GCMD, 0x18)                                                              \
    X(VTD_GSTS, 0x1c)                                                              \
    X(VTD_RTADDR, 0x20)                                                            \
    X(VTD_CCMD, 0x28)                                                              \
    X(VTD_FSTS, 0x34)                                                              \
    X(VTD_FECTL, 0x38)                                                             \
    X(VTD_FEDATA, 0x3c)                                                            \
    X(VTD_FEADDR, 0x40)                                                            \
    X(VTD_FEUADDR, 0x44)                                                           \
    X(VTD_IQH, 0x80)                                                               \
    X(VTD_IQT, 0x88)                                                               \
    X(VTD_IQA, 0x90)                                                               \
    X(VTD_ICS, 0x9c)                                                               \
    X(VTD_IECTL, 0xa0)                                                             \
    X(VTD_IEDATA, 0xa4)                                                            \
    X(VTD_IEADDR, 0xa8)                                                            \
    X(VTD_IEUADDR, 0xac)                                                           \
    X(VTD_IRTA, 0xb8)                                                              \
    X(VTD_IOTLB, VTD_IVA + 8)                                                      \
    X(VTD_WINDOW_BYTES, 4096)                                                      \
    /* 9.3 */                                                                      \
    X(VTD_TT_MULTI_LEVEL, 0)                                                       \
    X(VTD_TT_DEVICE_TLB, 1)                                                        \
    X(VTD_TT_PASS_THROUGH, 2)                                                      \
    X(VTD_WIDTH_OF_LEVELS(4), 48)                                                  \
    X(VTD_SPAN_LOG2(1), 12)                                                        \
    X(VTD_SPAN_LOG2(3), 30)                                                        \
    /* 9.10: source validation */                                                  \
    X(VTD_SVT_NONE, 0)                                                             \
    X(VTD_SVT_ID, 1)                                                               \
    X(VTD_SVT_BUS, 2)                                                              \
    /* helpers: bits 23:16 */                                                      \
    X(VTD_BITS(23, 16), 0xff0000)                                                  \
    X(vtd_get(UINT64_C(0x123456789abcdef0), 23, 16), 0xbc)

static const struct hw_vector constants[] = { CONSTANTS(HW_VECTOR) };

static void test_constants_are_those_of_the_specification(void **state)
{
    (void)state;
    const struct hw_vector values[] = { VALUES(HW_VECTOR) };
    hw_vectors_compare(constants, N_OF(constants));
    hw_vectors_cover("hw/vtd_regs.h", constants, N_OF(constants));
    hw_vectors_compare(values, N_OF(values));
}

static void check(uint64_t lo, uint64_t hi, const uint8_t bytes[16])
{
    const struct vtd_entry128 entry = { .lo = lo, .hi = hi };
    assert_memory_equal(&entry, bytes, 16);
}

/* 9.3: domain 0x1234, four levels from 0x5_6789_a000 on, present, untranslated requests only. */
static void test_bytes_of_a_context_entry(void **state)
{
    (void)state;
    static const uint8_t bytes[16] = { 0x01, 0xa0, 0x89, 0x67, 0x05, 0, 0, 0, 0x02, 0x34, 0x12 };
    check(VTD_P | (0x56789a000 & VTD_CONTEXT_TABLE) |
              (uint64_t)VTD_TT_MULTI_LEVEL << VTD_CONTEXT_TT_LSB,
          VTD_AW_OF_LEVELS(4) | UINT64_C(0x1234) << VTD_CONTEXT_DID_LSB, bytes);
}

/* 9.10: vector 0x41 to x2APIC ID 0x305, from requester 3b:00.1 alone. */
static void test_bytes_of_an_interrupt_entry(void **state)
{
    (void)state;
    static const uint8_t bytes[16] = { 0x01, 0, 0x41, 0, 0x05, 0x03, 0, 0, 0x01, 0x3b, 0x04 };
    check(VTD_P | UINT64_C(0x41) << VTD_IRTE_V_LSB | UINT64_C(0x305) << VTD_IRTE_DST_LSB,
          0x3b01 | (uint64_t)VTD_SVT_ID << VTD_IRTE_SVT_LSB, bytes);
}

/* 6.5.2.1, 6.5.2.3, 6.5.2.7, 6.5.2.8: of one device, of one page, of one index, a wait that
 * writes. */
static void test_bytes_of_invalidation_descriptors(void **state)
{
    (void)state;
    static const uint8_t context[16] = { 0x31, 0, 0x34, 0x12, 0x01, 0x3b };
    static const uint8_t page[16] = { 0x32, 0, 0x34, 0x12, 0, 0, 0, 0, 0x40, 0xf0, 0xad, 0x0b };
    static const uint8_t index[16] = { 0x14, 0, 0, 0, 0x21, 0x43 };
    static const uint8_t wait[16] = { 0x25, 0,    0,    0,    0xef, 0xbe, 0xad, 0xde,
                                      0x40, 0x20, 0x01, 0x00, 0x01, 0,    0,    0 };
    check(VTD_QI_CONTEXT | VTD_SELECTIVE << VTD_QI_G_LSB | UINT64_C(0x1234) << VTD_QI_DID_LSB |
              UINT64_C(0x3b01) << VTD_QI_SID_LSB,
          0, context);
    check(VTD_QI_IOTLB | VTD_SELECTIVE << VTD_QI_G_LSB | UINT64_C(0x1234) << VTD_QI_DID_LSB,
          0x0badf000 | VTD_QI_IOTLB_IH, page);
    check(VTD_QI_IEC | VTD_QI_IEC_G | UINT64_C(0x4321) << VTD_QI_IEC_IDX_LSB, 0, index);
    check(VTD_QI_WAIT | VTD_QI_WAIT_SW | UINT64_C(0xdeadbeef) << VTD_QI_STATUS_LSB, 0x100012040,
          wait);
}

/* 5.1.2.2: handle 0x8123, subhandle valid: bits 14:0 at 19:5, bit 15 at 2. */
static void test_address_of_a_remappable_message(void **state)
{
    (void)state;
    const uint64_t handle = 0x8123;
    assert_int_equal(VTD_MSI_BASE | VTD_MSI_REMAPPABLE | VTD_MSI_SHV |
                         (handle & 0x7fff) << VTD_MSI_HANDLE_LSB |
                         (handle >> 15 != 0 ? VTD_MSI_HANDLE_15 : 0),
                     0xfee0247c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constants_are_those_of_the_specification),
        cmocka_unit_test(test_bytes_of_a_context_entry),
        cmocka_unit_test(test_bytes_of_an_interrupt_entry),
        cmocka_unit_test(test_bytes_of_invalidation_descriptors),
        cmocka_unit_test(test_address_of_a_remappable_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
