/*
 * Where a host's time and memory traffic go: sums and means of the statistics of its memory system
 * and root complexes since they were cleared, as the metrics of the workload "programs".
 */
#ifndef WORKLOADS_PROGRAMS_BREAKDOWN_H
#define WORKLOADS_PROGRAMS_BREAKDOWN_H

#include "models/host/host.h"
#include "sim/store/results.h"

/* A counter of the memory system by name, over all sockets; 0 if there is none. */
uint64_t breakdown_counter(struct host *host, const char *name);
/* dram_part_bytes.*: DRAM traffic by cause, per packet (operation), of n of them. */
void breakdown_record_dram(struct host *host, struct run_result *result, uint64_t n);
/* dma_write_part_ns.*: mean of the writes that carried a stamp, of all root complexes; nothing if
 * none did. */
void breakdown_record_dma(struct host *host, struct run_result *result);

#endif
