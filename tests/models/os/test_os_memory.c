/*
 * The kernel's memory: contents after copies at any alignment, what copies, loads and pages take,
 * who gets which page and object.
 */
#include "tests/support/world_fixture.h"

#include <string.h>

#include "models/base/payload.h"
#include "models/os/os_memory.h"

#define WORLD                                                                      \
    "hosts = { server = { ports = ( { name = \"rp0\"; socket = 0; lanes = 8; } );" \
    " cpu = { sockets = 2; cores_per_socket = 4; clock_ghz = 2.0; }; }; };"
#define CYCLE UINT64_C(500)
#define KIB   UINT64_C(1024)
#define MIB   (KIB * KIB)

struct rig {
    struct world_fixture w;
    struct kernel *k;
    struct sim_random random;
    void (*body)(struct rig *r);
    bool done;
};

static void rig_body(void *arg)
{
    struct rig *r = arg;
    r->body(r);
    r->done = true;
}

/* Runs the body in a thread of CPU 0 of a fresh kernel. */
static void in_kernel(void (*body)(struct rig *r))
{
    struct rig r = { .body = body };
    fixture_open(&r.w, WORLD);
    struct os_params params = *host_os_params(r.w.host);
    r.k = os_new(r.w.host, &params);
    sim_random_init(&r.random, 1, "test");
    k_thread_new(r.k, "test", 0, rig_body, &r);
    sim_run(r.w.sim, SIM_TIME_MAX, NULL);
    assert_true(r.done);
    os_free(r.k);
    fixture_close(&r.w);
}

static uint64_t below(struct rig *r, uint64_t bound)
{
    return sim_random_below(&r->random, bound);
}

static struct numa *numa_of(struct rig *r)
{
    return host_numa(r->w.host);
}

/* ---- Content --------------------------------------------------------------------------------- */

static void expect(struct rig *r, struct kaddr at, uint64_t tag, size_t bytes)
{
    struct payload_difference is;
    if (!payload_check(r->k, at, tag, bytes, &is))
        fail_msg("%zu bytes at %llx, from tag %llx on: tag %llx, expected %llx", bytes,
                 (unsigned long long)at.v, (unsigned long long)tag, (unsigned long long)is.found,
                 (unsigned long long)is.expected);
}

/* A part of so many bytes, often a few only. */
static uint64_t piece_of(struct rig *r, uint64_t bytes)
{
    const uint64_t piece = 1 + below(r, below(r, 4) != 0 ? 2000 : 12);
    return SIM_MIN(piece, bytes);
}

/* A stream through buffers of any alignment, copied in pieces of any length. */
static void copies_body(struct rig *r)
{
    const struct kaddr a = k_alloc(r->k, 0, 64 * KIB, 4096), b = k_alloc(r->k, 1, 64 * KIB, 4096);
    const struct kaddr c = k_alloc(r->k, 0, 64 * KIB, 4096);
    for (unsigned round = 0; round < 3000; round++) {
        const uint64_t bytes = 16 + below(r, round % 8 != 0 ? 3000 : 40000);
        const uint64_t tag = payload_mark((uint16_t)(1 + round), below(r, UINT64_C(1) << 40));
        const struct kaddr from = kaddr_add(a, below(r, 5000)), to = kaddr_add(b, below(r, 5000));
        const struct kaddr then = kaddr_add(c, round % 2 != 0 ? to.v - b.v : below(r, 5000));
        payload_fill(r->k, from, tag, bytes);
        expect(r, from, tag, bytes);
        for (uint64_t done = 0; done < bytes;) {
            const uint64_t piece = piece_of(r, bytes - done);
            k_copy(r->k, kaddr_add(to, done), kaddr_add(from, done), piece);
            done += piece;
        }
        expect(r, to, tag, bytes);
        /* From anywhere within: no tag was put there. */
        const uint64_t skip = below(r, bytes);
        k_copy(r->k, then, kaddr_add(to, skip), bytes - skip);
        expect(r, then, tag + skip, bytes - skip);
        /* A line of another stream is found. */
        const uint64_t line = (64 - then.v % 64) % 64;
        if (line + 64 <= bytes - skip) {
            const uint64_t other = payload_mark((uint16_t)(5000 + round), 1);
            struct payload_difference is;
            payload_fill(r->k, kaddr_add(then, line), other, 64);
            assert_false(payload_check(r->k, then, tag + skip, bytes - skip, &is));
            assert_int_equal(is.found, other);
            assert_int_equal(is.expected, tag + skip + line);
        }
    }
}

