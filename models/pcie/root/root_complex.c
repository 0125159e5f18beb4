/*
 * Root complex: set-up, routing, dispatch.
 *
 * Models: root ports with type-1 configuration space; inbound memory requests to cache lines and
 *   back (rc_inbound.c); peer to peer between root ports of all sockets (rc_forward.c); MMIO and
 *   configuration requests of cores (rc_outbound.c); interrupts; endpoints on the root bus itself,
 *   whose TLPs pass no link.
 * Does not model: I/O space, locked requests, ASPM, error containment; messages are dropped.
 * Timing: each file states its own.
 * Sources: PCIe Base 3.1, 1.3.1 and 2.3; docs/sources.md#a4, #c2.
 */
#include "models/pcie/root/root_complex.h"

#include <math.h>
#include <stdlib.h>

#include "models/pcie/endpoint/pcie_function.h"
#include "models/pcie/root/rc_internal.h"
#include "sim/engine/zeroed.h"

#define RC_VENDOR_ID      0x8086u
#define RC_PORT_DEVICE_ID 0x6f02u /* Xeon E5 v4 PCIe root port */

#define A2    "docs/sources.md#a2"
#define A4    "docs/sources.md#a4"
#define BENCH "docs/sources.md#pcie-bench"
#define C2    "docs/sources.md#c2"
#define G     "docs/sources.md#g"
#define K     "docs/sources.md#k"
#define RC_PARAM(KEY, TYPE, FIELD, DEF, LO, HI, PROV, SOURCE, HELP) \
    PARAM(KEY, TYPE, struct root_complex_params, FIELD, DEF, LO, HI, PROV, SOURCE, HELP)

const struct param_desc root_complex_params_table[] = {
    RC_PARAM("inbound_ns", PARAM_TIME, inbound_ps, 60, 1, 1000, PROV_ESTIMATE, A4,
             "last byte received to first line request"),
    RC_PARAM("outbound_ns", PARAM_TIME, outbound_ps, 60, 1, 1000, PROV_ESTIMATE, A4,
             "last line back, or request of a core, to first byte sent"),
    RC_PARAM("integrated_ns", PARAM_TIME, integrated_ps, 0, 0, 1000, PROV_ESTIMATE, A4,
             "for integrated endpoints, in place of inbound_ns and of outbound_ns; 0: these"),
    RC_PARAM("line_interval_ns", PARAM_TIME, line_interval_ps, 1.5, 0.1, 100, PROV_ESTIMATE, A4,
             "between line requests of one socket's root complex to the memory system"),
    RC_PARAM("p2p_ns", PARAM_TIME, p2p_ps, 250, 10, 2000, PROV_ESTIMATE, C2,
             "peer to peer: ingress to egress root port"),
    RC_PARAM("p2p_socket_ns", PARAM_TIME, p2p_socket_ps, 0, 0, 2000, PROV_ESTIMATE, A2,
             "peer to peer to another socket: more than the interconnect takes"),
    RC_PARAM(
        "p2p_line_interval_ns", PARAM_TIME, p2p_line_interval_ps, 0, 0, 100, PROV_PUBLISHED, C2,
        "peer to peer: between lines of posted writes, an input (64 B over it is their rate); 0: none"),
    RC_PARAM(
        "p2p_chunk_bytes", PARAM_BYTES, p2p_chunk_bytes, 0, 0, 4096, PROV_PUBLISHED, C2,
        "peer to peer: reads leave in pieces that end at multiples of this, 64 at least; 0: whole"),
    RC_PARAM(
        "p2p_reads_max", PARAM_U32, p2p_reads_max, 0, 0, RC_READ_TAGS_MAX, PROV_ESTIMATE, C2,
        "peer to peer: read requests in flight at an egress port; 0: not bound, or one per tag if "
        "they are cut"),
    RC_PARAM("completion_timeout_us", PARAM_TIME, completion_timeout_ps, 50000, 50, 1000000,
             PROV_PUBLISHED, G, "a core's request without completion ends with all ones"),
    RC_PARAM("completion_bytes_max", PARAM_BYTES, completion_bytes_max, 256, 64, 4096,
             PROV_DATASHEET, A4,
             "reads are answered in completions of at most this and Max_Payload_Size; 64 is RCB"),
    RC_PARAM("combine_above_bytes", PARAM_BYTES, combine_above_bytes, 256, 0, 4096, PROV_PUBLISHED,
             BENCH,
             "the first line of a read of at most this many bytes is answered at once, by itself"),
    RC_PARAM("mps_bytes", PARAM_U32, mps_bytes, 256, 128, 4096, PROV_PUBLISHED, A4,
             "Max_Payload_Size that root ports support"),
    RC_PARAM("ecrc", PARAM_BOOL, ecrc, 0, 0, 1, PROV_PUBLISHED, BENCH,
             "root ports can add a digest (ECRC) to their requests and completions"),
    RC_PARAM("posted_header_credits", PARAM_U32, advertise.header[TLP_POSTED], 48, 1, 127,
             PROV_ESTIMATE, G, "per root port of up to Gen3 x16; more in proportion"),
    RC_PARAM("posted_data_credits", PARAM_U32, advertise.data[TLP_POSTED], 384, 8, 2047,
             PROV_ESTIMATE, G, "likewise, units of 16 bytes"),
    RC_PARAM("non_posted_header_credits", PARAM_U32, advertise.header[TLP_NON_POSTED], 48, 1, 127,
             PROV_ESTIMATE, G, "per root port of up to Gen3 x16; more in proportion"),
    RC_PARAM("non_posted_data_credits", PARAM_U32, advertise.data[TLP_NON_POSTED], 48, 1, 2047,
             PROV_ESTIMATE, G, "likewise, units of 16 bytes"),
    RC_PARAM("tx_queue_tlps", PARAM_U32, tx_queue_tlps, 16, 1, 256, PROV_ESTIMATE, G,
             "TLPs of a class that wait for a root port's transmitter"),
    RC_PARAM("write_lines", PARAM_U32, write_lines, 0, 0, 4096, PROV_PUBLISHED, K,
             "lines of inbound writes that the ports of a stack have under way; 0: not bound"),
    RC_PARAM("read_lines", PARAM_U32, read_lines, 0, 0, 4096, PROV_ESTIMATE, K,
             "lines of inbound reads that the ports of a stack have under way; 0: not bound"),
    { .type = PARAM_END },
};

