/*
 * Programs: what runs on the simulated hosts side by side. The workload "programs" boots a kernel
 * on every host of the groups `network` and `lending` (workloads/setup/network.h, lending.h), has
 * devices borrowed and interfaces up, starts each program of the group `programs`, lets them warm
 * up, measures them together, and has each record its metrics.
 */
#ifndef WORKLOADS_PROGRAMS_PROGRAM_H
#define WORKLOADS_PROGRAMS_PROGRAM_H

#include "workloads/base/workload.h"
#include "workloads/setup/lending.h"
#include "workloads/setup/network.h"

struct programs;

#define PROGRAM_SHARES_MAX 96u
#define PROGRAM_CPUS_MAX   32u

struct program {
    const struct program_ops *ops;
    const struct record_desc *records; /* ops->records, unless check() sets others */
    const char *name;                  /* of its group below `programs` */
    struct config_node *group;
    struct programs *all;
    struct workload *workload;
    struct network *network;
    struct lending *lending; /* NULL: the scenario has no such group */
    void *state;             /* ops->state_bytes, params read into it */
    bool enabled;            /* false: it is checked only */
    bool finite; /* set by start(): it ends by itself; the measurement ends with the last of them */
    bool closing;  /* set and cleared by its threads: it still has what it must give back */
    bool own_time; /* set by check(): its rates are over a time of its own, and do not add up */
    bool finished;
    /* Set by check(): it does something at a set time, of which all around is simulated; with
     * event_ps workload_simulated_ps() says when. */
    bool eventful;
    sim_time event_ps;                  /* of the measurement; 0: none */
    bool has_whole;                     /* an operation began and ended while it was measured */
    unsigned n_connecting;              /* connections of it that are being made */
    unsigned n_connected_late;          /* that were made while it was measured */
    struct stat_histogram histogram_ps; /* of what is measured; empty when measure() is called */
    double n_at[SETTLE_PARTS + 1], sum_at[SETTLE_PARTS + 1]; /* of it, at the ends of equal parts */
    void **owned;                                            /* program_zalloc() */
    unsigned n_owned;
    struct program_share { /* program_take() */
        const void *of;
        const char *what;
        uint64_t n;
    } share[PROGRAM_SHARES_MAX];
    unsigned n_shares;
    struct program_cpus { /* program_check_cpus(), program_take_spinning_cpu() */
        const struct lending_host *host;
        unsigned first, n;
        bool spins;
    } cpus[PROGRAM_CPUS_MAX];
    unsigned n_cpus;
};

/* A series of measure.sample_interval_us, like struct rate_series. */
struct program_rate {
    const char *name; /* of its record, without the mark */
    double scale;
    uint64_t (*count)(const struct program *program);
    uint64_t (*of)(const struct program *program); /* NULL: a rate; else a mean of so many */
};

struct program_ops {
    const char *type; /* "netperf" */
    const char *help;
    bool steady; /* it goes on alike until it is told to end: once its rates are known
                    (measure.precision_ratio), the measurement may end */
    size_t state_bytes;
    const struct param_desc *params;
    /* What record() records, each as "<program>.<name>". What only one of the programs that run
     * declares has its bare name, too. A name that begins with "+" is a rate over the common
     * measured time, or a count: its bare name is the sum over all programs that declare it, unless
     * one of them declares it without "+" or has own_time. One that begins with "." has no bare
     * name. The marks are no part of the names. */
    const struct record_desc *records;
    /* What of them are series over the common measured time; the last one has no name. NULL: none.
     * Those that one bare name sums up have one scale, and no `of`. */
    const struct program_rate *rates;
    bool samples; /* its series are those that it records itself each sample_interval_us */
    /* Resolves references, checks settings against each other; mistakes go to errors. */
    void (*check)(struct program *program, struct sim_error_list *errors);
    /* Hosts are booted, interfaces are up: makes its threads. */
    void (*start)(struct program *program);
    /* The warm-up is over: what was counted until now does not count. May be NULL. */
    void (*measure)(struct program *program);
    void (*record)(struct program *program, sim_time duration_ps);
    /* Bytes or operations until now, of which record() tells the rate; may be NULL. */
    uint64_t (*moved)(const struct program *program);
    /* Frees what is not program_zalloc()ed; may be NULL. */
    void (*release)(struct program *program);
};
extern const struct program_ops program_netperf_ops, program_netperf_rr_ops, program_sockperf_ops,
    program_pktgen_ops, program_sendfile_ops, program_memcached_ops, program_stream_ops,
    program_stream_run_ops, program_pagerank_ops, program_training_ops, program_bandwidth_test_ops,
    program_cold_migration_ops, program_ping_pong_ops, program_device_dma_ops,
    program_borrow_limit_ops, program_device_taken_ops, program_ntb_dma_ops,
    program_ntb_latency_ops, program_ntb_stores_ops, program_rdma_perf_ops, program_gpu_storage_ops,
    program_iperf_ops, program_pcap_replay_ops, program_nvme_multicast_ops,
    program_nvmeof_target_ops, program_fault_ops;

