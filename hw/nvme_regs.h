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
#define NVME_VENDOR_SAMSUNG   0x144du
#define NVME_DEVICE_PM1725A   0xa822u
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
#define NVME_CAP_AMS_WRR    0x20000u /* weighted round robin with urgent priority class */
#define NVME_CAP_TO_SHIFT   24       /* ready within, units of 500 ms */
#define NVME_CAP_DSTRD(cap) ((unsigned)((cap) >> 32 & 0xfu))
#define NVME_CAP_CSS_NVM    (UINT64_C(1) << 37)

#define NVME_CC_EN            0x1u
#define NVME_CC_CSS(cc)       ((cc) >> 4 & 0x7u)  /* command set; 0: NVM */
#define NVME_CC_AMS(cc)       ((cc) >> 11 & 0x7u) /* arbitration */
#define NVME_CC_AMS_RR        0x0u
#define NVME_CC_AMS_WRR       0x1u
#define NVME_CC_AMS_SHIFT     11
#define NVME_CC_IOSQES_OF(cc) ((cc) >> 16 & 0xfu)
#define NVME_CC_IOCQES_OF(cc) ((cc) >> 20 & 0xfu)
#define NVME_CC_MPS(cc)       ((cc) >> 7 & 0xfu) /* memory page: 4096 << */
#define NVME_CC_SHN(cc)       ((cc) >> 14 & 0x3u)
#define NVME_CC_SHN_NORMAL    (1u << 14)
#define NVME_CC_SHN_MASK      (3u << 14)
#define NVME_CC_IOSQES(log2)  ((uint32_t)(log2) << 16)
#define NVME_CC_IOCQES(log2)  ((uint32_t)(log2) << 20)

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

/* Flags of an entry (4.2): which of two fused commands; how data is described. */
enum nvme_sqe_flags {
    NVME_FUSE_MASK = 0x03,
    NVME_FUSE_FIRST = 0x01,
    NVME_FUSE_SECOND = 0x02,
    NVME_PSDT_MASK = 0xc0,
    NVME_PSDT_PRP = 0x00,
    NVME_PSDT_SGL = 0x40,         /* metadata pointer is an address */
    NVME_PSDT_SGL_SEGMENT = 0x80, /* metadata pointer is a segment's */
};

/* Status field without phase: code, type << 8, more << 13, do not retry << 14 (4.6.1). */
enum nvme_status {
    NVME_SC_SUCCESS = 0x000,
    NVME_SC_INVALID_OPCODE = 0x001,
    NVME_SC_INVALID_FIELD = 0x002,
    NVME_SC_CID_CONFLICT = 0x003,
    NVME_SC_DATA_TRANSFER_ERROR = 0x004,
    NVME_SC_POWER_LOSS = 0x005,
    NVME_SC_INTERNAL_ERROR = 0x006,
    NVME_SC_ABORT_REQUESTED = 0x007,
    NVME_SC_ABORTED_SQ_DELETED = 0x008,
    NVME_SC_FUSED_FAILED = 0x009,
    NVME_SC_FUSED_MISSING = 0x00a,
    NVME_SC_INVALID_NAMESPACE = 0x00b, /* or its format */
    NVME_SC_SEQUENCE_ERROR = 0x00c,
    NVME_SC_SGL_SEGMENT_INVALID = 0x00d,
    NVME_SC_SGL_COUNT_INVALID = 0x00e,
    NVME_SC_SGL_LENGTH_INVALID = 0x00f,
    NVME_SC_SGL_METADATA_LENGTH = 0x010,
    NVME_SC_SGL_TYPE_INVALID = 0x011,
    NVME_SC_CMB_USE_INVALID = 0x012,
    NVME_SC_PRP_OFFSET_INVALID = 0x013,
    NVME_SC_ATOMIC_WRITE_EXCEEDED = 0x014,
    NVME_SC_LBA_OUT_OF_RANGE = 0x080,
    NVME_SC_CAPACITY_EXCEEDED = 0x081,
    NVME_SC_NAMESPACE_NOT_READY = 0x082,
    NVME_SC_CQ_INVALID = 0x100,
    NVME_SC_QUEUE_ID_INVALID = 0x101,
    NVME_SC_QUEUE_SIZE_INVALID = 0x102,
    NVME_SC_ABORT_LIMIT = 0x103,
    NVME_SC_ASYNC_LIMIT = 0x105,
    NVME_SC_VECTOR_INVALID = 0x108,
    NVME_SC_LOG_PAGE_INVALID = 0x109,
    NVME_SC_QUEUE_DELETION_INVALID = 0x10c,
    NVME_SC_FEATURE_NOT_SAVEABLE = 0x10d,
    NVME_SC_FEATURE_NOT_CHANGEABLE = 0x10e,
    NVME_SC_FEATURE_NOT_PER_NAMESPACE = 0x10f,
    NVME_SC_CONTROLLER_ID_INVALID = 0x11f,
    NVME_SC_SECONDARY_STATE_INVALID = 0x120,
    NVME_SC_RESOURCE_COUNT_INVALID = 0x121,
    NVME_SC_RESOURCE_ID_INVALID = 0x122,
    NVME_SC_CONFLICTING_ATTRIBUTES = 0x180,
    NVME_SC_WRITE_FAULT = 0x280,
    NVME_SC_UNRECOVERED_READ = 0x281,
    NVME_SC_COMPARE_FAILURE = 0x285,
};
#define NVME_STATUS_CODE(status) ((status)&0x7ffu) /* with its type: enum nvme_status */
#define NVME_STATUS_MORE         0x2000u           /* the Error Information log has more */
#define NVME_STATUS_DNR          0x4000u           /* do not retry */

