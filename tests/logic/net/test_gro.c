/* What generic receive offload merges and what not; devices, queues, headers, hashes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "logic/net/net_internal.h"
#include "tests/support/net_rig.h"

#define UP_MAX 64u

/* ---- What goes up is looked at where flow steering does -------------------------------------- */

struct up {
    uint32_t bytes, seq, packets, frags, listed;
    uint16_t port;
    uint8_t flags;
};
struct arfs {
    struct net *net;
    struct up up[UP_MAX];
    unsigned n;
    bool check; /* contents: the position in the stream is the sequence number */
};
const struct arfs_params arfs_params_default;

struct arfs *arfs_new(struct kernel *kernel, const struct arfs_params *params)
{
    (void)kernel;
    (void)params;
    return k_zalloc(sizeof(struct arfs));
}
void arfs_free(struct arfs *arfs)
{
    k_free(arfs);
}
void arfs_device_gone(struct arfs *arfs, const struct net_device *dev)
{
    (void)arfs;
    (void)dev;
}
void arfs_record(struct arfs *arfs, uint32_t hash)
{
    (void)arfs;
    (void)hash;
}
static void check_contents(struct kernel *kernel, const struct sk_buff *skb, uint32_t *position)
{
    for (unsigned i = 0; i < skb->n_frags; i++) {
        net_rig_check(kernel, kaddr_add(skb->frag[i].page->addr, skb->frag[i].offset), 0, *position,
                      skb->frag[i].bytes);
        *position += skb->frag[i].bytes;
    }
}

bool arfs_receive(struct arfs *arfs, struct net_device *dev, struct sk_buff *skb, uint16_t rxq)
{
    assert_true(arfs->n < UP_MAX);
    assert_int_equal(rxq, skb->queue);
    struct up *up = &arfs->up[arfs->n++];
    *up = (struct up){ .bytes = skb->bytes,
                       .seq = skb->tcp_seq,
                       .packets = skb->gso_segments ? skb->gso_segments : 1,
                       .frags = skb->n_frags,
                       .port = skb->flow.source_port,
                       .flags = skb->tcp_flags };
    uint32_t position = skb->tcp_seq;
    if (arfs->check)
        check_contents(dev->kernel, skb, &position);
    for (struct sk_buff *part = skb->frag_list; part; part = part->next) {
        up->listed++;
        if (arfs->check)
            check_contents(dev->kernel, part, &position);
    }
    if (arfs->check)
        assert_int_equal(position, skb->tcp_seq + skb->bytes);
    skb_free(dev->net, skb);
    return true;
}

static int never(struct net_device *dev, const struct sk_buff *skb, uint16_t rxq, uint32_t flow_id)
{
    (void)dev, (void)skb, (void)rxq, (void)flow_id;
    return -ENOSPC;
}

/* ---- Packets --------------------------------------------------------------------------------- */

struct packet {
    uint32_t seq, bytes, ack, tsval;
    uint16_t port, window;
    uint8_t flags;               /* 0: ACK */
    bool unchecked, wrong, sack; /* sack: a block in place of the timestamp */
    uint16_t segments;           /* that the device has merged; 0: none */
};
#define P(at, n, ...)                          \
    {                                          \
        .seq = (at), .bytes = (n), __VA_ARGS__ \
    }
struct bed {
    struct kernel *kernel;
    struct net *net;
    struct net_device dev;
    struct net_device_ops ops;
    struct k_napi napi;
    const struct packet *packets;
    unsigned n;
    struct arfs *arfs;
};

