#include "models/pcie/config/config_space.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "hw/pci_regs.h"

static const struct cfg_identity nic = {
    .vendor_id = 0x15b3,
    .device_id = 0x1017,
    .subsystem_vendor_id = 0x15b3,
    .subsystem_id = 0x0020,
    .class_code = 0x020000,
    .revision = 0x11,
};

static struct cfg_space endpoint(void)
{
    struct cfg_space cfg;
    cfg_init_endpoint(&cfg, &nic);
    cfg_add_pcie(&cfg, CFG_ENDPOINT, 3, 16, 512, true);
    return cfg;
}

static struct cfg_space root_port(void)
{
    struct cfg_space cfg;
    cfg_init_bridge(&cfg, &nic);
    cfg_add_pcie(&cfg, CFG_ROOT_PORT, 4, 8, 256, true);
    return cfg;
}

/* ---- Header ---------------------------------------------------------------------------------- */

static void header_says_who_it_is(void **state)
{
    (void)state;
    struct cfg_identity identity = nic;
    struct cfg_space cfg = endpoint();
    assert_int_equal(cfg_read(&cfg, PCI_VENDOR_ID, 4), 0x101715b3);
    assert_int_equal(cfg_read(&cfg, PCI_DEVICE_ID, 2), 0x1017);
    assert_int_equal(cfg_read(&cfg, PCI_DEVICE_ID + 1, 1), 0x10);
    assert_int_equal(cfg_read(&cfg, PCI_REVISION, 4), 0x02000011);
    assert_int_equal(cfg_read(&cfg, PCI_HEADER_TYPE, 1), 0x00);
    assert_int_equal(cfg_read(&cfg, PCI_SUBSYSTEM_VENDOR_ID, 4), 0x002015b3);
    identity.multi_function = true;
    cfg_init_bridge(&cfg, &identity);
    assert_int_equal(cfg_read(&cfg, PCI_HEADER_TYPE, 1), 0x81);
}

static void command_enables(void **state)
{
    (void)state;
    struct cfg_space cfg = endpoint();
    assert_false(cfg_bus_master(&cfg) || cfg_memory_enabled(&cfg));
    assert_true(cfg_write(&cfg, PCI_COMMAND, 2, PCI_COMMAND_BUS_MASTER));
    assert_true(cfg_bus_master(&cfg) && !cfg_memory_enabled(&cfg));
    assert_true(cfg_write(&cfg, PCI_COMMAND, 1, PCI_COMMAND_MEMORY)); /* one byte suffices */
    assert_true(!cfg_bus_master(&cfg) && cfg_memory_enabled(&cfg));
    assert_false(cfg_write(&cfg, PCI_COMMAND, 2, PCI_COMMAND_MEMORY)); /* nothing changed */
    cfg_write(&cfg, PCI_COMMAND, 2, 0xffff);
    assert_int_equal(cfg_read(&cfg, PCI_COMMAND, 2), 0x0546);
}

/* Whatever is written wherever: bits of neither mask stay. */
static void masks_hold_everywhere(void **state)
{
    (void)state;
    struct cfg_space cfg = root_port();
    cfg_add_msi(&cfg, 3);
    cfg_add_msix(&cfg, 64, 0, 0x1000, 0, 0x2000);
    cfg_add_acs(&cfg);
    static const uint32_t pattern[] = { 0, UINT32_MAX, 0x5a5a5a5a, 0xa5a5a5a5, 0 };
    for (unsigned p = 0; p < SIM_N_ELEMENTS(pattern); p++) {
        struct cfg_space before = cfg;
        for (unsigned offset = 0; offset < CFG_SPACE_BYTES; offset += 4)
            cfg_write(&cfg, offset, 4, pattern[p]);
        for (unsigned i = 0; i < CFG_KEPT_BYTES; i++) {
            uint8_t written = (uint8_t)pattern[p];
            const struct cfg_block *block = &cfg.block[i / CFG_BLOCK_BYTES];
            const unsigned at = i % CFG_BLOCK_BYTES;
            const uint8_t old = before.block[i / CFG_BLOCK_BYTES].value[at];
            uint8_t expected = (uint8_t)((old & ~block->wmask[at]) | (written & block->wmask[at]));
            expected = (uint8_t)(expected & ~(written & block->w1cmask[at]));
            assert_int_equal(block->value[at], expected);
        }
        for (unsigned offset = CFG_KEPT_BYTES; offset < CFG_SPACE_BYTES; offset += 4)
            assert_int_equal(cfg_read(&cfg, offset, 4), 0);
    }
}

