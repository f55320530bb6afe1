/* model.h - what the files of a simulation share: actors, rings and launches, as they are at a moment. */
#ifndef GP_SIMULATE_MODEL_H
#define GP_SIMULATE_MODEL_H

#include "compile/firing.h"
#include "compile/plan.h"
#include "run/timely.h"
#include "simulate/share.h"
#include "simulate/simulate.h"

enum { VARIANTS = 256 };               /* of the time of one thing, spread over its distribution */
#define AWAKE (-1.0)

typedef enum what { WOKEN, LAUNCHER_WOKEN, FILLED, PACED, WORKED, SLEPT, MET, QUEUED, COPIED_IN, COPIED_PEER, COMPUTED,
                    TOOK_TURN, COPIED_OUT, REAPED } what;
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
typedef struct host { gp_share *cores, *copies; } host;

/* A launch that waits for an engine; actor -1: none. */
typedef struct waiting { int actor; uint64_t launch; } waiting;

/* Kernels share it evenly; each of its copy engines takes one copy after the other. */
typedef struct gpu {
    gp_share *kernels;
    int index;                         /* of the devices of its rank's plan */
    int computing; double computing_since;
    double busy[GP_ENGINES]; uint64_t bytes[GP_ENGINES];
    struct { bool busy; waiting first, last; } engine[GP_ENGINES];
} gpu;

/* What a worker does, or a launch. */
typedef struct piece {
    bool busy, done, rested;           /* rested: its kernels wait for the launch before */
    double since;                      /* of a worker: since when it waits for something to do; AWAKE: it does not */
    uint64_t first;
    int n, stream;
    double start, work, sleep, due;    /* due: of a launch that is chosen: when it was decided */
    double beside, owed;               /* of `work`: what a turn takes beside the kind's code; to wake others */
    int by;                            /* the actor whose thread does this turn */
    double copying;                    /* since when a copy of a launch is under way */
    waiting behind;                    /* the next launch that waits for the same engine */
} piece;

/* What the thread of a host stage that lends is at, see turns.c: gp_moved and tell() of run/turn.c. */
enum { MOVED = 16 };
typedef struct walk {
    bool busy, waking;                 /* it does something; it sleeps, and is being woken; */
    double since;                      /* ... else it waits since then */
    int list[MOVED], told[MOVED], n;   /* stages whose frames were moved, each by the one before, and how many of those
                                          next to them have been told */
    int turns;
    double owes;                       /* it has woken others, which takes time of its next turn */
} walk;

typedef struct actor {
    int rank, index;                   /* index: of the plan's actors */
    host *host;
    const gp_stage *stage;             /* of a host stage */
    const gp_segment *segment;
    const gp_regroup *regroup;
    const gp_stage_cost *cost;
    const gp_segment_cost *launch;
    struct { int ring, reader; } *in; int nin;
    int *out; int nout;
    uint64_t next, head, total;        /* firings: taken, published, in all */
    bool listed;                       /* it is in simulation.look */
    double looks;                      /* for how long its threads look, when they wait, before they sleep */
    double since;                      /* up to when its waits are counted */
    reason why;
    int nidle;
    /* Of a host stage. */
    piece *worker; int nworkers, nbusy;
    /* Where ranks meet, else NULL: how many have come to a round, by its number mod nworkers. That of rank 0 is used, and so
     * is the next round to begin, and up to when they tell each other what they have in the one before. */
    int *came; uint64_t round; double tells;
    int most;                          /* frames of a turn */
    bool lends, lent;                  /* its thread does turns of others; threads of others do its */
    walk walk;                         /* of such a stage */
    double turn_cost;                  /* of its turns, but for moving frames: the mean */
    unsigned offers;
    int *near; int nnear;              /* who takes what it makes, then who makes what it takes, each once */
    uint64_t taken;                    /* turns of its workers */
    unsigned char *handed; uint64_t window;
    /* Of a segment: launches in flight, in order. */
    piece *flight; uint64_t launched, retired, turns;
    double fill_until;                 /* the launcher waits for more frames; 0: it does not */
    gp_timely *timely;                 /* with `latency`, else NULL; */
    uint64_t seen; int64_t came_ns;    /* as gp_latencyrt's */
    bool launching, reaping, *stream;  /* stream: lane after lane */
    double launcher_since, reaper_since;       /* as piece.since; since when it has no launch to wait for */
    gpu **on;                          /* by lane: its device; NULL: kernels are on the host's cores */
    double turn;                       /* the part of its kernels that waits for the launch before */
    size_t in_bytes, peer_bytes, out_bytes;
    float *variant;                    /* NULL: all take as long */
    gp_actor_report *report;
} actor;

/* Sums for the straight line through (time, firing) that has the least squares: steps matter little to its slope. */
typedef struct line { uint64_t from, to; double start, end, n, t, k, tt, tk; } line;

typedef struct simulation {
    gp_arena *arena;
    const gp_plan *plan;
    const gp_graph *g;
    const gp_costs *c;
    gp_agenda agenda;
    gp_share *share; int nshares;      /* of all hosts and devices */
    int *touched, ntouched;            /* the shares that are */
    double *at;                        /* by share: when its next job is done; */
    int *winner, leaves;               /* ... a tournament tree of them, winner[1] the first */
    host *host; int nhosts;
    gpu *gpu; int ngpus;
    gpu **device;                      /* by rank and the plan's device */
    bool on_cores;                     /* kernels and copies are work of the host's threads */
    double now;
    int ranks;
    ring *ring;
    actor *actor; int nactors, each;   /* rank after rank, `each` of a rank */
    int *look, nlook;                  /* who may have something to do now */
    double link_free;                  /* one exchange after the other */
    int sinks;                         /* that are not done */
    uint64_t late;                     /* frames that took longer than `latency` */
    double wake, call;
    uint64_t wakes;
    double awake;                      /* a turn of less is not left to a thread that is awake */
    double polls;                      /* for how long a reaper looks at a device before it sleeps */
    bool spins;
    gp_simulated *out;
    int slices;
    int last;                          /* the sink that most comes out of; */
    line line;                         /* ... when, in the middle half */
} simulation;

