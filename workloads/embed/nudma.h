/*
 * libnudma: simulations within another program. `pkg-config --cflags --libs nudma` says how to
 * compile and link; examples/embed.c is a whole program.
 *
 * A scenario is loaded, one point of it is run with a seed, and its metrics are read. Results are
 * those of `nudma run`, bit for bit; nothing is stored. What is wrong with the input, or with a
 * run, comes back as text. A fault of the simulator itself ends the process (abort() with a message
 * on standard error).
 *
 * A process runs one point at a time. Threads must not call these functions side by side.
 *
 * Models of one's own: NUDMA_MODEL() and NUDMA_WORKLOAD() below.
 */
#ifndef WORKLOADS_EMBED_NUDMA_H
#define WORKLOADS_EMBED_NUDMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nudma_scenario;
struct nudma_result;

/* "0.1.0 4f2a91c"; static. */
const char *nudma_version(void);

/*
 * Loads a scenario. name: a file, or a name as `nudma run` takes it ("pcie_bench/latency_size"),
 * which is looked for below $NUDMA_SCENARIOS, ./scenarios and the installed folder, in this order.
 * sets: changes of settings as --set takes them, "path=value" or "@FILE", NULL-terminated; may be
 * NULL.
 *
 * NULL on mistakes, with *error set to all of them, "; " in between: nudma_free() it. The caller
 * frees the scenario by nudma_scenario_free(), which takes NULL too.
 */
struct nudma_scenario *nudma_scenario_load(const char *name, const char *const *sets, char **error);
void nudma_scenario_free(struct nudma_scenario *scenario);

const char *nudma_scenario_name(const struct nudma_scenario *scenario);
/* Combinations of axis values; 1 without axes. */
size_t nudma_scenario_n_points(const struct nudma_scenario *scenario);
/* "memory=local transfer_bytes=64", "" without axes; point: 0 to nudma_scenario_n_points() - 1.
 * Valid as long as the scenario. */
const char *nudma_scenario_point(const struct nudma_scenario *scenario, size_t point);

/* Builds and runs one point; seed: 1 is that of `nudma run`. NULL if a setting is wrong, or the run
 * failed, with *error as above. The caller frees the result by nudma_result_free(), which takes
 * NULL too; it may outlive the scenario. */
struct nudma_result *nudma_run(struct nudma_scenario *scenario, size_t point, uint64_t seed,
                               char **error);
void nudma_result_free(struct nudma_result *result);

/* The value of a metric ("latency_mean_ns"; `nudma describe WORKLOAD` lists them). False, and
 * *value is left alone, if the run has recorded none of that name. The unit is part of the name, or
 * nudma_result_metric()'s. */
bool nudma_result_value(const struct nudma_result *result, const char *name, double *value);
/* The i-th metric, by name; unit may be NULL. NULL: there are fewer. Valid as long as the
 * result. */
const char *nudma_result_metric(const struct nudma_result *result, size_t i, const char **unit);
/* Simulated picoseconds, and a hash of all events and results: equal for equal runs. */
uint64_t nudma_result_sim_ps(const struct nudma_result *result);
uint64_t nudma_result_fingerprint(const struct nudma_result *result);

/* Frees an error text. */
void nudma_free(char *text);

/*
 * Beside a definition at file scope in a program that is linked with libnudma:
 *
 *     NUDMA_MODEL(my_ops);        a const struct model_ops, of models/base/model.h
 *     NUDMA_WORKLOAD(my_ops);     a const struct workload_ops, of workloads/base/workload.h
 *
 * Scenarios may then name its type. The names of types must be new. These headers are installed
 * beside this one, but are not kept stable from one version to the next; docs/adding.md says what a
 * model consists of. examples/device/ is one with a workload that drives it. Objects with such
 * lines must be linked by themselves, not out of an archive, from which the linker would not take
 * them.
 */
#define NUDMA_MODEL(OPS)    NUDMA_EXTENSION(model, OPS)
#define NUDMA_WORKLOAD(OPS) NUDMA_EXTENSION(workload, OPS)
#define NUDMA_EXTENSION(KIND, OPS)   \
    __attribute__((                  \
        used, section("nudma_" #KIND \
                      "s"))) static const struct KIND##_ops *const nudma_##KIND##_##OPS = &OPS

#endif
