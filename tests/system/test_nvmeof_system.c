/*
 * NVMe over Fabrics by RDMA between two simulated hosts: data both ways in capsules, by RDMA writes
 * and by RDMA reads, at every MTU; several initiators; flow control and RNR; refusals and errors
 * with their status; connections that break in mid command, hosts that fall silent, capsules of
 * random bytes; the same with a target whose adapter serves the reads.
 */
#include "tests/support/nvmeof_rig.h"

#include <errno.h>
#include <string.h>

/* ---- Data ------------------------------------------------------------------------------------ */

static void test_data(void **state)
{
    (void)state;
    rig_run(rig_data_both_ways, "");
    assert_int_equal(rig.stats.writes, SIM_N_ELEMENTS(rig_sizes));
    assert_int_equal(rig.stats.reads, SIM_N_ELEMENTS(rig_sizes));
    assert_int_equal(rig.stats.in_capsule, 2); /* up to 4 KiB */
    assert_int_equal(rig.stats.connected, 2);
    assert_int_equal(rig.stats.broken, 0);
    assert_int_equal(rig.stats.failed, 0);
}

/* Queues of one capsule, without and with much data in it. */
static void test_data_of_any_mtu(void **state)
{
    for (uint32_t mtu = 256; mtu < 4096; mtu *= 4) {
        rig_set_up(state);
        rig.params.mtu_bytes = mtu;
        rig.params.in_capsule_bytes = mtu == 256 ? 0 : 8192;
        rig.params.entries_max = 2;
        rig_run(rig_data_both_ways, "");
        assert_int_equal(rig.stats.in_capsule, mtu == 256 ? 0 : 4);
        assert_int_equal(rig.stats.failed, 0);
    }
}

/* The controller's queues have fewer entries than the target's may have: these have as many. */
static void fewer_entries(void)
{
    struct nvmeof_initiator *initiator = rig_open_initiator();
    assert_int_equal(nvmeof_entries(initiator), rig.nvme_entries);
    nvmeof_initiator_close(initiator);
    rig_data_both_ways();
}

static void test_queues_of_the_controller(void **state)
{
    for (uint16_t entries = 2; entries < RIG_ENTRIES; entries += 3) {
        rig_set_up(state);
        rig.nvme_entries = entries;
        rig_run(fewer_entries, "");
        assert_int_equal(rig.stats.reads, SIM_N_ELEMENTS(rig_sizes));
        assert_int_equal(rig.stats.failed, 0);
    }
}

/* A wire that loses packets: none is missed, none rig_done twice. */
static void test_data_over_a_bad_wire(void **state)
{
    (void)state;
    rig_run(rig_data_both_ways, "loss_ratio = 0.01;");
    assert_int_equal(rig.stats.reads, SIM_N_ELEMENTS(rig_sizes));
    assert_int_equal(rig.stats.broken, 0);
}

/* ---- Several initiators, flow control -------------------------------------------------------- */

#define INITIATORS 3u
#define ROUNDS     4u

/* Full queues of three initiators at once: writes to blocks of their own, then reads of these. */
static void several(void)
{
    struct nvmeof_initiator *initiator[INITIATORS];
    static struct nvmeof_request request[INITIATORS][RIG_ENTRIES];
    bool flag = false;
    unsigned n_want = 0;
    for (unsigned k = 0; k < INITIATORS; k++) {
        initiator[k] = rig_open_initiator();
        for (unsigned i = 0; i < RIG_ENTRIES; i++) {
            request[k][i] = (struct nvmeof_request){ .done = rig_done, .context = &flag };
            assert_int_equal(
                nvmeof_buffer_new(initiator[k], K_NODE_LOCAL, 8192, &request[k][i].buffer), 0);
        }
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        const bool write = round % 2 == 0;
        for (unsigned i = 0; i < RIG_ENTRIES - 1; i++)
            for (unsigned k = 0; k < INITIATORS; k++) {
                const uint32_t bytes = i % 2 == 0 ? 4096 : 8192;
                const unsigned seed = round / 2 * 100 + k * RIG_ENTRIES + i;
                rig_fill(request[k][i].buffer.at, 8192, write ? seed : 77);
                nvmeof_transfer(initiator[k], &request[k][i], write, 8192 * (k * RIG_ENTRIES + i),
                                bytes);
                assert_int_equal(nvmeof_submit(initiator[k], 0, &request[k][i]), 0);
            }
        n_want += INITIATORS * (RIG_ENTRIES - 1);
        for (unsigned k = 0; k < INITIATORS; k++) /* full, unless something has ended already */
            if (initiator[k]->queue[0].n_free == 0)
                assert_int_equal(nvmeof_submit(initiator[k], 0, &request[k][RIG_ENTRIES - 1]),
                                 -EBUSY);
        while (rig.n_done < n_want)
            for (unsigned k = 0; k < INITIATORS; k++)
                nvmeof_poll(initiator[k], 0);
        for (unsigned i = 0; i < RIG_ENTRIES - 1; i++)
            for (unsigned k = 0; k < INITIATORS; k++) {
                assert_int_equal(request[k][i].error, 0);
                assert_true(write || rig_holds(request[k][i].buffer.at, i % 2 == 0 ? 4096 : 8192,
                                               round / 2 * 100 + k * RIG_ENTRIES + i));
            }
    }
    for (unsigned k = 0; k < INITIATORS; k++)
        nvmeof_initiator_close(initiator[k]);
}

