/* TLPs: sizes on the wire, credits, pools, completions. */
#include "tests/support/pcie_rig.h"

/* docs/sources.md#g: 24 bytes beside the payload with 64-bit, 20 with 32-bit addresses. */
static void wire_bytes_are_those_of_the_specification(void **state)
{
    static const struct {
        enum tlp_type type;
        uint64_t address;
        uint16_t length_bytes;
        unsigned wire_bytes, data_credits;
    } row[] = {
        { TLP_MWR, UINT64_C(0x100000000), 64, 88, 4 },
        { TLP_MWR, UINT64_C(0x100000000), 256, 280, 16 },
        { TLP_MWR, 0xfffffff0, 4, 24, 1 },
        { TLP_MWR, 0x1000, 128, 148, 8 },
        { TLP_MWR, 0x1001, 1, 24, 1 },
        { TLP_MWR, 0x1003, 2, 28, 1 }, /* two double words */
        { TLP_MWR, 0x1000, 17, 40, 2 },
        { TLP_DMWR, UINT64_C(0x100000000), 64, 88, 4 },
        { TLP_MRD, UINT64_C(0x100000000), 512, 24, 0 },
        { TLP_MRD, 0x1000, 512, 20, 0 },
        { TLP_CPLD, UINT64_C(0x100000000), 64, 84, 4 },
        { TLP_CPL, 0, 0, 20, 0 },
        { TLP_CFG_RD0, 0, 4, 20, 0 },
        { TLP_CFG_WR1, 0x10, 4, 24, 1 },
        { TLP_MSG, 0, 0, 24, 0 },
        { TLP_MSG, 0, 8, 32, 1 },
    };
    (void)state;
    for (size_t i = 0; i < SIM_N_ELEMENTS(row); i++) {
        struct tlp tlp = { .type = (uint8_t)row[i].type,
                           .address = row[i].address,
                           .length_bytes = row[i].length_bytes };
        assert_int_equal(tlp_wire_bytes(&tlp), row[i].wire_bytes);
        tlp.digest = true; /* no data: no credits (2.6.1) */
        assert_int_equal(tlp_wire_bytes(&tlp), row[i].wire_bytes + 4);
        assert_int_equal(tlp_data_credits(&tlp), row[i].data_credits);
    }
}

static void classes(void **state)
{
    static const enum tlp_class class[] = {
        [TLP_MRD] = TLP_NON_POSTED,     [TLP_MWR] = TLP_POSTED,
        [TLP_DMWR] = TLP_NON_POSTED,    [TLP_CFG_RD0] = TLP_NON_POSTED,
        [TLP_CFG_WR0] = TLP_NON_POSTED, [TLP_CFG_RD1] = TLP_NON_POSTED,
        [TLP_CFG_WR1] = TLP_NON_POSTED, [TLP_MSG] = TLP_POSTED,
        [TLP_CPL] = TLP_COMPLETION,     [TLP_CPLD] = TLP_COMPLETION,
    };
    (void)state;
    for (unsigned type = 0; type < SIM_N_ELEMENTS(class); type++) {
        struct tlp tlp = { .type = (uint8_t)type };
        assert_int_equal(tlp_class_of(&tlp), class[type]);
    }
}

/* Every size can be filled to its last byte, and freeing takes payload and stamp along even if
 * somebody shortened the TLP. */
static void pools_keep_count(void **state)
{
    struct rig rig;
    struct tlp *tlp[TLP_PAYLOAD_BYTES_MAX / 32];
    size_t n = 0;

    (void)state;
    pcie_rig_init(&rig, 1);
    for (unsigned bytes = 1; bytes <= TLP_PAYLOAD_BYTES_MAX; bytes += bytes < 300 ? 13 : 257) {
        tlp[n] = pcie_rig_tlp(&rig, TLP_MWR, 0, bytes, n);
        assert_int_equal((uintptr_t)tlp[n]->payload % 16, 0);
        tlp[n++]->stamp = stamp_new(rig.pcie, 5);
    }
    tlp[n++] = pcie_rig_tlp(&rig, TLP_MWR, 0, TLP_PAYLOAD_BYTES_MAX, 0);
    tlp[n++] = pcie_rig_tlp(&rig, TLP_MRD, 0, 512, 0);
    assert_int_equal(tlp_live(rig.pcie), n);
    for (size_t i = 0; i < n; i++) {
        tlp[i]->length_bytes = 1;
        tlp_free(rig.pcie, tlp[i]);
    }
    assert_int_equal(tlp_live(rig.pcie), 0);
    pcie_rig_release(&rig);
}

static void new_tlps_are_zero(void **state)
{
    struct rig rig;

    (void)state;
    pcie_rig_init(&rig, 1);
    struct tlp *dirty = tlp_new(rig.pcie, TLP_MSG);
    memset(dirty, 0xff, sizeof(*dirty));
    dirty->payload = NULL;
    dirty->stamp = NULL;
    tlp_free(rig.pcie, dirty);
    struct tlp *tlp = tlp_new(rig.pcie, TLP_CPL), expected = { .type = TLP_CPL };
    assert_memory_equal(tlp, &expected, sizeof(expected));
    tlp_free(rig.pcie, tlp);
    pcie_rig_release(&rig);
}

static void completions_take_over(void **state)
{
    struct rig rig;

    (void)state;
    pcie_rig_init(&rig, 1);
    struct tlp *read = pcie_rig_tlp(&rig, TLP_MRD, 0x123456784, 256, 77);
    read->requester_id = 0x1208;
    read->attr = TLP_ATTR_RELAXED_ORDERING;
    struct sim_stamp *stamp = read->stamp = stamp_new(rig.pcie, 0);
    struct tlp *cpl = tlp_completion(rig.pcie, read, 0x0300, TLP_SC);
    assert_int_equal(cpl->type, TLP_CPLD);
    assert_int_equal(cpl->requester_id, 0x1208);
    assert_int_equal(cpl->completer_id, 0x0300);
    assert_int_equal(cpl->tag, 77);
    assert_int_equal(cpl->attr, TLP_ATTR_RELAXED_ORDERING);
    assert_int_equal(cpl->length_bytes, 256);
    assert_int_equal(cpl->byte_count, 256);
    assert_int_equal(cpl->address, 0x123456784);
    assert_null(cpl->payload);
    assert_ptr_equal(cpl->stamp, stamp);
    assert_null(read->stamp);
    tlp_free(rig.pcie, cpl);

    cpl = tlp_completion(rig.pcie, read, 0x0300, TLP_UR);
    assert_int_equal(cpl->type, TLP_CPL);
    assert_int_equal(cpl->status, TLP_UR);
    assert_int_equal(cpl->length_bytes, 0);
    assert_int_equal(cpl->byte_count, 256);
    tlp_free(rig.pcie, cpl);
    tlp_free(rig.pcie, read);

    struct tlp *write = pcie_rig_tlp(&rig, TLP_CFG_WR0, 0x04, 4, 1);
    cpl = tlp_completion(rig.pcie, write, 0x0300, TLP_SC);
    assert_int_equal(cpl->type, TLP_CPL);
    assert_int_equal(cpl->byte_count, 4);
    tlp_free(rig.pcie, cpl);
    tlp_free(rig.pcie, write);
    assert_int_equal(tlp_live(rig.pcie), 0);
    pcie_rig_release(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wire_bytes_are_those_of_the_specification),
        cmocka_unit_test(classes),
        cmocka_unit_test(pools_keep_count),
        cmocka_unit_test(new_tlps_are_zero),
        cmocka_unit_test(completions_take_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
