/*
 * The parameters of a host's memory system. Defaults: Dell R730, 2x Xeon E5-2660 v4, DDR4-2400.
 */
#include "models/numa/dram/fbdimm.h"
#include "models/numa/numa_internal.h"

#define CPU(KEY, TYPE, FIELD, DEF, LO, HI, PROV, HELP) \
    PARAM(KEY, TYPE, struct numa_cpu_params, FIELD, DEF, LO, HI, PROV, "docs/sources.md#a1", HELP)
#define CACHE(KEY, TYPE, FIELD, DEF, LO, HI, PROV, SOURCE, HELP) \
    PARAM(KEY, TYPE, struct numa_cache_params, FIELD, DEF, LO, HI, PROV, SOURCE, HELP)
#define COHERENCE(KEY, TYPE, FIELD, DEF, LO, HI, PROV, SOURCE, HELP) \
    PARAM(KEY, TYPE, struct numa_coherence_params, FIELD, DEF, LO, HI, PROV, SOURCE, HELP)
#define LINKS(KEY, TYPE, FIELD, DEF, LO, HI, PROV, SOURCE, HELP) \
    PARAM(KEY, TYPE, struct numa_interconnect_params, FIELD, DEF, LO, HI, PROV, SOURCE, HELP)
#define DRAM(KEY, TYPE, FIELD, DEF, LO, HI, PROV, HELP) \
    PARAM(KEY, TYPE, struct numa_dram_params, FIELD, DEF, LO, HI, PROV, "docs/sources.md#h", HELP)
#define A1 "docs/sources.md#a1"
#define A2 "docs/sources.md#a2"
#define A3 "docs/sources.md#a3"
#define A4 "docs/sources.md#a4"
#define K  "docs/sources.md#k"
#define E1 "docs/sources.md#fsb"
#define F  "docs/sources.md#f"

static const char *const remote_dma_names[] = { "device_side_llc", "dram_invalidate", "home_llc",
                                                "own_then_dram",   "own_then_both",   NULL };

static const char *const snoop_mode_names[] = { "directory", "home", "early", NULL };
static const char *const directory_stale_names[] = { "clear", "share", "keep", NULL };

static const struct param_desc cpu_table[] = {
    CPU("sockets", PARAM_U32, sockets, 2, 1, NUMA_MAX_SOCKETS, PROV_DATASHEET, "processor sockets"),
    CPU("cores_per_socket", PARAM_U32, cores_per_socket, 14, 1, 30, PROV_DATASHEET,
        "cores of one socket, one thread each"),
    CPU("clock_ghz", PARAM_RATE, clock_ghz, 2.0, 0.5, 6, PROV_DATASHEET, "core clock, turbo off"),
    CPU("l1_hit_cycles", PARAM_U32, l1_hit_cycles, 4, 1, 20, PROV_PUBLISHED,
        "load-to-use of an L1D hit"),
    CPU("l2_hit_cycles", PARAM_U32, l2_hit_cycles, 12, 1, 60, PROV_PUBLISHED,
        "load-to-use of an L2 hit; an L2 miss is known then"),
    { .type = PARAM_END },
};

