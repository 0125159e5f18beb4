/*
 * Models: full-duplex wires between two Ethernet ports: serialisation at the wire's rate with
 *   preamble, FCS and inter-frame gap, minimum frame size, latency, random loss, link down, flow
 *   control by PAUSE frames between ports that both offer it.
 * Does not model: bit errors within frames, priority flow control, auto-negotiation, FEC (its
 *   latency is part of the wire's), jitter.
 * Timing: start = max(asked, end of the frame before); tail = start + (8 + frame + 4 bytes) / rate
 *   + latency; the next frame may start (frame + 24 bytes) / rate after start. A byte takes
 *   8 / rate, kept in 2^-32 ps with the fraction carried from frame to frame. The receiver's
 *   model gets the frame at tail + its port's receive_latency. A PAUSE frame goes before what has
 *   not begun to leave, and acts at tail + receive_latency: what has begun by then leaves, the
 *   rest waits for n x 512 bit times or for the next PAUSE frame.
 * Sources: IEEE 802.3-2018, 3.1.1 (preamble and delimiter 8 bytes, FCS 4, at least 64 with FCS),
 *   4.4.2 (inter-frame gap 96 bits), annex 31B (PAUSE; at 100 Gb/s a station may take 394 quanta to
 *   stop); room for what comes in until then: Linux 4.20, mlx5 en/port_buffer.c, calculate_xoff();
 *   docs/sources.md#a5.
 *
 * One event per frame: a direction keeps its frames in their order, and the first has its event, so
 * that times of the others can change without touching the queue of events.
 */
#include "models/ether/ether.h"

#include <stdlib.h>
#include <string.h>

#define GAP_BYTES      12u
#define HEADER_BYTES   14u
#define FRACTION_LOG2  32
#define FRAME_POOL     "ether frame"
#define DIRECTION_NAME 160
/* Below, the time of a jumbo frame does not fit in 2^-32 ps and 64 bits. */
#define RATE_GBIT_S_MIN 0.1

/* PAUSE frames say so long; it is said again when half of it is over. */
#define PAUSE_QUANTA     0xffffu
#define QUANTUM_BYTES    64u /* 512 bits */
#define TYPE_MAC_CONTROL 0x8808u
#define OPCODE_PAUSE     0x0001u

struct ether_direction {
    struct ether_port *from, *to;
    struct sim_random random;
    sim_time free_ps;                 /* end of what was sent, gap included, without what is held */
    uint64_t free_fraction;           /* of a picosecond, in 2^-32 */
    struct ether_frame *head, **tail; /* have not arrived, in order; the head's event is pending
                                         unless it is held */
    struct ether_frame *held;         /* the first that is held; NULL: none */
    uint64_t held_bytes;              /* with overhead */
    uint64_t in_flight;
    /* what the receiver said */
    bool paused;
    sim_time paused_since_ps;
    struct sim_event resume; /* nothing was said any more */
    /* what this side says to the other */
    bool pausing;
    struct sim_event refresh;
    struct ether_stats stats;
};

struct ether_wire {
    struct sim *sim;
    struct sim_pool *frames;
    struct ether_wire_params params;
    uint64_t byte_fx; /* 2^-32 ps */
    bool up;
    struct ether_tap *tap; /* NULL: none */
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
    STAT_BOUNDED("bytes", struct ether_stats, bytes, "bytes", 0,
                 "bytes sent with preamble, FCS and gap", wire),
    STAT("lost", STAT_COUNTER, struct ether_stats, lost, "1", 0,
         "frames that were sent and lost (loss_ratio, link down)"),
    STAT("busy_ns", STAT_COUNTER, struct ether_stats, busy_ps, "ns", 0.001,
         "time that frames and their gaps occupied the wire"),
    STAT("pause_frames", STAT_COUNTER, struct ether_stats, pause_frames, "1", 0,
         "PAUSE frames sent, to stop the other side or to let it go on"),
    STAT("paused_ns", STAT_COUNTER, struct ether_stats, paused_ps, "ns", 0.001,
         "time that PAUSE frames from the other side kept this one from sending; counted when it "
         "ends"),
    { .kind = STAT_END },
};

