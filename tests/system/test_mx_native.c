/*
 * Two simulated hosts with Myri-10G adapters and the firmware of Myrinet Express: messages of all
 * sizes, by the library of MX, between the hosts and within one (by shared memory or by the
 * adapter), mark for mark; latency and bandwidth of a ping-pong; losses on the wire, and of a queue
 * that is full. The same with Open-MX over the Ethernet firmware at one end or at both: they speak
 * one protocol. Then all is closed, and nothing may be left.
 */
#include "tests/support/world_fixture.h"

#include <errno.h>
#include <string.h>

#include "logic/mx/mx.h"
#include "logic/myri/mx_native.h"
#include "logic/myri/myri10ge.h"
#include "logic/net/net.h"
#include "logic/openmx/openmx.h"
#include "models/base/payload.h"
#include "models/myri/myri.h"
#include "models/os/os.h"

#define HOST(NAME)                                                                      \
    NAME " = { ports = ( { name = \"rp0\"; socket = 0; lanes = 8; generation = 1; } );" \
         " cpu = { sockets = 1; cores_per_socket = 4; clock_ghz = 2.33; }; };\n"
#define NIC(NAME, FIRMWARE)                                                                \
    NAME " = { type = \"myri.myri10g\"; lanes = 8; generation = 1; firmware = \"" FIRMWARE \
         "\"; };\n"
#define WORLD_OF(A, B, MORE)                                                                      \
    "hosts = {\n" HOST("server")                                                                  \
        HOST("client") "};\n"                                                                     \
                       "devices = {\n" NIC("a", A)                                                \
                           NIC("b", B) "};\n"                                                     \
                                       "cables = ( { from = \"server.s0.rp0\"; to = \"a.p0\"; }," \
                                       " { from = \"client.s0.rp0\"; to = \"b.p0\"; },"           \
                                       " { from = \"a.e0\"; to = \"b.e0\"; " MORE " } );\n"

#define WORLD(MORE) WORLD_OF("mx", "mx", MORE)

#define KEY      77u
#define STREAM   11u
#define LARGEST  (1u << 20)
#define FOREVER  UINT64_MAX
#define ALL_BITS UINT64_MAX

struct side {
    struct rig *rig;
    struct kernel *kernel;
    struct mx_native *driver;
    struct mx_board *board;
    /* Open-MX */
    struct net *net;
    struct myri10ge *ethernet; /* NULL: native */
    struct openmx *omx;
};
struct rig {
    struct world_fixture w;
    struct side side[2];
    unsigned up, done, down;
    uint64_t round_ps; /* of the last ping-pong */
};
struct process {
    struct rig *rig;
    struct kernel *kernel;
    struct mx_board *board, *to_board;
    uint8_t id, to_id;
    bool first;
    struct mx_endpoint *ep;
    struct mx_peer peer;
    struct kaddr out, in;
    const uint32_t *sizes;
    unsigned n, rounds;
};

/* ---- Up and down ----------------------------------------------------------------------------- */

static void up_open_mx(struct side *s)
{
    assert_int_equal(k_pci_register(s->kernel, myri10ge_pci(s->ethernet)), 1);
    struct net_device *dev = myri10ge_device(s->ethernet, 0);
    assert_int_equal(dev->ops->open(dev), 0);
    s->omx = openmx_new(s->net, dev, NULL, &openmx_options_default);
    assert_non_null(s->omx);
    s->board = openmx_board(s->omx);
    s->rig->up++;
}

static void down_open_mx(struct side *s)
{
    struct net_device *dev = myri10ge_device(s->ethernet, 0);
    k_sleep(s->kernel, K_MS); /* its last packets have left */
    k_sleep(s->kernel, openmx_options_default.grace_ps + K_MS);
    assert_int_equal(openmx_regions_live(s->omx), 0);
    openmx_free(s->omx);
    k_pci_remove(K_CONTAINER(dev->device, struct k_pci_dev, device), false);
    myri10ge_free(s->ethernet);
    net_free(s->net);
    s->rig->down++;
}

