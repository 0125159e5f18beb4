/* The DMA front end against a completer that answers as it is told to: late, in pieces, wrongly,
 * not at all. Both are models on a real link. */
#include "models/pcie/endpoint/dma.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hw/pci_regs.h"
#include "models/pcie/link/tlp_trace.h"

#define MEMORY_BYTES (1u << 20)
#define MEMORY_BASE  UINT64_C(0x100000000)
#define LATENCY_PS   (40 * SIM_PS_PER_NS)
#define TIMEOUT_PS   (50 * SIM_PS_PER_US)
#define LOG_MAX      8192

enum answer {
    ANSWER_DATA,
    ANSWER_UR,
    ANSWER_CA,
    ANSWER_NONE,
    ANSWER_POISONED,
    ANSWER_WRONG_BYTE_COUNT,
    ANSWER_WRONG_ADDRESS,
    ANSWER_TOO_LONG,
    ANSWER_OFF_BOUNDARY,
    ANSWER_NO_DATA,
};

/* A TLP as it arrived at the completer. */
struct arrival {
    uint8_t type;
    uint64_t address;
    unsigned bytes;
    uint16_t tag;
    sim_time head_ps;
};

struct completer {
    uint8_t *memory;
    sim_time delay_ps;
    unsigned piece_bytes; /* most that one completion carries */
    bool random_delay;    /* up to delay_ps, so that answers overtake each other */
    bool stamp_early;     /* the stamp goes with the first completion, not the last */
    bool hold_posted;     /* buffers of writes are not released */
    enum answer answer;   /* for reads at answer_at, or all */
    uint64_t answer_at;   /* 0: all */
    unsigned n_arrivals;
    struct arrival arrival[LOG_MAX];
};

struct requester {
    struct cfg_space cfg;
    struct pcie_dma dma;
};

struct bench {
    struct sim *sim;
    struct pcie_context *pcie;
    struct model *device, *host;
    struct requester *requester;
    struct completer *completer;
};

/* ---- The completer --------------------------------------------------------------------------- */

static void send_piece(struct model *model, struct tlp *request, unsigned offset, unsigned bytes,
                       enum answer answer)
{
    struct completer *completer = model->state;
    bool last = offset + bytes == request->length_bytes;
    struct sim_stamp *stamp = request->stamp;
    if (completer->stamp_early ? offset != 0 : !last)
        request->stamp = NULL;
    struct tlp *piece = tlp_completion(model->pcie, request, 0, TLP_SC);
    if (piece->stamp == NULL && !last)
        request->stamp = stamp; /* still the request's */
    piece->type = TLP_CPLD;
    piece->address = request->address + offset;
    piece->byte_count = (uint16_t)(request->length_bytes - offset);
    piece->length_bytes = (uint16_t)bytes;
    piece->bulk = request->bulk;
    piece->poisoned = answer == ANSWER_POISONED;
    if (answer == ANSWER_WRONG_BYTE_COUNT)
        piece->byte_count++;
    if (answer == ANSWER_WRONG_ADDRESS)
        piece->address += 4;
    if (answer == ANSWER_NO_DATA) {
        piece->type = TLP_CPL;
        piece->length_bytes = 0;
    } else {
        tlp_payload_new(model->pcie, piece);
        memcpy(piece->payload, completer->memory + (request->address - MEMORY_BASE) + offset,
               bytes);
    }
    pcie_port_send(&model->ports[0], piece, sim_now(model->sim));
}

static void send_data(struct model *model, struct tlp *request, enum answer answer)
{
    struct completer *completer = model->state;
    unsigned offset = 0;
    while (offset < request->length_bytes) {
        unsigned bytes = request->length_bytes - offset;
        if (bytes > completer->piece_bytes) {
            unsigned beyond = (unsigned)((request->address + offset) % 64);
            bytes = completer->piece_bytes - beyond;
        }
        if (answer == ANSWER_OFF_BOUNDARY)
            bytes = 36;
        if (answer == ANSWER_TOO_LONG)
            bytes = request->length_bytes;
        send_piece(model, request, offset, bytes, answer);
        offset += bytes;
        if (answer >= ANSWER_WRONG_BYTE_COUNT)
            break;
    }
}

static struct model *host_model; /* of the test that is running: tlp->event has no way back */

static void answer_fire(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct tlp *request = SIM_CONTAINER(event, struct tlp, event);
    struct completer *completer = host_model->state;
    enum answer answer = ANSWER_DATA;
    if (completer->answer_at == 0 || completer->answer_at == request->address)
        answer = completer->answer;
    if (answer == ANSWER_UR || answer == ANSWER_CA)
        pcie_port_send(
            &host_model->ports[0],
            tlp_completion(host_model->pcie, request, 0, answer == ANSWER_UR ? TLP_UR : TLP_CA),
            sim_now(sim));
    else if (answer != ANSWER_NONE)
        send_data(host_model, request, answer);
    tlp_free(host_model->pcie, request);
}

static void copy_lines(uint8_t *to, const struct tlp *tlp)
{
    for (unsigned i = 0; i < tlp->length_bytes; i++) {
        unsigned since = (unsigned)((tlp->address + i) % 64);
        unsigned in_line = SIM_MIN(since, i); /* bytes of this line before this one */
        if (!tlp->bulk || in_line < 8)
            to[i] = tlp->payload[i];
    }
}

static void completer_receive(struct model *model, uint32_t port, struct tlp *tlp)
{
    struct completer *completer = model->state;
    assert_true(completer->n_arrivals < LOG_MAX);
    completer->arrival[completer->n_arrivals++] =
        (struct arrival){ tlp->type, tlp->address, tlp->length_bytes, tlp->tag, tlp->head_ps };
    assert_int_equal(tlp->requester_id, 0x4200);
    assert_int_equal(tlp->address / 4096, (tlp->address + tlp->length_bytes - 1) / 4096);
    if (tlp->type == TLP_MWR) {
        copy_lines(completer->memory + (tlp->address - MEMORY_BASE), tlp);
        if (!completer->hold_posted)
            pcie_port_release(&model->ports[port], TLP_POSTED, tlp_data_credits(tlp),
                              sim_now(model->sim));
        tlp_free(model->pcie, tlp);
        return;
    }
    assert_int_equal(tlp->type, TLP_MRD);
    pcie_port_release(&model->ports[port], TLP_NON_POSTED, 0, sim_now(model->sim));
    sim_time delay_ps = completer->delay_ps;
    if (completer->random_delay)
        delay_ps = sim_random_below(&model->random, delay_ps);
    sim_event_init(&tlp->event, answer_fire);
    sim_schedule_in(model->sim, &tlp->event, delay_ps);
}

static void port_init(struct model *model)
{
    model->ports = calloc(1, sizeof(*model->ports));
    model->n_ports = 1;
    model->ports[0] = (struct pcie_port){
        .model = model, .max_generation = 3, .max_lanes = 8, .mps_bytes = 256, .name = model->name
    };
    for (unsigned class = 0; class < N_TLP_CLASSES; class ++) {
        model->ports[0].advertise.header[class] = 64;
        model->ports[0].advertise.data[class] = 512;
    }
}

