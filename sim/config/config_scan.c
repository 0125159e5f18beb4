/*
 * Reads a file with its includes before libconfig does, token by token.
 *
 * libconfig 1.5 truncates integers beyond 32 bits without the suffix L, knows @include only at the
 * beginning of a line, says no more than "syntax error", gives a string in a list the line of what
 * follows it, and loses memory on some errors. So tokens and brackets are checked here, and
 * libconfig gets the tokens one a line, with a table of where each line came from.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/config/config_internal.h"
#include "sim/config/text.h"

#define MAX_INCLUDES 16                  /* files open at once */
#define MAX_BRACKETS 64                  /* open at once */
#define MAX_REPEATS  50000               /* in a file with all that it includes */
#define MAX_FILES    20000               /* included, with what they include */
#define MAX_TOTAL    (16U * 1024 * 1024) /* bytes of tokens, with what it includes and repeats */
#define MAX_SETTINGS 20000 /* in a group: libconfig compares each with all before it */
#define MAX_NESTED   16    /* repetitions in each other */

/* What the grammar allows next. */
enum expect { EXPECT_NAME, EXPECT_ASSIGN, EXPECT_VALUE, EXPECT_AFTER };

struct bracket {
    char open;
    struct config_place place;
    bool empty;       /* nothing in it so far */
    unsigned n;       /* settings in a group so far */
    const char *name; /* of the setting, NULL for an element of a list */
    unsigned index;   /* of the element that is being read, in a list */
};

/* A file being read; the one that includes it is above. */
struct source {
    const struct source *above;
    unsigned depth;
    const char *path;
    const char *p; /* the next character */
    struct config_place place;
    bool fixed;                         /* the place of every token is the same (--set) */
    const struct config_index *indices; /* of the repetitions around it in this file */
};

/* Where a setting was last set, and in how deep an include. */
struct known {
    struct config_place place;
    struct config_place included; /* of the @include of its file; line 0: there is none */
    unsigned depth;
    const char *value; /* its only token; NULL: a group, a list, strings side by side */
};

struct scanner {
    struct config_scan *scan;
    struct sim_error_list *errors;
    const char *const *include_dirs;
    struct bracket brackets[MAX_BRACKETS];
    unsigned n_brackets;
    unsigned n_outer;             /* brackets opened outside of the innermost file or repetition */
    unsigned n_repeats, n_nested; /* repetitions so far; those that are open */
    unsigned n_files;             /* included so far */
    const char *name;             /* of the setting that is being read, where a group is open */
    struct known *known;          /* the same; NULL where none has just been named */
    struct known twice;           /* that a file names which the one that set it includes */
    bool is_twice;
    unsigned n_top;               /* settings outside of all groups */
    GHashTable *set;              /* path of each setting -> struct known, owned */
    unsigned depth;               /* of includes; 0 in the file itself */
    struct config_place included; /* of the @include of the file that is read; line 0: none */
    unsigned n_again;             /* settings that replace what an included file set */
    enum expect expect;
    struct config_place long_string; /* where the last one of several lines began; line 0: none */
    int long_string_ends;            /* its last line */
    bool after_string;               /* the last token was a string */
    bool may_separate;               /* the last token ended a setting: ";" or "," may follow */
};

static void scan_source(struct scanner *s, struct source *source);

__attribute__((format(printf, 3, 4))) static void
syntax_error(struct scanner *s, struct config_place place, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    g_autofree char *text = g_strdup_vprintf(fmt, args);
    va_end(args);
    const bool in_string = s->long_string.line > 0 && s->long_string_ends == place.line &&
                           s->long_string.file == place.file;
    g_autofree char *where =
        in_string ? g_strdup_printf("; a string that ends in this line began in line %d, where its "
                                    "\" may be missing",
                                    s->long_string.line)
                  : g_strdup("");
    sim_error_add(s->errors, place.file, place.line, "%s%s", text, where);
    s->scan->syntax_error = true;
}

static bool in_group(const struct scanner *s)
{
    return s->n_brackets == 0 || s->brackets[s->n_brackets - 1].open == '{';
}