static void test_copies(void **state)
{
    (void)state;
    in_kernel(copies_body);
}

/* What a device wrote: packets of payload behind headers, copied out in pieces. */
static void packets_body(struct rig *r)
{
    const struct kaddr ring = k_alloc(r->k, 0, 64 * KIB, 4096), user = k_alloc(r->k, 0, MIB, 4096);
    uint64_t tag = payload_mark(7, 0);
    uint8_t buffer[1536], header[66];
    memset(header, 0x5a, sizeof(header));
    for (unsigned round = 0; round < 50; round++) {
        const uint64_t first = tag;
        uint64_t sum = 0;
        for (unsigned i = 0; i < 32; i++) {
            const uint32_t bytes = i % 5 != 4 ? 1448 : 8 + (uint32_t)below(r, 1440);
            const struct payload p = { .bytes = bytes, .n = 1, .extent = { { tag, bytes, 0 } } };
            const struct kaddr slot = kaddr_add(ring, i * 2048);
            k_poke(r->k, slot, header, sizeof(header));
            payload_scatter(&p, 0, bytes, buffer, slot.v + sizeof(header));
            physmem_write_marks(host_physmem(r->w.host), (struct hpa){ slot.v + sizeof(header) },
                                buffer, bytes);
            tag += bytes;
            for (uint32_t done = 0; done < bytes;) {
                const uint32_t piece = (uint32_t)piece_of(r, bytes - done);
                k_copy(r->k, kaddr_add(user, sum), kaddr_add(slot, sizeof(header) + done), piece);
                done += piece;
                sum += piece;
            }
        }
        expect(r, user, first, sum);
    }
}

static void test_packets(void **state)
{
    (void)state;
    in_kernel(packets_body);
}

/* A stream as TCP carries it: written into fragments at the end of a page run, cut into packets of
 * an MSS as the NIC reads it, up to the end of a line each time, put behind headers on the other
 * side, read in calls of any length. */
static void send_segment(struct rig *r, struct payload *ahead, uint64_t *read, uint64_t end,
                         uint32_t bytes, struct kaddr to)
{
    uint8_t buffer[16384];
    struct physmem *mem = host_physmem(r->w.host);
    struct payload packet = { 0 }, left = { 0 };
    while (ahead->bytes < bytes) {
        const uint64_t want = (*read + bytes - ahead->bytes + 63) & ~UINT64_C(63);
        const uint32_t n = (uint32_t)SIM_MIN(SIM_MIN(want, end) - *read, 2048 - *read % 64);
        physmem_read_marks(mem, (struct hpa){ *read }, buffer, n);
        assert_true(payload_gather(ahead, buffer, *read, n));
        *read += n;
    }
    assert_true(payload_slice(&packet, ahead, 0, bytes));
    assert_true(payload_slice(&left, ahead, bytes, ahead->bytes - bytes));
    *ahead = left;
    assert_int_equal(packet.n, 1);
    payload_scatter(&packet, 0, bytes, buffer, to.v);
    physmem_write_marks(mem, (struct hpa){ to.v }, buffer, bytes);
}

