/*
 * pcie.ntb: a bridge between a host's tree and the fabric.
 *
 * Models: two apertures cut into windows of equal size, an address table, tables of outgoing and
 *   incoming requesters (ntb_translate.c), registers, doorbells, scratchpads, MSI-X
 *   (ntb_registers.c); a DMA engine (ntb_dma.c); requests, completions and their order as in a
 *   switch (crossbar.c); a cable that can be pulled. Memory requests pass, nothing else does.
 * Does not model: the bridge that real adapters have above the endpoint; a second cable; tables
 *   filled from an EEPROM; error messages; resets.
 * Timing: that of the crossbar; a TLP between host and cable takes latency + translate. Registers
 *   change when the head of a write is there (its last byte follows within nanoseconds); the
 *   interrupt of a doorbell enters the chip behind the write's last byte.
 * Sources: docs/models/ntb.md; docs/sources.md#ntb.
 */
#include "models/pcie/ntb/ntb.h"

#include <stdio.h>
#include <stdlib.h>

#include "sim/engine/zeroed.h"

#define SOURCE CROSSBAR_SOURCE

static const struct param_desc ntb_params[] = {
    CROSSBAR_PARAMS(struct ntb, chip, 110, "first byte in to first byte out, egress idle"),
    PARAM("translate_ns", PARAM_TIME, struct ntb, translate_ps, 0, 0, 100, PROV_ESTIMATE, SOURCE,
          "more than the chip takes in transparent mode"),
    PARAM("lanes", PARAM_U32, struct ntb, lanes, 16, 1, 32, PROV_DATASHEET, SOURCE,
          "width of port 0, in its host's tree"),
    PARAM("cable_lanes", PARAM_U32, struct ntb, cable_lanes, 16, 1, 32, PROV_DATASHEET, SOURCE,
          "width of port 1, the cable"),
    PARAM("bar2_bytes", PARAM_BYTES, struct ntb, aperture_bytes[0], UINT64_C(8) << 30, 1 << 16,
          1.2e12, PROV_ESTIMATE, SOURCE, "first aperture (64-bit, prefetchable)"),
    PARAM("bar2_windows", PARAM_U32, struct ntb, n_windows[0], 512, 1, NTB_WINDOWS_MAX,
          PROV_ESTIMATE, SOURCE, "windows it is divided into: entries of its address table"),
    PARAM("bar4_bytes", PARAM_BYTES, struct ntb, aperture_bytes[1], 0, 0, 1.2e12, PROV_ESTIMATE,
          SOURCE, "second aperture; 0: none"),
    PARAM("bar4_windows", PARAM_U32, struct ntb, n_windows[1], 32, 1, NTB_WINDOWS_MAX,
          PROV_ESTIMATE, SOURCE, "windows it is divided into"),
    PARAM("outgoing_requesters", PARAM_U32, struct ntb, n_outgoing, 32, 1, NTB_OUTGOING_MAX,
          PROV_DATASHEET, SOURCE,
          "devices and CPUs of its host that can reach the fabric at a time"),
    PARAM("incoming_requesters", PARAM_U32, struct ntb, n_incoming, NTB_INCOMING_MAX, 1,
          NTB_INCOMING_MAX, PROV_ESTIMATE, SOURCE,
          "functions and CPUs of other hosts that can reach its host at a time"),
    PARAM("dma_channels", PARAM_U32, struct ntb, engine.channels, 0, 0, NTB_DMA_CHANNELS_MAX,
          PROV_DATASHEET, SOURCE, "channels of its DMA engine; 0: it has none"),
    PARAM("dma_reads_in_flight", PARAM_U32, struct ntb, engine.reads_in_flight, 64, 1, 256,
          PROV_PUBLISHED, SOURCE, "reads of the DMA engine in flight, of all channels"),
    PARAM("dma_request_bytes", PARAM_U32, struct ntb, engine.request_bytes, 64, NTB_DMA_SIZE_MIN,
          NTB_DMA_SIZE_MAX, PROV_ESTIMATE, SOURCE,
          "largest read of the DMA engine after reset; Max_Read_Request_Size bounds it as well"),
    PARAM("dma_port_ns", PARAM_TIME, struct ntb, engine.port_ps, 95, 0, 1000, PROV_ESTIMATE, SOURCE,
          "between the DMA engine and its host's port, each way"),
    PARAM("dma_descriptor_ns", PARAM_TIME, struct ntb, engine.descriptor_ps, 100, 0, 2000,
          PROV_ESTIMATE, SOURCE, "a descriptor is there to its first read leaves the engine"),
    PARAM("dma_completion_timeout_us", PARAM_TIME, struct ntb, engine.dma.completion_timeout_ps,
          50000, 50, 64e6, PROV_DATASHEET, SOURCE,
          "a read of the DMA engine without its data for so long is given up"),
    PARAM("node", PARAM_U32, struct ntb, node, 0, 0, NTB_NODE_MAX, PROV_NONE, "",
          "its number on the fabric; 0: the lowest that is free, in the order of the file"),
    { .type = PARAM_END },
};

