#include "models/pcie/endpoint/endpoint.h"

#include <stdlib.h>

void pcie_endpoint_ports(struct model *model, uint32_t n, const struct pcie_endpoint_port *port)
{
    struct pcie_credits advertise = port->advertise;
    advertise.data[TLP_NON_POSTED] = advertise.header[TLP_NON_POSTED];
    advertise.header[TLP_COMPLETION] = PCIE_CREDITS_INFINITE;
    advertise.data[TLP_COMPLETION] = PCIE_CREDITS_INFINITE;
    model->n_ports = n;
    model->ports = sim_zalloc(n, sizeof(*model->ports));
    for (uint32_t i = 0; i < n; i++)
        model->ports[i] = (struct pcie_port){ .model = model,
                                              .idx = i,
                                              .max_generation = (uint8_t)port->generation,
                                              .max_lanes = (uint8_t)port->lanes,
                                              .mps_bytes = 128,
                                              .mps_bytes_max = port->mps_bytes,
                                              .tx_queue_tlps = port->tx_queue_tlps,
                                              .advertise = advertise,
                                              .name = model->name };
}

void pcie_endpoint_power_of_two(const struct model *model, const char *key, uint64_t value,
                                struct sim_error_list *errors)
{
    if ((value & (value - 1)) == 0)
        return;
    sim_error_add(errors, model->config != NULL ? config_file(model->config) : NULL,
                  model->config != NULL ? config_line(model->config) : 0,
                  "%s.%s: found %llu, expected a power of two", model->name, key,
                  (unsigned long long)value);
}
