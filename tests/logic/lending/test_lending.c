/*
 * Device lending on fake hosts: what is intercepted and what is forwarded, DMA by both ways, every
 * resource that can end, failures at every step, forced ends, and ten thousand borrows in random
 * order after which no entry is left.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/support/lend_rig.h"

/* ---- Transparent ----------------------------------------------------------------------------- */

static void transparent_body(struct lf_host *host, void *arg)
{
    struct lend_borrow *borrow = arg;
    struct k_pci_dev *dev = lend_borrow_device(borrow);
    struct lf_device *real = &host->rig->host[1].device[0];
    assert_non_null(dev);
    assert_ptr_equal(dev->driver, &lend_driver);
    /* Forwarded. */
    assert_int_equal(k_config_read(dev, 0, 4), LF_VENDOR | LF_DEVICE << 16);
    k_config_write(dev, 0xf0, 4, 0x12345678);
    assert_int_equal(lf_load(&real->f.config[0xf0], 4), 0x12345678);
    assert_int_equal(k_config_read(dev, 0xf1, 1), 0x56);
    /* Base addresses are the shadow's: where the NTB maps the registers; they tell their size.
     */
    uint64_t base = k_config_read(dev, 0x10, 4) & ~15u;
    base |= (uint64_t)k_config_read(dev, 0x14, 4) << 32;
    assert_true(base == dev->bar_base[0] && base >> 44 == 1);
    k_config_write(dev, 0x10, 4, UINT32_MAX);
    k_config_write(dev, 0x14, 4, UINT32_MAX);
    assert_int_equal(k_config_read(dev, 0x10, 4), (uint32_t) ~(LF_BAR_BYTES - 1) | 4);
    assert_int_equal(k_config_read(dev, 0x14, 4), UINT32_MAX);
    assert_int_equal(lf_load(&real->f.config[0x10], 4), 0xe8000004);
    /* No interrupt wire, whatever software wants. */
    assert_int_equal(k_config_read(dev, 0x3d, 1), 0);
    assert_int_equal(k_config_read(dev, 0x3c, 4) >> 8 & 0xff, 0);
    k_config_write(dev, 4, 2, 6);
    assert_int_equal(lf_load(&real->f.config[4], 2) & 0x406, 0x406);
    /* Payload size and reset are the lender's business. */
    k_config_write(dev, LF_CAP_PCIE + 8, 2, 0xf0ff);
    assert_int_equal(lf_load(&real->f.config[LF_CAP_PCIE + 8], 2), 0x703f);
    /* Messages: what software wrote is what it reads; what the device has is the lender's window.
     */
    k_config_write(dev, LF_CAP_MSI + 4, 4, 0xfee03000);
    k_config_write(dev, LF_CAP_MSI + 8, 4, 0);
    assert_int_equal(k_config_read(dev, LF_CAP_MSI + 4, 4), 0xfee03000);
    assert_int_equal(k_config_read(dev, LF_CAP_MSI + 8, 4), 0);
    uint64_t msi = lf_load(&real->f.config[LF_CAP_MSI + 4], 8);
    assert_int_equal(msi & 0xfffff, 0x3000);
    assert_true(msi >> 20 != 0xfee);
    assert_int_equal(k_readl(dev, 0, LF_TABLE), 0xfee01000);
    assert_int_equal(k_readl(dev, 0, LF_TABLE + 4), 0);
    assert_true(lf_load(&real->reg[LF_TABLE], 8) == (msi & ~UINT64_C(0xfffff)) + 0x1000);
    driver_copies(dev, 1);
}

static void transparent(bool borrower_iommu, bool lender_iommu)
{
    struct lf_rig *rig = calloc(1, sizeof *rig);
    struct attempt a;
    two_hosts(rig, borrower_iommu, lender_iommu);
    start_all(rig);
    borrow_one(rig, &a);
    lf_call(&rig->host[0], transparent_body, a.borrow);
    assert_int_equal(rig->host[1].ntb[0].n_unknown_out, 0);
    assert_int_equal(rig->host[0].ntb[0].n_unknown_in, 0);
    lf_call(&rig->host[0], give_back_body, a.borrow);
    assert_int_equal(n_driven, 0);
    /* It is silent, and as it was. */
    const uint8_t *config = rig->host[1].device[0].f.config;
    assert_int_equal(config[4] & 4, 0);
    assert_int_equal(config[LF_CAP_MSIX + 3] & 0x80, 0);
    assert_int_equal(lf_load(&config[LF_CAP_PCIE + 8], 2) & 0xe0, 0x20);
    lf_close(rig);
    free(rig);
}

static void test_transparent(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++)
        transparent(i & 1, i >> 1);
}

