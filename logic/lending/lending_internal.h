/*
 * What the files of device lending share.
 *
 * Threads of a host: the server (greetings, requests of peers, changes of the link), the watch
 * (signs of life), and whoever calls. Locks: a connection has at most one request under way
 * (connection->busy); lender_lock guards the lends and is never held while a peer is asked for
 * something, so no two hosts wait for each other.
 */
#ifndef LOGIC_LENDING_LENDING_INTERNAL_H
#define LOGIC_LENDING_LENDING_INTERNAL_H

#include <errno.h>

#include "logic/lending/lending.h"

/* ---- What a host shows in the scratchpads of each of its bridges ----------------------------- */
#define LEND_MAGIC 0x4c454e44u
enum {
    PAD_MAGIC,
    PAD_HOST,
    PAD_SHAPE,       /* index of the adapter 7:0, CPUs in its table 15:8 */
    PAD_INCARNATION, /* another one after each start */
    PAD_POOL_LOW,
    PAD_POOL_HIGH,
    PAD_POOL_BYTES,
    PAD_HELLO,    /* N_HELLOS: words of those who want to connect */
    PAD_ACK = 11, /* the answer to our own */
};
#define N_HELLOS 4u
/* A word of greeting: node 31:16, mailbox of the receiver in the sender's pool 15:4, what 3:0. */
enum { HELLO_CONNECT = 1, HELLO_BYE = 2, HELLO_REFUSED = 3 };
#define HELLO(node, mailbox, what) ((uint32_t)(node) << 16 | (uint32_t)(mailbox) << 4 | (what))

enum { BELL_HELLO, BELL_REQUEST, BELL_REPLY, BELL_EVENT, N_BELLS };

/* ---- Mailboxes ------------------------------------------------------------------------------- */

#define BOX_BEAT    0u  /* 8 bytes: the peer lives as long as it changes */
#define BOX_REQUEST 64u /* of the peer */
#define BOX_REPLY   576u
#define BODY_BYTES  448u
#define BOX_EVENTS \
    1088u /* 8 bytes each: interrupts of a device of the peer's, counted by the peer */
#define N_EVENTS 120u

enum {
    MSG_LIST = 1,
    MSG_OPEN,
    MSG_CLOSE,
    MSG_CONFIG_READ,
    MSG_CONFIG_WRITE,
    MSG_RECLAIM,
    MSG_SEGMENT,
    MSG_PEER_OPEN, /* of the source's lender */
    MSG_PEER_MAP,
    MSG_PEER_CLOSE,
    MSG_PEER_ADMIT, /* of the target's lender */
    MSG_PEER_DISMISS,
    MSG_VM_MAP, /* of the lender of a device that a guest has */
    MSG_VM_UNMAP,
    MSG_VM_IRQ,
    MSG_REQUESTER
};

/* Written body first, then status, then the word that begins with the sequence number. */
struct lend_head {
    uint32_t sequence; /* 0: none yet */
    uint16_t type, bytes;
    int32_t status; /* of a reply; negative: the body is text */
    uint32_t zero;
};
_Static_assert(sizeof(struct lend_head) == 16, "two words of 8 bytes");
_Static_assert(BOX_REPLY + sizeof(struct lend_head) + BODY_BYTES <= BOX_EVENTS, "no overlap");
_Static_assert(BOX_EVENTS + 8 * N_EVENTS <= LEND_MAILBOX_BYTES, "fits");
_Static_assert(BOX_REQUEST + sizeof(struct lend_head) + BODY_BYTES <= BOX_REPLY, "no overlap");

struct msg_range {
    uint64_t fabric, bytes;
};
struct msg_open { /* MSG_OPEN */
    uint16_t id;
    uint16_t mps_bytes; /* of the borrower's tree */
    uint32_t n_ranges;  /* 0: for a guest, whose memory comes later (MSG_VM_MAP) */
    struct msg_range
        range[LEND_DMA_RANGES]; /* that the device shall reach, as the fabric sees it */
};
struct msg_opened {
    uint32_t lend;             /* number of the lend */
    uint16_t device, function; /* as requester on the fabric */
    uint16_t vendor_id, device_id;
    uint32_t class_code;
    uint64_t dma[LEND_DMA_RANGES]; /* the ranges, as the device sees them */
    uint64_t msi;                  /* what the device writes to for 0xfee00000 of the borrower */
    struct msg_range bar[K_PCI_BARS];
    char name[LEND_NAME_BYTES];
};
struct msg_config { /* MSG_CONFIG_*, MSG_CLOSE and MSG_RECLAIM (lend alone) */
    uint32_t lend;
    uint16_t offset, bytes;
    uint32_t value, zero;
};

