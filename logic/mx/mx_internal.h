/*
 * The inside of the library of Myrinet Express. An endpoint belongs to one thread; what a board
 * does at the same time, it does to event queues and rings alone.
 *
 * Messages from one endpoint to another have numbers (16 bits, from 1 on for a pair of sessions,
 * and further on for each connection of them). Each of tiny, small, medium, rendezvous and
 * notification takes one, and is kept until it is acknowledged.
 */
#ifndef LOGIC_MX_MX_INTERNAL_H
#define LOGIC_MX_MX_INTERNAL_H

#include <errno.h>
#include <string.h>

#include "logic/kcosts.h"
#include "logic/mx/mx_account.h"
#include "logic/mx/mx_board.h"

#define MX_WINDOW         1024u /* messages of a pair under way, and numbers ahead that are kept */
#define MX_PARTNER_SLOTS  64u
#define MX_REGIONS        256u
#define MX_LARGE_SENDS    (MX_REGIONS / 2) /* at a time: the other regions are for pulls */
#define MX_FIELDS_BYTES   128u /* lines of a request's fields, in front of the data it keeps */
#define MX_REQUEST_BYTES  (MX_FIELDS_BYTES + MX_SMALL_BYTES)
#define MX_PARTNER_BYTES  128u
#define MX_LIB_BYTES      128u
#define MX_EVENTS_AT_ONCE 64u /* of a queue in one call */
#define MX_RETRY_PS       (100 * K_US)

/* ---- Lists: circular, the head is an item of no request -------------------------------------- */

/* may_alias: gcc 12.2 at -O2 keeps head->next in a register while a loop empties the list, although
 * each item's removal stores it (-fno-tree-loop-im or -fno-strict-aliasing helps, too). */
struct mx_link {
    struct mx_link *next, *before;
} __attribute__((may_alias));
static inline void mx_list_init(struct mx_link *head)
{
    head->next = head->before = head;
}
static inline bool mx_list_empty(const struct mx_link *head)
{
    return head->next == head;
}
static inline void mx_list_append(struct mx_link *head, struct mx_link *item)
{
    item->next = head;
    item->before = head->before;
    head->before->next = item;
    head->before = item;
}
static inline bool mx_listed(const struct mx_link *item)
{
    return item->next != NULL;
}
static inline void mx_list_remove(struct mx_link *item)
{
    item->before->next = item->next;
    item->next->before = item->before;
    item->next = item->before = NULL;
}
#define MX_ITEM(link, field) K_CONTAINER(link, struct mx_request, field)

/* ---- Sequence numbers ------------------------------------------------------------------------ */

static inline int mx_after(uint16_t a, uint16_t b) /* how far a is behind b */
{
    return (int16_t)(uint16_t)(a - b);
}

/* ---- Objects --------------------------------------------------------------------------------- */

struct mx_lib;

enum mx_need { MX_NEED_NO_ACK, MX_NEED_ACK_LATER, MX_NEED_ACK_NOW };

struct mx_partner {
    struct mx_lib *lib;
    struct mx_partner *next;       /* of its slot of the table */
    struct mx_link acks;           /* in lib->acks_later or lib->acks_now */
    struct mx_destination address; /* session: 0 as long as it is not connected */
    struct kaddr lines;
    enum mx_code end;    /* MX_SUCCESS: alive */
    uint32_t connection; /* how often it has ended */
    /* Sent. */
    uint16_t next_send, acked; /* acked: up to, but excluding */
    struct mx_link waiting;    /* sends without room */
    struct mx_link unacked;    /* by number */
    struct mx_link unnotified; /* rendezvous, acknowledged */
    /* Received. */
    uint16_t next_match; /* messages before it have been matched */
    uint16_t last_ack;   /* the acknowledgement that was sent last */
    bool anew;           /* it has ended, and next_match is that of the next connection */
    struct mx_link partial;
    struct mx_link early;
    enum mx_need need;
    uint64_t need_ps; /* since when */
    uint32_t ack_number, ack_seen;
    /* Is it there? */
    uint64_t heard_ps;
    unsigned n_hopes; /* requests that end by what it does, without anything that it acknowledges */
    uint32_t n_pings;
    struct mx_partner *all;
    /* A connection under way. */
    bool connecting, asked; /* asked: a reply or a refusal has come */
    uint8_t connect_sequence;
    int connect_result;
    uint32_t key;
};

