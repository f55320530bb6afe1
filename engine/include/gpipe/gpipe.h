/* gpipe.h - a pipeline, from outside: compile, run, cancel, account.
 *
 * The library has no globals, but for how much of each GPU's memory was free when it first asked; it installs no signal
 * handlers, sets no environment, never prints and never exits. Numbers have a decimal point whatever locale the program
 * has set: while the library works, and so in callbacks and stage kinds, its threads have the locale "C". A gp_pipeline
 * is used by one thread, except where a function says otherwise. An application runs with the library whose headers it
 * was compiled with (the shared library's name has the version); a stage kind may be older or newer, see GP_ABI. */
#ifndef GPIPE_H
#define GPIPE_H

#include <stdio.h>
#include <time.h>
#include <gpipe/err.h>
#include <gpipe/hist.h>
#include <gpipe/stage.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

#define GP_VERSION "0.1.0"

typedef struct gp_pipeline gp_pipeline;
typedef struct gp_registry gp_registry;
typedef struct gp_machine gp_machine;

/* Errors and warnings have places whose file names are the pipeline's or the caller's:
 * print them before the pipeline is destroyed. */

/* Answers like getenv; `arg` is passed on. */
typedef const char *(*gp_getenv)(const void *arg, const char *name);

/* ---- kinds ----------------------------------------------------------- */

gp_registry *gp_registry_create(void);             /* NULL: no memory */
void gp_registry_destroy(gp_registry *r);          /* accepts NULL */
/* Adds a kind: the descriptor is copied, what it points to is borrowed. False with an
 * error: another ABI, a bad table, or a name that is taken. */
bool gp_register(gp_registry *r, const gp_kind *kind, gp_errs *errs);
/* Adds all kinds that gpipe itself has. */
bool gp_register_builtin(gp_registry *r, gp_errs *errs);
/* A kind by name, NULL: there is none; the i-th by name, NULL past the last. */
const gp_kind *gp_kind_find(const gp_registry *r, const char *name);
const gp_kind *gp_kind_at(const gp_registry *r, int i);
/* Its option of that name and type; NULL: it has none. */
const gp_opt *gp_kind_opt(const gp_kind *k, const char *name, gp_opt_type type);
/* Writes what `gpipe stages` does: of one kind its ports and options, with types and defaults; `name` NULL: of all, as
 * text a list by field. False, with an error: there is no kind of that name. */
typedef enum gp_kinds_form { GP_KINDS_TEXT, GP_KINDS_JSON, GP_KINDS_MARKDOWN } gp_kinds_form;
bool gp_kinds_print(const gp_registry *r, const char *name, gp_kinds_form form, FILE *to, gp_errs *errs);

/* ---- plug-ins -------------------------------------------------------- */

/* Kinds in shared objects, see gp_plugin in stage.h. The functions of gpipe that they call are those of this process: a
 * program that has the static library is linked with -rdynamic. What is loaded stays so until the process ends. */
typedef struct gp_plugin_info {
    const char *name, *version, *file;
} gp_plugin_info;
/* Adds the kinds of a plug-in: all, or after an error none. One that is loaded already is none. */
bool gp_plugin_load(gp_registry *r, const char *file, gp_errs *errs);
/* Adds those of $GPIPE_PLUGINS (folders and files, with a colon between), of gpipe/plugins in $XDG_DATA_HOME (or
 * ~/.local/share), and of lib/gpipe/plugins where gpipe is installed, in this order; in a folder all *.so, by their
 * names. Of two with one name in different folders the first counts, as in PATH. What cannot be loaded is a
 * warning. Call it behind gp_register_builtin, whose kinds then have their names. */
void gp_plugins_find(gp_registry *r, gp_getenv get, const void *arg, gp_errs *errs);
/* The plug-in that a kind of the registry is of; NULL: none. */
const gp_plugin_info *gp_kind_plugin(const gp_registry *r, const gp_kind *k);
/* The plug-in that has the code or data at this address; NULL: none. In a signal handler, too. */
const gp_plugin_info *gp_plugin_at(const gp_registry *r, const void *address);
/* The file of the plug-in that is being opened, whose constructors run; NULL: none is. In a signal handler, too. */
const char *gp_plugin_opening(const gp_registry *r);

/* ---- machines -------------------------------------------------------- */

/* This machine. `gpus`: look for its GPUs too, which starts the driver and takes a
 * quarter of a second. NULL: no memory. */
