/*
 * The front end of a DMA engine: what every function that issues memory requests needs, so that no
 * device model repeats it. Cuts transfers into TLPs, owns the function's tags, waits for room,
 * checks completions, times out.
 *
 * Part of struct pcie_function (pcie_function.h), which hands on completions, room in the port,
 * resets and the end. The device embeds a struct pcie_dma_request in whatever is being transferred.
 *
 * Order. Requests go out in order of submission, also if a later one is ready (at_ps) earlier, but
 * for this: a read that waits (until it is ready, for a tag, for room) lets later writes pass. A
 * read never passes an earlier write (PCIe Base 3.1, table 2-39), unless the device says that it
 * has nothing to do with writes that are not ready yet (`independent`).
 */
#ifndef MODELS_PCIE_ENDPOINT_DMA_H
#define MODELS_PCIE_ENDPOINT_DMA_H

#include "models/base/address.h"
#include "models/base/model.h"
#include "models/pcie/config/config_space.h"
#include "models/pcie/link/port.h"
#include "sim/engine/watchdog.h"

#define PCIE_DMA_TAGS          256u /* with extended tags */
#define PCIE_DMA_TAGS_STANDARD 32u

enum pcie_dma_status {
    PCIE_DMA_OK,
    PCIE_DMA_UNSUPPORTED,    /* completion status UR: no such address, or not allowed */
    PCIE_DMA_ABORTED,        /* completion status CA */
    PCIE_DMA_TIMED_OUT,      /* no completion in time */
    PCIE_DMA_POISONED,       /* a completion was marked poisoned (EP) */
    PCIE_DMA_BUS_MASTER_OFF, /* nothing (more) was sent: Bus Master Enable is clear */
};

struct pcie_dma_request;
/*
 * The request is the caller's again and may be reused at once; new requests may be submitted from
 * within. A read: its data is complete. A write: its last TLP was handed to the link; this may
 * happen before pcie_dma_write() returns, as may the end of any request while Bus Master Enable is
 * clear.
 */
typedef void pcie_dma_done_fn(struct pcie_dma_request *request, enum pcie_dma_status status);

struct pcie_dma_request {
    /* ---- filled by the caller, left alone until done ----------------------------------------- */
    struct iova iova;
    uint64_t bytes;   /* at least 1 */
    uint8_t *buffer;  /* bytes long; NULL: a read's data is dropped, a write writes zeros. Written
                         by a read until done; a write's is read until done. */
    bool bulk;        /* payload in tag mode (models/numa/physmem.h) */
    bool whole_lines; /* pieces end at cache lines as far as they can, so that only the first begins
                         within one: needed where a bulk write does not begin on a line */
    uint8_t attr;     /* TLP_ATTR_* */
    uint32_t bulk_from; /* bulk: TLPs that begin before this offset carry all bytes: headers that
                           software reads; what tags follow in them is the buffer's content */
    bool independent;   /* a read from an engine of its own: goes before writes that were submitted
                           earlier but are ready later */
    uint16_t tag;       /* a write: of its last TLP, for whoever sees it leave (pcie_dma_path);
                           means nothing to a receiver */
    pcie_dma_done_fn *done; /* may be NULL */
    /*
     * NULL, or the caller's stamp, started by it. When done, its parts sum to done_ps - start_ps.
     * A write's ends with the hand-over to the link; its last TLP carries a copy on, to where the
     * write becomes visible (root complex: write_latency_ns). Of a read, every request TLP carries
     * a copy, since it is not known beforehand which completion will be the last; that of the
     * completion that ended the read is kept. Waiting for a tag counts as PART_DEVICE, for the port
     * as PART_CREDIT; if the completer attached the stamp to an earlier completion than the last,
     * the time between both counts as PART_LINK.
     */
    struct sim_stamp *stamp;
    /* ---- valid in done() --------------------------------------------------------------------- */
    sim_time done_ps; /* now */
    /* ---- private ----------------------------------------------------------------------------- */
    struct pcie_dma_request *next;
    uint64_t sequence, issued_bytes;
    sim_time at_ps;
    uint32_t in_flight; /* request TLPs */
    uint32_t transfer;  /* its number in a trace (tlp_trace.h) */
    uint8_t error;      /* the first, enum pcie_dma_status */
    uint8_t wait_part;  /* what the time since the stamp's cursor will be assigned to */
};

/* Where TLPs go instead of the port: the inside of a chip that the engine is part of. send() takes
 * the TLP; ready() as pcie_port_ready(), with pcie_dma_credit() called when there is room again. */
struct pcie_dma_path {
    bool (*ready)(void *context, enum tlp_class class);
    void (*send)(void *context, struct tlp *tlp);
    void *context;
};