static void up_body(void *arg)
{
    struct side *s = arg;
    if (s->ethernet != NULL) {
        up_open_mx(s);
        return;
    }
    assert_int_equal(k_pci_register(s->kernel, mx_native_pci(s->driver)), 1);
    s->board = mx_native_board(s->driver, 0);
    assert_non_null(s->board);
    s->rig->up++;
}

static void down_body(void *arg)
{
    struct side *s = arg;
    if (s->ethernet != NULL) {
        down_open_mx(s);
        return;
    }
    struct model *nic = world_device(s->rig->w.world, s == s->rig->side ? "a" : "b");
    assert_int_equal(s->board->nic_id, myri_mac(nic));
    assert_int_equal(mx_native_regions_live(s->board), 0);
    struct k_pci_dev *pci = mx_native_device(s->board);
    k_pci_remove(pci, false);
    assert_null(mx_native_board(s->driver, 0));
    mx_native_free(s->driver);
    s->rig->down++;
}

static void rig_open_with(struct rig *r, const char *world, bool shared_memory)
{
    static const char *const names[] = { "server", "client" };
    *r = (struct rig){ .up = 0 };
    fixture_open(&r->w, world);
    for (unsigned i = 0; i < 2; i++) {
        struct side *s = &r->side[i];
        struct host *host = world_host(r->w.world, names[i]);
        s->rig = r;
        s->kernel = os_new(host, host_os_params(host));
        if (myri_firmware(world_device(r->w.world, i == 0 ? "a" : "b")) == MYRI_FIRMWARE_MX) {
            s->driver = mx_native_new(s->kernel, shared_memory);
        } else {
            s->net = net_new(s->kernel, &net_params_default);
            s->ethernet = myri10ge_new(s->net, s->kernel, &myri10ge_params_default, "myri");
        }
        k_thread_new(s->kernel, "up", 0, up_body, s);
    }
    fixture_run_until(&r->w, &r->up, 2, 1000 * SIM_PS_PER_MS);
}

static void rig_open(struct rig *r, const char *world)
{
    rig_open_with(r, world, true);
}

static void rig_close(struct rig *r)
{
    for (unsigned i = 0; i < 2; i++)
        k_thread_new(r->side[i].kernel, "down", 0, down_body, &r->side[i]);
    fixture_run_until(&r->w, &r->down, 2, 1000 * SIM_PS_PER_MS);
    sim_run(r->w.sim, sim_now(r->w.sim) + 10 * SIM_PS_PER_MS, NULL);
    for (unsigned i = 0; i < 2; i++)
        os_free(r->side[i].kernel);
    fixture_close(&r->w);
}

/* ---- Processes ------------------------------------------------------------------------------- */

static void check(struct process *p, uint64_t mark_at, uint32_t bytes)
{
    struct payload_difference is;
    if (!payload_check(p->kernel, p->in, payload_mark(STREAM, mark_at), bytes, &is))
        fail_msg("endpoint %u: %u bytes: found %#llx, expected %#llx", p->id, bytes,
                 (unsigned long long)is.found, (unsigned long long)is.expected);
}

static void transfer(struct process *p, bool send, uint32_t bytes, uint64_t match, uint64_t mark_at)
{
    const struct mx_segment segment = { send ? p->out : p->in, bytes };
    struct mx_request *request = NULL;
    struct mx_status status;
    if (send) {
        payload_fill(p->kernel, p->out, payload_mark(STREAM, mark_at), bytes);
        assert_int_equal(mx_isend(p->ep, &segment, bytes > 0, &p->peer, match, NULL, &request), 0);
    } else {
        payload_fill(p->kernel, p->in, 0, bytes);
        assert_int_equal(mx_irecv(p->ep, &segment, bytes > 0, match, ALL_BITS, NULL, &request), 0);
    }
    assert_true(mx_wait(p->ep, &request, FOREVER, &status));
    assert_int_equal(status.code, MX_SUCCESS);
    assert_int_equal(status.bytes, bytes);
    if (!send)
        check(p, mark_at, bytes);
}

