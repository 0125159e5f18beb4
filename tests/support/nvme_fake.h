/*
 * An NVMe controller of the data sheet hw/nvme_regs.h without buses, for tests of drivers on
 * tests/support/fake/fake_kapi.h: it fetches commands when doorbells are rung, moves their data at
 * once, and completes them later, in any order if it shall. A driver that breaks the rules of the
 * specification fails an assertion here.
 */
#ifndef TESTS_SUPPORT_NVME_FAKE_H
#define TESTS_SUPPORT_NVME_FAKE_H

#include "hw/nvme_regs.h"
#include "tests/support/fake/fake_kapi.h"
#include "tests/support/test.h"

#define NVME_FAKE_QUEUES      8u
#define NVME_FAKE_BLOCKS      4096u
#define NVME_FAKE_BLOCK_BYTES 512u

struct nvme_fake_queue {
    bool has_cq, has_sq;
    bool lost; /* set by the test: what is posted does not arrive, until it is created anew */
    uint32_t cq_entries, sq_entries;
    uint64_t cq, sq; /* addresses */
    uint32_t sq_head, sq_tail, cq_head, cq_tail, n_unfinished;
    uint16_t phase;
};

struct nvme_fake {
    struct k_pci_dev pci;
    struct kernel *kernel;
    /* ---- set by the test --------------------------------------------------------------------- */
    unsigned stride_log2; /* CAP.DSTRD */
    uint8_t mdts;
    uint64_t delay_ps; /* of a completion at most; at random, so that they pass each other */
    bool gone;         /* nothing answers */
    bool mute;         /* commands are not answered */
    uint16_t refuse_create_sq; /* status; 0: it creates it */
    uint32_t bad_block;        /* reads of it end with Unrecovered Read, do not retry; 0: none */
    /* ---- to look at -------------------------------------------------------------------------- */
    uint32_t cc, csts, aqa;
    uint64_t asq, acq;
    struct nvme_fake_queue queue[NVME_FAKE_QUEUES];
    unsigned n_sq_doorbells, n_cq_doorbells, n_deleted_sqs, n_deleted_cqs;
    bool passed; /* a completion has passed one that was fetched before it */
    uint64_t fetched, last_done;
    uint8_t disk[NVME_FAKE_BLOCKS * NVME_FAKE_BLOCK_BYTES];
};

void nvme_fake_init(struct nvme_fake *nvme, struct kernel *kernel);
/* Posts a completion of the controller's own making. */
void nvme_fake_complete(struct nvme_fake *nvme, unsigned queue, uint16_t cid, uint16_t status,
                        uint32_t result);

#endif