static void write_one_to_clear(void **state)
{
    (void)state;
    struct cfg_space cfg = endpoint();
    cfg_log_abort(&cfg, TLP_UR);
    cfg_log_abort(&cfg, TLP_CA);
    const uint32_t both = PCI_STATUS_RECEIVED_MASTER_ABORT | PCI_STATUS_RECEIVED_TARGET_ABORT;
    assert_int_equal(cfg_read(&cfg, PCI_STATUS, 2), both | PCI_STATUS_CAP_LIST);
    assert_false(cfg_write(&cfg, PCI_STATUS, 2, PCI_STATUS_CAP_LIST));
    cfg_write(&cfg, PCI_STATUS, 2, PCI_STATUS_RECEIVED_MASTER_ABORT);
    assert_int_equal(cfg_read(&cfg, PCI_STATUS, 2),
                     PCI_STATUS_RECEIVED_TARGET_ABORT | PCI_STATUS_CAP_LIST);
}

static void errors_are_logged_by_severity(void **state)
{
    (void)state;
    struct cfg_space cfg = endpoint();
    unsigned status = cfg.pcie_cap + PCIE_DEVSTA, aer = cfg.aer_cap + PCI_AER_UNCORRECTABLE;
    cfg_log_error(&cfg, PCI_AER_COMPLETION_TIMEOUT);
    assert_int_equal(cfg_read(&cfg, status, 2), PCIE_DEVSTA_NON_FATAL);
    cfg_log_error(&cfg, PCI_AER_MALFORMED);
    assert_int_equal(cfg_read(&cfg, status, 2), PCIE_DEVSTA_NON_FATAL | PCIE_DEVSTA_FATAL);
    cfg_log_error(&cfg, PCI_AER_UNSUPPORTED);
    assert_true(cfg_read(&cfg, status, 2) & PCIE_DEVSTA_UNSUPPORTED);
    assert_int_equal(cfg_read(&cfg, aer, 4),
                     PCI_AER_COMPLETION_TIMEOUT | PCI_AER_MALFORMED | PCI_AER_UNSUPPORTED);
    cfg_write(&cfg, aer, 4, PCI_AER_MALFORMED);
    assert_int_equal(cfg_read(&cfg, aer, 4), PCI_AER_COMPLETION_TIMEOUT | PCI_AER_UNSUPPORTED);
    cfg_write(&cfg, status, 2, 0xf);
    assert_int_equal(cfg_read(&cfg, status, 2), 0);
}

/* ---- BARs
 * ---------------------------------------------------------------------------------------- */

static void bars_of_every_power_of_two(void **state)
{
    (void)state;
    for (unsigned log2 = 4; log2 <= 63; log2++) {
        for (unsigned flags = 0; flags < 4; flags++) {
            uint64_t bytes = UINT64_C(1) << log2;
            bool wide = flags & CFG_BAR_64;
            if (!wide && log2 > 31)
                continue;
            struct cfg_space cfg = endpoint();
            cfg_add_bar(&cfg, 2, bytes, flags);
            cfg_write(&cfg, PCI_BAR0 + 8, 4, UINT32_MAX);
            cfg_write(&cfg, PCI_BAR0 + 12, 4, UINT32_MAX);
            uint32_t low = cfg_read(&cfg, PCI_BAR0 + 8, 4);
            uint32_t high = cfg_read(&cfg, PCI_BAR0 + 12, 4);
            assert_int_equal(low & PCI_BAR_FLAGS_MASK,
                             (wide ? PCI_BAR_TYPE_64 : 0) |
                                 (flags & CFG_BAR_PREFETCH ? PCI_BAR_PREFETCH : 0));
            uint64_t size = (low & ~PCI_BAR_FLAGS_MASK) | (uint64_t)high << 32;
            assert_int_equal(wide ? ~size + 1 : (uint32_t)(~(uint32_t)size + 1), bytes);
            assert_int_equal(cfg_read(&cfg, PCI_BAR0 + 4, 4), 0); /* absent ones stay zero */
        }
    }
}

static void bar_match_to_the_byte(void **state)
{
    (void)state;
    struct cfg_space cfg = endpoint();
    cfg_add_bar(&cfg, 0, 64 * 1024, CFG_BAR_64 | CFG_BAR_PREFETCH);
    cfg_add_bar(&cfg, 3, 4096, 0);
    cfg_write(&cfg, PCI_BAR0, 4, 0x40010000);
    cfg_write(&cfg, PCI_BAR0 + 4, 4, 0x12);
    cfg_write(&cfg, PCI_BAR0 + 12, 4, 0xfeed0fff); /* low bits are not there */
    uint64_t base = UINT64_C(0x1240010000);
    assert_int_equal(cfg_bar_base(&cfg, 0), base);
    assert_int_equal(cfg_bar_base(&cfg, 3), 0xfeed0000);
    assert_int_equal(cfg_bar_base(&cfg, 1), 0);
    assert_int_equal(cfg_bar_match(&cfg, base, 4), -1); /* memory space is off */

    cfg_write(&cfg, PCI_COMMAND, 2, PCI_COMMAND_MEMORY);
    assert_int_equal(cfg_bar_match(&cfg, base, 4), 0);
    assert_int_equal(cfg_bar_match(&cfg, base, 64 * 1024), 0);
    assert_int_equal(cfg_bar_match(&cfg, base, 64 * 1024 + 1), -1);
    assert_int_equal(cfg_bar_match(&cfg, base - 1, 1), -1);
    assert_int_equal(cfg_bar_match(&cfg, base + 65535, 1), 0);
    assert_int_equal(cfg_bar_match(&cfg, base + 65535, 2), -1);
    assert_int_equal(cfg_bar_match(&cfg, base + 65536, 1), -1);
    assert_int_equal(cfg_bar_match(&cfg, 0xfeed0ffc, 4), 3);
    assert_int_equal(cfg_bar_match(&cfg, 0x40010000, 4), -1);
    assert_int_equal(cfg_bar_match(&cfg, 0, 4), -1); /* absent BARs match nothing */
}

