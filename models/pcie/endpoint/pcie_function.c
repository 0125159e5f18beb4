/*
 * Models: the front end of a PCIe function towards its port: BARs with registers (as double words)
 *   or memory, unsupported requests answered, configuration requests, MSI-X table, masks and
 *   pending bits, MSI, messages as posted writes, function-level reset, surprise removal.
 * Does not model: pin interrupts, I/O space, expansion ROM, power states, hot plug: what was
 *   removed stays away.
 * Timing: a read of a register, and of what is no BAR, is answered after register_latency;
 *   configuration requests and other unsupported ones at once. The completion of the configuration
 *   write that initiates a function-level reset leaves first, then the function is reset; a device
 *   may take longer, and answers nothing meanwhile.
 * Sources: PCI Local Bus 3.0, 6.8.1 (MSI), 6.8.2 (MSI-X); PCI Express Base 3.1, 2.3.1 (request
 *   handling), 6.1.4, 6.6.2 (function-level reset: the completion of the write that initiated it is
 *   returned before it begins; 100 ms until the function is ready).
 */
#include "models/pcie/endpoint/pcie_function_internal.h"

#include <stdlib.h>
#include <string.h>

#include "hw/pci_regs.h"

#define REGISTER_BYTES_MAX 8u /* of a read: two double words */
#define DMWR_DATA_CREDITS  4u /* a deferrable memory write has a line */

/* A completion that waits for its time. */
struct answer {
    struct pcie_function *function;
    struct tlp *completion;
    struct sim_event event;
};

/* An MSI-X message on its way to the port. */
struct message {
    struct pcie_function *function;
    struct pcie_dma_request request;
    uint32_t data;
};

/* ---- Parameters, ports ----------------------------------------------------------------------- */

void pcie_function_power_of_two(const struct model *model, const char *key, uint64_t value,
                                struct sim_error_list *errors)
{
    if ((value & (value - 1)) == 0)
        return;
    model_mistake(model, errors, ".%s: found %llu, expected a power of two", key,
                  (unsigned long long)value);
}

void pcie_function_ports(struct model *model, uint32_t n, const struct pcie_function_params *params,
                         struct sim_error_list *errors)
{
    struct pcie_credits advertise = params->advertise;
    advertise.data[TLP_NON_POSTED] = SIM_MAX(advertise.header[TLP_NON_POSTED], DMWR_DATA_CREDITS);
    advertise.header[TLP_COMPLETION] = PCIE_CREDITS_INFINITE;
    advertise.data[TLP_COMPLETION] = PCIE_CREDITS_INFINITE;
    pcie_function_power_of_two(model, "mps_bytes", params->mps_bytes, errors);
    model->n_ports = n;
    model->ports = sim_zalloc(n, sizeof(*model->ports));
    for (uint32_t i = 0; i < n; i++)
        model->ports[i] = (struct pcie_port){ .model = model,
                                              .idx = i,
                                              .max_generation = (uint8_t)params->generation,
                                              .max_lanes = (uint8_t)params->lanes,
                                              .mps_bytes = 128,
                                              .mps_bytes_max = params->mps_bytes,
                                              .tx_queue_tlps = params->tx_queue_tlps,
                                              .advertise = advertise,
                                              .name = model->name };
}

/* ---- MSI-X ----------------------------------------------------------------------------------- */

static void mask_vectors(struct pcie_function *function)
{
    memset(function->msix_table, 0, function->msix_table_bytes);
    memset(function->msix_pba, 0, function->msix_pba_bytes);
    for (unsigned i = 0; i < function->desc.n_vectors; i++)
        function->msix_table[PCI_MSIX_ENTRY_BYTES * i + PCI_MSIX_ENTRY_CONTROL] =
            PCI_MSIX_ENTRY_MASKED;
}

static void message_sent(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct message *message = SIM_CONTAINER(request, struct message, request);
    (void)status;
    sim_pool_put(message->function->messages, message);
}

void pcie_function_message(struct pcie_function *function, struct pcie_dma *dma, uint64_t address,
                           uint32_t data)
{
    struct message *message = sim_pool_get(function->messages);
    message->function = function;
    message->data = data;
    message->request = (struct pcie_dma_request){ .iova = { address },
                                                  .bytes = sizeof(message->data),
                                                  .buffer = (uint8_t *)&message->data,
                                                  .done = message_sent };
    pcie_dma_write(dma, &message->request, sim_now(function->model->sim));
}

