/*
 * State that the files of device lending share, and their functions, file by file. The messages
 * between hosts are in wire_internal.h.
 *
 * Threads of a host: the server (hellos, requests of peers, link changes), the heartbeat thread,
 * one for each lost connection that undoes what was lent and borrowed along it, and the callers of
 * lending.h. Hard interrupts only wake threads, or signal eventfds.
 *
 * Locks. A connection carries one request at a time (connection->busy). lender_lock guards leases
 * and everything that hangs on them. A request ends when the peer answers or is lost: so neither
 * the server, which answers, nor the heartbeat thread, which declares peers lost, waits for an
 * answer, and no thread does while it holds lender_lock. No two hosts wait for each other.
 */
#ifndef LOGIC_LENDING_LENDING_INTERNAL_H
#define LOGIC_LENDING_LENDING_INTERNAL_H

#include <errno.h>
#include <string.h>

#include "logic/lending/bars.h"
#include "logic/lending/lending.h"
#include "logic/lending/service.h"
#include "logic/lending/wire_internal.h"

/* ---- State ----------------------------------------------------------------------------------- */

struct lend_mutex {
    bool held;
    struct k_wait_queue wait;
};

#define LEND_HOPS_MAX 16u

/* The cluster switches between one of our adapters and a node, nearest first; none: back to
 * back. */
struct lend_route {
    unsigned n;
    uint16_t hop[LEND_HOPS_MAX]; /* nodes */
    uint16_t payload_bytes;      /* largest payload that they all support */
    uint16_t narrowest;          /* the first that supports no more; a node */
};

/* What we hold in the requester table of a cluster switch. */
struct lend_hop {
    struct lend_hop *next;
    struct lend_adapter *adapter;
    uint32_t node;                   /* of the switch */
    uint16_t refs[NTB_OUTGOING_MAX]; /* by outgoing requester of the adapter */
    bool dirty;                      /* the switch could not be told yet */
};

enum lend_connection_state { CONNECTION_OPENING, CONNECTION_UP, CONNECTION_LOST };

/* A counter of a mailbox that a virtual machine's interrupt arrives in. */
struct lend_event {
    bool used;
    struct k_eventfd *eventfd;
    uint64_t seen, waiting; /* waiting: at the last heartbeat */
};

/* A pair of nodes: one of our adapters, and one of another host, which is the connection's peer. */
struct lend_connection {
    struct lend_connection *next;
    struct lend_host *host;
    struct lend_adapter *adapter;
    uint32_t node, peer, incarnation; /* of the peer; `peer` is the number of the host */
    /* The number that each side has given to this connection; the peer's is 0 until it has answered
     * or greeted. A hello with another number ends the connection. */
    uint16_t number, peer_number;
    unsigned peer_adapter;
    enum lend_connection_state state;
    bool ready;                      /* our windows are in place */
    bool rising;                     /* a thread lets the peer's CPUs in */
    bool heard;                      /* the peer has let ours in */
    struct lend_route route;         /* our CPUs have entries along it */
    struct lend_map registers, pool; /* windows to the peer */
    uint16_t cpu_id[8];              /* requester IDs of the peer's CPUs here */
    unsigned n_cpus, n_peer_cpus;    /* let in; it has */
    uint16_t engine_id;     /* requester ID of the peer's DMA engine here, if engine_users > 0 */
    unsigned engine_users;  /* segments of ours that the engine copies from or to */
    unsigned box, peer_box; /* our mailbox for the peer; the peer's mailbox for us */
    unsigned users;         /* leases, borrows, segments, calls under way */
    struct lend_mutex busy;
    struct k_wait_queue reply;
    uint32_t sequence; /* of our last request */
    uint32_t served;   /* of the last request of the peer that was answered */
    uint16_t served_attempt;
    uint32_t
        waiting; /* the peer's request that was not yet served at the last heartbeat; 0: none */
    struct lend_message *answer; /* to that request; sent again if the request is */
    uint64_t heartbeat_sent, heartbeat_seen;
    uint64_t heartbeat_seen_ps;
    struct lend_event event[N_EVENTS]; /* of our mailbox */
    unsigned n_events;                 /* all used ones have a lower index */
};

