/*
 * The kernel interface of the software under study. models/os/ implements it on simulated cores;
 * tests/support/fake/fake_kapi.h is a small fake without a simulator. Nothing in logic/ includes a
 * header of sim/ or models/.
 *
 * Contexts. All code runs on a CPU, in one of three contexts:
 *   - a thread: may sleep;
 *   - a soft interrupt (NAPI, timers): may not sleep;
 *   - a hard interrupt (handlers): may only schedule work of the other two.
 * A comment names the context where a function needs a certain one. An interrupt may arrive in any
 * call that charges time (k_compute, k_load, k_store, k_copy ...); it runs to its end before that
 * call returns. Between two such calls nothing else runs on any CPU, so code that charges no time
 * is atomic. k_bh_disable() keeps soft interrupts out. The CPU switches to another thread only in
 * k_syscall, k_yield, k_sleep, k_wait and k_thread_set_cpu.
 *
 * Time is in picoseconds, sizes are in bytes, errors are negative errno values.
 */
#ifndef LOGIC_KAPI_H
#define LOGIC_KAPI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hw/machine.h"
#include "logic/ktext.h"

struct kernel; /* the operating system of one host */
struct k_thread;

#define K_PAGE_BYTES 4096u
#define K_LINE_BYTES 64u
#define K_NODE_LOCAL (-1) /* the node of the calling CPU */
#define K_CPU_ANY    (-1)

/* Units of time, in picoseconds. */
#define K_NS UINT64_C(1000)
#define K_US (1000 * K_NS)
#define K_MS (1000 * K_US)
#define K_S  (1000 * K_MS)

/* The structure of type `type` that contains `ptr` as its field `field`. */
#define K_CONTAINER(ptr, type, field) ((type *)(void *)((char *)(ptr)-offsetof(type, field)))

/* Removes `item`, which is in it, from the list that begins at `head` and is linked by `next`. */
#define K_LIST_REMOVE(head, item)           \
    do {                                    \
        __typeof__(item) *k_link = &(head); \
        while (*k_link != (item))           \
            k_link = &(*k_link)->next;      \
        *k_link = (item)->next;             \
    } while (0)

/* An address in the kernel's direct map: bytes of the host's simulated memory, in its cache
 * lines. */
struct kaddr {
    uint64_t v; /* host-physical address; 0: none */
};
static inline struct kaddr kaddr_add(struct kaddr a, uint64_t bytes)
{
    return (struct kaddr){ a.v + bytes };
}

/* ---- Time, CPUs, costs ----------------------------------------------------------------------- */

/* The cycles that software charges for its computation: see logic/kcosts.h. The kernel owns
 * them. */
struct k_costs;
const struct k_costs *k_costs(const struct kernel *kernel);

/* The current time of the calling CPU. */
uint64_t k_now_ps(struct kernel *kernel);
/* The calling CPU. */
unsigned k_cpu(struct kernel *kernel);
unsigned k_n_cpus(const struct kernel *kernel);
unsigned k_n_nodes(const struct kernel *kernel);
unsigned k_node_of_cpu(const struct kernel *kernel, unsigned cpu);
/* Charges `cycles` of computation to the calling CPU. */
void k_compute(struct kernel *kernel, uint64_t cycles);
/* The same of a pass through a piece of software, whose instructions are fetched first: nothing
 * more where the cores have no instruction cache. `cycles` are those of a pass that finds all of
 * them there. */
void k_run(struct kernel *kernel, enum k_text piece, uint64_t cycles);
/* Ends the run with this message: something happened that must not, such as a packet that was lost
 * or reordered where neither can occur. */
void k_fault(struct kernel *kernel, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), cold));
/* Logs a misbehaviour of the hardware, at most once per call site and run. */
void k_warn(struct kernel *kernel, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), cold));
/* Notes a step of software for a run that is traced (nudma run --trace), with a number that tells
 * which of several such things it is about. `step` is a literal. Charges nothing. */