struct msg_peer_open { /* MSG_PEER_OPEN */
    uint32_t lend;     /* of the source */
    uint32_t host;     /* where the target is */
    uint32_t adapter;  /* of that host, best */
    uint32_t target;   /* lend of the target, if host is the lender itself; and then: */
    uint32_t bar, direction;
    uint64_t offset, bytes;
    uint64_t at; /* the address that the source shall find them at; 0: any */
};
struct msg_peer_opened {
    uint32_t peer;             /* number */
    uint32_t adapter;          /* of the target's host, that the way leads to */
    uint32_t node;             /* of ours on that fabric */
    uint16_t device, function; /* the source there */
    uint32_t n_cpus;           /* our root complexes are devices 0 .. n_cpus - 1 */
    uint32_t zero;
    uint64_t dma; /* if host is the lender itself */
};
struct msg_peer_map { /* MSG_PEER_MAP: its answer is the address for DMA; MSG_PEER_CLOSE */
    uint32_t lend, peer;
    uint32_t direction, zero;
    uint64_t fabric, bytes; /* at the target's host */
    uint64_t at;            /* as above */
};
struct msg_peer_admit { /* MSG_PEER_ADMIT */
    uint32_t lend;      /* of the target */
    uint32_t adapter;   /* LEND_ANY: the one by which it is lent */
    uint32_t node;      /* of the source's host */
    uint16_t device, function;
    uint32_t n_cpus;
    uint32_t bar;
    uint64_t offset, bytes; /* 0: they need not be exported */
};
struct msg_peer_admitted {
    uint32_t guest, zero; /* number */
    uint64_t fabric;      /* of the bytes, by that adapter */
};
struct msg_vm_map { /* MSG_VM_MAP; MSG_VM_UNMAP: all of them */
    uint32_t lend, zero;
    uint64_t guest;         /* guest-physical: what the device is to say */
    uint64_t fabric, bytes; /* at the borrower */
};
struct msg_vm_irq { /* MSG_VM_IRQ */
    uint32_t lend;
    uint16_t index, on;   /* of the device's MSI-X table */
    uint32_t event, zero; /* of the borrower's mailbox for us */
};
struct msg_peer_dismiss { /* MSG_PEER_DISMISS */
    uint32_t lend, guest;
};
struct msg_requester {         /* MSG_REQUESTER: the caller's DMA engine may come in, or no more */
    uint16_t device, function; /* as requester on the fabric */
    uint32_t admit;
};

#define MSI_BASE  UINT64_C(0xfee00000) /* where messages of interrupts go, in every host */
#define MSI_BYTES UINT64_C(0x100000)

/* ---- State ----------------------------------------------------------------------------------- */

struct lend_mutex {
    bool held;
    struct k_wait_queue wait;
};

enum lend_state { CONNECTION_GREETING, CONNECTION_UP, CONNECTION_LOST };

struct lend_event {
    bool used;
    struct k_eventfd *eventfd;
    uint64_t seen;
};

struct lend_connection {
    struct lend_connection *next;
    struct lend_host *host;
    struct lend_adapter *adapter;
    uint32_t node, peer, incarnation;
    unsigned peer_adapter;
    enum lend_state state;
    bool ready;                      /* our side is set up */
    struct lend_map registers, pool; /* of the peer */
    uint16_t cpu_id[8];              /* the peer's CPUs, as they appear here */
    unsigned n_cpus;
    uint16_t engine_id;     /* the peer's DMA engine, likewise, while there are: */
    unsigned engine_users;  /* segments of ours that it copies to or from */
    unsigned box, peer_box; /* our mailbox for the peer; the peer's for us */
    unsigned users;         /* lends, borrows, segments, requests under way */
    struct lend_mutex busy;
    struct k_wait_queue reply;
    uint32_t sequence;         /* of our last request */
    uint32_t served;           /* of the peer's */
    uint64_t beat, heard_beat; /* sent, seen last */
    uint64_t heard_ps;
    struct lend_event event[N_EVENTS]; /* of our mailbox */
    unsigned n_events;                 /* beyond the last that was ever used */
};

