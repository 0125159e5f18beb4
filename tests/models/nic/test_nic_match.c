/* Rules of the NIC for packets other than IPv4's: which packet meets which rule, the order of
 * rules, the multi-PF switch, what is refused, what a reset forgets. */
#include "tests/support/nic_rig.h"

#include "models/nic/nic_match.h"

#define TYPE    0x86dfu
#define HEAD    32u
#define QUEUES  3u
#define BUFFERS 64u

struct queue {
    struct nr_cq cq;
    struct nr_rq rq;
};

/* Queues of a function; all that meets no rule comes to the first. */
static void open_queues(struct nr_rig *rig, unsigned pf, struct queue *queue, unsigned n)
{
    const uint64_t table = nr_alloc(rig, 64);
    const uint16_t first = 0;
    nr_eq_new(rig, pf, 0, 0);
    for (unsigned q = 0; q < n; q++) {
        queue[q].cq = nr_cq_new(rig, pf, q, 0, 8, 0, 0, NIC_MODERATION_EQE);
        queue[q].rq = nr_rq_new(rig, pf, q, q, 7);
        nr_post(&queue[q].rq, BUFFERS);
    }
    nr_put(rig, table, &first, sizeof(first));
    nr_ok(rig, pf, (struct nic_command){ .opcode = NIC_SET_RSS, .iova = table });
}

static unsigned received(struct queue *queue)
{
    struct nic_cqe cqe;
    unsigned n = 0;
    while (nr_poll(&queue->cq, &cqe))
        n++;
    return n;
}

/* A frame to the NIC of this type, with these bytes from byte 16 on and nothing else in it. */
static void send_frame(struct nr_rig *rig, uint16_t type, uint8_t b16, uint8_t b17, uint8_t b31,
                       uint32_t header_bytes)
{
    struct ether_frame *frame = ether_frame_new(&rig->peer);
    const uint64_t mac = nic_function_mac(rig->nic, 0);
    memset(frame->header, 0, HEAD);
    for (unsigned i = 0; i < 6; i++)
        frame->header[i] = (uint8_t)(mac >> (40 - 8 * i));
    ether_put16(frame->header + 12, type);
    frame->header[16] = b16;
    frame->header[17] = b17;
    frame->header[31] = b31;
    frame->header_bytes = (uint16_t)header_bytes;
    frame->payload.bytes = 0;
    frame->payload.n = 0;
    ether_port_send(&rig->wire_end, frame, sim_now(rig->sim));
    nr_run(rig);
}

static struct nic_command set_match(unsigned number, unsigned target, uint8_t flags,
                                    struct nic_match match)
{
    return (struct nic_command){ .opcode = NIC_SET_MATCH,
                                 .queue = (uint16_t)number,
                                 .target = (uint16_t)target,
                                 .flags = flags,
                                 .match = match };
}

/* Byte 17 is `value`. */
static struct nic_match by_endpoint(uint8_t value)
{
    return (struct nic_match){ .ether_type = TYPE,
                               .offset = { 16 },
                               .word = { { 0x00ff0000, (uint32_t)value << 16 } } };
}

/* Byte 16 is 42, and the last of the word from byte 28 on is `value`. */
static struct nic_match by_magic(uint8_t value)
{
    return (struct nic_match){ .ether_type = TYPE,
                               .offset = { 16, 28 },
                               .word = { { 0xff000000, 42u << 24 }, { 0xff, value } } };
}

