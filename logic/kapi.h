/*
 * What software under study may ask of a kernel, in the kernel's own terms. models/host/ implements
 * it on simulated cores; tests/model/fake_kapi.h is a small fake without any simulator. Nothing in
 * logic/ includes a header of sim/ or models/.
 *
 * Contexts. All code runs on a CPU, in one of three contexts: a thread (may sleep), a soft
 * interrupt (NAPI, timers: may not sleep), a hard interrupt (handlers: may only schedule). An
 * interrupt may come in at every call that charges time (k_compute, k_load, k_store, k_copy ...)
 * and runs to its end before that call returns. Between two such calls nothing else runs on any
 * CPU, so code that charges nothing is atomic. k_bh_disable() keeps soft interrupts out. Another
 * thread of the CPU goes on only in k_syscall, k_yield, k_sleep, k_wait and k_thread_set_cpu.
 *
 * Time is in picoseconds. Errors are negative errno values. Sizes are in bytes.
 */
#ifndef LOGIC_KAPI_H
#define LOGIC_KAPI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kernel; /* the operating system of one host */
struct k_thread;

#define K_PAGE_BYTES 4096u
#define K_LINE_BYTES 64u
#define K_NODE_LOCAL (-1) /* the node of the CPU that asks */
#define K_CPU_ANY    (-1)

/* Units of time, in picoseconds. */
#define K_NS UINT64_C(1000)
#define K_US (1000 * K_NS)
#define K_MS (1000 * K_US)
#define K_S  (1000 * K_MS)

/* The structure of type `type` whose field `field` is at `ptr`. */
#define K_CONTAINER(ptr, type, field) ((type *)(void *)((char *)(ptr)-offsetof(type, field)))

/* An address in the kernel's direct map: real bytes of the host's memory, in real cache lines. */
struct kaddr {
    uint64_t v; /* host-physical; 0 is no address */
};
static inline struct kaddr kaddr_add(struct kaddr a, uint64_t bytes)
{
    return (struct kaddr){ a.v + bytes };
}

/* ---- Time, CPUs, costs ----------------------------------------------------------------------- */

/* What software costs in cycles where it is not simulated instruction by instruction: see
 * logic/kcosts.h. Owned by the kernel. */
struct k_costs;
const struct k_costs *k_costs(const struct kernel *kernel);

uint64_t k_now_ps(struct kernel *kernel);
/* The CPU that this code runs on. */
unsigned k_cpu(struct kernel *kernel);
unsigned k_n_cpus(const struct kernel *kernel);
unsigned k_n_nodes(const struct kernel *kernel);
unsigned k_node_of_cpu(const struct kernel *kernel, unsigned cpu);
/* Charges cycles of computation to the CPU. */
void k_compute(struct kernel *kernel, uint64_t cycles);
/* A fault of the run (a packet that was lost or came out of order where that cannot be): the run
 * ends with this message. */
void k_fault(struct kernel *kernel, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), cold));
/* Once per call site at most in a log of the run; for what the hardware did wrong. */
void k_warn(struct kernel *kernel, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), cold));
/* Memory of the program itself (C structures), zeroed; ends the process when exhausted. */
void *k_zalloc(size_t bytes);
void k_free(void *p);

/* ---- Memory: bytes and cache lines ----------------------------------------------------------- */

/* Loads bytes that the next step needs: time advances to when they are there. */
void k_load(struct kernel *kernel, struct kaddr from, void *to, size_t bytes);
/* Stores bytes; nothing waits for them. */
void k_store(struct kernel *kernel, struct kaddr to, const void *from, size_t bytes);
/* The same for what is kept in C structures beside simulated memory: the lines only. */
void k_touch(struct kernel *kernel, struct kaddr at, size_t bytes);       /* loads, dependent */
void k_touch_write(struct kernel *kernel, struct kaddr at, size_t bytes); /* stores */
/* Asks for lines ahead of their use: nothing waits. */
void k_prefetch(struct kernel *kernel, struct kaddr at, size_t bytes);
/* Copies bulk data between buffers (copy_to_user, copy_from_user, memcpy): line by line through
 * the caches, contents included. */