static const struct param_desc cache_table[] = {
    CACHE("l1_size", PARAM_BYTES, l1_bytes, 32768, 1024, 1048576, PROV_ESTIMATE, A1,
          "L1D of a core"),
    CACHE("l1_ways", PARAM_U32, l1_ways, 8, 1, 32, PROV_ESTIMATE, A1, "associativity of L1D"),
    CACHE("l1i_size", PARAM_BYTES, l1i_bytes, 0, 0, 1048576, PROV_DATASHEET, E1,
          "L1I of a core; 0: there is none, instructions cost no time to fetch"),
    CACHE("l1i_ways", PARAM_U32, l1i_ways, 8, 1, 32, PROV_DATASHEET, E1, "associativity of L1I"),
    CACHE("l2_size", PARAM_BYTES, l2_bytes, 262144, 4096, 67108864, PROV_ESTIMATE, A1, "one L2"),
    CACHE("l2_ways", PARAM_U32, l2_ways, 8, 1, 32, PROV_ESTIMATE, A1, "associativity of L2"),
    CACHE("l2_cores", PARAM_U32, l2_cores, 1, 1, 4, PROV_DATASHEET, E1,
          "cores that share one L2 (a power of two)"),
    CACHE("l2_sector_lines", PARAM_U32, l2_sector_lines, 1, 1, 2, PROV_DATASHEET, F,
          "lines of one tag of the L2, which come and go alone but leave together"),
    CACHE("l1_write_through", PARAM_BOOL, l1_write_through, 0, 0, 1, PROV_DATASHEET, F,
          "stores go to the L2 at once: the L1D holds nothing modified"),
    CACHE("prefetch_streams", PARAM_U32, prefetch.streams, 0, 0, PREFETCH_MAX_STREAMS,
          PROV_DATASHEET, F, "streams that the L2's prefetcher follows; 0: it has none"),
    CACHE("prefetch_ahead_lines", PARAM_U32, prefetch.ahead, 4, 1, PREFETCH_MAX_ASKED - 1,
          PROV_DATASHEET, F, "lines that it keeps a stream ahead of the accesses, within the page"),
    CACHE("prefetch_trigger_lines", PARAM_U32, prefetch.trigger, 4, 1, 64, PROV_DATASHEET, F,
          "lines at most between the two misses with which a stream begins"),
    CACHE("prefetch_in_flight", PARAM_U32, prefetch.in_flight, 8, 1, PREFETCH_MAX_IN_FLIGHT,
          PROV_ESTIMATE, F, "lines that it may have under way"),
    CACHE("prefetch_pairs", PARAM_BOOL, prefetch.pairs, 0, 0, 1, PROV_DATASHEET, F,
          "a miss also fetches the other line of its 128 bytes"),
    CACHE("prefetch_owns", PARAM_BOOL, prefetch.owns, 1, 0, 1, PROV_DATASHEET, F,
          "what a store makes it fetch is fetched for ownership, not read"),
    CACHE("llc_size", PARAM_BYTES, llc_bytes, 36700160, 0, 1073741824, PROV_DATASHEET, A1,
          "last-level cache of a socket; 0: none"),
    CACHE("llc_slices", PARAM_U32, llc_slices, 14, 1, 64, PROV_DATASHEET, A1,
          "slices of the LLC; each has a power of two of sets"),
    CACHE("llc_ways", PARAM_U32, llc_ways, 20, 1, 32, PROV_ESTIMATE, A1, "associativity of LLC"),
    CACHE("ddio", PARAM_BOOL, ddio, 1, 0, 1, PROV_DATASHEET, A4,
          "devices' writes to local memory go to the LLC; false: to DRAM, copies are invalidated"),
    CACHE("ddio_ways", PARAM_U32, ddio_ways, 2, 1, 32, PROV_PUBLISHED, A4,
          "LLC ways into which devices' writes allocate"),
    CACHE("inclusive", PARAM_BOOL, inclusive, 1, 0, 1, PROV_DATASHEET, A1,
          "the LLC holds all lines of private caches (Skylake: false)"),
    CACHE("writeback_keeps_sharer", PARAM_BOOL, writeback_keeps_sharer, 1, 0, 1, PROV_ESTIMATE, A1,
          "inclusive LLC: it goes on counting a core among a line's holders when a modified line "
          "leaves the core's L2 (WbMtoE)"),
    CACHE("filter_ways", PARAM_U32, filter_ways, 12, 1, 32, PROV_ESTIMATE, "docs/sources.md#b",
          "ways of the snoop filter beside a non-inclusive LLC"),
    CACHE("llc_request_ns", PARAM_TIME, llc_request_ps, 12, 0, 200, PROV_ESTIMATE, A1,
          "L2 or IIO to the slice's answer whether it has the line"),
    CACHE("llc_return_ns", PARAM_TIME, llc_return_ps, 7, 0, 200, PROV_ESTIMATE, A1,
          "slice, home agent or link to the core or IIO, data included"),
    CACHE("iio_ns", PARAM_TIME, iio_ps, 6, 0, 200, PROV_ESTIMATE, A4,
          "root complex to the ring, for DMA"),
    CACHE("core_snoop_clean_ns", PARAM_TIME, core_snoop_clean_ps, 9.4, 0, 200, PROV_PUBLISHED, A1,
          "snoop of a core that has the line unmodified (34.4 less an LLC hit)"),
    CACHE("core_snoop_dirty_ns", PARAM_TIME, core_snoop_dirty_ps, 15, 0, 200, PROV_PUBLISHED, A1,
          "snoop of a core that has the line modified (39-42 less an LLC hit)"),
    CACHE(
        "l1_snoop_ns", PARAM_TIME, l1_snoop_ps, 0, 0, 200, PROV_DATASHEET, E1,
        "what a line that another L1 of the same L2 has modified costs beyond the L2; 0: an access to "
        "that L1, and one more to the L2"),
    CACHE("writeback_ns", PARAM_TIME, writeback_ps, 0, 0, 200, PROV_ESTIMATE, K,
          "how long a modified line that leaves an L2 keeps the line-fill buffer of the line that "
          "displaces it; 0: it has a buffer of its own"),
    { .type = PARAM_END },
};

