/*
 * What the manager of an NVMe controller and its clients exchange: mailboxes in a segment of the
 * manager's host, one per client. A client writes heartbeat and request and reads the rest; the
 * manager reads and writes its own memory alone, so that no client that is gone holds it up. Both
 * ends are little-endian and of the same version; structures are copied as they stand.
 *
 * A request is written body first, its first word last, and carries a check of all of it: a link
 * that went down and up again meanwhile may have dropped words before the last one. The client
 * repeats the request as it is until the reply has its sequence number; the manager carries a
 * sequence number out once, and none that is older than the last.
 *
 * A client has a mailbox until it says so or its lease is over. If another, such as a process that
 * was started again in its place, comes before that, the manager tells it so and does not look at
 * its requests.
 */
#ifndef LOGIC_DNVME_WIRE_INTERNAL_H
#define LOGIC_DNVME_WIRE_INTERNAL_H

#include "hw/nvme_regs.h"
#include "logic/kapi.h"

#define WIRE_BODY_BYTES 112u

struct wire_header {
    uint32_t sequence;    /* from 1; 0: no message yet */
    uint16_t type, bytes; /* of the body, a multiple of 8 */
    int32_t status;       /* of a reply: 0 or a negative errno */
    uint32_t check;       /* wire_check() */
};
_Static_assert(sizeof(struct wire_header) == 16, "two words of 8 bytes");

struct wire_message {
    struct wire_header header;
    uint8_t body[WIRE_BODY_BYTES];
};
_Static_assert(sizeof(struct wire_message) == 128, "two lines");

/* A mailbox. Each side writes lines of its own. */
#define WIRE_HEARTBEAT  0u   /* client: incarnation << 32 | counter */
#define WIRE_REQUEST    64u  /* client */
#define WIRE_REGISTERED 192u /* manager: incarnation << 32 | last heartbeat seen; 0: none */
#define WIRE_REFUSED \
    200u                     /* manager: incarnation << 32 of whoever came last to a mailbox in
                              * use */
#define WIRE_REPLY      256u /* manager */
#define WIRE_SLOT_BYTES 512u
_Static_assert(WIRE_REQUEST + sizeof(struct wire_message) <= WIRE_REGISTERED, "no overlap");
_Static_assert(WIRE_REPLY + sizeof(struct wire_message) <= WIRE_SLOT_BYTES, "fits");
#define WIRE_WORD(incarnation, count) ((uint64_t)(incarnation) << 32 | (uint32_t)(count))

enum wire_type {
    WIRE_HELLO = 1, /* reply: struct wire_hello */
    WIRE_BYE,       /* deletes what the client has; its mailbox is free */
    WIRE_NAMESPACE, /* body: u64 nsid; reply: struct wire_namespace */
    WIRE_CREATE,    /* body: struct wire_create; reply: struct wire_created */
    WIRE_DELETE,    /* body: u64 handle */
    WIRE_ADMIN,     /* body: struct nvme_sqe; reply: struct wire_admin */
};
struct wire_hello {
    uint64_t lease_ps;
    uint64_t bytes_max; /* of a command; 0: any */
    uint32_t entries_max, doorbell_bytes, n_namespaces, client_queues;
    uint64_t cmb_bus;       /* of the controller's memory buffer, for itself */
    uint32_t cmb_bar, zero; /* 0: it has none that submission queues can lie in */
    uint64_t cmb_offset;    /* in that register */
};
struct wire_namespace {
    uint64_t blocks;
    uint32_t block_log2, zero;
};
#define WIRE_SQ_IN_CMB UINT64_MAX /* as sq_bus: the manager chooses */
struct wire_create {
    uint64_t sq_bus, cq_bus;
    uint32_t entries, priority; /* of both; enum nvme_sq_priority */
};
struct wire_created {
    uint64_t handle; /* WIRE_HANDLE() */
    uint64_t sq_bus;
};
/* The number of both queues, and how many pairs had it before: to delete a pair again that is gone
 * must not delete the next one. */
#define WIRE_HANDLE(number, serial) ((uint64_t)(serial) << 16 | (number))
#define WIRE_HANDLE_NUMBER(handle)  ((uint16_t)(handle))
struct wire_admin {
    uint32_t result, status; /* of the completion; status without phase */
};
_Static_assert(sizeof(struct wire_hello) == 56, "layout");
_Static_assert(sizeof(struct wire_namespace) == 16, "layout");
_Static_assert(sizeof(struct wire_create) == 24, "layout");
_Static_assert(sizeof(struct wire_created) == 16, "layout");
_Static_assert(sizeof(struct wire_admin) == 8, "layout");
_Static_assert(sizeof(struct nvme_sqe) <= WIRE_BODY_BYTES, "fits");

/* FNV-1a of a message as words, seeded with the incarnation of the client that it comes from or
 * goes to; header.check itself does not count. */
static inline uint32_t wire_check(const struct wire_message *message, uint32_t incarnation)
{
    const struct wire_header *h = &message->header;
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ incarnation;
    const uint64_t head[2] = { (uint64_t)h->sequence << 32 | (uint64_t)h->type << 16 | h->bytes,
                               (uint32_t)h->status };
    for (unsigned i = 0; i < 2; i++)
        hash = (hash ^ head[i]) * UINT64_C(0x100000001b3);
    for (unsigned at = 0; at < h->bytes && at < WIRE_BODY_BYTES; at += 8) {
        uint64_t word;
        __builtin_memcpy(&word, &message->body[at], sizeof word);
        hash = (hash ^ word) * UINT64_C(0x100000001b3);
        hash ^= hash >> 29;
    }
    return (uint32_t)(hash ^ hash >> 32);
}

#endif
