/*
 * hw/nvme_regs.h against numbers typed from the NVM Express Base Specification 1.3 (sections named
 * below), byte vectors of queue entries, and the command structure of <linux/nvme_ioctl.h>. The
 * numbers are also those of include/linux/nvme.h of Linux.
 */
#include "hw/nvme_regs.h"

#include <linux/nvme_ioctl.h>

#include "tests/hw/hw_vectors.h"

/* X(constant, number by the specification). */
#define CONSTANTS(X)                                                               \
    /* PCI identities: pci.ids */                                                  \
    X(NVME_VENDOR_INTEL, 0x8086)                                                   \
    X(NVME_DEVICE_P4800X, 0x2701)                                                  \
    X(NVME_VENDOR_SAMSUNG, 0x144d)                                                 \
    X(NVME_DEVICE_PM1725A, 0xa822)                                                 \
    X(NVME_VENDOR_MICROSEMI, 0x11f8)                                               \
    X(NVME_DEVICE_NVRAM, 0xf117)                                                   \
    /* 2.1.5: mass storage, non-volatile memory, NVM Express */                    \
    X(NVME_CLASS_CODE, 0x010802)                                                   \
    /* 3.1: register map; our BAR has 4 KiB of doorbells, two tables in between */ \
    X(NVME_BAR_BYTES, 0x4000)                                                      \
    X(NVME_MSIX_TABLE, 0x2000)                                                     \
    X(NVME_MSIX_PBA, 0x3000)                                                       \
    X(NVME_QUEUES_MAX, 256)                                                        \
    X(NVME_REG_CAP, 0x00)                                                          \
    X(NVME_REG_VS, 0x08)                                                           \
    X(NVME_REG_INTMS, 0x0c)                                                        \
    X(NVME_REG_INTMC, 0x10)                                                        \
    X(NVME_REG_CC, 0x14)                                                           \
    X(NVME_REG_CSTS, 0x1c)                                                         \
    X(NVME_REG_AQA, 0x24)                                                          \
    X(NVME_REG_ASQ, 0x28)                                                          \
    X(NVME_REG_ACQ, 0x30)                                                          \
    X(NVME_REG_CMBLOC, 0x38)                                                       \
    X(NVME_REG_CMBSZ, 0x3c)                                                        \
    X(NVME_REG_DOORBELLS, 0x1000)                                                  \
    /* 3.1.2 */                                                                    \
    X(NVME_VERSION_1_3, 1 << 16 | 3 << 8)                                          \
    /* 3.1.1 */                                                                    \
    X(NVME_CAP_CQR, 1 << 16)                                                       \
    X(NVME_CAP_TO_SHIFT, 24)                                                       \
    X(NVME_CAP_CSS_NVM, UINT64_C(1) << 37)                                         \
    /* 3.1.5, 3.1.6 */                                                             \
    X(NVME_CC_EN, 1 << 0)                                                          \
    X(NVME_CC_SHN_NORMAL, 1 << 14)                                                 \
    X(NVME_CC_SHN_MASK, 1 << 15 | 1 << 14)                                         \
    X(NVME_CSTS_RDY, 1 << 0)                                                       \
    X(NVME_CSTS_CFS, 1 << 1)                                                       \
    X(NVME_CSTS_SHST_MASK, 1 << 3 | 1 << 2)                                        \
    X(NVME_CSTS_SHST_COMPLETE, 2 << 2)                                             \
    /* 3.1.11, 3.1.12 */                                                           \
    X(NVME_CMBLOC_BAR_MASK, 7)                                                     \
    X(NVME_CMBSZ_SQS, 1 << 0)                                                      \
    X(NVME_CMBSZ_CQS, 1 << 1)                                                      \
    X(NVME_CMBSZ_LISTS, 1 << 2)                                                    \
    X(NVME_CMBSZ_RDS, 1 << 3)                                                      \
    X(NVME_CMBSZ_WDS, 1 << 4)                                                      \
    X(NVME_CMBSZ_UNITS_SHIFT, 8)                                                   \
    X(NVME_CMBSZ_SIZE_SHIFT, 12)                                                   \
    /* 4.2, 4.6; 3.1.5: memory page of CC.MPS 0 */                                 \
    X(NVME_PAGE_BYTES, 4096)                                                       \
    X(NVME_SQE_BYTES, 64)                                                          \
    X(NVME_CQE_BYTES, 16)                                                          \
    X(NVME_SQE_LOG2, 6)                                                            \
    X(NVME_CQE_LOG2, 4)                                                            \
    X(NVME_CQE_PHASE, 1)                                                           \
    /* 5.21.1.7, 5.3, 5.4, 5.1 */                                                  \
    X(NVME_QUEUE_CONTIGUOUS, 1 << 0)                                               \
    X(NVME_CQ_INTERRUPTS, 1 << 1)                                                  \
    X(NVME_ABORT_NOT_ABORTED, 1 << 0)                                              \
    /* 5.15: CNS values, sizes */                                                  \
    X(NVME_IDENTIFY_BYTES, 4096)                                                   \
    /* 3.1.1: AMS 18:17; 3.1.5: AMS 13:11 */                                       \
    X(NVME_CAP_AMS_WRR, 1 << 17)                                                   \
    X(NVME_CC_AMS_RR, 0)                                                           \
    X(NVME_CC_AMS_WRR, 1)                                                          \
    X(NVME_CC_AMS_SHIFT, 11)                                                       \
    /* 4.6.1: double word 3 bits 30 and 31, the status field from bit 17 on */     \
    X(NVME_STATUS_MORE, 1 << (30 - 17))                                            \
    X(NVME_STATUS_DNR, 1 << (31 - 17))                                             \
    /* 4.4; 5.14.1.1 to 5.14.1.5; 5.15.2 */                                        \
    X(NVME_SGL_BYTES, 16)                                                          \
    X(NVME_LOG_ERROR_BYTES, 64)                                                    \
    X(NVME_LOG_HEALTH_BYTES, 512)                                                  \
    X(NVME_LOG_FIRMWARE_BYTES, 512)                                                \
    X(NVME_LOG_EFFECTS_BYTES, 4096)                                                \
    X(NVME_SECONDARY_BYTES, 63 - 32 + 1)                                           \
    /* 6.1: all namespaces; 5.4: queue priority 02:01 */                           \
    X(NVME_NSID_ALL, 0xffffffff)                                                   \
    X(NVME_SQ_PRIORITY_SHIFT, 1)                                                   \
    /* 5.13: select 10:8; 5.21: save 31; 5.21.1.1, 5.21.1.9, 5.21.1.4 */           \
    X(NVME_FEATURE_SELECT_SHIFT, 8)                                                \
    X(NVME_FEATURE_SAVE, UINT32_C(1) << 31)                                        \
    X(NVME_ARBITRATION_NO_LIMIT, 7)                                                \
    X(NVME_VECTOR_NOT_COALESCED, 1 << 16)                                          \
    X(NVME_TEMPERATURE_UNDER, 1 << 20)                                             \
    X(NVME_TEMPERATURE_ALL, 15)                                                    \
    /* 5.14: retain asynchronous event 15 */                                       \
    X(NVME_LOG_RETAIN_EVENT, 1 << 15)                                              \
    /* 6.9: PRINFO 29:26; 6.7: attribute deallocate 2, ranges of one command */    \
    X(NVME_PRINFO_SHIFT, 26)                                                       \
    X(NVME_PRINFO_MASK, 15)                                                        \
    X(NVME_DATASET_DEALLOCATE, 1 << 2)                                             \
    X(NVME_DATASET_RANGES_MAX, 256)