#define NTB_STAT(FIELD, HELP) STAT(#FIELD, STAT_COUNTER, struct ntb, stats.FIELD, "1", 0, HELP)

static const struct stat_desc ntb_stats[] = {
    STAT("tlps", STAT_COUNTER, struct ntb, xbar.tlps, "1", 0, "TLPs that passed the chip"),
    NTB_STAT(requests_out, "requests of the host that went to the fabric"),
    NTB_STAT(reads_out, "of these, reads"),
    STAT("read_bytes_out", STAT_COUNTER, struct ntb, stats.read_bytes_out, "bytes", 0,
         "that these ask for"),
    STAT("write_bytes_out", STAT_COUNTER, struct ntb, stats.write_bytes_out, "bytes", 0,
         "that the others carry"),
    NTB_STAT(requests_in, "requests of the fabric that went to the host"),
    NTB_STAT(unmapped, "requests to a window without a valid entry, refused"),
    NTB_STAT(unknown_out, "requests of a requester that is not in the outgoing table, refused"),
    NTB_STAT(unknown_in, "requests of a requester that is not in the incoming table, refused"),
    NTB_STAT(disabled, "requests refused because this direction is not switched on"),
    NTB_STAT(misrouted, "requests of the fabric for another node, refused"),
    NTB_STAT(unsupported, "requests that a bridge has no answer for"),
    NTB_STAT(oversized, "TLPs dropped: more payload than the tree they were going to allows"),
    NTB_STAT(unexpected_completions, "completions that no known requester waits for, dropped"),
    STAT("lost", STAT_COUNTER, struct ntb, xbar.lost, "1", 0,
         "TLPs dropped or refused because the cable was pulled"),
    NTB_STAT(rings, "writes that rang a doorbell"),
    NTB_STAT(interrupts, "MSI-X messages sent"),
    NTB_STAT(multicast_in, "multicast writes that this host received"),
    NTB_STAT(multicast_refused, "multicast writes to a group not subscribed to, or larger"),
    NTB_STAT(dma.descriptors, "descriptors that the DMA engine has finished"),
    NTB_STAT(dma.failed, "descriptors that failed"),
    NTB_STAT(dma.reads, "reads that the DMA engine made of them"),
    NTB_STAT(dma.writes, "reads whose data it wrote"),
    STAT("dma.bytes", STAT_COUNTER, struct ntb, stats.dma.bytes, "bytes", 0, "that it moved"),
    NTB_STAT(dma.interrupts, "MSI-X messages of the DMA engine"),
    NTB_STAT(dma.unsupported, "its requests into registers of the chip, refused"),
    { .kind = STAT_END },
};

/* ---- Registers by TLP ------------------------------------------------------------------------ */

/* A memory request for registers of the bridge itself, which are whole double words; uses the TLP
 * up. */