static struct sk_buff *packet_new(struct bed *bed, const struct packet *p)
{
    uint8_t head[66] = { [12] = 8, [14] = 0x45, [23] = 6, [46] = 0x80 };
    struct k_page *page = k_page_alloc(bed->kernel, K_NODE_LOCAL, 0);
    struct sk_buff *skb = skb_new(bed->net);
    net_rig_put(head + 16, 52 + p->bytes, 2);
    net_rig_put(head + 26, RIG_IP(1), 4);
    net_rig_put(head + 30, RIG_IP(0), 4);
    net_rig_put(head + 34, p->port, 2);
    net_rig_put(head + 36, 80, 2);
    net_rig_put(head + 38, p->seq, 4);
    net_rig_put(head + 42, p->ack, 4);
    head[47] = p->flags ? p->flags : TCP_ACK;
    net_rig_put(head + 48, p->window, 2);
    net_rig_put(head + 54, p->sack ? 0x0101050a : 0x0101080a, 4);
    net_rig_put(head + 58, p->tsval, 4);
    k_poke(bed->kernel, page->addr, head, sizeof head);
    net_rig_fill(bed->kernel, kaddr_add(page->addr, 66), 0, p->seq, p->bytes);
    skb->dev = &bed->dev;
    skb->head = page->addr;
    skb->head_page = page;
    skb->head_bytes = 66;
    skb->checksum = p->wrong       ? NET_CHECKSUM_WRONG
                    : p->unchecked ? NET_CHECKSUM_NONE
                                   : NET_CHECKSUM_RIGHT;
    if (p->bytes) {
        k_page_get(page);
        skb->frag[0] = (struct skb_frag){ page, 66, p->bytes, 0 };
        skb->n_frags = 1;
        skb->bytes = p->bytes;
    }
    skb->gso_segments = p->segments;
    skb->gso_bytes = (uint16_t)(p->segments > 1 ? p->bytes / p->segments : 0);
    return skb;
}

static int bed_poll(struct k_napi *napi, int budget)
{
    struct bed *bed = K_CONTAINER(napi, struct bed, napi);
    (void)budget;
    for (unsigned i = 0; i < bed->n; i++)
        net_gro_receive(&bed->napi, packet_new(bed, &bed->packets[i]));
    net_gro_flush(napi, bed->net);
    k_napi_complete(napi);
    return 0;
}

static void bed_new(struct bed *bed, bool gro)
{
    struct fake_options options = { .seed = 1 };
    struct net_params params = net_params_default;
    params.gro = gro;
    *bed = (struct bed){ .kernel = fake_new(&options) };
    bed->net = net_new(bed->kernel, &params);
    bed->ops = rig_ops;
    bed->ops.rx_flow_steer = never;
    bed->dev = (struct net_device){ .name = "n0",
                                    .ops = &bed->ops,
                                    .mtu_bytes = 1500,
                                    .ip = RIG_IP(0),
                                    .n_tx_queues = 1,
                                    .n_rx_queues = 1 };
    assert_int_equal(net_device_register(bed->net, &bed->dev), 0);
    bed->arfs = bed->dev.arfs;
    bed->arfs->check = true;
    k_napi_init(&bed->napi, bed->kernel, bed_poll);
}

static void bed_run(struct bed *bed, const struct packet *packets, unsigned n)
{
    bed->packets = packets;
    bed->n = n;
    bed->arfs->n = 0;
    fake_on(bed->kernel, 1);
    k_napi_schedule(&bed->napi);
    fake_run_until(bed->kernel, bed->kernel->now_ps + FAKE_MS(1));
}

static void bed_free(struct bed *bed)
{
    net_free(bed->net);
    assert_int_equal(bed->kernel->pages_live, 0);
    for (struct k_cache *cache = bed->kernel->caches; cache; cache = cache->next)
        assert_int_equal(k_cache_live(cache), 0);
    fake_free(bed->kernel);
}

/* ---- What is merged -------------------------------------------------------------------------- */

#define FULL 1448u

static void test_up_to_64_kib(void **state)
{
    (void)state;
    struct bed bed;
    struct packet p[92] = { { .seq = 0 } };
    bed_new(&bed, true);
    for (unsigned i = 0; i < 92; i++)
        p[i] = (struct packet){ .seq = 1000 + i * FULL, .bytes = FULL, .port = 7 };
    bed_run(&bed, p, 92);
    /* 45 * 1448 + 52 < 65536, one more would not be. */
    assert_int_equal(bed.arfs->n, 3);
    for (unsigned i = 0; i < 3; i++) {
        const struct up *up = &bed.arfs->up[i];
        assert_int_equal(up->packets, i < 2 ? 45 : 2);
        assert_int_equal(up->bytes, up->packets * FULL);
        assert_int_equal(up->seq, 1000 + i * 45 * FULL);
        assert_int_equal(up->frags, i < 2 ? 17 : 2);
        assert_int_equal(up->listed, i < 2 ? 28 : 0);
    }
    assert_int_equal(net_stats(bed.net)->gro_merged, 89);
    assert_int_equal(net_stats(bed.net)->rx_packets, 92);
    assert_int_equal(net_stats(bed.net)->rx_bytes, 92 * 1514);
    assert_int_equal(bed.dev.rx[0].packets, 92);
    bed_free(&bed);
}

