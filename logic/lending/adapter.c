/*
 * What it does: keeps the tables of one adapter: windows and requesters, whose entries are counted;
 *   the IOMMU domain that all requesters from the fabric share; exports. It supports neither
 *   multicast nor hot plug of the adapter, and moves no window to make room for another.
 * Follows: SmartIO, 3.3, 4.3, 8.6; hw/ntb_regs.h.
 * Costs: a register write for each entry that changes; the calls of kapi.h charge the rest.
 */
#include "logic/lending/adapter.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_HOLDERS 3u /* named in a message */
#define IOVA_FIRST  (UINT64_C(1) << 32)
#define IOVA_END    (UINT64_C(1) << 39)

int lend_fail(struct lend_error *error, int code, const char *fmt, ...)
{
    va_list args;
    if (error == NULL)
        return code;
    error->code = code;
    va_start(args, fmt);
    vsnprintf(error->text, sizeof error->text, fmt, args);
    va_end(args);
    return code;
}

/* ---- Tables ---------------------------------------------------------------------------------- */

static void table_init(struct lend_table *table, unsigned n, unsigned most, const char *what,
                       const char *setting)
{
    *table = (struct lend_table){ .n = n, .most = most, .what = what, .setting = setting };
}

/* Makes room for entry i, most of which no host ever uses. */
static void table_grow(struct lend_table *table, unsigned i)
{
    if (i < table->n_kept)
        return;
    const unsigned wanted = i + 1 > 2 * table->n_kept ? i + 1 : 2 * table->n_kept;
    const unsigned n = (wanted + LEND_ENTRIES_STEP - 1) & ~(LEND_ENTRIES_STEP - 1u);
    struct lend_entry *grown = k_zalloc(n * sizeof grown[0]);
    if (table->n_kept != 0)
        memcpy(grown, table->entry, table->n_kept * sizeof grown[0]);
    k_free(table->entry);
    table->entry = grown;
    table->n_kept = n < table->n ? n : table->n;
}

static uint32_t refs_of(const struct lend_table *table, unsigned i)
{
    return i < table->n_kept ? table->entry[i].refs : 0;
}

static void entry_take(struct lend_table *table, unsigned i, uint64_t value, const char *owner)
{
    table_grow(table, i);
    struct lend_entry *entry = &table->entry[i];
    entry->value = value;
    entry->refs = 1;
    snprintf(entry->owner, sizeof entry->owner, "%s", owner);
    table->n_used++;
}

/* Lists the owners with most entries, largest first: "disk (16), nic0 (4)". */
static void list_holders(const struct lend_table *table, char *text, size_t room)
{
    const char *said[MAX_HOLDERS];
    size_t used = 0;
    text[0] = '\0';
    for (unsigned h = 0; h < MAX_HOLDERS; h++) {
        const char *most = NULL;
        unsigned most_n = 0;
        for (unsigned i = 0; i < table->n_kept; i++) {
            const char *owner = table->entry[i].owner;
            unsigned n = 0;
            bool known = table->entry[i].refs == 0;
            for (unsigned s = 0; s < h && !known; s++)
                known = strcmp(said[s], owner) == 0;
            for (unsigned k = i; k < table->n_kept && !known; k++)
                n += table->entry[k].refs != 0 && strcmp(table->entry[k].owner, owner) == 0;
            if (n > most_n) {
                most_n = n;
                most = owner;
            }
        }
        if (most == NULL)
            return;
        said[h] = most;
        int n = snprintf(text + used, room - used, "%s%s (%u)", h > 0 ? ", " : "", most, most_n);
        used += n > 0 ? (size_t)n : 0;
        if (used >= room)
            return;
    }
}

void lend_setting(const struct lend_adapter *adapter, uint32_t node, const char *key, char *text,
                  size_t room)
{
    const char *name = adapter->name_of != NULL ? adapter->name_of(node, adapter->context) : NULL;
    snprintf(text, room, "%s%s%s", name != NULL ? name : "", name != NULL ? "." : "", key);
}

