/* Only what a handler of a signal may do happens in it. */
#include "cli/base/last_words.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "cli/base/cli.h"
#include "sim/engine/sanitizer.h"

#define N_FILES     8u
#define STACK_BYTES (32u << 10)

static struct {
    const char *volatile incomplete[N_FILES]; /* NULL: free */
    pid_t of;                                 /* children do not own them */
} files;

void last_words_remove(const char *path)
{
    files.of = getpid();
    for (unsigned i = 0; i < N_FILES; i++)
        if (files.incomplete[i] == NULL) {
            files.incomplete[i] = path;
            return;
        }
}

void last_words_keep(const char *path)
{
    for (unsigned i = 0; i < N_FILES; i++)
        if (files.incomplete[i] == path)
            files.incomplete[i] = NULL;
}

static struct {
    const char *volatile text;
    pid_t of; /* children have nothing to say */
} stopped;

static void put(const char *text)
{
    /* A message that cannot be written is lost: there is nobody to tell. */
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        return;
}

static _Noreturn void end(const char *why)
{
    for (unsigned i = 0; i < N_FILES && files.of == getpid(); i++)
        if (files.incomplete[i] != NULL)
            unlink(files.incomplete[i]);
    put("nudma: out of memory");
    put(why[0] != '\0' ? ": " : "");
    put(why);
    put("\n");
    _exit(CLI_FAILED);
}

/* GLib says so before it stops the process: what it would do to print that needs memory and
 * locks. */
static void note(const gchar *domain, GLogLevelFlags level, const gchar *message, gpointer unused)
{
    (void)unused;
    if ((level & G_LOG_LEVEL_ERROR) != 0 && strstr(message, "failed to allocate") != NULL)
        end(message);
    g_log_default_handler(domain, level, message, NULL);
}

/* The C library has noted that there was no memory, and nothing has gone well since, or errno would
 * rarely be the same. What is none of these dies of the signal: its handler is in place only
 * once. */
static void handle(int number)
{
    (void)number;
    if (errno == ENOMEM)
        end("");
}

void last_words_set_up(void)
{
    /* GLib calls itself without end to report that it cannot report; that needs another stack. */
    static char stack[STACK_BYTES];
    const stack_t alternate = { .ss_sp = stack, .ss_size = sizeof(stack) };
    const struct sigaction action = { .sa_handler = handle,
                                      .sa_flags = SA_ONSTACK | (int)SA_RESETHAND };
    g_log_set_default_handler(note, NULL);
    sigaltstack(&alternate, NULL);
    sigaction(SIGTRAP, &action, NULL);
    sigaction(SIGABRT, &action, NULL);
    if (!SIM_ASAN) /* which has a handler of its own */
        sigaction(SIGSEGV, &action, NULL);
}

static void handle_stop(int number)
{
    (void)number;
    if (stopped.of == getpid() && stopped.text != NULL) {
        put(stopped.text);
        put("\n");
    }
    _exit(CLI_INTERRUPTED);
}

void last_words_if_stopped(const char *text)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
    const struct sigaction action = { .sa_handler = text != NULL ? handle_stop : SIG_DFL };
    stopped.of = getpid();
    stopped.text = text;
    for (size_t i = 0; i < SIM_N_ELEMENTS(signals); i++) {
        struct sigaction before;
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
    }
}
