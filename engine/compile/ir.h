/* ir.h - the three forms of a pipeline, and the passes between them.
 *
 *   text --parse--> spec --resolve--> graph --lower--> plan --schedule--> plan
 *
 *   spec   what the file says    a tree of nodes, each with its place
 *   graph  what it means         kinds, options, types; indices, no names
 *   plan   what to do            rings, segments, tasks, memory
 *
 * A pass reads one form and writes the next; it never changes its input, except
 * that resolve stores the tree of an expression in its scalar (expr.h).
 * No pass touches a device, a file, a thread, a clock or the environment: what
 * they need of these is in gp_machine, gp_env and gp_probe, so that a plan made
 * anywhere is the same everywhere. All memory is in one arena. Cross-references
 * are indices into the arrays below; -1 is "none". */
#pragma once

#include "base/table.h"
#include "base/yaml.h"
#include <gpipe/gpipe.h>

/* ---- what the passes know of the world (filled by the caller) --------- */

/* The most devices that a machine or a pipeline has. */
enum { GP_DEVICES = 1024 };

/* How a copy between host and device is done: by a copy engine of the GPU; by a kernel; not at all, as the stage beside it
 * reads or writes the host's memory itself. A launch of a frame that is not whole always copies the first way. */
typedef enum gp_copying { GP_COPY_DMA, GP_COPY_KERNEL, GP_COPY_MAPPED, GP_COPYINGS } gp_copying;

/* What goes one way from one to another. */
typedef struct gp_link { double rate, step_ns; } gp_link;      /* bytes a second, 0: not said; before each message */

typedef struct gp_device_info {
    char name[96];
    int cc;                    /* compute capability, 90 is 9.0 */
    int sms;
    int f64;                   /* its f32 rate over its f64 rate: 2, 32, 64 */
    size_t memory;             /* bytes that may be used */
    uint64_t no_peer;          /* of the first 64 devices those whose memory it cannot reach itself, a bit each */
    size_t total, free;        /* all, and those that nobody used when this was asked; total 0: not known */
    int copy_engines;          /* copies at a time; 0: not known */
    char pci[32];              /* "0000:1b:00.0"; "": not known */
    gp_link launch[GP_COPYINGS];       /* what a launch takes that has bytes come in, and as many go out, in each of these
                                          ways; rate 0: it was not measured */
} gp_device_info;

struct gp_machine {
    int cpus;
    size_t memory;             /* bytes of host memory that may be used */
    size_t pin_limit;          /* bytes that may be pinned */
    int sharers;               /* processes of one run that share its memory, which is then what each may use; 0: one */
    bool unified;              /* the device is the CPU back end: host and device
                                  memory are the same, nothing is copied */
    int ndevices;              /* usable CUDA devices */
    gp_device_info device[GP_DEVICES];
    char why[200];             /* why ndevices is 0: "no NVIDIA driver", ... */
    int cuda_driver;           /* as gp_machine_info */
    bool here;                 /* it is the one that this process runs on */
    bool (*compiles)(void);    /* is NVRTC there, for kernels that gpipe writes for its devices? NULL: it is */
};

/* A device that a pipeline uses. A pretend one is a part of the CPU back end with memory of its own, so that plans over
 * several devices can be tried on any machine. */
typedef struct gp_device {
    char name[24];             /* "cuda:1", "cpu:0" */
    bool pretend;
    int index;                 /* of CUDA */
    gp_device_info info;
} gp_device;

/* Files by name. Each is looked at once, when a pass first asks for it, by `look`, and what its head does not have is
 * read by `read`, and all that by nothing else. */
typedef struct gp_probed {
    const char *path;
    bool glob;                 /* `files` is filled in, or file.error says why it is not; else `file` */
    int most;                  /* as gp_probe.most */
    int left;                  /* names that may be looked at for it, with most; what is left then */
    bool cut;                  /* there were more; `files` lacks what is there */
    gp_file file;
    gp_files files;
} gp_probed;
typedef struct gp_probe {
    gp_arena *arena;
    void (*look)(gp_arena *, gp_probed *);     /* gp_probe_look, but for tests */
    /* gp_probe_read, but for tests; NULL: files have no more than their heads. */
    int64_t (*read)(const char *path, int64_t at, void *to, size_t n);
    int64_t (*size)(const char *path);         /* gp_probe_size_of, but for tests; NULL: as `look` says */
    bool lenient;              /* gp_config.lenient */
    int most;                  /* names in folders that are looked at for globs; 0: all */
    int seen;                  /* ... so far */
    gp_table of[2];            /* by path: files, lists of files */
} gp_probe;

/* ---- 1. spec (parse.c, set.c) ---------------------------------------- */