struct lend_segment {
    struct lend_segment *next;
    uint32_t number;
    uint64_t offset, bytes; /* in the pool */
};

struct lend_bell {
    struct lend_host *host;
    struct lend_adapter *adapter;
    unsigned number;
    struct k_irq *irq;
};

struct lend_device { /* of ours, to be lent */
    struct lend_device *next;
    struct lend_host *host;
    struct k_pci_dev *pci;
    char name[LEND_NAME_BYTES];
    unsigned dma_bits;
    uint16_t pcie_cap, msix_cap, msi_cap; /* 0: none */
    uint32_t device_control;              /* before it was lent */
    bool resetting;
    struct lend *lend; /* NULL: nobody has it */
};

/* Registers of another device that a device of ours reaches while it is lent. */
struct lend_peer {
    struct lend_peer *next;
    uint32_t number;
    struct lend *target;          /* in our tree; NULL: by a bridge */
    struct lend_adapter *adapter; /* of that bridge */
    uint32_t node;
    int outgoing;
    struct lend_map map;
    uint64_t iova, iova_bytes; /* 0: none */
};
/* Requesters of another host that reach a device of ours while it is lent: a device, and the root
 * complexes that may ask in its place. */
#define LEND_GUEST_IDS 9u
struct lend_guest {
    struct lend_guest *next;
    uint32_t number;
    struct lend_adapter *adapter;
    uint16_t id[LEND_GUEST_IDS];
    unsigned n_ids;
    uint64_t fabric, bytes; /* exported for it; 0: nothing */
};

/* An interrupt of a device of ours that goes on to a guest of another host. */
struct lend_irq {
    struct lend_irq *next;
    struct lend *lend;
    struct k_irq *irq;
    uint16_t index;
    uint32_t event;
    uint64_t count;
};

struct lend {
    struct lend_device *device;
    struct lend_connection *connection;
    uint32_t number;
    int outgoing;
    unsigned n_ranges;
    struct lend_map range[LEND_DMA_RANGES], msi;
    struct k_iommu_domain *domain; /* the device's while it is lent */
    struct lend_ranges iova;
    uint64_t dma[LEND_DMA_RANGES], msi_address;
    struct msg_range bar[K_PCI_BARS];
    struct lend_peer *peers;
    struct lend_guest *guests;
    bool for_vm;
    struct lend_irq *irqs;
};

struct lend_switch {
    unsigned adapter; /* of ours that it is reached by */
    uint32_t node;
};

struct lend_host {
    struct kernel *kernel;
    struct lend_options options;
    struct k_pci_driver bridge, lender;
    struct lend_adapter adapter[LEND_ADAPTERS_MAX];
    unsigned n_adapters;
    struct lend_bell bell[LEND_ADAPTERS_MAX][N_BELLS + 1];
    struct kaddr pool;
    uint64_t pool_fabric[LEND_ADAPTERS_MAX];
    struct lend_ranges pool_space;
    uint8_t *box_used;
    uint32_t incarnation, next_lend, next_peer;
    struct lend_path *path;
    unsigned n_paths;
    struct lend_switch *chip; /* between bridges */
    unsigned n_switches;
    bool discovered;
    struct lend_connection *connections;
    struct lend_segment *segments;
    struct lend_device *devices;
    struct lend_borrow *borrows;
    struct lend_pair *pairs;
    struct lend_mdev *mdevs;
    struct mdev_memory *memories; /* of guests */
    struct lend_mutex lender_lock, connect_lock, mdev_lock;
    struct k_wait_queue work; /* of the server */
    struct k_wait_queue stopped;
    unsigned rung; /* bit per bell; N_BELLS: the link */
    bool started, stopping, dead;
    unsigned n_threads;
};

void lend_lock(struct lend_host *host, struct lend_mutex *mutex);
void lend_unlock(struct lend_host *host, struct lend_mutex *mutex);

/* Registers of another node's bridge or switch, through a window. */
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
/* A device of ours sends no more: switches give its entries back. */
void lend_switches_forget(struct lend_host *host, const struct lend_adapter *adapter,
                          unsigned device);

/* lend_resolve(), best by our adapter `own` (LEND_ANY: none is better). */
int lend_resolve_by(struct lend_host *host, uint32_t peer, unsigned own, unsigned peer_adapter,
                    struct lend_path *path, struct lend_error *error);