static void bridge_windows(void **state)
{
    (void)state;
    struct cfg_space cfg = root_port();
    assert_true(cfg_bridge_memory(&cfg).base > cfg_bridge_memory(&cfg).limit);
    assert_true(cfg_bridge_prefetchable(&cfg).base > cfg_bridge_prefetchable(&cfg).limit);
    assert_int_equal(cfg_read(&cfg, PCI_PREFETCH_BASE, 2) & PCI_WINDOW_TYPE_MASK,
                     PCI_WINDOW_TYPE_64);

    cfg_write(&cfg, PCI_MEMORY_BASE, 4, 0xc01fc01f); /* base and limit at once, low digits too */
    assert_int_equal(cfg_bridge_memory(&cfg).base, 0xc0100000);
    assert_int_equal(cfg_bridge_memory(&cfg).limit, 0xc01fffff);
    cfg_write(&cfg, PCI_PREFETCH_BASE, 2, 0x0000);
    cfg_write(&cfg, PCI_PREFETCH_LIMIT, 2, 0xfff0);
    cfg_write(&cfg, PCI_PREFETCH_BASE_UPPER, 4, 0x40);
    cfg_write(&cfg, PCI_PREFETCH_LIMIT_UPPER, 4, 0x7f);
    assert_int_equal(cfg_bridge_prefetchable(&cfg).base, UINT64_C(0x4000000000));
    assert_int_equal(cfg_bridge_prefetchable(&cfg).limit, UINT64_C(0x7fffffffff));

    cfg_write(&cfg, PCI_PRIMARY_BUS, 4, 0x00090705);
    assert_int_equal(cfg_bridge_primary(&cfg), 5);
    assert_int_equal(cfg_bridge_secondary(&cfg), 7);
    assert_int_equal(cfg_bridge_subordinate(&cfg), 9);
}

/* ---- Capabilities
 * --------------------------------------------------------------------------------- */

static unsigned cap_at(const struct cfg_space *cfg, unsigned position)
{
    unsigned offset = cfg_read(cfg, PCI_CAP_POINTER, 1);
    while (position-- > 0)
        offset = cfg_read(cfg, offset + 1, 1);
    return offset;
}

static void chains_lead_through_all(void **state)
{
    (void)state;
    struct cfg_space cfg = endpoint();
    cfg_add_msi(&cfg, 5);
    cfg_add_msix(&cfg, 2048, 2, 0x4000, 4, 0x800);
    cfg_add_acs(&cfg);
    assert_int_equal(cap_at(&cfg, 0), cfg.pcie_cap);
    assert_int_equal(cap_at(&cfg, 1), cfg.msi_cap);
    assert_int_equal(cap_at(&cfg, 2), cfg.msix_cap);
    assert_int_equal(cap_at(&cfg, 3), 0);
    assert_int_equal(cfg_read(&cfg, cfg.pcie_cap, 1), PCI_CAP_ID_PCIE);
    assert_int_equal(cfg_read(&cfg, cfg.msi_cap, 1), PCI_CAP_ID_MSI);
    assert_int_equal(cfg_read(&cfg, cfg.msix_cap, 1), PCI_CAP_ID_MSIX);
    assert_true(cfg.pcie_cap >= 0x40 && cfg.msi_cap >= cfg.pcie_cap + 0x3c);
    assert_int_equal(cfg_read(&cfg, cfg.msix_cap + 2, 2), 2047);
    assert_int_equal(cfg_read(&cfg, cfg.msix_cap + 4, 4), 0x4002);
    assert_int_equal(cfg_read(&cfg, cfg.msix_cap + 8, 4), 0x804);

    assert_int_equal(cfg.aer_cap, 0x100);
    assert_int_equal(cfg_read(&cfg, 0x100, 4), PCI_ECAP_ID_AER | 2u << 16 | 0x148u << 20);
    assert_int_equal(cfg.acs_cap, 0x148);
    assert_int_equal(cfg_read(&cfg, 0x148, 4), PCI_ECAP_ID_ACS | 1u << 16);
}