static void completer_init(struct model *model, struct sim_error_list *errors)
{
    struct completer *completer = model->state;
    (void)errors;
    port_init(model);
    completer->memory = calloc(1, MEMORY_BYTES);
    completer->delay_ps = 500 * SIM_PS_PER_NS;
    completer->piece_bytes = 256;
    host_model = model;
}

static void completer_release(struct model *model)
{
    free(((struct completer *)model->state)->memory);
}

static const struct model_ops completer_ops = {
    .type = "test.completer",
    .state_bytes = sizeof(struct completer),
    .init = completer_init,
    .receive = completer_receive,
    .release = completer_release,
};

/* ---- The device ------------------------------------------------------------------------------ */

static void requester_init(struct model *model, struct sim_error_list *errors)
{
    static const struct pcie_dma_params params = { .completion_timeout_ps = TIMEOUT_PS };
    static const struct cfg_identity identity = { .vendor_id = 0x19ee, .device_id = 0x6000 };
    struct requester *requester = model->state;
    (void)errors;
    port_init(model);
    cfg_init_endpoint(&requester->cfg, &identity);
    cfg_add_pcie(&requester->cfg, CFG_ENDPOINT, 3, 8, 1024, true);
    cfg_write(&requester->cfg, PCI_COMMAND, 2, PCI_COMMAND_BUS_MASTER);
    requester->cfg.id = 0x4200;
    pcie_dma_init(&requester->dma, model, 0, &requester->cfg, &params);
}

static void requester_receive(struct model *model, uint32_t port, struct tlp *tlp)
{
    (void)port;
    pcie_dma_receive(&((struct requester *)model->state)->dma, tlp);
}

static void requester_credit(struct model *model, uint32_t port)
{
    (void)port;
    pcie_dma_credit(&((struct requester *)model->state)->dma);
}

static void requester_release(struct model *model)
{
    pcie_dma_release(&((struct requester *)model->state)->dma);
}

static const struct stat_desc requester_stats[] = {
    PCIE_DMA_STATS(struct requester, dma),
    { .kind = STAT_END },
};

static const struct model_ops requester_ops = {
    .type = "test.requester",
    .state_bytes = sizeof(struct requester),
    .stats = requester_stats,
    .init = requester_init,
    .receive = requester_receive,
    .credit = requester_credit,
    .release = requester_release,
};

static void set_sizes(struct bench *bench, unsigned mps_bytes, unsigned mrrs_bytes, bool extended)
{
    struct cfg_space *cfg = &bench->requester->cfg;
    unsigned mps = (unsigned)__builtin_ctz(mps_bytes / 128);
    unsigned mrrs = (unsigned)__builtin_ctz(mrrs_bytes / 128);
    cfg_write(cfg, cfg->pcie_cap + PCIE_DEVCTL, 2,
              mps << PCIE_DEVCTL_MPS_SHIFT | mrrs << PCIE_DEVCTL_MRRS_SHIFT |
                  (extended ? PCIE_DEVCTL_EXTENDED_TAG : 0));
}

/* Both models, not yet joined, so that a test may change the ports. */
static struct bench bench_prepare(void)
{
    struct bench bench = { .sim = sim_new(7) };
    struct sim_error_list errors = { 0 };
    bench.pcie = pcie_context_new(bench.sim);
    bench.device = model_new(pcie_context_sim(bench.pcie), bench.pcie, &requester_ops, "device",
                             NULL, NULL, &errors);
    bench.host = model_new(pcie_context_sim(bench.pcie), bench.pcie, &completer_ops, "host", NULL,
                           NULL, &errors);
    bench.requester = bench.device->state;
    bench.completer = bench.host->state;
    for (unsigned i = 0; i < MEMORY_BYTES; i++)
        bench.completer->memory[i] = (uint8_t)(i * 31 + (i >> 8) * 7 + (i >> 16));
    set_sizes(&bench, 256, 512, false);
    return bench;
}

static void bench_join(struct bench *bench)
{
    struct sim_error_list errors = { 0 };
    const struct pcie_link_params params = { .latency_ps = LATENCY_PS, .ack_tlps = 4 };
    assert_non_null(pcie_link_new(bench->pcie, "link", &params, &bench->device->ports[0],
                                  &bench->host->ports[0], NULL, 0, &errors));
}

static struct bench bench_new(void)
{
    struct bench bench = bench_prepare();
    bench_join(&bench);
    return bench;
}

static void run(struct bench *bench)
{
    sim_run(bench->sim, SIM_TIME_MAX, NULL);
}

/* Nothing is left anywhere, every credit is back. */
static void bench_free(struct bench *bench)
{
    assert_null(sim_error(bench->sim));
    assert_true(pcie_dma_idle(&bench->requester->dma));
    assert_int_equal(tlp_live(bench->pcie), 0);
    assert_true(pcie_port_credits_whole(&bench->device->ports[0]));
    if (!bench->completer->hold_posted)
        assert_true(pcie_port_credits_whole(&bench->host->ports[0]));
    model_free(bench->device);
    model_free(bench->host);
    pcie_context_free(bench->pcie);
    sim_free(bench->sim);
}

/* ---- A transfer of the test ------------------------------------------------------------------ */

struct transfer {
    struct pcie_dma_request request;
    struct bench *bench;
    unsigned n_done;
    enum pcie_dma_status status;
    sim_time done_ps;
    struct sim_stamp stamp;
    uint8_t *data;
    bool write;
};

static void transfer_done(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct transfer *transfer = SIM_CONTAINER(request, struct transfer, request);
    transfer->n_done++;
    transfer->status = status;
    transfer->done_ps = sim_now(transfer->bench->sim);
    assert_int_equal(request->done_ps, transfer->done_ps);
    if (request->stamp == NULL)
        return;
    sim_time sum_ps = 0;
    for (unsigned i = 0; i < SIM_STAMP_PARTS; i++)
        sum_ps += request->stamp->part_ps[i];
    assert_int_equal(sum_ps, transfer->done_ps - request->stamp->start_ps);
}

static struct transfer *transfer_new(struct bench *bench, uint64_t offset, uint64_t bytes)
{
    struct transfer *transfer = calloc(1, sizeof(*transfer));
    transfer->bench = bench;
    transfer->data = malloc(bytes);
    memset(transfer->data, 0xab, bytes);
    transfer->request = (struct pcie_dma_request){ .iova = { MEMORY_BASE + offset },
                                                   .bytes = bytes,
                                                   .buffer = transfer->data,
                                                   .done = transfer_done };
    return transfer;
}

static void timed(struct transfer *transfer)
{
    sim_stamp_start(&transfer->stamp, sim_now(transfer->bench->sim));
    transfer->request.stamp = &transfer->stamp;
}

static void submit(struct transfer *transfer, bool write, sim_time at_ps)
{
    transfer->write = write;
    if (write)
        pcie_dma_write(&transfer->bench->requester->dma, &transfer->request, at_ps);
    else
        pcie_dma_read(&transfer->bench->requester->dma, &transfer->request, at_ps);
}

