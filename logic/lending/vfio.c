/*
 * What it does: gives a device of this host to a guest. It pins all of the guest's memory and maps
 *   it, and the registers of the guest's other devices, at guest-physical addresses, in as few
 *   IOMMU domains as the devices' places allow; emulates base addresses; handles the device's
 *   interrupts and signals eventfds. A device that a guest had before is reset for the next one.
 *   It posts no interrupts, forwards no legacy ones and resets no buses.
 * Follows: Linux 4.18, drivers/vfio (vfio_iommu_type1.c, pci/vfio_pci_intrs.c); SmartIO, 5.1, 7.3.
 * Costs: pins and mappings when the device is opened, 100 ms for a reset before; a handler for each
 *   interrupt.
 */
#include "logic/lending/vfio.h"

#include <string.h>

#include "hw/pci_regs.h"
#include "logic/lending/bars.h"
#include "logic/lending/lending_internal.h"

#define VECTORS 256u

struct vfio_irq {
    struct k_irq *irq; /* NULL: not requested */
    struct k_eventfd *eventfd;
};

struct vfio_domain {
    struct vfio_domain *next;
    struct k_iommu_domain *domain;
    unsigned n_devices;
};

/* A guest that has devices of this driver. */
struct vfio_guest {
    struct vfio_guest *next;
    struct k_vm *vm;
    struct vfio_domain *domains;
    unsigned n_devices;
    uint64_t pinned_bytes;
};

struct vfio_device {
    struct vfio_device *next;
    struct vfio *vfio;
    struct k_vm_function fn;
    struct lend_device device; /* as function.c takes it */
    struct vfio_guest *guest;  /* NULL: no guest has it */
    struct vfio_domain *domain;
    struct lend_bars bars;
    bool placed; /* its registers are mapped for the guest's other devices */
    uint64_t placed_at[K_PCI_BARS];
    struct vfio_irq irq[VECTORS];
};

struct vfio {
    struct kernel *kernel;
    struct vfio_options options;
    struct k_pci_driver driver;
    struct vfio_device *devices;
    struct vfio_guest *guests;
    struct lend_error error;
    uint64_t peer_bytes;
};

