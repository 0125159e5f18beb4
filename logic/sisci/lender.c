/*
 * What it does: the lender's side of devices that processes have borrowed: who has them, what is
 *   mapped for them, the segments that belong to them. With an IOMMU a device has a domain of its
 *   own that holds what is mapped for it and nothing else.
 * Follows: SmartIO, 6.1, 8.1.
 * Costs: table entries, IOMMU mappings and configuration accesses as they come.
 *
 * A borrower is a process of some host, by its number. What it holds hangs on it, and on the
 * connection by which it was asked for: a path that ends takes its windows along, a host that is
 * lost all of its borrowers. The others keep what they have. Memory that was allocated here for a
 * borrower is freed when nobody can reach it any more: without an IOMMU the device might still know
 * its address, so it stays until the last borrower is gone and the device is stopped.
 */
#include <stdio.h>

#include "logic/sisci/sisci_internal.h"

static uint32_t host_of(const struct sisci *sisci, const struct lend_connection *c)
{
    return c != NULL ? lend_service_peer(c) : sisci->id;
}

static const char *device_name(const struct sisci_lent *lent)
{
    return lend_claim_pci(lent->lease)->device.name;
}

/* ---- Finding --------------------------------------------------------------------------------- */

static struct sisci_lent *lent_find(struct sisci *sisci, uint16_t id)
{
    struct sisci_lent *lent = sisci->lents;
    while (lent != NULL && lent->id != id)
        lent = lent->next;
    return lent;
}

struct sisci_lent *sisci_lent_to(struct sisci *sisci, struct lend_connection *c, uint16_t id)
{
    struct sisci_lent *lent = lent_find(sisci, id);
    struct sisci_borrower *b = lent != NULL ? lent->borrowers : NULL;
    while (b != NULL && b->host != host_of(sisci, c))
        b = b->next;
    return b != NULL ? lent : NULL;
}

struct sisci_borrower *sisci_borrower_find(struct sisci *sisci, struct lend_connection *c,
                                           uint32_t number, struct lend_error *error)
{
    for (struct sisci_lent *lent = sisci->lents; lent != NULL; lent = lent->next)
        for (struct sisci_borrower *b = lent->borrowers; b != NULL; b = b->next)
            if (b->number == number && b->host == host_of(sisci, c))
                return b;
    lend_fail(error, -ENOTCONN, "%s: borrower %u is not known any more",
              lend_options_of(sisci->host)->name, number);
    return NULL;
}

/* ---- Windows --------------------------------------------------------------------------------- */

struct sisci_mapping *sisci_mapping_add(struct sisci *sisci, struct sisci_borrower *b,
                                        struct lend_connection *c, struct lend_mapping *mapping)
{
    struct sisci_mapping *m = k_zalloc(sizeof *m);
    *m = (struct sisci_mapping){
        .next = b->mappings, .number = ++sisci->last_number, .connection = c, .mapping = mapping
    };
    b->mappings = m;
    return m;
}

static void mapping_end(struct sisci_borrower *b, struct sisci_mapping *m)
{
    struct sisci_segment *s = m->segment;
    K_LIST_REMOVE(b->mappings, m);
    lend_claim_close(b->lent->lease, m->mapping);
    k_free(m);
    if (s == NULL)
        return;
    s->n_windows--;
    sisci_segment_release(s);
}

static struct sisci_mapping *mapping_find(struct sisci_borrower *b, uint32_t number)
{
    struct sisci_mapping *m = b->mappings;
    while (m != NULL && m->number != number)
        m = m->next;
    return m;
}

/* Without a connection the path is the best one to the host; the caller's own is that of the
 * connection. */
static int find_path(struct sisci *sisci, const struct sisci_borrower *b, struct lend_connection *c,
                     uint32_t host, struct lend_path *path, struct lend_error *error)
{
    if (c != NULL && host == lend_service_peer(c)) {
        *path = (struct lend_path){ .peer = host,
                                    .adapter = lend_service_adapter(c)->index,
                                    .node = lend_service_node(c),
                                    .peer_adapter = lend_service_peer_adapter(c) };
        return 0;
    }
    return lend_claim_path(sisci->host, lend_claim_near(b->lent->lease), host, path, error);
}