static struct transfer *read_now(struct bench *bench, uint64_t offset, uint64_t bytes)
{
    struct transfer *transfer = transfer_new(bench, offset, bytes);
    submit(transfer, false, 0);
    return transfer;
}

static struct transfer *write_now(struct bench *bench, uint64_t offset, uint64_t bytes)
{
    struct transfer *transfer = transfer_new(bench, offset, bytes);
    submit(transfer, true, 0);
    return transfer;
}

static void transfer_free(struct transfer *transfer)
{
    free(transfer->data);
    free(transfer);
}

static void check_done(struct transfer *transfer, enum pcie_dma_status status)
{
    assert_int_equal(transfer->n_done, 1);
    assert_int_equal(transfer->status, status);
    if (!transfer->write && status != PCIE_DMA_OK) {
        for (uint64_t i = 0; i < transfer->request.bytes; i++)
            assert_int_equal(transfer->data[i], 0xff);
    } else {
        assert_memory_equal(transfer->data,
                            transfer->bench->completer->memory +
                                (transfer->request.iova.v - MEMORY_BASE),
                            transfer->request.bytes);
    }
}

/* ---- Splitting ------------------------------------------------------------------------------- */

/* Length in double words (PCIe Base 3.1, 2.2.2): from the one that holds the first byte to the one
 * that holds the last, both counted whole. MPS and MRRS limit it. */
static uint64_t length_dw(uint64_t address, uint64_t bytes)
{
    return (address + bytes - 1) / 4 - address / 4 + 1;
}

/* The fewest TLPs for a transfer if each asks for or carries at most `max` and stays in its page.
 */
static unsigned expected_tlps(uint64_t address, uint64_t bytes, unsigned max)
{
    unsigned n = 0;
    while (bytes > 0) {
        uint64_t in_page = SIM_MIN(4096 - address % 4096, bytes);
        n += (unsigned)((length_dw(address, in_page) + max / 4 - 1) / (max / 4));
        address += in_page;
        bytes -= in_page;
    }
    return n;
}

static void splits_at_size_and_page(void **state)
{
    (void)state;
    static const unsigned size[] = { 128, 256, 512, 1024 };
    for (unsigned trial = 0; trial < 64; trial++) {
        struct bench bench = bench_new();
        unsigned max = size[trial % 4];
        bool write = trial & 4;
        set_sizes(&bench, write ? max : 128, write ? 4096 : max, false);
        bench.completer->piece_bytes = 128;
        uint64_t offset = sim_random_below(&bench.device->random, 8192);
        uint64_t bytes = 1 + sim_random_below(&bench.device->random, trial < 32 ? 300 : 20000);
        struct transfer *transfer = write ? write_now(&bench, offset, bytes)
                                          : read_now(&bench, offset, bytes);
        run(&bench);
        check_done(transfer, PCIE_DMA_OK);
        struct completer *completer = bench.completer;
        assert_int_equal(completer->n_arrivals, expected_tlps(offset, bytes, max));
        uint64_t next = MEMORY_BASE + offset;
        for (unsigned i = 0; i < completer->n_arrivals; i++) {
            assert_int_equal(completer->arrival[i].type, write ? TLP_MWR : TLP_MRD);
            assert_int_equal(completer->arrival[i].address, next);
            assert_true(length_dw(next, completer->arrival[i].bytes) <= max / 4);
            next += completer->arrival[i].bytes;
        }
        assert_int_equal(next, MEMORY_BASE + offset + bytes);
        transfer_free(transfer);
        bench_free(&bench);
    }
}

/* ---- Timing ---------------------------------------------------------------------------------- */

static void unloaded_read_is_the_formula(void **state)
{
    (void)state;
    struct bench bench = bench_new();
    struct transfer *transfer = transfer_new(&bench, 0, 256);
    timed(transfer);
    const sim_time ready_ps = 123 * SIM_PS_PER_NS;
    submit(transfer, false, ready_ps);
    run(&bench);
    check_done(transfer, PCIE_DMA_OK);
    struct tlp request = { .type = TLP_MRD, .address = MEMORY_BASE, .length_bytes = 256 };
    struct tlp answer = { .type = TLP_CPLD, .address = MEMORY_BASE, .length_bytes = 256 };
    struct pcie_port *port = &bench.device->ports[0];
    sim_time link_ps = 2 * LATENCY_PS + pcie_port_wire_ps(port, tlp_wire_bytes(&request)) +
                       pcie_port_wire_ps(port, tlp_wire_bytes(&answer));
    assert_int_equal(transfer->done_ps, ready_ps + link_ps + bench.completer->delay_ps);
    assert_int_equal(transfer->stamp.part_ps[PART_DEVICE], ready_ps);
    assert_int_equal(transfer->stamp.part_ps[PART_LINK], link_ps);
    /* The completer did not say what it did with the time: the link's first mark takes it. */
    assert_int_equal(transfer->stamp.part_ps[PART_CREDIT], bench.completer->delay_ps);
    assert_int_equal(sim_now(bench.sim), transfer->done_ps); /* no time-out keeps the run alive */
    transfer_free(transfer);
    bench_free(&bench);
}

static void write_is_done_when_sent(void **state)
{
    (void)state;
    struct bench bench = bench_new();
    struct transfer *transfer = transfer_new(&bench, 0, 300);
    timed(transfer);
    submit(transfer, true, 77000);
    assert_int_equal(transfer->n_done, 0);
    run(&bench);
    check_done(transfer, PCIE_DMA_OK);
    assert_int_equal(transfer->done_ps, 77000);
    assert_int_equal(transfer->stamp.part_ps[PART_DEVICE], 77000);
    assert_int_equal(bench.completer->arrival[0].head_ps, 77000 + LATENCY_PS);
    struct transfer *at_once = write_now(&bench, 4096, 16);
    assert_int_equal(at_once->n_done, 1);
    run(&bench);
    transfer_free(transfer);
    transfer_free(at_once);
    bench_free(&bench);
}

/* With n requests in flight at most, a long round trip allows n of them per round trip. */
static void throughput_is_tags_over_round_trip(void **state)
{
    (void)state;
    static const struct {
        bool extended;
        uint32_t limit, expected;
    } kind[] = { { false, 0, 32 }, { true, 0, 256 }, { true, 48, 48 }, { false, 5, 5 } };
    for (unsigned k = 0; k < SIM_N_ELEMENTS(kind); k++) {
        struct bench bench = bench_new();
        set_sizes(&bench, 256, 256, kind[k].extended);
        bench.requester->dma.params.read_tlps_max = kind[k].limit;
        bench.completer->delay_ps = 40 * SIM_PS_PER_US;
        const unsigned rounds = 4;
        struct transfer *transfer = read_now(&bench, 0, (uint64_t)rounds * kind[k].expected * 256);
        run(&bench);
        check_done(transfer, PCIE_DMA_OK);
        assert_int_equal(bench.requester->dma.stats.read_tlps_in_flight_max, kind[k].expected);
        assert_int_equal(bench.requester->dma.stats.read_tlps, rounds * kind[k].expected);
        assert_int_equal(bench.requester->dma.stats.tag_waits > 0, true);
        struct tlp request = { .type = TLP_MRD, .address = MEMORY_BASE };
        struct tlp answer = { .type = TLP_CPLD, .length_bytes = 256 };
        struct pcie_port *port = &bench.device->ports[0];
        sim_time answer_ps = pcie_port_wire_ps(port, tlp_wire_bytes(&answer));
        sim_time trip_ps = 2 * LATENCY_PS + bench.completer->delay_ps + answer_ps +
                           pcie_port_wire_ps(port, tlp_wire_bytes(&request));
        /* Within a round the answers follow each other on the wire; DLLPs take some of it. */
        assert_true(transfer->done_ps >= rounds * trip_ps);
        assert_true(transfer->done_ps <= rounds * trip_ps + 2 * kind[k].expected * answer_ps);
        transfer_free(transfer);
        bench_free(&bench);
    }
}

