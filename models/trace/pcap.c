/*
 * Models: a capture of Ethernet frames in the format pcapng, an interface for each port. A frame is
 *   recorded once on each wire: at the port that sends it (outbound) if that port is captured, else
 *   at the port that receives it (inbound). Bytes are those of the frame, padded to 60, without
 *   FCS. Payload, which the simulation carries as marks, is written as the bytes that the marks
 *   stand for, and checksums of TCP and UDP that are right for the marks are made right for the
 *   bytes.
 * Does not model: what a host's own capture sees: segments before segmentation offload or after
 *   receive offload, time stamps of a driver.
 * Timing: an outbound frame has the time at which its first bit leaves, an inbound one that of its
 *   last bit. Frames are in the file in the order of time: each waits until no older one can come.
 * Sources: RFC 791, 768, 793, 1071; docs/traces.md.
 */
#include "models/trace/pcap.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "models/ether/ether_packet.h"
#include "sim/trace/pcapng.h"

/* The longest frame: an IPv4 packet has 16 bits for its length. */
#define FRAME_BYTES_MAX (ETHER_HEADER_BYTES_MAX + 65536u)
#define NO_INTERFACE    UINT32_MAX

struct pcap_wire {
    struct ether_tap tap;
    struct pcap *pcap;
    struct ether_port *port[2];
    uint32_t interface[2]; /* NO_INTERFACE: not captured */
};

/* A packet's block that waits for older ones. */
struct pending {
    struct pending *previous;
    sim_time at_ps;
    size_t bytes;
    uint8_t block[];
};

struct pcap {
    struct sim *sim;
    struct trace_file *file;
    const struct trace_window *window;
    volatile int *done;
    uint32_t snap_bytes, n_wires;
    struct pcap_wire *wire;
    struct pending *last; /* the youngest; the others by `previous` */
    uint8_t frame[FRAME_BYTES_MAX];
};

/* ---- Frames ---------------------------------------------------------------------------------- */

/* Header, payload and padding, as on the wire. Returns the bytes without FCS. */
static uint32_t frame_bytes(uint8_t *to, const struct ether_frame *frame)
{
    const uint32_t bytes = ether_frame_bytes(frame),
                   held = frame->header_bytes + frame->payload.bytes;

    SIM_ASSERT(bytes <= FRAME_BYTES_MAX, "a frame of %u bytes", bytes);
    memcpy(to, frame->header, frame->header_bytes);
    payload_bytes(&frame->payload, frame->payload.bytes, to + frame->header_bytes);
    memset(to + held, 0, bytes - held);
    return bytes;
}

/* A right checksum over marks becomes a right one over the bytes; a wrong one stays as it is. */
static void mend_checksum(uint8_t *bytes, const struct ether_frame *frame)
{
    struct ether_packet packet;

    ether_packet_parse(frame->header, frame->header_bytes, &packet);
    if (!packet.l4)
        return;
    const bool tcp = packet.flow.protocol == IP_PROTOCOL_TCP;
    uint8_t *at = bytes + packet.l4_offset + (tcp ? 16 : 6);
    const uint16_t old = ether_get16(at);
    if ((!tcp && old == 0) || ether_l4_checksum(frame, &packet) != 0)
        return;
    const uint16_t off = ether_l4_checksum_of_bytes(frame, &packet, bytes + frame->header_bytes);
    /* `off` is what the sum lacks with the old checksum in it. */
    uint32_t sum = (uint32_t)old + off;
    sum = (sum & 0xffff) + (sum >> 16);
    if (sum == 0 || sum == 0xffff) /* the same in one's complement; RFC 768 and 1624 say which */
        sum = tcp ? 0 : 0xffff;
    ether_put16(at, (uint16_t)sum);
}

/* ---- The file, in order ---------------------------------------------------------------------- */

static void insert(struct pcap *pcap, struct pending *pending)
{
    struct pending **at = &pcap->last;

    while (*at != NULL && (*at)->at_ps > pending->at_ps)
        at = &(*at)->previous;
    pending->previous = *at;
    *at = pending;
}

