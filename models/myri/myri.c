/*
 * myri.myri10g: a Myri-10G adapter (10G-PCIE-8A), a processor with SRAM between PCI Express and
 * Ethernet.
 *
 * Models: a PCIe function with BAR, MSI or MSI-X and DMA engine; windows for lines of requests; the
 *   processor, which does one thing after the other; the firmware, by the setting `firmware`:
 *   Ethernet with one receive queue, or with eight (myri_ether.c), or Myrinet Express (myri_mx.c).
 *   Commands: myri_command.c; sending: myri_send.c; receiving: myri_receive.c; interrupts:
 *   myri_interrupt.c.
 * Does not model: loading of firmware, INTx, LEDs, multicast filters, function-level reset (it has
 *   none).
 * Timing: a read of the SRAM is answered after register_latency; a line acts when its last byte has
 *   arrived. The processor begins a job when it came and the one before has ended, and needs the
 *   time of the firmware for it. The rest: the files above.
 * Sources: docs/sources.md#e1, docs/models/myri.md.
 */
#include "models/myri/myri.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hw/myri_mx.h"
#include "models/myri/myri_internal.h"

#define VECTORS          MYRI_SLICES_MAX
#define RING_ENTRIES_MIN 64u

static const char *const firmware_names[] = { "ethernet", "multiqueue", "mx", NULL };

#define FROM_E1 "docs/sources.md#e1"
static const struct param_desc myri_params_table[] = {
    PCIE_FUNCTION_PARAMS(struct myri, params.pcie, FROM_E1, /* lanes */ 8, /* payload */ 128,
                         PROV_DATASHEET, /* extended tags */ 0, PROV_ESTIMATE, /* queue */ 4,
                         /* credits */ 32, 128, 8, /* register */ 300, /* reads */ 15),
    PARAM_ONE_OF(
        "firmware", struct myri, params.firmware, MYRI_FIRMWARE_ETHERNET, firmware_names,
        PROV_PUBLISHED, FROM_E1,
        "ethernet: one receive queue; multiqueue: eight, chosen by the endpoint of Open-MX "
        "or the ports of IP; mx: Myrinet Express"),
    PARAM("rate_gbit_s", PARAM_RATE, struct myri, params.rate_gbit_s, 10, 1, 100, PROV_DATASHEET,
          FROM_E1, "highest bit rate of the Ethernet port"),
    PARAM("mtu_bytes", PARAM_U32, struct myri, params.mtu_bytes, 9000, 576, 9382, PROV_DATASHEET,
          FROM_E1, "longest packet, without Ethernet header"),
    PARAM("firmware_send_ns", PARAM_TIME, struct myri, params.send_ps, 750, 0, 10000, PROV_ESTIMATE,
          FROM_E1, "time of the processor for a packet to be sent"),
    PARAM("firmware_receive_ns", PARAM_TIME, struct myri, params.receive_ps, 750, 0, 10000,
          PROV_ESTIMATE, FROM_E1, "time of the processor for a received packet"),
    PARAM("firmware_multiqueue_ns", PARAM_TIME, struct myri, params.multiqueue_ps, 600, 0, 10000,
          PROV_ESTIMATE, FROM_E1,
          "added to a received packet by firmware with several receive queues"),
    PARAM("firmware_mx_ns", PARAM_TIME, struct myri, params.mx_ps, 500, 0, 10000, PROV_CALIBRATED,
          FROM_E1,
          "time of the processor for a packet sent or received by firmware of Myrinet Express"),
    PARAM("port_latency_ns", PARAM_TIME, struct myri, params.port_ps, 150, 0, 10000, PROV_ESTIMATE,
          FROM_E1, "last bit of a packet to the processor's notice of it"),
    PARAM("command_latency_us", PARAM_TIME, struct myri, params.command_ps, 10, 0, 100000,
          PROV_ESTIMATE, FROM_E1, "time of the processor for a command"),
    PARAM("tx_buffer_bytes", PARAM_BYTES, struct myri, params.tx_buffer_bytes, 65536, 16384, 1e9,
          PROV_ESTIMATE, FROM_E1, "SRAM for packets to be sent, from read to wire"),
    PARAM("rx_buffer_bytes", PARAM_BYTES, struct myri, params.rx_buffer_bytes, 262144, 65536, 1e9,
          PROV_ESTIMATE, FROM_E1, "SRAM for received packets"),
    PARAM("ring_entries", PARAM_U32, struct myri, params.ring_entries, 1024, RING_ENTRIES_MIN,
          16384, PROV_ESTIMATE, FROM_E1,
          "of the rings for sending and for receiving; a power of two"),
    PARAM("flow_control", PARAM_BOOL, struct myri, params.flow_control, 1, 0, 1, PROV_DATASHEET,
          FROM_E1, "PAUSE frames, if the other end of the wire offers them, too"),
    { .type = PARAM_END },
};