/* ---- Frames ---------------------------------------------------------------------------------- */

static inline struct sim_pool *frames_of(const struct model *model)
{
    uint32_t n;
    const struct ether_port *port = model_ports(model, &ether_cable, &n);
    for (uint32_t i = 0; i < n; i++)
        if (port[i].wire != NULL)
            return port[i].wire->frames;
    return sim_pool_shared(model->sim, FRAME_POOL, sizeof(struct ether_frame)); /* wires are gone */
}

struct ether_frame *ether_frame_new(struct model *model)
{
    struct ether_frame *frame = sim_pool_get(frames_of(model));
    frame->next = NULL;
    frame->header_bytes = 0;
    frame->payload.bytes = 0;
    frame->payload.n = 0;
    frame->cookie = NULL;
    frame->direction = NULL;
    frame->lost = false;
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

/* ---- Sending --------------------------------------------------------------------------------- */

static inline struct ether_direction *direction_of(const struct ether_port *port)
{
    return &port->wire->direction[port->end];
}

/* The wire's time for so many bytes, in 2^-32 ps. */
static inline uint64_t wire_fx(const struct ether_wire *wire, uint64_t bytes)
{
    return bytes * wire->byte_fx;
}

sim_time ether_port_free_ps(const struct ether_port *port)
{
    const struct ether_direction *direction = direction_of(port);
    if (direction->paused)
        return SIM_TIME_MAX;
    return SIM_MAX(direction->free_ps, sim_now(port->wire->sim));
}

uint64_t ether_port_queued_bytes(const struct ether_port *port, sim_time at_ps)
{
    const struct ether_direction *direction = direction_of(port);
    double bytes_per_ps = port->wire->params.rate_gbit_s / 8000.0;
    uint64_t leaving = 0;
    if (direction->free_ps > at_ps)
        leaving = (uint64_t)((double)(direction->free_ps - at_ps) * bytes_per_ps);
    return leaving + direction->held_bytes;
}

/* Gives the frame its place behind what was sent; returns when its last bit, before the gap, has
 * left. */
static sim_time occupy(const struct ether_wire *wire, struct ether_direction *direction,
                       struct ether_frame *frame)
{
    uint32_t bytes = ether_frame_bytes(frame) + ETHER_OVERHEAD_BYTES;
    frame->before_ps = direction->free_ps;
    frame->before_fraction = direction->free_fraction;
    frame->start_ps = direction->free_ps;
    uint64_t fraction = direction->free_fraction;
    if (frame->asked_ps > frame->start_ps) {
        frame->start_ps = frame->asked_ps;
        fraction = 0;
    }
    uint64_t whole = wire_fx(wire, bytes) + fraction;
    uint64_t tail = wire_fx(wire, bytes - GAP_BYTES) + fraction;
    direction->free_ps = frame->start_ps + (whole >> FRACTION_LOG2);
    direction->free_fraction = whole & ((UINT64_C(1) << FRACTION_LOG2) - 1);
    sim_time left_ps = frame->start_ps + (tail >> FRACTION_LOG2);
    frame->tail_ps = left_ps + wire->params.latency_ps;
    return left_ps;
}

static void count(const struct ether_wire *wire, struct ether_stats *stats,
                  const struct ether_frame *frame)
{
    uint32_t bytes = ether_frame_bytes(frame) + ETHER_OVERHEAD_BYTES;
    stats->frames++;
    stats->bytes += bytes;
    stats->busy_ps += wire_fx(wire, bytes) >> FRACTION_LOG2;
}

static void expect_head(const struct ether_wire *wire, const struct ether_direction *direction)
{
    struct ether_frame *head = direction->head;
    if (head != NULL && head != direction->held && !sim_event_pending(&head->event))
        sim_schedule(wire->sim, &head->event, head->tail_ps + direction->to->receive_latency_ps);
}

static bool is_pause(const struct ether_frame *frame)
{
    const uint8_t *h = frame->header;
    return frame->header_bytes >= 18 && (h[12] << 8 | h[13]) == TYPE_MAC_CONTROL &&
           (h[14] << 8 | h[15]) == OPCODE_PAUSE;
}

static void take_pause(struct ether_wire *wire, struct ether_direction *direction,
                       const struct ether_frame *frame);

static void frame_arrives(struct sim *sim, struct sim_event *event)
{
    struct ether_frame *frame = SIM_CONTAINER(event, struct ether_frame, event);
    struct ether_direction *direction = frame->direction;
    struct ether_wire *wire = direction->from->wire;
    (void)sim;
    direction->head = frame->next;
    if (direction->head == NULL)
        direction->tail = &direction->head;
    direction->in_flight--;
    expect_head(wire, direction);
    if (SIM_UNLIKELY(wire->tap != NULL))
        wire->tap->frame(wire->tap, direction->from, frame, frame->start_ps, frame->lost);
    if (SIM_UNLIKELY(frame->lost)) {
        direction->stats.lost++;
        sim_pool_put(wire->frames, frame);
    } else if (SIM_UNLIKELY(is_pause(frame))) {
        take_pause(wire, &wire->direction[direction->to->end], frame);
        sim_pool_put(wire->frames, frame);
    } else {
        frame->next = NULL;
        direction->to->receive(direction->to, frame);
    }
}

sim_time ether_port_send(struct ether_port *port, struct ether_frame *frame, sim_time at_ps)
{
    struct ether_wire *wire = port->wire;
    struct ether_direction *direction = direction_of(port);
    sim_time left_ps = SIM_TIME_MAX;
    frame->direction = direction;
    frame->asked_ps = at_ps;
    frame->event.fire = frame_arrives;
    frame->next = NULL;
    frame->lost = !wire->up || (wire->params.loss_ratio > 0 &&
                                sim_random_unit(&direction->random) < wire->params.loss_ratio);
    *direction->tail = frame;
    direction->tail = &frame->next;
    direction->in_flight++;
    count(wire, &direction->stats, frame);
    if (SIM_UNLIKELY(direction->paused)) {
        direction->held_bytes += ether_frame_bytes(frame) + ETHER_OVERHEAD_BYTES;
        if (direction->held == NULL)
            direction->held = frame;
    } else {
        left_ps = occupy(wire, direction, frame);
        expect_head(wire, direction);
    }
    return left_ps;
}

uint64_t ether_port_in_flight(const struct ether_port *port)
{
    return direction_of(port)->in_flight;
}

/* ---- Taps ------------------------------------------------------------------------------------ */

void ether_port_set_tap(struct ether_port *port, struct ether_tap *tap)
{
    port->wire->tap = tap;
}

sim_time ether_port_oldest_ps(const struct ether_port *port)
{
    const struct ether_direction *direction = direction_of(port);
    const sim_time now_ps = sim_now(port->wire->sim);

    if (direction->head == NULL || direction->head == direction->held)
        return now_ps;
    return SIM_MIN(direction->head->start_ps, now_ps);
}

/* ---- Flow control ---------------------------------------------------------------------------- */

static void retime(const struct ether_direction *direction, struct ether_frame *frame,
                   sim_time left_ps)
{
    if (direction->from->retime != NULL && (frame == NULL || !is_pause(frame)))
        direction->from->retime(direction->from, frame, left_ps);
}

/* Takes back the times of what has not begun to leave. */
static void hold(const struct ether_wire *wire, struct ether_direction *direction)
{
    sim_time now_ps = sim_now(wire->sim);
    struct ether_frame *frame = direction->head;
    while (frame != NULL && frame->start_ps <= now_ps)
        frame = frame->next;
    direction->held = frame;
    if (frame == NULL)
        return;
    if (sim_event_pending(&frame->event))
        sim_cancel(wire->sim, &frame->event);
    direction->free_ps = frame->before_ps;
    direction->free_fraction = frame->before_fraction;
    for (; frame != NULL; frame = frame->next)
        direction->held_bytes += ether_frame_bytes(frame) + ETHER_OVERHEAD_BYTES;
}

/* Gives times to what is held. */
static void let_go(const struct ether_wire *wire, struct ether_direction *direction)
{
    struct ether_frame *frame = direction->held;
    sim_time now_ps = sim_now(wire->sim);
    direction->held = NULL;
    direction->held_bytes = 0;
    for (; frame != NULL; frame = frame->next) {
        frame->asked_ps = SIM_MAX(frame->asked_ps, now_ps);
        retime(direction, frame, occupy(wire, direction, frame));
    }
    expect_head(wire, direction);
}

static void go_on(const struct ether_wire *wire, struct ether_direction *direction)
{
    if (!direction->paused)
        return;
    direction->paused = false;
    direction->stats.paused_ps += sim_now(wire->sim) - direction->paused_since_ps;
    if (sim_event_pending(&direction->resume))
        sim_cancel(wire->sim, &direction->resume);
    let_go(wire, direction);
    retime(direction, NULL, 0);
}

static void pause_is_over(struct sim *sim, struct sim_event *event)
{
    struct ether_direction *direction = SIM_CONTAINER(event, struct ether_direction, resume);
    (void)sim;
    go_on(direction->from->wire, direction);
}

static void stop(const struct ether_wire *wire, struct ether_direction *direction,
                 sim_time pause_ps)
{
    if (direction->paused) {
        sim_cancel(wire->sim, &direction->resume);
    } else {
        direction->paused = true;
        direction->paused_since_ps = sim_now(wire->sim);
        hold(wire, direction);
        for (struct ether_frame *frame = direction->held; frame != NULL; frame = frame->next)
            retime(direction, frame, SIM_TIME_MAX);
    }
    sim_schedule_in(wire->sim, &direction->resume, pause_ps);
}

/* The longest PAUSE at 0.1 Gbit/s: the product has 71 bits. */
static sim_time quanta_ps(const struct ether_wire *wire, uint64_t quanta)
{
    return (sim_time)((unsigned __int128)wire_fx(wire, QUANTUM_BYTES) * quanta >> FRACTION_LOG2);
}

/* A PAUSE frame for the direction came in from the other side. */
static void take_pause(struct ether_wire *wire, struct ether_direction *direction,
                       const struct ether_frame *frame)
{
    uint64_t quanta = (uint64_t)(frame->header[16] << 8 | frame->header[17]);
    if (!ether_port_flow_control(direction->from))
        return;
    if (quanta == 0)
        go_on(wire, direction);
    else
        stop(wire, direction, quanta_ps(wire, quanta));
}

static struct ether_frame *pause_frame(struct ether_wire *wire, struct ether_direction *direction,
                                       uint16_t quanta)
{
    static const uint8_t header[16] = {
        0x01, 0x80, 0xc2, 0, 0, 1, 0x02, 0, 0, 0, 0, 0, 0x88, 0x08, 0, OPCODE_PAUSE,
    };
    struct ether_frame *frame = sim_pool_get(wire->frames);
    *frame = (struct ether_frame){ .direction = direction, .lost = !wire->up };
    frame->header_bytes = 18;
    memcpy(frame->header, header, sizeof(header));
    frame->header[16] = (uint8_t)(quanta >> 8);
    frame->header[17] = (uint8_t)quanta;
    frame->asked_ps = sim_now(wire->sim);
    sim_event_init(&frame->event, frame_arrives);
    return frame;
}

/* Before all that has not begun to leave; PAUSE holds up no PAUSE frame. */
static void send_pause(struct ether_wire *wire, struct ether_direction *direction, uint16_t quanta)
{
    struct ether_frame *frame = pause_frame(wire, direction, quanta), **link = &direction->head;
    if (!direction->paused)
        hold(wire, direction);
    while (*link != direction->held)
        link = &(*link)->next;
    frame->next = *link;
    *link = frame;
    if (frame->next == NULL)
        direction->tail = &frame->next;
    direction->in_flight++;
    count(wire, &direction->stats, frame);
    direction->stats.pause_frames++;
    occupy(wire, direction, frame);
    if (!direction->paused)
        let_go(wire, direction);
    expect_head(wire, direction);
}

static void pause_again(struct sim *sim, struct sim_event *event)
{
    struct ether_direction *direction = SIM_CONTAINER(event, struct ether_direction, refresh);
    struct ether_wire *wire = direction->from->wire;
    send_pause(wire, direction, PAUSE_QUANTA);
    sim_schedule_in(sim, &direction->refresh, quanta_ps(wire, PAUSE_QUANTA / 2));
}

bool ether_port_flow_control(const struct ether_port *port)
{
    return port->wire != NULL && port->flow_control && direction_of(port)->to->flow_control;
}

void ether_port_pause(struct ether_port *port, bool stop_it)
{
    if (!ether_port_flow_control(port) || direction_of(port)->pausing == stop_it)
        return;
    struct ether_direction *direction = direction_of(port);
    direction->pausing = stop_it;
    if (stop_it) {
        pause_again(port->wire->sim, &direction->refresh);
    } else {
        sim_cancel(port->wire->sim, &direction->refresh);
        send_pause(port->wire, direction, 0);
    }
}

/* calculate_xoff() of mlx5: bytes = (301 + 2.16 x metres) x Gb/s + 2.72 x MTU. Its 301 is, by the
 * byte, the 2.4 us that a station and its PHYs may take to stop. Light makes a metre in 5 ns. */
uint64_t ether_port_headroom_bytes(const struct ether_port *port, uint32_t mtu_bytes)
{
    const struct ether_wire_params *params = &port->wire->params;
    double metres = (double)params->latency_ps / 5000.0;
    return (uint64_t)((301 + 2.16 * metres) * params->rate_gbit_s + 2.72 * mtu_bytes);
}

void ether_buffer_init(struct ether_buffer *buffer, struct ether_port *port, uint64_t size_bytes,
                       uint32_t mtu_bytes)
{
    const uint64_t frame = mtu_bytes + 14u;
    const uint64_t headroom = ether_port_connected(port)
                                  ? ether_port_headroom_bytes(port, mtu_bytes)
                                  : 0;

    buffer->port = port;
    buffer->xoff_bytes = size_bytes > headroom + 2 * frame ? size_bytes - headroom : size_bytes / 2;
    buffer->xon_bytes = buffer->xoff_bytes > frame ? buffer->xoff_bytes - frame : 0;
}

/* ---- Wires ----------------------------------------------------------------------------------- */

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
        sim_error_add(errors, file, line,
                      "an Ethernet wire of %g Gbit/s; expected at least %g Gbit/s", rate,
                      RATE_GBIT_S_MIN);
    if (a == b)
        sim_error_add(errors, file, line, "both ends are Ethernet port %s", a->name);
    for (unsigned i = 0; i < 2; i++) {
        if (ports[i]->wire != NULL)
            sim_error_add(errors, file, line, "Ethernet port %s is plugged twice", ports[i]->name);
        if (rate > ports[i]->rate_gbit_s_max)
            sim_error_add(errors, file, line,
                          "a wire of %g Gbit/s, but Ethernet port %s has at most %g Gbit/s", rate,
                          ports[i]->name, ports[i]->rate_gbit_s_max);
    }
    return errors->n_messages == before;
}