static void segments_body(struct rig *r)
{
    static const uint32_t mtu[] = { 576,  1280, 1400, 1420, 1450, 1492, 1496, 1499, 1500,
                                    1501, 1504, 2000, 3000, 4000, 8000, 8999, 9000, 9216 };
    const struct kaddr user = k_alloc(r->k, 0, 256 * KIB, 4096);
    const struct kaddr run = k_alloc(r->k, 0, 256 * KIB, 4096);
    const struct kaddr ring = k_alloc(r->k, 1, 2 * MIB, 4096), got = k_alloc(r->k, 1, MIB, 4096);
    for (unsigned round = 0; round < 8 * SIM_N_ELEMENTS(mtu); round++) {
        const uint32_t mss = mtu[round % SIM_N_ELEMENTS(mtu)] - 52;
        const uint64_t tag = payload_mark((uint16_t)(1 + round), below(r, UINT64_C(1) << 36));
        const uint64_t bytes = 8 * mss + below(r, 64), headers = 66 + (round % 3 != 0 ? 0 : round);
        const struct kaddr from = kaddr_add(user, below(r, 200)),
                           to = kaddr_add(run, below(r, 200));
        payload_fill(r->k, from, tag, bytes);
        for (uint64_t done = 0, n; done < bytes; done += n) {
            n = SIM_MIN(bytes - done, mss * (1 + below(r, 3)));
            k_copy(r->k, kaddr_add(to, done), kaddr_add(from, done), n);
        }
        struct payload ahead = { 0 };
        uint64_t read = to.v, sum = 0;
        for (unsigned i = 0; sum < bytes; i++) {
            const struct kaddr slot = kaddr_add(ring, i * 16384 + headers);
            const uint32_t n = (uint32_t)SIM_MIN(mss, bytes - sum);
            send_segment(r, &ahead, &read, to.v + bytes, n, slot);
            for (uint64_t done = 0, piece; done < n; done += piece) {
                piece = i % 2 != 0 ? n : piece_of(r, n - done);
                k_copy(r->k, kaddr_add(got, sum + done), kaddr_add(slot, done), piece);
            }
            sum += n;
        }
        expect(r, got, tag, bytes);
    }
}

static void test_segments(void **state)
{
    (void)state;
    in_kernel(segments_body);
}

/* Real bytes survive; between places of other alignment those do that no stream could be. */
static void bytes_body(struct rig *r)
{
    const struct kaddr a = k_alloc(r->k, 0, 16 * KIB, 4096), b = k_alloc(r->k, 1, 16 * KIB, 4096);
    uint8_t in[9000], out[9000];
    for (unsigned i = 0; i < sizeof(in); i++)
        in[i] = (uint8_t)(1 + below(r, 255));
    k_store(r->k, kaddr_add(a, 13), in, sizeof(in));
    k_copy(r->k, kaddr_add(b, 77), kaddr_add(a, 13), sizeof(in));
    k_load(r->k, kaddr_add(b, 77), out, sizeof(out));
    assert_memory_equal(in, out, sizeof(in));
    k_peek(r->k, kaddr_add(a, 13), out, sizeof(out));
    assert_memory_equal(in, out, sizeof(in));
    for (unsigned i = 0; i < sizeof(in); i++)
        in[i] &= 0x7f;
    k_store(r->k, kaddr_add(a, 13), in, sizeof(in));
    k_copy(r->k, kaddr_add(b, 90), kaddr_add(a, 13), sizeof(in));
    k_load(r->k, kaddr_add(b, 90), out, sizeof(out));
    assert_memory_equal(in, out, sizeof(in));
    k_copy_nt(r->k, kaddr_add(b, 30), kaddr_add(a, 13), sizeof(in));
    k_load(r->k, kaddr_add(b, 30), out, sizeof(out));
    assert_memory_equal(in, out, sizeof(in));
    k_poke(r->k, kaddr_add(a, 5000), in, 3);
    k_load(r->k, kaddr_add(a, 5000), out, 3);
    assert_memory_equal(in, out, 3);
}

static void test_bytes(void **state)
{
    (void)state;
    in_kernel(bytes_body);
}

/* ---- Time ------------------------------------------------------------------------------------ */

static uint64_t cycles_of(struct rig *r, uint64_t since_ps)
{
    return (k_now_ps(r->k) - since_ps) / CYCLE;
}

