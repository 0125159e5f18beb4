/*
 * What teams and bonds share: several network devices below one, with the queues of all of them one
 * after the other as the upper's.
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
    uint64_t dropped; /* packets for ports that had gone */
};

/* Fills the upper's queues, MTU, MAC, features, carrier from the devices below and makes it their
 * upper. The devices are registered, have no upper, and outlive it. 0; -EINVAL: none or too many
 * devices, or one that has not as many transmit as receive queues; -ENOSPC: too many queues;
 * -EBUSY: one has an upper. */
int ports_init(struct ports *ports, struct net_device *dev, struct net_device *const *lower,
               unsigned n);
void ports_release(struct ports *ports);
/* [thread] Opens what is not running. 0 if any port runs, or the last port's error. */
int ports_open(struct ports *ports);
void ports_stop(struct ports *ports);

/* Runs and has a link. */
static inline bool ports_alive(const struct ports *ports, unsigned i)
{
    return ports->lower[i]->running && ports->lower[i]->carrier;
}
/* The port of one of the upper's queues. */
static inline unsigned ports_of_queue(const struct ports *ports, uint16_t queue)
{
    unsigned i = 0;
    while (i + 1 < ports->n && queue >= ports->lower[i + 1]->upper_queue)
        i++;
    return i;
}
/* The upper's number of the transmit or receive queue of a CPU on a port. */
uint16_t ports_tx_queue(const struct ports *ports, unsigned i, unsigned cpu);
uint16_t ports_rx_queue(const struct ports *ports, unsigned i, unsigned cpu);

/* start_xmit() of the upper: through the port whose queue skb->queue is. For a port that is gone
 * the packet is dropped: others of its socket went there before it and are lost, and it may not
 * overtake those that another port gets now. */
enum net_xmit ports_xmit(struct ports *ports, struct sk_buff *skb);
/* rx_passed() of the upper. */
bool ports_rx_passed(const struct ports *ports, uint16_t rxq, struct net_rx_mark *mark);
/* After the port has changed: the upper's carrier; what waits for a port that is gone moves. */
void ports_changed(struct ports *ports, unsigned i);

#endif
