#include "tests/support/rdma_rig.h"

static struct rdma_rig *rr_running; /* a TLP's event has no way back */

/* ---- The host -------------------------------------------------------------------------------- */

static bool rr_is_memory(uint64_t address, uint64_t bytes)
{
    return address < RR_MEMORY_BYTES && bytes <= RR_MEMORY_BYTES - address;
}

static void rr_complete(struct sim *sim, struct sim_event *event)
{
    struct rdma_rig *rig = rr_running;
    struct tlp *tlp = SIM_CONTAINER(event, struct tlp, event);
    struct pcie_port *port = &rig->port[tlp->ingress];
    unsigned offset = 0;
    if (!rr_is_memory(tlp->address, tlp->length_bytes)) {
        rig->n_unsupported++;
        pcie_port_send(port, tlp_completion(rig->pcie, tlp, 0, TLP_UR), sim_now(sim));
        offset = tlp->length_bytes;
    }
    while (offset < tlp->length_bytes) {
        struct tlp *piece = tlp_completion(rig->pcie, tlp, 0, TLP_SC);
        const uint64_t address = tlp->address + offset;
        const unsigned n = SIM_MIN(tlp->length_bytes - offset, (unsigned)(256 - address % 256));
        piece->address = address;
        piece->byte_count = (uint16_t)(tlp->length_bytes - offset);
        piece->length_bytes = (uint16_t)n;
        tlp_payload_new(rig->pcie, piece);
        memcpy(piece->payload, rig->memory + address, n);
        pcie_port_send(port, piece, sim_now(sim));
        offset += n;
    }
    tlp_free(rig->pcie, tlp);
}

static void rr_receive(struct model *model, uint32_t port, struct tlp *tlp)
{
    struct rdma_rig *rig = model->state;
    pcie_port_release(&rig->port[port], tlp_class_of(tlp), tlp_data_credits(tlp),
                      sim_now(rig->sim));
    if (tlp->type == TLP_MRD) {
        tlp->ingress = (uint16_t)port;
        sim_event_init(&tlp->event, rr_complete);
        sim_schedule_in(rig->sim, &tlp->event, RR_DELAY_PS);
        return;
    }
    if (tlp->type == TLP_MWR && tlp->address >= RR_MSI_BASE && tlp->address < RR_MSI_BASE + 4096) {
        rig->n_irqs++;
    } else if (tlp->type == TLP_MWR && rr_is_memory(tlp->address, tlp->length_bytes)) {
        memcpy(rig->memory + tlp->address, tlp->payload, tlp->length_bytes);
        rig->n_writes++;
        rig->last_write_ps = sim_now(rig->sim);
    } else if (tlp->type == TLP_MWR) {
        rig->n_unsupported++;
    } else {
        rig->answered = true;
        rig->answer = UINT64_MAX;
        if (tlp->type == TLP_CPLD)
            memcpy(&rig->answer, tlp->payload, SIM_MIN(tlp->length_bytes, 8));
    }
    tlp_free(rig->pcie, tlp);
}

static const struct model_ops rr_host_ops = { .type = "test.host", .receive = rr_receive };

void rr_run(struct rdma_rig *rig, sim_time ps)
{
    sim_run(rig->sim, sim_now(rig->sim) + ps, NULL);
    if (sim_error(rig->sim) != NULL)
        fail_msg("%s", sim_error(rig->sim));
}

/* ---- Access ---------------------------------------------------------------------------------- */

void rr_write(struct rdma_rig *rig, unsigned a, uint64_t offset, const void *from, unsigned bytes)
{
    struct tlp *tlp = tlp_new(rig->pcie, TLP_MWR);
    tlp->address = RR_BAR + a * RR_BAR_STRIDE + offset;
    tlp->length_bytes = (uint16_t)bytes;
    tlp_payload_new(rig->pcie, tlp);
    memcpy(tlp->payload, from, bytes);
    pcie_port_send(&rig->port[a], tlp, sim_now(rig->sim));
}

