/*
 * The inside of logic/net/: the stack, sockets, TCP's state, headers.
 *
 * Sockets are locked as in Linux. A thread that owns a socket (net_socket_lock) may sleep and be
 * interrupted; soft interrupts then put packets into the backlog and note other work (deferred),
 * which the owner does in net_socket_unlock(). A soft interrupt that finds the socket free takes a
 * spin lock (net_socket_spin) and never sleeps. All state of a socket changes under one or the
 * other lock, but for fields marked "atomic", which change in single steps without charging time.
 */
#ifndef LOGIC_NET_NET_INTERNAL_H
#define LOGIC_NET_NET_INTERNAL_H

#include "logic/kapi.h"
#include "logic/kcosts.h"
#include "logic/net/net.h"

#include <errno.h>
#include <string.h>

#define NET_FOREVER     UINT64_MAX
#define NET_CPUS_MAX    256u
#define NET_HASH_SLOTS  4096u
#define NET_GRO_HELD    8u   /* MAX_GRO_SKBS */
#define NET_PROTOCOLS   4u   /* beside IPv4 */
#define NET_SPIN_CYCLES 100u /* one read of a line that another CPU holds: an LLC hit and more */

#define NET_MIN(a, b) ((a) < (b) ? (a) : (b))
#define NET_MAX(a, b) ((a) > (b) ? (a) : (b))

/* Sizes by which Linux accounts memory of sockets, on x86-64. */
#define SKB_STRUCT_BYTES 256u /* SKB_DATA_ALIGN(sizeof(struct sk_buff)) */
#define SKB_SHARED_BYTES 320u /* SKB_DATA_ALIGN(sizeof(struct skb_shared_info)) */
#define MAX_TCP_HEADER   320u /* room for headers: L1_CACHE_ALIGN(128 + MAX_HEADER) */

/* Lines of a packet's object: four of the sk_buff and its shared information, then the headers. */
#define SKB_META_BYTES  256u
#define SKB_TOUCH_NEW   192u  /* cleared on allocation */
#define SKB_TOUCH_USE   64u   /* read on the way */
#define SKB_TRUESIZE    1280u /* sk_buff, shared information and headers' room on transmit */
#define SKB_TRUESIZE_RX SKB_STRUCT_BYTES /* sk_buff alone; the data lies in a driver's buffer */
#define SKB_RX_BUFFER   2048u            /* smallest buffer of a driver */

/* ---- Headers (ether.c) ----------------------------------------------------------------------- */

#define ETHER_BYTES          14u
#define IPV4_BYTES           20u
#define TCP_BYTES            20u
#define TCP_TIMESTAMP_BYTES  12u
#define TCP_SYN_OPTION_BYTES 20u
#define UDP_BYTES            8u
#define ETHER_TYPE_IPV4      0x0800u
#define PROTOCOL_TCP         6u
#define PROTOCOL_UDP         17u

#define TCP_FIN 0x01u
#define TCP_SYN 0x02u
#define TCP_RST 0x04u
#define TCP_PSH 0x08u
#define TCP_ACK 0x10u
#define TCP_URG 0x20u
#define TCP_CWR 0x80u

#define TCP_SACKS         4u /* of a header; beside time stamps three */
#define TCP_SACKS_SENT    3u
#define TCP_SACK_BYTES(n) (4u + 8u * (n)) /* with two NOPs in front */

struct tcp_sack {
    uint32_t from, to; /* the byte behind the last */
};
/* Beside time stamps, which every segment has. */
struct tcp_options {
    bool syn; /* mss, window_scale and sack_permitted count */
    bool sack_permitted;
    uint16_t mss;         /* 0: none given */
    uint8_t window_scale; /* UINT8_MAX: none given */
    uint8_t n_sacks;
    struct tcp_sack sack[TCP_SACKS];
};
/* Writes the headers of skb (flow: source is this side) to its head and sets head_bytes. options:
 * NULL: time stamps alone. */
void net_headers_build(struct kernel *kernel, struct sk_buff *skb, const struct net_mac *to,
                       const struct net_mac *from, const struct tcp_options *options);