/* The path of the setting that is being read; the caller g_free()s it. */
static char *path_here(const struct scanner *s)
{
    GString *path = g_string_new(NULL);

    for (unsigned i = 0; i <= s->n_brackets; i++) {
        const struct bracket *above = i ? &s->brackets[i - 1] : NULL;
        const char *name = i < s->n_brackets ? s->brackets[i].name : s->name;

        if (path->len)
            g_string_append_c(path, '.');
        if (above && above->open != '{')
            g_string_append_printf(path, "[%u]", above->index);
        else
            g_string_append(path, name ? name : "");
    }
    return g_string_free(path, FALSE);
}

/* ---- Numbers --------------------------------------------------------------------------------- */

enum config_number config_scan_number(const char *p, size_t *n, bool *long_suffix)
{
    const char *start = p, *exponent;
    bool is_float = false;
    unsigned n_digits = 0;

    *long_suffix = false;
    if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X') && g_ascii_isxdigit(p[2])) {
        for (p += 2; g_ascii_isxdigit(*p); p++)
            ;
    } else {
        p += *p == '-' || *p == '+';
        for (; g_ascii_isdigit(*p) || (*p == '.' && !is_float); p++) {
            is_float |= *p == '.';
            n_digits += *p != '.';
        }
        if (n_digits == 0)
            return CONFIG_NO_NUMBER;
        exponent = p + 1 + (*p && (p[1] == '-' || p[1] == '+'));
        if ((*p == 'e' || *p == 'E') && g_ascii_isdigit(*exponent)) {
            is_float = true;
            for (p = exponent; g_ascii_isdigit(*p); p++)
                ;
        }
    }
    for (int i = 0; i < 2 && !is_float && *p == 'L'; i++, p++)
        *long_suffix = true;
    *n = (size_t)(p - start);
    return is_float ? CONFIG_NUMBER_FLOAT : CONFIG_NUMBER_INT;
}

bool config_leading_zero(const char *p)
{
    p += *p == '-' || *p == '+';
    return p[0] == '0' && g_ascii_isdigit(p[1]);
}

bool config_parse_integer(const char *p, int64_t *value)
{
    bool hex = p[0] == '0' && (p[1] == 'x' || p[1] == 'X');

    errno = 0;
    *value = hex ? (int64_t)strtoull(p, NULL, 16) : strtoll(p, NULL, 10);
    return errno == 0 && !(hex && *value < 0);
}

/* "64 GiB" for 68719476736, "" if no binary unit fits */
static const char *as_size(int64_t value, char *buffer, size_t n)
{
    static const char *const symbols[] = { "KiB", "MiB", "GiB", "TiB" };

    buffer[0] = '\0';
    for (size_t i = SIM_N_ELEMENTS(symbols); i-- > 0;) {
        int64_t unit = INT64_C(1) << (10 * (i + 1));

        if (value > 0 && value % unit == 0) {
            snprintf(buffer, n, ", or write \"%" PRId64 " %s\" if it is a size", value / unit,
                     symbols[i]);
            break;
        }
    }
    return buffer;
}

/* Refuses what libconfig would truncate, and goes on with the value meant, so that what else is
 * wrong is found as well. The token that libconfig reads right; the caller g_free()s it. */
static char *checked_integer(struct scanner *s, struct config_place place, const char *token,
                             bool long_suffix)
{
    g_autofree char *path = path_here(s);
    char size[64];
    int64_t value = 0;

    if (config_leading_zero(token)) {
        syntax_error(s, place, CONFIG_LEADING_ZERO, path, token);
    } else if (!config_parse_integer(token, &value)) {
        syntax_error(s, place, "%s: found %.40s, expected an integer of at most 64 bits", path,
                     token);
        value = 0;
    } else if (!long_suffix && (value < INT32_MIN || value > INT32_MAX)) {
        sim_error_add(s->errors, place.file, place.line,
                      "%s: found %s, an integer beyond 32 bits without a suffix: add L (%sL)%s",
                      path, token, token, as_size(value, size, sizeof(size)));
        long_suffix = true;
    }
    return g_strdup_printf("%" PRId64 "%s", value, long_suffix ? "L" : "");
}

