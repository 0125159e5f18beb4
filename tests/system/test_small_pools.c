/*
 * All pools of a server as small as they may be, and all loads at once: cores of both sockets load
 * and store lines of both, some past their caches; devices of both sockets write memory of both and
 * read it back. Whoever waits for whom, each goes on, every byte comes back, and nothing is left in
 * the end.
 *
 * SMALL_POOLS_S=SECONDS goes on with other seeds for so long (docs/quality.md).
 */
#include <string.h>
#include <time.h>

#include "models/host/core.h"
#include "models/host/host.h"
#include "models/numa/numa_internal.h"
#include "tests/support/numa_fixture.h"
#include "tests/support/world_fixture.h"

#define N_SEEDS   80u /* in every run of the tests */
#define N_DEVICES 4u
#define N_CORES   4u
#define DEPTH     3u /* operations of a device at a time */
#define PIECE     1024u
#define SHARED    65536u   /* of each node, which cores load and store */
#define STREAM    1048576u /* of each core, on each node */
#define WINDOW_PS (100 * SIM_PS_PER_US)
#define N_WINDOWS 3u

struct load;

struct slot { /* one operation of a device */
    struct pcie_requester_op op;
    struct load *load;
    unsigned device;
    bool reading; /* what was written before */
    uint32_t bytes, offset;
    uint8_t wrote[PIECE], buffer[PIECE];
};

struct load {
    struct world_fixture f;
    uint64_t random;
    bool stops;
    struct model *device[N_DEVICES];
    struct iova iova[N_DEVICES][2];
    struct hpa piece[N_DEVICES][2], shared[2], stream[N_CORES][2];
    struct slot slot[N_DEVICES][DEPTH];
    uint64_t device_ops[N_DEVICES], core_ops[N_CORES];
    unsigned in_flight, n_cores_done;
};

static unsigned pick(struct load *l, unsigned n)
{
    return (unsigned)(fixture_random(&l->random) % n);
}

static const char *yes(struct load *l)
{
    return pick(l, 2) != 0 ? "true" : "false";
}

/* ---- The server ------------------------------------------------------------------------------ */

/* Settings of all pools, most of them as small as they may be. */
static char *server_text(struct load *l)
{
    static const char *const policies[] = { "device_side_llc", "dram_invalidate", "home_llc",
                                            "own_then_dram", "own_then_both" };
    static const char *const modes[] = { "directory", "directory", "home", "early" };
    static const char *const stale[] = { "clear", "share", "keep" };
    GString *s = g_string_new("hosts = { server = {"
                              " cpu = { sockets = 2; cores_per_socket = 2; };"
                              " dram = { node_size = \"64 MiB\"; channels = 1;");
    const bool packed = pick(l, 3) == 0;
    const unsigned reserved = pick(l, 2) * 26;

    g_string_append_printf(s, " write_queue = %u; };", 1 + pick(l, 6));
    g_string_append_printf(s,
                           " core = { line_fill_buffers = %u; superqueue_entries = %u; };"
                           " cache = { l1_size = 4096; l1_ways = 4; l2_size = 16384; l2_ways = 4;"
                           " llc_size = 65536; llc_slices = 2; llc_ways = 4; ddio_ways = 1;"
                           " filter_ways = 4; inclusive = %s; ddio = %s; writeback_ns = %u; };",
                           1 + pick(l, 2), 1 + pick(l, 2), yes(l),
                           pick(l, 4) != 0 ? "true" : "false", pick(l, 2) * 30);
    g_string_append_printf(s,
                           " coherence = { remote_dma_write = \"%s\"; snoop_mode = \"%s\";"
                           " directory_stale = \"%s\"; opportunistic_broadcast = %s;"
                           " request_entries = %u; transaction_ids = %u; local_trackers = %u;"
                           " remote_trackers = %u; io_trackers = %u; io_directory_entries = %u;"
                           " write_accept_ns = %u; };",
                           policies[pick(l, 5)], modes[pick(l, 4)], stale[pick(l, 3)], yes(l),
                           1 + pick(l, 2), 1 + pick(l, 2), 1 + pick(l, 2), pick(l, 3), pick(l, 2),
                           pick(l, 3), pick(l, 2) * 60);
    g_string_append_printf(s,
                           " interconnect = { links = %u; data_flits = %u; flit_slots = %u;"
                           " headers_pass_data = %s; receive_flits = %u; reserved_flits = %u;"
                           " credit_loop_ns = %u; };",
                           1 + pick(l, 2), packed ? 3 : 9, packed ? 3 : 1, yes(l),
                           reserved + (packed ? 4 : 10), reserved, 40 + pick(l, 200));
    g_string_append_printf(
        s,
        " root_complex = { posted_header_credits = 1; posted_data_credits = 16;"
        " non_posted_header_credits = 1; non_posted_data_credits = 1;"
        " tx_queue_tlps = 1; write_lines = %u; read_lines = %u; };"
        " iommu = { enabled = %s; iotlb_entries = 1; iotlb_ways = 1; walkers = 1; };"
        " ports = (",
        1 + pick(l, 2), 1 + pick(l, 2), yes(l));
    for (unsigned i = 0; i < N_DEVICES; i++)
        g_string_append_printf(s, "%s { name = \"rp%u\"; socket = %u; lanes = 4; stack = 0; }",
                               i != 0 ? "," : "", i, i / 2);
    g_string_append(s, "); }; };\ndevices = {");
    for (unsigned i = 0; i < N_DEVICES; i++)
        g_string_append_printf(s, " d%u = { type = \"pcie.requester\"; };", i);
    g_string_append(s, " };\ncables = (");
    for (unsigned i = 0; i < N_DEVICES; i++)
        g_string_append_printf(s, "%s { from = \"server.s%u.rp%u\"; to = \"d%u.p0\"; }",
                               i != 0 ? "," : "", i / 2, i, i);
    g_string_append(s, ");\n");
    return g_string_free(s, FALSE);
}

