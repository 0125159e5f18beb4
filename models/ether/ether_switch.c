/*
 * ether.switch: forwards frames between its Ethernet ports.
 *
 * Models: store and forward, MAC learning and static entries, flooding of what is not known,
 *   output queues with a limit in bytes (tail drop), link aggregation groups (IEEE 802.1AX) whose
 *   members are chosen by a hash over addresses and ports, so that a flow keeps its order; PAUSE:
 *   obeyed, and sent to the ports whose frames find an output's queue nearly full, until it has
 *   room again.
 * Does not model: ageing of MAC entries (runs last seconds, ageing takes minutes), VLANs, spanning
 *   tree, a shared buffer, a limit of the fabric inside.
 * Timing: first bit out = last bit in + latency, not before the output's earlier frames have left.
 *   A queue is nearly full when what the other ports may still send until they stop
 *   (ether_port_headroom_bytes()) would not find room.
 * Sources: IEEE 802.1Q-2018, 8.6 and 8.8 (forwarding, learning); IEEE 802.1AX-2014, 5.2.4 (frame
 *   order); docs/sources.md#a5.
 *
 * No event per frame: the output's wire keeps the frames that wait for it, in order, and knows how
 * much of them is still queued.
 */
#include "models/ether/ether_switch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/ether/ether_packet.h"

#define PORT_NAME_BYTES 80u
#define MAC_EMPTY       UINT64_MAX
/* Longest frame that flow control reckons with. */
#define FRAME_BYTES_MAX UINT64_C(9216)

struct switch_mac {
    uint64_t mac; /* MAC_EMPTY: free */
    uint32_t group;
    bool fixed;
};

/* What an output has stopped, and when it looks whether that may end. */
struct switch_output {
    struct ether_port *port;
    uint64_t stopped; /* bit i: port e<i> sent too much to this output */
    uint64_t xoff_bytes, xon_bytes;
    struct sim_event relief;
};

/* A port by itself is a group of one. */
struct switch_group {
    uint32_t n_ports;
    uint32_t port[ETHER_SWITCH_PORTS_MAX];
};

struct switch_state {
    uint32_t n_ports, mac_entries;
    double rate_gbit_s;
    sim_time latency_ps;
    uint64_t queue_bytes;
    bool learning, flow_control;
    const char *groups;
    uint32_t n_groups;
    struct switch_group group[ETHER_SWITCH_PORTS_MAX];
    uint32_t group_of[ETHER_SWITCH_PORTS_MAX];
    struct ether_port *port;  /* n_ports; the model's */
    struct switch_mac *table; /* open addressing, linear */
    uint64_t table_mask;
    uint32_t n_macs;
    char (*name)[PORT_NAME_BYTES];
    struct switch_output output[ETHER_SWITCH_PORTS_MAX];
    uint64_t drops[ETHER_SWITCH_PORTS_MAX];
    uint64_t forwarded, flooded, dropped, filtered, learned;
};

static const struct param_desc switch_params[] = {
    PARAM("ports", PARAM_U32, struct switch_state, n_ports, 8, 2, ETHER_SWITCH_PORTS_MAX, PROV_NONE,
          "", "ports e0, e1, ..."),
    PARAM("rate_gbit_s", PARAM_RATE, struct switch_state, rate_gbit_s, 100, 1, 1600, PROV_DATASHEET,
          "docs/sources.md#a5", "highest bit rate of a port"),
    PARAM("latency_ns", PARAM_TIME, struct switch_state, latency_ps, 300, 0, 1e6, PROV_ESTIMATE,
          "docs/sources.md#a5", "last bit in to first bit out"),
    PARAM("queue_bytes", PARAM_BYTES, struct switch_state, queue_bytes, 1048576, 2048, 1e9,
          PROV_ESTIMATE, "docs/sources.md#a5", "most that waits for an output port"),
    PARAM("mac_entries", PARAM_U32, struct switch_state, mac_entries, 4096, 1, 1048576,
          PROV_ESTIMATE, "docs/sources.md#a5", "addresses it can know; others are flooded"),
    PARAM("flow_control", PARAM_BOOL, struct switch_state, flow_control, 1, 0, 1, PROV_ESTIMATE,
          "docs/sources.md#a5",
          "PAUSE frames at each port, if the other end of the wire offers them, too"),
    PARAM("learning", PARAM_BOOL, struct switch_state, learning, 1, 0, 1, PROV_NONE, "",
          "learns source addresses; false: static entries only"),
    PARAM_TEXT("groups", struct switch_state, groups, "",
               "link aggregation groups: \"0+1 2+3\" are two of two ports each"),
    { .type = PARAM_END },
};

