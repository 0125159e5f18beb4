/*
 * Device lending: a host uses a PCI function of another host as if it were plugged in there
 * (docs/models/lending.md). Each kernel has one struct lend_host, which may lend and borrow at the
 * same time.
 *
 *   struct lend_options options = lend_options_default;
 *   options.id = 1;
 *   struct lend_host *host = lend_host_new(kernel, &options);
 *   k_pci_register(kernel, lend_adapter_driver(host));      finds the adapters
 *   k_pci_register(kernel, lend_lender_driver(host));       takes the devices in options.lend
 *   lend_start(host);
 *   ... on another host:
 *   lend_discover(host);
 *   lend_borrow(host, 1, id, &borrow, &error);              probes its driver before it returns
 *   lend_return(borrow);
 *
 * Words:
 *   adapter   a PCIe card that joins a host to the fabric; struct lend_adapter
 *   NTB       the adapter's PCI function with windows and requester tables (hw/ntb_regs.h)
 *   fabric    the cables and cluster switches between adapters; each adapter is a node on it
 *   peer      another host
 *   path      one of our adapters and a node of the peer that it reaches
 *   window    part of the NTB's aperture, which maps a range of a peer's addresses
 *   export    to make memory or registers of this host reachable from the fabric
 *   lease     a device that is lent, as its lender records it; the borrower has a borrow
 *   shadow    the device that stands for the borrowed one in the borrower's tree
 *
 * Calls marked [thread] may sleep and are made from a kernel thread; the others from any context.
 * Errors are negative errno values. A struct lend_error says in words which resource was short, how
 * much of it there is and who holds it, on whichever host that was; a call fills it in only when it
 * fails, and takes NULL. A call that fails has no effect.
 */
#ifndef LOGIC_LENDING_LENDING_H
#define LOGIC_LENDING_LENDING_H

#include "logic/lending/adapter.h"

#define LEND_ADAPTERS_MAX  4u
#define LEND_NAME_BYTES    32u
#define LEND_DMA_RANGES    4u    /* ranges of a borrower's memory that a device can reach */
#define LEND_MAILBOX_BYTES 2048u /* of the pool, per peer */

struct lend_host;
struct lend_borrow;

struct lend_options {
    uint32_t id;         /* number of the host, unique in the cluster; not 0 */
    const char *name;    /* outlives the host */
    uint64_t pool_bytes; /* for mailboxes and segments; a power of two, at most 2 GiB */
    int pool_node;
    unsigned max_peers; /* mailboxes; they fit into the pool */
    /* If this host has an IOMMU: how many bytes drivers can map at a time for each borrowed device
     * (a power of two, 64 KiB .. 16 GiB). Without one the device reaches all memory. */
    uint64_t dma_window_bytes;
    /* Devices to lend: those of these kinds (ended by { 0, 0 }; NULL: none) that want() accepts
     * (NULL: all). dma_bits() tells the address bits of a device (NULL: 64). */
    const struct k_pci_id *lend;
    bool (*want)(const struct k_pci_dev *dev, void *context);
    unsigned (*dma_bits)(const struct k_pci_dev *dev, void *context);
    /* Where the adapters of each host are, as a list that an administrator keeps says: writes the
     * numbers of their nodes and returns how many, LEND_ADAPTERS_MAX at most. NULL: there is no
     * such list, hosts are found by lend_discover(). */
    unsigned (*nodes)(uint32_t peer, uint32_t node[LEND_ADAPTERS_MAX], void *context);
    /* What an administrator calls the adapter or cluster switch at a node: messages name the
     * setting "NAME.KEY" of a table that is full. NULL, of the function or what it returns: KEY. */
    const char *(*name_of)(uint32_t node, void *context);
    void *context;
    uint64_t timeout_ps; /* a peer that has not answered for so long is lost */
    /* A link that goes down ends no connection by itself: if it is back, at both ends, before the
     * time-out, all that goes by it is still valid; what was under way is lost. All hosts alike. */
    bool hold_links;
    uint64_t heartbeat_ps; /* interval of heartbeats to each peer */
    uint64_t reclaim_ps;   /* how long a borrower may take to give a device back */
};
extern const struct lend_options lend_options_default;

