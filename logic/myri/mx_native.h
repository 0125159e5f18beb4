/*
 * Myrinet Express on a Myri-10G adapter with its firmware: the driver of the kernel, and a board
 * (logic/mx/mx_board.h) whose commands are lines that the process stores to the adapter.
 *
 *   struct mx_native *mx = mx_native_new(kernel, true);
 *   k_pci_register(kernel, mx_native_pci(mx));                          [thread]
 *   mx_open(mx_native_board(mx, 0), id, key, &mx_options_default, &ep);  and so on: logic/mx/mx.h
 */
#ifndef LOGIC_MYRI_MX_NATIVE_H
#define LOGIC_MYRI_MX_NATIVE_H

#include "logic/mx/mx_board.h"

/* One per kernel. */
struct mx_native;

/* shared_memory: messages between processes of the host do not go through the adapter. MX does so
 * unless MX_DISABLE_SHMEM is set. */
struct mx_native *mx_native_new(struct kernel *kernel, bool shared_memory);
/* For k_pci_register(). Takes adapters whose firmware is that of Myrinet Express. */
const struct k_pci_driver *mx_native_pci(const struct mx_native *driver);
/* [thread] All adapters must be removed. */
void mx_native_free(struct mx_native *driver);
/* The board of the i-th adapter that appeared; NULL: there are fewer. It is valid until the adapter
 * is removed, when all endpoints must be closed. */
struct mx_board *mx_native_board(const struct mx_native *driver, unsigned i);
struct k_pci_dev *mx_native_device(struct mx_board *board);
/* Regions registered that nobody has given back. */
unsigned mx_native_regions_live(const struct mx_board *board);

/* Within the host, since the adapter appeared. */
struct mx_native_stats {
    uint64_t local;       /* events from process to process */
    uint64_t local_full;  /* lost, as the queue was full */
    uint64_t local_pulls; /* large messages that the kernel has copied */
};
void mx_native_stats_get(const struct mx_board *board, struct mx_native_stats *stats);

#endif
