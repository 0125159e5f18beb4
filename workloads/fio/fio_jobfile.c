/*
 * Job files: sections in brackets, keys with or without a value, comments that begin a line with
 * `;` or `#`, `include FILE`, ${VARIABLE} of the environment. [global] sets what jobs below it
 * begin with.
 */
#include <glib.h>
#include <string.h>

#include "sim/config/text.h"
#include "workloads/fio/fio_options.h"

#define INCLUDES_MAX 16u
#define FILES_MAX    1000u /* included, with what they include */

struct fio_strings {
    GStringChunk *chunk;
};

struct fio_strings *fio_strings_new(void)
{
    struct fio_strings *strings = g_new0(struct fio_strings, 1);
    strings->chunk = g_string_chunk_new(1024);
    return strings;
}

void fio_strings_free(struct fio_strings *strings)
{
    if (strings == NULL)
        return;
    g_string_chunk_free(strings->chunk);
    g_free(strings);
}

const char *fio_strings_keep(struct fio_strings *strings, const char *text)
{
    return g_string_chunk_insert(strings->chunk, text);
}

struct reader {
    struct fio_strings *strings;
    struct fio_job_list *jobs;
    struct sim_error_list *errors;
    struct fio_options global;
    struct fio_options *now; /* what settings go to; NULL: no section yet */
    unsigned n_includes;     /* around the file that is being read */
    unsigned n_files;        /* that were included */
    const char *setting;     /* whose value is being read: begins messages; "": none's, a file */
};

static struct fio_options *add_job(struct fio_job_list *jobs, const struct fio_options *from)
{
    struct fio_options *job = sim_zalloc(1, sizeof(*job));
    *job = *from;
    jobs->job = sim_grow(jobs->job, jobs->n_jobs + 1, sizeof(*jobs->job));
    return jobs->job[jobs->n_jobs++] = job;
}

void fio_job_list_release(struct fio_job_list *jobs)
{
    for (unsigned i = 0; i < jobs->n_jobs; i++)
        g_free(jobs->job[i]);
    g_free(jobs->job);
    *jobs = (struct fio_job_list){ 0 };
}

/* Of the environment, as fio does; one that is not set is empty. */
static char *expand(const char *value)
{
    GString *text = g_string_new("");
    const char *at, *end;
    while ((at = strstr(value, "${")) != NULL && (end = strchr(at, '}')) != NULL) {
        g_autofree char *name = g_strndup(at + 2, (size_t)(end - at - 2));
        const char *found = g_getenv(name);
        g_string_append_len(text, value, at - value);
        g_string_append(text, found != NULL ? found : "");
        value = end + 1;
    }
    g_string_append(text, value);
    return g_string_free(text, FALSE);
}

static void set_line(struct reader *reader, const char *file, int line, char *text)
{
    char *equals = strchr(text, '='), *message = NULL;
    g_autofree char *value = equals != NULL ? expand(g_strstrip(equals + 1)) : NULL;
    g_autofree char *fault = value != NULL ? text_fault(value) : NULL; /* also of the environment */
    if (equals != NULL)
        *equals = '\0';
    if (fault != NULL)
        sim_error_add(reader->errors, file, line, "%s%s: found %s, expected text that can be shown",
                      reader->setting, g_strstrip(text), fault);
    else if (reader->now == NULL)
        sim_error_add(reader->errors, file, line,
                      "%s: no section stands above it: [global] or that "
                      "of a job",
                      g_strstrip(text));
    else if (!fio_options_set(reader->now, reader->strings, g_strstrip(text), value, &message))
        sim_error_add(reader->errors, file, line, "%s%s", reader->setting, message);
    g_free(message);
}

