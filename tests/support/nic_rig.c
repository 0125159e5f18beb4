#include "tests/support/nic_rig.h"

#define NR_MEMORY_BYTES (UINT64_C(256) << 20)
#define NR_BAR_STRIDE   UINT64_C(0x100000)
#define NR_DELAY_PS     (300 * SIM_PS_PER_NS)
#define NR_FRAMES_MAX   20000u
#define NR_IRQS_MAX     20000u
#define NR_MSI_BASE     UINT64_C(0xfee00000)

static struct nr_rig *nr_running; /* a TLP's event has no way back */

/* ---- The host's memory ----------------------------------------------------------------------- */

static void nr_complete(struct sim *sim, struct sim_event *event)
{
    struct nr_rig *rig = nr_running;
    struct tlp *tlp = SIM_CONTAINER(event, struct tlp, event);
    unsigned offset = 0;
    if (rig->refused != 0 && tlp->address == rig->refused) {
        pcie_port_send(&rig->port[tlp->ingress], tlp_completion(rig->pcie, tlp, 0, TLP_UR),
                       sim_now(sim));
        offset = tlp->length_bytes;
    }
    while (offset < tlp->length_bytes) {
        struct tlp *piece = tlp_completion(rig->pcie, tlp, 0, TLP_SC);
        uint64_t address = tlp->address + offset;
        unsigned n = SIM_MIN(tlp->length_bytes - offset, (unsigned)(256 - address % 256));
        piece->address = address;
        piece->byte_count = (uint16_t)(tlp->length_bytes - offset);
        piece->length_bytes = (uint16_t)n;
        piece->bulk = tlp->bulk;
        tlp_payload_new(rig->pcie, piece);
        if (tlp->bulk)
            physmem_read_marks(rig->memory, (struct hpa){ address }, piece->payload, n);
        else
            physmem_read(rig->memory, (struct hpa){ address }, piece->payload, n);
        pcie_port_send(&rig->port[tlp->ingress], piece, sim_now(sim));
        offset += n;
    }
    tlp_free(rig->pcie, tlp);
}

static void nr_interrupt(struct nr_rig *rig, unsigned pf, const struct tlp *tlp)
{
    assert_true(rig->n_irqs < NR_IRQS_MAX);
    assert_int_equal(tlp->length_bytes, 4);
    rig->irq[rig->n_irqs++] = (struct nr_irq){ sim_now(rig->sim), pf, tlp->payload[0] };
}

static void nr_host_receive(struct model *model, uint32_t port, struct tlp *tlp)
{
    struct nr_rig *rig = model->state;
    pcie_port_release(&rig->port[port], tlp_class_of(tlp), tlp_data_credits(tlp),
                      sim_now(rig->sim));
    if (tlp->type == TLP_MRD) {
        rig->n_reads++;
        rig->reads_by_port[port]++;
        tlp->ingress = (uint16_t)port;
        sim_event_init(&tlp->event, nr_complete);
        sim_schedule_in(rig->sim, &tlp->event, rig->delay_ps);
        return;
    }
    if (tlp->type == TLP_MWR && tlp->address >= NR_MSI_BASE && tlp->address < NR_MSI_BASE + 4096) {
        nr_interrupt(rig, port, tlp);
    } else if (tlp->type == TLP_MWR) {
        rig->n_writes++;
        rig->last_write_ps = sim_now(rig->sim);
        if (tlp->bulk)
            physmem_write_marks(rig->memory, (struct hpa){ tlp->address }, tlp->payload,
                                tlp->length_bytes);
        else
            physmem_write(rig->memory, (struct hpa){ tlp->address }, tlp->payload,
                          tlp->length_bytes);
    } else {
        rig->answered = true;
        rig->answer = UINT64_MAX;
        if (tlp->type == TLP_CPLD)
            memcpy(&rig->answer, tlp->payload, SIM_MIN(tlp->length_bytes, 8));
        if (tlp->type == TLP_CPLD && tlp->length_bytes == 4)
            rig->answer &= UINT32_MAX;
    }
    tlp_free(rig->pcie, tlp);
}

static const struct model_ops nr_host_ops = { .type = "test.host", .receive = nr_host_receive };

/* ---- The other end of the wire --------------------------------------------------------------- */