/* ---- The cluster ----------------------------------------------------------------------------- */

static void segments_body(struct lf_host *host, void *arg)
{
    struct lend_remote remote;
    struct lend_error error;
    struct lf_host *other = &host->rig->host[1];
    struct kaddr at;
    (void)arg;
    assert_int_equal(lend_segment_connect(host->lend, 2, 5, &remote, &error), -ENOENT);
    assert_int_equal(lend_segment_connect(host->lend, 77, 5, &remote, &error), -EHOSTUNREACH);
    assert_int_equal(lend_segment_new(other->lend, 5, 5000, &at, &error), 0);
    assert_int_equal(lend_segment_new(other->lend, 5, 5000, &at, &error), -EEXIST);
    assert_int_equal(lend_segment_new(other->lend, 6, 1u << 20, &at, &error), -ENOSPC);
    assert_non_null(strstr(error.text, "of 256 KiB of the pool in use"));
    assert_int_equal(lend_segment_connect(host->lend, 2, 5, &remote, &error), 0);
    for (unsigned i = 0; i < 64; i++)
        lend_map_write(remote.adapter, &remote.map, 4096 + 8 * i, 8, UINT64_C(1) << i);
    for (unsigned i = 0; i < 64; i++) {
        uint64_t value;
        k_peek(other->kernel, kaddr_add(at, 4096 + 8 * i), &value, 8);
        assert_true(value == UINT64_C(1) << i);
        assert_true(lend_map_read(remote.adapter, &remote.map, 4096 + 8 * i, 8) == value);
    }
    lend_segment_disconnect(&remote);
    assert_int_equal(lend_segment_free(other->lend, 5), 0);
    assert_int_equal(lend_segment_free(other->lend, 5), -ENOENT);
}

static void test_segments(void **state)
{
    struct lf_rig *rig = calloc(1, sizeof *rig);
    (void)state;
    two_hosts(rig, true, true);
    start_all(rig);
    lf_call(&rig->host[0], discover, &(int){ 1 });
    lf_call(&rig->host[0], segments_body, NULL);
    lf_close(rig);
    free(rig);
}

static void paths_body(struct lf_host *host, void *arg)
{
    struct lend_path path;
    struct lend_error error;
    (void)arg;
    /* Three hosts with two adapters each on one fabric: four ways to each of the other two. */
    assert_int_equal(lend_discover(host->lend), 2 * 2 * 2);
    assert_int_equal(lend_resolve(host->lend, 3, 1, &path, &error), 0);
    assert_int_equal(path.peer, 3);
    assert_int_equal(path.peer_adapter, 1);
    assert_int_equal(path.node, 6);
    /* By the adapter whose cable is in. */
    host->ntb[0].cut = true;
    assert_int_equal(lend_resolve(host->lend, 3, 0, &path, &error), 0);
    assert_int_equal(path.adapter, 1);
    host->ntb[1].cut = true;
    assert_int_equal(lend_resolve(host->lend, 3, 0, &path, &error), -EHOSTUNREACH);
    assert_non_null(strstr(error.text, "4 down"));
    host->ntb[0].cut = host->ntb[1].cut = false;
    assert_int_equal(lend_resolve(host->lend, 9, 0, &path, &error), -EHOSTUNREACH);
}

static void test_paths(void **state)
{
    struct lf_rig *rig = calloc(1, sizeof *rig);
    struct attempt a = { .id = DEVICE(0), .peer = 3 };
    (void)state;
    lend_rig_init(rig);
    rig->through_switch = true;
    for (unsigned i = 0; i < 3; i++)
        lf_host_add(rig, &lend_plain, 2, i == 2 ? 2 : 0);
    rig->host[2].device[1].f.pci.device.node = 1;
    rig->host[2].ntb[1].f.pci.device.node = 1;
    start_all(rig);
    lf_call(&rig->host[0], paths_body, NULL);
    /* Each device through the adapter on its socket. */
    for (unsigned i = 0; i < 2; i++) {
        a.id = DEVICE(i);
        lf_call(&rig->host[0], try_borrow, &a);
        assert_int_equal(a.status, 0);
        struct lend_usage usage = lend_usage(rig->host[2].lend);
        assert_int_equal(usage.lent, i + 1);
        assert_int_equal(rig->host[2].lend->devices->lease != NULL, i == 1); /* newest first */
        const struct lend_device *d = rig->host[2].lend->devices;
        if (i == 0)
            d = d->next;
        assert_int_equal(d->lease->connection->adapter->index, i);
    }
    lf_close(rig);
    free(rig);
}

