/*
 * Processes, communicators, messages from one to another.
 *
 * What it does: one MX endpoint per process, connected with all others. A message's 64 bits are the
 *   communicator's context (16), the sender's rank in it (16) and the tag (32); a receive from any
 *   source or with any tag masks these bits out, so MX matches whatever MPI asks for. Small
 *   messages, rendezvous and messages within a host are MX's as well. A communicator has a second
 *   context for its collectives, whose tag is their number, so that they never meet messages of the
 *   program.
 * Leaves out: data types (messages are contiguous bytes), persistent and synchronous sends, probes,
 *   groups beyond mpi_split(), which keeps the order of the communicator.
 * Follows: Open MPI 1.2 with its messages matched by MX (the mtl/mx component: the bits above).
 * Costs: mpi_call_cycles for each message at either side: when it is sent, when its receive has
 *   ended; docs/sources.md#mpi.
 */
#include "logic/kcosts.h"
#include "logic/mpi/mpi_internal.h"

#define CONTEXT_SHIFT 48
#define SOURCE_SHIFT  32
#define TAG_MASK      UINT64_C(0xffffffff)
#define SOURCE_MASK   (UINT64_C(0xffff) << SOURCE_SHIFT)
#define RETRY_PS      (20 * K_US)

static int fails(struct mpi_process *process, int error)
{
    if (process->error == 0)
        process->error = error;
    return process->error;
}

/* ---- Processes ------------------------------------------------------------------------------- */

static struct mpi_comm *new_comm(struct mpi_process *process)
{
    struct mpi_comm *comm = k_zalloc(sizeof(*comm));
    comm->process = process;
    comm->context = process->next_context;
    process->next_context = (uint16_t)(process->next_context + 2);
    comm->next = process->comms;
    process->comms = comm;
    return comm;
}

/* The others open their endpoints at the same time: one that is not there yet may come. */
static int connect_to(struct mpi_process *process, const struct mpi_place *place, unsigned i,
                      uint64_t until_ps)
{
    for (;;) {
        const int error = mx_connect(process->ep, place->nic_id, place->endpoint_id, place->key,
                                     until_ps, &process->peer[i]);
        if (error == 0 || error == -ETIMEDOUT)
            return error;
        if (k_now_ps(process->kernel) >= until_ps)
            return error;
        k_sleep(process->kernel, RETRY_PS);
    }
}

struct mpi_process *mpi_new(struct mx_endpoint *ep, unsigned rank, unsigned n,
                            const struct mpi_place *place, uint64_t until_ps, int *error)
{
    struct mpi_process *process = k_zalloc(sizeof(*process));
    process->ep = ep;
    process->kernel = ep->kernel;
    process->world = new_comm(process);
    process->world->rank = rank;
    process->world->n = n;
    *error = 0;
    for (unsigned i = 0; i < n && *error == 0; i++) {
        process->world->member[i] = (uint8_t)i;
        *error = connect_to(process, &place[i], i, until_ps);
    }
    if (*error == 0)
        return process;
    mpi_free(process);
    return NULL;
}

void mpi_free(struct mpi_process *process)
{
    struct mpi_comm *comm;
    struct mpi_request *request;
    while ((comm = process->comms) != NULL) {
        process->comms = comm->next;
        k_free(comm);
    }
    while ((request = process->free_requests) != NULL) {
        process->free_requests = request->next;
        k_free(request);
    }
    if (process->scratch_bytes != 0)
        k_pages_put(process->kernel, process->scratch_bytes, process->scratch);
    k_free(process);
}

struct mpi_comm *mpi_world(struct mpi_process *process)
{
    return process->world;
}

struct mpi_process *mpi_process_of(const struct mpi_comm *comm)
{
    return comm->process;
}

unsigned mpi_rank(const struct mpi_comm *comm)
{
    return comm->rank;
}

unsigned mpi_size(const struct mpi_comm *comm)
{
    return comm->n;
}

int mpi_error(const struct mpi_process *process)
{
    return process->error;
}

bool mpi_scratch(struct mpi_process *process, uint64_t bytes)
{
    const uint64_t pages = (bytes + K_PAGE_BYTES - 1) & ~(uint64_t)(K_PAGE_BYTES - 1);
    if (pages <= process->scratch_bytes)
        return true;
    if (process->scratch_bytes != 0)
        k_pages_put(process->kernel, process->scratch_bytes, process->scratch);
    process->scratch_bytes = 0;
    if (k_pages_get(process->kernel, K_NODE_LOCAL, pages, &process->scratch) != 0) {
        fails(process, -ENOMEM);
        return false;
    }
    process->scratch_bytes = pages;
    return true;
}

