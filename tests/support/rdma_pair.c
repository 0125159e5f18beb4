#include "tests/support/rdma_pair.h"

#include <string.h>

#define HOST(NAME)                                                       \
    NAME " = { ports = ( { name = \"rp0\"; socket = 0; lanes = 16; } );" \
         " dram = { node_size = \"1 GiB\"; };"                           \
         " cpu = { sockets = 1; cores_per_socket = 2; clock_ghz = 2.0; }; %s };\n"
#define WORLD                                                                      \
    "hosts = { " HOST("server")                                                    \
        HOST("client") "};\n"                                                      \
                       "devices = { r0 = { type = \"rdma.adapter\"; %s };"         \
                       " r1 = { type = \"rdma.adapter\"; %s }; };\n"               \
                       "cables = ( { from = \"server.s0.rp0\"; to = \"r0.p0\"; }," \
                       " { from = \"client.s0.rp0\"; to = \"r1.p0\"; },"           \
                       " { from = \"r0.i0\"; to = \"r1.i0\"; %s } );\n"
#define LIMIT_PS (100 * SIM_PS_PER_MS)

/* ---- Threads --------------------------------------------------------------------------------- */

struct call {
    struct rp_side *side;
    void (*body)(struct rp_side *side);
};

static void call_body(void *arg)
{
    struct call *call = arg;
    call->body(call->side);
    call->side->pair->n_done++;
}

static void start(struct call *call)
{
    k_thread_new(call->side->kernel, "test", 1, call_body, call);
}

static void run(struct rdma_pair *p, unsigned n)
{
    const sim_time until_ps = sim_now(p->w.sim) + 20 * LIMIT_PS;
    while (p->n_done < n && sim_now(p->w.sim) < until_ps) {
        sim_run(p->w.sim, sim_now(p->w.sim) + 10 * SIM_PS_PER_US, NULL);
        assert_null(sim_error(p->w.sim));
    }
    assert_int_equal(p->n_done, n);
    p->n_done = 0;
}

void rp_call(struct rdma_pair *p, unsigned side, void (*body)(struct rp_side *side))
{
    struct call call = { &p->side[side], body };
    start(&call);
    run(p, 1);
}

void rp_call_both(struct rdma_pair *p, void (*body)(struct rp_side *side))
{
    struct call call[RP_SIDES] = { { &p->side[0], body }, { &p->side[1], body } };
    start(&call[0]);
    start(&call[1]);
    run(p, 2);
}

struct model *rp_adapter(struct rdma_pair *p, unsigned side)
{
    return world_device(p->w.world, side == 0 ? "r0" : "r1");
}

/* ---- Up and down ----------------------------------------------------------------------------- */

static struct rdma_drv_connection connection_of(const struct rp_side *side)
{
    struct rdma_drv_connection connection = side->pair->connection;
    if (side == side->pair->side && side->pair->server_reads != 0)
        connection.responder_resources = connection.initiator_depth = side->pair->server_reads;
    return connection;
}

static void up(struct rp_side *side)
{
    struct rdma_pair *p = side->pair;
    struct rdma_drv_qp_params params = p->qp;
    const struct rdma_drv_connection connection = connection_of(side);
    const uint8_t access = RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_REMOTE_WRITE |
                           RDMA_ACCESS_REMOTE_READ | RDMA_ACCESS_REMOTE_ATOMIC;
    assert_int_equal(k_pci_register(side->kernel, rdma_driver_pci(side->driver)), 1);
    side->rdma = rdma_driver_device(side->driver, 0);
    assert_non_null(side->rdma);
    assert_ptr_equal(rdma_drv_of(rdma_drv_pci(side->rdma)), side->rdma);
    assert_int_equal(rdma_drv_set_lid(side->rdma, (uint16_t)(1 + (side - p->side))), 0);
    assert_int_equal(rdma_drv_pd_new(side->rdma, &side->pd), 0);
    side->buffer = k_alloc(side->kernel, K_NODE_LOCAL, RP_BUFFER_BYTES, K_PAGE_BYTES);
    assert_int_equal(
        rdma_drv_mr_new(side->rdma, side->pd, side->buffer, RP_BUFFER_BYTES, access, &side->mr), 0);
    assert_int_equal(rdma_drv_cq_new(side->rdma, 256, 0, NULL, NULL, &side->cq), 0);
    params.pd = side->pd;
    params.send_cq = params.receive_cq = side->cq;
    assert_int_equal(rdma_drv_qp_new(side->rdma, &params, &side->qp), 0);
    side->endpoint = rdma_drv_endpoint(side->qp, &connection);
}

static void connect_side(struct rp_side *side)
{
    const struct rdma_drv_connection connection = connection_of(side);
    assert_int_equal(rdma_drv_connect(side->qp, &rp_peer(side)->endpoint, &connection), 0);
    assert_int_equal(rdma_drv_qp_state(side->qp), RDMA_QP_RTS);
}