static void capabilities_of_ones_own(void **state)
{
    (void)state;
    struct cfg_space cfg = endpoint();
    /* Address translation service: six-bit queue depth, enable and smallest unit. */
    static const struct cfg_register ats[] = { { 4, 2, 0x0020, 0, 0 }, { 6, 2, 0, 0x801f, 0 } };
    unsigned offset = cfg_add_ecap(&cfg, PCI_ECAP_ID_ATS, 1, 8);
    cfg_add_registers(&cfg, offset, ats, 2);
    assert_int_equal(cfg_read(&cfg, cfg.aer_cap, 4) >> 20, offset);
    cfg_write(&cfg, offset + 4, 4, UINT32_MAX);
    assert_int_equal(cfg_read(&cfg, offset + 4, 4), 0x801f0020);
    /* SR-IOV: 64 bytes right behind. */
    assert_int_equal(cfg_add_ecap(&cfg, PCI_ECAP_ID_SRIOV, 1, 0x40), offset + 8);
    assert_int_equal(cfg_read(&cfg, offset, 4) >> 20, offset + 8);
    /* Lengths are rounded up to double words. */
    unsigned vendor = cfg_add_cap(&cfg, 0x09, 5);
    assert_int_equal(cfg_add_cap(&cfg, 0x09, 4), vendor + 8);
}

static void sizes_follow_device_control(void **state)
{
    (void)state;
    struct cfg_space cfg = endpoint();
    unsigned devctl = cfg.pcie_cap + PCIE_DEVCTL;
    assert_int_equal(cfg_mps_bytes(&cfg), 128);
    assert_int_equal(cfg_mrrs_bytes(&cfg), 512);
    assert_false(cfg_extended_tags(&cfg));
    assert_int_equal(cfg_read(&cfg, devctl, 2), 0x2810);
    static const unsigned mrrs[] = { 128, 256, 512, 1024, 2048, 4096, 4096, 4096 };
    static const unsigned mps[] = { 128, 256, 512, 512, 512, 512, 512, 512 }; /* 512 supported */
    for (unsigned code = 0; code < 8; code++) {
        cfg_write(&cfg, devctl, 2, code << PCIE_DEVCTL_MRRS_SHIFT | code << PCIE_DEVCTL_MPS_SHIFT);
        assert_int_equal(cfg_mrrs_bytes(&cfg), mrrs[code]);
        assert_int_equal(cfg_mps_bytes(&cfg), mps[code]);
    }
    cfg_write(&cfg, devctl, 2, PCIE_DEVCTL_EXTENDED_TAG);
    assert_true(cfg_extended_tags(&cfg));
    cfg_write(&cfg, cfg.pcie_cap + PCIE_DEVCTL2, 2, PCIE_DEVCTL2_TIMEOUT_DISABLE);
    assert_true(cfg_completion_timeout_disabled(&cfg));

    cfg_init_endpoint(&cfg, &nic);
    cfg_add_pcie(&cfg, CFG_ENDPOINT, 1, 1, 128, false);
    cfg_write(&cfg, cfg.pcie_cap + PCIE_DEVCTL, 2, PCIE_DEVCTL_EXTENDED_TAG);
    assert_false(cfg_extended_tags(&cfg)); /* not supported: not writable */
}

static void link_registers(void **state)
{
    (void)state;
    struct cfg_space cfg = root_port();
    assert_int_equal(cfg_read(&cfg, cfg.pcie_cap + PCIE_CAPABILITIES, 2), 0x0042);
    assert_int_equal(cfg_read(&cfg, cfg.pcie_cap + PCIE_LNKCAP, 4), 0x00400084);
    assert_int_equal(cfg_read(&cfg, cfg.pcie_cap + PCIE_LNKCAP2, 4), 0x1e);
    cfg_set_link(&cfg, 3, 8);
    assert_int_equal(cfg_read(&cfg, cfg.pcie_cap + PCIE_LNKSTA, 2), 0x2083);
    assert_int_equal(cfg_rcb_bytes(&cfg), 64);
    cfg_set_rcb(&cfg, 128);
    cfg_write(&cfg, cfg.pcie_cap + PCIE_LNKCTL, 2, 0); /* a root port's own says so itself */
    assert_int_equal(cfg_rcb_bytes(&cfg), 128);
    struct cfg_space device = endpoint();
    cfg_write(&device, device.pcie_cap + PCIE_LNKCTL, 2, PCIE_LNKCTL_RCB_128);
    assert_int_equal(cfg_rcb_bytes(&device), 128);
}

static void acs_services_by_kind(void **state)
{
    (void)state;
    struct cfg_space port = root_port(), device = endpoint();
    cfg_add_acs(&port);
    cfg_add_acs(&device);
    assert_int_equal(cfg_read(&port, port.acs_cap + PCI_ACS_CAPABILITY, 2), 0x5f);
    assert_int_equal(cfg_read(&device, device.acs_cap + PCI_ACS_CAPABILITY, 2), 0x4c);
    assert_false(cfg_acs_p2p_request_redirect(&port));
    cfg_write(&port, port.acs_cap + PCI_ACS_CONTROL, 2, PCI_ACS_REQUEST_REDIRECT);
    assert_true(cfg_acs_p2p_request_redirect(&port));
    cfg_write(&device, device.acs_cap + PCI_ACS_CONTROL, 2, UINT16_MAX);
    assert_int_equal(cfg_read(&device, device.acs_cap + PCI_ACS_CONTROL, 2), 0x4c);
}