void rr_write32(struct rdma_rig *rig, unsigned a, uint64_t offset, uint32_t value)
{
    rr_write(rig, a, offset, &value, sizeof(value));
}

static uint32_t rr_ask(struct rdma_rig *rig, unsigned a, struct tlp *tlp)
{
    rig->answered = false;
    tlp->requester_id = 0xff00;
    pcie_port_send(&rig->port[a], tlp, sim_now(rig->sim));
    for (unsigned i = 0; i < 100 && !rig->answered; i++)
        rr_run(rig, 100 * SIM_PS_PER_NS);
    return rig->answered ? (uint32_t)rig->answer : UINT32_MAX;
}

uint32_t rr_read32(struct rdma_rig *rig, unsigned a, uint64_t offset)
{
    struct tlp *tlp = tlp_new(rig->pcie, TLP_MRD);
    tlp->address = RR_BAR + a * RR_BAR_STRIDE + offset;
    tlp->length_bytes = 4;
    return rr_ask(rig, a, tlp);
}

uint32_t rr_config(struct rdma_rig *rig, unsigned a, bool write, unsigned offset, uint32_t value)
{
    struct tlp *tlp = tlp_new(rig->pcie, write ? TLP_CFG_WR0 : TLP_CFG_RD0);
    tlp->address = offset;
    tlp->length_bytes = 4;
    tlp->completer_id = pcie_id(1 + a, 0, 0);
    if (write) {
        tlp_payload_new(rig->pcie, tlp);
        memcpy(tlp->payload, &value, 4);
    }
    return rr_ask(rig, a, tlp);
}

static unsigned rr_capability(struct rdma_rig *rig, unsigned a, unsigned id)
{
    unsigned at = rr_config(rig, a, false, PCI_CAP_POINTER, 0) & 0xff;
    while (at != 0) {
        const uint32_t head = rr_config(rig, a, false, at, 0);
        if ((head & 0xff) == id)
            return at;
        at = head >> 8 & 0xff;
    }
    fail_msg("no capability %u", id);
    return 0;
}

void rr_enable(struct rdma_rig *rig, unsigned a)
{
    const uint64_t bar = RR_BAR + a * RR_BAR_STRIDE;
    rr_config(rig, a, true, PCI_BAR0, (uint32_t)bar);
    rr_config(rig, a, true, PCI_BAR0 + 4, (uint32_t)(bar >> 32));
    rr_config(rig, a, true, PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_BUS_MASTER);
    rr_config(rig, a, true, rr_capability(rig, a, PCI_CAP_ID_PCIE) + PCIE_DEVCTL,
              1u << PCIE_DEVCTL_MPS_SHIFT | 2u << PCIE_DEVCTL_MRRS_SHIFT |
                  PCIE_DEVCTL_EXTENDED_TAG);
    rr_config(rig, a, true, rr_capability(rig, a, PCI_CAP_ID_MSIX),
              (uint32_t)PCI_MSIX_CONTROL_ENABLE << 16);
    for (uint64_t v = 0; v < 4; v++) {
        const uint64_t entry[2] = { RR_MSI_BASE, v }; /* unmasked */
        rr_write(rig, a, RDMA_MSIX_TABLE + 16 * v, entry, sizeof(entry));
    }
    rr_write32(rig, a, RDMA_REG_LID, a + 1);
    rr_run(rig, SIM_PS_PER_US);
}

void rr_reset(struct rdma_rig *rig, unsigned a)
{
    rr_config(rig, a, true, rr_capability(rig, a, PCI_CAP_ID_PCIE) + PCIE_DEVCTL,
              1u << PCIE_DEVCTL_MPS_SHIFT | PCIE_DEVCTL_FLR);
}

/* ---- Memory, commands ------------------------------------------------------------------------ */

uint64_t rr_alloc(struct rdma_rig *rig, uint64_t bytes)
{
    const uint64_t at = rig->next_free;
    rig->next_free += (bytes + 4095) & ~UINT64_C(4095);
    assert_true(rig->next_free <= RR_MEMORY_BYTES);
    return at;
}