static void loads_body(struct rig *r)
{
    const struct kaddr a = k_alloc(r->k, 0, MIB, 4096);
    const sim_time idle_ps = numa_idle_load_ps(numa_of(r), 0, 0);
    uint8_t bytes[512];
    uint64_t t = k_now_ps(r->k);
    k_load(r->k, a, bytes, 8);
    const uint64_t one = k_now_ps(r->k) - t;
    assert_in_range(one, idle_ps, idle_ps + 400000); /* a refresh may be under way */
    t = k_now_ps(r->k);
    k_load(r->k, kaddr_add(a, 8), bytes, 8);
    assert_int_equal(k_now_ps(r->k) - t, 4 * CYCLE);
    /* Eight lines overlap. */
    t = k_now_ps(r->k);
    k_touch(r->k, kaddr_add(a, 64 * KIB), 512);
    assert_in_range(k_now_ps(r->k) - t, idle_ps, 2 * idle_ps + 400000);
    /* Stores and prefetches issue; what was prefetched is there. */
    t = k_now_ps(r->k);
    k_touch_write(r->k, kaddr_add(a, 128 * KIB), 64);
    k_prefetch(r->k, kaddr_add(a, 192 * KIB), 128);
    assert_int_equal(k_now_ps(r->k) - t, 3 * 2 * CYCLE);
    k_compute(r->k, 4000);
    t = k_now_ps(r->k);
    k_touch(r->k, kaddr_add(a, 192 * KIB), 64);
    assert_int_equal(k_now_ps(r->k) - t, 4 * CYCLE);
}

static void test_loads(void **state)
{
    (void)state;
    in_kernel(loads_body);
}

/* Cycles per thousand bytes of copies of `piece` from a source that is in a certain place to a
 * buffer of 64 KiB. */
enum place { LOCAL_LLC, LOCAL_DRAM, REMOTE_LLC, REMOTE_DRAM };
static unsigned copy_cycles(struct rig *r, enum place place, uint64_t piece)
{
    const uint64_t bytes = 2 * MIB;
    const bool remote = place == REMOTE_LLC || place == REMOTE_DRAM;
    const struct kaddr to = k_alloc(r->k, 0, 64 * KIB, 4096);
    const struct kaddr from = k_alloc(r->k, remote ? 1 : 0, bytes, 4096);
    uint64_t cycles = 0;
    for (unsigned pass = 0; pass < 2; pass++) {
        numa_warm_drop(numa_of(r), (struct hpa){ from.v }, bytes);
        if (place == LOCAL_LLC || place == REMOTE_LLC)
            numa_warm_device(numa_of(r), remote ? 1 : 0, (struct hpa){ from.v }, bytes);
        const uint64_t t = k_now_ps(r->k);
        for (uint64_t at = 0; at + piece <= bytes; at += piece)
            k_copy(r->k, kaddr_add(to, at % (64 * KIB - piece + 1)), kaddr_add(from, at), piece);
        cycles = cycles_of(r, t);
    }
    return (unsigned)(cycles * 1000 / (bytes / piece * piece));
}

static void copy_time_body(struct rig *r)
{
    static const char *const names[] = { "LLC", "DRAM", "remote LLC", "remote DRAM" };
    unsigned large[4], packet[4];
    for (enum place p = LOCAL_LLC; p <= REMOTE_DRAM; p++) {
        large[p] = copy_cycles(r, p, 64 * KIB);
        packet[p] = copy_cycles(r, p, 1448);
        print_message("copy from %s: %u cycles per 1000 bytes, %u in pieces of 1448\n", names[p],
                      large[p], packet[p]);
    }
    /* PARAMETERS.md A6: estimates, by what such streams reach. */
    assert_in_range(large[LOCAL_LLC], 220, 350);
    assert_in_range(large[LOCAL_DRAM], 220, 500);
    assert_in_range(large[REMOTE_DRAM], large[LOCAL_DRAM] + 1, 700);
    assert_in_range(packet[LOCAL_LLC], 220, 350);
    assert_in_range(packet[LOCAL_DRAM], 350, 500);
    assert_in_range(packet[REMOTE_DRAM], 450, 700);
    for (enum place p = LOCAL_LLC; p <= REMOTE_DRAM; p++)
        assert_true(packet[p] > large[p]);
}

static void test_copy_time(void **state)
{
    (void)state;
    in_kernel(copy_time_body);
}