static void access_registers(struct pcie_function *function, const struct pcie_bar *bar,
                             uint32_t ingress, uint64_t offset, struct tlp *tlp)
{
    struct ntb *ntb = function->model->state;

    ntb->access_ingress = ingress;
    ntb->access_ps = SIM_MAX(tlp->tail_ps, sim_now(function->model->sim));
    const bool whole = (offset | tlp->length_bytes) % 4 == 0;
    struct tlp *cpl = pcie_function_registers(function, whole ? bar : NULL, offset, tlp);
    if (cpl == NULL) {
        crossbar_drop(&ntb->xbar, ingress, tlp);
        return;
    }
    if (ingress == NTB_CABLE)
        cpl->completer_id = (uint16_t)(ntb->node << 8);
    crossbar_answer(&ntb->xbar, ingress, tlp, cpl);
}

/* The registers that a request of the host is for, in BAR 0 of one of the functions; false: it is
 * for neither. */
static bool for_registers(struct ntb *ntb, struct tlp *tlp)
{
    for (struct pcie_function *f = &ntb->function; f != NULL; f = f->next)
        if (cfg_bar_match(&f->cfg, tlp->address, tlp->length_bytes) == 0) {
            access_registers(f, &f->desc.bar[0], NTB_HOST, tlp->address - cfg_bar_base(&f->cfg, 0),
                             tlp);
            return true;
        }
    return false;
}

/* ---- What comes in --------------------------------------------------------------------------- */

static void refuse(struct model *model, uint32_t ingress, struct tlp *tlp)
{
    crossbar_refuse(&((struct ntb *)model->state)->xbar, ingress, tlp);
}

static void request_from_host(struct model *model, struct tlp *tlp)
{
    struct ntb *ntb = model->state;
    int bar = cfg_bar_match(&ntb->function.cfg, tlp->address, tlp->length_bytes);

    if (bar > 0) {
        if (ntb_request_out(ntb, (unsigned)bar / 2 - 1, tlp) == NTB_PASS)
            crossbar_forward(&ntb->xbar, NTB_HOST, NTB_CABLE, tlp);
        else
            refuse(model, NTB_HOST, tlp);
    } else if (!for_registers(ntb, tlp)) {
        ntb->stats.unsupported++;
        refuse(model, NTB_HOST, tlp);
    }
}

static void request_from_fabric(struct model *model, struct tlp *tlp)
{
    struct ntb *ntb = model->state;

    switch (ntb_request_in(ntb, tlp)) {
    case NTB_PASS: crossbar_forward(&ntb->xbar, NTB_CABLE, NTB_HOST, tlp); break;
    case NTB_REGISTERS:
        access_registers(&ntb->function, &ntb_fabric_registers, NTB_CABLE,
                         tlp->address & NTB_FABRIC_ADDRESS_MASK, tlp);
        break;
    case NTB_REFUSE: refuse(model, NTB_CABLE, tlp); break;
    }
}

static bool for_engine(const struct ntb *ntb, const struct tlp *tlp)
{
    return ntb->dma != NULL && tlp->requester_id == ntb_dma_function(ntb->dma)->cfg.id;
}

static void completion(struct model *model, uint32_t ingress, struct tlp *tlp)
{
    struct ntb *ntb = model->state;

    if (ingress == NTB_HOST && for_engine(ntb, tlp)) {
        ntb_dma_completion(ntb->dma, ingress, tlp);
        return;
    }
    bool known = ingress == NTB_HOST ? ntb_completion_out(ntb, tlp) : ntb_completion_in(ntb, tlp);

    if (known && ingress == NTB_CABLE && for_engine(ntb, tlp)) {
        ntb_dma_completion(ntb->dma, ingress, tlp);
        return;
    }
    if (known) {
        crossbar_forward(&ntb->xbar, ingress, ingress == NTB_HOST ? NTB_CABLE : NTB_HOST, tlp);
        return;
    }
    crossbar_drop(&ntb->xbar, ingress, tlp);
}

