/* model.h - what the files of a simulation share: actors, rings and launches, as they are at a moment. */
#pragma once

#include <math.h>
#include "compile/firing.h"
#include "compile/plan.h"
#include "run/timely.h"
#include "simulate/simulate.h"

enum { VARIANTS = 256 };               /* of the time of one thing, spread over its distribution */
#define AWAKE (-1.0)

typedef struct simulation simulation;

/* What happens to a worker of an actor, or to the launch actor.flight[lane]. */
typedef void (*what)(simulation *x, int a, int lane);
typedef struct event { double at; uint64_t order; what what; int who, lane; } event;   /* what: NULL: see settle() */
typedef struct agenda { event *event; int n, cap; uint64_t orders; } agenda;           /* a heap */

/* Jobs that share something (cores, a device, memory). n jobs on c cores each go on at the speed min(1, c / n), so that
 * which of them is done next does not depend on how many come meanwhile: a job is done when the work that each has had
 * since the beginning has grown by its own. */
typedef struct share {
    agenda jobs;
    double capacity, now;
    double had;                        /* the work that each had, up to `now` */
    double always;                     /* beside, counted as jobs: threads that look all the time; of jobs of unlike
                                          weight, what the sum of their weights is more than their number */
    double used, delayed;              /* work done in all by jobs that end, and what jobs waited: sums over jobs */
    bool touched; unsigned version;    /* another job may be the next; how often that was so */
} share;

typedef enum reason { FOR_INPUT, FOR_OUTPUT, FOR_STREAM, FOR_NOTHING } reason;
typedef struct reader { int actor; uint64_t used; double got; } reader;

/* When a frame was made by its source; when the last launch that took it was due, of which actor and size; 0: none. */
typedef struct since { double born, due; int by, size; } since;

typedef struct ring {
    const gp_ring *ring;
    int producer;
    bool carried;                      /* its buffer is */
    uint64_t made;
    double put;                        /* when its frames were put there: the sum */
    since *since;                      /* of the frame in each slot */
    reader *reader;
} ring;

/* A machine: cores that its threads share, and memory that all copies between it and its devices share. */
typedef struct host { share *cores, *copies; } host;

/* Kernels share it evenly; each of its copy engines takes one copy after the other. */
typedef struct gpu {
    share *kernels;
    int index;                         /* of the devices of its rank's plan */
    int computing; double computing_since;
    double busy[GP_ENGINES]; uint64_t bytes[GP_ENGINES], by_kernels[GP_ENGINES];     /* as gp_engine_report */
    bool copies[GP_ENGINES]; agenda waiting[GP_ENGINES];       /* waiting: launches, all at time 0 */
} gpu;

/* What a worker does, or a launch. */
typedef struct piece {
    bool busy, done;
    uint64_t first, number;            /* number: of a launch */
    int n, stream;
    double start, due;                 /* due: of a launch, when it was decided; of a worker, when it came to a round */
    /* A worker's. */
    double since;                      /* since when it waits for something to do; AWAKE: it does not */
    double work, sleep;
    double beside, owed;               /* of `work`: what a turn takes beside the kind's code; to wake others */
    double apart;                      /* what it waits for its pace, or is in a round of ranks: no part of `work` */
    int by;                            /* the actor whose thread does this turn */
    /* A launch's. */
    bool rested, woken;                /* its kernels wait for the launch before; a thread of a CPU is awake */
    gp_engine engine; double began;    /* the copy that is under way, */
    bool computes; double computes_since;      /* ... its kernels, with what they copy */
} piece;

/* What the thread of a host stage that lends is at, see host.c: gp_moved and tell() of run/turn.c. */
enum { MOVED = 16 };
typedef struct walk {
    bool busy, waking;                 /* it does something; it sleeps, and is being woken; */
    double since;                      /* ... else it waits since then */
    int list[MOVED], told[MOVED], n;   /* stages whose frames were moved, each by the one before, and how many of those
                                          next to them have been told */
    int turns;
    double owes;                       /* it has woken others, which takes time of its next turn */
} walk;

typedef struct input { int ring, reader; } input;

typedef struct actor {
    int rank, index;                   /* index: of the plan's actors */
    host *host;
    const gp_stage *stage;             /* of a host stage */
    const gp_segment *segment;
    const gp_regroup *regroup;
    const gp_stage_cost *cost;
    const gp_segment_cost *launch;
    input *in; int nin, most_in;
    int *out; int nout, most_out;
    int *near; int nnear, most_near;   /* who takes what it makes, then who makes what it takes, each once */
    uint64_t next, head, total;        /* firings: taken, published, in all */
    bool listed;                       /* it is in simulation.look */
    double looks;                      /* for how long its threads look, when they wait, before they sleep */
    double since;                      /* up to when its waits are counted */
    reason why;
    int nidle;
    float *variant;                    /* NULL: all take as long */
    gp_actor_report *report;
    /* A host stage's. */
    piece *worker; int nworkers, nbusy;
    /* Where ranks meet, else NULL: how many have come to a round, by its number mod nworkers. That of rank 0 is used,
     * and so is the next round to begin, and up to when they tell each other what they have in the one before. */
    int *came; uint64_t round; double tells;
    int most;                          /* frames of a turn */
    bool lends, lent;                  /* its thread does turns of others; threads of others do its */
    walk walk;                         /* of such a stage */
    double turn_cost;                  /* of its turns, but for moving frames: the mean */
    unsigned offers;
    uint64_t taken;                    /* turns of its workers */
    unsigned char *handed; uint64_t window;
    /* A segment's: launches in flight, in order. */
    piece *flight; uint64_t launched, retired, turns;
    double fill_until;                 /* the launcher waits for more frames; 0: it does not */
    gp_timely *timely;                 /* with `latency`, else NULL; */
    uint64_t seen; int64_t came_ns;    /* as gp_latencyrt's */
    bool launching, reaping, *stream;  /* stream: lane after lane */
    double launcher_since, reaper_since;       /* as piece.since; since when it has no launch to wait for */
    gpu **on;                          /* by lane: its device; NULL: kernels are on the host's cores */
    double turn;                       /* the part of its kernels that waits for the launch before */
    size_t bytes[GP_ENGINES];          /* copied for a firing */
} actor;

