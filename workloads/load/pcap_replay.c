/*
 * pcap_replay: a kernel thread that hands the frames of a capture (pcap or pcapng) to a NIC, each
 * when it is due, past the queueing discipline, as pktgen does. Ethernet, IP and transport headers
 * are those of the file, but for the two MAC addresses, which are those of the hosts: the receiving
 * NIC steers, splits and completes by them. No socket waits for the frames: the receiving stack
 * drops them once it has parsed them, and answers TCP with resets, as a host without these
 * connections. Bytes of the payload are not carried, and connections of the capture do not react to
 * the simulated network.
 */
#include <string.h>

#include "sim/trace/pcap_read.h"
#include "workloads/programs/program.h"

#define ETHER_BYTES     14u
#define IPV4_BYTES      20u /* without options: others go as frames of no known protocol */
#define UDP_BYTES       8u
#define TCP_BYTES_MIN   20u
#define OTHER_BYTES     60u /* inline of a frame of another protocol */
#define FRAME_BYTES_MIN 60u
#define SPIN_CYCLES     100u
#define SLEEP_FROM_PS   (40 * SIM_PS_PER_US) /* a wait that is slept, but for its end */
#define AWAKE_PS        (20 * SIM_PS_PER_US)

struct pcap_replay {
    /* parameters */
    const char *host_name, *interface, *to_name, *to_interface, *file, *source_ip;
    uint32_t socket, core;
    double speed_ratio;
    bool repeat;
    /* running */
    struct program *program;
    struct network_host *host, *to; /* to: NULL: nobody */
    struct pcap_capture *capture;
    struct net_device *dev;
    struct net_mac to_mac;
    /* measured */
    uint64_t frames, bytes, late_ps;
};

static const struct param_desc pcap_replay_params[] = {
    PARAM_TEXT("host", struct pcap_replay, host_name, "client", "the host that sends"),
    PARAM_TEXT("interface", struct pcap_replay, interface, "", "of the host; empty: its default"),
    PARAM_TEXT("to", struct pcap_replay, to_name, "server",
               "the host whose NIC the frames are for; empty: nobody's"),
    PARAM_TEXT("to_interface", struct pcap_replay, to_interface, "", "of it; empty: its default"),
    PARAM_TEXT("file", struct pcap_replay, file, "",
               "a capture, pcap or pcapng; relative to the file that says so"),
    PARAM_TEXT("source_ip", struct pcap_replay, source_ip, "",
               "only frames with this IPv4 source; empty: all"),
    PARAM("socket", PARAM_U32, struct pcap_replay, socket, 0, 0, 7, PROV_NONE, "", "of the thread"),
    PARAM("core", PARAM_U32, struct pcap_replay, core, 0, 0, 63, PROV_NONE, "", "of the socket"),
    PARAM("speed_ratio", PARAM_DOUBLE, struct pcap_replay, speed_ratio, 1.0, 0.001, 1000000.0,
          PROV_NONE, "", "2: the times between frames are half of those of the file"),
    PARAM("repeat", PARAM_BOOL, struct pcap_replay, repeat, 0, 0, 1, PROV_NONE, "",
          "from the beginning again, until the measurement ends"),
    { .type = PARAM_END },
};