static void test_what_ends_a_buffer(void **state)
{
    (void)state;
    struct {
        const char *what;
        struct packet p[4];
        unsigned n, ups;
        uint32_t first; /* bytes of the first that goes up */
    } cases[] = {
        { "nothing", { P(1, FULL), P(1 + FULL, FULL) }, 2, 1, 2 * FULL },
        { "a gap", { P(1, FULL), P(2 + FULL, FULL) }, 2, 2, FULL },
        { "the past", { P(1 + FULL, FULL), P(1, FULL) }, 2, 2, FULL },
        { "again", { P(1, FULL), P(1, FULL) }, 2, 2, FULL },
        { "no wrap", { P(-1448u, FULL), P(0, FULL), P(FULL, FULL) }, 3, 1, 3 * FULL },
        { "another acknowledgement", { P(1, FULL), P(1 + FULL, FULL, .ack = 5) }, 2, 2, FULL },
        { "another timestamp", { P(1, FULL), P(1 + FULL, FULL, .tsval = 5) }, 2, 2, FULL },
        { "another window", { P(1, FULL), P(1 + FULL, FULL, .window = 5) }, 2, 2, FULL },
        { "SACK blocks",
          { P(1, FULL, .sack = true), P(1 + FULL, FULL, .sack = true) },
          2,
          2,
          FULL },
        { "a longer one", { P(1, 100), P(101, 200) }, 2, 2, 100 },
        { "a shorter one, merged", { P(1, 200), P(201, 100), P(301, 100) }, 3, 2, 300 },
        { "PSH, merged",
          { P(1, FULL), P(1 + FULL, FULL, .flags = TCP_ACK | TCP_PSH), P(1 + 2 * FULL, FULL) },
          3,
          2,
          2 * FULL },
        { "merged by the device, first", { P(1, 200, .segments = 2), P(201, 100) }, 2, 2, 200 },
        { "merged by the device, second",
          { P(1, 100), P(101, 200, .segments = 2), P(301, 100) },
          3,
          3,
          100 },
        { "PSH of the first",
          { P(1, FULL, .flags = TCP_ACK | TCP_PSH), P(1 + FULL, FULL) },
          2,
          2,
          FULL },
        { "FIN, merged",
          { P(1, FULL), P(1 + FULL, 10, .flags = TCP_ACK | TCP_FIN) },
          2,
          1,
          FULL + 10 },
        { "another flag",
          { P(1, FULL), P(1 + FULL, FULL, .flags = TCP_ACK | TCP_URG) },
          2,
          2,
          FULL },
        { "a pure acknowledgement", { P(1, FULL), P(1 + FULL, 0), P(1 + FULL, FULL) }, 3, 3, FULL },
        { "a wrong checksum, and the gap that it leaves",
          { P(1, FULL), P(1 + FULL, FULL, .wrong = true), P(1 + 2 * FULL, FULL) },
          3,
          3,
          FULL },
        { "none that the device has checked",
          { P(1, FULL, .unchecked = true), P(1 + FULL, FULL, .unchecked = true) },
          2,
          1,
          2 * FULL },
        { "not another flow",
          { P(1, FULL, .port = 1), P(1, FULL, .port = 2), P(1 + FULL, FULL, .port = 1),
            P(1 + FULL, FULL, .port = 2) },
          4,
          2,
          2 * FULL },
    };
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bed bed;
        bed_new(&bed, true);
        bed_run(&bed, cases[i].p, cases[i].n);
        if (bed.arfs->n != cases[i].ups || bed.arfs->up[0].bytes != cases[i].first)
            fail_msg("%s: %u buffers, %u bytes in the first", cases[i].what, bed.arfs->n,
                     bed.arfs->up[0].bytes);
        bed_free(&bed);
    }
}

static uint64_t lines_of(const struct packet *p)
{
    struct bed bed;
    bed_new(&bed, true);
    uint64_t before = bed.kernel->lines;
    bed_run(&bed, p, 2);
    uint64_t lines = bed.kernel->lines - before;
    bed_free(&bed);
    return lines;
}
/* What the device has not checked is read, its headers and 23 lines more of each packet. */
static void test_checksums_cost(void **state)
{
    (void)state;
    const struct packet right[] = { P(1, FULL), P(1 + FULL, FULL) };
    struct packet p[2] = { right[0], right[1] };
    p[0].unchecked = p[1].unchecked = true;
    assert_int_equal(lines_of(p), lines_of(right) + 2 * 23);
}

