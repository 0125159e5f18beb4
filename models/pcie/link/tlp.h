/* Transaction-layer packets (PCIe Base 3.1, 2.2). A TLP has one owner; sending transfers it. */
#ifndef MODELS_PCIE_LINK_TLP_H
#define MODELS_PCIE_LINK_TLP_H

#include "models/base/latency.h"
#include "sim/engine/sim.h"

enum tlp_type {
    TLP_MRD,
    TLP_MWR,
    TLP_DMWR, /* deferrable memory write: non-posted; ENQCMD (PCIe 5.0 ECN "Deferrable Memory
               * Write") */
    TLP_CFG_RD0,
    TLP_CFG_WR0,
    TLP_CFG_RD1,
    TLP_CFG_WR1,
    TLP_MSG,
    TLP_CPL,
    TLP_CPLD
};
/* Flow-control classes. */
enum tlp_class { TLP_POSTED, TLP_NON_POSTED, TLP_COMPLETION, N_TLP_CLASSES };

/* Completion status, PCIe Base 3.1, table 2-29. TLP_CRS of a deferrable memory write is Request
 * Retry Status: the completer has not taken it. */
enum tlp_status { TLP_SC = 0, TLP_UR = 1, TLP_CRS = 2, TLP_CA = 4 };

/* Address type, PCIe Base 3.1, 2.2.4.1 (ATS). */
enum tlp_at { TLP_AT_UNTRANSLATED = 0, TLP_AT_REQUEST = 1, TLP_AT_TRANSLATED = 2 };

#define TLP_ATTR_NO_SNOOP         0x1u
#define TLP_ATTR_RELAXED_ORDERING 0x2u
#define TLP_ATTR_ID_ORDERING      0x4u
/* A processing hint (TH, 2.2.7.1): the tag of a memory write is a steering tag, the number of the
 * CPU that will read the data. */
#define TLP_ATTR_STEERED 0x8u

#define TLP_PAYLOAD_BYTES_MAX 4096u

/* Requester or completer ID: bus 15:8, device 7:3, function 2:0. */
static inline uint16_t pcie_id(unsigned bus, unsigned device, unsigned function)
{
    return (uint16_t)(bus << 8 | device << 3 | function);
}

struct pcie_context;
struct pcie_port;

/* Payload is real bytes, but bulk payload carries only the first 8 bytes of each cache line
 * (physmem.h). The size on the wire does not depend on that. */
struct tlp {
    struct tlp *next;       /* the owner's, for queues */
    struct sim_event event; /* the owner's */
    uint8_t type;           /* enum tlp_type */
    uint8_t attr;           /* TLP_ATTR_* */
    uint8_t at;             /* enum tlp_at */
    uint8_t status;         /* completions: enum tlp_status */
    bool bulk;              /* the payload is marks */
    bool poisoned : 1;      /* EP */
    bool digest : 1;        /* TD: it ends with an ECRC */
    uint16_t requester_id;
    uint16_t completer_id;     /* completions; configuration requests: the target */
    uint16_t tag;              /* the TLP tag: matches completions to requests */
    uint16_t length_bytes;     /* payload carried, or asked for by a read; 0 allowed for Cpl */
    uint16_t byte_count;       /* completions: bytes still to come, this TLP included */
    uint64_t address;          /* bus address of the first byte; configuration: register offset;
                                  completions: address of the first byte returned (lower address) */
    uint64_t sequence;         /* set by the link for ordering */
    sim_time sent_ps;          /* earliest time on the wire (pcie_port_send) */
    sim_time head_ps, tail_ps; /* first and last byte at the receiver; set by the link */
    struct sim_stamp *stamp;   /* latency stamp, owned; NULL unless the transaction is timed */
    uint8_t *payload;          /* length_bytes bytes, NULL if it carries none */
    uint32_t cookie;           /* for the use of the model that owns the TLP */
    uint16_t ingress;          /* port that received it; set on delivery */
    uint8_t payload_class;     /* private to context.c: the pool of the payload */
    uint8_t domain; /* of the requester ID, on a fabric of more than 255 nodes: travels in
                       an end-to-end prefix (2.2.10) unless it is 0 */
};
_Static_assert(sizeof(struct tlp) <= 128, "a TLP must fit in two cache lines");

static inline enum tlp_class tlp_class_of(const struct tlp *tlp)
{
    static const uint8_t class_of[] = {
        [TLP_MRD] = TLP_NON_POSTED,     [TLP_MWR] = TLP_POSTED,
        [TLP_DMWR] = TLP_NON_POSTED,    [TLP_CFG_RD0] = TLP_NON_POSTED,
        [TLP_CFG_WR0] = TLP_NON_POSTED, [TLP_CFG_RD1] = TLP_NON_POSTED,
        [TLP_CFG_WR1] = TLP_NON_POSTED, [TLP_MSG] = TLP_POSTED,
        [TLP_CPL] = TLP_COMPLETION,     [TLP_CPLD] = TLP_COMPLETION
    };

    return (enum tlp_class)class_of[tlp->type];
}
/* Whether the TLP carries data, rather than asking for it. */
static inline bool tlp_has_data(const struct tlp *tlp)
{
    const unsigned types = 1u << TLP_MWR | 1u << TLP_CPLD | 1u << TLP_DMWR | 1u << TLP_CFG_WR0 |
                           1u << TLP_CFG_WR1;

    return (types >> tlp->type & 1) != 0 || (tlp->type == TLP_MSG && tlp->length_bytes != 0);
}
/* Double words of payload on the wire: the range rounded out to 4-byte boundaries. */
static inline unsigned tlp_payload_dw(const struct tlp *tlp)
{
    if (!tlp_has_data(tlp))
        return 0;
    unsigned first = (unsigned)(tlp->address & 3);
    return (first + tlp->length_bytes + 3u) / 4u;
}
/* Framing, sequence number and LCRC: STP 1, sequence 2, LCRC 4, END 1 (Gen1/2); STP token 4 with
 * the sequence number in it, LCRC 4 (Gen3 and later). */
