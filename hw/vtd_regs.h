/*
 * Registers (chapter 10), table entries (chapter 9), invalidation descriptors (6.5.2) and message
 * formats (5.1) of Intel Virtualization Technology for Directed I/O, revision 3.0, legacy mode.
 * Model: models/pcie/iommu/. Driver: models/os/ and models/host/.
 */
#ifndef HW_VTD_REGS_H
#define HW_VTD_REGS_H

#include <stddef.h>
#include <stdint.h>

/* Bits hi..lo of a 64-bit word, in place. */
#define VTD_BITS(hi, lo) ((UINT64_MAX >> (63 - (hi))) & (UINT64_MAX << (lo)))
#define VTD_BIT(n)       (UINT64_C(1) << (n))

static inline uint64_t vtd_get(uint64_t word, unsigned hi, unsigned lo)
{
    return (word & VTD_BITS(hi, lo)) >> lo;
}

/* ---- Registers: offsets (10.4) --------------------------------------------------------------- */
enum {
    VTD_VER = 0x00,
    VTD_CAP = 0x08,
    VTD_ECAP = 0x10,
    VTD_GCMD = 0x18,
    VTD_GSTS = 0x1c,
    VTD_RTADDR = 0x20,
    VTD_CCMD = 0x28,
    VTD_FSTS = 0x34,
    VTD_FECTL = 0x38,
    VTD_FEDATA = 0x3c,
    VTD_FEADDR = 0x40,
    VTD_FEUADDR = 0x44,
    VTD_IQH = 0x80,
    VTD_IQT = 0x88,
    VTD_IQA = 0x90,
    VTD_ICS = 0x9c,
    VTD_IECTL = 0xa0,
    VTD_IEDATA = 0xa4,
    VTD_IEADDR = 0xa8,
    VTD_IEUADDR = 0xac,
    VTD_IRTA = 0xb8,
    /* Where an implementation puts these two groups is its own choice (CAP.FRO, ECAP.IRO). */
    VTD_FRCD = 0x220,
    VTD_IVA = 0x300,
    VTD_IOTLB = 0x308,
    VTD_WINDOW_BYTES = 0x1000
};
#define VTD_N_FRCD     8u
#define VTD_FRCD_BYTES 16u
_Static_assert(VTD_FRCD % 16 == 0 && VTD_IVA % 16 == 0, "FRO and IRO count in units of 16 bytes");
_Static_assert(VTD_FRCD + VTD_N_FRCD * VTD_FRCD_BYTES <= VTD_IVA,
               "register groups must not overlap");

