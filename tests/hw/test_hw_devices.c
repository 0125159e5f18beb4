/*
 * The data sheets of our own devices. What they share with real ones is compared with Linux: NIC
 * with mlx5 (include/linux/mlx5/qp.h, device.h; big-endian there), the bridge's DMA engine with
 * drivers/dma/plx_dma.c. Structures are compared with bytes laid out by hand, and no two registers
 * of a BAR overlap.
 */
#include "hw/gpu_regs.h"
#include "hw/nic_regs.h"
#include "hw/ntb_regs.h"
#include "tests/hw/hw_vectors.h"

/* ---- Registers of a BAR ---------------------------------------------------------------------- */

struct region {
    const char *name;
    uint64_t at, bytes;
};
#define REGION(name, at, bytes) \
    {                           \
        name, at, bytes         \
    }
#define REGISTER(name, bytes)     REGION(#name, name, bytes)
#define REGISTERS(name, n, bytes) REGION(#name, name(0), (uint64_t)(n) * (bytes))

/* In ascending order, disjoint, aligned to their size (at most 8 bytes), within the BAR. */
static void check_regions(const struct region *region, size_t n, uint64_t bar_bytes)
{
    uint64_t end = 0;
    for (size_t i = 0; i < n; i++) {
        if (region[i].at < end)
            fail_msg("%s overlaps what is before it", region[i].name);
        assert_int_equal(region[i].at % (region[i].bytes < 8 ? region[i].bytes : 8), 0);
        end = region[i].at + region[i].bytes;
    }
    assert_true(end <= bar_bytes);
}

static void test_registers_do_not_overlap(void **state)
{
    (void)state;
    static const struct region nic[] = {
        { "NIC_REG_VERSION to NIC_REG_RATE_GBIT_S", NIC_REG_VERSION, NIC_REG_RATE_GBIT_S + 4 },
        REGISTER(NIC_REG_COMMAND_LOW, 4),
        REGISTER(NIC_REG_COMMAND_HIGH, 4),
        REGISTERS(NIC_DOORBELL_SQ, 4096, 8),
        REGISTERS(NIC_DOORBELL_CQ, 4096, 8),
        REGISTERS(NIC_DOORBELL_EQ, 4096, 8),
        REGISTER(NIC_MSIX_TABLE, 16 * NIC_MSIX_VECTORS),
        REGISTER(NIC_MSIX_PBA, NIC_MSIX_VECTORS / 8),
    };
    static const struct region gpu[] = {
        REGISTER(GPU_REG_VERSION, 4),
        REGISTER(GPU_REG_MEMORY_MIB, 4),
        REGISTER(GPU_REG_COPY_ENGINES, 4),
        REGISTER(GPU_REG_ADDRESS_BITS, 4),
        REGISTER(GPU_REG_CLOCK_KHZ, 4),
        REGISTER(GPU_REG_TIMER, 8),
        REGISTERS(GPU_CHANNEL, GPU_CHANNELS_MAX, 0x40),
        REGISTER(GPU_MSIX_TABLE, 16 * GPU_MSIX_VECTORS),
        REGISTER(GPU_MSIX_PBA, 8),
    };
    static const struct region channel[] = {
        REGISTER(GPU_CHANNEL_RING_LOW, 4), REGISTER(GPU_CHANNEL_RING_HIGH, 4),
        REGISTER(GPU_CHANNEL_LOG, 4),      REGISTER(GPU_CHANNEL_CONTROL, 4),
        REGISTER(GPU_CHANNEL_PUT, 4),      REGISTER(GPU_CHANNEL_GET, 4),
        REGISTER(GPU_CHANNEL_STATUS, 4),
    };
    static const struct region ntb[] = {
        REGISTER(NTB_REG_ID, 4),
        REGISTER(NTB_REG_CONTROL, 4),
        REGISTER(NTB_REG_STATUS, 4),
        REGISTER(NTB_REG_NODE, 4),
        REGISTER(NTB_REG_WINDOWS, 4),
        REGISTER(NTB_REG_WINDOW_LOG2, 4),
        REGISTER(NTB_REG_REQUESTERS, 4),
        REGISTER(NTB_REG_DOORBELL, 4),
        REGISTER(NTB_REG_DOORBELL_MASK, 4),
        REGISTER(NTB_REG_MC_CONTROL, 4),
        REGISTER(NTB_REG_MC_RECEIVE, 8),
        REGISTER(NTB_REG_MC_OVERLAY, 8),
        REGISTER(NTB_REG_SCRATCHPAD, 4 * NTB_N_SCRATCHPADS),
        REGISTER(NTB_REG_OUTGOING, 4 * NTB_OUTGOING_MAX),
        REGISTER(NTB_REG_INCOMING, 4 * NTB_INCOMING_MAX),
        REGISTER(NTB_REG_MSIX_TABLE, 16 * NTB_N_VECTORS),
        REGISTER(NTB_REG_MSIX_PBA, 8),
        REGISTER(NTB_REG_LUT2, 8 * NTB_WINDOWS_MAX),
        REGISTER(NTB_REG_LUT4, 8 * NTB_WINDOWS_MAX),
    };
    static const struct region dma[] = {
        REGISTER(NTB_DMA_REG_CHANNELS, 4),
        REGISTERS(NTB_DMA_CHANNEL, NTB_DMA_CHANNELS_MAX, 0x100),
        REGISTER(NTB_DMA_REG_MSIX_TABLE, 16 * NTB_DMA_CHANNELS_MAX),
        REGISTER(NTB_DMA_REG_MSIX_PBA, 8),
    };
    check_regions(nic, N_OF(nic), NIC_BAR_BYTES);
    check_regions(gpu, N_OF(gpu), GPU_BAR_BYTES);
    check_regions(channel, N_OF(channel), GPU_CHANNEL(1) - GPU_CHANNEL(0));
    check_regions(ntb, N_OF(ntb), NTB_BAR_BYTES);
    check_regions(dma, N_OF(dma), NTB_DMA_BAR_BYTES);
}