struct lend_segment {
    struct lend_segment *next;
    uint32_t number;
    uint64_t offset, bytes; /* in the pool */
};

struct lend_doorbell {
    struct lend_host *host;
    struct lend_adapter *adapter;
    unsigned number; /* N_DOORBELLS: a link change */
    struct k_irq *irq;
};

/* A device of this host that peers may borrow. */
struct lend_device {
    struct lend_device *next;
    struct lend_host *host;
    struct k_pci_dev *pci;
    char name[LEND_NAME_BYTES];
    unsigned dma_bits;
    uint16_t pcie_cap, msix_cap, msi_cap; /* offsets of capabilities; 0: absent */
    uint32_t device_control;              /* the register's value before the lease */
    struct lend_bars vf_bars;             /* of a virtual function */
    bool used; /* leased since its last reset, at last by this guest; 0: by a host */
    uint64_t used_by;
    bool resetting;
    bool leaving;             /* it is being removed: not lent any more */
    struct lend_lease *lease; /* NULL: available */
};

/* Peer to peer, at the source's lender: registers of another device that a leased device reaches.
 */
struct lend_mapping {
    struct lend_mapping *next;
    uint32_t number;
    struct lend_lease *target;    /* in our own tree; NULL: reached through a window */
    struct lend_adapter *adapter; /* of the window */
    uint32_t node;
    struct lend_route route;
    int outgoing; /* entry of the source in that adapter; -1: none */
    bool routed;  /* and along the route, as our CPUs have */
    struct lend_map map;
    uint64_t iova, iova_bytes; /* in the source's domain; 0: not mapped */
};

/* Peer to peer, at the target's lender: requesters of another host that may reach a leased device:
 * a device, and the root complexes that may ask in its place. */
#define LEND_REMOTE_IDS 9u
struct lend_remote_requester {
    struct lend_remote_requester *next;
    uint32_t number;
    struct lend_adapter *adapter;
    uint16_t id[LEND_REMOTE_IDS]; /* their requester IDs here */
    unsigned n_ids;
    uint64_t fabric, bytes; /* exported for them; 0: nothing */
};

/* An interrupt of a leased device that is forwarded to a virtual machine of the borrower. */
struct lend_irq {
    struct lend_irq *next;
    struct lend_lease *lease;
    struct k_irq *irq;
    uint16_t index;
    uint32_t event;
    uint64_t count;
};

/* The lender's record of a device that a peer has borrowed, or that the host's service has. */
struct lend_lease {
    struct lend_device *device;
    struct lend_connection *connection; /* NULL: the service's */
    uint32_t number;
    uint64_t guest;                              /* that has it, at the borrower; 0: none */
    int outgoing;                                /* entry of the device in the adapter */
    bool routed;                                 /* and in the switches to the borrower */
    unsigned payload_bytes;                      /* largest of a request of the device */
    unsigned n_ranges;                           /* of the borrower's memory */
    struct lend_map range[LEND_DMA_RANGES], msi; /* windows to the borrower */
    struct k_iommu_domain *domain; /* holds the device alone; NULL: this host has no IOMMU */
    struct lend_ranges iova;       /* of that domain */
    uint64_t dma[LEND_DMA_RANGES], msi_address; /* where the device finds those windows */
    struct msg_range bar[K_PCI_BARS];           /* exported registers */
    struct lend_mapping *mappings;
    struct lend_remote_requester *requesters;
    bool for_vm;
    struct lend_irq *irqs;
};

