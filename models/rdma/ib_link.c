/*
 * Models: full-duplex wires between two InfiniBand ports: serialisation at the wire's data rate,
 *   headers and checks of each packet, one virtual lane with credits of 64 bytes for the receiver's
 *   buffer, flow-control packets that carry them back, latency, random loss, link down.
 * Does not model: further virtual lanes and service levels, bit errors within packets, link
 *   training, forward error correction (its latency is part of the wire's), subnet management.
 * Timing: a packet starts when the one before has left and the receiver has room for it; its tail
 *   is there (LRH .. VCRC + 2 symbols) / rate + latency later. What the receiver frees goes back in
 *   a flow-control packet of 8 symbols, which starts behind the packet that is leaving there and
 *   acts latency after it; what is freed meanwhile goes into the next one. A byte takes 8 / rate,
 *   kept in 2^-32 ps with the fraction carried from packet to packet.
 * Sources: InfiniBand Architecture Specification 1.3, volume 1: 5.2 (headers), 7.8 (checks), 7.9
 *   (flow control: 64-byte blocks, FCTBS and FCCL); volume 2, 5 (EDR: 25.78125 GBd per lane with
 *   64b/66b); docs/sources.md#rdma.
 */
#include "models/rdma/ib_link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRACTION_LOG2     32
#define PACKET_POOL       "ib packet"
#define LRH_BYTES         8u
#define BTH_BYTES         12u
#define RETH_BYTES        16u
#define ATOMIC_BYTES      28u
#define AETH_BYTES        4u
#define ATOMIC_ACK_BYTES  8u
#define IMMEDIATE_BYTES   4u
#define ICRC_VCRC_BYTES   6u
#define DELIMITER_BYTES   2u
#define FLOW_PACKET_BYTES 8u
#define DIRECTION_NAME    160
/* Below, the time of a packet does not fit in 2^-32 ps and 64 bits. */
#define RATE_GBIT_S_MIN 0.1

struct ib_direction {
    struct ib_wire *wire;
    struct ib_port *from, *to;
    struct sim_random random;
    sim_time free_ps; /* what was sent has left */
    uint64_t free_fraction;
    struct sim_event left;          /* pending while a packet leaves */
    uint64_t credits, all;          /* that the sender has; of the whole buffer */
    bool waits;                     /* the sender wants ready() when credits come */
    uint64_t freed;                 /* by the receiver, not on their way back yet */
    uint64_t returning;             /* in the flow-control packet that is under way */
    struct sim_event credited;      /* pending while there is one */
    struct ib_packet *head, **tail; /* under way */
    uint64_t in_flight;
    struct ib_stats stats;
};

struct ib_wire {
    struct sim *sim;
    struct sim_pool *packets;
    struct ib_wire_params params;
    uint64_t byte_fx; /* 2^-32 ps */
    bool up;
    struct ib_direction direction[2];
};

const struct param_desc ib_wire_params_table[] = {
    PARAM("rate_gbit_s", PARAM_RATE, struct ib_wire_params, rate_gbit_s, 0, 0, 1600, PROV_DATASHEET,
          "docs/sources.md#rdma", "data rate behind the encoding; 0: the lower of both ports"),
    PARAM("latency_ns", PARAM_TIME, struct ib_wire_params, latency_ps, 50, 0, 1e9, PROV_ESTIMATE,
          "docs/sources.md#rdma", "one way: SerDes of both ends; propagation comes with length_m"),
    PARAM("loss_ratio", PARAM_DOUBLE, struct ib_wire_params, loss_ratio, 0, 0, 1, PROV_NONE, "",
          "share of packets that are lost at random, for tests of retransmission"),
    { .type = PARAM_END },
};

const struct stat_desc ib_stats_table[] = {
    STAT("packets", STAT_COUNTER, struct ib_stats, packets, "1", 0, "data packets sent"),
    STAT("bytes", STAT_COUNTER, struct ib_stats, bytes, "bytes", 0,
         "bytes sent with headers, checks and delimiters"),
    STAT("payload_bytes", STAT_COUNTER, struct ib_stats, payload_bytes, "bytes", 0,
         "payload of these packets"),
    STAT("lost", STAT_COUNTER, struct ib_stats, lost, "1", 0,
         "packets that were sent and lost (loss_ratio, link down)"),
    STAT("flow_packets", STAT_COUNTER, struct ib_stats, flow_packets, "1", 0,
         "flow-control packets sent"),
    STAT("credit_waits", STAT_COUNTER, struct ib_stats, credit_waits, "1", 0,
         "times that a packet waited for credits"),
    STAT("busy_ns", STAT_COUNTER, struct ib_stats, busy_ps, "ns", 0.001,
         "time that packets occupied the wire"),
    { .kind = STAT_END },
};