/* A buffer that overflows all the same after PAUSE is none that hardware has. */
static bool pause_fits(const struct ether_wire *wire, const char *file, int line,
                       struct sim_error_list *errors)
{
    size_t before = errors->n_messages;
    for (unsigned i = 0; i < 2; i++) {
        const struct ether_port *port = wire->direction[i].from;
        if (port->buffer_bytes == 0 || !ether_port_flow_control(port))
            continue;
        const uint64_t headroom = ether_port_headroom_bytes(port, port->mtu_bytes);
        const uint64_t needed = headroom + 2 * (uint64_t)(port->mtu_bytes + HEADER_BYTES);
        if (port->buffer_bytes <= needed)
            sim_error_add(errors, file, line,
                          "%s has a receive buffer of %llu bytes; with flow_control it takes more "
                          "than %llu on this wire: %llu come in after PAUSE, and two packets",
                          port->name, (unsigned long long)port->buffer_bytes,
                          (unsigned long long)needed, (unsigned long long)headroom);
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
    direction->tail = &direction->head;
    sim_event_init(&direction->resume, pause_is_over);
    sim_event_init(&direction->refresh, pause_again);
}

struct ether_wire *ether_wire_new(struct sim *sim, const char *name,
                                  const struct ether_wire_params *params, struct ether_port *a,
                                  struct ether_port *b, const char *file, int line,
                                  struct sim_error_list *errors)
{
    if (!wire_fits(params, a, b, file, line, errors))
        return NULL;
    struct ether_wire *wire = sim_zalloc(1, sizeof(*wire));
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
    if (pause_fits(wire, file, line, errors))
        return wire;
    ether_wire_free(wire);
    return NULL;
}

void ether_wire_free(struct ether_wire *wire)
{
    if (wire == NULL)
        return;
    for (unsigned i = 0; i < 2; i++) {
        sim_cancel(wire->sim, &wire->direction[i].resume);
        sim_cancel(wire->sim, &wire->direction[i].refresh);
        wire->direction[i].from->wire = NULL;
    }
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

/* Frames are counted when they are sent, which is ahead of the wire or while it is paused: takes
 * off what has not begun to leave, and puts back what had not by the last call. */
static void count_started(const struct ether_wire *wire, struct ether_direction *direction)
{
    const sim_time now_ps = sim_now(wire->sim);
    struct ether_stats *stats = &direction->stats;
    bool held = false;

    stats->frames += stats->ahead_frames;
    stats->bytes += stats->ahead_bytes;
    stats->busy_ps += stats->ahead_busy_ps;
    stats->ahead_frames = stats->ahead_bytes = stats->ahead_busy_ps = 0;
    stats->wire = (struct stat_peak){ wire->params.rate_gbit_s / 8 * 1e9, ETHER_OVERHEAD_BYTES };
    for (const struct ether_frame *frame = direction->head; frame != NULL; frame = frame->next) {
        const uint32_t bytes = ether_frame_bytes(frame) + ETHER_OVERHEAD_BYTES;
        held |= frame == direction->held;
        if (!held && frame->start_ps <= now_ps) {
            stats->wire.slack = ETHER_OVERHEAD_BYTES + bytes;
            continue;
        }
        stats->ahead_frames++;
        stats->ahead_bytes += bytes;
        stats->ahead_busy_ps += wire_fx(wire, bytes) >> FRACTION_LOG2;
    }
    stats->frames -= stats->ahead_frames;
    stats->bytes -= stats->ahead_bytes;
    stats->busy_ps -= stats->ahead_busy_ps;
}

struct ether_stats *ether_port_stats(struct ether_port *port)
{
    count_started(port->wire, direction_of(port));
    return &direction_of(port)->stats;
}

/* A station that loses its link forgets what the other said. */
static void link_lost(struct ether_wire *wire, struct ether_direction *direction)
{
    for (struct ether_frame *frame = direction->head; frame != NULL; frame = frame->next)
        frame->lost = true;
    go_on(wire, direction);
}

/* So what is still to be said is said anew, and not when half of the last pause is over. */
static void link_found(struct ether_wire *wire, struct ether_direction *direction)
{
    if (!direction->pausing || !ether_port_flow_control(direction->from))
        return;
    sim_cancel(wire->sim, &direction->refresh);
    pause_again(wire->sim, &direction->refresh);
}

void ether_port_link(struct ether_port *port, bool up)
{
    struct ether_wire *wire = port->wire;
    if (wire->up == up)
        return;
    wire->up = up;
    for (unsigned i = 0; i < 2; i++) {
        struct ether_direction *direction = &wire->direction[i];
        if (up)
            link_found(wire, direction);
        else
            link_lost(wire, direction);
        if (direction->to->link != NULL)
            direction->to->link(direction->to, up);
    }
}
