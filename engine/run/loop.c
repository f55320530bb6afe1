/* loop.c - the kind `loop`: device stages that are repeated within one launch.
 *
 * Its body is a graph of its own (compile/loop.h). record() records the body's stages again and again, in order, over
 * the loop's slots and scratch memory. A buffer that is carried is double-buffered: it has two places, one of which is
 * read while the other is written; the last iteration writes place 0, which is the output's slot if the buffer is an
 * output. As many iterations as the recorder has room for are recorded one by one; of more, a few, which the device
 * repeats. Both do the same in the same order. Where the only stage's kind does several iterations in a launch
 * (compile/steps.h), one of these is a launch. */
#include <stdlib.h>
#include "compile/loop.h"
#include "compile/plan.h"
#include "device/backend.h"
#include "run/segment.h"

/* A stage of the body: what open() was given, which lives as long as it is open, and made. */
typedef struct gp_inner {
    gp_type in[GP_MAXPORT], out[GP_MAXPORT];
    void *state;
} gp_inner;

typedef struct gp_opened {
    const gp_loop *l;
    int n;                     /* stages that open() was called for */
    gp_inner stage[];
} gp_opened;

static const gp_loop *loop_of(const void *opts)
{
    return ((const gp_loop_opts *)opts)->loop;
}

/* ---- opening --------------------------------------------------------- */

static bool open_stage(const gp_open *o, const gp_loop *l, const gp_stage *st, gp_inner *x)
{
    for (int p = 0; p < st->nin; p++)
        if (st->in[p] >= 0)
            x->in[p] = l->graph->buffer[st->in[p]].type;
    for (int p = 0; p < st->nout; p++)
        if (st->out[p] >= 0)
            x->out[p] = l->graph->buffer[st->out[p]].type;
    gp_open inner = *o;
    inner.opts = st->opts, inner.user = st->kind->user, inner.name = st->name, inner.at = st->at;
    inner.nin = st->nin, inner.nout = st->nout, inner.in = x->in, inner.out = x->out;
    inner.in_name = st->in_name, inner.out_name = st->out_name;
    return st->kind->open(&inner, &x->state);
}

static bool loop_open(const gp_open *o, void **state)
{
    const gp_loop *l = loop_of(o->opts);
    gp_opened *s = calloc(1, sizeof *s + sizeof *s->stage * (size_t)l->graph->nstages);
    gp_loc was = o->errs->at;
    if (!(*state = s))
        return gp_fail(o->errs, GP_E_RESOURCE, o->at, "out of memory");
    for (s->l = l; s->n < l->graph->nstages; s->n++) {
        const gp_stage *st = &l->graph->stage[s->n];
        o->errs->at = st->at;
        if (st->kind->open && !open_stage(o, l, st, &s->stage[s->n])) {
            s->n++;
            return false;
        }
    }
    o->errs->at = was;
    return true;
}

static void loop_close(void *state)
{
    gp_opened *s = state;
    for (int i = 0; s && i < s->n; i++)
        if (s->l->graph->stage[i].kind->close)
            s->l->graph->stage[i].kind->close(s->stage[i].state);
    free(s);
}

static bool loop_table(const gp_table_call *t)
{
    const gp_loop *l = loop_of(t->opts);
    for (int i = 0; i < l->graph->nstages; i++) {
        const gp_stage *st = &l->graph->stage[i];
        gp_type in[GP_MAXPORT] = { { 0 } };
        for (int p = 0; p < st->nin; p++)
            if (st->in[p] >= 0)
                in[p] = l->graph->buffer[st->in[p]].type;
        gp_table_call inner = { .opts = st->opts, .user = st->kind->user, .nin = st->nin, .in = in,
                                .data = (char *)t->data + l->table[i], .bytes = st->table };
        if (st->table && !st->kind->table(&inner))
            return false;
    }
    return true;
}

/* ---- one iteration --------------------------------------------------- */

/* What is being recorded: iterations of the frames of one call. */
typedef struct gp_looping {
    gp_dcall *c;
    const gp_loop *l;
    const gp_type *type;       /* per buffer of the body */
    bool first;                /* before the first iteration: what carries is an input of the loop yet */
    int64_t each;              /* iterations in a turn of the device */
    int64_t steps;             /* iterations of the launches that are recorded; 0: the kind knows of none */
} gp_looping;

static gp_view view_of(const gp_looping *g, int buffer, int place)
{
    const gp_loop_buffer *b = &g->l->buffer[buffer];
    gp_view v = { .data = (char *)g->c->scratch + b->at[place], .stride = g->c->scratch_stride };
    if (b->in >= 0)
        v = g->c->in[b->in];
    else if (b->out >= 0 && !place)
        v = g->c->out[b->out];
    v.type = g->type[buffer];
    v.rows = g->l->graph->buffer[buffer].type.dim[0];
    v.fresh = false;
    return v;
}