/* All at once: the order of hellos does not matter. */
static void borrow_from_all(struct lf_host *host, void *arg)
{
    struct attempt *a = arg;
    lend_discover(host->lend);
    for (unsigned i = 0; i < host->rig->n_hosts; i++) {
        if (&host->rig->host[i] == host)
            continue;
        a[i] = (struct attempt){ .peer = i + 1, .id = DEVICE(host->number > i ? 0 : 1) };
        /* One device for two: the other waits. */
        do {
            try_borrow(host, &a[i]);
            if (a[i].status == -EBUSY)
                k_sleep(host->kernel, FAKE_US(100));
        } while (a[i].status == -EBUSY);
        assert_int_equal(a[i].status, 0);
        driver_copies(lend_borrow_device(a[i].borrow), (uint8_t)host->number);
        lend_return(a[i].borrow);
    }
}

static void test_all_at_once(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 8; seed++) {
        struct lf_rig *rig = calloc(1, sizeof *rig);
        struct attempt attempts[LF_HOSTS][LF_HOSTS];
        struct lf_call call[LF_HOSTS + 1] = { { .host = NULL } };
        struct fake_options o = {
            .seed = seed, .msix = true, .iommu = seed & 1, .stall_percent = 10
        };
        lend_rig_init(rig);
        rig->through_switch = true;
        for (unsigned i = 0; i < LF_HOSTS; i++)
            lf_host_add(rig, &o, 1, 2);
        start_all(rig);
        for (unsigned i = 0; i < LF_HOSTS; i++) {
            call[i] = (struct lf_call){ &rig->host[i], borrow_from_all, attempts[i], false };
            k_thread_new(rig->host[i].kernel, "all", 1, lf_call_body, &call[i]);
        }
        lf_run(rig, FAKE_MS(1000), any_busy, call);
        assert_false(any_busy(call));
        lf_close(rig);
        free(rig);
    }
}

/* ---- When something ends --------------------------------------------------------------------- */

/* What one more borrow of host 2's device 0 says; nothing may change on either side. */
static void expect_refused(struct lf_rig *rig, int status, const char *what, const char *who)
{
    struct lend_usage before[2], after[2];
    struct lf_entries chips[2][2];
    struct attempt a = { .id = DEVICE(0), .peer = 2 };
    for (unsigned i = 0; i < 2; i++) {
        before[i] = lend_usage(rig->host[i].lend);
        chips[0][i] = lf_entries_of(&rig->host[i].ntb[0]);
    }
    lf_call(&rig->host[0], try_borrow, &a);
    if (a.status != status || strstr(a.error.text, what) == NULL ||
        strstr(a.error.text, who) == NULL)
        fail_msg("%d: %s; expected %d, %s, %s", a.status, a.error.text, status, what, who);
    for (unsigned i = 0; i < 2; i++) {
        after[i] = lend_usage(rig->host[i].lend);
        chips[1][i] = lf_entries_of(&rig->host[i].ntb[0]);
        expect_same(&before[i], &after[i]);
    }
    assert_memory_equal(chips[0], chips[1], sizeof chips[0]);
    assert_int_equal(n_driven, 0);
}

/* Connected, so that what refuses is what the test is about. */
static void connect_body(struct lf_host *host, void *arg)
{
    struct lend_info info;
    struct lend_error error;
    (void)arg;
    lend_discover(host->lend);
    assert_int_equal(lend_list(host->lend, 2, 0, &info, &error), 0);
    assert_int_equal(info.lent_to, 0);
}

static struct lf_rig *refusing(bool borrower_iommu, bool lender_iommu,
                               void (*shape)(struct lf_rig *rig, struct lend_options o[2]))
{
    struct lf_rig *rig = calloc(1, sizeof *rig);
    struct lend_options o[2];
    two_hosts(rig, borrower_iommu, lender_iommu);
    for (unsigned i = 0; i < 2; i++)
        o[i] = lf_options(&rig->host[i]);
    shape(rig, o);
    for (unsigned i = 0; i < 2; i++)
        lf_host_start(&rig->host[i], &o[i]);
    lf_call(&rig->host[0], connect_body, NULL);
    return rig;
}