static int table_full(const struct lend_adapter *adapter, const struct lend_table *table,
                      unsigned wanted, const char *owner, struct lend_error *error)
{
    const bool windows = table != &adapter->outgoing && table != &adapter->incoming;
    unsigned needed = table->n_used + wanted;
    char holders[80], key[80], remedy[160];
    if (error == NULL)
        return -ENOSPC;
    if (needed <= table->n) /* there are enough, but not in a row */
        needed = table->n + 1;
    if (windows) /* a power of two */
        needed = 1u << lend_order_of(needed);
    list_holders(table, holders, sizeof holders);
    lend_setting(adapter, adapter->node, table->setting, key, sizeof key);
    if (needed > table->most)
        snprintf(remedy, sizeof remedy, "%s cannot be more than %u", key, table->most);
    else
        snprintf(remedy, sizeof remedy, "%s has to be %u at least%s", key, needed,
                 windows ? ", its BAR as much larger" : "");
    return lend_fail(error, -ENOSPC, "%s: %u %s for %s: %u of %u in use, by %s; %s",
                     adapter->pci->device.name, wanted, table->what, owner, table->n_used, table->n,
                     holders, remedy);
}

/* Writes to registers take time. Without the lock, a thread that shares an entry would use it while
 * the thread that added it is still writing it. */
static void tables_lock(struct lend_adapter *adapter)
{
    while (adapter->busy)
        k_wait(adapter->kernel, &adapter->idle, UINT64_MAX);
    adapter->busy = true;
}

static void tables_unlock(struct lend_adapter *adapter)
{
    adapter->busy = false;
    k_wake(adapter->kernel, &adapter->idle);
}

/* ---- Windows --------------------------------------------------------------------------------- */

static uint64_t window_bytes(const struct lend_adapter *adapter, unsigned aperture)
{
    return UINT64_C(1) << adapter->window_log2[aperture];
}

static uint64_t address_of(const struct lend_adapter *adapter, unsigned aperture, unsigned window)
{
    return adapter->pci->bar_base[2 * aperture + 2] +
           ((uint64_t)window << adapter->window_log2[aperture]);
}

static void lut_write(struct lend_adapter *adapter, unsigned aperture, unsigned window,
                      uint64_t value)
{
    uint64_t table = aperture == 0 ? NTB_REG_LUT2 : NTB_REG_LUT4;
    k_writeq(adapter->pci, 0, table + 8 * (uint64_t)window, value);
}

/* A run of n adjacent windows: entry i shall hold value + i * step. */
struct run {
    unsigned aperture, n;
    uint64_t value, step, limit;
};

static bool run_shared(const struct lend_table *table, const struct run *run, unsigned first)
{
    for (unsigned i = 0; i < run->n; i++)
        if (refs_of(table, first + i) == 0 ||
            table->entry[first + i].value != run->value + i * run->step)
            return false;
    return true;
}

static bool run_free(const struct lend_table *table, const struct run *run, unsigned first)
{
    for (unsigned i = 0; i < run->n; i++)
        if (refs_of(table, first + i) != 0)
            return false;
    return true;
}

/* Finds the first run of the aperture for which fits() holds. *beyond: there is one, but it lies
 * above the limit. */
static bool find_run(const struct lend_adapter *adapter, const struct run *run,
                     bool (*fits)(const struct lend_table *, const struct run *, unsigned),
                     unsigned *first, bool *beyond)
{
    const struct lend_table *table = &adapter->window[run->aperture];
    for (unsigned i = 0; i + run->n <= table->n; i++) {
        if (!fits(table, run, i))
            continue;
        if (run->limit == 0 || address_of(adapter, run->aperture, i + run->n) <= run->limit) {
            *first = i;
            return true;
        }
        *beyond = true;
        return false; /* later runs lie higher */
    }
    return false;
}

