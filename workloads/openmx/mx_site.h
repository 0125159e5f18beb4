/*
 * Myrinet Express on a host of the group `network`: Open-MX over its Ethernet interface, or native
 * MX over a NIC that runs the MX firmware; and the endpoints that processes open there.
 */
#ifndef WORKLOADS_OPENMX_MX_SITE_H
#define WORKLOADS_OPENMX_MX_SITE_H

#include "logic/mx/mx.h"
#include "workloads/programs/program.h"

/* Settings of a program, which it embeds. */
struct mx_site_settings {
    bool ioat;
    bool bind;
    int steering; /* enum openmx_steer */
    uint32_t steering_cpu;
};
extern const char *const mx_site_steering_names[];
#define MX_SITE_PARAMS(type, f)                                                                  \
    PARAM("ioat", PARAM_BOOL, type, f.ioat, 0, 0, 1, PROV_NONE, "",                              \
          "copy engines make the receive copies of large messages"),                             \
        PARAM("bind", PARAM_BOOL, type, f.bind, 0, 0, 1, PROV_NONE, "",                          \
              "a process moves to the CPU of its endpoint's queue when it opens it"),            \
        PARAM_ONE_OF(                                                                            \
            "steering", type, f.steering, 0, mx_site_steering_names, PROV_NONE, "",              \
            "receive queue of a process's packets, by rules in a nic.ethernet: none: the NIC's " \
            "choice; process: of the CPU where it opens its endpoint; cpu: of steering_cpu"),    \
        PARAM("steering_cpu", PARAM_U32, type, f.steering_cpu, 0, 0, 255, PROV_NONE, "",         \
              "with steering = \"cpu\": the CPU")

struct mx_site;

/* What lost packets cost the hosts of a program: the time in which no reply to a pull came in any
 * of them, until one timed out. */
struct mx_site_stalls {
    uint64_t time_outs;
    sim_time sum_ps;
    sim_time until_ps;     /* the latest time-out */
    struct mx_site *first; /* of the hosts */
};

/* In check(), once per host: the settings fit the host; mistakes go to errors. cpu: handles
 * interrupts of the copy engines, if this program is the first that uses them. */
void mx_site_check(struct program *program, struct network_host *host,
                   const struct mx_site_settings *settings, unsigned cpu,
                   struct sim_error_list *errors);
/* [thread] NULL: the program has failed. The caller owns the result. stalls: of the program;
 * Open-MX's are added to them until the site is freed. */
struct mx_site *mx_site_new(struct program *program, struct network_host *host,
                            const struct mx_site_settings *settings, struct mx_site_stalls *stalls);
/* [thread] After all endpoints have been closed. */
void mx_site_free(struct mx_site *site);
/* [thread] Opens endpoint `id` with this key for the calling process; the caller closes it
 * (mx_close()). NULL: the program has failed. */
struct mx_endpoint *mx_site_endpoint(struct mx_site *site, unsigned id, uint32_t key);
/* What Open-MX has dropped, and asked to pull again; 0 of native MX. */
struct mx_site_losses {
    uint64_t full;         /* packets: no room for the event */
    uint64_t blocks_again; /* requests to pull that were repeated */
};
struct mx_site_losses mx_site_losses(const struct mx_site *site);
/* The address of the host's NIC. */
uint64_t mx_site_nic_id(const struct mx_site *site);

#endif