/* Loads and parses the headers of a received packet into ether_type, flow and tcp_*. Cuts off bytes
 * behind the IP packet (padding of small frames). False: not for this host, malformed, or not IPv4
 * (ether_type says which; 0: the Ethernet header is not whole). */
bool net_headers_parse(struct kernel *kernel, struct sk_buff *skb);
/* Reads the options of a received SYN. */
void net_syn_options(struct kernel *kernel, const struct sk_buff *skb, struct tcp_options *options);
/* Reads the SACK blocks of a received segment that has some; returns their number. */
unsigned net_sack_blocks(struct kernel *kernel, const struct sk_buff *skb,
                         struct tcp_sack block[TCP_SACKS]);
void net_flow_reverse(const struct flow_key *flow, struct flow_key *reverse);

/* ---- TCP ------------------------------------------------------------------------------------- */

/* Serial numbers (RFC 793, 3.3). */
static inline bool tcp_before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}
static inline bool tcp_after(uint32_t a, uint32_t b)
{
    return tcp_before(b, a);
}

enum tcp_state {
    TCP_CLOSED,
    TCP_LISTEN,
    TCP_SYN_SENT,
    TCP_SYN_RECEIVED,
    TCP_ESTABLISHED,
    TCP_FIN_WAIT1,
    TCP_FIN_WAIT2,
    TCP_CLOSING,
    TCP_TIME_WAIT,
    TCP_CLOSE_WAIT,
    TCP_LAST_ACK,
};
/* DISORDER: something is out of order, or was sent again; not known yet to be a loss. */
enum tcp_congestion { TCP_CA_OPEN, TCP_CA_DISORDER, TCP_CA_RECOVERY, TCP_CA_LOSS };
enum tcp_pending {
    TCP_PENDING_NONE,
    TCP_PENDING_RTO,
    TCP_PENDING_LOSS_PROBE,
    TCP_PENDING_REORDER, /* the end of the time that a segment may be overtaken for (RACK) */
    TCP_PENDING_PROBE,   /* of a zero window */
    TCP_PENDING_END
};
enum tcp_nagle { TCP_NAGLE_ON, TCP_NAGLE_OFF, TCP_NAGLE_PUSH };

/* The scoreboard: what is known of a buffer that was sent (sk_buff.tcp_sacked). */
#define TCP_REORDERING        3u    /* sysctl_tcp_reordering */
#define TCP_TAG_SACKED        0x01u /* the other side has it, beyond a hole */
#define TCP_TAG_RETRANSMITTED 0x02u /* its repetition is on the way */
#define TCP_TAG_LOST          0x04u
#define TCP_TAG_EVER          0x80u /* was repeated once */

/* Congestion avoidance: tcp_cubic.c. Times in ms, round trips in ms times 8, as in Linux. */
struct tcp_cubic {
    uint32_t count;    /* segments acknowledged per segment that the window grows by */
    uint32_t last_max; /* window before the last reduction */
    uint32_t last_cwnd, last_ms;
    uint32_t origin;    /* where the cubic has its inflection */
    uint32_t k;         /* time to get there, 1/1024 s */
    uint32_t delay_min; /* 0: not known */
    uint32_t epoch_ms;  /* 0: to begin */
    uint32_t acked;
    uint32_t reno_cwnd;                                   /* what NewReno would have */
    uint32_t round_ms, round_end, last_ack_ms, round_rtt; /* HyStart */
    uint8_t n_samples;
    bool found;
};