/* Writes what is not younger than until_ps. */
static void write_until(struct pcap *pcap, sim_time until_ps)
{
    struct pending **at = &pcap->last, *oldest = NULL;

    while (*at != NULL && (*at)->at_ps > until_ps)
        at = &(*at)->previous;
    for (struct pending *next = *at; next != NULL;) { /* turns the list round */
        struct pending *previous = next->previous;
        next->previous = oldest;
        oldest = next;
        next = previous;
    }
    *at = NULL;
    while (oldest != NULL) {
        struct pending *younger = oldest->previous;
        trace_file_add(pcap->file, oldest->block, oldest->bytes);
        free(oldest);
        oldest = younger;
    }
    if (trace_file_ended(pcap->file))
        *pcap->done = 1;
}

/* No frame that is still to come has an older time. */
static sim_time oldest_to_come(const struct pcap *pcap)
{
    sim_time oldest_ps = sim_now(pcap->sim);

    for (uint32_t i = 0; i < pcap->n_wires; i++)
        for (unsigned end = 0; end < 2; end++) {
            const sim_time of_port_ps = ether_port_oldest_ps(pcap->wire[i].port[end]);
            oldest_ps = SIM_MIN(oldest_ps, of_port_ps);
        }
    return oldest_ps;
}

static void record(struct pcap *pcap, const struct ether_frame *frame, struct pcapng_packet *packet)
{
    packet->wire_bytes = frame_bytes(pcap->frame, frame);
    mend_checksum(pcap->frame, frame);
    packet->bytes = packet->wire_bytes;
    if (pcap->snap_bytes == PCAP_SNAP_HEADERS)
        packet->bytes = frame->header_bytes;
    else if (pcap->snap_bytes != 0)
        packet->bytes = SIM_MIN(packet->bytes, pcap->snap_bytes);
    packet->data = pcap->frame;
    const size_t bytes = pcapng_packet_bytes(packet);
    struct pending *pending = sim_zalloc(1, sizeof(*pending) + bytes);
    pending->at_ps = packet->at_ps;
    pending->bytes = pcapng_packet(pending->block, packet);
    insert(pcap, pending);
}

static void tap_frame(struct ether_tap *tap, const struct ether_port *from,
                      const struct ether_frame *frame, sim_time start_ps, bool lost)
{
    struct pcap_wire *wire = SIM_CONTAINER(tap, struct pcap_wire, tap);
    struct pcap *pcap = wire->pcap;
    const unsigned sender = from == wire->port[1];
    struct pcapng_packet packet = { .interface = wire->interface[sender],
                                    .direction = PCAPNG_OUTBOUND,
                                    .at_ps = start_ps };
    if (packet.interface == NO_INTERFACE) {
        packet = (struct pcapng_packet){ .interface = wire->interface[1 - sender],
                                         .direction = PCAPNG_INBOUND,
                                         .at_ps = frame->tail_ps };
        if (packet.interface == NO_INTERFACE || lost)
            return;
    }
    if (packet.at_ps >= pcap->window->from_ps && packet.at_ps <= pcap->window->until_ps)
        record(pcap, frame, &packet);
    const sim_time oldest_ps = oldest_to_come(pcap);
    write_until(pcap, oldest_ps);
    if (oldest_ps > pcap->window->until_ps)
        *pcap->done = 1;
}

/* ---- Life ------------------------------------------------------------------------------------ */

static bool is_captured(const struct pcap_settings *settings, const struct ether_port *port)
{
    return settings->ports == NULL || fnmatch(settings->ports, port->name, 0) == 0;
}

static void no_port(const struct world *world, const char *pattern, struct sim_error_list *errors)
{
    struct world_cable cable;
    char names[400] = "";

    for (unsigned i = 0; world_cable_at(world, i, &cable); i++)
        for (unsigned end = 0; end < 2 && cable.kind == &ether_cable; end++) {
            const struct ether_port *port = cable.port[end];
            const size_t n = strlen(names);
            snprintf(names + n, sizeof(names) - n, "%s%s", n != 0 ? ", " : "", port->name);
        }
    if (*names == '\0')
        sim_error_add(errors, NULL, 0, "--pcap: the scenario has no Ethernet cables");
    else
        sim_error_add(errors, NULL, 0, "--pcap-port '%s': no Ethernet port matches; there are %s",
                      pattern, names);
}