static void test_rules_choose_queues(void **state)
{
    struct nr_rig *rig = *state;
    struct queue queue[QUEUES];
    open_queues(rig, 0, queue, QUEUES);
    nr_ok(rig, 0, set_match(8, 1, 0, by_endpoint(5)));
    nr_ok(rig, 0, set_match(9, 2, 0, by_endpoint(6)));
    /* set last, but its number is lower: where both are met, it counts */
    nr_ok(rig, 0, set_match(3, 2, 0, by_magic(0x81)));
    send_frame(rig, TYPE, 37, 5, 0, HEAD);
    assert_int_equal(received(&queue[1]), 1);
    send_frame(rig, TYPE, 37, 6, 0x81, HEAD);
    assert_int_equal(received(&queue[2]), 1);
    send_frame(rig, TYPE, 42, 5, 0x81, HEAD);
    assert_int_equal(received(&queue[2]), 1);
    send_frame(rig, TYPE, 42, 5, 0x80, HEAD);
    assert_int_equal(received(&queue[1]), 1);
    send_frame(rig, TYPE, 37, 7, 0, HEAD); /* no rule */
    send_frame(rig, TYPE + 1, 37, 5, 0, HEAD);
    send_frame(rig, TYPE, 42, 7, 0x81, HEAD - 1); /* the second word is not in the headers */
    assert_int_equal(received(&queue[0]), 3);
    assert_int_equal(received(&queue[1]) + received(&queue[2]), 0);
    /* changed, and deleted */
    nr_ok(rig, 0, set_match(8, 2, 0, by_endpoint(5)));
    nr_ok(rig, 0, (struct nic_command){ .opcode = NIC_DELETE_MATCH, .queue = 9 });
    assert_int_equal(
        nr_command(rig, 0, (struct nic_command){ .opcode = NIC_DELETE_MATCH, .queue = 9 }).status,
        NIC_COMMAND_NOT_FOUND);
    send_frame(rig, TYPE, 37, 5, 0, HEAD);
    send_frame(rig, TYPE, 37, 6, 0, HEAD);
    assert_int_equal(received(&queue[2]), 1);
    assert_int_equal(received(&queue[0]), 1);
}

/* With one word masked out a rule takes all packets of the type; packets of IPv4 are not
 * concerned. */
static void test_a_rule_for_a_whole_type(void **state)
{
    struct nr_rig *rig = *state;
    struct queue queue[QUEUES];
    const struct nr_flow flow = { .to_mac = nic_function_mac(rig->nic, 0), .source_port = 1 };
    open_queues(rig, 0, queue, QUEUES);
    nr_ok(rig, 0, set_match(NIC_MATCHES - 1, 1, 0, (struct nic_match){ .ether_type = TYPE }));
    send_frame(rig, TYPE, 1, 2, 3, HEAD);
    send_frame(rig, TYPE, 4, 5, 6, 16);
    nr_wire_send(rig, &flow, 1, 0, 100);
    nr_run(rig);
    assert_int_equal(received(&queue[1]), 2);
    assert_int_equal(received(&queue[0]), 1);
}

static void test_the_switch_chooses_functions(void **state)
{
    struct nr_rig *rig = *state;
    struct queue queue[2][QUEUES];
    open_queues(rig, 0, queue[0], QUEUES);
    open_queues(rig, 1, queue[1], QUEUES);
    nr_ok(rig, 0, set_match(0, 1, NIC_COMMAND_SWITCH, by_endpoint(5)));
    nr_ok(rig, 1, set_match(0, 2, 0, by_endpoint(5)));
    send_frame(rig, TYPE, 37, 5, 0, HEAD); /* both rules */
    assert_int_equal(received(&queue[1][2]), 1);
    send_frame(rig, TYPE, 37, 6, 0, HEAD); /* the default function */
    assert_int_equal(received(&queue[0][0]), 1);
    /* any function changes it */
    nr_ok(rig, 1, set_match(0, 0, NIC_COMMAND_SWITCH, by_endpoint(5)));
    send_frame(rig, TYPE, 37, 5, 0, HEAD);
    assert_int_equal(received(&queue[0][0]), 1);
    nr_ok(rig, 0, (struct nic_command){ .opcode = NIC_DELETE_MATCH, .flags = NIC_COMMAND_SWITCH });
    assert_int_equal(nr_command(rig, 0, set_match(0, 2, NIC_COMMAND_SWITCH, by_endpoint(5))).status,
                     NIC_COMMAND_BAD); /* no such function */
}

