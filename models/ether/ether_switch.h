/* ether.switch: an Ethernet switch; ports are its Ethernet ports e0, e1, ... */
#ifndef MODELS_ETHER_ETHER_SWITCH_H
#define MODELS_ETHER_ETHER_SWITCH_H

#include "models/ether/ether.h"

#define ETHER_SWITCH_PORTS_MAX 64u

extern const struct model_ops ether_switch_ops;

/* A static entry: frames for the MAC (48 bits) leave by the port, or by the group it belongs to.
 * False: the table is full. */
bool ether_switch_add(struct model *model, uint64_t mac, uint32_t port);
/* Frames dropped at an output port because its queue was full. */
uint64_t ether_switch_drops(const struct model *model, uint32_t port);

#endif