static void nr_wire_receive(struct ether_port *port, struct ether_frame *frame)
{
    struct nr_rig *rig = port->model->state;
    assert_true(rig->n_frames < NR_FRAMES_MAX);
    rig->frame[rig->n_frames++] = (struct nr_frame){ frame->tail_ps, *frame };
    ether_frame_free(port->model, frame);
}

/* ---- Access to the device -------------------------------------------------------------------- */

void nr_mmio_write(struct nr_rig *rig, unsigned pf, uint64_t offset, unsigned bytes, uint64_t value)
{
    struct tlp *tlp = tlp_new(rig->pcie, TLP_MWR);
    tlp->address = NR_BAR + pf * NR_BAR_STRIDE + offset;
    tlp->length_bytes = (uint16_t)bytes;
    tlp_payload_new(rig->pcie, tlp);
    memcpy(tlp->payload, &value, bytes);
    pcie_port_send(&rig->port[pf], tlp, sim_now(rig->sim));
}

uint64_t nr_mmio_read(struct nr_rig *rig, unsigned pf, uint64_t offset, unsigned bytes)
{
    struct tlp *tlp = tlp_new(rig->pcie, TLP_MRD);
    tlp->address = NR_BAR + pf * NR_BAR_STRIDE + offset;
    tlp->length_bytes = (uint16_t)bytes;
    tlp->requester_id = 0xff00;
    rig->answered = false;
    pcie_port_send(&rig->port[pf], tlp, sim_now(rig->sim));
    for (unsigned i = 0; i < 100 && !rig->answered; i++)
        sim_run(rig->sim, sim_now(rig->sim) + 100 * SIM_PS_PER_NS, NULL);
    return rig->answered ? rig->answer : UINT64_MAX;
}

uint32_t nr_config_id(struct nr_rig *rig, unsigned port, uint16_t id, bool write, unsigned offset,
                      uint32_t value)
{
    struct tlp *tlp = tlp_new(rig->pcie, write ? TLP_CFG_WR0 : TLP_CFG_RD0);
    tlp->address = offset;
    tlp->length_bytes = 4;
    tlp->completer_id = id;
    tlp->requester_id = 0xff00;
    if (write) {
        tlp_payload_new(rig->pcie, tlp);
        memcpy(tlp->payload, &value, 4);
    }
    rig->answered = false;
    pcie_port_send(&rig->port[port], tlp, sim_now(rig->sim));
    for (unsigned i = 0; i < 100 && !rig->answered; i++)
        sim_run(rig->sim, sim_now(rig->sim) + 100 * SIM_PS_PER_NS, NULL);
    return rig->answered ? (uint32_t)rig->answer : UINT32_MAX;
}

uint32_t nr_config(struct nr_rig *rig, unsigned pf, bool write, unsigned offset, uint32_t value)
{
    return nr_config_id(rig, pf, pcie_id(1 + pf, 0, 0), write, offset, value);
}

