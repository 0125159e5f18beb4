/*
 * Models: full-duplex wires between two Ethernet ports: serialisation at the wire's rate with
 *   preamble, FCS and inter-frame gap, minimum frame size, latency, random loss, link down.
 * Does not model: bit errors within frames, PAUSE frames, auto-negotiation, FEC (its latency is
 *   part of the wire's), jitter.
 * Timing: start = max(asked, end of the frame before); tail = start + (8 + frame + 4 bytes) / rate
 *   + latency; the next frame may start (frame + 24 bytes) / rate after start. A byte takes
 *   8 / rate, kept in 2^-32 ps with the fraction carried from frame to frame. The receiver's
 *   model gets the frame at tail + its port's receive_latency.
 * Sources: IEEE 802.3-2018, 3.1.1 (preamble and delimiter 8 bytes, FCS 4, at least 64 with FCS),
 *   4.4.2 (inter-frame gap 96 bits); docs/sources.md#a5.
 *
 * One event per frame. A frame is scheduled for its arrival when it is sent; what is sent later
 * cannot overtake it.
 */
#include "models/nic/ether.h"

#include <stdlib.h>
#include <string.h>

#define GAP_BYTES      12u
#define FRACTION_LOG2  32
#define FRAME_POOL     "ether frame"
#define DIRECTION_NAME 160
/* Below, the time of a jumbo frame does not fit in 2^-32 ps and 64 bits. */
#define RATE_GBIT_S_MIN 0.1

struct ether_direction {
    struct ether_port *from, *to;
    struct sim_random random;
    sim_time free_ps;       /* end of what was sent, gap included */
    uint64_t free_fraction; /* of a picosecond, in 2^-32 */
    uint64_t sequence;      /* of the next frame */
    uint64_t lost_before;   /* frames with a lower number were on the wire when it went down */
    uint64_t in_flight;
    struct ether_stats stats;
};

struct ether_wire {
    struct sim *sim;
    struct sim_pool *frames;
    struct ether_wire_params params;
    uint64_t byte_fx; /* 2^-32 ps */
    bool up;
    struct ether_direction direction[2];
};

const struct param_desc ether_wire_params_table[] = {
    PARAM("rate_gbit_s", PARAM_RATE, struct ether_wire_params, rate_gbit_s, 0, 0, 1600,
          PROV_DATASHEET, "docs/sources.md#a5", "bit rate; 0: the lower of both ports"),
    PARAM("latency_ns", PARAM_TIME, struct ether_wire_params, latency_ps, 50, 0, 1e9, PROV_ESTIMATE,
          "docs/sources.md#a5", "one way: both PHYs; propagation comes with length_m"),
    PARAM("loss_ratio", PARAM_DOUBLE, struct ether_wire_params, loss_ratio, 0, 0, 1, PROV_NONE, "",
          "share of frames that are lost at random, for tests of retransmission"),
    { .type = PARAM_END },
};

const struct stat_desc ether_stats_table[] = {
    STAT("frames", STAT_COUNTER, struct ether_stats, frames, "1", 0, "frames sent"),
    STAT("bytes", STAT_COUNTER, struct ether_stats, bytes, "bytes", 0,
         "bytes sent with preamble, FCS and gap"),
    STAT("lost", STAT_COUNTER, struct ether_stats, lost, "1", 0,
         "frames that were sent and lost (loss_ratio, link down)"),
    STAT("busy_ns", STAT_COUNTER, struct ether_stats, busy_ps, "ns", 0.001,
         "time that frames and their gaps occupied the wire"),
    { .kind = STAT_END },
};

/* ---- Frames -----------------------------------------------------------------------------------
 */

static inline struct sim_pool *frames_of(const struct model *model)
{
    const struct ether_port *port = model->ether_ports;
    while (port->wire == NULL)
        port++;
    return port->wire->frames;
}

struct ether_frame *ether_frame_new(struct model *model)
{
    struct ether_frame *frame = sim_pool_get(frames_of(model));
    frame->next = NULL;
    frame->header_bytes = 0;
    frame->payload.bytes = 0;
    frame->payload.n = 0;
    frame->cookie = NULL;
    frame->private = NULL;
    sim_event_init(&frame->event, NULL);
    return frame;
}

