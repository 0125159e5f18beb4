/*
 * SISCI on fake hosts, with every combination of IOMMUs: segments and their errors; devices that
 * several hosts borrow, with windows to memory of the lender, of the borrower and of a third host,
 * and to registers of another device; what is taken back. After each, the tables of drivers and
 * chips hold what they held.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/support/sisci_rig.h"

/* ---- Segments -------------------------------------------------------------------------------- */

static void offer_body(struct lf_host *host, void *arg)
{
    struct sr_side *s = arg;
    struct sisci_segment *other;
    (void)host;
    OK(sisci_segment_create(s->process, 5, BYTES - 100, 0, sr_count_segment, s, &sr_shared,
                            &error));
    assert_int_equal(sisci_segment_bytes(sr_shared), BYTES);
    FAILS(sisci_segment_create(s->process, 5, BYTES, 0, NULL, NULL, &other, &error),
          SISCI_ERR_SEGMENTID_USED, "segment 5 exists");
    FAILS(sisci_segment_create(s->process, 6, 0, 0, NULL, NULL, &other, &error),
          SISCI_ERR_ILLEGAL_PARAMETER, "no bytes");
    FAILS(sisci_segment_export(sr_shared, SISCI_ANY, &error), SISCI_ERR_SEGMENT_NOT_PREPARED,
          "not prepared");
    FAILS(sisci_segment_prepare(sr_shared, 3, &error), SISCI_ERR_NO_SUCH_ADAPTERNO, "adapter 3");
    OK(sisci_segment_prepare(sr_shared, SISCI_ANY, &error));
    OK(sisci_segment_prepare(sr_shared, 0, &error));
}

static void export_body(struct lf_host *host, void *arg)
{
    (void)host;
    (void)arg;
    OK(sisci_segment_export(sr_shared, SISCI_ANY, &error));
}

static void not_exported_body(struct lf_host *host, void *arg)
{
    struct sr_side *s = arg;
    struct sisci_remote *remote;
    (void)host;
    FAILS(sisci_segment_connect(s->process, ID(LENDER), 5, SISCI_ANY, NULL, NULL, &remote, &error),
          SISCI_ERR_NO_SUCH_SEGMENT, "not exported");
    FAILS(sisci_segment_connect(s->process, ID(LENDER), 9, SISCI_ANY, NULL, NULL, &remote, &error),
          SISCI_ERR_NO_SUCH_SEGMENT, "no segment 9");
    FAILS(sisci_segment_connect(s->process, ID(LENDER), 5, 3, NULL, NULL, &remote, &error),
          SISCI_ERR_NO_SUCH_ADAPTERNO, "adapter 3");
}

/* Words, lines and whole structures go both ways; what is out of range is refused. */
static void use_body(struct lf_host *host, void *arg)
{
    struct sr_side *s = arg;
    struct sisci_remote *remote;
    struct sisci_map map, part;
    uint8_t out[1000], in_[1000];
    (void)host;
    OK(sisci_segment_connect(s->process, ID(LENDER), 5, SISCI_ANY, NULL, NULL, &remote, &error));
    assert_int_equal(sisci_remote_bytes(remote), BYTES);
    assert_int_equal(sisci_remote_host(remote), ID(LENDER));
    FAILS(sisci_map(remote, 4096, BYTES, &map, &error), SISCI_ERR_OUT_OF_RANGE, "0x2000 bytes");
    FAILS(sisci_map(remote, 2, 64, &map, &error), SISCI_ERR_OFFSET_ALIGNMENT, "multiple of 4");
    FAILS(sisci_map(remote, 0, 63, &map, &error), SISCI_ERR_SIZE_ALIGNMENT, "multiple of 4");
    OK(sisci_map(remote, 0, BYTES, &map, &error));
    OK(sisci_map(remote, 4096, 4096, &part, &error));
    assert_int_equal(sisci_read(&map, 4100, 4), s->events[0]++ == 0 ? 0 : 0x12345678);
    sisci_write(&part, 4, 4, 0x12345678);
    assert_int_equal(sisci_read(&map, 4100, 4), 0x12345678);
    for (unsigned i = 0; i < sizeof out; i++)
        out[i] = (uint8_t)(i * 5 + s->number);
    sisci_write_bytes(&part, 60, out, sizeof out);
    assert_int_equal(sisci_flush(&part), SISCI_OK);
    sisci_read_bytes(&map, 4156, in_, sizeof in_);
    assert_memory_equal(in_, out, sizeof out);
    FAILS(sisci_segment_disconnect(remote, &error), SISCI_ERR_BUSY, "is mapped");
    sisci_unmap(&map);
    sisci_unmap(&part);
    OK(sisci_segment_disconnect(remote, &error));
}

