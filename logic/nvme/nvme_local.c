/*
 * An NVMe controller in the hands of one process.
 *
 * What it does: Takes a function that has no driver, gives its controller queue pairs in pinned
 *   memory, and gives everything back.
 * Leaves out: sharing by several processes, surprise removal, namespaces other than the first.
 * Follows: SPDK 19.01, lib/nvme (what is done per command, not how).
 * Costs: spdk_submit_cycles, spdk_complete_cycles, spdk_poll_cycles; those of nvme_user_queue.c.
 */
#include "logic/nvme/nvme_local.h"

#include <errno.h>

#include "logic/kcosts.h"

#define ADMIN_ENTRIES    32u
#define ADMIN_TIMEOUT_PS (200 * K_MS)
#define NSID             1u

const struct nvme_local_params nvme_local_params_default = {
    .n_queues = 1,
    .entries = 256,
    .bytes_max = 131072,
};

struct local_memory { /* that is freed with the process */
    struct local_memory *next;
    struct nvme_user_memory memory;
    size_t bytes;
};

struct nvme_local {
    struct k_pci_dev *dev;
    struct kernel *kernel;
    struct nvme_user_controller ctl;
    struct nvme_user_namespace namespace;
    struct nvme_user_qp *qp;
    uint16_t n_queues;
    uint64_t bytes_max;
    struct local_memory *memory;
};

/* ---- Memory ---------------------------------------------------------------------------------- */

int nvme_local_memory(struct nvme_local *local, int node, uint64_t bytes,
                      struct nvme_user_memory *out)
{
    struct local_memory *made = k_zalloc(sizeof *made);
    made->bytes = (bytes + K_PAGE_BYTES - 1) & ~(uint64_t)(K_PAGE_BYTES - 1);
    const int error = k_dma_alloc(&local->dev->device, node, made->bytes, &made->memory.at,
                                  &made->memory.bus);
    if (error != 0) {
        k_free(made);
        return error;
    }
    made->next = local->memory;
    local->memory = made;
    *out = made->memory;
    return 0;
}

/* ---- Queues ---------------------------------------------------------------------------------- */

static struct nvme_user_costs costs_of(const struct nvme_local *local)
{
    const struct k_costs *costs = k_costs(local->kernel);
    return (struct nvme_user_costs){ costs->spdk_submit_cycles, costs->spdk_complete_cycles,
                                     costs->spdk_poll_cycles };
}

/* Of a PRP list for the largest command: a power of two, so that no list crosses a page. */
static uint32_t list_bytes(uint64_t bytes_max)
{
    uint32_t bytes = K_LINE_BYTES;
    while (bytes < bytes_max / NVME_PAGE_BYTES * 8)
        bytes *= 2;
    return bytes;
}

static int add_queue(struct nvme_local *local, uint16_t entries)
{
    const int node = local->dev->device.node;
    struct nvme_user_qp *qp = &local->qp[local->n_queues];
    struct nvme_user_qp_params params = { .kernel = local->kernel,
                                          .id = (uint16_t)(local->n_queues + 1u),
                                          .entries = entries,
                                          .list_bytes = list_bytes(local->bytes_max),
                                          .registers = local->ctl.params.registers,
                                          .doorbell_bytes = local->ctl.doorbell_bytes,
                                          .costs = costs_of(local) };
    int error = nvme_local_memory(local, node, (uint64_t)entries * NVME_SQE_BYTES, &params.sq);
    if (error == 0)
        error = nvme_local_memory(local, node, (uint64_t)entries * NVME_CQE_BYTES, &params.cq);
    if (error == 0)
        error = nvme_local_memory(local, node, (uint64_t)entries * params.list_bytes,
                                  &params.lists);
    if (error == 0)
        error = nvme_user_qp_init(qp, &params);
    if (error != 0)
        return error;
    error = nvme_user_create_queues(&local->ctl, params.id, entries, params.sq.bus, params.cq.bus,
                                    NVME_SQ_URGENT);
    if (error != 0)
        nvme_user_qp_release(qp);
    else
        local->n_queues++;
    return error;
}

static int add_queues(struct nvme_local *local, const struct nvme_local_params *params)
{
    uint16_t n = params->n_queues, entries = params->entries;
    if (entries > local->ctl.entries_max)
        entries = (uint16_t)local->ctl.entries_max;
    int error = nvme_user_set_queues(&local->ctl, &n);
    local->qp = k_zalloc(n * sizeof *local->qp);
    while (error == 0 && local->n_queues < n)
        error = add_queue(local, entries);
    return error;
}

/* ---- The controller -------------------------------------------------------------------------- */