static const struct param_desc coherence_table[] = {
    PARAM_ONE_OF("protocol", struct numa_coherence_params, protocol, 0, coherence_protocol_names,
                 PROV_PUBLISHED, A3, "how caches are kept coherent"),
    PARAM_ONE_OF("remote_dma_write", struct numa_coherence_params, remote_dma_write, 0,
                 remote_dma_names, PROV_PUBLISHED, "docs/sources.md#0",
                 "where a device's write to another socket's memory goes"),
    COHERENCE("home_agent_ns", PARAM_TIME, home_agent_ps, 5, 0, 200, PROV_ESTIMATE, A1,
              "slice or link to the home agent, and its decision"),
    COHERENCE("snoop_lookup_ns", PARAM_TIME, snoop_lookup_ps, 8, 0, 200, PROV_ESTIMATE, A1,
              "home agent, link or bus to a caching agent's answer"),
    COHERENCE("snoop_stall_ns", PARAM_TIME, snoop_stall_ps, 0, 0, 200, PROV_DATASHEET, E1,
              "front-side bus: what the hub's snoop filter adds to a processor's snoop phase"),
    COHERENCE("opportunistic_broadcast", PARAM_BOOL, opportunistic_broadcast, 1, 0, 1,
              PROV_DATASHEET, A3, "snoop without waiting for the directory if the link is idle"),
    COHERENCE("broadcast_load_ratio", PARAM_DOUBLE, broadcast_load_ratio, 0.25, 0, 1, PROV_ESTIMATE,
              A3, "link load below which it is idle enough"),
    PARAM_ONE_OF(
        "snoop_mode", struct numa_coherence_params, snoop_mode, 0, snoop_mode_names, PROV_DATASHEET,
        A3,
        "who snoops other sockets: the home as its directory says, the home always, or the "
        "requester"),
    PARAM_ONE_OF(
        "directory_stale", struct numa_coherence_params, directory_stale, 0, directory_stale_names,
        PROV_PUBLISHED, A3,
        "what the directory says when a local read finds that no other socket has the line"),
    COHERENCE(
        "io_directory_entries", PARAM_U32, io_directory_entries, 0, 0, 4096, PROV_ESTIMATE,
        "docs/sources.md#k",
        "own_then_dram, own_then_both: lines of remote devices that a home tracks without the directory in "
        "DRAM"),
    COHERENCE("io_directory_gated", PARAM_BOOL, io_directory_gated, 0, 0, 1, PROV_PUBLISHED,
              "docs/sources.md#k", "such a line is tracked only while the home may broadcast"),
    COHERENCE("request_entries", PARAM_U32, request_entries, 20, 0, POOL_MAX, PROV_PUBLISHED, K,
              "transactions that a slice of the LLC has under way (TOR); 0: without bound"),
    COHERENCE("transaction_ids", PARAM_U32, transaction_ids, 128, 0, POOL_MAX, PROV_ESTIMATE, K,
              "transactions that a socket has under way with the home agents of another one (QPI: "
              "RTIDs); 0: without bound"),
    COHERENCE(
        "local_trackers", PARAM_U32, local_trackers, 128, 0, POOL_MAX, PROV_ESTIMATE, K,
        "trackers of a socket's home agents for transactions of that socket; 0: without bound"),
    COHERENCE(
        "remote_trackers", PARAM_U32, remote_trackers, 0, 0, POOL_MAX, PROV_ESTIMATE, K,
        "trackers of a socket's home agents for transactions of other sockets; 0: there is one "
        "for each transaction ID"),
    COHERENCE(
        "io_trackers", PARAM_U32, io_trackers, 0, 0, POOL_MAX, PROV_ESTIMATE, K,
        "trackers of a socket's home agents for transactions of devices, of any socket; 0: these "
        "take those above"),
    COHERENCE("write_accept_ns", PARAM_TIME, write_accept_ps, 0, 0, 500, PROV_ESTIMATE,
              "docs/sources.md#k",
              "home agent to the controller's write queue and back, for devices' writes to DRAM"),
    COHERENCE("snoop_filter", PARAM_BOOL, snoop_filter, 1, 0, 1, PROV_DATASHEET, E1,
              "front-side bus: the hub knows which lines the other bus's caches have"),
    COHERENCE("snoop_filter_size", PARAM_BYTES, snoop_filter_bytes, 0, 0, 1073741824,
              PROV_DATASHEET, E1,
              "front-side bus: lines of one bus that the snoop filter can list; 0: without limit"),
    COHERENCE("snoop_filter_ways", PARAM_U32, snoop_filter_ways, 16, 1, 32, PROV_DATASHEET, E1,
              "front-side bus: ways of the snoop filter for one bus"),
    COHERENCE("hub_ns", PARAM_TIME, hub_ps, 20, 0, 200, PROV_ESTIMATE, E1,
              "front-side bus: address phase to the hub's decision"),
    COHERENCE("hub_return_ns", PARAM_TIME, hub_return_ps, 15, 0, 200, PROV_ESTIMATE, E1,
              "front-side bus: data at the hub to the data phase"),
    { .type = PARAM_END },
};