/* ---- cluster.c ------------------------------------------------------------------------------- */
/* [thread] The connection by this way, made if there is none; the caller is a user of it. */
int lend_connect(struct lend_host *host, const struct lend_path *path,
                 struct lend_connection **connection, struct lend_error *error);
/* One user less. */
void lend_connection_put(struct lend_connection *connection);
/* All connections in turn: NULL gives the first; the caller is a user of the one that it has. */
struct lend_connection *lend_connection_next(struct lend_host *host, struct lend_connection *after);
/* Server: greetings in the scratchpads. */
void lend_greetings(struct lend_host *host);
/* The peer is gone, or not to be reached: lends are taken back, borrowed devices vanish. why: NULL
 * if that is no surprise. */
void lend_peer_lost(struct lend_connection *connection, const char *why);
/* Good-bye to peers that nobody uses; all: to all. */
void lend_connections_drop(struct lend_host *host, bool all);
int lend_bridges_show(struct lend_host *host, struct lend_error *error);
void lend_bridges_hide(struct lend_host *host);

/* ---- mail.c ---------------------------------------------------------------------------------- */
/* [thread] A request and its reply. reply_bytes: how many the caller has room for and expects. 0 or
 * more: the peer's status; negative: its error or -ETIMEDOUT, -ENOLINK, -ECONNRESET. */
int lend_call(struct lend_connection *connection, unsigned type, const void *request,
              size_t request_bytes, void *reply, size_t reply_bytes, struct lend_error *error);
void lend_serve(struct lend_host *host); /* all requests that are there */
void lend_server(void *host);            /* the threads */
void lend_watch(void *host);
struct kaddr lend_box(const struct lend_host *host, unsigned box, unsigned offset);

/* ---- segment.c, dma.c, lender.c, borrower.c
 * ----------------------------------------------------------
 */
/* Serve one request: body in, body out; returns the status, *bytes of the reply's body. Errors go
 * to error. */
int lend_serve_segment(struct lend_connection *connection, const void *body, size_t n, void *reply,
                       size_t *bytes, struct lend_error *error);
int lend_serve_lender(struct lend_connection *connection, unsigned type, const void *body, size_t n,
                      void *reply, size_t *bytes, struct lend_error *error);
int lend_serve_borrower(struct lend_connection *connection, const void *body, size_t n,
                        struct lend_error *error);
int lend_serve_requester(struct lend_connection *connection, const void *body, size_t n,
                         struct lend_error *error);
void lend_segments_free(struct lend_host *host);
void lend_lender_lost(struct lend_connection *connection);
void lend_borrower_lost(struct lend_connection *connection);
void lend_lender_init(struct lend_host *host);
void lend_devices_free(struct lend_host *host);
void lend_borrows_return(struct lend_host *host);
void lend_borrows_free(struct lend_host *host); /* of a dead host: memory only */

/* The adapter on the device's socket, else the first. */
unsigned lend_near_adapter(const struct lend_device *device);
/* Whole pages of the lender's tree, at an address that the device can reach: in its domain, or that
 * address itself. */
int lend_show(struct lend *lend, uint64_t address, uint64_t bytes, enum k_dma_direction direction,
              uint64_t *dma, struct lend_error *error);
/* The same, at this very address of its domain. */
int lend_show_at(struct lend *lend, uint64_t address, uint64_t bytes,
                 enum k_dma_direction direction, uint64_t at, struct lend_error *error);
/* What was shown in its domain. */
void lend_hide(struct lend *lend, uint64_t dma, uint64_t bytes);

/* ---- mdev_lend.c ----------------------------------------------------------------------------- */
/* The peer's own lend, or NULL. */
struct lend *lend_of(struct lend_connection *connection, uint32_t number);
int lend_serve_vm(struct lend_connection *connection, unsigned type, const void *body, size_t n,
                  struct lend_error *error);
/* The device's interrupts go nowhere; the guest's memory is shown no more. */
void lend_vm_end(struct lend *lend);
void lend_vm_free(struct lend *lend); /* of a dead host: memory only */

/* ---- mdev.c ---------------------------------------------------------------------------------- */
/* Hard interrupt: lenders have written to our mailboxes that devices have raised interrupts. */
void lend_events(struct lend_host *host, const struct lend_adapter *adapter);
/* The device does not answer any more: it has been taken back, or the lender is gone. */
void lend_mdev_lost(struct lend_mdev *mdev);
/* Its borrow is freed. */
void lend_mdev_returned(struct lend_mdev *mdev);
void lend_mdevs_free(struct lend_host *host);

