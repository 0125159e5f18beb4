/* The root complex seen TLP by TLP: devices whose TLPs the test writes itself, and that record what
 * they receive. */
#include "tests/support/world_fixture.h"

#include <string.h>

#include "hw/pci_regs.h"
#include "models/pcie/root/rc_internal.h"

#define WORLD(ROOT_COMPLEX, B_CABLE)                                               \
    "hosts = { server = { ports = ( { name = \"rp0\"; lanes = 8; },"               \
    "                               { name = \"rp1\"; lanes = 8; },"               \
    "                               { name = \"rp2\"; lanes = 8; },"               \
    "                               { name = \"rp0\"; socket = 1; lanes = 8; } );" \
    "  root_complex = { completion_timeout_us = 50; " ROOT_COMPLEX " }; }; };"     \
    "devices = { a = { type = \"pcie.requester\"; };"                              \
    "            b = { type = \"pcie.requester\"; bar_bytes = 4096; };"            \
    "            c = { type = \"pcie.requester\"; }; };"                           \
    "cables = ( { from = \"server.s0.rp0\"; to = \"a.p0\"; },"                     \
    "           { from = \"server.s0.rp1\"; to = \"b.p0\"; " B_CABLE " },"         \
    "           { from = \"server.s1.rp0\"; to = \"c.p0\"; } );"
#define TIMEOUT_PS (50 * SIM_PS_PER_US)

/* ---- A device under the test's control ------------------------------------------------------- */

#define SPY_MAX 512

struct spy {
    struct model *model;
    const struct model_ops *real;
    struct model_ops ops;
    bool silent;      /* takes every TLP, answers none */
    bool hold;        /* silent, and keeps the buffers of what it receives */
    unsigned n_again; /* reads of again_address that it still sends, one for each that ends */
    uint64_t again_address;
    unsigned n;
    struct tlp got[SPY_MAX]; /* as received; payload: the first 8 bytes are in data[] */
    uint64_t data[SPY_MAX];
    sim_time at_ps[SPY_MAX];
};

static void spy_send(struct spy *spy, struct tlp *tlp);
static struct tlp *spy_tlp(struct spy *spy, enum tlp_type type, uint64_t address, unsigned bytes,
                           unsigned tag);

static void spy_receive(struct model *model, uint32_t port, struct tlp *tlp)
{
    struct spy *spy = model->user;
    assert_true(spy->n < SPY_MAX);
    spy->got[spy->n] = *tlp;
    spy->data[spy->n] = 0;
    if (tlp->payload != NULL)
        memcpy(&spy->data[spy->n], tlp->payload, SIM_MIN(8u, tlp->length_bytes));
    spy->at_ps[spy->n++] = sim_now(model->sim);
    if (!spy->silent && !spy->hold) {
        spy->real->receive(model, port, tlp);
        return;
    }
    if (!spy->hold)
        pcie_port_release(&model->ports[0], tlp_class_of(tlp), tlp_data_credits(tlp),
                          sim_now(model->sim));
    if (tlp->type == TLP_CPLD && tlp->byte_count == tlp->length_bytes && spy->n_again != 0) {
        spy->n_again--;
        spy_send(spy, spy_tlp(spy, TLP_MRD, spy->again_address, 512, 1));
    }
    tlp_free(model->pcie, tlp);
}

static void spy_on(struct spy *spy, struct world_fixture *f, const char *device)
{
    *spy = (struct spy){ .model = world_device(f->world, device) };
    spy->real = spy->model->ops;
    spy->ops = *spy->real;
    spy->ops.receive = spy_receive;
    spy->model->ops = &spy->ops;
    spy->model->user = spy;
}

/* Gives back the buffers of everything that was held. */
static void spy_let_go(struct spy *spy)
{
    spy->hold = false;
    for (unsigned i = 0; i < spy->n; i++)
        pcie_port_release(&spy->model->ports[0], tlp_class_of(&spy->got[i]),
                          tlp_data_credits(&spy->got[i]), sim_now(spy->model->sim));
}

static uint64_t spy_bar(const struct spy *spy)
{
    return cfg_bar_base(pcie_requester_config_space(spy->model), 0);
}

/* A TLP of the device's own; payload of `bytes` bytes, `fill` in each, if it carries one. */
static struct tlp *spy_tlp(struct spy *spy, enum tlp_type type, uint64_t address, unsigned bytes,
                           unsigned tag)
{
    struct tlp *tlp = tlp_new(spy->model->pcie, type);
    tlp->requester_id = pcie_requester_id(spy->model);
    tlp->address = address;
    tlp->length_bytes = (uint16_t)bytes;
    tlp->tag = (uint16_t)tag;
    if (tlp_has_data(tlp)) {
        tlp_payload_new(spy->model->pcie, tlp);
        memset(tlp->payload, (int)tag, bytes);
    }
    return tlp;
}

static void spy_send(struct spy *spy, struct tlp *tlp)
{
    pcie_port_send(&spy->model->ports[0], tlp, sim_now(spy->model->sim));
}

struct rc_stat_view {
    uint64_t unsupported, unexpected, timeouts;
};

static struct rc_stat_view rc_stat(struct world_fixture *f, unsigned socket)
{
    struct rc_stat_view view = { 0 };
    struct model *rc = host_root_complexes(f->host)->rc[socket];
    for (const struct stat_desc *stat = rc->ops->stats; stat->kind != STAT_END; stat++) {
        const uint64_t *value = (const void *)((const char *)rc->state + stat->offset);
        if (strcmp(stat->name, "unsupported") == 0)
            view.unsupported = *value;
        else if (strcmp(stat->name, "unexpected_completions") == 0)
            view.unexpected = *value;
        else if (strcmp(stat->name, "mmio_timeouts") == 0)
            view.timeouts = *value;
    }
    return view;
}

static void run(struct world_fixture *f)
{
    sim_run(f->sim, SIM_TIME_MAX, NULL);
    assert_null(sim_error(f->sim));
    assert_true(pcie_context_check_idle(world_pcie(f->world)));
}

/* ---- Errors ---------------------------------------------------------------------------------- */