static const struct param_desc interconnect_table[] = {
    LINKS("links", PARAM_U32, links, 2, 1, 4, PROV_DATASHEET, A2,
          "links between each pair of sockets"),
    LINKS("rate_gt_s", PARAM_RATE, rate_gt_s, 9.6, 1, 64, PROV_DATASHEET, A2,
          "transfers of one lane"),
    LINKS("lanes", PARAM_U32, lanes, 20, 1, 64, PROV_DATASHEET, A2, "lanes of a link direction"),
    LINKS("flit_bits", PARAM_U32, flit_bits, 80, 8, 512, PROV_DATASHEET, A2,
          "bits of a flit on the wire, CRC included"),
    LINKS("flit_payload_bytes", PARAM_U32, flit_payload_bytes, 8, 1, 64, PROV_DATASHEET, A2,
          "bytes of a flit that count as moved"),
    LINKS("flit_slots", PARAM_U32, flit_slots, 1, 1, 4, PROV_ESTIMATE, "docs/sources.md#b",
          "headers that share a header flit, at most one of them of a line (QPI: 1, UPI: 3)"),
    LINKS(
        "headers_pass_data", PARAM_BOOL, headers_pass_data, 1, 0, 1, PROV_PUBLISHED, K,
        "each class of message has a queue of its own: requests, snoops and responses do not wait "
        "behind data that wait"),
    LINKS("receive_flits", PARAM_U32, receive_flits, 128, 0, POOL_MAX / 4, PROV_PUBLISHED, K,
          "flits that the receive buffer of a link takes: credits of the sender; 0: without bound"),
    LINKS(
        "reserved_flits", PARAM_U32, reserved_flits, 26, 0, 256, PROV_PUBLISHED, K,
        "of these, kept for one packet of each class of message (VN0); the others are shared (VNA)"),
    LINKS("credit_loop_ns", PARAM_TIME, credit_loop_ps, 30, 0, 1000, PROV_ESTIMATE, K,
          "start of a packet to its credits back, if the receiver takes it at once"),
    LINKS("data_flits", PARAM_U32, data_flits, 9, 1, 64, PROV_ESTIMATE, A2,
          "flits of a line beside its header"),
    LINKS("header_flits", PARAM_U32, header_flits, 1, 1, 8, PROV_ESTIMATE, A2,
          "flits of a request, snoop, response or completion, and of a line's header"),
    LINKS("one_way_ns", PARAM_TIME, one_way_ps, 21, 0, 1000, PROV_CALIBRATED, A2,
          "agent to agent without serialisation (claim numa.bdw.remote)"),
    LINKS("bus_address_ns", PARAM_TIME, bus_address_ps, 6, 0.1, 100, PROV_DATASHEET, E1,
          "front-side bus: one address phase"),
    LINKS("bus_arbitration_ns", PARAM_TIME, bus_arbitration_ps, 0, 0, 100, PROV_ESTIMATE, E1,
          "front-side bus: arbitration before an address phase"),
    LINKS("bus_turnaround_ns", PARAM_TIME, bus_turnaround_ps, 0, 0, 50, PROV_ESTIMATE, E1,
          "front-side bus: idle time of the data lines before and after data that a processor "
          "drives"),
    LINKS("bus_gbyte_s", PARAM_RATE, bus_gbyte_s, 10.67, 0.1, 100, PROV_DATASHEET, E1,
          "front-side bus: data rate"),
    LINKS("bus_in_order", PARAM_U32, bus_in_order, 0, 0, 16, PROV_DATASHEET, E1,
          "front-side bus: transactions under way at most, which are answered in their order; 0: "
          "without bound and order"),
    { .type = PARAM_END },
};

