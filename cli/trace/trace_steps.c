/* One step of a followed transfer as text: where it was, which entries of which tables it met. */
#include <string.h>

#include "cli/trace/trace_text.h"
#include "hw/ntb_regs.h"
#include "hw/vtd_regs.h"
#include "models/numa/numa.h"
#include "models/pcie/iommu/iommu.h"

#define TEXT_BYTES 40

/* "0x1'2340'0000"; buffers of TEXT_BYTES, returned. */
static const char *hex(uint64_t value, char text[TEXT_BYTES])
{
    char digits[17];
    const int n = g_snprintf(digits, sizeof(digits), "%" G_GINT64_MODIFIER "x", value);
    char *to = text;
    *to++ = '0';
    *to++ = 'x';
    for (int i = 0; i < n; i++) {
        if (i != 0 && (n - i) % 4 == 0)
            *to++ = '\'';
        *to++ = digits[i];
    }
    *to = '\0';
    return text;
}

/* "05:00.0" */
static const char *id(uint32_t requester, char text[TEXT_BYTES])
{
    g_snprintf(text, TEXT_BYTES, "%02x:%02x.%x", requester >> 8 & 0xff, requester >> 3 & 31,
               requester & 7);
    return text;
}

/* "(node 1, device 3, fn 0)" */
static const char *fabric_id(uint32_t requester, char text[TEXT_BYTES])
{
    g_snprintf(text, TEXT_BYTES, "(node %u, device %u, fn %u)",
               requester >> NTB_INCOMING_NODE_SHIFT & 0xffff,
               requester >> NTB_INCOMING_DEVICE_SHIFT & 31, requester & 7);
    return text;
}

/* "node 2, 0x4000'0000" */
static const char *fabric_address(uint64_t address, char text[TEXT_BYTES])
{
    char at[TEXT_BYTES];
    g_snprintf(text, TEXT_BYTES, "node %u, %s", (unsigned)(address >> NTB_NODE_SHIFT),
               hex(address & NTB_FABRIC_ADDRESS_MASK, at));
    return text;
}

static const char *size(unsigned log2, char text[TEXT_BYTES])
{
    static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB" };
    g_snprintf(text, TEXT_BYTES, "%u %s", 1u << log2 % 10, unit[SIM_MIN(log2 / 10, 4u)]);
    return text;
}

static double ns(sim_time ps)
{
    return (double)ps / 1000.0;
}

static const char *is_valid(bool valid)
{
    return valid ? "valid" : "NOT valid";
}

/* ---- Devices, links, switches ---------------------------------------------------------------- */

static void write_sent(struct trace_writer *writer, const struct tlp_trace_record *r)
{
    char at[TEXT_BYTES], who[TEXT_BYTES];
    const bool write = r->tlp.type == TLP_MWR;
    trace_step(writer, r->at_ps, "device %s sends a memory %s", r->who, write ? "write" : "read");
    g_autofree char *tag = write ? g_strdup("") : g_strdup_printf(", tag %u", r->tlp.tag);
    trace_detail(writer, "%u bytes at bus address %s, requester %s%s", r->tlp.bytes,
                 hex(r->tlp.address, at), id(r->tlp.requester_id, who), tag);
    if (r->tlp.transfer_bytes != r->tlp.bytes)
        trace_detail(writer, "the first TLP of a DMA of %u bytes", r->tlp.transfer_bytes);
}

static void write_link(struct trace_writer *writer, const struct tlp_trace_record *r)
{
    if (r->link.lanes ==
        0) { /* nothing is serialised there, and there are credits for everything */
        trace_step(writer, r->at_ps, "%s -> %s, within the root complex", r->from, r->to);
        return;
    }
    trace_step(writer, r->at_ps, "link %s -> %s: its %s is there", r->from, r->to,
               r->link.cut_through ? "head" : "tail");
    trace_detail(writer, "Gen%u x%u, %u bytes: waited %.1f, %.1f under way, %.1f from head to tail",
                 r->link.generation, r->link.lanes, r->link.wire_bytes,
                 ns(r->link.start_ps - r->link.handed_ps), ns(r->link.head_ps - r->link.start_ps),
                 ns(r->link.tail_ps - r->link.head_ps));
}