struct rdma_command rr_command(struct rdma_rig *rig, unsigned a, struct rdma_command command)
{
    command.status = RDMA_COMMAND_PENDING;
    memcpy(rig->memory + rig->command[a], &command, sizeof(command));
    rr_write32(rig, a, RDMA_REG_COMMAND_LOW, (uint32_t)rig->command[a]);
    rr_write32(rig, a, RDMA_REG_COMMAND_HIGH, 0);
    for (unsigned i = 0; i < 1000 && command.status == RDMA_COMMAND_PENDING; i++) {
        rr_run(rig, SIM_PS_PER_US);
        memcpy(&command, rig->memory + rig->command[a], sizeof(command));
    }
    return command;
}

struct rdma_command rr_ok(struct rdma_rig *rig, unsigned a, struct rdma_command command)
{
    command = rr_command(rig, a, command);
    if (command.status != RDMA_COMMAND_OK)
        fail_msg("command %u: status %u", command.opcode, command.status);
    return command;
}

/* ---- Queue pairs ----------------------------------------------------------------------------- */

static void rr_make_qp(struct rdma_rig *rig, unsigned a, struct rr_qp *qp)
{
    qp->sq = rr_alloc(rig, UINT64_C(64) << qp->sq_log);
    qp->rq = rr_alloc(rig, UINT64_C(16) << qp->rq_log);
    qp->record = rr_alloc(rig, 64);
    qp->number = rr_ok(rig, a,
                       (struct rdma_command){ .opcode = RDMA_CREATE_QP,
                                              .log_entries = qp->sq_log,
                                              .iova = qp->sq,
                                              .rq_iova = qp->rq,
                                              .record_iova = qp->record,
                                              .pd = qp->pd,
                                              .send_cq = qp->cq,
                                              .receive_cq = qp->cq,
                                              .rq_log = qp->rq_log })
                     .number;
}

static void rr_make(struct rdma_rig *rig, unsigned a, struct rr_qp *qp, uint8_t cq_log)
{
    *qp = (struct rr_qp){ .sq_log = 6, .rq_log = 6, .cq_log = cq_log };
    qp->eq_ring = rr_alloc(rig, 4096);
    qp->cq_ring = rr_alloc(rig, UINT64_C(64) << cq_log);
    qp->cq_record = rr_alloc(rig, 64);
    rr_ok(rig, a,
          (struct rdma_command){ .opcode = RDMA_CREATE_EQ, .log_entries = 8, .iova = qp->eq_ring });
    rr_write32(rig, a, RDMA_DOORBELL_EQ(0), 0);
    qp->cq = rr_ok(rig, a,
                   (struct rdma_command){ .opcode = RDMA_CREATE_CQ,
                                          .log_entries = cq_log,
                                          .iova = qp->cq_ring,
                                          .record_iova = qp->cq_record })
                 .number;
    qp->pd = rr_ok(rig, a, (struct rdma_command){ .opcode = RDMA_CREATE_PD }).number;
    qp->key = rr_ok(rig, a,
                    (struct rdma_command){ .opcode = RDMA_CREATE_MR,
                                           .pd = qp->pd,
                                           .bytes = RR_MEMORY_BYTES,
                                           .key = 7,
                                           .access = 0xf })
                  .key;
    rr_make_qp(rig, a, qp);
}

