/* cli.h - what the files of the command share: all of engine/cli.
 *
 * Only the command prints, reads the environment, catches signals and exits.
 * Its own words go to stderr; stdout is for data. */
#pragma once

#include "ranks/ranks.h"

extern const char gp_commit[];         /* version.c; "" when not known */
extern const char gp_lua[];            /* version.c: "lua5.4" or "luajit" */
const char *gp_version_text(char buf[96]);     /* "0.1.0 (commit 1a2b3c4)" */
extern const char gp_built[];          /* version.c: the back ends, "cpu, cuda" */

/* The exit code of a verb that ends because nobody reads its standard output any more:
 * main() then ends as SIGPIPE ends others. */
enum { GP_EXIT_PIPE = 128 + 13 };

typedef struct gp_verb gp_verb;         /* verb.h */

/* An error of what was asked for that has no place in a file; false, as gp_fail. */
#define gp_usage(errs, ...) gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, __VA_ARGS__)

typedef enum gp_progress {
    GP_PROGRESS_AUTO, GP_PROGRESS_BAR, GP_PROGRESS_PLAIN, GP_PROGRESS_JSON, GP_PROGRESS_NONE,
} gp_progress;

typedef enum gp_form { GP_FORM_PLAN, GP_FORM_GRAPH } gp_form;

typedef struct gp_words { const char **word; int n, cap; } gp_words;

typedef struct gp_args {
    const gp_verb *verb;                   /* NULL: none that there is */
    const char **operand; int noperands;   /* files, a stage, a verb */
    const char **set; int nset;            /* "path=value"; --device is one of them */
    const char *device;                    /* that one, or NULL */
    bool watch, service, poison, isolate, check_kernels, quiet, verbose, dot, svg, json, markdown, man;
    bool help;
    bool unfused;                          /* unless `set` says otherwise, each stage has its own buffers */
    int progress;                          /* gp_progress */
    int form;                              /* gp_form */
    const char *metrics;                   /* "[ADDR:]PORT", or NULL */
    const char *report, *trace, *record;   /* files, or NULL */
    int64_t join_ns, trace_ns, stop_ns;    /* 0: not said */
    int trace_gpu;                         /* 0 cheap, 1 full */
    const char *with;                      /* a report's file, or NULL */
    gp_ranks *ranks;                       /* of which this process is one */
    int nranks, nodes;                     /* ranks that are simulated, on so many machines; 0: not said */
    gp_words plugins;
    const char *from;                      /* an example's name, or NULL */
    const char *machine;                   /* a file that says what the machine is like, or NULL */
    const char *goal, *memory;             /* of tune; NULL: not said */
    int64_t budget_ns;                     /* 0: not said */
    bool write;
    const char *output, *format;           /* of view; NULL: not said */
    int rate;                              /* ... a second; 0: not said */
    bool view, check_finite;               /* of run */
    bool measure;                          /* of machine */
    const char *frame;                     /* of probe; NULL: not said */
    /* of bench */
    gp_words sweep, cached;                /* "path=values", names of stages */
    int swept_from, swept_to;              /* those of `set` that come from --sweep */
    bool serial;
    int64_t window_ns, max_time_ns;        /* 0: not said */
    int rounds;
} gp_args;

/* args.c: with these settings behind its own; the list is the arena's. */
gp_args gp_args_with(gp_arena *a, const gp_args *args, const char *const *set, int n);

/* load.c: a pipeline's text, and what became of it. */
typedef struct gp_loaded {
    const char *file;                      /* as in messages */
    char *text;
    size_t len;
    gp_pipeline *pipeline;                 /* NULL after errors */
    gp_machine *machine;                   /* that of --machine; NULL: not said */
} gp_loaded;

/* How many GPUs there are on a machine that has all those which a text names, as in "[cuda:0, cuda:2-3]". */
int gp_gpus_named(const char *devices);
/* A gp_getenv: this process's environment. */
const char *gp_from_env(const void *arg, const char *name);
/* Reads ("-" is stdin) and compiles a file; false after errors. */
bool gp_load(gp_loaded *l, const char *file, const gp_args *args, const gp_registry *registry,
             gp_errs *errs);
/* Compiles the text that is loaded, for a machine; NULL: this one. */
bool gp_load_for(gp_loaded *l, const gp_args *args, const gp_machine *machine, const gp_registry *registry,
                 gp_errs *errs);
/* The same for one of the ranks that --ranks names, number `local` of those on its machine. */
bool gp_load_for_rank(gp_loaded *l, const gp_args *args, int rank, int local, const gp_machine *machine,
                      const gp_registry *registry, gp_errs *errs);
