/*
 * pktgen: a thread in the server's kernel that hands the same packet to the NIC again and again
 * (clone_skb), without touching data; it waits only when the transmit queue is full. Packets go to
 * a MAC address that nobody has, as pktgen's default does: whoever is at the other end drops them
 * in its NIC.
 */
#include <string.h>

#include "workloads/programs/program.h"

#define HEADER_BYTES 42u  /* Ethernet, IPv4, UDP */
#define SPIN_CYCLES  100u /* of the loop that looks whether a full queue has room again */

struct pktgen {
    /* parameters */
    const char *host_name, *interface;
    uint32_t socket, core;
    uint64_t packet_bytes;
    /* running */
    struct program *program;
    struct network_host *host;
    struct net_device *dev;
    /* measured */
    uint64_t packets;
};

static const struct param_desc pktgen_params[] = {
    PARAM_TEXT("host", struct pktgen, host_name, "server", "the host that sends"),
    PARAM_TEXT("interface", struct pktgen, interface, "", "of the host; empty: its default"),
    PARAM("socket", PARAM_U32, struct pktgen, socket, 0, 0, 7, PROV_NONE, "", "of the thread"),
    PARAM("core", PARAM_U32, struct pktgen, core, 0, 0, 63, PROV_NONE, "", "of the socket"),
    PARAM("packet_bytes", PARAM_BYTES, struct pktgen, packet_bytes, 64, 60, 1514, PROV_NONE, "",
          "of a packet with its Ethernet header, without FCS"),
    { .type = PARAM_END },
};

