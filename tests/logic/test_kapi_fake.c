/* The fake of logic/kapi.h that other tests stand on: what it promises them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/fake/fake_kapi.h"

/* A device with one queue: interrupts, NAPI, a timer, a thread that waits, work. */
struct part {
    struct kernel *kernel;
    struct k_pci_dev dev;
    struct k_irq *irq;
    struct k_napi napi;
    struct k_timer timer;
    struct k_work work;
    struct k_wait_queue wait;
    unsigned arrived, taken, read, polls, timers, works, moves;
    unsigned cpu_of_poll, cpu_of_work;
    bool inside_poll, in_section;
    uint64_t trace; /* of everything that happened, in order */
};

static void note(struct part *p, unsigned what)
{
    p->trace = (p->trace ^ (what + p->kernel->now_ps * 31 + p->kernel->cpu_now)) * 0x100000001b3u;
}

static void handle(void *arg)
{
    struct part *p = arg;
    note(p, 1);
    k_compute(p->kernel, 50);
    k_napi_schedule(&p->napi);
}

static int poll(struct k_napi *napi, int budget)
{
    struct part *p = K_CONTAINER(napi, struct part, napi);
    int done = 0;
    assert_false(p->inside_poll);
    assert_false(p->in_section);
    p->inside_poll = true;
    p->cpu_of_poll = k_cpu(p->kernel);
    p->polls++;
    for (; done < budget && p->taken < p->arrived; done++) {
        k_compute(p->kernel, 200);
        p->taken++;
        note(p, 2);
    }
    k_wake(p->kernel, &p->wait);
    p->inside_poll = false;
    if (done < budget)
        k_napi_complete(napi);
    return done;
}

static void tick(struct k_timer *timer)
{
    struct part *p = K_CONTAINER(timer, struct part, timer);
    note(p, 3);
    assert_false(p->in_section);
    k_compute(p->kernel, 100);
    if (++p->timers < 20)
        k_timer_set(timer, k_now_ps(p->kernel) + FAKE_US(5));
    k_work_queue(p->kernel, &p->work, 2);
}

static void work(struct k_work *w)
{
    struct part *p = K_CONTAINER(w, struct part, work);
    p->cpu_of_work = k_cpu(p->kernel);
    p->works++;
    note(p, 4);
    k_sleep(p->kernel, FAKE_US(1));
}

static void reader(void *arg)
{
    struct part *p = arg;
    k_timer_set(&p->timer, k_now_ps(p->kernel) + FAKE_US(5));
    while (p->read < 1000) {
        while (p->taken == p->read)
            k_wait(p->kernel, &p->wait, UINT64_MAX);
        p->read++;
        note(p, 5);
        k_compute(p->kernel, 30);
        if (p->read % 100 == 0) {
            p->moves++;
            k_thread_set_cpu(k_thread_self(p->kernel), p->moves % 2);
            assert_int_equal(k_cpu(p->kernel), p->moves % 2);
        }
        if (k_cpu(p->kernel) == 1) { /* where the interrupt goes and the timer does not */
            k_bh_disable(p->kernel);
            p->in_section = true;
            k_compute(p->kernel, 100);
            p->in_section = false;
            k_bh_enable(p->kernel);
        }
    }
}

static void wire(void *arg)
{
    struct part *p = arg;
    p->arrived += 1 + (unsigned)fake_random(p->kernel, 5);
    if (p->arrived > 1000)
        p->arrived = 1000;
    fake_irq_raise(p->kernel, &p->dev, 3);
    if (p->arrived < 1000)
        fake_at(p->kernel, k_now_ps(p->kernel) + FAKE_US(1), wire, p);
}

static uint64_t run_part(uint64_t seed)
{
    struct fake_options options = { .seed = seed, .stall_percent = 20 };
    struct part p = { .kernel = fake_new(&options), .work.fn = work };
    struct kernel *kernel = p.kernel;

    p.dev.device.name = "part";
    assert_int_equal(k_pci_add(kernel, &p.dev), 0);
    assert_int_equal(k_irq_request(&p.dev, 3, 1, handle, &p, &p.irq), 0);
    k_napi_init(&p.napi, kernel, poll);
    k_timer_init(&p.timer, kernel, tick);
    fake_on(kernel, 1);
    k_thread_new(kernel, "reader", 1, reader, &p);
    fake_at(kernel, FAKE_US(1), wire, &p);
    fake_run_until(kernel, FAKE_MS(20));
    assert_int_equal(p.read, 1000);
    assert_int_equal(p.moves, 10);
    assert_int_equal(p.cpu_of_poll, 1);
    assert_int_equal(p.cpu_of_work, 2);
    assert_int_equal(p.timers, 20);
    assert_in_range(p.works, 1, 20);
    assert_false(k_timer_pending(&p.timer));
    k_irq_free(p.irq);
    uint64_t trace = p.trace;
    fake_free(kernel);
    return trace;
}

static void test_same_seed_same_run(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        uint64_t trace = run_part(seed);
        assert_true(trace == run_part(seed));
        assert_true(trace != run_part(seed + 1000));
    }
}

