/*
 * A connection between the two hosts of net_rig.h, and what its wire saw: frames can be lost one by
 * one. Included by one file of a test, after cmocka.h.
 */
#ifndef TESTS_MODEL_TCP_PAIR_H
#define TESTS_MODEL_TCP_PAIR_H

#include "tests/model/net_rig.h"

#define PORT       5001u
#define FRAMES_MAX 100000u

/* What went onto the wire. */
struct seen {
    uint64_t at_ps;
    unsigned from;
    uint32_t seq, ack, payload, window;
    uint8_t flags;
    bool lost;
};
struct pair {
    struct rig *rig;
    struct socket *client, *server, *listener;
    struct kaddr buffer[2]; /* of each host, 1 MiB */
    struct seen seen[FRAMES_MAX];
    unsigned n;
    uint16_t port;
    /* Of host lose_from's frames (2: any), with data or any. */
    unsigned lose_from, lose_skip, lose_n;
    bool lose_data_only;
    struct {
        unsigned number, times; /* the number-th frame of data from host 0, so often */
        uint32_t seq;
    } drop[2];
    unsigned n_data;
    uint32_t peak_alloc;
    bool done[4];
    uint64_t value;
};

static inline bool watch(struct rig *rig, unsigned from, const uint8_t *head, uint32_t bytes,
                         void *arg)
{
    struct pair *p = arg;
    (void)bytes;
    struct seen s = { .at_ps = rig->kernel->now_ps,
                      .from = from,
                      .seq = RIG_SEQ(head),
                      .ack = RIG_ACK(head),
                      .payload = RIG_PAYLOAD(head),
                      .window = RIG_WINDOW(head),
                      .flags = RIG_FLAGS(head) };
    bool counts = (p->lose_from == from || p->lose_from == 2) && (!p->lose_data_only || s.payload);
    if (counts && p->lose_n > 0) {
        if (p->lose_skip > 0)
            p->lose_skip--;
        else {
            p->lose_n--;
            s.lost = true;
        }
    }
    for (unsigned i = 0; i < 2 && from == 0 && s.payload > 0; i++) {
        if (p->n_data == p->drop[i].number)
            p->drop[i].seq = s.seq;
        if (p->drop[i].times > 0 && s.seq == p->drop[i].seq && p->n_data >= p->drop[i].number) {
            p->drop[i].times--;
            s.lost = true;
        }
    }
    p->n_data += from == 0 && s.payload > 0;
    if (p->client && p->client->wmem_alloc > p->peak_alloc)
        p->peak_alloc = p->client->wmem_alloc;
    assert_true(p->n < FRAMES_MAX);
    p->seen[p->n++] = s;
    return s.lost;
}

static inline void accepts(void *arg)
{
    struct pair *p = arg;
    p->listener = socket_tcp_listen(p->rig->end[1].net, RIG_IP(1), p->port);
    p->server = socket_accept(p->listener);
}

static inline void connects(void *arg)
{
    struct pair *p = arg;
    p->client = socket_tcp_connect(p->rig->end[0].net, 0, RIG_IP(1), p->port);
    p->done[0] = true;
}

static inline void run(struct pair *p, uint64_t us)
{
    fake_run_until(p->rig->kernel, p->rig->kernel->now_ps + FAKE_US(us));
}

static inline void thread(struct pair *p, int cpu, k_thread_fn *body)
{
    k_thread_new(p->rig->kernel, "thread", cpu, body, p);
}

static inline struct pair *pair_prepare(const struct rig_options *o, uint16_t port)
{
    struct pair *p = k_zalloc(sizeof *p);
    p->port = port;
    p->rig = rig_new(o);
    p->rig->filter = watch;
    p->rig->filter_arg = p;
    for (unsigned host = 0; host < 2; host++)
        p->buffer[host] = k_alloc(p->rig->kernel, (int)host, 1u << 20, 64);
    thread(p, 3, accepts);
    run(p, 10);
    return p;
}

static inline struct pair *pair_new(const struct rig_options *o)
{
    struct pair *p = pair_prepare(o, PORT);
    thread(p, 1, connects);
    run(p, 990);
    assert_non_null(p->client);
    assert_non_null(p->server);
    p->n = 0;
    return p;
}

static inline void closes(void *arg)
{
    struct pair *p = arg;
    if (p->client)
        socket_close(p->client);
    if (p->server)
        socket_close(p->server);
    if (p->listener)
        socket_close(p->listener);
}

static inline void pair_free(struct pair *p)
{
    thread(p, 1, closes);
    run(p, 130000000);
    rig_free(p->rig);
    free(p);
}

static inline struct rig_options plain(void)
{
    struct rig_options o = {
        .seed = 1, .params = net_params_default, .latency_ps = FAKE_US(10), .ps_per_byte = 80
    };
    return o;
}

/* p->value bytes. */
static inline void client_sends(void *arg)
{
    struct pair *p = arg;
    for (uint64_t left = p->value; left > 0;) {
        uint64_t n = left < 1u << 20 ? left : 1u << 20;
        assert_int_equal(socket_send(p->client, p->buffer[0], n), n);
        left -= n;
    }
    p->done[1] = true;
}
static inline void server_reads(void *arg)
{
    struct pair *p = arg;
    for (uint64_t left = p->value; left > 0;) {
        int64_t n = socket_receive(p->server, p->buffer[1], 1u << 20);
        assert_true(n > 0);
        left -= (uint64_t)n;
    }
    p->done[2] = true;
}

/* The n-th (from 0) frame from a host that has payload, or has none. */
static inline const struct seen *frame(const struct pair *p, unsigned from, bool payload,
                                       unsigned n)
{
    for (unsigned i = 0; i < p->n; i++)
        if (p->seen[i].from == from && (p->seen[i].payload > 0) == payload && n-- == 0)
            return &p->seen[i];
    return NULL;
}
static inline unsigned frames(const struct pair *p, unsigned from, bool payload)
{
    unsigned n = 0;
    while (frame(p, from, payload, n))
        n++;
    return n;
}

static inline void send_bytes(struct pair *p, uint64_t bytes)
{
    p->value = bytes;
    thread(p, 1, client_sends);
}

/* Charges between a timer and the wire. */
#define SLACK_PS FAKE_US(3)
#define assert_at(at, expected)                                   \
    do {                                                          \
        assert_in_range((at), (expected), (expected) + SLACK_PS); \
    } while (0)

#endif
