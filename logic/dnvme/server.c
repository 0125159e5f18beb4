/*
 * The manager's side of mailboxes, whatever the controller is.
 *
 * What it does: Registers clients, carries their requests out once each, answers; gives queue
 *   numbers, remembers whose they are and where they lie; ends leases that were not renewed and
 *   deletes the queues of clients that are gone. Refuses queues and data that lie over queues of
 *   others or of the manager, queues that are not the client's, and admin commands that change the
 *   controller for all.
 * Leaves out: whether an address that no queue has is the client's: the lender's IOMMU knows that.
 * Follows: SmartIO, 6.2 ("relaying admin commands on behalf of clients").
 * Costs: Two loads per mailbox and round; what a request costs is the controller's time.
 */
#include "logic/dnvme/dnvme_internal.h"

static struct kaddr at_of(const struct dnvme_server *s, unsigned i, uint64_t offset)
{
    return kaddr_add(s->mailboxes, (uint64_t)i * WIRE_SLOT_BYTES + offset);
}

static uint64_t load8(const struct dnvme_server *s, unsigned i, uint64_t offset)
{
    uint64_t word;
    k_load(s->kernel, at_of(s, i, offset), &word, sizeof word);
    return word;
}

static void registered_store(const struct dnvme_server *s, unsigned i, uint64_t word)
{
    k_store(s->kernel, at_of(s, i, WIRE_REGISTERED), &word, sizeof word);
}

void dnvme_server_init(struct dnvme_server *s)
{
    s->box = k_zalloc(s->n * sizeof *s->box);
    memset(s->queue, 0, sizeof s->queue);
    s->stats = (struct dnvme_manager_stats){ 0 };
}

/* ---- Queues ---------------------------------------------------------------------------------- */

static bool overlap(const struct dnvme_range *a, const struct dnvme_range *b)
{
    return a->bytes != 0 && b->bytes != 0 && a->from < b->from + b->bytes &&
           b->from < a->from + a->bytes;
}

/* No queue lies there, of a client or the manager, but for those of mailbox `but` (n: of none). */
static bool is_free(const struct dnvme_server *s, const struct dnvme_range *range, unsigned but)
{
    if (range->from + range->bytes < range->from)
        return false;
    for (unsigned i = 0; i < sizeof s->reserved / sizeof s->reserved[0]; i++)
        if (overlap(range, &s->reserved[i]))
            return false;
    for (unsigned q = 1; q < s->queue_end; q++)
        if (s->queue[q].owner != 0 && s->queue[q].owner != but + 1 &&
            (overlap(range, &s->queue[q].sq) || overlap(range, &s->queue[q].cq)))
            return false;
    return true;
}

static int check_create(const struct dnvme_server *s, const struct wire_create *c)
{
    const bool in_cmb = c->sq_bus == WIRE_SQ_IN_CMB;
    const struct dnvme_range sq = { c->sq_bus, in_cmb ? 0 : (uint64_t)c->entries * NVME_SQE_BYTES };
    const struct dnvme_range cq = { c->cq_bus, (uint64_t)c->entries * NVME_CQE_BYTES };
    if (c->entries < 2 || c->entries > s->hello.entries_max || c->entries > UINT16_MAX ||
        c->priority > NVME_SQ_LOW)
        return -EINVAL;
    if (c->cq_bus % NVME_PAGE_BYTES != 0 || (!in_cmb && c->sq_bus % NVME_PAGE_BYTES != 0))
        return -EINVAL;
    return (in_cmb || is_free(s, &sq, s->n)) && is_free(s, &cq, s->n) && !overlap(&sq, &cq)
               ? 0
               : -EACCES;
}

