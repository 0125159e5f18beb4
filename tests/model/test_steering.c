/*
 * Flow steering: no packet overtakes another of its flow and none is lost, whenever readers and
 * senders move; then everything is local. Properties over many seeds, on a device that is as late
 * and as unordered as PCI Express allows (steering_rig.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/model/steering_rig.h"

/* Seeds of a property; STEERING_SEEDS in the environment multiplies them. */
static unsigned seeds(unsigned n)
{
    const char *more = getenv("STEERING_SEEDS");
#if defined(SIM_HOSTILE) || defined(__SANITIZE_ADDRESS__)
    n = (n + 7) / 8;
#endif
    return more != NULL ? n * (unsigned)atoi(more) : n;
}

static void assert_in_order(const struct rig *rig)
{
    if (rig->overtaken_rx || rig->overtaken_tx)
        print_error("seed %llu\n", (unsigned long long)rig->options.seed);
    assert_int_equal(rig->overtaken_rx, 0);
    assert_int_equal(rig->overtaken_tx, 0);
}

static void assert_nothing_lost(const struct rig *rig)
{
    for (unsigned i = 0; i < RIG_FLOWS; i++) {
        const struct socket *flow = &rig->flow[i];
        if (flow->lost)
            print_error("seed %llu, flow %u\n", (unsigned long long)rig->options.seed, i);
        assert_int_equal(flow->lost, 0);
        assert_true(flow->came == flow->left);
        assert_true(flow->read == flow->left);
        assert_true(flow->made == flow->on_wire);
    }
}

static void assert_local(const struct rig *rig)
{
    for (unsigned i = 0; i < RIG_FLOWS; i++) {
        const struct socket *flow = &rig->flow[i];
        if (flow->last_rxq != rig->up->rx_queue_of_cpu[flow->rx_cpu] ||
            flow->tx_queue != rig->up->xps_queue[flow->tx_cpu])
            print_error("seed %llu, flow %u\n", (unsigned long long)rig->options.seed, i);
        assert_int_equal(flow->last_rxq, rig->up->rx_queue_of_cpu[flow->rx_cpu]);
        assert_int_equal(flow->tx_queue, rig->up->xps_queue[flow->tx_cpu]);
    }
}

/* Everybody moves; nobody does; nothing comes. */
static struct rig *run_phases(const struct rig_options *options)
{
    struct rig *rig = rig_new(options);
    rig_run(rig, FAKE_US(1500));
    rig_may_move(rig, false);
    rig->gap_ps = FAKE_US(20);
    rig_run(rig, FAKE_MS(3));
    rig_quiet(rig);
    return rig;
}

static struct rig_options options_of(unsigned seed)
{
    return (struct rig_options){
        .seed = seed,
        .stall_percent = seed % 3 * 10,
        .stall_ps = FAKE_US(2),
    };
}

static void test_octonic_keeps_order(void **state)
{
    (void)state;
    unsigned n = seeds(100);
    uint64_t held = 0, switched = 0;
    for (unsigned seed = 1; seed <= n; seed++) {
        struct rig_options options = options_of(seed);
        struct rig *rig = run_phases(&options);
        assert_in_order(rig);
        assert_nothing_lost(rig);
        assert_local(rig);
        assert_int_equal(arfs_stats(rig->arfs)->timeouts, 0);
        assert_int_equal(octonic_stats(rig->octonic).dropped, 0);
        held += arfs_stats(rig->arfs)->held;
        switched += octonic_stats(rig->octonic).added + octonic_stats(rig->octonic).updated;
        rig_free(rig);
    }
    /* It has been put to the test at all. */
    assert_true(switched > 10 * n);
    assert_true(held > 10 * n);
}

/* The load does provoke what the fence prevents. */
static void test_without_the_guard_packets_overtake(void **state)
{
    (void)state;
    uint64_t overtaken = 0;
    for (unsigned seed = 1; seed <= 20; seed++) {
        struct rig_options options = options_of(seed);
        options.no_guard = true;
        struct rig *rig = run_phases(&options);
        overtaken += rig->overtaken_rx;
        assert_int_equal(rig->overtaken_tx, 0);
        assert_nothing_lost(rig);
        rig_free(rig);
    }
    assert_true(overtaken > 20);
}