/* ---- For programs ---------------------------------------------------------------------------- */
/* Between measure() and record(). */
bool program_measuring(const struct program *program);
/* [thread] Until the measurement begins: for programs that end by themselves, whose work is
 * measured as a whole. False: the run ends before. */
bool program_await_measurement(const struct program *program, struct kernel *kernel);
/* Zeroed memory that is freed with the program. */
void *program_zalloc(struct program *program, size_t n, size_t bytes);
/* Likewise, of sizes that settings choose: NULL if there is none; the run fails. */
void *program_zalloc_large(struct program *program, size_t n, size_t bytes);
/* Sorts n numbers, at least one, and returns their median. */
double program_sort(double *value, size_t n);
/* The program has ended by itself, at the time of the calling task. */
void program_finish(struct program *program);
/* Fails the run with this text once the hosts have been shut down; later calls are ignored. */
void program_fail(struct program *program, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), cold));
/* In check(): the i-th enabled program that precedes this one in the scenario; NULL: there are
 * fewer. */
const struct program *program_earlier(const struct program *program, unsigned i);
/* In check(): takes n things of a kind (`what`, a text that stays) that `of`, a host or a device,
 * has: copy engines, blocks. Returns the number of those that programs before this one have taken,
 * which is that of the first of these. One that is left out takes nothing. */
uint64_t program_take(struct program *program, const void *of, const char *what, uint64_t n);
/* In check(): the program takes so much memory of this socket (of the only node, where memory is
 * one); a mistake with its setting `key` if programs take more than there is. */
void program_check_memory(struct program *program, const char *key, const struct network_host *host,
                          unsigned socket, uint64_t bytes, struct sim_error_list *errors);
/* Like workload_mistake(). */
void program_mistake(struct program *program, const char *key, struct sim_error_list *errors,
                     const char *expected, const char *const *names);
/* The host of the network with this name; a mistake with its setting `key` if there is none.
 * NULL, too, if a mistake in its group leaves open what it is; so for what follows. */
struct network_host *program_host(struct program *program, const char *key, const char *name,
                                  struct sim_error_list *errors);
/* Likewise, the host of the group `lending` with this name. */
struct lending_host *program_lending_host(struct program *program, const char *key,
                                          const char *name, struct sim_error_list *errors);
/* One that takes part in the cluster; bare: and has no guest, as the program works with the lending
 * software of the host itself. NULL: there is none, which is a mistake. */
struct lending_host *program_member(struct program *program, const char *key, const char *name,
                                    bool bare, struct sim_error_list *errors);
/* In check(): a device of this type that the host can use. NULL: it is none, which is a mistake.
 * In start(): lending_device(). */
struct model *program_device(struct program *program, const char *key, struct lending_host *host,
                             const char *device, const struct model_ops *type,
                             struct sim_error_list *errors);
/* In check(): likewise an nvme.controller, which the kernel of the host has as a block device. */
struct model *program_block_device(struct program *program, const char *key,
                                   struct lending_host *host, const char *device,
                                   struct sim_error_list *errors);
/* Names of those that the host can use, for messages: NULL-terminated, for the caller to free(). */
const char **program_device_names(struct program *program, struct lending_host *host,
                                  const struct model_ops *type);
/* In check(): the first of n copy engines of a GPU that no program before this one uses; a mistake
 * if it has not so many. */
unsigned program_take_engines(struct program *program, const char *key, const struct model *gpu,
                              unsigned n, struct sim_error_list *errors);
/* In check(): the program drives the controller of this name (a function of the model) by itself; a
 * mistake with its setting `device` if one before it does. */
void program_take_controller(struct program *program, const struct model *model, const char *name,
                             struct sim_error_list *errors);
/* In check(): the first CPU from `first` on that no program before this one spins on, which this
 * one then does, and lets nobody else run. Other programs may not use it: programs_check() refuses
 * those that said so by program_check_cpus(). */
unsigned program_take_spinning_cpu(struct program *program, const struct lending_host *host,
                                   unsigned first);
/* Mistake in check(): the host, or its guest, does not have n CPUs from this one on. Otherwise the
 * program has said that it runs on them; its setting `cpu` is the first. */
void program_check_cpus(struct program *program, const char *key, const struct lending_host *host,
                        unsigned first, unsigned n, struct sim_error_list *errors);
/* Mistakes in check() of a program whose threads go through n arrays of `array_bytes` on node
 * `node` of a host (settings of these names; the host's is `on`): a guest, no such node, more than
 * half its memory, or no whole lines. */
void program_check_arrays(struct program *program, const struct lending_host *host, unsigned node,
                          uint64_t array_bytes, unsigned n, struct sim_error_list *errors);
void program_lending_uses_cpu(struct program *program, const struct lending_host *host,
                              unsigned cpu);
