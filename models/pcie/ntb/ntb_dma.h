/*
 * The DMA engine of a bridge chip, function 1 of the bridge's device (data sheet: ntb_regs.h). Part
 * of pcie.ntb, which embeds nothing of it: a bridge without channels has no engine.
 */
#ifndef MODELS_PCIE_NTB_NTB_DMA_H
#define MODELS_PCIE_NTB_NTB_DMA_H

#include "models/pcie/endpoint/pcie_function.h"

struct ntb_dma;

struct ntb_dma_params {
    uint32_t channels;        /* 0: no engine */
    uint32_t reads_in_flight; /* of all channels: places in its buffer */
    uint32_t request_bytes;   /* largest read after reset; software may change it */
    sim_time port_ps;         /* between it and the host's port, each way */
    sim_time descriptor_ps;
    struct pcie_dma_params dma;
};

struct ntb_dma_stats {
    uint64_t descriptors, failed, bytes, reads, writes, interrupts;
    uint64_t unsupported; /* requests of the engine into the bridge's registers, or to its own */
};

/* model: the bridge, whose state, crossbar and own function are set up. Counts into *stats, which
 * stays the caller's. */
struct ntb_dma *ntb_dma_new(struct model *model, const struct ntb_dma_params *params,
                            struct ntb_dma_stats *stats);
void ntb_dma_free(struct ntb_dma *dma); /* NULL: nothing */
struct pcie_function *ntb_dma_function(struct ntb_dma *dma);

/* A completion for its requester ID that the bridge has received by a port (translated): takes it,
 * and releases the port's buffer. */
void ntb_dma_completion(struct ntb_dma *dma, uint32_t port, struct tlp *tlp);
/* The answer to one of its requests that the chip itself has refused; taken. */
void ntb_dma_refused(struct ntb_dma *dma, struct tlp *tlp);
/* The last TLP of a write of its own has left the chip, or will have at end_ps. */
void ntb_dma_left(struct ntb_dma *dma, unsigned tag, sim_time end_ps);

#endif