static void remove_body(struct lf_host *host, void *arg)
{
    (void)host;
    (void)arg;
    OK(sisci_segment_unexport(sr_shared, false, &error));
    OK(sisci_segment_remove(sr_shared, &error));
}

static void test_segments(void **state)
{
    (void)state;
    for (unsigned iommus = 0; iommus < 4; iommus++) {
        struct sr_cluster *c = sr_new(iommus, 1, 2);
        struct sr_holdings before[N_HOSTS];
        struct sr_side *owner = &c->side[LENDER];
        sr_greet_all(c, before);
        sr_in(owner, offer_body);
        sr_in(&c->side[CLIENT], not_exported_body);
        sr_in(owner, export_body);
        owner->events[0] = 1;
        for (unsigned i = 0; i < 3; i++)
            sr_in(&c->side[i == 2 ? LENDER : CLIENT],
                  use_body); /* the owner may use it like others */
        lf_run(c->rig, FAKE_MS(1), NULL, NULL);
        assert_int_equal(owner->events[SISCI_CB_CONNECT], 3);
        assert_int_equal(owner->events[SISCI_CB_DISCONNECT], 3);
        sr_in(owner, remove_body);
        sr_expect_no_trace(c, before);
        sr_free(c);
    }
}

/* ---- Taken back, lost ------------------------------------------------------------------------ */

static struct sisci_remote *held;
static struct sisci_map held_map;

static void hold_body(struct lf_host *host, void *arg)
{
    struct sr_side *s = arg;
    (void)host;
    OK(sisci_segment_connect(s->process, ID(LENDER), 5, SISCI_ANY, sr_count_remote, s, &held,
                             &error));
    OK(sisci_map(held, 0, 4096, &held_map, &error));
    sisci_write(&held_map, 0, 4, 1);
    assert_int_equal(sisci_flush(&held_map), SISCI_OK);
}

static void let_go_body(struct lf_host *host, void *arg)
{
    struct sr_side *s = arg;
    (void)host;
    assert_true(sisci_remote_lost(held));
    assert_int_equal(sisci_read(&held_map, 0, 4), UINT32_MAX);
    sisci_write(&held_map, 0, 4, 2);
    assert_int_equal(sisci_flush(&held_map), SISCI_ERR_TRANSFER_FAILED);
    struct sisci_map map;
    FAILS(sisci_map(held, 0, 64, &map, &error), SISCI_ERR_SEGMENT_NOT_CONNECTED, "lost");
    sisci_unmap(&held_map);
    OK(sisci_segment_disconnect(held, &error));
    (void)s;
}

static void take_back_body(struct lf_host *host, void *arg)
{
    struct sr_side *s = arg;
    uint32_t word;
    (void)host;
    FAILS(sisci_segment_remove(sr_shared, &error), SISCI_ERR_BUSY, "1 connections");
    OK(sisci_segment_unexport(sr_shared, true, &error));
    k_load(s->host->kernel, sisci_segment_memory(sr_shared), &word, sizeof word);
    assert_int_equal(word, 1);
    OK(sisci_segment_remove(sr_shared, &error));
}

static void test_taken_back(void **state)
{
    (void)state;
    for (unsigned iommus = 0; iommus < 4; iommus += 3) {
        struct sr_cluster *c = sr_new(iommus, 1, 2);
        struct sr_holdings before[N_HOSTS];
        sr_greet_all(c, before);
        sr_in(&c->side[LENDER], offer_body);
        sr_in(&c->side[LENDER], export_body);
        sr_in(&c->side[CLIENT], hold_body);
        sr_in(&c->side[LENDER], take_back_body);
        assert_int_equal(c->side[CLIENT].events[SISCI_CB_DISCONNECT], 1);
        sr_in(&c->side[CLIENT], let_go_body);
        sr_expect_no_trace(c, before);
        sr_free(c);
    }
}

