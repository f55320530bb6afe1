/* segment.h - a segment at run time: segment.c sets it up, launcher.c queues its launches, launch_body.c says what
 * they do, and reaper.c waits for them. */
#pragma once

#include "run/run.h"
#include "run/trace.h"

typedef enum gp_first { GP_FIRST_DONE, GP_FIRST_DUE, GP_FIRST_LAUNCHED, GP_FIRST_FAILED } gp_first;

/* A launch that was issued and is not retired yet. */
typedef struct gp_inflight {
    uint64_t first;
    int n;
    int stream;                /* of all lanes, or one of these: */
    bool irregular;            /* see frame.h */
    bool check;                /* as gp_batch.check; and */
    gp_first then;             /* ... gp_segmentrt.first, when it is done */
    uint64_t number;           /* GP_RESIDENT: of the last frame, see gp_backend.resident_submit */
    int64_t queued_ns;         /* timed: when */
} gp_inflight;

typedef struct gp_unwritten gp_unwritten;
typedef struct gp_latencyrt gp_latencyrt;

/* What the launcher of a stage with emit() knows of the frames that were added and make no frame yet. */
typedef struct gp_gathered {
    uint64_t frames, added;    /* with holes, without */
    bool lost;                 /* they were added, and the frame that they make cannot be made */
    gp_meta meta;              /* of the frame that they make */
    gp_numbers numbers;        /* likewise */
} gp_gathered;

enum { GP_NO_STREAM = -1, GP_RESIDENT = -2 };  /* nothing was queued; issued */

/* What a stage of the segment needs to be recorded. */
struct gp_taskrt {
    const gp_task *task;
    const gp_stage *stage;     /* NULL: a copy */
    bool last;                 /* no other part waits for it */
    int order;                 /* which order of the device (ops->order_wait, order_pass) its frames keep; -1: none, or it
                                  follows from others */
    gp_taskrt *carriers;       /* the first task that carries what this one makes to the next frame; this one passes on the
                                  order that it keeps, if any */
    gp_taskrt *next_carrier;   /* the next of them */
    const gp_taskrt *carried;  /* of a task that carries: the one behind which that is ready */
    int info;                  /* which of a frame's infos is this stage's */
    bool at_once;              /* one item is all frames of the launch */
    int *item, items;          /* while a body runs: its items, as many as frames in the largest launch, and how many of them
                                  there are */
    gp_engine engine;          /* who does it */
    int stamp;                 /* stamped, where each part has one: the stamp after it; else 0 */
    bool leaf;                 /* stamped: no later part of its engine waits for it */
};

/* A device of a segment: its number in the graph, and where the segment's streams and stamps begin there. */
typedef struct gp_lanert { gp_dev *dev; int device, stream0, stamp0; } gp_lanert;

/* What the launcher knows of the rings around it that may use more slots, see room.c. */
typedef struct gp_roomrt {
    int launches, behind;      /* in which it held the run up, of late; in which a consumer did, in a row */
    int64_t since_ns, behind_ns;
    uint64_t behind_from;      /* the frame */
} gp_roomrt;

