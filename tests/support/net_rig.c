#include "tests/support/net_rig.h"

uint32_t net_rig_get(const uint8_t *p, unsigned bytes)
{
    uint32_t v = 0;
    for (unsigned i = 0; i < bytes; i++)
        v = v << 8 | p[i];
    return v;
}
void net_rig_put(uint8_t *p, uint32_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        p[i] = (uint8_t)(v >> 8 * (bytes - 1 - i));
}

static void rig_interrupt(void *arg)
{
    struct rig_rx *rx = arg;
    struct rig *rig = rx->end->rig;
    rx->interrupt = false;
    if (rig->options.wander && fake_random(rig->kernel, 20) == 0)
        rx->cpu = rx->end->host * 2 + (unsigned)fake_random(rig->kernel, 2);
    unsigned cpu = rig->kernel->cpu_now;
    fake_on(rig->kernel, rx->cpu);
    k_napi_schedule(&rx->napi);
    fake_on(rig->kernel, cpu);
}

static void rig_interrupt_later(struct rig_rx *rx)
{
    struct rig *rig = rx->end->rig;
    if (!rx->interrupt)
        fake_at(rig->kernel, rig->kernel->now_ps + rig->options.moderation_ps, rig_interrupt, rx);
    rx->interrupt = true;
}

static void rig_arrive(void *arg)
{
    struct rig_frame *frame = arg;
    struct rig_rx *rx = &frame->rig->end[frame->to].rx[frame->queue];
    frame->next = NULL;
    if (rx->arrived)
        rx->arrived_tail->next = frame;
    else
        rx->arrived = frame;
    rx->arrived_tail = frame;
    rig_interrupt_later(rx);
}

static void rig_departed(void *arg)
{
    struct rig_end *end = arg;
    rig_interrupt_later(&end->rx[0]);
}

/* On the wire. */
static void rig_send(struct rig_end *end, const uint8_t *bytes, uint32_t n)
{
    struct rig *rig = end->rig;
    struct kernel *kernel = rig->kernel;
    const struct rig_options *o = &rig->options;
    uint64_t begin = end->free_ps > kernel->now_ps ? end->free_ps : kernel->now_ps;
    end->free_ps = begin + (n + 24) * o->ps_per_byte;
    end->frames++;
    if (RIG_IPV4(bytes))
        end->payload += RIG_PAYLOAD(bytes);
    rig->late_ps = 0;
    if ((rig->filter && rig->filter(rig, end->host, bytes, n, rig->filter_arg)) ||
        fake_random(kernel, 1000) < o->loss_permille) {
        rig->lost++;
        return;
    }
    unsigned copies = 1 + (fake_random(kernel, 1000) < o->repeat_permille);
    while (copies-- > 0) {
        struct rig_frame *frame = k_zalloc(sizeof *frame);
        uint64_t at = end->free_ps + o->latency_ps + rig->late_ps;
        if (fake_random(kernel, 1000) < o->overtake_permille)
            at += fake_random(kernel, 20 * o->latency_ps + 1);
        frame->rig = rig;
        frame->to = !end->host;
        frame->queue = o->spread ? (unsigned)fake_random(kernel, RIG_QUEUES) : 0;
        frame->bytes = n;
        memcpy(frame->byte, bytes, n);
        if (o->damage_permille && fake_random(kernel, 1000) < o->damage_permille) {
            frame->byte[34 + fake_random(kernel, n - 34)] ^= (uint8_t)(1u
                                                                       << fake_random(kernel, 8));
            frame->damaged = true;
            rig->damaged++;
        }
        fake_at(kernel, at, rig_arrive, frame);
    }
}

void net_rig_inject(struct rig *rig, unsigned to, const uint8_t *bytes, uint32_t n)
{
    struct rig_frame *frame = k_zalloc(sizeof *frame);
    assert_true(n <= sizeof frame->byte);
    frame->rig = rig;
    frame->to = to;
    frame->bytes = n;
    memcpy(frame->byte, bytes, n);
    rig_arrive(frame);
}

/* All of the packet's payload from `at` on, without time. */
static void rig_gather(struct kernel *kernel, const struct sk_buff *skb, uint8_t *to)
{
    uint32_t n = 0;
    for (unsigned i = 0; i < skb->n_frags; i++) {
        k_peek(kernel, kaddr_add(skb->frag[i].page->addr, skb->frag[i].offset), to + n,
               skb->frag[i].bytes);
        n += skb->frag[i].bytes;
    }
    assert_int_equal(n, skb->bytes);
    assert_null(skb->frag_list);
}

static unsigned rig_ring(const struct rig_end *end)
{
    return end->rig->options.ring ? end->rig->options.ring : 64;
}