/* The owner's process ends without a word: the kernel takes its segments back. */
static void test_owner_closes(void **state)
{
    struct sr_cluster *c = sr_new(3, 1, 2);
    struct sr_holdings before[N_HOSTS];
    (void)state;
    sr_greet_all(c, before);
    sr_in(&c->side[LENDER], offer_body);
    sr_in(&c->side[LENDER], export_body);
    sr_in(&c->side[CLIENT], hold_body);
    sr_in(&c->side[LENDER], sr_close_body);
    sr_in(&c->side[CLIENT], let_go_body);
    sr_in(&c->side[LENDER], sr_open_body);
    sr_expect_no_trace(c, before);
    sr_free(c);
}

/* The cable is out, and back: what was connected is lost, and can be connected to again. */
static void test_cable(void **state)
{
    (void)state;
    for (unsigned which = 0; which < 2; which++) {
        struct sr_cluster *c = sr_new(3, 1, 2);
        struct sr_holdings before[N_HOSTS];
        struct sr_side *client = &c->side[CLIENT], *owner = &c->side[LENDER];
        sr_greet_all(c, before);
        sr_in(owner, offer_body);
        sr_in(owner, export_body);
        sr_in(client, hold_body);
        lf_run(c->rig, FAKE_MS(1), NULL, NULL);
        struct lf_ntb *ntb = &c->rig->host[which == 0 ? CLIENT : LENDER].ntb[0];
        lf_cut(ntb, true);
        lf_run(c->rig, FAKE_MS(30), NULL, NULL);
        assert_int_equal(client->events[SISCI_CB_LOST], 1);
        assert_int_equal(client->events[SISCI_CB_NOT_OPERATIONAL], which == 0);
        assert_int_equal(owner->events[SISCI_CB_DISCONNECT], 1);
        assert_int_equal(owner->event_host, ID(CLIENT));
        sr_in(client, let_go_body);
        lf_cut(ntb, false);
        lf_run(c->rig, FAKE_MS(1), NULL, NULL);
        sr_in(client, use_body);
        sr_in(owner, remove_body);
        sr_expect_no_trace(c, before);
        sr_free(c);
    }
}

/* ---- Devices --------------------------------------------------------------------------------- */

/* Through a segment that is connected. */
static void copy_through(const struct sr_driven *d, struct sisci_remote *remote, uint8_t first,
                         bool isolated)
{
    struct sisci_window window;
    struct sisci_map map;
    OK(sisci_remote_map_for_device(remote, d->device, SISCI_ANY, 0, 2 * CHUNK, K_DMA_BOTH, &window,
                                   &error));
    OK(sisci_map(remote, 0, 2 * CHUNK, &map, &error));
    sr_copy_by_device(d, &map, window.dma, first);
    FAILS(sisci_segment_disconnect(remote, &error), SISCI_ERR_BUSY, "1 times");
    const uint64_t dma = window.dma;
    sisci_window_unmap(&window);
    if (isolated) /* neither what was mapped nor what lies beside it */
        assert_int_equal(sr_run(d, 2, dma, 64), 2);
    sisci_unmap(&map);
    OK(sisci_segment_disconnect(remote, &error));
}

/* Memory of this host; of the lender, if it is allocated for the device; of a third host. */
static void windows_body(struct lf_host *host, void *arg)
{
    struct sr_side *s = arg;
    struct sr_driven d;
    struct sisci_segment *own;
    struct sisci_window window;
    struct sisci_remote *remote;
    const bool isolated = sr_lender_isolates(s);
    sr_drive(s, &d, SISCI_SHARED);
    OK(sisci_segment_create(s->process, 20, BYTES, 1, NULL, NULL, &own, &error));
    OK(sisci_segment_map_for_device(own, d.device, SISCI_ANY, 4096, 4096, K_DMA_BOTH, &window,
                                    &error));
    struct sisci_map direct = { .kernel = host->kernel,
                                .address = sisci_segment_memory(own).v + 4096,
                                .bytes = 4096 };
    sr_copy_by_device(&d, &direct, window.dma, 1);
    if (isolated)
        assert_int_equal(sr_run(&d, 2, window.dma - 64, 64), 2);
    FAILS(sisci_segment_remove(own, &error), SISCI_ERR_BUSY, "windows");
    sisci_window_unmap(&window);
    OK(sisci_segment_remove(own, &error));
    FAILS(sisci_segment_map_for_device(sr_shared, d.device, SISCI_ANY, BYTES, 4, K_DMA_BOTH,
                                       &window, &error),
          SISCI_ERR_OUT_OF_RANGE, "0x2000");
    OK(sisci_device_segment_create(d.device, s->number, BYTES, SISCI_DEVICE_READ | SISCI_CPU_WRITE,
                                   false, SISCI_ANY, NULL, NULL, &remote, &error));
    assert_int_equal(sisci_remote_host(remote), ID(LENDER));
    copy_through(&d, remote, 2, isolated);
    OK(sisci_device_segment_create(d.device, 40 + s->number, BYTES,
                                   SISCI_DEVICE_WRITE | SISCI_CPU_READ, false, SISCI_ANY, NULL,
                                   NULL, &remote, &error));
    assert_int_equal(sisci_remote_host(remote), ID(s->number));
    assert_true(sisci_remote_memory(remote).v != 0);
    copy_through(&d, remote, 3, isolated);
    for (unsigned i = 0; i < N_HOSTS; i++) {
        OK(sisci_segment_connect(s->process, ID(i), 5 + i, SISCI_ANY, NULL, NULL, &remote, &error));
        copy_through(&d, remote, (uint8_t)(4 + i), isolated);
    }
    sr_undrive(&d);
}