/* ---- Packets --------------------------------------------------------------------------------- */

uint32_t ib_packet_bytes(const struct ib_packet *packet)
{
    static const uint8_t extended[N_IB_OPCODES] = {
        [IB_SEND_LAST_IMM] = IMMEDIATE_BYTES,
        [IB_SEND_ONLY_IMM] = IMMEDIATE_BYTES,
        [IB_WRITE_FIRST] = RETH_BYTES,
        [IB_WRITE_LAST_IMM] = IMMEDIATE_BYTES,
        [IB_WRITE_ONLY] = RETH_BYTES,
        [IB_WRITE_ONLY_IMM] = RETH_BYTES + IMMEDIATE_BYTES,
        [IB_READ_REQUEST] = RETH_BYTES,
        [IB_READ_FIRST] = AETH_BYTES,
        [IB_READ_LAST] = AETH_BYTES,
        [IB_READ_ONLY] = AETH_BYTES,
        [IB_ACK] = AETH_BYTES,
        [IB_ATOMIC_ACK] = AETH_BYTES + ATOMIC_ACK_BYTES,
        [IB_COMPARE_SWAP] = ATOMIC_BYTES,
        [IB_FETCH_ADD] = ATOMIC_BYTES,
    };
    return LRH_BYTES + BTH_BYTES + extended[packet->opcode] + ((packet->bytes + 3) & ~3u) +
           ICRC_VCRC_BYTES;
}

struct sim_pool *ib_packet_pool(struct sim *sim)
{
    return sim_pool_shared(sim, PACKET_POOL, sizeof(struct ib_packet));
}

struct ib_packet *ib_packet_new(struct sim_pool *pool)
{
    struct ib_packet *packet = sim_pool_get(pool);
    memset(packet, 0, offsetof(struct ib_packet, payload));
    return packet;
}

/* ---- Sending --------------------------------------------------------------------------------- */

static inline struct ib_direction *direction_of(const struct ib_port *port)
{
    return &port->wire->direction[port->end];
}

/* Occupies the wire from now, or from the end of what leaves, on; returns when it has left. */
static sim_time occupy(struct ib_direction *direction, uint32_t bytes)
{
    const struct ib_wire *wire = direction->wire;
    const sim_time now_ps = sim_now(wire->sim);
    sim_time start_ps = direction->free_ps;
    uint64_t fraction = direction->free_fraction;
    if (now_ps > start_ps) {
        start_ps = now_ps;
        fraction = 0;
    }
    const uint64_t whole = bytes * wire->byte_fx + fraction;
    direction->free_ps = start_ps + (whole >> FRACTION_LOG2);
    direction->free_fraction = whole & ((UINT64_C(1) << FRACTION_LOG2) - 1);
    return direction->free_ps;
}

bool ib_port_ready(struct ib_port *port, const struct ib_packet *packet)
{
    struct ib_direction *direction = direction_of(port);
    if (sim_event_pending(&direction->left))
        return false;
    if (ib_packet_credits(packet) <= direction->credits)
        return true;
    direction->stats.credit_waits += !direction->waits;
    direction->waits = true;
    return false;
}

static void packet_left(struct sim *sim, struct sim_event *event)
{
    struct ib_direction *direction = SIM_CONTAINER(event, struct ib_direction, left);
    (void)sim;
    direction->from->ready(direction->from);
}

static void packet_arrives(struct sim *sim, struct sim_event *event)
{
    struct ib_packet *packet = SIM_CONTAINER(event, struct ib_packet, event);
    struct ib_direction *direction = packet->direction;
    (void)sim;
    direction->head = packet->next;
    if (direction->head == NULL)
        direction->tail = &direction->head;
    direction->in_flight--;
    packet->next = NULL;
    if (SIM_UNLIKELY(packet->lost)) {
        direction->stats.lost++;
        ib_port_release(direction->to, ib_packet_credits(packet));
        sim_pool_put(direction->wire->packets, packet);
        return;
    }
    direction->to->receive(direction->to, packet);
}