static const struct stat_desc switch_stats[] = {
    STAT("forwarded", STAT_COUNTER, struct switch_state, forwarded, "1", 0, "frames sent"),
    STAT("flooded", STAT_COUNTER, struct switch_state, flooded, "1", 0,
         "frames received for an address that is not known, or for all"),
    STAT("dropped", STAT_COUNTER, struct switch_state, dropped, "1", 0,
         "frames dropped because the output queue was full, or no member of its group is up"),
    STAT("filtered", STAT_COUNTER, struct switch_state, filtered, "1", 0,
         "frames for an address behind the port that they came from"),
    STAT("learned", STAT_COUNTER, struct switch_state, learned, "1", 0, "addresses learned"),
    { .kind = STAT_END },
};

/* ---- Addresses ------------------------------------------------------------------------------- */

/* The entry of the MAC, or the free one where it would go. */
static struct switch_mac *find_mac(const struct switch_state *state, uint64_t mac)
{
    uint64_t slot = (mac * UINT64_C(0x9e3779b97f4a7c15)) >> 20;
    while (state->table[slot & state->table_mask].mac != mac &&
           state->table[slot & state->table_mask].mac != MAC_EMPTY)
        slot++;
    return &state->table[slot & state->table_mask];
}

static bool put_mac(struct switch_state *state, uint64_t mac, uint32_t group, bool fixed)
{
    struct switch_mac *entry = find_mac(state, mac);
    if (entry->mac == MAC_EMPTY) {
        if (state->n_macs == state->mac_entries)
            return false;
        state->n_macs++;
        state->learned += !fixed;
        *entry = (struct switch_mac){ .mac = mac };
    }
    entry->fixed |= fixed; /* for good, also if it was learned before */
    if (fixed || !entry->fixed)
        entry->group = group;
    return true;
}

bool ether_switch_add(struct model *model, uint64_t mac, uint32_t port)
{
    struct switch_state *state = model->state;
    SIM_ASSERT(port < state->n_ports, "%s has no port %u", model->name, port);
    return put_mac(state, mac, state->group_of[port], true);
}

uint64_t ether_switch_drops(const struct model *model, uint32_t port)
{
    return ((const struct switch_state *)model->state)->drops[port];
}

/* ---- Forwarding ------------------------------------------------------------------------------ */

/* The member that the packet's flow uses: of those that are up. */
static struct ether_port *member_of(const struct switch_state *state,
                                    const struct switch_group *group,
                                    const struct ether_packet *packet)
{
    struct ether_port *up[ETHER_SWITCH_PORTS_MAX];
    uint32_t n_up = 0;
    for (uint32_t i = 0; i < group->n_ports; i++)
        if (ether_port_up(&state->port[group->port[i]]))
            up[n_up++] = &state->port[group->port[i]];
    if (n_up == 0)
        return NULL;
    return up[n_up == 1 ? 0 : ether_packet_hash_l34(packet) % n_up];
}

/* ---- Flow control ---------------------------------------------------------------------------- */

/* Room for what all the others may send until they stop; XON lies a frame's worth below. */
static void set_thresholds(struct model *model, struct switch_output *output)
{
    struct switch_state *state = model->state;
    uint64_t headroom = 0;
    for (uint32_t i = 0; i < state->n_ports; i++) {
        const struct ether_port *port = &state->port[i];
        if (port != output->port && ether_port_flow_control(port))
            headroom += ether_port_headroom_bytes(port, FRAME_BYTES_MAX);
    }
    output->xoff_bytes = state->queue_bytes > 2 * headroom ? state->queue_bytes - headroom
                                                           : state->queue_bytes / 2;
    output->xon_bytes = output->xoff_bytes - SIM_MIN(output->xoff_bytes, FRAME_BYTES_MAX);
}