/* Enumerations, and macros with parameters at one place each. */
#define VALUES(X)                                                                             \
    /* 3.1.24, 3.1.25: doorbells of queue 3 with CAP.DSTRD 0 */                               \
    X(NVME_DOORBELL_SQ(3), 0x1000 + (2 * 3) * 4)                                              \
    X(NVME_DOORBELL_CQ(3), 0x1000 + (2 * 3 + 1) * 4)                                          \
    /* 3.1.1: MQES is zero-based; DSTRD 35:32 */                                              \
    X(NVME_CAP_MQES(UINT64_C(0x00000020ff0103ff)), 1024)                                      \
    X(NVME_CAP_DSTRD(UINT64_C(0x0000002f00000000)), 15)                                       \
    /* 3.1.5: MPS 10:7, SHN 15:14, IOSQES 19:16, IOCQES 23:20 */                              \
    X(NVME_CC_MPS(0xfffff8ffu), 1)                                                            \
    X(NVME_CC_SHN(0xffffbfffu), 2)                                                            \
    X(NVME_CC_IOSQES(6) | NVME_CC_IOCQES(4), 0x460000)                                        \
    /* 3.1.12: SZ 0x10 in units of 1 MiB (SZU 2) */                                           \
    X(NVME_CMBSZ_BYTES(0x00010219u), 16 << 20)                                                \
    /* 4.6.1.2: status codes; type 1 is command specific */                                   \
    X(NVME_SC_SUCCESS, 0x000)                                                                 \
    X(NVME_SC_INVALID_OPCODE, 0x001)                                                          \
    X(NVME_SC_INVALID_FIELD, 0x002)                                                           \
    X(NVME_SC_DATA_TRANSFER_ERROR, 0x004)                                                     \
    X(NVME_SC_ABORTED_SQ_DELETED, 0x008)                                                      \
    X(NVME_SC_INVALID_NAMESPACE, 0x00b)                                                       \
    X(NVME_SC_PRP_OFFSET_INVALID, 0x013)                                                      \
    X(NVME_SC_LBA_OUT_OF_RANGE, 0x080)                                                        \
    X(NVME_SC_CQ_INVALID, 0x100)                                                              \
    X(NVME_SC_QUEUE_ID_INVALID, 0x101)                                                        \
    X(NVME_SC_QUEUE_SIZE_INVALID, 0x102)                                                      \
    X(NVME_SC_ASYNC_LIMIT, 0x105)                                                             \
    X(NVME_SC_VECTOR_INVALID, 0x108)                                                          \
    X(NVME_SC_QUEUE_DELETION_INVALID, 0x10c)                                                  \
    /* 5 and 6: opcodes of admin and NVM commands */                                          \
    X(NVME_ADMIN_DELETE_SQ, 0x00)                                                             \
    X(NVME_ADMIN_CREATE_SQ, 0x01)                                                             \
    X(NVME_ADMIN_DELETE_CQ, 0x04)                                                             \
    X(NVME_ADMIN_CREATE_CQ, 0x05)                                                             \
    X(NVME_ADMIN_IDENTIFY, 0x06)                                                              \
    X(NVME_ADMIN_ABORT, 0x08)                                                                 \
    X(NVME_ADMIN_SET_FEATURES, 0x09)                                                          \
    X(NVME_ADMIN_GET_FEATURES, 0x0a)                                                          \
    X(NVME_ADMIN_ASYNC_EVENT, 0x0c)                                                           \
    X(NVME_FLUSH, 0x00)                                                                       \
    X(NVME_WRITE, 0x01)                                                                       \
    X(NVME_READ, 0x02)                                                                        \
    /* 3.1.5: CSS 6:4, AMS 13:11, IOSQES 19:16, IOCQES 23:20 */                               \
    X(NVME_CC_CSS(0x00000070u), 7)                                                            \
    X(NVME_CC_AMS(0x00003800u), 7)                                                            \
    X(NVME_CC_IOSQES_OF(0x00460001u), 6)                                                      \
    X(NVME_CC_IOCQES_OF(0x00460001u), 4)                                                      \
    /* 4.2: FUSE 09:08, PSDT 15:14 of double word 0 */                                        \
    X(NVME_FUSE_MASK, 3)                                                                      \
    X(NVME_FUSE_FIRST, 1)                                                                     \
    X(NVME_FUSE_SECOND, 2)                                                                    \
    X(NVME_PSDT_MASK, 0xc0)                                                                   \
    X(NVME_PSDT_PRP, 0)                                                                       \
    X(NVME_PSDT_SGL, 1 << 6)                                                                  \
    X(NVME_PSDT_SGL_SEGMENT, 2 << 6)                                                          \
    /* 4.6.1.2: status codes */                                                               \
    X(NVME_SC_CID_CONFLICT, 3)                                                                \
    X(NVME_SC_POWER_LOSS, 5)                                                                  \
    X(NVME_SC_INTERNAL_ERROR, 6)                                                              \
    X(NVME_SC_ABORT_REQUESTED, 7)                                                             \
    X(NVME_SC_FUSED_FAILED, 9)                                                                \
    X(NVME_SC_FUSED_MISSING, 10)                                                              \
    X(NVME_SC_SEQUENCE_ERROR, 12)                                                             \
    X(NVME_SC_SGL_SEGMENT_INVALID, 13)                                                        \
    X(NVME_SC_SGL_COUNT_INVALID, 14)                                                          \
    X(NVME_SC_SGL_LENGTH_INVALID, 15)                                                         \
    X(NVME_SC_SGL_METADATA_LENGTH, 16)                                                        \
    X(NVME_SC_SGL_TYPE_INVALID, 17)                                                           \
    X(NVME_SC_CMB_USE_INVALID, 18)                                                            \
    X(NVME_SC_ATOMIC_WRITE_EXCEEDED, 20)                                                      \
    X(NVME_SC_CAPACITY_EXCEEDED, 129)                                                         \
    X(NVME_SC_NAMESPACE_NOT_READY, 130)                                                       \
    X(NVME_SC_ABORT_LIMIT, 0x103)                                                             \
    X(NVME_SC_LOG_PAGE_INVALID, 0x109)                                                        \
    X(NVME_SC_FEATURE_NOT_SAVEABLE, 0x10d)                                                    \
    X(NVME_SC_FEATURE_NOT_CHANGEABLE, 0x10e)                                                  \
    X(NVME_SC_FEATURE_NOT_PER_NAMESPACE, 0x10f)                                               \
    X(NVME_SC_CONTROLLER_ID_INVALID, 0x11f)                                                   \
    X(NVME_SC_SECONDARY_STATE_INVALID, 0x120)                                                 \
    X(NVME_SC_RESOURCE_COUNT_INVALID, 0x121)                                                  \
    X(NVME_SC_RESOURCE_ID_INVALID, 0x122)                                                     \
    X(NVME_SC_CONFLICTING_ATTRIBUTES, 0x180)                                                  \
    X(NVME_SC_WRITE_FAULT, 0x280)                                                             \
    X(NVME_SC_UNRECOVERED_READ, 0x281)                                                        \
    X(NVME_SC_COMPARE_FAILURE, 0x285)                                                         \
    X(NVME_STATUS_CODE(0x7fff), 0x7ff)                                                        \
    /* 4.4: SGL descriptor types 7:4 */                                                       \
    X(NVME_SGL_DATA, 0)                                                                       \
    X(NVME_SGL_BIT_BUCKET, 1 << 4)                                                            \
    X(NVME_SGL_SEGMENT, 2 << 4)                                                               \
    X(NVME_SGL_LAST_SEGMENT, 3 << 4)                                                          \
    X(NVME_SGL_KEYED, 4 << 4)                                                                 \
    X(NVME_SGL_VENDOR, 15 << 4)                                                               \
    /* 5: admin opcodes; 5.4: queue priority */                                               \
    X(NVME_ADMIN_GET_LOG, 2)                                                                  \
    X(NVME_ADMIN_VIRTUALIZATION, 0x1c)                                                        \
    X(NVME_SQ_URGENT, 0)                                                                      \
    X(NVME_SQ_HIGH, 1)                                                                        \
    X(NVME_SQ_MEDIUM, 2)                                                                      \
    X(NVME_SQ_LOW, 3)                                                                         \
    /* 5.21.1: feature identifiers; 5.13: select and its answer */                            \
    X(NVME_FEATURE_ARBITRATION, 1)                                                            \
    X(NVME_FEATURE_POWER, 2)                                                                  \
    X(NVME_FEATURE_TEMPERATURE, 4)                                                            \
    X(NVME_FEATURE_ERROR_RECOVERY, 5)                                                         \
    X(NVME_FEATURE_QUEUES, 7)                                                                 \
    X(NVME_FEATURE_COALESCING, 8)                                                             \
    X(NVME_FEATURE_VECTOR, 9)                                                                 \
    X(NVME_FEATURE_WRITE_ATOMICITY, 10)                                                       \
    X(NVME_FEATURE_ASYNC_EVENTS, 11)                                                          \
    X(NVME_SELECT_CURRENT, 0)                                                                 \
    X(NVME_SELECT_DEFAULT, 1)                                                                 \
    X(NVME_SELECT_SAVED, 2)                                                                   \
    X(NVME_SELECT_SUPPORTED, 3)                                                               \
    X(NVME_FEATURE_SAVEABLE, 1)                                                               \
    X(NVME_FEATURE_PER_NAMESPACE, 2)                                                          \
    X(NVME_FEATURE_CHANGEABLE, 4)                                                             \
    /* 5.2: asynchronous events */                                                            \
    X(NVME_EVENT_ERROR, 0)                                                                    \
    X(NVME_EVENT_HEALTH, 1)                                                                   \
    X(NVME_EVENT_NOTICE, 2)                                                                   \
    X(NVME_EVENT_DOORBELL_REGISTER, 0)                                                        \
    X(NVME_EVENT_DOORBELL_VALUE, 1)                                                           \
    X(NVME_EVENT_DIAGNOSTIC, 2)                                                               \
    X(NVME_EVENT_PERSISTENT, 3)                                                               \
    X(NVME_EVENT_TRANSIENT, 4)                                                                \
    X(NVME_EVENT_RELIABILITY, 0)                                                              \
    X(NVME_EVENT_TEMPERATURE, 1)                                                              \
    X(NVME_EVENT_SPARE, 2)                                                                    \
    /* 5.14.1: log pages; 5.14.1.2: bytes of the health log; 5.14.1.3; 5.14.1.5 */            \
    X(NVME_LOG_ERROR, 1)                                                                      \
    X(NVME_LOG_HEALTH, 2)                                                                     \
    X(NVME_LOG_FIRMWARE, 3)                                                                   \
    X(NVME_LOG_EFFECTS, 5)                                                                    \
    X(NVME_HEALTH_WARNING, 0)                                                                 \
    X(NVME_HEALTH_TEMPERATURE, 1)                                                             \
    X(NVME_HEALTH_SPARE, 3)                                                                   \
    X(NVME_HEALTH_SPARE_THRESHOLD, 4)                                                         \
    X(NVME_HEALTH_USED, 5)                                                                    \
    X(NVME_HEALTH_UNITS_READ, 32)                                                             \
    X(NVME_HEALTH_UNITS_WRITTEN, 48)                                                          \
    X(NVME_HEALTH_READS, 64)                                                                  \
    X(NVME_HEALTH_WRITES, 80)                                                                 \
    X(NVME_HEALTH_BUSY_MINUTES, 96)                                                           \
    X(NVME_HEALTH_POWER_CYCLES, 112)                                                          \
    X(NVME_HEALTH_POWER_HOURS, 128)                                                           \
    X(NVME_HEALTH_UNSAFE, 144)                                                                \
    X(NVME_HEALTH_MEDIA_ERRORS, 160)                                                          \
    X(NVME_HEALTH_ERROR_ENTRIES, 176)                                                         \
    X(NVME_WARN_SPARE, 1 << 0)                                                                \
    X(NVME_WARN_TEMPERATURE, 1 << 1)                                                          \
    X(NVME_WARN_RELIABILITY, 1 << 2)                                                          \
    X(NVME_WARN_READ_ONLY, 1 << 3)                                                            \
    X(NVME_WARN_BACKUP, 1 << 4)                                                               \
    X(NVME_FIRMWARE_ACTIVE, 0)                                                                \
    X(NVME_FIRMWARE_SLOT1, 8)                                                                 \
    X(NVME_EFFECTS_ADMIN, 0)                                                                  \
    X(NVME_EFFECTS_IO, 1024)                                                                  \
    X(NVME_EFFECT_SUPPORTED, 1 << 0)                                                          \
    X(NVME_EFFECT_CONTENT, 1 << 1)                                                            \
    X(NVME_EFFECT_CAPABILITY, 1 << 4)                                                         \
    /* 5.15: CNS values */                                                                    \
    X(NVME_IDENTIFY_NAMESPACE, 0)                                                             \
    X(NVME_IDENTIFY_CONTROLLER, 1)                                                            \
    X(NVME_IDENTIFY_ACTIVE, 2)                                                                \
    X(NVME_IDENTIFY_DESCRIPTORS, 3)                                                           \
    X(NVME_IDENTIFY_NS_CONTROLLERS, 0x12)                                                     \
    X(NVME_IDENTIFY_CONTROLLERS, 0x13)                                                        \
    X(NVME_IDENTIFY_PRIMARY, 0x14)                                                            \
    X(NVME_IDENTIFY_SECONDARY, 0x15)                                                          \
    /* 5.15.3: bytes of Identify Controller */                                                \
    X(NVME_ID_CTRL_VID, 0)                                                                    \
    X(NVME_ID_CTRL_SSVID, 2)                                                                  \
    X(NVME_ID_CTRL_SERIAL, 4)                                                                 \
    X(NVME_ID_CTRL_MODEL, 24)                                                                 \
    X(NVME_ID_CTRL_FIRMWARE, 64)                                                              \
    X(NVME_ID_CTRL_RAB, 72)                                                                   \
    X(NVME_ID_CTRL_CMIC, 76)                                                                  \
    X(NVME_ID_CTRL_MDTS, 77)                                                                  \
    X(NVME_ID_CTRL_CNTLID, 78)                                                                \
    X(NVME_ID_CTRL_VER, 80)                                                                   \
    X(NVME_ID_CTRL_OAES, 92)                                                                  \
    X(NVME_ID_CTRL_OACS, 256)                                                                 \
    X(NVME_ID_CTRL_ACL, 258)                                                                  \
    X(NVME_ID_CTRL_AERL, 259)                                                                 \
    X(NVME_ID_CTRL_FRMW, 260)                                                                 \
    X(NVME_ID_CTRL_LPA, 261)                                                                  \
    X(NVME_ID_CTRL_ELPE, 262)                                                                 \
    X(NVME_ID_CTRL_NPSS, 263)                                                                 \
    X(NVME_ID_CTRL_WCTEMP, 266)                                                               \
    X(NVME_ID_CTRL_CCTEMP, 268)                                                               \
    X(NVME_ID_CTRL_SQES, 512)                                                                 \
    X(NVME_ID_CTRL_CQES, 513)                                                                 \
    X(NVME_ID_CTRL_MAXCMD, 514)                                                               \
    X(NVME_ID_CTRL_NN, 516)                                                                   \
    X(NVME_ID_CTRL_ONCS, 520)                                                                 \
    X(NVME_ID_CTRL_FUSES, 522)                                                                \
    X(NVME_ID_CTRL_VWC, 525)                                                                  \
    X(NVME_ID_CTRL_AWUN, 526)                                                                 \
    X(NVME_ID_CTRL_AWUPF, 528)                                                                \
    X(NVME_ID_CTRL_ACWU, 532)                                                                 \
    X(NVME_ID_CTRL_SGLS, 536)                                                                 \
    X(NVME_ID_CTRL_SUBNQN, 768)                                                               \
    X(NVME_ID_CTRL_PSD0, 2048)                                                                \
    X(NVME_CMIC_PORTS, 1 << 0)                                                                \
    X(NVME_CMIC_CONTROLLERS, 1 << 1)                                                          \
    X(NVME_CMIC_VF, 1 << 2)                                                                   \
    X(NVME_OACS_VIRTUALIZATION, 1 << 7)                                                       \
    X(NVME_FRMW_SLOT1_READ_ONLY, 1 << 0)                                                      \
    X(NVME_FRMW_ONE_SLOT, 1 << 1)                                                             \
    X(NVME_LPA_EFFECTS, 1 << 1)                                                               \
    X(NVME_LPA_EXTENDED, 1 << 2)                                                              \
    X(NVME_ONCS_COMPARE, 1 << 0)                                                              \
    X(NVME_ONCS_WRITE_UNCORRECTABLE, 1 << 1)                                                  \
    X(NVME_ONCS_DATASET, 1 << 2)                                                              \
    X(NVME_ONCS_WRITE_ZEROES, 1 << 3)                                                         \
    X(NVME_ONCS_SAVE_SELECT, 1 << 4)                                                          \
    X(NVME_SGLS_ANY_ALIGNMENT, 1)                                                             \
    X(NVME_SGLS_BIT_BUCKET, 1 << 16)                                                          \
    X(NVME_SGLS_LONGER, 1 << 18)                                                              \
    /* 5.15.2: bytes of Identify Namespace; 5.15.5: identifier types */                       \
    X(NVME_ID_NS_SIZE, 0)                                                                     \
    X(NVME_ID_NS_CAPACITY, 8)                                                                 \
    X(NVME_ID_NS_USE, 16)                                                                     \
    X(NVME_ID_NS_NSFEAT, 24)                                                                  \
    X(NVME_ID_NS_NLBAF, 25)                                                                   \
    X(NVME_ID_NS_FLBAS, 26)                                                                   \
    X(NVME_ID_NS_NMIC, 30)                                                                    \
    X(NVME_ID_NS_DLFEAT, 33)                                                                  \
    X(NVME_ID_NS_NGUID, 104)                                                                  \
    X(NVME_ID_NS_EUI64, 120)                                                                  \
    X(NVME_ID_NS_LBAF0, 128)                                                                  \
    X(NVME_NMIC_SHARED, 1 << 0)                                                               \
    X(NVME_DLFEAT_ZEROS, 1)                                                                   \
    X(NVME_DLFEAT_WRITE_ZEROES, 1 << 3)                                                       \
    X(NVME_NS_EUI64, 1)                                                                       \
    X(NVME_NS_NGUID, 2)                                                                       \
    /* 5.15.10, 5.15.11: primary controller capabilities, secondary controller list */        \
    X(NVME_ID_PRIMARY_CNTLID, 0)                                                              \
    X(NVME_ID_PRIMARY_PORTID, 2)                                                              \
    X(NVME_ID_PRIMARY_CRT, 4)                                                                 \
    X(NVME_ID_PRIMARY_VQFRT, 32)                                                              \
    X(NVME_ID_PRIMARY_VQRFA, 36)                                                              \
    X(NVME_ID_PRIMARY_VQRFAP, 40)                                                             \
    X(NVME_ID_PRIMARY_VQPRT, 42)                                                              \
    X(NVME_ID_PRIMARY_VQFRSM, 44)                                                             \
    X(NVME_ID_PRIMARY_VQGRAN, 46)                                                             \
    X(NVME_ID_PRIMARY_VIFRT, 64)                                                              \
    X(NVME_ID_PRIMARY_VIRFA, 68)                                                              \
    X(NVME_ID_PRIMARY_VIRFAP, 72)                                                             \
    X(NVME_ID_PRIMARY_VIPRT, 74)                                                              \
    X(NVME_ID_PRIMARY_VIFRSM, 76)                                                             \
    X(NVME_ID_PRIMARY_VIGRAN, 78)                                                             \
    X(NVME_ID_SECONDARY_COUNT, 0)                                                             \
    X(NVME_ID_SECONDARY_ENTRIES, 32)                                                          \
    X(NVME_SECONDARY_SCID, 0)                                                                 \
    X(NVME_SECONDARY_PCID, 2)                                                                 \
    X(NVME_SECONDARY_STATE, 4)                                                                \
    X(NVME_SECONDARY_VFN, 8)                                                                  \
    X(NVME_SECONDARY_NVQ, 10)                                                                 \
    X(NVME_SECONDARY_NVI, 12)                                                                 \
    /* 5.22: actions and resources; 6: NVM opcodes */                                         \
    X(NVME_VIRTUAL_PRIMARY_ALLOCATE, 1)                                                       \
    X(NVME_VIRTUAL_OFFLINE, 7)                                                                \
    X(NVME_VIRTUAL_ASSIGN, 8)                                                                 \
    X(NVME_VIRTUAL_ONLINE, 9)                                                                 \
    X(NVME_RESOURCE_QUEUES, 0)                                                                \
    X(NVME_RESOURCE_INTERRUPTS, 1)                                                            \
    X(NVME_WRITE_UNCORRECTABLE, 4)                                                            \
    X(NVME_COMPARE, 5)                                                                        \
    X(NVME_WRITE_ZEROES, 8)                                                                   \
    X(NVME_DATASET, 9)                                                                        \
    /* <linux/nvme_ioctl.h>: a command as user space hands it over, up to the data pointer */ \
    X(offsetof(struct nvme_sqe, opcode), offsetof(struct nvme_passthru_cmd, opcode))          \
    X(offsetof(struct nvme_sqe, flags), offsetof(struct nvme_passthru_cmd, flags))            \
    X(offsetof(struct nvme_sqe, cid), offsetof(struct nvme_passthru_cmd, rsvd1))              \
    X(offsetof(struct nvme_sqe, nsid), offsetof(struct nvme_passthru_cmd, nsid))              \
    X(offsetof(struct nvme_sqe, cdw2), offsetof(struct nvme_passthru_cmd, cdw2))              \
    X(offsetof(struct nvme_sqe, cdw3), offsetof(struct nvme_passthru_cmd, cdw3))              \
    X(offsetof(struct nvme_sqe, metadata), offsetof(struct nvme_passthru_cmd, metadata))      \
    X(offsetof(struct nvme_sqe, prp1), offsetof(struct nvme_passthru_cmd, addr))              \
    X(offsetof(struct nvme_sqe, cdw10), offsetof(struct nvme_passthru_cmd, cdw10))            \
    X(offsetof(struct nvme_sqe, cdw15), offsetof(struct nvme_passthru_cmd, cdw15))

