/* The octoNIC's rules for packets beside IPv4's: at the function of their CPU's node, wherever
 * functions come and go; in the function before the switch sends packets there; nothing left
 * behind. The stack is the real one, the functions' driver notes what it is asked for. */
#include "logic/net/net.h"
#include "logic/steering/octonic.h"
#include "tests/support/fake/fake_kapi.h"
#include "tests/support/test.h"

#define PORTS  2u
#define QUEUES 4u
#define RULES  4u

struct noted { /* a rule in a table */
    bool there;
    uint32_t value;
    uint16_t target;
};

struct rig;
struct port {
    struct net_device dev;
    struct k_device device;
    struct rig *rig;
    struct noted rule[RULES];
    bool full;
};
struct rig {
    struct kernel *kernel;
    struct net *net;
    struct port port[PORTS];
    struct noted in_switch[RULES];
    struct octonic *octonic;
    bool switch_full;
    struct net_device *dev;
    unsigned n_commands;
};

static struct port *port_of(const struct net_device *dev)
{
    return dev->private_data;
}

static int port_open(struct net_device *dev)
{
    dev->running = true;
    net_device_carrier(dev, true);
    return 0;
}

static void port_stop(struct net_device *dev)
{
    dev->running = false;
    net_device_carrier(dev, false);
}

static int note(struct rig *rig, struct noted *noted, const struct net_rx_rule *rule,
                uint16_t target)
{
    k_sleep(rig->kernel, FAKE_US(10)); /* a command; somebody else may run */
    rig->n_commands++;
    if (rule == NULL && !noted->there)
        return -ENOENT;
    *noted = rule != NULL ? (struct noted){ true, rule->word[0].value, target }
                          : (struct noted){ .there = false };
    return 0;
}

static int port_rule(struct net_device *dev, uint16_t number, const struct net_rx_rule *rule,
                     uint16_t rxq)
{
    struct port *port = port_of(dev);
    assert_in_range(number, 0, RULES - 1);
    if (rule == NULL && !dev->running) { /* gone: it has forgotten all */
        port->rule[number].there = false;
        return 0;
    }
    assert_true(dev->running);
    assert_in_range(rxq, 0, QUEUES - 1);
    if (rule != NULL && port->full)
        return -ENOSPC;
    return note(port->rig, &port->rule[number], rule, rxq);
}

static const struct net_device_ops port_ops = { .open = port_open,
                                                .stop = port_stop,
                                                .rx_rule = port_rule };

static unsigned function(const struct net_device *lower)
{
    const struct port *port = port_of(lower);
    return (unsigned)(port - port->rig->port);
}

/* Where packets are sent, they are known. */
static int switch_rule(struct net_device *lower, uint16_t number, const struct net_rx_rule *rule,
                       unsigned to)
{
    struct rig *rig = port_of(lower)->rig;
    assert_true(lower->running);
    if (rule != NULL) {
        assert_true(rig->port[to].rule[number].there);
        assert_int_equal(rig->port[to].rule[number].value, rule->word[0].value);
    }
    if (rule != NULL && rig->switch_full)
        return -ENOSPC;
    return note(rig, &rig->in_switch[number], rule, (uint16_t)to);
}

static int switch_set(struct net_device *lower, const struct flow_key *flow, unsigned to)
{
    (void)lower, (void)flow, (void)to;
    return 0;
}

static int switch_delete(struct net_device *lower, const struct flow_key *flow)
{
    (void)lower, (void)flow;
    return -ENOENT;
}

static const struct octonic_device_ops team_ops = { .function = function,
                                                    .switch_set = switch_set,
                                                    .switch_delete = switch_delete,
                                                    .switch_rule = switch_rule };

static void rig_open(struct rig *rig, unsigned stall_percent)
{
    const struct fake_options options = { .seed = 3, .stall_percent = stall_percent };
    struct net_device *lower[PORTS];
    int error = 0;
    *rig = (struct rig){ .kernel = fake_new(&options) };
    rig->net = net_new(rig->kernel, &net_params_default);
    for (unsigned i = 0; i < PORTS; i++) {
        struct port *port = &rig->port[i];
        port->rig = rig;
        port->device.node = (int)i;
        port->dev = (struct net_device){ .kernel = rig->kernel,
                                         .name = i == 0 ? "pf0" : "pf1",
                                         .ops = &port_ops,
                                         .device = &port->device,
                                         .mtu_bytes = 1500,
                                         .n_tx_queues = QUEUES,
                                         .n_rx_queues = QUEUES,
                                         .private_data = port };
        for (unsigned cpu = 0; cpu < 256; cpu++)
            port->dev.xps_queue[cpu] = port->dev.rx_queue_of_cpu[cpu] = cpu < QUEUES ? (int16_t)cpu
                                                                                     : -1;
        assert_int_equal(net_device_register(rig->net, &port->dev), 0);
        lower[i] = &port->dev;
    }
    rig->octonic = octonic_new(rig->net, "octo0", &octonic_params_default, &team_ops, lower, PORTS,
                               &error);
    assert_non_null(rig->octonic);
    rig->dev = octonic_device(rig->octonic);
    assert_int_equal(rig->dev->ops->open(rig->dev), 0);
}

static void rig_run(struct rig *rig)
{
    fake_run_until(rig->kernel, k_now_ps(rig->kernel) + FAKE_MS(1));
}

static void rig_close(struct rig *rig)
{
    octonic_free(rig->octonic);
    for (unsigned i = 0; i < PORTS; i++)
        net_device_unregister(&rig->port[i].dev);
    net_free(rig->net);
    fake_free(rig->kernel);
}

