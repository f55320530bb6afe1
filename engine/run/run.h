/* run.h - a running pipeline: rings with counters, actors with threads.
 * For the files of the executor, and for those that read its counters (api/status.c, report).
 * The comment at the top of run.c says how it works. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include "device/backend.h"
#include "base/clock.h"
#include "base/table.h"
#include "compile/firing.h"
#include "run/cores.h"
#include "run/frame.h"
#include "run/pipeline.h"
#include "run/timely.h"

#define GP_UNKNOWN UINT64_MAX          /* an end that is not known yet */

/* ---- waiting (ring.c) ------------------------------------------------ */

/* Where threads sleep until what others change without a lock has changed. Who changed it
 * wakes them; that costs one load while nobody sleeps. */
typedef struct gp_eventcount {
    _Alignas(64) atomic_int sleepers;      /* read by others all the time */
    _Alignas(64) pthread_mutex_t lock;
    pthread_cond_t wake;
    struct gp_wakes *wakes;    /* of a timed run: what it took to wake those who slept here; else NULL */
    int fd;                    /* an eventfd that is written to as well, once, when armed (with lock); -1: none */
    bool armed;                /* ... which counts as a sleeper */
} gp_eventcount;

void gp_eventcount_init(gp_eventcount *p);
void gp_eventcount_fini(gp_eventcount *p);
/* Until ready(arg): spins a little, yields for spin_ns (INT64_MAX: for ever), then
 * sleeps; with spin_ns 0 it sleeps at once. Has it slept? */
bool gp_eventcount_wait(gp_eventcount *p, bool (*ready)(void *arg), void *arg, int64_t spin_ns);
/* The same, but no longer than until gp_now_ns() is `end_ns`. */
bool gp_eventcount_wait_until(gp_eventcount *p, bool (*ready)(void *arg), void *arg, int64_t spin_ns, int64_t end_ns);
void gp_eventcount_wake(gp_eventcount *p);
/* The next wake writes to its eventfd, if it has one. */
void gp_eventcount_arm(gp_eventcount *p);
void gp_eventcount_set_fd(gp_eventcount *p, int fd);

/* ---- rings ----------------------------------------------------------- */

/* A counter on a cache line of its own. */
typedef struct gp_cursor {
    _Alignas(64) _Atomic uint64_t at;
    atomic_bool closed;        /* of a consumer: it takes no more */
    atomic_bool paused;        /* ... in this run (paused.c) */
    atomic_ullong got;         /* likewise, timed: the sum of the times at which frames were
                                  given back, since the start; sums wrap, see measure.c */
    atomic_llong held_ns;      /* likewise: gp_measure_held when it was closed */
    atomic_ullong last;        /* likewise: when it gave frames back last, since the start */
} gp_cursor;

struct gp_ringrt {
    gp_cursor produced;
    _Atomic uint64_t there;    /* the frame behind the last published one that is no hole; of one that tells_holes */
    _Atomic uint64_t end;      /* frames in all; set after the last publish */
    _Atomic uint64_t most;     /* no more than these will come, as something before it has ended. Who makes them may not
                                  say so yet: it waits until its other inputs end, and these may wait until the holes
                                  at their end are consumed by others, too */
    atomic_bool paused;        /* no more will come in this run (paused.c) */
    atomic_int room, limit;    /* the lesser is how many frames may wait in it: what room.c says, and its depth, or that of
                                  the plan that comes next (retune.c) */
    gp_cursor *consumed;       /* per consumer of the plan's ring */
    atomic_ullong put;         /* timed: the sum of the times at which frames were published */
    gp_meta *meta;             /* per slot */
    gp_numbers *numbers;       /* per slot, likewise; NULL: the pipeline lists no metadata */
    gp_type *type;             /* per slot, of a buffer whose frames differ in shape (gp_buffer.varies): written and read as
                                  meta.rows, which it then has too; else NULL */
    char *base;                /* of slot 0; */
    char **lane;               /* of one whose slots are on several devices: of slot 0 on each */
    uint64_t shift;            /* frame k is in the slot of frame k + shift: see gp_ring.before; else 0 */
    size_t stride;
    const gp_ring *ring;
    const gp_buffer *buffer;   /* NULL: frame infos */
};

static inline void *gp_slot(const gp_ringrt *r, uint64_t frame)
{
    char *base = r->lane ? r->lane[gp_lane(r->ring->place, frame)] : r->base;
    return base + gp_lane_slot(r->ring->place, frame + r->shift, r->ring->depth) * r->stride;
}

