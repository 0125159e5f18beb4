/* What the files of logic/dnvme/ share. */
#ifndef LOGIC_DNVME_DNVME_INTERNAL_H
#define LOGIC_DNVME_DNVME_INTERNAL_H

#include <errno.h>
#include <string.h>

#include "logic/dnvme/dnvme.h"
#include "logic/dnvme/wire_internal.h"

#define DNVME_CLIENTS_MAX 256u
#define DNVME_MAILBOXES   12288u /* where they begin in the manager's segment, behind its queues */

/* ---- windows.c ------------------------------------------------------------------------------- */

/* Registers or memory behind a map of SISCI. The map stays where it is. */
struct nvme_user_window dnvme_map_window(struct sisci_map *map, uint64_t base);
/* The negative errno of a call of SISCI that has failed; 0: it has not. */
int dnvme_code(enum sisci_error status, const struct lend_error *error);

/* ---- server.c: the manager's side of mailboxes, without the controller ----------------------- */

/* What a server does for its clients. Each int is 0 or a negative errno. */
struct dnvme_server_ops {
    /* wire->sq_bus may be WIRE_SQ_IN_CMB; *sq_bus: where the submission queue is. */
    int (*create)(void *context, uint16_t id, const struct wire_create *wire, uint64_t *sq_bus);
    /* Begins to delete a queue pair; dnvme_server_deleted() follows, from here or in the same
     * thread. It may take as long as commands of the pair do, which others must not wait for. Not
     * called again for the pair before that. */
    void (*delete_pair)(void *context, uint16_t id);
    int (*admin)(void *context, const struct nvme_sqe *sqe, struct wire_admin *reply);
    int (*namespace)(void *context, uint32_t nsid, struct wire_namespace *reply);
};

struct dnvme_range {
    uint64_t from, bytes; /* bytes 0: none */
};

struct dnvme_mailbox {
    uint32_t incarnation; /* of the client; 0: there was none yet */
    uint32_t refused;     /* incarnation that came last while it had a client */
    bool registered;
    uint32_t served;     /* sequence number of its last request */
    uint64_t heartbeat;  /* the word as it was last seen, */
    uint64_t changed_ps; /* and since when */
    unsigned n_queues;   /* that the controller has for it */
};

#define DNVME_ORPHANED UINT32_MAX

struct dnvme_server {
    struct kernel *kernel;
    struct kaddr mailboxes; /* n of WIRE_SLOT_BYTES, zeroed */
    unsigned n;
    uint64_t lease_ps;
    struct wire_hello hello;        /* what clients are told */
    uint32_t queue_end;             /* queue numbers 1 .. queue_end - 1 are to be had */
    struct dnvme_range reserved[4]; /* addresses of the manager's own */
    const struct dnvme_server_ops *ops;
    void *context;
    /* ---- private ----------------------------------------------------------------------------- */
    struct dnvme_mailbox *box;
    struct dnvme_server_queue {
        unsigned owner; /* mailbox + 1; 0: free; DNVME_ORPHANED: of a client that is gone */
        bool deleting;  /* dnvme_server_deleted() will follow */
        bool asked;     /* by a request of the owner, number `sequence`, that has no reply yet */
        uint32_t sequence;
        uint32_t serial; /* of the pairs that had its number */
        struct dnvme_range sq, cq;
    } queue[NVME_QUEUES_MAX];
    uint64_t
        orphans_ps; /* when deletions of orphaned pairs that had failed were last begun again */
    struct dnvme_manager_stats stats;
};
/* Fields above `private` are set. */
void dnvme_server_init(struct dnvme_server *server);
/* Looks at all mailboxes once: registers clients, answers, ends leases. Once a lease begins again
 * the deletions of orphaned pairs that have failed. */
void dnvme_server_round(struct dnvme_server *server);
/* Queue pair `id` is deleted; or, with an error, it may still be there: its owner may ask again,
 * and dnvme_server_round() does if it has none. */
