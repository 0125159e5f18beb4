/*
 * hw/rdma_regs.h against numbers typed from the InfiniBand Architecture Specification 1.3, volume 1
 * (sections named below), the verbs of Linux and pci.ids, and byte vectors of queue entries. What
 * is our own data sheet's (registers, commands, queue entries) is typed here a second time; regions
 * of the BAR do not overlap.
 */
#include "hw/rdma_regs.h"

#include <rdma/ib_user_ioctl_verbs.h>

#include "tests/hw/hw_vectors.h"

/* X(constant, number from elsewhere). */
#define CONSTANTS(X)                                                                   \
    /* pci.ids: Mellanox, MT27800 Family [ConnectX-5]; InfiniBand controller */        \
    X(RDMA_VENDOR_ID, 0x15b3)                                                          \
    X(RDMA_DEVICE_ID, 0x1017)                                                          \
    X(RDMA_CLASS_CODE, 0x020700)                                                       \
    /* the data sheet: registers */                                                    \
    X(RDMA_BAR_BYTES, 1 << 20)                                                         \
    X(RDMA_REG_VERSION, 0x00)                                                          \
    X(RDMA_REG_N_QPS, 0x04)                                                            \
    X(RDMA_REG_N_CQS, 0x08)                                                            \
    X(RDMA_REG_N_EQS, 0x0c)                                                            \
    X(RDMA_REG_N_KEYS, 0x10)                                                           \
    X(RDMA_REG_N_PDS, 0x14)                                                            \
    X(RDMA_REG_INLINE_BYTES, 0x18)                                                     \
    X(RDMA_REG_READS, 0x1c)                                                            \
    X(RDMA_REG_MTU_BYTES, 0x20)                                                        \
    X(RDMA_REG_LINK, 0x24)                                                             \
    X(RDMA_REG_RATE_GBIT_S, 0x28)                                                      \
    X(RDMA_REG_LID, 0x2c)                                                              \
    X(RDMA_REG_COMMAND_LOW, 0x40)                                                      \
    X(RDMA_REG_COMMAND_HIGH, 0x44)                                                     \
    X(RDMA_VERSION, 0x726d0001)                                                        \
    X(RDMA_DOORBELL_CQ_SOLICITED, 1 << 24)                                             \
    X(RDMA_MSIX_TABLE, 0x30000)                                                        \
    X(RDMA_MSIX_PBA, 0x38000)                                                          \
    X(RDMA_MSIX_VECTORS, 64)                                                           \
    X(RDMA_BLUEFLAME_BYTES, 256)                                                       \
    X(RDMA_QPS_MAX, 2048)                                                              \
    X(RDMA_CQS_MAX, 4096)                                                              \
    X(RDMA_EQS_MAX, 64)                                                                \
    /* work queue entries */                                                           \
    X(RDMA_WQE_BLOCK_BYTES, 64)                                                        \
    X(RDMA_WQE_BLOCKS_MAX, 16)                                                         \
    X(RDMA_SGES_MAX, 30)                                                               \
    X(RDMA_RING_LOG_MAX, 15)                                                           \
    X(RDMA_WQE_COMPLETION, 1 << 0)                                                     \
    X(RDMA_WQE_SOLICITED, 1 << 1)                                                      \
    X(RDMA_WQE_FENCE, 1 << 2)                                                          \
    X(RDMA_WQE_INLINE, UINT32_C(1) << 31)                                              \
    X(RDMA_KEY_NONE, 0)                                                                \
    X(RDMA_CQE_RECEIVE, 1 << 0)                                                        \
    X(RDMA_CQE_IMMEDIATE, 1 << 1)                                                      \
    X(RDMA_CQE_WRITTEN, 1 << 7)                                                        \
    /* <rdma/ib_user_ioctl_verbs.h>: access flags of the verbs */                      \
    X(RDMA_ACCESS_LOCAL_WRITE, 1 << 0)                                                 \
    X(RDMA_ACCESS_REMOTE_WRITE, 1 << 1)                                                \
    X(RDMA_ACCESS_REMOTE_READ, 1 << 2)                                                 \
    X(RDMA_ACCESS_REMOTE_ATOMIC, 1 << 3)                                               \
    /* 9.6.1.4: PMTU 1 (256) .. 5 (4096) */                                            \
    X(RDMA_MTU_CODE_MIN, 1)                                                            \
    X(RDMA_MTU_CODE_MAX, 5)                                                            \
    /* 9.7.6.1.3: 4.096 us x 2^t, 5 bits; 9.7.6.1.2: 3 bits; 9.7.6.2.2: 7 is always */ \
    X(RDMA_TIMEOUT_UNIT_NS, 4096)                                                      \
    X(RDMA_TIMEOUT_MAX, 31)                                                            \
    X(RDMA_RETRIES_MAX, 7)                                                             \
    X(RDMA_RNR_RETRIES_ALWAYS, 7)                                                      \
    X(RDMA_RNR_TIMERS, 32)                                                             \
    /* 9.2.1: 24 bits; 9.7.7: messages of up to 2^31 bytes; 3.9.2: QP0, QP1 */         \
    X(RDMA_PSN_MASK, (1 << 24) - 1)                                                    \
    X(RDMA_MESSAGE_MAX, UINT32_C(1) << 31)                                             \
    X(RDMA_QP_FIRST, 2)                                                                \
    /* 4.1.3: unicast LIDs end at BFFFh; 10.6.2: 8 bits of a key are the user's */     \
    X(RDMA_LID_LAST, 0xbfff)                                                           \
    X(RDMA_KEY_VARIANTS, 256)                                                          \
    /* the data sheet; NVM Express 1.3, 4.4: a list of one page */                     \
    X(RDMA_OFFLOAD_ENTRIES_MAX, 4096)                                                  \
    X(RDMA_OFFLOAD_SLOT_MAX, 512 * 4096)