gp_machine *gp_machine_create(bool gpus);
/* A machine that is the same everywhere, with `ndevices` GPUs like an H200, to make
 * plans for. */
gp_machine *gp_machine_create_fixed(int ndevices);
/* One that JSON describes, as gp_machine_print() writes it; what it does not say is as in the fixed one. `file` is its
 * name in messages. NULL after an error, with its place. */
gp_machine *gp_machine_create_from(const char *text, size_t len, const char *file, gp_errs *errs);
void gp_machine_print(const gp_machine *m, FILE *to);
void gp_machine_destroy(gp_machine *m);            /* accepts NULL */

typedef struct gp_machine_info {
    int cpus;                  /* cores that this process may use */
    size_t memory;             /* bytes of host memory that may be used */
    int ndevices;              /* CUDA devices that may be used */
    const char *why;           /* why there are none: "no NVIDIA driver"; the machine's */
    int cuda;                  /* the toolkit gpipe was built with: 13000 is 13.0; 0: none */
    int cuda_driver;           /* what the driver is for, likewise; 0: not asked, or none */
} gp_machine_info;
void gp_machine_about(const gp_machine *m, gp_machine_info *out);
/* The name of a device, the machine's; NULL: there is no such device. */
const char *gp_machine_device(const gp_machine *m, int device);

/* ---- compile --------------------------------------------------------- */

typedef struct gp_env {
    gp_getenv get;
    const void *arg;
    const struct tm *date;     /* for ${date:FORMAT}: when this is, in local time, all that
                                  strftime reads; NULL: not known */
    int nanoseconds;           /* since that second began, for ${date:%N} */
    int rank, ranks;           /* which of how many processes this is that run the pipeline together, each a share of the
                                  frames of its sources; 0 of 0: there is one */
    int local_rank, local_ranks;       /* which it is of those on this machine, and how many these are (0: it is alone),
                                          which share its memory */
} gp_env;

typedef struct gp_config {
    const gp_registry *registry;       /* outlives the pipeline */
    const gp_machine *machine;         /* to compile for, copied; NULL: this one, whose
                                          GPUs are looked for if the pipeline may use them */
    gp_env env;                        /* for ${env:NAME}; NULL: nothing is set */
    const char *const *set; int nset;  /* "path=value", in order */
    bool lenient;          /* a missing input file is a warning where its buffer is
                              declared (`check`); implies `bounded` */
    bool bounded;          /* 100,000 names in folders are looked at for all patterns, and a
                              warning says where there are more (`plan`) */
} gp_config;

/* Text -> plan, all passes. Reads the files that it includes, beside `file`, and those that
 * options name (headers, sizes); opens no device. NULL after errors. Warnings are left in `errs`. `text` is copied
 * (NULL: ""); `file` (its name, for messages; NULL: "pipeline") and the strings of `set` outlive the pipeline. */
gp_pipeline *gp_compile(const char *text, size_t len, const char *file,
                        const gp_config *config, gp_errs *errs);
void gp_pipeline_destroy(gp_pipeline *p);          /* accepts NULL; ends a run that gp_pipeline_start
                                                      began. One that is GP_STUCK stays */

/* Warns of what is valid and will be slow. `machine` NULL: this one, or an H200 where
 * it has no GPU. A comment "# nolint: NAME" in the line of a warning silences it. */
void gp_pipeline_lint(const gp_pipeline *p, const gp_machine *machine, gp_errs *errs);

/* ---- what a pipeline became ------------------------------------------ */

/* All names and pointers are the pipeline's. */
typedef struct gp_pipeline_info {
    const char *name;
    int nstages, nbuffers;
    int nsegments;             /* of device stages: 0, nothing runs on a device */
    int device;                /* a CUDA device, the first where there are several; -1: the CPU back end */
    const char *device_why;    /* "auto: NVIDIA H200", "auto: no NVIDIA driver" */
    const char *devices;       /* "cpu", "cuda:0", "cuda:0, cuda:1" */
    int64_t stall_ns;          /* `stall_timeout`; 0: never */
} gp_pipeline_info;
void gp_pipeline_about(const gp_pipeline *p, gp_pipeline_info *out);

