/*
 * What it does: segments that belong to a device: memory that the lender allocates near it, and the
 *   directory in which borrowers find each other's.
 * Follows: SmartIO, 6.1, 7.4.1; SISCI API, SCICreateDeviceSegment(), SCI_MEMTYPE_SHARED and
 *   PRIVATE.
 * Costs: clearing the memory; IOMMU mappings, once per adapter.
 */
#include "logic/sisci/sisci_internal.h"

static const char *device_name(const struct sisci_lent *lent)
{
    return lend_claim_pci(lent->lease)->device.name;
}

void sisci_entry_end(struct sisci_lent *lent, struct sisci_entry *entry)
{
    entry->borrower = NULL;
    if (entry->memory != NULL && !lend_claim_isolated(lent->lease))
        return;
    struct sisci_segment *memory = entry->memory;
    K_LIST_REMOVE(lent->entries, entry);
    k_free(entry);
    if (memory != NULL)
        sisci_memory_end(memory);
}

static struct sisci_entry *entry_find(const struct sisci_lent *lent, uint32_t number)
{
    struct sisci_entry *entry = lent->entries;
    while (entry != NULL && (entry->borrower == NULL || entry->number != number))
        entry = entry->next;
    return entry;
}

/* Adds an entry, unless the request has done so already. */
static int entry_add(struct sisci_borrower *b, const struct wire_entry *request,
                     struct sisci_entry **result, struct lend_error *error)
{
    struct sisci_entry *entry = *result = entry_find(b->lent, request->number);
    if (entry != NULL)
        return entry->borrower == b && entry->key == request->segment
                   ? 0
                   : lend_fail(error, -EEXIST, "%s has a segment %u", device_name(b->lent),
                               request->number);
    entry = k_zalloc(sizeof *entry);
    *entry = (struct sisci_entry){ .next = b->lent->entries,
                                   .borrower = b,
                                   .number = request->number,
                                   .host = request->host,
                                   .segment = request->segment,
                                   .key = request->segment,
                                   .shared = request->shared != 0 };
    b->lent->entries = entry;
    *result = entry;
    return 0;
}

/* Memory near the device. */
static int allocate(struct sisci *sisci, struct sisci_borrower *b, struct sisci_entry *entry,
                    uint64_t bytes, struct lend_error *error)
{
    const int node = lend_claim_pci(b->lent->lease)->device.node;
    struct sisci_segment *s;
    const int status = sisci_segment_new_exported(sisci, bytes, node, &s, error);
    if (status != 0)
        return status;
    entry->memory = s;
    entry->host = sisci->id;
    entry->segment = s->number;
    return 0;
}

int sisci_serve_allocate(struct sisci *sisci, struct lend_connection *c, const void *body,
                         void *reply, size_t *bytes, struct lend_error *error)
{
    struct wire_entry request;
    struct sisci_entry *entry;
    memcpy(&request, body, sizeof request);
    struct sisci_borrower *b = sisci_borrower_find(sisci, c, request.borrower, error);
    int status = b == NULL ? -ENOTCONN : entry_add(b, &request, &entry, error);
    if (status == 0 && entry->memory == NULL &&
        (status = allocate(sisci, b, entry, request.bytes, error)) != 0)
        sisci_entry_end(b->lent, entry);
    if (status != 0)
        return status;
    request.host = entry->host;
    request.segment = entry->segment;
    return sisci_answer(reply, bytes, &request, sizeof request);
}

int sisci_serve_publish(struct sisci *sisci, struct lend_connection *c, const void *body,
                        void *reply, size_t *bytes, struct lend_error *error)
{
    struct wire_entry request;
    struct sisci_entry *entry;
    (void)reply;
    (void)bytes;
    memcpy(&request, body, sizeof request);
    struct sisci_borrower *b = sisci_borrower_find(sisci, c, request.borrower, error);
    return b == NULL ? -ENOTCONN : entry_add(b, &request, &entry, error);
}

/* The caller's own, or another's that is shared. */
static struct sisci_entry *entry_for(struct sisci *sisci, struct lend_connection *c,
                                     const struct wire_entry *request, struct lend_error *error)
{
    struct sisci_borrower *b = sisci_borrower_find(sisci, c, request->borrower, error);
    struct sisci_entry *entry = b != NULL ? entry_find(b->lent, request->number) : NULL;
    if (entry != NULL && (entry->borrower == b || entry->shared))
        return entry;
    if (b != NULL)
        lend_fail(error, -ENOENT, "%s has no segment %u", device_name(b->lent), request->number);
    return NULL;
}

int sisci_serve_withdraw(struct sisci *sisci, struct lend_connection *c, const void *body,
                         void *reply, size_t *bytes, struct lend_error *error)
{
    struct wire_entry request;
    (void)reply;
    (void)bytes;
    memcpy(&request, body, sizeof request);
    struct sisci_entry *entry = entry_for(sisci, c, &request, error);
    if (entry == NULL || entry->borrower->number != request.borrower)
        return -ENOENT;
    sisci_entry_end(entry->borrower->lent, entry);
    return 0;
}

int sisci_serve_look_up(struct sisci *sisci, struct lend_connection *c, const void *body,
                        void *reply, size_t *bytes, struct lend_error *error)
{
    struct wire_entry request;
    memcpy(&request, body, sizeof request);
    const struct sisci_entry *entry = entry_for(sisci, c, &request, error);
    if (entry == NULL)
        return -ENOENT;
    request.host = entry->host;
    request.segment = entry->segment;
    return sisci_answer(reply, bytes, &request, sizeof request);
}
