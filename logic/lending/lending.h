/*
 * Device lending: any PCI function of any host of a cluster, used by another host as if it were
 * plugged in there (docs/models/lending.md). One struct lend_host per kernel; it may lend and
 * borrow at the same time.
 *
 *   struct lend_options options = lend_options_default;
 *   options.id = 1;
 *   struct lend_host *host = lend_host_new(kernel, &options);
 *   k_pci_register(kernel, lend_adapter_driver(host));       finds the adapters
 *   k_pci_register(kernel, lend_lender_driver(host));       the devices in options.lend
 *   lend_start(host);
 *   ... on another host:
 *   lend_discover(host);
 *   lend_borrow(host, 1, id, &borrow, &error);              its driver is probed before it returns
 *   lend_return(borrow);
 *
 * Calls marked [thread] may sleep. Errors are negative errno values; a struct lend_error says in
 * words which resource, how much there is and who holds it, whichever host is the one that lacks
 * it. Nothing is left half done after an error.
 */
#ifndef LOGIC_LENDING_LENDING_H
#define LOGIC_LENDING_LENDING_H

#include "logic/lending/adapter.h"

#define LEND_ADAPTERS_MAX  4u
#define LEND_NAME_BYTES    32u
#define LEND_DMA_RANGES    4u    /* pieces of a borrower's memory that a device can reach */
#define LEND_MAILBOX_BYTES 2048u /* of the pool, per peer */

struct lend_host;
struct lend_borrow;

struct lend_options {
    uint32_t id;         /* of the host, unique in the cluster; not 0 */
    const char *name;    /* outlives the host */
    uint64_t pool_bytes; /* a power of two; mailboxes, and segments of shared memory */
    int pool_node;
    unsigned max_peers; /* mailboxes; less than pool_bytes / LEND_MAILBOX_BYTES */
    /* Of each borrowed device, if this host has an IOMMU: how many bytes can be mapped for it at a
     * time (a power of two, 64 KiB .. 16 GiB). Without one it reaches all memory. */
    uint64_t dma_window_bytes;
    /* Devices to lend: vendor and device, ended by { 0, 0 }; NULL: none. want says which of those
     * (NULL: all); dma_bits how many bits of address a device has (NULL: 64). Both are given
     * context. */
    const struct k_pci_id *lend;
    bool (*want)(const struct k_pci_dev *dev, void *context);
    unsigned (*dma_bits)(const struct k_pci_dev *dev, void *context);
    void *context;
    uint64_t timeout_ps;   /* until a peer that does not answer counts as gone */
    uint64_t heartbeat_ps; /* between two signs of life to peers that lend or borrow */
    uint64_t reclaim_ps;   /* that a borrower has to give a device back */
};
extern const struct lend_options lend_options_default;

/* [thread] The options are copied. NULL: out of range, or no memory for the pool. */
struct lend_host *lend_host_new(struct kernel *kernel, const struct lend_options *options);
/* To be registered before lend_start(). */
const struct k_pci_driver *lend_adapter_driver(const struct lend_host *host);
const struct k_pci_driver *lend_lender_driver(const struct lend_host *host);
/* [thread] Makes itself known in its bridges' scratchpads and serves whoever asks. 0, -ENODEV: no
 * adapter. */
int lend_start(struct lend_host *host, struct lend_error *error);
/* [thread] Returns what is borrowed, takes back what is lent, says good-bye, frees the host. Its
 * drivers must not be offered anything any more. */
void lend_host_free(struct lend_host *host);
/* The host is dead to the cluster from now on (crash, power cut): no thread of it does anything any
 * more. For tests of what the others make of it; lend_host_free() only frees memory then, that of
 * borrowed devices included: nothing may follow for this kernel but its own end, and drivers of
 * such devices must not have had interrupts. */
void lend_host_kill(struct lend_host *host);

/* ---- The cluster ----------------------------------------------------------------------------- */

/* [thread] Looks for other hosts, adapter by adapter: the other end of the cable, and all nodes
 * that a switch there knows a way to. Returns how many ways (pairs of adapters) to started hosts
 * are known now. */
int lend_discover(struct lend_host *host);
/* A way to another host: which adapter of ours, which node on its fabric. */
struct lend_path {
    uint32_t peer;         /* host */
    unsigned adapter;      /* of ours */
    uint32_t node;         /* of the peer's adapter, on the fabric that ours is on */
    unsigned peer_adapter; /* index over there */
};
/* The i-th known way; false: there are fewer. */
bool lend_path_at(const struct lend_host *host, unsigned i, struct lend_path *path);
/* [thread] The way to a host whose cable is up: through the peer's adapter peer_adapter if there is
 * one (LEND_ANY: none is better), of several through ours with the most free windows.
 * -EHOSTUNREACH. */
