/* finite.c - gp_run_options.check_finite: who makes the first NaN, or infinite element?
 *
 * What an actor makes is looked at before it is published, that of a segment stage by stage, so that no stage is named for
 * what it was given. Of a frame that is not whole only what leaves the segment is looked at. */
#include <math.h>
#include <string.h>
#include "run/segment.h"
#include "run/tap.h"

struct gp_finite {
    char *copy;                /* of a frame that is not in the host's memory; with the lock of the taps */
    atomic_bool told;          /* of the first alone: what is made of that is not finite either */
};

static bool has_fractions(const gp_ringrt *r)
{
    gp_dtype t = r->buffer ? r->buffer->type.dtype : GP_U8;
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

static void tell(gp_actorrt *p, const gp_buffer *b, const gp_type *type, const void *data, uint64_t f, int64_t i)
{
    const gp_stage *st = &p->run->graph->stage[b->producer.stage];
    gp_errs e = { .n = 0 };
    char at[160] = "";
    int64_t rest = gp_count(type), left = i;
    for (int k = 0; k < type->ndim; k++) {
        size_t n = strlen(at);
        rest /= type->dim[k];
        snprintf(at + n, sizeof at - n, "%s%lld", k ? ", " : "", (long long)(left / rest));
        left %= rest;
    }
    gp_fail(&e, GP_E_RUN, st->at, "stage '%s' made %s at [%s] of frame %llu of '%s'%s", st->name,
            is_nan(type->dtype, data, i) ? "a NaN" : "an infinite element", at, (unsigned long long)gp_actor_number(p, f),
            b->name, st->nparts ? "; with --set fuse=none the one of these stages is named" : "");
    gp_run_fail(p->run, &e);
}

static void look_at(gp_actorrt *p, const gp_ringrt *r, const gp_type *type, uint64_t f)
{
    gp_run *run = p->run;
    gp_taps *taps = &run->pipeline->taps;
    const bool elsewhere = is_elsewhere(run, r);
    const void *data = elsewhere ? run->finite->copy : gp_slot(r, f);
    gp_errs e = { .n = 0 };
    if (elsewhere)
        pthread_mutex_lock(&taps->lock);
    bool there = !elsewhere || gp_taps_fetch(run, r, f, run->finite->copy, gp_bytes(type), &e);
    int64_t i = there ? find(type->dtype, data, gp_count(type)) : -1;
    if (!there)
        gp_run_fail(run, &e);
    if (i >= 0 && !atomic_exchange(&run->finite->told, true))
        tell(p, r->buffer, type, data, f, i);
    if (elsewhere)
        pthread_mutex_unlock(&taps->lock);
}

static bool goes_on(const gp_run *run)
{
    return !atomic_load(&run->finite->told);
}

/* What the stages of a segment made of whole frames, in their order. */
static void look_inside(gp_actorrt *p, uint64_t first, int n)
{
    gp_run *run = p->run;
    for (int t = 0; t < p->segment->ntasks; t++) {
        const gp_task *task = &run->plan->task[p->segment->task[t]];
        for (int o = 0; task->op == GP_TASK_STAGE && o < task->nout; o++) {
            const gp_ringrt *r = task->out[o] >= 0 ? &run->ring[task->out[o]] : NULL;
            for (uint64_t f = first; r && has_fractions(r) && f < first + (uint64_t)n && goes_on(run); f++)
                if (!r->buffer->varies && gp_frame_is_regular(p, f))
                    look_at(p, r, &r->buffer->type, f);
        }
    }
}

void gp_finite_look(gp_actorrt *p, uint64_t first, int n)
{
    if (p->segment && !p->regroup)
        look_inside(p, first, n);
    for (int o = 0; o < p->nout; o++) {
        const gp_ringrt *r = p->out[o];
        uint64_t end = gp_actor_made(p, first + (uint64_t)n);
        for (uint64_t f = atomic_load(&r->produced.at); has_fractions(r) && f < end && goes_on(p->run); f++) {
            gp_type type = gp_type_of(r, f);
            if (!gp_meta_of(r, f)->hole && gp_count(&type))
                look_at(p, r, &type, f);
        }
    }
}
