/* Which model a device gets, and which family a processor: by numbers, else by name. */
#include <string.h>

#include "cli/import/plan.h"

/* ---- Devices --------------------------------------------------------------------------------- */

#define ANY IMPORT_NO_CLASS

/* The first that fits: devices that scenarios/devices/ knows, then classes that a model is of, then
 * what any adapter does, which is to read and write memory. */
static const struct import_profile profiles[] = {
    { 0x19ee, 0x3200, 0x3200, "Device 3200", 0x0200, "nfp", "pcie.requester", NULL, false },
    { 0x19ee, 0x4000, 0x6fff, "Netronome", 0x0200, "nfp", "pcie.requester", "devices/nfp6000.cfg",
      false },
    { 0x15b3, 0x1017, 0x101a, "ConnectX-5", 0x0207, "rdma", "rdma.adapter",
      "devices/connectx5_edr.cfg", false },
    { 0x15b3, 0x1017, 0x101a, "ConnectX-5", 0x0200, "nic", "nic.ethernet", "devices/connectx5.cfg",
      false },
    { 0x15b3, 0x1013, 0x1016, "ConnectX-4", 0x0200, "nic", "nic.ethernet",
      "devices/connectx4_x16.cfg", false },
    { 0x14c1, 0x0008, 0x0008, "Myri-10G", ANY, "nic", "myri.myri10g", "devices/myri10g.cfg",
      false },
    { 0x144d, 0xa822, 0xa822, "PM1725a", 0x0108, "nvme", "nvme.controller", "devices/pm1725a.cfg",
      false },
    { 0x8086, 0x2701, 0x2701, "Optane", 0x0108, "nvme", "nvme.controller", "devices/p4800x.cfg",
      false },
    { 0x10de, 0x1022, 0x1024, "Tesla K40", ANY, "gpu", "gpu.cuda", "devices/k40.cfg", false },
    { 0x10de, 0x1bb1, 0x1bb1, "Quadro P4000", ANY, "gpu", "gpu.cuda", "devices/p4000.cfg", false },
    { 0x10de, 0x1cb6, 0x1cb6, "Quadro P620", ANY, "gpu", "gpu.cuda", "devices/p620.cfg", false },
    { 0x8086, 0x6f20, 0x6f2f, "Crystal Beach DMA", 0x0880, "ioat", "ioat.engine",
      "devices/ioat_bdx.cfg", true },
    { 0x8086, 0x2021, 0x2021, "CBDMA", 0x0880, "ioat", "ioat.engine", "devices/ioat_skx.cfg",
      true },
    { 0x8086, 0x0b25, 0x0b25, "Data Streaming", 0x0880, "dsa", "dsa.accelerator",
      "devices/dsa_spr.cfg", true },
    { 0, 0, 0, NULL, 0x0108, "nvme", "nvme.controller", NULL, false },
    { 0, 0, 0, NULL, 0x0200, "nic", "nic.ethernet", NULL, false },
    { 0, 0, 0, NULL, 0x0207, "rdma", "rdma.adapter", NULL, false },
    { 0, 0, 0, NULL, 0x0c06, "rdma", "rdma.adapter", NULL, false },
    { 0x10de, 0x0000, 0xffff, "NVIDIA", 0x0300, "gpu", "gpu.cuda", NULL, false },
    { 0x10de, 0x0000, 0xffff, "NVIDIA", 0x0302, "gpu", "gpu.cuda", NULL, false },
    { 0, 0, 0, NULL, 0x0104, "raid", "pcie.requester", NULL, false },
    { 0, 0, 0, NULL, 0x0107, "sas", "pcie.requester", NULL, false },
    { 0, 0, 0, NULL, ANY, "adapter", "pcie.requester", NULL, false },
};

static bool fits(const struct import_profile *p, const struct import_function *f)
{
    if (p->class_code != ANY && p->class_code != f->class_code)
        return false;
    if (p->vendor_id == 0)
        return true;
    if (f->vendor_id != 0)
        return f->vendor_id == p->vendor_id && f->device_id >= p->first_id &&
               f->device_id <= p->last_id;
    return strstr(f->text, p->text) != NULL;
}

const struct import_profile *import_profile_of(const struct import_function *function)
{
    for (size_t i = 0; i < SIM_N_ELEMENTS(profiles); i++)
        if (fits(&profiles[i], function))
            return &profiles[i];
    return NULL; /* the last one fits all */
}

/* ---- Families -------------------------------------------------------------------------------- */

/* A processor generation of Intel's by family and model of CPUID, or by what lspci calls its root
 * ports. */
