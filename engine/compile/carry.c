/* carry.c - buffers that carry: frame k of `u: {carry: v}` is frame k - 1 of v, and its frame 0 is `init`.
 *
 * Such a buffer is made by a stage of its own, which copies. In firing k it takes frame k - 1 (gp_regroup with take 1
 * and back 1), so its first firing needs no frame. That is why a cycle with such a stage on it can start: the edge from
 * v closes the cycle, and the passes that go from stage to stage leave it out.
 *
 * A cycle that is all on the device is one segment, which its frames do not leave: there the copy is a part of the
 * launch of frame k, behind the stage that makes v in the launch of frame k - 1 (run/launch_body.c). */
#include <errno.h>
#include <string.h>
#include "base/num.h"
#include "compile/resolve.h"

static const gp_port in[] = {
    { "in", GP_ACCEPT_ANY, .help = "frames" },
    { "init", GP_ACCEPT_ANY, .optional = true, .help = "what is there before the first; else zeros" },
    { 0 }
};
static const gp_port out[] = { { "out", GP_ACCEPT_ANY, .help = "the frame before" }, { 0 } };

static bool shape(gp_shape *s)
{
    s->out[0] = s->in[0];
    return true;
}

static bool record(gp_dcall *c)
{
    return gp_copy(c, c->out[0].data, c->in[0].data, gp_bytes(&c->in[0].type));
}

/* In no registry: `buffers:` alone make such stages. */
const gp_kind gp_kind_carry = {
    GP_KIND("carry"), .help = "the frame before", .in = in, .out = out, .shape = shape, .record = record,
};

bool gp_is_carry(const gp_stage *st)
{
    return st->kind == &gp_kind_carry;
}

bool gp_task_is_nothing(const gp_plan *p, const gp_task *t)
{
    const gp_stage *st = &p->graph->stage[t->stage];
    return gp_stage_circles_back(st) && (p->ring[t->out[0]].before >= 0 || p->graph->buffer[st->out[0]].state);
}

int gp_task_passer(const gp_plan *p, int task)
{
    const gp_stage *st = &p->graph->stage[p->task[task].stage];
    for (int i = 0; i < p->ntasks && gp_stage_circles_back(st); i++)
        if (p->task[i].op == GP_TASK_STAGE && p->task[i].stage == st->last)
            return i;
    return task;
}

/* ---- what `buffers:` says ---------------------------------------------------------- */

static bool is_npy(const char *text)
{
    size_t n = strlen(text);
    return n > 4 && !strcmp(text + n - 4, ".npy");
}

/* 'init' is the name of a file or a number: of a text with variables, what these make of it. */
static bool read_init(gp_resolving *r, const gp_node *init, const char *name, gp_num *first, const char **path)
{
    bool of_vars = init->kind == GP_SCALAR && strstr(init->text, "${");
    const char *text = of_vars ? gp_read_text(&r->read, init) : init->text;
    if (!text)
        return false;
    if (is_npy(text))
        return (*path = gp_read_path(&r->read, init)) != NULL;
    if (!of_vars)
        return gp_read_num(&r->read, init, first);
    gp_errs quiet = { .n = 0 }, *errs = r->read.errs;
    gp_node n = *init;
    n.text = text, n.len = strlen(text), n.expr = NULL;
    r->read.errs = &quiet;
    bool ok = gp_read_num(&r->read, &n, first);
    r->read.errs = errs;
    return ok || AT(r, init->at, "'init' of buffer '%s' is '%s', which is neither a number nor a .npy file", name, text);
}

void gp_carry_read_init(gp_resolving *r, int buffer)
{
    const gp_node *map = r->buffer[buffer].node, *init = gp_node_get(map, "init"), *missing = gp_node_get(map, "missing");
    const char *name = r->buffer[buffer].b.name, *path = NULL;
    gp_num first = { .is_int = true };
    r->read.key = "init";
    bool broken = init && !read_init(r, init, name, &first, &path);
    if (missing && !path && !broken)
        AT(r, missing->at, "'missing' has no effect: 'init' of buffer '%s' is no file", name);
    r->read.key = "missing";
    if (missing && path) {
        gp_num instead;
        broken = !gp_read_num(&r->read, missing, &instead);
        if (!broken && gp_probe_get(r->probe, path, false)->file.error == ENOENT)
            r->buffer[buffer].b.missing = path, path = NULL, first = instead, init = missing;
    }
    r->buffer[buffer].init = -1;
    if (r->buffer[buffer].b.state && !path && !broken && first.is_int && !first.i)     /* zeros need no memory */
        return;
    gp_rbuf *b = gp_push_buffer(r, gp_format(r->arena, "%s.init", r->buffer[buffer].b.name),
                                init ? init->at : r->buffer[buffer].b.at);
    r->buffer[buffer].init = (int)(b - r->buffer);
    b->konst = true, b->b.depth = 1;
    b->b.value = first;
    b->b.path = path, b->broken = broken;
}