void dnvme_server_deleted(struct dnvme_server *server, uint16_t id, int status);
/* Ends all clients; their queue pairs are being deleted. */
void dnvme_server_end(struct dnvme_server *server);
/* Frees memory. */
void dnvme_server_release(struct dnvme_server *server);

/* ---- deletion.c: how the manager deletes queue pairs ----------------------------------------- */

struct dnvme_deletion {
    struct nvme_user_command command;
    struct dnvme_deletions *all;
    uint16_t id;
    bool sq_deleted; /* what is left is the completion queue */
    bool waits;      /* for room in the admin queue */
};
struct dnvme_deletions {
    struct nvme_user_controller *controller;
    struct dnvme_server *server;
    /* ---- private ----------------------------------------------------------------------------- */
    struct dnvme_deletion pair[NVME_QUEUES_MAX];
    unsigned n_waiting;
};
/* Submits the command that deletes the submission queue; the rest follows as the admin queue is
 * polled. In the end dnvme_server_deleted() is called, perhaps from here. -ENODEV: the controller
 * is gone; -EIO: it refuses; asked again it goes on with the queue that is left. */
void dnvme_deletions_begin(struct dnvme_deletions *deletions, uint16_t id);
/* Submits what has waited for room in the admin queue; to be called after it was polled. */
void dnvme_deletions_continue(struct dnvme_deletions *deletions);

/* ---- mail.c: a client's side ----------------------------------------------------------------- */

#define DNVME_HEARTBEATS 8u /* of a lease; also how far back an echo is understood */

struct dnvme_mail {
    struct kernel *kernel;
    struct sisci_map *map[DNVME_PATHS_MAX]; /* of the mailbox alone */
    unsigned n_maps, active;
    uint32_t incarnation, sequence;
    uint64_t timeout_ps;
    struct k_wait_queue wait;
    bool busy; /* one request at a time */
    /* A request that was given up and whose effect has to be undone, first: to create a queue pair,
     * or to delete it then. Type 0: none. */
    struct wire_message unsettled;
    /* ---- the lease --------------------------------------------------------------------------- */
    uint64_t lease_ps;
    uint32_t heartbeat;
    uint64_t sent_ps[DNVME_HEARTBEATS];
    uint64_t valid_until_ps; /* the manager does not end it before */
    bool echoed;             /* the manager has seen the last heartbeat */
    bool over;
};
/* Fields down to timeout_ps are set, and `incarnation` differs from that of any earlier client of
 * the mailbox. Registers with the manager. -EBUSY: the mailbox has a client whose lease is not
 * over. */
int dnvme_mail_open(struct dnvme_mail *mail, struct wire_hello *hello);
/* Sends a request, again and again, until its reply is there. 0 or the manager's error, also that
 * to the deletion of a pair that was created too late, without which no request is sent; -EPROTO:
 * the reply has another length; -ETIMEDOUT; -EHOSTUNREACH: no map is valid; -ESTALE: the manager
 * does not know us any more. */
int dnvme_mail_call(struct dnvme_mail *mail, enum wire_type type, const void *body, size_t bytes,
                    void *reply, size_t reply_bytes);
/* Sends a heartbeat; to be called DNVME_HEARTBEATS times a lease, and more often while it is not
 * `echoed`. */
void dnvme_mail_heartbeat(struct dnvme_mail *mail);
/* Looks which heartbeat has been seen. False: the lease is over. */
bool dnvme_mail_look(struct dnvme_mail *mail);

#define DNVME_SEGMENTS \
    4096u /* numbers of a client; with DNVME_CLIENTS_MAX, 12 bits are left for the host */

/* ---- client.c -------------------------------------------------------------------------------- */

struct dnvme_path {
    unsigned adapter;
    struct sisci_remote *mailbox_remote, *bar_remote, *cmb_remote;
    struct sisci_map mailbox, bar, cmb; /* cmb: made when the first queue lies there */
    bool has_mailbox, has_bar, has_cmb;
    bool down;  /* its link; what is mapped may still be valid */
    bool stale; /* it was connected anew: windows of buffers by it are those of before */
};

