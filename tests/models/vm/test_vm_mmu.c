/*
 * TLBs of a guest's CPUs: what they hold, what a miss reads and takes, to the entry and to the
 * picosecond.
 */
#include "tests/support/party.h"

#include <errno.h>

#include "tests/support/vm_rig.h"

#define WORLD                             \
    "hosts = { server = { ports = ( );"   \
    " dram = { node_size = \"8 GiB\"; };" \
    " cpu = { sockets = 1; cores_per_socket = 4; clock_ghz = 2.0; }; }; };"
#define HUGE_SIZE (2 * (uint64_t)MIB)
#define CYCLE_PS  500u

/* ---- Buffers of translations ----------------------------------------------------------------- */

/* The one that was used longest ago makes room, in its set alone. */
static void test_lru(void **state)
{
    struct vm_tlb tlb;
    uint64_t value = 0;
    (void)state;
    vm_tlb_init(&tlb, 8, 4); /* two sets */
    for (uint64_t key = 0; key < 8; key++)
        vm_tlb_insert(&tlb, key, 100 + key);
    for (uint64_t key = 0; key < 8; key++) {
        assert_true(vm_tlb_find(&tlb, key, &value));
        assert_int_equal(value, 100 + key);
    }
    assert_true(vm_tlb_find(&tlb, 0, NULL)); /* 2 is the oldest even one now */
    vm_tlb_insert(&tlb, 8, 108);
    assert_false(vm_tlb_find(&tlb, 2, NULL));
    vm_tlb_insert(&tlb, 0, 200); /* there already: nothing has to go */
    for (uint64_t key = 4; key <= 8; key++)
        assert_true(vm_tlb_find(&tlb, key, NULL));
    assert_true(vm_tlb_find(&tlb, 0, &value));
    assert_int_equal(value, 200);
    for (uint64_t key = 1; key < 8; key += 2) /* the other set */
        assert_true(vm_tlb_find(&tlb, key, NULL));
    vm_tlb_release(&tlb);
}

static void test_sizes(void **state)
{
    struct vm_tlb tlb;
    (void)state;
    vm_tlb_init(&tlb, 0, 4);
    vm_tlb_insert(&tlb, 1, 1);
    assert_false(vm_tlb_find(&tlb, 1, NULL));
    vm_tlb_release(&tlb);
    vm_tlb_init(&tlb, 2, 4); /* fewer than ways: one set of two */
    for (uint64_t key = 1; key <= 3; key++)
        vm_tlb_insert(&tlb, key, 0);
    assert_false(vm_tlb_find(&tlb, 1, NULL));
    assert_true(vm_tlb_find(&tlb, 2, NULL) && vm_tlb_find(&tlb, 3, NULL));
    vm_tlb_release(&tlb);
}

/* ---- On a guest's CPU ------------------------------------------------------------------------ */

struct rig {
    struct vm_rig v;
    /* what the body of a test does */
    struct kaddr buffer;
    uint64_t bytes, stride, reads, walks, l2_hits, ps;
    unsigned passes;
};

static void rig_open(struct rig *r)
{
    *r = (struct rig){ .bytes = 0 };
    vm_rig_open(&r->v, WORLD, 1);
}

static void halt(struct rig *r)
{
    vm_rig_shutdown(&r->v);
    vm_free(r->v.vm);
    r->v.vm = NULL;
}

static void alloc_body(void *arg)
{
    struct rig *r = arg;
    r->buffer = k_alloc(vm_kernel(r->v.vm), K_NODE_LOCAL, r->bytes, HUGE_SIZE);
    assert_true(r->buffer.v != 0);
}

/* Touches all of the buffer in steps, and counts the last pass. */
static void touch_body(void *arg)
{
    struct rig *r = arg;
    struct kernel *guest = vm_kernel(r->v.vm);
    struct vm_stats before = { 0 }, after;
    uint64_t begin_ps = 0;
    for (unsigned pass = 0; pass < r->passes; pass++) {
        before = vm_stats(r->v.vm);
        begin_ps = k_now_ps(guest);
        for (uint64_t at = 0; at < r->bytes; at += r->stride)
            k_touch(guest, kaddr_add(r->buffer, at), 8);
    }
    after = vm_stats(r->v.vm);
    r->ps = k_now_ps(guest) - begin_ps;
    r->reads = after.tlb_reads - before.tlb_reads;
    r->walks = after.tlb_walks - before.tlb_walks;
    r->l2_hits = after.tlb_l2_hits - before.tlb_l2_hits;
}