static void test_windows(void **state)
{
    (void)state;
    for (unsigned iommus = 0; iommus < 8; iommus++) {
        struct sr_cluster *c = sr_new(iommus, 1, N_HOSTS);
        struct sr_holdings before[N_HOSTS];
        sr_greet_all(c, before);
        for (unsigned i = 0; i < N_HOSTS; i++)
            sr_in(&c->side[i], sr_offer_body);
        for (unsigned i = 0; i < N_HOSTS; i++) /* the lender's own process, too */
            sr_in(&c->side[i], windows_body);
        for (unsigned i = 0; i < N_HOSTS; i++) {
            sr_in(&c->side[i], sr_close_body);
            sr_in(&c->side[i], sr_open_body);
        }
        sr_expect_no_trace(c, before);
        assert_int_equal(c->rig->host[LENDER].device[0].f.n_resets, 0);
        sr_free(c);
    }
}

/* ---- Registers of another device ------------------------------------------------------------- */

static struct sisci_device_name target_name;

/* The device writes into another one's buffer, and reads from it. */
static void to_registers_body(struct lf_host *host, void *arg)
{
    struct sr_side *s = arg;
    struct sr_driven d;
    struct sisci_device *target;
    struct sisci_remote *bar;
    struct sisci_map regs;
    struct sisci_window window;
    (void)host;
    sr_drive(s, &d, SISCI_SHARED);
    OK(sisci_device_borrow(s->process, target_name, SISCI_SHARED, NULL, NULL, &target, &error));
    OK(sisci_device_bar_connect(target, 0, SISCI_ANY, NULL, NULL, &bar, &error));
    FAILS(sisci_device_bar_connect(target, 1, SISCI_ANY, NULL, NULL, &bar, &error),
          SISCI_ERR_ILLEGAL_PARAMETER, "register 1");
    OK(sisci_map(bar, 0, LF_BAR_BYTES, &regs, &error));
    OK(sisci_remote_map_for_device(bar, d.device, SISCI_ANY, LF_BUFFER, 4096, K_DMA_BOTH, &window,
                                   &error));
    for (unsigned i = 0; i < 64; i += 4)
        sisci_write(&d.regs, LF_BUFFER + i, 4, 0xabc0 + i);
    assert_int_equal(sr_run(&d, 2, window.dma, 64), 1);
    for (unsigned i = 0; i < 64; i += 4) {
        assert_int_equal(sisci_read(&regs, LF_BUFFER + i, 4), 0xabc0 + i);
        sisci_write(&regs, LF_BUFFER + i, 4, 0xdef0 + i);
    }
    assert_int_equal(sr_run(&d, 1, window.dma, 64), 1);
    for (unsigned i = 0; i < 64; i += 4)
        assert_int_equal(sisci_read(&d.regs, LF_BUFFER + i, 4), 0xdef0 + i);
    sisci_window_unmap(&window);
    sisci_unmap(&regs);
    OK(sisci_segment_disconnect(bar, &error));
    OK(sisci_device_return(target, &error));
    sr_undrive(&d);
}