struct tcp {
    enum tcp_state state;
    /* ---- sending ----------------------------------------------------------------------------- */
    uint32_t snd_una, snd_nxt, write_seq; /* oldest unacknowledged, next to send, next to queue */
    uint32_t snd_wnd, snd_wl1, max_window;
    uint32_t snd_sml;    /* end of the last segment that was smaller than the MSS (Minshall) */
    uint32_t pushed_seq; /* end of the data marked with PSH */
    uint32_t mss;        /* payload of a segment */
    uint32_t mss_clamp;  /* MSS of the peer, options included */
    uint8_t snd_scale, rcv_scale;
    struct sk_buff *head, *tail;         /* written, not acknowledged; by sequence number */
    struct sk_buff *unsent;              /* the first of them never sent; NULL: none */
    uint32_t packets_out;                /* segments sent and not acknowledged */
    uint32_t cwnd, ssthresh, cwnd_count; /* segments */
    uint32_t max_packets_out, max_packets_seq;
    bool cwnd_limited;
    enum tcp_congestion congestion;
    uint32_t recover; /* end of the data sent when the state was entered */
    struct tcp_cubic cubic;
    /* ---- the scoreboard: segments ------------------------------------------------------------ */
    bool sack_ok;
    uint32_t sacked_out, lost_out, retrans_out; /* sums of packets_out by tag */
    uint32_t delivered;                         /* acknowledged, by SACK or in order, ever */
    uint32_t highest_sack; /* where the highest buffer begins that is sacked; sacked_out 0: void */
    uint32_t reordering;   /* so many segments may overtake one that is not lost */
    /* ---- RACK: the segment sent last of those that have arrived ------------------------------ */
    uint64_t rack_sent_ps, rack_rtt_ps, min_rtt_ps;
    uint32_t rack_end;
    bool rack_advanced, rack_reordered;
    /* ---- a loss probe that repeats; proportional rate reduction; undoing --------------------- */
    bool probe_out;
    uint32_t probe_end; /* snd_nxt at the probe */
    uint32_t prior_cwnd, prr_delivered, prr_out;
    bool undo;              /* undo_from is valid */
    uint32_t undo_from;     /* snd_una when the window was reduced */
    int32_t undo_left;      /* repetitions not yet known to be superfluous; -1: none was sent yet */
    uint32_t undo_ssthresh; /* 0: not to be restored */
    uint32_t retransmit_ms; /* time stamp of the first repetition; 0: none */
    /* ---- round trips, timers ----------------------------------------------------------------- */
    uint64_t srtt_ps, rttvar_ps, rto_ps; /* srtt 0: no sample yet */
    uint64_t pacing_byte_s;
    unsigned backoff;
    enum tcp_pending pending;
    uint64_t timer_at_ps;  /* expiry of `pending` */
    uint64_t timer_set_ps; /* expiry of the kernel's timer: timer_at_ps or earlier */
    uint64_t last_send_ps;
    struct k_timer timer, ack_timer;
    /* ---- receiving --------------------------------------------------------------------------- */
    uint32_t rcv_nxt, rcv_wnd, rcv_wup; /* rcv_wup: rcv_nxt when the window was last advertised */
    uint32_t copied_seq;                /* next byte for the reader */
    uint32_t window_clamp, rcv_ssthresh;
    uint32_t rcv_mss; /* estimated MSS of the peer */
    uint32_t ts_recent;
    struct sk_buff *out_of_order; /* by sequence number */
    /* What is to be said of them, the youngest first; and of what came twice (RFC 2883). */
    struct tcp_sack sack[TCP_SACKS], duplicate;
    uint8_t n_sacks;
    bool duplicate_came;
    bool fin_received;
    /* ---- acknowledgements -------------------------------------------------------------------- */
    bool ack_scheduled, ack_pushed, ack_pushed2, ack_blocked, ping_pong;
    uint32_t quick;     /* acknowledgements still sent at once */
    uint64_t ack_at_ps; /* of the delayed one; 0: none */
    uint64_t last_receive_ps;
    bool any_received;
    /* ---- receive window autotuning ----------------------------------------------------------- */
    uint64_t rcv_rtt_us8, space_ps; /* times 8; start of the measurement */
    uint32_t space, space_seq;      /* bytes copied in one round trip; first sequence number */
    /* ---- listening --------------------------------------------------------------------------- */
    struct socket *listener; /* of a socket not accepted yet */
    struct socket *accept_first, *accept_last, *accept_next;
    unsigned n_accept;
};

/* ---- Sockets --------------------------------------------------------------------------------- */