/* Interfaces are numbered in the order of cables. False: no port is captured, or errno. */
static bool write_head(struct pcap *pcap, const struct pcap_settings *settings)
{
    uint8_t block[2 * PCAPNG_BLOCK_BYTES_MAX];
    const uint32_t snap = pcap->snap_bytes == PCAP_SNAP_HEADERS ? ETHER_HEADER_BYTES_MAX
                                                                : pcap->snap_bytes;
    bool good = trace_file_head(pcap->file, block,
                                pcapng_section(block, settings->application, settings->comment));

    for (uint32_t i = 0; i < pcap->n_wires; i++)
        for (unsigned end = 0; end < 2; end++) {
            const struct ether_port *port = pcap->wire[i].port[end];
            const double speed_bit_s = ether_port_rate_gbit_s(port) * 1e9;
            if (pcap->wire[i].interface[end] != NO_INTERFACE)
                good = good && trace_file_head(pcap->file, block,
                                               pcapng_interface(block, port->name,
                                                                (uint64_t)speed_bit_s, snap));
        }
    return good;
}

/* The wires with a port that is captured; returns the number of these ports. */
static uint32_t find_wires(struct pcap *pcap, const struct world *world,
                           const struct pcap_settings *settings)
{
    struct world_cable cable;
    uint32_t n_ports = 0;

    for (unsigned i = 0; world_cable_at(world, i, &cable); i++) {
        struct pcap_wire wire = { .tap = { .frame = tap_frame }, .pcap = pcap };
        const uint32_t before = n_ports;
        if (cable.kind != &ether_cable)
            continue;
        for (unsigned end = 0; end < 2; end++) {
            wire.port[end] = cable.port[end];
            wire.interface[end] = is_captured(settings, cable.port[end]) ? n_ports++ : NO_INTERFACE;
        }
        if (n_ports == before)
            continue;
        pcap->wire = sim_grow(pcap->wire, pcap->n_wires + 1, sizeof(*pcap->wire));
        pcap->wire[pcap->n_wires++] = wire;
    }
    return n_ports;
}

struct pcap *pcap_new(struct world *world, const struct pcap_settings *settings,
                      const struct trace_window *window, volatile int *done,
                      struct sim_error_list *errors)
{
    struct pcap *pcap = sim_zalloc(1, sizeof(*pcap));
    struct trace_file_counts unused;

    pcap->sim = world_sim(world);
    pcap->window = window;
    pcap->done = done;
    pcap->snap_bytes = settings->snap_bytes;
    if (find_wires(pcap, world, settings) == 0) {
        no_port(world, settings->ports, errors);
        pcap_end(pcap, &unused);
        return NULL;
    }
    pcap->file = trace_file_new(settings->path, window->limit_bytes, window->ring, window->watch);
    if (pcap->file == NULL || !write_head(pcap, settings)) {
        const int why = pcap->file == NULL ? errno : EFBIG;
        pcap_end(pcap, &unused);
        errno = unused.error != 0 ? unused.error : why;
        return NULL;
    }
    for (uint32_t i = 0; i < pcap->n_wires; i++)
        ether_port_set_tap(pcap->wire[i].port[0], &pcap->wire[i].tap);
    return pcap;
}

void pcap_end(struct pcap *pcap, struct trace_file_counts *counts)
{
    *counts = (struct trace_file_counts){ 0 };
    if (pcap == NULL)
        return;
    if (pcap->file != NULL)
        write_until(pcap, SIM_TIME_MAX);
    for (uint32_t i = 0; i < pcap->n_wires; i++)
        ether_port_set_tap(pcap->wire[i].port[0], NULL);
    trace_file_close(pcap->file, counts);
    free(pcap->wire);
    free(pcap);
}
