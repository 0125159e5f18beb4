/*
 * SISCI on fake hosts, with every combination of IOMMUs: segments and their errors; devices that
 * several hosts borrow, with windows to memory of the lender, of the borrower and of a third host,
 * and to registers of another device; who dies, what is taken back; and a thousand borrows in random
 * order, after which the tables of drivers and chips hold what they held.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "logic/sisci/sisci.h"
#include "tests/support/lend_rig.h"

#define CLIENT  0 /* borrows */
#define LENDER  1 /* has two devices */
#define THIRD   2 /* has memory, and borrows too */
#define N_HOSTS 3u
#define ID(h)   ((uint32_t)(h) + 1)
#define BYTES   8192u
#define CHUNK   2048u

struct side {
    struct cluster *cluster;
    unsigned number;
    struct lf_host *host;
    struct sisci *sisci;
    struct sisci_process *process;
    unsigned events[8]; /* of callbacks, by enum sisci_event */
    uint32_t event_host;
};
struct cluster {
    struct lf_rig *rig;
    struct side side[N_HOSTS];
};

/* ---- Making ---------------------------------------------------------------------------------- */

#define OK(call)                                                                  \
    do {                                                                          \
        struct lend_error error = { 0 };                                          \
        const enum sisci_error result_ = (call);                                  \
        if (result_ != SISCI_OK)                                                  \
            fail_msg("%s: %s: %s", #call, sisci_error_name(result_), error.text); \
    } while (0)
#define FAILS(call, code, word)                                                   \
    do {                                                                          \
        struct lend_error error = { 0 };                                          \
        const enum sisci_error result_ = (call);                                  \
        if (result_ != (code) || strstr(error.text, word) == NULL)                \
            fail_msg("%s: %s: %s", #call, sisci_error_name(result_), error.text); \
    } while (0)

static void in(struct side *s, void (*body)(struct lf_host *, void *))
{
    lf_call(s->host, body, s);
}

static void open_body(struct lf_host *host, void *arg)
{
    struct side *s = arg;
    (void)host;
    OK(sisci_open(s->sisci, &s->process, &error));
    assert_int_equal(sisci_host_id(s->process), ID(s->number));
}

static void close_body(struct lf_host *host, void *arg)
{
    struct side *s = arg;
    (void)host;
    sisci_close(s->process);
    s->process = NULL;
}

/* Bit i of iommus: host i has one on. Back to back: the first two alone. */
static struct cluster *cluster_new(unsigned iommus, unsigned n_ntbs, unsigned n_hosts)
{
    struct cluster *c = calloc(1, sizeof *c);
    c->rig = calloc(1, sizeof *c->rig);
    lend_rig_init(c->rig);
    lf_driver_now = NULL;
    c->rig->through_switch = true;
    for (unsigned i = 0; i < n_hosts; i++) {
        struct fake_options o = lend_plain;
        o.iommu = iommus >> i & 1;
        lf_host_add(c->rig, &o, n_ntbs, i == LENDER ? 2 : 1);
    }
    for (unsigned i = 0; i < n_hosts; i++) {
        struct side *s = &c->side[i];
        struct lend_options options = lf_options(&c->rig->host[i]);
        *s = (struct side){ .cluster = c, .number = i, .host = &c->rig->host[i] };
        lf_host_start(s->host, &options);
        s->sisci = sisci_new(s->host->lend);
        in(s, open_body);
    }
    return c;
}

/* A last driver of a device resets it if somebody died: that takes 100 ms. */
static void cluster_free(struct cluster *c)
{
    for (unsigned i = 0; i < c->rig->n_hosts; i++)
        if (c->side[i].process != NULL && !c->side[i].host->dead)
            in(&c->side[i], close_body);
    lf_close(c->rig);
    free(c->rig);
    free(c);
}

static void count_segment(struct sisci_segment *segment, enum sisci_event event, uint32_t host,
                          void *context)
{
    struct side *s = context;
    (void)segment;
    s->events[event]++;
    s->event_host = host;
}

static void count_remote(struct sisci_remote *remote, enum sisci_event event, void *context)
{
    struct side *s = context;
    (void)remote;
    s->events[event]++;
}

static void count_device(struct sisci_device *device, enum sisci_event event, void *context)
{
    struct side *s = context;
    assert_true(sisci_device_lost(device));
    s->events[event]++;
}

/* ---- What one host holds --------------------------------------------------------------------- */

struct holdings {
    struct sisci_usage sisci;
    struct lend_usage lend;
    struct lf_entries entries[LF_NTBS];
    uint64_t iommu_pages, pages;
};

static struct holdings holdings_of(const struct side *s)
{
    struct holdings h;
    memset(&h, 0, sizeof h);
    h.sisci = sisci_usage(s->sisci);
    h.lend = lend_usage(s->host->lend);
    for (unsigned i = 0; i < s->host->n_ntbs; i++)
        h.entries[i] = lf_entries_of(&s->host->ntb[i]);
    h.iommu_pages = s->host->kernel->iommu_pages_live;
    h.pages = s->host->kernel->pages_live;
    return h;
}

static void look(struct cluster *c, struct holdings h[N_HOSTS])
{
    for (unsigned i = 0; i < c->rig->n_hosts; i++)
        h[i] = holdings_of(&c->side[i]);
}

static void expect_no_trace(struct cluster *c, const struct holdings before[N_HOSTS])
{
    lf_run(c->rig, FAKE_MS(1), NULL, NULL);
    for (unsigned i = 0; i < c->rig->n_hosts; i++) {
        const struct holdings now = holdings_of(&c->side[i]);
        if (!c->side[i].host->dead)
            assert_memory_equal(&now, &before[i], sizeof now);
    }
}

/* Everybody has connections to everybody: these stay. */
static void greet_body(struct lf_host *host, void *arg)
{
    struct side *s = arg;
    struct sisci_device_info info;
    (void)host;
    for (unsigned i = 0; i < s->cluster->rig->n_hosts; i++) {
        OK(sisci_device_at(s->process, ID(i), 0, &info, &error));
        assert_int_equal(info.name.host, ID(i));
        assert_int_equal(info.name.id, DEVICE(i == LENDER));
        assert_int_equal(info.vendor_id, LF_VENDOR);
        assert_int_equal(info.bar_bytes[0], LF_BAR_BYTES);
        FAILS(sisci_device_at(s->process, ID(i), 7, &info, &error), SISCI_ERR_ILLEGAL_PARAMETER,
              "7 devices or fewer");
    }
    FAILS(sisci_device_at(s->process, 77, 0, &info, &error), SISCI_ERR_NO_SUCH_NODEID, "77");
}

static void greet_all(struct cluster *c, struct holdings before[N_HOSTS])
{
    for (unsigned i = 0; i < c->rig->n_hosts; i++)
        in(&c->side[i], greet_body);
    lf_run(c->rig, FAKE_MS(1), NULL, NULL);
    look(c, before);
}

/* ---- Segments -------------------------------------------------------------------------------- */

static struct sisci_segment *shared; /* of the test that runs */

static void offer_body(struct lf_host *host, void *arg)
{
    struct side *s = arg;
    struct sisci_segment *other;
    (void)host;
    OK(sisci_segment_create(s->process, 5, BYTES - 100, 0, count_segment, s, &shared, &error));
    assert_int_equal(sisci_segment_bytes(shared), BYTES);
    FAILS(sisci_segment_create(s->process, 5, BYTES, 0, NULL, NULL, &other, &error),
          SISCI_ERR_SEGMENTID_USED, "segment 5 exists");
    FAILS(sisci_segment_create(s->process, 6, 0, 0, NULL, NULL, &other, &error),
          SISCI_ERR_ILLEGAL_PARAMETER, "no bytes");
    FAILS(sisci_segment_export(shared, SISCI_ANY, &error), SISCI_ERR_SEGMENT_NOT_PREPARED,
          "not prepared");
    FAILS(sisci_segment_prepare(shared, 3, &error), SISCI_ERR_NO_SUCH_ADAPTERNO, "adapter 3");
    OK(sisci_segment_prepare(shared, SISCI_ANY, &error));
    OK(sisci_segment_prepare(shared, 0, &error));
}

static void export_body(struct lf_host *host, void *arg)
{
    (void)host;
    (void)arg;
    OK(sisci_segment_export(shared, SISCI_ANY, &error));
}

static void not_exported_body(struct lf_host *host, void *arg)
{
    struct side *s = arg;
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
    struct side *s = arg;
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
    OK(sisci_segment_unexport(shared, false, &error));
    OK(sisci_segment_remove(shared, &error));
}

static void test_segments(void **state)
{
    (void)state;
    for (unsigned iommus = 0; iommus < 4; iommus++) {
        struct cluster *c = cluster_new(iommus, 1, 2);
        struct holdings before[N_HOSTS];
        struct side *owner = &c->side[LENDER];
        greet_all(c, before);
        in(owner, offer_body);
        in(&c->side[CLIENT], not_exported_body);
        in(owner, export_body);
        owner->events[0] = 1;
        for (unsigned i = 0; i < 3; i++)
            in(&c->side[i == 2 ? LENDER : CLIENT], use_body); /* the owner may use it like others */
        lf_run(c->rig, FAKE_MS(1), NULL, NULL);
        assert_int_equal(owner->events[SISCI_CB_CONNECT], 3);
        assert_int_equal(owner->events[SISCI_CB_DISCONNECT], 3);
        in(owner, remove_body);
        expect_no_trace(c, before);
        cluster_free(c);
    }
}

/* ---- Taken back, lost ------------------------------------------------------------------------ */

static struct sisci_remote *held;
static struct sisci_map held_map;

static void hold_body(struct lf_host *host, void *arg)
{
    struct side *s = arg;
    (void)host;
    OK(sisci_segment_connect(s->process, ID(LENDER), 5, SISCI_ANY, count_remote, s, &held, &error));
    OK(sisci_map(held, 0, 4096, &held_map, &error));
    sisci_write(&held_map, 0, 4, 1);
    assert_int_equal(sisci_flush(&held_map), SISCI_OK);
}

static void let_go_body(struct lf_host *host, void *arg)
{
    struct side *s = arg;
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
    struct side *s = arg;
    uint32_t word;
    (void)host;
    FAILS(sisci_segment_remove(shared, &error), SISCI_ERR_BUSY, "1 connections");
    OK(sisci_segment_unexport(shared, true, &error));
    k_load(s->host->kernel, sisci_segment_memory(shared), &word, sizeof word);
    assert_int_equal(word, 1);
    OK(sisci_segment_remove(shared, &error));
}

static void test_taken_back(void **state)
{
    (void)state;
    for (unsigned iommus = 0; iommus < 4; iommus += 3) {
        struct cluster *c = cluster_new(iommus, 1, 2);
        struct holdings before[N_HOSTS];
        greet_all(c, before);
        in(&c->side[LENDER], offer_body);
        in(&c->side[LENDER], export_body);
        in(&c->side[CLIENT], hold_body);
        in(&c->side[LENDER], take_back_body);
        assert_int_equal(c->side[CLIENT].events[SISCI_CB_DISCONNECT], 1);
        in(&c->side[CLIENT], let_go_body);
        expect_no_trace(c, before);
        cluster_free(c);
    }
}

/* The owner's process ends without a word: the kernel takes its segments back. */
static void test_owner_closes(void **state)
{
    struct cluster *c = cluster_new(3, 1, 2);
    struct holdings before[N_HOSTS];
    (void)state;
    greet_all(c, before);
    in(&c->side[LENDER], offer_body);
    in(&c->side[LENDER], export_body);
    in(&c->side[CLIENT], hold_body);
    in(&c->side[LENDER], close_body);
    in(&c->side[CLIENT], let_go_body);
    in(&c->side[LENDER], open_body);
    expect_no_trace(c, before);
    cluster_free(c);
}

/* The cable is out, and back: what was connected is lost, and can be connected to again. */
static void test_cable(void **state)
{
    (void)state;
    for (unsigned which = 0; which < 2; which++) {
        struct cluster *c = cluster_new(3, 1, 2);
        struct holdings before[N_HOSTS];
        struct side *client = &c->side[CLIENT], *owner = &c->side[LENDER];
        greet_all(c, before);
        in(owner, offer_body);
        in(owner, export_body);
        in(client, hold_body);
        lf_run(c->rig, FAKE_MS(1), NULL, NULL);
        struct lf_ntb *ntb = &c->rig->host[which == 0 ? CLIENT : LENDER].ntb[0];
        lf_cut(ntb, true);
        lf_run(c->rig, FAKE_MS(30), NULL, NULL);
        assert_int_equal(client->events[SISCI_CB_LOST], 1);
        assert_int_equal(client->events[SISCI_CB_NOT_OPERATIONAL], which == 0);
        assert_int_equal(owner->events[SISCI_CB_DISCONNECT], 1);
        assert_int_equal(owner->event_host, ID(CLIENT));
        in(client, let_go_body);
        lf_cut(ntb, false);
        lf_run(c->rig, FAKE_MS(1), NULL, NULL);
        in(client, use_body);
        in(owner, remove_body);
        expect_no_trace(c, before);
        cluster_free(c);
    }
}

/* ---- Devices --------------------------------------------------------------------------------- */

static const struct sisci_device_name device_name = { ID(LENDER), DEVICE(0) };

/* A device, driven through its registers as a segment. */
struct driven {
    struct sisci_device *device;
    struct sisci_remote *bar;
    struct sisci_map regs;
};

static void drive(struct side *s, struct driven *d, enum sisci_borrow how)
{
    OK(sisci_device_borrow(s->process, device_name, how, count_device, s, &d->device, &error));
    OK(sisci_device_bar_connect(d->device, 0, SISCI_ANY, count_remote, s, &d->bar, &error));
    OK(sisci_map(d->bar, 0, LF_BAR_BYTES, &d->regs, &error));
}

static void undrive(struct driven *d)
{
    FAILS(sisci_device_return(d->device, &error), SISCI_ERR_BUSY, "segments");
    sisci_unmap(&d->regs);
    OK(sisci_segment_disconnect(d->bar, &error));
    OK(sisci_device_return(d->device, &error));
}

/* One command of the device; its status. */
static uint32_t run(const struct driven *d, uint32_t command, uint64_t dma, uint32_t bytes)
{
    sisci_write(&d->regs, LF_REG_STATUS, 4, 0);
    sisci_write(&d->regs, LF_REG_ADDRESS, 8, dma);
    sisci_write(&d->regs, LF_REG_BYTES, 4, bytes);
    sisci_write(&d->regs, LF_REG_COMMAND, 4, command);
    return (uint32_t)sisci_read(&d->regs, LF_REG_STATUS, 4);
}

/* The device reads what the CPU has put at the first half of `map`, and writes it to the second. */
static void copy_by_device(const struct driven *d, const struct sisci_map *map, uint64_t dma,
                           uint8_t first)
{
    uint8_t out[CHUNK], in_[CHUNK];
    for (unsigned i = 0; i < CHUNK; i++)
        out[i] = (uint8_t)(first + 11 * i);
    sisci_write_bytes(map, 0, out, CHUNK);
    assert_int_equal(sisci_flush(map), SISCI_OK);
    assert_int_equal(run(d, 1, dma, CHUNK), 1);
    assert_int_equal(run(d, 2, dma + CHUNK, CHUNK), 1);
    sisci_read_bytes(map, CHUNK, in_, CHUNK);
    assert_memory_equal(in_, out, CHUNK);
}

/* Through a segment that is connected. */
static void copy_through(const struct driven *d, struct sisci_remote *remote, uint8_t first,
                         bool isolated)
{
    struct sisci_window window;
    struct sisci_map map;
    OK(sisci_remote_map_for_device(remote, d->device, SISCI_ANY, 0, 2 * CHUNK, K_DMA_BOTH, &window,
                                   &error));
    OK(sisci_map(remote, 0, 2 * CHUNK, &map, &error));
    copy_by_device(d, &map, window.dma, first);
    FAILS(sisci_segment_disconnect(remote, &error), SISCI_ERR_BUSY, "1 times");
    const uint64_t dma = window.dma;
    sisci_window_unmap(&window);
    if (isolated) /* neither what was mapped nor what lies beside it */
        assert_int_equal(run(d, 2, dma, 64), 2);
    sisci_unmap(&map);
    OK(sisci_segment_disconnect(remote, &error));
}

static bool lender_isolates(const struct side *s)
{
    return s->cluster->rig->host[LENDER].kernel->options.iommu;
}

/* Memory of this host; of the lender, if it is allocated for the device; of a third host. */
static void windows_body(struct lf_host *host, void *arg)
{
    struct side *s = arg;
    struct driven d;
    struct sisci_segment *own;
    struct sisci_window window;
    struct sisci_remote *remote;
    const bool isolated = lender_isolates(s);
    drive(s, &d, SISCI_SHARED);
    OK(sisci_segment_create(s->process, 20, BYTES, 1, NULL, NULL, &own, &error));
    OK(sisci_segment_map_for_device(own, d.device, SISCI_ANY, 4096, 4096, K_DMA_BOTH, &window,
                                    &error));
    struct sisci_map direct = { .kernel = host->kernel,
                                .address = sisci_segment_memory(own).v + 4096,
                                .bytes = 4096 };
    copy_by_device(&d, &direct, window.dma, 1);
    if (isolated)
        assert_int_equal(run(&d, 2, window.dma - 64, 64), 2);
    FAILS(sisci_segment_remove(own, &error), SISCI_ERR_BUSY, "windows");
    sisci_window_unmap(&window);
    OK(sisci_segment_remove(own, &error));
    FAILS(sisci_segment_map_for_device(shared, d.device, SISCI_ANY, BYTES, 4, K_DMA_BOTH, &window,
                                       &error),
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
    undrive(&d);
}

static void offer_plain_body(struct lf_host *host, void *arg)
{
    struct side *s = arg;
    (void)host;
    OK(sisci_segment_create(s->process, 5 + s->number, BYTES, 0, NULL, NULL, &shared, &error));
    OK(sisci_segment_prepare(shared, SISCI_ANY, &error));
    OK(sisci_segment_export(shared, SISCI_ANY, &error));
}

static void test_windows(void **state)
{
    (void)state;
    for (unsigned iommus = 0; iommus < 8; iommus++) {
        struct cluster *c = cluster_new(iommus, 1, N_HOSTS);
        struct holdings before[N_HOSTS];
        greet_all(c, before);
        for (unsigned i = 0; i < N_HOSTS; i++)
            in(&c->side[i], offer_plain_body);
        for (unsigned i = 0; i < N_HOSTS; i++) /* the lender's own process, too */
            in(&c->side[i], windows_body);
        for (unsigned i = 0; i < N_HOSTS; i++) {
            in(&c->side[i], close_body);
            in(&c->side[i], open_body);
        }
        expect_no_trace(c, before);
        assert_int_equal(c->rig->host[LENDER].device[0].f.n_resets, 0);
        cluster_free(c);
    }
}

/* ---- Registers of another device ------------------------------------------------------------- */

static struct sisci_device_name target_name;

/* The device writes into another one's buffer, and reads from it. */
static void to_registers_body(struct lf_host *host, void *arg)
{
    struct side *s = arg;
    struct driven d;
    struct sisci_device *target;
    struct sisci_remote *bar;
    struct sisci_map regs;
    struct sisci_window window;
    (void)host;
    drive(s, &d, SISCI_SHARED);
    OK(sisci_device_borrow(s->process, target_name, SISCI_SHARED, NULL, NULL, &target, &error));
    OK(sisci_device_bar_connect(target, 0, SISCI_ANY, NULL, NULL, &bar, &error));
    FAILS(sisci_device_bar_connect(target, 1, SISCI_ANY, NULL, NULL, &bar, &error),
          SISCI_ERR_ILLEGAL_PARAMETER, "register 1");
    OK(sisci_map(bar, 0, LF_BAR_BYTES, &regs, &error));
    OK(sisci_remote_map_for_device(bar, d.device, SISCI_ANY, LF_BUFFER, 4096, K_DMA_BOTH, &window,
                                   &error));
    for (unsigned i = 0; i < 64; i += 4)
        sisci_write(&d.regs, LF_BUFFER + i, 4, 0xabc0 + i);
    assert_int_equal(run(&d, 2, window.dma, 64), 1);
    for (unsigned i = 0; i < 64; i += 4) {
        assert_int_equal(sisci_read(&regs, LF_BUFFER + i, 4), 0xabc0 + i);
        sisci_write(&regs, LF_BUFFER + i, 4, 0xdef0 + i);
    }
    assert_int_equal(run(&d, 1, window.dma, 64), 1);
    for (unsigned i = 0; i < 64; i += 4)
        assert_int_equal(sisci_read(&d.regs, LF_BUFFER + i, 4), 0xdef0 + i);
    sisci_window_unmap(&window);
    sisci_unmap(&regs);
    OK(sisci_segment_disconnect(bar, &error));
    OK(sisci_device_return(target, &error));
    undrive(&d);
}

static void test_registers(void **state)
{
    (void)state;
    for (unsigned iommus = 0; iommus < 8; iommus++) {
        struct cluster *c = cluster_new(iommus, 1, N_HOSTS);
        struct holdings before[N_HOSTS];
        greet_all(c, before);
        for (unsigned target = 0; target < N_HOSTS; target++) {
            target_name = (struct sisci_device_name){ ID(target), DEVICE(target == LENDER) };
            in(&c->side[CLIENT], to_registers_body);
        }
        expect_no_trace(c, before);
        cluster_free(c);
    }
}

/* A device that device lending has borrowed, as a GPU whose driver is the kernel's: windows lead to
 * it at its lender. */
static void to_shadow_body(struct lf_host *host, void *arg)
{
    struct side *s = arg;
    struct driven d;
    struct lend_borrow *borrow;
    struct lend_error why;
    struct sisci_segment *segment;
    struct sisci_device *twice;
    struct sisci_window window;
    assert_int_equal(lend_borrow(host->lend, target_name.host, target_name.id, &borrow, &why), 0);
    FAILS(sisci_device_borrow(s->process, target_name, SISCI_SHARED, NULL, NULL, &twice, &error),
          SISCI_ERR_NOT_AVAILABLE, "is lent to host 1");
    drive(s, &d, SISCI_EXCLUSIVE);
    assert_int_equal(lend_borrow(host->lend, device_name.host, device_name.id,
                                 &(struct lend_borrow *){ 0 }, &why),
                     -EBUSY);
    struct k_pci_dev *shadow = lend_borrow_device(borrow);
    OK(sisci_segment_attach_bar(s->process, 9, shadow, 0, LF_BUFFER, 4096, &segment, &error));
    FAILS(sisci_segment_prepare(segment, 0, &error), SISCI_ERR_ILLEGAL_OPERATION, "device of host");
    OK(sisci_segment_map_for_device(segment, d.device, SISCI_ANY, 0, 4096, K_DMA_BOTH, &window,
                                    &error));
    sisci_write(&d.regs, LF_BUFFER, 4, 0x5a5a);
    assert_int_equal(run(&d, 2, window.dma, 64), 1);
    assert_int_equal(k_readl(shadow, 0, LF_BUFFER), 0x5a5a);
    sisci_window_unmap(&window);
    OK(sisci_segment_remove(segment, &error));
    undrive(&d);
    lend_return(borrow);
}

static void test_shadow(void **state)
{
    (void)state;
    for (unsigned iommus = 0; iommus < 8; iommus++) {
        struct cluster *c = cluster_new(iommus, 1, N_HOSTS);
        struct holdings before[N_HOSTS];
        greet_all(c, before);
        for (unsigned target = LENDER; target < N_HOSTS; target++) {
            target_name = (struct sisci_device_name){ ID(target), DEVICE(target == LENDER) };
            in(&c->side[CLIENT], to_shadow_body);
        }
        expect_no_trace(c, before);
        cluster_free(c);
    }
}

/* ---- Exclusive and shared -------------------------------------------------------------------- */

static struct driven manager;

static void exclusive_body(struct lf_host *host, void *arg)
{
    struct side *s = arg;
    (void)host;
    drive(s, &manager, SISCI_EXCLUSIVE);
    sisci_write(&manager.regs, LF_BUFFER, 4, 77);
    OK(sisci_device_reset(manager.device, &error));
    assert_int_equal(sisci_read(&manager.regs, LF_BUFFER, 4), 0);
}

static void refused_body(struct lf_host *host, void *arg)
{
    struct side *s = arg;
    struct sisci_device *d;
    struct sisci_device_info info;
    (void)host;
    FAILS(sisci_device_borrow(s->process, device_name, SISCI_SHARED, NULL, NULL, &d, &error),
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
    struct side *s = arg;
    struct sisci_device *d, *again;
    struct sisci_remote *remote;
    struct sisci_map map;
    (void)host;
    OK(sisci_device_borrow(s->process, device_name, SISCI_SHARED, NULL, NULL, &d, &error));
    FAILS(sisci_device_borrow(s->process, device_name, SISCI_EXCLUSIVE, NULL, NULL, &again, &error),
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
    struct side *s = arg;
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
    undrive(&manager);
}

static void test_sharing(void **state)
{
    (void)state;
    for (unsigned place = 0; place < 2; place++) { /* of the shared segment: lender, manager */
        struct cluster *c = cluster_new(place == 0 ? 0 : 7, 1, N_HOSTS);
        struct holdings before[N_HOSTS];
        greet_all(c, before);
        c->side[THIRD].events[0] = place;
        for (unsigned i = 0; i < N_HOSTS; i++)
            c->rig->host[LENDER].device[i % 2].f.flr = true;
        lf_put(&c->rig->host[LENDER].device[0].f, LF_CAP_PCIE + 4, 4, PCIE_DEVCAP_FLR);
        in(&c->side[THIRD], exclusive_body);
        assert_int_equal(c->rig->host[LENDER].device[0].f.n_resets, 1);
        in(&c->side[CLIENT], refused_body);
        in(&c->side[LENDER], refused_body);
        in(&c->side[THIRD], share_body);
        in(&c->side[THIRD], publish_body);
        in(&c->side[CLIENT], shared_body);
        in(&c->side[LENDER], shared_body);
        in(&c->side[THIRD], unmanage_body);
        expect_no_trace(c, before);
        cluster_free(c);
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