/* The cache lines of a socket, grouped as in Linux. */
enum socket_line {
    SOCKET_LINE_LOOKUP,
    SOCKET_LINE_RX,
    SOCKET_LINE_ACK,
    SOCKET_LINE_TX,
    SOCKET_LINE_QUEUES,
    SOCKET_LINE_LOCK,
    SOCKET_LINES = 16
};

#define SOCKET_DEFER_TSQ   0x1u
#define SOCKET_DEFER_TIMER 0x2u
#define SOCKET_DEFER_ACK   0x4u

struct socket {
    struct net *net;
    struct kaddr lines;
    struct socket *hash_next, *next, *previous; /* of its slot; of all sockets */
    struct flow_key flow;                       /* of received packets; 0: wildcard */
    uint32_t hash;
    bool hashed, listening;
    unsigned refs; /* user, hash, packets at the device, soft interrupts; atomic */
    /* ---- lock -------------------------------------------------------------------------------- */
    bool owned, spinning; /* atomic */
    unsigned deferred;    /* SOCKET_DEFER_*; atomic */
    struct k_wait_queue lock_wait;
    struct sk_buff *backlog, *backlog_tail; /* atomic */
    uint32_t backlog_truesize;
    /* ---- waiting ----------------------------------------------------------------------------- */
    struct k_wait_queue readable, writable;
    int error; /* negative errno: the connection is gone */
    bool orphan, no_space;
    struct socket_set *set; /* atomic */
    void *set_data;
    struct socket *ready_next, *set_next;
    bool ready;
    bool space_came; /* since a non-blocking send found none; for the set */
    /* ---- route ------------------------------------------------------------------------------- */
    struct net_device *dev; /* packets leave through it; NULL: no route */
    struct net_mac to_mac;
    uint32_t route_generation;
    struct net_device *rx_dev; /* the last packet came in through it; atomic */
    uint32_t rx_hash;
    int tx_queue;
    /* ---- buffers ----------------------------------------------------------------------------- */
    uint32_t send_buffer, receive_buffer;
    uint32_t wmem_queued; /* of written, unacknowledged data */
    uint32_t wmem_alloc;  /* of packets at the device or in its queue; atomic */
    uint32_t rmem_alloc;
    struct k_page *fragment; /* the page that takes written data; NULL: none */
    uint32_t fragment_offset;
    struct sk_buff *rx_head, *rx_tail; /* received, in order; UDP: atomic */
    uint64_t bytes_received;           /* copied to the reader */
    struct sk_buff *cursor;            /* the part of rx_head to read next */
    unsigned cursor_frag;
    uint32_t cursor_offset;
    /* ---- small queues ------------------------------------------------------------------------ */
    bool throttled, tsq_queued; /* atomic */
    struct socket *tsq_next;
    uint64_t sequence; /* packets sent */
    struct tcp tcp;
};

static inline void net_socket_touch(struct socket *sk, enum socket_line line, unsigned lines)
{
    k_touch(net_kernel(sk->net), kaddr_add(sk->lines, (uint64_t)line * K_LINE_BYTES),
            (size_t)lines * K_LINE_BYTES);
}
static inline void net_socket_touch_write(struct socket *sk, enum socket_line line, unsigned lines)
{
    k_touch_write(net_kernel(sk->net), kaddr_add(sk->lines, (uint64_t)line * K_LINE_BYTES),
                  (size_t)lines * K_LINE_BYTES);
}

