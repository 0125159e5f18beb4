/*
 * SmartIO's pass-through: a guest on one host with devices of others, which its unchanged drivers
 * work on; every byte is checked at its destination, and nothing is left afterwards.
 */
#include "tests/support/party.h"

#include <errno.h>
#include <string.h>

#include "hw/nvme_regs.h"
#include "hw/pci_regs.h"
#include "logic/lending/mdev.h"
#include "models/pcie/endpoint/pcie_function.h"
#include "models/pcie/ntb/ntb.h"
#include "models/vm/vm.h"

#define HOST(NAME, IOMMU)                                                  \
    NAME " = { ports = ( { name = \"rp0\"; socket = 0; lanes = 8; },"      \
         " { name = \"rp1\"; socket = 0; lanes = 8; },"                    \
         " { name = \"rp2\"; socket = 0; lanes = 8; },"                    \
         " { name = \"rp3\"; socket = 0; lanes = 4; } );"                  \
         " dram = { node_size = \"8 GiB\"; };"                             \
         " cpu = { sockets = 1; cores_per_socket = 4; clock_ghz = 2.0; };" \
         " iommu = { enabled = " IOMMU "; }; };\n"
#define BRIDGE "{ type = \"pcie.ntb\"; lanes = 8; cable_lanes = 8; bar2_bytes = \"%s\"; };"
/* `server` and `other` may have the guest, `lender` has the devices, `client` is at the other end
 * of the wire. */
#define WORLD                                                                                     \
    "hosts = { " HOST("server", "%s") HOST("lender", "%s") HOST("other", "true")                  \
        HOST("client", "false") "};\n"                                                            \
                                "devices = { n0 = " BRIDGE " n1 = " BRIDGE " n2 = " BRIDGE        \
                                " n3 = " BRIDGE " a = { type = \"nic.ethernet\"; lanes = 8; };"   \
                                " b = { type = \"nic.ethernet\"; lanes = 8; };"                   \
                                " ssd = { type = \"nvme.controller\"; cmb_bytes = 65536; }; };\n" \
                                "cables = ( { from = \"server.s0.rp0\"; to = \"n0.p0\"; },"       \
                                " { from = \"lender.s0.rp0\"; to = \"n1.p0\"; },"                 \
                                " { from = \"lender.s0.rp2\"; to = \"n2.p0\"; },"                 \
                                " { from = \"other.s0.rp0\"; to = \"n3.p0\"; },"                  \
                                " { from = \"lender.s0.rp1\"; to = \"a.p0\"; },"                  \
                                " { from = \"client.s0.rp0\"; to = \"b.p0\"; },"                  \
                                " { from = \"lender.s0.rp3\"; to = \"ssd.p0\"; },"                \
                                " { from = \"n0.p1\"; to = \"n1.p1\"; length_m = 2.0; },"         \
                                " { from = \"n2.p1\"; to = \"n3.p1\"; length_m = 2.0; },"         \
                                " { from = \"a.e0\"; to = \"b.e0\"; latency_ns = 100; } );\n"
#define GIB     (UINT64_C(1) << 30)
#define LENDER  2u
#define N_HOSTS 3u

struct rig;
struct side {
    struct rig *rig;
    struct kernel *kernel;
    struct lend_host *lend;
    uint32_t id;
    struct lend_usage before;
};
struct rig {
    struct world_fixture w;
    struct side side[N_HOSTS]; /* server, lender, other */
    struct vm_config config;
    struct k_vm *vm;
    struct side *at; /* where the guest is */
    struct lend_mdev *mdev;
    uint16_t device, ssd;
    uint64_t number; /* of the guest */
    struct party guest, client;
    int status;
};

/* ---- Hosts ----------------------------------------------------------------------------------- */

