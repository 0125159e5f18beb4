/*
 * Lending across cluster switches in cascade: hosts and switches with any numbers on the fabric,
 * the requester tables of all switches on the way, what is refused when one is full, and that
 * nothing is left in any of them when all hosts have taken leave.
 */
#include "tests/support/kernel_call.h"
#include "tests/support/world_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "hw/pci_regs.h"
#include "logic/lending/lending.h"
#include "models/os/os.h"
#include "models/pcie/ntb/cluster_switch.h"
#include "models/pcie/ntb/ntb.h"

#define HOST(NAME, MORE)                                                                    \
    NAME " = { " MORE " cpu = { sockets = 1; cores_per_socket = 1; };"                      \
         " dram = { node_size = \"128 MiB\"; channels = 1; }; iommu = { enabled = true; };" \
         " ports = ( { name = \"rp0\"; lanes = 8; }, { name = \"rp1\"; lanes = 8; } ); };\n"
#define BRIDGE " = { type = \"pcie.ntb\"; lanes = 8; cable_lanes = 8; bar2_bytes = \"1 GiB\"; "

/* server and other below `left`, lender below `right`, `top` between them. */
#define WORLD                                                                                                          \
    "hosts = { " HOST("server", "root_complex = { mps_bytes = %u; };") HOST("lender", "") HOST(                        \
        "other",                                                                                                       \
        "") "};\n"                                                                                                     \
            "devices = { n0" BRIDGE "node = %u; }; n1" BRIDGE "node = %u; %s }; n2" BRIDGE "};\n"                      \
            " dma = { type = \"pcie.requester\"; lanes = 8; bar_bytes = 65536; };\n"                                   \
            " left = { type = \"pcie.cluster_switch\"; ports = 3; };\n"                                                \
            " top = { type = \"pcie.cluster_switch\"; ports = 2; node = %u; requesters = %u; mps_bytes_max = %u; };\n" \
            " right = { type = \"pcie.cluster_switch\"; ports = 3; }; };\n"                                            \
            "cables = ( { from = \"server.s0.rp0\"; to = \"n0.p0\"; },"                                                \
            " { from = \"lender.s0.rp0\"; to = \"n1.p0\"; }, { from = \"lender.s0.rp1\"; to = \"dma.p0\"; },"          \
            " { from = \"other.s0.rp0\"; to = \"n2.p0\"; },"                                                           \
            " { from = \"n0.p1\"; to = \"left.p0\"; }, { from = \"n2.p1\"; to = \"left.p1\"; },"                       \
            " { from = \"left.p2\"; to = \"top.p0\"; }, { from = \"top.p1\"; to = \"right.p2\"; },"                    \
            " { from = \"n1.p1\"; to = \"right.p0\"; } );\n"

#define BORROWER 0
#define LENDER   1
#define OTHER    2
#define N_SIDES  3
#define MS       SIM_PS_PER_MS

struct rig;
struct side {
    struct kernel *kernel;
    struct lend_host *lend;
    struct rig *rig;
    uint32_t listed; /* node at which a list says that every host is; 0: there is no list */
};
struct rig {
    struct world_fixture w;
    struct side side[N_SIDES];
    struct lend_borrow *borrow;
    struct lend_error error;
    int status, n_found;
    uint32_t listed;
};

struct call {
    struct side *side;
    void (*body)(struct side *side);
};

static void call_body(void *arg)
{
    const struct call *call = arg;
    call->body(call->side);
}

static void call(struct rig *r, unsigned side, void (*body)(struct side *side))
{
    struct call c = { .side = &r->side[side], .body = body };
    kernel_call(&r->w, r->side[side].kernel, call_body, &c);
}

static const struct k_pci_id ids[] = { { 0x19ee, 0x6000 }, { 0, 0 } };

static unsigned nodes(uint32_t peer, uint32_t node[LEND_ADAPTERS_MAX], void *context)
{
    const struct side *side = context;
    (void)peer;
    node[0] = side->listed;
    return 1;
}

static void up(struct side *s)
{
    static const char *const names[] = { "borrower", "lender", "other" };
    const unsigned i = (unsigned)(s - s->rig->side);
    struct lend_options options = lend_options_default;
    struct lend_error error;
    options.id = i + 1;
    options.name = names[i];
    options.lend = i == LENDER ? ids : NULL;
    options.nodes = i == BORROWER && s->rig->listed != 0 ? nodes : NULL;
    options.context = s;
    s->listed = s->rig->listed;
    s->lend = lend_host_new(s->kernel, &options);
    assert_int_equal(k_pci_register(s->kernel, lend_adapter_driver(s->lend)), 1);
    assert_int_equal(k_pci_register(s->kernel, lend_lender_driver(s->lend)), i == LENDER);
    assert_int_equal(lend_start(s->lend, &error), 0);
}

static void borrow(struct side *s)
{
    struct rig *r = s->rig;
    const uint16_t id = pcie_requester_id(world_device(r->w.world, "dma"));
    r->n_found = s->listed != 0 ? 0 : lend_discover(s->lend);
    r->error.text[0] = '\0';
    r->status = lend_borrow(s->lend, LENDER + 1, id, &r->borrow, &r->error);
}