void mpi_copy(struct mpi_process *process, struct kaddr to, struct kaddr from, uint64_t bytes)
{
    if (bytes != 0)
        k_copy(process->kernel, to, from, bytes);
}

/* ---- Messages -------------------------------------------------------------------------------- */

static struct mpi_request *new_request(struct mpi_process *process, bool receives)
{
    struct mpi_request *request = process->free_requests;
    if (request == NULL)
        request = k_zalloc(sizeof(*request));
    else
        process->free_requests = request->next;
    request->receives = receives;
    return request;
}

static void free_request(struct mpi_process *process, struct mpi_request *request)
{
    request->next = process->free_requests;
    process->free_requests = request;
}

static uint64_t match_of(uint16_t context, unsigned source, uint32_t tag)
{
    return (uint64_t)context << CONTEXT_SHIFT | (uint64_t)(source & 0xffff) << SOURCE_SHIFT | tag;
}

static int isend(struct mpi_comm *comm, uint16_t context, struct kaddr from, uint64_t bytes,
                 unsigned to, uint32_t tag, struct mpi_request **request)
{
    struct mpi_process *process = comm->process;
    const struct mx_segment segment = { from, bytes };
    *request = NULL;
    if (process->error != 0)
        return process->error;
    k_run(process->kernel, K_TEXT_MPI_SEND, k_costs(process->kernel)->mpi_call_cycles);
    struct mpi_request *r = new_request(process, false);
    const int error = mx_isend(process->ep, &segment, bytes != 0, &process->peer[comm->member[to]],
                               match_of(context, comm->rank, tag), r, &r->mx);
    if (error != 0) {
        free_request(process, r);
        return fails(process, error);
    }
    *request = r;
    return 0;
}

static int irecv(struct mpi_comm *comm, uint16_t context, struct kaddr to, uint64_t bytes, int from,
                 int tag, struct mpi_request **request)
{
    struct mpi_process *process = comm->process;
    const struct mx_segment segment = { to, bytes };
    uint64_t mask = UINT64_MAX;
    *request = NULL;
    if (process->error != 0)
        return process->error;
    if (from == MPI_ANY_SOURCE)
        mask &= ~SOURCE_MASK;
    if (tag == MPI_ANY_TAG)
        mask &= ~TAG_MASK;
    k_run(process->kernel, K_TEXT_MPI_RECEIVE, 0); /* its cycles are charged when it has ended */
    struct mpi_request *r = new_request(process, true);
    const int error = mx_irecv(process->ep, &segment, bytes != 0,
                               match_of(context, (unsigned)from, (uint32_t)tag) & mask, mask, r,
                               &r->mx);
    if (error != 0) {
        free_request(process, r);
        return fails(process, error);
    }
    *request = r;
    return 0;
}

int mpi_isend(struct mpi_comm *comm, struct kaddr from, uint64_t bytes, unsigned to, int tag,
              struct mpi_request **request)
{
    return isend(comm, comm->context, from, bytes, to, (uint32_t)tag, request);
}

int mpi_irecv(struct mpi_comm *comm, struct kaddr to, uint64_t bytes, int from, int tag,
              struct mpi_request **request)
{
    return irecv(comm, comm->context, to, bytes, from, tag, request);
}

int mpi_isend2(struct mpi_comm *comm, struct kaddr from, uint64_t bytes, unsigned to,
               struct mpi_request **request)
{
    return isend(comm, (uint16_t)(comm->context + 1), from, bytes, to,
                 comm->collectives & MPI_TAG_MAX, request);
}

int mpi_irecv2(struct mpi_comm *comm, struct kaddr to, uint64_t bytes, unsigned from,
               struct mpi_request **request)
{
    return irecv(comm, (uint16_t)(comm->context + 1), to, bytes, (int)from,
                 (int)(comm->collectives & MPI_TAG_MAX), request);
}

/* The request has ended with this status. */
static int ended(struct mpi_process *process, struct mpi_request **request,
                 const struct mx_status *is, struct mpi_status *status)
{
    if ((*request)->receives)
        k_run(process->kernel, K_TEXT_MPI_ENDED, k_costs(process->kernel)->mpi_call_cycles);
    free_request(process, *request);
    *request = NULL;
    if (status != NULL)
        *status = (struct mpi_status){ .source = (int)((is->match & SOURCE_MASK) >> SOURCE_SHIFT),
                                       .tag = (int)(is->match & TAG_MASK),
                                       .bytes = is->message_bytes };
    if (is->code == MX_TRUNCATED)
        return fails(process, -EMSGSIZE);
    if (is->code != MX_SUCCESS)
        return fails(process, -ECONNRESET);
    return process->error;
}

