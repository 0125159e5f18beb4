/*
 * An NVMe controller on a link to a host of memory that answers reads after a fixed time, and its
 * queues; for the tests of models/nvme/.
 */
#ifndef TESTS_MODELS_NVME_NVME_RIG_H
#define TESTS_MODELS_NVME_NVME_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hw/nvme_regs.h"
#include "hw/pci_regs.h"
#include "models/numa/physmem.h"
#include "models/nvme/nvme.h"
#include "models/pcie/endpoint/pcie_function.h"
#include "models/pcie/link/link.h"

#define MEMORY_BYTES (UINT64_C(256) << 20)
#define BAR          UINT64_C(0x4000000000)
#define CMB          UINT64_C(0x4100000000)
#define MSI          UINT64_C(0xfee00000)
#define LINK_PS      (40 * SIM_PS_PER_NS)
#define DELAY_PS     (300 * SIM_PS_PER_NS)
#define READ_PS      (4200 * SIM_PS_PER_NS)
#define WRITE_PS     (3000 * SIM_PS_PER_NS)
#define ENTRIES      64u
#define DEVCTL_FLR   0x8000u
#define ID           0x100u
#define ID_OF_PORT_1 0x200u

struct queue { /* a pair */
    uint64_t sq, cq;
    uint16_t number, tail, head, phase, entries;
};

struct rig {
    struct sim *sim;
    struct pcie_context *pcie;
    struct sim_error_list errors;
    struct config *config;
    struct physmem *memory;
    struct model host;
    struct pcie_port ports[2];
    unsigned n_ports;
    /* The controller that is spoken to: its port, registers and requester ID. */
    unsigned p;
    uint64_t bar;
    uint16_t id;
    struct model *nvme;
    uint64_t next_free;
    struct queue admin, io;
    bool answered, silent; /* silent: reads are not answered */
    uint64_t answer;
    unsigned n_irqs, last_vector;
    uint64_t n_reads, n_writes, n_stray_writes;
    uint32_t status;   /* of the last command(), with More and Do Not Retry */
    uint32_t cc;       /* besides EN and sizes of entries */
    sim_time write_ps; /* of the last write to memory, interrupts not counted */
};
static struct rig *running; /* a TLP's event has no way back */

/* ---- The host's memory ----------------------------------------------------------------------- */

static inline void complete(struct sim *sim, struct sim_event *event)
{
    struct rig *r = running;
    struct tlp *tlp = SIM_CONTAINER(event, struct tlp, event);
    struct pcie_port *port = &r->ports[tlp->requester_id >> 8 == ID_OF_PORT_1 >> 8];
    if (tlp->address + tlp->length_bytes > MEMORY_BYTES) { /* nobody's */
        pcie_port_send(port, tlp_completion(r->pcie, tlp, 0, TLP_UR), sim_now(sim));
        tlp_free(r->pcie, tlp);
        return;
    }
    for (unsigned at = 0; at < tlp->length_bytes;) {
        struct tlp *piece = tlp_completion(r->pcie, tlp, 0, TLP_SC);
        uint64_t address = tlp->address + at;
        unsigned n = SIM_MIN(tlp->length_bytes - at, (unsigned)(256 - address % 256));
        piece->address = address;
        piece->byte_count = (uint16_t)(tlp->length_bytes - at);
        piece->length_bytes = (uint16_t)n;
        piece->bulk = tlp->bulk;
        tlp_payload_new(r->pcie, piece);
        if (tlp->bulk)
            physmem_read_marks(r->memory, (struct hpa){ address }, piece->payload, n);
        else
            physmem_read(r->memory, (struct hpa){ address }, piece->payload, n);
        pcie_port_send(port, piece, sim_now(sim));
        at += n;
    }
    tlp_free(r->pcie, tlp);
}

static inline void take_write(struct rig *r, const struct tlp *tlp)
{
    if (tlp->address >= MSI && tlp->address < MSI + 4096) {
        r->n_irqs++;
        r->last_vector = tlp->payload[0];
        return;
    }
    if (tlp->address + tlp->length_bytes > MEMORY_BYTES) {
        r->n_stray_writes++;
        return;
    }
    r->n_writes++;
    r->write_ps = sim_now(r->sim);
    if (tlp->bulk)
        physmem_write_marks(r->memory, (struct hpa){ tlp->address }, tlp->payload,
                            tlp->length_bytes);
    else
        physmem_write(r->memory, (struct hpa){ tlp->address }, tlp->payload, tlp->length_bytes);
}