static void few_windows_at_lender(struct lf_rig *rig, struct lend_options o[2])
{
    rig->host[1].ntb[0].n_windows = 4; /* 2 for the peer, 1 for messages, 1 for 16 MiB */
    rig->host[1].ntb[0].f.pci.bar_bytes[2] = UINT64_C(4) << 24;
    o[0].dma_window_bytes = UINT64_C(32) << 20;
}
static void few_windows_at_borrower(struct lf_rig *rig, struct lend_options o[2])
{
    (void)o;
    rig->host[0].ntb[0].n_windows = 2;
    rig->host[0].ntb[0].f.pci.bar_bytes[2] = UINT64_C(2) << 24;
}
static void few_outgoing(struct lf_rig *rig, struct lend_options o[2])
{
    (void)o;
    rig->host[1].ntb[0].n_outgoing = 1;
}
static void few_incoming(struct lf_rig *rig, struct lend_options o[2])
{
    (void)o;
    rig->host[0].ntb[0].n_incoming = 1;
}
static unsigned bits_32(const struct k_pci_dev *dev, void *context)
{
    (void)dev;
    (void)context;
    return 32;
}
static unsigned bits_24(const struct k_pci_dev *dev, void *context)
{
    (void)dev;
    (void)context;
    return 24;
}
static void narrow(struct lf_rig *rig, struct lend_options o[2])
{
    (void)rig;
    o[1].dma_bits = bits_32;
}
static void very_narrow(struct lf_rig *rig, struct lend_options o[2])
{
    (void)rig;
    o[1].dma_bits = bits_24;
}
static void large_bar(struct lf_rig *rig, struct lend_options o[2])
{
    (void)o;
    for (unsigned i = 0; i < 2; i++) {
        struct lf_function *f = &rig->host[1].device[i].f;
        f->pci.bar_base[2] = UINT64_C(1) << 45;
        f->pci.bar_bytes[2] = UINT64_C(2) << 30;
    }
}
static void small_payload(struct lf_rig *rig, struct lend_options o[2])
{
    (void)o;
    lf_put(&rig->host[0].ntb[0].f, LF_CAP_PCIE + 8, 2, 0x2040);
}
static void large_window(struct lf_rig *rig, struct lend_options o[2])
{
    (void)rig;
    o[0].dma_window_bytes = UINT64_C(2) << 30;
}

static void test_refusals(void **state)
{
    static const struct {
        void (*shape)(struct lf_rig *rig, struct lend_options o[2]);
        bool borrower_iommu, lender_iommu;
        int status;
        const char *what, *who;
    } refusal[] = {
        { few_windows_at_lender, true, false, -ENOSPC,
          "2 windows in a row for h2.20: 3 of 4 in use", "by node 1 (2), h2.20 (1)" },
        { few_windows_at_borrower, true, false, -ENOSPC,
          "1 windows in a row for h2.20@2: 2 of 2 in use", "by node 2 (2)" },
        { few_outgoing, true, true, -ENOSPC, "1 outgoing requester for h2.20: 1 of 1 in use",
          "by CPUs (1)" },
        { few_incoming, true, true, -ENOSPC, "1 incoming requester for h2.20@2: 1 of 1 in use",
          "by node 2 (1)" },
        { narrow, true, false, -ERANGE, "h2.20 reaches addresses below 0x100000000 only",
          "windows begin at 0x100000000000" },
        { very_narrow, true, true, -ERANGE, "24 bits of address: no room for 16 MiB more",
          "h2.20" },
        { large_bar, true, false, -EFBIG, "2048 MiB for h2.20@2 do not fit",
          "aperture of 1024 MiB" },
        { large_window, true, true, -EFBIG, "2048 MiB for h2.20 do not fit", "host 2" },
        { small_payload, true, true, -EMSGSIZE, "payloads of 256 bytes here, of 512 bytes",
          "h2.20" },
    };
    (void)state;
    for (unsigned i = 0; i < sizeof refusal / sizeof refusal[0]; i++) {
        struct lf_rig *rig = refusing(refusal[i].borrower_iommu, refusal[i].lender_iommu,
                                      refusal[i].shape);
        expect_refused(rig, refusal[i].status, refusal[i].what, refusal[i].who);
        lf_close(rig);
        free(rig);
    }
}

/* With the lender's IOMMU, a device of 32 bits reaches what lies at 2^44. */
static void test_narrow_device(void **state)
{
    struct lf_rig *rig = refusing(true, true, narrow);
    struct attempt a;
    (void)state;
    borrow_one(rig, &a);
    assert_true(driver_devices[0].dma < UINT64_C(1) << 32);
    assert_true(rig->host[1].lend->devices->next->lease->range[0].address >= UINT64_C(1) << 44);
    lf_close(rig);
    free(rig);
}

static void as_ever(struct lf_rig *rig, struct lend_options o[2])
{
    (void)rig;
    (void)o;
}

/* The lender was told nothing of the device's bits: what its driver's mask does not reach is not
 * mapped. Windows lie at 2^44. */
static void test_mask(void **state)
{
    (void)state;
    for (unsigned iommu = 0; iommu < 2; iommu++) {
        struct lf_rig *rig = refusing(iommu == 1, false, as_ever);
        struct attempt a = { .id = DEVICE(0), .peer = 2 };
        driver_bits = 40;
        lf_call(&rig->host[0], try_borrow, &a);
        assert_int_equal(n_probed, 1);
        assert_int_equal(n_driven, 0);
        lf_close(rig);
        free(rig);
    }
}

