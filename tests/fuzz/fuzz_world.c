#include "tests/fuzz/fuzz_world.h"

#define LINK_PS      (40 * SIM_PS_PER_NS)
#define DELAY_PS     (300 * SIM_PS_PER_NS)
#define WAIT_PS      (100 * SIM_PS_PER_US)
#define SLICE_PS     (10 * SIM_PS_PER_MS)
#define CPLD_BYTES   128u /* of an answer at most: the smallest Max_Payload_Size */
#define BYTES_MAX    128u
#define EVENTS_INPUT UINT64_C(8000)    /* that an input may take */
#define EVENTS_DRAIN UINT64_C(2000000) /* a device that was reset is quiet after so many */

static struct fuzz_world *running; /* a TLP's event has no way back */
static uint8_t memory[FUZZ_MEMORY_BYTES];

/* ---- The host -------------------------------------------------------------------------------- */

static bool is_memory(uint64_t address, uint64_t bytes)
{
    return address < FUZZ_MEMORY_BYTES && bytes <= FUZZ_MEMORY_BYTES - address;
}

static void answer_with_data(struct fuzz_world *world, struct tlp *tlp, struct pcie_port *port)
{
    for (unsigned at = 0; at < tlp->length_bytes;) {
        struct tlp *piece = tlp_completion(world->pcie, tlp, 0, TLP_SC);
        const uint64_t address = tlp->address + at;
        const unsigned n = SIM_MIN(tlp->length_bytes - at,
                                   (unsigned)(CPLD_BYTES - address % CPLD_BYTES));
        piece->address = address;
        piece->byte_count = (uint16_t)(tlp->length_bytes - at);
        piece->length_bytes = (uint16_t)n;
        piece->bulk = tlp->bulk;
        tlp_payload_new(world->pcie, piece);
        if (piece->bulk && world->blank)
            memset(piece->payload, 0, n);
        else
            memcpy(piece->payload, world->memory + address, n);
        piece->poisoned = world->answers == FUZZ_POISONED;
        pcie_port_send(port, piece, sim_now(world->sim));
        at += n;
    }
}

static void answer(struct sim *sim, struct sim_event *event)
{
    struct fuzz_world *world = running;
    struct tlp *tlp = SIM_CONTAINER(event, struct tlp, event);
    struct pcie_port *port = &world->port[tlp->ingress];
    const bool data = world->answers == FUZZ_ANSWER || world->answers == FUZZ_POISONED;
    if (data && is_memory(tlp->address, tlp->length_bytes)) {
        answer_with_data(world, tlp, port);
    } else if (world->answers != FUZZ_SILENT) {
        const enum tlp_status status = world->answers == FUZZ_ABORT ? TLP_CA : TLP_UR;
        pcie_port_send(port, tlp_completion(world->pcie, tlp, 0, status), sim_now(sim));
    }
    tlp_free(world->pcie, tlp);
}

static void take_write(struct fuzz_world *world, const struct tlp *tlp)
{
    if (tlp->address >= FUZZ_MSI && tlp->address < FUZZ_MSI + 4096) {
        world->n_irqs++;
        return;
    }
    if (!is_memory(tlp->address, tlp->length_bytes))
        return;
    if (!tlp->bulk) {
        fuzz_put(world, tlp->address, tlp->payload, tlp->length_bytes);
        return;
    }
    for (unsigned at = 0; at < tlp->length_bytes;) { /* marks: the first bytes of each line */
        unsigned share = (unsigned)(64 - (tlp->address + at) % 64);
        share = SIM_MIN(share, tlp->length_bytes - at);
        fuzz_put(world, tlp->address + at, tlp->payload + at, SIM_MIN(share, 8u));
        at += share;
    }
}

static void take_answer(struct fuzz_world *world, const struct tlp *tlp)
{
    world->answered = true;
    world->answer = UINT64_MAX;
    if (tlp->type == TLP_CPLD)
        memcpy(&world->answer, tlp->payload, SIM_MIN(tlp->length_bytes, 8));
}

