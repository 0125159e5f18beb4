/*
 * A NIC of the data sheet hw/nic_regs.h without time or buses, for tests of its driver on
 * tests/support/fake/fake_kapi.h: it reads work queue entries from memory, writes completions and
 * events, raises interrupts. What it sends goes to a callback; what it shall receive comes from the
 * test. A driver that breaks the rules of the data sheet fails an assertion here.
 */
#ifndef TESTS_SUPPORT_NIC_FAKE_H
#define TESTS_SUPPORT_NIC_FAKE_H

#include "hw/nic_regs.h"
#include "tests/support/fake/fake_kapi.h"
#include "tests/support/test.h"

#define FAKE_NIC_QUEUES 32u
#define FAKE_NIC_FLOWS  64u
#define FAKE_NIC_RULES  16u

struct fake_queue {
    bool there, armed, failed;
    uint8_t log;
    uint16_t target;
    uint64_t iova, record_iova;
    uint32_t produced, consumed; /* EQ, CQ: produced by the device */
    uint32_t arm_ci, n_arms;
    uint16_t moderation_us, moderation_count;
    uint8_t moderation_mode;
};
struct fake_flow {
    bool there;
    uint32_t source_ip;
    uint16_t source_port, target;
};

struct fake_match {
    bool there;
    uint16_t target;
    struct nic_match match;
};

struct fake_nic {
    struct k_pci_dev pci;
    struct kernel *kernel;
    bool gone, hold_completions, refuse_cq;
    unsigned lose_irqs; /* so many interrupts from now on get lost */
    uint32_t firmware, function, n_functions, n_queues, n_flows;
    uint64_t mac;
    struct fake_queue eq[FAKE_NIC_QUEUES], cq[FAKE_NIC_QUEUES], sq[FAKE_NIC_QUEUES],
        rq[FAKE_NIC_QUEUES];
    struct fake_flow flow[FAKE_NIC_FLOWS], rule[FAKE_NIC_FLOWS];
    struct fake_match match[FAKE_NIC_RULES], switch_match[FAKE_NIC_RULES]; /* by number */
    uint16_t rss[1024];
    uint32_t command_low;
    uint64_t command;
    bool command_runs, busy[FAKE_NIC_QUEUES];
    /* LRO: completions need not come in the order of buffers; one of a queue is kept back now and
     * then while others pass it. */
    uint32_t wrong_every; /* packets whose hash it divides have wrong checksums; 0: none */
    bool shuffles, kept[FAKE_NIC_QUEUES];
    struct nic_cqe kept_cqe[FAKE_NIC_QUEUES];
    /* What a frame on the wire is; hints[i]: function hint of data segment i. */
    void (*sent)(struct fake_nic *nic, unsigned sq, const uint8_t *frame, uint32_t bytes,
                 const struct nic_wqe_ethernet *ethernet);
    uint8_t hints[32];
    unsigned n_hints;
    uint64_t drops, n_sent, n_doorbells, n_cqes, n_irqs, n_commands, n_requested;
};

/* ---- Sending --------------------------------------------------------------------------------- */

void fake_nic_send_soon(struct fake_nic *nic, unsigned number);

/* ---- Receiving ------------------------------------------------------------------------------- */

/* The completion that was kept back. */
void fake_nic_give_back(struct fake_nic *nic, unsigned number);

/* False: no buffer, dropped. */
bool fake_nic_receive(struct fake_nic *nic, unsigned number, const void *frame, uint32_t bytes,
                      uint16_t header_bytes, uint32_t hash);

/* The device cannot read the queue's buffers any more: it says so, and drops what comes until the
 * queue is made anew. */
void fake_nic_fail_rq(struct fake_nic *nic, unsigned number);

/* Buffers that the device has. */
uint32_t fake_nic_posted(struct fake_nic *nic, unsigned number);

/* ---- Registers ------------------------------------------------------------------------------- */

void fake_nic_init(struct fake_nic *nic, struct kernel *kernel, unsigned function,
                   unsigned n_functions, int node);

/* It is unplugged: nothing answers, nothing is written or raised any more. */
void fake_nic_pull(struct fake_nic *nic);

#endif
