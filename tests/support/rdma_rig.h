/*
 * Two RDMA adapters, joined by a wire, in the slots of one host that is mere memory: it answers
 * reads after a fixed time, and what is no memory with unsupported request. A driver that pokes
 * queues into it and rings doorbells with TLPs. No caches, no cores: times follow from the formulas
 * of link, wire and adapter alone.
 */
#ifndef TESTS_SUPPORT_RDMA_RIG_H
#define TESTS_SUPPORT_RDMA_RIG_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hw/pci_regs.h"
#include "hw/rdma_regs.h"
#include "models/pcie/config/config_space.h"
#include "models/pcie/link/port.h"
#include "models/rdma/rdma.h"
#include "tests/support/fixture_test.h"

#define RR_ADAPTERS     2u
#define RR_MEMORY_BYTES (UINT64_C(16) << 20)
#define RR_BAR          UINT64_C(0x4000000000)
#define RR_BAR_STRIDE   UINT64_C(0x100000)
#define RR_LINK_PS      (40 * SIM_PS_PER_NS)
#define RR_WIRE_PS      (50 * SIM_PS_PER_NS)
#define RR_DELAY_PS     (300 * SIM_PS_PER_NS)
#define RR_MSI_BASE     UINT64_C(0xfee00000)

struct rdma_rig {
    struct sim *sim;
    struct pcie_context *pcie;
    struct sim_error_list errors;
    struct config *config;
    uint8_t *memory; /* RR_MEMORY_BYTES from address 0 on */
    struct model host;
    struct pcie_port port[RR_ADAPTERS];
    struct model *adapter[RR_ADAPTERS];
    struct ib_wire *wire;
    uint64_t next_free, command[RR_ADAPTERS];
    uint8_t mtu; /* code of the path MTU of rr_connect(); rr_open(): 4096 bytes */
    /* what arrived */
    sim_time last_write_ps; /* of memory */
    uint64_t n_writes, n_irqs, n_unsupported;
    bool answered;
    uint64_t answer;
};

/* settings: "key", "value", ..., NULL of both adapters. */
void rr_open(struct rdma_rig *rig, double loss_ratio, const char *const *settings);
/* Nothing may be left: no TLP, no packet, no credit. */
void rr_close(struct rdma_rig *rig);
void rr_run(struct rdma_rig *rig, sim_time ps);

void rr_write(struct rdma_rig *rig, unsigned a, uint64_t offset, const void *from, unsigned bytes);
void rr_write32(struct rdma_rig *rig, unsigned a, uint64_t offset, uint32_t value);
uint32_t rr_read32(struct rdma_rig *rig, unsigned a, uint64_t offset);
uint32_t rr_config(struct rdma_rig *rig, unsigned a, bool write, unsigned offset, uint32_t value);
/* As enumeration and a driver do: BAR, sizes, bus mastering, MSI-X with vectors at RR_MSI_BASE. */
void rr_enable(struct rdma_rig *rig, unsigned a);
/* Function-level reset. */
void rr_reset(struct rdma_rig *rig, unsigned a);

uint64_t rr_alloc(struct rdma_rig *rig, uint64_t bytes);
/* Runs until it is answered, 1 ms at most; its status is then PENDING. */
struct rdma_command rr_command(struct rdma_rig *rig, unsigned a, struct rdma_command command);
struct rdma_command rr_ok(struct rdma_rig *rig, unsigned a, struct rdma_command command);

/* A connected queue pair on each side, each with a region over all memory. */
struct rr_qp {
    uint32_t number, pd, key, cq, cq_consumer;
    uint64_t sq, rq, record, cq_ring, cq_record, eq_ring;
    uint16_t sq_tail;
    uint32_t rq_tail;
    uint8_t sq_log, rq_log, cq_log;
};
void rr_connect(struct rdma_rig *rig, struct rr_qp qp[RR_ADAPTERS], uint8_t cq_log);
/* Others with the same completion queues, which are polled by way of `qp`. */
void rr_connect_more(struct rdma_rig *rig, const struct rr_qp qp[RR_ADAPTERS],
                     struct rr_qp more[RR_ADAPTERS]);
/* A send WQE with one segment, or without if bytes is 0. */
struct rr_wqe {
    struct rdma_wqe_control control;
    struct rdma_wqe_remote remote;
    struct rdma_wqe_data data;
    uint8_t rest[16];
};
struct rr_wqe rr_wqe(const struct rr_qp *qp, enum rdma_opcode opcode, uint64_t from, uint32_t bytes,
                     uint64_t to, uint32_t rkey);
/* Puts it into the ring; the doorbell is the caller's. */
void rr_post(struct rdma_rig *rig, struct rr_qp *qp, const struct rr_wqe *wqe);
void rr_doorbell(struct rdma_rig *rig, unsigned a, const struct rr_qp *qp);
void rr_post_receive(struct rdma_rig *rig, struct rr_qp *qp, uint64_t at, uint32_t bytes);
/* The consumer's record is not written. */
bool rr_poll(struct rdma_rig *rig, struct rr_qp *qp, struct rdma_cqe *cqe);

#endif