static void host_receive(struct model *model, uint32_t port, struct tlp *tlp)
{
    struct fuzz_world *world = model->state;
    pcie_port_release(&world->port[port], tlp_class_of(tlp), tlp_data_credits(tlp),
                      sim_now(world->sim) + world->hold_ps);
    if (tlp->type == TLP_MRD) {
        sim_time delay = DELAY_PS;
        if (world->shuffles)
            delay += (tlp->address >> 6) % 7 * DELAY_PS;
        tlp->ingress = (uint16_t)port;
        sim_event_init(&tlp->event, answer);
        sim_schedule_in(world->sim, &tlp->event, delay);
        return;
    }
    if (tlp->type == TLP_MWR)
        take_write(world, tlp);
    else if (tlp_class_of(tlp) == TLP_COMPLETION)
        take_answer(world, tlp);
    tlp_free(world->pcie, tlp);
}

static void host_link_change(struct model *model, uint32_t port)
{
    (void)model;
    (void)port;
}

static const struct model_ops host_ops = { .type = "fuzz.host",
                                           .receive = host_receive,
                                           .link_change = host_link_change };

/* ---- Life ------------------------------------------------------------------------------------ */

static void no_mistakes(const struct fuzz_world *world)
{
    for (size_t i = 0; i < world->errors.n_messages; i++)
        fprintf(stderr, "%s\n", world->errors.message[i]);
    FUZZ_ASSERT(world->errors.n_messages == 0, "mistakes in the world's settings");
}

void fuzz_world_open(struct fuzz_world *world)
{
    *world = (struct fuzz_world){ .sim = sim_new(3), .memory = memory };
    running = world;
    world->pcie = pcie_context_new(world->sim);
    world->host = (struct model){ .ops = &host_ops,
                                  .name = "host",
                                  .sim = world->sim,
                                  .pcie = world->pcie,
                                  .state = world,
                                  .ports = world->port };
    world->config = config_load("/dev/null", ".", &world->errors);
}

struct model *fuzz_world_device(struct fuzz_world *world, const struct model_ops *ops,
                                const char *path, const struct fuzz_setting *settings)
{
    for (; settings->key != NULL; settings++) {
        char setting[80];
        snprintf(setting, sizeof(setting), "%s.%s", path, settings->key);
        config_set(world->config, setting, settings->value, "test", &world->errors);
    }
    struct model *device = model_new(world->sim, world->pcie, ops, path, world->config,
                                     config_get(config_root(world->config), path), &world->errors);
    config_check_unknown(world->config, &world->errors);
    no_mistakes(world);
    return device;
}

void fuzz_world_plug(struct fuzz_world *world, struct model *device, unsigned port)
{
    static const char *const names[FUZZ_PORTS_MAX] = { "host.0", "host.1", "host.2", "host.3" };
    const struct pcie_link_params params = {
        .latency_ps = LINK_PS, .ack_tlps = 4, .fc_update_ratio_pct = 25, .skp_overhead_ratio = 0
    };
    const unsigned p = world->n_ports++;
    world->host.n_ports = world->n_ports;
    world->port[p] = (struct pcie_port){
        .model = &world->host,
        .idx = p,
        .max_generation = 3,
        .max_lanes = (uint8_t)device->ports[port].max_lanes,
        .mps_bytes = 256,
        .mps_bytes_max = 256,
        .advertise = { .header = { 64, 64, 255 }, .data = { 512, 64, 4095 } },
        .name = names[p],
    };
    world->link[p] = pcie_link_new(world->pcie, "link", &params, &world->port[p],
                                   &device->ports[port], "test", 1, &world->errors);
    no_mistakes(world);
}

void fuzz_world_check(struct fuzz_world *world)
{
    FUZZ_ASSERT(pcie_context_check_idle(world->pcie), "%s", sim_error(world->sim));
}

void fuzz_world_close(struct fuzz_world *world)
{
    pcie_context_free(world->pcie);
    sim_free(world->sim);
    config_free(world->config);
    sim_error_release(&world->errors);
    for (unsigned page = 0; page < FUZZ_PAGES; page++)
        if (world->dirty[page])
            memset(memory + page * UINT64_C(4096), 0, 4096);
}