static bool map_in(struct lend_adapter *adapter, unsigned aperture, uint64_t fabric, uint64_t bytes,
                   uint64_t limit, const char *owner, struct lend_map *map, bool *beyond)
{
    struct lend_table *table = &adapter->window[aperture];
    const uint64_t size = window_bytes(adapter, aperture), within = fabric & (size - 1);
    struct run run = { .aperture = aperture,
                       .n = (unsigned)((within + bytes + size - 1) >>
                                       adapter->window_log2[aperture]),
                       .value = (fabric - within) | NTB_LUT_VALID,
                       .step = size,
                       .limit = limit };
    unsigned first;
    bool shared = find_run(adapter, &run, run_shared, &first, beyond);
    if (!shared && !find_run(adapter, &run, run_free, &first, beyond))
        return false;
    for (unsigned i = 0; i < run.n; i++) {
        if (shared)
            table->entry[first + i].refs++;
        else
            entry_take(table, first + i, run.value + i * size, owner);
    }
    for (unsigned i = 0; i < run.n && !shared; i++)
        lut_write(adapter, aperture, first + i, run.value + i * size);
    *map = (struct lend_map){ .aperture = aperture,
                              .first = first,
                              .n = run.n,
                              .address = address_of(adapter, aperture, first) + within,
                              .bytes = bytes };
    return true;
}

static int map(struct lend_adapter *adapter, uint32_t node, uint64_t fabric, uint64_t bytes,
               uint64_t limit, const char *owner, struct lend_map *map, struct lend_error *error)
{
    uint64_t largest = 0;
    bool beyond = false;
    unsigned needed = 0, from = 0;
    *map = (struct lend_map){ .n = 0 };
    fabric |= (uint64_t)node << NTB_NODE_SHIFT;
    for (unsigned a = 0; a < LEND_APERTURES; a++) {
        const uint64_t all = (uint64_t)adapter->window[a].n << adapter->window_log2[a];
        const uint64_t within = fabric & (window_bytes(adapter, a) - 1);
        if (all > largest) {
            largest = all;
            from = a;
            needed = (unsigned)((within + bytes + window_bytes(adapter, a) - 1) >>
                                adapter->window_log2[a]);
        }
        if (all != 0 && bytes <= all - within &&
            map_in(adapter, a, fabric, bytes, limit, owner, map, &beyond))
            return 0;
    }
    if (bytes > largest)
        return lend_fail(error, -EFBIG,
                         "%s: %llu MiB for %s do not fit into its aperture of %llu MiB",
                         adapter->pci->device.name, (unsigned long long)(bytes >> 20), owner,
                         (unsigned long long)(largest >> 20));
    if (beyond)
        return lend_fail(error, -ERANGE,
                         "%s: %s reaches addresses below %#llx only, free windows begin at %#llx: "
                         "an IOMMU of its host?",
                         adapter->pci->device.name, owner, (unsigned long long)limit,
                         (unsigned long long)address_of(adapter, from, 0));
    return table_full(adapter, &adapter->window[from], needed, owner, error);
}

int lend_map(struct lend_adapter *adapter, uint32_t node, uint64_t fabric, uint64_t bytes,
             uint64_t limit, const char *owner, struct lend_map *result, struct lend_error *error)
{
    tables_lock(adapter);
    const int status = map(adapter, node, fabric, bytes, limit, owner, result, error);
    tables_unlock(adapter);
    return status;
}

void lend_unmap(struct lend_adapter *adapter, struct lend_map *map)
{
    struct lend_table *table = &adapter->window[map->aperture];
    tables_lock(adapter);
    for (unsigned i = map->first; i < map->first + map->n; i++) {
        struct lend_entry *entry = &table->entry[i];
        if (entry->refs > 1) {
            entry->refs--;
            continue;
        }
        entry->value = 0; /* cannot be shared any more, and is not free yet */
        lut_write(adapter, map->aperture, i, 0);
        entry->refs = 0;
        table->n_used--;
    }
    map->n = 0;
    tables_unlock(adapter);
}

