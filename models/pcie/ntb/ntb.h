/*
 * pcie.ntb: a non-transparent bridge. Port 0 is an endpoint of its host's tree, port 1 the cable
 * to other bridges, directly or through cluster switches. Registers: hw/ntb_regs.h.
 */
#ifndef MODELS_PCIE_NTB_NTB_H
#define MODELS_PCIE_NTB_NTB_H

#include "hw/ntb_regs.h"
#include "models/pcie/ntb/ntb_dma.h"
#include "models/pcie/switch/crossbar.h"

enum { NTB_HOST, NTB_CABLE, NTB_N_PORTS };
#define NTB_INNER       NTB_N_PORTS /* ingress of what the DMA engine sends */
#define NTB_N_APERTURES 2u          /* BAR 2 and BAR 4 */

struct ntb_stats {
    uint64_t requests_out, requests_in;
    /* Of requests_out, as a protocol analyser in the bridge's slot counts them: bytes that reads
     * ask for and writes carry. */
    uint64_t reads_out, read_bytes_out, write_bytes_out;
    /* Requests refused, or dropped if posted. */
    uint64_t unmapped, unknown_out, unknown_in, disabled, misrouted, unsupported;
    uint64_t oversized; /* payload beyond the Max_Payload_Size of the tree it was going to */
    uint64_t unexpected_completions;
    uint64_t rings, interrupts, multicast_in, multicast_refused;
    struct ntb_dma_stats dma;
};

struct ntb {
    /* Parameters. */
    struct crossbar_params chip;
    uint32_t lanes, cable_lanes;
    uint64_t aperture_bytes[NTB_N_APERTURES];
    uint32_t n_windows[NTB_N_APERTURES];
    uint32_t n_outgoing, n_incoming;
    sim_time translate_ps;
    struct ntb_dma_params engine;
    uint32_t node; /* 0 until the fabric is set up, unless the scenario gives one */
    /* State. */
    struct crossbar xbar;
    struct pcie_function_params pcie;
    struct pcie_function function;
    /* The access to registers under way: by which port, and when its last byte is there. */
    uint32_t access_ingress;
    sim_time access_ps;
    struct ntb_dma *dma; /* NULL: no engine */
    char name[NTB_N_PORTS][64];
    unsigned window_log2[NTB_N_APERTURES];
    uint64_t *lut[NTB_N_APERTURES]; /* n_windows entries each */
    uint32_t outgoing[NTB_OUTGOING_MAX], incoming[NTB_INCOMING_MAX];
    uint8_t outgoing_hint[64], incoming_hint[256]; /* where an entry was found last, by hash */
    uint32_t control, doorbell, doorbell_mask, mc_control;
    uint64_t mc_receive, mc_overlay;
    uint32_t scratchpad[NTB_N_SCRATCHPADS];
    bool link_changed;
    struct ntb_stats stats;
};

extern const struct model_ops pcie_ntb_ops;

/* Its place on the fabric, and its function number in its host's tree (for software that would
 * have read them from registers and from what enumeration found). */
uint32_t ntb_node(const struct model *model);
uint16_t ntb_id(const struct model *model);
/* Numbers it, before time starts (fabric_domain.c). */
void ntb_set_node(struct model *model, uint32_t node);

/* ---- Between ntb*.c -------------------------------------------------------------------------- */

enum ntb_verdict { NTB_PASS, NTB_REFUSE, NTB_REGISTERS };

/* ntb_translate.c: a request from the host into an aperture becomes one on the fabric; one from the
 * fabric becomes one of the host's tree; likewise completions (false: nobody waits for it). Counts
 * what it refuses. */
enum ntb_verdict ntb_request_out(struct ntb *ntb, unsigned aperture, struct tlp *tlp);
enum ntb_verdict ntb_request_in(struct ntb *ntb, struct tlp *tlp);
bool ntb_completion_out(struct ntb *ntb, struct tlp *tlp);
bool ntb_completion_in(struct ntb *ntb, struct tlp *tlp);

/* ntb_registers.c: what the host and the fabric see; fabric: offsets in NTB_FABRIC_REGISTERS. */
void ntb_registers_init(struct model *model);
extern const struct pcie_bar ntb_fabric_registers;
/* Raises an MSI-X vector behind what came in by `ingress` until at_ps. */
void ntb_interrupt(struct model *model, unsigned vector, uint32_t ingress, sim_time at_ps);

#endif
