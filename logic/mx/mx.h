/*
 * Message passing in the form of Myrinet Express, as middleware sees it: endpoints, matched
 * messages, requests. Behind it stand Open-MX (logic/openmx/: a kernel module on any Ethernet
 * device) or native MX (events and data from the firmware of the NIC straight to user space).
 *
 *   mx_open(board, endpoint_id, key, &mx_options_default, &ep);      [thread]
 *   mx_connect(ep, nic_id, endpoint_id, key, until_ps, &peer);       [thread] once per peer
 *   mx_irecv(ep, &segment, 1, match, mask, context, &r);             any number under way
 *   mx_isend(ep, &segment, 1, &peer, match, context, &s);
 *   mx_wait(ep, &r, until_ps, &status);          or mx_test() from time to time
 *   mx_close(ep);
 *
 * Matching. A message meets the first receive, in the order of mx_irecv(), for which (message's
 * match & mask) == (receive's match & mask); if there is none, it waits among the unexpected ones
 * in the order in which the sender sent it. Messages of one pair of endpoints are matched in the
 * order of mx_isend(), whatever the wire did with their packets.
 *
 * Progress is made in calls only (and by the kernel module for what it does by itself): an endpoint
 * is used by one thread at a time, which polls. Nobody waits for ever on a peer that is gone:
 * requests end with MX_PEER_DEAD once a message has been sent mx_options.resends_max times in vain.
 *
 * Sizes are in bytes, times in picoseconds, errors negative errno values.
 */
#ifndef LOGIC_MX_MX_H
#define LOGIC_MX_MX_H

#include "logic/kapi.h"

struct mx_endpoint;
struct mx_board; /* logic/mx/mx_board.h */

#define MX_ENDPOINTS_MAX 256u /* of a NIC: their number is one byte on the wire */
#define MX_SEGMENTS_MAX  256u

/* Contiguous bytes of the process's memory; any alignment. */
struct mx_segment {
    struct kaddr at;
    uint64_t bytes;
};

/* A connected endpoint, valid as long as the endpoint that connected. */
struct mx_peer {
    struct mx_partner *partner; /* private */
};

enum mx_code {
    MX_SUCCESS,
    MX_TRUNCATED,   /* the receive was shorter than the message: it has the first bytes of it */
    MX_CANCELLED,   /* by mx_cancel() or mx_close() */
    MX_PEER_DEAD,   /* nobody acknowledges */
    MX_BAD_ENDPOINT /* the peer's NIC has no such endpoint, or its key is another one */
};

struct mx_status {
    enum mx_code code;
    struct mx_peer peer;    /* receive: who sent it; send: to whom */
    uint64_t match;         /* of the message */
    uint64_t message_bytes; /* as sent */
    uint64_t bytes;         /* of them that have arrived in the receive's segments, or were sent */
    void *context;          /* of the request */
};

/* A request under way; void after the call that says that it has ended. NULL: none. */
struct mx_request;

/* What stands behind an endpoint; see the functions below for the contracts. */
struct mx_ops {
    int (*connect)(struct mx_endpoint *ep, uint64_t nic_id, uint8_t endpoint_id, uint32_t key,
                   uint64_t until_ps, struct mx_peer *peer);
    int (*isend)(struct mx_endpoint *ep, const struct mx_segment *segment, unsigned n,
                 const struct mx_peer *to, uint64_t match, void *context,
                 struct mx_request **request);
    int (*irecv)(struct mx_endpoint *ep, const struct mx_segment *segment, unsigned n,
                 uint64_t match, uint64_t mask, void *context, struct mx_request **request);
    bool (*test)(struct mx_endpoint *ep, struct mx_request **request, struct mx_status *status);
    bool (*test_any)(struct mx_endpoint *ep, uint64_t match, uint64_t mask,
                     struct mx_status *status);
    bool (*wait)(struct mx_endpoint *ep, struct mx_request **request, uint64_t until_ps,
                 struct mx_status *status);
    bool (*iprobe)(struct mx_endpoint *ep, uint64_t match, uint64_t mask, struct mx_status *status);
    bool (*cancel)(struct mx_endpoint *ep, struct mx_request **request);
    void (*close)(struct mx_endpoint *ep);
};
struct mx_endpoint {
    const struct mx_ops *ops;
    struct kernel *kernel;
    uint64_t nic_id; /* of its NIC: the Ethernet address, 48 bits */
    uint8_t id;
    uint32_t key;
};

