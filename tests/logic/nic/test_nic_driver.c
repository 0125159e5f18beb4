/*
 * The driver of the NIC against a device of the data sheet (nic_fake.h) on a fake kernel, with the
 * network core played by the test: rings that wrap, queues that fill, doorbells, pages that run
 * short, moderation, flow filters, functions that are pulled at random moments. After each test
 * nothing may be left: no page, mapping, packet, timer, shared memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/nic_fake.h"

#include "logic/net/arfs.h"
#include "logic/nic/nic_dim.h"
#include "logic/nic/nic_driver.h"

#define HEADER_BYTES 66u
#define HELD_MAX     700u

/* ---- The network core, as far as a driver sees it -------------------------------------------- */

struct arfs {
    bool expire_all;
    uint64_t asked;
};

struct net {
    bool any_order;       /* of received packets */
    bool by_packet;       /* what they take of a page */
    uint32_t wrong_every; /* as the device's */
    struct kernel *kernel;
    struct net_device *devices;
    uint64_t skbs_live, freed, received, gro_flushes, wakes, carriers;
    struct k_wait_queue woken;
    /* receive: sequence numbers must come in order; the stack keeps packets for a while */
    uint64_t next_sequence[FAKE_NIC_QUEUES];
    struct sk_buff *held[HELD_MAX];
    unsigned n_held, hold;
};

struct sk_buff *skb_new(struct net *net)
{
    struct sk_buff *skb = k_zalloc(sizeof *skb);
    k_compute(net->kernel, 100);
    skb->users = 1;
    net->skbs_live++;
    return skb;
}

void skb_free(struct net *net, struct sk_buff *skb)
{
    for (unsigned i = 0; i < skb->n_frags; i++)
        k_page_put(net->kernel, skb->frag[i].page);
    if (skb->head_page)
        k_page_put(net->kernel, skb->head_page);
    free(skb);
    assert_true(net->skbs_live > 0);
    net->skbs_live--;
    net->freed++;
}

int net_device_register(struct net *net, struct net_device *dev)
{
    assert_true(dev->n_tx_queues > 0);
    dev->net = net;
    dev->next = net->devices;
    net->devices = dev;
    return 0;
}

void net_device_unregister(struct net_device *dev)
{
    struct net_device **link = &dev->net->devices;
    while (*link != dev)
        link = &(*link)->next;
    *link = dev->next;
    dev->net = NULL;
}

void net_device_carrier(struct net_device *dev, bool carrier)
{
    dev->net->carriers += carrier != dev->carrier;
    dev->carrier = carrier;
}

void net_queue_wake(struct net_device *dev, uint16_t queue)
{
    dev->queue_stopped[queue] = false;
    dev->net->wakes++;
    k_wake(dev->kernel, &dev->net->woken);
}

bool arfs_may_expire(struct arfs *arfs, struct net_device *dev, uint16_t rxq, uint32_t flow_id,
                     int filter)
{
    (void)dev;
    (void)rxq;
    (void)flow_id;
    assert_true(filter >= 0);
    arfs->asked++;
    return arfs->expire_all;
}

/* ---- What packets hold ----------------------------------------------------------------------- */

static uint8_t content(uint64_t sequence, uint32_t at)
{
    return (uint8_t)(sequence * 31 + at * 7 + (sequence >> 8));
}

/* A frame: sequence number, then bytes that follow from it. */
static void frame_fill(uint8_t *frame, uint64_t sequence, uint32_t bytes)
{
    memcpy(frame, &sequence, sizeof sequence);
    for (uint32_t i = sizeof sequence; i < bytes; i++)
        frame[i] = content(sequence, i);
}

static uint64_t frame_check(const uint8_t *frame, uint32_t bytes)
{
    uint64_t sequence;
    memcpy(&sequence, frame, sizeof sequence);
    for (uint32_t i = sizeof sequence; i < bytes; i++) {
        if (frame[i] != content(sequence, i))
            fail_msg("packet %llu differs at byte %u of %u", (unsigned long long)sequence, i,
                     bytes);
    }
    return sequence;
}

static uint64_t skb_check(struct net *net, const struct sk_buff *skb)
{
    uint8_t frame[4096];
    assert_true(skb->head_bytes + skb->bytes <= sizeof frame);
    k_peek(net->kernel, skb->head, frame, skb->head_bytes);
    if (skb->n_frags > 0) {
        assert_int_equal(skb->frag[0].bytes, skb->bytes);
        k_peek(net->kernel, kaddr_add(skb->frag[0].page->addr, skb->frag[0].offset),
               frame + skb->head_bytes, skb->bytes);
    }
    return frame_check(frame, skb->head_bytes + skb->bytes);
}

/* Checked when it comes and when it goes: its bytes must be its own until then. */
static void let_go(struct net *net, unsigned i)
{
    struct sk_buff *skb = net->held[i];
    net->held[i] = net->held[--net->n_held];
    assert_int_equal(skb_check(net, skb), skb->sequence);
    skb_free(net, skb);
}

void net_gro_receive(struct k_napi *napi, struct sk_buff *skb)
{
    struct net *net = skb->dev->net;
    uint64_t *next = &net->next_sequence[skb->queue];
    assert_ptr_equal(napi->kernel, net->kernel);
    assert_int_equal(skb->checksum, net->wrong_every && skb->hash % net->wrong_every == 0
                                        ? NET_CHECKSUM_WRONG
                                        : NET_CHECKSUM_RIGHT);
    skb->sequence = skb_check(net, skb);
    assert_int_equal(skb->hash, 0x1000 + skb->sequence);
    assert_true(skb->truesize > skb->bytes);
    if (net->by_packet) /* room before it, shared information and sk_buff behind it */
        assert_int_equal(skb->truesize, (64 + skb->head_bytes + skb->bytes + 63) / 64 * 64 + 576);
    assert_true(net->any_order || skb->sequence >= *next);
    *next = skb->sequence + 1;
    net->received++;
    k_compute(net->kernel, 300);
    net->held[net->n_held++] = skb;
    while (net->n_held > net->hold)
        let_go(net, (unsigned)fake_random(net->kernel, net->n_held));
}

void net_gro_flush(struct k_napi *napi, struct net *net)
{
    (void)napi;
    net->gro_flushes++;
}

/* ---- The bench ------------------------------------------------------------------------------- */

struct bench {
    struct kernel *kernel;
    struct net net;
    struct nic_driver *driver;
    struct fake_nic nic[2];
    unsigned n_nics;
    struct net_device *dev;
    uint64_t next_sent[FAKE_NIC_QUEUES]; /* by the sender */
    uint64_t next_wire[FAKE_NIC_QUEUES]; /* on the wire: in order, none twice */
    uint64_t n_wire, n_gaps;
    bool gaps_allowed, any_order;
    uint8_t frame[70000]; /* of packet(): threads of the fake have small stacks */
};

static struct bench *bench; /* of the test that runs: callbacks of the device have no argument */

static void on_wire(struct fake_nic *nic, unsigned sq, const uint8_t *frame, uint32_t bytes,
                    const struct nic_wqe_ethernet *ethernet)
{
    (void)nic;
    uint64_t sequence = frame_check(frame, bytes);
    if (bench->gaps_allowed)
        assert_true(sequence >= bench->next_wire[sq]);
    else if (!bench->any_order)
        assert_int_equal(sequence, bench->next_wire[sq]);
    bench->next_wire[sq] = sequence + 1;
    bench->n_wire++;
    assert_int_equal(ethernet->inline_bytes, HEADER_BYTES);
    assert_int_equal(ethernet->checksum, NIC_CHECKSUM_L3 | NIC_CHECKSUM_L4);
}

static struct nic_driver_params small(void)
{
    struct nic_driver_params params = nic_driver_params_default;
    params.sq_blocks = 16;
    params.rq_wqes = 8;
    params.n_filters = 32;
    params.filter_scan_ps = FAKE_MS(1);
    params.watchdog_ps = 0;
    return params;
}

static void bench_new(struct bench *b, const struct fake_options *options,
                      const struct nic_driver_params *params, unsigned n_nics,
                      enum nic_firmware firmware)
{
    *b = (struct bench){ .kernel = fake_new(options), .n_nics = n_nics };
    bench = b;
    b->net.kernel = b->kernel;
    b->driver = nic_driver_new(&b->net, b->kernel, params, "pf");
    assert_non_null(b->driver);
    for (unsigned i = 0; i < n_nics; i++) {
        fake_nic_init(&b->nic[i], b->kernel, i, n_nics, (int)i);
        b->nic[i].sent = on_wire;
        b->nic[i].firmware = firmware;
        if (firmware == NIC_FIRMWARE_OCTONIC)
            b->nic[i].mac = 0x665544332211;
        assert_int_equal(k_pci_add(b->kernel, &b->nic[i].pci), 0);
    }
    assert_int_equal(k_pci_register(b->kernel, nic_driver_pci(b->driver)), (int)n_nics);
    b->dev = nic_driver_device(b->driver, 0);
    assert_non_null(b->dev);
    assert_string_equal(b->dev->name, "pf0");
}

