#include "tests/support/sisci_rig.h"

struct sisci_segment *sr_shared;
bool sr_hold_links;

/* ---- Making ---------------------------------------------------------------------------------- */

void sr_in(struct sr_side *s, void (*body)(struct lf_host *, void *))
{
    lf_call(s->host, body, s);
}

void sr_open_body(struct lf_host *host, void *arg)
{
    struct sr_side *s = arg;
    (void)host;
    OK(sisci_open(s->sisci, &s->process, &error));
    assert_int_equal(sisci_host_id(s->process), ID(s->number));
}

void sr_close_body(struct lf_host *host, void *arg)
{
    struct sr_side *s = arg;
    (void)host;
    sisci_close(s->process);
    s->process = NULL;
}

/* Bit i of iommus: host i has one on. Back to back: the first two alone. */
struct sr_cluster *sr_new(unsigned iommus, unsigned n_ntbs, unsigned n_hosts)
{
    struct sr_cluster *c = calloc(1, sizeof *c);
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
        struct sr_side *s = &c->side[i];
        struct lend_options options = lf_options(&c->rig->host[i]);
        options.hold_links = sr_hold_links;
        *s = (struct sr_side){ .cluster = c, .number = i, .host = &c->rig->host[i] };
        lf_host_start(s->host, &options);
        s->sisci = sisci_new(s->host->lend);
        sr_in(s, sr_open_body);
    }
    return c;
}

/* A last driver of a device resets it if somebody died: that takes 100 ms. */
void sr_free(struct sr_cluster *c)
{
    for (unsigned i = 0; i < c->rig->n_hosts; i++)
        if (c->side[i].process != NULL && !c->side[i].host->dead)
            sr_in(&c->side[i], sr_close_body);
    lf_close(c->rig);
    free(c->rig);
    free(c);
}

void sr_count_segment(struct sisci_segment *segment, enum sisci_event event, uint32_t host,
                      void *context)
{
    struct sr_side *s = context;
    (void)segment;
    s->events[event]++;
    s->event_host = host;
}

void sr_count_remote(struct sisci_remote *remote, enum sisci_event event, void *context)
{
    struct sr_side *s = context;
    (void)remote;
    s->events[event]++;
}

void sr_count_device(struct sisci_device *device, enum sisci_event event, void *context)
{
    struct sr_side *s = context;
    assert_true(sisci_device_lost(device));
    s->events[event]++;
}

/* ---- What one host holds --------------------------------------------------------------------- */

struct sr_holdings sr_holdings_of(const struct sr_side *s)
{
    struct sr_holdings h;
    memset(&h, 0, sizeof h);
    h.sisci = sisci_usage(s->sisci);
    h.lend = lend_usage(s->host->lend);
    for (unsigned i = 0; i < s->host->n_ntbs; i++)
        h.entries[i] = lf_entries_of(&s->host->ntb[i]);
    h.iommu_pages = s->host->kernel->iommu_pages_live;
    h.pages = s->host->kernel->pages_live;
    return h;
}

static void look(struct sr_cluster *c, struct sr_holdings h[N_HOSTS])
{
    for (unsigned i = 0; i < c->rig->n_hosts; i++)
        h[i] = sr_holdings_of(&c->side[i]);
}

void sr_expect_no_trace(struct sr_cluster *c, const struct sr_holdings before[N_HOSTS])
{
    lf_run(c->rig, FAKE_MS(1), NULL, NULL);
    for (unsigned i = 0; i < c->rig->n_hosts; i++) {
        const struct sr_holdings now = sr_holdings_of(&c->side[i]);
        if (!c->side[i].host->dead)
            assert_memory_equal(&now, &before[i], sizeof now);
    }
}

/* Everybody has connections to everybody: these stay. */
static void greet_body(struct lf_host *host, void *arg)
{
    struct sr_side *s = arg;
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

void sr_greet_all(struct sr_cluster *c, struct sr_holdings before[N_HOSTS])
{
    for (unsigned i = 0; i < c->rig->n_hosts; i++)
        sr_in(&c->side[i], greet_body);
    lf_run(c->rig, FAKE_MS(1), NULL, NULL);
    look(c, before);
}

const struct sisci_device_name sr_device_name = { ID(LENDER), DEVICE(0) };

void sr_drive(struct sr_side *s, struct sr_driven *d, enum sisci_borrow how)
{
    OK(sisci_device_borrow(s->process, sr_device_name, how, sr_count_device, s, &d->device,
                           &error));
    OK(sisci_device_bar_connect(d->device, 0, SISCI_ANY, sr_count_remote, s, &d->bar, &error));
    OK(sisci_map(d->bar, 0, LF_BAR_BYTES, &d->regs, &error));
}

void sr_undrive(struct sr_driven *d)
{
    FAILS(sisci_device_return(d->device, &error), SISCI_ERR_BUSY, "segments");
    sisci_unmap(&d->regs);
    OK(sisci_segment_disconnect(d->bar, &error));
    OK(sisci_device_return(d->device, &error));
}

/* One command of the device; its status. */
uint32_t sr_run(const struct sr_driven *d, uint32_t command, uint64_t dma, uint32_t bytes)
{
    sisci_write(&d->regs, LF_REG_STATUS, 4, 0);
    sisci_write(&d->regs, LF_REG_ADDRESS, 8, dma);
    sisci_write(&d->regs, LF_REG_BYTES, 4, bytes);
    sisci_write(&d->regs, LF_REG_COMMAND, 4, command);
    return (uint32_t)sisci_read(&d->regs, LF_REG_STATUS, 4);
}

/* The device reads what the CPU has put at the first half of `map`, and writes it to the second. */
void sr_copy_by_device(const struct sr_driven *d, const struct sisci_map *map, uint64_t dma,
                       uint8_t first)
{
    uint8_t out[CHUNK], in_[CHUNK];
    for (unsigned i = 0; i < CHUNK; i++)
        out[i] = (uint8_t)(first + 11 * i);
    sisci_write_bytes(map, 0, out, CHUNK);
    assert_int_equal(sisci_flush(map), SISCI_OK);
    assert_int_equal(sr_run(d, 1, dma, CHUNK), 1);
    assert_int_equal(sr_run(d, 2, dma + CHUNK, CHUNK), 1);
    sisci_read_bytes(map, CHUNK, in_, CHUNK);
    assert_memory_equal(in_, out, CHUNK);
}

bool sr_lender_isolates(const struct sr_side *s)
{
    return s->cluster->rig->host[LENDER].kernel->options.iommu;
}

void sr_offer_body(struct lf_host *host, void *arg)
{
    struct sr_side *s = arg;
    (void)host;
    OK(sisci_segment_create(s->process, 5 + s->number, BYTES, 0, NULL, NULL, &sr_shared, &error));
    OK(sisci_segment_prepare(sr_shared, SISCI_ANY, &error));
    OK(sisci_segment_export(sr_shared, SISCI_ANY, &error));
}
