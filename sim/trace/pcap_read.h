/* Captures of Ethernet frames: pcap (micro- and nanoseconds) and pcapng, of either byte order. */
#ifndef SIM_TRACE_PCAP_READ_H
#define SIM_TRACE_PCAP_READ_H

#include <glib.h>

#include "sim/engine/types.h"

struct pcap_frame {
    sim_time at_ps;      /* since the first frame of the file; 0 if its stamp is earlier */
    uint32_t wire_bytes; /* without FCS */
    uint32_t bytes;      /* of `data`: a capture may leave the rest out */
    const uint8_t *data; /* the capture's */
};

struct pcap_capture {
    char *contents;
    size_t n_bytes;
    GArray *frames; /* struct pcap_frame, in the order of the file */
};

/* Reads a whole file. NULL with *message (caller g_free()s), which names the byte, if it cannot be
 * read, is damaged or none, or is of another kind of link than Ethernet. */
struct pcap_capture *pcap_read(const char *path, char **message);
/* The same of memory, which it takes (g_free()). */
struct pcap_capture *pcap_read_memory(char *contents, size_t n_bytes, char **message);
void pcap_free(struct pcap_capture *capture); /* NULL is allowed */

#endif
