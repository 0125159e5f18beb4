/*
 * The configuration: a tree of settings, each with its origin. Loaded from a libconfig file (with
 * @include), then changed by --set and by axis values; read through parameter tables.
 *
 * A setting that no code has read by the time the system is built is unknown: a mistake.
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
/* Like config_load(), but searches included files in several folders (NULL-terminated). */
struct config *config_load_searching(const char *path, const char *const *include_dirs,
                                     struct sim_error_list *errors);
/* Returns a deep copy in which no setting is marked as read: the axis values of a point are applied
 * to it. */
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
/* Returns the child of that name and marks it as read; NULL if there is none. From then on messages
 * suggest the name for this group. Reading a list also reads its elements, except groups. */
struct config_node *config_get(struct config_node *node, const char *name);
/* Finds a node by its path from `node`, "a.b.[2].c" or "a.b.c", without marking it as read. (The
 * name config_lookup() is taken by libconfig.) */
struct config_node *config_find(struct config_node *node, const char *path);
int64_t config_int(const struct config_node *node);   /* CONFIG_INT only, else SIM_ASSERT */
double config_number(const struct config_node *node); /* INT or FLOAT */
bool config_bool(const struct config_node *node);
const char *config_string(const struct config_node *node); /* CONFIG_STRING only */
/* The value as the name of a point shows it: 65536, "read", true. Owned by the tree. */
const char *config_text(struct config_node *node);
/* Marks the node and everything below it as read: for free-form parts such as `plot`. */
void config_mark_read(struct config_node *node);

/* ---- What it is, and what it writes ---------------------------------------------------------- */
/* The point of a scenario that the configuration is, "memory=local transfer_bytes=64"; "" without
 * axes, and of a configuration that scenario_point() has not made. Owned by the tree. */
const char *config_point_name(const struct config *config);
/* A file that a run writes, {seed} in its name standing for the run's seed; `node`: the setting
 * that says so. Code that reads the setting adds it, so that runs that would overwrite each other's
 * files are found before any begins. */
struct config_output {
    const struct config_node *node;
    const char *file; /* owned by the tree */
};
void config_add_output(struct config *config, const struct config_node *node, const char *file);
/* NULL: there are fewer. */
const struct config_output *config_output_at(const struct config *config, unsigned i);

/* ---- Changing it ----------------------------------------------------------------------------- */
/*
 * Sets path to the value written as in a file (`64`, `"8 ns"`, `true`, `[1, 2]`, `{ a = 1; }`; bare
 * words are strings). The setting need not exist yet (defaults are not in the tree): missing groups
 * are created, and the index after the last of a list appends an element. A setting with
 * provenance, { value = ...; }, becomes the plain value. False with messages.
 */
bool config_set(struct config *config, const char *path, const char *value, const char *origin,
                struct sim_error_list *errors);
/* Copies a subtree to path; the copy keeps the file and line of the value. */
bool config_set_node(struct config *config, const char *path, const struct config_node *value,
                     const char *origin, struct sim_error_list *errors);

/* ---- Reading it ------------------------------------------------------------------------------ */
/*
 * Fills `state` as the table says: with the defaults, then with the settings of the group, whose
 * type, unit and range it checks. group NULL means all defaults (a required key is then a mistake,
 * reported with `where`). Records every resolved value with its origin for config_print() and
 * config_each_param(). Returns false if it added to errors; a wrong setting has its default then.
 *
 * A setting may carry where it comes from: latency_ns = { value = 35; provenance = "published";
 * source = "docs/sources.md#a2"; }. A plain value in a file is an estimate; a setting whose table
 * entry has PROV_NONE (a choice, not a property of hardware) stays without.
 */
bool config_read_params(struct config *config, struct config_node *group, const char *where,
                        const struct param_desc *table, void *state, struct sim_error_list *errors);
/* Reads `machine` of a host's group: which machine it describes. It is no part of what is
 * simulated; values of the host that another machine's measurements decided are borrowed. */
bool config_read_machine(struct config_node *host, struct sim_error_list *errors);
/* "r730: dram.controller_ns, os.copy_line_cycles; t430: ...": the values of hosts that were
 * borrowed from other machines' measurements. NULL: none; the caller g_free()s it. */
