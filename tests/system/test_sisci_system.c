/*
 * SISCI on simulated hosts: four below two cluster switches, the last of which has an adapter that
 * the others borrow at the same time; every byte is checked, with the IOMMUs of both sides, either,
 * or none. Multicast groups; wild addresses; a cable that is pulled; and two hosts back to back.
 */
#include "tests/support/kernel_call.h"
#include "tests/support/world_fixture.h"

#include <string.h>

#include "logic/sisci/sisci.h"
#include "models/os/os.h"
#include "models/pcie/link/context.h"
#include "models/pcie/link/link.h"

#define HOST(NAME, IOMMU)                                                                 \
    NAME " = { cpu = { sockets = 1; cores_per_socket = 2; clock_ghz = 2.0; };"            \
         " dram = { node_size = \"256 MiB\"; channels = 1; }; iommu = { enabled = " IOMMU \
         "; }; ports = ( { name = \"rp0\"; lanes = 8; }, { name = \"rp1\"; lanes = 8; } ); };\n"
#define NTB " = { type = \"pcie.ntb\"; lanes = 8; cable_lanes = 8; bar2_bytes = \"1 GiB\"; };"
#define ADAPTER                                                       \
    " d = { type = \"pcie.requester\"; lanes = 8; bar_bytes = 65536;" \
    " extended_tags = true; completion_timeout_us = 60; };"
#define SWITCH          " = { type = \"pcie.cluster_switch\"; ports = 3; lanes = 8; };"
#define CABLE(FROM, TO) " { from = \"" FROM "\"; to = \"" TO "\"; },"
#define LAST(FROM, TO)  " { from = \"" FROM "\"; to = \"" TO "\"; }"
/* The lender and `server` below one switch, the two others below the other. */
#define CLUSTER                                                                                   \
    "hosts = { " HOST("server", "%s") HOST("second", "%s") HOST("third", "%s")                    \
        HOST("lender", "%s") " };\n"                                                              \
                             "devices = { n0" NTB " n1" NTB " n2" NTB " n3" NTB ADAPTER           \
                             " near" SWITCH " far" SWITCH " };\n"                                 \
                             "cables = (" CABLE("server.s0.rp0", "n0.p0")                         \
                                 CABLE("second.s0.rp0", "n1.p0") CABLE("third.s0.rp0", "n2.p0")   \
                                     CABLE("lender.s0.rp0", "n3.p0")                              \
                                         CABLE("lender.s0.rp1", "d.p0") CABLE("n0.p1", "near.p0") \
                                             CABLE("n3.p1", "near.p1") CABLE("near.p2", "far.p2") \
                                                 CABLE("n1.p1", "far.p0")                         \
                                                     LAST("n2.p1", "far.p1") " );\n"
#define PAIR                                                                                    \
    "hosts = { " HOST("server", "%s")                                                           \
        HOST("lender", "%s") " };\n"                                                            \
                             "devices = { n0" NTB " n3" NTB ADAPTER " };\n"                     \
                             "cables = (" CABLE("server.s0.rp0", "n0.p0")                       \
                                 CABLE("lender.s0.rp0", "n3.p0") CABLE("lender.s0.rp1", "d.p0") \
                                     LAST("n0.p1", "n3.p1") " );\n"

#define N_MAX  4u
#define BYTES  16384u
#define GROUP  4096u
#define MS     SIM_PS_PER_MS
#define POISON 0xee

struct rig;
struct side {
    struct kernel *kernel;
    struct lend_host *lend;
    struct sisci *sisci;
    struct sisci_process *process;
    struct rig *rig;
    struct sisci_device *device;
    struct sisci_segment *memory, *buffer[2]; /* buffer: of multicast groups 1 and 2 */
    struct sisci_remote *near;                /* memory of the lender */
    struct sisci_map near_map;
    struct sisci_window window, near_window, group[2];
    unsigned n_lost;
};
struct rig {
    struct world_fixture w;
    unsigned n_sides;
    struct side side[N_MAX];
    uint16_t device_id;
    struct sisci_group group[2];
    struct sisci_usage usage[N_MAX];
    struct lend_usage lend[N_MAX];
    uint8_t out[BYTES], in[BYTES];
    struct fixture_op op;
};