static void begin_section(struct reader *reader, const char *file, int line, char *text)
{
    const size_t n = strlen(text);
    if (reader->n_includes != 0 || text[n - 1] != ']' || n == 2) {
        sim_error_add(reader->errors, file, line,
                      reader->n_includes != 0 ? "%s: a file that is included has no sections"
                                              : "%s: expected the name of a section, [NAME]",
                      text);
        return;
    }
    text[n - 1] = '\0';
    if (strcmp(text + 1, "global") == 0) {
        reader->now = &reader->global;
        return;
    }
    reader->now = add_job(reader->jobs, &reader->global);
    if (reader->now->name == NULL) /* name= in [global] names all jobs */
        reader->now->name = fio_strings_keep(reader->strings, text + 1);
    reader->now->file = fio_strings_keep(reader->strings, file);
    reader->now->line = line;
}

static void read_file(struct reader *reader, const char *path, const char *by, int by_line);

static void include(struct reader *reader, const char *file, int line, const char *name)
{
    g_autofree char *folder = g_path_get_dirname(file);
    g_autofree char *path = g_path_is_absolute(name) ? g_strdup(name)
                                                     : g_build_filename(folder, name, NULL);
    if (reader->n_includes == INCLUDES_MAX) {
        sim_error_add(reader->errors, file, line, "include: files include each other");
        return;
    }
    if (++reader->n_files > FILES_MAX) {
        if (reader->n_files == FILES_MAX + 1)
            sim_error_add(reader->errors, file, line, "include: more than %u files are included",
                          FILES_MAX);
        return;
    }
    reader->n_includes++;
    read_file(reader, path, file, line);
    reader->n_includes--;
}

static void read_line(struct reader *reader, const char *file, int line, char *text)
{
    g_strstrip(text);
    if (*text == '\0' || *text == ';' || *text == '#')
        return;
    if (*text == '[')
        begin_section(reader, file, line, text);
    else if (g_str_has_prefix(text, "include ") && strchr(text, '=') == NULL)
        include(reader, file, line, g_strstrip(text + strlen("include ")));
    else
        set_line(reader, file, line, text);
}

static void read_file(struct reader *reader, const char *path, const char *by, int by_line)
{
    const char *why = NULL;
    g_autofree char *contents = text_read(path, &why);
    if (contents == NULL) {
        sim_error_add(reader->errors, by, by_line, "%s: cannot be read: %s", path, why);
        return;
    }
    if (!text_check(contents, path, reader->errors))
        return;
    g_auto(GStrv) line = g_strsplit(contents, "\n", -1);
    for (int i = 0; line[i] != NULL; i++)
        read_line(reader, path, i + 1, line[i]);
}

bool fio_job_file_read(const char *path, struct fio_strings *strings, struct fio_job_list *jobs,
                       struct sim_error_list *errors)
{
    struct sim_error_list own = { 0 };
    struct reader reader = { .strings = strings, .jobs = jobs, .errors = &own, .setting = "" };
    fio_options_default(&reader.global);
    read_file(&reader, path, NULL, 0);
    if (own.n_messages == 0 && jobs->n_jobs == 0)
        sim_error_add(&own, path, 0, "no job: a section besides [global] is one");
    return !sim_error_move(errors, &own);
}

bool fio_job_options_set(const char *text, const char *name, struct fio_override *override,
                         struct fio_strings *strings, struct fio_job_list *jobs,
                         struct sim_error_list *errors)
{
    struct sim_error_list own = { 0 };
    g_autofree char *setting = g_strconcat(override->path, ": ", NULL);
    if (jobs->n_jobs == 0) {
        struct fio_options options;
        fio_options_default(&options);
        options.name = fio_strings_keep(strings, name);
        options.file = override->file;
        options.line = override->line;
        add_job(jobs, &options);
    }
    for (unsigned i = 0; i < jobs->n_jobs; i++) {
        struct fio_options *job = jobs->job[i];
        struct reader reader = {
            .strings = strings, .errors = &own, .now = job, .setting = setting
        };
        g_auto(GStrv) word = g_strsplit_set(text, " \t\n", -1);
        job->override = override;
        job->n_own = job->text != NULL ? strlen(job->text) : 0;
        for (unsigned k = 0; word[k] != NULL; k++)
            if (*word[k] != '\0')
                set_line(&reader, override->file, override->line, word[k]);
    }
    return !sim_error_move(errors, &own);
}
