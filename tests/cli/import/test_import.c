/* What is read of a server: each tool's output, of any privilege; damage is a message with file and
 * line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* after those */
#include <cmocka.h>
#include <glib.h>
#include <string.h>
#include <unistd.h>

#include "cli/import/machine.h"

#define SERVER "tests/cli/import/server/"

static void read_text(struct import_machine *machine, const char *text,
                      struct sim_error_list *errors)
{
    g_autofree char *path = NULL;
    bool known;
    const int fd = g_file_open_tmp("import-XXXXXX.txt", &path, NULL);
    assert_true(fd >= 0);
    close(fd);
    assert_true(g_file_set_contents(path, text, -1, NULL));
    import_file(machine, path, true, &known, errors);
    remove(path);
}

static void read_server(struct import_machine *machine, const char *file)
{
    struct sim_error_list errors = { 0 };
    bool known = false;
    import_machine_init(machine);
    g_autofree char *path = g_strconcat(SERVER, file, NULL);
    assert_true(import_file(machine, path, true, &known, &errors));
    assert_true(known);
    assert_int_equal(errors.n_messages, 0);
}

static const struct import_function *at(const struct import_machine *m, unsigned bus,
                                        unsigned device, unsigned function)
{
    for (guint i = 0; i < m->functions->len; i++) {
        const struct import_function *f = m->functions->pdata[i];
        if (f->bus == bus && f->device == device && f->function == function)
            return f;
    }
    fail_msg("no function %02x:%02x.%x", bus, device, function);
    return NULL;
}

static void test_lspci(void **state)
{
    struct import_machine m;
    (void)state;
    read_server(&m, "lspci.txt");
    const struct import_function *nic = at(&m, 0x3b, 0, 0);
    assert_int_equal(nic->class_code, 0x0200);
    assert_int_equal(nic->vendor_id, 0x15b3);
    assert_int_equal(nic->device_id, 0x1017);
    assert_int_equal(nic->kind, IMPORT_ENDPOINT);
    assert_int_equal(nic->possible.lanes.value, 16);
    assert_int_equal(nic->trained.lanes.value, 8);
    assert_int_equal(nic->trained.generation.value, 3);
    assert_int_equal(nic->mps.value, 256);
    assert_int_equal(nic->mps_possible.value, 512);
    assert_int_equal(nic->mrrs.value, 1024);
    assert_int_equal(nic->bar_bytes.value, 32 << 20);
    assert_int_equal(nic->vfs.value, 16);
    assert_int_equal(nic->node, 0);
    assert_int_equal(nic->iommu_group, 32);
    const struct import_function *up = at(&m, 0x18, 0, 0), *down = at(&m, 0x19, 8, 0);
    assert_int_equal(up->kind, IMPORT_UPSTREAM);
    assert_int_equal(up->secondary, 0x19);
    assert_int_equal(down->kind, IMPORT_DOWNSTREAM);
    assert_false(import_known(&down->trained.lanes)); /* x0: nothing is there */
    assert_int_equal(at(&m, 0, 4, 0)->kind, IMPORT_INTEGRATED);
    import_machine_release(&m);
}

/* Of a function without capabilities in words, but with its bytes. */
static void test_config_space(void **state)
{
    struct import_machine m;
    (void)state;
    read_server(&m, "lspci.txt");
    const struct import_function *port = at(&m, 0x85, 0, 0);
    assert_int_equal(port->kind, IMPORT_ROOT_PORT);
    assert_int_equal(port->secondary, 0x86);
    assert_int_equal(port->possible.generation.value, 3);
    assert_int_equal(port->possible.lanes.value, 8);
    assert_int_equal(port->trained.lanes.value, 8);
    assert_int_equal(port->mps_possible.value, 256);
    assert_int_equal(port->mps.value, 256);
    assert_int_equal(port->mrrs.value, 128);
    import_machine_release(&m);
}