int sisci_serve_window_open(struct sisci *sisci, struct lend_connection *c, const void *body,
                            void *reply, size_t *bytes, struct lend_error *error)
{
    struct wire_window request;
    struct lend_path path;
    struct lend_requester requester;
    struct lend_mapping *mapping;
    memcpy(&request, body, sizeof request);
    struct sisci_borrower *b = sisci_borrower_find(sisci, c, request.borrower, error);
    int status = b == NULL ? -ENOTCONN : find_path(sisci, b, c, request.host, &path, error);
    if (status == 0)
        status = lend_claim_open(b->lent->lease, &path, &mapping, &requester, error);
    if (status != 0)
        return status;
    const struct wire_window_opened opened = { .mapping =
                                                   sisci_mapping_add(sisci, b, c, mapping)->number,
                                               .peer_adapter = requester.peer_adapter,
                                               .node = requester.node,
                                               .device = requester.device,
                                               .function = requester.function,
                                               .n_cpus = requester.n_cpus,
                                               .payload_bytes = requester.payload_bytes };
    return sisci_answer(reply, bytes, &opened, sizeof opened);
}

int sisci_serve_window_map(struct sisci *sisci, struct lend_connection *c, const void *body,
                           void *reply, size_t *bytes, struct lend_error *error)
{
    struct wire_window request;
    uint64_t dma;
    memcpy(&request, body, sizeof request);
    struct sisci_borrower *b = sisci_borrower_find(sisci, c, request.borrower, error);
    struct sisci_mapping *m = b != NULL ? mapping_find(b, request.mapping) : NULL;
    if (m == NULL)
        return lend_fail(error, -ENOTCONN, "window %u is over", request.mapping);
    const int status = lend_claim_map(b->lent->lease, m->mapping, request.fabric, request.bytes,
                                      (enum k_dma_direction)request.direction, &dma, error);
    return status == 0 ? sisci_answer(reply, bytes, &dma, sizeof dma) : status;
}

/* Answers to the device's reads come at the payload size of this host's tree. */
static int check_payload(const struct sisci_borrower *b, const struct wire_window *request,
                         struct lend_error *error)
{
    const unsigned device = lend_claim_payload_of(b->lent->lease);
    const unsigned tree = lend_claim_tree_payload(b->lent->lease);
    if (device == tree || !(request->direction & K_DMA_TO_DEVICE))
        return 0;
    return lend_fail(error, -EMSGSIZE,
                     "%s: payloads of %u bytes for its borrowers, of %u bytes here: answers to its "
                     "reads would not get through",
                     device_name(b->lent), device, tree);
}

int sisci_serve_window_here(struct sisci *sisci, struct lend_connection *c, const void *body,
                            void *reply, size_t *bytes, struct lend_error *error)
{
    struct wire_window request;
    struct lend_mapping *mapping;
    uint64_t dma;
    memcpy(&request, body, sizeof request);
    struct sisci_borrower *b = sisci_borrower_find(sisci, c, request.borrower, error);
    if (b == NULL)
        return -ENOTCONN;
    struct sisci_segment *s = sisci_segment_named(sisci, c, &request.segment, error);
    if (s == NULL)
        return -ENOENT;
    int status = request.offset > s->bytes || request.bytes > s->bytes - request.offset
                     ? lend_fail(error, -EDOM, "a segment of %#llx bytes",
                                 (unsigned long long)s->bytes)
                     : 0;
    if (status == 0 && s->pci == NULL)
        status = check_payload(b, &request, error);
    s->n_windows++; /* it stays while we map it */
    if (status == 0)
        status = lend_claim_map_here(b->lent->lease, s->address + request.offset, request.bytes,
                                     (enum k_dma_direction)request.direction, &mapping, &dma,
                                     error);
    if (status != 0) {
        s->n_windows--;
        sisci_segment_release(s);
        return status;
    }
    struct sisci_mapping *m = sisci_mapping_add(sisci, b, c, mapping);
    m->segment = s;
    const struct wire_window_here here = { .mapping = m->number, .dma = dma };
    return sisci_answer(reply, bytes, &here, sizeof here);
}

