/* What the files of gpu.cuda share. */
#ifndef MODELS_GPU_GPU_INTERNAL_H
#define MODELS_GPU_GPU_INTERNAL_H

#include "hw/gpu_regs.h"
#include "models/gpu/gpu.h"
#include "models/pcie/endpoint/pcie_function.h"

#define GPU_FETCH_MAX   8u /* commands read at once */
#define GPU_CHUNK_BYTES 4096u
#define GPU_CHUNKS_MAX  16u /* of a copy under way; more than what reads in flight cover */

struct gpu_device;
struct gpu_channel;

/* A part of a copy, within a page of every bus address it has. */
struct gpu_chunk {
    struct gpu_channel *channel;
    struct pcie_dma_request request;
    struct sim_event event; /* it is in device memory */
    uint64_t source, destination;
    uint32_t bytes;
    uint8_t buffer[GPU_CHUNK_BYTES];
};

/* A small posted write: semaphore, message, a kernel's store. */
struct gpu_post {
    struct gpu_device *gpu;
    struct pcie_dma_request request;
    uint8_t bytes[sizeof(struct gpu_semaphore)];
};

/* A read of the aperture that is to be answered. */
struct gpu_read {
    struct gpu_device *gpu;
    struct tlp *request;
    uint64_t offset; /* in memory */
    struct sim_event event;
};

/* What the event of a kernel's run means when it fires. */
enum gpu_kernel_step {
    GPU_KERNEL_NONE,    /* there is none */
    GPU_KERNEL_BEGINS,  /* launched, or an iteration of ping begins */
    GPU_KERNEL_CLOCKED, /* ping: the first clock64() has returned */
    GPU_KERNEL_SPINS,   /* not pending: nobody has written what it waits for */
    GPU_KERNEL_LEAVES,  /* the turn of the loop that sees it ends */
    GPU_KERNEL_WRITES,  /* NVMe: a command is built and visible to others */
};

/* GPU_KERNEL_NVME: what its thread has in registers. */
struct gpu_nvme_run {
    struct gpu_nvme_job job;
    uint64_t submitted, completed; /* commands */
    uint32_t errors;
    uint16_t tail, head;
    uint16_t phase;     /* of the completion it waits for */
    uint64_t used;      /* bit per command identifier */
    sim_time before_ps; /* clock64() before the command that is being built */
    struct {
        uint64_t command;
        sim_time before_ps;
    } slot[GPU_NVME_DEPTH_MAX]; /* by command identifier */
};
struct gpu_kernel_run {
    struct sim_event event;
    enum gpu_kernel_step step;
    uint64_t i;                      /* iteration, from 1 */
    uint64_t awaited, awaited_bytes; /* in device memory: what the loop reads */
    sim_time before_ps, loop_ps;     /* clock64() called first, loop begun */
    struct gpu_nvme_run nvme;
};

struct gpu_channel {
    struct gpu_device *gpu;
    uint32_t idx;
    uint32_t low, high, log; /* as written */
    uint64_t ring;           /* bus address; taken when switched on */
    uint32_t size;           /* commands, a power of two */
    uint32_t put, get, fetched;
    enum gpu_channel_status status;
    bool running;                    /* a command */
    bool begun;                      /* a copy's first request may have gone */
    bool waiting;                    /* for the answer to `request` */
    struct pcie_dma_request request; /* fetches and flushes: never both */
    struct gpu_command ahead[GPU_FETCH_MAX];
    uint32_t n_ahead, next_ahead;
    struct gpu_command command; /* that is running */
    struct sim_event start;
    uint64_t issued_bytes, done_bytes;
    uint64_t entry; /* GPU_TABLE: where in device memory the run under way stands */
    struct gpu_table_entry run;
    uint64_t run_bytes; /* of it that have been issued */
    uint32_t n_chunks;
    uint8_t flushed[4];
    struct gpu_kernel_run kernel;
};

struct gpu_params {
    struct pcie_function_params pcie;
    uint32_t device_id, copy_engines, address_bits;
    uint64_t memory_bytes, aperture_bytes;
    double memory_gbyte_s, copy_write_gbyte_s, inbound_read_gbyte_s, inbound_write_gbyte_s,
        clock_mhz;
    sim_time copy_start_ps, launch_ps, store_ps, inbound_write_ps, inbound_read_ps;
    sim_time clock_ps, poll_ps, timer_ps;
    sim_time nvme_submit_ps, nvme_complete_ps, fence_ps;
};

struct gpu_stats {
    uint64_t copies, copy_bytes, launches, semaphores;
    uint64_t aperture_read_bytes, aperture_write_bytes;
    uint64_t failures, bad_doorbells;
    struct stat_busy memory, aperture_read, aperture_write;
    struct stat_peak one; /* server: a second a second */
};

