/*
 * Intel Data Streaming Accelerator: registers, work queues, portals, descriptors, completion
 * records.
 *
 * Source: Intel Data Streaming Accelerator Architecture Specification (341204), version 1.0 of the
 * device. Sections are named by their titles, since their numbers differ among the revisions.
 * Values of a Sapphire Rapids device: docs/sources.md#dsa.
 */
#ifndef HW_DSA_REGS_H
#define HW_DSA_REGS_H

#include <stddef.h>
#include <stdint.h>

#define DSA_VENDOR_ID UINT16_C(0x8086)
#define DSA_DEVICE_ID UINT16_C(0x0b25)
#define DSA_CLASS     UINT32_C(0x088000) /* system peripheral, other */

#define DSA_BAR_REGISTERS   0u
#define DSA_BAR_PORTALS     2u
#define DSA_REGISTERS_BYTES UINT32_C(0x10000)

/* ---- "Portals": four pages of 4 KiB a work queue in BAR 2 ------------------------------------ */

#define DSA_PORTAL_BYTES  UINT32_C(4096)
#define DSA_PORTALS_OF_WQ UINT32_C(4)
/* Unlimited and limited portal of a queue; two more for interrupts from the message store. A shared
 * queue takes descriptors by a limited portal up to its threshold, by an unlimited one up to its
 * size. */
#define DSA_PORTAL_UNLIMITED UINT32_C(0)
#define DSA_PORTAL_LIMITED   UINT32_C(1)
#define DSA_PORTAL(wq, kind) (((wq)*DSA_PORTALS_OF_WQ + (kind)) * DSA_PORTAL_BYTES)

/* ---- "Register descriptions": BAR 0 ---------------------------------------------------------- */

#define DSA_VERSION   0x00u /* 32 bits: major 15:8, minor 7:0 */
#define DSA_VERSION_1 0x100u

#define DSA_GENCAP                     0x10u /* 64 bits */
#define DSA_GENCAP_BLOCK_ON_FAULT      (UINT64_C(1) << 0)
#define DSA_GENCAP_OVERLAP             (UINT64_C(1) << 1) /* memory move of ranges that overlap */
#define DSA_GENCAP_CACHE_MEMORY        (UINT64_C(1) << 2) /* Cache Control flag for writes */
#define DSA_GENCAP_CACHE_FLUSH         (UINT64_C(1) << 3)
#define DSA_GENCAP_COMMAND_CAPABILITY  (UINT64_C(1) << 4) /* CMDCAP is there */
#define DSA_GENCAP_READBACK            (UINT64_C(1) << 8) /* Destination Readback flag */
#define DSA_GENCAP_DRAIN_READBACK      (UINT64_C(1) << 9)
#define DSA_GENCAP_TRANSFER_LOG2_SHIFT 16u
#define DSA_GENCAP_TRANSFER_LOG2_MASK  (UINT64_C(0x1f) << 16)
#define DSA_GENCAP_BATCH_LOG2_SHIFT    21u
#define DSA_GENCAP_BATCH_LOG2_MASK     (UINT64_C(0xf) << 21)
#define DSA_GENCAP_MESSAGE_STORE_SHIFT 25u
#define DSA_GENCAP_CONFIGURABLE \
    (UINT64_C(1) << 31) /* WQCFG, GRPCFG, GENCFG can be
                                                            * written */

#define DSA_WQCAP                  0x20u            /* 64 bits */
#define DSA_WQCAP_ENTRIES_MASK     UINT64_C(0xffff) /* of all queues together */
#define DSA_WQCAP_QUEUES_SHIFT     16u
#define DSA_WQCAP_QUEUES_MASK      (UINT64_C(0xff) << 16)
#define DSA_WQCAP_CONFIG_SHIFT     24u /* WQCFG has 2^(5 + this) bytes */
#define DSA_WQCAP_CONFIG_MASK      (UINT64_C(0xf) << 24)
#define DSA_WQCAP_SHARED           (UINT64_C(1) << 48)
#define DSA_WQCAP_DEDICATED        (UINT64_C(1) << 49)
#define DSA_WQCAP_TRANSLATION      (UINT64_C(1) << 50)
#define DSA_WQCAP_PRIORITY         (UINT64_C(1) << 51)
#define DSA_WQCAP_OCCUPANCY        (UINT64_C(1) << 52)
#define DSA_WQCAP_OCCUPANCY_VECTOR (UINT64_C(1) << 53)

#define DSA_GRPCAP                    0x30u /* 64 bits */
#define DSA_GRPCAP_GROUPS_MASK        UINT64_C(0xff)
#define DSA_GRPCAP_READ_BUFFERS_SHIFT 8u
#define DSA_GRPCAP_READ_BUFFERS_MASK  (UINT64_C(0xff) << 8)
#define DSA_GRPCAP_READ_BUFFERS_SET   (UINT64_C(1) << 16) /* GRPFLGCFG reserves and allows them */
#define DSA_GRPCAP_READ_BUFFERS_LIMIT (UINT64_C(1) << 17) /* GENCFG has a limit for all groups */