static int create(struct dnvme_server *s, unsigned i, const struct wire_create *c,
                  struct wire_created *reply)
{
    uint16_t q = 1;
    int status = check_create(s, c);
    if (status != 0)
        return status;
    while (q < s->queue_end && s->queue[q].owner != 0)
        q++;
    if (q >= s->queue_end || s->box[i].n_queues >= s->hello.client_queues)
        return -ENOSPC;
    status = s->ops->create(s->context, q, c, &reply->sq_bus);
    if (status != 0)
        return status;
    reply->handle = WIRE_HANDLE(q, s->queue[q].serial);
    s->queue[q] = (struct dnvme_server_queue){
        .owner = i + 1,
        .serial = s->queue[q].serial,
        .sq = { reply->sq_bus, (uint64_t)c->entries * NVME_SQE_BYTES },
        .cq = { c->cq_bus, (uint64_t)c->entries * NVME_CQE_BYTES },
    };
    s->box[i].n_queues++;
    s->stats.n_queues++;
    return 0;
}

static void reply_write(struct dnvme_server *s, unsigned i, unsigned type, int status,
                        const void *body, uint16_t bytes)
{
    struct dnvme_mailbox *box = &s->box[i];
    struct wire_message reply = { .header = { .sequence = box->served,
                                              .type = (uint16_t)type,
                                              .bytes = bytes,
                                              .status = status } };
    if (bytes != 0)
        memcpy(reply.body, body, bytes);
    reply.header.check = wire_check(&reply, box->incarnation);
    s->stats.requests++;
    s->stats.refused += status == -EPERM || status == -EACCES;
    /* The body is there before the header: stores of a CPU are seen in order. */
    k_store(s->kernel, at_of(s, i, WIRE_REPLY + sizeof reply.header), reply.body, bytes);
    k_store(s->kernel, at_of(s, i, WIRE_REPLY), &reply.header, sizeof reply.header);
}

/* Its places are refused to others until it is deleted. */
static void delete_begin(struct dnvme_server *s, unsigned q)
{
    if (s->queue[q].deleting)
        return;
    s->queue[q].deleting = true;
    s->ops->delete_pair(s->context, (uint16_t)q);
}

void dnvme_server_deleted(struct dnvme_server *s, uint16_t q, int status)
{
    const struct dnvme_server_queue queue = s->queue[q];
    s->queue[q].deleting = s->queue[q].asked = false;
    if (status == 0) {
        s->queue[q] = (struct dnvme_server_queue){ .serial = queue.serial + 1 };
        s->stats.n_queues--;
    }
    if (queue.owner == DNVME_ORPHANED) {
        s->stats.reclaimed += status == 0;
        s->stats.reclaimed_ps = status == 0 ? k_now_ps(s->kernel) : s->stats.reclaimed_ps;
        return;
    }
    s->box[queue.owner - 1].n_queues -= status == 0;
    /* Unless its owner has given up waiting and asked for something else since. */
    if (queue.asked && s->box[queue.owner - 1].served == queue.sequence)
        reply_write(s, queue.owner - 1, WIRE_DELETE, status, NULL, 0);
}

/* DEFERRED: the reply comes when it is done. Asked again meanwhile, or after a failure, the same:
 * so a queue that is not the client's is one that the controller does not have any more. */
#define DEFERRED 1
static int delete_pair(struct dnvme_server *s, unsigned i, uint64_t handle)
{
    const unsigned q = WIRE_HANDLE_NUMBER(handle);
    if (q == 0 || q >= s->queue_end || s->queue[q].owner != i + 1 ||
        handle != WIRE_HANDLE(q, s->queue[q].serial))
        return -EPERM;
    s->queue[q].asked = true;
    s->queue[q].sequence = s->box[i].served;
    delete_begin(s, q);
    return DEFERRED;
}

/* ---- Admin commands -------------------------------------------------------------------------- */

/* The bytes of the command's data, of which those that clients may have take 4 KiB at most. False:
 * it is no such command. */