unsigned nr_capability(struct nr_rig *rig, unsigned pf, unsigned id)
{
    unsigned at = nr_config(rig, pf, false, 0x34, 0) & 0xff;
    while (at != 0) {
        uint32_t head = nr_config(rig, pf, false, at, 0);
        if ((head & 0xff) == id)
            return at;
        at = head >> 8 & 0xff;
    }
    fail_msg("no capability %u", id);
    return 0;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

uint64_t nr_alloc(struct nr_rig *rig, uint64_t bytes)
{
    uint64_t at = rig->next_free;
    rig->next_free += (bytes + 4095) & ~UINT64_C(4095);
    assert_true(rig->next_free <= NR_MEMORY_BYTES);
    return at;
}

void nr_put(struct nr_rig *rig, uint64_t at, const void *from, size_t bytes)
{
    physmem_write(rig->memory, (struct hpa){ at }, from, bytes);
}

void nr_get(struct nr_rig *rig, uint64_t at, void *to, size_t bytes)
{
    physmem_read(rig->memory, (struct hpa){ at }, to, bytes);
}

void nr_stamp(struct nr_rig *rig, uint64_t at, uint64_t tag, uint32_t bytes)
{
    uint8_t *buffer = calloc(1, bytes);
    struct payload payload = { .bytes = bytes, .n = 1, .extent = { { tag, bytes, 0 } } };
    payload_scatter(&payload, 0, bytes, buffer, at);
    physmem_write_marks(rig->memory, (struct hpa){ at }, buffer, bytes);
    free(buffer);
}

bool nr_holds(struct nr_rig *rig, uint64_t at, uint64_t tag, uint32_t bytes)
{
    uint8_t *buffer = calloc(1, bytes);
    struct payload payload = { 0 };
    physmem_read_marks(rig->memory, (struct hpa){ at }, buffer, bytes);
    bool ok = payload_gather(&payload, buffer, at, bytes) && payload.n == 1 &&
              payload.extent[0].mark == tag && payload.bytes == bytes;
    free(buffer);
    return ok;
}

/* ---- Commands -------------------------------------------------------------------------------- */

struct nic_command nr_command(struct nr_rig *rig, unsigned pf, struct nic_command command)
{
    command.status = NIC_COMMAND_PENDING;
    nr_put(rig, rig->command[pf], &command, sizeof(command));
    nr_mmio_write(rig, pf, NIC_REG_COMMAND_LOW, 4, (uint32_t)rig->command[pf]);
    nr_mmio_write(rig, pf, NIC_REG_COMMAND_HIGH, 4, rig->command[pf] >> 32);
    for (unsigned i = 0; i < 1000 && command.status == NIC_COMMAND_PENDING; i++) {
        sim_run(rig->sim, sim_now(rig->sim) + 100 * SIM_PS_PER_NS, NULL);
        nr_get(rig, rig->command[pf], &command, sizeof(command));
    }
    return command;
}

void nr_ok(struct nr_rig *rig, unsigned pf, struct nic_command command)
{
    command = nr_command(rig, pf, command);
    if (command.status != NIC_COMMAND_OK)
        fail_msg("command %u: status %u", command.opcode, command.status);
}

/* ---- Queues ---------------------------------------------------------------------------------- */

void nr_eq_new(struct nr_rig *rig, unsigned pf, unsigned number, unsigned vector)
{
    nr_ok(rig, pf,
          (struct nic_command){ .opcode = NIC_CREATE_EQ,
                                .queue = (uint16_t)number,
                                .target = (uint16_t)vector,
                                .log_entries = 8,
                                .iova = nr_alloc(rig, 256 * 64) });
    nr_mmio_write(rig, pf, NIC_DOORBELL_EQ(number), 8, 0);
}

struct nr_cq nr_cq_new(struct nr_rig *rig, unsigned pf, unsigned number, unsigned eq, unsigned log,
                       unsigned us, unsigned count, unsigned mode)
{
    struct nr_cq cq = { .rig = rig, .pf = pf, .number = number, .log = log };
    cq.ring = nr_alloc(rig, UINT64_C(64) << log);
    nr_ok(rig, pf,
          (struct nic_command){ .opcode = NIC_CREATE_CQ,
                                .queue = (uint16_t)number,
                                .target = (uint16_t)eq,
                                .log_entries = (uint8_t)log,
                                .iova = cq.ring,
                                .moderation_us = (uint16_t)us,
                                .moderation_count = (uint16_t)count,
                                .moderation_mode = (uint8_t)mode });
    return cq;
}

bool nr_poll(struct nr_cq *cq, struct nic_cqe *cqe)
{
    uint32_t slot = cq->consumer & ((1u << cq->log) - 1);
    nr_get(cq->rig, cq->ring + UINT64_C(64) * slot, cqe, sizeof(*cqe));
    if ((cqe->op_own >> 4) == 0 || (cqe->op_own & 1) != (~(cq->consumer >> cq->log) & 1))
        return false;
    cq->consumer++;
    return true;
}

void nr_arm(struct nr_cq *cq)
{
    nr_mmio_write(cq->rig, cq->pf, NIC_DOORBELL_CQ(cq->number), 8, cq->consumer & 0xffffff);
}

struct nr_sq nr_sq_new(struct nr_rig *rig, unsigned pf, unsigned number, unsigned cq, unsigned log)
{
    struct nr_sq sq = { .rig = rig, .pf = pf, .number = number, .log = log };
    sq.ring = nr_alloc(rig, UINT64_C(64) << log);
    nr_ok(rig, pf,
          (struct nic_command){ .opcode = NIC_CREATE_SQ,
                                .queue = (uint16_t)number,
                                .target = (uint16_t)cq,
                                .log_entries = (uint8_t)log,
                                .iova = sq.ring });
    return sq;
}

struct nr_rq nr_rq_new_with(struct nr_rig *rig, unsigned pf, unsigned number, unsigned cq,
                            unsigned log, uint8_t flags, uint32_t stride)
{
    struct nr_rq rq = {
        .rig = rig, .pf = pf, .number = number, .log = log, .buffer_bytes = stride, .stride = stride
    };
    rq.ring = nr_alloc(rig, UINT64_C(16) << log);
    rq.record = nr_alloc(rig, 64);
    rq.buffers = nr_alloc(rig, (uint64_t)stride << log);
    nr_ok(rig, pf,
          (struct nic_command){ .opcode = NIC_CREATE_RQ,
                                .queue = (uint16_t)number,
                                .target = (uint16_t)cq,
                                .log_entries = (uint8_t)log,
                                .flags = flags,
                                .iova = rq.ring,
                                .record_iova = rq.record });
    return rq;
}

struct nr_rq nr_rq_new(struct nr_rig *rig, unsigned pf, unsigned number, unsigned cq, unsigned log)
{
    return nr_rq_new_with(rig, pf, number, cq, log, 0, 2048);
}

uint64_t nr_buffer(const struct nr_rq *rq, uint32_t index)
{
    return rq->buffers + (uint64_t)rq->stride * (index & ((1u << rq->log) - 1)) + rq->buffer_offset;
}

void nr_post(struct nr_rq *rq, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct nic_wqe_data wqe = { .bytes = rq->buffer_bytes - rq->buffer_offset,
                                    .iova = nr_buffer(rq, rq->posted) };
        uint32_t slot = rq->posted++ & ((1u << rq->log) - 1);
        nr_put(rq->rig, rq->ring + UINT64_C(16) * slot, &wqe, sizeof(wqe));
    }
    nr_put(rq->rig, rq->record, &rq->posted, sizeof(rq->posted));
}

