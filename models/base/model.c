#include "models/base/model.h"

#include <stdlib.h>
#include <string.h>

static void stats_init(const struct stat_desc *table, void *state)
{
    if (table == NULL)
        return;
    for (const struct stat_desc *stat = table; stat->kind != STAT_END; stat++) {
        void *field = (char *)state + stat->offset;
        if (stat->kind == STAT_MEAN)
            stat_mean_init(field);
        else if (stat->kind == STAT_HISTOGRAM)
            stat_histogram_init(field);
    }
}

static void stats_release(const struct stat_desc *table, void *state)
{
    if (table == NULL)
        return;
    for (const struct stat_desc *stat = table; stat->kind != STAT_END; stat++) {
        if (stat->kind == STAT_HISTOGRAM)
            stat_histogram_release((struct stat_histogram *)((char *)state + stat->offset));
    }
}

struct model *model_new(struct sim *sim, struct pcie_context *pcie, const struct model_ops *ops,
                        const char *name, struct config *config, struct config_node *group,
                        struct sim_error_list *errors)
{
    struct model *model = sim_zalloc(1, sizeof(*model));
    model->ops = ops;
    model->name = name;
    model->pcie = pcie;
    model->sim = sim;
    model->state = sim_zalloc(1, ops->state_bytes);
    model->config = group;
    sim_random_init(&model->random, sim_seed(model->sim), name);
    stats_init(ops->stats, model->state);

    /* init() may rely on every parameter being in its range. */
    if (ops->params != NULL &&
        !config_read_params(config, group, name, ops->params, model->state, errors))
        return model;
    model->initialised = true;
    if (ops->init != NULL)
        ops->init(model, errors);
    return model;
}

void model_free(struct model *model)
{
    if (model == NULL)
        return;
    if (model->initialised && model->ops->release != NULL)
        model->ops->release(model);
    stats_release(model->ops->stats, model->state);
    free(model->ports);
    free(model->ether_ports);
    free(model->state);
    free(model);
}
