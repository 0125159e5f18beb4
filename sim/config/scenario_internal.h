/* What the scenario*.c files share. */
#ifndef SIM_CONFIG_SCENARIO_INTERNAL_H
#define SIM_CONFIG_SCENARIO_INTERNAL_H

#include <glib.h>

#include "sim/config/config_internal.h"
#include "sim/config/scenario.h"

/* One setting that an axis value sets: a value of the file or one written as text. */
struct assignment {
    char *path;
    struct config_node *node; /* of the base or of a tree in scenario->parsed; NULL: text */
    char *text;
    struct config_place place;
};

/* One value of an axis: a named set of assignments. */
struct axis_value {
    char *label;
    GPtrArray *assignments; /* of struct assignment, owned */
    bool is_number;         /* of a setting; its number in the base of its unit is below */
    bool is_quoted;         /* a string, "1 KiB" */
    double number;
    enum unit_dimension dimension;
};

struct axis {
    char *name;
    char *origin;             /* "axis memory" */
    const char *setting;      /* NULL with variants; of the base */
    struct config_node *node; /* in the base */
    GPtrArray *values;        /* of struct axis_value, owned */
    GPtrArray *replaced;      /* the same: what --set has replaced; NULL: nothing */
    char **quick;             /* labels of the fast subset, NULL: all */
    size_t leader;            /* the axis that it advances with; its own index: none */
};

/* Settings of the points that an expression holds for. */
struct where {
    char *origin; /* "where buffer_bytes>=512" */
    struct config_place place;
    struct filter *filter;
    struct axis_value *value;
    bool *holds; /* of each point, once they are made */
};

struct scenario {
    char *name, *path, *title, *text, *changes, *digest;
    char *asked, **roots, **sets, *precision; /* what scenario_load() and _sample() were given */
    bool has_root;                            /* the file is below one of the roots */
    bool is_outline;                          /* "@FILE"s have been left out */
    char **include_dirs;
    struct config *base;
    GPtrArray *axes;   /* of struct axis, owned */
    GPtrArray *parsed; /* of struct config: values from --set and ranges, owned */
    GPtrArray *late;   /* of struct assignment, owned: --set after the axis values of a point */
    GPtrArray *constraints; /* of struct filter, owned: points have to match all */
    GPtrArray *where;       /* of struct where, owned; what stands later wins */
    size_t *points;         /* n_points * n_axes indices of values */
    size_t n_points;
    char **point_names;
};

#define AXIS_MAX_VALUES 10000

/* Copies path and text; node may be NULL. */
struct assignment *assignment_new(const char *path, struct config_node *node, const char *text,
                                  struct config_place place);
void assignment_free(gpointer assignment);
/* scenario_values.c: what is wrong is left out, with messages. */
struct axis_value *axis_value_new(const char *label);
/* set = ( "path=value", "@FILE" ) of a variant, of a `where`. */
void axis_value_read_sets(struct scenario *scenario, struct axis_value *value,
                          struct config_node *sets, struct sim_error_list *errors);
void axis_value_free(gpointer value);
/* NULL if there is none. */
struct axis_value *axis_value_named(const struct axis *axis, const char *label);
/* One of the axis' setting, `element`, as a value of the file or of scenario->parsed. */
bool axis_add_value_of_setting(struct axis *axis, struct config_node *node, const char *element,
                               struct sim_error_list *errors);
void axis_copy_value(struct axis *axis, const struct axis_value *from, struct config_place place,
                     struct sim_error_list *errors);
/* values = [...], range = { ... }, variants = ( ... ) */
void axis_read_values(struct axis *axis, struct config_node *values, struct sim_error_list *errors);
void axis_read_range(struct scenario *scenario, struct axis *axis, struct config_node *node,
                     struct sim_error_list *errors);
void axis_read_variants(struct scenario *scenario, struct axis *axis, struct config_node *variants,
                        struct sim_error_list *errors);

/* Of the file with its `set`, without what is no part of the system; g_free(). */
char *scenario_digest_base(struct config *base);
void axis_free(gpointer axis);
/* Reads `axes` of the base; what is wrong is left out, with messages. */
void scenario_read_axes(struct scenario *scenario, struct sim_error_list *errors);
/* --set axes.NAME=a,b */
bool scenario_override_axis(struct scenario *scenario, const char *name, const char *values,
                            struct sim_error_list *errors);
/* Tells the base, and so every point, which settings axes set. */
void scenario_tell_axes(struct scenario *scenario);
/* The name of the axis that sets this setting, part of it or what it is part of; NULL: none. */
const char *scenario_axis_of_setting(const struct scenario *scenario, const char *path);
/* The same of axes that name it, not as one of the settings of a file ("@FILE"). */
const char *scenario_axis_naming(const struct scenario *scenario, const char *path);
/* Whether the setting, or its group, is there only once a variant has taken its file. */
bool scenario_set_is_late(const struct scenario *scenario, const char *path);
/* Reads `quick`, "axis=value" each. */
void scenario_read_quick(struct scenario *scenario, struct sim_error_list *errors);
/* Whether axes in lock-step have as many values as each other. */
bool scenario_check_leaders(const struct scenario *scenario, struct sim_error_list *errors);
/* "axis>value || axis=value"; NULL with a message. The caller's. */
struct filter *scenario_read_filter(struct scenario *scenario, struct config_node *node,
                                    struct sim_error_list *errors);
/* Reads `constraints`, such an expression each. */
void scenario_read_constraints(struct scenario *scenario, struct sim_error_list *errors);
/* scenario_where.c: reads `where`, after the axes. */
void scenario_read_where(struct scenario *scenario, struct sim_error_list *errors);
void where_free(gpointer where);
/* Which points each of them holds for, once points are made; one that holds for none is a mistake,
 * if errors is not NULL. */
void scenario_match_where(struct scenario *scenario, struct sim_error_list *errors);
/* Whether one of them sets the setting, part of it or what it is part of. */
bool scenario_where_sets(const struct scenario *scenario, const char *path);
/* True with a message if the setting is one that is read before --set and the values of axes. */
bool scenario_refuse_set(const char *path, struct config_place place,
                         struct sim_error_list *errors);
/* Whether the file that "@name" means is left out: it says nothing that an outline has. */
bool scenario_skips_file(const struct scenario *scenario, const char *name);
/* The file that "@name" means, searched as an included one is (here_first: in the current folder
 * before); NULL with messages. The caller's. */
struct config *scenario_load_set_file(const struct scenario *scenario, const char *name,
                                      struct config_place place, bool here_first,
                                      struct sim_error_list *errors);
/* The combinations of axis values that the constraints leave, and their names. */
void scenario_make_points(struct scenario *scenario, struct sim_error_list *errors);

#endif