static void send_message(struct pcie_function *function, uint64_t address, uint32_t data)
{
    function->stats.interrupts++;
    if (function->desc.ops->message != NULL)
        function->desc.ops->message(function, address, data);
    else
        pcie_function_message(function, &function->dma, address, data);
}

bool pcie_function_vector(struct pcie_function *function, unsigned vector, uint64_t *address,
                          uint32_t *data)
{
    if (function->desc.msi)
        return cfg_msi_message(&function->cfg, vector, address, data);
    return cfg_msix_message(&function->cfg, function->msix_table, function->msix_pba, vector,
                            address, data);
}

void pcie_function_interrupt(struct pcie_function *function, unsigned vector)
{
    uint64_t address;
    uint32_t data;
    if (pcie_function_vector(function, vector, &address, &data))
        send_message(function, address, data);
}

void pcie_function_interrupt_clear(struct pcie_function *function, unsigned vector)
{
    if (vector < function->desc.n_vectors)
        function->msix_pba[vector / 8] &= (uint8_t) ~(1u << vector % 8);
}

/* Vectors whose mask was lifted. */
static void take_pending(struct pcie_function *function)
{
    uint64_t address;
    uint32_t data;
    unsigned vector;
    while (function->desc.msi && cfg_msi_take_pending(&function->cfg, &address, &data))
        send_message(function, address, data);
    while (cfg_msix_take_pending(&function->cfg, function->msix_table, function->msix_pba, &vector,
                                 &address, &data))
        send_message(function, address, data);
}

/* ---- Registers ------------------------------------------------------------------------------- */

/* Where the MSI-X table or the pending bits of this double word are; NULL: neither. */
static uint8_t *msix_at(const struct pcie_function *function, const struct pcie_bar *bar,
                        uint64_t offset)
{
    if (bar != &function->desc.bar[function->desc.msix_bar])
        return NULL;
    if (offset - function->desc.msix_table < function->msix_table_bytes)
        return &function->msix_table[offset - function->desc.msix_table];
    if (offset - function->desc.msix_pba < function->msix_pba_bytes)
        return &function->msix_pba[offset - function->desc.msix_pba];
    return NULL;
}

static uint32_t read_word(struct pcie_function *function, const struct pcie_bar *bar,
                          uint64_t offset)
{
    const uint8_t *msix = msix_at(function, bar, offset);
    uint32_t value;
    if (msix == NULL)
        return bar->read(function, offset);
    memcpy(&value, msix, sizeof(value));
    return value;
}

/* The pending bits are read-only. */
static void write_word(struct pcie_function *function, const struct pcie_bar *bar, uint64_t offset,
                       uint32_t value)
{
    uint8_t *msix = msix_at(function, bar, offset);
    if (SIM_LIKELY(msix == NULL)) {
        bar->write(function, offset, value);
    } else if (offset - function->desc.msix_table < function->msix_table_bytes) {
        memcpy(msix, &value, sizeof(value));
        take_pending(function);
    }
}

static void write_bytes(struct pcie_function *function, const struct pcie_bar *bar, uint64_t offset,
                        const struct tlp *request)
{
    for (unsigned at = 0, n; at < request->length_bytes; at += n) {
        const unsigned first = (unsigned)((offset + at) % 4);
        const uint64_t word = offset + at - first;
        n = SIM_MIN(4 - first, request->length_bytes - at);
        uint32_t value = n == 4 ? 0 : read_word(function, bar, word);
        memcpy((uint8_t *)&value + first, request->payload + at, n);
        write_word(function, bar, word, value);
    }
}