/* Looks again when the queue will have drained to XON; a queue that is itself stopped is looked at
 * when it goes on. */
static void expect_relief(struct model *model, struct switch_output *output)
{
    uint64_t queued = ether_port_queued_bytes(output->port, sim_now(model->sim));
    if (sim_event_pending(&output->relief) || ether_port_free_ps(output->port) == SIM_TIME_MAX)
        return;
    uint64_t over = queued > output->xon_bytes ? queued - output->xon_bytes : 0;
    double ps = (double)(over + 1) * 8000.0 / ether_port_rate_gbit_s(output->port);
    sim_schedule_in(model->sim, &output->relief, (sim_time)ps + 1);
}

/* Whoever is stopped by no other output may go on. */
static void relieve(struct model *model, struct switch_output *output)
{
    struct switch_state *state = model->state;
    uint64_t others = 0, stopped = output->stopped;
    if (stopped == 0)
        return;
    if (ether_port_queued_bytes(output->port, sim_now(model->sim)) > output->xon_bytes) {
        expect_relief(model, output);
        return;
    }
    output->stopped = 0;
    for (uint32_t i = 0; i < state->n_ports; i++)
        others |= state->output[i].stopped;
    for (uint32_t i = 0; i < state->n_ports; i++)
        if ((stopped & ~others) >> i & 1)
            ether_port_pause(&state->port[i], false);
}

static void relief_event(struct sim *sim, struct sim_event *event)
{
    struct switch_output *output = SIM_CONTAINER(event, struct switch_output, relief);
    (void)sim;
    relieve(output->port->model, output);
}

static void switch_retime(struct ether_port *port, struct ether_frame *frame, sim_time left_ps)
{
    struct switch_state *state = port->model->state;
    (void)left_ps;
    if (frame == NULL)
        relieve(port->model, &state->output[port->idx]);
}

/* A frame from a port finds so much in the output's queue. */
static void stop_senders(struct model *model, struct switch_output *output, uint32_t from,
                         uint64_t queued)
{
    const struct switch_state *state = model->state;

    if (queued <= output->xoff_bytes || (output->stopped >> from & 1) != 0 ||
        !ether_port_flow_control(&state->port[from]))
        return;
    output->stopped |= UINT64_C(1) << from;
    ether_port_pause(&state->port[from], true);
    expect_relief(model, output);
}

/* ---- Forwarding, continued ------------------------------------------------------------------- */

static void forward(struct model *model, uint32_t from, uint32_t group, struct ether_frame *frame,
                    const struct ether_packet *packet)
{
    struct switch_state *state = model->state;
    struct ether_port *port = member_of(state, &state->group[group], packet);
    sim_time leave_ps = sim_now(model->sim) + state->latency_ps;
    uint64_t queued = port != NULL ? ether_port_queued_bytes(port, leave_ps) : 0;
    if (port != NULL)
        stop_senders(model, &state->output[port->idx], from, queued);
    if (port == NULL || queued + ether_frame_bytes(frame) > state->queue_bytes) {
        if (port != NULL)
            state->drops[port->idx]++;
        state->dropped++;
        ether_frame_free(model, frame);
        return;
    }
    state->forwarded++;
    ether_port_send(port, frame, leave_ps);
}

static bool group_connected(const struct switch_state *state, const struct switch_group *group)
{
    for (uint32_t i = 0; i < group->n_ports; i++)
        if (ether_port_connected(&state->port[group->port[i]]))
            return true;
    return false;
}

static void flood(struct model *model, uint32_t port, struct ether_frame *frame,
                  const struct ether_packet *packet)
{
    struct switch_state *state = model->state;
    uint32_t from = state->group_of[port];
    state->flooded++;
    for (uint32_t i = 0; i < state->n_groups; i++)
        if (i != from && group_connected(state, &state->group[i]))
            forward(model, port, i, ether_frame_copy(model, frame), packet);
    ether_frame_free(model, frame);
}