/* A short copy ends with its data there; nothing is faster than a line's cycles. */
static void short_copy_body(struct rig *r)
{
    const struct kaddr a = k_alloc(r->k, 0, MIB, 4096);
    const struct k_costs *costs = k_costs(r->k);
    const sim_time idle_ps = numa_idle_load_ps(numa_of(r), 0, 0);
    uint64_t t = k_now_ps(r->k);
    k_copy(r->k, kaddr_add(a, 64 * KIB), a, 64);
    assert_in_range(k_now_ps(r->k) - t, costs->copy_call_cycles * CYCLE + idle_ps,
                    costs->copy_call_cycles * CYCLE + idle_ps + 400000);
    k_compute(r->k, 10000);
    for (unsigned i = 0; i < 4; i++) { /* now in the L1 */
        t = k_now_ps(r->k);
        k_copy(r->k, kaddr_add(a, 64 * KIB), a, 4 * 64);
        if (i > 1)
            assert_int_equal(cycles_of(r, t),
                             costs->copy_call_cycles + 4 * costs->copy_line_cycles);
    }
}

static void test_short_copies(void **state)
{
    (void)state;
    in_kernel(short_copy_body);
}

/* An interrupt that comes in the middle of a long copy is taken there. */
struct interruption {
    struct rig *r;
    uint64_t taken_ps;
    struct k_timer timer;
};
static void timer_fires(struct k_timer *timer)
{
    struct interruption *i = K_CONTAINER(timer, struct interruption, timer);
    i->taken_ps = k_now_ps(i->r->k);
}
static void interrupted_body(struct rig *r)
{
    const struct kaddr a = k_alloc(r->k, 0, MIB, 4096), b = k_alloc(r->k, 0, MIB, 4096);
    struct interruption i = { .r = r };
    k_timer_init(&i.timer, r->k, timer_fires);
    const uint64_t t = k_now_ps(r->k);
    k_timer_set(&i.timer, t + 20 * SIM_PS_PER_US);
    k_copy(r->k, a, b, MIB);
    assert_true(k_now_ps(r->k) > t + 100 * SIM_PS_PER_US);
    assert_in_range(i.taken_ps, t + 20 * SIM_PS_PER_US, t + 25 * SIM_PS_PER_US);
    k_timer_release(&i.timer);
}

static void test_copies_are_interrupted(void **state)
{
    (void)state;
    in_kernel(interrupted_body);
}

/* ---- Pages ----------------------------------------------------------------------------------- */

/* Between a CPU's list and the node's pages go in batches of 31. */
static void batches_body(struct rig *r)
{
    struct k_page *page[OS_PAGE_HIGH + 31];
    r->k->params.costs.page_bulk_cycles = 1000;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(page); i++) {
        const uint64_t t = k_now_ps(r->k);
        page[i] = k_page_alloc(r->k, 0, 0);
        const uint64_t took = k_now_ps(r->k) - t;
        assert_int_equal(took >= 31 * 1000 * CYCLE, i % OS_PAGE_BATCH == 0);
    }
    unsigned batches = 0;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(page); i++) {
        const uint64_t t = k_now_ps(r->k);
        k_page_put(r->k, page[i]);
        batches += k_now_ps(r->k) - t >= 31 * 1000 * CYCLE;
    }
    assert_int_equal(batches, 1);
}

static void test_pages_move_in_batches(void **state)
{
    (void)state;
    in_kernel(batches_body);
}