/* The borrower's record of a device that it has borrowed, and the shadow device. */
struct lend_borrow {
    struct lend_borrow *next;
    struct lend_host *host;
    struct lend_connection *connection; /* NULL: the borrow has ended */
    struct k_pci_dev dev;               /* the shadow device */
    struct msg_opened opened;
    struct msg_open request;
    char name[2 * LEND_NAME_BYTES];
    bool starting, injected, ending;
    unsigned users;         /* threads that end it; it is freed after the last */
    bool open;              /* the lender holds a lease for us */
    struct lend_mdev *mdev; /* not NULL: a virtual machine uses it; it is not in our tree */
    /* Memory. */
    bool translated; /* by our IOMMU: request.range[0] is a range of I/O virtual addresses */
    bool reserved;   /* that range is taken */
    struct lend_pages pages; /* of that range */
    uint64_t mapped_pages;
    uint16_t requester_id; /* of the device here; 0: no entry */
    struct lend_map bar[K_PCI_BARS];
    /* What the shadow keeps of the device's configuration space. */
    uint16_t msi_cap, msix_cap;
    bool msi_64;
    unsigned msix_bar;
    uint64_t msix_offset, msix_bytes; /* of the table */
    struct lend_bars bars;
};

/* Peer to peer, at the borrower: a source and a target, of which one at least is borrowed. */
struct lend_pair {
    struct lend_pair *next;
    struct lend_borrow *source; /* NULL: a local device */
    struct lend_borrow *target; /* NULL: a local device, or a borrow that has ended */
    uint16_t requester_id;      /* of a local source */
    bool busy;                  /* a thread makes or undoes it; others leave it alone */
    uint64_t dma, bytes;
    uint32_t mapping, requester;  /* numbers at the source's and the target's lender; 0: none */
    struct lend_adapter *adapter; /* ours, of the two that follow */
    int outgoing;                 /* entry of a local source; -1: none */
    bool routed;                  /* and in the switches to the target: */
    struct lend_route route;
    uint64_t fabric, fabric_bytes; /* registers of a local target, exported; 0: not */
};

struct lend_host {
    struct kernel *kernel;
    struct lend_options options;
    struct k_pci_driver adapter_driver, lender_driver;
    struct lend_adapter adapter[LEND_ADAPTERS_MAX];
    unsigned n_adapters;
    struct lend_doorbell doorbell[LEND_ADAPTERS_MAX][N_DOORBELLS + 1];
    struct kaddr pool;
    uint64_t pool_fabric[LEND_ADAPTERS_MAX]; /* the pool as each adapter exports it */
    struct lend_ranges pool_space;
    uint8_t *mailbox_used; /* max_peers flags */
    uint32_t incarnation, next_lease, next_mapping;
    uint16_t last_number; /* of a connection */
    struct lend_path *paths;
    unsigned n_paths;
    char not_found[sizeof(((struct lend_error *)0)->text) +
                   2]; /* why the last discovery could not look everywhere; "": it could */
    struct lend_hop *hops;
    struct lend_connection *connections;
    struct lend_segment *segments;
    struct lend_device *devices;
    struct lend_borrow *borrows;
    struct lend_pair *pairs;
    struct lend_mdev *mdevs;
    struct mdev_memory *memories; /* of virtual machines */
    struct lend_mutex lender_lock, connect_lock, mdev_lock;
    struct lend_mutex route_lock; /* of hops; its holder waits for registers of switches only */
    struct k_wait_queue work;     /* of the server */
    struct k_wait_queue settle;   /* of the thread that settles hops, if `settling` */
    bool settling;
    struct k_wait_queue stopped;
    unsigned rung; /* bit per doorbell; N_DOORBELLS: a link change */
    bool started, stopping, dead;
    bool serving; /* the server thread does something */
    unsigned n_threads;
    const struct lend_service_ops *service; /* NULL: none */
    void *service_context;
};

/* ---- connection.c ---------------------------------------------------------------------------- */

/* [thread] */
void lend_lock(struct lend_host *host, struct lend_mutex *mutex);
void lend_unlock(struct lend_host *host, struct lend_mutex *mutex);

/* [thread] Finds the connection along `path`, or opens it. At return the caller is one of its users
 * and owes a lend_connection_put(). 0; -ECONNREFUSED (the peer has no entries left), -ECONNRESET
 * (lost meanwhile), -EHOSTUNREACH, -ENOSPC, -ETIMEDOUT. */