#define DSA_ENGCAP              0x38u /* 64 bits */
#define DSA_ENGCAP_ENGINES_MASK UINT64_C(0xff)

#define DSA_OPCAP 0x40u /* 256 bits: one for each operation */

/* Where tables are, in units of 256 bytes. */
#define DSA_OFFSETS                  0x60u /* 128 bits */
#define DSA_OFFSETS_UNIT             0x100u
#define DSA_OFFSETS_GROUPS_SHIFT     0u
#define DSA_OFFSETS_QUEUES_SHIFT     16u
#define DSA_OFFSETS_PERMISSION_SHIFT 32u
#define DSA_OFFSETS_STORE_SHIFT      48u

#define DSA_GENCFG                   0x80u /* 32 bits */
#define DSA_GENCFG_READ_BUFFERS_MASK 0xffu /* for all groups that use the limit */

#define DSA_GENCTRL              0x88u     /* 32 bits */
#define DSA_GENCTRL_ERROR_VECTOR (1u << 0) /* interrupt on a software error */
#define DSA_GENCTRL_HALT_VECTOR  (1u << 1)

#define DSA_GENSTS             0x90u /* 32 bits */
#define DSA_GENSTS_STATE_MASK  0x3u
#define DSA_GENSTS_RESET_SHIFT 2u
enum dsa_state { DSA_DISABLED = 0, DSA_ENABLED = 1, DSA_DRAINING = 2, DSA_HALTED = 3 };
enum dsa_reset {
    DSA_RESET_SOFTWARE = 0,
    DSA_RESET_FUNCTION = 1,
    DSA_RESET_WARM = 2,
    DSA_RESET_COLD = 3
};

#define DSA_INTCAUSE           0x98u /* 32 bits, write 1 to clear */
#define DSA_INTCAUSE_ERROR     (1u << 0)
#define DSA_INTCAUSE_COMMAND   (1u << 1)
#define DSA_INTCAUSE_OCCUPANCY (1u << 2)
#define DSA_INTCAUSE_HALT      (1u << 4)

#define DSA_CMD              0xa0u /* 32 bits, write only */
#define DSA_CMD_OPERAND_MASK 0xfffffu
#define DSA_CMD_SHIFT        20u
#define DSA_CMD_CODE_MASK    (0x1fu << 20)
#define DSA_CMD_VECTOR       (1u << 31) /* interrupt at the command's end */
enum dsa_command {
    DSA_CMD_ENABLE_DEVICE = 1,
    DSA_CMD_DISABLE_DEVICE = 2,
    DSA_CMD_DRAIN_ALL = 3,
    DSA_CMD_ABORT_ALL = 4,
    DSA_CMD_RESET_DEVICE = 5,
    DSA_CMD_ENABLE_WQ = 6,  /* operand: the queue */
    DSA_CMD_DISABLE_WQ = 7, /* of this and the next three: bit i of 15:0, queues 16 * (19:16) + i */
    DSA_CMD_DRAIN_WQ = 8,
    DSA_CMD_ABORT_WQ = 9,
    DSA_CMD_RESET_WQ = 10,
    DSA_CMD_DRAIN_PASID = 11,
    DSA_CMD_ABORT_PASID = 12,
    DSA_CMD_REQUEST_HANDLE = 13,
    DSA_CMD_RELEASE_HANDLE = 14,
};

#define DSA_CMDSTS            0xa8u /* 32 bits */
#define DSA_CMDSTS_ERROR_MASK 0xffu
#define DSA_CMDSTS_ACTIVE     (1u << 31)
enum dsa_command_error {
    DSA_CMDSTS_OK = 0x00,
    DSA_CMDSTS_COMMAND = 0x01,       /* no such command */
    DSA_CMDSTS_QUEUE = 0x02,         /* no such queue */
    DSA_CMDSTS_ENABLED = 0x10,       /* enable device: it is not disabled */
    DSA_CMDSTS_CONFIGURATION = 0x11, /* a work queue or engine in two groups, or nowhere */
    DSA_CMDSTS_BUS_MASTER = 0x12,
    DSA_CMDSTS_ENTRIES = 0x14,       /* queues together larger than WQCAP says */
    DSA_CMDSTS_GROUP = 0x15,         /* a group with queues and without an engine */
    DSA_CMDSTS_GROUP_BUFFERS = 0x16, /* read buffers: allowed ones fewer than reserved, or none */
    DSA_CMDSTS_ALL_BUFFERS = 0x17,   /* reserved ones of all groups together are too many */
    DSA_CMDSTS_NOT_ENABLED = 0x20,   /* enable WQ: the device is not */
    DSA_CMDSTS_QUEUE_ENABLED = 0x21,
    DSA_CMDSTS_QUEUE_SIZE = 0x22,
    DSA_CMDSTS_QUEUE_PRIORITY = 0x23,
    DSA_CMDSTS_QUEUE_MODE = 0x24,
    DSA_CMDSTS_QUEUE_FAULT = 0x25, /* Block On Fault is not supported */
    DSA_CMDSTS_QUEUE_PASID = 0x26, /* a shared queue needs a PASID if PASIDs are on */
    DSA_CMDSTS_QUEUE_BATCH = 0x27,
    DSA_CMDSTS_QUEUE_TRANSFER = 0x28,
    DSA_CMDSTS_DEVICE_OFF = 0x31, /* disable device and others: the device is not enabled */
    DSA_CMDSTS_QUEUE_OFF = 0x32,  /* disable, drain, abort, reset WQ: none of them is enabled */
};

