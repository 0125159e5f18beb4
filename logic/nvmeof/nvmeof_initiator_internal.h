/* What the files of the initiator share. */
#ifndef LOGIC_NVMEOF_NVMEOF_INITIATOR_INTERNAL_H
#define LOGIC_NVMEOF_NVMEOF_INITIATOR_INTERNAL_H

#include "logic/nvmeof/nvmeof_internal.h"

struct initiator_memory { /* registered pages */
    struct kaddr at;
    uint64_t bytes;
    struct rdma_drv_mr *mr;
};

struct initiator_buffer {
    struct initiator_buffer *next;
    struct initiator_memory memory;
};

struct initiator_queue {
    struct nvmeof_initiator *initiator;
    struct rdma_drv_cq *cq;
    struct rdma_drv_qp *qp;
    struct initiator_memory memory; /* command capsules, then a line for each response */
    uint16_t qid, entries;
    uint16_t sq_tail, sq_head; /* capsules sent; what the target has told */
    uint32_t in_capsule_bytes;
    bool inlines; /* capsules without data lie in their work request */
    bool broken, polling;
    struct nvmeof_request **slot; /* by command identifier */
    uint16_t *free_cid;
    uint16_t n_free;
};

struct nvmeof_initiator {
    struct nvmeof_initiator_params params;
    struct kernel *kernel;
    const struct k_costs *costs;
    uint32_t pd;
    bool has_pd;
    char subsystem[NVMEOF_NQN_BYTES], host[NVMEOF_NQN_BYTES];
    uint16_t cntlid;
    struct initiator_queue admin, *queue;
    uint16_t n_queues;
    struct nvmeof_buffer page; /* data of admin commands */
    struct initiator_buffer *buffers;
    struct nvme_user_namespace namespace;
    uint64_t bytes_max;
    uint32_t in_capsule_bytes;
    struct nvmeof_request keep_alive;
    bool keep_alive_under_way;
    uint64_t keep_alive_ps; /* when the next one is due */
};

/* nvmeof_initiator_queue.c */
/* [thread] */
int initiator_memory_new(struct nvmeof_initiator *initiator, int node, uint64_t bytes,
                         uint8_t access, struct initiator_memory *out);
/* [thread] */
void initiator_memory_free(struct nvmeof_initiator *initiator, struct initiator_memory *memory);
/* [thread] Makes the connection of a queue that is all zeros; Connect is still to be sent. */
int initiator_queue_open(struct nvmeof_initiator *initiator, struct initiator_queue *queue,
                         uint16_t qid, uint16_t entries);
/* [thread] Requests under way end with -ENOTCONN. */
void initiator_queue_close(struct initiator_queue *queue);
int initiator_queue_submit(struct initiator_queue *queue, struct nvmeof_request *request);
unsigned initiator_queue_poll(struct initiator_queue *queue);

#endif