static void test_byte_count_of_refused_requests(void **state)
{
    struct world_fixture *f = *state;
    struct spy a;
    spy_on(&a, f, "a");
    a.silent = true;
    spy_send(&a, spy_tlp(&a, TLP_CFG_RD0, 0, 2, 5)); /* only roots may ask */
    spy_send(&a, spy_tlp(&a, TLP_MRD, UINT64_C(1) << 43, 96, 6));
    run(f);
    assert_int_equal(a.n, 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(a.got[i].type, TLP_CPL);
        assert_int_equal(a.got[i].status, TLP_UR);
        assert_int_equal(a.got[i].tag, 5 + i);
        assert_int_equal(a.got[i].length_bytes, 0);
    }
    /* PCIe Base 3.1, 2.2.9: 4 for everything but memory reads */
    assert_int_equal(a.got[0].byte_count, 4);
    assert_int_equal(a.got[1].byte_count, 96);
    assert_int_equal(rc_stat(f, 0).unsupported, 2);
}

/* ---- What is left at the end ----------------------------------------------------------------- */

static void fails_with(struct world_fixture *f, const char *text)
{
    assert_false(pcie_context_check_idle(world_pcie(f->world)));
    assert_non_null(sim_error(f->sim));
    if (strstr(sim_error(f->sim), text) == NULL)
        fail_msg("\"%s\" says nothing of \"%s\"", sim_error(f->sim), text);
    world_free(f->world);
    config_free(f->config);
}

static void test_what_is_left_is_named(void **unused)
{
    struct world_fixture f;
    struct spy a;
    (void)unused;
    fixture_open(&f, WORLD("", ""));
    spy_on(&a, &f, "a");
    spy_send(&a, spy_tlp(&a, TLP_MWR, 0, 64, 1));
    fails_with(&f, "link server.s0.rp0-a.p0: 1 TLPs of port a never reached port s0.rp0");

    fixture_open(&f, WORLD("", ""));
    spy_on(&a, &f, "a");
    a.hold = true;
    spy_send(&a, spy_tlp(&a, TLP_MRD, UINT64_C(1) << 43, 64, 1)); /* its answer: credits infinite */
    sim_run(f.sim, SIM_TIME_MAX, NULL);
    assert_true(pcie_context_check_idle(world_pcie(f.world)));
    struct tlp *write = tlp_new(a.model->pcie, TLP_MWR);
    write->length_bytes = 4;
    tlp_payload_new(a.model->pcie, write);
    pcie_port_send(pcie_port_peer(&a.model->ports[0]), write, sim_now(f.sim));
    sim_run(f.sim, SIM_TIME_MAX, NULL);
    fails_with(&f, "port a has not given back the buffers");

    fixture_open(&f, WORLD("", ""));
    tlp_new(world_pcie(f.world), TLP_MWR);
    fails_with(&f, "1 TLPs are alive at the end");
}

/* ---- Cores ----------------------------------------------------------------------------------- */

struct read {
    struct hpa at;
    unsigned bytes;
    uint64_t value;
    sim_time took_ps;
    bool done;
};

static void read_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct read *read = arg;
    sim_time start_ps = sim_task_now(task);
    read->value = root_complex_mmio_read(host_root_complexes(f->host), 0, task, read->at,
                                         read->bytes, NULL);
    read->took_ps = sim_task_now(task) - start_ps;
    read->done = true;
}

/* Opens a window of the root port s0.rp2, behind which there is nothing. */
static void open_window(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct root_complex_host *rcs = host_root_complexes(f->host);
    uint16_t port = pcie_id(root_complex_bus(rcs->rc[0]), 3, 0);
    struct hpa *at = arg;
    uint32_t window = (uint32_t)(at->v >> 16) & 0xfff0;
    root_complex_config_write(rcs, 0, task, port, PCI_MEMORY_BASE, 2, window);
    root_complex_config_write(rcs, 0, task, port, PCI_MEMORY_LIMIT, 2, window);
    root_complex_config_write(rcs, 0, task, port, PCI_COMMAND, 2, PCI_COMMAND_MEMORY);
    root_complex_mmio_write(rcs, 0, task, *at, 4, 1);
}

static void test_port_without_a_cable_is_unsupported(void **state)
{
    struct world_fixture *f = *state;
    struct spy a;
    struct read read = { .at = { UINT64_C(0xf0000000) }, .bytes = 4 };
    spy_on(&a, f, "a");
    a.silent = true;
    fixture_call(f, open_window, &read.at);
    fixture_call(f, read_body, &read);
    assert_int_equal(read.value, UINT32_MAX);
    spy_send(&a, spy_tlp(&a, TLP_MRD, read.at.v, 4, 9));
    spy_send(&a, spy_tlp(&a, TLP_MWR, read.at.v, 4, 9));
    run(f);
    assert_int_equal(a.n, 1);
    assert_int_equal(a.got[0].status, TLP_UR);
    assert_int_equal(rc_stat(f, 0).unsupported, 2);
}

static struct sim_task *read_start(struct world_fixture *f, struct fixture_call *call,
                                   struct read *read)
{
    *call = (struct fixture_call){ .f = f, .body = read_body, .arg = read };
    struct sim_task *task = sim_task_new(f->sim, "read", 0, fixture_body, call);
    sim_task_start(task, sim_now(f->sim));
    return task;
}

/* The answer to a read that the spy has received, `bytes` long, `fill` in each. */
static struct tlp *answer_to(struct spy *spy, const struct tlp *got, unsigned bytes, int fill)
{
    struct tlp request = *got;
    request.stamp = NULL;
    struct tlp *cpl = tlp_completion(spy->model->pcie, &request, pcie_requester_id(spy->model),
                                     TLP_SC);
    cpl->byte_count = cpl->length_bytes = (uint16_t)bytes;
    tlp_payload_new(spy->model->pcie, cpl);
    memset(cpl->payload, fill, bytes);
    return cpl;
}

