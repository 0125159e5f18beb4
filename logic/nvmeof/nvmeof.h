/*
 * NVMe over Fabrics by RDMA: a target, which exports a local NVMe controller
 * (logic/nvme/nvme_local.h) to any number of hosts, and an initiator. Both are processes that poll.
 * A submission queue and its completion queue are one reliable connection: command capsules are
 * sent one way, responses the other; data moves by RDMA reads and writes of the target, or in the
 * capsule.
 *
 * What a connection manager does is the caller's: it takes a struct nvmeof_hello from the initiator
 * to the target and the target's back.
 *
 * Calls marked [thread] may sleep. Errors are negative errno values; a status is enum nvme_status
 * with its flags.
 */
#ifndef LOGIC_NVMEOF_NVMEOF_H
#define LOGIC_NVMEOF_NVMEOF_H

#include "hw/nvmeof_regs.h"
#include "logic/nvme/nvme_local.h"
#include "logic/rdma/rdma_driver.h"

#define NVMEOF_ENTRIES_MAX 1024u
#define NVMEOF_QUEUES_MAX  64u /* for I/O, of an initiator */

/* What both sides tell each other about a connection (7.3.6): the private data of RDMA_CM. */
struct nvmeof_hello {
    struct rdma_drv_endpoint endpoint;
    uint16_t qid;
    uint16_t entries;   /* of the queue: capsules that may be under way, and one */
    uint32_t mtu_bytes; /* of the path; the target's answer is what both take */
};

/* ---- Target ---------------------------------------------------------------------------------- */

struct nvmeof_target;

struct nvmeof_target_params {
    struct rdma_drv *rdma;
    struct nvme_local *nvme;   /* I/O queues take its queue pairs, one each, as long as there are */
    const char *subsystem;     /* its name (NQN), up to 255 characters; copied */
    uint16_t entries_max;      /* of a queue, 2 .. NVMEOF_ENTRIES_MAX, no more than NVMe's have */
    uint16_t queues_max;       /* connections, admin queues included: 1 .. 1024 */
    uint32_t in_capsule_bytes; /* data in a command capsule of an I/O queue: 0 .. 8192, times 16 */
    uint32_t mtu_bytes;        /* path MTU at most */
    /* The adapter serves the reads of I/O queues by itself; each takes another NVMe queue pair for
     * that. */
    bool offload;
};

struct nvmeof_target_stats {
    uint64_t commands, reads, writes, in_capsule, admin;
    uint64_t failed;                     /* responses with another status than success */
    uint64_t connected, broken, expired; /* queues; by errors; controllers, by keep-alive */
    uint64_t rounds, idle_rounds;
};

/* [thread] -EINVAL, -ENOMEM, those of rdma_drv_*(). */
int nvmeof_target_new(const struct nvmeof_target_params *params, struct nvmeof_target **out);
/* [thread] Makes a connection ready for the initiator's Connect command. -EBUSY: too many queues,
 * or no NVMe queue pair is left; -EINVAL: entries. */
int nvmeof_target_accept(struct nvmeof_target *target, const struct nvmeof_hello *hello,
                         struct nvmeof_hello *answer);
/* [thread] One round: looks at the adapter's and the controller's completion queues and does what
 * they ask for; frees connections that are broken. Returns the number of events. */
unsigned nvmeof_target_poll(struct nvmeof_target *target);
/* [thread] Breaks all connections, waits for NVMe commands under way, frees everything. */
void nvmeof_target_free(struct nvmeof_target *target);
/* Frees C structures alone, after a run that has failed. NULL: nothing happens. */
void nvmeof_target_abandon(struct nvmeof_target *target);
unsigned nvmeof_target_n_queues(const struct nvmeof_target *target); /* connections */
struct nvmeof_target_stats nvmeof_target_stats(const struct nvmeof_target *target);

/* ---- Initiator ------------------------------------------------------------------------------- */

struct nvmeof_initiator;

/* [thread] Takes the hello to the target, brings its answer. 0, or the target's refusal. */
typedef int nvmeof_exchange_fn(void *context, const struct nvmeof_hello *hello,
                               struct nvmeof_hello *answer);

