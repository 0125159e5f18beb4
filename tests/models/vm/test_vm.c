/*
 * Guests on a host: their memory, what leaving them costs, their interrupts; a NIC passed through
 * by VFIO with its unchanged driver in the guest, every byte checked, and nothing left afterwards.
 */
#include "tests/support/party.h"

#include <errno.h>
#include <string.h>

#include "hw/pci_regs.h"
#include "logic/lending/vfio.h"
#include "models/os/os_memory.h"
#include "models/os/os_pci.h"
#include "models/pcie/endpoint/pcie_function.h"
#include "tests/support/vm_rig.h"

#define HOST(NAME, IOMMU)                                                  \
    NAME " = { ports = ( { name = \"rp0\"; socket = 0; lanes = 8; } );"    \
         " dram = { node_size = \"8 GiB\"; };"                             \
         " cpu = { sockets = 1; cores_per_socket = 4; clock_ghz = 2.0; };" \
         " iommu = { enabled = " IOMMU "; }; };\n"
#define WORLD                                                                              \
    "hosts = { " HOST("server", "%s")                                                      \
        HOST("client", "false") "};\n"                                                     \
                                "devices = {"                                              \
                                " a = { type = \"nic.ethernet\"; lanes = 8; };"            \
                                " b = { type = \"nic.ethernet\"; lanes = 8; }; };\n"       \
                                "cables = ( { from = \"server.s0.rp0\"; to = \"a.p0\"; }," \
                                " { from = \"client.s0.rp0\"; to = \"b.p0\"; },"           \
                                " { from = \"a.e0\"; to = \"b.e0\"; latency_ns = 100; } );\n"
#define GIB       (UINT64_C(1) << 30)
#define HUGE_SIZE (2 * (uint64_t)MIB)