/* A var whose value has to be of a type; a buffer that has to be of one (see expand.c). */
typedef struct gp_typed { const char *name, *full; const gp_node *type; } gp_typed;
typedef struct gp_expected {
    const char *local, *buffer;        /* as the file calls it, and its name in the whole */
    const void *of;
    const gp_node *decl;
    const char *file;
    bool in;                   /* an input of the file; else an output */
    gp_loc at;
} gp_expected;

typedef struct gp_inside gp_inside;
typedef struct gp_spec {
    gp_node *root;             /* always a map */
    const char *file;          /* as given, for messages */
    const char *dir;           /* its folder: relative paths start here */
    bool expanded;             /* it has stages of included files or copies, which have a point in their names */
    const gp_inside *insides;  /* all that nodes stand in */
    gp_typed *typed; int ntyped, typed_cap;
    gp_expected *expected; int nexpected, expected_cap;
} gp_spec;

/* ---- 2. graph (resolve.c and what it calls) -------------------------- */

typedef enum gp_launch_mode {
    GP_LAUNCH_GRAPH, GP_LAUNCH_STREAM, GP_LAUNCH_PERSISTENT
} gp_launch_mode;
/* What the file says of that. */
typedef enum gp_copies_said { GP_COPIES_AUTO, GP_COPIES_DMA, GP_COPIES_MAPPED } gp_copies_said;
typedef enum gp_sync { GP_SYNC_AUTO, GP_SYNC_SPIN, GP_SYNC_YIELD, GP_SYNC_BLOCK } gp_sync;
typedef enum gp_on_error { GP_ON_ERROR_STOP, GP_ON_ERROR_DROP } gp_on_error;
typedef enum gp_on_hole { GP_ON_HOLE_RESET, GP_ON_HOLE_SPLICE } gp_on_hole;
/* Whose work comes first on the device, and on a core; a higher one is a larger number. */
typedef enum gp_priority { GP_PRIORITY_LOW = -1, GP_PRIORITY_NORMAL, GP_PRIORITY_HIGH } gp_priority;

typedef struct gp_use { int stage, port; } gp_use;

/* Frames, or firings, in a period, which is the shortest time in which all stages that are joined somewhere fire whole
 * numbers of times. Not frames a second. 1 where nothing is regrouped. */
typedef int64_t gp_rate;

/* Why a depth is what it is, see depth.c. */
typedef enum gp_depth_why {
    GP_DEPTH_BY_ASKED,              /* the file says it, for the buffer or for the pipeline */
    GP_DEPTH_BY_DEFAULT, GP_DEPTH_BY_SMALL,      /* the default of frames; of small ones */
    GP_DEPTH_BY_BESIDE, GP_DEPTH_BY_SCARCE,      /* fewer: beside large frames or long work, or as memory is scarce */
    GP_DEPTH_BY_RATES, GP_DEPTH_BY_WORKERS,      /* more, which these need; */
    GP_DEPTH_BY_LAUNCHES,                        /* ... or of small frames, so that a launch takes many */
    GP_DEPTH_BY_QUEUE,                           /* one: what waits is in a queue before it, see leaky.c */
    GP_DEPTH_BY_CARRY                            /* twice that of its segment, see gp_ring.before */
} gp_depth_why;

/* What the rows of a buffer's frames are: frames of a window or of a group, or made row by row of these. Of a window
 * they are those that are there, the newest last; of a group they have places. */
typedef enum gp_row_kind { GP_ROWS_ANY, GP_ROWS_WINDOW, GP_ROWS_GROUP } gp_row_kind;

