/* What the parts of the configuration share: config*.c and scenario*.c only. */
#ifndef SIM_CONFIG_CONFIG_INTERNAL_H
#define SIM_CONFIG_CONFIG_INTERNAL_H

#include <glib.h>

#include "sim/config/config.h"

enum config_mark {
    CONFIG_UNREAD,
    CONFIG_READ,
    CONFIG_ASIDE /* read, and no part of what is simulated (title, axes, plot) */
};

/* Where a value is written, and what put it into effect if that is not the file itself. */
struct config_place {
    const char *file; /* NULL: nowhere */
    int line;
    const char *origin; /* "--set", "axis memory", or NULL: file:line */
};

struct config_node {
    struct config *config;
    struct config_node *parent;
    const char *name, *path; /* of the tree's strings */
    struct config_place place;
    enum config_kind kind;
    enum config_mark mark;
    bool is_param; /* recorded by config_read_params() */
    bool refused;  /* by config_read_params(): there is a message, the default counts */
    int64_t integer;
    double real;
    bool truth;
    const char *string;
    const char *text;    /* made on demand */
    GPtrArray *children; /* of groups and lists; not owned: all nodes belong to the tree */
    GPtrArray *valid;    /* names that somebody asked for; NULL until then */
    GHashTable *named;   /* of many: the children's indices + 1 by name; NULL: not needed yet */
    GHashTable *asked;   /* of many: the names in `valid`; NULL likewise */
};

/* What a setting is and where it says to come from. Strings are those of the tree. */
struct config_setting {
    struct config_node *node; /* of the value */
    enum param_provenance provenance;
    const char *source;
    const char *fitted_to;     /* calibrated: the claims; NULL */
    const char *machine;       /* whose measurement decided it; NULL */
    const char *on_bound;      /* calibrated: why it lies on the bound of its range; NULL */
    struct config_node *range; /* the two bounds that its source gives; NULL */
    const char *lo, *hi;       /* the same as text, in the unit of the key */
};

/* One parameter as config_read_params() resolved it. */
struct config_resolved {
    const char *path, *value, *unit, *source, *fitted_to, *on_bound, *lo, *hi, *machine;
    const char *origin;        /* "default" and so on */
    const char *settled, *why; /* config_settle(): what came of the default; else NULL */
    enum param_provenance provenance;
    bool is_string, is_default;
    bool idle;                     /* config_idle(): it changes nothing here */
    const struct param_desc *desc; /* NULL: not read through a table */
};

/* What is kept of it: a host has some two hundred, nearly all of them defaults. */
struct config_kept {
    const char *path, *value;
    const struct param_desc *desc;
    struct config_resolved *all; /* owned; NULL: a default, which the others determine */
    bool idle;
};

struct config {
    GStringChunk *strings;
    GPtrArray *nodes; /* owned, replaced ones too, so that pointers stay valid */
    struct config_node *root;
    GHashTable *resolved; /* a set of struct config_kept by path, owned */
    GPtrArray *varied;    /* paths that axes set, in this point or in another; of the strings */
    const char *point;    /* of the scenario; of the strings */
    GArray *outputs;      /* struct config_output */
    GArray *includes;     /* config_note_include(); shared with copies */
};

struct config *config_new(void);
struct config_resolved config_resolved_of(const struct config_kept *kept);
/* What is kept of the parameter at the path; NULL: nothing. */
struct config_kept *config_kept_of(const struct config *config, const char *path);
/* Says which point of its scenario the configuration is. */
void config_name_point(struct config *config, const char *point);
/* Some axis sets this path. */
void config_vary(struct config *config, const char *path);
/* The name (NULL in a list) and place are copied. The node is a child of parent afterwards, unless
 * parent is NULL or replaces_index >= 0, when it takes that child's place. */
struct config_node *config_node_new(struct config *config, struct config_node *parent,
                                    const char *name, enum config_kind kind,
                                    struct config_place place, int replaces_index);
/* Copies value's contents into node, an empty one of its kind. origin NULL: as in value. */
void config_node_fill(struct config_node *node, const struct config_node *value,
                      const char *origin);
/* The child without marking it as read; its index too if wanted. */
struct config_node *config_child_named(const struct config_node *node, const char *name,
                                       unsigned *index);
void config_valid_name(struct config_node *group, const char *name);
/* {value = ...; provenance = ...; ...}: the node of the value, else NULL */
struct config_node *config_value_form(struct config_node *node);
/* Reads a group in that form, but for the value itself. */
bool config_read_value_form(struct config_node *group, struct config_setting *setting,
                            struct sim_error_list *errors);
/* Reads the range of the setting and checks that the value lies within it; a calibrated one has to
 * be off its bounds, and off those of the table. */
bool config_check_range(const struct param_desc *desc, struct config_setting *setting,
                        const struct param_value *value, struct sim_error_list *errors);
/* config_origin(), and for what an axis has put there also where that is written: "axis topology,
 * platforms/x.cfg:12". Of the tree's strings. */
const char *config_full_origin(struct config_node *node);
/* The machine whose measurement decided the value, if that is not the one its host says to be;
 * "default": a calibrated default. NULL: none. */