void k_trace(struct kernel *kernel, const char *step, uint64_t number);
/* Counts what the calling thread's memory accesses come to in caches under `account` from now on,
 * and returns the account before; a thread begins with 0. Charges nothing. Accounts below K_USER
 * are the kernel's, the others those of user space; what their numbers stand for is the software's
 * choice. Interrupts count under 0, and then the thread under its own again. Fetches of
 * instructions (k_run()) count under the last of the kernel's or of user space, wherever they
 * are. */
#define K_USER              16u
#define K_ACCOUNTS          32u
#define K_ACCOUNT_TEXT      (K_USER - 1)
#define K_ACCOUNT_USER_TEXT (K_ACCOUNTS - 1)
unsigned k_account(struct kernel *kernel, unsigned account);
/* Allocates zeroed memory for C structures; never returns NULL: the process ends if there is none.
 * Free it with k_free(). It has no address in simulated memory. */
void *k_zalloc(size_t bytes);
void k_free(void *p);

/* ---- Memory: bytes and cache lines ----------------------------------------------------------- */

/* Loads bytes and waits for them: time advances until they have arrived. */
void k_load(struct kernel *kernel, struct kaddr from, void *to, size_t bytes);
/* Stores bytes; the CPU does not wait. */
void k_store(struct kernel *kernel, struct kaddr to, const void *from, size_t bytes);
/* Load and store the cache lines only, for data that C structures hold beside simulated memory. */
void k_touch(struct kernel *kernel, struct kaddr at, size_t bytes);       /* waits like k_load() */
void k_touch_write(struct kernel *kernel, struct kaddr at, size_t bytes); /* like k_store() */
/* A locked operation on 8 bytes (a lock, a count of references): waits for the stores before, the
 * last register write included, and for the line. */
void k_atomic(struct kernel *kernel, struct kaddr at);
/* Waits for the stores before (sfence): of the last register write until the root port has it.
 * Loads do not. */
void k_fence(struct kernel *kernel);
/* Requests cache lines ahead of their use; the CPU does not wait. */
void k_prefetch(struct kernel *kernel, struct kaddr at, size_t bytes);
/* Copies bulk data between buffers (copy_to_user, copy_from_user, memcpy), line by line through the
 * caches. */
void k_copy(struct kernel *kernel, struct kaddr to, struct kaddr from, size_t bytes);
/* The same with non-temporal stores and a fence at the end: whole lines of the destination go past
 * the caches to memory, without being read first, and are in no cache afterwards; a line covered in
 * part, at either end or at a page boundary of the source, is stored as k_copy() does. Returns when
 * memory has accepted the stores. */
void k_copy_nt(struct kernel *kernel, struct kaddr to, struct kaddr from, size_t bytes);
/* Read and write bytes without cache lines or time: for set-up. At run time k_peek() is sight that
 * no CPU has; docs/architecture.md ("Free sight") lists who may use it, and why. */
void k_peek(struct kernel *kernel, struct kaddr from, void *to, size_t bytes);
void k_poke(struct kernel *kernel, struct kaddr to, const void *from, size_t bytes);

/* Up to 64 bytes within a line, and what they were. */
struct k_spin_at {
    struct kaddr at;
    const void *seen;
    size_t bytes;
};
#define K_SPIN_MAX 4u
/* Looks at n such places (1 to K_SPIN_MAX) again and again, every period_ps, as a thread does that
 * polls what a device or another CPU writes; returns at the look that finds one of them to differ
 * from `seen`, or when until_ps has come. Like a loop of k_load() in its effect, but the simulation
 * need not go through it look by look. Other threads of the CPU come in at most a microsecond late.
 * From a thread. */
void k_spin_any(struct kernel *kernel, const struct k_spin_at *at, unsigned n, uint64_t period_ps,
                uint64_t until_ps);
static inline void k_spin(struct kernel *kernel, struct kaddr at, const void *seen, size_t bytes,
                          uint64_t period_ps, uint64_t until_ps)
{
    const struct k_spin_at one = { at, seen, bytes };
    k_spin_any(kernel, &one, 1, period_ps, until_ps);
}