static void rr_join(struct rdma_rig *rig, const struct rr_qp qp[RR_ADAPTERS])
{
    for (unsigned a = 0; a < RR_ADAPTERS; a++) {
        struct rdma_command command = { .opcode = RDMA_MODIFY_QP,
                                        .number = qp[a].number,
                                        .state = RDMA_QP_INIT,
                                        .access = 0xf,
                                        .mtu = rig->mtu,
                                        .rnr_timer = 1,
                                        .remote_reads = 16,
                                        .destination_qp = qp[1 - a].number,
                                        .receive_psn = 0xfffffe, /* wraps soon */
                                        .send_psn = 0xfffffe,
                                        .lid = (uint16_t)(2 - a),
                                        .timeout = 4,
                                        .retries = 7,
                                        .rnr_retries = 7,
                                        .reads = 16 };
        rr_ok(rig, a, command);
        command.state = RDMA_QP_RTR;
        rr_ok(rig, a, command);
        command.state = RDMA_QP_RTS;
        rr_ok(rig, a, command);
    }
}

void rr_connect(struct rdma_rig *rig, struct rr_qp qp[RR_ADAPTERS], uint8_t cq_log)
{
    for (unsigned a = 0; a < RR_ADAPTERS; a++)
        rr_make(rig, a, &qp[a], cq_log);
    rr_join(rig, qp);
}

void rr_connect_more(struct rdma_rig *rig, const struct rr_qp qp[RR_ADAPTERS],
                     struct rr_qp more[RR_ADAPTERS])
{
    for (unsigned a = 0; a < RR_ADAPTERS; a++) {
        more[a] = qp[a];
        more[a].sq_tail = 0;
        more[a].rq_tail = 0;
        rr_make_qp(rig, a, &more[a]);
    }
    rr_join(rig, more);
}

struct rr_wqe rr_wqe(const struct rr_qp *qp, enum rdma_opcode opcode, uint64_t from, uint32_t bytes,
                     uint64_t to, uint32_t rkey)
{
    struct rr_wqe wqe = { .control = { .opcode = (uint8_t)opcode,
                                       .n_segments = 3,
                                       .index = qp->sq_tail,
                                       .qp = qp->number,
                                       .flags = RDMA_WQE_COMPLETION },
                          .remote = { .va = to, .rkey = rkey },
                          .data = { .bytes = bytes, .lkey = qp->key, .va = from } };
    if (opcode < RDMA_OP_WRITE) { /* no remote segment */
        memcpy(&wqe.remote, &wqe.data, sizeof(wqe.data));
        wqe.control.n_segments = 2;
    }
    return wqe;
}

void rr_post(struct rdma_rig *rig, struct rr_qp *qp, const struct rr_wqe *wqe)
{
    const uint64_t slot = qp->sq_tail++ & ((1u << qp->sq_log) - 1);
    memcpy(rig->memory + qp->sq + slot * 64, wqe, 64);
}

void rr_doorbell(struct rdma_rig *rig, unsigned a, const struct rr_qp *qp)
{
    rr_write32(rig, a, RDMA_DOORBELL_SQ(qp->number), qp->sq_tail);
}

void rr_post_receive(struct rdma_rig *rig, struct rr_qp *qp, uint64_t at, uint32_t bytes)
{
    const struct rdma_wqe_data data = { .bytes = bytes, .lkey = qp->key, .va = at };
    const uint64_t slot = qp->rq_tail++ & ((1u << qp->rq_log) - 1);
    memcpy(rig->memory + qp->rq + slot * 16, &data, sizeof(data));
    memcpy(rig->memory + qp->record, &qp->rq_tail, sizeof(qp->rq_tail));
}

bool rr_poll(struct rdma_rig *rig, struct rr_qp *qp, struct rdma_cqe *cqe)
{
    const uint64_t slot = qp->cq_consumer & ((1u << qp->cq_log) - 1);
    memcpy(cqe, rig->memory + qp->cq_ring + slot * 64, sizeof(*cqe));
    if (cqe->owner != (RDMA_CQE_WRITTEN | (~(qp->cq_consumer >> qp->cq_log) & 1)))
        return false;
    qp->cq_consumer++;
    return true;
}

/* ---- Opening and closing --------------------------------------------------------------------- */