struct gpu_device {
    struct gpu_params params;
    struct model *model;
    struct pcie_function function;
    struct page_region **region; /* of memory; NULL: zeros */
    uint64_t n_regions;
    struct page_store *store;
    struct sim_pool *chunks, *posts, *reads;
    struct gpu_channel channel[GPU_CHANNELS_MAX];
    uint32_t n_channels;
    sim_time memory_free_ps;     /* when the memory has served the copies that were begun */
    sim_time copy_write_free_ps; /* when the copy engines can begin another write */
    sim_time read_free_ps, write_free_ps, write_seen_ps; /* of the aperture */
    struct tlp *write_head, **write_tail;                /* on their way into memory */
    struct sim_event write_event;
    struct gpu_stats stats;
    bool ready;
};

static inline struct gpu_device *gpu_device_of(const struct model *model)
{
    return model->state;
}
static inline struct gpu_device *gpu_of(struct pcie_function *function)
{
    return SIM_CONTAINER(function, struct gpu_device, function);
}
static inline sim_time gpu_now(const struct gpu_device *gpu)
{
    return sim_now(gpu->model->sim);
}
static inline sim_time gpu_bytes_ps(uint64_t bytes, double gbyte_s)
{
    return (sim_time)((double)bytes * 1000.0 / gbyte_s + 0.5);
}
static inline bool gpu_in_memory(const struct gpu_device *gpu, uint64_t offset, uint64_t bytes)
{
    return bytes <= gpu->params.memory_bytes && offset <= gpu->params.memory_bytes - bytes;
}
/* Every byte of it is below the highest address that the GPU can form. */
static inline bool gpu_reaches(const struct gpu_device *gpu, uint64_t address, uint64_t bytes)
{
    uint64_t limit = gpu->params.address_bits >= 64 ? UINT64_MAX
                                                    : (UINT64_C(1) << gpu->params.address_bits) - 1;
    return bytes != 0 && address <= limit && bytes - 1 <= limit - address;
}

/* gpu.c */
/* At most sizeof(struct gpu_semaphore) bytes, sent from at_ps on, behind what was written before.
 */
void gpu_post(struct gpu_device *gpu, uint64_t address, const void *bytes, uint32_t n,
              sim_time at_ps);
uint64_t gpu_timer_ns(const struct gpu_device *gpu);

/* gpu_memory.c: contents; within the memory. */
void gpu_load(const struct gpu_device *gpu, uint64_t offset, void *to, uint64_t bytes, bool bulk);
void gpu_store(struct gpu_device *gpu, uint64_t offset, const void *from, uint64_t bytes,
               bool bulk);
/* A read or write of the aperture; its credits go back when its service begins. */
void gpu_aperture_request(struct pcie_function *function, uint64_t offset, struct tlp *tlp);
void gpu_memory_init(struct gpu_device *gpu);
/* All zeros; what others have written and has not landed is dropped. */
void gpu_memory_clear(struct gpu_device *gpu);
void gpu_memory_release(struct gpu_device *gpu);

/* gpu_channel.c */
void gpu_channel_init(struct gpu_device *gpu, uint32_t idx);
void gpu_channel_control(struct gpu_channel *channel, uint32_t value);
void gpu_channel_doorbell(struct gpu_channel *channel, uint32_t put);
/* The command has ended: semaphore, interrupt; the next one is begun by an event. */
void gpu_channel_ended(struct gpu_channel *channel);
/* The command cannot be done, or the channel is ending; no part of it is under way. */
void gpu_channel_fail(struct gpu_channel *channel, enum gpu_channel_status status);

/* gpu_copy.c: copy_start after the command came, and when a copy within the GPU is done. */
void gpu_copy_start(struct gpu_channel *channel);

/* gpu_kernel.c */
void gpu_kernel_init(struct gpu_channel *channel);
void gpu_kernel_start(struct gpu_channel *channel);
void gpu_kernel_stop(struct gpu_channel *channel);
/* These bytes of device memory have just changed. */
void gpu_kernel_notice(struct gpu_device *gpu, uint64_t offset, uint64_t bytes);
/* The kernel's event fires in so many ps, with this meaning. */
void gpu_kernel_step_in(struct gpu_channel *channel, enum gpu_kernel_step step, sim_time delay_ps);
/* `while (nothing has come);` begins now; gpu_kernel_notice() ends it. */
void gpu_kernel_spin(struct gpu_channel *channel);
/* clock64() was called at before_ps and again now: times[i] gets the difference. */
void gpu_kernel_note_time(struct gpu_channel *channel, uint64_t i, sim_time before_ps);
/* All iterations are done. */
void gpu_kernel_end(struct gpu_channel *channel);

/* gpu_nvme.c: GPU_KERNEL_NVME */
/* Reads the job. GPU_CHANNEL_ON: it can be done; else the status that the channel stops with. */
enum gpu_channel_status gpu_nvme_start(struct gpu_channel *channel);
void gpu_nvme_step(struct gpu_channel *channel);
/* The completion that it waits for is there. */
bool gpu_nvme_has_come(const struct gpu_channel *channel);

#endif
