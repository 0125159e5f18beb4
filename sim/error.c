#include "sim/error.h"

#include <glib.h>
#include <stdarg.h>
#include <string.h>

void sim_error_add(struct sim_error_list *errors, const char *file, int line, const char *fmt, ...)
{
    GString *text = g_string_new(NULL);
    va_list args;

    if (file && line > 0)
        g_string_append_printf(text, "%s:%d: ", file, line);
    else if (file)
        g_string_append_printf(text, "%s: ", file);
    va_start(args, fmt);
    g_string_append_vprintf(text, fmt, args);
    va_end(args);

    for (size_t i = 0; i < errors->n_messages; i++) {
        if (strcmp(errors->message[i], text->str) == 0) {
            g_string_free(text, TRUE);
            return;
        }
    }
    errors->message = g_renew(char *, errors->message, errors->n_messages + 1);
    errors->message[errors->n_messages++] = g_string_free(text, FALSE);
}

void sim_error_release(struct sim_error_list *errors)
{
    for (size_t i = 0; i < errors->n_messages; i++)
        g_free(errors->message[i]);
    g_free(errors->message);
    errors->message = NULL;
    errors->n_messages = 0;
}

void sim_error_print(const struct sim_error_list *errors, FILE *out)
{
    for (size_t i = 0; i < errors->n_messages; i++)
        fprintf(out, "%s\n", errors->message[i]);
}

char *sim_error_join(const struct sim_error_list *errors)
{
    GString *text = g_string_new(NULL);

    for (size_t i = 0; i < errors->n_messages; i++)
        g_string_append_printf(text, "%s%s", i ? "; " : "", errors->message[i]);
    return g_string_free(text, FALSE);
}