static void open_and_connect(struct process *p, const struct mx_options *options)
{
    int error;
    assert_int_equal(mx_open(p->board, p->id, KEY, options, &p->ep), 0);
    while ((error = mx_connect(p->ep, p->to_board->nic_id, p->to_id, KEY,
                               k_now_ps(p->kernel) + 100 * K_MS, &p->peer)) == -ENOENT)
        k_sleep(p->kernel, 10 * K_US); /* it is not open yet */
    assert_int_equal(error, 0);
}

/* Each size to and fro, `rounds` times; the first process measures the rounds but for the first. */
static void process_body(void *arg)
{
    struct process *p = arg;
    uint64_t match = 1;
    open_and_connect(p, &mx_options_default);
    p->out = k_alloc(p->kernel, 0, LARGEST, K_PAGE_BYTES);
    p->in = k_alloc(p->kernel, 0, LARGEST, K_PAGE_BYTES);
    for (unsigned i = 0; i < p->n; i++) {
        uint64_t begin_ps = 0;
        for (unsigned round = 0; round < p->rounds; round++, match++) {
            if (round == 1)
                begin_ps = k_now_ps(p->kernel);
            transfer(p, p->first, p->sizes[i], match, 5 * match);
            transfer(p, !p->first, p->sizes[i], match, 7 * match);
        }
        if (p->first && p->rounds > 1)
            p->rig->round_ps = (k_now_ps(p->kernel) - begin_ps) / (p->rounds - 1);
    }
    mx_close(p->ep);
    p->rig->done++;
}

