/* plan.h - what the passes over plans and their dump share. */
#pragma once

#include <string.h>
#include "compile/ir.h"

/* The most items in what one launch records, and of stamps beside them. */
enum { GP_REC_ITEMS = 1 << 16, GP_REC_STAMPS = 4 };

/* Sizes are added and multiplied without wrapping round: what does not fit is
 * SIZE_MAX, which no budget allows. */
static inline size_t gp_size_add(size_t a, size_t b)
{
    size_t r;
    return __builtin_add_overflow(a, b, &r) ? SIZE_MAX : r;
}

static inline size_t gp_size_mul(size_t a, size_t b)
{
    size_t r;
    return __builtin_mul_overflow(a, b, &r) ? SIZE_MAX : r;
}

/* Up to the next multiple of 256, the alignment of every slot. */
static inline size_t gp_size_round(size_t bytes)
{
    return bytes > SIZE_MAX - 255 ? SIZE_MAX & ~(size_t)255 : (bytes + 255) & ~(size_t)255;
}

/* Rings with counters by actor: those of actor i are v[from[i]] ... v[from[i + 1] - 1]. */
typedef struct gp_ring_lists { int *from, *v; } gp_ring_lists;

/* play.c: frames on their way through a plan. Once every actor has fired as often as its rate says, the marking is what it
 * was, so they can go on for ever; a window is full after `periods` of these. */
typedef struct gp_playing {
    const gp_plan *p;
    const gp_stage **stage;    /* of each actor: the one that it is, or the first of its segment */
    uint64_t *fired;           /* of each actor */
    int *depth;                /* of each ring: what it has room for; the caller's */
    gp_ring_lists made, read;
    uint64_t periods;
    int lacks;                 /* a ring that lacked a frame last */
} gp_playing;
gp_playing gp_play_begin(gp_arena *a, const gp_plan *p);
/* Until each actor has fired `periods` times its rate; the smallest ring that keeps one from it for lack of room, or -1:
 * none does. They may be not done even so, where stages wait for each other's frames. */
int gp_play(gp_playing *y, uint64_t periods);
bool gp_play_is_done(const gp_playing *y, uint64_t periods);
/* The slots of a ring that its producer's next firing needs it to have. */
uint64_t gp_play_needs(const gp_playing *y, int ring);

/* deepen.c: raises depth[ring], which is gp_ring.depth at first, so that stages of different rates never stand still.
 * False where a depth that the file says is too small for that. */
bool gp_deepen(gp_arena *a, const gp_plan *p, int *depth, gp_errs *errs);

/* depth.c: the tasks of a frame, of loops each launch of a stage (of one, GP_REC_ITEMS at most). A frame of
 * GP_LONG takes long; of fewer, a graph for each range of slots is made soon. */
enum { GP_LONG = 1000 };
int64_t gp_segment_kernels(const gp_plan *p, const gp_segment *s);

/* An array of n ints, all -1. */
static inline int *gp_nones(gp_arena *a, int n)
{
    return memset(GP_NEW(a, int, n), -1, sizeof(int) * (size_t)n);
}

/* Where a device stage runs. */
static inline gp_place gp_stage_place(const gp_graph *g, const gp_stage *s)
{
    return (gp_place){ true, s->placed >= 0 ? s->placed : 0, gp_stage_lanes(s, g->lanes), 1 };
}

static inline bool gp_same_place(gp_place a, gp_place b)
{
    return a.device == b.device && a.index == b.index && a.lanes == b.lanes;
}

/* fuse.c: does the stage compute each element of its outputs of the elements at one place of its inputs, but for those that
 * are `beyond`? */
bool gp_is_elementwise(const gp_stage *s);

/* segments.c: of each stage the lowest one of its segment, or itself on the host. */
const int *gp_segments(gp_arena *a, const gp_graph *g);

/* launches.c: how many launches of a segment differ in their slots: one for
 * each range of 1, 2, 4, ... `batch` frames, aligned to its own size, that does
 * not wrap `depth`, over all `period` slots. */
int64_t gp_segment_execs(const gp_segment *s);
/* launches.c: the bytes a frame that a segment copies one way, in all ways, and the frames that
 * one launch takes at most if the file asks for `asked` (0: auto). */
size_t gp_segment_copied(const gp_plan *p, const gp_segment *s, gp_task_kind way);
size_t gp_segment_copied_all(const gp_plan *p, const gp_segment *s);
int gp_segment_batch(const gp_plan *p, const gp_segment *s, int asked);
/* schedule.c: of a managed pool, as many slots as a device has at once: of each launch in flight, and of one ahead. */
int gp_pool_at_once(const gp_plan *p, int pool);
/* managed.c: could a constant, or what a stage makes on a device, be in managed memory? */
bool gp_managed_may(const gp_graph *g, const gp_buffer *b);

/* The bytes of one slot that a copy task moves. */
static inline size_t gp_copy_bytes(const gp_plan *p, const gp_task *t)
{
    return t->op == GP_TASK_COPY_PEER ? p->ring[t->in[0]].bytes : p->pool[t->from_pool].stride;
}

/* mapped.c: the bytes of a launch that are copied so, or else by copy engines; *measured: as was measured on the device,
 * else as is usual. */
size_t gp_copying_most(const gp_device_info *d, gp_copying how, bool *measured);

/* How a launch of n frames does the copy. */
static inline gp_copying gp_copying_in(const gp_task *t, int n)
{
    return n <= t->copied_most ? t->copying : GP_COPY_DMA;
}

/* Does a copy in bring to a device what another one made? */
static inline bool gp_comes_from_device(const gp_plan *p, const gp_task *t)
{
    const gp_ring *r = &p->ring[t->in[0]];
    return r->buffer >= 0 && r->producer >= 0 && p->actor[r->producer].kind == GP_ACTOR_SEGMENT;
}

/* Can the devices of place `to` copy directly from the memory of those of `from`? */
static inline bool gp_are_peers(const gp_graph *g, gp_place from, gp_place to)
{
    for (int i = from.index; i < from.index + from.lanes; i++)
        for (int k = to.index; k < to.index + to.lanes; k++)
            if (i != k && g->device[i].index < 64 && g->device[k].info.no_peer >> g->device[i].index & 1)
                return false;
    return true;
}

/* plan.c: of each stage, does it get its first frame only when a source has ended? */
bool *gp_late_stages(gp_arena *a, const gp_graph *g);
/* plan.c: the first stage of a segment; and the stage that an actor is, or the first of its segment. */
int gp_segment_first(const gp_plan *p, int segment);
/* The segment that a stage is in; -1: it runs on the host. */
int gp_plan_segment_of(const gp_plan *p, int stage);
const gp_stage *gp_actor_first(const gp_plan *p, int actor);
/* plan.c: the slots that the pipeline gives its buffers; where it does not say, the most that one has by default. */
int gp_plan_depth(const gp_plan *p);
/* plan.c: what a constant is: its file, how many numbers, or the number that all its elements are. */
const char *gp_const_text(const gp_buffer *b, char buf[32]);
/* plan.c: "768 B", "2.3 MiB" in a caller's buffer; returns it. */
char *gp_size_text(size_t bytes, char buf[24]);
/* plan.c: "host", "cuda:0", "cuda:0-3", "2 devices"; on a unified plan "cpu" for the device. */
char *gp_place_text(const gp_plan *p, gp_place place, char buf[24]);
/* plan.c: as the file says it; by gp_launch_mode, by gp_sync. */
extern const char *const gp_launch_name[], *const gp_sync_name[];
const char *gp_priority_name(gp_priority p);