struct ether_frame *ether_frame_copy(struct model *model, const struct ether_frame *frame)
{
    struct ether_frame *copy = ether_frame_new(model);
    copy->header_bytes = frame->header_bytes;
    memcpy(copy->header, frame->header, frame->header_bytes);
    copy->payload.bytes = frame->payload.bytes;
    copy->payload.n = frame->payload.n;
    memcpy(copy->payload.extent, frame->payload.extent,
           frame->payload.n * sizeof(frame->payload.extent[0]));
    return copy;
}

void ether_frame_free(struct model *model, struct ether_frame *frame)
{
    sim_pool_put(frames_of(model), frame);
}

uint64_t ether_frames_live(struct sim *sim)
{
    return sim_pool_live(sim_pool_shared(sim, FRAME_POOL, sizeof(struct ether_frame)));
}

/* ---- Sending ----------------------------------------------------------------------------------
 */

static inline struct ether_direction *direction_of(const struct ether_port *port)
{
    return &port->wire->direction[port->end];
}

static void frame_lost(struct ether_wire *wire, struct ether_direction *direction,
                       struct ether_frame *frame)
{
    direction->stats.lost++;
    sim_pool_put(wire->frames, frame);
}

static void frame_arrives(struct sim *sim, struct sim_event *event)
{
    struct ether_frame *frame = SIM_CONTAINER(event, struct ether_frame, event);
    struct ether_direction *direction = frame->private;
    (void)sim;
    direction->in_flight--;
    if (SIM_UNLIKELY(frame->sequence < direction->lost_before))
        frame_lost(direction->from->wire, direction, frame);
    else
        direction->to->receive(direction->to, frame);
}

sim_time ether_port_wire_ps(const struct ether_port *port, uint32_t bytes)
{
    uint64_t whole = (uint64_t)(bytes + ETHER_OVERHEAD_BYTES) * port->wire->byte_fx;
    return (whole + (UINT64_C(1) << (FRACTION_LOG2 - 1))) >> FRACTION_LOG2;
}

sim_time ether_port_free_ps(const struct ether_port *port)
{
    return SIM_MAX(direction_of(port)->free_ps, sim_now(port->wire->sim));
}

/* Occupies the wire; returns when the last bit, before the gap, has left. */
static sim_time occupy(const struct ether_wire *wire, struct ether_direction *direction,
                       uint32_t bytes, sim_time at_ps)
{
    sim_time start_ps = direction->free_ps;
    uint64_t fraction = direction->free_fraction;
    if (at_ps > start_ps) {
        start_ps = at_ps;
        fraction = 0;
    }
    uint64_t whole = (bytes + ETHER_OVERHEAD_BYTES) * wire->byte_fx + fraction;
    uint64_t tail = (bytes + ETHER_OVERHEAD_BYTES - GAP_BYTES) * wire->byte_fx + fraction;
    direction->free_ps = start_ps + (whole >> FRACTION_LOG2);
    direction->free_fraction = whole & ((UINT64_C(1) << FRACTION_LOG2) - 1);
    direction->stats.frames++;
    direction->stats.bytes += bytes + ETHER_OVERHEAD_BYTES;
    direction->stats.busy_ps += direction->free_ps - start_ps;
    return start_ps + (tail >> FRACTION_LOG2);
}

sim_time ether_port_send(struct ether_port *port, struct ether_frame *frame, sim_time at_ps)
{
    struct ether_wire *wire = port->wire;
    struct ether_direction *direction = direction_of(port);
    sim_time left_ps = occupy(wire, direction, ether_frame_bytes(frame), at_ps);
    bool lost = !wire->up || (wire->params.loss_ratio > 0 &&
                              sim_random_unit(&direction->random) < wire->params.loss_ratio);
    if (SIM_UNLIKELY(lost)) {
        frame_lost(wire, direction, frame);
        return left_ps;
    }
    frame->sequence = direction->sequence++;
    frame->tail_ps = left_ps + wire->params.latency_ps;
    frame->private = direction;
    direction->in_flight++;
    frame->event.fire = frame_arrives;
    sim_schedule(wire->sim, &frame->event, frame->tail_ps + direction->to->receive_latency_ps);
    return left_ps;
}

