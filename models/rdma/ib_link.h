/*
 * InfiniBand: packets, ports and the wires between them. A wire serialises packets at its rate and
 * sends only what the receiver has a buffer for (credits), so it loses nothing, but for errors
 * (tests). Timing: see the head of ib_link.c.
 */
#ifndef MODELS_RDMA_IB_LINK_H
#define MODELS_RDMA_IB_LINK_H

#include "models/base/cable.h"

#define IB_MTU_BYTES_MAX 4096u
/* Of flow control (IBTA 7.9.4). */
#define IB_CREDIT_BYTES 64u

/* BTH opcodes of reliable connections (IBTA 9.2.1, table 38). */
enum ib_opcode {
    IB_SEND_FIRST = 0x00,
    IB_SEND_MIDDLE = 0x01,
    IB_SEND_LAST = 0x02,
    IB_SEND_LAST_IMM = 0x03,
    IB_SEND_ONLY = 0x04,
    IB_SEND_ONLY_IMM = 0x05,
    IB_WRITE_FIRST = 0x06,
    IB_WRITE_MIDDLE = 0x07,
    IB_WRITE_LAST = 0x08,
    IB_WRITE_LAST_IMM = 0x09,
    IB_WRITE_ONLY = 0x0a,
    IB_WRITE_ONLY_IMM = 0x0b,
    IB_READ_REQUEST = 0x0c,
    IB_READ_FIRST = 0x0d, /* responses from here on */
    IB_READ_MIDDLE = 0x0e,
    IB_READ_LAST = 0x0f,
    IB_READ_ONLY = 0x10,
    IB_ACK = 0x11,
    IB_ATOMIC_ACK = 0x12,
    IB_COMPARE_SWAP = 0x13,
    IB_FETCH_ADD = 0x14,
    N_IB_OPCODES
};

/* AETH syndrome (9.7.5.1): ACK with its credit count, RNR NAK with its timer, NAK with its code. */
#define IB_SYNDROME_ACK  0x1fu /* credits invalid */
#define IB_SYNDROME_RNR  0x20u
#define IB_SYNDROME_NAK  0x60u
#define IB_SYNDROME_TYPE 0x60u
enum ib_nak { IB_NAK_SEQUENCE, IB_NAK_INVALID, IB_NAK_ACCESS, IB_NAK_OPERATION };

/* A packet of ib_packet_new(). It has one owner; sending transfers it. */
struct ib_packet {
    struct ib_packet *next; /* the owner's */
    struct sim_event event; /* the owner's; the wire's while it is there */
    sim_time tail_ps;       /* last bit at the receiver; set by the wire */
    /* LRH, BTH */
    uint16_t dlid, slid;
    uint8_t opcode; /* enum ib_opcode */
    bool solicited, ack_request;
    uint32_t qp, psn;
    /* RETH, AtomicETH */
    uint32_t rkey, dma_bytes;
    uint64_t va, swap_or_add, compare;
    /* AETH, AtomicAckETH, ImmDt */
    uint8_t syndrome;
    uint32_t msn;
    uint64_t original;
    uint32_t immediate;
    uint32_t bytes; /* of payload */
    /* private to ib_link.c */
    struct ib_direction *direction;
    bool lost;
    uint8_t payload[IB_MTU_BYTES_MAX];
};
/* From LRH to VCRC. */
uint32_t ib_packet_bytes(const struct ib_packet *packet);
static inline uint32_t ib_packet_credits(const struct ib_packet *packet)
{
    return (ib_packet_bytes(packet) + IB_CREDIT_BYTES - 1) / IB_CREDIT_BYTES;
}

struct ib_port;
struct ib_wire;
/* Takes a packet at its tail; ib_port_release() is owed. */
typedef void ib_receive_fn(struct ib_port *port, struct ib_packet *packet);
/* The port may take another packet: the last one has left, or there are credits again. */
typedef void ib_ready_fn(struct ib_port *port);
typedef void ib_up_fn(struct ib_port *port, bool up);
struct ib_port {
    struct model *model;
    uint32_t idx;     /* among the model's InfiniBand ports */
    const char *name; /* "rnic.i0" */
    double rate_gbit_s_max;
    uint32_t buffer_bytes; /* receive buffer; at least a packet of mtu_bytes */
    uint32_t mtu_bytes;    /* largest payload that it receives */
    ib_receive_fn *receive;
    ib_ready_fn *ready;
    ib_up_fn *up; /* may be NULL */
    /* private to ib_link.c */
    struct ib_wire *wire;
    unsigned end;
};

struct ib_wire_params {
    double rate_gbit_s;  /* 0: the lower of both ports */
    sim_time latency_ps; /* SerDes of both ends and propagation, one way */
    double loss_ratio;   /* of packets; for tests of retransmission */
};
extern const struct param_desc ib_wire_params_table[];
/* The wire as a kind of cable: ports are DEVICE.i0, DEVICE.i1, ... */
extern const struct cable_kind ib_cable;

struct ib_stats { /* of a direction */
    uint64_t packets, bytes, payload_bytes, lost;
    uint64_t flow_packets, credit_waits;
    sim_time busy_ps;
};
extern const struct stat_desc ib_stats_table[];

/* Joins two ports. The caller owns the wire. Returns NULL after adding mistakes to errors. */
struct ib_wire *ib_wire_new(struct sim *sim, const char *name, const struct ib_wire_params *params,
                            struct ib_port *a, struct ib_port *b, const char *file, int line,
                            struct sim_error_list *errors);
void ib_wire_free(struct ib_wire *wire);

/* An empty packet of the pool that all models of the run share. Its payload is undefined. */
struct sim_pool *ib_packet_pool(struct sim *sim);
struct ib_packet *ib_packet_new(struct sim_pool *pool);

static inline bool ib_port_connected(const struct ib_port *port)
{
    return port->wire != NULL;
}
/* Connected, and the wire is up. */
bool ib_port_up(const struct ib_port *port);
double ib_port_rate_gbit_s(const struct ib_port *port);
/* The packet may be sent now; else ready() follows when it is worth asking again. Connected ports
 * only, as for all that follow. */
bool ib_port_ready(struct ib_port *port, const struct ib_packet *packet);
/* Takes the packet, for which ib_port_ready() has just said yes. A wire that is down loses it. */
void ib_port_send(struct ib_port *port, struct ib_packet *packet);
/* Gives back the receive buffer of so many credits. */
void ib_port_release(struct ib_port *port, uint32_t credits);
/* The wire goes down (packets are lost) or up. */
void ib_port_link(struct ib_port *port, bool up);
struct ib_stats *ib_port_stats(struct ib_port *port);
/* Packets sent by this port that have not arrived. */
uint64_t ib_port_in_flight(const struct ib_port *port);
/* All credits are back. */
bool ib_port_idle(const struct ib_port *port);

#endif