static inline void host_receive(struct model *model, uint32_t port, struct tlp *tlp)
{
    struct rig *r = model->state;
    pcie_port_release(&r->ports[port], tlp_class_of(tlp), tlp_data_credits(tlp), sim_now(r->sim));
    if (tlp->type == TLP_MRD && !r->silent) {
        r->n_reads++;
        sim_event_init(&tlp->event, complete);
        sim_schedule_in(r->sim, &tlp->event, DELAY_PS);
        return;
    }
    if (tlp->type == TLP_MWR) {
        take_write(r, tlp);
    } else if (tlp_class_of(tlp) == TLP_COMPLETION) {
        r->answered = true;
        r->answer = UINT64_MAX;
        if (tlp->type == TLP_CPLD)
            memcpy(&r->answer, tlp->payload, SIM_MIN(tlp->length_bytes, 8));
        if (tlp->type == TLP_CPLD && tlp->length_bytes == 4)
            r->answer &= UINT32_MAX;
    }
    tlp_free(r->pcie, tlp);
}

static const struct model_ops host_ops = { .type = "test.host", .receive = host_receive };

/* ---- Access ---------------------------------------------------------------------------------- */

static inline void run_for(struct rig *r, sim_time ps)
{
    sim_run(r->sim, sim_now(r->sim) + ps, NULL);
    assert_null(sim_error(r->sim));
}

static inline void write_at(struct rig *r, uint64_t address, unsigned bytes, uint64_t value)
{
    struct tlp *tlp = tlp_new(r->pcie, TLP_MWR);
    tlp->address = address;
    tlp->length_bytes = (uint16_t)bytes;
    tlp_payload_new(r->pcie, tlp);
    memcpy(tlp->payload, &value, bytes);
    pcie_port_send(&r->ports[r->p], tlp, sim_now(r->sim));
}

static inline uint64_t ask(struct rig *r, struct tlp *tlp)
{
    tlp->requester_id = 0xff00;
    r->answered = false;
    pcie_port_send(&r->ports[r->p], tlp, sim_now(r->sim));
    for (unsigned i = 0; i < 20 && !r->answered; i++)
        run_for(r, 100 * SIM_PS_PER_NS);
    return r->answered ? r->answer : UINT64_MAX - 1;
}

static inline uint64_t read_at(struct rig *r, uint64_t address, unsigned bytes)
{
    struct tlp *tlp = tlp_new(r->pcie, TLP_MRD);
    tlp->address = address;
    tlp->length_bytes = (uint16_t)bytes;
    return ask(r, tlp);
}

static inline uint32_t config(struct rig *r, bool write, unsigned offset, uint32_t value)
{
    struct tlp *tlp = tlp_new(r->pcie, write ? TLP_CFG_WR0 : TLP_CFG_RD0);
    tlp->address = offset;
    tlp->length_bytes = 4;
    tlp->completer_id = r->id;
    if (write) {
        tlp_payload_new(r->pcie, tlp);
        memcpy(tlp->payload, &value, 4);
    }
    return (uint32_t)ask(r, tlp);
}

static inline unsigned capability(struct rig *r, unsigned id)
{
    unsigned at = config(r, false, 0x34, 0) & 0xff;
    while (at != 0) {
        uint32_t head = config(r, false, at, 0);
        if ((head & 0xff) == id)
            return at;
        at = head >> 8 & 0xff;
    }
    fail_msg("no capability %u", id);
    return 0;
}

static inline uint64_t alloc(struct rig *r, uint64_t bytes)
{
    uint64_t at = r->next_free;
    r->next_free += (bytes + 4095) & ~UINT64_C(4095);
    assert_true(r->next_free <= MEMORY_BYTES);
    return at;
}

static inline uint32_t status(struct rig *r)
{
    return (uint32_t)read_at(r, r->bar + NVME_REG_CSTS, 4);
}

/* ---- Queues ---------------------------------------------------------------------------------- */

static inline struct queue queue_at(uint16_t number, uint64_t sq, uint64_t cq)
{
    return (struct queue){ .sq = sq, .cq = cq, .number = number, .phase = 1, .entries = ENTRIES };
}