static inline gp_meta *gp_meta_of(const gp_ringrt *r, uint64_t frame)
{
    return &r->meta[frame % (uint64_t)r->ring->depth];
}

/* NULL: the pipeline lists no metadata. */
static inline gp_numbers *gp_numbers_of(const gp_ringrt *r, uint64_t frame)
{
    return r->numbers ? &r->numbers[frame % (uint64_t)r->ring->depth] : NULL;
}

/* What a frame is, exactly. */
static inline gp_type gp_type_of(const gp_ringrt *r, uint64_t frame)
{
    if (r->type)
        return r->type[frame % (uint64_t)r->ring->depth];
    gp_type t = r->buffer->type;
    t.dim[0] = gp_meta_of(r, frame)->rows;
    return t;
}

static inline void gp_set_type(gp_ringrt *r, uint64_t frame, const gp_type *t)
{
    gp_meta_of(r, frame)->rows = t->dim[0];
    if (r->type)
        r->type[frame % (uint64_t)r->ring->depth] = *t;
}

/* ---- actors --------------------------------------------------------- */

/* What keeps an actor from taking a frame: no frame in an input, no room in an output, no
 * idle stream. */
typedef enum gp_wait_reason { GP_WAITS_FOR_INPUT, GP_WAITS_FOR_OUTPUT, GP_WAITS_FOR_STREAM,
                        GP_WAIT_REASONS } gp_wait_reason;

typedef enum gp_doing { GP_DOING_NOTHING, GP_DOING_WAIT, GP_DOING_WORK, GP_DOING_FINISH,
               GP_DOING_IDLE, GP_DOING_GONE } gp_doing;

/* Sums over the measured turns of a worker, for the least-squares line of time over frames: the time is what a turn
 * took outside of the kind's code. The last two are over all turns. */
typedef struct gp_turn_sums {
    double turns, frames, frames_squared, ns, frames_ns;
    double ended_early, frames_of_ended;   /* the kind returned before it had done all frames of the turn */
} gp_turn_sums;

/* The wait of a thread: when it began (0: there is none, or the run is not timed), and what for. */
typedef struct gp_blocked { int64_t since; gp_wait_reason block; } gp_blocked;

/* A worker of a host stage, the launcher or the reaper of a segment; its thread; and how the watchdog sees it. */
typedef struct gp_threadrt {
    gp_run *run;
    struct gp_actorrt *actor;
    int worker;                /* of a host stage; of a segment 0 is the launcher,
                                  1 the reaper */
    int own_tid, own_clock;    /* of the thread */
    long lost_core, slept;     /* how often it had, when it last asked */
    _Alignas(64) atomic_int doing;
    _Atomic uint64_t frame;
    atomic_int clock;          /* CPU time of the thread that is or was at it, a clockid_t; to be read once there
                                  is a tid */
    atomic_int tid;            /* of the kernel */
    /* A host stage's, see turn.c. */
    atomic_bool taken;         /* a thread is at it */
    gp_blocked blocked;        /* read and written by the thread that has taken it */
    unsigned turns;            /* likewise */
    int samples;               /* likewise: of its actor's cost */
    unsigned works;            /* likewise, and below: for gp_measure_cpu */
    bool takes_long;
    int64_t loan_ns;           /* likewise, timed: since when the program has its frame, or has none; 0: never had one */
    uint64_t loan;             /* likewise: the number of that frame, plus 1; 0: none */
    bool goes_back;            /* likewise: it waited for a frame, which it is to be asked for again */
    int64_t worked_ns;         /* likewise: in the kind's code, of the turn that is measured; */
    bool halves;               /* ... which takes half of the frames: else all have as many, and no line is known */
    gp_turn_sums measured;     /* likewise, of a timed run */
    _Atomic(struct gp_threadrt *) at;      /* its thread is at this other one; NULL: at none */
    _Atomic unsigned visits;   /* how often it has been at others */
    _Atomic(struct gp_threadrt *) asked;   /* to do meanwhile the work of this one, whose thread is held up here */
    gp_errs errs;              /* this worker's own */
    gp_hist *time;             /* of a host stage in a timed run: of one frame */
    struct gp_track *track;    /* of a traced run, else NULL */
    struct { int doing; uint64_t frame; int64_t since, told_ns; struct gp_threadrt *at; unsigned visits; } seen;
                               /* the watchdog's own; since: CLOCK_MONOTONIC, 0: not yet; told_ns: as long as it was at a frame
                                * when that was told */
} gp_threadrt;