/* Eight flows are held; a ninth drives the oldest out. Each poll ends with nothing held. */
static void test_flows_held(void **state)
{
    (void)state;
    struct bed bed;
    struct packet p[18] = { { .seq = 0 } };
    bed_new(&bed, true);
    for (unsigned i = 0; i < 18; i++)
        p[i] = (struct packet){ .seq = i / 9 * FULL, .bytes = FULL, .port = (uint16_t)(i % 9) };
    bed_run(&bed, p, 9);
    assert_int_equal(bed.arfs->n, 9);
    for (unsigned i = 0; i < 9; i++)
        assert_int_equal(bed.arfs->up[i].port, i);
    bed_run(&bed, p, 16); /* eight of the ninth flow's predecessors again: all driven out */
    assert_int_equal(bed.arfs->n, 16);
    bed_run(&bed, p + 1, 8);
    assert_int_equal(bed.arfs->n, 8);
    struct packet q[16];
    memcpy(q, p, 8 * sizeof q[0]);
    memcpy(q + 8, p + 9, 8 * sizeof q[0]);
    bed_run(&bed, q, 16);
    assert_int_equal(bed.arfs->n, 8);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(bed.arfs->up[i].bytes, 2 * FULL);
    bed_free(&bed);
}

static void test_switched_off(void **state)
{
    (void)state;
    struct bed bed;
    const struct packet p[] = { P(1, FULL), P(1 + FULL, FULL), P(1 + 2 * FULL, FULL) };
    bed_new(&bed, false);
    bed_run(&bed, p, 3);
    assert_int_equal(bed.arfs->n, 3);
    assert_int_equal(net_stats(bed.net)->gro_merged, 0);
    bed_free(&bed);
}

/* ---- Other protocols ------------------------------------------------------------------------- */

#define TYPE_OTHER 0x86dfu

struct other {
    unsigned n;
    uint32_t bytes;
    uint16_t head_bytes;
    struct bed *bed;
};

static void other_receive(struct sk_buff *skb, void *arg)
{
    struct other *other = arg;
    const struct flow_key none = { .protocol = 0 };
    assert_true(flow_key_equal(&skb->flow, &none));
    assert_int_equal(skb->ether_type, TYPE_OTHER);
    other->n++;
    other->bytes = skb->bytes;
    other->head_bytes = skb->head_bytes;
    assert_true(skb_header_set(skb, 32));
    assert_int_equal(skb->bytes, 66 + 200 - 32);
    assert_int_equal(skb->frag[0].offset, 32);
    /* The 64 bytes that a driver has copied and the rest are not one piece. */
    assert_int_equal(skb_together(skb, 0, 200), 200);
    skb->copied_bytes = 64;
    assert_int_equal(skb_together(skb, 0, 200), 32);
    assert_int_equal(skb_together(skb, 30, 200), 2);
    assert_int_equal(skb_together(skb, 0, 8), 8);
    assert_int_equal(skb_together(skb, 32, 200), 200);
    assert_true(skb_header_set(skb, 80));
    assert_int_equal(skb->bytes, 66 + 200 - 80);
    assert_false(skb_header_set(skb, 267));
    assert_int_equal(skb->head_bytes, 80);
    assert_true(skb_header_set(skb, 66));
    net_rig_check(other->bed->kernel, kaddr_add(skb->frag[0].page->addr, skb->frag[0].offset), 0, 1,
                  200);
    skb_free(other->bed->net, skb);
}

static int other_poll(struct k_napi *napi, int budget)
{
    struct bed *bed = K_CONTAINER(napi, struct bed, napi);
    const struct packet p = P(1, 200);
    const uint8_t type[] = { TYPE_OTHER >> 8, TYPE_OTHER & 0xff };
    (void)budget;
    for (unsigned i = 0; i < 2; i++) {
        struct sk_buff *skb = packet_new(bed, &p);
        k_poke(bed->kernel, kaddr_add(skb->head, 12), type, sizeof type);
        net_gro_receive(&bed->napi, skb);
    }
    net_gro_flush(napi, bed->net);
    k_napi_complete(napi);
    return 2;
}

/* Packets of another Ethernet type go, unmerged, past GRO and flow steering to who has registered;
 * those of a type that nobody has registered are dropped. */
