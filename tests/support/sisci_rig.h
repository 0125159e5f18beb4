/*
 * For tests of SISCI on fake hosts (lend_fake.h): three hosts below a switch with a process each,
 * what a host holds, and a device of the second that is driven through its registers as a segment.
 */
#ifndef TESTS_SUPPORT_SISCI_RIG_H
#define TESTS_SUPPORT_SISCI_RIG_H

#include "logic/sisci/sisci.h"
#include "tests/support/lend_rig.h"

#define CLIENT  0 /* borrows */
#define LENDER  1 /* has two devices */
#define THIRD   2 /* has memory, and borrows too */
#define N_HOSTS 3u
#define ID(h)   ((uint32_t)(h) + 1)
#define BYTES   8192u
#define CHUNK   2048u

struct sr_side {
    struct sr_cluster *cluster;
    unsigned number;
    struct lf_host *host;
    struct sisci *sisci;
    struct sisci_process *process;
    unsigned events[8]; /* of callbacks, by enum sisci_event */
    uint32_t event_host;
};
struct sr_cluster {
    struct lf_rig *rig;
    struct sr_side side[N_HOSTS];
};

#define OK(call)                                                                  \
    do {                                                                          \
        struct lend_error error = { 0 };                                          \
        const enum sisci_error result_ = (call);                                  \
        if (result_ != SISCI_OK)                                                  \
            fail_msg("%s: %s: %s", #call, sisci_error_name(result_), error.text); \
    } while (0)
#define FAILS(call, code, word)                                                   \
    do {                                                                          \
        struct lend_error error = { 0 };                                          \
        const enum sisci_error result_ = (call);                                  \
        if (result_ != (code) || strstr(error.text, word) == NULL)                \
            fail_msg("%s: %s: %s", #call, sisci_error_name(result_), error.text); \
    } while (0)

/* Runs `body` in a thread of the host, to its end; its argument is the side. */
void sr_in(struct sr_side *side, void (*body)(struct lf_host *, void *));
/* Opens SISCI for the side's process, closes it. */
void sr_open_body(struct lf_host *host, void *side);
void sr_close_body(struct lf_host *host, void *side);
/* Offers a segment of BYTES, number 5 + that of the side; it is sr_shared then. */
void sr_offer_body(struct lf_host *host, void *side);
extern struct sisci_segment *sr_shared; /* of the test that runs */

/* Bit i of iommus: host i has one on. */
extern bool sr_hold_links; /* of the clusters to be made */
struct sr_cluster *sr_new(unsigned iommus, unsigned n_ntbs, unsigned n_hosts);
void sr_free(struct sr_cluster *cluster);

/* Callbacks that count in side->events. */
void sr_count_segment(struct sisci_segment *segment, enum sisci_event event, uint32_t host,
                      void *side);
void sr_count_remote(struct sisci_remote *remote, enum sisci_event event, void *side);
void sr_count_device(struct sisci_device *device, enum sisci_event event, void *side);

/* ---- What one host holds --------------------------------------------------------------------- */

struct sr_holdings {
    struct sisci_usage sisci;
    struct lend_usage lend;
    struct lf_entries entries[LF_NTBS];
    uint64_t iommu_pages, pages;
};
struct sr_holdings sr_holdings_of(const struct sr_side *side);
/* Connects everybody to everybody, which stays so, and looks. */
void sr_greet_all(struct sr_cluster *cluster, struct sr_holdings before[N_HOSTS]);
/* All that live hold what they held: in drivers and chips. */
void sr_expect_no_trace(struct sr_cluster *cluster, const struct sr_holdings before[N_HOSTS]);

/* ---- A device, driven through its registers as a segment ------------------------------------- */

extern const struct sisci_device_name sr_device_name;
struct sr_driven {
    struct sisci_device *device;
    struct sisci_remote *bar;
    struct sisci_map regs;
};
void sr_drive(struct sr_side *side, struct sr_driven *driven, enum sisci_borrow how);
void sr_undrive(struct sr_driven *driven);
/* One command of the device; its status. */
uint32_t sr_run(const struct sr_driven *driven, uint32_t command, uint64_t dma, uint32_t bytes);
/* The device reads what the CPU has put at the first half of `map`, and writes it to the second. */
void sr_copy_by_device(const struct sr_driven *driven, const struct sisci_map *map, uint64_t dma,
                       uint8_t first);
/* The lender has its IOMMU on. */
bool sr_lender_isolates(const struct sr_side *side);

#endif
