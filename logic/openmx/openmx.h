/*
 * Open-MX: Myrinet Express over any Ethernet device. A kernel module does what the firmware of a
 * Myri-10G does with MX: a board (logic/mx/mx_board.h) whose commands are system calls.
 *
 *   struct openmx *omx = openmx_new(net, dev, dma, &openmx_options_default);   [thread] dev is open
 *   mx_open(openmx_board(omx), id, key, &mx_options_default, &ep);             and so on: logic/mx/mx.h
 *   openmx_free(omx);                                                          [thread]
 *
 * Packets to endpoints of the same board do not leave the host.
 */
#ifndef LOGIC_OPENMX_OPENMX_H
#define LOGIC_OPENMX_OPENMX_H

#include "logic/dma/dma.h"
#include "logic/mx/mx_board.h"
#include "logic/net/netdev.h"

struct openmx;

/* To which CPU's receive queue packets of an endpoint come: the adapter decides; the CPU that opens
 * it; a CPU. */
enum openmx_steer { OPENMX_STEER_NONE, OPENMX_STEER_PROCESS, OPENMX_STEER_CPU };

struct openmx_options {
    /* Of what this host pulls: bytes of a reply (MX_REPLY_BYTES, or MX_REPLY_BYTES_JUMBO if both
     * ends can send such packets), replies to one request (up to 32), requests outstanding (up to
     * 4). */
    uint32_t reply_bytes, replies_per_block, blocks;
    uint64_t pull_resend_ps;   /* a pull of which nothing has come for so long is asked for again */
    uint32_t pull_resends_max; /* in a row; then it is given up */
    uint64_t grace_ps;         /* a region that is given back stays pinned for so long */
    uint32_t local_bytes; /* larger messages within the host are pulled: one copy instead of two */
    /* Copies by an engine, if there is one: messages and replies of at least so many bytes;
     * messages within the host of at least so many bytes, waited for. */
    bool ioat;
    uint64_t ioat_message_bytes, ioat_reply_bytes, ioat_local_bytes;
    /* Unless NULL, told when pull_resend_ps have passed since a pull began or got its last reply,
     * at since_ps, so that it is asked for again or given up. Must not wait. */
    void (*timed_out)(void *context, uint64_t since_ps, uint64_t now_ps);
    void *timed_out_context;
    /* By rules in the adapter (net_device_ops.rx_rule), which are set when an endpoint is opened;
     * if the adapter refuses one, the endpoint is not opened, with that error. */
    enum openmx_steer steer;
    unsigned steer_cpu;
};
extern const struct openmx_options openmx_options_default; /* of Open-MX 0.9.2 */

struct openmx_stats {
    uint64_t sent, received, local; /* packets; messages' parts within the host */
    uint64_t no_endpoint, bad_session, malformed, full, no_memory; /* dropped */
    uint64_t pulls, pulls_failed, blocks, blocks_again, replies, duplicate_replies;
    uint64_t reply_ps; /* when the last reply that was missing came */
    uint64_t engine_copies, engine_bytes, engine_failed, engine_waits;
    uint64_t regions;
};

/* [thread] Attaches to a device. `dma`: whose engines copy; NULL: none. The caller owns the result,
 * and frees it when all endpoints are closed. NULL: somebody has the Ethernet type already, the
 * adapter knows no rules but is to steer, or there is no memory. */
struct openmx *openmx_new(struct net *net, struct net_device *dev, struct dma_core *dma,
                          const struct openmx_options *options);
/* [thread] Packets that the device still has to send must have left. */
void openmx_free(struct openmx *omx);
struct mx_board *openmx_board(struct openmx *omx);
void openmx_stats_get(const struct openmx *omx, struct openmx_stats *stats);
/* Regions whose memory is pinned: registered, or given back not long ago. */
unsigned openmx_regions_live(const struct openmx *omx);

#endif
