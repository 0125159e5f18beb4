/*
 * What it does: the owner's side of segments: peers that are connected to them, devices of other
 *   hosts that reach them, and their exports, which are made when the first needs them.
 * Follows: SmartIO, 3.3, 6.1.
 * Costs: IOMMU mappings of a segment, once per adapter; entries of the requester table.
 */
#include <stdio.h>

#include "logic/sisci/sisci_internal.h"

static const char *name_of(const struct sisci *sisci)
{
    return lend_options_of(sisci->host)->name;
}

/* The host at the other end; this host if there is no connection. */
static uint32_t host_of(const struct sisci *sisci, const struct lend_connection *c)
{
    return c != NULL ? lend_service_peer(c) : sisci->id;
}

/* ---- Exports --------------------------------------------------------------------------------- */

int sisci_export_get(struct sisci_segment *s, unsigned adapter, struct lend_error *error)
{
    struct sisci_export *at = &s->at[adapter];
    if (at->users == 0) {
        const int status = lend_export(lend_adapter_at(s->sisci->host, adapter), s->address,
                                       s->bytes, &at->fabric, error);
        if (status != 0)
            return status;
    }
    at->users++;
    return 0;
}

void sisci_export_put(struct sisci_segment *s, unsigned adapter)
{
    struct sisci_export *at = &s->at[adapter];
    if (--at->users == 0)
        lend_unexport(lend_adapter_at(s->sisci->host, adapter), at->fabric, s->bytes);
}

/* ---- Finding --------------------------------------------------------------------------------- */

/* The segment of a base address register that a host may reach: it has borrowed the device, by
 * SISCI or by device lending. */
static struct sisci_segment *segment_of_bar(struct sisci *sisci, struct lend_connection *c,
                                            const struct wire_segment *name,
                                            struct lend_error *error)
{
    const struct sisci_lent *lent = sisci_lent_to(sisci, c, (uint16_t)name->id);
    struct k_pci_dev *pci = lent != NULL ? lend_claim_pci(lent->lease)
                                         : lend_leased_to(sisci->host, (uint16_t)name->id,
                                                          host_of(sisci, c));
    if (pci == NULL) {
        lend_fail(error, -ENOENT, "%s: host %u has not borrowed device %04x", name_of(sisci),
                  host_of(sisci, c), name->id);
        return NULL;
    }
    if (name->number >= K_PCI_BARS || pci->bar_bytes[name->number] == 0) {
        lend_fail(error, -EINVAL, "%s: no base address register %u", pci->device.name,
                  name->number);
        return NULL;
    }
    for (struct sisci_segment *s = sisci->segments; s != NULL; s = s->next)
        if (!s->numbered && s->pci == pci && s->bar == name->number)
            return s;
    struct sisci_segment *s = k_zalloc(sizeof *s);
    *s = (struct sisci_segment){ .next = sisci->segments,
                                 .sisci = sisci,
                                 .address = pci->bar_base[name->number],
                                 .bytes = pci->bar_bytes[name->number],
                                 .pci = pci,
                                 .bar = name->number,
                                 .host = sisci->id };
    sisci->segments = s;
    return s;
}

struct sisci_segment *sisci_segment_named(struct sisci *sisci, struct lend_connection *c,
                                          const struct wire_segment *name, struct lend_error *error)
{
    if (name->kind == WIRE_BAR)
        return segment_of_bar(sisci, c, name, error);
    struct sisci_segment *s = sisci_segment_find(sisci, name->number);
    if (s == NULL || s->dying) {
        lend_fail(error, -ENOENT, "%s has no segment %u", name_of(sisci), name->number);
        return NULL;
    }
    return s;
}

void sisci_segment_release(struct sisci_segment *s)
{
    struct sisci *sisci = s->sisci;
    if (s->n_links + s->n_grants + s->n_windows != 0 || (s->numbered && !s->dying))
        return;
    for (unsigned a = 0; a < LEND_ADAPTERS_MAX; a++)
        if (s->at[a].prepared)
            sisci_export_put(s, a);
    if (s->owned)
        k_pages_put(sisci->kernel, s->bytes, (struct kaddr){ s->address });
    sisci_reports_drop(s);
    K_LIST_REMOVE(sisci->segments, s);
    k_free(s);
}

