/*
 * What two hosts exchange for SISCI, as requests of lending's service (logic/lending/service.h).
 * Both ends are little-endian and of the same version; every structure is copied as it stands, so
 * its size is part of the protocol and unused words are named `zero`. Numbers of links, grants,
 * borrowers and mappings are given by the host that answers, and mean something to it alone.
 */
#ifndef LOGIC_SISCI_WIRE_INTERNAL_H
#define LOGIC_SISCI_WIRE_INTERNAL_H

#include "logic/lending/service.h"
#include "logic/sisci/sisci.h"

enum sisci_operation {
    /* To the host of a segment. */
    OP_CONNECT = 1, /* struct wire_connect; reply: struct wire_connected */
    OP_DISCONNECT,  /* struct wire_number: a link */
    OP_GRANT,       /* struct wire_grant; reply: struct wire_granted */
    OP_REVOKE,      /* struct wire_number: a grant */
    /* From the host of a segment to one that is connected. */
    OP_TAKEN_BACK, /* struct wire_number: the remote segment, by the connected host's number */
    /* To the lender of a device. */
    OP_DEVICE_AT,    /* struct wire_number: an index; reply: struct sisci_device_info */
    OP_BORROW,       /* struct wire_borrow; reply: struct wire_borrowed */
    OP_SHARE,        /* struct wire_number: a borrower; so the next three */
    OP_RETURN,       /**/
    OP_RESET,        /**/
    OP_IS_RESETTING, /* reply: uint64_t */
    OP_WINDOW_OPEN,  /* struct wire_window; reply: struct wire_window_opened */
    OP_WINDOW_MAP,   /* struct wire_window; reply: uint64_t, where the device finds the bytes */
    OP_WINDOW_HERE,  /* struct wire_window: of the lender's own; reply: struct wire_window_here */
    OP_WINDOW_GROUP, /* struct wire_window: multicast; reply: struct wire_window_here */
    OP_WINDOW_CLOSE, /* struct wire_window */
    OP_ALLOCATE,     /* struct wire_entry; reply: struct wire_entry */
    OP_PUBLISH,      /* struct wire_entry */
    OP_WITHDRAW,     /* struct wire_entry */
    OP_LOOK_UP,      /* struct wire_entry; reply: struct wire_entry */
    /* To the host that administers a multicast group. */
    OP_GROUP_JOIN,  /* struct wire_group; reply: struct wire_group */
    OP_GROUP_LEAVE, /* struct wire_group */
    OP_GROUP_SIZE   /* struct wire_group; reply: struct wire_group */
};

/* A segment, as its host knows it. */
enum { WIRE_NUMBER, WIRE_BAR };
struct wire_segment {
    uint32_t kind;
    uint32_t number; /* of the segment; or of the base address register */
    uint32_t id;     /* requester ID of the device, if it is one of its registers */
    uint32_t zero;
};

struct wire_number {
    uint32_t op, number;
};
struct wire_connect {
    uint32_t op;
    uint32_t remote; /* the caller's number of it, for OP_TAKEN_BACK */
    struct wire_segment segment;
};
struct wire_connected {
    uint32_t link, zero;
    uint64_t fabric, bytes; /* address of the first byte, by the adapter of the connection */
};
struct wire_grant { /* a device of another host may reach the segment */
    uint32_t op;
    uint32_t adapter; /* of the segment's host */
    struct wire_segment segment;
    uint32_t node; /* of the device's host; and it there: */
    uint16_t device, function;
    uint32_t n_cpus; /* root complexes that may ask in its place */
    uint32_t payload_bytes;
};
struct wire_granted {
    uint32_t grant, zero;
    uint64_t fabric; /* of the first byte */
};

/* A request whose answer got lost with its connection is sent again by another. The borrower gives
 * it a key, by which the lender knows that it has done it. */
struct wire_borrow {
    uint32_t op;
    uint16_t id;
    uint16_t how; /* enum sisci_borrow */
    uint32_t key;
    uint32_t payload_bytes;
};
struct wire_borrowed {
    uint32_t borrower, zero;
    struct sisci_device_info info;
};
struct wire_window {
    uint32_t op, borrower;
    uint32_t mapping; /* of OP_WINDOW_MAP and OP_WINDOW_CLOSE */
    uint32_t host;    /* of OP_WINDOW_OPEN; the caller's number: by the adapter of the connection */
    uint32_t direction;
    uint32_t adapter;            /* of OP_WINDOW_GROUP; SISCI_ANY: nearest to the device */
    struct wire_segment segment; /* of OP_WINDOW_HERE */
    uint64_t fabric;             /* of OP_WINDOW_MAP and OP_WINDOW_GROUP */
    uint64_t offset, bytes;
};
struct wire_window_opened {
    uint32_t mapping;
    uint32_t peer_adapter;
    uint32_t node;
    uint16_t device, function;
    uint32_t n_cpus, payload_bytes;
};
struct wire_window_here {
    uint32_t mapping, zero;
    uint64_t dma;
};
struct wire_entry { /* a segment of a device, in its lender's directory */
    uint32_t op, borrower;
    uint32_t number; /* of the segment, among the device's */
    uint32_t shared;
    uint64_t bytes;         /* of OP_ALLOCATE */
    uint32_t host, segment; /* where it is; of the request OP_ALLOCATE: 0 and a key */
};
struct wire_group {
    uint32_t op, number;
    uint32_t node; /* of the subscriber's adapter */
    uint32_t log2; /* of its size */
};

/* No padding: the sizes are the sums of the fields'. */
_Static_assert(sizeof(struct wire_segment) == 16, "layout");
_Static_assert(sizeof(struct wire_borrow) == 16, "layout");
_Static_assert(sizeof(struct wire_connect) == 24, "layout");
_Static_assert(sizeof(struct wire_connected) == 24, "layout");
_Static_assert(sizeof(struct wire_grant) == 40, "layout");
_Static_assert(sizeof(struct wire_window) == 64, "layout");
_Static_assert(sizeof(struct wire_window_opened) == 24, "layout");
_Static_assert(sizeof(struct wire_entry) == 32, "layout");
_Static_assert(sizeof(struct wire_borrowed) <= LEND_SERVICE_BYTES, "one message");

#endif
