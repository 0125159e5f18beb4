/*
 * The data sheet of our GPU: what its driver writes and reads and its model acts on. Copy commands
 * are laid out like LAUNCH_DMA of the Kepler, Maxwell and Pascal copy classes (flush, semaphores of
 * one or four words with a time, interrupt) and put into a ring in host memory like those of a
 * channel. The numbers are our own; no vendor's driver runs on it. All fields are little endian.
 * Driver: logic/gpu/. Model: models/gpu/.
 */
#ifndef HW_GPU_REGS_H
#define HW_GPU_REGS_H

#include <stddef.h>
#include <stdint.h>

#define GPU_VENDOR_ID       0x10deu
#define GPU_DEVICE_ID_K40   0x1024u
#define GPU_DEVICE_ID_P4000 0x1bb1u
#define GPU_DEVICE_ID_P620  0x1cb6u
#define GPU_CLASS_CODE      0x030200u /* 3D controller */

/* ---- BAR 0: registers, 4 bytes each unless said otherwise ------------------------------------ */
#define GPU_REGISTER_BAR     0u
#define GPU_BAR_BYTES        0x1000000u
#define GPU_REG_VERSION      0x000u /* GPU_VERSION */
#define GPU_REG_MEMORY_MIB   0x004u
#define GPU_REG_COPY_ENGINES 0x008u /* channels 0 .. n - 1; channel n runs kernels */
#define GPU_REG_ADDRESS_BITS 0x00cu /* width of the bus addresses that it can form */
#define GPU_REG_CLOCK_KHZ    0x010u /* rate of clock64() */
#define GPU_REG_TIMER        0x018u /* 8 bytes, ns */
#define GPU_VERSION          0x67700001u

/* Channels. Switching a channel on reads the ring's address and size. */
#define GPU_CHANNELS_MAX      9u
#define GPU_CHANNEL(c)        (0x1000u + 0x40u * (c))
#define GPU_CHANNEL_RING_LOW  0x00u
#define GPU_CHANNEL_RING_HIGH 0x04u
#define GPU_CHANNEL_LOG       0x08u /* commands of the ring, log2; at most GPU_RING_LOG_MAX */
#define GPU_CHANNEL_CONTROL   0x0cu /* 1: on, ring empty; 0: off when GPU_CHANNEL_STATUS is */
#define GPU_CHANNEL_PUT       0x10u /* doorbell: commands written so far, modulo 2^32 */
#define GPU_CHANNEL_GET       0x14u /* commands finished so far, modulo 2^32 */
#define GPU_CHANNEL_STATUS    0x18u /* enum gpu_channel_status */
#define GPU_RING_LOG_MAX      15u

enum gpu_channel_status {
    GPU_CHANNEL_OFF,
    GPU_CHANNEL_ON,
    /* Stopped by an error until software switches it off; raises an interrupt. */
    GPU_CHANNEL_BAD_COMMAND, /* no such operation, or outside device memory */
    GPU_CHANNEL_BAD_ADDRESS, /* a bus address wider than GPU_REG_ADDRESS_BITS */
    GPU_CHANNEL_BUS_ERROR,   /* a read was refused, or not answered */
    GPU_CHANNEL_ENDING,      /* switched off, a command still running */
};

#define GPU_MSIX_TABLE   0x8000u /* vector c: channel c */
#define GPU_MSIX_PBA     0x9000u
#define GPU_MSIX_VECTORS 16u

/* ---- BAR 1: the first bytes of device memory ------------------------------------------------- */
#define GPU_MEMORY_BAR 1u

/* ---- Commands: 64 bytes each, in order, one at a time per channel ---------------------------- */
struct gpu_command {
    uint32_t launch; /* GPU_LAUNCH_* and flags; neither copy nor kernel: the end only */
    uint32_t kernel; /* enum gpu_kernel */
    uint64_t bytes;  /* copy; kernel: iterations */
    uint64_t source; /* of a copy; kernel: the word in device memory that it polls, or its job */
    uint64_t destination; /* of a copy; kernel: the bus address that it stores to */
    union {
        uint64_t times; /* kernel: in device memory, 8 bytes per iteration, or GPU_NO_TIMES */
        uint64_t table; /* copy with GPU_TABLE: in device memory, struct gpu_table_entry */
    };
    uint64_t semaphore; /* bus address */
    uint32_t payload;
    uint8_t reserved[12];
};
_Static_assert(sizeof(struct gpu_command) == 64, "command");
_Static_assert(offsetof(struct gpu_command, launch) == 0, "launch");
_Static_assert(offsetof(struct gpu_command, kernel) == 4, "kernel");
_Static_assert(offsetof(struct gpu_command, bytes) == 8, "bytes");
_Static_assert(offsetof(struct gpu_command, source) == 16, "source");
_Static_assert(offsetof(struct gpu_command, destination) == 24, "destination");
_Static_assert(offsetof(struct gpu_command, times) == 32, "times");
_Static_assert(offsetof(struct gpu_command, table) == 32, "table");
_Static_assert(offsetof(struct gpu_command, semaphore) == 40, "semaphore");
_Static_assert(offsetof(struct gpu_command, payload) == 48, "payload");
#define GPU_NO_TIMES UINT64_MAX

