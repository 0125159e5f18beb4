/*
 * Mailboxes of the distributed NVMe driver: a server and its clients on one fake kernel, the fabric
 * being memory of the same host, with links that lose stores. What holds: requests are carried out
 * once each, however often they are repeated; leases end in time, and never while a client believes
 * in its own; nobody gets at what is another's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "logic/dnvme/dnvme_internal.h"
#include "tests/support/fake/fake_kapi.h"

#define CLIENTS  4u
#define QUEUES   6u /* 1 .. 5 */
#define LEASE_PS FAKE_MS(8)
#define BUS(i)   (UINT64_C(0x100000000) + (uint64_t)(i)*0x10000)
#define ADMIN    UINT64_C(0x80000000)

/* A controller that only counts. */
struct controller {
    bool there[QUEUES];
    unsigned n_created, n_deleted, n_admin;
    struct nvme_sqe last;
    bool dead;
};

struct rig {
    struct kernel *kernel;
    struct dnvme_server server;
    struct controller controller;
    bool stopping;
    unsigned n_running, n_deleting, n_asked; /* to delete */
    uint64_t create_ps, delete_ps;           /* that a creation and a deletion take */
    bool refuses;                            /* to delete */
    uint64_t created_ps[QUEUES];             /* for the client that has it now */
};

static int create(void *context, uint16_t id, const struct wire_create *wire, uint64_t *sq_bus)
{
    struct rig *r = context;
    assert_true(id > 0 && id < QUEUES && !r->controller.there[id]);
    k_sleep(r->kernel, r->create_ps);
    if (r->controller.dead)
        return -ENODEV;
    r->controller.there[id] = true;
    r->controller.n_created++;
    *sq_bus = wire->sq_bus;
    return 0;
}

/* Takes some time, in which others are served. */
struct deletion {
    struct rig *rig;
    uint16_t id;
};

static void delete_body(void *arg)
{
    struct deletion *d = arg;
    struct rig *r = d->rig;
    k_sleep(r->kernel, r->delete_ps);
    const int status = r->controller.dead ? -ENODEV : r->refuses ? -EIO : 0;
    if (status == 0) {
        r->controller.there[d->id] = false;
        r->controller.n_deleted++;
    }
    dnvme_server_deleted(&r->server, d->id, status);
    k_free(d);
    r->n_deleting--;
}

static void delete_pair(void *context, uint16_t id)
{
    struct rig *r = context;
    struct deletion *d = k_zalloc(sizeof *d);
    assert_true(r->controller.there[id]);
    *d = (struct deletion){ r, id };
    r->n_deleting++;
    r->n_asked++;
    k_thread_new(r->kernel, "delete", 0, delete_body, d);
}

static int admin(void *context, const struct nvme_sqe *sqe, struct wire_admin *reply)
{
    struct rig *r = context;
    r->controller.n_admin++;
    r->controller.last = *sqe;
    *reply = (struct wire_admin){ .result = 7, .status = 0 };
    return 0;
}

static int namespace(void *context, uint32_t nsid, struct wire_namespace *reply)
{
    (void)context;
    *reply = (struct wire_namespace){ .blocks = 1000, .block_log2 = 9 };
    return nsid == 1 ? 0 : -ENOENT;
}

static void server_body(void *arg)
{
    struct rig *r = arg;
    r->n_running++;
    while (!r->stopping) {
        dnvme_server_round(&r->server);
        k_sleep(r->kernel, FAKE_US(20));
    }
    r->n_running--;
}

static void open_rig(struct rig *r, const struct fake_options *options)
{
    static const struct dnvme_server_ops ops = { create, delete_pair, admin, namespace };
    *r = (struct rig){ .kernel = fake_new(options),
                       .create_ps = FAKE_US(5),
                       .delete_ps = FAKE_US(300) };
    r->server = (struct dnvme_server){
        .kernel = r->kernel,
        .mailboxes = k_alloc(r->kernel, 0, (size_t)CLIENTS * WIRE_SLOT_BYTES, K_PAGE_BYTES),
        .n = CLIENTS,
        .lease_ps = LEASE_PS,
        .hello = { .lease_ps = LEASE_PS, .entries_max = 256, .client_queues = 2 },
        .queue_end = QUEUES,
        .reserved = { { ADMIN, 0x3000 } },
        .ops = &ops,
        .context = r,
    };
    dnvme_server_init(&r->server);
    k_thread_new(r->kernel, "server", 0, server_body, r);
}