/* ---- Messages
 * -------------------------------------------------------------------------------------- */

static void msi_masks_and_latches(void **state)
{
    (void)state;
    struct cfg_space cfg = endpoint();
    uint64_t address = 0;
    uint32_t data = 0;
    assert_false(cfg_msi_message(&cfg, 0, &address, &data)); /* absent */
    cfg_add_msi(&cfg, 3);
    unsigned cap = cfg.msi_cap;
    assert_int_equal(cfg_read(&cfg, cap + PCI_MSI_CONTROL, 2), 0x0186);
    cfg_write(&cfg, cap + PCI_MSI_ADDRESS, 4, 0xfee01003); /* low two bits do not exist */
    cfg_write(&cfg, cap + PCI_MSI_ADDRESS_UPPER, 4, 0x1);
    cfg_write(&cfg, cap + PCI_MSI_DATA, 2, 0x4041);
    assert_false(cfg_msi_message(&cfg, 0, &address, &data)); /* not enabled; nothing latched */
    assert_int_equal(cfg_read(&cfg, cap + PCI_MSI_PENDING, 4), 0);

    cfg_write(&cfg, cap + PCI_MSI_CONTROL, 2, 0x0021); /* four vectors granted */
    assert_true(cfg_msi_message(&cfg, 2, &address, &data));
    assert_int_equal(address, UINT64_C(0x1fee01000));
    assert_int_equal(data, 0x4042);
    assert_true(cfg_msi_message(&cfg, 7, &address, &data)); /* folded: 7 mod 4 */
    assert_int_equal(data, 0x4043);

    cfg_write(&cfg, cap + PCI_MSI_MASK, 4, 0x0000000a);
    assert_false(cfg_msi_message(&cfg, 1, &address, &data));
    assert_false(cfg_msi_message(&cfg, 3, &address, &data));
    assert_int_equal(cfg_read(&cfg, cap + PCI_MSI_PENDING, 4), 0x0a);
    assert_false(cfg_msi_take_pending(&cfg, &address, &data));
    cfg_write(&cfg, cap + PCI_MSI_PENDING, 4, 0); /* read-only for software */
    cfg_write(&cfg, cap + PCI_MSI_MASK, 4, 0x02);
    assert_true(cfg_msi_take_pending(&cfg, &address, &data));
    assert_int_equal(data, 0x4043);
    assert_int_equal(cfg_read(&cfg, cap + PCI_MSI_PENDING, 4), 0x02);
    assert_false(cfg_msi_take_pending(&cfg, &address, &data));
}

static void set_entry(uint8_t *table, unsigned vector, uint64_t address, uint32_t data,
                      uint32_t control)
{
    memcpy(table + 16 * vector, &address, 8);
    memcpy(table + 16 * vector + 8, &data, 4);
    memcpy(table + 16 * vector + 12, &control, 4);
}

static void msix_masks_and_latches(void **state)
{
    (void)state;
    struct cfg_space cfg = endpoint();
    uint8_t table[16 * 70] = { 0 }, pba[16] = { 0 };
    static const uint8_t none[16];
    uint64_t address = 0;
    uint32_t data = 0;
    unsigned vector = 0;
    cfg_add_msix(&cfg, 70, 0, 0, 0, 0x1000);
    for (unsigned i = 0; i < 70; i++)
        set_entry(table, i, UINT64_C(0xfee00000) + 0x1000 * i, 0x20 + i, i == 68 || i == 5);
    unsigned control = cfg.msix_cap + PCI_MSIX_CONTROL;

    assert_false(cfg_msix_message(&cfg, table, pba, 5, &address, &data));
    assert_memory_equal(pba, none, sizeof(pba)); /* disabled: not even latched */
    cfg_write(&cfg, control, 2, PCI_MSIX_CONTROL_ENABLE);
    assert_true(cfg_msix_message(&cfg, table, pba, 69, &address, &data));
    assert_int_equal(address, UINT64_C(0xfee00000) + 0x1000 * 69);
    assert_int_equal(data, 0x20 + 69);

    assert_false(cfg_msix_message(&cfg, table, pba, 68, &address, &data));
    assert_false(cfg_msix_message(&cfg, table, pba, 5, &address, &data));
    assert_int_equal(pba[0], 0x20);
    assert_int_equal(pba[8], 0x10);
    assert_false(cfg_msix_take_pending(&cfg, table, pba, &vector, &address, &data));
    cfg_write(&cfg, control, 2, PCI_MSIX_CONTROL_ENABLE | PCI_MSIX_CONTROL_FUNCTION_MASK);
    assert_false(cfg_msix_message(&cfg, table, pba, 1, &address, &data));
    set_entry(table, 68, 0xfee44000, 0x99, 0);
    assert_false(cfg_msix_take_pending(&cfg, table, pba, &vector, &address, &data));
    cfg_write(&cfg, control, 2, PCI_MSIX_CONTROL_ENABLE);
    assert_true(cfg_msix_take_pending(&cfg, table, pba, &vector, &address, &data));
    assert_int_equal(vector, 1);
    assert_true(cfg_msix_take_pending(&cfg, table, pba, &vector, &address, &data));
    assert_int_equal(vector, 68);
    assert_int_equal(address, 0xfee44000);
    assert_int_equal(data, 0x99);
    assert_false(cfg_msix_take_pending(&cfg, table, pba, &vector, &address, &data));
    assert_int_equal(pba[0], 0x20); /* vector 5 is masked still */
    assert_int_equal(pba[8], 0);
}

