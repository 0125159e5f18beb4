/*
 * Traces of single transactions: which element had the TLP, when, and by which table entries it
 * decided. The latency stamp of a followed TLP (sim/engine/stamp.h) points to the trace; other TLPs
 * carry no stamp, so that elements test nothing beyond what they test anyway.
 *
 * A record holds what an element did with the TLP and the table entries as it read them. Records go
 * into a preallocated array, from which text is made after the run.
 */
#ifndef MODELS_PCIE_LINK_TLP_TRACE_H
#define MODELS_PCIE_LINK_TLP_TRACE_H

#include "models/pcie/link/tlp.h"

struct model;
struct pcie_port;

enum tlp_trace_walk { TLP_TRACE_WRITE, TLP_TRACE_READ, N_TLP_TRACE_WALKS };

enum tlp_trace_kind {
    TRACE_SENT,        /* tlp: by the device */
    TRACE_BRANCH,      /* branch: a TLP made of another, with a leg of its own */
    TRACE_LINK,        /* link */
    TRACE_ROUTE,       /* route: a switch has chosen a port, by a window or by bus numbers */
    TRACE_PASS,        /* pass: it left the core of a switch chip */
    TRACE_NTB_OUT,     /* ntb: a request, from the host to the fabric */
    TRACE_NTB_IN,      /* ntb: a request, from the fabric to the host */
    TRACE_NTB_CPL_OUT, /* ntb: a completion, likewise */
    TRACE_NTB_CPL_IN,
    TRACE_CLUSTER,     /* cluster: a switch of the fabric */
    TRACE_ROOT,        /* tlp: at the root port `to`, "": from an integrated device; at_ps: past the
                          inbound queues */
    TRACE_IOMMU,       /* iommu */
    TRACE_IOMMU_LEVEL, /* level: of the page table, one record each, downwards */
    TRACE_LINE,        /* line: of memory */
    TRACE_VISIBLE,     /* tlp: a write is in memory, at at_ps */
    TRACE_COMPLETION,  /* tlp: is ready to leave the root complex at at_ps */
    TRACE_PEER,        /* tlp: goes on through another root port */
    TRACE_INTERRUPT,   /* tlp: a write that is an interrupt message, at its root complex */
    TRACE_REFUSED,     /* tlp: answered with an error, or dropped */
    TRACE_ARRIVED,     /* tlp: a completion, at the device */
};

enum tlp_trace_iommu {
    TRACE_IOMMU_NONE,       /* there is none */
    TRACE_IOMMU_OFF,        /* translation is not switched on */
    TRACE_IOMMU_PASS,       /* its context entry lets it pass */
    TRACE_IOMMU_HIT,        /* the IOTLB had it */
    TRACE_IOMMU_UNDER_MISS, /* another's walk brought it */
    TRACE_IOMMU_WALK,
    TRACE_IOMMU_FAULT
};

/* Why a switch chose the port. */
enum tlp_trace_route {
    TRACE_ROUTE_WINDOW, /* the port's window base..limit holds the address */
    TRACE_ROUTE_PEER,   /* likewise, between downstream ports */
    TRACE_ROUTE_ACS,    /* a peer's window holds it; access control sends it up */
    TRACE_ROUTE_UP,     /* no window holds it */
    TRACE_ROUTE_BUS,    /* a completion: the requester's bus is one of base..limit */
    TRACE_ROUTE_BUS_UP  /* a completion: no port leads to the bus */
};

#define TLP_TRACE_NAME_BYTES 64u

struct tlp_trace_record {
    sim_time at_ps;
    uint32_t leg;                    /* TLP_TRACE_LEG() */
    uint8_t kind;                    /* enum tlp_trace_kind */
    char who[TLP_TRACE_NAME_BYTES];  /* model or port */
    char to[TLP_TRACE_NAME_BYTES];   /* the port it goes to or leaves by; "" */
    char from[TLP_TRACE_NAME_BYTES]; /* the port it came in by; "" */
    union {
        struct {
            uint64_t address;
            uint32_t bytes, transfer_bytes; /* of the TLP; of the DMA that it is the first TLP of */
            uint16_t requester_id, completer_id, tag, byte_count;
            uint8_t type, domain, status;
        } tlp;
        struct {
            uint32_t parent; /* leg */
        } branch;
        struct {
            sim_time handed_ps, start_ps, head_ps, tail_ps;
            /* no lanes: the device is integrated into the root complex, and there is no link */
            uint32_t wire_bytes, lanes, generation;
            bool cut_through; /* the receiver has it at head_ps, else at tail_ps */
        } link;
        struct {
            uint64_t base, limit;
            uint8_t why; /* enum tlp_trace_route */
        } route;
        struct {
            sim_time ready_ps; /* past the core; from then on it may leave */
        } pass;
        struct {
            uint64_t bar_base, lut_entry; /* out */
            uint64_t address, to_address;
            uint32_t window, window_log2, bar; /* out */
            uint32_t idx, entry;               /* in the table of requesters */
            uint32_t node;                     /* its own */
            uint32_t requester, to_requester;  /* 24 bits on the fabric's side */
        } ntb;
        struct {
            uint32_t node, own_node, route_entry, requester;
            uint32_t holders, n_entries, n_entries_max; /* of its table of requesters */
        } cluster;
        struct {
            uint64_t iova, hpa;
            uint64_t root_at, root, context_at, context_lo, context_hi;
            sim_time done_ps;
            uint32_t reads; /* table entries that the walk read; the rest was cached */
            uint16_t requester_id;
            uint8_t how, fault; /* enum tlp_trace_iommu, enum iommu_fault */
        } iommu;
        struct {
            uint64_t at, entry;
            uint8_t level;
            bool leaf;
        } level;
        struct {
            uint64_t hpa;
            sim_time done_ps;
            uint32_t bytes;
            int home;       /* node */
            int llc;        /* socket whose LLC has it afterwards, -1: none */
            uint8_t source; /* enum numa_source */
            uint8_t socket; /* of the root complex */
            bool write;
        } line;
    };
};

