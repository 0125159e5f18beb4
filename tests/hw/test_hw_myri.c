/* hw/myri_regs.h and hw/myri_mx.h against bytes laid out by hand after Linux' myri10ge_mcp.h, and
 * against what must not overlap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "hw/myri_mx.h"

/* mcp_kreq_ether_send: address, offset of the pseudo header, length, pad, count, checksum offset,
 * flags. */
static void test_a_segment(void **state)
{
    const struct myri_send send = { .high = myri_be32(0x12),
                                    .low = myri_be32(0x3456789a),
                                    .header_offset = myri_be16(0x32),
                                    .bytes = myri_be16(0x1000),
                                    .n_segments = 2,
                                    .checksum_offset = 34,
                                    .flags = MYRI_SEND_FIRST | MYRI_SEND_CHECKSUM };
    static const uint8_t bytes[16] = { 0,    0,    0,    0x12, 0x34, 0x56, 0x78, 0x9a,
                                       0x00, 0x32, 0x10, 0x00, 0,    2,    34,   0x0a };
    (void)state;
    assert_memory_equal(&send, bytes, sizeof bytes);
}

/* mcp_cmd, mcp_cmd_response, mcp_slot, mcp_kreq_ether_recv. */
static void test_commands_and_completions(void **state)
{
    const struct myri_command command = { .command = myri_be32(MYRI_UP),
                                          .data2 = myri_be32(7),
                                          .response_low = myri_be32(0xcafe0040) };
    static const uint8_t bytes[24] = { 0, 0, 0, 14, [15] = 7, [20] = 0xca, 0xfe, 0x00, 0x40 };
    const struct myri_slot slot = { .checksum = myri_be16(0xabcd), .bytes = myri_be16(60) };
    static const uint8_t slot_bytes[4] = { 0xab, 0xcd, 0, 60 };
    (void)state;
    assert_memory_equal(&command, bytes, sizeof bytes);
    assert_memory_equal(&slot, slot_bytes, sizeof slot_bytes);
    assert_int_equal(sizeof(struct myri_receive), 8);
    assert_int_equal(offsetof(struct myri_response, result), 4);
}

/* mcp_irq_data; the numbers of commands; the windows for lines. */
static void test_numbers(void **state)
{
    (void)state;
    assert_int_equal(offsetof(struct myri_status, link_up), 28);
    assert_int_equal(offsetof(struct myri_status, dropped_overrun), 44);
    assert_int_equal(offsetof(struct myri_status, dropped_no_big), 52);
    assert_int_equal(offsetof(struct myri_status, tags_available), 56);
    assert_int_equal(offsetof(struct myri_status, updated), 62);
    assert_int_equal(MYRI_SET_STATUS_DMA, 31);
    assert_int_equal(MYRI_GET_SLICES_MAX, 35);
    assert_int_equal(MYRI_SET_STEERING, 43);
    assert_int_equal(MYRI_SEND(4), 0x200000);
    assert_int_equal(MYRI_SEND(1), 0x240000);
    assert_int_equal(MYRI_SEND(3), 0x2c0000);
}

/* No window lies in another, and all in the BAR. */
static void test_windows(void **state)
{
    const uint32_t mx_end = MYRI_MX_WINDOWS + MYRI_MX_ENDPOINTS * MYRI_MX_WINDOW_BYTES;
    (void)state;
    assert_true(MYRI_STRINGS + MYRI_STRINGS_BYTES <= MYRI_SEND(4));
    assert_true(MYRI_SEND(3) + MYRI_WINDOW_BYTES <= MYRI_RECEIVE_SMALL);
    assert_true(MYRI_RECEIVE_SMALL + MYRI_WINDOW_BYTES <= MYRI_RECEIVE_BIG);
    assert_true(MYRI_RECEIVE_BIG + MYRI_WINDOW_BYTES <= MYRI_MX_WINDOWS);
    assert_true(mx_end <= MYRI_COMMAND && MYRI_COMMAND + MYRI_LINE_BYTES <= MYRI_BAR_BYTES);
    assert_true(MYRI_MX_DATA >= MYRI_LINE_BYTES);
    assert_true(MYRI_MX_DATA + MX_SMALL_BYTES <= MYRI_MX_CONSUMED);
    assert_true(MYRI_MX_CONSUMED + 8 <= MYRI_MX_WINDOW_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_segment),
        cmocka_unit_test(test_commands_and_completions),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