/* The file's text alone; gp_unload frees it. */
bool gp_load_text(gp_loaded *l, const char *file, gp_errs *errs);
/* gp_ranks_agree, of what was loaded, or (`ok` false) could not be. */
bool gp_agree(const gp_args *args, const gp_loaded *l, bool ok, gp_errs *errs);
void gp_unload(gp_loaded *l);
/* Prints errors and warnings (not with -q) on stderr. `l` may be NULL. */
void gp_print_errs(const gp_args *args, const gp_loaded *l, const gp_errs *errs);
/* The same, and forgets them. The exit code that they make. */
int gp_tell_errs(const gp_args *args, const gp_loaded *l, gp_errs *errs);
/* As that rank says them, of several that are simulated; -1: what one rank says of all, without its name. */
void gp_print_errs_of_rank(const gp_args *args, int rank, const gp_loaded *l, const gp_errs *errs);
/* Where such an error is, as it is printed: of --set its name, for free(), or NULL. */
char *gp_err_option(const gp_args *args, const gp_err *e);

/* words.c: stderr as JSON lines, from now on. False: no memory, stderr is as ever. */
bool gp_say_json(void);
/* Or as lines of a log, with time and level; for journald as sd-daemon(3) has them. */
bool gp_say_log(void);
typedef enum gp_level { GP_LEVEL_ERROR, GP_LEVEL_WARNING, GP_LEVEL_INFO } gp_level;
enum { GP_LOG_BEGIN = 48 };
const char *gp_log_begin(gp_level level, char buf[GP_LOG_BEGIN]);  /* what such a line begins with, else ""; returns buf */
bool gp_says_json(void);
/* Between these one object, with its end of line, is written to the stream; nobody else says
 * anything meanwhile. No memory is taken. */
FILE *gp_say_begin(void);
void gp_say_end(void);
/* All of it to a descriptor. False: it cannot be written. */
bool gp_write_text(int fd, const char *text, size_t n);
/* Before the process ends: words that have no end of line yet. */
void gp_say_last(void);

/* service.c: what a service manager is told, by sd_notify(3); nothing where none asks for it. */
bool gp_service_begin(gp_errs *errs);
/* False: its queue, which all services share, is full; with `waits` for a second. */
bool gp_service_tell(bool waits, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool gp_service_reloads(void);             /* likewise; until it is ready again */
int gp_service_reload_fd(void);            /* readable: SIGHUP came, read it then; -1: no service */

/* signal.c: Ctrl-C, SIGTERM, SIGHUP, faults. */
void gp_signals_catch(bool quiet);         /* quiet: says nothing */
/* Faults of its plug-ins are told, which it has, or which are about to be opened. */
void gp_signals_plugins(const gp_registry *r, bool opens);
void gp_signals_for(gp_pipeline *p);       /* whom they cancel; NULL: nobody */
/* Ends the process, where a thread still uses a pipeline, and before it (SIGTERM) what scripts started. */
_Noreturn void gp_leave_stuck(gp_ranks *us, int status);
void gp_signals_reload(int fd);            /* from now on SIGHUP adds 1 to this eventfd, and stops nothing */
int gp_signal_taken(void);                 /* the last one's number; 0: none */
int gp_signals_level(void);                /* of gp_cancel, as signals asked for */
void gp_signals_cancel(int level);         /* cancels the pipeline that they would */
void gp_signals_of_another(int level);     /* of several ranks: the first says so, once, unless it has */
void gp_signals_lines(bool drawn);         /* lines at the cursor: what is said replaces them */
/* A file to remove when a signal ends the process at once; NULL: none. */
typedef enum gp_removed { GP_REMOVED_SOCKET, GP_REMOVED_REPORT, GP_REMOVED_TRACE, GP_REMOVED_RECORD,
                          GP_REMOVED } gp_removed;
void gp_signals_remove(gp_removed which, const char *path);
double gp_seconds(void);                   /* CLOCK_MONOTONIC */

/* load.c: whether what goes to `fd` is for eyes that want colors. */
bool gp_want_color(int fd);

/* progress.c: a thread that shows how the run goes, here and to whoever is
 * connected to `socket` (NULL: nobody), and the line at the end. */
struct gp_socket;
typedef struct gp_meter gp_meter;
struct gp_retuner;
gp_meter *gp_meter_start(gp_ranks *us, const gp_pipeline *p, gp_progress how, struct gp_socket *socket,
                         struct gp_retuner *retuner);
void gp_meter_next(gp_meter *m, const gp_pipeline *p);             /* the run goes on under p; accepts NULL */
void gp_meter_stop(gp_meter *m);                                   /* accepts NULL */
/* `verdict` "": there is none. With JSON an object that has `outcome` and the exit code, too. */
void gp_print_summary(gp_ranks *us, const gp_pipeline *p, double seconds, gp_outcome outcome, int status,
                      const char *verdict);
