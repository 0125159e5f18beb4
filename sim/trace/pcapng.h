/* Blocks of the pcapng format (draft-ietf-opsawg-pcapng), in the byte order of the machine, which a
 * reader finds out by the section's magic number. Time stamps are nanoseconds of simulated time. */
#ifndef SIM_TRACE_PCAPNG_H
#define SIM_TRACE_PCAPNG_H

#include "sim/engine/types.h"

#define PCAPNG_TEXT_BYTES_MAX  255u /* longer ones are cut */
#define PCAPNG_BLOCK_BYTES_MAX 640u /* of a section or an interface; of a packet behind its bytes */

enum pcapng_direction { PCAPNG_INBOUND = 1, PCAPNG_OUTBOUND = 2 };

/* Each writes one block to `to`, and returns its bytes. Texts may be NULL. */
size_t pcapng_section(uint8_t *to, const char *application, const char *comment);
/* An Ethernet interface; they count from 0 in their order. snap_bytes: the most that is kept of a
 * packet, 0: all. */
size_t pcapng_interface(uint8_t *to, const char *name, uint64_t speed_bit_s, uint32_t snap_bytes);

/* A packet at time at_ps; wire_bytes: its length on the wire, of which data holds the first
 * `bytes`. */
struct pcapng_packet {
    uint32_t interface;
    enum pcapng_direction direction;
    sim_time at_ps;
    uint32_t bytes, wire_bytes;
    const uint8_t *data;
};
size_t pcapng_packet_bytes(const struct pcapng_packet *packet);
size_t pcapng_packet(uint8_t *to, const struct pcapng_packet *packet);

#endif
