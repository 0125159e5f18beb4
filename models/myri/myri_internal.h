/*
 * The inside of myri.myri10g, for models/myri/ only.
 *
 * Who owns what: a packet to be sent is a struct myri_tx from its request until its last bit has
 * left; a received one a struct myri_rx from its arrival until its data were handed to the link.
 * Both come from pools, and hold their frame.
 */
#ifndef MODELS_MYRI_MYRI_INTERNAL_H
#define MODELS_MYRI_MYRI_INTERNAL_H

#include "hw/myri_regs.h"
#include "models/ether/ether_packet.h"
#include "models/myri/myri.h"
#include "models/pcie/endpoint/pcie_function.h"

#define MYRI_PIECES_MAX 12u /* buffers that one packet is received into */
/* In the SRAM. */
#define MYRI_ACK_AT        0x1000u
#define MYRI_COALESCING_AT 0x1800u
#define MYRI_TABLE_AT      0x1900u

struct myri;

/* ---- The processor: one job after the other, in the order in which they came ----------------- */

struct myri_job;
typedef void myri_job_fn(struct myri *nic, struct myri_job *job);
struct myri_job {
    struct myri_job *next;
    sim_time done_ps;
    myri_job_fn *run; /* at done_ps */
};

/* ---- Sending --------------------------------------------------------------------------------- */

struct myri_tx;
/* The packet has left, or was given up. The struct is freed behind it. */
typedef void myri_sent_fn(struct myri *nic, struct myri_tx *tx);
struct myri_segment {
    struct pcie_dma_request read; /* private */
    struct myri_tx *tx;           /* private */
    uint64_t iova;
    uint32_t bytes;
};
struct myri_tx {
    struct myri_job job;
    struct myri_tx *next;
    struct myri *nic;
    struct ether_frame *frame; /* NULL once it is on the wire */
    sim_time left_ps;          /* its last bit */
    /* ---- filled by the firmware -------------------------------------------------------------- */
    uint32_t bytes;      /* of the frame */
    bool header_in_host; /* the first segment begins with the headers: up to
                         * ETHER_HEADER_BYTES_MAX */
    bool checksums;      /* to be computed */
    uint8_t n_segments;
    uint8_t n_missing; /* reads that have not ended */
    bool begun, failed;
    sim_time work_ps;   /* of the processor */
    myri_sent_fn *sent; /* NULL: nobody wants to know */
    uint32_t value[4];  /* the firmware's */
    struct myri_segment segment[MYRI_SEND_MAX];
    uint8_t buffer[MYRI_MTU_MAX + LINE_BYTES];
};

/* ---- Receiving ------------------------------------------------------------------------------- */

struct myri_piece {
    uint64_t iova;
    uint32_t bytes;
};
struct myri_rx_write {
    struct pcie_dma_request request;
    struct myri_rx *rx;
};
struct myri_rx {
    struct myri_job job;
    struct myri *nic;
    struct ether_frame *frame; /* NULL once the data were laid out */
    uint32_t bytes;            /* of the frame */
    uint8_t n_writes;          /* that have not ended */
    struct myri_rx_write write[MYRI_PIECES_MAX];
    uint8_t buffer[MYRI_PAD_BYTES + MYRI_MTU_MAX + LINE_BYTES];
};

/* A small write: completion, block, response, event. */
struct myri_write {
    struct pcie_dma_request request;
    struct myri *nic;
    uint8_t bytes[MYRI_LINE_BYTES];
};

/* ---- Ethernet firmware ----------------------------------------------------------------------- */

struct myri_ring { /* buffers to receive into */
    uint64_t *iova;
    uint32_t posted, used, mask;
};

struct myri_slice {
    struct myri *nic;
    unsigned number;
    struct myri_ring small, big;
    uint64_t queue_iova, status_iova;
    uint32_t queue_next; /* entries written */
    /* The interrupt: what it waits for. */
    bool may_report; /* MYRI_ACK_STATUS was written */
    bool may_claim;  /* MYRI_ACK_CLAIM was written */
    bool received;   /* packets since the last interrupt that told of some */
    sim_time last_ps;
    struct sim_event timer;
};

/* A packet whose requests have not all come. */
struct myri_send_queue {
    struct myri_tx *tx;
    uint32_t n_wanted;
};

struct myri_ether {
    unsigned n_slices;
    struct myri_slice slice[MYRI_SLICES_MAX];
    struct myri_send_queue send;
    uint32_t queue_bytes, small_bytes, big_bytes, mtu_bytes;
    uint32_t coalescing_us;
    uint32_t send_done, send_told;
    uint32_t no_small, no_big; /* packets dropped for want of a buffer */
    bool link_changed;
    bool steering;
    uint32_t table_entries;
    uint8_t table[256];
};

/* ---- The adapter ----------------------------------------------------------------------------- */

struct myri_params {
    struct pcie_function_params pcie;
    int firmware; /* enum myri_firmware */
    double rate_gbit_s;
    uint32_t mtu_bytes;
    sim_time send_ps, receive_ps, multiqueue_ps, mx_ps, command_ps, port_ps;
    uint64_t tx_buffer_bytes, rx_buffer_bytes;
    uint32_t ring_entries;
    bool flow_control;
};

