/* The inside of the NVMe driver. */
#ifndef LOGIC_NVME_NVME_INTERNAL_H
#define LOGIC_NVME_NVME_INTERNAL_H

#include "logic/kcosts.h"
#include "logic/nvme/nvme_driver.h"

#define NVMED_VFS_MAX        7u /* without ARI: functions 1 .. 7 of a bus */
#define NVMED_QUEUES_MAX     255u
#define NVMED_NAMESPACES_MAX 16u
#define NVMED_ADMIN_ENTRIES  32u

struct nvme_drv_memory { /* allocated by k_dma_alloc() */
    struct kaddr at;
    uint64_t dma;
    size_t bytes;
};

/* The controller's memory buffer, as far as submission queues may lie there. */
struct nvme_drv_cmb {
    uint64_t cpu;   /* where CPUs write to it */
    uint64_t bus;   /* where the controller itself finds it */
    uint64_t bytes; /* 0: there is none, or it is of no use */
};

struct nvme_drv_queue {
    struct nvme_drv *nvme;
    uint16_t number, cpu;
    uint16_t entries;
    uint16_t tail, head; /* of the submission queue; of the completion queue */
    uint8_t phase;
    bool made;   /* created in the device */
    bool locked; /* lock of the submission side */
    bool processing, again;
    struct nvme_drv_memory sq, cq, lists;
    uint64_t sq_cmb;            /* where CPUs write entries; 0: the queue is in memory, sq.at */
    struct nvme_request **slot; /* by command identifier */
    uint16_t *free_cid;
    uint16_t n_free;
    struct k_irq *irq;
    uint16_t vector; /* of irq */
    struct k_wait_queue room;
};

struct nvme_drv_namespace {
    uint64_t blocks;
    uint8_t block_log2;
};

struct nvme_drv_work {
    struct k_work work;
    struct nvme_drv *nvme;
};

struct nvme_drv {
    struct nvme_driver *driver;
    struct kernel *kernel;
    const struct k_costs *costs;
    struct k_pci_dev *pci;
    struct nvme_drv *next;
    bool gone;      /* the device does not answer any more, or was given up */
    bool closing;   /* being removed */
    bool resetting; /* no submissions meanwhile */
    bool removed;   /* only those who have it open keep it */
    bool polled;    /* as the driver's parameters say */
    uint64_t ready_timeout_ps;
    uint16_t entries_max;
    struct nvme_drv_cmb cmb;
    uint64_t bytes_max; /* largest request */
    uint32_t n_namespaces;
    struct nvme_drv_namespace namespace[NVMED_NAMESPACES_MAX];
    struct nvme_drv_queue admin;
    struct nvme_drv_queue *queue; /* for I/O */
    uint16_t n_queues;
    struct nvme_drv_memory page; /* data of admin commands */
    bool admin_busy;
    struct k_wait_queue admin_wait;
    unsigned n_vfs;                /* virtual functions that are enabled */
    uint16_t vf_id[NVMED_VFS_MAX]; /* identifiers of their controllers */
    bool vfs_online;               /* and these are online */
    uint32_t users;                /* threads inside */
    uint32_t n_opens;
    uint32_t n_works;
    struct k_timer watch;
    struct nvme_drv_work watch_work;
    struct nvme_driver_stats stats;
};

struct nvme_driver {
    struct kernel *kernel;
    struct nvme_driver_params params;
    struct k_pci_driver pci;
    struct nvme_drv *first;
};

/* nvme_queue.c */
int nvme_drv_memory_alloc(struct nvme_drv *nvme, struct nvme_drv_memory *memory, size_t bytes);
void nvme_drv_memory_free(struct nvme_drv *nvme, struct nvme_drv_memory *memory);
/* Allocates the memory of a queue pair; for I/O with command identifiers and PRP lists. Returns 0,
 * or a negative errno with nothing left behind. */
int nvme_drv_queue_alloc(struct nvme_drv *nvme, struct nvme_drv_queue *queue, uint16_t number,
                         uint16_t cpu, uint16_t entries);
void nvme_drv_queue_free(struct nvme_drv_queue *queue);
/* Empties the queue after a reset of the device. Command identifiers in use stay taken: a thread
 * may be about to submit with one. */
void nvme_drv_queue_clear(struct nvme_drv_queue *queue);
/* Writes an entry to the submission queue and rings the doorbell. False: the device was reset
 * meanwhile. */
bool nvme_drv_queue_put(struct nvme_drv_queue *queue, const struct nvme_sqe *sqe,
                        struct nvme_request *request);
/* Consumes the next completion. False: there is none. */
bool nvme_drv_queue_take(struct nvme_drv_queue *queue, struct nvme_cqe *cqe);
void nvme_drv_queue_ring_cq(const struct nvme_drv_queue *queue);
/* Ends the completed requests; returns their number, 0 if another caller is at it. */
unsigned nvme_drv_process(struct nvme_drv_queue *queue);
/* Ends all outstanding requests with `status`. The device must not access them any more. */
void nvme_drv_fail_all(struct nvme_drv *nvme, int status);
void nvme_drv_interrupt(void *arg);

/* nvme_cmb.c */
/* Finds the memory buffer; leaves cmb.bytes 0 if submission queues may not lie there. [thread] */
void nvme_drv_cmb_find(struct nvme_drv *nvme);
/* Lowers entries_max until so many queues for I/O fit the buffer, or gives it up. */
void nvme_drv_cmb_share(struct nvme_drv *nvme, uint16_t n_queues);
/* Places the submission queue in the buffer. False: it goes into memory. */
bool nvme_drv_cmb_place(struct nvme_drv_queue *queue);
/* Writes entry `at` of a queue there; when it returns, a doorbell cannot pass it. */
void nvme_drv_cmb_put(const struct nvme_drv_queue *queue, uint16_t at, const struct nvme_sqe *sqe);

/* nvme_admin.c: [thread] all. They return 0, -EIO, -ENODEV or -ETIMEDOUT. */
int nvme_drv_admin(struct nvme_drv *nvme, struct nvme_sqe *sqe, uint32_t *result);
int nvme_drv_identify_data(struct nvme_drv *nvme, uint32_t what, uint32_t nsid, uint8_t data[]);
int nvme_drv_identify(struct nvme_drv *nvme);
int nvme_drv_queue_make(struct nvme_drv_queue *queue);
int nvme_drv_set_queues(struct nvme_drv *nvme, uint16_t *n);

/* nvme_main.c */
bool nvme_drv_absent(struct nvme_drv *nvme);
void nvme_drv_watch(struct nvme_drv *nvme);

/* nvme_virtual.c: [thread] all but nvme_drv_is_offline_vf(). */
int nvme_drv_configure_vfs(struct k_pci_dev *pci, unsigned n);
/* After a reset of the primary controller, too. 0 or a negative errno. */
int nvme_drv_vfs_online(struct nvme_drv *nvme);
void nvme_drv_vfs_disable(struct nvme_drv *nvme);
/* A virtual function whose controller this driver, which has the primary one, has yet to take
 * online. */
bool nvme_drv_is_offline_vf(const struct k_pci_dev *pci, const struct nvme_driver *driver);

#endif