/* ---- Devices --------------------------------------------------------------------------------- */

static void slot_goes(struct slot *slot)
{
    struct load *l = slot->load;
    struct pcie_requester_op *op = &slot->op;

    op->write = !slot->reading;
    if (op->write) { /* somewhere in its piece of either node */
        const unsigned node = pick(l, 2), k = (unsigned)(slot - l->slot[slot->device]);
        op->interface = pick(l, 4) == 0 ? PCIE_REQUESTER_COMMAND : PCIE_REQUESTER_BULK;
        slot->bytes = 1 + pick(l, op->interface == PCIE_REQUESTER_COMMAND ? 64 : PIECE);
        slot->offset = k * PIECE + pick(l, PIECE - slot->bytes + 1);
        op->iova = l->iova[slot->device][node];
        op->iova.v += slot->offset;
        for (unsigned i = 0; i < slot->bytes; i++)
            slot->wrote[i] = (uint8_t)fixture_random(&l->random);
        memcpy(slot->buffer, slot->wrote, slot->bytes);
    }
    op->bytes = slot->bytes;
    op->buffer = slot->buffer;
    l->in_flight++;
    pcie_requester_submit(l->device[slot->device], op);
}

static void slot_done(struct pcie_requester_op *op, enum pcie_dma_status status)
{
    struct slot *slot = op->context;
    struct load *l = slot->load;

    assert_int_equal(status, PCIE_DMA_OK);
    l->device_ops[slot->device]++;
    l->in_flight--;
    if (slot->reading)
        assert_memory_equal(slot->buffer, slot->wrote, slot->bytes);
    if (slot->reading && l->stops)
        return;
    slot->reading = !slot->reading;
    slot_goes(slot);
}

/* ---- Cores ----------------------------------------------------------------------------------- */

struct core_load {
    struct load *load;
    unsigned idx;
};

static void core_runs(struct sim_task *task, void *arg)
{
    const struct core_load *c = arg;
    struct load *l = c->load;
    struct core *core = host_core(l->f.host, c->idx);
    uint64_t next = 0, random = l->random + c->idx;

    while (!l->stops) {
        const uint64_t r = fixture_random(&random);
        const unsigned node = r >> 8 & 1;
        struct hpa hpa = { l->shared[node].v + (r >> 16) % SHARED };
        struct hpa of_device = { l->piece[(r >> 40) % N_DEVICES][node].v +
                                 (r >> 16) % (DEPTH * PIECE) };
        struct hpa mine = { l->stream[c->idx][node].v + next % STREAM };
        switch (r % 8) {
        case 0: core_load(core, task, hpa, NULL); break;
        case 1: core_store(core, task, hpa); break;
        case 2: core_load(core, task, of_device, NULL); break;
        case 3: core_load_async(core, task, of_device); break;
        case 4: core_store_nt(core, task, hpa); break;
        case 5: core_load_range(core, task, mine, 512); break;
        default: core_store(core, task, mine); break;
        }
        next += 64 * (1 + r % 3);
        l->core_ops[c->idx]++;
        if (l->core_ops[c->idx] % 8 == 0)
            sim_task_sync(task);
    }
    core_drain(core, task);
    sim_task_sync(task);
    l->n_cores_done++;
}

