/*
 * What it does: multicast groups: one host tells the cluster switches which ports send a group,
 *   each subscriber lets its adapter put the group's writes into a segment, and a device gets a
 *   window to the group's address.
 * Leaves out: a group whose host dies stays in the switches, and cannot be left or joined any more.
 * Follows: SmartIO, 6.5; docs/models/ntb.md.
 * Costs: to subscribe, one request, and for each switch a read and, for a port that did not send
 *   the group yet, a read, a write and a read; four registers of the own adapter.
 *
 * The way of a write. The lender's adapter sends it to node 0xffff; every switch copies it to the
 * ports behind which there are subscribers, but for the one it came in by; the subscriber's adapter
 * puts its overlay in the place of the upper bits of the address. All groups of an adapter lie in
 * one row behind its overlay: with an IOMMU that is a range of I/O virtual addresses in which each
 * group is mapped to its segment; without one there is one segment.
 */
#include <stdio.h>

#include "hw/ntb_regs.h"
#include "logic/sisci/sisci_internal.h"

#define LOG2_MAX   30u
#define LAST_GROUP (NTB_MC_GROUPS_MAX - 1)

static const char *name_of(const struct sisci *sisci)
{
    return lend_options_of(sisci->host)->name;
}

static uint64_t bit_of(uint32_t group)
{
    return UINT64_C(1) << group;
}

static uint32_t control_of(uint32_t log2)
{
    return NTB_MC_ENABLE | log2 << NTB_MC_POSITION_SHIFT | LAST_GROUP;
}

/* ---- Switches -------------------------------------------------------------------------------- */

static unsigned ports_of(const struct lend_switches *switches, unsigned i)
{
    const uint64_t n = lend_switch_read(switches, i, CLUSTER_PORTS, 4);
    return n <= SISCI_SWITCH_PORTS ? (unsigned)n : 0;
}

static int no_answer(const struct lend_switches *switches, unsigned i, struct lend_error *error)
{
    return lend_fail(error, -EHOSTUNREACH, "cluster switch %u does not answer", switches->node[i]);
}

/* The groups that a port sends. All ones may be 64 groups, or nobody's answer. */
static int port_get(const struct lend_switches *switches, unsigned i, unsigned port,
                    uint64_t *groups, struct lend_error *error)
{
    *groups = lend_switch_read(switches, i, CLUSTER_MC_RECEIVE + 8 * (uint64_t)port, 8);
    return *groups == UINT64_MAX && ports_of(switches, i) == 0 ? no_answer(switches, i, error) : 0;
}

/* No port of any switch sends any of these groups. */
static bool unused(const struct lend_switches *switches, uint64_t groups)
{
    for (unsigned i = 0; i < switches->n; i++)
        for (unsigned p = 0; p < ports_of(switches, i); p++)
            if ((lend_switch_read(switches, i, CLUSTER_MC_RECEIVE + 8 * (uint64_t)p, 8) & groups) !=
                0)
                return false;
    return true;
}

static int port_set(const struct sisci_group_state *g, unsigned i, unsigned port, bool send,
                    struct lend_error *error)
{
    const uint64_t at = CLUSTER_MC_RECEIVE + 8 * (uint64_t)port, bit = bit_of(g->number);
    uint64_t was;
    const int status = port_get(&g->switches, i, port, &was, error);
    if (status != 0)
        return status;
    return lend_switch_write(&g->switches, i, at, 8, send ? was | bit : was & ~bit)
               ? 0
               : no_answer(&g->switches, i, error);
}

/* Counts a subscriber behind a port, or does not count it any more. */
static int port_count(struct sisci_group_state *g, unsigned i, unsigned port, bool more,
                      struct lend_error *error)
{
    uint16_t *behind = &g->behind[i][port];
    const uint16_t was = *behind;
    *behind = (uint16_t)(more ? was + 1 : was - 1);
    if (was != 0 && *behind != 0)
        return 0;
    const int status = port_set(g, i, port, more, error);
    if (status != 0 && more)
        *behind = was;
    return status;
}