static void bench_open(struct bench *b, const struct fake_options *options,
                       const struct nic_driver_params *params)
{
    bench_new(b, options, params, 1, NIC_FIRMWARE_STANDARD);
    assert_int_equal(b->dev->ops->open(b->dev), 0);
    assert_true(b->dev->running && b->dev->carrier);
}

/* Nothing may be left. */
static void bench_free(struct bench *b)
{
    for (unsigned i = 0; i < b->n_nics; i++)
        if (b->nic[i].pci.driver)
            k_pci_remove(&b->nic[i].pci, false);
    while (b->net.n_held > 0)
        let_go(&b->net, 0);
    nic_driver_free(b->driver);
    assert_null(b->net.devices);
    fake_run_until(b->kernel, b->kernel->now_ps + FAKE_MS(20));
    assert_int_equal(b->net.skbs_live, 0);
    assert_int_equal(b->kernel->pages_live, 0);
    assert_int_equal(b->kernel->maps_live, 0);
    assert_int_equal(b->kernel->dma_live, 0);
    assert_int_equal(b->kernel->timers_live, 0);
    assert_null(b->kernel->irqs);
    fake_free(b->kernel);
}

static void run_for(struct bench *b, uint64_t ps)
{
    fake_run_until(b->kernel, b->kernel->now_ps + ps);
}

/* ---- Sending --------------------------------------------------------------------------------- */

/* A packet with n_frags pieces of payload of up to `most` bytes each; NULL: no page. */
static struct sk_buff *packet(struct bench *b, uint16_t queue, unsigned n_frags, uint32_t most,
                              bool tso)
{
    uint8_t *frame = b->frame;
    struct kernel *kernel = b->kernel;
    struct sk_buff *skb = skb_new(&b->net);
    skb->dev = b->dev;
    skb->queue = queue;
    skb->head_page = k_page_alloc(kernel, K_NODE_LOCAL, 0);
    skb->head = skb->head_page->addr;
    skb->head_bytes = HEADER_BYTES;
    for (unsigned i = 0; i < n_frags; i++) {
        struct k_page *page = k_page_alloc(kernel, K_NODE_LOCAL, 0);
        skb->frag[i] = (struct skb_frag){ page, 0, 1 + (uint32_t)fake_random(kernel, most), 0 };
        skb->frag[i].node = (int8_t)page->node;
        skb->frag[i].offset = (uint32_t)fake_random(kernel, K_PAGE_BYTES + 1 - skb->frag[i].bytes);
        skb->n_frags++;
        skb->bytes += skb->frag[i].bytes;
    }
    if (tso) {
        skb->gso_bytes = 1448;
        skb->gso_segments = (uint16_t)((skb->bytes + 1447) / 1448);
    }
    skb->sequence = b->next_sent[queue]++;
    frame_fill(frame, skb->sequence, skb->head_bytes + skb->bytes);
    k_poke(kernel, skb->head, frame, skb->head_bytes);
    uint32_t at = skb->head_bytes;
    for (unsigned i = 0; i < n_frags; i++) {
        k_poke(kernel, kaddr_add(skb->frag[i].page->addr, skb->frag[i].offset), frame + at,
               skb->frag[i].bytes);
        at += skb->frag[i].bytes;
    }
    return skb;
}

/* As the network core does: not while the queue is stopped. */
static void send_skb(struct bench *b, struct sk_buff *skb)
{
    uint16_t queue = skb->queue;
    for (;;) {
        while (b->dev->queue_stopped[queue])
            k_wait(b->kernel, &b->net.woken, b->kernel->now_ps + FAKE_MS(5));
        k_bh_disable(b->kernel);
        bool taken = b->dev->ops->start_xmit(skb, b->dev) == NET_XMIT_OK;
        k_bh_enable(b->kernel);
        if (taken)
            return;
    }
}

struct sender {
    struct bench *b;
    uint16_t queue;
    unsigned n, n_frags_max, burst;
    uint32_t most;
    bool tso, done;
};

static void sender_body(void *arg)
{
    struct sender *s = arg;
    for (unsigned i = 0; i < s->n; i++) {
        unsigned n_frags = (unsigned)fake_random(s->b->kernel, s->n_frags_max + 1);
        struct sk_buff *skb = packet(s->b, s->queue, n_frags, s->most, s->tso && n_frags > 0);
        skb->xmit_more = s->burst > 1 && (i + 1) % s->burst != 0 && i + 1 < s->n;
        send_skb(s->b, skb);
    }
    s->done = true;
}

static void run_sender(struct bench *b, struct sender *s, unsigned cpu)
{
    s->b = b;
    k_thread_new(b->kernel, "sender", (int)cpu, sender_body, s);
    while (!s->done)
        run_for(b, FAKE_MS(1));
    run_for(b, FAKE_MS(10));
}

static void test_tx_wraps(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct bench b;
        struct fake_options options = { .seed = seed, .stall_percent = seed % 2 ? 0 : 10 };
        struct nic_driver_params params = small();
        struct sender s = { .queue = 1, .n = 2000, .n_frags_max = 3, .most = 400 };
        bench_open(&b, &options, &params);
        run_sender(&b, &s, 1);
        struct nic_drv_stats stats = nic_dev_channel_stats(b.dev, 1);
        assert_int_equal(b.n_wire, 2000);
        assert_int_equal(b.net.freed, 2000);
        assert_int_equal(stats.tx_wqes, 2000);
        assert_int_equal(stats.tx_packets, 2000);
        /* One doorbell and one completion each. */
        assert_int_equal(b.nic[0].n_doorbells, 2000);
        assert_int_equal(b.nic[0].n_requested, 2000);
        assert_int_equal(stats.tx_completions, 2000);
        assert_true(stats.tx_stops > 10 && stats.tx_wakes > 10);
        assert_true(stats.tx_wakes <= stats.tx_stops);
        assert_false(b.dev->queue_stopped[1]);
        assert_int_equal(stats.tx_errors + stats.tx_drops, 0);
        assert_int_equal(b.kernel->n_warnings, 0);
        bench_free(&b);
    }
}

/* While nothing is completed, the queue takes what fits and stops; BUSY takes nothing. */
static void test_tx_full(void **state)
{
    (void)state;
    struct bench b;
    struct fake_options options = { .seed = 3 };
    struct nic_driver_params params = small();
    bench_open(&b, &options, &params);
    b.nic[0].hold_completions = true;
    unsigned n = 0;
    while (!b.dev->queue_stopped[0]) {
        struct sk_buff *skb = packet(&b, 0, 1, 40, false);
        assert_int_equal(b.dev->ops->start_xmit(skb, b.dev), NET_XMIT_OK);
        n++;
    }
    /* 16 blocks, two an entry (16 + 16 + 64 + 16 bytes): after the fifth there is no room for one
     * of 8 blocks. */
    assert_int_equal(n, 5);
    struct sk_buff *refused = packet(&b, 0, 1, 40, false);
    assert_int_equal(b.dev->ops->start_xmit(refused, b.dev), NET_XMIT_BUSY);
    assert_int_equal(b.net.skbs_live, n + 1);
    b.nic[0].hold_completions = false;
    fake_nic_send_soon(&b.nic[0], 0);
    run_for(&b, FAKE_MS(1));
    assert_int_equal(b.n_wire, n);
    assert_false(b.dev->queue_stopped[0]);
    assert_int_equal(b.net.wakes, 1);
    assert_int_equal(b.dev->ops->start_xmit(refused, b.dev), NET_XMIT_OK);
    run_for(&b, FAKE_MS(1));
    assert_int_equal(b.n_wire, n + 1);
    bench_free(&b);
}

static void test_tx_more(void **state)
{
    (void)state;
    struct bench b;
    struct fake_options options = { .seed = 5 };
    struct nic_driver_params params = small();
    params.sq_blocks = 1024;
    struct sender s = { .queue = 0, .n = 1000, .n_frags_max = 1, .most = 100, .burst = 8 };
    bench_open(&b, &options, &params);
    run_sender(&b, &s, 0);
    assert_int_equal(b.n_wire, 1000);
    assert_int_equal(b.nic[0].n_doorbells, 125);
    assert_int_equal(b.nic[0].n_requested, 125);
    assert_int_equal(nic_dev_channel_stats(b.dev, 0).tx_completions, 125);
    assert_int_equal(b.net.freed, 1000);
    bench_free(&b);
    /* A queue that stops rings for all that waited, though more was to follow. */
    params.sq_blocks = 16;
    struct sender t = { .queue = 0, .n = 1000, .n_frags_max = 3, .most = 100, .burst = 100 };
    bench_open(&b, &options, &params);
    run_sender(&b, &t, 0);
    assert_int_equal(b.n_wire, 1000);
    assert_int_equal(b.nic[0].n_doorbells, b.nic[0].n_requested);
    assert_true(b.nic[0].n_doorbells > 90 && b.nic[0].n_doorbells < 500);
    bench_free(&b);
}