/* 2^order physically contiguous pages. They come from lists per CPU first (last in, first out), so
 * that recently used pages are used again while they are in the caches. */
struct k_page {
    struct kaddr addr;
    struct kaddr meta; /* the cache line of the kernel's page structure */
    uint32_t refs;     /* freed when it reaches 0 */
    uint16_t node;
    uint8_t order;
    struct k_page *next; /* private, while free */
};
/* Allocates pages on `node`, or on another node if it is full. Returns them with one reference,
 * which the caller owns; NULL: all nodes are full. */
struct k_page *k_page_alloc(struct kernel *kernel, int node, unsigned order);
static inline void k_page_get(struct k_page *page)
{
    page->refs++;
}
/* Drops a reference; the last one frees the pages. */
void k_page_put(struct kernel *kernel, struct k_page *page);
/* Pins user memory for a device (get_user_pages), charging per page; returns 0 or -ENOMEM. Each
 * page of the range needs one k_unpin(), of all of them or of parts. */
int k_pin(struct kernel *kernel, struct kaddr at, size_t bytes);
void k_unpin(struct kernel *kernel, struct kaddr at, size_t bytes);
/* The line of the kernel's structure of the page that holds an address. */
struct kaddr k_page_line(struct kernel *kernel, struct kaddr at);
/* Allocates zeroed, contiguous memory on `node`, aligned to `align`. It is never freed. v is 0 if
 * there is none. */
struct kaddr k_alloc(struct kernel *kernel, int node, size_t bytes, size_t align);

/* A cache of objects of one kind (kmem_cache): each is a C structure of `bytes`, zeroed at its
 * first get only, and `touched_bytes` of simulated memory that represent it in the caches (0:
 * none). Free objects are in lists per CPU, last in, first out. */
struct k_cache;
struct k_cache *k_cache_new(struct kernel *kernel, const char *name, size_t bytes,
                            size_t touched_bytes);
/* Returns an object, never NULL. *addr, unless `addr` is NULL, gets its simulated memory. */
void *k_cache_get(struct k_cache *cache, struct kaddr *addr);
void k_cache_put(struct k_cache *cache, void *object);
/* Objects that were got and not put. */
uint64_t k_cache_live(const struct k_cache *cache);

/* ---- Threads, waiting ------------------------------------------------------------------------ */

typedef void k_thread_fn(void *arg);
/* Creates a thread and puts it on the run queue of `cpu` (K_CPU_ANY: of the least loaded one). The
 * name is copied. The kernel frees the thread when `body` has returned. */
struct k_thread *k_thread_new(struct kernel *kernel, const char *name, int cpu, k_thread_fn *body,
                              void *arg);
/* The calling thread. */
struct k_thread *k_thread_self(struct kernel *kernel);
/* Moves the thread to `cpu` (sched_setaffinity() with one CPU): at its next scheduling point, or at
 * once if it is the caller. */
void k_thread_set_cpu(struct k_thread *thread, unsigned cpu);
unsigned k_thread_cpu(const struct k_thread *thread);
/* Lets the scheduler choose among the CPUs of the thread's socket whenever somebody wakes it by
 * k_wake(): its own one if that is idle, else the next that is (Linux: select_idle_sibling()), else
 * its own one. Other threads stay on their CPU, as if they had an affinity of one. */
void k_thread_float(struct k_thread *thread);
/* Sleeps for `ps`. From a thread. */
void k_sleep(struct kernel *kernel, uint64_t ps);
/* Lets another thread of the CPU run if one is ready. From a thread. */
void k_yield(struct kernel *kernel);
/* Charges the entry to and return from a system call. Another ready thread of the CPU may run
 * first. From a thread. */
void k_syscall(struct kernel *kernel);

struct k_wait_queue {
    struct k_waiter *first; /* private */
};
/* Sleeps until woken, or until `until_ps` (UINT64_MAX: no limit); returns false if that has passed.
 * Callers loop: they check their condition, without charging time, before each call. From a
 * thread. k_wait() names the queue and the caller, for the message if nothing progresses any more;
 * the texts are literals. */