static void test_several_initiators(void **state)
{
    (void)state;
    rig_run(several, "");
    assert_int_equal(rig.stats.connected, 2 * INITIATORS);
    assert_int_equal(rig.stats.writes, INITIATORS * (RIG_ENTRIES - 1) * ROUNDS / 2);
    assert_int_equal(rig.stats.failed, 0);
    assert_int_equal(rig.stats.broken, 0);
}

/* Adapters that take a response inline and no command, or neither: they are gathered. */
static void test_data_without_inline(void **state)
{
    static const char *const adapters[] = { "inline_bytes = 63;", "inline_bytes = 15;",
                                            "inline_bytes = 0;" };
    for (size_t i = 0; i < SIM_N_ELEMENTS(adapters); i++) {
        rig_set_up(state);
        rig.adapters = adapters[i];
        rig_run(rig_data_both_ways, i == 1 ? "loss_ratio = 0.01;" : "");
        assert_int_equal(rig.stats.reads, SIM_N_ELEMENTS(rig_sizes));
        assert_int_equal(rig.stats.in_capsule, 2);
        assert_int_equal(rig.stats.failed, 0);
        assert_int_equal(rig.stats.broken, 0);
        rig_set_up(state);
        rig.adapters = adapters[i];
        rig_run(several, "");
        assert_int_equal(rig.stats.failed, 0);
        assert_int_equal(rig.stats.broken, 0);
    }
}

/* ---- Refusals, errors ------------------------------------------------------------------------ */

static void refusals(void)
{
    struct nvmeof_initiator *initiator, *more[4];
    struct nvmeof_initiator_params params = rig_initiator_params();
    params.subsystem = "nqn.other";
    assert_int_equal(nvmeof_initiator_open(&params, &initiator), -EIO);
    params = rig_initiator_params();
    params.n_queues = 0;
    assert_int_equal(nvmeof_initiator_open(&params, &initiator), -EINVAL);
    /* More queues than the device has: the target grants fewer, all others are taken then. */
    params.n_queues = 64;
    assert_int_equal(nvmeof_initiator_open(&params, &initiator), 0);
    assert_int_equal(nvmeof_n_queues(initiator), 7);
    params.n_queues = 1;
    assert_int_equal(nvmeof_initiator_open(&params, &more[0]), -EBUSY);
    nvmeof_initiator_close(initiator);
    /* The target learns of it a little later; all is there again. */
    k_sleep(rig.client.kernel, K_MS);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(nvmeof_initiator_open(&params, &more[i]), 0);
    assert_int_equal(nvmeof_initiator_open(&params, &initiator), -EBUSY); /* nine connections */
    for (unsigned i = 0; i < 4; i++)
        nvmeof_initiator_close(more[i]);
}

static void test_refusals(void **state)
{
    (void)state;
    rig_run(refusals, "");
}

