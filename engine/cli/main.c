/* main.c - the command: gpipe VERB.
 *
 * The only code that sets the environment and chooses the exit code. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/memfile.h"
#include "base/why.h"
#include "cli/ranks.h"

typedef struct verb {
    gp_verb verb;
    const char *name, *operand, *help, *more;
    int min, max;                      /* operands */
    int (*run)(const gp_args *args, const gp_registry *registry, gp_errs *errs);
} verb;

static int cmd_help(const gp_args *args, const gp_registry *registry, gp_errs *errs);

static const verb verbs[] = {
    { GP_VERB_RUN, "run", "FILE", "run a pipeline",
      "'-' as FILE is standard input. Ctrl-C, SIGTERM or a closed terminal (SIGHUP) stops the\n"
      "sources and lets frames in flight finish; a second Ctrl-C stops at once.\n", 1, 1, gp_cmd_run },
    { GP_VERB_CHECK, "check", "FILE...", "validate pipelines; runs no script and no kernel",
      "Checks as for a machine with a GPU, even on one without. A missing input file is only a\n"
      "warning if 'buffers' declares what it holds. What will be slow, or is hardly meant, is a\n"
      "warning that ends in (lint: NAME), for the GPU of this machine or, without one, an H200;\n"
      "'# nolint: NAME' in its line silences it.\n", 1, INT_MAX, gp_cmd_check },
    { GP_VERB_PLAN, "plan", "FILE", "show what a pipeline becomes: tasks, copies, memory", "",
      1, 1, gp_cmd_plan },
    { GP_VERB_BENCH, "bench", "FILE...", "measure pipelines: rate, latency, what holds them back",
      "One run is watched, after a warm-up, until three windows in a row agree within 5 %.\n"
      "Sources are made endless (frames: 0, loop: true). Where that is not possible (a stage\n"
      "writes, a source in Lua ends, 'compare' reads a file) whole runs are repeated, and are\n"
      "timed from their first frame in to their last frame out.\n"
      "What 'write' makes goes to a temporary folder next to where it belongs, or to\n"
      "/dev/null for stdout; files that Lua scripts write are not redirected.\n"
      "frames/s, GB/s and times per frame count the sources' frames, also where most are\n"
      "dropped on the way; latency is from source to sink. The bound is the largest of\n"
      "these times per frame: a host stage (by its busy time, through its workers), all\n"
      "copies without the kernels, all kernels without the copies (on the CPU: by their\n"
      "CPU time, through the streams and cores that they could use).\n"
      "Several files are measured in turns and compared with the first.\n",
      1, INT_MAX, gp_cmd_bench },
    { GP_VERB_SIMULATE, "simulate", "FILE", "predict a pipeline's rate and latency from the report of a run",
      "gpipe run p.yaml --report run.json; gpipe simulate p.yaml --with run.json --set depth=8\n"
      "The pipeline is not run: its plan is simulated with the times that its stages,\n"
      "kernels, copies and launches took in that run. --set adds to the settings of that run.\n"
      "Kernels share the device, and threads the cores, evenly. Where the report lacks the\n"
      "times (another device, other stages) this is an error. --machine FILE is what\n"
      "'gpipe machine' printed, or has any of these keys:\n"
      "{\"cores\": 16, \"memory\": \"64GiB\", \"speed\": 1.5, \"gpu\": \"NVIDIA H200\",\n"
      "\"gpu_memory\": \"141GB\", \"kernels_speed\": 20, \"copy_in_gb_s\": 50, \"copy_out_gb_s\": 50};\n"
      "'speed' 1.5 is 1.5 times as fast as the machine of the report. --set device=cuda:0-7\n"
      "simulates several GPUs, --ranks N --nodes M several processes on several machines: what\n"
      "it takes for granted is printed, and 'gpipe help retune' has the keys for what links\n"
      "them. The result does not depend on the machine that simulates.\n",
      1, 1, gp_cmd_simulate },
    { GP_VERB_TUNE, "tune", "FILE", "find settings that are faster: measure once, simulate many, measure a few",
      "The pipeline is measured as by 'gpipe bench' (see its help); outputs go to a temporary\n"
      "folder. From the times of that run hundreds of settings are simulated: depth, streams,\n"
      "batch, batch_wait, workers, sync, which change no byte of any output. The most promising\n"
      "ones and the given ones are measured in turns (a turn measures each once), and the best\n"
      "one also with another sync and launch. Settings are proposed only if they were better\n"
      "than the given ones in most turns, and by more than 1 % in the median turn. A table of\n"
      "what was measured is printed, and the lines of the file to change; --write changes them,\n"
      "and nothing else.\n",
      1, 1, gp_cmd_tune },
    { GP_VERB_TOP, "top", "[PID|SOCKET]", "watch a pipeline that runs elsewhere",
      "Shows, each second, the same live lines as that 'gpipe run', until it ends or Ctrl-C. On a\n"
      "terminal it also shows its settings: left and right choose one, + and - change it as\n"
      "'gpipe set' does, q leaves.\n"
      "Without a process it shows the one that runs, or lists those that do, with --json as one\n"
      "object each. The ranks of one mpirun are one, shown by rank 0.\n"
      "The socket of a run is $XDG_RUNTIME_DIR/gpipe/PID.sock, or /tmp/gpipe-UID/PID.sock, for its\n"
      "owner alone. With --json it prints the objects that --progress json prints.\n", 0, 1, gp_cmd_top },
    { GP_VERB_SET, "set", "PID|SOCKET PATH=VALUE...", "change settings of a pipeline that runs elsewhere",
      "Settings are written as for --set: gpipe set 4711 depth=6 stages.clean.workers=4. They\n"
      "take effect at the next frame boundary. No frame is lost, sources go on, and stages keep\n"
      "their state.\n"
      "What cannot change while it runs is refused, and the run goes on as it was. Of the ranks of\n"
      "one mpirun any may be named: all are changed, or none. The socket is that of 'gpipe top',\n"
      "for its owner alone. In a run with --watch a file that is saved later does not undo them.\n", 2, INT_MAX,
      gp_cmd_set },
    { GP_VERB_STAGES, "stages", "[NAME]", "list the kinds of stages, or show the ports and options of one", "",
      0, 1, gp_cmd_stages },
    { GP_VERB_NEW, "new", "[NAME]", "write a pipeline to start from, with comments, or list the examples",
      "Writes NAME.yaml, which must not exist. It runs as it is, unless it reads pictures of\n"
      "yours.\n", 0, 1, gp_cmd_new },
    { GP_VERB_SCHEMA, "schema", "", "print a JSON Schema of pipeline files, for editors",
      "gpipe schema > gpipe.schema.json, and in the first line of a pipeline, for editors with\n"
      "the YAML language server:  # yaml-language-server: $schema=gpipe.schema.json\n", 0, 0, gp_cmd_schema },
    { GP_VERB_MACHINE, "machine", "", "print what this machine is like, as JSON, for --machine of other verbs",
      "gpipe machine > big.json, and on another machine: gpipe plan p.yaml --machine big.json\n"
      "Devices are CUDA's, in its order; sizes are bytes. 'memory' of a device is what a plan may\n"
      "take of it, 'free_memory' what nobody used (null: NVML is not there), 'peers' the devices\n"
      "whose memory it can reach itself, 'f64_ratio' how many times as fast f32 is as f64.\n", 0, 0, gp_cmd_machine },
    { GP_VERB_HELP, "help", "[NAME]", "list the verbs, or show one of them, a stage or a topic",
      "", 0, 1, cmd_help },
};
enum { NVERBS = sizeof verbs / sizeof *verbs };