/* ---- Scatter gather lists (section 4.4) ------------------------------------------------------ */
#define NVME_SGL_BYTES 16u
struct nvme_sgl {
    uint64_t address;
    uint32_t bytes; /* of data, or of the segment */
    uint8_t reserved[3];
    uint8_t type; /* type << 4 | sub type */
};
_Static_assert(sizeof(struct nvme_sgl) == NVME_SGL_BYTES, "an SGL descriptor");
_Static_assert(offsetof(struct nvme_sgl, bytes) == 8, "bytes");
_Static_assert(offsetof(struct nvme_sgl, type) == 15, "type");
enum nvme_sgl_type { /* sub type 0: address */
                     NVME_SGL_DATA = 0x00,
                     NVME_SGL_BIT_BUCKET = 0x10,
                     NVME_SGL_SEGMENT = 0x20,
                     NVME_SGL_LAST_SEGMENT = 0x30,
                     NVME_SGL_KEYED = 0x40,
                     NVME_SGL_VENDOR = 0xf0,
};

/* ---- Admin commands (section 5) -------------------------------------------------------------- */
enum nvme_admin_opcode {
    NVME_ADMIN_DELETE_SQ = 0x00,
    NVME_ADMIN_CREATE_SQ = 0x01,
    NVME_ADMIN_GET_LOG = 0x02,
    NVME_ADMIN_DELETE_CQ = 0x04,
    NVME_ADMIN_CREATE_CQ = 0x05,
    NVME_ADMIN_IDENTIFY = 0x06,
    NVME_ADMIN_ABORT = 0x08,
    NVME_ADMIN_SET_FEATURES = 0x09,
    NVME_ADMIN_GET_FEATURES = 0x0a,
    NVME_ADMIN_ASYNC_EVENT = 0x0c,
    NVME_ADMIN_VIRTUALIZATION = 0x1c,
};
#define NVME_NSID_ALL 0xffffffffu

/* Create: cdw10 number | (entries - 1) << 16; cdw11 of a CQ: flags | vector << 16, of an SQ: flags
 * | priority << 1 | CQ << 16. */
