#include "models/base/cable.h"

#include <stdarg.h>
#include <stdio.h>
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

bool model_ops_valid(const struct model_ops *ops, const char **why)
{
    const bool pcie_only = ops->announce != NULL || ops->credit != NULL ||
                           ops->link_change != NULL || ops->forwards || ops->names_ports;
    const struct {
        bool broken;
        const char *why;
    } rules[] = {
        { ops->type == NULL || ops->type[0] == '\0', "type is required" },
        { ops->help == NULL, "help is required" },
        { ops->init == NULL, "init() is required" },
        { (ops->params != NULL || ops->stats != NULL) && ops->state_bytes == 0,
          "params and stats need state_bytes" },
        { ops->receive == NULL && pcie_only,
          "announce(), credit(), link_change(), forwards and names_ports need receive()" },
    };

    for (size_t i = 0; i < SIM_N_ELEMENTS(rules); i++) {
        if (rules[i].broken) {
            *why = rules[i].why;
            return false;
        }
    }
    return true;
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
    ops->init(model, errors);
    return model;
}

void model_mistake(const struct model *model, struct sim_error_list *errors, const char *fmt, ...)
{
    const struct config_node *at = model->config;
    va_list args;

    va_start(args, fmt);
    const size_t bytes = (size_t)vsnprintf(NULL, 0, fmt, args) + 1;
    va_end(args);
    char *text = sim_zalloc(1, bytes);
    va_start(args, fmt);
    vsnprintf(text, bytes, fmt, args);
    va_end(args);
    sim_error_add(errors, at != NULL ? config_file(at) : NULL, at != NULL ? config_line(at) : 0,
                  "%s%s", model->name, text);
    free(text);
}

void model_free(struct model *model)
{
    if (model == NULL)
        return;
    if (model->initialised && model->ops->release != NULL)
        model->ops->release(model);
    stats_release(model->ops->stats, model->state);
    free(model->ports);
    for (unsigned i = 0; i < MODEL_PORT_KINDS_MAX; i++)
        free(model->other_ports[i].port);
    free(model->state);
    free(model);
}

void *model_ports_new(struct model *model, const struct cable_kind *kind, uint32_t n)
{
    for (unsigned i = 0; i < MODEL_PORT_KINDS_MAX; i++) {
        struct model_ports *ports = &model->other_ports[i];
        SIM_ASSERT(ports->kind != kind, "%s has ports for %s already", model->name, kind->name);
        if (ports->kind != NULL)
            continue;
        *ports = (struct model_ports){ kind, sim_zalloc(n, kind->port_bytes), n };
        return ports->port;
    }
    SIM_ASSERT(false, "%s has ports of more than %u kinds", model->name, MODEL_PORT_KINDS_MAX);
    return NULL;
}
