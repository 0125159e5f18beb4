/* nudma run --trace-address: one DMA write and one DMA read of a device, from place to place. */
#include "cli/trace/trace_address.h"

#include <string.h>

#include "cli/base/cli.h"
#include "cli/trace/trace_apart.h"
#include "cli/trace/trace_text.h"
#include "models/base/model.h"

/* The number after "write=" or "read="; false: not one. */
static bool parse_number(const char *text, uint64_t *number)
{
    char *end = NULL;
    *number = g_ascii_strtoull(text, &end, 10);
    return g_ascii_isdigit(*text) && *end == '\0' && *number <= UINT32_MAX;
}

static bool parse_part(const char *part, struct experiment_followed *followed, char **device)
{
    if (g_str_has_prefix(part, "write="))
        return parse_number(part + 6, &followed->nth_write);
    if (g_str_has_prefix(part, "read="))
        return parse_number(part + 5, &followed->nth_read);
    if (g_str_has_prefix(part, "bytes="))
        return parse_number(part + 6, &followed->bytes_min);
    if (*device != NULL || *part == '\0' || strchr(part, '=') != NULL)
        return false;
    *device = g_strdup(part);
    return true;
}

bool trace_address_parse(const char *text, struct experiment_followed *followed, char **device)
{
    bool good = true;
    *followed = (struct experiment_followed){ .nth_write = 1, .nth_read = 1 };
    char **parts = g_strsplit(text, ",", -1); /* of "": none */
    for (char **part = parts; *part != NULL && good; part++) {
        good = parse_part(*part, followed, device);
        if (!good)
            fprintf(
                stderr,
                "nudma run: --trace-address: '%s': expected DEVICE, write=N, read=N (the N-th "
                "transfer after the warm-up, 0: none) or bytes=N (of those of N bytes or more)\n",
                *part);
    }
    g_strfreev(parts);
    followed->device = *device;
    if (good && followed->nth_write == 0 && followed->nth_read == 0) {
        fprintf(stderr, "nudma run: --trace-address: write=0,read=0 leaves nothing to follow\n");
        good = false;
    }
    return good;
}

static void print_walk(const struct stamp_trace *trace, enum tlp_trace_walk walk)
{
    const char *kind = walk == TLP_TRACE_WRITE ? "write" : "read";
    if (trace->nth[walk] == 0)
        return;
    g_autofree char *text = trace_text(trace, walk);
    if (*text != '\0')
        printf("\nDMA %s %" G_GUINT64_FORMAT " after the warm-up\n%s", kind, trace->nth[walk],
               text);
    else
        printf("\nno DMA %s %" G_GUINT64_FORMAT ": there were %" G_GUINT64_FORMAT "\n", kind,
               trace->nth[walk], trace->seen[walk]);
}

static int follow(const struct plan *plan, uint64_t seed,
                  const struct experiment_followed *followed)
{
    const struct plan_point *point = plan_point(plan, 0);
    const char *name = plan_point_name(point);
    struct sim_error_list errors = { 0 };
    g_autofree char *error = NULL;
    struct config *config = scenario_point(point->scenario, point->index, &errors);
    struct stamp_trace *trace =
        config == NULL ? NULL : experiment_follow(config, seed, followed, NULL, &errors, &error);
    int status = CLI_FAILED;
    if (errors.n_messages != 0) {
        status = CLI_WRONG;
        cli_report(&errors);
    } else if (trace == NULL) {
        fprintf(stderr, "%s %s seed %" G_GUINT64_FORMAT ": %s\n", scenario_name(point->scenario),
                name, seed, error);
    } else {
        const char *device = followed->device != NULL ? followed->device : trace->device_name;
        printf("%s%s%s, seed %" G_GUINT64_FORMAT "\ndevice %s\n", scenario_name(point->scenario),
               *name != '\0' ? " " : "", name, seed, *device != '\0' ? device : "none: no DMA");
        print_walk(trace, TLP_TRACE_WRITE);
        print_walk(trace, TLP_TRACE_READ);
        status = trace->n_records != 0 ? CLI_DONE : CLI_FAILED;
    }
    tlp_trace_free(trace);
    config_free(config);
    return status;
}

struct request {
    const struct plan *plan;
    uint64_t seed;
    const struct experiment_followed *followed;
};

static int follow_request(const void *arg)
{
    const struct request *r = arg;
    return follow(r->plan, r->seed, r->followed);
}

int trace_address_run(const struct plan *plan, uint64_t seed,
                      const struct experiment_followed *followed)
{
    return trace_apart(follow_request, &(struct request){ plan, seed, followed });
}
