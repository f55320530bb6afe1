/* simulate.h - what a plan would do, from the times of its parts, without running it.
 *
 * Pure: the same plan and costs give the same frames at the same times on every machine. One thread. */
#pragma once

#include "api/machine_file.h"
#include "report/report.h"
#include "compile/ir.h"

/* The frames of a run from which its report says what one costs. */
enum { GP_REPORT_FRAMES = 10 };

/* What one firing of a host stage takes; ns. */
typedef struct gp_stage_cost {
    double cpu_ns;             /* it has a core */
    double wait_ns;            /* it is in the kind's code, and sleeps */
    double turn_ns, frame_ns;  /* what a turn takes beside that, and each of its frames: a core */
    double stop;               /* the frames after which the kind ends a turn; 0: not known */
    double pace_ns;            /* of a source: firing k is not before k times that; 0: it has no pace */
    double spread;             /* the 99th percentile of its time over the median; up to 1: all are alike */
    uint64_t frames;           /* of a source: how many it makes */
} gp_stage_cost;

/* What launches and firings of a segment take; ns. */
typedef struct gp_segment_cost {
    double launch_ns;          /* to queue a launch: the launcher has a core */
    double kernels_ns;         /* the kernels of one firing, with the device for themselves; on the CPU back end: a
                                  core */
    double part;               /* ... of the device that they fill, up to 1: so many firings of a launch take as long as
                                  one, and so many launches run side by side; 0: not known, as 1 */
    double spread;
} gp_segment_cost;

typedef struct gp_costs {
    gp_stage_cost *stage;      /* by the graph's stage; of a device stage nothing */
    gp_segment_cost *segment;  /* by the plan's segment */
    int nstages, nsegments;
    double wake_ns;            /* to wake a thread that waited: it has a core meanwhile; not with `sync: spin` */
    double call_ns;            /* ... what that takes the thread that wakes it */
    double slower;             /* times are so many times what threads measure and decide by who does what; 0: 1 */
    double cores;              /* that threads share, of each machine */
    double copy_in, copy_out;  /* bytes a second of each device's two copy engines; not on the CPU back end */
    double copy_peer;          /* ... of a copy from another device */
    double copy_ns;            /* of a copy, beside; */
    bool copy_usual;           /* ... as is usual: the run had none */
    double link_ns;            /* ... of one by kernels, or of what they use in the host's memory themselves */
    double memory;             /* ... of all copies in and out of a machine's devices together; 0: no limit */
    double others;             /* cores that other processes have, for the report */
    int ranks, nodes;          /* processes, and the machines that they are on; 0: one */
    int devices;               /* of each machine, which its ranks share; 0: each rank has its own */
    gp_link peer, process, network;
    double nccl_ns;            /* of each operation of NCCL, beside */
    const char *scaled;        /* the stage whose frames differ most in bytes from those of the report; NULL: none */
    double scaled_by;          /* its times are so many times those of the report */
    const gp_node *digests;    /* as the report has them: what stages did in its run; NULL: it does not tell */
} gp_costs;

/* The machine, of `nodes`, that a rank of so many is on: on each are as many as can be, on the first one more where it
 * does not come out even. */
static inline int gp_node_of(int rank, int ranks, int nodes)
{
    return nodes > 1 ? (int)((int64_t)rank * nodes / ranks) : 0;
}

/* Something that took from `start` to `end`, ns from the first frame on. */
typedef struct gp_slice {
    enum { GP_SLICE_STAGE, GP_SLICE_LAUNCH, GP_SLICE_COPY_IN, GP_SLICE_COMPUTE, GP_SLICE_COPY_OUT, GP_SLICE_COPY_PEER }
        what;                  /* the last four are in the order of gp_engine */
    int actor, lane;           /* lane: a worker or a stream */
    int device;                /* of the plan's, of a copy */
    int64_t start, end;
    uint64_t first; int n;     /* firings */
} gp_slice;

typedef struct gp_simulated {
    gp_report *report;         /* as of a run; without a verdict */
    gp_account *account; int naccounts;
    double frames_per_s;       /* of the source that makes most, when the rest is under way: in the middle half.
                                  Over all of the time, where most come out at once */
    gp_slice *slice; int nslices;
} gp_simulated;

/* What a launch of n firings of a segment moves one way, for each firing. What kernels copy, and what they use in the
 * host's memory themselves, takes time of the link, but no copy engine. They read and write there at a time: of that the
 * way on which it is more takes time. On parts of the CPU all memory is the same. */
