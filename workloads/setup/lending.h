/*
 * Hosts that lend and borrow devices, set up as their administrators would. The group `lending` of
 * a scenario has a group per host:
 *
 *   lending = {
 *       lender = { host = "lender"; lend = ["gpu0", "gpu1"]; };
 *       borrower = { host = "borrower"; borrow = ["gpu0"]; dma_window_bytes = "1 GiB"; };
 *   };
 *
 * Devices are named as in `devices`, their functions as function_name.h says; sriov_numvfs has
 * virtual functions enabled. A host with neither `lend` nor `borrow` takes no part in the cluster
 * and uses its own devices; with an empty list it takes part. With a group `vm` the host's programs
 * run in a virtual machine, which has its devices: borrowed ones by MDEV, its own by VFIO. Entries
 * of the group `network` for the same host share its kernel and may use a borrowed NIC.
 *
 * Calls marked [thread] are made from a thread of the host's kernel, the others from outside the
 * simulation. Pointers that a call returns belong to the struct lending unless it says otherwise.
 */
#ifndef WORKLOADS_SETUP_LENDING_H
#define WORKLOADS_SETUP_LENDING_H

#include "logic/lending/lending.h"
#include "logic/sisci/sisci.h"
#include "models/os/os.h"
#include "models/world/world.h"
#include "workloads/setup/function_name.h"

struct lending;
struct nic_driver;
struct nic_driver_params;
struct net;
struct net_params;
struct copy_engines;

#define LENDING_DRIVERS_MAX 8u

struct lending_params {
    const char *host_name;
    uint64_t dma_window_bytes, pool_bytes;
    uint32_t max_peers, dma_bits, sriov_numvfs;
    bool nvme_driver, nvme_polled, hold_links, nodes_listed;
    sim_time timeout_ps, nvme_timeout_ps;
};
extern const struct param_desc lending_params_table[];
/* Those that are no parameters. */
extern const struct setting_desc lending_settings[];

struct lending_host {
    struct lending *lending;
    const char *name; /* of its group: "borrower" */
    uint32_t number;  /* in the cluster, from 1 */
    struct config_node *group;
    struct lending_params params;
    struct host *host;
    struct kernel *host_kernel;        /* from lending_up() on */
    struct kernel *kernel;             /* programs run on it: the guest's, or the host's */
    struct lending_vm *vm;             /* NULL: no guest */
    struct lend_host *lend;            /* NULL: it takes no part in the cluster */
    struct sisci *sisci;               /* its SISCI, belongs to `lend` */
    void *driver[LENDING_DRIVERS_MAX]; /* by lending_drivers[] */
    bool takes_part;                   /* in the cluster: it has `lend` or `borrow` */
    bool has_ntb;
    uint32_t ntb_node[LEND_ADAPTERS_MAX]; /* on the fabric; 0: no more */
    bool dead;                            /* lending_kill() */
    unsigned n_lent, n_borrowed;          /* in the scenario */
    unsigned n_lent_vfs;                  /* of n_lent: virtual functions */
    struct k_pci_id *lent_ids;            /* kinds of devices that it lends; ended by { 0, 0 } */
    /* With sriov_numvfs: the driver of NICs, which lending_up() loads before it enables their
     * virtual functions and lending_down() unloads; NULL: there is none. network_params(), which
     * may be NULL, changes its settings. */
    struct nic_driver *nic;
    struct net *net;
    void (*network_params)(const void *context, struct net_params *net,
                           struct nic_driver_params *nic);
    const void *network_context;
    struct copy_engines *copy_engines; /* copy_engines.h; NULL: no program uses them */
    struct lend_usage before; /* when it was connected to its lenders and had borrowed nothing */
};

/* Reads and checks the group `lending` of the scenario; adds mistakes to `errors`. NULL: there is
 * no such group. The caller owns the result. */
struct lending *lending_new(struct world *world, struct config *config,
                            struct sim_error_list *errors);
/* Boots kernels, loads drivers, starts device lending and borrows; runs the simulation until every
 * host has what the scenario says. False: interrupted, or the run has failed; if a host was refused
 * something, with the text of the refusal. */
bool lending_up(struct lending *lending, const volatile int *interrupt);
/* Returns everything, fails the run if a table entry, window or mapping is left, and unloads
 * drivers. Not to be called after a failure or an interrupt. */
void lending_down(struct lending *lending, const volatile int *interrupt);
void lending_free(struct lending *lending);
/* Runs the simulation until threads have counted *n_waiting down to 0 (the last calls sim_stop()).
 * False: interrupted, or the run has failed; with the text `stalled` if nothing goes on. */
bool lending_wait(struct sim *sim, const unsigned *n_waiting, const char *stalled,
                  const volatile int *interrupt);

/* False: the group has mistakes. Callers then report none about what refers to its hosts. */
bool lending_sound(const struct lending *lending);
struct lending_host *lending_find(struct lending *lending, const char *name);
const char *const *lending_names(const struct lending *lending); /* NULL-terminated */
/* The entry of this host; NULL: none. */
struct lending_host *lending_on(struct lending *lending, const struct host *host);
unsigned lending_n_hosts(const struct lending *lending);
struct lending_host *lending_host_at(struct lending *lending, unsigned idx);

/* By the scenario, before anything runs: the host can use a device that it borrows, or has and does
 * not lend. The names of those are NULL-terminated and valid until the next call. */
bool lending_uses(const struct lending_host *host, const char *device);
const char *const *lending_used_names(struct lending_host *host);
/* The host that lends the device, or borrows it, by the scenario; NULL: none. */
const struct lending_host *lending_lender(const struct lending *lending, const char *device);
const struct lending_host *lending_borrower(const struct lending *lending, const char *device);
/* Like function_expected() (function_name.h), of a name that some host has for what another name,
 * by which it is lent, stands for, too. */
const char *lending_expected(const struct lending *lending, const char *name, const char *expected,
                             char text[FUNCTION_TEXT_BYTES]);
/* The device, borrowed or not, in the tree of the kernel that programs run on; NULL: it is not in
 * the tree, or no longer. */
struct k_pci_dev *lending_device(struct lending_host *host, const char *device);
/* How many CPUs programs see, and the host's core that runs one of them. A guest has fewer CPUs
 * than its host and counts them from 0. */
unsigned lending_cpus(const struct lending_host *host);
unsigned lending_core(const struct lending_host *host, unsigned cpu);
/* A program borrows by itself and may connect to hosts that no scenario entry connects to.
 * Connections keep their entries, so lending_down() then checks only those of leases. */
void lending_borrows_more(struct lending *lending);
/* A program has failed: what it has left behind is no fault of its own for lending_down(). */
void lending_excuse(struct lending *lending);
/* The host has died, for its peers: the cables of its NTBs go down for good, its lending software
 * stops. lending_down() then frees its memory and checks the others. To be called once. */
void lending_kill(struct lending_host *host);
/* [thread] Removes the device's driver; gives a borrowed device back to its lender. */
void lending_remove(struct lending_host *host, struct k_pci_dev *dev);

/* ---- Drivers that every host loads (lending_drivers.c) --------------------------------------- */

struct lending_driver {
    const char *name;
    /* NULL: not for this kernel */
    void *(*new)(struct kernel *kernel, const struct lending_params *params);
    const struct k_pci_driver *(*pci)(void *driver);
    void (*free)(void *driver); /* [thread] after its devices have been removed */
};
/* Ends with NULL; at most LENDING_DRIVERS_MAX. */
extern const struct lending_driver *const lending_drivers[];

#endif
