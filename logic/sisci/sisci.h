/*
 * SISCI: segments of memory that the hosts of a cluster share, and SmartIO's extension, by which
 * processes on several hosts borrow one device at a time and map segments for it
 * (docs/models/sisci.md). Each kernel has one struct sisci, on its struct lend_host; each process
 * opens it for itself.
 *
 *   struct sisci *sisci = sisci_new(lend_host);              before lend_start()
 *   sisci_open(sisci, &process, &error);
 *   sisci_segment_create(process, 7, 1 << 20, node, NULL, NULL, &segment, &error);
 *   sisci_segment_prepare(segment, SISCI_ANY, &error);
 *   sisci_segment_export(segment, SISCI_ANY, &error);
 *   ... on another host:
 *   sisci_segment_connect(process, host, 7, SISCI_ANY, lost, context, &remote, &error);
 *   sisci_map(remote, 0, 4096, &map, &error);
 *   sisci_write(&map, 0, 8, value);
 *   ... a device, wherever it is:
 *   sisci_device_borrow(process, name, SISCI_EXCLUSIVE, lost, context, &device, &error);
 *   sisci_device_bar_connect(device, 0, SISCI_ANY, &bar, &error);
 *   sisci_segment_map_for_device(segment, device, SISCI_ANY, 0, 4096, K_DMA_BOTH, &window, &error);
 *   ... window.dma is where the device finds the first byte.
 *   sisci_device_share(device, &error);                      others may borrow it as well
 *
 * Words: a *local* segment is of this host and was created by the process; a segment that a process
 * has connected to is *remote*, though it may be of the same host. A *map* lets the CPU reach bytes
 * of a remote segment, a *window* lets a device reach bytes of any segment. *Export* is what SISCI
 * calls "set available". The *lender* of a device is the host that it is plugged into.
 *
 * Calls that return enum sisci_error are made from a kernel thread and may sleep; they wait for
 * answers of other hosts, at most until the peer is lost (lend_options.timeout_ps). A call that
 * fails has no effect. `error`, which may be NULL, gets a sentence that says which resource was
 * short, on which host, how much of it there is and who holds it; its code is a negative errno. One
 * thread at a time uses a process and what belongs to it.
 *
 * Callbacks run in a thread of the kernel, one at a time per process, and may call everything here
 * but sisci_close(). A call that frees an object (disconnect, remove, return, close) waits for the
 * object's callback if that runs, unless the callback itself makes the call; when it returns, none
 * runs and none comes. So a callback never waits for a thread that may be freeing its object.
 */
#ifndef LOGIC_SISCI_SISCI_H
#define LOGIC_SISCI_SISCI_H

#include "logic/kapi.h"
#include "logic/lending/lending.h"

#define SISCI_ANY LEND_ANY /* an adapter: no preference */

struct sisci;
struct sisci_process;
struct sisci_segment;
struct sisci_remote;
struct sisci_device;
struct lend_connection;

/* ---- Errors ---------------------------------------------------------------------------------- */

/* The codes of the SISCI API that calls here return; sisci_error_name() gives the documented
 * name. */