static void test_without_privilege(void **state)
{
    struct import_machine m;
    struct sim_error_list errors = { 0 };
    (void)state;
    import_machine_init(&m);
    read_text(&m,
              "0000:3b:00.0 0200: 15b3:1017\n"
              "\tFlags: bus master, fast devsel, latency 0, IRQ 33, NUMA node 0\n"
              "\tMemory at ac000000 (64-bit, prefetchable) [size=32M]\n"
              "\tCapabilities: <access denied>\n"
              "\n"
              "10000:e1:00.0 Non-Volatile memory controller: A drive behind VMD\n",
              &errors);
    assert_int_equal(errors.n_messages, 0);
    assert_int_equal(m.functions->len, 2);
    assert_int_equal(at(&m, 0x3b, 0, 0)->class_code, 0x0200);
    assert_int_equal(at(&m, 0x3b, 0, 0)->vendor_id, 0x15b3);
    assert_int_equal(at(&m, 0x3b, 0, 0)->kind, IMPORT_UNKNOWN);
    assert_int_equal(at(&m, 0x3b, 0, 0)->bar_bytes.value, 32 << 20);
    assert_int_equal(at(&m, 0xe1, 0, 0)->domain, 0x10000);
    assert_int_equal(at(&m, 0xe1, 0, 0)->class_code, 0x0108);
    import_machine_release(&m);
}

static void test_hwloc(void **state)
{
    static const char *const files[] = { "lstopo.xml", "lstopo.txt" };
    (void)state;
    for (size_t i = 0; i < SIM_N_ELEMENTS(files); i++) {
        struct import_machine m;
        read_server(&m, files[i]);
        assert_int_equal(m.sockets.value, 2);
        assert_int_equal(m.nodes.value, 2);
        assert_int_equal(m.cores.value, 16);
        assert_int_equal(m.threads.value, 32);
        assert_int_equal(m.l1_bytes.value, 32 << 10);
        assert_int_equal(m.l2_bytes.value, 1 << 20);
        assert_int_equal(m.l2_cores.value, 1);
        assert_int_equal(m.l3_bytes.value, 11 << 20);
        assert_int_equal(m.l3_caches.value, 2);
        if (i == 0) {
            assert_int_equal(m.cpu_model.value, 85);
            assert_int_equal(at(&m, 0x3b, 0, 0)->trained.lanes.value, 8); /* 7.88 GB/s */
            assert_int_equal(at(&m, 0x3b, 0, 0)->trained.generation.value, 3);
            assert_int_equal(at(&m, 0x86, 0, 0)->node, 1);
        }
        import_machine_release(&m);
    }
}

/* Objects as hwloc 1 has them: nodes contain sockets, caches have a depth. */
static void test_hwloc_1(void **state)
{
    struct import_machine m;
    struct sim_error_list errors = { 0 };
    (void)state;
    import_machine_init(&m);
    read_text(
        &m,
        "<?xml version=\"1.0\"?><!DOCTYPE topology SYSTEM \"hwloc.dtd\"><topology>\n"
        "<object type=\"Machine\"><object type=\"NUMANode\" os_index=\"0\" local_memory=\"1073741824\">\n"
        "<object type=\"Socket\"><object type=\"Cache\" cache_size=\"4194304\" depth=\"2\">\n"
        "<object type=\"Core\"><object type=\"PU\"/></object>"
        "<object type=\"Core\"><object type=\"PU\"/></object></object></object></object></object>\n"
        "</topology>\n",
        &errors);
    assert_int_equal(errors.n_messages, 0);
    assert_int_equal(m.sockets.value, 1);
    assert_int_equal(m.nodes.value, 1);
    assert_int_equal(m.node_bytes.value, 1 << 30);
    assert_int_equal(m.l2_bytes.value, 4 << 20);
    assert_int_equal(m.l2_cores.value, 2);
    import_machine_release(&m);
}

static void test_dmidecode(void **state)
{
    struct import_machine m;
    (void)state;
    read_server(&m, "dmidecode.txt");
    assert_string_equal(m.product, "Example Two Socket Server");
    assert_int_equal(m.sockets.value, 2);
    assert_int_equal(m.cores.value, 16);
    assert_int_equal(m.threads.value, 32);
    assert_int_equal(m.clock_mhz.value, 2100);
    assert_int_equal(m.cpu_family.value, 6);
    assert_int_equal(m.cpu_model.value, 85);
    assert_false(import_known(&m.interconnect_mt_s)); /* 100 MHz is the reference clock */
    assert_int_equal(m.l3_bytes.value, 11 << 20);
    assert_int_equal(m.l3_caches.value, 2);
    assert_int_equal(m.dimms.value, 4); /* the fifth slot is empty */
    assert_true(m.dimm_total_bytes.value == UINT64_C(64) << 30);
    assert_int_equal(m.dimm_mt_s.value, 2400); /* configured, not what the DIMM could do */
    assert_int_equal(m.dimm_ranks.value, 2);
    import_machine_release(&m);
}