#define NVME_QUEUE_CONTIGUOUS 0x1u
#define NVME_CQ_INTERRUPTS    0x2u
enum nvme_sq_priority { /* 5.4; with weighted round robin */
                        NVME_SQ_URGENT = 0x0,
                        NVME_SQ_HIGH = 0x1,
                        NVME_SQ_MEDIUM = 0x2,
                        NVME_SQ_LOW = 0x3,
};
#define NVME_SQ_PRIORITY_SHIFT 1
/* Abort: cdw10 SQ | command identifier << 16; result bit 0: the command was not aborted. */
#define NVME_ABORT_NOT_ABORTED 0x1u

/* Features (5.21.1): cdw10 of Set and Get. */
enum nvme_feature {
    NVME_FEATURE_ARBITRATION = 0x01,
    NVME_FEATURE_POWER = 0x02,
    NVME_FEATURE_TEMPERATURE = 0x04,
    NVME_FEATURE_ERROR_RECOVERY = 0x05,
    NVME_FEATURE_QUEUES = 0x07, /* cdw11 and result: SQs - 1, (CQs - 1) << 16 */
    NVME_FEATURE_COALESCING = 0x08,
    NVME_FEATURE_VECTOR = 0x09,
    NVME_FEATURE_WRITE_ATOMICITY = 0x0a,
    NVME_FEATURE_ASYNC_EVENTS = 0x0b,
};
enum nvme_feature_select { /* Get Features: cdw10 10:8 */
                           NVME_SELECT_CURRENT = 0x0,
                           NVME_SELECT_DEFAULT = 0x1,
                           NVME_SELECT_SAVED = 0x2,
                           NVME_SELECT_SUPPORTED = 0x3,
};
enum nvme_feature_capability { /* answer to NVME_SELECT_SUPPORTED */
                               NVME_FEATURE_SAVEABLE = 0x1,
                               NVME_FEATURE_PER_NAMESPACE = 0x2,
                               NVME_FEATURE_CHANGEABLE = 0x4,
};
#define NVME_FEATURE_SELECT_SHIFT 8
#define NVME_FEATURE_SAVE         0x80000000u /* Set Features, cdw10 */
#define NVME_ARBITRATION_NO_LIMIT 0x7u        /* burst, log2 */
#define NVME_VECTOR_NOT_COALESCED 0x10000u
/* Temperature threshold (5.21.1.4): kelvin, sensor << 16, type << 20. */
#define NVME_TEMPERATURE_UNDER 0x100000u
#define NVME_TEMPERATURE_ALL   0xfu /* Set: all sensors */
/* Asynchronous events (5.2): result is type | information << 8 | log page << 16. */
enum nvme_event_type {
    NVME_EVENT_ERROR = 0x0,
    NVME_EVENT_HEALTH = 0x1,
    NVME_EVENT_NOTICE = 0x2,
};
enum nvme_event_error {
    NVME_EVENT_DOORBELL_REGISTER = 0x0,
    NVME_EVENT_DOORBELL_VALUE = 0x1,
    NVME_EVENT_DIAGNOSTIC = 0x2,
    NVME_EVENT_PERSISTENT = 0x3,
    NVME_EVENT_TRANSIENT = 0x4,
};
enum nvme_event_health {
    NVME_EVENT_RELIABILITY = 0x0,
    NVME_EVENT_TEMPERATURE = 0x1,
    NVME_EVENT_SPARE = 0x2,
};

/* ---- Log pages (5.14) ------------------------------------------------------------------------ */
enum nvme_log {
    NVME_LOG_ERROR = 0x01,
    NVME_LOG_HEALTH = 0x02,
    NVME_LOG_FIRMWARE = 0x03,
    NVME_LOG_EFFECTS = 0x05,
};
/* Get Log Page: cdw10 page | retain event | (double words - 1) << 16, cdw11 more of them; cdw12 and
 * cdw13 offset. */
#define NVME_LOG_RETAIN_EVENT 0x8000u
#define NVME_LOG_ERROR_BYTES  64u