struct gp_segmentrt {
    gp_lanert *lane;
    gp_taskrt *part; int nparts; /* in the order of their turns, then of tasks; */
    int circle, circle_end;    /* ... these are GP_TURN_IN */
    int *part_of;              /* per task of the plan */
    const int **from;          /* see gp_frame_meta_of: per buffer of the graph, inputs, ended by -1; NULL: all of them */
    const gp_task **mapped;    /* per ring of the plan: the copy that is not needed where the stage uses the ring of the host
                                  in its place, or NULL; NULL: all copies are by copy engines */
    int ordered;               /* parts that have an order */
    int order0;                /* of this segment among the device's */
    gp_exec ***exec;           /* [log2 frames][slot / frames] */
    int sizes;
    gp_unwritten *unwritten;   /* see unwritten.c; NULL: there is nothing to look at */
    atomic_int first;          /* gp_first: of the first whole frame, which is launched alone; and, while they are
                                  launched, of others that are */
    gp_gathered gathered;
    gp_roomrt grown;
    gp_latencyrt *latency;     /* see latency.h; NULL: nothing is chosen */
    _Atomic uint64_t undone;   /* frames in which nothing was done to states: all that came behind the first of them */
    bool saves;                /* a state of it is saved while the run goes on (state_save.c) */
    gp_resident *resident;     /* launch: persistent, on a device that has it */
    gp_inflight *inflight;     /* a ring of ninflight */
    uint64_t ninflight;
    atomic_bool *busy;         /* per stream, lane by lane */
    gp_type *type;             /* per buffer: of the launch being made, see frame.h */
    gp_hole *hole;             /* per buffer: likewise */
    uint64_t *gaps;            /* per buffer: likewise */
    unsigned char *behind;     /* per buffer: room for a look behind the end of an input (ring.c) */
    int64_t most;              /* as gp_rec.most */
    int *managed, nmanaged;    /* pools of managed memory that it reads or writes, see ahead.c */
    uint64_t brought;          /* frames whose slots there were brought to the device; the launcher's */
    int *dep;                  /* room for a body */
    size_t bytes;              /* of a whole frame's outputs */
    int nstamps;               /* per launch, 0: none; */
    int engine_stamp[GP_ENGINES];      /* ... that behind all that an engine does; 0: it does nothing */
    int stamp[GP_ENGINES + 1], stamps;     /* while a body runs: the items that are stamps; not of the CPU back end */
    gp_hist *time;             /* timed: of one frame, on the device; the reaper's */
    gp_track *(*copy_track)[GP_ENGINES], **stream_track;   /* traced: per lane, per stream; the reaper's, or */
    gp_track *kernel_track;    /* the device's, when it is watched */
    gp_eventcount done;        /* the reaper sleeps here */
    _Alignas(64) _Atomic uint64_t issued;  /* launches */
    atomic_bool over;          /* the launcher issues no more */
    _Alignas(64) _Atomic uint64_t retired; /* launches */
    _Atomic uint64_t reaped;   /* frames */
};

/* What a body records: frames [first, first + n). `irregular`: one frame that
 * is not whole, see frame.h. `again`: their slots have been used before, so that cached
 * stages need not run. */
typedef struct gp_batch {
    gp_actorrt *p;
    uint64_t first;
    int n;
    bool irregular, again;
    bool bare;                 /* no stamps */
    bool check;                /* what stages do not write: see unwritten.c */
    bool emits;                /* of a stage with emit(): behind these frames */
    bool recheck;              /* with `check`: only the stages that are not sure yet, and nothing else */
} gp_batch;

/* How the launch does a copy. One that is looked at, or of a frame that is not whole, leaves it to copy engines. */
static inline gp_copying gp_batch_copying(const gp_batch *o, const gp_task *t)
{
    bool may = o->p->seg->mapped && !o->irregular && !o->check && !o->recheck;
    return may ? gp_copying_in(t, o->n) : GP_COPY_DMA;
}

/* segment.c. Frame f fails with the errors of t, and with it the run; what is before it comes out. */
void gp_segment_fail_frame(gp_threadrt *t, uint64_t f);
/* room.c: behind each launch, by the launcher. */
void gp_room_launched(gp_actorrt *p);

/* The device is lost. It tells only one of its threads why, and that one reports; frames [reaped, end) are not
 * finished. */
void gp_segment_fault(gp_threadrt *t, uint64_t end);

/* That which frame f, or stream `stream`, is of. */
static inline const gp_lanert *gp_lane_of(const gp_actorrt *p, uint64_t f)
{
    return &p->seg->lane[gp_lane(p->segment->place, f)];
}

static inline const gp_lanert *gp_stream_lane(const gp_actorrt *p, int stream, int *number)
{
    const gp_lanert *l = &p->seg->lane[stream / p->segment->streams];
    *number = l->stream0 + stream % p->segment->streams;
    return l;
}

