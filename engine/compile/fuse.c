/* fuse.c - which neighbors become one stage, see fuse.h.
 *
 * A stage is elementwise where its kind has fuse(), or its shape() has said an `expr`. Stages are looked at in order,
 * and each joins those that make its inputs, if they are in one segment, and nothing that is not a part has to run
 * between them; so does a reduction. What only parts read is nowhere in memory then. The kind that fuses has the last
 * word: it makes one program of all parts, and says why it cannot. */
#include <string.h>
#include "compile/fusing.h"
#include "compile/plan.h"

bool gp_is_elementwise(const gp_stage *s)
{
    bool ok = s->device && (s->expr ? s->nout == 1 : s->kind->fuse != NULL);
    for (int p = 0; p < s->nin; p++)
        ok &= s->in[p] >= 0;
    for (int p = 0; p < s->nout; p++)
        ok &= s->out[p] >= 0;
    return ok;
}

static bool is_reduction(const gp_stage *s)
{
    return s->device && s->reduction.op && s->in[0] >= 0 && s->out[0] >= 0;
}

static bool may_join(const gp_stage *s)
{
    return !s->states && (gp_is_elementwise(s) || is_reduction(s));        /* what uses a state stands alone */
}

/* ---- may they? --------------------------------------------------------------- */

/* Does a path lead from group v to group w by way of another group? All of it is in their segment, and no group on it
 * begins behind the end of w. */
static bool leads_to(gp_fusing *f, int v, int w)
{
    const gp_graph *g = f->g;
    int n = 0;
    f->seen[v] = ++f->walk;
    f->stack[n++] = v;
    while (n) {
        int at = f->stack[--n];
        for (int k = f->begin[at]; k < f->begin[at + 1]; k++) {
            int x = f->group[f->behind[k]];
            if (f->seen[x] != f->walk && x <= f->last[w])
                f->seen[x] = f->walk, f->stack[n++] = x;
        }
        for (int m = at; m >= 0; m = f->next[m])
            for (int o = 0; o < g->stage[m].nout; o++) {
                const gp_buffer *b = gp_stage_out(g, &g->stage[m], o);
                for (int u = 0; b && u < b->nuse; u++) {
                    int to = b->use[u].stage, x = f->group[to];
                    if (x == w && at != v)
                        return true;
                    if (x == w || x > f->last[w] || f->seen[x] == f->walk || g->stage[to].closes
                        || f->segment[to] != f->segment[v])
                        continue;
                    f->seen[x] = f->walk;
                    f->stack[n++] = x;
                }
            }
    }
    return false;
}

/* Why what one stage makes of the other cannot stay within a kernel; NULL: nothing is against it. */
static const char *against_edge(gp_fusing *f, const gp_stage *from, const gp_stage *to, int port)
{
    const gp_buffer *b = &f->g->buffer[to->in[port]];
    const gp_type *t = is_reduction(to) ? &b->type : &f->g->buffer[to->out[0]].type;
    if (is_reduction(from))
        return gp_format(f->r->arena, "'%s' is there when all of a frame is reduced", b->name);
    if (to->closes)
        return "a carried buffer makes a cycle of it";
    if (b->depth_said)
        return gp_format(f->r->arena, "'%s' has a depth of its own", b->name);
    if (b->managed)
        return gp_format(f->r->arena, "'%s' is in managed memory", b->name);
    if (to->beyond >> port & 1)
        return gp_format(f->r->arena, "of '%s' more is needed than the element at the same place", b->name);
    if (t->ndim != b->type.ndim || memcmp(t->dim, b->type.dim, sizeof t->dim[0] * (size_t)t->ndim))
        return gp_format(f->r->arena, "the frames of '%s' are repeated along an axis", b->name);
    return NULL;
}