typedef struct gp_buffer {
    const char *name;
    gp_loc at;                 /* where it is declared, or its producer */
    gp_type type;
    gp_type said;              /* as declared, see gp_shape.out */
    const gp_node *dim[GP_MAXDIM];     /* ... and of a size that is declared by the shapes of its maker's inputs, how */
    int depth;
    int shallow;               /* ... and where that would be of no use, or take too much memory: no more than depth */
    bool depth_said;           /* in the file, for this buffer */
    gp_depth_why why;                /* ... it has `depth` */
    gp_loc depth_at;
    gp_use producer;           /* stage -1: a constant */
    gp_use *use; int nuse;     /* consumers, in stage order */
    const char *path;          /* of a constant: the .npy to load, see `file`; NULL: its elements are `numbers`; NULL: all are `value`; */
    const gp_num *numbers;
    gp_num value;
    gp_dtype file;             /* the type of that file's elements, which are cast to `type` */
    gp_use maker;              /* ... or, where stage is not -1: a stage of gp_graph.prologue makes it */
    bool in_prologue;          /* a constant that such a stage reads */
    bool managed;              /* of a constant: devices fetch it from the host's memory, as they need it; of others:
                                  the slots on a device are in managed memory, see gp_pool */
    gp_loc managed_at;         /* ... where the file says so */
    bool given;                /* of a loop's body (loop.h): it comes from outside, and no stage makes it */
    bool wanted;               /* ... or the loop itself reads it: it is an output, carried, or the flag */
    unsigned varies;           /* a set of axes (1u << k) in which a frame may be shorter than `type` says, by its
                                  declaration or that of what it is made of; beside that any frame may have fewer rows */
    bool hidden;               /* its name is not in the file: a stage's key makes it, see window.c */
    gp_row_kind rows;
    bool carried;              /* all of it comes through carried buffers: it decides no frame's name, time or end */
    const char *state;         /* of the state of that name (state.c): that itself, or what a stage changed it to, all in one
                                  place in memory; NULL: of none */
    const char *save; gp_loc save_at;  /* of a state: the .npy file that has it once the run has ended; NULL: none */
    int64_t save_every;        /* ... and after each so many frames; 0: only then */
    const char *missing;       /* ... the file of its 'init', in place of which a number stands, as it was not there; or NULL */
    bool endless;              /* every source it comes from is endless */
    bool follows;              /* it ends when what it is read beside does: endless, or made of held frames */
    gp_rate rate;
    int origin;                /* see metadata.c: its own, of one whose maker says its frames' numbers; else -1; */
    const int *origins; int norigins;  /* ... those of the buffers that it has them from, in the order in which they count */
} gp_buffer;

static inline bool gp_is_const(const gp_buffer *b)
{
    return b->producer.stage < 0 && !b->given;
}

/* As plans have it: what stages make of a state is that state. */
static inline const char *gp_buffer_shown(const gp_buffer *b)
{
    return b->state ? b->state : b->name;
}

typedef struct gp_stage {
    const gp_kind *kind;
    const gp_plugin_info *plugin;      /* that the kind is of; NULL: none */
    const char *name;
    gp_loc at;                 /* of the stage's name, or its kind */
    const gp_node *node;       /* of the file: its keys, each with its place */
    void *opts;
    int *in, *out;             /* buffers, in port order; -1: optional, absent */
    const char **in_name, **out_name;
    int nin, nout;
    bool device;               /* record() runs, not run() */
    int placed;                /* then on this one of gp_graph.device only; -1: on all lanes */
    gp_priority priority;
    bool priority_said;        /* ... in the file, for this stage */
    size_t spares;             /* bytes of a frame that do not cross since it runs on the host, see borders.c */
    int workers;               /* host; 1 where frames take turns */
    bool workers_auto;         /* the machine decides: it is not said, or `auto`; then whether it did, see workers.c */
    bool workers_said;         /* the key is there */
    int64_t busy_ns;           /* as shape() said, and */
    int most_workers;          /* ... this; 0: any number */
    bool zero;                 /* zero: true */
    int64_t deadline_ns;       /* host: most of the age of a frame that it takes; 0: any */
    gp_on_hole on_hole;
    gp_on_error on_error;      /* host */
    int64_t max_dropped;       /* frames that it may drop because they failed; or */
    double max_part;           /* ... of those that it took up, the part that may be; each -1: any */
    bool variables, calls_library, serial, endless, follows, batched, keeps_slots, frame_info, once, any_length, cooperative,
        writes_all, each_once, file_each, uncaptured;
    size_t scratch, scratch_zero, state, table;
    gp_known known;
    gp_dim3 block, grid;                 /* as shape() said; x 0: it did not */
    const char *writes, *writes_opt;     /* as gp_shape_writes was told */
    int64_t writes_from;                 /* as shape() said */
    const char *const *reads; int nreads;        /* as gp_shape_reads was told */
    unsigned *sources;         /* bit set over stages: which sources reach it;
                                  NULL until resolved */
    bool by_number;            /* as shape() said */
    bool each_rank;            /* of a source, shard: none */
    bool shared;               /* its frames are shared out among ranks (shard.c), or runs (resume.c): see gp_number_of */
    bool joins;                /* as shape() said, and */
    int to_rank, from_rank;    /* ... these, and */
    double round_bytes; int round_steps;       /* ... these; */
    int only;                  /* the rank, plus 1, that alone has its frames, which are absent in the others; 0: all have some */
    bool elsewhere;            /* of a host stage: that is another rank, so that it is not opened here */
    bool regroups;             /* its kind has neither run() nor record(), or has emit(): */
    gp_regroup regroup;        /* firing.h */
    gp_rate rate;              /* firings */
    bool carried;              /* what it makes is, see gp_buffer.carried */
    bool prologue;             /* see gp_graph.prologue */
    bool closes;               /* it carries what is made from its own output, which closes a cycle: its input is no edge
                                  of the topological order */
    int cycle;                 /* the same number, from 1 up, for all stages of a cycle; 0: it is on none */
    bool circles;              /* ... which is in one segment; */
    bool within;               /* ... and within one that is not, so that each frame waits for the host */
    bool states;               /* it uses a state, */
    int *after; int nafter;    /* ... behind these stages, which use it before */
    int last;                  /* of one that closes a cycle: what it carries is ready behind this one */
    bool each_shape;           /* the types of its outputs are bounds: shape() is called for each frame */
    bool fills_device, reads_device; int at_once; const char *does;    /* likewise */
    bool in_order;             /* it is serial, and has several workers, which begin in order */
    const char *expr; unsigned beyond, by_place, beside; gp_reduction reduction;       /* likewise */
    unsigned char none[GP_MAXPORT]; int64_t tail_rows;                         /* likewise */
    /* A stage that fuse.c made: the stages of the file that it is, and the buffers between them, which are nowhere. */
    const char *const *part; int nparts;
    const char *const *inside; int ninside;
} gp_stage;