#define WRITE_PART(PART, NAME)                                                                 \
    STAT("write_latency_part_ns." NAME, STAT_MEAN, struct rc_state, stats.write_part_ns[PART], \
         "ns", 0, "where the time of stamped writes goes")

#define RC_STAT(NAME, FIELD, UNIT, HELP) \
    STAT(NAME, STAT_COUNTER, struct rc_state, stats.FIELD, UNIT, 0, HELP)

static const struct stat_desc rc_stats_table[] = {
    RC_STAT("reads", reads, "1", "inbound memory reads"),
    RC_STAT("read_bytes", read_bytes, "bytes", "asked for by inbound memory reads"),
    RC_STAT("writes", writes, "1", "inbound memory writes"),
    RC_STAT("write_bytes", write_bytes, "bytes", "payload of inbound memory writes"),
    RC_STAT("write_lines", write_lines, "1",
            "lines of them that had a write buffer of their stack"),
    RC_STAT("write_line_held_ps", write_line_held_ps, "ps", "how long they had it, all together"),
    RC_STAT("write_line_wait_ps", write_line_wait_ps, "ps", "how long they waited for it"),
    RC_STAT("read_lines", read_lines, "1", "lines of inbound memory reads"),
    RC_STAT("read_line_held_ps", read_line_held_ps, "ps",
            "from a line's request to its data, both ways through the root complex, all together"),
    RC_STAT("read_line_wait_ps", read_line_wait_ps, "ps",
            "how long lines waited for a place among those that their stack may read"),
    RC_STAT("interrupts", interrupts, "1", "message-signalled interrupts delivered"),
    RC_STAT("p2p_tlps", p2p_tlps, "1", "TLPs forwarded from root port to root port"),
    RC_STAT("p2p_reads", p2p_reads, "1", "read requests split and re-originated for peers"),
    RC_STAT("p2p_timeouts", p2p_timeouts, "1", "of these, those that got no answer in time"),
    RC_STAT("unsupported", unsupported, "1",
            "requests answered with unsupported request, or dropped if posted"),
    RC_STAT("iommu_blocked", faults, "1", "requests that the IOMMU blocked"),
    RC_STAT("unexpected_completions", unexpected_completions, "1",
            "completions that nobody waited for"),
    STAT("write_latency_ns", STAT_MEAN, struct rc_state, stats.write_latency_ns, "ns", 0,
         "device's start to visible, of writes that carry a stamp"),
    WRITE_PART(PART_DEVICE, "device"),
    WRITE_PART(PART_LINK, "link"),
    WRITE_PART(PART_CREDIT, "credit"),
    WRITE_PART(PART_SWITCH, "switch"),
    WRITE_PART(PART_ROOT_COMPLEX, "root_complex"),
    WRITE_PART(PART_IOMMU, "iommu"),
    WRITE_PART(PART_INTERCONNECT, "interconnect"),
    WRITE_PART(PART_CACHE, "cache"),
    WRITE_PART(PART_DRAM, "dram"),
    RC_STAT("mmio_timeouts", mmio_timeouts, "1",
            "requests of cores that ended by the completion time-out"),
    RC_STAT("poisoned", poisoned, "1", "poisoned writes dropped, and poisoned answers to cores"),
    { .kind = STAT_END },
};