/* Why the groups of two neighbors, which have the stages `all`, cannot be one. */
static const char *against(gp_fusing *f, const gp_stage *from, const gp_stage *to, const int *all, int n)
{
    int v = f->group[(int)(from - f->g->stage)], w = f->group[(int)(to - f->g->stage)];
    const char *why = NULL;
    if (!f->compiler)
        return "there is no NVRTC to compile one kernel of both";
    if (from->cycle || to->cycle || from->carried != to->carried)
        return "a carried buffer makes a cycle of it";
    if (f->segment[v] != f->segment[w])
        return "one of them waits for the host";
    if (from->zero || to->zero)
        return "of 'zero'";
    if (n > GP_FUSE_MOST)
        return "one kernel would be too long";
    for (int i = 0, reductions = 0; i < n && !why; i++) {
        reductions += is_reduction(&f->g->stage[all[i]]);
        why = reductions > 1 ? "one kernel has one reduction at most" : NULL;
        for (int p = 0; p < f->g->stage[all[i]].nin && !why; p++) {
            int by = gp_stage_maker(f->g, &f->g->stage[all[i]], p), g = by < 0 ? -1 : f->group[by];
            if (by >= 0 && (g == v || g == w))
                why = against_edge(f, &f->g->stage[by], &f->g->stage[all[i]], p);
        }
    }
    return why ? why : leads_to(f, v, w) ? "another stage has to run between them" : NULL;
}

static const char losing[] = "what is written of one can be there in frames in which an input of the other is not";

/* What the stage of these parts would write, it would write where all of its inputs have a frame: is that made of other
 * frames than some part? Then a hole in one would leave out more than before. */
static bool loses_frames(const gp_fusing *f, const gp_joined *j, const int *stage, int n)
{
    uint64_t all = 0;
    for (int i = 0; i < n; i++)
        all |= f->roots[stage[i]];
    for (int i = 0; i < n; i++)
        for (int k = 0; k < f->g->stage[stage[i]].nout; k++)
            if (j->part[i].to[k] >= 0 && f->roots[stage[i]] != all)
                return true;
    return all >> 63;                  /* too many to tell */
}

/* ---- one of many --------------------------------------------------------------- */

/* Options that are numbers, as vars. */
static gp_vars vars_of(gp_arena *a, const gp_stage *st)
{
    gp_vars vars = { .index = { .arena = a } };
    int n = 0;
    for (const gp_opt *o = st->kind->opts; o && o->name; o++)
        n++;
    vars.v = GP_NEW(a, gp_var, n + 1);
    for (const gp_opt *o = st->kind->opts; o && o->name; o++) {
        const char *field = (const char *)st->opts + o->off;
        gp_num num = { .is_int = true };
        if (o->type == GP_OPT_INT)
            num.f = (double)(num.i = *(const int64_t *)field);
        else if (o->type == GP_OPT_FLOAT)
            num = (gp_num){ .f = *(const double *)field };
        else if (o->type == GP_OPT_NUM)
            num = *(const gp_num *)field;
        else
            continue;
        gp_table_put(&vars.index, o->name, vars.n);
        vars.v[vars.n++] = (gp_var){ .name = o->name, .number = true, .state = GP_VAR_DONE, .num = num };
    }
    return vars;
}

/* The types that a stage of the graph has, in its shape(). */
static void begin_part(gp_fusing *f, gp_joined *j, int i, int v)
{
    const gp_graph *g = f->g;
    const gp_stage *st = &g->stage[v];
    gp_fuse_part *p = &j->part[i];
    gp_arena *a = f->r->arena;
    gp_type *in = GP_NEW(a, gp_type, st->nin + 1), *out = GP_NEW(a, gp_type, st->nout + 1);
    unsigned *varies = GP_NEW(a, unsigned, st->nin + st->nout + 1);
    for (int k = 0; k < st->nin; k++)
        if (st->in[k] >= 0)
            in[k] = g->buffer[st->in[k]].type, varies[k] = g->buffer[st->in[k]].varies;
    for (int k = 0; k < st->nout; k++)
        if (st->out[k] >= 0)
            out[k] = g->buffer[st->out[k]].type, varies[st->nin + k] = g->buffer[st->out[k]].varies;
    j->vars[i] = st->expr ? vars_of(a, st) : (gp_vars){ .n = 0 };
    j->part_ctx[i] = (gp_shape_ctx){ .r = f->r, .stage = st, .vars = st->expr ? &j->vars[i] : &f->r->vars,
                                 .errs = j->ctx.errs };
    p->shape = GP_NEW(a, gp_shape, 1);
    *p->shape = (gp_shape){ .in = in, .out = out, .in_varies = varies, .out_varies = varies + st->nin };
    gp_shape_begin(p->shape, &j->part_ctx[i]);
    p->expr = st->expr, p->reduction = st->reduction, p->kept = &f->kept[v];
}

static bool is_part(const int *stage, int n, int v)
{
    for (int i = 0; i < n; i++)
        if (stage[i] == v)
            return true;
    return false;
}