/* ---- The host that administers a group ------------------------------------------------------- */

static struct sisci_group_state *group_find(const struct sisci *sisci, uint32_t number,
                                            struct lend_error *error)
{
    struct sisci_group_state *g = sisci->groups;
    while (g != NULL && g->number != number)
        g = g->next;
    if (g == NULL)
        lend_fail(error, -ENOENT, "%s administers no multicast group %u", name_of(sisci), number);
    return g;
}

static int tell_switches(const struct sisci *sisci, const struct sisci_group_state *g,
                         struct lend_error *error)
{
    const uint32_t control = control_of(g->log2);
    if (g->switches.n == 0)
        return lend_fail(error, -EOPNOTSUPP, "%s: no cluster switch, hence no multicast",
                         name_of(sisci));
    if (!unused(&g->switches, bit_of(g->number)))
        return lend_fail(error, -EBUSY, "multicast group %u has subscribers already", g->number);
    for (unsigned i = 0; i < g->switches.n; i++) {
        const uint32_t now = (uint32_t)lend_switch_read(&g->switches, i, CLUSTER_MC_CONTROL, 4);
        if (now == UINT32_MAX)
            return no_answer(&g->switches, i, error);
        if ((now & NTB_MC_ENABLE) != 0 && now != control)
            return lend_fail(error, -EBUSY, "multicast groups are of %u bytes in cluster switch %u",
                             1u << (now >> NTB_MC_POSITION_SHIFT & NTB_MC_POSITION_MASK),
                             g->switches.node[i]);
    }
    for (unsigned i = 0; i < g->switches.n; i++)
        if (!lend_switch_write(&g->switches, i, CLUSTER_MC_CONTROL, 4, control))
            return no_answer(&g->switches, i, error);
    return 0;
}

enum sisci_error sisci_group_create(struct sisci_process *process, uint32_t number, uint64_t bytes,
                                    struct sisci_group *group, struct lend_error *error)
{
    struct sisci *sisci = process->sisci;
    if (number > LAST_GROUP || !lend_power_of_two(bytes) || bytes < 1u << NTB_MC_LOG2_MIN ||
        bytes > 1u << LOG2_MAX) {
        lend_fail(error, -EINVAL, "%s: multicast group %u of %llu bytes", name_of(sisci), number,
                  (unsigned long long)bytes);
        return SISCI_ERR_ILLEGAL_PARAMETER;
    }
    struct sisci_group_state *g = k_zalloc(sizeof *g);
    g->process = process;
    g->number = number;
    g->log2 = (uint32_t)__builtin_ctzll(bytes);
    k_syscall(sisci->kernel);
    lend_service_lock(sisci->host);
    int status = group_find(sisci, number, NULL) != NULL
                     ? lend_fail(error, -EBUSY, "%s administers group %u", name_of(sisci), number)
                     : lend_switches_open(sisci->host, 0, &g->switches, error);
    if (status == 0 && (status = tell_switches(sisci, g, error)) != 0)
        lend_switches_close(sisci->host, &g->switches);
    if (status == 0) {
        g->next = sisci->groups;
        sisci->groups = g;
        *group = (struct sisci_group){ .host = sisci->id, .number = number };
    } else {
        k_free(g);
    }
    lend_service_unlock(sisci->host);
    return sisci_error_of(status);
}

static int member_drop(struct sisci_group_state *g, struct sisci_member *member, unsigned n,
                       struct lend_error *error)
{
    int status = 0;
    for (unsigned i = 0; i < n; i++) {
        const int one = port_count(g, i, member->port[i], false, error);
        status = status == 0 ? one : status;
    }
    k_free(member);
    return status;
}