struct nvme_error_entry { /* 5.14.1.1 */
    uint64_t count;       /* of errors so far; 0: no entry */
    uint16_t sq_id, cid;
    uint16_t status;   /* as in the completion, phase too */
    uint16_t location; /* of the wrong field: byte of the command, bit << 8; 0xffff: none */
    uint64_t lba;
    uint32_t nsid;
    uint8_t vendor, reserved1[3];
    uint64_t specific;
    uint8_t reserved2[24];
};
_Static_assert(sizeof(struct nvme_error_entry) == NVME_LOG_ERROR_BYTES, "an error entry");
_Static_assert(offsetof(struct nvme_error_entry, status) == 12, "status");
_Static_assert(offsetof(struct nvme_error_entry, lba) == 16, "lba");
_Static_assert(offsetof(struct nvme_error_entry, nsid) == 24, "nsid");
_Static_assert(offsetof(struct nvme_error_entry, specific) == 32, "specific");

#define NVME_LOG_HEALTH_BYTES   512u
#define NVME_LOG_FIRMWARE_BYTES 512u
#define NVME_LOG_EFFECTS_BYTES  4096u
/* Offsets in the health log (5.14.1.2); counts have 16 bytes. */
enum nvme_health_offset {
    NVME_HEALTH_WARNING = 0,
    NVME_HEALTH_TEMPERATURE = 1, /* kelvin, 2 bytes */
    NVME_HEALTH_SPARE = 3,       /* percent */
    NVME_HEALTH_SPARE_THRESHOLD = 4,
    NVME_HEALTH_USED = 5,
    NVME_HEALTH_UNITS_READ = 32, /* thousands of 512 bytes */
    NVME_HEALTH_UNITS_WRITTEN = 48,
    NVME_HEALTH_READS = 64, /* commands of the host */
    NVME_HEALTH_WRITES = 80,
    NVME_HEALTH_BUSY_MINUTES = 96,
    NVME_HEALTH_POWER_CYCLES = 112,
    NVME_HEALTH_POWER_HOURS = 128,
    NVME_HEALTH_UNSAFE = 144,
    NVME_HEALTH_MEDIA_ERRORS = 160,
    NVME_HEALTH_ERROR_ENTRIES = 176,
};
enum nvme_health_warning { /* also Asynchronous Event Configuration 7:0 */
                           NVME_WARN_SPARE = 0x01,
                           NVME_WARN_TEMPERATURE = 0x02,
                           NVME_WARN_RELIABILITY = 0x04,
                           NVME_WARN_READ_ONLY = 0x08,
                           NVME_WARN_BACKUP = 0x10,
};
enum nvme_firmware_offset { /* 5.14.1.3 */
                            NVME_FIRMWARE_ACTIVE = 0,
                            NVME_FIRMWARE_SLOT1 = 8, /* 8 characters */
};
enum nvme_effects_offset { /* 5.14.1.5: 4 bytes for each opcode */
                           NVME_EFFECTS_ADMIN = 0,
                           NVME_EFFECTS_IO = 1024,
};
enum nvme_effect {
    NVME_EFFECT_SUPPORTED = 0x1,
    NVME_EFFECT_CONTENT = 0x2,     /* logical blocks change */
    NVME_EFFECT_CAPABILITY = 0x10, /* controller capabilities change */
};

