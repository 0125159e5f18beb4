/*
 * A connection between the two hosts of net_rig.h, and what its wire saw: frames can be lost one by
 * one. Included by one file of a test, after cmocka.h.
 */
#ifndef TESTS_SUPPORT_TCP_PAIR_H
#define TESTS_SUPPORT_TCP_PAIR_H

#include "tests/support/net_rig.h"
#include "tests/support/test.h"

#define PORT       5001u
#define FRAMES_MAX 100000u

/* What went onto the wire. */
struct seen {
    uint64_t at_ps;
    unsigned from;
    uint32_t seq, ack, payload, window;
    uint8_t flags;
    bool lost;
    unsigned n_sacks;
    struct tcp_sack sack[TCP_SACKS];
};
struct pair {
    struct rig *rig;
    struct socket *client, *server, *listener;
    struct kaddr buffer[2]; /* of each host, 1 MiB */
    struct seen seen[FRAMES_MAX];
    unsigned n;
    /* Of each host, without and with payload: which of them. */
    unsigned of[2][2][FRAMES_MAX], n_of[2][2];
    uint16_t port;
    /* Of host lose_from's frames (2: any), with data or any. */
    unsigned lose_from, lose_skip, lose_n;
    bool lose_data_only;
    struct {
        unsigned number, times; /* the number-th frame of data from host 0, so often */
        uint32_t seq;
    } drop[2];
    struct {
        unsigned number; /* the number-th frame of data from host 0 */
        uint64_t ps;     /* arrives so much later; 0: none */
    } late;
    unsigned n_data;
    uint32_t peak_alloc;
    bool done[4];
    uint64_t value;
};

void connects(void *arg);

void pair_run(struct pair *p, uint64_t us);

void pair_thread(struct pair *p, int cpu, k_thread_fn *body);

struct pair *pair_prepare(const struct rig_options *o, uint16_t port);

struct pair *pair_new(const struct rig_options *o);

void closes(void *arg);

void pair_free(struct pair *p);

struct rig_options pair_plain(void);

/* p->value bytes. */
void client_sends(void *arg);
void server_reads(void *arg);

/* The n-th (from 0) frame from a host that has payload, or has none. */
const struct seen *pair_frame(const struct pair *p, unsigned from, bool payload, unsigned n);
unsigned pair_frames(const struct pair *p, unsigned from, bool payload);
/* Forgets them. */
void pair_forget(struct pair *p);

void pair_send_bytes(struct pair *p, uint64_t bytes);

/* The counts of a socket's scoreboard are the sums of its tags. */
void scoreboard_check(const struct socket *sk);

/* Charges between a timer and the wire. */
#define SLACK_PS FAKE_US(3)
#define assert_at(at, expected)                                   \
    do {                                                          \
        assert_in_range((at), (expected), (expected) + SLACK_PS); \
    } while (0)

#endif
