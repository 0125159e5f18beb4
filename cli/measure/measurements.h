/*
 * What benchmarks have measured on a real server: Intel's Memory Latency Checker (MLC), pcie-bench,
 * lmbench, likwid-bench and perf. Each value has the file and line that it was read from.
 */
#ifndef CLI_MEASURE_MEASUREMENTS_H
#define CLI_MEASURE_MEASUREMENTS_H

#include <glib.h>

#include "sim/config/error.h"

/* Not measured: file is NULL. */
struct measured {
    double value;
    const char *file; /* interned */
    unsigned line;
};
static inline bool measured_known(const struct measured *measured)
{
    return measured->file != NULL;
}

#define MEASURED_NODES_MAX 16

/* From the cores of a node (row) to the memory of a node (column). Nodes without processors have no
 * row. */
struct measured_matrix {
    unsigned n_rows, n_columns;
    struct measured at[MEASURED_NODES_MAX][MEASURED_NODES_MAX];
};

struct measured_load {
    double latency_ns, gbyte_s; /* of all nodes together */
    const char *file;
    unsigned line;
};

/* A row of pcie-bench, of memory of the device's own node. */
struct measured_dma {
    const char *test;  /* "LAT_CMD_RD"; interned */
    const char *cache; /* "Cold", "HWarm" ...; interned */
    uint64_t window_bytes, transfer_bytes;
    bool iommu;             /* with pages of 4 KiB */
    struct measured result; /* mean in ns, or Gbit/s per direction */
};

struct measurements {
    struct measured_matrix latency_ns, read_gbyte_s;
    struct measured idle_ns;      /* local memory; of those that print no matrix */
    struct measured node_gbyte_s; /* likwid-bench: all cores of a node read */
    struct measured all_gbyte_s;  /* perf: what all memory controllers read */
    GArray *loads;                /* struct measured_load */
    GArray *dma;                  /* struct measured_dma */
};

void measurements_init(struct measurements *measurements);
void measurements_release(struct measurements *measurements);
/* Adds what the file says; known by how it begins. False with mistakes in errors. */
bool measurements_read(struct measurements *measurements, const char *path,
                       struct sim_error_list *errors);
/* NULL: there is no such row. */
const struct measured_dma *measurements_dma(const struct measurements *measurements,
                                            const char *test, const char *cache,
                                            uint64_t window_bytes, uint64_t transfer_bytes,
                                            bool iommu);

/* ---- Readers: `file` is interned; mistakes go to errors -------------------------------------- */
void measured_read_mlc(struct measurements *m, const char *file, char **lines,
                       struct sim_error_list *errors);
void measured_read_pcie_bench(struct measurements *m, const char *file, char **lines,
                              struct sim_error_list *errors);

/* Sets it, or says that two files have it. */
void measured_set(struct measured *measured, double value, const char *file, unsigned line,
                  struct sim_error_list *errors);
void measured_mistake(const char *file, unsigned line, const char *found, const char *expected,
                      struct sim_error_list *errors);
/* The number that the whole word is, above 0 and at most `most`; NAN if it is none. */
double measured_number(const char *word, double most);

#endif