static void switch_receive(struct ether_port *port, struct ether_frame *frame)
{
    struct model *model = port->model;
    struct switch_state *state = model->state;
    uint32_t from = state->group_of[port->idx];
    struct ether_packet packet;
    ether_packet_parse(frame->header, frame->header_bytes, &packet);
    if (state->learning)
        put_mac(state, packet.source_mac, from, false);
    bool group_address = (packet.destination_mac >> 40 & 1) != 0;
    const struct switch_mac *to = find_mac(state, packet.destination_mac);
    if (group_address || to->mac == MAC_EMPTY) {
        flood(model, port->idx, frame, &packet);
    } else if (to->group == from) {
        state->filtered++;
        ether_frame_free(model, frame);
    } else {
        forward(model, port->idx, to->group, frame, &packet);
    }
}

/* ---- Set-up ---------------------------------------------------------------------------------- */

/* Reads "0+1 2+3" into groups; false if that is not what it says. */
static bool read_groups(struct switch_state *state)
{
    bool taken[ETHER_SWITCH_PORTS_MAX] = { false };
    const char *at = state->groups;
    while (*at != 0) {
        struct switch_group *group = &state->group[state->n_groups];
        at += strspn(at, " ,");
        while (*at >= '0' && *at <= '9') {
            char *end;
            unsigned long port = strtoul(at, &end, 10);
            if (port >= state->n_ports || taken[port])
                return false;
            taken[port] = true;
            state->group_of[port] = state->n_groups;
            group->port[group->n_ports++] = (uint32_t)port;
            at = end + (*end == '+' && end[1] >= '0' && end[1] <= '9');
        }
        if (*at != 0 && *at != ' ' && *at != ',')
            return false;
        state->n_groups += group->n_ports != 0;
    }
    for (uint32_t port = 0; port < state->n_ports; port++) {
        if (taken[port])
            continue;
        state->group_of[port] = state->n_groups;
        state->group[state->n_groups++] = (struct switch_group){ .n_ports = 1, .port = { port } };
    }
    return true;
}

static void switch_init(struct model *model, struct sim_error_list *errors)
{
    struct switch_state *state = model->state;
    uint64_t capacity = 2;
    while (capacity < 2 * (uint64_t)state->mac_entries)
        capacity *= 2;
    state->table_mask = capacity - 1;
    state->table = sim_zalloc(capacity, sizeof(*state->table));
    state->name = sim_zalloc(state->n_ports, sizeof(*state->name));
    state->port = model_ports_new(model, &ether_cable, state->n_ports);
    for (uint64_t i = 0; i < capacity; i++)
        state->table[i].mac = MAC_EMPTY;
    for (uint32_t i = 0; i < state->n_ports; i++) {
        snprintf(state->name[i], PORT_NAME_BYTES, "%s.e%u", model->name, i);
        state->port[i] = (struct ether_port){ .model = model,
                                              .idx = i,
                                              .name = state->name[i],
                                              .rate_gbit_s_max = state->rate_gbit_s,
                                              .receive = switch_receive,
                                              .retime = switch_retime,
                                              .flow_control = state->flow_control };
        state->output[i].port = &state->port[i];
        sim_event_init(&state->output[i].relief, relief_event);
    }
    if (!read_groups(state))
        model_mistake(model, errors,
                      ".groups: found \"%s\", expected groups of different ports below %u, as in "
                      "\"0+1 2+3\"",
                      state->groups, state->n_ports);
}

static void switch_start(struct model *model)
{
    struct switch_state *state = model->state;
    for (uint32_t i = 0; i < state->n_ports; i++)
        set_thresholds(model, &state->output[i]);
}

static void switch_release(struct model *model)
{
    struct switch_state *state = model->state;
    for (uint32_t i = 0; i < state->n_ports; i++)
        sim_cancel(model->sim, &state->output[i].relief);
    free(state->table);
    free(state->name);
}

const struct model_ops ether_switch_ops = {
    .type = "ether.switch",
    .help = "an Ethernet switch: store and forward, learning, link aggregation groups",
    .state_bytes = sizeof(struct switch_state),
    .params = switch_params,
    .stats = switch_stats,
    .init = switch_init,
    .start = switch_start,
    .release = switch_release,
};
