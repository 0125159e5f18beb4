/*
 * What the tools of a real server say of it: lspci, lstopo, dmidecode, numactl. Each fact has the
 * file and line that it was read from; what no tool said is unknown, never guessed here.
 */
#ifndef CLI_IMPORT_MACHINE_H
#define CLI_IMPORT_MACHINE_H

#include <glib.h>

#include "sim/config/error.h"

/* A number with its origin. Unknown: file is NULL. */
struct import_fact {
    uint64_t value;
    const char *file; /* interned */
    unsigned line;
};

struct import_link {
    struct import_fact generation, lanes; /* 1 .. 6; 1 .. 32 */
};

/* What the PCI Express capability says that a function is. */
enum import_kind {
    IMPORT_UNKNOWN, /* no capability was shown: none, or nobody had the right to read it */
    IMPORT_ENDPOINT,
    IMPORT_INTEGRATED,
    IMPORT_ROOT_PORT,
    IMPORT_UPSTREAM,
    IMPORT_DOWNSTREAM,
    IMPORT_PCI_BRIDGE, /* to conventional PCI */
};

/* A PCI function. */
struct import_function {
    unsigned domain, bus, device, function;
    char *text;                    /* class and name as printed; printable ASCII */
    unsigned class_code;           /* base and sub-class; IMPORT_NO_CLASS: unknown */
    unsigned vendor_id, device_id; /* 0: not printed */
    bool bridge;                   /* its header is of type 1 */
    unsigned secondary;            /* of a bridge; 0: unknown */
    enum import_kind kind;
    struct import_link possible, trained;
    struct import_fact mps_possible, mps, mrrs;
    struct import_fact bar_bytes; /* the largest memory BAR */
    struct import_fact vfs;       /* TotalVFs of its SR-IOV capability */
    struct import_fact ecrc;      /* it adds a digest to its TLPs: ECRC generation is enabled */
    int node;                     /* -1: not said */
    int iommu_group;              /* -1: not said */
    bool from_hwloc;              /* lspci says more of the same function */
    const char *file;             /* interned */
    unsigned line;
};
#define IMPORT_NO_CLASS 0xffffu

struct import_machine {
    char *product, *cpu_name;          /* NULL: unknown; printable ASCII */
    struct import_fact name_clock_mhz; /* of cpu_name, "... @ 2.40GHz" */
    struct import_fact cpu_family, cpu_model;
    struct import_fact sockets, nodes, cores, threads; /* of the whole server */
    struct import_fact clock_mhz, interconnect_mt_s;
    struct import_fact l1_bytes, l1_ways, l2_bytes, l2_ways, l2_cores, l3_bytes, l3_ways;
    struct import_fact l3_caches;  /* how many of l3_bytes */
    struct import_fact node_bytes; /* the largest node, less what firmware keeps */
    struct import_fact dimms, dimm_total_bytes, dimm_mt_s, dimm_ranks;
    GPtrArray *functions; /* struct import_function, in the order of the file that has them */
    const char *lspci;    /* the file of lspci; NULL: none */
};

void import_machine_init(struct import_machine *machine);
void import_machine_release(struct import_machine *machine);
/* Appends a function at this address of the file; the machine's. */
struct import_function *import_function_new(struct import_machine *machine, const char *file,
                                            unsigned line);
/* Sets the fact unless it is known already. */
void import_fact_set(struct import_fact *fact, uint64_t value, const char *file, unsigned line);
static inline bool import_known(const struct import_fact *fact)
{
    return fact->file != NULL;
}
/* Sets the processor's name, and the clock that it may end in, unless it is known already. */
void import_set_cpu_name(struct import_machine *machine, const char *name, const char *file,
                         unsigned line);
/* The text with all that is not printable ASCII replaced; g_free(). */
char *import_printable(const char *text);

/* ---- Readers: each adds what the text says; mistakes go to errors with file and line -----------
 * `file` is interned. The text is NUL-terminated and has no other NUL. */
void import_lspci(struct import_machine *machine, const char *file, const char *text,
                  struct sim_error_list *errors);
/* XML of lstopo (hwloc 1 to 3), and its text. */
void import_hwloc_xml(struct import_machine *machine, const char *file, const char *text,
                      struct sim_error_list *errors);
void import_hwloc_text(struct import_machine *machine, const char *file, const char *text,
                       struct sim_error_list *errors);
void import_dmidecode(struct import_machine *machine, const char *file, const char *text,
                      struct sim_error_list *errors);
void import_numactl(struct import_machine *machine, const char *file, const char *text,
                    struct sim_error_list *errors);

void import_cpuinfo(struct import_machine *machine, const char *file, const char *text,
                    struct sim_error_list *errors);

/* Adds what another file says, whose facts and functions it takes over. Where the two contradict
 * each other they are of two machines, a mistake (import_merge.c). */
void import_merge(struct import_machine *machine, struct import_machine *other,
                  struct sim_error_list *errors);

/* Reads a file by what it begins with. False: mistakes are in errors. Without `must` a file of no
 * known format is passed over: *known is false. */
bool import_file(struct import_machine *machine, const char *path, bool must, bool *known,
                 struct sim_error_list *errors);

/* The whole text of a regular file of at most 16 MiB without NUL bytes; g_free(). NULL with the
 * mistake. */
char *import_read_text(const char *path, struct sim_error_list *errors);

/* Fills what lspci's text left open from the bytes of a configuration space (lspci -x .. -xxxx). */
void import_config_space(struct import_function *function, const uint8_t *bytes, size_t n);
/* Generation of "8GT/s", 0 if it is none. */
unsigned import_generation(double gt_s);

/* ---- The platform (import_write.c) ----------------------------------------------------------- */

struct import_choice {
    const char *const *roots; /* of scenarios: where families and devices are */
    const char *family;       /* NULL: by the processor */
    const char *host;         /* its name in the scenario */
    bool platform;            /* hosts, devices and cables alone, no workload */
};

/* The text of a scenario, or platform, g_free(); notes (owned strings) say what was left out or
 * taken from elsewhere. NULL with mistakes in errors. */
char *import_write(const struct import_machine *machine, const struct import_choice *choice,
                   GPtrArray *notes, struct sim_error_list *errors);

#endif