typedef struct gp_stage_info {
    const char *name;
    gp_loc at;
    const gp_kind *kind;
    const void *opts;          /* the kind's options struct, filled in */
    int nin, nout;             /* a source has no input, a sink no output */
    bool device;               /* runs on the device */
    int workers;               /* of a host stage */
    bool endless;              /* its frames never end by themselves */
    int64_t frames;            /* of a source: how many it makes in this process; 0: not known, or none */
    int64_t frames_of_all;     /* ... in all processes together; 0: not known */
    const char *const *reads; int nreads;  /* ... the files, as gp_shape_reads was told */
    bool once, any_length;     /* as shape() said */
    const char *writes, *writes_opt;   /* the files that a sink writes, as gp_shape_writes
                                  was told, and the option that names them; else NULL */
    bool shared;               /* its frames are shared out among the processes (gp_env.ranks) */
    int64_t writes_from;       /* of a sink: the first number in its files' names; INT64_MAX: those that are free */
    bool joins;                /* ... its frames are shared out, and all ranks can write them to one file together */
    bool elsewhere;            /* all its frames are on another rank, so that it is not opened in this process */
} gp_stage_info;
/* In topological order. False: there is no stage i. */
bool gp_pipeline_stage(const gp_pipeline *p, int i, gp_stage_info *out);

typedef struct gp_buffer_info {
    const char *name;
    gp_loc at;
    gp_type type;
    int depth;
    bool depth_said;           /* the file says so for this buffer, not for all */
    bool constant;
} gp_buffer_info;
/* False: there is no buffer i. */
bool gp_pipeline_buffer(const gp_pipeline *p, int i, gp_buffer_info *out);
/* The keys that it lists under `metadata`, for gp_loan_get; returns how many. The pipeline's. */
int gp_pipeline_meta_keys(const gp_pipeline *p, const char *const **keys);

/* Writes the plan as `gpipe plan` does: as text, JSON, or an SVG, which the program `dot` of Graphviz draws, and colors by
 * `report`, the JSON of a run of it, unless that is NULL. False after errors. Any thread. */
typedef enum gp_plan_form { GP_PLAN_TEXT, GP_PLAN_JSON, GP_PLAN_SVG } gp_plan_form;
bool gp_pipeline_print_plan(const gp_pipeline *p, gp_plan_form form, const char *report, FILE *to, gp_errs *errs);

/* ---- run ------------------------------------------------------------- */

/* Files that were there before a run, and that `who` ("stage 'write'") replaced: how many, and the one with the lowest
 * number ("?": there was no memory for its path). Or `kept`: one that did not get its name, and where it is. */
typedef struct gp_replaced {
    const char *who;
    gp_loc at;
    uint64_t files, number;
    const char *path;
    bool kept;
} gp_replaced;
void gp_replaced_warn(const gp_replaced *r, gp_errs *errs);    /* adds the warning of it */

typedef struct gp_run_options {
    bool poison;           /* fill every slot before each use: with NaN, integers with bytes 0xa5; and a stage on the host that
                              changes an input is an error, in each frame (of plug-ins the first ones are always looked at) */
    bool isolate;          /* one frame in flight, a wait after every stage */
    bool timed;            /* measure latencies, busy times and waits */
    bool stamped;          /* timed, and the device says when it did what */
    int64_t trace_ns;      /* timed, and what was done in the last so many ns of the run
                              is kept, see gp_trace_json; 0: nothing */
    bool trace_full;       /* each kernel and copy by itself, which costs */
    const char *const *cached; int ncached;    /* stages that run once for
                              each slot, whose data then stand for all later frames */
    bool check_kernels;    /* on the CPU back end, one frame at a time: a user's kernel that
                              reads or writes beyond its arguments is an error. On a GPU this
                              is an error, which names the tool for it */
    bool no_sinks;         /* sinks take frames and do nothing: they are not opened, and write nothing; so
                              no frame is dropped for lack of room or time ('when_full', 'deadline') */
    bool check_finite;     /* a frame with a NaN or infinite element fails in the stage that made it, with an error that names
                              the stage, the frame and the element; each is looked at before others have it, which costs */
    bool (*begin)(void *arg);  /* or NULL: called once all is set up, before frame 0; it may wait. False: the run ends
                                  without a frame, as after gp_cancel. Not where a paused run goes on */
    void *begin_arg;
    /* For gp_pipeline_retune, or NULL: called by it once all is made ready, before the run pauses; it may wait.
     * False: the run is not to pause, which is no error. */
    bool (*pause)(void *arg);
    void *pause_arg;
    /* For a process that is one of several ranks, or NULL: sends `n` bytes of each rank to all, for the collective
     * stage of this number, in the order of the plan. Called again, alike, until it gives 1: they are there, those of
     * rank r at *all + r * n, until it is called for the next. 0: not yet; it never waits. -1: an error was added.
     * Where gp_env says that there are several ranks, a collective stage is an error without it. */
    int (*gather)(void *arg, int collective, const void *mine, size_t n, const void **all, gp_errs *errs);
    void *gather_arg;
    /* Or NULL. Is the path of this sink (gp_stage_info.joins) that of all ranks, so that they write one file? Then
     * it counts as a collective stage, too; else it writes a file of its own. All ranks say the same, with
     * `gather_arg`. */
    bool (*joins)(void *arg, const char *stage);
    /* Or NULL: then it is a warning. Called at the end, with `gather_arg`, for each stage that replaced files, or
     * keeps one, so that several ranks can tell that together; `r` is there during the call. */
    void (*replaced)(void *arg, const struct gp_replaced *r);
    /* Or NULL. Called by the thread of gp_pipeline_run: `who` has the warning that names a stage. When the run was
     * cancelled (level 1) or has failed, and the stage goes on for more than a second with one frame, at most once
     * (`ends`). Else for each frame with which a stage is at work for longer than `stall_timeout`. */
    void (*held_up)(void *arg, bool ends, const gp_errs *who);
    void *held_up_arg;
    int64_t stop_ns;       /* so long may a run go on that is to end, as it was cancelled (level 1) or has failed: 2 s before
                              (halfway, if it is below 4 s) it is cancelled as by level 2, with a warning, and then a stage that
                              is not done is abandoned; 0: however long its stages take */
    bool no_saves;         /* the files of states (`save`) are not written */
} gp_run_options;

