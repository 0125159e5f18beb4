/*
 * Intel's DMA engine of chipsets and processors ("I/OAT", QuickData, Crystal Beach): what software
 * writes and reads and the model acts on, of two versions:
 *
 *   1.2  Intel 5000 series memory controller hub: one function 8086:1a38, device 8 of bus 0, four
 *        channels; chains that end with a next address of 0, START and APPEND.
 *   3.2 Xeon E5 v4 and its relatives: eight functions 8086:6f20 .. 6f27, device 4, one channel
 *   each;
 *        rings and a count of descriptors.
 *
 * Sections are named by register, as in the data sheets: Intel 5000X chipset MCH (313070), "DMA
 * Engine Registers" (1.2); Xeon E7 v2, volume two (329595), 14.5 "Intel QuickData Technology
 * registers" (3.2). All fields are little endian. Driver: logic/dma/ioat.c. Model: models/ioat/.
 */
#ifndef HW_IOAT_REGS_H
#define HW_IOAT_REGS_H

#include <stddef.h>
#include <stdint.h>

#define IOAT_VENDOR_ID      0x8086u
#define IOAT_DEVICE_ID_5000 0x1a38u
#define IOAT_DEVICE_ID_BDX  0x6f20u   /* function n: + n */
#define IOAT_DEVICE_ID_SKX  0x2021u   /* of every function */
#define IOAT_CLASS          0x088000u /* base system peripheral, other */
#define IOAT_CHANNELS_MAX   16u
#define IOAT_BAR_BYTES_V1   0x400u
#define IOAT_BAR_BYTES_V3   0x4000u
#define IOAT_MSIX_TABLE     0x2000u /* 3.2 */
#define IOAT_MSIX_PBA       0x3000u

#define IOAT_VERSION_1_2 0x12u
#define IOAT_VERSION_3_2 0x32u

/* ---- BAR 0: registers of all channels -------------------------------------------------------- */
#define IOAT_CHANCNT 0x00u /* 8 bits, read only: channels of the function */
#define IOAT_XFERCAP 0x01u /* 8 bits, read only: log2 of the bytes of a descriptor at most */
#define IOAT_GENCTRL 0x02u /* 8 bits */
/* 8 bits; reading clears MASTER_ENABLE, which masks while a handler runs. */
#define IOAT_INTRCTRL      0x03u
#define IOAT_ATTNSTATUS    0x04u /* channels that want attention, a bit each; reading clears */
#define IOAT_CBVER         0x08u /* 8 bits, read only: major 7:4, minor 3:0 */
#define IOAT_PERPORTOFFSET 0x0au /* 16 bits, read only: none here, 0 */
#define IOAT_INTRDELAY     0x0cu /* 16 bits; 1.2: absent, 0 */
#define IOAT_CS_STATUS     0x0eu /* 16 bits, read only */
#define IOAT_DMACAPABILITY 0x10u /* 32 bits, read only; 1.2: absent, 0 */

/* The double words that hold the small ones: software of ours accesses 4 bytes. */
#define IOAT_GENERAL         0x00u
#define IOAT_XFERCAP_SHIFT   8u
#define IOAT_GENCTRL_SHIFT   16u
#define IOAT_INTRCTRL_SHIFT  24u
#define IOAT_INTRDELAY_WORD  0x0cu
#define IOAT_CS_STATUS_SHIFT 16u

#define IOAT_INTRCTRL_MASTER_ENABLE 0x01u
#define IOAT_INTRCTRL_STATUS        0x02u   /* read only: a bit of ATTNSTATUS is set */
#define IOAT_INTRCTRL_INTERRUPT     0x04u   /* read only: both of the above */
#define IOAT_INTRCTRL_MSIX_VECTORS  0x08u   /* 3.2: every channel has a vector of its own */
#define IOAT_INTRDELAY_US_MASK      0x3fffu /* no interrupt so long after the channel was rearmed */
#define IOAT_INTRDELAY_SUPPORTED    0x8000u
#define IOAT_DMACAP_DCA             0x00000010u

/* ---- Registers of a channel ------------------------------------------------------------------ */
#define IOAT_CHANNEL_BYTES 0x80u
#define IOAT_CHANNEL(n)    (IOAT_CHANNEL_BYTES * ((n) + 1u))

#define IOAT_CHANCTRL     0x00u /* 16 bits */
#define IOAT_DMA_COMP     0x02u /* 16 bits, read only: versions that it is compatible with */
#define IOAT_V1_CHANSTS   0x04u /* 64 bits, read only */
#define IOAT_V1_CHAINADDR 0x0cu /* 64 bits: the first descriptor */
#define IOAT_V1_CHANCMD   0x14u /* 8 bits */
#define IOAT_V3_CHANCMD   0x04u /* 8 bits */
#define IOAT_V3_DMACOUNT \
    0x06u                          /* 16 bits: descriptors to be done since CHAINADDR was
                                      * written */
#define IOAT_V3_DMACOUNT_SHIFT 16u /* in the double word of CHANCMD */
#define IOAT_V3_CHANSTS        0x08u
#define IOAT_V3_CHAINADDR      0x10u
#define IOAT_CHANCMP           0x18u /* 64 bits: where completions are written */
#define IOAT_CDAR              0x20u /* 64 bits, read only: descriptor that is being done */
#define IOAT_CHANERR           0x28u /* 32 bits; writing 1 clears */
#define IOAT_CHANERRMSK        0x2cu /* 32 bits: 1: the error is not signalled */
#define IOAT_DCACTRL           0x30u /* 32 bits, 3.2 */

