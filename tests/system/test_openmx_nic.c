/*
 * Open-MX over nic.ethernet on two simulated hosts of two sockets: messages of all kinds, mark for
 * mark, with the packets of each endpoint in the queue of the CPU that the rules name: of the
 * process, of another CPU, of the adapter's choice; through the octoNIC at the function of that
 * CPU's socket, also while one is pulled. Then all is closed, and nothing may be left.
 */
#include "tests/support/world_fixture.h"

#include <errno.h>
#include <string.h>

#include "logic/net/net.h"
#include "logic/nic/nic_driver.h"
#include "logic/openmx/openmx.h"
#include "logic/steering/octonic.h"
#include "models/base/payload.h"
#include "models/nic/nic.h"
#include "models/os/os.h"
#include "models/pcie/endpoint/pcie_function.h"

#define CORES 4u /* of each of two sockets */
#define HOST(NAME, LANES)                                                     \
    NAME " = { ports = ( { name = \"rp0\"; socket = 0; lanes = " LANES "; }," \
         " { name = \"rp1\"; socket = 1; lanes = " LANES "; } );"             \
         " cpu = { sockets = 2; cores_per_socket = 4; clock_ghz = 2.0; }; };\n"
#define WORLD(FIRMWARE)                                                                     \
    "hosts = {\n" HOST("server", "8") HOST(                                                 \
        "client",                                                                           \
        "16") "};\n"                                                                        \
              "devices = { b = { type = \"nic.ethernet\"; mtu_bytes = 9000; };"             \
              " a = { type = \"nic.ethernet\"; functions = 2; lanes = 8; mtu_bytes = 9000;" \
              " firmware = \"" FIRMWARE "\"; }; };\n"                                       \
              "cables = ( { from = \"server.s0.rp0\"; to = \"a.p0\"; },"                    \
              " { from = \"server.s1.rp1\"; to = \"a.p1\"; },"                              \
              " { from = \"client.s0.rp0\"; to = \"b.p0\"; }, { from = \"a.e0\"; to = \"b.e0\"; } );\n"

#define SERVER   0u
#define CLIENT   1u
#define KEY      77u
#define STREAM   11u
#define LARGEST  200000u
#define FOREVER  UINT64_MAX
#define ALL_BITS UINT64_MAX

struct side {
    struct rig *rig;
    struct kernel *kernel;
    struct net *net;
    struct nic_driver *driver;
    struct net_device *dev;
    struct octonic *octonic;
    struct openmx *omx;
};
struct rig {
    struct world_fixture w;
    struct side side[2];
    bool team;
    unsigned function; /* of the server's adapter, without a team */
    enum openmx_steer steer;
    unsigned steer_cpu;
    unsigned up, done, down;
};

/* ---- Up and down ----------------------------------------------------------------------------- */

static const struct octonic_device_ops team_ops = { .function = nic_dev_function,
                                                    .switch_set = nic_dev_switch_set,
                                                    .switch_delete = nic_dev_switch_delete,
                                                    .switch_rule = nic_dev_switch_rule };

static struct net_device *open_device(struct side *s)
{
    struct net_device *lower[2] = { nic_driver_device(s->driver, 0),
                                    nic_driver_device(s->driver, 1) };
    struct net_device *dev = lower[s == &s->rig->side[SERVER] ? s->rig->function : 0];
    int error = 0;
    if (s == &s->rig->side[SERVER] && s->rig->team) {
        s->octonic = octonic_new(s->net, "octo0", &octonic_params_default, &team_ops, lower, 2,
                                 &error);
        assert_non_null(s->octonic);
        dev = octonic_device(s->octonic);
    }
    assert_int_equal(dev->ops->open(dev), 0);
    return dev;
}

static void up_body(void *arg)
{
    struct side *s = arg;
    struct openmx_options options = openmx_options_default;
    options.pull_resend_ps = K_MS;
    options.grace_ps = K_MS / 10;
    options.steer = s->rig->steer;
    options.steer_cpu = s->rig->steer_cpu;
    assert_true(k_pci_register(s->kernel, nic_driver_pci(s->driver)) > 0);
    s->dev = open_device(s);
    s->omx = openmx_new(s->net, s->dev, NULL, &options);
    assert_non_null(s->omx);
    s->rig->up++;
}

static void down_body(void *arg)
{
    struct side *s = arg;
    struct net_device *dev;
    k_sleep(s->kernel, K_MS); /* its last packets have left, nothing is pinned any more */
    assert_int_equal(openmx_regions_live(s->omx), 0);
    openmx_free(s->omx);
    if (s->octonic != NULL)
        octonic_free(s->octonic);
    while ((dev = nic_driver_device(s->driver, 0)) != NULL && dev->device != NULL)
        k_pci_remove(K_CONTAINER(dev->device, struct k_pci_dev, device), false);
    nic_driver_free(s->driver);
    net_free(s->net);
    s->rig->down++;
}