static void up_body(void *arg)
{
    static const struct k_pci_id lent[] = { { NIC_VENDOR_ID, NIC_DEVICE_ID },
                                            { NVME_VENDOR_INTEL, NVME_DEVICE_P4800X },
                                            { 0, 0 } };
    struct side *s = arg;
    struct lend_options options = lend_options_default;
    struct lend_error error;
    options.id = s->id;
    options.name = s->id == 1 ? "server" : s->id == LENDER ? "lender" : "other";
    options.lend = s->id == LENDER ? lent : NULL;
    s->lend = lend_host_new(s->kernel, &options);
    assert_non_null(s->lend);
    assert_int_equal(k_pci_register(s->kernel, lend_adapter_driver(s->lend)),
                     s->id == LENDER ? 2 : 1);
    k_pci_register(s->kernel, lend_lender_driver(s->lend));
    assert_int_equal(lend_start(s->lend, &error), 0);
}

static void greet_body(void *arg)
{
    struct side *s = arg;
    struct lend_info info;
    struct lend_error error;
    assert_int_equal(lend_discover(s->lend), 1);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(lend_list(s->lend, LENDER, i, &info, &error), 0);
        assert_int_equal(info.lent_to, 0);
        *(info.vendor_id == NIC_VENDOR_ID ? &s->rig->device : &s->rig->ssd) = info.id;
    }
}

static void free_body(void *arg)
{
    struct side *s = arg;
    lend_host_free(s->lend);
}

static void rig_open(struct rig *r, const char *server_iommu, const char *lender_iommu,
                     const char *aperture)
{
    static const char *const names[N_HOSTS] = { "server", "lender", "other" };
    char *text = g_strdup_printf(WORLD, server_iommu, lender_iommu, aperture, aperture, aperture,
                                 aperture);
    fixture_open(&r->w, text);
    g_free(text);
    for (unsigned i = 0; i < N_HOSTS; i++) {
        struct host *host = world_host(r->w.world, names[i]);
        r->side[i] = (struct side){ .rig = r, .id = i + 1 };
        r->side[i].kernel = os_new(host, host_os_params(host));
        kernel_call(&r->w, r->side[i].kernel, up_body, &r->side[i]);
    }
    kernel_call(&r->w, r->side[0].kernel, greet_body, &r->side[0]);
    kernel_call(&r->w, r->side[2].kernel, greet_body, &r->side[2]);
    for (unsigned i = 0; i < N_HOSTS; i++)
        r->side[i].before = lend_usage(r->side[i].lend);
    struct host *client = world_host(r->w.world, "client");
    r->client = (struct party){ .kernel = os_new(client, host_os_params(client)), .ip = 2 };
    kernel_call(&r->w, r->client.kernel, party_register, &r->client);
    kernel_call(&r->w, r->client.kernel, party_open, &r->client);
    r->number = 1;
    r->config = vm_config_default();
    r->config.name = "guest";
    r->config.first_cpu = 2;
    r->config.n_cpus = 2;
    r->config.memory_bytes = 256 * MIB;
}

/* No entry of any table is in use that was not before the guest came. */
static void expect_nothing_left(struct rig *r)
{
    for (unsigned i = 0; i < N_HOSTS; i++) {
        const struct lend_usage now = lend_usage(r->side[i].lend), *then = &r->side[i].before;
        assert_int_equal(now.windows, then->windows);
        assert_int_equal(now.outgoing, then->outgoing);
        assert_int_equal(now.incoming, then->incoming);
        assert_int_equal(now.exported_bytes, then->exported_bytes);
        assert_int_equal(now.lent + now.borrowed + now.peers + now.peer_entries, 0);
    }
}

static void rig_close(struct rig *r)
{
    expect_nothing_left(r);
    kernel_call(&r->w, r->client.kernel, party_remove, &r->client);
    for (unsigned i = 0; i < N_HOSTS; i++)
        kernel_call(&r->w, r->side[i].kernel, free_body, &r->side[i]);
    sim_run(r->w.sim, sim_now(r->w.sim) + 10 * SIM_PS_PER_MS, NULL);
    for (unsigned i = 0; i < N_HOSTS; i++)
        os_free(r->side[i].kernel);
    os_free(r->client.kernel);
    fixture_close(&r->w);
}

/* ---- The guest ------------------------------------------------------------------------------- */

static void boot_body(void *arg)
{
    struct rig *r = arg;
    r->status = vm_new(r->at->kernel, &r->config, &r->vm);
    r->mdev = lend_mdev_new(r->at->lend, LENDER, r->device, r->number);
}