static void test_mmio_times_out(void **state)
{
    struct world_fixture *f = *state;
    struct spy b;
    spy_on(&b, f, "b");
    b.silent = true;
    struct read read = { .at = { spy_bar(&b) }, .bytes = 4 };
    fixture_call(f, read_body, &read);
    assert_int_equal(read.value, UINT32_MAX);
    assert_int_equal(read.took_ps, TIMEOUT_PS);
    assert_int_equal(rc_stat(f, 0).timeouts, 1);
    b.silent = false;
    fixture_call(f, read_body, &read);
    assert_int_equal(read.value, 0);
    assert_int_equal(rc_stat(f, 0).timeouts, 1);
}

static void test_late_completion_answers_nobody_else(void **state)
{
    struct world_fixture *f = *state;
    struct fixture_call call;
    struct spy b;
    spy_on(&b, f, "b");
    b.silent = true;
    struct read read = { .at = { spy_bar(&b) }, .bytes = 8 };
    read_start(f, &call, &read);
    sim_run(f->sim, sim_now(f->sim) + TIMEOUT_PS + SIM_PS_PER_US, NULL);
    assert_true(read.done && b.n == 1);
    read.done = false;
    read_start(f, &call, &read);
    sim_run(f->sim, sim_now(f->sim) + SIM_PS_PER_US, NULL);
    assert_int_equal(b.n, 2);
    spy_send(&b, answer_to(&b, &b.got[0], 8, 0x11));
    spy_send(&b, answer_to(&b, &b.got[1], 4, 0x22)); /* not what was asked for */
    spy_send(&b, answer_to(&b, &b.got[1], 8, 0x33));
    spy_send(&b, answer_to(&b, &b.got[1], 8, 0x44)); /* answered already */
    run(f);
    assert_true(read.done);
    assert_int_equal(read.value, UINT64_C(0x3333333333333333));
    assert_int_equal(rc_stat(f, 0).unexpected, 3);
}

/* More reads than tags, none answered: a tag is not used again before its doubt is over. */
static void test_timed_out_tags_rest(void **state)
{
    struct world_fixture *f = *state;
    struct spy b;
    struct fixture_call call[66];
    struct read read[66];
    spy_on(&b, f, "b");
    b.silent = true;
    for (unsigned i = 0; i < 66; i++) {
        read[i] = (struct read){ .at = { spy_bar(&b) }, .bytes = 4 };
        read_start(f, &call[i], &read[i]);
    }
    sim_run(f->sim, sim_now(f->sim) + TIMEOUT_PS / 2, NULL);
    assert_int_equal(b.n, 64);
    for (unsigned i = 0; i < 64; i++)
        for (unsigned k = 0; k < i; k++)
            assert_int_not_equal(b.got[i].tag, b.got[k].tag);
    sim_run(f->sim, sim_now(f->sim) + TIMEOUT_PS, NULL);
    assert_int_equal(b.n, 64);
    spy_send(&b, answer_to(&b, &b.got[7], 4, 0)); /* this tag is clean now */
    sim_run(f->sim, sim_now(f->sim) + SIM_PS_PER_US, NULL);
    assert_int_equal(b.n, 65);
    assert_int_equal(b.got[64].tag, b.got[7].tag);
    run(f);
    assert_int_equal(b.n, 66);
    assert_true(b.at_ps[65] >= b.at_ps[0] + TIMEOUT_PS);
    for (unsigned i = 0; i < 66; i++)
        assert_true(read[i].done && read[i].value == UINT32_MAX);
}

static void write_body(struct world_fixture *f, struct sim_task *task, void *arg)
{
    for (unsigned i = 0; i < 60; i++)
        root_complex_mmio_write(host_root_complexes(f->host), 0, task, *(struct hpa *)arg, 8, i);
}

/* Somebody else wakes a task that waits for room: it waits on, and nothing is lost. */
static void test_mmio_writes_wait_for_room(void **state)
{
    struct world_fixture *f = *state;
    struct spy b;
    spy_on(&b, f, "b");
    b.hold = true;
    struct hpa at = { spy_bar(&b) };
    struct fixture_call call = { .f = f, .body = write_body, .arg = &at };
    struct sim_task *task = sim_task_new(f->sim, "writes", 0, fixture_body, &call);
    sim_task_start(task, sim_now(f->sim));
    for (unsigned i = 0; i < 4; i++) {
        sim_run(f->sim, sim_now(f->sim) + 10 * SIM_PS_PER_US, NULL);
        assert_int_equal(b.n, 32);
        assert_false(call.done);
        sim_task_resume(task, sim_now(f->sim));
    }
    sim_run(f->sim, sim_now(f->sim) + 10 * SIM_PS_PER_US, NULL);
    spy_let_go(&b);
    run(f);
    assert_true(call.done);
    assert_int_equal(b.n, 60);
    for (unsigned i = 0; i < 60; i++)
        assert_int_equal(b.data[i], i);
}

static void test_device_refuses_a_core(void **state)
{
    struct world_fixture *f = *state;
    struct spy b;
    spy_on(&b, f, "b");
    struct read read = { .at = { spy_bar(&b) + 8192 }, .bytes = 2 }; /* of the window, of no BAR */
    fixture_call(f, read_body, &read);
    assert_int_equal(b.n, 1);
    assert_int_equal(read.value, 0xffff);
    assert_true(read.took_ps < SIM_PS_PER_US);
    assert_int_equal(rc_stat(f, 0).timeouts, 0);
}

