/*
 * Hosts on a network, set up as their administrators would: kernels, drivers, interfaces (one
 * function of a NIC, the octoNIC's team, a bond), addresses, steering. The group `network` of a
 * scenario has a group per host.
 */
#ifndef WORKLOADS_SETUP_NETWORK_H
#define WORKLOADS_SETUP_NETWORK_H

#include "logic/net/net.h"
#include "models/os/os.h"
#include "models/world/world.h"
#include "workloads/setup/function_name.h"
#include "workloads/setup/lending.h"

#define NETWORK_HOSTS_MAX   8u
#define NETWORK_DEVICES_MAX 8u

enum network_interface {
    NETWORK_PF0,
    NETWORK_PF1,
    NETWORK_PF2,
    NETWORK_PF3,
    NETWORK_OCTO,
    NETWORK_BOND
};

struct network_params {
    const char *host_name, *device_name, *second_device_name;
    int interface; /* enum network_interface */
    uint32_t mtu_bytes;
    uint32_t channels; /* queues per function; 0: one per core */
    bool adaptive_moderation;
    uint32_t rx_us, rx_count; /* moderation that does not adapt itself */
    uint32_t tx_us, tx_count;
    sim_time watchdog_ps; /* 0: the driver's own */
    bool arfs, xps, gro, tso, lro, octo_sg;
    uint64_t send_buffer_bytes, receive_buffer_bytes;
    int interrupts;
    int completion_ring; /* node of the completion rings: core's, device's */
};
extern const struct param_desc network_params_table[];

struct network_host {
    struct network *network;
    unsigned number;  /* of its addresses, from 1 */
    const char *name; /* of its group: "server" */
    struct config_node *group;
    struct network_params params;
    struct host *host; /* NULL: a mistake has been reported */
    struct model *device, *second_device;
    struct function_name named, second_named; /* what `device` and `second_device` say */
    struct lending_host
        *lending; /* this host in the group `lending`, whose kernel it uses; or NULL */
    struct kernel *kernel;
    struct net *net;
    struct net_device *dev;                           /* its packets leave through it */
    struct net_device *function[NETWORK_DEVICES_MAX]; /* one per physical function, of both NICs */
    unsigned n_functions;
    uint32_t ip;
    struct nic_driver *driver;
    struct myri10ge *myri; /* the driver of its Myri-10G adapters; NULL: it has none */
    /* If `device` is a Myri-10G with the firmware of Myrinet Express, which is no network device
     * (dev is NULL, n_functions 0): its driver, and the adapter for mx_open(). NULL otherwise. */
    struct mx_native *native;
    struct mx_board *board;
    struct octonic *octo;
    struct bonding *bond;
    const char *interface_names[8]; /* NULL-terminated */
};

struct network {
    struct world *world;
    struct lending *lending; /* or NULL */
    const char *names[NETWORK_HOSTS_MAX + 1];
    bool unknown;       /* the group has mistakes: which hosts there are is not known */
    unsigned n_waiting; /* threads of this step that have not finished */
    struct network_host host[NETWORK_HOSTS_MAX];
    unsigned n_hosts;
};

/* As programs see them: a guest has one socket. */
unsigned network_sockets(const struct network_host *host);
unsigned network_cores_per_socket(const struct network_host *host);

/* Reads and checks the group `network` of the scenario; adds mistakes to `errors`. Never NULL; the
 * caller owns the result. lending: the group `lending`, whose hosts are up before network_up() and
 * go down after network_down(); NULL: there is none, and the group `network` is required. */
struct network *network_new(struct world *world, struct config *config, struct lending *lending,
                            struct sim_error_list *errors);
/* Boots kernels, loads drivers and configures interfaces; runs the simulation until all are up.
 * False: interrupted, or the run has failed. */
bool network_up(struct network *network, const volatile int *interrupt);
/* Closes and removes everything, as a shutdown does, which finds what was leaked. Not to be called
 * after a failure or an interrupt. */
void network_down(struct network *network, const volatile int *interrupt);
void network_free(struct network *network);
struct network_host *network_find(struct network *network, const char *name);
const char *const *network_names(const struct network *network); /* NULL-terminated */
/* Its hosts and those of the group `lending`, each once; NULL-terminated. Caller free()s. */
const char **network_and_lending_names(const struct network *network);

/* By the settings: the host's adapter has the firmware of Myrinet Express, so it has no
 * interface. */
bool network_is_mx(const struct network_host *host);
/* By the settings: the host's interface takes rules for packets beside IPv4's
 * (net_device_ops.rx_rule). */
bool network_has_rules(const struct network_host *host);
/* Interfaces by name ("pf0", "octo0"; "" is the host's default). network_interface_named() goes by
 * the settings, before anything runs; if mistakes leave open which there are, every name is true.
 */
bool network_interface_named(const struct network_host *host, const char *name);
const char *const *network_interface_names(const struct network_host *host);
struct net_device *network_interface(const struct network_host *host, const char *name);
uint32_t network_interface_ip(const struct network_host *host, const char *name);
/* Counts since the start: buffers handed to the host's NICs (a TSO buffer is one), packets that its
 * functions have received, fragments that another function than the queue's has fetched (IOctoSG).
 */
uint64_t network_buffers_sent(const struct network_host *host);
uint64_t network_packets_received(const struct network_host *host);
uint64_t network_fragments_hinted(const struct network_host *host);
/* Bytes that a function has received; packets that the host's NICs have dropped. */
uint64_t network_function_bytes(const struct network_host *host, unsigned function);
uint64_t network_drops(const struct network_host *host);

#endif