static void test_tx_tso(void **state)
{
    (void)state;
    struct bench b;
    struct fake_options options = { .seed = 9, .stall_percent = 5 };
    struct nic_driver_params params = small();
    params.sq_blocks = 64;
    struct sender s = { .n = 500, .n_frags_max = NET_FRAGS_MAX, .most = 3800, .tso = true };
    bench_open(&b, &options, &params);
    run_sender(&b, &s, 0);
    assert_int_equal(b.n_wire, 500);
    assert_true(nic_dev_channel_stats(b.dev, 0).tx_packets > 5000);
    assert_int_equal(b.net.freed, 500);
    bench_free(&b);
}

/* Packets that cannot be mapped are dropped with all that was mapped of them; others follow. */
static void test_tx_map_failures(void **state)
{
    (void)state;
    for (unsigned burst = 1; burst <= 4; burst++) {
        struct bench b;
        struct fake_options options = { .seed = 11 };
        struct nic_driver_params params = small();
        struct sender s = { .n = 1000, .n_frags_max = 4, .most = 300, .burst = burst };
        bench_open(&b, &options, &params);
        b.gaps_allowed = true;
        b.kernel->options.fail_map_every = 7;
        run_sender(&b, &s, 0);
        struct nic_drv_stats stats = nic_dev_channel_stats(b.dev, 0);
        assert_true(stats.tx_drops > 100);
        assert_int_equal(stats.tx_drops, stats.tx_errors);
        assert_int_equal(b.dev->tx[0].drops, stats.tx_drops);
        assert_int_equal(b.n_wire + stats.tx_drops, 1000);
        assert_int_equal(b.net.freed, 1000);
        b.kernel->options.fail_map_every = 0;
        bench_free(&b);
    }
}

/* Several CPUs and queues at once; then one queue that all of them feed, as programs do which hand
 * packets to the driver themselves. */
static void test_tx_many_cpus(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct bench b;
        struct fake_options options = { .seed = seed, .stall_percent = 10 };
        struct nic_driver_params params = small();
        struct sender s[4] = { { 0 } };
        bench_open(&b, &options, &params);
        b.any_order = seed > 2;
        for (unsigned i = 0; i < 4; i++) {
            s[i] = (struct sender){
                .b = &b, .queue = b.any_order ? 0 : (uint16_t)i, .n = 300, .n_frags_max = 2
            };
            s[i].most = 200;
            k_thread_new(b.kernel, "sender", (int)(3 - i), sender_body, &s[i]);
        }
        while (!s[0].done || !s[1].done || !s[2].done || !s[3].done)
            run_for(&b, FAKE_MS(1));
        run_for(&b, FAKE_MS(10));
        assert_int_equal(b.n_wire, 1200);
        assert_int_equal(b.net.freed, 1200);
        bench_free(&b);
    }
}

/* ---- Receiving ------------------------------------------------------------------------------- */

struct source {
    struct bench *b;
    unsigned queue, n, sent, batch;
    uint64_t gap_ps, sequence, refused;
};

static void source_event(void *arg)
{
    struct source *s = arg;
    uint8_t frame[1600];
    struct kernel *kernel = s->b->kernel;
    for (unsigned i = 0; i < s->batch && s->sent < s->n; i++, s->sent++) {
        uint32_t bytes = HEADER_BYTES + (uint32_t)fake_random(kernel, 1449);
        frame_fill(frame, s->sequence, bytes);
        if (!fake_nic_receive(&s->b->nic[0], s->queue, frame, bytes, HEADER_BYTES,
                              (uint32_t)(0x1000 + s->sequence)))
            s->refused++;
        s->sequence++;
    }
    if (s->sent < s->n)
        fake_at(kernel, kernel->now_ps + fake_random(kernel, 2 * s->gap_ps), source_event, s);
}

static void run_source(struct bench *b, struct source *s)
{
    s->b = b;
    fake_at(b->kernel, b->kernel->now_ps, source_event, s);
    while (s->sent < s->n)
        run_for(b, FAKE_MS(1));
    run_for(b, FAKE_MS(10));
}

/* LRO: completions overtake each other; each packet comes up once, from its own buffer, and every
 * buffer is posted again. */
static void test_rx_any_order(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct bench b;
        struct fake_options options = { .seed = seed, .stall_percent = seed % 2 ? 0 : 5 };
        struct nic_driver_params params = small();
        struct source s = { .queue = 2, .n = 3000, .batch = 1 + (unsigned)seed % 4 };
        s.gap_ps = FAKE_US(4);
        params.lro = true;
        params.rq_wqes = 256; /* a sixteenth of them, of 64 KiB */
        bench_open(&b, &options, &params);
        b.net.hold = 3;
        b.net.any_order = b.nic[0].shuffles = true;
        run_source(&b, &s);
        fake_nic_give_back(&b.nic[0], 2);
        run_for(&b, FAKE_MS(10));
        struct nic_drv_stats stats = nic_dev_channel_stats(b.dev, 2);
        assert_int_equal(b.net.received, 3000 - s.refused);
        assert_int_equal(stats.rx_packets, b.net.received);
        assert_int_equal(stats.rx_errors, 0);
        assert_int_equal(fake_nic_posted(&b.nic[0], 2), 16);
        bench_free(&b);
    }
}

/* mlx5e_napi_poll() of Linux 4.14: a poll that completes arms all completion queues of its channel,
 * also that of the internal queue, from which nothing comes here. */
static void test_arms(void **state)
{
    (void)state;
    struct bench b;
    struct fake_options options = { .seed = 7 };
    struct nic_driver_params params = small();
    struct source s = { .queue = 2, .n = 500, .batch = 3, .gap_ps = FAKE_US(20) };
    bench_open(&b, &options, &params);
    for (unsigned q = 0; q < 3 * 4; q++)
        assert_int_equal(b.nic[0].cq[q].n_arms, 1); /* when it was opened */
    run_source(&b, &s);
    const struct nic_drv_stats stats = nic_dev_channel_stats(b.dev, 2);
    const struct fake_queue *sent = &b.nic[0].cq[6], *received = &b.nic[0].cq[7];
    const struct fake_queue *internal = &b.nic[0].cq[8];
    assert_int_equal(internal->n_arms, received->n_arms);
    assert_int_equal(internal->n_arms, sent->n_arms);
    assert_in_range(internal->n_arms, 100, 1 + stats.polls);
    assert_true(internal->armed); /* still: it has no completions, and makes no event */
    assert_int_equal(internal->arm_ci, 0);
    assert_int_equal(internal->produced, 0);
    assert_int_equal(1u << internal->log, 64);
    assert_int_equal(internal->moderation_us, 0);
    assert_int_equal(internal->moderation_count, 0);
    assert_int_equal(internal->target, 2);
    assert_int_equal(b.nic[0].cq[5].n_arms, 1); /* channel 1 had nothing to do */
    bench_free(&b);
}

/* A channel takes three completion queues of those that the device has. */
static void test_few_queues(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= 13; n++) {
        struct bench b;
        struct fake_options options = { .seed = 1 };
        struct nic_driver_params params = small();
        bench_new(&b, &options, &params, 1, NIC_FIRMWARE_STANDARD);
        k_pci_remove(&b.nic[0].pci, false);
        b.nic[0].n_queues = n;
        assert_int_equal(k_pci_add(b.kernel, &b.nic[0].pci), n < 3 ? -ENOSPC : 0);
        b.dev = nic_driver_device(b.driver, 0);
        assert_int_equal(b.dev == NULL, n < 3);
        if (b.dev != NULL) {
            assert_int_equal(b.dev->n_rx_queues, n / 3);
            assert_int_equal(b.dev->ops->open(b.dev), 0);
        }
        bench_free(&b);
    }
}

static void test_rx_wraps(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct bench b;
        struct fake_options options = { .seed = seed, .stall_percent = seed % 2 ? 0 : 5 };
        struct nic_driver_params params = small();
        struct source s = { .queue = 2, .n = 5000, .batch = 1 + (unsigned)seed % 4 };
        s.gap_ps = FAKE_US(4);
        bench_open(&b, &options, &params);
        b.net.hold = seed < 5 ? 3 : 20 * (unsigned)seed;
        b.net.wrong_every = b.nic[0].wrong_every = (uint32_t)seed % 3 * 5;
        run_source(&b, &s);
        struct nic_drv_stats stats = nic_dev_channel_stats(b.dev, 2);
        assert_int_equal(b.net.received, 5000 - s.refused);
        assert_int_equal(b.nic[0].drops, s.refused);
        assert_int_equal(stats.rx_packets, b.net.received);
        assert_int_equal(stats.rx_errors, 0);
        assert_int_equal(fake_nic_posted(&b.nic[0], 2), 8);
        /* Every page is received into twice. */
        assert_in_range(stats.page_halves, b.net.received / 2 - 8, b.net.received / 2 + 8);
        if (seed < 5)
            assert_true(stats.cache_hits > b.net.received / 3);
        else
            assert_true(stats.cache_busy > 0);
        assert_true(stats.interrupts > 0 && stats.interrupts <= b.nic[0].n_irqs);
        /* Behind each write that arms an event queue. */
        assert_true(b.kernel->n_fences >= stats.interrupts);
        bench_free(&b);
    }
}

/* Packets that are smaller than the MTU, of more than half a page: each takes what it needs, and
 * what it stands for in a socket's buffer is that; pages are received into while the largest packet
 * would fit. */