/* Errors with their status leave the connection as it is. */
static void errors(void)
{
    struct nvmeof_initiator *initiator = rig_open_initiator();
    struct nvmeof_buffer buffer;
    uint16_t status;
    assert_int_equal(nvmeof_buffer_new(initiator, K_NODE_LOCAL, RIG_BYTES, &buffer), 0);
    assert_int_equal(rig_transfer(initiator, buffer, false, UINT64_C(1) << 30, 4096, &status),
                     -EIO);
    assert_int_equal(NVME_STATUS_CODE(status), NVME_SC_LBA_OUT_OF_RANGE);
    assert_int_equal(rig_transfer(initiator, buffer, true, UINT64_C(1) << 30, 65536, &status),
                     -EIO);
    assert_int_equal(NVME_STATUS_CODE(status), NVME_SC_LBA_OUT_OF_RANGE);
    struct nvmeof_request request = { .sqe = { .opcode = 0x7d, .nsid = 1 } }; /* write, unknown */
    request.buffer = buffer;
    request.bytes = 512;
    request.write = true;
    assert_int_equal(rig_execute(initiator, &request), -EIO);
    assert_int_equal(NVME_STATUS_CODE(request.status), NVME_SC_INVALID_OPCODE);
    nvmeof_transfer(initiator, &request, false, 0, 4096);
    request.bytes = 8192; /* not what the command says */
    assert_int_equal(rig_execute(initiator, &request), -EIO);
    assert_int_equal(NVME_STATUS_CODE(request.status), NVME_SC_SGL_LENGTH_INVALID);
    nvmeof_transfer(initiator, &request, false, 0, 4096);
    request.sqe.nsid = 2;
    assert_int_equal(rig_execute(initiator, &request), -EIO);
    assert_int_equal(NVME_STATUS_CODE(request.status), NVME_SC_INVALID_NAMESPACE);
    request = (struct nvmeof_request){ .sqe = { .opcode = NVME_FLUSH, .nsid = 1 } };
    assert_int_equal(rig_execute(initiator, &request), 0);
    request.bytes = 2 * RIG_BYTES;
    assert_int_equal(nvmeof_submit(initiator, 0, &request), -EINVAL);
    rig_fill(buffer.at, 4096, 5);
    assert_int_equal(rig_transfer(initiator, buffer, true, 0, 4096, NULL), 0);
    nvmeof_initiator_close(initiator);
}

static void test_errors(void **state)
{
    (void)state;
    rig_run(errors, "");
    assert_int_equal(rig.stats.failed, 5);
    assert_int_equal(rig.stats.broken, 0);
}

/* A key that is not valid ends the connection on both sides; the admin queue goes on. */
static void bad_key(void)
{
    struct nvmeof_initiator *initiator = rig_open_initiator();
    struct nvmeof_buffer buffer;
    for (unsigned write = 0; write < 2; write++) {
        assert_int_equal(nvmeof_buffer_new(initiator, K_NODE_LOCAL, RIG_BYTES, &buffer), 0);
        buffer.key ^= 0x5500;
        assert_int_equal(rig_transfer(initiator, buffer, write, 0, 65536, NULL), -ENOTCONN);
        assert_int_equal(rig_transfer(initiator, buffer, write, 0, 4096, NULL), -ENOTCONN);
        assert_int_equal(nvmeof_keep_alive(initiator), 0);
        k_sleep(rig.client.kernel, 20 * K_US); /* the target knows, too */
        assert_int_equal(nvmeof_target_n_queues(rig.target), 1);
        nvmeof_initiator_close(initiator);
        initiator = rig_open_initiator();
    }
    assert_int_equal(nvmeof_buffer_new(initiator, K_NODE_LOCAL, RIG_BYTES, &buffer), 0);
    assert_int_equal(rig_transfer(initiator, buffer, false, 0, 65536, NULL), 0);
    nvmeof_initiator_close(initiator);
}

static void test_bad_key(void **state)
{
    (void)state;
    rig_run(bad_key, "");
    assert_true(rig.stats.broken >= 2);
    assert_int_equal(rig.stats.failed, 0);
}

/* A connection of this queue identifier for the initiator's controller; the status of Connect. */
static uint16_t connect_as(struct nvmeof_initiator *initiator, uint16_t qid)
{
    const struct nvmeof_connect connect = {
        .opcode = NVMEOF_OPCODE, .type = NVMEOF_CONNECT, .qid = qid, .entries = RIG_ENTRIES - 1
    };
    static struct initiator_queue queue;
    struct nvmeof_connect_data data = { .cntlid = initiator->cntlid };
    bool flag = false;
    struct nvmeof_request request = { .buffer = initiator->page,
                                      .bytes = NVMEOF_CONNECT_BYTES,
                                      .write = true,
                                      .done = rig_done,
                                      .context = &flag };
    assert_int_equal(initiator_queue_open(initiator, &queue, qid, RIG_ENTRIES), 0);
    memcpy(data.subsystem, initiator->subsystem, sizeof data.subsystem);
    memcpy(data.host, initiator->host, sizeof data.host);
    k_store(rig.client.kernel, initiator->page.at, &data, sizeof data);
    memcpy(&request.sqe, &connect, sizeof request.sqe);
    assert_int_equal(initiator_queue_submit(&queue, &request), 0);
    while (!flag)
        initiator_queue_poll(&queue);
    initiator_queue_close(&queue);
    return request.status;
}

