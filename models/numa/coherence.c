#include "models/numa/coherence.h"

#define PROTOCOL_NAME(NAME, OPS) NAME,
#define PROTOCOL_OPS(NAME, OPS)  &OPS,

const char *const coherence_protocol_names[] = { COHERENCE_PROTOCOLS(PROTOCOL_NAME) NULL };
const struct coherence_ops *const coherence_protocols[] = { COHERENCE_PROTOCOLS(PROTOCOL_OPS)
                                                                NULL };

bool coherence_ops_valid(const struct coherence_ops *ops, const char **why)
{
    const struct {
        bool present;
        const char *name;
    } required[] = {
        { ops->params_check != NULL, "params_check" },
        { ops->nodes != NULL, "nodes" },
        { ops->init != NULL, "init" },
        { ops->release != NULL, "release" },
        { ops->fetch != NULL, "fetch" },
        { ops->writeback != NULL, "writeback" },
        { ops->store_nt != NULL, "store_nt" },
        { ops->flush != NULL, "flush" },
        { ops->dma_read != NULL, "dma_read" },
        { ops->dma_write != NULL, "dma_write" },
        { ops->io_send != NULL, "io_send" },
        { ops->to_peak != NULL, "to_peak" },
        { ops->idle_load_ps != NULL, "idle_load_ps" },
        { ops->drop != NULL, "drop" },
    };

    for (size_t i = 0; i < SIM_N_ELEMENTS(required); i++) {
        if (!required[i].present) {
            *why = required[i].name;
            return false;
        }
    }
    return true;
}