/* In memory, or in the controller's own buffer. */
static inline void put(struct rig *r, const struct queue *q, struct nvme_sqe *sqe)
{
    uint64_t at = q->sq + (uint64_t)q->tail * sizeof(*sqe);
    sqe->cid = q->tail;
    if (at < MEMORY_BYTES) {
        physmem_write(r->memory, (struct hpa){ at }, sqe, sizeof(*sqe));
        return;
    }
    struct tlp *tlp = tlp_new(r->pcie, TLP_MWR);
    tlp->address = at;
    tlp->length_bytes = sizeof(*sqe);
    tlp_payload_new(r->pcie, tlp);
    memcpy(tlp->payload, sqe, sizeof(*sqe));
    pcie_port_send(&r->ports[r->p], tlp, sim_now(r->sim));
}

static inline void push(struct rig *r, struct queue *q, struct nvme_sqe sqe)
{
    put(r, q, &sqe);
    q->tail = (uint16_t)((q->tail + 1) % q->entries);
}

static inline void ring(struct rig *r, const struct queue *q)
{
    write_at(r, r->bar + NVME_DOORBELL_SQ(q->number), 4, q->tail);
}

static inline bool poll(struct rig *r, struct queue *q, struct nvme_cqe *cqe)
{
    physmem_read(r->memory, (struct hpa){ q->cq + (uint64_t)q->head * sizeof(*cqe) }, cqe,
                 sizeof(*cqe));
    if ((cqe->status & NVME_CQE_PHASE) != q->phase)
        return false;
    q->head = (uint16_t)((q->head + 1) % q->entries);
    q->phase ^= q->head == 0;
    return true;
}

static inline void free_entries(struct rig *r, const struct queue *q)
{
    write_at(r, r->bar + NVME_DOORBELL_CQ(q->number), 4, q->head);
}

/* One command, to its end: the status. */
static inline unsigned command(struct rig *r, struct queue *q, struct nvme_sqe sqe,
                               uint32_t *result)
{
    struct nvme_cqe cqe;
    uint16_t cid = q->tail;
    push(r, q, sqe);
    ring(r, q);
    for (unsigned i = 0; !poll(r, q, &cqe); i++) {
        assert_true(i < 100000);
        run_for(r, 100 * SIM_PS_PER_NS);
    }
    free_entries(r, q);
    run_for(r, SIM_PS_PER_US);
    assert_int_equal(cqe.cid, cid);
    assert_int_equal(cqe.sq_id, q->number);
    assert_int_equal(cqe.sq_head, q->tail);
    if (result != NULL)
        *result = cqe.result;
    r->status = cqe.status >> 1;
    return NVME_STATUS_CODE(r->status);
}

static inline struct nvme_sqe io_at(bool write, uint64_t block, uint32_t blocks, uint64_t prp1,
                                    uint64_t prp2)
{
    return (struct nvme_sqe){ .opcode = write ? NVME_WRITE : NVME_READ,
                              .nsid = 1,
                              .prp1 = prp1,
                              .prp2 = prp2,
                              .cdw10 = (uint32_t)block,
                              .cdw11 = (uint32_t)(block >> 32),
                              .cdw12 = blocks - 1 };
}

static inline unsigned create(struct rig *r, const struct queue *q, unsigned vector)
{
    struct nvme_sqe cq = { .opcode = NVME_ADMIN_CREATE_CQ,
                           .prp1 = q->cq,
                           .cdw10 = q->number | (q->entries - 1u) << 16,
                           .cdw11 = NVME_QUEUE_CONTIGUOUS | NVME_CQ_INTERRUPTS | vector << 16 };
    struct nvme_sqe sq = { .opcode = NVME_ADMIN_CREATE_SQ,
                           .prp1 = q->sq,
                           .cdw10 = q->number | (q->entries - 1u) << 16,
                           .cdw11 = NVME_QUEUE_CONTIGUOUS | (uint32_t)q->number << 16 };
    unsigned s = command(r, &r->admin, cq, NULL);
    return s != 0 ? s : command(r, &r->admin, sq, NULL);
}

static inline void begin_enable(struct rig *r)
{
    r->admin = queue_at(0, alloc(r, 4096), alloc(r, 4096));
    write_at(r, r->bar + NVME_REG_AQA, 4, (ENTRIES - 1) << 16 | (ENTRIES - 1));
    write_at(r, r->bar + NVME_REG_ASQ, 8, r->admin.sq);
    write_at(r, r->bar + NVME_REG_ACQ, 8, r->admin.cq);
    write_at(r, r->bar + NVME_REG_CC, 4,
             NVME_CC_IOSQES(6) | NVME_CC_IOCQES(4) | NVME_CC_EN | r->cc);
    assert_int_equal(status(r) & NVME_CSTS_RDY, 0);
}