int lend_connect(struct lend_host *host, const struct lend_path *path,
                 struct lend_connection **connection, struct lend_error *error);
/* [thread] Likewise along the best path to the peer. */
int lend_connect_peer(struct lend_host *host, uint32_t peer, struct lend_connection **connection,
                      struct lend_error *error);
/* Ends the caller's use. The last user of a lost connection frees it. */
void lend_connection_put(struct lend_connection *connection);
/* Walks all connections; NULL gives the first. Puts `after` and makes the caller a user of the one
 * it returns, so the walk may sleep. NULL: no more. */
struct lend_connection *lend_connection_next(struct lend_host *host, struct lend_connection *after);
/* [thread] Answers the hellos in the scratchpads. Server only. */
void lend_hellos_answer(struct lend_host *host);
/* [thread] The peer is gone or cannot be reached. At return no request of its CPUs and devices
 * passes any more; a thread of its own revokes its leases and removes the devices that were
 * borrowed from it. Does not wait for peers. Warns with `why`; NULL: the loss was expected. */
void lend_peer_lost(struct lend_connection *connection, const char *why);
/* [thread] Says good-bye to peers that nobody uses; `all`: to every peer. */
void lend_connections_close(struct lend_host *host, bool all);
/* [thread] Exports the pool and writes the host's scratchpads, in every adapter. After an error
 * nothing is published. */
int lend_publish(struct lend_host *host, struct lend_error *error);
void lend_unpublish(struct lend_host *host);

/* Reads a register of another node's NTB or switch, through a window to its registers. */
static inline uint32_t lend_remote_read(struct lend_adapter *adapter, const struct lend_map *map,
                                        uint64_t offset)
{
    return (uint32_t)lend_map_read(adapter, map, offset, 4);
}
static inline uint32_t lend_pad_read(struct lend_adapter *adapter, const struct lend_map *map,
                                     unsigned pad)
{
    return lend_remote_read(adapter, map, NTB_FABRIC_SCRATCHPAD + 4 * pad);
}

/* ---- discovery.c ----------------------------------------------------------------------------- */

/* Like lend_resolve(), but prefers our adapter `own` as well (LEND_ANY: no preference). */
int lend_resolve_by(struct lend_host *host, uint32_t peer, unsigned own, unsigned peer_adapter,
                    struct lend_path *path, struct lend_error *error);

/* ---- route.c --------------------------------------------------------------------------------- */

/* [thread] Finds the switches from our adapter to the node, and takes entries for our CPUs in each.
 * 0; -EHOSTUNREACH: no way; -ENOSPC: a table is full, which the message names. After an error
 * nothing is held, and the route is empty. */
int lend_route_open(struct lend_host *host, struct lend_adapter *adapter, uint32_t node,
                    struct lend_route *route, struct lend_error *error);
/* [thread] Gives back what lend_route_open() took. */
void lend_route_close(struct lend_host *host, struct lend_adapter *adapter,
                      struct lend_route *route);
/* [thread] Takes an entry for outgoing requester `device` in each switch of a route that is open;
 * entries are counted. 0 or -ENOSPC, -EHOSTUNREACH; after an error nothing is held. */
int lend_route_take(struct lend_host *host, struct lend_adapter *adapter,
                    const struct lend_route *route, unsigned device, struct lend_error *error);
/* [thread] The device sends no more. */
void lend_route_give(struct lend_host *host, struct lend_adapter *adapter,
                     const struct lend_route *route, unsigned device);
/* 0; -EMSGSIZE: a switch of the route, which the message names, drops TLPs of `bytes` of
 * payload. */
int lend_route_payload(const struct lend_route *route, unsigned bytes, struct lend_error *error);
/* [thread] 0; -ENOSPC: a table on the way is full; -EHOSTUNREACH: a switch does not answer. The
 * message names the switch. */
int lend_route_full(struct lend_adapter *adapter, const struct lend_route *route,
                    struct lend_error *error);