/* ---- All of them ----------------------------------------------------------------------------- */

static struct hpa memory(struct load *l, uint16_t id, unsigned node, uint64_t bytes,
                         struct iova *iova)
{
    struct hpa hpa;
    struct iova unused;

    assert_int_equal(
        host_dma_alloc(l->f.host, id, node, bytes, 4096, &hpa, iova != NULL ? iova : &unused), 0);
    return hpa;
}

static void set_up(struct load *l)
{
    char name[8];
    uint16_t id = 0;

    for (unsigned i = 0; i < N_DEVICES; i++) {
        snprintf(name, sizeof(name), "d%u", i);
        l->device[i] = world_device(l->f.world, name);
        id = pcie_requester_id(l->device[i]);
        for (unsigned node = 0; node < 2; node++)
            l->piece[i][node] = memory(l, id, node, DEPTH * PIECE, &l->iova[i][node]);
        for (unsigned k = 0; k < DEPTH; k++)
            l->slot[i][k] = (struct slot){ .load = l,
                                           .device = i,
                                           .op = { .done = slot_done, .context = &l->slot[i][k] } };
    }
    for (unsigned node = 0; node < 2; node++) {
        l->shared[node] = memory(l, id, node, SHARED, NULL);
        for (unsigned c = 0; c < N_CORES; c++)
            l->stream[c][node] = memory(l, id, node, STREAM, NULL);
    }
}

static void one_server(uint64_t seed)
{
    struct load *l = g_new0(struct load, 1);
    struct core_load core[N_CORES];
    const char *why = NULL;
    uint64_t line;

    l->random = seed;
    char *text = server_text(l);
    fixture_open(&l->f, text);
    set_up(l);
    for (unsigned i = 0; i < N_DEVICES; i++)
        for (unsigned k = 0; k < DEPTH; k++)
            slot_goes(&l->slot[i][k]);
    for (unsigned c = 0; c < N_CORES; c++) {
        core[c] = (struct core_load){ l, c };
        sim_task_start(sim_task_new(l->f.sim, "core", 0, core_runs, &core[c]), sim_now(l->f.sim));
    }
    for (unsigned w = 0; w < N_WINDOWS; w++) { /* each goes on in each of them */
        struct load before = *l;
        sim_run(l->f.sim, sim_now(l->f.sim) + WINDOW_PS, NULL);
        assert_null(sim_error(l->f.sim));
        for (unsigned i = 0; i < N_DEVICES; i++)
            assert_true(l->device_ops[i] > before.device_ops[i]);
        for (unsigned c = 0; c < N_CORES; c++)
            assert_true(l->core_ops[c] > before.core_ops[c]);
    }
    l->stops = true;
    sim_run(l->f.sim, SIM_TIME_MAX, NULL); /* until nothing is left to do */
    assert_int_equal(l->in_flight, 0);
    assert_int_equal(l->n_cores_done, N_CORES);
    if (!numa_check_invariants(host_numa(l->f.host), &why, &line))
        fail_msg("seed %llu: %s", (unsigned long long)seed, why);
    fixture_close(&l->f); /* no packet, credit or buffer is missing */
    g_free(text);
    g_free(l);
}

static void test_all_loads_at_once(void **state)
{
    const char *seconds = getenv("SMALL_POOLS_S");
    const time_t until = seconds != NULL ? time(NULL) + atol(seconds) : 0;
    uint64_t seed = 1;

    (void)state;
    for (; seed <= N_SEEDS || time(NULL) < until; seed++)
        one_server(seed);
    if (seconds != NULL)
        printf("# %llu servers\n", (unsigned long long)seed - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_loads_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
