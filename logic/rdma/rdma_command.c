/*
 * Commands to an RDMA adapter.
 *
 * What it does: Runs one command at a time and polls its status byte, with growing sleeps. A
 *   register that reads as all ones shows that the adapter is gone.
 * Leaves out: the command interface's own events and pages.
 * Costs: The time of the device, rounded up to the end of a sleep of 1, 2, 4 .. 32 us.
 */
#include <errno.h>

#include "logic/rdma/rdma_internal.h"

#define SLEEP_MIN_PS K_US
#define SLEEP_MAX_PS (32 * K_US)
#define PROBE_PS     K_MS /* period of checks whether the adapter answers */
#define TIMEOUT_PS   (200 * K_MS)

static int wait_for(struct rdma_drv *rdma, struct rdma_command *command)
{
    const uint64_t start_ps = k_now_ps(rdma->kernel);
    uint64_t probe_ps = start_ps + PROBE_PS, sleep_ps = SLEEP_MIN_PS;
    for (;;) {
        k_load(rdma->kernel, rdma->command.at, command, sizeof *command);
        if (command->status != RDMA_COMMAND_PENDING)
            return 0;
        const uint64_t now_ps = k_now_ps(rdma->kernel);
        if (rdma->gone)
            return -ENODEV;
        if (now_ps >= probe_ps) {
            if (k_readl(rdma->pci, 0, RDMA_REG_VERSION) == UINT32_MAX)
                return -ENODEV;
            if (now_ps >= start_ps + TIMEOUT_PS)
                return -ETIMEDOUT;
            probe_ps = now_ps + PROBE_PS;
        }
        k_sleep(rdma->kernel, sleep_ps);
        if (sleep_ps < SLEEP_MAX_PS)
            sleep_ps *= 2;
    }
}

static int error_of(const struct rdma_command *command)
{
    switch (command->status) {
    case RDMA_COMMAND_OK: return 0;
    case RDMA_COMMAND_NO_RESOURCE: return -ENOSPC;
    case RDMA_COMMAND_NOT_FOUND: return -ENOENT;
    case RDMA_COMMAND_BUSY: return -EBUSY;
    default: return -EINVAL;
    }
}

static int execute(struct rdma_drv *rdma, struct rdma_command *command)
{
    command->status = RDMA_COMMAND_PENDING;
    k_store(rdma->kernel, rdma->command.at, command, sizeof *command);
    k_writel(rdma->pci, 0, RDMA_REG_COMMAND_LOW, (uint32_t)rdma->command.dma);
    k_writel(rdma->pci, 0, RDMA_REG_COMMAND_HIGH, (uint32_t)(rdma->command.dma >> 32));
    const int error = wait_for(rdma, command);
    if (error == 0)
        return error_of(command);
    if (error == -ETIMEDOUT)
        k_warn(rdma->kernel, "rdma: command %u was never answered; given up", command->opcode);
    rdma_drv_lost(rdma); /* it may still write to the block */
    return error;
}

/* What an adapter that is being removed does not do any more. */
static bool begins_something(const struct rdma_command *command)
{
    switch (command->opcode) {
    case RDMA_CREATE_EQ:
    case RDMA_CREATE_CQ:
    case RDMA_CREATE_PD:
    case RDMA_CREATE_MR:
    case RDMA_CREATE_QP:
    case RDMA_SET_OFFLOAD: return true;
    case RDMA_MODIFY_QP: return command->state != RDMA_QP_ERR;
    default: return false;
    }
}

int rdma_drv_command(struct rdma_drv *rdma, struct rdma_command *command)
{
    int error = -ENODEV;
    while (rdma->command_busy)
        k_wait(rdma->kernel, &rdma->command_wait, UINT64_MAX);
    if (!rdma->gone && !(rdma->closing && begins_something(command))) {
        rdma->command_busy = true;
        error = execute(rdma, command);
        rdma->command_busy = false;
        k_wake(rdma->kernel, &rdma->command_wait);
    }
    return error;
}