static void test_rx_small_in_large(void **state)
{
    static const uint32_t mtu[] = { 1700, 3000, 9000 };
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        struct bench b;
        struct fake_options options = { .seed = 1 + i, .stall_percent = 5 };
        struct nic_driver_params params = small();
        struct source s = { .queue = 1, .n = 5000, .batch = 3, .gap_ps = FAKE_US(4) };
        params.mtu_bytes = mtu[i];
        bench_open(&b, &options, &params);
        b.net.hold = 40;
        b.net.by_packet = true;
        run_source(&b, &s);
        struct nic_drv_stats stats = nic_dev_channel_stats(b.dev, 1);
        assert_int_equal(b.net.received, 5000 - s.refused);
        assert_int_equal(stats.rx_errors, 0);
        assert_int_equal(fake_nic_posted(&b.nic[0], 1), 8);
        if (mtu[i] == 9000) /* of 16 KiB 7 KiB can be gone before */
            assert_true(stats.page_halves > b.net.received * 3 / 4);
        bench_free(&b);
    }
}

/* Many completions at once: polls of the budget, and the refill in between. */
static void test_rx_batches(void **state)
{
    (void)state;
    struct bench b;
    struct fake_options options = { .seed = 2 };
    struct nic_driver_params params = small();
    params.rq_wqes = 1024;
    struct source s = { .queue = 0, .n = 10000, .batch = 1000, .gap_ps = FAKE_MS(1) };
    bench_open(&b, &options, &params);
    b.net.hold = HELD_MAX - 1;
    run_source(&b, &s);
    struct nic_drv_stats stats = nic_dev_channel_stats(b.dev, 0);
    assert_int_equal(b.net.received + s.refused, 10000);
    assert_true(stats.polls >= b.net.received / 64);
    assert_true(stats.polls < b.net.received / 16);
    assert_true(stats.interrupts < 200);
    assert_int_equal(b.net.gro_flushes, stats.polls);
    assert_int_equal(fake_nic_posted(&b.nic[0], 0), 1024);
    bench_free(&b);
}

/* rx_passed(): asked again and again while packets come, until it says that what was there at the
 * first time has gone up. It must be so then, and must be said in the end. */
struct passing {
    struct bench *b;
    struct source *source;
    struct net_rx_mark mark;
    uint64_t until; /* sequence */
    unsigned asked, n;
    bool stop;
};

static void passing_event(void *arg)
{
    struct passing *p = arg;
    struct kernel *kernel = p->b->kernel;
    if (p->mark.lower == 0) {
        p->until = p->source->sequence;
        p->asked = 0;
    }
    uint64_t time_ps = kernel->now_ps;
    bool passed = p->b->dev->ops->rx_passed(p->b->dev, 0, &p->mark);
    assert_int_equal(kernel->now_ps, time_ps);
    if (passed) {
        for (uint64_t lost = 0;; lost++) {
            assert_true(lost <= p->b->nic[0].drops);
            if (p->b->net.next_sequence[0] + lost >= p->until)
                break;
        }
        p->mark = (struct net_rx_mark){ 0, 0 };
        p->n++;
    }
    p->asked++;
    if (!p->stop)
        fake_at(kernel, kernel->now_ps + fake_random(kernel, FAKE_US(10)), passing_event, p);
}

static void test_rx_passed(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct bench b;
        struct fake_options options = { .seed = seed, .stall_percent = seed % 2 ? 0 : 10 };
        struct nic_driver_params params = small();
        params.rq_wqes = 256;
        struct source s = { .n = 5000, .batch = 1 + 10 * (unsigned)(seed % 3) };
        s.gap_ps = FAKE_US(2) * s.batch;
        bench_open(&b, &options, &params);
        struct passing p = { .b = &b, .source = &s };
        fake_at(b.kernel, b.kernel->now_ps, passing_event, &p);
        run_source(&b, &s);
        p.stop = true;
        run_for(&b, FAKE_MS(1));
        assert_true(p.n > 100);
        assert_true(p.asked < 10); /* nothing comes any more: it is said at once */
        b.dev->ops->stop(b.dev);
        p.mark = (struct net_rx_mark){ 0, 0 };
        assert_true(b.dev->ops->rx_passed(b.dev, 0, &p.mark));
        bench_free(&b);
    }
}

static void test_rx_no_pages(void **state)
{
    (void)state;
    for (unsigned every = 1; every <= 3; every++) {
        struct bench b;
        struct fake_options options = { .seed = every };
        struct nic_driver_params params = small();
        struct source s = { .queue = 0, .n = 400, .batch = 2, .gap_ps = FAKE_US(20) };
        bench_open(&b, &options, &params);
        b.net.hold = 300; /* so that pages are needed */
        b.kernel->options.fail_page_every = every;
        run_source(&b, &s);
        struct nic_drv_stats stats = nic_dev_channel_stats(b.dev, 0);
        assert_int_equal(b.net.received + b.nic[0].drops, 400);
        assert_true(stats.page_failures > 0);
        if (every == 1)
            assert_true(b.nic[0].drops > 300);
        /* Memory is back: so are the buffers, though no packet comes to poll for. */
        b.kernel->options.fail_page_every = 0;
        run_for(&b, FAKE_MS(3));
        assert_int_equal(fake_nic_posted(&b.nic[0], 0), 8);
        uint64_t before = b.net.received;
        struct source t = { .queue = 0, .n = 5, .batch = 5, .gap_ps = 1, .sequence = 400 };
        run_source(&b, &t);
        assert_int_equal(b.net.received, before + 5);
        bench_free(&b);
    }
}

/* ---- Set-up ---------------------------------------------------------------------------------- */

static unsigned node_of(uint64_t iova)
{
    return fake_node_of((struct kaddr){ iova });
}

static void test_places(void **state)
{
    (void)state;
    const int where[] = { K_NODE_LOCAL, NIC_NODE_DEVICE, 1 };
    for (unsigned i = 0; i < 3; i++) {
        struct bench b;
        struct fake_options options = { .seed = 1 };
        struct nic_driver_params params = small();
        params.completion_node = where[i];
        bench_open(&b, &options, &params);
        assert_int_equal(b.dev->n_tx_queues, 4);
        for (unsigned c = 0; c < 4; c++) {
            /* CPUs 0 and 1 are on the function's node, and come first. */
            unsigned node = c / 2, wanted = where[i] == K_NODE_LOCAL ? node : where[i] == 1 ? 1 : 0;
            assert_int_equal(b.dev->rx_queue_of_cpu[c], c);
            assert_int_equal(b.dev->xps_queue[c], c);
            assert_int_equal(node_of(b.nic[0].rq[c].iova), node);
            assert_int_equal(node_of(b.nic[0].sq[c].iova), node);
            assert_int_equal(node_of(b.nic[0].eq[c].iova), node);
            assert_int_equal(node_of(b.nic[0].cq[3 * c].iova), wanted);
            assert_int_equal(node_of(b.nic[0].cq[3 * c + 1].iova), wanted);
            assert_int_equal(node_of(b.nic[0].cq[3 * c + 2].iova), wanted);
            struct nic_wqe_data wqe;
            k_peek(b.kernel, (struct kaddr){ b.nic[0].rq[c].iova }, &wqe, sizeof wqe);
            assert_int_equal(node_of(wqe.iova), node);
        }
        /* RSS: the channels of the function's node. */
        for (unsigned r = 0; r < 128; r++)
            assert_int_equal(b.nic[0].rss[r], r % 2);
        bench_free(&b);
    }
}

static void test_channel_cpus(void **state)
{
    (void)state;
    static const uint16_t cpus[] = { 3, 1 };
    struct bench b;
    struct fake_options options = { .seed = 1 };
    struct nic_driver_params params = small();
    params.n_channels = 2;
    params.channel_cpu = cpus;
    params.rss_channels = 2;
    params.adaptive_rx = false;
    bench_open(&b, &options, &params);
    assert_int_equal(b.dev->n_rx_queues, 2);
    assert_int_equal(b.dev->rx_queue_of_cpu[3], 0);
    assert_int_equal(b.dev->rx_queue_of_cpu[1], 1);
    assert_int_equal(b.dev->rx_queue_of_cpu[0], -1);
    assert_int_equal(b.nic[0].rss[1], 1);
    assert_int_equal(b.nic[0].cq[1].moderation_us, 3);
    assert_int_equal(b.nic[0].cq[1].moderation_count, 32);
    assert_int_equal(b.nic[0].cq[0].moderation_us, 16);
    assert_int_equal(b.nic[0].cq[0].moderation_count, 32);
    for (struct k_irq *irq = b.kernel->irqs; irq; irq = irq->next)
        assert_int_equal(irq->cpu, cpus[irq->index]);
    bench_free(&b);
}