/* Whose part i's input is. False: the new stage would have too many. */
static bool wire_input(gp_fusing *f, gp_joined *j, const int *stage, int i, int port)
{
    const gp_graph *g = f->g;
    int b = g->stage[stage[i]].in[port], k = 0;
    const gp_buffer *buf = &g->buffer[b];
    for (int p = 0; p < i; p++)
        if (stage[p] == buf->producer.stage) {
            j->part[i].from[port].part = p, j->part[i].from[port].port = buf->producer.port;
            return true;
        }
    while (k < j->stage.nin && j->stage.in[k] != b)
        k++;
    if (k == GP_MAXPORT)
        return false;
    j->part[i].from[port].part = -1, j->part[i].from[port].port = k;
    if (k == j->stage.nin) {
        j->stage.in[k] = b, j->stage.in_name[k] = buf->name, j->stage.nin++;
        j->in[k] = buf->type, j->in_varies[k] = buf->varies;
    }
    return true;
}

static bool wire_output(gp_fusing *f, gp_joined *j, const int *stage, int n, int i, int port)
{
    const gp_graph *g = f->g;
    int b = g->stage[stage[i]].out[port], k = j->stage.nout;
    const gp_buffer *buf = b < 0 ? NULL : &g->buffer[b];
    bool outside = buf && (!buf->nuse || buf->wanted);
    j->part[i].to[port] = -1;
    for (int u = 0; buf && u < buf->nuse; u++)
        outside |= !is_part(stage, n, buf->use[u].stage);
    if (!outside)
        return true;
    if (k == GP_MAXPORT)
        return false;
    j->part[i].to[port] = k;
    j->stage.out[k] = b, j->stage.out_name[k] = buf->name, j->stage.nout++;
    j->out[k] = buf->type, j->out_varies[k] = buf->varies;
    return true;
}

static bool wire(gp_fusing *f, gp_joined *j, const int *stage, int n)
{
    bool ok = true;
    for (int i = 0; i < n && ok; i++) {
        for (int k = 0; k < f->g->stage[stage[i]].nin && ok; k++)
            ok = wire_input(f, j, stage, i, k);
        for (int k = 0; k < f->g->stage[stage[i]].nout && ok; k++)
            ok = wire_output(f, j, stage, n, i, k);
    }
    return ok;
}

/* "scale+clip". */
static const char *joined_name(gp_fusing *f, const int *stage, int n)
{
    const char *name = f->g->stage[stage[0]].name;
    for (int i = 1; i < n; i++)
        name = gp_format(f->r->arena, "%s+%s", name, f->g->stage[stage[i]].name);
    return name;
}

/* Would a stage of the parts `stage`, n in order, have too many inputs or outputs? */
static bool is_too_wide(gp_fusing *f, gp_joined *j, const int *stage, int n)
{
    j->stage.nin = j->stage.nout = 0;
    return !wire(f, j, stage, n);
}

static gp_joined *new_joined(gp_fusing *f)
{
    gp_arena *a = f->r->arena;
    gp_joined *j = GP_NEW(a, gp_joined, 1);
    j->stage.in = GP_NEW(a, int, GP_MAXPORT), j->stage.out = GP_NEW(a, int, GP_MAXPORT);
    j->stage.in_name = GP_NEW(a, const char *, GP_MAXPORT), j->stage.out_name = GP_NEW(a, const char *, GP_MAXPORT);
    return j;
}

/* A stage of the parts, for several steps of a loop or not. NULL: `why` says why there is none. */
static gp_joined *join(gp_fusing *f, const int *stage, int n, bool steps, const char **why)
{
    gp_arena *a = f->r->arena;
    gp_joined *j = new_joined(f);
    gp_stage s = f->g->stage[stage[0]];
    s.in = j->stage.in, s.out = j->stage.out, s.in_name = j->stage.in_name, s.out_name = j->stage.out_name;
    s.kind = f->kind, s.name = joined_name(f, stage, n), s.opts = NULL;
    for (int i = 1; i < n; i++)
        if (f->g->stage[stage[i]].priority > s.priority)
            s.priority = f->g->stage[stage[i]].priority;
    j->stage = s;
    j->ctx = (gp_shape_ctx){ .r = f->r, .stage = &j->stage, .vars = &f->r->vars, .errs = GP_NEW(a, gp_errs, 1) };
    *why = "one kernel would have too many inputs and outputs";
    if (is_too_wide(f, j, stage, n))
        return NULL;
    *why = losing;
    if (!steps && loses_frames(f, j, stage, n))
        return NULL;
    for (int i = 0; i < n; i++)
        begin_part(f, j, i, stage[i]);
    j->fuse = (gp_fuse){ .part = j->part, .n = n, .steps = steps, .shape = GP_NEW(a, gp_shape, 1) };
    for (int k = 0; k < j->stage.nin; k++)
        j->fuse.consts |= (unsigned)gp_is_const(&f->g->buffer[j->stage.in[k]]) << k;
    *j->fuse.shape = (gp_shape){ .in = j->in, .out = j->out, .in_varies = j->in_varies, .out_varies = j->out_varies };
    gp_shape_begin(j->fuse.shape, &j->ctx);
    if (f->kind->fuse(&j->fuse))
        return j;
    *why = gp_strdup(a, j->fuse.why);
    return NULL;
}

