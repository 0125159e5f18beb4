/* rdma.adapter: an InfiniBand host channel adapter with one PCIe port (p0) and one InfiniBand port
 * (i0). */
#ifndef MODELS_RDMA_RDMA_H
#define MODELS_RDMA_RDMA_H

#include "models/rdma/ib_link.h"

extern const struct model_ops rdma_ops;

struct rdma_stats {
    uint64_t wqes, wqe_fetches, blueflame, receive_wqes, receive_fetches, record_reads;
    uint64_t requests, responses; /* packets sent */
    uint64_t received, dropped;   /* packets; dropped: for no queue pair, or in the wrong state */
    uint64_t cqes, error_cqes, events, lost_events, cq_overruns;
    uint64_t acks, naks, rnr_naks; /* sent */
    uint64_t retries, timeouts, rnr_waits, duplicates;
    uint64_t translation_hits, translation_misses;
    uint64_t commands, failed_commands, bad_doorbells;
    uint64_t offloaded, offload_polls;
};
const struct rdma_stats *rdma_stats(const struct model *model);
/* What its users make, and how many of each there can be. */
struct rdma_objects {
    uint32_t queue_pairs, completion_queues, regions, protection_domains;
};
struct rdma_objects rdma_objects_max(const struct model *model);
/* Of a send at most. */
uint32_t rdma_inline_bytes(const struct model *model);

#endif
