/*
 * A target whose adapter serves the reads of I/O queues by itself.
 *
 * What it does: Gives an I/O queue a second queue pair of the controller and staging buffers, which
 *   the adapter takes over with Connect; takes them back when the connection has ended: the
 *   adapter's queue pair is destroyed first, then the NVMe queues are deleted, which ends their
 *   commands, and created again for the next connection. Connect, writes, other commands, and what
 *   the adapter has no room for, go the way of a target that is not offloaded, on the first queue
 *   pair.
 * Leaves out: offload of writes and flushes.
 * Follows: SmartIO, 7.4.3 (last paragraph); the order of Mellanox' driver of the offload.
 * Costs: Two pairs of admin commands per connection; none per NVMe command.
 */
#include <errno.h>

#include "logic/nvmeof/nvmeof_internal.h"

/* Empty queues, which begin at entry 0. */
static int renew(struct nvmeof_target *target, struct nvme_user_qp *qp)
{
    struct nvme_user_controller *ctl = nvme_local_controller(target->params.nvme);
    const int error = nvme_user_delete_queues(ctl, qp->params.id);
    if (error != 0)
        return error;
    nvme_user_qp_clear(qp);
    return nvme_user_create_queues(ctl, qp->params.id, qp->params.entries, qp->params.sq.bus,
                                   qp->params.cq.bus, NVME_SQ_URGENT);
}

int target_offload_prepare(struct target_queue *queue)
{
    struct nvmeof_target *target = queue->target;
    if (!target->params.offload || queue->qid == 0)
        return 0;
    int error = target_nvme_get(target, &queue->adapters_nvme);
    if (error == 0 && queue->adapters_nvme->stats.submitted != 0) /* the processor has used it */
        error = renew(target, queue->adapters_nvme);
    if (error == 0)
        return target_memory_get(target, &queue->staging);
    if (queue->adapters_nvme !=
        NULL) { /* the controller may not have it any more: it stays taken */
        k_warn(target->kernel, "nvmeof: a queue pair of the controller is lost (%d)", error);
        queue->adapters_nvme = NULL;
    }
    return error;
}

uint16_t target_offload_begin(struct target_queue *queue)
{
    const struct nvmeof_target *target = queue->target;
    const struct nvme_user_qp *nvme = queue->adapters_nvme;
    const uint64_t data = target_capsules_bytes(target), base = nvme->params.registers.base;
    struct nvme_user_memory *memory = &queue->staging->memory;
    const struct rdma_drv_offload_params params = {
        .controller = nvme_local_pci(target->params.nvme),
        .sq_doorbell = nvme->sq_doorbell - base,
        .cq_doorbell = nvme->cq_doorbell - base,
        .sq = nvme->params.sq.at,
        .cq = nvme->params.cq.at,
        .nvme_entries = nvme->params.entries,
        .entries = queue->entries,
        .sq_head = (uint16_t)(queue->sq_head % queue->entries),
        .block_log2 = target->namespace.block_log2,
        .nsid = NVMEOF_NSID,
        .slot_bytes = (uint32_t)target->data_bytes,
        .staging_va = kaddr_add(memory->at, data).v,
        .staging_key = rdma_drv_key(queue->staging->mr),
        .staging_bus = memory->bus + data,
        .lists = nvme->params.lists.at,
        .lists_bus = nvme->params.lists.bus,
        .list_bytes = nvme->params.list_bytes,
    };
    return rdma_drv_offload_new(queue->qp, &params, &queue->offload) == 0 ? NVME_SC_SUCCESS
                                                                          : NVME_SC_INTERNAL_ERROR;
}

void target_offload_end(struct target_queue *queue)
{
    struct nvmeof_target *target = queue->target;
    int error = 0;
    if (queue->offload != NULL) {
        error = renew(target, queue->adapters_nvme);
        rdma_drv_offload_free(queue->offload);
    }
    if (error != 0) { /* the controller may still write: both stay taken */
        k_warn(target->kernel, "nvmeof: a queue pair of the controller is lost (%d)", error);
        return;
    }
    if (queue->adapters_nvme != NULL)
        target_nvme_put(target, queue->adapters_nvme);
    if (queue->staging != NULL)
        queue->staging->used = false;
}