/* Between the hosts, or within the client. */
static void ping_pong(struct rig *r, bool within, const uint32_t *sizes, unsigned n,
                      unsigned rounds, unsigned ms)
{
    struct process p[2];
    for (unsigned i = 0; i < 2; i++) {
        struct side *s = &r->side[within ? 1 : i], *to = &r->side[within ? 1 : !i];
        p[i] = (struct process){ .rig = r,
                                 .kernel = s->kernel,
                                 .board = s->board,
                                 .to_board = to->board,
                                 .id = (uint8_t)(3 + i),
                                 .to_id = (uint8_t)(3 + !i),
                                 .first = i == 0,
                                 .sizes = sizes,
                                 .n = n,
                                 .rounds = rounds };
        k_thread_new(s->kernel, "process", 1 + (int)i, process_body, &p[i]);
    }
    r->done = 0;
    fixture_run_until(&r->w, &r->done, 2, ms * SIM_PS_PER_MS);
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static const uint32_t sizes[] = { 0,     1,     31,    32,     33,     100,    128,
                                  129,   4095,  4096,  4097,   8000,   9000,   32767,
                                  32768, 32769, 65536, 100000, 500001, LARGEST };
#define N_SIZES (sizeof sizes / sizeof sizes[0])

static void test_messages_of_all_sizes(void **state)
{
    struct rig r;
    (void)state;
    rig_open(&r, WORLD(""));
    ping_pong(&r, false, sizes, N_SIZES, 2, 2000);
    assert_int_equal(myri_drops(world_device(r.w.world, "a")), 0);
    assert_int_equal(myri_stats(world_device(r.w.world, "a"))->loopback, 0);
    rig_close(&r);
}

static uint64_t commands(const struct rig *r, const char *device)
{
    return myri_stats(world_device(r->w.world, device))->commands;
}

/* By shared memory nothing passes the adapter, which is not told of regions; messages above 4 KiB
 * are copied once. */
static void test_within_a_host(void **state)
{
    struct rig r;
    struct mx_native_stats stats;
    unsigned large = 0;
    (void)state;
    rig_open(&r, WORLD(""));
    ping_pong(&r, true, sizes, N_SIZES, 2, 2000);
    for (unsigned i = 0; i < N_SIZES; i++)
        large += sizes[i] > 4096;
    mx_native_stats_get(r.side[1].board, &stats);
    assert_int_equal(stats.local_pulls, 2 * 2 * large);
    assert_true(stats.local > 2 * 2 * (N_SIZES + large)); /* rendezvous and notification */
    assert_int_equal(stats.local_full, 0);
    assert_int_equal(commands(&r, "b"), commands(&r, "a") + 2 * 2); /* endpoints come and go */
    assert_int_equal(myri_stats(world_device(r.w.world, "b"))->loopback, 0);
    assert_int_equal(myri_stats(world_device(r.w.world, "b"))->rx_packets, 0);
    assert_int_equal(myri_stats(world_device(r.w.world, "a"))->rx_packets, 0);
    rig_close(&r);
}

static void test_within_a_host_by_the_adapter(void **state)
{
    struct rig r;
    struct mx_native_stats stats;
    (void)state;
    rig_open_with(&r, WORLD(""), false);
    ping_pong(&r, true, sizes, N_SIZES, 2, 2000);
    mx_native_stats_get(r.side[1].board, &stats);
    assert_int_equal(stats.local, 0);
    assert_true(myri_stats(world_device(r.w.world, "b"))->loopback > N_SIZES);
    assert_int_equal(myri_stats(world_device(r.w.world, "a"))->rx_packets, 0);
    rig_close(&r);
}

/* ---- Many to one ----------------------------------------------------------------------------- */

#define SENDERS 3u
#define BURST   500u
static const struct mx_options impatient = { .resend_ps = K_MS,
                                             .resends_max = 1000,
                                             .ack_delay_ps = K_MS,
                                             .acks_max = 4,
                                             .cached_regions = 64,
                                             .linger_ps = K_S,
                                             .poll_ps = 50 * K_NS };

/* Tiny ones, small ones, medium ones in the send ring, large ones. */
static uint32_t burst_bytes(unsigned i)
{
    return i % 100 == 99 ? 20000 + i : i % 10 == 9 ? 100 + i : i % 10 == 4 ? 40 : 8 + i % 25;
}

/* Sends all without waiting for anything. */
static void burst_body(void *arg)
{
    struct process *p = arg;
    struct mx_request *request[BURST];
    struct mx_status status;
    open_and_connect(p, &impatient);
    p->out = k_alloc(p->kernel, 0, BURST * 32768ull, K_PAGE_BYTES);
    for (unsigned i = 0; i < BURST; i++) {
        const struct mx_segment segment = { kaddr_add(p->out, i * 32768ull), burst_bytes(i) };
        payload_fill(p->kernel, segment.at, payload_mark(STREAM, p->id * 1000u + i), segment.bytes);
        assert_int_equal(mx_isend(p->ep, &segment, 1, &p->peer, p->id, NULL, &request[i]), 0);
    }
    for (unsigned i = 0; i < BURST; i++) {
        assert_true(mx_wait(p->ep, &request[i], FOREVER, &status));
        assert_int_equal(status.code, MX_SUCCESS);
    }
    mx_close(p->ep);
    p->rig->done++;
}

/* Connects all, then does not look before they have sent what they could. */
static void sink_body(void *arg)
{
    struct process *p = arg;
    open_and_connect(p, &impatient);
    p->in = k_alloc(p->kernel, 0, 32768, K_PAGE_BYTES);
    for (unsigned from = 1; from <= SENDERS; from++) {
        struct mx_status status;
        while (!mx_iprobe(p->ep, from, ALL_BITS, &status))
            k_sleep(p->kernel, K_US);
    }
    k_sleep(p->kernel, 5 * K_MS);
    for (unsigned i = 0; i < BURST * SENDERS; i++) {
        const struct mx_segment segment = { p->in, 32768 };
        const unsigned from = 1 + i % SENDERS, n = i / SENDERS;
        struct mx_request *request = NULL;
        struct mx_status status;
        payload_fill(p->kernel, p->in, 0, 32768);
        assert_int_equal(mx_irecv(p->ep, &segment, 1, from, ALL_BITS, NULL, &request), 0);
        assert_true(mx_wait(p->ep, &request, FOREVER, &status));
        assert_int_equal(status.code, MX_SUCCESS);
        assert_int_equal(status.bytes, burst_bytes(n));
        check(p, from * 1000u + n, burst_bytes(n));
    }
    mx_close(p->ep);
    p->rig->done++;
}

/* More messages than the queue in shared memory has slots, while the receiver does not look: what
 * finds it full is sent again, and those of a pair arrive in order. */
static void test_full_queue(void **state)
{
    struct rig r;
    struct process p[SENDERS + 1];
    struct mx_native_stats stats;
    (void)state;
    rig_open(&r, WORLD(""));
    for (unsigned i = 0; i <= SENDERS; i++) {
        struct side *s = &r.side[1];
        p[i] = (struct process){ .rig = &r,
                                 .kernel = s->kernel,
                                 .board = s->board,
                                 .to_board = s->board,
                                 .id = (uint8_t)i,
                                 .to_id = 0 };
        k_thread_new(s->kernel, "process", (int)i, i == 0 ? sink_body : burst_body, &p[i]);
    }
    fixture_run_until(&r.w, &r.done, SENDERS + 1, 2000 * SIM_PS_PER_MS);
    mx_native_stats_get(r.side[1].board, &stats);
    assert_true(stats.local_full > 0);
    assert_int_equal(stats.local_pulls, SENDERS * BURST / 100);
    assert_int_equal(myri_stats(world_device(r.w.world, "b"))->loopback, 0);
    rig_close(&r);
}

/* ---- As much as the queue of ended commands takes -------------------------------------------- */

#define UNTOLD    127u /* slots that have been read, and the adapter has not been told */
#define PULLS     256u
#define ANNOUNCED (PULLS / 2) /* by each of two endpoints: as many as one may at a time */
#define PULLED    33000u
#define FRAGMENTS 768u

/* Two announce as many large messages as there are regions; they end when they have been pulled. */
static void announces_body(void *arg)
{
    struct process *p = arg;
    struct mx_request *request[ANNOUNCED];
    struct mx_status status;
    open_and_connect(p, &mx_options_default);
    p->out = k_alloc(p->kernel, 0, PULLED, K_PAGE_BYTES);
    const struct mx_segment segment = { p->out, PULLED };
    payload_fill(p->kernel, p->out, payload_mark(STREAM, 0), PULLED);
    for (unsigned i = 0; i < ANNOUNCED; i++)
        assert_int_equal(
            mx_isend(p->ep, &segment, 1, &p->peer, (p->id - 1) * ANNOUNCED + i, NULL, &request[i]),
            0);
    for (unsigned i = 0; i < ANNOUNCED; i++)
        assert_true(mx_wait(p->ep, &request[i], FOREVER, &status));
    for (unsigned i = 0; i < 2 && p->id == 1; i++) /* until the other has ended */
        while (!mx_iprobe(p->ep, PULLS + i, ALL_BITS, &status))
            k_sleep(p->kernel, 10 * K_US);
    mx_close(p->ep);
    p->rig->done++;
}

static void send_medium(struct process *p, uint64_t bytes, uint64_t match)
{
    const struct mx_segment segment = { p->out, bytes };
    struct mx_request *request;
    struct mx_status status;
    assert_int_equal(mx_isend(p->ep, &segment, 1, &p->peer, match, NULL, &request), 0);
    while (match >= PULLS && !mx_test(p->ep, &request, &status)) /* they are kept */
        k_sleep(p->kernel, K_US);
}

static void fills_body(void *arg)
{
    struct process *p = arg;
    struct mx_request *request[PULLS];
    struct mx_status status;
    open_and_connect(p, &mx_options_default);
    p->out = k_alloc(p->kernel, 0, MX_MEDIUM_BYTES, K_PAGE_BYTES);
    p->in = k_alloc(p->kernel, 0, PULLED, K_PAGE_BYTES);
    payload_fill(p->kernel, p->out, payload_mark(STREAM, 1), MX_MEDIUM_BYTES);
    for (unsigned i = 0; i < UNTOLD; i++)
        send_medium(p, MX_FRAGMENT_BYTES, PULLS);
    for (unsigned i = 0; i < 2; i++)
        while (!mx_iprobe(p->ep, (i + 1) * ANNOUNCED - 1, ALL_BITS, &status))
            k_sleep(p->kernel, 10 * K_US);
    /* From here on it does not look until all has ended. */
    for (unsigned i = 0; i < FRAGMENTS / MX_FRAGMENTS_MAX; i++)
        send_medium(p, MX_MEDIUM_BYTES, 0);
    for (unsigned i = 0; i < PULLS; i++) {
        const struct mx_segment segment = { p->in, PULLED };
        assert_int_equal(mx_irecv(p->ep, &segment, 1, i, ALL_BITS, NULL, &request[i]), 0);
    }
    k_sleep(p->kernel, 50 * K_MS);
    for (unsigned i = 0; i < PULLS; i++) {
        assert_true(mx_wait(p->ep, &request[i], FOREVER, &status));
        assert_int_equal(status.bytes, PULLED);
    }
    check(p, 0, PULLED);
    send_medium(p, MX_FRAGMENT_BYTES, PULLS + 1);
    mx_close(p->ep);
    p->rig->done++;
}

/* The adapter learns only now and then how far the queue has been read: what ends meanwhile finds
 * room all the same, whatever has been sent and pulled at a time. */
static void test_room_for_events(void **state)
{
    struct rig r;
    struct process p[3];
    (void)state;
    rig_open(&r, WORLD(""));
    for (unsigned i = 0; i < 3; i++) {
        struct side *s = &r.side[i != 0];
        p[i] = (struct process){ .rig = &r,
                                 .kernel = s->kernel,
                                 .board = s->board,
                                 .to_board = r.side[i == 0].board,
                                 .id = i == 2 ? 2 : 1,
                                 .to_id = 1 };
        k_thread_new(s->kernel, "process", i == 2 ? 2 : 1, i == 0 ? fills_body : announces_body,
                     &p[i]);
    }
    fixture_run_until(&r.w, &r.done, 3, 5000 * SIM_PS_PER_MS);
    assert_int_equal(myri_stats(world_device(r.w.world, "a"))->rx_no_buffer, 0);
    assert_int_equal(myri_stats(world_device(r.w.world, "b"))->rx_no_buffer, 0);
    rig_close(&r);
}

/* ---- More pulls than an adapter has at a time ------------------------------------------------ */

#define PULLS_AT_A_TIME 1024u
#define PULLS_THAT_WAIT 3u

static struct mx_port *open_port(struct side *s, uint8_t id, struct mx_segment *segment, uint8_t *n,
                                 uint8_t *sequence)
{
    struct mx_port *port;
    assert_int_equal(s->board->ops->open(s->board, id, &port), 0);
    *segment = (struct mx_segment){ k_alloc(s->kernel, 0, PULLED, K_PAGE_BYTES), PULLED };
    assert_int_equal(s->board->ops->region_new(port, segment, 1, n, sequence), 0);
    return port;
}

/* Has a region to pull from, until the other has ended. */
static void has_region_body(void *arg)
{
    struct side *s = arg;
    struct mx_segment segment;
    uint8_t number, sequence;
    struct mx_port *port = open_port(s, 1, &segment, &number, &sequence);
    const struct mx_send announce = { .to = { .nic_id = s->rig->side[0].board->nic_id } };
    payload_fill(s->kernel, segment.at, payload_mark(STREAM, 0), PULLED);
    assert_int_equal(s->board->ops->send_rendezvous(port, &announce, number, sequence), 0);
    assert_int_equal(number, 0);
    assert_int_equal(sequence, 1);
    assert_int_equal(port->session, 1);
    while (s->rig->done == 0)
        k_sleep(s->kernel, 100 * K_US);
    s->board->ops->close(port);
    s->rig->done++;
}

static union mx_event pulled_event(struct side *s, const struct mx_port *port, unsigned i)
{
    union mx_event event;
    k_peek(s->kernel, kaddr_add(port->queue[MX_QUEUE_EXPECTED], i * MX_EVENT_BYTES), &event,
           sizeof event);
    return event;
}

/* All that the adapter has ask a NIC that is not there; others wait, of the same region and of
 * another one, which go on when the first region is given back. At the end some still wait. */
static void pulls_body(void *arg)
{
    struct side *s = arg;
    const struct mx_board_ops *ops = s->board->ops;
    struct mx_segment segment;
    uint8_t number, blocked, sequence;
    struct mx_port *port = open_port(s, 1, &segment, &number, &sequence);
    struct mx_pull_command good = { .from = { s->rig->side[1].board->nic_id, 1, 1 },
                                    .region_sequence = 1,
                                    .local_region = number,
                                    .bytes = PULLED };
    struct mx_pull_command bad = { .from = { 0x123456, 1, 1 }, .bytes = 1 };
    for (unsigned round = 0; round < 2; round++) {
        assert_int_equal(ops->region_new(port, &segment, 1, &blocked, &sequence), 0);
        bad.local_region = blocked;
        for (unsigned i = 0; i < PULLS_AT_A_TIME; i++)
            assert_int_equal(ops->pull(port, &bad), 0);
        for (unsigned i = 0; i < PULLS_THAT_WAIT; i++) {
            good.handle = 100 * round + i;
            assert_int_equal(ops->pull(port, &bad), 0);
            assert_int_equal(ops->pull(port, &good), 0);
        }
        k_sleep(s->kernel, 10 * K_MS);
        assert_int_equal(pulled_event(s, port, PULLS_THAT_WAIT * round).type, MX_EVENT_NONE);
        if (round > 0)
            break;
        ops->region_free(port, blocked);
        k_sleep(s->kernel, 10 * K_MS);
        for (unsigned i = 0; i < PULLS_THAT_WAIT; i++) {
            const union mx_event event = pulled_event(s, port, i);
            assert_int_equal(event.type, MX_EVENT_PULLED);
            assert_int_equal(event.pulled.status, MX_PULL_DONE);
            assert_int_equal(event.pulled.handle, i);
        }
    }
    ops->close(port);
    s->rig->done++;
}

static void test_pulls_that_wait(void **state)
{
    struct rig r;
    (void)state;
    rig_open(&r, WORLD(""));
    k_thread_new(r.side[1].kernel, "process", 1, has_region_body, &r.side[1]);
    k_thread_new(r.side[0].kernel, "process", 1, pulls_body, &r.side[0]);
    fixture_run_until(&r.w, &r.done, 2, 5000 * SIM_PS_PER_MS);
    assert_int_equal(myri_stats(world_device(r.w.world, "a"))->bad_requests, 0);
    assert_int_equal(myri_stats(world_device(r.w.world, "a"))->rx_no_buffer, 0);
    rig_close(&r);
}

/* As Myricom published: 2.0 to 2.3 us (here with a wider margin, as the hosts are others) and 1.2
 * GB/s. */
static void test_latency_and_bandwidth(void **state)
{
    static const uint32_t nothing = 0, much = LARGEST;
    struct rig r;
    (void)state;
    rig_open(&r, WORLD(""));
    ping_pong(&r, false, &nothing, 1, 21, 2000);
    assert_in_range(r.round_ps, 2 * 1700 * SIM_PS_PER_NS, 2 * 2600 * SIM_PS_PER_NS);
    ping_pong(&r, false, &much, 1, 4, 2000);
    assert_in_range(r.round_ps, 2 * LARGEST * 1000ull * 100 / 125,
                    2 * LARGEST * 1000ull * 100 / 105);
    rig_close(&r);
}

static void both(const char *world)
{
    struct rig r;
    rig_open(&r, world);
    ping_pong(&r, false, sizes, N_SIZES, 2, 2000);
    rig_close(&r);
}

static void test_open_mx(void **state)
{
    (void)state;
    both(WORLD_OF("ethernet", "multiqueue", ""));
}

static void test_open_mx_and_native_mx(void **state)
{
    (void)state;
    both(WORLD_OF("mx", "multiqueue", ""));
}

/* What is lost is sent again: by the library, and replies by the firmware. */
static void test_losses(void **state)
{
    static const uint32_t some[] = { 1, 100, 20000, 32768, 300000 };
    struct rig r;
    (void)state;
    rig_open(&r, WORLD("loss_ratio = 0.03;"));
    ping_pong(&r, false, some, 5, 4, 200000);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages_of_all_sizes),
        cmocka_unit_test(test_within_a_host),
        cmocka_unit_test(test_within_a_host_by_the_adapter),
        cmocka_unit_test(test_full_queue),
        cmocka_unit_test(test_room_for_events),
        cmocka_unit_test(test_pulls_that_wait),
        cmocka_unit_test(test_latency_and_bandwidth),
        cmocka_unit_test(test_losses),
        cmocka_unit_test(test_open_mx),
        cmocka_unit_test(test_open_mx_and_native_mx),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
