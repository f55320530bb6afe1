/* prologue.c - stages that read nothing but constants: each runs once, before frame 0, on the first device, and what it
 * makes is a constant.
 *
 * It is opened, runs on frames that are the constants themselves, and is closed again. */
#include <stdlib.h>
#include "run/frame.h"
#include "run/pattern.h"
#include "run/setup.h"

typedef struct gp_prologue_stage {
    gp_run *run;
    const gp_stage *st;
    gp_type in[GP_MAXPORT], out[GP_MAXPORT];
    void *state, *table, *scratch;
    gp_pattern pattern[GP_MAXPORT];    /* of outputs that have to be written in full; else n is 0 */
    char *copy[GP_MAXPORT];
} gp_prologue_stage;

static gp_view view_of(const gp_run *run, int buffer)
{
    const gp_type *t = &run->graph->buffer[buffer].type;
    int extra = run->plan->konst[1][buffer];
    extra = extra < 0 ? run->plan->konst[0][buffer] : extra;
    return (gp_view){ .data = run->extra[extra], .type = *t, .rows = t->dim[0] };
}

static gp_span span_of(const char *name, void *data, size_t bytes, gp_dtype dtype, bool output)
{
    return (gp_span){ .name = name, .data = data, .bytes = bytes, .room = bytes, .dtype = dtype, .output = output };
}

static bool record(gp_rec *r, void *arg)
{
    enum { MOST_SPANS = 2 * GP_MAXPORT + 2 };
    gp_prologue_stage *o = arg;
    const gp_stage *st = o->st;
    gp_view in[GP_MAXPORT] = { { 0 } }, out[GP_MAXPORT] = { { 0 } };
    gp_span span[MOST_SPANS];
    int n = 0;
    if (!r->ops->item(r, 0, NULL, 0))
        return false;
    gp_dcall c = { .opts = st->opts, .user = st->kind->user, .state = o->state, .n = 1, .in = in, .out = out,
                   .table = o->table, .scratch = o->scratch, .scratch_stride = st->scratch,
                   .scope = &o->run->graph->scope, .name = st->name, .rec = r, .errs = r->errs };
    for (int p = 0; p < st->nin; p++)
        if (st->in[p] >= 0) {
            in[p] = view_of(o->run, st->in[p]);
            span[n++] = span_of(st->in_name[p], in[p].data, gp_bytes(&in[p].type), in[p].type.dtype, false);
        }
    for (int p = 0; p < st->nout; p++) {
        out[p] = view_of(o->run, st->out[p]);
        out[p].fresh = true;
        if (o->run->options.poison && !st->zero && !o->pattern[p].n
            && !gp_fill(&c, out[p].data, gp_poison(out[p].type.dtype), gp_bytes(&out[p].type)))
            return false;
        span[n++] = span_of(st->out_name[p], out[p].data, gp_bytes(&out[p].type), out[p].type.dtype, true);
    }
    if (st->table)
        span[n++] = span_of("its table", o->table, st->table, GP_NO_DTYPE, false);
    if (st->scratch)
        span[n++] = span_of("its scratch memory", o->scratch, st->scratch, GP_NO_DTYPE, true);
    r->span = span, r->nspans = n, r->check_kernels = o->run->options.check_kernels;
    bool ok = st->kind->record(&c);
    r->span = NULL, r->nspans = 0, r->check_kernels = false;
    return ok;
}

static bool open_stage(gp_prologue_stage *o, gp_errs *errs)
{
    const gp_stage *st = o->st;
    const gp_graph *g = o->run->graph;
    for (int p = 0; p < st->nin; p++)
        if (st->in[p] >= 0)
            o->in[p] = g->buffer[st->in[p]].type;
    for (int p = 0; p < st->nout; p++)
        o->out[p] = g->buffer[st->out[p]].type;
    gp_open open = { .opts = st->opts, .user = st->kind->user, .name = st->name, .at = st->at, .nin = st->nin,
                     .nout = st->nout, .in = o->in, .out = o->out, .in_name = st->in_name, .out_name = st->out_name,
                     .workers = 1, .scope = &g->scope, .dev = o->run->dev[0], .errs = errs,
                     .files = o->run->files, .slots = 1 };
    return !st->kind->open || st->kind->open(&open, &o->state);
}

static bool take(gp_prologue_stage *o, gp_errs *errs)
{
    const gp_stage *st = o->st;
    return (!st->table || (o->table = gp_memory_table(o->run, st, errs)))
        && (!st->scratch || (o->scratch = gp_memory_device(o->run, st->scratch, errs)));
}

/* ---- is all of it written? ------------------------------------------------- */