static char *checked_float(struct scanner *s, struct config_place place, const char *token)
{
    g_autofree char *path = path_here(s);

    if (!isfinite(g_ascii_strtod(token, NULL)))
        syntax_error(s, place, "%s: found %.40s, expected a number that a double holds", path,
                     token);
    return g_strdup(token);
}

/* ---- Output ---------------------------------------------------------------------------------- */

/* A token on a line of its own, except what follows a string: libconfig gives the string the line
 * of the token after it. */
static void emit(struct scanner *s, struct config_place place, const char *token, size_t n,
                 bool same_line)
{
    GString *text = s->scan->text;

    if (!same_line || s->scan->places->len == 0) {
        if (s->scan->places->len)
            g_string_append_c(text, '\n');
        g_array_append_val(s->scan->places, place);
    } else {
        g_string_append_c(text, ' ');
    }
    for (size_t i = 0; i < n; i++) {
        if (token[i] == '\n')
            g_array_append_val(s->scan->places, place);
    }
    g_string_append_len(text, token, (gssize)n);
}

/* ---- Grammar --------------------------------------------------------------------------------- */

static const char *const expect_text[] = {
    [EXPECT_NAME] = "the name of a setting",
    [EXPECT_ASSIGN] = "\"=\" or \":\" after the name of a setting",
    [EXPECT_VALUE] = "a value",
    [EXPECT_AFTER] = "\",\" or the end of the list",
};

static void unexpected(struct scanner *s, struct config_place place, const char *token, size_t n)
{
    if (!g_ascii_isprint(*token)) {
        syntax_error(s, place, "syntax error: found a character 0x%02x outside of a string",
                     (unsigned char)*token);
        return;
    }
    syntax_error(s, place, "syntax error: found %s%.*s%s, expected %s", *token == '"' ? "" : "\"",
                 (int)SIM_MIN(n, 40U), token, *token == '"' ? "" : "\"", expect_text[s->expect]);
}

/* A value has ended: what follows it depends on what it stands in. */
static void value_done(struct scanner *s)
{
    s->expect = in_group(s) ? EXPECT_NAME : EXPECT_AFTER;
    s->may_separate = in_group(s);
    if (s->n_brackets)
        s->brackets[s->n_brackets - 1].empty = false;
}

static void set_twice(struct scanner *s, const struct known *before, const struct known *now);

/* What a file has set before its @include, the included one may only say once more: the same. */
static void check_value(struct scanner *s, const char *token, size_t n, bool adjacent)
{
    if (s->known == NULL)
        return;
    const char *value = adjacent ? NULL
                                 : g_string_chunk_insert_len(s->scan->strings, token, (gssize)n);
    if (!s->is_twice)
        s->known->value = value;
    else if (g_strcmp0(s->known->value, value) != 0 || value == NULL)
        set_twice(s, s->known, &s->twice);
}

static void take_value(struct scanner *s, struct config_place place, const char *token, size_t n)
{
    bool is_string = *token == '"', adjacent = is_string && s->after_string;

    if (s->expect != EXPECT_VALUE && !adjacent) {
        unexpected(s, place, token, n);
        return;
    }
    check_value(s, token, n, adjacent);
    emit(s, place, token, n, adjacent);
    value_done(s);
    s->after_string = is_string;
}

static void take_open(struct scanner *s, struct config_place place, char open)
{
    if (s->expect != EXPECT_VALUE) {
        unexpected(s, place, &open, 1);
        return;
    }
    if (s->n_brackets == MAX_BRACKETS) {
        syntax_error(s, place, "groups and lists nested deeper than %d", MAX_BRACKETS);
        return;
    }
    if (s->is_twice && in_group(s))
        set_twice(s, s->known, &s->twice);
    s->known = NULL;
    s->is_twice = false;
    s->brackets[s->n_brackets] = (struct bracket){
        .open = open, .place = place, .empty = true, .name = in_group(s) ? s->name : NULL
    };
    s->n_brackets++;
    /* libconfig's arrays refuse 1 next to 1L; for us they are lists like any other */
    emit(s, place, open == '[' ? "(" : &open, 1, false);
    s->expect = open == '{' ? EXPECT_NAME : EXPECT_VALUE;
    s->after_string = s->may_separate = false;
}

