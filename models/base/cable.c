#include "models/base/cable.h"

bool cable_kind_valid(const struct cable_kind *kind, const char **why)
{
    const struct {
        bool broken;
        const char *why;
    } rules[] = {
        { kind->name == NULL || kind->type == NULL || kind->help == NULL,
          "name, type and help are required" },
        { kind->suffix < 'a' || kind->suffix > 'z', "suffix must be a lower-case letter" },
        { (kind->port == NULL) == (kind->port_bytes == 0),
          "either port() or port_bytes is required" },
        { kind->params == NULL || kind->params_bytes < kind->latency_offset + sizeof(sim_time),
          "params with a latency are required" },
        { kind->join == NULL, "join() is required" },
        { (kind->stats == NULL) != (kind->port_stats == NULL),
          "stats and port_stats() are required together" },
        { kind->describe == NULL, "describe() is required" },
    };

    for (size_t i = 0; i < SIM_N_ELEMENTS(rules); i++) {
        if (rules[i].broken) {
            *why = rules[i].why;
            return false;
        }
    }
    return true;
}

void *cable_port(const struct cable_kind *kind, const struct model *model, uint32_t idx)
{
    uint32_t n;

    if (kind->port != NULL)
        return kind->port(model, idx);
    char *ports = model_ports(model, kind, &n);
    return idx < n ? ports + idx * kind->port_bytes : NULL;
}
