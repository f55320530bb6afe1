/* main.c - the command: gpipe VERB.
 *
 * The only code that sets the environment and chooses the exit code. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "base/why.h"
#include "cli/report.h"
#include "cli/verb.h"

static const gp_verb *find_verb(const char *name, gp_errs *errs)
{
    gp_near near = GP_NEAR(name);
    for (const gp_verb *v = NULL; (v = gp_verb_next(v));) {
        if (!strcmp(v->name, name))
            return v;
        gp_near_try(&near, v->name);
    }
    const char *did = gp_near_text(&near);
    bool version = !strcmp(name, "version") || !strcmp(name, "-v");
    gp_usage(errs, "no verb '%s'%s", name, version ? "; 'gpipe --version' shows it" : *did ? did : "; 'gpipe help' "
             "lists them");
    return NULL;
}

static void print_version(void)
{
    char version[96];
    printf("gpipe %s\nback ends: %s\nscripts: %s\n", gp_version_text(version), gp_built, gp_lua);
}

static bool count_operands(const gp_verb *v, const gp_args *args, gp_errs *errs)
{
    if (args->noperands < v->min)
        return gp_usage(errs, "no file given; write gpipe %s %s", v->name, v->operand);
    if (args->noperands > v->max)
        return gp_usage(errs, "unexpected argument '%s'; write gpipe %s%s%s", args->operand[v->max], v->name,
                        *v->operand ? " " : "", v->operand);
    return true;
}

/* The kinds that there are, with those of plug-ins for a verb that needs them. What --man and --markdown print is the
 * same everywhere: then only those count that --plugin names. Warnings go to `warnings`. */
static bool find_kinds(gp_registry *r, const gp_args *args, gp_errs *warnings, gp_errs *errs)
{
    if (!r)
        return gp_no_memory(errs);
    if (!gp_register_builtin(r, errs))
        return false;
    gp_signals_plugins(r, true);
    for (int i = 0; i < args->plugins.n; i++)
        if (!gp_plugin_load(r, args->plugins.word[i], errs))
            return false;
    if ((args->verb->target || args->verb->kinds) && !args->man && !args->markdown)
        gp_plugins_find(r, gp_from_env, NULL, warnings);
    gp_signals_plugins(r, false);
    return true;
}

static bool is_read(int fd)
{
    struct pollfd p = { fd, POLLOUT, 0 };
    return poll(&p, 1, 0) < 1 || !(p.revents & POLLERR);
}

/* What could not be written to stdout is an error, but a reader that has gone
 * away (gpipe plan | head) is not. Of an earlier flush only the flag is left. */
static int close_stdout(int status, gp_errs *errs)
{
    errno = 0;
    if (!fflush(stdout) && !ferror(stdout))
        return status;
    if (errno == EPIPE || !is_read(STDOUT_FILENO))
        return status ? status : GP_EXIT_PIPE;
    gp_fail(errs, GP_E_RUN, (gp_loc){ 0 }, "cannot write to stdout%s%s", errno ? ": " : "",
            errno ? gp_strerror(errno) : "");
    return status ? status : 1;
}

/* Where stdin, stdout or stderr is closed, its number must not become that of a
 * file. What is put there has the opposite access mode, so that reading or writing fails as it would
 * on a closed one. */
static void hold_standard_files(void)
{
    static const int flags[] = { O_WRONLY, O_RDONLY, O_RDONLY };
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", flags[fd]) != fd)
            _exit(1);
}

/* The first thread's stack grows as far as this; those of others are larger (base/thread.h). */
static bool has_stack(gp_errs *errs)
{
    enum { LEAST = 1 << 19 };
    struct rlimit l;
    if (getrlimit(RLIMIT_STACK, &l) || l.rlim_cur >= LEAST)
        return true;
    l.rlim_cur = LEAST;
    return !setrlimit(RLIMIT_STACK, &l)
        || gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "the stack may have %llu KiB ('ulimit -s'): gpipe needs %d",
                   (unsigned long long)l.rlim_max / 1024, LEAST / 1024);
}

/* ---- ranks ----------------------------------------------------------- */

static void say(gp_ranks *us, const gp_errs *errs)
{
    gp_print_errs(&(gp_args){ .quiet = true, .ranks = us }, NULL, errs);
}

static gp_ranks_host host = {
    .say = say, .flush = gp_say_last, .level = gp_signals_level, .cancel = gp_signals_cancel,
    .stopped = gp_signals_of_another, .not_measured = gp_say_not_measured, .account = gp_print_account,
    .page = gp_report_page_of_all,
};

static bool join(const gp_args *args, bool ok, gp_errs *errs)
{
    const gp_verb *v = args->verb;
    bool is_stdin = false;
    for (int i = 0; i < args->noperands; i++)
        is_stdin |= !strcmp(args->operand[i], "-");
    return gp_ranks_join(args->ranks, args->help || (v && !v->target) ? GP_RANKS_FIRST
                         : v && !v->ranks ? GP_RANKS_NEVER : GP_RANKS_ALL, is_stdin, args->join_ns, ok, errs);
}

int main(int argc, char **argv)
{
    static gp_errs errs, warnings;
    static gp_registry *registry;      /* to the end: plug-ins may do something then, which can be at fault, too */
    gp_arena arena = { 0 };
    char build[96];
    host.version = gp_version_text(build);
    gp_args args = { .ranks = gp_ranks_open(&host) };
    int status = 0;

    hold_standard_files();
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);    /* streams that do not wait for others */
    void (*on_pipe)(int) = signal(SIGPIPE, SIG_IGN);   /* writers report EPIPE, EFBIG */
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGCHLD, SIG_DFL);                          /* or no compiler's end is told */
    if (argc < 2) {
        if (gp_ranks_is_another())
            return 0;
        gp_help_print(stderr);
        return 2;
    }
    const char *word = argv[1];
    bool version = !strcmp(word, "--version") || !strcmp(word, "-V");
    if (version || !strcmp(word, "--help") || !strcmp(word, "-h")) {
        if (!gp_ranks_is_another())
            version ? print_version() : gp_help_print(stdout);
    } else {
        const gp_verb *v = find_verb(word, &errs);
        bool ok = has_stack(&errs) && v && gp_args_parse(&arena, argc - 2, argv + 2, v, &args, &errs);
        if (args.progress == GP_PROGRESS_JSON && !gp_say_json())
            ok = gp_no_memory(&errs);
        ok = ok && (args.help || (count_operands(v, &args, &errs)
                                  && find_kinds(registry = gp_registry_create(), &args, &warnings, &errs)));
        ok = join(&args, ok, &errs);
        gp_print_errs(&args, NULL, &warnings);
        if (ok && args.help)
            gp_help_print_verb(stdout, v);
        else if (ok && !(status = v->run(&args, registry, &errs)))
            status = gp_errs_exit(&errs);
    }
    status = close_stdout(status, &errs);
    gp_print_errs(&args, NULL, &errs);
    gp_say_last();
    if (!status)
        status = gp_errs_exit(&errs);
    gp_ranks_leave(args.ranks, status);
    gp_arena_free(&arena);
    if (status == GP_EXIT_PIPE) {
        signal(SIGPIPE, on_pipe);
        raise(SIGPIPE);
    }
    return status;
}