/* ---- who joins whom --------------------------------------------------------------- */

/* The members of one group or two, in order; no more than one too many. */
static int members(const gp_fusing *f, int v, int w, int to[GP_FUSE_MOST + 1])
{
    int n = 0;
    for (int x = v, y = v == w ? -1 : w; (x >= 0 || y >= 0) && n <= GP_FUSE_MOST;) {
        int *next = y < 0 || (x >= 0 && x < y) ? &x : &y;
        to[n++] = *next;
        *next = f->next[*next];
    }
    return n;
}

static void make_group(gp_fusing *f, const int *stage, int n)
{
    for (int i = 0; i < n; i++)
        f->group[stage[i]] = stage[0], f->next[stage[i]] = i + 1 < n ? stage[i + 1] : -1;
    f->last[stage[0]] = stage[n - 1];
}

static void say_not(gp_fusing *f, const gp_stage *from, const gp_stage *to, const char *why)
{
    if (f->nnot && f->not[f->nnot - 1].from == from->name && f->not[f->nnot - 1].to == to->name)
        return;                        /* by way of another input */
    *GP_PUSH(f->r->arena, f->not, f->nnot, f->not_cap) = (gp_unfused){ from->name, to->name, why };
}

/* Stage w joins the group of the one that makes its input. `room`: to wire stages in. */
static void try_join(gp_fusing *f, int w, int port, gp_joined *room)
{
    const gp_stage *to = &f->g->stage[w], *from;
    int by = gp_stage_maker(f->g, to, port), v = by < 0 ? -1 : f->group[by], all[GP_FUSE_MOST + 1];
    from = by < 0 ? NULL : &f->g->stage[by];
    if (v < 0 || !gp_is_elementwise(from) || from->states || v == f->group[w])
        return;
    int n = members(f, v, f->group[w], all);
    const char *why = against(f, from, to, all, n);
    if (!why && is_too_wide(f, room, all, n))
        why = "one kernel would have too many inputs and outputs";
    if (!why && loses_frames(f, room, all, n))
        why = losing;
    if (why)
        say_not(f, from, to, why);
    else
        make_group(f, all, n);
}

/* Groups become stages. Where one kernel cannot be made of all, two are tried of the halves: as stages are in order,
 * what is before one does not wait for it. */
static void make_stages(gp_fusing *f, const int *stage, int n)
{
    const char *why;
    int half = n / 2;
    make_group(f, stage, n);
    if (n == 1 || (f->made[stage[0]] = join(f, stage, n, false, &why)))
        return;
    say_not(f, &f->g->stage[stage[half - 1]], &f->g->stage[stage[half]], why);
    make_stages(f, stage, half);
    make_stages(f, stage + half, n - half);
}

/* ---- all of it -------------------------------------------------------------------- */

/* Each buffer that comes into a segment has a bit, as far as there are bits; the last stands for the rest. */
static void find_roots(gp_fusing *f)
{
    const gp_graph *g = f->g;
    gp_arena *a = f->r->arena;
    int *seen = GP_NEW(a, int, g->nbuffers), *number = GP_NEW(a, int, g->nbuffers), *n = GP_NEW(a, int, g->nstages);
    f->roots = GP_NEW(a, uint64_t, g->nstages);
    for (int v = 0; v < g->nstages; v++)
        for (int p = 0; p < g->stage[v].nin; p++) {
            int b = g->stage[v].in[p], s = f->segment[v];
            int by = gp_stage_maker(g, &g->stage[v], p);
            if (by < 0)
                continue;
            if (f->segment[by] == s && !g->stage[v].closes) {
                f->roots[v] |= f->roots[by];
                continue;
            }
            if (seen[b] != s + 1)
                seen[b] = s + 1, number[b] = n[s]++;
            f->roots[v] |= (uint64_t)1 << (number[b] < 63 ? number[b] : 63);
        }
}

