/* State of a group `lending`, for lending*.c only. */
#ifndef WORKLOADS_SETUP_LENDING_INTERNAL_H
#define WORKLOADS_SETUP_LENDING_INTERNAL_H

#include "workloads/setup/lending.h"

/* A device that some host lends. */
struct lent_device {
    const char *name;
    struct model *model;
    struct lending_host *lender, *borrower; /* borrower NULL: none */
    uint16_t id;                            /* in the lender's tree, once its kernel has booted */
    struct lend_borrow *borrow;             /* NULL: not borrowed now */
    struct lend_mdev *mdev;                 /* NULL: no guest has it */
};

struct lending {
    struct world *world;
    struct lending_host *host;
    unsigned n_hosts;
    struct lent_device *device; /* in the order of the scenario */
    unsigned n_devices;
    const char **names, **device_names; /* of hosts, of lent devices; NULL-terminated */
    const char **used_names;            /* lending_used_names() */
    bool borrows_more;                  /* lending_borrows_more() */
    bool sound;                         /* lending_sound() */
    unsigned n_waiting;                 /* threads of this step that have not finished */
    char fault[320];                    /* text of the first refusal; "": none */
};

/* Adds a mistake for each device that is borrowed from a host to which no cables lead
 * (lending_paths.c). */
void lending_check_paths(struct lending *lending, struct sim_error_list *errors);

/* Records a refusal. lending_up() then takes everything down and fails the run with its text. Later
 * refusals are ignored. */
void lending_refuse(struct lending_host *host, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), cold));

/* The lent device of that name; NULL: no host lends it. */
struct lent_device *lending_lent(const struct lending *lending, const char *name);

#endif