static void test_registers(void **state)
{
    (void)state;
    for (unsigned iommus = 0; iommus < 8; iommus++) {
        struct sr_cluster *c = sr_new(iommus, 1, N_HOSTS);
        struct sr_holdings before[N_HOSTS];
        sr_greet_all(c, before);
        for (unsigned target = 0; target < N_HOSTS; target++) {
            target_name = (struct sisci_device_name){ ID(target), DEVICE(target == LENDER) };
            sr_in(&c->side[CLIENT], to_registers_body);
        }
        sr_expect_no_trace(c, before);
        sr_free(c);
    }
}

/* A device that device lending has borrowed, as a GPU whose driver is the kernel's: windows lead to
 * it at its lender. */
static void to_shadow_body(struct lf_host *host, void *arg)
{
    struct sr_side *s = arg;
    struct sr_driven d;
    struct lend_borrow *borrow;
    struct lend_error why;
    struct sisci_segment *segment;
    struct sisci_device *twice;
    struct sisci_window window;
    assert_int_equal(lend_borrow(host->lend, target_name.host, target_name.id, &borrow, &why), 0);
    FAILS(sisci_device_borrow(s->process, target_name, SISCI_SHARED, NULL, NULL, &twice, &error),
          SISCI_ERR_NOT_AVAILABLE, "is lent to host 1");
    sr_drive(s, &d, SISCI_EXCLUSIVE);
    assert_int_equal(lend_borrow(host->lend, sr_device_name.host, sr_device_name.id,
                                 &(struct lend_borrow *){ 0 }, &why),
                     -EBUSY);
    struct k_pci_dev *shadow = lend_borrow_device(borrow);
    OK(sisci_segment_attach_bar(s->process, 9, shadow, 0, LF_BUFFER, 4096, &segment, &error));
    FAILS(sisci_segment_prepare(segment, 0, &error), SISCI_ERR_ILLEGAL_OPERATION, "device of host");
    OK(sisci_segment_map_for_device(segment, d.device, SISCI_ANY, 0, 4096, K_DMA_BOTH, &window,
                                    &error));
    sisci_write(&d.regs, LF_BUFFER, 4, 0x5a5a);
    assert_int_equal(sr_run(&d, 2, window.dma, 64), 1);
    assert_int_equal(k_readl(shadow, 0, LF_BUFFER), 0x5a5a);
    sisci_window_unmap(&window);
    OK(sisci_segment_remove(segment, &error));
    sr_undrive(&d);
    lend_return(borrow);
}

static void test_shadow(void **state)
{
    (void)state;
    for (unsigned iommus = 0; iommus < 8; iommus++) {
        struct sr_cluster *c = sr_new(iommus, 1, N_HOSTS);
        struct sr_holdings before[N_HOSTS];
        sr_greet_all(c, before);
        for (unsigned target = LENDER; target < N_HOSTS; target++) {
            target_name = (struct sisci_device_name){ ID(target), DEVICE(target == LENDER) };
            sr_in(&c->side[CLIENT], to_shadow_body);
        }
        sr_expect_no_trace(c, before);
        sr_free(c);
    }
}

/* ---- Exclusive and shared -------------------------------------------------------------------- */

static struct sr_driven manager;

static void exclusive_body(struct lf_host *host, void *arg)
{
    struct sr_side *s = arg;
    (void)host;
    sr_drive(s, &manager, SISCI_EXCLUSIVE);
    sisci_write(&manager.regs, LF_BUFFER, 4, 77);
    OK(sisci_device_reset(manager.device, &error));
    assert_int_equal(sisci_read(&manager.regs, LF_BUFFER, 4), 0);
}

static void refused_body(struct lf_host *host, void *arg)
{
    struct sr_side *s = arg;
    struct sisci_device *d;
    struct sisci_device_info info;
    (void)host;
    FAILS(sisci_device_borrow(s->process, sr_device_name, SISCI_SHARED, NULL, NULL, &d, &error),
          SISCI_ERR_BUSY, "by host 3, exclusively");
    OK(sisci_device_at(s->process, ID(LENDER), 1, &info, &error));
    assert_int_equal(info.n_borrowers, 1);
    assert_int_equal(info.exclusive, ID(THIRD));
    assert_int_equal(info.lent_to, 0);
}

static void share_body(struct lf_host *host, void *arg)
{
    (void)host;
    (void)arg;
    OK(sisci_device_share(manager.device, &error));
    FAILS(sisci_device_share(manager.device, &error), SISCI_ERR_ILLEGAL_OPERATION, "exclusively");
    FAILS(sisci_device_reset(manager.device, &error), SISCI_ERR_ILLEGAL_OPERATION, "exclusively");
}