static void test_memory_is_watched(void **state)
{
    (void)state;
    struct fake_options options = { .fail_page_every = 3, .count_faults = true };
    struct kernel *kernel = fake_new(&options);
    uint64_t value = 42, dma;
    struct k_page *page = k_page_alloc(kernel, 1, 0);
    struct k_device device;

    fake_device_init(kernel, &device, 0, "d");
    k_store(kernel, kaddr_add(page->addr, 100), &value, sizeof value);
    value = 0;
    k_load(kernel, kaddr_add(page->addr, 100), &value, sizeof value);
    assert_int_equal(value, 42);
    assert_int_equal(k_dma_map(&device, page->addr, K_PAGE_BYTES, K_DMA_BOTH, &dma), 0);
    assert_int_equal(kernel->n_faults, 0);
    k_load(kernel, kaddr_add(page->addr, K_PAGE_BYTES - 4), &value, 8); /* beyond the end */
    assert_int_equal(kernel->n_faults, 1);
    struct kaddr at = page->addr;
    k_page_get(page);
    k_page_put(kernel, page);
    assert_int_equal(kernel->pages_live, 1);
    k_page_put(kernel, page);
    assert_int_equal(kernel->pages_live, 0);
    k_touch(kernel, at, 1); /* freed */
    assert_int_equal(kernel->n_faults, 2);
    k_dma_unmap(&device, dma, K_PAGE_BYTES, K_DMA_BOTH); /* was mapped when it was freed */
    assert_int_equal(kernel->n_faults, 3);
    page = k_page_alloc(kernel, K_NODE_LOCAL, 2);
    assert_int_equal(page->node, 0);
    assert_null(k_page_alloc(kernel, 0, 0)); /* the third */
    k_page_put(kernel, page);
    fake_free(kernel);
}

static void test_cache_keeps_and_counts(void **state)
{
    (void)state;
    struct fake_options options = { 0 };
    struct kernel *kernel = fake_new(&options);
    struct k_cache *cache = k_cache_new(kernel, "x", 16, 256);
    struct kaddr addr;
    char *object = k_cache_get(cache, &addr), *other = k_cache_get(cache, NULL);

    object[0] = 'x';
    k_touch_write(kernel, addr, 256);
    assert_int_equal(k_cache_live(cache), 2);
    k_cache_put(cache, other);
    k_cache_put(cache, object);
    assert_ptr_equal(k_cache_get(cache, NULL), object);
    assert_int_equal(object[0], 'x');
    assert_int_equal(k_cache_live(cache), 1);
    fake_free(kernel);
}

/* ---- Capabilities (logic/kpci.c) ------------------------------------------------------------- */

/* The configuration space of a function, and how it was accessed. */
struct space {
    struct k_pci_dev dev;
    uint8_t byte[PCI_STANDARD_END];
    unsigned n_reads, n_writes;
};

static uint32_t space_read(struct k_pci_dev *dev, unsigned offset, unsigned bytes)
{
    struct space *space = K_CONTAINER(dev, struct space, dev);
    uint32_t value = 0;
    space->n_reads++;
    memcpy(&value, &space->byte[offset], bytes);
    return value;
}

static void space_write(struct k_pci_dev *dev, unsigned offset, unsigned bytes, uint32_t value)
{
    struct space *space = K_CONTAINER(dev, struct space, dev);
    space->n_writes++;
    memcpy(&space->byte[offset], &value, bytes);
}

static const struct k_pci_ops space_ops = { .config_read = space_read,
                                            .config_write = space_write };

/* MSI at 0x50, behind it PCI Express at 0x70; the reserved low bits of pointers are set. */
static void test_capability_is_found_in_the_chain(void **state)
{
    (void)state;
    struct space space = { .dev.ops = &space_ops,
                           .byte = { [PCI_STATUS] = PCI_STATUS_CAP_LIST,
                                     [PCI_CAP_POINTER] = 0x53,
                                     [0x50] = PCI_CAP_ID_MSI,
                                     [0x51] = 0x71,
                                     [0x70] = PCI_CAP_ID_PCIE,
                                     [0x72] = 0x02 } };
    uint32_t header = 0;
    assert_int_equal(k_pci_find_capability(&space.dev, PCI_CAP_ID_MSI, NULL), 0x50);
    assert_int_equal(k_pci_find_capability(&space.dev, PCI_CAP_ID_PCIE, &header), 0x70);
    assert_int_equal(header, 0x00020010);
    assert_int_equal(k_pci_find_capability(&space.dev, PCI_CAP_ID_MSIX, &header), 0);
    assert_int_equal(header, 0x00020010); /* untouched */
    space.byte[PCI_STATUS] = 0;           /* no list: the pointer means nothing */
    space.n_reads = 0;
    assert_int_equal(k_pci_find_capability(&space.dev, PCI_CAP_ID_MSI, NULL), 0);
    assert_int_equal(space.n_reads, 1);
}

static void test_circular_chain_ends(void **state)
{
    (void)state;
    struct space space = { .dev.ops = &space_ops,
                           .byte = { [PCI_STATUS] = PCI_STATUS_CAP_LIST,
                                     [PCI_CAP_POINTER] = 0x40,
                                     [0x40] = PCI_CAP_ID_MSI,
                                     [0x41] = 0x40 } };
    assert_int_equal(k_pci_find_capability(&space.dev, PCI_CAP_ID_MSIX, NULL), 0);
    assert_int_equal(space.n_reads, 2 + PCI_CAPS_MAX);
}

static void test_enable_keeps_the_other_bits(void **state)
{
    (void)state;
    struct space space = { .dev.ops = &space_ops, .byte = { [PCI_COMMAND + 1] = 0x04 } };
    k_pci_enable(&space.dev);
    assert_int_equal(space.byte[PCI_COMMAND], 0x06); /* memory space, bus master */
    assert_int_equal(space.byte[PCI_COMMAND + 1], 0x04);
    assert_int_equal(space.n_reads, 1);
    assert_int_equal(space.n_writes, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_seed_same_run),
        cmocka_unit_test(test_memory_is_watched),
        cmocka_unit_test(test_cache_keeps_and_counts),
        cmocka_unit_test(test_capability_is_found_in_the_chain),
        cmocka_unit_test(test_circular_chain_ends),
        cmocka_unit_test(test_enable_keeps_the_other_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
