/* pattern.h - the elements of an output that nobody wrote, by a pattern that is put there before a stage
 * computes a frame, and is looked for after it. For unwritten.c, which does that in launches, and
 * host_unwritten.c, for host stages. */
#pragma once

#include "run/run.h"

enum { GP_SAMPLES = 16, GP_INDEX_TEXT = GP_MAXDIM * 24 };

/* "1, 13": the index of element e of a frame. */
void gp_index_text(const gp_type *t, uint64_t e, char text[GP_INDEX_TEXT]);

/* Elements [from, from + n) of a frame; `at`, an element too, in the memory that has the pattern; from `bit` on in
 * gp_pattern.same. */
typedef struct gp_sample { uint64_t from, n, at, bit; } gp_sample;

typedef struct gp_edge { uint64_t n, first; } gp_edge;

/* One output of one stage. A c64 is two elements here. */
typedef struct gp_pattern {
    const gp_stage *stage;
    int out;
    const gp_type *type;       /* of a whole frame */
    gp_type is;                /* of the frame that was looked at last */
    size_t size;               /* bytes of an element */
    uint64_t all;              /* elements of a frame */
    gp_sample sample[GP_SAMPLES]; int nsamples;
    uint64_t n;                /* elements in all samples */
    unsigned char *same;       /* a bit for each element: it had the pattern's value each time; NULL: one time is all */
    bool frames;               /* each time is another frame, as the stage runs once for each */
    int turn;                  /* patterns so far */
    uint64_t looked, nsame;    /* elements that were looked at last, and had the pattern's value each time */
    uint64_t first;            /* of these, in the frame: the first one; */
    uint64_t longest, begin;   /* how many stand side by side at most, and the first one there; */
    gp_edge edge[GP_MAXDIM + 1][2];    /* how many are where the index of an axis, or of the frame as one axis, is the
                                          first that there is, or the last */
} gp_pattern;

/* Does that stage say that it writes all of its outputs, in each frame? */
bool gp_pattern_applies(const gp_run *run, const gp_stage *st);

/* The pattern of output `out`, whose frames are of `type`, which has to live as long. It covers all of a frame that is
 * not too large, else samples. `packed`: in memory these lie one after the other, n elements in all; else it is a
 * frame's. */
gp_pattern gp_pattern_of(const gp_stage *st, int out, const gp_type *type, bool packed);

/* Begins again: no element is known to have the pattern's value. */
void gp_pattern_begin(gp_pattern *c);

/* Fills the samples in `data` with the next pattern. */
void gp_pattern_put(const gp_pattern *c, void *data);

/* What has become of it, in a frame of exactly that type. 1: all of these were written, or a few elements at
 * most that by chance cannot be told; -1: not all of them; 0: the stage has to compute the frame again, or another
 * frame, over the next pattern. */
int gp_pattern_look(gp_pattern *c, const void *data, const gp_type *is);

/* The first byte at or behind `from` that has not the pattern which was put last, and was not looked at yet; -1: all have. */
int64_t gp_pattern_behind(const gp_pattern *c, const void *data, size_t from);

/* After -1: adds the error, about frame f. `base`: "", or what indices count from; `how` all can be written. */
void gp_pattern_fail(const gp_pattern *c, uint64_t f, const char *base, const char *how, gp_errs *errs);
