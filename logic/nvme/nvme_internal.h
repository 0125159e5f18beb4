/* What the files of logic/nvme/ share. */
#ifndef LOGIC_NVME_NVME_INTERNAL_H
#define LOGIC_NVME_NVME_INTERNAL_H

#include "logic/kcosts.h"
#include "logic/nvme/nvme_driver.h"

#define NVMED_QUEUES_MAX     255u
#define NVMED_NAMESPACES_MAX 16u
#define NVMED_ADMIN_ENTRIES  32u

struct nvmed_memory { /* of k_dma_alloc() */
    struct kaddr at;
    uint64_t dma;
    size_t bytes;
};

struct nvmed_queue {
    struct nvme *nvme;
    uint16_t number, cpu;
    uint16_t entries;
    uint16_t tail, head; /* of the submission queue; of the completion queue */
    uint8_t phase;
    bool made;   /* the device knows it */
    bool locked; /* the submission side */
    bool processing, again;
    struct nvmed_memory sq, cq, lists;
    struct nvme_request **slot; /* by command identifier */
    uint16_t *free_cid;
    uint16_t n_free;
    struct k_irq *irq;
    struct k_wait_queue room;
};

struct nvmed_namespace {
    uint64_t blocks;
    uint8_t block_log2;
};

struct nvmed_work {
    struct k_work work;
    struct nvme *nvme;
};

struct nvme {
    struct nvme_driver *driver;
    struct kernel *kernel;
    const struct k_costs *costs;
    struct k_pci_dev *pci;
    struct nvme *next;
    bool gone;      /* it answers no more, or was given up */
    bool closing;   /* being removed */
    bool resetting; /* nothing is submitted */
    uint64_t ready_timeout_ps;
    uint16_t entries_max;
    uint64_t bytes_max; /* of a request */
    uint32_t n_namespaces;
    struct nvmed_namespace namespace[NVMED_NAMESPACES_MAX];
    struct nvmed_queue admin;
    struct nvmed_queue *queue; /* for I/O */
    uint16_t n_queues;
    struct nvmed_memory page; /* data of admin commands */
    bool admin_busy;
    struct k_wait_queue admin_wait;
    uint32_t users; /* threads inside */
    uint32_t n_works;
    struct k_timer watch;
    struct nvmed_work watch_work;
    struct nvme_driver_stats stats;
};

struct nvme_driver {
    struct kernel *kernel;
    struct nvme_driver_params params;
    struct k_pci_driver pci;
    struct nvme *first;
};

/* nvme_queue.c */
int nvmed_memory_alloc(struct nvme *nvme, struct nvmed_memory *memory, size_t bytes);
void nvmed_memory_free(struct nvme *nvme, struct nvmed_memory *memory);
/* Memory of a queue pair, for I/O with identifiers and PRP lists; 0 or a negative errno with
 * nothing left behind. */
int nvmed_queue_alloc(struct nvme *nvme, struct nvmed_queue *queue, uint16_t number, uint16_t cpu,
                      uint16_t entries);
void nvmed_queue_free(struct nvmed_queue *queue);
/* Empty, as a device that was reset sees it. Identifiers stay with who has taken them: a thread may
 * be about to submit with one. */
void nvmed_queue_clear(struct nvmed_queue *queue);
/* Puts an entry into the submission queue and rings. False: the device was reset meanwhile. */
bool nvmed_queue_put(struct nvmed_queue *queue, const struct nvme_sqe *sqe,
                     struct nvme_request *request);
/* The next completion, taken out; false: there is none. */
bool nvmed_queue_take(struct nvmed_queue *queue, struct nvme_cqe *cqe);
void nvmed_queue_ring_cq(const struct nvmed_queue *queue);
unsigned nvmed_process(struct nvmed_queue *queue);
/* Every request that the device has ends with the status. The device is silent. */
void nvmed_fail_all(struct nvme *nvme, int status);
void nvmed_interrupt(void *arg);

/* nvme_admin.c: [thread] 0, -EIO with the status known, -ENODEV, -ETIMEDOUT. */
int nvmed_admin(struct nvme *nvme, struct nvme_sqe *sqe, uint32_t *result);
int nvmed_identify(struct nvme *nvme);
int nvmed_queue_make(struct nvmed_queue *queue);
int nvmed_set_queues(struct nvme *nvme, uint16_t *n);

/* nvme_main.c */
bool nvmed_absent(struct nvme *nvme);
void nvmed_watch(struct nvme *nvme);

#endif