typedef struct gp_ring_end {       /* an actor's end of a ring */
    gp_ringrt *ring;
    int consumer;              /* index into ring->consumed */
} gp_ring_end;

struct gp_actorrt {
    gp_run *run;
    int index;
    gp_actor_kind kind;
    const gp_stage *stage;     /* of a host stage; */
    _Atomic uint64_t dropped;  /* ... the frames that failed in it and were dropped */
    uint64_t in_a_row, good;   /* ... the last of these, without another between; `frames` then */
    const gp_segment *segment; /* of a segment */
    const char *name;
    const gp_regroup *regroup; /* NULL: firing k takes and makes frame k */
    bool shared;               /* its frames are shared out among ranks, see gp_actor_number */
    bool together;             /* all ranks take part in each of its frames, holes too */
    bool elsewhere;            /* another rank alone has its frames: those of a group, too, are absent here */
    gp_priority priority;      /* of its threads */
    bool leads;                /* some input of it ends by itself, and held ones with it */
    bool gathers;              /* its stage has emit() */
    atomic_bool over;          /* it fires no more, and has said what became of its frames */
    atomic_bool paused;        /* it is over for this run, not for the next (paused.c) */
    atomic_bool finishes;      /* its kind's finish() goes on */
    uint64_t pause_at;         /* of a source: the frame before which it stops; gp_run.pausing says that it is known */
    atomic_int taps;           /* how many wait for a frame that it publishes (tap.c) */
    bool tells_holes;          /* some reader of what it makes regroups it, or may end before it, with another input */
    atomic_bool flushed;       /* a frame was made of the last firings, although they were too few */
    gp_ring_end *in; int nin;      /* rings with counters, each once */
    gp_ringrt **out; int nout;
    gp_actorrt **near; int nnear;  /* who takes what it makes, then who makes what it takes, each once */
    bool source;
    /* A host stage's, see turn.c. */
    bool lends, lent;          /* its thread may do others' turns; other threads may do its own */
    atomic_bool outside;       /* it has waited for something outside the pipeline */
    bool on_loan;              /* the program has its turns, see loan.c; its own threads only end it, and sleep at */
    gp_eventcount to_end;      /* ... this */
    atomic_bool asked;         /* ... the program has asked for a frame; */
    atomic_int waits;          /* ... how many of its threads wait for one; */
    atomic_int waiter;         /* ... the newest of them, or 0 */
    int mark0;                 /* ... the mark of slot 0, plus 1, if its frames lie on the device (mark.c); else 0 */
    bool waits_for_marks;      /* ... and a stage that is in no segment takes or makes them */
    bool marked;               /* a segment: a stage on loan with marks is beside it */
    atomic_llong cost;         /* ns: the mean of its turns, less what moving the frames to another core takes */
    atomic_uint offers;        /* how often its turn could have been done while its thread slept */
    struct gp_hostrt *host;    /* of a host stage */
    bool broke;                /* ... a frame failed for good behind an input that does not wait: that branch alone ends */
    struct gp_leakrt *leak;    /* ... before an input that does not wait, see leak.c; else NULL */
    gp_segmentrt *seg;         /* of a segment */
    gp_threadrt *thread; int nthreads;
    gp_eventcount changed;     /* its threads wait here for a frame to take */
    pthread_mutex_t behind;    /* of what is consumed behind the end of an input (ring.c) */
    _Alignas(64) _Atomic uint64_t next;    /* the first firing nobody has taken; that of all that do
                                  not regroup is the frame's number, and "frame" below */
    _Alignas(64) atomic_ullong progress;   /* firings done, holes too */
    atomic_ullong frames, bytes;       /* of status: holes not counted */
    /* A timed run's, see measure.h; sums over all workers. */
    atomic_ullong busy_ns, idle_ns, wait_ns[GP_WAIT_REASONS], launches;
    atomic_ullong sampled_ns, cpu_ns;  /* of a host stage: the part of busy_ns of which the CPU time was sampled, and that */
    atomic_llong end_ns;       /* when it ended, CLOCK_MONOTONIC; 0: not yet */
    struct gp_track **track, *moves;   /* traced: per worker (a segment: its launcher);
                                  when its frames moved on */
    struct { uint64_t done; int64_t since; } seen; /* the watchdog's own */
};

/* How many firings of p are possible with `frames` frames of an input; after `k` firings, how many frames of an input
 * are no longer needed, and how many of an output are made. */
static inline uint64_t gp_actor_firings(const gp_actorrt *p, uint64_t frames)
{
    return p->regroup ? gp_firings_ready(p->regroup, frames) : frames;
}

