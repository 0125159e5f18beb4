/*
 * The text of software: which pieces of code are run where cycles are charged, and how large they
 * are. One list; k_run() names an entry, models/os places them in memory and fetches their lines
 * through the core's instruction cache where the platform has one.
 *
 * A piece is the functions that a usual pass through it calls: their number and the sum of their
 * bytes. A pass executes about half of a function, as errors, options and other cases are jumped
 * over, and it begins and ends within a line: functions + bytes / 2 / 64 lines
 * (docs/sources.md#e3-text, where the functions are).
 */
#ifndef LOGIC_KTEXT_H
#define LOGIC_KTEXT_H

#include <stdbool.h>

/* X(name, in user space, functions, bytes of them) */
#define K_TEXTS(X)                                                                               \
    X(IRQ, false, 7, 1530)        /* entry of an interrupt, its controller, its flow, its end */ \
    X(IRQ_RETURN, false, 1, 350)  /* to the thread */                                            \
    X(SOFT_IRQ, false, 4, 1050)   /* up to the first poll */                                     \
    X(SYSCALL, false, 1, 200)     /* entry and return */                                         \
    X(PAGE_ALLOC, false, 2, 1700) /* from a list of the CPU */                                   \
    X(PAGE_FREE, false, 3, 700)                                                                  \
    X(MYRI_IRQ, false, 2, 1055)     /* the driver's handler */                                   \
    X(MYRI_POLL, false, 2, 600)     /* without packets */                                        \
    X(MYRI_RECEIVE, false, 7, 3480) /* a packet: buffer, skb, to the protocol's handler */       \
    X(MYRI_REFILL, false, 2, 719)                                                                \
    X(MYRI_TRANSMIT, false, 6, 4780) /* queueing discipline and driver */                        \
    X(MYRI_COMPLETE, false, 6, 1200) /* a packet that was sent is freed */                       \
    X(OMX_SEND, false, 9, 2620)      /* command to packet */                                     \
    X(OMX_RECEIVE, false, 11, 3500)  /* packet to event, and freeing it */                       \
    X(OMX_REPLY, false, 11, 4600)    /* a reply to a pull */                                     \
    X(OMX_PULL, false, 3, 1500)      /* more of a packet that asks to pull */                    \
    X(OMX_LOCAL, false, 4, 1400)     /* a message within the host */                             \
    X(MX_SEND, true, 5, 1480)                                                                    \
    X(MX_RECEIVE, true, 3, 1250)                                                                 \
    X(MX_EVENT, true, 5, 3250)                                                                   \
    X(MX_PROGRESS, true, 5, 2050) /* one look, that of MPI included */                           \
    X(MPI_SEND, true, 4, 3573)                                                                   \
    X(MPI_RECEIVE, true, 4, 3115) /* posting one */                                              \
    X(MPI_ENDED, true, 2, 2218)   /* a receive has ended */

enum k_text {
#define K_TEXT_ENUM(NAME, USER, FUNCTIONS, BYTES) K_TEXT_##NAME,
    K_TEXTS(K_TEXT_ENUM)
#undef K_TEXT_ENUM
        N_K_TEXTS
};

struct k_text_piece {
    bool user;
    unsigned functions, bytes;
};
static const struct k_text_piece k_text_pieces[N_K_TEXTS] = {
#define K_TEXT_PIECE(NAME, USER, FUNCTIONS, BYTES) { USER, FUNCTIONS, BYTES },
    K_TEXTS(K_TEXT_PIECE)
#undef K_TEXT_PIECE
};

#endif