/* A device that says nothing: fences stand for their whole time. */
static void test_device_that_cannot_tell(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= seeds(40); seed++) {
        struct rig_options options = options_of(seed);
        options.cannot_tell = true;
        struct rig *rig = run_phases(&options);
        assert_in_order(rig);
        assert_nothing_lost(rig);
        assert_local(rig);
        assert_true(arfs_stats(rig->arfs)->timeouts > 0);
        rig_free(rig);
    }
}

static void test_one_function_keeps_order(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= seeds(40); seed++) {
        struct rig_options options = options_of(seed);
        options.alone = true;
        struct rig *rig = run_phases(&options);
        assert_in_order(rig);
        assert_nothing_lost(rig);
        assert_local(rig);
        assert_int_equal(arfs_stats(rig->arfs)->timeouts, 0);
        rig_free(rig);
    }
}

/* ---- Tables ---------------------------------------------------------------------------------- */

static unsigned filters_of(const struct rig *rig)
{
    unsigned n = 0;
    for (unsigned p = 0; p < RIG_PORTS; p++)
        for (unsigned i = 0; i < RIG_FLOWS; i++)
            n += rig->port[p].acting[i].used;
    return n;
}

static void test_stale_rules_expire(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= seeds(40); seed++) {
        struct rig_options options = options_of(seed);
        options.expiry_ps = FAKE_MS(4);
        struct rig *rig = run_phases(&options);
        assert_in_order(rig);
        assert_nothing_lost(rig);
        /* 25 ms of silence are over; nothing of the flows is left. */
        assert_int_equal(octonic_stats(rig->octonic).rules, 0);
        assert_int_equal(rig->n_rules, 0);
        assert_int_equal(filters_of(rig), 0);
        assert_true(octonic_stats(rig->octonic).expired > 0);
        assert_int_equal(octonic_stats(rig->octonic).failed, 0);
        /* And they come again. */
        rig->receiving = rig->sending = true;
        rig_run(rig, FAKE_MS(3));
        rig->receiving = rig->sending = false;
        rig_run(rig, FAKE_MS(2));
        assert_in_order(rig);
        assert_nothing_lost(rig);
        assert_local(rig);
        rig_free(rig);
    }
}

/* Rules expire all the time, while packets come in: no gap in which one overtakes another. */
static void test_expiry_under_load_keeps_order(void **state)
{
    (void)state;
    uint64_t expired = 0;
    unsigned n = seeds(60);
    for (unsigned seed = 1; seed <= n; seed++) {
        struct rig_options options = options_of(seed);
        options.expiry_ps = FAKE_US(400); /* shorter than many a gap between packets */
        struct rig *rig = rig_new(&options);
        rig->gap_ps = FAKE_US(60);
        rig_run(rig, FAKE_MS(20));
        rig_quiet(rig);
        assert_in_order(rig);
        assert_nothing_lost(rig);
        expired += octonic_stats(rig->octonic).expired;
        rig_free(rig);
    }
    assert_true(expired > n);
}

static void test_full_tables_deliver(void **state)
{
    (void)state;
    uint64_t switch_full = 0, rules_full = 0, refused = 0;
    for (unsigned seed = 1; seed <= seeds(40); seed++) {
        struct rig_options options = options_of(seed);
        options.n_switch = 1 + seed % 3;
        options.n_rules = 2 + seed % 5;
        options.n_filters = 1 + seed % 4;
        struct rig *rig = run_phases(&options);
        assert_in_order(rig);
        assert_nothing_lost(rig);
        assert_true(rig->n_rules <= options.n_switch);
        assert_int_equal(octonic_stats(rig->octonic).rules, rig->n_rules);
        switch_full += octonic_stats(rig->octonic).switch_full;
        rules_full += octonic_stats(rig->octonic).rules_full;
        refused += arfs_stats(rig->arfs)->refused;
        rig_free(rig);
    }
    assert_true(switch_full > 0);
    assert_true(rules_full > 0);
    assert_true(refused > 0);
}