int sisci_serve_window_close(struct sisci *sisci, struct lend_connection *c, const void *body,
                             void *reply, size_t *bytes, struct lend_error *error)
{
    struct wire_window request;
    (void)reply;
    (void)bytes;
    memcpy(&request, body, sizeof request);
    struct sisci_borrower *b = sisci_borrower_find(sisci, c, request.borrower, error);
    struct sisci_mapping *m = b != NULL ? mapping_find(b, request.mapping) : NULL;
    if (m == NULL)
        return lend_fail(error, -ENOTCONN, "window %u is over", request.mapping);
    mapping_end(b, m);
    return 0;
}

/* ---- Borrowers ------------------------------------------------------------------------------- */

static void device_info(struct sisci *sisci, const struct lend_info *info,
                        const struct k_pci_dev *pci, struct sisci_device_info *out)
{
    const struct sisci_lent *lent = lent_find(sisci, info->id);
    *out = (struct sisci_device_info){ .name = { sisci->id, info->id },
                                       .vendor_id = info->vendor_id,
                                       .device_id = info->device_id,
                                       .class_code = pci->class_code,
                                       .lent_to = lent == NULL ? info->lent_to : 0,
                                       .dma_bits = info->dma_bits };
    memcpy(out->bar_bytes, pci->bar_bytes, sizeof out->bar_bytes);
    memcpy(out->text, info->name, sizeof out->text);
    for (const struct sisci_borrower *b = lent != NULL ? lent->borrowers : NULL; b; b = b->next) {
        out->n_borrowers++;
        out->exclusive = b->exclusive ? b->host : 0;
    }
}

int sisci_serve_device_at(struct sisci *sisci, struct lend_connection *c, const void *body,
                          void *reply, size_t *bytes, struct lend_error *error)
{
    struct wire_number request;
    struct sisci_device_info out;
    struct lend_info info;
    struct k_pci_dev *pci;
    (void)c;
    memcpy(&request, body, sizeof request);
    if (!lend_offered(sisci->host, request.number, &info, &pci))
        return lend_fail(error, -ENOENT, "%s offers %u devices or fewer",
                         lend_options_of(sisci->host)->name, request.number);
    device_info(sisci, &info, pci, &out);
    return sisci_answer(reply, bytes, &out, sizeof out);
}

/* The last borrower is gone. */
static void lent_end(struct sisci *sisci, struct sisci_lent *lent)
{
    K_LIST_REMOVE(sisci->lents, lent);
    lend_claim_end(lent->lease, lent->unclean);
    while (lent->entries != NULL) {
        struct sisci_entry *entry = lent->entries;
        lent->entries = entry->next;
        sisci_memory_end(entry->memory);
        k_free(entry);
    }
    k_free(lent);
}

/* unclean: it was lost, and the device may be in the midst of its work. */
static void borrower_end(struct sisci *sisci, struct sisci_borrower *b, bool unclean)
{
    struct sisci_lent *lent = b->lent;
    while (b->mappings != NULL)
        mapping_end(b, b->mappings);
    for (struct sisci_entry *entry = lent->entries; entry != NULL;) {
        struct sisci_entry *next = entry->next;
        if (entry->borrower == b)
            sisci_entry_end(lent, entry);
        entry = next;
    }
    lent->unclean = lent->unclean || unclean;
    K_LIST_REMOVE(lent->borrowers, b);
    k_free(b);
    if (lent->borrowers == NULL)
        lent_end(sisci, lent);
}