/* False: it has no such function. */
static bool configure(struct model *model, struct tlp *tlp)
{
    struct ntb *ntb = model->state;
    struct pcie_function *function = pcie_vf_target(&ntb->function, tlp);

    if (function == NULL)
        return false;
    ntb->access_ingress = NTB_HOST;
    ntb->access_ps = sim_now(model->sim);
    struct tlp *cpl = pcie_function_config(function, tlp);
    model->ports[NTB_CABLE].mps_bytes = model->ports[NTB_HOST].mps_bytes;
    crossbar_answer(&ntb->xbar, NTB_HOST, tlp, cpl);
    pcie_function_configured(function);
    return true;
}

static void ntb_receive(struct model *model, uint32_t port, struct tlp *tlp)
{
    struct ntb *ntb = model->state;

    if (SIM_UNLIKELY(ntb->function.gone && port == NTB_HOST)) {
        crossbar_drop(&ntb->xbar, port, tlp);
        return;
    }
    switch ((enum tlp_type)tlp->type) {
    case TLP_CPL:
    case TLP_CPLD: completion(model, port, tlp); return;
    case TLP_MRD:
    case TLP_MWR:
        if (port == NTB_HOST)
            request_from_host(model, tlp);
        else
            request_from_fabric(model, tlp);
        return;
    case TLP_CFG_RD0:
    case TLP_CFG_WR0:
        if (port == NTB_HOST && configure(model, tlp))
            return;
        break;
    default: break;
    }
    ntb->stats.unsupported++;
    refuse(model, port, tlp);
}

/* A refused request was on its way out through `egress`: its answer is translated as one that came
 * in there. */
static bool returned(struct model *model, uint32_t egress, struct tlp *cpl)
{
    struct ntb *ntb = model->state;
    return egress == NTB_CABLE ? ntb_completion_in(ntb, cpl) : ntb_completion_out(ntb, cpl);
}

static void dma_left(struct model *model, unsigned tag, sim_time end_ps)
{
    ntb_dma_left(((struct ntb *)model->state)->dma, tag, end_ps);
}

static void dma_answered(struct model *model, struct tlp *cpl)
{
    ntb_dma_refused(((struct ntb *)model->state)->dma, cpl);
}

static void ntb_link_change(struct model *model, uint32_t port)
{
    struct ntb *ntb = model->state;

    if (model->ports[port].down)
        crossbar_flush(&ntb->xbar, port);
    if (port == NTB_HOST) {
        pcie_function_link_change(model, port);
        return;
    }
    ntb->link_changed = true;
    ntb_interrupt(model, NTB_VECTOR_LINK, NTB_CABLE, sim_now(model->sim));
}

static void ntb_credit(struct model *model, uint32_t port)
{
    crossbar_credit(&((struct ntb *)model->state)->xbar, port);
}

/* ---- Life ------------------------------------------------------------------------------------ */

static bool check_aperture(const struct model *model, unsigned i, struct sim_error_list *errors)
{
    const struct ntb *ntb = model->state;
    uint64_t bytes = ntb->aperture_bytes[i], n = ntb->n_windows[i];
    const unsigned bar = 2 * i + 2;

    if (bytes == 0)
        return true;
    if ((bytes & (bytes - 1)) != 0)
        model_mistake(model, errors, ": bar%u_bytes: expected a power of two", bar);
    else if ((n & (n - 1)) != 0)
        model_mistake(model, errors, ": bar%u_windows: expected a power of two", bar);
    else if (bytes / n < 4096)
        model_mistake(model, errors, ": bar%u_windows: expected windows of 4 KiB at least", bar);
    else
        return true;
    return false;
}

static bool check_engine(const struct model *model, struct sim_error_list *errors)
{
    uint32_t bytes = ((const struct ntb *)model->state)->engine.request_bytes;

    if ((bytes & (bytes - 1)) != 0)
        model_mistake(model, errors, ": dma_request_bytes: expected a power of two");
    return (bytes & (bytes - 1)) == 0;
}