/* Without room for a rule a flow still goes to the CPU that reads it, on the function it has. */
static void test_full_switch_steers_within_the_function(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 10; seed++) {
        struct rig_options options = { .seed = seed, .n_rules = 1 };
        struct rig *rig = rig_new(&options);
        rig_may_move(rig, false);
        rig->gap_ps = FAKE_US(10);
        rig_run(rig, FAKE_MS(4));
        rig_quiet(rig);
        unsigned n_far = 0;
        for (unsigned i = 0; i < RIG_FLOWS; i++) {
            const struct socket *flow = &rig->flow[i];
            assert_int_equal(flow->last_rxq % RIG_QUEUES, flow->rx_cpu);
            n_far += flow->last_rxq < RIG_QUEUES && flow->rx_cpu >= RIG_QUEUES / 2;
        }
        assert_int_equal(octonic_stats(rig->octonic).rules, rig->n_rules);
        assert_true(octonic_stats(rig->octonic).rules_full == 0 || n_far > 0);
        assert_in_order(rig);
        rig_free(rig);
    }
}

/* ---- A function goes away -------------------------------------------------------------------- */

static uint64_t lost_of(const struct rig *rig)
{
    uint64_t lost = 0;
    for (unsigned i = 0; i < RIG_FLOWS; i++)
        lost += rig->flow[i].lost;
    return lost;
}

/* Since the function went: everything arrives, through the others. */
static void assert_lives(struct rig *rig, uint64_t lost, bool back)
{
    uint64_t sent[RIG_FLOWS];
    for (unsigned i = 0; i < RIG_FLOWS; i++)
        sent[i] = rig->flow[i].on_wire;
    rig_run(rig, FAKE_MS(3));
    rig_quiet(rig);
    if (lost != lost_of(rig))
        print_error("seed %llu\n", (unsigned long long)rig->options.seed);
    assert_int_equal(lost_of(rig), lost);
    assert_true(rig->up->carrier && rig->up->running);
    for (unsigned i = 0; i < RIG_FLOWS; i++)
        assert_true(rig->flow[i].on_wire > sent[i]);
    for (unsigned cpu = 0; cpu < RIG_QUEUES && !back; cpu++) {
        assert_true(rig_alive(&rig->port[(unsigned)rig->up->rx_queue_of_cpu[cpu] / RIG_QUEUES]));
        assert_true(rig_alive(&rig->port[(unsigned)rig->up->xps_queue[cpu] / RIG_QUEUES]));
    }
    assert_local(rig);
}

static void run_removal(unsigned seed, bool back)
{
    struct rig_options options = options_of(seed);
    struct rig *rig = rig_new(&options);
    struct rig_port *victim = &rig->port[seed / 2 % RIG_PORTS];
    rig->gap_ps = FAKE_US(5);
    rig_run(rig, 1 + fake_random(rig->kernel, FAKE_MS(2)));
    rig_port_goes(victim);
    if (back) {
        rig_run(rig, 1 + fake_random(rig->kernel, FAKE_MS(1)));
        rig_port_comes(victim);
    }
    rig_run(rig, FAKE_MS(2));
    /* What was in the function, and what came for it until its rules were set anew, is lost. What
     * is under way now is counted as lost until it is there. */
    rig->receiving = false;
    rig_run(rig, FAKE_MS(10));
    uint64_t lost = lost_of(rig);
    rig->receiving = true;
    rig_may_move(rig, false);
    rig->gap_ps = FAKE_US(20);
    assert_lives(rig, lost, back);
    assert_in_order(rig);
    assert_int_equal(arfs_stats(rig->arfs)->timeouts, 0);
    rig_free(rig);
}

static void test_function_goes_away(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= seeds(60); seed++)
        run_removal(seed, false);
}

static void test_function_goes_and_comes_back(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= seeds(60); seed++)
        run_removal(seed, true);
}