static inline uint64_t gp_actor_used(const gp_actorrt *p, uint64_t k)
{
    return p->regroup ? gp_firing_from(p->regroup, k) : k;
}

static inline uint64_t gp_actor_made(const gp_actorrt *p, uint64_t k)
{
    return p->regroup ? gp_frames_made(p->regroup, k) + atomic_load(&p->flushed) : k;
}

/* How many frames may wait in it now. */
static inline int gp_ring_room(const gp_ringrt *r)
{
    int room = atomic_load_explicit(&r->room, memory_order_relaxed);
    int limit = atomic_load_explicit(&r->limit, memory_order_relaxed);
    return room < limit ? room : limit;
}

/* The firings of producer p that have room in its ring r, whose consumer has used `used` frames. */
static inline uint64_t gp_actor_room(const gp_actorrt *p, const gp_ringrt *r, uint64_t used)
{
    return gp_firings_with_room(p->regroup, used + (uint64_t)gp_ring_room(r));
}

/* Does buffer b end when the other inputs of p do? Held frames do so only beside an input that ends by itself. */
static inline bool gp_follows(const gp_actorrt *p, const gp_buffer *b)
{
    return b->endless || (b->follows && p->leads);
}

/* The input from which p's frames have their times and names: the first that is not carried. */
static inline int gp_lead_input(const gp_actorrt *p)
{
    for (int i = 0; i < p->nin; i++)
        if (!p->in[i].ring->buffer->carried)
            return i;
    return 0;
}

/* The rows of frame f of carried buffer b, as actor p reads it: those of the lead input, if whole frames of both
 * have as many and its rows are not declared to vary. The carried frame itself is whole, and decides no other
 * frame's rows. */
static inline int64_t gp_carried_rows(const gp_actorrt *p, const gp_buffer *b, uint64_t f)
{
    const gp_ringrt *lead = p->nin ? p->in[gp_lead_input(p)].ring : NULL;
    int64_t rows = b->type.dim[0];
    bool same = lead && !b->state && !lead->buffer->carried && !(lead->buffer->varies & 1) && lead->buffer->type.dim[0] == rows;
    return same ? gp_meta_of(lead, f)->rows : rows;
}

typedef enum gp_look { GP_LOOK_WAIT, GP_LOOK_GO, GP_LOOK_OVER, GP_LOOK_DIFFER,
               GP_LOOK_PAUSED } gp_look;

/* Can actor `p` take frame `next`? GO: yes, *n of at most `max` in a row. OVER:
 * there will never be such a frame. DIFFER: there will not, because finite inputs
 * end at different counts, but for holes at the end, which gp_actor_ends_differ reports. PAUSED: there will not in this
 * run. Any thread. */
gp_look gp_actor_look(gp_actorrt *p, uint64_t next, int max, int *n);
/* No more than `frames` of r will come: lowers `most` of it, and of all that is made of it. With the run's lock, or
 * before it begins. */
void gp_ring_limit(gp_run *run, gp_ringrt *r, uint64_t frames);
/* The frames of r in all, where they are known: they may be all there before it ends. Else GP_UNKNOWN. */
uint64_t gp_ring_frames(const gp_ringrt *r);
/* Names the inputs. Not to be called with an eventcount's lock. */
void gp_actor_ends_differ(gp_actorrt *p, uint64_t next);

/* Publishes frames [first, first + n) in the rings of the outputs, and gives their slots in those of the inputs back.
 * In frame order. */
void gp_actor_complete(gp_actorrt *p, uint64_t first, int n);
/* No frame from `end` on will come; the actor takes no more. `early`: it ended by
 * itself, or at the end of one input of several. */
void gp_actor_end(gp_actorrt *p, uint64_t end, bool early);
/* Does anybody still take what it makes? */
bool gp_actor_is_wanted(const gp_actorrt *p);

/* paused.c: the actor has left, PAUSED. */
void gp_actor_pause(gp_actorrt *p);
/* paused.c: a source of a run that pauses at once has left, in either way: was it the last? */
void gp_run_pause_rest(gp_run *run);

/* The stages of an actor in order, one a call; *at: 0 at first. NULL: no more. */
const gp_stage *gp_actor_stage(const gp_actorrt *p, int *at);
/* A place in the file: the stage, or the segment's first. */
gp_loc gp_actor_at(const gp_actorrt *p);

/* ---- the account (account.c) ------------------------------------------ */