/* ---- Order ----------------------------------------------------------------------------------- */

static void writes_pass_waiting_reads_but_not_the_reverse(void **state)
{
    (void)state;
    struct bench bench = bench_new();
    bench.requester->dma.params.read_tlps_max = 1;
    struct transfer *transfer[5];
    transfer[0] = read_now(&bench, 0x0000, 64);
    transfer[1] = read_now(&bench, 0x1000, 64);  /* waits for the tag */
    transfer[2] = write_now(&bench, 0x2000, 64); /* passes */
    transfer[3] = read_now(&bench, 0x3000, 64);
    transfer[4] = write_now(&bench, 0x4000, 64); /* passes */
    run(&bench);
    static const uint64_t order[] = { 0x0000, 0x2000, 0x4000, 0x1000, 0x3000 };
    assert_int_equal(bench.completer->n_arrivals, 5);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(bench.completer->arrival[i].address, MEMORY_BASE + order[i]);
        check_done(transfer[i], PCIE_DMA_OK);
        transfer_free(transfer[i]);
    }
    bench_free(&bench);
}

static void read_waits_for_an_earlier_write(void **state)
{
    (void)state;
    struct bench bench = bench_prepare();
    bench.host->ports[0].advertise.header[TLP_POSTED] = 2;
    bench.device->ports[0].tx_queue_tlps = 1;
    bench.completer->hold_posted = true; /* two writes, and the third waits for ever */
    bench_join(&bench);
    struct transfer *write = write_now(&bench, 0, 3 * 256 + 64); /* and the fourth in the DMA */
    struct transfer *read = read_now(&bench, 0x8000, 64);
    run(&bench);
    assert_int_equal(write->n_done, 0);
    assert_int_equal(read->n_done, 0);
    assert_int_equal(bench.completer->n_arrivals, 2);
    pcie_port_release(&bench.host->ports[0], TLP_POSTED, 16, sim_now(bench.sim));
    pcie_port_release(&bench.host->ports[0], TLP_POSTED, 16, sim_now(bench.sim));
    run(&bench);
    assert_int_equal(bench.completer->n_arrivals, 5);
    assert_int_equal(bench.completer->arrival[4].type, TLP_MRD);
    check_done(read, PCIE_DMA_OK);
    check_done(write, PCIE_DMA_OK);
    assert_true(bench.requester->dma.stats.credit_waits > 0);
    transfer_free(write);
    transfer_free(read);
    bench_free(&bench);
}

/* Submission decides, whatever is ready first; independent reads go when they are ready. */
static void readiness_and_order(void **state)
{
    (void)state;
    static const struct {
        bool independent;
        unsigned order[5];
        sim_time at_ps[5];
    } kind[] = { { false, { 0, 1, 2, 3, 4 }, { 900000, 900000, 900000, 900000, 900000 } },
                 { true, { 1, 2, 0, 3, 4 }, { 500000, 500000, 900000, 900000, 900000 } } };
    for (unsigned k = 0; k < 2; k++) {
        struct bench bench = bench_new();
        struct transfer *transfer[5];
        for (unsigned i = 0; i < 5; i++) {
            transfer[i] = transfer_new(&bench, 0x1000 * i, 64);
            transfer[i]->request.independent = kind[k].independent;
        }
        submit(transfer[0], true, 900000);
        submit(transfer[1], false, 500000);
        submit(transfer[2], false, 100000); /* behind its kind: not before 500 ns */
        submit(transfer[3], true, 900000);
        submit(transfer[4], false, 900000);
        run(&bench);
        for (unsigned i = 0; i < 5; i++) {
            const struct arrival *arrival = &bench.completer->arrival[i];
            sim_time at_ps = kind[k].at_ps[i] + LATENCY_PS;
            assert_int_equal(arrival->address, MEMORY_BASE + 0x1000 * kind[k].order[i]);
            assert_in_range(arrival->head_ps, at_ps, at_ps + 50000);
        }
        for (unsigned i = 0; i < 5; i++) {
            check_done(transfer[i], PCIE_DMA_OK);
            transfer_free(transfer[i]);
        }
        bench_free(&bench);
    }
}

/* A read that is not ready lets a later write pass that is. */
static void writes_pass_reads_that_are_not_ready(void **state)
{
    (void)state;
    struct bench bench = bench_new();
    struct transfer *read = transfer_new(&bench, 0, 64);
    submit(read, false, 700000);
    struct transfer *write = write_now(&bench, 0x1000, 64);
    run(&bench);
    assert_int_equal(bench.completer->arrival[0].type, TLP_MWR);
    assert_int_equal(bench.completer->arrival[0].head_ps, LATENCY_PS);
    assert_int_equal(bench.completer->arrival[1].head_ps, 700000 + LATENCY_PS);
    check_done(read, PCIE_DMA_OK);
    check_done(write, PCIE_DMA_OK);
    transfer_free(read);
    transfer_free(write);
    bench_free(&bench);
}

/* ---- Errors ---------------------------------------------------------------------------------- */

static void error_completions_end_the_read(void **state)
{
    (void)state;
    static const struct {
        enum answer answer;
        enum pcie_dma_status status;
    } kind[] = { { ANSWER_UR, PCIE_DMA_UNSUPPORTED },
                 { ANSWER_CA, PCIE_DMA_ABORTED },
                 { ANSWER_POISONED, PCIE_DMA_POISONED } };
    for (unsigned k = 0; k < SIM_N_ELEMENTS(kind); k++) {
        struct bench bench = bench_new();
        struct pcie_dma *dma = &bench.requester->dma;
        dma->params.read_tlps_max = 4;
        bench.completer->answer = kind[k].answer;
        bench.completer->answer_at = MEMORY_BASE + 0x1000 + 512;
        struct transfer *good = read_now(&bench, 0x8000, 512);
        struct transfer *bad = transfer_new(&bench, 0x1000, 64 * 512);
        timed(bad);
        submit(bad, false, 0);
        struct transfer *later = read_now(&bench, 0xa000, 4096);
        run(&bench);
        check_done(good, PCIE_DMA_OK);
        check_done(bad, kind[k].status);
        check_done(later, PCIE_DMA_OK);
        /* What had not been sent when the error came was not sent at all. */
        assert_true(dma->stats.read_tlps < 1 + 8 + 8);
        assert_int_equal(dma->stats.unsupported, kind[k].answer == ANSWER_UR);
        assert_int_equal(dma->stats.aborted, kind[k].answer == ANSWER_CA);
        assert_int_equal(dma->stats.poisoned > 0, kind[k].answer == ANSWER_POISONED);
        uint32_t status = cfg_read(&bench.requester->cfg, PCI_STATUS, 2);
        assert_int_equal(!!(status & PCI_STATUS_RECEIVED_MASTER_ABORT),
                         kind[k].answer == ANSWER_UR);
        assert_int_equal(!!(status & PCI_STATUS_RECEIVED_TARGET_ABORT),
                         kind[k].answer == ANSWER_CA);
        transfer_free(good);
        transfer_free(bad);
        transfer_free(later);
        bench_free(&bench);
    }
}