static void test_numactl(void **state)
{
    struct import_machine m;
    (void)state;
    read_server(&m, "numactl.txt");
    assert_int_equal(m.nodes.value, 2);
    assert_true(m.node_bytes.value == UINT64_C(32253) << 20);
    assert_int_equal(m.node_bytes.line, 6);
    import_machine_release(&m);
}

/* A node is one of a socket if it has processors, with or without memory. */
static void test_numactl_nodes(void **state)
{
    static const struct {
        const char *text;
        unsigned nodes, gib;
    } cases[] = {
        { "available: 2 nodes (0-1)\nnode 0 cpus: 0 2 4\nnode 0 size: 65536 MB\n"
          "node 1 cpus: 1 3 5\nnode 1 size: 0 MB\n",
          2, 64 }, /* no modules in one socket */
        { "available: 3 nodes (0-2)\nnode 0 cpus: 0 2 4\nnode 0 size: 65536 MB\n"
          "node 1 cpus: 1 3 5\nnode 1 size: 65536 MB\nnode 2 cpus:\nnode 2 size: 131072 MB\n",
          2, 64 }, /* memory of a device */
        { "available: 1 nodes (0)\nnode 0 cpus: 0 1 2 3 4 5\nnode 0 size: 131072 MB\n", 1, 128 },
        { "available: 2 nodes (0-1)\nnode 0 size: 1024 MB\nnode 1 size: 1024 MB\n", 2, 1 },
    };
    (void)state;
    for (size_t i = 0; i < SIM_N_ELEMENTS(cases); i++) {
        struct import_machine m;
        struct sim_error_list errors = { 0 };
        import_machine_init(&m);
        read_text(&m, cases[i].text, &errors);
        assert_int_equal(errors.n_messages, 0);
        assert_int_equal(m.nodes.value, cases[i].nodes);
        assert_true(m.node_bytes.value == (uint64_t)cases[i].gib << 30);
        import_machine_release(&m);
    }
}

/* ---- Damage ---------------------------------------------------------------------------------- */

static void expect_mistake(const char *text, const char *line, const char *words)
{
    struct import_machine m;
    struct sim_error_list errors = { 0 };
    import_machine_init(&m);
    read_text(&m, text, &errors);
    g_autofree char *all = sim_error_join(&errors);
    if (errors.n_messages == 0 || strstr(all, line) == NULL || strstr(all, words) == NULL)
        fail_msg("expected \"%s\" and \"%s\" in \"%s\"", line, words, all);
    sim_error_release(&errors);
    import_machine_release(&m);
}

/* Linux numbers 1024 nodes at most; what is more is told once, whatever is shown of it. */
static void test_numactl_node_numbers(void **state)
{
    static const char *const numbers[] = { "1024", "4095", "4294967296", "99999999999999999999" };
    static const char *const shown[] = { "node %s cpus: 0 2\n", "node %s cpus:\n",
                                         "node %s size: 65536 MB\n",
                                         "node %s cpus: 0 2\nnode %s size: 65536 MB\n" };
    (void)state;
    for (size_t i = 0; i < SIM_N_ELEMENTS(numbers); i++)
        for (size_t k = 0; k < SIM_N_ELEMENTS(shown); k++) {
            g_autoptr(GString) text = g_string_new("available: 2 nodes (0-1)\n"
                                                   "node 0 cpus: 1 3\nnode 0 size: 65536 MB\n");
            g_autofree char *found = g_strdup_printf(".txt:4: found \"node %s ", numbers[i]);
            g_string_append(text, shown[k]);
            g_string_replace(text, "%s", numbers[i], 0);
            expect_mistake(text->str, found, "expected a node of 0 to 1023, as Linux has");
            struct import_machine m;
            struct sim_error_list errors = { 0 };
            import_machine_init(&m);
            read_text(&m, text->str, &errors);
            assert_int_equal(errors.n_messages, 1);
            sim_error_release(&errors);
            import_machine_release(&m);
        }
}