/* CAP (10.4.2) */
#define VTD_CAP_ND_64K     UINT64_C(6) /* 16-bit domain identifiers */
#define VTD_CAP_SAGAW_3    VTD_BIT(9)
#define VTD_CAP_SAGAW_4    VTD_BIT(10)
#define VTD_CAP_SAGAW_5    VTD_BIT(11)
#define VTD_CAP_MGAW_SHIFT 16 /* width - 1 */
#define VTD_CAP_ZLR        VTD_BIT(22)
#define VTD_CAP_FRO_SHIFT  24
#define VTD_CAP_SLLPS_2M   VTD_BIT(34)
#define VTD_CAP_SLLPS_1G   VTD_BIT(35)
#define VTD_CAP_PSI        VTD_BIT(39)
#define VTD_CAP_NFR_SHIFT  40 /* records - 1 */
#define VTD_CAP_MAMV_SHIFT 48
#define VTD_CAP_DWD        VTD_BIT(54)
#define VTD_CAP_DRD        VTD_BIT(55)
/* ECAP (10.4.3) */
#define VTD_ECAP_C         VTD_BIT(0)
#define VTD_ECAP_QI        VTD_BIT(1)
#define VTD_ECAP_IR        VTD_BIT(3)
#define VTD_ECAP_EIM       VTD_BIT(4)
#define VTD_ECAP_PT        VTD_BIT(6)
#define VTD_ECAP_SC        VTD_BIT(7)
#define VTD_ECAP_IRO_SHIFT 8
/* GCMD, GSTS (10.4.4, 10.4.5): the same positions */
#define VTD_GCMD_TE    (1u << 31)
#define VTD_GCMD_SRTP  (1u << 30)
#define VTD_GCMD_QIE   (1u << 26)
#define VTD_GCMD_IRE   (1u << 25)
#define VTD_GCMD_SIRTP (1u << 24)
#define VTD_GCMD_CFI   (1u << 23)
/* RTADDR (10.4.6) */
#define VTD_RTADDR_MASK VTD_BITS(63, 12)
#define VTD_RTADDR_TTM  VTD_BITS(11, 10) /* 0: legacy mode */
/* CCMD (10.4.7), IOTLB (10.4.8.1), IVA (10.4.8.2) */
#define VTD_CCMD_ICC       VTD_BIT(63)
#define VTD_CCMD_CIRG_LSB  61
#define VTD_CCMD_CAIG_LSB  59
#define VTD_IOTLB_IVT      VTD_BIT(63)
#define VTD_IOTLB_IIRG_LSB 60
#define VTD_IOTLB_IAIG_LSB 57
/* FSTS (10.4.9) */
#define VTD_FSTS_PFO       (1u << 0)
#define VTD_FSTS_PPF       (1u << 1)
#define VTD_FSTS_IQE       (1u << 4)
#define VTD_FSTS_FRI_SHIFT 8
#define VTD_FSTS_FRI       (0xffu << VTD_FSTS_FRI_SHIFT)
/* FECTL, IECTL (10.4.10, 10.4.25): interrupt mask and pending */
#define VTD_EVENT_IM (1u << 31)
#define VTD_EVENT_IP (1u << 30)
/* FRCD (10.4.14), upper quadword; the lower one holds bits 63:12 of the address */
#define VTD_FRCD_F         VTD_BIT(63)
#define VTD_FRCD_T1        VTD_BIT(62) /* set: a read */
#define VTD_FRCD_FR_SHIFT  32
#define VTD_FRCD_INDEX_LSB 48 /* lower quadword of interrupt faults: the index */
/* IQH, IQT, IQA (10.4.21 to 10.4.23), ICS (10.4.24) */
#define VTD_IQ_POINTER VTD_BITS(18, 4)
#define VTD_IQA_QS     VTD_BITS(2, 0) /* 2^QS pages */
#define VTD_ICS_IWC    (1u << 0)
/* IRTA (10.4.29) */
#define VTD_IRTA_S    VTD_BITS(3, 0) /* 2^(S+1) entries */
#define VTD_IRTA_EIME VTD_BIT(11)

/* ---- Table entries (chapter 9); two little-endian quadwords each, or one --------------------- */
struct vtd_entry128 {
    uint64_t lo, hi;
};
_Static_assert(sizeof(struct vtd_entry128) == 16, "root, context, IRT entries and descriptors");
_Static_assert(offsetof(struct vtd_entry128, lo) == 0, "lo");
_Static_assert(offsetof(struct vtd_entry128, hi) == 8, "hi");

#define VTD_HAW 52u /* host address width */
#define VTD_P   VTD_BIT(0)
#define VTD_FPD VTD_BIT(1) /* context and interrupt-remapping entries */

#define VTD_ROOT_TABLE   VTD_BITS(VTD_HAW - 1, 12)
#define VTD_ROOT_RSVD_LO (VTD_BITS(11, 1) | VTD_BITS(63, VTD_HAW))

#define VTD_CONTEXT_TABLE   VTD_BITS(VTD_HAW - 1, 12)
#define VTD_CONTEXT_RSVD_LO (VTD_BITS(11, 4) | VTD_BITS(63, VTD_HAW))
#define VTD_CONTEXT_RSVD_HI (VTD_BIT(7) | VTD_BITS(63, 24))
#define VTD_CONTEXT_TT_LSB  2
enum { VTD_TT_MULTI_LEVEL = 0, VTD_TT_DEVICE_TLB = 1, VTD_TT_PASS_THROUGH = 2 };
/* AW: 1, 2, 3 are 3, 4, 5 levels (39, 48, 57 bits). */
#define VTD_AW_OF_LEVELS(levels)    ((levels)-2u)
#define VTD_WIDTH_OF_LEVELS(levels) (12u + 9u * (levels))
#define VTD_CONTEXT_DID_LSB         8
_Static_assert(VTD_WIDTH_OF_LEVELS(3) == 39 && VTD_WIDTH_OF_LEVELS(5) == 57, "9 bits a level");