static void completion_times_out(void **state)
{
    (void)state;
    struct bench bench = bench_new();
    struct pcie_dma *dma = &bench.requester->dma;
    bench.completer->answer = ANSWER_NONE;
    bench.completer->answer_at = MEMORY_BASE + 512;
    struct transfer *transfer = transfer_new(&bench, 0, 1024);
    timed(transfer);
    submit(transfer, false, 5000);
    struct transfer *other = read_now(&bench, 0x4000, 64);
    run(&bench);
    check_done(transfer, PCIE_DMA_TIMED_OUT);
    check_done(other, PCIE_DMA_OK);
    assert_int_equal(transfer->done_ps, 5000 + TIMEOUT_PS);
    assert_int_equal(dma->stats.timed_out, 1);
    assert_int_equal(
        cfg_read(&bench.requester->cfg, bench.requester->cfg.aer_cap + PCI_AER_UNCORRECTABLE, 4),
        PCI_AER_COMPLETION_TIMEOUT);
    /* The front end goes on. */
    struct transfer *again = read_now(&bench, 0x1000, 40000);
    run(&bench);
    check_done(again, PCIE_DMA_OK);
    transfer_free(transfer);
    transfer_free(other);
    transfer_free(again);
    bench_free(&bench);
}

static void late_completions_are_unexpected(void **state)
{
    (void)state;
    struct bench bench = bench_new();
    struct pcie_dma *dma = &bench.requester->dma;
    bench.completer->delay_ps = TIMEOUT_PS + SIM_PS_PER_US;
    struct transfer *transfer = read_now(&bench, 0, 4096);
    run(&bench);
    check_done(transfer, PCIE_DMA_TIMED_OUT);
    assert_int_equal(dma->stats.timed_out, 8);
    assert_int_equal(dma->stats.unexpected, 16);
    /* Even if the tags are in use again by then: other sizes, other addresses. */
    submit(transfer, false, 0);
    sim_run(bench.sim, sim_now(bench.sim) + TIMEOUT_PS + SIM_PS_PER_US / 2, NULL);
    assert_int_equal(transfer->n_done, 2);
    bench.completer->delay_ps = 3 * SIM_PS_PER_US;
    set_sizes(&bench, 256, 128, false);
    struct transfer *other = read_now(&bench, 0x2020, 32 * 96);
    run(&bench);
    check_done(other, PCIE_DMA_OK);
    assert_true(dma->stats.unexpected > 16);
    transfer_free(transfer);
    transfer_free(other);
    bench_free(&bench);
}

/* Answers of an abandoned read that fit the next read of their tags are taken for its answers.
 * Those come later, while the tags have a third read, and are nobody's. */
static void answers_of_abandoned_reads_are_unexpected(void **state)
{
    (void)state;
    struct bench bench = bench_new();
    struct pcie_dma *dma = &bench.requester->dma;
    bench.completer->delay_ps = 3 * SIM_PS_PER_US;
    set_sizes(&bench, 256, 128, false); /* a read takes each of the 32 tags */
    struct transfer *first = read_now(&bench, 0, 32 * 128);
    sim_run(bench.sim, sim_now(bench.sim) + 2 * SIM_PS_PER_US, NULL);
    cfg_write(&bench.requester->cfg, PCI_COMMAND, 2, 0);
    pcie_dma_abort(dma);
    check_done(first, PCIE_DMA_BUS_MASTER_OFF);
    cfg_write(&bench.requester->cfg, PCI_COMMAND, 2, PCI_COMMAND_BUS_MASTER);
    struct transfer *second = read_now(&bench, 0, 32 * 128);
    sim_run(bench.sim, sim_now(bench.sim) + 2500 * SIM_PS_PER_NS, NULL);
    check_done(second, PCIE_DMA_OK);
    struct transfer *third = read_now(&bench, 0x2020, 32 * 96);
    run(&bench);
    check_done(third, PCIE_DMA_OK);
    assert_in_range(dma->stats.unexpected, 32, 64);
    transfer_free(first);
    transfer_free(second);
    transfer_free(third);
    bench_free(&bench);
}

/* Time-outs disabled, answers later than they would be. */
static struct bench bench_without_time_out(void)
{
    struct bench bench = bench_new();
    struct cfg_space *cfg = &bench.requester->cfg;
    cfg_write(cfg, cfg->pcie_cap + PCIE_DEVCTL2, 2, PCIE_DEVCTL2_TIMEOUT_DISABLE);
    bench.completer->delay_ps = 20 * TIMEOUT_PS;
    return bench;
}

static void enable_time_out(struct bench *bench)
{
    struct cfg_space *cfg = &bench->requester->cfg;
    cfg_write(cfg, cfg->pcie_cap + PCIE_DEVCTL2, 2, 0);
}

static void time_out_can_be_disabled(void **state)
{
    (void)state;
    struct bench bench = bench_without_time_out();
    struct transfer *transfer = read_now(&bench, 0, 4096);
    run(&bench);
    check_done(transfer, PCIE_DMA_OK);
    transfer_free(transfer);
    bench_free(&bench);
}

/* Enabled again while a read has waited for longer than the time-out: the next read finds that. */
static void time_out_is_enabled_late(void **state)
{
    (void)state;
    struct bench bench = bench_without_time_out();
    struct transfer *late = read_now(&bench, 0, 64);
    sim_run(bench.sim, 3 * TIMEOUT_PS, NULL);
    enable_time_out(&bench);
    struct transfer *next = read_now(&bench, 4096, 64);
    sim_run(bench.sim, 3 * TIMEOUT_PS + TIMEOUT_PS / 2, NULL);
    check_done(late, PCIE_DMA_TIMED_OUT);
    run(&bench);
    check_done(next, PCIE_DMA_TIMED_OUT);
    assert_int_equal(bench.requester->dma.stats.timed_out, 2);
    transfer_free(late);
    transfer_free(next);
    bench_free(&bench);
}