/* Is what it reads code, a script or a kernel? Of a source or a sink it is else data. */
static inline bool gp_deps_code(const gp_stage *s)
{
    return (s->nin && s->nout) || gp_kind_opt(s->kind, "script", GP_OPT_PATH);
}

/* Do frames of source i reach it? */
static inline bool gp_comes_from(const gp_stage *s, int source)
{
    return s->sources[source / 32] >> source % 32 & 1;
}

/* The first of the sources from `source` on, of `n` stages, that it comes from; -1: none. */
static inline int gp_next_source(const gp_stage *s, int source, int n)
{
    for (; source < n; source += s->sources[source / 32] >> source % 32 ? 1 : 32 - source % 32)
        if (gp_comes_from(s, source))
            return source;
    return -1;
}

/* carry.c: is it the stage that makes a carried buffer? */
bool gp_is_carry(const gp_stage *st);

/* leaky.c: is it the stage before an input that does not wait? It takes each frame at once, and is a source for those
 * behind it. And which frames does it drop? */
typedef enum gp_when_full { GP_WHEN_FULL_WAIT, GP_WHEN_FULL_DROP_NEWEST, GP_WHEN_FULL_DROP_OLDEST } gp_when_full;
bool gp_is_leaky(const gp_stage *st);
gp_when_full gp_leaky_when(const gp_stage *st);

/* Is what it makes in the memory of the device, where that is not the host's? */
static inline bool gp_stage_makes_on_device(const gp_stage *s)
{
    return s->device || s->fills_device;
}

/* Is what it takes there? */
static inline bool gp_stage_takes_on_device(const gp_stage *s)
{
    return s->device || s->reads_device;
}

/* A device stage whose frames take turns: what it does of one waits for the one before. */
static inline bool gp_stage_in_order(const gp_stage *s)
{
    return s->device && (s->state || s->serial);
}

/* One that waits for what another stage of its segment does of the frame before. */
static inline bool gp_stage_circles_back(const gp_stage *s)
{
    return s->circles && s->closes;
}

/* Do its frames take turns, so that there is something of one frame that waits for the one before? */
static inline bool gp_stage_takes_turns(const gp_stage *s)
{
    return gp_stage_in_order(s) || gp_stage_circles_back(s);
}

/* On how many of the pipeline's `lanes` does it run? On one, where the file says so, or a frame needs another. */
static inline int gp_stage_lanes(const gp_stage *s, int lanes)
{
    return s->placed >= 0 || gp_stage_in_order(s) || s->regroups || s->cycle ? 1 : lanes;
}

/* Two neighbors that compute element by element and are two kernels all the same: `to` reads what `from` makes. */
typedef struct gp_unfused { const char *from, *to, *why; } gp_unfused;

/* See gp_digest_stages(). `of`: a number, in hexadecimal. */
typedef struct gp_digest { const char *stage; char of[17]; } gp_digest;

/* A plug-in that has kinds of the stages, also of those in loops. */
typedef struct gp_used_plugin { const gp_plugin_info *info; struct gp_used_plugin *next; } gp_used_plugin;

