/*
 * The PCI bus of a guest.
 *
 * Models: functions that a driver of the host serves (logic/kvm.h): each access to configuration
 *   space leaves the guest; registers are mapped, so that accesses do not leave it, but for the
 *   pages of the MSI-X table, which QEMU keeps: it tells the driver which entries signal; the
 *   guest's firmware, that sizes and places base addresses; hot-plug both ways.
 * Does not model: bridges, MSI, legacy interrupts, expansion ROMs, I/O space; an IOMMU within the
 *   guest (what its drivers give to devices is the guest-physical address).
 * Timing: vm_cpu.c for what leaves the guest; a register access that does not is the host's.
 * Sources: QEMU, docs and hw/vfio (pages of the table trapped); PCI Local Bus 3.0, 6.2.5.1, 6.8.2.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "hw/pci_regs.h"
#include "models/vm/vm_internal.h"

#define HOLE_BASE       UINT64_C(0xe0000000) /* of registers below 4 GiB */
#define HOLE_END        UINT64_C(0xfec00000)
#define HIGH_BASE       UINT64_C(0x100000000)
#define HIGH_END        (UINT64_C(1) << 39) /* what the IOMMUs' tables reach: for peer to peer */
#define ALL_ONES(bytes) ((bytes) == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * (bytes)) - 1)

static struct vm_function *function_of(const struct k_pci_dev *dev)
{
    return SIM_CONTAINER(dev, struct vm_function, dev);
}

/* ---- MSI-X, by QEMU -------------------------------------------------------------------------- */

static bool entry_live(const struct vm_function *f, unsigned i)
{
    return f->msix_enabled && !f->msix_masked && (f->table[i][3] & PCI_MSIX_ENTRY_MASKED) == 0;
}

static void entry_update(struct vm_function *f, unsigned i)
{
    struct k_eventfd *e = &f->eventfd[i];
    const unsigned cpu = f->table[i][0] >> 12 & 0xff;
    const bool live = entry_live(f, i);
    if (!live || cpu >= f->vm->guest->n_cpus) {
        vm_eventfd_mask(e, true);
        if (live)
            k_warn(f->vm->host, "%s: an interrupt to a CPU that there is not", f->name);
        return;
    }
    e->cpu = cpu;
    e->vector = (uint8_t)f->table[i][2];
    if (!e->in_use) {
        e->in_use = true;
        const int status = f->fn->ops->set_irq(f->fn, i, e);
        if (status != 0) {
            e->in_use = false;
            k_warn(f->vm->host, "%s: interrupt %u: error %d", f->name, i, status);
            return;
        }
    }
    vm_eventfd_mask(e, false);
}

static void irqs_off(struct vm_function *f)
{
    for (unsigned i = 0; i < f->n_vectors; i++) {
        struct k_eventfd *e = &f->eventfd[i];
        vm_eventfd_mask(e, true);
        if (e->in_use)
            f->fn->ops->set_irq(f->fn, i, NULL);
        e->in_use = e->waits = false;
    }
}

static void control_write(struct vm_function *f, uint32_t control)
{
    const bool was_enabled = f->msix_enabled;
    f->msix_enabled = (control & PCI_MSIX_CONTROL_ENABLE) != 0;
    f->msix_masked = (control & PCI_MSIX_CONTROL_FUNCTION_MASK) != 0;
    if (!f->msix_enabled) {
        if (was_enabled)
            irqs_off(f);
        return;
    }
    for (unsigned i = 0; i < f->n_vectors; i++)
        if (entry_live(f, i) || f->eventfd[i].in_use)
            entry_update(f, i);
}

/* The table lies at the offset of a register window. */
static bool in_table(const struct vm_function *f, unsigned bar, uint64_t offset)
{
    return f->msix_cap != 0 && bar == f->msix_bar && offset >= f->msix_offset &&
           offset - f->msix_offset < (uint64_t)f->n_vectors * PCI_MSIX_ENTRY_BYTES;
}

static bool in_table_page(const struct vm_function *f, unsigned bar, uint64_t offset)
{
    const uint64_t first = f->msix_offset / PAGE_BYTES;
    const uint64_t last = (f->msix_offset + (uint64_t)f->n_vectors * PCI_MSIX_ENTRY_BYTES - 1) /
                          PAGE_BYTES;
    return f->msix_cap != 0 && bar == f->msix_bar && offset / PAGE_BYTES >= first &&
           offset / PAGE_BYTES <= last;
}

/* ---- What leaves the guest ------------------------------------------------------------------- */