enum sisci_error {
    SISCI_OK,
    SISCI_ERR_BUSY,                  /* in use: connected, mapped, borrowed by another */
    SISCI_ERR_NOSPC,                 /* memory, I/O virtual addresses */
    SISCI_ERR_HW_NOSPC,              /* windows, requester tables, IOMMU domains */
    SISCI_ERR_NOT_IMPLEMENTED,       /* this host cannot do it */
    SISCI_ERR_NO_SUCH_ADAPTERNO,     /* no adapter of this number */
    SISCI_ERR_TIMEOUT,               /* the peer did not answer */
    SISCI_ERR_OUT_OF_RANGE,          /* offset and size exceed the segment */
    SISCI_ERR_NO_SUCH_SEGMENT,       /* none of this number, or it is not exported */
    SISCI_ERR_CONNECTION_REFUSED,    /* the peer has no entries left for us */
    SISCI_ERR_SEGMENT_NOT_CONNECTED, /* it was lost, or the owner has taken it back */
    SISCI_ERR_SIZE_ALIGNMENT,
    SISCI_ERR_OFFSET_ALIGNMENT,
    SISCI_ERR_ILLEGAL_PARAMETER,
    SISCI_ERR_SEGMENT_NOT_PREPARED, /* exported without having been prepared */
    SISCI_ERR_ILLEGAL_ADDRESS,      /* the device cannot form such an address */
    SISCI_ERR_ILLEGAL_OPERATION,    /* not now: not exported, not borrowed exclusively */
    SISCI_ERR_SEGMENTID_USED,       /* this host has a segment of this number */
    SISCI_ERR_SYSTEM,               /* anything else */
    SISCI_ERR_NOT_AVAILABLE,        /* the device is being reset, or is lent by device lending */
    SISCI_ERR_NO_SUCH_NODEID,       /* no path to a host of this number */
    SISCI_ERR_NO_LINK_ACCESS,       /* the link is down */
    SISCI_ERR_TRANSFER_FAILED,      /* a store or load did not reach the segment */
    SISCI_N_ERRORS
};
/* "SCI_ERR_BUSY" ... */
const char *sisci_error_name(enum sisci_error error);

/* ---- The driver and its processes ------------------------------------------------------------ */

/* One per lend_host, before lend_start(). It belongs to the host, and is freed with it; all
 * processes have closed it by then. */
struct sisci *sisci_new(struct lend_host *host);

/* Opens the driver for a process. */
enum sisci_error sisci_open(struct sisci *sisci, struct sisci_process **process,
                            struct lend_error *error);
/* [thread] Ends everything that the process holds: windows, maps, connections, borrowed devices,
 * segments, in this order. Peers that are connected to its segments get SISCI_CB_DISCONNECT and are
 * cut off before the memory is freed. What the kernel does when a process dies. */
void sisci_close(struct sisci_process *process);
/* Number of the host, as in lend_options.id. */
uint32_t sisci_host_id(const struct sisci_process *process);

/* What is known of a segment by those who use it. */
enum sisci_event {
    SISCI_CB_CONNECT = 1, /* local: a peer has connected */
    SISCI_CB_DISCONNECT,  /* local: a peer has disconnected; remote: the owner has taken it back */
    SISCI_CB_NOT_OPERATIONAL, /* remote: the link is down */
    SISCI_CB_OPERATIONAL,     /* remote: it is back, and all maps and windows are valid */
    SISCI_CB_LOST             /* the other host is gone; nothing comes back by itself */
};

/* ---- Local segments -------------------------------------------------------------------------- */

typedef void sisci_segment_fn(struct sisci_segment *segment, enum sisci_event event, uint32_t host,
                              void *context);

/* Allocates zeroed, contiguous memory of whole pages on NUMA node `node` (K_NODE_LOCAL: of the
 * calling CPU), under a number that no other segment of the host has. `changed` may be NULL.
 * NOSPC, SEGMENTID_USED, ILLEGAL_PARAMETER (no bytes). */
enum sisci_error sisci_segment_create(struct sisci_process *process, uint32_t number,
                                      uint64_t bytes, int node, sisci_segment_fn *changed,
                                      void *context, struct sisci_segment **segment,
                                      struct lend_error *error);
/* Makes a segment of memory that the caller has and keeps: contiguous, whole pages. */
enum sisci_error sisci_segment_attach(struct sisci_process *process, uint32_t number,
                                      struct kaddr at, uint64_t bytes, sisci_segment_fn *changed,
                                      void *context, struct sisci_segment **segment,
                                      struct lend_error *error);
/* Makes a segment of registers or memory of a device: a local one, such as memory of a GPU, or one
 * that device lending has borrowed, whose segment then is at its lender: peers do not reach it
 * through us, and windows lead straight there. Whole pages. The device stays where it is until the
 * segment is removed. */
enum sisci_error sisci_segment_attach_bar(struct sisci_process *process, uint32_t number,
                                          struct k_pci_dev *pci, unsigned bar, uint64_t offset,
                                          uint64_t bytes, struct sisci_segment **segment,
                                          struct lend_error *error);