typedef struct gp_graph {
    const char *name;
    const char *file, *dir;
    gp_buffer *buffer;  int nbuffers;
    gp_stage *stage;    int nstages;     /* in topological order */
    gp_stage *prologue; int nprologue;   /* those that read nothing but constants, in order: each runs once, before
                                            frame 0, and makes constants */
    gp_scope scope;                      /* the vars, for expressions */
    const gp_device *device; int ndevices;   /* 0: the CPU back end in the host's memory. First those that the pipeline
                                  names for all its stages, its lanes, then those that only a stage names */
    int lanes;
    const char *device_name;   /* "cpu", "cuda:0, cuda:1" */
    const char *device_why;    /* "auto: NVIDIA H200", "auto: no NVIDIA driver" */
    gp_loc device_at;
    int depth;                 /* of buffers that say none; 0: auto, see gp_default_slots() */
    int streams;               /* 0: auto */
    int batch;                 /* 0: auto */
    int64_t batch_wait_ns;     /* how long a launch may wait to fill its batch */
    int64_t deadline_ns;       /* of stages that say none; 0: none */
    bool deadlines;            /* some stage has one */
    int64_t latency_ns;        /* most of a frame, from its source to its end, that launches are chosen for; 0: any */
    gp_launch_mode launch;
    gp_sync sync;
    gp_copies_said copies;
    gp_priority priority;      /* of stages that say none */
    gp_on_error on_error;
    int64_t stall_ns;          /* 0: never */
    bool fuse;                 /* neighbors may become one stage */
    gp_unfused *unfused; int nunfused;
    gp_digest *digest; int ndigests;     /* of the stages of the file */
    gp_used_plugin *plugins;             /* each once */
    const char *const *metadata; int nmetadata;  /* the names of numbers that travel with frames, as listed */
    int rank, ranks;           /* which of how many processes this is, see shard.c */
    const char *resume; gp_loc resume_at;    /* the file that notes how far a run has come; NULL: none does */
    uint64_t outside;          /* then: of what texts of the file have from the environment; */
    uint64_t from;             /* ... the number of the first frame, as the run found it there */
} gp_graph;

/* What is at a port of a stage, NULL: nothing. The stage that makes what it reads there, -1: none, as of a constant. */
static inline gp_buffer *gp_stage_in(const gp_graph *g, const gp_stage *s, int port)
{
    return s->in[port] < 0 ? NULL : &g->buffer[s->in[port]];
}

static inline gp_buffer *gp_stage_out(const gp_graph *g, const gp_stage *s, int port)
{
    return s->out[port] < 0 ? NULL : &g->buffer[s->out[port]];
}

static inline int gp_stage_maker(const gp_graph *g, const gp_stage *s, int port)
{
    return s->in[port] < 0 ? -1 : g->buffer[s->in[port]].producer.stage;
}

/* Over all ranks and runs, the number of firing k of a stage, and the firing that has number n. */
static inline uint64_t gp_number_of(const gp_graph *g, bool shared, uint64_t k)
{
    return shared ? k * (uint64_t)g->ranks + (uint64_t)g->rank + g->from : k;
}

static inline uint64_t gp_firing_of(const gp_graph *g, bool shared, uint64_t n)
{
    return shared ? (n - g->from) / (uint64_t)g->ranks : n;
}

/* ---- 3. plan (lower.c, then schedule.c) ------------------------------ */

/* Host memory, with lanes 1; or that of `lanes` devices from `index` on, of gp_graph.device. What has slots in several
 * has `run` consecutive frames on one, the next on the next, in turns: schedule. */
typedef struct gp_place { bool device; int index, lanes, run; } gp_place;

/* Actors move frames on: each has its own threads. An actor is a host stage
 * or a segment. */
typedef enum gp_actor_kind { GP_ACTOR_HOST, GP_ACTOR_SEGMENT } gp_actor_kind;
typedef struct gp_actor {
    gp_actor_kind kind;
    int stage;                 /* of a host stage, else -1 */
    int segment;               /* of a segment, else -1 */
} gp_actor;

/* The slots of one buffer in one place. A buffer that crosses between host and
 * device has a ring on each side; on a unified machine it has one. A ring with
 * counters (segment == -1) has one producing actor and its consumers; the slots
 * of a ring that lives inside a segment are free when the segment's launch is
 * done. */
typedef struct gp_ring {
    int buffer;                /* -1: frame infos of a segment */
    gp_place place;
    int depth;
    gp_depth_why why;          /* schedule: ... `given` was its depth before alignment */
    int given, unit;           /* ... which made it unit * 2^k; 0: as deep as its copy, or as its segment, */
    int turns;                 /* ... on each of so many devices */
    int begins;                /* slots that a run uses at first: depth, but for what is deep by launches (run/room.c) */
    size_t bytes;              /* of one frame, rounded up to 256 */
    int pool;                  /* schedule */
    size_t offset;             /* schedule: in a slot of the pool */
    int producer;              /* actor */
    int *consumer; int nconsumers;   /* actors, each once */
    int segment;               /* the segment it is inside of, or -1 */
    int before;                /* schedule: the ring whose slots it has, and of which frame k - 1 is its frame k; -1: it has
                                  slots of its own */
} gp_ring;

