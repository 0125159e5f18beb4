/*
 * What a what-if measures: a metric, or an expression over metrics and numbers with + - * / ( ),
 * every word apart, since names of metrics hold dots and may hold any other sign.
 */
#include <math.h>
#include <string.h>

#include "cli/whatif/whatif.h"

static bool is_sign(const char *word, const char *signs)
{
    return word[1] == '\0' && strchr(signs, word[0]) != NULL;
}

/* Decimal and finite; NAN: it is none. */
static double number_of(const char *word)
{
    char *end = NULL;
    const double value = g_ascii_strtod(word, &end);
    const bool decimal = g_ascii_isdigit(word[0]) && strpbrk(word, "xX") == NULL;
    return decimal && *end == '\0' && isfinite(value) ? value : (double)NAN;
}

static bool is_number(const char *word)
{
    return !isnan(number_of(word));
}

bool whatif_word_is_metric(const char *word)
{
    return *word != '\0' && !is_number(word) && !is_sign(word, "+-*/()");
}

char *whatif_metric_fault(const char *metric)
{
    g_auto(GStrv) words = g_strsplit(metric, " ", 0);
    bool wants_operand = true, any = false;
    int depth = 0;
    for (char **word = words; *word != NULL; word++) {
        if (**word == '\0')
            continue;
        const bool opens = is_sign(*word, "("), closes = is_sign(*word, ")");
        const bool operand = opens || is_number(*word) || whatif_word_is_metric(*word);
        if (operand != wants_operand)
            return g_strdup_printf("found \"%s\", expected %s", *word,
                                   wants_operand ? "a metric, a number or (" : "+, -, *, / or )");
        any = any || whatif_word_is_metric(*word);
        depth += opens ? 1 : closes ? -1 : 0;
        if (depth < 0)
            return g_strdup("a ) without its (");
        wants_operand = opens || (!operand && !closes);
    }
    if (wants_operand || !any)
        return g_strdup(any ? "an operand is missing at its end" : "names no metric");
    return depth > 0 ? g_strdup("a ( without its )") : NULL;
}

/* With an exponent: of integers, SQL's 1 / 2 is 0. */
static void append_sign_or_number(GString *sql, const char *word)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    if (is_number(word))
        word = g_ascii_formatd(text, sizeof(text), "%.17e", number_of(word));
    g_string_append_printf(sql, " %s ", word);
}

char *whatif_metric_sql(const char *metric, const char *scenario, const char *point)
{
    GString *sql = g_string_new(NULL);
    g_auto(GStrv) words = g_strsplit(metric, " ", 0);
    for (char **word = words; *word != NULL; word++) {
        if (!whatif_word_is_metric(*word)) {
            append_sign_or_number(sql, *word);
            continue;
        }
        const char *const texts[] = { scenario, point, *word };
        g_string_append(sql, "v(");
        for (unsigned i = 0; i < G_N_ELEMENTS(texts); i++) {
            g_auto(GStrv) parts = g_strsplit(texts[i], "'", 0); /* a quote of a setting */
            g_autofree char *text = g_strjoinv("''", parts);
            g_string_append_printf(sql, "%s'%s'", i > 0 ? "," : "", text);
        }
        g_string_append(sql, ")");
    }
    return g_string_free(sql, FALSE);
}