static const struct param_desc dram_table[] = {
    DRAM("node_size", PARAM_BYTES, node_bytes, 68719476736.0, 1048576, 1099511627776.0,
         PROV_ESTIMATE, "memory of each node (front-side bus: of the hub)"),
    DRAM("high_first", PARAM_BOOL, high_first, 1, 0, 1, PROV_DATASHEET,
         "software gets memory from 4 GiB on first, what lies below last (Linux: the normal zone "
         "before DMA32); false: in order of address"),
    DRAM("channels", PARAM_U32, channels, 4, 1, 16, PROV_DATASHEET, "channels of a node"),
    DRAM("ranks", PARAM_U32, ranks, 2, 1, 8, PROV_ESTIMATE, "ranks of a channel"),
    DRAM("banks", PARAM_U32, banks, 16, 1, 64, PROV_DATASHEET, "banks of a rank"),
    DRAM("bank_groups", PARAM_U32, bank_groups, 4, 1, 64, PROV_DATASHEET,
         "groups of a rank's banks (DDR3: 1); lines take turns between two of them"),
    DRAM("tccd_l_ns", PARAM_TIME, tccd_l_ps, 5, 0, 100, PROV_DATASHEET,
         "column commands of a group of banks, one after the other"),
    DRAM("row_lines", PARAM_U32, row_lines, 128, 1, 1024, PROV_DATASHEET, "lines of a row"),
    DRAM("rate_mt_s", PARAM_RATE, data_rate_mt_s, 2400, 100, 10000, PROV_DATASHEET,
         "transfers of a channel"),
    DRAM("bus_bytes", PARAM_U32, bus_bytes, 8, 1, 64, PROV_DATASHEET,
         "bytes of a transfer (two lockstep FB-DIMM channels: 16)"),
    DRAM("controller_ns", PARAM_TIME, controller_ps, 19, 0, 200, PROV_CALIBRATED,
         "controller and PHY, both ways (claim numa.bdw.local)"),
    DRAM("trcd_ns", PARAM_TIME, trcd_ps, 14.16, 0, 100, PROV_DATASHEET, "activate to read"),
    DRAM("tcl_ns", PARAM_TIME, tcl_ps, 14.16, 0, 100, PROV_DATASHEET, "read to data"),
    DRAM("trp_ns", PARAM_TIME, trp_ps, 14.16, 0, 100, PROV_DATASHEET, "precharge"),
    DRAM("tras_ns", PARAM_TIME, tras_ps, 32, 0, 200, PROV_DATASHEET, "activate to precharge"),
    DRAM("trfc_ns", PARAM_TIME, trfc_ps, 350, 0, 2000, PROV_DATASHEET,
         "refresh of a rank; 0: no refresh"),
    DRAM("trefi_ns", PARAM_TIME, trefi_ps, 7800, 100, 100000, PROV_DATASHEET,
         "between refreshes of a rank"),
    DRAM("refresh_postponed", PARAM_U32, refresh_postponed, 8, 0, 8, PROV_DATASHEET,
         "refreshes that a busy rank may owe (not of FB-DIMM)"),
    DRAM("refresh_idle_ns", PARAM_TIME, refresh_idle_ps, 12.5, 0, 1000, PROV_ESTIMATE,
         "idle time after which a rank does a refresh that is due (not of FB-DIMM)"),
    DRAM("tcwl_ns", PARAM_TIME, tcwl_ps, 10, 0, 100, PROV_DATASHEET,
         "write to data (FB-DIMM: tCL less a clock)"),
    DRAM("twtr_ns", PARAM_TIME, twtr_ps, 5, 0, 100, PROV_DATASHEET,
         "end of a write's data to a read of the same rank"),
    DRAM("rank_switch_ns", PARAM_TIME, rank_switch_ps, 1.666, 0, 20, PROV_DATASHEET,
         "tCS: gap on the data bus between bursts of different ranks, 2 clocks"),
    DRAM("page_idle_ns", PARAM_TIME, page_idle_ps, 100, 0, 100000, PROV_ESTIMATE,
         "idle time after which an open row is closed"),
    DRAM("write_batch", PARAM_U32, write_batch, 16, 1, 64, PROV_ESTIMATE,
         "FB-DIMM: writes drained together"),
    DRAM("write_queue", PARAM_U32, write_queue, 32, 1, DRAM_MAX_WRITES, PROV_ESTIMATE,
         "writes of a channel that may wait before senders do; from three quarters of them to one "
         "quarter, reads wait instead"),
    DRAM("read_queue", PARAM_U32, read_queue, 22, 1, DRAM_MAX_READS, PROV_ESTIMATE,
         "reads of a channel that the controller knows; it serves those of open rows first"),
    DRAM("fb_dimm", PARAM_BOOL, fb_dimm, 0, 0, 1, PROV_DATASHEET,
         "the channels are FB-DIMM branches: read data northbound, write data southbound at half "
         "the rate, rows closed after each access"),
    DRAM("dimms", PARAM_U32, dimms, 1, 1, FBDIMM_MAX_DIMMS, PROV_ESTIMATE,
         "FB-DIMM: DIMMs of a channel (a power of two)"),
    DRAM("buffer_ns", PARAM_TIME, buffer_ps, 17, 0, 100, PROV_ESTIMATE,
         "FB-DIMM: delay of a DIMM's buffer, both ways"),
    DRAM("hop_ns", PARAM_TIME, hop_ps, 4, 0, 50, PROV_ESTIMATE,
         "FB-DIMM: more for each DIMM that the last one is away, both ways"),
    DRAM("twr_ns", PARAM_TIME, twr_ps, 15, 0, 100, PROV_DATASHEET,
         "end of a write's data to the precharge"),
    { .type = PARAM_END },
};

