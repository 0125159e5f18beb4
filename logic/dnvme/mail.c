/*
 * A client's side of its mailbox: requests to the manager, and the lease.
 *
 * What it does: Writes a request through the map of the mailbox and reads for the reply, with
 *   growing sleeps; writes it again after a while, by the other path if there are two. Sends
 *   heartbeats, and knows until when the manager certainly keeps the lease: a lease's time after
 *   the last heartbeat that it has echoed was sent, less an eighth. A queue pair may have been
 *   created though no reply came; before the next request it is deleted.
 * Costs: A request is written in 8-byte stores (2 to 16), each look at the reply is one read over
 *   the fabric. A heartbeat is a store, then a read.
 */
#include "logic/dnvme/dnvme_internal.h"

#define SLEEP_MIN_PS (2 * K_US)
#define SLEEP_MAX_PS (64 * K_US)
#define REPEAT_PS    (2 * K_MS)

static uint64_t read8(const struct dnvme_mail *mail, uint64_t offset)
{
    return sisci_read(mail->map[mail->active], offset, 8);
}

/* This path does not answer. */
static void other_path(struct dnvme_mail *mail)
{
    mail->active = (mail->active + 1) % mail->n_maps;
}

static void request_write(const struct dnvme_mail *mail, const struct wire_message *m)
{
    const struct sisci_map *map = mail->map[mail->active];
    uint64_t word;
    for (unsigned at = m->header.bytes; at > 0; at -= 8) {
        memcpy(&word, &m->body[at - 8], sizeof word);
        sisci_write(map, WIRE_REQUEST + sizeof m->header + at - 8, 8, word);
    }
    memcpy(&word, &m->header.status, sizeof word);
    sisci_write(map, WIRE_REQUEST + 8, 8, word);
    memcpy(&word, &m->header, sizeof word);
    sisci_write(map, WIRE_REQUEST, 8, word);
}

/* True: the reply to the request is here. */
static bool reply_read(struct dnvme_mail *mail, uint32_t sequence, struct wire_message *reply)
{
    uint64_t word = read8(mail, WIRE_REPLY);
    if (word == UINT64_MAX) {
        other_path(mail);
        return false;
    }
    memcpy(&reply->header, &word, sizeof word);
    if (reply->header.sequence != sequence || reply->header.bytes > WIRE_BODY_BYTES)
        return false;
    word = read8(mail, WIRE_REPLY + 8);
    memcpy(&reply->header.status, &word, sizeof word);
    for (unsigned at = 0; at < reply->header.bytes; at += 8) {
        word = read8(mail, WIRE_REPLY + sizeof reply->header + at);
        memcpy(&reply->body[at], &word, sizeof word);
    }
    return reply->header.check == wire_check(reply, mail->incarnation);
}

/* The mailbox has another client. */
static bool is_refused(const struct dnvme_mail *mail)
{
    const uint64_t word = read8(mail, WIRE_REFUSED);
    return word != UINT64_MAX && (uint32_t)(word >> 32) == mail->incarnation;
}

static int wait_for(struct dnvme_mail *mail, const struct wire_message *m,
                    struct wire_message *reply)
{
    const uint64_t until_ps = k_now_ps(mail->kernel) + mail->timeout_ps;
    uint64_t sleep_ps = SLEEP_MIN_PS, repeat_ps = 0;
    for (;;) {
        const uint64_t now_ps = k_now_ps(mail->kernel);
        const unsigned active = mail->active;
        if (mail->map[mail->active]->lost)
            other_path(mail);
        if (mail->map[mail->active]->lost)
            return -EHOSTUNREACH;
        if (m->header.type == WIRE_HELLO && repeat_ps != 0 && now_ps >= repeat_ps) {
            if (is_refused(mail))
                return -EBUSY;
            dnvme_mail_heartbeat(mail); /* that of another may lie over ours */
        }
        if (now_ps >= repeat_ps) {
            request_write(mail, m);
            repeat_ps = now_ps + REPEAT_PS;
        }
        if (reply_read(mail, m->header.sequence, reply))
            return 0;
        if (now_ps >= until_ps)
            return -ETIMEDOUT;
        if (mail->active != active)
            repeat_ps = 0;
        k_sleep(mail->kernel, sleep_ps);
        if (sleep_ps < SLEEP_MAX_PS)
            sleep_ps *= 2;
    }
}

static void message(struct dnvme_mail *mail, enum wire_type type, const void *body, size_t bytes,
                    struct wire_message *m)
{
    *m = (struct wire_message){
        .header = { .sequence = ++mail->sequence, .type = (uint16_t)type, .bytes = (uint16_t)bytes }
    };
    if (bytes != 0)
        memcpy(m->body, body, bytes);
    m->header.check = wire_check(m, mail->incarnation);
}