/* The slot of frame f in its lane. */
static inline int gp_slot_in_lane(const gp_actorrt *p, uint64_t f)
{
    return (int)gp_lane_slot(p->segment->place, f, p->segment->depth);
}

/* state_save.c. A launch of frames from f on, of at most n, has no more than `most`; behind each launch, by the launcher:
 * queues what is to be saved, false: the device is lost; reaped: by the reaper. */
int gp_states_most(const gp_actorrt *p, uint64_t f, int n);
bool gp_states_launched(gp_threadrt *t);
void gp_states_reaped(const gp_actorrt *p);

/* Makes what a stage makes of inputs without rows. */
bool gp_fill_of_none(gp_dcall *c, const gp_stage *st, const gp_view *out);
/* Queues a body directly on a stream of the segment; waits for what is queued there, as gp_backend.wait. */
bool gp_segment_direct(const gp_actorrt *p, int stream, gp_body body, void *arg, gp_errs *errs);
int gp_segment_wait(const gp_actorrt *p, int stream, gp_sync sync, gp_errs *errs);

/* ahead.c. begin looks for managed memory that the segment uses. bring has the slots brought to their device that a
 * launch of frames [f, f + n), which is next, needs, and those of as many frames behind. */
void gp_ahead_begin(gp_actorrt *p);
bool gp_ahead_bring(gp_actorrt *p, uint64_t f, int n, gp_errs *errs);

/* stamp.c: how many stamps the launches in flight need on each device, after the parts are made. */
int gp_stamps_init(gp_actorrt *p);
/* Record the first stamp of a body, and that after a part, if it has one; *id is the
 * next item's; j: the frame of the launch whose turn it was. */
bool gp_stamps_begin(gp_rec *r, const gp_batch *o, int *id);
bool gp_stamps_after(gp_rec *r, const gp_batch *o, const gp_taskrt *part, int j, int *id);
/* Notes what the engines did in a launch that is done. The reaper calls it. */
void gp_stamps_read(gp_actorrt *p, const gp_inflight *fl);

/* unwritten.c. init takes memory, before frame 0, and says that a first frame is due; fini gives it back. In a body
 * with `check` fill and fetch stand around a stage; `due` says whether a launch of the segment's types wants one, and
 * `begin` comes before it. Once that launch is done, look says: 1 all was written; -1 not all, with an error; 0 the
 * stages that ask for it have to compute the frame again. Until then the segment's types are those of this launch. If it
 * goes on, the next frame is looked at as the first was. */
bool gp_unwritten_init(gp_actorrt *p, gp_errs *errs);
void gp_unwritten_fini(gp_actorrt *p);
bool gp_unwritten_due(const gp_actorrt *p);
void gp_unwritten_begin(gp_unwritten *u);
bool gp_unwritten_fill(gp_rec *r, const gp_actorrt *p, const gp_taskrt *part, const gp_dcall *call);
bool gp_unwritten_fetch(gp_rec *r, gp_unwritten *u, const gp_taskrt *part, const gp_dcall *call);
int gp_unwritten_look(const gp_actorrt *p, uint64_t f, gp_errs *errs);
bool gp_unwritten_asks(const gp_unwritten *u, const gp_taskrt *part);
bool gp_unwritten_goes_on(const gp_unwritten *u);

static inline gp_frame_info *gp_info_of(const gp_actorrt *p, int ring, const gp_taskrt *part,
                                        uint64_t f)
{
    return (void *)((char *)gp_slot(&p->run->ring[ring], f) + part->info * GP_INFO_BYTES);
}

/* launch_body.c: what a stage is given of n frames of which the first is at v, no larger than `whole`. */
gp_span gp_span_of(const char *name, const gp_view *v, const gp_type *whole, int n, bool output);
/* The body of a launch, for gp_backend: `arg` is a gp_batch. */
bool gp_segment_record(gp_rec *r, void *arg);
/* The body that makes carried state zero, and fills the slot before frame 0 of what is carried with the first frame:
 * `arg` is the gp_actorrt. */
bool gp_segment_reset(gp_rec *r, void *arg);