/* ---- NIC ------------------------------------------------------------------------------------- */

/* X(ours, mlx5's): MLX5_SEND_WQE_BB, mlx5_wqe_eth_seg, mlx5_wqe_data_seg, mlx5_cqe64, mlx5_eqe. */
#define AS_MLX5(X)                                         \
    X(NIC_WQE_BLOCK_BYTES, 64)                             \
    X(NIC_RQ_WQE_BYTES, 16)                                \
    X(offsetof(struct nic_wqe_ethernet, checksum), 4)      \
    X(offsetof(struct nic_wqe_ethernet, segment_bytes), 6) \
    X(offsetof(struct nic_wqe_ethernet, inline_bytes), 12) \
    X(offsetof(struct nic_wqe_ethernet, inline_start), 14) \
    X(offsetof(struct nic_wqe_data, bytes), 0)             \
    X(offsetof(struct nic_wqe_data, iova), 8)              \
    X(offsetof(struct nic_cqe, op_own), 63)                \
    X(offsetof(struct nic_eqe, owner), 63)                 \
    X(sizeof(struct nic_command), 64)

static void test_nic_is_laid_out_like_mlx5(void **state)
{
    (void)state;
    static const struct hw_vector values[] = { AS_MLX5(HW_VECTOR) };
    hw_vectors_compare(values, N_OF(values));
}

static void test_bytes_of_a_transmit_wqe(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {
        0x02, 0x07, 0x34, 0x12, 0x05, 0x00, 0x01, 0,
        0,    0,    0,    0,    0,    0,    0,    0, /* control */
        0,    0,    0,    0,    0x03, 0,    0xa8, 0x05,
        0,    0,    0,    0,    0x42, 0x00, 0xaa, 0xbb, /* ethernet */
        0x00, 0x10, 0,    0,    0x02, 0,    0,    0,
        0x00, 0xe0, 0x56, 0x34, 0x12, 0,    0,    0, /* data */
    };
    const struct {
        struct nic_wqe_control control;
        struct nic_wqe_ethernet ethernet;
        struct nic_wqe_data data;
    } wqe = {
        { .opcode = NIC_OP_TSO,
          .n_segments = 7,
          .index = 0x1234,
          .queue = 5,
          .flags = NIC_WQE_COMPLETION },
        { .checksum = NIC_CHECKSUM_L3 | NIC_CHECKSUM_L4,
          .segment_bytes = 1448,
          .inline_bytes = 66,
          .inline_start = { 0xaa, 0xbb } },
        { .bytes = 4096, .function_hint = 2, .iova = 0x123456e000 },
    };
    assert_int_equal(sizeof(wqe), sizeof(bytes));
    assert_memory_equal(&wqe, bytes, sizeof(bytes));
}