/* [thread] The same for our CPUs and one switch. */
int lend_hop_open(struct lend_host *host, struct lend_adapter *adapter, uint32_t node,
                  struct lend_error *error);
void lend_hop_close(struct lend_host *host, struct lend_adapter *adapter, uint32_t node);
/* A cable is back: the thread that tells switches what they could not be told tries now. */
void lend_routes_settle(struct lend_host *host);
/* Frees the memory. */
void lend_routes_free(struct lend_host *host);
/* Reads a register of another node; all ones: nobody answers, or there is no window for it. */
uint64_t lend_register_read(struct lend_adapter *adapter, uint32_t node, uint64_t offset,
                            unsigned bytes);

/* ---- mail.c ---------------------------------------------------------------------------------- */

/* [thread] Sends a request, repeats it until its reply comes, which must have reply_bytes (reply
 * NULL if 0), or the connection is lost: a peer that sends heartbeats is waited for, so both sides
 * know afterwards what has been done, or end the connection. Returns the peer's status; negative:
 * the peer's error, -ECONNRESET, or -EPROTO (a reply of another length). */
int lend_call(struct lend_connection *connection, unsigned type, const void *request,
              size_t request_bytes, void *reply, size_t reply_bytes, struct lend_error *error);
/* [thread] What a doorbell's interrupt would have done, which has not come. */
void lend_doorbell_lost(struct lend_host *host, const struct lend_adapter *adapter,
                        unsigned number);
/* The threads; the argument is the struct lend_host. They end when it stops or dies. */
void lend_server(void *host);
void lend_heartbeats(void *host);
/* Rings a doorbell of the peer; writes 8 bytes of its mailbox for us. */
static inline void lend_ring(struct lend_connection *c, unsigned doorbell)
{
    lend_map_write(c->adapter, &c->registers, NTB_FABRIC_DOORBELL, 4, 1u << doorbell);
}
static inline void lend_mailbox_write(struct lend_connection *c, uint64_t offset, uint64_t value)
{
    lend_map_write(c->adapter, &c->pool, (uint64_t)c->peer_box * LEND_MAILBOX_BYTES + offset, 8,
                   value);
}
/* [thread] The peer has let our CPUs in. */
void lend_heartbeat_send(struct lend_connection *c);
/* [thread] Frees what mail.c keeps of a connection. */
void lend_mail_free(struct lend_connection *c);
/* A byte of our mailbox `box`. */
struct kaddr lend_mailbox(const struct lend_host *host, unsigned box, unsigned offset);

/* Answers a request, in the server's thread. `body` has as many bytes as requests of this type
 * have, at any alignment. 0: *bytes of `reply` are the reply; *bytes is 0 at the call. Negative
 * errno: error->text is sent instead. */
typedef int lend_serve_fn(struct lend_connection *connection, unsigned type, const void *body,
                          void *reply, size_t *bytes, struct lend_error *error);
lend_serve_fn lend_serve_segment, lend_serve_dma_engine, lend_serve_borrower;
/* Under lender_lock: */
lend_serve_fn lend_serve_lender, lend_serve_peer, lend_serve_vm, lend_serve_service;
/* Copies n bytes of an answer to `reply`. Returns 0. */
static inline int lend_reply(void *reply, size_t *bytes, const void *answer, size_t n)
{
    memcpy(reply, answer, n);
    *bytes = n;
    return 0;
}
static inline int lend_lease_over(uint32_t number, struct lend_error *error)
{
    return lend_fail(error, -ENOENT, "lease %u is over", number);
}

/* ---- segment.c ------------------------------------------------------------------------------- */

void lend_segments_free(struct lend_host *host);

/* ---- lender.c -------------------------------------------------------------------------------- */

/* Fills in host->lender_driver. */
void lend_lender_init(struct lend_host *host);
/* The device that this host offers under that requester ID, or NULL. */
struct lend_device *lend_device_find(struct lend_host *host, uint16_t id);
void lend_device_info(const struct lend_device *device, struct lend_info *info);
/* Puts the leased device into an IOMMU domain of its own, if this host has an IOMMU, and begins
 * with its addresses. */