const char *config_borrowed(const struct config *config, const struct config_resolved *r);
/* The value of a node as the table's entry has it, in range. */
bool config_read_value(const struct param_desc *desc, const struct config_node *node,
                       struct param_value *value, struct sim_error_list *errors);
/* `"four" (a string)`, `4 (an integer)`, `a group` */
char *config_describe(const struct config_node *node);
void config_mark_below(struct config_node *node, enum config_mark mark);
bool config_is_unknown(const struct config_node *parent, const struct config_node *child);
bool config_check_unknown_below(struct config_node *node, struct sim_error_list *errors);

/* ---- Files that are included (config_include.c) ---------------------------------------------- */

/* The path in the first folder that has the file; all of them, for the message, in *searched. */
char *config_find_include(const char *const *dirs, const char *name, GString *searched);
/* The end of a message: files of nearly this name where the name was looked for; g_free() it. */
char *config_include_suggestion(const char *const *dirs, const char *name);
/* A list of where files were included; g_array_unref(). */
GArray *config_includes_new(void);
void config_note_include(GArray *includes, const char *file, const char *group,
                         struct config_place at);
/* In place of those that it has. */
void config_take_includes(struct config *config, GArray *includes);
/* The unknown setting of this index is one of many of a file that is included there: in the wrong
 * group. One message for all of them. False: it is none of many. */
bool config_report_misplaced(const struct config_node *group, unsigned first,
                             struct sim_error_list *errors);

bool config_is_name(const char *text, size_t n);
/* Whether a and b are the same setting, or one is a part of the other. */
bool config_paths_overlap(const char *a, const char *b);
/* False with a message if a string has what cannot be shown: bytes that are no UTF-8 (of escapes),
 * control characters but for tab and newline. */
bool config_string_valid(const char *string, const char *path, struct config_place place,
                         struct sim_error_list *errors);
/* The value as written for --set, made as the only child "value" of a new tree. */
struct config *config_parse_value(const char *text, const char *path, struct config_place place,
                                  struct sim_error_list *errors);
bool config_set_at(struct config *config, const char *path, const char *value,
                   struct config_place place, struct sim_error_list *errors);
/* "path=value", the form of --set and of `set`; false with a message without an "=". */
bool config_split_setting(const char *text, char **path, char **value, struct config_place place,
                          struct sim_error_list *errors);

/* ---- Scanning (config_scan.c) ---------------------------------------------------------------- */

enum config_number { CONFIG_NO_NUMBER, CONFIG_NUMBER_INT, CONFIG_NUMBER_FLOAT };
/* The number that libconfig would see at p; *n characters with its suffix, *long_suffix for L. */
enum config_number config_scan_number(const char *p, size_t *n, bool *long_suffix);
/* The end of blanks and comments, NULL if a comment does not end. */
const char *config_skip_blanks(const char *p);
/* The end of the string that begins at p, NULL if there is none. */
const char *config_string_end(const char *p);
/* Whether an integer has a zero before its digits: 0100, which C reads as 64. */
bool config_leading_zero(const char *p);
#define CONFIG_LEADING_ZERO "%s: found %.40s, expected an integer without a zero before it"
/* False if it does not fit in 64 bits. */
bool config_parse_integer(const char *p, int64_t *value);

/* Before the name, with a number and "*", of a setting that takes the place of an included
 * file's. */
#define CONFIG_AGAIN "*again-"

/* The text of a file and its includes, one token a line, in the form that libconfig reads right. */
struct config_scan {
    GString *text;
    GArray *places;   /* struct config_place of each line of text */
    GArray *includes; /* config_note_include() */
    GStringChunk *strings;
    bool syntax_error; /* text is of no use */
};

/* Reads path, or instead of it `text` (every token of which then has `place`). */
void config_scan(struct config_scan *scan, const char *path, const char *text,
                 struct config_place place, const char *const *include_dirs,
                 struct sim_error_list *errors);
void config_scan_release(struct config_scan *scan);

/* ---- Repetitions (config_repeat.c) ----------------------------------------------------------- */

/* An index of @repeat and its value, a number or a word; those of the repetitions around it are
 * above. */
struct config_index {
    const char *name, *word; /* word NULL: a number */
    size_t n_name, n_word;
    int64_t value;
    const struct config_index *above;
};

struct config_repeat {
    struct config_index index;
    int64_t from, to;       /* of numbers */
    const char *words;      /* what follows the current one; NULL: numbers */
    const char *body, *end; /* from its "{" to behind its "}" */
};

/* Reads the head of the @repeat at text, and where its body ends. Returns NULL, or what is wrong;
 * the caller g_free()s it. */
char *config_repeat_parse(const char *text, struct config_repeat *repeat);
/* Sets the index to its next value; false if there is none. Before the first call there is none. */
bool config_repeat_next(struct config_repeat *repeat);
/* The n characters with {INDEX}, {INDEX+N} and {INDEX-N} replaced; in *why what is wrong, or NULL.
 * The caller g_free()s both. */
char *config_repeat_replace(const char *text, size_t n, const struct config_index *indices,
                            char **why);

/* Tree from the scanned text by libconfig; NULL with messages. Takes over nothing. */
struct config *config_load_scanned(const struct config_scan *scan, struct sim_error_list *errors);

#endif