/* ... or the function itself, as soon as its configuration is another. */
static void time_out_that_is_enabled_ends_what_waits(void **state)
{
    (void)state;
    struct bench bench = bench_without_time_out();
    struct transfer *late = read_now(&bench, 0, 64);
    sim_run(bench.sim, 3 * TIMEOUT_PS, NULL);
    pcie_dma_configured(&bench.requester->dma);
    sim_run(bench.sim, 4 * TIMEOUT_PS, NULL);
    assert_int_equal(bench.requester->dma.stats.timed_out, 0);
    enable_time_out(&bench);
    pcie_dma_configured(&bench.requester->dma);
    sim_run(bench.sim, 4 * TIMEOUT_PS + 1, NULL);
    check_done(late, PCIE_DMA_TIMED_OUT);
    transfer_free(late);
    run(&bench);
    bench_free(&bench);
}

static void nothing_goes_out_without_bus_master(void **state)
{
    (void)state;
    struct bench bench = bench_new();
    struct pcie_dma *dma = &bench.requester->dma;
    cfg_write(&bench.requester->cfg, PCI_COMMAND, 2, 0);
    struct transfer *read = read_now(&bench, 0, 4096);
    check_done(read, PCIE_DMA_BUS_MASTER_OFF); /* at once */
    struct transfer *write = write_now(&bench, 0, 4096);
    assert_int_equal(write->status, PCIE_DMA_BUS_MASTER_OFF);
    run(&bench);
    assert_int_equal(bench.completer->n_arrivals, 0);
    assert_int_equal(dma->stats.bus_master_off, 2);
    transfer_free(read);
    transfer_free(write);

    /* Cleared while a read is under way: what is in flight comes back, then it ends. */
    cfg_write(&bench.requester->cfg, PCI_COMMAND, 2, PCI_COMMAND_BUS_MASTER);
    dma->params.read_tlps_max = 4;
    read = read_now(&bench, 0, 8 * 512);
    sim_run(bench.sim, 100 * SIM_PS_PER_NS, NULL);
    cfg_write(&bench.requester->cfg, PCI_COMMAND, 2, 0);
    run(&bench);
    check_done(read, PCIE_DMA_BUS_MASTER_OFF);
    assert_int_equal(bench.completer->n_arrivals, 4);
    assert_int_equal(dma->stats.completions, 8);
    transfer_free(read);
    bench_free(&bench);
}

/* A sink that follows every transfer, and counts. */
struct follower {
    struct tlp_trace_sink sink;
    uint32_t n_begun, given_up; /* given_up: the last number */
    int n_given_up, n_stamps;
};

static uint32_t follower_begin(struct tlp_trace_sink *sink, const struct model *device,
                               const struct tlp *tlp, uint64_t transfer_bytes)
{
    (void)device, (void)tlp, (void)transfer_bytes;
    return ++SIM_CONTAINER(sink, struct follower, sink)->n_begun;
}

static void follower_join(struct tlp_trace_sink *sink, uint32_t transfer, const struct tlp *tlp)
{
    (void)transfer, (void)tlp;
    SIM_CONTAINER(sink, struct follower, sink)->n_stamps++;
}

static void follower_copy(struct tlp_trace_sink *sink, uint32_t transfer)
{
    (void)transfer;
    SIM_CONTAINER(sink, struct follower, sink)->n_stamps++;
}

static void follower_end(struct tlp_trace_sink *sink, uint32_t transfer)
{
    (void)transfer;
    SIM_CONTAINER(sink, struct follower, sink)->n_stamps--;
}

static void follower_record(struct tlp_trace_sink *sink, const struct tlp_trace_record *record)
{
    (void)sink, (void)record;
}

static void follower_give_up(struct tlp_trace_sink *sink, uint32_t transfer)
{
    struct follower *follower = SIM_CONTAINER(sink, struct follower, sink);
    follower->given_up = transfer;
    follower->n_given_up++;
}

/* Of a transfer that has sent a part a trace is told that no more comes; of others it is not. */
static void a_trace_is_told_of_transfers_given_up(void **state)
{
    (void)state;
    struct bench bench = bench_new();
    struct pcie_dma *dma = &bench.requester->dma;
    struct follower follower = { .sink = { .begin = follower_begin,
                                           .join = follower_join,
                                           .copy = follower_copy,
                                           .give_up = follower_give_up,
                                           .end = follower_end,
                                           .record = follower_record } };
    struct stamp_trace *trace = tlp_trace_new(NULL, 0, 0);
    trace->sink = &follower.sink;
    dma->model->trace = trace;
    struct transfer *whole = read_now(&bench, 0, 4096);
    run(&bench);
    check_done(whole, PCIE_DMA_OK);
    assert_int_equal(follower.n_begun, 1);
    assert_int_equal(follower.n_given_up, 0);
    dma->params.read_tlps_max = 4;
    struct transfer *part = read_now(&bench, 0, 8 * 512), *none = read_now(&bench, 0, 512);
    sim_run(bench.sim, sim_now(bench.sim) + 100 * SIM_PS_PER_NS, NULL);
    cfg_write(&bench.requester->cfg, PCI_COMMAND, 2, 0);
    run(&bench);
    check_done(part, PCIE_DMA_BUS_MASTER_OFF);
    check_done(none, PCIE_DMA_BUS_MASTER_OFF);
    assert_int_equal(follower.n_begun, 2);
    assert_int_equal(follower.n_given_up, 1);
    assert_int_equal(follower.given_up, 2);
    assert_int_equal(follower.n_stamps, 0);
    dma->model->trace = NULL;
    transfer_free(whole);
    transfer_free(part);
    transfer_free(none);
    bench_free(&bench);
    tlp_trace_free(trace);
}

static void send_stray(struct bench *bench, uint16_t requester_id, uint16_t tag)
{
    struct tlp *tlp = tlp_new(bench->pcie, TLP_CPLD);
    tlp->requester_id = requester_id;
    tlp->tag = tag;
    tlp->byte_count = tlp->length_bytes = 64;
    tlp_payload_new(bench->pcie, tlp);
    memset(tlp->payload, 0x55, 64);
    pcie_port_send(&bench->host->ports[0], tlp, sim_now(bench->sim));
}

static void strays_are_counted_and_dropped(void **state)
{
    (void)state;
    struct bench bench = bench_new();
    struct transfer *transfer = read_now(&bench, 0, 64);
    send_stray(&bench, 0x4300, 0);    /* another's */
    send_stray(&bench, 0x4200, 200);  /* not in use */
    send_stray(&bench, 0x4200, 1023); /* no such tag */
    run(&bench);
    check_done(transfer, PCIE_DMA_OK);
    assert_int_equal(bench.requester->dma.stats.unexpected, 3);
    transfer_free(transfer);
    bench_free(&bench);
}

static void wrong_completions_fail_the_run(void **state)
{
    (void)state;
    for (enum answer answer = ANSWER_WRONG_BYTE_COUNT; answer <= ANSWER_NO_DATA; answer++) {
        struct bench bench = bench_new();
        bench.completer->answer = answer;
        struct transfer *transfer = read_now(&bench, 0x100, 512);
        run(&bench);
        assert_non_null(sim_error(bench.sim));
        assert_non_null(strstr(sim_error(bench.sim), "device: completion for tag"));
        assert_int_equal(transfer->n_done, 0);
        model_free(bench.device);
        model_free(bench.host);
        pcie_context_free(bench.pcie);
        sim_free(bench.sim);
        transfer_free(transfer);
    }
}