/* Queues of a controller have identifiers of their own, up to as many as there can be. A connection
 * that was refused keeps its queue pair of the controller. */
static void queue_identifiers(void)
{
    struct nvmeof_initiator *initiator = rig_open_initiator();
    const unsigned most = rig.params.offload ? 3 : 7;
    struct nvmeof_buffer buffer;
    assert_int_equal(connect_as(initiator, 1), NVME_SC_SEQUENCE_ERROR | NVME_STATUS_DNR);
    assert_int_equal(connect_as(initiator, (uint16_t)(most + 1)),
                     NVME_SC_QUEUE_ID_INVALID | NVME_STATUS_DNR);
    if (!rig.params.offload) {
        assert_int_equal(connect_as(initiator, 60000), NVME_SC_QUEUE_ID_INVALID | NVME_STATUS_DNR);
        assert_int_equal(connect_as(initiator, (uint16_t)most), NVME_SC_SUCCESS);
    }
    assert_int_equal(nvmeof_buffer_new(initiator, K_NODE_LOCAL, RIG_BYTES, &buffer), 0);
    assert_int_equal(rig_transfer(initiator, buffer, false, 0, 65536, NULL), 0);
    nvmeof_initiator_close(initiator);
}

static void test_queue_identifiers(void **state)
{
    (void)state;
    rig_run(queue_identifiers, "");
}

/* ---- Connections that go away ---------------------------------------------------------------- */

static void disconnect_in_mid_command(void)
{
    struct nvmeof_initiator *initiator = rig_open_initiator();
    static struct nvmeof_request request[RIG_ENTRIES];
    struct nvmeof_buffer buffer;
    bool flag = false;
    assert_int_equal(nvmeof_buffer_new(initiator, K_NODE_LOCAL, RIG_BYTES, &buffer), 0);
    for (unsigned i = 0; i < 8; i++) {
        request[i] =
            (struct nvmeof_request){ .buffer = buffer, .done = rig_done, .context = &flag };
        nvmeof_transfer(initiator, &request[i], i % 2, 131072 * i, RIG_BYTES);
        assert_int_equal(nvmeof_submit(initiator, 0, &request[i]), 0);
    }
    k_sleep(rig.client.kernel, 6 * K_US);
    nvmeof_initiator_close(initiator);
    assert_int_equal(rig.n_done, 8);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(request[i].error, -ENOTCONN);
    k_sleep(rig.client.kernel, K_MS);
    assert_int_equal(nvmeof_target_n_queues(rig.target), 0);
    rig_data_both_ways();
}

static void test_disconnect_in_mid_command(void **state)
{
    (void)state;
    rig_run(disconnect_in_mid_command, "");
}

/* Has the controller's CC written, as the answer to which `flag` is set. */
static void write_cc(struct nvmeof_initiator *initiator, struct nvmeof_request *request,
                     uint32_t value, bool *flag)
{
    const struct nvmeof_property property = {
        .opcode = NVMEOF_OPCODE, .type = NVMEOF_PROPERTY_SET, .offset = NVME_REG_CC, .value = value
    };
    *request = (struct nvmeof_request){ .done = rig_done, .context = flag };
    memcpy(&request->sqe, &property, sizeof request->sqe);
    assert_int_equal(initiator_queue_submit(&initiator->admin, request), 0);
}

/* A controller reset ends the association: its I/O connections at once, that of administration
 * behind the answer. What is written afterwards finds nobody; the host connects again. */
static void reset_controller(void)
{
    struct nvmeof_initiator *initiator = rig_open_initiator();
    const uint32_t enabled = NVME_CC_IOSQES(NVME_SQE_LOG2) | NVME_CC_IOCQES(NVME_CQE_LOG2) |
                             NVME_CC_EN;
    static struct nvmeof_request transfer[4], off, on;
    struct nvmeof_buffer buffer;
    bool moved = false, is_off = false, is_on = false;
    assert_int_equal(nvmeof_buffer_new(initiator, K_NODE_LOCAL, RIG_BYTES, &buffer), 0);
    for (unsigned i = 0; i < SIM_N_ELEMENTS(transfer); i++) {
        transfer[i] =
            (struct nvmeof_request){ .buffer = buffer, .done = rig_done, .context = &moved };
        nvmeof_transfer(initiator, &transfer[i], i % 2, 131072 * i, RIG_BYTES);
        assert_int_equal(nvmeof_submit(initiator, 0, &transfer[i]), 0);
    }
    write_cc(initiator, &off, enabled & ~NVME_CC_EN, &is_off);
    while (!is_off)
        initiator_queue_poll(&initiator->admin);
    assert_int_equal(off.error, 0);
    write_cc(initiator, &on, enabled, &is_on);
    for (unsigned i = 0; i < 100; i++) {
        k_sleep(rig.client.kernel, 10 * K_US);
        initiator_queue_poll(&initiator->admin);
        nvmeof_poll(initiator, 0);
    }
    assert_false(is_on && on.error == 0);
    assert_false(moved);
    assert_int_equal(nvmeof_target_n_queues(rig.target), 0);
    nvmeof_initiator_close(initiator);
    for (unsigned i = 0; i < SIM_N_ELEMENTS(transfer); i++)
        assert_int_equal(transfer[i].error, -ENOTCONN);
    assert_int_equal(on.error, -ENOTCONN);
    rig_data_both_ways();
}