static void touch_all(struct rig *r, uint64_t bytes, uint64_t stride, unsigned passes)
{
    r->bytes = bytes;
    r->stride = stride;
    r->passes = passes;
    if (r->buffer.v == 0)
        kernel_call(&r->v.w, vm_kernel(r->v.vm), alloc_body, r);
    kernel_call(&r->v.w, vm_kernel(r->v.vm), touch_body, r);
}

/* Without paging-structure caches a walk reads g (h + 1) + h entries. */
static void test_whole_walks(void **state)
{
    static const struct {
        uint64_t guest_page, host_page, reads;
    } cases[] = {
        { 4096, 4096, 24 },
        { 4096, HUGE_SIZE, 19 },
        { HUGE_SIZE, 4096, 19 },
        { HUGE_SIZE, HUGE_SIZE, 15 },
        { 1024 * (uint64_t)MIB, 4096, 14 },
        { 1024 * (uint64_t)MIB, HUGE_SIZE, 11 },
    };
    (void)state;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(cases); i++) {
        struct rig r;
        rig_open(&r);
        struct vm_params *params = &r.v.config.params;
        params->guest_page_bytes = cases[i].guest_page;
        params->host_page_bytes = cases[i].host_page;
        params->tlb_4k_entries = params->tlb_2m_entries = params->tlb_l2_entries = 0;
        params->pde_cache_entries = params->pdpte_cache_entries = 0;
        params->pml4e_cache_entries = 0;
        vm_rig_boot(&r.v);
        touch_all(&r, 8 * MIB, HUGE_SIZE, 2);
        assert_int_equal(r.walks, 4);
        assert_int_equal(r.reads, 4 * cases[i].reads);
        halt(&r);
        vm_rig_close(&r.v);
    }
}

/* With them, in a guest whose memory lies in one GiB, with its tables next to each other. The first
 * walk reads all h entries of the host's tables for the guest's first table, the lowest for each of
 * the others, those below 1 GiB for the page, and g of the guest's. The next ones read the lowest
 * entry of both. In another piece of 2 MiB the guest has another table of pages of 4 KiB, which has
 * to be found, and so has the host. */
static void test_structure_caches(void **state)
{
    static const struct {
        uint64_t guest_page, host_page, first, next, far;
    } cases[] = {
        { 4096, 4096, 4 + 3 + 2 + 4, 2, 2 + 2 + 1 },
        { 4096, HUGE_SIZE, 3 + 3 + 1 + 4, 2, 2 + 1 + 1 },
        { HUGE_SIZE, 4096, 4 + 2 + 2 + 3, 0, 3 },
        { HUGE_SIZE, HUGE_SIZE, 3 + 2 + 1 + 3, 0, 2 },
        { 1024 * (uint64_t)MIB, HUGE_SIZE, 3 + 1 + 1 + 2, 0, 2 },
    };
    (void)state;
    for (unsigned i = 0; i < SIM_N_ELEMENTS(cases); i++) {
        struct rig r;
        rig_open(&r);
        struct vm_params *params = &r.v.config.params;
        params->guest_page_bytes = cases[i].guest_page;
        params->host_page_bytes = cases[i].host_page;
        vm_rig_boot(&r.v);
        touch_all(&r, 8, 64, 1);
        assert_int_equal(r.walks, 1);
        assert_int_equal(r.reads, cases[i].first);
        halt(&r);
        r.buffer.v = 0;
        vm_rig_boot(&r.v);
        touch_all(&r, 4 * MIB, 4096, 1);
        const bool small = cases[i].guest_page == 4096 || cases[i].host_page == 4096;
        assert_int_equal(r.walks, small ? 1024 : 2);
        if (cases[i].guest_page == 4096)
            assert_int_equal(r.reads, cases[i].first + 1022 * cases[i].next + cases[i].far);
        else if (!small)
            assert_int_equal(r.reads, cases[i].first + cases[i].far);
        halt(&r);
        vm_rig_close(&r.v);
    }
}