/* What it has seen, and where it ends, in frames of the source. */
typedef struct gp_sink { int stage; uint64_t next, end; } gp_sink;

/* `frames` frames of the source go with `firings` firings of a stage, block by block; firings 0: the source does not
 * feed the stage. When the firings of a block are done, its last `late` frames may still be on their way. */
typedef struct gp_block { uint64_t frames, firings, late; } gp_block;

/* Where a walk last came by a stage, see account.c: which walk, at which firing, with which part of its rows. */
struct gp_step { uint64_t walk, firing, i, m; };

/* How many of the frames that share a tally have each kind of mark, see account.c; late, lost: of those dropped; done:
 * they are counted. */
typedef struct gp_tally { uint64_t dropped, failed, counted, late, lost; bool done; } gp_tally;

/* What became of the frames of one source. Any thread; no allocation per frame. */
typedef struct gp_accountrt {
    const gp_run *run;
    int source;                /* stage */
    pthread_mutex_t lock;      /* of sink and marks */
    gp_sink *sink; int nsinks; /* stages that it reaches */
    gp_block *block;           /* per stage */
    struct gp_step *step;      /* likewise; */
    uint64_t walks;            /* ... and how many walks there were */
    uint64_t most;             /* frames in the largest block of a sink; 0: all that there are */
    bool spare;                /* its last frames may be used by no stage: they are held beside frames that end before */
    gp_table marks;            /* by frame: the holes, see account.c */
    size_t room;               /* marks that fit; with more, those that can be are folded */
    uint64_t folded;           /* frames before this one have no marks but tallies, */
    gp_tally *tally;           /* by how many sinks end before the frame: nsinks + 1 */
    gp_hole all;               /* of a firing that stands for all frames: the worst hole */
    bool closed;               /* nothing is counted any more */
    atomic_bool cut;           /* of a stage before an input that does not wait: its reader ended before what it has */
    _Atomic uint64_t in, out, dropped, failed;
    _Atomic uint64_t late, missed, full;       /* of those dropped: for these reasons, see gp_hole; missed: those lost */
    _Atomic uint64_t lost;     /* came and were dropped before they had a number: in none of these */
    _Atomic uint64_t faulty;   /* beside these, see gp_frame_faulty() */
} gp_accountrt;

/* Does an account end with it, or with a stage that drops what its reader has no room for, and is a source itself? */
static inline bool gp_account_ends_at(const gp_stage *st)
{
    return !st->nout || gp_is_leaky(st);
}

bool gp_account_init(gp_accountrt *l, const gp_run *run, int source);
void gp_account_fini(gp_accountrt *l);
/* l goes on from where `from` is, that of the same source in a run of the same graph, which keeps nothing. */
void gp_account_take(gp_accountrt *l, gp_accountrt *from);
/* Sink `stage` has consumed frames [first, first + n), with these holes (gp_hole).
 * Other stages are ignored, here and below. */
void gp_account_seen(gp_accountrt *l, int stage, uint64_t first, int n, const unsigned char *hole);
/* Sink `stage` fires only `end` times, and the run goes on without it. */
void gp_account_end(gp_accountrt *l, int stage, uint64_t end);
/* Sink `stage` has fired `end` times, and no more frames will come: its last block may be incomplete. */
void gp_account_last(gp_accountrt *l, int stage, uint64_t end);
/* Firing f of actor p failed, which stops the run: counted once, if at all. */
void gp_actor_failed(gp_actorrt *p, uint64_t f);
/* Frame f of `buffer` is such a hole. For a reader behind which no frame at a sink tells. */
void gp_buffer_hole(const gp_run *run, const gp_buffer *buffer, uint64_t f, gp_hole hole);
/* No sink will see the frames of `buffer` from f on: counts the holes among them. */
void gp_buffer_lost(const gp_run *run, const gp_buffer *buffer, uint64_t f);

/* ---- the run --------------------------------------------------------- */

/* A part of the device that works independently: how long it was busy in all, and the newest intervals in which it is
 * not known to have been busy, in order; the last one is open. */
enum { GP_GAPS = 256 };
typedef struct gp_gap { int64_t from, to; } gp_gap;
typedef struct gp_engine_time {
    gp_gap gap[GP_GAPS]; int ngaps;
    int64_t busy_ns;
    uint64_t bytes, by_kernels;        /* by_kernels: of a copy engine: what kernels moved in its place */
    bool used, estimated;      /* estimated: not all launches were stamped */
} gp_engine_time;