static inline void enable(struct rig *r)
{
    begin_enable(r);
    run_for(r, 2100 * SIM_PS_PER_US);
    assert_int_equal(status(r), NVME_CSTS_RDY);
}

/* ---- Admin commands with a page of data ------------------------------------------------------ */

static inline unsigned identify(struct rig *r, uint32_t cdw10, uint32_t nsid,
                                uint8_t page[NVME_PAGE_BYTES])
{
    uint64_t at = alloc(r, NVME_PAGE_BYTES);
    struct nvme_sqe sqe = {
        .opcode = NVME_ADMIN_IDENTIFY, .nsid = nsid, .prp1 = at, .cdw10 = cdw10
    };
    unsigned s = command(r, &r->admin, sqe, NULL);
    physmem_read(r->memory, (struct hpa){ at }, page, NVME_PAGE_BYTES);
    return s;
}

/* The first bytes of a log page; flags: NVME_LOG_RETAIN_EVENT or 0. */
static inline unsigned get_log(struct rig *r, uint32_t log, uint32_t flags, void *data,
                               uint32_t bytes)
{
    uint64_t at = alloc(r, bytes + NVME_PAGE_BYTES);
    struct nvme_sqe sqe = { .opcode = NVME_ADMIN_GET_LOG,
                            .nsid = NVME_NSID_ALL,
                            .prp1 = at,
                            .prp2 = at + NVME_PAGE_BYTES,
                            .cdw10 = log | flags | (bytes / 4 - 1) << 16 };
    unsigned s = command(r, &r->admin, sqe, NULL);
    physmem_read(r->memory, (struct hpa){ at }, data, bytes);
    return s;
}

static inline unsigned set_feature(struct rig *r, uint32_t cdw10, uint32_t value, uint32_t nsid)
{
    struct nvme_sqe sqe = {
        .opcode = NVME_ADMIN_SET_FEATURES, .nsid = nsid, .cdw10 = cdw10, .cdw11 = value
    };
    return command(r, &r->admin, sqe, NULL);
}

static inline uint32_t get_feature(struct rig *r, uint32_t feature, enum nvme_feature_select select,
                                   uint32_t cdw11, uint32_t nsid)
{
    uint32_t result = UINT32_MAX;
    struct nvme_sqe sqe = { .opcode = NVME_ADMIN_GET_FEATURES,
                            .nsid = nsid,
                            .cdw10 = feature | (uint32_t)select << NVME_FEATURE_SELECT_SHIFT,
                            .cdw11 = cdw11 };
    assert_int_equal(command(r, &r->admin, sqe, &result), NVME_SC_SUCCESS);
    return result;
}

/* ---- Set-up ---------------------------------------------------------------------------------- */

static inline void set_up_function(struct rig *r)
{
    config(r, true, PCI_BAR0, (uint32_t)r->bar);
    config(r, true, PCI_BAR0 + 4, (uint32_t)(r->bar >> 32));
    config(r, true, PCI_BAR0 + 8, (uint32_t)CMB);
    config(r, true, PCI_BAR0 + 12, (uint32_t)(CMB >> 32));
    config(r, true, PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_BUS_MASTER);
    config(r, true, capability(r, PCI_CAP_ID_PCIE) + PCIE_DEVCTL,
           1u << PCIE_DEVCTL_MPS_SHIFT | 2u << PCIE_DEVCTL_MRRS_SHIFT | PCIE_DEVCTL_EXTENDED_TAG);
    config(r, true, capability(r, PCI_CAP_ID_MSIX), PCI_MSIX_CONTROL_ENABLE << 16);
    for (unsigned v = 0; v < 4; v++) {
        write_at(r, r->bar + NVME_MSIX_TABLE + 16 * v, 8, MSI);
        write_at(r, r->bar + NVME_MSIX_TABLE + 16 * v + 8, 8, v); /* unmasked */
    }
    run_for(r, SIM_PS_PER_US);
}