#define LEND_ANY UINT32_MAX
int lend_resolve(struct lend_host *host, uint32_t peer, unsigned peer_adapter,
                 struct lend_path *path, struct lend_error *error);

/* ---- Segments of shared memory --------------------------------------------------------------- */

/* Memory of the pool, zeroed, whole pages, under a number that peers know. 0, -EEXIST, -ENOSPC. */
int lend_segment_new(struct lend_host *host, uint32_t segment, uint64_t bytes, struct kaddr *at,
                     struct lend_error *error);
/* Who has it mapped finds other memory there afterwards. -ENOENT. */
int lend_segment_free(struct lend_host *host, uint32_t segment);
/* A peer's segment, mapped. */
struct lend_remote {
    struct lend_adapter *adapter; /* for lend_map_read() and lend_map_write() */
    struct lend_map map;
    void *private_data;
};
/* [thread] */
int lend_segment_connect(struct lend_host *host, uint32_t peer, uint32_t segment,
                         struct lend_remote *remote, struct lend_error *error);
void lend_segment_disconnect(struct lend_remote *remote);

/* ---- Lending --------------------------------------------------------------------------------- */

struct lend_info { /* what a lender says of a device */
    uint16_t id;
    uint16_t vendor_id, device_id;
    uint16_t adapter; /* of the lender, that is nearest to the device */
    uint32_t lent_to; /* host; 0: it can be borrowed */
    uint32_t dma_bits;
    char name[LEND_NAME_BYTES];
};
/* [thread] The i-th device that the peer lends. -ENOENT: there are fewer. */
int lend_list(struct lend_host *host, uint32_t peer, unsigned i, struct lend_info *info,
              struct lend_error *error);
/* [thread] Takes a device back: the borrower is asked, its driver let go; after reclaim_ps it is
 * taken. 0, -ENOENT (no such device), -EALREADY (it is not lent). */
int lend_reclaim(struct lend_host *host, uint16_t id);

/* ---- Borrowing ------------------------------------------------------------------------------- */

/* [thread] The device with this number in the peer's tree appears in ours, next to the bridge; a
 * driver that wants it has it when this returns. */
int lend_borrow(struct lend_host *host, uint32_t peer, uint16_t id, struct lend_borrow **borrow,
                struct lend_error *error);
/* [thread] Its driver is removed, the device goes back. Also after the borrow has ended otherwise.
 */
void lend_return(struct lend_borrow *borrow);
/* The device in our tree; NULL: the lender has taken it back, or is gone. */
struct k_pci_dev *lend_borrow_device(const struct lend_borrow *borrow);

/* ---- Peer to peer ---------------------------------------------------------------------------- */

/* [thread] What k_dma_map_resource() of a borrowed device does (SmartIO, 4.4), with the reason why
 * not: *dma is where the device finds `bytes` from `offset` on of a base address register of
 * `target`, another device of our kernel: from the same lender (its own tree, or its IOMMU), local
 * (windows of the lender to us), or from another lender (windows of the one to the other). 0,
 * -EINVAL (no such bytes), -ENODEV (one of the two is going), or what is lacking where. */
int lend_peer_map(struct lend_borrow *source, struct k_device *target, unsigned bar,
                  uint64_t offset, uint64_t bytes, enum k_dma_direction direction, uint64_t *dma,
                  struct lend_error *error);
/* [thread] k_dma_unmap_resource(): exactly what was mapped. False: that was not. */
bool lend_peer_unmap(struct lend_borrow *source, uint64_t dma, uint64_t bytes);
/* [thread] The other way round: requests of a local device (its requester ID) get through to the
 * borrowed device's base addresses, or no longer; counted. */
int lend_peer_allow(struct lend_borrow *target, uint16_t requester_id, struct lend_error *error);
void lend_peer_revoke(struct lend_borrow *target, uint16_t requester_id);

/* ---- Looking at it --------------------------------------------------------------------------- */

struct lend_usage { /* entries beyond those that every started host has for itself */
    unsigned windows, outgoing, incoming, connections, lent, borrowed;
    unsigned peers;        /* mappings between devices that are ours: we have borrowed one */
    unsigned peer_entries; /* what lends of ours hold for others' mappings */
    uint64_t exported_bytes, pool_bytes, mapped_pages;
};
struct lend_usage lend_usage(const struct lend_host *host);
struct lend_adapter *lend_adapter_at(struct lend_host *host, unsigned index); /* NULL: none */

#endif