static void write_route(struct trace_writer *writer, const struct tlp_trace_record *r)
{
    char base[TEXT_BYTES], limit[TEXT_BYTES];
    hex(r->route.base, base);
    hex(r->route.limit, limit);
    trace_step(writer, r->at_ps, "switch %s, in by %s", r->who, r->from);
    switch ((enum tlp_trace_route)r->route.why) {
    case TRACE_ROUTE_WINDOW:
        trace_detail(writer, "down to %s, window %s..%s", r->to, base, limit);
        break;
    case TRACE_ROUTE_PEER:
        trace_detail(writer, "to its peer %s, window %s..%s", r->to, base, limit);
        break;
    case TRACE_ROUTE_ACS:
        trace_detail(writer,
                     "up: a peer has the window %s..%s, but access control sends requests to the "
                     "root",
                     base, limit);
        break;
    case TRACE_ROUTE_UP: trace_detail(writer, "up: no port below has a window for it"); break;
    case TRACE_ROUTE_BUS:
        trace_detail(writer, "down to %s, where the requester's bus is: %02x..%02x", r->to,
                     (unsigned)r->route.base, (unsigned)r->route.limit);
        break;
    case TRACE_ROUTE_BUS_UP: trace_detail(writer, "up: the requester's bus is not below"); break;
    }
}

static void write_pass(struct trace_writer *writer, const struct tlp_trace_record *r)
{
    trace_step(writer, r->at_ps, "%s lets it leave by %s", r->who, r->to);
    if (r->at_ps != r->pass.ready_ps)
        trace_detail(writer, "past the chip's core %.1f before, held up since",
                     ns(r->at_ps - r->pass.ready_ps));
}

/* ---- Bridges and the fabric ------------------------------------------------------------------ */

static void write_ntb_out(struct trace_writer *writer, const struct tlp_trace_record *r)
{
    char a[TEXT_BYTES], b[TEXT_BYTES], c[TEXT_BYTES], d[TEXT_BYTES];
    const uint64_t offset = r->ntb.address - r->ntb.bar_base;
    const uint64_t base = r->ntb.lut_entry & ~((UINT64_C(1) << r->ntb.window_log2) - 1);
    trace_step(writer, r->at_ps, "bridge %s (node %u): from its host to the fabric", r->who,
               r->ntb.node);
    trace_detail(writer, "BAR %u at %s, %s per window: offset %s, window %u", r->ntb.bar,
                 hex(r->ntb.bar_base, a), size(r->ntb.window_log2, b), hex(offset, c),
                 r->ntb.window);
    trace_detail(writer, "address table, entry %u: %s = %s, %s", r->ntb.window,
                 hex(r->ntb.lut_entry, a), fabric_address(base, b),
                 is_valid((r->ntb.lut_entry & NTB_LUT_VALID) != 0));
    trace_detail(writer, "outgoing requesters, entry %u: %s = %.5s, %s", r->ntb.idx,
                 hex(r->ntb.entry, a), id(r->ntb.entry & NTB_OUTGOING_ID_MASK, b),
                 is_valid((r->ntb.entry & NTB_OUTGOING_VALID) != 0));
    trace_detail(writer, "address %s -> %s", hex(r->ntb.address, a),
                 fabric_address(r->ntb.to_address, b));
    trace_detail(writer, "requester %s -> %s", id(r->ntb.requester, c),
                 fabric_id(r->ntb.to_requester, d));
}

static void write_ntb_in(struct trace_writer *writer, const struct tlp_trace_record *r)
{
    char a[TEXT_BYTES], b[TEXT_BYTES], c[TEXT_BYTES];
    trace_step(writer, r->at_ps, "bridge %s (node %u): from the fabric to its host", r->who,
               r->ntb.node);
    trace_detail(writer, "address %s -> %s", fabric_address(r->ntb.address, a),
                 hex(r->ntb.to_address, b));
    trace_detail(writer, "incoming requesters, entry %u: %s = %s, %s", r->ntb.idx,
                 hex(r->ntb.entry, a), fabric_id(r->ntb.entry & NTB_INCOMING_ID_MASK, b),
                 is_valid((r->ntb.entry & NTB_INCOMING_VALID) != 0));
    trace_detail(writer, "requester %s -> %s", fabric_id(r->ntb.requester, a),
                 id(r->ntb.to_requester, c));
}

