/*
 * hw/dsa_regs.h against numbers from elsewhere: Linux' drivers/dma/idxd/registers.h and
 * include/uapi/linux/idxd.h; capabilities that a Sapphire Rapids server reports
 * (docs/sources.md#dsa).
 */
#include "hw/dsa_regs.h"
#include "tests/hw/hw_vectors.h"

/* Offsets, shifts and masks as their bit fields say. */
#define AS_REGISTERS(X)                                                          \
    X(DSA_VENDOR_ID, 0x8086)                                                     \
    X(DSA_DEVICE_ID, 0x0b25)                                                     \
    X(DSA_CLASS, 0x0880 << 8)                                                    \
    X(DSA_BAR_REGISTERS, 0)                                                      \
    X(DSA_BAR_PORTALS, 2)                                                        \
    X(DSA_REGISTERS_BYTES, 64 << 10)                                             \
    X(DSA_PORTAL_BYTES, 4096)                                                    \
    X(DSA_PORTALS_OF_WQ, 4)                                                      \
    X(DSA_PORTAL_UNLIMITED, 0)                                                   \
    X(DSA_PORTAL_LIMITED, 1)                                                     \
    X(DSA_PORTAL(3, DSA_PORTAL_LIMITED), 13 << 12)                               \
    X(DSA_VERSION, 0x00)                                                         \
    X(DSA_VERSION_1, 0x100)                                                      \
    X(DSA_GENCAP, 0x10)                                                          \
    X(DSA_GENCAP_BLOCK_ON_FAULT, 1 << 0)                                         \
    X(DSA_GENCAP_OVERLAP, 1 << 1)                                                \
    X(DSA_GENCAP_CACHE_MEMORY, 1 << 2)                                           \
    X(DSA_GENCAP_CACHE_FLUSH, 1 << 3)                                            \
    X(DSA_GENCAP_COMMAND_CAPABILITY, 1 << 4)                                     \
    X(DSA_GENCAP_READBACK, 1 << 8)                                               \
    X(DSA_GENCAP_DRAIN_READBACK, 1 << 9)                                         \
    X(DSA_GENCAP_TRANSFER_LOG2_SHIFT, 1 + 1 + 1 + 1 + 1 + 3 + 1 + 1 + 3 + 2 + 1) \
    X(DSA_GENCAP_TRANSFER_LOG2_MASK, ((1 << 5) - 1) << 16)                       \
    X(DSA_GENCAP_BATCH_LOG2_SHIFT, 16 + 5)                                       \
    X(DSA_GENCAP_BATCH_LOG2_MASK, ((1 << 4) - 1) << 21)                          \
    X(DSA_GENCAP_MESSAGE_STORE_SHIFT, 21 + 4)                                    \
    X(DSA_GENCAP_CONFIGURABLE, UINT64_C(1) << (25 + 6))                          \
    X(DSA_WQCAP, 0x20)                                                           \
    X(DSA_WQCAP_ENTRIES_MASK, (1 << 16) - 1)                                     \
    X(DSA_WQCAP_QUEUES_SHIFT, 16)                                                \
    X(DSA_WQCAP_QUEUES_MASK, 0xff << 16)                                         \
    X(DSA_WQCAP_CONFIG_SHIFT, 16 + 8)                                            \
    X(DSA_WQCAP_CONFIG_MASK, 0xf << 24)                                          \
    X(DSA_WQCAP_SHARED, UINT64_C(1) << (16 + 8 + 4 + 20))                        \
    X(DSA_WQCAP_DEDICATED, UINT64_C(1) << 49)                                    \
    X(DSA_WQCAP_TRANSLATION, UINT64_C(1) << 50)                                  \
    X(DSA_WQCAP_PRIORITY, UINT64_C(1) << 51)                                     \
    X(DSA_WQCAP_OCCUPANCY, UINT64_C(1) << 52)                                    \
    X(DSA_WQCAP_OCCUPANCY_VECTOR, UINT64_C(1) << 53)                             \
    X(DSA_GRPCAP, 0x30)                                                          \
    X(DSA_GRPCAP_GROUPS_MASK, 0xff)                                              \
    X(DSA_GRPCAP_READ_BUFFERS_SHIFT, 8)                                          \
    X(DSA_GRPCAP_READ_BUFFERS_MASK, 0xff << 8)                                   \
    X(DSA_GRPCAP_READ_BUFFERS_SET, 1 << 16)                                      \
    X(DSA_GRPCAP_READ_BUFFERS_LIMIT, 1 << 17)                                    \
    X(DSA_ENGCAP, 0x38)                                                          \
    X(DSA_ENGCAP_ENGINES_MASK, 0xff)                                             \
    X(DSA_OPCAP, 0x40)                                                           \
    X(DSA_OFFSETS, 0x60)                                                         \
    X(DSA_OFFSETS_UNIT, 0x100)                                                   \
    X(DSA_OFFSETS_GROUPS_SHIFT, 0)                                               \
    X(DSA_OFFSETS_QUEUES_SHIFT, 16)                                              \
    X(DSA_OFFSETS_PERMISSION_SHIFT, 32)                                          \
    X(DSA_OFFSETS_STORE_SHIFT, 48)                                               \
    X(DSA_GENCFG, 0x80)                                                          \
    X(DSA_GENCFG_READ_BUFFERS_MASK, 0xff)                                        \
    X(DSA_GENCTRL, 0x88)                                                         \
    X(DSA_GENCTRL_ERROR_VECTOR, 1 << 0)                                          \
    X(DSA_GENCTRL_HALT_VECTOR, 1 << 1)                                           \
    X(DSA_GENSTS, 0x90)                                                          \
    X(DSA_GENSTS_STATE_MASK, 3)                                                  \
    X(DSA_GENSTS_RESET_SHIFT, 2)                                                 \
    X(DSA_INTCAUSE, 0x98)                                                        \
    X(DSA_INTCAUSE_ERROR, 0x01)                                                  \
    X(DSA_INTCAUSE_COMMAND, 0x02)                                                \
    X(DSA_INTCAUSE_OCCUPANCY, 0x04)                                              \
    X(DSA_INTCAUSE_HALT, 0x10)                                                   \
    X(DSA_CMD, 0xa0)                                                             \
    X(DSA_CMD_OPERAND_MASK, (1 << 20) - 1)                                       \
    X(DSA_CMD_SHIFT, 20)                                                         \
    X(DSA_CMD_CODE_MASK, 0x1f << 20)                                             \
    X(DSA_CMD_VECTOR, UINT32_C(1) << 31)                                         \
    X(DSA_CMDSTS, 0xa8)                                                          \
    X(DSA_CMDSTS_ERROR_MASK, 0xff)                                               \
    X(DSA_CMDSTS_ACTIVE, 0x80000000)                                             \
    X(DSA_CMDCAP, 0xb0)                                                          \
    X(DSA_SWERR, 0xc0)                                                           \
    X(DSA_SWERR_WORDS, 4)                                                        \
    X(DSA_SWERR_VALID, 0x00000001)                                               \
    X(DSA_SWERR_OVERFLOW, 0x00000002)                                            \
    X(DSA_SWERR_DESCRIPTOR, 1 << 2)                                              \
    X(DSA_SWERR_QUEUE_VALID, 1 << 3)                                             \
    X(DSA_SWERR_BATCH, 1 << 4)                                                   \
    X(DSA_SWERR_WRITE, 1 << 5)                                                   \
    X(DSA_SWERR_ERROR_SHIFT, 8)                                                  \
    X(DSA_SWERR_QUEUE_SHIFT, 16)                                                 \
    X(DSA_SWERR_OPERATION_SHIFT, 32)                                             \
    X(DSA_SWERR_FLAGS_SHIFT, 16 + 16)                                            \
    X(DSA_GRPCFG_BYTES, 64)                                                      \
    X(DSA_GRPCFG_QUEUES, 0)                                                      \
    X(DSA_GRPCFG_ENGINES, 32)                                                    \
    X(DSA_GRPCFG_FLAGS, 40)                                                      \
    X(DSA_GRPFLAGS_LIMIT, 1 << (3 + 3 + 1))                                      \
    X(DSA_GRPFLAGS_RESERVED_SHIFT, 8)                                            \
    X(DSA_GRPFLAGS_ALLOWED_SHIFT, 8 + 8 + 4)                                     \
    X(DSA_WQCFG_BYTES, 1 << 5)                                                   \
    X(DSA_WQCFG_SIZE, 0)                                                         \
    X(DSA_WQCFG_THRESHOLD, 4)                                                    \
    X(DSA_WQCFG_MODE, 2 * 4)                                                     \
    X(DSA_WQCFG_DEDICATED, 1 << 0)                                               \
    X(DSA_WQCFG_BLOCK, 1 << 1)                                                   \
    X(DSA_WQCFG_PRIORITY_SHIFT, 4)                                               \
    X(DSA_WQCFG_PRIORITY_MASK, 0xf << 4)                                         \
    X(DSA_WQCFG_PASID_ENABLE, 1 << (4 + 4 + 20))                                 \
    X(DSA_WQCFG_LIMITS, 12)                                                      \
    X(DSA_WQCFG_TRANSFER_MASK, 0x1f)                                             \
    X(DSA_WQCFG_BATCH_SHIFT, 5)                                                  \
    X(DSA_WQCFG_BATCH_MASK, 0xf << 5)                                            \
    X(DSA_WQCFG_VECTOR, 16)                                                      \
    X(DSA_WQCFG_OCCUPANCY_LIMIT, 20)                                             \
    X(DSA_WQCFG_STATUS, 6 * 4)                                                   \
    X(DSA_WQCFG_OCCUPANCY_MASK, 0xffff)                                          \
    X(DSA_WQCFG_STATE_SHIFT, 16 + 1 + 12 + 1)