static const gp_kind *kind_that_fuses(const gp_registry *r)
{
    const gp_kind *k = NULL;
    for (int i = 0; (k = gp_kind_at(r, i)) && !k->fuse; i++)
        ;
    return k;
}

static void find_behind(gp_fusing *f)
{
    const gp_graph *g = f->g;
    int n = g->nstages, *end = GP_NEW(f->r->arena, int, n);
    f->begin = GP_NEW(f->r->arena, int, n + 1);
    for (int v = 0; v < n; v++)
        for (int k = 0; k < g->stage[v].nafter; k++)
            f->begin[g->stage[v].after[k] + 1]++;
    for (int v = 0; v < n; v++)
        end[v] = f->begin[v], f->begin[v + 1] += f->begin[v];
    f->behind = GP_NEW(f->r->arena, int, f->begin[n] + 1);
    for (int v = 0; v < n; v++)
        for (int k = 0; k < g->stage[v].nafter; k++)
            f->behind[end[g->stage[v].after[k]]++] = v;
}

static void make_room(gp_fusing *f)
{
    find_behind(f);
    int n = f->g->nstages;
    gp_arena *a = f->r->arena;
    f->group = GP_NEW(a, int, n), f->next = GP_NEW(a, int, n), f->last = GP_NEW(a, int, n);
    f->stack = GP_NEW(a, int, n), f->seen = GP_NEW(a, int, n);
    f->made = GP_NEW(a, gp_joined *, n), f->kept = GP_NEW(a, void *, n);
    for (int v = 0; v < n; v++)
        f->group[v] = f->last[v] = v, f->next[v] = -1;
}

static bool begin(gp_fusing *f)
{
    const gp_graph *g = f->g;
    f->kind = kind_that_fuses(f->r->registry);
    bool any = false;
    for (int v = 0; v < g->nstages && f->kind; v++)
        for (int p = 0; p < g->stage[v].nin && may_join(&g->stage[v]); p++) {
            int by = gp_stage_maker(g, &g->stage[v], p);
            any |= by >= 0 && gp_is_elementwise(&g->stage[by]);
        }
    if (!any || !g->fuse)
        return false;
    f->segment = gp_segments(f->r->arena, g);
    find_roots(f);
    make_room(f);
    return true;
}

gp_graph *gp_fuse_stages(gp_resolving *r, gp_graph *g, const gp_machine *m)
{
    gp_fusing f = { .r = r, .g = g };
    bool any = false;
    if (!begin(&f))
        return g;
    f.compiler = !g->ndevices || g->device[0].pretend || !m->compiles || m->compiles();
    gp_joined *room = new_joined(&f);
    for (int v = 0; v < g->nstages; v++)
        for (int p = 0; p < g->stage[v].nin && may_join(&g->stage[v]); p++)
            try_join(&f, v, p, room);
    for (int v = 0; v < g->nstages; v++) {
        int stage[GP_FUSE_MOST + 1], n = f.group[v] == v && !f.made[v] ? members(&f, v, v, stage) : 0;
        if (n > 1)
            make_stages(&f, stage, n);
        any |= f.made[v] != NULL;
    }
    g->unfused = f.not, g->nunfused = f.nnot;
    return any ? gp_fusing_rebuild(&f) : g;
}

gp_graph *gp_fuse_steps(gp_resolving *r, gp_graph *g)
{
    gp_fusing f = { .r = r, .g = g, .kind = kind_that_fuses(r->registry) };
    int stage[GP_FUSE_MOST];
    const char *why;
    if (!f.kind || g->nstages > GP_FUSE_MOST)
        return NULL;
    for (int v = 0; v < g->nstages; v++) {
        if (!gp_is_elementwise(&g->stage[v]) || g->stage[v].zero || g->stage[v].states)
            return NULL;
        stage[v] = v;
    }
    make_room(&f);
    make_group(&f, stage, g->nstages);
    f.made[0] = join(&f, stage, g->nstages, true, &why);
    if (!f.made[0])
        return NULL;
    gp_graph *one = gp_fusing_rebuild(&f);
    one->unfused = NULL, one->nunfused = 0;
    return one;
}