static void test_bytes_of_a_receive_completion(void **state)
{
    (void)state;
    static const uint8_t bytes[64] = {
        0xef,        0xbe, 0xad, 0xde, 0x03, 0x02, 0x42, 0x00, /* hash, flags, segments, headers */
        0x92,        0x0b, 0x00, 0x00, 0x34, 0x12, 0x05, 0x00, /* bytes, buffer, queue */
        0x08,        0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, /* time */
        0x44,        0x33, 0x22, 0x11, 0x88, 0x77, 0x66, 0x55, /* acknowledgement, time stamps */
        0xcc,        0xbb, 0xaa, 0x99, 0xfe, 0xca, 0x10,       /* ..., window, flags */
        [63] = 0x21,                                           /* received; pass 0 */
    };
    const struct nic_cqe cqe = {
        .rss_hash = 0xdeadbeef,
        .flags = NIC_CQE_CHECKSUM_OK | NIC_CQE_HASH,
        .segments = 2,
        .header_bytes = 66,
        .bytes = 66 + 2 * 1448,
        .wqe_index = 0x1234,
        .queue = 5,
        .time_ps = 0x0102030405060708,
        .lro_ack = 0x11223344,
        .lro_tsval = 0x55667788,
        .lro_tsecr = 0x99aabbcc,
        .lro_window = 0xcafe,
        .lro_flags = 0x10,
        .op_own = NIC_CQE_RECEIVED << 4 | 1,
    };
    assert_memory_equal(&cqe, bytes, sizeof(bytes));
}

static void test_bytes_of_a_flow_command(void **state)
{
    (void)state;
    static const uint8_t bytes[64] = {
        0x0b,        0x00, 0xff, 0x00, 0x00,
        0x00,        0x09, 0x00, /* opcode, status, log, queue, target */
        [32] = 0x02, 0x00, 0xa8, 0xc0, 0x01,
        0x00,        0xa8, 0xc0,             /* 192.168.0.2 to 192.168.0.1 */
        [40] = 0x40, 0x9c, 0x51, 0x14, 0x06, /* 40000 to 5201, TCP */
    };
    const struct nic_command command = {
        .opcode = NIC_SET_FLOW,
        .status = NIC_COMMAND_PENDING,
        .target = 9,
        .source_ip = 0xc0a80002,
        .destination_ip = 0xc0a80001,
        .source_port = 40000,
        .destination_port = 5201,
        .protocol = 6,
    };
    assert_memory_equal(&command, bytes, sizeof(bytes));
}

static void test_bytes_of_a_match_command(void **state)
{
    (void)state;
    static const uint8_t bytes[64] = {
        0x11,        0x00, 0xff, 0x00,
        0x03,        0x00, 0x09, 0x00, /* opcode, status, log, rule, target */
        [29] = 0x02,                   /* of the switch */
        [32] = 0xdf, 0x86, 0x10, 0x1c, /* Ethernet type 86df; 16, 28 */
        [36] = 0x00, 0x00, 0xff, 0x00,
        0x00,        0x00, 0x05, 0x00, /* mask, value */
        [44] = 0xff, 0x00, 0x00, 0x00,
        0x85,        0x00, 0x00, 0x00, /* mask, value */
    };
    const struct nic_command command = {
        .opcode = NIC_SET_MATCH,
        .status = NIC_COMMAND_PENDING,
        .queue = 3,
        .target = 9,
        .flags = NIC_COMMAND_SWITCH,
        .match = { .ether_type = 0x86df,
                   .offset = { 16, 28 },
                   .word = { { 0x00ff0000, 0x00050000 }, { 0xff, 0x85 } } },
    };
    assert_memory_equal(&command, bytes, sizeof(bytes));
}

/* ---- GPU ------------------------------------------------------------------------------------- */

static void test_bytes_of_a_copy_command(void **state)
{
    (void)state;
    static const uint8_t bytes[64] = {
        /* copy from device memory, flush, four-word semaphore, interrupt */
        0xd5,        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00,        0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, /* 1 MiB */
        0x00,        0x20, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* from 2000 */
        0x00,        0x30, 0x78, 0x56, 0x34, 0x12, 0x00, 0x00, /* to 123456783000 */
        [40] = 0x40, 0x00, 0x78, 0x56, 0x34, 0x12, 0x00, 0x00, /* semaphore */
        [48] = 0x78, 0x56, 0x34, 0x12,                         /* its payload */
    };
    const struct gpu_command copy = {
        .launch = GPU_LAUNCH_COPY | GPU_SOURCE_DEVICE | GPU_FLUSH | GPU_RELEASE_TIME |
                  GPU_INTERRUPT,
        .bytes = 1 << 20,
        .source = 0x2000,
        .destination = 0x123456783000,
        .semaphore = 0x123456780040,
        .payload = 0x12345678,
    };
    assert_memory_equal(&copy, bytes, sizeof(bytes));
}

/* ---- DMA engine of the bridge ---------------------------------------------------------------- */