/* Two devices share one window of messages, and functions of a device one outgoing entry. */
static void test_sharing(void **state)
{
    struct lf_rig *rig = calloc(1, sizeof *rig);
    struct attempt a, b = { .id = DEVICE(0) | 1, .peer = 2 };
    (void)state;
    two_hosts(rig, true, false);
    rig->host[1].device[1].f.pci.id = DEVICE(0) | 1;
    start_all(rig);
    borrow_one(rig, &a);
    struct lend_usage one = lend_usage(rig->host[1].lend);
    lf_call(&rig->host[0], try_borrow, &b);
    assert_int_equal(b.status, 0);
    struct lend_usage two = lend_usage(rig->host[1].lend);
    assert_int_equal(two.outgoing, one.outgoing);
    assert_int_equal(two.windows, one.windows + 1); /* its own DMA window */
    assert_int_equal(lend_usage(rig->host[0].lend).incoming, 1 + 2);
    lf_call(&rig->host[0], give_back_body, a.borrow);
    assert_int_equal(lend_usage(rig->host[1].lend).outgoing, 1);
    lf_close(rig);
    free(rig);
}

/* The n-th call of an IOMMU fails, for every n: an error, and nothing has changed. */
static void test_failures(void **state)
{
    (void)state;
    for (unsigned side = 0; side < 2; side++) {
        unsigned n = 1;
        struct lf_rig *rig = calloc(1, sizeof *rig);
        struct attempt a = { .id = DEVICE(0), .peer = 2 };
        two_hosts(rig, true, true);
        start_all(rig);
        lf_driver_now = NULL; /* a driver's own mappings are its own business */
        lf_call(&rig->host[0], connect_body, NULL);
        rig->host[0].kernel->n_pci_drivers--;
        struct kernel *kernel = rig->host[side].kernel;
        for (;; n++) {
            kernel->iommu_calls = 0;
            kernel->iommu_fail_at = n;
            const uint64_t pages[2] = { rig->host[0].kernel->iommu_pages_live,
                                        rig->host[1].kernel->iommu_pages_live };
            struct lend_usage before[2] = { lend_usage(rig->host[0].lend),
                                            lend_usage(rig->host[1].lend) };
            lf_call(&rig->host[0], try_borrow, &a);
            if (a.status == 0)
                break;
            assert_int_equal(a.status, -ENOMEM);
            for (unsigned i = 0; i < 2; i++) {
                struct lend_usage after = lend_usage(rig->host[i].lend);
                expect_same(&before[i], &after);
                assert_int_equal(rig->host[i].kernel->iommu_pages_live, pages[i]);
            }
        }
        /* Lender: domain, attach, messages, window, registers; borrower: attach. */
        assert_int_equal(n, side == 0 ? 2 : 6);
        lf_close(rig);
        free(rig);
    }
}

/* ---- Forced ends ----------------------------------------------------------------------------- */

/* The device reaches what is mapped for it and nothing else, of either host. */
static void outside_body(struct lf_host *host, void *arg)
{
    struct lend_borrow *borrow = arg;
    struct k_pci_dev *dev = lend_borrow_device(borrow);
    struct driver_device *d = dev->device.driver_data;
    struct lf_host *lender = &host->rig->host[1];
    struct kaddr secret = k_alloc(lender->kernel, 0, 4096, 4096);
    uint64_t value = UINT64_C(0x5ec4e7);
    k_poke(lender->kernel, secret, &value, 8);
    assert_int_equal(driver_run(dev, 2, d->dma, 64), 1);
    /* The lender's memory, its NTB's registers, other windows of the NTB. */
    assert_int_equal(driver_run(dev, 1, secret.v, 64), 2);
    assert_int_equal(driver_run(dev, 2, secret.v, 64), 2);
    assert_int_equal(driver_run(dev, 2, 0xf0000000 + NTB_REG_LUT2, 64), 2);
    assert_int_equal(driver_run(dev, 1, lender->ntb[0].f.pci.bar_base[2], 64), 2);
    /* Within its window, where the borrower has mapped nothing. */
    assert_int_equal(driver_run(dev, 2, d->dma + 8192, 64), 2);
    assert_int_equal(driver_run(dev, 2, d->dma - (d->dma & 0xffffff) + (1 << 24), 64), 2);
    k_peek(lender->kernel, secret, &value, 8);
    assert_int_equal(value, 0x5ec4e7);
}