/* Slots of several rings side by side: slot i of ring r starts at
 * i * stride + r.offset. Rings that are copied alike share a pool, so that the
 * slots of consecutive frames are one piece of memory. */
typedef struct gp_pool {
    gp_place place;
    bool pinned;
    bool managed;              /* of a device, and counted as the host's: a device has those that launches need */
    int depth;                 /* in all lanes */
    bool one;                  /* all frames have the same slot, of a state (state.c) */
    size_t stride;             /* bytes of one slot, a multiple of 256; the last */
    size_t guard;              /* ... of these are nobody's: GP_GUARD is in them (api/try.c) */
} gp_pool;

enum { GP_GUARD = 0xa5 };

/* Its slots, on each of its devices. */
static inline int gp_pool_slots(const gp_pool *p)
{
    return p->one ? 1 : p->depth / p->place.lanes;
}

/* Memory beside rings: constants, tables, carried state, scratch. */
typedef enum gp_extra_use { GP_EXTRA_CONST, GP_EXTRA_TABLE, GP_EXTRA_STATE, GP_EXTRA_SCRATCH } gp_extra_use;
typedef struct gp_extra {
    gp_extra_use use;
    gp_place place;
    int buffer;                /* of a constant */
    bool managed;              /* it is in the host's memory, and devices read it there */
    int stage;                 /* of the others */
    size_t bytes;              /* all of it, on each of its devices */
    size_t stride;             /* of scratch: bytes for one of the slots */
} gp_extra;

typedef enum gp_task_kind {
    GP_TASK_HOST, GP_TASK_COPY_IN, GP_TASK_STAGE, GP_TASK_COPY_OUT, GP_TASK_COPY_PEER
} gp_task_kind;

/* When a launch of several frames does a task: all frames at once, or frame by frame, before the tasks that need what is
 * made of the frame before; with these, of each frame in turn; or behind them. */
typedef enum gp_task_turn { GP_TURN_BEFORE, GP_TURN_IN, GP_TURN_BEHIND } gp_task_turn;

/* One thing the plan does per frame. A copy in or out moves all the rings of one pool to
 * the same-layout pool on the other side (from_pool, to_pool: schedule); a peer copy, which is a part of the segment
 * that reads the frame, moves one ring from one device to another. */
typedef struct gp_task {
    gp_task_kind op;
    int stage;                 /* of GP_TASK_HOST and GP_TASK_STAGE; else -1 */
    int segment;               /* -1 for GP_TASK_HOST */
    int *in, *out;             /* rings (for stages in port order; -1 where the
                                  port is a constant or absent) */
    int nin, nout;
    int *dep; int ndeps;       /* earlier tasks of the same segment */
    int from_pool, to_pool;    /* of copies; */
    gp_copying copying; int copied_most;       /* ... schedule: how, in launches of at most so many frames; in longer ones
                                  by a copy engine */
    gp_task_turn turn;         /* schedule */
    bool follows;              /* schedule: the order of its frames follows from what another task carries */
    int state, table, scratch; /* extras, or -1 */
    int *konst;                /* of stages: per input port, an extra or -1 */
} gp_task;

typedef struct gp_segment {
    gp_place place;
    int regroups;              /* the stage that regroups, which it is then alone; or -1 */
    gp_priority priority;      /* the highest of its stages; */
    bool priorities;           /* ... they have several */
    bool each_shape;           /* a stage of it says the shapes of each frame, which is launched directly, alone */
    int uncaptured;            /* a stage that cannot be part of a graph, so that all are launched directly; or -1 */
    bool sparse;               /* its slots come again so seldom, beside what is in flight, that there are no execs */
    int *task; int ntasks;     /* in an order that respects deps */
    int *in, *out;             /* rings with counters that it reads and writes */
    int nin, nout;
    int depth;                 /* d: frames (of one that regroups: firings) in flight at most; of all
                                  others every ring they touch has depth d * 2^k */
    int period;                /* of slot addresses: the largest such depth */
    int streams;               /* on each device */
    int batch;                 /* the most frames in one launch, 1 .. depth */
    int info_host, info_dev;   /* rings of frame infos (gp_frame_info), inside
                                  the segment; the same on a unified machine;
                                  -1 when no stage of it sets frame_info. The
                                  launcher fills info_host; a copy task moves it */
} gp_segment;

/* Of a frame in such a ring, for so many stages. */
static inline size_t gp_info_bytes(int stages)
{
    return (size_t)(stages + GP_INFOS - 1) / GP_INFOS * GP_INFOS * GP_INFO_BYTES;
}

