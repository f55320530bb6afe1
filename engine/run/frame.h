/* frame.h - what a frame is as it passes an actor. In each buffer it is whole, or partial:
 * with fewer rows than the buffer's type, or a hole: dropped or failed, so that there is
 * no data. A frame that is whole in all of an actor's inputs costs nothing here.
 *
 * A launch of a segment is regular when its frames are whole in all inputs, and so in all that is
 * made of them; any other frame makes an irregular launch of its own. */
#pragma once

#include "compile/ir.h"

typedef struct gp_actorrt gp_actorrt;
typedef struct gp_segmentrt gp_segmentrt;
typedef struct gp_taskrt gp_taskrt;
typedef struct gp_worker_view gp_worker_view;
typedef struct gp_ringrt gp_ringrt;

/* Absent: a row that a partial frame lacks, where rows became frames; no account counts it. Undone: dropped, as not all
 * ranks have it when the run stops: nothing of it is done to a state. Late, lost, full: dropped,
 * as it was older than its deadline, as its source did not get it, or as who was to take it had no room (leak.c). */
typedef enum gp_hole {
    GP_NO_HOLE, GP_HOLE_ABSENT, GP_HOLE_UNDONE, GP_HOLE_DROPPED, GP_HOLE_LATE, GP_HOLE_LOST, GP_HOLE_FULL, GP_HOLE_FAILED, GP_HOLES
} gp_hole;

/* Frames that are missing in what a sink joins, by why: not those that a stage left out on purpose. */
typedef struct gp_missing { uint64_t n[GP_HOLES], first; } gp_missing;

static inline gp_hole gp_worse_hole(gp_hole a, gp_hole b)
{
    return a > b ? a : b;
}

static inline gp_hole gp_hole_by(gp_status s)
{
    return s == GP_DROP ? GP_HOLE_DROPPED : s == GP_FAILED ? GP_HOLE_FAILED
         : s == GP_ABSENT ? GP_HOLE_ABSENT : s == GP_LOST ? GP_HOLE_LOST : s == GP_NO_ROUND ? GP_HOLE_UNDONE : GP_NO_HOLE;
}

/* The byte that `poison` fills slots with: it makes numbers with a fraction NaN, and
 * integers, with a sign or without, far from 0. */
static inline int gp_poison(gp_dtype t)
{
    bool fraction = t == GP_F16 || t == GP_F32 || t == GP_F64 || t == GP_C64;
    return fraction ? 0xff : 0xa5;
}

/* Since when a frame is under way, CLOCK_MONOTONIC. */
typedef struct gp_age {
    int64_t born_ns;           /* in a timed run, and with `latency`: when it came, or was made */
    int64_t due_ns;            /* with `latency`: when the last launch that took it was due; 0: none did; */
    int by, size;              /* ... that of this actor, of 1 << size frames */
} gp_age;

#define GP_GAPS_MANY ((uint64_t)1 << 63 | 1)

/* What travels with a frame of one buffer, beside its data. Written by the
 * producer before it publishes, read-only after. */
typedef struct gp_meta {
    int64_t rows;              /* valid rows */
    int64_t time_ns;
    const char *name, *file;   /* file: the same with its extension; NULL: there is none */
    gp_hole hole;
    uint64_t gaps;             /* of rows that are frames of a group: bit j, its frame j is a hole; 0: rows are at their
                                  places. GP_GAPS_MANY: a hash of the bits, which are more, or it is not known which
                                  frames they are */
    bool touched;              /* the producer has written this slot before */
    gp_age age;
} gp_meta;

/* The numbers that travel with it, by their index in gp_graph.metadata. Written and read as a gp_meta. */
typedef struct gp_numbers {
    unsigned set;              /* which of them it has */
    int origin[GP_META_KEYS];  /* of each that it has: of the buffer whose maker said so */
    double value[GP_META_KEYS];
} gp_numbers;

/* ---- gaps.c: frames that a group left out, and where that puts the others ---- */

