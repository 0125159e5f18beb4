/*
 * The driver's view of one adapter: the NTB's windows and requester tables (hw/ntb_regs.h), and
 * what this host exports to the fabric through it.
 *
 * The driver keeps every table in memory and writes it to the chip by MMIO. Entries are counted: a
 * caller that asks for a value that a table already holds shares the entry, and the entry is
 * cleared when its last user gives it back. An entry carries the name of its first user.
 *
 * Book-keeping precedes the first register write and takes no simulated time, so two CPUs never get
 * the same entry. An entry is cleared in the chip before it is free again.
 *
 * All calls may be made from threads only, but for lend_map_read() and lend_map_write(), which hard
 * interrupts may make as well.
 */
#ifndef LOGIC_LENDING_ADAPTER_H
#define LOGIC_LENDING_ADAPTER_H

#include "hw/ntb_regs.h"
#include "logic/kapi.h"
#include "logic/lending/ranges.h"

#define LEND_OWNER_BYTES 32u
#define LEND_APERTURES   2u /* BAR 2 and BAR 4 */

/* Why a call has failed: which resource was short, how much of it there is, who holds it. */
struct lend_error {
    int code; /* negative errno; 0: no failure */
    char text[256];
};
/* Fills in *error, unless it is NULL, and returns `code`. */
int lend_fail(struct lend_error *error, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The size of the whole pages that hold `bytes`, which begin at the start of a page. */
static inline uint64_t lend_whole_pages(uint64_t bytes)
{
    return (bytes + K_PAGE_BYTES - 1) & ~(uint64_t)(K_PAGE_BYTES - 1);
}

struct lend_entry { /* of a table of the NTB */
    uint64_t value; /* 0: free, or about to be */
    uint32_t refs;  /* 0: free */
    char owner[LEND_OWNER_BYTES];
};
#define LEND_ENTRIES_STEP 8u /* a power of two */
struct lend_table {
    struct lend_entry *entry;         /* of the first n_kept; those behind have never been used */
    unsigned n, n_used, n_kept, most; /* most: that any adapter has */
    const char *what, *setting;       /* in messages; the setting that says how large it is */
};

struct lend_adapter {
    struct kernel *kernel;
    struct k_pci_dev *pci;
    unsigned index; /* among the host's adapters */
    uint32_t node;  /* on the fabric */
    /* Options of the host: how it calls an adapter or a switch in messages. NULL: not at all. */
    const char *(*name_of)(uint32_t node, void *context);
    void *context;
    unsigned n_cpus; /* the first n_cpus outgoing requesters are this host's root complexes */
    bool down;       /* the link was, at its last change */
    struct lend_table window[LEND_APERTURES], outgoing, incoming;
    unsigned window_log2[LEND_APERTURES];
    bool busy; /* a thread changes a table */
    struct k_wait_queue idle;
    /* If the NTB is behind an IOMMU: the domain of all requesters that come in from the fabric. */
    struct k_iommu_domain *domain;
    struct lend_ranges iova; /* of the domain */
};

/* Reads the sizes of the tables, creates the IOMMU domain, enters this host's CPUs as outgoing
 * requesters and enables both directions. 0; -ENODEV: no NTB answers; -ENOMEM: no IOMMU domain;
 * -ENOSPC: fewer outgoing entries than CPUs. After an error nothing is left behind. */
int lend_adapter_init(struct lend_adapter *adapter, struct k_pci_dev *pci, unsigned index,
                      struct lend_error *error);
/* Writes how messages call the setting `key` of the adapter or switch at `node`: "NAME.KEY". */
void lend_setting(const struct lend_adapter *adapter, uint32_t node, const char *key, char *text,
                  size_t room);
/* Disables both directions, waits until nothing is under way, and frees what the adapter holds.
 * `gone`: it no longer answers, and is not touched. */
void lend_adapter_release(struct lend_adapter *adapter, bool gone);
/* True: a cable is plugged in and its link is trained. */
bool lend_adapter_link_up(struct lend_adapter *adapter);

/* What adds, shares and removes entries below is for threads: one at a time changes the tables,
 * others wait. When a function returns, the entries that it gave are in the registers, whoever
 * wrote them. */

/* ---- Windows --------------------------------------------------------------------------------- */

/* A range of another node's addresses that windows of this NTB map. */
struct lend_map {
    unsigned aperture, first, n; /* windows `first` .. `first` + n - 1; n = 0: not mapped */
    uint64_t address;            /* of the first byte, in this host's tree */
    uint64_t bytes;
};
/* Maps bytes of the node from address `fabric` on (with NTB_FABRIC_REGISTERS set: its registers).
 * limit: all of it must lie below this address of our tree; 0: no limit. 0: *map is valid until
 * lend_unmap(). -EFBIG: larger than any aperture; -ENOSPC: not so many free windows in a row;
 * -ERANGE: there are, but not below the limit. */
int lend_map(struct lend_adapter *adapter, uint32_t node, uint64_t fabric, uint64_t bytes,
             uint64_t limit, const char *owner, struct lend_map *map, struct lend_error *error);
void lend_unmap(struct lend_adapter *adapter, struct lend_map *map);
/* Loads or stores 4 or 8 bytes at an offset of the mapped range, by a CPU of this host. */
uint64_t lend_map_read(struct lend_adapter *adapter, const struct lend_map *map, uint64_t offset,
                       unsigned bytes);
void lend_map_write(struct lend_adapter *adapter, const struct lend_map *map, uint64_t offset,
                    unsigned bytes, uint64_t value);
/* Stores whole cache lines, write-combining (k_write_lines()); lend_map_drain() waits until they
 * have left the CPU. */
void lend_map_write_lines(struct lend_adapter *adapter, const struct lend_map *map, uint64_t offset,
                          const void *from, size_t bytes);
void lend_map_drain(struct lend_adapter *adapter);
/* Windows in use, of both apertures. */
unsigned lend_windows_used(const struct lend_adapter *adapter);

/* ---- Requesters ------------------------------------------------------------------------------ */

/* Lets a device of this host (all its functions; `id` is the requester ID of one) send to the
 * fabric. Returns the index of its entry, which is its device number on the fabric, or -ENOSPC. */
int lend_outgoing_add(struct lend_adapter *adapter, uint16_t id, const char *owner,
                      struct lend_error *error);
/* Undoes one lend_outgoing_add(). True: that was the last; the device cannot send any more. */
bool lend_outgoing_remove(struct lend_adapter *adapter, unsigned index);
/* Lets a function on the fabric send to this host. *id: its requester ID here. Behind an IOMMU it
 * reaches what is exported and nothing else. 0, -ENOSPC, or an error of k_iommu_attach(). */
int lend_incoming_add(struct lend_adapter *adapter, uint32_t node, unsigned device,
                      unsigned function, const char *owner, uint16_t *id, struct lend_error *error);
/* The function sends no more, whoever has added it: when it returns, no request of it passes. The
 * entry is not free before each lend_incoming_add() has been undone. */
void lend_incoming_block(struct lend_adapter *adapter, uint16_t id);
/* Undoes one lend_incoming_add(). */
void lend_incoming_remove(struct lend_adapter *adapter, uint16_t id);

/* ---- Exports --------------------------------------------------------------------------------- */

/* Makes memory or registers of this host reachable from the fabric, in whole pages. *fabric: the
 * address of the first byte there. Behind an IOMMU the pages are aligned to the next power of two
 * of their size; without one it is the host-physical address. 0, -ENOSPC, or an error of
 * k_iommu_map(). */
int lend_export(struct lend_adapter *adapter, uint64_t address, uint64_t bytes, uint64_t *fabric,
                struct lend_error *error);
/* Undoes it; `fabric` as returned, `bytes` as exported. */
void lend_unexport(struct lend_adapter *adapter, uint64_t fabric, uint64_t bytes);

#endif