static int member_add(struct sisci_group_state *g, struct lend_connection *c, uint32_t node,
                      struct lend_error *error)
{
    struct sisci_member *member = k_zalloc(sizeof *member);
    *member = (struct sisci_member){ .next = g->members, .connection = c, .node = node };
    for (unsigned i = 0; i < g->switches.n; i++) {
        const uint64_t route = lend_switch_read(&g->switches, i, CLUSTER_ROUTE + 4 * (uint64_t)node,
                                                4);
        const unsigned port = route & 0xff;
        int status = route == UINT32_MAX || (route & CLUSTER_ROUTE_VALID) == 0 ||
                             port >= SISCI_SWITCH_PORTS
                         ? lend_fail(error, -EHOSTUNREACH, "no way from switch %u to node %u",
                                     g->switches.node[i], node)
                         : port_count(g, i, port, true, error);
        if (status != 0) {
            member_drop(g, member, i, NULL);
            return status;
        }
        member->port[i] = (uint8_t)port;
    }
    g->members = member;
    return 0;
}

static struct sisci_member *member_find(const struct sisci_group_state *g, uint32_t node)
{
    struct sisci_member *member = g->members;
    while (member != NULL && member->node != node)
        member = member->next;
    return member;
}

int sisci_serve_group_join(struct sisci *sisci, struct lend_connection *c, const void *body,
                           void *reply, size_t *bytes, struct lend_error *error)
{
    struct wire_group request;
    (void)reply;
    (void)bytes;
    memcpy(&request, body, sizeof request);
    struct sisci_group_state *g = group_find(sisci, request.number, error);
    if (g == NULL)
        return -ENOENT;
    if (request.node > NTB_NODE_MAX || member_find(g, request.node) != NULL)
        return lend_fail(error, -EBUSY, "node %u has subscribed to group %u", request.node,
                         request.number);
    return member_add(g, c, request.node, error);
}

int sisci_serve_group_leave(struct sisci *sisci, struct lend_connection *c, const void *body,
                            void *reply, size_t *bytes, struct lend_error *error)
{
    struct wire_group request;
    (void)reply;
    (void)bytes;
    memcpy(&request, body, sizeof request);
    struct sisci_group_state *g = group_find(sisci, request.number, error);
    struct sisci_member *member = g != NULL ? member_find(g, request.node) : NULL;
    if (member == NULL || member->connection != c)
        return lend_fail(error, -ENOENT, "node %u has not subscribed", request.node);
    K_LIST_REMOVE(g->members, member);
    return member_drop(g, member, g->switches.n, error);
}

int sisci_serve_group_size(struct sisci *sisci, struct lend_connection *c, const void *body,
                           void *reply, size_t *bytes, struct lend_error *error)
{
    struct wire_group request;
    (void)c;
    memcpy(&request, body, sizeof request);
    const struct sisci_group_state *g = group_find(sisci, request.number, error);
    if (g == NULL)
        return -ENOENT;
    request.log2 = g->log2;
    return sisci_answer(reply, bytes, &request, sizeof request);
}

void sisci_groups_lost(struct sisci *sisci, const struct lend_connection *c)
{
    for (struct sisci_segment *s = sisci->segments; s != NULL; s = s->next)
        if (s->group_connection == c)
            sisci_put(&s->group_connection);
    for (struct sisci_group_state *g = sisci->groups; g != NULL; g = g->next)
        for (struct sisci_member *member = g->members; member != NULL;) {
            struct sisci_member *next = member->next;
            if (member->connection == c) {
                K_LIST_REMOVE(g->members, member);
                member_drop(g, member, g->switches.n, NULL);
            }
            member = next;
        }
}

/* Takes all subscribers out of the switches. Under the lender's lock. */
static void group_end(struct sisci *sisci, struct sisci_group_state *g)
{
    while (g->members != NULL) {
        struct sisci_member *member = g->members;
        g->members = member->next;
        member_drop(g, member, g->switches.n, NULL);
    }
    if (unused(&g->switches, UINT64_MAX))
        for (unsigned i = 0; i < g->switches.n; i++)
            lend_switch_write(&g->switches, i, CLUSTER_MC_CONTROL, 4, 0);
    lend_switches_close(sisci->host, &g->switches);
    K_LIST_REMOVE(sisci->groups, g);
    k_free(g);
}