static void test_other_protocol(void **state)
{
    (void)state;
    struct bed bed;
    bed_new(&bed, true);
    struct other other = { .bed = &bed };
    bed.napi.poll = other_poll;
    assert_int_equal(net_protocol_register(bed.net, ETHER_TYPE_IPV4, other_receive, &other),
                     -EEXIST);
    assert_int_equal(net_protocol_register(bed.net, TYPE_OTHER + 1, other_receive, &other), 0);
    bed_run(&bed, NULL, 0);
    assert_int_equal(other.n, 0);
    assert_int_equal(net_stats(bed.net)->dropped_packets, 2);
    assert_int_equal(net_protocol_register(bed.net, TYPE_OTHER, other_receive, &other), 0);
    assert_int_equal(net_protocol_register(bed.net, TYPE_OTHER, other_receive, &other), -EEXIST);
    bed_run(&bed, NULL, 0);
    assert_int_equal(other.n, 2);
    assert_int_equal(other.head_bytes, 66);
    assert_int_equal(other.bytes, 200);
    assert_int_equal(bed.arfs->n, 0);
    net_protocol_unregister(bed.net, TYPE_OTHER);
    bed_run(&bed, NULL, 0);
    assert_int_equal(other.n, 2);
    assert_int_equal(net_stats(bed.net)->dropped_packets, 4);
    assert_int_equal(net_stats(bed.net)->rx_packets, 6);
    bed_free(&bed);
}

/* ---- Headers --------------------------------------------------------------------------------- */

static void test_malformed(void **state)
{
    (void)state;
    static const struct {
        unsigned at;
        uint8_t value;
    } bad[] = { { 12, 9 },    { 14, 0x46 }, { 20, 0x20 }, { 46, 0x40 },
                { 46, 0xf0 }, { 16, 9 },    { 23, 1 },    { 23, 17 } };
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct bed bed;
        bed_new(&bed, true);
        struct sk_buff *skb = skb_new(bed.net);
        uint8_t head[66] = { [12] = 8, [14] = 0x45, [17] = 52, [23] = 6, [46] = 0x80 };
        skb->head_bytes = 66;
        k_poke(bed.kernel, skb->head, head, 66);
        assert_true(net_headers_parse(bed.kernel, skb));
        head[bad[i].at] = bad[i].value;
        k_poke(bed.kernel, skb->head, head, 66);
        if (net_headers_parse(bed.kernel, skb))
            fail_msg("case %u", i);
        skb_free(bed.net, skb);
        bed_free(&bed);
    }
}

/* The vectors of Microsoft's "Verifying the RSS Hash Calculation", IPv4 with TCP. */
static void test_toeplitz(void **state)
{
    (void)state;
#define IP(a, b, c, d) ((uint32_t)(a) << 24 | (b) << 16 | (c) << 8 | (d))
    static const struct {
        struct flow_key flow;
        uint32_t hash;
    } vector[] = {
        { { IP(66, 9, 149, 187), IP(161, 142, 100, 80), 2794, 1766, 6 }, 0x51ccc178 },
        { { IP(199, 92, 111, 2), IP(65, 69, 140, 83), 14230, 4739, 6 }, 0xc626b0ea },
        { { IP(24, 19, 198, 95), IP(12, 22, 207, 184), 12898, 38024, 6 }, 0x5c2b394a },
        { { IP(38, 27, 205, 30), IP(209, 142, 163, 6), 48228, 2217, 6 }, 0xafc7327f },
        { { IP(153, 39, 163, 191), IP(202, 188, 127, 2), 44251, 1303, 6 }, 0x10e828a2 },
    };
    for (unsigned i = 0; i < sizeof vector / sizeof vector[0]; i++)
        assert_int_equal(net_toeplitz(&vector[i].flow), vector[i].hash);
}

/* ---- Out ------------------------------------------------------------------------------------- */

struct out {
    struct net *net;
    struct net_device dev;
    unsigned room, n;
    uint64_t order[3000];
    bool more[3000];
    struct k_napi napi;
    bool more_to_send;
};

