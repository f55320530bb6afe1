/* timely.h - with `latency`: how many frames a launch of a segment takes and how long it waits for more, so that 99
 * frames in 100 end in time and launches are as long as that allows.
 *
 * Pure: all times are given, and the same times give the same choices. What decides is measured: how long frames of
 * launches of each size took from when these were due to when the frames ended, which includes the launcher's delays,
 * the device and all stages behind it; and how old the oldest frame is. */
#pragma once

#include <stdbool.h>
#include "gpipe/hist.h"

/* Times of launches of one size, from when they were due to the end of a frame. */
typedef struct gp_tail {
    gp_hist hist;
    int64_t most_ns, middle_ns;        /* of 99 frames in 100, of half of them; of the newest 512 to 1024 */
    unsigned due, unused;              /* frames until these are found again; launches of smaller sizes since */
} gp_tail;

/* Sizes are powers of two: number k stands for 1 << k frames. */
typedef struct gp_timely {
    int64_t latency_ns;
    gp_tail *tail; int sizes;
    gp_hist gap;                       /* between frames */
    int64_t gap_ns, born_ns;           /* 90 of 100 come so soon after the one before; when that was */
    unsigned gap_due;
} gp_timely;

/* Frames that a launch may take. */
typedef struct gp_timely_ready {
    int64_t now_ns, born_ns;           /* born: the oldest */
    int64_t came_ns;                   /* when the newest of them was seen first */
    int n;                             /* that are ready, at most as many as a launch may take */
    int able, most;                    /* sizes: of the longest launch of these, of any from this slot on */
    int all, lanes;                    /* all that are ready; launches side by side */
    int64_t newest_ns;                 /* when the last of all was born */
} gp_timely_ready;

typedef struct gp_timely_choice { int size; int64_t until_ns; } gp_timely_choice;

/* A launch of this size at once, where until_ns is not after now; else until then so many frames are awaited that one
 * of twice the size can be made. */
gp_timely_choice gp_timely_choose(const gp_timely *t, const gp_timely_ready *w);
/* What 99 frames in 100 of launches of this size take, measured or at most; 0: nothing is known. */
int64_t gp_timely_tail(const gp_timely *t, int size);

/* A launch of this size begins; the frame that comes next was born then; a frame of such a launch has ended after so
 * long. */
void gp_timely_launched(gp_timely *t, int size);
void gp_timely_came(gp_timely *t, int64_t born_ns);
void gp_timely_ended(gp_timely *t, int size, int64_t took_ns);

/* What a run came to. */
typedef struct gp_late {
    uint64_t frames, late;             /* that ended; that took longer than `latency` */
    int64_t p99_ns;
    double under_way;                  /* frames between source and end, the mean */
    int64_t alone_ns;                  /* of those that were launched alone 99 in 100 took so long from the launch on */
} gp_late;
/* If more than one frame in 100 was late: a sentence for the person who chose `latency` and `depth`. Else NULL. */
enum { GP_LATE_TEXT = 240 };
const char *gp_late_text(const gp_late *is, int64_t latency_ns, int depth, char out[GP_LATE_TEXT]);

/* The longest row of frames from f on that a launch takes, at most n: a power of two, aligned in the segment's slots. */
static inline int gp_timely_row(int depth, uint64_t f, int n)
{
    int slot = (int)(f % (uint64_t)depth), m = 1;
    while (2 * m <= n && slot % (2 * m) == 0 && slot + 2 * m <= depth)
        m *= 2;
    return m;
}

/* ... as its power; 0 of none. */
static inline int gp_timely_size(int n)
{
    return n > 0 ? 31 - __builtin_clz((unsigned)n) : 0;
}