/* Open fails in the middle: nothing is left, and it can be tried again. */
static void test_open_failures(void **state)
{
    (void)state;
    struct bench b;
    struct fake_options options = { .seed = 1 };
    struct nic_driver_params params = small();
    bench_new(&b, &options, &params, 1, NIC_FIRMWARE_STANDARD);
    b.nic[0].refuse_cq = true;
    assert_int_equal(b.dev->ops->open(b.dev), -ENOSPC);
    assert_false(b.dev->running);
    assert_int_equal(b.kernel->pages_live, 0);
    b.nic[0].refuse_cq = false;
    for (unsigned every = 1; every < 90; every += 3) {
        b.kernel->n_page_allocs = 0;
        b.kernel->options.fail_page_every = every;
        int error = b.dev->ops->open(b.dev);
        b.kernel->options.fail_page_every = 0;
        if (error == 0)
            b.dev->ops->stop(b.dev);
        else
            assert_int_equal(error, -ENOMEM);
        assert_int_equal(b.kernel->pages_live, 0);
        assert_int_equal(b.kernel->dma_live, 1); /* the command block */
        assert_int_equal(b.kernel->maps_live, 0);
    }
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(b.dev->ops->open(b.dev), 0);
        struct sender s = { .n = 100, .n_frags_max = 2, .most = 100 };
        b.next_wire[0] = b.next_sent[0] = 0;
        run_sender(&b, &s, 0);
        assert_int_equal(b.n_wire, 100 * (i + 1));
        b.dev->ops->stop(b.dev);
        for (unsigned q = 0; q < FAKE_NIC_QUEUES; q++)
            assert_false(b.nic[0].eq[q].there || b.nic[0].cq[q].there || b.nic[0].sq[q].there ||
                         b.nic[0].rq[q].there);
        /* Closed: packets go nowhere, but go. */
        assert_int_equal(b.dev->ops->start_xmit(packet(&b, 0, 1, 9, false), b.dev), NET_XMIT_OK);
    }
    assert_int_equal(b.net.skbs_live, 0);
    bench_free(&b);
}

static void test_params(void **state)
{
    (void)state;
    struct fake_options options = { .seed = 1 };
    struct kernel *kernel = fake_new(&options);
    struct nic_driver_params params = small();
    params.sq_blocks = 24;
    assert_null(nic_driver_new(NULL, kernel, &params, "pf"));
    params = small();
    params.completion_node = 2;
    assert_null(nic_driver_new(NULL, kernel, &params, "pf"));
    params = small();
    params.rx_mode = 2;
    assert_null(nic_driver_new(NULL, kernel, &params, "pf"));
    fake_free(kernel);
}

/* IOctoSG: what lies on the other function's node is fetched through it. */
static void test_octo_sg(void **state)
{
    (void)state;
    for (int on = 0; on < 2; on++) {
        struct bench b;
        struct fake_options options = { .seed = 1 };
        struct nic_driver_params params = small();
        params.octo_sg = on;
        bench_new(&b, &options, &params, 2, NIC_FIRMWARE_OCTONIC);
        assert_int_equal(nic_dev_n_functions(b.dev), 2);
        assert_int_equal(nic_dev_firmware(b.dev), NIC_FIRMWARE_OCTONIC);
        assert_int_equal(b.dev->ops->open(b.dev), 0);
        fake_on(b.kernel, 0);
        struct sk_buff *skb = packet(&b, 0, 3, 500, false);
        k_page_put(b.kernel, skb->frag[1].page);
        struct k_page *remote = k_page_alloc(b.kernel, 1, 0);
        uint8_t bytes[500], frame[2000];
        frame_fill(frame, skb->sequence, sizeof frame);
        memcpy(bytes, frame + HEADER_BYTES + skb->frag[0].bytes, skb->frag[1].bytes);
        skb->frag[1].page = remote;
        skb->frag[1].node = 1;
        k_poke(b.kernel, kaddr_add(remote->addr, skb->frag[1].offset), bytes, skb->frag[1].bytes);
        assert_int_equal(b.dev->ops->start_xmit(skb, b.dev), NET_XMIT_OK);
        run_for(&b, FAKE_MS(1));
        assert_int_equal(b.n_wire, 1);
        assert_int_equal(b.nic[0].n_hints, 3);
        assert_int_equal(b.nic[0].hints[0], 0);
        assert_int_equal(b.nic[0].hints[1], on ? 2 : 0);
        assert_int_equal(b.nic[0].hints[2], 0);
        assert_int_equal(nic_dev_channel_stats(b.dev, 0).tx_hints, on);
        bench_free(&b);
    }
}

/* ---- Moderation ------------------------------------------------------------------------------ */

/* One period of measurement at given rates. */
static bool dim_period(struct nic_dim *dim, struct nic_dim_sample *now, uint64_t bytes,
                       uint64_t packets, uint64_t us)
{
    if (!dim->measuring)
        assert_false(nic_dim_poll(dim, now));
    now->events += NIC_DIM_EVENTS;
    now->packets += packets;
    now->bytes += bytes;
    now->time_ps += us * 1000000;
    bool changed = nic_dim_poll(dim, now);
    if (changed) {
        assert_false(nic_dim_poll(dim, now)); /* nothing while the device is being told */
        nic_dim_restart(dim);
    }
    return changed;
}

static void test_dim_walk(void **state)
{
    (void)state;
    struct nic_dim dim;
    struct nic_dim_sample now = { 0 };
    nic_dim_init(&dim);
    assert_int_equal(dim.profile, 1);
    /* Better each time: on to the right, as far as it goes, and parked there. */
    for (unsigned i = 2; i <= 4; i++) {
        assert_true(dim_period(&dim, &now, 100000 * i * i, 100, 1000));
        assert_int_equal(dim.profile, i);
        assert_int_equal(dim.tune, NIC_DIM_RIGHT);
    }
    assert_false(dim_period(&dim, &now, 100000 * 25, 100, 1000));
    assert_int_equal(dim.tune, NIC_DIM_PARKED_ON_TOP);
    /* 10 % is the same, 11 % is not. */
    assert_false(dim_period(&dim, &now, 100000 * 27, 100, 1000));
    assert_int_equal(dim.tune, NIC_DIM_PARKED_ON_TOP);
    assert_true(dim_period(&dim, &now, 100000 * 28, 100, 1000));
    assert_int_equal(dim.tune, NIC_DIM_LEFT);
    assert_int_equal(dim.profile, 3);
    /* Worse to the left: turn; same there: turn again ... until it comes to rest. */
    assert_true(dim_period(&dim, &now, 100000 * 20, 100, 1000));
    assert_int_equal(dim.tune, NIC_DIM_RIGHT);
    assert_int_equal(dim.profile, 4);
    for (unsigned i = 0;
         i < 30 && dim.tune != NIC_DIM_PARKED_TIRED && dim.tune != NIC_DIM_PARKED_ON_TOP; i++)
        dim_period(&dim, &now, 100000 * 20, 100, 1000);
    assert_true(dim.tune == NIC_DIM_PARKED_TIRED || dim.tune == NIC_DIM_PARKED_ON_TOP);
}

/* The comparison: bytes, then packets, then events; nothing of 64 events is nothing. */
static void test_dim_compare(void **state)
{
    (void)state;
    struct nic_dim dim;
    struct nic_dim_sample now = { 0 };
    nic_dim_init(&dim);
    assert_true(dim_period(&dim, &now, 1000000, 1000, 1000)); /* first: better than nothing */
    assert_int_equal(dim.profile, 2);
    assert_true(dim_period(&dim, &now, 1000000, 2000, 1000)); /* as many bytes, more packets */
    assert_int_equal(dim.profile, 3);
    /* As much of both in fewer events: twice the time for the same 64. */
    assert_true(dim_period(&dim, &now, 2000000, 4000, 2000));
    assert_int_equal(dim.profile, 4);
    /* Worse: back. */
    assert_true(dim_period(&dim, &now, 1000000, 2000, 1000));
    assert_int_equal(dim.profile, 3);
    assert_int_equal(dim.tune, NIC_DIM_LEFT);
    /* Three to the right, one to the left, and not better: it turns, and is not yet on top. */
    assert_true(dim_period(&dim, &now, 1000000, 2000, 1000));
    assert_int_equal(dim.tune, NIC_DIM_RIGHT);
    /* A period shorter than a microsecond tells nothing. */
    uint8_t profile = dim.profile;
    assert_false(dim_period(&dim, &now, 1, 1, 0));
    assert_int_equal(dim.profile, profile);
}

/* Never better: it goes to and fro, and after ten steps rests for ten periods whatever the load. */
static void test_dim_tired(void **state)
{
    (void)state;
    struct nic_dim dim;
    struct nic_dim_sample now = { 0 };
    nic_dim_init(&dim);
    for (unsigned i = 0; i < 10; i++) {
        assert_true(dim_period(&dim, &now, 1000000, 100, 1000));
        assert_int_equal(dim.profile, i % 2 ? 1 : 2);
        assert_int_equal(dim.tune, i % 2 ? NIC_DIM_LEFT : NIC_DIM_RIGHT);
    }
    assert_false(dim_period(&dim, &now, 1000000, 100, 1000));
    assert_int_equal(dim.tune, NIC_DIM_PARKED_TIRED);
    for (unsigned i = 0; i < 9; i++)
        assert_false(dim_period(&dim, &now, 1000000 * (i % 2 + 1), 100, 1000));
    assert_int_equal(dim.tune, NIC_DIM_PARKED_TIRED);
    assert_true(dim_period(&dim, &now, 1000000, 100, 1000));
    assert_int_equal(dim.tune, NIC_DIM_LEFT);
    assert_int_equal(dim.profile, 0);
}

