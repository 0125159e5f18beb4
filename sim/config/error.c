#include "sim/config/error.h"

#include <glib.h>
#include <stdarg.h>
#include <string.h>

/* Where a message's mistake is; the file's name is how the message begins. */
struct sim_error_place {
    size_t n_file; /* characters of it; 0: no file */
    int line;
};

/* A terminal would do what control characters of a found text say: a "?" for each byte. */
static void make_printable(char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c; c++) {
        if (g_ascii_iscntrl((gchar)*c) && *c != '\n' && *c != '\t')
            *c = '?';
        else if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0) /* U+0080 to U+009F in UTF-8 */
            c[0] = c[1] = '?';
    }
}

/* Takes the text over. */
static void add(struct sim_error_list *errors, struct sim_error_place place, char *text)
{
    if (!errors->known)
        errors->known = g_hash_table_new(g_str_hash, g_str_equal);
    if (g_hash_table_contains(errors->known, text)) {
        g_free(text);
        return;
    }
    g_hash_table_add(errors->known, text);
    const size_t n = errors->n_messages;
    if ((n & (n - 1)) == 0) { /* there is room for the next power of two */
        errors->message = g_renew(char *, errors->message, MAX(2 * n, 1));
        errors->place = g_renew(struct sim_error_place, errors->place, MAX(2 * n, 1));
    }
    errors->place[n] = place;
    errors->message[n] = text;
    errors->n_messages++;
}

void sim_error_add(struct sim_error_list *errors, const char *file, int line, const char *fmt, ...)
{
    const struct sim_error_place place = { .n_file = file ? strlen(file) : 0, .line = line };
    GString *text = g_string_new(NULL);
    va_list args;

    if (file && line > 0)
        g_string_append_printf(text, "%s:%d: ", file, line);
    else if (file)
        g_string_append_printf(text, "%s: ", file);
    va_start(args, fmt);
    g_string_append_vprintf(text, fmt, args);
    va_end(args);
    make_printable(text->str);
    add(errors, place, g_string_free(text, FALSE));
}

bool sim_error_move(struct sim_error_list *errors, struct sim_error_list *more)
{
    const bool any = more->n_messages > 0;

    if (more->known)
        g_hash_table_remove_all(more->known); /* before the texts are another's */
    for (size_t i = 0; i < more->n_messages; i++) {
        add(errors, more->place[i], more->message[i]);
        more->message[i] = NULL;
    }
    sim_error_release(more);
    return any;
}

/* Takes the text over. */
static void replace(struct sim_error_list *errors, size_t i, char *text)
{
    g_hash_table_remove(errors->known, errors->message[i]);
    g_hash_table_add(errors->known, text);
    g_free(errors->message[i]);
    errors->message[i] = text;
}

void sim_error_append(struct sim_error_list *errors, size_t i, const char *text)
{
    replace(errors, i, g_strconcat(errors->message[i], text, NULL));
}

const char *sim_error_text(const struct sim_error_list *errors, size_t i)
{
    const char *message = errors->message[i];
    const size_t n_file = errors->place[i].n_file;
    const char *end = n_file > 0 ? strstr(message + n_file, ": ") : NULL;

    return end ? end + 2 : message;
}

void sim_error_set_place(struct sim_error_list *errors, size_t i, const char *place)
{
    const char *message = errors->message[i], *rest = sim_error_text(errors, i);
    char *text;

    if (rest > message)
        text = g_strdup_printf("%s: %s (%.*s)", place, rest, (int)(rest - message - 2), message);
    else
        text = g_strdup_printf("%s: %s", place, message);
    make_printable(text);
    errors->place[i] = (struct sim_error_place){ .n_file = strlen(place) };
    replace(errors, i, text);
}

void sim_error_release(struct sim_error_list *errors)
{
    if (errors->known)
        g_hash_table_destroy(errors->known);
    errors->known = NULL;
    for (size_t i = 0; i < errors->n_messages; i++)
        g_free(errors->message[i]);
    g_free(errors->message);
    g_free(errors->place);
    errors->message = NULL;
    errors->place = NULL;
    errors->n_messages = 0;
}

/* Of message numbers, in a list: by file, by line, as found. */
static gint by_place(gconstpointer a, gconstpointer b, gpointer list)
{
    const size_t i = *(const size_t *)a, j = *(const size_t *)b;
    const struct sim_error_list *errors = list;
    const struct sim_error_place *p = &errors->place[i], *q = &errors->place[j];
    int order;

    if ((p->n_file == 0) != (q->n_file == 0))
        return p->n_file == 0 ? 1 : -1;
    order = strncmp(errors->message[i], errors->message[j], MIN(p->n_file, q->n_file));
    if (order == 0 && p->n_file != q->n_file)
        return p->n_file < q->n_file ? -1 : 1;
    if (order == 0 && p->n_file != 0 && p->line != q->line)
        return p->line < q->line ? -1 : 1;
    if (order == 0)
        return i < j ? -1 : i > j;
    return order;
}

/* Of "FILE:LINE: PATH.NAME: REST": "FILE:LINE: .NAME: REST"; g_free(). NULL: it is no mistake of a
 * setting. Mistakes of which this is the same are one, in a part that stands in several places:
 * what @repeat writes for each index, or a file that several groups include. */
static char *without_path(const struct sim_error_list *errors, size_t i)
{
    const char *message = errors->message[i], *dot = NULL;
    const char *text = message + errors->place[i].n_file;
    const char *from = errors->place[i].line > 0 ? strstr(text, ": ") : NULL;
    const char *colon = from != NULL ? strstr(from + 2, ": ") : NULL;

    if (colon == NULL)
        return NULL;
    for (const char *p = from + 2; p < colon; p++) {
        if (*p == ' ')
            return NULL;
        if (*p == '.')
            dot = p;
    }
    return dot ? g_strdup_printf("%.*s%s", (int)(from + 2 - message), message, dot) : NULL;
}

void sim_error_print(const struct sim_error_list *errors, FILE *out)
{
    size_t n_same = 0;
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(size_t));
    g_autoptr(GArray) order = g_array_new(FALSE, FALSE, sizeof(size_t));
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

    for (size_t i = 0; i < errors->n_messages; i++)
        g_array_append_val(all, i);
    g_array_sort_with_data(all, by_place, (gpointer)(uintptr_t)errors);
    for (guint i = 0; i < all->len; i++) {
        const size_t at = g_array_index(all, size_t, i);
        char *key = without_path(errors, at);

        if (key == NULL || g_hash_table_add(seen, key))
            g_array_append_val(order, at);
        else
            n_same++;
    }
    for (guint i = 0; i < MIN(order->len, SIM_ERRORS_PRINTED); i++)
        fprintf(out, "%s\n", errors->message[g_array_index(order, size_t, i)]);
    if (n_same > 0)
        fprintf(out, "%zu more are the same, of the same lines in other places\n", n_same);
    if (order->len > SIM_ERRORS_PRINTED)
        fprintf(out, "and %u mistakes more\n", order->len - SIM_ERRORS_PRINTED);
}

char *sim_error_join(const struct sim_error_list *errors)
{
    GString *text = g_string_new(NULL);

    for (size_t i = 0; i < errors->n_messages; i++)
        g_string_append_printf(text, "%s%s", i ? "; " : "", errors->message[i]);
    return g_string_free(text, FALSE);
}