static const struct record_desc pcap_replay_records[] = {
    { "+throughput_gbit_s", RECORD_METRIC, "Gbit/s", "frames sent, Ethernet header included" },
    { "replayed_frames", RECORD_METRIC, "1", "frames that were handed to the NIC" },
    { "late_max_us", RECORD_METRIC, "us",
      "the most that a frame was handed over after it was due" },
    { "+throughput_gbit_s", RECORD_SERIES, "Gbit/s", "sent per interval" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

/* ---- Checking -------------------------------------------------------------------------------- */

static uint32_t get32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static bool is_ipv4(const struct pcap_frame *frame)
{
    return frame->bytes >= ETHER_BYTES + IPV4_BYTES && frame->data[12] == 0x08 &&
           frame->data[13] == 0x00;
}

/* What is inline in the NIC's WQE: the headers. */
static unsigned head_bytes_of(const struct pcap_frame *frame)
{
    const uint8_t *ip = frame->data + ETHER_BYTES, *l4 = ip + IPV4_BYTES;
    const unsigned l4_at = ETHER_BYTES + IPV4_BYTES;
    unsigned bytes = OTHER_BYTES;
    if (is_ipv4(frame) && ip[0] == 0x45 && ip[9] == 17)
        bytes = l4_at + UDP_BYTES;
    else if (is_ipv4(frame) && ip[0] == 0x45 && ip[9] == 6 && frame->bytes > l4_at + 12)
        bytes = l4_at + SIM_MAX((unsigned)(l4[12] >> 4) * 4, TCP_BYTES_MIN);
    return SIM_MIN(bytes, SIM_MAX(frame->wire_bytes, FRAME_BYTES_MIN));
}

/* "10.0.0.1"; false: it is none. */
static bool parse_ip(const char *text, uint32_t *ip)
{
    unsigned part[4];
    char more;
    *ip = 0;
    if (sscanf(text, "%3u.%3u.%3u.%3u%c", &part[0], &part[1], &part[2], &part[3], &more) != 4)
        return false;
    for (unsigned i = 0; i < 4; i++) {
        if (part[i] > 255)
            return false;
        *ip = *ip << 8 | part[i];
    }
    return true;
}

static void file_mistake(struct pcap_replay *replay, struct sim_error_list *errors, const char *fmt,
                         ...) __attribute__((format(printf, 3, 4), cold));
static void file_mistake(struct pcap_replay *replay, struct sim_error_list *errors, const char *fmt,
                         ...)
{
    va_list arguments;
    va_start(arguments, fmt);
    g_autofree char *expected = g_strdup_vprintf(fmt, arguments);
    va_end(arguments);
    program_mistake(replay->program, "file", errors, expected, NULL);
}

/* Leaves the frames of one source. */
static void keep_source(struct pcap_capture *capture, uint32_t ip)
{
    guint n = 0;
    for (guint i = 0; i < capture->frames->len; i++) {
        const struct pcap_frame frame = g_array_index(capture->frames, struct pcap_frame, i);
        if (is_ipv4(&frame) && get32(frame.data + ETHER_BYTES + 12) == ip)
            g_array_index(capture->frames, struct pcap_frame, n++) = frame;
    }
    g_array_set_size(capture->frames, n);
}

static bool check_frames(struct pcap_replay *replay, struct sim_error_list *errors)
{
    const GArray *frames = replay->capture->frames;
    const uint32_t mtu = replay->host->params.mtu_bytes;
    if (frames->len == 0) {
        file_mistake(replay, errors, "a capture with frames%s%s",
                     *replay->source_ip != '\0' ? " of source_ip " : "", replay->source_ip);
        return false;
    }
    for (guint i = 0; i < frames->len; i++) {
        const struct pcap_frame *frame = &g_array_index(frames, struct pcap_frame, i);
        if (frame->wire_bytes > ETHER_BYTES + mtu) {
            file_mistake(replay, errors,
                         "frames of at most %u bytes, as mtu_bytes of %s says: one has %u "
                         "(captured with segmentation offload on: ethtool -K IFACE tso off gso off "
                         "gro off lro off)",
                         ETHER_BYTES + mtu, replay->host->name, frame->wire_bytes);
            return false;
        }
        if (frame->bytes < SIM_MIN(head_bytes_of(frame), frame->wire_bytes)) {
            file_mistake(replay, errors, "whole headers: of a frame %u bytes are kept (tcpdump -s)",
                         frame->bytes);
            return false;
        }
    }
    return true;
}

/* What the file says is a part of the configuration. */
static void note_contents(struct pcap_replay *replay, struct sim_error_list *errors)
{
    struct program *program = replay->program;
    g_autofree char *hash = g_compute_checksum_for_data(
        G_CHECKSUM_SHA256, (const guchar *)replay->capture->contents, replay->capture->n_bytes);
    g_autofree char *path = g_strconcat(config_path(program->group), ".file_sha256", NULL);
    g_autofree char *text = g_strdup_printf("\"%s\"", hash);
    config_set(program->workload->config, path, text, "the capture", errors);
    config_get(program->group, "file_sha256");
}

static void read_capture(struct pcap_replay *replay, struct sim_error_list *errors)
{
    const struct config_node *node = config_find(replay->program->group, "file");
    const char *from = node != NULL ? config_file(node) : "--set";
    g_autofree char *message = NULL;
    uint32_t ip = 0;
    if (*replay->file == '\0') {
        file_mistake(replay, errors, "a capture, pcap or pcapng");
        return;
    }
    g_autofree char *folder = strcmp(from, "--set") == 0 ? g_strdup(".") : g_path_get_dirname(from);
    g_autofree char *path = g_path_is_absolute(replay->file)
                                ? g_strdup(replay->file)
                                : g_build_filename(folder, replay->file, NULL);
    replay->capture = pcap_read(path, &message);
    if (replay->capture == NULL) {
        file_mistake(replay, errors, "a capture, pcap or pcapng: %s", message);
        return;
    }
    if (*replay->source_ip != '\0' && !parse_ip(replay->source_ip, &ip)) {
        program_mistake(replay->program, "source_ip", errors, "an IPv4 address, \"10.0.0.1\"",
                        NULL);
        return;
    }
    if (*replay->source_ip != '\0')
        keep_source(replay->capture, ip);
    if (check_frames(replay, errors))
        note_contents(replay, errors);
}

static void pcap_replay_check(struct program *program, struct sim_error_list *errors)
{
    struct pcap_replay *replay = program->state;
    replay->program = program;
    replay->host = program_host(program, "host", replay->host_name, errors);
    if (*replay->to_name != '\0') {
        replay->to = program_host(program, "to", replay->to_name, errors);
        if (replay->to != NULL)
            program_check_interface(program, "to_interface", replay->to, replay->to_interface,
                                    errors);
        if (replay->to != NULL && replay->to == replay->host)
            program_mistake(program, "to", errors, "another host than `host`", NULL);
    }
    if (replay->host == NULL)
        return;
    program_check_cores(program, replay->host,
                        &(struct program_cores){ .socket_key = "socket",
                                                 .first_key = "core",
                                                 .socket = replay->socket,
                                                 .first = replay->core,
                                                 .n = 1 },
                        errors);
    program_check_interface(program, "interface", replay->host, replay->interface, errors);
    read_capture(replay, errors);
}

/* ---- Sending --------------------------------------------------------------------------------- */

static bool add_payload(struct pcap_replay *replay, struct sk_buff *skb, uint32_t bytes)
{
    struct kernel *kernel = replay->host->kernel;
    for (uint32_t at = 0; at < bytes; at += K_PAGE_BYTES) {
        struct k_page *page = k_page_alloc(kernel, K_NODE_LOCAL, 0);
        if (page == NULL)
            return false;
        skb->frag[skb->n_frags++] = (struct skb_frag){ .page = page,
                                                       .bytes = SIM_MIN(bytes - at, K_PAGE_BYTES),
                                                       .node = (int8_t)page->node };
    }
    skb->bytes = bytes;
    return true;
}

/* NULL: no memory. */
static struct sk_buff *make_frame(struct pcap_replay *replay, const struct pcap_frame *frame)
{
    static const uint8_t nobody[NET_MAC_BYTES] = { 0x02, 0, 0, 0, 0xff, 0xff };
    struct kernel *kernel = replay->host->kernel;
    struct sk_buff *skb = skb_new(replay->host->net);
    uint8_t header[NET_HEADER_BYTES] = { 0 };
    const unsigned head = head_bytes_of(frame);
    const uint32_t whole = SIM_MAX(frame->wire_bytes, FRAME_BYTES_MIN);
    memcpy(header, frame->data, SIM_MIN(head, frame->bytes));
    memcpy(header, replay->to != NULL ? replay->to_mac.byte : nobody, NET_MAC_BYTES);
    memcpy(header + NET_MAC_BYTES, replay->dev->mac.byte, NET_MAC_BYTES);
    skb->head_bytes = (uint16_t)head;
    skb->gso_segments = 1;
    k_store(kernel, skb->head, header, head);
    if (add_payload(replay, skb, whole - head))
        return skb;
    skb_free(replay->host->net, skb);
    return NULL;
}

/* As pktgen does; false: the measurement has ended. */
static bool send_frame(struct pcap_replay *replay, struct sk_buff *skb)
{
    struct kernel *kernel = replay->host->kernel;
    struct net_device *dev = replay->dev;
    while (!program_ending(replay->program)) {
        const int16_t own = dev->xps_queue[k_cpu(kernel)];
        const uint16_t queue = own >= 0 ? (uint16_t)own : 0;
        skb->dev = dev; /* a team has made it one of its functions' */
        skb->queue = queue;
        k_bh_disable(kernel);
        const bool sent = !dev->queue_stopped[queue] &&
                          dev->ops->start_xmit(skb, dev) == NET_XMIT_OK;
        k_bh_enable(kernel);
        if (sent)
            return true;
        k_compute(kernel, SPIN_CYCLES);
    }
    skb_free(replay->host->net, skb);
    return false;
}

static void wait_until(struct kernel *kernel, uint64_t due_ps)
{
    uint64_t now_ps = k_now_ps(kernel);
    if (due_ps > now_ps + SLEEP_FROM_PS)
        k_sleep(kernel, due_ps - now_ps - AWAKE_PS);
    while (k_now_ps(kernel) < due_ps)
        k_compute(kernel, SPIN_CYCLES);
}

/* Once through the file; false: the measurement has ended, or memory. */
static bool replay_once(struct pcap_replay *replay)
{
    struct kernel *kernel = replay->host->kernel;
    const struct k_costs *costs = k_costs(kernel);
    const GArray *frames = replay->capture->frames;
    const uint64_t begin_ps = k_now_ps(kernel);
    const sim_time first_ps = g_array_index(frames, struct pcap_frame, 0).at_ps;
    for (guint i = 0; i < frames->len; i++) {
        const struct pcap_frame *frame = &g_array_index(frames, struct pcap_frame, i);
        const sim_time since_ps = frame->at_ps > first_ps ? frame->at_ps - first_ps : 0;
        const uint64_t due_ps = begin_ps + (uint64_t)((double)since_ps / replay->speed_ratio);
        wait_until(kernel, due_ps);
        if (program_ending(replay->program))
            return false;
        const uint64_t frame_begin_ps = k_now_ps(kernel);
        struct sk_buff *skb = make_frame(replay, frame);
        if (skb == NULL) {
            program_fail(replay->program, "no memory left for a frame");
            return false;
        }
        k_compute(kernel, costs->pktgen_packet_cycles);
        const uint64_t late_ps = k_now_ps(kernel) - due_ps;
        if (!send_frame(replay, skb))
            return false;
        if (program_measuring(replay->program)) {
            replay->frames++;
            replay->bytes += SIM_MAX(frame->wire_bytes, FRAME_BYTES_MIN);
            replay->late_ps = SIM_MAX(replay->late_ps, late_ps);
        }
        program_operation_ended(replay->program, frame_begin_ps);
    }
    return true;
}

static void pcap_replay_body(void *arg)
{
    struct pcap_replay *replay = arg;
    while (replay_once(replay) && replay->repeat)
        ;
    if (!replay->repeat)
        program_finish(replay->program);
}

static void pcap_replay_start(struct program *program)
{
    struct pcap_replay *replay = program->state;
    const unsigned cpu = program_cpu(replay->host, replay->socket, replay->core);
    replay->dev = network_interface(replay->host, replay->interface);
    if (replay->to != NULL)
        replay->to_mac = network_interface(replay->to, replay->to_interface)->mac;
    program->finite = !replay->repeat;
    program_uses_cpu(program, replay->host, cpu);
    k_thread_new(replay->host->kernel, "pcap_replay", (int)cpu, pcap_replay_body, replay);
}

static void pcap_replay_measure(struct program *program)
{
    struct pcap_replay *replay = program->state;
    replay->frames = replay->bytes = replay->late_ps = 0;
}

static uint64_t pcap_replay_moved(const struct program *program)
{
    return ((const struct pcap_replay *)program->state)->frames;
}

static uint64_t pcap_replay_bytes(const struct program *program)
{
    return ((const struct pcap_replay *)program->state)->bytes;
}

static const struct program_rate pcap_replay_rates[] = {
    { "throughput_gbit_s", 8e-9, pcap_replay_bytes, NULL },
    { NULL, 0, NULL, NULL },
};

static void pcap_replay_record(struct program *program, sim_time duration_ps)
{
    const struct pcap_replay *replay = program->state;
    if (!program_has_measured(program, "frame"))
        return;
    program_metric(program, "throughput_gbit_s", "Gbit/s",
                   (double)replay->bytes * 8000.0 / (double)duration_ps);
    program_metric(program, "replayed_frames", "1", (double)replay->frames);
    program_metric(program, "late_max_us", "us", (double)replay->late_ps / 1e6);
    program_counts_packets(program, PROGRAM_PACKETS_SENT);
}

static void pcap_replay_release(struct program *program)
{
    struct pcap_replay *replay = program->state;
    pcap_free(replay->capture);
}

const struct program_ops program_pcap_replay_ops = {
    .type = "pcap_replay",
    .help = "a kernel thread that sends the frames of a capture",
    .steady = false, /* the file says how it goes on */
    .state_bytes = sizeof(struct pcap_replay),
    .params = pcap_replay_params,
    .records = pcap_replay_records,
    .rates = pcap_replay_rates,
    .check = pcap_replay_check,
    .start = pcap_replay_start,
    .measure = pcap_replay_measure,
    .record = pcap_replay_record,
    .moved = pcap_replay_moved,
    .release = pcap_replay_release,
};