/* The memory of the segment, for loads and stores of this host; v is 0: it is a BAR. */
struct kaddr sisci_segment_memory(const struct sisci_segment *segment);
uint64_t sisci_segment_bytes(const struct sisci_segment *segment);
uint32_t sisci_segment_number(const struct sisci_segment *segment);

/* Makes the pages reachable from the fabric through an adapter (SISCI_ANY: through each). Without
 * an IOMMU that takes nothing. Prepared twice is prepared once. NO_SUCH_ADAPTERNO, NOSPC. */
enum sisci_error sisci_segment_prepare(struct sisci_segment *segment, unsigned adapter,
                                       struct lend_error *error);
/* Lets peers connect through an adapter that it is prepared for (SISCI_ANY: through each of these).
 * SEGMENT_NOT_PREPARED, NO_SUCH_ADAPTERNO. */
enum sisci_error sisci_segment_export(struct sisci_segment *segment, unsigned adapter,
                                      struct lend_error *error);
/* No new connections. With `force`, the peers that are connected are told (SISCI_CB_DISCONNECT),
 * their maps and windows are undone by their kernels, and the call returns when none is left or the
 * peer is lost. */
enum sisci_error sisci_segment_unexport(struct sisci_segment *segment, bool force,
                                        struct lend_error *error);
/* Frees the segment. BUSY: it is connected, or mapped for a device. */
enum sisci_error sisci_segment_remove(struct sisci_segment *segment, struct lend_error *error);

/* ---- Remote segments ------------------------------------------------------------------------- */

typedef void sisci_remote_fn(struct sisci_remote *remote, enum sisci_event event, void *context);

/* Connects to segment `number` of a host, through our adapter `adapter` (SISCI_ANY: the one that
 * lend_resolve() prefers). The host may be this one, which needs no export and no adapter.
 * `changed` may be NULL. NO_SUCH_SEGMENT, NO_SUCH_NODEID, CONNECTION_REFUSED, HW_NOSPC, TIMEOUT,
 * NO_LINK_ACCESS. */
enum sisci_error sisci_segment_connect(struct sisci_process *process, uint32_t host,
                                       uint32_t number, unsigned adapter, sisci_remote_fn *changed,
                                       void *context, struct sisci_remote **remote,
                                       struct lend_error *error);
/* Ends the connection and frees `remote`; also one that was lost. BUSY: it is mapped, or there are
 * windows. */
enum sisci_error sisci_segment_disconnect(struct sisci_remote *remote, struct lend_error *error);
uint64_t sisci_remote_bytes(const struct sisci_remote *remote);
/* The host whose memory or device it is. */
uint32_t sisci_remote_host(const struct sisci_remote *remote);
/* The connection has ended; costs no time. */
bool sisci_remote_lost(const struct sisci_remote *remote);
/* Memory of this host that the segment consists of; v is 0: it is elsewhere, or a BAR. */
struct kaddr sisci_remote_memory(const struct sisci_remote *remote);

/* ---- Maps ------------------------------------------------------------------------------------ */

/* Bytes of a remote segment, for loads and stores of this host's CPUs. The caller owns it; it is
 * valid from sisci_map() to sisci_unmap(). Fields are private. */
struct sisci_map {
    struct kernel *kernel;
    struct sisci_remote *remote;
    struct sisci_map *next;
    struct k_pci_dev
        *pci; /* through whose registers the CPU reaches it; NULL: memory of this host */
    uint64_t address, bytes;
    struct lend_adapter *adapter; /* holds the windows; NULL: there are none */
    struct lend_map windows;
    bool lost; /* the kernel has undone it: loads give ones, stores are dropped */
};

/* Maps `bytes` from `offset` on, multiples of 4. OUT_OF_RANGE, OFFSET_ALIGNMENT, SIZE_ALIGNMENT,
 * HW_NOSPC (windows), SEGMENT_NOT_CONNECTED. */
enum sisci_error sisci_map(struct sisci_remote *remote, uint64_t offset, uint64_t bytes,
                           struct sisci_map *map, struct lend_error *error);
