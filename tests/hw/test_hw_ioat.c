/*
 * The DMA engine's registers, compared with Linux (drivers/dma/ioat/registers.h, hw.h, and
 * pci_ids.h; the first driver's registers of version 1.2) and descriptors with bytes laid out by
 * hand.
 */
#include "hw/ioat_regs.h"
#include "tests/hw/hw_vectors.h"

#define AS_LINUX(X)                                                                           \
    X(IOAT_VENDOR_ID, 0x8086)                                                                 \
    X(IOAT_DEVICE_ID_5000, 0x1a38)                                                            \
    X(IOAT_DEVICE_ID_BDX, 0x6f20)                                                             \
    X(IOAT_DEVICE_ID_SKX, 0x2021)                                                             \
    X(IOAT_CLASS, 0x0880 << 8)                                                                \
    X(IOAT_CHANNELS_MAX, 16)                                                                  \
    X(IOAT_BAR_BYTES_V1, 1024)                                                                \
    X(IOAT_BAR_BYTES_V3, 16384)                                                               \
    X(IOAT_MSIX_TABLE, 0x2000)                                                                \
    X(IOAT_MSIX_PBA, 0x3000)                                                                  \
    X(IOAT_VERSION_1_2, 0x12)                                                                 \
    X(IOAT_VERSION_3_2, 0x32)                                                                 \
    X(IOAT_CHANCNT, 0x00)                                                                     \
    X(IOAT_XFERCAP, 0x01)                                                                     \
    X(IOAT_GENCTRL, 0x02)                                                                     \
    X(IOAT_INTRCTRL, 0x03)                                                                    \
    X(IOAT_ATTNSTATUS, 0x04)                                                                  \
    X(IOAT_CBVER, 0x08)                                                                       \
    X(IOAT_PERPORTOFFSET, 0x0a)                                                               \
    X(IOAT_INTRDELAY, 0x0c)                                                                   \
    X(IOAT_CS_STATUS, 0x0e)                                                                   \
    X(IOAT_DMACAPABILITY, 0x10)                                                               \
    X(IOAT_GENERAL, 0x00 & ~3)                                                                \
    X(IOAT_XFERCAP_SHIFT, 8 * (0x01 & 3))                                                     \
    X(IOAT_GENCTRL_SHIFT, 8 * (0x02 & 3))                                                     \
    X(IOAT_INTRCTRL_SHIFT, 8 * (0x03 & 3))                                                    \
    X(IOAT_INTRDELAY_WORD, 0x0c & ~3)                                                         \
    X(IOAT_CS_STATUS_SHIFT, 8 * (0x0e & 3))                                                   \
    X(IOAT_INTRCTRL_MASTER_ENABLE, 0x01)                                                      \
    X(IOAT_INTRCTRL_STATUS, 0x02)                                                             \
    X(IOAT_INTRCTRL_INTERRUPT, 0x04)                                                          \
    X(IOAT_INTRCTRL_MSIX_VECTORS, 0x08)                                                       \
    X(IOAT_INTRDELAY_US_MASK, 0x3fff)                                                         \
    X(IOAT_INTRDELAY_SUPPORTED, 0x8000)                                                       \
    X(IOAT_DMACAP_DCA, 0x10)                                                                  \
    X(IOAT_CHANNEL_BYTES, 0x80)                                                               \
    X(IOAT_CHANNEL(0), 0x80)                                                                  \
    X(IOAT_CHANNEL(3), 0x200)                                                                 \
    X(IOAT_CHANCTRL, 0x00)                                                                    \
    X(IOAT_DMA_COMP, 0x02)                                                                    \
    X(IOAT_V1_CHANSTS, 0x04)                                                                  \
    X(IOAT_V1_CHAINADDR, 0x0c)                                                                \
    X(IOAT_V1_CHANCMD, 0x14)                                                                  \
    X(IOAT_V3_CHANCMD, 0x04)                                                                  \
    X(IOAT_V3_DMACOUNT, 0x06)                                                                 \
    X(IOAT_V3_DMACOUNT_SHIFT, 8 * (0x06 & 3))                                                 \
    X(IOAT_V3_CHANSTS, 0x08)                                                                  \
    X(IOAT_V3_CHAINADDR, 0x10)                                                                \
    X(IOAT_CHANCMP, 0x18)                                                                     \
    X(IOAT_CDAR, 0x20)                                                                        \
    X(IOAT_CHANERR, 0x28)                                                                     \
    X(IOAT_CHANERRMSK, 0x2c)                                                                  \
    X(IOAT_DCACTRL, 0x30)                                                                     \
    X(IOAT_CHANCTRL_INT_DISABLE, 0x0001)                                                      \
    X(IOAT_CHANCTRL_ERR_COMPLETION, 0x0004)                                                   \
    X(IOAT_CHANCTRL_ANY_ERR_ABORT, 0x0008)                                                    \
    X(IOAT_CHANCTRL_ERR_INT, 0x0010)                                                          \
    X(IOAT_CHANCTRL_DESC_SNOOP_OFF, 0x0020)                                                   \
    X(IOAT_CHANCTRL_IN_USE, 0x0100)                                                           \
    X(IOAT_CHANCTRL_COMPLETION_DCA, 0x0200)                                                   \
    X(IOAT_CHANCTRL_PRIORITY_MASK, 0xf000)                                                    \
    X(IOAT_V1_CHANCTRL_WRITABLE, 0xf000 | 0x0100 | 0x0020 | 0x0010 | 0x0008 | 0x0004)         \
    X(IOAT_V3_CHANCTRL_WRITABLE, 0x0200 | 0x0100 | 0x0020 | 0x0010 | 0x0008 | 0x0004)         \
    X(IOAT_CHANCMD_START, 0x01)                                                               \
    X(IOAT_CHANCMD_APPEND, 0x02)                                                              \
    X(IOAT_CHANCMD_SUSPEND, 0x04)                                                             \
    X(IOAT_CHANCMD_ABORT, 0x08)                                                               \
    X(IOAT_CHANCMD_RESUME, 0x10)                                                              \
    X(IOAT_CHANCMD_RESET, 0x20)                                                               \
    X(IOAT_CHANSTS_ADDRESS_MASK, ~0x3fULL)                                                    \
    X(IOAT_CHANSTS_STATUS_MASK, 0x7)                                                          \
    X(IOAT_CHANSTS_ACTIVE, 0x0)                                                               \
    X(IOAT_CHANSTS_IDLE, 0x1)                                                                 \
    X(IOAT_CHANSTS_SUSPENDED, 0x2)                                                            \
    X(IOAT_CHANSTS_HALTED, 0x3)                                                               \
    X(IOAT_CHANERR_SOURCE, 0x0001)                                                            \
    X(IOAT_CHANERR_DESTINATION, 0x0002)                                                       \
    X(IOAT_CHANERR_NEXT, 0x0004)                                                              \
    X(IOAT_CHANERR_NEXT_ALIGN, 0x0008)                                                        \
    X(IOAT_CHANERR_CHAIN, 0x0010)                                                             \
    X(IOAT_CHANERR_COMMAND, 0x0020)                                                           \
    X(IOAT_CHANERR_READ_DATA, 0x0100)                                                         \
    X(IOAT_CHANERR_WRITE_DATA, 0x0200)                                                        \
    X(IOAT_CHANERR_CONTROL, 0x0400)                                                           \
    X(IOAT_CHANERR_LENGTH, 0x0800)                                                            \
    X(IOAT_CHANERR_COMPLETION, 0x1000)                                                        \
    X(IOAT_CHANERR_COUNT, 0x40000)                                                            \
    X(IOAT_V1_CHANERR_ALL,                                                                    \
      0x1 | 0x2 | 0x4 | 0x8 | 0x10 | 0x20 | 0x100 | 0x200 | 0x400 | 0x800 | 0x1000)           \
    X(IOAT_V3_CHANERR_ALL,                                                                    \
      0x1 | 0x2 | 0x4 | 0x8 | 0x10 | 0x20 | 0x100 | 0x200 | 0x400 | 0x800 | 0x1000 | 0x40000) \
    X(IOAT_DCACTRL_TARGET_MASK, 0xffff)                                                       \
    X(IOAT_DESC_BYTES, 64)                                                                    \
    X(IOAT_CONTROL_INTERRUPT, 1 << 0)                                                         \
    X(IOAT_CONTROL_SOURCE_NO_SNOOP, 1 << 1)                                                   \
    X(IOAT_CONTROL_DEST_NO_SNOOP, 1 << 2)                                                     \
    X(IOAT_CONTROL_COMPLETION, 1 << 3)                                                        \
    X(IOAT_CONTROL_FENCE, 1 << 4)                                                             \
    X(IOAT_CONTROL_NULL, 1 << 5)                                                              \
    X(IOAT_CONTROL_DCA, 1 << 9)                                                               \
    X(IOAT_CONTROL_OP_SHIFT, 24)                                                              \
    X(IOAT_CONTROL_OP_COPY, 0)