/* Enumerations, and macros with parameters at one place each. */
#define VALUES(X)                                              \
    X(RDMA_DOORBELL_SQ(3), 0x10018)                            \
    X(RDMA_DOORBELL_RQ(3), 0x1001c)                            \
    X(RDMA_DOORBELL_CQ(3), 0x20018)                            \
    X(RDMA_DOORBELL_EQ(3), 0x28018)                            \
    X(RDMA_BLUEFLAME(3), 0x80300)                              \
    X(RDMA_MTU_BYTES(1), 256)                                  \
    X(RDMA_MTU_BYTES(5), 4096)                                 \
    /* 10.3.1; enum ib_qp_state of Linux */                    \
    X(RDMA_QP_RESET, 0)                                        \
    X(RDMA_QP_INIT, 1)                                         \
    X(RDMA_QP_RTR, 2)                                          \
    X(RDMA_QP_RTS, 3)                                          \
    X(RDMA_QP_SQD, 4)                                          \
    X(RDMA_QP_SQE, 5)                                          \
    X(RDMA_QP_ERR, 6)                                          \
    /* 11.6.2; enum ibv_wc_status of rdma-core */              \
    X(RDMA_SUCCESS, 0)                                         \
    X(RDMA_LOCAL_LENGTH, 1)                                    \
    X(RDMA_LOCAL_QP, 2)                                        \
    X(RDMA_LOCAL_PROTECTION, 4)                                \
    X(RDMA_FLUSHED, 5)                                         \
    X(RDMA_BAD_RESPONSE, 7)                                    \
    X(RDMA_REMOTE_INVALID, 9)                                  \
    X(RDMA_REMOTE_ACCESS, 10)                                  \
    X(RDMA_REMOTE_OPERATION, 11)                               \
    X(RDMA_RETRY_EXCEEDED, 12)                                 \
    X(RDMA_RNR_RETRY_EXCEEDED, 13)                             \
    /* the data sheet */                                       \
    X(RDMA_OP_SEND, 1)                                         \
    X(RDMA_OP_SEND_IMM, 2)                                     \
    X(RDMA_OP_WRITE, 3)                                        \
    X(RDMA_OP_WRITE_IMM, 4)                                    \
    X(RDMA_OP_READ, 5)                                         \
    X(RDMA_OP_COMPARE_SWAP, 6)                                 \
    X(RDMA_OP_FETCH_ADD, 7)                                    \
    X(RDMA_EVENT_COMPLETION, 1)                                \
    X(RDMA_CREATE_EQ, 1)                                       \
    X(RDMA_DESTROY_QP, 12)                                     \
    X(RDMA_SET_OFFLOAD, 13)                                    \
    X(RDMA_COMMAND_PENDING, 0xff)                              \
    /* <rdma/ib_user_ioctl_verbs.h> */                         \
    X(RDMA_ACCESS_LOCAL_WRITE, IB_UVERBS_ACCESS_LOCAL_WRITE)   \
    X(RDMA_ACCESS_REMOTE_WRITE, IB_UVERBS_ACCESS_REMOTE_WRITE) \
    X(RDMA_ACCESS_REMOTE_READ, IB_UVERBS_ACCESS_REMOTE_READ)   \
    X(RDMA_ACCESS_REMOTE_ATOMIC, IB_UVERBS_ACCESS_REMOTE_ATOMIC)

static const struct hw_vector constants[] = { CONSTANTS(HW_VECTOR) };
static const struct hw_vector values[] = { VALUES(HW_VECTOR) };