static void init_tables(struct ntb *ntb)
{
    for (unsigned i = 0; i < NTB_N_APERTURES; i++) {
        if (ntb->aperture_bytes[i] == 0)
            ntb->n_windows[i] = 0;
        else
            ntb->window_log2[i] =
                (unsigned)__builtin_ctzll(ntb->aperture_bytes[i] / ntb->n_windows[i]);
        if (ntb->n_windows[i] != 0)
            ntb->lut[i] = sim_zeroed_new(ntb->n_windows[i] * sizeof(*ntb->lut[i]));
    }
}

static void init_engine(struct model *model)
{
    struct ntb *ntb = model->state;
    ntb->xbar.left = dma_left;
    ntb->xbar.answered = dma_answered;
    ntb->dma = ntb_dma_new(model, &ntb->engine, &ntb->stats.dma);
}

static void ntb_init(struct model *model, struct sim_error_list *errors)
{
    struct ntb *ntb = model->state;

    if (!crossbar_check(model, &ntb->chip, ntb->lanes, errors) ||
        !crossbar_check(model, &ntb->chip, ntb->cable_lanes, errors) ||
        !check_aperture(model, 0, errors) || !check_aperture(model, 1, errors) ||
        !check_engine(model, errors))
        return;
    init_tables(ntb);
    model->n_ports = NTB_N_PORTS;
    model->ports = sim_zalloc(NTB_N_PORTS, sizeof(*model->ports));
    snprintf(ntb->name[NTB_HOST], sizeof(ntb->name[0]), "%.40s.host", model->name);
    snprintf(ntb->name[NTB_CABLE], sizeof(ntb->name[0]), "%.40s.cable", model->name);
    crossbar_port_init(model, NTB_HOST, &ntb->chip, ntb->lanes, ntb->name[NTB_HOST]);
    crossbar_port_init(model, NTB_CABLE, &ntb->chip, ntb->cable_lanes, ntb->name[NTB_CABLE]);
    model->ports[NTB_CABLE].fabric = true;
    ntb->pcie = (struct pcie_function_params){ .lanes = ntb->lanes,
                                               .generation = ntb->chip.generation,
                                               .mps_bytes = ntb->chip.mps_bytes_max,
                                               .extended_tags = true,
                                               .dma = ntb->engine.dma };
    ntb_registers_init(model);
    crossbar_init(&ntb->xbar, model, ntb->chip.latency_ps + ntb->translate_ps,
                  ntb->engine.channels != 0);
    ntb->xbar.returned = returned;
    ntb->xbar.port[NTB_HOST].cfg = &ntb->function.cfg;
    if (ntb->engine.channels != 0)
        init_engine(model);
}

static void ntb_release(struct model *model)
{
    struct ntb *ntb = model->state;

    ntb_dma_free(ntb->dma);
    pcie_function_release(&ntb->function);
    crossbar_release(&ntb->xbar);
    for (unsigned i = 0; i < NTB_N_APERTURES; i++)
        sim_zeroed_free(ntb->lut[i], ntb->n_windows[i] * sizeof(*ntb->lut[i]));
}

uint32_t ntb_node(const struct model *model)
{
    return ((const struct ntb *)model->state)->node;
}

uint16_t ntb_id(const struct model *model)
{
    return ((const struct ntb *)model->state)->function.cfg.id;
}

void ntb_set_node(struct model *model, uint32_t node)
{
    ((struct ntb *)model->state)->node = node;
}

const struct model_ops pcie_ntb_ops = {
    .type = "pcie.ntb",
    .help = "non-transparent bridge: an endpoint of its host (port 0), a cable to others (port 1)",
    .state_bytes = sizeof(struct ntb),
    .params = ntb_params,
    .stats = ntb_stats,
    .init = ntb_init,
    .start = pcie_function_start,
    .receive = ntb_receive,
    .credit = ntb_credit,
    .link_change = ntb_link_change,
    .release = ntb_release,
};