/* Pages of 4 KiB of both: the guest's entry is below a table whose place the cache of PDEs has, and
 * so is the host's. */
static void test_small_structure_caches(void **state)
{
    struct rig r;
    (void)state;
    rig_open(&r);
    r.v.config.params.guest_page_bytes = r.v.config.params.host_page_bytes = 4096;
    r.v.config.params.tlb_4k_entries = r.v.config.params.tlb_l2_entries = 1;
    r.v.config.params.tlb_l2_ways = 1;
    vm_rig_boot(&r.v);
    touch_all(&r, 8 * MIB, 4096, 2);
    assert_int_equal(r.walks, 2048);
    assert_int_equal(r.reads, 2 * 2048);
    halt(&r);
    vm_rig_close(&r.v);
}

/* Two lines that stay in the L1: in different pages of which the first level holds both, one, or
 * neither level any. */
static void test_timing(void **state)
{
    uint64_t ps[3];
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        struct rig r;
        rig_open(&r);
        r.v.config.params.tlb_2m_entries = i == 0 ? 2 : 1;
        r.v.config.params.tlb_ways = 2;
        r.v.config.params.tlb_l2_entries = i < 2 ? 6 : 0;
        r.v.config.params.tlb_l2_cycles = 9;
        vm_rig_boot(&r.v);
        touch_all(&r, 2 * HUGE_SIZE, HUGE_SIZE + 64, 5);
        assert_int_equal(r.l2_hits, i == 1 ? 2 : 0);
        assert_int_equal(r.walks, i == 2 ? 2 : 0);
        assert_int_equal(r.reads, i == 2 ? 4 : 0);
        ps[i] = r.ps;
        halt(&r);
        vm_rig_close(&r.v);
    }
    assert_int_equal(ps[1], ps[0] + 2 * 9 * CYCLE_PS);
    /* Each walk is two loads of lines that are in the L1, too: as long as those of the test. */
    assert_int_equal(ps[2], ps[1] + 2 * ps[0]);
}

/* 16 MiB in steps of 4 KiB: 4096 small pages, more than both levels hold; 8 large ones. */
static void test_reach(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        struct rig r;
        rig_open(&r);
        r.v.config.params.guest_page_bytes = i == 0 || i == 1 ? 4096 : HUGE_SIZE;
        r.v.config.params.host_page_bytes = i == 0 || i == 2 ? 4096 : HUGE_SIZE;
        vm_rig_boot(&r.v);
        touch_all(&r, 16 * MIB, 4096, 2);
        assert_int_equal(r.walks, i == 3 ? 0 : 4096); /* the smaller of both decides */
        assert_int_equal(r.l2_hits, 0);
        touch_all(&r, 4 * MIB, 4096, 2); /* 1024: the second level has them */
        assert_int_equal(r.walks, 0);
        assert_int_equal(r.l2_hits, i == 3 ? 0 : 1024);
        halt(&r);
        vm_rig_close(&r.v);
    }
}

static void copy_body(void *arg)
{
    struct rig *r = arg;
    struct kernel *guest = vm_kernel(r->v.vm);
    const struct kaddr to = kaddr_add(r->buffer, 8 * MIB);
    uint8_t bytes[256];
    r->walks = vm_stats(r->v.vm).tlb_walks;
    k_store(guest, kaddr_add(r->buffer, 0), bytes, 8);
    assert_int_equal(vm_stats(r->v.vm).tlb_walks, r->walks + 1);
    k_load(guest, kaddr_add(r->buffer, HUGE_SIZE - 128), bytes, 256); /* and in the next page */
    assert_int_equal(vm_stats(r->v.vm).tlb_walks, r->walks + 2);
    k_atomic(guest, kaddr_add(r->buffer, 2 * HUGE_SIZE));
    k_prefetch(guest, kaddr_add(r->buffer, 3 * HUGE_SIZE), 64);
    assert_int_equal(vm_stats(r->v.vm).tlb_walks, r->walks + 4);
    k_copy(guest, to, r->buffer, 8 * MIB);
    assert_int_equal(vm_stats(r->v.vm).tlb_walks, r->walks + 8);
    k_peek(guest, kaddr_add(r->buffer, 16 * MIB), bytes, 8); /* is no access of a CPU */
    assert_int_equal(vm_stats(r->v.vm).tlb_walks, r->walks + 8);
}

