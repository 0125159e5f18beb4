/*
 * Ways between machines, before anything runs: bridges that cables and cluster switches join. What
 * is joined can be reached, whatever the switches' tables will be; what is not cannot be borrowed.
 */
#include <stdio.h>
#include <stdlib.h>

#include "models/pcie/ntb/ntb.h"
#include "workloads/setup/lending_internal.h"

/* Devices that are joined have the same root: joined[i] is i there, else nearer to it. */
struct ways {
    const struct world *world;
    const struct model **model;
    unsigned *joined;
    unsigned n;
};

static unsigned root_of(const struct ways *ways, unsigned i)
{
    while (ways->joined[i] != i)
        i = ways->joined[i] = ways->joined[ways->joined[i]];
    return i;
}

/* n: it is none of the scenario's. */
static unsigned index_of(const struct ways *ways, const struct model *model)
{
    unsigned i = 0;
    while (i < ways->n && ways->model[i] != model)
        i++;
    return i;
}

static void join(struct ways *ways)
{
    struct world_cable cable;
    for (unsigned c = 0; world_cable_at(ways->world, c, &cable); c++) {
        if (cable.pcie[0] == NULL || !cable.pcie[0]->fabric || !cable.pcie[1]->fabric)
            continue;
        const unsigned a = index_of(ways, cable.pcie[0]->model);
        const unsigned b = index_of(ways, cable.pcie[1]->model);
        if (a < ways->n && b < ways->n)
            ways->joined[root_of(ways, a)] = root_of(ways, b);
    }
}

static bool is_bridge_of(const struct ways *ways, unsigned i, const struct host *host)
{
    return ways->model[i]->ops == &pcie_ntb_ops &&
           world_host_of((struct world *)ways->world, ways->model[i]) == host;
}

static bool reaches(const struct ways *ways, const struct host *from, const struct host *to)
{
    for (unsigned i = 0; i < ways->n; i++)
        for (unsigned k = 0; is_bridge_of(ways, i, from) && k < ways->n; k++)
            if (root_of(ways, i) == root_of(ways, k) && is_bridge_of(ways, k, to))
                return true;
    return false;
}

void lending_check_ways(struct lending *lending, struct sim_error_list *errors)
{
    const char *const *names = world_device_names(lending->world);
    struct ways ways = { .world = lending->world };
    while (names[ways.n] != NULL)
        ways.n++;
    ways.model = sim_zalloc(ways.n + 1, sizeof(struct model *));
    ways.joined = sim_zalloc(ways.n + 1, sizeof(*ways.joined));
    for (unsigned i = 0; i < ways.n; i++) {
        ways.model[i] = world_device(lending->world, names[i]);
        ways.joined[i] = i;
    }
    join(&ways);
    for (unsigned i = 0; i < lending->n_devices; i++) {
        const struct lent_device *device = &lending->device[i];
        char expected[272];
        if (device->borrower == NULL || !device->borrower->bridged || !device->lender->bridged ||
            reaches(&ways, device->borrower->host, device->lender->host))
            continue;
        snprintf(expected, sizeof(expected),
                 "cables, directly or through switches, from port p1 of a pcie.ntb of %.50s to "
                 "that of one of %.50s, which lends %.50s",
                 device->borrower->name, device->lender->name, device->name);
        config_mistake(config_find(device->borrower->group, "borrow"), errors, expected, NULL);
    }
    free(ways.model);
    free(ways.joined);
}
