/*
 * Ethernet: frames, ports and the wires between them. A wire serialises frames at its rate with
 * preamble, inter-frame gap and FCS, and may lose some (for tests). A receiver may stop the sender
 * (PAUSE, IEEE 802.3 annex 31B). Timing: see the head of ether.c.
 */
#ifndef MODELS_ETHER_ETHER_H
#define MODELS_ETHER_ETHER_H

#include "models/base/cable.h"
#include "models/base/payload.h"

#define ETHER_HEADER_BYTES_MAX 128u
/* Preamble and start delimiter 8, inter-frame gap 12, FCS 4 (IEEE 802.3). */
#define ETHER_OVERHEAD_BYTES  24u
#define ETHER_FRAME_BYTES_MIN 60u /* without FCS */

/* A frame of ether_frame_new(). It has one owner; sending transfers it. */
struct ether_frame {
    struct ether_frame *next; /* the owner's */
    struct sim_event event;   /* the owner's */
    sim_time tail_ps;         /* last bit at the receiver; set by the wire */
    uint16_t header_bytes;    /* real bytes, Ethernet header first, no FCS */
    uint8_t header[ETHER_HEADER_BYTES_MAX];
    struct payload payload;
    void *cookie; /* for the use of the sender while the frame is on the wire, else of the owner */
    /* private to ether.c */
    struct ether_direction *direction;
    sim_time asked_ps, start_ps, before_ps;
    uint64_t before_fraction;
    bool lost;
};
static inline uint32_t ether_frame_bytes(const struct ether_frame *frame)
{
    uint32_t bytes = frame->header_bytes + frame->payload.bytes;
    return bytes < ETHER_FRAME_BYTES_MIN ? ETHER_FRAME_BYTES_MIN : bytes;
}

struct ether_wire;
struct ether_port;
/* Takes a whole frame, called receive_latency_ps after its tail. */
typedef void ether_receive_fn(struct ether_port *port, struct ether_frame *frame);
/* The wire went down or came up. */
typedef void ether_link_fn(struct ether_port *port, bool up);
/* Called on PAUSE: the last bit of a frame leaves at another time than ether_port_send() returned;
 * SIM_TIME_MAX while the other side stops the port. Called for the frames in their order, then with
 * NULL when the port may send again. */
typedef void ether_retime_fn(struct ether_port *port, struct ether_frame *frame, sim_time left_ps);
struct ether_port {
    struct model *model;
    uint32_t idx;     /* among the model's Ethernet ports */
    const char *name; /* "client_nic.e0"; set by whoever joins it with a wire, if not before */
    double rate_gbit_s_max;
    /* The receiver's own pipeline. Frames are handed over so much later, which saves an event each.
     */
    sim_time receive_latency_ps;
    ether_receive_fn *receive;
    ether_link_fn *link;     /* may be NULL */
    ether_retime_fn *retime; /* may be NULL */
    bool flow_control;       /* offers PAUSE; in force if both ends of the wire do */
    /* The size of a receive buffer that must hold the headroom and two packets, which is checked.
     * 0: the model manages its buffers. */
    uint64_t buffer_bytes;
    uint32_t mtu_bytes; /* its longest packet, without Ethernet header */
    /* private to ether.c */
    struct ether_wire *wire;
    unsigned end;
};

struct ether_wire_params {
    double rate_gbit_s;  /* 0: the lower of both ports */
    sim_time latency_ps; /* PHYs and propagation, one way */
    double loss_ratio;   /* of frames; for tests of retransmission */
};
extern const struct param_desc ether_wire_params_table[];
/* The wire as a kind of cable: ports are DEVICE.e0, DEVICE.e1, ... */
extern const struct cable_kind ether_cable;

/* Per direction (sent by this port). */
struct ether_stats {
    uint64_t frames, bytes, lost; /* bytes with overhead; lost ones are counted in both */
    sim_time busy_ps;
    uint64_t pause_frames; /* of them; those that say "go on" included */
    sim_time paused_ps;    /* the other side's PAUSE kept this direction from sending */
    /* Not of the table: frames that begin to leave after now, by the last call of
     * ether_port_stats(), which has taken them off what is above. */
    uint64_t ahead_frames, ahead_bytes, ahead_busy_ps;
    struct stat_peak wire; /* of bytes; its slack: the frame that began last */
};
extern const struct stat_desc ether_stats_table[];

/* Joins two ports. The caller owns the wire. Returns NULL after adding mistakes to errors. */
struct ether_wire *ether_wire_new(struct sim *sim, const char *name,
                                  const struct ether_wire_params *params, struct ether_port *a,
                                  struct ether_port *b, const char *file, int line,
                                  struct sim_error_list *errors);
