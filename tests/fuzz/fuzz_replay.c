#include "tests/fuzz/fuzz_replay.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

#define CORPUS "tests/fuzz/corpus/"

struct replay {
    const char *name;
    const void *context;
    fuzz_play_fn *play;
    size_t bytes_max;
};

/* In memory of its own size, so that sanitizers see what lies beyond its end. */
static int play(const struct replay *replay, const char *path)
{
    uint8_t *data = malloc(replay->bytes_max);
    FILE *file = fopen(path, "rb");
    if (file == NULL || data == NULL) {
        fprintf(stderr, "%s: cannot be read\n", path);
        free(data);
        return 0;
    }
    const size_t bytes = fread(data, 1, replay->bytes_max, file);
    fclose(file);
    uint8_t *exact = realloc(data, bytes != 0 ? bytes : 1);
    data = exact != NULL ? exact : data;
    replay->play(replay->context, data, bytes);
    free(data);
    return 1;
}

static int is_input(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* One case for all files: an input that fails ends the program, and its name is the last one
 * said. */
static int play_corpus(const struct replay *replay)
{
    char folder[80], path[400];
    struct dirent **entry;
    snprintf(folder, sizeof(folder), CORPUS "%s", replay->name);
    const int n = scandir(folder, &entry, is_input, alphasort);
    int n_done = 0;
    printf("1..1\n");
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, entry[i]->d_name);
        fprintf(stderr, "%s\n", path);
        n_done += play(replay, path);
        free(entry[i]);
    }
    if (n > 0)
        free(entry);
    printf("%s 1 - %d inputs of %s\n", n > 0 && n_done == n ? "ok" : "not ok", n_done, folder);
    return n > 0 && n_done == n ? 0 : 1;
}

int fuzz_replay_all(const char *name, fuzz_play_fn *play_one, const void *context, size_t bytes_max,
                    int argc, char **argv)
{
    const struct replay replay = { name, context, play_one, bytes_max };
    int n_failed = 0;
    if (argc == 1)
        return play_corpus(&replay);
    for (int i = 1; i < argc; i++)
        n_failed += !play(&replay, argv[i]);
    return n_failed != 0;
}

static void play_operations(const void *target, const uint8_t *data, size_t bytes)
{
    fuzz_input(target, data, bytes);
}

int fuzz_replay(const struct fuzz_target *target, int argc, char **argv)
{
    return fuzz_replay_all(target->name, play_operations, target,
                           FUZZ_OPS_MAX * sizeof(struct fuzz_op), argc, argv);
}