/* X(ours, plx_dma.c's). Its CTRL2 and INTR_STATUS are 16 bits wide, our bits 31:16 of the word. */
#define AS_PLX(X)                                             \
    X(NTB_VENDOR_ID, 0x10b5)                                  \
    X(NTB_DMA_DEVICE_ID, 0x87d0)                              \
    X(NTB_DMA_CLASS, 0x0880 << 8)                             \
    X(NTB_DMA_CHANNEL(0) + NTB_DMA_RING_LOW, 0x214)           \
    X(NTB_DMA_CHANNEL(0) + NTB_DMA_RING_HIGH, 0x218)          \
    X(NTB_DMA_CHANNEL(0) + NTB_DMA_NEXT_LOW, 0x21c)           \
    X(NTB_DMA_CHANNEL(0) + NTB_DMA_RING_SIZE, 0x220)          \
    X(NTB_DMA_CHANNEL(0) + NTB_DMA_LAST_LOW, 0x224)           \
    X(NTB_DMA_CHANNEL(0) + NTB_DMA_LAST_SIZE, 0x228)          \
    X(NTB_DMA_CHANNEL(0) + NTB_DMA_PREFETCH, 0x234)           \
    X(NTB_DMA_CHANNEL(0) + NTB_DMA_CONTROL, 0x238)            \
    X(NTB_DMA_CHANNEL(0) + NTB_DMA_INTERRUPT, 0x23c)          \
    X(NTB_DMA_CONTROL_PAUSE, 1 << 0)                          \
    X(NTB_DMA_CONTROL_START, 1 << 3)                          \
    X(NTB_DMA_CONTROL_INVALID, 1 << 8)                        \
    X(NTB_DMA_CONTROL_PAUSE_DONE, 1 << 9)                     \
    X(NTB_DMA_CONTROL_STATUS, 1 << 8 | 1 << 9)                \
    X(NTB_DMA_CONTROL_IN_PROGRESS, 1 << 30)                   \
    X(NTB_DMA_CONTROL_SIZE_SHIFT, (0x23a - 0x238) * 8)        \
    X(NTB_DMA_CONTROL_SIZE_MASK, 7 << 16)                     \
    X(NTB_DMA_SIZE_MIN << 5, NTB_DMA_SIZE_MAX)                \
    X(NTB_DMA_INTERRUPT_ERROR_ENABLE, 1 << 0)                 \
    X(NTB_DMA_INTERRUPT_ERROR, 1 << 0 << (0x23e - 0x23c) * 8) \
    X(NTB_DMA_INTERRUPT_DONE, 1 << 2 << (0x23e - 0x23c) * 8)  \
    X(NTB_DMA_VALID, UINT64_C(1) << 31)                       \
    X(NTB_DMA_NOTIFY, 1 << 30)                                \
    X(NTB_DMA_OK, 1 << 30)                                    \
    X(NTB_DMA_READ_FAIL, 1 << 29)                             \
    X(NTB_DMA_WRITE_FAIL, 1 << 28)                            \
    X(NTB_DMA_BYTES_MASK, 0x7ffffff)

static void test_dma_engine_is_that_of_plx(void **state)
{
    (void)state;
    static const struct hw_vector values[] = { AS_PLX(HW_VECTOR) };
    /* flags and size, destination 47:32, source 47:32, destination 31:0, source 31:0 */
    static const uint8_t bytes[16] = { 0x40, 0x23, 0x01, 0xc0, 0x22, 0x11, 0x44, 0x33,
                                       0x98, 0xba, 0xdc, 0xfe, 0x10, 0x32, 0x54, 0x76 };
    const struct ntb_dma_descriptor descriptor = {
        .flags_bytes = NTB_DMA_VALID | NTB_DMA_NOTIFY | 0x12340,
        .destination_high = 0x1122,
        .destination_low = 0xfedcba98,
        .source_high = 0x3344,
        .source_low = 0x76543210,
    };
    hw_vectors_compare(values, N_OF(values));
    assert_memory_equal(&descriptor, bytes, sizeof(bytes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_registers_do_not_overlap),
        cmocka_unit_test(test_nic_is_laid_out_like_mlx5),
        cmocka_unit_test(test_bytes_of_a_transmit_wqe),
        cmocka_unit_test(test_bytes_of_a_receive_completion),
        cmocka_unit_test(test_bytes_of_a_flow_command),
        cmocka_unit_test(test_bytes_of_a_match_command),
        cmocka_unit_test(test_bytes_of_a_copy_command),
        cmocka_unit_test(test_dma_engine_is_that_of_plx),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
