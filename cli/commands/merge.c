/* nudma merge: joins databases of shards and of other machines. */
#include <inttypes.h>

#include "cli/base/cli.h"

/* Every source is looked at before anything is written. */
static int check_sources(const char *target, char **sources)
{
    int status = CLI_DONE;
    for (; *sources != NULL; sources++) {
        g_autofree char *message = NULL;
        if (cli_same_file(target, *sources)) {
            fprintf(stderr, "nudma merge: %s: is the database to be written too\n", *sources);
            return CLI_WRONG;
        }
        results_close(results_open(*sources, true, &message));
        if (message != NULL) {
            fprintf(stderr, "%s\n", message);
            status = CLI_FAILED;
        }
    }
    return status;
}

static bool merge(struct results_db *db, const char *source)
{
    struct results_merged merged;
    g_autofree char *message = NULL;
    if (!results_merge(db, source, &merged, &message)) {
        fprintf(stderr, "%s\n", message);
        return false;
    }
    printf("%s: %" PRIu64 " runs joined, %" PRIu64 " were there already\n", source, merged.n_joined,
           merged.n_there);
    if (merged.n_different > 0)
        fprintf(stderr,
                "%s: %" PRIu64 " of them have other results than the same runs there, which were "
                "kept\n",
                source, merged.n_different);
    return merged.n_different == 0;
}

static int merge_all(char *target, char **sources)
{
    const struct cli_options of_target = { .db = target };
    int status = cli_folder_exists("", target) ? check_sources(target, sources) : CLI_WRONG;
    if (status != CLI_DONE)
        return status;
    struct results_db *db = cli_open_for_writing(&of_target);
    if (db == NULL)
        return CLI_FAILED;
    for (; *sources != NULL; sources++) {
        if (!merge(db, *sources))
            status = CLI_FAILED;
    }
    results_close(db);
    return status;
}

int cli_merge(int argc, char **argv)
{
    struct cli_options options = { 0 };
    int status = CLI_DONE;
    if (cli_parse(
            &options, "TARGET.db SOURCE.db...", "Adds to TARGET.db the runs of other databases.",
            "A run that is there already (the same scenario, point, seed, version and "
            "configuration) is not added.\nEach source is joined in one transaction; TARGET.db "
            "is made if it does not exist.",
            NULL, argc, argv, &status)) {
        if (options.db_said) {
            fprintf(stderr,
                    "nudma merge: --db %s: expected the database to be written as the "
                    "first argument\n",
                    options.db);
            status = CLI_WRONG;
        } else if (options.arguments[0] == NULL || options.arguments[1] == NULL) {
            fprintf(stderr, "nudma merge: expected TARGET.db SOURCE.db... (see --help)\n");
            status = CLI_WRONG;
        } else {
            status = merge_all(options.arguments[0], options.arguments + 1);
        }
    }
    cli_options_release(&options);
    return status;
}
