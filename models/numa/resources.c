/*
 * DRAM and interconnect as the coherence protocols use them: every byte counted by cause, nothing
 * counted and no time passed while caches are being warmed. The counters' table.
 */
#include "models/numa/numa_internal.h"

#define COUNTER(NAME, FIELD, UNIT, HELP) \
    STAT(NAME, STAT_COUNTER, struct numa_counters, FIELD, UNIT, 0, HELP)

#define TO_SOCKET(S)                                                                               \
    STAT_PART_BOUNDED("interconnect_to_s" #S "_bytes", struct numa_counters, to_bytes[S], "bytes", \
                      "of them, to that socket", sockets, S, to_peak[S])

const struct stat_desc numa_counter_table[] = {
    STAT_BOUNDED("dram_read_bytes", struct numa_counters, dram_read_bytes, "bytes", 0,
                 "read from this socket's DRAM", dram_peaks.read),
    STAT_BOUNDED("dram_write_bytes", struct numa_counters, dram_write_bytes, "bytes", 0,
                 "written to this socket's DRAM", dram_peaks.write),
    STAT_BOUND_ONLY("dram_bytes", struct numa_counters, dram_bytes, "bytes", "both",
                    dram_peaks.both),
    COUNTER("dram_read_load_bytes", read_bytes[READ_LOAD], "bytes", "DRAM reads for loads"),
    COUNTER("dram_read_rfo_bytes", read_bytes[READ_RFO], "bytes", "DRAM reads for stores"),
    COUNTER("dram_read_dma_bytes", read_bytes[READ_DMA], "bytes",
            "DRAM reads for devices (partial writes included)"),
    COUNTER("dram_read_directory_bytes", read_bytes[READ_DIRECTORY], "bytes",
            "DRAM reads for the directory alone"),
    COUNTER("dram_write_victim_bytes", write_bytes[WRITE_VICTIM], "bytes",
            "write-backs of lines that cores' fills displaced"),
    COUNTER("dram_write_ddio_victim_bytes", write_bytes[WRITE_DDIO_VICTIM], "bytes",
            "write-backs of lines that devices' writes displaced"),
    COUNTER("dram_write_snoop_bytes", write_bytes[WRITE_SNOOP], "bytes",
            "write-backs forced by snoops"),
    COUNTER("dram_write_nt_bytes", write_bytes[WRITE_NT], "bytes", "non-temporal stores"),
    COUNTER("dram_write_dma_bytes", write_bytes[WRITE_DMA], "bytes",
            "devices' writes straight to DRAM"),
    COUNTER("dram_write_directory_bytes", write_bytes[WRITE_DIRECTORY], "bytes",
            "changes of the directory alone"),
    COUNTER("dram_write_flush_bytes", write_bytes[WRITE_FLUSH], "bytes", "write-backs by CLFLUSH"),
    COUNTER("dram_read_activates", dram.read_activates, "1", "rows opened for reads"),
    COUNTER("dram_read_conflicts", dram.read_conflicts, "1",
            "those for which another row was closed"),
    COUNTER("dram_write_modes", dram.write_modes, "1", "batches of writes"),
    COUNTER("dram_read_wait_ps", dram.read_wait_ps, "ps",
            "how long reads were in the channels' queues until their column command, all together"),
    COUNTER("dram_write_wait_ps", dram.write_wait_ps, "ps",
            "how long writes waited for the channels' write queues, all together"),
    COUNTER("dram_write_full_ps", dram.write_full_ps, "ps",
            "time in which a write waited for the write queue, of all channels"),
    COUNTER("interconnect_bytes", interconnect_bytes, "bytes",
            "sent by this socket to others (or over its front-side bus)"),
    TO_SOCKET(0),
    TO_SOCKET(1),
    TO_SOCKET(2),
    TO_SOCKET(3),
    COUNTER("interconnect_request_bytes", message_bytes[MESSAGE_REQUEST], "bytes", "requests"),
    COUNTER("interconnect_snoop_bytes", message_bytes[MESSAGE_SNOOP], "bytes", "snoops"),
    COUNTER("interconnect_response_bytes", message_bytes[MESSAGE_RESPONSE], "bytes",
            "snoop responses, grants, completions"),
    COUNTER("interconnect_data_bytes", message_bytes[MESSAGE_DATA], "bytes",
            "lines to requesters, with headers"),
    COUNTER("interconnect_writeback_bytes", message_bytes[MESSAGE_WRITEBACK], "bytes",
            "lines to their homes, with headers"),
    COUNTER("interconnect_io_request_bytes", message_bytes[MESSAGE_IO_REQUEST], "bytes",
            "cores' reads of registers behind another socket"),
    COUNTER("interconnect_io_data_bytes", message_bytes[MESSAGE_IO_DATA], "bytes",
            "data of registers behind another socket, and interrupts for its cores"),
    COUNTER("core_llc_hits", core_llc_hits, "1", "cores' L2 misses that the socket's LLC knew"),
    COUNTER("core_llc_misses", core_llc_misses, "1", "cores' L2 misses that left the socket's LLC"),
    COUNTER("dma_read_hits", dma_read_hits, "1", "lines read by devices from the LLC"),
    COUNTER("dma_read_misses", dma_read_misses, "1", "lines read by devices past the LLC"),
    COUNTER("dma_write_updates", dma_write_updates, "1", "lines written by devices in place"),
    COUNTER("dma_write_allocates", dma_write_allocates, "1",
            "lines written by devices into the DDIO ways"),
    COUNTER("dma_write_to_dram", dma_write_to_dram, "1", "lines written by devices to DRAM"),
    COUNTER("dma_write_pushes", dma_write_pushes, "1",
            "lines of devices here that were sent to another socket's LLC"),
    COUNTER("ddio_evictions", ddio_evictions, "1", "lines displaced by devices' writes"),
    COUNTER("ddio_dirty_evictions", ddio_dirty_evictions, "1", "those of them that were dirty"),
    COUNTER("llc_back_invalidations", llc_back_invalidations, "1",
            "evictions that took lines from private caches"),
    COUNTER("core_snoops", core_snoops, "1", "private caches asked for a line"),
    COUNTER("snoops_sent", snoops_sent, "1", "snoops of other sockets"),
    COUNTER("io_directory_hits", io_directory_hits, "1",
            "lines of remote devices that the I/O directory cache of this home had an entry for"),
    COUNTER("io_directory_misses", io_directory_misses, "1",
            "those that found it full: the directory in DRAM was read"),
    COUNTER("request_entry_wait_ps", request_entry_wait_ps, "ps",
            "how long transactions waited for an entry of their slice's table, all together"),
    COUNTER("request_entry_held_ps", request_entry_held_ps, "ps",
            "how long they had it, all together"),
    COUNTER("transaction_id_wait_ps", transaction_id_wait_ps, "ps",
            "how long transactions of this socket waited for an ID of another one's home agents"),
    COUNTER("tracker_wait_ps", tracker_wait_ps, "ps",
            "how long transactions waited for a tracker of this socket's home agents"),
    COUNTER("link_credit_wait_ps", link_credit_wait_ps, "ps",
            "how long messages of this socket waited for credits of a link"),
    { .kind = STAT_END },
};

sim_time numa_dram_read(struct numa *n, uint64_t line, enum read_cause cause, sim_time at_ps)
{
    if (SIM_UNLIKELY(n->quiet))
        return at_ps;
    return numa_dram_read_fast(n, home_of(n, line), line, cause, at_ps);
}

sim_time numa_dram_write(struct numa *n, uint64_t line, enum write_cause cause, sim_time at_ps)
{
    if (SIM_UNLIKELY(n->quiet))
        return at_ps;
    return numa_dram_write_fast(n, home_of(n, line), line, cause, at_ps);
}

sim_time numa_io_send(struct numa *n, unsigned from, unsigned to, enum numa_io what, sim_time at_ps)
{
    static const enum message message_of[] = {
        [NUMA_IO_REQUEST] = MESSAGE_IO_REQUEST,
        [NUMA_IO_DATA] = MESSAGE_IO_DATA,
        [NUMA_IO_COMPLETION] = MESSAGE_RESPONSE,
    };

    return from == to ? at_ps : n->ops->io_send(n, from, to, message_of[what], at_ps);
}