/* ---- Payload --------------------------------------------------------------------------------- */

/* Byte i of a range at `address` is one of the first eight of its line within the range. */
static bool is_tag_byte(uint64_t address, uint64_t i)
{
    uint64_t line = (address + i) & ~(LINE_BYTES - 1);
    return address + i - SIM_MAX(line, address) < 8;
}

/* The range of every TLP begins a line anew: expectations are per TLP. */
static bool is_carried(const struct pcie_dma_request *request, uint64_t address, uint64_t i,
                       unsigned max)
{
    uint64_t start = 0, unit = request->whole_lines ? 64 : 4;
    for (;;) {
        uint64_t at = address + start;
        uint64_t end = SIM_MIN((at / unit + max / unit) * unit, (at / 4096 + 1) * 4096);
        if (address + i < end)
            return start < request->bulk_from || is_tag_byte(at, i - start);
        start = end - address;
    }
}

static void bulk_carries_the_head_of_each_line(void **state)
{
    (void)state;
    for (unsigned trial = 0; trial < 120; trial++) {
        struct bench bench = bench_new();
        set_sizes(&bench, 256, 256, true);
        bool write = trial & 1;
        uint64_t offset = sim_random_below(&bench.device->random, 9000) & (trial < 20 ? ~63u : ~0u);
        uint64_t bytes = 1 + sim_random_below(&bench.device->random, 3000);
        struct transfer *transfer = transfer_new(&bench, offset, bytes);
        transfer->request.bulk = true;
        transfer->request.whole_lines = trial >= 40 && (trial & 2) != 0;
        if (trial >= 80) /* headers, up to longer than the whole */
            transfer->request.bulk_from = 1 +
                                          (uint32_t)sim_random_below(&bench.device->random, 600);
        uint8_t *memory = bench.completer->memory + offset;
        if (write)
            memset(memory, 0, bytes);
        submit(transfer, write, 0);
        run(&bench);
        assert_int_equal(transfer->n_done, 1);
        for (uint64_t i = 0; i < bytes; i++) {
            bool carried = is_carried(&transfer->request, offset, i, 256);
            if (write)
                assert_int_equal(memory[i], carried ? 0xab : 0);
            else
                assert_int_equal(transfer->data[i], carried ? memory[i] : 0xab);
        }
        transfer_free(transfer);
        bench_free(&bench);
    }
}

/* ---- Payload by rate ------------------------------------------------------------------------- */

#define SHORTCUT_BYTES (MEMORY_BYTES / 2) /* what lies beyond is none of the host's memory */

static uint8_t *shortcut_to(void *context, struct iova iova, uint64_t bytes)
{
    struct bench *bench = context;
    const uint64_t offset = iova.v - MEMORY_BASE;
    return offset + bytes <= SHORTCUT_BYTES ? bench->completer->memory + offset : NULL;
}

static bool shortcut_read(void *context, struct iova iova, uint8_t *to, uint64_t bytes)
{
    const uint8_t *from = shortcut_to(context, iova, bytes);
    if (from != NULL)
        memcpy(to, from, bytes);
    return from != NULL;
}

static bool shortcut_write(void *context, struct iova iova, const uint8_t *from, uint64_t bytes)
{
    uint8_t *to = shortcut_to(context, iova, bytes);
    if (to != NULL)
        memcpy(to, from, bytes);
    return to != NULL;
}

static struct transfer *bulk_now(struct bench *bench, bool write, uint64_t offset, uint64_t bytes)
{
    struct transfer *transfer = transfer_new(bench, offset, bytes);
    transfer->request.bulk = true;
    submit(transfer, write, 0);
    return transfer;
}

/* That `bytes` of payload take in TLPs of 256 B with 20 (completions) or 24 bytes around each. */
static sim_time wire_ps(const struct bench *bench, uint64_t bytes, unsigned around)
{
    return pcie_port_wire_ps(&bench->device->ports[0], bytes + (bytes + 255) / 256 * around);
}

/* A read takes the last round trip of a TLP, then the wire's time; the next one the wire's
 * alone. */
static void payload_is_read_at_the_rate_of_the_link(void **state)
{
    (void)state;
    struct bench bench = bench_new();
    const struct pcie_shortcut shortcut = { shortcut_read, shortcut_write, &bench };
    bench.device->shortcut = &shortcut;
    struct transfer *first = bulk_now(&bench, false, 0, 64);
    run(&bench);
    assert_int_equal(bench.completer->n_arrivals, 1); /* no round trip is known before */
    const sim_time round_trip_ps = first->done_ps, begin_ps = sim_now(bench.sim);
    struct transfer *two[2] = { bulk_now(&bench, false, 64, 8192),
                                bulk_now(&bench, false, 12345, 5000) };
    run(&bench);
    for (unsigned i = 0; i < 2; i++)
        check_done(two[i], PCIE_DMA_OK);
    assert_int_equal(bench.completer->n_arrivals, 1);
    assert_int_equal(two[0]->done_ps, begin_ps + round_trip_ps + wire_ps(&bench, 8192, 20));
    assert_int_equal(two[1]->done_ps, two[0]->done_ps + wire_ps(&bench, 5000, 20));
    assert_int_equal(bench.requester->dma.stats.read_bytes, 64 + 8192 + 5000);
    struct transfer *beyond = transfer_new(&bench, SHORTCUT_BYTES - 64, 128);
    beyond->request.bulk = true;
    submit(beyond, false, 0);
    struct transfer *plain = read_now(&bench, 0, 64);
    run(&bench);
    assert_int_equal(bench.completer->n_arrivals, 4); /* not memory, in two pages; not payload */
    transfer_free(first);
    transfer_free(two[0]);
    transfer_free(two[1]);
    transfer_free(beyond);
    transfer_free(plain);
    bench_free(&bench);
}

/* Headers go as a TLP, the rest by rate; what is written behind it arrives behind it. */
static void payload_is_written_at_the_rate_of_the_link(void **state)
{
    (void)state;
    struct bench bench = bench_new();
    const struct pcie_shortcut shortcut = { shortcut_read, shortcut_write, &bench };
    bench.device->shortcut = &shortcut;
    struct transfer *data = transfer_new(&bench, 0, 8192);
    data->request.bulk = true;
    data->request.bulk_from = 54;
    submit(data, true, 0);
    struct transfer *completion = write_now(&bench, 65536, 64);
    run(&bench);
    check_done(data, PCIE_DMA_OK);
    check_done(completion, PCIE_DMA_OK);
    const struct arrival *arrival = bench.completer->arrival;
    assert_int_equal(bench.completer->n_arrivals, 2);
    assert_int_equal(arrival[0].bytes, 256);
    assert_int_equal(arrival[1].address, MEMORY_BASE + 65536);
    assert_int_equal(arrival[1].head_ps - arrival[0].head_ps, wire_ps(&bench, 8192 - 256, 24));
    assert_int_equal(bench.requester->dma.stats.write_bytes, 8192 + 64);
    transfer_free(data);
    transfer_free(completion);
    bench_free(&bench);
}