static enum net_xmit rig_start_xmit(struct sk_buff *skb, struct net_device *dev)
{
    struct rig_end *end = dev->private_data;
    struct kernel *kernel = end->rig->kernel;
    static uint8_t payload[NET_GSO_BYTES_MAX], frame[9100];
    unsigned ring = rig_ring(end);
    assert_false(end->handing[skb->queue]); /* one CPU at a time */
    end->handing[skb->queue] = true;
    k_compute(kernel, 100);
    end->handing[skb->queue] = false;
    if (end->n_sent >= ring) {
        net_queue_stop(dev, skb->queue);
        return NET_XMIT_BUSY;
    }
    end->n_sent++;
    /* A socket changes its queue only when nothing of it is outstanding (but acknowledgements). */
    for (const struct sk_buff *other = end->sent; other; other = other->next)
        assert_true(other->socket != skb->socket || other->queue == skb->queue ||
                    other->truesize < 64);
    end->on_queue[skb->queue]++;
    skb->next = NULL;
    if (end->sent)
        end->sent_tail->next = skb;
    else
        end->sent = skb;
    end->sent_tail = skb;
    rig_gather(kernel, skb, payload);
    k_peek(kernel, skb->head, frame, skb->head_bytes);
    assert_true(skb->gso_segments >= 1);
    if (end->largest < skb->bytes)
        end->largest = skb->bytes;
    uint32_t seq = RIG_SEQ(frame), done = 0;
    uint8_t flags = RIG_FLAGS(frame);
    for (unsigned i = 0; i < skb->gso_segments; i++) {
        uint32_t n = skb->gso_bytes && skb->bytes - done > skb->gso_bytes ? skb->gso_bytes
                                                                          : skb->bytes - done;
        bool last = i + 1u == skb->gso_segments;
        assert_true(n > 0 || skb->bytes == 0);
        assert_true(skb->head_bytes - 14 + n <= dev->mtu_bytes);
        if (RIG_IPV4(frame))
            net_rig_put(frame + 16, skb->head_bytes - 14 + n, 2);
        if (RIG_IPV4(frame) && frame[23] == 6) {
            net_rig_put(frame + 38, seq + done, 4);
            frame[47] = last ? flags : (uint8_t)(flags & ~0x09);
        }
        memcpy(frame + skb->head_bytes, payload + done, n);
        rig_send(end, frame, skb->head_bytes + n);
        done += n;
    }
    assert_int_equal(done, skb->bytes);
    skb->time_ps = end->free_ps;
    fake_at(kernel, end->free_ps, rig_departed, end);
    return NET_XMIT_OK;
}

static void rig_receive(struct rig_rx *rx, struct rig_frame *frame)
{
    struct rig_end *end = rx->end;
    struct kernel *kernel = end->rig->kernel;
    struct k_page *page = k_page_alloc(kernel, K_NODE_LOCAL, frame->bytes > 3000 ? 2 : 0);
    if (page) {
        struct sk_buff *skb = skb_new(end->net);
        bool tcp = RIG_IPV4(frame->byte) && frame->byte[23] == 6;
        uint32_t head = tcp ? 34u + frame->byte[46] / 16u * 4 : 42;
        uint32_t bytes = frame->bytes < 60 ? 60 : frame->bytes; /* padded, as on a wire */
        k_poke(kernel, page->addr, frame->byte, bytes);
        skb->dev = &end->dev;
        skb->queue = (uint16_t)frame->queue;
        skb->head = page->addr;
        skb->head_page = page;
        skb->head_bytes = (uint16_t)head;
        skb->checksum = end->rig->options.unchecked ? NET_CHECKSUM_NONE
                        : frame->damaged            ? NET_CHECKSUM_WRONG
                                                    : NET_CHECKSUM_RIGHT;
        if (bytes > head) {
            k_page_get(page);
            skb->frag[0] = (struct skb_frag){ page, head, bytes - head, (int8_t)page->node };
            skb->n_frags = 1;
            skb->bytes = bytes - head;
        }
        net_gro_receive(&rx->napi, skb);
    }
    free(frame);
}

static void rig_complete(struct rig_end *end)
{
    while (end->sent && end->sent->time_ps <= end->rig->kernel->now_ps) { /* it has left */
        struct sk_buff *skb = end->sent;
        end->sent = skb->next;
        end->n_sent--;
        skb_free(end->net, skb);
    }
    for (uint16_t q = 0; q < end->dev.n_tx_queues; q++)
        if (end->dev.queue_stopped[q] && end->n_sent < rig_ring(end))
            net_queue_wake(&end->dev, q);
}

static int rig_poll(struct k_napi *napi, int budget)
{
    struct rig_rx *rx = K_CONTAINER(napi, struct rig_rx, napi);
    struct rig_end *end = rx->end;
    struct kernel *kernel = end->rig->kernel;
    int done = 0;
    k_compute(kernel, 100);
    if (rx == &end->rx[0])
        rig_complete(end);
    for (; done < budget && rx->arrived; done++) {
        struct rig_frame *frame = rx->arrived;
        rx->arrived = frame->next;
        rig_receive(rx, frame);
    }
    net_gro_flush(napi, end->net);
    if (done < budget)
        k_napi_complete(napi);
    return done;
}