static struct vfio_device *device_of(struct k_vm_function *fn)
{
    return K_CONTAINER(fn, struct vfio_device, fn);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/* Pages of the guest that are adjacent in the host, too. */
struct run {
    uint64_t guest, address, bytes;
};

static int map_run(struct k_iommu_domain *domain, const struct run *run)
{
    return run->bytes == 0 ? 0
                           : k_iommu_map(domain, run->guest, run->address, run->bytes, K_DMA_BOTH);
}

static int map_memory(struct vfio_guest *guest, struct k_iommu_domain *domain)
{
    uint64_t base, bytes, page, n;
    for (unsigned i = 0; k_vm_memory(guest->vm, i, &base, &bytes); i++) {
        struct run run = { .bytes = 0 };
        for (uint64_t at = base; at < base + bytes; at += n) {
            int status = k_vm_pin(guest->vm, at, &page, &n);
            if (status != 0)
                return status;
            k_vm_unpin(guest->vm, at); /* pin() holds another */
            if (run.bytes != 0 && page == run.address + run.bytes) {
                run.bytes += n;
                continue;
            }
            if ((status = map_run(domain, &run)) != 0)
                return status;
            run = (struct run){ at, page, n };
        }
        const int status = map_run(domain, &run);
        if (status != 0)
            return status;
    }
    return 0;
}

static void unpin(struct vfio_guest *guest)
{
    uint64_t base, bytes, page, n;
    for (unsigned i = 0; k_vm_memory(guest->vm, i, &base, &bytes) && guest->pinned_bytes > 0; i++)
        for (uint64_t at = base; at < base + bytes && guest->pinned_bytes > 0; at += n) {
            k_vm_pin(guest->vm, at, &page, &n); /* tells its size */
            k_vm_unpin(guest->vm, at);
            k_vm_unpin(guest->vm, at);
            guest->pinned_bytes -= n;
        }
}

static int pin(struct vfio_guest *guest)
{
    uint64_t base, bytes, page, n;
    for (unsigned i = 0; k_vm_memory(guest->vm, i, &base, &bytes); i++)
        for (uint64_t at = base; at < base + bytes; at += n) {
            const int status = k_vm_pin(guest->vm, at, &page, &n);
            if (status != 0) {
                unpin(guest);
                return status;
            }
            guest->pinned_bytes += n;
        }
    return 0;
}

/* ---- Registers, for other devices ------------------------------------------------------------ */

/* Maps or unmaps one base address in one domain. */
static void peer_map(struct vfio_device *d, unsigned bar, struct k_iommu_domain *domain, bool map)
{
    const struct k_pci_dev *pci = d->device.pci;
    const uint64_t bytes = lend_whole_pages(pci->bar_bytes[bar]), at = d->placed_at[bar];
    if (bytes == 0 || at == 0 || (at | pci->bar_base[bar]) % K_PAGE_BYTES != 0)
        return;
    if (!map) {
        if (k_iommu_unmap(domain, at, bytes) == 0)
            d->vfio->peer_bytes -= bytes;
        return;
    }
    const int status = k_iommu_map(domain, at, pci->bar_base[bar], bytes, K_DMA_BOTH);
    if (status == 0)
        d->vfio->peer_bytes += bytes;
    else
        k_warn(d->vfio->kernel, "%s: other devices of %s do not reach it: error %d", d->fn.name,
               k_vm_name(d->guest->vm), status);
}

/* The guest has enabled, or disabled, the device's memory space. */
static void set_placed(struct vfio_device *d, bool placed)
{
    if (d->placed == placed)
        return;
    d->placed = placed;
    for (unsigned i = 0; i < K_PCI_BARS; i++) {
        if (placed)
            d->placed_at[i] = lend_bars_base(&d->bars, i);
        for (struct vfio_domain *domain = d->guest->domains; domain != NULL; domain = domain->next)
            peer_map(d, i, domain->domain, placed);
    }
}

/* ---- Domains --------------------------------------------------------------------------------- */

static void domain_drop(struct vfio_guest *guest, struct vfio_domain *domain)
{
    K_LIST_REMOVE(guest->domains, domain);
    k_iommu_domain_free(domain->domain);
    k_free(domain);
}

static int domain_new(struct vfio_device *d, struct vfio_guest *guest)
{
    struct vfio *vfio = d->vfio;
    struct k_iommu_domain *made = k_iommu_domain_new(vfio->kernel, d->device.pci->id);
    if (made == NULL)
        return lend_fail(&vfio->error, -ENOMEM, "%s: no IOMMU domain is left", d->fn.name);
    struct vfio_domain *domain = k_zalloc(sizeof *domain);
    *domain = (struct vfio_domain){ .next = guest->domains, .domain = made };
    guest->domains = domain;
    int status = map_memory(guest, made);
    if (status == 0)
        status = k_iommu_attach(made, d->device.pci->id);
    if (status != 0) {
        domain_drop(guest, domain);
        return lend_fail(&vfio->error, status, "%s: the memory of %s could not be mapped",
                         d->fn.name, k_vm_name(guest->vm));
    }
    for (struct vfio_device *other = vfio->devices; other != NULL; other = other->next)
        for (unsigned i = 0; i < K_PCI_BARS; i++)
            if (other->guest == guest && other->placed)
                peer_map(other, i, made, true);
    domain->n_devices = 1;
    d->domain = domain;
    return 0;
}

/* Attaches the device to a domain of the guest, or to a new one if none takes it. */
static int join(struct vfio_device *d, struct vfio_guest *guest)
{
    for (struct vfio_domain *domain = guest->domains; domain != NULL; domain = domain->next)
        if (k_iommu_attach(domain->domain, d->device.pci->id) == 0) {
            domain->n_devices++;
            d->domain = domain;
            return 0;
        }
    return domain_new(d, guest);
}

static void guest_put(struct vfio *vfio, struct vfio_guest *guest)
{
    if (guest->n_devices > 0)
        return;
    unpin(guest);
    K_LIST_REMOVE(vfio->guests, guest);
    k_free(guest);
}

static struct vfio_guest *guest_get(struct vfio *vfio, struct k_vm *vm, int *status)
{
    struct vfio_guest *guest = vfio->guests;
    while (guest != NULL && guest->vm != vm)
        guest = guest->next;
    if (guest != NULL)
        return guest;
    guest = k_zalloc(sizeof *guest);
    *guest = (struct vfio_guest){ .next = vfio->guests, .vm = vm };
    vfio->guests = guest;
    *status = pin(guest);
    if (*status == 0)
        return guest;
    guest_put(vfio, guest);
    lend_fail(&vfio->error, *status, "the memory of %s could not be pinned", k_vm_name(vm));
    return NULL;
}

/* ---- Functions ------------------------------------------------------------------------------- */

static int fn_open(struct k_vm_function *fn, struct k_vm *vm)
{
    struct vfio_device *d = device_of(fn);
    struct vfio *vfio = d->vfio;
    uint32_t registers[K_PCI_BARS];
    int status = 0;
    if (!k_iommu_on(vfio->kernel, d->device.pci->id))
        return lend_fail(&vfio->error, -EOPNOTSUPP,
                         "%s: no IOMMU: its addresses cannot be those of %s", fn->name,
                         k_vm_name(vm));
    struct vfio_guest *guest = guest_get(vfio, vm, &status);
    if (guest == NULL)
        return status;
    status = join(d, guest);
    if (status != 0) {
        guest_put(vfio, guest);
        return status;
    }
    guest->n_devices++;
    d->guest = guest;
    if (d->device.used)
        lend_device_reset_now(&d->device);
    for (unsigned i = 0; i < K_PCI_BARS; i++)
        registers[i] = k_config_read(d->device.pci, PCI_BAR0 + 4 * i, 4);
    lend_bars_init(&d->bars, d->device.pci->bar_bytes, registers);
    return 0;
}

static int fn_reset(struct k_vm_function *fn)
{
    struct vfio_device *d = device_of(fn);
    set_placed(d, false);
    lend_device_quiet(&d->device);
    memset(d->bars.written, 0, sizeof d->bars.written);
    return 0;
}

static void irq_off(struct vfio_device *d, unsigned i)
{
    if (d->irq[i].irq != NULL)
        k_irq_free(d->irq[i].irq);
    d->irq[i] = (struct vfio_irq){ NULL, NULL };
}

static void fn_close(struct k_vm_function *fn)
{
    struct vfio_device *d = device_of(fn);
    struct vfio_guest *guest = d->guest;
    set_placed(d, false);
    for (unsigned i = 0; i < VECTORS; i++)
        irq_off(d, i);
    lend_device_quiet(&d->device);
    d->device.used = true;
    k_iommu_detach(d->domain->domain, d->device.pci->id);
    if (--d->domain->n_devices == 0) {
        for (struct vfio_device *other = d->vfio->devices; other != NULL; other = other->next)
            for (unsigned i = 0; i < K_PCI_BARS; i++)
                if (other->guest == guest && other->placed)
                    peer_map(other, i, d->domain->domain, false);
        domain_drop(guest, d->domain);
    }
    d->domain = NULL;
    d->guest = NULL;
    guest->n_devices--;
    guest_put(d->vfio, guest);
}

static uint32_t fn_config_read(struct k_vm_function *fn, unsigned offset, unsigned bytes)
{
    struct vfio_device *d = device_of(fn);
    if (lend_bars_has(offset))
        return lend_bars_read(&d->bars, offset, bytes);
    uint32_t value = k_config_read(d->device.pci, offset, bytes);
    if ((offset & ~3u) == PCI_INTERRUPT) /* no wire: pin 0 */
        value &= 0xffff00ffu >> 8 * (offset & 3);
    return value;
}

static void fn_config_write(struct k_vm_function *fn, unsigned offset, unsigned bytes,
                            uint32_t value)
{
    struct vfio_device *d = device_of(fn);
    if (lend_bars_has(offset)) {
        lend_bars_write(&d->bars, offset, bytes, value);
        return;
    }
    if (!lend_device_filter(&d->device, offset, bytes, &value))
        k_config_write(d->device.pci, offset, bytes, value);
    if (offset == PCI_COMMAND)
        set_placed(d, (value & PCI_COMMAND_MEMORY) != 0);
}

/* Hard interrupt. */
static void raised(void *arg)
{
    const struct vfio_irq *irq = arg;
    if (irq->eventfd != NULL)
        k_eventfd_signal(irq->eventfd);
}

static int fn_set_irq(struct k_vm_function *fn, unsigned index, struct k_eventfd *eventfd)
{
    struct vfio_device *d = device_of(fn);
    if (index >= VECTORS)
        return -ENOSPC;
    irq_off(d, index);
    if (eventfd == NULL)
        return 0;
    d->irq[index].eventfd = eventfd;
    return k_irq_request(d->device.pci, index, d->vfio->options.irq_cpu, raised, &d->irq[index],
                         &d->irq[index].irq);
}

static const struct k_vm_function_ops ops = {
    .open = fn_open,
    .close = fn_close,
    .reset = fn_reset,
    .config_read = fn_config_read,
    .config_write = fn_config_write,
    .set_irq = fn_set_irq,
};

/* ---- The driver ------------------------------------------------------------------------------ */

static int probe(struct k_pci_dev *pci, void *context)
{
    struct vfio *vfio = context;
    if (pci->ops == &lend_shadow_ops || /* a borrowed device; mdev.h passes it through */
        (vfio->options.want != NULL && !vfio->options.want(pci)))
        return -ENODEV;
    struct vfio_device *d = k_zalloc(sizeof *d);
    *d = (struct vfio_device){ .next = vfio->devices, .vfio = vfio };
    lend_device_init(&d->device, pci);
    d->fn = (struct k_vm_function){ .ops = &ops,
                                    .name = pci->device.name,
                                    .kernel = vfio->kernel,
                                    .vendor_id = pci->vendor_id,
                                    .device_id = pci->device_id,
                                    .class_code = pci->class_code };
    memcpy(d->fn.bar_base, pci->bar_base, sizeof d->fn.bar_base);
    memcpy(d->fn.bar_bytes, pci->bar_bytes, sizeof d->fn.bar_bytes);
    vfio->devices = d;
    pci->device.driver_data = d;
    return 0;
}

static void drop(struct vfio *vfio, struct vfio_device *d)
{
    K_LIST_REMOVE(vfio->devices, d);
    k_free(d);
}

static void removed(struct k_pci_dev *pci, bool gone)
{
    struct vfio_device *d = pci->device.driver_data;
    if (d->guest != NULL) {
        k_fault(pci->device.kernel, "%s goes while %s has it", d->fn.name, k_vm_name(d->guest->vm));
        return;
    }
    (void)gone;
    drop(d->vfio, d);
}

struct vfio *vfio_new(struct kernel *kernel, const struct vfio_options *options)
{
    struct vfio *vfio = k_zalloc(sizeof *vfio);
    vfio->kernel = kernel;
    vfio->options = *options;
    vfio->driver = (struct k_pci_driver){
        .name = "vfio", .ids = options->ids, .probe = probe, .remove = removed, .context = vfio
    };
    return vfio;
}

const struct k_pci_driver *vfio_driver(const struct vfio *vfio)
{
    return &vfio->driver;
}

struct k_vm_function *vfio_function(struct vfio *vfio, const struct k_pci_dev *dev)
{
    for (struct vfio_device *d = vfio->devices; d != NULL; d = d->next)
        if (d->device.pci == dev)
            return &d->fn;
    return NULL;
}

const struct lend_error *vfio_error(const struct vfio *vfio)
{
    return &vfio->error;
}

void vfio_free(struct vfio *vfio)
{
    while (vfio->devices != NULL)
        drop(vfio, vfio->devices);
    k_free(vfio);
}

struct vfio_usage vfio_usage(const struct vfio *vfio)
{
    struct vfio_usage usage = { .peer_bytes = vfio->peer_bytes };
    for (const struct vfio_guest *guest = vfio->guests; guest != NULL; guest = guest->next) {
        usage.guests++;
        usage.pinned_bytes += guest->pinned_bytes;
        for (const struct vfio_domain *d = guest->domains; d != NULL; d = d->next)
            usage.domains++;
    }
    return usage;
}
