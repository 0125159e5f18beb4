/*
 * Kernels that run on gpu.cuda: ping and pong.
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

static void step_in(struct gpu_channel *channel, enum gpu_kernel_step step, sim_time delay_ps)
{
    channel->kernel.step = step;
    sim_schedule_in(channel->gpu->model->sim, &channel->kernel.event, delay_ps);
}

/* `while (*local < i);` begins now. */
static void spin(struct gpu_channel *channel)
{
    channel->kernel.loop_ps = gpu_now(channel->gpu);
    channel->kernel.step = GPU_KERNEL_SPINS;
    gpu_kernel_notice(channel->gpu, channel->command.source, sizeof(uint32_t));
}

/* `*remote = i;` */
static void store_remote(struct gpu_channel *channel)
{
    uint32_t i = (uint32_t)channel->kernel.i;
    struct gpu_device *gpu = channel->gpu;
    gpu_post(gpu, channel->command.destination, &i, sizeof(i), gpu_now(gpu) + gpu->params.store_ps);
}

/* `times[i - 1] = clock64() - before;`, clock64() called now. */
static void note_time(struct gpu_channel *channel)
{
    const struct gpu_kernel_run *run = &channel->kernel;
    struct gpu_device *gpu = channel->gpu;
    double us = (double)(gpu_now(gpu) - run->before_ps) / (double)SIM_PS_PER_US;
    uint64_t cycles = (uint64_t)(us * gpu->params.clock_mhz + 0.5);
    if (channel->command.times != GPU_NO_TIMES)
        gpu_store(gpu, channel->command.times + (run->i - 1) * sizeof(cycles), &cycles,
                  sizeof(cycles), false);
}

static void leave_loop(struct gpu_channel *channel)
{
    struct gpu_kernel_run *run = &channel->kernel;
    bool ping = channel->command.kernel == GPU_KERNEL_PING;
    if (ping)
        note_time(channel);
    else
        store_remote(channel);
    if (run->i++ == channel->command.bytes) {
        run->step = GPU_KERNEL_NONE;
        gpu_channel_ended(channel);
    } else if (ping) {
        step_in(channel, GPU_KERNEL_BEGINS, channel->gpu->params.clock_ps);
    } else {
        spin(channel);
    }
}

static void kernel_step(struct sim *sim, struct sim_event *event)
{
    struct gpu_channel *channel = SIM_CONTAINER(event, struct gpu_channel, kernel.event);
    bool ping = channel->command.kernel == GPU_KERNEL_PING;
    if (channel->kernel.step == GPU_KERNEL_LEAVES) {
        leave_loop(channel);
    } else if (ping && channel->kernel.step == GPU_KERNEL_BEGINS) {
        channel->kernel.before_ps = sim_now(sim);
        step_in(channel, GPU_KERNEL_CLOCKED, channel->gpu->params.clock_ps);
    } else {
        if (ping)
            store_remote(channel);
        spin(channel);
    }
}

static bool overlap(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

void gpu_kernel_notice(struct gpu_device *gpu, uint64_t offset, uint64_t bytes)
{
    struct gpu_channel *channel = &gpu->channel[gpu->params.copy_engines];
    struct gpu_kernel_run *run = &channel->kernel;
    uint32_t word;
    if (run->step != GPU_KERNEL_SPINS ||
        !overlap(offset, bytes, channel->command.source, sizeof(word)))
        return;
    gpu_load(gpu, channel->command.source, &word, sizeof(word), false);
    if (word < (uint32_t)run->i)
        return;
    sim_time poll_ps = gpu->params.poll_ps, since_ps = gpu_now(gpu) - run->loop_ps;
    uint64_t turns = SIM_MAX((since_ps + poll_ps - 1) / poll_ps, UINT64_C(1));
    step_in(channel, GPU_KERNEL_LEAVES, turns * poll_ps - since_ps);
}

void gpu_kernel_start(struct gpu_channel *channel)
{
    const struct gpu_command *c = &channel->command;
    const struct gpu_device *gpu = channel->gpu;
    uint64_t times_bytes = c->times == GPU_NO_TIMES ? 0 : c->bytes * sizeof(uint64_t);
    bool good = channel->idx == gpu->params.copy_engines && c->kernel < GPU_N_KERNELS &&
                c->bytes != 0 && c->bytes <= UINT32_MAX && c->source % sizeof(uint32_t) == 0 &&
                c->destination % sizeof(uint32_t) == 0 &&
                gpu_in_memory(gpu, c->source, sizeof(uint32_t)) &&
                (times_bytes == 0 || gpu_in_memory(gpu, c->times, times_bytes));
    if (!good) {
        gpu_channel_fail(channel, GPU_CHANNEL_BAD_COMMAND);
    } else if (!gpu_reaches(gpu, c->destination, sizeof(uint32_t))) {
        gpu_channel_fail(channel, GPU_CHANNEL_BAD_ADDRESS);
    } else {
        channel->gpu->stats.launches++;
        channel->kernel.i = 1;
        step_in(channel, GPU_KERNEL_BEGINS, gpu->params.launch_ps);
    }
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
