/*
 * A third kind of cable, defined here alone, joins two models of a world: parameters, statistics,
 * mistakes, what is left under way, pictures. This program has a list of kinds of its own, which
 * the linker takes instead of models/world/cable_registry.c.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "models/ether/ether.h"
#include "models/pcie/link/port.h"
#include "models/world/registry.h"
#include "tests/support/world_fixture.h"

/* ---- A wire that carries one word at a time -------------------------------------------------- */

struct word_wire;
struct word_port {
    struct model *model;
    struct word_wire *wire;
    uint64_t words_sent;
    uint64_t received;
};

struct word_params {
    sim_time latency_ps;
    uint32_t width_bits;
};

struct word_wire {
    struct sim *sim;
    struct word_params params;
    struct word_port *end[2];
    struct word_port *to; /* of the word under way; NULL: none is */
    uint64_t word;
    struct sim_event event;
};

static unsigned n_freed;

static const struct param_desc word_params[] = {
    PARAM("latency_ns", PARAM_TIME, struct word_params, latency_ps, 10, 0, 1000, PROV_NONE, "",
          "one way"),
    PARAM("width_bits", PARAM_U32, struct word_params, width_bits, 8, 1, 64, PROV_NONE, "",
          "bits of a word"),
    { .type = PARAM_END },
};

static const struct stat_desc word_stats[] = {
    STAT("words", STAT_COUNTER, struct word_port, words_sent, "1", 0, "words sent"),
    { .kind = STAT_END },
};

static void word_arrives(struct sim *sim, struct sim_event *event)
{
    struct word_wire *wire = SIM_CONTAINER(event, struct word_wire, event);

    (void)sim;
    wire->to->received = wire->word;
    wire->to = NULL;
}

static void word_send(struct word_port *port, uint64_t word)
{
    struct word_wire *wire = port->wire;

    wire->to = wire->end[port == wire->end[0]];
    wire->word = word & ((UINT64_C(1) << wire->params.width_bits) - 1);
    port->words_sent++;
    sim_schedule_in(wire->sim, &wire->event, wire->params.latency_ps);
}

static const char *word_mismatch(const void *a, const void *b)
{
    const struct word_port *from = a, *to = b;

    return from->model == to->model ? "a cable between two models" : NULL;
}

static void *word_join(const struct cable_plan *plan, struct sim_error_list *errors)
{
    struct word_port *from = plan->port[0], *to = plan->port[1];

    if (from->wire != NULL || to->wire != NULL) {
        sim_error_add(errors, plan->file, plan->line, "%s: plugged twice", plan->name);
        return NULL;
    }
    struct word_wire *wire = sim_zalloc(1, sizeof(*wire));
    memcpy(&wire->params, plan->params, sizeof(wire->params));
    wire->sim = from->model->sim;
    wire->end[0] = from;
    wire->end[1] = to;
    from->wire = to->wire = wire;
    sim_event_init(&wire->event, word_arrives);
    return wire;
}

static void word_free(void *cable)
{
    struct word_wire *wire = cable;

    n_freed++;
    sim_cancel(wire->sim, &wire->event);
    free(wire);
}

static void *word_port_stats(void *port)
{
    return port;
}

static void word_describe(const void *port, char *text, size_t bytes)
{
    const struct word_port *p = port;

    snprintf(text, bytes, "%u bit", p->wire->params.width_bits);
}

static bool word_check_idle(struct sim *sim, void *const *ports, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        const struct word_port *port = ports[i];
        if (port->wire->to != NULL) {
            sim_fail(sim, "a word for %s is still under way", port->wire->to->model->name);
            return false;
        }
    }
    return true;
}

static const struct cable_kind word_cable = {
    .name = "word",
    .type = "word",
    .help = "a cable that carries words",
    .suffix = 'w',
    .port_bytes = sizeof(struct word_port),
    .params = word_params,
    .params_bytes = sizeof(struct word_params),
    .latency_offset = offsetof(struct word_params, latency_ps),
    .mismatch = word_mismatch,
    .join = word_join,
    .free = word_free,
    .stats = word_stats,
    .port_stats = word_port_stats,
    .describe = word_describe,
    .check_idle = word_check_idle,
};

const struct cable_kind *const cable_registry[] = { &pcie_cable, &ether_cable, &word_cable, NULL };

/* ---- A model with two such ports and an Ethernet port ---------------------------------------- */

static void box_init(struct model *model, struct sim_error_list *errors)
{
    struct ether_port *ether = model_ports_new(model, &ether_cable, 1);
    struct word_port *port = model_ports_new(model, &word_cable, 2);

    (void)errors;
    *ether = (struct ether_port){ .model = model, .name = model->name, .rate_gbit_s_max = 10 };
    port[0].model = port[1].model = model;
}

static const struct model_ops box_ops = {
    .type = "test.box",
    .help = "two word ports and an Ethernet port",
    .init = box_init,
};

const struct model_ops *const model_registry[] = { &box_ops, NULL };

/* ---- Tests ----------------------------------------------------------------------------------- */

#define BOXES                                                                               \
    "hosts = { server = { ports = ( { name = \"rp0\"; socket = 0; lanes = 16; } ); }; };\n" \
    "devices = { a = { type = \"test.box\"; }; b = { type = \"test.box\"; }; };\n"