/* ---- peer_lend.c: under lender_lock ---------------------------------------------------------- */
int lend_serve_peer(struct lend_connection *connection, unsigned type, const void *body, size_t n,
                    void *reply, size_t *bytes, struct lend_error *error);
/* All that the lend holds for mappings between devices, and mappings that others have of it. */
void lend_peers_end(struct lend *lend);
void lend_peers_free(struct lend *lend); /* of a dead host: memory only */

/* ---- peer.c ---------------------------------------------------------------------------------- */
struct lend_borrow;
/* A device that we have borrowed and another one. */
struct lend_pair {
    struct lend_pair *next;
    struct lend_borrow *source; /* NULL: a local device */
    struct lend_borrow *target; /* NULL: a local device, or it has gone */
    uint16_t requester_id;      /* of a local source */
    bool busy;                  /* it is being made */
    uint64_t dma, bytes;
    uint32_t peer, guest;          /* at the source's lender, at the target's; 0: none */
    struct lend_adapter *adapter;  /* ours, of what follows */
    int outgoing;                  /* of a local source; -1: none */
    uint64_t fabric, fabric_bytes; /* of a local target, exported; 0: not */
};
/* lend_peer_map(), at this very address; 0: at any. */
int lend_peer_map_at(struct lend_borrow *source, struct k_device *target, unsigned bar,
                     uint64_t offset, uint64_t bytes, enum k_dma_direction direction, uint64_t at,
                     uint64_t *dma, struct lend_error *error);
/* The borrow ends: what it reaches and what reaches it. */
void lend_pairs_end(struct lend_borrow *borrow);
void lend_pairs_free(struct lend_host *host); /* of a dead host: memory only */

/* ---- borrower.c, shadow.c -------------------------------------------------------------------- */

struct lend_borrow {
    struct lend_borrow *next;
    struct lend_host *host;
    struct lend_connection *connection; /* NULL: it is over */
    struct k_pci_dev dev;               /* the shadow device */
    struct msg_opened opened;
    struct msg_open request;
    char name[2 * LEND_NAME_BYTES];
    bool starting, injected, ending;
    bool open;              /* the lender holds a lend for us */
    struct lend_mdev *mdev; /* a guest's: it is not in our tree */
    /* Memory. */
    bool translated;         /* by our IOMMU: request.range[0] is a range of our own addresses */
    bool reserved;           /* that range is taken */
    struct lend_pages pages; /* of it */
    uint64_t mapped_pages;
    uint16_t requester_id; /* what the device appears as here; 0: no entry */
    struct lend_map bar[K_PCI_BARS];
    /* What the shadow knows of the device's configuration space. */
    uint16_t msi_cap, msix_cap;
    bool msi_64;
    unsigned msix_bar;
    uint64_t msix_offset, msix_bytes; /* of the table */
    bool bar_64[K_PCI_BARS];
    uint32_t bar_flags[K_PCI_BARS];
    uint32_t bar_written[K_PCI_BARS]; /* what software wrote there last */
};

/* [thread] Borrows for a guest: the device does not appear in our tree. */
int lend_borrow_vm(struct lend_host *host, uint32_t peer, uint16_t id, struct lend_mdev *mdev,
                   struct lend_borrow **borrow, struct lend_error *error);

extern const struct k_pci_ops lend_shadow_ops;
extern const struct k_dma_ops lend_shadow_dma_ops;
/* [thread] Looks for what has to be intercepted. */
void lend_shadow_init(struct lend_borrow *borrow);

/* ---- function.c ------------------------------------------------------------------------------ */
/* It sends nothing any more: neither data nor interrupts. Its answer to the last read comes behind
 * what it had sent before. */
void lend_device_quiet(struct lend_device *device);
/* The device may send no payload that the borrower's tree does not take; -EMSGSIZE if the borrower
 * may send what ours does not. */
int lend_device_payload(struct lend_device *device, unsigned borrower_mps,
                        struct lend_error *error);
/* What a borrower may not write: the device's place in the lender's tree. True: drop it. */
bool lend_device_filter(const struct lend_device *device, unsigned offset, unsigned bytes,
                        uint32_t *value);
/* As it was before it was lent; forced: a thread resets it, if it can be reset. */
void lend_device_restore(struct lend_device *device, bool forced);

#endif