/* All ways to touch memory translate; a guest that follows on the same CPU begins with nothing. */
static void test_accesses(void **state)
{
    struct rig r;
    (void)state;
    rig_open(&r);
    const uint64_t free_bytes = physmem_free_bytes(host_physmem(r.v.w.host), 0);
    for (unsigned i = 0; i < 2; i++) {
        vm_rig_boot(&r.v);
        r.buffer.v = 0;
        r.bytes = 18 * MIB;
        kernel_call(&r.v.w, vm_kernel(r.v.vm), alloc_body, &r);
        kernel_call(&r.v.w, vm_kernel(r.v.vm), copy_body, &r);
        halt(&r);
    }
    assert_int_equal(physmem_free_bytes(host_physmem(r.v.w.host), 0), free_bytes);
    vm_rig_close(&r.v);
}

static void load_body(void *arg)
{
    struct rig *r = arg;
    struct kernel *guest = vm_kernel(r->v.vm);
    uint8_t bytes[256];
    r->walks = vm_stats(r->v.vm).tlb_walks;
    r->l2_hits = vm_stats(r->v.vm).tlb_l2_hits;
    k_load(guest, r->buffer, bytes, 8);
    assert_int_equal(vm_stats(r->v.vm).tlb_walks, r->walks + 1);
    assert_int_equal(vm_stats(r->v.vm).tlb_l2_hits, r->l2_hits);
    k_load(guest, r->buffer, bytes, 8);
    assert_int_equal(vm_stats(r->v.vm).tlb_l2_hits, r->l2_hits + 1);
    k_load(guest, r->buffer, bytes, sizeof(bytes));
    assert_int_equal(vm_stats(r->v.vm).tlb_l2_hits, r->l2_hits + 2);
    k_touch(guest, r->buffer, sizeof(bytes));
    assert_int_equal(vm_stats(r->v.vm).tlb_l2_hits, r->l2_hits + 3);
    k_load(guest, kaddr_add(r->buffer, HUGE_SIZE - 128), bytes, sizeof(bytes)); /* two pages */
    assert_int_equal(vm_stats(r->v.vm).tlb_walks, r->walks + 2);
    assert_int_equal(vm_stats(r->v.vm).tlb_l2_hits, r->l2_hits + 4);
}

/* A load of several lines pays for the translation of a page once, as one of a line does, also
 * where the first level does not keep it. */
static void test_load_pays_once(void **state)
{
    struct rig r;
    (void)state;
    rig_open(&r);
    r.v.config.params.tlb_2m_entries = 0;
    vm_rig_boot(&r.v);
    r.bytes = 2 * HUGE_SIZE;
    kernel_call(&r.v.w, vm_kernel(r.v.vm), alloc_body, &r);
    kernel_call(&r.v.w, vm_kernel(r.v.vm), load_body, &r);
    halt(&r);
    vm_rig_close(&r.v);
}

static void test_refusals(void **state)
{
    static const uint64_t bad[][2] = { { 8192, 4096 }, { 4096, 1 << 30 }, { HUGE_SIZE, 65536 } };
    struct rig r;
    (void)state;
    rig_open(&r);
    for (unsigned i = 0; i < SIM_N_ELEMENTS(bad); i++) {
        r.v.config.params.guest_page_bytes = bad[i][0];
        r.v.config.params.host_page_bytes = bad[i][1];
        kernel_call(&r.v.w, r.v.host, vm_rig_new_body, &r.v);
        assert_int_equal(r.v.status, -EINVAL);
    }
    vm_rig_close(&r.v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lru),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_whole_walks),
        cmocka_unit_test(test_structure_caches),
        cmocka_unit_test(test_small_structure_caches),
        cmocka_unit_test(test_timing),
        cmocka_unit_test(test_reach),
        cmocka_unit_test(test_accesses),
        cmocka_unit_test(test_load_pays_once),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