void k_copy(struct kernel *kernel, struct kaddr to, struct kaddr from, size_t bytes);
/* Bytes without cache lines or time: for set-up only. */
void k_peek(struct kernel *kernel, struct kaddr from, void *to, size_t bytes);
void k_poke(struct kernel *kernel, struct kaddr to, const void *from, size_t bytes);

/* Pages: physically contiguous runs of 2^order pages, from lists per CPU first (last in, first
 * out), so that what was used last is used again while it is in the caches. */
struct k_page {
    struct kaddr addr;
    struct kaddr meta; /* the line of the kernel's own page structure */
    uint32_t refs;     /* freed when the last is put */
    uint16_t node;
    uint8_t order;
    uint8_t pins;        /* k_page_pin() less k_page_unpin(), saturating */
    struct k_page *next; /* private, while free */
};
/* NULL: the node and all others are full. One reference, the caller's. */
struct k_page *k_page_alloc(struct kernel *kernel, int node, unsigned order);
static inline void k_page_get(struct k_page *page)
{
    page->refs++;
}
void k_page_put(struct kernel *kernel, struct k_page *page);
/* Pins user memory for a device (get_user_pages); 0 or -ENOMEM. Charges per page. */
int k_pin(struct kernel *kernel, struct kaddr at, size_t bytes);
void k_unpin(struct kernel *kernel, struct kaddr at, size_t bytes);
/* Memory for good: contiguous, of a node, zero. v is 0 if there is none. */
struct kaddr k_alloc(struct kernel *kernel, int node, size_t bytes, size_t align);

/* Objects of one kind: a C structure of `bytes` (zeroed at the first get only) and `touched_bytes`
 * of simulated memory that stand for it in the caches (0: none). Lists per CPU, last in first
 * out. */
struct k_cache;
struct k_cache *k_cache_new(struct kernel *kernel, const char *name, size_t bytes,
                            size_t touched_bytes);
/* Never NULL; *addr, if not NULL, is its simulated memory. */
void *k_cache_get(struct k_cache *cache, struct kaddr *addr);
void k_cache_put(struct k_cache *cache, void *object);
uint64_t k_cache_live(const struct k_cache *cache);

/* ---- Threads, waiting ------------------------------------------------------------------------ */

typedef void k_thread_fn(void *arg);
/* Starts to run at once (it is put on the CPU's run queue). cpu: where it may run, K_CPU_ANY for
 * the least loaded. The name is copied. Freed by the kernel when it has returned. */
struct k_thread *k_thread_new(struct kernel *kernel, const char *name, int cpu, k_thread_fn *body,
                              void *arg);
struct k_thread *k_thread_self(struct kernel *kernel);
/* sched_setaffinity() to one CPU: it goes on there at its next scheduling point, at once if it is
 * the caller. */
void k_thread_set_cpu(struct k_thread *thread, unsigned cpu);
unsigned k_thread_cpu(const struct k_thread *thread);
/* From a thread. */
void k_sleep(struct kernel *kernel, uint64_t ps);
/* Lets another thread of the CPU run, if one is ready. */
void k_yield(struct kernel *kernel);
/* Charges the entry to and return from a system call; before it, another thread of the CPU may have
 * its turn. */
void k_syscall(struct kernel *kernel);

struct k_wait_queue {
    struct k_waiter *first; /* private */
};
/* Sleeps until woken or until_ps (UINT64_MAX: for ever). Callers loop over their condition, which
 * they check without charging time before they call. False: the time is over. */
bool k_wait(struct kernel *kernel, struct k_wait_queue *queue, uint64_t until_ps);
/* Wakes all that wait; from any context. */
void k_wake(struct kernel *kernel, struct k_wait_queue *queue);
bool k_has_waiters(const struct k_wait_queue *queue);

/* Soft interrupts stay out between these two; they nest. */
void k_bh_disable(struct kernel *kernel);
void k_bh_enable(struct kernel *kernel); /* runs what is pending */

/* ---- Timers, work ---------------------------------------------------------------------------- */

struct k_timer;
typedef void k_timer_fn(struct k_timer *timer); /* in a soft interrupt */
struct k_timer {
    struct kernel *kernel;
    k_timer_fn *fn;
    void *private_data; /* the kernel's; zero before the first k_timer_set */
};
void k_timer_init(struct k_timer *timer, struct kernel *kernel, k_timer_fn *fn);
/* Fires at at_ps on the CPU that called; armed already: moved. */
void k_timer_set(struct k_timer *timer, uint64_t at_ps);
void k_timer_cancel(struct k_timer *timer);
bool k_timer_pending(const struct k_timer *timer);
/* Cancels, and gives back what the kernel keeps for it. */
void k_timer_release(struct k_timer *timer);