static void test_outside(void **state)
{
    struct lf_rig *rig = calloc(1, sizeof *rig);
    struct attempt a;
    (void)state;
    two_hosts(rig, true, true);
    start_all(rig);
    borrow_one(rig, &a);
    lf_call(&rig->host[0], outside_body, a.borrow);
    assert_int_equal(rig->host[1].device[0].n_refused, 6);
    lf_close(rig);
    free(rig);
}

static bool lent(void *arg)
{
    return lend_usage(((struct lf_rig *)arg)->host[1].lend).lent != 0;
}

static bool still_there(void *arg)
{
    return lend_borrow_device(arg) != NULL;
}

static bool resetting(void *arg)
{
    const struct lend_device *d = ((struct lf_rig *)arg)->host[1].lend->devices;
    return d->resetting || d->next->resetting;
}

/* The device is as good as new: another host gets it and it works. */
static void expect_lendable(struct lf_rig *rig, struct lf_host *host)
{
    struct attempt a = { .id = DEVICE(0), .peer = 2 };
    lf_call(host, try_borrow, &a);
    if (a.status != 0)
        fail_msg("%d: %s", a.status, a.error.text);
    lf_call(host, give_back_body, a.borrow);
    assert_false(lent(rig));
}

static struct lf_rig *cluster(bool iommu)
{
    struct lf_rig *rig = calloc(1, sizeof *rig);
    three_hosts(rig, iommu);
    rig->host[1].device[0].f.flr = true;
    lf_put(&rig->host[1].device[0].f, LF_CAP_PCIE + 4, 4, 0x10000000);
    start_all(rig);
    return rig;
}

static void test_borrower_dies(void **state)
{
    (void)state;
    for (unsigned iommu = 0; iommu < 2; iommu++) {
        struct lf_rig *rig = cluster(iommu);
        struct lend_usage before = lend_usage(rig->host[1].lend);
        uint64_t pages = rig->host[1].kernel->iommu_pages_live;
        struct attempt a;
        borrow_one(rig, &a);
        lf_kill(&rig->host[0]);
        lf_run(rig, FAKE_MS(100), lent, rig);
        assert_false(lent(rig));
        lf_run(rig, FAKE_MS(1), NULL, NULL);
        struct lend_usage after = lend_usage(rig->host[1].lend);
        expect_same(&before, &after);
        assert_int_equal(rig->host[1].kernel->iommu_pages_live, pages);
        assert_int_equal(rig->host[1].ntb[0].lut[2], 0);
        /* Silent at once, lendable after its reset. */
        struct attempt early = { .id = DEVICE(0), .peer = 2 };
        lf_call(&rig->host[2], try_borrow, &early);
        assert_int_equal(early.status, -EAGAIN);
        lf_run(rig, FAKE_MS(200), resetting, rig);
        assert_int_equal(rig->host[1].device[0].f.n_resets, 1);
        assert_int_equal(lf_load(&rig->host[1].device[0].f.config[0x10], 4), 0xe8000004);
        expect_lendable(rig, &rig->host[2]);
        lf_close(rig);
        free(rig);
    }
}

static void borrow_and_return(struct lf_host *host, void *arg)
{
    struct attempt *a = arg;
    try_borrow(host, a);
    if (a->status == 0)
        lend_return(a->borrow);
}

/* Any of the interrupts by which hosts tell each other of requests and replies gets lost: the
 * request is answered all the same, within some heartbeats, and later ones are, too. */
static void test_lost_interrupts(void **state)
{
    unsigned n_lost = 0, n_late = 0;
    (void)state;
    for (unsigned lost = 1;; lost++) {
        struct lf_rig *rig = cluster(false);
        struct attempt a = { .id = DEVICE(0), .peer = 2 };
        const uint64_t start_ps = rig->host[0].kernel->now_ps;
        rig->n_rings = 0;
        rig->lost_ring = lost;
        lf_call(&rig->host[0], borrow_and_return, &a);
        assert_int_equal(a.status, 0);
        const uint64_t took_ps = rig->host[0].kernel->now_ps - start_ps;
        const bool over = rig->n_rings < lost;
        n_lost += !over;
        n_late += took_ps > FAKE_MS(2);
        assert_true(took_ps < FAKE_MS(10));
        lf_run(rig, FAKE_MS(200), resetting, rig);
        expect_lendable(rig, &rig->host[2]);
        lf_close(rig);
        free(rig);
        if (over)
            break;
    }
    assert_true(n_lost > 4 && n_late > 1);
}

static void reclaim_body(struct lf_host *host, void *arg)
{
    const int *status = arg;
    assert_int_equal(lend_reclaim(host->lend, DEVICE(0)), *status);
}