/* With frame j of a group of `take` a hole. */
uint64_t gp_gaps_with(uint64_t gaps, uint64_t j, int64_t take);
bool gp_gaps_are_known(uint64_t gaps);         /* not GP_GAPS_MANY */
/* The row that frame j has, if there are so many; -1: it is a hole. Of gaps that are known. */
int64_t gp_gaps_row(uint64_t gaps, uint64_t j);
/* The gaps of what a stage makes of `in`, which are not all whole: an output that has a row for each has their gaps.
 * False, with an error: two inputs of which that holds lack different frames, or rows are taken by their places. `out`,
 * `made`: by the outputs.
 * `errs` may be NULL: that was looked at. */
bool gp_gaps_pass(const gp_graph *g, const gp_stage *st, const gp_type *in, const uint64_t *gaps, const gp_type *out,
                  uint64_t *made, gp_errs *errs);
/* The gaps that a host stage's frame `fr` passes on, with the rows that its outputs have. */
bool gp_gaps_pass_host(const gp_actorrt *p, const gp_frame *fr, uint64_t made[GP_MAXPORT], gp_errs *errs);

/* ---- by its inputs ------------------------------------------------------ */

/* Is frame f whole in all inputs? */
bool gp_frame_is_whole(const gp_actorrt *p, uint64_t f);
/* And so in all that a segment makes of it? Not where a stage says the shapes of each frame. */
bool gp_frame_is_regular(const gp_actorrt *p, uint64_t f);

/* What frame f is by its inputs' metas, the worst of their holes: for its outputs' metas,
 * but for `rows` and `touched`. */
gp_meta gp_frame_meta(const gp_actorrt *p, uint64_t f);
/* The same, but for the hole, of one that p makes: of a segment, by those of its inputs that this is made of, in the order
 * in which stages on the host would have them. */
gp_meta gp_frame_meta_of(const gp_actorrt *p, uint64_t f, int buffer);

/* ---- in a segment: its launcher only --------------------------------- */

/* Sets the types and holes of all buffers (gp_segmentrt.type, .hole) for the next launch:
 * of whole frames, as they stay until they are set again; or of frame f, which is not
 * whole. False, with errors, where stages cannot have it: it is a hole in what these make, and goes on in other
 * branches. `failed`: it could not be recorded, so that it is a hole in each input. */
void gp_frame_set_whole(gp_actorrt *p);
bool gp_frame_set_irregular(gp_actorrt *p, uint64_t f, bool failed, gp_errs *errs);

/* With these: the hole that a stage makes, which then does not run; has it no
 * rows to work on; has the device anything to do? */
gp_hole gp_frame_stage_hole(const gp_segmentrt *s, const gp_stage *st);
bool gp_frame_stage_is_empty(const gp_segmentrt *s, const gp_taskrt *part);
bool gp_frame_needs_device(const gp_actorrt *p);

/* Writes frame f's infos, which its kernels read; the metas of its outputs. */
void gp_frame_write_infos(gp_actorrt *p, uint64_t f);
void gp_frame_write_metas(gp_actorrt *p, uint64_t f);

/* ---- in a host stage ------------------------------------------------- */

/* Sets the types of a partial frame's outputs from those of its inputs. */
bool gp_frame_set_partial(const gp_actorrt *p, gp_frame *fr, gp_errs *errs);

/* Writes the metas of the outputs of the first n frames in a worker's view, by their
 * status; clears the rows beyond the valid ones. Returns the bytes of those that are no
 * holes. */
size_t gp_frames_write_metas(gp_actorrt *p, gp_worker_view *view, int n);

/* Frame f, which was not run, is a hole in each output. */
void gp_frame_write_hole(gp_actorrt *p, uint64_t f, gp_hole hole);

/* ---- numbers.c: for pipelines that list metadata ---------------------- */

/* Those of the n frames from `first` on that a worker sees, before its kind's code runs: by its inputs. */
void gp_numbers_lay_out(const gp_actorrt *p, gp_worker_view *view, uint64_t first, int n);
/* Frame f of ring r has these numbers, by r's own maker; none where `from` is NULL. Nothing where none are listed. */
void gp_numbers_write(gp_ringrt *r, uint64_t f, const gp_numbers *from);
/* Frame f passes a segment: the numbers of its outputs. */
void gp_numbers_pass(const gp_actorrt *p, uint64_t f);