struct tlp *pcie_function_registers(struct pcie_function *function, const struct pcie_bar *bar,
                                    uint64_t offset, struct tlp *request)
{
    const unsigned bytes = request->length_bytes;
    if (request->type == TLP_MWR) {
        if (request->poisoned)
            cfg_log_error(&function->cfg, PCI_AER_POISONED);
        else if (bar != NULL && (bar->by_bytes || (offset % 4 == 0 && bytes % 4 == 0)))
            write_bytes(function, bar, offset, request);
        else
            ++*function->unsupported;
        return NULL;
    }
    bool ours = bar != NULL && offset % 4 + bytes <= REGISTER_BYTES_MAX;
    struct tlp *completion = tlp_completion(function->model->pcie, request, function->cfg.id,
                                            ours ? TLP_SC : TLP_UR);
    if (!ours) {
        ++*function->unsupported;
        return completion;
    }
    uint32_t words[2] = { read_word(function, bar, offset & ~UINT64_C(3)), 0 };
    if (offset % 4 + bytes > 4)
        words[1] = read_word(function, bar, (offset & ~UINT64_C(3)) + 4);
    tlp_payload_new(function->model->pcie, completion);
    memcpy(completion->payload, (const uint8_t *)words + offset % 4, bytes);
    return completion;
}

/* ---- Answers --------------------------------------------------------------------------------- */

static void answer_leaves(struct sim *sim, struct sim_event *event)
{
    struct answer *answer = SIM_CONTAINER(event, struct answer, event);
    struct pcie_function *function = answer->function;
    if (function->gone)
        tlp_free(function->model->pcie, answer->completion);
    else
        pcie_port_send(function->port, answer->completion, sim_now(sim));
    sim_pool_put(function->answers, answer);
}

void pcie_function_answer(struct pcie_function *function, struct tlp *completion,
                          sim_time latency_ps)
{
    completion->digest = function->cfg.live.ecrc;
    if (latency_ps == 0) {
        pcie_port_send(function->port, completion, sim_now(function->model->sim));
        return;
    }
    struct answer *answer = sim_pool_get(function->answers);
    answer->function = function;
    answer->completion = completion;
    sim_event_init(&answer->event, answer_leaves);
    sim_schedule_in(function->model->sim, &answer->event, latency_ps);
}

struct tlp *pcie_function_data(struct pcie_function *function, struct tlp *request, unsigned at)
{
    const unsigned mps = cfg_mps_bytes(&function->cfg), left = request->length_bytes - at;
    const uint64_t address = request->address + at;
    struct tlp *completion = tlp_completion(function->model->pcie, request, function->cfg.id,
                                            TLP_SC);
    completion->address = address;
    completion->byte_count = (uint16_t)left;
    completion->length_bytes = (uint16_t)SIM_MIN(left, mps - (unsigned)(address % mps));
    completion->bulk = request->bulk;
    completion->digest = function->cfg.live.ecrc;
    tlp_payload_new(function->model->pcie, completion);
    return completion;
}

/* ---- Configuration, reset -------------------------------------------------------------------- */

struct tlp *pcie_function_config(struct pcie_function *function, struct tlp *request)
{
    struct tlp *completion = cfg_answer(&function->cfg, function->model->pcie, request);
    if (function == function->port->function)
        function->port->mps_bytes = cfg_mps_bytes(&function->cfg);
    if (function->n_vfs != 0)
        pcie_vf_follow(function);
    take_pending(function);
    return completion;
}

void pcie_function_configured(struct pcie_function *function)
{
    pcie_dma_configured(&function->dma);
    if (SIM_LIKELY(!cfg_take_flr(&function->cfg)))
        return;
    function->stats.resets++;
    function->gone = true;
    cfg_reset(&function->cfg);
    mask_vectors(function);
    if (function->desc.ops->reset != NULL)
        function->desc.ops->reset(function);
    pcie_dma_abort(&function->dma);
    function->gone = function->resetting;
    if (function->n_vfs != 0)
        pcie_vf_follow(function); /* they are disabled */
}

void pcie_function_ready(struct pcie_function *function)
{
    const struct pcie_function *pf = function->pf;
    if (!function->resetting)
        return;
    function->resetting = false;
    function->gone = pf != NULL && (pf->gone || function->idx >= pf->cfg.live.n_vfs);
}

/* ---- Removal --------------------------------------------------------------------------------- */

void pcie_function_stop(struct pcie_function *function)
{
    function->gone = true;
    function->resetting = false;
    cfg_set(&function->cfg, PCI_COMMAND, 2, 0);
    if (function->desc.ops->stop != NULL)
        function->desc.ops->stop(function);
    pcie_dma_credit(&function->dma); /* what waits may not go any more, and ends */
}