static void test_join(void **unused)
{
    struct world_fixture f;
    struct world_cable cable;
    const char *prefix;
    const struct stat_desc *table;
    void *state;
    char text[32];
    unsigned n_found = 0;

    (void)unused;
    n_freed = 0;
    fixture_open(&f, BOXES "cables = ( { from = \"a.w1\"; to = \"b.w0\"; width_bits = 12; "
                           "length_m = 2; }, { from = \"b.e0\"; to = \"a.e0\"; } );\n");
    struct word_port *from = world_port(f.world, &word_cable, "a.w1");
    struct word_port *to = world_port(f.world, &word_cable, "b.w0");
    assert_non_null(from);
    assert_non_null(to);
    assert_null(world_port(f.world, &word_cable, "a.w2"));
    assert_null(world_port(f.world, &ether_cable, "a.w1"));
    assert_true(world_cable_at(f.world, 0, &cable));
    assert_ptr_equal(cable.kind, &word_cable);
    assert_ptr_equal(cable.port[0], from);
    assert_ptr_equal(cable.port[1], to);
    assert_true(cable.length_m == 2.0);
    assert_true(world_cable_at(f.world, 1, &cable));
    assert_ptr_equal(cable.kind, &ether_cable);
    assert_false(world_cable_at(f.world, 2, &cable));
    word_describe(from, text, sizeof(text));
    assert_string_equal(text, "12 bit");

    const sim_time before_ps = sim_now(f.sim);
    word_send(from, 0x5123);
    assert_int_equal(to->received, 0);
    sim_run(f.sim, SIM_TIME_MAX, NULL);
    assert_int_equal(to->received, 0x123);
    assert_int_equal(sim_now(f.sim) - before_ps, 20 * SIM_PS_PER_NS); /* latency, 2 m of 5 ns */
    for (unsigned i = 0; world_stats(f.world, i, &prefix, &table, &state); i++) {
        if (table != word_stats)
            continue;
        n_found++;
        assert_ptr_equal(state, strcmp(prefix, "a.w1.tx.") == 0 ? from : to);
    }
    assert_int_equal(n_found, 2);
    assert_int_equal(from->words_sent, 1);
    world_stats_clear(f.world);
    assert_int_equal(from->words_sent, 0);
    assert_true(world_check_idle(f.world));
    fixture_close(&f);
    assert_int_equal(n_freed, 1);
}

static void test_left_under_way(void **unused)
{
    struct world_fixture f;

    (void)unused;
    fixture_open(&f, BOXES "cables = ( { from = \"a.w0\"; to = \"b.w0\"; } );\n");
    word_send(world_port(f.world, &word_cable, "b.w0"), 1);
    assert_false(world_check_idle(f.world));
    assert_string_equal(sim_error(f.sim), "a word for a is still under way");
    world_free(f.world);
    config_free(f.config);
}

static void refused(const char *cables, const char *message)
{
    struct sim_error_list errors = { 0 };
    char text[1024];

    snprintf(text, sizeof(text), "%s%s", BOXES, cables);
    struct config *config = fixture_config(text, &errors);
    assert_int_equal(errors.n_messages, 0);
    struct world *world = world_new(config, 1, &errors);
    config_check_unknown(config, &errors);
    assert_int_equal(errors.n_messages, 1);
    if (strstr(errors.message[0], message) == NULL)
        fail_msg("%s: no \"%s\"", errors.message[0], message);
    world_free(world);
    config_free(config);
    sim_error_release(&errors);
}

static void test_mistakes(void **unused)
{
    (void)unused;
    refused("cables = ( { from = \"a.w0\"; to = \"b.e0\"; } );\n",
            "expected a cable between two ports of one kind: PCIe (p0, ...), Ethernet (e0, ...), "
            "word (w0, ...)");
    refused("cables = ( { from = \"a.w0\"; to = \"server.s0.rp0\"; } );\n",
            "expected a cable between two ports of one kind");
    refused("cables = ( { from = \"a.w0\"; to = \"b.w2\"; } );\n", "did you mean \"b.w0\"");
    refused("cables = ( { from = \"a.w0\"; to = \"a.w1\"; } );\n",
            "expected a cable between two models");
    refused("cables = ( { from = \"a.w0\"; to = \"b.w1\"; },"
            "           { from = \"a.w0\"; to = \"b.w0\"; } );\n",
            "plugged twice");
    refused("cables = ( { from = \"a.w0\"; to = \"b.w1\"; with_bits = 3; } );\n",
            "did you mean \"width_bits\"");
}

/* Kinds and models without what they need are refused by name. */
static void test_valid(void **unused)
{
    const char *why = NULL;

    (void)unused;
    for (unsigned i = 0; cable_registry[i] != NULL; i++)
        if (!cable_kind_valid(cable_registry[i], &why))
            fail_msg("%s: %s", cable_registry[i]->name, why);
    struct cable_kind kind = word_cable;
    kind.join = NULL;
    assert_false(cable_kind_valid(&kind, &why));
    assert_non_null(strstr(why, "join()"));
    kind = word_cable;
    kind.port_stats = NULL;
    assert_false(cable_kind_valid(&kind, &why));
    assert_non_null(strstr(why, "port_stats()"));
    kind = word_cable;
    kind.port_bytes = 0;
    assert_false(cable_kind_valid(&kind, &why));
    assert_non_null(strstr(why, "port_bytes"));
    kind = word_cable;
    kind.params_bytes = 0;
    assert_false(cable_kind_valid(&kind, &why));
    assert_non_null(strstr(why, "latency"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_join),
        cmocka_unit_test(test_left_under_way),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_valid),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