static void test_controller_reset(void **state)
{
    (void)state;
    rig_run(reset_controller, "");
    assert_int_equal(rig.stats.broken, 0); /* they were ended */
}

/* One host keeps alive, the other falls silent with a command under way: its queues are freed when
 * its time is over, those of the first are not. */
static void silence(void)
{
    struct nvmeof_initiator_params params = rig_initiator_params();
    struct nvmeof_initiator *alive, *silent;
    struct nvmeof_buffer buffer;
    params.keep_alive_ms = 4;
    assert_int_equal(nvmeof_initiator_open(&params, &alive), 0);
    assert_int_equal(nvmeof_initiator_open(&params, &silent), 0);
    assert_int_equal(nvmeof_buffer_new(silent, K_NODE_LOCAL, RIG_BYTES, &buffer), 0);
    struct nvmeof_request request = { .buffer = buffer, .done = rig_done };
    bool flag = false;
    request.context = &flag;
    nvmeof_transfer(silent, &request, false, 0, RIG_BYTES);
    assert_int_equal(nvmeof_submit(silent, 0, &request), 0);
    silent->admin.broken = silent->queue[0].broken = true; /* it says nothing any more */
    for (unsigned i = 0; i < 12; i++) {
        k_sleep(rig.client.kernel, K_MS);
        assert_int_equal(nvmeof_keep_alive(alive), 0);
    }
    assert_int_equal(nvmeof_target_n_queues(rig.target), 2);
    nvmeof_initiator_close(silent);
    assert_int_equal(request.error, -ENOTCONN);
    assert_int_equal(nvmeof_buffer_new(alive, K_NODE_LOCAL, RIG_BYTES, &buffer), 0);
    assert_int_equal(rig_transfer(alive, buffer, false, 0, RIG_BYTES, NULL), 0);
    nvmeof_initiator_close(alive);
}

static void test_keep_alive(void **state)
{
    (void)state;
    rig_run(silence, "");
    assert_int_equal(rig.stats.expired, 1);
}

/* ---- A host that does what it likes ---------------------------------------------------------- */

struct raw {
    struct kaddr buffer;
    struct rdma_drv_mr *mr;
    struct rdma_drv_cq *cq;
    struct rdma_drv_qp *qp;
    uint32_t pd;
};

static void raw_open(struct raw *raw, uint16_t qid, uint16_t entries)
{
    struct rdma_drv *rdma = rig.client.rdma;
    struct rdma_drv_qp_params params = {
        .n_sends = 64, .n_receives = 64, .send_sges = 1, .receive_sges = 1
    };
    struct nvmeof_hello answer;
    raw->buffer = k_alloc(rig.client.kernel, K_NODE_LOCAL, 16384, K_PAGE_BYTES);
    assert_int_equal(rdma_drv_pd_new(rdma, &raw->pd), 0);
    assert_int_equal(
        rdma_drv_mr_new(rdma, raw->pd, raw->buffer, 16384, RDMA_ACCESS_LOCAL_WRITE, &raw->mr), 0);
    assert_int_equal(rdma_drv_cq_new(rdma, 256, 0, NULL, NULL, &raw->cq), 0);
    params.pd = raw->pd;
    params.send_cq = params.receive_cq = raw->cq;
    assert_int_equal(rdma_drv_qp_new(rdma, &params, &raw->qp), 0);
    const struct nvmeof_hello hello = { .endpoint = rdma_drv_endpoint(raw->qp,
                                                                      &rdma_drv_connection_default),
                                        .qid = qid,
                                        .entries = entries,
                                        .mtu_bytes = 1024 };
    assert_int_equal(rig_exchange(NULL, &hello, &answer), 0);
    assert_int_equal(answer.entries, entries);
    struct rdma_drv_connection connection = rdma_drv_connection_default;
    connection.mtu_bytes = answer.mtu_bytes;
    assert_int_equal(rdma_drv_connect(raw->qp, &answer.endpoint, &connection), 0);
}