struct net_neighbour {
    uint32_t ip;
    struct net_mac mac;
};
struct net_route {
    uint32_t ip;
    struct net_device *dev;
};
struct net_queue_ref {
    struct net_device *dev;
    uint16_t queue;
};
struct net_protocol {
    uint16_t ether_type;
    net_protocol_fn *fn; /* NULL: free, as soon as nothing runs */
    void *arg;
    unsigned running; /* calls of fn */
};
/* Work of a CPU for the end of a poll. */
struct net_cpu {
    struct net *net;
    struct sk_buff *gro; /* held for merging, newest first */
    unsigned n_gro;
    struct socket *tsq, *tsq_tail;
    struct net_queue_ref wake[NET_QUEUES_MAX];
    unsigned n_wake;
    struct k_timer timer; /* for work noted outside of a poll */
};
struct net {
    struct kernel *kernel;
    const struct k_costs *costs;
    struct net_params params;
    struct net_stats stats;
    struct k_cache *skbs, *sockets;
    struct socket *hash[NET_HASH_SLOTS];
    struct socket *all;
    struct socket *dead; /* without a reference, to be freed from a thread */
    struct net_device *devices;
    struct arfs *arfs; /* NULL: switched off */
    struct net_neighbour *neighbours;
    struct net_route *routes;
    unsigned n_neighbours, n_routes;
    struct net_protocol protocol[NET_PROTOCOLS];
    uint32_t route_generation;
    uint16_t next_port;
    unsigned n_cpus;
    struct net_cpu cpu[]; /* n_cpus */
};

/* net.c */
struct socket *net_lookup(struct net *net, const struct flow_key *flow); /* exact, or wildcards */
bool net_socket_hash(struct socket *sk); /* false: that flow is taken */
void net_socket_unhash(struct socket *sk);
/* Updates device and neighbour of the socket. False: there is no route or no neighbour. */
bool net_route_socket(struct socket *sk);
struct net_device *net_route_find(struct net *net, uint32_t from_ip, uint32_t ip);
bool net_neighbour_find(const struct net *net, uint32_t ip, struct net_mac *mac);

/* socket.c */
struct socket *net_socket_new(struct net *net, uint8_t protocol); /* one reference */
static inline void net_socket_get(struct socket *sk)
{
    sk->refs++;
}
void net_socket_put(struct socket *sk);
void net_sockets_reap(struct net *net); /* from a thread */
void net_socket_lock(struct socket *sk);
void net_socket_unlock(struct socket *sk);
void net_socket_spin(struct socket *sk);
static inline void net_socket_unspin(struct socket *sk)
{
    sk->spinning = false;
}
void net_socket_readable(struct socket *sk); /* data, a connection, the end: wakes */
void net_socket_writable(struct socket *sk); /* room, after there was none: wakes */
bool net_socket_is_readable(const struct socket *sk);
/* Copies at most `bytes` from the cursor on; returns their number. */
uint32_t net_socket_copy(struct socket *sk, struct kaddr to, uint32_t bytes);
/* Removes and frees the head of the receive queue. */
void net_socket_eat(struct socket *sk);
/* Sets the cursor to the first unread byte of the head. */
void net_socket_cursor(struct socket *sk);
/* Appends at most `bytes` of user memory to skb's payload, in page fragments. Returns their number;
 * 0: skb is full; -ENOMEM. */
int64_t net_append(struct socket *sk, struct sk_buff *skb, struct kaddr from, uint32_t bytes);
/* Removes the socket from its set. */
void net_set_leave(struct socket *sk);

/* skb.c */
/* Returns a copy of the payload's bytes [skip, skip + bytes) for the device. The original keeps the
 * references to the pages. */
struct sk_buff *net_skb_share(struct net *net, struct sk_buff *original, uint32_t skip,
                              uint32_t bytes);
/* Moves the payload of skb from `at` on to a new packet, which it returns. */
struct sk_buff *net_skb_split(struct net *net, struct sk_buff *skb, uint32_t at);
/* Sends skb, whose header fields are set, for the socket; charged to it until freed. */
void net_socket_xmit(struct socket *sk, struct sk_buff *skb, const struct tcp_options *options);

/* netdev.c */
/* Passes up a packet whose headers are not those of IPv4; false: nobody takes it. */
bool net_protocol_deliver(struct net *net, struct sk_buff *skb);
void net_deliver(struct net *net, struct sk_buff *skb); /* passes up a parsed packet */
/* Whether the checksum of a packet, not merged, is right; reads the payload if the device has not
 * verified it. */
bool net_checksum_right(struct net *net, struct sk_buff *skb);
void net_cpu_later(struct net *net); /* arranges for work at the end of a poll */
void net_run_queues(struct net *net, struct net_cpu *cpu);

