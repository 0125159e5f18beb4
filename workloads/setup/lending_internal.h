/* State of a group `lending`, for lending*.c only. */
#ifndef WORKLOADS_SETUP_LENDING_INTERNAL_H
#define WORKLOADS_SETUP_LENDING_INTERNAL_H

#include "sim/engine/map.h"
#include "workloads/setup/function_name.h"
#include "workloads/setup/lending.h"

/* A function that some host lends. */
struct lent_device {
    const char *name;
    struct function_name function;
    struct lending_host *lender, *borrower; /* borrower NULL: none */
    /* In the lender's tree, once its kernel has booted: its requester ID, for a virtual function
     * once that is enabled; that of its physical function. */
    uint16_t id, pf_id;
    struct lend_borrow *borrow; /* NULL: not borrowed now */
    struct lend_mdev *mdev;     /* NULL: no guest has it */
    uint64_t guest; /* the first that had it: the number of its host; 0: none had it yet */
};

struct lending {
    struct world *world;
    struct lending_host *host;
    unsigned n_hosts;
    struct sim_map *host_idx;   /* by name, and by the address of its struct host */
    struct lent_device *device; /* in the order of the scenario */
    unsigned n_devices;
    const char **refused; /* names in lists `lend` about which there is a message */
    unsigned n_refused;
    const char **names, **device_names; /* of hosts, of lent devices; NULL-terminated */
    const char **used_names;            /* lending_used_names() */
    const char **all_names;             /* function_names(), once somebody has asked */
    bool borrows_more;                  /* lending_borrows_more() */
    bool excused;                       /* lending_excuse() */
    bool sound;                         /* lending_sound() */
    unsigned n_waiting;                 /* threads of this step that have not finished */
    char fault[448];                    /* text of the first refusal; "": none */
};

/* Adds a mistake for each device that is borrowed from a host to which no cables lead
 * (lending_paths.c). */
void lending_check_paths(struct lending *lending, struct sim_error_list *errors);

/* lending_sriov.c: checks the setting sriov_numvfs of a host once all lists have been read. */
void lending_check_vfs(struct lending_host *host, struct sim_error_list *errors);
/* [thread] Loads the drivers of physical functions and has them enable virtual functions, of which
 * the lender's driver takes those that are lent. */
void lending_enable_vfs(struct lending_host *host);
/* [thread] Removes those drivers, and with them the virtual functions. */
void lending_disable_vfs(struct lending_host *host);
/* The function in the tree of the host that it is plugged into; NULL: it is not there. */
struct k_pci_dev *lending_own_function(struct lending_host *host, const struct function_name *f);

/* Records a refusal. lending_up() then takes everything down and fails the run with its text. Later
 * refusals are ignored. */
void lending_refuse(struct lending_host *host, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), cold));

/* The lent device of that name; NULL: no host lends it. */
struct lent_device *lending_lent(const struct lending *lending, const char *name);

#endif