struct myri {
    struct model *model;
    struct myri_params params;
    struct myri_stats stats;
    struct pcie_function pcie;
    struct ether_port *port;
    char port_name[80];
    uint64_t mac; /* of the wire's packets that it takes */
    uint8_t strings[MYRI_STRINGS_BYTES];
    bool ready, up;
    /* Lines that are being written: of each window, of the command. */
    uint8_t line[3][MYRI_SLICES_MAX][MYRI_LINE_BYTES];
    uint8_t command_line[MYRI_LINE_BYTES];
    /* the processor */
    struct myri_job *job_head, **job_tail, command;
    struct sim_event job_event;
    sim_time free_ps;
    struct myri_command commanded;
    bool commanding, closing; /* closing: a command waits for all to end */
    /* sending */
    struct myri_tx *wait_head, **wait_tail; /* no room in the SRAM */
    struct myri_tx *read_head, **read_tail; /* begun, in the order of the wire */
    struct myri_tx *sent_head, **sent_tail; /* on the wire */
    struct sim_event retire;
    uint64_t tx_used_bytes;
    struct ether_buffer rx_buffer; /* the SRAM's part for packets */
    uint64_t n_under_way;          /* struct myri_tx and _rx */
    struct sim_pool *txs, *rxs, *writes;
    struct myri_ether ether;
    struct myri_mx *mx; /* NULL: Ethernet firmware */
};

static inline struct myri *myri_of(const struct model *model)
{
    return model->state;
}
static inline sim_time myri_now(const struct myri *nic)
{
    return sim_now(nic->model->sim);
}

/* myri.c */
void myri_work(struct myri *nic, struct myri_job *job, sim_time duration_ps, myri_job_fn *run);
/* Writes up to a line, behind what was written before. */
void myri_post(struct myri *nic, uint64_t iova, const void *bytes, uint32_t n);
/* Something has ended: a command that waits for that goes on. */
void myri_ended(struct myri *nic);

/* myri_command.c */
void myri_command_line(struct myri *nic);
void myri_command_quiet(struct myri *nic);
void myri_respond(struct myri *nic, enum myri_result result, uint32_t data);

/* myri_send.c */
struct myri_tx *myri_tx_new(struct myri *nic);
/* Takes it. The processor works on it for work_ps, its segments are read, and it goes on the wire
 * behind those submitted before. */
void myri_tx_submit(struct myri *nic, struct myri_tx *tx, sim_time work_ps);
void myri_tx_free(struct myri *nic, struct myri_tx *tx);
void myri_send_retire(struct sim *sim, struct sim_event *event);
void myri_retime(struct ether_port *port, struct ether_frame *frame, sim_time left_ps);
void myri_send_release(struct myri *nic);

/* myri_receive.c */
void myri_receive_frame(struct ether_port *port, struct ether_frame *frame);
void myri_take_frame(struct myri *nic, struct ether_frame *frame);
/* Writes bytes [from, ...) of the frame into the pieces; with_headers: its headers first, behind
 * MYRI_PAD_BYTES of zeros. Frees rx when all was handed to the link. */
void myri_rx_write(struct myri_rx *rx, const struct myri_piece *piece, unsigned n,
                   bool with_headers, uint32_t from);
void myri_rx_drop(struct myri_rx *rx);
/* The same for a packet without data for memory: it counts as received. */
void myri_rx_taken(struct myri_rx *rx);

/* myri_ether.c: the Ethernet firmware, with one receive queue or several */
void myri_ether_init(struct myri *nic);
void myri_ether_reset(struct myri *nic);
void myri_ether_release(struct myri *nic);
void myri_ether_send_line(struct myri *nic, unsigned slice, const uint8_t *line, unsigned n);
void myri_ether_receive_line(struct myri_ring *ring, const uint8_t *line);
void myri_ether_deliver(struct myri *nic, struct myri_rx *rx);

/* myri_mx.c: the firmware of Myrinet Express */
void myri_mx_init(struct myri *nic);
void myri_mx_reset(struct myri *nic);
void myri_mx_release(struct myri *nic);
void myri_mx_window_write(struct myri *nic, uint64_t offset, uint32_t value); /* of all windows */
void myri_mx_deliver(struct myri *nic, struct myri_rx *rx);
/* MYRI_OK: it is answered by itself. */
enum myri_result myri_mx_command(struct myri *nic, uint32_t command, uint64_t address,
                                 uint32_t data2);

/* myri_interrupt.c */
void myri_interrupt_init(struct myri_slice *slice);
void myri_interrupt_reset(struct myri_slice *slice);
/* Sends the interrupt if there is something to tell, and the driver and the time allow it. */
void myri_interrupt_try(struct myri_slice *slice);
void myri_interrupt_ack(struct myri *nic, uint64_t offset);
void myri_link_changed(struct ether_port *port, bool up);

#endif
