/* See rdma_objects.h. Of objects, what comes and goes while programs run (connections that break
 * and are made again) is not counted: the adapter refuses it when its time has come. */
#include "workloads/rdma/rdma_objects.h"

#include <stdio.h>
#include <string.h>

enum { N_KINDS = 4 };

struct numbers {
    uint32_t n[N_KINDS];
};

static struct numbers numbers_of(const struct rdma_objects *objects)
{
    return (struct numbers){ { objects->queue_pairs, objects->completion_queues, objects->regions,
                               objects->protection_domains } };
}

/* Returns what it has of the adapter then, with that of programs before it and of its own other
 * devices. */
static uint64_t take(struct program *program, const struct model *adapter, const char *what,
                     uint64_t n)
{
    uint64_t all = n;
    for (unsigned i = 0; i < program->n_shares; i++)
        if (program->share[i].of == adapter && strcmp(program->share[i].what, what) == 0)
            all += program->share[i].n;
    return all + program_take(program, adapter, what, n);
}

void program_take_rdma(struct program *program, const char *key, const char *fewer,
                       const struct model *adapter, const char *name,
                       const struct rdma_objects *first, const struct rdma_objects *most,
                       struct sim_error_list *errors)
{
    static const struct {
        const char *what, *setting;
    } kinds[N_KINDS] = {
        { "queue pairs", "queue_pairs, less those of management" },
        { "completion queues", "completion_queues" },
        { "memory regions", "keys, less one" },
        { "protection domains", "protection_domains" },
    };
    const struct rdma_objects max = rdma_objects_max(adapter);
    const struct numbers begin = numbers_of(first), peak = numbers_of(most),
                         have = numbers_of(&max);
    bool told = false;
    for (unsigned i = 0; i < N_KINDS; i++) {
        uint64_t n = begin.n[i];
        if (n != 0)
            n = take(program, adapter, kinds[i].what, n);
        n = SIM_MAX(n, (uint64_t)peak.n[i]);
        if (n <= have.n[i] || told)
            continue;
        char expected[288];
        snprintf(expected, sizeof(expected),
                 "%san adapter with %llu %s for the programs that use it; %.60s has %u (its %s)",
                 fewer, (unsigned long long)n, kinds[i].what, name, have.n[i], kinds[i].setting);
        program_mistake(program, key, errors, expected, NULL);
        told = true;
    }
}

uint16_t rdma_lid(struct world *world, const char *adapter)
{
    struct function_name f;
    uint16_t lid = 0;
    if (!function_find(world, adapter, &f))
        return 0;
    for (const char *const *name = world_device_names(world); *name != NULL; name++) {
        const struct model *model = world_device(world, *name);
        if (model != NULL && model->ops == &rdma_ops)
            lid++;
        if (model == f.model)
            return lid;
    }
    return 0;
}