#define MYRI_STAT(NAME, KIND, FIELD, UNIT, HELP) \
    STAT(NAME, KIND, struct myri, stats.FIELD, UNIT, 0, HELP)
static const struct stat_desc myri_stats_table[] = {
    MYRI_STAT("tx_packets", STAT_COUNTER, tx_packets, "1", "packets sent"),
    MYRI_STAT("tx_bytes", STAT_COUNTER, tx_bytes, "bytes", "of these packets, without FCS"),
    MYRI_STAT("rx_packets", STAT_COUNTER, rx_packets, "1", "packets written to host memory"),
    MYRI_STAT("rx_bytes", STAT_COUNTER, rx_bytes, "bytes", "of these packets, without FCS"),
    MYRI_STAT("loopback", STAT_COUNTER, loopback, "1", "packets sent to its own address"),
    MYRI_STAT("rx_no_buffer", STAT_COUNTER, rx_no_buffer, "1",
              "packets dropped because no buffer was posted"),
    MYRI_STAT("rx_overflow", STAT_COUNTER, rx_overflow, "1",
              "packets dropped because the SRAM was full"),
    MYRI_STAT("rx_closed", STAT_COUNTER, rx_closed, "1",
              "packets dropped because the interface was down"),
    MYRI_STAT("rx_filtered", STAT_COUNTER, rx_filtered, "1", "packets for another's address"),
    MYRI_STAT("rx_too_long", STAT_COUNTER, rx_too_long, "1", "packets longer than the MTU"),
    MYRI_STAT("tx_errors", STAT_COUNTER, tx_errors, "1",
              "packets not sent: a read failed, or they make no sense"),
    MYRI_STAT("commands", STAT_COUNTER, commands, "1", "commands executed"),
    MYRI_STAT("bad_requests", STAT_COUNTER, bad_requests, "1", "requests that make no sense"),
    MYRI_STAT("processor_busy", STAT_COUNTER, busy_ps, "ps", "time that the processor has worked"),
    STAT("interrupts", STAT_COUNTER, struct myri, pcie.stats.interrupts, "1", 0,
         "MSI or MSI-X messages sent"),
    STAT("unsupported", STAT_COUNTER, struct myri, pcie.stats.unsupported, "1", 0,
         "requests to it that it does not support"),
    PCIE_DMA_STATS(struct myri, pcie.dma),
    { .kind = STAT_END },
};

/* ---- The processor --------------------------------------------------------------------------- */

static void job_schedule(struct myri *nic)
{
    if (nic->job_head != NULL && !sim_event_pending(&nic->job_event))
        sim_schedule(nic->model->sim, &nic->job_event, nic->job_head->done_ps);
}

static void job_event(struct sim *sim, struct sim_event *event)
{
    struct myri *nic = SIM_CONTAINER(event, struct myri, job_event);
    struct myri_job *job = nic->job_head;
    (void)sim;
    nic->job_head = job->next;
    if (nic->job_head == NULL)
        nic->job_tail = &nic->job_head;
    job->run(nic, job);
    job_schedule(nic);
}

void myri_work(struct myri *nic, struct myri_job *job, sim_time duration_ps, myri_job_fn *run)
{
    nic->free_ps = SIM_MAX(nic->free_ps, myri_now(nic)) + duration_ps;
    nic->stats.busy_ps += duration_ps;
    job->done_ps = nic->free_ps;
    job->run = run;
    job->next = NULL;
    *nic->job_tail = job;
    nic->job_tail = &job->next;
    job_schedule(nic);
}

/* ---- DMA ------------------------------------------------------------------------------------- */

static void post_done(struct pcie_dma_request *request, enum pcie_dma_status status)
{
    struct myri_write *write = SIM_CONTAINER(request, struct myri_write, request);
    (void)status;
    sim_pool_put(write->nic->writes, write);
}

void myri_post(struct myri *nic, uint64_t iova, const void *bytes, uint32_t n)
{
    struct myri_write *write = sim_pool_get(nic->writes);
    write->nic = nic;
    memcpy(write->bytes, bytes, n);
    write->request = (struct pcie_dma_request){
        .iova = { iova }, .bytes = n, .buffer = write->bytes, .done = post_done
    };
    pcie_dma_write(&nic->pcie.dma, &write->request, myri_now(nic));
}

void myri_ended(struct myri *nic)
{
    if (SIM_UNLIKELY(nic->closing))
        myri_command_quiet(nic);
}

/* ---- BAR 0 ----------------------------------------------------------------------------------- */

static struct myri *of_function(struct pcie_function *function)
{
    return SIM_CONTAINER(function, struct myri, pcie);
}

