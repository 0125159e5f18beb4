/* What the files of logic/rdma/ share. */
#ifndef LOGIC_RDMA_RDMA_INTERNAL_H
#define LOGIC_RDMA_RDMA_INTERNAL_H

#include "logic/kcosts.h"
#include "logic/rdma/rdma_driver.h"

#define RDMA_DRV_EQ_LOG 8u

struct rdma_drv_memory { /* shared by adapter and CPU */
    struct kaddr at;
    uint64_t dma;
    size_t bytes;
};

struct rdma_drv_eq {
    struct rdma_drv *rdma;
    uint32_t number, consumer;
    bool made;
    struct rdma_drv_memory ring;
    struct k_irq *irq;
};

struct rdma_drv_mr {
    struct rdma_drv *rdma;
    uint32_t key;
    struct kaddr at; /* 0: not ours to unmap */
    uint64_t bytes, dma;
    struct rdma_drv_memory table;
};

struct rdma_drv_cq {
    struct rdma_drv *rdma;
    uint32_t number, consumer;
    uint8_t log;
    struct rdma_drv_memory ring, record;
    rdma_drv_cq_fn *handler;
    void *context;
    bool armed;
};

struct rdma_drv_qp {
    struct rdma_drv *rdma;
    struct rdma_drv_qp_params params;
    uint32_t number, psn;
    struct rdma_drv_memory sq, rq, record;
    uint8_t sq_log, rq_log, rq_entry_log;
    bool failed;               /* it is known to be in state ERR */
    uint16_t sq_tail, sq_head; /* blocks: posted, known to be complete */
    uint32_t rq_tail, rq_head; /* entries, likewise */
    uint64_t *send_id;         /* by first block */
    uint8_t *send_blocks;      /* by first block */
    uint64_t *receive_id;      /* by entry */
};

struct rdma_drv {
    struct rdma_driver *driver;
    struct kernel *kernel;
    const struct k_costs *costs;
    struct k_pci_dev *pci;
    struct rdma_drv *next;
    bool gone;          /* it does not answer any more; set by rdma_drv_lost() */
    bool closing;       /* it is being removed */
    uint32_t n_objects; /* that users have not freed */
    uint32_t n_qps, n_cqs;
    uint16_t lid;
    struct rdma_drv_limits limits;
    struct rdma_drv_memory command;
    bool command_busy;
    struct k_wait_queue command_wait;
    struct rdma_drv_eq *eq; /* one per CPU, as far as there are */
    uint32_t n_eqs;
    struct rdma_drv_cq **cq; /* by number */
    struct rdma_drv_qp **qp;
    rdma_drv_event_fn *on_event;
    void *event_context;
    struct rdma_driver_stats stats;
};

struct rdma_driver {
    struct kernel *kernel;
    struct k_pci_driver pci;
    struct rdma_drv *first;
};

/* rdma_main.c: it does not answer any more: who waits for completions finds what it has posted as
 * flushed. */
void rdma_drv_lost(struct rdma_drv *rdma);

/* rdma_command.c: [thread] Executes the command; its results are in *command. 0, -ENODEV,
 * -ETIMEDOUT, or what the adapter refused it with. */
int rdma_drv_command(struct rdma_drv *rdma, struct rdma_command *command);

/* rdma_memory.c */
int rdma_drv_memory_alloc(struct rdma_drv *rdma, struct rdma_drv_memory *memory, size_t bytes);
void rdma_drv_memory_free(struct rdma_drv *rdma, struct rdma_drv_memory *memory);

/* rdma_completion.c */
int rdma_drv_eqs_make(struct rdma_drv *rdma);
void rdma_drv_eqs_free(struct rdma_drv *rdma);

/* rdma_qp.c: it is in state ERR: from now on the adapter is told of receives, as of those that were
 * posted since. */
void rdma_drv_qp_failed(struct rdma_drv_qp *qp);
/* A work request whose completion goes to this queue has none yet. */
bool rdma_drv_qp_pending(const struct rdma_drv_qp *qp, const struct rdma_drv_cq *cq);
/* Ends the oldest work request whose completion would go to this queue, as flushed; false: there is
 * none. */
bool rdma_drv_qp_flush(struct rdma_drv_qp *qp, const struct rdma_drv_cq *cq,
                       struct rdma_drv_wc *wc);
/* The work request of a completion; false: there is none such. */
bool rdma_drv_qp_complete(struct rdma_drv_qp *qp, const struct rdma_cqe *cqe,
                          struct rdma_drv_wc *wc);

#endif
