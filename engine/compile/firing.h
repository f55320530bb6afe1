/* firing.h - which frames a stage that regroups takes and makes, see gp_regroup in stage.h. A stage that carries takes
 * frame k - 1 in firing k, so it first fires without a frame. Every other stage takes and makes frame k in firing k.
 *
 * In all of these k counts firings, and a number of frames is one from frame 0 on. */
#pragma once

#include "compile/ir.h"

/* Does it take the frame before, see carry.c? */
static inline bool gp_firing_carries(const gp_regroup *r)
{
    return r->back == r->take;
}

/* The input frame that firing k belongs to. */
static inline uint64_t gp_firing_frame(const gp_regroup *r, uint64_t k)
{
    return k / (uint64_t)r->repeat * (uint64_t)r->step;
}

/* The first frame that it takes. */
static inline uint64_t gp_firing_from(const gp_regroup *r, uint64_t k)
{
    uint64_t f = gp_firing_frame(r, k), back = (uint64_t)r->back;
    return f > back ? f - back : 0;
}

/* The frame behind the last that it takes, if that many come. */
static inline uint64_t gp_firing_to(const gp_regroup *r, uint64_t k)
{
    return gp_firing_frame(r, k) + (uint64_t)(r->take - r->back);
}

/* How many firings `frames` frames are enough for; and how many there are once no more will come. */
static inline uint64_t gp_firings_ready(const gp_regroup *r, uint64_t frames)
{
    uint64_t ahead = (uint64_t)(r->take - r->back), step = (uint64_t)r->step;
    return frames < ahead ? 0 : ((frames - ahead) / step + 1) * (uint64_t)r->repeat;
}

static inline uint64_t gp_firings_in_all(const gp_regroup *r, uint64_t frames)
{
    uint64_t step = (uint64_t)r->step;
    return r->drop_tail ? gp_firings_ready(r, frames)
                        : (frames / step + (frames % step > 0)) * (uint64_t)r->repeat;
}

/* The frames that the first k firings make; and all of `firings`, when there are no more. */
static inline uint64_t gp_frames_made(const gp_regroup *r, uint64_t k)
{
    return r->every > 1 ? k / (uint64_t)r->every : k * (uint64_t)r->make;
}

static inline uint64_t gp_frames_in_all(const gp_regroup *r, uint64_t firings)
{
    return gp_frames_made(r, firings) + (r->every > 1 && !r->drop_tail && firings % (uint64_t)r->every > 0);
}

/* The same, were nothing dropped at the end. */
static inline uint64_t gp_firings_at_most(const gp_regroup *r, uint64_t frames)
{
    gp_regroup keep = *r;
    keep.drop_tail = gp_firing_carries(r);
    return gp_firings_in_all(&keep, frames);
}

static inline uint64_t gp_frames_at_most(const gp_regroup *r, uint64_t firings)
{
    gp_regroup keep = *r;
    keep.drop_tail = false;
    return gp_frames_in_all(&keep, firings);
}

/* The firings for which a ring that has room for the first `frames` frames has room; without r each makes one. */
static inline uint64_t gp_firings_with_room(const gp_regroup *r, uint64_t frames)
{
    if (r && r->every > 1)             /* up to the last that does not make a frame too many */
        return r->every == INT64_MAX ? UINT64_MAX / 2 : frames * (uint64_t)r->every + (uint64_t)r->every - 1;
    return r ? frames / (uint64_t)r->make : frames;
}

/* The slots that a ring of what it takes, or makes, has for `depth` firings at once; 1: those that it needs to go on.
 * Copies are fast: of frames by the thousand some are enough for others to go on meanwhile. */
static inline int64_t gp_firing_slots(const gp_regroup *r, bool takes, int64_t depth)
{
    enum { ENOUGH = 256 };
    int64_t each = takes ? (r->step < r->take ? r->step : r->take) : r->make, more = each * (depth - 1);
    int64_t most = depth - 1 > ENOUGH ? depth - 1 : ENOUGH;
    return (takes ? r->take : r->make) + (more < most ? more : most);
}

/* Where no depth is given: slots of a buffer of small frames, and of others. Of small ones what threads do between two
 * launches takes the time, and more in flight hide it: beside the device of frames smaller than GP_DEPTH_BYTES. Between
 * stages on the host they are smaller than GP_DEPTH_HOST_BYTES, as more slots have to fit in a core's cache. With
 * `latency` there are no more of small ones, as a frame that waits in a slot comes later. Around a segment whose frames
 * are so small that launching them takes most of the time there are up to GP_DEPTH_MANY, GP_DEPTH_MANY_BYTES in a ring,
 * for launches of many: depth.c. */
enum { GP_DEPTH_SMALL = 6, GP_DEPTH_LARGE = 3, GP_DEPTH_BYTES = 1 << 20, GP_DEPTH_HOST_BYTES = 128 << 10,
       GP_DEPTH_MANY = 192, GP_DEPTH_MANY_BYTES = 2 << 20 };

/* rates.c: the slots of a buffer that says no depth: room for as many firings of each stage around it as others have
 * for frames. `small`: of those that take or make one small frame at a time, if the pipeline says no depth either. */
int64_t gp_default_slots(const gp_graph *g, const gp_buffer *b, int small);
/* ... is a stage on the device at an end of the buffer? */
bool gp_on_device(const gp_graph *g, const gp_buffer *b);