static void write_ntb_completion(struct trace_writer *writer, const struct tlp_trace_record *r)
{
    char a[TEXT_BYTES], b[TEXT_BYTES], c[TEXT_BYTES];
    const bool out = r->kind == TRACE_NTB_CPL_OUT;
    trace_step(writer, r->at_ps, "bridge %s (node %u): completion %s", r->who, r->ntb.node,
               out ? "from its host to the fabric" : "from the fabric to its host");
    trace_detail(writer, "%s requesters, entry %u: %s = %.*s, %s", out ? "incoming" : "outgoing",
                 r->ntb.idx, hex(r->ntb.entry, a), out ? TEXT_BYTES : 5,
                 out ? fabric_id(r->ntb.entry & NTB_INCOMING_ID_MASK, b)
                     : id(r->ntb.entry & NTB_OUTGOING_ID_MASK, b),
                 is_valid(r->ntb.entry >> 31 != 0));
    trace_detail(writer, "requester %s -> %s",
                 out ? id(r->ntb.requester, b) : fabric_id(r->ntb.requester, b),
                 out ? fabric_id(r->ntb.to_requester, c) : id(r->ntb.to_requester, c));
}

/* "0, 2, 5" */
static const char *bits(uint32_t mask, char *text, size_t bytes)
{
    size_t n = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < 32; i++)
        if ((mask >> i & 1) != 0)
            n += (size_t)g_snprintf(text + n, (gulong)(bytes - n), "%s%u", n != 0 ? ", " : "", i);
    return text;
}

static void write_cluster(struct trace_writer *writer, const struct tlp_trace_record *r)
{
    char a[TEXT_BYTES], devices[TEXT_BYTES * 3];
    trace_step(writer, r->at_ps, "cluster switch %s (node %u)", r->who, r->cluster.own_node);
    trace_detail(writer, "routes, entry %u: %s = port %u, %s", r->cluster.node,
                 hex(r->cluster.route_entry, a), r->cluster.route_entry & 0xff,
                 is_valid((r->cluster.route_entry & UINT32_C(1) << 31) != 0));
    trace_detail(writer, "requesters: node %u has entries for devices %s; %u of %u in use",
                 r->cluster.requester >> NTB_INCOMING_NODE_SHIFT,
                 bits(r->cluster.holders, devices, sizeof(devices)), r->cluster.n_entries,
                 r->cluster.n_entries_max);
}

/* ---- Root complex, IOMMU, memory ------------------------------------------------------------- */

static void write_tlp(struct trace_writer *writer, const struct tlp_trace_record *r)
{
    char at[TEXT_BYTES], who[TEXT_BYTES];
    hex(r->tlp.address, at);
    id(r->tlp.requester_id, who);
    switch ((enum tlp_trace_kind)r->kind) {
    case TRACE_ROOT:
        trace_step(writer, r->at_ps, "root %s %s, past its inbound queues",
                   *r->to != '\0' ? "port" : "complex", *r->to != '\0' ? r->to : r->who);
        trace_detail(writer, "address %s, requester %s", at, who);
        break;
    case TRACE_VISIBLE:
        trace_step(writer, r->at_ps, "root complex %s: the write is visible", r->who);
        trace_detail(writer, "all its lines are ordered, and the writes before it");
        break;
    case TRACE_COMPLETION:
        trace_step(writer, r->at_ps, "root complex %s sends a completion", r->who);
        if (r->tlp.status != TLP_SC)
            trace_detail(writer, "status %u, without data, for %s tag %u", r->tlp.status, who,
                         r->tlp.tag);
        else
            trace_detail(writer, "%u bytes, of %u still to come, for %s tag %u", r->tlp.bytes,
                         r->tlp.byte_count, who, r->tlp.tag);
        break;
    case TRACE_PEER:
        trace_step(writer, r->at_ps, "root complex %s passes it on to root port %s", r->who, r->to);
        if (r->tlp.type == TLP_CPL || r->tlp.type == TLP_CPLD)
            trace_detail(writer, "%u bytes, of %u still to come, for %s tag %u", r->tlp.bytes,
                         r->tlp.byte_count, who, r->tlp.tag);
        else
            trace_detail(writer, "address %s, requester %s", at, who);
        break;
    case TRACE_INTERRUPT:
        trace_step(writer, r->at_ps, "root complex %s: an interrupt message", r->who);
        if ((r->tlp.address & VTD_MSI_REMAPPABLE) != 0)
            trace_detail(writer, "address %s: entry %u of the interrupt-remapping table", at,
                         (unsigned)(r->tlp.address >> VTD_MSI_HANDLE_LSB & 0x7fff));
        else
            trace_detail(writer, "address %s, not remapped", at);
        break;
    case TRACE_REFUSED:
        trace_step(writer, r->at_ps, "%s refuses it", r->who);
        trace_detail(writer, "address %s, requester %s", at, who);
        break;
    default:
        trace_step(writer, r->at_ps, "device %s has it", r->who);
        trace_detail(writer, "%u bytes, of %u still to come, tag %u", r->tlp.bytes,
                     r->tlp.byte_count, r->tlp.tag);
        break;
    }
}

