/*
 * What the library of Myrinet Express drives: a board. It is Open-MX's kernel module
 * (logic/openmx/: commands are system calls) or the MX firmware of a NIC (logic/myri/: commands are
 * doorbells); Open-MX emulates the firmware in the kernel, so the library is the same for both.
 *
 * A process opens a port (an endpoint of the board) and gives commands; the board answers with
 * events in two queues in memory, and with data in a ring (hw/mx_event.h). Commands wait for room
 * where they need it. A board may lose packets: the library sends again what nobody acknowledges,
 * but for pulls, which a board completes, or gives up, by itself.
 */
#ifndef LOGIC_MX_MX_BOARD_H
#define LOGIC_MX_MX_BOARD_H

#include "hw/mx_event.h"
#include "logic/mx/mx.h"

struct mx_board;
struct mx_port;

/* Whom a packet is for. */
struct mx_destination {
    uint64_t nic_id;
    uint8_t endpoint;
    uint32_t session; /* of the peer, as it came with its connection; 0: not known yet */
};

struct mx_send {
    struct mx_destination to;
    uint16_t sequence, ack; /* struct mx_message_header */
    uint64_t match;
    uint32_t bytes; /* of the whole message */
};

struct mx_connect_command {
    struct mx_destination to; /* a reply: session of the peer */
    bool is_reply;
    uint8_t connect_sequence, status;
    uint32_t key;
    uint16_t target_sequence, source_sequence; /* struct mx_connect_header */
};

struct mx_pull_command {
    struct mx_destination from;
    uint8_t region, region_sequence; /* there, from its first byte on */
    uint8_t local_region;            /* here, from its first byte on; it stays until the event */
    uint32_t bytes;                  /* at least 1, and no more than either region has */
    uint32_t handle;                 /* comes back with the event */
};

/* [thread], all of them. They return 0, or a negative errno with nothing sent: -EINVAL: what is
 * asked for is impossible; -ENOMEM. Those that end with an event return more than 0 if they have
 * ended already: no event comes. */
struct mx_board_ops {
    /* Opens endpoint `id` for the calling process. -EBUSY: it is open; -ENODEV: the board is
     * gone. */
    int (*open)(struct mx_board *board, uint8_t id, struct mx_port **port);
    /* Ends pulls without an event, frees regions. The memory of the port is the board's again. */
    void (*close)(struct mx_port *port);

    int (*connect)(struct mx_port *port, const struct mx_connect_command *c);
    /* Up to MX_TINY_BYTES: the data are in the command. */
    int (*send_tiny)(struct mx_port *port, const struct mx_send *s, const void *data);
    /* Up to MX_SMALL_BYTES of the process's memory: they are taken when this returns. */
    int (*send_small)(struct mx_port *port, const struct mx_send *s,
                      const struct mx_segment *segment, unsigned n);
    /* A fragment from slot `slot` of the send ring; MX_EVENT_SENT, or a result above 0, gives the
     * slot back. */
    int (*send_medium)(struct mx_port *port, const struct mx_send *s, uint8_t fragment,
                       uint16_t fragment_bytes, uint16_t slot);
    int (*send_rendezvous)(struct mx_port *port, const struct mx_send *s, uint8_t region,
                           uint8_t region_sequence);
    /* Ends with MX_EVENT_PULLED, or has ended with enum mx_pull_status `result - 1`. */
    int (*pull)(struct mx_port *port, const struct mx_pull_command *c);
    /* To whose region all has been pulled from. */
    int (*notify)(struct mx_port *port, const struct mx_send *s, uint8_t region,
                  uint8_t region_sequence);
    int (*ack)(struct mx_port *port, const struct mx_destination *to, uint32_t number,
               uint16_t ack);

    /* Registers memory, so that peers may pull from it and this process into it. Its number, and
     * the sequence that tells it from earlier regions of this number. -ENOSPC: 256 are
     * registered. */
    int (*region_new)(struct mx_port *port, const struct mx_segment *segment, unsigned n,
                      uint8_t *region, uint8_t *region_sequence);
    /* The board does not access the memory any more when it returns. */
    void (*region_free)(struct mx_port *port, uint8_t region);
    /* The library has read all slots of queue `queue` (0 unexpected, 1 expected) up to, but
     * excluding, the `read`-th since open(). NULL: the board finds out by itself. */
    void (*consumed)(struct mx_port *port, unsigned queue, uint32_t read);
    /* Boards with a queue MX_QUEUE_LOCAL only. Where the data of its MX_EVENT_MEDIUM are: in the
     * sender's send ring, which stays until local_done(). v is 0: the sender has closed its
     * endpoint. */
    struct kaddr (*local_data)(struct mx_port *port, const union mx_event *event);
    void (*local_done)(struct mx_port *port);
};

struct mx_board {
    const struct mx_board_ops *ops;
    struct kernel *kernel;
    uint64_t nic_id;
};

#define MX_QUEUE_UNEXPECTED 0u
#define MX_QUEUE_EXPECTED   1u
#define MX_QUEUE_LOCAL      2u
#define MX_QUEUES           3u

/* An open endpoint, as the board shows it; the library reads it only. */
struct mx_port {
    struct mx_board *board;
    uint8_t id;
    uint32_t session; /* not 0; that of a later port of a NIC is greater */
    /* MX_EVENTS slots each, all MX_EVENT_NONE. MX_QUEUE_LOCAL, if v is not 0: unexpected events
     * that other processes of the host store by themselves. Then send_small() is not used within
     * the host, but send_medium(), whose data the receiver reads in the send ring. */
    struct kaddr queue[MX_QUEUES];
    struct kaddr
        *receive;       /* MX_RING_SLOTS slots of MX_SLOT_BYTES: event.message.slot is the index */
    struct kaddr *send; /* the same */
    uint32_t untold;    /* of the slots that have been read, so many may be unknown to the board */
    uint32_t local_bytes; /* larger messages to the own NIC are pulled; 0: MX_MEDIUM_BYTES */
    int cpu;              /* where packets for this endpoint are processed; -1: nobody knows */
};

/* ---- Addresses ------------------------------------------------------------------------------- */

/* NIC ids are Ethernet addresses, the first byte being the most significant of 48 bits. */
static inline void mx_nic_to_bytes(uint64_t nic_id, uint8_t byte[6])
{
    for (unsigned i = 0; i < 6; i++)
        byte[i] = (uint8_t)(nic_id >> (40 - 8 * i));
}
static inline uint64_t mx_nic_from_bytes(const uint8_t byte[6])
{
    uint64_t nic_id = 0;
    for (unsigned i = 0; i < 6; i++)
        nic_id = nic_id << 8 | byte[i];
    return nic_id;
}

#endif