/* Frames of one source. in == out + dropped + failed + cancelled. */
typedef struct gp_account {
    const char *source;    /* stage name */
    uint64_t in, out, dropped, failed, cancelled;
    uint64_t faulty;       /* of all: made of files with faults that were told as warnings */
    uint64_t block;        /* where stages regroup: out, dropped and failed grow by so many at a time; else 1.
                              0: only at the end of the run */
    uint64_t late, lost, full;     /* of those dropped: as they were older than a 'deadline'; as they never came to their source,
                              or not in time; as a stage with 'when_full' had no room: its frames have an account of their
                              own, whose source is 'STAGE.queue' */
} gp_account;

/* Numbers of one stage while it runs, and after. */
typedef struct gp_stage_status {
    const char *name;
    uint64_t frames;       /* done, holes not counted */
    uint64_t bytes;        /* of its outputs (of a sink: its inputs) */
    uint64_t busy_ns;      /* of all workers; host stages of a timed run */
    int workers;           /* 0: a segment */
} gp_stage_status;

/* A buffer as one of its readers has it. Buffers inside a segment are not counted. */
typedef struct gp_buffer_status {
    const char *name;
    const char *from, *to; /* who fills it, who reads it: names as in gp_stage_status */
    int depth;             /* slots in use: of many, at first few */
    int held;              /* frames that `to` is not done with, 0 to depth */
} gp_buffer_status;

/* The parts of a device that work at the same time. Peer copies are those from other devices. */
typedef enum gp_engine { GP_ENGINE_COPY_IN, GP_ENGINE_COMPUTE, GP_ENGINE_COPY_OUT, GP_ENGINE_COPY_PEER,
                         GP_ENGINES } gp_engine;

typedef enum gp_outcome {
    GP_DONE,               /* every source ended */
    GP_DRAINED,            /* gp_cancel(1): all that was taken in came out */
    GP_NOT_DRAINED,        /* gp_cancel(2) */
    GP_ERROR,              /* see errs */
    GP_STUCK,              /* a thread did not come back: call _exit soon, do not
                              destroy the pipeline, nor its registry */
    GP_PAUSED,             /* gp_pipeline_retune: it can go on, see gp_pipeline_go_on */
} gp_outcome;

/* Says that the caller writes a file of its own beside the next run (a report), before it: no
 * stage may then write it. `who` names it in messages ("--report") and, as `path`, lives as
 * long as the pipeline. False, with an error, if the pipeline reads that file, somebody
 * else said so, or its folder is not there. */
bool gp_pipeline_writes(gp_pipeline *p, const char *who, const char *path, gp_errs *errs);

/* Runs the pipeline to its end. `o` NULL: no options. It may be run again, one run at a time: each
 * reads, writes and counts from the beginning, with the plan that gp_compile made: what it looked at then
 * (scripts, types of files) is not looked at again. The numbers below are of the newest run; the names in
 * them are the pipeline's. On one GPU a run beside others should not have `launch: persistent`: kernels that
 * stay on the device hold up what others set up. Not after GP_STUCK. On a CUDA device it may raise the stack size
 * (cudaLimitStackSize) of the device's primary context. */