void pcie_function_remove(struct model *model, uint32_t port)
{
    SIM_ASSERT(port < model->n_ports && model->ports[port].function != NULL,
               "%s has no function at port %u", model->name, port);
    for (struct pcie_function *f = model->ports[port].function; f != NULL; f = f->next) {
        pcie_function_stop(f);
        for (uint32_t v = 0; v < f->n_vfs; v++)
            pcie_function_stop(f->vf[v]);
    }
}

void pcie_function_link_change(struct model *model, uint32_t port)
{
    if (model->ports[port].down)
        pcie_function_remove(model, port);
}

/* ---- TLPs ------------------------------------------------------------------------------------ */

static void refuse(struct pcie_function *function, struct tlp *tlp)
{
    ++*function->unsupported;
    if (tlp_class_of(tlp) == TLP_NON_POSTED)
        pcie_function_answer(
            function, tlp_completion(function->model->pcie, tlp, function->cfg.id, TLP_UR), 0);
}

static void take_memory(struct pcie_function *function, const struct pcie_bar *bar, uint64_t offset,
                        struct tlp *tlp)
{
    struct tlp *completion = pcie_function_registers(function, bar, offset, tlp);
    if (completion != NULL)
        pcie_function_answer(function, completion, function->desc.params->register_ps);
}

static void take_config(struct pcie_function *function, struct tlp *tlp)
{
    if ((tlp->completer_id & 7u) != function->desc.number && function->pf == NULL) {
        refuse(function, tlp);
        return;
    }
    pcie_function_answer(function, pcie_function_config(function, tlp), 0);
    pcie_function_configured(function);
}

/* A request whose data are not to be used: no BAR gets it (PCIe Base 3.1, 2.7.2.2). Configuration
 * writes are the configuration space's to refuse. */
static __attribute__((cold, noinline)) void take_poisoned(struct pcie_function *function,
                                                          struct tlp *tlp)
{
    pcie_function_buffer_free(function, tlp, sim_now(function->model->sim));
    if (!function->gone) {
        cfg_log_error(&function->cfg, PCI_AER_POISONED);
        if (tlp_class_of(tlp) == TLP_NON_POSTED)
            refuse(function, tlp);
    }
    tlp_free(function->model->pcie, tlp);
}

static void receive(struct pcie_function *function, struct tlp *tlp)
{
    struct model *model = function->model;
    if (tlp_class_of(tlp) == TLP_COMPLETION) {
        pcie_dma_receive(&function->dma, tlp);
        return;
    }
    if (SIM_UNLIKELY(tlp->poisoned) && tlp->type != TLP_CFG_WR0) {
        take_poisoned(function, tlp);
        return;
    }
    const bool memory = tlp->type == TLP_MRD || tlp->type == TLP_MWR;
    const bool deferrable = tlp->type == TLP_DMWR;
    const int i = memory || deferrable
                      ? cfg_bar_match(&function->cfg, tlp->address, tlp->length_bytes)
                      : -1;
    const struct pcie_bar *bar = i >= 0 ? &function->desc.bar[i] : NULL;
    const uint64_t offset = i >= 0 ? tlp->address - cfg_bar_base(&function->cfg, (unsigned)i) : 0;
    if (bar != NULL && bar->request != NULL && tlp->length_bytes != 0 && !function->gone &&
        (!deferrable || bar->deferrable)) {
        bar->request(function, offset, tlp);
        return;
    }
    pcie_function_buffer_free(function, tlp, sim_now(model->sim));
    if (function->gone || tlp->type == TLP_MSG) {
        /* nobody hears it */
    } else if (memory) {
        take_memory(function, bar != NULL && bar->request == NULL ? bar : NULL, offset, tlp);
    } else if (tlp->type == TLP_CFG_RD0 || tlp->type == TLP_CFG_WR0) {
        take_config(function, tlp);
    } else {
        refuse(function, tlp);
    }
    tlp_free(model->pcie, tlp);
}

void pcie_function_receive(struct model *model, uint32_t port, struct tlp *tlp)
{
    struct pcie_function *first = model->ports[port].function, *function = first;
    if (SIM_UNLIKELY(first->next != NULL || first->n_vfs != 0))
        function = pcie_vf_target(first, tlp);
    if (SIM_LIKELY(function != NULL)) {
        receive(function, tlp);
        return;
    }
    pcie_function_buffer_free(first, tlp, sim_now(model->sim));
    if (!first->gone)
        refuse(first, tlp);
    tlp_free(model->pcie, tlp);
}

