/*
 * State that the files of SISCI share, and their functions, file by file. The messages between
 * hosts are in wire_internal.h.
 *
 * Two halves. The *user's* half (process.c, remote.c, device.c, window.c) is what this host's
 * processes hold; it asks, and waits for answers. The *owner's* half (segment.c, owner.c, lender.c,
 * group.c) is what this host answers for: its segments, its devices. If both are this host, the
 * user's half calls the owner's without a message.
 *
 * Locks. The owner's half is guarded by the lender's lock of device lending; nobody waits for
 * another host while he holds it. What belongs to a process is guarded by the process's lock, which
 * is taken first and may be held while waiting for other hosts. The server takes no process's lock:
 * it sets flags, and the process's own thread does the rest. That thread runs the callbacks,
 * without locks.
 */
#ifndef LOGIC_SISCI_SISCI_INTERNAL_H
#define LOGIC_SISCI_SISCI_INTERNAL_H

#include <errno.h>
#include <string.h>

#include "logic/lending/service.h"
#include "logic/sisci/wire_internal.h"

#define SISCI_REMOTE_IDS 9u /* a device, and root complexes that may ask in its place */

/* ---- The owner's half ------------------------------------------------------------------------ */

/* A segment as one adapter shows it to the fabric. Users: that it is prepared; links; grants. */
struct sisci_export {
    bool prepared, exported;
    unsigned users;
    uint64_t fabric;
};

struct sisci_segment {
    struct sisci_segment *next; /* of the driver */
    struct sisci *sisci;
    struct sisci_process *process; /* NULL: of a borrower of our device, or of nobody */
    bool numbered;                 /* else it is a BAR that somebody has connected to */
    uint32_t number;
    uint64_t address, bytes; /* host-physical; of memory, or of registers */
    bool owned;              /* the memory is the segment's */
    struct k_pci_dev *pci;   /* not NULL: its BAR */
    unsigned bar;
    /* It is at this host; if that is not ours, it is a device that we have borrowed, and: */
    uint32_t host;
    uint16_t id;
    uint64_t bar_offset;
    struct sisci_export at[LEND_ADAPTERS_MAX];
    unsigned n_links, n_grants, n_windows; /* users; the last: of devices in our own tree */
    bool dying;                            /* freed with its last user */
    sisci_segment_fn *changed;
    void *context;
    uint32_t group_host, group; /* subscribed to; group_host 0: to none */
    unsigned group_adapter;
    struct lend_connection *group_connection; /* to that host; NULL: it is ours, or was lost */
};

/* A host is connected to a segment of ours. */
struct sisci_link {
    struct sisci_link *next;
    struct sisci_segment *segment;
    struct lend_connection *connection; /* NULL: a process of this host */
    uint32_t number, remote;            /* the latter: of the connected host */
};
/* A device of another host reaches a segment of ours. */
struct sisci_grant {
    struct sisci_grant *next;
    struct sisci_segment *segment;
    struct lend_connection *connection; /* by which it was asked for; NULL: by ourselves */
    uint32_t number, node;
    unsigned adapter;
    uint16_t id[SISCI_REMOTE_IDS]; /* requester IDs here */
    unsigned n_ids;
};

/* A device of ours that is borrowed. */
struct sisci_lent {
    struct sisci_lent *next;
    struct lend_lease *lease;
    uint16_t id;
    bool unclean; /* a borrower was lost: the device is reset when the last is gone */
    struct sisci_borrower *borrowers;
    struct sisci_entry *entries;
};
struct sisci_borrower {
    struct sisci_borrower *next;
    struct sisci_lent *lent;
    uint32_t number, host, incarnation; /* the latter: of the host */
    uint32_t key;                       /* of its request */
    bool exclusive;
    struct sisci_mapping *mappings;
};
/* A window of a device, at its lender. */
struct sisci_mapping {
    struct sisci_mapping *next;
    uint32_t number;
    struct lend_connection *connection; /* by which it was asked for; NULL: by ourselves */
    struct lend_mapping *mapping;
    struct sisci_segment *segment; /* of our own; NULL: another host's */
};
/* A segment of a device. */
struct sisci_entry {
    struct sisci_entry *next;
    struct sisci_borrower
        *borrower; /* NULL: it is gone, and the memory waits for the device's end */
    uint32_t number, host, segment;
    uint32_t key; /* of the request */
    bool shared;
    struct sisci_segment *memory; /* of ours; NULL: it is at `host` */
};