/* Sums for the straight line through (time, firing) that has the least squares: steps matter little to its slope. */
typedef struct line { uint64_t from, to; double start, end, n, t, k, tt, tk; } line;

struct simulation {
    gp_arena *arena;
    const gp_plan *plan;
    const gp_graph *g;
    const gp_costs *c;
    agenda agenda;
    share *share; int nshares;         /* of all hosts and devices */
    int *touched, ntouched;            /* the shares that are */
    host *host; int nhosts;
    gpu *gpu; int ngpus;
    gpu **device;                      /* by rank and the plan's device */
    double rate[GP_ENGINES];           /* of copies, bytes a second */
    bool on_cores;                     /* kernels and copies are work of the host's threads */
    double now;
    int ranks;
    ring *ring;
    actor *actor; int nactors, each;   /* rank after rank, `each` of a rank */
    int *look, nlook;                  /* who may have something to do now */
    double link_free;                  /* one exchange after the other */
    int sinks;                         /* that are not done */
    uint64_t late;                     /* frames that took longer than `latency` */
    uint64_t wakes;
    double awake;                      /* a turn of less is not left to a thread that is awake */
    double polls;                      /* for how long a reaper looks at a device before it sleeps */
    gp_simulated *out;
    int slices;
    int last;                          /* the sink that most comes out of; */
    line line;                         /* ... when, in the middle half */
};

/* The frames of an output that its first k firings make. */
static inline uint64_t made_by(const actor *p, uint64_t k)
{
    return !p->regroup ? k : k >= p->total ? gp_frames_in_all(p->regroup, k) : gp_frames_made(p->regroup, k);
}

/* The first frame of an input that firing k needs. */
static inline uint64_t needs(const actor *p, uint64_t k)
{
    return p->regroup ? gp_firing_from(p->regroup, k) : k;
}

static inline double varied(const actor *p, uint64_t firing)
{
    return p->variant ? (double)p->variant[firing % VARIANTS] : 1;
}

static inline piece *flight_of(const actor *p, uint64_t k)
{
    return &p->flight[k % (uint64_t)(p->segment->depth + 1)];
}

/* Keeps a slice, if it is one of the first rank's. */
static inline void keep(simulation *x, gp_slice s)
{
    if (s.actor < x->each && x->out->nslices < x->slices)
        x->out->slice[x->out->nslices++] = s;
}

/* setup.c: actors and rings, before the first frame; how often each fires. */
void gp_model_init(simulation *x, uint64_t frames);
/* Bytes of a frame that a stage makes, or that a sink takes. */
size_t gp_model_frame_bytes(const gp_graph *g, const gp_stage *st);
/* outcome.c: what a run would report, after the last frame. */
void gp_model_report(simulation *x);

/* ---- simulate.c ------------------------------------------------------- */

void gp_model_add(simulation *x, agenda *g, double at, what then, int who, int lane);
event gp_model_take(agenda *g);        /* the first; there is one */
/* Before the jobs of a share change. */
void gp_model_touch(simulation *x, share *s);
void gp_model_share(simulation *x, share *s, double work, what then, int who, int lane);
/* Work of a thread of actor a. */
void gp_model_share_cores(simulation *x, double work, what then, int a, int lane);

/* There may be something for it to do: if a thread of it waits, it looks when all that happens now has happened. */
void gp_model_look_at(simulation *x, int a);
/* So many of its threads are idle from now on; what they waited up to now is counted. */
void gp_model_set_idle(simulation *x, actor *p, int n, reason why);
/* Does a thread of p that has waited since then, and looks for so long before it sleeps, sleep? */
bool gp_model_sleeps(const simulation *x, const actor *p, double from, double looks);
/* What it takes until it goes on. */
double gp_model_to_wake(simulation *x, const actor *p, double from, double looks);

/* The firings that may begin up to now; *why there are no more. */
uint64_t gp_model_able(const simulation *x, const actor *p, reason *why);
/* Since when the frames of its firing k, the oldest of them, are under way. */
since gp_model_since(const simulation *x, const actor *p, uint64_t k);
/* With `latency`: a frame has ended, or is launched again. */
void gp_model_tell_launcher(simulation *x, const since *s, double end);
/* Firings [first, first + n) are done, and all before them: all beside it look. */
void gp_model_publish(simulation *x, int a, uint64_t first, int n);

/* Something may be to do: of a host stage (host.c), of a segment (segment.c). */
void gp_model_look_host(simulation *x, int a);
void gp_model_look_segment(simulation *x, int a);
