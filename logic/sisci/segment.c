/*
 * What it does: local segments: ordinary memory of this host, memory of the process, or registers
 *   and memory of a device; prepared and exported by adapter; taken back from those that are
 *   connected.
 * Follows: SISCI API, SCICreateSegment(), SCIRegisterSegmentMemory(), SCIAttachPhysicalMemory(),
 *   SCIPrepareSegment(), SCISetSegmentAvailable(), SCISetSegmentUnavailable(), SCIRemoveSegment().
 * Costs: a system call each; clearing the memory; IOMMU mappings; a request to each connected host.
 */
#include <stdio.h>

#include "logic/sisci/sisci_internal.h"

#define FIRST_FREE_NUMBER UINT32_C(0x80000000) /* for segments that nobody has given a number */
#define STEP_PS           (20 * K_US)

static const char *name_of(const struct sisci *sisci)
{
    return lend_options_of(sisci->host)->name;
}

/* ---- Making ---------------------------------------------------------------------------------- */

struct sisci_segment *sisci_segment_find(const struct sisci *sisci, uint32_t number)
{
    struct sisci_segment *s = sisci->segments;
    while (s != NULL && (!s->numbered || s->number != number))
        s = s->next;
    return s;
}

static void clear(struct kernel *kernel, uint64_t at, uint64_t bytes)
{
    static const uint8_t zeros[K_PAGE_BYTES];
    for (uint64_t i = 0; i < bytes; i += K_PAGE_BYTES)
        k_store(kernel, (struct kaddr){ at + i }, zeros, K_PAGE_BYTES);
}

int sisci_segment_new(struct sisci *sisci, const struct sisci_segment_options *options,
                      struct sisci_segment **result, struct lend_error *error)
{
    struct kaddr at = { options->at };
    const uint64_t bytes = lend_whole_pages(options->bytes);
    uint32_t number = options->number;
    if (options->bytes == 0)
        return lend_fail(error, -EINVAL, "%s: a segment of no bytes", name_of(sisci));
    while (number == 0 || (options->number == 0 && sisci_segment_find(sisci, number) != NULL))
        number = FIRST_FREE_NUMBER + ++sisci->last_segment;
    if (sisci_segment_find(sisci, number) != NULL)
        return lend_fail(error, -EEXIST, "%s: segment %u exists", name_of(sisci), number);
    if (at.v == 0 && k_pages_get(sisci->kernel, options->node, bytes, &at) != 0)
        return lend_fail(error, -ENOMEM, "%s: no %llu KiB of contiguous memory for segment %u",
                         name_of(sisci), (unsigned long long)(bytes >> 10), number);
    struct sisci_segment *s = k_zalloc(sizeof *s);
    *s = (struct sisci_segment){ .next = sisci->segments,
                                 .sisci = sisci,
                                 .numbered = true,
                                 .number = number,
                                 .address = at.v,
                                 .bytes = bytes,
                                 .owned = options->at == 0,
                                 .host = sisci->id };
    sisci->segments = s;
    if (s->owned)
        clear(sisci->kernel, at.v, bytes);
    *result = s;
    return 0;
}

int sisci_segment_new_exported(struct sisci *sisci, uint64_t bytes, int node,
                               struct sisci_segment **result, struct lend_error *error)
{
    const struct sisci_segment_options options = { .bytes = bytes, .node = node };
    struct sisci_segment *s;
    int status = sisci_segment_new(sisci, &options, &s, error);
    if (status != 0)
        return status;
    for (unsigned a = 0; status == 0 && lend_adapter_at(sisci->host, a) != NULL; a++) {
        status = sisci_export_get(s, a, error);
        s->at[a].prepared = s->at[a].exported = status == 0;
    }
    if (status == 0)
        *result = s;
    else
        sisci_memory_end(s);
    return status;
}

void sisci_memory_end(struct sisci_segment *s)
{
    s->dying = true;
    sisci_segment_release(s);
}

/* Makes a segment of a process. */
static enum sisci_error make(struct sisci_process *process,
                             const struct sisci_segment_options *options, sisci_segment_fn *changed,
                             void *context, struct sisci_segment **segment,
                             struct lend_error *error)
{
    struct sisci *sisci = process->sisci;
    k_syscall(sisci->kernel);
    lend_service_lock(sisci->host);
    const int status = sisci_segment_new(sisci, options, segment, error);
    if (status == 0) {
        (*segment)->process = process;
        (*segment)->changed = changed;
        (*segment)->context = context;
    }
    lend_service_unlock(sisci->host);
    return sisci_error_of(status);
}

enum sisci_error sisci_segment_create(struct sisci_process *process, uint32_t number,
                                      uint64_t bytes, int node, sisci_segment_fn *changed,
                                      void *context, struct sisci_segment **segment,
                                      struct lend_error *error)
{
    const struct sisci_segment_options options = { .number = number, .bytes = bytes, .node = node };
    return make(process, &options, changed, context, segment, error);
}