static void close_rig(struct rig *r)
{
    r->stopping = true;
    dnvme_server_end(&r->server);
    while (r->n_running != 0 || r->n_deleting != 0)
        fake_run_until(r->kernel, r->kernel->now_ps + FAKE_US(100));
    dnvme_server_release(&r->server);
    fake_free(r->kernel);
}

/* ---- A client -------------------------------------------------------------------------------- */

struct client {
    struct rig *rig;
    unsigned box;
    struct sisci_map map;
    struct dnvme_mail mail;
    struct wire_hello hello;
};

static void client_init(struct client *c, struct rig *r, unsigned box, uint32_t incarnation)
{
    *c = (struct client){ .rig = r, .box = box };
    c->map = (struct sisci_map){
        .kernel = r->kernel,
        .address = kaddr_add(r->server.mailboxes, (uint64_t)box * WIRE_SLOT_BYTES).v,
        .bytes = WIRE_SLOT_BYTES,
    };
    c->mail = (struct dnvme_mail){ .kernel = r->kernel,
                                   .map = { &c->map },
                                   .n_maps = 1,
                                   .incarnation = incarnation,
                                   .timeout_ps = FAKE_MS(20) };
}

static void client_open(struct client *c, struct rig *r, unsigned box, uint32_t incarnation)
{
    client_init(c, r, box, incarnation);
    assert_int_equal(dnvme_mail_open(&c->mail, &c->hello), 0);
}

static int call_create(struct client *c, uint64_t sq, uint64_t cq, uint32_t entries, uint64_t *q)
{
    const struct wire_create request = { .sq_bus = sq, .cq_bus = cq, .entries = entries };
    struct wire_created reply = { 0 };
    const int status = dnvme_mail_call(&c->mail, WIRE_CREATE, &request, sizeof request, &reply,
                                       sizeof reply);
    *q = reply.handle;
    return status;
}

static int call_delete(struct client *c, uint64_t q)
{
    return dnvme_mail_call(&c->mail, WIRE_DELETE, &q, sizeof q, NULL, 0);
}

static int call_admin(struct client *c, struct nvme_sqe sqe, struct wire_admin *reply)
{
    return dnvme_mail_call(&c->mail, WIRE_ADMIN, &sqe, sizeof sqe, reply, sizeof *reply);
}

