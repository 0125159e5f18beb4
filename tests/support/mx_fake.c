#include "tests/support/mx_fake.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/fake/fake_kapi.h"

#define FAKE_MX_MAX 64u

struct mx_partner {
    struct fake_mx *to;
    uint64_t last_ps; /* when the last message to it arrives */
};
struct mx_request {
    struct mx_request *next;
    struct fake_mx *ep;
    struct mx_segment segment[4];
    unsigned n;
    uint64_t match, mask;
    bool receives, ended, matched;
    struct mx_status status;
};
struct fake_message {
    struct fake_message *next;
    struct fake_mx *from, *to;
    struct mx_request *send; /* NULL: it has ended */
    uint64_t match, bytes;
    uint8_t *byte;
};
struct fake_mx {
    struct mx_endpoint ep;
    struct mx_fake *net;
    bool dead;
    struct mx_partner partner[FAKE_MX_MAX];
    struct mx_request *posted, **posted_tail;
    struct fake_message *unexpected, **unexpected_tail;
};
struct mx_fake {
    struct kernel *kernel;
    unsigned n, late_us;
    uint64_t live, sent;
    struct fake_mx end[FAKE_MX_MAX];
};

static struct fake_mx *end_of(struct mx_endpoint *ep)
{
    return K_CONTAINER(ep, struct fake_mx, ep);
}

/* ---- Matching -------------------------------------------------------------------------------- */

static void finish(struct mx_request *request, enum mx_code code, uint64_t match,
                   uint64_t message_bytes, uint64_t bytes)
{
    request->ended = true;
    request->status.code = code;
    request->status.match = match;
    request->status.message_bytes = message_bytes;
    request->status.bytes = bytes;
}

static void free_message(struct fake_message *message)
{
    message->to->net->live--;
    free(message->byte);
    free(message);
}

/* The message's bytes into the receive, without time. */
static void deliver(struct mx_request *receive, struct fake_message *message)
{
    uint64_t done = 0;
    for (unsigned i = 0; i < receive->n && done < message->bytes; i++) {
        const uint64_t left = message->bytes - done;
        const uint64_t n = receive->segment[i].bytes < left ? receive->segment[i].bytes : left;
        k_poke(receive->ep->ep.kernel, receive->segment[i].at, message->byte + done, n);
        done += n;
    }
    finish(receive, done < message->bytes ? MX_TRUNCATED : MX_SUCCESS, message->match,
           message->bytes, done);
    receive->status.peer.partner = &receive->ep->partner[message->from->ep.id];
    if (message->send != NULL)
        finish(message->send, MX_SUCCESS, message->match, message->bytes, message->bytes);
    free_message(message);
}

static void arrives(void *arg)
{
    struct fake_message *message = arg;
    struct fake_mx *to = message->to;
    if (to->dead) {
        if (message->send != NULL)
            finish(message->send, MX_PEER_DEAD, message->match, message->bytes, 0);
        free_message(message);
        return;
    }
    for (struct mx_request **link = &to->posted; *link != NULL; link = &(*link)->next) {
        struct mx_request *receive = *link;
        if ((message->match & receive->mask) != (receive->match & receive->mask))
            continue;
        *link = receive->next;
        if (*link == NULL)
            to->posted_tail = link;
        deliver(receive, message);
        return;
    }
    *to->unexpected_tail = message;
    to->unexpected_tail = &message->next;
}

/* ---- Operations ------------------------------------------------------------------------------ */

static int fake_connect(struct mx_endpoint *ep, uint64_t nic_id, uint8_t endpoint_id, uint32_t key,
                        uint64_t until_ps, struct mx_peer *peer)
{
    struct fake_mx *own = end_of(ep);
    if (k_now_ps(ep->kernel) >= until_ps)
        return -ETIMEDOUT;
    k_compute(ep->kernel, 100);
    if (endpoint_id >= own->net->n || nic_id != MX_FAKE_NIC + endpoint_id)
        return -ENOENT;
    if (key != MX_FAKE_KEY)
        return -EPERM;
    own->partner[endpoint_id].to = &own->net->end[endpoint_id];
    peer->partner = &own->partner[endpoint_id];
    return 0;
}

static struct mx_request *new_request(struct fake_mx *own, const struct mx_segment *segment,
                                      unsigned n, void *context)
{
    struct mx_request *request = calloc(1, sizeof(*request));
    request->ep = own;
    request->n = n;
    for (unsigned i = 0; i < n; i++)
        request->segment[i] = segment[i];
    request->status.context = context;
    own->net->live++;
    return request;
}