static void add_body(void *arg)
{
    struct rig *r = arg;
    r->status = vm_add(r->vm, lend_mdev_function(r->mdev));
}

static void remove_body(void *arg)
{
    struct rig *r = arg;
    vm_remove(r->vm, lend_mdev_function(r->mdev));
}

static void shutdown_body(void *arg)
{
    struct rig *r = arg;
    r->status = vm_shutdown(r->vm);
    lend_mdev_free(r->mdev);
}

static void boot(struct rig *r, unsigned side)
{
    r->at = &r->side[side];
    kernel_call(&r->w, r->at->kernel, boot_body, r);
    assert_int_equal(r->status, 0);
    r->guest = (struct party){ .kernel = vm_kernel(r->vm), .ip = 1 };
    kernel_call(&r->w, r->guest.kernel, party_register, &r->guest);
    /* A device that a guest may have is not borrowed for it. */
    assert_false(lend_mdev_usage(r->mdev).borrowed);
    expect_nothing_left(r);
}

static void add(struct rig *r)
{
    kernel_call(&r->w, r->at->kernel, add_body, r);
    if (r->status != 0)
        fail_msg("%d: %s", r->status, lend_mdev_error(r->mdev)->text);
    kernel_call(&r->w, r->guest.kernel, party_open, &r->guest);
    party_know(&r->guest, &r->client);
    party_know(&r->client, &r->guest);
}

static void off(struct rig *r)
{
    sim_run(r->w.sim, sim_now(r->w.sim) + 300 * SIM_PS_PER_MS, NULL); /* sockets' last timers */
    kernel_call(&r->w, r->at->kernel, shutdown_body, r);
    assert_int_equal(r->status, 0);
    assert_int_equal(vm_stats(r->vm).pins, 0);
    party_end(&r->guest); /* nothing of it runs any more */
    expect_nothing_left(r);
}

static const struct ntb_stats *bridge(struct rig *r, const char *name)
{
    return &((const struct ntb *)world_device(r->w.world, name)->state)->stats;
}

/* ---- Streams --------------------------------------------------------------------------------- */

static void streams(uint64_t memory_bytes, unsigned windows, const char *aperture)
{
    struct rig r = { 0 };
    rig_open(&r, "true", "true", aperture);
    r.config.memory_bytes = memory_bytes;
    boot(&r, 0);
    add(&r);
    const struct lend_mdev_usage usage = lend_mdev_usage(r.mdev);
    assert_true(usage.borrowed);
    assert_int_equal(usage.windows, windows);
    assert_int_equal(usage.probed_bytes, memory_bytes);
    assert_true(usage.n_irqs > 0);
    const uint64_t requests = bridge(&r, "n0")->requests_in;
    party_stream(&r.w, &r.client, &r.guest, 4 * MIB, 5);
    /* The packets came by the bridges. */
    assert_true(bridge(&r, "n0")->requests_in > requests + 4 * MIB / 256);
    const struct vm_stats before = vm_stats(r.vm);
    party_stream(&r.w, &r.guest, &r.client, 4 * MIB, 6);
    const struct vm_stats after = vm_stats(r.vm);
    assert_true(after.interrupts > before.interrupts);
    assert_int_equal(after.exits, before.exits);
    const struct ntb_stats *in = bridge(&r, "n0"), *out = bridge(&r, "n1");
    assert_int_equal(in->unknown_in + in->misrouted + in->oversized + in->disabled, 0);
    assert_int_equal(out->unknown_out + out->unmapped + out->disabled + out->oversized, 0);
    off(&r);
    vm_free(r.vm);
    rig_close(&r);
}

static void test_low_memory(void **state)
{
    (void)state;
    streams(256 * MIB, 1, "8 GiB");
}

static void test_high_memory(void **state)
{
    (void)state;
    streams(4 * GIB, 2, "8 GiB");
}