struct access {
    struct vm_function *f;
    bool write;
    unsigned bar, bytes;
    uint64_t offset, value;
};

static void follow_bar(struct vm_function *f, unsigned offset)
{
    unsigned i = (offset - PCI_BAR0) / 4;
    const struct k_vm_function_ops *ops = f->fn->ops;
    if (f->fn->bar_bytes[i] == 0 && i > 0)
        i--; /* the upper half of the one before */
    if (f->fn->bar_bytes[i] == 0)
        return;
    const uint32_t low = ops->config_read(f->fn, PCI_BAR0 + 4 * i, 4);
    f->guest_bar[i] = low & ~PCI_BAR_FLAGS_MASK;
    if ((low & PCI_BAR_TYPE_64) != 0 && i + 1 < K_PCI_BARS)
        f->guest_bar[i] |= (uint64_t)ops->config_read(f->fn, PCI_BAR0 + 4 * i + 4, 4) << 32;
}

static bool is_msix_control(const struct vm_function *f, unsigned offset, unsigned bytes)
{
    const unsigned control = f->msix_cap + PCI_MSIX_CONTROL;
    return f->msix_cap != 0 && offset < control + 2 && control < offset + bytes;
}

/* Of the double word that begins with the capability: what QEMU answers for. */
#define MSIX_MINE ((uint32_t)(PCI_MSIX_CONTROL_ENABLE | PCI_MSIX_CONTROL_FUNCTION_MASK) << 16)
_Static_assert(PCI_MSIX_CONTROL == 2, "the control register is the upper half");

static uint32_t msix_mine(const struct vm_function *f)
{
    const uint32_t control = (f->msix_enabled ? PCI_MSIX_CONTROL_ENABLE : 0) |
                             (f->msix_masked ? PCI_MSIX_CONTROL_FUNCTION_MASK : 0);
    return control << 16;
}

static void config_exit(void *arg)
{
    struct access *a = arg;
    struct vm_function *f = a->f;
    const unsigned offset = (unsigned)a->offset, shift = 8 * (offset & 3);
    if (!a->write) {
        a->value = f->fn->ops->config_read(f->fn, offset, a->bytes);
        if (is_msix_control(f, offset, a->bytes))
            a->value = (a->value & ~(uint64_t)(MSIX_MINE >> shift)) | msix_mine(f) >> shift;
        return;
    }
    if (is_msix_control(f, offset, a->bytes)) { /* bytes that it does not write stay */
        const uint32_t written = (uint32_t)(ALL_ONES(a->bytes) << shift);
        control_write(f,
                      ((msix_mine(f) & ~written) | ((uint32_t)a->value << shift & written)) >> 16);
        return;
    }
    f->fn->ops->config_write(f->fn, offset, a->bytes, (uint32_t)a->value);
    if (offset >= PCI_BAR0 && offset < PCI_BAR0 + 4 * K_PCI_BARS)
        follow_bar(f, offset);
}

static void table_exit(void *arg)
{
    struct access *a = arg;
    struct vm_function *f = a->f;
    const uint64_t address = f->fn->bar_base[a->bar] + a->offset;
    if (!in_table(f, a->bar, a->offset)) { /* what else is in its page */
        if (a->write)
            os_mmio_write(&f->dev, address, a->bytes, a->value);
        else
            a->value = os_mmio_read(&f->dev, address, a->bytes);
        return;
    }
    const uint64_t at = a->offset - f->msix_offset;
    const unsigned i = (unsigned)(at / PCI_MSIX_ENTRY_BYTES), word = at / 4 % 4;
    const bool two = a->bytes == 8 && word % 2 == 0;
    if (!a->write) {
        a->value = f->table[i][word] | (two ? (uint64_t)f->table[i][word + 1] << 32 : 0);
        return;
    }
    f->table[i][word] = (uint32_t)a->value;
    if (two)
        f->table[i][word + 1] = (uint32_t)(a->value >> 32);
    entry_update(f, i);
}

/* ---- The guest's side ------------------------------------------------------------------------ */

static uint32_t guest_config_read(struct k_pci_dev *dev, unsigned offset, unsigned bytes)
{
    struct access a = { .f = function_of(dev), .bytes = bytes, .offset = offset };
    if (a.f->fn->gone)
        return (uint32_t)ALL_ONES(bytes);
    vm_exit_to(a.f->vm, config_exit, &a);
    return (uint32_t)(a.value & ALL_ONES(bytes));
}

static void guest_config_write(struct k_pci_dev *dev, unsigned offset, unsigned bytes,
                               uint32_t value)
{
    struct access a = {
        .f = function_of(dev), .write = true, .bytes = bytes, .offset = offset, .value = value
    };
    if (!a.f->fn->gone)
        vm_exit_to(a.f->vm, config_exit, &a);
}