bool k_wait_named(struct kernel *kernel, struct k_wait_queue *queue, uint64_t until_ps,
                  const char *what, const char *function);
#define k_wait(kernel, queue, until_ps) k_wait_named(kernel, queue, until_ps, #queue, __func__)
/* Wakes all waiters. From any context. */
void k_wake(struct kernel *kernel, struct k_wait_queue *queue);
bool k_has_waiters(const struct k_wait_queue *queue);

/* Keep soft interrupts off this CPU; calls nest. The outermost k_bh_enable() runs pending ones. */
void k_bh_disable(struct kernel *kernel);
void k_bh_enable(struct kernel *kernel);

/* ---- Timers, work ---------------------------------------------------------------------------- */

struct k_timer;
typedef void k_timer_fn(struct k_timer *timer); /* in a soft interrupt */
struct k_timer {
    struct kernel *kernel;
    k_timer_fn *fn;
    void *private_data; /* the kernel's; NULL before the first k_timer_set() */
};
void k_timer_init(struct k_timer *timer, struct kernel *kernel, k_timer_fn *fn);
/* Arms the timer, or moves it if it is armed: fn runs at `at_ps` on the calling CPU. */
void k_timer_set(struct k_timer *timer, uint64_t at_ps);
/* The same for a timer that looks, seldom, whether something hangs: it is due after all else of its
 * time, and a run that ends before goes as it does without it. */
void k_timer_set_watchdog(struct k_timer *timer, uint64_t at_ps);
/* Disarms the timer; does nothing if it is not armed. */
void k_timer_cancel(struct k_timer *timer);
/* The timer is armed. */
bool k_timer_pending(const struct k_timer *timer);
/* Cancels the timer and frees what the kernel allocated for it. */
void k_timer_release(struct k_timer *timer);

struct k_work;
typedef void k_work_fn(struct k_work *work); /* in a worker thread: may sleep */
struct k_work {
    k_work_fn *fn;
    struct k_work *next; /* private, as are the rest */
    bool queued;
};
/* Queues work for one run in the worker thread of `cpu` (K_CPU_ANY: of the calling CPU); does
 * nothing if it is queued already. From any context. */
void k_work_queue(struct kernel *kernel, struct k_work *work, int cpu);

/* ---- Devices --------------------------------------------------------------------------------- */

enum k_dma_direction { K_DMA_TO_DEVICE = 1, K_DMA_FROM_DEVICE = 2, K_DMA_BOTH = 3 };

struct k_device;
/* How the kernel maps memory for a device. Each device has its table, so that a borrowed device may
 * have another than a local one. */
struct k_dma_ops {
    /* See k_dma_map() and the functions that follow it. */
    int (*map)(struct k_device *device, struct kaddr at, size_t bytes,
               enum k_dma_direction direction, uint64_t *dma);
    void (*unmap)(struct k_device *device, uint64_t dma, size_t bytes,
                  enum k_dma_direction direction);
    int (*alloc)(struct k_device *device, int node, size_t bytes, struct kaddr *at, uint64_t *dma);
    void (*free)(struct k_device *device, size_t bytes, struct kaddr at, uint64_t dma);
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
    int node;          /* NUMA node of its socket */
    uint64_t dma_mask; /* k_dma_set_mask(); 0: not set */
    const struct k_dma_ops *dma_ops;
    void *dma_context; /* private to dma_ops */
    void *driver_data;
};
/* Sets how many bits of address the device can form. Its driver calls it before it asks for memory;
 * a device of which nobody has said so has 32 (Linux: dma_set_mask_and_coherent()). Addresses for a
 * borrowed device are chosen by its lender, who has to know its bits (struct lend_options). */
static inline void k_dma_set_mask(struct k_device *device, unsigned bits)
{
    device->dma_mask = bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
}
/* The highest address that the device can form. */
static inline uint64_t k_dma_mask(const struct k_device *device)
{
    return device->dma_mask != 0 ? device->dma_mask : UINT32_MAX;
}
/* Maps memory for DMA of the device. Returns 0 and the address for the device in *dma, or a
 * negative errno (-EIO: it cannot form such an address and there is no IOMMU; -ENOSPC: the IOMMU
 * has no address left that it can form). */
