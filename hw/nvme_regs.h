/*
 * Registers, commands and completions of the NVM Express Base Specification 1.3, as far as our
 * controllers and our driver use them. All fields are little endian. Driver: logic/nvme/. Model:
 * models/nvme/.
 */
#ifndef HW_NVME_REGS_H
#define HW_NVME_REGS_H

#include <stddef.h>
#include <stdint.h>

/* PCI identities of the controllers of the papers; the class code of all controllers. */
#define NVME_VENDOR_INTEL     0x8086u
#define NVME_DEVICE_P4800X    0x2701u
#define NVME_VENDOR_MICROSEMI 0x11f8u
#define NVME_DEVICE_NVRAM     0xf117u
#define NVME_CLASS_CODE       0x010802u

/* ---- BAR 0 (section 3.1) --------------------------------------------------------------------- */
#define NVME_BAR_BYTES     0x4000u
#define NVME_REG_CAP       0x00u /* 8 bytes */
#define NVME_REG_VS        0x08u
#define NVME_REG_INTMS     0x0cu
#define NVME_REG_INTMC     0x10u
#define NVME_REG_CC        0x14u
#define NVME_REG_CSTS      0x1cu
#define NVME_REG_AQA       0x24u
#define NVME_REG_ASQ       0x28u /* 8 bytes */
#define NVME_REG_ACQ       0x30u /* 8 bytes */
#define NVME_REG_CMBLOC    0x38u
#define NVME_REG_CMBSZ     0x3cu
#define NVME_REG_DOORBELLS 0x1000u
#define NVME_VERSION_1_3   0x00010300u

/* Doorbells, stride 4 bytes (CAP.DSTRD 0): tail of submission queue q, head of completion queue. */
#define NVME_DOORBELL_SQ(q) (NVME_REG_DOORBELLS + 8u * (q))
#define NVME_DOORBELL_CQ(q) (NVME_REG_DOORBELLS + 8u * (q) + 4u)
#define NVME_QUEUES_MAX     256u /* of each kind, the admin queue included */
/* Place in our controllers; drivers read the MSI-X capability. */
#define NVME_MSIX_TABLE 0x2000u
#define NVME_MSIX_PBA   0x3000u

#define NVME_CAP_MQES(cap)  ((uint32_t)((cap)&0xffffu) + 1u) /* entries of a queue at most */
#define NVME_CAP_CQR        0x10000u                         /* queues must be contiguous */
#define NVME_CAP_TO_SHIFT   24                               /* ready within, units of 500 ms */
#define NVME_CAP_DSTRD(cap) ((unsigned)((cap) >> 32 & 0xfu))
#define NVME_CAP_CSS_NVM    (UINT64_C(1) << 37)

#define NVME_CC_EN           0x1u
#define NVME_CC_MPS(cc)      ((cc) >> 7 & 0xfu) /* memory page: 4096 << */
#define NVME_CC_SHN(cc)      ((cc) >> 14 & 0x3u)
#define NVME_CC_SHN_NORMAL   (1u << 14)
#define NVME_CC_SHN_MASK     (3u << 14)
#define NVME_CC_IOSQES(log2) ((uint32_t)(log2) << 16)
#define NVME_CC_IOCQES(log2) ((uint32_t)(log2) << 20)

#define NVME_CSTS_RDY           0x1u
#define NVME_CSTS_CFS           0x2u /* fatal */
#define NVME_CSTS_SHST_MASK     0xcu
#define NVME_CSTS_SHST_COMPLETE 0x8u

/* Controller memory buffer (3.1.11, 3.1.12). */
#define NVME_CMBLOC_BAR_MASK   0x7u
#define NVME_CMBSZ_SQS         0x01u /* submission queues may lie there */
#define NVME_CMBSZ_CQS         0x02u
#define NVME_CMBSZ_LISTS       0x04u /* PRP lists */
#define NVME_CMBSZ_RDS         0x08u /* data from the controller */
#define NVME_CMBSZ_WDS         0x10u /* data to the controller */
#define NVME_CMBSZ_UNITS_SHIFT 8     /* 4 KiB << 4 x */
#define NVME_CMBSZ_SIZE_SHIFT  12
#define NVME_CMBSZ_BYTES(size) ((uint64_t)((size) >> 12) << (12 + 4 * ((size) >> 8 & 0xfu)))

/* ---- Queue entries (section 4) --------------------------------------------------------------- */
#define NVME_PAGE_BYTES 4096u
#define NVME_SQE_BYTES  64u
#define NVME_CQE_BYTES  16u
#define NVME_SQE_LOG2   6
#define NVME_CQE_LOG2   4

struct nvme_sqe {
    uint8_t opcode;
    uint8_t flags; /* fused, PSDT: 0 is PRP */
    uint16_t cid;
    uint32_t nsid;
    uint32_t cdw2, cdw3;
    uint64_t metadata;
    uint64_t prp1, prp2;
    uint32_t cdw10, cdw11, cdw12, cdw13, cdw14, cdw15;
};
_Static_assert(sizeof(struct nvme_sqe) == NVME_SQE_BYTES, "a submission queue entry");
_Static_assert(offsetof(struct nvme_sqe, opcode) == 0, "opcode");
_Static_assert(offsetof(struct nvme_sqe, flags) == 1, "flags");
_Static_assert(offsetof(struct nvme_sqe, cid) == 2, "cid");
_Static_assert(offsetof(struct nvme_sqe, nsid) == 4, "nsid");
_Static_assert(offsetof(struct nvme_sqe, cdw2) == 8, "cdw2");
_Static_assert(offsetof(struct nvme_sqe, cdw3) == 12, "cdw3");
_Static_assert(offsetof(struct nvme_sqe, metadata) == 16, "metadata");
_Static_assert(offsetof(struct nvme_sqe, prp1) == 24, "prp1");
_Static_assert(offsetof(struct nvme_sqe, prp2) == 32, "prp2");
_Static_assert(offsetof(struct nvme_sqe, cdw10) == 40, "cdw10");
_Static_assert(offsetof(struct nvme_sqe, cdw11) == 44, "cdw11");
_Static_assert(offsetof(struct nvme_sqe, cdw12) == 48, "cdw12");
_Static_assert(offsetof(struct nvme_sqe, cdw13) == 52, "cdw13");
_Static_assert(offsetof(struct nvme_sqe, cdw14) == 56, "cdw14");
_Static_assert(offsetof(struct nvme_sqe, cdw15) == 60, "cdw15");

