/* finite.c - gp_run_options.check_finite: who makes the first NaN, or infinite element?
 *
 * What an actor makes is looked at before it is published, and fails like a frame that the stage could not make, so that
 * nobody behind it has it. A segment is looked at stage by stage, so that no stage is named for what it was given. Of a
 * frame that is not whole only what leaves the segment is looked at. */
#include <math.h>
#include "run/host.h"
#include "run/pattern.h"
#include "run/segment.h"
#include "run/tap.h"

struct gp_finite {
    char *copy;                /* of a frame that is not in the host's memory; with the lock of the taps */
};

static bool has_fractions(const gp_ringrt *r)
{
    gp_dtype t = r->buffer && !r->buffer->state ? r->buffer->type.dtype : GP_U8;     /* a state may be another frame's by now */
    return t == GP_F16 || t == GP_F32 || t == GP_F64 || t == GP_C64;
}

static bool is_elsewhere(const gp_run *run, const gp_ringrt *r)
{
    return r->ring->place.device && !run->plan->unified;
}

void gp_finite_make(gp_run *run)
{
    size_t most = 0;
    for (int i = 0; i < run->plan->nrings; i++)
        if (has_fractions(&run->ring[i]) && is_elsewhere(run, &run->ring[i]))
            most = run->plan->ring[i].bytes > most ? run->plan->ring[i].bytes : most;
    run->finite = GP_NEW(&run->arena, struct gp_finite, 1);
    run->finite->copy = most ? GP_NEW(&run->arena, char, most) : NULL;
}

/* The first element that is not finite; -1: all are. */
static int64_t find(gp_dtype t, const void *data, int64_t n)
{
    const uint16_t *half = data;
    const float *single = data;
    const double *twice = data;
    int64_t i = 0;
    if (t == GP_F16)
        while (i < n && (half[i] & 0x7c00) != 0x7c00)
            i++;
    else if (t == GP_F32)
        while (i < n && isfinite(single[i]))
            i++;
    else if (t == GP_F64)
        while (i < n && isfinite(twice[i]))
            i++;
    else
        while (i < n && isfinite(single[2 * i]) && isfinite(single[2 * i + 1]))
            i++;
    return i < n ? i : -1;
}

static bool is_nan(gp_dtype t, const void *data, int64_t i)
{
    return t == GP_F16 ? ((const uint16_t *)data)[i] & 0x3ff : t == GP_F32 ? isnan(((const float *)data)[i])
         : t == GP_F64 ? isnan(((const double *)data)[i])
         : isnan(((const gp_c64 *)data)[i].re) || isnan(((const gp_c64 *)data)[i].im);
}

static bool tell(const gp_actorrt *p, const gp_buffer *b, const gp_type *type, const void *data, uint64_t f, int64_t i,
                 gp_errs *errs)
{
    const gp_stage *st = &p->run->graph->stage[b->producer.stage];
    char at[GP_INDEX_TEXT];
    gp_index_text(type, (uint64_t)i, at);
    return gp_fail(errs, GP_E_RUN, st->at, "stage '%s' made %s at [%s] of frame %llu of '%s'%s", st->name,
                   is_nan(type->dtype, data, i) ? "a NaN" : "an infinite element", at,
                   (unsigned long long)gp_actor_number(p, f), b->name,
                   st->nparts ? "; with --set fuse=none the one of these stages is named" : "");
}

static bool is_finite(const gp_actorrt *p, const gp_ringrt *r, const gp_type *type, uint64_t f, gp_errs *errs)
{
    gp_run *run = p->run;
    gp_taps *taps = &run->pipeline->taps;
    if (!has_fractions(r) || !gp_count(type))
        return true;
    const bool elsewhere = is_elsewhere(run, r);
    const void *data = elsewhere ? run->finite->copy : gp_slot(r, f);
    if (elsewhere)
        pthread_mutex_lock(&taps->lock);
    bool ok = !elsewhere || gp_taps_fetch(run, r, f, run->finite->copy, gp_bytes(type), errs);
    int64_t i = ok ? find(type->dtype, data, gp_count(type)) : -1;
    if (i >= 0)
        ok = tell(p, r->buffer, type, data, f, i, errs);
    if (elsewhere)
        pthread_mutex_unlock(&taps->lock);
    return ok;
}

bool gp_finite_is(const gp_actorrt *p, const gp_frame *fr, gp_errs *errs)
{
    gp_errs unheard = { .n = 0 };
    for (int o = 0; p->run->finite && o < p->stage->nout; o++)
        if (!is_finite(p, p->host->port[p->stage->nin + o].ring, &fr->out[o].type, fr->index, errs ? errs : &unheard))
            return false;
    return true;
}

/* What the stages of a segment made of a whole frame, in their order. */
static bool is_finite_inside(const gp_actorrt *p, uint64_t f, gp_errs *errs)
{
    const gp_run *run = p->run;
    for (int t = 0; t < p->segment->ntasks; t++) {
        const gp_task *task = &run->plan->task[p->segment->task[t]];
        for (int o = 0; task->op == GP_TASK_STAGE && o < task->nout; o++) {
            const gp_ringrt *r = task->out[o] >= 0 ? &run->ring[task->out[o]] : NULL;
            if (r && r->buffer && !r->buffer->varies && !is_finite(p, r, &r->buffer->type, f, errs))
                return false;
        }
    }
    return true;
}

/* What leaves the segment: frames [from, end). */
static bool is_finite_behind(const gp_actorrt *p, uint64_t from, uint64_t end, gp_errs *errs)
{
    for (uint64_t f = from; f < end; f++)
        for (int o = 0; o < p->nout; o++) {
            gp_type type = gp_type_of(p->out[o], f);
            if (!gp_meta_of(p->out[o], f)->hole && !is_finite(p, p->out[o], &type, f, errs))
                return false;
        }
    return true;
}

bool gp_finite_launch(const gp_actorrt *p, uint64_t first, int *n, gp_errs *errs)
{
    if (!p->run->finite)
        return true;
    if (!*n)                           /* a frame of firings that are too few */
        return is_finite_behind(p, gp_actor_made(p, first), gp_actor_made(p, first) + 1, errs);
    for (int i = 0; i < *n; i++) {
        uint64_t f = first + (uint64_t)i;
        if ((!p->regroup && gp_frame_is_regular(p, f) && !is_finite_inside(p, f, errs))
            || !is_finite_behind(p, gp_actor_made(p, f), gp_actor_made(p, f + 1), errs)) {
            *n = i;
            return false;
        }
    }
    return true;
}