/* Calls record() of one stage of the body, or makes what it makes of inputs without rows. */
static bool record_inner(gp_looping *g, int stage, const gp_view *in, const gp_view *out, bool empty)
{
    enum { MOST_SPANS = 2 * GP_MAXPORT + 2 };
    const gp_dcall *c = g->c;
    const gp_graph *body = g->l->graph;
    const gp_stage *st = &body->stage[stage];
    gp_opened *s = c->state;
    gp_dcall inner = { .opts = st->opts, .user = st->kind->user, .state = s->stage[stage].state, .n = c->n, .in = in, .out = out,
                       .scratch = (char *)c->scratch + g->l->scratch[stage], .scratch_stride = c->scratch_stride,
                       .table = st->table ? (const char *)c->table + g->l->table[stage] : NULL,
                       .scope = &body->scope, .name = st->name, .rec = c->rec, .errs = c->errs, .slot = c->slot,
                       .steps = g->steps };
    gp_span span[MOST_SPANS];
    int n = 0;
    for (int p = 0; p < st->nin; p++)
        if (st->in[p] >= 0)
            span[n++] = gp_span_of(st->in_name[p], &in[p], &body->buffer[st->in[p]].type, in[p].stride ? c->n : 1, false);
    for (int p = 0; p < st->nout; p++)
        span[n++] = gp_span_of(st->out_name[p], &out[p], &body->buffer[st->out[p]].type, c->n, true);
    if (st->table)
        span[n++] = (gp_span){ .name = "its table", .data = (char *)inner.table, .bytes = st->table, .room = st->table };
    if (st->scratch) {
        size_t bytes = (size_t)(c->n - 1) * c->scratch_stride + st->scratch;
        span[n++] = (gp_span){ .name = "its scratch memory", .data = inner.scratch, .bytes = bytes, .room = bytes,
                               .output = true };
    }
    c->rec->span = span, c->rec->nspans = n;
    if (empty)
        return gp_fill_of_none(&inner, st, out);
    for (int p = 0; p < st->nout && st->zero; p++)
        for (int j = 0; j < c->n; j++)
            if (!gp_fill(&inner, (char *)out[p].data + (size_t)j * out[p].stride, 0, gp_bytes(&out[p].type)))
                return false;
    int before = c->errs->failed;
    return st->kind->record(&inner)
        || (c->errs->failed == before
            ? gp_fail(c->errs, GP_E_RUN, st->at, "stage '%s' cannot queue an iteration and does not say why", st->name) : false);
}

/* In a launch of each stage: what carries is read from place `from`, and what is carried written to place `to`. */
static bool record_iteration(gp_looping *g, int from, int to)
{
    const gp_graph *body = g->l->graph;
    for (int i = 0; i < body->nstages; i++) {
        const gp_stage *st = &body->stage[i];
        gp_view in[GP_MAXPORT] = { { 0 } }, out[GP_MAXPORT] = { { 0 } };
        bool empty = false;
        for (int p = 0; p < st->nin; p++) {
            const gp_loop_buffer *b = st->in[p] < 0 ? NULL : &g->l->buffer[st->in[p]];
            if (!b)
                continue;
            in[p] = b->carries >= 0 && !g->first ? view_of(g, b->carries, from) : view_of(g, st->in[p], b->carried ? to : 0);
            empty |= !in[p].type.dim[0];
        }
        for (int p = 0; p < st->nout; p++)
            out[p] = view_of(g, st->out[p], g->l->buffer[st->out[p]].carried ? to : 0);
        g->c->errs->at = st->at;
        if (!record_inner(g, i, in, out, empty))
            return false;
    }
    g->first = false;
    return true;
}

/* From place 1 to place 0, of all that is carried. */
static bool record_copies(gp_looping *g)
{
    for (int i = 0; i < g->l->graph->nbuffers; i++) {
        if (!g->l->buffer[i].carried)
            continue;
        gp_view from = view_of(g, i, 1), to = view_of(g, i, 0);
        for (int j = 0; j < g->c->n; j++)
            if (gp_bytes(&to.type)
                && !g->c->rec->ops->copy(g->c->rec, (char *)to.data + (size_t)j * to.stride,
                                         (const char *)from.data + (size_t)j * from.stride, gp_bytes(&to.type)))
                return false;
    }
    return true;
}

/* n iterations, by launches of about as many each; what is carried is in place 0 then, and before but for the first.
 * Where that is not so by an odd number of launches, it is copied. */
static bool record_iterations(gp_looping *g, int64_t n)
{
    int64_t launches = gp_loop_launches(g->l, n), least = n / launches, more = n % launches;
    int to = g->first ? (int)((launches - 1) & 1) : 1;
    for (int64_t i = 0; i < launches; i++, to = !to) {
        g->steps = g->l->steps > 1 ? least + (i < more) : 0;
        if (!record_iteration(g, !to, to))
            return false;
    }
    return to || record_copies(g);
}

/* ---- all iterations -------------------------------------------------- */