static void test_mistakes(void **state)
{
    (void)state;
    expect_mistake("available: 1 nodes (0)\nnode 0 size: many MB\n", ".txt:2: found \"node 0 size",
                   "expected \"node 0 size: 64324 MB\"");
    expect_mistake("hello\n", ".txt:1: found \"hello\"", "expected what lspci -vvv");
    expect_mistake("", ".txt:1: ", "expected what lspci -vvv");
    expect_mistake("00:00.0 Host bridge: a\nwhat is this\n", ".txt:2: found \"what is this\"",
                   "expected a function");
    expect_mistake("00:00.0 Host bridge: a\n00:00.0 Host bridge: a\n",
                   ".txt:2: ", "several servers");
    expect_mistake("00:00.0 Host bridge: a\n\t\tLnkCap:\tPort #0, Speed 8GT/s, Wi\n",
                   ".txt:2: ", "\"Speed 8GT/s, Width x8\"");
    expect_mistake("00:00.0 Host bridge: a\n\t\tDevCap:\tMaxPayload 300 bytes, PhantFunc 0\n",
                   ".txt:2: ", "a power of two");
    expect_mistake("00:00.0 PCI bridge: a\n\tBus: primary=00\n", ".txt:2: ", "secondary=02");
    expect_mistake("00:00.0 0604: 8086:2030\n00: 86 80 30\n",
                   ".txt:2: ", "16 bytes in hexadecimal");
    expect_mistake("<?xml version=\"1.0\"?>\n<topology>\n<object type=\"Machine\">\n",
                   ".txt:4: ", "no XML");
    expect_mistake("<?xml version=\"1.0\"?>\n<svg/>\n", ".txt:2: ", "expected topology");
    expect_mistake("<topology>\n<object type=\"PCIDev\" pci_busid=\"x\"/>\n</topology>\n",
                   ".txt:2: ", "pci_busid: found \"x\"");
    expect_mistake("Machine (63GB total)\n", ".txt:1: ", "found no core");
    expect_mistake("# dmidecode 3.1\nHandle 0x1, DMI\n", ".txt:2: ", "DMI type 4");
    expect_mistake("Handle 0x0010, DMI type 17, 84 bytes\nMemory Device\n\tSize: 16 parsecs\n",
                   ".txt:3: found \"16 parsecs\"", "16384 MB");
    expect_mistake("available: 1 nodes (0)\nnode 0 size: lots\n", ".txt:2: ", "64324 MB");
}

/* Any beginning of any file is read or refused, and nothing else happens. */
static void test_truncated(void **state)
{
    static const char *const files[] = { "lspci.txt", "lstopo.xml", "lstopo.txt", "dmidecode.txt",
                                         "numactl.txt" };
    static void (*const readers[])(struct import_machine *, const char *, const char *,
                                   struct sim_error_list *) = {
        import_lspci, import_hwloc_xml, import_hwloc_text, import_dmidecode, import_numactl,
    };
    (void)state;
    for (size_t i = 0; i < SIM_N_ELEMENTS(files); i++) {
        g_autofree char *path = g_strconcat(SERVER, files[i], NULL), *text = NULL;
        gsize bytes;
        assert_true(g_file_get_contents(path, &text, &bytes, NULL));
        for (gsize n = bytes; n > 0; n -= MIN(n, 37)) {
            struct import_machine m;
            struct sim_error_list errors = { 0 };
            import_machine_init(&m);
            text[n - 1] = '\0';
            readers[i](&m, "truncated", text, &errors);
            sim_error_release(&errors);
            import_machine_release(&m);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lspci),
        cmocka_unit_test(test_config_space),
        cmocka_unit_test(test_without_privilege),
        cmocka_unit_test(test_hwloc),
        cmocka_unit_test(test_hwloc_1),
        cmocka_unit_test(test_dmidecode),
        cmocka_unit_test(test_numactl),
        cmocka_unit_test(test_numactl_nodes),
        cmocka_unit_test(test_numactl_node_numbers),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_truncated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