static enum net_xmit out_xmit(struct sk_buff *skb, struct net_device *dev)
{
    struct out *out = dev->private_data;
    k_compute(dev->kernel, 300);
    if (out->room == 0) {
        net_queue_stop(dev, skb->queue);
        return NET_XMIT_BUSY;
    }
    out->room--;
    out->more[out->n] = skb->xmit_more;
    out->order[out->n++] = skb->sequence;
    skb_free(out->net, skb);
    return NET_XMIT_OK;
}
static const struct net_device_ops out_ops = { .start_xmit = out_xmit };

static void out_send(struct out *out, uint64_t sequence)
{
    struct sk_buff *skb = skb_new(out->net);
    skb->dev = &out->dev;
    skb->head_bytes = 60;
    skb->gso_segments = 1;
    skb->sequence = sequence;
    net_dev_queue_xmit(out->net, skb);
}

static int out_poll(struct k_napi *napi, int budget)
{
    struct out *out = K_CONTAINER(napi, struct out, napi);
    (void)budget;
    out->room += 1000;
    net_queue_wake(&out->dev, 0);
    if (out->more_to_send)
        out_send(out, 1005); /* must not overtake those that wait */
    net_gro_flush(napi, out->net);
    k_napi_complete(napi);
    return 0;
}

static void test_queueing_discipline(void **state)
{
    (void)state;
    struct fake_options options = { .seed = 1 };
    struct kernel *kernel = fake_new(&options);
    struct out out = { .net = net_new(kernel, &net_params_default), .room = 2 };
    out.dev = (struct net_device){ .name = "o",
                                   .ops = &out_ops,
                                   .mtu_bytes = 1500,
                                   .n_tx_queues = 1,
                                   .n_rx_queues = 1,
                                   .running = true,
                                   .carrier = true,
                                   .private_data = &out };
    assert_int_equal(net_device_register(out.net, &out.dev), 0);
    assert_int_equal(net_device_register(out.net, &out.dev), -EEXIST);
    k_napi_init(&out.napi, kernel, out_poll);
    for (uint64_t i = 0; i < 1005; i++)
        out_send(&out, i);
    /* Two went, the third came back and waits before the others; the limit is 1000. */
    assert_int_equal(out.n, 2);
    assert_int_equal(out.dev.backlog_packets[0], 1000);
    assert_int_equal(out.dev.tx[0].drops, 3);
    assert_int_equal(out.dev.tx[0].packets, 2);
    assert_true(out.dev.tx[0].stops > 0);
    k_napi_schedule(&out.napi);
    fake_run_until(kernel, kernel->now_ps + FAKE_MS(5));
    assert_int_equal(out.n, 1002);
    for (uint64_t i = 0; i < out.n; i++)
        assert_int_equal(out.order[i], i);
    /* A doorbell is put off only if another one follows in the same go. */
    assert_false(out.more[0]);
    assert_true(out.more[2]);
    assert_false(out.more[1001]);
    unsigned rings = 0;
    for (unsigned i = 2; i < out.n; i++)
        rings += !out.more[i];
    assert_in_range(rings, 1000 / 64, 1000 / 64 + 2);
    out.room = 0;
    out.more_to_send = true;
    out_send(&out, 1003);
    out_send(&out, 1004);
    k_napi_schedule(&out.napi);
    fake_run_until(kernel, kernel->now_ps + FAKE_MS(5));
    assert_int_equal(out.n, 1005);
    for (unsigned i = 1002; i < 1005; i++)
        assert_int_equal(out.order[i], i + 1);
    /* Without a carrier nothing goes, and what waits is dropped. */
    out.room = 0;
    out_send(&out, 1);
    out_send(&out, 2);
    assert_int_equal(out.dev.backlog_packets[0], 2);
    net_device_carrier(&out.dev, false);
    assert_int_equal(out.dev.backlog_packets[0], 0);
    out_send(&out, 3);
    assert_int_equal(out.dev.tx[0].drops, 6);
    net_device_unregister(&out.dev);
    assert_null(net_device_find(out.net, "o"));
    net_free(out.net);
    for (struct k_cache *cache = kernel->caches; cache; cache = cache->next)
        assert_int_equal(k_cache_live(cache), 0);
    fake_free(kernel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_up_to_64_kib),   cmocka_unit_test(test_what_ends_a_buffer),
        cmocka_unit_test(test_checksums_cost), cmocka_unit_test(test_flows_held),
        cmocka_unit_test(test_switched_off),   cmocka_unit_test(test_other_protocol),
        cmocka_unit_test(test_other_protocol), cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_toeplitz),       cmocka_unit_test(test_queueing_discipline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
