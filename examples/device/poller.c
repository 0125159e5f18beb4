/*
 * example.poller: a device outside of nudma's tree that polls a line of host memory.
 *
 * Models: a PCIe function that reads 64 bytes, waits, and reads them again; a register that counts.
 * Does not model: interrupts, writes; its workload starts it, where a driver would write a
 *   register.
 * Timing: a read's latency is that of the link and the host; interval_ns later the next one begins.
 * Sources: made up.
 */
#include "poller.h"

#include "models/pcie/endpoint/pcie_function.h"

#include <nudma.h>

#define POLL_BYTES 64u

struct poller {
    struct pcie_function_params pcie; /* parameters */
    sim_time interval_ps;
    struct pcie_function function;
    struct pcie_dma_request request;
    struct sim_event next;
    sim_time begin_ps;
    bool *stopped;
    uint8_t line[POLL_BYTES];
    uint64_t reads; /* statistics */
    struct stat_mean latency_ps;
};

static const struct param_desc poller_params[] = {
    PCIE_FUNCTION_PARAMS(struct poller, pcie, "made up", /* lanes */ 4, /* payload */ 256,
                         PROV_ESTIMATE, /* extended tags */ 0, PROV_ESTIMATE, /* queue */ 2,
                         /* credits */ 16, 64, 8, /* register */ 100, /* reads */ 0),
    PARAM("interval_ns", PARAM_TIME, struct poller, interval_ps, 500, 0, 1e6, PROV_ESTIMATE,
          "made up", "from the end of a read to the next"),
    { .type = PARAM_END },
};

static const struct stat_desc poller_stats[] = {
    STAT("polls", STAT_COUNTER, struct poller, reads, "1", 0, "lines that it has read"),
    STAT("poll_latency_ns", STAT_MEAN, struct poller, latency_ps, "ns", 0.001,
         "from request to data"),
    { .kind = STAT_END },
};

static void poll_ends(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct poller *poller = SIM_CONTAINER(request, struct poller, request);
    struct model *model = poller->function.model;

    if (status != PCIE_DMA_OK)
        sim_fail(model->sim, "%s: a read has failed", model->name);
    poller->reads++;
    stat_mean_add(&poller->latency_ps, (double)(sim_now(model->sim) - poller->begin_ps));
    if (poller->stopped != NULL)
        *poller->stopped = true;
    else
        sim_schedule_in(model->sim, &poller->next, poller->interval_ps);
}

static void poll(struct sim *sim, struct sim_event *event)
{
    struct poller *poller = SIM_CONTAINER(event, struct poller, next);

    poller->begin_ps = sim_now(sim);
    pcie_dma_read(&poller->function.dma, &poller->request, sim_now(sim));
}

void poller_start(struct model *model, struct iova iova)
{
    struct poller *poller = model->state;

    poller->request = (struct pcie_dma_request){
        .iova = iova, .bytes = POLL_BYTES, .buffer = poller->line, .done = poll_ends
    };
    sim_schedule_in(model->sim, &poller->next, 0);
}

void poller_stop(struct model *model, bool *stopped)
{
    struct poller *poller = model->state;

    if (sim_event_pending(&poller->next)) {
        sim_cancel(model->sim, &poller->next);
        *stopped = true;
    } else {
        poller->stopped = stopped;
    }
}

uint16_t poller_id(const struct model *model)
{
    return ((const struct poller *)model->state)->function.cfg.id;
}

double poller_latency_ns(const struct model *model)
{
    const struct poller *poller = model->state;

    return stat_mean_value(&poller->latency_ps) / (double)SIM_PS_PER_NS;
}

/* Register 0 of BAR 0: how often it has read. */
static uint32_t read_register(struct pcie_function *function, uint64_t offset)
{
    return offset == 0 ? (uint32_t)((struct poller *)function->model->state)->reads : 0;
}

static void write_register(struct pcie_function *function, uint64_t offset, uint32_t value)
{
    (void)function;
    (void)offset;
    (void)value;
}

static void poller_init(struct model *model, struct sim_error_list *errors)
{
    static const struct pcie_function_ops none;
    struct poller *poller = model->state;
    const struct pcie_function_desc desc = {
        .ops = &none,
        .params = &poller->pcie,
        .identity = { .vendor_id = 0x1234, .device_id = 0x0001, .class_code = 0x088000 },
        .bar = { { 4096, CFG_BAR_64, read_register, write_register, .by_bytes = false } },
    };

    pcie_function_ports(model, 1, &poller->pcie, errors);
    pcie_function_init(&poller->function, model, &desc);
    stat_mean_init(&poller->latency_ps);
    sim_event_init(&poller->next, poll);
}

static void poller_release(struct model *model)
{
    struct poller *poller = model->state;

    sim_cancel(model->sim, &poller->next);
    pcie_function_release(&poller->function);
}

const struct model_ops poller_ops = {
    .type = "example.poller",
    .help = "reads a line of host memory again and again",
    .state_bytes = sizeof(struct poller),
    .params = poller_params,
    .stats = poller_stats,
    .init = poller_init,
    .start = pcie_function_start,
    .receive = pcie_function_receive,
    .credit = pcie_function_credit,
    .link_change = pcie_function_link_change,
    .release = poller_release,
};
NUDMA_MODEL(poller_ops);
