/*
 * PCI functions, their addresses for DMA and their interrupts, for models/os/ only.
 *
 * Invariants:
 *   - A function that the kernel knows has a slot, which is its private_data; a function with a
 *     driver is not offered to another.
 *   - An IOVA below those that next_low and next_high say is in use or in the stack of its size.
 */
#ifndef MODELS_OS_OS_PCI_H
#define MODELS_OS_OS_PCI_H

#include "models/os/os_internal.h"

struct os_pci;

#define OS_IOVA_LOW       UINT64_C(0x00100000)
#define OS_IOVA_LOW_END   UINT64_C(0xf0000000) /* registers of devices and interrupts */
#define OS_IOVA_HIGH      (UINT64_C(1) << 32)
#define OS_IOVA_HIGH_END  (UINT64_C(1) << 39) /* what three levels of tables reach */
#define OS_IOVA_ORDERS    19u                 /* 4 KiB .. 1 GiB */
#define OS_PCI_NAME_BYTES 48u

/* Free IOVAs of one size. */
struct os_iova_stack {
    uint64_t *iova;
    size_t n, capacity;
};

/* DMA of a function of this host. */
struct os_dma {
    uint16_t requester_id;
    struct iommu_domain *domain;  /* NULL: no IOMMU, or nothing mapped yet */
    uint64_t next_low, next_high; /* above all IOVAs ever used below 4 GiB, and beyond */
    struct os_iova_stack free[OS_IOVA_ORDERS];
    uint64_t live_maps, live_bytes; /* of k_dma_map(); of k_dma_alloc() */
};
extern const struct k_dma_ops os_dma_ops, os_dma_iommu_ops;
void os_dma_release(struct os_dma *dma);
/* Unmaps and invalidates by the kernel's policy; the IOVA is free when it is invalidated. 0 or a
 * negative errno. */
int os_iova_unmap(struct kernel *kernel, struct os_dma *dma, uint64_t iova, uint64_t n_pages);
void os_iova_give(struct os_dma *dma, unsigned order, uint64_t iova);
static inline unsigned os_iova_order(uint64_t n_pages)
{
    return n_pages <= 1 ? 0 : 64 - (unsigned)__builtin_clzll(n_pages - 1);
}
/* os_lazy.c: IOVAs of this device are not given back to it any more. */
void os_lazy_forget(struct kernel *kernel, const struct os_dma *dma);
void os_lazy_free(struct kernel *kernel);
/* Base addresses of a device that another one reaches. */
struct os_resource {
    struct os_resource *next;
    struct k_device *device;
    struct k_device *target; /* NULL: it has gone */
    uint64_t dma, bytes;
};
/* The device goes: mappings of its registers end, and its own mappings are forgotten. */
void os_resources_end(struct k_device *device);
void os_resources_free(struct os_pci *pci);
/* The largest page of the tables, of those that the kernel uses, that addresses and size are
 * multiples of. */
uint64_t os_iommu_page_bytes(const struct kernel *kernel, uint64_t iova, uint64_t address,
                             uint64_t bytes);
/* IOMMU_READ, IOMMU_WRITE. */
unsigned os_permissions_of(enum k_dma_direction direction);

/* Where a message goes. */
struct os_message {
    unsigned cpu;
    uint8_t cpus;   /* any of these instead, as the hub chooses; 0: cpu it is */
    uint8_t vector; /* 0: none */
    int irte;       /* of the IOMMU; -1: none */
    uint64_t address;
    uint32_t data;
};

struct k_irq {
    struct os_slot *slot;
    unsigned index;
    k_irq_fn *handler;
    void *arg;
    struct os_message now, before; /* before: what was sent there may still be pending */
    uint64_t moved_ps;             /* since when it is `now` */
    struct k_irq *next;
};

struct os_slot {
    struct k_pci_dev *dev;
    struct os_slot *next;
    struct k_irq *irqs;
    bool msix_known;
    bool gone;         /* surprise removal: nothing answers any more */
    uint16_t msix_cap; /* 0: none */
    uint16_t msi_cap;  /* of a device without MSI-X; 0: none */
    uint16_t msix_vectors;
    uint8_t msix_bar;
    uint32_t msix_offset;
};

/* A function of this host. */
struct os_function {
    struct os_function *next_vf; /* of the same physical function */
    struct os_function *vfs;     /* of a physical function, by number */
    bool setting_vfs;            /* a call of k_pci_set_vfs() has not returned */
    struct k_pci_dev dev;
    struct os_dma dma;
    char name[OS_PCI_NAME_BYTES];
};

struct os_pci {
    struct os_slot *slots; /* in the order in which they were found or added */
    const struct k_pci_driver **drivers;
    unsigned n_drivers;
    struct os_function *functions;
    unsigned n_functions;
    struct k_iommu_domain *domains; /* that software has made */
    struct os_resource *resources;
    struct os_lazy *lazy; /* a CPU each; NULL: nothing was put off yet */
};

void os_pci_new(struct kernel *kernel);
void os_pci_free(struct kernel *kernel);
/* Registers at a host-physical address, by the CPU that runs now; dev says which host. */
uint64_t os_mmio_read(struct k_pci_dev *dev, uint64_t address, unsigned bytes);
void os_mmio_write(struct k_pci_dev *dev, uint64_t address, unsigned bytes, uint64_t value);
/* The driver of the IOMMU that a requester ID is behind; NULL: none, or it is off. */
struct iommu_driver *os_iommu_of(struct kernel *kernel, uint16_t requester_id);
/* The CPU that runs now stores what iommu_map() or iommu_unmap() has just written. */
void os_iommu_store(struct kernel *kernel, const struct iommu_driver *driver);
/* And what it does about the last n commands in the queue of invalidations: writes its tail, polls
 * until they are done. */
void os_iommu_wait(struct kernel *kernel, struct iommu_driver *driver, uint64_t n);
void os_irqs_free(struct os_slot *slot);
void os_function_init(struct kernel *kernel, struct os_function *function,
                      const struct pcie_found *found);
/* Of a kernel that ends. */
void os_vfs_free(struct os_function *pf);
/* os_iommu.c: forgets the domains that are left. */
void os_domains_free(struct os_pci *pci);
#endif
