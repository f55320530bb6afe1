/* top.c - gpipe top: the live lines of a pipeline that runs elsewhere. */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>
#include "cli/live.h"
#include "cli/retune.h"
#include "cli/verb.h"

static atomic_bool drawn;              /* lines that a signal has to remove */

static void on_signal(int signal)
{
    ssize_t ignored = atomic_load(&drawn) ? write(STDOUT_FILENO, "\r\033[J", 4) : 0;
    (void)ignored;
    _exit(128 + signal);
}

typedef struct top {
    const gp_args *args;
    const char *name;          /* of the run: a process, or its socket */
    gp_screen screen;
    gp_glance v;
} top;

/* One object. False: nobody reads what is written, or an error. */
static bool show(top *t, const char *line, gp_errs *errs)
{
    gp_glance *v = &t->v;
    GP_ARENA(a);
    GP_IF_OOM(&a)
        return gp_no_memory(errs);
    bool ok = gp_glance_read(v, &a, line)
        || gp_usage(errs, "'%s' is not the socket of a 'gpipe run'", t->name);
    if (v->ended) {                    /* these lines stay */
        gp_screen_clear(&t->screen);
        t->screen.in_place = v->settings = false;
    }
    atomic_store(&drawn, t->screen.in_place && !t->args->json);
    ok = ok && (t->args->json ? printf("%s", line) > 0 && !fflush(stdout) : gp_screen_draw(&t->screen, v));
    return ok;
}

static int watch(const gp_args *args, const gp_registry *registry, gp_errs *errs)
{
    struct sigaction action = { .sa_handler = on_signal };
    char only[24], *line = NULL;
    size_t cap = 0;
    if (!args->noperands && !gp_runs_choose(args, NULL, stdout, only, errs))
        return gp_errs_exit(errs);
    top t = { .args = args, .name = args->noperands ? args->operand[0] : only, .screen = gp_screen_on(STDOUT_FILENO) };
    FILE *f = gp_socket_reach(t.name, errs);
    if (!f)
        return gp_errs_exit(errs);
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    t.v.settings = t.screen.in_place && !args->json;
    bool ok = true, gone = false;
    int status = 0;
    while (ok && !status && !t.v.ended && !gone) {
        ssize_t n = getline(&line, &cap, f);
        gone = n < 0 || line[n - 1] != '\n';
        if (!gone && gp_is_answer(line))
            status = gp_answer_print(args, line, errs);
        else
            ok = gone || show(&t, line, errs);
    }
    if (gone)
        gp_fail(errs, GP_E_RUN, (gp_loc){ 0 }, "the pipeline has gone without a word");
    gp_screen_clear(&t.screen);
    gp_glance_free(&t.v);
    free(line);
    fclose(f);
    return status ? status : gp_errs_exit(errs);
}

const gp_verb gp_verb_top = {
    .name = "top", .operand = "[PID|SOCKET]", .max = 1, .place = 70,
    .help = "watch a pipeline that runs elsewhere",
    .more = "Shows, each second, the same live lines as that 'gpipe run', until it ends or Ctrl-C, and\n"
            "on a terminal its settings, which 'gpipe set' changes.\n"
            "Without a process it shows the one that runs, or lists those that do, with --json as one\n"
            "object each. The ranks of one mpirun are one, shown by rank 0.\n"
            "The socket of a run is $XDG_RUNTIME_DIR/gpipe/PID.sock, or /tmp/gpipe-UID/PID.sock, for its\n"
            "owner alone. With --json it prints the objects that --progress json prints.\n",
    .run = watch,
    .options = (const gp_option[]){
        GP_OPTION_JSON,
        { 0 } },
};