static void test_unexpected_completions_are_dropped(void **state)
{
    struct world_fixture *f = *state;
    struct spy a;
    spy_on(&a, f, "a");
    uint16_t root = pcie_id(root_complex_bus(host_root_complexes(f->host)->rc[0]), 0, 0);
    static const uint16_t tag[] = { 0, 63, 64, 255 };
    for (unsigned i = 0; i < 5; i++) {
        struct tlp *cpl = spy_tlp(&a, TLP_CPL, 0, 0, i < 4 ? tag[i] : 0);
        cpl->requester_id = i < 4 ? root : pcie_id(99, 0, 0); /* the last: nobody's bus */
        cpl->byte_count = 4;
        spy_send(&a, cpl);
    }
    run(f);
    assert_int_equal(rc_stat(f, 0).unexpected, 5);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static struct hpa memory_of(struct world_fixture *f, const struct spy *spy)
{
    struct hpa hpa;
    struct iova iova;
    assert_int_equal(
        host_dma_alloc(f->host, pcie_requester_id(spy->model), 0, 65536, 4096, &hpa, &iova), 0);
    return hpa;
}

/* Ends of completions by the rule: short requests line by line, others at multiples of the smaller
 * of completion_bytes_max and Max_Payload_Size. */
static void test_completions_are_cut_in_address_order(void **unused)
{
    static const struct {
        const char *world;
        unsigned offset, bytes, boundary;
    } kind[] = {
        { WORLD("", ""), 0, 64, 64 },
        { WORLD("", ""), 32, 256, 64 }, /* combine_above_bytes = 256 */
        { WORLD("", ""), 0, 257, 256 }, /* completion_bytes_max = 256, MPS 256 */
        { WORLD("", ""), 100, 2000, 256 },
        { WORLD("completion_bytes_max = 64;", ""), 8, 1024, 64 },
        { WORLD("completion_bytes_max = 4096;", ""), 8, 1024, 256 }, /* MPS */
        { WORLD("completion_bytes_max = 128; combine_above_bytes = 0;", ""), 8, 64, 128 },
        { WORLD("combine_above_bytes = 4096;", ""), 1, 4095, 64 },
    };
    (void)unused;
    for (unsigned k = 0; k < SIM_N_ELEMENTS(kind); k++) {
        struct world_fixture f;
        struct spy a;
        fixture_open(&f, kind[k].world);
        spy_on(&a, &f, "a");
        a.silent = true;
        uint64_t address = memory_of(&f, &a).v + kind[k].offset;
        unsigned bytes = kind[k].bytes, remaining = bytes, n = 0;
        spy_send(&a, spy_tlp(&a, TLP_MRD, address, bytes, 3));
        run(&f);
        for (; remaining != 0; n++) {
            unsigned piece = kind[k].boundary - (unsigned)(address % kind[k].boundary);
            piece = SIM_MIN(piece, remaining);
            assert_true(n < a.n);
            assert_int_equal(a.got[n].type, TLP_CPLD);
            assert_int_equal(a.got[n].address, address);
            assert_int_equal(a.got[n].length_bytes, piece);
            assert_int_equal(a.got[n].byte_count, remaining);
            address += piece;
            remaining -= piece;
        }
        assert_int_equal(a.n, n);
        fixture_close(&f);
    }
}

static void bus_master_off(struct world_fixture *f, struct sim_task *task, void *arg)
{
    struct root_complex_host *rcs = host_root_complexes(f->host);
    (void)arg;
    root_complex_config_write(rcs, 0, task, pcie_id(root_complex_bus(rcs->rc[0]), 1, 0),
                              PCI_COMMAND, 2, PCI_COMMAND_MEMORY);
}

static void test_port_without_bus_master_lets_nothing_up(void **state)
{
    struct world_fixture *f = *state;
    struct spy a;
    spy_on(&a, f, "a");
    a.silent = true;
    struct hpa hpa = memory_of(f, &a);
    physmem_write64(host_physmem(f->host), hpa, 1);
    fixture_call(f, bus_master_off, NULL);
    spy_send(&a, spy_tlp(&a, TLP_MWR, hpa.v, 8, 9));
    spy_send(&a, spy_tlp(&a, TLP_MRD, hpa.v, 8, 7));
    run(f);
    assert_int_equal(a.n, 1);
    assert_int_equal(a.got[0].type, TLP_CPL);
    assert_int_equal(a.got[0].status, TLP_UR);
    assert_int_equal(physmem_read64(host_physmem(f->host), hpa), 1);
    assert_int_equal(rc_stat(f, 0).unsupported, 2);
}

/* Each write to the same place: a read finds the last before it, though they take different time
 * (other lines of the same writes are the other socket's). */
static void test_writes_become_visible_in_order(void **state)
{
    struct world_fixture *f = *state;
    struct spy a;
    struct hpa far;
    struct iova iova;
    spy_on(&a, f, "a");
    a.silent = true;
    struct hpa near = memory_of(f, &a);
    assert_int_equal(
        host_dma_alloc(f->host, pcie_requester_id(a.model), 1, 65536, 4096, &far, &iova), 0);
    for (unsigned i = 1; i <= 100; i++) {
        spy_send(&a, spy_tlp(&a, TLP_MWR, far.v + i * 256, 256, i)); /* slow, and then a flag */
        spy_send(&a, spy_tlp(&a, TLP_MWR, near.v, 8, i));
    }
    uint64_t last = 0;
    while (last != 100) {
        sim_run(f->sim, sim_now(f->sim) + 5 * SIM_PS_PER_NS, NULL);
        uint64_t flag = physmem_read64(host_physmem(f->host), near) & 0xff;
        assert_true(flag >= last);
        for (uint64_t i = 1; i <= flag; i++)
            assert_int_equal(physmem_read64(host_physmem(f->host), (struct hpa){ far.v + i * 256 }),
                             i * UINT64_C(0x0101010101010101));
        last = flag;
    }
    run(f);
}

/* Buffers for one write and one read at a time: everything arrives, in order. */
static void test_back_pressure_loses_nothing(void **state)
{
    struct world_fixture *f = *state;
    struct spy a;
    spy_on(&a, f, "a");
    a.silent = true;
    struct hpa hpa = memory_of(f, &a);
    for (unsigned i = 0; i < 200; i++) {
        spy_send(&a, spy_tlp(&a, TLP_MWR, hpa.v + i * 256, 256, i));
        spy_send(&a, spy_tlp(&a, TLP_MRD, hpa.v + i * 256, 64, i));
    }
    run(f);
    assert_int_equal(a.n, 200);
    for (unsigned i = 0; i < 200; i++) {
        assert_int_equal(a.got[i].tag, i);
        assert_int_equal(a.data[i], i * UINT64_C(0x0101010101010101)); /* a read pushes its write */
    }
}

/* ---- Line requests --------------------------------------------------------------------------- */

/* Against the definition: no two overlap, none is early, none could have been earlier. */
static void test_line_slots_are_the_earliest_free(void **unused)
{
    enum { N = 400, INTERVAL_PS = 1500 };
    struct sim_random random;
    (void)unused;
    for (unsigned trial = 0; trial < 50; trial++) {
        struct rc_slots slots = { 0 };
        sim_time taken[N], now_ps = 0;
        sim_random_init(&random, trial, "slots");
        for (unsigned i = 0; i < N; i++) {
            now_ps += sim_random_below(&random, 2 * INTERVAL_PS);
            sim_time at_ps = now_ps + (sim_random_below(&random, 3) == 0 ? 60000 : 0);
            taken[i] = rc_slots_take(&slots, now_ps, at_ps, INTERVAL_PS);
            assert_true(taken[i] >= at_ps);
            sim_time first_ps = at_ps;
            for (bool again = true; again;) {
                again = false;
                for (unsigned k = 0; k < i; k++)
                    if (taken[k] < first_ps + INTERVAL_PS && first_ps < taken[k] + INTERVAL_PS) {
                        first_ps = taken[k] + INTERVAL_PS;
                        again = true;
                    }
            }
#ifdef SIM_HOSTILE /* gaps are given up */
            assert_true(taken[i] >= first_ps);
#else
            assert_int_equal(taken[i], first_ps);
#endif
        }
    }
}

/* What arrives later, be it a write, does not delay a read (inbound, 60 ns, is the same for both).
 */
static void test_write_does_not_delay_an_earlier_read(void **unused)
{
    sim_time took_ps[2];
    (void)unused;
    for (unsigned with = 0; with < 2; with++) {
        struct world_fixture f;
        struct spy a, b;
        struct hpa hpa;
        struct iova iova;
        fixture_open(&f, WORLD("", ""));
        spy_on(&a, &f, "a");
        spy_on(&b, &f, "b");
        a.silent = b.silent = true;
        assert_int_equal(
            host_dma_alloc(f.host, pcie_requester_id(a.model), 0, 8192, 4096, &hpa, &iova), 0);
        numa_warm_device(host_numa(f.host), 0, hpa, 8192);
        sim_time start_ps = sim_now(f.sim);
        spy_send(&a, spy_tlp(&a, TLP_MRD, hpa.v, 64, 1));
        if (with)
            pcie_port_send(&b.model->ports[0], spy_tlp(&b, TLP_MWR, hpa.v + 4096, 64, 2),
                           start_ps + 20 * SIM_PS_PER_NS);
        run(&f);
        assert_int_equal(a.n, 1);
        took_ps[with] = a.at_ps[0] - start_ps;
        fixture_close(&f);
    }
    assert_int_equal(took_ps[1], took_ps[0]);
}

/* ---- Peer to peer ---------------------------------------------------------------------------- */

/* A read comes after the writes before it, also where those wait for the egress port. */
static void test_peer_read_pushes_writes(void **state)
{
    struct world_fixture *f = *state;
    struct spy a, b;
    spy_on(&a, f, "a");
    spy_on(&b, f, "b");
    a.silent = true;
    b.hold = true; /* 32 writes fill its buffers, 16 the root port's queue, 12 stand before that */
    uint64_t bar = spy_bar(&b) + 8;
    for (unsigned i = 1; i <= 60; i++)
        spy_send(&a, spy_tlp(&a, TLP_MWR, bar, 8, i));
    spy_send(&a, spy_tlp(&a, TLP_MRD, bar, 8, 1));
    sim_run(f->sim, SIM_TIME_MAX, NULL);
    assert_int_equal(b.n, 32);
    spy_let_go(&b);
    run(f);
    assert_int_equal(b.n, 61);
    for (unsigned i = 0; i < 60; i++)
        assert_int_equal(b.got[i].tag, i + 1); /* nothing lost, in order */
    assert_int_equal(a.n, 1);
    assert_int_equal(a.data[0], 60 * UINT64_C(0x0101010101010101));
}

/* Completions behind writes of the same way wait, but for those whose attributes let them pass;
 * what comes from another port is not held up; writes pass reads without credits. */
static void test_peer_order_follows_table_2_39(void **unused)
{
    static const struct {
        uint8_t attr;
        bool passes;
    } kind[] = { { 0, false },
                 { TLP_ATTR_RELAXED_ORDERING, true },
                 { TLP_ATTR_ID_ORDERING, false } }; /* the completer wrote these itself */
    struct world_fixture f;
    struct spy a, b, c;
    (void)unused;
    for (unsigned k = 0; k < SIM_N_ELEMENTS(kind); k++) {
        fixture_open(&f, WORLD("", "lanes = 1;"));
        spy_on(&a, &f, "a");
        spy_on(&b, &f, "b");
        spy_on(&c, &f, "c");
        a.silent = b.silent = c.silent = true;
        struct tlp request = { .type = TLP_MRD, .requester_id = pcie_requester_id(b.model) };
        request.attr = kind[k].attr;
        request.length_bytes = 64;
        for (unsigned i = 0; i < 100; i++) {
            if (i == 60) {
                struct tlp *cpl = tlp_completion(a.model->pcie, &request,
                                                 pcie_requester_id(a.model), TLP_UR);
                cpl->tag = 200;
                spy_send(&a, cpl);
                spy_send(&c, spy_tlp(&c, TLP_MRD, spy_bar(&b), 8, 201));
            }
            spy_send(&a, spy_tlp(&a, TLP_MWR, spy_bar(&b), 64, i));
        }
        run(&f);
        assert_int_equal(b.n, 102);
        unsigned writes = 0, before_completion = 0, before_read = 0;
        for (unsigned i = 0; i < b.n; i++) {
            if (b.got[i].tag == 200)
                before_completion = writes;
            else if (b.got[i].tag == 201)
                before_read = writes;
            else
                assert_int_equal(b.got[i].tag, writes++);
        }
        assert_true(kind[k].passes ? before_completion < 60 : before_completion >= 60);
        assert_true(before_read < 60);
        fixture_close(&f);
    }
}

/* Reads that the peer's buffers have no room for keep nobody from writing. */
static void test_peer_writes_pass_blocked_reads(void **state)
{
    struct world_fixture *f = *state;
    struct spy a, b;
    spy_on(&a, f, "a");
    spy_on(&b, f, "b");
    a.silent = true;
    b.hold = true; /* 16 reads fill its buffers, 16 more the root port's queue */
    for (unsigned i = 0; i < 45; i++)
        spy_send(&a, spy_tlp(&a, TLP_MRD, spy_bar(&b), 8, i));
    for (unsigned i = 0; i < 20; i++)
        spy_send(&a, spy_tlp(&a, TLP_MWR, spy_bar(&b), 8, 100 + i));
    sim_run(f->sim, SIM_TIME_MAX, NULL);
    assert_int_equal(b.n, 16 + 20);
    for (unsigned i = 16; i < 36; i++)
        assert_int_equal(b.got[i].tag, 100 + i - 16);
    spy_let_go(&b);
    run(f);
    assert_int_equal(b.n, 45 + 20); /* and nothing is lost */
    assert_int_equal(a.n, 45 - 16);
}

/* A device keeps 40 reads of memory in flight, which fill its link with completions: the answer of a
 * peer waits for those that were there before it, not for those of reads that are sent later. */
static void test_peer_answers_are_not_starved(void **state)
{
    struct world_fixture *f = *state;
    struct spy a;
    spy_on(&a, f, "a");
    a.silent = true;
    a.again_address = memory_of(f, &a).v;
    a.n_again = 160;
    for (unsigned i = 0; i < 40; i++)
        spy_send(&a, spy_tlp(&a, TLP_MRD, a.again_address, 512, 1));
    spy_send(&a, spy_tlp(&a, TLP_MRD,
                         spy_bar(&(struct spy){ .model = world_device(f->world, "b") }), 64, 200));
    run(f);
    assert_int_equal(a.n, 2 * 200 + 1);
    unsigned before = 0;
    while (a.got[before].tag != 200)
        before++;
    /* Two completions for each of the 40, and as many while the answer is on its way. */
    assert_true(before <= 4 * 40);
}

/* Two lines and a half touch three: the next write is three intervals behind, whatever its size. */
static void test_peer_writes_pass_line_by_line(void **state)
{
    struct world_fixture *f = *state;
    struct spy a, b;
    spy_on(&a, f, "a");
    spy_on(&b, f, "b");
    a.silent = b.silent = true;
    spy_send(&a, spy_tlp(&a, TLP_MWR, spy_bar(&b) + 32, 128, 0));
    for (unsigned i = 1; i < 6; i++)
        spy_send(&a, spy_tlp(&a, TLP_MWR, spy_bar(&b), 8, i));
    sim_run(f->sim, SIM_TIME_MAX, NULL);
    assert_int_equal(b.n, 6);
    /* Arrivals are ends of TLPs; the first is longer by 120 bytes of a Gen3 link. */
    sim_time longer_ps = pcie_port_wire_ps(&b.model->ports[0], 120);
    assert_in_range(b.at_ps[1] + longer_ps - b.at_ps[0], 299999, 300001);
    for (unsigned i = 2; i < 6; i++)
        assert_in_range(b.at_ps[i] - b.at_ps[i - 1], 99999, 100001);
}

#define SLOW_QPI "}; interconnect = { links = 1; rate_gt_s = 1.0; lanes = 20; " /* the last group */
#define FLIT_PS  4000 /* 80 bits on 20 lanes of 1 GT/s */
#define HOP_PS   21000

/* c (socket 1) sends n TLPs of `type`, 64 bytes each, to b (socket 0); returns when b got each. */
static void cross(const char *world, enum tlp_type type, unsigned n, sim_time *at_ps,
                  uint64_t bytes[2])
{
    struct world_fixture f;
    struct spy b, c;
    fixture_open(&f, world);
    spy_on(&b, &f, "b");
    spy_on(&c, &f, "c");
    b.silent = true;
    struct numa *numa = host_numa(f.host);
    const sim_time start_ps = sim_now(f.sim);
    const uint64_t there = numa_interconnect_bytes(numa, 1, 0);
    const uint64_t back = numa_interconnect_bytes(numa, 0, 1);
    for (unsigned i = 0; i < n; i++)
        spy_send(&c, spy_tlp(&c, type, spy_bar(&b), 64, i));
    run(&f);
    assert_int_equal(b.n, n);
    for (unsigned i = 0; i < n; i++)
        at_ps[i] = b.at_ps[i] - start_ps;
    bytes[0] = numa_interconnect_bytes(numa, 1, 0) - there;
    bytes[1] = numa_interconnect_bytes(numa, 0, 1) - back;
    fixture_close(&f);
}

/* The time between sockets delays each write alike; it does not hold up the one behind. */
static void test_peer_writes_cross_sockets_in_a_stream(void **unused)
{
    enum { N = 20 };
    sim_time near_ps[N], far_ps[N];
    uint64_t bytes[2];
    (void)unused;
    cross(WORLD("p2p_socket_ns = 0;", ""), TLP_MWR, N, near_ps, bytes);
    cross(WORLD("p2p_socket_ns = 1000;", ""), TLP_MWR, N, far_ps, bytes);
    for (unsigned i = 0; i < N; i++)
        assert_int_equal(far_ps[i], near_ps[i] + SIM_PS_PER_US);
}

/* Between sockets a line of data is a message of 10 flits, what a read asks for one flit a line, and
 * each line of a write is answered: time, rate and bytes are those of the interconnect. */
static void test_peers_of_two_sockets_use_the_interconnect(void **unused)
{
    enum { N = 60 };
    sim_time slow_ps[N], fast_ps[N];
    uint64_t bytes[2];
    (void)unused;
    cross(WORLD(SLOW_QPI, ""), TLP_MWR, N, slow_ps, bytes);
    assert_int_equal(bytes[0], N * 10 * 8);
    assert_int_equal(bytes[1], N * 8);
    cross(WORLD("", ""), TLP_MWR, N, fast_ps, bytes);
    /* Alone: 10 flits of 40000 / 9.6 ps here, of 4000 ps there. */
    assert_in_range(slow_ps[0] - fast_ps[0], 10 * (FLIT_PS - 417) - 10, 10 * (FLIT_PS - 416) + 10);
    assert_in_range(slow_ps[N - 1] - slow_ps[N / 2], (N / 2 - 1) * 10 * FLIT_PS - FLIT_PS,
                    (N / 2 - 1) * 10 * FLIT_PS + FLIT_PS);
    assert_true(fast_ps[N - 1] - fast_ps[0] < (slow_ps[N - 1] - slow_ps[0]) / 2);
    cross(WORLD("", ""), TLP_MRD, 16, fast_ps, bytes);
    assert_int_equal(bytes[0], 16 * 8);
    assert_int_equal(bytes[1], 0);
}

/* A read of a peer of the other socket takes a hop for the request and one for the data more. */
static void test_peer_reads_cross_twice(void **unused)
{
    sim_time took_ps[2];
    (void)unused;
    for (unsigned far = 0; far < 2; far++) {
        struct world_fixture f;
        struct spy spy;
        fixture_open(&f, WORLD("", ""));
        spy_on(&spy, &f, far ? "c" : "a");
        spy.silent = true;
        struct numa *numa = host_numa(f.host);
        const struct spy b = { .model = world_device(f.world, "b") };
        const sim_time start_ps = sim_now(f.sim);
        const uint64_t back = numa_interconnect_bytes(numa, 0, 1);
        spy_send(&spy, spy_tlp(&spy, TLP_MRD, spy_bar(&b), 8, 1));
        run(&f);
        took_ps[far] = spy.at_ps[spy.n - 1] - start_ps;
        assert_int_equal(numa_interconnect_bytes(numa, 0, 1) - back, far * 10 * 8);
        fixture_close(&f);
    }
    /* A request of one flit, data of ten. */
    assert_in_range(took_ps[1] - took_ps[0], 2 * HOP_PS + 11 * 416, 2 * HOP_PS + 11 * 417);
}

/* ---- Reads split and re-originated ----------------------------------------------------------- */

/* b answers the i-th request that it got with `n` completions; every byte tells its offset from
 * `base`. */
static void spy_answer(struct spy *b, unsigned i, enum tlp_status status, unsigned n, uint64_t base)
{
    struct tlp request = b->got[i];
    request.stamp = NULL;
    for (unsigned k = 0; k < n; k++) {
        struct tlp *cpl = tlp_completion(b->model->pcie, &request, pcie_requester_id(b->model),
                                         status);
        if (status == TLP_SC) {
            unsigned bytes = request.length_bytes / n;
            cpl->byte_count = (uint16_t)(request.length_bytes - k * bytes);
            cpl->length_bytes = (uint16_t)bytes;
            cpl->address = request.address + k * bytes;
            tlp_payload_new(b->model->pcie, cpl);
            for (unsigned o = 0; o < bytes; o++)
                cpl->payload[o] = (uint8_t)(cpl->address + o - base);
        }
        spy_send(b, cpl);
    }
}

/* 256 bytes that begin 16 into a line leave as pieces of 48, 64, 64, 64 and 16; whatever order
 * their answers come in, the original's come in that of addresses. */
static void test_peer_reads_are_cut(void **state)
{
    static const unsigned order[5] = { 3, 1, 0, 4, 2 };
    static const unsigned bytes[5] = { 48, 64, 64, 64, 16 };
    struct world_fixture *f = *state;
    struct spy a, b;
    spy_on(&a, f, "a");
    spy_on(&b, f, "b");
    a.silent = b.silent = true;
    uint64_t base = spy_bar(&b) + 0x110;
    spy_send(&a, spy_tlp(&a, TLP_MRD, base, 256, 7));
    sim_run(f->sim, sim_now(f->sim) + 2 * SIM_PS_PER_US, NULL);
    assert_int_equal(b.n, 5);
    uint64_t at = base;
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(b.got[i].address, at);
        assert_int_equal(b.got[i].length_bytes, bytes[i]);
        assert_int_equal(b.got[i].requester_id, pcie_id(0, 0, 0)); /* the root complex's */
        for (unsigned k = 0; k < i; k++)
            assert_int_not_equal(b.got[i].tag, b.got[k].tag);
        at += bytes[i];
    }
    for (unsigned i = 0; i < 5; i++)
        spy_answer(&b, order[i], TLP_SC, order[i] == 1 ? 2 : 1, base);
    run(f);
    assert_int_equal(a.n, 6);
    unsigned answered = 0;
    for (unsigned i = 0; i < a.n; i++) {
        assert_int_equal(a.got[i].tag, 7);
        assert_int_equal(a.got[i].requester_id, pcie_requester_id(a.model));
        assert_int_equal(a.got[i].byte_count, 256 - answered);
        assert_int_equal(a.got[i].address, base + answered);
        assert_int_equal(a.data[i] & 0xff, answered & 0xff);
        answered += a.got[i].length_bytes;
    }
    assert_int_equal(answered, 256);
}

