#include "tests/support/party.h"

#define PARTY_PORT 5001
#define SECOND     (1000 * SIM_PS_PER_MS)

const struct k_pci_id party_nic_ids[] = { { NIC_VENDOR_ID, NIC_DEVICE_ID }, { 0, 0 } };

static void party_wait(struct world_fixture *w, const unsigned *count, unsigned n,
                       sim_time within_ps)
{
    sim_time until_ps = sim_now(w->sim) + within_ps;
    while (*count < n && sim_now(w->sim) < until_ps) {
        sim_run(w->sim, sim_now(w->sim) + SIM_PS_PER_MS, NULL);
        assert_null(sim_error(w->sim));
    }
    assert_int_equal(*count, n);
}

void party_register(void *arg)
{
    struct party *p = arg;
    p->net = net_new(p->kernel, &net_params_default);
    p->driver = nic_driver_new(p->net, p->kernel, &nic_driver_params_default, "eth");
    k_pci_register(p->kernel, nic_driver_pci(p->driver));
}
void party_open(void *arg)
{
    struct party *p = arg;
    p->dev = nic_driver_device(p->driver, 0);
    assert_non_null(p->dev);
    p->dev->ip = p->ip;
    assert_int_equal(p->dev->ops->open(p->dev), 0);
    assert_true(p->dev->running && p->dev->carrier);
    xps_map_default(p->dev);
}
void party_end(void *arg)
{
    struct party *p = arg;
    nic_driver_free(p->driver);
    net_free(p->net);
    p->driver = NULL;
}
void party_remove(void *arg)
{
    struct party *p = arg;
    struct net_device *dev = nic_driver_device(p->driver, 0);
    k_pci_remove(K_CONTAINER(dev->device, struct k_pci_dev, device), false);
    party_end(p);
}

void party_know(struct party *p, const struct party *other)
{
    net_neighbour_add(p->net, other->ip, other->dev->mac);
    net_route_add(p->net, other->ip, p->dev);
}

static void party_receiver(void *arg)
{
    struct party_stream *s = arg;
    struct party *p = s->to;
    struct socket *listener = socket_tcp_listen(p->net, p->ip, PARTY_PORT);
    struct socket *socket = socket_accept(listener);
    assert_non_null(socket);
    struct kaddr buffer = k_alloc(p->kernel, K_NODE_LOCAL, 64 * KIB, K_PAGE_BYTES);
    int64_t n;
    while ((n = socket_receive(socket, buffer, 64 * KIB)) > 0) {
        const uint64_t tag = payload_mark(s->number, s->received);
        struct payload_difference is;
        if (!payload_check(p->kernel, buffer, tag, (size_t)n, &is))
            fail_msg("from byte %llu on: tag %#llx, not %#llx", (unsigned long long)s->received,
                     (unsigned long long)is.found, (unsigned long long)is.expected);
        s->received += (uint64_t)n;
    }
    assert_int_equal(n, 0);
    assert_int_equal(s->received, s->bytes);
    socket_close(socket);
    socket_close(listener);
    s->done++;
}

static void party_sender(void *arg)
{
    struct party_stream *s = arg;
    struct party *p = s->from;
    struct socket *socket = socket_tcp_connect(p->net, p->ip, s->to->ip, PARTY_PORT);
    assert_non_null(socket);
    struct kaddr buffer = k_alloc(p->kernel, K_NODE_LOCAL, 64 * KIB, K_PAGE_BYTES);
    for (uint64_t sent = 0; sent < s->bytes; sent += 64 * KIB) {
        payload_fill(p->kernel, buffer, payload_mark(s->number, sent), 64 * KIB);
        assert_int_equal(socket_send(socket, buffer, 64 * KIB), 64 * KIB);
    }
    socket_close(socket);
    s->done++;
}

void party_stream(struct world_fixture *w, struct party *from, struct party *to, uint64_t bytes,
                  uint16_t number)
{
    struct party_stream s = { .from = from, .to = to, .bytes = bytes, .number = number };
    k_thread_new(to->kernel, "receiver", 1, party_receiver, &s);
    k_thread_new(from->kernel, "sender", 1, party_sender, &s);
    party_wait(w, &s.done, 2, SECOND);
    assert_int_equal(s.received, bytes);
}