struct generation {
    const char *name;          /* for messages */
    unsigned family, model[4]; /* 0: no more */
    const char *text[3];       /* in names of processor or host bridge; NULL: no more */
    unsigned pcie;
    const char *families[5]; /* the nearest first */
};

static const struct generation generations[] = {
    { "Sapphire Rapids",
      6,
      { 143, 207 },
      { "Sapphire Rapids" },
      5,
      { "sapphire_rapids", "skylake_sp" } },
    { "Ice Lake-SP", 6, { 106, 108 }, { "Ice Lake" }, 4, { "ice_lake_sp", "skylake_sp" } },
    { "Skylake-SP", 6, { 85 }, { "Sky Lake-E", "Skylake-E" }, 3, { "skylake_sp", "broadwell_ep" } },
    { "Broadwell-EP", 6, { 79, 86 }, { "Xeon E5 v4" }, 3, { "broadwell_ep" } },
    { "Haswell-EP", 6, { 63 }, { "Haswell-E", "Xeon E5 v3" }, 3, { "haswell_ep", "broadwell_ep" } },
    { "Ivy Bridge-EP",
      6,
      { 62 },
      { "Xeon E5 v2" },
      3,
      { "ivy_bridge", "ivy_bridge_ep", "sandy_bridge", "haswell_ep", "broadwell_ep" } },
    { "Sandy Bridge-EP",
      6,
      { 45 },
      { "Sandy Bridge", "Xeon E5/Core i7" },
      3,
      { "sandy_bridge", "sandy_bridge_ep", "ivy_bridge", "haswell_ep", "broadwell_ep" } },
    { "Nehalem or Westmere",
      6,
      { 26, 44, 46, 47 },
      { "5520/5500/X58", "X58 I/O Hub" },
      2,
      { "sandy_bridge", "ivy_bridge", "haswell_ep", "broadwell_ep" } },
    { "Core 2", 6, { 15, 23, 29 }, { "5000X", "5400 Chipset" }, 1, { "core2" } },
    { "NetBurst", 15, { 4, 6 }, { "Dempsey" }, 1, { "netburst", "core2" } },
};

static bool names(const struct generation *g, const char *text)
{
    for (size_t i = 0; i < SIM_N_ELEMENTS(g->text) && g->text[i] != NULL; i++)
        if (text != NULL && strstr(text, g->text[i]) != NULL)
            return true;
    return false;
}

/* By the processor's own numbers; NULL: unknown. */
static const struct generation *generation_by_number(const struct import_machine *m)
{
    for (size_t i = 0; import_known(&m->cpu_family) && i < SIM_N_ELEMENTS(generations); i++) {
        const struct generation *g = &generations[i];
        for (int n = 0; n < 4 && g->model[n] != 0; n++)
            if (m->cpu_family.value == g->family && m->cpu_model.value == g->model[n])
                return g;
    }
    return NULL;
}

/* By the names of bridges, of which *at is the first that tells. */
static const struct generation *generation_by_bridge(const struct import_machine *m,
                                                     const struct import_function **at)
{
    for (size_t i = 0; i < SIM_N_ELEMENTS(generations); i++) {
        for (guint f = 0; f < m->functions->len; f++) {
            const struct import_function *function = m->functions->pdata[f];
            const bool bridge = function->class_code == 0x0600 || function->class_code == 0x0604;
            if (!bridge || !names(&generations[i], function->text))
                continue;
            *at = function;
            return &generations[i];
        }
    }
    return NULL;
}

static const struct generation *generation_of(const struct import_machine *m)
{
    const struct generation *g = generation_by_number(m);
    const struct import_function *at;
    for (size_t i = 0;
         g == NULL && !import_known(&m->cpu_family) && i < SIM_N_ELEMENTS(generations); i++)
        if (names(&generations[i], m->cpu_name))
            return &generations[i];
    return g != NULL || import_known(&m->cpu_family) ? g : generation_by_bridge(m, &at);
}

void import_check_generation(const struct import_machine *machine, struct sim_error_list *errors)
{
    const struct import_function *at = NULL;
    const struct generation *number = generation_by_number(machine);
    const struct generation *bridge = generation_by_bridge(machine, &at);
    if (number != NULL && bridge != NULL && number != bridge)
        sim_error_add(
            errors, at->file, (int)at->line,
            "%02x:%02x.%x is of %s, but %s:%u has a processor of %s; the files are of two "
            "machines",
            at->bus, at->device, at->function, bridge->name, machine->cpu_model.file,
            machine->cpu_model.line, number->name);
}