#define GROUP(NAME)                                                                         \
    {                                                                                       \
        .name = #NAME, .table = NAME##_table, .bytes = sizeof(struct numa_##NAME##_params), \
        .offset = offsetof(struct numa_params, NAME)                                        \
    }
const struct numa_param_group numa_param_groups[] = {
    GROUP(cpu), GROUP(cache), GROUP(coherence), GROUP(interconnect), GROUP(dram), { .name = NULL },
};

static bool is_power_of_two(uint64_t v)
{
    return v != 0 && (v & (v - 1)) == 0;
}

bool numa_sets_fit(uint64_t bytes, uint32_t slices, uint32_t ways)
{
    const uint64_t row = LINE_BYTES * slices * ways;

    return bytes % row == 0 && is_power_of_two(bytes / row);
}

bool numa_rules_hold(const struct numa_rule *rules, size_t n, const char **why)
{
    for (size_t i = 0; i < n; i++) {
        if (rules[i].broken) {
            *why = rules[i].why;
            return false;
        }
    }
    return true;
}

bool numa_params_check(const struct numa_params *params, const char **why)
{
    const struct numa_cpu_params *cpu = params->cpu;
    const struct numa_cache_params *cache = params->cache;
    const struct numa_dram_params *dram = params->dram;
    const struct numa_rule rules[] = {
        { !is_power_of_two(cache->l2_cores) || cpu->cores_per_socket % cache->l2_cores != 0,
          "cache.l2_cores must be a power of two that divides cpu.cores_per_socket" },
        { !numa_sets_fit(cache->l1_bytes, 1, cache->l1_ways),
          "cache.l1_size / 64 / cache.l1_ways must be a power of two" },
        { !numa_sets_fit(cache->l2_bytes, 1, cache->l2_ways),
          "cache.l2_size / 64 / cache.l2_ways must be a power of two" },
        { cache->l2_bytes / LINE_BYTES / cache->l2_ways < cache->l2_sector_lines,
          "cache.l2_size must be at least cache.l2_sector_lines x cache.l2_ways lines" },
        { cache->l1i_bytes > 0 && !numa_sets_fit(cache->l1i_bytes, 1, cache->l1i_ways),
          "cache.l1i_size / 64 / cache.l1i_ways must be a power of two" },
        { cache->l1i_bytes > cache->l2_bytes,
          "cache.l1i_size must not exceed cache.l2_size (the L2 is inclusive)" },
        { cache->l1_bytes > cache->l2_bytes,
          "cache.l1_size must not exceed cache.l2_size (the L2 is inclusive)" },
        { !is_power_of_two((uint64_t)dram->ranks * dram->banks) || !is_power_of_two(dram->banks),
          "dram.banks and dram.ranks must be powers of two" },
        { params->interconnect->flit_slots > 1 && params->interconnect->header_flits != 1,
          "interconnect.header_flits must be 1 where a flit has several slots" },
        { !is_power_of_two(dram->bank_groups), "dram.bank_groups must be a power of two" },
        { params->interconnect->receive_flits != 0 &&
              params->interconnect->receive_flits < params->interconnect->reserved_flits +
                                                        params->interconnect->data_flits +
                                                        params->interconnect->header_flits,
          "interconnect.receive_flits must be 0, or take interconnect.reserved_flits and a line" },
        { !is_power_of_two(dram->row_lines), "dram.row_lines must be a power of two" },
        { !is_power_of_two(dram->dimms), "dram.dimms must be a power of two" },
        { dram->dimms > 1 && !dram->fb_dimm, "dram.dimms must be 1 without dram.fb_dimm" },
        { dram->dimms * dram->ranks > DRAM_MAX_RANKS, "dram.dimms x dram.ranks must not exceed 8" },
        { dram->node_bytes % PAGE_BYTES != 0, "dram.node_size must be whole pages of 4 KiB" },
        { dram->trfc_ps >= dram->trefi_ps, "dram.trfc_ns must be below dram.trefi_ns" },
    };

    return numa_rules_hold(rules, SIM_N_ELEMENTS(rules), why) &&
           coherence_protocols[params->coherence->protocol]->params_check(params, why);
}