/* The frames of an output that its first k firings make; those of an input that it does not need after them. */
static inline uint64_t made_by(const actor *p, uint64_t k)
{
    return !p->regroup ? k : k >= p->total ? gp_frames_in_all(p->regroup, k) : gp_frames_made(p->regroup, k);
}

static inline uint64_t used_by(const actor *p, uint64_t k)
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

static inline int size_of(int n)
{
    return 31 - __builtin_clz((unsigned)n);
}

/* Of the first rank. */
static inline void keep(simulation *x, gp_slice s)
{
    if (s.actor < x->each && x->out->nslices < x->slices)
        x->out->slice[x->out->nslices++] = s;
}

/* Before the jobs of a share change. */
static inline void touch(simulation *x, gp_share *s)
{
    if (s->now < x->now)
        gp_share_go_on(s, x->now);
    if (!s->touched)
        x->touched[x->ntouched++] = (int)(s - x->share);
    s->touched = true;
}

/* Does a thread of p that has waited since then, and looks for so long before it sleeps, sleep? Where it has a part of
 * a core it looks for longer. */
static inline bool sleeps(const simulation *x, const actor *p, double from, double looks)
{
    const gp_share *cores = p->host->cores;
    double n = cores->jobs.n > 1 ? cores->jobs.n : 1, slower = n > cores->capacity ? n / cores->capacity : 1;
    return from >= 0 && x->now - from > looks * slower;
}

/* What it takes until it goes on. */
static inline double to_wake(simulation *x, const actor *p, double from, double looks)
{
    bool asleep = sleeps(x, p, from, looks);
    x->wakes += asleep && x->wake > 0;
    return asleep ? x->wake : 0;
}

/* There may be something for it to do: if a thread of it waits, it looks when all that happens now has happened. */
static inline void look_at(simulation *x, int a)
{
    actor *p = &x->actor[a];
    if (p->listed || (p->segment ? p->launching : p->lends ? p->walk.busy || p->walk.waking : p->nbusy == p->nworkers))
        return;
    x->look[x->nlook++] = a;
    p->listed = true;
}

/* Calls run one way: simulate.c knows what happens and who goes on with it; turns.c, host.c, launcher.c and device.c what
 * each does, by rings.c and threads.c; none of these calls another beside it, but turns.c host.c. */

/* setup.c: actors and rings, before the first frame; how often each fires. */
void gp_model_init(simulation *x, uint64_t frames);
/* outcome.c: what a run would report, after the last frame. */
void gp_model_report(simulation *x);

/* rings.c: the firings that may begin up to now; *why there are no more. */
uint64_t gp_model_able(const simulation *x, const actor *p, reason *why);
/* Since when the frames of its firing k, the oldest of them, are under way. */
since gp_model_since(const simulation *x, const actor *p, uint64_t k);
/* With `latency`: a frame has ended, or is launched again. */
void gp_model_tell_launcher(simulation *x, const since *s, double end);
/* Firings [first, first + n) are done, and all before them: all beside it look. */
void gp_model_publish(simulation *x, int a, uint64_t first, int n);

/* threads.c: work of a thread of an actor. */
void gp_model_share_cores(simulation *x, double work, what then, int a, int lane);
/* So many of its threads are idle from now on; adds what they waited up to now. */
void gp_model_set_idle(simulation *x, actor *p, int n, reason why);
void gp_model_count_waits(simulation *x, actor *p);
static inline void set_idle(simulation *x, actor *p, int n, reason why)
{
    if (n != p->nidle || why != p->why)
        gp_model_set_idle(x, p, n, why);
}

/* turns.c: a stage that lends. There may be something for its thread, if that waits; that is awake, and free. */
void gp_model_look_lender(simulation *x, int a);
void gp_model_go_on(simulation *x, int a);
/* A turn of stage a is done: who did it goes on. */
void gp_model_turned(simulation *x, int a);

/* host.c: its workers take what there is to do; worker w is awake; it is done. */
void gp_model_look_host(simulation *x, int a);
/* How many frames worker w could take now; 0: *why. It takes them, and the thread of actor `by` does that turn. */
int gp_model_ready(const simulation *x, const actor *p, reason *why);
void gp_model_take(simulation *x, int a, int w, int n, int by);
void gp_model_begin_host(simulation *x, int a, int w);
void gp_model_work(simulation *x, int a, int w);
void gp_model_hand_in(simulation *x, int a, int w);

/* Worker w of a collective stage, of several ranks, is done but for what ranks exchange. */
void gp_model_meet(simulation *x, int a, int w);

/* launcher.c: it looks for frames; is awake; has queued a launch, number k. Launch k is done on the device; the reaper
 * is awake. */
void gp_model_look_segment(simulation *x, int a);
void gp_model_launch(simulation *x, int a);
uint64_t gp_model_queued(simulation *x, int a);
void gp_model_launch_done(simulation *x, int a, uint64_t k);
void gp_model_reap(simulation *x, int a);

/* device.c: launch k begins; something of it is done. True: that was all of it. */
void gp_model_begin_launch(simulation *x, int a, uint64_t k);
bool gp_model_device_did(simulation *x, what did, int a, uint64_t k);

#endif