/* Second-level paging entries (9.7); level 1 holds 4 KiB pages. */
#define VTD_PTE_R      VTD_BIT(0)
#define VTD_PTE_W      VTD_BIT(1)
#define VTD_PTE_RW     (VTD_PTE_R | VTD_PTE_W)
#define VTD_PTE_PS     VTD_BIT(7)
#define VTD_PTE_TM     VTD_BIT(62) /* reserved in leaves without device TLBs */
#define VTD_PTE_ADDR   VTD_BITS(VTD_HAW - 1, 12)
#define VTD_LEVEL_BITS 9u
#define VTD_ENTRIES    512u
/* Bytes that one entry of a table of this level covers, as a power of two: 12, 21, 30, ... */
#define VTD_SPAN_LOG2(level) (12u + VTD_LEVEL_BITS * ((level)-1u))
_Static_assert(VTD_SPAN_LOG2(2) == 21 && VTD_SPAN_LOG2(3) == 30, "2 MiB and 1 GiB pages");

/* Interrupt-remapping entries (9.10) */
#define VTD_IRTE_IM       VTD_BIT(15) /* posted: reserved without posted interrupts */
#define VTD_IRTE_RSVD_LO  (VTD_BITS(14, 12) | VTD_BITS(31, 24))
#define VTD_IRTE_RSVD_HI  VTD_BITS(63, 20)
#define VTD_IRTE_V_LSB    16
#define VTD_IRTE_DST_LSB  32 /* 32 bits with EIME, otherwise 8 at bit 40 */
#define VTD_IRTE_DST8_LSB 40
#define VTD_IRTE_SVT_LSB  18
enum { VTD_SVT_NONE = 0, VTD_SVT_ID = 1, VTD_SVT_BUS = 2 };

/* Interrupt messages (5.1.2.1, 5.1.2.2): address and data */
#define VTD_MSI_BASE       UINT64_C(0xfee00000)
#define VTD_MSI_REMAPPABLE VTD_BIT(4)
#define VTD_MSI_SHV        VTD_BIT(3)
#define VTD_MSI_HANDLE_LSB 5 /* handle 14:0; bit 15 is address bit 2 */
#define VTD_MSI_HANDLE_15  VTD_BIT(2)
#define VTD_MSI_DST8_LSB   12 /* compatibility format */

/* ---- Invalidation descriptors, 128 bits (6.5.2) ---------------------------------------------- */
enum vtd_qi_type { VTD_QI_CONTEXT = 1, VTD_QI_IOTLB = 2, VTD_QI_IEC = 4, VTD_QI_WAIT = 5 };
enum vtd_granularity { VTD_GLOBAL = 1, VTD_DOMAIN = 2, VTD_SELECTIVE = 3 /* device; pages */ };
#define VTD_QI_TYPE        VTD_BITS(3, 0)
#define VTD_QI_G_LSB       4
#define VTD_QI_DID_LSB     16
#define VTD_QI_SID_LSB     32
#define VTD_QI_FM_LSB      48
#define VTD_QI_IOTLB_IH    VTD_BIT(6) /* upper quadword: leaf entries only */
#define VTD_QI_IEC_G       VTD_BIT(4) /* set: by index */
#define VTD_QI_IEC_IM_LSB  27
#define VTD_QI_IEC_IDX_LSB 32
#define VTD_QI_WAIT_IF     VTD_BIT(4)
#define VTD_QI_WAIT_SW     VTD_BIT(5)
#define VTD_QI_STATUS_LSB  32
#define VTD_QI_BYTES       16u
_Static_assert(sizeof(struct vtd_entry128) == VTD_QI_BYTES, "one queue slot");

#endif