static void test_hot_plug(void **state)
{
    struct rig r = { 0 };
    (void)state;
    rig_open(&r, "true", "true", "8 GiB");
    boot(&r, 0);
    for (unsigned i = 0; i < 2; i++) {
        add(&r);
        party_stream(&r.w, &r.client, &r.guest, MIB, (uint16_t)(7 + i));
        sim_run(r.w.sim, sim_now(r.w.sim) + 300 * SIM_PS_PER_MS, NULL);
        kernel_call(&r.w, r.at->kernel, remove_body, &r);
        assert_null(vm_device(r.vm, lend_mdev_function(r.mdev)));
        assert_int_equal(vm_stats(r.vm).pins, 0);
        expect_nothing_left(&r);
    }
    off(&r);
    vm_free(r.vm);
    rig_close(&r);
}

static uint64_t resets(struct rig *r, const char *name)
{
    return world_device(r->w.world, name)->ports[0].function->stats.resets;
}

/* Cold migration: the guest is shut down and started on another host, with the same device, which
 * it finds as it left it. Another guest gets it reset. */
static void migrate(bool another)
{
    struct rig r = { 0 };
    rig_open(&r, "true", "true", "8 GiB");
    boot(&r, 0);
    add(&r);
    struct net_mac mac;
    mac = r.guest.dev->mac;
    party_stream(&r.w, &r.client, &r.guest, MIB, 11);
    off(&r);
    struct k_vm *first = r.vm;
    r.number += another;
    boot(&r, 2);
    add(&r);
    assert_int_equal(resets(&r, "a"), another ? 1 : 0);
    assert_memory_equal(&mac, &r.guest.dev->mac, sizeof mac);
    const uint64_t requests = bridge(&r, "n3")->requests_in;
    party_stream(&r.w, &r.client, &r.guest, MIB, 12);
    party_stream(&r.w, &r.guest, &r.client, MIB, 13);
    assert_true(bridge(&r, "n3")->requests_in > requests + MIB / 256);
    off(&r);
    vm_free(r.vm);
    vm_free(first);
    rig_close(&r);
}

static void test_migration(void **state)
{
    (void)state;
    migrate(false);
    migrate(true);
}

/* ---- One guest after another ----------------------------------------------------------------- */

#define SECRET 0x5ec2e7u
struct visit {
    struct rig *rig;
    struct k_pci_dev *dev;
    uint32_t memory, queue; /* what is found in the memory buffer, and in the register ASQ */
    int early, status;      /* of a host that borrows: at first, and after the reset */
};

static void look(struct visit *v)
{
    k_pci_enable(v->dev);
    v->memory = k_readl(v->dev, 2, 4096);
    v->queue = k_readl(v->dev, 0, NVME_REG_ASQ);
    k_writel(v->dev, 2, 4096, SECRET);
    k_writel(v->dev, 0, NVME_REG_ASQ, SECRET << 12);
    assert_int_equal(k_readl(v->dev, 2, 4096), SECRET);
}

static void look_body(void *arg)
{
    struct visit *v = arg;
    v->dev = vm_device(v->rig->vm, lend_mdev_function(v->rig->mdev));
    assert_non_null(v->dev);
    look(v);
}

static struct visit guest_visits(struct rig *r, unsigned side, uint64_t number)
{
    struct visit v = { .rig = r };
    r->number = number;
    boot(r, side);
    kernel_call(&r->w, r->at->kernel, add_body, r);
    if (r->status != 0)
        fail_msg("%d: %s", r->status, lend_mdev_error(r->mdev)->text);
    kernel_call(&r->w, r->guest.kernel, look_body, &v);
    off(r);
    vm_free(r->vm);
    return v;
}

static void host_body(void *arg)
{
    struct visit *v = arg;
    struct lend_host *lend = v->rig->side[2].lend;
    struct lend_borrow *borrow;
    struct lend_error error;
    v->early = lend_borrow(lend, LENDER, v->rig->ssd, &borrow, &error);
    k_sleep(v->rig->side[2].kernel, 101 * SIM_PS_PER_MS);
    v->status = lend_borrow(lend, LENDER, v->rig->ssd, &borrow, &error);
    assert_int_equal(v->status, 0);
    v->dev = lend_borrow_device(borrow);
    look(v);
    lend_return(borrow);
}

