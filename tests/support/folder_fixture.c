#include "tests/support/folder_fixture.h"

int set_up(void **state)
{
    struct fixture *f = g_new0(struct fixture, 1);

    f->before = g_get_current_dir();
    f->folder = g_dir_make_tmp("nudma-test-XXXXXX", NULL);
    *state = f;
    return f->folder ? g_chdir(f->folder) : -1;
}

static void remove_below(const char *path)
{
    GDir *dir = g_dir_open(path, 0, NULL);
    const char *name;

    while (dir && (name = g_dir_read_name(dir))) {
        char *full = g_build_filename(path, name, NULL);

        remove_below(full);
        g_free(full);
    }
    if (dir)
        g_dir_close(dir);
    g_remove(path);
}

int tear_down(void **state)
{
    struct fixture *f = *state;
    int result = g_chdir(f->before);

    remove_below(f->folder);
    sim_error_release(&f->errors);
    g_free(f->folder);
    g_free(f->before);
    g_free(f);
    return result;
}

void write_file(const char *path, const char *text)
{
    char *folder = g_path_get_dirname(path);

    assert_int_equal(g_mkdir_with_parents(folder, 0755), 0);
    assert_true(g_file_set_contents(path, text, -1, NULL));
    g_free(folder);
}