#define OK(call)                                                                  \
    do {                                                                          \
        struct lend_error error = { 0 };                                          \
        const enum sisci_error result_ = (call);                                  \
        if (result_ != SISCI_OK)                                                  \
            fail_msg("%s: %s: %s", #call, sisci_error_name(result_), error.text); \
    } while (0)
#define FAILS(call, code, word)                                                   \
    do {                                                                          \
        struct lend_error error = { 0 };                                          \
        const enum sisci_error result_ = (call);                                  \
        if (result_ != (code) || strstr(error.text, word) == NULL)                \
            fail_msg("%s: %s: %s", #call, sisci_error_name(result_), error.text); \
    } while (0)

static const struct k_pci_id ids[] = { { 0x19ee, 0x6000 }, { 0, 0 } };

/* ---- Up and down ----------------------------------------------------------------------------- */

struct call {
    struct side *side;
    void (*body)(struct side *side);
};

static void call_body(void *arg)
{
    const struct call *call = arg;
    call->body(call->side);
}

static void call(struct side *side, void (*body)(struct side *side))
{
    struct call c = { .side = side, .body = body };
    kernel_call(&side->rig->w, side->kernel, call_body, &c);
}

static struct side *lender(struct rig *r)
{
    return &r->side[r->n_sides - 1];
}

static void up(struct side *s)
{
    struct rig *r = s->rig;
    const bool lends = s == lender(r);
    struct lend_options options = lend_options_default;
    struct lend_error why;
    options.id = (uint32_t)(s - r->side) + 1;
    options.name = lends ? "lender" : "borrower";
    options.lend = lends ? ids : NULL;
    s->lend = lend_host_new(s->kernel, &options);
    s->sisci = sisci_new(s->lend);
    assert_int_equal(k_pci_register(s->kernel, lend_adapter_driver(s->lend)), 1);
    assert_int_equal(k_pci_register(s->kernel, lend_lender_driver(s->lend)), lends);
    assert_int_equal(lend_start(s->lend, &why), 0);
    OK(sisci_open(s->sisci, &s->process, &error));
}

/* Everybody is connected to everybody from here on. */
static void meet(struct side *s)
{
    struct rig *r = s->rig;
    struct sisci_device_info info;
    OK(sisci_device_at(s->process, r->n_sides, 0, &info, &error));
    assert_int_equal(info.vendor_id, ids[0].vendor_id);
    r->device_id = info.name.id;
    for (unsigned i = 1; i < r->n_sides; i++)
        FAILS(sisci_device_at(s->process, i, 0, &info, &error), SISCI_ERR_ILLEGAL_PARAMETER,
              "offers");
}

static struct rig *rig_open(const char *text, unsigned n_sides)
{
    static const char *const names[] = { "server", "second", "third", "lender" };
    struct rig *r = calloc(1, sizeof(*r));
    fixture_open(&r->w, text);
    r->n_sides = n_sides;
    for (unsigned i = 0; i < n_sides; i++) {
        struct host *host = world_host(r->w.world, names[i + 1 == n_sides ? 3 : i]);
        r->side[i] = (struct side){ .kernel = os_new(host, host_os_params(host)), .rig = r };
    }
    for (unsigned i = 0; i < n_sides; i++)
        call(&r->side[i], up);
    for (unsigned i = 0; i < n_sides; i++)
        call(&r->side[i], meet);
    for (unsigned i = 0; i < n_sides; i++) {
        r->usage[i] = sisci_usage(r->side[i].sisci);
        r->lend[i] = lend_usage(r->side[i].lend);
    }
    for (unsigned i = 0; i < BYTES; i++)
        r->out[i] = (uint8_t)(i * 13 + i / 256);
    return r;
}

static struct rig *cluster_open(bool borrowers, bool lenders)
{
    const char *b = borrowers ? "true" : "false", *l = lenders ? "true" : "false";
    char *text = g_strdup_printf(CLUSTER, b, b, b, l);
    struct rig *r = rig_open(text, 4);
    g_free(text);
    return r;
}

static void close_process(struct side *s)
{
    sisci_close(s->process);
}

static void down(struct side *s)
{
    lend_host_free(s->lend);
}

static void rig_close(struct rig *r, bool whole)
{
    for (unsigned i = 0; i < r->n_sides; i++)
        call(&r->side[i], close_process);
    sim_run(r->w.sim, sim_now(r->w.sim) + MS, NULL);
    for (unsigned i = 0; i < r->n_sides; i++) {
        const struct sisci_usage usage = sisci_usage(r->side[i].sisci);
        const struct lend_usage now = lend_usage(r->side[i].lend);
        r->usage[i].processes = 0;
        assert_memory_equal(&usage, &r->usage[i], sizeof(usage));
        if (whole)
            assert_memory_equal(&now, &r->lend[i], sizeof(now));
    }
    for (unsigned i = 0; i < r->n_sides; i++)
        call(&r->side[i], down);
    sim_run(r->w.sim, sim_now(r->w.sim) + 10 * MS, NULL);
    for (unsigned i = 0; i < r->n_sides; i++)
        os_free(r->side[i].kernel);
    fixture_close(&r->w);
    free(r);
}

/* ---- The adapter ----------------------------------------------------------------------------- */

static enum pcie_dma_status transfer(struct rig *r, bool write, uint64_t at, unsigned bytes)
{
    r->op = (struct fixture_op){ .op = { .write = write,
                                         .interface = PCIE_REQUESTER_BULK,
                                         .iova = { at },
                                         .bytes = bytes,
                                         .buffer = write ? r->out : r->in,
                                         .done = fixture_op_done,
                                         .context = &r->op } };
    pcie_requester_submit(world_device(r->w.world, "d"), &r->op.op);
    for (unsigned i = 0; i < 200 && !r->op.done; i++)
        sim_run(r->w.sim, sim_now(r->w.sim) + MS / 100, NULL);
    sim_run(r->w.sim, sim_now(r->w.sim) + MS / 50, NULL); /* posted writes arrive */
    assert_true(r->op.done);
    return r->op.status;
}

static void remote_changed(struct sisci_remote *remote, enum sisci_event event, void *context)
{
    struct side *s = context;
    (void)remote;
    s->n_lost += event == SISCI_CB_LOST;
}

static void device_lost(struct sisci_device *device, enum sisci_event event, void *context)
{
    struct side *s = context;
    assert_ptr_equal(device, s->device);
    s->n_lost += event == SISCI_CB_LOST;
}

/* Memory of this host and of the lender, as a submission queue would have it, for the adapter. */
static void borrow(struct side *s)
{
    const struct sisci_device_name name = { s->rig->n_sides, s->rig->device_id };
    const uint32_t number = 10 + (uint32_t)(s - s->rig->side);
    OK(sisci_device_borrow(s->process, name, SISCI_SHARED, device_lost, s, &s->device, &error));
    OK(sisci_segment_create(s->process, 1, BYTES, 0, NULL, NULL, &s->memory, &error));
    OK(sisci_segment_map_for_device(s->memory, s->device, SISCI_ANY, 0, BYTES, K_DMA_BOTH,
                                    &s->window, &error));
    OK(sisci_device_segment_create(s->device, number, BYTES, SISCI_CPU_WRITE | SISCI_DEVICE_READ,
                                   false, SISCI_ANY, remote_changed, s, &s->near, &error));
    assert_int_equal(sisci_remote_host(s->near), s->rig->n_sides);
    OK(sisci_map(s->near, 0, BYTES, &s->near_map, &error));
    OK(sisci_remote_map_for_device(s->near, s->device, SISCI_ANY, 0, BYTES, K_DMA_BOTH,
                                   &s->near_window, &error));
}

static void load_memory(struct side *s)
{
    k_load(s->kernel, sisci_segment_memory(s->memory), s->rig->in, BYTES);
}

static void load_near(struct side *s)
{
    sisci_read_bytes(&s->near_map, 0, s->rig->in, 1024);
}

static void fill(struct side *s)
{
    uint8_t bytes[BYTES];
    for (unsigned i = 0; i < BYTES; i++)
        bytes[i] = (uint8_t)(i * 7 + i / 128 + (unsigned)(s - s->rig->side));
    k_store(s->kernel, sisci_segment_memory(s->memory), bytes, BYTES);
    sisci_write_bytes(&s->near_map, 0, bytes, BYTES);
    assert_int_equal(sisci_flush(&s->near_map), SISCI_OK);
}

/* The adapter reads what the side's CPU has stored, at both places, and writes it over. */
static void expect_works(struct side *s)
{
    struct rig *r = s->rig;
    const uint64_t at[] = { s->window.dma, s->near_window.dma };
    call(s, fill);
    for (unsigned k = 0; k < 2; k++) {
        memset(r->in, 0, BYTES);
        assert_int_equal(transfer(r, false, at[k], BYTES), PCIE_DMA_OK);
        for (unsigned i = 0; i < BYTES; i++)
            assert_int_equal(r->in[i], (uint8_t)(i * 7 + i / 128 + (unsigned)(s - r->side)));
        assert_int_equal(transfer(r, true, at[k], BYTES), PCIE_DMA_OK);
    }
    call(s, load_memory);
    assert_memory_equal(r->in, r->out, BYTES);
    memset(r->in, 0, BYTES);
    call(s, load_near);
    assert_memory_equal(r->in, r->out, 1024);
}

/* ---- Shared ---------------------------------------------------------------------------------- */

static void test_shared(void **state)
{
    (void)state;
    for (unsigned iommus = 0; iommus < 4; iommus++) {
        struct rig *r = cluster_open(iommus & 1, iommus >> 1 & 1);
        for (unsigned i = 0; i < 4; i++)
            call(&r->side[i], borrow);
        assert_int_equal(sisci_usage(lender(r)->sisci).borrowers, 4);
        /* One device, so one entry; the lender's CPUs have one more. */
        assert_int_equal(lend_usage(lender(r)->lend).outgoing, 1);
        for (unsigned i = 0; i < 4; i++)
            expect_works(&r->side[i]);
        rig_close(r, true);
    }
}

static void test_back_to_back(void **state)
{
    (void)state;
    for (unsigned iommus = 0; iommus < 4; iommus++) {
        char *text = g_strdup_printf(PAIR, iommus & 1 ? "true" : "false",
                                     iommus & 2 ? "true" : "false");
        struct rig *r = rig_open(text, 2);
        g_free(text);
        for (unsigned i = 0; i < 2; i++)
            call(&r->side[i], borrow);
        for (unsigned i = 0; i < 2; i++)
            expect_works(&r->side[i]);
        rig_close(r, true);
    }
}

/* ---- Isolation ------------------------------------------------------------------------------- */

static uint64_t victim;

static void find_victim(struct side *s)
{
    struct sisci_segment *segment;
    uint8_t bytes[BYTES];
    OK(sisci_segment_create(s->process, 77, BYTES, 0, NULL, NULL, &segment, &error));
    memset(bytes, POISON, BYTES);
    victim = sisci_segment_memory(segment).v;
    k_store(s->kernel, sisci_segment_memory(segment), bytes, BYTES);
}

static void look_at_victim(struct side *s)
{
    k_load(s->kernel, (struct kaddr){ victim }, s->rig->in, BYTES);
}

/* A wild address of the lender's memory: behind its IOMMU it reaches nothing, and nobody is
 * harmed. */
static void test_isolation(void **state)
{
    (void)state;
    for (unsigned iommu = 0; iommu < 2; iommu++) {
        struct rig *r = cluster_open(false, iommu);
        call(&r->side[0], borrow);
        call(&r->side[1], borrow);
        call(lender(r), find_victim);
        memset(r->in, 0, BYTES);
        const enum pcie_dma_status status = transfer(r, false, victim, 256);
        assert_int_equal(status == PCIE_DMA_OK, !iommu);
        transfer(r, true, victim, 256);
        call(lender(r), look_at_victim);
        for (unsigned i = 0; i < BYTES; i++)
            assert_int_equal(r->in[i], i < 256 && !iommu ? r->out[i] : POISON);
        uint64_t low = UINT64_MAX, high = 0;
        for (unsigned i = 0; i < 4; i++) {
            const struct side *s = &r->side[i % 2];
            const uint64_t dma = i < 2 ? s->window.dma : s->near_window.dma;
            low = SIM_MIN(low, dma);
            high = SIM_MAX(high, dma + BYTES);
        }
        if (iommu) { /* nor beside all windows */
            assert_int_not_equal(transfer(r, false, high, 64), PCIE_DMA_OK);
            assert_int_not_equal(transfer(r, false, low - 64, 64), PCIE_DMA_OK);
        }
        expect_works(&r->side[1]);
        rig_close(r, true);
    }
}

/* ---- Losses ---------------------------------------------------------------------------------- */

static void cable(struct rig *r, const char *ntb, bool in)
{
    const struct model *model = world_device(r->w.world, ntb);
    struct pcie_port *end[2];
    struct pcie_link *link;
    for (unsigned i = 0; (link = pcie_context_link(world_pcie(r->w.world), i, &end[0], &end[1]));
         i++)
        if (end[0] == &model->ports[1] || end[1] == &model->ports[1])
            pcie_link_set_up(link, in);
}

static void expect_lost(struct side *s)
{
    assert_true(sisci_device_lost(s->device) && sisci_remote_lost(s->near));
    assert_true(s->window.lost && s->near_window.lost && s->near_map.lost);
    assert_int_equal(sisci_read(&s->near_map, 0, 4), UINT32_MAX);
    assert_int_equal(sisci_flush(&s->near_map), SISCI_ERR_TRANSFER_FAILED);
    sisci_window_unmap(&s->window);
    sisci_window_unmap(&s->near_window);
    sisci_unmap(&s->near_map);
    OK(sisci_segment_disconnect(s->near, &error));
    OK(sisci_device_return(s->device, &error));
    OK(sisci_segment_remove(s->memory, &error));
}

/* One of two borrowers is cut off and comes back; the other works on. */
static void test_cable(void **state)
{
    struct rig *r = cluster_open(true, true);
    (void)state;
    for (unsigned i = 0; i < 2; i++)
        call(&r->side[i], borrow);
    cable(r, "n1", false);
    sim_run(r->w.sim, sim_now(r->w.sim) + MS, NULL);
    assert_int_equal(r->side[1].n_lost, 2);
    expect_works(&r->side[0]);
    call(&r->side[1], expect_lost);
    sim_run(r->w.sim, sim_now(r->w.sim) + 30 * MS, NULL); /* the lender misses heartbeats */
    assert_int_equal(sisci_usage(lender(r)->sisci).borrowers, 1);
    expect_works(&r->side[0]);
    cable(r, "n1", true);
    sim_run(r->w.sim, sim_now(r->w.sim) + 25 * MS, NULL); /* it trains for 20 ms */
    call(&r->side[1], borrow);
    expect_works(&r->side[1]);
    expect_works(&r->side[0]);
    rig_close(r, false); /* connections are not what they were */
}

/* ---- Multicast ------------------------------------------------------------------------------- */

static void make_groups(struct side *s)
{
    struct sisci_group other;
    for (uint32_t i = 0; i < 2; i++)
        OK(sisci_group_create(s->process, 1 + 40 * i, GROUP, &s->rig->group[i], &error));
    FAILS(sisci_group_create(s->process, 1, GROUP, &other, &error), SISCI_ERR_BUSY, "group 1");
    FAILS(sisci_group_create(s->process, 2, 2 * GROUP, &other, &error), SISCI_ERR_BUSY,
          "4096 bytes");
    FAILS(sisci_group_create(s->process, 64, GROUP, &other, &error), SISCI_ERR_ILLEGAL_PARAMETER,
          "group 64");
    FAILS(sisci_group_create(s->process, 2, 2048, &other, &error), SISCI_ERR_ILLEGAL_PARAMETER,
          "2048");
}

static void make_buffers(struct side *s)
{
    uint8_t bytes[2 * GROUP];
    memset(bytes, POISON, sizeof(bytes));
    for (uint32_t i = 0; i < 2; i++) {
        OK(sisci_segment_create(s->process, 20 + i, 2 * GROUP, 0, NULL, NULL, &s->buffer[i],
                                &error));
        k_store(s->kernel, sisci_segment_memory(s->buffer[i]), bytes, sizeof(bytes));
    }
}

static void subscribe_first(struct side *s)
{
    struct sisci_group none = { s->rig->group[0].host, 9 };
    OK(sisci_group_subscribe(s->buffer[0], s->rig->group[0], SISCI_ANY, &error));
    FAILS(sisci_group_subscribe(s->buffer[0], s->rig->group[1], SISCI_ANY, &error), SISCI_ERR_BUSY,
          "has subscribed");
    FAILS(sisci_group_subscribe(s->buffer[1], none, SISCI_ANY, &error), SISCI_ERR_NO_SUCH_SEGMENT,
          "group 9");
    FAILS(sisci_segment_remove(s->buffer[0], &error), SISCI_ERR_BUSY, "segment 20");
}

/* Without an IOMMU an adapter's overlay has one place. */
static void subscribe_second(struct side *s)
{
    if (lend_adapter_at(s->lend, 0)->domain != NULL || s == &s->rig->side[2])
        OK(sisci_group_subscribe(s->buffer[1], s->rig->group[1], SISCI_ANY, &error));
    else
        FAILS(sisci_group_subscribe(s->buffer[1], s->rig->group[1], SISCI_ANY, &error),
              SISCI_ERR_NOSPC, "no IOMMU");
}

static void unsubscribe_first(struct side *s)
{
    OK(sisci_group_unsubscribe(s->buffer[0], &error));
    FAILS(sisci_group_unsubscribe(s->buffer[0], &error), SISCI_ERR_ILLEGAL_OPERATION,
          "not subscribed");
}

static void map_groups(struct side *s)
{
    borrow(s);
    for (unsigned i = 0; i < 2; i++)
        OK(sisci_group_map_for_device(s->device, s->rig->group[i], SISCI_ANY, &s->group[i],
                                      &error));
}

static void load_buffers(struct side *s)
{
    for (unsigned i = 0; i < 2; i++)
        k_load(s->kernel, sisci_segment_memory(s->buffer[i]), s->rig->in + (size_t)i * 2 * GROUP,
               2 * GROUP);
}

/* Of a side: whether the first bytes of each of its buffers are those of the group, and no
 * others. */
static void expect_buffers(struct side *s, bool first, bool second)
{
    struct rig *r = s->rig;
    const bool has[] = { first, second };
    call(s, load_buffers);
    for (unsigned k = 0; k < 2; k++)
        for (unsigned i = 0; i < 2 * GROUP; i++)
            assert_int_equal(r->in[k * 2 * GROUP + i],
                             has[k] && i < GROUP ? r->out[i + k] : POISON);
}

/* Both groups at a time: `server` is in the first, `second` in both if it can, `third` in the
 * second. */
static void test_multicast(void **state)
{
    (void)state;
    for (unsigned iommus = 0; iommus < 4; iommus++) {
        struct rig *r = cluster_open(iommus & 1, iommus >> 1 & 1);
        struct side *s = r->side;
        call(&s[1], make_groups);
        for (unsigned i = 0; i < 3; i++)
            call(&s[i], make_buffers);
        call(&s[0], subscribe_first);
        call(&s[1], subscribe_first);
        call(&s[1], subscribe_second);
        call(&s[2], subscribe_second);
        call(&s[0], map_groups);
        assert_int_equal(transfer(r, true, s[0].group[0].dma, GROUP), PCIE_DMA_OK);
        memmove(r->out, r->out + 1, GROUP); /* other bytes */
        assert_int_equal(transfer(r, true, s[0].group[1].dma, GROUP), PCIE_DMA_OK);
        memmove(r->out + 1, r->out, GROUP);
        r->out[0] = 0;
        expect_buffers(&s[0], true, false);
        expect_buffers(&s[1], true, iommus & 1);
        expect_buffers(&s[2], false, true);
        assert_int_not_equal(transfer(r, false, s[0].group[0].dma, 64), PCIE_DMA_OK); /* no reads */
        call(&s[0], unsubscribe_first);
        for (unsigned i = 0; i < GROUP; i++)
            r->out[i] = (uint8_t)(i * 3);
        assert_int_equal(transfer(r, true, s[0].group[0].dma, GROUP), PCIE_DMA_OK);
        call(&s[0], load_buffers);
        assert_memory_not_equal(r->in, r->out, GROUP);
        call(&s[1], load_buffers);
        assert_memory_equal(r->in, r->out, GROUP);
        rig_close(r, true);
    }
}

static void no_groups(struct side *s)
{
    struct sisci_group group;
    FAILS(sisci_group_create(s->process, 1, GROUP, &group, &error), SISCI_ERR_NOT_IMPLEMENTED,
          "no cluster switch");
}

static void test_no_multicast(void **state)
{
    char *text = g_strdup_printf(PAIR, "false", "false");
    struct rig *r = rig_open(text, 2);
    (void)state;
    g_free(text);
    call(&r->side[0], no_groups);
    rig_close(r, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shared),    cmocka_unit_test(test_back_to_back),
        cmocka_unit_test(test_isolation), cmocka_unit_test(test_cable),
        cmocka_unit_test(test_multicast), cmocka_unit_test(test_no_multicast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