/* ---- Links ----------------------------------------------------------------------------------- */

static void link_drop(struct sisci *sisci, struct sisci_link *link)
{
    struct sisci_segment *s = link->segment;
    const uint32_t host = host_of(sisci, link->connection);
    K_LIST_REMOVE(sisci->links, link);
    if (link->connection != NULL)
        sisci_export_put(s, lend_service_adapter(link->connection)->index);
    k_free(link);
    s->n_links--;
    sisci_report(s, SISCI_CB_DISCONNECT, host);
    sisci_segment_release(s);
}

/* A peer needs an export, and that the segment is exported by the adapter of its connection. */
static int link_allow(struct sisci_segment *s, const struct lend_connection *c,
                      struct lend_error *error)
{
    if (c == NULL)
        return 0;
    const unsigned adapter = lend_service_adapter(c)->index;
    if (s->host != s->sisci->id)
        return lend_fail(error, -EPERM, "%s: segment %u is a device of host %u", name_of(s->sisci),
                         s->number, s->host);
    if (s->numbered && !s->at[adapter].exported)
        return lend_fail(error, -ENOENT, "%s: segment %u is not exported by adapter %u",
                         name_of(s->sisci), s->number, adapter);
    return sisci_export_get(s, adapter, error);
}

int sisci_serve_connect(struct sisci *sisci, struct lend_connection *c, const void *body,
                        void *reply, size_t *bytes, struct lend_error *error)
{
    struct wire_connect request;
    memcpy(&request, body, sizeof request);
    struct sisci_segment *s = sisci_segment_named(sisci, c, &request.segment, error);
    if (s == NULL)
        return request.segment.kind == WIRE_BAR && error != NULL && error->code != 0 ? error->code
                                                                                     : -ENOENT;
    const int status = link_allow(s, c, error);
    if (status != 0) {
        sisci_segment_release(s);
        return status;
    }
    struct sisci_link *link = k_zalloc(sizeof *link);
    *link = (struct sisci_link){ .next = sisci->links,
                                 .segment = s,
                                 .connection = c,
                                 .number = ++sisci->last_number,
                                 .remote = request.remote };
    sisci->links = link;
    s->n_links++;
    sisci_report(s, SISCI_CB_CONNECT, host_of(sisci, c));
    const struct wire_connected connected = {
        .link = link->number,
        .fabric = c != NULL ? s->at[lend_service_adapter(c)->index].fabric : s->address,
        .bytes = s->bytes
    };
    return sisci_answer(reply, bytes, &connected, sizeof connected);
}

int sisci_serve_disconnect(struct sisci *sisci, struct lend_connection *c, const void *body,
                           void *reply, size_t *bytes, struct lend_error *error)
{
    struct wire_number request;
    (void)reply;
    (void)bytes;
    memcpy(&request, body, sizeof request);
    for (struct sisci_link *link = sisci->links; link != NULL; link = link->next)
        if (link->number == request.number && link->connection == c) {
            link_drop(sisci, link);
            return 0;
        }
    return lend_fail(error, -ENOTCONN, "%s: link %u is over", name_of(sisci), request.number);
}

/* ---- Grants ---------------------------------------------------------------------------------- */

static void grant_drop(struct sisci *sisci, struct sisci_grant *grant)
{
    struct sisci_segment *s = grant->segment;
    struct lend_adapter *adapter = lend_adapter_at(sisci->host, grant->adapter);
    K_LIST_REMOVE(sisci->grants, grant);
    while (grant->n_ids > 0)
        lend_incoming_remove(adapter, grant->id[--grant->n_ids]);
    sisci_export_put(s, grant->adapter);
    k_free(grant);
    s->n_grants--;
    sisci_segment_release(s);
}

static int grant_id(struct sisci *sisci, struct sisci_grant *grant, unsigned device,
                    unsigned function, struct lend_error *error)
{
    char owner[LEND_OWNER_BYTES];
    snprintf(owner, sizeof owner, "devices of node %u", grant->node);
    const int status = lend_incoming_add(lend_adapter_at(sisci->host, grant->adapter), grant->node,
                                         device, function, owner, &grant->id[grant->n_ids], error);
    grant->n_ids += status == 0;
    return status;
}