static const struct rdma_drv_qp_params qp_default = {
    .n_sends = 64,
    .n_receives = 64,
    .send_sges = 4,
    .receive_sges = 4,
    .inline_bytes = 64,
    .access = RDMA_ACCESS_REMOTE_WRITE | RDMA_ACCESS_REMOTE_READ | RDMA_ACCESS_REMOTE_ATOMIC,
    .blueflame = true,
};

void rp_open(struct rdma_pair *p, const char *adapter, const char *wire)
{
    const char *more = p->host != NULL ? p->host : "";
    char *text = g_strdup_printf(WORLD, more, more, adapter, adapter, wire);
    fixture_open(&p->w, text);
    g_free(text);
    if (p->qp.n_sends == 0)
        p->qp = qp_default;
    if (p->connection.mtu_bytes == 0)
        p->connection = rdma_drv_connection_default;
    for (unsigned i = 0; i < RP_SIDES; i++) {
        struct rp_side *side = &p->side[i];
        struct host *host = world_host(p->w.world, i == 0 ? "server" : "client");
        side->pair = p;
        side->kernel = os_new(host, host_os_params(host));
        side->driver = rdma_driver_new(side->kernel);
    }
    rp_call_both(p, up);
    rp_call_both(p, connect_side);
}

static void down(struct rp_side *side)
{
    rdma_drv_qp_free(side->qp);
    rdma_drv_cq_free(side->cq);
    rdma_drv_mr_free(side->mr);
    rdma_drv_pd_free(side->rdma, side->pd);
    k_pci_remove(rdma_drv_pci(side->rdma), false);
    assert_null(rdma_driver_device(side->driver, 0));
    rdma_driver_free(side->driver);
}

void rp_close(struct rdma_pair *p)
{
    rp_call_both(p, down);
    sim_run(p->w.sim, sim_now(p->w.sim) + SIM_PS_PER_MS, NULL);
    assert_null(sim_error(p->w.sim));
    for (unsigned i = 0; i < RP_SIDES; i++)
        os_free(p->side[i].kernel);
    fixture_close(&p->w);
}

/* ---- Work ------------------------------------------------------------------------------------ */

struct rdma_drv_sge rp_sge(const struct rp_side *side, uint64_t at, uint32_t bytes)
{
    return (struct rdma_drv_sge){ side->buffer.v + at, bytes, rdma_drv_key(side->mr) };
}

struct rdma_drv_wc rp_wait(struct rp_side *side)
{
    const uint64_t until_ps = k_now_ps(side->kernel) + LIMIT_PS;
    struct rdma_drv_wc wc = { 0 };
    while (rdma_drv_poll(side->cq, &wc, 1) == 0)
        if (k_now_ps(side->kernel) > until_ps) {
            k_fault(side->kernel, "no completion");
            break;
        }
    return wc;
}

struct rdma_drv_wc rp_send(struct rp_side *side, const struct rdma_drv_send *send)
{
    struct rdma_drv_send signaled = *send;
    signaled.signaled = true;
    assert_int_equal(rdma_drv_post_send(side->qp, &signaled), 0);
    return rp_wait(side);
}

struct rdma_drv_send rp_request(const struct rp_side *side, enum rdma_opcode opcode,
                                const struct rdma_drv_sge *sge, uint64_t to)
{
    const struct rp_side *peer = &side->pair->side[side == side->pair->side];
    return (struct rdma_drv_send){ .id = 1,
                                   .opcode = opcode,
                                   .signaled = true,
                                   .sge = sge,
                                   .n_sges = 1,
                                   .remote_va = peer->buffer.v + to,
                                   .rkey = rdma_drv_key(peer->mr) };
}

void rp_receive(struct rp_side *side, uint64_t id, uint64_t at, uint32_t bytes)
{
    const struct rdma_drv_sge sge = rp_sge(side, at, bytes);
    const struct rdma_drv_receive receive = { id, &sge, 1 };
    assert_int_equal(rdma_drv_post_receive(side->qp, &receive), 0);
}

static uint8_t byte_at(uint32_t i, unsigned number)
{
    return (uint8_t)((i * 7 + (i >> 8) * 13 + number * 31) % 251);
}

void rp_fill(struct rp_side *side, uint64_t at, uint32_t bytes, unsigned number)
{
    uint8_t *data = g_malloc(bytes);
    for (uint32_t i = 0; i < bytes; i++)
        data[i] = byte_at(i, number);
    k_poke(side->kernel, kaddr_add(side->buffer, at), data, bytes);
    g_free(data);
}

bool rp_holds(struct rp_side *side, uint64_t at, uint32_t bytes, unsigned number)
{
    uint8_t *data = g_malloc(bytes);
    bool same = true;
    k_peek(side->kernel, kaddr_add(side->buffer, at), data, bytes);
    for (uint32_t i = 0; i < bytes; i++)
        same &= data[i] == byte_at(i, number);
    g_free(data);
    return same;
}
