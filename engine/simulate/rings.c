/* rings.c - which firings may begin, as ring.c says of slots and frames; and what is so when some are done. */
#include <math.h>
#include "simulate/model.h"

static uint64_t firings_ready(const actor *p, const ring *r)
{
    return p->regroup ? gp_firings_ready(p->regroup, r->made) : r->made;
}

static uint64_t firings_with_room(const actor *p, const ring *r)
{
    uint64_t used = UINT64_MAX;
    for (int i = 0; i < r->ring->nconsumers; i++)
        used = r->reader[i].used < used ? r->reader[i].used : used;
    if (!r->ring->nconsumers)
        return UINT64_MAX / 2;
    uint64_t frames = used + (uint64_t)r->ring->depth;
    const gp_regroup *g = p->regroup;
    if (g && g->every > 1)
        return g->every == INT64_MAX ? UINT64_MAX / 2 : frames * (uint64_t)g->every + (uint64_t)g->every - 1;
    return g ? frames / (uint64_t)g->make : frames;
}

static bool is_over(const simulation *x, const ring *r)
{
    const actor *p = &x->actor[r->producer];
    return p->head >= p->total;
}

/* The firings that may begin up to now; *why there are no more. */
uint64_t gp_model_able(const simulation *x, const actor *p, reason *why)
{
    uint64_t able = p->total;
    *why = FOR_NOTHING;
    for (int i = 0; i < p->nin && able > p->next; i++) {
        const ring *r = &x->ring[p->in[i].ring];
        uint64_t k = firings_ready(p, r);
        if (k < able && !is_over(x, r))
            able = k, *why = FOR_INPUT;
    }
    for (int i = 0; i < p->nout && able > p->next; i++) {
        uint64_t k = firings_with_room(p, &x->ring[p->out[i]]);
        if (k < able)
            able = k, *why = FOR_OUTPUT;
    }
    return able;
}

/* Since when the frames of its firing k, the oldest of them, are under way. */
since gp_model_since(const simulation *x, const actor *p, uint64_t k)
{
    since s = { .born = INFINITY };
    for (int i = 0; i < p->nin; i++) {
        const ring *r = &x->ring[p->in[i].ring];
        uint64_t f = p->regroup ? gp_firing_from(p->regroup, k) : k;
        const since *in = &r->since[f % (uint64_t)r->ring->depth];
        if (f < r->made && !r->carried && in->born < s.born)
            s = *in;
    }
    if (!(s.born < INFINITY))
        s.born = x->now;
    return s;
}

/* With `latency`: a frame has ended, or is launched again. */
void gp_model_tell_launcher(simulation *x, const since *s, double end)
{
    if (s->due > 0)
        gp_timely_ended(x->actor[s->by].timely, s->size, (int64_t)(end - s->due));
}

static void add_to_line(simulation *x, uint64_t firing)
{
    line *l = &x->line;
    if (l->n < 1)
        l->start = x->now;
    l->end = x->now;
    double t = x->now - l->start, k = (double)(firing - l->from);
    l->n++, l->t += t, l->k += k, l->tt += t * t, l->tk += t * k;
}

/* Firings [first, first + n) are done, and all before them. */
void gp_model_publish(simulation *x, int a, uint64_t first, int n)
{
    actor *p = &x->actor[a];
    uint64_t end = first + (uint64_t)n;
    for (int i = 0; i < p->nout; i++) {
        ring *r = &x->ring[p->out[i]];
        for (uint64_t k = first; k < end; k++) {
            since s = gp_model_since(x, p, k);
            if (p->timely)             /* it is the launch that was retired last */
                s.due = flight_of(p, p->retired - 1)->due, s.by = a, s.size = size_of(n);
            for (uint64_t f = made_by(p, k), to = made_by(p, k + 1); f < to; f++)
                r->since[f % (uint64_t)r->ring->depth] = s;
        }
        uint64_t made = made_by(p, end);
        r->put += (double)(made - r->made) * x->now;
        r->made = made;
    }
    for (uint64_t k = first; !p->nout && k < end; k++) {
        since s = gp_model_since(x, p, k);
        gp_hist_add(&x->out->report->latency, (int64_t)(x->now - s.born), 1);
        x->late += x->now - s.born > (double)x->g->latency_ns;
        gp_model_tell_launcher(x, &s, x->now);
    }
    for (int i = 0; i < p->nin; i++) {
        reader *r = &x->ring[p->in[i].ring].reader[p->in[i].reader];
        uint64_t used = used_by(p, end);
        r->got += (double)(used - r->used) * x->now;
        r->used = used;
    }
    p->head = end;
    for (uint64_t k = first; k < end && a == x->last; k++)
        if (k >= x->line.from && k < x->line.to)
            add_to_line(x, k);
    if (end >= p->total)
        p->report->end_ns = (int64_t)x->now, x->sinks -= !p->nout;
    for (int i = 0; i < p->nnear && !p->lends; i++)    /* who lends tells them one after the other */
        look_at(x, p->near[i]);
}