static void give_back(struct side *s)
{
    lend_return(s->rig->borrow);
}

static void down(struct side *s)
{
    lend_host_free(s->lend);
}

static const struct cluster_switch *switch_of(struct rig *r, const char *name)
{
    return world_device(r->w.world, name)->state;
}

/* `borrower`, `lender`, `top`: numbers on the fabric; requesters, top_payload: of `top`; more: of
 * the lender's bridge. */
static struct rig *rig_open_with(unsigned borrower, unsigned lender, unsigned top,
                                 unsigned requesters, unsigned top_payload, unsigned payload,
                                 uint32_t listed, const char *more)
{
    static const char *const names[] = { "server", "lender", "other" };
    struct rig *r = calloc(1, sizeof(*r));
    r->listed = listed;
    char *text = g_strdup_printf(WORLD, payload, borrower, lender, more, top, requesters,
                                 top_payload);
    fixture_open(&r->w, text);
    g_free(text);
    for (unsigned i = 0; i < N_SIDES; i++) {
        struct host *host = world_host(r->w.world, names[i]);
        r->side[i] = (struct side){ .kernel = os_new(host, host_os_params(host)), .rig = r };
    }
    for (unsigned i = 0; i < N_SIDES; i++)
        call(r, i, up);
    return r;
}

static struct rig *rig_open_listed(unsigned borrower, unsigned lender, unsigned top,
                                   unsigned requesters, unsigned top_payload, unsigned payload,
                                   uint32_t listed)
{
    return rig_open_with(borrower, lender, top, requesters, top_payload, payload, listed, "");
}

static struct rig *rig_open_of(unsigned borrower, unsigned lender, unsigned top,
                               unsigned requesters, unsigned top_payload, unsigned payload)
{
    return rig_open_listed(borrower, lender, top, requesters, top_payload, payload, 0);
}

static struct rig *rig_open(unsigned borrower, unsigned lender, unsigned top, unsigned requesters)
{
    return rig_open_of(borrower, lender, top, requesters, 2048, 256);
}

/* No switch has refused a request, and none keeps an entry of hosts that have gone. */
static void rig_close(struct rig *r)
{
    static const char *const switches[] = { "left", "top", "right" };
    for (unsigned i = 0; i < N_SIDES; i++)
        call(r, i, down);
    sim_run(r->w.sim, sim_now(r->w.sim) + MS, NULL);
    for (unsigned i = 0; i < SIM_N_ELEMENTS(switches); i++) {
        assert_int_equal(switch_of(r, switches[i])->n_entries, 0);
        assert_int_equal(switch_of(r, switches[i])->table_full, 0);
        assert_int_equal(switch_of(r, switches[i])->oversized, 0);
    }
    for (unsigned i = 0; i < N_SIDES; i++)
        os_free(r->side[i].kernel);
    fixture_close(&r->w);
    free(r);
}

/* ---- Tests ----------------------------------------------------------------------------------- */

/* Numbers are names: every one that a fabric can have is found. */
static void test_any_number(void **state)
{
    static const unsigned numbers[][3] = { { 1, 2, 0 }, { 66, 131, 0 }, { 65534, 4096, 9000 } };
    (void)state;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(numbers); i++) {
        struct rig *r = rig_open(numbers[i][0], numbers[i][1], numbers[i][2], 512);
        call(r, BORROWER, borrow);
        assert_int_equal(r->n_found, 2);
        assert_string_equal(r->error.text, "");
        assert_int_equal(r->status, 0);
        call(r, BORROWER, give_back);
        rig_close(r);
    }
}

/* A list says where the lender is: nobody looks anywhere else, and entries are what they are
 * without it. */
static void test_listed(void **state)
{
    struct lend_path path;
    (void)state;
    struct rig *r = rig_open_listed(66, 131, 9000, 512, 2048, 256, 131);
    call(r, BORROWER, borrow);
    assert_string_equal(r->error.text, "");
    assert_int_equal(r->status, 0);
    assert_true(lend_path_at(r->side[BORROWER].lend, 0, &path));
    assert_int_equal(path.peer, LENDER + 1);
    assert_int_equal(path.node, 131);
    assert_false(lend_path_at(r->side[BORROWER].lend, 1, &path));
    assert_int_equal(switch_of(r, "top")->n_entries, 3);
    call(r, BORROWER, give_back);
    assert_int_equal(switch_of(r, "top")->n_entries, 2);
    rig_close(r);
}

/* Nobody is at the node of the list, or another host is: the borrow fails and leaves nothing. */
static void test_listed_wrongly(void **state)
{
    static const unsigned listed[] = { 4000, 67 };
    (void)state;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(listed); i++) {
        struct rig *r = rig_open_listed(66, 131, 9000, 512, 2048, 256, listed[i]);
        call(r, BORROWER, borrow);
        assert_int_equal(r->status, -EHOSTUNREACH);
        assert_non_null(strstr(r->error.text, "no path to host 2"));
        assert_int_equal(switch_of(r, "left")->n_entries, 0);
        rig_close(r);
    }
}