void gp_carry_read(gp_resolving *r, int buffer)
{
    static const char *const none[] = { "like", "const", "save", "save_every" };
    const gp_node *map = r->buffer[buffer].node, *carry = gp_node_get(map, "carry");
    const char *u = r->buffer[buffer].b.name;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (gp_node_get(map, none[i]))
            AT(r, gp_node_get(map, none[i])->at, "'%s' has no effect: buffer '%s' carries another, and has its type",
               none[i], u);
    r->read.stage = NULL, r->read.key = "carry";
    r->buffer[buffer].carry = gp_read_text(&r->read, carry);
    gp_carry_read_init(r, buffer);
}

/* ---- cycles ------------------------------------------------------------------------ */

/* The stage that makes what port p of `st` reads, or -1. */
static int maker(const gp_resolving *r, const gp_rstage *st, int p)
{
    return st->s.in[p] < 0 ? -1 : r->buffer[st->s.in[p]].b.producer.stage;
}

/* What a stage comes behind, in the same frame or the one before: the k-th of so many stages, -1: none. */
static int edges(const gp_rstage *st)
{
    return st->s.nin + st->s.nafter + 1;
}

static int edge(const gp_resolving *r, const gp_rstage *st, int k)
{
    bool state = gp_is_carry(&st->s) && st->s.states;
    if (!state && st->s.closes && st->s.cycle && !st->s.circles)       /* it is a ring like any other: see gp_carry_cycles */
        return -1;
    return k < st->s.nin ? maker(r, st, k) : k < st->s.nin + st->s.nafter ? st->s.after[k - st->s.nin] : state ? st->s.last : -1;
}

/* Lists `v` and all stages that it depends on, by whatever way, of which none is marked, and marks them. How many? */
static int mark_before(const gp_resolving *r, int v, bool *before, int *list)
{
    int n = 0;
    before[v] = true, list[n++] = v;
    for (int i = 0; i < n; i++) {
        const gp_rstage *st = &r->stage[list[i]];
        for (int k = 0; k < edges(st); k++) {
            int from = edge(r, st, k);
            if (from >= 0 && !before[from])
                before[from] = true, list[n++] = from;
        }
    }
    return n;
}

/* Marks those of the n stages `before` that depend on v, the first of them. */
static void mark_behind(const gp_resolving *r, int v, const int *before, int n, bool *behind)
{
    behind[v] = true;
    for (bool any = true; any;) {      /* again, as long as a frame leads to the next */
        any = false;
        for (int i = n - 1; i >= 0; i--) {
            int to = before[i];
            for (int k = 0; !behind[to] && k < edges(&r->stage[to]); k++) {
                int from = edge(r, &r->stage[to], k);
                if (from >= 0 && behind[from])
                    behind[to] = any = true;
            }
        }
    }
}

/* Is what carry stage v carries made by carry stages alone, round and round? */
static bool is_hollow(const gp_resolving *r, int v)
{
    int from = v;
    for (int i = 0; i <= r->nstages; i++) {
        from = r->stage[from].s.nin ? maker(r, &r->stage[from], 0) : -1;
        if (from < 0 || !gp_is_carry(&r->stage[from].s))
            return false;
    }
    return true;
}

void gp_carry_mark(gp_resolving *r)
{
    bool *before = GP_NEW(r->arena, bool, r->nstages);
    int *todo = GP_NEW(r->arena, int, r->nstages);
    for (int v = r->ngiven; v < r->nstages; v++) {
        gp_rstage *st = &r->stage[v];
        int from = gp_is_carry(&st->s) && st->s.nin ? maker(r, st, 0) : -1;
        if (from < 0)
            continue;
        if (is_hollow(r, v))
            st->broken = !AT(r, gp_node_get(st->node, "carry")->at, "buffer '%s' carries itself%s; name what a stage "
                             "makes", st->s.name, from == v ? "" : ", by way of others");
        if (!r->buffer[st->s.out[0]].b.state)
            st->s.last = from;
        int n = mark_before(r, st->s.last, before, todo);
        st->s.closes = before[v];
        while (n)
            before[todo[--n]] = false;
        if (!st->s.closes || st->broken)
            continue;
        st->next_carrier = r->buffer[st->s.in[0]].carrier;
        r->buffer[st->s.in[0]].carrier = v + 1;
    }
}

