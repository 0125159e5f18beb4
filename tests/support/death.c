#include "tests/support/death.h"

int death_status(void (*fn)(void), char *words, size_t bytes)
{
    int pipe_fd[2], status = 0;
    size_t n = 0;
    ssize_t got;

    fflush(NULL);
    assert_int_equal(pipe(pipe_fd), 0);
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit no_core = { 0, 0 };

        setrlimit(RLIMIT_CORE, &no_core);
        dup2(pipe_fd[1], STDERR_FILENO);
        close(pipe_fd[0]);
        close(pipe_fd[1]);
        fn();
        _exit(0);
    }
    close(pipe_fd[1]);
    while (n + 1 < bytes && (got = read(pipe_fd[0], words + n, bytes - 1 - n)) > 0)
        n += (size_t)got;
    words[n] = '\0';
    close(pipe_fd[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

void assert_aborts(void (*fn)(void), ...)
{
    char words[16384];
    int status = death_status(fn, words, sizeof(words));
    const char *text;
    va_list texts;

    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
        fail_msg("did not abort (status %d): %s", status, words);
    va_start(texts, fn);
    while ((text = va_arg(texts, const char *)) != NULL) {
        if (strstr(words, text) == NULL)
            fail_msg("\"%s\" is missing in: %s", text, words);
    }
    va_end(texts);
}