static inline int k_dma_map(struct k_device *device, struct kaddr at, size_t bytes,
                            enum k_dma_direction direction, uint64_t *dma)
{
    return device->dma_ops->map(device, at, bytes, direction, dma);
}
/* Undoes one k_dma_map() of the same range. The device must not access it any more. */
static inline void k_dma_unmap(struct k_device *device, uint64_t dma, size_t bytes,
                               enum k_dma_direction direction)
{
    device->dma_ops->unmap(device, dma, bytes, direction);
}
/* Allocates zeroed memory on `node` that device and CPUs may access at any time. Returns 0 and its
 * addresses, or a negative errno. */
static inline int k_dma_alloc(struct k_device *device, int node, size_t bytes, struct kaddr *at,
                              uint64_t *dma)
{
    return device->dma_ops->alloc(device, node, bytes, at, dma);
}
static inline void k_dma_free(struct k_device *device, size_t bytes, struct kaddr at, uint64_t dma)
{
    device->dma_ops->free(device, bytes, at, dma);
}
/* Maps registers or memory of another device for peer-to-peer DMA. Returns 0 and in *dma the
 * address by which `device` reaches `bytes` at `offset` of base address register `bar` of `target`.
 * Both belong to a struct k_pci_dev of the same kernel; either may be borrowed. `direction` is that
 * of `device`. Errors leave nothing behind: -EINVAL: the target has no such bytes; -ERANGE:
 * `device` cannot form such an address; -ENOSPC and others: a resource is exhausted. If the target
 * goes away, the mapping reaches nothing any more, but must still be undone. From a thread; may
 * sleep. */
static inline int k_dma_map_resource(struct k_device *device, struct k_device *target, unsigned bar,
                                     uint64_t offset, uint64_t bytes,
                                     enum k_dma_direction direction, uint64_t *dma)
{
    return device->dma_ops->map_resource(device, target, bar, offset, bytes, direction, dma);
}
/* Undoes one k_dma_map_resource() of the same range. From a thread; may sleep. */
static inline void k_dma_unmap_resource(struct k_device *device, uint64_t dma, uint64_t bytes,
                                        enum k_dma_direction direction)
{
    device->dma_ops->unmap_resource(device, dma, bytes, direction);
}

#define K_PCI_BARS 6
struct k_pci_driver;
struct k_pci_dev {
    struct k_device device;
    uint16_t id; /* bus 15:8, device 7:3, function 2:0 */
    uint16_t vendor_id, device_id;
    uint32_t class_code;
    uint64_t bar_base[K_PCI_BARS], bar_bytes[K_PCI_BARS];
    /* Of a virtual function (SR-IOV) of this kernel: its physical one, its number from 0 on. NULL:
     * it is none, or a borrowed device, whose lender has the physical one. */
    struct k_pci_dev *pf;
    uint16_t vf_number;
    const struct k_pci_driver *driver;
    const struct k_pci_ops *ops; /* its own, as a borrowed device is accessed in another way */
    void *private_data;          /* the kernel's */
    bool configuring;            /* k_pci_configure_vfs(), or k_pci_remove(): others wait */
    struct k_wait_queue configured;
};
struct k_irq;
typedef void k_irq_fn(void *arg); /* in a hard interrupt */
/* How the kernel accesses configuration space and registers of a device. See k_config_read() and
 * the functions that follow it. */
struct k_pci_ops {
    uint32_t (*config_read)(struct k_pci_dev *dev, unsigned offset, unsigned bytes);
    void (*config_write)(struct k_pci_dev *dev, unsigned offset, unsigned bytes, uint32_t value);
    uint64_t (*mmio_read)(struct k_pci_dev *dev, uint64_t address, unsigned bytes);
    void (*mmio_write)(struct k_pci_dev *dev, uint64_t address, unsigned bytes, uint64_t value);
    /* Whole lines, write-combining. NULL: the kernel has no such mapping; mmio_write() it is. */
    void (*mmio_write_lines)(struct k_pci_dev *dev, uint64_t address, const void *from,
                             size_t bytes);
    void (*mmio_drain)(struct k_pci_dev *dev); /* NULL as well */
    /* A line that the device takes or refuses. NULL: the kernel cannot send such a write. */
    bool (*mmio_enqueue)(struct k_pci_dev *dev, uint64_t address, const void *line);
    uint64_t (*bus_address)(struct k_pci_dev *dev, unsigned bar); /* NULL: it is bar_base */
};

