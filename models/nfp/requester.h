/*
 * pcie.requester: an adapter that reads and writes host memory, modelled on the NFP-6000 as
 * pcie-bench uses it. Two ways to the link: a command interface for up to 64 bytes, and a bulk
 * engine with descriptor queues for reads and writes. What it transfers is its driver's business.
 */
#ifndef MODELS_NFP_REQUESTER_H
#define MODELS_NFP_REQUESTER_H

#include "models/pcie/endpoint/pcie_function.h"

#define PCIE_REQUESTER_COMMAND_BYTES_MAX 64u

extern const struct model_ops pcie_requester_ops;

enum pcie_requester_interface { PCIE_REQUESTER_COMMAND, PCIE_REQUESTER_BULK };

struct pcie_requester_op;
/* The operation is the caller's again and may be submitted anew; now is done_ps. */
typedef void pcie_requester_done_fn(struct pcie_requester_op *op, enum pcie_dma_status status);

/* One operation; embedded in what the caller does, not touched by it until done. */
struct pcie_requester_op {
    /* ---- filled by the caller ---------------------------------------------------------------- */
    bool write;
    uint8_t interface; /* enum pcie_requester_interface */
    bool bulk;         /* payload in tag mode */
    struct iova iova;
    uint32_t bytes;  /* 1 .. 64 through the command interface */
    uint8_t *buffer; /* as in struct pcie_dma_request */
    pcie_requester_done_fn *done;
    void *context;
    struct sim_stamp *stamp; /* NULL, or started by the caller; its parts sum to the whole */
    /* ---- private ----------------------------------------------------------------------------- */
    struct model *model;
    struct pcie_requester_op *next;
    struct pcie_dma_request dma;
    struct sim_event event;
    sim_time decoded_ps; /* a bulk write may be read out of local memory */
    uint8_t status;
    bool arrived; /* a read's data is here */
};

void pcie_requester_submit(struct model *requester, struct pcie_requester_op *op);
/* Requester ID, 0 before enumeration. */
uint16_t pcie_requester_id(const struct model *requester);
/* The Max_Read_Request_Size that its driver sets. */
unsigned pcie_requester_mrrs_bytes(const struct model *requester);
struct cfg_space *pcie_requester_config_space(struct model *requester);

#endif
