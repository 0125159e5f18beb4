/*
 * myri.myri10g: a Myri-10G adapter with a PCIe port (p0) and an Ethernet port (e0), with one of
 * three firmwares. What its driver sees is hw/myri_regs.h.
 */
#ifndef MODELS_MYRI_MYRI_H
#define MODELS_MYRI_MYRI_H

#include "models/ether/ether.h"

extern const struct model_ops myri_ops;

enum myri_firmware { MYRI_FIRMWARE_ETHERNET, MYRI_FIRMWARE_MULTIQUEUE, MYRI_FIRMWARE_MX };
enum myri_firmware myri_firmware(const struct model *model);
/* Its address, the first byte on the wire on top of 48 bits. */
uint64_t myri_mac(const struct model *model);
/* The longest packet that it sends and receives, Ethernet header not counted. */
uint32_t myri_mtu_bytes(const struct model *model);

struct myri_stats {
    uint64_t tx_packets, tx_bytes; /* put on the wire, or looped back */
    uint64_t rx_packets, rx_bytes; /* written to memory */
    uint64_t loopback;             /* of tx_packets: for its own address */
    uint64_t rx_no_buffer;         /* dropped: no receive buffer was posted */
    uint64_t rx_overflow;          /* dropped: the SRAM was full */
    uint64_t rx_closed;            /* dropped: the interface is down */
    uint64_t rx_filtered, rx_too_long;
    uint64_t tx_errors;
    uint64_t commands, bad_requests;
    uint64_t busy_ps; /* of the processor */
};
const struct myri_stats *myri_stats(const struct model *model);
/* Packets dropped, for whatever reason but that they were another's. */
uint64_t myri_drops(const struct model *model);

#endif
