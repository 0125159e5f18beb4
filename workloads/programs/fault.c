/*
 * fault: something goes wrong with a device at a set time, while other programs use it. Its link
 * goes down, or its wire does; it is silent from then on; some of its packets get lost, are
 * poisoned or go astray between the link and the receiver; it raises an interrupt for nothing. What
 * the device moved before and after shows what came of it. It runs on no CPU, and tells nobody:
 * drivers have to find out by themselves.
 *
 * Bit errors of a link (bit_error_ratio) and frames that get lost (loss_ratio) are settings of
 * cables.
 */
#include <string.h>

#include "models/ether/ether.h"
#include "models/pcie/endpoint/pcie_function.h"
#include "models/pcie/link/link.h"
#include "models/rdma/ib_link.h"
#include "workloads/programs/program.h"

/* Page that no driver maps, in the middle of the addresses that three levels of page tables
 * translate. */
#define STRAY_PAGE      UINT64_C(0x3ffffff000)
#define INTERRUPT_BASE  UINT64_C(0xfee00000)
#define INTERRUPT_BYTES UINT64_C(0x100000)

enum fault_event {
    FAULT_LOSS,
    FAULT_POISON,
    FAULT_STRAY,
    FAULT_SPURIOUS,
    FAULT_SILENCE,
    FAULT_LINK_DOWN,
    FAULT_WIRE_DOWN
};
static const char *const event_names[] = { "loss",    "poison",    "stray",     "spurious",
                                           "silence", "link_down", "wire_down", NULL };
enum fault_tlps {
    TLPS_WRITES,
    TLPS_READS,
    TLPS_DATA,
    TLPS_INTERRUPTS,
    TLPS_ANSWERS,
    TLPS_REGISTERS
};
static const char *const tlps_names[] = { "writes",  "reads",     "data", "interrupts",
                                          "answers", "registers", NULL };

struct fault;

struct fault_direction {
    struct pcie_tap tap;
    struct fault *fault;
    struct pcie_port *from;
    bool up; /* the device sends */
};

struct fault {
    /* parameters */
    const char *device_name;
    int event, tlps;
    uint32_t port_idx, times, every, vector;
    sim_time after_ps, gap_ps, out_ps;
    /* running */
    struct program *program;
    struct model *device;
    struct pcie_port *port;
    struct ether_port *ether; /* of wire_down: one of them */
    struct ib_port *ib;
    struct fault_direction direction[2];
    struct sim_event begin, over, sample;
    bool armed;
    uint64_t n_seen;
    /* measured */
    sim_time measure_ps, begin_ps, over_ps; /* 0: not yet */
    sim_time last_ps, outage_ps;
    uint64_t n_hits, bytes, bytes_begin, bytes_over, bytes_sample;
};

static const struct param_desc fault_params[] = {
    PARAM_TEXT("device", struct fault, device_name, "", "that it befalls"),
    PARAM("port", PARAM_U32, struct fault, port_idx, 0, 0, 63, PROV_NONE, "",
          "of the device: number of its PCIe port, or with wire_down of that for wires"),
    PARAM_ONE_OF("event", struct fault, event, FAULT_LOSS, event_names, PROV_NONE, "",
                 "TLPs are lost, poisoned or go to an address that is mapped for nobody; an "
                 "interrupt comes for nothing; the device is silent for good; its link or its wire "
                 "goes down"),
    PARAM_ONE_OF(
        "tlps", struct fault, tlps, TLPS_WRITES, tlps_names, PROV_NONE, "",
        "of the first three: the device's writes, reads, the last data that answer these, its "
        "interrupts, its answers to cores, and cores' writes to it"),
    PARAM("after_us", PARAM_TIME, struct fault, after_ps, 100, 0, 1e9, PROV_NONE, "",
          "beginning of the measurement to the event"),
    PARAM("times", PARAM_U32, struct fault, times, 1, 1, 1000000000, PROV_NONE, "",
          "TLPs that it befalls, or interrupts"),
    PARAM("every", PARAM_U32, struct fault, every, 1, 1, 1000000000, PROV_NONE, "",
          "of the TLPs from then on, one in so many"),
    PARAM("gap_us", PARAM_TIME, struct fault, gap_ps, 10, 0.001, 1e9, PROV_NONE, "",
          "between interrupts"),
    PARAM("vector", PARAM_U32, struct fault, vector, 0, 0, 2047, PROV_NONE, "",
          "of the interrupts"),
    PARAM("out_us", PARAM_TIME, struct fault, out_ps, 0, 0, 1e9, PROV_NONE, "",
          "for so long a link or wire is down, a link until it begins to train; 0: for good"),
    { .type = PARAM_END },
};