static void take_close(struct scanner *s, struct config_place place, char close)
{
    struct bracket *bracket = s->n_brackets > s->n_outer ? &s->brackets[s->n_brackets - 1] : NULL;
    char open = close == '}' ? '{' : (close == ')' ? '(' : '[');

    if (!bracket || bracket->open != open) {
        if (bracket)
            syntax_error(s, place, "syntax error: found \"%c\", but \"%c\" of line %d is open",
                         close, bracket->open, bracket->place.line);
        else
            syntax_error(s, place, "syntax error: found \"%c\" without \"%c\"", close, open);
        return;
    }
    if (s->expect != (close == '}' ? EXPECT_NAME : EXPECT_AFTER) && !bracket->empty) {
        unexpected(s, place, &close, 1);
        return;
    }
    emit(s, place, close == ']' ? ")" : &close, 1, s->after_string);
    s->known = NULL;
    s->is_twice = false;
    s->n_brackets--;
    value_done(s);
    s->after_string = false;
}

/* Punctuation: = : ; , */
static void take_mark(struct scanner *s, struct config_place place, char mark)
{
    bool assign = mark == '=' || mark == ':';
    bool separates = (mark == ';' || mark == ',') && s->may_separate;
    bool next_element = mark == ',' && s->expect == EXPECT_AFTER;

    if (assign && s->expect == EXPECT_ASSIGN) {
        emit(s, place, "=", 1, false);
        s->expect = EXPECT_VALUE;
    } else if (separates) {
        emit(s, place, ";", 1, s->after_string);
    } else if (next_element) {
        emit(s, place, ",", 1, s->after_string);
        s->brackets[s->n_brackets - 1].index++;
        s->expect = EXPECT_VALUE;
    } else {
        unexpected(s, place, &mark, 1);
    }
    s->after_string = s->may_separate = false;
}

static void append_place(GString *text, const char *words, struct config_place place)
{
    if (place.line > 0)
        g_string_append_printf(text, "%s%s%s%d", words, place.file ? place.file : "",
                               place.file ? ":" : "line ", place.line);
}

/* Both places, and where files are included in which they lie: one file may be included twice. */
static void set_twice(struct scanner *s, const struct known *before, const struct known *now)
{
    g_autoptr(GString) where = g_string_new(NULL);
    g_autofree char *path = path_here(s);

    append_place(where, " at ", before->place);
    append_place(where, ", included at ", before->included);
    append_place(where, "; this file is included at ", now->included);
    /* A group that was not closed takes the settings behind it. */
    const struct bracket *group = s->n_brackets ? &s->brackets[s->n_brackets - 1] : NULL;
    if (group && group->open == '{' && group->place.line < now->place.line &&
        before->place.line < now->place.line && !before->included.line && !now->included.line)
        append_place(where, ", in a group that may lack its end, begun at ", group->place);
    syntax_error(s, now->place,
                 "%s: is set already%s; what an included file sets may be set again below "
                 "the @include, in the file that includes it, or by set = ( \"path=value\" ); "
                 "within @repeat, names need its index",
                 path, where->str);
}

/* A name may be set once only, and libconfig does not say where it was; but a file may set again
 * what a file sets that it includes, and that one may say the same once more (check_value()). True
 * if it is set again. */
static bool know_setting(struct scanner *s, struct config_place place)
{
    unsigned *n = s->n_brackets ? &s->brackets[s->n_brackets - 1].n : &s->n_top;
    g_autofree char *path = path_here(s);
    struct known *before = g_hash_table_lookup(s->set, path);
    const struct known now = { place, s->included, s->depth, NULL };

    s->known = before;
    s->twice = now;
    s->is_twice = before && before->depth < s->depth;
    if (s->is_twice)
        return true;
    if (before && before->depth > s->depth) {
        *before = now;
        return true;
    }
    if (before) {
        set_twice(s, before, &now);
    } else if (++*n > MAX_SETTINGS) {
        syntax_error(s, place, "%s: more than %d settings in one group", path, MAX_SETTINGS);
    } else {
        s->known = g_memdup2(&now, sizeof(now));
        g_hash_table_insert(s->set, g_steal_pointer(&path), s->known);
    }
    return false;
}