/* The test itself is the client, on CPU 1. */
static struct rig *rig_of(struct rig *r)
{
    const struct fake_options options = { .seed = 3, .n_cpus = 4, .n_nodes = 1 };
    open_rig(r, &options);
    fake_on(r->kernel, 1);
    return r;
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static void test_requests(void **state)
{
    struct rig rig, *r = rig_of(&rig);
    struct client c;
    struct wire_namespace ns;
    uint64_t nsid = 1, q;
    (void)state;
    client_open(&c, r, 2, 11);
    assert_int_equal(c.hello.entries_max, 256);
    assert_int_equal(r->server.stats.n_clients, 1);
    assert_int_equal(dnvme_mail_call(&c.mail, WIRE_NAMESPACE, &nsid, 8, &ns, sizeof ns), 0);
    assert_int_equal(ns.blocks, 1000);
    nsid = 2;
    assert_int_equal(dnvme_mail_call(&c.mail, WIRE_NAMESPACE, &nsid, 8, &ns, sizeof ns), -ENOENT);
    assert_int_equal(dnvme_mail_call(&c.mail, (enum wire_type)77, NULL, 0, NULL, 0), -EINVAL);
    assert_int_equal(dnvme_mail_call(&c.mail, WIRE_DELETE, NULL, 0, NULL, 0), -EINVAL);
    assert_int_equal(call_create(&c, BUS(0), BUS(1), 64, &q), 0);
    assert_int_equal(q, 1);
    assert_int_equal(call_create(&c, BUS(2), BUS(3), 64, &q), 0);
    assert_int_equal(q, 2);
    assert_int_equal(call_create(&c, BUS(4), BUS(5), 64, &q), -ENOSPC); /* two are its share */
    assert_int_equal(call_delete(&c, 1), 0);
    assert_int_equal(call_delete(&c, 1), -EPERM);
    assert_int_equal(dnvme_mail_call(&c.mail, WIRE_BYE, NULL, 0, NULL, 0), 0);
    assert_int_equal(r->server.stats.n_clients, 0);
    k_sleep(r->kernel, FAKE_MS(1));
    assert_int_equal(r->controller.n_deleted, 2);
    assert_false(dnvme_mail_look(&c.mail));
    close_rig(r);
}

/* Queues of a client lie over nobody's, it deletes only its own, and has commands done that concern
 * it alone. */
static void test_others(void **state)
{
    struct rig rig, *r = rig_of(&rig);
    struct client a, b;
    struct wire_admin reply;
    uint64_t q;
    (void)state;
    client_open(&a, r, 0, 1);
    client_open(&b, r, 1, 2);
    assert_int_equal(call_create(&a, BUS(0), BUS(1), 256, &q), 0);
    assert_int_equal(call_create(&b, BUS(0), BUS(3), 64, &q), -EACCES);          /* a's SQ */
    assert_int_equal(call_create(&b, BUS(4), BUS(0) + 0x3000, 64, &q), -EACCES); /* its end */
    assert_int_equal(call_create(&b, BUS(4), BUS(0) + 0x4000, 64, &q), 0);
    assert_int_equal(call_create(&b, BUS(5), BUS(5), 64, &q), -EACCES); /* over itself */
    assert_int_equal(call_create(&b, ADMIN + 0x1000, BUS(6), 64, &q), -EACCES);
    assert_int_equal(call_create(&b, BUS(6) + 8, BUS(7), 64, &q), -EINVAL);
    assert_int_equal(call_create(&b, BUS(6), BUS(7), 1, &q), -EINVAL);
    assert_int_equal(call_create(&b, BUS(6), BUS(7), 257, &q), -EINVAL);
    assert_int_equal(call_create(&b, UINT64_MAX - 0xfff, BUS(7), 256, &q), -EACCES); /* wraps */
    assert_int_equal(call_delete(&b, 1), -EPERM);
    assert_int_equal(call_delete(&b, 0), -EPERM);
    assert_int_equal(call_delete(&b, 1000), -EPERM);
    static const uint8_t forbidden[] = { NVME_ADMIN_DELETE_SQ,      NVME_ADMIN_CREATE_SQ,
                                         NVME_ADMIN_DELETE_CQ,      NVME_ADMIN_CREATE_CQ,
                                         NVME_ADMIN_SET_FEATURES,   NVME_ADMIN_ASYNC_EVENT,
                                         NVME_ADMIN_VIRTUALIZATION, 0x80 /* Format */ };
    for (unsigned i = 0; i < sizeof forbidden; i++)
        assert_int_equal(call_admin(&b, (struct nvme_sqe){ .opcode = forbidden[i] }, &reply),
                         -EPERM);
    struct nvme_sqe sqe = { .opcode = NVME_ADMIN_IDENTIFY, .prp1 = BUS(8) };
    assert_int_equal(call_admin(&b, sqe, &reply), 0);
    assert_int_equal(reply.result, 7);
    sqe.prp1 = BUS(0); /* over a's queue */
    assert_int_equal(call_admin(&b, sqe, &reply), -EACCES);
    sqe.prp1 = BUS(8) + 0x800;
    sqe.prp2 = ADMIN;
    assert_int_equal(call_admin(&b, sqe, &reply), -EACCES);
    sqe =
        (struct nvme_sqe){ .opcode = NVME_ADMIN_GET_LOG, .prp1 = BUS(8), .cdw10 = 1023u << 16 | 1 };
    assert_int_equal(call_admin(&b, sqe, &reply), 0);
    assert_true((r->controller.last.cdw10 & NVME_LOG_RETAIN_EVENT) != 0);
    sqe.cdw10 = 1024u << 16 | 1; /* more than a page */
    assert_int_equal(call_admin(&b, sqe, &reply), -EPERM);
    sqe = (struct nvme_sqe){ .opcode = NVME_ADMIN_ABORT, .cdw10 = 1 };
    assert_int_equal(call_admin(&b, sqe, &reply), -EPERM); /* a's command */
    assert_int_equal(call_admin(&a, sqe, &reply), 0);
    assert_int_equal(r->controller.n_admin, 3);
    assert_true(r->server.stats.refused >= 17);
    close_rig(r);
}

/* A request to create a queue pair. */
static struct wire_message create_message(const struct client *c, uint32_t sequence)
{
    const struct wire_create body = { .sq_bus = BUS(2), .cq_bus = BUS(3), .entries = 64 };
    struct wire_message m = {
        .header = { .sequence = sequence, .type = WIRE_CREATE, .bytes = sizeof body }
    };
    memcpy(m.body, &body, sizeof body);
    m.header.check = wire_check(&m, c->mail.incarnation);
    return m;
}

static void message_write(const struct client *c, const struct wire_message *m)
{
    uint64_t word;
    for (unsigned at = (unsigned)sizeof m->header + m->header.bytes; at > 0; at -= 8) {
        memcpy(&word, (const char *)m + at - 8, 8);
        sisci_write(&c->map, WIRE_REQUEST + at - 8, 8, word);
    }
}

/* A request that is written again is answered again, and carried out once; one that is not whole is
 * not carried out. */
static void test_repeats(void **state)
{
    struct rig rig, *r = rig_of(&rig);
    struct client c;
    uint64_t q, torn;
    (void)state;
    client_open(&c, r, 0, 5);
    assert_int_equal(call_create(&c, BUS(0), BUS(1), 64, &q), 0);
    c.mail.sequence--; /* the reply did not arrive */
    assert_int_equal(call_create(&c, BUS(0), BUS(1), 64, &q), 0);
    assert_int_equal(q, 1);
    assert_int_equal(r->controller.n_created, 1);
    /* An earlier one arrives late. */
    struct wire_message m = create_message(&c, c.mail.sequence - 1);
    message_write(&c, &m);
    k_sleep(r->kernel, FAKE_MS(1));
    assert_int_equal(r->controller.n_created, 1);
    /* Its words but one arrive. */
    m = create_message(&c, c.mail.sequence + 1);
    memcpy(&torn, &m.body[8], 8);
    memset(&m.body[8], 0, 8);
    message_write(&c, &m);
    k_sleep(r->kernel, FAKE_MS(1));
    assert_int_equal(r->controller.n_created, 1);
    assert_true(r->server.stats.damaged > 0);
    sisci_write(&c.map, WIRE_REQUEST + sizeof m.header + 8, 8, torn);
    k_sleep(r->kernel, FAKE_MS(1));
    assert_int_equal(r->controller.n_created, 2);
    close_rig(r);
}

/* A client that is silent loses its queues after the lease, not before, and knows it by then. */
static void test_lease(void **state)
{
    struct rig rig, *r = rig_of(&rig);
    struct client quiet, live, again;
    uint64_t q;
    (void)state;
    client_open(&quiet, r, 0, 1);
    client_open(&live, r, 1, 2);
    assert_int_equal(call_create(&quiet, BUS(0), BUS(1), 64, &q), 0);
    assert_int_equal(call_create(&live, BUS(2), BUS(3), 64, &q), 0);
    dnvme_mail_heartbeat(&quiet.mail);
    const uint64_t last_ps = k_now_ps(r->kernel);
    k_sleep(r->kernel, FAKE_US(100));
    assert_true(dnvme_mail_look(&quiet.mail));
    assert_true(quiet.mail.valid_until_ps > last_ps &&
                quiet.mail.valid_until_ps < last_ps + LEASE_PS);
    while (r->controller.n_deleted == 0) {
        assert_true(k_now_ps(r->kernel) < last_ps + LEASE_PS + FAKE_MS(2));
        dnvme_mail_heartbeat(&live.mail);
        k_sleep(r->kernel, LEASE_PS / DNVME_HEARTBEATS);
        assert_true(dnvme_mail_look(&live.mail));
    }
    assert_true(r->server.stats.reclaimed_ps > quiet.mail.valid_until_ps);
    assert_int_equal(r->server.stats.expired, 1);
    assert_int_equal(r->server.stats.reclaimed, 1);
    assert_int_equal(r->server.stats.n_queues, 1);
    assert_true(r->controller.there[2]);
    assert_false(dnvme_mail_look(&quiet.mail));
    assert_int_equal(call_create(&quiet, BUS(0), BUS(1), 64, &q), -ESTALE);
    dnvme_mail_heartbeat(&quiet.mail); /* it is too late */
    k_sleep(r->kernel, FAKE_US(100));
    assert_false(dnvme_mail_look(&quiet.mail));
    client_open(&again, r, 0, 3); /* a new process in its place */
    assert_int_equal(call_create(&again, BUS(0), BUS(1), 64, &q), 0);
    assert_int_equal(WIRE_HANDLE_NUMBER(q), 1);
    close_rig(r);
}

/* Renews the lease in a thread of its own, as clients do. */
struct renewal {
    struct client *c;
    unsigned n;
};

static void renew_body(void *arg)
{
    struct renewal *renewal = arg;
    struct rig *r = renewal->c->rig;
    for (; renewal->n > 0; renewal->n--) {
        dnvme_mail_heartbeat(&renewal->c->mail);
        k_sleep(r->kernel, LEASE_PS / DNVME_HEARTBEATS);
    }
    r->n_running--;
}

/* A client that renews its lease keeps it while its own request takes longer than that. */
static void test_slow_request(void **state)
{
    struct rig rig, *r = rig_of(&rig);
    struct client c;
    struct renewal renewal = { &c, 12 };
    uint64_t q;
    (void)state;
    client_open(&c, r, 0, 1);
    r->create_ps = LEASE_PS + FAKE_MS(1);
    r->n_running++;
    k_thread_new(r->kernel, "renew", 2, renew_body, &renewal);
    assert_int_equal(call_create(&c, BUS(0), BUS(1), 64, &q), 0);
    assert_true(renewal.n > 0);
    k_sleep(r->kernel, FAKE_US(500));
    assert_true(dnvme_mail_look(&c.mail));
    assert_int_equal(r->server.stats.expired, 0);
    assert_int_equal(r->server.stats.n_queues, 1);
    assert_true(r->controller.there[1]);
    close_rig(r);
}

/* A client does not get a mailbox that has one, which goes on as if nothing had come; a process
 * that was restarted gets its mailbox when the lease of the one before is over. */
static void test_restart(void **state)
{
    struct rig rig, *r = rig_of(&rig);
    struct client old, new;
    struct wire_namespace ns;
    uint64_t q, nsid = 1;
    uint32_t incarnation = 2;
    (void)state;
    client_open(&old, r, 3, 1);
    assert_int_equal(call_create(&old, BUS(0), BUS(1), 64, &q), 0);
    for (unsigned i = 0; i < 40; i++) {
        dnvme_mail_heartbeat(&old.mail);
        if (i % 10 == 0) {
            client_init(&new, r, 3, incarnation++);
            assert_int_equal(dnvme_mail_open(&new.mail, &new.hello), -EBUSY);
        }
        k_sleep(r->kernel, LEASE_PS / DNVME_HEARTBEATS);
        assert_true(dnvme_mail_look(&old.mail));
        assert_int_equal(
            dnvme_mail_call(&old.mail, WIRE_NAMESPACE, &nsid, sizeof nsid, &ns, sizeof ns), 0);
    }
    assert_int_equal(r->controller.n_deleted, 0);
    assert_int_equal(r->server.stats.n_clients, 1);
    const uint64_t died_ps = k_now_ps(r->kernel);
    client_init(&new, r, 3, incarnation++);
    while (dnvme_mail_open(&new.mail, &new.hello) ==
           -EBUSY) { /* it tries much more often than a lease */
        assert_true(k_now_ps(r->kernel) < died_ps + LEASE_PS + FAKE_MS(4));
        k_sleep(r->kernel, FAKE_MS(1) / 2);
        client_init(&new, r, 3, incarnation++);
    }
    assert_true(k_now_ps(r->kernel) > died_ps + LEASE_PS / 2);
    assert_int_equal(r->server.stats.n_clients, 1);
    assert_int_equal(r->server.stats.expired, 1);
    assert_false(dnvme_mail_look(&old.mail));
    k_sleep(r->kernel, FAKE_MS(1));
    assert_int_equal(r->controller.n_deleted, 1);
    assert_int_equal(call_create(&new, BUS(0), BUS(1), 64, &q), 0);
    close_rig(r);
}

/* A controller that does not answer any more holds nobody up. */
static void test_dead_controller(void **state)
{
    struct rig rig, *r = rig_of(&rig);
    struct client c;
    uint64_t q;
    (void)state;
    client_open(&c, r, 0, 1);
    assert_int_equal(call_create(&c, BUS(0), BUS(1), 64, &q), 0);
    r->controller.dead = true;
    assert_int_equal(call_create(&c, BUS(2), BUS(3), 64, &q), -ENODEV);
    assert_int_equal(call_delete(&c, 1), -ENODEV);
    assert_int_equal(call_delete(&c, 1), -ENODEV); /* it is still there */
    assert_int_equal(r->server.stats.n_queues, 1);
    assert_int_equal(dnvme_mail_call(&c.mail, WIRE_BYE, NULL, 0, NULL, 0), 0);
    close_rig(r);
}

/* A deletion that takes longer than the client waits: asked again it waits for the same one. One
 * that the controller refuses is asked for again. -EPERM says that the queue is not there any
 * more. */
static void test_slow_deletion(void **state)
{
    struct rig rig, *r = rig_of(&rig);
    struct client c;
    uint64_t q;
    (void)state;
    client_open(&c, r, 0, 1);
    c.mail.timeout_ps = FAKE_MS(1);
    r->delete_ps = FAKE_US(1500);
    assert_int_equal(call_create(&c, BUS(0), BUS(1), 64, &q), 0);
    assert_int_equal(call_delete(&c, 1), -ETIMEDOUT);
    assert_int_equal(r->server.stats.n_queues, 1);
    assert_int_equal(call_create(&c, BUS(1), BUS(2), 64, &q), -EACCES); /* it lies there */
    assert_int_equal(call_delete(&c, 1), 0);
    assert_int_equal(r->controller.n_deleted, 1);
    assert_int_equal(call_delete(&c, 1), -EPERM);
    r->delete_ps = FAKE_US(300);
    r->refuses = true;
    assert_int_equal(call_create(&c, BUS(0), BUS(1), 64, &q), 0);
    assert_int_equal(WIRE_HANDLE_NUMBER(q), 1);
    assert_int_equal(call_delete(&c, 1), -EPERM); /* the one before */
    assert_true(r->controller.there[1]);
    assert_int_equal(call_delete(&c, q), -EIO);
    r->refuses = false;
    assert_int_equal(call_delete(&c, q), 0);
    assert_int_equal(r->controller.n_deleted, 2);
    assert_int_equal(r->server.stats.n_queues, 0);
    close_rig(r);
}

/* A pair that was created too late for its client is deleted before anything else, so that neither
 * its number nor its place is lost. */
static void test_slow_creation(void **state)
{
    struct rig rig, *r = rig_of(&rig);
    struct client c;
    uint64_t q;
    (void)state;
    client_open(&c, r, 0, 1);
    c.mail.timeout_ps = FAKE_MS(1);
    r->create_ps = FAKE_US(1500);
    for (unsigned i = 0; i < 3; i++) /* more than its share */
        assert_int_equal(call_create(&c, BUS(0), BUS(1), 64, &q), -ETIMEDOUT);
    r->create_ps = FAKE_US(5);
    assert_int_equal(call_create(&c, BUS(0), BUS(1), 64, &q), 0);
    assert_int_equal(r->server.stats.n_queues, 1);
    assert_int_equal(r->controller.n_created, 4);
    assert_int_equal(r->controller.n_deleted, 3);
    assert_int_equal(call_delete(&c, q), 0);
    close_rig(r);
}

/* The controller refuses at first to delete a pair that was created too late. */
static void test_undo_refused(void **state)
{
    struct rig rig, *r = rig_of(&rig);
    struct client c;
    struct wire_namespace ns;
    uint64_t q, nsid = 1;
    (void)state;
    client_open(&c, r, 0, 1);
    c.mail.timeout_ps = FAKE_MS(1);
    r->create_ps = FAKE_US(1500);
    assert_int_equal(call_create(&c, BUS(0), BUS(1), 64, &q), -ETIMEDOUT);
    r->create_ps = FAKE_US(5);
    r->refuses = true;
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(dnvme_mail_call(&c.mail, WIRE_NAMESPACE, &nsid, 8, &ns, sizeof ns), -EIO);
    assert_int_equal(r->server.stats.n_queues, 1);
    r->refuses = false;
    assert_int_equal(dnvme_mail_call(&c.mail, WIRE_NAMESPACE, &nsid, 8, &ns, sizeof ns), 0);
    assert_int_equal(r->server.stats.n_queues, 0);
    assert_int_equal(r->controller.n_deleted, r->controller.n_created);
    close_rig(r);
}

/* The answer to a request that the client waits for no longer is not taken for that to the next
 * one, also if both are of the same kind. */
static void test_late_reply(void **state)
{
    struct rig rig, *r = rig_of(&rig);
    struct client c;
    struct wire_namespace ns;
    uint64_t first, second, nsid = 1;
    (void)state;
    client_open(&c, r, 0, 1);
    assert_int_equal(call_create(&c, BUS(0), BUS(1), 64, &first), 0);
    assert_int_equal(call_create(&c, BUS(2), BUS(3), 64, &second), 0);
    r->delete_ps = FAKE_US(1500);
    c.mail.timeout_ps = FAKE_MS(1);
    assert_int_equal(call_delete(&c, first), -ETIMEDOUT);
    c.mail.timeout_ps = FAKE_MS(20);
    assert_int_equal(call_delete(&c, second), 0); /* the first ends meanwhile */
    assert_false(r->controller.there[WIRE_HANDLE_NUMBER(second)]);
    assert_int_equal(call_delete(&c, first), -EPERM);
    assert_int_equal(call_create(&c, BUS(0), BUS(1), 64, &first), 0);
    c.mail.timeout_ps = FAKE_MS(1);
    r->refuses = true;
    assert_int_equal(call_delete(&c, first), -ETIMEDOUT);
    assert_int_equal(dnvme_mail_call(&c.mail, WIRE_NAMESPACE, &nsid, 8, &ns, sizeof ns), 0);
    k_sleep(r->kernel, FAKE_MS(1)); /* the deletion has failed; its reply would lie over that */
    struct wire_message reply;
    k_load(r->kernel, kaddr_add(r->server.mailboxes, WIRE_REPLY), &reply, sizeof reply);
    assert_int_equal(reply.header.sequence, c.mail.sequence);
    assert_int_equal(reply.header.type, WIRE_NAMESPACE);
    r->refuses = false;
    close_rig(r);
}

/* The queues of a client that leaves while one of them is being deleted are reclaimed, each once,
 * and are not those of the client that has its mailbox then. */
static void test_next_client(void **state)
{
    struct rig rig, *r = rig_of(&rig);
    struct client old, new;
    uint64_t first, second, q;
    (void)state;
    client_open(&old, r, 0, 1);
    assert_int_equal(call_create(&old, BUS(0), BUS(1), 64, &first), 0);
    assert_int_equal(call_create(&old, BUS(2), BUS(3), 64, &second), 0);
    r->delete_ps = FAKE_MS(3);
    old.mail.timeout_ps = FAKE_MS(1);
    assert_int_equal(call_delete(&old, first), -ETIMEDOUT);
    assert_int_equal(dnvme_mail_call(&old.mail, WIRE_BYE, NULL, 0, NULL, 0), 0);
    client_open(&new, r, 0, 2);
    assert_int_equal(call_delete(&new, first), -EPERM);
    assert_int_equal(call_delete(&new, second), -EPERM);
    assert_int_equal(call_create(&new, BUS(0), BUS(5), 64, &q), -EACCES);
    assert_int_equal(call_create(&new, BUS(4), BUS(5), 64, &q), 0);
    assert_int_equal(call_create(&new, BUS(6), BUS(7), 64, &q), 0); /* two are its share */
    k_sleep(r->kernel, FAKE_MS(5));
    assert_int_equal(r->controller.n_deleted, 2);
    assert_int_equal(r->server.stats.reclaimed, 2);
    assert_int_equal(r->server.stats.n_queues, 2);
    assert_int_equal(call_create(&new, BUS(0), BUS(1), 64, &q), -ENOSPC);
    close_rig(r);
}

/* The controller refuses to delete a queue of a client that has left: it is asked again once a
 * lease, so that the number is not lost. */
static void test_orphan(void **state)
{
    struct rig rig, *r = rig_of(&rig);
    struct client c;
    uint64_t q;
    (void)state;
    client_open(&c, r, 0, 1);
    assert_int_equal(call_create(&c, BUS(0), BUS(1), 64, &q), 0);
    r->refuses = true;
    assert_int_equal(dnvme_mail_call(&c.mail, WIRE_BYE, NULL, 0, NULL, 0), 0);
    k_sleep(r->kernel, 4 * LEASE_PS);
    assert_int_equal(r->server.stats.n_queues, 1);
    assert_true(r->n_asked >= 4 && r->n_asked <= 6);
    r->refuses = false;
    k_sleep(r->kernel, LEASE_PS + FAKE_MS(1));
    assert_int_equal(r->server.stats.n_queues, 0);
    assert_int_equal(r->server.stats.reclaimed, 1);
    assert_int_equal(r->controller.n_deleted, 1);
    const unsigned n_asked = r->n_asked;
    k_sleep(r->kernel, 2 * LEASE_PS);
    assert_int_equal(r->n_asked, n_asked);
    close_rig(r);
}

/* No manager is there. */
static void test_no_manager(void **state)
{
    struct rig rig, *r = rig_of(&rig);
    struct client c;
    (void)state;
    r->stopping = true;
    k_sleep(r->kernel, FAKE_MS(1));
    client_init(&c, r, 0, 1);
    assert_int_equal(dnvme_mail_open(&c.mail, &c.hello), -ETIMEDOUT);
    close_rig(r);
}

/* ---- At random ------------------------------------------------------------------------------- */

/* A client that lives, with a link that is out now and then, is silent for long, and comes again. A
 * queue that it believes in must be its own. */
struct busy {
    struct client c;
    unsigned box;
    uint64_t seed;
    unsigned n_created, n_lost;
};

static uint64_t draw(struct busy *b, uint64_t below)
{
    b->seed = b->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (b->seed >> 33) % below;
}

/* Nobody else has the queue while we believe in it. */
static void look_at_queue(struct busy *b, uint64_t q)
{
    struct rig *r = b->c.rig;
    if (!b->c.mail.over && k_now_ps(r->kernel) < b->c.mail.valid_until_ps)
        assert_int_equal(r->server.queue[WIRE_HANDLE_NUMBER(q)].owner, b->box + 1);
}

static void live(struct busy *b, uint32_t incarnation)
{
    struct client *c = &b->c;
    struct rig *r = c->rig;
    uint64_t q = 0;
    client_init(c, r, b->box, incarnation);
    c->mail.timeout_ps = FAKE_MS(2);
    const int status = dnvme_mail_open(&c->mail, &c->hello);
    if (status != 0) { /* the one before did not end in order */
        k_sleep(r->kernel, LEASE_PS / 4);
        return;
    }
    for (unsigned i = 0; i < 30; i++) {
        dnvme_mail_heartbeat(&c->mail);
        const uint64_t kind = draw(b, 8);
        if (kind == 0 && q == 0 &&
            call_create(c, BUS(16 * b->box), BUS(16 * b->box + 1), 64, &q) == 0)
            b->n_created++;
        else if (kind == 1 && q != 0 && call_delete(c, q) == 0)
            q = 0;
        else if (kind == 2) /* held up */
            k_sleep(r->kernel, K_NS * draw(b, 2 * LEASE_PS / K_NS));
        else if (kind == 3) { /* the cable is out */
            c->map.lost = true;
            k_sleep(r->kernel, K_NS * draw(b, LEASE_PS / K_NS));
            dnvme_mail_look(&c->mail);
            c->map.lost = false;
        } else
            k_sleep(r->kernel, K_NS * draw(b, LEASE_PS / 8 / K_NS));
        if (q != 0)
            look_at_queue(b, q);
        if (!dnvme_mail_look(&c->mail)) {
            c->mail.over = true;
            b->n_lost++;
            return;
        }
        if (q != 0)
            look_at_queue(b, q);
    }
}

static void busy_body(void *arg)
{
    struct busy *b = arg;
    struct rig *r = b->c.rig;
    for (uint32_t incarnation = 1; incarnation <= 12; incarnation++)
        live(b, incarnation);
    r->n_running--;
}

static void test_at_random(void **state)
{
    unsigned n_created = 0, n_lost = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        const struct fake_options options = {
            .seed = seed, .n_cpus = 8, .n_nodes = 1, .stall_percent = 5
        };
        struct rig rig, *r = &rig;
        struct busy busy[CLIENTS];
        open_rig(r, &options);
        for (unsigned i = 0; i < CLIENTS; i++) {
            busy[i] = (struct busy){ .box = i, .seed = seed * 10 + i, .c = { .rig = r } };
            r->n_running++;
            k_thread_new(r->kernel, "client", (int)i + 1, busy_body, &busy[i]);
        }
        while (r->n_running > 1)
            fake_run_until(r->kernel, r->kernel->now_ps + FAKE_MS(10));
        k_sleep(r->kernel, 3 * LEASE_PS);
        assert_int_equal(r->server.stats.n_clients, 0);
        assert_int_equal(r->server.stats.n_queues, 0);
        assert_int_equal(r->controller.n_created, r->controller.n_deleted);
        for (unsigned i = 0; i < CLIENTS; i++) {
            n_created += busy[i].n_created;
            n_lost += busy[i].n_lost;
        }
        close_rig(r);
    }
    print_message("%u queue pairs, %u leases lost\n", n_created, n_lost);
    assert_true(n_created > 100 && n_lost > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests),      cmocka_unit_test(test_others),
        cmocka_unit_test(test_repeats),       cmocka_unit_test(test_lease),
        cmocka_unit_test(test_restart),       cmocka_unit_test(test_dead_controller),
        cmocka_unit_test(test_slow_deletion), cmocka_unit_test(test_slow_creation),
        cmocka_unit_test(test_late_reply),    cmocka_unit_test(test_next_client),
        cmocka_unit_test(test_no_manager),    cmocka_unit_test(test_slow_request),
        cmocka_unit_test(test_undo_refused),  cmocka_unit_test(test_orphan),
        cmocka_unit_test(test_at_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