uint64_t lend_map_read(struct lend_adapter *adapter, const struct lend_map *map, uint64_t offset,
                       unsigned bytes)
{
    return adapter->pci->ops->mmio_read(adapter->pci, map->address + offset, bytes);
}

void lend_map_write(struct lend_adapter *adapter, const struct lend_map *map, uint64_t offset,
                    unsigned bytes, uint64_t value)
{
    adapter->pci->ops->mmio_write(adapter->pci, map->address + offset, bytes, value);
}

void lend_map_write_lines(struct lend_adapter *adapter, const struct lend_map *map, uint64_t offset,
                          const void *from, size_t bytes)
{
    k_write_lines(adapter->pci, map->address + offset, from, bytes);
}

void lend_map_drain(struct lend_adapter *adapter)
{
    k_write_drain(adapter->pci);
}

unsigned lend_windows_used(const struct lend_adapter *adapter)
{
    return adapter->window[0].n_used + adapter->window[1].n_used;
}

/* ---- Requesters ------------------------------------------------------------------------------ */

/* Index of an entry with this value, or -1. */
static int table_find(const struct lend_table *table, uint64_t value)
{
    for (unsigned i = 0; i < table->n_kept; i++)
        if (table->entry[i].refs != 0 && table->entry[i].value == value)
            return (int)i;
    return -1;
}

static int table_free_entry(const struct lend_table *table)
{
    for (unsigned i = 0; i < table->n; i++)
        if (refs_of(table, i) == 0)
            return (int)i;
    return -1;
}

static int outgoing_add(struct lend_adapter *adapter, uint16_t id, const char *owner,
                        struct lend_error *error)
{
    const uint32_t value = NTB_OUTGOING_VALID | (id & NTB_OUTGOING_ID_MASK);
    int i = table_find(&adapter->outgoing, value);
    if (i >= 0) {
        adapter->outgoing.entry[i].refs++;
        return i;
    }
    i = table_free_entry(&adapter->outgoing);
    if (i < 0)
        return table_full(adapter, &adapter->outgoing, 1, owner, error);
    entry_take(&adapter->outgoing, (unsigned)i, value, owner);
    k_writel(adapter->pci, 0, NTB_REG_OUTGOING + 4 * (uint64_t)i, value);
    return i;
}

int lend_outgoing_add(struct lend_adapter *adapter, uint16_t id, const char *owner,
                      struct lend_error *error)
{
    tables_lock(adapter);
    const int index = outgoing_add(adapter, id, owner, error);
    tables_unlock(adapter);
    return index;
}

static bool outgoing_remove(struct lend_adapter *adapter, unsigned index)
{
    struct lend_entry *entry = &adapter->outgoing.entry[index];
    if (entry->refs > 1) {
        entry->refs--;
        return false;
    }
    entry->value = 0;
    k_writel(adapter->pci, 0, NTB_REG_OUTGOING + 4 * (uint64_t)index, 0);
    entry->refs = 0;
    adapter->outgoing.n_used--;
    return true;
}

bool lend_outgoing_remove(struct lend_adapter *adapter, unsigned index)
{
    tables_lock(adapter);
    const bool last = outgoing_remove(adapter, index);
    tables_unlock(adapter);
    return last;
}

static uint16_t incoming_id(const struct lend_adapter *adapter, unsigned index)
{
    return (uint16_t)((adapter->pci->id & 0xff00u) | (NTB_INCOMING_FUNCTION_BASE + index));
}