static void take_name(struct scanner *s, struct config_place place, const char *token, size_t n)
{
    bool is_bool = (n == 4 && g_ascii_strncasecmp(token, "true", 4) == 0) ||
                   (n == 5 && g_ascii_strncasecmp(token, "false", 5) == 0);

    if (is_bool && s->expect == EXPECT_VALUE) {
        take_value(s, place, token, n);
        return;
    }
    if (is_bool || s->expect != EXPECT_NAME) {
        if (s->expect == EXPECT_VALUE)
            syntax_error(s, place,
                         "syntax error: found %.*s, expected a value; strings stand in "
                         "quotes: \"%.*s\"",
                         (int)SIM_MIN(n, 40U), token, (int)SIM_MIN(n, 40U), token);
        else
            unexpected(s, place, token, n);
        return;
    }
    s->name = g_string_chunk_insert_len(s->scan->strings, token, (gssize)n);
    if (know_setting(s, place) || g_str_has_prefix(s->name, CONFIG_AGAIN)) {
        /* libconfig refuses a name that is there: config_load_scanned() takes the mark off, also
         * off a name that has one of its own */
        g_autofree char *again = g_strdup_printf("%s%u*%s", CONFIG_AGAIN, s->n_again++, s->name);
        emit(s, place, again, strlen(again), false);
    } else {
        emit(s, place, token, n, false);
    }
    if (s->n_brackets)
        s->brackets[s->n_brackets - 1].empty = false;
    s->expect = EXPECT_ASSIGN;
    s->after_string = s->may_separate = false;
}

/* ---- Characters ------------------------------------------------------------------------------ */

static void advance(struct source *source, const char *to)
{
    for (; source->p < to; source->p++)
        source->place.line += *source->p == '\n' && !source->fixed;
}

static bool is_name_char(char c)
{
    return g_ascii_isalnum(c) || c == '-' || c == '_' || c == '*';
}

bool config_is_name(const char *text, size_t n)
{
    if (n == 0 || !(g_ascii_isalpha(*text) || *text == '*'))
        return false;
    for (size_t i = 1; i < n; i++) {
        if (!is_name_char(text[i]))
            return false;
    }
    return true;
}

const char *config_skip_blanks(const char *p)
{
    for (;;) {
        if (*p && strchr(" \t\n\r\f", *p)) {
            p++;
        } else if (*p == '#' || (p[0] == '/' && p[1] == '/')) {
            p += strcspn(p, "\n");
        } else if (p[0] == '/' && p[1] == '*') {
            p = strstr(p + 2, "*/");
            if (!p)
                return NULL;
            p += 2;
        } else {
            return p;
        }
    }
}

const char *config_string_end(const char *p)
{
    for (p++; *p && *p != '"'; p++) {
        if (*p == '\\' && p[1])
            p++;
    }
    return *p ? p + 1 : NULL;
}

/* "GB/s", but no comment that begins behind a number: how long is it? */
static size_t unit_length(const char *p)
{
    size_t n = 0;

    while (is_name_char(p[n]) || p[n] == '.' || (p[n] == '/' && p[n + 1] != '/' && p[n + 1] != '*'))
        n++;
    return n;
}

static void take_number(struct scanner *s, struct source *source, size_t n, bool is_int,
                        bool long_suffix)
{
    const char *behind = source->p + n;
    size_t n_unit = unit_length(behind);

    if (n_unit) {
        g_autofree char *path = path_here(s);

        syntax_error(s, source->place,
                     "%s: found %.*s: a quantity with its unit is a string, \"%.*s %.*s\"", path,
                     (int)SIM_MIN(n + n_unit, 40U), source->p, (int)SIM_MIN(n, 40U), source->p,
                     (int)SIM_MIN(n_unit, 40U), behind);
        advance(source, behind + n_unit);
        return;
    }
    g_autofree char *token = g_strndup(source->p, n);
    g_autofree char *checked = is_int ? checked_integer(s, source->place, token, long_suffix)
                                      : checked_float(s, source->place, token);
    take_value(s, source->place, checked, strlen(checked));
    advance(source, behind);
}