static const verb *find_verb(const char *name, gp_errs *errs)
{
    gp_near near = GP_NEAR(name);
    for (const verb *v = verbs; v < verbs + NVERBS; v++) {
        if (!strcmp(v->name, name))
            return v;
        gp_near_try(&near, v->name);
    }
    const char *did = gp_near_text(&near);
    bool version = !strcmp(name, "version") || !strcmp(name, "-v");
    gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "no verb '%s'%s", name,
            version ? "; 'gpipe --version' shows it" : *did ? did : "; 'gpipe help' lists them");
    return NULL;
}

static void print_topics(FILE *to)
{
    const char *topic;
    for (int i = 0; (topic = gp_topic_name(i)); i++)
        fprintf(to, "%s%s", i ? ", " : "", topic);
}

static void print_help(FILE *to)
{
    fprintf(to, "usage: gpipe VERB ...\n\n");
    for (const verb *v = verbs; v < verbs + NVERBS; v++)
        fprintf(to, "  %-8s %-10s  %s\n", v->name, v->operand, v->help);
    fprintf(to, "\n  gpipe VERB --help shows the options of a verb\n"
            "  gpipe --version   shows the version and the back ends\n"
            "  gpipe help NAME   shows a stage, or a topic of the reference:\n                    ");
    print_topics(to);
    fprintf(to, "\n\n"
            "exit: 0 ok, 1 failed at run time, 2 usage, 3 invalid pipeline, 4 not enough\n"
            "resources, 5 stalled, 6 'compare' found a difference, 129/130/143 interrupted, 141\n"
            "nobody reads stdout, 128 + n ended by signal n: 139 (132, 135, 136) is a fault, as\n"
            "of a kernel on the CPU\n");
}