/* Finds out what became of a request to create a queue pair, and deletes that. The request is still
 * the last one, so the manager carries it out once. -EPERM to the deletion: the pair is not there
 * any more. If it is refused it is a new request the next time, as the manager has answered this
 * one. */
static int settle(struct dnvme_mail *mail)
{
    struct wire_message *m = &mail->unsettled, answer;
    struct wire_created created;
    if (m->header.type == WIRE_CREATE) {
        const int status = wait_for(mail, m, &answer);
        if (status != 0)
            return status;
        memcpy(&created, answer.body, sizeof created);
        if (answer.header.status == 0 && answer.header.bytes == sizeof created)
            message(mail, WIRE_DELETE, &created.handle, sizeof created.handle, m);
        else
            m->header.type = 0;
    }
    if (m->header.type == WIRE_DELETE) {
        int status = wait_for(mail, m, &answer);
        if (status != 0)
            return status;
        status = answer.header.status;
        if (status != 0 && status != -EPERM) {
            uint64_t handle;
            memcpy(&handle, m->body, sizeof handle);
            message(mail, WIRE_DELETE, &handle, sizeof handle, m);
            return status;
        }
        m->header.type = 0;
    }
    return 0;
}

static int call(struct dnvme_mail *mail, enum wire_type type, const void *body, size_t bytes,
                struct wire_message *answer)
{
    struct wire_message m;
    int status = mail->over ? -ESTALE : 0;
    if (status == 0 && type != WIRE_BYE)
        status = settle(mail);
    if (status != 0)
        return status;
    message(mail, type, body, bytes, &m);
    status = wait_for(mail, &m, answer);
    if (status != 0 && type == WIRE_CREATE)
        mail->unsettled = m;
    return status;
}

int dnvme_mail_call(struct dnvme_mail *mail, enum wire_type type, const void *body, size_t bytes,
                    void *reply, size_t reply_bytes)
{
    struct wire_message answer;
    while (mail->busy)
        k_wait(mail->kernel, &mail->wait, UINT64_MAX);
    mail->busy = true;
    int status = call(mail, type, body, bytes, &answer);
    if (status == 0)
        status = answer.header.status;
    if (status == 0 && answer.header.bytes != reply_bytes)
        status = -EPROTO;
    if (status == 0 && reply_bytes != 0)
        memcpy(reply, answer.body, reply_bytes);
    mail->busy = false;
    k_wake(mail->kernel, &mail->wait);
    return status;
}

/* ---- The lease ------------------------------------------------------------------------------- */

void dnvme_mail_heartbeat(struct dnvme_mail *mail)
{
    mail->heartbeat++;
    mail->sent_ps[mail->heartbeat % DNVME_HEARTBEATS] = k_now_ps(mail->kernel);
    for (unsigned i = 0; i < mail->n_maps; i++)
        sisci_write(mail->map[i], WIRE_HEARTBEAT, 8, WIRE_WORD(mail->incarnation, mail->heartbeat));
}

bool dnvme_mail_look(struct dnvme_mail *mail)
{
    uint64_t word = read8(mail, WIRE_REGISTERED);
    mail->echoed = false;
    if (word == UINT64_MAX && mail->n_maps > 1) {
        other_path(mail);
        word = read8(mail, WIRE_REGISTERED);
    }
    if (word == UINT64_MAX) /* the link may come back before it is over */
        return k_now_ps(mail->kernel) < mail->valid_until_ps + mail->lease_ps;
    if ((uint32_t)(word >> 32) != mail->incarnation)
        return false;
    const uint32_t echo = (uint32_t)word;
    mail->echoed = echo == mail->heartbeat;
    if (mail->heartbeat - echo >= DNVME_HEARTBEATS)
        return true;
    const uint64_t until_ps = mail->sent_ps[echo % DNVME_HEARTBEATS] + mail->lease_ps -
                              mail->lease_ps / DNVME_HEARTBEATS;
    if (until_ps > mail->valid_until_ps)
        mail->valid_until_ps = until_ps;
    return true;
}

int dnvme_mail_open(struct dnvme_mail *mail, struct wire_hello *hello)
{
    dnvme_mail_heartbeat(mail);
    const uint64_t sent_ps = k_now_ps(mail->kernel);
    const int status = dnvme_mail_call(mail, WIRE_HELLO, NULL, 0, hello, sizeof *hello);
    if (status != 0)
        return status;
    mail->lease_ps = hello->lease_ps;
    mail->valid_until_ps = sent_ps + mail->lease_ps - mail->lease_ps / DNVME_HEARTBEATS;
    mail->echoed = true;
    return 0;
}
