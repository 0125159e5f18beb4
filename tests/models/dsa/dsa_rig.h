/* A dsa.accelerator integrated into the server's first root complex, driven register by register. A
 * test's body runs as a task of socket 0. */
#ifndef TESTS_MODELS_DSA_DSA_RIG_H
#define TESTS_MODELS_DSA_DSA_RIG_H

#include "tests/support/world_fixture.h"

#include <string.h>

#include "hw/dsa_regs.h"
#include "hw/pci_regs.h"
#include "models/pcie/endpoint/pcie_function.h"

#define DSA_WORLD(SETTINGS)                                                                  \
    "hosts = { server = { ports = ( { name = \"rp0\"; socket = 0; lanes = 8; } ); "          \
    "  root_complex = { inbound_ns = 61; outbound_ns = 47; line_interval_ns = 1.5; }; }; };" \
    "devices = { dsa = { type = \"dsa.accelerator\"; integrated = \"server.s0\"; " SETTINGS  \
    "}; };"

#define RIG_GROUPS 0x400u /* the device says so: "Table offsets", tested below */
#define RIG_QUEUES 0x800u

struct dsa_rig {
    struct world_fixture *f;
    struct sim_task *task;
    struct root_complex_host *rcs;
    struct pcie_function *function;
    struct physmem *mem;
};

static inline struct dsa_rig rig_of(struct world_fixture *f, struct sim_task *task)
{
    return (struct dsa_rig){ .f = f,
                             .task = task,
                             .rcs = host_root_complexes(f->host),
                             .function = world_device(f->world, "dsa")->ports[0].function,
                             .mem = numa_physmem(host_numa(f->host)) };
}

static inline struct hpa rig_at(const struct dsa_rig *r, unsigned bar, uint64_t offset)
{
    return (struct hpa){ cfg_bar_base(&r->function->cfg, bar) + offset };
}

static inline void rig_sleep(struct dsa_rig *r, sim_time ps)
{
    sim_task_charge(r->task, ps);
    sim_task_sync(r->task);
}

static inline uint64_t rig_read(struct dsa_rig *r, uint64_t offset, unsigned bytes)
{
    return root_complex_mmio_read(r->rcs, 0, r->task, rig_at(r, 0, offset), bytes, NULL);
}

static inline void rig_write(struct dsa_rig *r, uint64_t offset, unsigned bytes, uint64_t value)
{
    root_complex_mmio_write(r->rcs, 0, r->task, rig_at(r, 0, offset), bytes, value);
}

/* Issues a command without waiting for its end. */
static inline void rig_command_start(struct dsa_rig *r, enum dsa_command command, uint32_t operand)
{
    rig_write(r, DSA_CMD, 4, operand | (uint32_t)command << DSA_CMD_SHIFT);
}

/* Waits for its end; its error code. */
static inline uint32_t rig_command_end(struct dsa_rig *r)
{
    uint32_t status = DSA_CMDSTS_ACTIVE;
    for (unsigned i = 0; i < 1000 && (status & DSA_CMDSTS_ACTIVE) != 0; i++)
        status = (uint32_t)rig_read(r, DSA_CMDSTS, 4);
    assert_false(status & DSA_CMDSTS_ACTIVE);
    return status & DSA_CMDSTS_ERROR_MASK;
}

static inline uint32_t rig_command(struct dsa_rig *r, enum dsa_command command, uint32_t operand)
{
    rig_command_start(r, command, operand);
    return rig_command_end(r);
}

/* Queue `wq` of `size` entries, not enabled. A threshold makes it shared. */
static inline void rig_queue(struct dsa_rig *r, unsigned wq, uint32_t size, uint32_t threshold,
                             uint32_t priority)
{
    const uint64_t at = RIG_QUEUES + wq * DSA_WQCFG_BYTES;
    rig_write(r, at + DSA_WQCFG_SIZE, 4, size);
    rig_write(r, at + DSA_WQCFG_THRESHOLD, 4, threshold);
    rig_write(r, at + DSA_WQCFG_MODE, 4,
              (threshold == 0 ? DSA_WQCFG_DEDICATED : 0) | priority << DSA_WQCFG_PRIORITY_SHIFT);
    rig_write(r, at + DSA_WQCFG_LIMITS, 4, 21u | 5u << DSA_WQCFG_BATCH_SHIFT); /* 2 MiB, 32 */
}

