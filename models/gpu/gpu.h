/*
 * gpu.cuda: a GPU as PCIe sees it: copy engines, memory behind a base address, spinning kernels.
 * Data sheet: hw/gpu_regs.h; models / timing / sources: the head of gpu.c.
 */
#ifndef MODELS_GPU_GPU_H
#define MODELS_GPU_GPU_H

#include "models/base/model.h"
#include "models/base/payload.h"

extern const struct model_ops gpu_ops;

unsigned gpu_n_copy_engines(const struct model *gpu);

/* Device memory as it is now, without time: for set-up and checks. Offsets and sizes are within the
 * memory; whole cache lines for the first two. */
void gpu_memory_stamp(struct model *gpu, uint64_t offset, uint64_t tag, uint64_t bytes);
/* It holds the stream from this tag on; false otherwise, with what lies in the first line that
 * differs, and what should. */
bool gpu_memory_check(const struct model *gpu, uint64_t offset, uint64_t tag, uint64_t bytes,
                      struct payload_difference *difference);
void gpu_memory_read(const struct model *gpu, uint64_t offset, void *to, uint64_t bytes);

#endif