/* CHANCTRL */
/* Set by the interrupt of a descriptor: no other until software writes 1, which clears it. */
#define IOAT_CHANCTRL_INT_DISABLE    0x0001u
#define IOAT_CHANCTRL_ERR_COMPLETION 0x0004u /* an error is written like a completion */
#define IOAT_CHANCTRL_ANY_ERR_ABORT  0x0008u
#define IOAT_CHANCTRL_ERR_INT        0x0010u /* an error raises an interrupt */
#define IOAT_CHANCTRL_DESC_SNOOP_OFF 0x0020u
#define IOAT_CHANCTRL_IN_USE \
    0x0100u /* the first read since it was cleared returns 0, later
                                              * 1 */
#define IOAT_CHANCTRL_COMPLETION_DCA 0x0200u
#define IOAT_CHANCTRL_PRIORITY_MASK  0xf000u /* 1.2 */
/* Beside INT_DISABLE. 3.2: 15:10 and 7:6 are reserved (14.5.12); 1.2 has no DCA. */
#define IOAT_V1_CHANCTRL_WRITABLE 0xf13cu
#define IOAT_V3_CHANCTRL_WRITABLE 0x033cu

/* CHANCMD: one at a time. 3.2 has SUSPEND and RESET only. */
#define IOAT_CHANCMD_START   0x01u
#define IOAT_CHANCMD_APPEND  0x02u
#define IOAT_CHANCMD_SUSPEND 0x04u
#define IOAT_CHANCMD_ABORT   0x08u
#define IOAT_CHANCMD_RESUME  0x10u
#define IOAT_CHANCMD_RESET   0x20u /* reads as 1 until it is done */

/* CHANSTS, and what is written to CHANCMP's address: the last descriptor that was completed, and */
#define IOAT_CHANSTS_ADDRESS_MASK (~UINT64_C(0x3f))
#define IOAT_CHANSTS_STATUS_MASK  0x7u
#define IOAT_CHANSTS_ACTIVE       0x0u
#define IOAT_CHANSTS_IDLE         0x1u /* the chain is done */
#define IOAT_CHANSTS_SUSPENDED    0x2u
#define IOAT_CHANSTS_HALTED       0x3u /* by an error, ABORT, or RESET */

/* CHANERR, CHANERRMSK */
#define IOAT_CHANERR_SOURCE      0x00001u /* source address */
#define IOAT_CHANERR_DESTINATION 0x00002u
#define IOAT_CHANERR_NEXT        0x00004u /* a next address that cannot be fetched from */
#define IOAT_CHANERR_NEXT_ALIGN  0x00008u /* one that is no multiple of 64 */
#define IOAT_CHANERR_CHAIN       0x00010u /* the same of CHAINADDR */
#define IOAT_CHANERR_COMMAND     0x00020u /* CHANCMD */
#define IOAT_CHANERR_READ_DATA   0x00100u
#define IOAT_CHANERR_WRITE_DATA  0x00200u
#define IOAT_CHANERR_CONTROL     0x00400u /* descriptor control */
#define IOAT_CHANERR_LENGTH      0x00800u
#define IOAT_CHANERR_COMPLETION  0x01000u /* completion address */
#define IOAT_CHANERR_COUNT       0x40000u /* 3.2: DMACOUNT */
#define IOAT_V1_CHANERR_ALL      0x01f3fu
#define IOAT_V3_CHANERR_ALL      0x41f3fu

/* DCACTRL, 3.2 */
#define IOAT_DCACTRL_TARGET_MASK 0x0000ffffu /* APIC ID of the CPU whose cache writes go to */

/* ---- Descriptors ----------------------------------------------------------------------------- */
#define IOAT_DESC_BYTES 64u

struct ioat_descriptor {
    uint32_t bytes;
    uint32_t control;
    uint64_t source, destination; /* contiguous ranges */
    uint64_t next;                /* 1.2: 0: the last */
    uint64_t reserved[2];
    uint64_t user[2]; /* software's */
};
_Static_assert(sizeof(struct ioat_descriptor) == IOAT_DESC_BYTES, "a descriptor has 64 bytes");
_Static_assert(offsetof(struct ioat_descriptor, control) == 4, "");
_Static_assert(offsetof(struct ioat_descriptor, source) == 8, "");
_Static_assert(offsetof(struct ioat_descriptor, destination) == 16, "");
_Static_assert(offsetof(struct ioat_descriptor, next) == 24, "");
_Static_assert(offsetof(struct ioat_descriptor, user) == 48, "");

#define IOAT_CONTROL_INTERRUPT       0x00000001u
#define IOAT_CONTROL_SOURCE_NO_SNOOP 0x00000002u
#define IOAT_CONTROL_DEST_NO_SNOOP   0x00000004u
#define IOAT_CONTROL_COMPLETION      0x00000008u /* write CHANSTS to CHANCMP's address at the end */
#define IOAT_CONTROL_FENCE \
    0x00000010u                           /* the next begins when this one's data are
                                                  * written */
#define IOAT_CONTROL_NULL     0x00000020u /* moves nothing */
#define IOAT_CONTROL_DCA      0x00000200u /* 3.2: data to DCACTRL's CPU */
#define IOAT_CONTROL_OP_SHIFT 24u
#define IOAT_CONTROL_OP_COPY  0u

#endif
