/* What the files of logic/nvmeof/ share. */
#ifndef LOGIC_NVMEOF_NVMEOF_INTERNAL_H
#define LOGIC_NVMEOF_NVMEOF_INTERNAL_H

#include <string.h>

#include "logic/kcosts.h"
#include "logic/nvmeof/nvmeof.h"

#define NVMEOF_WCS         16u /* completions that are taken at once */
#define NVMEOF_NSID        1u
#define NVMEOF_CONTROLLERS 64u

static inline uint32_t nvmeof_sgl_bytes(const struct nvmeof_sgl *sgl)
{
    const uint32_t high = sgl->type == NVMEOF_SGL_KEYED ? 0 : sgl->key[0];
    return sgl->bytes[0] | (uint32_t)sgl->bytes[1] << 8 | (uint32_t)sgl->bytes[2] << 16 |
           high << 24;
}
static inline uint32_t nvmeof_sgl_key(const struct nvmeof_sgl *sgl)
{
    uint32_t key;
    memcpy(&key, sgl->key, sizeof key);
    return key;
}
static inline struct nvmeof_sgl nvmeof_sgl(uint8_t type, uint64_t address, uint32_t bytes,
                                           uint32_t key)
{
    struct nvmeof_sgl sgl = { .address = address, .type = type };
    sgl.bytes[0] = (uint8_t)bytes;
    sgl.bytes[1] = (uint8_t)(bytes >> 8);
    sgl.bytes[2] = (uint8_t)(bytes >> 16);
    memcpy(sgl.key, &key, sizeof key);
    return sgl;
}

/* ---- Target ---------------------------------------------------------------------------------- */

/* Of a queue: command capsules, then pages of data, both for entries_max requests. It outlives its
 * queue and serves the next one. */
struct target_memory {
    struct target_memory *next; /* all of them */
    bool used;
    struct nvme_user_memory memory;
    struct rdma_drv_mr *mr;
};

struct target_queue;
struct target_request { /* a receive work request, and the command that it got */
    struct target_queue *queue;
    struct kaddr capsule;
    struct nvme_user_memory data;
    struct nvme_sqe sqe;
    struct nvmeof_sgl sgl; /* that of the command */
    uint32_t bytes;        /* of data */
    struct nvme_user_command command;
};

enum target_queue_state { TARGET_NEW, TARGET_CONNECTED, TARGET_BROKEN };

struct target_controller {
    bool used, closing;
    const struct target_request *last; /* behind its response the admin queue ends; or NULL */
    uint16_t cntlid;
    uint32_t cc, csts;
    uint64_t keep_alive_ps; /* 0: none */
    uint64_t deadline_ps;
    unsigned n_queues;
    bool has_event_request;
    char host[NVMEOF_NQN_BYTES];
};

struct target_queue {
    struct nvmeof_target *target;
    struct target_queue *next;
    struct rdma_drv_qp *qp;
    struct target_memory *memory;
    uint16_t qid, entries, sq_head;
    uint16_t response; /* which of the memory's the next one lies in, if it is not inline */
    enum target_queue_state state;
    struct target_controller *controller;
    struct nvme_user_qp *nvme; /* of an I/O queue */
    /* Offload: the adapter's queue pair of the controller, memory of its staging buffers. */
    struct nvme_user_qp *adapters_nvme;
    struct target_memory *staging;
    struct rdma_drv_offload *offload; /* NULL: not begun */
    unsigned n_nvme;                  /* commands of it that the device has */
    struct target_request *request;
};

struct nvmeof_target {
    struct nvmeof_target_params params;
    struct kernel *kernel;
    const struct k_costs *costs;
    char subsystem[NVMEOF_NQN_BYTES];
    uint32_t pd;
    struct rdma_drv_cq *cq;
    struct target_queue *first;
    struct target_memory *memories;
    uint64_t data_bytes; /* of a request at most */
    bool inlines;        /* the adapter takes responses inline */
    bool *nvme_used;     /* by number of the NVMe queue pair */
    unsigned n_queues, n_broken;
    struct target_controller controller[NVMEOF_CONTROLLERS];
    struct nvme_user_namespace namespace;
    uint8_t id_controller[NVME_IDENTIFY_BYTES], id_namespace[NVME_IDENTIFY_BYTES];
    uint64_t look_ps; /* when keep-alive is looked at again */
    struct nvmeof_target_stats stats;
};

/* nvmeof_target.c */
/* Where the data buffers begin in a target_memory. */
uint64_t target_capsules_bytes(const struct nvmeof_target *target);
/* [thread] */
int target_memory_get(struct nvmeof_target *target, struct target_memory **out);
int target_nvme_get(struct nvmeof_target *target, struct nvme_user_qp **out);
void target_nvme_put(struct nvmeof_target *target, const struct nvme_user_qp *qp);
/* The queue serves nobody any more; it is freed at the end of the round. */
void target_break(struct target_queue *queue);
/* Posts the receive of this request again, then sends its response. */
void target_respond(struct target_request *request, uint16_t status, uint64_t result);
/* Fetches request->bytes of data from the initiator; target_io_data_is_here() follows. */
void target_fetch_data(struct target_request *request);
/* Writes `bytes` of the request's data to the initiator's memory, and a response behind it. */
void target_respond_data(struct target_request *request, uint32_t bytes, uint64_t result);

/* nvmeof_target_offload.c: [thread] what a new I/O queue needs, if the target is offloaded. */
int target_offload_prepare(struct target_queue *queue);
/* [thread] The adapter serves reads from now on; a status. */
uint16_t target_offload_begin(struct target_queue *queue);
/* [thread] After the queue pair was destroyed: the controller ends its commands, all is given
 * back. */
void target_offload_end(struct target_queue *queue);

/* nvmeof_target_admin.c: a command on an admin queue, or a Fabrics command. */
void target_admin(struct target_request *request, uint32_t capsule_data_bytes);
/* [thread] What Identify will say. */
int target_identify(struct nvmeof_target *target);

/* nvmeof_target_io.c: a command on an I/O queue; its data has come by an RDMA read. */
void target_io(struct target_request *request, uint32_t capsule_data_bytes);
void target_io_data_is_here(struct target_request *request);
/* The NVMe controller has completed the command. */
void target_io_done(struct nvme_user_command *command);

#endif