struct mx_options {
    uint64_t resend_ps;      /* a message that nobody has acknowledged for so long is sent again */
    uint32_t resends_max;    /* then its peer is taken for dead */
    uint64_t ack_delay_ps;   /* an acknowledgement waits so long for a message that may carry it */
    uint32_t acks_max;       /* unless so many messages wait for it */
    uint32_t cached_regions; /* registered buffers that stay so for their next use; 0: none */
    uint64_t linger_ps;      /* mx_close() waits so long for acknowledgements */
    uint64_t poll_ps;        /* from one look at the queues to the next */
    bool bind;               /* moves the thread that opens to the CPU where its packets come in */
};
extern const struct mx_options mx_options_default; /* of Open-MX 0.9.2 */

/* What the library has counted since mx_open(). */
struct mx_stats {
    uint64_t sent, received;       /* messages */
    uint64_t resent;               /* packets or messages sent again */
    uint64_t duplicates, early;    /* packets that came twice, or before their turn */
    uint64_t unexpected, dropped;  /* messages without a receive; packets of nobody known */
    uint64_t acks;                 /* acknowledgements that went by themselves */
    uint64_t regions, region_hits; /* buffers registered, and found registered */
};
void mx_stats_get(struct mx_endpoint *ep, struct mx_stats *stats);

/* [thread] Opens endpoint `id` of a board for the calling thread. The caller owns *ep until
 * mx_close(). 0; -EBUSY: the endpoint is open; -ENOMEM; -ENODEV: the board is gone. */
int mx_open(struct mx_board *board, uint8_t id, uint32_t key, const struct mx_options *options,
            struct mx_endpoint **ep);

/* [thread] Makes a peer known: the endpoint `endpoint_id` of the NIC `nic_id`, opened with `key`.
 * Own NIC, own endpoint included. 0; -ETIMEDOUT: nobody answered until until_ps; -ENOENT: it has no
 * such endpoint; -EPERM: another key. The peer may connect at the same time. */
static inline int mx_connect(struct mx_endpoint *ep, uint64_t nic_id, uint8_t endpoint_id,
                             uint32_t key, uint64_t until_ps, struct mx_peer *peer)
{
    return ep->ops->connect(ep, nic_id, endpoint_id, key, until_ps, peer);
}
/* Begins to send the bytes of n segments (0: an empty message) as one message. They must not change
 * before the request has ended, and it has ended when they may change: the receiver need not have
 * it yet. Returns 0 and the request; -ENOMEM; -EINVAL: too many segments, or more bytes than 32
 * bits count. */
static inline int mx_isend(struct mx_endpoint *ep, const struct mx_segment *segment, unsigned n,
                           const struct mx_peer *to, uint64_t match, void *context,
                           struct mx_request **request)
{
    return ep->ops->isend(ep, segment, n, to, match, context, request);
}
/* Posts a receive. The segments belong to the request until it has ended. */
static inline int mx_irecv(struct mx_endpoint *ep, const struct mx_segment *segment, unsigned n,
                           uint64_t match, uint64_t mask, void *context,
                           struct mx_request **request)
{
    return ep->ops->irecv(ep, segment, n, match, mask, context, request);
}
/* Makes progress; true: the request has ended, *status is its result and *request NULL. */
static inline bool mx_test(struct mx_endpoint *ep, struct mx_request **request,
                           struct mx_status *status)
{
    return ep->ops->test(ep, request, status);
}
/* The same of any request whose message (a receive's: its match & mask) fits; the first to have
 * ended. */
static inline bool mx_test_any(struct mx_endpoint *ep, uint64_t match, uint64_t mask,
                               struct mx_status *status)
{
    return ep->ops->test_any(ep, match, mask, status);
}
/* [thread] Polls until the request has ended, or until_ps; see mx_test(). */
static inline bool mx_wait(struct mx_endpoint *ep, struct mx_request **request, uint64_t until_ps,
                           struct mx_status *status)
{
    return ep->ops->wait(ep, request, until_ps, status);
}
/* Makes progress; true: an unexpected message fits, *status says which. It stays where it is. */
static inline bool mx_iprobe(struct mx_endpoint *ep, uint64_t match, uint64_t mask,
                             struct mx_status *status)
{
    return ep->ops->iprobe(ep, match, mask, status);
}
/* Takes back a receive that has met no message yet. True: it is gone and *request is NULL; false:
 * too late, it will end by itself. Sends cannot be cancelled. */
static inline bool mx_cancel(struct mx_endpoint *ep, struct mx_request **request)
{
    return ep->ops->cancel(ep, request);
}
/* [thread] Waits, for linger_ps at most, until all that was sent is acknowledged; then ends all
 * requests and frees the endpoint. What others still send to it is refused. */
static inline void mx_close(struct mx_endpoint *ep)
{
    ep->ops->close(ep);
}

#endif
