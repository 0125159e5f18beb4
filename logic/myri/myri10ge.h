/*
 * The driver of Myri-10G adapters with Ethernet firmware (data sheet: hw/myri_regs.h), built like
 * Linux' myri10ge of 2008: a slice per receive queue (two rings of buffers, completions, an
 * interrupt, one poll function), one send queue, write-combined lines of requests.
 *
 * Calls marked [thread] may sleep. Errors are negative errno values.
 */
#ifndef LOGIC_MYRI_MYRI10GE_H
#define LOGIC_MYRI_MYRI10GE_H

#include "hw/myri_regs.h"
#include "logic/net/netdev.h"

struct myri10ge_params {
    uint32_t mtu_bytes;
    uint32_t coalescing_us; /* between two interrupts of a slice, at least */
    /* Receive queues: 0: one per CPU. At most those of the firmware. */
    uint16_t n_slices;
    /* After so long without progress of packets under way the interface is made anew; 0: never. */
    uint64_t watchdog_ps;
    /* The CPU of each slice's interrupt (n_slices of them; copied). NULL: slice i on CPU i. */
    const uint16_t *slice_cpu;
};
/* Those of the driver, but for a coalescing time of 75 us: messages want none. */
extern const struct myri10ge_params myri10ge_params_default;

/* One per kernel. */
struct myri10ge;

/* Creates the driver. The parameters are copied. `prefix` names the devices (prefix0, prefix1, ...
 * in the order in which they appear) and must outlive the driver. NULL: a parameter is out of
 * range. */
struct myri10ge *myri10ge_new(struct net *net, struct kernel *kernel,
                              const struct myri10ge_params *params, const char *prefix);
/* For k_pci_register(). Takes adapters with Ethernet firmware. Devices are registered closed. */
const struct k_pci_driver *myri10ge_pci(const struct myri10ge *driver);
/* [thread] All adapters must be removed. */
void myri10ge_free(struct myri10ge *driver);
/* The device of the i-th adapter that appeared; NULL: there are fewer. */
struct net_device *myri10ge_device(const struct myri10ge *driver, unsigned i);

/* ---- Devices of this driver ------------------------------------------------------------------ */

/* Moves the interrupt of a receive queue to another CPU (/proc/irq/N/smp_affinity): net_device's
 * rx_queue_of_cpu follows. The device must be open. 0 or a negative errno. */
int myri10ge_set_cpu(struct net_device *dev, unsigned queue, unsigned cpu);

struct myri10ge_stats { /* of one slice since its device was created */
    uint64_t interrupts, polls, rx_packets, rx_errors, page_failures;
    uint64_t tx_packets, tx_lines, tx_stops, tx_drops; /* slice 0's */
    uint64_t watchdog_resets;                          /* the same */
};
/* Zero for a slice that the device does not have. */
struct myri10ge_stats myri10ge_stats(const struct net_device *dev, unsigned slice);

#endif