static int set(struct rig *rig, uint16_t number, uint32_t value, unsigned cpu)
{
    const struct net_rx_rule rule = { .ether_type = 0x86df, .word = { { 16, 0xff, value } } };
    return rig->dev->ops->rx_rule(rig->dev, number, &rule,
                                  (uint16_t)rig->dev->rx_queue_of_cpu[cpu]);
}

static int delete_rule(struct rig *rig, uint16_t number)
{
    return rig->dev->ops->rx_rule(rig->dev, number, NULL, 0);
}

/* Rule `number` is at this function and at no other, for the queue of this CPU. */
static void expect_at(const struct rig *rig, unsigned number, uint32_t value, unsigned port,
                      unsigned cpu)
{
    assert_true(rig->in_switch[number].there);
    assert_int_equal(rig->in_switch[number].target, port);
    assert_true(rig->port[port].rule[number].there);
    assert_int_equal(rig->port[port].rule[number].value, value);
    assert_int_equal(rig->port[port].rule[number].target, cpu);
    assert_false(rig->port[1 - port].rule[number].there);
}

static void expect_nowhere(const struct rig *rig, unsigned number)
{
    assert_false(rig->in_switch[number].there);
    for (unsigned i = 0; i < PORTS; i++)
        assert_false(rig->port[i].rule[number].there);
}

/* CPUs 0 and 1 are on node 0, 2 and 3 on node 1. */
static void test_at_the_functions_of_their_cpus(void **state)
{
    struct rig rig;
    (void)state;
    rig_open(&rig, 0);
    assert_int_equal(set(&rig, 0, 10, 1), 0);
    assert_int_equal(set(&rig, 1, 11, 2), 0);
    expect_at(&rig, 0, 10, 0, 1);
    expect_at(&rig, 1, 11, 1, 2);
    assert_int_equal(rig.n_commands, 4);
    /* in its place: another value, another CPU */
    assert_int_equal(set(&rig, 0, 20, 3), 0);
    expect_at(&rig, 0, 20, 1, 3);
    assert_int_equal(delete_rule(&rig, 0), 0);
    assert_int_equal(delete_rule(&rig, 0), -ENOENT);
    expect_nowhere(&rig, 0);
    expect_at(&rig, 1, 11, 1, 2);
    assert_int_equal(rig.dev->ops->rx_rule(rig.dev, 2, NULL, 0), -ENOENT);
    rig_close(&rig);
}

static void test_functions_go_and_come(void **state)
{
    (void)state;
    for (unsigned stalls = 0; stalls <= 40; stalls += 20) {
        struct rig rig;
        rig_open(&rig, stalls);
        assert_int_equal(set(&rig, 0, 10, 0), 0);
        assert_int_equal(set(&rig, 1, 11, 2), 0);
        assert_int_equal(set(&rig, 2, 12, 3), 0);
        port_stop(&rig.port[1].dev);
        rig_run(&rig);
        expect_at(&rig, 0, 10, 0, 0);
        expect_at(&rig, 1, 11, 0, 2);
        expect_at(&rig, 2, 12, 0, 3);
        /* what is set, and deleted, meanwhile */
        assert_int_equal(set(&rig, 3, 13, 2), 0);
        expect_at(&rig, 3, 13, 0, 2);
        assert_int_equal(delete_rule(&rig, 1), 0);
        port_open(&rig.port[1].dev);
        rig_run(&rig);
        expect_at(&rig, 0, 10, 0, 0);
        expect_nowhere(&rig, 1);
        expect_at(&rig, 2, 12, 1, 3);
        expect_at(&rig, 3, 13, 1, 2);
        port_stop(&rig.port[0].dev);
        port_stop(&rig.port[1].dev);
        rig_run(&rig);
        assert_int_equal(set(&rig, 1, 11, 0), -ENODEV);
        rig_close(&rig);
    }
}

static void test_what_is_refused(void **state)
{
    const struct net_rx_rule rule = { .ether_type = 0x86df };
    struct rig rig;
    (void)state;
    rig_open(&rig, 0);
    assert_int_equal(rig.dev->ops->rx_rule(rig.dev, 0, &rule, PORTS * QUEUES), -EINVAL);
    /* no CPU has this queue: those of node 0 have the other function's */
    assert_int_equal(rig.dev->ops->rx_rule(rig.dev, 0, &rule, QUEUES), -EINVAL);
    rig.port[1].full = true;
    assert_int_equal(set(&rig, 0, 10, 2), -ENOSPC);
    expect_nowhere(&rig, 0);
    assert_int_equal(set(&rig, 0, 10, 1), 0);
    assert_int_equal(set(&rig, 0, 20, 2), -ENOSPC); /* nor is the old one left */
    expect_nowhere(&rig, 0);
    rig_close(&rig);
}

/* On failure there is no rule anywhere. */
static void test_a_full_switch(void **state)
{
    struct rig rig;
    (void)state;
    rig_open(&rig, 0);
    rig.switch_full = true;
    assert_int_equal(set(&rig, 0, 10, 1), -ENOSPC);
    expect_nowhere(&rig, 0);
    rig_close(&rig);
}

/* It leaves the switch as soon as somebody can say so. */
static void test_deleted_while_no_function_is_there(void **state)
{
    struct rig rig;
    (void)state;
    rig_open(&rig, 0);
    assert_int_equal(set(&rig, 0, 10, 0), 0);
    port_stop(&rig.port[0].dev);
    port_stop(&rig.port[1].dev);
    rig_run(&rig);
    assert_int_equal(delete_rule(&rig, 0), 0);
    port_open(&rig.port[0].dev);
    port_open(&rig.port[1].dev);
    rig_run(&rig);
    expect_nowhere(&rig, 0);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_at_the_functions_of_their_cpus),
        cmocka_unit_test(test_functions_go_and_come),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_a_full_switch),
        cmocka_unit_test(test_deleted_while_no_function_is_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
