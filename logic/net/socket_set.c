/*
 * What it does: Sets of sockets that a thread waits for (epoll, level triggered). A socket that
 *   becomes readable joins the list of ready sockets and wakes the waiter; one that is returned
 *   moves to the end of the list and leaves it when it is found empty. A socket that had no room
 *   for a non-blocking send joins the list when it has room again.
 * Leaves out: changing what is waited for (epoll_ctl), edge triggering, several events per call.
 * Follows: Linux 4.14 fs/eventpoll.c (ep_poll_callback, ep_send_events_proc).
 * Costs: A system call and poll_call_cycles per call; wake-ups as k_wake() charges them.
 */
#include "logic/net/net_internal.h"

struct socket_set {
    struct net *net;
    struct socket *ready, *ready_tail, *members;
    struct k_wait_queue wait;
};

static void make_ready(struct socket_set *set, struct socket *sk)
{
    if (sk->ready)
        return;
    sk->ready = true;
    sk->ready_next = NULL;
    if (set->ready)
        set->ready_tail->ready_next = sk;
    else
        set->ready = sk;
    set->ready_tail = sk;
}

bool net_socket_is_readable(const struct socket *sk)
{
    return sk->rx_head || sk->error || sk->tcp.fin_received || sk->tcp.accept_first;
}

void net_socket_readable(struct socket *sk)
{
    struct kernel *kernel = net_kernel(sk->net);
    struct socket_set *set = sk->set;
    if (set) {
        make_ready(set, sk);
        if (k_has_waiters(&set->wait))
            k_wake(kernel, &set->wait);
    }
    if (k_has_waiters(&sk->readable))
        k_wake(kernel, &sk->readable);
}

void net_socket_writable(struct socket *sk)
{
    struct kernel *kernel = net_kernel(sk->net);
    struct socket_set *set = sk->set;
    if (set) {
        sk->space_came = true;
        make_ready(set, sk);
        if (k_has_waiters(&set->wait))
            k_wake(kernel, &set->wait);
    }
    if (k_has_waiters(&sk->writable))
        k_wake(kernel, &sk->writable);
}

struct socket_set *socket_set_new(struct net *net)
{
    struct socket_set *set = k_zalloc(sizeof *set);
    set->net = net;
    return set;
}

void socket_set_add(struct socket_set *set, struct socket *socket, void *data)
{
    net_set_leave(socket);
    socket->set = set;
    socket->set_data = data;
    socket->set_next = set->members;
    set->members = socket;
    if (net_socket_is_readable(socket)) {
        make_ready(set, socket);
        k_wake(net_kernel(set->net), &set->wait);
    }
}

void net_set_leave(struct socket *sk)
{
    struct socket_set *set = sk->set;
    if (!set)
        return;
    sk->set = NULL;
    for (struct socket **link = &set->members; *link; link = &(*link)->set_next)
        if (*link == sk) {
            *link = sk->set_next;
            break;
        }
    struct socket *last = NULL;
    for (struct socket **link = &set->ready; *link;) {
        if (*link == sk)
            *link = sk->ready_next;
        else {
            last = *link;
            link = &last->ready_next;
        }
    }
    set->ready_tail = last;
    sk->ready = false;
}

void *socket_set_wait(struct socket_set *set)
{
    struct kernel *kernel = net_kernel(set->net);
    k_syscall(kernel);
    k_compute(kernel, k_costs(kernel)->poll_call_cycles);
    for (;;) {
        while (set->ready) {
            struct socket *sk = set->ready;
            set->ready = sk->ready_next;
            sk->ready = false;
            if (!net_socket_is_readable(sk) && !sk->space_came)
                continue;
            sk->space_came = false;
            make_ready(set, sk);
            return sk->set_data;
        }
        k_wait(kernel, &set->wait, NET_FOREVER);
    }
}

void socket_set_free(struct socket_set *set)
{
    while (set->members)
        net_set_leave(set->members);
    k_free(set);
}