#define AS_DESCRIPTORS(X)                \
    X(DSA_FLAG_FENCE, 0x0001)            \
    X(DSA_FLAG_BLOCK_ON_FAULT, 0x0002)   \
    X(DSA_FLAG_RECORD_VALID, 0x0004)     \
    X(DSA_FLAG_RECORD, 0x0008)           \
    X(DSA_FLAG_INTERRUPT, 0x0010)        \
    X(DSA_FLAG_CACHE, 0x0100)            \
    X(DSA_FLAG_STRICT, 0x2000)           \
    X(DSA_FLAG_READBACK, 0x4000)         \
    X(DSA_FLAGS_MASK, (1 << 24) - 1)     \
    X(DSA_OPERATION_SHIFT, 24)           \
    X(DSA_DESCRIPTOR_BYTES, 64)          \
    X(DSA_RECORD_BYTES, 32)              \
    X(DSA_BATCH_MIN, 2)                  \
    X(DSA_BATCH_ALIGNMENT, 64)           \
    X(DSA_STATUS_MASK, 0x7f)             \
    X(DSA_STATUS_WRITE, 0x80)            \
    X(DSA_OP_NOOP, 0)                    \
    X(DSA_OP_BATCH, 1)                   \
    X(DSA_OP_DRAIN, 2)                   \
    X(DSA_OP_MOVE, 3)                    \
    X(DSA_OP_FILL, 4)                    \
    X(DSA_STATUS_SUCCESS, 1)             \
    X(DSA_STATUS_FAULT, 3)               \
    X(DSA_STATUS_BATCH, 5)               \
    X(DSA_STATUS_BATCH_FAULT, 6)         \
    X(DSA_STATUS_OPERATION, 0x10)        \
    X(DSA_STATUS_FLAGS, 0x11)            \
    X(DSA_STATUS_RESERVED, 0x12)         \
    X(DSA_STATUS_BYTES, 0x13)            \
    X(DSA_STATUS_COUNT, 0x14)            \
    X(DSA_STATUS_OVERLAP, 0x16)          \
    X(DSA_STATUS_LIST_ALIGNMENT, 0x18)   \
    X(DSA_STATUS_HANDLE, 0x19)           \
    X(DSA_STATUS_RECORD_ADDRESS, 0x1a)   \
    X(DSA_STATUS_RECORD_ALIGNMENT, 0x1b) \
    X(DSA_CMD_ENABLE_DEVICE, 1)          \
    X(DSA_CMD_RESET_DEVICE, 5)           \
    X(DSA_CMD_ENABLE_WQ, 6)              \
    X(DSA_CMD_RESET_WQ, 10)              \
    X(DSA_CMD_RELEASE_HANDLE, 14)        \
    X(DSA_CMDSTS_BUS_MASTER, 0x12)       \
    X(DSA_CMDSTS_GROUP, 0x15)            \
    X(DSA_CMDSTS_NOT_ENABLED, 0x20)      \
    X(DSA_CMDSTS_QUEUE_TRANSFER, 0x28)   \
    X(DSA_CMDSTS_DEVICE_OFF, 0x31)       \
    X(DSA_CMDSTS_QUEUE_OFF, 0x32)

