/*
 * A device with nothing but memory behind BAR 0, for tests of peer to peer: takes writes, answers
 * reads in completions of Max_Payload_Size.
 */
#ifndef TESTS_MODEL_MEMORY_DEVICE_H
#define TESTS_MODEL_MEMORY_DEVICE_H

#include <stdlib.h>
#include <string.h>

#include "models/base/model.h"
#include "models/pcie/config/config_space.h"

#define MEMORY_DEVICE_VENDOR 0x1234u
#define MEMORY_DEVICE_ID     0x1111u
#define MEMORY_DEVICE_BYTES  (UINT64_C(1) << 20)

struct memory_device {
    struct cfg_space cfg;
    struct tlp *head, **tail; /* completions that wait for the port */
    uint64_t n_unsupported;
    uint8_t bytes[MEMORY_DEVICE_BYTES];
};

static void memory_device_init(struct model *model, struct sim_error_list *errors)
{
    static const struct cfg_identity identity = { .vendor_id = MEMORY_DEVICE_VENDOR,
                                                  .device_id = MEMORY_DEVICE_ID,
                                                  .class_code = 0x058000 };
    struct memory_device *d = model->state;
    (void)errors;
    model->ports = calloc(1, sizeof(*model->ports));
    model->n_ports = 1;
    model->ports[0] = (struct pcie_port){
        .model = model,
        .max_generation = 3,
        .max_lanes = 8,
        .mps_bytes = 128,
        .mps_bytes_max = 256,
        .tx_queue_tlps = 4,
        .advertise = { { 32, 32, PCIE_CREDITS_INFINITE }, { 256, 32, PCIE_CREDITS_INFINITE } },
        .name = model->name,
    };
    d->tail = &d->head;
    cfg_init_endpoint(&d->cfg, &identity);
    cfg_add_bar(&d->cfg, 0, MEMORY_DEVICE_BYTES, CFG_BAR_64 | CFG_BAR_PREFETCH);
    cfg_add_pcie(&d->cfg, CFG_ENDPOINT, 3, 8, 256, true);
}

static void memory_device_start(struct model *model)
{
    struct memory_device *d = model->state;
    cfg_set_link(&d->cfg, 3, 8);
}

static void memory_device_credit(struct model *model, uint32_t port)
{
    struct memory_device *d = model->state;
    while (d->head != NULL && pcie_port_ready(&model->ports[port], TLP_COMPLETION)) {
        struct tlp *tlp = d->head;
        d->head = tlp->next;
        if (d->head == NULL)
            d->tail = &d->head;
        tlp->next = NULL;
        pcie_port_send(&model->ports[port], tlp, sim_now(model->sim));
    }
}

static void memory_device_queue(struct memory_device *d, struct tlp *tlp)
{
    tlp->next = NULL;
    *d->tail = tlp;
    d->tail = &tlp->next;
}

static void memory_device_read(struct model *model, struct tlp *tlp)
{
    struct memory_device *d = model->state;
    const uint64_t offset = tlp->address - cfg_bar_base(&d->cfg, 0);
    const unsigned mps = cfg_mps_bytes(&d->cfg);
    if (cfg_bar_match(&d->cfg, tlp->address, tlp->length_bytes) != 0) {
        d->n_unsupported++;
        memory_device_queue(d, tlp_completion(model->pcie, tlp, d->cfg.id, TLP_UR));
        return;
    }
    for (unsigned done = 0; done < tlp->length_bytes;) {
        struct tlp *answer = tlp_completion(model->pcie, tlp, d->cfg.id, TLP_SC);
        unsigned piece = mps - (unsigned)((tlp->address + done) % mps);
        piece = SIM_MIN(piece, (unsigned)tlp->length_bytes - done);
        answer->address = tlp->address + done;
        answer->byte_count = (uint16_t)(tlp->length_bytes - done);
        answer->length_bytes = (uint16_t)piece;
        tlp_payload_new(model->pcie, answer);
        memcpy(answer->payload, d->bytes + offset + done, piece);
        memory_device_queue(d, answer);
        done += piece;
    }
}

static void memory_device_write(struct memory_device *d, const struct tlp *tlp)
{
    if (cfg_bar_match(&d->cfg, tlp->address, tlp->length_bytes) != 0)
        d->n_unsupported++;
    else
        memcpy(d->bytes + (tlp->address - cfg_bar_base(&d->cfg, 0)), tlp->payload,
               tlp->length_bytes);
}

static void memory_device_receive(struct model *model, uint32_t port, struct tlp *tlp)
{
    struct memory_device *d = model->state;
    switch ((enum tlp_type)tlp->type) {
    case TLP_CFG_RD0:
    case TLP_CFG_WR0:
        memory_device_queue(d, cfg_answer(&d->cfg, model->pcie, tlp));
        model->ports[0].mps_bytes = cfg_mps_bytes(&d->cfg);
        break;
    case TLP_MRD: memory_device_read(model, tlp); break;
    case TLP_MWR: memory_device_write(d, tlp); break;
    default: break;
    }
    pcie_port_release(&model->ports[port], tlp_class_of(tlp), tlp_data_credits(tlp),
                      sim_now(model->sim));
    tlp_free(model->pcie, tlp);
    memory_device_credit(model, port);
}

static void memory_device_release(struct model *model)
{
    struct memory_device *d = model->state;
    while (d->head != NULL) {
        struct tlp *tlp = d->head;
        d->head = tlp->next;
        tlp_free(model->pcie, tlp);
    }
}

static const struct model_ops memory_device_ops = {
    .type = "test.memory",
    .help = "memory behind a base address",
    .state_bytes = sizeof(struct memory_device),
    .init = memory_device_init,
    .start = memory_device_start,
    .receive = memory_device_receive,
    .credit = memory_device_credit,
    .release = memory_device_release,
};

#endif