enum mx_kind {
    MX_KIND_TINY, /* sends */
    MX_KIND_SMALL,
    MX_KIND_MEDIUM,
    MX_KIND_LARGE,
    MX_KIND_NOTIFY, /* of the library itself */
    MX_KIND_RECEIVE,
    MX_KIND_UNEXPECTED, /* a message that waits for its turn or its receive */
};

/* A message that arrives: of a receive that has met it, or of an unexpected one. */
struct mx_arrival {
    uint8_t kind;                               /* MX_KIND_TINY ... MX_KIND_LARGE */
    uint8_t fragments, region, region_sequence; /* fragments: one bit for each that has come */
    uint16_t sequence;
    uint32_t bytes, arrived;
    uint32_t connection; /* of the partner, when it came */
};

struct mx_buffer {
    struct k_page *page;
    struct mx_buffer *next;
};

struct mx_request {
    struct mx_link queue;   /* posted, unexpected, waiting, done ... */
    struct mx_link unacked; /* all of the endpoint, by the time of sending */
    struct mx_link of_partner;
    struct mx_link partial;
    enum mx_kind kind;
    bool user;     /* the caller has it */
    bool done;     /* for the caller */
    bool need_ack; /* sent, and not acknowledged */
    bool hope;     /* counted in partner->n_hopes */
    struct mx_partner *partner;
    uint64_t match, mask;
    struct mx_segment one, *segment;
    unsigned n_segments;
    uint64_t bytes; /* of the segments */
    struct mx_status status;
    struct kaddr lines; /* MX_REQUEST_BYTES */
    /* Sends. */
    uint16_t sequence;
    uint32_t resends;
    uint64_t sent_ps;
    uint8_t tiny[MX_TINY_BYTES];
    uint8_t n_slots, n_sending; /* n_sending: slots that the board has */
    uint16_t slot[MX_FRAGMENTS_MAX];
    /* Receives, unexpected ones. */
    struct mx_arrival arrival;
    struct mx_buffer *buffer;
    struct mx_region *region;
    uint8_t far_region, far_sequence; /* MX_KIND_NOTIFY */
    uint32_t handle;
    union mx_event event; /* a notification that waits for its turn */
};

struct mx_region {
    uint8_t number, sequence;
    unsigned users;
    struct mx_segment segment; /* a region of several is not kept */
    uint64_t used;             /* lib->region_uses, then */
    bool kept;
};

struct mx_chunk {
    struct mx_chunk *next;
    struct k_page *page;
};

struct mx_lib {
    struct mx_endpoint ep;
    struct kernel *kernel;
    const struct k_costs *costs;
    struct mx_board *board;
    struct mx_port *port;
    struct mx_options options;
    unsigned n_queues; /* MX_QUEUES, or less the last */
    uint32_t read[MX_QUEUES];
    struct kaddr lines;
    struct mx_link posted, unexpected, done;
    unsigned n_waiting;      /* sends without room, of all partners */
    struct mx_link pullable; /* receives without a region */
    struct mx_link unacked;
    struct mx_link acks_later, acks_now;
    bool room;         /* something has become free for those that wait */
    uint64_t retry_ps; /* when to try again without that */
    bool closed;
    uint16_t free_slot[MX_RING_SLOTS];
    unsigned n_free_slots;
    struct mx_request *slot_user[MX_RING_SLOTS];
    struct mx_partner *partner[MX_PARTNER_SLOTS], *all_partners;
    struct mx_region *region[MX_REGIONS];
    uint64_t region_uses;
    unsigned n_regions_kept;
    unsigned n_large_sends;     /* that have a region */
    struct mx_request **handle; /* pulls by number */
    unsigned n_handles;
    unsigned n_pulls;
    unsigned n_expected; /* events of the expected queue that will come */
    unsigned events_max; /* of them, so that they find room: MX_REGIONS of these are for pulls */
    uint64_t ping_ps;    /* when to ask partners whether they are there; UINT64_MAX: no need */
    /* Memory. */
    struct mx_chunk *pages;
    struct mx_request *free_requests;
    struct kaddr free_lines;
    unsigned free_lines_bytes;
    struct mx_buffer *free_buffers;
    struct mx_stats stats;
};
static inline struct mx_lib *mx_lib_of(struct mx_endpoint *ep)
{
    return K_CONTAINER(ep, struct mx_lib, ep);
}
/* Whether so many fragments may be sent: their events find room, and those of pulls. */
static inline bool mx_may_send(const struct mx_lib *lib, unsigned n)
{
    return lib->n_expected + n <= lib->events_max - MX_REGIONS;
}