gp_outcome gp_pipeline_run(gp_pipeline *p, const gp_run_options *o, gp_errs *errs);

/* Level 1: sources stop, the rest drains. 2: nothing new is started. 3: the caller ends the
 * process now; before it does, stages' files that are not whole are removed, and what is written of a joined one is
 * kept as after GP_STUCK. Levels only rise, until the run is over: then the level is 0 again, and a call between two
 * runs is for the next one. May be called from any thread and from a signal handler. */
void gp_cancel(gp_pipeline *p, int level);

/* Goes on where the paused run of `from` is, under the plan of p: `from`, or one with the same stages, wires and types
 * of buffers. What may differ: depths, streams, batch, batch_wait, latency, workers, launch, sync, priority,
 * stall_timeout, on_error, max_dropped; constants; and the options, scripts and kernels of stages that keep nothing
 * from frame to frame: those on the host are opened again. All else that differs is an error at its place. Frames keep
 * their numbers; other stages on the host stay open; windows, carried frames, and what is carried on the device move
 * on. The numbers of gp_accounts go on, as do the frames and bytes of gp_stages_status. `from` is destroyed after p.
 * Where p does not fit or cannot be set up, the run of `from` is paused still (gp_pipeline_is_paused), and GP_ERROR
 * returned. A paused run that is not to go on ends as a failed one does when the pipeline is destroyed, or run from the
 * beginning. */
gp_outcome gp_pipeline_go_on(gp_pipeline *p, gp_pipeline *from, const gp_run_options *o, gp_errs *errs);
bool gp_pipeline_is_paused(const gp_pipeline *p);      /* any thread */

/* Retunes a run of `from`: makes all ready to go on under the plan of p while the run goes on (takes memory, compiles
 * kernels, opens stages), waits until what waits in its buffers fits those of p, and pauses it there, at once:
 * nothing goes through first, is flushed or gets its name, but a source that waits for its input pauses once that is
 * over. In a run of several ranks with several collective stages the frames that sources have made go through first, so
 * that all ranks may pause at the same time. What gp_cancel asks for meanwhile is asked of the run that goes on.
 * True: gp_pipeline_run of `from` returns, mostly GP_PAUSED, and gp_pipeline_go_on(p, from) is to follow, which has
 * the options `o` of this call. False: an error, as gp_pipeline_go_on has them; without one the run is over, or
 * coming to its end, or p was cancelled meanwhile, or `pause` was false. Any thread but that of the run, one at a
 * time; neither pipeline is destroyed meanwhile. */
bool gp_pipeline_retune(gp_pipeline *p, gp_pipeline *from, const gp_run_options *o, gp_errs *errs);

/* Once the run of p has gone on after that: ns in which no thread worked, from when the last frame that a thread was at
 * was done until all ran again; *since_told (or NULL): from when the sources were told to stop. 0: it has not. Any
 * thread. */
int64_t gp_pipeline_paused_ns(const gp_pipeline *p, int64_t *since_told);

/* What can be retuned of a run at any time, with the value that it has, as `--set` has them ("stages.write.workers",
 * "4"). How many there are, of which the first `max` are written. */
typedef struct gp_knob { char path[96], value[24]; } gp_knob;
int gp_pipeline_knobs(const gp_pipeline *p, gp_knob *out, int max);

/* How p differs from `from`, as "depth 4 -> 6, stages.blur.sigma 1 -> 2, k.cu", cut off at `max` bytes; how many items
 * that are, 0: what it says is the same. */
int gp_pipeline_changes(const gp_pipeline *p, const gp_pipeline *from, char *text, size_t max);
/* The i-th file that it is made of: its own, then scripts, kernels and constants, then files that it includes, once each
 * time; NULL past the last. The pipeline's. */
const char *gp_pipeline_made_of(const gp_pipeline *p, int i);
/* A number that tells texts of the files that it includes from others; 0: it includes none. */
uint64_t gp_pipeline_included(const gp_pipeline *p);
/* The i-th plug-in that has kinds of its stages; NULL past the last. The registry's. */
const gp_plugin_info *gp_pipeline_plugin(const gp_pipeline *p, int i);

/* ---- frames from the program, and to it ------------------------------ */