bool program_is_measured(const struct program *program, const struct lending_host *host);
/* Cores of a socket that a program runs on, and the settings that say so. */
struct program_cores {
    const char *socket_key; /* NULL: every socket */
    const char *first_key;
    const char *n_key; /* NULL: n is no setting */
    unsigned socket, first, n;
    unsigned per_unit; /* cores for each of what n_key counts; 0: one */
};
/* The two hosts of a program that exchanges data, with the settings that name them. */
struct program_pair {
    const char *server_name, *client_name; /* `server`, `client` */
    const char *interface;                 /* `interface`: of the server; "": its default */
    uint32_t server_socket, client_socket; /* `server_socket`, `client_socket` */
    uint32_t first_core, client_first_core;
    struct network_host *server, *client;
};
/* In check(): finds both hosts, and checks that they differ and have so many cores from their first
 * on; *_key: the settings that say so (n_key, client_n_key may be NULL: there is none). False: a
 * host is missing, which is a mistake, too. */
bool program_check_pair(struct program *program, struct program_pair *pair, const char *first_key,
                        const char *n_key, unsigned n, const char *client_first_key,
                        const char *client_n_key, unsigned client_n, struct sim_error_list *errors);
/* Mistakes in check(): no such socket; no such cores of one; no such interface ("" is the default).
 */
void program_check_cores(struct program *program, const struct network_host *host,
                         const struct program_cores *cores, struct sim_error_list *errors);
void program_check_interface(struct program *program, const char *key,
                             const struct network_host *host, const char *interface,
                             struct sim_error_list *errors);
/* In check(), of a program that does nothing (no instances): where it would run and what it would
 * use makes no other configuration. */
void program_pair_idle(struct program *program);
/* CPU `idx` of a socket of the host; SIM_ASSERTs that there is one. */
unsigned program_cpu(const struct network_host *host, unsigned socket, unsigned idx);
/* Says that the program loads this CPU: its utilisation counts in cpu_utilization_ratio, if the
 * host is the one that is measured. */
void program_uses_cpu(struct program *program, const struct network_host *host, unsigned cpu);
/* Which packets of the measured host `packet_rate_kpps` and what is "per packet" are about: those
 * received, those handed to its NICs (a TSO buffer is one), or both. */
enum program_packets { PROGRAM_PACKETS_RECEIVED = 1, PROGRAM_PACKETS_SENT = 2 };
void program_counts_packets(struct program *program, enum program_packets which);
/* An operation that began at begin_ps (k_now_ps()) has ended: what is measured contains it as a
 * whole if it began after measure(). */
void program_operation_ended(struct program *program, uint64_t begin_ps);
/* In record(): false, and a fault of the run, if what is measured contains no whole operation, as
 * then rates say nothing; `what`: of the operation ("receive call"). */
bool program_has_measured(struct program *program, const char *what);
/* Operations of a kind of its own instead (transactions, requests). */
void program_count_operations(struct program *program, uint64_t n);
/* The measurement is over: loops end, so that all that is under way can arrive. */
bool program_ending(const struct program *program);
/* In start(): memory of the node of a CPU. v is 0 if there is none: the run fails before it
 * begins. */
struct kaddr program_buffer(struct program *program, const struct network_host *host, unsigned cpu,
                            uint64_t bytes);
/* A fault of the run is known: start() may return at once, nothing will run. */
bool program_failed(const struct program *program);
/* [thread] A connection to a server that may still be starting: tries for some milliseconds. NULL
 * and a fault of the run if there is none. */
struct socket *program_connect(struct program *program, const struct network_host *host,
                               uint32_t from_ip, uint32_t ip, uint16_t port);
/* [thread] Receives exactly so many bytes; false: the other side has closed before. */
bool program_receive(struct socket *socket, struct kaddr to, uint64_t bytes);
/* In record(): one of the program's records, by the names that program_ops.records says. */
void program_metric(struct program *program, const char *name, const char *unit, double value);
void program_histogram(struct program *program, const char *name, const char *unit, double scale,
                       const struct stat_histogram *h);
/* Likewise; at any time. */
void program_series(struct program *program, const char *name, const char *unit, sim_time t_ps,
                    double value);
/* For program_ops.rates: a mean latency, of the histogram of what is measured, in ps. */
uint64_t program_latencies_ps(const struct program *program);
uint64_t program_latencies(const struct program *program);
/* Like program_metric(), of a record with "+", but does not count in the sum. */
void program_metric_apart(struct program *program, const char *name, const char *unit,
                          double value);
/* No other program runs: what this one measures does not depend on when it ends. */
bool program_alone(const struct program *program);
/* Of the program among those that run, from 0 on. */
unsigned program_number(const struct program *program);
/* Port `idx` (below 64) from `base` on of this program: others on the same address have others. */
uint16_t program_port(const struct program *program, uint16_t base, unsigned idx);
/* A number of its own for each stream of payload (models/base/payload.h). */
uint16_t program_new_stream(struct program *program);

#endif