/* Of many reads no more than so many pieces are in flight; each answer lets the next one go. */
static void test_peer_reads_in_flight_are_bound(void **state)
{
    struct world_fixture *f = *state;
    struct spy a, b;
    spy_on(&a, f, "a");
    spy_on(&b, f, "b");
    a.silent = b.silent = true;
    uint64_t base = spy_bar(&b);
    for (unsigned i = 0; i < 8; i++)
        spy_send(&a, spy_tlp(&a, TLP_MRD, base + 256 * i, 256, i));
    spy_send(&a, spy_tlp(&a, TLP_MWR, base, 8, 100)); /* passes those that wait */
    unsigned answered = 0;
    for (unsigned round = 0; answered < 32; round++) {
        sim_run(f->sim, sim_now(f->sim) + 2 * SIM_PS_PER_US, NULL);
        unsigned reads = 0, read[64];
        for (unsigned i = 0; i < b.n; i++)
            if (b.got[i].type == TLP_MRD)
                read[reads++] = i;
        assert_int_equal(b.n, reads + 1);
        assert_int_equal(reads, SIM_MIN(answered + 6, 32u));
        while (answered < reads && answered < 6 * (round + 1))
            spy_answer(&b, read[answered++], TLP_SC, 1, base);
    }
    run(f);
    assert_int_equal(a.n, 32);
    unsigned next[8] = { 0 };
    for (unsigned i = 0; i < a.n; i++) {
        assert_int_equal(a.got[i].address, base + 256 * a.got[i].tag + 64 * next[a.got[i].tag]);
        next[a.got[i].tag]++;
    }
}