/* ---- Configuration requests
 * -------------------------------------------------------------------------- */

struct bench {
    struct sim *sim;
    struct pcie_context *pcie;
};

static struct bench bench_new(void)
{
    struct bench bench = { .sim = sim_new(1) };
    bench.pcie = pcie_context_new(bench.sim);
    return bench;
}

static void bench_free(struct bench *bench)
{
    assert_int_equal(tlp_live(bench->pcie), 0);
    pcie_context_free(bench->pcie);
    sim_free(bench->sim);
}

/* Sends a request; returns status, and the data of a read in *data. */
static enum tlp_status ask(struct bench *bench, struct cfg_space *cfg, enum tlp_type type,
                           uint64_t offset, unsigned bytes, uint32_t *data)
{
    struct tlp *request = tlp_new(bench->pcie, type);
    request->requester_id = pcie_id(0, 3, 0);
    request->completer_id = pcie_id(0x42, 1, 5);
    request->tag = 77;
    request->address = offset;
    request->length_bytes = (uint16_t)bytes;
    if (type == TLP_CFG_WR0 || type == TLP_CFG_WR1) {
        tlp_payload_new(bench->pcie, request);
        memcpy(request->payload, data, SIM_MIN(bytes, 4u));
    }
    struct tlp *answer = cfg_answer(cfg, bench->pcie, request);
    enum tlp_status status = (enum tlp_status)answer->status;
    assert_int_equal(answer->requester_id, pcie_id(0, 3, 0));
    assert_int_equal(answer->completer_id, cfg->id);
    assert_int_equal(answer->tag, 77);
    bool has_data = type == TLP_CFG_RD0 && status == TLP_SC;
    assert_int_equal(answer->type, has_data ? TLP_CPLD : TLP_CPL);
    assert_int_equal(answer->length_bytes, has_data ? bytes : 0);
    if (has_data) {
        *data = 0;
        memcpy(data, answer->payload, bytes);
    }
    tlp_free(bench->pcie, request);
    tlp_free(bench->pcie, answer);
    return status;
}

static void requests_are_answered(void **state)
{
    (void)state;
    struct bench bench = bench_new();
    struct cfg_space cfg = endpoint();
    uint32_t data = 0;
    cfg.id = 5; /* function 5 */
    assert_int_equal(ask(&bench, &cfg, TLP_CFG_RD0, PCI_VENDOR_ID, 4, &data), TLP_SC);
    assert_int_equal(data, 0x101715b3);
    assert_int_equal(cfg.id, 5); /* reads do not capture */
    data = PCI_COMMAND_BUS_MASTER | PCI_COMMAND_MEMORY;
    assert_int_equal(ask(&bench, &cfg, TLP_CFG_WR0, PCI_COMMAND, 2, &data), TLP_SC);
    assert_int_equal(cfg.id, pcie_id(0x42, 1, 5));
    assert_true(cfg_bus_master(&cfg) && cfg_memory_enabled(&cfg));
    data = 0xff;
    assert_int_equal(ask(&bench, &cfg, TLP_CFG_WR0, PCI_INTERRUPT, 1, &data), TLP_SC);
    assert_int_equal(ask(&bench, &cfg, TLP_CFG_RD0, PCI_INTERRUPT, 2, &data), TLP_SC);
    assert_int_equal(data, 0x00ff);
    assert_int_equal(ask(&bench, &cfg, TLP_CFG_RD0, 0x101, 3, &data), TLP_SC);
    assert_int_equal(data, 0x000200);
    assert_int_equal(ask(&bench, &cfg, TLP_CFG_RD0, 4092, 4, &data), TLP_SC);
    assert_int_equal(data, 0);
    bench_free(&bench);
}

static void other_requests_are_unsupported(void **state)
{
    (void)state;
    struct bench bench = bench_new();
    struct cfg_space cfg = endpoint();
    uint32_t data = UINT32_MAX;
    assert_int_equal(ask(&bench, &cfg, TLP_CFG_RD1, 0, 4, &data), TLP_UR);
    assert_int_equal(ask(&bench, &cfg, TLP_CFG_WR1, PCI_COMMAND, 4, &data), TLP_UR);
    assert_int_equal(ask(&bench, &cfg, TLP_CFG_RD0, 4096, 4, &data), TLP_UR);
    assert_int_equal(ask(&bench, &cfg, TLP_CFG_RD0, 2, 4, &data), TLP_UR);
    assert_int_equal(ask(&bench, &cfg, TLP_CFG_WR0, PCI_COMMAND, 8, &data), TLP_UR);
    assert_int_equal(ask(&bench, &cfg, TLP_MRD, 0, 4, &data), TLP_UR);
    assert_int_equal(cfg.id, 0);
    assert_int_equal(cfg_read(&cfg, PCI_COMMAND, 2), 0);
    bench_free(&bench);
}