static void raw_close(struct raw *raw)
{
    rdma_drv_qp_free(raw->qp);
    rdma_drv_cq_free(raw->cq);
    rdma_drv_mr_free(raw->mr);
    rdma_drv_pd_free(rig.client.rdma, raw->pd);
}

static void raw_send(struct raw *raw, uint32_t bytes)
{
    const struct rdma_drv_sge sge = { raw->buffer.v, bytes, rdma_drv_key(raw->mr) };
    const struct rdma_drv_send send = { .opcode = RDMA_OP_SEND, .sge = &sge, .n_sges = 1 };
    assert_int_equal(rdma_drv_post_send(raw->qp, &send), 0);
}

static void raw_receive(struct raw *raw, unsigned i)
{
    const struct rdma_drv_sge sge = { raw->buffer.v + 8192 + 16 * i, 16, rdma_drv_key(raw->mr) };
    const struct rdma_drv_receive receive = { i, &sge, 1 };
    assert_int_equal(rdma_drv_post_receive(raw->qp, &receive), 0);
}

/* Eight capsules to a queue of two, by one that has no receive for the responses at first: both
 * sides answer RNR NAK, and nothing is lost. */
static void flood(void)
{
    struct raw raw;
    struct rdma_drv_wc wc;
    struct nvmeof_response response;
    const struct nvme_sqe sqe = { .opcode = NVME_ADMIN_IDENTIFY, .cid = 77 };
    raw_open(&raw, 0, 2);
    k_poke(rig.client.kernel, raw.buffer, &sqe, sizeof sqe);
    for (unsigned i = 0; i < 8; i++)
        raw_send(&raw, sizeof sqe);
    k_sleep(rig.client.kernel, 200 * K_US);
    for (unsigned i = 0; i < 8; i++)
        raw_receive(&raw, i);
    for (unsigned n = 0; n < 8;) {
        if (rdma_drv_poll(raw.cq, &wc, 1) == 0)
            continue;
        assert_int_equal(wc.status, RDMA_SUCCESS);
        assert_true(wc.receive && wc.bytes == sizeof response);
        k_peek(rig.client.kernel, kaddr_add(raw.buffer, 8192 + 16 * n), &response, sizeof response);
        assert_int_equal(response.cid, 77);
        assert_int_equal(NVME_STATUS_CODE(response.status >> 1), NVME_SC_SEQUENCE_ERROR);
        assert_int_equal(response.sq_head, ++n % 2);
    }
    raw_close(&raw);
    rig_data_both_ways();
}

static void test_flood(void **state)
{
    (void)state;
    rig_run(flood, "");
    assert_int_equal(rig.stats.failed, 8);
}

/* Sends a capsule from its own place of the buffer; `data` of a Connect lies behind it. */
static void raw_command(struct raw *raw, unsigned i, const void *sqe, const void *data)
{
    const struct kaddr at = kaddr_add(raw->buffer, 2048 * i);
    const uint32_t bytes = NVMEOF_COMMAND_BYTES + (data != NULL ? NVMEOF_CONNECT_BYTES : 0);
    const struct rdma_drv_sge sge = { at.v, bytes, rdma_drv_key(raw->mr) };
    const struct rdma_drv_send send = { .opcode = RDMA_OP_SEND, .sge = &sge, .n_sges = 1 };
    k_poke(rig.client.kernel, at, sqe, NVMEOF_COMMAND_BYTES);
    if (data != NULL)
        k_poke(rig.client.kernel, kaddr_add(at, NVMEOF_COMMAND_BYTES), data, NVMEOF_CONNECT_BYTES);
    assert_int_equal(rdma_drv_post_send(raw->qp, &send), 0);
}

/* Until the response in place i, which is a success, has come. */
static void raw_await(struct raw *raw, unsigned i)
{
    const uint64_t until_ps = k_now_ps(rig.client.kernel) + 20 * K_MS;
    struct nvmeof_response response;
    struct rdma_drv_wc wc = { 0 };
    while (rdma_drv_poll(raw->cq, &wc, 1) == 0)
        assert_true(k_now_ps(rig.client.kernel) < until_ps);
    assert_int_equal(wc.status, RDMA_SUCCESS);
    assert_int_equal(wc.id, i);
    k_peek(rig.client.kernel, kaddr_add(raw->buffer, 8192 + 16 * i), &response, sizeof response);
    assert_int_equal(response.status >> 1, NVME_SC_SUCCESS);
}