/* One refused piece ends the read with one answer; what else comes for it is dropped; tags are
 * there for others. */
static void test_peer_reads_end_with_errors(void **state)
{
    struct world_fixture *f = *state;
    struct spy a, b;
    spy_on(&a, f, "a");
    spy_on(&b, f, "b");
    a.silent = b.silent = true;
    uint64_t base = spy_bar(&b);
    spy_send(&a, spy_tlp(&a, TLP_MRD, base, 256, 1)); /* the fourth piece waits */
    sim_run(f->sim, sim_now(f->sim) + 2 * SIM_PS_PER_US, NULL);
    assert_int_equal(b.n, 3);
    spy_answer(&b, 2, TLP_SC, 1, base); /* held: two are before it */
    spy_answer(&b, 1, TLP_UR, 1, base);
    spy_answer(&b, 0, TLP_SC, 1, base);
    sim_run(f->sim, sim_now(f->sim) + 5 * SIM_PS_PER_US, NULL);
    assert_int_equal(a.n, 1);
    assert_int_equal(a.got[0].status, TLP_UR);
    assert_int_equal(a.got[0].tag, 1);
    spy_send(&a, spy_tlp(&a, TLP_MRD, base, 128, 2));
    sim_run(f->sim, sim_now(f->sim) + 2 * SIM_PS_PER_US, NULL);
    unsigned n = b.n;
    for (unsigned i = n - 2; i < n; i++)
        spy_answer(&b, i, TLP_SC, 1, base);
    run(f);
    assert_int_equal(a.n, 3);
    assert_int_equal(a.got[2].tag, 2);
    assert_int_equal(a.got[2].byte_count, 64);
}