/* CPUs of borrower and lender and the device: one entry each, in each switch on the way. */
static void test_entries(void **state)
{
    (void)state;
    struct rig *r = rig_open(0, 0, 0, 512);
    call(r, BORROWER, borrow);
    assert_int_equal(r->status, 0);
    assert_int_equal(switch_of(r, "left")->n_entries, 3);
    assert_int_equal(switch_of(r, "top")->n_entries, 3);
    assert_int_equal(switch_of(r, "right")->n_entries, 3);
    call(r, BORROWER, give_back);
    assert_int_equal(switch_of(r, "top")->n_entries, 2); /* they stay connected */
    /* A host that only looks around leaves nothing. */
    call(r, OTHER, borrow);
    assert_int_equal(r->status, 0);
    call(r, OTHER, give_back);
    assert_int_equal(switch_of(r, "top")->n_entries, 3);
    assert_int_equal(switch_of(r, "left")->n_entries, 3);
    rig_close(r);
}

/* A full table refuses by name, whoever finds it full, and nothing is left of the attempt. */
static void test_full(void **state)
{
    (void)state;
    for (unsigned requesters = 1; requesters <= 3; requesters++) {
        struct rig *r = rig_open(0, 0, 77, requesters);
        char expected[80];
        snprintf(expected, sizeof(expected),
                 "requester table of cluster switch 77: %u of %u entries in use", requesters,
                 requesters);
        call(r, BORROWER, borrow);
        if (requesters < 3) {
            /* 1: the lender cannot answer hellos; 2: there is no entry for the device. */
            assert_int_equal(r->status, -ENOSPC);
            assert_non_null(strstr(r->error.text, expected));
            assert_int_equal(lend_usage(r->side[BORROWER].lend).borrowed, 0);
            assert_int_equal(lend_usage(r->side[LENDER].lend).lent, 0);
        } else {
            assert_int_equal(r->status, 0);
            /* The third host's CPUs find no room. */
            struct lend_borrow *first = r->borrow;
            call(r, OTHER, borrow);
            assert_int_equal(r->status, -EHOSTUNREACH);
            assert_non_null(strstr(r->error.text, expected));
            r->borrow = first;
            call(r, BORROWER, give_back);
            call(r, OTHER, borrow);
            assert_int_equal(r->status, -ENOSPC); /* of which the borrower keeps one */
        }
        rig_close(r);
    }
}

/* The lender has no window left to enter the device in the switches' tables: who has them is what
 * the borrower hears, and no switch is taken for one that has not been told. */
static void test_no_window(void **state)
{
    (void)state;
    struct rig *r = rig_open_with(0, 0, 77, 512, 2048, 256, 0, "bar2_windows = 2;");
    call(r, BORROWER, borrow);
    assert_int_equal(r->status, -ENOSPC);
    assert_non_null(strstr(r->error.text, "2 of 2 in use, by node"));
    assert_int_equal(lend_usage(r->side[LENDER].lend).unsettled, 0);
    assert_int_equal(lend_usage(r->side[LENDER].lend).lent, 0);
    rig_close(r);
}

/* A switch drops TLPs with more payload than it supports, so the borrower's answers and the
 * device's requests have to fit: nothing is borrowed unless Max_Payload_Size of the borrower's tree
 * does. */
static void test_payload(void **state)
{
    static const unsigned wrong[][2] = { { 128, 256 }, { 256, 512 } }; /* switch, borrower */
    static const unsigned right[][2] = { { 128, 128 }, { 256, 256 }, { 512, 128 } };
    (void)state;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(wrong); i++) {
        struct rig *r = rig_open_of(0, 0, 77, 512, wrong[i][0], wrong[i][1]);
        char expected[80];
        snprintf(expected, sizeof(expected),
                 "cluster switch 77 passes payloads of %u bytes (mps_bytes_max)", wrong[i][0]);
        call(r, BORROWER, borrow);
        assert_int_equal(r->status, -EMSGSIZE);
        assert_non_null(strstr(r->error.text, expected));
        assert_int_equal(lend_usage(r->side[BORROWER].lend).borrowed, 0);
        assert_int_equal(lend_usage(r->side[LENDER].lend).lent, 0);
        rig_close(r);
    }
    for (unsigned i = 0; i < SIM_N_ELEMENTS(right); i++) {
        struct rig *r = rig_open_of(0, 0, 77, 512, right[i][0], right[i][1]);
        call(r, BORROWER, borrow);
        assert_string_equal(r->error.text, "");
        assert_int_equal(r->status, 0);
        call(r, BORROWER, give_back);
        rig_close(r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_number),     cmocka_unit_test(test_listed),
        cmocka_unit_test(test_listed_wrongly), cmocka_unit_test(test_entries),
        cmocka_unit_test(test_full),           cmocka_unit_test(test_no_window),
        cmocka_unit_test(test_payload),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