/* ---- mx_memory.c ----------------------------------------------------------------------------- */

/* Never NULL, or NULL: no memory. Stores the request's first line. */
struct mx_request *mx_request_get(struct mx_lib *lib, enum mx_kind kind);
void mx_request_put(struct mx_lib *lib, struct mx_request *r);
/* Takes the segments of a caller. 0 or -EINVAL. */
int mx_request_segments(struct mx_request *r, const struct mx_segment *segment, unsigned n);
/* Lines of user memory that stay with the endpoint; v is 0: no memory. */
struct kaddr mx_lines_get(struct mx_lib *lib, unsigned bytes);
/* MX_MEDIUM_BYTES of memory for a message that nobody has asked for. NULL: no memory. */
struct mx_buffer *mx_buffer_get(struct mx_lib *lib);
void mx_buffer_put(struct mx_lib *lib, struct mx_buffer *buffer);
void mx_memory_release(struct mx_lib *lib);
/* Copies from the ring into such memory. */
void mx_buffer_fill(struct mx_lib *lib, struct kaddr to, struct kaddr from, uint64_t bytes);
/* Copy between the request's segments, from `offset` on, and contiguous memory. Bytes beyond the
 * segments are left out; returns how many were copied. */
uint64_t mx_scatter(struct mx_lib *lib, const struct mx_request *r, uint64_t offset,
                    struct kaddr from, uint64_t bytes);
uint64_t mx_gather(struct mx_lib *lib, const struct mx_request *r, uint64_t offset, struct kaddr to,
                   uint64_t bytes);
/* The same with bytes that stand in an event or a command. */
uint64_t mx_scatter_bytes(struct mx_lib *lib, const struct mx_request *r, const void *from,
                          uint64_t bytes);
void mx_gather_bytes(struct mx_lib *lib, const struct mx_request *r, void *to, uint64_t bytes);

/* ---- mx_partner.c ---------------------------------------------------------------------------- */

struct mx_partner *mx_partner_find(struct mx_lib *lib, uint64_t nic_id, uint8_t endpoint);
/* NULL: no memory. */
struct mx_partner *mx_partner_get(struct mx_lib *lib, uint64_t nic_id, uint8_t endpoint);
int mx_partner_connect(struct mx_endpoint *ep, uint64_t nic_id, uint8_t endpoint, uint32_t key,
                       uint64_t until_ps, struct mx_peer *peer);
void mx_partner_connect_event(struct mx_lib *lib, const union mx_event *event);
void mx_partner_nack_event(struct mx_lib *lib, const union mx_event *event);
/* Everything under way with it ends like that. */
void mx_partner_ends(struct mx_partner *partner, enum mx_code code);
void mx_partner_free_all(struct mx_lib *lib);
/* Whose event it is, if that is connected, in this session: it is there. Else NULL. */
struct mx_partner *mx_partner_of_event(struct mx_lib *lib, const struct mx_event_source *source);
/* Asks partners from whom something is hoped whether they are there. */
void mx_partners_ping(struct mx_lib *lib, uint64_t now_ps);
void mx_hope(struct mx_request *r);
void mx_hope_ends(struct mx_request *r);