#define TLP_TRACE_RECORDS      4096u
#define TLP_TRACE_LEG(walk, n) ((uint32_t)(walk) << 16 | (n))
#define TLP_TRACE_WALK_OF(leg) ((leg) >> 16)

/* Takes all transfers of all devices, as they go, instead of an array that has one write and one
 * read. Numbers of transfers are those that begin() has returned; their TLPs, and what is made of
 * these, have them as legs. */
struct tlp_trace_sink {
    /* The device sends the first TLP of a transfer of so many bytes. 0: it is not followed. */
    uint32_t (*begin)(struct tlp_trace_sink *sink, const struct model *device,
                      const struct tlp *tlp, uint64_t transfer_bytes);
    /* Another TLP of the transfer is sent; its latency stamp counts from now on, as does a copy. */
    void (*join)(struct tlp_trace_sink *sink, uint32_t transfer, const struct tlp *tlp);
    void (*copy)(struct tlp_trace_sink *sink, uint32_t transfer);
    /* No more TLPs of it are sent; those that are under way still end. */
    void (*give_up)(struct tlp_trace_sink *sink, uint32_t transfer);
    /* One of these stamps is freed. */
    void (*end)(struct tlp_trace_sink *sink, uint32_t transfer);
    /* Everything but TRACE_SENT and TRACE_BRANCH, one record later than it happened. */
    void (*record)(struct tlp_trace_sink *sink, const struct tlp_trace_record *record);
};

struct stamp_trace {
    struct tlp_trace_sink *sink; /* NULL: what follows; else only `record` is used, of one record */
    bool has_record;
    /* ---- What to follow ---------------------------------------------------------------------- */
    const struct model *device;      /* NULL: the first that does any DMA */
    uint64_t nth[N_TLP_TRACE_WALKS]; /* transfer to follow, from 1; 0: none */
    uint64_t bytes_min;              /* smaller transfers do not count */
    /* ---- What was found ---------------------------------------------------------------------- */
    char device_name[TLP_TRACE_NAME_BYTES]; /* of the device that is followed; "": none yet */
    bool armed;                             /* transfers count */
    volatile int done;                      /* everything to follow has ended */
    uint64_t seen[N_TLP_TRACE_WALKS];       /* transfers */
    uint32_t n_legs[N_TLP_TRACE_WALKS], live[N_TLP_TRACE_WALKS];
    uint32_t n_records, n_lost;
    struct tlp_trace_record record[TLP_TRACE_RECORDS + 1]; /* the last takes what there is no room
                                                              for */
};

/* Arguments: as the fields of struct stamp_trace. The caller frees it with tlp_trace_free(). */
struct stamp_trace *tlp_trace_new(const struct model *device, uint64_t nth_write,
                                  uint64_t nth_read);
void tlp_trace_free(struct stamp_trace *trace);
/* Starts to count transfers. */
void tlp_trace_arm(struct stamp_trace *trace);

/* Whether the transaction is followed. */
static inline bool stamp_traced(const struct sim_stamp *stamp)
{
    return SIM_UNLIKELY(stamp != NULL) && stamp->trace != NULL;
}
static inline bool tlp_traced(const struct tlp *tlp)
{
    return stamp_traced(tlp->stamp);
}

/* Called when the device sends the first TLP of a DMA transfer: follows it if it is the one that
 * the trace asks for. Returns the sink's number of the transfer; 0 without a sink, or not
 * followed. */
uint32_t tlp_trace_choose(struct stamp_trace *trace, const struct model *device, struct tlp *tlp,
                          uint64_t transfer_bytes);
/* Called when the device sends a further TLP of a transfer with that number. */
void tlp_trace_join(struct stamp_trace *trace, const struct model *device, struct tlp *tlp,
                    uint32_t transfer);
/* Called when the device sends no more TLPs of a transfer of which it has sent one, and not all. */
void tlp_trace_give_up(struct stamp_trace *trace, uint32_t transfer);
/* Hands the last record to the sink. */
void tlp_trace_flush(struct stamp_trace *trace);
/* Makes the stamp, a copy of a traced one, a leg of its own. */
void tlp_trace_branch(struct sim_stamp *stamp);
/* Called when a traced stamp is freed: its leg ends. */
void tlp_trace_end(struct sim_stamp *stamp);

/* Appends a record, which the caller fills in. The stamp must be traced. */
struct tlp_trace_record *tlp_trace_add(const struct sim_stamp *stamp, enum tlp_trace_kind kind,
                                       const char *who, sim_time at_ps) __attribute__((cold));
/* Like tlp_trace_add(), but fills in the fields of the TLP. */
struct tlp_trace_record *tlp_trace_add_tlp(const struct tlp *tlp, enum tlp_trace_kind kind,
                                           const char *who, sim_time at_ps) __attribute__((cold));
/* Writes the port's name, preceded by that of its host. */
void tlp_trace_port(char to[TLP_TRACE_NAME_BYTES], const struct pcie_port *port);
/* Adds delay_ps to the time of the TLP's last record, because it goes on the wire later. */
void tlp_trace_delay(const struct sim_stamp *stamp, sim_time delay_ps);

#endif