static int claim(struct sisci *sisci, uint16_t id, struct sisci_lent **result,
                 struct lend_error *error)
{
    struct lend_lease *lease;
    const int status = lend_claim(sisci->host, id, &lease, error);
    if (status != 0) /* device lending has it: that is not for SISCI to wait for */
        return status == -EBUSY ? -EAGAIN : status;
    struct sisci_lent *lent = k_zalloc(sizeof *lent);
    *lent = (struct sisci_lent){ .next = sisci->lents, .lease = lease, .id = id };
    sisci->lents = lent;
    *result = lent;
    return 0;
}

static int may_borrow(const struct sisci_lent *lent, bool exclusive, struct lend_error *error)
{
    const struct sisci_borrower *b = lent->borrowers;
    if (b == NULL || (!exclusive && !b->exclusive))
        return 0;
    return lend_fail(error, -EBUSY, "%s is borrowed by host %u%s", device_name(lent), b->host,
                     b->exclusive ? ", exclusively" : "");
}

/* The borrower that the request has made already, or NULL. */
static struct sisci_borrower *borrower_made(const struct sisci *sisci,
                                            const struct lend_connection *c,
                                            const struct sisci_lent *lent, uint32_t key)
{
    struct sisci_borrower *b = c != NULL && lent != NULL ? lent->borrowers : NULL;
    while (b != NULL && (b->host != host_of(sisci, c) || b->key != key ||
                         b->incarnation != lend_service_incarnation(c)))
        b = b->next;
    return b;
}

/* Finds or claims the device and adds a borrower to it. */
static int borrower_new(struct sisci *sisci, struct lend_connection *c,
                        const struct wire_borrow *request, struct sisci_borrower **result,
                        struct lend_error *error)
{
    struct sisci_lent *lent = lent_find(sisci, request->id);
    const bool exclusive = request->how == SISCI_EXCLUSIVE, first = lent == NULL;
    if ((*result = borrower_made(sisci, c, lent, request->key)) != NULL)
        return 0;
    int status = first ? claim(sisci, request->id, &lent, error) : 0;
    if (status != 0)
        return status;
    status = may_borrow(lent, exclusive, error);
    if (status == 0 && c != NULL)
        status = lend_claim_payload(lent->lease, request->payload_bytes, error);
    if (status != 0) {
        if (first)
            lent_end(sisci, lent);
        return status;
    }
    struct sisci_borrower *b = k_zalloc(sizeof *b);
    *b = (struct sisci_borrower){ .next = lent->borrowers,
                                  .lent = lent,
                                  .number = ++sisci->last_number,
                                  .host = host_of(sisci, c),
                                  .incarnation = c != NULL ? lend_service_incarnation(c) : 0,
                                  .key = request->key,
                                  .exclusive = exclusive };
    lent->borrowers = b;
    if (first)
        lend_claim_enable(lent->lease);
    *result = b;
    return 0;
}

int sisci_serve_borrow(struct sisci *sisci, struct lend_connection *c, const void *body,
                       void *reply, size_t *bytes, struct lend_error *error)
{
    struct wire_borrow request;
    struct wire_borrowed borrowed = { 0 };
    struct sisci_borrower *b;
    struct lend_info info;
    struct k_pci_dev *pci;
    memcpy(&request, body, sizeof request);
    const int status = borrower_new(sisci, c, &request, &b, error);
    if (status != 0)
        return status;
    borrowed.borrower = b->number;
    for (unsigned i = 0; lend_offered(sisci->host, i, &info, &pci); i++)
        if (info.id == b->lent->id)
            device_info(sisci, &info, pci, &borrowed.info);
    return sisci_answer(reply, bytes, &borrowed, sizeof borrowed);
}

/* The borrower that a request of one number is about, or NULL. */
static struct sisci_borrower *borrower_of(struct sisci *sisci, struct lend_connection *c,
                                          const void *body, struct lend_error *error)
{
    struct wire_number request;
    memcpy(&request, body, sizeof request);
    return sisci_borrower_find(sisci, c, request.number, error);
}