/* Do two that carry one buffer begin alike, and have the same for a hole? */
static bool agree(const gp_resolving *r, const gp_stage *a, const gp_stage *b)
{
    const gp_buffer *x = &r->buffer[a->in[1]].b, *y = &r->buffer[b->in[1]].b;
    return a->on_hole == b->on_hole && x->value.is_int == y->value.is_int && x->value.i == y->value.i
        && !memcmp(&x->value.f, &y->value.f, sizeof x->value.f)        /* 0 and -0 are two */
        && !x->path == !y->path && (!x->path || !strcmp(x->path, y->path));
}

/* Which cycles are in one segment: those of stages on the device that make a frame of each. There what is carried in
 * place of a frame lies in that frame's slot, so that all who carry it agree. A resident kernel has no order between
 * frames. */
static void find_segments(gp_resolving *r)
{
    bool *leaves = GP_NEW(r->arena, bool, 2 * r->nstages + 1);
    for (int v = 0; v < r->nstages; v++) {
        const gp_stage *s = &r->stage[v].s;
        if (s->closes && r->stage[v].next_carrier)
            leaves[s->cycle] |= !agree(r, s, &r->stage[r->stage[v].next_carrier - 1].s);
        leaves[s->cycle] |= r->graph->launch == GP_LAUNCH_PERSISTENT
                         || (!gp_is_carry(s) && (!s->device || s->regroups));
    }
    for (int v = 0; v < r->nstages; v++) {
        gp_stage *s = &r->stage[v].s;
        s->circles = s->cycle && !leaves[s->cycle];
        s->regroups = gp_is_carry(s) ? !s->circles : s->regroups;
    }
}

/* Is it a state whose cycle is not in one segment? */
static bool is_torn(const gp_rstage *st)
{
    return gp_is_carry(&st->s) && st->s.states && st->s.closes && !st->s.circles;
}

/* In order: all of a cycle have its number, which is above `from`. They are the stages that each of them depends on, by
 * whatever way. torn: cycles of such states alone. */
static bool number_cycles(gp_resolving *r, int from, bool torn)
{
    int n = r->nstages, *up = GP_NEW(r->arena, int, n), *todo = GP_NEW(r->arena, int, n);
    bool *before = GP_NEW(r->arena, bool, n), *behind = GP_NEW(r->arena, bool, n), any = false;
    for (int v = 0; v < n; v++)
        up[v] = v;
    for (int c = r->ngiven; c < n; c++) {
        if (!r->stage[c].s.closes || gp_root(up, c) != c || (torn && !is_torn(&r->stage[c])))
            continue;
        any = true;
        int m = mark_before(r, c, before, todo);
        mark_behind(r, c, todo, m, behind);
        for (int i = 0; i < m; i++) {
            if (behind[todo[i]])
                up[gp_root(up, todo[i])] = c;
            before[todo[i]] = behind[todo[i]] = false;
        }
    }
    int *members = GP_NEW(r->arena, int, n);
    for (int v = 0; v < n && any; v++)
        members[gp_root(up, v)]++;
    for (int v = 0; v < n && any; v++)
        if (members[gp_root(up, v)] > 1)
            r->stage[v].s.cycle = from + gp_root(up, v) + 1, r->stage[v].s.within = torn;
    return any;
}

/* A buffer that is carried on a cycle by way of the host is a ring like any other. So a state of such a cycle, as the
 * moments of an optimizer, whose gradient other ranks have a share of, may be in one segment all the same: what is
 * between the stages that use it, without the buffers that are carried so, is a cycle of its own. */
void gp_carry_cycles(gp_resolving *r)
{
    number_cycles(r, 0, false);
    find_segments(r);
    if (number_cycles(r, r->nstages, true))
        find_segments(r);
    for (int v = r->ngiven; v < r->nstages; v++)
        if (is_torn(&r->stage[v]) && r->stage[v].s.cycle)
            gp_state_leaves(r, &r->stage[v]);
}