void sisci_group_remove(struct sisci_process *process, struct sisci_group group)
{
    struct sisci *sisci = process->sisci;
    k_syscall(sisci->kernel);
    lend_service_lock(sisci->host);
    struct sisci_group_state *g = group.host == sisci->id ? group_find(sisci, group.number, NULL)
                                                          : NULL;
    if (g != NULL)
        group_end(sisci, g);
    lend_service_unlock(sisci->host);
}

void sisci_groups_close(struct sisci *sisci, const struct sisci_process *process)
{
    lend_service_lock(sisci->host);
    for (struct sisci_group_state *g = sisci->groups; g != NULL;) {
        struct sisci_group_state *next = g->next;
        if (process == NULL || g->process == process)
            group_end(sisci, g);
        g = next;
    }
    lend_service_unlock(sisci->host);
}

void sisci_groups_free(struct sisci *sisci)
{
    while (sisci->groups != NULL) {
        struct sisci_group_state *g = sisci->groups;
        sisci->groups = g->next;
        while (g->members != NULL) {
            struct sisci_member *member = g->members;
            g->members = member->next;
            k_free(member);
        }
        k_free(g);
    }
}

/* ---- Subscribers ----------------------------------------------------------------------------- */

static int ask_group(struct sisci *sisci, struct lend_connection *c, enum sisci_operation op,
                     uint32_t number, uint32_t node, struct wire_group *reply,
                     struct lend_error *error)
{
    const struct wire_group request = { .op = op, .number = number, .node = node };
    return sisci_ask(sisci, c, &request, sizeof request, reply, reply != NULL ? sizeof *reply : 0,
                     error);
}

/* Where the groups of an adapter arrive: a row of I/O virtual addresses, or the segment itself. */
static int overlay_open(struct sisci *sisci, struct sisci_segment *s, unsigned index, uint32_t log2,
                        uint64_t *overlay, struct lend_error *error)
{
    struct lend_adapter *adapter = lend_adapter_at(sisci->host, index);
    struct sisci_overlay *o = &sisci->overlay[index];
    *overlay = s->address | log2;
    if (o->receive != 0 && (o->log2 != log2 || adapter->domain == NULL))
        return lend_fail(error, adapter->domain == NULL ? -ENOMEM : -EBUSY,
                         "%s: its overlay has a segment for groups of %u bytes, and %s",
                         adapter->pci->device.name, 1u << o->log2,
                         adapter->domain == NULL ? "there is no IOMMU" : "one size");
    if (adapter->domain == NULL)
        return 0;
    if (o->receive == 0) {
        const uint64_t row = (uint64_t)NTB_MC_GROUPS_MAX << log2;
        if (!lend_ranges_take(&adapter->iova, row, row, &o->base))
            return lend_fail(error, -ENOMEM, "%s: no I/O virtual addresses for %llu MiB",
                             adapter->pci->device.name, (unsigned long long)(row >> 20));
        const int status = k_iommu_attach(adapter->domain, adapter->pci->id);
        if (status != 0) {
            lend_ranges_give(&adapter->iova, o->base);
            return lend_fail(error, status, "%s is in another IOMMU domain",
                             adapter->pci->device.name);
        }
        o->log2 = log2;
    }
    *overlay = o->base | (log2 + (uint32_t)__builtin_ctz(NTB_MC_GROUPS_MAX));
    return 0;
}

/* The last group has left. */
static void overlay_close(struct sisci *sisci, unsigned index)
{
    struct lend_adapter *adapter = lend_adapter_at(sisci->host, index);
    if (adapter->domain == NULL || sisci->overlay[index].receive != 0)
        return;
    k_iommu_detach(adapter->domain, adapter->pci->id);
    lend_ranges_give(&adapter->iova, sisci->overlay[index].base);
}

