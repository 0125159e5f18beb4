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
    X(NVME_FEATURE_QUEUES, 0x07)                                                   \
    X(NVME_QUEUE_CONTIGUOUS, 1 << 0)                                               \
    X(NVME_CQ_INTERRUPTS, 1 << 1)                                                  \
    X(NVME_ABORT_NOT_ABORTED, 1 << 0)                                              \
    /* 5.15: CNS values, figures 109 and 114 */                                    \
    X(NVME_IDENTIFY_BYTES, 4096)                                                   \
    X(NVME_IDENTIFY_NAMESPACE, 0x00)                                               \
    X(NVME_IDENTIFY_CONTROLLER, 0x01)                                              \
    X(NVME_IDENTIFY_ACTIVE, 0x02)                                                  \
    X(NVME_ID_CTRL_VID, 0)                                                         \
    X(NVME_ID_CTRL_SERIAL, 4)                                                      \
    X(NVME_ID_CTRL_MODEL, 24)                                                      \
    X(NVME_ID_CTRL_MDTS, 77)                                                       \
    X(NVME_ID_CTRL_VER, 80)                                                        \
    X(NVME_ID_CTRL_SQES, 512)                                                      \
    X(NVME_ID_CTRL_CQES, 513)                                                      \
    X(NVME_ID_CTRL_NN, 516)                                                        \
    X(NVME_ID_NS_SIZE, 0)                                                          \
    X(NVME_ID_NS_CAPACITY, 8)                                                      \
    X(NVME_ID_NS_USE, 16)                                                          \
    X(NVME_ID_NS_NLBAF, 25)                                                        \
    X(NVME_ID_NS_FLBAS, 26)                                                        \
    X(NVME_ID_NS_LBAF0, 128)

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