#define GPU_LAUNCH_COPY        0x01u
#define GPU_LAUNCH_KERNEL      0x02u
#define GPU_SOURCE_DEVICE      0x04u /* device memory, else a bus address */
#define GPU_DESTINATION_DEVICE 0x08u
#define GPU_FLUSH              0x10u /* the command ends once its writes have arrived */
#define GPU_RELEASE            0x20u /* at the end writes the semaphore: 4 bytes, the payload */
#define GPU_RELEASE_TIME       0x40u /* at the end writes all of struct gpu_semaphore */
#define GPU_INTERRUPT          0x80u /* after the semaphore */
/* The end of the copy that is not in device memory is scattered, as if behind a GPU's page tables:
 * its address is an offset into the concatenated ranges of a table of struct gpu_table_entry in
 * device memory, which covers at least the copy. */
#define GPU_TABLE 0x100u
struct gpu_table_entry {
    uint64_t bus, bytes; /* a range of bus addresses */
};
_Static_assert(sizeof(struct gpu_table_entry) == 16, "entry of a table");
_Static_assert(offsetof(struct gpu_table_entry, bus) == 0, "bus");
_Static_assert(offsetof(struct gpu_table_entry, bytes) == 8, "bytes");

struct gpu_semaphore {
    uint32_t payload;
    uint32_t reserved;
    uint64_t time_ns; /* GPU_REG_TIMER at the end of the command */
};
_Static_assert(sizeof(struct gpu_semaphore) == 16, "semaphore");
_Static_assert(offsetof(struct gpu_semaphore, payload) == 0, "payload");
_Static_assert(offsetof(struct gpu_semaphore, time_ns) == 8, "time_ns");

/* Kernels. Ping and pong, for i = 1 .. iterations, on words of 4 bytes:
 *   ping: before = clock64(); *remote = i; while (*local < i); times[i - 1] = clock64() - before;
 *   pong: while (*local < i); *remote = i;
 * NVMe: drives a queue pair of an NVMe controller for as many commands; `source` is its job. */
enum gpu_kernel { GPU_KERNEL_PING, GPU_KERNEL_PONG, GPU_KERNEL_NVME, GPU_N_KERNELS };

/* The job of GPU_KERNEL_NVME, in device memory, aligned to 8 bytes. Both queues lie in device
 * memory and are empty and new: tails and heads 0, the first phase 1. Command i = 0 .. transfers
 * n_blocks from block first_block + n_blocks x ((place + i x step) modulo n_places) on, to or from
 * data + (i modulo n_buffers) x buffer_bytes; at most `depth` are under way. times[i] gets its
 * clock cycles, from before the command is written until its completion is seen. */
struct gpu_nvme_job {
    uint64_t sq, cq;                   /* in device memory, aligned to NVMe pages */
    uint64_t sq_doorbell, cq_doorbell; /* bus addresses */
    uint64_t data;                     /* as the controller addresses it, aligned to NVMe pages */
    uint64_t first_block;
    uint64_t n_places; /* 1 .. 2^32 - 1 */
    uint64_t place, step;
    uint32_t n_buffers, buffer_bytes; /* whole NVMe pages; a command fits into one page */
    uint32_t nsid;
    uint16_t entries;  /* of either queue */
    uint16_t depth;    /* 1 .. GPU_NVME_DEPTH_MAX, less than entries */
    uint16_t n_blocks; /* of a command */
    uint8_t opcode;    /* of NVMe: read or write */
    uint8_t reserved;
    uint32_t errors; /* written at the end: completions with a status other than 0 */
};
_Static_assert(sizeof(struct gpu_nvme_job) == 96, "job");
_Static_assert(offsetof(struct gpu_nvme_job, sq_doorbell) == 16, "sq_doorbell");
_Static_assert(offsetof(struct gpu_nvme_job, data) == 32, "data");
_Static_assert(offsetof(struct gpu_nvme_job, n_buffers) == 72, "n_buffers");
_Static_assert(offsetof(struct gpu_nvme_job, nsid) == 80, "nsid");
_Static_assert(offsetof(struct gpu_nvme_job, opcode) == 90, "opcode");
_Static_assert(offsetof(struct gpu_nvme_job, errors) == 92, "errors");
#define GPU_NVME_DEPTH_MAX 64u

#endif