static int grant_check(struct sisci *sisci, const struct wire_grant *request,
                       struct lend_error *error)
{
    if (sisci_adapter_check(sisci, request->adapter, error) != 0)
        return -ENODEV;
    if (request->n_cpus >= SISCI_REMOTE_IDS)
        return lend_fail(error, -EPROTO, "%u CPUs", request->n_cpus);
    const unsigned payload = lend_adapter_payload(lend_adapter_at(sisci->host, request->adapter));
    return payload == request->payload_bytes
               ? 0
               : lend_fail(error, -EMSGSIZE,
                           "%s: payloads of %u bytes here, of %u bytes for the device",
                           name_of(sisci), payload, request->payload_bytes);
}

int sisci_serve_grant(struct sisci *sisci, struct lend_connection *c, const void *body, void *reply,
                      size_t *bytes, struct lend_error *error)
{
    struct wire_grant request;
    memcpy(&request, body, sizeof request);
    int status = grant_check(sisci, &request, error);
    if (status != 0)
        return status;
    struct sisci_segment *s = sisci_segment_named(sisci, c, &request.segment, error);
    if (s == NULL)
        return -ENOENT;
    status = s->host != sisci->id ? lend_fail(error, -EPERM, "%s: segment %u is elsewhere",
                                              name_of(sisci), s->number)
                                  : sisci_export_get(s, request.adapter, error);
    if (status != 0) {
        sisci_segment_release(s);
        return status;
    }
    struct sisci_grant *grant = k_zalloc(sizeof *grant);
    *grant = (struct sisci_grant){ .next = sisci->grants,
                                   .segment = s,
                                   .connection = c,
                                   .number = ++sisci->last_number,
                                   .node = request.node,
                                   .adapter = request.adapter };
    sisci->grants = grant;
    s->n_grants++;
    status = grant_id(sisci, grant, request.device, request.function, error);
    for (unsigned i = 0; status == 0 && i < request.n_cpus; i++)
        status = grant_id(sisci, grant, i, 0, error);
    if (status != 0) {
        grant_drop(sisci, grant);
        return status;
    }
    const struct wire_granted granted = { .grant = grant->number,
                                          .fabric = s->at[request.adapter].fabric };
    return sisci_answer(reply, bytes, &granted, sizeof granted);
}

int sisci_serve_revoke(struct sisci *sisci, struct lend_connection *c, const void *body,
                       void *reply, size_t *bytes, struct lend_error *error)
{
    struct wire_number request;
    (void)reply;
    (void)bytes;
    memcpy(&request, body, sizeof request);
    for (struct sisci_grant *grant = sisci->grants; grant != NULL; grant = grant->next)
        if (grant->number == request.number && grant->connection == c) {
            grant_drop(sisci, grant);
            return 0;
        }
    return lend_fail(error, -ENOTCONN, "%s: grant %u is over", name_of(sisci), request.number);
}

/* ---- Losses ---------------------------------------------------------------------------------- */

void sisci_owner_cut(struct sisci *sisci, struct lend_connection *c)
{
    struct lend_adapter *adapter = lend_service_adapter(c);
    lend_service_lock(sisci->host);
    for (struct sisci_grant *grant = sisci->grants; grant != NULL; grant = grant->next)
        if (grant->adapter == adapter->index && grant->node == lend_service_node(c))
            for (unsigned i = 0; i < grant->n_ids; i++)
                lend_incoming_block(adapter, grant->id[i]);
    lend_service_unlock(sisci->host);
}

void sisci_owner_lost(struct sisci *sisci, struct lend_connection *c)
{
    for (struct sisci_grant *grant = sisci->grants; grant != NULL;) {
        struct sisci_grant *next = grant->next;
        if (grant->connection == c)
            grant_drop(sisci, grant);
        grant = next;
    }
    for (struct sisci_link *link = sisci->links; link != NULL;) {
        struct sisci_link *next = link->next;
        if (link->connection == c)
            link_drop(sisci, link);
        link = next;
    }
}
