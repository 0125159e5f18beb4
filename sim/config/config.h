/*
 * The configuration: a tree of settings, each with its origin. Loaded from a libconfig file (with
 * @include), then changed by --set and by axis values; read through parameter tables.
 *
 * Everything that was not read by anyone when building ends is an unknown setting (a mistake).
 *
 * A quantity may be a number in the unit of its key, or a string with its unit: "64 GiB", "8 ns",
 * "9.6 GT/s", "2 GHz", "100 Gbit/s". Integers that do not fit in 32 bits and lack the suffix L are
 * found before libconfig sees the file and refused.
 */
#ifndef SIM_CONFIG_CONFIG_H
#define SIM_CONFIG_CONFIG_H

#include <stdio.h>

#include "sim/config/error.h"
#include "sim/config/param.h"

enum config_kind {
    CONFIG_GROUP,
    CONFIG_LIST,
    CONFIG_INT,
    CONFIG_FLOAT,
    CONFIG_BOOL,
    CONFIG_STRING
};

struct config; /* one tree; owns all its nodes and strings */
struct config_node;

/*
 * The file with its includes (relative to include_dir, NULL: the file's own folder). NULL with
 * messages in errors if it cannot be read or parsed. Integers that do not fit are mistakes too, but
 * the tree is returned, with the value meant, so that what else is wrong in it can be reported as
 * well: look at errors before anything runs.
 */
struct config *config_load(const char *path, const char *include_dir,
                           struct sim_error_list *errors);
/* The same; an include is searched in several folders (NULL-terminated). */
struct config *config_load_searching(const char *path, const char *const *include_dirs,
                                     struct sim_error_list *errors);
/* A deep copy as nobody has read it yet, to which one point's axis values are then applied. */
struct config *config_copy(const struct config *config);
/* Frees the tree with every node and string it ever handed out. NULL is fine. */
void config_free(struct config *config);
struct config_node *config_root(struct config *config);

/* ---- The tree -------------------------------------------------------------------------------- */
const char *config_name(const struct config_node *node); /* "" for list elements and the root */
enum config_kind config_kind(const struct config_node *node);
/* "host.socket.dram.channels"; owned by the tree */
const char *config_path(const struct config_node *node);
/* Where the value is written: the file, or "--set". For messages. */
const char *config_file(const struct config_node *node);
int config_line(const struct config_node *node); /* 0 for --set */
/* What put the value there: "file:line", "--set" or "axis memory". Owned by the tree. */
const char *config_origin(struct config_node *node);
unsigned config_count(const struct config_node *node); /* children of a group or list, else 0 */
struct config_node *config_child(struct config_node *node, unsigned index);
/* The child of that name, marked as read, or NULL. The name is a valid one of the group from then
 * on. Elements of a list count as read when their list does; groups among them do not. */
struct config_node *config_get(struct config_node *node, const char *name);
/* By path from node, "a.b.[2].c" or "a.b.c"; not marked as read. (libconfig owns the name
 * config_lookup.) */
struct config_node *config_find(struct config_node *node, const char *path);
int64_t config_int(const struct config_node *node);   /* CONFIG_INT only, else SIM_ASSERT */
double config_number(const struct config_node *node); /* INT or FLOAT */
bool config_bool(const struct config_node *node);
const char *config_string(const struct config_node *node); /* CONFIG_STRING only */
/* The value as it would stand in a point's name: 65536, "read", true. Owned by the tree. */
const char *config_text(struct config_node *node);
/* Marks the node and everything below as read (free-form parts such as `plot`). */
void config_mark_read(struct config_node *node);

/* ---- Changing it ----------------------------------------------------------------------------- */
/*
 * Sets path to the value written as in a file (`64`, `"8 ns"`, `true`, `[1, 2]`, `{ a = 1; }`; bare
 * words are strings). The setting need not exist yet (defaults are not in the tree); missing groups
 * are made, and an element is added to a list by the index that follows its last. A setting with
 * provenance, { value = ...; }, becomes the plain value.
 */
bool config_set(struct config *config, const char *path, const char *value, const char *origin,
                struct sim_error_list *errors);
/* Copies a subtree to path; the copy keeps the file and line of the value. */
bool config_set_node(struct config *config, const char *path, const struct config_node *value,
                     const char *origin, struct sim_error_list *errors);

/* ---- Reading it ------------------------------------------------------------------------------ */
/*
 * Fills `state` from the group by the table: defaults first, then what the group says; checks
 * type, unit and range. group NULL means all defaults (a required key is then a mistake, reported
 * with `where`). Records every resolved value with its origin for config_print() and
 * config_each_param(). Returns false if it added to errors; what was wrong has its default then.
 *
 * A setting may carry where it comes from: latency_ns = { value = 35; provenance = "published";
 * source = "docs/sources.md#a2"; }. A plain value in a file is an estimate; a setting whose table
 * entry has PROV_NONE (a choice, not a property of hardware) stays without.
 */
bool config_read_params(struct config *config, struct config_node *group, const char *where,
                        const struct param_desc *table, void *state, struct sim_error_list *errors);
/* Names that are legal in this group without being parameters (for suggestions, and so that
 * config_check_unknown() knows them); NULL-terminated. Marks them as read. */
void config_allow(struct config_node *group, const char *const *names);
/* One message per setting that nobody read, with the nearest valid name of its group. True if there
 * is none. Whoever gives up on a group because of a mistake calls config_mark_read() on it. */
bool config_check_unknown(struct config *config, struct sim_error_list *errors);

/* "file:line: path: found X, expected Y" for callers' own checks; with the nearest of `names` if
 * given (NULL-terminated; expected may then be NULL). */
void config_mistake(const struct config_node *node, struct sim_error_list *errors,
                    const char *expected, const char *const *names);
/* The same of the setting `key` of the group, also if it is not written there: then at the group's
 * place, and what is found is its default (as config_read_params() resolved it). Nothing if
 * config_read_params() has refused the value: there is a message, and the default counts. */
void config_mistake_at(struct config_node *group, const char *key, struct sim_error_list *errors,
                       const char *expected, const char *const *names);

/* A mistake if `key` is written in the group, though it has no effect because of how the setting
 * `decider` (a path) stands; but none if an axis of the scenario sets the decider: then it has one
 * in other points. */
void config_no_effect(struct config_node *group, const char *key, const char *decider,
                      struct sim_error_list *errors, const char *expected);

/* Every resolved parameter, then every other value that was read, each by path: for the results.
 * value in the unit of the key; text for strings. origin is "default", "file:line", "--set" or
 * "axis memory", and ", " and the source where one is given. */
typedef void config_param_fn(void *context, const char *path, const char *value, const char *unit,
                             enum param_provenance provenance, const char *origin);
void config_each_param(const struct config *config, config_param_fn *fn, void *context);
/* The table's entry of the parameter that config_read_params() resolved at this path, or NULL. */
const struct param_desc *config_param_desc(const struct config *config, const char *path);
/* The resolved scenario with the origin of each value (default, file:line, --set). */
void config_print(const struct config *config, FILE *out);
/* SHA-256 over the resolved values (not their origins) and the settings read otherwise; hex,
 * 65 bytes with the terminator. */
void config_sha256(const struct config *config, char hex[65]);

#endif
