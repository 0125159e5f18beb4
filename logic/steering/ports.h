/*
 * The common part of teams and bonds: one upper network device over several lower ones. Its queues
 * are the queues of the lower devices, one device after the other.
 */
#ifndef LOGIC_STEERING_PORTS_H
#define LOGIC_STEERING_PORTS_H

#include "logic/net/net.h"
#include "logic/net/netdev.h"

#define PORTS_MAX 8u

struct ports {
    struct net_device *dev; /* the upper */
    struct net_device *lower[PORTS_MAX];
    unsigned n;
    uint64_t dropped; /* packets for ports that went away */
};

/* Derives the queues, MTU, MAC, features and carrier of the upper device from the lower ones, and
 * makes it their upper. The lower devices must be registered and outlive it. Returns 0; -EINVAL:
 * none or too many devices, or one with different numbers of transmit and receive queues; -ENOSPC:
 * too many queues; -EBUSY: one has an upper already. */
int ports_init(struct ports *ports, struct net_device *dev, struct net_device *const *lower,
               unsigned n);
void ports_release(struct ports *ports);
/* [thread] Opens the ports that do not run. Returns 0 if any port runs then, else the last
 * error. */
int ports_open(struct ports *ports);
void ports_stop(struct ports *ports);

/* Port i runs and its link is up. */
static inline bool ports_alive(const struct ports *ports, unsigned i)
{
    return ports->lower[i]->running && ports->lower[i]->carrier;
}
/* The port of a queue of the upper device. */
static inline unsigned ports_of_queue(const struct ports *ports, uint16_t queue)
{
    unsigned i = 0;
    while (i + 1 < ports->n && queue >= ports->lower[i + 1]->upper_queue)
        i++;
    return i;
}
/* The port for a CPU: one on its node, else any; CPUs take turns where there are several. 0: none
 * is alive. */
unsigned ports_of_cpu(const struct ports *ports, unsigned cpu);
/* The queue of the upper device that is the transmit or receive queue of `cpu` on port i. */
uint16_t ports_tx_queue(const struct ports *ports, unsigned i, unsigned cpu);
uint16_t ports_rx_queue(const struct ports *ports, unsigned i, unsigned cpu);

/* start_xmit() of the upper device: sends through the port of skb->queue. If that port is gone, it
 * drops the packet: earlier packets of its socket went there and are lost, and this one must not
 * overtake those that another port gets now. */
enum net_xmit ports_xmit(struct ports *ports, struct sk_buff *skb);
/* rx_passed() of the upper device. */
bool ports_rx_passed(const struct ports *ports, uint16_t rxq, struct net_rx_mark *mark);
/* Handles a change of port i: updates the carrier of the upper device; moves packets that wait for
 * a port that is gone. */
void ports_changed(struct ports *ports, unsigned i);

#endif