struct nvme_cqe {
    uint32_t result; /* double word 0 */
    uint32_t reserved;
    uint16_t sq_head;
    uint16_t sq_id;
    uint16_t cid;
    uint16_t status; /* bit 0: phase; bits 15:1: enum nvme_status */
};
_Static_assert(sizeof(struct nvme_cqe) == NVME_CQE_BYTES, "a completion queue entry");
_Static_assert(offsetof(struct nvme_cqe, result) == 0, "result");
_Static_assert(offsetof(struct nvme_cqe, sq_head) == 8, "sq_head");
_Static_assert(offsetof(struct nvme_cqe, sq_id) == 10, "sq_id");
_Static_assert(offsetof(struct nvme_cqe, cid) == 12, "cid");
_Static_assert(offsetof(struct nvme_cqe, status) == 14, "status");
#define NVME_CQE_PHASE 0x1u

/* Status field without phase: code, type << 8, do not retry << 14 (4.6.1). */
enum nvme_status {
    NVME_SC_SUCCESS = 0x000,
    NVME_SC_INVALID_OPCODE = 0x001,
    NVME_SC_INVALID_FIELD = 0x002,
    NVME_SC_DATA_TRANSFER_ERROR = 0x004,
    NVME_SC_ABORTED_SQ_DELETED = 0x008,
    NVME_SC_INVALID_NAMESPACE = 0x00b,
    NVME_SC_PRP_OFFSET_INVALID = 0x013,
    NVME_SC_LBA_OUT_OF_RANGE = 0x080,
    NVME_SC_CQ_INVALID = 0x100,
    NVME_SC_QUEUE_ID_INVALID = 0x101,
    NVME_SC_QUEUE_SIZE_INVALID = 0x102,
    NVME_SC_ASYNC_LIMIT = 0x105,
    NVME_SC_VECTOR_INVALID = 0x108,
    NVME_SC_QUEUE_DELETION_INVALID = 0x10c,
};

/* ---- Admin commands (section 5) -------------------------------------------------------------- */
enum nvme_admin_opcode {
    NVME_ADMIN_DELETE_SQ = 0x00,
    NVME_ADMIN_CREATE_SQ = 0x01,
    NVME_ADMIN_DELETE_CQ = 0x04,
    NVME_ADMIN_CREATE_CQ = 0x05,
    NVME_ADMIN_IDENTIFY = 0x06,
    NVME_ADMIN_ABORT = 0x08,
    NVME_ADMIN_SET_FEATURES = 0x09,
    NVME_ADMIN_GET_FEATURES = 0x0a,
    NVME_ADMIN_ASYNC_EVENT = 0x0c,
};
#define NVME_FEATURE_QUEUES 0x07u /* cdw11 and result: SQs - 1, (CQs - 1) << 16 */

/* Create: cdw10 number | (entries - 1) << 16; cdw11 of a CQ: flags | vector << 16, of an SQ: flags
 * | CQ << 16. */
#define NVME_QUEUE_CONTIGUOUS 0x1u
#define NVME_CQ_INTERRUPTS    0x2u
/* Abort, result bit 0: the command was not aborted. */
#define NVME_ABORT_NOT_ABORTED 0x1u

#define NVME_IDENTIFY_BYTES      4096u
#define NVME_IDENTIFY_NAMESPACE  0x00u /* cdw10 */
#define NVME_IDENTIFY_CONTROLLER 0x01u
#define NVME_IDENTIFY_ACTIVE     0x02u /* list of active namespaces */
/* Offsets in the data of Identify Controller (figure 109) ... */
#define NVME_ID_CTRL_VID    0u
#define NVME_ID_CTRL_SERIAL 4u  /* 20 characters */
#define NVME_ID_CTRL_MODEL  24u /* 40 characters */
#define NVME_ID_CTRL_MDTS   77u /* a transfer at most: 4096 << this; 0: any */
#define NVME_ID_CTRL_VER    80u
#define NVME_ID_CTRL_SQES   512u
#define NVME_ID_CTRL_CQES   513u
#define NVME_ID_CTRL_NN     516u
/* ... and of Identify Namespace (figure 114). */
#define NVME_ID_NS_SIZE     0u /* blocks, 8 bytes */
#define NVME_ID_NS_CAPACITY 8u
#define NVME_ID_NS_USE      16u
#define NVME_ID_NS_NLBAF    25u
#define NVME_ID_NS_FLBAS    26u
#define NVME_ID_NS_LBAF0    128u /* 4 bytes each; bits 23:16: log2 of the block's bytes */

/* ---- NVM commands (section 6): cdw10/11 first block, cdw12 15:0 blocks - 1 ------------------- */
enum nvme_opcode {
    NVME_FLUSH = 0x00,
    NVME_WRITE = 0x01,
    NVME_READ = 0x02,
};

#endif