/* A reset while an earlier response is under way, and no receive is there for its own at first: the
 * connection of administration ends behind the latter, not behind the former. */
static void late_answer(void)
{
    const struct nvmeof_connect_data data = { .cntlid = NVMEOF_CNTLID_DYNAMIC,
                                              .host = "nqn.raw",
                                              .subsystem = "nqn.test" };
    const struct nvmeof_sgl sgl = nvmeof_sgl(NVMEOF_SGL_IN_CAPSULE, 0, NVMEOF_CONNECT_BYTES, 0);
    const struct nvmeof_connect connect = {
        .opcode = NVMEOF_OPCODE, .type = NVMEOF_CONNECT, .entries = RIG_ENTRIES - 1, .data = sgl
    };
    const struct nvmeof_property get = { .opcode = NVMEOF_OPCODE,
                                         .type = NVMEOF_PROPERTY_GET,
                                         .offset = NVME_REG_CSTS };
    struct nvmeof_property set = { .opcode = NVMEOF_OPCODE,
                                   .type = NVMEOF_PROPERTY_SET,
                                   .offset = NVME_REG_CC,
                                   .value = NVME_CC_EN };
    struct raw raw;
    raw_open(&raw, 0, RIG_ENTRIES);
    for (unsigned i = 0; i < 3; i++)
        raw_receive(&raw, i);
    raw_command(&raw, 0, &connect, &data);
    raw_await(&raw, 0);
    raw_command(&raw, 1, &set, NULL);
    raw_await(&raw, 1);
    set.value = 0;
    raw_command(&raw, 2, &get, NULL);
    raw_command(&raw, 3, &set, NULL);
    raw_await(&raw, 2);
    k_sleep(rig.client.kernel, 50 * K_US);
    raw_receive(&raw, 3);
    raw_await(&raw, 3);
    k_sleep(rig.client.kernel, K_MS);
    assert_int_equal(nvmeof_target_n_queues(rig.target), 0);
    raw_close(&raw);
    rig_data_both_ways();
}

static void test_late_answer(void **state)
{
    (void)state;
    rig_run(late_answer, "");
    assert_int_equal(rig.stats.broken, 0);
}

/* Capsules of random length and bytes, among them Connect and properties with some field wrong: the
 * target answers or ends the connection, and goes on. */
static void random_capsules(void)
{
    struct sim_random random;
    sim_random_init(&random, 7, "capsules");
    for (unsigned round = 0; round < 6; round++) {
        struct raw raw;
        uint8_t capsule[2048];
        struct rdma_drv_wc wc[16];
        raw_open(&raw, round % 2 == 0 ? 0 : 1, RIG_ENTRIES);
        for (unsigned i = 0; i < 24; i++) {
            if (i < 16)
                raw_receive(&raw, i);
            for (unsigned b = 0; b < sizeof capsule; b++)
                capsule[b] = (uint8_t)sim_random_below(&random, 256);
            if (i % 3 != 0) { /* a Fabrics command: Connect, a property, or another */
                capsule[0] = NVMEOF_OPCODE;
                capsule[4] = (uint8_t)(i % 6);
            }
            if (i % 4 == 0) {
                const struct nvmeof_sgl sgl = nvmeof_sgl(NVMEOF_SGL_IN_CAPSULE, 0, 1024, 0);
                memcpy(capsule + NVMEOF_SGL_OFFSET, &sgl, sizeof sgl);
            }
            k_poke(rig.client.kernel, raw.buffer, capsule, sizeof capsule);
            raw_send(&raw, i == 20 ? 32 : 64 + (uint32_t)sim_random_below(&random, 1100));
            k_sleep(rig.client.kernel, 10 * K_US);
            rdma_drv_poll(raw.cq, wc, 16);
        }
        k_sleep(rig.client.kernel, 100 * K_US);
        raw_close(&raw);
    }
    rig_data_both_ways();
}

static void test_random_capsules(void **state)
{
    (void)state;
    rig_run(random_capsules, "");
    assert_true(rig.stats.failed > 20);
    assert_true(rig.stats.broken > 3);
}

/* ---- A target whose adapter serves reads ----------------------------------------------------- */

static void test_offloaded_data(void **state)
{
    (void)state;
    rig_run(rig_data_both_ways, "");
    assert_int_equal(rig.adapter.offloaded, SIM_N_ELEMENTS(rig_sizes));
    assert_true(rig.adapter.offload_polls > rig.adapter.offloaded);
    assert_int_equal(rig.stats.reads, 0); /* the processor has seen none */
    assert_int_equal(rig.stats.writes, SIM_N_ELEMENTS(rig_sizes));
    assert_int_equal(rig.stats.failed, 0);
    assert_int_equal(rig.stats.broken, 0);
}

