/* unwritten.c - does a device stage write all of its outputs?
 *
 * A slot of a ring holds what an earlier frame left there, so that an element which a stage does not write
 * is silently some other frame's. Of a stage that says that it writes all (gp_shape.writes_all), the first
 * frame is launched alone: its outputs are filled with a pattern before, and copied to the host behind the stage. As
 * long as pattern.c is not sure, the stage alone computes the frame again over another pattern. A stage whose frames
 * take turns, or which uses a state, runs once: of it the next frames are looked at. An output whose frames differ in shape is
 * looked at in the first few shapes, as a kernel that confuses its axes writes all of a square, and whenever it is
 * larger than before, as there may be too few threads.
 *
 * Of a loop all that the stages in it make is looked at, where its last iteration leaves it. */
#include <stdlib.h>
#include "compile/loop.h"
#include "run/pattern.h"
#include "run/segment.h"

enum { SHAPES = 3 };           /* of an output whose frames differ: so many are looked at */

/* One output. */
typedef struct checked {
    const gp_taskrt *part;
    int out;                   /* of the stage; -1: */
    size_t at;                 /* in its scratch memory */
    size_t other;              /* ... its other place there, which may be copied to this one; 0: it has none */
    gp_pattern pattern;
    char *copy;                /* pinned host memory for its samples */
    gp_type seen[SHAPES];      /* shapes that have been looked at, */
    int shapes;
    int64_t most;              /* ... and the elements of the largest of them */
    bool asks;                 /* it has to be looked at in some frame, and */
    bool now;                  /* ... is, in the launch that is under way */
} checked;


struct gp_unwritten { checked *of; int n; };

/* ---- setting up ------------------------------------------------------ */

static bool is_checked(const gp_run *run, const gp_taskrt *part)
{
    return part->stage && gp_pattern_applies(run, part->stage);
}

/* The outputs of a part, into `to` if it is not NULL. How many are there? */
static int list(const gp_graph *g, const gp_taskrt *part, checked *to)
{
    const gp_loop *l = gp_stage_loop(part->stage);
    const gp_graph *in = l ? l->graph : g;
    int n = 0;
    for (int i = 0; i < (l ? in->nstages : 1); i++) {
        const gp_stage *st = l ? &in->stage[i] : part->stage;
        for (int o = 0; st->writes_all && !st->zero && o < st->nout; o++) {
            if (in->buffer[st->out[o]].state)
                continue;
            const gp_loop_buffer *b = l ? &l->buffer[st->out[o]] : NULL;
            if (to)
                to[n] = (checked){ .part = part, .out = b ? b->out : o, .at = b ? b->at[0] : 0,
                                   .other = b && b->carried ? b->at[1] : 0, .asks = true,
                                   .pattern = gp_pattern_of(st, o, &in->buffer[st->out[o]].type, true) };
            n++;
        }
    }
    return n;
}

static bool take_memory(gp_run *run, checked *c, gp_errs *errs)
{
    gp_pattern *pt = &c->pattern;
    c->copy = run->dev[0]->backend->alloc(run->dev[0], GP_MEMORY_PINNED, pt->n * pt->size, errs);
    if (!c->copy)
        return false;
    pt->frames = c->part->order >= 0 || c->part->stage->states;
    if (!(pt->same = malloc((pt->n + 7) / 8)))
        return gp_fail(errs, GP_E_RESOURCE, c->part->stage->at, "stage '%s': no memory", c->part->stage->name);
    return true;
}

bool gp_unwritten_init(gp_actorrt *p, gp_errs *errs)
{
    gp_run *run = p->run;
    gp_segmentrt *s = p->seg;
    int n = 0;
    for (int i = 0; i < s->nparts; i++)
        n += is_checked(run, &s->part[i]) ? list(run->graph, &s->part[i], NULL) : 0;
    if (!n)
        return true;
    checked *of = GP_NEW(&run->arena, checked, n);
    gp_unwritten *u = GP_NEW(&run->arena, gp_unwritten, 1);
    *u = (gp_unwritten){ .of = of };
    s->unwritten = u;
    atomic_store(&s->first, GP_FIRST_DUE);
    gp_loc was = errs->at;
    for (int i = 0; i < s->nparts; i++) {
        checked *first = &of[u->n];
        n = is_checked(run, &s->part[i]) ? list(run->graph, &s->part[i], first) : 0;
        for (int k = 0; k < n; k++, u->n++) {
            errs->at = first[k].pattern.stage->at;
            if (!take_memory(run, &first[k], errs)) {
                u->n++;
                return false;
            }
        }
    }
    errs->at = was;
    return true;
}

void gp_unwritten_fini(gp_actorrt *p)
{
    gp_unwritten *u = p->seg->unwritten;
    for (int i = 0; u && i < u->n; i++) {
        if (u->of[i].copy)
            p->run->dev[0]->backend->free(p->run->dev[0], GP_MEMORY_PINNED, u->of[i].copy,
                                       u->of[i].pattern.n * u->of[i].pattern.size);
        free(u->of[i].pattern.same);
    }
}

/* ---- in the launch --------------------------------------------------- */

