/* Sources: Perfetto's published schema, protos/perfetto/trace: trace.proto, trace_packet.proto,
 * track_event/track_event.proto, track_descriptor.proto, counter_descriptor.proto,
 * debug_annotation.proto; the fields used are those of tests/scenario/pftrace.proto. Wire format:
 * Protocol Buffers, "Encoding". */
#include "sim/trace/pftrace.h"

#include <string.h>

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };

enum { TRACE_PACKET = 1 };
enum { PACKET_TIMESTAMP = 8, PACKET_SEQUENCE = 10, PACKET_EVENT = 11, PACKET_TRACK = 60 };
enum { TRACK_UUID = 1, TRACK_NAME = 2, TRACK_PARENT = 5, TRACK_COUNTER = 8 };
enum { COUNTER_UNIT_NAME = 6 };
enum {
    EVENT_NOTE = 4,
    EVENT_TYPE = 9,
    EVENT_TRACK = 11,
    EVENT_NAME = 23,
    EVENT_COUNTER = 44,
    EVENT_FLOW = 47
};
enum { TYPE_SLICE_BEGIN = 1, TYPE_SLICE_END = 2, TYPE_INSTANT = 3, TYPE_COUNTER = 4 };
enum { NOTE_UINT = 3, NOTE_POINTER = 7, NOTE_NAME = 10 };

#define SEQUENCE 1u /* all packets are of one writer */

static uint8_t *put_varint(uint8_t *to, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *to++ = (uint8_t)(value | 0x80);
    *to++ = (uint8_t)value;
    return to;
}

static uint8_t *put_key(uint8_t *to, unsigned field, unsigned wire)
{
    return put_varint(to, field << 3 | wire);
}

static uint8_t *put_uint(uint8_t *to, unsigned field, uint64_t value)
{
    return put_varint(put_key(to, field, WIRE_VARINT), value);
}

static uint8_t *put_fixed64(uint8_t *to, unsigned field, uint64_t value)
{
    to = put_key(to, field, WIRE_FIXED64);
    memcpy(to, &value, sizeof(value)); /* little-endian, as the machine: hw/machine.h */
    return to + sizeof(value);
}

static uint8_t *put_double(uint8_t *to, unsigned field, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return put_fixed64(to, field, bits);
}

static uint8_t *put_bytes(uint8_t *to, unsigned field, const void *data, size_t bytes)
{
    to = put_varint(put_key(to, field, WIRE_BYTES), bytes);
    memcpy(to, data, bytes);
    return to + bytes;
}

static uint8_t *put_text(uint8_t *to, unsigned field, const char *text)
{
    return put_bytes(to, field, text, strnlen(text, PFTRACE_TEXT_BYTES_MAX));
}

/* A packet of the trace with one message. */
static uint8_t *put_packet(uint8_t *to, sim_time at_ps, unsigned field, const uint8_t *message,
                           size_t bytes)
{
    uint8_t packet[PFTRACE_BYTES_MAX], *end = packet;

    if (field == PACKET_EVENT)
        end = put_uint(end, PACKET_TIMESTAMP, at_ps / SIM_PS_PER_NS);
    end = put_uint(end, PACKET_SEQUENCE, SEQUENCE);
    end = put_bytes(end, field, message, bytes);
    return put_bytes(to, TRACE_PACKET, packet, (size_t)(end - packet));
}

size_t pftrace_track(uint8_t *to, uint64_t track, uint64_t parent, const char *name,
                     const char *unit)
{
    uint8_t message[PFTRACE_BYTES_MAX], counter[PFTRACE_BYTES_MAX], *end = message;

    end = put_uint(end, TRACK_UUID, track);
    if (parent != 0)
        end = put_uint(end, TRACK_PARENT, parent);
    end = put_text(end, TRACK_NAME, name);
    if (unit != NULL)
        end = put_bytes(end, TRACK_COUNTER, counter,
                        (size_t)(put_text(counter, COUNTER_UNIT_NAME, unit) - counter));
    return (size_t)(put_packet(to, 0, PACKET_TRACK, message, (size_t)(end - message)) - to);
}

static uint8_t *put_note(uint8_t *to, const struct pftrace_note *note)
{
    uint8_t message[PFTRACE_TEXT_BYTES_MAX + 32], *end = message;

    end = put_text(end, NOTE_NAME, note->name);
    end = put_uint(end, note->hexadecimal ? NOTE_POINTER : NOTE_UINT, note->value);
    return put_bytes(to, EVENT_NOTE, message, (size_t)(end - message));
}

static uint8_t *put_begin(uint8_t *to, unsigned type, const struct pftrace_event *event)
{
    uint8_t message[PFTRACE_BYTES_MAX], *end = message;

    end = put_uint(end, EVENT_TYPE, type);
    end = put_uint(end, EVENT_TRACK, event->track);
    end = put_text(end, EVENT_NAME, event->name);
    if (event->flow != 0)
        end = put_fixed64(end, EVENT_FLOW, event->flow);
    for (unsigned i = 0; i < SIM_MIN(event->n_notes, PFTRACE_NOTES_MAX); i++)
        end = put_note(end, &event->notes[i]);
    return put_packet(to, event->begin_ps, PACKET_EVENT, message, (size_t)(end - message));
}

size_t pftrace_event(uint8_t *to, const struct pftrace_event *event)
{
    uint8_t message[PFTRACE_BYTES_MAX], *end = message;

    if (event->instant)
        return (size_t)(put_begin(to, TYPE_INSTANT, event) - to);
    uint8_t *at = put_begin(to, TYPE_SLICE_BEGIN, event);
    end = put_uint(end, EVENT_TYPE, TYPE_SLICE_END);
    end = put_uint(end, EVENT_TRACK, event->track);
    at = put_packet(at, event->end_ps, PACKET_EVENT, message, (size_t)(end - message));
    return (size_t)(at - to);
}

size_t pftrace_counter(uint8_t *to, uint64_t track, sim_time at_ps, double value)
{
    uint8_t message[64], *end = message;

    end = put_uint(end, EVENT_TYPE, TYPE_COUNTER);
    end = put_uint(end, EVENT_TRACK, track);
    end = put_double(end, EVENT_COUNTER, value);
    return (size_t)(put_packet(to, at_ps, PACKET_EVENT, message, (size_t)(end - message)) - to);
}
