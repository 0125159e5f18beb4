/* The kinds of cable, one line each, in the order in which messages and pictures list them. */
#include "models/ether/ether.h"
#include "models/pcie/link/port.h"
#include "models/rdma/ib_link.h"
#include "models/world/registry.h"

const struct cable_kind *const cable_registry[] = {
    &pcie_cable,
    &ether_cable,
    &ib_cable,
    NULL,
};
