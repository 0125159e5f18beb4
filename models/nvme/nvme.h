/*
 * nvme.controller: an NVMe controller with one PCIe port (p0), queues anywhere an address reaches,
 * and media. What its driver sees is hw/nvme_regs.h.
 */
#ifndef MODELS_NVME_NVME_H
#define MODELS_NVME_NVME_H

#include "models/base/model.h"

#define NVME_NAMESPACES_MAX 4u
#define NVME_CLASSES        5u /* of arbitration */

extern const struct model_ops nvme_ops;

struct nvme_stats {
    uint64_t reads, writes, read_bytes, write_bytes; /* I/O commands that succeeded; their data */
    uint64_t admin_commands;
    uint64_t errors;                      /* completions with a status other than success */
    uint64_t sqes, sqe_fetches;           /* entries fetched; reads, local ones included */
    uint64_t sqes_of_class[NVME_CLASSES]; /* asked for; round robin: the first */
    uint64_t coalesced;                   /* completions without a message of their own */
    uint64_t queue_wait_max_ps;           /* of a queue with entries for its turn */
    uint64_t cmb_fetches;                 /* of these, from the controller's own memory */
    uint64_t prp_lists;                   /* reads of PRP lists */
    uint64_t sgl_segments;                /* reads of SGL segments */
    uint64_t compares;
    uint64_t cqes, cq_waits; /* written; that had to wait for room */
    uint64_t events;         /* asynchronous ones reported */
    uint64_t aborted;        /* commands that an Abort ended */
    uint64_t bad_doorbells;  /* of queues that do not exist, or out of range */
    uint64_t resets;         /* by CC.EN */
    uint64_t function_resets;
    uint64_t interrupts;     /* messages */
    uint64_t unsupported;    /* requests to its functions */
    uint64_t stopped_queues; /* for I/O, as an entry could not be fetched */
    uint64_t fatal;          /* admin commands could not be fetched, completions not written */
    uint64_t media_pages;    /* 4 KiB pages that hold something; never cleared. Of what was there
                              * before the run, those that were touched */
    uint64_t commands_max;   /* most under way */
    uint64_t media_retries;  /* reads of a page that had to be read once more */
    /* Flash: of the host and of collection together; of the latter; blocks; reads that suspended
     * something; pages that waited for room in the buffer. */
    uint64_t media_programmed_bytes, media_moved_bytes, media_erases, media_suspends,
        media_buffer_waits;
    struct stat_busy media; /* of all channels */
    struct stat_peak media_peak;
};
const struct nvme_stats *nvme_stats(const struct model *model);
/* Of a port's controller, that of administration included. */
uint32_t nvme_queue_pairs(const struct model *model);
uint32_t nvme_queue_entries(const struct model *model); /* of a queue at most */
/* Of each namespace, as the scenario says. */
uint64_t nvme_namespace_bytes(const struct model *model);
uint32_t nvme_namespace_block_bytes(const struct model *model);
/* Of one command. */
uint64_t nvme_transfer_bytes_max(const struct model *model);
/* As if that had been written before the run, namespace nsid (from 1) holds a stream
 * (models/base/payload.h) from `mark` on in the `bytes` bytes (not 0) from `offset` on, both whole
 * cache lines: no time passes, nothing counts as written. Before commands for that, and within the
 * namespace. */
void nvme_hold(struct model *model, uint32_t nsid, uint64_t offset, uint64_t bytes, uint64_t mark);

#endif
