/* Hosts with bridges, and a driver that does no more than fill the bridges' tables by MMIO. */
#ifndef TESTS_SUPPORT_NTB_RIG_H
#define TESTS_SUPPORT_NTB_RIG_H

#include "hw/pci_regs.h"
#include "models/pcie/ntb/cluster_switch.h"
#include "models/pcie/ntb/ntb.h"
#include "tests/support/test.h"
#include "tests/support/world_fixture.h"

/* One socket, one core, small caches: what a node of a large cluster needs. */
#define LIGHT_HOST                                                                 \
    "cpu = { sockets = 1; cores_per_socket = 1; }; "                               \
    "cache = { llc_size = 81920; llc_slices = 1; llc_ways = 20; l2_size = 32768; " \
    "l1_size = 8192; }; dram = { node_size = 268435456; channels = 1; }; "

struct ntb_node {
    struct world_fixture *f;
    struct host *host;
    struct model *ntb;
    uint64_t reg, aperture[2], window_bytes; /* window_bytes: of BAR 2 */
    uint32_t interrupts[256];                /* by vector */
    uint8_t seen;                            /* byte at `watched` when the last one came */
    struct hpa watched;
};

struct root_complex_host *ntb_rc(struct ntb_node *node);

uint16_t ntb_cpu_id(struct ntb_node *node);

void ntb_sleep(struct sim_task *task, sim_time duration_ps);

/* ---- The driver ------------------------------------------------------------------------------ */

void ntb_write(struct ntb_node *node, struct sim_task *task, uint64_t reg, unsigned bytes,
               uint64_t value);

uint64_t ntb_read(struct ntb_node *node, struct sim_task *task, uint64_t reg, unsigned bytes);

/* Window `idx` of BAR 2 shows `address` (or registers) of the node with that number. */
void ntb_map(struct ntb_node *node, struct sim_task *task, unsigned idx, uint64_t to_node,
             uint64_t address);

void ntb_out(struct ntb_node *node, struct sim_task *task, unsigned idx, uint16_t id);

void ntb_in(struct ntb_node *node, struct sim_task *task, unsigned idx, uint32_t from_node,
            unsigned device);

/* What the address `offset` bytes into window `idx` is for this host. */
struct hpa ntb_window(const struct ntb_node *node, unsigned idx, uint64_t offset);

/* Both directions on; requester 0 is this host's CPU. */
void ntb_enable(struct ntb_node *node, struct sim_task *task);

/* MSI-X vector i raises vector 32 + i of core 0. */
void ntb_enable_interrupts(struct ntb_node *node, struct sim_task *task);

void ntb_node_open(struct ntb_node *node, struct world_fixture *f, const char *host,
                   const char *ntb);

const struct ntb_stats *ntb_stats_of(const struct ntb_node *node);

/* Memory of the node's host, aligned to whole windows if asked for. */
struct hpa ntb_memory(struct ntb_node *node, uint64_t bytes, uint64_t align);

/* The cable at this port. */
struct pcie_link *ntb_cable_of(struct world *world, const struct pcie_port *port);

#endif
