/* What endpoints have in common beyond configuration space (config_space.h) and DMA (dma.h). */
#ifndef MODELS_PCIE_ENDPOINT_ENDPOINT_H
#define MODELS_PCIE_ENDPOINT_ENDPOINT_H

#include "models/base/model.h"
#include "models/pcie/config/config_space.h"
#include "models/pcie/link/port.h"

struct pcie_endpoint_port {
    uint32_t generation, lanes;
    uint32_t mps_bytes;     /* Max_Payload_Size it supports; 128 until enumeration */
    uint32_t tx_queue_tlps; /* TLPs that wait for the link, per class */
    /* Of its receive buffers: posted, and non-posted headers. Non-posted data are as many;
     * completions are infinite, as an endpoint's have to be (PCI Express Base 3.1, 2.6.1). */
    struct pcie_credits advertise;
};
/* For init(): n ports alike, one per function that has a link of its own. The model owns them. */
void pcie_endpoint_ports(struct model *model, uint32_t n, const struct pcie_endpoint_port *port);
/* For init(): a mistake that names the model's setting `key`; 0 passes. */
void pcie_endpoint_power_of_two(const struct model *model, const char *key, uint64_t value,
                                struct sim_error_list *errors);

#endif
