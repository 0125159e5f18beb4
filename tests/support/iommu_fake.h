/*
 * What the IOMMU's tests and its bench share: a flat memory with a fixed read latency and a page
 * allocator, the parameters' defaults, an IOMMU with its driver.
 */
#ifndef TESTS_SUPPORT_IOMMU_FAKE_H
#define TESTS_SUPPORT_IOMMU_FAKE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hw/vtd_regs.h"
#include "models/host/iommu_driver.h"

#define FAKE_BYTES   (UINT64_C(16) << 20)
#define FAKE_READ_PS UINT64_C(100000)

struct fake {
    uint8_t *bytes;
    uint64_t bump, n_free, pages_left; /* page allocator; pages_left limits it */
    uint64_t *free_page;
    uint64_t n_live;
    uint64_t reads;           /* timed ones */
    uint64_t message_address; /* the last interrupt message written */
    uint32_t message_data, n_messages;
};

struct iommu_driver_host fake_driver_host(struct fake *fake);

/* The defaults of the table, switched on. Keys of times end in _ns. */
struct iommu_params fake_params(void);

struct rig {
    struct fake fake;
    struct iommu_params params;
    struct iommu *iommu;
    struct iommu_driver *driver;
    sim_time now_ps; /* for iommu_rig_translate_later() */
};

void iommu_rig_hardware(struct rig *rig, const struct iommu_params *params);

void iommu_rig_init(struct rig *rig, const struct iommu_params *params);

/* Every page that the driver took is back. */
void iommu_rig_release(struct rig *rig);

uint64_t iommu_rig_stat(const struct rig *rig, const char *name);

struct iommu_translation iommu_rig_translate(struct rig *rig, uint16_t id, uint64_t iova,
                                             bool write, sim_time at_ps);

/* At a time by which everything before is over. */
struct iommu_translation iommu_rig_translate_later(struct rig *rig, uint16_t id, uint64_t iova,
                                                   bool write);

/* A walk that reads n entries, without its wait. */
sim_time iommu_rig_walk_ps(const struct rig *rig, unsigned n_reads);

/* Address of the entry for iova in the table of `level`, found as the hardware finds it. */
uint64_t iommu_rig_entry(struct rig *rig, uint16_t id, uint64_t iova, unsigned level);

uint64_t iommu_rig_context(struct rig *rig, uint16_t id);

uint64_t iommu_rig_peek(struct rig *rig, uint64_t at);

void iommu_rig_poke(struct rig *rig, uint64_t at, uint64_t value);

/* Invalidates everything that translation caches, by the registers (the queue is the driver's). */
void iommu_rig_flush(struct rig *rig);

#endif