/* ---- types ------------------------------------------------------------------------- */

/* The type of what `st` makes, by what it carries, what is declared or what its first frame is; NULL after errors. */
static const gp_type *type_of(gp_resolving *r, const gp_rstage *st)
{
    gp_rbuf *u = &r->buffer[st->s.out[0]], *v = &r->buffer[st->s.in[0]];
    const gp_rbuf *init = st->s.in[1] < 0 ? NULL : &r->buffer[st->s.in[1]];
    if (u->like >= 0 && r->buffer[u->like].known)
        gp_buffer_type_like(u, &r->buffer[u->like].b.type, 0);
    for (int i = 0; i < r->nstages && v->carry && !v->known && !gp_is_complete(&v->b.said); i++) {
        const gp_rstage *from = &r->stage[v->b.producer.stage];
        if (from->broken || from->s.in[0] < 0)
            return NULL;
        v = &r->buffer[from->s.in[0]];
    }
    if (v->known || v->broken)
        return v->known ? &v->b.type : NULL;
    if (v->like >= 0 && r->buffer[v->like].known)
        gp_buffer_type_like(v, &r->buffer[v->like].b.type, r->buffer[v->like].b.varies);
    if (gp_is_complete(&u->b.said) || gp_is_complete(&v->b.said))
        return gp_is_complete(&u->b.said) ? &u->b.said : &v->b.said;
    if (init && init->known)
        return &init->b.type;
    if (u->b.state && !(init && init->broken) && !u->broken)
        AT(r, u->b.at, "the type of the state '%s' is not known: declare dtype and shape, or like, or give a file as 'init'",
           u->b.name);
    else if (st->s.closes && !init->broken)
        AT(r, u->b.at, "the type of buffer '%s' is not known: it carries '%s', which is made of '%s'; declare dtype and "
           "shape, or like, of '%s' or '%s' under 'buffers', or give a file as 'init'", u->b.name, v->b.name, u->b.name,
           u->b.name,
           v->b.name);
    return NULL;
}

static bool check_init(gp_resolving *r, const gp_rbuf *u, gp_rbuf *init, const gp_type *t)
{
    char a[128], b[128];
    if (init->broken || (init->b.path && !init->known))
        return false;
    if (!init->b.path && !gp_num_fits(&init->b.value, t->dtype))
        return AT(r, init->b.at, "'init' of buffer '%s' is %s, which %s cannot hold", u->b.name,
                  gp_num_text(&init->b.value, a), gp_dtype_name(t->dtype));
    if (init->b.path && !gp_type_same(&init->b.type, t))
        return AT(r, init->b.at, "'init' of buffer '%s' is %s, and a frame of it is %s", u->b.name,
                  gp_type_text(&init->b.type, a), gp_type_text(t, b));
    init->b.type = *t, init->known = true;
    return true;
}

void gp_carry_infer(gp_resolving *r, gp_rstage *st)
{
    gp_rbuf *u = st->outs_broken ? NULL : &r->buffer[st->s.out[0]];
    const gp_type *t = u && !u->broken && !st->broken ? type_of(r, st) : NULL;
    if (!t || (st->s.in[1] >= 0 && !check_init(r, u, &r->buffer[st->s.in[1]], t))) {
        if (u)
            u->broken = true;
        return;
    }
    gp_rbuf *v = &r->buffer[st->s.in[0]];
    int from = v->b.producer.stage;
    while (from >= 0 && gp_is_carry(&r->stage[from].s))
        from = maker(r, &r->stage[from], 0);
    if (from < 0) {                    /* declared, and the outputs of its stage were not understood */
        u->broken = true;
        return;
    }
    if (v->konst) {
        u->broken = true;
        gp_fail(r->errs, GP_E_SPEC, u->b.at, "buffer '%s' carries '%s', which is made of constants, and the same in each "
                "frame", u->b.name, v->b.name);
        return;
    }
    for (gp_rbuf *x = v; u->b.state && x != u; x = &r->buffer[x->older])
        x->b.said = *t, x->said_by = u->b.name;
    if (u->b.save)
        gp_state_claim(r, st);
    if (!gp_is_complete(&v->b.said))   /* its stage need not guess it */
        gp_buffer_type_like(v, t, 0), v->said_by = u->b.name;
    gp_devices_follow(r, &st->s, &r->stage[from].s);
    gp_priority_follow(&st->s, &r->stage[from].s);
    st->s.regroup = (gp_regroup){ .step = 1, .repeat = 1, .take = 1, .back = st->s.regroups, .make = 1, .every = 1,
                                  .drop_tail = true };
    st->s.endless = st->s.follows = st->s.carried = true;
    u->b.endless = u->b.follows = u->b.carried = true;
    u->b.type = *t, u->known = true;
}

