/*
 * What the cache accesses of message passing are for: accounts of k_account(), by which misses are
 * told apart. A thread of a program counts under MX_ACCOUNT_USER when it is in none of these.
 */
#ifndef LOGIC_MX_MX_ACCOUNT_H
#define LOGIC_MX_MX_ACCOUNT_H

#include "logic/kapi.h"

enum mx_account {
    MX_ACCOUNT_KERNEL,   /* driver, stack, headers, pins: all of the kernel that is not below */
    MX_ACCOUNT_ENDPOINT, /* descriptors of endpoints, interface and peers */
    MX_ACCOUNT_EVENT,    /* slots of event queues, as the kernel stores them */
    MX_ACCOUNT_RING,     /* data that the kernel copies from packets to the receive ring */
    MX_ACCOUNT_PULL,     /* states of pulls, regions */
    MX_ACCOUNT_DATA,     /* data of large messages that the kernel copies */
    MX_ACCOUNT_KERNEL_END,
    MX_ACCOUNT_USER = K_USER,
    MX_ACCOUNT_LIBRARY,    /* endpoints, partners, requests */
    MX_ACCOUNT_USER_EVENT, /* slots of event queues, as the library reads and empties them */
    MX_ACCOUNT_USER_DATA,  /* copies between rings, buffers and the program's memory */
    MX_ACCOUNT_USER_END
};
/* Its name, as in a metric; NULL: there is no such. */
static inline const char *mx_account_name(unsigned account)
{
    if (account == K_ACCOUNT_TEXT || account == K_ACCOUNT_USER_TEXT)
        return account == K_ACCOUNT_TEXT ? "text" : "user_text";
    static const char *const kernel[] = { "kernel", "endpoint", "event", "ring", "pull", "data" };
    static const char *const user[] = { "user", "library", "user_event", "user_data" };
    if (account < MX_ACCOUNT_KERNEL_END)
        return kernel[account];
    return account >= K_USER && account < MX_ACCOUNT_USER_END ? user[account - K_USER] : NULL;
}

#endif
