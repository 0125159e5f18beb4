/* Ethernet frames of a run as a pcapng file: see the head of pcap.c. */
#ifndef MODELS_TRACE_PCAP_H
#define MODELS_TRACE_PCAP_H

#include "models/trace/trace.h"
#include "models/world/world.h"

#define PCAP_SNAP_HEADERS UINT32_MAX

struct pcap_settings {
    const char *path;
    const char *ports;       /* a pattern of fnmatch(); NULL: all */
    uint32_t snap_bytes;     /* 0: whole frames; PCAP_SNAP_HEADERS: the header bytes of each */
    const char *application; /* for the file's head, as is comment */
    const char *comment;
};

struct pcap;

/*
 * Attaches a capture to the wires of the world, before it boots. *done is set to 1 when nothing
 * more can come into the file. NULL: mistakes are in errors (no port matches); or, without any, the
 * file could not be written, errno says why. Window and done outlive the capture.
 */
struct pcap *pcap_new(struct world *world, const struct pcap_settings *settings,
                      const struct trace_window *window, volatile int *done,
                      struct sim_error_list *errors);
/* Detaches it, while the world is still there; writes what is left. NULL is allowed. */
void pcap_end(struct pcap *pcap, struct trace_file_counts *counts);

#endif