static void check_buffer(gp_resolving *r, const gp_rstage *st)
{
    char a[128], b[128];
    const gp_rbuf *u = &r->buffer[st->s.out[0]], *v = &r->buffer[st->s.in[0]];
    gp_type said = v->b.type;
    if (u->b.said.dtype)
        said.dtype = u->b.said.dtype;
    if (u->b.said.ndim)
        said.ndim = u->b.said.ndim, memcpy(said.dim, u->b.said.dim, sizeof said.dim);
    if (v->known && v->b.varies)
        AT(r, u->b.at, "buffer '%s' carries '%s', and frames that are carried have one shape: declare that of '%s' without '<='",
           u->b.name, v->b.name, v->b.name);
    else if (v->known && !gp_type_same(&said, &v->b.type))
        AT(r, u->b.at, "buffer '%s' is declared as %s, but it carries '%s', which is %s", u->b.name,
           gp_type_text(&said, a), v->b.name, gp_type_text(&v->b.type, b));
    else if (v->known && u->known && !gp_type_same(&u->b.type, &v->b.type))
        AT(r, u->b.at, "buffer '%s' begins as %s, and '%s', which it carries, is %s", u->b.name,
           gp_type_text(&u->b.type, a), v->b.name, gp_type_text(&v->b.type, b));
    bool fed = !st->s.closes || !u->known || !v->known;
    for (int i = 0; i < r->ngiven && !fed; i++)
        fed = r->stage[i].s.cycle == st->s.cycle && !r->stage[i].s.carried;
    if (!fed)
        AT(r, u->b.at, "no source feeds the cycle of '%s' and '%s': a stage of it has to read what a source makes",
           u->b.name, v->b.name);
}

/* Once all types are known. */
void gp_carry_check(gp_resolving *r)
{
    for (int i = r->ngiven; i < r->nstages; i++)
        if (gp_is_carry(&r->stage[i].s) && !r->stage[i].broken && !r->stage[i].outs_broken)
            check_buffer(r, &r->stage[i]);
    for (int i = 0; i < r->ngiven && !r->errs->failed; i++)        /* else it may not be known what they compute */
        gp_state_check(r, &r->stage[i]);
    for (int i = 0; i < r->ngiven; i++) {
        const gp_rstage *st = &r->stage[i];
        const gp_rbuf *b = st->s.nin && st->s.in[0] >= 0 ? &r->buffer[st->s.in[0]] : NULL;
        if (st->s.cycle && st->s.regroup.every == INT64_MAX)
            AT(r, st->s.at, "stage '%s' makes one frame of all that it reads, which is itself made from that frame, "
               "through a carried buffer: take it out of the cycle", st->s.name);
        if (!st->broken && st->s.carried && !st->s.nout)
            AT(r, st->s.at, "stage '%s' reads nothing but %s, so that nothing says how many frames it has: read %s%s%s "
               "too, or instead", st->s.name, b && b->carry ? "carried buffers" : "what is made of carried buffers",
               b && b->carry ? "'" : "", b && b->carry ? b->carry : "another buffer", b && b->carry ? "'" : "");
    }
}

bool gp_carry_sources(gp_arena *a, const gp_graph *g, gp_errs *errs)
{
    bool *ends = NULL, ok = true;
    for (int i = 0; i < g->nstages && !ends; i++)
        if (gp_is_carry(&g->stage[i]))
            ends = GP_NEW(a, bool, g->nstages);
    for (int i = 0; ends && i < g->nstages; i++)
        for (int s = -1; !g->stage[i].nout && (s = gp_next_source(&g->stage[i], s + 1, g->nstages)) >= 0;)
            ends[s] = true;
    for (int s = 0; ends && s < g->nstages; s++)
        if (!g->stage[s].nin && !ends[s])
            ok = gp_fail(errs, GP_E_SPEC, g->stage[s].at, "frames of source '%s' reach sinks only through carried "
                         "buffers, which come a frame later and have no end of their own: add a stage that reads '%s' itself",
                         g->stage[s].name, g->buffer[g->stage[s].out[0]].name);
    return ok;
}
