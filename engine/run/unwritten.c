/* unwritten.c - does a device stage write all of its outputs?
 *
 * A slot of a ring holds what an earlier frame left there, so that an element which a stage does not write
 * is silently some other frame's. Of a stage that says that it writes all (gp_shape.writes_all), the first
 * whole frame is launched alone: its outputs are filled with a pattern before, and copied to the host behind
 * the stage. As long as pattern.c is not sure, the stage alone computes the frame again over another pattern. A
 * stage whose frames take turns has state and runs once. */
#include <stdlib.h>
#include <string.h>
#include "run/pattern.h"
#include "run/segment.h"

/* One output. */
typedef struct checked {
    const gp_taskrt *part;
    int out;
    gp_pattern pattern;
    char *copy;                /* pinned host memory for its samples */
    bool asks;                 /* it is not sure yet */
} checked;

struct gp_unwritten { checked *of; int n; };

/* ---- setting up ------------------------------------------------------ */

static bool is_checked(const gp_run *run, const gp_taskrt *part)
{
    return part->stage && gp_pattern_applies(run, part->stage);
}

static bool take_memory(gp_run *run, checked *c, gp_errs *errs)
{
    gp_pattern *pt = &c->pattern;
    c->copy = run->dev->backend->alloc(run->dev, false, pt->n * pt->size, errs);
    if (!c->copy)
        return false;
    if (c->part->order >= 0)
        return true;
    if (!(pt->same = malloc((pt->n + 7) / 8)))
        return gp_fail(errs, GP_E_RESOURCE, c->part->stage->at, "stage '%s': no memory", c->part->stage->name);
    memset(pt->same, 0xff, (pt->n + 7) / 8);
    return true;
}

bool gp_unwritten_init(gp_actorrt *p, gp_errs *errs)
{
    gp_run *run = p->run;
    gp_segmentrt *s = p->seg;
    int n = 0;
    if (run->options.no_kernels || run->options.no_copies)
        return true;
    for (int i = 0; i < s->nparts; i++)
        n += is_checked(run, &s->part[i]) ? s->part[i].stage->nout : 0;
    if (!n)
        return true;
    checked *of = GP_NEW(&run->arena, checked, n);
    gp_unwritten *u = GP_NEW(&run->arena, gp_unwritten, 1);
    *u = (gp_unwritten){ .of = of };
    s->unwritten = u;
    atomic_store(&s->first, GP_FIRST_DUE);
    gp_loc was = errs->at;
    for (int i = 0; i < s->nparts; i++)
        for (int o = 0; is_checked(run, &s->part[i]) && o < s->part[i].stage->nout; o++) {
            checked *c = &u->of[u->n++];
            *c = (checked){ .part = &s->part[i], .out = o, .asks = true,
                            .pattern = gp_pattern_of(run, s->part[i].stage, o, true) };
            errs->at = c->part->stage->at;
            if (!take_memory(run, c, errs))
                return false;
        }
    errs->at = was;
    return true;
}

void gp_unwritten_fini(gp_actorrt *p)
{
    gp_unwritten *u = p->seg->unwritten;
    for (int i = 0; u && i < u->n; i++) {
        if (u->of[i].copy)
            p->run->dev->backend->free(p->run->dev, false, u->of[i].copy,
                                       u->of[i].pattern.n * u->of[i].pattern.size);
        free(u->of[i].pattern.same);
    }
}

/* ---- in the launch --------------------------------------------------- */

/* Copies the samples to a frame or, `back`, from it. */
static bool copy_samples(gp_rec *r, const checked *c, const gp_view *out, bool back)
{
    const gp_pattern *pt = &c->pattern;
    for (int i = 0; i < pt->nsamples; i++) {
        const gp_sample *s = &pt->sample[i];
        char *there = (char *)out->data + s->from * pt->size, *here = c->copy + s->at * pt->size;
        if (!r->ops->copy(r, back ? here : there, back ? there : here, s->n * pt->size))
            return false;
    }
    return true;
}

bool gp_unwritten_fill(gp_rec *r, gp_unwritten *u, const gp_taskrt *part, const gp_view *out)
{
    for (int i = 0; i < u->n; i++) {
        checked *c = &u->of[i];
        if (c->part != part || !c->asks)
            continue;
        gp_pattern_put(&c->pattern, c->copy);
        if (!copy_samples(r, c, &out[c->out], false))
            return false;
    }
    return true;
}

bool gp_unwritten_fetch(gp_rec *r, gp_unwritten *u, const gp_taskrt *part, const gp_view *out)
{
    for (int i = 0; i < u->n; i++)
        if (u->of[i].part == part && u->of[i].asks && !copy_samples(r, &u->of[i], &out[u->of[i].out], true))
            return false;
    return true;
}

bool gp_unwritten_asks(const gp_unwritten *u, const gp_taskrt *part)
{
    for (int i = 0; i < u->n; i++)
        if (u->of[i].part == part && u->of[i].asks)
            return true;
    return false;
}

/* ---- when it is done ------------------------------------------------- */

int gp_unwritten_look(gp_unwritten *u, uint64_t f, gp_errs *errs)
{
    int sure = 1;
    for (int i = 0; i < u->n; i++) {
        checked *c = &u->of[i];
        int r = c->asks ? gp_pattern_look(&c->pattern, c->copy, c->pattern.type->dim[0]) : 1;
        if (r < 0) {
            gp_pattern_fail(&c->pattern, f, "", "Write them all (does the grid reach them?)", errs);
            return -1;
        }
        c->asks = !r;
        sure = r ? sure : 0;
    }
    return sure;
}