static void test_registers_are_those_of_linux(void **state)
{
    (void)state;
    static const struct hw_vector vectors[] = { AS_LINUX(HW_VECTOR) };
    hw_vectors_compare(vectors, N_OF(vectors));
    hw_vectors_cover("hw/ioat_regs.h", vectors, N_OF(vectors));
}

static void test_bytes_of_a_descriptor(void **state)
{
    (void)state;
    static const uint8_t bytes[64] = {
        0x00, 0x10, 0x00, 0x00, 0x19, 0x00, 0x00, 0x00, /* 4096; completion, fence, interrupt */
        0x00, 0x30, 0x78, 0x56, 0x34, 0x12, 0x00, 0x00, /* from 123456783000 */
        0x80, 0x20, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, /* to 100002080 */
        0x40, 0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, /* then 100040 */
    };
    const struct ioat_descriptor descriptor = {
        .bytes = 4096,
        .control = IOAT_CONTROL_COMPLETION | IOAT_CONTROL_FENCE | IOAT_CONTROL_INTERRUPT,
        .source = 0x123456783000,
        .destination = 0x100002080,
        .next = 0x100040,
    };
    assert_memory_equal(&descriptor, bytes, sizeof(bytes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_registers_are_those_of_linux),
        cmocka_unit_test(test_bytes_of_a_descriptor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
