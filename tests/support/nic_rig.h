/*
 * What the tests of the NIC share: a host of memory that answers reads after a fixed time, a driver
 * that pokes queues into it and rings doorbells with TLPs, and the other end of the wire. No
 * caches, no cores: times follow from the formulas of link, wire and NIC alone.
 */
#ifndef TESTS_SUPPORT_NIC_RIG_H
#define TESTS_SUPPORT_NIC_RIG_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hw/nic_regs.h"
#include "hw/pci_regs.h"
#include "models/ether/ether_packet.h"
#include "models/nic/nic.h"
#include "models/numa/physmem.h"
#include "models/pcie/config/config_space.h"
#include "models/pcie/link/port.h"
#include "tests/support/fixture_test.h"

#define NR_BAR     UINT64_C(0x4000000000)
#define NR_LINK_PS (40 * SIM_PS_PER_NS)
#define NR_WIRE_PS (50 * SIM_PS_PER_NS)
#define NR_HEADERS 54u

struct nr_frame {
    sim_time tail_ps;
    struct ether_frame frame;
};

struct nr_irq {
    sim_time at_ps;
    unsigned pf, vector;
};

struct nr_rig {
    struct sim *sim;
    struct pcie_context *pcie;
    struct sim_error_list errors;
    struct config *config;
    struct physmem *memory;
    struct model host;
    struct model peer;
    struct pcie_port port[NIC_FUNCTIONS_MAX];
    struct ether_port wire_end;
    struct ether_wire *wire;
    struct model *nic;
    unsigned n_functions;
    sim_time delay_ps; /* a read's last byte in to its completions */
    uint64_t refused;  /* reads of this address are answered as unsupported; 0: none */
    uint64_t next_free;
    /* what arrived */
    struct nr_frame *frame;
    unsigned n_frames;
    struct nr_irq *irq;
    unsigned n_irqs;
    sim_time last_write_ps; /* of memory */
    uint64_t n_writes, n_reads;
    uint64_t reads_by_port[NIC_FUNCTIONS_MAX];
    bool answered;
    uint64_t answer; /* of the last register or configuration read */
    uint64_t command[NIC_FUNCTIONS_MAX];
};

/* ---- Access to the device -------------------------------------------------------------------- */

void nr_mmio_write(struct nr_rig *rig, unsigned pf, uint64_t offset, unsigned bytes,
                   uint64_t value);

/* Runs until the answer is here; all ones if there is none. */
uint64_t nr_mmio_read(struct nr_rig *rig, unsigned pf, uint64_t offset, unsigned bytes);

uint32_t nr_config_id(struct nr_rig *rig, unsigned port, uint16_t id, bool write, unsigned offset,
                      uint32_t value);

uint32_t nr_config(struct nr_rig *rig, unsigned pf, bool write, unsigned offset, uint32_t value);

unsigned nr_capability(struct nr_rig *rig, unsigned pf, unsigned id);

/* ---- Memory ---------------------------------------------------------------------------------- */

uint64_t nr_alloc(struct nr_rig *rig, uint64_t bytes);

void nr_put(struct nr_rig *rig, uint64_t at, const void *from, size_t bytes);

void nr_get(struct nr_rig *rig, uint64_t at, void *to, size_t bytes);

/* As a program would fill a buffer with a stream. */
void nr_stamp(struct nr_rig *rig, uint64_t at, uint64_t tag, uint32_t bytes);

/* Whether the stream lies there from the tag on. */
bool nr_holds(struct nr_rig *rig, uint64_t at, uint64_t tag, uint32_t bytes);

/* ---- Commands -------------------------------------------------------------------------------- */

struct nic_command nr_command(struct nr_rig *rig, unsigned pf, struct nic_command command);

void nr_ok(struct nr_rig *rig, unsigned pf, struct nic_command command);

/* ---- Queues ---------------------------------------------------------------------------------- */

struct nr_cq {
    struct nr_rig *rig;
    unsigned pf, number, log;
    uint64_t ring;
    uint32_t consumer;
};