/* Functions share their port's transmitter; a physical function and its virtual ones take turns. */
void pcie_function_credit(struct model *model, uint32_t port)
{
    struct pcie_function *first = model->ports[port].function;
    for (struct pcie_function *f = first; f != NULL; f = f->next) {
        if (SIM_LIKELY(f->n_vfs == 0)) {
            pcie_dma_credit(&f->dma);
            continue;
        }
        const uint32_t n = 1 + f->n_vfs, turn = f->next_credit++ % n;
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t which = (turn + i) % n;
            pcie_dma_credit(which == 0 ? &f->dma : &f->vf[which - 1]->dma);
        }
    }
}

/* ---- Life ------------------------------------------------------------------------------------ */

void pcie_function_power_on(struct pcie_function *function)
{
    const struct pcie_function_desc *desc = &function->desc;
    const struct pcie_function_params *params = desc->params;
    struct cfg_space *cfg = &function->cfg;
    if (function->pf == NULL) {
        cfg_init_endpoint(cfg, &desc->identity);
        cfg->id = desc->number;
        for (unsigned i = 0; i < PCIE_FUNCTION_BARS; i++)
            if (desc->bar[i].bytes != 0)
                cfg_add_bar(cfg, i, desc->bar[i].bytes, desc->bar[i].flags);
    } else {
        cfg_init_vf(cfg, &desc->identity);
    }
    cfg_add_pcie(cfg, CFG_ENDPOINT, params->generation, params->lanes, params->mps_bytes,
                 params->extended_tags);
    if (function->port->integrated)
        cfg_integrate(cfg);
    if (function->pf == NULL)
        cfg_add_ecrc(cfg);
    if (desc->function_reset)
        cfg_add_flr(cfg);
    if (desc->msi)
        cfg_add_msi(cfg, 0);
    if (desc->n_vectors != 0) {
        cfg_add_msix(cfg, desc->n_vectors, desc->msix_bar, desc->msix_table, desc->msix_bar,
                     desc->msix_pba);
        mask_vectors(function);
    }
}

void pcie_function_setup(struct pcie_function *function, struct model *model,
                         const struct pcie_function_desc *desc)
{
    const unsigned n_vectors = desc->n_vectors;
    function->model = model;
    function->port = &model->ports[desc->port];
    function->desc = *desc;
    function->unsupported = &function->stats.unsupported;
    function->answers = sim_pool_shared(model->sim, "pcie answer", sizeof(struct answer));
    function->messages = sim_pool_shared(model->sim, "pcie message", sizeof(struct message));
    function->msix_table_bytes = PCI_MSIX_ENTRY_BYTES * n_vectors;
    function->msix_pba_bytes = (n_vectors + 63) / 64 * 8;
    function->msix_table = sim_zalloc(1, function->msix_table_bytes + function->msix_pba_bytes);
    function->msix_pba = function->msix_table + function->msix_table_bytes;
    pcie_function_power_on(function);
    pcie_dma_init(&function->dma, model, desc->port, &function->cfg, &desc->params->dma);
}

void pcie_function_init(struct pcie_function *function, struct model *model,
                        const struct pcie_function_desc *desc)
{
    struct pcie_function **at = &model->ports[desc->port].function;
    pcie_function_setup(function, model, desc);
    while (*at != NULL)
        at = &(*at)->next;
    *at = function;
}

void pcie_function_release(struct pcie_function *function)
{
    if (function->model == NULL)
        return;
    pcie_dma_release(&function->dma);
    free(function->msix_table);
    free(function->vf);
}

static void integrate(struct pcie_function *function)
{
    cfg_integrate(&function->cfg);
    for (uint32_t v = 0; v < function->n_vfs; v++)
        cfg_integrate(&function->vf[v]->cfg);
}

void pcie_function_start(struct model *model)
{
    for (uint32_t p = 0; p < model->n_ports; p++) {
        const struct pcie_port *port = &model->ports[p];
        for (struct pcie_function *f = port->function; f != NULL; f = f->next) {
            if (port->integrated)
                integrate(f);
            else if (pcie_port_connected(port))
                cfg_set_link(&f->cfg, pcie_port_generation(port), pcie_port_lanes(port));
        }
    }
}
