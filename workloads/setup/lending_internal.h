/* The inside of a group `lending`, for lending*.c only. */
#ifndef WORKLOADS_SETUP_LENDING_INTERNAL_H
#define WORKLOADS_SETUP_LENDING_INTERNAL_H

#include "workloads/setup/lending.h"

/* A device that is lent. */
struct lent_device {
    const char *name;
    struct model *model;
    struct lending_host *lender, *borrower; /* borrower NULL: nobody borrows it */
    uint16_t id;                            /* in the lender's tree, once that has booted */
    struct lend_borrow *borrow;             /* NULL: not borrowed now */
    struct lend_mdev *mdev;                 /* NULL: not a guest's */
};

struct lending {
    struct world *world;
    struct lending_host *host;
    unsigned n_hosts;
    struct lent_device *device; /* in the order of the scenario */
    unsigned n_devices;
    const char **names, **device_names; /* of hosts, of lent devices; NULL-terminated */
    const char **used_names;            /* lending_used_names() */
    bool more;                          /* lending_borrows_more() */
    bool sound;                         /* lending_sound() */
    unsigned n_waiting;                 /* threads of the present step */
    char fault[320];                    /* what was refused first; "": nothing */
};

/* Mistakes: what is borrowed of a machine to which no cables lead (lending_ways.c). */
void lending_check_ways(struct lending *lending, struct sim_error_list *errors);

/* The run fails with this when everything has been taken down again; what came first counts. */
void lending_refuse(struct lending_host *host, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), cold));

/* The lent device of that name, or NULL. */
struct lent_device *lending_lent(const struct lending *lending, const char *name);

#endif
