/* Everything with parameters that is not a device model: groups of a host, workloads, measuring. */
#ifndef WORKLOADS_BASE_DESCRIBE_H
#define WORKLOADS_BASE_DESCRIBE_H

#include "sim/config/param.h"
#include "sim/store/results.h"

/* What a `type` names. */
enum describe_kind { DESCRIBE_PART, DESCRIBE_DEVICE, DESCRIBE_PROGRAM, DESCRIBE_WORKLOAD };

struct describe_entry {
    const char *name, *help;
    enum describe_kind kind;
    const struct setting_desc *settings; /* that are no parameters; may be NULL */
    enum describe_kind types; /* its `type` is the name of an entry of this kind, if it has one */
    const struct param_desc *params;
    const struct stat_desc *stats;
    const struct record_desc *records; /* what a workload records beside them; may be NULL */
    const struct record_desc *world;   /* what every workload records; NULL: it is none */
};

/* The entry of that index; false beyond the last. */
bool describe_entry(unsigned index, struct describe_entry *entry);

#endif
