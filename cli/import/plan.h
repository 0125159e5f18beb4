/* What of the machine becomes a root port, a switch, a device of the platform, and which model each
 * gets. */
#ifndef CLI_IMPORT_PLAN_H
#define CLI_IMPORT_PLAN_H

#include "cli/import/machine.h"

/* A kind of device that there is a model of. */
struct import_profile {
    unsigned vendor_id, first_id, last_id; /* vendor 0: any */
    const char *text;                      /* in the printed name, where no number was printed */
    unsigned class_code;                   /* base and sub-class; IMPORT_NO_CLASS: any */
    const char *name, *type;               /* in the scenario */
    const char *file; /* below scenarios/, of this very device; NULL: the model's defaults */
    bool integrated;
};

struct import_port {
    const struct import_function *function; /* NULL: no tool showed root ports */
    unsigned socket;
    char name[16]; /* "rp0" */
    bool used;
};

struct import_device {
    const struct import_function *function; /* its first one */
    unsigned n_functions;
    const struct import_function *above;  /* the port that it hangs on; NULL: integrated */
    char *name, *from;                    /* "nic0"; "server.s0.rp0" or "sw.p1" */
    const struct import_profile *profile; /* NULL: a switch */
    unsigned socket;                      /* of integrated ones */
    GPtrArray *below;                     /* of a switch: struct import_function, not owned */
};

struct import_plan {
    GArray *ports;      /* struct import_port */
    GPtrArray *devices; /* struct import_device */
    GPtrArray *notes;   /* not owned */
    unsigned sockets;
    bool root; /* some tool showed capabilities: whoever ran lspci had the right to */
};

/* sockets: of the model. Mistakes (bridges in a circle) go to errors. */
struct import_plan *import_plan_new(const struct import_machine *machine, unsigned sockets,
                                    const char *host, GPtrArray *notes,
                                    struct sim_error_list *errors);
void import_plan_free(struct import_plan *plan);

/* import_profile.c: never NULL for what is no bridge. */
const struct import_profile *import_profile_of(const struct import_function *function);

/* The family of the processor, one of those below families/ in the roots. NULL: none is there, with
 * the mistake in errors. A note says if it is another one than the processor's. */
const char *import_family_of(const struct import_machine *machine,
                             const struct import_choice *choice, GPtrArray *notes,
                             struct sim_error_list *errors);
/* A mistake if lspci shows another processor than its family and model say. */
void import_check_generation(const struct import_machine *machine, struct sim_error_list *errors);
/* The highest generation of PCI Express of the processor's root ports, or of such servers. */
unsigned import_pcie_generation(const struct import_machine *machine);
/* The fastest memory and link between sockets of the family's processors; 0: not known. */
void import_family_rates(const char *family, double *dram_mt_s, double *link_gt_s);
/* "families/NAME/FILE.cfg" that has a group of the family, as @include wants it; NULL: the family
 * has none. g_free(). */
char *import_family_file(const char *const *roots, const char *family, const char *group);

/* import_cache.c. Slices and ways of an LLC of so many bytes, each slice with a power of two of
 * sets; false: there are none. Slices of slice_bytes are tried first, then one a core. */
bool import_divide_llc(uint64_t bytes, uint64_t cores, double slice_bytes, uint64_t ways,
                       double family_ways, unsigned *n_slices, unsigned *n_ways);
/* The fewest ways from `wanted` on that leave a private cache a power of two of sets, else the most
 * below; at most 32, 0: none do. */
unsigned import_divide_private(uint64_t bytes, uint64_t wanted);

#endif