uint16_t rc_id(const struct rc_state *rc)
{
    return pcie_id(rc->bus, 0, 0);
}

static bool window_holds(struct cfg_window window, uint64_t address, uint64_t bytes)
{
    return address >= window.base && address + bytes - 1 <= window.limit;
}

/* The functions behind a port to an integrated device. */
static const struct pcie_function *integrated(const struct model *rc, unsigned port)
{
    return pcie_port_peer(&rc->ports[port])->function;
}

static bool link_is_up(const struct pcie_port *port)
{
    return pcie_port_connected(port) && !port->down;
}

bool rc_route_address(struct root_complex_host *host, struct hpa hpa, uint64_t bytes,
                      struct model **rc, unsigned *port)
{
    for (unsigned s = 0; s < host->n_sockets; s++) {
        struct rc_state *state = host->rc[s] != NULL ? rc_of(host->rc[s]) : NULL;
        if (state == NULL || (!window_holds(state->memory, hpa.v, bytes) &&
                              !window_holds(state->prefetchable, hpa.v, bytes)))
            continue;
        for (unsigned p = 0; p < state->n_ports; p++) {
            const struct cfg_space *cfg = &state->port[p].cfg;
            if (cfg_memory_enabled(cfg) && link_is_up(&host->rc[s]->ports[p]) &&
                (window_holds(cfg_bridge_memory(cfg), hpa.v, bytes) ||
                 window_holds(cfg_bridge_prefetchable(cfg), hpa.v, bytes))) {
                *rc = host->rc[s];
                *port = p;
                return true;
            }
        }
        for (unsigned p = state->n_ports; p < state->n_ports + state->n_integrated; p++)
            if (pcie_function_covers(integrated(host->rc[s], p), hpa.v, bytes)) {
                *rc = host->rc[s];
                *port = p;
                return true;
            }
    }
    return false;
}

bool rc_route_id(struct root_complex_host *host, uint16_t id, struct model **rc, unsigned *port)
{
    unsigned bus = id >> 8;
    for (unsigned s = 0; s < host->n_sockets; s++) {
        struct rc_state *state = host->rc[s] != NULL ? rc_of(host->rc[s]) : NULL;
        if (state == NULL || bus < state->bus || bus > state->last_bus)
            continue;
        if (bus == state->bus) { /* devices 1 .. n_ports are the root ports themselves */
            const unsigned device = id >> 3 & 0x1fu;
            if (device <= state->n_ports || device > state->n_ports + state->n_integrated)
                return false;
            *rc = host->rc[s];
            *port = device - 1;
            return true;
        }
        for (unsigned p = 0; p < state->n_ports; p++) {
            const struct cfg_space *cfg = &state->port[p].cfg;
            if (bus >= cfg_bridge_secondary(cfg) && bus <= cfg_bridge_subordinate(cfg) &&
                cfg_bridge_secondary(cfg) != 0 && link_is_up(&host->rc[s]->ports[p])) {
                *rc = host->rc[s];
                *port = p;
                return true;
            }
        }
    }
    return false;
}