static void rr_plug(struct rdma_rig *rig, unsigned a)
{
    const struct pcie_link_params params = { .latency_ps = RR_LINK_PS,
                                             .ack_tlps = 4,
                                             .fc_update_ratio_pct = 25 };
    rig->port[a] = (struct pcie_port){
        .model = &rig->host,
        .idx = a,
        .max_generation = 3,
        .max_lanes = 16,
        .mps_bytes = 256,
        .advertise = { .header = { 127, 127, 255 }, .data = { 2047, 127, 4095 } },
        .name = "host",
    };
    assert_non_null(pcie_link_new(rig->pcie, "link", &params, &rig->port[a],
                                  &rig->adapter[a]->ports[0], "test", 1, &rig->errors));
}

static void rr_make_adapter(struct rdma_rig *rig, unsigned a, const char *const *settings)
{
    const char *name = a == 0 ? "r0" : "r1";
    config_set(rig->config, a == 0 ? "r0.lanes" : "r1.lanes", "16", "test", &rig->errors);
    for (unsigned i = 0; settings != NULL && settings[i] != NULL; i += 2) {
        char path[80];
        snprintf(path, sizeof(path), "%s.%s", name, settings[i]);
        config_set(rig->config, path, settings[i + 1], "test", &rig->errors);
    }
    rig->adapter[a] = model_new(rig->sim, rig->pcie, &rdma_ops, name, rig->config,
                                config_get(config_root(rig->config), name), &rig->errors);
    for (size_t i = 0; i < rig->errors.n_messages; i++)
        print_message("%s\n", rig->errors.message[i]);
    assert_int_equal(rig->errors.n_messages, 0);
}

void rr_open(struct rdma_rig *rig, double loss_ratio, const char *const *settings)
{
    const struct ib_wire_params wire = { .latency_ps = RR_WIRE_PS, .loss_ratio = loss_ratio };
    struct ib_port *end[RR_ADAPTERS];
    *rig = (struct rdma_rig){ .sim = sim_new(5), .next_free = 1 << 20, .mtu = RDMA_MTU_CODE_MAX };
    rr_running = rig;
    rig->pcie = pcie_context_new(rig->sim);
    rig->memory = calloc(1, RR_MEMORY_BYTES);
    rig->host = (struct model){ .ops = &rr_host_ops,
                                .name = "host",
                                .sim = rig->sim,
                                .pcie = rig->pcie,
                                .state = rig,
                                .ports = rig->port,
                                .n_ports = RR_ADAPTERS };
    rig->config = config_load("/dev/null", ".", &rig->errors);
    for (unsigned a = 0; a < RR_ADAPTERS; a++) {
        rr_make_adapter(rig, a, settings);
        rr_plug(rig, a);
        end[a] = cable_port(&ib_cable, rig->adapter[a], 0);
        end[a]->name = a == 0 ? "r0.i0" : "r1.i0";
        rig->command[a] = rr_alloc(rig, sizeof(struct rdma_command));
    }
    rig->wire = ib_wire_new(rig->sim, "wire", &wire, end[0], end[1], "test", 1, &rig->errors);
    assert_non_null(rig->wire);
    for (unsigned a = 0; a < RR_ADAPTERS; a++) {
        rdma_ops.start(rig->adapter[a]);
        rr_enable(rig, a);
    }
}

void rr_close(struct rdma_rig *rig)
{
    sim_run(rig->sim, SIM_TIME_MAX, NULL);
    assert_null(sim_error(rig->sim));
    assert_true(pcie_context_check_idle(rig->pcie));
    assert_int_equal(sim_pool_live(ib_packet_pool(rig->sim)), 0);
    for (unsigned a = 0; a < RR_ADAPTERS; a++)
        assert_true(ib_port_idle(cable_port(&ib_cable, rig->adapter[a], 0)));
    ib_wire_free(rig->wire);
    for (unsigned a = 0; a < RR_ADAPTERS; a++)
        model_free(rig->adapter[a]);
    pcie_context_free(rig->pcie);
    sim_free(rig->sim);
    config_free(rig->config);
    free(rig->memory);
    sim_error_release(&rig->errors);
}