/* Intel's data sheets of the fastest parts (ark.intel.com; docs/platforms.md). */
void import_family_rates(const char *family, double *dram_mt_s, double *link_gt_s)
{
    static const struct {
        const char *family;
        double dram_mt_s, link_gt_s;
    } rates[] = {
        { "sapphire_rapids", 4800, 16.0 },
        { "skylake_sp", 2666, 10.4 },
        { "broadwell_ep", 2400, 9.6 },
        { "haswell_ep", 2133, 9.6 },
        { "ivy_bridge", 1866, 8.0 },
        { "sandy_bridge", 1600, 8.0 },
        { "core2", 666.67, 0 },
        { "netburst", 533.33, 0 },
    };
    *dram_mt_s = *link_gt_s = 0.0;
    for (size_t i = 0; i < SIM_N_ELEMENTS(rates); i++) {
        if (strcmp(rates[i].family, family) == 0) {
            *dram_mt_s = rates[i].dram_mt_s;
            *link_gt_s = rates[i].link_gt_s;
        }
    }
}

static bool exists(const char *const *roots, const char *file)
{
    for (; *roots != NULL; roots++) {
        g_autofree char *path = g_build_filename(*roots, file, NULL);
        if (g_file_test(path, G_FILE_TEST_IS_REGULAR))
            return true;
    }
    return false;
}

char *import_family_file(const char *const *roots, const char *family, const char *group)
{
    char *own = g_strdup_printf("families/%s/%s.cfg", family, group);
    if (exists(roots, own))
        return own;
    g_free(own);
    /* the chip set of processors with a front-side bus is a family of its own */
    const bool bus = strcmp(family, "core2") == 0 || strcmp(family, "netburst") == 0;
    char *hub = g_strdup_printf("families/intel_5000/%s.cfg", group);
    if (bus && exists(roots, hub))
        return hub;
    g_free(hub);
    return NULL;
}

unsigned import_pcie_generation(const struct import_machine *machine)
{
    const struct generation *g = generation_of(machine);
    return g != NULL ? g->pcie : 3;
}

static bool has_family(const struct import_choice *choice, const char *family)
{
    g_autofree char *file = family != NULL ? import_family_file(choice->roots, family, "cpu")
                                           : NULL;
    return file != NULL;
}

/* The names of folders below families/ that hold a processor. */
static GPtrArray *list_families(const char *const *roots)
{
    GPtrArray *list = g_ptr_array_new_with_free_func(g_free);
    for (; *roots != NULL; roots++) {
        g_autofree char *folder = g_build_filename(*roots, "families", NULL);
        GDir *dir = g_dir_open(folder, 0, NULL);
        for (const char *name; dir != NULL && (name = g_dir_read_name(dir)) != NULL;) {
            g_autofree char *cpu = g_build_filename(folder, name, "cpu.cfg", NULL);
            if (g_file_test(cpu, G_FILE_TEST_IS_REGULAR))
                g_ptr_array_add(list, g_strdup(name));
        }
        if (dir != NULL)
            g_dir_close(dir);
    }
    g_ptr_array_add(list, NULL);
    return list;
}

const char *import_family_of(const struct import_machine *m, const struct import_choice *choice,
                             GPtrArray *notes, struct sim_error_list *errors)
{
    if (choice->family != NULL) {
        if (has_family(choice, choice->family))
            return choice->family;
        g_autoptr(GPtrArray) list = list_families(choice->roots);
        g_autofree char *hint = sim_suggestion(choice->family, (const char *const *)list->pdata);
        sim_error_add(errors, NULL, 0, "--family %s: no such family%s%s", choice->family,
                      *hint != '\0' ? "; " : "", hint);
        return NULL;
    }
    const struct generation *g = generation_of(m);
    for (size_t i = 0; g != NULL && i < SIM_N_ELEMENTS(g->families) && g->families[i] != NULL;
         i++) {
        if (!has_family(choice, g->families[i]))
            continue;
        if (i > 0 || strcmp(g->name, "Nehalem or Westmere") == 0)
            g_ptr_array_add(notes,
                            g_strdup_printf("%s has no family of its own: families/%s is the "
                                            "nearest",
                                            g->name, g->families[i]));
        return g->families[i];
    }
    if (g == NULL && has_family(choice, "broadwell_ep")) {
        g_ptr_array_add(notes,
                        g_strdup_printf("%s%sis none of the processors that there are families of: "
                                        "families/broadwell_ep stands in (--family chooses)",
                                        m->cpu_name != NULL ? m->cpu_name : "the processor",
                                        m->cpu_name != NULL ? " " : " is not named and "));
        return "broadwell_ep";
    }
    sim_error_add(errors, NULL, 0, "no families/ in the scenarios folders (--scenarios DIR)");
    return NULL;
}