/*
 * Memory that bulk payload reaches without TLPs: of a host that says so (`detail.payload`), whose
 * DMA addresses are addresses of its memory. The engine then moves what is bulk of a request at
 * once and lets the time of the wire pass: a write takes its bytes and the overhead of its TLPs at
 * the link's rate, and later ones wait for that; a read the same, after as long as the last read by
 * TLPs took. All functions of a port share its wire so. Neither takes credits, tags, caches or
 * DRAM. Bytes that software reads, requests with stamps, and what is not memory of the host go as
 * TLPs.
 */
struct pcie_shortcut {
    /* As physmem_read_marks() and physmem_write_marks(). False: the range is not all memory;
     * nothing was moved. */
    bool (*read)(void *context, struct iova iova, uint8_t *to, uint64_t bytes);
    bool (*write)(void *context, struct iova iova, const uint8_t *from, uint64_t bytes);
    void *context;
};

struct pcie_dma_params {
    sim_time completion_timeout_ps;
    uint32_t read_tlps_max;  /* read requests in flight; 0: as many as there are tags */
    uint64_t read_bytes_max; /* of a read request; a multiple of a line; 0: Max_Read_Request_Size */
    bool aligned; /* requests end at multiples of what they may carry, as far as they are powers of
                  * 2 */
    /* Every so many writes without a stamp of their own get one, from the hand-over of their last
     * TLP to the port to where the write becomes visible (root complex: write_latency_ns); 0: none.
     * Best a prime, so that writes that take turns are all met. */
    uint32_t stamp_every;
};

struct pcie_dma_stats {
    uint64_t read_tlps, write_tlps, completions;
    uint64_t read_bytes, write_bytes; /* read: received; write: sent */
    uint64_t tag_waits, credit_waits; /* times that sending stopped */
    uint64_t read_tlps_in_flight_max;
    uint64_t unsupported, aborted, timed_out, poisoned, unexpected, bus_master_off;
};
/* For the device's table of statistics; FIELD: its struct pcie_dma. */
#define PCIE_DMA_STAT(NAME, KIND, STRUCT, FIELD, COUNT, UNIT, HELP) \
    STAT(NAME, KIND, STRUCT, FIELD.stats.COUNT, UNIT, 0, HELP)
#define PCIE_DMA_STATS(STRUCT, FIELD)                                                         \
    PCIE_DMA_STAT("dma_read_tlps", STAT_COUNTER, STRUCT, FIELD, read_tlps, "1",               \
                  "memory read requests sent"),                                               \
        PCIE_DMA_STAT("dma_write_tlps", STAT_COUNTER, STRUCT, FIELD, write_tlps, "1",         \
                      "memory writes sent"),                                                  \
        PCIE_DMA_STAT("dma_completions", STAT_COUNTER, STRUCT, FIELD, completions, "1",       \
                      "completions received that were expected"),                             \
        PCIE_DMA_STAT("dma_read_bytes", STAT_COUNTER, STRUCT, FIELD, read_bytes, "bytes",     \
                      "bytes received by reads"),                                             \
        PCIE_DMA_STAT("dma_write_bytes", STAT_COUNTER, STRUCT, FIELD, write_bytes, "bytes",   \
                      "bytes sent by writes"),                                                \
        PCIE_DMA_STAT("dma_tag_waits", STAT_COUNTER, STRUCT, FIELD, tag_waits, "1",           \
                      "times that reads stopped for want of a tag"),                          \
        PCIE_DMA_STAT("dma_credit_waits", STAT_COUNTER, STRUCT, FIELD, credit_waits, "1",     \
                      "times that sending stopped for want of room in the port"),             \
        PCIE_DMA_STAT("dma_read_tlps_in_flight_max", STAT_MAX, STRUCT, FIELD,                 \
                      read_tlps_in_flight_max, "1", "most read requests in flight"),          \
        PCIE_DMA_STAT("dma_unsupported", STAT_COUNTER, STRUCT, FIELD, unsupported, "1",       \
                      "completions with status unsupported request"),                         \
        PCIE_DMA_STAT("dma_aborted", STAT_COUNTER, STRUCT, FIELD, aborted, "1",               \
                      "completions with status completer abort"),                             \
        PCIE_DMA_STAT("dma_timed_out", STAT_COUNTER, STRUCT, FIELD, timed_out, "1",           \
                      "read requests without data in time"),                                  \
        PCIE_DMA_STAT("dma_poisoned", STAT_COUNTER, STRUCT, FIELD, poisoned, "1",             \
                      "poisoned completions"),                                                \
        PCIE_DMA_STAT("dma_unexpected", STAT_COUNTER, STRUCT, FIELD, unexpected, "1",         \
                      "completions that nothing was waiting for; dropped"),                   \
        PCIE_DMA_STAT("dma_bus_master_off", STAT_COUNTER, STRUCT, FIELD, bus_master_off, "1", \
                      "transfers given up because Bus Master Enable was clear")