/* A stage of kind 'input' has the frames that the program pushes, one of kind 'output' those that it pulls:
 *
 *   gp_input *in = gp_pipeline_input(p, "camera");
 *   gp_loan l;
 *   gp_pipeline_start(p, NULL, &errs);
 *   while (read_camera() && gp_push_begin(in, &l, -1) == GP_LOAN_OK) {
 *       memcpy(l.view.data, pixels, gp_bytes(&l.view.type));
 *       gp_push_end(in, &l);
 *   }
 *   gp_push_close(in);
 *   gp_pipeline_wait(p);
 *
 * A loan is a slot of the buffer itself from _begin to _end: nothing is copied or allocated. With `memory: device` of
 * the stage it lies in the memory of the GPU, if the pipeline runs on one (gp_loan.device). A frame that is pulled is
 * complete then. What the program queues there, in a stream of that GPU, need not be done when it ends the loan: it says
 * which stream that is (gp_loan.stream), and what comes next on that memory waits for it, on the GPU; only gp_push_drop,
 * and a loan beside a collective stage, wait for it themselves. A stream that cannot be waited for, as one that is being
 * captured, ends the run with an error.
 *
 * `workers` of the stage says how many loans the program may have at the same time (1). It may end them in any order;
 * frames keep the order of _begin. _begin waits while the pipeline has no room, or no frame.
 *
 * All of these may be called by any thread, and by several at the same time; a loan may be ended by another thread than
 * began it. They may do the work of stages that take little time on the calling thread.
 *
 * The program keeps the pipeline going: it pulls each output until GP_LOAN_END, and ends its loans. A thread that
 * pushes and pulls by turns may push no more than the pipeline holds before it pulls; outputs are pulled side by side,
 * not one after the other. Where nothing moves, since the only thread that asks for frames waits for itself, a loan is
 * kept, an output that has frames was never asked for one, or the program is in gp_pipeline_wait with frames left to
 * pull, that is an error after `stall_timeout`. A run that ends waits for loans as long again; then it is GP_STUCK. */
typedef struct gp_input gp_input;
typedef struct gp_output gp_output;

/* By the name of the stage. It is there as long as the pipeline; NULL: there is no such stage. The program asks for
 * each input and output before the run: one that it did not ask for is an error of the run. */
gp_input *gp_pipeline_input(gp_pipeline *p, const char *stage);
gp_output *gp_pipeline_output(gp_pipeline *p, const char *stage);
/* What a frame is, at most; *varies: the set of axes (1u << k) in which the buffer's declaration has bounds. Any
 * thread. */
void gp_input_type(const gp_input *in, gp_type *type, unsigned *varies);
void gp_output_type(const gp_output *out, gp_type *type, unsigned *varies);

typedef struct gp_loan {
    uint64_t index;            /* of the frame */
    int64_t time_ns;           /* CLOCK_REALTIME when it came; 0 in one that is pushed: when _end is called */
    const char *name;          /* or NULL. Pulled: it is there until _end. Pushed: it stays there until the run is over */
    gp_view view;              /* pulled: it is read-only, and `type` is exact. Pushed: dim[0] may be made smaller, and what
                                  the buffer's declaration has bounds for */
    int device;                /* whose memory view.data is, as CUDA's runtime numbers it; -1: the host's */
    void *stream;              /* there: the CUstream_st (cudaStream_t) whose work, queued before _end, uses the loan; NULL,
                                  and so after _begin: the (legacy) default stream */
    void *held;                /* the engine's; NULL: there is no loan */
} gp_loan;

typedef enum gp_loan_status {
    GP_LOAN_OK,
    GP_LOAN_TIMEOUT,
    GP_LOAN_END,               /* there are no more frames: the run is over, or stopping; nobody takes what is pushed; or
                                  gp_push_close was called */
    GP_LOAN_PAUSED,            /* the run is paused. It goes on under this pipeline or another, whose endpoints to use then
                                  (gp_pipeline_go_on). Inputs that are joined pause after as many frames of each: go on
                                  with the others until they say so, too */
} gp_loan_status;

/* timeout_ns: 0 does not wait, and less than 0 has no limit. Before a run they wait for it to begin. GP_LOAN_SLICE has
 * no limit either, for what is told of stalls, but comes back with GP_LOAN_TIMEOUT after a tenth of a second, to be
 * called again at once: for a program that looks after signals meanwhile. */
