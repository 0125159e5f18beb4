/* What pcie_function.c and pcie_vf.c share. */
#ifndef MODELS_PCIE_ENDPOINT_PCIE_FUNCTION_INTERNAL_H
#define MODELS_PCIE_ENDPOINT_PCIE_FUNCTION_INTERNAL_H

#include "models/pcie/endpoint/pcie_function.h"

/* The function as after power-on, but not among those of its port. */
void pcie_function_setup(struct pcie_function *function, struct model *model,
                         const struct pcie_function_desc *desc);
/* Its configuration space as after power-on. */
void pcie_function_power_on(struct pcie_function *function);
/* It answers nothing and asks for nothing any more. */
void pcie_function_stop(struct pcie_function *function);

#endif