int lend_lease_isolate(struct lend_lease *lease, struct lend_error *error);
/* Releases what the lease holds so far, in reverse order, and frees it. The device is quiet. */
void lend_lease_release(struct lend_lease *lease);
/* [thread] Ends all leases of the connection, and resets their devices. */
void lend_lender_lost(struct lend_connection *connection);
/* Waits for resets that are under way, then frees the devices and what is left of their leases. */
void lend_devices_free(struct lend_host *host);
/* The lease that the connection itself holds under this number, or NULL. */
struct lend_lease *lend_lease_find(struct lend_connection *connection, uint32_t number);
/* Index of the adapter on the device's socket; 0 if there is none. */
unsigned lend_near_adapter(const struct lend_device *device);
/* Makes bytes of the lender's tree reachable by the leased device, in whole pages. *dma: where it
 * finds the first: in its IOMMU domain, or, without an IOMMU, at `address` itself. 0; -ERANGE: its
 * address bits do not reach; or an error of k_iommu_map(). */
int lend_lease_map(struct lend_lease *lease, uint64_t address, uint64_t bytes,
                   enum k_dma_direction direction, uint64_t *dma, struct lend_error *error);
/* Likewise at the address `at` exactly, which has the offset of `address` in its page. -EOPNOTSUPP:
 * no IOMMU; -ERANGE: in use or out of reach. */
int lend_lease_map_at(struct lend_lease *lease, uint64_t address, uint64_t bytes,
                      enum k_dma_direction direction, uint64_t at, struct lend_error *error);
/* Undoes either; `dma` as returned, `bytes` as mapped. */
void lend_lease_unmap(struct lend_lease *lease, uint64_t dma, uint64_t bytes);

/* ---- function.c ------------------------------------------------------------------------------ */

/* Sets the function and the offsets of its capabilities. */
void lend_device_init(struct lend_device *device, struct k_pci_dev *pci);
/* Stops the device's DMA and its interrupts. When it returns, everything that the device has sent
 * has arrived. */
void lend_device_quiet(struct lend_device *device);
/* Max_Payload_Size that firmware has set. */
unsigned lend_payload_of(struct k_pci_dev *pci);
/* Limits the device's payloads to what the borrower's tree takes. -EMSGSIZE: the borrower may send
 * larger ones than ours takes. */
int lend_device_payload(struct lend_device *device, unsigned borrower_mps,
                        struct lend_error *error);
/* Decides on a borrower's configuration write. True: drop it (the device's place in the lender's
 * tree is the lender's). False: write *value, which may have been changed. */
bool lend_device_filter(const struct lend_device *device, unsigned offset, unsigned bytes,
                        uint32_t *value);
/* Configuration space as a borrower reads it. */
uint32_t lend_device_read(struct lend_device *device, unsigned offset, unsigned bytes);
/* Restores what lend_device_payload() changed. `forced`, or a virtual function: a thread resets the
 * device as well, if it has function-level reset; device->resetting is set until then. */
void lend_device_restore(struct lend_device *device, bool forced);
/* A lease of `guest` (0: of a host) has ended. */
void lend_device_used(struct lend_device *device, uint64_t guest);
/* Whether the device may go to `guest` (0: to a host) now. If another guest had it last, or a guest
 * is to have what a host had, it is reset first, as lend_device_reset() does it: -EAGAIN until
 * then. A device without function-level reset goes as it is. */
int lend_device_ready(struct lend_device *device, uint64_t guest, struct lend_error *error);
/* The same reset. If the device has a lease when it is over, it keeps its payload size and may send
 * again. -EOPNOTSUPP: it has no function-level reset. */
int lend_device_reset(struct lend_device *device, struct lend_error *error);
/* [thread] The same of a device that has neither a lease nor a host of device lending: of Device
 * Control, it keeps the payload size only. Takes 100 ms; nothing happens if it has no
 * function-level reset. */
void lend_device_reset_now(struct lend_device *device);

/* ---- peer_lender.c --------------------------------------------------------------------------- */