static void rig_open(struct vm_rig *r, const char *iommu)
{
    char *text = g_strdup_printf(WORLD, iommu);
    vm_rig_open(r, text, 2);
    g_free(text);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/* Every other huge page is in use: the guest gets none that follows on another. */
static void scatter_body(void *arg)
{
    struct vm_rig *r = arg;
    struct physmem *mem = host_physmem(os_host(r->host));
    struct hpa at[128];
    for (unsigned i = 0; i < 128; i++)
        assert_true(physmem_alloc(mem, 0, HUGE_SIZE, HUGE_SIZE, &at[i]));
    for (unsigned i = 0; i < 128; i += 2)
        physmem_release(mem, at[i], HUGE_SIZE);
}

static void memory_body(void *arg)
{
    struct vm_rig *r = arg;
    struct kernel *guest = vm_kernel(r->vm);
    uint8_t out[3000], in[3000];
    uint64_t first, second;
    struct payload_difference is;
    struct kaddr buffer = k_alloc(guest, K_NODE_LOCAL, 8 * MIB, HUGE_SIZE);
    assert_true(buffer.v != 0);
    assert_true(vm_resolve(r->vm, buffer.v, &first));
    assert_true(vm_resolve(r->vm, buffer.v + HUGE_SIZE, &second));
    assert_int_not_equal(second, first + HUGE_SIZE);
    /* Across the boundary of two pieces: stores, loads, copies, payload. */
    struct kaddr edge = kaddr_add(buffer, HUGE_SIZE - 1001);
    for (unsigned i = 0; i < sizeof out; i++)
        out[i] = (uint8_t)(i * 7 + 3);
    k_store(guest, edge, out, sizeof out);
    k_load(guest, edge, in, sizeof in);
    assert_memory_equal(in, out, sizeof out);
    k_peek(r->host, (struct kaddr){ first + HUGE_SIZE - 1001 }, in, 1001);
    k_peek(r->host, (struct kaddr){ second }, in + 1001, sizeof in - 1001);
    assert_memory_equal(in, out, sizeof out);
    payload_fill(guest, buffer, payload_mark(3, 0), 4 * MIB);
    k_copy(guest, kaddr_add(buffer, 4 * MIB), buffer, 4 * MIB);
    assert_true(payload_check(guest, kaddr_add(buffer, 4 * MIB), payload_mark(3, 0), 4 * MIB, &is));
    k_copy(guest, kaddr_add(buffer, 4 * MIB + 24), buffer, 3 * MIB); /* not aligned alike */
    assert_true(
        payload_check(guest, kaddr_add(buffer, 4 * MIB + 24), payload_mark(3, 0), 3 * MIB, &is));
}

static void test_memory(void **state)
{
    struct vm_rig r = { 0 };
    (void)state;
    rig_open(&r, "false");
    kernel_call(&r.w, r.host, scatter_body, &r);
    const uint64_t free_bytes = physmem_free_bytes(host_physmem(r.w.host), 0);
    vm_rig_boot(&r);
    assert_int_equal(physmem_free_bytes(host_physmem(r.w.host), 0),
                     free_bytes - 64 * MIB - 256 * KIB); /* and page tables */
    kernel_call(&r.w, vm_kernel(r.vm), memory_body, &r);
    vm_rig_shutdown(&r);
    assert_int_equal(physmem_free_bytes(host_physmem(r.w.host), 0), free_bytes);
    vm_rig_close(&r);
}

static void split_body(void *arg)
{
    struct vm_rig *r = arg;
    uint64_t page, bytes, base;
    assert_true(k_vm_memory(r->vm, 0, &base, &bytes));
    assert_true(base == 0 && bytes == 3 * GIB);
    assert_true(k_vm_memory(r->vm, 1, &base, &bytes));
    assert_true(base == 4 * GIB && bytes == 1 * GIB);
    assert_false(k_vm_memory(r->vm, 2, &base, &bytes));
    assert_int_equal(k_vm_pin(r->vm, 3 * GIB - 1, &page, &bytes), 0);
    assert_int_equal(k_vm_pin(r->vm, 3 * GIB, &page, &bytes), -EFAULT);
    assert_int_equal(k_vm_pin(r->vm, 4 * GIB - 1, &page, &bytes), -EFAULT);
    assert_int_equal(k_vm_pin(r->vm, 5 * GIB - 1, &page, &bytes), 0);
    assert_int_equal(k_vm_pin(r->vm, 5 * GIB, &page, &bytes), -EFAULT);
    assert_int_equal(vm_stats(r->vm).pins, 2);
    k_vm_unpin(r->vm, 3 * GIB - 1);
    k_vm_unpin(r->vm, 5 * GIB - 1);
    /* The guest is given no address in the hole, and all others. */
    unsigned low = 0, high = 0;
    for (;;) {
        struct kaddr at;
        if (k_pages_get(vm_kernel(r->vm), 0, 64 * MIB, &at) != 0)
            break;
        low += at.v + 64 * MIB <= 3 * GIB;
        high += at.v >= 4 * GIB && at.v + 64 * MIB <= 5 * GIB;
    }
    assert_in_range(low, 45, 48);
    assert_in_range(high, 14, 16); /* the kernel's own is there */
}

static void test_split_memory(void **state)
{
    struct vm_rig r = { 0 };
    (void)state;
    rig_open(&r, "false");
    r.config.memory_bytes = 4 * GIB;
    vm_rig_boot(&r);
    kernel_call(&r.w, r.host, split_body, &r);
    vm_rig_shutdown(&r);
    vm_rig_close(&r);
}

/* ---- Refusals -------------------------------------------------------------------------------- */

static void expect_new(struct vm_rig *r, int status)
{
    struct k_vm *first = r->vm;
    kernel_call(&r->w, r->host, vm_rig_new_body, r);
    assert_int_equal(r->status, status);
    r->vm = first;
}

static void spin_body(void *arg)
{
    struct vm_rig *r = arg;
    for (unsigned i = 0; i < 1500 * 1000; i++)
        k_compute(vm_kernel(r->vm), 2000); /* 1 us */
}

static void test_refusals(void **state)
{
    struct vm_rig r = { 0 };
    (void)state;
    rig_open(&r, "false");
    r.config.memory_bytes = 64 * MIB + 4 * KIB;
    expect_new(&r, -EINVAL);
    r.config.memory_bytes = 0;
    expect_new(&r, -EINVAL);
    r.config.memory_bytes = 64 * GIB;
    const uint64_t free_bytes = physmem_free_bytes(host_physmem(r.w.host), 0);
    expect_new(&r, -ENOMEM);
    assert_int_equal(physmem_free_bytes(host_physmem(r.w.host), 0), free_bytes);
    r.config.memory_bytes = 64 * MIB;
    r.config.first_cpu = 0;
    r.config.n_cpus = 4; /* none is left for the host's threads */
    expect_new(&r, -EBUSY);
    assert_int_equal(physmem_free_bytes(host_physmem(r.w.host), 0), free_bytes);
    r.config.first_cpu = 2;
    r.config.n_cpus = 3;
    expect_new(&r, -EINVAL);
    r.config.n_cpus = 2;
    vm_rig_boot(&r);
    r.config.first_cpu = 1;
    expect_new(&r, -EBUSY);
    /* A program in it computes for longer than a second. */
    k_thread_new(vm_kernel(r.vm), "spin", 1, spin_body, &r);
    kernel_call(&r.w, r.host, vm_rig_shutdown_body, &r);
    assert_int_equal(r.status, -EBUSY);
    assert_true(vm_running(r.vm));
    vm_rig_shutdown(&r);
    /* Its CPUs are the host's again. */
    r.config.first_cpu = 2;
    struct k_vm *first = r.vm;
    vm_rig_boot(&r);
    vm_rig_shutdown(&r);
    vm_free(first);
    vm_rig_close(&r);
}

/* ---- What leaving the guest costs, and interrupts -------------------------------------------- */

#define CYCLE_PS 500u
#define MSIX_CAP 0x40u

/* A function without a device behind it: one page of registers, which is its MSI-X table. */
struct empty {
    struct k_vm_function fn;
    uint32_t bar;
    struct k_eventfd *eventfd;
    unsigned n_opens, n_closes, n_resets;
};

static struct empty *empty_of(struct k_vm_function *fn)
{
    return K_CONTAINER(fn, struct empty, fn);
}

static int empty_open(struct k_vm_function *fn, struct k_vm *vm)
{
    (void)vm;
    empty_of(fn)->n_opens++;
    return 0;
}

static void empty_close(struct k_vm_function *fn)
{
    assert_null(empty_of(fn)->eventfd);
    empty_of(fn)->n_closes++;
}

static int empty_reset(struct k_vm_function *fn)
{
    empty_of(fn)->n_resets++;
    return 0;
}

static uint32_t empty_read(struct k_vm_function *fn, unsigned offset, unsigned bytes)
{
    uint32_t value = 0;
    switch (offset & ~3u) {
    case PCI_VENDOR_ID: value = 0x56781234; break;
    case PCI_COMMAND: value = PCI_STATUS_CAP_LIST << 16; break;
    case PCI_BAR0: value = empty_of(fn)->bar; break;
    case PCI_CAP_POINTER: value = MSIX_CAP; break;
    case MSIX_CAP: value = PCI_CAP_ID_MSIX | 1u << 16; break; /* two entries */
    default: break;
    }
    value >>= 8 * (offset & 3);
    return bytes == 4 ? value : value & ((1u << 8 * bytes) - 1);
}

static void empty_write(struct k_vm_function *fn, unsigned offset, unsigned bytes, uint32_t value)
{
    (void)bytes;
    assert_int_not_equal(offset & ~3u, MSIX_CAP); /* that is the hypervisor's */
    if (offset == PCI_BAR0)
        empty_of(fn)->bar = value & ~0xfffu;
}

static int empty_irq(struct k_vm_function *fn, unsigned index, struct k_eventfd *eventfd)
{
    assert_int_equal(index, 0);
    empty_of(fn)->eventfd = eventfd;
    return 0;
}

static const struct k_vm_function_ops empty_ops = { empty_open, empty_close, empty_reset,
                                                    empty_read, empty_write, empty_irq };

struct empty_rig {
    struct vm_rig r;
    struct empty empty;
    struct k_irq *irq;
    sim_time signalled_ps, handled_ps, access_ps;
    unsigned n_irqs;
    bool stop;
};

static void empty_add(void *arg)
{
    struct empty_rig *s = arg;
    s->r.status = vm_add(s->r.vm, &s->empty.fn);
}

static void empty_handler(void *arg)
{
    struct empty_rig *s = arg;
    s->handled_ps = k_now_ps(vm_kernel(s->r.vm));
    s->n_irqs++;
}

static void empty_use(void *arg)
{
    struct empty_rig *s = arg;
    struct kernel *guest = vm_kernel(s->r.vm);
    struct k_pci_dev *dev = vm_device(s->r.vm, &s->empty.fn);
    const uint64_t exits = vm_stats(s->r.vm).exits, from_ps = k_now_ps(guest);
    assert_int_equal(k_config_read(dev, PCI_VENDOR_ID, 4), 0x56781234);
    s->access_ps = k_now_ps(guest) - from_ps;
    assert_int_equal(vm_stats(s->r.vm).exits, exits + 1);
    assert_int_equal(dev->bar_bytes[0], 4096);
    assert_true(dev->bar_base[0] >= 3 * GIB && dev->bar_base[0] < 4 * GIB);
    assert_int_equal(k_irq_request(dev, 0, 1, empty_handler, s, &s->irq), 0);
    assert_non_null(s->empty.eventfd);
    assert_int_equal(k_config_read(dev, MSIX_CAP + PCI_MSIX_CONTROL, 2),
                     PCI_MSIX_CONTROL_ENABLE | 1);
}

static void empty_signal(void *arg)
{
    struct empty_rig *s = arg;
    s->signalled_ps = k_now_ps(s->r.host);
    k_eventfd_signal(s->empty.eventfd);
}

static void empty_busy(void *arg)
{
    struct empty_rig *s = arg;
    while (!s->stop)
        k_compute(vm_kernel(s->r.vm), 2000);
}

/* From the signal to the handler. */
static sim_time empty_way_ps(struct empty_rig *s)
{
    const unsigned before = s->n_irqs;
    kernel_call(&s->r.w, s->r.host, empty_signal, s);
    assert_int_equal(s->n_irqs, before + 1);
    return s->handled_ps - s->signalled_ps;
}

static void empty_mask(struct empty_rig *s, uint32_t masked)
{
    struct k_pci_dev *dev = vm_device(s->r.vm, &s->empty.fn);
    k_writel(dev, 0, PCI_MSIX_ENTRY_CONTROL, masked);
}
static void empty_mask_body(void *arg)
{
    empty_mask(arg, 1);
}
static void empty_unmask_body(void *arg)
{
    empty_mask(arg, 0);
}
static void empty_irq_free(void *arg)
{
    struct empty_rig *s = arg;
    k_irq_free(s->irq);
    assert_null(s->empty.eventfd);
}

static void empty_timing(bool posted)
{
    struct empty_rig s = { .empty.fn = {
                               .ops = &empty_ops, .name = "empty", .bar_bytes = { 4096 } } };
    rig_open(&s.r, "false");
    s.r.config.params.posted_interrupts = posted;
    vm_rig_boot(&s.r);
    const struct vm_params *vm = &s.r.config.params;
    const struct os_params *os = host_os_params(s.r.w.host);
    kernel_call(&s.r.w, s.r.host, empty_add, &s);
    assert_int_equal(s.r.status, 0);
    assert_int_equal(s.empty.n_opens, 1);
    assert_int_equal(s.empty.n_resets, 1);
    kernel_call(&s.r.w, vm_kernel(s.r.vm), empty_use, &s);
    assert_int_equal(s.access_ps,
                     (vm->exit_cycles + vm->user_exit_cycles + vm->entry_cycles) * CYCLE_PS);
    /* CPU 1 of the guest has halted. */
    const sim_time taken_ps = (vm->eventfd_cycles + os->costs.hard_irq_cycles) * CYCLE_PS +
                              os->interrupt_ps;
    const sim_time woken_ps = taken_ps + (os->costs.wakeup_cycles + os->costs.remote_wakeup_cycles +
                                          os->costs.context_switch_cycles + vm->entry_cycles) *
                                             CYCLE_PS;
    const sim_time halted_ps = empty_way_ps(&s) - woken_ps;
    assert_true(halted_ps == os->c1_exit_ps || halted_ps == os->c1e_exit_ps ||
                halted_ps == os->c6_exit_ps);
    assert_int_equal(vm_stats(s.r.vm).woken, 1);
    /* It computes. */
    k_thread_new(vm_kernel(s.r.vm), "busy", 1, empty_busy, &s);
    sim_run(s.r.w.sim, sim_now(s.r.w.sim) + SIM_PS_PER_MS, NULL);
    const sim_time exit_ps = posted ? 0 : (vm->exit_cycles + vm->entry_cycles) * CYCLE_PS;
    assert_int_equal(empty_way_ps(&s), taken_ps + exit_ps);
    assert_int_equal(vm_stats(s.r.vm).woken, 1);
    /* Masked, it waits; unmasked, it comes once. */
    kernel_call(&s.r.w, vm_kernel(s.r.vm), empty_mask_body, &s);
    kernel_call(&s.r.w, s.r.host, empty_signal, &s);
    kernel_call(&s.r.w, s.r.host, empty_signal, &s);
    assert_int_equal(s.n_irqs, 2);
    kernel_call(&s.r.w, vm_kernel(s.r.vm), empty_unmask_body, &s);
    sim_run(s.r.w.sim, sim_now(s.r.w.sim) + SIM_PS_PER_MS, NULL);
    assert_int_equal(s.n_irqs, 3);
    s.stop = true;
    kernel_call(&s.r.w, vm_kernel(s.r.vm), empty_irq_free, &s);
    vm_rig_shutdown(&s.r);
    assert_int_equal(s.empty.n_closes, 1);
    vm_rig_close(&s.r);
}

static void test_timing_posted(void **state)
{
    (void)state;
    empty_timing(true);
}

static void test_timing_by_exit(void **state)
{
    (void)state;
    empty_timing(false);
}

/* ---- Timers ---------------------------------------------------------------------------------- */

struct timer_rig {
    struct vm_rig r;
    struct k_timer timer;
    sim_time late_ps, due_ps, fired_ps;
};

static void timer_sleep(void *arg)
{
    struct timer_rig *s = arg;
    struct kernel *guest = vm_kernel(s->r.vm);
    const sim_time until_ps = k_now_ps(guest) + 10 * SIM_PS_PER_US;
    k_sleep(guest, 10 * SIM_PS_PER_US);
    s->late_ps = k_now_ps(guest) - until_ps;
}

static void timer_fired(struct k_timer *timer)
{
    struct timer_rig *s = SIM_CONTAINER(timer, struct timer_rig, timer);
    s->fired_ps = k_now_ps(timer->kernel);
}

static void timer_busy(void *arg)
{
    struct timer_rig *s = arg;
    struct kernel *guest = vm_kernel(s->r.vm);
    k_timer_init(&s->timer, guest, timer_fired);
    s->due_ps = k_now_ps(guest) + 10 * SIM_PS_PER_US;
    k_timer_set(&s->timer, s->due_ps);
    while (s->fired_ps == 0)
        k_compute(guest, 200);
}

/* A timer's interrupt is two exits; of a CPU that has halted, one of them is the switch to its
 * thread and the entry. */
static void test_timers(void **state)
{
    struct timer_rig s = { .late_ps = 0 };
    (void)state;
    rig_open(&s.r, "false");
    vm_rig_boot(&s.r);
    const struct vm_params *vm = &s.r.config.params;
    const struct os_params *os = host_os_params(s.r.w.host);
    const uint32_t round_cycles = vm->exit_cycles + vm->entry_cycles;
    kernel_call(&s.r.w, vm_kernel(s.r.vm), timer_sleep, &s);
    const sim_time woken_ps = (os->costs.hard_irq_cycles + round_cycles + vm->entry_cycles +
                               2 * os->costs.context_switch_cycles + os->costs.wakeup_cycles) *
                              CYCLE_PS;
    assert_int_equal(s.late_ps - woken_ps, os->c1_exit_ps);
    kernel_call(&s.r.w, vm_kernel(s.r.vm), timer_busy, &s);
    assert_int_equal(s.fired_ps - s.due_ps, (os->costs.hard_irq_cycles + 2 * round_cycles +
                                             os->costs.soft_irq_cycles + os->costs.timer_cycles) *
                                                CYCLE_PS);
    vm_rig_shutdown(&s.r);
    vm_rig_close(&s.r);
}

/* ---- VFIO ------------------------------------------------------------------------------------ */

struct nic_rig {
    struct vm_rig r;
    struct vfio *vfio;
    struct k_vm_function *fn;
    struct party guest, client;
    struct vfio_usage usage;
};

static void vfio_body(void *arg)
{
    struct nic_rig *n = arg;
    const struct vfio_options options = { .ids = party_nic_ids };
    n->vfio = vfio_new(n->r.host, &options);
    assert_int_equal(k_pci_register(n->r.host, vfio_driver(n->vfio)), 1);
    unsigned n_functions;
    const struct pcie_found *found = host_functions(n->r.w.host, &n_functions);
    for (unsigned i = 0; i < n_functions; i++)
        if (found[i].vendor_id == NIC_VENDOR_ID)
            n->fn = vfio_function(n->vfio, os_pci_find(n->r.host, found[i].id));
    assert_non_null(n->fn);
}

static void add_body(void *arg)
{
    struct nic_rig *n = arg;
    n->r.status = vm_add(n->r.vm, n->fn);
}

static void remove_body(void *arg)
{
    struct nic_rig *n = arg;
    vm_remove(n->r.vm, n->fn);
}

static void vfio_free_body(void *arg)
{
    struct nic_rig *n = arg;
    vfio_free(n->vfio);
}

static void nic_open(struct nic_rig *n)
{
    struct host *client = world_host(n->r.w.world, "client");
    n->client = (struct party){ .kernel = os_new(client, host_os_params(client)), .ip = 2 };
    n->guest = (struct party){ .kernel = vm_kernel(n->r.vm), .ip = 1 };
    kernel_call(&n->r.w, n->client.kernel, party_register, &n->client);
    kernel_call(&n->r.w, n->client.kernel, party_open, &n->client);
    kernel_call(&n->r.w, n->guest.kernel, party_register, &n->guest);
    kernel_call(&n->r.w, n->r.host, vfio_body, n);
}

static void nic_add(struct nic_rig *n)
{
    kernel_call(&n->r.w, n->r.host, add_body, n);
    assert_int_equal(n->r.status, 0);
    assert_non_null(vm_device(n->r.vm, n->fn));
    kernel_call(&n->r.w, n->guest.kernel, party_open, &n->guest);
    party_know(&n->guest, &n->client);
    party_know(&n->client, &n->guest);
    n->usage = vfio_usage(n->vfio);
    assert_int_equal(n->usage.guests, 1);
    assert_int_equal(n->usage.domains, 1);
    assert_int_equal(n->usage.pinned_bytes, n->r.config.memory_bytes);
}

static void expect_nothing_left(struct nic_rig *n)
{
    n->usage = vfio_usage(n->vfio);
    assert_int_equal(n->usage.guests + n->usage.domains, 0);
    assert_int_equal(n->usage.pinned_bytes + n->usage.peer_bytes, 0);
    assert_int_equal(vm_stats(n->r.vm).pins, 0);
}

static void nic_close(struct nic_rig *n)
{
    sim_run(n->r.w.sim, sim_now(n->r.w.sim) + 300 * SIM_PS_PER_MS, NULL);
    vm_rig_shutdown(&n->r);
    party_end(&n->guest); /* nothing of it runs any more */
    expect_nothing_left(n);
    kernel_call(&n->r.w, n->client.kernel, party_remove, &n->client);
    kernel_call(&n->r.w, n->r.host, vfio_free_body, n);
    os_free(n->client.kernel);
    vm_rig_close(&n->r);
}

static void vfio_streams(uint64_t memory_bytes, bool posted)
{
    struct nic_rig n = { 0 };
    rig_open(&n.r, "true");
    n.r.config.memory_bytes = memory_bytes;
    n.r.config.params.posted_interrupts = posted;
    kernel_call(&n.r.w, n.r.host, scatter_body, &n.r);
    vm_rig_boot(&n.r);
    nic_open(&n);
    nic_add(&n);
    party_stream(&n.r.w, &n.client, &n.guest, 4 * MIB, 5);
    const struct vm_stats before = vm_stats(n.r.vm);
    party_stream(&n.r.w, &n.guest, &n.client, 4 * MIB, 6);
    const struct vm_stats after = vm_stats(n.r.vm);
    assert_true(after.interrupts > before.interrupts);
    assert_int_equal(after.exits, before.exits); /* registers do not trap */
    nic_close(&n);
}

static void test_vfio(void **state)
{
    (void)state;
    vfio_streams(256 * MIB, true);
}

static void test_vfio_high_memory(void **state)
{
    (void)state;
    vfio_streams(4 * GIB, false);
}

/* The upper byte of the MSI-X capability's control register alone; an entry that names a CPU that
 * the guest has not got, and then one that it has again. */
static void odd_accesses_body(void *arg)
{
    struct nic_rig *n = arg;
    struct vm_function *f = n->fn->private_data;
    struct k_pci_dev *dev = vm_device(n->r.vm, n->fn);
    const unsigned control = f->msix_cap + PCI_MSIX_CONTROL;
    const uint32_t before = k_config_read(dev, control, 2);
    assert_true((before & PCI_MSIX_CONTROL_ENABLE) != 0);
    assert_int_equal(k_config_read(dev, control + 1, 1), before >> 8);
    assert_int_equal(k_config_read(dev, control, 1), before & 0xff);
    assert_int_equal(k_config_read(dev, f->msix_cap, 4) >> 16, before);
    k_config_write(dev, control + 1, 1, (before | PCI_MSIX_CONTROL_FUNCTION_MASK) >> 8);
    assert_int_equal(k_config_read(dev, control, 2), before | PCI_MSIX_CONTROL_FUNCTION_MASK);
    k_config_write(dev, control, 1, 0); /* its lower byte is read-only */
    assert_int_equal(k_config_read(dev, control, 2), before | PCI_MSIX_CONTROL_FUNCTION_MASK);
    k_config_write(dev, control + 1, 1, before >> 8);
    assert_int_equal(k_config_read(dev, control, 2), before);
    unsigned i = 0;
    while (i < f->n_vectors && !f->eventfd[i].in_use)
        i++;
    assert_true(i < f->n_vectors && !f->eventfd[i].masked);
    const uint64_t entry = f->msix_offset + i * PCI_MSIX_ENTRY_BYTES;
    const uint32_t address = k_readl(dev, f->msix_bar, entry);
    k_writel(dev, f->msix_bar, entry, address | 0xffu << 12);
    assert_true(f->eventfd[i].masked && f->eventfd[i].cpu < n->r.config.n_cpus);
    k_writel(dev, f->msix_bar, entry, address);
    assert_false(f->eventfd[i].masked);
}

static void test_odd_accesses(void **state)
{
    struct nic_rig n = { 0 };
    (void)state;
    rig_open(&n.r, "true");
    vm_rig_boot(&n.r);
    nic_open(&n);
    nic_add(&n);
    kernel_call(&n.r.w, n.guest.kernel, odd_accesses_body, &n);
    party_stream(&n.r.w, &n.client, &n.guest, MIB, 7);
    nic_close(&n);
}

/* The device goes and comes while the guest runs: reset before each guest but the first. */
static void test_hot_plug(void **state)
{
    struct nic_rig n = { 0 };
    (void)state;
    rig_open(&n.r, "true");
    vm_rig_boot(&n.r);
    nic_open(&n);
    for (unsigned i = 0; i < 3; i++) {
        nic_add(&n);
        assert_int_equal(world_device(n.r.w.world, "a")->ports[0].function->stats.resets, i);
        party_stream(&n.r.w, &n.client, &n.guest, MIB, (uint16_t)(7 + i));
        sim_run(n.r.w.sim, sim_now(n.r.w.sim) + 300 * SIM_PS_PER_MS, NULL);
        kernel_call(&n.r.w, n.r.host, remove_body, &n);
        assert_null(vm_device(n.r.vm, n.fn));
        expect_nothing_left(&n);
    }
    nic_close(&n);
}

static void test_no_iommu(void **state)
{
    struct nic_rig n = { 0 };
    (void)state;
    rig_open(&n.r, "false");
    vm_rig_boot(&n.r);
    nic_open(&n);
    kernel_call(&n.r.w, n.r.host, add_body, &n);
    assert_int_equal(n.r.status, -EOPNOTSUPP);
    assert_non_null(strstr(vfio_error(n.vfio)->text, "no IOMMU"));
    assert_null(vm_device(n.r.vm, n.fn));
    nic_close(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),           cmocka_unit_test(test_split_memory),
        cmocka_unit_test(test_refusals),         cmocka_unit_test(test_timing_posted),
        cmocka_unit_test(test_timing_by_exit),   cmocka_unit_test(test_vfio),
        cmocka_unit_test(test_vfio_high_memory), cmocka_unit_test(test_hot_plug),
        cmocka_unit_test(test_no_iommu),         cmocka_unit_test(test_odd_accesses),
        cmocka_unit_test(test_timers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