void sisci_unmap(struct sisci_map *map);

/* Loads 4 or 8 bytes at a multiple of their number; suspends the CPU for the round trip if they are
 * not in this host. All ones: nobody answers. */
static inline uint64_t sisci_read(const struct sisci_map *map, uint64_t offset, unsigned bytes)
{
    uint64_t value = 0;
    if (map->lost)
        return bytes == 4 ? UINT32_MAX : UINT64_MAX;
    if (map->pci != NULL)
        return map->pci->ops->mmio_read(map->pci, map->address + offset, bytes);
    k_load(map->kernel, (struct kaddr){ map->address + offset }, &value, bytes);
    return value;
}
/* Stores 4 or 8 bytes; posted, in order with the other sisci_write() of the CPU. */
static inline void sisci_write(const struct sisci_map *map, uint64_t offset, unsigned bytes,
                               uint64_t value)
{
    if (map->lost)
        return;
    if (map->pci != NULL)
        map->pci->ops->mmio_write(map->pci, map->address + offset, bytes, value);
    else
        k_store(map->kernel, (struct kaddr){ map->address + offset }, &value, bytes);
}
/* Stores whole cache lines, write-combining: each leaves as one write when it is full, in any order
 * (k_write_lines()). */
static inline void sisci_write_lines(const struct sisci_map *map, uint64_t offset, const void *from,
                                     size_t bytes)
{
    if (map->lost)
        return;
    if (map->pci != NULL)
        k_write_lines(map->pci, map->address + offset, from, bytes);
    else
        k_store(map->kernel, (struct kaddr){ map->address + offset }, from, bytes);
}
/* When it returns, no later store passes the lines that were stored (sfence). */
static inline void sisci_drain(const struct sisci_map *map)
{
    if (map->pci != NULL && !map->lost)
        k_write_drain(map->pci);
}
/* Copies from and to C structures, 8 bytes (or whole lines, if aligned) at a time; offset and bytes
 * are multiples of 4. */
void sisci_read_bytes(const struct sisci_map *map, uint64_t offset, void *to, size_t bytes);
void sisci_write_bytes(const struct sisci_map *map, uint64_t offset, const void *from,
                       size_t bytes);
/* Waits until everything stored through the map has arrived, by reading its first 4 bytes back; not
 * for registers whose reads have effects. TRANSFER_FAILED: nobody answers, or it is lost. */
enum sisci_error sisci_flush(const struct sisci_map *map);

/* ---- Devices --------------------------------------------------------------------------------- */

/* A device of the cluster: the number of its lender, and its requester ID there. */
struct sisci_device_name {
    uint32_t host;
    uint16_t id;
};
struct sisci_device_info {
    struct sisci_device_name name;
    uint16_t vendor_id, device_id;
    uint32_t class_code;
    uint32_t n_borrowers; /* through SISCI */
    uint32_t exclusive;   /* to this host; 0: not exclusively */
    uint32_t lent_to;     /* by device lending, to this host; 0: not */
    uint32_t dma_bits;
    uint64_t bar_bytes[K_PCI_BARS];
    char text[LEND_NAME_BYTES]; /* its name in the lender's tree */
};
/* The i-th device that a host (this one, too) offers. ILLEGAL_PARAMETER: it has fewer. */
enum sisci_error sisci_device_at(struct sisci_process *process, uint32_t host, unsigned i,
                                 struct sisci_device_info *info, struct lend_error *error);

enum sisci_borrow { SISCI_SHARED, SISCI_EXCLUSIVE };
typedef void sisci_device_fn(struct sisci_device *device, enum sisci_event event, void *context);

/* Borrows a device that its lender offers (lend_options.lend), wherever it is. Exclusively: nobody
 * else has it and nobody gets it until sisci_device_share() or sisci_device_return(). With the
 * first borrower the lender enables Bus Master and, if it has an IOMMU, puts the device into a
 * domain of its own that holds nothing yet; with the last it stops the device. No driver of the
 * kernel sees the device, and its interrupts stay off. `changed` (may be NULL): SISCI_CB_LOST,
 * once, when no path to the lender is left; the device is then still to be returned. BUSY: somebody
 * has it exclusively, or, if that is asked for, at all; NOT_AVAILABLE: device lending has it, or it
 * is being reset; ILLEGAL_PARAMETER: no such device; NO_SUCH_NODEID, HW_NOSPC. */