/* The token with the indices of repetitions replaced; NULL with a message. g_free() */
static char *replaced(struct scanner *s, const struct source *source, size_t n)
{
    g_autofree char *why = NULL;
    char *token = config_repeat_replace(source->p, n, source->indices, &why);

    if (why)
        syntax_error(s, source->place, "%s", why);
    else if (s->n_nested == MAX_NESTED)
        syntax_error(s, source->place, "repetitions nested deeper than %d", MAX_NESTED);
    if (why)
        g_clear_pointer(&token, g_free);
    return token;
}

static void take_string(struct scanner *s, struct source *source)
{
    const char *end = config_string_end(source->p);
    g_autofree char *token = NULL;

    if (!end) {
        syntax_error(s, source->place, "a string that does not end");
        source->p = "";
        return;
    }
    if (!source->indices)
        take_value(s, source->place, source->p, (size_t)(end - source->p));
    else if ((token = replaced(s, source, (size_t)(end - source->p))) != NULL)
        take_value(s, source->place, token, strlen(token));
    const struct config_place begun = source->place;
    advance(source, end);
    if (source->place.line > begun.line) {
        s->long_string = begun;
        s->long_string_ends = source->place.line;
    }
}

/* A name, in a repetition with indices in braces: link{i+1}. */
static void take_word(struct scanner *s, struct source *source)
{
    const char *p = source->p;
    g_autofree char *token = NULL;
    size_t n = 0;

    while (is_name_char(p[n]) || (source->indices && p[n] == '{'))
        n += p[n] == '{' ? strcspn(p + n, "}\n") + (p[n + strcspn(p + n, "}\n")] == '}') : 1;
    if (!source->indices)
        take_name(s, source->place, p, n);
    else if ((token = replaced(s, source, n)) != NULL && !config_is_name(token, strlen(token)))
        syntax_error(s, source->place, "syntax error: found \"%.40s\", expected %s", token,
                     expect_text[EXPECT_NAME]);
    else if (token != NULL)
        take_name(s, source->place, token, strlen(token));
    source->p += n;
}

/* ---- Files ----------------------------------------------------------------------------------- */

static bool include_allowed(struct scanner *s, const struct source *source, const char *path)
{
    for (const struct source *above = source; above; above = above->above) {
        if (strcmp(above->path, path) == 0) {
            syntax_error(s, source->place, "%s includes itself", path);
            return false;
        }
    }
    if (source->depth == MAX_INCLUDES) {
        syntax_error(s, source->place, "includes nested deeper than %d", MAX_INCLUDES);
        return false;
    }
    if (s->n_files++ == MAX_FILES) {
        syntax_error(s, source->place, "more than %d files are included", MAX_FILES);
        return false;
    }
    return true;
}

/* Its settings are whole, or the file that includes it would be blamed for what is missing. */
static void scan_included(struct scanner *s, struct source *included)
{
    const unsigned n_outer = s->n_outer;
    const guint n_tokens = s->scan->places->len;

    s->n_outer = s->n_brackets;
    scan_source(s, included);
    if (!s->scan->syntax_error && s->n_brackets > s->n_outer)
        syntax_error(s, s->brackets[s->n_brackets - 1].place,
                     "syntax error: \"%c\" without its end in this file",
                     s->brackets[s->n_brackets - 1].open);
    if (!s->scan->syntax_error && s->scan->places->len > n_tokens &&
        (s->expect == EXPECT_ASSIGN || (s->expect == EXPECT_VALUE && in_group(s))))
        syntax_error(s,
                     g_array_index(s->scan->places, struct config_place, s->scan->places->len - 1),
                     "syntax error: the file ends, expected %s", expect_text[s->expect]);
    s->n_outer = n_outer;
}

static void note_include(struct scanner *s, const char *path, struct config_place at)
{
    s->name = NULL;
    g_autofree char *group = path_here(s);
    if (g_str_has_suffix(group, ".")) /* behind which the name of a setting would follow */
        group[strlen(group) - 1] = 0;
    config_note_include(s->scan->includes, path, group, at);
}

