/* Names of PCI functions in scenarios. */
#include "workloads/setup/function_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hw/pci_regs.h"
#include "models/pcie/endpoint/pcie_function.h"

#define NAME_BYTES 128u

static const struct pcie_function *function_at(const struct model *model, unsigned pf)
{
    return pf < model->n_ports ? model->ports[pf].function : NULL;
}

unsigned function_total_vfs(const struct model *model, unsigned pf)
{
    const struct pcie_function *function = function_at(model, pf);
    return function != NULL ? function->n_vfs : 0;
}

uint16_t function_vf_device_id(const struct model *model, unsigned pf)
{
    const struct pcie_function *function = function_at(model, pf);
    return (uint16_t)cfg_read(&function->cfg, function->cfg.sriov_cap + PCI_SRIOV_VF_DEVICE_ID, 2);
}

unsigned function_pf(const struct function_name *f)
{
    return f->pf >= 0 ? (unsigned)f->pf : 0;
}

/* A number behind `prefix` at *at, which goes on behind it; -1: there is none. */
static int number(const char **at, const char *prefix)
{
    const size_t n = strlen(prefix);
    char *end;
    if (strncmp(*at, prefix, n) != 0 || (*at)[n] < '0' || (*at)[n] > '9')
        return -1;
    const unsigned long value = strtoul(*at + n, &end, 10);
    if (value > 9999 || ((*at)[n] == '0' && end != *at + n + 1))
        return -1;
    *at = end;
    return (int)value;
}

/* The device that the name begins with; false: the name is too long for one. */
static bool device_part(const char *name, char device[NAME_BYTES])
{
    const size_t n = strcspn(name, ".");
    if (n >= NAME_BYTES)
        return false;
    memcpy(device, name, n);
    device[n] = '\0';
    return true;
}

/* The name's definition in the group `functions`; NULL: there is none. */
static struct config_node *definition(const struct world *world, const char *name)
{
    struct config_node *group = config_find(config_root(world_config(world)), "functions");
    return group != NULL && config_kind(group) == CONFIG_GROUP ? config_find(group, name) : NULL;
}

/* What the name stands for; itself, if it is not defined. */
static const char *meaning(const struct world *world, const char *name)
{
    const struct config_node *node = definition(world, name);
    return node != NULL && config_kind(node) == CONFIG_STRING ? config_string(node) : name;
}

static bool find(struct world *world, const char *name, struct function_name *f)
{
    char device[NAME_BYTES];
    if (!device_part(name, device))
        return false;
    const char *at = name + strlen(device);
    *f = (struct function_name){ .model = world_device(world, device) };
    if (f->model == NULL)
        return false;
    f->pf = number(&at, ".pf");
    f->vf = number(&at, ".vf");
    if (*at != '\0' || (f->pf >= 0 && function_at(f->model, (unsigned)f->pf) == NULL))
        return false;
    return f->vf < 0 || (unsigned)f->vf < function_total_vfs(f->model, function_pf(f));
}

bool function_find(struct world *world, const char *name, struct function_name *f)
{
    return find(world, meaning(world, name), f);
}

bool function_faulty(struct world *world, const char *name)
{
    char device[NAME_BYTES];
    struct function_name f;
    if (definition(world, name) != NULL && world_device(world, name) == NULL &&
        !function_find(world, name, &f))
        return true; /* function_check_names() reports it */
    return device_part(meaning(world, name), device) && world_faulty(world, device);
}

const char *function_expected(struct world *world, const char *name, const char *expected,
                              char text[FUNCTION_TEXT_BYTES])
{
    const struct config_node *node = definition(world, name);
    if (node != NULL && config_kind(node) == CONFIG_STRING)
        snprintf(text, FUNCTION_TEXT_BYTES, "%.240s (%.40s stands for \"%.60s\")", expected,
                 config_path(node), config_string(node));
    else if (strchr(name, '.') == NULL && world_device(world, name) == NULL)
        snprintf(text, FUNCTION_TEXT_BYTES, "%.240s, or a name that the group `functions` defines",
                 expected);
    else
        return expected;
    return text;
}

bool function_shares_pf(const struct function_name *a, const struct function_name *b)
{
    return a->model == b->model && function_pf(a) == function_pf(b);
}

bool function_same(const struct function_name *a, const struct function_name *b)
{
    return function_shares_pf(a, b) && a->vf == b->vf;
}

/* ---- Names for messages ---------------------------------------------------------------------- */

static void add_name(const char ***names, unsigned *n, const char *name)
{
    const size_t bytes = strlen(name) + 1;
    *names = sim_grow(*names, *n + 2, sizeof(**names));
    (*names)[*n] = memcpy(sim_zalloc(bytes, 1), name, bytes);
    (*names)[++*n] = NULL;
}

static void add_functions(const char ***names, unsigned *n, const struct model *model,
                          const char *device)
{
    char pf_name[NAME_BYTES], name[NAME_BYTES + 16];
    const bool several = function_at(model, 1) != NULL;
    for (unsigned pf = 0; function_at(model, pf) != NULL; pf++) {
        if (several)
            snprintf(pf_name, sizeof(pf_name), "%.100s.pf%u", device, pf);
        else
            snprintf(pf_name, sizeof(pf_name), "%.100s", device);
        if (several)
            add_name(names, n, pf_name);
        for (unsigned vf = 0; vf < function_total_vfs(model, pf); vf++) {
            snprintf(name, sizeof(name), "%s.vf%u", pf_name, vf);
            add_name(names, n, name);
        }
    }
}

const char **function_names(struct world *world)
{
    const char *const *devices = world_device_names(world);
    const char **names = sim_zalloc(1, sizeof(*names));
    unsigned n = 0;
    for (unsigned i = 0; devices[i] != NULL; i++) {
        const struct model *model = world_device(world, devices[i]);
        add_name(&names, &n, devices[i]);
        if (model != NULL)
            add_functions(&names, &n, model, devices[i]);
    }
    return names;
}

void function_names_free(const char **names)
{
    for (unsigned i = 0; names[i] != NULL; i++)
        free((char *)(uintptr_t)names[i]);
    free(names);
}

void function_check_names(struct world *world, struct sim_error_list *errors)
{
    struct config_node *group = config_get(config_root(world_config(world)), "functions");
    const char **names = function_names(world);
    struct function_name f;
    if (group != NULL && config_kind(group) != CONFIG_GROUP) {
        config_mistake(group, errors, "a group of names, { NAME = \"DEVICE.vf0\"; }", NULL);
        config_mark_read(group);
        group = NULL;
    }
    for (unsigned i = 0; group != NULL && i < config_count(group); i++) {
        struct config_node *node = config_get(group, config_name(config_child(group, i)));
        if (world_device(world, config_name(node)) != NULL)
            config_mistake(node, errors, "a name that no device has", NULL);
        else if (config_kind(node) != CONFIG_STRING)
            config_mistake(node, errors, "the name of a device or of a function of one", names);
        else if (world_sound(world) && !find(world, config_string(node), &f))
            config_mistake(node, errors, "a device, or a function of one", names);
    }
    function_names_free(names);
}