/* A physical function says how many virtual ones there are, where, and with what sizes; they
 * themselves have a header without identity and BARs. */
static void virtual_functions_follow(void **state)
{
    (void)state;
    const struct cfg_sriov sriov = { .total_vfs = 4,
                                     .first_offset = 2,
                                     .stride = 3,
                                     .vf_device_id = 0x1018,
                                     .bar_bytes = 8192,
                                     .bar_flags = CFG_BAR_PREFETCH };
    struct cfg_space pf = endpoint(), vf;
    cfg_add_bar(&pf, 0, 4096, CFG_BAR_64);
    cfg_add_sriov(&pf, &sriov);
    pf.id = 0x500;
    cfg_init_vf(&vf, &nic);
    cfg_add_pcie(&vf, CFG_ENDPOINT, 3, 16, 512, true);
    cfg_add_msix(&vf, 8, 0, 0, 0, 0x800);
    unsigned at = pf.sriov_cap, bar = at + PCI_SRIOV_BAR0;
    assert_int_equal(cfg_read(&pf, at, 2), PCI_ECAP_ID_SRIOV);
    assert_int_equal(cfg_read(&pf, at + PCI_SRIOV_TOTAL_VFS, 2), 4);
    assert_int_equal(cfg_read(&pf, at + PCI_SRIOV_VF_DEVICE_ID, 2), 0x1018);
    assert_int_equal(cfg_read(&vf, PCI_VENDOR_ID, 4), UINT32_MAX);
    cfg_write(&pf, bar, 4, UINT32_MAX);
    assert_int_equal(cfg_read(&pf, bar, 4), 0xffffe000u | PCI_BAR_TYPE_64 | PCI_BAR_PREFETCH);
    cfg_write(&pf, bar, 4, 0x10000);
    cfg_write(&pf, bar + 4, 4, 0x7);
    cfg_write(&pf, at + PCI_SRIOV_NUM_VFS, 2, 3);
    assert_int_equal(cfg_vf_of_id(&pf, 0x502), -1); /* not yet */
    cfg_write(&pf, at + PCI_SRIOV_CONTROL, 2, 0xffff);
    assert_int_equal(cfg_read(&pf, at + PCI_SRIOV_CONTROL, 2),
                     PCI_SRIOV_CONTROL_ENABLE | PCI_SRIOV_CONTROL_MEMORY);
    for (int v = 0; v < 4; v++)
        assert_int_equal(cfg_vf_of_id(&pf, (uint16_t)(0x502 + 3 * v)), v < 3 ? v : -1);
    assert_int_equal(cfg_vf_of_id(&pf, 0x500), -1);
    assert_int_equal(cfg_vf_match(&pf, 0x70000ffff, 1), -1);
    assert_int_equal(cfg_vf_match(&pf, 0x700010000, 4), 0);
    assert_int_equal(cfg_vf_match(&pf, 0x700015ffc, 4), 2);
    assert_int_equal(cfg_vf_match(&pf, 0x700011ffc, 8), -1); /* across two of them */
    assert_int_equal(cfg_vf_match(&pf, 0x700016000, 1), -1); /* the fourth is not enabled */

    cfg_write(&pf, pf.pcie_cap + PCIE_DEVCTL, 2, 1u << PCIE_DEVCTL_MPS_SHIFT);
    cfg_vf_follow(&vf, &pf, 2);
    assert_int_equal(vf.id, 0x508);
    assert_int_equal(cfg_mps_bytes(&vf), 256);
    assert_int_equal(cfg_mrrs_bytes(&vf), 128);
    assert_int_equal(cfg_bar_match(&vf, 0x700014000, 8), 0);
    assert_int_equal(cfg_bar_match(&vf, 0x700012000, 8), -1);
    for (unsigned offset = 0; offset < CFG_SPACE_BYTES; offset += 4)
        if (offset != vf.msix_cap) /* what it does not have, nobody can write */
            cfg_write(&vf, offset, 4, UINT32_MAX);
    assert_int_equal(cfg_read(&vf, PCI_BAR0, 4), 0);
    assert_int_equal(cfg_read(&vf, PCI_COMMAND, 2), PCI_COMMAND_BUS_MASTER);
    assert_int_equal(cfg_mps_bytes(&vf), 256);
    assert_int_equal(cfg_bar_match(&vf, 0x700014000, 8), 0);
    cfg_write(&pf, at + PCI_SRIOV_NUM_VFS, 2, 5); /* more than there may be: none */
    cfg_vf_follow(&vf, &pf, 2);
    assert_int_equal(cfg_bar_match(&vf, 0x700014000, 8), -1);
}