static void shared_body(struct lf_host *host, void *arg)
{
    struct sr_side *s = arg;
    struct sisci_device *d, *again;
    struct sisci_remote *remote;
    struct sisci_map map;
    (void)host;
    OK(sisci_device_borrow(s->process, sr_device_name, SISCI_SHARED, NULL, NULL, &d, &error));
    FAILS(sisci_device_borrow(s->process, sr_device_name, SISCI_EXCLUSIVE, NULL, NULL, &again,
                              &error),
          SISCI_ERR_BUSY, "borrowed by host");
    OK(sisci_device_segment_connect(d, 1, SISCI_ANY, NULL, NULL, &remote, &error));
    OK(sisci_map(remote, 0, 64, &map, &error));
    assert_int_equal(sisci_read(&map, 8, 4), 4711);
    sisci_unmap(&map);
    OK(sisci_segment_disconnect(remote, &error));
    FAILS(sisci_device_segment_connect(d, 2, SISCI_ANY, NULL, NULL, &remote, &error),
          SISCI_ERR_NO_SUCH_SEGMENT, "segment 2");
    OK(sisci_device_return(d, &error));
}

/* A segment that others may connect to, and one that they may not. */
static void publish_body(struct lf_host *host, void *arg)
{
    static const unsigned hints[] = { SISCI_CPU_WRITE | SISCI_DEVICE_READ,
                                      SISCI_CPU_READ | SISCI_CPU_WRITE };
    struct sr_side *s = arg;
    struct sisci_remote *remote[2], *twice;
    struct sisci_map map;
    (void)host;
    for (unsigned i = 0; i < 2; i++)
        OK(sisci_device_segment_create(manager.device, 1 + i, 4096,
                                       hints[(i + (unsigned)s->events[0]) % 2], i == 0, SISCI_ANY,
                                       NULL, NULL, &remote[i], &error));
    FAILS(sisci_device_segment_create(manager.device, 1, 4096, hints[0], true, SISCI_ANY, NULL,
                                      NULL, &twice, &error),
          SISCI_ERR_SEGMENTID_USED, "segment 1");
    FAILS(sisci_device_segment_create(manager.device, 3, 4096, 0, true, SISCI_ANY, NULL, NULL,
                                      &twice, &error),
          SISCI_ERR_ILLEGAL_PARAMETER, "without hints");
    OK(sisci_map(remote[0], 0, 64, &map, &error));
    sisci_write(&map, 8, 4, 4711);
    assert_int_equal(sisci_flush(&map), SISCI_OK);
    sisci_unmap(&map);
    for (unsigned i = 0; i < 2; i++)
        OK(sisci_segment_disconnect(remote[i], &error));
}

static void unmanage_body(struct lf_host *host, void *arg)
{
    (void)host;
    (void)arg;
    sr_undrive(&manager);
}

static void test_sharing(void **state)
{
    (void)state;
    for (unsigned place = 0; place < 2; place++) { /* of the shared segment: lender, manager */
        struct sr_cluster *c = sr_new(place == 0 ? 0 : 7, 1, N_HOSTS);
        struct sr_holdings before[N_HOSTS];
        sr_greet_all(c, before);
        c->side[THIRD].events[0] = place;
        for (unsigned i = 0; i < N_HOSTS; i++)
            c->rig->host[LENDER].device[i % 2].f.flr = true;
        lf_put(&c->rig->host[LENDER].device[0].f, LF_CAP_PCIE + 4, 4, PCIE_DEVCAP_FLR);
        sr_in(&c->side[THIRD], exclusive_body);
        assert_int_equal(c->rig->host[LENDER].device[0].f.n_resets, 1);
        sr_in(&c->side[CLIENT], refused_body);
        sr_in(&c->side[LENDER], refused_body);
        sr_in(&c->side[THIRD], share_body);
        sr_in(&c->side[THIRD], publish_body);
        sr_in(&c->side[CLIENT], shared_body);
        sr_in(&c->side[LENDER], shared_body);
        sr_in(&c->side[THIRD], unmanage_body);
        sr_expect_no_trace(c, before);
        sr_free(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_segments),     cmocka_unit_test(test_taken_back),
        cmocka_unit_test(test_owner_closes), cmocka_unit_test(test_cable),
        cmocka_unit_test(test_windows),      cmocka_unit_test(test_registers),
        cmocka_unit_test(test_shadow),       cmocka_unit_test(test_sharing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