static void pages_body(struct rig *r)
{
    struct k_page *page[1000];
    struct numa *numa = numa_of(r);
    struct physmem *mem = numa_physmem(numa);
    uint64_t t = k_now_ps(r->k);
    page[0] = k_page_alloc(r->k, K_NODE_LOCAL, 0);
    assert_true(k_now_ps(r->k) - t >= k_costs(r->k)->page_alloc_cycles * CYCLE);
    assert_int_equal(page[0]->node, 0);
    assert_int_equal(page[0]->refs, 1);
    assert_int_equal(physmem_node_of(mem, (struct hpa){ page[0]->meta.v }), 0);
    page[1] = k_page_alloc(r->k, 1, 0);
    assert_int_equal(page[1]->node, 1);
    assert_int_equal(physmem_node_of(mem, (struct hpa){ page[1]->addr.v }), 1);
    assert_int_equal(physmem_node_of(mem, (struct hpa){ page[1]->meta.v }), 1);
    /* References; the last in is the first out. */
    struct k_page *first = page[0];
    k_page_get(first);
    k_page_put(r->k, first);
    assert_int_equal(os_live_pages(r->k), 2);
    k_page_put(r->k, first);
    assert_int_equal(os_live_pages(r->k), 1);
    page[0] = k_page_alloc(r->k, 0, 0);
    assert_ptr_equal(page[0], first);
    /* On another CPU it goes to that one's list. */
    k_thread_set_cpu(k_thread_self(r->k), 1);
    assert_int_equal(k_cpu(r->k), 1);
    k_page_put(r->k, page[0]);
    k_thread_set_cpu(k_thread_self(r->k), 0);
    page[0] = k_page_alloc(r->k, 0, 0);
    assert_ptr_not_equal(page[0], first);
    k_thread_set_cpu(k_thread_self(r->k), 1);
    page[2] = k_page_alloc(r->k, 0, 0);
    assert_ptr_equal(page[2], first);
    for (unsigned i = 0; i < 3; i++)
        k_page_put(r->k, page[i]);
    /* Sizes and alignment; nobody has what another has; none is lost. */
    for (unsigned round = 0; round < 20; round++) {
        for (unsigned i = 0; i < 1000; i++) {
            unsigned order = (unsigned)below(r, 4);
            k_thread_set_cpu(k_thread_self(r->k), (unsigned)below(r, 8));
            page[i] = k_page_alloc(r->k, (int)below(r, 2), order);
            assert_int_equal(page[i]->order, order);
            assert_int_equal(page[i]->addr.v % (K_PAGE_BYTES << order), 0);
            payload_fill(r->k, page[i]->addr, payload_mark((uint16_t)(i + 1), 0),
                         K_PAGE_BYTES << order);
        }
        for (unsigned i = 0; i < 1000; i++) {
            expect(r, page[i]->addr, payload_mark((uint16_t)(i + 1), 0),
                   K_PAGE_BYTES << page[i]->order);
            k_page_put(r->k, page[i]);
        }
        assert_int_equal(os_live_pages(r->k), 0);
        if (round == 10)
            t = physmem_free_bytes(mem, 0);
    }
    assert_int_equal(physmem_free_bytes(mem, 0) >= t - MIB, true); /* used again, not anew */
}

static void test_pages(void **state)
{
    (void)state;
    in_kernel(pages_body);
}

/* Memory of a node that is full comes from the other; free pages of any size become it again. */
static void full_body(struct rig *r)
{
    struct physmem *mem = host_physmem(r->w.host);
    struct k_page *big = k_page_alloc(r->k, 0, 9), *small;
    struct hpa all;
    while (physmem_alloc(mem, 0, 512 * MIB, 4096, &all))
        ;
    for (uint64_t bytes = 256 * MIB; bytes >= 4096; bytes /= 2)
        while (physmem_alloc(mem, 0, bytes, 4096, &all))
            ;
    assert_int_equal(physmem_free_bytes(mem, 0), 0);
    small = k_page_alloc(r->k, 0, 0);
    while (small->node == 0) /* what the CPU had */
        small = k_page_alloc(r->k, 0, 0);
    assert_int_equal(small->node, 1);
    k_page_put(r->k, big);
    small = k_page_alloc(r->k, 0, 0);
    assert_int_equal(small->node, 0);
    assert_int_equal(k_alloc(r->k, 0, 4 * MIB, 64).v, 0);
}

static void test_full_node(void **state)
{
    (void)state;
    in_kernel(full_body);
}

static void pin_body(struct rig *r)
{
    const struct kaddr at = kaddr_add(k_alloc(r->k, 1, 64 * KIB, 4096), 100);
    const struct k_costs *costs = k_costs(r->k);
    const uint64_t t = k_now_ps(r->k);
    assert_int_equal(k_pin(r->k, at, 8192), 0); /* three pages */
    /* It looks at the structures of the pages, which no cache has. */
    assert_true(cycles_of(r, t) >= costs->pin_cycles + 3 * costs->pin_page_cycles + 100);
    assert_int_equal(os_pinned_pages(r->k), 3);
    k_unpin(r->k, at, 8192);
    assert_int_equal(os_pinned_pages(r->k), 0);
}

static void test_pin(void **state)
{
    (void)state;
    in_kernel(pin_body);
}