/* After an error messages may never come: what can be taken back is. True: nothing is left. */
static bool taken_back(struct mpi_process *process, struct mpi_request **request)
{
    if (*request == NULL)
        return true;
    if (process->error == 0 || ((*request)->receives && !mx_cancel(process->ep, &(*request)->mx)))
        return false;
    free_request(process, *request);
    *request = NULL;
    return true;
}

int mpi_wait(struct mpi_process *process, struct mpi_request **request, struct mpi_status *status)
{
    struct mx_status is;
    if (taken_back(process, request))
        return process->error;
    mx_wait(process->ep, &(*request)->mx, UINT64_MAX, &is);
    return ended(process, request, &is, status);
}

int mpi_wait_all(struct mpi_process *process, struct mpi_request **request, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        mpi_wait(process, &request[i], NULL);
    return process->error;
}

int mpi_test(struct mpi_process *process, struct mpi_request **request, bool *done,
             struct mpi_status *status)
{
    struct mx_status is;
    *done = taken_back(process, request);
    if (*done)
        return process->error;
    *done = mx_test(process->ep, &(*request)->mx, &is);
    return *done ? ended(process, request, &is, status) : process->error;
}

int mpi_send(struct mpi_comm *comm, struct kaddr from, uint64_t bytes, unsigned to, int tag)
{
    struct mpi_request *request;
    mpi_isend(comm, from, bytes, to, tag, &request);
    return mpi_wait(comm->process, &request, NULL);
}

int mpi_recv(struct mpi_comm *comm, struct kaddr to, uint64_t bytes, int from, int tag,
             struct mpi_status *status)
{
    struct mpi_request *request;
    mpi_irecv(comm, to, bytes, from, tag, &request);
    return mpi_wait(comm->process, &request, status);
}

int mpi_sendrecv(struct mpi_comm *comm, struct kaddr out, uint64_t out_bytes, unsigned to,
                 struct kaddr in, uint64_t in_bytes, int from, int tag)
{
    struct mpi_request *request[2];
    mpi_irecv(comm, in, in_bytes, from, tag, &request[0]);
    mpi_isend(comm, out, out_bytes, to, tag, &request[1]);
    return mpi_wait_all(comm->process, request, 2);
}

int mpi_exchange(struct mpi_comm *comm, struct kaddr out, uint64_t out_bytes, unsigned to,
                 struct kaddr in, uint64_t in_bytes, unsigned from)
{
    struct mpi_request *request[2];
    mpi_irecv2(comm, in, in_bytes, from, &request[0]);
    mpi_isend2(comm, out, out_bytes, to, &request[1]);
    return mpi_wait_all(comm->process, request, 2);
}

/* ---- Communicators --------------------------------------------------------------------------- */

/* Every process tells every other its colour and the next context that it has free, in a word. */
static int tell_colours(struct mpi_comm *comm, uint32_t colour, uint64_t *told)
{
    struct mpi_process *process = comm->process;
    struct mpi_request *request[2 * MPI_PROCESSES_MAX];
    const uint64_t word = (uint64_t)process->next_context << 32 | colour;
    unsigned n = 0;
    if (!mpi_scratch(process, comm->n * K_LINE_BYTES))
        return process->error;
    const struct kaddr own = kaddr_add(process->scratch, comm->rank * K_LINE_BYTES);
    k_store(process->kernel, own, &word, sizeof(word));
    comm->collectives++;
    for (unsigned i = 0; i < comm->n; i++)
        if (i != comm->rank)
            mpi_irecv2(comm, kaddr_add(process->scratch, i * K_LINE_BYTES), sizeof(word), i,
                       &request[n++]);
    for (unsigned i = 0; i < comm->n; i++)
        if (i != comm->rank)
            mpi_isend2(comm, own, sizeof(word), i, &request[n++]);
    mpi_wait_all(process, request, n);
    for (unsigned i = 0; i < comm->n; i++)
        k_load(process->kernel, kaddr_add(process->scratch, i * K_LINE_BYTES), &told[i],
               sizeof(word));
    return process->error;
}

int mpi_split(struct mpi_comm *comm, uint32_t colour, struct mpi_comm **part)
{
    struct mpi_process *process = comm->process;
    uint64_t told[MPI_PROCESSES_MAX];
    *part = NULL;
    if (tell_colours(comm, colour, told) != 0)
        return process->error;
    for (unsigned i = 0; i < comm->n; i++) /* one that all have free */
        if (told[i] >> 32 > process->next_context)
            process->next_context = (uint16_t)(told[i] >> 32);
    struct mpi_comm *new = new_comm(process);
    for (unsigned i = 0; i < comm->n; i++) {
        if ((uint32_t)told[i] != colour)
            continue;
        if (i == comm->rank)
            new->rank = new->n;
        new->member[new->n++] = comm->member[i];
    }
    *part = new;
    return 0;
}