/* ---- Packets --------------------------------------------------------------------------------- */

void nr_headers(uint8_t *h, const struct nr_flow *flow, uint32_t sequence, uint32_t payload_bytes,
                uint8_t flags)
{
    memset(h, 0, NR_HEADERS);
    for (unsigned i = 0; i < 6; i++) {
        h[i] = (uint8_t)(flow->to_mac >> (40 - 8 * i));
        h[6 + i] = (uint8_t)(flow->from_mac >> (40 - 8 * i));
    }
    ether_put16(h + 12, ETHER_TYPE_IPV4);
    h[14] = 0x45;
    ether_put16(h + 16, (uint16_t)(NR_HEADERS - 14 + payload_bytes));
    ether_put16(h + 18, 1000); /* identification */
    h[22] = 64;
    h[23] = IP_PROTOCOL_TCP;
    ether_put32(h + 26, flow->source_ip);
    ether_put32(h + 30, flow->destination_ip);
    ether_put16(h + 34, flow->source_port);
    ether_put16(h + 36, flow->destination_port);
    ether_put32(h + 38, sequence);
    h[46] = 0x50;
    h[47] = flags;
}

sim_time nr_wire_send(struct nr_rig *rig, const struct nr_flow *flow, uint16_t stream,
                      uint64_t position, uint32_t payload_bytes)
{
    struct ether_frame *frame = ether_frame_new(&rig->peer);
    struct ether_packet packet;
    nr_headers(frame->header, flow, (uint32_t)position, payload_bytes, TCP_FLAG_ACK);
    frame->header_bytes = NR_HEADERS;
    frame->payload.bytes = payload_bytes;
    frame->payload.n = payload_bytes != 0;
    frame->payload.extent[0] = (struct payload_extent){ payload_mark(stream, position),
                                                        payload_bytes, 0 };
    ether_packet_parse(frame->header, NR_HEADERS, &packet);
    ether_ipv4_checksum_set(frame->header, &packet);
    ether_l4_checksum_set(frame, &packet);
    return ether_port_send(&rig->wire_end, frame, sim_now(rig->sim));
}