/* No register and no memory of the device that the last guest wrote is read by the next one. */
static void test_one_guest_after_another(void **state)
{
    static const struct {
        unsigned side;
        uint64_t number, resets;
        bool keeps;
    } visits[] = { { 0, 1, 0, false }, /* nobody was there before */
                   { 2, 1, 0, true },  /* it goes on at another host */
                   { 0, 2, 1, false },
                   { 0, 3, 2, false } }; /* the same host, another guest */
    struct rig r = { 0 };
    (void)state;
    rig_open(&r, "true", "true", "8 GiB");
    r.device = r.ssd;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(visits); i++) {
        const struct visit v = guest_visits(&r, visits[i].side, visits[i].number);
        assert_int_equal(v.memory, visits[i].keeps ? SECRET : 0);
        assert_int_equal(v.queue, visits[i].keeps ? SECRET << 12 : 0);
        assert_int_equal(resets(&r, "ssd"), visits[i].resets);
    }
    struct visit v = { .rig = &r };
    kernel_call(&r.w, r.side[2].kernel, host_body, &v);
    assert_int_equal(v.early, -EAGAIN);
    assert_int_equal(v.memory | v.queue, 0);
    v = guest_visits(&r, 0, 3);
    assert_int_equal(v.memory | v.queue, 0);
    assert_int_equal(resets(&r, "ssd"), 4);
    rig_close(&r);
}

/* ---- Refusals -------------------------------------------------------------------------------- */

static void no_master_body(void *arg)
{
    struct rig *r = arg;
    struct k_pci_dev *dev = vm_device(r->vm, lend_mdev_function(r->mdev));
    assert_non_null(dev);
    assert_int_equal(k_config_read(dev, PCI_COMMAND, 2) & PCI_COMMAND_BUS_MASTER, 0);
    assert_int_equal(k_config_read(dev, PCI_COMMAND, 2) & PCI_COMMAND_MEMORY, PCI_COMMAND_MEMORY);
}

/* The guest is told no more than that there is no device, the host why. */
static void refused(const char *server_iommu, const char *lender_iommu, const char *aperture,
                    uint64_t memory_bytes, bool at_reset, int code, const char *why)
{
    struct rig r = { 0 };
    rig_open(&r, server_iommu, lender_iommu, aperture);
    r.config.memory_bytes = memory_bytes;
    boot(&r, 0);
    kernel_call(&r.w, r.at->kernel, add_body, &r);
    if (at_reset)
        assert_int_equal(r.status, code);
    assert_int_equal(lend_mdev_error(r.mdev)->code, code);
    if (strstr(lend_mdev_error(r.mdev)->text, why) == NULL)
        fail_msg("`%s` instead of `%s`", lend_mdev_error(r.mdev)->text, why);
    assert_int_equal(vm_stats(r.vm).pins, 0);
    if (at_reset)
        expect_nothing_left(&r);
    if (!at_reset) /* the guest has it, but it does not get DMA */
        kernel_call(&r.w, r.guest.kernel, no_master_body, &r);
    off(&r);
    vm_free(r.vm);
    rig_close(&r);
}

static void test_no_lender_iommu(void **state)
{
    (void)state;
    refused("true", "false", "8 GiB", 256 * MIB, true, -EOPNOTSUPP, "no IOMMU");
}

static void test_no_borrower_iommu(void **state)
{
    (void)state;
    refused("false", "true", "8 GiB", 256 * MIB, false, -EOPNOTSUPP, "no IOMMU here");
}

/* The windows are smaller than the guest's memory. */
static void test_small_aperture(void **state)
{
    (void)state;
    refused("true", "true", "1 GiB", 4 * GIB, false, -EFBIG, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_low_memory),
        cmocka_unit_test(test_high_memory),
        cmocka_unit_test(test_hot_plug),
        cmocka_unit_test(test_migration),
        cmocka_unit_test(test_one_guest_after_another),
        cmocka_unit_test(test_no_lender_iommu),
        cmocka_unit_test(test_small_aperture),
        cmocka_unit_test(test_no_borrower_iommu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