static void print_verb_help(FILE *to, const verb *v)
{
    fprintf(to, "usage: gpipe %s [OPTION]...%s%s\n\n%s\n%s%s\n", v->name, *v->operand ? " " : "", v->operand, v->help,
            *v->more ? "\n" : "", v->more);
    gp_args_help(to, v->verb);
}

/* A section of the man page, of what `print` prints; memory that runs out is a flag of `to`. */
typedef struct section { gp_memfile m; bool open; } section;

static FILE *begin_section(FILE *to, section *s, const char *title, const char *name)
{
    fprintf(to, ".SH \"%s%s%s\"\n", title, name ? " " : "", name ? name : "");
    s->open = gp_memfile_open(&s->m);
    return s->open ? s->m.f : to;
}

static bool end_section(FILE *to, section *s)
{
    size_t n;
    char *text = s->open ? gp_memfile_close(&s->m, &n) : NULL;
    if (text)
        gp_man_text(to, text);
    free(text);
    return text;
}

static int print_man(const gp_registry *registry, gp_errs *errs)
{
    section s;
    bool ok = true;
    const char *topic;
    const gp_kind *k;
    printf(".TH GPIPE 1 \"\" \"gpipe %s\" \"User Commands\"\n.SH NAME\ngpipe \\- a declarative GPU "
           "pipeline engine\n", GP_VERSION);
    print_help(begin_section(stdout, &s, "SYNOPSIS", NULL));
    ok &= end_section(stdout, &s);
    for (const verb *v = verbs; v < verbs + NVERBS; v++) {
        print_verb_help(begin_section(stdout, &s, "gpipe", v->name), v);
        ok &= end_section(stdout, &s);
    }
    for (int i = 0; (topic = gp_topic_name(i)); i++) {
        gp_topic_print(begin_section(stdout, &s, "TOPIC", topic), topic);
        ok &= end_section(stdout, &s);
    }
    for (int i = 0; (k = gp_kind_at(registry, i)); i++) {
        gp_kind_print(begin_section(stdout, &s, "STAGE", k->name), k);
        ok &= end_section(stdout, &s);
    }
    if (!ok)
        gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
    return gp_errs_exit(errs);
}

/* What has this name: a verb, a topic, a stage; `lua` is the latter two. */
static int help_of(const char *name, const gp_registry *registry, gp_errs *errs)
{
    gp_near near = GP_NEAR(name);
    const char *topic;
    const gp_kind *k;
    int found = 0;
    for (const verb *v = verbs; v < verbs + NVERBS; v++) {
        gp_near_try(&near, v->name);
        if (!strcmp(v->name, name))
            print_verb_help(stdout, v), found++;
    }
    for (int i = 0; (topic = gp_topic_name(i)); i++) {
        gp_near_try(&near, topic);
        if (!strcmp(topic, name))
            gp_topic_print(stdout, topic), found++;
    }
    for (int i = 0; (k = gp_kind_at(registry, i)); i++) {
        gp_near_try(&near, k->name);
        if (!strcmp(k->name, name))
            gp_kind_print(stdout, k), found++;
    }
    const char *did = gp_near_text(&near);
    const char *in = gp_topics_with(name);
    if (!found && *in)
        gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "no help on '%s' by itself; these topics say something of it: %s", name, in);
    else if (!found)
        gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "no help on '%s'%s", name, *did ? did
                : "; 'gpipe help' lists verbs and topics, 'gpipe stages' the stages");
    return gp_errs_exit(errs);
}