/* Linux has no names for them: they are as we recall the specification. */
#define FROM_MEMORY(X)             \
    X(DSA_SWERR_PORTAL_OFF, 0x50)  \
    X(DSA_SWERR_PORTAL_FULL, 0x51) \
    X(DSA_SWERR_PORTAL_SIZE, 0x52)

static void test_constants(void **state)
{
    static const struct hw_vector values[] = { AS_REGISTERS(HW_VECTOR) AS_DESCRIPTORS(HW_VECTOR)
                                                   FROM_MEMORY(HW_VECTOR) };
    (void)state;
    hw_vectors_compare(values, N_OF(values));
    hw_vectors_cover("hw/dsa_regs.h", values, N_OF(values));
}

/* GENCAP of a Sapphire Rapids server, as accel-config shows it beside its values. */
static void test_a_reported_capability(void **state)
{
    const uint64_t gencap = UINT64_C(0x40915f0107);
    (void)state;
    assert_int_equal(
        UINT64_C(1) << ((gencap & DSA_GENCAP_TRANSFER_LOG2_MASK) >> DSA_GENCAP_TRANSFER_LOG2_SHIFT),
        UINT64_C(2147483648));
    assert_int_equal(1 << ((gencap & DSA_GENCAP_BATCH_LOG2_MASK) >> DSA_GENCAP_BATCH_LOG2_SHIFT),
                     1024);
    assert_true(gencap & DSA_GENCAP_CONFIGURABLE);
}