#define DSA_CMDCAP 0xb0u /* 32 bits: one for each command */

#define DSA_SWERR \
    0xc0u /* 256 bits; 1 written to a bit of the first two clears
                                         * it */
#define DSA_SWERR_VALID           (UINT64_C(1) << 0)
#define DSA_SWERR_OVERFLOW        (UINT64_C(1) << 1)
#define DSA_SWERR_DESCRIPTOR      (UINT64_C(1) << 2)
#define DSA_SWERR_QUEUE_VALID     (UINT64_C(1) << 3)
#define DSA_SWERR_BATCH           (UINT64_C(1) << 4)
#define DSA_SWERR_WRITE           (UINT64_C(1) << 5) /* of the faulting access */
#define DSA_SWERR_ERROR_SHIFT     8u
#define DSA_SWERR_QUEUE_SHIFT     16u
#define DSA_SWERR_OPERATION_SHIFT 32u
#define DSA_SWERR_WORDS           4u
/* 63:0 of the second word: index in the batch 15:0, invalid flags 63:32; the third: the address. */
#define DSA_SWERR_FLAGS_SHIFT 32u

/* Errors of portals, in SWERR's error field beside the status codes below. */
#define DSA_SWERR_PORTAL_OFF \
    0x50u /* of a queue that takes no such write: off, or of the other mode */
#define DSA_SWERR_PORTAL_FULL 0x51u /* a dedicated queue that is full */
#define DSA_SWERR_PORTAL_SIZE 0x52u /* not a write of 64 bytes */

/* "Group configuration table": 64 bytes a group. */
#define DSA_GRPCFG_BYTES            64u
#define DSA_GRPCFG_QUEUES           0u                 /* 256 bits */
#define DSA_GRPCFG_ENGINES          32u                /* 64 bits */
#define DSA_GRPCFG_FLAGS            40u                /* 64 bits */
#define DSA_GRPFLAGS_LIMIT          (UINT64_C(1) << 7) /* GENCFG's limit holds for this group */
#define DSA_GRPFLAGS_RESERVED_SHIFT 8u  /* read buffers for this group alone: 8 bits */
#define DSA_GRPFLAGS_ALLOWED_SHIFT  20u /* that it may have at a time: 8 bits */

/* "Work queue configuration table": of 32 bytes and 32 more if OPCFG is there (not here). */
#define DSA_WQCFG_BYTES           32u
#define DSA_WQCFG_SIZE            0u /* 15:0 entries */
#define DSA_WQCFG_THRESHOLD       4u /* 15:0 */
#define DSA_WQCFG_MODE            8u
#define DSA_WQCFG_DEDICATED       (1u << 0)
#define DSA_WQCFG_BLOCK           (1u << 1)
#define DSA_WQCFG_PRIORITY_SHIFT  4u
#define DSA_WQCFG_PRIORITY_MASK   (0xfu << 4)
#define DSA_WQCFG_PASID_ENABLE    (1u << 28)
#define DSA_WQCFG_LIMITS          12u
#define DSA_WQCFG_TRANSFER_MASK   0x1fu /* log2 of the largest transfer */
#define DSA_WQCFG_BATCH_SHIFT     5u
#define DSA_WQCFG_BATCH_MASK      (0xfu << 5)
#define DSA_WQCFG_VECTOR          16u
#define DSA_WQCFG_OCCUPANCY_LIMIT 20u
#define DSA_WQCFG_STATUS          24u /* read only: occupancy 15:0, state 31:30 */
#define DSA_WQCFG_OCCUPANCY_MASK  0xffffu
#define DSA_WQCFG_STATE_SHIFT     30u

/* ---- "Descriptor formats" -------------------------------------------------------------------- */

enum dsa_operation {
    DSA_OP_NOOP = 0x00,
    DSA_OP_BATCH = 0x01,
    DSA_OP_DRAIN = 0x02,
    DSA_OP_MOVE = 0x03,
    DSA_OP_FILL = 0x04,
};