static int cmd_help(const gp_args *args, const gp_registry *registry, gp_errs *errs)
{
    if (args->man && args->noperands)
        gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "'--man' is all of the reference; leave out '%s'",
                args->operand[0]);
    else if (args->man)
        return print_man(registry, errs);
    else if (args->noperands)
        return help_of(args->operand[0], registry, errs);
    else
        print_help(stdout);
    return gp_errs_exit(errs);
}

static void print_version(void)
{
    printf("gpipe %s%s%s%s\nback ends: %s\nscripts: %s\n", GP_VERSION,
           *gp_commit ? " (commit " : "", gp_commit, *gp_commit ? ")" : "", gp_built, gp_lua);
}

static bool count_operands(const verb *v, const gp_args *args, gp_errs *errs)
{
    if (args->noperands < v->min)
        return gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "no %s given; write gpipe %s %s",
                       v->verb != GP_VERB_SET ? "file" : args->noperands && strchr(args->operand[0], '=') ? "process"
                       : "setting", v->name, v->operand);
    if (args->noperands > v->max)
        return gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "unexpected argument '%s'; write "
                       "gpipe %s%s%s", args->operand[v->max], v->name, *v->operand ? " " : "", v->operand);
    return true;
}

static int run_verb(const verb *v, const gp_args *args, gp_errs *errs)
{
    gp_registry *registry = gp_registry_create();
    int status = 0;
    if (!registry)
        gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
    else if (gp_register_builtin(registry, errs))
        status = v->run(args, registry, errs);
    gp_registry_destroy(registry);
    return status ? status : gp_errs_exit(errs);
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
 * file. What is put there fails as the closed one did: it is open the wrong way. */
static void hold_standard_files(void)
{
    static const int flags[] = { O_WRONLY, O_RDONLY, O_RDONLY };
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", flags[fd]) != fd)
            _exit(1);
}

int main(int argc, char **argv)
{
    static gp_errs errs;
    gp_arena arena = { 0 };
    gp_args args = { 0 };
    int status = 0;

    hold_standard_files();
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);    /* streams that do not wait for others */
    void (*on_pipe)(int) = signal(SIGPIPE, SIG_IGN);   /* writers report EPIPE, EFBIG */
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGCHLD, SIG_DFL);                          /* or no compiler's end is told */
    if (argc < 2) {
        if (gp_ranks_is_another())
            return 0;
        print_help(stderr);
        return 2;
    }
    const char *word = argv[1];
    bool version = !strcmp(word, "--version") || !strcmp(word, "-V");
    if (version || !strcmp(word, "--help") || !strcmp(word, "-h")) {
        if (!gp_ranks_is_another())
            version ? print_version() : print_help(stdout);
    } else {
        const verb *v = find_verb(word, &errs);
        bool ok = v && gp_args_parse(&arena, argc - 2, argv + 2, v->verb, &args, &errs);
        if (args.progress == GP_PROGRESS_JSON && !gp_say_json())
            ok = gp_fail(&errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
        ok = ok && (args.help || count_operands(v, &args, &errs));
        ok = gp_ranks_join(&args, ok, &errs);
        if (ok && args.help)
            print_verb_help(stdout, v);
        else if (ok)
            status = run_verb(v, &args, &errs);
    }
    status = close_stdout(status, &errs);
    gp_print_errs(&args, NULL, &errs);
    gp_say_last();
    if (!status)
        status = gp_errs_exit(&errs);
    gp_ranks_leave(status);
    gp_arena_free(&arena);
    if (status == GP_EXIT_PIPE) {
        signal(SIGPIPE, on_pipe);
        raise(SIGPIPE);
    }
    return status;
}