/* [thread] Copies the options and allocates the pool. NULL: an option is out of range, or there is
 * no memory for the pool. The caller owns the host. */
struct lend_host *lend_host_new(struct kernel *kernel, const struct lend_options *options);
/* Register both before lend_start(). They belong to the host. */
const struct k_pci_driver *lend_adapter_driver(const struct lend_host *host);
const struct k_pci_driver *lend_lender_driver(const struct lend_host *host);
/* [thread] Publishes the host in the scratchpads of its adapters and starts the threads that serve
 * peers. 0; -ENODEV: no adapter; or an error of an export or an interrupt request. */
int lend_start(struct lend_host *host, struct lend_error *error);
/* [thread] Returns what is borrowed, reclaims what is lent, takes leave of all peers, and frees the
 * host. No device may be offered to its drivers afterwards. */
void lend_host_free(struct lend_host *host);
/* For tests: the host has crashed. Its threads end and it touches no hardware any more.
 * lend_host_free() then frees memory only, that of borrowed devices included; their drivers must
 * not have requested interrupts, and the kernel must end right after. */
void lend_host_kill(struct lend_host *host);

/* ---- The cluster ----------------------------------------------------------------------------- */

/* [thread] Looks for other hosts: through each adapter at the other end of its cable and, if that
 * is a switch, at all nodes that the switch has a route to. Replaces the known paths. Returns how
 * many there are to started hosts. */
int lend_discover(struct lend_host *host);
/* [thread] Looks for one host: at the nodes that options.nodes() lists for it, whose paths replace
 * those to it that are known; or, if there is no list, for all by lend_discover(). */
void lend_look_for(struct lend_host *host, uint32_t peer);
struct lend_path {
    uint32_t peer;         /* number of the host */
    unsigned adapter;      /* ours, by index */
    uint32_t node;         /* of the peer's adapter */
    unsigned peer_adapter; /* its index on the peer */
};
/* The i-th known path; false: there are fewer. */
bool lend_path_at(const struct lend_host *host, unsigned i, struct lend_path *path);
/* [thread] Chooses a path to the peer whose cable is up: preferably to the peer's adapter
 * `peer_adapter` (LEND_ANY: no preference), and of those through the adapter of ours that has most
 * free windows. 0 or -EHOSTUNREACH. */
#define LEND_ANY UINT32_MAX
int lend_resolve(struct lend_host *host, uint32_t peer, unsigned peer_adapter,
                 struct lend_path *path, struct lend_error *error);

/* ---- Segments of shared memory --------------------------------------------------------------- */

/* Allocates zeroed memory of whole pages from the pool, at *at, and lets peers connect to it by its
 * number. 0, -EEXIST, -ENOSPC. */
int lend_segment_new(struct lend_host *host, uint32_t segment, uint64_t bytes, struct kaddr *at,
                     struct lend_error *error);
/* Frees the memory. Peers that still map the segment will see unrelated memory. 0 or -ENOENT. */
int lend_segment_free(struct lend_host *host, uint32_t segment);
/* A segment of a peer, mapped. */
struct lend_remote {
    struct lend_adapter *adapter; /* for lend_map_read() and lend_map_write() */
    struct lend_map map;
    void *private_data;
};
/* [thread] Connects to the peer if need be and maps its segment. 0: *remote is valid until
 * lend_segment_disconnect(). -ENOENT: no such segment; -ENOSPC, -EFBIG: no windows for it; or an
 * error of the connection (-EHOSTUNREACH, -ECONNREFUSED, -ECONNRESET, -ETIMEDOUT). */
int lend_segment_connect(struct lend_host *host, uint32_t peer, uint32_t segment,
                         struct lend_remote *remote, struct lend_error *error);
/* The connection has ended: the peer has left, or has not answered for timeout_ps. */
bool lend_segment_lost(const struct lend_remote *remote);
/* [thread] */
void lend_segment_disconnect(struct lend_remote *remote);

