/*
 * Data sheet of our GPU: what its driver writes and reads and its model acts on. Copy commands are
 * laid out after LAUNCH_DMA of the Kepler, Maxwell and Pascal copy classes (flush, semaphores of
 * one or four words with a time, interrupt), put into a ring in host memory as a channel's are; the
 * numbers are its own: no binary driver is to be fooled by it. All fields are little endian.
 * Driver: logic/gpu/. Model: models/gpu/. The one header of logic/ that device models may include,
 * since a data sheet has one copy.
 */
#ifndef HW_GPU_REGS_H
#define HW_GPU_REGS_H

#include <stdint.h>

#define GPU_VENDOR_ID       0x10deu
#define GPU_DEVICE_ID_K40   0x1024u
#define GPU_DEVICE_ID_P4000 0x1bb1u

/* ---- BAR 0: registers, 4 bytes each unless said otherwise ------------------------------------ */
#define GPU_REGISTER_BAR     0u
#define GPU_BAR_BYTES        0x1000000u
#define GPU_REG_VERSION      0x000u /* GPU_VERSION */
#define GPU_REG_MEMORY_MIB   0x004u
#define GPU_REG_COPY_ENGINES 0x008u /* channels 0 .. n - 1; the one behind them runs kernels */
#define GPU_REG_ADDRESS_BITS 0x00cu /* of bus addresses that it can form */
#define GPU_REG_CLOCK_KHZ    0x010u /* what clock64() counts */
#define GPU_REG_TIMER        0x018u /* 8 bytes, ns */
#define GPU_VERSION          0x67700001u

/* Channels. The ring's address and size are taken when the channel is switched on. */
#define GPU_CHANNELS_MAX      9u
#define GPU_CHANNEL(c)        (0x1000u + 0x40u * (c))
#define GPU_CHANNEL_RING_LOW  0x00u
#define GPU_CHANNEL_RING_HIGH 0x04u
#define GPU_CHANNEL_LOG       0x08u /* log2 of its commands, at most GPU_RING_LOG_MAX */
#define GPU_CHANNEL_CONTROL   0x0cu /* 1: on, empty; 0: off, once GPU_CHANNEL_STATUS says so */
#define GPU_CHANNEL_PUT       0x10u /* doorbell: commands ever written, 32 bits */
#define GPU_CHANNEL_GET       0x14u /* commands ever ended */
#define GPU_CHANNEL_STATUS    0x18u /* enum gpu_channel_status */
#define GPU_RING_LOG_MAX      15u

enum gpu_channel_status {
    GPU_CHANNEL_OFF,
    GPU_CHANNEL_ON,
    /* Stopped by what it was told, until it is switched off; an interrupt says so. */
    GPU_CHANNEL_BAD_COMMAND, /* no such operation, or beyond its memory */
    GPU_CHANNEL_BAD_ADDRESS, /* a bus address of more bits than it has */
    GPU_CHANNEL_BUS_ERROR,   /* a read was refused, or not answered */
    GPU_CHANNEL_ENDING,      /* switched off while it was at work */
};

#define GPU_MSIX_TABLE   0x8000u /* vector c: channel c */
#define GPU_MSIX_PBA     0x9000u
#define GPU_MSIX_VECTORS 16u

/* ---- BAR 1: the first bytes of device memory ------------------------------------------------- */
#define GPU_MEMORY_BAR 1u

/* ---- Commands: 64 bytes each, in order, one at a time per channel ---------------------------- */
struct gpu_command {
    uint32_t launch;      /* GPU_LAUNCH_*; none of them: semaphore and interrupt only */
    uint32_t kernel;      /* enum gpu_kernel */
    uint64_t bytes;       /* copy; kernel: iterations */
    uint64_t source;      /* copy; kernel: the word in device memory that it polls */
    uint64_t destination; /* copy; kernel: the bus address that it stores to */
    union {
        uint64_t times; /* kernel: device memory, 8 bytes per iteration; GPU_NO_TIMES */
        uint64_t table; /* copy with GPU_TABLE: device memory, the runs of the place outside */
    };
    uint64_t semaphore; /* bus address */
    uint32_t payload;
    uint8_t reserved[12];
};
_Static_assert(sizeof(struct gpu_command) == 64, "command");
#define GPU_NO_TIMES UINT64_MAX

#define GPU_LAUNCH_COPY        0x01u
#define GPU_LAUNCH_KERNEL      0x02u
#define GPU_SOURCE_DEVICE      0x04u /* device memory, else a bus address */
#define GPU_DESTINATION_DEVICE 0x08u
#define GPU_FLUSH              0x10u /* what was written has arrived before the command ends */
#define GPU_RELEASE            0x20u /* struct gpu_semaphore at its end: payload alone, 4 bytes */
#define GPU_RELEASE_TIME       0x40u /* all of it */
#define GPU_INTERRUPT          0x80u /* behind the semaphore */
/* Of source and destination one is outside, and its address is the place in a range that runs of
 * bus addresses make up, as a GPU's page tables do: a table of struct gpu_table_entry in device
 * memory, that many bytes at that bus address, then the next; it goes as far as the copy. */
#define GPU_TABLE 0x100u
struct gpu_table_entry {
    uint64_t bus, bytes;
};
_Static_assert(sizeof(struct gpu_table_entry) == 16, "entry of a table");

struct gpu_semaphore {
    uint32_t payload;
    uint32_t reserved;
    uint64_t time_ns; /* GPU_REG_TIMER at the end of the command */
};
_Static_assert(sizeof(struct gpu_semaphore) == 16, "semaphore");

/* What a kernel does for i = 1 .. iterations; its words are 4 bytes:
 *   ping: before = clock64(); *remote = i; while (*local < i); times[i - 1] = clock64() - before;
 *   pong: while (*local < i); *remote = i; */
enum gpu_kernel { GPU_KERNEL_PING, GPU_KERNEL_PONG, GPU_N_KERNELS };

#endif