static int open_controller(struct nvme_local *local)
{
    const int node = local->dev->device.node;
    struct nvme_user_controller_params params = { .kernel = local->kernel,
                                                  .registers = nvme_user_bar_window(local->dev, 0),
                                                  .admin_entries = ADMIN_ENTRIES,
                                                  .timeout_ps = ADMIN_TIMEOUT_PS,
                                                  .costs = costs_of(local) };
    int error = nvme_local_memory(local, node, ADMIN_ENTRIES * NVME_SQE_BYTES, &params.admin_sq);
    if (error == 0)
        error = nvme_local_memory(local, node, ADMIN_ENTRIES * NVME_CQE_BYTES, &params.admin_cq);
    if (error == 0)
        error = nvme_local_memory(local, node, NVME_PAGE_BYTES, &params.page);
    return error != 0 ? error : nvme_user_controller_open(&local->ctl, &params);
}

static int bring_up(struct nvme_local *local, const struct nvme_local_params *params)
{
    int error = nvme_user_identify_namespace(&local->ctl, NSID, &local->namespace);
    if (error == 0 && local->namespace.blocks == 0)
        error = -ENODEV;
    local->bytes_max = params->bytes_max;
    if (local->ctl.bytes_max != 0 && local->ctl.bytes_max < local->bytes_max)
        local->bytes_max = local->ctl.bytes_max;
    return error != 0 ? error : add_queues(local, params);
}

void nvme_local_abandon(struct nvme_local *local)
{
    if (local == NULL)
        return;
    for (uint16_t i = 0; i < local->n_queues; i++)
        nvme_user_qp_release(&local->qp[i]);
    nvme_user_qp_release(&local->ctl.admin);
    while (local->memory != NULL) {
        struct local_memory *gone = local->memory;
        local->memory = gone->next;
        k_free(gone);
    }
    k_free(local->qp);
    k_free(local);
}

static void release(struct nvme_local *local)
{
    for (const struct local_memory *m = local->memory; m != NULL; m = m->next)
        k_dma_free(&local->dev->device, m->bytes, m->memory.at, m->memory.bus);
    local->dev->device.driver_data = NULL;
    nvme_local_abandon(local);
}

int nvme_local_open(struct k_pci_dev *dev, const struct nvme_local_params *params,
                    struct nvme_local **out)
{
    if (params->n_queues == 0 || params->n_queues > NVME_LOCAL_QUEUES_MAX || params->entries < 2 ||
        params->entries > NVME_LOCAL_ENTRIES_MAX || params->bytes_max < NVME_PAGE_BYTES ||
        params->bytes_max > (uint64_t)NVME_PAGE_BYTES * (NVME_PAGE_BYTES / 8 - 1))
        return -EINVAL;
    if (dev->driver != NULL || dev->device.driver_data != NULL)
        return -EBUSY;
    struct nvme_local *local = k_zalloc(sizeof *local);
    *local = (struct nvme_local){ .dev = dev, .kernel = dev->device.kernel };
    dev->device.driver_data = local;
    k_pci_enable(dev);
    k_dma_set_mask(&dev->device, 64);
    int error = open_controller(local);
    if (error != 0) {
        release(local);
        return error;
    }
    error = bring_up(local, params);
    if (error != 0)
        nvme_local_close(local);
    else
        *out = local;
    return error;
}

void nvme_local_close(struct nvme_local *local)
{
    for (uint16_t i = 0; i < local->n_queues && !local->ctl.gone; i++)
        if (nvme_user_delete_queues(&local->ctl, (uint16_t)(i + 1u)) != 0)
            k_warn(local->kernel, "nvme: a queue pair could not be deleted");
    nvme_user_controller_close(&local->ctl);
    release(local);
}

/* ---- Asking ---------------------------------------------------------------------------------- */

struct nvme_user_controller *nvme_local_controller(struct nvme_local *local)
{
    return &local->ctl;
}

struct k_pci_dev *nvme_local_pci(const struct nvme_local *local)
{
    return local->dev;
}

unsigned nvme_local_n_queues(const struct nvme_local *local)
{
    return local->n_queues;
}

struct nvme_user_qp *nvme_local_qp(struct nvme_local *local, unsigned i)
{
    return &local->qp[i];
}

uint64_t nvme_local_bytes_max(const struct nvme_local *local)
{
    return local->bytes_max;
}

struct nvme_user_namespace nvme_local_namespace(const struct nvme_local *local)
{
    return local->namespace;
}

void nvme_local_transfer(const struct nvme_local *local, struct nvme_user_command *command,
                         bool write, uint64_t offset, uint64_t bytes)
{
    const uint64_t block = offset >> local->namespace.block_log2;
    command->sqe = (struct nvme_sqe){ .opcode = write ? NVME_WRITE : NVME_READ,
                                      .nsid = NSID,
                                      .cdw10 = (uint32_t)block,
                                      .cdw11 = (uint32_t)(block >> 32) };
    command->sqe.cdw12 = (uint32_t)(bytes >> local->namespace.block_log2) - 1;
}