static int fake_isend(struct mx_endpoint *ep, const struct mx_segment *segment, unsigned n,
                      const struct mx_peer *to, uint64_t match, void *context,
                      struct mx_request **request)
{
    struct fake_mx *own = end_of(ep);
    struct kernel *kernel = ep->kernel;
    if (n > 4)
        return -EINVAL;
    struct fake_message *message = calloc(1, sizeof(*message));
    *request = new_request(own, segment, n, context);
    for (unsigned i = 0; i < n; i++)
        message->bytes += segment[i].bytes;
    message->byte = malloc(message->bytes + 1);
    message->from = own;
    message->to = to->partner->to;
    message->match = match;
    for (uint64_t i = 0, done = 0; i < n; done += segment[i++].bytes)
        k_peek(kernel, segment[i].at, message->byte + done, segment[i].bytes);
    if (fake_random(kernel, 2) == 0 && !message->to->dead)
        finish(*request, MX_SUCCESS, match, message->bytes, message->bytes); /* buffered */
    else
        message->send = *request;
    own->net->live++;
    own->net->sent++;
    uint64_t at_ps = kernel->now_ps + K_US + fake_random(kernel, own->net->late_us * K_US);
    if (at_ps <= to->partner->last_ps)
        at_ps = to->partner->last_ps + 1;
    to->partner->last_ps = at_ps;
    fake_at(kernel, at_ps, arrives, message);
    return 0;
}

static int fake_irecv(struct mx_endpoint *ep, const struct mx_segment *segment, unsigned n,
                      uint64_t match, uint64_t mask, void *context, struct mx_request **request)
{
    struct fake_mx *own = end_of(ep);
    struct mx_request *receive = new_request(own, segment, n, context);
    *request = receive;
    receive->match = match;
    receive->mask = mask;
    receive->receives = true;
    for (struct fake_message **link = &own->unexpected; *link != NULL; link = &(*link)->next) {
        struct fake_message *message = *link;
        if ((message->match & mask) != (match & mask))
            continue;
        *link = message->next;
        if (*link == NULL)
            own->unexpected_tail = link;
        deliver(receive, message);
        return 0;
    }
    *own->posted_tail = receive;
    own->posted_tail = &receive->next;
    return 0;
}

static bool fake_test(struct mx_endpoint *ep, struct mx_request **request, struct mx_status *status)
{
    k_compute(ep->kernel, 50);
    if (!(*request)->ended)
        return false;
    *status = (*request)->status;
    free(*request);
    *request = NULL;
    end_of(ep)->net->live--;
    return true;
}

static bool fake_wait(struct mx_endpoint *ep, struct mx_request **request, uint64_t until_ps,
                      struct mx_status *status)
{
    while (!fake_test(ep, request, status)) {
        if (k_now_ps(ep->kernel) >= until_ps)
            return false;
        k_sleep(ep->kernel, K_US / 2);
    }
    return true;
}

static bool fake_cancel(struct mx_endpoint *ep, struct mx_request **request)
{
    struct fake_mx *own = end_of(ep);
    if ((*request)->ended)
        return false;
    for (struct mx_request **link = &own->posted; *link != NULL; link = &(*link)->next)
        if (*link == *request) {
            *link = (*request)->next;
            if (*link == NULL)
                own->posted_tail = link;
            break;
        }
    free(*request);
    *request = NULL;
    own->net->live--;
    return true;
}

static const struct mx_ops fake_ops = {
    .connect = fake_connect,
    .isend = fake_isend,
    .irecv = fake_irecv,
    .test = fake_test,
    .wait = fake_wait,
    .cancel = fake_cancel,
};

struct mx_fake *mx_fake_new(struct kernel *kernel, unsigned n, unsigned late_us)
{
    struct mx_fake *net = calloc(1, sizeof(*net));
    net->kernel = kernel;
    net->n = n;
    net->late_us = late_us;
    for (unsigned i = 0; i < n; i++) {
        struct fake_mx *end = &net->end[i];
        end->ep = (struct mx_endpoint){ &fake_ops, kernel, MX_FAKE_NIC + i, (uint8_t)i,
                                        MX_FAKE_KEY };
        end->net = net;
        end->posted_tail = &end->posted;
        end->unexpected_tail = &end->unexpected;
    }
    return net;
}

struct mx_endpoint *mx_fake_endpoint(struct mx_fake *net, unsigned i)
{
    return &net->end[i].ep;
}

void mx_fake_kill(struct mx_fake *net, unsigned i)
{
    net->end[i].dead = true;
}

uint64_t mx_fake_live(const struct mx_fake *net)
{
    return net->live;
}

uint64_t mx_fake_sent(const struct mx_fake *net)
{
    return net->sent;
}

void mx_fake_free(struct mx_fake *net)
{
    free(net);
}