/* Whatever software has written, a reset undoes it, but for what belongs to the link and what is
 * sticky. */
static void reset_on_request(void **state)
{
    (void)state;
    struct cfg_space cfg = endpoint(), first;
    const unsigned control = cfg.pcie_cap + PCIE_DEVCTL, speed = cfg.pcie_cap + PCIE_LNKCTL2;
    assert_false(cfg_write(&cfg, control, 2, cfg_read(&cfg, control, 2) | PCIE_DEVCTL_FLR));
    assert_false(cfg_take_flr(&cfg)); /* it has none */
    cfg_add_bar(&cfg, 0, UINT64_C(1) << 32, CFG_BAR_64);
    cfg_add_flr(&cfg);
    cfg_add_msi(&cfg, 3);
    cfg_add_msix(&cfg, 8, 0, 0x1000, 0, 0x2000);
    cfg_set_link(&cfg, 3, 8);
    assert_int_equal(cfg_read(&cfg, cfg.pcie_cap + PCIE_DEVCAP, 4) & PCIE_DEVCAP_FLR,
                     PCIE_DEVCAP_FLR);
    first = cfg;
    for (unsigned i = 0; i < CFG_SPACE_BYTES; i++)
        cfg_write(&cfg, i, 1, i == control + 1 ? 0x7f : 0xff);
    assert_false(cfg_take_flr(&cfg));
    cfg_write(&cfg, control, 1, 0xff);
    assert_false(cfg_take_flr(&cfg));
    for (unsigned bytes = 1; bytes <= 4; bytes *= 2) {
        const unsigned at = bytes == 1 ? control + 1 : control;
        cfg_write(&cfg, at, bytes,
                  cfg_read(&cfg, at, bytes) | PCIE_DEVCTL_FLR >> (bytes == 1 ? 8 : 0));
        assert_int_equal(cfg_read(&cfg, control, 2) & PCIE_DEVCTL_FLR, 0);
        assert_true(cfg_take_flr(&cfg));
        assert_false(cfg_take_flr(&cfg)); /* once */
    }
    cfg.id = 0x0500;
    cfg_log_error(&cfg, PCI_AER_UNSUPPORTED);
    cfg_set(&cfg, cfg.msi_cap + PCI_MSI_PENDING, 4, 5);
    cfg_write(&cfg, speed, 2, 1);
    cfg_reset(&cfg);
    assert_false(cfg_bus_master(&cfg) || cfg_memory_enabled(&cfg) || cfg_extended_tags(&cfg));
    assert_int_equal(cfg_bar_base(&cfg, 0), 0);
    assert_int_equal(cfg.id, 0x0500);
    assert_true((cfg_read(&cfg, cfg.aer_cap + PCI_AER_UNCORRECTABLE, 4) & PCI_AER_UNSUPPORTED) !=
                0);
    assert_int_equal(cfg_mps_bytes(&cfg), 512); /* as written: the most that it can */
    cfg_set(&cfg, control, 2, cfg_read(&first, control, 2));
    assert_int_equal(cfg_rcb_bytes(&cfg), 128);
    /* PCIe Base 3.1, 6.6.2: ASPM, clocks, synchronisation and width; and what is sticky. */
    assert_int_equal(cfg_read(&cfg, cfg.pcie_cap + PCIE_LNKCTL, 2), 0x02cb);
    assert_int_equal(cfg_read(&cfg, speed, 2), 1);
    cfg_set(&cfg, speed, 2, cfg_read(&first, speed, 2));
    cfg_set(&cfg, cfg.pcie_cap + PCIE_LNKCTL, 2, cfg_read(&first, cfg.pcie_cap + PCIE_LNKCTL, 2));
    for (unsigned i = 0; i < cfg.aer_cap; i++)
        assert_int_equal(cfg_read(&cfg, i, 1), cfg_read(&first, i, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_says_who_it_is),
        cmocka_unit_test(command_enables),
        cmocka_unit_test(masks_hold_everywhere),
        cmocka_unit_test(write_one_to_clear),
        cmocka_unit_test(errors_are_logged_by_severity),
        cmocka_unit_test(bars_of_every_power_of_two),
        cmocka_unit_test(bar_match_to_the_byte),
        cmocka_unit_test(bridge_windows),
        cmocka_unit_test(chains_lead_through_all),
        cmocka_unit_test(capabilities_of_ones_own),
        cmocka_unit_test(sizes_follow_device_control),
        cmocka_unit_test(link_registers),
        cmocka_unit_test(acs_services_by_kind),
        cmocka_unit_test(msi_masks_and_latches),
        cmocka_unit_test(msix_masks_and_latches),
        cmocka_unit_test(requests_are_answered),
        cmocka_unit_test(other_requests_are_unsupported),
        cmocka_unit_test(virtual_functions_follow),
        cmocka_unit_test(reset_on_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
