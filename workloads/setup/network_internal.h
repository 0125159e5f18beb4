/* What the files of workloads/setup/network share. */
#ifndef WORKLOADS_SETUP_NETWORK_INTERNAL_H
#define WORKLOADS_SETUP_NETWORK_INTERNAL_H

#include "logic/nic/nic_driver.h"
#include "workloads/setup/network.h"

/* Values of network_params.interrupts. */
enum { INTERRUPTS_FIXED, INTERRUPTS_ROUND_ROBIN };

extern const char *const network_interfaces[]; /* by enum network_interface; NULL-terminated */

/* ---- network.c ------------------------------------------------------------------------------- */

bool network_is_myri(const struct model *nic);
/* True: programs use this function alone, not every function that the NIC has. */
bool network_is_one_function(const struct function_name *named);
unsigned network_functions(const struct function_name *named);
/* Function f of the host's, counted over both NICs. */
struct function_name network_function_at(const struct network_host *host, unsigned f);
/* What the settings of `context`, a struct network_host, say of the stack and of the driver. */
void network_set_params(const void *context, struct net_params *net, struct nic_driver_params *nic);

#endif