static const struct record_desc pktgen_records[] = {
    { "+throughput_gbit_s", RECORD_METRIC, "Gbit/s", "packets sent, Ethernet header included" },
    { "+throughput_gbit_s", RECORD_SERIES, "Gbit/s", "sent per interval" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

static void pktgen_check(struct program *program, struct sim_error_list *errors)
{
    struct pktgen *pktgen = program->state;
    pktgen->program = program;
    pktgen->host = program_host(program, "host", pktgen->host_name, errors);
    if (pktgen->host == NULL)
        return;
    program_check_cores(program, pktgen->host,
                        &(struct program_cores){ .socket_key = "socket",
                                                 .first_key = "core",
                                                 .socket = pktgen->socket,
                                                 .first = pktgen->core,
                                                 .n = 1 },
                        errors);
    program_check_interface(program, "interface", pktgen->host, pktgen->interface, errors);
}

/* The packet: Ethernet, IPv4 and UDP headers to nobody, the rest a fragment of the same page. */
static struct sk_buff *make_packet(struct pktgen *pktgen)
{
    static const uint8_t nobody[NET_MAC_BYTES] = { 0x02, 0, 0, 0, 0xff, 0xff };
    struct kernel *kernel = pktgen->host->kernel;
    struct sk_buff *skb = skb_new(pktgen->host->net);
    struct k_page *page = k_page_alloc(kernel, K_NODE_LOCAL, 0);
    uint8_t header[HEADER_BYTES] = { 0 };
    unsigned ip_bytes = (unsigned)pktgen->packet_bytes - 14, udp_bytes = ip_bytes - 20;
    SIM_ASSERT(page != NULL, "no page for a packet");
    memcpy(header, nobody, NET_MAC_BYTES);
    memcpy(header + 6, pktgen->dev->mac.byte, NET_MAC_BYTES);
    header[12] = 0x08;
    header[14] = 0x45;
    header[16] = (uint8_t)(ip_bytes >> 8);
    header[17] = (uint8_t)ip_bytes;
    header[22] = 64;
    header[23] = 17;
    header[35] = header[37] = 9; /* the discard port, as pktgen's */
    header[38] = (uint8_t)(udp_bytes >> 8);
    header[39] = (uint8_t)udp_bytes;
    skb->head_bytes = HEADER_BYTES;
    skb->flow = (struct flow_key){ .protocol = 17, .source_port = 9, .destination_port = 9 };
    k_poke(kernel, skb->head, header, sizeof(header));
    skb->bytes = (uint32_t)pktgen->packet_bytes - HEADER_BYTES;
    k_touch_write(kernel, page->addr, skb->bytes); /* it has been filled once */
    skb->frag[skb->n_frags++] =
        (struct skb_frag){ .page = page, .bytes = skb->bytes, .node = (int8_t)page->node };
    return skb;
}

/* The one on whose queue this CPU sends; as pktgen does it, past the queueing discipline. */
static void pktgen_body(void *arg)
{
    struct pktgen *pktgen = arg;
    struct kernel *kernel = pktgen->host->kernel;
    const struct k_costs *costs = k_costs(kernel);
    struct sk_buff *skb = make_packet(pktgen);
    struct net_device *dev = pktgen->dev;
    int16_t own = dev->xps_queue[k_cpu(kernel)];
    uint16_t queue = own >= 0 ? (uint16_t)own : 0;
    while (!program_ending(pktgen->program)) {
        const uint64_t begin_ps = k_now_ps(kernel);
        k_compute(kernel, costs->pktgen_packet_cycles);
        skb->users++;   /* the driver lets go of it when it has been sent */
        skb->dev = dev; /* a team has made it one of its functions', with a queue of that one */
        skb->queue = queue;
        k_bh_disable(kernel);
        bool sent = !dev->queue_stopped[queue] && dev->ops->start_xmit(skb, dev) == NET_XMIT_OK;
        k_bh_enable(kernel);
        if (sent) {
            pktgen->packets += program_measuring(pktgen->program);
            program_operation_ended(pktgen->program, begin_ps);
        } else {
            skb_free(pktgen->host->net, skb);
            k_compute(kernel, SPIN_CYCLES);
        }
    }
    skb_free(pktgen->host->net, skb);
}

static void pktgen_start(struct program *program)
{
    struct pktgen *pktgen = program->state;
    unsigned cpu = program_cpu(pktgen->host, pktgen->socket, pktgen->core);
    pktgen->dev = network_interface(pktgen->host, pktgen->interface);
    program_uses_cpu(program, pktgen->host, cpu);
    k_thread_new(pktgen->host->kernel, "pktgen", (int)cpu, pktgen_body, pktgen);
}

static void pktgen_measure(struct program *program)
{
    ((struct pktgen *)program->state)->packets = 0;
}

static uint64_t pktgen_moved(const struct program *program)
{
    return ((const struct pktgen *)program->state)->packets;
}

static uint64_t pktgen_bytes(const struct program *program)
{
    const struct pktgen *pktgen = program->state;
    return pktgen->packets * pktgen->packet_bytes;
}

static const struct program_rate pktgen_rates[] = {
    { "throughput_gbit_s", 8e-9, pktgen_bytes, NULL },
    { NULL, 0, NULL, NULL },
};

static void pktgen_record(struct program *program, sim_time duration_ps)
{
    struct pktgen *pktgen = program->state;
    const double gbit_s = (double)(pktgen->packets * pktgen->packet_bytes) * 8000.0 /
                          (double)duration_ps;
    if (pktgen->packets != 0 && !program_has_measured(program, "packet"))
        return;
    program_metric(program, "throughput_gbit_s", "Gbit/s", gbit_s);
    program_counts_packets(program, PROGRAM_PACKETS_SENT);
}

const struct program_ops program_pktgen_ops = {
    .type = "pktgen",
    .help = "a kernel thread that sends one packet over and over",
    .steady = true,
    .state_bytes = sizeof(struct pktgen),
    .params = pktgen_params,
    .records = pktgen_records,
    .rates = pktgen_rates,
    .check = pktgen_check,
    .start = pktgen_start,
    .measure = pktgen_measure,
    .record = pktgen_record,
    .moved = pktgen_moved,
};
