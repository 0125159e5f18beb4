/*
 * Published data over the years, no simulation: the bandwidth of a NIC of a year against what the
 * cores of one of its processors could use (IOctopus, figure 2). The group `trends` of the scenario
 * holds two tables, each entry valid from its year on: `nic` ({ year; port_gbit_s; }, of one port
 * and direction) and `cores` ({ year; n; }, the most of one processor).
 *
 * nic_single, nic_dual: both directions of one port, of two; cpu_513mbit, cpu_10gbit: cores times
 * what each is said to consume.
 */
#include <math.h>

#include "workloads/base/workload.h"

enum trends_kind { NIC_SINGLE, NIC_DUAL, CPU_513_MBIT, CPU_10_GBIT };
static const char *const kind_names[] = { "nic_single", "nic_dual", "cpu_513mbit", "cpu_10gbit",
                                          NULL };
static const double per_unit_gbit_s[] = {
    [NIC_SINGLE] = 2.0,
    [NIC_DUAL] = 4.0,
    [CPU_513_MBIT] = 0.513,
    [CPU_10_GBIT] = 10.0,
};

struct trends {
    /* parameters */
    uint32_t year;
    int kind;
    /* found */
    double value; /* of the table, in that year */
};

static const struct param_desc trends_params[] = {
    PARAM("year", PARAM_U32, struct trends, year, 2020, 1980, 2100, PROV_NONE, "", "of the data"),
    PARAM_ONE_OF("kind", struct trends, kind, NIC_SINGLE, kind_names, PROV_NONE, "",
                 "what is asked: a NIC's bandwidth, or what a processor's cores use"),
    { .type = PARAM_END },
};

static const struct record_desc trends_records[] = {
    { "gbit_s", RECORD_METRIC, "Gbit/s", "bandwidth of the kind in the year" },
    { NULL, RECORD_METRIC, NULL, NULL },
};

struct entry {
    uint32_t year;
    double value;
};
static const struct param_desc nic_entry[] = {
    PARAM("year", PARAM_U32, struct entry, year, NAN, 1980, 2100, PROV_NONE, "", "from when on"),
    PARAM("port_gbit_s", PARAM_RATE, struct entry, value, NAN, 0.001, 1e6, PROV_PUBLISHED, "",
          "of a port, one direction"),
    { .type = PARAM_END },
};
static const struct param_desc cores_entry[] = {
    PARAM("year", PARAM_U32, struct entry, year, NAN, 1980, 2100, PROV_NONE, "", "from when on"),
    PARAM("n", PARAM_DOUBLE, struct entry, value, NAN, 1, 1e6, PROV_PUBLISHED, "",
          "cores of a processor at most"),
    { .type = PARAM_END },
};

/* The latest entry that is not after the year; entries ascend. */
static double read_table(struct workload *workload, struct config_node *tables, const char *name,
                         const struct param_desc *table, struct sim_error_list *errors)
{
    struct trends *trends = workload->state;
    struct config_node *list = config_get(tables, name);
    double value = 0;
    uint32_t before = 0;
    if (list == NULL || config_kind(list) != CONFIG_LIST || config_count(list) == 0) {
        config_mistake(list != NULL ? list : tables, errors,
                       "tables `nic` and `cores`, ( { year = ...; }, ... )", NULL);
        return 0;
    }
    for (unsigned i = 0; i < config_count(list); i++) {
        struct config_node *node = config_child(list, i);
        struct entry entry = { 0 };
        if (config_kind(node) != CONFIG_GROUP) {
            config_mistake(node, errors, "an entry, { year = ...; }", NULL);
            continue;
        }
        if (!config_read_params(workload->config, node, config_path(node), table, &entry, errors))
            continue;
        if (entry.year <= before)
            config_mistake(node, errors, "a later year than the one before", NULL);
        before = entry.year;
        if (entry.year <= trends->year)
            value = entry.value;
    }
    return value;
}

static void trends_check(struct workload *workload, struct sim_error_list *errors)
{
    struct trends *trends = workload->state;
    struct config_node *tables = config_get(config_root(workload->config), "trends");
    if (tables == NULL || config_kind(tables) != CONFIG_GROUP) {
        config_mistake(tables != NULL ? tables : workload->group, errors,
                       "a group `trends` with the tables `nic` and `cores`", NULL);
        return;
    }
    const size_t before = errors->n_messages;
    if (workload->measure.sample_interval_ps != 0)
        workload_measure_no_effect(workload, "sample_interval_us", NULL, errors,
                                   "no sample_interval_us: nothing is simulated");
    double nic = read_table(workload, tables, "nic", nic_entry, errors);
    double cores = read_table(workload, tables, "cores", cores_entry, errors);
    trends->value = trends->kind <= NIC_DUAL ? nic : cores;
    if (trends->value <= 0 && errors->n_messages == before)
        workload_mistake(workload, "year", errors, "a year that the tables reach", NULL);
}

static void trends_run(struct workload *workload)
{
    struct trends *trends = workload->state;
    run_result_metric(workload->result, "gbit_s", "Gbit/s",
                      trends->value * per_unit_gbit_s[trends->kind]);
}

static const char *const trends_groups[] = { "trends", NULL };

const struct workload_ops workload_trends_ops = {
    .type = "trends",
    .help = "published bandwidths of NICs and processors over the years",
    .state_bytes = sizeof(struct trends),
    .params = trends_params,
    .records = trends_records,
    .groups = trends_groups,
    .check = trends_check,
    .run = trends_run,
};