uint64_t ether_port_in_flight(const struct ether_port *port)
{
    return direction_of(port)->in_flight;
}

/* ---- Wires ------------------------------------------------------------------------------------
 */

static double rate_of(const struct ether_wire_params *params, const struct ether_port *a,
                      const struct ether_port *b)
{
    return params->rate_gbit_s != 0 ? params->rate_gbit_s
                                    : SIM_MIN(a->rate_gbit_s_max, b->rate_gbit_s_max);
}

static bool wire_fits(const struct ether_wire_params *params, const struct ether_port *a,
                      const struct ether_port *b, const char *file, int line,
                      struct sim_error_list *errors)
{
    const struct ether_port *ports[] = { a, b };
    double rate = rate_of(params, a, b);
    size_t before = errors->n_messages;
    if (rate < RATE_GBIT_S_MIN)
        sim_error_add(errors, file, line, "an Ethernet wire of %g Gb/s; expected at least %g Gb/s",
                      rate, RATE_GBIT_S_MIN);
    for (unsigned i = 0; i < 2; i++) {
        if (ports[i]->wire != NULL || a == b)
            sim_error_add(errors, file, line, "Ethernet port %s is plugged twice", ports[i]->name);
        if (rate > ports[i]->rate_gbit_s_max)
            sim_error_add(errors, file, line,
                          "a wire of %g Gb/s, but Ethernet port %s has at most %g Gb/s", rate,
                          ports[i]->name, ports[i]->rate_gbit_s_max);
    }
    return errors->n_messages == before;
}

static void direction_init(struct ether_direction *direction, const struct sim *sim,
                           const char *name, struct ether_port *from, struct ether_port *to)
{
    char instance[DIRECTION_NAME];
    snprintf(instance, sizeof(instance), "%s:%s", name, from->name);
    sim_random_init(&direction->random, sim_seed(sim), instance);
    direction->from = from;
    direction->to = to;
}

struct ether_wire *ether_wire_new(struct sim *sim, const char *name,
                                  const struct ether_wire_params *params, struct ether_port *a,
                                  struct ether_port *b, const char *file, int line,
                                  struct sim_error_list *errors)
{
    if (!wire_fits(params, a, b, file, line, errors))
        return NULL;
    struct ether_wire *wire = calloc(1, sizeof(*wire));
    SIM_ASSERT(wire != NULL, "no memory for an Ethernet wire");
    wire->sim = sim;
    wire->params = *params;
    wire->params.rate_gbit_s = rate_of(params, a, b);
    wire->byte_fx = (uint64_t)(8000.0 / wire->params.rate_gbit_s * 4294967296.0 + 0.5);
    wire->frames = sim_pool_shared(sim, FRAME_POOL, sizeof(struct ether_frame));
    wire->up = true;
    direction_init(&wire->direction[0], sim, name, a, b);
    direction_init(&wire->direction[1], sim, name, b, a);
    a->wire = b->wire = wire;
    a->end = 0;
    b->end = 1;
    return wire;
}

void ether_wire_free(struct ether_wire *wire)
{
    if (wire == NULL)
        return;
    for (unsigned i = 0; i < 2; i++)
        wire->direction[i].from->wire = NULL;
    free(wire);
}

bool ether_port_up(const struct ether_port *port)
{
    return port->wire != NULL && port->wire->up;
}

struct ether_port *ether_port_peer(const struct ether_port *port)
{
    return direction_of(port)->to;
}

double ether_port_rate_gbit_s(const struct ether_port *port)
{
    return port->wire->params.rate_gbit_s;
}

struct ether_stats *ether_port_stats(struct ether_port *port)
{
    return &direction_of(port)->stats;
}

void ether_port_link(struct ether_port *port, bool up)
{
    struct ether_wire *wire = port->wire;
    if (wire->up == up)
        return;
    wire->up = up;
    for (unsigned i = 0; i < 2; i++) {
        struct ether_direction *direction = &wire->direction[i];
        if (!up)
            direction->lost_before = direction->sequence;
        if (direction->to->link != NULL)
            direction->to->link(direction->to, up);
    }
}
