#include "tests/support/tcp_pair.h"

static void look_for_sacks(struct seen *s, const uint8_t *head)
{
    const uint8_t *options = head + 54;
    unsigned bytes = RIG_IPV4(head) && head[23] == PROTOCOL_TCP ? head[46] / 16u * 4 - 20 : 0;
    for (unsigned at = 0; at < bytes; at += options[at] == 1 ? 1 : options[at + 1]) {
        if (options[at] != 5)
            continue;
        s->n_sacks = (options[at + 1] - 2u) / 8;
        assert_in_range(s->n_sacks, 1, TCP_SACKS);
        for (unsigned i = 0; i < s->n_sacks; i++)
            s->sack[i] = (struct tcp_sack){ net_rig_get(options + at + 2 + 8 * i, 4),
                                            net_rig_get(options + at + 6 + 8 * i, 4) };
    }
}

void scoreboard_check(const struct socket *sk)
{
    const struct tcp *tp = &sk->tcp;
    uint32_t out = 0, sacked = 0, lost = 0, again = 0;
    for (const struct sk_buff *skb = tp->head; skb != tp->unsent; skb = skb->next) {
        out += skb->gso_segments;
        sacked += skb->tcp_sacked & TCP_TAG_SACKED ? skb->gso_segments : 0;
        lost += skb->tcp_sacked & TCP_TAG_LOST ? skb->gso_segments : 0;
        again += skb->tcp_sacked & TCP_TAG_RETRANSMITTED ? skb->gso_segments : 0;
        assert_true((skb->tcp_sacked & (TCP_TAG_SACKED | TCP_TAG_LOST)) !=
                    (TCP_TAG_SACKED | TCP_TAG_LOST));
    }
    assert_int_equal(tp->packets_out, out);
    assert_int_equal(tp->sacked_out, sacked);
    assert_int_equal(tp->lost_out, lost);
    assert_int_equal(tp->retrans_out, again);
}

static bool watch(struct rig *rig, unsigned from, const uint8_t *head, uint32_t bytes, void *arg)
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
    look_for_sacks(&s, head);
    if (p->client && p->client->tcp.state == TCP_ESTABLISHED)
        scoreboard_check(p->client);
    if (from == 0 && s.payload > 0 && p->late.ps > 0 && p->n_data == p->late.number)
        rig->late_ps = p->late.ps;
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
    p->of[s.from][s.payload > 0][p->n_of[s.from][s.payload > 0]++] = p->n;
    p->seen[p->n++] = s;
    return s.lost;
}

static void accepts(void *arg)
{
    struct pair *p = arg;
    p->listener = socket_tcp_listen(p->rig->end[1].net, RIG_IP(1), p->port);
    p->server = socket_accept(p->listener);
}

void connects(void *arg)
{
    struct pair *p = arg;
    p->client = socket_tcp_connect(p->rig->end[0].net, 0, RIG_IP(1), p->port);
    p->done[0] = true;
}

void pair_run(struct pair *p, uint64_t us)
{
    fake_run_until(p->rig->kernel, p->rig->kernel->now_ps + FAKE_US(us));
}

void pair_thread(struct pair *p, int cpu, k_thread_fn *body)
{
    k_thread_new(p->rig->kernel, "thread", cpu, body, p);
}

struct pair *pair_prepare(const struct rig_options *o, uint16_t port)
{
    struct pair *p = k_zalloc(sizeof *p);
    p->port = port;
    p->rig = net_rig_new(o);
    p->rig->filter = watch;
    p->rig->filter_arg = p;
    for (unsigned host = 0; host < 2; host++)
        p->buffer[host] = k_alloc(p->rig->kernel, (int)host, 1u << 20, 64);
    pair_thread(p, 3, accepts);
    pair_run(p, 10);
    return p;
}

struct pair *pair_new(const struct rig_options *o)
{
    struct pair *p = pair_prepare(o, PORT);
    pair_thread(p, 1, connects);
    pair_run(p, 990);
    assert_non_null(p->client);
    assert_non_null(p->server);
    pair_forget(p);
    return p;
}

void closes(void *arg)
{
    struct pair *p = arg;
    if (p->client)
        socket_close(p->client);
    if (p->server)
        socket_close(p->server);
    if (p->listener)
        socket_close(p->listener);
}

void pair_free(struct pair *p)
{
    pair_thread(p, 1, closes);
    pair_run(p, 130000000);
    net_rig_free(p->rig);
    free(p);
}

struct rig_options pair_plain(void)
{
    struct rig_options o = {
        .seed = 1, .params = net_params_default, .latency_ps = FAKE_US(10), .ps_per_byte = 80
    };
    return o;
}

void client_sends(void *arg)
{
    struct pair *p = arg;
    for (uint64_t left = p->value; left > 0;) {
        uint64_t n = left < 1u << 20 ? left : 1u << 20;
        assert_int_equal(socket_send(p->client, p->buffer[0], n), n);
        left -= n;
    }
    p->done[1] = true;
}
void server_reads(void *arg)
{
    struct pair *p = arg;
    for (uint64_t left = p->value; left > 0;) {
        int64_t n = socket_receive(p->server, p->buffer[1], 1u << 20);
        assert_true(n > 0);
        left -= (uint64_t)n;
    }
    p->done[2] = true;
}

const struct seen *pair_frame(const struct pair *p, unsigned from, bool payload, unsigned n)
{
    return n < p->n_of[from][payload] ? &p->seen[p->of[from][payload][n]] : NULL;
}
unsigned pair_frames(const struct pair *p, unsigned from, bool payload)
{
    return p->n_of[from][payload];
}
void pair_forget(struct pair *p)
{
    p->n = 0;
    memset(p->n_of, 0, sizeof(p->n_of));
}

void pair_send_bytes(struct pair *p, uint64_t bytes)
{
    p->value = bytes;
    pair_thread(p, 1, client_sends);
}