static inline void wire(struct rig *r, unsigned p)
{
    static const char *const names[2] = { "host.rp0", "host.rp1" };
    r->ports[p] = (struct pcie_port){ .model = &r->host,
                                      .idx = p,
                                      .max_generation = 3,
                                      .max_lanes = 4,
                                      .mps_bytes = 256,
                                      .mps_bytes_max = 256,
                                      .name = names[p] };
    for (unsigned c = 0; c < N_TLP_CLASSES; c++) {
        r->ports[p].advertise.header[c] = PCIE_CREDITS_INFINITE;
        r->ports[p].advertise.data[c] = PCIE_CREDITS_INFINITE;
    }
    struct pcie_link_params link = {
        .latency_ps = LINK_PS, .ack_tlps = 1, .fc_update_ratio_pct = 50, .skp_overhead_ratio = 0
    };
    assert_non_null(pcie_link_new(r->pcie, "link", &link, &r->ports[p], &r->nvme->ports[p], "test",
                                  1, &r->errors));
}

/* settings: "key", "value", ..., NULL. */
static inline void open_rig(struct rig *r, const char *const *settings)
{
    uint64_t bytes = MEMORY_BYTES;
    *r =
        (struct rig){ .sim = sim_new(3), .next_free = 1 << 20, .n_ports = 1, .bar = BAR, .id = ID };
    for (unsigned i = 0; settings != NULL && settings[i] != NULL; i += 2)
        if (strcmp(settings[i], "ports") == 0)
            r->n_ports = 2;
    running = r;
    r->pcie = pcie_context_new(r->sim);
    r->memory = physmem_new(1, &bytes);
    r->host = (struct model){ .ops = &host_ops,
                              .name = "host",
                              .sim = r->sim,
                              .pcie = r->pcie,
                              .state = r,
                              .ports = r->ports,
                              .n_ports = r->n_ports };
    r->config = config_load("/dev/null", ".", &r->errors);
    config_set(r->config, "nvme.capacity_bytes", "1073741824", "test", &r->errors);
    for (unsigned i = 0; settings != NULL && settings[i] != NULL; i += 2) {
        char path[80];
        snprintf(path, sizeof(path), "nvme.%s", settings[i]);
        config_set(r->config, path, settings[i + 1], "test", &r->errors);
    }
    r->nvme = model_new(pcie_context_sim(r->pcie), r->pcie, &nvme_ops, "nvme", r->config,
                        config_get(config_root(r->config), "nvme"), &r->errors);
    for (size_t i = 0; i < r->errors.n_messages; i++)
        print_message("%s\n", r->errors.message[i]);
    assert_int_equal(r->errors.n_messages, 0);
    for (unsigned p = 0; p < r->n_ports; p++)
        wire(r, p);
    nvme_ops.start(r->nvme);
    set_up_function(r);
    enable(r);
    r->io = queue_at(1, alloc(r, 4096), alloc(r, 4096));
    assert_int_equal(create(r, &r->io, 1), NVME_SC_SUCCESS);
    r->n_irqs = 0;
}

static inline void close_rig(struct rig *r)
{
    sim_run(r->sim, SIM_TIME_MAX, NULL);
    assert_null(sim_error(r->sim));
    assert_true(pcie_context_check_idle(r->pcie));
    model_free(r->nvme);
    pcie_context_free(r->pcie);
    sim_free(r->sim);
    physmem_free(r->memory);
    config_free(r->config);
    sim_error_release(&r->errors);
}

/* ---- Content --------------------------------------------------------------------------------- */

/* Bytes that depend on where they are; with tags the first 8 of each line. */
static inline uint8_t byte_at(uint64_t position)
{
    return (uint8_t)(position * 131 + (position >> 8) * 17 + (position >> 16) + 1);
}

static inline void fill(struct rig *r, uint64_t at, uint64_t position, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i++) {
        uint8_t b = byte_at(position + i);
        physmem_write(r->memory, (struct hpa){ at + i }, &b, 1);
    }
}

static inline void expect(struct rig *r, uint64_t at, uint64_t position, uint64_t bytes, bool tags)
{
    for (uint64_t i = 0; i < bytes; i++) {
        uint8_t b;
        physmem_read(r->memory, (struct hpa){ at + i }, &b, 1);
        uint8_t wanted = !tags || (at + i) % 64 < 8 ? byte_at(position + i) : 0;
        if (b != wanted)
            fail_msg("byte %llu of %llu: %#x, expected %#x", (unsigned long long)i,
                     (unsigned long long)bytes, b, wanted);
    }
}

#endif
