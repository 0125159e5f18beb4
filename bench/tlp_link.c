/*
 * TLPs per second of processor time through PCIe links and a switch, the best of a few repetitions
 * (the machine may be shared): posted writes with a payload buffer, saturating Gen3 x16 links; the
 * source sends when the link has room, the sink gives every buffer back at once.
 *
 *   link.256B_mwr_one_hop    source - link - sink
 *   link.256B_mwr_two_hops   source - link - switch - link - sink
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "hw/pci_regs.h"
#include "models/pcie/switch/switch.h"

#define N_TLPS    1000000u
#define N_REPEATS 4

struct end {
    struct model model;
    struct pcie_port port;
    uint64_t n_to_send, n_received;
};

static void receive(struct model *model, uint32_t port, struct tlp *tlp)
{
    struct end *end = model->state;

    (void)port;
    end->n_received++;
    pcie_port_release(&end->port, TLP_POSTED, tlp_data_credits(tlp),
                      SIM_MAX(tlp->tail_ps, sim_now(model->sim)));
    tlp_free(model->pcie, tlp);
}

static void credit(struct model *model, uint32_t port)
{
    struct end *end = model->state;

    (void)port;
    while (end->n_to_send != 0 && pcie_port_ready(&end->port, TLP_POSTED)) {
        struct tlp *tlp = tlp_new(model->pcie, TLP_MWR);
        tlp->address = UINT64_C(0x100000000) + end->n_to_send-- * 256;
        tlp->length_bytes = 256;
        tlp_payload_new(model->pcie, tlp);
        pcie_port_send(&end->port, tlp, sim_now(model->sim));
    }
}

static const struct model_ops end_ops = { .type = "bench.end",
                                          .receive = receive,
                                          .credit = credit };

static void end_init(struct end *end, struct pcie_context *pcie, const char *name)
{
    *end = (struct end){
        .model = { .ops = &end_ops,
                   .name = name,
                   .sim = pcie_context_sim(pcie),
                   .pcie = pcie,
                   .state = end },
        .port = { .model = &end->model,
                  .max_generation = 3,
                  .max_lanes = 16,
                  .mps_bytes = 256,
                  .tx_queue_tlps = 4,
                  .advertise = { { 64, 64, 64 }, { 1024, 64, 1024 } },
                  .name = name },
    };
}

static void fixed_init(struct model *model, struct sim_error_list *errors)
{
    *(struct pcie_switch *)model->state = (struct pcie_switch){
        .n_downstream = 1,
        .lanes = 16,
        .downstream_lanes = 16,
        .chip = { .generation = 3,
                  .latency_ps = 110000,
                  .mode = CROSSBAR_CUT_THROUGH,
                  .ph = 64,
                  .pd = 1024,
                  .nph = 64,
                  .npd = 64,
                  .cplh = 64,
                  .cpld = 1024,
                  .mps_bytes_max = 2048 },
    };
    pcie_switch_ops.init(model, errors);
}

/* A switch whose windows lead writes below 4 GiB down and others up. */
static struct model *switch_new(struct pcie_context *pcie, struct model_ops *ops,
                                struct sim_error_list *errors)
{
    *ops = pcie_switch_ops;
    ops->params = NULL;
    ops->init = fixed_init;
    struct model *model = model_new(pcie_context_sim(pcie), pcie, ops, "switch", NULL, NULL,
                                    errors);
    struct pcie_switch *sw = model->state;
    for (unsigned i = 0; i < 2; i++) {
        cfg_write(sw->port[i].cfg, PCI_COMMAND, 2, PCI_COMMAND_MEMORY | PCI_COMMAND_BUS_MASTER);
        model->ports[i].mps_bytes = 256;
    }
    return model;
}

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void join(struct pcie_context *pcie, struct pcie_port *a, struct pcie_port *b,
                 struct sim_error_list *errors)
{
    static const struct pcie_link_params params = {
        .latency_ps = 40000, .ack_tlps = 4, .fc_update_ratio_pct = 25, .skp_overhead_ratio = -1
    };

    if (pcie_link_new(pcie, a->name, &params, a, b, "bench", 1, errors) == NULL)
        exit(1);
}

/* Millions of TLPs delivered per second. */
static double run_once(unsigned n_hops, bool both_ways)
{
    struct sim *sim = sim_new(1);
    struct pcie_context *pcie = pcie_context_new(sim);
    struct sim_error_list errors = { 0 };
    struct model_ops ops;
    struct model *sw = NULL;
    static struct end source, sink;

    end_init(&source, pcie, "source");
    end_init(&sink, pcie, "sink");
    if (n_hops == 2) {
        sw = switch_new(pcie, &ops, &errors);
        join(pcie, &source.port, &sw->ports[1], &errors);
        join(pcie, &sw->ports[0], &sink.port, &errors);
    } else {
        join(pcie, &source.port, &sink.port, &errors);
    }
    source.n_to_send = N_TLPS;
    sink.n_to_send = both_ways ? N_TLPS : 0;
    double start_s = now_s();
    credit(&source.model, 0);
    credit(&sink.model, 0);
    sim_run(sim, SIM_TIME_MAX, NULL);
    double took_s = now_s() - start_s;
    uint64_t n_received = source.n_received + sink.n_received;
    if (sink.n_received != N_TLPS || tlp_live(pcie) != 0)
        exit(1);
    if (getenv("TLP_LINK_EVENTS") != NULL)
        printf("events per TLP %.3f\n", (double)sim_events_fired(sim) / (double)n_received);
    model_free(sw);
    pcie_context_free(pcie);
    sim_free(sim);
    return (double)n_received / took_s / 1e6;
}

static void report(const char *name, unsigned n_hops, bool both_ways)
{
    double best = 0;

    for (unsigned i = 0; i < N_REPEATS; i++) {
        double rate = run_once(n_hops, both_ways);
        best = SIM_MAX(best, rate);
    }
    printf("%s %.2f MTLP/s\n", name, best);
}

int main(void)
{
    report("link.256B_mwr_one_hop", 1, false);
    report("link.256B_mwr_two_hops", 2, false);
    return 0;
}
