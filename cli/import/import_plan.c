/* From PCI functions to root ports, switches and devices, by the buses behind bridges. */
#include "cli/import/plan.h"

#include <string.h>

#include "models/pcie/root/root_complex.h"

#define DEPTH_MAX     16
#define FUNCTIONS_MAX 8192

struct planner {
    struct import_plan *plan;
    GPtrArray *functions; /* struct import_function, by address; not owned */
    const char *host;
    struct sim_error_list *errors;
    GHashTable *names; /* of kinds of devices -> how many */
    unsigned n_chipset;
    unsigned n_buses; /* a power of two: firmware divides them among sockets */
};

static void note(const struct import_plan *plan, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void note(const struct import_plan *plan, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    g_ptr_array_add(plan->notes, g_strdup_vprintf(fmt, args));
    va_end(args);
}

/* ---- Functions by address -------------------------------------------------------------------- */

static gint by_address(gconstpointer a, gconstpointer b)
{
    const struct import_function *x = *(struct import_function *const *)a;
    const struct import_function *y = *(struct import_function *const *)b;
    const unsigned p[4] = { x->domain, x->bus, x->device, x->function };
    const unsigned q[4] = { y->domain, y->bus, y->device, y->function };
    for (int i = 0; i < 4; i++)
        if (p[i] != q[i])
            return p[i] < q[i] ? -1 : 1;
    return 0;
}

/* Those of lspci if there are any, with the nodes that hwloc knows. */
static GPtrArray *choose_functions(const struct import_machine *m)
{
    GPtrArray *chosen = g_ptr_array_new();
    bool lspci = false;
    for (guint i = 0; i < m->functions->len; i++)
        lspci = lspci || !((struct import_function *)m->functions->pdata[i])->from_hwloc;
    for (guint i = 0; i < m->functions->len; i++) {
        struct import_function *f = m->functions->pdata[i];
        if (lspci && f->from_hwloc)
            continue;
        for (guint k = 0; f->node < 0 && k < m->functions->len; k++) {
            const struct import_function *other = m->functions->pdata[k];
            if (by_address(&f, &other) == 0)
                f->node = other->node;
        }
        g_ptr_array_add(chosen, f);
    }
    g_ptr_array_sort(chosen, by_address);
    return chosen;
}

static bool is_on(const struct import_function *f, const struct import_function *bridge)
{
    return f->domain == bridge->domain && f->bus == bridge->secondary && bridge->secondary != 0;
}

static const struct import_function *bridge_to(const struct planner *p,
                                               const struct import_function *f)
{
    for (guint i = 0; i < p->functions->len; i++) {
        const struct import_function *bridge = p->functions->pdata[i];
        if (bridge != f && bridge->bridge && is_on(f, bridge))
            return bridge;
    }
    return NULL;
}

/* The functions on the bus behind the bridge. */
static GPtrArray *behind(const struct planner *p, const struct import_function *bridge)
{
    GPtrArray *found = g_ptr_array_new();
    for (guint i = 0; i < p->functions->len; i++)
        if (p->functions->pdata[i] != bridge && is_on(p->functions->pdata[i], bridge))
            g_ptr_array_add(found, p->functions->pdata[i]);
    return found;
}

/* ---- Devices --------------------------------------------------------------------------------- */

static struct import_device *add_device(struct planner *p, const struct import_function *f,
                                        const char *kind, const char *from)
{
    struct import_device *device = g_new0(struct import_device, 1);
    const unsigned n = GPOINTER_TO_UINT(g_hash_table_lookup(p->names, kind));
    device->function = f;
    device->n_functions = 1;
    device->name = g_strdup_printf("%s%u", kind, n);
    device->from = g_strdup(from);
    device->below = g_ptr_array_new();
    g_hash_table_insert(p->names, (gpointer)(uintptr_t)kind, GUINT_TO_POINTER(n + 1));
    g_ptr_array_add(p->plan->devices, device);
    return device;
}

/* Without capabilities a switch is known by the bridges behind its upstream port. */
static bool is_switch(const struct planner *p, const struct import_function *f)
{
    if (f->kind != IMPORT_UNKNOWN || p->plan->root)
        return f->kind == IMPORT_UPSTREAM;
    g_autoptr(GPtrArray) below = behind(p, f);
    bool bridges = below->len > 0;
    for (guint i = 0; i < below->len; i++)
        bridges = bridges && ((struct import_function *)below->pdata[i])->bridge;
    return f->bridge && bridges;
}

static void hang(struct planner *p, const struct import_function *port, const char *from,
                 unsigned depth);

static void add_switch(struct planner *p, const struct import_function *f,
                       const struct import_function *above, const char *from, unsigned depth)
{
    struct import_device *device = add_device(p, f, "sw", from);
    device->above = above;
    g_ptr_array_free(device->below, TRUE);
    device->below = behind(p, f);
    for (guint i = 0; i < device->below->len; i++) {
        const struct import_function *port = device->below->pdata[i];
        g_autofree char *end = g_strdup_printf("%s.p%u", device->name, i + 1);
        if (port->bridge)
            hang(p, port, end, depth + 1);
    }
}

/* What is behind a root port or a downstream port: one device, as PCI Express has it. */
static void hang(struct planner *p, const struct import_function *port, const char *from,
                 unsigned depth)
{
    g_autoptr(GPtrArray) below = behind(p, port);
    if (below->len == 0)
        return;
    const struct import_function *first = below->pdata[0];
    if (depth > DEPTH_MAX) {
        sim_error_add(
            p->errors, port->file, (int)port->line,
            "%02x:%02x.%x: found more than %d bridges one behind the other; are they in a "
            "circle?",
            port->bus, port->device, port->function, DEPTH_MAX);
    } else if (is_switch(p, first)) {
        add_switch(p, first, port, from, depth);
    } else if (first->bridge) {
        note(p->plan,
             "%02x:%02x.%x: conventional PCI is not modelled; left out, with all behind it",
             first->bus, first->device, first->function);
    } else {
        const struct import_profile *profile = import_profile_of(first);
        struct import_device *device = add_device(p, first, profile->name, from);
        device->profile = profile;
        device->above = port;
        device->n_functions = below->len;
    }
}

/* ---- Root buses ------------------------------------------------------------------------------ */

/* Known to the kernel, else by where firmware of servers lets the buses of a socket begin. */
static unsigned socket_of(const struct planner *p, const struct import_machine *m,
                          const struct import_function *f)
{
    const uint64_t nodes = import_known(&m->nodes) ? m->nodes.value : p->plan->sockets;
    int node = f->node;
    for (guint i = 0; node < 0 && f->bridge && i < p->functions->len; i++) {
        const struct import_function *below = p->functions->pdata[i];
        node = is_on(below, f) ? below->node : -1;
    }
    const uint64_t socket = node >= 0 && nodes > 0
                                ? (uint64_t)node * p->plan->sockets / nodes
                                : (uint64_t)f->bus * p->plan->sockets / p->n_buses;
    return (unsigned)MIN(socket, p->plan->sockets - 1);
}

static bool is_root_port(const struct planner *p, const struct import_function *f)
{
    const bool conventional = f->device_id == 0x244e || f->device_id == 0x2448 ||
                              strstr(f->text, "82801") != NULL; /* the hub's bridge to PCI slots */
    return f->bridge && (f->kind == IMPORT_ROOT_PORT ||
                         (f->kind == IMPORT_UNKNOWN && !p->plan->root && f->secondary != 0 &&
                          !(conventional && f->device == 0x1e)));
}

static void add_port(struct planner *p, const struct import_machine *m,
                     const struct import_function *f, unsigned *n_ports)
{
    struct import_port port = { .function = f, .socket = socket_of(p, m, f) };
    g_autoptr(GPtrArray) below = behind(p, f);
    port.used = below->len > 0;
    if (n_ports[port.socket] >= ROOT_COMPLEX_PORTS_MAX) {
        note(p->plan, "%02x:%02x.%x: a socket of the model has %u root ports at most; left out",
             f->bus, f->device, f->function, ROOT_COMPLEX_PORTS_MAX);
        return;
    }
    snprintf(port.name, sizeof(port.name), "rp%u", n_ports[port.socket]++);
    g_array_append_val(p->plan->ports, port);
    g_autofree char *from = g_strdup_printf("%s.s%u.%s", p->host, port.socket, port.name);
    hang(p, f, from, 0);
}

static void add_integrated(struct planner *p, const struct import_machine *m,
                           const struct import_function *f)
{
    const struct import_profile *profile = f->bridge ? NULL : import_profile_of(f);
    const unsigned socket = socket_of(p, m, f);
    if (profile == NULL || !profile->integrated) {
        p->n_chipset++;
        return;
    }
    for (guint i = 0; i < p->plan->devices->len; i++) {
        struct import_device *device = p->plan->devices->pdata[i];
        if (device->profile == profile && device->function->bus == f->bus &&
            device->function->device == f->device) {
            device->n_functions++;
            return;
        }
    }
    struct import_device *device = add_device(p, f, profile->name, "");
    device->profile = profile;
    device->socket = socket;
}

/* A device that is the only one of its kind needs no number. */
static void shorten_names(struct planner *p)
{
    for (guint i = 0; i < p->plan->devices->len; i++) {
        struct import_device *device = p->plan->devices->pdata[i];
        const char *kind = device->profile != NULL ? device->profile->name : "sw";
        if (GPOINTER_TO_UINT(g_hash_table_lookup(p->names, kind)) != 1)
            continue;
        for (guint k = 0; device->profile == NULL && k < p->plan->devices->len; k++) {
            struct import_device *below = p->plan->devices->pdata[k];
            if (!g_str_has_prefix(below->from, "sw0."))
                continue;
            char *from = g_strdup_printf("sw.%s", below->from + strlen("sw0."));
            g_free(below->from);
            below->from = from;
        }
        g_free(device->name);
        device->name = g_strdup(kind);
    }
}

static void free_device(gpointer pointer)
{
    struct import_device *device = pointer;
    g_free(device->name);
    g_free(device->from);
    g_ptr_array_free(device->below, TRUE);
    g_free(device);
}

struct import_plan *import_plan_new(const struct import_machine *m, unsigned sockets,
                                    const char *host, GPtrArray *notes,
                                    struct sim_error_list *errors)
{
    struct import_plan *plan = g_new0(struct import_plan, 1);
    unsigned n_ports[ROOT_COMPLEX_SOCKETS_MAX] = { 0 };
    g_autoptr(GPtrArray) functions = choose_functions(m);
    g_autoptr(GHashTable) kinds = g_hash_table_new(g_str_hash, g_str_equal);
    *plan = (struct import_plan){
        .ports = g_array_new(FALSE, TRUE, sizeof(struct import_port)),
        .devices = g_ptr_array_new_with_free_func(free_device),
        .notes = notes,
        .sockets = MIN(sockets, ROOT_COMPLEX_SOCKETS_MAX),
    };
    if (functions->len > FUNCTIONS_MAX)
        sim_error_add(errors, ((struct import_function *)functions->pdata[0])->file, 0,
                      "found %u functions, expected at most %d", functions->len, FUNCTIONS_MAX);
    g_ptr_array_set_size(functions, (gint)MIN(functions->len, FUNCTIONS_MAX));
    struct planner p = { plan, functions, host, errors, kinds, 0, 1 };
    for (guint i = 0; i < functions->len; i++) {
        const struct import_function *f = functions->pdata[i];
        plan->root = plan->root || f->kind != IMPORT_UNKNOWN;
        while (p.n_buses <= f->bus)
            p.n_buses *= 2;
    }
    for (guint i = 0; i < functions->len; i++) {
        const struct import_function *f = functions->pdata[i];
        if (bridge_to(&p, f) != NULL)
            continue;
        if (is_root_port(&p, f))
            add_port(&p, m, f, n_ports);
        else
            add_integrated(&p, m, f);
    }
    shorten_names(&p);
    if (p.n_chipset > 0)
        note(plan,
             "%u functions of processors and chip set are left out: they are part of the family, "
             "or do no DMA that matters here",
             p.n_chipset);
    if (functions->len > 0 && !plan->root &&
        !((struct import_function *)functions->pdata[0])->from_hwloc)
        note(plan,
             "lspci shows no capabilities (\"access denied\", or without -v): links, payload sizes "
             "and virtual functions are the models' defaults; run it as root, with -vvv");
    return plan;
}

void import_plan_free(struct import_plan *plan)
{
    if (plan == NULL)
        return;
    g_array_free(plan->ports, TRUE);
    g_ptr_array_free(plan->devices, TRUE);
    g_free(plan);
}