static int check_pages(const struct sisci *sisci, uint64_t at, uint64_t bytes,
                       struct lend_error *error)
{
    return at % K_PAGE_BYTES == 0 && bytes % K_PAGE_BYTES == 0
               ? 0
               : lend_fail(error, -EINVAL, "%s: a segment is of whole pages", name_of(sisci));
}

enum sisci_error sisci_segment_attach(struct sisci_process *process, uint32_t number,
                                      struct kaddr at, uint64_t bytes, sisci_segment_fn *changed,
                                      void *context, struct sisci_segment **segment,
                                      struct lend_error *error)
{
    const struct sisci_segment_options options = { .number = number, .at = at.v, .bytes = bytes };
    const int status = check_pages(process->sisci, at.v, bytes, error);
    if (status != 0 || at.v == 0)
        return SISCI_ERR_ILLEGAL_PARAMETER;
    return make(process, &options, changed, context, segment, error);
}

enum sisci_error sisci_segment_attach_bar(struct sisci_process *process, uint32_t number,
                                          struct k_pci_dev *pci, unsigned bar, uint64_t offset,
                                          uint64_t bytes, struct sisci_segment **segment,
                                          struct lend_error *error)
{
    uint32_t lender;
    uint16_t id;
    if (bar >= K_PCI_BARS || offset >= pci->bar_bytes[bar] ||
        bytes > pci->bar_bytes[bar] - offset) {
        lend_fail(error, -EINVAL, "%s: no %#llx bytes at %#llx of base address %u",
                  pci->device.name, (unsigned long long)bytes, (unsigned long long)offset, bar);
        return SISCI_ERR_ILLEGAL_PARAMETER;
    }
    const enum sisci_error result =
        sisci_segment_attach(process, number, (struct kaddr){ pci->bar_base[bar] + offset }, bytes,
                             NULL, NULL, segment, error);
    if (result != SISCI_OK)
        return result;
    (*segment)->pci = pci;
    (*segment)->bar = bar;
    (*segment)->bar_offset = offset;
    if (lend_borrowed_from(process->sisci->host, pci, &lender, &id)) {
        (*segment)->host = lender;
        (*segment)->id = id;
    }
    return SISCI_OK;
}

struct kaddr sisci_segment_memory(const struct sisci_segment *s)
{
    return (struct kaddr){ s->pci == NULL ? s->address : 0 };
}

uint64_t sisci_segment_bytes(const struct sisci_segment *s)
{
    return s->bytes;
}

uint32_t sisci_segment_number(const struct sisci_segment *s)
{
    return s->number;
}

/* ---- Exporting ------------------------------------------------------------------------------- */

/* Does `one` for an adapter, or for each; after a failure it is done for none. */
static enum sisci_error by_adapter(struct sisci_segment *s, unsigned adapter,
                                   int (*one)(struct sisci_segment *, unsigned,
                                              struct lend_error *),
                                   struct lend_error *error)
{
    struct sisci *sisci = s->sisci;
    struct sisci_export was[LEND_ADAPTERS_MAX];
    int status = 0;
    k_syscall(sisci->kernel);
    if (s->host != sisci->id) {
        lend_fail(error, -EPERM, "%s: segment %u is a device of host %u", name_of(sisci), s->number,
                  s->host);
        return SISCI_ERR_ILLEGAL_OPERATION;
    }
    if (adapter != SISCI_ANY && sisci_adapter_check(sisci, adapter, error) != 0)
        return SISCI_ERR_NO_SUCH_ADAPTERNO;
    lend_service_lock(sisci->host);
    memcpy(was, s->at, sizeof was);
    for (unsigned a = 0; status == 0 && lend_adapter_at(sisci->host, a) != NULL; a++)
        if (adapter == SISCI_ANY || adapter == a)
            status = one(s, a, error);
    for (unsigned a = 0; status != 0 && a < LEND_ADAPTERS_MAX; a++) {
        s->at[a].exported = was[a].exported;
        if (s->at[a].prepared && !was[a].prepared) {
            s->at[a].prepared = false;
            sisci_export_put(s, a);
        }
    }
    lend_service_unlock(sisci->host);
    return status == -ENXIO ? SISCI_ERR_SEGMENT_NOT_PREPARED : sisci_error_of(status);
}

static int prepare_one(struct sisci_segment *s, unsigned adapter, struct lend_error *error)
{
    const int status = s->at[adapter].prepared ? 0 : sisci_export_get(s, adapter, error);
    if (status == 0)
        s->at[adapter].prepared = true;
    return status;
}

