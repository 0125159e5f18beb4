/*
 * What the firmware of a fabric does before anybody boots: numbers the bridges and the switches
 * between them, and writes the switches' routes.
 */
#ifndef MODELS_PCIE_NTB_FABRIC_DOMAIN_H
#define MODELS_PCIE_NTB_FABRIC_DOMAIN_H

#include "models/base/model.h"
#include "models/pcie/config/config_space.h"
#include "models/pcie/link/port.h"

/*
 * Of the devices, those that are bridges or cluster switches: who has no number gets the lowest
 * free one, bridges first, in order; each switch learns the port that is on a shortest path to
 * every number it can reach (of several, the one found first, by ascending ports). Links are
 * joined. Mistakes (a number twice, too many nodes) go to errors.
 */
void fabric_domain_setup(struct model *const *device, unsigned n_devices,
                         struct sim_error_list *errors);

#endif