/* Data is read again from its staging buffer, where that of no later command may lie. */
static void test_offloaded_data_over_a_bad_wire(void **state)
{
    (void)state;
    rig.params.mtu_bytes = 1024;
    rig_run(rig_data_both_ways, "loss_ratio = 0.01;");
    assert_int_equal(rig.adapter.offloaded, SIM_N_ELEMENTS(rig_sizes));
    assert_true(rig.adapter.retries > 0);
    assert_int_equal(rig.stats.broken, 0);
}

/* Full queues: SQ head counts the responses of both, and the NVMe queues go round. */
static void test_offloaded_queues_full(void **state)
{
    (void)state;
    rig_run(several, "");
    assert_int_equal(rig.adapter.offloaded + rig.stats.reads,
                     INITIATORS * (RIG_ENTRIES - 1) * ROUNDS / 2);
    assert_true(rig.adapter.offloaded > rig.stats.reads);
    assert_int_equal(rig.adapter.rnr_naks, 0);
    assert_int_equal(rig.stats.failed, 0);
    assert_int_equal(rig.stats.broken, 0);
}

/* The controller's status comes from the adapter, that of a command which makes no sense from the
 * processor. */
static void test_offloaded_errors(void **state)
{
    (void)state;
    rig_run(errors, "");
    assert_int_equal(rig.adapter.offloaded, 1); /* beyond the end */
    assert_int_equal(rig.stats.failed, 4);
    assert_int_equal(rig.stats.broken, 0);
}

static void test_offloaded_bad_key(void **state)
{
    (void)state;
    rig_run(bad_key, "");
    assert_int_equal(rig.adapter.offloaded, 2);
    assert_true(rig.stats.broken >= 2);
}

static void test_offloaded_disconnect(void **state)
{
    (void)state;
    rig_run(disconnect_in_mid_command, "");
    assert_true(rig.adapter.offloaded >= 4 + SIM_N_ELEMENTS(rig_sizes));
}

static void test_offloaded_silence(void **state)
{
    (void)state;
    rig_run(silence, "");
    assert_int_equal(rig.stats.expired, 1);
}

static void test_offloaded_random_capsules(void **state)
{
    (void)state;
    rig_run(random_capsules, "");
    assert_int_equal(rig.adapter.offloaded, SIM_N_ELEMENTS(rig_sizes));
    assert_true(rig.stats.broken > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_data, rig_set_up),
        cmocka_unit_test_setup(test_data_of_any_mtu, rig_set_up),
        cmocka_unit_test_setup(test_queues_of_the_controller, rig_set_up),
        cmocka_unit_test_setup(test_data_without_inline, rig_set_up),
        cmocka_unit_test_setup(test_data_over_a_bad_wire, rig_set_up),
        cmocka_unit_test_setup(test_several_initiators, rig_set_up),
        cmocka_unit_test_setup(test_refusals, rig_set_up),
        cmocka_unit_test_setup(test_errors, rig_set_up),
        cmocka_unit_test_setup(test_bad_key, rig_set_up),
        cmocka_unit_test_setup(test_disconnect_in_mid_command, rig_set_up),
        cmocka_unit_test_setup(test_queue_identifiers, rig_set_up),
        cmocka_unit_test_setup(test_queue_identifiers, rig_set_up_offload),
        cmocka_unit_test_setup(test_controller_reset, rig_set_up),
        cmocka_unit_test_setup(test_controller_reset, rig_set_up_offload),
        cmocka_unit_test_setup(test_late_answer, rig_set_up),
        cmocka_unit_test_setup(test_keep_alive, rig_set_up),
        cmocka_unit_test_setup(test_flood, rig_set_up),
        cmocka_unit_test_setup(test_random_capsules, rig_set_up),
        cmocka_unit_test_setup(test_offloaded_data, rig_set_up_offload),
        cmocka_unit_test_setup(test_offloaded_data_over_a_bad_wire, rig_set_up_offload),
        cmocka_unit_test_setup(test_offloaded_queues_full, rig_set_up_offload),
        cmocka_unit_test_setup(test_offloaded_errors, rig_set_up_offload),
        cmocka_unit_test_setup(test_offloaded_bad_key, rig_set_up_offload),
        cmocka_unit_test_setup(test_offloaded_disconnect, rig_set_up_offload),
        cmocka_unit_test_setup(test_offloaded_silence, rig_set_up_offload),
        cmocka_unit_test_setup(test_offloaded_random_capsules, rig_set_up_offload),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