struct k_work;
typedef void k_work_fn(struct k_work *work); /* in a worker thread: may sleep */
struct k_work {
    k_work_fn *fn;
    struct k_work *next; /* private, as are the rest */
    bool queued;
};
/* Runs once in the worker thread of the CPU (K_CPU_ANY: of this CPU); does nothing if queued
 * already. From any context. */
void k_work_queue(struct kernel *kernel, struct k_work *work, int cpu);

/* ---- Devices --------------------------------------------------------------------------------- */

enum k_dma_direction { K_DMA_TO_DEVICE = 1, K_DMA_FROM_DEVICE = 2, K_DMA_BOTH = 3 };

struct k_device;
/* How a device's addresses come about; one table per device, so that a borrowed device may have
 * another than a local one. */
struct k_dma_ops {
    /* 0 and *dma, or a negative errno. */
    int (*map)(struct k_device *device, struct kaddr at, size_t bytes,
               enum k_dma_direction direction, uint64_t *dma);
    void (*unmap)(struct k_device *device, uint64_t dma, size_t bytes,
                  enum k_dma_direction direction);
    /* Zeroed memory that both sides may use at any time. 0 or a negative errno. */
    int (*alloc)(struct k_device *device, int node, size_t bytes, struct kaddr *at, uint64_t *dma);
    void (*free)(struct k_device *device, size_t bytes, struct kaddr at, uint64_t dma);
    /* See k_dma_map_resource(). */
    int (*map_resource)(struct k_device *device, struct k_device *target, unsigned bar,
                        uint64_t offset, uint64_t bytes, enum k_dma_direction direction,
                        uint64_t *dma);
    void (*unmap_resource)(struct k_device *device, uint64_t dma, uint64_t bytes,
                           enum k_dma_direction direction);
    /* Allows a local requester to reach the registers of this target, or revokes that; calls are
     * counted. From a thread. 0 or a negative errno. NULL: every local requester reaches them. */
    int (*allow)(struct k_device *target, uint16_t requester_id);
    void (*revoke)(struct k_device *target, uint16_t requester_id);
};
struct k_device {
    struct kernel *kernel;
    const char *name;
    int node; /* its socket's */
    const struct k_dma_ops *dma_ops;
    void *dma_context; /* of the operations */
    void *driver_data;
};
static inline int k_dma_map(struct k_device *device, struct kaddr at, size_t bytes,
                            enum k_dma_direction direction, uint64_t *dma)
{
    return device->dma_ops->map(device, at, bytes, direction, dma);
}
static inline void k_dma_unmap(struct k_device *device, uint64_t dma, size_t bytes,
                               enum k_dma_direction direction)
{
    device->dma_ops->unmap(device, dma, bytes, direction);
}
static inline int k_dma_alloc(struct k_device *device, int node, size_t bytes, struct kaddr *at,
                              uint64_t *dma)
{
    return device->dma_ops->alloc(device, node, bytes, at, dma);
}
static inline void k_dma_free(struct k_device *device, size_t bytes, struct kaddr at, uint64_t dma)
{
    device->dma_ops->free(device, bytes, at, dma);
}
/* Peer to peer: *dma is the address by which `device` reaches `bytes` from `offset` on of a base
 * address register of `target`, the device of another struct k_pci_dev of the same kernel; either
 * may be borrowed. Directions as seen by `device`. From a thread; may sleep. 0; -EINVAL: the target
 * has no such bytes; -ERANGE: `device` does not reach so far; -ENOSPC and others: something that it
 * takes has ended, nothing is left behind. Ends with the target, too: then nothing is reached any
 * more, but the mapping has still to be undone. */
static inline int k_dma_map_resource(struct k_device *device, struct k_device *target, unsigned bar,
                                     uint64_t offset, uint64_t bytes,
                                     enum k_dma_direction direction, uint64_t *dma)
{
    return device->dma_ops->map_resource(device, target, bar, offset, bytes, direction, dma);
}
/* From a thread; may sleep. Exactly what was mapped. */
static inline void k_dma_unmap_resource(struct k_device *device, uint64_t dma, uint64_t bytes,
                                        enum k_dma_direction direction)
{
    device->dma_ops->unmap_resource(device, dma, bytes, direction);
}