static void test_no_function_left(void **state)
{
    (void)state;
    struct rig_options options = { .seed = 7 };
    struct rig *rig = rig_new(&options);
    rig_run(rig, FAKE_MS(1));
    rig_port_goes(&rig->port[1]);
    assert_true(rig->up->carrier);
    rig_port_goes(&rig->port[0]);
    assert_false(rig->up->carrier);
    rig_run(rig, FAKE_MS(1));
    rig_port_comes(&rig->port[1]);
    assert_true(rig->up->carrier);
    rig_run(rig, FAKE_MS(2));
    rig->receiving = false;
    rig_run(rig, FAKE_MS(10));
    uint64_t lost = lost_of(rig);
    rig->receiving = true;
    rig->gap_ps = FAKE_US(20);
    rig_may_move(rig, false);
    assert_lives(rig, lost, false);
    assert_in_order(rig);
    rig_free(rig);
}

/* ---- Bonding --------------------------------------------------------------------------------- */

static void test_bond_keeps_flows_on_their_link(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= seeds(40); seed++) {
        struct rig_options options = options_of(seed);
        options.bond = true;
        struct rig *rig = run_phases(&options);
        assert_in_order(rig);
        assert_nothing_lost(rig);
        unsigned links = 0;
        for (unsigned i = 0; i < RIG_FLOWS; i++) {
            const struct socket *flow = &rig->flow[i];
            unsigned link = bonding_hash(&flow->flow) % RIG_PORTS;
            assert_int_equal(flow->tx_ports, 1u << link);
            assert_int_equal(flow->rx_ports, 1u << i / 2 % RIG_PORTS);
            /* The link stays; the queue on it is the reader's. */
            assert_int_equal(flow->last_rxq, i / 2 % RIG_PORTS * RIG_QUEUES + flow->rx_cpu);
            links |= flow->tx_ports;
        }
        assert_int_equal(links, 3);
        rig_free(rig);
    }
}

static void test_bond_loses_a_link(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= seeds(30); seed++) {
        struct rig_options options = options_of(seed);
        options.bond = true;
        struct rig *rig = rig_new(&options);
        rig_run(rig, 1 + fake_random(rig->kernel, FAKE_MS(1)));
        rig_port_goes(&rig->port[1]);
        for (unsigned i = 0; i < RIG_FLOWS; i++)
            rig->flow[i].tx_ports = 0;
        rig_run(rig, FAKE_MS(2));
        for (unsigned i = 0; i < RIG_FLOWS; i++)
            assert_int_equal(rig->flow[i].tx_ports, 1);
        rig_quiet(rig);
        assert_in_order(rig);
        rig_free(rig);
    }
}

/* Documentation/networking/bonding.txt, byte by byte. */
static void test_bond_hash(void **state)
{
    (void)state;
    static const uint8_t packet[2][6] = { { 192, 168, 1, 17, 0x9c, 0x44 },
                                          { 10, 3, 2, 254, 0x13, 0x89 } };
    const struct flow_key flow = { 0xc0a80111, 0x0a0302fe, 0x9c44, 0x1389, 6 };
    uint32_t ports = 0, ips = 0;
    for (unsigned i = 0; i < 4; i++)
        ips |= (uint32_t)(packet[0][i] ^ packet[1][i]) << 8 * i;
    ports = packet[0][4] | (uint32_t)packet[0][5] << 8 | (uint32_t)packet[1][4] << 16 |
            (uint32_t)packet[1][5] << 24;
    uint32_t hash = ports ^ ips;
    hash ^= hash >> 16;
    hash ^= hash >> 8;
    assert_int_equal(bonding_hash(&flow), hash >> 1);
    /* Connections with every second port spread. */
    unsigned n[2] = { 0 };
    for (unsigned i = 0; i < 1000; i++) {
        const struct flow_key f = { 0xc0a80111, 0x0a0302fe, (uint16_t)(32768 + 2 * i), 5001, 6 };
        n[bonding_hash(&f) % 2]++;
    }
    assert_in_range(n[0], 400, 600);
}