static const struct hw_vector constants[] = { CONSTANTS(HW_VECTOR) };
static const struct hw_vector values[] = { VALUES(HW_VECTOR) };

static void test_constants_are_those_of_the_specification(void **state)
{
    (void)state;
    hw_vectors_compare(constants, N_OF(constants));
    hw_vectors_cover("hw/nvme_regs.h", constants, N_OF(constants));
    hw_vectors_compare(values, N_OF(values));
}

/* Sections 4.2 and 6.9: read of 8 blocks from 0x0123456789ab of namespace 1, two PRP entries. */
static void test_bytes_of_a_read_command(void **state)
{
    (void)state;
    static const uint8_t bytes[64] = {
        /* 0: opcode, flags, command identifier; 4: namespace */
        0x02,
        0x00,
        0x34,
        0x12,
        0x01,
        0x00,
        0x00,
        0x00,
        /* 24: PRP entry 1; 32: PRP entry 2 */
        [24] = 0x00,
        0x0e,
        0xdc,
        0xba,
        0x01,
        0x00,
        0x00,
        0x00, /* 1badc0e00 */
        [32] = 0x00,
        0xf0,
        0xdc,
        0xba,
        0x01,
        0x00,
        0x00,
        0x00, /* 1badcf000 */
        /* 40, 44: starting block; 48: blocks - 1 */
        [40] = 0xab,
        0x89,
        0x67,
        0x45,
        0x23,
        0x01,
        0x00,
        0x00,
        0x07,
        0x00,
        0x00,
        0x00,
    };
    const struct nvme_sqe read = {
        .opcode = NVME_READ,
        .cid = 0x1234,
        .nsid = 1,
        .prp1 = 0x1badc0e00,
        .prp2 = 0x1badcf000,
        .cdw10 = 0x456789ab,
        .cdw11 = 0x0123,
        .cdw12 = 8 - 1,
    };
    assert_memory_equal(&read, bytes, sizeof(bytes));
}

/* Section 4.6: LBA out of range, do not retry (bit 31), phase 1 (bit 16). */
static void test_bytes_of_a_completion(void **state)
{
    (void)state;
    static const uint8_t bytes[16] = {
        0x0d, 0xf0, 0xad, 0x8b, /* command specific */
        0x00, 0x00, 0x00, 0x00, /* reserved */
        0x11, 0x02, 0x05, 0x00, /* head of the submission queue, its identifier */
        0x34, 0x12, 0x01, 0x81, /* command identifier; status and phase */
    };
    const struct nvme_cqe failed = {
        .result = 0x8badf00d,
        .sq_head = 0x0211,
        .sq_id = 5,
        .cid = 0x1234,
        .status = (NVME_SC_LBA_OUT_OF_RANGE | 1u << 14) << 1 | NVME_CQE_PHASE,
    };
    assert_memory_equal(&failed, bytes, sizeof(bytes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constants_are_those_of_the_specification),
        cmocka_unit_test(test_bytes_of_a_read_command),
        cmocka_unit_test(test_bytes_of_a_completion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