enum { GP_LOAN_SLICE = -2 };
gp_loan_status gp_push_begin(gp_input *in, gp_loan *l, int64_t timeout_ns);
/* Hands the frame on. False: there is no such loan, or the frame cannot be what l->view.type says, so that it
 * failed. */
bool gp_push_end(gp_input *in, gp_loan *l);
/* The same of a frame that is not to be: it keeps its number, and counts as dropped. */
bool gp_push_drop(gp_input *in, gp_loan *l);
/* There are no more frames behind those that were begun. Before a run it is of that one; of a paused run it is of the
 * one that goes on, also under another pipeline. */
void gp_push_close(gp_input *in);

/* The next frame that is no hole, in the order of numbers. */
gp_loan_status gp_pull_begin(gp_output *out, gp_loan *l, int64_t timeout_ns);
/* After gp_cancel(p, 2) nothing is written to the memory of frames on loan, also once they have ended; it is there
 * until the pipeline is run again or destroyed. */
bool gp_pull_end(gp_output *out, gp_loan *l);

/* Frames of one port: n of them, packed, each in as many bytes as one of `type` has. */
typedef struct gp_frames {
    gp_type type;
    int64_t n;
    void *data;
    gp_type *each;         /* the type of each, where some are shorter; NULL: all are as `type` says */
    uint64_t *number;      /* of what is pulled, or was made: the number of each; else NULL */
    int64_t *time_ns;      /* the time of each, as gp_loan has it; NULL: not given, or not asked for */
    const char *const *keys;           /* `nkeys` names as of `metadata`, and of each frame the numbers that it has by */
    int nkeys;                         /* these, in their order, as gp_loan_get and gp_loan_set have them; NaN: none */
    double *meta;          /* NULL: they are not given, or not asked for */
} gp_frames;

/* For frames that take little time: pushes copies of f->n frames, or pulls so many, one after the other, each as _begin
 * and _end do it, with that time-out. *done says how many that were, also where the status is not GP_LOAN_OK. All
 * memory of *f is the caller's. A frame that cannot be what its type says failed, and is the last one that was pushed:
 * *failed. Pulling needs `type` as gp_output_type gives it, and sets `each` and `number`, and `time_ns` and `meta` unless
 * they are NULL. Only for the host's memory. */
gp_loan_status gp_push_frames(gp_input *in, const gp_frames *f, int64_t timeout_ns, int64_t *done, bool *failed);
gp_loan_status gp_pull_frames(gp_output *out, gp_frames *f, int64_t timeout_ns, int64_t *done);

/* Numbers of a loan, as gp_meta_get and gp_meta_set have them. */
bool gp_loan_get(const gp_loan *l, const char *key, double *value);
bool gp_loan_set(const gp_loan *l, const char *key, const double *value);

/* A descriptor for poll() and the like: it can be read when _begin is worth a try. Call that with a timeout of 0
 * until it gives GP_LOAN_TIMEOUT, which makes the descriptor wait again. It belongs to the pipeline. -1: there is
 * none, see errno. */
int gp_input_fd(gp_input *in);
int gp_output_fd(gp_output *out);

/* Does gp_pipeline_run on a thread of its own, which uses `errs`, and what *o points to, until gp_pipeline_wait
 * returns. Until then no functions of the pipeline may be called but those of this section, gp_cancel,
 * gp_pipeline_retune, gp_pipeline_destroy and those that read numbers. False, with an error: it
 * was not started. */
bool gp_pipeline_start(gp_pipeline *p, const gp_run_options *o, gp_errs *errs);
/* Waits until that run is over; GP_ERROR if none was started. */
gp_outcome gp_pipeline_wait(gp_pipeline *p);

/* ---- one stage alone --------------------------------------------------- */

void gp_frames_free(gp_frames *f);     /* frees those that gp_try_stage made; `keys` are not its own */

/* For tests of a kind: runs one stage of it, with `options` as in "sigma: 2, edge: wrap" (or NULL), on the frames of
 * its inputs, which may be shorter in axis 0 and have times and numbers, and gives those that its outputs made, without
 * holes, with `each`, `number` and `time_ns`. out[i].n is how many are wanted, at most; 0: all, of a source up to 256
 * MiB; out[i].keys are those whose numbers are wanted, in `meta`. The keys of all ports are listed for the stage. What
 * a stage on the host writes into an input, or behind the end of a frame (of kernels 'gpipe run --check-kernels' says
 * that), is an error, and so are elements that it leaves unwritten in any frame, each of which run() then gets alone, and
 * more frames than a source's shape() says. False, with an error, and without any frame, where it does not compile, or fails. Messages
 * are of a file "stage", in whose first line the stage is. The registry has gpipe's own kinds, too. */