/* ---- Parts ----------------------------------------------------------------------------------- */

static void test_rx_progress(void **state)
{
    (void)state;
    struct net_rx_progress p = { .entries = 8 };
    struct net_rx_mark mark = { 0 };
    assert_true(net_rx_passed(&p, true, &mark));
    mark = (struct net_rx_mark){ 0 };
    assert_false(net_rx_passed(&p, false, &mark));
    net_rx_polled(&p, 7, false);
    assert_false(net_rx_passed(&p, false, &mark));
    net_rx_polled(&p, 1, false); /* eight: but some of them may have been taken before the mark */
    assert_false(net_rx_passed(&p, false, &mark));
    net_rx_polled(&p, 8, false);
    assert_true(net_rx_passed(&p, false, &mark));
    mark = (struct net_rx_mark){ 0 };
    assert_false(net_rx_passed(&p, false, &mark));
    net_rx_polled(&p, 0, true);
    assert_true(net_rx_passed(&p, false, &mark));
}

static void test_refused_teams(void **state)
{
    (void)state;
    struct rig_options options = { .seed = 1 };
    struct rig *rig = rig_new(&options);
    struct net_device *lower[RIG_PORTS] = { &rig->port[0].dev, &rig->port[1].dev };
    struct net_device dev = { .kernel = rig->kernel }, many[9] = { { 0 } }, *list[9];
    struct ports ports;
    int error = 0;
    assert_null(bonding_new(&rig_net, "bond0", lower, 2, &error)); /* part of octo0 */
    assert_int_equal(error, -EBUSY);
    assert_int_equal(ports_init(&ports, &dev, lower, 0), -EINVAL);
    for (unsigned i = 0; i < 9; i++) {
        many[i].n_tx_queues = many[i].n_rx_queues = 33;
        list[i] = &many[i];
    }
    assert_int_equal(ports_init(&ports, &dev, list, 9), -EINVAL);
    assert_int_equal(ports_init(&ports, &dev, list, 2), -ENOSPC);
    many[0].n_rx_queues = 3;
    assert_int_equal(ports_init(&ports, &dev, list, 1), -EINVAL);
    rig_free(rig);
}

static void test_xps_map(void **state)
{
    (void)state;
    struct fake_options fake = { .n_cpus = 8, .n_nodes = 2 };
    struct kernel *kernel = fake_new(&fake);
    struct net_device dev = { .kernel = kernel, .n_tx_queues = 3 };
    struct socket socket = { .tx_queue = -1 };
    struct sk_buff skb = { .socket = &socket };
    memset(dev.rx_queue_of_cpu, 0xff, sizeof dev.rx_queue_of_cpu);
    dev.rx_queue_of_cpu[5] = 0;
    xps_map_default(&dev);
    assert_int_equal(dev.xps_queue[5], 0);
    assert_int_equal(dev.xps_queue[4], 1);
    assert_int_equal(dev.xps_queue[8], -1);
    fake_on(kernel, 4);
    assert_int_equal(xps_select_queue(&skb, &dev), 1);
    fake_on(kernel, 5);
    assert_int_equal(xps_select_queue(&skb, &dev), 1); /* something is outstanding */
    skb.ooo_okay = true;
    assert_int_equal(xps_select_queue(&skb, &dev), 0);
    assert_int_equal(socket.tx_queue, 0);
    skb.ooo_okay = false;
    socket.tx_queue = 7; /* of another device */
    assert_int_equal(xps_select_queue(&skb, &dev), 0);
    skb.socket = NULL;
    fake_on(kernel, 4);
    assert_int_equal(xps_select_queue(&skb, &dev), 1);
    fake_free(kernel);
}