/* ---- mx_ack.c -------------------------------------------------------------------------------- */

/* All messages before it have arrived whole. */
uint16_t mx_ack_of(const struct mx_partner *partner);
/* More messages of the partner have arrived. */
void mx_ack_advance(struct mx_partner *partner);
void mx_ack_now(struct mx_partner *partner);
void mx_ack_sent(struct mx_partner *partner);
/* Sends what is due; all: what is not due yet, too. */
void mx_acks_send(struct mx_lib *lib, uint64_t now_ps, bool all);
/* Acknowledgements of ours. */
void mx_ack_event(struct mx_lib *lib, const union mx_event *event);
void mx_ack_received(struct mx_partner *partner, uint16_t ack);
void mx_unacked_add(struct mx_request *r);
/* Sends again what is due. */
void mx_resend(struct mx_lib *lib, uint64_t now_ps);
/* The earliest time at which one of these has something to do. */
uint64_t mx_next_deadline(const struct mx_lib *lib);

/* ---- mx_send.c ------------------------------------------------------------------------------- */

int mx_send_post(struct mx_endpoint *ep, const struct mx_segment *segment, unsigned n,
                 const struct mx_peer *to, uint64_t match, void *context,
                 struct mx_request **request);
/* Gives the message to the board, the first time or again. */
void mx_send_again(struct mx_request *r);
/* Begins what waits for room, as far as there is some. */
void mx_send_waiting(struct mx_lib *lib);
void mx_send_sent_event(struct mx_lib *lib, const union mx_event *event);
/* Nobody waits for an acknowledgement of it any more. */
void mx_send_acked(struct mx_request *r, enum mx_code code);
void mx_send_notify(struct mx_lib *lib, struct mx_partner *partner, uint8_t region,
                    uint8_t region_sequence, uint32_t bytes);

/* ---- mx_receive.c ---------------------------------------------------------------------------- */

int mx_receive_post(struct mx_endpoint *ep, const struct mx_segment *segment, unsigned n,
                    uint64_t match, uint64_t mask, void *context, struct mx_request **request);
/* A packet with a sequence number; data of small and medium ones are at `data`. */
void mx_receive_event(struct mx_lib *lib, const union mx_event *event, struct kaddr data);
bool mx_receive_probe(struct mx_lib *lib, uint64_t match, uint64_t mask, struct mx_status *status);
/* Ends a receive, for the caller. */
void mx_receive_ends(struct mx_request *r, enum mx_code code, uint64_t bytes);
/* The partner has ended: neither its unexpected messages that are not whole, nor early ones. */
void mx_receive_forget(struct mx_partner *partner, enum mx_code code);

/* ---- mx_large.c ------------------------------------------------------------------------------ */

/* Begins to pull for a receive that has met a rendezvous. */
void mx_large_pull(struct mx_request *r);
void mx_large_pullable(struct mx_lib *lib);
void mx_large_pulled_event(struct mx_lib *lib, const union mx_event *event);
/* All of a large message of ours has been pulled. */
void mx_large_notified(struct mx_partner *partner, const union mx_event *event);
/* The region of the request's first `bytes`. 0 or -ENOSPC and others. */
int mx_region_get(struct mx_lib *lib, struct mx_request *r, uint64_t bytes);
void mx_region_put(struct mx_lib *lib, struct mx_request *r);
void mx_regions_free(struct mx_lib *lib);

/* ---- mx_progress.c --------------------------------------------------------------------------- */

/* Reads events and does what is due. */
void mx_progress(struct mx_lib *lib);
/* Polls until something comes, something is due, or until_ps. */
void mx_idle(struct mx_lib *lib, uint64_t until_ps);
/* For the caller, the request has ended. */
void mx_done(struct mx_request *r, enum mx_code code, uint64_t bytes);

#endif