/* One step too far, one back: it stays where it was best. */
static void test_dim_top(void **state)
{
    (void)state;
    struct nic_dim dim;
    struct nic_dim_sample now = { 0 };
    nic_dim_init(&dim);
    assert_true(dim_period(&dim, &now, 1000000, 100, 1000));
    assert_true(dim_period(&dim, &now, 2000000, 100, 1000));
    assert_int_equal(dim.profile, 3);
    assert_true(dim_period(&dim, &now, 1000000, 100, 1000)); /* worse */
    assert_int_equal(dim.profile, 2);
    assert_false(dim_period(&dim, &now, 2000000, 100, 1000)); /* better again: on top */
    assert_int_equal(dim.tune, NIC_DIM_PARKED_ON_TOP);
    for (unsigned i = 0; i < 5; i++)
        assert_false(dim_period(&dim, &now, 2000000, 100, 1000));
    assert_int_equal(dim.profile, 2);
}

/* In the driver: the device's moderation follows the state machine. */
static void test_dim_applied(void **state)
{
    (void)state;
    struct bench b;
    struct fake_options options = { .seed = 4 };
    struct nic_driver_params params = small();
    params.rq_wqes = 256;
    bench_open(&b, &options, &params);
    assert_int_equal(b.nic[0].cq[1].moderation_us, 8);
    assert_int_equal(b.nic[0].cq[1].moderation_count, 128);
    struct source s = { .queue = 0, .n = 2000, .batch = 1, .gap_ps = FAKE_US(40) };
    run_source(&b, &s);
    struct nic_drv_stats stats = nic_dev_channel_stats(b.dev, 0);
    assert_true(stats.moderation_changes > 0);
    bool known = false;
    for (unsigned i = 0; i < NIC_DIM_PROFILES; i++)
        known |= b.nic[0].cq[1].moderation_us == nic_dim_profiles[NIC_MODERATION_CQE][i].us &&
                 b.nic[0].cq[1].moderation_count == nic_dim_profiles[NIC_MODERATION_CQE][i].count;
    assert_true(known);
    assert_int_equal(b.nic[0].cq[4].moderation_us, 8); /* the others had no load */
    bench_free(&b);
}

/* ---- Flow filters ---------------------------------------------------------------------------- */

static int steer(struct bench *b, unsigned flow, uint16_t rxq)
{
    struct sk_buff skb = { .flow = { .source_ip = 1 + flow / 7,
                                     .source_port = (uint16_t)(1000 + flow),
                                     .destination_ip = 9,
                                     .destination_port = 80,
                                     .protocol = 6 } };
    return b->dev->ops->rx_flow_steer(b->dev, &skb, rxq, flow);
}

static int target_of(const struct fake_nic *nic, unsigned flow)
{
    for (unsigned i = 0; i < FAKE_NIC_FLOWS; i++)
        if (nic->flow[i].there && nic->flow[i].source_port == 1000 + flow)
            return nic->flow[i].target;
    return -1;
}

static void test_filters(void **state)
{
    (void)state;
    struct bench b;
    struct arfs arfs = { 0 };
    struct fake_options options = { .seed = 6 };
    struct nic_driver_params params = small();
    bench_open(&b, &options, &params);
    b.dev->arfs = &arfs;
    int first = steer(&b, 0, 1);
    assert_true(first >= 0);
    assert_int_equal(target_of(&b.nic[0], 0), -1); /* not yet: a work item does it */
    run_for(&b, FAKE_US(100));
    assert_int_equal(target_of(&b.nic[0], 0), 1);
    assert_int_equal(steer(&b, 0, 1), first); /* the same wish, the same filter */
    assert_true(steer(&b, 0, 3) != first);
    run_for(&b, FAKE_US(100));
    assert_int_equal(target_of(&b.nic[0], 0), 3);
    struct nic_filter_stats stats = nic_dev_filter_stats(b.dev);
    assert_int_equal(stats.added, 1);
    assert_int_equal(stats.updated, 1);
    /* Many changes before the work item runs: the last one counts. */
    for (unsigned i = 0; i < 20; i++)
        for (unsigned flow = 1; flow < 10; flow++)
            assert_true(steer(&b, flow, (uint16_t)((flow + i) % 4)) >= 0);
    run_for(&b, FAKE_MS(1));
    for (unsigned flow = 1; flow < 10; flow++)
        assert_int_equal(target_of(&b.nic[0], flow), (flow + 19) % 4);
    assert_int_equal(nic_dev_filter_stats(b.dev).n, 10);
    assert_int_equal(steer(&b, 0, 4), -EINVAL);
    /* Nothing expires that is needed; everything else does, in the table and in the device. */
    run_for(&b, FAKE_MS(10));
    assert_true(arfs.asked > 0);
    assert_int_equal(nic_dev_filter_stats(b.dev).n, 10);
    arfs.expire_all = true;
    run_for(&b, FAKE_MS(10));
    assert_int_equal(nic_dev_filter_stats(b.dev).n, 0);
    assert_int_equal(nic_dev_filter_stats(b.dev).expired, 10);
    for (unsigned flow = 0; flow < 10; flow++)
        assert_int_equal(target_of(&b.nic[0], flow), -1);
    /* No rules, no timer: an idle machine stays idle. */
    assert_int_equal(b.kernel->timers_live, 0);
    bench_free(&b);
}

static void test_filters_full(void **state)
{
    (void)state;
    struct bench b;
    struct arfs arfs = { 0 };
    struct fake_options options = { .seed = 6 };
    struct nic_driver_params params = small(); /* 32 filters */
    bench_open(&b, &options, &params);
    b.dev->arfs = &arfs;
    for (unsigned flow = 0; flow < 32; flow++)
        assert_true(steer(&b, flow, 2) >= 0);
    assert_int_equal(steer(&b, 32, 2), -ENOSPC);
    assert_true(steer(&b, 5, 1) >= 0); /* one that is there may still move */
    run_for(&b, FAKE_MS(1));
    assert_int_equal(nic_dev_filter_stats(b.dev).refused, 1);
    assert_int_equal(target_of(&b.nic[0], 5), 1);
    arfs.expire_all = true;
    run_for(&b, FAKE_MS(5));
    /* The device's table is the smaller one: rules that it refuses go from the driver's, too. */
    arfs.expire_all = false;
    b.nic[0].n_flows = 4;
    for (unsigned flow = 0; flow < 8; flow++)
        assert_true(steer(&b, flow, 2) >= 0);
    run_for(&b, FAKE_MS(1));
    assert_int_equal(nic_dev_filter_stats(b.dev).n, 4);
    assert_int_equal(nic_dev_filter_stats(b.dev).refused, 5);
    bench_free(&b);
}

struct asker {
    struct bench *b;
    bool stop, done;
};

static void asker_body(void *arg)
{
    struct asker *a = arg;
    while (!a->stop)
        assert_int_equal(nic_dev_query_drops(a->b->dev), 0);
    a->done = true;
}

/* Flows that move, expire and come back at random, while others have commands too: in the end
 * device and wishes agree. */
static void test_filters_random(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct bench b;
        struct arfs arfs = { 0 };
        struct fake_options options = { .seed = seed, .stall_percent = 10 };
        struct nic_driver_params params = small();
        uint16_t wish[12] = { 0 };
        bench_open(&b, &options, &params);
        b.dev->arfs = &arfs;
        struct asker askers[2] = { { .b = &b }, { .b = &b } };
        k_thread_new(b.kernel, "asker", 0, asker_body, &askers[0]);
        k_thread_new(b.kernel, "asker", 1, asker_body, &askers[1]);
        for (unsigned i = 0; i < 400; i++) {
            unsigned flow = (unsigned)fake_random(b.kernel, 12);
            fake_on(b.kernel, (unsigned)fake_random(b.kernel, 4));
            wish[flow] = (uint16_t)fake_random(b.kernel, 4);
            assert_true(steer(&b, flow, wish[flow]) >= 0);
            arfs.expire_all = fake_random(b.kernel, 2);
            run_for(&b, fake_random(b.kernel, FAKE_US(200)));
        }
        arfs.expire_all = false;
        for (unsigned flow = 0; flow < 12; flow++)
            assert_true(steer(&b, flow, wish[flow]) >= 0);
        run_for(&b, FAKE_MS(2));
        askers[0].stop = askers[1].stop = true;
        run_for(&b, FAKE_MS(1));
        assert_true(askers[0].done && askers[1].done);
        for (unsigned flow = 0; flow < 12; flow++)
            assert_int_equal(target_of(&b.nic[0], flow), wish[flow]);
        assert_int_equal(nic_dev_filter_stats(b.dev).n, 12);
        assert_int_equal(b.kernel->n_warnings, 0);
        bench_free(&b);
    }
}