/* What stands still costs one line per packet and nothing else. */
static void test_cost_where_nothing_moves(void **state)
{
    (void)state;
    struct rig_options options = { .seed = 3 };
    struct rig *rig = rig_new(&options);
    struct sk_buff skb = { .hash = 0x1234, .flow = rig->flow[0].flow };
    fake_on(rig->kernel, 2);
    arfs_record(rig->arfs, skb.hash);
    assert_false(arfs_receive(rig->arfs, rig->up, &skb, 6)); /* where CPU 2 takes its packets */
    uint64_t lines = rig->kernel->lines, cycles = rig->kernel->cycles;
    assert_false(arfs_receive(rig->arfs, rig->up, &skb, 6));
    assert_int_equal(rig->kernel->lines - lines, 1);
    arfs_record(rig->arfs, skb.hash);
    assert_int_equal(rig->kernel->lines - lines, 2);
    assert_int_equal(rig->kernel->cycles, cycles);
    assert_int_equal(arfs_stats(rig->arfs)->steered, 0);
    rig_free(rig);
}

/* More busy flows than entries: those without one are delivered where they come in. */
static void test_table_of_flows_full(void **state)
{
    (void)state;
    struct rig_options options = { .seed = 4 };
    struct rig *rig = rig_new(&options);
    for (uint32_t i = 1; i <= 200; i++) {
        struct sk_buff skb = { .hash = i };
        assert_false(arfs_receive(rig->arfs, rig->up, &skb, 3));
    }
    assert_int_equal(arfs_stats(rig->arfs)->untracked, 200 - 64);
    rig->receiving = false;
    rig_run(rig, FAKE_MS(30)); /* entries of quiet flows are used again */
    struct sk_buff skb = { .hash = 1000 };
    assert_false(arfs_receive(rig->arfs, rig->up, &skb, 3));
    assert_int_equal(arfs_stats(rig->arfs)->untracked, 200 - 64);
    rig_free(rig);
}

/* What a fence holds of a device that goes is freed there and then, and its timer finds nothing. */
static void test_device_goes_with_what_is_held(void **state)
{
    (void)state;
    struct rig_options options = { .seed = 5, .cannot_tell = true };
    struct rig *rig = rig_new(&options);
    rig->receiving = rig->sending = false;
    rig_run(rig, FAKE_MS(5));
    struct sk_buff first = { .hash = 99, .time_ps = 1 };
    assert_false(arfs_receive(rig->arfs, rig->up, &first, 0));
    for (unsigned i = 0; i < 3; i++) {
        struct sk_buff *skb = k_zalloc(sizeof *skb);
        skb->hash = 99;
        skb->time_ps = 2 + i;
        rig->allocated++;
        assert_true(arfs_receive(rig->arfs, rig->up, skb, 1)); /* another queue: held */
    }
    const uint64_t freed = rig->freed;
    arfs_device_gone(rig->arfs, rig->up);
    assert_int_equal(rig->freed, freed + 3);
    rig_run(rig, FAKE_MS(5));
    assert_int_equal(arfs_stats(rig->arfs)->timeouts, 0);
    /* The flow is new to whatever device it comes in on next. */
    assert_false(arfs_receive(rig->arfs, rig->up, &first, 1));
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_octonic_keeps_order),
        cmocka_unit_test(test_without_the_guard_packets_overtake),
        cmocka_unit_test(test_device_that_cannot_tell),
        cmocka_unit_test(test_one_function_keeps_order),
        cmocka_unit_test(test_stale_rules_expire),
        cmocka_unit_test(test_expiry_under_load_keeps_order),
        cmocka_unit_test(test_full_tables_deliver),
        cmocka_unit_test(test_full_switch_steers_within_the_function),
        cmocka_unit_test(test_function_goes_away),
        cmocka_unit_test(test_function_goes_and_comes_back),
        cmocka_unit_test(test_no_function_left),
        cmocka_unit_test(test_bond_keeps_flows_on_their_link),
        cmocka_unit_test(test_bond_loses_a_link),
        cmocka_unit_test(test_bond_hash),
        cmocka_unit_test(test_rx_progress),
        cmocka_unit_test(test_refused_teams),
        cmocka_unit_test(test_xps_map),
        cmocka_unit_test(test_cost_where_nothing_moves),
        cmocka_unit_test(test_table_of_flows_full),
        cmocka_unit_test(test_device_goes_with_what_is_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