static int rig_open(struct net_device *dev)
{
    dev->running = dev->carrier = true;
    return 0;
}
static void rig_stop(struct net_device *dev)
{
    dev->running = false;
}
const struct net_device_ops rig_ops = { .open = rig_open,
                                        .stop = rig_stop,
                                        .start_xmit = rig_start_xmit };

struct rig *net_rig_new(const struct rig_options *options)
{
    struct fake_options fake = { .seed = options->seed,
                                 .n_cpus = 4,
                                 .n_nodes = 2,
                                 .stall_percent = options->stall_percent,
                                 .fail_page_every = options->fail_page_every };
    struct rig *rig = k_zalloc(sizeof *rig);
    rig->options = *options;
    rig->kernel = fake_new(&fake);
    for (unsigned host = 0; host < 2; host++) {
        struct rig_end *end = &rig->end[host];
        end->rig = rig;
        end->host = host;
        for (unsigned q = 0; q < RIG_QUEUES; q++) {
            end->rx[q] = (struct rig_rx){ .end = end, .cpu = host * 2 + q };
            k_napi_init(&end->rx[q].napi, rig->kernel, rig_poll);
        }
        fake_on(rig->kernel, host * 2);
        end->net = net_new(rig->kernel, &options->params);
        end->dev.name = host ? "b0" : "a0";
        end->dev.ops = &rig_ops;
        end->dev.mac.byte[5] = (uint8_t)host;
        end->dev.ip = RIG_IP(host);
        end->dev.mtu_bytes = options->mtu_bytes ? options->mtu_bytes : 1500;
        end->dev.features = options->no_tso ? 0 : NET_FEATURE_TSO;
        end->dev.n_tx_queues = options->one_queue ? 1 : RIG_QUEUES;
        end->dev.n_rx_queues = RIG_QUEUES;
        end->dev.private_data = end;
        assert_int_equal(net_device_register(end->net, &end->dev), 0);
        memset(end->dev.rx_queue_of_cpu, 0xff, sizeof end->dev.rx_queue_of_cpu);
        xps_map_default(&end->dev);
        rig_open(&end->dev);
        net_route_add(end->net, RIG_IP(!host), &end->dev);
        net_neighbour_add(end->net, RIG_IP(!host),
                          (struct net_mac){ { 0, 0, 0, 0, 0, (uint8_t)!host } });
    }
    return rig;
}

void net_rig_free(struct rig *rig)
{
    struct kernel *kernel = rig->kernel;
    for (unsigned host = 0; host < 2; host++) {
        struct rig_end *end = &rig->end[host];
        for (struct sk_buff *next, *skb = end->sent; skb; skb = next) {
            next = skb->next;
            skb_free(end->net, skb);
        }
        for (unsigned q = 0; q < RIG_QUEUES; q++)
            for (struct rig_frame *next, *frame = end->rx[q].arrived; frame; frame = next) {
                next = frame->next;
                free(frame);
            }
        assert_null(end->net->all); /* all sockets have ended by themselves */
        net_free(end->net);
    }
    for (struct k_cache *cache = kernel->caches; cache; cache = cache->next)
        assert_int_equal(k_cache_live(cache), 0);
    assert_int_equal(kernel->pages_live, 0);
    assert_int_equal(kernel->timers_live, 0);
    assert_int_equal(kernel->n_faults, 0);
    for (struct fake_event *event = kernel->events; event; event = event->next)
        if (event->fn == rig_arrive)
            free(event->arg);
    fake_free(kernel);
    free(rig);
}

/* The byte at a position of stream `stream`. */
static uint8_t rig_byte(unsigned stream, uint64_t position)
{
    uint64_t z = (position + 1) * 0x9e3779b97f4a7c15u + stream * 0x2545f4914f6cdd1du;
    return (uint8_t)(z >> 56 ^ z >> 24);
}

void net_rig_fill(struct kernel *kernel, struct kaddr at, unsigned stream, uint64_t position,
                  size_t bytes)
{
    uint8_t part[4096];
    for (size_t done = 0; done < bytes;) {
        size_t n = bytes - done < sizeof part ? bytes - done : sizeof part;
        for (size_t i = 0; i < n; i++)
            part[i] = rig_byte(stream, position + done + i);
        k_poke(kernel, kaddr_add(at, done), part, n);
        done += n;
    }
}

void net_rig_check(struct kernel *kernel, struct kaddr at, unsigned stream, uint64_t position,
                   size_t bytes)
{
    uint8_t part[4096];
    for (size_t done = 0; done < bytes;) {
        size_t n = bytes - done < sizeof part ? bytes - done : sizeof part;
        k_peek(kernel, kaddr_add(at, done), part, n);
        for (size_t i = 0; i < n; i++)
            if (part[i] != rig_byte(stream, position + done + i))
                fail_msg("seed %llu: stream %u differs at %llu",
                         (unsigned long long)kernel->options.seed, stream,
                         (unsigned long long)(position + done + i));
        done += n;
    }
}
