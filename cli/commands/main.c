/* nudma: finds the subcommand, and sees that what it printed has arrived. */
#include <errno.h>
#include <locale.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/base/cli.h"
#include "cli/base/last_words.h"

static const struct cli_command commands[] = {
    { "run", "run the points of scenarios and store the results", cli_run },
    { "init", "write a commented scenario to begin with", cli_init },
    { "list", "list the scenarios", cli_list },
    { "describe", "describe models and workloads: parameters, statistics", cli_describe },
    { "topology", "show hosts, devices and cables of a scenario", cli_topology },
    { "explain", "say what limits a point, and what would come next", cli_explain },
    { "import", "write a scenario of a real server from what lspci, lstopo, dmidecode say",
      cli_import },
    { "measure", "say what to measure on a real server, and take it into its platform",
      cli_measure },
    { "merge", "join results databases, of shards or of other machines", cli_merge },
    { "plot", "plot results beside what was measured", cli_plot },
    { "figures", "plot every scenario that has results, as PNG and SVG", cli_figures },
    { "check", "compare results with published claims", cli_check },
    { "whatif", "ask what a change does, and hold it against what is expected", cli_whatif },
    { "results", "show results as tables", cli_results },
    { "export", "write results as CSV or JSON", cli_export },
    { "diff", "compare two databases of results", cli_diff },
    { "report", "write one HTML page: figures, claims, topologies, parameters", cli_report_page },
    { "calibrate", "fit parameters to published baselines; sensitivity of claims", cli_calibrate },
};

static void print_help(FILE *out)
{
    fputs("usage: nudma COMMAND [OPTION...] [ARGUMENT...]\n\n"
          "A simulator of DMA across sockets, hosts and copy engines.\n\n",
          out);
    for (size_t i = 0; i < SIM_N_ELEMENTS(commands); i++)
        fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].help);
    fputs("\nnudma COMMAND --help says more; nudma --version prints the version.\n"
          "Begin with: nudma init; nudma list; nudma run pcie_bench/latency_size\n",
          out);
}

static const struct cli_command *command_named(const char *name)
{
    for (size_t i = 0; i < SIM_N_ELEMENTS(commands); i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static const struct cli_command *find_command(const char *name)
{
    const char *names[SIM_N_ELEMENTS(commands) + 1] = { NULL };
    const struct cli_command *command = command_named(name);
    if (command != NULL)
        return command;
    for (size_t i = 0; i < SIM_N_ELEMENTS(commands); i++)
        names[i] = commands[i].name;
    g_autofree char *suggestion = sim_suggestion(name, names);
    fprintf(stderr, "nudma: no command \"%s\"%s%s (see nudma --help)\n", name,
            *suggestion != '\0' ? "; " : "", suggestion);
    return NULL;
}

/* argv[1] is an option: says where options stand, with the command if one follows. */
static int refuse_option_first(int argc, char **argv)
{
    int at = 2;
    while (at < argc && command_named(argv[at]) == NULL)
        at++;
    g_autofree char *name = g_strndup(argv[1], strcspn(argv[1], "="));
    if (at < argc && strcmp(name, "--scenarios") != 0) { /* perhaps the command does not have it */
        fprintf(stderr,
                "nudma: %s: options stand behind the command (nudma %s --help shows those of %s)\n",
                name, argv[at], argv[at]);
        return CLI_WRONG;
    }
    g_autoptr(GString) words = g_string_new(at < argc ? argv[at] : "COMMAND");
    for (int i = 1; i < at; i++)
        g_string_append_printf(words, " %s", argv[i]);
    fprintf(stderr, "nudma: %s: options stand behind the command: nudma %s%s (see nudma --help)\n",
            argv[1], words->str, at + 1 < argc ? " ..." : "");
    return CLI_WRONG;
}

/* Patterns, names and messages are text in UTF-8. */
static bool arguments_are_text(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (g_utf8_validate(argv[i], -1, NULL))
            continue;
        g_autofree char *escaped = g_strescape(argv[i], NULL);
        fprintf(stderr, "nudma: argument %d, \"%s\", is not in UTF-8\n", i, escaped);
        return false;
    }
    return true;
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return CLI_WRONG;
    }
    if (!arguments_are_text(argc, argv))
        return CLI_WRONG;
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        (strcmp(argv[1], "help") == 0 && argc == 2)) {
        print_help(stdout);
        return CLI_DONE;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-v") == 0) {
        cli_print_version();
        return CLI_DONE;
    }
    if (argv[1][0] == '-')
        return refuse_option_first(argc, argv);
    const bool asks = strcmp(argv[1], "help") == 0; /* "help run" is "run --help" */
    const struct cli_command *command = find_command(argv[asks ? 2 : 1]);
    if (command == NULL)
        return CLI_WRONG;
    g_autofree char *program = g_strconcat("nudma ", command->name, NULL);
    g_set_prgname(program);
    char *help[] = { argv[0], (char[]){ "--help" }, NULL };
    return asks ? command->run(2, help) : command->run(argc - 1, argv + 1);
}

static bool nobody_reads(void)
{
    struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };
    return poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP)) != 0;
}

/* Nobody reads any more (nudma ... | head): that is no fault. A full disk is, also where an earlier
 * write has failed, whose errno is gone. */
static int flush_output(int status)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    const int error = errno;
    if (error == EPIPE || (error == 0 && nobody_reads()))
        return status;
    fprintf(stderr, "nudma: cannot write the output: %s\n",
            error != 0 ? g_strerror(error)
                       : "not all of it can be written (is the disk full, or ulimit -f too low?)");
    return status == CLI_DONE ? CLI_FAILED : status;
}

/* Large blocks are given back whenever they are freed, where malloc() would learn to keep them: the
 * tags of a cache are zero pages that are there once they are touched (models/numa/cache.c), and
 * what the heap of a worker keeps of a run counts as the next one's. Of small ones so much is kept.
 */
static void set_up_heap(void)
{
    mallopt(M_MMAP_THRESHOLD, 512 << 10);
    mallopt(M_TRIM_THRESHOLD, 16 << 20);
}

/* Where both go into one file or pipe, what is printed and what is said stay in their order. */
static void set_up_output(void)
{
    struct stat out, error;
    if (fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &error) == 0 &&
        out.st_dev == error.st_dev && out.st_ino == error.st_ino)
        setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
}

int main(int argc, char **argv)
{
    /* characters of the terminal; numbers stay as scenarios, SQL and gnuplot write them */
    setlocale(LC_CTYPE, "");
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow (ulimit -f) is a disk that is full */
    set_up_heap();
    set_up_output();
    last_words_set_up();
    return flush_output(dispatch(argc, argv));
}