#define TLP_FRAMING_BYTES      8u
#define TLP_OVERHEAD_BYTES_MAX (TLP_FRAMING_BYTES + 4u + 16u + 4u) /* prefix, header, digest */

/* Header: 4 DW for messages and for addresses from 4 GiB on, else 3 (PCIe Base 3.1, 2.2.1). */
static inline unsigned tlp_header_bytes(const struct tlp *tlp)
{
    if (tlp->type == TLP_MSG)
        return 16;
    return tlp->type <= TLP_DMWR && tlp->address >> 32 != 0 ? 16 : 12;
}
/* Bytes on the wire of a link of any generation, with so many double words of payload: framing,
 * sequence number, prefix, header, payload, ECRC and LCRC. */
static inline unsigned tlp_wire_bytes_of(const struct tlp *tlp, unsigned payload_dw)
{
    unsigned prefix = tlp->domain != 0 ? 4 : 0, digest = tlp->digest ? 4 : 0;
    return TLP_FRAMING_BYTES + prefix + tlp_header_bytes(tlp) + 4 * payload_dw + digest;
}
static inline unsigned tlp_wire_bytes(const struct tlp *tlp)
{
    return tlp_wire_bytes_of(tlp, tlp_payload_dw(tlp));
}
/* The data credits that so many double words of payload take, in units of 16 bytes. */
static inline unsigned tlp_data_credits_of(unsigned payload_dw)
{
    return (payload_dw + 3u) / 4u;
}
static inline unsigned tlp_data_credits(const struct tlp *tlp)
{
    return tlp_data_credits_of(tlp_payload_dw(tlp));
}
/* Whether a completion may pass the posted requests of a queue before it (2.4.1, table 2-39, D2b):
 * only with relaxed ordering, or with ID-based ordering those of other functions than its
 * completer. `posted` is the queue's first. */
static inline bool tlp_may_pass_posted(const struct tlp *posted, const struct tlp *cpl)
{
    if (cpl->attr & TLP_ATTR_RELAXED_ORDERING)
        return true;
    if (!(cpl->attr & TLP_ATTR_ID_ORDERING))
        return false;
    for (; posted != NULL; posted = posted->next)
        if (posted->sequence < cpl->sequence && posted->requester_id == cpl->completer_id)
            return false;
    return true;
}

/* ---- The context: what all PCIe models of a run share (pools, counters) ---------------------- */
struct pcie_context *pcie_context_new(struct sim *sim);
void pcie_context_free(struct pcie_context *pcie);
struct sim *pcie_context_sim(struct pcie_context *pcie);

/* Returns a TLP from a pool, all fields but the type zero. The caller owns it. */
struct tlp *tlp_new(struct pcie_context *pcie, enum tlp_type type);
/* Gives it a payload buffer of length_bytes (set before, 1 .. TLP_PAYLOAD_BYTES_MAX) with undefined
 * content. */
void tlp_payload_new(struct pcie_context *pcie, struct tlp *tlp);
/* Returns a copy, which the caller owns, with its own payload and latency stamp if it has them. */
struct tlp *tlp_copy(struct pcie_context *pcie, const struct tlp *tlp);
/* Frees the TLP, its payload and its latency stamp. */
void tlp_free(struct pcie_context *pcie, struct tlp *tlp);
/* Frees the TLP and those that follow it by `next`. NULL is allowed. */
void tlp_free_list(struct pcie_context *pcie, struct tlp *first);
/* The number of TLPs that have not been freed. */
uint64_t tlp_live(const struct pcie_context *pcie);

struct sim_stamp *stamp_new(struct pcie_context *pcie, sim_time now_ps);
struct sim_stamp *stamp_copy(struct pcie_context *pcie, const struct sim_stamp *stamp);
void stamp_free(struct pcie_context *pcie, struct sim_stamp *stamp);

/*
 * Returns a completion for a request. Requester ID, TLP tag and attributes are copied; the latency
 * stamp moves to the completion; there is no payload yet. A read that succeeds gets a CplD with the
 * request's address and length, and that length as byte count, which a caller that splits it
 * changes; else a Cpl without data. The caller still owns the request.
 */
struct tlp *tlp_completion(struct pcie_context *pcie, struct tlp *request, uint16_t completer_id,
                           enum tlp_status status);

#endif
