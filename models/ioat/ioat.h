/* Intel's DMA engine, integrated into a root complex: hw/ioat_regs.h. */
#ifndef MODELS_IOAT_IOAT_H
#define MODELS_IOAT_IOAT_H

#include "models/base/model.h"

extern const struct model_ops ioat_ops; /* "ioat.engine" */

struct pcie_function;
/* The n-th function; NULL: there are fewer. For tests. */
struct pcie_function *ioat_function(struct model *model, unsigned n);

unsigned ioat_functions(const struct model *model);
uint16_t ioat_device_id(const struct model *model, unsigned n); /* of the n-th */
/* Of each. */
unsigned ioat_channels(const struct model *model);
/* It has INTRDELAY: version 3.2. */
bool ioat_delays_interrupts(const struct model *model);

#endif