/* Where the host has what the guest's address is mapped to. False: nothing is. */
static bool find_register(const struct vm_function *f, uint64_t guest, unsigned *bar,
                          uint64_t *offset)
{
    for (unsigned i = 0; i < K_PCI_BARS && !f->fn->gone; i++)
        if (f->fn->bar_bytes[i] != 0 && guest - f->guest_bar[i] < f->fn->bar_bytes[i]) {
            *bar = i;
            *offset = guest - f->guest_bar[i];
            return true;
        }
    return false;
}

static uint64_t guest_mmio_read(struct k_pci_dev *dev, uint64_t address, unsigned bytes)
{
    struct access a = { .f = function_of(dev), .bytes = bytes };
    if (!find_register(a.f, address, &a.bar, &a.offset))
        return ALL_ONES(bytes);
    if (!in_table_page(a.f, a.bar, a.offset))
        return os_mmio_read(dev, a.f->fn->bar_base[a.bar] + a.offset, bytes);
    vm_exit_to(a.f->vm, table_exit, &a);
    return a.value;
}

static void guest_mmio_write(struct k_pci_dev *dev, uint64_t address, unsigned bytes,
                             uint64_t value)
{
    struct access a = { .f = function_of(dev), .write = true, .bytes = bytes, .value = value };
    if (!find_register(a.f, address, &a.bar, &a.offset))
        return;
    if (in_table_page(a.f, a.bar, a.offset))
        vm_exit_to(a.f->vm, table_exit, &a);
    else
        os_mmio_write(dev, a.f->fn->bar_base[a.bar] + a.offset, bytes, value);
}

/* A guest has no way to ask where the device really lies. */
static uint64_t guest_bus_address(struct k_pci_dev *dev, unsigned bar)
{
    (void)dev;
    (void)bar;
    return 0;
}

static const struct k_pci_ops guest_ops = {
    .config_read = guest_config_read,
    .config_write = guest_config_write,
    .mmio_read = guest_mmio_read,
    .mmio_write = guest_mmio_write,
    .bus_address = guest_bus_address,
};

/* Devices have guest-physical addresses. */
static int guest_map(struct k_device *device, struct kaddr at, size_t bytes,
                     enum k_dma_direction direction, uint64_t *dma)
{
    (void)bytes;
    (void)direction;
    k_compute(device->kernel, k_costs(device->kernel)->dma_map_cycles);
    *dma = at.v;
    return 0;
}

static void guest_unmap(struct k_device *device, uint64_t dma, size_t bytes,
                        enum k_dma_direction direction)
{
    (void)dma;
    (void)bytes;
    (void)direction;
    k_compute(device->kernel, k_costs(device->kernel)->dma_unmap_cycles);
}