enum sisci_error sisci_device_borrow(struct sisci_process *process, struct sisci_device_name name,
                                     enum sisci_borrow how, sisci_device_fn *changed, void *context,
                                     struct sisci_device **device, struct lend_error *error);
/* Makes an exclusive borrow a shared one. ILLEGAL_OPERATION: it is one already. */
enum sisci_error sisci_device_share(struct sisci_device *device, struct lend_error *error);
/* Function-level reset, with an exclusive borrow: 100 ms, after which the device is as at power-up,
 * with Bus Master enabled. ILLEGAL_OPERATION: the borrow is shared; NOT_IMPLEMENTED: the device has
 * no such reset. */
enum sisci_error sisci_device_reset(struct sisci_device *device, struct lend_error *error);
/* Gives the device back: its windows are undone, the segments that it was given are removed. Remote
 * segments of its BARs have to be disconnected before: BUSY. */
enum sisci_error sisci_device_return(struct sisci_device *device, struct lend_error *error);
struct sisci_device_name sisci_device_name(const struct sisci_device *device);
/* As it was when it was borrowed. */
const struct sisci_device_info *sisci_device_info(const struct sisci_device *device);
bool sisci_device_lost(const struct sisci_device *device);

/* Connects to a base address register of the device as a segment, through our adapter `adapter`;
 * each is exported by its lender. ILLEGAL_PARAMETER: no such register. */
enum sisci_error sisci_device_bar_connect(struct sisci_device *device, unsigned bar,
                                          unsigned adapter, sisci_remote_fn *changed, void *context,
                                          struct sisci_remote **remote, struct lend_error *error);

/* ---- Segments mapped for a device ------------------------------------------------------------ */

/* Bytes of a segment that a device reaches at `dma`. The caller owns it, from the call that fills
 * it in to sisci_window_unmap(). */
struct sisci_window {
    uint64_t dma;
    uint64_t bytes;
    bool lost; /* undone, as its segment or its path is gone; costs no time to look at */
    /* ---- private ----------------------------------------------------------------------------- */
    struct sisci_window *next;
    struct sisci_device *device;
    struct sisci_segment *segment; /* or: */
    struct sisci_remote *remote;
    uint32_t mapping, grant; /* numbers at the lender and at the segment's host; 0: none */
    struct lend_connection *path, *grant_path; /* by which they were asked for; NULL: this host */
};
/* Lets the device reach bytes of a segment, in whole pages, with its own reads and writes. The
 * lender finds the way: memory or a BAR in its own tree directly (through the nearest switch, if no
 * IOMMU forbids it), others through windows of the adapter that leads to the segment's host.
 * `adapter` is the adapter of *this* host by which lender and segment shall be connected, if the
 * segment is here; otherwise by which the lender is asked, and SISCI_ANY does. Two adapters make
 * two independent windows. Every window has its own entries; entries are counted. OUT_OF_RANGE,
 * HW_NOSPC (windows, requesters, switches; the sentence names the host and the table),
 * ILLEGAL_ADDRESS (the device has too few address bits and there is no IOMMU), NO_SUCH_NODEID. */
enum sisci_error sisci_segment_map_for_device(struct sisci_segment *segment,
                                              struct sisci_device *device, unsigned adapter,
                                              uint64_t offset, uint64_t bytes,
                                              enum k_dma_direction direction,
                                              struct sisci_window *window,
                                              struct lend_error *error);
/* The same for a segment that we are connected to: another host's, another device's BAR, or one of
 * sisci_device_segment_create(). */
enum sisci_error sisci_remote_map_for_device(struct sisci_remote *remote,
                                             struct sisci_device *device, unsigned adapter,
                                             uint64_t offset, uint64_t bytes,
                                             enum k_dma_direction direction,
                                             struct sisci_window *window, struct lend_error *error);