enum sisci_error sisci_segment_prepare(struct sisci_segment *s, unsigned adapter,
                                       struct lend_error *error)
{
    return by_adapter(s, adapter, prepare_one, error);
}

static int export_one(struct sisci_segment *s, unsigned adapter, struct lend_error *error)
{
    if (!s->at[adapter].prepared)
        return lend_fail(error, -ENXIO, "%s: segment %u is not prepared for adapter %u",
                         name_of(s->sisci), s->number, adapter);
    s->at[adapter].exported = true;
    return 0;
}

static int export_prepared(struct sisci_segment *s, unsigned adapter, struct lend_error *error)
{
    (void)error;
    s->at[adapter].exported = s->at[adapter].prepared;
    return 0;
}

enum sisci_error sisci_segment_export(struct sisci_segment *s, unsigned adapter,
                                      struct lend_error *error)
{
    bool prepared = false;
    for (unsigned a = 0; a < LEND_ADAPTERS_MAX; a++)
        prepared = prepared || s->at[a].prepared;
    return by_adapter(s, adapter, adapter == SISCI_ANY && prepared ? export_prepared : export_one,
                      error);
}

/* ---- Taking back ----------------------------------------------------------------------------- */

/* Tells one connected host. The link may end meanwhile. */
static void tell(struct sisci *sisci, struct lend_connection *c, uint32_t remote)
{
    const struct wire_number request = { .op = OP_TAKEN_BACK, .number = remote };
    sisci_ask(sisci, c, &request, sizeof request, NULL, 0, NULL);
    sisci_put(&c);
}

/* Tells all that are connected, each once. Links that are made meanwhile cannot be: the segment is
 * not exported any more. */
static void tell_all(struct sisci_segment *s)
{
    struct sisci *sisci = s->sisci;
    uint32_t told = 0;
    for (;;) {
        struct sisci_link *next = NULL;
        for (struct sisci_link *link = sisci->links; link != NULL; link = link->next)
            if (link->segment == s && link->number > told &&
                (next == NULL || link->number < next->number))
                next = link;
        if (next == NULL)
            return;
        told = next->number;
        if (next->connection != NULL)
            lend_service_get(next->connection);
        tell(sisci, next->connection, next->remote);
    }
}

bool sisci_segment_withdraw(struct sisci_segment *s, struct sisci_process *process)
{
    struct sisci *sisci = s->sisci;
    const uint64_t until_ps = k_now_ps(sisci->kernel) + lend_options_of(sisci->host)->reclaim_ps;
    for (unsigned a = 0; a < LEND_ADAPTERS_MAX; a++)
        s->at[a].exported = false;
    if (process != NULL)
        sisci_unlock(process); /* its own thread undoes what it is connected to itself */
    tell_all(s);
    while (s->n_links != 0 && k_now_ps(sisci->kernel) < until_ps)
        k_sleep(sisci->kernel, STEP_PS);
    if (process != NULL)
        sisci_lock(process);
    return s->n_links == 0;
}

enum sisci_error sisci_segment_unexport(struct sisci_segment *s, bool force,
                                        struct lend_error *error)
{
    k_syscall(s->sisci->kernel);
    for (unsigned a = 0; a < LEND_ADAPTERS_MAX; a++)
        s->at[a].exported = false;
    if (!force || sisci_segment_withdraw(s, NULL))
        return SISCI_OK;
    lend_fail(error, -ETIMEDOUT, "%s: %u hosts still use segment %u", name_of(s->sisci), s->n_links,
              s->number);
    return SISCI_ERR_TIMEOUT;
}

enum sisci_error sisci_segment_remove(struct sisci_segment *s, struct lend_error *error)
{
    struct sisci_process *process = s->process;
    struct sisci *sisci = s->sisci;
    int status = 0;
    k_syscall(sisci->kernel);
    sisci_lock_idle(process, s);
    lend_service_lock(sisci->host);
    if (s->n_links + s->n_grants + s->n_windows != 0 || s->group_host != 0)
        status = lend_fail(
            error, -EBUSY,
            "%s: segment %u has %u connections, %u windows of devices of other hosts and %u of "
            "ours",
            name_of(sisci), s->number, s->n_links, s->n_grants, s->n_windows);
    else
        sisci_memory_end(s);
    lend_service_unlock(sisci->host);
    sisci_unlock(process);
    return sisci_error_of(status);
}

void sisci_segment_end(struct sisci_segment *s, struct sisci_process *process)
{
    struct sisci *sisci = s->sisci;
    if (s->group_host != 0)
        sisci_group_unsubscribe(s, NULL);
    sisci_segment_withdraw(s, process);
    lend_service_lock(sisci->host);
    sisci_reports_drop(s);
    s->process = NULL;
    sisci_memory_end(s);
    lend_service_unlock(sisci->host);
}