struct gp_run {
    gp_pipeline *pipeline;
    const gp_plan *plan;
    const gp_graph *graph;
    gp_run_options options;
    gp_arena arena;
    gp_dev **dev; int ndevs;   /* those of the graph, or the CPU back end alone; NULL: it has no part in the plan; the
                                  first has one, if any has */
    void **pool, **extra;      /* memory of plan->pool, plan->extra: all of them per device; the host's as that of device 0 */
    gp_ringrt *ring;
    gp_actorrt *actor;
    gp_threadrt *thread; int nthreads;
    gp_accountrt *account; int naccounts;
    int *account_of;            /* per stage: its account, or -1 */
    void **state;              /* per stage, made by open(), per device; */
    gp_type **types;           /* ... and what it was given: inputs, then outputs; malloc'd */
    const void **opts;         /* ... and with which options, which live as long as it is open */
    bool *opened;              /* as state */
    bool *keeps;               /* per stage: it is open in the run that this one goes on from, and stays so */
    struct gp_filetable *files, *held_files;
    struct gp_state_file *saves;   /* state_file.c has it */
    struct gp_saver *saver;    /* state_save.c has it; NULL: no state is saved while the run goes on */
    int *save_stream;          /* per ring of the plan: of a state that is */
    struct gp_resume *resume;  /* resume.c's; NULL: the pipeline does not say `resume` */
    int64_t spin_ns;           /* how long threads look before they sleep */
    int64_t awake_ns, asleep_ns;  /* see turn.c */
    int64_t start_ns, end_ns;  /* CLOCK_MONOTONIC: threads started, threads are gone */
    int64_t cpu_ns;            /* what the process computed in between */
    atomic_llong delayed_ns;   /* likewise for how long its threads waited for a core, timed */
    struct gp_wakes *wakes;    /* of a timed run: of its eventcounts */
    gp_core_ticks ticks[2];    /* likewise what all did: at the start, at the end */
    struct gp_trace *trace;    /* NULL: nothing is traced (trace.h) */
    bool watched;              /* ... in full, by the device */
    gp_engine_time (*engine)[GP_ENGINES]; pthread_mutex_t engine_lock;         /* stamp.c: per device */
    atomic_int pausing;        /* see paused.h */
    struct gp_paused *goes_on; /* what a paused run has come to; NULL: it begins */
    const gp_pipeline *from;   /* whose run it goes on from; NULL: it begins */
    bool waits;                /* set up as far as can be while that goes on */
    atomic_int level;          /* as gp_cancel: 1 sources stop, 2 nothing new */
    atomic_bool failed;        /* an error was reported */
    atomic_bool gave_up;       /* nobody asked for level 2: only stages are left that others do not wait for (leak.c) */
    atomic_bool syncing;       /* frames are done, what was written is put on disk */
    atomic_int loan_tid;       /* the only thread of the program that has asked for frames; 0: none has, -1: several have */
    atomic_bool no_high;       /* it was said that threads cannot have a high priority */
    bool *visited; int *todo;  /* per actor, with lock: for gp_actor_end */
    uint64_t *todo_end;
    int *tap_stream;           /* per device: a stream for tap.c, where its memory is not the host's */
    struct gp_finite *finite;  /* finite.c's; NULL: without check_finite */
    bool *cached;              /* per stage: see gp_run_options */
    /* While it is set up: what is being done, and how often that changed. */
    _Atomic(const gp_stage *) opening;
    atomic_bool breaks_off;    /* that was not to be: `opening` is told so */
    _Atomic(const gp_actorrt *) warming;
    atomic_int steps;
    atomic_int set_up_tid, set_up_clock;   /* as in gp_threadrt */
    atomic_bool is_up;         /* set-up has returned, and what follows is there */
    bool ready;
    gp_errs set_up_errs;
    atomic_int live;           /* threads that have not returned */
    int done_fd;               /* eventfd: live is 0, or is_up */
    pthread_mutex_t lock;      /* of errs, visited, todo */
    gp_errs errs;
    struct gp_nvtx *nvtx;      /* NULL: no tool is attached (nvtx.h) */
};

/* What is there for device `d` of an extra, of a stage. */
static inline void *gp_extra_on(const gp_run *run, int extra, int d)
{
    return run->extra[d * run->plan->nextras + extra];
}

/* A constant where device `d` reads it: in its memory, or in the host's where that is its own. */
static inline void *gp_konst_on(const gp_run *run, int extra, int d)
{
    return gp_extra_on(run, extra, run->plan->extra[extra].place.device ? d : 0);
}