/* No answer: an error after the completion time-out; a late one frees the tag and nothing else. */
static void test_peer_reads_time_out(void **unused)
{
    struct world_fixture f;
    struct spy a, b;
    (void)unused;
    for (unsigned late = 0; late < 2; late++) {
        fixture_open(&f, WORLD("p2p_reads_max = 1;", ""));
        spy_on(&a, &f, "a");
        spy_on(&b, &f, "b");
        a.silent = b.silent = true;
        uint64_t base = spy_bar(&b);
        sim_time start_ps = sim_now(f.sim);
        spy_send(&a, spy_tlp(&a, TLP_MRD, base, 64, 1));
        spy_send(&a, spy_tlp(&a, TLP_MRD, base, 64, 2));
        sim_run(f.sim, start_ps + TIMEOUT_PS + 3 * SIM_PS_PER_US, NULL);
        assert_int_equal(a.n, 1);
        assert_int_equal(a.got[0].status, TLP_CA);
        assert_int_equal(b.n, 1); /* the only tag rests */
        if (late)
            spy_answer(&b, 0, TLP_SC, 1, base);
        sim_run(f.sim, sim_now(f.sim) + (late ? 3 * SIM_PS_PER_US : TIMEOUT_PS), NULL);
        assert_int_equal(b.n, 2);
        spy_answer(&b, 1, TLP_SC, 1, base);
        run(&f);
        assert_int_equal(a.n, 2);
        assert_int_equal(a.got[1].status, TLP_SC);
        assert_int_equal(a.got[1].tag, 2);
        fixture_close(&f);
    }
}