void ether_wire_free(struct ether_wire *wire);
static inline bool ether_port_connected(const struct ether_port *port)
{
    return port->wire != NULL;
}
/* Connected, and the wire is up. */
bool ether_port_up(const struct ether_port *port);
struct ether_port *ether_port_peer(const struct ether_port *port);
double ether_port_rate_gbit_s(const struct ether_port *port);

/* Returns an empty frame from the pool that all models of the run share; the caller owns it. At
 * least one of the model's Ethernet ports must be connected, as for the two functions below. */
struct ether_frame *ether_frame_new(struct model *model);
/* Returns a new frame with the header and payload of `frame`. */
struct ether_frame *ether_frame_copy(struct model *model, const struct ether_frame *frame);
void ether_frame_free(struct model *model, struct ether_frame *frame);
/* The number of frames of the run that have not been freed. */
uint64_t ether_frames_live(struct sim *sim);
/* When the port can begin to send another frame (>= now); SIM_TIME_MAX while it is paused. */
sim_time ether_port_free_ps(const struct ether_port *port);
/* The bytes, overhead included, that would be queued before a frame sent at at_ps (>= now). */
uint64_t ether_port_queued_bytes(const struct ether_port *port, sim_time at_ps);
/* Takes the frame; its first bit leaves at at_ps (>= now) at the earliest and after the frames sent
 * before. Returns when its last bit leaves; SIM_TIME_MAX while the port is paused, see
 * ether_retime_fn. A wire that is down loses the frame. The port must be connected. */
sim_time ether_port_send(struct ether_port *port, struct ether_frame *frame, sim_time at_ps);
/* The wire goes down (frames are lost) or up. */
void ether_port_link(struct ether_port *port, bool up);
/* Of frames that begin to leave by now. Must be called again to read it later. */
struct ether_stats *ether_port_stats(struct ether_port *port);
/* The number of frames sent whose time of arrival is not over, lost ones included. */
uint64_t ether_port_in_flight(const struct ether_port *port);

/* ---- Taps ------------------------------------------------------------------------------------ */
/* Sees all frames of a wire. */
struct ether_tap {
    /* A frame has come to its end: it is about to be handed to the receiver or, if it was lost,
     * freed. start_ps: when its first bit left; from: the port that sent it. Must change
     * nothing. */
    void (*frame)(struct ether_tap *tap, const struct ether_port *from,
                  const struct ether_frame *frame, sim_time start_ps, bool lost);
};
/* Attaches the tap, which the caller owns, to the port's wire; NULL: detaches it. */
void ether_port_set_tap(struct ether_port *port, struct ether_tap *tap);
/* No frame that the port has sent, or will send, and that a tap has not seen begins to leave before
 * this. */
sim_time ether_port_oldest_ps(const struct ether_port *port);

/* ---- Flow control ---------------------------------------------------------------------------- */
/* Whether both ends offer flow control. */
bool ether_port_flow_control(const struct ether_port *port);
/* Tells the other end to stop, repeatedly, or to go on. The PAUSE frame passes frames that have not
 * begun to leave. No effect if the other end was told so already, or without flow control. */
void ether_port_pause(struct ether_port *port, bool stop);
/* The bytes that may still arrive after ether_port_pause(), for frames of mtu_bytes and the wire's
 * rate and latency: the room that a receiver must keep free. */
uint64_t ether_port_headroom_bytes(const struct ether_port *port, uint32_t mtu_bytes);

/* A receive buffer that stops the other end before it overflows: PAUSE above xoff, its end at or
 * below xon. */
struct ether_buffer {
    struct ether_port *port;
    uint64_t used_bytes;
    uint64_t xoff_bytes, xon_bytes;
    bool pausing;
};
/* Before time starts, ports wired. Thresholds as the driver of mlx5 sets them (en/port_buffer.c):
 * above xoff there is room for what may still come in; xon lies a frame below. A buffer that is too
 * small for that has no flow control: ether_wire_new() refuses it. */
void ether_buffer_init(struct ether_buffer *buffer, struct ether_port *port, uint64_t size_bytes,
                       uint32_t mtu_bytes);
static inline void ether_buffer_take(struct ether_buffer *buffer, uint32_t bytes)
{
    buffer->used_bytes += bytes;
    if (SIM_UNLIKELY(buffer->used_bytes > buffer->xoff_bytes && !buffer->pausing)) {
        buffer->pausing = true;
        ether_port_pause(buffer->port, true);
    }
}
static inline void ether_buffer_give_back(struct ether_buffer *buffer, uint32_t bytes)
{
    buffer->used_bytes -= bytes;
    if (SIM_UNLIKELY(buffer->pausing && buffer->used_bytes <= buffer->xon_bytes)) {
        buffer->pausing = false;
        ether_port_pause(buffer->port, false);
    }
}

#endif