/* MMIO: device registers. Reads suspend the CPU for the round trip; all ones if nothing answers. */
struct k_iomem {
    struct k_device *device;
    uint64_t base; /* CPU address */
    uint64_t bytes;
};

#define K_PCI_BARS 6
struct k_pci_driver;
struct k_pci_dev {
    struct k_device device;
    uint16_t id; /* bus 15:8, device 7:3, function 2:0 */
    uint16_t vendor_id, device_id;
    uint32_t class_code;
    uint64_t bar_base[K_PCI_BARS], bar_bytes[K_PCI_BARS];
    const struct k_pci_driver *driver;
    /* Configuration access, so that a borrowed device may have another way. */
    const struct k_pci_ops *ops;
    void *private_data; /* the kernel's */
};
struct k_irq;
typedef void k_irq_fn(void *arg); /* in a hard interrupt */
struct k_pci_ops {
    uint32_t (*config_read)(struct k_pci_dev *dev, unsigned offset, unsigned bytes);
    void (*config_write)(struct k_pci_dev *dev, unsigned offset, unsigned bytes, uint32_t value);
    uint64_t (*mmio_read)(struct k_pci_dev *dev, uint64_t address, unsigned bytes);
    void (*mmio_write)(struct k_pci_dev *dev, uint64_t address, unsigned bytes, uint64_t value);
};

struct k_pci_id {
    uint16_t vendor_id, device_id;
};
struct k_pci_driver {
    const char *name;
    const struct k_pci_id *ids; /* ends with { 0, 0 } */
    /* From a thread: 0, or a negative errno with nothing left behind. */
    int (*probe)(struct k_pci_dev *dev, void *context);
    /* The device is going away; gone: it is there no more (surprise removal), reads give ones. */
    void (*remove)(struct k_pci_dev *dev, bool gone);
    void *context;
};
/* Calls probe() for every function that matches and has no driver; returns how many took one. From
 * a thread. The driver must outlive the kernel. */
int k_pci_register(struct kernel *kernel, const struct k_pci_driver *driver);
/* A device that appears or disappears while the kernel runs. From a thread. */
int k_pci_add(struct kernel *kernel, struct k_pci_dev *dev);
void k_pci_remove(struct k_pci_dev *dev, bool gone);
/* SR-IOV: the function gets n virtual functions (0: those that it has go), which appear or go like
 * other devices, drivers included. From a thread; takes 100 ms until they may be asked. 0, -ENOSYS
 * (it cannot), -ERANGE (not so many), -EBUSY (it has some already). A function that is gone, or is
 * to be removed, has its virtual functions taken away first. */
int k_pci_set_vfs(struct k_pci_dev *dev, unsigned n);

/* Returns the offset of the capability `id` (7:0) in the configuration space of `dev`, 0 if it has
 * none. *header, unless `header` is NULL, gets the capability's first four bytes. */
unsigned k_pci_find_capability(struct k_pci_dev *dev, unsigned id, uint32_t *header);
/* Lets the function answer memory requests and send requests of its own (Bus Master Enable). */
void k_pci_enable(struct k_pci_dev *dev);

static inline uint32_t k_config_read(struct k_pci_dev *dev, unsigned offset, unsigned bytes)
{
    return dev->ops->config_read(dev, offset, bytes);
}
static inline void k_config_write(struct k_pci_dev *dev, unsigned offset, unsigned bytes,
                                  uint32_t value)
{
    dev->ops->config_write(dev, offset, bytes, value);
}
static inline uint32_t k_readl(struct k_pci_dev *dev, unsigned bar, uint64_t offset)
{
    return (uint32_t)dev->ops->mmio_read(dev, dev->bar_base[bar] + offset, 4);
}
static inline uint64_t k_readq(struct k_pci_dev *dev, unsigned bar, uint64_t offset)
{
    return dev->ops->mmio_read(dev, dev->bar_base[bar] + offset, 8);
}
static inline void k_writel(struct k_pci_dev *dev, unsigned bar, uint64_t offset, uint32_t value)
{
    dev->ops->mmio_write(dev, dev->bar_base[bar] + offset, 4, value);
}
static inline void k_writeq(struct k_pci_dev *dev, unsigned bar, uint64_t offset, uint64_t value)
{
    dev->ops->mmio_write(dev, dev->bar_base[bar] + offset, 8, value);
}