static const struct record_desc fault_records[] = {
    { "faults", RECORD_METRIC, "1", "TLPs, interrupts, devices, links or wires that it befell" },
    { "throughput_before_gbit_s", RECORD_METRIC, "Gbit/s",
      "payload on the device's link, both ways, before" },
    { "throughput_after_gbit_s", RECORD_METRIC, "Gbit/s", "the same once the last fault was over" },
    { "outage_us", RECORD_METRIC, "us", "longest time without payload there from the first on" },
    { "payload_gbit_s", RECORD_SERIES, "Gbit/s", "payload there" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

/* ---- Settings -------------------------------------------------------------------------------- */

static void check_tlps(struct fault *fault, struct sim_error_list *errors)
{
    if (fault->event == FAULT_POISON && fault->tlps == TLPS_READS)
        program_mistake(fault->program, "tlps", errors, "TLPs with data, to poison them", NULL);
    if (fault->event == FAULT_STRAY && fault->tlps != TLPS_READS && fault->tlps != TLPS_WRITES)
        program_mistake(fault->program, "tlps", errors, "reads or writes, to send them astray",
                        NULL);
}

static void check_wire(struct fault *fault, struct sim_error_list *errors)
{
    fault->ether = cable_port(&ether_cable, fault->device, fault->port_idx);
    fault->ib = cable_port(&ib_cable, fault->device, fault->port_idx);
    if ((fault->ether == NULL || !ether_port_connected(fault->ether)) &&
        (fault->ib == NULL || !ib_port_connected(fault->ib)))
        program_mistake(fault->program, "port", errors,
                        "number of a port of the device that a wire is plugged into", NULL);
}

static void fault_check(struct program *program, struct sim_error_list *errors)
{
    struct fault *fault = program->state;
    fault->program = program;
    program->eventful = true;
    if (fault->after_ps >= program->workload->measure.duration_ps)
        program_mistake(program, "after_us", errors, "less than measure.duration_us", NULL);
    fault->device = world_device(program->workload->world, fault->device_name);
    if (fault->device == NULL || fault->device->n_ports == 0) {
        program_mistake(program, "device", errors, "a device with a PCIe port", NULL);
        return;
    }
    const uint32_t port = fault->event == FAULT_WIRE_DOWN ? 0 : fault->port_idx;
    if (port >= fault->device->n_ports || !pcie_port_connected(&fault->device->ports[port])) {
        program_mistake(program, "port", errors, "number of a port of the device that is connected",
                        NULL);
        return;
    }
    fault->port = &fault->device->ports[port];
    const struct pcie_function *function = fault->port->function;
    if ((fault->event == FAULT_SPURIOUS || fault->event == FAULT_SILENCE) && function == NULL)
        program_mistake(program, "device", errors, "a device with functions of its own", NULL);
    if (fault->event == FAULT_SPURIOUS && function != NULL &&
        fault->vector >= SIM_MAX(function->desc.n_vectors, 1u))
        program_mistake(program, "vector", errors, "a vector that the device has", NULL);
    if (fault->event == FAULT_LINK_DOWN && fault->port->integrated)
        program_mistake(program, "device", errors, "a device behind a link", NULL);
    if (fault->event <= FAULT_STRAY)
        check_tlps(fault, errors);
    if (fault->event == FAULT_WIRE_DOWN)
        check_wire(fault, errors);
}

/* ---- What passes ----------------------------------------------------------------------------- */

/* Of the data that answer a read, the last: what precedes them comes in its order. */
static bool is_meant(const struct fault_direction *direction, const struct tlp *tlp)
{
    const bool interrupt = tlp->address - INTERRUPT_BASE < INTERRUPT_BYTES;
    switch ((enum fault_tlps)direction->fault->tlps) {
    case TLPS_WRITES: return direction->up && tlp->type == TLP_MWR && !interrupt;
    case TLPS_READS: return direction->up && tlp->type == TLP_MRD;
    case TLPS_DATA:
        return !direction->up && tlp->type == TLP_CPLD && tlp->length_bytes == tlp->byte_count;
    case TLPS_INTERRUPTS: return direction->up && tlp->type == TLP_MWR && interrupt;
    case TLPS_ANSWERS: return direction->up && tlp->type == TLP_CPLD;
    case TLPS_REGISTERS: return !direction->up && tlp->type == TLP_MWR;
    }
    return false;
}

static bool befalls(struct pcie_tap *tap, struct tlp *tlp)
{
    const struct fault_direction *direction = SIM_CONTAINER(tap, struct fault_direction, tap);
    struct fault *fault = direction->fault;
    if (!fault->armed || !is_meant(direction, tlp) || fault->n_seen++ % fault->every != 0)
        return true;
    fault->over_ps = sim_now(fault->device->sim);
    fault->bytes_over = fault->bytes;
    fault->armed = ++fault->n_hits < fault->times;
    if (fault->event == FAULT_POISON)
        tlp->poisoned = true;
    else if (fault->event == FAULT_STRAY)
        tlp->address = STRAY_PAGE | (tlp->address & (K_PAGE_BYTES - 1));
    return fault->event != FAULT_LOSS;
}

/* The longest time without payload, up to now. */
static void look_at_outage(struct fault *fault)
{
    const sim_time now_ps = sim_now(fault->device->sim);
    if (fault->begin_ps != 0)
        fault->outage_ps = SIM_MAX(fault->outage_ps, now_ps - fault->last_ps);
    fault->last_ps = now_ps;
}

static void passes(struct pcie_tap *tap, const struct pcie_port *from, const struct tlp *tlp,
                   sim_time start_ps, bool lost)
{
    struct fault *fault = SIM_CONTAINER(tap, struct fault_direction, tap)->fault;
    (void)from;
    (void)start_ps;
    if (lost || tlp->poisoned || tlp->payload == NULL)
        return;
    fault->bytes += tlp->length_bytes;
    look_at_outage(fault);
}

/* ---- What happens ---------------------------------------------------------------------------- */

static void set_wire(struct fault *fault, bool up)
{
    if (fault->ether != NULL)
        ether_port_link(fault->ether, up);
    else
        ib_port_link(fault->ib, up);
}

static void is_over(struct sim *sim, struct sim_event *event)
{
    struct fault *fault = SIM_CONTAINER(event, struct fault, over);
    fault->over_ps = sim_now(sim);
    fault->bytes_over = fault->bytes;
    if (fault->event == FAULT_WIRE_DOWN)
        set_wire(fault, true);
    else
        pcie_link_set_up(fault->port->link, true);
}

static void goes_down(struct fault *fault)
{
    fault->n_hits++;
    if (fault->event == FAULT_WIRE_DOWN)
        set_wire(fault, false);
    else if (fault->event == FAULT_LINK_DOWN)
        pcie_link_set_up(fault->port->link, false);
    else
        pcie_function_remove(fault->device, fault->port->idx);
    if (fault->out_ps != 0 && fault->event != FAULT_SILENCE)
        sim_schedule_in(fault->device->sim, &fault->over, fault->out_ps);
}

static void begins(struct sim *sim, struct sim_event *event)
{
    struct fault *fault = SIM_CONTAINER(event, struct fault, begin);
    if (fault->begin_ps == 0) {
        fault->begin_ps = sim_now(sim);
        fault->bytes_begin = fault->bytes;
        fault->last_ps = fault->begin_ps;
    }
    fault->over_ps = sim_now(sim);
    fault->bytes_over = fault->bytes;
    if (fault->event <= FAULT_STRAY) {
        fault->armed = true;
    } else if (fault->event == FAULT_SPURIOUS) {
        pcie_function_interrupt(fault->port->function, fault->vector);
        if (++fault->n_hits < fault->times)
            sim_schedule_in(sim, event, fault->gap_ps);
    } else {
        goes_down(fault);
    }
}

static double gbit_s(uint64_t bytes, sim_time ps)
{
    return ps != 0 ? (double)bytes * 8000.0 / (double)ps : 0.0;
}

static void sample_ends(struct sim *sim, struct sim_event *event)
{
    struct fault *fault = SIM_CONTAINER(event, struct fault, sample);
    const sim_time interval_ps = fault->program->workload->measure.sample_interval_ps;
    program_series(fault->program, "payload_gbit_s", "Gbit/s", sim_now(sim) - fault->measure_ps,
                   gbit_s(fault->bytes - fault->bytes_sample, interval_ps));
    fault->bytes_sample = fault->bytes;
    sim_schedule_in(sim, event, interval_ps);
}

static void fault_start(struct program *program)
{
    struct fault *fault = program->state;
    struct pcie_port *from[2] = { fault->port, pcie_port_peer(fault->port) };
    for (unsigned i = 0; i < 2; i++) {
        fault->direction[i] = (struct fault_direction){
            .tap = { .tlp = passes, .befalls = befalls },
            .fault = fault,
            .from = from[i],
            .up = i == 0,
        };
        pcie_port_add_tap(from[i], &fault->direction[i].tap);
    }
    sim_event_init(&fault->begin, begins);
    sim_event_init(&fault->over, is_over);
    sim_event_init(&fault->sample, sample_ends);
}

static void fault_measure(struct program *program)
{
    struct fault *fault = program->state;
    struct sim *sim = program->workload->sim;
    fault->measure_ps = sim_now(sim);
    fault->bytes = 0;
    sim_schedule_in(sim, &fault->begin, fault->after_ps);
    if (program->workload->measure.sample_interval_ps != 0)
        sim_schedule_in(sim, &fault->sample, program->workload->measure.sample_interval_ps);
}

/* A link or wire that is down stays so: what hosts do to end sees it, too. */
static void fault_record(struct program *program, sim_time duration_ps)
{
    struct fault *fault = program->state;
    struct sim *sim = program->workload->sim;
    const sim_time end_ps = sim_now(sim);
    (void)duration_ps;
    sim_cancel(sim, &fault->begin);
    sim_cancel(sim, &fault->over);
    sim_cancel(sim, &fault->sample);
    for (unsigned i = 0; i < 2; i++)
        pcie_port_remove_tap(fault->direction[i].from, &fault->direction[i].tap);
    program_metric(program, "faults", "1", (double)fault->n_hits);
    if (fault->begin_ps == 0)
        return;
    look_at_outage(fault);
    program_metric(program, "throughput_before_gbit_s", "Gbit/s",
                   gbit_s(fault->bytes_begin, fault->begin_ps - fault->measure_ps));
    program_metric(program, "throughput_after_gbit_s", "Gbit/s",
                   gbit_s(fault->bytes - fault->bytes_over, end_ps - fault->over_ps));
    program_metric(program, "outage_us", "us", (double)fault->outage_ps / (double)SIM_PS_PER_US);
}

const struct program_ops program_fault_ops = {
    .type = "fault",
    .help = "a fault of a device, its link or its packets while others use it; runs on no CPU",
    .steady = true,
    .state_bytes = sizeof(struct fault),
    .params = fault_params,
    .records = fault_records,
    .samples = true,
    .check = fault_check,
    .start = fault_start,
    .measure = fault_measure,
    .record = fault_record,
};