void fuzz_world_play(const struct fuzz_target *target, const struct fuzz_op *op, size_t n)
{
    struct fuzz_world *world = target->open(&op[0]);
    world->events_begin = sim_events_fired(world->sim);
    for (size_t i = 1; i < n && !fuzz_world_spent(world); i++)
        target->step(world, &op[i]);
    fuzz_host_behave(world);
    target->check(world);
    target->close(world);
}

/* ---- The other end of a wire ----------------------------------------------------------------- */

static void peer_receive(struct ether_port *port, struct ether_frame *frame)
{
    struct fuzz_peer *peer = port->model->state;
    peer->n_frames++;
    ether_frame_free(port->model, frame);
}

static void peer_retime(struct ether_port *port, struct ether_frame *frame, sim_time left_ps)
{
    (void)port;
    (void)frame;
    (void)left_ps;
}

void fuzz_peer_plug(struct fuzz_peer *peer, struct fuzz_world *world, struct model *nic,
                    double gbit_s, uint32_t mtu_bytes)
{
    const struct ether_wire_params params = { .rate_gbit_s = gbit_s,
                                              .latency_ps = 50 * SIM_PS_PER_NS };
    peer->model = (struct model){ .name = "peer", .sim = world->sim, .state = peer };
    peer->end = (struct ether_port){ .model = &peer->model,
                                     .name = "peer.e0",
                                     .rate_gbit_s_max = 400,
                                     .flow_control = true,
                                     .mtu_bytes = mtu_bytes,
                                     .receive = peer_receive,
                                     .retime = peer_retime };
    peer->model.other_ports[0] = (struct model_ports){ &ether_cable, &peer->end, 1 };
    peer->wire = ether_wire_new(world->sim, "wire", &params, cable_port(&ether_cable, nic, 0),
                                &peer->end, "test", 1, &world->errors);
    FUZZ_ASSERT(peer->wire != NULL, "no wire");
}

/* ---- Time ------------------------------------------------------------------------------------ */

void fuzz_world_run(struct fuzz_world *world, sim_time ps)
{
    sim_run(world->sim, sim_now(world->sim) + ps, NULL);
    FUZZ_ASSERT(sim_error(world->sim) == NULL, "%s", sim_error(world->sim));
}

bool fuzz_world_spent(const struct fuzz_world *world)
{
    return sim_events_fired(world->sim) - world->events_begin > EVENTS_INPUT;
}

void fuzz_world_wait(struct fuzz_world *world, sim_time ps)
{
    const sim_time end_ps = sim_now(world->sim) + ps;
    while (sim_now(world->sim) < end_ps && !fuzz_world_spent(world)) {
        const sim_time left_ps = end_ps - sim_now(world->sim);
        fuzz_world_run(world,
                       sim_events_pending(world->sim) == 0 ? left_ps : SIM_MIN(left_ps, WAIT_PS));
    }
}

void fuzz_world_drain(struct fuzz_world *world)
{
    const uint64_t begin = sim_events_fired(world->sim);
    while (sim_events_pending(world->sim) != 0) {
        fuzz_world_run(world, SLICE_PS);
        FUZZ_ASSERT(sim_events_fired(world->sim) - begin < EVENTS_DRAIN, "it does not end");
    }
}

/* ---- Access ---------------------------------------------------------------------------------- */

void fuzz_write(struct fuzz_world *world, unsigned port, uint64_t address, const void *from,
                unsigned bytes)
{
    struct tlp *tlp = tlp_new(world->pcie, TLP_MWR);
    tlp->address = address;
    tlp->length_bytes = (uint16_t)bytes;
    tlp_payload_new(world->pcie, tlp);
    memcpy(tlp->payload, from, bytes);
    pcie_port_send(&world->port[port], tlp, sim_now(world->sim));
}

void fuzz_write32(struct fuzz_world *world, unsigned port, uint64_t address, uint32_t value)
{
    fuzz_write(world, port, address, &value, sizeof(value));
}

void fuzz_write64(struct fuzz_world *world, unsigned port, uint64_t address, uint64_t value)
{
    fuzz_write(world, port, address, &value, sizeof(value));
}