struct k_pci_id {
    uint16_t vendor_id, device_id;
};
struct k_pci_driver {
    const char *name;
    const struct k_pci_id *ids; /* ends with { 0, 0 } */
    /* Takes the device. Returns 0, or a negative errno and leaves nothing behind (-ENODEV: it is
     * none of this driver's after all). From a thread. */
    int (*probe)(struct k_pci_dev *dev, void *context);
    /* Gives the device back. gone: surprise removal; its registers read as all ones. */
    void (*remove)(struct k_pci_dev *dev, bool gone);
    /* Sets the number of virtual functions of a device that it drives: k_pci_configure_vfs(). From
     * a thread. NULL: its devices have none (Linux: sriov_configure()). */
    int (*configure_vfs)(struct k_pci_dev *dev, unsigned n);
    void *context;
};
/* Registers a driver: calls probe() for every function that matches `ids` and has no driver, now
 * and as functions appear. Returns how many probe() took now. The driver must outlive the kernel.
 * From a thread. */
int k_pci_register(struct kernel *kernel, const struct k_pci_driver *driver);
/* Adds a device that appears while the kernel runs, and offers it to drivers. The caller owns
 * `dev` and keeps it until k_pci_remove(). Returns 0, or -EEXIST if it is there already. From a
 * thread. */
int k_pci_add(struct kernel *kernel, struct k_pci_dev *dev);
/* Removes a device, calling remove() of its driver, once its driver is through with its virtual
 * functions (k_pci_configure_vfs()). gone: it does not answer any more. From a thread. */
void k_pci_remove(struct k_pci_dev *dev, bool gone);
/* SR-IOV: enables `n` virtual functions, or disables all with 0. They are added and removed like
 * other devices, drivers included. Returns 0; -ENOSYS: the function has no such capability;
 * -ERANGE: it has fewer; -EBUSY: some are enabled already, or another call has not returned yet.
 * Enabling takes 100 ms. Callers disable the virtual functions before they remove the function,
 * even one that is gone. From a thread. */
int k_pci_set_vfs(struct k_pci_dev *dev, unsigned n);
/* Virtual function v of a physical one; NULL: it is not enabled. */
struct k_pci_dev *k_pci_vf(struct k_pci_dev *dev, unsigned v);
/* What an administrator does by writing `n` to sriov_numvfs of a physical function: its driver
 * enables as many virtual functions as that, or disables all of them with 0, one call after the
 * other, and none while the function is being removed. Returns what the driver returns; -ENOENT: it
 * has no driver (any more); -ENOSYS: its driver knows of no virtual functions. From a thread. */
int k_pci_configure_vfs(struct k_pci_dev *dev, unsigned n);
/* Offers a function that no driver has taken to the drivers once more (Linux: device_attach()).
 * True: one has it now. From a thread. */
bool k_pci_offer(struct k_pci_dev *dev);
/* Returns the offset of the extended capability `id` (15:0), 0 if the function has none. From a
 * thread. */
unsigned k_pci_find_extended(struct k_pci_dev *dev, unsigned id);

/* Returns the offset of the capability `id` (7:0) in the configuration space of `dev`, 0 if it has
 * none. *header, unless `header` is NULL, gets the capability's first four bytes. */