/* ---- Identify (5.15) ------------------------------------------------------------------------- */
#define NVME_IDENTIFY_BYTES 4096u
enum nvme_identify { /* cdw10 7:0 */
                     NVME_IDENTIFY_NAMESPACE = 0x00,
                     NVME_IDENTIFY_CONTROLLER = 0x01,
                     NVME_IDENTIFY_ACTIVE = 0x02,      /* list of active namespaces */
                     NVME_IDENTIFY_DESCRIPTORS = 0x03, /* namespace identification */
                     NVME_IDENTIFY_NS_CONTROLLERS = 0x12,
                     NVME_IDENTIFY_CONTROLLERS = 0x13, /* from cdw10 31:16 on */
                     NVME_IDENTIFY_PRIMARY = 0x14,     /* controller capabilities */
                     NVME_IDENTIFY_SECONDARY = 0x15,   /* controller list */
};
/* Offsets in the data of Identify Controller (5.15.3) ... */
enum nvme_id_ctrl_offset {
    NVME_ID_CTRL_VID = 0,
    NVME_ID_CTRL_SSVID = 2,
    NVME_ID_CTRL_SERIAL = 4,    /* 20 characters */
    NVME_ID_CTRL_MODEL = 24,    /* 40 characters */
    NVME_ID_CTRL_FIRMWARE = 64, /* 8 characters */
    NVME_ID_CTRL_RAB = 72,
    NVME_ID_CTRL_CMIC = 76,
    NVME_ID_CTRL_MDTS = 77, /* a transfer at most: 4096 << this; 0: any */
    NVME_ID_CTRL_CNTLID = 78,
    NVME_ID_CTRL_VER = 80,
    NVME_ID_CTRL_OAES = 92,
    NVME_ID_CTRL_OACS = 256,
    NVME_ID_CTRL_ACL = 258,
    NVME_ID_CTRL_AERL = 259,
    NVME_ID_CTRL_FRMW = 260,
    NVME_ID_CTRL_LPA = 261,
    NVME_ID_CTRL_ELPE = 262,
    NVME_ID_CTRL_NPSS = 263,
    NVME_ID_CTRL_WCTEMP = 266,
    NVME_ID_CTRL_CCTEMP = 268,
    NVME_ID_CTRL_SQES = 512,
    NVME_ID_CTRL_CQES = 513,
    NVME_ID_CTRL_MAXCMD = 514,
    NVME_ID_CTRL_NN = 516,
    NVME_ID_CTRL_ONCS = 520,
    NVME_ID_CTRL_FUSES = 522,
    NVME_ID_CTRL_VWC = 525,
    NVME_ID_CTRL_AWUN = 526,
    NVME_ID_CTRL_AWUPF = 528,
    NVME_ID_CTRL_ACWU = 532,
    NVME_ID_CTRL_SGLS = 536,
    NVME_ID_CTRL_SUBNQN = 768, /* 256 bytes */
    NVME_ID_CTRL_PSD0 = 2048,
};
enum nvme_cmic { NVME_CMIC_PORTS = 0x1, NVME_CMIC_CONTROLLERS = 0x2, NVME_CMIC_VF = 0x4 };
enum nvme_oacs { NVME_OACS_VIRTUALIZATION = 0x80 };
enum nvme_frmw { NVME_FRMW_SLOT1_READ_ONLY = 0x1, NVME_FRMW_ONE_SLOT = 0x2 };
enum nvme_lpa { NVME_LPA_EFFECTS = 0x2, NVME_LPA_EXTENDED = 0x4 };
enum nvme_oncs {
    NVME_ONCS_COMPARE = 0x01,
    NVME_ONCS_WRITE_UNCORRECTABLE = 0x02,
    NVME_ONCS_DATASET = 0x04,
    NVME_ONCS_WRITE_ZEROES = 0x08,
    NVME_ONCS_SAVE_SELECT = 0x10,
};
enum nvme_sgls {
    NVME_SGLS_ANY_ALIGNMENT = 0x1,
    NVME_SGLS_BIT_BUCKET = 0x10000,
    NVME_SGLS_LONGER = 0x40000, /* than the data */
};
/* ... of Identify Namespace (5.15.2) ... */
enum nvme_id_ns_offset {
    NVME_ID_NS_SIZE = 0, /* blocks, 8 bytes */
    NVME_ID_NS_CAPACITY = 8,
    NVME_ID_NS_USE = 16,
    NVME_ID_NS_NSFEAT = 24,
    NVME_ID_NS_NLBAF = 25,
    NVME_ID_NS_FLBAS = 26,
    NVME_ID_NS_NMIC = 30,
    NVME_ID_NS_DLFEAT = 33,
    NVME_ID_NS_NGUID = 104,
    NVME_ID_NS_EUI64 = 120,
    NVME_ID_NS_LBAF0 = 128, /* 4 bytes each; bits 23:16: log2 of the block's bytes */
};
enum nvme_nmic { NVME_NMIC_SHARED = 0x1 };
enum nvme_dlfeat { NVME_DLFEAT_ZEROS = 0x1, NVME_DLFEAT_WRITE_ZEROES = 0x8 };
/* ... of namespace identification descriptors (5.15.5): type, bytes, 2 reserved, identifier ... */
enum nvme_ns_identifier { NVME_NS_EUI64 = 0x1, NVME_NS_NGUID = 0x2 };
/* ... of Primary Controller Capabilities (5.15.10) ... */
enum nvme_id_primary_offset {
    NVME_ID_PRIMARY_CNTLID = 0,
    NVME_ID_PRIMARY_PORTID = 2,
    NVME_ID_PRIMARY_CRT = 4,     /* bit 0: queues, bit 1: interrupts are flexible */
    NVME_ID_PRIMARY_VQFRT = 32,  /* flexible queues in all */
    NVME_ID_PRIMARY_VQRFA = 36,  /* assigned */
    NVME_ID_PRIMARY_VQRFAP = 40, /* allocated to the primary controller */
    NVME_ID_PRIMARY_VQPRT = 42,  /* private ones of the primary controller */
    NVME_ID_PRIMARY_VQFRSM = 44, /* of a secondary controller at most */
    NVME_ID_PRIMARY_VQGRAN = 46,
    NVME_ID_PRIMARY_VIFRT = 64, /* the same of interrupts */
    NVME_ID_PRIMARY_VIRFA = 68,
    NVME_ID_PRIMARY_VIRFAP = 72,
    NVME_ID_PRIMARY_VIPRT = 74,
    NVME_ID_PRIMARY_VIFRSM = 76,
    NVME_ID_PRIMARY_VIGRAN = 78,
};
/* ... and of the Secondary Controller List (5.15.11). */
enum nvme_id_secondary_offset {
    NVME_ID_SECONDARY_COUNT = 0,
    NVME_ID_SECONDARY_ENTRIES = 32, /* 32 bytes each: */
    NVME_SECONDARY_SCID = 0,
    NVME_SECONDARY_PCID = 2,
    NVME_SECONDARY_STATE = 4, /* bit 0: online */
    NVME_SECONDARY_VFN = 8,
    NVME_SECONDARY_NVQ = 10,
    NVME_SECONDARY_NVI = 12,
};
#define NVME_SECONDARY_BYTES 32u
/* Virtualization Management (5.22): cdw10 action | resource << 8 | controller << 16; cdw11 number
 * of resources; result: how many were changed. */