void ib_port_send(struct ib_port *port, struct ib_packet *packet)
{
    struct ib_direction *direction = direction_of(port);
    struct ib_wire *wire = direction->wire;
    const uint32_t bytes = ib_packet_bytes(packet) + DELIMITER_BYTES;
    SIM_ASSERT(!sim_event_pending(&direction->left) &&
                   ib_packet_credits(packet) <= direction->credits,
               "%s sends without being ready", port->name);
    direction->credits -= ib_packet_credits(packet);
    const sim_time left_ps = occupy(direction, bytes);
    packet->direction = direction;
    packet->next = NULL;
    packet->tail_ps = left_ps + wire->params.latency_ps;
    packet->lost = !wire->up || (wire->params.loss_ratio > 0 &&
                                 sim_random_unit(&direction->random) < wire->params.loss_ratio);
    *direction->tail = packet;
    direction->tail = &packet->next;
    direction->in_flight++;
    direction->stats.packets++;
    direction->stats.bytes += bytes;
    direction->stats.payload_bytes += packet->bytes;
    direction->stats.busy_ps += (bytes * wire->byte_fx) >> FRACTION_LOG2;
    sim_event_init(&packet->event, packet_arrives);
    sim_schedule(wire->sim, &packet->event, packet->tail_ps);
    sim_schedule(wire->sim, &direction->left, left_ps);
}

/* ---- Credits --------------------------------------------------------------------------------- */

/* Sends what was freed in `direction` back through the other one. */
static void send_credits(struct ib_direction *direction)
{
    struct ib_wire *wire = direction->wire;
    struct ib_direction *back = &wire->direction[direction->to->end];
    direction->returning = direction->freed;
    direction->freed = 0;
    back->stats.flow_packets++;
    sim_schedule(wire->sim, &direction->credited,
                 occupy(back, FLOW_PACKET_BYTES) + wire->params.latency_ps);
}

static void credits_arrive(struct sim *sim, struct sim_event *event)
{
    struct ib_direction *direction = SIM_CONTAINER(event, struct ib_direction, credited);
    (void)sim;
    direction->credits += direction->returning;
    direction->returning = 0;
    if (direction->freed != 0)
        send_credits(direction);
    if (direction->waits) {
        direction->waits = false;
        if (!sim_event_pending(&direction->left))
            direction->from->ready(direction->from);
    }
}

void ib_port_release(struct ib_port *port, uint32_t credits)
{
    struct ib_direction *direction = &port->wire->direction[1 - port->end];
    direction->freed += credits;
    if (!sim_event_pending(&direction->credited))
        send_credits(direction);
}

/* ---- Wires ----------------------------------------------------------------------------------- */

static double rate_of(const struct ib_wire_params *params, const struct ib_port *a,
                      const struct ib_port *b)
{
    return params->rate_gbit_s != 0 ? params->rate_gbit_s
                                    : SIM_MIN(a->rate_gbit_s_max, b->rate_gbit_s_max);
}

static bool wire_fits(const struct ib_wire_params *params, const struct ib_port *a,
                      const struct ib_port *b, const char *file, int line,
                      struct sim_error_list *errors)
{
    const struct ib_port *const ports[2] = { a, b };
    const double rate = rate_of(params, a, b);
    const size_t before = errors->n_messages;
    if (rate < RATE_GBIT_S_MIN)
        sim_error_add(errors, file, line,
                      "an InfiniBand wire of %g Gbit/s; expected at least %g Gbit/s", rate,
                      RATE_GBIT_S_MIN);
    if (a == b)
        sim_error_add(errors, file, line, "both ends are InfiniBand port %s", a->name);
    for (unsigned i = 0; i < 2; i++) {
        if (ports[i]->wire != NULL)
            sim_error_add(errors, file, line, "InfiniBand port %s is plugged twice",
                          ports[i]->name);
        if (rate > ports[i]->rate_gbit_s_max)
            sim_error_add(errors, file, line,
                          "a wire of %g Gbit/s, but InfiniBand port %s has at most %g Gbit/s", rate,
                          ports[i]->name, ports[i]->rate_gbit_s_max);
    }
    return errors->n_messages == before;
}

static void direction_init(struct ib_wire *wire, struct ib_direction *direction, const char *name,
                           struct ib_port *from, struct ib_port *to)
{
    char instance[DIRECTION_NAME];
    snprintf(instance, sizeof(instance), "%s:%s", name, from->name);
    sim_random_init(&direction->random, sim_seed(wire->sim), instance);
    direction->wire = wire;
    direction->from = from;
    direction->to = to;
    direction->tail = &direction->head;
    direction->credits = direction->all = to->buffer_bytes / IB_CREDIT_BYTES;
    sim_event_init(&direction->left, packet_left);
    sim_event_init(&direction->credited, credits_arrive);
}