static void test_switch_rules(void **state)
{
    (void)state;
    struct bench b;
    struct fake_options options = { .seed = 6 };
    struct nic_driver_params params = small();
    bench_new(&b, &options, &params, 2, NIC_FIRMWARE_OCTONIC);
    struct flow_key flow = { .source_ip = 5, .source_port = 6, .protocol = 6 };
    b.nic[0].n_flows = 1;
    assert_int_equal(nic_dev_switch_set(b.dev, &flow, 1), 0);
    assert_int_equal(b.nic[0].rule[0].target, 1);
    assert_int_equal(nic_dev_switch_set(b.dev, &flow, 0), 0);
    assert_int_equal(b.nic[0].rule[0].target, 0);
    assert_int_equal(nic_dev_switch_set(b.dev, &flow, 2), -EINVAL);
    struct flow_key other = { .source_ip = 7, .source_port = 6, .protocol = 6 };
    assert_int_equal(nic_dev_switch_set(b.dev, &other, 1), -ENOSPC);
    assert_int_equal(nic_dev_switch_delete(b.dev, &other), -ENOENT);
    assert_int_equal(nic_dev_switch_delete(b.dev, &flow), 0);
    assert_false(b.nic[0].rule[0].there);
    b.nic[0].drops = 77;
    assert_int_equal(nic_dev_query_drops(b.dev), 77);
    bench_free(&b);
}

static int rx_rule(struct bench *b, uint16_t number, const struct net_rx_rule *rule, uint16_t rxq)
{
    return b->dev->ops->rx_rule(b->dev, number, rule, rxq);
}

static void test_rules(void **state)
{
    (void)state;
    struct bench b;
    struct fake_options options = { .seed = 6 };
    struct nic_driver_params params = small();
    const struct net_rx_rule rule = { .ether_type = 0x86df,
                                      .word = { { 16, 0xff0000, 0x50000 }, { 28, 0xff, 3 } } };
    bench_new(&b, &options, &params, 2, NIC_FIRMWARE_OCTONIC);
    assert_int_equal(rx_rule(&b, 7, &rule, 1), -ENODEV); /* it is closed */
    assert_int_equal(b.dev->ops->open(b.dev), 0);
    assert_int_equal(rx_rule(&b, 7, &rule, 1), 0);
    const struct fake_match *match = &b.nic[0].match[7];
    assert_true(match->there);
    assert_int_equal(match->target, 1);
    assert_int_equal(match->match.ether_type, 0x86df);
    assert_int_equal(match->match.offset[1], 28);
    assert_int_equal(match->match.word[0].mask, 0xff0000);
    assert_int_equal(match->match.word[0].value, 0x50000);
    assert_int_equal(match->match.word[1].value, 3);
    assert_int_equal(rx_rule(&b, 7, &rule, 0), 0);
    assert_int_equal(match->target, 0);
    assert_int_equal(rx_rule(&b, 7, &rule, b.dev->n_rx_queues), -EINVAL);
    assert_int_equal(rx_rule(&b, FAKE_NIC_RULES, &rule, 0), -ENOSPC);
    assert_int_equal(rx_rule(&b, FAKE_NIC_RULES, NULL, 0), -ENOENT);
    /* of the switch, for a function */
    assert_int_equal(nic_dev_switch_rule(b.dev, 7, &rule, 2), -EINVAL);
    assert_int_equal(nic_dev_switch_rule(b.dev, 7, &rule, 1), 0);
    assert_true(b.nic[0].switch_match[7].there);
    assert_int_equal(b.nic[0].switch_match[7].target, 1);
    assert_int_equal(nic_dev_switch_rule(b.dev, 7, NULL, 0), 0);
    assert_int_equal(nic_dev_switch_rule(b.dev, 7, NULL, 0), -ENOENT);
    /* A device that has forgotten it, as after a reset, is told again when it is opened. */
    b.dev->ops->stop(b.dev);
    b.nic[0].match[7].there = false;
    assert_int_equal(b.dev->ops->open(b.dev), 0);
    assert_true(match->there);
    assert_int_equal(rx_rule(&b, 7, NULL, 0), 0);
    assert_false(match->there);
    b.dev->ops->stop(b.dev);
    assert_int_equal(b.dev->ops->open(b.dev), 0);
    assert_false(match->there);
    bench_free(&b);
}

/* ---- Surprise removal ------------------------------------------------------------------------ */

static void pull_event(void *arg)
{
    fake_nic_pull(arg);
}

struct remover {
    struct bench *b;
    uint64_t at_ps;
    bool done;
};

/* The hot-plug driver finds out a little later. */
static void remover_body(void *arg)
{
    struct remover *r = arg;
    k_sleep(r->b->kernel, r->at_ps);
    assert_true(r->b->nic[0].gone);
    k_pci_remove(&r->b->nic[0].pci, true);
    r->done = true;
}

static void steer_thread(void *arg)
{
    struct bench *b = arg;
    for (unsigned i = 0; i < 200; i++) {
        if (b->dev->running)
            steer(b, i % 20, (uint16_t)(i % 4));
        k_sleep(b->kernel, FAKE_US(15));
    }
}

static void pull_at(struct bench *b, uint64_t seed, struct sender *s, struct source *source)
{
    struct remover remover = { .b = b };
    uint64_t pull = fake_random(b->kernel, FAKE_MS(2));
    remover.at_ps = pull + fake_random(b->kernel, seed % 3 ? FAKE_US(300) : FAKE_US(1));
    b->gaps_allowed = true;
    b->net.hold = (unsigned)seed;
    *s = (struct sender){ .b = b, .queue = 1, .n = 3000, .n_frags_max = 3, .most = 500 };
    s->burst = 1 + (unsigned)seed % 3;
    *source = (struct source){ .b = b, .n = 1500, .batch = 3, .gap_ps = FAKE_US(4) };
    if (seed % 3 == 0) { /* all at once, in the channel that is taken down first */
        s->queue = 0;
        source->gap_ps = FAKE_US(1);
    }
    fake_at(b->kernel, b->kernel->now_ps + pull, pull_event, &b->nic[0]);
    fake_at(b->kernel, b->kernel->now_ps, source_event, source);
    k_thread_new(b->kernel, "remover", 3, remover_body, &remover);
    k_thread_new(b->kernel, "steer", 2, steer_thread, b);
    k_thread_new(b->kernel, "sender", (int)(seed % 2), sender_body, s);
    while (!remover.done || !s->done || source->sent < source->n)
        run_for(b, FAKE_MS(1));
    run_for(b, FAKE_MS(10));
}

/* Part of a team: the device stays, takes packets and drops them, until its function is back. */
static void test_pulled_from_team(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        struct bench b;
        struct net_device team = { 0 };
        struct fake_options options = { .seed = seed, .stall_percent = seed % 4 ? 10 : 0 };
        struct nic_driver_params params = small();
        if (seed % 3 == 0)
            params.sq_blocks = 4096; /* it does not stop: somebody is in start_xmit() */
        struct sender s;
        struct source source;
        bench_open(&b, &options, &params);
        b.dev->upper = &team;
        const struct net_rx_rule rule = { .ether_type = 0x86df };
        assert_int_equal(rx_rule(&b, 1, &rule, 2), 0);
        assert_int_equal(rx_rule(&b, 2, &rule, 1), 0);
        pull_at(&b, seed, &s, &source);
        assert_ptr_equal(b.net.devices, b.dev);
        assert_false(b.dev->carrier || b.dev->running || nic_dev_present(b.dev));
        /* Everything that was handed to the device has come back. */
        assert_int_equal(b.net.freed, 3000 + b.net.received - b.net.n_held);
        assert_int_equal(b.kernel->maps_live, 0);
        assert_int_equal(b.kernel->dma_live, 0);
        assert_int_equal(b.dev->ops->open(b.dev), -ENODEV);
        struct flow_key flow = { .source_ip = 1 };
        assert_int_equal(nic_dev_switch_set(b.dev, &flow, 0), -ENODEV);
        assert_int_equal(steer(&b, 1, 1), -ENODEV);
        assert_int_equal(nic_dev_query_drops(b.dev), -ENODEV);
        assert_int_equal(rx_rule(&b, 3, &rule, 2), -ENODEV);
        assert_int_equal(rx_rule(&b, 2, NULL, 0), 0);
        /* Plugged in again: the same device, open as before. */
        fake_nic_init(&b.nic[0], b.kernel, 0, 1, 0);
        b.nic[0].sent = on_wire;
        assert_int_equal(k_pci_add(b.kernel, &b.nic[0].pci), 0);
        assert_ptr_equal(nic_driver_device(b.driver, 0), b.dev);
        assert_null(nic_driver_device(b.driver, 1));
        assert_true(b.dev->running && b.dev->carrier && nic_dev_present(b.dev));
        assert_true(b.nic[0].match[1].there && !b.nic[0].match[2].there);
        assert_int_equal(b.nic[0].match[1].target, 2);
        struct sender again = { .queue = 2, .n = 100, .n_frags_max = 2, .most = 100 };
        uint64_t before = b.n_wire;
        run_sender(&b, &again, 2);
        assert_int_equal(b.n_wire, before + 100);
        b.dev->upper = NULL;
        bench_free(&b);
    }
}

