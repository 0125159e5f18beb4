/*
 * The machines of a scenario as a network administrator sets them up: kernels, drivers, interfaces
 * (one function of a NIC, the octoNIC's team, a bond), addresses, steering. Group `network`: a
 * group per host.
 */
#ifndef WORKLOADS_SETUP_NETWORK_H
#define WORKLOADS_SETUP_NETWORK_H

#include "logic/net/net.h"
#include "models/os/os.h"
#include "models/world/world.h"
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
    bool arfs, xps, gro, tso, lro, octo_sg;
    uint64_t send_buffer_bytes, receive_buffer_bytes;
    int completion_ring; /* node of the completion rings: core's, device's */
};
extern const struct param_desc network_params_table[];

struct network_host {
    struct network *network;
    unsigned number;  /* of its addresses, from 1 */
    const char *name; /* of its group: "server" */
    struct config_node *group;
    struct network_params params;
    struct host *host; /* NULL: there is a message about it, or about what it refers to */
    struct model *device, *second_device;
    struct lending_host
        *lending; /* the machine of the group `lending` whose kernel it is, or NULL */
    struct kernel *kernel;
    struct net *net;
    struct net_device *dev;                           /* what its packets leave through */
    struct net_device *function[NETWORK_DEVICES_MAX]; /* one per physical function, of both NICs */
    unsigned n_functions;
    uint32_t ip;
    struct nic_driver *driver;
    struct octonic *octo;
    struct bonding *bond;
    bool up;
    const char *interface_names[8]; /* NULL-terminated */
};

struct network {
    struct world *world;
    struct lending *lending; /* or NULL */
    const char *names[NETWORK_HOSTS_MAX + 1];
    bool unknown; /* the group is not what it should be: any name may be meant */
    unsigned n_up;
    struct network_host host[NETWORK_HOSTS_MAX];
    unsigned n_hosts;
};

/* As its kernel sees them: a guest has one socket. */
unsigned network_sockets(const struct network_host *host);
unsigned network_cores_per_socket(const struct network_host *host);

/* Reads and checks the group `network` of the scenario. Never NULL. lending: the group of that
 * name, whose machines are up before network_up() and go down after network_down(); with it there
 * need be no network. NULL: there is none. */
struct network *network_new(struct world *world, struct config *config, struct lending *lending,
                            struct sim_error_list *errors);
/* Boots kernels, loads drivers, configures interfaces; runs the simulation until all is up. False
 * after sim_fail(). */
bool network_up(struct network *network, const volatile int *interrupt);
/* Closes and removes everything, as a shutdown does, so that what is lost would be found; after a
 * failure or an interrupt this is left out. */
void network_down(struct network *network, const volatile int *interrupt);
void network_free(struct network *network);
struct network_host *network_find(struct network *network, const char *name);
const char *const *network_names(const struct network *network); /* NULL-terminated */

/* Interfaces by name ("pf0", "octo0"; "" is the host's default), as far as the settings tell before
 * anything runs; any name where a mistake leaves open which there are. */
bool network_interface_named(const struct network_host *host, const char *name);
const char *const *network_interface_names(const struct network_host *host);
struct net_device *network_interface(struct network_host *host, const char *name);
uint32_t network_interface_ip(const struct network_host *host, const char *name);
/* Since the start: buffers handed to the host's NICs (a TSO buffer counts once), packets that its
 * functions received, fragments that another function than the queue's fetched (IOctoSG), packets
 * dropped by its NICs. */
uint64_t network_buffers_sent(const struct network_host *host);
uint64_t network_packets_received(const struct network_host *host);
uint64_t network_fragments_hinted(const struct network_host *host);
/* Bytes that a function received. */
uint64_t network_function_bytes(const struct network_host *host, unsigned function);
uint64_t network_drops(const struct network_host *host);

#endif
