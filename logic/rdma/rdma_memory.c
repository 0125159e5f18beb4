/*
 * Protection domains and memory regions of an RDMA adapter.
 *
 * What it does: Pins memory, maps it for the adapter, and describes it by a table of page
 *   addresses.
 * Leaves out: memory windows, fast registration by work requests, on-demand paging.
 * Follows: IBTA 11.2.8; Linux 5.4, ib_umem_get(), mlx5_ib_reg_user_mr().
 * Costs: pinning and mapping, a store per page, one command.
 */
#include <errno.h>

#include "logic/rdma/rdma_internal.h"

#define PAGE_LOG 12u

int rdma_drv_memory_alloc(struct rdma_drv *rdma, struct rdma_drv_memory *memory, size_t bytes)
{
    bytes = (bytes + K_PAGE_BYTES - 1) & ~(size_t)(K_PAGE_BYTES - 1);
    const int error = k_dma_alloc(&rdma->pci->device, rdma->pci->device.node, bytes, &memory->at,
                                  &memory->dma);
    memory->bytes = error == 0 ? bytes : 0;
    return error;
}

void rdma_drv_memory_free(struct rdma_drv *rdma, struct rdma_drv_memory *memory)
{
    if (memory->bytes != 0)
        k_dma_free(&rdma->pci->device, memory->bytes, memory->at, memory->dma);
    memory->bytes = 0;
}

/* ---- Protection domains ---------------------------------------------------------------------- */

int rdma_drv_pd_new(struct rdma_drv *rdma, uint32_t *pd)
{
    struct rdma_command command = { .opcode = RDMA_CREATE_PD };
    const int error = rdma_drv_command(rdma, &command);
    *pd = command.number;
    rdma->n_objects += error == 0;
    return error;
}

int rdma_drv_pd_free(struct rdma_drv *rdma, uint32_t pd)
{
    struct rdma_command command = { .opcode = RDMA_DESTROY_PD, .number = pd };
    const int error = rdma_drv_command(rdma, &command);
    rdma->n_objects -= error == 0 || error == -ENODEV || error == -ETIMEDOUT;
    return error;
}

/* ---- Regions --------------------------------------------------------------------------------- */

static int create(struct rdma_drv_mr *mr, struct rdma_command *command)
{
    command->opcode = RDMA_CREATE_MR;
    const int error = rdma_drv_command(mr->rdma, command);
    mr->key = command->key;
    return error;
}

static void release(struct rdma_drv_mr *mr)
{
    struct rdma_drv *rdma = mr->rdma;
    rdma_drv_memory_free(rdma, &mr->table);
    if (mr->at.v != 0) {
        k_dma_unmap(&rdma->pci->device, mr->dma, mr->bytes, K_DMA_BOTH);
        k_unpin(rdma->kernel, mr->at, mr->bytes);
    }
    rdma->n_objects--;
    k_free(mr);
}

static struct rdma_drv_mr *mr_alloc(struct rdma_drv *rdma)
{
    struct rdma_drv_mr *mr = k_zalloc(sizeof *mr);
    mr->rdma = rdma;
    rdma->n_objects++;
    return mr;
}

/* A table with the addresses of all pages that the region touches. */
static int make_table(struct rdma_drv_mr *mr)
{
    struct rdma_drv *rdma = mr->rdma;
    const uint64_t first = mr->dma & ~(uint64_t)(K_PAGE_BYTES - 1);
    const uint64_t n = (mr->dma - first + mr->bytes + K_PAGE_BYTES - 1) >> PAGE_LOG;
    const int error = rdma_drv_memory_alloc(rdma, &mr->table, n * sizeof(uint64_t));
    for (uint64_t i = 0; error == 0 && i < n; i++) {
        const uint64_t page = first + (i << PAGE_LOG);
        k_store(rdma->kernel, kaddr_add(mr->table.at, i * sizeof page), &page, sizeof page);
    }
    return error;
}

static int pin_and_map(struct rdma_drv_mr *mr, struct kaddr at, uint64_t bytes)
{
    struct rdma_drv *rdma = mr->rdma;
    int error = k_pin(rdma->kernel, at, bytes);
    if (error != 0)
        return error;
    error = k_dma_map(&rdma->pci->device, at, bytes, K_DMA_BOTH, &mr->dma);
    if (error != 0) {
        k_unpin(rdma->kernel, at, bytes);
        return error;
    }
    mr->at = at;
    mr->bytes = bytes;
    return 0;
}

int rdma_drv_mr_new(struct rdma_drv *rdma, uint32_t pd, struct kaddr at, uint64_t bytes,
                    uint8_t access, struct rdma_drv_mr **out)
{
    struct rdma_drv_mr *mr = mr_alloc(rdma);
    int error = pin_and_map(mr, at, bytes);
    if (error == 0)
        error = make_table(mr);
    if (error == 0) {
        struct rdma_command command = { .iova = mr->table.dma,
                                        .va = at.v,
                                        .bytes = bytes,
                                        .pd = pd,
                                        .access = access,
                                        .page_log = PAGE_LOG };
        error = create(mr, &command);
    }
    if (error != 0)
        release(mr);
    else
        *out = mr;
    return error;
}

int rdma_drv_mr_new_dma(struct rdma_drv *rdma, uint32_t pd, uint64_t dma, uint64_t va,
                        uint64_t bytes, uint8_t access, struct rdma_drv_mr **out)
{
    struct rdma_drv_mr *mr = mr_alloc(rdma);
    struct rdma_command command = {
        .iova = dma, .va = va, .bytes = bytes, .pd = pd, .access = access
    };
    const int error = create(mr, &command);
    if (error != 0)
        release(mr);
    else
        *out = mr;
    return error;
}

void rdma_drv_mr_free(struct rdma_drv_mr *mr)
{
    struct rdma_command command = { .opcode = RDMA_DESTROY_MR, .key = mr->key };
    const int error = rdma_drv_command(mr->rdma, &command);
    if (error != 0 && error != -ENODEV)
        k_warn(mr->rdma->kernel, "rdma: a memory region could not be destroyed (%d)", error);
    release(mr);
}

uint32_t rdma_drv_key(const struct rdma_drv_mr *mr)
{
    return mr->key;
}