static bool is_allowed(const struct dnvme_server *s, unsigned i, struct nvme_sqe *sqe,
                       uint64_t *bytes)
{
    const uint32_t q = sqe->cdw10 & 0xffffu;
    *bytes = 0;
    switch (sqe->opcode) {
    case NVME_ADMIN_IDENTIFY: *bytes = NVME_IDENTIFY_BYTES; break;
    case NVME_ADMIN_GET_LOG:
        *bytes = 4 * ((uint64_t)(sqe->cdw10 >> 16 | (sqe->cdw11 & 0xffffu) << 16) + 1);
        sqe->cdw10 |= NVME_LOG_RETAIN_EVENT; /* events are the manager's */
        break;
    case NVME_ADMIN_GET_FEATURES: break;
    case NVME_ADMIN_ABORT: return q != 0 && q < s->queue_end && s->queue[q].owner == i + 1;
    default: return false;
    }
    return *bytes <= NVME_PAGE_BYTES && sqe->flags == 0;
}

static int admin(struct dnvme_server *s, unsigned i, struct nvme_sqe *sqe, struct wire_admin *reply)
{
    uint64_t bytes;
    if (!is_allowed(s, i, sqe, &bytes))
        return -EPERM;
    const uint64_t first = NVME_PAGE_BYTES - sqe->prp1 % NVME_PAGE_BYTES;
    const struct dnvme_range one = { sqe->prp1, bytes < first ? bytes : first };
    const struct dnvme_range two = { sqe->prp2, bytes - one.bytes };
    if (!is_free(s, &one, i) || !is_free(s, &two, i))
        return -EACCES;
    return s->ops->admin(s->context, sqe, reply);
}

/* ---- Clients --------------------------------------------------------------------------------- */

static void end_client(struct dnvme_server *s, unsigned i)
{
    struct dnvme_mailbox *box = &s->box[i];
    if (!box->registered)
        return;
    box->registered = false;
    box->n_queues = 0;
    s->stats.n_clients--;
    registered_store(s, i, 0);
    for (unsigned q = 1; q < s->queue_end; q++)
        if (s->queue[q].owner == i + 1) {
            s->queue[q].owner = DNVME_ORPHANED;
            delete_begin(s, q);
        }
}

static int hello(struct dnvme_server *s, unsigned i)
{
    struct dnvme_mailbox *box = &s->box[i];
    if (box->registered)
        return -EALREADY;
    box->registered = true;
    box->changed_ps = k_now_ps(s->kernel);
    s->stats.n_clients++;
    registered_store(s, i, box->heartbeat);
    return 0;
}

/* Does what the message says. *bytes of `reply` are the answer. */
static int serve(struct dnvme_server *s, unsigned i, const struct wire_message *m, uint8_t reply[],
                 uint16_t *bytes)
{
    union {
        uint64_t word;
        struct wire_create create;
        struct nvme_sqe sqe;
    } in;
    union {
        struct wire_created created;
        struct wire_namespace namespace;
        struct wire_admin admin;
    } out = { 0 };
    static const uint16_t takes[] = {
        [WIRE_NAMESPACE] = sizeof in.word,
        [WIRE_CREATE] = sizeof in.create,
        [WIRE_DELETE] = sizeof in.word,
        [WIRE_ADMIN] = sizeof in.sqe,
    };
    static const uint16_t gives[] = {
        [WIRE_NAMESPACE] = sizeof out.namespace,
        [WIRE_CREATE] = sizeof out.created,
        [WIRE_ADMIN] = sizeof out.admin,
    };
    const unsigned type = m->header.type;
    int status = -EINVAL;
    *bytes = 0;
    if (type == WIRE_HELLO) {
        memcpy(reply, &s->hello, sizeof s->hello);
        status = hello(s, i);
        *bytes = status == 0 ? sizeof s->hello : 0;
        return status;
    }
    if (!s->box[i].registered)
        return -ESTALE;
    if (type == WIRE_BYE) {
        end_client(s, i);
        return 0;
    }
    if (type >= sizeof takes / sizeof takes[0] || takes[type] == 0 ||
        m->header.bytes != takes[type])
        return -EINVAL;
    memcpy(&in, m->body, takes[type]);
    if (type == WIRE_NAMESPACE)
        status = s->ops->namespace(s->context, (uint32_t)in.word, &out.namespace);
    else if (type == WIRE_CREATE)
        status = create(s, i, &in.create, &out.created);
    else if (type == WIRE_DELETE)
        status = delete_pair(s, i, in.word);
    else
        status = admin(s, i, &in.sqe, &out.admin);
    if (status == 0 && type < sizeof gives / sizeof gives[0]) {
        *bytes = gives[type];
        memcpy(reply, &out, gives[type]);
    }
    return status;
}

