/*
 * Kernels that run on gpu.cuda: ping and pong; one that drives an NVMe controller is in gpu_nvme.c.
 *
 * Models: stores to addresses outside, posted, behind what was written before; a loop that reads a
 *   word of device memory until it is large enough; clock64().
 * Does not model: instructions, warps, caches; kernels at the same time on one GPU.
 * Timing: clock64() takes clock_call and gives the time at which it was called; a turn of the loop
 *   takes poll and sees the word as it is at its end. A store reaches the link store_latency after
 *   its instruction; nothing waits for it. So between two like GPUs with a one-way time t from link
 *   to link, ping to pong and back, with T the inbound write latency and n, m whole turns:
 *     clock_call + n poll, n the least with n poll >= 2 (store_latency + t + T) + m's rounding.
 * Sources: the listing of SmartIO figure 25 and what the paper says of it; docs/models/gpu.md.
 */
#include "models/gpu/gpu_internal.h"

void gpu_kernel_step_in(struct gpu_channel *channel, enum gpu_kernel_step step, sim_time delay_ps)
{
    channel->kernel.step = step;
    sim_schedule_in(channel->gpu->model->sim, &channel->kernel.event, delay_ps);
}

/* A turn of the loop that begins now sees what is there. */
static void look(struct gpu_channel *channel)
{
    const struct gpu_kernel_run *run = &channel->kernel;
    const struct gpu_device *gpu = channel->gpu;
    bool come;
    if (channel->command.kernel == GPU_KERNEL_NVME) {
        come = gpu_nvme_has_come(channel);
    } else {
        uint32_t word;
        gpu_load(gpu, channel->command.source, &word, sizeof(word), false);
        come = word >= (uint32_t)run->i;
    }
    if (!come)
        return;
    sim_time poll_ps = gpu->params.poll_ps, since_ps = gpu_now(gpu) - run->loop_ps;
    uint64_t turns = SIM_MAX((since_ps + poll_ps - 1) / poll_ps, UINT64_C(1));
    gpu_kernel_step_in(channel, GPU_KERNEL_LEAVES, turns * poll_ps - since_ps);
}

void gpu_kernel_spin(struct gpu_channel *channel)
{
    channel->kernel.loop_ps = gpu_now(channel->gpu);
    channel->kernel.step = GPU_KERNEL_SPINS;
    look(channel);
}

/* `*remote = i;` */
static void store_remote(struct gpu_channel *channel)
{
    uint32_t i = (uint32_t)channel->kernel.i;
    struct gpu_device *gpu = channel->gpu;
    gpu_post(gpu, channel->command.destination, &i, sizeof(i), gpu_now(gpu) + gpu->params.store_ps);
}

void gpu_kernel_note_time(struct gpu_channel *channel, uint64_t i, sim_time before_ps)
{
    struct gpu_device *gpu = channel->gpu;
    double us = (double)(gpu_now(gpu) - before_ps) / (double)SIM_PS_PER_US;
    uint64_t cycles = (uint64_t)(us * gpu->params.clock_mhz + 0.5);
    if (channel->command.times != GPU_NO_TIMES)
        gpu_store(gpu, channel->command.times + i * sizeof(cycles), &cycles, sizeof(cycles), false);
}

void gpu_kernel_end(struct gpu_channel *channel)
{
    channel->kernel.step = GPU_KERNEL_NONE;
    gpu_channel_ended(channel);
}

static void leave_loop(struct gpu_channel *channel)
{
    struct gpu_kernel_run *run = &channel->kernel;
    bool ping = channel->command.kernel == GPU_KERNEL_PING;
    if (ping)
        gpu_kernel_note_time(channel, run->i - 1, run->before_ps);
    else
        store_remote(channel);
    if (run->i++ == channel->command.bytes) {
        gpu_kernel_end(channel);
    } else if (ping) {
        gpu_kernel_step_in(channel, GPU_KERNEL_BEGINS, channel->gpu->params.clock_ps);
    } else {
        gpu_kernel_spin(channel);
    }
}

static void kernel_step(struct sim *sim, struct sim_event *event)
{
    struct gpu_channel *channel = SIM_CONTAINER(event, struct gpu_channel, kernel.event);
    bool ping = channel->command.kernel == GPU_KERNEL_PING;
    if (channel->command.kernel == GPU_KERNEL_NVME) {
        gpu_nvme_step(channel);
    } else if (channel->kernel.step == GPU_KERNEL_LEAVES) {
        leave_loop(channel);
    } else if (ping && channel->kernel.step == GPU_KERNEL_BEGINS) {
        channel->kernel.before_ps = sim_now(sim);
        gpu_kernel_step_in(channel, GPU_KERNEL_CLOCKED, channel->gpu->params.clock_ps);
    } else {
        if (ping)
            store_remote(channel);
        gpu_kernel_spin(channel);
    }
}

static bool overlap(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

void gpu_kernel_notice(struct gpu_device *gpu, uint64_t offset, uint64_t bytes)
{
    struct gpu_channel *channel = &gpu->channel[gpu->params.copy_engines];
    const struct gpu_kernel_run *run = &channel->kernel;
    if (run->step == GPU_KERNEL_SPINS && overlap(offset, bytes, run->awaited, run->awaited_bytes))
        look(channel);
}

/* Ping and pong. */
static enum gpu_channel_status words_start(struct gpu_channel *channel)
{
    const struct gpu_command *c = &channel->command;
    const struct gpu_device *gpu = channel->gpu;
    if (c->source % sizeof(uint32_t) != 0 || c->destination % sizeof(uint32_t) != 0 ||
        !gpu_in_memory(gpu, c->source, sizeof(uint32_t)))
        return GPU_CHANNEL_BAD_COMMAND;
    if (!gpu_reaches(gpu, c->destination, sizeof(uint32_t)))
        return GPU_CHANNEL_BAD_ADDRESS;
    channel->kernel.i = 1;
    channel->kernel.awaited = c->source;
    channel->kernel.awaited_bytes = sizeof(uint32_t);
    return GPU_CHANNEL_ON;
}

void gpu_kernel_start(struct gpu_channel *channel)
{
    const struct gpu_command *c = &channel->command;
    const struct gpu_device *gpu = channel->gpu;
    enum gpu_channel_status status = GPU_CHANNEL_BAD_COMMAND;
    const bool good = channel->idx == gpu->params.copy_engines && c->kernel < GPU_N_KERNELS &&
                      c->bytes != 0 && c->bytes <= UINT32_MAX &&
                      (c->times == GPU_NO_TIMES ||
                       gpu_in_memory(gpu, c->times, c->bytes * sizeof(uint64_t)));
    if (good)
        status = c->kernel == GPU_KERNEL_NVME ? gpu_nvme_start(channel) : words_start(channel);
    if (status != GPU_CHANNEL_ON) {
        gpu_channel_fail(channel, status);
        return;
    }
    channel->gpu->stats.launches++;
    gpu_kernel_step_in(channel, GPU_KERNEL_BEGINS, gpu->params.launch_ps);
}

void gpu_kernel_stop(struct gpu_channel *channel)
{
    sim_cancel(channel->gpu->model->sim, &channel->kernel.event);
    channel->kernel.step = GPU_KERNEL_NONE;
}

void gpu_kernel_init(struct gpu_channel *channel)
{
    sim_event_init(&channel->kernel.event, kernel_step);
}
