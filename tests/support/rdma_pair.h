/*
 * Two hosts with an RDMA adapter each, joined by a wire, their drivers and one connected queue pair
 * on each side, with memory that the other side may read and write.
 */
#ifndef TESTS_SUPPORT_RDMA_PAIR_H
#define TESTS_SUPPORT_RDMA_PAIR_H

#include "logic/rdma/rdma_driver.h"
#include "models/os/os.h"
#include "models/rdma/rdma.h"
#include "tests/support/world_fixture.h"

#define RP_SIDES        2u
#define RP_BUFFER_BYTES (1u << 20)
#define RP_WCS          64u

struct rdma_pair;
struct rp_side {
    struct rdma_pair *pair;
    struct kernel *kernel;
    struct rdma_driver *driver;
    struct rdma_drv *rdma;
    uint32_t pd;
    struct kaddr buffer; /* RP_BUFFER_BYTES */
    struct rdma_drv_mr *mr;
    struct rdma_drv_cq *cq;
    struct rdma_drv_qp *qp;
    struct rdma_drv_endpoint endpoint;
};

struct rdma_pair {
    struct world_fixture w;
    struct rp_side side[RP_SIDES]; /* of `server`, `client` */
    struct rdma_drv_qp_params qp;  /* before rp_open(); zeros: defaults */
    struct rdma_drv_connection connection;
    uint8_t server_reads; /* that the server's end serves and asks for; 0: as the client's */
    const char *host;     /* settings of both hosts; NULL: none */
    unsigned n_done, n_calls;
    void *arg;
};

/* What is set in text of the adapters and the wire: "inline_bytes = 0;", "loss_ratio = 0.1;". */
void rp_open(struct rdma_pair *p, const char *adapter, const char *wire);
/* Frees everything through the driver; nothing may be left. */
void rp_close(struct rdma_pair *p);

/* Runs a function as a thread of a side, to its end; both: on both sides at the same time. */
void rp_call(struct rdma_pair *p, unsigned side, void (*body)(struct rp_side *side));
void rp_call_both(struct rdma_pair *p, void (*body)(struct rp_side *side));
static inline struct rp_side *rp_peer(struct rp_side *side)
{
    return &side->pair->side[side == side->pair->side];
}
struct model *rp_adapter(struct rdma_pair *p, unsigned side);

/* [thread] A segment of the side's buffer. */
struct rdma_drv_sge rp_sge(const struct rp_side *side, uint64_t at, uint32_t bytes);
/* [thread] Polls until there is a completion; the run fails after 100 ms. */
struct rdma_drv_wc rp_wait(struct rp_side *side);
/* [thread] Posts, waits for its completion, which it returns. */
struct rdma_drv_wc rp_send(struct rp_side *side, const struct rdma_drv_send *send);
/* An RDMA operation or send of bytes at `from` of the buffer to (from) `to` of the peer's. */
struct rdma_drv_send rp_request(const struct rp_side *side, enum rdma_opcode opcode,
                                const struct rdma_drv_sge *sge, uint64_t to);
/* [thread] Posts a receive of `bytes` at `at`. */
void rp_receive(struct rp_side *side, uint64_t id, uint64_t at, uint32_t bytes);
/* Bytes that depend on a number and their place: written, compared. */
void rp_fill(struct rp_side *side, uint64_t at, uint32_t bytes, unsigned number);
bool rp_holds(struct rp_side *side, uint64_t at, uint32_t bytes, unsigned number);

#endif