/* The spies were on the test's stack. */
static int tear_down(void **state)
{
    static const char *const device[] = { "a", "b", "c" };
    const struct fixture_test *t = *state;
    const struct world_fixture *f = t->fixture;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(device); i++)
        world_device(f->world, device[i])->ops = &pcie_requester_ops;
    return fixture_tear_down(state);
}

#define TLP_TEST(test, root_complex, b_cable) \
    FIXTURE_TEST(test, fixture_set_up, tear_down, WORLD(root_complex, b_cable))

int main(void)
{
    const struct CMUnitTest tests[] = {
        TLP_TEST(test_byte_count_of_refused_requests, "", ""),
        cmocka_unit_test(test_what_is_left_is_named),
        TLP_TEST(test_port_without_a_cable_is_unsupported, "", ""),
        TLP_TEST(test_mmio_times_out, "", ""),
        TLP_TEST(test_late_completion_answers_nobody_else, "", ""),
        TLP_TEST(test_timed_out_tags_rest, "", ""),
        TLP_TEST(test_mmio_writes_wait_for_room, "", ""),
        TLP_TEST(test_device_refuses_a_core, "", ""),
        TLP_TEST(test_unexpected_completions_are_dropped, "", ""),
        cmocka_unit_test(test_completions_are_cut_in_address_order),
        TLP_TEST(test_port_without_bus_master_lets_nothing_up, "", ""),
        TLP_TEST(test_writes_become_visible_in_order, "", ""),
        TLP_TEST(test_back_pressure_loses_nothing,
                 "posted_header_credits = 1; posted_data_credits = 16;"
                 "non_posted_header_credits = 1; non_posted_data_credits = 1;"
                 "tx_queue_tlps = 1;",
                 ""),
        cmocka_unit_test(test_line_slots_are_the_earliest_free),
        cmocka_unit_test(test_write_does_not_delay_an_earlier_read),
        TLP_TEST(test_peer_read_pushes_writes, "", ""),
        cmocka_unit_test(test_peer_order_follows_table_2_39),
        TLP_TEST(test_peer_writes_pass_blocked_reads, "", ""),
        TLP_TEST(test_peer_answers_are_not_starved, "", ""),
        TLP_TEST(test_peer_writes_pass_line_by_line, "p2p_line_interval_ns = 100;", ""),
        cmocka_unit_test(test_peer_writes_cross_sockets_in_a_stream),
        cmocka_unit_test(test_peers_of_two_sockets_use_the_interconnect),
        cmocka_unit_test(test_peer_reads_cross_twice),
        TLP_TEST(test_peer_reads_are_cut, "p2p_chunk_bytes = 64;", ""),
        TLP_TEST(test_peer_reads_in_flight_are_bound, "p2p_chunk_bytes = 64; p2p_reads_max = 6;",
                 ""),
        TLP_TEST(test_peer_reads_end_with_errors, "p2p_chunk_bytes = 64; p2p_reads_max = 3;", ""),
        cmocka_unit_test(test_peer_reads_time_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
