/*
 * @repeat INDEX = FROM to TO { ... } and @repeat INDEX = WORD, WORD { ... }: what is in the braces,
 * once for each value of the index. In names and strings within, {INDEX}, {INDEX+N} and {INDEX-N}
 * stand for it.
 */
#include <inttypes.h>
#include <string.h>

#include "sim/config/config_internal.h"

#define MAX_TIMES  1000 /* a repetition */
#define MAX_NUMBER 1000000

/* The digits at *p, not negative; false if there are none or the number is too large. */
static bool take_digits(const char **p, int64_t *value)
{
    const char *start = *p;

    for (*value = 0; g_ascii_isdigit(**p) && *value <= MAX_NUMBER; (*p)++)
        *value = 10 * *value + (**p - '0');
    return *p != start && *value <= MAX_NUMBER;
}

static size_t word_length(const char *p)
{
    size_t n = 0;

    while (g_ascii_isalnum(p[n]) || p[n] == '_')
        n++;
    return n;
}

/* ---- The head -------------------------------------------------------------------------------- */

/* Behind the word and the blanks after it, or NULL. */
static const char *after_word(const char *p, const char *word)
{
    if (p == NULL || !g_str_has_prefix(p, word))
        return NULL;
    return config_skip_blanks(p + strlen(word));
}

/* The same of a word that blanks have to follow. */
static const char *after_name(const char *p, const char *word)
{
    const char *after = after_word(p, word);
    return after != NULL && after != p + strlen(word) ? after : NULL;
}

/* Behind the brace that closes the one at p, or NULL. */
static const char *body_end(const char *p)
{
    for (unsigned depth = 0; *p;) {
        const char *next = config_skip_blanks(p);

        if (next == NULL || *next == '\0')
            return NULL;
        depth += *next == '{';
        depth -= *next == '}';
        if (*next == '}' && depth == 0)
            return next + 1;
        p = *next == '"' ? config_string_end(next) : next + 1;
        if (p == NULL)
            return NULL;
    }
    return NULL;
}

/* Behind the words and the commas between them, or NULL. */
static const char *words_end(const char *p)
{
    for (; p != NULL && g_ascii_isalpha(*p); p = after_word(p, ",")) {
        p = config_skip_blanks(p + word_length(p));
        if (p == NULL || *p != ',')
            return p;
    }
    return NULL;
}

/* FROM to TO; behind it, or NULL. */
static const char *numbers_end(const char *p, struct config_repeat *repeat)
{
    if (p == NULL || !take_digits(&p, &repeat->from))
        return NULL;
    p = after_name(config_skip_blanks(p), "to");
    return p != NULL && take_digits(&p, &repeat->to) ? config_skip_blanks(p) : NULL;
}

char *config_repeat_parse(const char *text, struct config_repeat *repeat)
{
    const char *p = after_name(text, "@repeat");
    struct config_index *index = &repeat->index;

    *repeat = (struct config_repeat){ .index = { .name = p, .value = -1 } };
    index->n_name = p != NULL && g_ascii_isalpha(*p) ? word_length(p) : 0;
    p = index->n_name > 0 ? after_word(config_skip_blanks(p + index->n_name), "=") : NULL;
    if (p != NULL && g_ascii_isalpha(*p))
        repeat->words = p;
    repeat->body = repeat->words != NULL ? words_end(p) : numbers_end(p, repeat);
    if (repeat->body == NULL || *repeat->body != '{')
        return g_strdup(
            "syntax error: expected @repeat INDEX = FROM to TO { ... } or @repeat INDEX "
            "= WORD, WORD { ... }");
    repeat->end = body_end(repeat->body);
    if (repeat->end == NULL)
        return g_strdup("syntax error: the \"{\" of @repeat has no end");
    index->value = repeat->from - 1;
    if (repeat->from > repeat->to)
        return g_strdup_printf("@repeat %.*s: from %" PRId64 " to %" PRId64
                               ", expected the smaller number first",
                               (int)index->n_name, index->name, repeat->from, repeat->to);
    if (repeat->to - repeat->from >= MAX_TIMES)
        return g_strdup_printf("@repeat %.*s: %" PRId64 " times, expected at most %d",
                               (int)index->n_name, index->name, repeat->to - repeat->from + 1,
                               MAX_TIMES);
    return NULL;
}

bool config_repeat_next(struct config_repeat *repeat)
{
    struct config_index *index = &repeat->index;
    const char *comma;

    if (repeat->words == NULL)
        return index->word == NULL && ++index->value <= repeat->to;
    index->word = repeat->words;
    index->n_word = word_length(index->word);
    comma = config_skip_blanks(index->word + index->n_word);
    repeat->words = *comma == ',' ? config_skip_blanks(comma + 1) : NULL;
    return true;
}

/* ---- Names and strings within ---------------------------------------------------------------- */

static const struct config_index *find_index(const struct config_index *index, const char *name,
                                             size_t n)
{
    while (index != NULL && (index->n_name != n || memcmp(index->name, name, n) != 0))
        index = index->above;
    return index;
}

static char *unknown_index(const char *name, size_t n, const struct config_index *index)
{
    GString *why = g_string_new(NULL);

    g_string_append_printf(why, "{%.*s}: no index of @repeat has this name; expected", (int)n,
                           name);
    for (; index != NULL; index = index->above)
        g_string_append_printf(why, " {%.*s}%s", (int)index->n_name, index->name,
                               index->above != NULL ? "," : "");
    return g_string_free(why, FALSE);
}

char *config_repeat_replace(const char *text, size_t n, const struct config_index *indices,
                            char **why)
{
    GString *out = g_string_new(NULL);
    const char *end = text + n;

    *why = NULL;
    for (const char *p = text; p < end && *why == NULL;) {
        if (*p != '{') {
            g_string_append_c(out, *p++);
            continue;
        }
        const char *name = ++p;
        const size_t n_name = word_length(p);
        const struct config_index *index = find_index(indices, name, n_name);
        p += n_name;
        const char sign = *p;
        int64_t offset = 0;
        bool good = true;
        if (sign == '+' || sign == '-') {
            p++;
            good = take_digits(&p, &offset);
        }
        if (index == NULL) {
            *why = unknown_index(name, n_name, indices);
        } else if (!good || *p != '}' || (index->word != NULL && p != name + n_name)) {
            const char *close = memchr(name, '}', (size_t)(end - name));
            const long shown = close != NULL ? close + 1 - name : SIM_MIN(end - name, 40);
            *why = g_strdup_printf("{%.*s: expected {%.*s}, and of numbers {%.*s+N} or {%.*s-N}",
                                   (int)shown, name, (int)n_name, name, (int)n_name, name,
                                   (int)n_name, name);
        } else if (index->word != NULL) {
            g_string_append_len(out, index->word, (gssize)index->n_word);
            p++;
        } else {
            const int64_t value = index->value + (sign == '-' ? -offset : offset);
            g_string_append_printf(out, "%" PRId64, value);
            p++;
            if (value < 0)
                *why = g_strdup_printf(
                    "{%.*s}: %" PRId64 " for %.*s = %" PRId64 ", expected no negative number",
                    (int)(p - 1 - name), name, value, (int)n_name, name, index->value);
        }
    }
    return g_string_free(out, FALSE);
}
