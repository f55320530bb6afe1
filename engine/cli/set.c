/* set.c - gpipe set: settings of a pipeline that runs elsewhere. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/json.h"
#include "base/memfile.h"
#include "cli/live.h"
#include "cli/retune.h"
#include "cli/verb.h"

/* The settings as a line. NULL: out of memory. */
static char *line_of(const char *const *set, int n, size_t *len)
{
    gp_memfile m;
    if (!gp_memfile_open(&m))
        return NULL;
    gp_json j = { .f = m.f, .level = 3 };
    gp_json_strs(&j, NULL, set, n);
    fputc('\n', m.f);
    return gp_memfile_close(&m, len);
}

static char *ask_run(const char *name, const char *const *set, int n, gp_errs *errs)
{
    size_t len = 0, cap = 0;
    char *ask = line_of(set, n, &len), *line = NULL;
    FILE *f = ask ? gp_socket_reach(name, errs) : NULL;
    bool sent = false, answered = false, runs = false;
    /* How the run stands comes first, and meanwhile; or that there is no room for us. */
    while (f && !answered && getline(&line, &cap, f) > 0) {
        answered = gp_is_answer(line), runs = true;
        if (!answered && !sent && !(sent = gp_write_text(fileno(f), ask, len)))
            break;
    }
    if (!ask)
        gp_no_memory(errs);
    else if (f && !answered)
        gp_fail(errs, GP_E_RUN, (gp_loc){ 0 }, runs ? "the run of '%s' has ended" : "'%s' gives no answer: its run has "
                "ended, or it is not a 'gpipe run'", name);
    if (f)
        fclose(f);
    free(ask);
    if (answered)
        return line;
    free(line);
    return NULL;
}

static int set(const gp_args *args, const gp_registry *registry, gp_errs *errs)
{
    if (args->noperands < 2)
        gp_usage(errs, "no %s given; write gpipe set %s", args->noperands && strchr(args->operand[0], '=') ? "process" :
                 "setting", args->verb->operand);
    else if (strchr(args->operand[0], '=') && !strchr(args->operand[0], '/'))
        gp_usage(errs, "no process given; write gpipe set PID %s", args->operand[0]);
    for (int i = 1; i < args->noperands; i++)
        if (!strchr(args->operand[i], '=') || *args->operand[i] == '=')
            gp_fail(errs, GP_E_USAGE, (gp_loc){ .file = args->operand[i] }, "write PATH=VALUE, like streams=4");
    char *answer = errs->failed ? NULL : ask_run(args->operand[0], args->operand + 1, args->noperands - 1, errs);
    if (!answer)
        return gp_errs_exit(errs);
    int status = gp_answer_print(args, answer, errs);
    free(answer);
    return status;
}

const gp_verb gp_verb_set = {
    .name = "set", .operand = "PID|SOCKET PATH=VALUE...", .max = INT_MAX, .place = 80,
    .help = "change settings of a pipeline that runs elsewhere",
    .more = "Settings are written as for --set: gpipe set 4711 depth=6 stages.clean.workers=4. They\n"
            "take effect at the next frame boundary. No frame is lost, sources go on, and stages keep\n"
            "their state.\n"
            "What cannot change while it runs is refused, and the run goes on as it was. Of the ranks of\n"
            "one mpirun any may be named: all are changed, or none. The socket is that of 'gpipe top',\n"
            "for its owner alone. In a run with --watch a file that is saved later does not undo them.\n",
    .run = set,
};
