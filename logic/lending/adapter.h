/*
 * One adapter with a non-transparent bridge (data sheet: ntb_regs.h): its windows, its tables of
 * requesters, what of this host the fabric may reach through it. Entries are counted: who asks for
 * what is there already shares it, and the last who gives it back clears it. Each knows for whom it
 * was taken first.
 *
 * Every table is kept here and written to the chip by MMIO. Book-keeping comes before the first
 * write and charges nothing, so two CPUs never get the same entry; an entry that is given back is
 * cleared in the chip before it is free.
 */
#ifndef LOGIC_LENDING_ADAPTER_H
#define LOGIC_LENDING_ADAPTER_H

#include "hw/ntb_regs.h"
#include "logic/kapi.h"
#include "logic/lending/ranges.h"

#define LEND_OWNER_BYTES 32u
#define LEND_APERTURES   2u /* BAR 2 and BAR 4 */

/* Why something was refused: which resource, how much there is, who holds it. */
struct lend_error {
    int code; /* negative errno; 0: nothing is wrong */
    char text[192];
};
/* Fills in *error (NULL: nobody asks) and returns code. */
int lend_fail(struct lend_error *error, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

struct lend_entry { /* of a table of the chip */
    uint64_t value; /* 0: free, or about to be */
    uint32_t refs;  /* 0: free */
    char owner[LEND_OWNER_BYTES];
};
struct lend_table {
    struct lend_entry *entry;
    unsigned n, n_used;
    const char *what; /* in messages */
};

struct lend_adapter {
    struct kernel *kernel;
    struct k_pci_dev *pci;
    unsigned index;  /* among the host's adapters */
    uint32_t node;   /* on the fabric */
    unsigned n_cpus; /* outgoing requesters that are this host's root complexes: the first ones */
    struct lend_table window[LEND_APERTURES], outgoing, incoming;
    unsigned window_log2[LEND_APERTURES];
    /* With an IOMMU: what requesters of other hosts may reach here. */
    struct k_iommu_domain *domain;
    struct lend_ranges iova;
};

/* Finds the tables, makes the domain, lets this host's CPUs out, switches both directions on. From
 * a thread. 0 or a negative errno with nothing left behind. */
int lend_adapter_init(struct lend_adapter *adapter, struct k_pci_dev *pci, unsigned index,
                      struct lend_error *error);
/* Switches it off. gone: it answers no more. */
void lend_adapter_release(struct lend_adapter *adapter, bool gone);
/* The cable is there and trained. */
bool lend_adapter_link_up(struct lend_adapter *adapter);

/* Part of another node's address space in windows of this bridge. */
struct lend_map {
    unsigned aperture, first, n; /* n: 0, not mapped */
    uint64_t address;            /* of the first byte, in this host's tree */
    uint64_t bytes;
};
/* fabric: the address on that node (NTB_FABRIC_REGISTERS set: its bridge's registers). limit: the
 * last byte must lie below (0: anywhere). 0; -EFBIG: larger than any aperture; -ENOSPC: no run of
 * free windows; -ERANGE: there is room, but not below the limit. */
int lend_map(struct lend_adapter *adapter, uint32_t node, uint64_t fabric, uint64_t bytes,
             uint64_t limit, const char *owner, struct lend_map *map, struct lend_error *error);
void lend_unmap(struct lend_adapter *adapter, struct lend_map *map);
/* What is mapped, by a CPU of this host; 4 or 8 bytes. */
uint64_t lend_map_read(struct lend_adapter *adapter, const struct lend_map *map, uint64_t offset,
                       unsigned bytes);
void lend_map_write(struct lend_adapter *adapter, const struct lend_map *map, uint64_t offset,
                    unsigned bytes, uint64_t value);

/* A device of this host (all its functions) may send to the fabric: the index is its device number
 * there. -ENOSPC. */
int lend_outgoing_add(struct lend_adapter *adapter, uint16_t id, const char *owner,
                      struct lend_error *error);
/* True: nobody else has it. */
bool lend_outgoing_remove(struct lend_adapter *adapter, unsigned index);
/* A function on the fabric may come in. *id: what it appears as here. With an IOMMU it has the
 * addresses of what is exported and nothing else. 0, -ENOSPC, what k_iommu_attach() says. */
int lend_incoming_add(struct lend_adapter *adapter, uint32_t node, unsigned device,
                      unsigned function, const char *owner, uint16_t *id, struct lend_error *error);
void lend_incoming_remove(struct lend_adapter *adapter, uint16_t id);

/* Memory or registers of this host, whole pages, for the fabric: *fabric is their address there,
 * aligned to the next power of two of bytes if there is an IOMMU (else it is host-physical). */
int lend_export(struct lend_adapter *adapter, uint64_t address, uint64_t bytes, uint64_t *fabric,
                struct lend_error *error);
void lend_unexport(struct lend_adapter *adapter, uint64_t fabric, uint64_t bytes);

/* Entries in use, without those of the adapter itself: for leak checks and messages. */
unsigned lend_windows_used(const struct lend_adapter *adapter);

#endif