struct dnvme_client {
    struct kernel *kernel;
    struct sisci_process *process;
    struct dnvme_client_params params;
    struct sisci_device *device;
    struct dnvme_path path[DNVME_PATHS_MAX];
    struct dnvme_mail mail;
    struct wire_hello hello;
    uint64_t segments[DNVME_SEGMENTS / 64]; /* a bit for each number that is in use */
    uint32_t n_near;                        /* segments near the device that were ever made */
    struct dnvme_buffer *buffers;           /* all; read and changed while `mapping` alone */
    bool mapping;                           /* a lock: calls that map sleep */
    struct k_wait_queue mapped;
    bool revoked;          /* the lender does not know us any more, though it can be reached */
    struct sisci_map none; /* lost: mail's while a path is rebuilt */
    bool stopping, stopped, dead;
    struct k_wait_queue wait;
};
/* As far as is known. */
bool dnvme_path_works(const struct dnvme_client *client, unsigned i);
/* Connects a path anew if its maps are lost. 0 or a negative errno. */
int dnvme_path_connect(struct dnvme_client *client, unsigned i);
/* Makes a path whose link is up usable again: connects it if its mappings are lost (*rebuilt), and
 * maps all buffers that are not mapped by it. 0 or a negative errno. */
int dnvme_path_restore(struct dnvme_client *client, unsigned i, bool *rebuilt);
/* A number for a segment of this host; *number. -ENOSPC: all are in use. */
int dnvme_segment_number(struct dnvme_client *client, uint32_t *number, struct lend_error *error);
void dnvme_number_free(struct dnvme_client *client, uint32_t number);
/* Removes the segment and gives its number back. */
void dnvme_segment_free(struct dnvme_client *client, struct sisci_segment *segment);
/* For a segment near the device, which stays as long as the device is borrowed. No other client of
 * the device has the number: a mailbox has one client at a time, and the lender may keep segments
 * of a host that is dead while the mailbox has a client on another one. -ENOSPC: the client has had
 * all. */
int dnvme_near_number(struct dnvme_client *client, uint32_t *number, struct lend_error *error);

struct dnvme_pair {
    struct dnvme_client *client;
    struct dnvme_pair_params params;
    struct nvme_user_qp qp;
    bool initialised;
    uint64_t handle; /* 0: the controller does not have it */
    struct dnvme_buffer
        memory; /* completion queue, lists, and the submission queue if it is local */
    struct sisci_remote *sq_remote; /* near the device */
    struct sisci_map sq_map;
    bool sq_mapped;
    struct sisci_segment *sq_segment; /* of a BAR */
    struct sisci_window sq_window;
    bool sq_windowed;
};

/* ---- multi.c; its head has the states -------------------------------------------------------- */

enum dnvme_path_state { DNVME_PATH_UP, DNVME_PATH_DOWN, DNVME_PATH_DELETED, DNVME_PATH_NONE };

struct dnvme_multi {
    struct dnvme_client *client;
    struct dnvme_pair_params params;
    uint64_t timeout_ps;
    struct dnvme_pair *pair[DNVME_PATHS_MAX];
    enum dnvme_path_state state[DNVME_PATHS_MAX];
    unsigned in_use[DNVME_PATHS_MAX]; /* calls of the I/O thread that are in the pair now */
    bool rebuilt[DNVME_PATHS_MAX];    /* the path was, since it was UP */
    unsigned active;
    struct dnvme_io *again,
        **again_end;      /* the I/O thread's; in the order in which they are issued */
    uint64_t progress_ps; /* when the last command ended, or the first was issued */
    uint64_t looked_ps;   /* when the active pair was last found without a completion */
    struct dnvme_multi_stats stats;
    bool work;   /* for the recovery thread, since it last began to look at all paths */
    bool broken; /* the controller does not delete queues any more */
    bool over;   /* nothing is issued again */
    bool stopping, stopped;
    struct k_wait_queue wait;
};

#endif