/* The device is not part of anything: it goes. */
static void test_pulled(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct bench b;
        struct fake_options options = { .seed = seed, .stall_percent = 10 };
        struct nic_driver_params params = small();
        struct source source = { .n = 3000, .batch = 2, .gap_ps = FAKE_US(2) };
        bench_open(&b, &options, &params);
        uint64_t pull = fake_random(b.kernel, FAKE_MS(3));
        struct remover remover = { .b = &b, .at_ps = pull + fake_random(b.kernel, FAKE_US(200)) };
        source.b = &b;
        fake_at(b.kernel, b.kernel->now_ps + pull, pull_event, &b.nic[0]);
        fake_at(b.kernel, b.kernel->now_ps, source_event, &source);
        k_thread_new(b.kernel, "remover", 3, remover_body, &remover);
        while (!remover.done || source.sent < source.n)
            run_for(&b, FAKE_MS(1));
        assert_null(b.net.devices);
        assert_null(nic_driver_device(b.driver, 0));
        bench_free(&b);
    }
}

/* Nobody says that it is gone: commands find out and do not wait for ever. */
static void test_silent(void **state)
{
    (void)state;
    struct bench b;
    struct fake_options options = { .seed = 6 };
    struct nic_driver_params params = small();
    bench_open(&b, &options, &params);
    fake_nic_pull(&b.nic[0]);
    uint64_t start_ps = b.kernel->now_ps;
    assert_int_equal(nic_dev_query_drops(b.dev), -ENODEV);
    assert_true(b.kernel->now_ps - start_ps < FAKE_MS(2));
    assert_int_equal(nic_dev_query_drops(b.dev), -ENODEV);
    bench_free(&b);
    /* And nothing there at all when it is probed. */
    struct kernel *kernel = fake_new(&options);
    struct net net = { .kernel = kernel };
    struct nic_driver *driver = nic_driver_new(&net, kernel, &params, "pf");
    struct fake_nic nic;
    fake_nic_init(&nic, kernel, 0, 1, 0);
    fake_nic_pull(&nic);
    k_pci_add(kernel, &nic.pci);
    assert_int_equal(k_pci_register(kernel, nic_driver_pci(driver)), 0);
    assert_null(nic_driver_device(driver, 0));
    nic_driver_free(driver);
    fake_free(kernel);
}

/* ---- Queues that are stuck, and that fail ---------------------------------------------------- */

static void send_one(struct bench *b, uint16_t queue)
{
    struct sk_buff *skb = packet(b, queue, 1, 40, false);
    assert_int_equal(b->dev->ops->start_xmit(skb, b->dev), NET_XMIT_OK);
}

static bool receive_one(struct bench *b, unsigned queue, uint64_t sequence)
{
    uint8_t frame[200];
    frame_fill(frame, sequence, sizeof frame);
    return fake_nic_receive(&b->nic[0], queue, frame, sizeof frame, HEADER_BYTES,
                            0x1000 + (uint32_t)sequence);
}

static struct nic_driver_params watched(void)
{
    struct nic_driver_params params = small();
    params.watchdog_ps = FAKE_MS(5);
    return params;
}

/* The interrupt of a packet sent gets lost: within two periods the driver arms the event queue
 * again, and the device raises it once more. Nothing is made anew. */
static void test_lost_interrupt(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct bench b;
        struct fake_options options = { .seed = seed, .stall_percent = seed % 2 ? 0 : 10 };
        struct nic_driver_params params = watched();
        bench_open(&b, &options, &params);
        const uint64_t commands = b.nic[0].n_commands;
        b.nic[0].lose_irqs = 1;
        send_one(&b, 0);
        run_for(&b, FAKE_MS(1));
        assert_int_equal(b.n_wire, 1);
        assert_int_equal(b.net.freed, 0);
        run_for(&b, FAKE_MS(10));
        struct nic_drv_stats stats = nic_dev_channel_stats(b.dev, 0);
        assert_int_equal(b.net.freed, 1);
        assert_int_equal(stats.eq_rearms, 1);
        assert_int_equal(stats.tx_timeouts, 1);
        assert_int_equal(stats.tx_recoveries, 0);
        assert_int_equal(b.nic[0].n_commands, commands);
        send_one(&b, 0);
        run_for(&b, FAKE_MS(1));
        assert_int_equal(b.net.freed, 2);
        run_for(&b, FAKE_MS(50));
        assert_int_equal(nic_dev_channel_stats(b.dev, 0).tx_timeouts, 1);
        bench_free(&b);
    }
}

/* That of a packet received: nobody looks, until something is sent through the channel. Packets
 * come up in their order then. */
static void test_lost_receive_interrupt(void **state)
{
    (void)state;
    struct bench b;
    struct fake_options options = { .seed = 3 };
    struct nic_driver_params params = watched();
    bench_open(&b, &options, &params);
    b.nic[0].lose_irqs = 1;
    assert_true(receive_one(&b, 1, 0));
    assert_true(receive_one(&b, 1, 1));
    run_for(&b, FAKE_MS(100));
    assert_int_equal(b.net.received, 0);
    send_one(&b, 1);
    run_for(&b, FAKE_MS(11));
    assert_int_equal(b.net.received, 2);
    assert_int_equal(b.net.freed, 3);
    assert_int_equal(nic_dev_channel_stats(b.dev, 1).eq_rearms, 1);
    bench_free(&b);
}

/* A queue of which the device completes nothing, without an event: all channels are made anew.
 * Without a watchdog it stays as it is. */
static void test_stuck(void **state)
{
    (void)state;
    for (unsigned period_ms = 0; period_ms <= 5; period_ms += 5) {
        struct bench b;
        struct fake_options options = { .seed = 4 };
        struct nic_driver_params params = watched();
        params.watchdog_ps = FAKE_MS(period_ms);
        bench_open(&b, &options, &params);
        b.nic[0].hold_completions = true;
        send_one(&b, 2);
        run_for(&b, FAKE_MS(4));
        b.nic[0].hold_completions = false; /* what was posted stays where it is */
        run_for(&b, FAKE_MS(20));
        struct nic_drv_stats stats = nic_dev_channel_stats(b.dev, 2);
        assert_int_equal(b.net.freed, period_ms == 5);
        assert_int_equal(stats.tx_timeouts, period_ms == 5);
        assert_int_equal(stats.tx_recoveries, period_ms == 5);
        assert_int_equal(stats.eq_rearms, 0);
        assert_true(b.dev->running && b.dev->carrier);
        b.gaps_allowed = true;
        send_one(&b, 2);
        run_for(&b, FAKE_MS(1));
        assert_int_equal(b.net.freed, 2);
        bench_free(&b);
    }
}

/* A receive queue that fails says so; all channels are made anew, and packets come in again. */
static void test_receive_queue_fails(void **state)
{
    (void)state;
    struct bench b;
    struct fake_options options = { .seed = 5 };
    struct nic_driver_params params = small();
    bench_open(&b, &options, &params);
    assert_true(receive_one(&b, 3, 0));
    run_for(&b, FAKE_MS(1));
    assert_int_equal(b.net.received, 1);
    fake_nic_fail_rq(&b.nic[0], 3);
    assert_false(receive_one(&b, 3, 1));
    run_for(&b, FAKE_MS(5));
    struct nic_drv_stats stats = nic_dev_channel_stats(b.dev, 3);
    assert_int_equal(stats.rx_errors, 1);
    assert_int_equal(stats.rx_recoveries, 1);
    assert_int_equal(b.kernel->n_warnings, 1);
    assert_true(b.dev->running && b.dev->carrier);
    assert_int_equal(fake_nic_posted(&b.nic[0], 3), 8);
    assert_true(receive_one(&b, 3, 2));
    run_for(&b, FAKE_MS(1));
    assert_int_equal(b.net.received, 2);
    bench_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tx_wraps),
        cmocka_unit_test(test_tx_full),
        cmocka_unit_test(test_tx_more),
        cmocka_unit_test(test_tx_tso),
        cmocka_unit_test(test_tx_map_failures),
        cmocka_unit_test(test_tx_many_cpus),
        cmocka_unit_test(test_rx_small_in_large),
        cmocka_unit_test(test_rx_wraps),
        cmocka_unit_test(test_arms),
        cmocka_unit_test(test_few_queues),
        cmocka_unit_test(test_rx_any_order),
        cmocka_unit_test(test_rx_batches),
        cmocka_unit_test(test_rx_passed),
        cmocka_unit_test(test_rx_no_pages),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_channel_cpus),
        cmocka_unit_test(test_open_failures),
        cmocka_unit_test(test_params),
        cmocka_unit_test(test_octo_sg),
        cmocka_unit_test(test_dim_walk),
        cmocka_unit_test(test_dim_compare),
        cmocka_unit_test(test_dim_tired),
        cmocka_unit_test(test_dim_applied),
        cmocka_unit_test(test_dim_top),
        cmocka_unit_test(test_filters),
        cmocka_unit_test(test_filters_full),
        cmocka_unit_test(test_filters_random),
        cmocka_unit_test(test_switch_rules),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_pulled_from_team),
        cmocka_unit_test(test_pulled),
        cmocka_unit_test(test_silent),
        cmocka_unit_test(test_lost_interrupt),
        cmocka_unit_test(test_lost_receive_interrupt),
        cmocka_unit_test(test_stuck),
        cmocka_unit_test(test_receive_queue_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