unsigned k_pci_find_capability(struct k_pci_dev *dev, unsigned id, uint32_t *header);
/* Lets the function answer memory requests and send requests of its own (Bus Master Enable). */
void k_pci_enable(struct k_pci_dev *dev);
/* Writes the base addresses again that firmware had assigned: a reset clears them. */
void k_pci_write_bars(struct k_pci_dev *dev);
/* What a driver does first when it finds that somebody has reset its function: base addresses
 * again, then k_pci_enable(); nothing if the function is enabled. Interrupts have to be requested
 * again. 0; -ENODEV: nobody answers. */
int k_pci_restore(struct k_pci_dev *dev);

/* Configuration space: 1, 2 or 4 aligned bytes. Both suspend the CPU for the round trip; a read
 * that nobody answers returns all ones. */
static inline uint32_t k_config_read(struct k_pci_dev *dev, unsigned offset, unsigned bytes)
{
    return dev->ops->config_read(dev, offset, bytes);
}
static inline void k_config_write(struct k_pci_dev *dev, unsigned offset, unsigned bytes,
                                  uint32_t value)
{
    dev->ops->config_write(dev, offset, bytes, value);
}
/* Registers: 4 or 8 aligned bytes at `offset` of base address register `bar`. A read suspends the
 * CPU for the round trip and returns all ones if nobody answers; a write is posted. */
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

/* Stores whole cache lines to an aligned `address` of the device's tree through a write-combining
 * mapping (ioremap_wc()): a line leaves as one posted write when its last byte is in its buffer, in
 * any order with other lines; the CPU waits only for a free buffer. k_write_drain() (sfence) waits
 * until the root port has all of them. */
static inline void k_write_lines(struct k_pci_dev *dev, uint64_t address, const void *from,
                                 size_t bytes)
{
    const uint8_t *at = (const uint8_t *)from;
    if (dev->ops->mmio_write_lines != NULL) {
        dev->ops->mmio_write_lines(dev, address, from, bytes);
        return;
    }
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t value;
        __builtin_memcpy(&value, at + i, sizeof value);
        dev->ops->mmio_write(dev, address + i, 8, value);
    }
}
static inline void k_write_drain(struct k_pci_dev *dev)
{
    if (dev->ops->mmio_drain != NULL)
        dev->ops->mmio_drain(dev);
}

/* Stores the 64 bytes at `line` to an aligned `address` of the device's tree as one write that the
 * device answers (ENQCMDS), and suspends the CPU for the round trip. True: the device has taken it;
 * false: it refused, or nobody takes such a write there. Only if k_can_enqueue(). (A store of 64
 * bytes without an answer, MOVDIR64B, is a k_write_lines() of one line.) */
static inline bool k_enqueue_line(struct k_pci_dev *dev, uint64_t address, const void *line)
{
    return dev->ops->mmio_enqueue(dev, address, line);
}
static inline bool k_can_enqueue(const struct k_pci_dev *dev)
{
    return dev->ops->mmio_enqueue != NULL;
}

/* Where the device itself has base address register `bar` (pci_bus_address()): requests of its own
 * to there do not leave it. 0: the kernel does not know. From a thread. */
static inline uint64_t k_pci_bus_address(struct k_pci_dev *dev, unsigned bar)
{
    return dev->ops->bus_address != NULL ? dev->ops->bus_address(dev, bar) : dev->bar_base[bar];
}

/* Requests an interrupt: directs entry `index` of the device's MSI-X table (of a device that has
 * MSI only: index 0) to `cpu`, where `handler` runs with `arg` in a hard interrupt. Returns 0 and
 * *irq; -ENOSPC: there is no such entry, or no vector is left; -EBUSY: the entry is in use. From a
 * thread. */
int k_irq_request(struct k_pci_dev *dev, unsigned index, unsigned cpu, k_irq_fn *handler, void *arg,
                  struct k_irq **irq);
/* Moves the interrupt to another CPU. 0 or a negative errno with nothing changed. */
int k_irq_set_cpu(struct k_irq *irq, unsigned cpu);
/* Leaves to the hardware which CPU of a mask gets each interrupt (lowest-priority delivery; all
 * have the same priority, so they get them in turns). 0; -EINVAL: no CPU, or one that the flat
 * logical mode does not reach (it has eight); -EOPNOTSUPP: interrupts of the device are remapped,
 * or the kernel is a guest's; -ENOSPC: no vector is free on all of them. */