static uint64_t whole_pages(size_t bytes)
{
    return (bytes + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
}

static int guest_alloc(struct k_device *device, int node, size_t bytes, struct kaddr *at,
                       uint64_t *dma)
{
    int status = k_pages_get(device->kernel, node, whole_pages(bytes), at);
    *dma = at->v;
    return status;
}

static void guest_free(struct k_device *device, size_t bytes, struct kaddr at, uint64_t dma)
{
    (void)dma;
    k_pages_put(device->kernel, whole_pages(bytes), at);
}

/* Whoever gave the devices to the guest has mapped their registers for each other, where the guest
 * has put them. */
static int guest_map_resource(struct k_device *device, struct k_device *target, unsigned bar,
                              uint64_t offset, uint64_t bytes, enum k_dma_direction direction,
                              uint64_t *dma)
{
    const struct k_pci_dev *pci = K_CONTAINER(target, struct k_pci_dev, device);
    const uint64_t all = bar < K_PCI_BARS ? pci->bar_bytes[bar] : 0;
    (void)direction;
    k_compute(device->kernel, k_costs(device->kernel)->dma_map_cycles);
    if (target == device || bytes == 0 || offset >= all || bytes > all - offset)
        return -EINVAL;
    *dma = pci->bar_base[bar] + offset;
    return 0;
}

static void guest_unmap_resource(struct k_device *device, uint64_t dma, uint64_t bytes,
                                 enum k_dma_direction direction)
{
    (void)bytes;
    guest_unmap(device, dma, 0, direction);
}

static const struct k_dma_ops guest_dma_ops = {
    .map = guest_map,
    .unmap = guest_unmap,
    .alloc = guest_alloc,
    .free = guest_free,
    .map_resource = guest_map_resource,
    .unmap_resource = guest_unmap_resource,
};

/* ---- Firmware -------------------------------------------------------------------------------- */

/* The lowest address in the hole that no other register of the guest has; 0: none. */
static uint64_t place(const struct k_vm *vm, uint64_t bytes, uint64_t base, uint64_t end)
{
    uint64_t at = (base + bytes - 1) & ~(bytes - 1);
    for (bool moved = true; moved;) {
        moved = false;
        for (unsigned s = 0; s < VM_FUNCTIONS_MAX; s++)
            for (unsigned i = 0; vm->function[s] != NULL && i < K_PCI_BARS; i++) {
                const struct k_pci_dev *dev = &vm->function[s]->dev;
                if (dev->bar_bytes[i] == 0 || at >= dev->bar_base[i] + dev->bar_bytes[i] ||
                    dev->bar_base[i] >= at + bytes)
                    continue;
                at = (dev->bar_base[i] + dev->bar_bytes[i] + bytes - 1) & ~(bytes - 1);
                moved = true;
            }
    }
    return at < end && bytes <= end - at ? at : 0;
}

/* Sizes one base address as firmware does, and gives it a place. Returns how many registers it has;
 * 0: there is no room. */
static unsigned place_bar(struct vm_function *f, unsigned i)
{
    const struct os_guest *guest = &f->vm->place;
    const unsigned at = PCI_BAR0 + 4 * i;
    struct k_pci_dev *dev = &f->dev;
    k_config_write(dev, at, 4, UINT32_MAX);
    const uint32_t low = k_config_read(dev, at, 4);
    const bool wide = (low & PCI_BAR_TYPE_64) != 0 && i + 1 < K_PCI_BARS;
    uint64_t mask = UINT64_C(0xffffffff00000000) | (low & ~PCI_BAR_FLAGS_MASK);
    if ((low & ~PCI_BAR_FLAGS_MASK) == 0 && !wide)
        return 1;
    if (wide) {
        k_config_write(dev, at + 4, 4, UINT32_MAX);
        mask = (uint64_t)k_config_read(dev, at + 4, 4) << 32 | (low & ~PCI_BAR_FLAGS_MASK);
    }
    const uint64_t bytes = ~mask + 1;
    if (bytes == 0)
        return wide ? 2 : 1;
    const uint64_t high = HIGH_BASE +
                          ((guest->high_bytes + (1u << 30) - 1) & ~UINT64_C(0x3fffffff));
    const uint64_t base = wide ? place(f->vm, bytes, high, HIGH_END)
                               : place(f->vm, bytes, HOLE_BASE, HOLE_END);
    if (base == 0)
        return 0;
    k_config_write(dev, at, 4, (uint32_t)base);
    if (wide)
        k_config_write(dev, at + 4, 4, (uint32_t)(base >> 32));
    dev->bar_base[i] = base;
    dev->bar_bytes[i] = bytes;
    return wide ? 2 : 1;
}

/* ---- Hot-plug -------------------------------------------------------------------------------- */

struct plug {
    struct vm_function *f;
    int status;
    bool done;
};

static void plug_done(void *arg)
{
    struct plug *plug = arg;
    struct k_vm *vm = plug->f->vm;
    plug->done = true;
    k_wake(vm->host, &vm->wait);
}

static int find_function(struct vm_function *f)
{
    struct k_pci_dev *dev = &f->dev;
    const uint32_t ids = k_config_read(dev, PCI_VENDOR_ID, 4);
    dev->vendor_id = (uint16_t)ids;
    dev->device_id = (uint16_t)(ids >> 16);
    dev->class_code = k_config_read(dev, PCI_CLASS - 1, 4) >> 8;
    if (dev->vendor_id == PCI_NO_DEVICE)
        return -ENODEV;
    for (unsigned n, i = 0; i < K_PCI_BARS; i += n)
        if ((n = place_bar(f, i)) == 0)
            return -ENOSPC;
    k_config_write(dev, PCI_COMMAND, 2, k_config_read(dev, PCI_COMMAND, 2) | PCI_COMMAND_MEMORY);
    return k_pci_add(f->vm->guest, dev);
}

/* Threads of the guest. */
static void plug_body(void *arg)
{
    struct plug *plug = arg;
    plug->status = find_function(plug->f);
    vm_exit_to(plug->f->vm, plug_done, plug);
}

static void unplug_body(void *arg)
{
    struct plug *plug = arg;
    if (plug->f->dev.private_data != NULL)
        k_pci_remove(&plug->f->dev, plug->f->fn->gone);
    vm_exit_to(plug->f->vm, plug_done, plug);
}

/* A notification of the guest, and its answer. */
static int ask_guest(struct vm_function *f, k_thread_fn *body)
{
    struct k_vm *vm = f->vm;
    struct plug plug = { .f = f };
    sim_task_sync(os_self(vm->host)->task);
    k_thread_new(vm->guest, "pciehp", 0, body, &plug);
    while (!plug.done)
        k_wait(vm->host, &vm->wait, UINT64_MAX);
    return plug.status;
}

static void find_msix(struct vm_function *f)
{
    struct k_vm_function *fn = f->fn;
    if ((fn->ops->config_read(fn, PCI_STATUS, 2) & PCI_STATUS_CAP_LIST) == 0)
        return;
    unsigned cap = fn->ops->config_read(fn, PCI_CAP_POINTER, 1) & 0xfc;
    for (unsigned i = 0; cap != 0 && i < 48; i++) {
        const uint32_t header = fn->ops->config_read(fn, cap, 4);
        if ((header & 0xff) == PCI_CAP_ID_MSIX) {
            const uint32_t table = fn->ops->config_read(fn, cap + PCI_MSIX_TABLE, 4);
            const unsigned n = (header >> 16 & PCI_MSIX_CONTROL_SIZE_MASK) + 1;
            f->n_vectors = (uint16_t)SIM_MIN(n, VM_MSIX_MAX);
            f->msix_bar = table & PCI_MSIX_BAR_MASK;
            f->msix_offset = table & ~PCI_MSIX_BAR_MASK;
            f->msix_cap = (uint16_t)cap;
            return;
        }
        cap = header >> 8 & 0xfc;
    }
}

static struct vm_function *function_new(struct k_vm *vm, struct k_vm_function *fn, unsigned slot)
{
    struct vm_function *f = k_zalloc(sizeof *f);
    f->vm = vm;
    f->fn = fn;
    f->slot = slot;
    snprintf(f->name, sizeof f->name, "%.32s.00:%02x.0", vm->config.name, slot + 1);
    f->dev.device = (struct k_device){
        .kernel = vm->guest, .name = f->name, .dma_ops = &guest_dma_ops, .dma_context = f
    };
    f->dev.id = (uint16_t)((slot + 1) << 3);
    f->dev.ops = &guest_ops;
    for (unsigned i = 0; i < VM_MSIX_MAX; i++) {
        f->table[i][3] = PCI_MSIX_ENTRY_MASKED;
        vm_eventfd_init(&f->eventfd[i], vm);
    }
    fn->private_data = f;
    vm->function[slot] = f;
    return f;
}

/* The guest does not have it, or has it no more. */
static void discard(struct vm_function *f)
{
    struct k_vm *vm = f->vm;
    irqs_off(f);
    f->fn->ops->close(f->fn);
    for (unsigned i = 0; i < f->n_vectors; i++)
        while (sim_event_pending(&f->eventfd[i].event)) /* finds out that it is not in use */
            k_sleep(vm->host, SIM_PS_PER_US);
    f->fn->private_data = NULL;
    vm->function[f->slot] = NULL;
    free(f);
}

int vm_add(struct k_vm *vm, struct k_vm_function *fn)
{
    unsigned slot = 0;
    while (slot < VM_FUNCTIONS_MAX && vm->function[slot] != NULL)
        slot++;
    if (slot == VM_FUNCTIONS_MAX)
        return -ENOSPC;
    if (!vm->running)
        return -ENODEV;
    if (fn->private_data != NULL)
        return -EBUSY;
    struct vm_function *f = function_new(vm, fn, slot);
    int status = fn->ops->open(fn, vm);
    if (status != 0) {
        fn->private_data = NULL;
        vm->function[slot] = NULL;
        free(f);
        return status;
    }
    status = fn->ops->reset(fn);
    if (status == 0) {
        find_msix(f);
        status = ask_guest(f, plug_body);
    }
    if (status != 0)
        discard(f);
    return status;
}

void vm_unplug(struct vm_function *f)
{
    ask_guest(f, unplug_body);
    discard(f);
}

void vm_remove(struct k_vm *vm, struct k_vm_function *fn)
{
    struct vm_function *f = fn->private_data;
    if (f != NULL && f->vm == vm)
        vm_unplug(f);
}

struct k_pci_dev *vm_device(struct k_vm *vm, const struct k_vm_function *fn)
{
    struct vm_function *f = fn->private_data;
    return f != NULL && f->vm == vm && f->dev.private_data != NULL ? &f->dev : NULL;
}