static void include_file(struct scanner *s, struct source *source, const char *name)
{
    g_autoptr(GString) searched = g_string_new(NULL);
    g_autofree char *path = config_find_include(s->include_dirs, name, searched), *text = NULL;
    const char *why = NULL;

    if (!path) {
        g_autofree char *suggestion = config_include_suggestion(s->include_dirs, name);

        syntax_error(s, source->place, "cannot include \"%s\": no such file in %s%s", name,
                     searched->len ? searched->str : "any folder", suggestion);
    } else if (include_allowed(s, source, path)) {
        text = text_read(path, &why);
        if (text && !text_check(text, path, s->errors)) {
            s->scan->syntax_error = true;
        } else if (text) {
            struct source included = { .above = source,
                                       .depth = source->depth + 1,
                                       .path = path,
                                       .p = text,
                                       .place = { .line = 1 } };

            const struct config_place outer = s->included;

            included.place.file = g_string_chunk_insert_const(s->scan->strings, path);
            s->included = source->place;
            note_include(s, path, source->place);
            s->depth++;
            scan_included(s, &included);
            s->depth--;
            s->included = outer;
        } else {
            syntax_error(s, source->place, "cannot include \"%s\": %s: %s", name, path, why);
        }
    }
}

/* @include "name" */
static void take_include(struct scanner *s, struct source *source)
{
    const char *word = "@include", *p = source->p, *end = NULL;

    if (g_str_has_prefix(p, word)) {
        p += strlen(word);
        p += strspn(p, " \t");
        end = *p == '"' ? config_string_end(p) : NULL;
    }
    if (!end || end - p < 3) {
        syntax_error(
            s, source->place,
            "syntax error: expected @include \"file\" or @repeat i = FIRST to LAST { ... }");
        source->p = "";
        return;
    }
    g_autofree char *name = g_strndup(p + 1, (size_t)(end - p - 2));
    include_file(s, source, name);
    advance(source, end);
}

/* ---- Repetitions ----------------------------------------------------------------------------- */

/* The body once, of complete settings or elements; its places are those of the file. */
static void scan_body(struct scanner *s, const struct source *source, const char *body,
                      const struct config_index *index)
{
    struct source once = *source;
    const unsigned n_outer = s->n_outer;
    const bool in_list = !in_group(s);
    const bool nothing_yet = s->expect == EXPECT_VALUE;

    if (in_list && s->expect == EXPECT_AFTER)
        take_mark(s, source->place, ',');
    once.p = body;
    once.indices = index;
    s->n_outer = s->n_brackets;
    s->after_string = false; /* strings do not join across the braces */
    scan_source(s, &once);
    s->after_string = false;
    if (!s->scan->syntax_error && s->n_brackets != s->n_outer)
        syntax_error(s, s->brackets[s->n_brackets - 1].place,
                     "syntax error: \"%c\" without its end in @repeat",
                     s->brackets[s->n_brackets - 1].open);
    if (!s->scan->syntax_error && s->expect != (in_list ? EXPECT_AFTER : EXPECT_NAME) &&
        !(in_list && nothing_yet && s->brackets[s->n_brackets - 1].empty))
        syntax_error(s, once.place, "syntax error: the body of @repeat ends, expected %s",
                     expect_text[s->expect]);
    s->n_outer = n_outer;
}

/* @repeat i = 0 to 9 { ... }, where a setting or an element of a list may stand. */
static void take_repeat(struct scanner *s, struct source *source)
{
    struct config_repeat repeat;
    g_autofree char *why = config_repeat_parse(source->p, &repeat);

    if (why == NULL && s->expect != (in_group(s) ? EXPECT_NAME : EXPECT_VALUE))
        unexpected(s, source->place, "@repeat", strlen("@repeat"));
    if (why)
        syntax_error(s, source->place, "%s", why);
    else if (s->n_nested == MAX_NESTED)
        syntax_error(s, source->place, "repetitions nested deeper than %d", MAX_NESTED);
    if (s->scan->syntax_error)
        return;
    advance(source, repeat.body + 1);
    g_autofree char *body = g_strndup(source->p, (size_t)(repeat.end - 1 - source->p));
    repeat.index.above = source->indices;
    s->n_nested++;
    while (!s->scan->syntax_error && config_repeat_next(&repeat)) {
        if (s->n_repeats++ == MAX_REPEATS)
            syntax_error(s, source->place, "more than %d repetitions", MAX_REPEATS);
        else
            scan_body(s, source, body, &repeat.index);
    }
    s->n_nested--;
    advance(source, repeat.end);
}

