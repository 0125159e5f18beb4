/*
 * The kernel of gpu.cuda that drives an NVMe controller (GPU_KERNEL_NVME), as SmartIO's figure 18
 * has it: queues in device memory, doorbells that the GPU writes itself.
 *
 * Models: one thread that keeps `depth` commands under way: it writes an entry, makes it visible to
 *   the bus, stores to the doorbell, and reads the phase of the completion queue's head until it
 *   turns. The entry, the completion and the doorbells are real bytes, read and written by address.
 * Does not model: many threads that share a queue, and what they pay to do so; instructions.
 * Timing: clock_call, nvme_submit and fence until an entry is visible; its doorbell reaches the
 *   link store_latency later. Turns of the loop as in gpu_kernel.c; nvme_complete after the turn
 *   that saw a completion, whose doorbell is stored as well. At a depth of 1 a command takes
 *     clock_call + nvme_submit + fence + store_latency + t
 *   and what is left of the turn under way, with t from the doorbell at the link to the phase in
 *   device memory.
 * Sources: SmartIO 6.4; docs/models/gpu.md.
 */
#include "hw/nvme_regs.h"
#include "models/gpu/gpu_internal.h"

static uint64_t entry_at(const struct gpu_nvme_run *run)
{
    return run->job.cq + (uint64_t)run->head * NVME_CQE_BYTES;
}

static bool is_good(const struct gpu_device *gpu, const struct gpu_nvme_job *job)
{
    return job->entries >= 2 && job->depth >= 1 && job->depth < job->entries &&
           job->depth <= GPU_NVME_DEPTH_MAX && job->n_places != 0 && job->n_places <= UINT32_MAX &&
           job->n_buffers != 0 && job->n_blocks != 0 && job->buffer_bytes != 0 &&
           (job->opcode == NVME_READ || job->opcode == NVME_WRITE) &&
           (job->sq | job->cq | job->data | job->buffer_bytes) % NVME_PAGE_BYTES == 0 &&
           (job->sq_doorbell | job->cq_doorbell) % sizeof(uint32_t) == 0 &&
           gpu_in_memory(gpu, job->sq, (uint64_t)job->entries * NVME_SQE_BYTES) &&
           gpu_in_memory(gpu, job->cq, (uint64_t)job->entries * NVME_CQE_BYTES);
}

enum gpu_channel_status gpu_nvme_start(struct gpu_channel *channel)
{
    const uint64_t at = channel->command.source;
    struct gpu_nvme_run *run = &channel->kernel.nvme;
    const struct gpu_device *gpu = channel->gpu;
    *run = (struct gpu_nvme_run){ .phase = NVME_CQE_PHASE };
    if (at % sizeof(uint64_t) != 0 || !gpu_in_memory(gpu, at, sizeof(run->job)))
        return GPU_CHANNEL_BAD_COMMAND;
    gpu_load(gpu, at, &run->job, sizeof(run->job), false);
    if (!is_good(gpu, &run->job))
        return GPU_CHANNEL_BAD_COMMAND;
    if (!gpu_reaches(gpu, run->job.sq_doorbell, sizeof(uint32_t)) ||
        !gpu_reaches(gpu, run->job.cq_doorbell, sizeof(uint32_t)))
        return GPU_CHANNEL_BAD_ADDRESS;
    channel->kernel.awaited = entry_at(run);
    channel->kernel.awaited_bytes = NVME_CQE_BYTES;
    return GPU_CHANNEL_ON;
}

static void ring(struct gpu_channel *channel, uint64_t doorbell, uint32_t value)
{
    struct gpu_device *gpu = channel->gpu;
    gpu_post(gpu, doorbell, &value, sizeof(value), gpu_now(gpu) + gpu->params.store_ps);
}