static void send_request(struct fuzz_world *world, unsigned port, struct tlp *tlp)
{
    tlp->requester_id = 0xff00;
    world->answered = false;
    pcie_port_send(&world->port[port], tlp, sim_now(world->sim));
}

void fuzz_read(struct fuzz_world *world, unsigned port, uint64_t address, unsigned bytes)
{
    struct tlp *tlp = tlp_new(world->pcie, TLP_MRD);
    tlp->address = address;
    tlp->length_bytes = (uint16_t)bytes;
    send_request(world, port, tlp);
}

void fuzz_enqueue(struct fuzz_world *world, unsigned port, uint64_t address, const void *from,
                  unsigned bytes)
{
    struct tlp *tlp = tlp_new(world->pcie, TLP_DMWR);
    tlp->address = address;
    tlp->length_bytes = (uint16_t)bytes;
    tlp_payload_new(world->pcie, tlp);
    memcpy(tlp->payload, from, bytes);
    send_request(world, port, tlp);
}

static void send_config(struct fuzz_world *world, unsigned port, uint16_t id, bool write,
                        unsigned offset, uint32_t value)
{
    struct tlp *tlp = tlp_new(world->pcie, write ? TLP_CFG_WR0 : TLP_CFG_RD0);
    tlp->address = offset & 0xffcu;
    tlp->length_bytes = 4;
    tlp->completer_id = id;
    if (write) {
        tlp_payload_new(world->pcie, tlp);
        memcpy(tlp->payload, &value, 4);
    }
    send_request(world, port, tlp);
}

void fuzz_config_write(struct fuzz_world *world, unsigned port, uint16_t id, unsigned offset,
                       uint32_t value)
{
    send_config(world, port, id, true, offset, value);
}

static uint32_t await_answer(struct fuzz_world *world)
{
    for (unsigned i = 0; i < 100 && !world->answered; i++)
        fuzz_world_run(world, 100 * SIM_PS_PER_NS);
    return world->answered ? (uint32_t)world->answer : UINT32_MAX;
}

uint32_t fuzz_config_read(struct fuzz_world *world, unsigned port, uint16_t id, unsigned offset)
{
    send_config(world, port, id, false, offset, 0);
    return await_answer(world);
}

uint32_t fuzz_ask32(struct fuzz_world *world, unsigned port, uint64_t address)
{
    fuzz_read(world, port, address, 4);
    return await_answer(world);
}

/* ---- Functions ------------------------------------------------------------------------------- */

unsigned fuzz_port_of(const struct fuzz_world *world, unsigned function)
{
    return function / (1 + world->functions.n_vfs);
}

unsigned fuzz_physical(const struct fuzz_world *world, unsigned port)
{
    return port * (1 + world->functions.n_vfs);
}

/* 0: it is the physical one. */
static unsigned number_of(const struct fuzz_world *world, unsigned function)
{
    return function % (1 + world->functions.n_vfs);
}

bool fuzz_is_virtual(const struct fuzz_world *world, unsigned function)
{
    return number_of(world, function) != 0;
}

uint64_t fuzz_bar_of(const struct fuzz_world *world, unsigned function)
{
    const unsigned port = fuzz_port_of(world, function), number = number_of(world, function);
    return number == 0 ? FUZZ_BAR(port)
                       : FUZZ_BAR_VFS(port) + (number - 1) * world->functions.bar_bytes;
}

void fuzz_set_config(struct fuzz_world *world, unsigned function, unsigned offset, uint32_t value)
{
    const unsigned port = fuzz_port_of(world, function);
    fuzz_config_write(world, port, (uint16_t)(FUZZ_ID(port) + number_of(world, function)), offset,
                      value);
}

unsigned fuzz_capability(struct fuzz_world *world, unsigned id)
{
    unsigned at = fuzz_config_read(world, 0, FUZZ_ID(0), PCI_CAP_POINTER) & 0xff;
    while (at != 0) {
        const uint32_t head = fuzz_config_read(world, 0, FUZZ_ID(0), at);
        if ((head & 0xff) == id)
            return at;
        at = head >> 8 & 0xff;
    }
    FUZZ_ASSERT(false, "no capability %u", id);
    return 0;
}