enum nvme_virtualization {
    NVME_VIRTUAL_PRIMARY_ALLOCATE = 0x1,
    NVME_VIRTUAL_OFFLINE = 0x7,
    NVME_VIRTUAL_ASSIGN = 0x8,
    NVME_VIRTUAL_ONLINE = 0x9,
};
enum nvme_resource { NVME_RESOURCE_QUEUES = 0x0, NVME_RESOURCE_INTERRUPTS = 0x1 };

/* ---- NVM commands (section 6): cdw10/11 first block, cdw12 15:0 blocks - 1 ------------------- */
enum nvme_opcode {
    NVME_FLUSH = 0x00,
    NVME_WRITE = 0x01,
    NVME_READ = 0x02,
    NVME_WRITE_UNCORRECTABLE = 0x04,
    NVME_COMPARE = 0x05,
    NVME_WRITE_ZEROES = 0x08,
    NVME_DATASET = 0x09, /* cdw10 ranges - 1, cdw11 attributes */
};
#define NVME_PRINFO_SHIFT       26 /* cdw12: protection information */
#define NVME_PRINFO_MASK        0xfu
#define NVME_DATASET_DEALLOCATE 0x4u
#define NVME_DATASET_RANGES_MAX 256u
struct nvme_range { /* 6.7 */
    uint32_t context, blocks;
    uint64_t first;
};
_Static_assert(sizeof(struct nvme_range) == 16, "a range");
_Static_assert(offsetof(struct nvme_range, first) == 8, "first");

#endif