static bool record_turn(gp_rec *r, void *arg)
{
    gp_looping *g = arg;
    (void)r;
    return record_iterations(g, g->each);
}

/* `turns` turns of `each` iterations, which the device counts, while the flag is 0 if there is one. */
static bool repeat(gp_looping *g, int64_t turns, int64_t each)
{
    gp_repeat what = { .turns = turns, .counter = (char *)g->c->scratch + g->l->counter, .body = record_turn, .arg = g };
    if (g->l->flag >= 0)
        what.flag = view_of(g, g->l->flag, 0).data;
    g->each = each;
    return turns < 1 || each < 1 || g->c->rec->ops->repeat(g->c->rec, &what);
}

/* How many launches of all stages are recorded one by one. */
static int64_t room(const gp_looping *g)
{
    int64_t nodes = 0;
    for (int i = 0; i < g->l->graph->nstages; i++)
        nodes += 1 + (g->l->graph->stage[i].zero ? g->l->graph->stage[i].nout * g->c->n : 0);
    return g->c->rec->most / nodes;
}

/* Does no iteration compute anything, as none has rows? Then all do the same. */
static bool is_idle(const gp_looping *g)
{
    const gp_graph *body = g->l->graph;
    bool idle = true;
    for (int i = 0; i < body->nstages; i++) {
        bool empty = false;
        for (int p = 0; p < body->stage[i].nin; p++)
            empty |= body->stage[i].in[p] >= 0 && !g->type[body->stage[i].in[p]].dim[0];
        idle &= empty;
    }
    return idle;
}

static bool record_all(gp_looping *g)
{
    enum { TURN = 100 };               /* launches: what a turn itself costs is little beside them */
    int64_t times = is_idle(g) ? 1 : g->l->times, every = g->l->every, one_by_one = room(g);
    if (g->l->flag >= 0 && times > 1) {
        int64_t first = times < every ? times : every;
        return record_iterations(g, first) && repeat(g, (times - first) / every, every)
            && repeat(g, times > first, (times - first) % every);
    }
    if (gp_loop_launches(g->l, times) <= one_by_one)
        return record_iterations(g, times);
    int64_t each = one_by_one / 2 < TURN ? one_by_one / 4 * 2 : TURN;
    each = (each < 2 ? 2 : each) * g->l->steps;
    int64_t first = times % each ? times % each : each;
    return record_iterations(g, first) && repeat(g, (times - first) / each, each);
}

static bool loop_record(gp_dcall *c)
{
    const gp_loop *l = loop_of(c->opts);
    const gp_span *span = c->rec->span;
    int nspans = c->rec->nspans;
    gp_loc was = c->errs->at;
    gp_type type[GP_LOOP_BUFFERS], in[GP_MAXPORT];
    gp_looping g = { .c = c, .l = l, .type = type, .first = true };
    bool whole = true;
    for (int i = 0; i < l->graph->nbuffers; i++) {
        type[i] = l->graph->buffer[i].type;
        if (l->buffer[i].in < 0)
            continue;
        in[l->buffer[i].in] = c->in[l->buffer[i].in].type;
        whole &= gp_type_same(&type[i], &in[l->buffer[i].in]);
    }
    bool ok = (whole || gp_loop_types(l, in, type, c->errs)) && record_all(&g);
    c->rec->span = span, c->rec->nspans = nspans;
    if (ok)
        c->errs->at = was;
    return ok;
}

/* ---- the kind -------------------------------------------------------- */

static const gp_port in[] = { { "*", GP_ACCEPT_ANY, .help = "frames, by the names that they have in the loop" }, { 0 } };
static const gp_port out[] = { { "*", GP_ACCEPT_ANY, .help = "what the last iteration made of these buffers of the loop" },
                               { 0 } };

static const gp_opt options[] = {
    { GP_INT(gp_loop_opts, times), .required = true, .min = 1, .max = 1e12, .help = "how many iterations, at most" },
    { GP_NODE(gp_loop_opts, stages), .required = true, .help = "device stages, the body: their buffers are the loop's own" },
    { GP_NODE(gp_loop_opts, carry), .help = "{INPUT: BUFFER}: in each iteration but the first the input is what the buffer "
                                            "was in the one before" },
    { GP_NODE(gp_loop_opts, until), .help = "BUFFER or {buffer: BUFFER, every: N}: an i32 [1], looked at after every N "
                                            "(1) iterations; the loop ends when it is not 0" },
    { GP_NODE(gp_loop_opts, buffers), .help = "dtype, shape or like of buffers of the loop" },
    { 0 }
};

const gp_kind gp_kind_loop = {
    GP_KIND("loop"), .field = "control flow",
    .help = "repeats device stages, many times in one launch",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(gp_loop_opts),
    .any_shape = true, .calls_library = true, .by_place = true, .in_place = true,
    .shape = gp_loop_shape, .open = loop_open, .close = loop_close, .table = loop_table, .record = loop_record,
};