/* One read request in flight. */
struct pcie_dma_tag {
    struct pcie_dma_request *request; /* NULL: free */
    uint64_t offset;                  /* in the transfer, of the next byte expected */
    sim_time deadline_ps;
    uint16_t remaining_bytes;
    uint16_t older, newer; /* list in order of issue, which is that of deadlines */
    bool bulk;
    bool doubtful; /* a read of it was given up: what comes might still be that one's answer */
    sim_time doubtful_until_ps;
};

struct pcie_dma {
    /* ---- for the device to read -------------------------------------------------------------- */
    struct model *model;
    struct cfg_space *cfg;
    struct pcie_dma_stats stats;
    /* ---- private ----------------------------------------------------------------------------- */
    struct pcie_context *pcie;
    struct pcie_port *port;
    const struct pcie_dma_path *path; /* NULL: the port */
    struct pcie_dma_params params;
    struct pcie_dma_request *read_head, *read_tail, *write_head, *write_tail;
    uint64_t next_sequence;
    sim_time read_at_ps,
        write_at_ps;    /* of the last submitted, so that at_ps ascends in each kind */
    uint32_t unstamped; /* writes since one was stamped */
    uint32_t in_flight; /* tags in use */
    uint16_t next_tag;  /* where the search for a free one goes on: reused as late as possible */
    uint16_t oldest, newest;
    bool pumping, read_waits_tag, read_waits_port, write_waits_port;
    /* Payload by rate (model->shortcut): the reads under way, in order of their ends, done_ps. */
    struct pcie_dma_request *rate_head, *rate_tail;
    struct sim_event rate_end; /* of rate_head */
    sim_time round_trip_ps;    /* of the last read request TLP; 0: none yet */
    struct sim_event start;    /* pending while a request that may go next is not ready yet */
    struct sim_event timeout;  /* pending while something is in flight; at or before oldest's */
    uint64_t free_tags[PCIE_DMA_TAGS / 64];
    uint32_t n_kept;          /* of `tag`: 0 until the first read, which many devices never have */
    struct pcie_dma_tag *tag; /* PCIE_DMA_TAGS */
    struct sim_watch watch;
};

/* From the model's init() or start(); model->ports and cfg must stay where they are. */
void pcie_dma_init(struct pcie_dma *dma, struct model *model, uint32_t port, struct cfg_space *cfg,
                   const struct pcie_dma_params *params);
/* After pcie_dma_init(): TLPs go this way; completions come by pcie_dma_complete(). */
void pcie_dma_set_path(struct pcie_dma *dma, const struct pcie_dma_path *path);
/* Forgets everything in flight; done() is not called. For the model's release(). */
void pcie_dma_release(struct pcie_dma *dma);

/* Function-level reset: all that is queued or in flight ends now, with PCIE_DMA_BUS_MASTER_OFF; Bus
 * Master Enable is clear already, so that nothing new begins. Answers that are still on their way
 * are dropped. */
void pcie_dma_abort(struct pcie_dma *dma);
/* Its configuration may be another: reads that have waited without a time-out may have one now. */
void pcie_dma_configured(struct pcie_dma *dma);

/* The device is ready to send it at at_ps (before now: now): no TLP leaves before, nor is handed to
 * the link, so that the link stays open for others. */
void pcie_dma_read(struct pcie_dma *dma, struct pcie_dma_request *request, sim_time at_ps);
void pcie_dma_write(struct pcie_dma *dma, struct pcie_dma_request *request, sim_time at_ps);

/* Takes a completion that the model received, frees it and releases its receive buffer. Wrong
 * requester ID or a tag that is not in use: counted, dropped. Wrong byte count, address or length:
 * sim_fail(). */
void pcie_dma_receive(struct pcie_dma *dma, struct tlp *tlp);
/* The same for one whose receive buffer is the caller's to release. */
void pcie_dma_complete(struct pcie_dma *dma, struct tlp *tlp);
void pcie_dma_credit(struct pcie_dma *dma);

/* Nothing is queued or in flight. */
static inline bool pcie_dma_idle(const struct pcie_dma *dma)
{
    return dma->in_flight == 0 && dma->read_head == NULL && dma->write_head == NULL &&
           dma->rate_head == NULL;
}

#endif