static void test_reclaim(void **state)
{
    (void)state;
    for (unsigned iommu = 0; iommu < 2; iommu++) {
        struct lf_rig *rig = cluster(iommu);
        struct attempt a;
        lf_call(&rig->host[1], reclaim_body, &(int){ -EALREADY });
        borrow_one(rig, &a);
        lf_call(&rig->host[1], reclaim_body, &(int){ 0 });
        assert_false(lent(rig));
        assert_null(lend_borrow_device(a.borrow));
        assert_int_equal(n_driven, 0);
        assert_int_equal(rig->host[1].device[0].f.n_resets, 0); /* it was let go */
        expect_lendable(rig, &rig->host[2]);
        lf_call(&rig->host[0], give_back_body, a.borrow); /* what is left of it */
        assert_int_equal(lend_usage(rig->host[0].lend).borrowed, 0);
        lf_close(rig);
        free(rig);
    }
}

static void test_cable(void **state)
{
    (void)state;
    for (unsigned end = 0; end < 2; end++) {
        struct lf_rig *rig = cluster(end == 0);
        struct attempt a;
        borrow_one(rig, &a);
        /* Only one end sees it; the other gets no heartbeat. */
        lf_cut(&rig->host[end].ntb[0], true);
        lf_run(rig, FAKE_MS(100), lent, rig);
        lf_run(rig, FAKE_MS(100), still_there, a.borrow);
        assert_false(lent(rig));
        assert_null(lend_borrow_device(a.borrow));
        lf_run(rig, FAKE_US(50), NULL, NULL); /* a thread of its own removes the driver */
        assert_int_equal(n_driven, 0);
        struct attempt again = { .id = DEVICE(0), .peer = 2 };
        lf_call(&rig->host[0], try_borrow, &again);
        assert_int_equal(again.status, -EHOSTUNREACH);
        lf_cut(&rig->host[end].ntb[0], false);
        lf_run(rig, FAKE_MS(1), NULL, NULL); /* the lease is over before the reset begins */
        lf_run(rig, FAKE_MS(200), resetting, rig);
        expect_lendable(rig, &rig->host[0]);
        lf_call(&rig->host[0], give_back_body, a.borrow);
        lf_close(rig);
        free(rig);
    }
}

static void test_lender_dies(void **state)
{
    struct lf_rig *rig = cluster(true);
    struct attempt a;
    (void)state;
    lf_call(&rig->host[0], discover, &(int){ 2 });
    struct lend_usage before = lend_usage(rig->host[0].lend);
    borrow_one(rig, &a);
    lf_kill(&rig->host[1]);
    lf_run(rig, FAKE_MS(100), still_there, a.borrow);
    assert_null(lend_borrow_device(a.borrow));
    lf_run(rig, FAKE_MS(1), NULL, NULL);
    assert_int_equal(n_driven, 0);
    struct lend_usage after = lend_usage(rig->host[0].lend);
    expect_same(&before, &after);
    struct attempt again = { .id = DEVICE(0), .peer = 2 };
    lf_call(&rig->host[0], try_borrow, &again);
    assert_true(again.status == -ETIMEDOUT || again.status == -EHOSTUNREACH);
    lf_close(rig);
    free(rig);
}

/* The lender's server is busy for much longer than the time-out, but its heartbeats come: nobody
 * gives up, and the borrower's range is free only when the lender has closed its windows. */
static void busy_body(void *arg)
{
    struct lf_host *host = arg;
    lend_lock(host->lend, &host->lend->lender_lock);
    k_sleep(host->kernel, FAKE_MS(60));
    lend_unlock(host->lend, &host->lend->lender_lock);
}

static void slow_body(struct lf_host *host, void *arg)
{
    struct attempt *a = arg;
    struct lf_host *lender = &host->rig->host[1];
    k_thread_new(lender->kernel, "busy", 2, busy_body, lender);
    k_sleep(host->kernel, FAKE_US(10));
    if (a->borrow == NULL) {
        try_borrow(host, a);
        return;
    }
    lend_return(a->borrow);
    assert_int_equal(lend_usage(lender->lend).lent, 0);
    a->borrow = NULL;
}

static void test_slow_lender(void **state)
{
    struct lf_rig *rig = cluster(true);
    struct attempt a = { .id = DEVICE(0), .peer = 2 };
    (void)state;
    expect_lendable(rig, &rig->host[0]);
    struct lend_usage before = lend_usage(rig->host[0].lend);
    for (unsigned i = 0; i < 2; i++) { /* to open, to close */
        lf_call(&rig->host[0], slow_body, &a);
        assert_int_equal(a.status, 0);
        assert_int_equal(rig->host[1].device[0].f.n_resets, 0);
    }
    struct lend_usage after = lend_usage(rig->host[0].lend);
    expect_same(&before, &after);
    lf_close(rig);
    free(rig);
}