static int incoming_add(struct lend_adapter *adapter, uint32_t node, unsigned device,
                        unsigned function, const char *owner, uint16_t *id,
                        struct lend_error *error)
{
    const uint32_t value = NTB_INCOMING_VALID | node << NTB_INCOMING_NODE_SHIFT |
                           device << NTB_INCOMING_DEVICE_SHIFT | function;
    int i = table_find(&adapter->incoming, value);
    if (i >= 0) {
        adapter->incoming.entry[i].refs++;
        *id = incoming_id(adapter, (unsigned)i);
        return 0;
    }
    i = table_free_entry(&adapter->incoming);
    if (i < 0)
        return table_full(adapter, &adapter->incoming, 1, owner, error);
    *id = incoming_id(adapter, (unsigned)i);
    int status = adapter->domain != NULL ? k_iommu_attach(adapter->domain, *id) : 0;
    if (status != 0)
        return lend_fail(error, status, "%s: no place for requester %#x in its IOMMU domain",
                         adapter->pci->device.name, (unsigned)*id);
    entry_take(&adapter->incoming, (unsigned)i, value, owner);
    k_writel(adapter->pci, 0, NTB_REG_INCOMING + 4 * (uint64_t)i, value);
    return 0;
}

int lend_incoming_add(struct lend_adapter *adapter, uint32_t node, unsigned device,
                      unsigned function, const char *owner, uint16_t *id, struct lend_error *error)
{
    tables_lock(adapter);
    const int status = incoming_add(adapter, node, device, function, owner, id, error);
    tables_unlock(adapter);
    return status;
}

void lend_incoming_block(struct lend_adapter *adapter, uint16_t id)
{
    const unsigned i = (id & 0xffu) - NTB_INCOMING_FUNCTION_BASE;
    adapter->incoming.entry[i].value = 0; /* nobody shares it any more */
    k_writel(adapter->pci, 0, NTB_REG_INCOMING + 4 * (uint64_t)i, 0);
    k_readl(adapter->pci, 0, NTB_REG_INCOMING + 4 * (uint64_t)i);
}

static void incoming_remove(struct lend_adapter *adapter, uint16_t id)
{
    const unsigned i = (id & 0xffu) - NTB_INCOMING_FUNCTION_BASE;
    struct lend_entry *entry = &adapter->incoming.entry[i];
    if (entry->refs > 1) {
        entry->refs--;
        return;
    }
    entry->value = 0;
    k_writel(adapter->pci, 0, NTB_REG_INCOMING + 4 * (uint64_t)i, 0);
    if (adapter->domain != NULL)
        k_iommu_detach(adapter->domain, id);
    entry->refs = 0;
    adapter->incoming.n_used--;
}

void lend_incoming_remove(struct lend_adapter *adapter, uint16_t id)
{
    tables_lock(adapter);
    incoming_remove(adapter, id);
    tables_unlock(adapter);
}

/* ---- Exports --------------------------------------------------------------------------------- */

int lend_export(struct lend_adapter *adapter, uint64_t address, uint64_t bytes, uint64_t *fabric,
                struct lend_error *error)
{
    const uint64_t within = address % K_PAGE_BYTES, pages = lend_whole_pages(within + bytes);
    uint64_t iova;
    *fabric = address;
    if (adapter->domain == NULL)
        return 0;
    if (!lend_ranges_take(&adapter->iova, pages, UINT64_C(1) << lend_order_of(pages), &iova))
        return lend_fail(error, -ENOSPC, "%s: no I/O virtual addresses for %llu MiB",
                         adapter->pci->device.name, (unsigned long long)(pages >> 20));
    int status = k_iommu_map(adapter->domain, iova, address - within, pages, K_DMA_BOTH);
    *fabric = iova + within;
    if (status == 0)
        return 0;
    lend_ranges_give(&adapter->iova, iova);
    return lend_fail(error, status, "%s: %llu bytes could not be mapped in the IOMMU (%d)",
                     adapter->pci->device.name, (unsigned long long)pages, status);
}