/* ---- Objects --------------------------------------------------------------------------------- */

static void cache_body(struct rig *r)
{
    struct k_cache *cache = k_cache_new(r->k, "thing", 24, 200);
    struct physmem *mem = host_physmem(r->w.host);
    struct kaddr at, other;
    uint64_t *thing[500];
    thing[0] = k_cache_get(cache, &at);
    assert_int_equal(thing[0][0] | thing[0][1] | thing[0][2], 0);
    assert_int_equal(physmem_node_of(mem, (struct hpa){ at.v }), 0);
    assert_int_equal(at.v % 64, 0);
    thing[0][2] = 77;
    thing[1] = k_cache_get(cache, &other);
    assert_true(other.v >= at.v + 200 || at.v >= other.v + 200);
    assert_int_equal(k_cache_live(cache), 2);
    k_cache_put(cache, thing[0]);
    assert_ptr_equal(k_cache_get(cache, &other), thing[0]); /* last in, first out; as it was */
    assert_int_equal(other.v, at.v);
    assert_int_equal(thing[0][2], 77);
    /* Freed by the other node's CPU it goes home. */
    k_thread_set_cpu(k_thread_self(r->k), 4);
    assert_int_equal(k_node_of_cpu(r->k, 4), 1);
    k_cache_put(cache, thing[0]);
    thing[2] = k_cache_get(cache, &other);
    assert_ptr_not_equal(thing[2], thing[0]);
    assert_int_equal(physmem_node_of(mem, (struct hpa){ other.v }), 1);
    k_cache_put(cache, thing[2]);
    k_thread_set_cpu(k_thread_self(r->k), 0);
    bool back = false;
    for (unsigned i = 2; i < 500; i++) {
        thing[i] = k_cache_get(cache, &other);
        assert_int_equal(physmem_node_of(mem, (struct hpa){ other.v }), 0);
        back = back || thing[i] == thing[0];
        thing[i][0] = i;
    }
    assert_true(back);
    for (unsigned i = 2; i < 500; i++) {
        assert_int_equal(thing[i][0], i);
        k_cache_put(cache, thing[i]);
    }
    k_cache_put(cache, thing[1]);
    assert_int_equal(k_cache_live(cache), 0);
    struct k_cache *plain = k_cache_new(r->k, "plain", 1, 0);
    k_cache_put(plain, k_cache_get(plain, &other));
    assert_int_equal(other.v, 0);
}

static void test_caches(void **state)
{
    (void)state;
    in_kernel(cache_body);
}

/* Objects of a CPU whose node is full come from the other node, and again and again the same. */
static void cache_of_full_node_body(struct rig *r)
{
    struct k_cache *cache = k_cache_new(r->k, "thing", 24, 200);
    struct physmem *mem = host_physmem(r->w.host);
    struct kaddr at;
    void *thing[40];
    for (uint64_t bytes = 1024 * MIB; bytes >= 64; bytes /= 2)
        while (k_alloc(r->k, 0, bytes, 64).v != 0)
            ;
    const uint64_t before = physmem_free_bytes(mem, 1);
    for (unsigned round = 0; round < 200; round++) {
        for (unsigned i = 0; i < SIM_N_ELEMENTS(thing); i++) {
            thing[i] = k_cache_get(cache, &at);
            assert_int_equal(physmem_node_of(mem, (struct hpa){ at.v }), 1);
        }
        for (unsigned i = 0; i < SIM_N_ELEMENTS(thing); i++)
            k_cache_put(cache, thing[i]);
    }
    assert_true(before - physmem_free_bytes(mem, 1) <= 64 * KIB);
}

static void test_cache_of_full_node(void **state)
{
    (void)state;
    in_kernel(cache_of_full_node_body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_packets),
        cmocka_unit_test(test_segments),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_loads),
        cmocka_unit_test(test_copy_time),
        cmocka_unit_test(test_short_copies),
        cmocka_unit_test(test_copies_are_interrupted),
        cmocka_unit_test(test_pages_move_in_batches),
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_full_node),
        cmocka_unit_test(test_pin),
        cmocka_unit_test(test_caches),
        cmocka_unit_test(test_cache_of_full_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