static unsigned extended_capability(struct fuzz_world *world, unsigned id)
{
    unsigned at = PCI_STANDARD_END;
    while (at != 0) {
        const uint32_t head = fuzz_config_read(world, 0, FUZZ_ID(0), at);
        if ((head & 0xffff) == id)
            return at;
        at = head >> PCI_ECAP_NEXT_SHIFT;
    }
    FUZZ_ASSERT(false, "no extended capability %u", id);
    return 0;
}

void fuzz_find_capabilities(struct fuzz_world *world)
{
    static struct fuzz_functions known; /* a process has one target */
    struct fuzz_functions *f = &world->functions;
    if (known.pcie == 0) {
        known.msix = fuzz_capability(world, PCI_CAP_ID_MSIX);
        known.sriov = f->n_vfs != 0 ? extended_capability(world, PCI_ECAP_ID_SRIOV) : 0;
        known.pcie = fuzz_capability(world, PCI_CAP_ID_PCIE);
    }
    f->pcie = known.pcie;
    f->msix = known.msix;
    f->sriov = known.sriov;
}

static void set_up_vfs(struct fuzz_world *world, unsigned port)
{
    const struct fuzz_functions *d = &world->functions;
    const unsigned f = fuzz_physical(world, port);
    fuzz_set_config(world, f, d->sriov + PCI_SRIOV_BAR0, (uint32_t)FUZZ_BAR_VFS(port));
    fuzz_set_config(world, f, d->sriov + PCI_SRIOV_BAR0 + 4, (uint32_t)(FUZZ_BAR_VFS(port) >> 32));
    fuzz_set_config(world, f, d->sriov + PCI_SRIOV_NUM_VFS, d->n_vfs);
    fuzz_set_config(world, f, d->sriov + PCI_SRIOV_CONTROL,
                    PCI_SRIOV_CONTROL_ENABLE | PCI_SRIOV_CONTROL_MEMORY);
    fuzz_world_run(world, SIM_PS_PER_US);
    for (unsigned vf = 1; vf <= d->n_vfs; vf++)
        fuzz_set_config(world, f + vf, PCI_COMMAND, PCI_COMMAND_BUS_MASTER);
}

void fuzz_set_up_port(struct fuzz_world *world, unsigned port)
{
    const struct fuzz_functions *d = &world->functions;
    const unsigned f = fuzz_physical(world, port);
    const uint64_t bar[2] = { FUZZ_BAR(port), FUZZ_BAR_2(port) };
    for (unsigned i = 0; i < d->n_bars; i++) {
        fuzz_set_config(world, f, PCI_BAR0 + 8 * i, (uint32_t)bar[i]);
        fuzz_set_config(world, f, PCI_BAR0 + 8 * i + 4, (uint32_t)(bar[i] >> 32));
    }
    fuzz_set_config(world, f, PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_BUS_MASTER);
    fuzz_set_config(world, f, d->pcie + PCIE_DEVCTL,
                    1u << PCIE_DEVCTL_MPS_SHIFT | 2u << PCIE_DEVCTL_MRRS_SHIFT |
                        PCIE_DEVCTL_EXTENDED_TAG);
    fuzz_set_config(world, f, d->pcie + PCIE_DEVCTL2, 0);
    fuzz_set_config(world, f, d->msix, (uint32_t)PCI_MSIX_CONTROL_ENABLE << 16);
    if (d->sriov != 0)
        set_up_vfs(world, port);
    for (unsigned v = 0; v < d->n_vectors; v++) {
        fuzz_write64(world, port, bar[0] + d->msix_table + 16 * v, FUZZ_MSI);
        fuzz_write64(world, port, bar[0] + d->msix_table + 16 * v + 8, v);
    }
}

void fuzz_function_reset(struct fuzz_world *world, unsigned function)
{
    fuzz_set_config(world, function, world->functions.pcie + PCIE_DEVCTL, FUZZ_DEVCTL_FLR);
}

void fuzz_function_stop(struct fuzz_world *world, unsigned function)
{
    fuzz_set_config(world, function, PCI_COMMAND, PCI_COMMAND_MEMORY);
    fuzz_function_reset(world, function);
}

