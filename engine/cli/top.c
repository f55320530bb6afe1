/* top.c - gpipe top: the live lines of a pipeline that runs elsewhere. */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/live.h"

static atomic_bool drawn;              /* lines that a signal has to remove */

static void on_signal(int signal)
{
    ssize_t ignored = atomic_load(&drawn) ? write(STDOUT_FILENO, "\r\033[J", 4) : 0;
    (void)ignored;
    _exit(128 + signal);
}

/* One object. False: nobody reads what is written, or an error. */
static bool show(const gp_args *args, gp_screen *screen, gp_glance *v, const char *line,
                 gp_errs *errs)
{
    gp_arena a = { 0 };
    jmp_buf oom;
    if (setjmp(oom)) {
        gp_arena_free(&a);
        return gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
    }
    a.oom = &oom;
    bool ok = gp_glance_read(v, &a, line)
        || gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "'%s' is not the socket of a 'gpipe run'",
                   args->operand[0]);
    if (v->ended) {                    /* these lines stay */
        gp_screen_clear(screen);
        screen->in_place = false;
    }
    atomic_store(&drawn, screen->in_place && !args->json);
    ok = ok && (args->json ? printf("%s", line) > 0 && !fflush(stdout) : gp_screen_draw(screen, v));
    gp_arena_free(&a);
    return ok;
}

int gp_cmd_top(const gp_args *args, const gp_registry *registry, gp_errs *errs)
{
    (void)registry;
    struct sigaction action = { .sa_handler = on_signal };
    char *line = NULL;
    size_t cap = 0;
    bool ok = true;
    int fd = gp_socket_connect(args->operand[0], errs);
    FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;
    gp_glance *v = f ? calloc(1, sizeof *v) : NULL;
    if (!v) {
        if (fd >= 0)
            gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
        return gp_errs_exit(errs);
    }
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    gp_screen screen = gp_screen_on(STDOUT_FILENO);
    ssize_t n;
    while (ok && !v->ended && (n = getline(&line, &cap, f)) > 0 && line[n - 1] == '\n')
        ok = show(args, &screen, v, line, errs);
    if (ok && !v->ended)
        gp_fail(errs, GP_E_RUN, (gp_loc){ 0 }, "the pipeline has gone without a word");
    gp_screen_clear(&screen);
    free(line);
    gp_glance_free(v);
    free(v);
    fclose(f);
    return gp_errs_exit(errs);
}
