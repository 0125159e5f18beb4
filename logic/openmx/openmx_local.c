/*
 * What it does: Messages between endpoints of one host: the sender's thread does what the receive
 *   handler would have done. Data of eager messages are copied once into the receiver's ring; a
 *   large message is copied once, by the puller's thread, from one process's memory to the other's.
 * Follows: Open-MX 0.9.2 driver/linux/omx_shared.c.
 * Costs: omx_receive_cycles for the receiver's part; its descriptor and queue; the copy.
 */
#include "logic/openmx/openmx_internal.h"

static void refuse(struct openmx_port *from, const struct mx_destination *to,
                   enum mx_packet_type type, uint16_t sequence, enum mx_nack nack)
{
    union mx_event event = mx_local_refusal(&from->port, to, type, sequence, nack);
    openmx_event_post(from, MX_QUEUE_UNEXPECTED, &event, NULL);
}

int openmx_local_message(struct openmx_port *from, const struct mx_destination *to,
                         enum mx_packet_type type, uint16_t sequence, union mx_event *event,
                         const struct openmx_data *data)
{
    struct openmx *omx = from->omx;
    struct openmx_port *port = openmx_port_get(omx, to->endpoint);
    const bool request = type == MX_PACKET_CONNECT && !event->connect.is_reply;
    omx->stats.local++;
    k_run(omx->kernel, K_TEXT_OMX_LOCAL, omx->costs->omx_receive_cycles);
    if (port == NULL) {
        omx->stats.no_endpoint++;
        refuse(from, to, type, sequence, MX_NACK_BAD_ENDPOINT);
        return 0;
    }
    mx_local_source(event, &from->port, to, sequence);
    if (!request && to->session != port->port.session) {
        omx->stats.bad_session++;
        refuse(from, to, type, sequence, MX_NACK_BAD_SESSION);
    } else
        openmx_event_post(port, MX_QUEUE_UNEXPECTED, event, data);
    openmx_port_put(port);
    return 0;
}

uint8_t openmx_local_pull(struct openmx_port *port, struct openmx_region *to,
                          const struct mx_pull_command *c)
{
    struct openmx *omx = port->omx;
    struct openmx_port *far = openmx_port_get(omx, c->from.endpoint);
    uint8_t status = MX_PULL_REFUSED;
    if (far == NULL)
        return status;
    struct openmx_region *from = far->port.session == c->from.session
                                     ? openmx_region_get(far, c->region, c->region_sequence, false)
                                     : NULL;
    if (from != NULL) {
        if (from->bytes >= c->bytes) {
            openmx_copy_regions(omx, to, from, c->bytes);
            status = MX_PULL_DONE;
        }
        openmx_region_put(from);
    }
    openmx_port_put(far);
    return status;
}