static void rc_receive(struct model *rc, uint32_t port, struct tlp *tlp)
{
    switch ((enum tlp_type)tlp->type) {
    case TLP_CPL:
    case TLP_CPLD: rc_outbound_completion(rc, port, tlp); break;
    case TLP_MSG:
        pcie_port_release(&rc->ports[port], TLP_POSTED, tlp_data_credits(tlp), sim_now(rc->sim));
        tlp_free(rc->pcie, tlp);
        break;
    default: rc_inbound_request(rc, port, tlp); break;
    }
}

static void rc_link_change(struct model *rc, uint32_t port)
{
    if (rc->ports[port].down)
        rc_outbound_link_down(rc, port);
}

static void peers_look(struct sim *sim, struct sim_event *event)
{
    const struct rc_port *port = SIM_CONTAINER(event, struct rc_port, peers_look);
    (void)sim;
    rc_forward_credit(port->rc, port->idx);
}

/* Cores that wait look first: a stream of peers' writes takes whatever room there is, and would
 * take it for ever. Peers look after the last of them, whether there was room for any of them or
 * not: a core may wait for room in another class. Tasks run after all events of their time, hence 1
 * ps. */
static void rc_credit(struct model *rc, uint32_t port)
{
    struct rc_port *at = &rc_of(rc)->port[port];
    if (SIM_LIKELY(!rc_outbound_credit(rc, port)))
        rc_forward_credit(rc, port);
    else if (!sim_event_pending(&at->peers_look))
        sim_schedule_in(rc->sim, &at->peers_look, 1);
}

static void port_init(struct model *rc, unsigned p, bool integrated)
{
    const struct root_complex_params *params = &rc_of(rc)->params;
    struct rc_port *port = &rc_of(rc)->port[p];

    port->rc = rc;
    port->idx = p;
    const bool apart = integrated && params->integrated_ps != 0;
    port->inbound_ps = apart ? params->integrated_ps : params->inbound_ps;
    port->outbound_ps = apart ? params->integrated_ps : params->outbound_ps;
    sim_event_init(&port->peers_look, peers_look);
    for (unsigned c = 0; c < RC_N_QUEUES; c++)
        port->forward[c].tail = &port->forward[c].head;
}

static void stack_init(struct rc_state *state, struct rc_port *port, unsigned stack)
{
    struct rc_stack *buffers = &state->stack[stack];
    port->stack = stack;
    if (state->params.write_lines != 0 && buffers->free_ps == NULL)
        buffers->free_ps = sim_zalloc(state->params.write_lines, sizeof(*buffers->free_ps));
    if (state->params.read_lines != 0 && buffers->read_free_ps == NULL)
        buffers->read_free_ps = sim_zalloc(state->params.read_lines,
                                           sizeof(*buffers->read_free_ps));
}

static void rc_init(struct model *rc, struct sim_error_list *errors)
{
    struct rc_state *state = rc_of(rc);
    uint64_t max = state->params.completion_bytes_max;
    uint32_t mps = state->params.mps_bytes;
    if ((max & (max - 1)) != 0)
        model_mistake(rc, errors, ".completion_bytes_max: %llu is not a power of two",
                      (unsigned long long)max);
    if ((mps & (mps - 1)) != 0)
        model_mistake(rc, errors, ".mps_bytes: %u is not a power of two", mps);
    /* What answers a piece ends where it does: at a Read Completion Boundary. */
    if (state->params.p2p_chunk_bytes != 0 && state->params.p2p_chunk_bytes < LINE_BYTES)
        model_mistake(rc, errors, ".p2p_chunk_bytes: %llu is less than a line of 64 bytes",
                      (unsigned long long)state->params.p2p_chunk_bytes);
    if ((state->params.p2p_chunk_bytes & (state->params.p2p_chunk_bytes - 1)) != 0)
        model_mistake(rc, errors, ".p2p_chunk_bytes: %llu is not a power of two",
                      (unsigned long long)state->params.p2p_chunk_bytes);
    state->steps = sim_pool_new(rc->sim, "root complex step", sizeof(struct rc_step));
    rc_reads_init(rc);
    state->memory = (struct cfg_window){ .base = 1, .limit = 0 };
    state->prefetchable = state->memory;
}

