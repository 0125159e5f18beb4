/*
 * Checks before anything runs that each borrower has a path to its lender: cables and cluster
 * switches must join an NTB of the one to an NTB of the other. Whether the switches' routing tables
 * use them is not checked.
 */
#include <stdio.h>
#include <stdlib.h>

#include "models/pcie/ntb/ntb.h"
#include "workloads/setup/lending_internal.h"

/* Disjoint sets of devices that cables join. joined[i] is nearer to the root of its set, or i. */
struct fabrics {
    const struct world *world;
    const struct model **model;
    unsigned *joined;
    unsigned *next_ntb;  /* of the same host; n: no more */
    struct sim_map *idx; /* of models, and of hosts their first NTB */
    unsigned n;
};

static unsigned root_of(const struct fabrics *fabrics, unsigned i)
{
    while (fabrics->joined[i] != i)
        i = fabrics->joined[i] = fabrics->joined[fabrics->joined[i]];
    return i;
}

/* n: not a device of the scenario; for a host, it has no NTB. */
static unsigned index_of(const struct fabrics *fabrics, const void *model_or_host)
{
    size_t i;
    return sim_map_find_address(fabrics->idx, model_or_host, &i) ? (unsigned)i : fabrics->n;
}

static void join(struct fabrics *fabrics)
{
    struct world_cable cable;
    for (unsigned c = 0; world_cable_at(fabrics->world, c, &cable); c++) {
        const struct pcie_port *from = cable.port[0], *to = cable.port[1];
        if (cable.kind != &pcie_cable || !from->fabric || !to->fabric)
            continue;
        const unsigned a = index_of(fabrics, from->model);
        const unsigned b = index_of(fabrics, to->model);
        if (a < fabrics->n && b < fabrics->n)
            fabrics->joined[root_of(fabrics, a)] = root_of(fabrics, b);
    }
}

static void list_ntbs(struct fabrics *fabrics, struct world *world)
{
    for (unsigned i = 0; i < fabrics->n; i++) {
        const struct host *host = fabrics->model[i]->ops == &pcie_ntb_ops
                                      ? world_host_of(world, fabrics->model[i])
                                      : NULL;
        fabrics->next_ntb[i] = fabrics->n;
        if (host == NULL || sim_map_add_address(fabrics->idx, host, i))
            continue;
        const unsigned first = index_of(fabrics, host);
        fabrics->next_ntb[i] = fabrics->next_ntb[first];
        fabrics->next_ntb[first] = i;
    }
}

static bool reaches(const struct fabrics *fabrics, const struct host *from, const struct host *to)
{
    for (unsigned i = index_of(fabrics, from); i < fabrics->n; i = fabrics->next_ntb[i])
        for (unsigned k = index_of(fabrics, to); k < fabrics->n; k = fabrics->next_ntb[k])
            if (root_of(fabrics, i) == root_of(fabrics, k))
                return true;
    return false;
}

void lending_check_paths(struct lending *lending, struct sim_error_list *errors)
{
    const char *const *names = world_device_names(lending->world);
    struct fabrics fabrics = { .world = lending->world };
    while (names[fabrics.n] != NULL)
        fabrics.n++;
    fabrics.model = sim_zalloc(fabrics.n + 1, sizeof(struct model *));
    fabrics.joined = sim_zalloc(fabrics.n + 1, sizeof(*fabrics.joined));
    fabrics.next_ntb = sim_zalloc(fabrics.n + 1, sizeof(*fabrics.next_ntb));
    fabrics.idx = sim_map_new();
    for (unsigned i = 0; i < fabrics.n; i++) {
        fabrics.model[i] = world_device(lending->world, names[i]);
        fabrics.joined[i] = i;
        sim_map_add_address(fabrics.idx, fabrics.model[i], i);
    }
    list_ntbs(&fabrics, lending->world);
    join(&fabrics);
    for (unsigned i = 0; i < lending->n_devices; i++) {
        const struct lent_device *device = &lending->device[i];
        char expected[272];
        if (device->borrower == NULL || !device->borrower->has_ntb || !device->lender->has_ntb ||
            reaches(&fabrics, device->borrower->host, device->lender->host))
            continue;
        snprintf(expected, sizeof(expected),
                 "cables, directly or through switches, from port p1 of a pcie.ntb of %.50s to "
                 "that of one of %.50s, which lends %.50s",
                 device->borrower->name, device->lender->name, device->name);
        config_mistake(config_find(device->borrower->group, "borrow"), errors, expected, NULL);
    }
    sim_map_free(fabrics.idx);
    free(fabrics.model);
    free(fabrics.joined);
    free(fabrics.next_ntb);
}