static void test_what_is_refused(void **state)
{
    struct nr_rig *rig = *state;
    const struct nic_match ipv4 = { .ether_type = ETHER_TYPE_IPV4 };
    struct nic_match outside = by_endpoint(5);
    outside.word[1].value = 1;
    assert_int_equal(nr_command(rig, 0, set_match(0, 0, 0, ipv4)).status, NIC_COMMAND_BAD);
    assert_int_equal(nr_command(rig, 0, set_match(0, 0, 0, outside)).status, NIC_COMMAND_BAD);
    assert_int_equal(nr_command(rig, 0, set_match(NIC_MATCHES, 0, 0, by_endpoint(5))).status,
                     NIC_COMMAND_BAD);
    assert_int_equal(
        nr_command(rig, 0, set_match(0, nic_queues(rig->nic), 0, by_endpoint(5))).status,
        NIC_COMMAND_BAD);
    /* the switch of standard firmware goes by MAC alone */
    assert_int_equal(nr_command(rig, 0, set_match(0, 0, NIC_COMMAND_SWITCH, by_endpoint(5))).status,
                     NIC_COMMAND_BAD);
    assert_int_equal(
        nr_command(rig, 0,
                   (struct nic_command){ .opcode = NIC_DELETE_MATCH, .flags = NIC_COMMAND_SWITCH })
            .status,
        NIC_COMMAND_BAD);
}

static void test_a_reset_forgets_them(void **state)
{
    struct nr_rig *rig = *state;
    struct queue queue[QUEUES];
    const unsigned cap = nr_capability(rig, 0, PCI_CAP_ID_PCIE);
    nr_ok(rig, 0, set_match(0, 1, 0, by_endpoint(5)));
    nr_config(rig, 0, true, cap + PCIE_DEVCTL, PCIE_DEVCTL_FLR);
    nr_run(rig);
    nr_enable(rig, 0);
    open_queues(rig, 0, queue, QUEUES);
    send_frame(rig, TYPE, 37, 5, 0, HEAD);
    assert_int_equal(received(&queue[0]), 1);
}

/* The table against a list that is searched in full. */
static void test_table_by_chance(void **unused)
{
    struct nic_match_table table = { .entry = NULL };
    struct sim_random random;
    uint16_t target[64] = { 0 };
    bool there[64] = { false };
    (void)unused;
    sim_random_init(&random, 1, "matches");
    for (unsigned step = 0; step < 4000; step++) {
        const uint16_t number = (uint16_t)(sim_random_u64(&random) % 64);
        const uint8_t wanted = (uint8_t)(sim_random_u64(&random) % 8);
        uint8_t header[HEAD] = { [17] = wanted };
        if (sim_random_u64(&random) % 3 == 0) {
            assert_int_equal(nic_match_delete(&table, number), there[number]);
            there[number] = false;
        } else {
            const struct nic_match match = by_endpoint((uint8_t)(number % 8));
            target[number] = (uint16_t)step;
            there[number] = true;
            nic_match_set(&table, number, &match, target[number]);
        }
        unsigned n = wanted;
        while (n < 64 && !there[n])
            n += 8;
        const struct nic_match_entry *found = nic_match_find(&table, TYPE, header, HEAD);
        assert_int_equal(found != NULL, n < 64);
        if (found != NULL) {
            assert_int_equal(found->number, n);
            assert_int_equal(found->target, target[n]);
        }
    }
    nic_match_release(&table);
    assert_null(nic_match_find(&table, TYPE, NULL, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NR_TEST(test_rules_choose_queues, 1, 16),
        NR_TEST(test_a_rule_for_a_whole_type, 1, 16),
        NR_TEST(test_the_switch_chooses_functions, 2, 8, "firmware", "octonic"),
        NR_TEST(test_what_is_refused, 1, 16),
        NR_TEST(test_a_reset_forgets_them, 1, 16),
        cmocka_unit_test(test_table_by_chance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