static void payload_by_rate_ends_at_a_reset(void **state)
{
    (void)state;
    struct bench bench = bench_new();
    const struct pcie_shortcut shortcut = { shortcut_read, shortcut_write, &bench };
    struct pcie_dma *dma = &bench.requester->dma;
    bench.device->shortcut = &shortcut;
    struct transfer *first = read_now(&bench, 0, 64);
    run(&bench);
    struct transfer *two[2] = { bulk_now(&bench, false, 64, 8192),
                                bulk_now(&bench, false, 16384, 8192) };
    assert_false(pcie_dma_idle(dma));
    cfg_write(&bench.requester->cfg, PCI_COMMAND, 2, 0);
    pcie_dma_abort(dma);
    assert_true(pcie_dma_idle(dma));
    run(&bench);
    for (unsigned i = 0; i < 2; i++) {
        check_done(two[i], PCIE_DMA_BUS_MASTER_OFF);
        transfer_free(two[i]);
    }
    transfer_free(first);
    bench_free(&bench);
}

static void no_buffer_writes_zeros_and_drops_reads(void **state)
{
    (void)state;
    struct bench bench = bench_new();
    struct transfer *read = transfer_new(&bench, 0, 5000), *write = transfer_new(&bench, 64, 5000);
    read->request.buffer = write->request.buffer = NULL;
    submit(read, false, 0);
    submit(write, true, 0);
    run(&bench);
    assert_int_equal(read->n_done + write->n_done, 2);
    assert_int_equal(bench.requester->dma.stats.read_bytes, 5000);
    memset(write->data, 0, 5000);
    check_done(write, PCIE_DMA_OK);
    transfer_free(read);
    transfer_free(write);
    bench_free(&bench);
}

/* ---- Everything at once ---------------------------------------------------------------------- */

/* Random transfers through tiny queues and few credits, answered out of order and in pieces:
 * everything arrives where it should, every stamp adds up, every credit comes back. */
static void random_traffic_under_back_pressure(void **state)
{
    (void)state;
    for (unsigned trial = 0; trial < 24; trial++) {
        struct bench bench = bench_prepare();
        struct sim_random *random = &bench.device->random;
        bench.device->ports[0].tx_queue_tlps = trial % 3;
        bench.host->ports[0].advertise.header[TLP_POSTED] = 2 + trial % 5;
        bench.host->ports[0].advertise.data[TLP_POSTED] = 64;
        bench.host->ports[0].advertise.header[TLP_NON_POSTED] = 1 + trial % 4;
        unsigned mps_bytes = trial & 8 ? 128 : 256;
        bench.completer->piece_bytes = trial & 1 ? 64 : mps_bytes;
        bench.completer->random_delay = true;
        bench.completer->delay_ps = 2 * SIM_PS_PER_US;
        bench.completer->stamp_early = trial & 2;
        bench_join(&bench);
        set_sizes(&bench, mps_bytes, 128u << trial % 6, trial & 4);
        struct transfer *transfer[120];
        for (unsigned i = 0; i < 120; i++) { /* each in 4 KiB of its own, or across into the next */
            uint64_t offset = i * 8192 + sim_random_below(random, 4096);
            uint64_t bytes = 1 + sim_random_below(random, i % 4 ? 200 : 4096);
            transfer[i] = transfer_new(&bench, offset, bytes);
            for (uint64_t b = 0; b < bytes; b++)
                transfer[i]->data[b] = (uint8_t)sim_random_u64(random);
            if (i % 3 != 0)
                timed(transfer[i]);
            transfer[i]->request.independent = trial & 16;
            submit(transfer[i], sim_random_below(random, 2), sim_random_below(random, 3000000));
        }
        run(&bench);
        if (sim_error(bench.sim) != NULL)
            fail_msg("%s", sim_error(bench.sim));
        for (unsigned i = 0; i < 120; i++) {
            check_done(transfer[i], PCIE_DMA_OK);
            transfer_free(transfer[i]);
        }
        assert_int_equal(bench.requester->dma.stats.unexpected, 0);
        bench_free(&bench);
    }
}

struct chain {
    struct pcie_dma_request request;
    struct bench *bench;
    unsigned left;
};

static void chain_next(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct chain *chain = SIM_CONTAINER(request, struct chain, request);
    (void)status;
    if (chain->left-- > 0)
        pcie_dma_write(&chain->bench->requester->dma, request, 0);
}

/* Without Bus Master nothing limits how fast requests end: no recursion may come of it. */
static void submitting_from_done_does_not_recurse(void **state)
{
    (void)state;
    struct bench bench = bench_new();
    struct chain chain = { .request = { .iova = { MEMORY_BASE }, .bytes = 8, .done = chain_next },
                           .bench = &bench,
                           .left = 1000000 };
    cfg_write(&bench.requester->cfg, PCI_COMMAND, 2, 0);
    pcie_dma_write(&bench.requester->dma, &chain.request, 0);
    assert_int_equal(bench.requester->dma.stats.bus_master_off, 1000001);
    bench_free(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splits_at_size_and_page),
        cmocka_unit_test(unloaded_read_is_the_formula),
        cmocka_unit_test(write_is_done_when_sent),
        cmocka_unit_test(throughput_is_tags_over_round_trip),
        cmocka_unit_test(writes_pass_waiting_reads_but_not_the_reverse),
        cmocka_unit_test(read_waits_for_an_earlier_write),
        cmocka_unit_test(readiness_and_order),
        cmocka_unit_test(writes_pass_reads_that_are_not_ready),
        cmocka_unit_test(error_completions_end_the_read),
        cmocka_unit_test(completion_times_out),
        cmocka_unit_test(late_completions_are_unexpected),
        cmocka_unit_test(answers_of_abandoned_reads_are_unexpected),
        cmocka_unit_test(time_out_can_be_disabled),
        cmocka_unit_test(time_out_is_enabled_late),
        cmocka_unit_test(time_out_that_is_enabled_ends_what_waits),
        cmocka_unit_test(nothing_goes_out_without_bus_master),
        cmocka_unit_test(a_trace_is_told_of_transfers_given_up),
        cmocka_unit_test(strays_are_counted_and_dropped),
        cmocka_unit_test(wrong_completions_fail_the_run),
        cmocka_unit_test(bulk_carries_the_head_of_each_line),
        cmocka_unit_test(no_buffer_writes_zeros_and_drops_reads),
        cmocka_unit_test(payload_is_read_at_the_rate_of_the_link),
        cmocka_unit_test(payload_is_written_at_the_rate_of_the_link),
        cmocka_unit_test(payload_by_rate_ends_at_a_reset),
        cmocka_unit_test(random_traffic_under_back_pressure),
        cmocka_unit_test(submitting_from_done_does_not_recurse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