typedef struct gp_plan {
    const gp_graph *graph;
    bool unified;
    gp_ring *ring;       int nrings;
    gp_pool *pool;       int npools;
    gp_extra *extra;     int nextras;
    gp_task *task;       int ntasks;
    gp_segment *segment; int nsegments;
    gp_actor *actor;     int nactors;    /* in topological order */
    int *host_task;            /* per stage: its GP_TASK_HOST task, or -1 */
    int *konst[2];             /* per buffer: the extra of a constant on the host, on the device; or -1 */
    size_t host_bytes, pinned_bytes, device_bytes;
    size_t *on_device;         /* ... the last per device */
    size_t copy_in_bytes, copy_out_bytes; /* over PCIe in a period, see gp_rate; */
    size_t copy_peer_bytes;    /* ... from one device directly to another */
} gp_plan;

/* The lane that frame f is in, and its slot there, of `depth` slots in all lanes. */
static inline int gp_lane(gp_place p, uint64_t f)
{
    return p.lanes > 1 ? (int)(f / (uint64_t)p.run % (uint64_t)p.lanes) : 0;
}

static inline uint64_t gp_lane_slot(gp_place p, uint64_t f, int depth)
{
    uint64_t slot = f % (uint64_t)depth, run = (uint64_t)p.run;
    return p.lanes > 1 ? slot / (run * (uint64_t)p.lanes) * run + slot % run : slot;
}

/* ---- passes ---------------------------------------------------------- */

/* parse.c: NULL after errors. */
gp_spec *gp_parse(gp_arena *, const char *text, size_t len, const char *file, gp_errs *);
/* The folder of a file: what is before its last slash. */
const char *gp_folder_of(gp_arena *, const char *file);
/* expand.c: applies all settings; then `stages` has those of included files and of `repeat`, too. False after errors. */
bool gp_expand(gp_arena *, gp_spec *, const char *const *set, int nset, const gp_registry *, const gp_env *, gp_probe *,
               gp_errs *);
/* Is it no stage, but an include, a branch, or a stage with copies? */
bool gp_is_reused(const gp_node *stage);
/* inside.c: errors in included files get the name of the file as others have it, and where it is included as a note. */
void gp_spec_places(const gp_spec *, gp_errs *);
/* ... The place in the pipeline's own file, where what is there is included. */
gp_loc gp_spec_place(const gp_spec *, gp_loc at);
/* set.c: is what it sets there only once the spec is expanded? */
bool gp_set_is_late(gp_arena *, const gp_spec *, const char *assignment, const gp_registry *);
/* set.c: one `--set PATH=VALUE`; changes the tree. The nodes it makes are at
 * line 0 of a file whose name is `assignment` itself, the same pointer. */
bool gp_spec_set(gp_arena *, gp_spec *, const char *assignment, const gp_registry *, gp_errs *);
/* edit.c: the file's text with what such an assignment sets, where it stands; all other bytes are as they were.
 * *out_len bytes in memory of the arena. NULL with an error: nothing of it can be set there alone. */
char *gp_spec_edit(gp_arena *, const char *text, size_t len, const char *file, const char *assignment,
                   const gp_registry *, size_t *out_len, gp_errs *);
bool gp_node_is_same(const gp_node *, const gp_node *);       /* edit.c; in any order of keys */
/* recorded.c: the section 'recorded' of a file, and what else a compilation asks for. */
typedef struct gp_asked { const char *name, *value; } gp_asked;        /* of the environment; value NULL: it is not there */
typedef struct gp_recorded {
    gp_arena *arena;
    const gp_node *map;        /* NULL: the file has no such section */
    const gp_env *of;          /* gp_config's, while it is compiled */
    gp_env env;                /* as it was then, else as it is */
    struct tm date;
    const char **set; int nset;        /* its settings, then gp_config's */
    gp_asked *asked; int nasked, cap;
} gp_recorded;
/* Before gp_expand; changes the folder of the spec. NULL after errors. */
gp_recorded *gp_recorded_begin(gp_arena *, gp_spec *, const gp_config *, gp_probe *, gp_errs *);
/* The text with this value of 'recorded', which is in braces; NULL: with an empty one. NULL: there is no place for it. */
char *gp_recorded_text(gp_arena *, const char *text, size_t len, const char *value, size_t *out_len);
/* set.c: the name of each item of a list of stages: as given, else its kind, with
 * a number when that is taken (blur, blur2). Two given names may be equal. */
