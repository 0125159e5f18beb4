/*
 * A simulated host with a DMA engine in its root complex, of version 1.2 or 3.2: bodies run as
 * threads of its kernel. With or without the driver of logic/dma/.
 */
#ifndef TESTS_SUPPORT_IOAT_RIG_H
#define TESTS_SUPPORT_IOAT_RIG_H

#include "hw/ioat_regs.h"
#include "logic/dma/ioat.h"
#include "models/ioat/ioat_internal.h"
#include "tests/support/dma_rig.h"

struct ioat_rig {
    struct world_fixture w;
    struct kernel *kernel;
    struct dma_core *core;
    struct ioat_drv *ioat;
    struct ioat_drv_options options;
    struct k_pci_dev *pci; /* of function 0 */
    void *arg;             /* the test's */
    void (*body)(struct ioat_rig *rig);
    bool driver;
    unsigned n_functions;
    unsigned left; /* threads of the test that run */
};

struct ioat_rig_world {
    const char *version;      /* "cb1.2", "cb3.2" */
    const char *settings;     /* of the device, more */
    const char *root_complex; /* settings of it, more */
    bool iommu, driver;
    unsigned ring; /* 0: 64 */
    bool dca;      /* to CPU 2 */
};

/* Boots, starts the kernel (and the driver), runs the body in a thread of CPU 0 to its end, takes
 * all down and checks that nothing is left. */
void ioat_rig_run(const struct ioat_rig_world *world, void (*body)(struct ioat_rig *rig),
                  void *arg);

struct ioat_engine *ioat_rig_engine(struct ioat_rig *rig);

/* From a body: registers of a channel of function 0. */
uint32_t ioat_rig_read(struct ioat_rig *rig, unsigned channel, uint32_t reg);
void ioat_rig_write(struct ioat_rig *rig, unsigned channel, uint32_t reg, uint32_t value);
void ioat_rig_write64(struct ioat_rig *rig, unsigned channel, uint32_t reg, uint64_t value);

/* Fills and compares bytes, by a pattern of a seed; no time passes. */
void ioat_rig_fill(struct ioat_rig *rig, struct kaddr at, size_t bytes, unsigned seed);
bool ioat_rig_holds(struct ioat_rig *rig, struct kaddr at, size_t bytes, unsigned seed,
                    size_t from);

#endif