static void take_token(struct scanner *s, struct source *source)
{
    const char *p = source->p;
    char c = *p;
    size_t n = 0;
    bool long_suffix;
    enum config_number number = config_scan_number(p, &n, &long_suffix);

    if (number != CONFIG_NO_NUMBER) {
        take_number(s, source, n, number == CONFIG_NUMBER_INT, long_suffix);
        return;
    }
    if (c == '"') {
        take_string(s, source);
    } else if (g_str_has_prefix(p, "@repeat")) {
        take_repeat(s, source);
    } else if (c == '@') {
        take_include(s, source);
    } else if (g_ascii_isalpha(c) || c == '*' ||
               (c == '{' && source->indices && s->expect == EXPECT_NAME)) {
        take_word(s, source);
    } else if (strchr("{([", c)) {
        take_open(s, source->place, c);
        source->p++;
    } else if (strchr("})]", c)) {
        take_close(s, source->place, c);
        source->p++;
    } else {
        take_mark(s, source->place, c);
        source->p++;
    }
}

/* The first syntax error of a file ends its reading: what follows would be guesswork. */
static void scan_source(struct scanner *s, struct source *source)
{
    while (!s->scan->syntax_error) {
        const char *next = config_skip_blanks(source->p);

        if (s->scan->text->len > MAX_TOTAL) {
            syntax_error(s, source->place,
                         "with what it includes and repeats the file is larger than %u MiB",
                         MAX_TOTAL >> 20);
            return;
        }
        if (!next) {
            syntax_error(s, source->place, "a comment that does not end");
            return;
        }
        advance(source, next);
        if (*next == '\0')
            return;
        take_token(s, source);
    }
}

void config_scan(struct config_scan *scan, const char *path, const char *text,
                 struct config_place place, const char *const *include_dirs,
                 struct sim_error_list *errors)
{
    struct scanner s = { .scan = scan, .errors = errors, .include_dirs = include_dirs };
    struct source source = { .path = path ? path : "", .place = place, .fixed = text != NULL };
    const char *why = NULL;
    g_autofree char *content = text ? g_strdup(text) : text_read(path, &why);

    *scan = (struct config_scan){ .text = g_string_new(NULL),
                                  .places = g_array_new(FALSE, FALSE, sizeof(place)),
                                  .includes = config_includes_new(),
                                  .strings = g_string_chunk_new(256) };
    if (!content) {
        sim_error_add(errors, path, 0, "cannot be read: %s", why);
        scan->syntax_error = true;
        return;
    }
    if (!text && !text_check(content, path, errors)) {
        scan->syntax_error = true;
        return;
    }
    source.p = content;
    if (!text) {
        source.place = (struct config_place){
            .file = g_string_chunk_insert_const(scan->strings, path), .line = 1
        };
    }
    s.set = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    scan_source(&s, &source);
    g_hash_table_destroy(s.set);
    if (!scan->syntax_error && s.n_brackets)
        syntax_error(&s, s.brackets[s.n_brackets - 1].place, "syntax error: \"%c\" without its end",
                     s.brackets[s.n_brackets - 1].open);
    if (!scan->syntax_error && s.expect != EXPECT_NAME)
        syntax_error(&s, source.place, "syntax error: the file ends, expected %s",
                     expect_text[s.expect]);
}

void config_scan_release(struct config_scan *scan)
{
    g_string_free(scan->text, TRUE);
    g_array_free(scan->places, TRUE);
    g_array_unref(scan->includes);
    g_string_chunk_free(scan->strings);
}