struct ib_wire *ib_wire_new(struct sim *sim, const char *name, const struct ib_wire_params *params,
                            struct ib_port *a, struct ib_port *b, const char *file, int line,
                            struct sim_error_list *errors)
{
    if (!wire_fits(params, a, b, file, line, errors))
        return NULL;
    struct ib_wire *wire = sim_zalloc(1, sizeof(*wire));
    wire->sim = sim;
    wire->params = *params;
    wire->params.rate_gbit_s = rate_of(params, a, b);
    wire->byte_fx = (uint64_t)(8000.0 / wire->params.rate_gbit_s * 4294967296.0 + 0.5);
    wire->packets = ib_packet_pool(sim);
    wire->up = true;
    a->wire = b->wire = wire;
    a->end = 0;
    b->end = 1;
    direction_init(wire, &wire->direction[0], name, a, b);
    direction_init(wire, &wire->direction[1], name, b, a);
    return wire;
}

void ib_wire_free(struct ib_wire *wire)
{
    if (wire == NULL)
        return;
    for (unsigned i = 0; i < 2; i++) {
        sim_cancel(wire->sim, &wire->direction[i].left);
        sim_cancel(wire->sim, &wire->direction[i].credited);
        wire->direction[i].from->wire = NULL;
    }
    free(wire);
}

bool ib_port_up(const struct ib_port *port)
{
    return port->wire != NULL && port->wire->up;
}

double ib_port_rate_gbit_s(const struct ib_port *port)
{
    return port->wire->params.rate_gbit_s;
}

struct ib_stats *ib_port_stats(struct ib_port *port)
{
    return &direction_of(port)->stats;
}

uint64_t ib_port_in_flight(const struct ib_port *port)
{
    return direction_of(port)->in_flight;
}

bool ib_port_idle(const struct ib_port *port)
{
    const struct ib_direction *direction = direction_of(port);
    return direction->in_flight == 0 && direction->credits == direction->all;
}

void ib_port_link(struct ib_port *port, bool up)
{
    struct ib_wire *wire = port->wire;
    if (wire->up == up)
        return;
    wire->up = up;
    for (unsigned i = 0; i < 2; i++) {
        struct ib_direction *direction = &wire->direction[i];
        for (struct ib_packet *packet = direction->head; !up && packet != NULL;
             packet = packet->next)
            packet->lost = true;
        if (direction->to->up != NULL)
            direction->to->up(direction->to, up);
    }
}

/* ---- A kind of cable ------------------------------------------------------------------------- */

static void *join(const struct cable_plan *plan, struct sim_error_list *errors)
{
    struct ib_port *from = plan->port[0];
    return ib_wire_new(from->model->sim, plan->name, plan->params, from, plan->port[1], plan->file,
                       plan->line, errors);
}

static void wire_free(void *wire)
{
    ib_wire_free(wire);
}

static void *stats_of(void *port)
{
    return ib_port_stats(port);
}

static void describe(const void *port, char *text, size_t bytes)
{
    snprintf(text, bytes, "%g Gbit/s", ib_port_rate_gbit_s(port));
}

static bool check_idle(struct sim *sim, void *const *ports, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        const struct ib_port *port = ports[i];
        if (!ib_port_idle(port)) {
            sim_fail(sim,
                     "%llu InfiniBand packets sent by %s are still on the wire, or credits lost",
                     (unsigned long long)ib_port_in_flight(port), port->name);
            return false;
        }
    }
    const uint64_t live = sim_pool_live(ib_packet_pool(sim));
    if (live != 0)
        sim_fail(sim, "%llu InfiniBand packets are still held by a device",
                 (unsigned long long)live);
    return live == 0;
}

const struct cable_kind ib_cable = {
    .name = "InfiniBand",
    .type = "infiniband",
    .help = "a cable between InfiniBand ports: settings of `cables`",
    .suffix = 'i',
    .port_bytes = sizeof(struct ib_port),
    .params = ib_wire_params_table,
    .params_bytes = sizeof(struct ib_wire_params),
    .latency_offset = offsetof(struct ib_wire_params, latency_ps),
    .join = join,
    .free = wire_free,
    .stats = ib_stats_table,
    .port_stats = stats_of,
    .describe = describe,
    .check_idle = check_idle,
};