static bool begin_patterns(gp_prologue_stage *o, gp_errs *errs)
{
    const gp_stage *st = o->st;
    for (int p = 0; p < st->nout && st->writes_all && !st->zero; p++) {
        gp_pattern *pt = &o->pattern[p];
        *pt = gp_pattern_of(st, p, &o->out[p], true);
        o->copy[p] = malloc(pt->n * pt->size + 1);
        pt->same = malloc((pt->n + 7) / 8 + 1);
        if (!o->copy[p] || !pt->same)
            return gp_fail(errs, GP_E_RESOURCE, st->at, "stage '%s': no memory", st->name);
        gp_pattern_begin(pt);
    }
    return true;
}

static bool copy_samples(const gp_prologue_stage *o, int port, bool back, gp_errs *errs)
{
    const gp_pattern *pt = &o->pattern[port];
    char *data = view_of(o->run, o->st->out[port]).data;
    for (int i = 0; i < pt->nsamples; i++) {
        const gp_sample *s = &pt->sample[i];
        char *there = data + s->from * pt->size, *here = o->copy[port] + s->at * pt->size;
        if (!gp_memory_copy(o->run->dev[0], back ? here : there, back ? there : here, s->n * pt->size, errs))
            return false;
    }
    return true;
}

static bool put_patterns(gp_prologue_stage *o, gp_errs *errs)
{
    bool ok = true;
    for (int p = 0; p < o->st->nout && ok; p++)
        if (o->pattern[p].n)
            gp_pattern_put(&o->pattern[p], o->copy[p]), ok = copy_samples(o, p, false, errs);
    return ok;
}

/* 1: all outputs are written; 0: that is not sure yet; -1: they are not, or there was an error. */
static int look_at_patterns(gp_prologue_stage *o, gp_errs *errs)
{
    int sure = 1;
    for (int p = 0; p < o->st->nout; p++) {
        if (!o->pattern[p].n)
            continue;
        int is = copy_samples(o, p, true, errs) ? gp_pattern_look(&o->pattern[p], o->copy[p], &o->out[p]) : -1;
        if (is < 0 && !errs->failed)
            gp_pattern_fail(&o->pattern[p], 0, "", "Write them all (are there enough threads?)", errs);
        if (is < 0)
            return -1;
        sure = is ? sure : 0;
    }
    return sure;
}

static void end_patterns(gp_prologue_stage *o)
{
    for (int p = 0; p < o->st->nout; p++)
        free(o->copy[p]), free(o->pattern[p].same);
}

/* ---- one stage ----------------------------------------------------------------- */

/* Again, over other patterns, until it is sure that all of the outputs is written. */
static bool compute(gp_prologue_stage *o, gp_errs *errs)
{
    gp_dev *dev = o->run->dev[0];
    const gp_backend *be = dev->backend;
    int sure = 0;
    while (!sure && !atomic_load(&o->run->level))
        sure = put_patterns(o, errs) && be->direct(dev, 0, record, o, errs)
            && be->wait(dev, 0, GP_SYNC_BLOCK, errs) == 1 ? look_at_patterns(o, errs) : -1;
    return sure > 0;
}

static bool run_stage(gp_prologue_stage *o, gp_errs *errs)
{
    const gp_stage *st = o->st;
    int before = errs->failed;
    bool ok = open_stage(o, errs) && take(o, errs) && begin_patterns(o, errs) && compute(o, errs);
    end_patterns(o);
    if (!ok && errs->failed == before && !atomic_load(&o->run->level))
        gp_fail(errs, GP_E_RUN, st->at, "stage '%s', which runs once, fails and does not say why", st->name);
    if (o->table)
        gp_memory_device_free(o->run, o->table, st->table);
    if (o->scratch)
        gp_memory_device_free(o->run, o->scratch, st->scratch);
    if (st->kind->close)
        st->kind->close(o->state);
    return ok;
}

bool gp_prologue_run(gp_run *run, gp_errs *errs)
{
    const gp_graph *g = run->graph;
    gp_loc was = errs->at;
    for (int i = 0; i < g->nprologue; i++) {
        gp_prologue_stage o = { .run = run, .st = &g->prologue[i] };
        errs->at = o.st->at;
        atomic_store(&run->opening, o.st);
        bool ok = !atomic_load(&run->level) && run_stage(&o, errs);
        atomic_store(&run->opening, NULL);
        atomic_fetch_add(&run->steps, 1);
        if (!ok)
            return false;
    }
    for (int b = 0; b < g->nbuffers; b++) {
        int host = run->plan->konst[0][b], device = run->plan->konst[1][b];
        errs->at = g->buffer[b].at;
        size_t bytes = gp_bytes(&g->buffer[b].type);
        if (g->buffer[b].maker.stage < 0 || device < 0)
            continue;
        if (host >= 0 && !gp_memory_copy(run->dev[0], run->extra[host], run->extra[device], bytes, errs))
            return false;
        gp_place on = run->plan->extra[device].place;
        for (int d = 1; d < on.index + on.lanes; d++)
            if (!gp_memory_copy(run->dev[d], gp_extra_on(run, device, d), run->extra[device], bytes, errs))
                return false;
    }
    errs->at = was;
    return true;
}