static uint32_t sram_read(struct pcie_function *function, uint64_t offset)
{
    const struct myri *nic = of_function(function);
    uint32_t value = 0;
    if (offset >= MYRI_STRINGS && offset < MYRI_STRINGS + MYRI_STRINGS_BYTES)
        memcpy(&value, nic->strings + (offset - MYRI_STRINGS), sizeof(value));
    else if (offset == MYRI_COALESCING_AT)
        value = myri_be32(nic->ether.coalescing_us);
    else if (offset >= MYRI_TABLE_AT && offset < MYRI_TABLE_AT + sizeof(nic->ether.table))
        memcpy(&value, nic->ether.table + (offset - MYRI_TABLE_AT), sizeof(value));
    return value;
}

/* A double word of a line; true: it was the last. */
static bool line_put(uint8_t *line, uint64_t offset, uint32_t value)
{
    const unsigned at = (unsigned)(offset % MYRI_LINE_BYTES);
    memcpy(line + at, &value, sizeof(value));
    return at == MYRI_LINE_BYTES - sizeof(value);
}

static void window_write(struct myri *nic, uint64_t offset, uint32_t value)
{
    const unsigned slice = (unsigned)(offset % MYRI_WINDOW_BYTES / MYRI_LINE_BYTES);
    const bool sends = offset < MYRI_RECEIVE_SMALL;
    const unsigned window = sends ? 0 : offset < MYRI_RECEIVE_BIG ? 1 : 2;
    if (slice >= MYRI_SLICES_MAX) {
        nic->stats.bad_requests++;
        return;
    }
    uint8_t *line = nic->line[window][slice];
    if (!line_put(line, offset, value))
        return;
    const unsigned n = (unsigned)((offset - MYRI_SEND(4)) / MYRI_WINDOW_BYTES);
    if (sends)
        myri_ether_send_line(nic, slice, line, n == 0 ? 4 : n);
    else
        myri_ether_receive_line(
            window == 1 ? &nic->ether.slice[slice].small : &nic->ether.slice[slice].big, line);
}

static void sram_write(struct pcie_function *function, uint64_t offset, uint32_t value)
{
    struct myri *nic = of_function(function);
    if (nic->mx != NULL && offset - MYRI_MX_WINDOWS < MYRI_MX_ENDPOINTS * MYRI_MX_WINDOW_BYTES)
        myri_mx_window_write(nic, offset - MYRI_MX_WINDOWS, value);
    else if (nic->mx == NULL && offset >= MYRI_SEND(4) &&
             offset < MYRI_RECEIVE_BIG + MYRI_WINDOW_BYTES)
        window_write(nic, offset, value);
    else if (offset >= MYRI_COMMAND && offset < MYRI_COMMAND + MYRI_LINE_BYTES) {
        if (line_put(nic->command_line, offset, value))
            myri_command_line(nic);
    } else if (offset >= MYRI_ACK_AT && offset < MYRI_ACK_AT + MYRI_SLICES_MAX * MYRI_ACK_BYTES)
        myri_interrupt_ack(nic, offset - MYRI_ACK_AT);
    else if (offset == MYRI_COALESCING_AT)
        nic->ether.coalescing_us = myri_be32(value);
    else if (offset >= MYRI_TABLE_AT && offset < MYRI_TABLE_AT + sizeof(nic->ether.table))
        memcpy(nic->ether.table + (offset - MYRI_TABLE_AT), &value, sizeof(value));
}

/* ---- Set-up ---------------------------------------------------------------------------------- */

static void function_init(struct myri *nic)
{
    static const struct pcie_function_ops ops = { .reset = NULL };
    const bool several = nic->params.firmware == MYRI_FIRMWARE_MULTIQUEUE;
    const struct pcie_function_desc desc = {
        .ops = &ops,
        .params = &nic->params.pcie,
        .identity = { .vendor_id = MYRI_VENDOR_ID,
                      .device_id = MYRI_DEVICE_ID,
                      .subsystem_vendor_id = MYRI_VENDOR_ID,
                      .class_code = MYRI_CLASS },
        .msix_bar = MYRI_MSIX_BAR,
        .n_vectors = several ? VECTORS : 0,
        .msi = !several,
        .msix_table = MYRI_MSIX_TABLE,
        .msix_pba = MYRI_MSIX_PBA,
        .bar = { { MYRI_BAR_BYTES, CFG_BAR_64 | CFG_BAR_PREFETCH, sram_read, sram_write,
                   .by_bytes = true },
                 [MYRI_MSIX_BAR] = { several ? MYRI_MSIX_BYTES : 0, CFG_BAR_64, sram_read,
                                     sram_write, .by_bytes = false } }
    };
    pcie_function_init(&nic->pcie, nic->model, &desc);
}