static void rig_open(struct rig *r)
{
    static const char *const names[] = { "server", "client" };
    struct nic_driver_params params = nic_driver_params_default;
    params.mtu_bytes = 9000;
    params.rq_wqes = 256;
    fixture_open(&r->w, r->team ? WORLD("octonic") : WORLD("standard"));
    for (unsigned i = 0; i < 2; i++) {
        struct side *s = &r->side[i];
        struct host *host = world_host(r->w.world, names[i]);
        s->rig = r;
        s->kernel = os_new(host, host_os_params(host));
        s->net = net_new(s->kernel, &net_params_default);
        s->driver = nic_driver_new(s->net, s->kernel, &params, "pf");
        assert_non_null(s->driver);
        k_thread_new(s->kernel, "up", 0, up_body, s);
    }
    fixture_run_until(&r->w, &r->up, 2, 1000 * SIM_PS_PER_MS);
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

static const uint32_t sizes[] = { 0, 30, 100, 5000, 32768, LARGEST };
#define N_SIZES (sizeof sizes / sizeof sizes[0])

/* Packets that a receive queue of the server has got; of all functions. */
static uint64_t packets_of(const struct rig *r, unsigned function, unsigned queue)
{
    return nic_driver_device(r->side[SERVER].driver, function)->rx[queue].packets;
}

struct process {
    struct rig *rig;
    struct kernel *kernel;
    struct side *side, *to;
    uint8_t id;
    struct mx_endpoint *ep;
    struct mx_peer peer;
    struct kaddr out, in;
    unsigned rounds;
    uint64_t before[2][2 * CORES]; /* the server's: packets, when it had opened */
    uint64_t after[2][2 * CORES];  /* when it was about to close */
};

static const struct mx_options impatient = { .resend_ps = K_MS,
                                             .resends_max = 1000,
                                             .ack_delay_ps = K_MS / 4,
                                             .acks_max = 4,
                                             .linger_ps = K_S,
                                             .poll_ps = 50 * K_NS };

static void transfer(struct process *p, bool send, uint32_t bytes, uint64_t match)
{
    const struct mx_segment segment = { send ? p->out : p->in, bytes };
    struct mx_request *request = NULL;
    struct mx_status status;
    struct payload_difference is;
    if (send) {
        payload_fill(p->kernel, p->out, payload_mark(STREAM, 5 * match), bytes);
        assert_int_equal(mx_isend(p->ep, &segment, bytes > 0, &p->peer, match, NULL, &request), 0);
    } else {
        payload_fill(p->kernel, p->in, 0, bytes);
        assert_int_equal(mx_irecv(p->ep, &segment, bytes > 0, match, ALL_BITS, NULL, &request), 0);
    }
    assert_true(mx_wait(p->ep, &request, FOREVER, &status));
    assert_int_equal(status.code, MX_SUCCESS);
    assert_int_equal(status.bytes, bytes);
    if (!send && !payload_check(p->kernel, p->in, payload_mark(STREAM, 5 * match), bytes, &is))
        fail_msg("endpoint %u: %u bytes: found %#llx, expected %#llx", p->id, bytes,
                 (unsigned long long)is.found, (unsigned long long)is.expected);
}

static void count(struct process *p, uint64_t packets[2][2 * CORES])
{
    for (unsigned f = 0; f < 2 && p->side == &p->rig->side[SERVER]; f++)
        for (unsigned q = 0; q < 2 * CORES; q++)
            packets[f][q] = packets_of(p->rig, f, q);
}

static void process_body(void *arg)
{
    struct process *p = arg;
    const bool first = p->side == &p->rig->side[CLIENT];
    uint64_t match = 1;
    int error;
    assert_int_equal(mx_open(openmx_board(p->side->omx), p->id, KEY, &impatient, &p->ep), 0);
    count(p, p->before);
    while ((error = mx_connect(p->ep, openmx_board(p->to->omx)->nic_id, p->id, KEY,
                               k_now_ps(p->kernel) + 100 * K_MS, &p->peer)) == -ENOENT)
        k_sleep(p->kernel, 10 * K_US); /* it is not open yet */
    assert_int_equal(error, 0);
    p->out = k_alloc(p->kernel, K_NODE_LOCAL, LARGEST, K_PAGE_BYTES);
    p->in = k_alloc(p->kernel, K_NODE_LOCAL, LARGEST, K_PAGE_BYTES);
    for (unsigned round = 0; round < p->rounds; round++)
        for (unsigned i = 0; i < N_SIZES; i++, match++) {
            transfer(p, first, sizes[i], match);
            transfer(p, !first, sizes[i], match + (1 << 20));
        }
    count(p, p->after);
    mx_close(p->ep);
    p->rig->done++;
}

static void start(struct rig *r, struct process p[2], uint8_t id, unsigned cpu, unsigned rounds)
{
    for (unsigned i = 0; i < 2; i++) {
        p[i] = (struct process){ .rig = r,
                                 .kernel = r->side[i].kernel,
                                 .side = &r->side[i],
                                 .to = &r->side[!i],
                                 .id = id,
                                 .rounds = rounds };
        k_thread_new(p[i].kernel, "process", (int)cpu, process_body, &p[i]);
    }
}

/* A process on this CPU of each host; all packets for the server's come in on this queue of this
 * function. */
static void expect_queue(struct rig *r, uint8_t id, unsigned cpu, unsigned function, unsigned queue)
{
    struct process p[2];
    r->done = 0;
    start(r, p, id, cpu, 1);
    fixture_run_until(&r->w, &r->done, 2, 200 * SIM_PS_PER_MS);
    for (unsigned f = 0; f < 2; f++)
        for (unsigned q = 0; q < 2 * CORES; q++) {
            const uint64_t n = p[SERVER].after[f][q] - p[SERVER].before[f][q];
            assert_true(f == function && q == queue ? n > 60 : n == 0);
        }
}

/* The queue of a CPU: functions have their own node's first. */
static unsigned queue_of(unsigned function, unsigned cpu)
{
    return (cpu + 2 * CORES - function * CORES) % (2 * CORES);
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static void test_on_the_cpu_of_the_process(void **state)
{
    (void)state;
    for (unsigned function = 0; function < 2; function++) {
        struct rig r = { .function = function, .steer = OPENMX_STEER_PROCESS };
        rig_open(&r);
        expect_queue(&r, 0, 1, function, queue_of(function, 1));
        expect_queue(&r, 9, 6, function, queue_of(function, 6));
        expect_queue(&r, 255, 3, function, queue_of(function, 3));
        rig_close(&r);
    }
}

static void test_on_another_cpu(void **state)
{
    struct rig r = { .steer = OPENMX_STEER_CPU, .steer_cpu = 5 };
    (void)state;
    rig_open(&r);
    expect_queue(&r, 3, 1, 0, 5);
    rig_close(&r);
}

/* Without rules the adapter has one queue for what is not IPv4. */
static void test_without_rules(void **state)
{
    struct rig r = { .steer = OPENMX_STEER_NONE };
    (void)state;
    rig_open(&r);
    expect_queue(&r, 3, 1, 0, 0);
    expect_queue(&r, 4, 6, 0, 0);
    rig_close(&r);
}

static void test_at_the_function_of_the_socket(void **state)
{
    struct rig r = { .team = true, .steer = OPENMX_STEER_PROCESS };
    (void)state;
    rig_open(&r);
    expect_queue(&r, 3, 1, 0, 1);
    expect_queue(&r, 4, 6, 1, queue_of(1, 6));
    rig_close(&r);
}

/* Several at a time, each with its queue. */
static void test_many_processes(void **state)
{
    static const unsigned cpus[] = { 0, 2, 5, 7 };
    struct rig r = { .team = true, .steer = OPENMX_STEER_PROCESS };
    struct process p[4][2];
    (void)state;
    rig_open(&r);
    for (unsigned i = 0; i < 4; i++)
        start(&r, p[i], (uint8_t)(10 + i), cpus[i], 1);
    fixture_run_until(&r.w, &r.done, 8, 500 * SIM_PS_PER_MS);
    for (unsigned cpu = 0; cpu < 2 * CORES; cpu++) {
        const bool has = cpu == 0 || cpu == 2 || cpu == 5 || cpu == 7;
        const unsigned near = cpu / CORES;
        /* What comes when an endpoint has been closed goes where it went without rules: pf0, queue
         * 0. */
        assert_true((packets_of(&r, near, queue_of(near, cpu)) > 60) == has);
        assert_int_equal(packets_of(&r, !near, queue_of(!near, cpu)), 0);
    }
    rig_close(&r);
}

struct puller {
    struct rig *rig;
    unsigned pulled;
};

static void pull_body(void *arg)
{
    struct puller *puller = arg;
    struct side *s = &puller->rig->side[SERVER];
    k_sleep(s->kernel, 2 * K_MS);
    struct k_device *device = nic_driver_device(s->driver, 1)->device;
    pcie_function_remove(world_device(puller->rig->w.world, "a"), 1);
    k_pci_remove(K_CONTAINER(device, struct k_pci_dev, device), true);
    puller->pulled++;
}

/* The function of the process's socket is pulled: the other one takes its packets. */
static void test_function_is_pulled(void **state)
{
    struct rig r = { .team = true, .steer = OPENMX_STEER_PROCESS };
    struct puller puller = { .rig = &r };
    struct process p[2];
    (void)state;
    rig_open(&r);
    start(&r, p, 4, 6, 20);
    k_thread_new(r.side[SERVER].kernel, "puller", 0, pull_body, &puller);
    fixture_run_until(&r.w, &r.done, 2, 500 * SIM_PS_PER_MS);
    assert_int_equal(puller.pulled, 1);
    assert_true(packets_of(&r, 1, queue_of(1, 6)) > 60);
    assert_true(packets_of(&r, 0, queue_of(0, 6)) > 60);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_on_the_cpu_of_the_process),
        cmocka_unit_test(test_on_another_cpu),
        cmocka_unit_test(test_without_rules),
        cmocka_unit_test(test_at_the_function_of_the_socket),
        cmocka_unit_test(test_many_processes),
        cmocka_unit_test(test_function_is_pulled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