int k_irq_set_any_cpu(struct k_irq *irq, uint64_t cpus);
/* Frees the interrupt: the handler does not run any more when it returns. From a thread. */
void k_irq_free(struct k_irq *irq);

/* ---- IOMMU domains --------------------------------------------------------------------------- */
/* For code that maps device addresses itself: device lending, pass-through. Requester IDs are those
 * that an IOMMU sees, whether or not enumeration found a function there. */

struct k_iommu_domain;
/* The IOMMU translates requests of this requester. False: its addresses are host-physical. */
bool k_iommu_on(const struct kernel *kernel, uint16_t requester_id);
/* Creates an empty address space in the IOMMU of this requester. Addresses below 2^39 can be
 * mapped. NULL: the IOMMU is off or has no domain left. */
struct k_iommu_domain *k_iommu_domain_new(struct kernel *kernel, uint16_t requester_id);
/* Detaches all requesters, unmaps everything and frees the domain. */
void k_iommu_domain_free(struct k_iommu_domain *domain);
/* Attaches a requester: it uses the addresses of the domain and no others; the kernel's own
 * mappings for it are suspended until it is detached. Returns 0; -EBUSY: it is in another domain;
 * -EINVAL: it is behind another IOMMU. */
int k_iommu_attach(struct k_iommu_domain *domain, uint16_t requester_id);
void k_iommu_detach(struct k_iommu_domain *domain, uint16_t requester_id);
/* Maps whole pages of memory or registers at `address` to `iova`. Returns 0, or a negative errno
 * with nothing changed (-EEXIST: part of the range is mapped). Charges the cost of a mapping. From
 * any context. */
int k_iommu_map(struct k_iommu_domain *domain, uint64_t iova, uint64_t address, uint64_t bytes,
                enum k_dma_direction direction);
/* Unmaps exactly one mapped range, or several adjacent ones. Returns 0 or a negative errno. When it
 * returns, no request passes through the range any more. */
int k_iommu_unmap(struct k_iommu_domain *domain, uint64_t iova, uint64_t bytes);

/* The requester ID of the i-th root complex, which devices see on requests of CPUs and on requests
 * forwarded between root ports. False: there are fewer root complexes. */
bool k_root_requester(const struct kernel *kernel, unsigned i, uint16_t *requester_id);
/* The i-th range of host-physical memory. False: there are fewer ranges. */
bool k_memory_range(const struct kernel *kernel, unsigned i, uint64_t *base, uint64_t *bytes);
/* Allocates contiguous zeroed pages on `node`, mapped for no device. 0 or -ENOMEM (then v is 0). */
int k_pages_get(struct kernel *kernel, int node, size_t bytes, struct kaddr *at);
/* Frees the whole range of one k_pages_get(). */
void k_pages_put(struct kernel *kernel, size_t bytes, struct kaddr at);

/* ---- NAPI ------------------------------------------------------------------------------------ */

struct k_napi;
/* Processes at most `budget` packets and returns their number. If it returns fewer than `budget`,
 * it has called k_napi_complete() and enabled its device's interrupt again. */
typedef int k_napi_poll_fn(struct k_napi *napi, int budget);
struct k_napi {
    struct kernel *kernel;
    k_napi_poll_fn *poll;
    struct k_napi *next; /* private, as is the rest */
    bool scheduled, missed, queued;
};
void k_napi_init(struct k_napi *napi, struct kernel *kernel, k_napi_poll_fn *poll);
/* Schedules the poll function on the calling CPU: it runs in the soft interrupt, or in ksoftirqd
 * when the soft interrupt has used up its budget of packets or time. Called from a thread with soft
 * interrupts enabled, it runs before this returns. If it is scheduled already, the kernel notes
 * that more has arrived. */
void k_napi_schedule(struct k_napi *napi);
/* Ends polling. True: the poll function is idle now. False: it was scheduled meanwhile and will run
 * again. */
bool k_napi_complete(struct k_napi *napi);

#endif
