/*
 * What it does: Brings the packets of an endpoint to the receive queue of a CPU, on adapters that
 *   know rules by words of the headers and nothing of MX. Two rules for each endpoint: the byte
 *   behind the type is the endpoint in all packets but replies to pulls, whose magic tells it.
 *   Those of replies have the lower numbers, so that they count first.
 * Leaves out: refused pulls (MX_PACKET_NACK_PULL), which the second rule takes for packets of
 *   another endpoint, or of none: any CPU can handle them, and there is one for a pull at most.
 * Follows: ethtool -N, as an administrator would use it on the endpoints of a job; the Open-MX
 *   paper (3.2), where the firmware does this.
 * Costs: two commands to the adapter when an endpoint is opened, two when it is closed.
 */
#include "logic/openmx/openmx_internal.h"

#define RULE_REPLIES(id) ((uint16_t)(id))
#define RULE_OTHERS(id)  ((uint16_t)(MX_ENDPOINTS_MAX + (id)))

#define TYPE_AT  MX_HEAD_BYTES /* of the word: type, destination endpoint, two more bytes */
#define MAGIC_AT (MX_HEAD_BYTES + offsetof(struct mx_reply_header, magic))
_Static_assert(offsetof(struct mx_common, type) == 0, "type");
_Static_assert(offsetof(struct mx_common, destination_endpoint) == 1, "endpoint");
_Static_assert(offsetof(struct mx_reply_header, type) == 0, "type of a reply");

static struct net_rx_rule replies(uint8_t id)
{
    return (struct net_rx_rule){ .ether_type = MX_ETHER_TYPE,
                                 .word = { { TYPE_AT, UINT32_C(0xff) << 24,
                                             (uint32_t)MX_PACKET_PULL_REPLY << 24 },
                                           { MAGIC_AT, 0xff, mx_magic(id) & 0xff } } };
}

static struct net_rx_rule others(uint8_t id)
{
    return (
        struct net_rx_rule){ .ether_type = MX_ETHER_TYPE,
                             .word = { { TYPE_AT, UINT32_C(0xff) << 16, (uint32_t)id << 16 } } };
}

bool openmx_steer_possible(const struct net_device *dev, const struct openmx_options *options)
{
    return options->steer == OPENMX_STEER_NONE || dev->ops->rx_rule != NULL;
}

int openmx_steer(struct openmx_port *port)
{
    struct openmx *omx = port->omx;
    struct net_device *dev = omx->dev;
    const uint8_t id = port->port.id;
    const struct net_rx_rule first = replies(id), second = others(id);
    if (omx->options.steer == OPENMX_STEER_NONE)
        return 0;
    const unsigned cpu = omx->options.steer == OPENMX_STEER_CPU ? omx->options.steer_cpu
                                                                : k_cpu(omx->kernel);
    const int queue = cpu < k_n_cpus(omx->kernel) ? dev->rx_queue_of_cpu[cpu] : -1;
    if (queue < 0)
        return -EINVAL;
    int error = dev->ops->rx_rule(dev, RULE_REPLIES(id), &first, (uint16_t)queue);
    if (error != 0)
        return error;
    error = dev->ops->rx_rule(dev, RULE_OTHERS(id), &second, (uint16_t)queue);
    if (error != 0) {
        dev->ops->rx_rule(dev, RULE_REPLIES(id), NULL, 0);
        return error;
    }
    port->port.cpu = (int)cpu;
    return 0;
}

void openmx_steer_end(struct openmx *omx, uint8_t id)
{
    if (omx->options.steer == OPENMX_STEER_NONE)
        return;
    omx->dev->ops->rx_rule(omx->dev, RULE_OTHERS(id), NULL, 0);
    omx->dev->ops->rx_rule(omx->dev, RULE_REPLIES(id), NULL, 0);
}
