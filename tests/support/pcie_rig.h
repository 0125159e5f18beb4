/*
 * What the tests of links and switches share: a run with a fabric, and end devices that record
 * what arrives and give buffers back as they are told.
 */
#ifndef TESTS_SUPPORT_PCIE_RIG_H
#define TESTS_SUPPORT_PCIE_RIG_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/base/model.h"
#include "models/pcie/config/config_space.h"
#include "models/pcie/link/port.h"
#include "tests/support/test.h"

struct rig {
    struct sim *sim;
    struct pcie_context *pcie;
    struct sim_error_list errors;
};

struct arrival {
    uint64_t id, address;
    sim_time now_ps, head_ps, tail_ps;
    uint16_t requester_id, completer_id, length_bytes;
    uint8_t type, status, class;
    uint32_t data_credits;
    uint32_t data;          /* first double word of a completion */
    struct sim_stamp stamp; /* all zero without one */
};

struct end_device {
    struct model model;
    struct pcie_port port;
    struct rig *rig;
    /* What to do with what arrives. */
    bool hold[N_TLP_CLASSES];   /* keep the buffer until end_release_held() */
    sim_time service_ps;        /* give buffers back one after the other, each taking that long */
    sim_time random_service_ps; /* ... or random up to that */
    bool answer_reads;          /* a completion with data for each MRd, after service */
    struct cfg_space *cfg;      /* answer type 0 configuration requests; may be NULL */
    sim_time busy_until_ps;
    struct arrival *got;
    size_t n_got, got_capacity;
    uint32_t held_header[N_TLP_CLASSES], held_data[N_TLP_CLASSES];
    /* A stream to send through ready() and credit(). */
    struct tlp *(*make)(struct end_device *end, uint64_t i);
    uint64_t n_to_send, n_sent;
};

void pcie_rig_init(struct rig *rig, uint64_t seed);

void pcie_rig_release(struct rig *rig);

void pcie_rig_run(struct rig *rig);

/* ---- TLPs ------------------------------------------------------------------------------------ */

/* The identity travels in tag and the lower byte of the requester ID: 24 bits. */
struct tlp *pcie_rig_tlp(struct rig *rig, enum tlp_type type, uint64_t address, unsigned bytes,
                         uint64_t id);

/* ---- End devices ----------------------------------------------------------------------------- */

void end_release_held(struct end_device *end, enum tlp_class class, uint32_t data);

/* Sends what is left of the stream as far as the port takes it. */
void end_credit(struct model *model, uint32_t port);

struct end_device *end_new(struct rig *rig, const char *name, unsigned generation, unsigned lanes);

void end_free(struct end_device *end);

struct pcie_link_params pcie_rig_link_params(sim_time latency_ps);

struct pcie_link *pcie_rig_join(struct rig *rig, struct pcie_port *a, struct pcie_port *b,
                                const struct pcie_link_params *params);

/* ---- What the specification says ------------------------------------------------------------- */

struct sent {
    uint8_t class, attr;
    uint16_t requester_id, completer_id;
};

/* `later` was sent after `earlier` on the same way and may arrive before it. */
bool spec_may_pass(const struct sent *earlier, const struct sent *later);

/* n bytes on the wire without SKP, rounded up to a picosecond. */
sim_time spec_wire_ps(unsigned generation, unsigned lanes, uint64_t bytes);

#endif