static int receive_open(struct sisci_segment *s, unsigned index, uint32_t group, uint32_t log2,
                        struct lend_error *error)
{
    struct sisci *sisci = s->sisci;
    struct lend_adapter *adapter = lend_adapter_at(sisci->host, index);
    struct sisci_overlay *o = &sisci->overlay[index];
    uint64_t overlay;
    int status = overlay_open(sisci, s, index, log2, &overlay, error);
    if (status == 0 && adapter->domain != NULL &&
        (status = k_iommu_map(adapter->domain, o->base + ((uint64_t)group << log2), s->address,
                              UINT64_C(1) << log2, K_DMA_FROM_DEVICE)) != 0) {
        overlay_close(sisci, index);
        lend_fail(error, status, "%s: the group could not be mapped in the IOMMU",
                  adapter->pci->device.name);
    }
    if (status != 0)
        return status;
    o->log2 = log2;
    o->receive |= bit_of(group);
    k_writeq(adapter->pci, 0, NTB_REG_MC_OVERLAY, overlay);
    k_writel(adapter->pci, 0, NTB_REG_MC_CONTROL, control_of(log2));
    k_writeq(adapter->pci, 0, NTB_REG_MC_RECEIVE, o->receive);
    return 0;
}

static void receive_close(struct sisci_segment *s)
{
    struct sisci *sisci = s->sisci;
    struct lend_adapter *adapter = lend_adapter_at(sisci->host, s->group_adapter);
    struct sisci_overlay *o = &sisci->overlay[s->group_adapter];
    o->receive &= ~bit_of(s->group);
    k_writeq(adapter->pci, 0, NTB_REG_MC_RECEIVE, o->receive);
    k_readl(adapter->pci, 0, NTB_REG_STATUS); /* what came in before has arrived */
    if (o->receive == 0)
        k_writel(adapter->pci, 0, NTB_REG_MC_CONTROL, 0);
    if (adapter->domain != NULL)
        k_iommu_unmap(adapter->domain, o->base + ((uint64_t)s->group << o->log2),
                      UINT64_C(1) << o->log2);
    overlay_close(sisci, s->group_adapter);
    s->group_host = 0;
}

static int check_segment(const struct sisci_segment *s, unsigned index, uint32_t log2,
                         struct lend_error *error)
{
    const bool translated = lend_adapter_at(s->sisci->host, index)->domain != NULL;
    if (s->host == s->sisci->id && s->bytes >> log2 != 0 &&
        (translated || (s->address & ((UINT64_C(1) << log2) - 1)) == 0))
        return 0;
    return lend_fail(
        error, -EINVAL,
        "%s: segment %u, of %#llx bytes at %#llx, does not hold an aligned group of %u "
        "bytes",
        name_of(s->sisci), s->number, (unsigned long long)s->bytes, (unsigned long long)s->address,
        1u << log2);
}

static int subscribe(struct sisci_segment *s, struct sisci_group group, unsigned index,
                     struct lend_connection *c, struct lend_error *error)
{
    struct sisci *sisci = s->sisci;
    struct wire_group size;
    int status = ask_group(sisci, c, OP_GROUP_SIZE, group.number, 0, &size, error);
    if (status == 0)
        status = check_segment(s, index, size.log2, error);
    if (status != 0)
        return status;
    lend_service_lock(sisci->host);
    status = receive_open(s, index, group.number, size.log2, error);
    if (status == 0) {
        s->group_host = group.host;
        s->group = group.number;
        s->group_adapter = index;
    }
    lend_service_unlock(sisci->host);
    if (status != 0)
        return status;
    status = ask_group(sisci, c, OP_GROUP_JOIN, group.number,
                       lend_adapter_at(sisci->host, index)->node, NULL, error);
    if (status != 0) {
        lend_service_lock(sisci->host);
        receive_close(s);
        lend_service_unlock(sisci->host);
    }
    return status;
}