/* A mapping without anything in it. */
struct lend_mapping *lend_mapping_new(struct lend_lease *lease);
/* Makes the source a requester of one of our adapters, as far as the node, and fills in the reply
 * but for `mapping` and `dma`. */
int lend_mapping_reach(struct lend_lease *lease, struct lend_mapping *mapping,
                       const struct lend_path *path, struct msg_peer_opened *reply,
                       struct lend_error *error);
/* Maps bytes of that node, by a window; bytes of our own tree. `at`: as in msg_peer_open. */
int lend_mapping_window(struct lend_lease *lease, struct lend_mapping *mapping,
                        const struct msg_peer_map *request, uint64_t *dma,
                        struct lend_error *error);
int lend_mapping_map(struct lend_lease *lease, struct lend_mapping *mapping, uint64_t address,
                     uint64_t bytes, uint32_t direction, uint64_t at, uint64_t *dma,
                     struct lend_error *error);
/* [thread] Undoes and frees a mapping. All five: under lender_lock. */
void lend_mapping_drop(struct lend_lease *lease, struct lend_mapping *mapping);
/* [thread] Undoes the mappings and requesters of the lease, and mappings of other leases whose
 * target it is. Under lender_lock. */
void lend_mappings_release(struct lend_lease *lease);
/* Frees their memory; the host is dead. */
void lend_mappings_free(struct lend_lease *lease);

/* ---- mdev_lender.c --------------------------------------------------------------------------- */

/* [thread] Frees the device's interrupts and unmaps the virtual machine's memory. Under
 * lender_lock. */
void lend_vm_release(struct lend_lease *lease);
/* Frees the memory of both; the host is dead. */
void lend_vm_free(struct lend_lease *lease);

/* ---- borrower.c ------------------------------------------------------------------------------ */

/* [thread] No request of devices that were borrowed along the connection passes any more. */
void lend_borrower_block(struct lend_connection *connection);
/* [thread] Ends all borrows of the connection; their devices are gone. */
void lend_borrower_lost(struct lend_connection *connection);
void lend_borrows_return(struct lend_host *host);
/* Frees their memory; the host is dead. */
void lend_borrows_free(struct lend_host *host);
/* [thread] Like lend_borrow(), for virtual machine `guest`: the device does not appear in our
 * tree. */
int lend_borrow_vm(struct lend_host *host, uint32_t peer, uint16_t id, struct lend_mdev *mdev,
                   uint64_t guest, struct lend_borrow **borrow, struct lend_error *error);

/* ---- shadow.c -------------------------------------------------------------------------------- */

extern const struct k_pci_ops lend_shadow_ops;
extern const struct k_dma_ops lend_shadow_dma_ops;
/* [thread] Reads from the device which base addresses and interrupt messages the shadow has to
 * translate. */
void lend_shadow_init(struct lend_borrow *borrow);

/* ---- peer.c ---------------------------------------------------------------------------------- */

/* Like lend_peer_map(), at the address `at` exactly; 0: anywhere. */
int lend_peer_map_at(struct lend_borrow *source, struct k_device *target, unsigned bar,
                     uint64_t offset, uint64_t bytes, enum k_dma_direction direction, uint64_t at,
                     uint64_t *dma, struct lend_error *error);
/* [thread] The borrow ends: undoes every pair that it is part of. */
void lend_pairs_release(struct lend_borrow *borrow);
/* Frees their memory; the host is dead. */
void lend_pairs_free(struct lend_host *host);

/* ---- mdev.c ---------------------------------------------------------------------------------- */

/* Hard interrupt: signals the eventfds of mailbox counters that have changed. */
void lend_events(struct lend_host *host, const struct lend_adapter *adapter);
/* The lender has taken the device back, or is gone; the virtual machine finds it gone. */
void lend_mdev_lost(struct lend_mdev *mdev);
/* The mdev's borrow is about to be freed. */
void lend_mdev_returned(struct lend_mdev *mdev);
void lend_mdevs_free(struct lend_host *host);

#endif