bool fuzz_op_reset(struct fuzz_world *world, struct model *device, const struct fuzz_op *op,
                   void (*set_up)(struct fuzz_world *world))
{
    switch (op->a % 8) {
    case 0:
    case 1: fuzz_set_config(world, 0, PCI_COMMAND, PCI_COMMAND_MEMORY | (op->c & 1u) << 2); break;
    case 2: fuzz_function_reset(world, 0); break;
    case 3: /* the cable */
        if (op->b >= 16 || op->c >= 16)
            break;
        pcie_function_remove(device, 0);
        return true;
    case 4:
        fuzz_function_reset(world, 0);
        fuzz_world_wait(world, 200 * SIM_PS_PER_MS);
        set_up(world);
        break;
    default: set_up(world); break;
    }
    return false;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

void fuzz_put(struct fuzz_world *world, uint64_t address, const void *from, uint64_t bytes)
{
    if (!is_memory(address, bytes) || bytes == 0)
        return;
    world->dirty[address / 4096] = world->dirty[(address + bytes - 1) / 4096] = true;
    memcpy(world->memory + address, from, bytes);
}

void fuzz_get(const struct fuzz_world *world, uint64_t address, void *to, uint64_t bytes)
{
    memset(to, 0, bytes);
    if (is_memory(address, bytes))
        memcpy(to, world->memory + address, bytes);
}

uint64_t fuzz_address(uint32_t code)
{
    const uint64_t low = code & 0x1fffffffu;
    switch (code >> 29) {
    case 1: return low % FUZZ_MEMORY_BYTES;
    case 2: return low % FUZZ_MEMORY_BYTES & ~UINT64_C(63);
    case 3: return FUZZ_BAR_2(0) + low % (1 << 17);
    case 4: return (low % FUZZ_PAGES + 1) * 4096 - 8 * (low >> 20 & 7);
    case 5: return (low << 35 | low) & ~UINT64_C(3);
    case 6: return FUZZ_BAR(0) + low % (1 << 20);
    case 7: return FUZZ_MEMORY_BYTES - 4096 + low % 8192;
    default: return low % FUZZ_PAGES * 4096;
    }
}

/* ---- Operations ------------------------------------------------------------------------------ */

void fuzz_op_time(struct fuzz_world *world, const struct fuzz_op *op)
{
    const sim_time ps = (SIM_PS_PER_NS << op->a % 16) + op->b * (SIM_PS_PER_NS << op->a % 16) / 256;
    fuzz_world_run(world, ps);
}

void fuzz_op_host(struct fuzz_world *world, const struct fuzz_op *op)
{
    /* Mostly it answers. */
    world->answers = op->a < 128 ? FUZZ_ANSWER : (enum fuzz_answer)(op->a % N_FUZZ_ANSWERS);
    world->shuffles = op->b & 1;
    world->hold_ps = op->c < 128 ? 0 : (op->c - 128u) * SIM_PS_PER_NS * 16;
}

void fuzz_host_behave(struct fuzz_world *world)
{
    world->answers = FUZZ_ANSWER;
    world->hold_ps = 0;
}

void fuzz_op_memory(struct fuzz_world *world, const struct fuzz_op *op)
{
    const uint64_t value[2] = { op->y, op->z };
    fuzz_put(world, fuzz_address(op->x), value, sizeof(value));
}

void fuzz_op_access(struct fuzz_world *world, unsigned port, uint64_t address,
                    const struct fuzz_op *op)
{
    uint8_t bytes[BYTES_MAX];
    unsigned n = op->b < 64 ? 4 : op->b < 128 ? 8 : 1u + op->b % BYTES_MAX;
    n = SIM_MIN(n, (unsigned)(4096 - address % 4096));
    if (op->c & 1) {
        fuzz_read(world, port, address, n);
        return;
    }
    for (unsigned at = 0; at < n; at++)
        bytes[at] = ((const uint8_t *)op)[8 + at % 16]; /* y and z */
    fuzz_write(world, port, address, bytes, n);
}