/* Message-signalled interrupts: entry `index` of the device's MSI-X table goes to a CPU. From a
 * thread. 0 or a negative errno (-ENOSPC: no such entry, no vector left). */
int k_irq_request(struct k_pci_dev *dev, unsigned index, unsigned cpu, k_irq_fn *handler, void *arg,
                  struct k_irq **irq);
int k_irq_set_cpu(struct k_irq *irq, unsigned cpu);
void k_irq_free(struct k_irq *irq);

/* ---- Addresses that software gives to devices itself
 * ---------------------------------------------- For who does in place of the kernel what k_dma_ops
 * do: device lending, pass-through. Requester IDs are those that an IOMMU sees, whether or not
 * enumeration found a function there.
 */

struct k_iommu_domain;
/* Requests of this requester are translated. False: its addresses are host-physical. */
bool k_iommu_on(const struct kernel *kernel, uint16_t requester_id);
/* An empty address space of the IOMMU that the requester is behind; NULL: it is off, or has no
 * room. Addresses below 2^39 can be mapped. */
struct k_iommu_domain *k_iommu_domain_new(struct kernel *kernel, uint16_t requester_id);
/* Unmaps everything, detaches all. */
void k_iommu_domain_free(struct k_iommu_domain *domain);
/* From now on this requester has the addresses of the domain and no others: the kernel's own
 * mappings for it rest until it is detached. 0, -EBUSY (it is in another domain), -EINVAL (it is
 * behind another IOMMU). */
int k_iommu_attach(struct k_iommu_domain *domain, uint16_t requester_id);
void k_iommu_detach(struct k_iommu_domain *domain, uint16_t requester_id);
/* Whole pages at `address`, memory or registers, appear at iova. 0 or a negative errno with nothing
 * changed (-EEXIST: something is there). From any context; charges what a mapping costs. */
int k_iommu_map(struct k_iommu_domain *domain, uint64_t iova, uint64_t address, uint64_t bytes,
                enum k_dma_direction direction);
/* Exactly what was mapped, or several such pieces in a row. 0 or a negative errno; no request
 * passes any more when it returns. */
int k_iommu_unmap(struct k_iommu_domain *domain, uint64_t iova, uint64_t bytes);

/* The requester ID of the i-th root complex: CPUs and what passes from root port to root port
 * appear as that to devices. False: there are fewer. */
bool k_root_requester(const struct kernel *kernel, unsigned i, uint16_t *requester_id);
/* The i-th range of host-physical memory; false: there are fewer. */
bool k_memory_range(const struct kernel *kernel, unsigned i, uint64_t *base, uint64_t *bytes);
/* Contiguous zeroed pages without an address for any device. 0 or -ENOMEM (then v is 0). */
int k_pages_get(struct kernel *kernel, int node, size_t bytes, struct kaddr *at);
/* Exactly what was got. */
void k_pages_put(struct kernel *kernel, size_t bytes, struct kaddr at);

/* ---- NAPI ------------------------------------------------------------------------------------ */

struct k_napi;
/* Handles at most budget packets; returns how many. Fewer than budget: it called
 * k_napi_complete() and switched its device's interrupt on again. */
typedef int k_napi_poll_fn(struct k_napi *napi, int budget);
struct k_napi {
    struct kernel *kernel;
    k_napi_poll_fn *poll;
    struct k_napi *next; /* private, as is the rest */
    bool scheduled, missed, queued;
};
void k_napi_init(struct k_napi *napi, struct kernel *kernel, k_napi_poll_fn *poll);
/* Polls soon on this CPU, in its soft interrupt (or in its ksoftirqd when that has used up its
 * budget of packets or time); from a thread with soft interrupts on, before it returns. While it is
 * scheduled this only notes that more came in. */
void k_napi_schedule(struct k_napi *napi);
/* True: it is idle now. False: something was scheduled meanwhile, and it will be polled again. */
bool k_napi_complete(struct k_napi *napi);

#endif