/* A move and its record, laid out by hand after struct dsa_hw_desc and dsa_completion_record. */
static void test_bytes_of_a_descriptor(void **state)
{
    static const uint8_t bytes[64] = {
        0x00, 0x00, 0x00, 0x00, 0x1c, 0x01, 0x00, 0x03, 0x20, 0x11, 0x22, 0x33, 0x44,
        0x00, 0x00, 0x00, 0x80, 0x70, 0x60, 0x50, 0x40, 0x30, 0x20, 0x10, 0x88, 0x77,
        0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x00, 0x10, 0x00, 0x00, 0x05, 0x00,
    };
    static const uint8_t end[32] = { 0x83, 0x00, 0x00, 0x00, 0x40, 0x00, 0x00, 0x00, 0x00, 0xf0,
                                     0x0d, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x10, 0x00 };
    const struct dsa_descriptor descriptor = {
        .flags_operation = DSA_FLAG_RECORD_VALID | DSA_FLAG_RECORD | DSA_FLAG_INTERRUPT |
                           DSA_FLAG_CACHE | (uint32_t)DSA_OP_MOVE << DSA_OPERATION_SHIFT,
        .record = UINT64_C(0x4433221120),
        .source = UINT64_C(0x1020304050607080),
        .destination = UINT64_C(0x1122334455667788),
        .bytes = 4096,
        .interrupt_handle = 5,
    };
    const struct dsa_record record = { .status = DSA_STATUS_FAULT | DSA_STATUS_WRITE,
                                       .completed = 64,
                                       .fault_address = 0xdf000,
                                       .invalid_flags = 0x100002 };
    (void)state;
    assert_memory_equal(&descriptor, bytes, sizeof(bytes));
    assert_memory_equal(&record, end, sizeof(end));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constants),
        cmocka_unit_test(test_a_reported_capability),
        cmocka_unit_test(test_bytes_of_a_descriptor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
