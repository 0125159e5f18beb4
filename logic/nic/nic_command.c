/*
 * Commands to the NIC: a block in host memory that the device reads, executes and writes back.
 *
 * What it does: Runs one command at a time per function and polls its status byte, with growing
 *   sleeps. A register that reads as all ones shows that the function is gone.
 * Leaves out: the command interface's own event queue and its pages.
 * Costs: The time of the device, rounded up to the end of a sleep of 1, 2, 4 .. 32 us.
 */
#include "logic/nic/nic_internal.h"

#include <errno.h>

#define SLEEP_MIN_PS K_US
#define SLEEP_MAX_PS (32 * K_US)
#define PROBE_PS     K_MS /* period of checks whether the function answers */
#define TIMEOUT_PS   (100 * K_MS)

static bool absent(struct nic_drv *nic)
{
    return nic->pci == NULL || k_readl(nic->pci, 0, NIC_REG_VERSION) == UINT32_MAX;
}

/* Until the status is known; 0, -ENODEV or -ETIMEDOUT. */
static int wait_for(struct nic_drv *nic, struct nic_command *command)
{
    uint64_t start_ps = k_now_ps(nic->kernel), probe_ps = start_ps + PROBE_PS;
    uint64_t sleep_ps = SLEEP_MIN_PS;
    for (;;) {
        k_load(nic->kernel, nic->command.at, command, sizeof *command);
        if (command->status != NIC_COMMAND_PENDING)
            return 0;
        uint64_t now_ps = k_now_ps(nic->kernel);
        if (nic->gone)
            return -ENODEV;
        if (now_ps >= probe_ps) {
            if (absent(nic))
                return -ENODEV;
            if (now_ps >= start_ps + TIMEOUT_PS)
                return -ETIMEDOUT;
            probe_ps = now_ps + PROBE_PS;
        }
        k_sleep(nic->kernel, sleep_ps);
        if (sleep_ps < SLEEP_MAX_PS)
            sleep_ps *= 2;
    }
}

static int error_of(struct nic_drv *nic, const struct nic_command *command)
{
    switch (command->status) {
    case NIC_COMMAND_OK: return 0;
    case NIC_COMMAND_NO_RESOURCE: return -ENOSPC;
    case NIC_COMMAND_NOT_FOUND: return -ENOENT;
    default:
        k_warn(nic->kernel, "%s: command %u refused with status %u", nic->name, command->opcode,
               command->status);
        return -EINVAL;
    }
}

/* With the command block taken. */
static int execute(struct nic_drv *nic, struct nic_command *command)
{
    command->status = NIC_COMMAND_PENDING;
    k_store(nic->kernel, nic->command.at, command, sizeof *command);
    k_writel(nic->pci, 0, NIC_REG_COMMAND_LOW, (uint32_t)nic->command.dma);
    k_writel(nic->pci, 0, NIC_REG_COMMAND_HIGH, (uint32_t)(nic->command.dma >> 32));
    int error = wait_for(nic, command);
    if (error == 0)
        return error_of(nic, command);
    if (error == -ETIMEDOUT)
        k_warn(nic->kernel, "%s: command %u was never answered; given up", nic->name,
               command->opcode);
    /* The device may still write to the block: no other command may use it. */
    nic->gone = true;
    return error;
}

int nic_drv_command(struct nic_drv *nic, struct nic_command *command)
{
    int error = -ENODEV;
    nic->n_commands++;
    while (nic->command_busy)
        k_wait(nic->kernel, &nic->command_queue, UINT64_MAX);
    if (!nic->gone) {
        nic->command_busy = true;
        error = execute(nic, command);
        nic->command_busy = false;
        k_wake(nic->kernel, &nic->command_queue);
    }
    nic->n_commands--;
    return error;
}