#define DSA_FLAG_FENCE          (1u << 0)
#define DSA_FLAG_BLOCK_ON_FAULT (1u << 1)
#define DSA_FLAG_RECORD_VALID   (1u << 2) /* completion record address is valid */
#define DSA_FLAG_RECORD         (1u << 3) /* write the record also on success */
#define DSA_FLAG_INTERRUPT      (1u << 4)
#define DSA_FLAG_CACHE          (1u << 8) /* destination goes to the cache, not to memory */
#define DSA_FLAG_STRICT         (1u << 13)
#define DSA_FLAG_READBACK       (1u << 14)
#define DSA_FLAGS_MASK          0xffffffu
#define DSA_OPERATION_SHIFT     24u

#define DSA_DESCRIPTOR_BYTES 64u
struct dsa_descriptor {
    uint32_t pasid;           /* 19:0 PASID, 31 privileged */
    uint32_t flags_operation; /* flags 23:0, operation 31:24 */
    uint64_t record;          /* completion record address, a multiple of 32 */
    uint64_t source;          /* or: pattern of a fill, list of a batch */
    uint64_t destination;
    uint32_t bytes; /* or: descriptors of a batch */
    uint16_t interrupt_handle;
    uint16_t reserved;
    uint64_t specific[3]; /* reserved for the operations here */
};
_Static_assert(sizeof(struct dsa_descriptor) == DSA_DESCRIPTOR_BYTES, "a descriptor has 64 bytes");
_Static_assert(offsetof(struct dsa_descriptor, record) == 8,
               "completion record address: bytes 8 to 15");
_Static_assert(offsetof(struct dsa_descriptor, source) == 16, "source address: bytes 16 to 23");
_Static_assert(offsetof(struct dsa_descriptor, destination) == 24, "destination: bytes 24 to 31");
_Static_assert(offsetof(struct dsa_descriptor, bytes) == 32, "transfer size: bytes 32 to 35");
_Static_assert(offsetof(struct dsa_descriptor, interrupt_handle) == 36, "handle: bytes 36, 37");
_Static_assert(offsetof(struct dsa_descriptor, specific) == 40, "by operation: bytes 40 to 63");

#define DSA_BATCH_MIN       2u  /* descriptors of a batch */
#define DSA_BATCH_ALIGNMENT 64u /* of its list */

/* "Completion record". */
#define DSA_RECORD_BYTES 32u
struct dsa_record {
    uint8_t status; /* enum dsa_status; 0: not written yet */
    uint8_t result;
    uint8_t fault; /* 0: a read, bit 0 of a write */
    uint8_t reserved;
    uint32_t completed; /* bytes of a transfer, descriptors of a batch */
    uint64_t fault_address;
    uint32_t invalid_flags;
    uint32_t specific[3];
};
_Static_assert(sizeof(struct dsa_record) == DSA_RECORD_BYTES, "a completion record has 32 bytes");
_Static_assert(offsetof(struct dsa_record, completed) == 4, "bytes completed: bytes 4 to 7");
_Static_assert(offsetof(struct dsa_record, fault_address) == 8, "fault address: bytes 8 to 15");
_Static_assert(offsetof(struct dsa_record, invalid_flags) == 16, "invalid flags: bytes 16 to 19");

/* Status codes; above 0x3f only in SWERR. Bit 7 of the status byte says whether the fault was a
 * write. */
enum dsa_status {
    DSA_STATUS_NONE = 0x00,
    DSA_STATUS_SUCCESS = 0x01,
    DSA_STATUS_FAULT = 0x03,       /* page fault, not blocked on */
    DSA_STATUS_BATCH = 0x05,       /* at least one descriptor of the batch failed */
    DSA_STATUS_BATCH_FAULT = 0x06, /* the list of a batch could not be read */
    DSA_STATUS_OPERATION = 0x10,   /* unsupported operation */
    DSA_STATUS_FLAGS = 0x11,       /* invalid flags */
    DSA_STATUS_RESERVED = 0x12,    /* a reserved field is not 0 */
    DSA_STATUS_BYTES = 0x13,       /* transfer size out of range */
    DSA_STATUS_COUNT = 0x14,       /* descriptor count out of range */
    DSA_STATUS_OVERLAP = 0x16,
    DSA_STATUS_LIST_ALIGNMENT = 0x18,
    DSA_STATUS_HANDLE = 0x19,         /* no such interrupt handle */
    DSA_STATUS_RECORD_ADDRESS = 0x1a, /* the record could not be written: in SWERR */
    DSA_STATUS_RECORD_ALIGNMENT = 0x1b,
};
#define DSA_STATUS_MASK  0x7fu
#define DSA_STATUS_WRITE 0x80u

#endif