/* ---- Lending --------------------------------------------------------------------------------- */

struct lend_info { /* what a lender tells about a device */
    uint16_t id;
    uint16_t vendor_id, device_id;
    uint16_t adapter; /* of the lender, nearest to the device */
    uint32_t lent_to; /* number of the host; 0: available */
    uint32_t dma_bits;
    char name[LEND_NAME_BYTES];
};
/* [thread] Asks the peer about the i-th device that it lends. 0; -ENOENT: it lends fewer; or an
 * error of the connection. */
int lend_list(struct lend_host *host, uint32_t peer, unsigned i, struct lend_info *info,
              struct lend_error *error);
/* [thread] Takes a device back. Asks the borrower, which removes its driver; ends the lease by
 * force when that has not happened within reclaim_ps. 0; -ENOENT: no such device; -EALREADY: it is
 * not lent. */
int lend_reclaim(struct lend_host *host, uint16_t id);

/* ---- Borrowing ------------------------------------------------------------------------------- */

/* [thread] Borrows the device that has requester ID `id` in the peer's tree. 0: it is in our tree
 * on the bus of the NTB, and the probe() of a driver that matches has returned; the caller owns
 * *borrow. -ENOENT, -EBUSY (lent), -EAGAIN (being reset), -EMSGSIZE (payload sizes), -ENOSPC,
 * -EFBIG, -ERANGE (windows, requesters, addresses), or an error of the connection. */
int lend_borrow(struct lend_host *host, uint32_t peer, uint16_t id, struct lend_borrow **borrow,
                struct lend_error *error);
/* [thread] Removes the driver, gives the device back and frees the borrow; also one that the lender
 * has ended. */
void lend_return(struct lend_borrow *borrow);
/* The shadow device; NULL: the lender has taken the device back, or is lost. */
struct k_pci_dev *lend_borrow_device(const struct lend_borrow *borrow);

/* ---- Peer to peer ---------------------------------------------------------------------------- */

/* [thread] Maps `bytes` from `offset` of base address register `bar` of `target` for the borrowed
 * device (SmartIO, 4.4); k_dma_map_resource() of a borrowed device calls it. `target` is another
 * device of our kernel: borrowed from the same lender (mapped in the lender's tree), local (through
 * windows of the lender to us), or borrowed from another lender (through windows between the two).
 * 0: the device finds the bytes at *dma until lend_peer_unmap(). -EINVAL: no such bytes; -ENODEV:
 * one of the two devices is going back; or what a lender lacks. */
int lend_peer_map(struct lend_borrow *source, struct k_device *target, unsigned bar,
                  uint64_t offset, uint64_t bytes, enum k_dma_direction direction, uint64_t *dma,
                  struct lend_error *error);
/* [thread] Undoes it. False: exactly these bytes were not mapped. */
bool lend_peer_unmap(struct lend_borrow *source, uint64_t dma, uint64_t bytes);
/* [thread] The other direction: lets requests of a local device reach the base addresses of the
 * borrowed one. Calls are counted; the last revoke, or the end of the borrow, closes the path.
 * 0, -ENODEV (the device is going back), -ENOSPC. */
int lend_peer_allow(struct lend_borrow *target, uint16_t requester_id, struct lend_error *error);
void lend_peer_revoke(struct lend_borrow *target, uint16_t requester_id);

/* ---- Inspection ------------------------------------------------------------------------------ */

struct lend_usage { /* entries beyond those that every started host has for itself */
    unsigned windows, outgoing, incoming, connections, lent, borrowed;
    unsigned hops;         /* cluster switches whose tables hold entries of ours, and of those: */
    unsigned unsettled;    /* switches that could not be told what we have given back */
    unsigned peers;        /* peer-to-peer pairs that this host has made as a borrower */
    unsigned peer_entries; /* mappings and remote requesters that its leases hold */
    uint64_t exported_bytes, pool_bytes, mapped_pages;
};
struct lend_usage lend_usage(const struct lend_host *host);
struct lend_adapter *lend_adapter_at(struct lend_host *host, unsigned index); /* NULL: none */

#endif