/* Undoes it, also one that was lost. When it returns the device does not reach the bytes any more
 * (with the lender's IOMMU off: unless another window covers them, as windows of an adapter are of
 * 16 MiB). */
void sisci_window_unmap(struct sisci_window *window);

/* Who will access a segment, for the choice of the host. */
enum {
    SISCI_DEVICE_READ = 1,
    SISCI_DEVICE_WRITE = 2,
    SISCI_CPU_READ = 4, /* the CPUs of the process that asks */
    SISCI_CPU_WRITE = 8,
};
/* Allocates zeroed memory of whole pages for use with a device: at the lender if the device reads
 * it and our CPUs do not; here otherwise, as reads wait for their round trip and writes do not. It
 * is a segment of the device, removed when the borrow ends. `number` is unique per device; with
 * `shared`, other borrowers connect to it by sisci_device_segment_connect(). *remote is connected
 * through `adapter`. SEGMENTID_USED, NOSPC, ILLEGAL_PARAMETER (no hint). */
enum sisci_error sisci_device_segment_create(struct sisci_device *device, uint32_t number,
                                             uint64_t bytes, unsigned hints, bool shared,
                                             unsigned adapter, sisci_remote_fn *changed,
                                             void *context, struct sisci_remote **remote,
                                             struct lend_error *error);
/* Connects to a shared segment that any borrower of the device has created. */
enum sisci_error sisci_device_segment_connect(struct sisci_device *device, uint32_t number,
                                              unsigned adapter, sisci_remote_fn *changed,
                                              void *context, struct sisci_remote **remote,
                                              struct lend_error *error);

/* ---- Multicast ------------------------------------------------------------------------------- */

/* A group of the cluster switches: writes to it arrive at all subscribers, except at the host from
 * whose adapter they come. Named by the host that administers it and a number, 0 .. 63; all groups
 * of a fabric have one size. */
struct sisci_group {
    uint32_t host;
    uint32_t number;
};
/* Takes a group for this host to administer, in all switches that its first adapter leads to, as
 * long as the process has SISCI open. Hosts that administer groups at the same time must not
 * create, remove or change them at the same moment. `bytes`: a power of two of 4 KiB .. 1 GiB.
 * BUSY: somebody has subscribed to that number, or the groups of the fabric have another size;
 * NOT_IMPLEMENTED: no cluster switch (hosts back to back have no multicast). */
enum sisci_error sisci_group_create(struct sisci_process *process, uint32_t number, uint64_t bytes,
                                    struct sisci_group *group, struct lend_error *error);
/* Takes all subscribers out of the switches and gives it up. */
void sisci_group_remove(struct sisci_process *process, struct sisci_group group);
/* Lets the group's writes arrive in a local segment, from its first byte: the segment is memory or
 * a local BAR, not smaller than the group, and aligned to its size if there is no IOMMU.
 * ILLEGAL_PARAMETER: it is not; NOSPC: the adapter has a group already and no IOMMU, so its overlay
 * has one place. */
enum sisci_error sisci_group_subscribe(struct sisci_segment *segment, struct sisci_group group,
                                       unsigned adapter, struct lend_error *error);
enum sisci_error sisci_group_unsubscribe(struct sisci_segment *segment, struct lend_error *error);
/* Lets a device write to the group: *window as from sisci_segment_map_for_device(), for writes. */
enum sisci_error sisci_group_map_for_device(struct sisci_device *device, struct sisci_group group,
                                            unsigned adapter, struct sisci_window *window,
                                            struct lend_error *error);

/* ---- Inspection ------------------------------------------------------------------------------ */

struct sisci_usage {
    unsigned processes, segments, remotes, maps, borrows; /* of this host's processes */
    unsigned borrowers, device_windows, grants;           /* held for peers, and for ourselves */
    uint64_t exported_bytes, lent_bytes; /* of segments; allocated for borrowers of our devices */
};
struct sisci_usage sisci_usage(const struct sisci *sisci);

#endif