#define SISCI_SWITCH_PORTS 64u

/* A multicast group that this host administers. */
struct sisci_group_state {
    struct sisci_group_state *next;
    struct sisci_process *process;
    uint32_t number, log2;
    struct lend_switches switches;
    /* How many subscribers are behind a port of a switch; the port sends the group if any is. */
    uint16_t behind[LEND_SWITCHES_MAX][SISCI_SWITCH_PORTS];
    struct sisci_member *members;
};
struct sisci_member {
    struct sisci_member *next;
    struct lend_connection *connection; /* NULL: this host */
    uint32_t node;
    uint8_t port[LEND_SWITCHES_MAX]; /* of each switch, towards the node */
};

struct sisci {
    struct lend_host *host;
    struct kernel *kernel;
    uint32_t id;
    uint32_t last_number, last_segment;
    struct sisci_segment *segments;
    struct sisci_link *links;
    struct sisci_grant *grants;
    struct sisci_lent *lents;
    struct sisci_group_state *groups;
    struct sisci_process *processes;
    /* By adapter: what it receives, and where that arrives. */
    struct sisci_overlay {
        uint64_t receive; /* groups; 0: it has no overlay */
        uint32_t log2;    /* of their size */
        uint64_t base;    /* I/O virtual, of all groups; unused without an IOMMU */
    } overlay[LEND_ADAPTERS_MAX];
};

/* ---- The user's half ------------------------------------------------------------------------- */

/* An event of a local segment that its process is to hear of. */
struct sisci_report {
    struct sisci_report *next;
    struct sisci_segment *segment;
    enum sisci_event event;
    uint32_t host;
};

struct sisci_process {
    struct sisci_process *next;
    struct sisci *sisci;
    bool locked;
    struct k_wait_queue lock_wait;
    struct k_wait_queue work, stopped;
    bool busy; /* there is something to report */
    bool to_be_woken, stopping, running;
    struct k_thread *thread;      /* that reports */
    const void *reporting;        /* the object whose callback runs; NULL: none does */
    struct k_wait_queue reported; /* it has returned */
    struct sisci_report *reports; /* oldest first */
    struct sisci_remote *remotes;
    struct sisci_device *devices;
};

struct sisci_remote {
    struct sisci_remote *next;
    struct sisci_process *process;
    uint32_t number, host, link;
    struct wire_segment segment;
    struct lend_connection *connection; /* NULL: this host, or lost and let go */
    struct sisci_segment *local;        /* of this host */
    uint64_t fabric, bytes;
    struct sisci_map *maps;
    unsigned n_windows;
    struct sisci_device *device; /* whose BAR or segment it is; NULL */
    bool lost;
    unsigned pending; /* events to report, 1 << enum sisci_event */
    sisci_remote_fn *changed;
    void *context;
};

/* A segment that was allocated here for a device. */
struct sisci_own_segment {
    struct sisci_own_segment *next;
    struct sisci_segment *segment;
    uint32_t number; /* among the device's */
};

struct sisci_device {
    struct sisci_device *next;
    struct sisci_process *process;
    struct sisci_device_info info;
    struct lend_connection *connection; /* to the lender; NULL: this host, or lost */
    uint32_t borrower, incarnation;     /* number of the borrow there; of the lender */
    bool exclusive, lost;
    bool pending;  /* a connection has ended, or its link is down: there may be another */
    bool reported; /* that it is lost */
    unsigned n_remotes;
    struct sisci_window *windows;
    struct sisci_own_segment *segments;
    sisci_device_fn *changed;
    void *context;
};

/* ---- driver.c -------------------------------------------------------------------------------- */

/* The documented code for a negative errno; SISCI_OK for 0. */
enum sisci_error sisci_error_of(int status);
/* [thread] Sends a request to the host at the other end, or has it answered by this host if
 * `connection` is NULL. As lend_service_call(). */
int sisci_ask(struct sisci *sisci, struct lend_connection *connection, const void *request,
              size_t request_bytes, void *reply, size_t reply_bytes, struct lend_error *error);