/* Lane `l` of a pool. */
static inline void *gp_pool_on(const gp_run *run, int pool, int l)
{
    return run->pool[(run->plan->pool[pool].place.index + l) * run->plan->npools + pool];
}

/* Does it take frames and do nothing with them (gp_run_options.no_sinks)? */
static inline bool gp_is_idle_sink(const gp_run *run, const gp_stage *st)
{
    return run->options.no_sinks && !st->nout;
}

static inline void *gp_state_on(const gp_run *run, const gp_stage *st, int d)
{
    return run->state[d * run->graph->nstages + (int)(st - run->graph->stage)];
}

/* The number over all ranks of its frame f: what messages and stages call it. */
static inline uint64_t gp_actor_number(const gp_actorrt *p, uint64_t f)
{
    return gp_number_of(p->run->graph, p->shared, f);
}

/* Adds errors to the run's and stops the sources. Warnings only are kept. */
void gp_run_fail(gp_run *run, const gp_errs *errs);
/* Does the failure of a frame, in t->errs, end the run? GP_E_MISMATCH always does. If not,
 * the errors become warnings of the run. */
bool gp_frame_drop_or_fail(gp_threadrt *t);
/* Wakes all threads: something ends, or pauses. */
void gp_run_wake(gp_run *run);
/* Raises the level and wakes everybody. */
void gp_run_level(gp_run *run, int level);
/* Does the stage write one file together with those of other ranks? */
bool gp_run_joins(const gp_run *run, const gp_stage *s);
void gp_thread_doing(gp_threadrt *t, gp_doing doing, uint64_t frame);
/* For the watchdog: the thread that calls it is thread *tid, and has this clock. */
void gp_thread_known(atomic_int *tid, atomic_int *clock);

/* latency.c: of a run with `latency`. A frame whose launch this age tells of has ended, or is launched again. */
void gp_latency_ended(const gp_run *run, const gp_age *age, int64_t now_ns);
/* After the run. */
gp_late gp_latency_late(const gp_run *run);
/* Warns if frames were late. */
void gp_latency_check(const gp_run *run, gp_errs *errs);

/* const.c: reads a constant's .npy into `dst`, gp_bytes(&b->type) long. */
bool gp_const_load(const gp_buffer *b, void *dst, gp_errs *errs);

/* host.c */
void gp_host_init(gp_actorrt *p);
/* Adds the latencies of all sinks. */
void gp_run_latency(const gp_run *run, gp_hist *to);
void gp_host_fini(gp_actorrt *p);
/* Can a worker take a frame? As gp_actor_look. */
gp_look gp_host_look(gp_actorrt *p);
/* One turn of worker t: takes frames, runs the stage, hands in. GO: *n frames are done. Else nothing is, or the last
 * was, when the stage is over. By one thread at a time. */
gp_look gp_host_step(gp_threadrt *t, int *n);
/* The same of a stage on loan, in two parts, between which the program has *frame. GO with NULL: the next frame was a
 * hole. */
gp_look gp_host_lend(gp_threadrt *t, gp_frame **frame);
void gp_host_take_back(gp_threadrt *t);
/* If the next frame of a sink on loan is a hole, worker t is done with it; else false. */
bool gp_host_skip_hole(gp_threadrt *t);
/* The program makes no more frames. */
void gp_host_close(gp_actorrt *p);
/* Worker t takes no more; the last to leave ends the stage. */
void gp_host_leave(gp_threadrt *t);

/* leak.c: a stage that takes each frame at once, whatever becomes of it; wants the accounts. Its thread. */
void gp_leak_init(gp_actorrt *p);
void gp_leak_thread(gp_threadrt *t);
/* watch.c: is it such a stage, or behind one? */
bool gp_actor_is_behind_leak(const gp_actorrt *p);

/* turn.c */
void gp_turns_init(gp_run *run);
void *gp_host_thread(void *thread);            /* gp_threadrt */
/* For the watchdog, at each tick: who is held up at another stage's frame is replaced meanwhile. */
void gp_turns_watch(gp_run *run);
/* For loan.c: takes worker t, for the calling thread, if nobody has. What it took it gives back, and waits for a
 * frame, or is GP_DOING_IDLE. */
int gp_turn_tid(void);                 /* of the calling thread */
bool gp_turn_take(gp_threadrt *t);
void gp_turn_give_back(gp_threadrt *t, gp_doing doing);
/* Of a sink: has what it reads ended, or paused, so that nobody writes its slots any more? */
bool gp_turn_is_one_of_the_last(const gp_actorrt *p);
/* The calling thread, which has taken t, has moved frames of its stage: it tells those next to it, or does their
 * turns. */