/* ---- Ten thousand borrows -------------------------------------------------------------------- */

#define RANDOM_HOSTS   4u
#define RANDOM_DEVICES 3u

struct random_host {
    uint64_t seed;
    unsigned n_borrows, wanted;
    struct lend_borrow *held[8];
    unsigned n_held;
};

static unsigned draw(struct random_host *r, unsigned below)
{
    r->seed = r->seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (unsigned)(r->seed >> 33) % below;
}

static void random_body(struct lf_host *host, void *arg)
{
    struct random_host *r = arg;
    lend_discover(host->lend);
    while (r->n_borrows < r->wanted) {
        if (r->n_held > 0 && draw(r, 8) < r->n_held) {
            unsigned i = draw(r, r->n_held);
            lend_return(r->held[i]);
            r->held[i] = r->held[--r->n_held];
            continue;
        }
        unsigned peer = 1 + draw(r, RANDOM_HOSTS);
        struct attempt a = { .id = DEVICE(draw(r, RANDOM_DEVICES)), .peer = peer };
        if (peer == host->number)
            continue;
        try_borrow(host, &a);
        if (a.status == 0) {
            r->held[r->n_held++] = a.borrow;
            r->n_borrows++;
            if (draw(r, 16) == 0)
                driver_copies(lend_borrow_device(a.borrow), (uint8_t)r->seed);
        } else {
            assert_int_equal(a.status, -EBUSY);
            k_sleep(host->kernel, FAKE_US(50));
        }
    }
    while (r->n_held > 0)
        lend_return(r->held[--r->n_held]);
}

static void test_no_leak(void **state)
{
    struct lf_rig *rig = calloc(1, sizeof *rig);
    struct random_host random[RANDOM_HOSTS];
    struct lf_call call[RANDOM_HOSTS + 1] = { { .host = NULL } };
    struct lend_usage before[RANDOM_HOSTS];
    struct lf_entries entries[RANDOM_HOSTS];
    struct fake_options o = lend_plain;
    uint64_t pages[RANDOM_HOSTS];
    (void)state;
    lend_rig_init(rig);
    rig->through_switch = true;
    o.stall_percent = 2;
    for (unsigned i = 0; i < RANDOM_HOSTS; i++) {
        o.iommu = i % 2 == 0;
        lf_host_add(rig, &o, 1, RANDOM_DEVICES);
    }
    start_all(rig);
    /* First a few, so that everybody is connected to everybody; then the rest. */
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < RANDOM_HOSTS; i++) {
            random[i] = (struct random_host){ .seed = 17 * round + i + 1,
                                              .wanted = round == 0 ? 40 : 2500 };
            call[i] = (struct lf_call){ &rig->host[i], random_body, &random[i], false };
            k_thread_new(rig->host[i].kernel, "random", 1, lf_call_body, &call[i]);
        }
        lf_run(rig, FAKE_MS(20000), any_busy, call);
        assert_false(any_busy(call));
        lf_run(rig, FAKE_MS(1), NULL, NULL);
        for (unsigned i = 0; i < RANDOM_HOSTS; i++) {
            struct lf_host *host = &rig->host[i];
            struct lend_usage now = lend_usage(host->lend);
            struct lf_entries e = lf_entries_of(&host->ntb[0]);
            assert_int_equal(now.connections, RANDOM_HOSTS - 1);
            assert_int_equal(e.windows, now.windows);
            assert_int_equal(e.outgoing, now.outgoing + 1);
            assert_int_equal(e.incoming, now.incoming);
            if (round == 0) {
                before[i] = now;
                entries[i] = e;
                pages[i] = host->kernel->iommu_pages_live;
            }
            expect_same(&before[i], &now);
            assert_memory_equal(&entries[i], &e, sizeof e);
            assert_int_equal(host->kernel->iommu_pages_live, pages[i]);
            assert_int_equal(host->kernel->dma_live, 0);
        }
    }
    assert_int_equal(n_driven, 0);
    assert_int_equal(n_probed, RANDOM_HOSTS * 2540);
    lf_close(rig);
    free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transparent),
        cmocka_unit_test(test_segments),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_all_at_once),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_narrow_device),
        cmocka_unit_test(test_mask),
        cmocka_unit_test(test_sharing),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_outside),
        cmocka_unit_test(test_borrower_dies),
        cmocka_unit_test(test_reclaim),
        cmocka_unit_test(test_cable),
        cmocka_unit_test(test_lender_dies),
        cmocka_unit_test(test_lost_interrupts),
        cmocka_unit_test(test_slow_lender),
        cmocka_unit_test(test_no_leak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