/* [thread] A connection to the host, by our adapter; *connection is NULL for this host. The caller
 * owes a sisci_put(). */
int sisci_reach(struct sisci *sisci, uint32_t host, unsigned adapter,
                struct lend_connection **connection, struct lend_error *error);
/* [thread] Lets the connection go, unless it is NULL. *connection is NULL before anything else
 * runs. */
void sisci_put(struct lend_connection **connection);
static inline int sisci_answer(void *reply, size_t *bytes, const void *answer, size_t n)
{
    memcpy(reply, answer, n);
    *bytes = n;
    return 0;
}
/* The index of an adapter that there is; -ENODEV. */
int sisci_adapter_check(const struct sisci *sisci, unsigned adapter, struct lend_error *error);

/* ---- owner.c: links and grants; under the lender's lock -------------------------------------- */

typedef int sisci_serve_fn(struct sisci *sisci, struct lend_connection *connection,
                           const void *body, void *reply, size_t *bytes, struct lend_error *error);
sisci_serve_fn sisci_serve_connect, sisci_serve_disconnect, sisci_serve_grant, sisci_serve_revoke;
/* Drops what the peer at the other end has of our segments. */
void sisci_owner_lost(struct sisci *sisci, struct lend_connection *connection);
/* [thread] At return no request of the peer's devices passes any more, by the path that has ended.
 * Takes the lock itself. */
void sisci_owner_cut(struct sisci *sisci, struct lend_connection *connection);
/* Finds a segment for `connection`, or makes one of a BAR. NULL: there is none, or it is not for
 * that host. */
struct sisci_segment *sisci_segment_named(struct sisci *sisci, struct lend_connection *connection,
                                          const struct wire_segment *name,
                                          struct lend_error *error);
/* Frees the segment if it has no user and is dying, or is an unused BAR. */
void sisci_segment_release(struct sisci_segment *segment);
/* Makes the segment reachable through an adapter; users are counted. */
int sisci_export_get(struct sisci_segment *segment, unsigned adapter, struct lend_error *error);
void sisci_export_put(struct sisci_segment *segment, unsigned adapter);

/* ---- segment.c ------------------------------------------------------------------------------- */

/* Under the lender's lock. A number of 0: any that is free. `at` 0: allocates memory on `node`. */
struct sisci_segment_options {
    uint32_t number;
    uint64_t at, bytes;
    int node;
};
int sisci_segment_new(struct sisci *sisci, const struct sisci_segment_options *options,
                      struct sisci_segment **segment, struct lend_error *error);
/* Memory with any free number, exported by every adapter; and its end: freed with its last user. */
int sisci_segment_new_exported(struct sisci *sisci, uint64_t bytes, int node,
                               struct sisci_segment **segment, struct lend_error *error);
void sisci_memory_end(struct sisci_segment *segment);
struct sisci_segment *sisci_segment_find(const struct sisci *sisci, uint32_t number);
/* [thread] Tells all that are connected, and waits until none is, but not longer than reclaim_ps.
 * Takes and leaves the process's lock unless it is NULL. True: none is. */
bool sisci_segment_withdraw(struct sisci_segment *segment, struct sisci_process *process);
/* [thread] Ends a segment, whoever uses it: its memory is freed with the last user. */
void sisci_segment_end(struct sisci_segment *segment, struct sisci_process *process);

/* ---- process.c ------------------------------------------------------------------------------- */

void sisci_lock(struct sisci_process *process);
void sisci_unlock(struct sisci_process *process);
/* [thread] Takes the lock to free the object, a remote or local segment or a device: no callback of
 * it runs, unless that is the caller. */
void sisci_lock_idle(struct sisci_process *process, const void *object);
/* Wakes the process's thread, which looks for what there is to report. From any context. */
void sisci_notify(struct sisci_process *process);
void sisci_notify_all(struct sisci *sisci);
/* A host has connected to a segment of ours, or has disconnected. */
void sisci_report(struct sisci_segment *segment, enum sisci_event event, uint32_t host);
/* The segment is freed: nobody hears of it any more. */
void sisci_reports_drop(struct sisci_segment *segment);
/* Frees the memory of all processes; the host is dead. */
void sisci_processes_free(struct sisci *sisci);

/* ---- remote.c; under the process's lock ------------------------------------------------------ */