typedef struct gp_crossing {
    size_t copied, by_kernels; /* bytes: by a copy engine; in its place, of which ... */
    size_t on_link;            /* ... so many take time */
} gp_crossing;
gp_crossing gp_costs_crossing(const gp_plan *plan, const gp_segment *s, gp_engine e, int n);
/* ... how long that takes. */
double gp_crossing_ns(const gp_costs *c, gp_crossing moves, gp_engine e, int n);

/* What a copy takes beside, as far as it was measured on the device how launches differ by who copies. */
void gp_costs_measured(gp_costs *c, const gp_device_info *d);

/* Runs `plan` on paper. The sources make as many frames as their costs say, in proportion at most `frames` (0: all);
 * the first `slices` slices are kept. With ranks, `plan` is that of the first of them, of which report and slices are;
 * the account is of all. All in memory of `a`. NULL after an error: the frames never come to the end. */
gp_simulated *gp_simulate(gp_arena *a, const gp_plan *plan, const gp_costs *costs, uint64_t frames, int slices,
                          gp_errs *errs);

/* timeline.c: the slices as gp_trace_json writes those of a run. */
void gp_timeline_json(FILE *f, const gp_plan *plan, const gp_simulated *s);

/* ---- from the report of a run (costs.c) -------------------------------- */

/* What a report says: of JSON text, which stays as long as it. NULL with an error that names `file`: it is no report,
 * of another version, of a run that failed, or it lacks times. */
typedef struct gp_source_report {
    const gp_node *root;
    gp_loc at;
    double frames, wall_ns;    /* of the source that made most */
    const char **set; int nset;        /* the --set of that run */
} gp_source_report;
gp_source_report *gp_source_report_read(gp_arena *a, const char *json, size_t len, const char *file, gp_errs *errs);
/* The machine it ran on, as far as passes ask for it. */
void gp_source_report_machine(const gp_source_report *r, gp_machine *m);

/* What its parts cost: of `plan`, which is that of the run. They are such that simulating `plan` gives the rate and
 * the busy times of the report. NULL with an error: it is of another pipeline. */
gp_costs *gp_costs_read(gp_arena *a, const gp_source_report *r, const gp_plan *plan, gp_errs *errs);
/* costs_for.c: the same costs for another plan of the same pipeline, whose segments may be parts of those before: times
 * go with the bytes that stages read and make. NULL with an error: its stages or segments differ. */
gp_costs *gp_costs_for(gp_arena *a, const gp_costs *c, const gp_plan *from, const gp_plan *to, gp_errs *errs);

/* Changes the costs to those on another machine. False with an error that names `file`: how fast kernels are
 * there is not known. */
bool gp_costs_move(gp_costs *c, const gp_plan *plan, const gp_plan *before, const gp_machine_file *m, const char *file,
                   gp_errs *errs);
/* The threads of the kernels of one firing, over those that its device keeps at a time; 0: it is the CPU, or that is
 * not known. */
double gp_segment_occupancy(const gp_plan *plan, int segment);
/* Are all rates known that the plan needs, of copies and of what its ranks exchange? Else an error for each that is
 * not, which names the key, and `file`, which may be NULL. */
bool gp_costs_suffice(const gp_costs *c, const gp_plan *plan, const char *file, gp_errs *errs);
/* links.c: how long ranks are in a round of a collective stage when the last has come, in ns; and of that, at first,
 * how long they tell each other what they have. Do they compute then, as where all goes through the memory of one
 * machine? */
double gp_round_ns(const gp_costs *c, const gp_stage *st);
double gp_round_told_ns(const gp_costs *c);
bool gp_round_takes_cores(const gp_costs *c, const gp_stage *st);
/* A collective stage whose frames go by NCCL, or by MPI; NULL: there is none. */
const gp_stage *gp_collective_of(const gp_graph *g, bool nccl);
/* What a round of it takes, in words. */
const char *gp_round_text(gp_arena *a, const gp_costs *c, const gp_stage *st);
/* The key of the machine without which steps between ranks take no time; NULL: there are none, or it is said. */
const char *gp_step_lacking(const gp_costs *c, const gp_graph *g);
/* Behind gp_verdict_find(): where what ranks exchange bounds the run, the verdict names the link and its rate. */
void gp_links_judge(const gp_costs *c, const gp_plan *plan, gp_report *r);
/* assume.c: what a simulation of several devices or ranks takes for granted: *n texts in memory of `a`. */
const char *const *gp_costs_assume(gp_arena *a, const gp_costs *c, const gp_plan *plan, int *n);