void gp_stage_names(gp_arena *, const gp_node *stages, const char **names);
/* set.c: the path of "a.b=value" in that spec, its parts, of which names of stages and buffers are one each. */
const char **gp_set_words(gp_arena *, const gp_spec *, const char *assignment, int *n);
/* In a path from `root` on, names of stages become their numbers. */
void gp_number_stages(gp_arena *, const gp_node *root, const char **word, int nwords);
/* set.c: the name of the i-th buffer that stage `name` makes when it says no `out`;
 * NULL past the last. `*port`: its port, NULL for one that is named by its buffer. */
const char *gp_default_out(gp_arena *, const gp_kind *kind, const char *name, int i,
                           const gp_port **port);
/* options.c: would the kind take that value, as it would stand in YAML, for its option? */
bool gp_option_takes(const gp_kind *, const char *option, const char *value);
/* resolve.c: NULL after errors. */
gp_graph *gp_resolve(gp_arena *, const gp_spec *, const gp_registry *, const gp_env *,
                     const gp_machine *, gp_probe *, gp_errs *);
/* probe.c: looks at what the path or pattern of `x` names; fills in the rest. This file
 * is the only part of a compilation that touches files. */
void gp_probe_look(gp_arena *, gp_probed *x);
/* Bytes of a regular file from `at` on: how many there were, -1 with errno. */
int64_t gp_probe_read(const char *path, int64_t at, void *to, size_t n);
/* The bytes of a regular file, -1: it is none. */
int64_t gp_probe_size_of(const char *path);
/* digest.c: before stages are fused, what each does, as a number, where the file has it. */
void gp_digest_stages(gp_arena *, const gp_spec *, const gp_probe *, gp_graph *);
/* Notes for each var of `now` in `changed` whether it, or one that it names, says something else than in `was`; NULL:
 * no vars. */
void gp_vars_changed(gp_arena *, const gp_node *was, const gp_node *now, bool *changed);
/* shard.c: which stages have frames that are shared out among ranks; false with an error where that cannot be. */
bool gp_shard(gp_arena *, gp_graph *, gp_errs *);
/* Why a stage needs more than one of a source's frames, or all of them; NULL: it does not. Does a source make its frames
 * again? */
const char *gp_stage_needs(const gp_stage *);
bool gp_stage_starts_anew(const gp_stage *);
bool gp_resume_check(gp_arena *, gp_graph *, gp_errs *);
uint64_t gp_resume_outside(gp_arena *, const gp_node *, const gp_env *, gp_errs *);
/* lower.c */
gp_plan *gp_lower(gp_arena *, const gp_graph *, const gp_machine *, gp_errs *);
/* carry.c: does the task of a device stage carry what is read where it was made, so that it does nothing? */
bool gp_task_is_nothing(const gp_plan *, const gp_task *);
/* carry.c: the task of a device stage whose end lets the next frame begin: that which makes what `task` carries; else itself. */
int gp_task_passer(const gp_plan *, int task);
/* schedule.c: fills in depths, pools, offsets, streams, batch; a new plan. */
gp_plan *gp_schedule(gp_arena *, const gp_plan *, const gp_machine *, gp_errs *);
/* verify.c: the invariants (GP_E_BUG) and the budget (GP_E_RESOURCE). */
bool gp_verify(const gp_plan *, const gp_machine *, gp_errs *);
bool gp_budgets(const gp_plan *, const gp_machine *, gp_errs *);

/* lint.c: warnings of what a sound plan should not do if it is to be fast, for a
 * machine that has the plan's device. In a line of `text`, the file, the comment
 * "# nolint: NAME" keeps that lint silent. */
void gp_lint(const gp_plan *, const gp_spec *, const gp_machine *, const char *text, size_t len,
             gp_errs *);
/* Does any lint depend on what device and how much memory there is? Finding that out takes
 * a quarter of a second. */
bool gp_lint_of_machine(const gp_plan *);

/* dump_graph.c, dump_plan.c: these forms, on a stdio stream. */
typedef enum gp_dump { GP_DUMP_TEXT, GP_DUMP_JSON } gp_dump;
void gp_dump_graph(FILE *, const gp_graph *, gp_dump);
void gp_dump_plan(FILE *, const gp_plan *, gp_dump);

/* Calls shape() of `st` for a frame whose inputs have the types `in` (fewer
 * rows than the buffers'); sets `out`. No allocation; for the executor. */
bool gp_partial_shape(const gp_graph *, const gp_stage *st, const gp_type *in,
                      gp_type *out, gp_errs *);
/* The same of a device stage that has an input without rows: its outputs have none, or what gp_stage.none says. */
bool gp_shape_of_none(const gp_graph *, const gp_stage *st, gp_type *in, gp_type *out, gp_errs *errs);
