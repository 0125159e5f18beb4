/* Scenarios of clusters: hosts with a bridge each below switches in cascade. */
#include "tests/support/cluster_scenario.h"

#include <glib.h>

#define PER_SWITCH 10u

/* Hosts of which one lends, and its neighbour borrows what one in the next such group lends:
 * traffic crosses switches, of which most is below the lowest, as their tables of requesters have
 * it. */
static unsigned group_of(unsigned n_hosts, unsigned n_borrowed)
{
    return n_hosts / n_borrowed;
}
static unsigned lender_of(unsigned device, unsigned n_hosts, unsigned n_borrowed)
{
    return device * group_of(n_hosts, n_borrowed);
}
static unsigned borrower_of(unsigned device, unsigned n_hosts, unsigned n_borrowed)
{
    return (device + n_borrowed - 1) % n_borrowed * group_of(n_hosts, n_borrowed) + 1;
}

/* All hosts take part. The list of nodes saves reading the registers of all switches. */
static void append_lending(GString *text, unsigned n_hosts, unsigned n_borrowed)
{
    const unsigned group = group_of(n_hosts, n_borrowed);
    g_string_append(text, "lending = {\n");
    for (unsigned i = 0; i < n_hosts; i++) {
        const unsigned d = i / group;
        g_string_append_printf(text,
                               "h%u = { host = \"h%u\"; dma_window_bytes = \"16 MiB\"; "
                               "nodes_listed = true; ",
                               i, i);
        if (d < n_borrowed && i % group == 0)
            g_string_append_printf(text, "lend = [\"d%u\"]; };\n", d);
        else if (d < n_borrowed && i % group == 1)
            g_string_append_printf(text, "borrow = [\"d%u\"]; };\n", (d + 1) % n_borrowed);
        else
            g_string_append(text, "lend = []; };\n");
    }
    g_string_append_printf(text,
                           "};\nworkload = { type = \"programs\"; measured = \"h%u\"; };\n"
                           "measure = { warmup_us = 20; duration_us = 1000; };\nprograms = {\n",
                           borrower_of(0, n_hosts, n_borrowed));
    for (unsigned i = 0; i < n_borrowed; i++)
        g_string_append_printf(text,
                               "p%u = { type = \"device_dma\"; on = \"h%u\"; device = \"d%u\"; "
                               "buffer_bytes = 65536; queue_depth = 4; };\n",
                               i, borrower_of(i, n_hosts, n_borrowed), i);
    g_string_append(text, "};\n");
}

/* Switches of all levels: each has PER_SWITCH below it, up to one that has the rest. */
static unsigned n_switches(unsigned n_hosts)
{
    unsigned n = 0, level = n_hosts;
    do
        n += level = (level + PER_SWITCH - 1) / PER_SWITCH;
    while (level > 1);
    return n;
}

/* The cables between switches; those of the lowest level come first. */
static void append_cascade(GString *text, unsigned n_hosts)
{
    unsigned first = 0, level = (n_hosts + PER_SWITCH - 1) / PER_SWITCH;
    while (level > 1) {
        for (unsigned i = 0; i < level; i++)
            g_string_append_printf(text, ",\n{ from = \"s%u.p0\"; to = \"s%u.p%u\"; }", first + i,
                                   first + level + i / PER_SWITCH, 1 + i % PER_SWITCH);
        first += level;
        level = (level + PER_SWITCH - 1) / PER_SWITCH;
    }
}

char *cluster_scenario(unsigned n_hosts, const char *host, unsigned n_borrowed)
{
    GString *text = g_string_new("hosts = {\n");
    for (unsigned i = 0; i < n_hosts; i++)
        g_string_append_printf(
            text,
            "h%u = { %s ports = ( { name = \"rp0\"; }, { name = \"rp1\"; lanes = 4; } ); "
            "iommu = { enabled = %s; }; };\n",
            i, host, n_borrowed != 0 && i % group_of(n_hosts, n_borrowed) == 1 ? "true" : "false");
    g_string_append(text, "};\ndevices = {\n");
    for (unsigned i = 0; i < n_hosts; i++)
        g_string_append_printf(text,
                               "n%u = { type = \"pcie.ntb\"; lanes = 8; cable_lanes = 8; };\n", i);
    for (unsigned i = 0; i < n_borrowed; i++)
        g_string_append_printf(
            text,
            "d%u = { type = \"pcie.requester\"; generation = 1; lanes = 1; bar_bytes = 65536; };\n",
            i);
    for (unsigned i = 0; i < n_switches(n_hosts); i++)
        g_string_append_printf(text, "s%u = { type = \"pcie.cluster_switch\"; ports = %u; };\n", i,
                               PER_SWITCH + 2);
    g_string_append(text, "};\ncables = (\n");
    for (unsigned i = 0; i < n_hosts; i++)
        g_string_append_printf(text,
                               "%s{ from = \"h%u.s0.rp0\"; to = \"n%u.p0\"; },\n"
                               "{ from = \"n%u.p1\"; to = \"s%u.p%u\"; }",
                               i == 0 ? "" : ",\n", i, i, i, i / PER_SWITCH, 1 + i % PER_SWITCH);
    for (unsigned i = 0; i < n_borrowed; i++)
        g_string_append_printf(text, ",\n{ from = \"h%u.s0.rp1\"; to = \"d%u.p0\"; }",
                               lender_of(i, n_hosts, n_borrowed), i);
    append_cascade(text, n_hosts);
    g_string_append(text, ");\n");
    if (n_borrowed != 0)
        append_lending(text, n_hosts, n_borrowed);
    return g_string_free(text, FALSE);
}