/* A locally administered address that differs between devices of a run by their names. */
static uint64_t mac_of(const struct model *model)
{
    struct sim_random random;
    sim_random_init(&random, 0, model->name);
    return UINT64_C(0x02) << 40 | (sim_random_u64(&random) & UINT64_C(0xffffffffff));
}

static void ports_init(struct model *model, struct sim_error_list *errors)
{
    struct myri *nic = myri_of(model);
    pcie_function_ports(model, 1, &nic->params.pcie, errors);
    snprintf(nic->port_name, sizeof(nic->port_name), "%s.e0", model->name);
    nic->port = model_ports_new(model, &ether_cable, 1);
    *nic->port = (struct ether_port){ .model = model,
                                      .name = nic->port_name,
                                      .rate_gbit_s_max = nic->params.rate_gbit_s,
                                      .receive_latency_ps = nic->params.port_ps,
                                      .receive = myri_receive_frame,
                                      .retime = myri_retime,
                                      .flow_control = nic->params.flow_control,
                                      .buffer_bytes = nic->params.rx_buffer_bytes,
                                      .mtu_bytes = nic->params.mtu_bytes,
                                      .link = myri_link_changed };
}

static void myri_init(struct model *model, struct sim_error_list *errors)
{
    struct myri *nic = myri_of(model);
    const size_t before = errors->n_messages;
    nic->model = model;
    pcie_function_power_of_two(model, "ring_entries", nic->params.ring_entries, errors);
    ports_init(model, errors);
    if (errors->n_messages != before)
        return;
    nic->txs = sim_pool_shared(model->sim, "myri tx", sizeof(struct myri_tx));
    nic->rxs = sim_pool_shared(model->sim, "myri rx", sizeof(struct myri_rx));
    nic->writes = sim_pool_shared(model->sim, "myri write", sizeof(struct myri_write));
    nic->job_tail = &nic->job_head;
    nic->wait_tail = &nic->wait_head;
    nic->read_tail = &nic->read_head;
    nic->sent_tail = &nic->sent_head;
    sim_event_init(&nic->job_event, job_event);
    sim_event_init(&nic->retire, myri_send_retire);
    nic->mac = mac_of(model);
    snprintf((char *)nic->strings, sizeof(nic->strings),
             "SN=1%cMAC=%02x:%02x:%02x:%02x:%02x:%02x%cPC=10G-PCIE-8A-R%c", 0,
             (unsigned)(nic->mac >> 40), (unsigned)(nic->mac >> 32 & 0xff),
             (unsigned)(nic->mac >> 24 & 0xff), (unsigned)(nic->mac >> 16 & 0xff),
             (unsigned)(nic->mac >> 8 & 0xff), (unsigned)(nic->mac & 0xff), 0, 0);
    function_init(nic);
    myri_ether_init(nic);
    if (nic->params.firmware == MYRI_FIRMWARE_MX)
        myri_mx_init(nic);
    nic->ready = true;
}

static void myri_start(struct model *model)
{
    struct myri *nic = myri_of(model);
    pcie_function_start(model);
    ether_buffer_init(&nic->rx_buffer, nic->port, nic->params.rx_buffer_bytes,
                      nic->params.mtu_bytes);
}

static void myri_release(struct model *model)
{
    struct myri *nic = myri_of(model);
    if (!nic->ready)
        return;
    sim_cancel(model->sim, &nic->job_event);
    myri_send_release(nic);
    myri_ether_release(nic);
    myri_mx_release(nic);
    pcie_function_release(&nic->pcie);
}

enum myri_firmware myri_firmware(const struct model *model)
{
    return (enum myri_firmware)myri_of(model)->params.firmware;
}

uint64_t myri_mac(const struct model *model)
{
    return myri_of(model)->mac;
}

uint32_t myri_mtu_bytes(const struct model *model)
{
    return myri_of(model)->params.mtu_bytes;
}

const struct myri_stats *myri_stats(const struct model *model)
{
    return &myri_of(model)->stats;
}

uint64_t myri_drops(const struct model *model)
{
    const struct myri_stats *stats = myri_stats(model);
    return stats->rx_no_buffer + stats->rx_overflow + stats->rx_closed + stats->rx_too_long;
}

const struct model_ops myri_ops = {
    .type = "myri.myri10g",
    .help = "a Myri-10G adapter with Ethernet firmware, or that of Myrinet Express",
    .state_bytes = sizeof(struct myri),
    .params = myri_params_table,
    .stats = myri_stats_table,
    .init = myri_init,
    .start = myri_start,
    .receive = pcie_function_receive,
    .credit = pcie_function_credit,
    .link_change = pcie_function_link_change,
    .release = myri_release,
};