/* Buffers cover the round trip at the port's full rate: those of the parameters 390 ns at Gen3 x16
 * (6 KiB of 15.75 GB/s). A port that is faster has as many times more; one that is slower shares
 * its stack's buffers with others and is given no less. Above 127 headers and 2047 units, flow
 * control is scaled (PCIe Base 4.0, 3.4.2), as ports from Gen4 on do. */
static struct pcie_credits credits_of(const struct pcie_credits *params,
                                      const struct root_port_desc *port)
{
    const uint32_t rate = (uint32_t)port->max_lanes << port->max_generation, of_x16_gen3 = 16u << 3;
    const uint32_t times = SIM_MAX(rate / of_x16_gen3, 1);
    struct pcie_credits credits = *params;

    for (unsigned class = TLP_POSTED; class <= TLP_NON_POSTED; class ++) {
        credits.header[class] *= times;
        credits.data[class] *= times;
    }
    credits.header[TLP_COMPLETION] = credits.data[TLP_COMPLETION] = PCIE_CREDITS_INFINITE;
    return credits;
}

void root_complex_attach(struct model *rc, struct root_complex_host *host, unsigned socket,
                         unsigned bus, const struct root_port_desc *ports, unsigned n_ports,
                         struct iommu *iommu)
{
    static const struct cfg_identity identity = { .vendor_id = RC_VENDOR_ID,
                                                  .device_id = RC_PORT_DEVICE_ID };
    struct rc_state *state = rc_of(rc);
    SIM_ASSERT(n_ports <= ROOT_COMPLEX_PORTS_MAX && socket < ROOT_COMPLEX_SOCKETS_MAX,
               "%u ports, socket %u", n_ports, socket);
    state->host = host;
    state->iommu = iommu;
    state->socket = socket;
    state->bus = bus;
    state->last_bus = bus;
    state->n_ports = n_ports;
    /* those that stay unused take no memory of the real machine */
    state->port_bytes = (n_ports + ROOT_COMPLEX_INTEGRATED_MAX) * sizeof(*state->port);
    state->port = sim_zeroed_new(state->port_bytes);
    rc->ports = sim_zalloc(n_ports + ROOT_COMPLEX_INTEGRATED_MAX, sizeof(*rc->ports));
    rc->n_ports = n_ports;
    host->rc[socket] = rc;
    for (unsigned p = 0; p < n_ports; p++) {
        struct rc_port *port = &state->port[p];
        cfg_init_bridge(&port->cfg, &identity);
        cfg_add_pcie(&port->cfg, CFG_ROOT_PORT, ports[p].max_generation, ports[p].max_lanes,
                     state->params.mps_bytes, true);
        cfg_add_acs(&port->cfg);
        if (state->params.ecrc)
            cfg_add_ecrc(&port->cfg);
        port->cfg.id = pcie_id(bus, p + 1, 0);
        port_init(rc, p, false);
        stack_init(state, port, ports[p].stack);
        rc->ports[p] =
            (struct pcie_port){ .model = rc,
                                .idx = p,
                                .max_generation = ports[p].max_generation,
                                .max_lanes = ports[p].max_lanes,
                                .mps_bytes = 128,
                                .mps_bytes_max = state->params.mps_bytes,
                                .tx_queue_tlps = state->params.tx_queue_tlps,
                                .advertise = credits_of(&state->params.advertise, &ports[p]),
                                .name = ports[p].name,
                                .bridge = &port->cfg };
    }
}

bool root_complex_integrate(struct model *rc, struct pcie_port *endpoint)
{
    struct rc_state *state = rc_of(rc);
    const unsigned p = state->n_ports + state->n_integrated;
    struct rc_port *port = &state->port[p];
    if (state->n_integrated == ROOT_COMPLEX_INTEGRATED_MAX)
        return false;
    state->n_integrated++;
    /* There is no root port whose configuration space says these. */
    port->cfg.live.bus_master = true;
    port->cfg.live.mps_bytes = 128;
    port_init(rc, p, true);
    stack_init(state, port, 0);
    rc->ports[p] = (struct pcie_port){ .model = rc,
                                       .idx = p,
                                       .mps_bytes = 128,
                                       .mps_bytes_max = state->params.mps_bytes,
                                       .integrated_id = pcie_id(state->bus, p + 1, 0),
                                       .name = endpoint->name };
    pcie_link_join(rc->pcie, endpoint->name, endpoint, &rc->ports[p]);
    return true;
}