/* The queues and engines of these masks are group 0, the device is on. */
static inline void rig_group(struct dsa_rig *r, uint64_t queues, uint64_t engines)
{
    rig_write(r, RIG_GROUPS + DSA_GRPCFG_QUEUES, 8, queues);
    rig_write(r, RIG_GROUPS + DSA_GRPCFG_ENGINES, 8, engines);
    assert_int_equal(rig_command(r, DSA_CMD_ENABLE_DEVICE, 0), DSA_CMDSTS_OK);
}

static inline void rig_enable(struct dsa_rig *r, unsigned wq)
{
    assert_int_equal(rig_command(r, DSA_CMD_ENABLE_WQ, wq), DSA_CMDSTS_OK);
}

/* Queue 0: dedicated, of 16 entries; queue 1: shared, of 8 entries, threshold 6. One engine. */
static inline void rig_up(struct dsa_rig *r)
{
    rig_queue(r, 0, 16, 0, 10);
    rig_queue(r, 1, 8, 6, 10);
    rig_group(r, 3, 1);
    rig_enable(r, 0);
    rig_enable(r, 1);
}

/* Memory of socket 0, zeroed. */
static inline uint64_t rig_memory(struct dsa_rig *r, uint64_t bytes)
{
    struct hpa hpa;
    struct iova iova;
    assert_int_equal(host_dma_alloc(r->f->host, r->function->cfg.id, 0, bytes, 4096, &hpa, &iova),
                     0);
    assert_int_equal(hpa.v, iova.v);
    return hpa.v;
}

static inline struct dsa_descriptor rig_move(uint64_t destination, uint64_t source, uint32_t bytes,
                                             uint64_t record)
{
    return (struct dsa_descriptor){ .flags_operation = (uint32_t)DSA_OP_MOVE
                                                           << DSA_OPERATION_SHIFT |
                                                       DSA_FLAG_RECORD_VALID | DSA_FLAG_RECORD,
                                    .record = record,
                                    .source = source,
                                    .destination = destination,
                                    .bytes = bytes };
}

static inline struct dsa_descriptor rig_batch(uint64_t list, uint32_t n, uint64_t record)
{
    struct dsa_descriptor d = rig_move(0, list, n, record);
    d.flags_operation = (d.flags_operation & DSA_FLAGS_MASK) | (uint32_t)DSA_OP_BATCH
                                                                   << DSA_OPERATION_SHIFT;
    return d;
}

/* MOVDIR64B */
static inline void rig_post(struct dsa_rig *r, unsigned wq, const struct dsa_descriptor *d)
{
    root_complex_mmio_write_line(r->rcs, 0, r->task,
                                 rig_at(r, 2, DSA_PORTAL(wq, DSA_PORTAL_UNLIMITED)), sizeof(*d), d);
}

/* ENQCMD; false: retry. */
static inline bool rig_enqueue(struct dsa_rig *r, unsigned wq, unsigned kind,
                               const struct dsa_descriptor *d)
{
    return root_complex_mmio_enqueue(r->rcs, 0, r->task, rig_at(r, 2, DSA_PORTAL(wq, kind)), d);
}

static inline struct dsa_record rig_record(struct dsa_rig *r, uint64_t at)
{
    struct dsa_record record;
    physmem_read(r->mem, (struct hpa){ at }, &record, sizeof(record));
    return record;
}

/* Until the record has been written; fails after 100 us. */
static inline struct dsa_record rig_wait(struct dsa_rig *r, uint64_t at)
{
    struct dsa_record record = { 0 };
    for (unsigned i = 0; i < 2000 && record.status == DSA_STATUS_NONE; i++) {
        rig_sleep(r, 50000);
        record = rig_record(r, at);
    }
    assert_int_not_equal(record.status, DSA_STATUS_NONE);
    return record;
}

static inline void rig_put(struct dsa_rig *r, uint64_t at, const void *from, uint64_t bytes)
{
    physmem_write(r->mem, (struct hpa){ at }, from, bytes);
}
static inline void rig_get(struct dsa_rig *r, uint64_t at, void *to, uint64_t bytes)
{
    physmem_read(r->mem, (struct hpa){ at }, to, bytes);
}
/* Below 0x80: none of them can be taken for a mark of bulk payload. */
static inline void rig_random(uint8_t *to, size_t bytes, uint32_t seed)
{
    for (size_t i = 0; i < bytes; i++) {
        seed = seed * 1664525u + 1013904223u;
        to[i] = (uint8_t)(seed >> 25);
    }
}

#endif