static void test_constants_are_those_of_the_specification(void **state)
{
    (void)state;
    hw_vectors_compare(constants, N_OF(constants));
    hw_vectors_cover("hw/rdma_regs.h", constants, N_OF(constants));
    hw_vectors_compare(values, N_OF(values));
}

/* 9.7.5.2.8, table 45: from 0.01 ms; 0 is 655.36 ms, 31 is 491.52 ms. */
static void test_timers_of_rnr_naks(void **state)
{
    (void)state;
    static const uint32_t timer[] = RDMA_RNR_TIMERS_10US();
    assert_int_equal(N_OF(timer), RDMA_RNR_TIMERS);
    assert_int_equal(timer[0], 65536);
    assert_int_equal(timer[1], 1);
    assert_int_equal(timer[31], 49152);
    assert_int_equal(timer[3], 3);
    for (unsigned i = 4; i < RDMA_RNR_TIMERS; i++) /* steps of a half and a third, in turn */
        assert_int_equal(timer[i], i % 2 == 0 ? timer[i - 1] * 4 / 3 : timer[i - 1] * 3 / 2);
}

static void test_places_do_not_overlap(void **state)
{
    (void)state;
    assert_true(RDMA_REG_COMMAND_HIGH + 4 <= RDMA_DOORBELL_SQ(0));
    assert_true(RDMA_DOORBELL_SQ(RDMA_QPS_MAX) <= RDMA_DOORBELL_CQ(0));
    assert_true(RDMA_DOORBELL_CQ(RDMA_CQS_MAX) <= RDMA_DOORBELL_EQ(0));
    assert_true(RDMA_DOORBELL_EQ(RDMA_EQS_MAX) <= RDMA_MSIX_TABLE);
    assert_true(RDMA_MSIX_TABLE + 16 * RDMA_MSIX_VECTORS <= RDMA_MSIX_PBA);
    assert_true(RDMA_MSIX_PBA + 8 <= RDMA_BLUEFLAME(0));
    assert_true(RDMA_BLUEFLAME(RDMA_QPS_MAX) <= RDMA_BAR_BYTES);
}

/* An RDMA write of 4096 bytes, and its completion, by hand. */
static void test_bytes_of_entries(void **state)
{
    (void)state;
    static const uint8_t wqe_bytes[48] = {
        0x03, 0x03, 0x34, 0x12, 0x05, 0x00, 0x00, 0x00, /* opcode, segments, index; queue pair */
        0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* flags; immediate */
        0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01, /* remote address */
        0x07, 0x42, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* rkey */
        0x00, 0x10, 0x00, 0x00, 0x08, 0x01, 0x00, 0x00, /* bytes; lkey */
        0x00, 0x00, 0xba, 0xdc, 0x01, 0x00, 0x00, 0x00, /* address */
    };
    struct {
        struct rdma_wqe_control control;
        struct rdma_wqe_remote remote;
        struct rdma_wqe_data data;
    } wqe = { { .opcode = RDMA_OP_WRITE,
                .n_segments = 3,
                .index = 0x1234,
                .qp = 5,
                .flags = RDMA_WQE_COMPLETION },
              { .va = 0x0123456789abcdef, .rkey = 0x4207 },
              { .bytes = 4096, .lkey = 0x108, .va = 0x1dcba0000 } };
    assert_int_equal(sizeof(wqe), sizeof(wqe_bytes));
    assert_memory_equal(&wqe, wqe_bytes, sizeof(wqe_bytes));

    static const uint8_t cqe_bytes[64] = {
        0x05, 0x00,        0x00, 0x00,
        0x00, 0x10,        0x00, 0x00, /* queue pair; bytes */
        0x78, 0x56,        0x34, 0x12,
        0x34, 0x12,        0x0a, 0x04, /* immediate; index, status, opcode */
        0x03, [63] = 0x81,             /* flags; owner */
    };
    const struct rdma_cqe cqe = { .qp = 5,
                                  .bytes = 4096,
                                  .immediate = 0x12345678,
                                  .wqe_index = 0x1234,
                                  .status = RDMA_REMOTE_ACCESS,
                                  .opcode = RDMA_OP_WRITE_IMM,
                                  .flags = RDMA_CQE_RECEIVE | RDMA_CQE_IMMEDIATE,
                                  .owner = RDMA_CQE_WRITTEN | 1 };
    assert_memory_equal(&cqe, cqe_bytes, sizeof(cqe_bytes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constants_are_those_of_the_specification),
        cmocka_unit_test(test_timers_of_rnr_naks),
        cmocka_unit_test(test_places_do_not_overlap),
        cmocka_unit_test(test_bytes_of_entries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