static void write_context(struct trace_writer *writer, const struct tlp_trace_record *r)
{
    char a[TEXT_BYTES], b[TEXT_BYTES], c[TEXT_BYTES], d[TEXT_BYTES];
    const bool pass = r->iommu.how == TRACE_IOMMU_PASS;
    trace_detail(writer, "root entry %02x at %s: %s = context table %s", r->iommu.requester_id >> 8,
                 hex(r->iommu.root_at, a), hex(r->iommu.root, b),
                 hex(r->iommu.root & VTD_ROOT_TABLE, c));
    trace_detail(writer, "context entry %s at %s: %s %s", id(r->iommu.requester_id, a) + 3,
                 hex(r->iommu.context_at, b), hex(r->iommu.context_hi, c),
                 hex(r->iommu.context_lo, d));
    if (pass)
        trace_detail(writer, "= domain %u, pass-through",
                     (unsigned)(r->iommu.context_hi >> VTD_CONTEXT_DID_LSB) & 0xffff);
    else
        trace_detail(writer, "= domain %u, %u levels, table %s",
                     (unsigned)(r->iommu.context_hi >> VTD_CONTEXT_DID_LSB) & 0xffff,
                     (unsigned)(r->iommu.context_hi & 7) + 2,
                     hex(r->iommu.context_lo & VTD_CONTEXT_TABLE, a));
}

static void write_iommu(struct trace_writer *writer, const struct tlp_trace_record *r)
{
    char a[TEXT_BYTES], b[TEXT_BYTES];
    switch ((enum tlp_trace_iommu)r->iommu.how) {
    case TRACE_IOMMU_NONE: trace_step(writer, r->at_ps, "no IOMMU at %s", r->who); return;
    case TRACE_IOMMU_OFF: trace_step(writer, r->at_ps, "IOMMU %s is off", r->who); return;
    case TRACE_IOMMU_FAULT:
        trace_step(writer, r->iommu.done_ps, "IOMMU %s: fault %u at %s", r->who, r->iommu.fault,
                   hex(r->iommu.iova, a));
        break;
    default:
        trace_step(writer, r->iommu.done_ps, "IOMMU %s: %s -> %s", r->who, hex(r->iommu.iova, a),
                   hex(r->iommu.hpa, b));
        break;
    }
    if (r->iommu.how == TRACE_IOMMU_HIT)
        trace_detail(writer, "the IOTLB has the page; the entries of the tables for it:");
    else if (r->iommu.how == TRACE_IOMMU_UNDER_MISS)
        trace_detail(writer, "a walk under way brings the page; the entries of the tables for it:");
    else
        trace_detail(writer,
                     "a walk reads %u of these entries, the others are cached:", r->iommu.reads);
    write_context(writer, r);
}

static void write_level(struct trace_writer *writer, const struct tlp_trace_record *r)
{
    char a[TEXT_BYTES], b[TEXT_BYTES], c[TEXT_BYTES], d[TEXT_BYTES];
    const uint64_t entry = r->level.entry;
    trace_detail(writer, "level %u, entry %u at %s: %s = %s%s %s, %s%s", r->level.level,
                 (unsigned)(r->level.at / 8 % VTD_ENTRIES), hex(r->level.at, a), hex(entry, b),
                 r->level.leaf ? size(VTD_SPAN_LOG2(r->level.level), d) : "",
                 r->level.leaf ? " page" : "table", hex(entry & VTD_PTE_ADDR, c),
                 (entry & VTD_PTE_R) != 0 ? "R" : "", (entry & VTD_PTE_W) != 0 ? "W" : "");
}

/* ---- Lines of memory ------------------------------------------------------------------------- */

static bool same_fate(const struct tlp_trace_record *a, const struct tlp_trace_record *b)
{
    return a->kind == b->kind && a->line.home == b->line.home && a->line.llc == b->line.llc &&
           a->line.source == b->line.source;
}

static void say_written(struct trace_writer *writer, const struct tlp_trace_record *r)
{
    const bool there = r->line.source == NUMA_LLC || r->line.source == NUMA_REMOTE_CACHE;
    if (r->line.llc < 0)
        trace_detail(writer, "into the DRAM of socket %d; no cache keeps a copy", r->line.home);
    else if (there)
        trace_detail(writer, "into the LLC of socket %d, which had the line", r->line.llc);
    else
        trace_detail(writer, "into the LLC of socket %d, in a way for devices (DDIO)", r->line.llc);
}