/* udp.c */
void udp_receive(struct net *net, struct sk_buff *skb);
int64_t udp_send(struct socket *sk, struct kaddr from, size_t bytes);
int64_t udp_recv(struct socket *sk, struct kaddr to, size_t bytes, bool wait);
void udp_freed(struct socket *sk); /* a packet left the device */

/* tcp.c: connections */
void tcp_receive(struct net *net, struct sk_buff *skb);
void tcp_process(struct socket *sk, struct sk_buff *skb); /* locked */
void tcp_release(struct socket *sk);
void tcp_done(struct socket *sk, int error); /* the connection is gone */
void tcp_time_wait(struct socket *sk);
void tcp_close(struct socket *sk);
void tcp_deferred(struct socket *sk, unsigned what);
bool tcp_can_send(const struct tcp *tp);
uint32_t tcp_now_ms(struct net *net);

/* tcp_user.c: calls of threads */
int64_t tcp_send(struct socket *sk, struct kaddr from, const struct skb_frag *frags, size_t bytes,
                 bool wait);
int64_t tcp_recv(struct socket *sk, struct kaddr to, size_t bytes, bool wait);

/* tcp_input.c */
void tcp_established(struct socket *sk, struct sk_buff *skb);
void tcp_init_transfer(struct socket *sk, const struct tcp_options *options);
void tcp_clean(struct socket *sk); /* frees all data, written and received */

/* tcp_ack.c: processes an acknowledgement at the sender. False: it is not valid. */
bool tcp_ack(struct socket *sk, const struct sk_buff *skb);
void tcp_new_space(struct socket *sk);
void tcp_sndbuf_expand(struct socket *sk); /* to fit the congestion window */
void tcp_rtt_sample(struct socket *sk, uint64_t rtt_ps);

/* tcp_sack.c: at the receiver. Without sack_ok they do nothing. */
void tcp_sack_add(struct tcp *tp, uint32_t from, uint32_t to); /* came too early */
void tcp_sack_remove(struct tcp *tp);                          /* rcv_nxt has moved */
void tcp_sack_duplicate(struct tcp *tp, uint32_t from, uint32_t to);
/* Fills in the blocks to be sent with an acknowledgement; false: there are none. */
bool tcp_sack_options(struct tcp *tp, struct tcp_options *options);

/* What an acknowledgement brought. */
struct tcp_acked {
    uint32_t segments;                        /* acknowledged in order */
    uint64_t first_ps, last_ps;               /* when those never repeated were sent; 0: none */
    uint64_t sacked_first_ps, sacked_last_ps; /* the same of newly sacked ones */
    uint32_t tsecr;
    bool advanced;           /* snd_una has moved */
    bool duplicate;          /* nothing new, no data, no window */
    bool sacked;             /* something newly sacked */
    bool dsacked;            /* something arrived twice */
    bool retransmitted;      /* something that had been repeated is acknowledged */
    bool lost_again;         /* repetitions were found lost */
    bool disorder;           /* something arrived later than what was sent behind it: */
    uint32_t disorder_seq;   /* the lowest */
    bool sacked_before;      /* something was sacked already: */
    uint32_t highest_before; /* tcp.highest_sack */
};
/* At the sender: tags what the blocks of `ack` name. */
void tcp_sack_tag(struct socket *sk, const struct sk_buff *ack, uint32_t una_before,
                  struct tcp_acked *acked);
/* Cuts a buffer that was sent at a border of segments. `bytes`: of its payload. */
void tcp_cut(struct socket *sk, struct sk_buff *skb, uint32_t bytes);