/* A request is there whose number we have not seen. */
static void answer(struct dnvme_server *s, unsigned i)
{
    struct dnvme_mailbox *box = &s->box[i];
    struct wire_message m;
    uint8_t body[WIRE_BODY_BYTES] = { 0 };
    uint16_t bytes;
    k_load(s->kernel, at_of(s, i, WIRE_REQUEST), &m, sizeof m);
    if (m.header.bytes > WIRE_BODY_BYTES || m.header.check != wire_check(&m, box->incarnation)) {
        s->stats.damaged++; /* or not all there yet */
        return;
    }
    if ((int32_t)(m.header.sequence - box->served) <= 0) /* an earlier one may arrive late */
        return;
    box->served = m.header.sequence;
    const int status = serve(s, i, &m, body, &bytes);
    if (status != DEFERRED)
        reply_write(s, i, m.header.type, status, body, bytes);
}

/* Once; it does not get the mailbox later either, as it may have given up. */
static void refuse(struct dnvme_server *s, unsigned i, uint32_t incarnation)
{
    const uint64_t word = WIRE_WORD(incarnation, 0);
    if (s->box[i].refused == incarnation)
        return;
    s->box[i].refused = incarnation;
    s->stats.refused++;
    k_store(s->kernel, at_of(s, i, WIRE_REFUSED), &word, sizeof word);
}

static void look(struct dnvme_server *s, unsigned i)
{
    struct dnvme_mailbox *box = &s->box[i];
    uint64_t heartbeat = load8(s, i, WIRE_HEARTBEAT);
    const uint32_t incarnation = (uint32_t)(heartbeat >> 32);
    if (incarnation == 0)
        return;
    if (incarnation != box->incarnation && box->registered)
        refuse(s, i, incarnation);
    if (incarnation == box->refused) {
        heartbeat = box->heartbeat;
    } else if (incarnation != box->incarnation) {
        box->incarnation = incarnation;
        box->served = 0;
        box->heartbeat = heartbeat;
    }
    if (heartbeat != box->heartbeat) {
        box->heartbeat = heartbeat;
        box->changed_ps = k_now_ps(s->kernel);
        if (box->registered)
            registered_store(s, i, heartbeat);
    }
    /* Before the request: that may take longer than the lease, and what was loaded is old then. */
    if (box->registered && k_now_ps(s->kernel) - box->changed_ps > s->lease_ps) {
        s->stats.expired++;
        end_client(s, i);
    }
    if ((uint32_t)load8(s, i, WIRE_REQUEST) != box->served)
        answer(s, i);
}

/* What the controller refused to delete, once a lease. */
static void delete_orphans(struct dnvme_server *s)
{
    if (k_now_ps(s->kernel) - s->orphans_ps < s->lease_ps)
        return;
    s->orphans_ps = k_now_ps(s->kernel);
    for (unsigned q = 1; q < s->queue_end; q++)
        if (s->queue[q].owner == DNVME_ORPHANED)
            delete_begin(s, q);
}

void dnvme_server_round(struct dnvme_server *s)
{
    delete_orphans(s);
    for (unsigned i = 0; i < s->n; i++)
        look(s, i);
}

void dnvme_server_end(struct dnvme_server *s)
{
    for (unsigned i = 0; i < s->n; i++)
        end_client(s, i);
}

void dnvme_server_release(struct dnvme_server *s)
{
    k_free(s->box);
    s->box = NULL;
}