char *config_borrowed_text(const struct config *config);
/* Declares names that the group may have although they are no parameters: config_check_unknown()
 * accepts and suggests them. NULL-terminated. Marks them as read. */
void config_allow(struct config_node *group, const char *const *names);
/* The same of the names in the table. */
void config_allow_settings(struct config_node *group, const struct setting_desc *settings);
/* For a group of groups with names of the user's: a file of one such group is included in it, as
 * n_min of the names `parts` (NULL-terminated) say. Then there is a message, and all is marked as
 * read. */
bool config_report_included(struct config_node *group, const char *const *parts, unsigned n_min,
                            struct sim_error_list *errors);
/* Reports each setting that was not read, with the nearest valid name of its group. True if there
 * is none. Code that gives up on a group because of a mistake calls config_mark_read() on it. */
bool config_check_unknown(struct config *config, struct sim_error_list *errors);

/* Reports "file:line: path: found X, expected Y": for checks of the caller's own. With `names`
 * (NULL-terminated) the message has the nearest of them; expected may then be NULL. */
void config_mistake(const struct config_node *node, struct sim_error_list *errors,
                    const char *expected, const char *const *names);
/* Reports "file:line: path: no device "x"; did you mean "y"?" of a group that stands where those of
 * `names` do. */
void config_no_such(const struct config_node *group, struct sim_error_list *errors,
                    const char *what, const char *const *names);
/* --set or an axis that misspells the name of a group makes another one, without the setting `key`
 * that each group below `parent` has: true with config_no_such(), and the group is passed over. */
bool config_refuse_made(struct config_node *parent, struct config_node *group, const char *key,
                        const char *what, struct sim_error_list *errors);
/* True if `node` is of this kind. If it is of another, reports that with config_mistake(); a node
 * that is NULL is no mistake. */
bool config_expect(const struct config_node *node, enum config_kind kind,
                   struct sim_error_list *errors, const char *expected);
/* Like config_mistake() for setting `key`; if `key` is absent, reports the group's position and the
 * default that config_read_params() used. Reports nothing if config_read_params() has refused the
 * value, since it has said so. */
void config_mistake_at(struct config_node *group, const char *key, struct sim_error_list *errors,
                       const char *expected, const char *const *names);

/* Reports setting `key` of the group, if it is written there, as one without effect because of the
 * value of setting `decider` (a path). Reports nothing if an axis of the scenario sets the decider:
 * `key` has an effect at other points then. */
void config_no_effect(struct config_node *group, const char *key, const char *decider,
                      struct sim_error_list *errors, const char *expected);

/* Calls fn for every resolved parameter, then for every other value that was read, each sorted by
 * path: for the results. value is in the unit of the key, or the text of a string. origin is
 * "default", "file:line", "--set" or "axis memory, file:line", and ", " and the source where one is
 * given. */
typedef void config_param_fn(void *context, const char *path, const char *value, const char *unit,
                             enum param_provenance provenance, const char *origin);
void config_each_param(const struct config *config, config_param_fn *fn, void *context);
/* Calls fn for every resolved parameter whose file gives it a range, and which was not fitted to
 * anything: nothing says where in it the value lies. Sorted by path; lo and hi in the unit of the
 * key. */
typedef void config_band_fn(void *context, const char *path, const char *lo, const char *hi);
void config_each_band(const struct config *config, config_band_fn *fn, void *context);
/* The table entry of the parameter that config_read_params() resolved at this path, or NULL. */
const struct param_desc *config_param_desc(const struct config *config, const char *path);
/* Prints the resolved scenario with the origin of each value (default, file:line, --set). */
void config_print(const struct config *config, FILE *out);
/* The setting `key` of the group, a parameter that was read and that nobody has set (else: no
 * effect), came out as `value`: config_print() and the results show that, with `why` for its
 * origin. Texts are copied. */
void config_settle(struct config *config, const struct config_node *group, const char *key,
                   uint32_t value, const char *why);
/* The setting `key` of the group changes nothing in this configuration, as another setting has it:
 * it does not count in config_sha256(). */
void config_idle(struct config *config, const struct config_node *group, const char *key);
/* SHA-256 over the resolved values (not their origins) and the settings read otherwise; hex,
 * 65 bytes with the terminator. */
void config_sha256(const struct config *config, char hex[65]);

#endif
