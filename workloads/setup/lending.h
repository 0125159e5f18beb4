/*
 * Machines that lend and borrow devices, as their administrators set them up. Group `lending`: a
 * group per machine.
 *
 *   lending = {
 *       lender = { host = "lender"; lend = ["gpu0", "gpu1"]; };
 *       borrower = { host = "borrower"; borrow = ["gpu0"]; dma_window_bytes = "1 GiB"; };
 *   };
 *
 * With a group `vm` its programs run in a virtual machine that has its devices: borrowed ones by
 * MDEV, its own by VFIO. Devices are named as in `devices`. A machine with neither `lend` nor
 * `borrow` takes no part in the cluster and uses its own devices; with an empty list it takes part.
 * Machines of `network` on the same hosts share their kernels, and may use a borrowed NIC.
 */
#ifndef WORKLOADS_SETUP_LENDING_H
#define WORKLOADS_SETUP_LENDING_H

#include "logic/lending/lending.h"
#include "models/os/os.h"
#include "models/world/world.h"

struct lending;

#define LENDING_DRIVERS_MAX 8u

struct lending_params {
    const char *host_name;
    uint64_t dma_window_bytes, pool_bytes;
    uint32_t max_peers, dma_bits;
};
extern const struct param_desc lending_params_table[];

struct lending_host {
    struct lending *lending;
    const char *name; /* of its group: "borrower" */
    uint32_t number;  /* in the cluster, from 1 */
    struct config_node *group;
    struct lending_params params;
    struct host *host;
    struct kernel *kernel;  /* that programs run on, from lending_up() on */
    struct kernel *machine; /* the host's own: the same, but for a guest */
    struct lending_vm *vm;  /* NULL: programs run on the machine itself */
    struct lend_host *lend; /* NULL: it takes no part in the cluster */
    void *
        driver[LENDING_DRIVERS_MAX]; /* of lending_drivers[], for devices of its own and borrowed */
    bool member;                     /* `lend` or `borrow` is there */
    bool bridged;                    /* it has a pcie.ntb */
    unsigned n_lent, n_borrowed;     /* as the scenario says */
    struct k_pci_id *lent_ids;       /* what kinds it lends, ends with { 0, 0 } */
    struct lend_usage before;        /* in touch with its lenders, nothing borrowed */
    bool
        more; /* a program of it borrows as well, and perhaps from others: lending_borrows_more() */
};

/* Reads and checks the group `lending` of the scenario. NULL: there is none. */
struct lending *lending_new(struct world *world, struct config *config,
                            struct sim_error_list *errors);
/* Boots kernels, loads drivers, starts lenders and borrowers, borrows; runs the simulation until
 * all have what the scenario says. False after sim_fail(): a refusal is one, in its own words. */
bool lending_up(struct lending *lending, const volatile int *interrupt);
/* Returns everything, makes sure that no table, window or mapping is left, unloads drivers. After a
 * failure or an interrupt this is left out. */
void lending_down(struct lending *lending, const volatile int *interrupt);
void lending_free(struct lending *lending);

/* False: there are mistakes, and nothing is to be said of what refers to its machines. */
bool lending_sound(const struct lending *lending);
struct lending_host *lending_find(struct lending *lending, const char *name);
const char *const *lending_names(const struct lending *lending); /* NULL-terminated */
/* The machine on this host; NULL: there is none. */
struct lending_host *lending_on(struct lending *lending, const struct host *host);
unsigned lending_n_hosts(const struct lending *lending);
struct lending_host *lending_host_at(struct lending *lending, unsigned idx);

/* Before anything runs: the machine can use the device, which it borrows, or has and does not lend.
 * Names of those are NULL-terminated, kept until the next call. */
bool lending_uses(const struct lending_host *host, const char *device);
const char *const *lending_used_names(struct lending_host *host);
/* Who lends the device, and who borrows it, as the scenario says; NULL: nobody. */
const struct lending_host *lending_lender(const struct lending *lending, const char *device);
const struct lending_host *lending_borrower(const struct lending *lending, const char *device);
/* The device in the machine's tree, the same call whether it is borrowed or not; NULL: it is not
 * there (any more). */
struct k_pci_dev *lending_device(struct lending_host *host, const char *device);
/* CPUs that programs on the machine see, and the host's core that is one of them: a guest has
 * fewer, and counts them from 0. */
unsigned lending_cpus(const struct lending_host *host);
unsigned lending_core(const struct lending_host *host, unsigned cpu);
/* A program borrows by itself, and so gets in touch with hosts that nobody was in touch with
 * before, which takes entries for good: lending_down() checks only what borrows leave behind. */
void lending_borrows_more(struct lending *lending);
/* [thread] Takes its driver off the device; a borrowed one goes back to its lender. */
void lending_remove(struct lending_host *host, struct k_pci_dev *dev);

/* ---- Drivers that every machine loads (lending_drivers.c) ------------------------------------ */
struct lending_driver {
    const char *name;
    void *(*new)(struct kernel *kernel); /* NULL: it does not want to */
    const struct k_pci_driver *(*pci)(void *driver);
    void (*free)(void *driver); /* [thread] its devices have been removed */
};
/* Ends with NULL; at most LENDING_DRIVERS_MAX. */
extern const struct lending_driver *const lending_drivers[];

#endif