struct nr_sq {
    struct nr_rig *rig;
    unsigned pf, number, log;
    uint64_t ring;
    uint16_t producer;
};

struct nr_rq {
    struct nr_rig *rig;
    unsigned pf, number, log;
    uint64_t ring, record;
    uint32_t posted;
    uint32_t buffer_bytes, buffer_offset, stride;
    uint64_t buffers;
};

void nr_eq_new(struct nr_rig *rig, unsigned pf, unsigned number, unsigned vector);

struct nr_cq nr_cq_new(struct nr_rig *rig, unsigned pf, unsigned number, unsigned eq, unsigned log,
                       unsigned us, unsigned count, unsigned mode);

bool nr_poll(struct nr_cq *cq, struct nic_cqe *cqe);

void nr_arm(struct nr_cq *cq);

struct nr_sq nr_sq_new(struct nr_rig *rig, unsigned pf, unsigned number, unsigned cq, unsigned log);

/* Buffers of `stride` bytes. */
struct nr_rq nr_rq_new_with(struct nr_rig *rig, unsigned pf, unsigned number, unsigned cq,
                            unsigned log, uint8_t flags, uint32_t stride);

struct nr_rq nr_rq_new(struct nr_rig *rig, unsigned pf, unsigned number, unsigned cq, unsigned log);

uint64_t nr_buffer(const struct nr_rq *rq, uint32_t index);

void nr_post(struct nr_rq *rq, unsigned n);

/* ---- Packets --------------------------------------------------------------------------------- */

struct nr_flow {
    uint64_t to_mac, from_mac;
    uint32_t source_ip, destination_ip;
    uint16_t source_port, destination_port;
};

void nr_headers(uint8_t *h, const struct nr_flow *flow, uint32_t sequence, uint32_t payload_bytes,
                uint8_t flags);

/* From the other end of the wire: payload of the stream from `position` on. */
sim_time nr_wire_send(struct nr_rig *rig, const struct nr_flow *flow, uint16_t stream,
                      uint64_t position, uint32_t payload_bytes);

struct nr_piece {
    uint64_t iova;
    uint32_t bytes;
    uint8_t hint;
};

/* Posts a WQE; segment_bytes 0: one packet. The doorbell is the caller's. Returns its index. */
uint16_t nr_wqe(struct nr_sq *sq, const struct nr_flow *flow, uint32_t sequence, uint8_t tcp_flags,
                const struct nr_piece *piece, unsigned n_pieces, uint16_t segment_bytes,
                uint8_t flags);

void nr_doorbell(struct nr_sq *sq);

void nr_run(struct nr_rig *rig);

void nr_run_for(struct nr_rig *rig, sim_time ps);

/* ---- Opening and closing --------------------------------------------------------------------- */

/* As enumeration and a driver do: BAR, sizes, MSI-X with vector v at NR_MSI_BASE, data v. */
void nr_enable(struct nr_rig *rig, unsigned pf);

/* settings: "key", "value", ..., NULL. lanes of each port; the wire has wire_gbit_s. */
void nr_open(struct nr_rig *rig, unsigned n_functions, unsigned lanes, double wire_gbit_s,
             const char *const *settings);

/* Nothing may be left: no TLP, no frame, no credit. */
void nr_close(struct nr_rig *rig);

/* The fixture of a test is the rig, from settings of this kind. */
struct nr_settings {
    unsigned n_functions, lanes;
    const char *settings[8]; /* as of nr_open() */
};

int nr_set_up(void **state);

/* Of a test whose fixture is a struct nr_rig, or begins with one. */
int nr_tear_down(void **state);

/* After `lanes` the settings: "key", "value", ... The wire has 100 Gbit/s. */
#define NR_TEST(test, n_functions, lanes, ...)  \
    FIXTURE_TEST(test, nr_set_up, nr_tear_down, \
                 (&(struct nr_settings){ n_functions, lanes, { __VA_ARGS__ } }))

#endif