void lend_unexport(struct lend_adapter *adapter, uint64_t fabric, uint64_t bytes)
{
    if (adapter->domain == NULL)
        return;
    const uint64_t within = fabric % K_PAGE_BYTES;
    if (k_iommu_unmap(adapter->domain, fabric - within, lend_whole_pages(within + bytes)) != 0)
        k_fault(adapter->kernel, "%s: %#llx was not exported", adapter->pci->device.name,
                (unsigned long long)fabric);
    lend_ranges_give(&adapter->iova, fabric - within);
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void find_tables(struct lend_adapter *adapter)
{
    const uint32_t windows = k_readl(adapter->pci, 0, NTB_REG_WINDOWS);
    const uint32_t log2 = k_readl(adapter->pci, 0, NTB_REG_WINDOW_LOG2);
    const uint32_t requesters = k_readl(adapter->pci, 0, NTB_REG_REQUESTERS);
    for (unsigned a = 0; a < LEND_APERTURES; a++) {
        table_init(&adapter->window[a], windows >> 16 * a & 0xffff, NTB_WINDOWS_MAX,
                   "windows in a row", a == 0 ? "bar2_windows" : "bar4_windows");
        adapter->window_log2[a] = log2 >> 8 * a & 0xff;
    }
    table_init(&adapter->outgoing, requesters & 0xffff, NTB_OUTGOING_MAX, "outgoing requester",
               "outgoing_requesters");
    table_init(&adapter->incoming, requesters >> 16, NTB_INCOMING_MAX, "incoming requester",
               "incoming_requesters");
}

static void tables_free(struct lend_adapter *adapter)
{
    for (unsigned a = 0; a < LEND_APERTURES; a++)
        k_free(adapter->window[a].entry);
    k_free(adapter->outgoing.entry);
    k_free(adapter->incoming.entry);
    lend_ranges_release(&adapter->iova);
}

static int cpus_add(struct lend_adapter *adapter, struct lend_error *error)
{
    uint16_t id;
    for (; k_root_requester(adapter->kernel, adapter->n_cpus, &id); adapter->n_cpus++) {
        int status = lend_outgoing_add(adapter, id, "CPUs", error);
        if (status < 0)
            return status;
    }
    return 0;
}

int lend_adapter_init(struct lend_adapter *adapter, struct k_pci_dev *pci, unsigned index,
                      struct lend_error *error)
{
    *adapter = (struct lend_adapter){ .kernel = pci->device.kernel, .pci = pci, .index = index };
    if (k_readl(pci, 0, NTB_REG_ID) != NTB_ID)
        return lend_fail(error, -ENODEV, "%s: no NTB answers", pci->device.name);
    find_tables(adapter);
    lend_ranges_init(&adapter->iova, IOVA_FIRST, IOVA_END);
    adapter->node = k_readl(pci, 0, NTB_REG_NODE);
    int status = cpus_add(adapter, error);
    if (status == 0 && k_iommu_on(adapter->kernel, pci->id)) {
        adapter->domain = k_iommu_domain_new(adapter->kernel, pci->id);
        if (adapter->domain == NULL)
            status = lend_fail(error, -ENOMEM, "%s: no IOMMU domain is left", pci->device.name);
    }
    if (status != 0) {
        tables_free(adapter);
        return status;
    }
    k_pci_enable(pci);
    k_writel(pci, 0, NTB_REG_CONTROL, NTB_CONTROL_SEND | NTB_CONTROL_ACCEPT);
    return 0;
}

void lend_adapter_release(struct lend_adapter *adapter, bool gone)
{
    if (!gone) {
        for (unsigned i = 0; i < adapter->n_cpus; i++)
            lend_outgoing_remove(adapter, i);
        k_writel(adapter->pci, 0, NTB_REG_CONTROL, 0);
        k_readl(adapter->pci, 0, NTB_REG_CONTROL); /* waits for what is under way */
    }
    if (adapter->domain != NULL)
        k_iommu_domain_free(adapter->domain);
    tables_free(adapter);
}

bool lend_adapter_link_up(struct lend_adapter *adapter)
{
    uint32_t status = k_readl(adapter->pci, 0, NTB_REG_STATUS);
    return status != UINT32_MAX && (status & NTB_STATUS_LINK_UP) != 0;
}