/* Connects to a segment that has a name at its host. Takes over the connection if it succeeds. */
int sisci_remote_open(struct sisci_process *process, uint32_t host,
                      struct lend_connection *connection, const struct wire_segment *name,
                      struct sisci_remote **remote, struct lend_error *error);
/* [thread] Undoes maps; says good-bye; lets the connection go. */
void sisci_remote_close(struct sisci_remote *remote);
/* Not to be used any more; without time or locks. */
void sisci_remote_mark(struct sisci_remote *remote, enum sisci_event event);
/* [thread] Undoes what a lost remote segment holds in our tables. */
void sisci_remote_lose(struct sisci_remote *remote);
int sisci_serve_taken_back(struct sisci *sisci, struct lend_connection *connection,
                           const void *body, void *reply, size_t *bytes, struct lend_error *error);

/* ---- device.c; under the process's lock ------------------------------------------------------ */

/* [thread] Gives the device back, whatever it still has. */
void sisci_device_close(struct sisci_device *device);
/* [thread] Finds another connection to the lender for a device whose connection has ended, or whose
 * link is down. There is none: the device is lost from now on. */
void sisci_device_recover(struct sisci_device *device);

/* ---- window.c; under the process's lock ------------------------------------------------------ */

/* [thread] Undoes it at lender and owner, as far as they are there. */
void sisci_window_close(struct sisci_window *window);
/* [thread] Opens a window to a multicast group, which begins at `fabric` of the groups' addresses.
 * Takes the process's lock itself. */
enum sisci_error sisci_window_open_group(struct sisci_window *window, uint64_t fabric,
                                         unsigned adapter, struct lend_error *error);
/* [thread] Undoes the windows onto a remote segment that is lost. */
void sisci_windows_lose(struct sisci_remote *remote);
/* Marks what went along the connection; without time or locks. */
void sisci_windows_mark(struct sisci_device *device, const struct lend_connection *connection);
/* [thread] Lets go of connections that have ended. */
void sisci_windows_settle(struct sisci_device *device);

/* ---- lender.c; under the lender's lock ------------------------------------------------------- */

sisci_serve_fn sisci_serve_device_at, sisci_serve_borrow, sisci_serve_share, sisci_serve_return,
    sisci_serve_reset, sisci_serve_is_resetting, sisci_serve_window_open, sisci_serve_window_map,
    sisci_serve_window_here, sisci_serve_window_close;
struct sisci_borrower *sisci_borrower_find(struct sisci *sisci, struct lend_connection *connection,
                                           uint32_t number, struct lend_error *error);
/* A device of ours that the host at the other end of `connection` has borrowed, or NULL. */
struct sisci_lent *sisci_lent_to(struct sisci *sisci, struct lend_connection *connection,
                                 uint16_t id);
struct sisci_mapping *sisci_mapping_add(struct sisci *sisci, struct sisci_borrower *borrower,
                                        struct lend_connection *connection,
                                        struct lend_mapping *mapping);
/* Ends windows along the connection, and borrowers that have no other. */
void sisci_lender_lost(struct sisci *sisci, struct lend_connection *connection);
/* Ends all borrowers of all devices, or of the one with this lease. */
void sisci_lender_stop(struct sisci *sisci, const struct lend_lease *lease);
void sisci_lender_free(struct sisci *sisci);

/* ---- entry.c; under the lender's lock -------------------------------------------------------- */

sisci_serve_fn sisci_serve_allocate, sisci_serve_publish, sisci_serve_withdraw, sisci_serve_look_up;
/* Nobody finds it any more. Its memory stays, and the entry with it, if the device may still know
 * its address. */
void sisci_entry_end(struct sisci_lent *lent, struct sisci_entry *entry);

/* ---- group.c --------------------------------------------------------------------------------- */

sisci_serve_fn sisci_serve_window_group, sisci_serve_group_join, sisci_serve_group_leave,
    sisci_serve_group_size;
/* [thread] Gives up what the process administers; all of it, if the process is NULL. */
void sisci_groups_close(struct sisci *sisci, const struct sisci_process *process);
/* Subscribers at the other end are gone. Under the lender's lock. */
void sisci_groups_lost(struct sisci *sisci, const struct lend_connection *connection);
void sisci_groups_free(struct sisci *sisci);

#endif