void root_complex_set_windows(struct model *rc, struct cfg_window memory,
                              struct cfg_window prefetchable)
{
    rc_of(rc)->memory = memory;
    rc_of(rc)->prefetchable = prefetchable;
}

unsigned root_complex_bus(const struct model *rc)
{
    return ((const struct rc_state *)rc->state)->bus;
}

void root_complex_set_last_bus(struct model *rc, unsigned last_bus)
{
    rc_of(rc)->last_bus = last_bus;
}

static void rc_start(struct model *rc)
{
    for (unsigned p = 0; p < rc->n_ports; p++)
        if (pcie_port_connected(&rc->ports[p]))
            cfg_set_link(&rc_of(rc)->port[p].cfg, pcie_port_generation(&rc->ports[p]),
                         pcie_port_lanes(&rc->ports[p]));
}

static void rc_release(struct model *rc)
{
    for (unsigned i = 0; i < RC_MMIO_TAGS; i++)
        sim_cancel(rc->sim, &rc_of(rc)->mmio[i].timeout);
    for (unsigned p = 0; p < rc->n_ports; p++)
        sim_cancel(rc->sim, &rc_of(rc)->port[p].peers_look);
    rc_reads_release(rc);
    for (unsigned s = 0; s < ROOT_COMPLEX_PORTS_MAX; s++) {
        free(rc_of(rc)->stack[s].free_ps);
        free(rc_of(rc)->stack[s].read_free_ps);
    }
    sim_zeroed_free(rc_of(rc)->port, rc_of(rc)->port_bytes);
}

/* ---- The IOMMU's way to memory --------------------------------------------------------------- */

static sim_time iommu_read_done(void *context, struct hpa hpa, sim_time at_ps,
                                struct sim_stamp *stamp)
{
    struct rc_state *state = rc_of(context);
    return numa_dma_read(state->host->numa, state->socket, hpa, 8, at_ps, stamp, NULL);
}

static sim_time iommu_write_done(void *context, struct hpa hpa, sim_time at_ps)
{
    struct rc_state *state = rc_of(context);
    return numa_dma_write(state->host->numa, state->socket, hpa, 4, at_ps, NULL, NULL);
}

static uint64_t iommu_read64(void *context, struct hpa hpa)
{
    return physmem_read64(numa_physmem(rc_of(context)->host->numa), hpa);
}

/* Status of invalidation waits, and the IOMMU's own interrupts, which are never remapped. */
static void iommu_write(void *context, struct hpa hpa, const void *from, unsigned bytes)
{
    if (rc_is_interrupt(hpa.v)) {
        rc_interrupt_deliver(context, INTERRUPT_DESTINATION(hpa.v), *(const uint8_t *)from);
        return;
    }
    physmem_write(numa_physmem(rc_of(context)->host->numa), hpa, from, bytes);
}

static bool iommu_readable(void *context, struct hpa hpa, unsigned bytes)
{
    return physmem_contains(numa_physmem(rc_of(context)->host->numa), hpa, bytes);
}

struct iommu_memory root_complex_iommu_memory(struct root_complex_host *host, unsigned socket)
{
    return (struct iommu_memory){ .context = host->rc[socket],
                                  .read_done_ps = iommu_read_done,
                                  .write_done_ps = iommu_write_done,
                                  .read64 = iommu_read64,
                                  .write = iommu_write,
                                  .readable = iommu_readable };
}

const struct model_ops root_complex_ops = {
    .type = "pcie.root_complex",
    .help = "root ports of one socket, between TLPs and cache lines",
    .state_bytes = sizeof(struct rc_state),
    .params = root_complex_params_table,
    .stats = rc_stats_table,
    .init = rc_init,
    .start = rc_start,
    .receive = rc_receive,
    .announce = rc_inbound_announce,
    .credit = rc_credit,
    .link_change = rc_link_change,
    .names_ports = true,
    .release = rc_release,
};
_Static_assert(offsetof(struct rc_state, params) == 0, "parameters are read into the state's head");