/* tcp_recovery.c: what is lost, and what then. */
static inline uint32_t tcp_in_flight(const struct tcp *tp)
{
    return tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
}
/* The first byte not acknowledged of a buffer. */
static inline uint32_t tcp_first_seq(const struct sk_buff *skb)
{
    return skb->tcp_seq + skb->skip_bytes;
}
void tcp_rack_advance(struct socket *sk, const struct sk_buff *skb);
/* What begins at seq was overtaken by what begins at `highest`. */
void tcp_reordered(struct tcp *tp, uint32_t seq, uint32_t highest);
/* Acts on an acknowledgement that is not ordinary. True: what is lost may be sent again. */
bool tcp_alert(struct socket *sk, struct tcp_acked *acked);
void tcp_probe_acked(struct socket *sk, uint32_t ack, const struct tcp_acked *acked);
void tcp_cwnd_reduction(struct tcp *tp, uint32_t delivered, const struct tcp_acked *acked);
/* tp->backoff: time-outs since the last acknowledged data. */
void tcp_enter_loss(struct socket *sk);
void tcp_reorder_expired(struct socket *sk);
void tcp_loss_probe_expired(struct socket *sk);
/* Sets the timer for a loss probe; false: none is due. */
bool tcp_schedule_loss_probe(struct socket *sk);
void tcp_rearm_rto(struct socket *sk);
/* Repeats what is lost, as the window allows. */
void tcp_retransmit_lost(struct socket *sk);

/* tcp_output.c */
static inline uint32_t tcp_end_seq(const struct sk_buff *skb)
{
    return skb->tcp_seq + skb->bytes + (skb->tcp_flags & TCP_FIN ? 1 : 0);
}
uint32_t tcp_segments(const struct tcp *tp, const struct sk_buff *skb);
uint32_t tcp_size_goal(const struct socket *sk);
void tcp_queue(struct socket *sk, struct sk_buff *skb); /* appends to the written data */
/* Sends what window, congestion window, Nagle and small queues allow. */
void tcp_push_pending(struct socket *sk, enum tcp_nagle nagle);
void tcp_push_one(struct socket *sk);
void tcp_small_queue_write(struct socket *sk);
void tcp_send_ack(struct socket *sk);
void tcp_send_fin(struct socket *sk);
void tcp_send_reset(struct socket *sk);
void tcp_send_syn(struct socket *sk); /* SYN, or SYN with ACK, by state */
void tcp_send_probe(struct socket *sk);
/* Sends one buffer of new data, past the congestion window; false: the other side's does not take
 * it. */
bool tcp_send_new_probe(struct socket *sk);
/* Repeats at most so many segments of a buffer; a probe's repetition is not counted. False: a copy
 * of it is at the device still, or the window does not take it. */
bool tcp_retransmit(struct socket *sk, struct sk_buff *skb, uint32_t segments, bool probe);
uint32_t tcp_burst_segments(const struct socket *sk); /* of one buffer for the device */
bool tcp_small_queue_full(struct socket *sk, const struct sk_buff *skb, unsigned shift);
/* To a packet that no connection has a place for; none to a reset. */
void tcp_reply_reset(struct net *net, const struct sk_buff *skb);

/* tcp_window.c: the receive window */
uint32_t tcp_receive_window(const struct tcp *tp);
uint16_t tcp_select_window(struct socket *sk); /* for a header: scaled */
void tcp_rcv_space_adjust(struct socket *sk);
void tcp_event_data(struct socket *sk, const struct sk_buff *skb);
void tcp_ack_check(struct socket *sk);
void tcp_cleanup_receive(struct socket *sk, uint32_t copied);
void tcp_quick_ack(struct socket *sk);

/* tcp_timer.c */
void tcp_timers_init(struct socket *sk);
void tcp_timer_arm(struct socket *sk, enum tcp_pending what, uint64_t at_ps);
void tcp_timer_stop(struct socket *sk);
void tcp_ack_later(struct socket *sk, uint64_t at_ps);
void tcp_timer_run(struct socket *sk);
void tcp_ack_timer_run(struct socket *sk);
uint64_t tcp_rto(const struct tcp *tp); /* with back-off */

/* tcp_cubic.c */
void tcp_cubic_reset(struct socket *sk);
uint32_t tcp_cubic_ssthresh(struct tcp *tp);
void tcp_cubic_resume(struct socket *sk); /* before data is sent with nothing in flight */
void tcp_cubic_sample(struct socket *sk, uint64_t rtt_ps);
void tcp_cubic_avoid(struct socket *sk, uint32_t ack, uint32_t acked);

#endif