struct nvmeof_initiator_params {
    struct rdma_drv *rdma;
    const char *subsystem, *host; /* names (NQN) */
    uint16_t n_queues;            /* for I/O, 1 .. NVMEOF_QUEUES_MAX */
    uint16_t entries;             /* of each, 2 .. NVMEOF_ENTRIES_MAX; limited by the target */
    uint32_t keep_alive_ms;       /* 0: none */
    uint32_t mtu_bytes;
    uint64_t timeout_ps; /* of an admin command */
    nvmeof_exchange_fn *exchange;
    void *context;
};

/* [thread] Connects admin and I/O queues, enables the controller, identifies it. -EIO: the target
 * refused a command; -ENOTCONN: the connection broke; -ETIMEDOUT; -EINVAL; -ENOMEM; those of
 * rdma_drv_*() and of exchange(). With an error nothing is left behind. */
int nvmeof_initiator_open(const struct nvmeof_initiator_params *params,
                          struct nvmeof_initiator **out);
/* [thread] Disconnects: shuts the controller down unless the connection is broken; requests under
 * way end with -ENOTCONN. Buffers are freed. */
void nvmeof_initiator_close(struct nvmeof_initiator *initiator);
/* Frees C structures alone, after a run that has failed. NULL: nothing happens. */
void nvmeof_initiator_abandon(struct nvmeof_initiator *initiator);

struct nvme_user_namespace nvmeof_namespace(const struct nvmeof_initiator *initiator);
uint64_t nvmeof_bytes_max(const struct nvmeof_initiator *initiator); /* of a request */
uint32_t nvmeof_in_capsule_bytes(const struct nvmeof_initiator *initiator);
unsigned nvmeof_n_queues(const struct nvmeof_initiator *initiator); /* for I/O */
uint16_t nvmeof_entries(const struct nvmeof_initiator *initiator);  /* of a queue */

/* Memory for data that the target's adapter reaches. */
struct nvmeof_buffer {
    struct kaddr at;
    uint32_t key;
};
/* [thread] Freed with the initiator. */
int nvmeof_buffer_new(struct nvmeof_initiator *initiator, int node, uint64_t bytes,
                      struct nvmeof_buffer *out);

struct nvmeof_request;
/* Ends a request, in nvmeof_poll() or nvmeof_initiator_close(): it is the caller's again. */
typedef void nvmeof_done_fn(struct nvmeof_request *request);
struct nvmeof_request {
    /* ---- set by the caller, unchanged until done --------------------------------------------- */
    struct nvme_sqe sqe;         /* opcode, nsid, cdw10 to cdw15 */
    struct nvmeof_buffer buffer; /* of data; not used if bytes is 0 */
    uint64_t bytes;
    bool write; /* data goes to the target */
    nvmeof_done_fn *done;
    void *context;
    /* ---- valid in done() --------------------------------------------------------------------- */
    int error; /* 0; -EIO: status says why; -ENOTCONN */
    uint16_t status;
    uint64_t result;
};
/* Sends a command on the i-th I/O queue. One thread at a time uses a queue. -EBUSY: the queue is
 * full; -EINVAL: more bytes than the target takes; -ENOTCONN. */
int nvmeof_submit(struct nvmeof_initiator *initiator, unsigned i, struct nvmeof_request *request);
/* Ends requests whose responses have come; returns their number. A connection that breaks ends
 * all. */
unsigned nvmeof_poll(struct nvmeof_initiator *initiator, unsigned i);
/* Sends Keep Alive when half of its time has passed, and takes its response. To be called now and
 * then, by one thread. -ENOTCONN: the admin queue's connection is broken. */
int nvmeof_keep_alive(struct nvmeof_initiator *initiator);

/* Fills in a read or write of whole blocks of namespace 1. */
void nvmeof_transfer(const struct nvmeof_initiator *initiator, struct nvmeof_request *request,
                     bool write, uint64_t offset, uint64_t bytes);

#endif