static void say_read(struct trace_writer *writer, const struct tlp_trace_record *r)
{
    static const char *const source[N_NUMA_SOURCES] = {
        [NUMA_L1] = "a core's cache",
        [NUMA_L2] = "a core's cache",
        [NUMA_LLC] = "the LLC of the root complex' socket",
        [NUMA_PEER_CACHE] = "a core's cache",
        [NUMA_REMOTE_CACHE] = "a cache of another socket",
        [NUMA_LOCAL_DRAM] = "the DRAM of the root complex' socket",
        [NUMA_REMOTE_DRAM] = "the DRAM of another socket",
    };
    trace_detail(writer, "from %s", source[r->line.source]);
}

/* The next line of the same TLP that met with the same; n_records if there is none. */
static uint32_t next_line(const struct stamp_trace *trace, uint32_t index)
{
    const struct tlp_trace_record *line = &trace->record[index];
    for (uint32_t i = index + 1; i < trace->n_records; i++)
        if (trace->record[i].leg == line->leg)
            return same_fate(line, &trace->record[i]) ? i : trace->n_records;
    return trace->n_records;
}

static uint32_t write_lines(struct trace_writer *writer, uint32_t index)
{
    const struct stamp_trace *trace = writer->trace;
    const struct tlp_trace_record *first = &trace->record[index], *last = first;
    char a[TEXT_BYTES], b[TEXT_BYTES];
    sim_time done_ps = first->line.done_ps;
    unsigned n = 1;
    for (uint32_t i = next_line(trace, index); i < trace->n_records; i = next_line(trace, i)) {
        index = i;
        last = &trace->record[i];
        done_ps = SIM_MAX(done_ps, last->line.done_ps);
        n++;
    }
    trace_step(writer, done_ps, "memory of socket %d, asked by the root complex of socket %u",
               first->line.home, first->line.socket);
    if (n == 1)
        trace_detail(writer, "%u bytes at %s, asked for at %.1f", first->line.bytes,
                     hex(first->line.hpa, a), ns(first->at_ps - writer->start_ps));
    else
        trace_detail(writer, "%u lines, %s to %s, asked for from %.1f to %.1f", n,
                     hex(first->line.hpa, a), hex(last->line.hpa + last->line.bytes - 1, b),
                     ns(first->at_ps - writer->start_ps), ns(last->at_ps - writer->start_ps));
    if (first->line.write)
        say_written(writer, first);
    else
        say_read(writer, first);
    return index;
}

/* ---- All of them ----------------------------------------------------------------------------- */

sim_time trace_record_ps(const struct tlp_trace_record *record)
{
    if (record->kind == TRACE_LINE)
        return record->line.done_ps;
    return record->kind == TRACE_IOMMU ? SIM_MAX(record->iommu.done_ps, record->at_ps)
                                       : record->at_ps;
}

uint32_t trace_write_step(struct trace_writer *writer, uint32_t index)
{
    const struct tlp_trace_record *record = &writer->trace->record[index];
    switch ((enum tlp_trace_kind)record->kind) {
    case TRACE_SENT: write_sent(writer, record); break;
    case TRACE_BRANCH: break;
    case TRACE_LINK: write_link(writer, record); break;
    case TRACE_ROUTE: write_route(writer, record); break;
    case TRACE_PASS: write_pass(writer, record); break;
    case TRACE_NTB_OUT: write_ntb_out(writer, record); break;
    case TRACE_NTB_IN: write_ntb_in(writer, record); break;
    case TRACE_NTB_CPL_OUT:
    case TRACE_NTB_CPL_IN: write_ntb_completion(writer, record); break;
    case TRACE_CLUSTER: write_cluster(writer, record); break;
    case TRACE_IOMMU: write_iommu(writer, record); break;
    case TRACE_IOMMU_LEVEL: write_level(writer, record); break;
    case TRACE_LINE: return write_lines(writer, index);
    case TRACE_ROOT:
    case TRACE_VISIBLE:
    case TRACE_COMPLETION:
    case TRACE_PEER:
    case TRACE_INTERRUPT:
    case TRACE_REFUSED:
    case TRACE_ARRIVED: write_tlp(writer, record); break;
    }
    return index;
}