static char *data_of(const checked *c, const gp_dcall *call)
{
    return c->out >= 0 ? call->out[c->out].data : (char *)call->scratch + c->at;
}

/* Copies the samples to a frame or, `back`, from it. */
static bool copy_samples(gp_rec *r, const checked *c, char *data, bool back)
{
    const gp_pattern *pt = &c->pattern;
    for (int i = 0; i < pt->nsamples; i++) {
        const gp_sample *s = &pt->sample[i];
        char *there = data + s->from * pt->size, *here = c->copy + s->at * pt->size;
        if (!r->ops->copy(r, back ? here : there, back ? there : here, s->n * pt->size))
            return false;
    }
    return true;
}

static bool differs(const gp_actorrt *p, const checked *c)
{
    return c->out >= 0 && p->run->graph->buffer[c->part->stage->out[c->out]].varies;
}

/* Has the stage to write all of it in this launch, in a shape that was not looked at? Where a frame is not whole, and
 * its outputs do not differ in shape, the engine clears what a smaller frame leaves. */
static bool is_due(const gp_actorrt *p, const checked *c)
{
    const gp_segmentrt *s = p->seg;
    const gp_stage *st = c->part->stage;
    bool whole = true;
    if (!c->asks || gp_frame_stage_hole(s, st) || gp_frame_stage_is_empty(s, c->part))
        return false;
    for (int i = 0; i < st->nin; i++)
        whole &= st->in[i] < 0 || gp_type_same(&s->type[st->in[i]], &p->run->graph->buffer[st->in[i]].type);
    if (!differs(p, c))
        return whole;
    const gp_type *is = &s->type[st->out[c->out]];
    bool seen = c->shapes == SHAPES;
    for (int i = 0; i < c->shapes; i++)
        seen |= gp_type_same(is, &c->seen[i]);
    return !seen || gp_count(is) > c->most;
}

bool gp_unwritten_due(const gp_actorrt *p)
{
    const gp_unwritten *u = p->seg->unwritten;
    for (int i = 0; u && i < u->n; i++)
        if (is_due(p, &u->of[i]))
            return true;
    return false;
}

void gp_unwritten_begin(gp_unwritten *u)
{
    for (int i = 0; i < u->n; i++)
        u->of[i].now = false;
}

static const gp_type *type_of(const gp_actorrt *p, const checked *c)
{
    return c->out >= 0 ? &p->seg->type[c->part->stage->out[c->out]] : c->pattern.type;
}

bool gp_unwritten_fill(gp_rec *r, const gp_actorrt *p, const gp_taskrt *part, const gp_dcall *call)
{
    gp_unwritten *u = p->seg->unwritten;
    for (int i = 0; i < u->n; i++) {
        checked *c = &u->of[i];
        if (c->part != part || !(c->now = is_due(p, c)))
            continue;
        gp_pattern *pt = &c->pattern;
        if (!pt->turn || !gp_type_same(&pt->is, type_of(p, c)))
            gp_pattern_begin(pt);
        gp_pattern_put(pt, c->copy);
        if (!copy_samples(r, c, data_of(c, call), false)
            || (c->other && !copy_samples(r, c, (char *)call->scratch + c->other, false)))
            return false;
    }
    return true;
}

bool gp_unwritten_fetch(gp_rec *r, gp_unwritten *u, const gp_taskrt *part, const gp_dcall *call)
{
    for (int i = 0; i < u->n; i++)
        if (u->of[i].part == part && u->of[i].now && !copy_samples(r, &u->of[i], data_of(&u->of[i], call), true))
            return false;
    return true;
}

bool gp_unwritten_asks(const gp_unwritten *u, const gp_taskrt *part)
{
    for (int i = 0; i < u->n; i++)
        if (u->of[i].part == part && u->of[i].now)
            return true;
    return false;
}

/* ---- when it is done ------------------------------------------------- */

int gp_unwritten_look(const gp_actorrt *p, uint64_t f, gp_errs *errs)
{
    gp_unwritten *u = p->seg->unwritten;
    int sure = 1;
    for (int i = 0; i < u->n; i++) {
        checked *c = &u->of[i];
        if (!c->now)
            continue;
        gp_pattern *pt = &c->pattern;
        const gp_type *is = type_of(p, c);
        int r = gp_pattern_look(pt, c->copy, is);
        if (r < 0) {
            gp_pattern_fail(pt, gp_actor_number(p, f), "", "Write them all (are there enough threads?)", errs);
            return -1;
        }
        if (!r && !pt->frames) {
            sure = 0;
            continue;
        }
        c->now = false;
        if (!r)
            continue;                  /* the next frame is looked at, too */
        pt->turn = 0;
        if (c->shapes < SHAPES)
            c->seen[c->shapes++] = *is;
        c->most = gp_count(is) > c->most ? gp_count(is) : c->most;
        c->asks = differs(p, c) && (c->shapes < SHAPES || c->most < gp_count(pt->type));
    }
    return sure;
}

bool gp_unwritten_goes_on(const gp_unwritten *u)
{
    for (int i = 0; i < u->n; i++)
        if (u->of[i].pattern.frames && u->of[i].pattern.turn)
            return true;
    return false;
}