void gp_turn_tell(gp_threadrt *t);

/* mark.c: what the program queued in its own stream on device memory on loan. init: which stages have marks, and room for
 * them. The device on which the frames of a stage on loan lie; -1: on the host. gp_mark: a loan of this frame ends; with
 * `wait`, or where nothing else could, the call waits until that is done. await: what segment p now launches for n
 * firings from f waits for the marks of their slots, or, if `stream` is negative, the calling thread does. pass: waits for
 * all marks of a stage. */
bool gp_marks_init(gp_run *run, gp_errs *errs);
int gp_mark_device(const gp_actorrt *p);
bool gp_mark(gp_actorrt *p, uint64_t frame, void *stream, bool wait, gp_errs *errs);
bool gp_marks_await(const gp_actorrt *p, uint64_t f, int n, int stream, gp_errs *errs);
void gp_marks_pass(const gp_actorrt *p);
/* loan.c: the stages of a run on loan are at the program's disposal, until they are not; with `back` no thread is in
 * them any more on return. */
void gp_loans_begin(gp_run *run);
void gp_loans_end(gp_run *run, bool paused, bool back);
/* Worker t of such a stage waits until the stage ends, or pauses, and the program has no frame of it; then it is
 * taken. */
gp_look gp_loan_await_end(gp_threadrt *t);
/* Does the program wait for itself: its only thread, for what it would do next; any, beside an output that has frames and
 * was never asked for one; or in gp_pipeline_wait, with frames left to pull? */
bool gp_loans_are_stuck(gp_run *run);
/* Of a worker whose frame the program has, or of another stage: its thread does not wait for a frame elsewhere. */
bool gp_loan_is_worked_on(const gp_threadrt *t);
/* Has the program a frame? */
bool gp_loans_are_out(const gp_run *run);

/* segment.c */
/* What is used of a device: its streams, orders and stamps; the priority of each stream, once there is room for
 * them. */
typedef struct gp_device_use { int streams, orders, stamps; gp_priority *priority; } gp_device_use;
/* Its streams, orders and stamps have the numbers from used[device] on, which is raised by them. */
bool gp_segment_init(gp_actorrt *p, gp_device_use *used, gp_errs *errs);
/* Nothing of it stays on the device; for all segments, before the first is freed. */
void gp_segment_stop_resident(gp_actorrt *p);
void gp_segment_fini(gp_actorrt *p);
/* CPU time of its kernels so far, in ns; 0: they run elsewhere, or p is no segment. */
uint64_t gp_segment_computed(const gp_actorrt *p);
/* launcher.c, reaper.c: of a gp_threadrt. */
void *gp_segment_launcher(void *thread);
void *gp_segment_reaper(void *thread);

/* watch.c: until all threads returned, or set-up has; deals with gp_cancel and
 * stalls. False when some thread does not come back. */
bool gp_watch(gp_run *run);
bool gp_watch_set_up(gp_run *run);

/* stall.c: for the watchdog, while the threads run. At each tick: since when does
 * each thread do what it does? */
void gp_stall_note(gp_run *run, int64_t now);
/* Nothing has moved for ns. Adds the error and its lines. */
void gp_stall_report(gp_run *run, int64_t ns, gp_errs *errs);
/* " (plug-in NAME VERSION)": who wrote a stage may be another than who wrote the pipeline. "": it is of no plug-in. */
typedef struct gp_plugin_text { char text[120]; } gp_plugin_text;
gp_plugin_text gp_plugin_of(const gp_stage *s);
/* The same before frame 0. False: just now it went on. */
bool gp_stall_report_early(gp_run *run, int64_t ns, gp_errs *errs);
/* Warns of who has been busy for at least ns and so holds up the end; _early: before frame 0.
 * False: nobody has. */
bool gp_stall_holds_up(gp_run *run, int64_t ns, gp_errs *errs);
bool gp_stall_holds_up_early(gp_run *run, int64_t ns, gp_errs *errs);
/* Warns of all who have been busy with one frame for at least ns, and of each again where it is twice as long as it was
 * then. False: nobody has. */
bool gp_stall_slow(gp_run *run, int64_t ns, gp_errs *errs);

/* syscall.c: ", writing to standard output, a full pipe: ...", what thread `tid` of this
 * process is at; "" where the kernel does not tell. Returns `out`. */
enum { GP_DOING_TEXT = 240 };
const char *gp_thread_is(int tid, char out[GP_DOING_TEXT]);