uint16_t nr_wqe(struct nr_sq *sq, const struct nr_flow *flow, uint32_t sequence, uint8_t tcp_flags,
                const struct nr_piece *piece, unsigned n_pieces, uint16_t segment_bytes,
                uint8_t flags)
{
    uint8_t bytes[NIC_WQE_BLOCK_BYTES * NIC_WQE_BLOCKS_MAX] = { 0 };
    struct nic_wqe_control *control = (void *)bytes;
    struct nic_wqe_ethernet *ethernet = (void *)(bytes + 16);
    unsigned headers = 2 + (NR_HEADERS - 2 + 15) / 16;
    struct nic_wqe_data *data = (void *)(bytes + (size_t)headers * 16);
    uint32_t total = 0;
    for (unsigned i = 0; i < n_pieces; i++) {
        data[i] = (struct nic_wqe_data){ .bytes = piece[i].bytes,
                                         .iova = piece[i].iova,
                                         .function_hint = piece[i].hint };
        total += piece[i].bytes;
    }
    *control = (struct nic_wqe_control){ .opcode = segment_bytes != 0 ? NIC_OP_TSO : NIC_OP_SEND,
                                         .n_segments = (uint8_t)(headers + n_pieces),
                                         .index = sq->producer,
                                         .queue = (uint16_t)sq->number,
                                         .flags = flags };
    ethernet->checksum = NIC_CHECKSUM_L3 | NIC_CHECKSUM_L4;
    ethernet->segment_bytes = segment_bytes;
    ethernet->inline_bytes = NR_HEADERS;
    nr_headers(ethernet->inline_start, flow, sequence, total, tcp_flags);
    unsigned blocks = (headers + n_pieces + 3) / 4;
    uint16_t index = sq->producer;
    for (unsigned i = 0; i < blocks; i++) {
        uint32_t slot = sq->producer++ & ((1u << sq->log) - 1);
        nr_put(sq->rig, sq->ring + UINT64_C(64) * slot, bytes + 64 * (size_t)i, 64);
    }
    return index;
}

void nr_doorbell(struct nr_sq *sq)
{
    nr_mmio_write(sq->rig, sq->pf, NIC_DOORBELL_SQ(sq->number), 8, sq->producer);
}

void nr_run(struct nr_rig *rig)
{
    sim_run(rig->sim, SIM_TIME_MAX, NULL);
    assert_null(sim_error(rig->sim));
}

void nr_run_for(struct nr_rig *rig, sim_time ps)
{
    sim_run(rig->sim, sim_now(rig->sim) + ps, NULL);
    assert_null(sim_error(rig->sim));
}

/* ---- Opening and closing --------------------------------------------------------------------- */

static void nr_plug(struct nr_rig *rig, unsigned pf, unsigned lanes)
{
    struct pcie_link_params params = { .latency_ps = NR_LINK_PS,
                                       .ack_tlps = 4,
                                       .fc_update_ratio_pct = 25 };
    rig->port[pf] = (struct pcie_port){
        .model = &rig->host,
        .idx = pf,
        .max_generation = 3,
        .max_lanes = (uint8_t)lanes,
        .mps_bytes = 256,
        .advertise = { .header = { 127, 127, 255 }, .data = { 2047, 127, 4095 } },
        .name = "host",
    };
    assert_non_null(pcie_link_new(rig->pcie, "link", &params, &rig->port[pf], &rig->nic->ports[pf],
                                  "test", 1, &rig->errors));
}

void nr_enable(struct nr_rig *rig, unsigned pf)
{
    uint64_t bar = NR_BAR + pf * NR_BAR_STRIDE;
    nr_config(rig, pf, true, 0x10, (uint32_t)bar);
    nr_config(rig, pf, true, 0x14, (uint32_t)(bar >> 32));
    nr_config(rig, pf, true, PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_BUS_MASTER);
    unsigned cap = nr_capability(rig, pf, 0x10);
    nr_config(rig, pf, true, cap + PCIE_DEVCTL,
              1u << PCIE_DEVCTL_MPS_SHIFT | 2u << PCIE_DEVCTL_MRRS_SHIFT |
                  PCIE_DEVCTL_EXTENDED_TAG);
    cap = nr_capability(rig, pf, PCI_CAP_ID_MSIX);
    nr_config(rig, pf, true, cap, PCI_MSIX_CONTROL_ENABLE << 16);
    for (unsigned v = 0; v < 8; v++) {
        nr_mmio_write(rig, pf, NIC_MSIX_TABLE + 16 * v, 8, NR_MSI_BASE);
        nr_mmio_write(rig, pf, NIC_MSIX_TABLE + 16 * v + 8, 8, v); /* unmasked */
    }
    rig->command[pf] = nr_alloc(rig, 64);
    nr_run(rig);
}

