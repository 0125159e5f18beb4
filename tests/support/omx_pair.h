/*
 * Open-MX on the two hosts of net_rig.h: a board each, threads that open endpoints and connect. A
 * wire may lose, repeat and overtake packets. Included by one file of a test, after cmocka.h.
 */
#ifndef TESTS_SUPPORT_OMX_PAIR_H
#define TESTS_SUPPORT_OMX_PAIR_H

#include "logic/mx/mx_account.h"
#include "logic/openmx/openmx.h"
#include "tests/support/net_rig.h"

#define OMX_KEY 0x1234u

struct omx_pair {
    struct rig *rig;
    struct kernel *kernel;
    struct openmx *omx[2];
    struct openmx_options options[2];
    struct mx_options mx;
    struct dma_core *dma[2]; /* for the next omx_pair_attach(); NULL: none */
    unsigned running;
};

/* A process: an endpoint of a host, and its connections to others by their place in `processes`. */
struct omx_process {
    struct omx_pair *pair;
    unsigned host;
    uint8_t id;
    struct mx_endpoint *ep;
    struct mx_peer peer[8];
    int connected[8];
    struct kaddr buffer; /* 1 MiB and more: see omx_process_buffer() */
    void (*body)(struct omx_process *p);
    void *arg;
    bool done, stays; /* stays: its endpoint is not closed */
};

/* Wires that need the packets of pulls: an MTU of 9000, 10 us, 10 Gbit/s. */
struct rig_options omx_wire(uint64_t seed);
struct omx_pair *omx_pair_new(const struct rig_options *wire, const struct openmx_options *options);
/* All endpoints are closed: frees, and checks that no pin, page or packet is left. */
void omx_pair_free(struct omx_pair *pair);
/* A thread that opens endpoint `id` of the host, runs the body and closes. */
void omx_process_start(struct omx_pair *pair, struct omx_process *p, unsigned host, unsigned cpu,
                       uint8_t id, void (*body)(struct omx_process *p), void *arg);
/* Runs until all processes are done; fails after so many seconds of the simulated hosts. */
void omx_pair_run(struct omx_pair *pair, unsigned seconds);

/* From the body. */
int omx_connect(struct omx_process *p, unsigned n, const struct omx_process *to);
struct mx_status omx_wait(struct omx_process *p, struct mx_request **r);
/* Memory of the process's node. */
struct kaddr omx_memory(struct omx_process *p, size_t bytes);

#endif
