#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CORPUS          "tests/fuzz/corpus/"
#define INPUT_BYTES_MAX (FUZZ_OPS_MAX * sizeof(struct fuzz_op))

static int replay(const struct fuzz_target *target, const char *path)
{
    uint8_t data[INPUT_BYTES_MAX];
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fprintf(stderr, "%s: cannot be read\n", path);
        return 0;
    }
    const size_t bytes = fread(data, 1, sizeof(data), file);
    fclose(file);
    fuzz_input(target, data, bytes);
    return 1;
}

static int is_input(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* One case for all files: an input that fails ends the program, and its name is the last one said. */
static int replay_corpus(const struct fuzz_target *target)
{
    char folder[80], path[400];
    struct dirent **entry;
    snprintf(folder, sizeof(folder), CORPUS "%s", target->name);
    const int n = scandir(folder, &entry, is_input, alphasort);
    int n_done = 0;
    printf("1..1\n");
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, entry[i]->d_name);
        fprintf(stderr, "%s\n", path);
        n_done += replay(target, path);
        free(entry[i]);
    }
    if (n > 0)
        free(entry);
    printf("%s 1 - %d inputs of %s\n", n > 0 && n_done == n ? "ok" : "not ok", n_done, folder);
    return n > 0 && n_done == n ? 0 : 1;
}

int fuzz_replay(const struct fuzz_target *target, int argc, char **argv)
{
    int n_failed = 0;
    if (argc == 1)
        return replay_corpus(target);
    for (int i = 1; i < argc; i++)
        n_failed += !replay(target, argv[i]);
    return n_failed != 0;
}
