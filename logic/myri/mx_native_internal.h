/*
 * The inside of the driver for the firmware of Myrinet Express: its objects, and shared memory
 * between the processes of a host (mx_native_local.c).
 */
#ifndef LOGIC_MYRI_MX_NATIVE_INTERNAL_H
#define LOGIC_MYRI_MX_NATIVE_INTERNAL_H

#include <errno.h>
#include <string.h>

#include "hw/myri_mx.h"
#include "logic/myri/mx_native.h"
#include "logic/myri/myri_command.h"

#define NATIVE_QUEUE_ORDER 4u /* 64 KiB */
_Static_assert(K_PAGE_BYTES << NATIVE_QUEUE_ORDER == MX_EVENTS * MX_EVENT_BYTES, "an event queue");

struct native_region {
    uint32_t n;
    struct mx_segment segment[MX_SEGMENTS_MAX];
    uint64_t dma[MX_SEGMENTS_MAX];
    uint64_t bytes;
    unsigned users; /* processes of the host that copy from it */
    bool announced; /* the adapter knows it */
    bool closing;
    struct k_wait_queue idle;
};

struct native_port {
    struct mx_port port;
    struct native_board *board;
    struct k_page *queue[2], *receive[MX_RING_SLOTS], *send[MX_RING_SLOTS], *data;
    struct kaddr receive_at[MX_RING_SLOTS], send_at[MX_RING_SLOTS];
    uint64_t queue_dma[2], receive_dma[MX_RING_SLOTS], send_dma[MX_RING_SLOTS];
    struct native_region *region[MYRI_MX_REGIONS];
    uint8_t sequence[MYRI_MX_REGIONS];
    /* Shared memory; other processes of the host have it mapped, and the send ring, too. */
    unsigned refs; /* the opener's, and of those who use this memory */
    bool closed;
    struct k_page *local;       /* MX_QUEUE_LOCAL */
    struct kaddr line;          /* session, index and lock of that queue */
    uint32_t next;              /* events reserved */
    struct native_port *source; /* whose data this process reads */
};
static inline struct native_port *native_port_of(struct mx_port *port)
{
    return K_CONTAINER(port, struct native_port, port);
}

struct native_board {
    struct mx_board board;
    struct native_board *next;
    struct mx_native *driver;
    struct k_pci_dev *pci;
    struct myri_commands commands;
    struct kaddr table; /* for commands: struct myri_mx_memory or struct myri_mx_table */
    uint64_t table_dma;
    bool table_busy;
    uint32_t next_session;
    struct native_port *port[MYRI_MX_ENDPOINTS];
    unsigned n_regions;
    struct mx_native_stats stats;
};

/* ---- mx_native.c ----------------------------------------------------------------------------- */

/* The last reference frees the port. */
void native_port_put(struct native_port *port);

/* ---- mx_native_local.c ----------------------------------------------------------------------- */

/* Whether messages to this NIC stay in the host. */
bool native_is_local(const struct native_port *port, uint64_t nic_id);
/* 0; -ENOMEM. */
int native_local_open(struct native_port *port);
/* These are commands of struct mx_board_ops to an endpoint of this host. 0 also if nobody gets
 * it. */
int native_local_connect(struct native_port *port, const struct mx_connect_command *c);
int native_local_tiny(struct native_port *port, const struct mx_send *s, const void *data);
/* Above 0: the slot has been sent; the receiver reads it before it acknowledges the message. */
int native_local_medium(struct native_port *port, const struct mx_send *s, uint8_t fragment,
                        uint16_t fragment_bytes, uint16_t slot);
int native_local_rendezvous(struct native_port *port, const struct mx_send *s, uint8_t region,
                            uint8_t region_sequence);
int native_local_notify(struct native_port *port, const struct mx_send *s, uint8_t region,
                        uint8_t region_sequence);
int native_local_ack(struct native_port *port, const struct mx_destination *to, uint32_t number,
                     uint16_t ack);
/* 1 + an enum mx_pull_status. */
int native_local_pull(struct native_port *port, const struct mx_pull_command *c);
struct kaddr native_local_data(struct mx_port *port, const union mx_event *event);
void native_local_done(struct mx_port *port);

#endif
