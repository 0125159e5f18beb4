/*
 * Two simulated hosts with RDMA adapters and a cable: `server` has an NVMe controller and a target
 * of NVMe over Fabrics, on `client` runs a test's body.
 */
#ifndef TESTS_SUPPORT_NVMEOF_RIG_H
#define TESTS_SUPPORT_NVMEOF_RIG_H

#include "logic/nvmeof/nvmeof_initiator_internal.h"
#include "models/os/os.h"
#include "models/rdma/rdma.h"
#include "tests/support/world_fixture.h"

#define RIG_ENTRIES 16u
#define RIG_BYTES   131072u
#define RIG_BLOCK   512u
#define RIG_KIB     1024u

struct rig_side {
    struct kernel *kernel;
    struct rdma_driver *driver;
    struct rdma_drv *rdma;
};

struct rig {
    struct world_fixture w;
    struct rig_side server, client;
    struct nvme_local *nvme;
    struct nvmeof_target *target;
    struct nvmeof_target_params params;
    const char *adapters;             /* settings of both; "" */
    uint16_t nvme_entries;            /* of the controller's queues; 0: as by default */
    struct nvmeof_target_stats stats; /* at its end */
    struct rdma_stats adapter;        /* the target's, at the end */
    /* a hello under way */
    const struct nvmeof_hello *hello;
    struct nvmeof_hello answer;
    bool asked, ready, stop, stopped, done;
    int error;
    void (*body)(void);
    unsigned n_done;
};
extern struct rig rig;

#define RIG_SIZES 6u
extern const uint32_t rig_sizes[RIG_SIZES]; /* of the transfers of rig_data_both_ways() */

/* Set-ups of cmocka: defaults of the target; the same with offload. */
int rig_set_up(void **state);
int rig_set_up_offload(void **state);
/* Boots both hosts, runs `body` beside a target, shuts all down; nothing may be left. */
void rig_run(void (*body)(void), const char *wire);

/* What follows is for bodies. Takes a hello to the target and its answer back. */
int rig_exchange(void *context, const struct nvmeof_hello *hello, struct nvmeof_hello *answer);
struct nvmeof_initiator_params rig_initiator_params(void);
struct nvmeof_initiator *rig_open_initiator(void);
/* Ends a request: sets the flag that is its context. */
void rig_done(struct nvmeof_request *request);
void rig_fill(struct kaddr at, uint32_t bytes, unsigned seed);
bool rig_holds(struct kaddr at, uint32_t bytes, unsigned seed);
/* One request, until it has ended. */
int rig_execute(struct nvmeof_initiator *initiator, struct nvmeof_request *request);
int rig_transfer(struct nvmeof_initiator *initiator, struct nvmeof_buffer buffer, bool write,
                 uint64_t offset, uint32_t bytes, uint16_t *status);
/* Writes and reads back data of all sizes by an initiator of its own. */
void rig_data_both_ways(void);

#endif