int sisci_serve_share(struct sisci *sisci, struct lend_connection *c, const void *body, void *reply,
                      size_t *bytes, struct lend_error *error)
{
    struct sisci_borrower *b = borrower_of(sisci, c, body, error);
    (void)reply;
    (void)bytes;
    if (b == NULL)
        return -ENOTCONN;
    b->exclusive = false;
    return 0;
}

int sisci_serve_return(struct sisci *sisci, struct lend_connection *c, const void *body,
                       void *reply, size_t *bytes, struct lend_error *error)
{
    struct sisci_borrower *b = borrower_of(sisci, c, body, error);
    (void)reply;
    (void)bytes;
    if (b == NULL)
        return -ENOTCONN;
    borrower_end(sisci, b, false);
    return 0;
}

int sisci_serve_reset(struct sisci *sisci, struct lend_connection *c, const void *body, void *reply,
                      size_t *bytes, struct lend_error *error)
{
    const struct sisci_borrower *b = borrower_of(sisci, c, body, error);
    (void)reply;
    (void)bytes;
    if (b == NULL)
        return -ENOTCONN;
    return b->exclusive ? lend_claim_reset(b->lent->lease, error)
                        : lend_fail(error, -EPERM, "%s is shared", device_name(b->lent));
}

int sisci_serve_is_resetting(struct sisci *sisci, struct lend_connection *c, const void *body,
                             void *reply, size_t *bytes, struct lend_error *error)
{
    const struct sisci_borrower *b = borrower_of(sisci, c, body, error);
    if (b == NULL)
        return -ENOTCONN;
    const uint64_t resetting = lend_claim_resetting(b->lent->lease);
    return sisci_answer(reply, bytes, &resetting, sizeof resetting);
}

/* ---- Losses ---------------------------------------------------------------------------------- */

static void mappings_lost(struct sisci_borrower *b, const struct lend_connection *c)
{
    for (struct sisci_mapping *m = b->mappings; m != NULL;) {
        struct sisci_mapping *next = m->next;
        if (m->connection == c)
            mapping_end(b, m);
        m = next;
    }
}

void sisci_lender_lost(struct sisci *sisci, struct lend_connection *c)
{
    const uint32_t peer = lend_service_peer(c), incarnation = lend_service_incarnation(c);
    const bool gone = lend_service_find(sisci->host, peer, incarnation) == NULL;
    for (struct sisci_lent *lent = sisci->lents; lent != NULL;) {
        struct sisci_lent *next_lent = lent->next;
        for (struct sisci_borrower *b = lent->borrowers; b != NULL;) {
            struct sisci_borrower *next = b->next;
            if (b->host == peer)
                mappings_lost(b, c);
            if (b->host == peer && b->incarnation == incarnation && gone)
                borrower_end(sisci, b, true); /* the last of a device takes `lent` along */
            b = next;
        }
        lent = next_lent;
    }
}

void sisci_lender_stop(struct sisci *sisci, const struct lend_lease *lease)
{
    for (struct sisci_lent *lent = sisci->lents; lent != NULL;) {
        struct sisci_lent *next = lent->next;
        for (struct sisci_borrower *b = lent->borrowers; b != NULL;) {
            struct sisci_borrower *next_borrower = b->next;
            if (lease == NULL || lent->lease == lease)
                borrower_end(sisci, b, true);
            b = next_borrower;
        }
        lent = next;
    }
}

void sisci_lender_free(struct sisci *sisci)
{
    while (sisci->lents != NULL) { /* of a dead host, which frees leases and mappings itself */
        struct sisci_lent *lent = sisci->lents;
        sisci->lents = lent->next;
        while (lent->borrowers != NULL) {
            struct sisci_borrower *b = lent->borrowers;
            lent->borrowers = b->next;
            while (b->mappings != NULL) {
                struct sisci_mapping *m = b->mappings;
                b->mappings = m->next;
                k_free(m);
            }
            k_free(b);
        }
        while (lent->entries != NULL) {
            struct sisci_entry *entry = lent->entries;
            lent->entries = entry->next;
            k_free(entry);
        }
        k_free(lent);
    }
}