/* The entry is visible from now on. */
static void submit(struct gpu_channel *channel)
{
    struct gpu_nvme_run *run = &channel->kernel.nvme;
    const struct gpu_nvme_job *job = &run->job;
    const uint64_t i = run->submitted;
    const unsigned cid = (unsigned)__builtin_ctzll(~run->used);
    const uint64_t n = job->n_places;
    const uint64_t place = (job->place % n + (i % n) * (job->step % n)) % n;
    const uint64_t block = job->first_block + place * job->n_blocks;
    const struct nvme_sqe sqe = { .opcode = job->opcode,
                                  .cid = (uint16_t)cid,
                                  .nsid = job->nsid,
                                  .prp1 = job->data + i % job->n_buffers * job->buffer_bytes,
                                  .cdw10 = (uint32_t)block,
                                  .cdw11 = (uint32_t)(block >> 32),
                                  .cdw12 = job->n_blocks - 1u };
    gpu_store(channel->gpu, job->sq + (uint64_t)run->tail * NVME_SQE_BYTES, &sqe, sizeof(sqe),
              false);
    run->used |= UINT64_C(1) << cid;
    run->slot[cid].command = i;
    run->slot[cid].before_ps = run->before_ps;
    run->submitted++;
    run->tail = run->tail + 1 == job->entries ? 0 : (uint16_t)(run->tail + 1);
    ring(channel, job->sq_doorbell, run->tail);
}

static struct nvme_cqe head_of(const struct gpu_channel *channel)
{
    struct nvme_cqe cqe;
    gpu_load(channel->gpu, entry_at(&channel->kernel.nvme), &cqe, sizeof(cqe), false);
    return cqe;
}

bool gpu_nvme_has_come(const struct gpu_channel *channel)
{
    return (head_of(channel).status & NVME_CQE_PHASE) == channel->kernel.nvme.phase;
}

/* False: no command has this identifier. */
static bool take(struct gpu_channel *channel)
{
    struct gpu_nvme_run *run = &channel->kernel.nvme;
    const struct nvme_cqe cqe = head_of(channel);
    if (cqe.cid >= GPU_NVME_DEPTH_MAX || (run->used >> cqe.cid & 1) == 0)
        return false;
    gpu_kernel_note_time(channel, run->slot[cqe.cid].command, run->slot[cqe.cid].before_ps);
    run->used &= ~(UINT64_C(1) << cqe.cid);
    run->errors += cqe.status >> 1 != NVME_SC_SUCCESS;
    run->completed++;
    if (++run->head == run->job.entries) {
        run->head = 0;
        run->phase ^= NVME_CQE_PHASE;
    }
    channel->kernel.awaited = entry_at(run);
    ring(channel, run->job.cq_doorbell, run->head);
    return true;
}

/* Another command, or a look at the completion queue. */
static void go_on(struct gpu_channel *channel)
{
    struct gpu_nvme_run *run = &channel->kernel.nvme;
    const struct gpu_params *params = &channel->gpu->params;
    if (run->submitted < channel->command.bytes &&
        run->submitted - run->completed < run->job.depth) {
        run->before_ps = gpu_now(channel->gpu);
        gpu_kernel_step_in(channel, GPU_KERNEL_WRITES,
                           params->clock_ps + params->nvme_submit_ps + params->fence_ps);
    } else {
        gpu_kernel_spin(channel);
    }
}

void gpu_nvme_step(struct gpu_channel *channel)
{
    struct gpu_nvme_run *run = &channel->kernel.nvme;
    switch (channel->kernel.step) {
    case GPU_KERNEL_WRITES:
        submit(channel);
        go_on(channel);
        break;
    case GPU_KERNEL_LEAVES:
        if (!take(channel)) {
            channel->kernel.step = GPU_KERNEL_NONE;
            gpu_channel_fail(channel, GPU_CHANNEL_BAD_COMMAND);
        } else if (run->completed == channel->command.bytes) {
            gpu_store(channel->gpu, channel->command.source + offsetof(struct gpu_nvme_job, errors),
                      &run->errors, sizeof(run->errors), false);
            gpu_kernel_end(channel);
        } else {
            gpu_kernel_step_in(channel, GPU_KERNEL_BEGINS, channel->gpu->params.nvme_complete_ps);
        }
        break;
    default: /* launched, or done with a completion */ go_on(channel);
    }
}