bool gp_try_stage(const gp_registry *r, const char *kind, const char *options, const gp_frames *in, int nin,
                  gp_frames *out, int nout, gp_errs *errs);

/* ---- a look at frames of a run ---------------------------------------- */

/* A tap copies single frames of a buffer while the run goes on, also of one in the memory of a device. It takes the next
 * frame that is made, or a certain one; where none waits it costs nothing. The run waits for the copy alone.
 *
 *   gp_tap *t = gp_tap_begin(p, "edges", &errs);
 *   gp_tapped f;
 *   while (t && gp_tap_take(t, -1, -1, &f, &errs) == GP_TAP_OK)
 *       show(&f.type, f.data);
 *   gp_tap_end(t);
 *
 * One thread at a time for each tap, any thread otherwise, before the run or during it. A tap is ended before its
 * pipeline is destroyed. */
typedef struct gp_tap gp_tap;
typedef struct gp_tapped {
    uint64_t frame;            /* its number */
    uint64_t holes;            /* frames that were passed over since the last, as they were dropped or failed */
    int64_t time_ns;           /* CLOCK_REALTIME when it came */
    gp_type type;              /* exact */
    const void *data;          /* of the tap, until it is used again; `bytes` of the host's memory */
    size_t bytes;
} gp_tapped;
typedef enum gp_tap_status {
    GP_TAP_OK,
    GP_TAP_TIMEOUT,            /* it goes on waiting: what comes meanwhile is given by the next call */
    GP_TAP_OVER,               /* the run is over, or paused, and may go on under another pipeline (gp_pipeline_go_on) */
    GP_TAP_FAILED,             /* with an error: the frame cannot be copied, was a hole, or had passed already */
} gp_tap_status;
/* NULL, with an error: there is no such buffer. */
gp_tap *gp_tap_begin(const gp_pipeline *p, const char *buffer, gp_errs *errs);
/* frame -1: the next one that is no hole. timeout_ns: less than 0 has no limit. Before a run it waits for that. */
gp_tap_status gp_tap_take(gp_tap *t, int64_t frame, int64_t timeout_ns, gp_tapped *out, gp_errs *errs);
void gp_tap_end(gp_tap *t);    /* accepts NULL */

/* ---- numbers of a run ------------------------------------------------ */

/* Any thread, during and after the run; they take no lock that a frame waits for. Each
 * returns how many there are, of which the first `max` are written. */
int gp_accounts(const gp_pipeline *p, gp_account *out, int max);      /* one per source */
int gp_stages_status(const gp_pipeline *p, gp_stage_status *out, int max);
int gp_buffers_status(const gp_pipeline *p, gp_buffer_status *out, int max);  /* per reader */
/* Latencies of the whole frames that came out so far: from when its source published a frame (a join: the older one)
 * until a sink was done with it; once for each sink. A timed run has them. */
void gp_latency(const gp_pipeline *p, gp_hist *out);
/* Are all frames done, and what was written is being put on disk? */
bool gp_syncing(const gp_pipeline *p);
/* Writes what `gpipe run --report FILE.json` does, or as text the table and the verdict of `gpipe run -v`, once a run that
 * was timed is over, which ended so. `set` is what gp_config had. False after errors: there was no frame, or the run was
 * not timed. */
typedef enum gp_report_form { GP_REPORT_TEXT, GP_REPORT_JSON } gp_report_form;
bool gp_pipeline_print_report(const gp_pipeline *p, gp_report_form form, gp_outcome outcome, const char *const *set, int nset,
                              FILE *to, gp_errs *errs);

/* Bytes that each thread of a kernel has for its local variables on the CPU back end;
 * CUDA allows half. */
enum { GP_CPU_LOCAL = 1024 * 1024 };

/* What a fault of the calling thread was of, when it was at `address` (siginfo_t.si_addr):
 * for a signal handler, which needs SA_ONSTACK. */
typedef struct gp_kernel_fault {
    const char *kernel;        /* the kernel that the thread runs, or loads, on the CPU back end; NULL: none */
    const char *stage;         /* whose it is; NULL: not known */
    bool overflow;             /* its local variables take more than GP_CPU_LOCAL */
} gp_kernel_fault;
void gp_kernel_at_fault(const void *address, gp_kernel_fault *out);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