void nr_open(struct nr_rig *rig, unsigned n_functions, unsigned lanes, double wire_gbit_s,
             const char *const *settings)
{
    uint64_t bytes = NR_MEMORY_BYTES;
    char number[16];
    *rig = (struct nr_rig){ .sim = sim_new(11),
                            .n_functions = n_functions,
                            .delay_ps = NR_DELAY_PS,
                            .next_free = 1 << 20 };
    nr_running = rig;
    rig->pcie = pcie_context_new(rig->sim);
    rig->memory = physmem_new(1, &bytes);
    rig->frame = calloc(NR_FRAMES_MAX, sizeof(*rig->frame));
    rig->irq = calloc(NR_IRQS_MAX, sizeof(*rig->irq));
    rig->host = (struct model){ .ops = &nr_host_ops,
                                .name = "host",
                                .sim = rig->sim,
                                .pcie = rig->pcie,
                                .state = rig,
                                .ports = rig->port,
                                .n_ports = n_functions };
    rig->config = config_load("/dev/null", ".", &rig->errors);
    snprintf(number, sizeof(number), "%u", n_functions);
    config_set(rig->config, "nic.functions", number, "test", &rig->errors);
    snprintf(number, sizeof(number), "%u", lanes);
    config_set(rig->config, "nic.lanes", number, "test", &rig->errors);
    for (unsigned i = 0; settings != NULL && settings[i] != NULL; i += 2) {
        char path[80];
        snprintf(path, sizeof(path), "nic.%s", settings[i]);
        config_set(rig->config, path, settings[i + 1], "test", &rig->errors);
    }
    rig->nic = model_new(pcie_context_sim(rig->pcie), rig->pcie, &nic_ops, "nic", rig->config,
                         config_get(config_root(rig->config), "nic"), &rig->errors);
    for (size_t i = 0; i < rig->errors.n_messages; i++)
        print_message("%s\n", rig->errors.message[i]);
    assert_int_equal(rig->errors.n_messages, 0);
    for (unsigned pf = 0; pf < n_functions; pf++)
        nr_plug(rig, pf, lanes);
    rig->peer = (struct model){ .name = "peer", .sim = rig->sim, .state = rig };
    rig->wire_end = (struct ether_port){
        .model = &rig->peer, .name = "peer.e0", .rate_gbit_s_max = 400, .receive = nr_wire_receive
    };
    rig->peer.other_ports[0] = (struct model_ports){ &ether_cable, &rig->wire_end, 1 };
    struct ether_wire_params wire = { .rate_gbit_s = wire_gbit_s, .latency_ps = NR_WIRE_PS };
    rig->wire = ether_wire_new(rig->sim, "wire", &wire, cable_port(&ether_cable, rig->nic, 0),
                               &rig->wire_end, "test", 1, &rig->errors);
    assert_non_null(rig->wire);
    nic_ops.start(rig->nic);
    for (unsigned pf = 0; pf < n_functions; pf++)
        nr_enable(rig, pf);
}

static void nr_free(struct nr_rig *rig)
{
    ether_wire_free(rig->wire);
    model_free(rig->nic);
    pcie_context_free(rig->pcie);
    sim_free(rig->sim);
    physmem_free(rig->memory);
    config_free(rig->config);
    free(rig->frame);
    free(rig->irq);
    sim_error_release(&rig->errors);
}

void nr_close(struct nr_rig *rig)
{
    nr_run(rig);
    assert_true(pcie_context_check_idle(rig->pcie));
    assert_int_equal(ether_frames_live(rig->sim), 0);
    nr_free(rig);
}

int nr_set_up(void **state)
{
    struct fixture_test *t = *state;
    const struct nr_settings *settings = t->settings;
    t->fixture = calloc(1, sizeof(struct nr_rig));
    nr_open(t->fixture, settings->n_functions, settings->lanes, 100, settings->settings);
    return 0;
}

int nr_tear_down(void **state)
{
    struct fixture_test *t = *state;
    struct nr_rig *rig = t->fixture;
    if (t->passed)
        nr_close(rig);
    else if (fixture_test_abandon(rig->sim))
        nr_free(rig);
    else
        return 0;
    free(rig);
    return 0;
}