enum sisci_error sisci_group_subscribe(struct sisci_segment *s, struct sisci_group group,
                                       unsigned adapter, struct lend_error *error)
{
    struct sisci *sisci = s->sisci;
    const unsigned index = adapter == SISCI_ANY ? 0 : adapter;
    struct lend_connection *c;
    k_syscall(sisci->kernel);
    if (s->group_host != 0) {
        lend_fail(error, -EBUSY, "%s: segment %u has subscribed to group %u", name_of(sisci),
                  s->number, s->group);
        return SISCI_ERR_BUSY;
    }
    int status = sisci_adapter_check(sisci, index, error);
    if (status == 0)
        status = sisci_reach(sisci, group.host, SISCI_ANY, &c, error);
    if (status != 0)
        return sisci_error_of(status);
    status = subscribe(s, group, index, c, error);
    /* The connection stays open as long as there is a subscription: its end tells the group's host.
     * It may have ended, and sisci_groups_lost() run. */
    lend_service_lock(sisci->host);
    if (status == 0 && c != NULL && lend_service_up(c)) {
        s->group_connection = c;
        c = NULL;
    }
    lend_service_unlock(sisci->host);
    sisci_put(&c);
    return sisci_error_of(status);
}

enum sisci_error sisci_group_unsubscribe(struct sisci_segment *s, struct lend_error *error)
{
    struct sisci *sisci = s->sisci;
    k_syscall(sisci->kernel);
    if (s->group_host == 0) {
        lend_fail(error, -EPERM, "%s: segment %u has not subscribed", name_of(sisci), s->number);
        return SISCI_ERR_ILLEGAL_OPERATION;
    }
    lend_service_lock(sisci->host);
    struct lend_connection *c = s->group_connection;
    s->group_connection = NULL; /* sisci_groups_lost() does not find it any more */
    lend_service_unlock(sisci->host);
    if (c == NULL ? s->group_host == sisci->id : lend_service_up(c))
        ask_group(sisci, c, OP_GROUP_LEAVE, s->group,
                  lend_adapter_at(sisci->host, s->group_adapter)->node, NULL, NULL);
    sisci_put(&c);
    lend_service_lock(sisci->host);
    receive_close(s);
    lend_service_unlock(sisci->host);
    return SISCI_OK;
}

/* ---- Devices --------------------------------------------------------------------------------- */

int sisci_serve_window_group(struct sisci *sisci, struct lend_connection *c, const void *body,
                             void *reply, size_t *bytes, struct lend_error *error)
{
    struct wire_window request;
    struct lend_mapping *mapping;
    uint64_t dma;
    memcpy(&request, body, sizeof request);
    struct sisci_borrower *b = sisci_borrower_find(sisci, c, request.borrower, error);
    if (b == NULL)
        return -ENOTCONN;
    int status = lend_claim_open_multicast(b->lent->lease, lend_claim_near(b->lent->lease),
                                           &mapping, error);
    if (status != 0)
        return status;
    status = lend_claim_map(b->lent->lease, mapping, request.fabric, request.bytes,
                            K_DMA_FROM_DEVICE, &dma, error);
    if (status != 0) {
        lend_claim_close(b->lent->lease, mapping);
        return status;
    }
    const struct wire_window_here here = {
        .mapping = sisci_mapping_add(sisci, b, c, mapping)->number, .dma = dma
    };
    return sisci_answer(reply, bytes, &here, sizeof here);
}

enum sisci_error sisci_group_map_for_device(struct sisci_device *device, struct sisci_group group,
                                            unsigned adapter, struct sisci_window *window,
                                            struct lend_error *error)
{
    struct sisci *sisci = device->process->sisci;
    struct lend_connection *c;
    struct wire_group size;
    k_syscall(sisci->kernel);
    int status = sisci_reach(sisci, group.host, SISCI_ANY, &c, error);
    if (status == 0)
        status = ask_group(sisci, c, OP_GROUP_SIZE, group.number, 0, &size, error);
    sisci_put(&c);
    if (status != 0)
        return sisci_error_of(status);
    *window = (struct sisci_window){ .bytes = UINT64_C(1) << size.log2, .device = device };
    return sisci_window_open_group(window, (uint64_t)group.number << size.log2, adapter, error);
}
