/* What several files say of one machine: the first that has a fact counts; those that contradict it
 * are of another machine. */
#include <string.h>

#include "cli/import/plan.h"

#define FACT(FIELD, NAME)                            \
    {                                                \
        offsetof(struct import_machine, FIELD), NAME \
    }

static const struct {
    size_t offset;
    const char *name; /* of one that has to be alike in all files; NULL: tools count differently */
} facts[] = {
    FACT(cpu_family, "the processor's family"),
    FACT(cpu_model, "the processor's model"),
    FACT(sockets, "processors"),
    FACT(cores, "cores"),
    FACT(nodes, "NUMA nodes"),
    FACT(threads, NULL),
    FACT(name_clock_mhz, NULL),
    FACT(clock_mhz, NULL),
    FACT(interconnect_mt_s, NULL),
    FACT(l1_bytes, NULL),
    FACT(l1_ways, NULL),
    FACT(l2_bytes, NULL),
    FACT(l2_ways, NULL),
    FACT(l2_cores, NULL),
    FACT(l3_bytes, NULL),
    FACT(l3_ways, NULL),
    FACT(l3_caches, NULL),
    FACT(node_bytes, NULL),
    FACT(dimms, NULL),
    FACT(dimm_total_bytes, NULL),
    FACT(dimm_mt_s, NULL),
    FACT(dimm_ranks, NULL),
};

static struct import_fact *fact_at(struct import_machine *machine, size_t offset)
{
    return (struct import_fact *)(void *)((char *)machine + offset);
}

static void merge_facts(struct import_machine *machine, struct import_machine *other,
                        struct sim_error_list *errors)
{
    for (size_t i = 0; i < SIM_N_ELEMENTS(facts); i++) {
        struct import_fact *known = fact_at(machine, facts[i].offset);
        const struct import_fact *said = fact_at(other, facts[i].offset);
        if (!import_known(said))
            continue;
        if (import_known(known) && facts[i].name != NULL && known->value != said->value)
            sim_error_add(errors, said->file, (int)said->line,
                          "%s: found %" G_GUINT64_FORMAT ", but %s:%u has %" G_GUINT64_FORMAT
                          "; the files are of two machines",
                          facts[i].name, said->value, known->file, known->line, known->value);
        import_fact_set(known, said->value, said->file, said->line);
    }
}

/* The word that tells processors of a family apart, "E5-2630", "4110"; NULL: there is none. */
static char *number_of(const char *cpu_name)
{
    g_auto(GStrv) words = g_strsplit(cpu_name, " ", -1);
    for (char **word = words; *word != NULL; word++) {
        unsigned digits = 0;
        for (const char *c = *word; *c != '\0'; c++)
            digits += g_ascii_isdigit(*c) != 0;
        if (digits >= 4)
            return g_strdup(*word);
    }
    return NULL;
}

static void merge_names(struct import_machine *machine, struct import_machine *other,
                        struct sim_error_list *errors)
{
    if (machine->product == NULL)
        machine->product = g_steal_pointer(&other->product);
    if (machine->cpu_name != NULL && other->cpu_name != NULL) {
        g_autofree char *a = number_of(machine->cpu_name), *b = number_of(other->cpu_name);
        if (a != NULL && b != NULL && strcmp(a, b) != 0)
            sim_error_add(errors, NULL, 0, "found \"%s\" and \"%s\"; the files are of two machines",
                          machine->cpu_name, other->cpu_name);
    }
    if (machine->cpu_name == NULL)
        machine->cpu_name = g_steal_pointer(&other->cpu_name);
}

/* The function of the machine at the same address; NULL: there is none. */
static const struct import_function *same_address(const struct import_machine *machine,
                                                  const struct import_function *f)
{
    for (guint i = 0; i < machine->functions->len; i++) {
        const struct import_function *known = machine->functions->pdata[i];
        if (known->domain == f->domain && known->bus == f->bus && known->device == f->device &&
            known->function == f->function)
            return known;
    }
    return NULL;
}

static void check_functions(const struct import_machine *machine, struct import_machine *other,
                            struct sim_error_list *errors)
{
    if (machine->lspci != NULL && other->lspci != NULL) {
        sim_error_add(errors, other->lspci, 0,
                      "a second output of lspci, beside %s; expected one, that says most (-vvv)",
                      machine->lspci);
        return;
    }
    for (guint i = 0; i < other->functions->len; i++) {
        const struct import_function *f = other->functions->pdata[i];
        const struct import_function *known = same_address(machine, f);
        if (known == NULL || known->vendor_id == 0 || f->vendor_id == 0 ||
            (known->vendor_id == f->vendor_id && known->device_id == f->device_id))
            continue;
        sim_error_add(
            errors, f->file, (int)f->line,
            "%02x:%02x.%x: found %04x:%04x, but %s:%u has %04x:%04x; the files are of two "
            "machines",
            f->bus, f->device, f->function, f->vendor_id, f->device_id, known->file, known->line,
            known->vendor_id, known->device_id);
        return; /* one will do */
    }
}

/* What modules hold is more than what the kernel has. */
static void check_memory(const struct import_machine *machine, struct sim_error_list *errors)
{
    const struct import_fact *dimms = &machine->dimm_total_bytes, *node = &machine->node_bytes;
    if (import_known(dimms) && import_known(node) && node->value > dimms->value)
        sim_error_add(errors, node->file, (int)node->line,
                      "a node of %" G_GUINT64_FORMAT
                      " MiB, but %s:%u has modules of %" G_GUINT64_FORMAT
                      " MiB; the files are of two machines",
                      node->value >> 20, dimms->file, dimms->line, dimms->value >> 20);
}

void import_merge(struct import_machine *machine, struct import_machine *other,
                  struct sim_error_list *errors)
{
    const size_t before = errors->n_messages;
    merge_facts(machine, other, errors);
    merge_names(machine, other, errors);
    check_functions(machine, other, errors);
    if (errors->n_messages == before)
        check_memory(machine, errors);
    for (guint i = 0; i < other->functions->len; i++)
        g_ptr_array_add(machine->functions, other->functions->pdata[i]);
    g_ptr_array_set_free_func(other->functions, NULL);
    g_ptr_array_set_size(other->functions, 0);
    if (machine->lspci == NULL)
        machine->lspci = other->lspci;
    if (errors->n_messages == before)
        import_check_generation(machine, errors);
}
